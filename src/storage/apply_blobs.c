/* apply_blobs.c: holds, blobs of more than one block and their lists; see apply.h. */
#include "storage/apply_internal.h"

static void put_hold(struct fgw_apply *apply, const struct fgw_item_owner *owner, uint8_t codec,
                     const uint8_t *digest)
{
    struct fgw_row_key key = fgw_row_key_hold(owner->address.owner_id, owner->extent);
    struct fgw_hold_row row = {.codec = codec, .key = owner->address.key};
    memcpy(row.digest, digest, sizeof row.digest);
    memcpy(row.bucket_id, owner->address.bucket_id, sizeof row.bucket_id);
    fgw_hold_row_encode(&apply->encoded, &row);
    fgw_apply_put(apply, &key);
}

/* -- pending holds ------------------------------------------------------------------------------ */

static void put_pending(struct fgw_apply *apply, const struct fgw_item_owner *owner, uint8_t codec,
                        const uint8_t *digest)
{
    struct fgw_row_key key = fgw_row_key_pending(owner->address.owner_id, owner->extent);
    struct fgw_pending_row row = {
        .codec = codec, .since_ms = apply->running_ms, .key = owner->address.key};
    if (owner->pending) {
        memcpy(row.digest, digest, sizeof row.digest);
        memcpy(row.bucket_id, owner->address.bucket_id, sizeof row.bucket_id);
        fgw_pending_row_encode(&apply->encoded, &row);
        fgw_apply_put(apply, &key);
    }
}

