/* local.c: see local.h. A body is cut into leaves of 1 MiB, hashed as it comes (SHA-256 and CRC32C).
 * Up to FGW_STORAGE_INLINE_MAX it stays in memory and is committed with its name; above, full
 * leaves go to a bulk group through a storage writer, the DAG's nodes behind them, and finish makes
 * all of it durable and held.
 */
#include "blobs/local.h"

#include <pthread.h>

#include "base/crc.h"
#include "blobs/leaf.h"
#include "cid/dag.h"
#include "event/fiber.h"

enum { HASH_STEP = 64 * 1024, FIRST_BUFFER = 16 * 1024, SPARE_MAX = 8 };

struct local {
    struct fgw_blobs base;
    struct fgw_storage *storage;
    /* Memory of whole leaves, kept: else each body's leaf is given back to the system and faulted in
     * again page by page. */
    struct {
        pthread_mutex_t mutex;
        uint8_t *leaves[SPARE_MAX];
        size_t count;
    } spare;
};

struct fgw_blob_stage {
    struct fgw_blob_handle handle; /* first */
    struct local *local;
    struct fgw_arena *arena;
    struct fgw_storage_owner owner;
    uint64_t extent_number;
    uint64_t size;
    /* the leaf being filled */
    uint8_t *leaf;
    size_t leaf_len;
    size_t leaf_capacity;
    bool leaf_in_arena;
    struct fgw_md5 *md5; /* of the options */
    struct fgw_leaf_hash sha256;
    uint32_t crc32c;
    /* once it is too large for memory */
    struct fgw_storage_writer *writer;
    struct fgw_dag_builder *dag;
    enum fgw_err failed;
};

/* How a staged blob stands towards the store. */
enum held { HELD_NOT, HELD_DURABLE };

struct staged_state {
    enum held held;
};

static struct local *local_of(struct fgw_blobs *blobs)
{
    return FGW_CONTAINER_OF(blobs, struct local, base);
}

static uint8_t *take_leaf(struct local *local)
{
    (void)pthread_mutex_lock(&local->spare.mutex);
    uint8_t *leaf = local->spare.count > 0 ? local->spare.leaves[--local->spare.count] : NULL;
    (void)pthread_mutex_unlock(&local->spare.mutex);
    return leaf != NULL ? leaf : fgw_xmalloc(FGW_STORAGE_BLOCK_MAX);
}

static void give_leaf(struct local *local, uint8_t *leaf)
{
    (void)pthread_mutex_lock(&local->spare.mutex);
    bool kept = local->spare.count < SPARE_MAX;
    if (kept) {
        local->spare.leaves[local->spare.count++] = leaf;
    }
    (void)pthread_mutex_unlock(&local->spare.mutex);
    if (!kept) {
        fgw_xfree(leaf);
    }
}

/* -- staging ------------------------------------------------------------------------------------- */

static void begin_leaf(struct fgw_blob_stage *stage)
{
    stage->leaf_len = 0;
    stage->crc32c = 0;
    fgw_leaf_hash_begin(&stage->sha256, stage->md5);
}

static enum fgw_err stage_begin(struct fgw_blobs *blobs,
                                const struct fgw_blob_stage_options *options,
                                struct fgw_blob_stage **out_stage, struct fgw_error *error)
{
    (void)error;
    struct fgw_blob_stage *stage = fgw_arena_zalloc(options->arena, sizeof *stage);
    stage->handle.ops = blobs->ops;
    stage->local = local_of(blobs);
    stage->arena = options->arena;
    stage->owner = *options->owner;
    stage->owner.key = fgw_arena_copy(options->arena, options->owner->key);
    stage->extent_number = options->extent_number;
    stage->md5 = options->md5;
    if (options->size_hint <= FGW_STORAGE_INLINE_MAX) {
        stage->leaf_capacity = (size_t)options->size_hint;
        stage->leaf = fgw_arena_alloc(options->arena, stage->leaf_capacity + 1);
        stage->leaf_in_arena = true;
    } else {
        stage->leaf_capacity =
            options->size_hint == UINT64_MAX
                ? FIRST_BUFFER
                : (options->size_hint < FGW_STORAGE_BLOCK_MAX ? (size_t)options->size_hint
                                                              : FGW_STORAGE_BLOCK_MAX);
        stage->leaf = stage->leaf_capacity == FGW_STORAGE_BLOCK_MAX
                          ? take_leaf(stage->local)
                          : fgw_xmalloc(stage->leaf_capacity);
    }
    begin_leaf(stage);
    *out_stage = stage;
    return FGW_OK;
}

