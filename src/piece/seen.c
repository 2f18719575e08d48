/* seen.c: see seen.h. Open addressing, at most half full. */
#include "piece/seen.h"

enum { FIRST_SIZE = 1024 };

static const uint8_t EMPTY[FGW_PIECE_SEEN_BYTES];

/* The digest's slot, or the empty one where it would go. */
static size_t find(const struct fgw_piece_seen *seen, const uint8_t *digest)
{
    size_t at = (size_t)fgw_get_u64le(digest + 8) & (seen->size - 1);
    while (memcmp(seen->slots[at], EMPTY, sizeof EMPTY) != 0 &&
           memcmp(seen->slots[at], digest, FGW_PIECE_SEEN_BYTES) != 0) {
        at = (at + 1) & (seen->size - 1);
    }
    return at;
}

static void grow(struct fgw_piece_seen *seen)
{
    struct fgw_piece_seen larger = {.size = seen->size == 0 ? FIRST_SIZE : 2 * seen->size,
                                    .count = seen->count};
    larger.slots = fgw_xcalloc(larger.size, sizeof *larger.slots);
    for (size_t i = 0; i < seen->size; i++) {
        if (memcmp(seen->slots[i], EMPTY, sizeof EMPTY) != 0) {
            memcpy(larger.slots[find(&larger, seen->slots[i])], seen->slots[i],
                   FGW_PIECE_SEEN_BYTES);
        }
    }
    fgw_xfree(seen->slots);
    *seen = larger;
}

bool fgw_piece_seen_add(struct fgw_piece_seen *seen, const struct fgw_cid *cid)
{
    if (2 * (seen->count + 1) > seen->size) {
        grow(seen);
    }
    const uint8_t *digest = fgw_cid_digest(cid);
    size_t at = find(seen, digest);
    if (memcmp(seen->slots[at], digest, FGW_PIECE_SEEN_BYTES) == 0) {
        return false;
    }
    memcpy(seen->slots[at], digest, FGW_PIECE_SEEN_BYTES);
    seen->count++;
    return true;
}

bool fgw_piece_seen_has(const struct fgw_piece_seen *seen, const struct fgw_cid *cid)
{
    const uint8_t *digest = fgw_cid_digest(cid);
    return seen->size > 0 &&
           memcmp(seen->slots[find(seen, digest)], digest, FGW_PIECE_SEEN_BYTES) == 0;
}

void fgw_piece_seen_deinit(struct fgw_piece_seen *seen)
{
    fgw_xfree(seen->slots);
    *seen = (struct fgw_piece_seen){0};
}
