/* release.c: see release.h.
 *
 * Crash argument: every step is one logged operation whose effect apply derives from the index
 * alone; a step that is said twice does nothing the second time.
 */
#include "storage/release.h"

#include "base/log.h"
#include "storage/index_page.h"
#include "storage/storage_internal.h"

enum { QUEUE_SLICE = 500, HOLDS_SLICE = 1000, LISTS_SLICE = 16, QUEUE_ID_AT = 10 };

enum fgw_err fgw_release_holds(struct fgw_storage *storage,
                               const struct fgw_storage_hold_seen *holds, size_t count)
{
    struct fgw_buf items;
    fgw_buf_init(&items, 0);
    for (size_t i = 0; i < count; i++) {
        struct fgw_item_release release = {.extent = holds[i].extent,
                                           .codec = (uint8_t)fgw_cid_codec(&holds[i].root)};
        memcpy(release.owner_id, holds[i].owner.owner_id, sizeof release.owner_id);
        memcpy(release.digest, fgw_cid_digest(&holds[i].root), sizeof release.digest);
        fgw_item_put_release(&items, FGW_ITEM_RELEASE, &release);
    }
    enum fgw_err err = count > 0 ? fgw_storage_commit_items(storage, "release", &items) : FGW_OK;
    fgw_buf_deinit(&items);
    return err;
}

enum fgw_err fgw_storage_release(struct fgw_storage *storage,
                                 const uint8_t owner_id[FGW_STORAGE_ID_SIZE], uint64_t extent,
                                 const struct fgw_cid *root)
{
    struct fgw_storage_hold_seen hold = {.extent = extent, .root = *root};
    memcpy(hold.owner.owner_id, owner_id, sizeof hold.owner.owner_id);
    return fgw_release_holds(storage, &hold, 1);
}

/* -- lists of dead writers ----------------------------------------------------------------------- */

static struct fgw_index_range table_range(struct fgw_row_key *lower, struct fgw_row_key *upper,
                                          char letter, size_t max)
{
    *lower = (struct fgw_row_key){.bytes = {(uint8_t)letter}, .len = 1};
    *upper = (struct fgw_row_key){.bytes = {(uint8_t)(letter + 1)}, .len = 1};
    return (struct fgw_index_range){fgw_row_key_bytes(lower), fgw_row_key_bytes(upper), max};
}

enum fgw_err fgw_release_find_orphans(struct fgw_storage *storage)
{
    struct fgw_release *release = &storage->release;
    struct fgw_index_page page;
    struct fgw_row_key lower;
    struct fgw_row_key upper;
    struct fgw_index_range range = table_range(&lower, &upper, 'p', SIZE_MAX);
    fgw_index_page_init(&page);
    enum fgw_err err = fgw_index_page_load(&page, storage->kv, &range);
    for (size_t i = 0; i < page.count && err == FGW_OK; i++) {
        struct fgw_list_row row;
        err = fgw_list_row_decode(page.rows[i].value, &row);
        if (err == FGW_OK && row.state == FGW_LIST_PENDING &&
            page.rows[i].key.len == 1 + (size_t)FGW_LIST_ID_SIZE) {
            release->orphans = fgw_xrealloc(release->orphans,
                                            (release->orphan_count + 1) * sizeof *release->orphans);
            memcpy(release->orphans[release->orphan_count++], page.rows[i].key.ptr + 1,
                   FGW_LIST_ID_SIZE);
        }
    }
    fgw_index_page_deinit(&page);
    return err;
}

void fgw_release_deinit(struct fgw_release *release)
{
    fgw_xfree(release->orphans);
    release->orphans = NULL;
    release->orphan_count = 0;
}

static enum fgw_err abandon_orphans(struct fgw_storage *storage)
{
    struct fgw_release *release = &storage->release;
    struct fgw_buf items;
    if (release->orphan_count == 0) {
        return FGW_OK;
    }
    fgw_buf_init(&items, 0);
    for (size_t i = 0; i < release->orphan_count; i++) {
        fgw_item_put_bytes(&items, FGW_ITEM_ABANDON,
                           fgw_bytes(release->orphans[i], FGW_LIST_ID_SIZE));
    }
    enum fgw_err err = fgw_storage_commit_items(storage, "abandon", &items);
    if (err == FGW_OK) {
        fgw_log_info("storage", "unfinished uploads of an earlier process are dropped lists=%zu",
                     release->orphan_count);
        fgw_release_deinit(release);
    }
    fgw_buf_deinit(&items);
    return err;
}

