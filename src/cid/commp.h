/* commp.h: the piece commitment of Filecoin (CommP) over a stream of bytes.
 *
 * The payload is padded with zeros to a multiple of 127 bytes, spread to 254-bit fields (fr32), and
 * hashed as a binary tree of SHA-256 cut to 254 bits, filled with zero subtrees to a power of two.
 * Bytes: docs/formats/cid.md; source: go-fil-commp-hashhash, FRC-0069. Memory: one node a level.
 * Cost: four times the payload through SHA-256. One thread at a time.
 */
#ifndef FGW_CID_COMMP_H
#define FGW_CID_COMMP_H

#include "base/bytes.h"
#include "base/digest.h"

enum {
    FGW_COMMP_NODE_SIZE = 32,
    FGW_COMMP_QUAD_SIZE = 127, /* payload bytes of four leaves */
    FGW_COMMP_HEIGHT_MIN = 2,  /* 128 bytes padded */
    FGW_COMMP_HEIGHT_MAX = 31  /* 64 GiB padded */
};

struct fgw_commp {
    struct fgw_digest sha256;
    uint64_t payload_bytes;
    uint8_t partial[FGW_COMMP_QUAD_SIZE]; /* the start of a quad */
    size_t partial_len;
    uint64_t quad_count; /* its bits say which nodes are set: bit i, node i */
    uint8_t nodes[FGW_COMMP_HEIGHT_MAX - FGW_COMMP_HEIGHT_MIN + 1][FGW_COMMP_NODE_SIZE];
};

struct fgw_piece {
    uint8_t root[FGW_COMMP_NODE_SIZE];
    unsigned height;        /* padded size = 32 << height */
    uint64_t payload_bytes; /* without the padding */
};

void fgw_commp_init(struct fgw_commp *commp);
void fgw_commp_deinit(struct fgw_commp *commp);
/* FGW_ERR_TOO_LARGE, and nothing is taken, above fgw_commp_capacity(FGW_COMMP_HEIGHT_MAX). */
enum fgw_err fgw_commp_update(struct fgw_commp *commp, struct fgw_bytes bytes) FGW_MUST_CHECK;
/* Only deinit may follow. No bytes at all count as 127 zeros. */
void fgw_commp_finish(struct fgw_commp *commp, struct fgw_piece *out_piece);

/* Payload bytes that fit a piece of this height: 32 << height, times 127/128. */
uint64_t fgw_commp_capacity(unsigned height);
/* Root of a tree of this height over zeros; 0: one leaf. */
void fgw_commp_zero_root(unsigned height, uint8_t out[FGW_COMMP_NODE_SIZE]);

#endif
