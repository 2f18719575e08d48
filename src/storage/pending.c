/* pending.c: see pending.h. */
#include "storage/pending.h"

#include "storage/index_page.h"
#include "storage/storage_internal.h"

enum { ASK_MS = 5 * 60 * 1000, DROP_MS = 2 * 3600 * 1000, PAGE = 500, KEY_SIZE = 25 };

struct pass {
    struct fgw_storage *storage;
    fgw_storage_live_fn *live;
    void *context;
    uint64_t now_ms;
    uint64_t count;
    struct fgw_buf items; /* outcomes of a page */
};

static uint64_t ask_ms(const struct fgw_storage *storage)
{
    return storage->options.pending_ask_ms != 0 ? storage->options.pending_ask_ms : ASK_MS;
}

static uint64_t drop_ms(const struct fgw_storage *storage)
{
    return storage->options.pending_drop_ms != 0 ? storage->options.pending_drop_ms : DROP_MS;
}

/* -- items --------------------------------------------------------------------------------------- */

static void put_item(struct fgw_buf *items, enum fgw_item_tag tag,
                     const struct fgw_storage_hold_seen *hold)
{
    struct fgw_item_release item = {.extent = hold->extent,
                                    .codec = (uint8_t)fgw_cid_codec(&hold->root)};
    memcpy(item.owner_id, hold->owner.owner_id, sizeof item.owner_id);
    memcpy(item.digest, fgw_cid_digest(&hold->root), sizeof item.digest);
    fgw_item_put_release(items, tag, &item);
}

enum fgw_err fgw_storage_confirm(struct fgw_storage *storage,
                                 const struct fgw_storage_hold_seen *holds, size_t count)
{
    struct fgw_buf items;
    fgw_buf_init(&items, 0);
    for (size_t i = 0; i < count; i++) {
        put_item(&items, FGW_ITEM_CONFIRM, &holds[i]);
    }
    enum fgw_err err = count > 0 ? fgw_storage_commit_items(storage, "confirm", &items) : FGW_OK;
    fgw_buf_deinit(&items);
    return err;
}

void fgw_storage_set_named(struct fgw_storage *storage, fgw_storage_named_fn *named, void *context)
{
    storage->pending.named = named;
    storage->pending.named_context = context;
}

/* -- one hold ------------------------------------------------------------------------------------ */

static enum fgw_err read_size(struct fgw_storage *storage, struct fgw_storage_hold_seen *hold)
{
    bool raw = fgw_cid_codec(&hold->root) == FGW_CODEC_RAW;
    const uint8_t *digest = fgw_cid_digest(&hold->root);
    struct fgw_row_key key = raw ? fgw_row_key_block(digest) : fgw_row_key_blob(digest);
    struct fgw_block_row block;
    struct fgw_blob_row blob;
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    enum fgw_err err = fgw_storage_index_get(storage, &key, &value);
    if (err == FGW_OK) {
        err = raw ? fgw_block_row_decode(fgw_buf_bytes(&value), &block)
                  : fgw_blob_row_decode(fgw_buf_bytes(&value), &blob);
    }
    if (err == FGW_OK) {
        hold->size_bytes = raw ? block.len : blob.size;
    }
    fgw_buf_deinit(&value);
    return err;
}

static bool may_drop(const struct pass *pass, enum fgw_storage_liveness live,
                     const struct fgw_storage_hold_seen *hold, uint64_t age_ms)
{
    uint64_t not_before_ms = atomic_load(&pass->storage->sweep.free_nothing_until_ms);
    bool temporary = (hold->extent & FGW_EXTENT_TEMPORARY) != 0;
    return age_ms >= drop_ms(pass->storage) && pass->now_ms >= not_before_ms &&
           (live == FGW_STORAGE_ELSEWHERE || (live == FGW_STORAGE_ABSENT && temporary));
}

