/* request.c: taking a request's target apart, and access to its parameters. See request.h. */
#include "s3/request.h"

#include "base/check.h"
#include "base/encode.h"
#include "s3/engine_internal.h"

static enum fgw_err bad_uri(struct fgw_s3_request *request)
{
    return fgw_error_set(&request->error, FGW_ERR_INVALID_URI, NULL);
}

static enum fgw_err parse_param(struct fgw_arena *arena, struct fgw_bytes pair,
                                struct fgw_s3_param *out_param)
{
    size_t equals = fgw_bytes_find_byte(pair, '=');
    struct fgw_bytes name = fgw_bytes_sub(pair, 0, equals);
    struct fgw_bytes value =
        equals == SIZE_MAX ? FGW_LIT("") : fgw_bytes_sub(pair, equals + 1, SIZE_MAX);
    enum fgw_err err = fgw_uri_decode(arena, name, true, &out_param->name);
    if (err == FGW_OK) {
        err = fgw_uri_decode(arena, value, true, &out_param->value);
    }
    return err;
}

enum fgw_err fgw_s3_query_parse(struct fgw_arena *arena, struct fgw_bytes raw_query,
                                struct fgw_s3_query *out_query)
{
    if (raw_query.ptr == NULL || raw_query.len == 0) {
        *out_query = (struct fgw_s3_query){0};
        return FGW_OK;
    }
    size_t parts = fgw_bytes_count_byte(raw_query, '&') + 1;
    struct fgw_s3_param *params = fgw_arena_alloc(arena, parts * sizeof *params);
    size_t count = 0;
    struct fgw_bytes rest = raw_query;
    struct fgw_bytes pair;
    while (fgw_bytes_split(&rest, '&', &pair)) {
        if (pair.len == 0) {
            continue;
        }
        enum fgw_err err = parse_param(arena, pair, &params[count]);
        if (err != FGW_OK) {
            return FGW_ERR_INVALID_URI;
        }
        count++;
    }
    *out_query = (struct fgw_s3_query){params, count};
    return FGW_OK;
}

/* Without ":8078"; an address in brackets keeps its colons. */
static struct fgw_bytes without_port(struct fgw_bytes host)
{
    for (size_t i = host.len; i > 0; i--) {
        uint8_t c = host.ptr[i - 1];
        if (c == ':') {
            return fgw_bytes_sub(host, 0, i - 1);
        }
        if (c < '0' || c > '9') {
            break;
        }
    }
    return host;
}

bool fgw_s3_host_bucket(struct fgw_bytes host, const char *const *domains, size_t domain_count,
                        struct fgw_bytes *out_bucket)
{
    struct fgw_bytes name = without_port(host);
    struct fgw_bytes best = {NULL, 0};
    for (size_t i = 0; i < domain_count; i++) {
        size_t len = strlen(domains[i]);
        if (fgw_bytes_ieq_str(name, domains[i])) {
            return false;
        }
        if (name.len > len + 1 && name.ptr[name.len - len - 1] == '.' &&
            fgw_bytes_ieq_str(fgw_bytes_sub(name, name.len - len, len), domains[i]) &&
            (best.ptr == NULL || name.len - len - 1 < best.len)) {
            best = fgw_bytes_sub(name, 0, name.len - len - 1);
        }
    }
    if (best.ptr != NULL) {
        *out_bucket = best;
    }
    return best.ptr != NULL;
}

static struct fgw_bytes lower_copy(struct fgw_arena *arena, struct fgw_bytes text)
{
    uint8_t *copy = fgw_arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        copy[i] = c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
    }
    return fgw_bytes(copy, text.len);
}

static enum fgw_err take_key(struct fgw_s3_request *request, struct fgw_bytes raw_key)
{
    if (fgw_uri_decode(request->arena, raw_key, false, &request->key) != FGW_OK ||
        !fgw_utf8_valid(request->key)) {
        return bad_uri(request);
    }
    if (request->key.len > FGW_META_KEY_MAX) {
        (void)fgw_error_set(&request->error, FGW_ERR_KEY_TOO_LONG, NULL);
        fgw_error_add(&request->error, "MaxSizeAllowed", "%d", FGW_META_KEY_MAX);
        fgw_error_add(&request->error, "Size", "%zu", request->key.len);
        return FGW_ERR_KEY_TOO_LONG;
    }
    request->scope = request->key.len > 0 ? FGW_S3_OBJECT : FGW_S3_BUCKET;
    return FGW_OK;
}

