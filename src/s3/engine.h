/* engine.h: the S3 engine: executes S3 requests on a metadata backend and a blob store.
 *
 * One engine serves all workers of a process; it is read-only after fgw_s3_new but for the caches
 * that belong to one worker each. fgw_s3_handle is the handler of the HTTP server and runs in the
 * request's fiber. Order of a request: parse the target, authenticate, route (ops.def), read the
 * bucket row, check the permission, run the operation, answer. spec/s3-wire.md section 5.
 */
#ifndef FGW_S3_ENGINE_H
#define FGW_S3_ENGINE_H

#include "http/server.h"
#include "meta/meta.h"

struct fgw_s3;
struct fgw_s3_op;

/* What is known of a request when its answer has ended: for the access log and metrics. */
struct fgw_s3_done {
    struct fgw_http_exchange *exchange;
    const char *operation; /* "GetObject", or "Unknown" */
    const char *request_id;
    struct fgw_bytes bucket;
    struct fgw_bytes key;
    struct fgw_bytes access_key; /* empty: anonymous */
    int status;                  /* 0: the client was gone before there was one */
    const char *error_code;      /* S3 code, or NULL */
    const char *error_message;   /* NULL without error */
    uint64_t body_bytes;         /* of the request, after all codings */
    uint64_t sent_bytes;
};

struct fgw_s3_options {
    struct fgw_meta *meta;
    struct fgw_blobs *blobs;
    unsigned workers; /* fgw_workers_count: caches are per worker */
    const char *region;
    const char *const *locations; /* accepted LocationConstraint values besides the region */
    size_t location_count;
    const char *const *domains; /* virtual-host addressing for BUCKET.DOMAIN */
    size_t domain_count;
    bool strict_aws; /* FGW_S3_STRICT_AWS */
    const char *root_access_key;
    const char *root_secret_key;
    uint64_t max_put_bytes; /* of one PUT or part; 0 = 5 GiB */
    /* How long a request that changes something may wait for the metadata's database, all its
     * look-ups and statements together (of DeleteObjects: each key); 0: as long as it takes. */
    uint64_t database_wait_ms;
    /* Answers "/_fgw/..." of path-style requests; false: no such path (answered 404). May be NULL. */
    bool (*internal)(void *context, struct fgw_http_exchange *exchange);
    void *internal_context;
    /* Called once for each request, in its fiber. May be NULL. */
    void (*done)(void *context, const struct fgw_s3_done *done);
    void *done_context;
};

/* Copies the options' strings; meta and blobs must outlive the engine. */
struct fgw_s3 *fgw_s3_new(const struct fgw_s3_options *options);
/* After the server stopped, while the workers still run. Takes NULL. */
void fgw_s3_free(struct fgw_s3 *s3);

/* An fgw_http_handler; context is the engine. */
void fgw_s3_handle(void *s3, struct fgw_http_exchange *exchange);
/* on_refused of the HTTP server: answers in S3's error format. */
void fgw_s3_refused(void *s3, struct fgw_http_exchange *exchange, enum fgw_err err,
                    const char *message);

/* Canonical id of the root identity: SHA-256 hex of its access key (spec/interface.md 7). */
struct fgw_bytes fgw_s3_root_id(const struct fgw_s3 *s3);

/* Rows of ops.def, for metrics: names by index below the count. */
size_t fgw_s3_operation_count(void);
const char *fgw_s3_operation_name(size_t index);

#endif
