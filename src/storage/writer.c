/* writer.c: writing a blob larger than an inline one (storage.h): blocks go to a bulk group as they
 * come; every FGW_SLICE_BLOCKS of them are synced and logged as a slice of a pending list, the rest
 * at the end together with the root. What was not logged when the process dies belongs to nobody;
 * what was logged without a root is dropped when the directory is opened again.
 */
#include "base/rng.h"
#include "storage/bulk.h"
#include "storage/known.h"
#include "storage/storage_internal.h"
#include "storage/txn.h"

enum { GRANT_TRIES = 5 };

/* Blocks of one kind that are not yet logged: appended, or known to the store, or (neither written
 * nor known) the same as one before them. */
struct pending {
    struct fgw_item_block *blocks; /* grows up to FGW_SLICE_BLOCKS */
    struct fgw_known *known;       /* one for each */
    size_t count;
    size_t capacity;
    uint64_t logged;
};

/* A bulk group that holds pending blocks. */
struct used_file {
    struct fgw_bulk_file *file;
    uint64_t group;
    uint64_t end;
};

struct fgw_storage_writer {
    struct fgw_storage *storage;
    struct fgw_item_owner owner;
    struct fgw_sweep_writer sweep;
    uint8_t *key;
    uint8_t list_id[FGW_LIST_ID_SIZE];
    struct pending pending[FGW_LIST_KINDS];
    struct used_file *files;
    size_t file_count;
    size_t file_capacity;
    uint64_t size;
    bool last_leaf; /* a short leaf came: no more may follow */
    bool tried;     /* to log something: it may be there whatever was answered */
    bool failed;
    bool finished;
};

enum fgw_err fgw_storage_writer_new(struct fgw_storage *storage,
                                    const struct fgw_storage_owner *owner, uint64_t extent,
                                    uint64_t size_hint_bytes,
                                    struct fgw_storage_writer **out_writer)
{
    (void)size_hint_bytes; /* groups are not preallocated */
    if (owner->key.len > FGW_STORAGE_KEY_MAX) {
        return FGW_ERR_TOO_LARGE;
    }
    fgw_storage_check_space(storage, false);
    if (atomic_load(&storage->space.below_reserve)) {
        return FGW_ERR_NOSPACE;
    }
    struct fgw_storage_writer *writer = fgw_xcalloc(1, sizeof *writer);
    writer->storage = storage;
    writer->owner = (struct fgw_item_owner){.address = *owner, .extent = extent, .listed = true};
    writer->key = fgw_xmalloc(owner->key.len + 1);
    if (owner->key.len > 0) {
        memcpy(writer->key, owner->key.ptr, owner->key.len);
    }
    writer->owner.address.key = fgw_bytes(writer->key, owner->key.len);
    fgw_rng_fill(writer->list_id, sizeof writer->list_id);
    fgw_sweep_note_writer(storage, &writer->sweep, writer->owner.address.owner_id);
    *out_writer = writer;
    return FGW_OK;
}

void fgw_storage_writer_set_extent(struct fgw_storage_writer *writer, uint64_t extent)
{
    writer->owner.extent = extent;
}

void fgw_storage_writer_set_pending(struct fgw_storage_writer *writer)
{
    writer->owner.pending = true;
}

/* -- bulk groups in use -------------------------------------------------------------------------- */

/* Keeps one reference a file, whatever number of blocks lies in it. */
static void note_file(struct fgw_storage_writer *writer, const struct fgw_bulk_place *place)
{
    for (size_t i = 0; i < writer->file_count; i++) {
        if (writer->files[i].file == place->file) {
            writer->files[i].end = place->end;
            fgw_bulk_unref(writer->storage->bulk, place->file);
            return;
        }
    }
    if (writer->file_count == writer->file_capacity) {
        writer->file_capacity = 2 * writer->file_capacity + 2;
        writer->files = fgw_xrealloc(writer->files, writer->file_capacity * sizeof *writer->files);
    }
    writer->files[writer->file_count++] = (struct used_file){place->file, place->group, place->end};
}

static void forget_files(struct fgw_storage_writer *writer)
{
    for (size_t i = 0; i < writer->file_count; i++) {
        fgw_bulk_unref(writer->storage->bulk, writer->files[i].file);
    }
    writer->file_count = 0;
}

static enum fgw_err sync_files(struct fgw_storage_writer *writer)
{
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < writer->file_count && err == FGW_OK; i++) {
        err = fgw_bulk_sync(writer->storage->bulk, writer->files[i].file, writer->files[i].end);
    }
    return err;
}

