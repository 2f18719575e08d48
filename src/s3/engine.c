/* engine.c: the engine's life, and the steps every request goes through. See engine.h. */
#include "s3/engine.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/log.h"
#include "base/rng.h"
#include "event/fiber.h"
#include "s3/access.h"
#include "s3/answer.h"
#include "s3/auth.h"
#include "s3/cors.h"
#include "s3/engine_internal.h"
#include "s3/names.h"
#include "s3/op.h"

static const uint64_t DEFAULT_MAX_PUT_BYTES = 5ULL * 1024 * 1024 * 1024;

static char **copy_list(const char *const *list, size_t count)
{
    char **copy = fgw_xcalloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        copy[i] = fgw_xstrdup(list[i]);
    }
    return copy;
}

static void free_list(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        fgw_xfree(list[i]);
    }
    fgw_xfree(list);
}

static void make_identifiers(struct fgw_s3 *s3)
{
    uint8_t digest[FGW_SHA256_SIZE];
    fgw_sha256(s3->root_access_key, digest);
    fgw_hex_encode(fgw_bytes(digest, sizeof digest), s3->root_id);
    fgw_hmac_sha256(s3->root_secret_key, FGW_LIT("fgw list token 1"), s3->token_key);
    uint8_t host[FGW_S3_HOST_ID_SIZE / 2];
    fgw_rng_fill(host, sizeof host);
    fgw_hex_encode(fgw_bytes(host, sizeof host), s3->host_id);
}

struct fgw_s3 *fgw_s3_new(const struct fgw_s3_options *options)
{
    struct fgw_s3 *s3 = fgw_xcalloc(1, sizeof *s3);
    s3->meta = options->meta;
    s3->blobs = options->blobs;
    s3->quotas = fgw_s3_quotas_new(options->meta);
    s3->region = fgw_xstrdup(options->region);
    s3->locations = copy_list(options->locations, options->location_count);
    s3->location_count = options->location_count;
    s3->domains = (const char *const *)copy_list(options->domains, options->domain_count);
    s3->domain_count = options->domain_count;
    s3->strict_aws = options->strict_aws;
    s3->root_access_key = fgw_bytes_str(fgw_xstrdup(options->root_access_key));
    s3->root_secret_key = fgw_bytes_str(fgw_xstrdup(options->root_secret_key));
    s3->max_put_bytes =
        options->max_put_bytes == 0 ? DEFAULT_MAX_PUT_BYTES : options->max_put_bytes;
    s3->database_wait_ms = options->database_wait_ms == 0 ? UINT64_MAX : options->database_wait_ms;
    s3->workers = options->workers;
    s3->key_caches = fgw_xcalloc(s3->workers, sizeof *s3->key_caches);
    for (unsigned i = 0; i < s3->workers; i++) {
        s3->key_caches[i] = fgw_sig_key_cache_new(0);
    }
    s3->internal = options->internal;
    s3->internal_context = options->internal_context;
    s3->done = options->done;
    s3->done_context = options->done_context;
    make_identifiers(s3);
    return s3;
}

void fgw_s3_free(struct fgw_s3 *s3)
{
    if (s3 == NULL) {
        return;
    }
    fgw_s3_quotas_free(s3->quotas);
    for (unsigned i = 0; i < s3->workers; i++) {
        fgw_sig_key_cache_free(s3->key_caches[i]);
    }
    fgw_xfree(s3->key_caches);
    fgw_xfree((void *)s3->region);
    free_list(s3->locations);
    free_list((char **)s3->domains);
    fgw_xfree((void *)s3->root_access_key.ptr);
    fgw_xfree((void *)s3->root_secret_key.ptr);
    fgw_xfree(s3);
}

struct fgw_bytes fgw_s3_root_id(const struct fgw_s3 *s3)
{
    return fgw_bytes_str(s3->root_id);
}

size_t fgw_s3_operation_count(void)
{
    return FGW_S3_OP_COUNT;
}

const char *fgw_s3_operation_name(size_t index)
{
    return fgw_s3_op_at(index)->name;
}

bool fgw_s3_location_known(const struct fgw_s3 *s3, struct fgw_bytes location)
{
    if (fgw_bytes_eq_str(location, s3->region)) {
        return true;
    }
    for (size_t i = 0; i < s3->location_count; i++) {
        if (fgw_bytes_eq_str(location, s3->locations[i])) {
            return true;
        }
    }
    return false;
}

static void init_request(struct fgw_s3_request *request, struct fgw_s3 *s3,
                         struct fgw_http_exchange *exchange)
{
    static const char DIGITS[] = "0123456789ABCDEF";
    memset(request, 0, offsetof(struct fgw_s3_request, error));
    fgw_error_init(&request->error);
    request->s3 = s3;
    request->exchange = exchange;
    request->http = fgw_http_request(exchange);
    request->arena = fgw_http_arena(exchange);
    uint64_t id = fgw_rng_u64();
    for (int i = 0; i < FGW_S3_REQUEST_ID_SIZE; i++) {
        request->request_id[i] = DIGITS[id & 15];
        id >>= 4;
    }
}

