/* txn.c: see txn.h. */
#include "storage/txn.h"

#include "base/tlv.h"
#include "storage/storage_internal.h"

void fgw_txn_init(struct fgw_storage_txn *txn, struct fgw_storage *storage)
{
    *txn = (struct fgw_storage_txn){.storage = storage};
    fgw_arena_init(&txn->arena, 0);
    fgw_arena_init(&txn->common.arena, 0);
    fgw_txn_begin_batch(txn);
    fgw_buf_init(&txn->value, 0);
    fgw_buf_init(&txn->items, 0);
}

void fgw_txn_deinit(struct fgw_storage_txn *txn)
{
    fgw_arena_deinit(&txn->arena);
    fgw_arena_deinit(&txn->common.arena);
    fgw_buf_deinit(&txn->value);
    fgw_buf_deinit(&txn->items);
    fgw_xfree(txn->places);
}

void fgw_txn_begin_batch(struct fgw_storage_txn *txn)
{
    fgw_arena_reset(&txn->common.arena);
    fgw_rowmap_init(&txn->common.rows, &txn->common.arena);
}

/* -- rows that are not in memory ----------------------------------------------------------------- */

static void miss(struct fgw_storage_txn *txn, enum fgw_kv_family family, struct fgw_bytes lower,
                 const struct fgw_bytes *upper)
{
    size_t upper_len = upper == NULL ? 0 : upper->len;
    struct fgw_missed *missed = fgw_xmalloc(sizeof *missed + lower.len + upper_len);
    uint8_t *bytes = (uint8_t *)(missed + 1);
    *missed = (struct fgw_missed){.next = txn->request->missed,
                                  .family = (int)family,
                                  .range = upper != NULL,
                                  .lower = fgw_bytes(bytes, lower.len),
                                  .upper = fgw_bytes(bytes + lower.len, upper_len)};
    if (lower.len > 0) {
        memcpy(bytes, lower.ptr, lower.len);
    }
    if (upper_len > 0) {
        memcpy(bytes + lower.len, upper->ptr, upper_len);
    }
    txn->request->missed = missed;
}

void fgw_missed_free(struct fgw_request *request)
{
    while (request->missed != NULL) {
        struct fgw_missed *next = request->missed->next;
        fgw_xfree(request->missed);
        request->missed = next;
    }
}

/* The rows themselves are of no use here: reading brings them into the block cache. */
void fgw_missed_read(struct fgw_kv *kv, struct fgw_request *request)
{
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    for (struct fgw_missed *missed = request->missed; missed != NULL; missed = missed->next) {
        enum fgw_kv_family family = (enum fgw_kv_family)missed->family;
        if (missed->range) {
            struct fgw_kv_iter *iter =
                fgw_kv_iter_new(kv, family, missed->lower, missed->upper, NULL);
            fgw_kv_iter_seek_first(iter);
            fgw_kv_iter_free(iter);
        } else if (fgw_kv_get(kv, family, missed->lower, false, &value) == FGW_ERR_IO) {
            break; /* evaluation will meet it again */
        }
    }
    fgw_buf_deinit(&value);
    fgw_missed_free(request);
}

static bool may_read_disk(const struct fgw_storage_txn *txn)
{
    return txn->request->rounds >= FGW_TXN_ROUNDS_MAX;
}

static enum fgw_err get_stored(struct fgw_storage_txn *txn, enum fgw_kv_family family,
                               struct fgw_bytes key, struct fgw_bytes *out_value)
{
    enum fgw_err err =
        fgw_kv_get(txn->storage->kv, family, key, !may_read_disk(txn), &txn->value);
    if (err == FGW_OK) {
        *out_value = fgw_arena_copy(&txn->arena, fgw_buf_bytes(&txn->value));
    } else if (err == FGW_ERR_AGAIN) {
        miss(txn, family, key, NULL);
    }
    return err;
}

/* -- names -------------------------------------------------------------------------------------- */

