/* kv.c: open, close, get and figures; see kv.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sched.h>
#include <unistd.h>

#include "base/check.h"
#include "base/fs.h"
#include "base/log.h"
#include "kv/kv_internal.h"

enum {
    BLOCK_CACHE_TIER = 1,
    OPEN_NEEDS_BYTES = 1024 * 1024 /* text log, manifest, options file, with a margin */
};

static void make_call_options(struct fgw_kv *kv)
{
    kv->read = rocksdb_readoptions_create();
    kv->read_cached = rocksdb_readoptions_create();
    rocksdb_readoptions_set_read_tier(kv->read_cached, BLOCK_CACHE_TIER);
    kv->write = rocksdb_writeoptions_create();
    kv->write_synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(kv->write_synced, 1);
    rocksdb_writeoptions_set_no_slowdown(kv->write, 1); /* kv_write.c waits */
    rocksdb_writeoptions_set_no_slowdown(kv->write_synced, 1);
}

static void close_db(struct fgw_kv *kv)
{
    if (kv->db != NULL) {
        for (size_t i = 0; i < FGW_KV_FAMILIES; i++) {
            rocksdb_column_family_handle_destroy(kv->families[i]);
        }
        rocksdb_column_family_handle_destroy(kv->default_family);
        rocksdb_close(kv->db);
        kv->db = NULL;
    }
}

static void destroy(struct fgw_kv *kv)
{
    close_db(kv);
    rocksdb_readoptions_destroy(kv->read);
    rocksdb_readoptions_destroy(kv->read_cached);
    rocksdb_writeoptions_destroy(kv->write);
    rocksdb_writeoptions_destroy(kv->write_synced);
    rocksdb_cache_destroy(kv->cache);
    (void)pthread_mutex_destroy(&kv->failure.mutex);
    (void)pthread_rwlock_destroy(&kv->use);
    fgw_xfree(kv->path);
    fgw_xfree(kv);
}

/* RocksDB writes while it opens, its text log first, and a build with assertions does not survive a
 * disk that is full then (kv_options.c). Asked of the parent when there is no directory yet. */
static enum fgw_err check_space(const char *path, struct fgw_error *error)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        char *copy = fgw_xstrdup(path);
        fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        fgw_xfree(copy);
    }
    if (fd < 0) {
        return fgw_error_set(error, fgw_err_from_errno(errno), "%s: %s", path, strerror(errno));
    }
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    enum fgw_err err = fgw_fs_space(fd, &free_bytes, &total_bytes);
    (void)close(fd);
    if (err == FGW_OK && free_bytes < OPEN_NEEDS_BYTES) {
        return fgw_error_set(error, FGW_ERR_NOSPACE,
                             "%s: %llu bytes are free; opening the index needs %d.", path,
                             (unsigned long long)free_bytes, OPEN_NEEDS_BYTES);
    }
    return err;
}

static enum fgw_err open_db(struct fgw_kv *kv, struct fgw_error *error)
{
    enum { HANDLES = FGW_KV_FAMILIES + 1 };
    static const char *const NAMES[HANDLES] = {"names", "blocks", "default"};
    enum fgw_err err = check_space(kv->path, error);
    if (err != FGW_OK) {
        return err;
    }
    rocksdb_options_t *db_options = fgw_kv_make_options(&kv->options, kv->cache);
    const rocksdb_options_t *each[HANDLES] = {db_options, db_options, db_options};
    rocksdb_column_family_handle_t *handles[HANDLES] = {0};
    char *status = NULL;
    kv->db =
        rocksdb_open_column_families(db_options, kv->path, HANDLES, NAMES, each, handles, &status);
    rocksdb_options_destroy(db_options);
    if (status != NULL) {
        kv->db = NULL;
        return fgw_kv_take_status(status, error);
    }
    memcpy(kv->families, handles, sizeof kv->families);
    kv->default_family = handles[FGW_KV_FAMILIES];
    return FGW_OK;
}

