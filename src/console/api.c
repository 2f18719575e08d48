/* api.c: requests below /api/ of the ops listener (ops.h): who may, and where they go. */
#include <jansson.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/encode.h"
#include "console/ops.h"
#include "sigv4/auth.h"

enum { MAX_SKEW_MS = 15 * 60 * 1000 };

/* -- signatures ---------------------------------------------------------------------------------- */

static struct fgw_sig_request signed_view(struct fgw_http_exchange *exchange)
{
    const struct fgw_http_request *request = fgw_http_request(exchange);
    struct fgw_sig_header *headers =
        fgw_arena_alloc(fgw_http_arena(exchange), (request->header_count + 1) * sizeof *headers);
    for (size_t i = 0; i < request->header_count; i++) {
        headers[i] = (struct fgw_sig_header){request->headers[i].name, request->headers[i].value};
    }
    return (struct fgw_sig_request){.method = request->method_text,
                                    .raw_path = request->raw_path,
                                    .raw_query = request->raw_query,
                                    .headers = headers,
                                    .header_count = request->header_count};
}

/* The secret of a key whose holder may administer. */
static enum fgw_err find_secret(struct fgw_admin *admin, struct fgw_arena *arena,
                                struct fgw_bytes access_key, struct fgw_bytes *out_secret,
                                struct fgw_error *error)
{
    struct fgw_access_key key;
    struct fgw_user user;
    if (fgw_bytes_eq_str(access_key, admin->root_access_key)) {
        *out_secret = fgw_bytes_str(admin->root_secret_key);
        return FGW_OK;
    }
    enum fgw_err err =
        admin->meta->ops->key_get(admin->meta, arena, access_key, &key, &user, error);
    if (err != FGW_OK) {
        return err;
    }
    if (key.disabled) {
        return fgw_error_set(error, FGW_ERR_INVALID_ACCESS_KEY_ID, NULL);
    }
    if (user.policy != FGW_POLICY_ADMIN) {
        return fgw_error_set(error, FGW_ERR_ACCESS_DENIED,
                             "the admin API is for root and for users with policy admin");
    }
    *out_secret = key.secret_key;
    return FGW_OK;
}

static enum fgw_err check_signature(struct fgw_admin *admin, struct fgw_http_exchange *exchange,
                                    struct fgw_bytes body, struct fgw_error *error)
{
    struct fgw_arena *arena = fgw_http_arena(exchange);
    struct fgw_sig_request view = signed_view(exchange);
    struct fgw_sig_policy policy = {.region = fgw_bytes_str(admin->region),
                                    .service = "fgw",
                                    .now_ms = fgw_clock_wall_ms(),
                                    .skew_ms = MAX_SKEW_MS};
    struct fgw_sig_auth auth;
    struct fgw_bytes secret = {0};
    uint8_t digest[FGW_SHA256_SIZE];
    enum fgw_err err = fgw_sig_parse(arena, &view, &auth, error);
    if (err != FGW_OK) {
        return err;
    }
    if (auth.kind != FGW_SIG_HEADER || auth.payload != FGW_SIG_PAYLOAD_HASH) {
        return fgw_error_set(error, FGW_ERR_ACCESS_DENIED,
                             "the admin API needs a request signed with SigV4 (service fgw, "
                             "Authorization header) over the body's hash");
    }
    err = find_secret(admin, arena, auth.access_key, &secret, error);
    err = err == FGW_OK ? fgw_sig_verify(&auth, &policy, secret, NULL, error) : err;
    if (err != FGW_OK) {
        return err;
    }
    fgw_sha256(body, digest);
    return memcmp(digest, auth.payload_sha256, sizeof digest) == 0
               ? FGW_OK
               : fgw_error_set(error, FGW_ERR_CONTENT_SHA256_MISMATCH, NULL);
}

/* -- metrics as JSON ----------------------------------------------------------------------------- */

/* "name{labels} value" lines; comments and histogram buckets are left out. */
static json_t *samples_of(struct fgw_arena *arena, struct fgw_bytes text)
{
    json_t *samples = json_object();
    struct fgw_bytes line;
    while (fgw_bytes_split(&text, '\n', &line)) {
        size_t blank = line.len;
        while (blank > 0 && line.ptr[blank - 1] != ' ') {
            blank--;
        }
        bool sample = blank > 1 && line.ptr[0] != '#' &&
                      fgw_bytes_find(line, FGW_LIT("_bucket{"), 0) == SIZE_MAX;
        if (sample) {
            const char *name = fgw_arena_strdup(arena, fgw_bytes_sub(line, 0, blank - 1));
            const char *value = fgw_arena_strdup(arena, fgw_bytes_sub(line, blank, SIZE_MAX));
            (void)json_object_set_new(samples, name, json_real(strtod(value, NULL)));
        }
    }
    return samples;
}

static void answer_metrics(struct fgw_ops *ops, struct fgw_http_exchange *exchange)
{
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    fgw_metrics_render(ops->metrics, &body);
    json_t *samples = samples_of(fgw_http_arena(exchange), fgw_buf_bytes(&body));
    char *text = json_dumps(samples, JSON_COMPACT | JSON_REAL_PRECISION(15));
    (void)fgw_http_respond(exchange, 200, "application/json", fgw_bytes_str(text));
    fgw_xfree(text);
    json_decref(samples);
    fgw_buf_deinit(&body);
}

/* -- dispatch ------------------------------------------------------------------------------------ */

void fgw_ops_api(struct fgw_ops *ops, struct fgw_http_exchange *exchange)
{
    const struct fgw_http_request *request = fgw_http_request(exchange);
    struct fgw_admin *admin = atomic_load_explicit(&ops->admin, memory_order_acquire);
    struct fgw_bytes rest = fgw_bytes_sub(request->raw_path, sizeof "/api/" - 1, SIZE_MAX);
    bool get = request->method == FGW_HTTP_GET;
    if (get && fgw_bytes_eq_str(rest, "metrics")) {
        answer_metrics(ops, exchange);
        return;
    }
    if (admin == NULL) {
        (void)fgw_http_respond(exchange, 503, "application/json",
                               FGW_LIT("{\"error\":\"ServiceUnavailable\",\"message\":"
                                       "\"Starting; see /readyz.\"}"));
        return;
    }
    const char *path = fgw_arena_printf(fgw_http_arena(exchange), "/admin/%.*s", FGW_FMT(rest));
    bool open = get && fgw_bytes_eq_str(rest, "status");
    fgw_admin_serve(admin, exchange, fgw_bytes_str(path), open ? NULL : check_signature);
}
