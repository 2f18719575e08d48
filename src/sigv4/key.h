/* key.h: SigV4 signing keys, and the cache that spares their four HMACs a request.
 *
 * A cache belongs to one worker: no locking. It is bounded (4-way sets, the least recently used
 * entry of a set gives way) and an entry answers only for the very secret it was made from, so a
 * rotated secret takes effect at once. Memory that held secrets is wiped when it is freed.
 */
#ifndef FGW_SIGV4_KEY_H
#define FGW_SIGV4_KEY_H

#include "base/bytes.h"
#include "base/digest.h"

enum {
    FGW_SIG_KEY_SIZE = 32,
    FGW_SIG_HEX_SIZE = 64,  /* a signature or a SHA-256 as text, no NUL */
    FGW_SIG_DATE_SIZE = 16, /* 20130524T000000Z, no NUL */
    /* "20130524/us-east-1/s3/aws4_request"; longer ones are refused when parsed */
    FGW_SIG_SCOPE_MAX = 128
};

/* What a signing key is derived for. */
struct fgw_sig_key_scope {
    struct fgw_bytes access_key; /* only spreads the cache's entries */
    struct fgw_bytes day;        /* yyyymmdd */
    struct fgw_bytes region;
    struct fgw_bytes service;
};

struct fgw_sig_key_cache;

/* Room for about `entries` keys (rounded up to a power of two, at least 4; 0 = 1024, 290 KiB). */
struct fgw_sig_key_cache *fgw_sig_key_cache_new(size_t entries);
/* Takes NULL. */
void fgw_sig_key_cache_free(struct fgw_sig_key_cache *cache);

/* HMAC chain of AWS "Create a signed request", step 3: date, region, service, "aws4_request". */
void fgw_sig_key_derive(struct fgw_bytes secret, const struct fgw_sig_key_scope *scope,
                        uint8_t out_key[FGW_SIG_KEY_SIZE]);
/* The same through the cache; `cache` may be NULL. Secrets over 128 bytes are not cached. */
void fgw_sig_key_get(struct fgw_sig_key_cache *cache, struct fgw_bytes secret,
                     const struct fgw_sig_key_scope *scope, uint8_t out_key[FGW_SIG_KEY_SIZE]);

/* The digest context that goes with the cache: one a worker, reused by every request. */
struct fgw_digest *fgw_sig_key_cache_digest(struct fgw_sig_key_cache *cache);

#endif
