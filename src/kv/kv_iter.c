/* kv_iter.c: snapshots and iterators; see kv.h. RocksDB keeps pointers to the bounds, so they are
 * copied behind the iterator. */
#include "base/check.h"
#include "base/clock.h"
#include "kv/kv_internal.h"

enum {
    BLOCK_CACHE_TIER = 1,
    /* A flush pays when a walk passed this many rows that are not there any more, more of them than
     * rows that are, and the memtable is large enough to hold them. */
    TIDY_HIDDEN_MIN = 2000,
    TIDY_MEMTABLE_MIN = 1024 * 1024,
    TIDY_PAUSE_MS = 1000
};

struct fgw_kv_iter {
    struct fgw_kv *kv;
    rocksdb_readoptions_t *options; /* must outlive `iter`, as it holds the bounds' slices */
    rocksdb_iterator_t *iter;       /* NULL: the store was down */
    enum fgw_kv_family family;
    rocksdb_perfcontext_t *counters; /* of the thread; tidy only */
    uint64_t hidden_before;
    uint64_t steps;
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

/* -- tidy ---------------------------------------------------------------------------------------- */

static uint64_t hidden_rows(rocksdb_perfcontext_t *counters)
{
    return rocksdb_perfcontext_metric(counters, rocksdb_internal_key_skipped_count) +
           rocksdb_perfcontext_metric(counters, rocksdb_internal_delete_skipped_count);
}

static void begin_count(struct fgw_kv_iter *iter)
{
    rocksdb_set_perf_level(rocksdb_enable_count);
    iter->counters = rocksdb_perfcontext_create();
    iter->hidden_before = hidden_rows(iter->counters);
}

/* One caller a pause gets true. */
static bool tidy_is_due(struct fgw_kv *kv)
{
    int64_t now_ms = (int64_t)fgw_clock_boot_ms();
    int64_t last_ms = atomic_load(&kv->tidied_ms);
    return now_ms - last_ms >= TIDY_PAUSE_MS &&
           atomic_compare_exchange_strong(&kv->tidied_ms, &last_ms, now_ms);
}

static void start_flush(struct fgw_kv *kv, enum fgw_kv_family family)
{
    uint64_t bytes = 0;
    if (fgw_kv_writable(kv, NULL) != FGW_OK || !fgw_kv_enter(kv)) {
        return;
    }
    (void)rocksdb_property_int_cf(kv->db, kv->families[family], "rocksdb.cur-size-active-mem-table",
                                  &bytes);
    if (bytes >= TIDY_MEMTABLE_MIN && tidy_is_due(kv)) {
        rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
        char *status = NULL;
        rocksdb_flushoptions_set_wait(options, 0);
        rocksdb_flush_cf(kv->db, options, kv->families[family], &status);
        rocksdb_flushoptions_destroy(options);
        (void)fgw_kv_take_write_status(kv, status, NULL);
    }
    fgw_kv_leave(kv);
}

static void end_count(struct fgw_kv_iter *iter)
{
    uint64_t hidden = hidden_rows(iter->counters) - iter->hidden_before;
    rocksdb_perfcontext_destroy(iter->counters);
    rocksdb_set_perf_level(rocksdb_disable);
    if (hidden >= TIDY_HIDDEN_MIN && hidden > iter->steps) {
        start_flush(iter->kv, iter->family);
    }
}

struct fgw_kv_iter *fgw_kv_iter_scan(struct fgw_kv *kv, const struct fgw_kv_scan *scan)
{
    struct fgw_kv_iter *iter = fgw_xcalloc(1, sizeof *iter + scan->lower.len + scan->upper.len);
    iter->kv = kv;
    iter->family = scan->family;
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
    if (scan->tidy) {
        begin_count(iter);
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
    if (iter->counters != NULL) {
        end_count(iter);
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
    iter->steps++;
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
