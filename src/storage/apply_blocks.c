/* apply_blocks.c: references on blocks; see apply.h. */
#include "storage/apply_internal.h"

static enum fgw_err get_block(struct fgw_apply *apply, const uint8_t *digest,
                              struct fgw_row_key *key, struct fgw_block_row *row)
{
    struct fgw_bytes value;
    *key = fgw_row_key_block(digest);
    enum fgw_err err = fgw_apply_get(apply, key, &value);
    return err == FGW_OK ? fgw_block_row_decode(value, row) : err;
}

static void put_block(struct fgw_apply *apply, const struct fgw_row_key *key,
                      const struct fgw_block_row *row)
{
    fgw_block_row_encode(&apply->encoded, row);
    fgw_apply_put(apply, key);
}

static void set_inline_owner(struct fgw_block_row *row, const struct fgw_apply_ref *ref)
{
    row->own_refs = 1;
    if (ref->list_id != NULL) {
        row->owner_kind = FGW_BLOCK_LISTED;
        memcpy(row->list_id, ref->list_id, sizeof row->list_id);
    } else {
        row->owner_kind = FGW_BLOCK_OWNED;
        row->owner = *ref->owner;
    }
}

static bool is_inline_owner(const struct fgw_block_row *row, const struct fgw_apply_ref *ref)
{
    if (ref->list_id != NULL) {
        return row->owner_kind == FGW_BLOCK_LISTED &&
               memcmp(row->list_id, ref->list_id, sizeof row->list_id) == 0;
    }
    return row->owner_kind == FGW_BLOCK_OWNED && row->owner.extent == ref->owner->extent &&
           memcmp(row->owner.address.owner_id, ref->owner->address.owner_id, FGW_STORAGE_ID_SIZE) ==
               0;
}

static struct fgw_row_key ref_key(const uint8_t *digest, const struct fgw_apply_ref *ref)
{
    return ref->list_id != NULL
               ? fgw_row_key_ref(digest, ref->list_id, UINT64_MAX)
               : fgw_row_key_ref(digest, ref->owner->address.owner_id, ref->owner->extent);
}

static enum fgw_err get_ref(struct fgw_apply *apply, const struct fgw_row_key *key,
                            struct fgw_ref_row *row)
{
    struct fgw_bytes value;
    enum fgw_err err = fgw_apply_get(apply, key, &value);
    return err == FGW_OK ? fgw_ref_row_decode(value, row) : err;
}

/* One more in the `r` row. An owner holds a block once, however often it says so; a list as often
 * as the block occurs in it. */
static enum fgw_err add_ref_row(struct fgw_apply *apply, const uint8_t *digest,
                                const struct fgw_apply_ref *ref, bool *out_added)
{
    struct fgw_ref_row row = {.of_list = ref->list_id != NULL};
    struct fgw_row_key key = ref_key(digest, ref);
    enum fgw_err err = get_ref(apply, &key, &row);
    if (err != FGW_OK && err != FGW_ERR_NOT_FOUND) {
        return err;
    }
    if (err == FGW_ERR_NOT_FOUND && ref->owner != NULL && ref->list_id == NULL) {
        row.listed = ref->owner->listed;
        memcpy(row.bucket_id, ref->owner->address.bucket_id, sizeof row.bucket_id);
        row.key = ref->owner->address.key;
    }
    *out_added = err == FGW_ERR_NOT_FOUND || row.of_list;
    if (*out_added) {
        row.count++;
        fgw_ref_row_encode(&apply->encoded, &row);
        fgw_apply_put(apply, &key);
    }
    return FGW_OK;
}

