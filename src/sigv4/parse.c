/* parse.c: takes a request's authentication apart: which kind, credential, date, payload mode.
 *
 * Codes and texts as AWS answers them (spec/s3-wire.md 5.3-5.8). Everything here comes from the
 * network: nothing is asserted, every view is bounded by the request.
 */
#include <stdio.h>

#include "base/encode.h"
#include "base/timefmt.h"
#include "sigv4/sigv4_internal.h"

#define MALFORMED "The authorization header is malformed; "

enum { SHOWN_MAX = 64 };

/* For messages: at most SHOWN_MAX bytes of what the client sent. */
static struct fgw_bytes shown(struct fgw_bytes text)
{
    return fgw_bytes_sub(text, 0, SHOWN_MAX);
}

enum fgw_err fgw_sig_credential_code(const struct fgw_sig_auth *auth)
{
    return auth->kind == FGW_SIG_PRESIGNED ? FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS
                                           : FGW_ERR_AUTHORIZATION_HEADER_MALFORMED;
}

const char *fgw_sig_credential_prefix(const struct fgw_sig_auth *auth)
{
    return auth->kind == FGW_SIG_PRESIGNED ? "Error parsing the X-Amz-Credential parameter; "
                                           : MALFORMED;
}

bool fgw_sig_is_signed(const struct fgw_sig_auth *auth, struct fgw_bytes name)
{
    for (size_t i = 0; i < auth->signed_count; i++) {
        if (fgw_sig_name_eq(auth->signed_names[i], name)) {
            return true;
        }
    }
    return false;
}

/* -- credential ---------------------------------------------------------------------------- */

/* Takes "/last" off the end of *rest. */
static bool take_last(struct fgw_bytes *rest, struct fgw_bytes *out_part)
{
    for (size_t i = rest->len; i > 0; i--) {
        if (rest->ptr[i - 1] == '/') {
            *out_part = fgw_bytes_sub(*rest, i, SIZE_MAX);
            rest->len = i - 1;
            return true;
        }
    }
    return false;
}

static bool is_day(struct fgw_bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
    }
    return text.len == 8;
}

enum fgw_err fgw_sig_parse_credential(struct fgw_sig_auth *auth, struct fgw_bytes credential,
                                      struct fgw_error *error)
{
    enum fgw_err code = fgw_sig_credential_code(auth);
    const char *prefix = fgw_sig_credential_prefix(auth);
    struct fgw_bytes rest = credential;
    struct fgw_bytes terminal = {0};
    /* from the right: access keys may hold slashes */
    bool ok = take_last(&rest, &terminal) && take_last(&rest, &auth->service) &&
              take_last(&rest, &auth->region) && take_last(&rest, &auth->day);
    if (!ok || rest.len == 0) {
        return fgw_error_set(error, code,
                             "%sthe Credential is mal-formed; expecting "
                             "\"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".",
                             prefix);
    }
    if (!is_day(auth->day)) {
        return fgw_error_set(error, code,
                             "%sincorrect date format \"%.*s\". This date in the credential must "
                             "be in the format \"yyyyMMdd\".",
                             prefix, FGW_FMT(shown(auth->day)));
    }
    if (!fgw_bytes_eq_str(terminal, "aws4_request")) {
        return fgw_error_set(error, code,
                             "%sincorrect terminal \"%.*s\". This endpoint uses \"aws4_request\".",
                             prefix, FGW_FMT(shown(terminal)));
    }
    auth->access_key = rest;
    auth->scope = fgw_bytes_sub(credential, rest.len + 1, SIZE_MAX);
    if (auth->scope.len > FGW_SIG_SCOPE_MAX) {
        return fgw_error_set(error, code, "%sthe Credential is too long.", prefix);
    }
    return FGW_OK;
}

/* -- payload mode -------------------------------------------------------------------------- */

