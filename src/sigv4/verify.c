/* verify.c: decides whether a parsed signature holds: scope, time, coverage, then the HMAC.
 * See auth.h. The comparison of signatures takes the same time wherever they differ. */
#include "base/check.h"
#include "base/encode.h"
#include "base/timefmt.h"
#include "sigv4/sigv4_internal.h"

enum { WEEK_S = 7 * 24 * 3600 };

/* Seconds precision, as AWS shows its server time: 2013-05-24T00:00:00Z. */
static void format_time(int64_t wall_ms, char out[FGW_TIME_ISO8601_SIZE])
{
    fgw_time_iso8601(wall_ms, out);
    out[19] = 'Z';
    out[20] = '\0';
}

/* -- scope --------------------------------------------------------------------------------- */

static enum fgw_err check_scope(const struct fgw_sig_auth *auth,
                                const struct fgw_sig_policy *policy, struct fgw_error *error)
{
    enum fgw_err code = fgw_sig_credential_code(auth);
    const char *prefix = fgw_sig_credential_prefix(auth);
    if (!fgw_bytes_eq_str(auth->service, policy->service)) {
        return fgw_error_set(error, code,
                             "%sincorrect service \"%.*s\". This endpoint belongs to \"%s\".",
                             prefix, FGW_FMT(auth->service), policy->service);
    }
    if (!fgw_bytes_eq(auth->region, policy->region)) {
        fgw_error_add(error, "Region", "%.*s", FGW_FMT(policy->region));
        return fgw_error_set(error, code, "%sthe region '%.*s' is wrong; expecting '%.*s'", prefix,
                             FGW_FMT(auth->region), FGW_FMT(policy->region));
    }
    return FGW_OK;
}

/* -- time ---------------------------------------------------------------------------------- */

static enum fgw_err check_skew(const struct fgw_sig_auth *auth, const struct fgw_sig_policy *policy,
                               struct fgw_error *error)
{
    int64_t apart = policy->now_ms - auth->request_ms;
    uint64_t distance = apart < 0 ? (uint64_t)-apart : (uint64_t)apart;
    if (distance <= policy->skew_ms) {
        return FGW_OK;
    }
    char server_time[FGW_TIME_ISO8601_SIZE];
    format_time(policy->now_ms, server_time);
    fgw_error_add(error, "RequestTime", "%s", auth->amz_date);
    fgw_error_add(error, "ServerTime", "%s", server_time);
    fgw_error_add(error, "MaxAllowedSkewMilliseconds", "%llu", (unsigned long long)policy->skew_ms);
    return fgw_error_set(error, FGW_ERR_REQUEST_TIME_TOO_SKEWED, NULL);
}

static enum fgw_err check_expiry_range(const struct fgw_sig_auth *auth,
                                       const struct fgw_sig_policy *policy, struct fgw_error *error)
{
    enum fgw_err code =
        policy->strict_aws ? FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS : FGW_ERR_ACCESS_DENIED;
    if (auth->expires_s < 0) {
        return fgw_error_set(error, code, "X-Amz-Expires must be non-negative");
    }
    if (auth->expires_s > WEEK_S) {
        return fgw_error_set(error, code,
                             "X-Amz-Expires must be less than a week (in seconds); that is, the "
                             "given X-Amz-Expires must be less than 604800 seconds");
    }
    return FGW_OK;
}

/* The lifetime counts from X-Amz-Date; the skew only bounds a date in the future. */
static enum fgw_err check_expiry(const struct fgw_sig_auth *auth,
                                 const struct fgw_sig_policy *policy, struct fgw_error *error)
{
    enum fgw_err err = check_expiry_range(auth, policy, error);
    if (err != FGW_OK) {
        return err;
    }
    if (auth->request_ms > policy->now_ms &&
        (uint64_t)(auth->request_ms - policy->now_ms) > policy->skew_ms) {
        return fgw_error_set(error, FGW_ERR_ACCESS_DENIED, "Request is not valid yet");
    }
    int64_t end_ms = auth->request_ms + auth->expires_s * 1000;
    if (auth->expires_s > 0 && policy->now_ms < end_ms) {
        return FGW_OK;
    }
    char text[FGW_TIME_ISO8601_SIZE];
    fgw_error_add(error, "X-Amz-Expires", "%lld", (long long)auth->expires_s);
    format_time(end_ms, text);
    fgw_error_add(error, "Expires", "%s", text);
    format_time(policy->now_ms, text);
    fgw_error_add(error, "ServerTime", "%s", text);
    return fgw_error_set(error, FGW_ERR_REQUEST_EXPIRED, NULL);
}

