/* parse_query.c: presigned URLs. Source: AWS "Authenticating Requests: Using Query Parameters";
 * spec/s3-wire.md 5.9 and 5.10. Whether the URL is still valid is verify's question. */
#include "sigv4/sigv4_internal.h"

/* Each of them alone makes a request presigned: half a signature must not pass as none. */
static const char *const MARKERS[] = {"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Signature",
                                      "X-Amz-SignedHeaders", "X-Amz-Expires"};

struct query_fields {
    struct fgw_bytes algorithm;
    struct fgw_bytes credential;
    struct fgw_bytes signature;
    struct fgw_bytes date;
    struct fgw_bytes signed_headers;
    struct fgw_bytes expires;
};

bool fgw_sig_query_is_presigned(const struct fgw_sig_auth *auth)
{
    struct fgw_bytes value;
    for (size_t i = 0; i < sizeof MARKERS / sizeof MARKERS[0]; i++) {
        if (fgw_sig_query_get(auth, MARKERS[i], &value)) {
            return true;
        }
    }
    return false;
}

/* Pairs are sorted: repeats are neighbours. */
static bool has_repeats(const struct fgw_sig_pairs *query)
{
    for (size_t i = 1; i < query->count; i++) {
        if (fgw_bytes_starts_with(query->pairs[i].name, FGW_LIT("X-Amz-")) &&
            fgw_bytes_eq(query->pairs[i].name, query->pairs[i - 1].name)) {
            return true;
        }
    }
    return false;
}

static enum fgw_err take_fields(const struct fgw_sig_auth *auth, struct query_fields *fields,
                                struct fgw_error *error)
{
    bool all = fgw_sig_query_get(auth, "X-Amz-Algorithm", &fields->algorithm) &&
               fgw_sig_query_get(auth, "X-Amz-Credential", &fields->credential) &&
               fgw_sig_query_get(auth, "X-Amz-Signature", &fields->signature) &&
               fgw_sig_query_get(auth, "X-Amz-Date", &fields->date) &&
               fgw_sig_query_get(auth, "X-Amz-SignedHeaders", &fields->signed_headers) &&
               fgw_sig_query_get(auth, "X-Amz-Expires", &fields->expires);
    if (!all || fields->algorithm.len == 0 || fields->credential.len == 0 ||
        fields->signature.len == 0 || fields->date.len == 0 || fields->signed_headers.len == 0 ||
        fields->expires.len == 0) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS,
                             "Query-string authentication version 4 requires the X-Amz-Algorithm, "
                             "X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, "
                             "and X-Amz-Expires parameters.");
    }
    if (has_repeats(&auth->query)) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS,
                             "A query-string authentication parameter is given more than once.");
    }
    if (fgw_bytes_eq_str(fields->algorithm, "AWS4-ECDSA-P256-SHA256")) {
        return fgw_error_set(error, FGW_ERR_NOT_IMPLEMENTED,
                             "Signature Version 4A (ECDSA) is not implemented.");
    }
    if (!fgw_bytes_eq_str(fields->algorithm, "AWS4-HMAC-SHA256")) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS,
                             "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"");
    }
    return FGW_OK;
}

static enum fgw_err parse_date(struct fgw_sig_auth *auth, struct fgw_bytes text,
                               struct fgw_error *error)
{
    if (fgw_sig_take_date(auth, text) != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS,
                             "X-Amz-Date must be in the ISO8601 Long Format "
                             "\"yyyyMMdd'T'HHmmss'Z'\"");
    }
    if (!fgw_bytes_eq(auth->day, fgw_bytes(auth->amz_date, 8))) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS,
                             "Invalid credential date \"%.*s\". This date is not the same as "
                             "X-Amz-Date: \"%.8s\".",
                             FGW_FMT(auth->day), auth->amz_date);
    }
    return FGW_OK;
}

/* An optional '-' and digits; more than 18 digits are far beyond the limit and stay there. */
static enum fgw_err parse_expires(struct fgw_sig_auth *auth, struct fgw_bytes text,
                                  struct fgw_error *error)
{
    bool negative = text.ptr[0] == '-';
    struct fgw_bytes digits = fgw_bytes_sub(text, negative, SIZE_MAX);
    int64_t value = 0;
    bool ok = digits.len > 0;
    for (size_t i = 0; ok && i < digits.len; i++) {
        ok = digits.ptr[i] >= '0' && digits.ptr[i] <= '9';
        value = value > INT64_MAX / 100 ? value : value * 10 + (digits.ptr[i] - '0');
    }
    if (!ok) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS,
                             "X-Amz-Expires should be a number");
    }
    auth->expires_s = negative ? -value : value;
    return FGW_OK;
}

/* UNSIGNED-PAYLOAD unless the signer named a payload: as a query parameter or a signed header. */
static enum fgw_err parse_payload(struct fgw_sig_auth *auth, struct fgw_error *error)
{
    struct fgw_bytes text = FGW_LIT("UNSIGNED-PAYLOAD");
    const struct fgw_sig_header *header =
        fgw_sig_header_find(auth->request, "x-amz-content-sha256");
    if (header != NULL && fgw_sig_is_signed(auth, header->name)) {
        text = fgw_bytes_trim(header->value);
    } else {
        (void)fgw_sig_query_get(auth, "X-Amz-Content-Sha256", &text);
    }
    return fgw_sig_parse_payload(auth, text, error);
}

enum fgw_err fgw_sig_parse_presigned(struct fgw_sig_auth *auth, struct fgw_error *error)
{
    struct query_fields fields = {0};
    enum fgw_err err = take_fields(auth, &fields, error);
    if (err == FGW_OK) {
        err = fgw_sig_parse_credential(auth, fields.credential, error);
    }
    if (err == FGW_OK && fgw_sig_split_names(auth->arena, fields.signed_headers,
                                             &auth->signed_names, &auth->signed_count) != FGW_OK) {
        err = fgw_error_set(error, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS,
                            "Error parsing the X-Amz-SignedHeaders parameter.");
    }
    if (err == FGW_OK) {
        err = parse_date(auth, fields.date, error);
    }
    if (err == FGW_OK) {
        err = parse_expires(auth, fields.expires, error);
    }
    if (err == FGW_OK) {
        auth->signed_headers = fields.signed_headers;
        auth->signature = fields.signature;
        (void)fgw_sig_query_get(auth, "X-Amz-Security-Token", &auth->session_token);
        err = parse_payload(auth, error);
    }
    return err;
}