static void grow_leaf(struct fgw_blob_stage *stage)
{
    size_t capacity = stage->leaf_capacity * 4;
    capacity = capacity < FIRST_BUFFER ? FIRST_BUFFER : capacity;
    capacity = capacity > FGW_STORAGE_BLOCK_MAX ? FGW_STORAGE_BLOCK_MAX : capacity;
    if (stage->leaf_in_arena) {
        uint8_t *leaf = fgw_xmalloc(capacity);
        memcpy(leaf, stage->leaf, stage->leaf_len);
        stage->leaf = leaf;
        stage->leaf_in_arena = false;
    } else {
        stage->leaf = fgw_xrealloc(stage->leaf, capacity);
    }
    stage->leaf_capacity = capacity;
}

static struct fgw_storage_block end_leaf(struct fgw_blob_stage *stage)
{
    uint8_t digest[FGW_SHA256_SIZE];
    fgw_leaf_hash_end(&stage->sha256, digest);
    return (struct fgw_storage_block){fgw_cid_make(FGW_CODEC_RAW, digest), stage->crc32c,
                                      fgw_bytes(stage->leaf, stage->leaf_len)};
}

static enum fgw_err add_node(void *context, const struct fgw_cid *cid, struct fgw_bytes node)
{
    struct fgw_blob_stage *stage = context;
    struct fgw_storage_block block = {*cid, fgw_crc32c(0, node), node};
    return fgw_storage_writer_add(stage->writer, &block, false);
}

/* Too large for memory. */
static enum fgw_err open_writer(struct fgw_blob_stage *stage)
{
    enum fgw_err err = fgw_storage_writer_new(stage->local->storage, &stage->owner,
                                              stage->extent_number, UINT64_MAX, &stage->writer);
    if (err == FGW_OK) {
        stage->dag = fgw_dag_builder_new(&fgw_dag_unixfs_v1_2025, add_node, stage);
    }
    return err;
}

static enum fgw_err flush_leaf(struct fgw_blob_stage *stage)
{
    struct fgw_storage_block block = end_leaf(stage);
    enum fgw_err err = stage->writer == NULL ? open_writer(stage) : FGW_OK;
    if (err == FGW_OK) {
        err = fgw_storage_writer_add(stage->writer, &block, true);
    }
    if (err == FGW_OK) {
        err = fgw_dag_builder_add(stage->dag, &block.cid, block.bytes.len);
    }
    begin_leaf(stage);
    return err;
}

/* At most HASH_STEP bytes, within the leaf. */
static void fill_leaf(struct fgw_blob_stage *stage, struct fgw_bytes piece)
{
    while (stage->leaf_capacity - stage->leaf_len < piece.len) {
        grow_leaf(stage);
    }
    if (piece.ptr != stage->leaf + stage->leaf_len) {
        memcpy(stage->leaf + stage->leaf_len, piece.ptr, piece.len);
    }
    fgw_leaf_hash_update(&stage->sha256, piece);
    stage->crc32c = fgw_crc32c(stage->crc32c, piece);
    stage->leaf_len += piece.len;
    stage->size += piece.len;
}

static enum fgw_err stage_write(struct fgw_blob_stage *stage, struct fgw_bytes bytes)
{
    while (bytes.len > 0 && stage->failed == FGW_OK) {
        size_t room = FGW_STORAGE_BLOCK_MAX - stage->leaf_len;
        size_t step = room < HASH_STEP ? room : HASH_STEP;
        struct fgw_bytes piece = fgw_bytes_sub(bytes, 0, step);
        fill_leaf(stage, piece);
        bytes = fgw_bytes_sub(bytes, piece.len, SIZE_MAX);
        if (stage->leaf_len == FGW_STORAGE_BLOCK_MAX) {
            stage->failed = flush_leaf(stage);
        } else if (bytes.len > 0) {
            fgw_fiber_yield();
        }
    }
    return stage->failed;
}