static const struct {
    const char *text;
    enum fgw_sig_payload payload;
} PAYLOAD_MODES[] = {
    {"UNSIGNED-PAYLOAD", FGW_SIG_PAYLOAD_UNSIGNED},
    {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", FGW_SIG_PAYLOAD_STREAMING_SIGNED},
    {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER},
    {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER},
};

enum fgw_err fgw_sig_parse_payload(struct fgw_sig_auth *auth, struct fgw_bytes text,
                                   struct fgw_error *error)
{
    auth->payload_text = text;
    for (size_t i = 0; i < sizeof PAYLOAD_MODES / sizeof PAYLOAD_MODES[0]; i++) {
        if (fgw_bytes_eq_str(text, PAYLOAD_MODES[i].text)) {
            auth->payload = PAYLOAD_MODES[i].payload;
            return FGW_OK;
        }
    }
    if (text.len == FGW_SIG_HEX_SIZE && fgw_hex_decode(text, auth->payload_sha256) == FGW_OK) {
        auth->payload = FGW_SIG_PAYLOAD_HASH;
        return FGW_OK;
    }
    if (fgw_bytes_starts_with(text, FGW_LIT("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"))) {
        return fgw_error_set(error, FGW_ERR_NOT_IMPLEMENTED,
                             "Signature Version 4A (ECDSA) is not implemented.");
    }
    fgw_error_add(error, "ArgumentName", "x-amz-content-sha256");
    fgw_error_add(error, "ArgumentValue", "%.*s", FGW_FMT(shown(text)));
    return fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT,
                         "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, "
                         "STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, "
                         "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a valid sha256 value.");
}

/* -- Authorization header ------------------------------------------------------------------ */

struct header_fields {
    struct fgw_bytes credential;
    struct fgw_bytes signed_headers;
    struct fgw_bytes signature;
};

static struct fgw_bytes *field_of(struct header_fields *fields, struct fgw_bytes name)
{
    if (fgw_bytes_eq_str(name, "Credential")) {
        return &fields->credential;
    }
    if (fgw_bytes_eq_str(name, "SignedHeaders")) {
        return &fields->signed_headers;
    }
    return fgw_bytes_eq_str(name, "Signature") ? &fields->signature : NULL;
}

/* "Credential=..., SignedHeaders=..., Signature=...": any order, any blanks around the commas. */
static enum fgw_err split_fields(struct fgw_bytes text, struct header_fields *fields,
                                 struct fgw_error *error)
{
    struct fgw_bytes part;
    while (fgw_bytes_split(&text, ',', &part)) {
        struct fgw_bytes value = fgw_bytes_trim(part);
        struct fgw_bytes name = {0};
        if (value.len == 0) {
            continue;
        }
        (void)fgw_bytes_split(&value, '=', &name);
        struct fgw_bytes *field = field_of(fields, fgw_bytes_trim(name));
        if (field == NULL || value.ptr == NULL || field->ptr != NULL) {
            return fgw_error_set(error, FGW_ERR_AUTHORIZATION_HEADER_MALFORMED,
                                 MALFORMED "the authorization component \"%.*s\" is malformed.",
                                 FGW_FMT(shown(name)));
        }
        *field = fgw_bytes_trim(value);
    }
    if (fields->credential.ptr == NULL && fields->signed_headers.ptr == NULL &&
        fields->signature.ptr == NULL) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_HEADER_MALFORMED,
                             MALFORMED "the authorization header requires three components: "
                                       "Credential, SignedHeaders, and Signature.");
    }
    const char *missing = fields->credential.len == 0       ? "Credential"
                          : fields->signed_headers.len == 0 ? "SignedHeaders"
                          : fields->signature.len == 0      ? "Signature"
                                                            : NULL;
    if (missing != NULL) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_HEADER_MALFORMED, MALFORMED "missing %s.",
                             missing);
    }
    return FGW_OK;
}

/* The only occurrence of a header, trimmed: FGW_ERR_NOT_FOUND, or FGW_ERR_PARSE when repeated. */
static enum fgw_err single_header(const struct fgw_sig_request *request, const char *name,
                                  struct fgw_bytes *out_value)
{
    const struct fgw_sig_header *first = fgw_sig_header_find(request, name);
    if (first == NULL) {
        return FGW_ERR_NOT_FOUND;
    }
    for (const struct fgw_sig_header *h = first + 1; h < request->headers + request->header_count;
         h++) {
        if (fgw_bytes_ieq_str(h->name, name)) {
            return FGW_ERR_PARSE;
        }
    }
    *out_value = fgw_bytes_trim(first->value);
    return FGW_OK;
}

enum fgw_err fgw_sig_take_date(struct fgw_sig_auth *auth, struct fgw_bytes text)
{
    enum fgw_err err = fgw_time_parse_basic(text, &auth->request_ms);
    if (err == FGW_OK) {
        memcpy(auth->amz_date, text.ptr, FGW_SIG_DATE_SIZE);
        auth->amz_date[FGW_SIG_DATE_SIZE] = '\0';
    }
    return err;
}

/* The Date header: an HTTP date, or ISO 8601 basic as some clients put there. botocore writes the
 * zone of RFC 5322, "-0000", for "GMT". */