/* The newest word of the batches that RocksDB may not have yet; NULL when they say nothing. */
static const struct fgw_rowmap_row *get_overlaid(struct fgw_storage_txn *txn, struct fgw_bytes key)
{
    for (size_t i = 0; i < txn->overlay_count; i++) {
        const struct fgw_rowmap_row *row = fgw_rowmap_get(&txn->overlays[i]->names, key);
        if (row != NULL) {
            txn->on_unsynced = txn->on_unsynced || i == 0;
            return row;
        }
    }
    return NULL;
}

static enum fgw_err take_row(const struct fgw_rowmap_row *row, struct fgw_bytes *out_value)
{
    if (row->deleted) {
        return FGW_ERR_NOT_FOUND;
    }
    *out_value = row->value;
    return FGW_OK;
}

enum fgw_err fgw_storage_txn_get(struct fgw_storage_txn *txn, struct fgw_bytes key,
                                 struct fgw_bytes *out_value)
{
    const struct fgw_rowmap_row *row = get_overlaid(txn, key);
    return row != NULL ? take_row(row, out_value) : get_stored(txn, FGW_KV_NAMES, key, out_value);
}

/* What is applied while the batch is built stands in an overlay, which is asked first. */
enum fgw_err fgw_storage_txn_get_common(struct fgw_storage_txn *txn, struct fgw_bytes key,
                                        struct fgw_bytes *out_value)
{
    const struct fgw_rowmap_row *row = get_overlaid(txn, key);
    if (row == NULL) {
        row = fgw_rowmap_get(&txn->common.rows, key);
    }
    if (row != NULL) {
        return take_row(row, out_value);
    }
    enum fgw_err err = get_stored(txn, FGW_KV_NAMES, key, out_value);
    if (err == FGW_OK) {
        fgw_rowmap_put(&txn->common.rows, key, *out_value);
    }
    return err;
}

/* All places a row can come from, each at its first key in the range. */
struct merge {
    const struct fgw_rowmap_row *rows[FGW_BATCHES_IN_FLIGHT + 1];
    struct fgw_kv_iter *iter;
};

static bool in_range(struct fgw_bytes key, struct fgw_bytes upper)
{
    return upper.len == 0 || fgw_bytes_cmp(key, upper) < 0;
}

/* The smallest key any source stands at; false when all are at the end. */
static bool smallest_key(const struct fgw_storage_txn *txn, const struct merge *merge,
                         struct fgw_bytes upper, struct fgw_bytes *out_key)
{
    bool found = fgw_kv_iter_valid(merge->iter);
    if (found) {
        *out_key = fgw_kv_iter_key(merge->iter);
    }
    for (size_t i = 0; i < txn->overlay_count; i++) {
        const struct fgw_rowmap_row *row = merge->rows[i];
        if (row != NULL && in_range(row->key, upper) &&
            (!found || fgw_bytes_cmp(row->key, *out_key) < 0)) {
            *out_key = row->key;
            found = true;
        }
    }
    return found;
}

/* Steps all sources over `key`; *out_row is the newest overlay row of that key, NULL if none. */
static void step_over(struct fgw_storage_txn *txn, struct merge *merge, struct fgw_bytes key,
                      const struct fgw_rowmap_row **out_row)
{
    *out_row = NULL;
    for (size_t i = txn->overlay_count; i > 0; i--) {
        const struct fgw_rowmap_row *row = merge->rows[i - 1];
        if (row != NULL && fgw_bytes_eq(row->key, key)) {
            *out_row = row;
            merge->rows[i - 1] = row->next[0];
            txn->on_unsynced = txn->on_unsynced || i == 1;
        }
    }
}

