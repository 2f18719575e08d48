/* piece_cid.h: the two CIDs of a piece.
 *
 * v1 names the root of the tree only (fil-commitment-unsealed, "baga6ea4seaq..."); v2 (FRC-0069,
 * "bafkzcib...") names height and payload size too. Bytes: docs/formats/cid.md. Pure functions.
 */
#ifndef FGW_CID_PIECE_CID_H
#define FGW_CID_PIECE_CID_H

#include "cid/commp.h"

enum {
    FGW_PIECE_CID_V1_TEXT_SIZE = 65, /* always 64 characters */
    FGW_PIECE_CID_V2_TEXT_SIZE = 78  /* at most */
};

void fgw_piece_cid_v1_text(const struct fgw_piece *piece, char out[FGW_PIECE_CID_V1_TEXT_SIZE]);
void fgw_piece_cid_v2_text(const struct fgw_piece *piece, char out[FGW_PIECE_CID_V2_TEXT_SIZE]);
/* Either text. *out_sized: false for v1, then height and payload_bytes are 0. FGW_ERR_PARSE when it
 * is no piece CID, FGW_ERR_TOO_LARGE when the height is above FGW_COMMP_HEIGHT_MAX. */
enum fgw_err fgw_piece_cid_from_text(struct fgw_bytes text, struct fgw_piece *out_piece,
                                     bool *out_sized) FGW_MUST_CHECK;

#endif
