/* sign.c: see sign.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/encode.h"
#include "base/timefmt.h"
#include "sigv4/sign.h"
#include "sigv4/sigv4_internal.h"

/* Changed or dropped between client and server (RFC 9110 section 7.6.1, and SDK practice). */
static const char *const NEVER_SIGNED[] = {"accept-encoding", "authorization",     "connection",
                                           "expect",          "transfer-encoding", "user-agent",
                                           "x-amzn-trace-id"};

static bool never_signed(struct fgw_bytes name)
{
    for (size_t i = 0; i < sizeof NEVER_SIGNED / sizeof NEVER_SIGNED[0]; i++) {
        if (fgw_bytes_ieq_str(name, NEVER_SIGNED[i])) {
            return true;
        }
    }
    return false;
}

static int compare_names(const void *left, const void *right)
{
    return fgw_bytes_cmp(*(const struct fgw_bytes *)left, *(const struct fgw_bytes *)right);
}

static struct fgw_bytes lower_copy(struct fgw_arena *arena, struct fgw_bytes name)
{
    uint8_t *copy = fgw_arena_alloc(arena, name.len);
    for (size_t i = 0; i < name.len; i++) {
        copy[i] = fgw_sig_lower(name.ptr[i]);
    }
    return fgw_bytes(copy, name.len);
}

/* Sorted lower-case names of the headers to sign, and their list, into auth. */
static void choose_headers(struct fgw_sig_auth *auth)
{
    const struct fgw_sig_request *request = auth->request;
    struct fgw_bytes *names = fgw_arena_alloc(auth->arena, request->header_count * sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        auth->signed_names = names;
        auth->signed_count = count;
        if (!never_signed(request->headers[i].name) &&
            !fgw_sig_is_signed(auth, request->headers[i].name)) {
            names[count++] = lower_copy(auth->arena, request->headers[i].name);
        }
    }
    qsort(names, count, sizeof *names, compare_names);
    struct fgw_buf list;
    fgw_buf_init(&list, 0);
    for (size_t i = 0; i < count; i++) {
        (void)fgw_buf_append_str(&list, i == 0 ? "" : ";");
        (void)fgw_buf_append(&list, names[i]);
    }
    auth->signed_names = names;
    auth->signed_count = count;
    auth->signed_headers = fgw_arena_copy(auth->arena, fgw_buf_bytes(&list));
    fgw_buf_deinit(&list);
}

static enum fgw_err start(struct fgw_arena *arena, const struct fgw_sig_signer *signer,
                          struct fgw_sig_auth *auth)
{
    auth->arena = arena;
    auth->access_key = signer->access_key;
    auth->region = signer->region;
    auth->service = signer->service;
    auth->request_ms = signer->now_ms;
    fgw_time_basic(signer->now_ms, auth->amz_date);
    char *scope = fgw_arena_printf(arena, "%.8s/%.*s/%.*s/aws4_request", auth->amz_date,
                                   FGW_FMT(signer->region), FGW_FMT(signer->service));
    auth->scope = fgw_bytes_str(scope);
    auth->day = fgw_bytes_sub(auth->scope, 0, 8);
    return auth->scope.len <= FGW_SIG_SCOPE_MAX ? FGW_OK : FGW_ERR_TOO_LARGE;
}

/* Signs what auth describes; the seed's signature is the result. */
static void compute(const struct fgw_sig_signer *signer, const struct fgw_sig_auth *auth,
                    struct fgw_sig_seed *seed)
{
    char hash[FGW_SIG_HEX_SIZE];
    uint8_t signature[FGW_SHA256_SIZE];
    struct fgw_digest own = {0};
    struct fgw_sig_string string;
    const struct fgw_sig_key_scope scope = {auth->access_key, auth->day, auth->region,
                                            auth->service};
    fgw_sig_hash_canonical(signer->key_cache == NULL ? &own
                                                     : fgw_sig_key_cache_digest(signer->key_cache),
                           auth, FGW_SIG_FORM_CANONICAL, &auth->query, hash);
    fgw_digest_deinit(&own);
    string.len = 0;
    fgw_sig_string_line(&string, FGW_LIT("AWS4-HMAC-SHA256"));
    fgw_sig_string_line(&string, fgw_bytes(auth->amz_date, FGW_SIG_DATE_SIZE));
    fgw_sig_string_line(&string, auth->scope);
    fgw_sig_string_line(&string, fgw_bytes(hash, sizeof hash));
    fgw_sig_key_get(signer->key_cache, signer->secret, &scope, seed->signing_key);
    fgw_hmac_sha256(fgw_bytes(seed->signing_key, FGW_SIG_KEY_SIZE),
                    fgw_bytes(string.text, string.len), signature);
    fgw_hex_encode(fgw_bytes(signature, sizeof signature), seed->signature);
    memcpy(seed->amz_date, auth->amz_date, sizeof seed->amz_date);
    memcpy(seed->scope, auth->scope.ptr, auth->scope.len);
    seed->scope_len = auth->scope.len;
}

