/* memory_blobs.c: see memory_blobs.h. */
#include "contract/meta/memory_blobs.h"

#include "base/list.h"
#include "cid/cid.h"

struct memory_blob {
    struct fgw_list node;
    uint8_t owner_id[FGW_STORAGE_ID_SIZE];
    struct fgw_extent extent;
    struct fgw_buf bytes;
    bool durable;
    bool discarded;
};

struct memory_blobs {
    struct fgw_blobs base;
    struct fgw_list blobs;
    struct memory_blobs_counts counts;
};

struct fgw_blob_stage {
    struct fgw_blob_handle handle;
    struct memory_blobs *store;
    struct fgw_storage_owner owner;
    struct memory_blob *blob;
};

struct fgw_blob_reader {
    struct fgw_blob_handle handle;
    const struct memory_blob *blob;
};

static struct memory_blobs *store_of(struct fgw_blobs *blobs)
{
    return (struct memory_blobs *)(void *)blobs;
}

static struct memory_blob *new_blob(const struct fgw_storage_owner *owner, uint64_t number)
{
    struct memory_blob *blob = fgw_xcalloc(1, sizeof *blob);
    memcpy(blob->owner_id, owner->owner_id, sizeof blob->owner_id);
    blob->extent.number = number;
    fgw_buf_init(&blob->bytes, 0);
    return blob;
}

static enum fgw_err stage_begin(struct fgw_blobs *blobs,
                                const struct fgw_blob_stage_options *options,
                                struct fgw_blob_stage **out_stage, struct fgw_error *error)
{
    (void)error;
    struct fgw_blob_stage *stage = fgw_arena_zalloc(options->arena, sizeof *stage);
    stage->handle.ops = blobs->ops;
    stage->store = store_of(blobs);
    stage->owner = *options->owner;
    stage->owner.key = fgw_arena_copy(options->arena, options->owner->key);
    stage->blob = new_blob(options->owner, options->extent_number);
    *out_stage = stage;
    return FGW_OK;
}

static enum fgw_err stage_write(struct fgw_blob_stage *stage, struct fgw_bytes bytes)
{
    return fgw_buf_append(&stage->blob->bytes, bytes);
}

static enum fgw_err stage_finish(struct fgw_blob_stage *stage, struct fgw_blob_staged *out_staged)
{
    struct memory_blob *blob = stage->blob;
    blob->extent.size = blob->bytes.len;
    blob->extent.root = fgw_cid_of(FGW_CODEC_RAW, fgw_buf_bytes(&blob->bytes));
    fgw_list_push_back(&stage->store->blobs, &blob->node);
    stage->store->counts.staged++;
    *out_staged = (struct fgw_blob_staged){.blobs = &stage->store->base,
                                           .owner = stage->owner,
                                           .extent = blob->extent,
                                           .private_state = blob};
    return FGW_OK;
}

static void free_blob(struct memory_blob *blob)
{
    fgw_buf_deinit(&blob->bytes);
    fgw_xfree(blob);
}

static void stage_abort(struct fgw_blob_stage *stage)
{
    free_blob(stage->blob);
}

static enum fgw_err stage_copy(struct fgw_blobs *blobs,
                               const struct fgw_blob_stage_options *options,
                               const struct fgw_extent *source, struct fgw_blob_staged *out_staged)
{
    (void)blobs;
    (void)options;
    (void)source;
    (void)out_staged;
    return FGW_ERR_NOT_FOUND;
}

static enum fgw_err make_durable(struct fgw_blob_staged *staged)
{
    struct memory_blob *blob = staged->private_state;
    blob->durable = true;
    store_of(staged->blobs)->counts.durable++;
    return FGW_OK;
}

static void confirm(struct fgw_blob_staged *staged)
{
    store_of(staged->blobs)->counts.confirmed++;
}