static enum fgw_err merge_first(struct fgw_storage_txn *txn, struct merge *merge,
                                struct fgw_bytes upper, struct fgw_bytes *out_key,
                                struct fgw_bytes *out_value)
{
    struct fgw_bytes key;
    while (fgw_kv_iter_status(merge->iter, NULL) == FGW_OK &&
           smallest_key(txn, merge, upper, &key)) {
        const struct fgw_rowmap_row *row;
        bool stored = fgw_kv_iter_valid(merge->iter) &&
                      fgw_bytes_eq(fgw_kv_iter_key(merge->iter), key);
        step_over(txn, merge, key, &row);
        if (row == NULL || !row->deleted) {
            *out_key = fgw_arena_copy(&txn->arena, key);
            *out_value = row != NULL ? row->value
                                     : fgw_arena_copy(&txn->arena, fgw_kv_iter_value(merge->iter));
            return FGW_OK;
        }
        if (stored) {
            fgw_kv_iter_next(merge->iter);
        }
    }
    enum fgw_err err = fgw_kv_iter_status(merge->iter, NULL);
    return err == FGW_OK ? FGW_ERR_NOT_FOUND : err;
}

enum fgw_err fgw_storage_txn_first(struct fgw_storage_txn *txn, struct fgw_bytes lower,
                                   struct fgw_bytes upper, struct fgw_bytes *out_key,
                                   struct fgw_bytes *out_value)
{
    struct merge merge;
    struct fgw_kv_scan scan = {.family = FGW_KV_NAMES,
                               .lower = lower,
                               .upper = upper,
                               .cache_only = !may_read_disk(txn)};
    for (size_t i = 0; i < txn->overlay_count; i++) {
        merge.rows[i] = fgw_rowmap_seek(&txn->overlays[i]->names, lower);
    }
    merge.iter = fgw_kv_iter_scan(txn->storage->kv, &scan);
    fgw_kv_iter_seek_first(merge.iter);
    enum fgw_err err = merge_first(txn, &merge, upper, out_key, out_value);
    fgw_kv_iter_free(merge.iter);
    if (err == FGW_ERR_AGAIN) {
        miss(txn, FGW_KV_NAMES, lower, &upper);
    }
    return err;
}

enum fgw_err fgw_storage_txn_any(struct fgw_storage_txn *txn, struct fgw_bytes lower,
                                 struct fgw_bytes upper)
{
    struct fgw_bytes key;
    struct fgw_bytes value;
    return fgw_storage_txn_first(txn, lower, upper, &key, &value);
}

void fgw_storage_txn_put(struct fgw_storage_txn *txn, struct fgw_bytes key, struct fgw_bytes value)
{
    FGW_CHECK(key.len > 0 && key.len <= FGW_STORAGE_KEY_MAX);
    fgw_item_put_row(&txn->items, FGW_ITEM_ROW_PUT, key, value);
}

void fgw_storage_txn_delete(struct fgw_storage_txn *txn, struct fgw_bytes key)
{
    fgw_item_put_bytes(&txn->items, FGW_ITEM_ROW_DELETE, key);
}

/* -- holds -------------------------------------------------------------------------------------- */

void fgw_storage_txn_release(struct fgw_storage_txn *txn, const uint8_t owner_id[FGW_STORAGE_ID_SIZE],
                             uint64_t extent, const struct fgw_cid *root)
{
    struct fgw_item_release release = {.extent = extent, .codec = (uint8_t)fgw_cid_codec(root)};
    memcpy(release.owner_id, owner_id, sizeof release.owner_id);
    memcpy(release.digest, fgw_cid_digest(root), sizeof release.digest);
    fgw_item_put_release(&txn->items, FGW_ITEM_RELEASE, &release);
}

void fgw_storage_txn_release_owner(struct fgw_storage_txn *txn,
                                   const uint8_t owner_id[FGW_STORAGE_ID_SIZE])
{
    fgw_item_put_bytes(&txn->items, FGW_ITEM_RELEASE_OWNER,
                       fgw_bytes(owner_id, FGW_STORAGE_ID_SIZE));
}

struct fgw_storage_place fgw_storage_txn_place(struct fgw_storage_txn *txn, size_t block_index)
{
    FGW_CHECK(block_index < txn->request->op->hold_count);
    return txn->places[block_index];
}

