/* post_policy.c: see post_policy.h. */
#include "sigv4/post_policy.h"

#include "base/encode.h"
#include "base/timefmt.h"
#include "sigv4/sigv4_internal.h"

static enum fgw_err invalid_field(struct fgw_error *error, const char *name, const char *text)
{
    fgw_error_add(error, "ArgumentName", "%s", name);
    return fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT, "%s", text);
}

static enum fgw_err take_credential(const struct fgw_sig_post_form *form,
                                    struct fgw_sig_auth *out_auth, struct fgw_error *error)
{
    struct fgw_sig_auth auth = {.kind = FGW_SIG_PRESIGNED};
    if (fgw_sig_parse_credential(&auth, form->credential, NULL) != FGW_OK) {
        return invalid_field(error, "X-Amz-Credential", "Invalid credential");
    }
    *out_auth = auth;
    return FGW_OK;
}

static enum fgw_err check_place(const struct fgw_sig_auth *auth,
                                const struct fgw_sig_policy *policy, struct fgw_error *error)
{
    if (!fgw_bytes_eq_str(auth->service, policy->service)) {
        return invalid_field(error, "X-Amz-Credential", "Incorrect service in the credential");
    }
    if (!fgw_bytes_eq(auth->region, policy->region)) {
        fgw_error_add(error, "Region", "%.*s", FGW_FMT(policy->region));
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS,
                             "Error parsing the X-Amz-Credential parameter; the region '%.*s' is "
                             "wrong; expecting '%.*s'",
                             FGW_FMT(auth->region), FGW_FMT(policy->region));
    }
    return FGW_OK;
}

enum fgw_err fgw_sig_post_parse(const struct fgw_sig_post_form *form,
                                const struct fgw_sig_policy *policy,
                                struct fgw_bytes *out_access_key, struct fgw_error *error)
{
    struct fgw_sig_auth auth = {0};
    int64_t date_ms = 0;
    if (fgw_bytes_eq_str(form->algorithm, "AWS4-ECDSA-P256-SHA256")) {
        return fgw_error_set(error, FGW_ERR_NOT_IMPLEMENTED,
                             "Signature Version 4A (ECDSA) is not implemented.");
    }
    if (!fgw_bytes_eq_str(form->algorithm, "AWS4-HMAC-SHA256")) {
        return invalid_field(error, "X-Amz-Algorithm",
                             "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"");
    }
    enum fgw_err err = take_credential(form, &auth, error);
    if (err != FGW_OK) {
        return err;
    }
    if (fgw_time_parse_basic(form->date, &date_ms) != FGW_OK ||
        !fgw_bytes_eq(auth.day, fgw_bytes_sub(form->date, 0, 8))) {
        return invalid_field(error, "X-Amz-Date",
                             "X-Amz-Date must be formatted via ISO8601 Long format and be of the "
                             "credential's day");
    }
    err = check_place(&auth, policy, error);
    if (err == FGW_OK) {
        *out_access_key = auth.access_key;
    }
    return err;
}

enum fgw_err fgw_sig_verify_post_policy(const struct fgw_sig_post_form *form,
                                        const struct fgw_sig_policy *policy,
                                        struct fgw_bytes secret, struct fgw_error *error)
{
    struct fgw_sig_auth auth = {0};
    uint8_t key[FGW_SIG_KEY_SIZE];
    uint8_t expected[FGW_SHA256_SIZE];
    uint8_t provided[FGW_SHA256_SIZE];
    enum fgw_err err = take_credential(form, &auth, error);
    if (err == FGW_OK) {
        err = check_place(&auth, policy, error);
    }
    if (err != FGW_OK) {
        return err;
    }
    const struct fgw_sig_key_scope scope = {auth.access_key, auth.day, auth.region, auth.service};
    fgw_sig_key_get(policy->key_cache, secret, &scope, key);
    fgw_hmac_sha256(fgw_bytes(key, sizeof key), form->policy, expected);
    explicit_bzero(key, sizeof key);
    if (form->signature.len != FGW_SIG_HEX_SIZE ||
        fgw_hex_decode(form->signature, provided) != FGW_OK ||
        !fgw_bytes_eq_secret(fgw_bytes(expected, sizeof expected),
                             fgw_bytes(provided, sizeof provided))) {
        return fgw_error_set(error, FGW_ERR_SIGNATURE_DOES_NOT_MATCH, NULL);
    }
    return FGW_OK;
}

/* RFC 2104 over SHA-1; only this legacy form needs it. */
static void hmac_sha1(struct fgw_bytes key, struct fgw_bytes bytes, uint8_t out[FGW_SHA1_SIZE])
{
    enum { BLOCK = 64 };
    uint8_t pad[BLOCK] = {0};
    uint8_t inner[FGW_SHA1_SIZE];
    struct fgw_digest digest = {0};
    if (key.len > BLOCK) {
        fgw_digest_once(FGW_DIGEST_SHA1, key, pad);
    } else if (key.len > 0) {
        memcpy(pad, key.ptr, key.len);
    }
    for (size_t i = 0; i < BLOCK; i++) {
        pad[i] ^= 0x36;
    }
    fgw_digest_begin(&digest, FGW_DIGEST_SHA1);
    fgw_digest_update(&digest, fgw_bytes(pad, BLOCK));
    fgw_digest_update(&digest, bytes);
    fgw_digest_end(&digest, inner);
    for (size_t i = 0; i < BLOCK; i++) {
        pad[i] ^= 0x36 ^ 0x5c;
    }
    fgw_digest_begin(&digest, FGW_DIGEST_SHA1);
    fgw_digest_update(&digest, fgw_bytes(pad, BLOCK));
    fgw_digest_update(&digest, fgw_bytes(inner, sizeof inner));
    fgw_digest_end(&digest, out);
    fgw_digest_deinit(&digest);
    explicit_bzero(pad, sizeof pad);
}

enum fgw_err fgw_sig_verify_post_policy_v2(struct fgw_bytes policy, struct fgw_bytes signature,
                                           struct fgw_bytes secret, struct fgw_error *error)
{
    uint8_t mac[FGW_SHA1_SIZE];
    char text[FGW_BASE64_SIZE(FGW_SHA1_SIZE)];
    hmac_sha1(secret, policy, mac);
    fgw_base64_encode(fgw_bytes(mac, sizeof mac), text);
    if (!fgw_bytes_eq_secret(fgw_bytes_str(text), signature)) {
        return fgw_error_set(error, FGW_ERR_SIGNATURE_DOES_NOT_MATCH, NULL);
    }
    return FGW_OK;
}
