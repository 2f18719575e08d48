/* rocks.c: the embedded backend's table of operations, row reads and snapshots. See rocks.h. */
#include "event/workers.h"
#include "meta/rocks/rocks_internal.h"

#include <limits.h>
#include <xxhash.h>

/* Rows that nearly every request needs (its bucket, its access key), kept per worker as of a
 * generation; a change of any such row in this process starts a new generation. */
enum { CACHE_SLOTS = 256, CACHE_ROW_MAX = 16 * 1024 };

struct cache_slot {
    uint64_t generation; /* 0 = empty */
    struct fgw_buf key;
    struct fgw_buf row;
};

struct row_cache {
    struct cache_slot slots[CACHE_SLOTS];
};

void rocks_changed(struct rocks *rocks)
{
    atomic_fetch_add(&rocks->generation, 1);
}

enum fgw_err rocks_get(struct rocks *rocks, struct fgw_arena *arena, struct fgw_bytes key,
                       struct fgw_bytes *out_row)
{
    struct fgw_buf row;
    fgw_buf_init(&row, ROW_MAX);
    enum fgw_err err = fgw_storage_get(rocks->storage, key, &row);
    if (err == FGW_OK) {
        *out_row = fgw_arena_copy(arena, fgw_buf_bytes(&row));
    }
    fgw_buf_deinit(&row);
    return err;
}

enum fgw_err rocks_get_snapshot(struct rocks *rocks, struct fgw_arena *arena, struct fgw_bytes key,
                                struct fgw_bytes *out_row)
{
    unsigned worker = fgw_worker_index();
    if (worker >= rocks->cache_count) {
        return rocks_get(rocks, arena, key, out_row);
    }
    uint64_t generation = atomic_load(&rocks->generation);
    struct cache_slot *slot =
        &rocks->caches[worker].slots[XXH3_64bits(key.ptr, key.len) % CACHE_SLOTS];
    if (slot->generation == generation && fgw_bytes_eq(fgw_buf_bytes(&slot->key), key)) {
        *out_row = fgw_arena_copy(arena, fgw_buf_bytes(&slot->row));
        return FGW_OK;
    }
    enum fgw_err err = rocks_get(rocks, arena, key, out_row);
    if (err == FGW_OK && out_row->len <= CACHE_ROW_MAX) {
        fgw_buf_clear(&slot->key);
        fgw_buf_clear(&slot->row);
        (void)fgw_buf_append(&slot->key, key);
        (void)fgw_buf_append(&slot->row, *out_row);
        slot->generation = generation; /* as of before the read: a change in between is newer */
    }
    return err;
}

enum fgw_err rocks_txn_get(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                           struct fgw_bytes key, struct fgw_bytes *out_row)
{
    struct fgw_bytes view;
    enum fgw_err err = fgw_storage_txn_get(txn, key, &view);
    if (err == FGW_OK) {
        *out_row = fgw_arena_copy(arena, view);
    }
    return err;
}

enum fgw_err rocks_txn_get_common(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                                  struct fgw_bytes key, struct fgw_bytes *out_row)
{
    struct fgw_bytes view;
    enum fgw_err err = fgw_storage_txn_get_common(txn, key, &view);
    if (err == FGW_OK) {
        *out_row = fgw_arena_copy(arena, view);
    }
    return err;
}

enum fgw_err rocks_fail(struct fgw_error *error, enum fgw_err err, const char *what,
                        struct fgw_bytes name)
{
    if (err == FGW_OK || error == NULL || error->code == err) {
        return err;
    }
    bool internal = err == FGW_ERR_IO || err == FGW_ERR_CORRUPT || err == FGW_ERR_NEWER_VERSION ||
                    err == FGW_ERR_INTERNAL;
    return internal ? fgw_error_set(error, err, "%s %.*s: %s", what, FGW_FMT(name),
                                    fgw_err_text(err))
                    : fgw_error_set(error, err, NULL);
}

static enum fgw_err rocks_ready(struct fgw_meta *meta, struct fgw_error *error)
{
    struct fgw_storage_stats stats;
    fgw_storage_stats(rocks_of(meta)->storage, &stats);
    if (stats.read_only) {
        return fgw_error_set(error, FGW_ERR_READ_ONLY,
                             "the data directory is read-only after a failed write");
    }
    return FGW_OK;
}

static void rocks_free(struct fgw_meta *meta)
{
    struct rocks *rocks = rocks_of(meta);
    for (unsigned i = 0; i < rocks->cache_count; i++) {
        for (size_t j = 0; j < CACHE_SLOTS; j++) {
            fgw_buf_deinit(&rocks->caches[i].slots[j].key);
            fgw_buf_deinit(&rocks->caches[i].slots[j].row);
        }
    }
    fgw_xfree(rocks->caches);
    fgw_xfree(rocks);
}

static const struct fgw_meta_ops ROCKS_OPS = {
    .bucket_create = rocks_bucket_create,
    .bucket_get = rocks_bucket_get,
    .bucket_update = rocks_bucket_update,
    .bucket_delete = rocks_bucket_delete,
    .bucket_list = rocks_bucket_list,
    .object_get = rocks_object_get,
    .object_put = rocks_object_put,
    .object_delete = rocks_object_delete,
    .object_update = rocks_object_update,
    .object_list = rocks_object_list,
    .version_list = rocks_version_list,
    .upload_create = rocks_upload_create,
    .upload_get = rocks_upload_get,
    .upload_abort = rocks_upload_abort,
    .upload_list = rocks_upload_list,
    .part_put = rocks_part_put,
    .part_list = rocks_part_list,
    .upload_complete = rocks_upload_complete,
    .key_get = rocks_key_get,
    .user_put = rocks_user_put,
    .user_get = rocks_user_get,
    .user_remove = rocks_user_remove,
    .user_list = rocks_user_list,
    .key_put = rocks_key_put,
    .key_remove = rocks_key_remove,
    .key_list = rocks_key_list,
    .blob_live = rocks_blob_live,
    .ready = rocks_ready,
    .free = rocks_free,
};

struct fgw_meta *fgw_meta_rocks_new(struct fgw_storage *storage)
{
    enum { WORKERS_MAX = 64 };
    struct rocks *rocks = fgw_xcalloc(1, sizeof *rocks);
    rocks->base.ops = &ROCKS_OPS;
    rocks->storage = storage;
    atomic_store(&rocks->generation, 1);
    rocks->cache_count = WORKERS_MAX;
    rocks->caches = fgw_xcalloc(rocks->cache_count, sizeof *rocks->caches);
    return &rocks->base;
}