enum fgw_err fgw_txn_index_get(struct fgw_storage_txn *txn, const struct fgw_row_key *key,
                               struct fgw_bytes *out_value)
{
    for (size_t i = 0; i < txn->overlay_count; i++) {
        const struct fgw_overlay *overlay = txn->overlays[i];
        if (fgw_rowmap_get(&overlay->index, fgw_row_key_bytes(key)) != NULL ||
            (overlay->drops_blocks && key->bytes[0] == 'b')) {
            txn->deferred = true;
            return FGW_ERR_UNAVAILABLE;
        }
    }
    return get_stored(txn, FGW_KV_BLOCKS, fgw_row_key_bytes(key), out_value);
}

struct fgw_buf *fgw_txn_items(struct fgw_storage_txn *txn)
{
    return &txn->items;
}

static struct fgw_item_owner owner_of(const struct fgw_storage_hold *hold)
{
    return (struct fgw_item_owner){
        .address = *hold->owner, .extent = hold->extent, .listed = hold->listed,
        .pending = hold->pending};
}

/* The block comes with the operation: it will be written to the log group. */
static enum fgw_err hold_new_block(struct fgw_storage_txn *txn, const struct fgw_storage_hold *hold,
                                   struct fgw_storage_place *place)
{
    const struct fgw_storage_block *block = hold->block;
    struct fgw_item_owner owner = owner_of(hold);
    struct fgw_item_block item = {.written = true,
                                  .codec = (uint8_t)fgw_cid_codec(&block->cid),
                                  .len = (uint32_t)block->bytes.len,
                                  .crc32c = block->crc32c,
                                  .group = txn->log_group,
                                  .offset = txn->log_offset + txn->block_bytes};
    if (block->bytes.len > FGW_STORAGE_INLINE_MAX || !fgw_cid_eq(&block->cid, &hold->root)) {
        return FGW_ERR_INTERNAL;
    }
    memcpy(item.digest, fgw_cid_digest(&block->cid), sizeof item.digest);
    fgw_item_put_block_hold(&txn->items, &item, &owner);
    *place = (struct fgw_storage_place){item.group, item.offset, item.len, item.crc32c};
    txn->block_bytes += fgw_group_section_size(item.len);
    return FGW_OK;
}

/* A writer's hold is relied upon: it must be there. */
static enum fgw_err check_writer_hold(struct fgw_storage_txn *txn,
                                      const struct fgw_storage_hold *hold)
{
    struct fgw_bytes value;
    struct fgw_hold_row row;
    struct fgw_row_key key = fgw_row_key_hold(hold->owner->owner_id, hold->extent);
    enum fgw_err err = fgw_txn_index_get(txn, &key, &value);
    if (err == FGW_OK) {
        err = fgw_hold_row_decode(value, &row);
    }
    if (err == FGW_OK && memcmp(row.digest, fgw_cid_digest(&hold->root), sizeof row.digest) != 0) {
        err = FGW_ERR_NOT_FOUND;
    }
    return err;
}

