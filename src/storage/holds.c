/* holds.c: walking over every hold of a store (storage.h, fgw_storage_holds_next).
 *
 * Three tables, one after the other: `b` rows with a direct owner, `h` rows of blobs with more than
 * one block, `r` rows of owners. A hold stands in one of them only and never wanders between them,
 * so whoever is there the whole time is met. The cursor is the first key not looked at yet.
 */
#include "storage/storage_internal.h"

enum {
    LOOK_MAX = 4096 /* rows of one step on the pool: most `b` rows belong to lists, not owners */
};

static const char TABLES[] = "bhr";

struct walk {
    struct fgw_kv *kv;
    struct fgw_row_key next; /* first key not looked at */
    struct fgw_arena *arena;
    struct fgw_storage_hold_seen *seen;
    size_t count;
    size_t max;
    bool ended;
    struct fgw_buf value;
    enum fgw_err result;
};

static void set_next(struct walk *walk, struct fgw_bytes key)
{
    FGW_CHECK(key.len < sizeof walk->next.bytes);
    memcpy(walk->next.bytes, key.ptr, key.len);
    walk->next.bytes[key.len] = 0;
    walk->next.len = key.len + 1;
}

static struct fgw_storage_hold_seen *add(struct walk *walk, const struct fgw_storage_owner *owner,
                                         uint64_t extent)
{
    struct fgw_storage_hold_seen *seen = &walk->seen[walk->count++];
    *seen = (struct fgw_storage_hold_seen){.owner = *owner, .extent = extent};
    seen->owner.key = fgw_arena_copy(walk->arena, owner->key);
    return seen;
}

static enum fgw_err see_block(struct walk *walk, struct fgw_bytes key, struct fgw_bytes value)
{
    struct fgw_block_row row;
    enum fgw_err err = fgw_block_row_decode(value, &row);
    if (err == FGW_OK && row.owner_kind == FGW_BLOCK_OWNED) {
        struct fgw_storage_hold_seen *seen = add(walk, &row.owner.address, row.owner.extent);
        seen->root = fgw_cid_make(row.codec, key.ptr + 1);
        seen->size_bytes = row.len;
    }
    return err;
}

