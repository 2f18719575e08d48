/* kv_iter.c: snapshots and iterators; see kv.h. RocksDB keeps pointers to the bounds, so they are
 * copied behind the iterator. */
#include "base/check.h"
#include "kv/kv_internal.h"

enum { BLOCK_CACHE_TIER = 1 };

struct fgw_kv_iter {
    struct fgw_kv *kv;
    rocksdb_readoptions_t *options; /* must outlive `iter`, as it holds the bounds' slices */
    rocksdb_iterator_t *iter;       /* NULL: the store was down */
    uint8_t bounds[]; /* lower, then upper */
};

struct fgw_kv_snapshot *fgw_kv_snapshot_new(struct fgw_kv *kv)
{
    struct fgw_kv_snapshot *snapshot = fgw_xcalloc(1, sizeof *snapshot);
    snapshot->kv = kv;
    atomic_fetch_add(&kv->children, 1);
    if (fgw_kv_enter(kv)) {
        atomic_fetch_add(&kv->views, 1);
        snapshot->snapshot = rocksdb_create_snapshot(kv->db);
        fgw_kv_leave(kv);
    }
    return snapshot;
}

void fgw_kv_snapshot_free(struct fgw_kv_snapshot *snapshot)
{
    if (snapshot == NULL) {
        return;
    }
    if (snapshot->snapshot != NULL) {
        rocksdb_release_snapshot(snapshot->kv->db, snapshot->snapshot);
        atomic_fetch_sub(&snapshot->kv->views, 1);
    }
    atomic_fetch_sub(&snapshot->kv->children, 1);
    fgw_xfree(snapshot);
}

static void set_bounds(struct fgw_kv_iter *iter, const struct fgw_kv_scan *scan)
{
    uint8_t *lower = iter->bounds;
    uint8_t *upper = iter->bounds + scan->lower.len;
    if (scan->lower.len > 0) {
        memcpy(lower, scan->lower.ptr, scan->lower.len);
        rocksdb_readoptions_set_iterate_lower_bound(iter->options, (const char *)lower,
                                                    scan->lower.len);
    }
    if (scan->upper.len > 0) {
        memcpy(upper, scan->upper.ptr, scan->upper.len);
        rocksdb_readoptions_set_iterate_upper_bound(iter->options, (const char *)upper,
                                                    scan->upper.len);
    }
}

struct fgw_kv_iter *fgw_kv_iter_scan(struct fgw_kv *kv, const struct fgw_kv_scan *scan)
{
    struct fgw_kv_iter *iter = fgw_xcalloc(1, sizeof *iter + scan->lower.len + scan->upper.len);
    iter->kv = kv;
    iter->options = rocksdb_readoptions_create();
    set_bounds(iter, scan);
    if (scan->snapshot != NULL) {
        rocksdb_readoptions_set_snapshot(iter->options, scan->snapshot->snapshot);
    }
    if (scan->cache_only) {
        rocksdb_readoptions_set_read_tier(iter->options, BLOCK_CACHE_TIER);
    }
    rocksdb_readoptions_set_fill_cache(iter->options, !scan->background);
    rocksdb_readoptions_set_readahead_size(iter->options, scan->readahead_bytes);
    /* files that became obsolete meanwhile are unlinked by a background thread, not by the caller
     */
    rocksdb_readoptions_set_background_purge_on_iterator_cleanup(iter->options, 1);
    atomic_fetch_add(&kv->children, 1);
    if (fgw_kv_enter(kv)) {
        atomic_fetch_add(&kv->views, 1);
        iter->iter = rocksdb_create_iterator_cf(kv->db, iter->options, kv->families[scan->family]);
        fgw_kv_leave(kv);
    }
    return iter;
}

void fgw_kv_iter_free(struct fgw_kv_iter *iter)
{
    if (iter == NULL) {
        return;
    }
    if (iter->iter != NULL) {
        rocksdb_iter_destroy(iter->iter);
        atomic_fetch_sub(&iter->kv->views, 1);
    }
    rocksdb_readoptions_destroy(iter->options);
    atomic_fetch_sub(&iter->kv->children, 1);
    fgw_xfree(iter);
}

void fgw_kv_iter_seek(struct fgw_kv_iter *iter, struct fgw_bytes key)
{
    if (iter->iter != NULL) {
        rocksdb_iter_seek(iter->iter, (const char *)key.ptr, key.len);
    }
}

void fgw_kv_iter_seek_for_prev(struct fgw_kv_iter *iter, struct fgw_bytes key)
{
    if (iter->iter != NULL) {
        rocksdb_iter_seek_for_prev(iter->iter, (const char *)key.ptr, key.len);
    }
}

void fgw_kv_iter_seek_first(struct fgw_kv_iter *iter)
{
    if (iter->iter != NULL) {
        rocksdb_iter_seek_to_first(iter->iter);
    }
}

void fgw_kv_iter_seek_last(struct fgw_kv_iter *iter)
{
    if (iter->iter != NULL) {
        rocksdb_iter_seek_to_last(iter->iter);
    }
}

void fgw_kv_iter_next(struct fgw_kv_iter *iter)
{
    rocksdb_iter_next(iter->iter);
}

void fgw_kv_iter_prev(struct fgw_kv_iter *iter)
{
    rocksdb_iter_prev(iter->iter);
}

bool fgw_kv_iter_valid(const struct fgw_kv_iter *iter)
{
    return iter->iter != NULL && rocksdb_iter_valid(iter->iter) != 0;
}

struct fgw_bytes fgw_kv_iter_key(const struct fgw_kv_iter *iter)
{
    size_t len = 0;
    const char *key = rocksdb_iter_key(iter->iter, &len);
    return fgw_bytes(key, len);
}

struct fgw_bytes fgw_kv_iter_value(const struct fgw_kv_iter *iter)
{
    size_t len = 0;
    const char *value = rocksdb_iter_value(iter->iter, &len);
    return fgw_bytes(value, len);
}

enum fgw_err fgw_kv_iter_status(const struct fgw_kv_iter *iter, struct fgw_error *error)
{
    char *status = NULL;
    if (iter->iter == NULL) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "The index is down after a failed write.");
    }
    rocksdb_iter_get_error(iter->iter, &status);
    return fgw_kv_take_status(status, error);
}