static enum fgw_err grant_block(struct fgw_storage_txn *txn, const struct fgw_storage_hold *hold,
                                struct fgw_storage_place *place)
{
    struct fgw_bytes value;
    struct fgw_block_row row;
    struct fgw_row_key key = fgw_row_key_block(fgw_cid_digest(&hold->root));
    enum fgw_err err = fgw_txn_index_get(txn, &key, &value);
    if (err == FGW_OK) {
        err = fgw_block_row_decode(value, &row);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (row.bad || row.len != hold->size_bytes) {
        return FGW_ERR_NOT_FOUND;
    }
    struct fgw_item_owner owner = owner_of(hold);
    struct fgw_item_block item = {.codec = row.codec, .len = row.len, .crc32c = row.crc32c};
    memcpy(item.digest, fgw_cid_digest(&hold->root), sizeof item.digest);
    fgw_item_put_block_hold(&txn->items, &item, &owner);
    *place = (struct fgw_storage_place){row.group, row.offset, row.len, row.crc32c};
    return FGW_OK;
}

static enum fgw_err grant_blob(struct fgw_storage_txn *txn, const struct fgw_storage_hold *hold)
{
    struct fgw_bytes value;
    struct fgw_blob_row row;
    struct fgw_row_key key = fgw_row_key_blob(fgw_cid_digest(&hold->root));
    enum fgw_err err = fgw_txn_index_get(txn, &key, &value);
    if (err == FGW_OK) {
        err = fgw_blob_row_decode(value, &row);
    }
    if (err == FGW_OK && row.size != hold->size_bytes) {
        err = FGW_ERR_NOT_FOUND;
    }
    if (err == FGW_OK) {
        struct fgw_item_owner owner = owner_of(hold);
        fgw_item_put_blob_hold(&txn->items, fgw_cid_digest(&hold->root), &owner);
    }
    return err;
}

static enum fgw_err take_hold(struct fgw_storage_txn *txn, const struct fgw_storage_hold *hold,
                              struct fgw_storage_place *place)
{
    *place = (struct fgw_storage_place){0};
    if (hold->block != NULL) {
        return hold_new_block(txn, hold, place);
    }
    if (hold->finished_writer) {
        return check_writer_hold(txn, hold);
    }
    return fgw_cid_codec(&hold->root) == FGW_CODEC_RAW ? grant_block(txn, hold, place)
                                                       : grant_blob(txn, hold);
}

/* -- one operation ------------------------------------------------------------------------------ */

static enum fgw_err take_holds(struct fgw_storage_txn *txn, const struct fgw_storage_op *op)
{
    if (op->hold_count > txn->place_capacity) {
        txn->place_capacity = op->hold_count;
        txn->places = fgw_xrealloc(txn->places, txn->place_capacity * sizeof *txn->places);
    }
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < op->hold_count; i++) {
        enum fgw_err hold_err = take_hold(txn, &op->holds[i], &txn->places[i]);
        if (hold_err != FGW_OK && (err == FGW_OK || hold_err != FGW_ERR_AGAIN)) {
            err = hold_err;
        }
        if (err != FGW_OK && err != FGW_ERR_AGAIN) {
            break; /* after a miss go on, to miss all rows at once */
        }
    }
    return err;
}

enum fgw_err fgw_txn_run(struct fgw_storage_txn *txn, bool *out_defer)
{
    struct fgw_storage_op *op = txn->request->op;
    fgw_arena_reset(&txn->arena);
    fgw_buf_clear(&txn->items);
    txn->block_bytes = 0;
    txn->on_unsynced = false;
    txn->deferred = false;
    txn->request->rounds++;
    enum fgw_err err = take_holds(txn, op);
    if (err == FGW_OK) {
        err = op->evaluate(op, txn);
    }
    *out_defer = txn->deferred && err == FGW_ERR_UNAVAILABLE;
    return err;
}

/* -- what a batch in flight changes -------------------------------------------------------------- */

static void touch(struct fgw_overlay *overlay, struct fgw_row_key key)
{
    fgw_rowmap_put(&overlay->index, fgw_row_key_bytes(&key), fgw_bytes(NULL, 0));
}

static enum fgw_err note_release(struct fgw_overlay *overlay, struct fgw_bytes value)
{
    struct fgw_item_release release;
    enum fgw_err err = fgw_item_release(value, &release);
    if (err == FGW_OK) {
        touch(overlay, fgw_row_key_hold(release.owner_id, release.extent));
        touch(overlay, release.codec == FGW_CODEC_RAW ? fgw_row_key_block(release.digest)
                                                      : fgw_row_key_blob(release.digest));
    }
    return err;
}

static enum fgw_err note_block_hold(struct fgw_overlay *overlay, struct fgw_bytes value)
{
    struct fgw_item_block block;
    struct fgw_item_owner owner;
    enum fgw_err err = fgw_item_block_hold(value, &block, &owner);
    if (err == FGW_OK) {
        touch(overlay, fgw_row_key_block(block.digest));
    }
    if (err == FGW_OK && owner.listed) {
        touch(overlay, fgw_row_key_hold(owner.address.owner_id, owner.extent));
    }
    return err;
}

