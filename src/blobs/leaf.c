/* leaf.c: see leaf.h. */
#include "blobs/leaf.h"

#include "base/crc.h"
#include "event/fiber.h"

enum { HASH_STEP = 64 * 1024, FIRST_CAPACITY = 16 * 1024, ROOM_MIN = 256 * 1024 };

void fgw_leaf_hash_begin(struct fgw_leaf_hash *hash, struct fgw_md5 *md5)
{
    hash->md5 = md5;
    if (md5 != NULL) {
        fgw_sha256_begin(&hash->beside);
    } else {
        fgw_digest_begin(&hash->alone, FGW_DIGEST_SHA256);
    }
}

/* Leaves end at multiples of 64 bytes, so both hashes are at the same place of a block. */
void fgw_leaf_hash_update(struct fgw_leaf_hash *hash, struct fgw_bytes bytes)
{
    if (hash->md5 != NULL) {
        fgw_hash_pair_update(hash->md5, &hash->beside, bytes);
    } else {
        fgw_digest_update(&hash->alone, bytes);
    }
}

void fgw_leaf_hash_end(struct fgw_leaf_hash *hash, uint8_t out_digest[FGW_SHA256_SIZE])
{
    if (hash->md5 != NULL) {
        fgw_sha256_end(&hash->beside, out_digest);
    } else {
        fgw_digest_end(&hash->alone, out_digest);
    }
}

void fgw_leaf_hash_deinit(struct fgw_leaf_hash *hash)
{
    fgw_digest_deinit(&hash->alone);
}

void fgw_leaf_begin(struct fgw_leaf *leaf, struct fgw_md5 *md5)
{
    leaf->len = 0;
    leaf->crc32c = 0;
    fgw_leaf_hash_begin(&leaf->sha256, md5);
}

static void make_room(struct fgw_leaf *leaf, size_t more)
{
    size_t capacity = leaf->capacity;
    while (capacity - leaf->len < more) {
        capacity = capacity == 0 ? FIRST_CAPACITY : capacity * 4;
        capacity = capacity > FGW_STORAGE_BLOCK_MAX ? FGW_STORAGE_BLOCK_MAX : capacity;
    }
    if (capacity != leaf->capacity) {
        leaf->bytes = fgw_xrealloc(leaf->bytes, capacity);
        leaf->capacity = capacity;
    }
}

void fgw_leaf_fill(struct fgw_leaf *leaf, struct fgw_bytes *rest)
{
    while (rest->len > 0 && !fgw_leaf_full(leaf)) {
        size_t room = FGW_STORAGE_BLOCK_MAX - leaf->len;
        struct fgw_bytes piece = fgw_bytes_sub(*rest, 0, room < HASH_STEP ? room : HASH_STEP);
        make_room(leaf, piece.len);
        if (piece.ptr != NULL && piece.ptr != leaf->bytes + leaf->len) {
            memcpy(leaf->bytes + leaf->len, piece.ptr, piece.len);
        }
        fgw_leaf_hash_update(&leaf->sha256, piece);
        leaf->crc32c = fgw_crc32c(leaf->crc32c, piece);
        leaf->len += piece.len;
        *rest = fgw_bytes_sub(*rest, piece.len, SIZE_MAX);
        if (rest->len > 0) {
            fgw_fiber_yield();
        }
    }
}

/* None of a small leaf: it has to grow, and then moves. */
size_t fgw_leaf_room(const struct fgw_leaf *leaf, uint8_t **out_room)
{
    if (leaf->capacity < ROOM_MIN) {
        return 0;
    }
    *out_room = leaf->bytes + leaf->len;
    return leaf->capacity - leaf->len;
}

struct fgw_storage_block fgw_leaf_end(struct fgw_leaf *leaf)
{
    uint8_t digest[FGW_SHA256_SIZE];
    fgw_leaf_hash_end(&leaf->sha256, digest);
    return (struct fgw_storage_block){fgw_cid_make(FGW_CODEC_RAW, digest), leaf->crc32c,
                                      fgw_bytes(leaf->bytes, leaf->len)};
}

void fgw_leaf_deinit(struct fgw_leaf *leaf)
{
    fgw_leaf_hash_deinit(&leaf->sha256);
    fgw_xfree(leaf->bytes);
    leaf->bytes = NULL;
}