static void discard(struct fgw_blob_staged *staged)
{
    struct memory_blob *blob = staged->private_state;
    blob->discarded = true;
    store_of(staged->blobs)->counts.discarded++;
}

static void release(struct fgw_blobs *blobs, const struct fgw_storage_owner *owner,
                    const struct fgw_extent *extents, size_t count)
{
    (void)owner;
    (void)extents;
    store_of(blobs)->counts.released += (unsigned)count;
}

static enum fgw_err read_open(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                              struct fgw_blob_reader **out_reader, struct fgw_error *error)
{
    struct memory_blobs *store = store_of(blobs);
    (void)error;
    for (struct fgw_list *at = store->blobs.next; at != &store->blobs; at = at->next) {
        struct memory_blob *blob = FGW_CONTAINER_OF(at, struct memory_blob, node);
        if (blob->durable && !blob->discarded && fgw_cid_eq(&blob->extent.root, &extent->root)) {
            struct fgw_blob_reader *reader = fgw_xcalloc(1, sizeof *reader);
            reader->handle.ops = blobs->ops;
            reader->blob = blob;
            *out_reader = reader;
            return FGW_OK;
        }
    }
    return FGW_ERR_NOT_FOUND;
}

static enum fgw_err read_next(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                              bool prefer_memory, struct fgw_storage_run *out_run)
{
    (void)prefer_memory;
    *out_run = (struct fgw_storage_run){
        .bytes = fgw_bytes_sub(fgw_buf_bytes(&reader->blob->bytes), (size_t)offset, want),
        .fd = -1};
    return FGW_OK;
}

static enum fgw_err read_leaf(struct fgw_blob_reader *reader, uint64_t leaf,
                              uint8_t out_digest[FGW_SHA256_SIZE])
{
    struct fgw_bytes all = fgw_buf_bytes(&reader->blob->bytes);
    if (leaf > 0 && leaf * FGW_STORAGE_BLOCK_MAX >= all.len) {
        return FGW_ERR_NOT_FOUND;
    }
    fgw_sha256(fgw_bytes_sub(all, leaf * FGW_STORAGE_BLOCK_MAX, FGW_STORAGE_BLOCK_MAX), out_digest);
    return FGW_OK;
}

static void read_close(struct fgw_blob_reader *reader)
{
    fgw_xfree(reader);
}

static const struct fgw_blobs_ops OPS = {
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
    .read_leaf = read_leaf,
    .read_close = read_close,
};

struct fgw_blobs *memory_blobs_new(void)
{
    struct memory_blobs *store = fgw_xcalloc(1, sizeof *store);
    store->base.ops = &OPS;
    fgw_list_init(&store->blobs);
    return &store->base;
}

void memory_blobs_free(struct fgw_blobs *blobs)
{
    struct memory_blobs *store = store_of(blobs);
    struct fgw_list *at;
    while ((at = fgw_list_pop_front(&store->blobs)) != NULL) {
        free_blob(FGW_CONTAINER_OF(at, struct memory_blob, node));
    }
    fgw_xfree(store);
}

bool memory_blobs_hold(const struct fgw_blobs *blobs, const uint8_t owner_id[FGW_STORAGE_ID_SIZE],
                       const struct fgw_extent *extent)
{
    const struct memory_blobs *store = (const struct memory_blobs *)(const void *)blobs;
    for (struct fgw_list *at = store->blobs.next; at != &store->blobs; at = at->next) {
        struct memory_blob *blob = FGW_CONTAINER_OF(at, struct memory_blob, node);
        if (memcmp(blob->owner_id, owner_id, sizeof blob->owner_id) == 0 &&
            blob->extent.number == extent->number) {
            return blob->durable && !blob->discarded &&
                   fgw_cid_eq(&blob->extent.root, &extent->root);
        }
    }
    return false;
}

struct memory_blobs_counts memory_blobs_counts(const struct fgw_blobs *blobs)
{
    return ((const struct memory_blobs *)(const void *)blobs)->counts;
}