static enum fgw_err settle(struct pass *pass, struct fgw_storage_hold_seen *hold, uint64_t age_ms)
{
    struct fgw_pending *pending = &pass->storage->pending;
    enum fgw_storage_liveness live = FGW_STORAGE_UNDECIDED;
    enum fgw_err err = pass->live(pass->context, &hold->owner, &hold->root, &live);
    bool named = live == FGW_STORAGE_HERE || live == FGW_STORAGE_ELSEWHERE;
    if (err == FGW_OK && named && pending->named != NULL) {
        err = read_size(pass->storage, hold);
        err = err == FGW_OK ? pending->named(pending->named_context, hold) : err;
        if (err != FGW_OK) {
            return FGW_OK; /* a copy cannot be made now: next time */
        }
    }
    if (err == FGW_OK && live == FGW_STORAGE_HERE) {
        put_item(&pass->items, FGW_ITEM_CONFIRM, hold);
    } else if (err == FGW_OK && may_drop(pass, live, hold, age_ms)) {
        put_item(&pass->items, FGW_ITEM_RELEASE, hold);
    }
    return err;
}

static enum fgw_err look_at(struct pass *pass, const struct fgw_index_row *row)
{
    struct fgw_pending_row pending;
    enum fgw_err err =
        row->key.len == KEY_SIZE ? fgw_pending_row_decode(row->value, &pending) : FGW_ERR_CORRUPT;
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_storage_hold_seen hold = {.owner.key = pending.key,
                                         .extent =
                                             fgw_get_u64be(row->key.ptr + 1 + FGW_STORAGE_ID_SIZE),
                                         .root = fgw_cid_make(pending.codec, pending.digest)};
    memcpy(hold.owner.owner_id, row->key.ptr + 1, FGW_STORAGE_ID_SIZE);
    memcpy(hold.owner.bucket_id, pending.bucket_id, sizeof hold.owner.bucket_id);
    pass->count++;
    uint64_t age_ms = pass->now_ms > pending.since_ms ? pass->now_ms - pending.since_ms : 0;
    return age_ms >= ask_ms(pass->storage) ? settle(pass, &hold, age_ms) : FGW_OK;
}

/* -- all of them --------------------------------------------------------------------------------- */

static enum fgw_err look_at_page(struct pass *pass, const struct fgw_index_page *page)
{
    enum fgw_err err = FGW_OK;
    fgw_buf_clear(&pass->items);
    for (size_t i = 0; i < page->count && err == FGW_OK; i++) {
        err = fgw_care_stopping(pass->storage->care) ? FGW_ERR_CANCELLED
                                                     : look_at(pass, &page->rows[i]);
    }
    enum fgw_err logged = pass->items.len > 0
                              ? fgw_storage_commit_items(pass->storage, "pending", &pass->items)
                              : FGW_OK;
    return err == FGW_OK ? logged : err;
}

static enum fgw_err run_pass(struct pass *pass)
{
    struct fgw_storage *storage = pass->storage;
    struct fgw_row_key lower = {.bytes = {'w'}, .len = 1};
    struct fgw_row_key upper = {.bytes = {'w' + 1}, .len = 1};
    struct fgw_index_page page;
    enum fgw_err err = FGW_OK;
    bool more = true;
    fgw_index_page_init(&page);
    while (more && err == FGW_OK) {
        struct fgw_index_range range = {fgw_row_key_bytes(&lower), fgw_row_key_bytes(&upper), PAGE};
        err = fgw_index_page_read(&page, storage->pool, storage->kv, &range);
        more = err == FGW_OK && page.more && page.count > 0;
        if (more) {
            struct fgw_bytes last = page.rows[page.count - 1].key;
            memcpy(lower.bytes, last.ptr, last.len);
            lower.bytes[last.len] = 0;
            lower.len = last.len + 1;
        }
        err = err == FGW_OK ? look_at_page(pass, &page) : err;
    }
    fgw_index_page_deinit(&page);
    return err;
}

uint64_t fgw_pending_care(struct fgw_storage *storage, fgw_storage_live_fn *live, void *context)
{
    struct pass pass = {.storage = storage,
                        .live = live,
                        .context = context,
                        .now_ms = fgw_storage_running_ms(storage)};
    fgw_buf_init(&pass.items, 0);
    if (run_pass(&pass) == FGW_OK) {
        atomic_store(&storage->pending.count, pass.count);
    }
    fgw_buf_deinit(&pass.items);
    return ask_ms(storage) / 2;
}