/* The bucket row, and whether the caller may do what the operation does with it. */
static enum fgw_err admit(struct fgw_s3_request *request)
{
    const struct fgw_s3_op *op = request->op;
    struct fgw_s3 *s3 = request->s3;
    if ((op->flags & FGW_S3_OP_NO_BUCKET) != 0) {
        return FGW_OK;
    }
    if (!fgw_s3_bucket_name_valid(request->bucket_name)) {
        return fgw_error_set(&request->error, FGW_ERR_NO_SUCH_BUCKET, NULL);
    }
    bool fresh = (op->flags & FGW_S3_OP_WRITE) != 0;
    enum fgw_err err = s3->meta->ops->bucket_get(s3->meta, request->arena, request->bucket_name,
                                                 fresh, &request->bucket, &request->error);
    if (err == FGW_OK) {
        err = fgw_s3_check_expected_owner(request);
    }
    if (err == FGW_OK && !fgw_s3_may(&request->identity, &request->bucket, op->need)) {
        err = fgw_s3_deny(request);
    }
    return err;
}

static enum fgw_err run(struct fgw_s3_request *request)
{
    if (request->http->method == FGW_HTTP_OTHER) {
        return fgw_error_set(&request->error, FGW_ERR_METHOD_NOT_ALLOWED, NULL);
    }
    enum fgw_err err = fgw_s3_request_parse(request);
    if (err != FGW_OK) {
        return err;
    }
    if (request->http->method == FGW_HTTP_OPTIONS) {
        return fgw_s3_cors_preflight(request);
    }
    fgw_s3_cors_headers(request);
    err = fgw_s3_authenticate(request);
    if (err == FGW_OK) {
        err = fgw_s3_route(request, &request->op);
    }
    if (err == FGW_OK) {
        err = admit(request);
    }
    return err == FGW_OK ? request->op->handler(request) : err;
}

static void report_done(struct fgw_s3_request *request, enum fgw_err err)
{
    struct fgw_s3 *s3 = request->s3;
    if (err != FGW_OK && fgw_err_http_status(err) == 500) {
        fgw_log_error(
            "s3", "%s failed: %s request_id=%s operation=%s bucket=%.*s", fgw_err_name(err),
            request->error.code == err ? fgw_error_message(&request->error) : fgw_err_text(err),
            request->request_id, request->op == NULL ? "Unknown" : request->op->name,
            FGW_FMT(request->bucket_name));
    }
    if (s3->done == NULL) {
        return;
    }
    struct fgw_s3_done done = {
        .exchange = request->exchange,
        .operation = request->op == NULL ? "Unknown" : request->op->name,
        .request_id = request->request_id,
        .bucket = request->bucket_name,
        .key = request->key,
        .access_key = request->identity.access_key,
        .status = fgw_http_response_status(request->exchange),
        .error_code = err == FGW_OK ? NULL : fgw_err_s3_code(err),
        .error_message =
            err == FGW_OK || request->error.code != err ? NULL : fgw_error_message(&request->error),
        .body_bytes = request->body_bytes,
        .sent_bytes = fgw_http_response_bytes(request->exchange),
    };
    s3->done(s3->done_context, &done);
}

/* "/_fgw/..." in path style; under virtual-host addressing it is a key like any other. */
static bool is_internal(const struct fgw_s3 *s3, const struct fgw_http_request *http)
{
    struct fgw_bytes bucket;
    return fgw_bytes_starts_with(http->raw_path, FGW_LIT("/_fgw/")) &&
           !fgw_s3_host_bucket(http->host, s3->domains, s3->domain_count, &bucket);
}

/* A list may have to walk over more than fits into the time of a request that writes. */
static bool changes_something(enum fgw_http_method method)
{
    return method != FGW_HTTP_GET && method != FGW_HTTP_HEAD;
}

void fgw_s3_handle(void *context, struct fgw_http_exchange *exchange)
{
    struct fgw_s3 *s3 = context;
    if (is_internal(s3, fgw_http_request(exchange))) {
        if (s3->internal == NULL || !s3->internal(s3->internal_context, exchange)) {
            (void)fgw_http_respond(exchange, 404, "text/plain", FGW_LIT("no such path\n"));
        }
        return;
    }
    struct fgw_s3_request request;
    init_request(&request, s3, exchange);
    if (changes_something(request.http->method)) {
        fgw_fiber_set_patience(s3->database_wait_ms);
    }
    enum fgw_err err = run(&request);
    fgw_fiber_set_patience(UINT64_MAX);
    fgw_s3_quota_settle(&request, err);
    if (err != FGW_OK) {
        fgw_s3_answer_error(&request, err);
    }
    if (request.seed != NULL) {
        explicit_bzero(request.seed, sizeof *request.seed);
    }
    report_done(&request, err);
}

void fgw_s3_refused(void *context, struct fgw_http_exchange *exchange, enum fgw_err err,
                    const char *message)
{
    struct fgw_s3_request request;
    init_request(&request, context, exchange);
    (void)fgw_error_set(&request.error, err, "%s", message == NULL ? "" : message);
    fgw_s3_answer_error(&request, err);
    report_done(&request, err);
}
