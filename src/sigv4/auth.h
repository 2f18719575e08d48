/* auth.h: recognises and verifies AWS Signature Version 4 of one request: Authorization header or
 * presigned query, with all payload modes of S3 but the ECDSA ones (answered NotImplemented).
 *
 * Order of use: fgw_sig_parse, then the caller looks up the secret of auth.access_key
 * (InvalidAccessKeyId is the caller's), then fgw_sig_verify. Pure functions over the caller's
 * memory: no I/O, no clock. A parsed auth points into the request and into the arena, and both
 * must outlive it. Any thread, one request at a time; a key cache belongs to one worker.
 * Source: AWS "Authenticating Requests (AWS Signature Version 4)"; spec/s3-wire.md 5.3-5.10.
 */
#ifndef FGW_SIGV4_AUTH_H
#define FGW_SIGV4_AUTH_H

#include "base/arena.h"
#include "base/bytes.h"
#include "sigv4/key.h"
#include "sigv4/request.h"

enum fgw_sig_auth_kind { FGW_SIG_ANONYMOUS, FGW_SIG_HEADER, FGW_SIG_PRESIGNED };

/* What x-amz-content-sha256 says about the body. */
enum fgw_sig_payload {
    FGW_SIG_PAYLOAD_UNSIGNED,                  /* UNSIGNED-PAYLOAD */
    FGW_SIG_PAYLOAD_HASH,                      /* 64 hex digits: payload_sha256 must match */
    FGW_SIG_PAYLOAD_STREAMING_SIGNED,          /* STREAMING-AWS4-HMAC-SHA256-PAYLOAD */
    FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER,  /* STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER */
    FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER /* STREAMING-UNSIGNED-PAYLOAD-TRAILER */
};

/* True for the three aws-chunked modes: the body goes through chunked.h. */
static inline bool fgw_sig_payload_is_chunked(enum fgw_sig_payload payload)
{
    return payload >= FGW_SIG_PAYLOAD_STREAMING_SIGNED;
}

/* One query parameter in canonical (percent-encoded) form. */
struct fgw_sig_pair {
    struct fgw_bytes name;
    struct fgw_bytes value;
};

struct fgw_sig_pairs {
    const struct fgw_sig_pair *pairs; /* sorted by name, then value, as bytes */
    size_t count;
};

struct fgw_sig_auth {
    enum fgw_sig_auth_kind kind;
    enum fgw_sig_payload payload;
    /* the rest is empty when kind is FGW_SIG_ANONYMOUS, but for the payload fields */
    struct fgw_bytes access_key;
    struct fgw_bytes day; /* yyyymmdd, equal to the day of amz_date */
    struct fgw_bytes region;
    struct fgw_bytes service;
    struct fgw_bytes scope;         /* day/region/service/aws4_request */
    struct fgw_bytes signature;     /* as sent: not yet known to be hex */
    struct fgw_bytes session_token; /* x-amz-security-token, header or query; usually empty */
    int64_t request_ms;
    char amz_date[FGW_SIG_DATE_SIZE + 1];
    int64_t expires_s; /* presigned only; may be negative or beyond the week: verify refuses */
    struct fgw_bytes payload_text;           /* as it stands in the canonical request */
    uint8_t payload_sha256[FGW_SHA256_SIZE]; /* FGW_SIG_PAYLOAD_HASH only */
    struct fgw_bytes signed_headers;         /* "host;x-amz-date" */
    const struct fgw_bytes *signed_names;    /* the same, split */
    size_t signed_count;
    struct fgw_sig_pairs query;
    const struct fgw_sig_request *request;
    struct fgw_arena *arena;
};

/* Recognises the kind and takes it apart; sets *out_auth only on success. Errors (spec 5.4-5.10):
 * AUTHORIZATION_HEADER_MALFORMED, AUTHORIZATION_QUERY_PARAMETERS, ACCESS_DENIED (no usable date),
 * INVALID_REQUEST (x-amz-content-sha256 missing), INVALID_ARGUMENT (bad value of it, two
 * mechanisms at once, unknown Authorization type), SIGNATURE_VERSION_UNSUPPORTED (Signature
 * Version 2), NOT_IMPLEMENTED (ECDSA). An empty Authorization header counts as none. */
enum fgw_err fgw_sig_parse(struct fgw_arena *arena, const struct fgw_sig_request *request,
                           struct fgw_sig_auth *out_auth, struct fgw_error *error) FGW_MUST_CHECK;

struct fgw_sig_policy {
    struct fgw_bytes region;
    const char *service; /* "s3" */
    int64_t now_ms;      /* wall clock */
    uint64_t skew_ms;    /* 900000 */
    bool strict_aws;     /* X-Amz-Expires out of range: AWS's 400 instead of the suite's 403 */
    struct fgw_sig_key_cache *key_cache; /* may be NULL */
};

/* What the chunk signatures of a streaming body chain on. Holds the signing key: wipe after use
 * where the memory outlives the request. */
struct fgw_sig_seed {
    uint8_t signing_key[FGW_SIG_KEY_SIZE];
    char signature[FGW_SIG_HEX_SIZE]; /* lower case */
    char amz_date[FGW_SIG_DATE_SIZE];
    char scope[FGW_SIG_SCOPE_MAX];
    size_t scope_len;
};

/* Checks scope, time window, that every header that must be signed is, and the signature. kind
 * must not be FGW_SIG_ANONYMOUS. out_seed may be NULL.
 *
 * A signature is accepted over the canonical form AWS documents (path and query decoded once and
 * encoded once; a raw '+' in a query is a blank, so whoever reads the query must take it for one),
 * and also over path or query exactly as they were sent, sorted: some clients sign a URL as they
 * got it. Either covers what the request means here and nothing else.
 * Errors: AUTHORIZATION_HEADER_MALFORMED or AUTHORIZATION_QUERY_PARAMETERS (region, with element
 * Region; service), REQUEST_TIME_TOO_SKEWED, REQUEST_EXPIRED, ACCESS_DENIED (not valid yet;
 * headers not signed; expiry out of range), SIGNATURE_DOES_NOT_MATCH. */
enum fgw_err fgw_sig_verify(const struct fgw_sig_auth *auth, const struct fgw_sig_policy *policy,
                            struct fgw_bytes secret, struct fgw_sig_seed *out_seed,
                            struct fgw_error *error) FGW_MUST_CHECK;

/* The canonical request whose hash the primary form of the signature covers, in the auth's arena:
 * what AWS shows as CanonicalRequest beside SignatureDoesNotMatch. */
struct fgw_bytes fgw_sig_canonical_request(const struct fgw_sig_auth *auth);

#endif
