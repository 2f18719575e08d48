/* leaf.h: one leaf (up to FGW_STORAGE_BLOCK_MAX bytes) being filled and hashed as it comes. */
#ifndef FGW_BLOBS_LEAF_H
#define FGW_BLOBS_LEAF_H

#include "base/digest.h"
#include "base/hash_pair.h"
#include "storage/storage.h"

/* SHA-256 of a leaf, together with the MD5 of the whole body when the stage was given one. */
struct fgw_leaf_hash {
    struct fgw_md5 *md5; /* or NULL */
    struct fgw_digest alone;
    struct fgw_sha256 beside;
};

void fgw_leaf_hash_begin(struct fgw_leaf_hash *hash, struct fgw_md5 *md5);
void fgw_leaf_hash_update(struct fgw_leaf_hash *hash, struct fgw_bytes bytes);
void fgw_leaf_hash_end(struct fgw_leaf_hash *hash, uint8_t out_digest[FGW_SHA256_SIZE]);
void fgw_leaf_hash_deinit(struct fgw_leaf_hash *hash);

struct fgw_leaf {
    uint8_t *bytes; /* heap */
    size_t len;
    size_t capacity;
    struct fgw_leaf_hash sha256;
    uint32_t crc32c;
};

/* Zero-initialise; begins an empty leaf, keeps the memory. md5 (or NULL) as in the stage's options. */
void fgw_leaf_begin(struct fgw_leaf *leaf, struct fgw_md5 *md5);
/* Takes what fits off the front of *rest. Yields to other fibers every 64 KiB. */
void fgw_leaf_fill(struct fgw_leaf *leaf, struct fgw_bytes *rest);
/* As fgw_blob_stage_room: what is put there and then filled in is not copied. */
size_t fgw_leaf_room(const struct fgw_leaf *leaf, uint8_t **out_room);
static inline bool fgw_leaf_full(const struct fgw_leaf *leaf)
{
    return leaf->len == FGW_STORAGE_BLOCK_MAX;
}
/* Is [offset, offset + len) one leaf of a blob of so many bytes? */
static inline bool fgw_leaf_is_whole(uint64_t size, uint64_t offset, uint64_t len)
{
    uint64_t left = size - offset;
    return offset % FGW_STORAGE_BLOCK_MAX == 0 &&
           len == (left < FGW_STORAGE_BLOCK_MAX ? left : FGW_STORAGE_BLOCK_MAX);
}
/* Its block, which points into the leaf; begin must come before the next fill. */
struct fgw_storage_block fgw_leaf_end(struct fgw_leaf *leaf);
void fgw_leaf_deinit(struct fgw_leaf *leaf);

#endif