/* -- owners whose holds all end ------------------------------------------------------------------ */

static enum fgw_err release_owner(struct fgw_storage *storage, const uint8_t *owner_id,
                                  struct fgw_release_result *result)
{
    struct fgw_row_key lower = fgw_row_key_hold(owner_id, 0);
    struct fgw_row_key upper = fgw_row_key_hold(owner_id, UINT64_MAX);
    struct fgw_index_page page;
    struct fgw_buf items;
    upper.bytes[upper.len++] = 0;
    struct fgw_index_range range = {fgw_row_key_bytes(&lower), fgw_row_key_bytes(&upper),
                                    HOLDS_SLICE};
    fgw_index_page_init(&page);
    fgw_buf_init(&items, 0);
    enum fgw_err err = fgw_index_page_read(&page, storage->pool, storage->kv, &range);
    for (size_t i = 0; i < page.count && err == FGW_OK; i++) {
        struct fgw_hold_row row;
        struct fgw_item_release release;
        err = fgw_hold_row_decode(page.rows[i].value, &row);
        if (err == FGW_OK) {
            memcpy(release.owner_id, owner_id, sizeof release.owner_id);
            release.extent = fgw_get_u64be(page.rows[i].key.ptr + 1 + FGW_STORAGE_ID_SIZE);
            release.codec = row.codec;
            memcpy(release.digest, row.digest, sizeof release.digest);
            fgw_item_put_release(&items, FGW_ITEM_RELEASE, &release);
        }
    }
    if (err == FGW_OK && !page.more) {
        fgw_item_put_bytes(&items, FGW_ITEM_HOLD_DONE, fgw_bytes(owner_id, FGW_STORAGE_ID_SIZE));
        result->owners++;
    }
    result->more = result->more || page.more;
    if (err == FGW_OK) {
        err = fgw_storage_commit_items(storage, "release", &items);
    }
    fgw_buf_deinit(&items);
    fgw_index_page_deinit(&page);
    return err;
}

static enum fgw_err release_owners(struct fgw_storage *storage, struct fgw_release_result *result)
{
    static const uint8_t NOBODY[FGW_SHA256_SIZE];
    struct fgw_row_key lower = fgw_row_key_queue(0, 'o', NOBODY);
    struct fgw_row_key upper = fgw_row_key_queue(0, 'p', NOBODY);
    struct fgw_index_page page;
    struct fgw_index_range range = {fgw_row_key_bytes(&lower), fgw_row_key_bytes(&upper),
                                    LISTS_SLICE};
    fgw_index_page_init(&page);
    enum fgw_err err = fgw_index_page_read(&page, storage->pool, storage->kv, &range);
    for (size_t i = 0; i < page.count && err == FGW_OK; i++) {
        err = release_owner(storage, page.rows[i].key.ptr + QUEUE_ID_AT, result);
    }
    result->more = result->more || page.more;
    fgw_index_page_deinit(&page);
    return err;
}

/* -- blocks and blobs without holds -------------------------------------------------------------- */

/* Puts what frees one entry; false when it must wait for a reader. */
static bool put_free(struct fgw_storage *storage, char kind, const uint8_t *digest,
                     struct fgw_buf *items, struct fgw_release_result *result)
{
    struct fgw_bytes id = fgw_bytes(digest, FGW_SHA256_SIZE);
    if (kind == 'b') {
        fgw_item_put_bytes(items, FGW_ITEM_FREE_BLOCK, id);
        result->blocks++;
        return true;
    }
    if (fgw_sessions_name(&storage->sessions, digest)) {
        return false;
    }
    fgw_item_put_bytes(items, FGW_ITEM_FREE_BLOB, id);
    result->blobs++;
    return true;
}