enum fgw_err fgw_kv_open(const char *path, const struct fgw_kv_options *options,
                         struct fgw_kv **out_kv, struct fgw_error *error)
{
    struct fgw_kv *kv = fgw_xcalloc(1, sizeof *kv);
    kv->path = fgw_xstrdup(path);
    kv->options = fgw_kv_with_defaults(options);
    FGW_CHECK(pthread_mutex_init(&kv->failure.mutex, NULL) == 0);
    FGW_CHECK(pthread_rwlock_init(&kv->use, NULL) == 0);
    kv->cache = rocksdb_cache_create_lru(kv->options.cache_bytes);
    make_call_options(kv);
    enum fgw_err err = open_db(kv, error);
    if (err != FGW_OK) {
        destroy(kv);
        return err;
    }
    *out_kv = kv;
    return FGW_OK;
}

enum fgw_err fgw_kv_reopen(struct fgw_kv *kv, struct fgw_error *error)
{
    (void)pthread_rwlock_wrlock(&kv->use);
    enum fgw_err err = FGW_ERR_AGAIN;
    if (atomic_load(&kv->views) == 0) {
        if (kv->db != NULL) {
            rocksdb_cancel_all_background_work(kv->db, 1);
        }
        close_db(kv);
        err = open_db(kv, error);
        atomic_store(&kv->failed, err != FGW_OK);
    }
    (void)pthread_rwlock_unlock(&kv->use);
    return err;
}

void fgw_kv_shut(struct fgw_kv *kv)
{
    (void)pthread_rwlock_wrlock(&kv->use);
    while (atomic_load(&kv->views) > 0) {
        (void)pthread_rwlock_unlock(&kv->use);
        (void)sched_yield();
        (void)pthread_rwlock_wrlock(&kv->use);
    }
    atomic_store(&kv->failed, true);
    if (kv->db != NULL) {
        rocksdb_cancel_all_background_work(kv->db, 1);
    }
    close_db(kv);
    (void)pthread_rwlock_unlock(&kv->use);
}

/* RocksDB counts every comparison of keys for each thread unless told not to: a tenth of a write.
 * Walks that want to know switch it on for their time (kv_iter.c). */
static void count_nothing(void)
{
    static _Thread_local bool told = false;
    if (!told) {
        rocksdb_set_perf_level(rocksdb_disable);
        told = true;
    }
}

bool fgw_kv_enter(struct fgw_kv *kv)
{
    count_nothing();
    (void)pthread_rwlock_rdlock(&kv->use);
    if (kv->db == NULL) {
        (void)pthread_rwlock_unlock(&kv->use);
        return false;
    }
    return true;
}

void fgw_kv_leave(struct fgw_kv *kv)
{
    (void)pthread_rwlock_unlock(&kv->use);
}

void fgw_kv_close(struct fgw_kv *kv)
{
    if (kv == NULL) {
        return;
    }
    FGW_CHECK(atomic_load(&kv->children) == 0);
    struct fgw_error error;
    fgw_error_init(&error);
    if (!atomic_load(&kv->failed) && fgw_kv_sync_wal(kv, &error) != FGW_OK) {
        fgw_log_warn("kv", "last sync at close failed: %s", fgw_error_message(&error));
    }
    if (kv->db != NULL) {
        rocksdb_cancel_all_background_work(kv->db, 1);
    }
    destroy(kv);
}

static enum fgw_err take_value(rocksdb_pinnableslice_t *slice, struct fgw_buf *out)
{
    size_t len = 0;
    const char *value = rocksdb_pinnableslice_value(slice, &len);
    enum fgw_err err = FGW_ERR_TOO_LARGE;
    if (out->max == 0 || len <= out->max) {
        fgw_buf_clear(out);
        err = fgw_buf_append(out, fgw_bytes(value, len));
    }
    rocksdb_pinnableslice_destroy(slice);
    return err;
}

