/* small_cache.h: bytes of small blobs that came from other stores, kept by the digest of their only block.
 *
 * What a digest names never changes, so an entry is right for ever; which digest a key has is still read
 * from the metadata by each request. Bounded in bytes, what was not used for the longest time goes first.
 * Any thread; in shards, whose mutexes are held for a look-up or an insertion.
 */
#ifndef FGW_BLOBS_SMALL_CACHE_H
#define FGW_BLOBS_SMALL_CACHE_H

#include "base/bytes.h"
#include "base/digest.h"

enum { FGW_SMALL_CACHE_BLOB_MAX = 64 * 1024 }; /* larger ones are not worth the room */

struct fgw_small_cache;
struct fgw_small_blob; /* one entry, counted references */

struct fgw_small_cache_stats {
    uint64_t hits, misses, bytes; /* bytes: kept now, with what an entry costs besides */
};

/* max_bytes 0: keeps nothing. */
struct fgw_small_cache *fgw_small_cache_new(uint64_t max_bytes);
/* Takes NULL; all references have been given back. */
void fgw_small_cache_free(struct fgw_small_cache *cache);
void fgw_small_cache_stats(struct fgw_small_cache *cache, struct fgw_small_cache_stats *out_stats);
/* A reference, to be given back; NULL: not there. */
struct fgw_small_blob *fgw_small_cache_take(struct fgw_small_cache *cache,
                                            const uint8_t digest[FGW_SHA256_SIZE]);
/* Copies bytes that were checked; does nothing for what is there already or too large. */
void fgw_small_cache_put(struct fgw_small_cache *cache, const uint8_t digest[FGW_SHA256_SIZE],
                         struct fgw_bytes bytes);
/* Valid until the reference is given back. */
struct fgw_bytes fgw_small_blob_bytes(const struct fgw_small_blob *blob);
/* Takes NULL. */
void fgw_small_blob_give(struct fgw_small_blob *blob);

#endif