static enum fgw_err take_path(struct fgw_s3_request *request)
{
    struct fgw_bytes path = request->http->raw_path;
    if (path.len == 0 || path.ptr[0] != '/') { /* "*" of OPTIONS */
        request->scope = FGW_S3_SERVICE;
        return FGW_OK;
    }
    path = fgw_bytes_sub(path, 1, SIZE_MAX);
    struct fgw_bytes host_bucket;
    if (fgw_s3_host_bucket(request->http->host, request->s3->domains, request->s3->domain_count,
                           &host_bucket)) {
        request->bucket_name = lower_copy(request->arena, host_bucket);
        return take_key(request, path);
    }
    size_t slash = fgw_bytes_find_byte(path, '/');
    struct fgw_bytes raw_bucket = fgw_bytes_sub(path, 0, slash);
    if (raw_bucket.len == 0) {
        request->scope = FGW_S3_SERVICE;
        return slash == SIZE_MAX ? FGW_OK : bad_uri(request);
    }
    if (fgw_uri_decode(request->arena, raw_bucket, false, &request->bucket_name) != FGW_OK ||
        !fgw_utf8_valid(request->bucket_name)) {
        return bad_uri(request);
    }
    return take_key(request, slash == SIZE_MAX ? FGW_LIT("")
                                               : fgw_bytes_sub(path, slash + 1, SIZE_MAX));
}

enum fgw_err fgw_s3_request_parse(struct fgw_s3_request *request)
{
    enum fgw_err err = take_path(request);
    if (err != FGW_OK) {
        return err;
    }
    err = fgw_s3_query_parse(request->arena, request->http->raw_query, &request->query);
    return err == FGW_OK ? FGW_OK : bad_uri(request);
}

struct fgw_bytes fgw_s3_param(const struct fgw_s3_request *request, const char *name)
{
    struct fgw_bytes wanted = fgw_bytes_str(name);
    for (size_t i = 0; i < request->query.count; i++) {
        if (fgw_bytes_eq(request->query.params[i].name, wanted)) {
            return request->query.params[i].value;
        }
    }
    return (struct fgw_bytes){NULL, 0};
}

bool fgw_s3_has_param(const struct fgw_s3_request *request, const char *name)
{
    return fgw_s3_param(request, name).ptr != NULL;
}

struct fgw_bytes fgw_s3_header(const struct fgw_s3_request *request, const char *name)
{
    return fgw_http_header_get(request->http, name);
}

enum fgw_err fgw_s3_bad_argument(struct fgw_s3_request *request, const char *name,
                                 struct fgw_bytes value, const char *message)
{
    (void)fgw_error_set(&request->error, FGW_ERR_INVALID_ARGUMENT, "%s", message);
    fgw_error_add(&request->error, "ArgumentName", "%s", name);
    fgw_error_add(&request->error, "ArgumentValue", "%.*s", FGW_FMT(fgw_bytes_sub(value, 0, 190)));
    return FGW_ERR_INVALID_ARGUMENT;
}

enum fgw_err fgw_s3_not_built(struct fgw_s3_request *request, const char *what)
{
    return fgw_error_set(&request->error, FGW_ERR_NOT_IMPLEMENTED, "%s is not implemented.", what);
}

enum fgw_err fgw_s3_param_number(struct fgw_s3_request *request, const char *name, unsigned max,
                                 unsigned fallback, unsigned *out_value)
{
    struct fgw_bytes text = fgw_s3_param(request, name);
    uint64_t value = fallback;
    bool digits = true;
    for (size_t i = 0; i < text.len; i++) {
        digits = digits && text.ptr[i] >= '0' && text.ptr[i] <= '9';
    }
    if (text.len > 0 && !digits) {
        return fgw_s3_bad_argument(request, name, text,
                                   "Provided argument is not an integer or within its range.");
    }
    if (text.len > 0 && fgw_bytes_to_u64(text, &value) != FGW_OK) {
        value = UINT64_MAX;
    }
    *out_value = value > max ? max : (unsigned)value;
    return FGW_OK;
}

enum fgw_err fgw_s3_param_version(struct fgw_s3_request *request, const char *name,
                                  struct fgw_version *out_version)
{
    struct fgw_bytes text = fgw_s3_param(request, name);
    struct fgw_version version = {.kind = FGW_VERSION_LATEST};
    if (text.ptr != NULL) {
        version.kind = fgw_bytes_eq_str(text, "null") ? FGW_VERSION_NULL : FGW_VERSION_ID;
        if (version.kind == FGW_VERSION_ID && fgw_id_parse(text, &version.id) != FGW_OK) {
            return fgw_s3_bad_argument(request, name, text, "Invalid version id specified");
        }
    }
    *out_version = version;
    return FGW_OK;
}

struct fgw_bytes fgw_s3_version_text(const struct fgw_s3_request *request,
                                     const struct fgw_id *version_id, bool is_null)
{
    if (request->bucket.versioning == FGW_VERSIONING_NEVER) {
        return (struct fgw_bytes){NULL, 0};
    }
    if (is_null) {
        return FGW_LIT("null");
    }
    char *text = fgw_arena_alloc(request->arena, 33);
    fgw_id_hex(version_id, text);
    return fgw_bytes(text, 32);
}

void fgw_s3_extra_header(struct fgw_s3_request *request, const char *static_name,
                         struct fgw_bytes value)
{
    if (value.ptr == NULL) {
        return;
    }
    FGW_CHECK(request->extra_header_count < FGW_S3_EXTRA_HEADERS_MAX);
    request->extra_headers[request->extra_header_count++] =
        (struct fgw_s3_extra_header){static_name, value};
}
