/* database.h: the metadata database of a process: one CQL client on each worker, the metadata
 * backend on top, and what /readyz says of it. */
#ifndef FGW_BIN_DATABASE_H
#define FGW_BIN_DATABASE_H

#include "bin/server.h"
#include "cluster/cluster.h"
#include "meta/cql/cql.h"

struct fgw_database;

struct fgw_database_options {
    const struct fgw_config *config;
    struct fgw_server *server;
    struct fgw_blobs *blobs;
    bool schema_fits; /* fgw_schema_at_start said so just now: it is not looked at once more */
};

/* Starts connecting on all workers. Waits some seconds for a first connection, so that a wrong
 * password or port ends the start with its reason (CONFIG, ACCESS_DENIED); then migrates or waits
 * for the schema as FGW_MIGRATE says, /readyz telling what for (AGAIN, with the exit code of
 * spec/migrations.md E2.10 as an extra of the error). */
enum fgw_err fgw_database_open(const struct fgw_database_options *options,
                               struct fgw_database **out_database,
                               struct fgw_error *error) FGW_MUST_CHECK;
/* The client of the calling worker; context: the database. */
struct fgw_cql_client *fgw_database_client(void *database);
/* The cluster id of the database, made as `how` says; waits for an answer up to 30 s. From a thread
 * that is no worker. */
enum fgw_err fgw_database_identify(struct fgw_database *database, const struct fgw_identify *how,
                                   uint8_t out_id[FGW_CLUSTER_ID_SIZE],
                                   struct fgw_error *error) FGW_MUST_CHECK;
struct fgw_meta *fgw_database_meta(struct fgw_database *database);
/* Is a replica set on this process's store? HERE, ELSEWHERE, or UNDECIDED when the set is unknown. */
typedef enum fgw_storage_liveness fgw_database_here_fn(void *context, uint64_t set);
/* Before care starts. Without it all sets are here. */
void fgw_database_set_here(struct fgw_database *database, fgw_database_here_fn *here,
                           void *context);
/* The liveness predicate for threads that are no workers; context: the database. */
enum fgw_err fgw_database_blob_live(void *context, const struct fgw_storage_owner *owner,
                                    const struct fgw_cid *root,
                                    enum fgw_storage_liveness *out_liveness);
/* With workers still running and no request in flight. Frees the backend too. Takes NULL. */
void fgw_database_close(struct fgw_database *database);

#endif
