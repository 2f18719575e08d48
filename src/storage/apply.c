/* apply.c: one batch of items onto the index; see apply.h. Blocks: apply_blocks.c, blobs and lists:
 * apply_blobs.c. */
#include "storage/apply.h"

#include "base/tlv.h"
#include "storage/apply_internal.h"
#include "storage/group.h"

static enum fgw_err read_row(struct fgw_kv *kv, struct fgw_row_key key, struct fgw_buf *out)
{
    enum fgw_err err = fgw_kv_get(kv, FGW_KV_BLOCKS, fgw_row_key_bytes(&key), false, out);
    if (err == FGW_ERR_NOT_FOUND) {
        fgw_buf_clear(out);
        return FGW_OK;
    }
    return err;
}

enum fgw_err fgw_apply_init(struct fgw_apply *apply, struct fgw_kv *kv)
{
    *apply = (struct fgw_apply){.kv = kv, .batch = fgw_kv_batch_new(kv)};
    fgw_arena_init(&apply->arena, 64 * 1024);
    fgw_rowmap_init(&apply->rows, &apply->arena);
    fgw_buf_init(&apply->value, 0);
    fgw_buf_init(&apply->encoded, 0);
    return fgw_apply_reload(apply);
}

/* After a power cut RocksDB may have lost a batch and have a later one: a page of zeros in one of
 * its logs ends that log, and the next one is read all the same. The counter knows. */
static enum fgw_err check_count(struct fgw_apply *apply)
{
    enum fgw_err err = read_row(apply->kv, fgw_row_key_count(), &apply->value);
    if (err != FGW_OK) {
        return err;
    }
    uint64_t count = apply->value.len == 8 ? fgw_get_u64le(apply->value.ptr) : 0;
    return count == apply->applied.batch ? FGW_OK : FGW_ERR_CORRUPT;
}

enum fgw_err fgw_apply_reload(struct fgw_apply *apply)
{
    enum fgw_err err = read_row(apply->kv, fgw_row_key_applied(), &apply->value);
    if (err == FGW_OK && apply->value.len > 0) {
        err = fgw_applied_decode(fgw_buf_bytes(&apply->value), &apply->applied);
    }
    if (err == FGW_OK) {
        err = check_count(apply);
    }
    if (err == FGW_OK) {
        err = read_row(apply->kv, fgw_row_key_last_group(), &apply->value);
    }
    if (err == FGW_OK && apply->value.len > 0) {
        err = fgw_last_group_decode(fgw_buf_bytes(&apply->value), &apply->last_group);
    }
    return err;
}

void fgw_apply_deinit(struct fgw_apply *apply)
{
    fgw_kv_batch_free(apply->batch);
    fgw_arena_deinit(&apply->arena);
    fgw_buf_deinit(&apply->value);
    fgw_buf_deinit(&apply->encoded);
    fgw_xfree(apply->groups);
    *apply = (struct fgw_apply){0};
}

/* -- rows of the batch at hand ------------------------------------------------------------------ */

enum fgw_err fgw_apply_get(struct fgw_apply *apply, const struct fgw_row_key *key,
                           struct fgw_bytes *out_value)
{
    const struct fgw_rowmap_row *row = fgw_rowmap_get(&apply->rows, fgw_row_key_bytes(key));
    if (row != NULL) {
        if (row->deleted) {
            return FGW_ERR_NOT_FOUND;
        }
        *out_value = row->value;
        return FGW_OK;
    }
    enum fgw_err err =
        fgw_kv_get(apply->kv, FGW_KV_BLOCKS, fgw_row_key_bytes(key), false, &apply->value);
    if (err == FGW_OK) {
        *out_value = fgw_arena_copy(&apply->arena, fgw_buf_bytes(&apply->value));
    }
    return err;
}

void fgw_apply_put(struct fgw_apply *apply, const struct fgw_row_key *key)
{
    fgw_rowmap_put(&apply->rows, fgw_row_key_bytes(key), fgw_buf_bytes(&apply->encoded));
}

void fgw_apply_delete(struct fgw_apply *apply, const struct fgw_row_key *key)
{
    fgw_rowmap_delete(&apply->rows, fgw_row_key_bytes(key));
}

static struct fgw_apply_group *count_of(struct fgw_apply *apply, uint64_t group)
{
    size_t i = 0;
    while (i < apply->group_count && apply->groups[i].group != group) {
        i++;
    }
    if (i == apply->group_count) {
        if (i == apply->group_capacity) {
            apply->group_capacity = 2 * i + 8;
            apply->groups =
                fgw_xrealloc(apply->groups, apply->group_capacity * sizeof *apply->groups);
        }
        apply->groups[apply->group_count++] = (struct fgw_apply_group){.group = group};
    }
    return &apply->groups[i];
}

void fgw_apply_count(struct fgw_apply *apply, uint64_t group, int blocks, uint32_t block_len)
{
    struct fgw_apply_group *count = count_of(apply, group);
    count->blocks += blocks;
    count->bytes += blocks * (int64_t)fgw_group_section_size(block_len);
}

