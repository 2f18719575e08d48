/* local.c: see local.h. Bodies of one inline block; larger ones follow with the bulk groups. */
#include "blobs/local.h"

#include "base/crc.h"
#include "base/digest.h"

struct local {
    struct fgw_blobs base;
    struct fgw_storage *storage;
};

struct local_stage {
    struct fgw_blob_handle handle;
    struct local *local;
    struct fgw_blob_stage_options options;
    struct fgw_storage_owner owner;
    struct fgw_buf body;
};

struct local_reader {
    struct fgw_blob_handle handle;
    struct fgw_storage_reader *reader;
};

static const struct fgw_blobs_ops LOCAL_OPS;

static enum fgw_err stage_begin(struct fgw_blobs *blobs, const struct fgw_blob_stage_options *options,
                                struct fgw_blob_stage **out_stage, struct fgw_error *error)
{
    (void)error;
    struct local_stage *stage = fgw_xcalloc(1, sizeof *stage);
    stage->handle.ops = &LOCAL_OPS;
    stage->local = (struct local *)(void *)blobs;
    stage->options = *options;
    stage->owner = *options->owner;
    stage->owner.key = fgw_arena_copy(options->arena, options->owner->key);
    fgw_buf_init(&stage->body, FGW_STORAGE_INLINE_MAX);
    *out_stage = (struct fgw_blob_stage *)(void *)stage;
    return FGW_OK;
}

static enum fgw_err stage_write(struct fgw_blob_stage *opaque, struct fgw_bytes bytes)
{
    struct local_stage *stage = (struct local_stage *)(void *)opaque;
    return fgw_buf_append(&stage->body, bytes) == FGW_OK ? FGW_OK : FGW_ERR_NOT_IMPLEMENTED;
}

static void stage_abort(struct fgw_blob_stage *opaque)
{
    struct local_stage *stage = (struct local_stage *)(void *)opaque;
    fgw_buf_deinit(&stage->body);
    fgw_xfree(stage);
}

static enum fgw_err stage_finish(struct fgw_blob_stage *opaque, struct fgw_blob_staged *out)
{
    struct local_stage *stage = (struct local_stage *)(void *)opaque;
    uint8_t digest[FGW_SHA256_SIZE];
    struct fgw_bytes bytes = fgw_arena_copy(stage->options.arena, fgw_buf_bytes(&stage->body));
    fgw_sha256(bytes, digest);
    *out = (struct fgw_blob_staged){.blobs = &stage->local->base, .owner = stage->owner,
                                    .in_memory = true};
    out->block.cid = fgw_cid_make(FGW_CODEC_RAW, digest);
    out->block.crc32c = fgw_crc32c(0, bytes);
    out->block.bytes = bytes;
    out->extent = (struct fgw_extent){.number = stage->options.extent_number,
                                      .root = out->block.cid, .size = bytes.len};
    stage_abort(opaque);
    return FGW_OK;
}

static enum fgw_err stage_copy(struct fgw_blobs *blobs, const struct fgw_blob_stage_options *options,
                               const struct fgw_extent *source, struct fgw_blob_staged *out)
{
    (void)blobs;
    (void)options;
    (void)source;
    (void)out;
    return FGW_ERR_NOT_FOUND;
}

static enum fgw_err accept_all(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    (void)op;
    (void)txn;
    return FGW_OK;
}

static enum fgw_err make_durable(struct fgw_blob_staged *staged)
{
    struct local *local = (struct local *)(void *)staged->blobs;
    if (!staged->in_memory) {
        return FGW_OK;
    }
    struct fgw_storage_hold hold = {.owner = &staged->owner, .extent = staged->extent.number,
                                    .root = staged->extent.root,
                                    .size_bytes = staged->extent.size, .block = &staged->block};
    struct fgw_storage_op op = {.name = "hold", .evaluate = accept_all, .holds = &hold,
                                .hold_count = 1};
    enum fgw_err err = fgw_storage_commit(local->storage, &op);
    if (err == FGW_OK) {
        staged->in_memory = false;
    }
    return err;
}

static void confirm(struct fgw_blob_staged *staged)
{
    (void)staged;
}

static void discard(struct fgw_blob_staged *staged)
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
    struct local_reader *reader = fgw_xcalloc(1, sizeof *reader);
    reader->handle.ops = &LOCAL_OPS;
    enum fgw_err err = fgw_storage_reader_open(((struct local *)(void *)blobs)->storage,
                                               &extent->root, &extent->first, &reader->reader);
    if (err != FGW_OK) {
        fgw_xfree(reader);
        return err;
    }
    *out_reader = (struct fgw_blob_reader *)(void *)reader;
    return FGW_OK;
}

static enum fgw_err read_next(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                              bool prefer_memory, struct fgw_storage_run *out_run)
{
    return fgw_storage_reader_next(((struct local_reader *)(void *)reader)->reader, offset, want,
                                   prefer_memory, out_run);
}

static void read_close(struct fgw_blob_reader *reader)
{
    fgw_storage_reader_close(((struct local_reader *)(void *)reader)->reader);
    fgw_xfree(reader);
}

static const struct fgw_blobs_ops LOCAL_OPS = {
    .stage_begin = stage_begin,
    .stage_write = stage_write,
    .stage_finish = stage_finish,
    .stage_abort = stage_abort,
    .stage_copy = stage_copy,
    .make_durable = make_durable,
    .confirm = confirm,
    .discard = discard,
    .release = release,
    .read_open = read_open,
    .read_next = read_next,
    .read_close = read_close,
};

struct fgw_blobs *fgw_blobs_local_new(struct fgw_storage *storage)
{
    struct local *local = fgw_xcalloc(1, sizeof *local);
    local->base.ops = &LOCAL_OPS;
    local->storage = storage;
    return &local->base;
}

void fgw_blobs_local_free(struct fgw_blobs *blobs)
{
    fgw_xfree(blobs);
}