/* -- logging ------------------------------------------------------------------------------------- */

static void put_ends(struct fgw_storage_writer *writer, struct fgw_buf *items)
{
    for (size_t i = 0; i < writer->file_count; i++) {
        fgw_item_put_bulk_end(items, writer->files[i].group, writer->files[i].end);
    }
}

static void put_slice(struct fgw_storage_writer *writer, enum fgw_list_kind kind,
                      struct fgw_buf *items)
{
    struct pending *pending = &writer->pending[kind];
    struct fgw_item_slice slice = {
        .kind = (uint8_t)kind, .first = pending->logged, .owner = writer->owner};
    memcpy(slice.list_id, writer->list_id, sizeof slice.list_id);
    if (pending->count > 0) {
        fgw_item_put_slice(items, &slice, pending->blocks, pending->count);
    }
}

static void forget_known(struct fgw_storage_writer *writer, struct pending *pending)
{
    for (size_t i = 0; i < pending->count; i++) {
        fgw_known_release(writer->storage, &pending->known[i]);
    }
}

static void note_logged(struct fgw_storage_writer *writer, enum fgw_list_kind kind)
{
    struct pending *pending = &writer->pending[kind];
    forget_known(writer, pending);
    pending->logged += pending->count;
    pending->count = 0;
}

/* -- blocks that the store has already ----------------------------------------------------------- */

/* A slice, or the end of the blob, on its way to the committer. */
struct outcome {
    struct fgw_storage_writer *writer;
    enum fgw_list_kind kind;    /* of a slice */
    const struct fgw_cid *root; /* NULL: a slice */
    struct fgw_buf items;
};

static bool covers(const struct outcome *outcome, size_t kind)
{
    return outcome->root != NULL || outcome->kind == (enum fgw_list_kind)kind;
}

/* All or nothing: what is refused is written after all. After a miss it goes on, to miss all rows at
 * once. */
static enum fgw_err evaluate_outcome(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct outcome *outcome = op->context;
    enum fgw_err err = FGW_OK;
    for (size_t kind = 0; kind < FGW_LIST_KINDS; kind++) {
        const struct pending *pending = &outcome->writer->pending[kind];
        for (size_t i = 0; covers(outcome, kind) && i < pending->count; i++) {
            if (pending->known[i].file == NULL) {
                continue;
            }
            enum fgw_err granted = fgw_known_grant(txn, &pending->blocks[i]);
            if (granted != FGW_OK && granted != FGW_ERR_AGAIN) {
                return granted;
            }
            err = granted == FGW_OK ? err : granted;
        }
    }
    return err == FGW_OK ? fgw_buf_append(fgw_txn_items(txn), fgw_buf_bytes(&outcome->items)) : err;
}

/* The bytes are had back from the file they lay in. */
static enum fgw_err write_after_all(struct fgw_storage_writer *writer, struct pending *pending,
                                    size_t i)
{
    struct fgw_item_block *item = &pending->blocks[i];
    struct fgw_bulk_place place;
    struct fgw_buf section;
    struct fgw_storage_block block = {.cid = fgw_cid_make(item->codec, item->digest),
                                      .crc32c = item->crc32c};
    fgw_buf_init(&section, 0);
    enum fgw_err err =
        fgw_known_read(writer->storage, &pending->known[i], item, &section, &block.bytes);
    if (err == FGW_OK) {
        err = fgw_bulk_append(writer->storage->bulk, &block, &place);
    }
    if (err == FGW_OK) {
        note_file(writer, &place);
        item->written = true;
        item->group = place.group;
        item->offset = place.offset;
        fgw_known_release(writer->storage, &pending->known[i]);
    }
    fgw_buf_deinit(&section);
    return err;
}

static enum fgw_err write_refused(struct fgw_storage_writer *writer)
{
    enum fgw_err err = FGW_OK;
    for (size_t kind = 0; kind < FGW_LIST_KINDS; kind++) {
        struct pending *pending = &writer->pending[kind];
        for (size_t i = 0; i < pending->count && err == FGW_OK; i++) {
            bool there = true;
            if (pending->known[i].file != NULL) {
                err = fgw_known_is_there(writer->storage, &pending->blocks[i], &there);
            }
            if (err == FGW_OK && !there) {
                err = write_after_all(writer, pending, i);
            }
        }
    }
    return err;
}

static uint64_t block_count(const struct fgw_storage_writer *writer, enum fgw_list_kind kind)
{
    return writer->pending[kind].logged + writer->pending[kind].count;
}