enum fgw_err fgw_sig_sign(struct fgw_arena *arena, const struct fgw_sig_signer *signer,
                          const struct fgw_sig_request *request, struct fgw_bytes payload,
                          struct fgw_sig_signed *out_signed)
{
    struct fgw_sig_auth auth = {.kind = FGW_SIG_HEADER, .payload_text = payload};
    enum fgw_err err = start(arena, signer, &auth);
    if (err == FGW_OK) {
        err = fgw_sig_query_pairs(arena, request->raw_query, FGW_SIG_FORM_CANONICAL, &auth.query);
    }
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_sig_header *headers =
        fgw_arena_alloc(arena, (request->header_count + 2) * sizeof *headers);
    struct fgw_sig_request whole = *request;
    struct fgw_bytes date = fgw_bytes_str(fgw_arena_strdup(arena, fgw_bytes_str(auth.amz_date)));
    if (request->header_count > 0) {
        memcpy(headers, request->headers, request->header_count * sizeof *headers);
    }
    headers[request->header_count] = (struct fgw_sig_header){FGW_LIT("x-amz-date"), date};
    headers[request->header_count + 1] =
        (struct fgw_sig_header){FGW_LIT("x-amz-content-sha256"), payload};
    whole.headers = headers;
    whole.header_count += 2;
    auth.request = &whole;
    choose_headers(&auth);
    struct fgw_sig_signed result = {.amz_date = date, .content_sha256 = payload};
    compute(signer, &auth, &result.seed);
    result.authorization = fgw_bytes_str(fgw_arena_printf(
        arena, "AWS4-HMAC-SHA256 Credential=%.*s/%.*s,SignedHeaders=%.*s,Signature=%.64s",
        FGW_FMT(signer->access_key), FGW_FMT(auth.scope), FGW_FMT(auth.signed_headers),
        result.seed.signature));
    *out_signed = result;
    return FGW_OK;
}

static void append_parameter(struct fgw_buf *query, const char *name, struct fgw_bytes value)
{
    if (query->len > 0) {
        (void)fgw_buf_append_byte(query, '&');
    }
    (void)fgw_buf_append_str(query, name);
    (void)fgw_buf_append_byte(query, '=');
    (void)fgw_uri_encode(query, value, false);
}

static struct fgw_bytes presign_query(struct fgw_arena *arena, const struct fgw_sig_auth *auth)
{
    struct fgw_buf query;
    const char *credential =
        fgw_arena_printf(arena, "%.*s/%.*s", FGW_FMT(auth->access_key), FGW_FMT(auth->scope));
    char expires[24];
    (void)snprintf(expires, sizeof expires, "%lld", (long long)auth->expires_s);
    fgw_buf_init(&query, 0);
    for (size_t i = 0; i < auth->query.count; i++) {
        (void)fgw_buf_append_str(&query, i == 0 ? "" : "&");
        (void)fgw_buf_append(&query, auth->query.pairs[i].name);
        (void)fgw_buf_append_byte(&query, '=');
        (void)fgw_buf_append(&query, auth->query.pairs[i].value);
    }
    append_parameter(&query, "X-Amz-Algorithm", FGW_LIT("AWS4-HMAC-SHA256"));
    append_parameter(&query, "X-Amz-Credential", fgw_bytes_str(credential));
    append_parameter(&query, "X-Amz-Date", fgw_bytes_str(auth->amz_date));
    append_parameter(&query, "X-Amz-Expires", fgw_bytes_str(expires));
    append_parameter(&query, "X-Amz-SignedHeaders", auth->signed_headers);
    struct fgw_bytes copy = fgw_arena_copy(arena, fgw_buf_bytes(&query));
    fgw_buf_deinit(&query);
    return copy;
}

enum fgw_err fgw_sig_presign(struct fgw_arena *arena, const struct fgw_sig_signer *signer,
                             const struct fgw_sig_request *request, int64_t expires_s,
                             struct fgw_bytes *out_query)
{
    struct fgw_sig_auth auth = {.kind = FGW_SIG_PRESIGNED,
                                .request = request,
                                .expires_s = expires_s,
                                .payload_text = FGW_LIT("UNSIGNED-PAYLOAD")};
    struct fgw_sig_seed seed;
    enum fgw_err err = start(arena, signer, &auth);
    if (err == FGW_OK) {
        err = fgw_sig_query_pairs(arena, request->raw_query, FGW_SIG_FORM_CANONICAL, &auth.query);
    }
    if (err != FGW_OK) {
        return err;
    }
    choose_headers(&auth);
    struct fgw_bytes query = presign_query(arena, &auth);
    err = fgw_sig_query_pairs(arena, query, FGW_SIG_FORM_CANONICAL, &auth.query);
    if (err != FGW_OK) {
        return err;
    }
    compute(signer, &auth, &seed);
    *out_query = fgw_bytes_str(
        fgw_arena_printf(arena, "%.*s&X-Amz-Signature=%.64s", FGW_FMT(query), seed.signature));
    explicit_bzero(&seed, sizeof seed);
    return FGW_OK;
}
