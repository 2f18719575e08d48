/* legacy.h: the rows of S3Objects, the Go gateway's table of objects (spec/migrations.md A4), in
 * the two forms its migration had. Pages are read one after the other, in a fiber of the client's
 * loop. */
#ifndef FGW_IMPORT_LEGACY_H
#define FGW_IMPORT_LEGACY_H

#include "cql/client.h"

struct fgw_legacy_row {
    struct fgw_bytes bucket;
    struct fgw_bytes key;
    struct fgw_bytes cid; /* text */
    int64_t size;
    int64_t expires_ms; /* 0: never */
    struct fgw_bytes node_id;
};

struct fgw_legacy;

/* Looks for the table in the keyspace. NOT_FOUND: there is none; CORRUPT: it has another shape;
 * else errors of the database. */
enum fgw_err fgw_legacy_open(struct fgw_cql_client *client, const char *keyspace,
                             struct fgw_legacy **out_legacy,
                             struct fgw_error *error) FGW_MUST_CHECK;
/* The next page, which lives until the next call; rows[] in the order of the table. FGW_ERR_END
 * behind the last. A page may be empty. */
enum fgw_err fgw_legacy_next(struct fgw_legacy *legacy, const struct fgw_legacy_row **out_rows,
                             size_t *out_count, struct fgw_error *error) FGW_MUST_CHECK;
/* Takes NULL. */
void fgw_legacy_free(struct fgw_legacy *legacy);

#endif
