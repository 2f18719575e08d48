/* sigv4_internal.h: the stages of signing that parse, verify and sign share: the canonical request
 * written piecewise into a digest or a buffer, the string to sign, errors' common texts. */
#ifndef FGW_SIGV4_INTERNAL_H
#define FGW_SIGV4_INTERNAL_H

#include "base/digest.h"
#include "sigv4/auth.h"

/* Collects small pieces so that the digest sees few large updates: an update costs more than the
 * hashing of a few bytes. Exactly one of digest and text is set. */
enum { FGW_SIG_SINK_SIZE = 1024 };
struct fgw_sig_sink {
    struct fgw_digest *digest;
    struct fgw_buf *text;
    size_t len;
    uint8_t block[FGW_SIG_SINK_SIZE];
};

void fgw_sig_sink_flush(struct fgw_sig_sink *sink);
void fgw_sig_sink_write(struct fgw_sig_sink *sink, struct fgw_bytes bytes);
static inline void fgw_sig_sink_byte(struct fgw_sig_sink *sink, uint8_t byte)
{
    if (sink->len == FGW_SIG_SINK_SIZE) {
        fgw_sig_sink_flush(sink);
    }
    sink->block[sink->len++] = byte;
}

/* ASCII case-insensitive. */
bool fgw_sig_name_eq(struct fgw_bytes a, struct fgw_bytes b);
static inline uint8_t fgw_sig_lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte;
}

/* How path and query stand in the canonical request. */
enum fgw_sig_form {
    FGW_SIG_FORM_CANONICAL, /* decoded once, encoded once; a raw '+' in a query is a blank */
    FGW_SIG_FORM_RAW        /* as sent */
};

enum { FGW_SIG_QUERY_PAIRS_MAX = 1024, FGW_SIG_SIGNED_HEADERS_MAX = 256 };

/* Splits a query and sorts it. A '%' that starts no valid escape counts as a literal '%'. Empty
 * parts ("a&&b") are dropped. FGW_ERR_TOO_LARGE above FGW_SIG_QUERY_PAIRS_MAX. */
enum fgw_err fgw_sig_query_pairs(struct fgw_arena *arena, struct fgw_bytes raw_query,
                                 enum fgw_sig_form form,
                                 struct fgw_sig_pairs *out_pairs) FGW_MUST_CHECK;

/* Splits "host;x-amz-date"; FGW_ERR_PARSE for empty names, FGW_ERR_TOO_LARGE for too many. */
enum fgw_err fgw_sig_split_names(struct fgw_arena *arena, struct fgw_bytes list,
                                 const struct fgw_bytes **out_names,
                                 size_t *out_count) FGW_MUST_CHECK;

/* Writes a path in canonical form. */
void fgw_sig_write_path(struct fgw_sig_sink *sink, struct fgw_bytes raw_path);

/* The canonical request of `auth` (request, payload_text, signed_headers, signed_names) with this
 * form of path and these pairs. X-Amz-Signature never takes part. */
void fgw_sig_write_canonical(struct fgw_sig_sink *sink, const struct fgw_sig_auth *auth,
                             enum fgw_sig_form path_form, const struct fgw_sig_pairs *pairs);
/* Its SHA-256 in hex. */
void fgw_sig_hash_canonical(struct fgw_digest *digest, const struct fgw_sig_auth *auth,
                            enum fgw_sig_form path_form, const struct fgw_sig_pairs *pairs,
                            char out_hex[FGW_SIG_HEX_SIZE]);

/* Lines joined with '\n', as all strings to sign are. */
enum { FGW_SIG_STRING_MAX = 512 };
struct fgw_sig_string {
    size_t len;
    char text[FGW_SIG_STRING_MAX];
};
/* Adds one line (and the '\n' before it when it is not the first); the callers' lines are bounded
 * well below FGW_SIG_STRING_MAX. */
void fgw_sig_string_line(struct fgw_sig_string *string, struct fgw_bytes line);

/* Looks up a query parameter by its canonical name; *out_value is decoded. Absent: false. */
bool fgw_sig_query_get(const struct fgw_sig_auth *auth, const char *name,
                       struct fgw_bytes *out_value);

/* Credential "AKID/yyyymmdd/region/service/aws4_request" into auth, whose kind shapes the error. */
enum fgw_err fgw_sig_parse_credential(struct fgw_sig_auth *auth, struct fgw_bytes credential,
                                      struct fgw_error *error) FGW_MUST_CHECK;
/* "The authorization header is malformed; " or "Error parsing the X-Amz-Credential parameter; "
 * by kind, and the code that goes with it. */
enum fgw_err fgw_sig_credential_code(const struct fgw_sig_auth *auth);
const char *fgw_sig_credential_prefix(const struct fgw_sig_auth *auth);
/* ISO 8601 basic, kept as it was signed. */
enum fgw_err fgw_sig_take_date(struct fgw_sig_auth *auth, struct fgw_bytes text) FGW_MUST_CHECK;
/* Payload mode from the value of x-amz-content-sha256. */
enum fgw_err fgw_sig_parse_payload(struct fgw_sig_auth *auth, struct fgw_bytes text,
                                   struct fgw_error *error) FGW_MUST_CHECK;
/* Presigned query (parse_query.c). */
bool fgw_sig_query_is_presigned(const struct fgw_sig_auth *auth);
enum fgw_err fgw_sig_parse_presigned(struct fgw_sig_auth *auth,
                                     struct fgw_error *error) FGW_MUST_CHECK;

bool fgw_sig_is_signed(const struct fgw_sig_auth *auth, struct fgw_bytes name);

#endif