/* Nothing of a leaf that still has to grow: it may move. */
static size_t stage_room(struct fgw_blob_stage *stage, uint8_t **out_room)
{
    if (stage->failed != FGW_OK || stage->leaf_capacity < FIRST_BUFFER) {
        return 0;
    }
    *out_room = stage->leaf + stage->leaf_len;
    return stage->leaf_capacity - stage->leaf_len;
}

static void end_stage(struct fgw_blob_stage *stage)
{
    fgw_dag_builder_free(stage->dag);
    fgw_storage_writer_free(stage->writer);
    fgw_leaf_hash_deinit(&stage->sha256);
    if (stage->leaf_capacity == FGW_STORAGE_BLOCK_MAX) { /* never in the arena */
        give_leaf(stage->local, stage->leaf);
    } else if (!stage->leaf_in_arena) {
        fgw_xfree(stage->leaf);
    }
}

static void stage_abort(struct fgw_blob_stage *stage)
{
    end_stage(stage);
}

static struct fgw_blob_staged make_staged(struct fgw_blobs *blobs, struct fgw_arena *arena,
                                          const struct fgw_storage_owner *owner)
{
    struct staged_state *state = fgw_arena_zalloc(arena, sizeof *state);
    return (struct fgw_blob_staged){.blobs = blobs, .owner = *owner, .private_state = state};
}

static void finish_in_memory(struct fgw_blob_stage *stage, struct fgw_blob_staged *staged)
{
    staged->in_memory = true;
    staged->block = end_leaf(stage);
    if (!stage->leaf_in_arena) {
        staged->block.bytes = fgw_arena_copy(stage->arena, staged->block.bytes);
    }
    staged->extent = (struct fgw_extent){
        .number = stage->extent_number, .root = staged->block.cid, .size = stage->size};
}

static enum fgw_err finish_written(struct fgw_blob_stage *stage, struct fgw_blob_staged *staged)
{
    struct fgw_dag_root root;
    enum fgw_err err = stage->leaf_len > 0 ? flush_leaf(stage) : FGW_OK;
    if (err == FGW_OK) {
        err = fgw_dag_builder_finish(stage->dag, &root);
    }
    if (err == FGW_OK) {
        err = fgw_storage_writer_finish(stage->writer, &root.cid, stage->size);
    }
    if (err == FGW_OK) {
        ((struct staged_state *)staged->private_state)->held = HELD_DURABLE;
        staged->extent = (struct fgw_extent){
            .number = stage->extent_number, .root = root.cid, .size = stage->size};
    }
    return err;
}

static enum fgw_err stage_finish(struct fgw_blob_stage *stage, struct fgw_blob_staged *out_staged)
{
    struct fgw_blob_staged staged = make_staged(&stage->local->base, stage->arena, &stage->owner);
    enum fgw_err err = stage->failed;
    if (err == FGW_OK && stage->writer == NULL && stage->size <= FGW_STORAGE_INLINE_MAX) {
        finish_in_memory(stage, &staged);
    } else if (err == FGW_OK) {
        err = finish_written(stage, &staged);
    }
    end_stage(stage);
    if (err == FGW_OK) {
        *out_staged = staged;
    }
    return err;
}

/* -- holds --------------------------------------------------------------------------------------- */

static enum fgw_err accept(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    (void)op;
    (void)txn;
    return FGW_OK;
}

static enum fgw_err make_durable(struct fgw_blob_staged *staged)
{
    struct staged_state *state = staged->private_state;
    struct fgw_storage_hold hold = {.owner = &staged->owner,
                                    .extent = staged->extent.number,
                                    .root = staged->extent.root,
                                    .size_bytes = staged->extent.size,
                                    .block = staged->in_memory ? &staged->block : NULL,
                                    .listed = true};
    struct fgw_storage_op op = {
        .name = "hold", .evaluate = accept, .holds = &hold, .hold_count = 1};
    if (state->held == HELD_DURABLE) {
        return FGW_OK;
    }
    enum fgw_err err = fgw_storage_commit(local_of(staged->blobs)->storage, &op);
    if (err == FGW_OK) {
        state->held = HELD_DURABLE;
        staged->in_memory = false;
        staged->held_copy = false;
    }
    return err;
}