static void put_end_of_blob(struct fgw_storage_writer *writer, const struct fgw_cid *root,
                            struct fgw_buf *items)
{
    if (fgw_cid_codec(root) == FGW_CODEC_RAW) {
        fgw_item_put_block_hold(items, writer->pending[FGW_LIST_LEAVES].blocks, &writer->owner);
        return;
    }
    struct fgw_item_finish finish = {.size = writer->size,
                                     .leaves = block_count(writer, FGW_LIST_LEAVES),
                                     .nodes = block_count(writer, FGW_LIST_NODES),
                                     .owner = writer->owner};
    memcpy(finish.list_id, writer->list_id, sizeof finish.list_id);
    memcpy(finish.digest, fgw_cid_digest(root), sizeof finish.digest);
    put_slice(writer, FGW_LIST_LEAVES, items);
    put_slice(writer, FGW_LIST_NODES, items);
    fgw_item_put_finish(items, &finish);
}

static enum fgw_err try_outcome(struct outcome *outcome)
{
    struct fgw_storage_writer *writer = outcome->writer;
    struct fgw_storage_op op = {.name = outcome->root == NULL ? "slice" : "finish",
                                .evaluate = evaluate_outcome,
                                .context = outcome,
                                .frees_space = true};
    enum fgw_err err = sync_files(writer);
    if (err != FGW_OK) {
        return err;
    }
    writer->tried = true;
    fgw_buf_clear(&outcome->items);
    put_ends(writer, &outcome->items);
    if (outcome->root == NULL) {
        put_slice(writer, outcome->kind, &outcome->items);
    } else {
        put_end_of_blob(writer, outcome->root, &outcome->items);
    }
    return fgw_storage_commit(writer->storage, &op);
}

static enum fgw_err log_outcome(struct outcome *outcome)
{
    fgw_buf_init(&outcome->items, 0);
    enum fgw_err err = try_outcome(outcome);
    for (int i = 0; i < GRANT_TRIES && err == FGW_ERR_NOT_FOUND; i++) {
        err = write_refused(outcome->writer);
        if (err == FGW_OK) {
            err = try_outcome(outcome);
        }
    }
    fgw_buf_deinit(&outcome->items);
    return err == FGW_ERR_NOT_FOUND ? FGW_ERR_UNAVAILABLE : err;
}

/* A full slice, while the body is still coming. */
static enum fgw_err log_slice(struct fgw_storage_writer *writer, enum fgw_list_kind kind)
{
    struct outcome outcome = {.writer = writer, .kind = kind};
    enum fgw_err err = log_outcome(&outcome);
    if (err != FGW_OK) {
        return err;
    }
    note_logged(writer, kind);
    /* blocks of the other kind may still wait in the same files */
    if (writer->pending[FGW_LIST_LEAVES].count + writer->pending[FGW_LIST_NODES].count == 0) {
        forget_files(writer);
    }
    return FGW_OK;
}

static struct fgw_item_block *next_pending(struct pending *pending, const struct fgw_known *known)
{
    if (pending->count == pending->capacity) {
        pending->capacity = pending->capacity == 0 ? 16 : 2 * pending->capacity;
        pending->blocks =
            fgw_xrealloc(pending->blocks, pending->capacity * sizeof *pending->blocks);
        pending->known = fgw_xrealloc(pending->known, pending->capacity * sizeof *pending->known);
    }
    pending->known[pending->count] = *known;
    return &pending->blocks[pending->count++];
}

/* Bodies of zeros, or of anything that repeats itself. */
static bool stands_before(const struct pending *pending, const struct fgw_storage_block *block)
{
    const uint8_t *digest = fgw_cid_digest(&block->cid);
    for (size_t i = pending->count; i > 0; i--) {
        const struct fgw_item_block *other = &pending->blocks[i - 1];
        if (memcmp(other->digest, digest, sizeof other->digest) == 0) {
            return other->len == block->bytes.len && other->crc32c == block->crc32c;
        }
    }
    return false;
}

static enum fgw_err append_block(struct fgw_storage_writer *writer,
                                 const struct fgw_storage_block *block, struct fgw_item_block *item)
{
    struct fgw_bulk_place place;
    enum fgw_err err = fgw_bulk_append(writer->storage->bulk, block, &place);
    if (err == FGW_OK) {
        note_file(writer, &place);
        item->written = true;
        item->group = place.group;
        item->offset = place.offset;
    }
    return err;
}