static enum fgw_err take_http_date(struct fgw_sig_auth *auth, struct fgw_bytes text)
{
    char gmt[FGW_TIME_HTTP_SIZE];
    enum { BEFORE_ZONE = FGW_TIME_HTTP_SIZE - 4 };
    if (fgw_sig_take_date(auth, text) == FGW_OK) {
        return FGW_OK;
    }
    struct fgw_bytes zone = fgw_bytes_sub(text, BEFORE_ZONE, SIZE_MAX);
    if (fgw_bytes_eq_str(zone, "-0000") || fgw_bytes_eq_str(zone, "+0000")) {
        (void)snprintf(gmt, sizeof gmt, "%.*sGMT", BEFORE_ZONE, (const char *)text.ptr);
        text = fgw_bytes_str(gmt);
    }
    enum fgw_err err = fgw_time_parse_http(text, &auth->request_ms);
    if (err == FGW_OK) {
        fgw_time_basic(auth->request_ms, auth->amz_date);
    }
    return err;
}

/* x-amz-date, else Date. */
static enum fgw_err parse_header_date(struct fgw_sig_auth *auth, struct fgw_error *error)
{
    struct fgw_bytes text = {0};
    enum fgw_err err = single_header(auth->request, "x-amz-date", &text);
    if (err == FGW_OK) {
        err = fgw_sig_take_date(auth, text);
    } else if (err == FGW_ERR_NOT_FOUND) {
        err = single_header(auth->request, "date", &text);
        if (err == FGW_OK) {
            err = take_http_date(auth, text);
        }
    }
    if (err != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_ACCESS_DENIED,
                             "AWS authentication requires a valid Date or x-amz-date header");
    }
    if (!fgw_bytes_eq(auth->day, fgw_bytes(auth->amz_date, 8))) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_HEADER_MALFORMED,
                             MALFORMED "Invalid credential date \"%.*s\". This date is not the "
                                       "same as X-Amz-Date: \"%.8s\".",
                             FGW_FMT(auth->day), auth->amz_date);
    }
    return FGW_OK;
}

static enum fgw_err parse_header_payload(struct fgw_sig_auth *auth, struct fgw_error *error)
{
    struct fgw_bytes text = {0};
    enum fgw_err err = single_header(auth->request, "x-amz-content-sha256", &text);
    if (err == FGW_ERR_NOT_FOUND) {
        return fgw_error_set(error, FGW_ERR_INVALID_REQUEST,
                             "Missing required header for this request: x-amz-content-sha256");
    }
    if (err != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_INVALID_REQUEST,
                             "x-amz-content-sha256 may be given only once.");
    }
    return fgw_sig_parse_payload(auth, text, error);
}

static enum fgw_err parse_v4_header(struct fgw_sig_auth *auth, struct fgw_bytes text,
                                    struct fgw_error *error)
{
    struct header_fields fields = {0};
    enum fgw_err err = split_fields(text, &fields, error);
    if (err == FGW_OK) {
        err = fgw_sig_parse_credential(auth, fields.credential, error);
    }
    if (err == FGW_OK && fgw_sig_split_names(auth->arena, fields.signed_headers,
                                             &auth->signed_names, &auth->signed_count) != FGW_OK) {
        err = fgw_error_set(error, FGW_ERR_AUTHORIZATION_HEADER_MALFORMED,
                            MALFORMED "the authorization component \"SignedHeaders\" is "
                                      "malformed.");
    }
    if (err == FGW_OK) {
        auth->signed_headers = fields.signed_headers;
        auth->signature = fields.signature;
        err = parse_header_date(auth, error);
    }
    if (err == FGW_OK) {
        err = parse_header_payload(auth, error);
    }
    return err;
}

static enum fgw_err parse_authorization(struct fgw_sig_auth *auth, struct fgw_bytes value,
                                        struct fgw_error *error)
{
    size_t word_len = 0;
    while (word_len < value.len && value.ptr[word_len] != ' ' && value.ptr[word_len] != '\t') {
        word_len++;
    }
    struct fgw_bytes word = fgw_bytes_sub(value, 0, word_len);
    struct fgw_bytes rest = fgw_bytes_trim(fgw_bytes_sub(value, word_len, SIZE_MAX));
    if (fgw_bytes_eq_str(word, "AWS4-HMAC-SHA256")) {
        return parse_v4_header(auth, rest, error);
    }
    if (fgw_bytes_eq_str(word, "AWS4-ECDSA-P256-SHA256")) {
        return fgw_error_set(error, FGW_ERR_NOT_IMPLEMENTED,
                             "Signature Version 4A (ECDSA) is not implemented.");
    }
    if (fgw_bytes_eq_str(word, "AWS") && fgw_bytes_find_byte(rest, ':') == SIZE_MAX) {
        return fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT,
                             "AWS authorization header is invalid.  "
                             "Expected AwsAccessKeyId:signature");
    }
    if (fgw_bytes_starts_with(word, FGW_LIT("AWS"))) {
        return fgw_error_set(error, FGW_ERR_SIGNATURE_VERSION_UNSUPPORTED, NULL);
    }
    if (rest.len == 0) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_HEADER_MALFORMED,
                             MALFORMED "one and only one ' ' (space) required.");
    }
    fgw_error_add(error, "ArgumentName", "Authorization");
    return fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT, "Unsupported Authorization Type");
}