/* A row beside the one the iterator stands at. It may be gone by now: with it the hold is. */
static enum fgw_err get_beside(struct walk *walk, const struct fgw_row_key *key, bool *out_found)
{
    enum fgw_err err =
        fgw_kv_get(walk->kv, FGW_KV_BLOCKS, fgw_row_key_bytes(key), false, &walk->value);
    *out_found = err == FGW_OK;
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

static enum fgw_err see_hold(struct walk *walk, struct fgw_bytes key, struct fgw_bytes value)
{
    struct fgw_hold_row row;
    struct fgw_blob_row blob;
    bool found = false;
    enum fgw_err err = fgw_hold_row_decode(value, &row);
    if (err != FGW_OK || row.codec == FGW_CODEC_RAW) {
        return err; /* of one block: met in the other tables */
    }
    struct fgw_row_key blob_key = fgw_row_key_blob(row.digest);
    err = get_beside(walk, &blob_key, &found);
    if (err == FGW_OK && found) {
        err = fgw_blob_row_decode(fgw_buf_bytes(&walk->value), &blob);
    }
    if (err == FGW_OK && found) {
        struct fgw_storage_owner owner = {.key = row.key};
        memcpy(owner.bucket_id, row.bucket_id, sizeof owner.bucket_id);
        memcpy(owner.owner_id, key.ptr + 1, sizeof owner.owner_id);
        struct fgw_storage_hold_seen *seen =
            add(walk, &owner, fgw_get_u64be(key.ptr + 1 + FGW_STORAGE_ID_SIZE));
        seen->root = fgw_cid_make(row.codec, row.digest);
        seen->size_bytes = blob.size;
    }
    return err;
}

static enum fgw_err see_reference(struct walk *walk, struct fgw_bytes key, struct fgw_bytes value)
{
    struct fgw_ref_row row;
    struct fgw_block_row block;
    bool found = false;
    const uint8_t *digest = key.ptr + 1;
    enum fgw_err err = fgw_ref_row_decode(value, &row);
    if (err != FGW_OK || row.of_list) {
        return err;
    }
    struct fgw_row_key block_key = fgw_row_key_block(digest);
    err = get_beside(walk, &block_key, &found);
    if (err == FGW_OK && found) {
        err = fgw_block_row_decode(fgw_buf_bytes(&walk->value), &block);
    }
    if (err == FGW_OK && found) {
        struct fgw_storage_owner owner = {.key = row.key};
        memcpy(owner.bucket_id, row.bucket_id, sizeof owner.bucket_id);
        memcpy(owner.owner_id, digest + FGW_SHA256_SIZE, sizeof owner.owner_id);
        struct fgw_storage_hold_seen *seen =
            add(walk, &owner, fgw_get_u64be(digest + FGW_SHA256_SIZE + FGW_STORAGE_ID_SIZE));
        seen->root = fgw_cid_make(block.codec, digest);
        seen->size_bytes = block.len;
    }
    return err;
}

static enum fgw_err see_row(struct walk *walk, struct fgw_bytes key, struct fgw_bytes value)
{
    switch (key.ptr[0]) {
    case 'b':
        return key.len == 1 + FGW_SHA256_SIZE ? see_block(walk, key, value) : FGW_ERR_CORRUPT;
    case 'h':
        return key.len == 1 + FGW_STORAGE_ID_SIZE + 8 ? see_hold(walk, key, value)
                                                      : FGW_ERR_CORRUPT;
    default:
        return key.len == 1 + FGW_SHA256_SIZE + FGW_STORAGE_ID_SIZE + 8
                   ? see_reference(walk, key, value)
                   : FGW_ERR_CORRUPT;
    }
}

/* Looks at rows of the table `next` stands in; *out_end: none follow. */
static enum fgw_err walk_table(struct walk *walk, bool *out_end)
{
    uint8_t upper = (uint8_t)(walk->next.bytes[0] + 1);
    struct fgw_kv_scan scan = {.family = FGW_KV_BLOCKS,
                               .lower = fgw_row_key_bytes(&walk->next),
                               .upper = fgw_bytes(&upper, 1),
                               .background = true};
    struct fgw_kv_iter *iter = fgw_kv_iter_scan(walk->kv, &scan);
    enum fgw_err err = FGW_OK;
    fgw_kv_iter_seek_first(iter);
    for (size_t looked = 0;
         looked < LOOK_MAX && walk->count < walk->max && err == FGW_OK && fgw_kv_iter_valid(iter);
         looked++) {
        struct fgw_bytes key = fgw_kv_iter_key(iter);
        err = see_row(walk, key, fgw_kv_iter_value(iter));
        if (err == FGW_OK) {
            set_next(walk, key);
            fgw_kv_iter_next(iter);
        }
    }
    *out_end = err == FGW_OK && !fgw_kv_iter_valid(iter);
    if (err == FGW_OK) {
        err = fgw_kv_iter_status(iter, NULL);
    }
    fgw_kv_iter_free(iter);
    return err;
}

static void next_table(struct walk *walk)
{
    const char *table = strchr(TABLES, walk->next.bytes[0]);
    walk->next = (struct fgw_row_key){.bytes = {(uint8_t)table[1]}, .len = 1};
    walk->ended = table[1] == '\0';
}

/* On the pool. */
static void run_step(void *arg)
{
    struct walk *walk = arg;
    bool end = false;
    walk->result = walk_table(walk, &end);
    if (walk->result == FGW_OK && end) {
        next_table(walk);
    }
}

/* The end is a cursor of its own: asked again, the walk does not begin anew. */
static bool take_cursor(struct walk *walk, struct fgw_bytes cursor)
{
    if (cursor.len == 0) {
        walk->next = (struct fgw_row_key){.bytes = {(uint8_t)TABLES[0]}, .len = 1};
        return true;
    }
    if (cursor.len > sizeof walk->next.bytes ||
        (cursor.ptr[0] != '\0' && strchr(TABLES, cursor.ptr[0]) == NULL)) {
        return false;
    }
    memcpy(walk->next.bytes, cursor.ptr, cursor.len);
    walk->next.len = cursor.len;
    walk->ended = cursor.ptr[0] == '\0';
    return true;
}

enum fgw_err fgw_storage_holds_next(struct fgw_storage *storage, struct fgw_buf *cursor,
                                    struct fgw_arena *arena, size_t max,
                                    struct fgw_storage_hold_seen **out_seen, size_t *out_count)
{
    struct walk walk = {.kv = storage->kv, .arena = arena, .max = max};
    if (max == 0 || !take_cursor(&walk, fgw_buf_bytes(cursor))) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    walk.seen = fgw_arena_alloc(arena, max * sizeof *walk.seen);
    fgw_buf_init(&walk.value, 0);
    while (walk.result == FGW_OK && walk.count == 0 && !walk.ended) {
        fgw_pool_run(storage->pool, run_step, &walk);
    }
    fgw_buf_deinit(&walk.value);
    if (walk.result == FGW_OK) {
        fgw_buf_clear(cursor);
        walk.result = fgw_buf_append(cursor, fgw_row_key_bytes(&walk.next));
    }
    if (walk.result == FGW_OK) {
        *out_seen = walk.seen;
        *out_count = walk.count;
    }
    return walk.result;
}
