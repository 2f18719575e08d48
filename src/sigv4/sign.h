/* sign.h: signs requests: our benchmarks, the admin client and the tests. The server never needs
 * it. Same canonical form as auth.h; results live in the arena. */
#ifndef FGW_SIGV4_SIGN_H
#define FGW_SIGV4_SIGN_H

#include "sigv4/auth.h"

struct fgw_sig_signer {
    struct fgw_bytes access_key;
    struct fgw_bytes secret;
    struct fgw_bytes region;
    struct fgw_bytes service;            /* "s3" */
    int64_t now_ms;                      /* time of signing; cut to seconds */
    struct fgw_sig_key_cache *key_cache; /* may be NULL */
};

/* Headers to send besides the request's own. */
struct fgw_sig_signed {
    struct fgw_bytes authorization;
    struct fgw_bytes amz_date;       /* x-amz-date */
    struct fgw_bytes content_sha256; /* x-amz-content-sha256 */
    struct fgw_sig_seed seed;        /* for chunked.h */
};

/* The request must have Host and must not have Authorization, x-amz-date or x-amz-content-sha256.
 * All its headers are signed but those that hops change (User-Agent, Expect, Connection,
 * Transfer-Encoding, Accept-Encoding, X-Amzn-Trace-Id). payload is what x-amz-content-sha256 shall
 * say: a hash in hex, UNSIGNED-PAYLOAD, STREAMING-... FGW_ERR_TOO_LARGE when region and service do
 * not fit a scope. */
enum fgw_err fgw_sig_sign(struct fgw_arena *arena, const struct fgw_sig_signer *signer,
                          const struct fgw_sig_request *request, struct fgw_bytes payload,
                          struct fgw_sig_signed *out_signed) FGW_MUST_CHECK;

/* The whole query of a presigned URL (without '?'): the request's own parameters, percent-encoded,
 * then the signature's. The request's headers are signed as above and must be sent with the URL.
 * expires_s is not checked: tests sign nonsense. */
enum fgw_err fgw_sig_presign(struct fgw_arena *arena, const struct fgw_sig_signer *signer,
                             const struct fgw_sig_request *request, int64_t expires_s,
                             struct fgw_bytes *out_query) FGW_MUST_CHECK;

#endif