/* -- coverage ------------------------------------------------------------------------------ */

/* CloudFront adds x-amz-cf-id behind the signer's back; it means nothing to us. */
static bool must_be_signed(struct fgw_bytes name)
{
    static const char PREFIX[] = "x-amz-";
    if (name.len < sizeof PREFIX - 1 ||
        !fgw_sig_name_eq(fgw_bytes_sub(name, 0, sizeof PREFIX - 1), FGW_LIT("x-amz-"))) {
        return fgw_sig_name_eq(name, FGW_LIT("host"));
    }
    return !fgw_sig_name_eq(name, FGW_LIT("x-amz-cf-id"));
}

static void append_name(char *list, size_t size, struct fgw_bytes name)
{
    size_t len = strlen(list);
    if (len + name.len + 3 > size) {
        return;
    }
    if (len > 0) {
        list[len++] = ',';
        list[len++] = ' ';
    }
    for (size_t i = 0; i < name.len; i++) {
        list[len++] = (char)fgw_sig_lower(name.ptr[i]);
    }
    list[len] = '\0';
}

static enum fgw_err check_coverage(const struct fgw_sig_auth *auth, struct fgw_error *error)
{
    char unsigned_names[160] = "";
    bool covered = fgw_sig_is_signed(auth, FGW_LIT("host"));
    if (!covered) {
        append_name(unsigned_names, sizeof unsigned_names, FGW_LIT("host"));
    }
    for (size_t i = 0; i < auth->request->header_count; i++) {
        struct fgw_bytes name = auth->request->headers[i].name;
        if (!fgw_sig_name_eq(name, FGW_LIT("host")) && must_be_signed(name) &&
            !fgw_sig_is_signed(auth, name)) {
            covered = false;
            append_name(unsigned_names, sizeof unsigned_names, name);
        }
    }
    if (covered) {
        return FGW_OK;
    }
    fgw_error_add(error, "HeadersNotSigned", "%s", unsigned_names);
    return fgw_error_set(error, FGW_ERR_ACCESS_DENIED,
                         "There were headers present in the request which were not signed");
}

/* -- signature ----------------------------------------------------------------------------- */

struct attempt {
    const struct fgw_sig_auth *auth;
    struct fgw_digest *digest;
    uint8_t key[FGW_SIG_KEY_SIZE];
    uint8_t provided[FGW_SHA256_SIZE];
    struct fgw_sig_string string; /* of the latest try */
};

static bool try_form(struct attempt *attempt, enum fgw_sig_form path_form,
                     const struct fgw_sig_pairs *pairs)
{
    const struct fgw_sig_auth *auth = attempt->auth;
    char hash[FGW_SIG_HEX_SIZE];
    uint8_t expected[FGW_SHA256_SIZE];
    fgw_sig_hash_canonical(attempt->digest, auth, path_form, pairs, hash);
    attempt->string.len = 0;
    fgw_sig_string_line(&attempt->string, FGW_LIT("AWS4-HMAC-SHA256"));
    fgw_sig_string_line(&attempt->string, fgw_bytes(auth->amz_date, FGW_SIG_DATE_SIZE));
    fgw_sig_string_line(&attempt->string, auth->scope);
    fgw_sig_string_line(&attempt->string, fgw_bytes(hash, sizeof hash));
    fgw_hmac_sha256(fgw_bytes(attempt->key, sizeof attempt->key),
                    fgw_bytes(attempt->string.text, attempt->string.len), expected);
    return fgw_bytes_eq_secret(fgw_bytes(expected, sizeof expected),
                               fgw_bytes(attempt->provided, sizeof attempt->provided));
}

