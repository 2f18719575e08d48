/* small_read.c: reading extents that the cache of small blobs takes; see small_cache.h. */
#include "blobs/small_cache.h"

struct fgw_blob_reader {
    struct fgw_blob_handle handle; /* first */
    struct fgw_small_cache *cache;
    struct fgw_cid root;
    uint64_t size;
    struct fgw_small_blob *kept;    /* all of it, or */
    struct fgw_blob_reader *stored; /* the store's own */
};

static enum fgw_err read_next(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                              bool prefer_memory, struct fgw_storage_run *out_run)
{
    if (reader->kept != NULL) {
        return fgw_small_blob_run(reader->kept, offset, want, out_run);
    }
    enum fgw_err err = fgw_blob_read_next(reader->stored, offset, want, prefer_memory, out_run);
    if (err == FGW_OK && out_run->bytes.ptr != NULL && out_run->bytes.len == reader->size) {
        fgw_small_cache_offer(reader->cache, &reader->root, out_run->bytes);
    }
    return err;
}

static enum fgw_err read_leaf(struct fgw_blob_reader *reader, uint64_t leaf,
                              uint8_t out_digest[FGW_SHA256_SIZE])
{
    if (leaf > 0) {
        return FGW_ERR_NOT_FOUND;
    }
    memcpy(out_digest, fgw_cid_digest(&reader->root), FGW_SHA256_SIZE);
    return FGW_OK;
}

static void read_close(struct fgw_blob_reader *reader)
{
    fgw_small_blob_give(reader->kept);
    fgw_blob_read_close(reader->stored);
    fgw_xfree(reader);
}

static const struct fgw_blobs_ops OPS = {
    .read_next = read_next, .read_leaf = read_leaf, .read_close = read_close};

enum fgw_err fgw_small_read_open(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                                 struct fgw_blob_reader **out_reader, struct fgw_error *error)
{
    struct fgw_blob_reader reader = {
        .handle = {&OPS}, .cache = blobs->cache, .root = extent->root, .size = extent->size};
    reader.kept = fgw_small_cache_look(blobs->cache, &extent->root);
    if (reader.kept == NULL) {
        enum fgw_err err = blobs->ops->read_open(blobs, extent, &reader.stored, error);
        if (err != FGW_OK) {
            return err;
        }
    }
    *out_reader = fgw_xmalloc(sizeof **out_reader);
    **out_reader = reader;
    return FGW_OK;
}
