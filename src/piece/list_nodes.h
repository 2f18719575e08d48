/* list_nodes.h: the dag-cbor nodes above the blobs of a piece (docs/formats/piece.md). Pure
 * functions. */
#ifndef FGW_PIECE_LIST_NODES_H
#define FGW_PIECE_LIST_NODES_H

#include "cid/cid.h"

enum {
    FGW_PIECE_LINKS_MAX = 1024, /* of a list node */
    FGW_PIECE_LIST_NODE_MAX = 3 + FGW_PIECE_LINKS_MAX * (5 + FGW_CID_SIZE)
};

/* Replaces *out by the node with these links, 1 to FGW_PIECE_LINKS_MAX; its CID. `cids` are
 * `stride` bytes apart: members of any struct. */
struct fgw_cid fgw_piece_list_node(const struct fgw_cid *cids, size_t stride, size_t count,
                                   struct fgw_buf *out);

#endif