static enum fgw_err note_blob_hold(struct fgw_overlay *overlay, struct fgw_bytes value)
{
    const uint8_t *digest;
    struct fgw_item_owner owner;
    enum fgw_err err = fgw_item_blob_hold(value, &digest, &owner);
    if (err == FGW_OK) {
        touch(overlay, fgw_row_key_blob(digest));
        touch(overlay, fgw_row_key_hold(owner.address.owner_id, owner.extent));
    }
    return err;
}

static enum fgw_err note_finish(struct fgw_overlay *overlay, struct fgw_bytes value)
{
    struct fgw_item_finish finish;
    enum fgw_err err = fgw_item_finish(value, &finish);
    if (err == FGW_OK) {
        touch(overlay, fgw_row_key_blob(finish.digest));
        touch(overlay, fgw_row_key_list(finish.list_id));
        touch(overlay, fgw_row_key_hold(finish.owner.address.owner_id, finish.owner.extent));
    }
    return err;
}

static enum fgw_err note_slice(struct fgw_overlay *overlay, struct fgw_bytes value)
{
    struct fgw_item_slice slice;
    struct fgw_item_block block;
    enum fgw_err err = fgw_item_slice(value, &slice);
    if (err != FGW_OK) {
        return err;
    }
    touch(overlay, fgw_row_key_list(slice.list_id));
    while ((err = fgw_item_next_block(&slice.blocks, &block)) == FGW_OK) {
        touch(overlay, fgw_row_key_block(block.digest));
    }
    return err == FGW_ERR_END ? FGW_OK : err;
}

static enum fgw_err note_row(struct fgw_overlay *overlay, struct fgw_bytes value)
{
    struct fgw_bytes key;
    struct fgw_bytes row;
    enum fgw_err err = fgw_item_row(value, &key, &row);
    if (err == FGW_OK) {
        fgw_rowmap_put(&overlay->names, key, row);
    }
    return err;
}

static enum fgw_err note_item(struct fgw_overlay *overlay, const struct fgw_tlv_item *item)
{
    switch ((enum fgw_item_tag)item->tag) {
    case FGW_ITEM_ROW_PUT:
        return note_row(overlay, item->value);
    case FGW_ITEM_ROW_DELETE:
        fgw_rowmap_delete(&overlay->names, item->value);
        return FGW_OK;
    case FGW_ITEM_BLOCK_HOLD:
        return note_block_hold(overlay, item->value);
    case FGW_ITEM_BLOB_HOLD:
        return note_blob_hold(overlay, item->value);
    case FGW_ITEM_RELEASE:
        return note_release(overlay, item->value);
    case FGW_ITEM_SLICE:
        return note_slice(overlay, item->value);
    case FGW_ITEM_FINISH:
        return note_finish(overlay, item->value);
    case FGW_ITEM_ABANDON:
        touch(overlay, fgw_row_key_list(item->value.ptr));
        return FGW_OK;
    case FGW_ITEM_FREE_BLOCK:
    case FGW_ITEM_MOVE:
    case FGW_ITEM_MARK_BAD:
        touch(overlay, fgw_row_key_block(item->value.ptr));
        return FGW_OK;
    case FGW_ITEM_FREE_BLOB:
        touch(overlay, fgw_row_key_blob(item->value.ptr));
        return FGW_OK;
    case FGW_ITEM_DROP_SLICE:
        overlay->drops_blocks = true;
        touch(overlay, fgw_row_key_list(item->value.ptr));
        return FGW_OK;
    default:
        return FGW_OK;
    }
}

enum fgw_err fgw_overlay_note(struct fgw_overlay *overlay, struct fgw_bytes items)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(items);
    struct fgw_tlv_item item;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        err = note_item(overlay, &item);
        if (err != FGW_OK) {
            return err;
        }
    }
    return err == FGW_ERR_END ? FGW_OK : err;
}