void fgw_apply_count_written(struct fgw_apply *apply, uint64_t group, uint32_t block_len)
{
    count_of(apply, group)->written += fgw_group_section_size(block_len);
}

static enum fgw_err get_group(struct fgw_apply *apply, uint64_t group, struct fgw_group_row *row)
{
    struct fgw_bytes value;
    struct fgw_row_key key = fgw_row_key_group(group);
    *row = (struct fgw_group_row){.kind = FGW_GROUP_LOG};
    enum fgw_err err = fgw_apply_get(apply, &key, &value);
    if (err == FGW_ERR_NOT_FOUND) {
        return FGW_OK;
    }
    return err == FGW_OK ? fgw_group_row_decode(value, row) : err;
}

static void put_group(struct fgw_apply *apply, uint64_t group, const struct fgw_group_row *row)
{
    struct fgw_row_key key = fgw_row_key_group(group);
    fgw_group_row_encode(&apply->encoded, row);
    fgw_apply_put(apply, &key);
    if (group > apply->last_group) {
        apply->last_group = group;
        key = fgw_row_key_last_group();
        fgw_last_group_encode(&apply->encoded, group);
        fgw_apply_put(apply, &key);
    }
}

static enum fgw_err fold_counts(struct fgw_apply *apply)
{
    for (size_t i = 0; i < apply->group_count; i++) {
        struct fgw_group_row row;
        enum fgw_err err = get_group(apply, apply->groups[i].group, &row);
        if (err != FGW_OK) {
            return err;
        }
        row.live_blocks += (uint64_t)apply->groups[i].blocks;
        row.live_bytes += (uint64_t)apply->groups[i].bytes;
        row.written_bytes += apply->groups[i].written;
        put_group(apply, apply->groups[i].group, &row);
    }
    return FGW_OK;
}

/* -- items -------------------------------------------------------------------------------------- */

static enum fgw_err apply_row(struct fgw_apply *apply, struct fgw_bytes value)
{
    struct fgw_bytes key;
    struct fgw_bytes row;
    enum fgw_err err = fgw_item_row(value, &key, &row);
    if (err == FGW_OK) {
        fgw_kv_batch_put(apply->batch, FGW_KV_NAMES, key, row);
    }
    return err;
}

static enum fgw_err apply_owner_queue(struct fgw_apply *apply, struct fgw_bytes owner_id, bool done)
{
    if (owner_id.len != FGW_STORAGE_ID_SIZE) {
        return FGW_ERR_CORRUPT;
    }
    struct fgw_row_key key = fgw_row_key_queue(0, 'o', owner_id.ptr);
    fgw_buf_clear(&apply->encoded);
    if (done) {
        fgw_apply_delete(apply, &key);
    } else {
        fgw_apply_put(apply, &key);
    }
    return FGW_OK;
}

static enum fgw_err apply_bulk_end(struct fgw_apply *apply, struct fgw_bytes value)
{
    uint64_t group;
    uint64_t end;
    struct fgw_group_row row;
    enum fgw_err err = fgw_item_bulk_end(value, &group, &end);
    if (err == FGW_OK) {
        err = get_group(apply, group, &row);
    }
    if (err == FGW_OK) {
        row.kind = FGW_GROUP_BULK;
        row.end = end > row.end ? end : row.end;
        put_group(apply, group, &row);
    }
    return err;
}

static enum fgw_err apply_group_gone(struct fgw_apply *apply, struct fgw_bytes value)
{
    uint64_t group;
    if (!fgw_take_uvarint(&value, &group) || value.len > 0) {
        return FGW_ERR_CORRUPT;
    }
    struct fgw_group_row row;
    struct fgw_row_key key = fgw_row_key_group(group);
    struct fgw_apply_group *count = count_of(apply, group);
    enum fgw_err err = get_group(apply, group, &row);
    if (err == FGW_OK && row.live_blocks + (uint64_t)count->blocks == 0) {
        *count = apply->groups[--apply->group_count];
        fgw_apply_delete(apply, &key);
    }
    return err;
}

