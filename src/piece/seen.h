/* seen.h: which blocks a piece has already: a growing set of digests, 16 bytes of each (nobody makes
 * two blocks that share 128 bits of SHA-256). One thread. */
#ifndef FGW_PIECE_SEEN_H
#define FGW_PIECE_SEEN_H

#include <stdbool.h>

#include "cid/cid.h"

enum { FGW_PIECE_SEEN_BYTES = 16 };

struct fgw_piece_seen {
    uint8_t (*slots)[FGW_PIECE_SEEN_BYTES]; /* all zeros: empty */
    size_t size;                            /* a power of two; 0: none yet */
    size_t count;
};

/* Zero-initialise. False when it was there. */
bool fgw_piece_seen_add(struct fgw_piece_seen *seen, const struct fgw_cid *cid);
bool fgw_piece_seen_has(const struct fgw_piece_seen *seen, const struct fgw_cid *cid);
void fgw_piece_seen_deinit(struct fgw_piece_seen *seen);

#endif
