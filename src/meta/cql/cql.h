/* cql.h: the metadata backend on YugabyteDB (YCQL), Apache Cassandra and ScyllaDB behind the
 * contract of meta/meta.h (design/metadata.md; tables: docs/formats/cql-tables.md).
 *
 * Every row that more than one process writes is changed by one conditional statement that names
 * the rev it saw; bytes are durable before a name is written; an unknown outcome is resolved by
 * sending the same statement again and reading the chain of revs, never by hoping.
 * One backend object is shared by all workers of a process; each worker brings its own CQL client.
 */
#ifndef FGW_META_CQL_CQL_H
#define FGW_META_CQL_CQL_H

#include "cql/client.h"
#include "meta/meta.h"

/* Called before a statement is sent and after it was answered, in tests only: may suspend the fiber
 * (a pause), and what it answers other than FGW_OK becomes the statement's outcome: before = it is
 * never sent (FGW_ERR_AGAIN: it is sent FGW_META_CQL_LATE_MS later and the caller is told
 * UNKNOWN_OUTCOME), after = the answer is lost. */
enum { FGW_META_CQL_LATE_MS = 400 };
typedef enum fgw_err fgw_meta_cql_fault_fn(void *context, const struct fgw_cql_statement *statement,
                                           bool after);

struct fgw_meta_cql_options {
    /* The client of the calling worker's loop. Clients are freed before the backend, whose
     * statements they know by address. */
    struct fgw_cql_client *(*client)(void *context);
    void *client_context;
    unsigned workers;        /* for caches, and for the share of conditional writes in flight */
    const char *keyspace;    /* [a-z0-9_]{1,48} */
    struct fgw_blobs *blobs; /* told of rows that are gone; long lists are stored there */
    const struct fgw_bytes *secrets; /* FGW_CLUSTER_SECRET: first = current */
    size_t secret_count;
    size_t list_rows;             /* read for one list page before it ends early; 0: 327,680 */
    unsigned shards;              /* of new buckets; 0: 16 on YugabyteDB, 64 else */
    fgw_meta_cql_fault_fn *fault; /* NULL outside of tests */
    void *fault_context;
};

/* Opens nothing: the database may be away. Strings and secrets are copied. */
struct fgw_meta *fgw_meta_cql_new(const struct fgw_meta_cql_options *options);
/* One run over all tables that removes what nobody needs any more and carries on what was left half
 * done; in a fiber. Any number may run at once. CANCELLED: stop() said so. */
struct fgw_meta_cql_purge {
    unsigned pause_ms;           /* after each page of 500 rows */
    bool (*stop)(void *context); /* NULL: never */
    void *context;
};
struct fgw_meta_cql_purged {
    uint64_t rows; /* looked at */
    uint64_t heads;
    uint64_t versions;
    uint64_t uploads;
    uint64_t finished; /* uploads carried to their end */
};
enum fgw_err fgw_meta_cql_purge(struct fgw_meta *meta, const struct fgw_meta_cql_purge *purge,
                                struct fgw_meta_cql_purged *out_done,
                                struct fgw_error *error) FGW_MUST_CHECK;
/* *out_mine: a run is due, `interval_ms` after the last one of whatever process, and is ours. */
enum fgw_err fgw_meta_cql_purge_claim(struct fgw_meta *meta, int64_t interval_ms, bool *out_mine,
                                      struct fgw_error *error) FGW_MUST_CHECK;

/* From now on the rounds of all calls are counted there; NULL ends it. For tests of one worker. */
void fgw_meta_cql_count_rounds(struct fgw_meta *meta, struct fgw_cql_rounds *rounds);

#endif