static enum fgw_err free_due(struct fgw_storage *storage, const struct fgw_index_page *page,
                             struct fgw_release_result *result)
{
    struct fgw_release *release = &storage->release;
    struct fgw_buf items;
    uint64_t oldest_kept = UINT64_MAX;
    uint64_t last = release->from_ms;
    fgw_buf_init(&items, 0);
    for (size_t i = 0; i < page->count; i++) {
        struct fgw_bytes key = page->rows[i].key;
        uint64_t released_at = fgw_get_u64be(key.ptr + 1);
        if (key.len != (size_t)QUEUE_ID_AT + FGW_SHA256_SIZE) {
            continue;
        }
        if (!put_free(storage, (char)key.ptr[9], key.ptr + QUEUE_ID_AT, &items, result) &&
            oldest_kept == UINT64_MAX) {
            oldest_kept = released_at;
        }
        last = released_at;
    }
    enum fgw_err err = items.len > 0 ? fgw_storage_commit_items(storage, "free", &items) : FGW_OK;
    if (err == FGW_OK) {
        release->from_ms = oldest_kept < last ? oldest_kept : last;
        result->more = result->more || (page->more && items.len > 0);
    }
    fgw_buf_deinit(&items);
    return err;
}

static enum fgw_err free_queued(struct fgw_storage *storage, struct fgw_release_result *result)
{
    static const uint8_t NOTHING[FGW_SHA256_SIZE];
    struct fgw_release *release = &storage->release;
    uint64_t now_ms = fgw_storage_running_ms(storage);
    uint64_t delay_ms = storage->options.release_delay_ms;
    if (now_ms < delay_ms) {
        return FGW_OK;
    }
    uint64_t from_ms = release->from_ms > 0 ? release->from_ms : 1; /* 0 is for owners */
    struct fgw_row_key lower = fgw_row_key_queue(from_ms, '\0', NOTHING);
    struct fgw_row_key upper = fgw_row_key_queue(now_ms - delay_ms + 1, '\0', NOTHING);
    struct fgw_index_page page;
    struct fgw_index_range range = {fgw_row_key_bytes(&lower), fgw_row_key_bytes(&upper),
                                    QUEUE_SLICE};
    fgw_index_page_init(&page);
    enum fgw_err err = fgw_index_page_read(&page, storage->pool, storage->kv, &range);
    if (err == FGW_OK && page.count > 0) {
        err = free_due(storage, &page, result);
    }
    fgw_index_page_deinit(&page);
    return err;
}

/* -- lists of no blob ---------------------------------------------------------------------------- */

/* The last slice of the list goes; nodes before leaves. */
static enum fgw_err drop_slice(struct fgw_storage *storage, const uint8_t *list_id,
                               const struct fgw_list_row *row)
{
    struct fgw_buf items;
    uint8_t kind = row->count[FGW_LIST_NODES] > 0 ? FGW_LIST_NODES : FGW_LIST_LEAVES;
    uint64_t last = row->count[kind] - 1;
    fgw_buf_init(&items, 0);
    fgw_item_put_drop_slice(&items, list_id, kind, last - last % FGW_SLICE_BLOCKS);
    enum fgw_err err = fgw_storage_commit_items(storage, "drop", &items);
    fgw_buf_deinit(&items);
    return err;
}

static enum fgw_err drop_lists(struct fgw_storage *storage, struct fgw_release_result *result)
{
    struct fgw_index_page page;
    struct fgw_row_key lower;
    struct fgw_row_key upper;
    struct fgw_index_range range = table_range(&lower, &upper, 'p', SIZE_MAX);
    fgw_index_page_init(&page);
    enum fgw_err err = fgw_index_page_read(&page, storage->pool, storage->kv, &range);
    size_t dropped = 0;
    for (size_t i = 0; i < page.count && err == FGW_OK && dropped < LISTS_SLICE; i++) {
        struct fgw_list_row row;
        err = fgw_list_row_decode(page.rows[i].value, &row);
        if (err == FGW_OK && row.state == FGW_LIST_DROPPING &&
            row.count[FGW_LIST_LEAVES] + row.count[FGW_LIST_NODES] > 0) {
            err = drop_slice(storage, page.rows[i].key.ptr + 1, &row);
            dropped++;
        }
    }
    result->slices += dropped;
    result->more = result->more || dropped > 0;
    fgw_index_page_deinit(&page);
    return err;
}

enum fgw_err fgw_release_pass(struct fgw_storage *storage, struct fgw_release_result *out_result)
{
    struct fgw_release_result result = {0};
    enum fgw_err err = abandon_orphans(storage);
    if (err == FGW_OK) {
        err = release_owners(storage, &result);
    }
    if (err == FGW_OK) {
        err = free_queued(storage, &result);
    }
    if (err == FGW_OK) {
        err = drop_lists(storage, &result);
    }
    if (err == FGW_OK) {
        *out_result = result;
    }
    return err;
}
