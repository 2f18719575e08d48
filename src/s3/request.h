/* request.h: one S3 request while it is executed: what was asked, by whom, of which bucket, and the
 * error that will be answered. Lives in the frame of the fiber that executes it; everything it
 * points to lives in the exchange's arena. One fiber, no locks. */
#ifndef FGW_S3_REQUEST_H
#define FGW_S3_REQUEST_H

#include "base/arena.h"
#include "base/err.h"
#include "http/server.h"
#include "meta/meta.h"
#include "s3/quota.h"
#include "sigv4/auth.h"

struct fgw_s3;
struct fgw_s3_op;

struct fgw_s3_param {
    struct fgw_bytes name;  /* percent-decoded, '+' as blank */
    struct fgw_bytes value; /* same; empty (not NULL) for "?name" and "?name=" */
};

/* The query in wire order. */
struct fgw_s3_query {
    const struct fgw_s3_param *params;
    size_t count;
};

enum fgw_s3_scope { FGW_S3_SERVICE, FGW_S3_BUCKET, FGW_S3_OBJECT };

/* Who asks. Anonymous: canonical_id is empty. */
struct fgw_s3_identity {
    struct fgw_bytes canonical_id;
    struct fgw_bytes display_name;
    struct fgw_bytes access_key;
    enum fgw_policy_kind policy;
    bool root;
};

enum { FGW_S3_REQUEST_ID_SIZE = 16, FGW_S3_EXTRA_HEADERS_MAX = 16 };

/* A header that whatever answer comes, also an error, shall carry. */
struct fgw_s3_extra_header {
    const char *name; /* static string */
    struct fgw_bytes value;
};

struct fgw_s3_request {
    struct fgw_s3 *s3;
    struct fgw_http_exchange *exchange;
    const struct fgw_http_request *http;
    struct fgw_arena *arena;
    const struct fgw_s3_op *op; /* NULL until routed, and for requests no operation matches */
    enum fgw_s3_scope scope;
    struct fgw_bytes bucket_name; /* as asked for, percent-decoded */
    struct fgw_bytes key;
    struct fgw_s3_query query;
    struct fgw_sig_auth auth;
    struct fgw_sig_seed *seed; /* of aws-chunked bodies; else NULL */
    struct fgw_s3_identity identity;
    struct fgw_bucket bucket; /* valid behind the engine's checks, unless the row says NO_BUCKET */
    struct fgw_s3_quota_taken quota_taken;
    uint64_t body_bytes; /* taken in so far, codings removed */
    char request_id[FGW_S3_REQUEST_ID_SIZE + 1];
    struct fgw_s3_extra_header extra_headers[FGW_S3_EXTRA_HEADERS_MAX];
    unsigned extra_header_count;
    bool late; /* a 200 with white space went out already (late.h): what follows is one document */
    struct fgw_error error;
};

/* Splits target and Host into scope, bucket, key and query. Path style and, for the domains of s3,
 * virtual-host style. FGW_ERR_INVALID_URI for broken escapes and text that is not UTF-8,
 * FGW_ERR_KEY_TOO_LONG. */
enum fgw_err fgw_s3_request_parse(struct fgw_s3_request *request) FGW_MUST_CHECK;

/* The pieces of it, for tests and fuzzing. */
enum fgw_err fgw_s3_query_parse(struct fgw_arena *arena, struct fgw_bytes raw_query,
                                struct fgw_s3_query *out_query) FGW_MUST_CHECK;
/* Bucket of a Host header under one of the domains; false: path style. */
bool fgw_s3_host_bucket(struct fgw_bytes host, const char *const *domains, size_t domain_count,
                        struct fgw_bytes *out_bucket);

/* First value of that name; ptr NULL when absent. */
struct fgw_bytes fgw_s3_param(const struct fgw_s3_request *request, const char *name);
bool fgw_s3_has_param(const struct fgw_s3_request *request, const char *name);
/* First header of that name; ptr NULL when absent. */
struct fgw_bytes fgw_s3_header(const struct fgw_s3_request *request, const char *name);

/* A whole number in [0, max]: absent gives `fallback`; FGW_ERR_INVALID_ARGUMENT names the parameter
 * when it is no number or negative; larger values are cut to max. */
enum fgw_err fgw_s3_param_number(struct fgw_s3_request *request, const char *name, unsigned max,
                                 unsigned fallback, unsigned *out_value) FGW_MUST_CHECK;
/* versionId of the query: absent, "null", or 32 hex digits; else FGW_ERR_INVALID_ARGUMENT. */
enum fgw_err fgw_s3_param_version(struct fgw_s3_request *request, const char *name,
                                  struct fgw_version *out_version) FGW_MUST_CHECK;
/* Sets INVALID_ARGUMENT with the elements ArgumentName and ArgumentValue. */
enum fgw_err fgw_s3_bad_argument(struct fgw_s3_request *request, const char *name,
                                 struct fgw_bytes value, const char *message);
/* Answers 501 with a sentence that names what is missing. */
enum fgw_err fgw_s3_not_built(struct fgw_s3_request *request, const char *what);

/* Adds a header to whatever answer comes; nothing when value.ptr is NULL. */
void fgw_s3_extra_header(struct fgw_s3_request *request, const char *static_name,
                         struct fgw_bytes value);

/* Value of x-amz-version-id for that version, in the arena; ptr NULL when none is shown. */
struct fgw_bytes fgw_s3_version_text(const struct fgw_s3_request *request,
                                     const struct fgw_id *version_id, bool is_null);

static inline bool fgw_s3_is_head(const struct fgw_s3_request *request)
{
    return request->http->method == FGW_HTTP_HEAD;
}

#endif