static enum fgw_err apply_item(struct fgw_apply *apply, const struct fgw_tlv_item *item)
{
    switch ((enum fgw_item_tag)item->tag) {
    case FGW_ITEM_RUNNING_MS:
        return fgw_tlv_u64(item->value, &apply->running_ms);
    case FGW_ITEM_ROW_PUT:
        return apply_row(apply, item->value);
    case FGW_ITEM_ROW_DELETE:
        fgw_kv_batch_delete(apply->batch, FGW_KV_NAMES, item->value);
        return FGW_OK;
    case FGW_ITEM_BLOCK_HOLD:
        return fgw_apply_block_hold(apply, item->value);
    case FGW_ITEM_BLOB_HOLD:
        return fgw_apply_blob_hold(apply, item->value);
    case FGW_ITEM_RELEASE:
        return fgw_apply_release(apply, item->value);
    case FGW_ITEM_CONFIRM:
        return fgw_apply_confirm(apply, item->value);
    case FGW_ITEM_RELEASE_OWNER:
        return apply_owner_queue(apply, item->value, false);
    case FGW_ITEM_HOLD_DONE:
        return apply_owner_queue(apply, item->value, true);
    case FGW_ITEM_SLICE:
        return fgw_apply_slice(apply, item->value);
    case FGW_ITEM_FINISH:
        return fgw_apply_finish(apply, item->value);
    case FGW_ITEM_ABANDON:
        return fgw_apply_abandon(apply, item->value);
    case FGW_ITEM_BULK_END:
        return apply_bulk_end(apply, item->value);
    case FGW_ITEM_FREE_BLOCK:
        return fgw_apply_free_block(apply, item->value);
    case FGW_ITEM_FREE_BLOB:
        return fgw_apply_free_blob(apply, item->value);
    case FGW_ITEM_DROP_SLICE:
        return fgw_apply_drop_slice(apply, item->value);
    case FGW_ITEM_MOVE:
        return fgw_apply_move(apply, item->value);
    case FGW_ITEM_MARK_BAD:
        return fgw_apply_mark_bad(apply, item->value);
    case FGW_ITEM_GROUP_GONE:
        return apply_group_gone(apply, item->value);
    case FGW_ITEM_WALL_MS:
    case FGW_ITEM_INDEX_PUT:
    case FGW_ITEM_ROW_COUNT:
    case FGW_ITEM_PREDECESSOR:
        break;
    }
    return fgw_tlv_critical(item->tag) ? FGW_ERR_NEWER_VERSION : FGW_OK;
}

static enum fgw_err apply_items(struct fgw_apply *apply, struct fgw_bytes items)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(items);
    struct fgw_tlv_item item;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        err = apply_item(apply, &item);
        if (apply->lenient && (err == FGW_ERR_NOT_FOUND || err == FGW_ERR_CORRUPT)) {
            apply->misfits++;
        } else if (err != FGW_OK) {
            /* NOT_FOUND out of a row that must be there: the items do not fit the index */
            return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
        }
    }
    return err == FGW_ERR_END ? FGW_OK : err;
}

/* The first batch in a new log group says where the old one ended. */
static enum fgw_err close_old_log(struct fgw_apply *apply, uint64_t group)
{
    struct fgw_group_row row;
    if (apply->applied.group == group) {
        return FGW_OK;
    }
    enum fgw_err err = get_group(apply, group, &row);
    if (err == FGW_OK) {
        put_group(apply, group, &row);
    }
    if (err == FGW_OK && apply->applied.group != 0) {
        err = get_group(apply, apply->applied.group, &row);
        if (err == FGW_OK) {
            row.end = apply->applied.end;
            put_group(apply, apply->applied.group, &row);
        }
    }
    return err;
}

static enum fgw_err write_rows(struct fgw_apply *apply, const struct fgw_applied *applied,
                               struct fgw_error *error)
{
    struct fgw_row_key key = fgw_row_key_applied();
    for (const struct fgw_rowmap_row *row = fgw_rowmap_seek(&apply->rows, fgw_bytes(NULL, 0));
         row != NULL; row = row->next[0]) {
        if (row->deleted) {
            fgw_kv_batch_delete(apply->batch, FGW_KV_BLOCKS, row->key);
        } else {
            fgw_kv_batch_put(apply->batch, FGW_KV_BLOCKS, row->key, row->value);
        }
    }
    fgw_applied_encode(&apply->encoded, applied);
    fgw_kv_batch_put(apply->batch, FGW_KV_BLOCKS, fgw_row_key_bytes(&key),
                     fgw_buf_bytes(&apply->encoded));
    key = fgw_row_key_count();
    fgw_kv_batch_add(apply->batch, FGW_KV_BLOCKS, fgw_row_key_bytes(&key),
                     applied->batch - apply->applied.batch);
    apply->written_bytes = fgw_kv_batch_bytes(apply->batch);
    return fgw_kv_batch_write(apply->batch, false, error);
}

static void begin(struct fgw_apply *apply)
{
    fgw_kv_batch_clear(apply->batch);
    fgw_arena_reset(&apply->arena);
    fgw_rowmap_init(&apply->rows, &apply->arena);
    apply->group_count = 0;
    apply->running_ms = apply->applied.running_ms;
}

enum fgw_err fgw_apply_batch(struct fgw_apply *apply, const struct fgw_apply_input *input,
                             struct fgw_error *error)
{
    uint64_t last_group = apply->last_group;
    begin(apply);
    enum fgw_err err = close_old_log(apply, input->group);
    if (err == FGW_OK) {
        err = apply_items(apply, input->items);
    }
    if (err == FGW_OK) {
        err = fold_counts(apply);
    }
    struct fgw_applied applied = {.batch = input->batch,
                                  .group = input->group,
                                  .end = input->end,
                                  .last_record = input->last_record,
                                  .running_ms = apply->running_ms};
    if (err == FGW_OK) {
        err = write_rows(apply, &applied, error);
    }
    if (err == FGW_OK) {
        apply->applied = applied;
    } else {
        apply->last_group = last_group;
    }
    return err;
}