/* Path, query or both as sent (auth.h). A form that equals the canonical one costs a hash, and only
 * requests that fail pay it. */
static bool try_raw_forms(struct attempt *attempt)
{
    const struct fgw_sig_auth *auth = attempt->auth;
    struct fgw_sig_pairs raw;
    if (try_form(attempt, FGW_SIG_FORM_RAW, &auth->query)) {
        return true;
    }
    return auth->query.count > 0 &&
           fgw_sig_query_pairs(auth->arena, auth->request->raw_query, FGW_SIG_FORM_RAW, &raw) ==
               FGW_OK &&
           (try_form(attempt, FGW_SIG_FORM_RAW, &raw) ||
            try_form(attempt, FGW_SIG_FORM_CANONICAL, &raw));
}

static enum fgw_err refuse_signature(const struct attempt *attempt,
                                     const struct fgw_sig_string *string, struct fgw_error *error)
{
    fgw_error_add(error, "AWSAccessKeyId", "%.*s", FGW_FMT(attempt->auth->access_key));
    fgw_error_add(error, "StringToSign", "%.*s", (int)string->len, string->text);
    fgw_error_add(error, "SignatureProvided", "%.*s", FGW_FMT(attempt->auth->signature));
    return fgw_error_set(error, FGW_ERR_SIGNATURE_DOES_NOT_MATCH, NULL);
}

static enum fgw_err check_signature(struct attempt *attempt, struct fgw_error *error)
{
    const struct fgw_sig_auth *auth = attempt->auth;
    bool hex = auth->signature.len == FGW_SIG_HEX_SIZE &&
               fgw_hex_decode(auth->signature, attempt->provided) == FGW_OK;
    if (try_form(attempt, FGW_SIG_FORM_CANONICAL, &auth->query) && hex) {
        return FGW_OK;
    }
    struct fgw_sig_string primary = attempt->string;
    if (hex && try_raw_forms(attempt)) {
        return FGW_OK;
    }
    return refuse_signature(attempt, &primary, error);
}

static void fill_seed(const struct attempt *attempt, struct fgw_sig_seed *seed)
{
    const struct fgw_sig_auth *auth = attempt->auth;
    memcpy(seed->signing_key, attempt->key, sizeof seed->signing_key);
    fgw_hex_encode(fgw_bytes(attempt->provided, sizeof attempt->provided), seed->signature);
    memcpy(seed->amz_date, auth->amz_date, sizeof seed->amz_date);
    memcpy(seed->scope, auth->scope.ptr, auth->scope.len);
    seed->scope_len = auth->scope.len;
}

enum fgw_err fgw_sig_verify(const struct fgw_sig_auth *auth, const struct fgw_sig_policy *policy,
                            struct fgw_bytes secret, struct fgw_sig_seed *out_seed,
                            struct fgw_error *error)
{
    FGW_CHECK(auth->kind != FGW_SIG_ANONYMOUS);
    enum fgw_err err = check_scope(auth, policy, error);
    if (err == FGW_OK) {
        err = auth->kind == FGW_SIG_HEADER ? check_skew(auth, policy, error)
                                           : check_expiry(auth, policy, error);
    }
    if (err == FGW_OK) {
        err = check_coverage(auth, error);
    }
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_digest own = {0};
    struct attempt attempt;
    const struct fgw_sig_key_scope scope = {auth->access_key, auth->day, auth->region,
                                            auth->service};
    memset(attempt.provided, 0, sizeof attempt.provided);
    attempt.auth = auth;
    attempt.string.len = 0;
    attempt.digest = policy->key_cache == NULL ? &own : fgw_sig_key_cache_digest(policy->key_cache);
    fgw_sig_key_get(policy->key_cache, secret, &scope, attempt.key);
    err = check_signature(&attempt, error);
    if (err == FGW_OK && out_seed != NULL) {
        fill_seed(&attempt, out_seed);
    }
    explicit_bzero(attempt.key, sizeof attempt.key);
    fgw_digest_deinit(&own);
    return err;
}