static enum fgw_err end_pending(struct fgw_apply *apply, const struct fgw_item_release *release)
{
    struct fgw_bytes value;
    struct fgw_pending_row row;
    struct fgw_row_key key = fgw_row_key_pending(release->owner_id, release->extent);
    enum fgw_err err = fgw_apply_get(apply, &key, &value);
    if (err == FGW_OK) {
        err = fgw_pending_row_decode(value, &row);
    }
    if (err == FGW_OK && memcmp(row.digest, release->digest, sizeof row.digest) == 0) {
        fgw_apply_delete(apply, &key);
    }
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

enum fgw_err fgw_apply_confirm(struct fgw_apply *apply, struct fgw_bytes value)
{
    struct fgw_item_release confirm;
    enum fgw_err err = fgw_item_release(value, &confirm);
    return err == FGW_OK ? end_pending(apply, &confirm) : err;
}

/* -- holds -------------------------------------------------------------------------------------- */

enum fgw_err fgw_apply_block_hold(struct fgw_apply *apply, struct fgw_bytes value)
{
    struct fgw_item_block block;
    struct fgw_item_owner owner;
    enum fgw_err err = fgw_item_block_hold(value, &block, &owner);
    if (err != FGW_OK) {
        return err;
    }
    if (owner.listed) {
        put_hold(apply, &owner, block.codec, block.digest);
    }
    put_pending(apply, &owner, block.codec, block.digest);
    return fgw_apply_add_ref(apply, &block, &(struct fgw_apply_ref){.owner = &owner});
}

/* -- blobs -------------------------------------------------------------------------------------- */

static enum fgw_err get_blob(struct fgw_apply *apply, const uint8_t *digest,
                             struct fgw_row_key *key, struct fgw_blob_row *row)
{
    struct fgw_bytes value;
    *key = fgw_row_key_blob(digest);
    enum fgw_err err = fgw_apply_get(apply, key, &value);
    return err == FGW_OK ? fgw_blob_row_decode(value, row) : err;
}

static void put_blob(struct fgw_apply *apply, const struct fgw_row_key *key,
                     const struct fgw_blob_row *row)
{
    fgw_blob_row_encode(&apply->encoded, row);
    fgw_apply_put(apply, key);
}

static bool holds_already(struct fgw_apply *apply, const struct fgw_item_owner *owner,
                          const uint8_t *digest)
{
    struct fgw_bytes value;
    struct fgw_hold_row row;
    struct fgw_row_key key = fgw_row_key_hold(owner->address.owner_id, owner->extent);
    return fgw_apply_get(apply, &key, &value) == FGW_OK &&
           fgw_hold_row_decode(value, &row) == FGW_OK &&
           memcmp(row.digest, digest, sizeof row.digest) == 0;
}

static void hold_blob(struct fgw_apply *apply, const struct fgw_row_key *key,
                      struct fgw_blob_row *row, const uint8_t *digest,
                      const struct fgw_item_owner *owner)
{
    put_pending(apply, owner, FGW_CODEC_DAG_PB, digest);
    if (holds_already(apply, owner, digest)) {
        return;
    }
    if (row->released_at != 0) {
        struct fgw_row_key queued = fgw_row_key_queue(row->released_at, 'B', digest);
        fgw_apply_delete(apply, &queued);
        row->released_at = 0;
    }
    row->holds++;
    put_blob(apply, key, row);
    put_hold(apply, owner, FGW_CODEC_DAG_PB, digest);
}

enum fgw_err fgw_apply_blob_hold(struct fgw_apply *apply, struct fgw_bytes value)
{
    const uint8_t *digest;
    struct fgw_item_owner owner;
    struct fgw_row_key key;
    struct fgw_blob_row row;
    enum fgw_err err = fgw_item_blob_hold(value, &digest, &owner);
    if (err == FGW_OK) {
        err = get_blob(apply, digest, &key, &row);
    }
    if (err == FGW_OK) {
        hold_blob(apply, &key, &row, digest, &owner);
    }
    return err;
}

static enum fgw_err release_blob(struct fgw_apply *apply, const struct fgw_item_release *release,
                                 const struct fgw_item_owner *owner)
{
    struct fgw_row_key key;
    struct fgw_blob_row row;
    if (!holds_already(apply, owner, release->digest)) {
        return FGW_OK;
    }
    struct fgw_row_key hold_key = fgw_row_key_hold(release->owner_id, release->extent);
    enum fgw_err err = get_blob(apply, release->digest, &key, &row);
    if (err != FGW_OK || row.holds == 0) {
        return err == FGW_OK ? FGW_ERR_CORRUPT : err;
    }
    fgw_apply_delete(apply, &hold_key);
    if (--row.holds == 0) {
        row.released_at = apply->running_ms + 1;
        struct fgw_row_key queued = fgw_row_key_queue(row.released_at, 'B', release->digest);
        fgw_buf_clear(&apply->encoded);
        fgw_apply_put(apply, &queued);
    }
    put_blob(apply, &key, &row);
    return FGW_OK;
}

enum fgw_err fgw_apply_release(struct fgw_apply *apply, struct fgw_bytes value)
{
    struct fgw_item_release release;
    struct fgw_item_owner owner = {0};
    enum fgw_err err = fgw_item_release(value, &release);
    if (err != FGW_OK) {
        return err;
    }
    memcpy(owner.address.owner_id, release.owner_id, sizeof release.owner_id);
    owner.extent = release.extent;
    err = end_pending(apply, &release);
    if (err != FGW_OK) {
        return err;
    }
    return release.codec == FGW_CODEC_RAW
               ? fgw_apply_drop_ref(apply, release.digest, &(struct fgw_apply_ref){.owner = &owner},
                                    false)
               : release_blob(apply, &release, &owner);
}

/* -- lists -------------------------------------------------------------------------------------- */

static enum fgw_err get_list(struct fgw_apply *apply, const uint8_t *list_id,
                             struct fgw_row_key *key, struct fgw_list_row *row)
{
    struct fgw_bytes value;
    *key = fgw_row_key_list(list_id);
    enum fgw_err err = fgw_apply_get(apply, key, &value);
    return err == FGW_OK ? fgw_list_row_decode(value, row) : err;
}

static void put_list(struct fgw_apply *apply, const struct fgw_row_key *key,
                     const struct fgw_list_row *row)
{
    fgw_list_row_encode(&apply->encoded, row);
    fgw_apply_put(apply, key);
}

/* References on the slice's blocks; their digests are collected in the arena. */
static enum fgw_err hold_slice_blocks(struct fgw_apply *apply, const struct fgw_item_slice *slice,
                                      uint8_t *digests, size_t *out_count)
{
    struct fgw_apply_ref ref = {.owner = &slice->owner, .list_id = slice->list_id};
    struct fgw_bytes rest = slice->blocks;
    struct fgw_item_block block;
    size_t count = 0;
    enum fgw_err err;
    while ((err = fgw_item_next_block(&rest, &block)) == FGW_OK) {
        if (count == FGW_SLICE_BLOCKS) {
            return FGW_ERR_CORRUPT;
        }
        err = fgw_apply_add_ref(apply, &block, &ref);
        if (err != FGW_OK) {
            return err;
        }
        memcpy(digests + count * FGW_SHA256_SIZE, block.digest, FGW_SHA256_SIZE);
        count++;
    }
    *out_count = count;
    return err == FGW_ERR_END ? FGW_OK : err;
}

enum fgw_err fgw_apply_slice(struct fgw_apply *apply, struct fgw_bytes value)
{
    struct fgw_item_slice slice;
    struct fgw_row_key key;
    struct fgw_list_row list;
    size_t count = 0;
    enum fgw_err err = fgw_item_slice(value, &slice);
    if (err != FGW_OK) {
        return err;
    }
    err = get_list(apply, slice.list_id, &key, &list);
    if (err == FGW_ERR_NOT_FOUND) {
        list = (struct fgw_list_row){.state = FGW_LIST_PENDING, .owner = slice.owner};
        err = FGW_OK;
    }
    if (err != FGW_OK || list.state != FGW_LIST_PENDING || slice.first != list.count[slice.kind] ||
        slice.first % FGW_SLICE_BLOCKS != 0) {
        return err == FGW_OK ? FGW_ERR_CORRUPT : err;
    }
    uint8_t *digests = fgw_arena_alloc(&apply->arena, (size_t)FGW_SLICE_BLOCKS * FGW_SHA256_SIZE);
    err = hold_slice_blocks(apply, &slice, digests, &count);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_row_key slice_key = fgw_row_key_slice(slice.list_id, slice.kind, slice.first);
    fgw_buf_clear(&apply->encoded);
    (void)fgw_buf_append_byte(&apply->encoded, FGW_ROW_VERSION);
    (void)fgw_buf_append(&apply->encoded, fgw_bytes(digests, count * FGW_SHA256_SIZE));
    fgw_apply_put(apply, &slice_key);
    list.count[slice.kind] += count;
    put_list(apply, &key, &list);
    return FGW_OK;
}

static void drop_list(struct fgw_apply *apply, const struct fgw_row_key *key,
                      struct fgw_list_row *list)
{
    list->state = FGW_LIST_DROPPING;
    put_list(apply, key, list);
}

enum fgw_err fgw_apply_finish(struct fgw_apply *apply, struct fgw_bytes value)
{
    struct fgw_item_finish finish;
    struct fgw_row_key key;
    struct fgw_row_key list_key;
    struct fgw_blob_row blob;
    struct fgw_list_row list;
    enum fgw_err err = fgw_item_finish(value, &finish);
    if (err == FGW_OK) {
        err = get_list(apply, finish.list_id, &list_key, &list);
    }
    if (err != FGW_OK || list.state != FGW_LIST_PENDING ||
        list.count[FGW_LIST_LEAVES] != finish.leaves ||
        list.count[FGW_LIST_NODES] != finish.nodes) {
        return err == FGW_OK ? FGW_ERR_CORRUPT : err;
    }
    err = get_blob(apply, finish.digest, &key, &blob);
    if (err == FGW_ERR_NOT_FOUND) {
        blob = (struct fgw_blob_row){
            .size = finish.size, .leaves = finish.leaves, .nodes = finish.nodes};
        memcpy(blob.list_id, finish.list_id, sizeof blob.list_id);
        fgw_apply_delete(apply, &list_key);
        err = FGW_OK;
    } else if (err == FGW_OK) {
        drop_list(apply, &list_key, &list);
    }
    if (err == FGW_OK) {
        hold_blob(apply, &key, &blob, finish.digest, &finish.owner);
    }
    return err;
}

enum fgw_err fgw_apply_abandon(struct fgw_apply *apply, struct fgw_bytes list_id)
{
    struct fgw_row_key key;
    struct fgw_list_row list;
    if (list_id.len != FGW_LIST_ID_SIZE) {
        return FGW_ERR_CORRUPT;
    }
    enum fgw_err err = get_list(apply, list_id.ptr, &key, &list);
    if (err == FGW_OK && list.state == FGW_LIST_PENDING) {
        drop_list(apply, &key, &list);
    }
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

enum fgw_err fgw_apply_free_blob(struct fgw_apply *apply, struct fgw_bytes digest)
{
    struct fgw_row_key key;
    struct fgw_blob_row blob;
    if (digest.len != FGW_SHA256_SIZE) {
        return FGW_ERR_CORRUPT;
    }
    enum fgw_err err = get_blob(apply, digest.ptr, &key, &blob);
    if (err != FGW_OK || blob.holds > 0) {
        return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    struct fgw_row_key queued = fgw_row_key_queue(blob.released_at, 'B', digest.ptr);
    struct fgw_row_key list_key = fgw_row_key_list(blob.list_id);
    struct fgw_list_row list = {.state = FGW_LIST_DROPPING, .count = {blob.leaves, blob.nodes}};
    fgw_apply_delete(apply, &queued);
    fgw_apply_delete(apply, &key);
    put_list(apply, &list_key, &list);
    return FGW_OK;
}

static enum fgw_err drop_slice_blocks(struct fgw_apply *apply, const uint8_t *list_id,
                                      struct fgw_bytes digests)
{
    struct fgw_apply_ref ref = {.list_id = list_id};
    enum fgw_err err = FGW_OK;
    for (size_t at = 0; at < digests.len && err == FGW_OK; at += FGW_SHA256_SIZE) {
        err = fgw_apply_drop_ref(apply, digests.ptr + at, &ref, true);
    }
    return err;
}

enum fgw_err fgw_apply_drop_slice(struct fgw_apply *apply, struct fgw_bytes value)
{
    const uint8_t *list_id = NULL;
    uint8_t kind = 0;
    uint64_t first = 0;
    struct fgw_row_key list_key;
    struct fgw_list_row list;
    struct fgw_bytes slice;
    enum fgw_err err = fgw_item_drop_slice(value, &list_id, &kind, &first);
    if (err == FGW_OK) {
        err = get_list(apply, list_id, &list_key, &list);
    }
    if (err != FGW_OK || list.state != FGW_LIST_DROPPING) {
        return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    struct fgw_row_key key = fgw_row_key_slice(list_id, kind, first);
    err = fgw_apply_get(apply, &key, &slice);
    if (err != FGW_OK) {
        return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    uint64_t count = (slice.len - 1) / FGW_SHA256_SIZE;
    if ((slice.len - 1) % FGW_SHA256_SIZE != 0 || list.count[kind] != first + count) {
        return FGW_ERR_CORRUPT;
    }
    err = drop_slice_blocks(apply, list_id, fgw_bytes_sub(slice, 1, SIZE_MAX));
    fgw_apply_delete(apply, &key);
    list.count[kind] = first;
    if (list.count[FGW_LIST_LEAVES] + list.count[FGW_LIST_NODES] == 0) {
        fgw_apply_delete(apply, &list_key);
    } else {
        put_list(apply, &list_key, &list);
    }
    return err;
}
