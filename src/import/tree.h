/* tree.h: the bytes of a file whose UnixFS tree lies in a set of CARs, in order.
 *
 * Any layout: raw blocks, dag-pb leaves with data inside, nodes of CIDv0 and v1, links with names.
 * In a fiber; files are read on the pool. Bounded: 32 levels, never more bytes than `limit`.
 */
#ifndef FGW_IMPORT_TREE_H
#define FGW_IMPORT_TREE_H

#include "event/fiber.h"
#include "import/car_set.h"

/* Takes bytes of the file; what it answers besides FGW_OK ends the reading. */
typedef enum fgw_err fgw_tree_sink(void *context, struct fgw_bytes bytes);

struct fgw_tree {
    const struct fgw_car_set *cars;
    struct fgw_pool *pool;
    uint64_t limit; /* size of the file: more bytes are an error */
    fgw_tree_sink *sink;
    void *context;
    uint64_t bytes;  /* counted here */
    uint64_t blocks; /* read and checked, counted here */
};

/* NOT_FOUND, CORRUPT, NOT_IMPLEMENTED (another codec or hash): *error names the block, and where it
 * lies when it lies somewhere. */
enum fgw_err fgw_tree_read(struct fgw_tree *tree, const struct fgw_cid_view *root,
                           struct fgw_error *error) FGW_MUST_CHECK;

#endif
