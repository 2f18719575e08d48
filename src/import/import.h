/* import.h: takes over the objects of the Go gateway: its table S3Objects (bucket, key -> CID,
 * size) and the CARs of its groups become objects of this store.
 *
 * Each object's tree is read from the CARs, every block checked against its CID, and written as a
 * PUT would be: blob, ETag (MD5 of the content), then the name, conditionally: a name that exists is
 * never replaced. So it can be stopped and run again at any time; what is in already is known by
 * its CID. An object whose root comes out different (multipart trees, nodes of CIDv0 above 1 GiB)
 * keeps the old CID as user metadata FGW_IMPORT_CID_HEADER.
 * One import a process; runs in a fiber of a loop, its client's.
 */
#ifndef FGW_IMPORT_IMPORT_H
#define FGW_IMPORT_IMPORT_H

#include "cql/client.h"
#include "meta/meta.h"

#define FGW_IMPORT_CID_HEADER "x-amz-meta-imported-cid"

struct fgw_import_problem {
    struct fgw_bytes bucket; /* empty: of a CAR, not of an object */
    struct fgw_bytes key;
    struct fgw_bytes cid;
    const char *message; /* names file and offset where there are some */
};

struct fgw_import_options {
    struct fgw_cql_client *client; /* where the table is */
    const char *keyspace;          /* of the table */
    const char *folder;            /* of the CARs */
    const char *only_bucket;       /* NULL: all */
    bool dry_run;                  /* reads and checks everything, writes nothing */
    struct fgw_meta *meta;         /* where to; NULL in a dry run */
    struct fgw_blobs *blobs;
    struct fgw_bytes owner_id; /* of buckets that are made */
    const char *region;
    void (*on_problem)(void *context, const struct fgw_import_problem *problem);
    void *context;
};

struct fgw_import_counts {
    uint64_t cars, car_blocks, cars_damaged;
    uint64_t rows;     /* of the table, of the buckets wanted */
    uint64_t imported; /* in a dry run: would be */
    uint64_t present;  /* in already, with the same content */
    uint64_t kept;     /* the name has another content here, which stays */
    uint64_t expired;
    uint64_t failed;
    uint64_t blocks; /* read and checked */
    uint64_t bytes;  /* of the objects imported */
    uint64_t buckets_made;
};

/* FGW_OK also when objects failed (counts->failed, each reported). Else it could not go on: what
 * was counted until then is in *counts. */
enum fgw_err fgw_import_run(const struct fgw_import_options *options,
                            struct fgw_import_counts *counts,
                            struct fgw_error *error) FGW_MUST_CHECK;

#endif