/* The place in the row is free: an owner may still stand in a row of its own. */
static enum fgw_err stands_in_ref_row(struct fgw_apply *apply, const struct fgw_block_row *row,
                                      const uint8_t *digest, const struct fgw_apply_ref *ref,
                                      bool *out_stands)
{
    struct fgw_ref_row found;
    if (row->owner_kind != FGW_BLOCK_UNOWNED || row->refs == 0 || ref->list_id != NULL) {
        *out_stands = false;
        return FGW_OK;
    }
    struct fgw_row_key key = ref_key(digest, ref);
    enum fgw_err err = get_ref(apply, &key, &found);
    *out_stands = err == FGW_OK;
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

static void move_row(struct fgw_apply *apply, struct fgw_block_row *row, uint64_t group,
                     uint64_t offset)
{
    fgw_apply_count(apply, row->group, -1, row->len);
    fgw_apply_count(apply, group, 1, row->len);
    row->group = group;
    row->offset = offset;
}

static enum fgw_err make_block(struct fgw_apply *apply, const struct fgw_row_key *key,
                               const struct fgw_item_block *block, const struct fgw_apply_ref *ref)
{
    if (!block->written) {
        return FGW_ERR_CORRUPT;
    }
    struct fgw_block_row row = {.codec = block->codec,
                                .crc32c = block->crc32c,
                                .len = block->len,
                                .group = block->group,
                                .offset = block->offset,
                                .refs = 1};
    set_inline_owner(&row, ref);
    fgw_apply_count(apply, row.group, 1, row.len);
    put_block(apply, key, &row);
    return FGW_OK;
}

enum fgw_err fgw_apply_add_ref(struct fgw_apply *apply, const struct fgw_item_block *block,
                               const struct fgw_apply_ref *ref)
{
    struct fgw_row_key key;
    struct fgw_block_row row;
    bool added = true;
    enum fgw_err err = get_block(apply, block->digest, &key, &row);
    if (block->written) {
        fgw_apply_count_written(apply, block->group, block->len);
    }
    if (err == FGW_ERR_NOT_FOUND) {
        return make_block(apply, &key, block, ref);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (row.bad && block->written) {
        move_row(apply, &row, block->group, block->offset);
        row.bad = false;
    }
    if (row.released_at != 0) {
        struct fgw_row_key queued = fgw_row_key_queue(row.released_at, 'b', block->digest);
        fgw_apply_delete(apply, &queued);
        row.released_at = 0;
    }
    bool in_ref_row = false;
    err = stands_in_ref_row(apply, &row, block->digest, ref, &in_ref_row);
    if (err != FGW_OK || in_ref_row) {
        added = false;
    } else if (row.owner_kind == FGW_BLOCK_UNOWNED) {
        set_inline_owner(&row, ref);
    } else if (is_inline_owner(&row, ref)) {
        added = ref->list_id != NULL;
        row.own_refs += added ? 1 : 0;
    } else {
        err = add_ref_row(apply, block->digest, ref, &added);
    }
    row.refs += added ? 1 : 0;
    if (err == FGW_OK) {
        put_block(apply, &key, &row);
    }
    return err;
}

static void delete_hold_row(struct fgw_apply *apply, const struct fgw_item_owner *owner)
{
    struct fgw_row_key key = fgw_row_key_hold(owner->address.owner_id, owner->extent);
    fgw_apply_delete(apply, &key);
}

/* Takes a reference off the `r` row: *out_dropped tells whether there was one. */
static enum fgw_err drop_ref_row(struct fgw_apply *apply, const uint8_t *digest,
                                 const struct fgw_apply_ref *ref, bool *out_dropped)
{
    struct fgw_ref_row row;
    struct fgw_row_key key = ref_key(digest, ref);
    enum fgw_err err = get_ref(apply, &key, &row);
    *out_dropped = err == FGW_OK;
    if (err != FGW_OK) {
        return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    if (ref->list_id == NULL && row.listed) {
        delete_hold_row(apply, ref->owner);
    }
    if (--row.count == 0) {
        fgw_apply_delete(apply, &key);
    } else {
        fgw_ref_row_encode(&apply->encoded, &row);
        fgw_apply_put(apply, &key);
    }
    return FGW_OK;
}

static void drop_inline_ref(struct fgw_apply *apply, struct fgw_block_row *row,
                            const struct fgw_apply_ref *ref)
{
    if (ref->list_id == NULL && row->owner.listed) {
        delete_hold_row(apply, ref->owner);
    }
    if (--row->own_refs == 0) {
        row->owner_kind = FGW_BLOCK_UNOWNED;
    }
}

static void forget_block(struct fgw_apply *apply, const struct fgw_row_key *key,
                         const struct fgw_block_row *row)
{
    fgw_apply_count(apply, row->group, -1, row->len);
    fgw_apply_delete(apply, key);
}

enum fgw_err fgw_apply_drop_ref(struct fgw_apply *apply, const uint8_t digest[FGW_SHA256_SIZE],
                                const struct fgw_apply_ref *ref, bool at_once)
{
    struct fgw_row_key key;
    struct fgw_block_row row;
    bool dropped = true;
    enum fgw_err err = get_block(apply, digest, &key, &row);
    if (err != FGW_OK || row.refs == 0) {
        return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    if (is_inline_owner(&row, ref)) {
        drop_inline_ref(apply, &row, ref);
    } else {
        err = drop_ref_row(apply, digest, ref, &dropped);
    }
    if (err != FGW_OK || !dropped) {
        return err;
    }
    row.refs--;
    if (row.refs == 0 && at_once) {
        forget_block(apply, &key, &row);
        return FGW_OK;
    }
    if (row.refs == 0) {
        row.released_at = apply->running_ms + 1;
        struct fgw_row_key queued = fgw_row_key_queue(row.released_at, 'b', digest);
        fgw_buf_clear(&apply->encoded);
        fgw_apply_put(apply, &queued);
    }
    put_block(apply, &key, &row);
    return FGW_OK;
}

enum fgw_err fgw_apply_free_block(struct fgw_apply *apply, struct fgw_bytes digest)
{
    struct fgw_row_key key;
    struct fgw_block_row row;
    if (digest.len != FGW_SHA256_SIZE) {
        return FGW_ERR_CORRUPT;
    }
    enum fgw_err err = get_block(apply, digest.ptr, &key, &row);
    if (err != FGW_OK || row.refs > 0) {
        return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    struct fgw_row_key queued = fgw_row_key_queue(row.released_at, 'b', digest.ptr);
    fgw_apply_delete(apply, &queued);
    forget_block(apply, &key, &row);
    return FGW_OK;
}

enum fgw_err fgw_apply_move(struct fgw_apply *apply, struct fgw_bytes value)
{
    struct fgw_item_move move;
    struct fgw_row_key key;
    struct fgw_block_row row;
    enum fgw_err err = fgw_item_move(value, &move);
    if (err == FGW_OK) {
        err = get_block(apply, move.digest, &key, &row);
    }
    if (err != FGW_OK || row.group != move.from_group || row.offset != move.from_offset) {
        return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    move_row(apply, &row, move.to_group, move.to_offset);
    fgw_apply_count_written(apply, move.to_group, row.len);
    put_block(apply, &key, &row);
    return FGW_OK;
}

enum fgw_err fgw_apply_mark_bad(struct fgw_apply *apply, struct fgw_bytes value)
{
    const uint8_t *digest = NULL;
    uint64_t group = 0;
    uint64_t offset = 0;
    struct fgw_row_key key;
    struct fgw_block_row row;
    enum fgw_err err = fgw_item_mark_bad(value, &digest, &group, &offset);
    if (err == FGW_OK) {
        err = get_block(apply, digest, &key, &row);
    }
    if (err != FGW_OK || row.group != group || row.offset != offset) {
        return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    row.bad = true;
    put_block(apply, &key, &row);
    return FGW_OK;
}