static enum fgw_err check_block(struct fgw_storage_writer *writer,
                                const struct fgw_storage_block *block, bool leaf)
{
    if (block->bytes.len == 0 || block->bytes.len > 2 * (size_t)FGW_STORAGE_BLOCK_MAX ||
        (leaf && (writer->last_leaf || block->bytes.len > FGW_STORAGE_BLOCK_MAX))) {
        return FGW_ERR_INTERNAL;
    }
    atomic_fetch_add(&writer->storage->space.used_bytes, block->bytes.len);
    fgw_storage_check_space(writer->storage, false);
    return atomic_load(&writer->storage->space.below_reserve) ? FGW_ERR_NOSPACE : FGW_OK;
}

enum fgw_err fgw_storage_writer_add(struct fgw_storage_writer *writer,
                                    const struct fgw_storage_block *block, bool leaf)
{
    enum fgw_list_kind kind = leaf ? FGW_LIST_LEAVES : FGW_LIST_NODES;
    struct fgw_item_block item = {.codec = (uint8_t)fgw_cid_codec(&block->cid),
                                  .len = (uint32_t)block->bytes.len,
                                  .crc32c = block->crc32c};
    struct fgw_known known = {0};
    enum fgw_err err = writer->failed ? FGW_ERR_IO : check_block(writer, block, leaf);
    if (err == FGW_OK && !stands_before(&writer->pending[kind], block) &&
        !fgw_known_find(writer->storage, block, &known)) {
        err = append_block(writer, block, &item);
    }
    if (err != FGW_OK) {
        writer->failed = true;
        return err;
    }
    memcpy(item.digest, fgw_cid_digest(&block->cid), sizeof item.digest);
    *next_pending(&writer->pending[kind], &known) = item;
    atomic_fetch_add(&writer->storage->figures.spared_bytes, item.written ? 0 : item.len);
    if (leaf) {
        writer->size += block->bytes.len;
        writer->last_leaf = block->bytes.len < FGW_STORAGE_BLOCK_MAX;
    }
    if (writer->pending[kind].count == FGW_SLICE_BLOCKS) {
        err = log_slice(writer, kind);
        writer->failed = err != FGW_OK;
    }
    return err;
}

static bool root_fits(const struct fgw_storage_writer *writer, const struct fgw_cid *root,
                      uint64_t size_bytes)
{
    if (writer->failed || writer->finished || size_bytes != writer->size) {
        return false;
    }
    uint64_t leaves = block_count(writer, FGW_LIST_LEAVES);
    uint64_t nodes = block_count(writer, FGW_LIST_NODES);
    if (fgw_cid_codec(root) == FGW_CODEC_RAW) {
        return leaves == 1 && nodes == 0 &&
               memcmp(writer->pending[FGW_LIST_LEAVES].blocks[0].digest, fgw_cid_digest(root),
                      FGW_SHA256_SIZE) == 0;
    }
    return leaves >= 2 && nodes >= 1;
}

enum fgw_err fgw_storage_writer_finish(struct fgw_storage_writer *writer,
                                       const struct fgw_cid *root, uint64_t size_bytes)
{
    struct outcome outcome = {.writer = writer, .root = root};
    if (!root_fits(writer, root, size_bytes)) {
        return FGW_ERR_INTERNAL;
    }
    enum fgw_err err = log_outcome(&outcome);
    if (err == FGW_OK) {
        note_logged(writer, FGW_LIST_LEAVES);
        note_logged(writer, FGW_LIST_NODES);
    }
    writer->finished = err == FGW_OK;
    writer->failed = err != FGW_OK;
    return err;
}

/* Logged slices of a blob that will never be: dropped by the release worker. If even this cannot be
 * logged, the next opening does it. */
static void abandon(struct fgw_storage_writer *writer)
{
    struct fgw_buf items;
    fgw_buf_init(&items, 0);
    fgw_item_put_bytes(&items, FGW_ITEM_ABANDON,
                       fgw_bytes(writer->list_id, sizeof writer->list_id));
    (void)!fgw_storage_commit_items(writer->storage, "abandon", &items);
    fgw_buf_deinit(&items);
}

void fgw_storage_writer_free(struct fgw_storage_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (!writer->finished && writer->tried) {
        abandon(writer);
    }
    forget_files(writer);
    fgw_sweep_forget_writer(writer->storage, &writer->sweep);
    fgw_xfree(writer->files);
    for (size_t kind = 0; kind < FGW_LIST_KINDS; kind++) {
        forget_known(writer, &writer->pending[kind]);
        fgw_xfree(writer->pending[kind].blocks);
        fgw_xfree(writer->pending[kind].known);
    }
    fgw_xfree(writer->key);
    fgw_xfree(writer);
}
