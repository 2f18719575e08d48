/* unixfs.h: dag-pb nodes that carry UnixFS: encoding of a file's inner node, decoding of any node.
 *
 * The encoding is exact: it decides the CIDs (docs/formats/cid.md; source: ipld specs dag-pb, ipfs
 * specs unixfs). The encoder keeps the node in two growing buffers, one thread at a time. The
 * decoder takes hostile bytes, bounds them and allocates in the caller's arena.
 */
#ifndef FGW_CID_UNIXFS_H
#define FGW_CID_UNIXFS_H

#include "base/arena.h"
#include "cid/cid.h"

enum {
    FGW_UNIXFS_NODE_MAX = 2 * 1024 * 1024,
    FGW_UNIXFS_LINKS_MAX = 32768 /* of the encoder; its node stays below FGW_UNIXFS_NODE_MAX */
};

/* An inner node of a file under construction. */
struct fgw_unixfs_encoder {
    struct fgw_buf links;
    struct fgw_buf block_sizes;
    size_t link_count;
    uint64_t file_bytes; /* under all links */
    uint64_t tree_bytes; /* sum of the links' Tsize */
};

void fgw_unixfs_encoder_init(struct fgw_unixfs_encoder *encoder);
void fgw_unixfs_encoder_deinit(struct fgw_unixfs_encoder *encoder);
/* Empty again, the memory kept. */
void fgw_unixfs_encoder_clear(struct fgw_unixfs_encoder *encoder);
/* Appends a child with file_bytes of the file below it and a Tsize of tree_bytes (of a raw leaf:
 * its length; of a node: its own bytes plus its links' Tsize). FGW_ERR_TOO_LARGE when a sum passes
 * 2^62 or the node would have more than FGW_UNIXFS_LINKS_MAX links. */
enum fgw_err fgw_unixfs_encoder_add(struct fgw_unixfs_encoder *encoder, const struct fgw_cid *cid,
                                    uint64_t file_bytes, uint64_t tree_bytes) FGW_MUST_CHECK;
/* The node's bytes, valid until the encoder is touched again; only clear or deinit may follow. */
struct fgw_bytes fgw_unixfs_encoder_finish(struct fgw_unixfs_encoder *encoder);

enum fgw_unixfs_type {
    FGW_UNIXFS_RAW = 0,
    FGW_UNIXFS_DIRECTORY = 1,
    FGW_UNIXFS_FILE = 2,
    FGW_UNIXFS_METADATA = 3,
    FGW_UNIXFS_SYMLINK = 4,
    FGW_UNIXFS_HAMT_SHARD = 5
};

struct fgw_unixfs_link {
    struct fgw_cid_view cid;
    struct fgw_bytes name; /* empty in files */
    uint64_t tree_bytes;   /* Tsize; 0 when absent */
    uint64_t file_bytes;   /* blocksize of a file's child; 0 in directories */
};

struct fgw_unixfs_node {
    enum fgw_unixfs_type type;
    struct fgw_bytes data; /* file bytes inside the node */
    uint64_t file_bytes;   /* filesize; for files data plus the children's, checked */
    const struct fgw_unixfs_link *links;
    size_t link_count;
};

/* Views point into `block`, links live in the arena. FGW_ERR_CORRUPT: not dag-pb with UnixFS, links
 * of a directory out of order, names in a file, sizes that do not add up. FGW_ERR_TOO_LARGE: above
 * FGW_UNIXFS_NODE_MAX. */
enum fgw_err fgw_unixfs_decode(struct fgw_arena *arena, struct fgw_bytes block,
                               struct fgw_unixfs_node *out_node) FGW_MUST_CHECK;
/* The same, but links of a file may have names: the Go gateway's multipart objects have ("part-00001"),
 * against what the specification tells readers to accept. */
enum fgw_err fgw_unixfs_decode_named(struct fgw_arena *arena, struct fgw_bytes block,
                                     struct fgw_unixfs_node *out_node) FGW_MUST_CHECK;

#endif
