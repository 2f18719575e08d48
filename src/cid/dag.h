/* dag.h: the balanced UnixFS tree over a file's leaves, built while they come in.
 *
 * Feed (CID, size) of each raw leaf in file order; inner nodes come out through a callback,
 * children before parents, each once. The tree is that of `ipfs add` (ipfs specs, IPIP-0499):
 * consecutive nodes in groups of `width`, a last group of one too gets its parent, all leaves at
 * equal depth; one leaf is the root itself; no bytes at all: the empty raw block. Leaves may have
 * any size (a multipart object's parts); the result says whether they were those of the profile.
 * Memory: one node under construction a level, grown as needed. One thread at a time.
 */
#ifndef FGW_CID_DAG_H
#define FGW_CID_DAG_H

#include "cid/cid.h"

struct fgw_dag_profile {
    uint64_t chunk_bytes;
    size_t width; /* links a node; 2 .. FGW_UNIXFS_LINKS_MAX */
};

/* unixfs-v1-2025: 1 MiB, 1024 links. What FGW stores. */
extern const struct fgw_dag_profile fgw_dag_unixfs_v1_2025;

/* Takes an inner node (dag-pb); `node` is valid during the call only. A failure ends the build and
 * is what the builder answers. */
typedef enum fgw_err fgw_dag_emit_fn(void *context, const struct fgw_cid *cid,
                                     struct fgw_bytes node);

struct fgw_dag_builder;

struct fgw_dag_root {
    struct fgw_cid cid;  /* raw when there was at most one leaf, else dag-pb */
    uint64_t file_bytes; /* length of the file */
    uint64_t tree_bytes; /* leaves and nodes together, a block that occurs twice counted twice */
    uint64_t leaf_count;
    bool canonical; /* the root is that of the profile: every leaf but the last is a whole chunk */
};

/* emit NULL: only the root is asked for. */
struct fgw_dag_builder *fgw_dag_builder_new(const struct fgw_dag_profile *profile,
                                            fgw_dag_emit_fn *emit, void *context);
/* Takes NULL. */
void fgw_dag_builder_free(struct fgw_dag_builder *builder);
/* cid: raw. A leaf of size 0 adds nothing to the file and is passed over. FGW_ERR_TOO_LARGE when
 * the file passes 2^62 bytes; else what emit answered. After a failure only free. */
enum fgw_err fgw_dag_builder_add(struct fgw_dag_builder *builder, const struct fgw_cid *cid,
                                 uint64_t size_bytes) FGW_MUST_CHECK;
/* Closes all open nodes, the root last; only free may follow. */
enum fgw_err fgw_dag_builder_finish(struct fgw_dag_builder *builder,
                                    struct fgw_dag_root *out_root) FGW_MUST_CHECK;

#endif
