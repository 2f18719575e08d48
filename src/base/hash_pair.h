/* hash_pair.h: MD5 and SHA-256 of the same bytes in one pass.
 *
 * Either spends most of its time waiting for its own last step, MD5 always and SHA-256 where the
 * processor has instructions for it. Their steps taken in turns, both together take hardly longer
 * than MD5 alone. MD5 is an ETag here, never a proof of anything. RFC 1321, FIPS 180-4.
 */
#ifndef FGW_BASE_HASH_PAIR_H
#define FGW_BASE_HASH_PAIR_H

#include "base/bytes.h"
#include "base/digest.h"

struct fgw_md5 {
    uint32_t state[4];
    uint64_t len;
    uint8_t rest[64]; /* len % 64 bytes that are no block yet */
};

struct fgw_sha256 {
    uint32_t state[8];
    uint64_t len;
    uint8_t rest[64];
};

/* False: this processor has no instructions for SHA-256, and nothing below may be called. */
bool fgw_hash_pair_available(void);
void fgw_md5_begin(struct fgw_md5 *md5);
void fgw_sha256_begin(struct fgw_sha256 *sha256);
/* Both take `bytes`. Their lengths so far must be equal modulo 64. */
void fgw_hash_pair_update(struct fgw_md5 *md5, struct fgw_sha256 *sha256, struct fgw_bytes bytes);
void fgw_md5_end(const struct fgw_md5 *md5, uint8_t out[FGW_MD5_SIZE]);
void fgw_sha256_end(const struct fgw_sha256 *sha256, uint8_t out[FGW_SHA256_SIZE]);

#endif
