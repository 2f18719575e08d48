/* auth.c: see auth.h. */
#include "s3/auth.h"

#include "base/check.h"
#include "base/clock.h"
#include "event/workers.h"
#include "s3/engine_internal.h"

enum { MAX_SKEW_MS = 15 * 60 * 1000 };

static const struct fgw_sig_request *signed_view(struct fgw_s3_request *request)
{
    const struct fgw_http_request *http = request->http;
    struct fgw_sig_header *headers =
        fgw_arena_alloc(request->arena, (http->header_count + 1) * sizeof *headers);
    for (size_t i = 0; i < http->header_count; i++) {
        headers[i] = (struct fgw_sig_header){http->headers[i].name, http->headers[i].value};
    }
    struct fgw_sig_request *view = fgw_arena_alloc(request->arena, sizeof *view);
    *view = (struct fgw_sig_request){.method = http->method_text,
                                     .raw_path = http->raw_path,
                                     .raw_query = http->raw_query,
                                     .headers = headers,
                                     .header_count = http->header_count};
    return view;
}

static void become_root(struct fgw_s3_request *request)
{
    struct fgw_s3 *s3 = request->s3;
    request->identity = (struct fgw_s3_identity){.canonical_id = fgw_bytes_str(s3->root_id),
                                                 .display_name = FGW_LIT("root"),
                                                 .access_key = s3->root_access_key,
                                                 .policy = FGW_POLICY_ADMIN,
                                                 .root = true};
}

enum fgw_err fgw_s3_identify(struct fgw_s3_request *request, struct fgw_bytes access_key,
                             struct fgw_bytes *out_secret)
{
    struct fgw_s3 *s3 = request->s3;
    if (fgw_bytes_eq(access_key, s3->root_access_key)) {
        become_root(request);
        *out_secret = s3->root_secret_key;
        return FGW_OK;
    }
    struct fgw_access_key key;
    struct fgw_user user;
    enum fgw_err err =
        s3->meta->ops->key_get(s3->meta, request->arena, access_key, &key, &user, &request->error);
    if (err == FGW_OK && key.disabled) {
        err = fgw_error_set(&request->error, FGW_ERR_INVALID_ACCESS_KEY_ID, NULL);
    }
    if (err != FGW_OK) {
        if (err == FGW_ERR_INVALID_ACCESS_KEY_ID) {
            fgw_error_add(&request->error, "AWSAccessKeyId", "%.*s",
                          FGW_FMT(fgw_bytes_sub(access_key, 0, 190)));
        }
        return err;
    }
    request->identity = (struct fgw_s3_identity){.canonical_id = user.canonical_id,
                                                 .display_name = user.display_name,
                                                 .access_key = key.access_key,
                                                 .policy = user.policy};
    *out_secret = key.secret_key;
    return FGW_OK;
}

static bool chunks_are_signed(enum fgw_sig_payload payload)
{
    return payload == FGW_SIG_PAYLOAD_STREAMING_SIGNED ||
           payload == FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER;
}

struct fgw_sig_policy fgw_s3_sig_policy(const struct fgw_s3_request *request)
{
    struct fgw_s3 *s3 = request->s3;
    unsigned worker = fgw_worker_index();
    return (struct fgw_sig_policy){
        .region = fgw_bytes_str(s3->region),
        .service = "s3",
        .now_ms = fgw_clock_wall_ms(),
        .skew_ms = MAX_SKEW_MS,
        .strict_aws = s3->strict_aws,
        .key_cache = worker < s3->workers ? s3->key_caches[worker] : NULL,
    };
}

static enum fgw_err verify(struct fgw_s3_request *request, struct fgw_bytes secret)
{
    struct fgw_sig_policy policy = fgw_s3_sig_policy(request);
    if (chunks_are_signed(request->auth.payload)) {
        request->seed = fgw_arena_alloc(request->arena, sizeof *request->seed);
    }
    return fgw_sig_verify(&request->auth, &policy, secret, request->seed, &request->error);
}

enum fgw_err fgw_s3_authenticate(struct fgw_s3_request *request)
{
    enum fgw_err err =
        fgw_sig_parse(request->arena, signed_view(request), &request->auth, &request->error);
    if (err != FGW_OK) {
        return err;
    }
    if (request->auth.kind == FGW_SIG_ANONYMOUS) {
        if (chunks_are_signed(request->auth.payload)) {
            return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                                 "A body of signed chunks needs a signed request.");
        }
        return FGW_OK;
    }
    struct fgw_bytes secret;
    err = fgw_s3_identify(request, request->auth.access_key, &secret);
    if (err == FGW_OK) {
        err = verify(request, secret);
    }
    if (err == FGW_OK && request->auth.session_token.len > 0) {
        err = fgw_error_set(&request->error, FGW_ERR_INVALID_TOKEN, NULL);
    }
    if (err != FGW_OK) {
        request->identity = (struct fgw_s3_identity){0};
    }
    return err;
}
