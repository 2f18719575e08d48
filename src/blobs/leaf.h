/* leaf.h: one leaf (up to FGW_STORAGE_BLOCK_MAX bytes) being filled and hashed as it comes. */
#ifndef FGW_BLOBS_LEAF_H
#define FGW_BLOBS_LEAF_H

#include "base/digest.h"
#include "storage/storage.h"

struct fgw_leaf {
    uint8_t *bytes; /* heap */
    size_t len;
    size_t capacity;
    struct fgw_digest sha256;
    uint32_t crc32c;
};

/* Zero-initialise; begins an empty leaf, keeps the memory. */
void fgw_leaf_begin(struct fgw_leaf *leaf);
/* Takes what fits off the front of *rest. Yields to other fibers every 64 KiB. */
void fgw_leaf_fill(struct fgw_leaf *leaf, struct fgw_bytes *rest);
static inline bool fgw_leaf_full(const struct fgw_leaf *leaf)
{
    return leaf->len == FGW_STORAGE_BLOCK_MAX;
}
/* Its block, which points into the leaf; begin must come before the next fill. */
struct fgw_storage_block fgw_leaf_end(struct fgw_leaf *leaf);
void fgw_leaf_deinit(struct fgw_leaf *leaf);

#endif
