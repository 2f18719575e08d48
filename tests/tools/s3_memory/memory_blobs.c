/* memory_blobs.c: see memory_store.h. A blob's place is its index in the store's table. */
#include "memory_store.h"

#include "base/check.h"

struct memory_blobs {
    struct fgw_blobs blobs;
    struct fgw_buf *table;
    size_t count;
};

struct memory_stage {
    struct fgw_blob_handle handle;
    struct memory_blobs *store;
    struct fgw_blob_stage_options options;
    struct fgw_storage_owner owner;
    struct fgw_buf bytes;
};

struct memory_reader {
    struct fgw_blob_handle handle;
    struct fgw_bytes bytes;
};

static enum fgw_err stage_begin(struct fgw_blobs *blobs,
                                const struct fgw_blob_stage_options *options,
                                struct fgw_blob_stage **out_stage, struct fgw_error *error)
{
    (void)error;
    struct memory_stage *stage = fgw_xcalloc(1, sizeof *stage);
    stage->handle.ops = blobs->ops;
    stage->store = (struct memory_blobs *)blobs;
    stage->options = *options;
    stage->owner = *options->owner;
    stage->owner.key = fgw_arena_copy(options->arena, options->owner->key);
    fgw_buf_init(&stage->bytes, 0);
    *out_stage = (struct fgw_blob_stage *)stage;
    return FGW_OK;
}

static enum fgw_err stage_write(struct fgw_blob_stage *handle, struct fgw_bytes bytes)
{
    return fgw_buf_append(&((struct memory_stage *)handle)->bytes, bytes);
}

static enum fgw_err stage_finish(struct fgw_blob_stage *handle, struct fgw_blob_staged *out_staged)
{
    struct memory_stage *stage = (struct memory_stage *)handle;
    struct memory_blobs *store = stage->store;
    store->table = fgw_xrealloc(store->table, (store->count + 1) * sizeof *store->table);
    store->table[store->count] = stage->bytes;
    *out_staged = (struct fgw_blob_staged){
        .blobs = &store->blobs,
        .owner = stage->owner,
        .extent = {.number = stage->options.extent_number,
                   .root = fgw_cid_of(FGW_CODEC_RAW, fgw_buf_bytes(&stage->bytes)),
                   .size = stage->bytes.len,
                   .first = {.group = 1, .offset = store->count}},
    };
    store->count++;
    fgw_xfree(stage);
    return FGW_OK;
}

static void stage_abort(struct fgw_blob_stage *handle)
{
    struct memory_stage *stage = (struct memory_stage *)handle;
    if (stage != NULL) {
        fgw_buf_deinit(&stage->bytes);
        fgw_xfree(stage);
    }
}

static enum fgw_err stage_copy(struct fgw_blobs *blobs,
                               const struct fgw_blob_stage_options *options,
                               const struct fgw_extent *source, struct fgw_blob_staged *out_staged)
{
    *out_staged = (struct fgw_blob_staged){
        .blobs = blobs, .owner = *options->owner, .extent = *source, .held_copy = true};
    out_staged->extent.number = options->extent_number;
    return FGW_OK;
}

static enum fgw_err make_durable(struct fgw_blob_staged *staged)
{
    (void)staged;
    return FGW_OK;
}

static void forget(struct fgw_blob_staged *staged)
{
    (void)staged;
}

static void release(struct fgw_blobs *blobs, const struct fgw_storage_owner *owner,
                    const struct fgw_extent *extents, size_t count)
{
    (void)blobs;
    (void)owner;
    (void)extents;
    (void)count;
}

static enum fgw_err read_open(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                              struct fgw_blob_reader **out_reader, struct fgw_error *error)
{
    (void)error;
    struct memory_blobs *store = (struct memory_blobs *)blobs;
    FGW_CHECK(extent->first.offset < store->count);
    struct memory_reader *reader = fgw_xcalloc(1, sizeof *reader);
    reader->handle.ops = blobs->ops;
    reader->bytes = fgw_buf_bytes(&store->table[extent->first.offset]);
    *out_reader = (struct fgw_blob_reader *)reader;
    return FGW_OK;
}

static enum fgw_err read_next(struct fgw_blob_reader *handle, uint64_t offset, size_t want,
                              bool prefer_memory, struct fgw_storage_run *out_run)
{
    enum { RUN_BYTES = 100 * 1000 };
    (void)prefer_memory;
    struct memory_reader *reader = (struct memory_reader *)handle;
    struct fgw_bytes run =
        fgw_bytes_sub(reader->bytes, offset, want < RUN_BYTES ? want : RUN_BYTES);
    *out_run = (struct fgw_storage_run){.bytes = run, .fd = -1};
    return FGW_OK;
}

static enum fgw_err read_leaf(struct fgw_blob_reader *reader, uint64_t leaf,
                              uint8_t out_digest[FGW_SHA256_SIZE])
{
    struct fgw_bytes all = ((struct memory_reader *)reader)->bytes;
    if (leaf > 0 && leaf * FGW_STORAGE_BLOCK_MAX >= all.len) {
        return FGW_ERR_NOT_FOUND;
    }
    fgw_sha256(fgw_bytes_sub(all, leaf * FGW_STORAGE_BLOCK_MAX, FGW_STORAGE_BLOCK_MAX), out_digest);
    return FGW_OK;
}

static void read_close(struct fgw_blob_reader *handle)
{
    fgw_xfree(handle);
}

static const struct fgw_blobs_ops OPS = {
    .stage_begin = stage_begin,
    .stage_write = stage_write,
    .stage_finish = stage_finish,
    .stage_abort = stage_abort,
    .stage_copy = stage_copy,
    .make_durable = make_durable,
    .confirm = forget,
    .discard = forget,
    .release = release,
    .read_open = read_open,
    .read_next = read_next,
    .read_leaf = read_leaf,
    .read_close = read_close,
};

struct fgw_blobs *memory_blobs_new(void)
{
    struct memory_blobs *store = fgw_xcalloc(1, sizeof *store);
    store->blobs.ops = &OPS;
    return &store->blobs;
}

void memory_blobs_free(struct fgw_blobs *blobs)
{
    struct memory_blobs *store = (struct memory_blobs *)blobs;
    for (size_t i = 0; i < store->count; i++) {
        fgw_buf_deinit(&store->table[i]);
    }
    fgw_xfree(store->table);
    fgw_xfree(store);
}