enum fgw_err fgw_kv_get(struct fgw_kv *kv, enum fgw_kv_family family, struct fgw_bytes key,
                        bool cache_only, struct fgw_buf *out)
{
    char *status = NULL;
    if (!fgw_kv_enter(kv)) {
        return FGW_ERR_UNAVAILABLE;
    }
    rocksdb_pinnableslice_t *slice =
        rocksdb_get_pinned_cf(kv->db, cache_only ? kv->read_cached : kv->read, kv->families[family],
                              (const char *)key.ptr, key.len, &status);
    enum fgw_err err = FGW_ERR_NOT_FOUND;
    if (status != NULL) {
        err = fgw_kv_take_status(status, NULL);
    } else if (slice != NULL) {
        err = take_value(slice, out);
    }
    fgw_kv_leave(kv);
    return err;
}

static uint64_t figure(struct fgw_kv *kv, size_t family, const char *name)
{
    uint64_t value = 0;
    (void)rocksdb_property_int_cf(kv->db, kv->families[family], name, &value);
    return value;
}

void fgw_kv_stats(struct fgw_kv *kv, struct fgw_kv_stats *out_stats)
{
    struct fgw_kv_stats stats = {
        .cache_capacity_bytes = rocksdb_cache_get_capacity(kv->cache),
        .cache_used_bytes = rocksdb_cache_get_usage(kv->cache),
        .cache_pinned_bytes = rocksdb_cache_get_pinned_usage(kv->cache),
    };
    if (!fgw_kv_enter(kv)) {
        *out_stats = stats;
        return;
    }
    stats.background_errors = figure(kv, 0, "rocksdb.background-errors");
    stats.write_stopped = figure(kv, 0, "rocksdb.is-write-stopped") != 0;
    for (size_t i = 0; i < FGW_KV_FAMILIES; i++) {
        stats.memtable_bytes += figure(kv, i, "rocksdb.cur-size-all-mem-tables");
        stats.table_reader_bytes += figure(kv, i, "rocksdb.estimate-table-readers-mem");
        stats.live_table_bytes += figure(kv, i, "rocksdb.live-sst-files-size");
        stats.pending_compaction_bytes +=
            figure(kv, i, "rocksdb.estimate-pending-compaction-bytes");
        stats.keys[i] = figure(kv, i, "rocksdb.estimate-num-keys");
    }
    fgw_kv_leave(kv);
    *out_stats = stats;
}

enum fgw_err fgw_kv_approximate_size(struct fgw_kv *kv, enum fgw_kv_family family,
                                     struct fgw_bytes lower, struct fgw_bytes upper,
                                     uint64_t *out_bytes)
{
    const char *from = (const char *)lower.ptr;
    const char *to = (const char *)upper.ptr;
    uint64_t size = 0;
    char *status = NULL;
    if (!fgw_kv_enter(kv)) {
        return FGW_ERR_UNAVAILABLE;
    }
    rocksdb_approximate_sizes_cf(kv->db, kv->families[family], 1, &from, &lower.len, &to,
                                 &upper.len, &size, &status);
    fgw_kv_leave(kv);
    if (status != NULL) {
        return fgw_kv_take_status(status, NULL);
    }
    *out_bytes = size;
    return FGW_OK;
}

enum fgw_err fgw_kv_property(struct fgw_kv *kv, enum fgw_kv_family family, const char *name,
                             struct fgw_buf *out)
{
    if (!fgw_kv_enter(kv)) {
        return FGW_ERR_UNAVAILABLE;
    }
    char *text = rocksdb_property_value_cf(kv->db, kv->families[family], name);
    fgw_kv_leave(kv);
    if (text == NULL) {
        return FGW_ERR_NOT_FOUND;
    }
    fgw_buf_clear(out);
    enum fgw_err err = fgw_buf_append_str(out, text);
    rocksdb_free(text);
    return err;
}
