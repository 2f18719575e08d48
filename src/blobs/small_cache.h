/* small_cache.h: bytes of small blobs that are read again and again, by the digest of their only block.
 *
 * What a digest names never changes, so an entry is right for ever; which digest a key has is still read
 * from the metadata by each request. Kept is what is read a second time before it is forgotten: reading
 * many objects once neither costs anything nor drives others out. Bounded in bytes, what was not used
 * for the longest time goes first. Any thread; in shards, whose mutexes are held for a look-up or an
 * insertion.
 */
#ifndef FGW_BLOBS_SMALL_CACHE_H
#define FGW_BLOBS_SMALL_CACHE_H

#include "blobs/blobs.h"

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
/* Whether blobs of that kind are kept. Takes cache NULL. */
bool fgw_small_cache_takes(const struct fgw_small_cache *cache, const struct fgw_cid *root,
                           uint64_t size);
/* A reference to a blob that it takes, to be given back; NULL: not there. */
struct fgw_small_blob *fgw_small_cache_look(struct fgw_small_cache *cache,
                                            const struct fgw_cid *root);
/* After a miss: all bytes of it, which were checked. They are copied if they were offered before. */
void fgw_small_cache_offer(struct fgw_small_cache *cache, const struct fgw_cid *root,
                           struct fgw_bytes bytes);
/* At most `want` bytes at `offset`, valid until the reference is given back. FGW_ERR_END behind the last. */
enum fgw_err fgw_small_blob_run(const struct fgw_small_blob *blob, uint64_t offset, size_t want,
                                struct fgw_storage_run *out_run) FGW_MUST_CHECK;
/* Takes NULL. */
void fgw_small_blob_give(struct fgw_small_blob *blob);

/* -- small_read.c -------------------------------------------------------------------------------- */

/* A reader of an extent that blobs->cache takes: from memory, else from the store, and offered. */
enum fgw_err fgw_small_read_open(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                                 struct fgw_blob_reader **out_reader,
                                 struct fgw_error *error) FGW_MUST_CHECK;

#endif