/* The hold is granted by the commit that names it, or by make_durable. */
static enum fgw_err stage_copy(struct fgw_blobs *blobs,
                               const struct fgw_blob_stage_options *options,
                               const struct fgw_extent *source, struct fgw_blob_staged *out_staged)
{
    struct fgw_storage_reader *reader;
    struct fgw_storage_owner owner = *options->owner;
    enum fgw_err err =
        fgw_storage_reader_open(local_of(blobs)->storage, &source->root, NULL, &reader);
    if (err != FGW_OK) {
        return err;
    }
    bool same = fgw_storage_reader_size(reader) == source->size;
    fgw_storage_reader_close(reader);
    if (!same) {
        return FGW_ERR_NOT_FOUND;
    }
    owner.key = fgw_arena_copy(options->arena, owner.key);
    *out_staged = make_staged(blobs, options->arena, &owner);
    out_staged->held_copy = true;
    out_staged->extent = *source;
    out_staged->extent.number = options->extent_number;
    return FGW_OK;
}

static void confirm(struct fgw_blob_staged *staged)
{
    (void)staged; /* the name and the hold are on one machine: the sweeper asks the metadata */
}

static enum fgw_err evaluate_release(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    const struct fgw_blob_staged *staged = op->context;
    fgw_storage_txn_release(txn, staged->owner.owner_id, staged->extent.number,
                            &staged->extent.root);
    return FGW_OK;
}

static void discard(struct fgw_blob_staged *staged)
{
    struct staged_state *state = staged->private_state;
    struct fgw_storage_op op = {
        .name = "discard", .evaluate = evaluate_release, .context = staged, .frees_space = true};
    if (state->held == HELD_DURABLE) {
        state->held = HELD_NOT;
        /* what cannot be released now is found by the sweeper */
        (void)!fgw_storage_commit(local_of(staged->blobs)->storage, &op);
    }
}

static void release(struct fgw_blobs *blobs, const struct fgw_storage_owner *owner,
                    const struct fgw_extent *extents, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fgw_storage_release_hint(local_of(blobs)->storage, owner, extents[i].number,
                                 &extents[i].root);
    }
}

/* -- reading ------------------------------------------------------------------------------------- */

struct fgw_blob_reader {
    struct fgw_blob_handle handle; /* first */
    struct fgw_storage_reader *reader;
};

static enum fgw_err read_open(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                              struct fgw_blob_reader **out_reader, struct fgw_error *error)
{
    struct fgw_storage_reader *reader;
    enum fgw_err err =
        fgw_storage_reader_open(local_of(blobs)->storage, &extent->root, &extent->first, &reader);
    if (err == FGW_OK && fgw_storage_reader_size(reader) != extent->size) {
        fgw_storage_reader_close(reader);
        err = FGW_ERR_CORRUPT;
    }
    if (err != FGW_OK) {
        return fgw_error_set(error, err, NULL);
    }
    struct fgw_blob_reader *blob = fgw_xmalloc(sizeof *blob);
    *blob = (struct fgw_blob_reader){{blobs->ops}, reader};
    *out_reader = blob;
    return FGW_OK;
}

static enum fgw_err read_next(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                              bool prefer_memory, struct fgw_storage_run *out_run)
{
    return fgw_storage_reader_next(reader->reader, offset, want, prefer_memory, out_run);
}

static enum fgw_err read_leaf(struct fgw_blob_reader *reader, uint64_t leaf,
                              uint8_t out_digest[FGW_SHA256_SIZE])
{
    return fgw_storage_reader_leaf(reader->reader, leaf, out_digest);
}

static void read_close(struct fgw_blob_reader *reader)
{
    fgw_storage_reader_close(reader->reader);
    fgw_xfree(reader);
}

static const struct fgw_blobs_ops OPS = {
    .stage_takes_md5 = true,
    .stage_begin = stage_begin,
    .stage_write = stage_write,
    .stage_room = stage_room,
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

struct fgw_blobs *fgw_blobs_local_new(struct fgw_storage *storage)
{
    struct local *local = fgw_xcalloc(1, sizeof *local);
    local->base.ops = &OPS;
    local->storage = storage;
    (void)pthread_mutex_init(&local->spare.mutex, NULL);
    return &local->base;
}

void fgw_blobs_local_free(struct fgw_blobs *blobs)
{
    if (blobs == NULL) {
        return;
    }
    struct local *local = local_of(blobs);
    for (size_t i = 0; i < local->spare.count; i++) {
        fgw_xfree(local->spare.leaves[i]);
    }
    (void)pthread_mutex_destroy(&local->spare.mutex);
    fgw_xfree(local);
}
