/* tree.c: see tree.h. */
#include "import/tree.h"

#include "base/encode.h"
#include "cid/unixfs.h"

enum { LEVELS_MAX = 32 };

struct fetch {
    const struct fgw_car_set *cars;
    const uint8_t *digest;
    struct fgw_buf *out;
    struct fgw_error error;
    enum fgw_err err;
};

static void fetch_on_pool(void *arg)
{
    struct fetch *fetch = arg;
    fetch->err = fgw_car_set_read(fetch->cars, fetch->digest, fetch->out, &fetch->error);
}

static enum fgw_err name_block(const struct fgw_cid_view *cid, enum fgw_err err, const char *what,
                               struct fgw_error *error)
{
    char digest[2 * FGW_SHA256_SIZE + 1] = "?";
    if (cid->digest.len == FGW_SHA256_SIZE) {
        fgw_hex_encode(cid->digest, digest);
        digest[sizeof digest - 1] = '\0';
    }
    return fgw_error_set(error, err, "block sha256 %s: %s", digest, what);
}

static enum fgw_err read_block(struct fgw_tree *tree, const struct fgw_cid_view *cid,
                               struct fgw_buf *out, struct fgw_error *error)
{
    if (cid->hash == FGW_MULTIHASH_IDENTITY) {
        return fgw_buf_append(out, cid->digest);
    }
    if (cid->hash != FGW_MULTIHASH_SHA2_256) {
        return name_block(cid, FGW_ERR_NOT_IMPLEMENTED, "only sha2-256 is read", error);
    }
    struct fetch *fetch = fgw_xcalloc(1, sizeof *fetch);
    fetch->cars = tree->cars;
    fetch->digest = cid->digest.ptr;
    fetch->out = out;
    fgw_pool_run(tree->pool, fetch_on_pool, fetch);
    enum fgw_err err = fetch->err;
    if (err != FGW_OK) {
        (void)name_block(cid, err, fgw_error_message(&fetch->error), error);
    }
    tree->blocks += err == FGW_OK;
    fgw_xfree(fetch);
    return err;
}

static enum fgw_err give(struct fgw_tree *tree, struct fgw_bytes bytes, struct fgw_error *error)
{
    if (bytes.len > tree->limit - tree->bytes) {
        return fgw_error_set(error, FGW_ERR_CORRUPT, "the tree has more bytes than the object");
    }
    tree->bytes += bytes.len;
    return bytes.len == 0 ? FGW_OK : tree->sink(tree->context, bytes);
}

static enum fgw_err read_node(struct fgw_tree *tree, const struct fgw_cid_view *cid,
                              unsigned levels, struct fgw_error *error);

static enum fgw_err read_file_node(struct fgw_tree *tree, const struct fgw_cid_view *cid,
                                   struct fgw_bytes block, unsigned levels, struct fgw_error *error)
{
    struct fgw_arena arena;
    struct fgw_unixfs_node node;
    fgw_arena_init(&arena, 0);
    enum fgw_err err = fgw_unixfs_decode_named(&arena, block, &node);
    if (err != FGW_OK) {
        err = name_block(cid, err, "is no UnixFS node", error);
    } else if (node.type != FGW_UNIXFS_FILE && node.type != FGW_UNIXFS_RAW) {
        err = name_block(cid, FGW_ERR_CORRUPT, "is no file but another kind of node", error);
    }
    err = err == FGW_OK ? give(tree, node.data, error) : err;
    for (size_t i = 0; err == FGW_OK && i < node.link_count; i++) {
        err = read_node(tree, &node.links[i].cid, levels - 1, error);
    }
    fgw_arena_deinit(&arena);
    return err;
}

static enum fgw_err read_node(struct fgw_tree *tree, const struct fgw_cid_view *cid,
                              unsigned levels, struct fgw_error *error)
{
    struct fgw_buf block;
    if (levels == 0) {
        return name_block(cid, FGW_ERR_CORRUPT, "lies too deep in its tree", error);
    }
    fgw_buf_init(&block, FGW_CAR_BLOCK_MAX);
    enum fgw_err err = read_block(tree, cid, &block, error);
    if (err == FGW_OK && cid->codec == FGW_CODEC_RAW) {
        err = give(tree, fgw_buf_bytes(&block), error);
    } else if (err == FGW_OK && cid->codec == FGW_CODEC_DAG_PB) {
        err = read_file_node(tree, cid, fgw_buf_bytes(&block), levels, error);
    } else if (err == FGW_OK) {
        err = name_block(cid, FGW_ERR_NOT_IMPLEMENTED, "is neither raw nor dag-pb", error);
    }
    fgw_buf_deinit(&block);
    return err;
}

enum fgw_err fgw_tree_read(struct fgw_tree *tree, const struct fgw_cid_view *root,
                           struct fgw_error *error)
{
    return read_node(tree, root, LEVELS_MAX, error);
}