/* -- dispatch ------------------------------------------------------------------------------ */

bool fgw_sig_query_get(const struct fgw_sig_auth *auth, const char *name,
                       struct fgw_bytes *out_value)
{
    struct fgw_bytes wanted = fgw_bytes_str(name);
    for (size_t i = 0; i < auth->query.count; i++) {
        if (fgw_bytes_eq(auth->query.pairs[i].name, wanted)) {
            return fgw_uri_decode(auth->arena, auth->query.pairs[i].value, false, out_value) ==
                   FGW_OK;
        }
    }
    return false;
}

static bool query_is_v2(const struct fgw_sig_auth *auth)
{
    struct fgw_bytes value;
    return fgw_sig_query_get(auth, "AWSAccessKeyId", &value) &&
           fgw_sig_query_get(auth, "Signature", &value);
}

/* SDKs send unsigned trailers without credentials too; signed modes have nothing to chain on. */
static enum fgw_err parse_anonymous(struct fgw_sig_auth *auth, struct fgw_error *error)
{
    const struct fgw_sig_header *header =
        fgw_sig_header_find(auth->request, "x-amz-content-sha256");
    auth->kind = FGW_SIG_ANONYMOUS;
    auth->payload_text = FGW_LIT("UNSIGNED-PAYLOAD");
    if (header == NULL) {
        return FGW_OK;
    }
    enum fgw_err err = fgw_sig_parse_payload(auth, fgw_bytes_trim(header->value), error);
    if (err == FGW_OK && (auth->payload == FGW_SIG_PAYLOAD_STREAMING_SIGNED ||
                          auth->payload == FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER)) {
        err = fgw_error_set(error, FGW_ERR_INVALID_REQUEST,
                            "A signed streaming payload needs a signed request.");
    }
    return err;
}

static enum fgw_err parse_kind(struct fgw_sig_auth *auth, struct fgw_error *error)
{
    struct fgw_bytes header = {0};
    enum fgw_err err = single_header(auth->request, "authorization", &header);
    if (err == FGW_ERR_PARSE) {
        return fgw_error_set(error, FGW_ERR_AUTHORIZATION_HEADER_MALFORMED,
                             MALFORMED "the Authorization header may be given only once.");
    }
    bool presigned = fgw_sig_query_is_presigned(auth);
    bool version_2 = query_is_v2(auth);
    if (header.len > 0 && (presigned || version_2)) {
        return fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT,
                             "Only one auth mechanism allowed; only the X-Amz-Algorithm query "
                             "parameter, Signature query string parameter or the Authorization "
                             "header should be specified");
    }
    if (header.len > 0) {
        auth->kind = FGW_SIG_HEADER;
        return parse_authorization(auth, header, error);
    }
    if (presigned) {
        auth->kind = FGW_SIG_PRESIGNED;
        return fgw_sig_parse_presigned(auth, error);
    }
    if (version_2) {
        return fgw_error_set(error, FGW_ERR_SIGNATURE_VERSION_UNSUPPORTED, NULL);
    }
    return parse_anonymous(auth, error);
}

enum fgw_err fgw_sig_parse(struct fgw_arena *arena, const struct fgw_sig_request *request,
                           struct fgw_sig_auth *out_auth, struct fgw_error *error)
{
    struct fgw_sig_auth auth = {.request = request, .arena = arena};
    enum fgw_err err =
        fgw_sig_query_pairs(arena, request->raw_query, FGW_SIG_FORM_CANONICAL, &auth.query);
    if (err != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_INVALID_REQUEST, "Too many query parameters.");
    }
    err = parse_kind(&auth, error);
    if (err != FGW_OK) {
        return err;
    }
    const struct fgw_sig_header *token = fgw_sig_header_find(request, "x-amz-security-token");
    if (token != NULL && auth.kind != FGW_SIG_ANONYMOUS) {
        auth.session_token = fgw_bytes_trim(token->value);
    }
    *out_auth = auth;
    return FGW_OK;
}
