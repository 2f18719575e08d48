/* kv.h: the ordered key-value store of a data directory: RocksDB behind a small contract.
 *
 * Two families, NAMES and BLOCKS; the one-byte table prefix in keys is the caller's. A batch is
 * atomic over both. Durability: a batch is in the write-ahead log when write returns but on the
 * platter only after its own sync, fgw_kv_sync_wal or fgw_kv_flush: kill -9 loses nothing, power
 * loss a suffix of the batches, never a part of one (design/storage.md section 4).
 * Threads: a store may be used by all threads at once; a batch, an iterator by one at a time. Calls
 * may block on the disk unless they say otherwise. Everything made from a store is freed before it
 * is closed.
 * Failed writes: the first failing write, sync or flush answers what happened (FGW_ERR_NOSPACE,
 * _IO, _CORRUPT); from then on the store is read-only: every writing call answers
 * FGW_ERR_READ_ONLY until it is closed and opened again (fgw_kv_reopen), as RocksDB's C API cannot
 * resume and the kernel may have dropped what it failed to write. Reads go on.
 */
#ifndef FGW_KV_KV_H
#define FGW_KV_KV_H

#include "base/bytes.h"

enum fgw_kv_family { FGW_KV_NAMES, FGW_KV_BLOCKS, FGW_KV_FAMILIES };

/* Zero in a field: its default. */
struct fgw_kv_options {
    size_t cache_bytes;        /* block cache, index and filter blocks included; 32 MiB */
    size_t write_buffer_bytes; /* of one memtable, two a family at most; 16 MiB */
    size_t wal_bytes_max;      /* WALs above it force a flush; 128 MiB */
    int background_threads;    /* flushes and compactions; 2 */
    int open_files_max;        /* table files kept open; all */
    bool must_exist;           /* FGW_ERR_NOT_FOUND instead of making a new store */
};

struct fgw_kv;
struct fgw_kv_batch;
struct fgw_kv_iter;
struct fgw_kv_snapshot;

/* Opens or makes the store in the directory `path`, whose parent exists; replays its WAL up to the
 * first record that is not whole. FGW_ERR_IN_USE (another process), _CORRUPT, _NOSPACE (also when
 * less than 1 MiB is free), _IO, _NEWER_VERSION (written by a newer RocksDB); RocksDB's words in
 * `error`. options may be NULL. */
enum fgw_err fgw_kv_open(const char *path, const struct fgw_kv_options *options,
                         struct fgw_kv **out_kv, struct fgw_error *error) FGW_MUST_CHECK;
/* Closes and opens again a store whose writes failed; it may have lost batches that were not synced.
 * Other calls wait meanwhile. FGW_ERR_AGAIN: iterators or snapshots are alive, nothing was done.
 * Other errors, those of open: the store is down, reads answer FGW_ERR_UNAVAILABLE until a later
 * call succeeds. */
enum fgw_err fgw_kv_reopen(struct fgw_kv *kv, struct fgw_error *error) FGW_MUST_CHECK;
/* Closes it for good but for fgw_kv_close: reads answer FGW_ERR_UNAVAILABLE. Waits for iterators and
 * snapshots to be freed. */
void fgw_kv_shut(struct fgw_kv *kv);
/* Syncs the WAL (unless a write has failed), waits for running background work to stop. Takes
 * NULL. */
void fgw_kv_close(struct fgw_kv *kv);

/* Replaces the contents of *out. cache_only: never touches the disk; FGW_ERR_AGAIN when the answer
 * is not in memory. FGW_ERR_NOT_FOUND, _CORRUPT, _IO, _TOO_LARGE (above out->max). */
enum fgw_err fgw_kv_get(struct fgw_kv *kv, enum fgw_kv_family family, struct fgw_bytes key,
                        bool cache_only, struct fgw_buf *out) FGW_MUST_CHECK;

/* -- writing --------------------------------------------------------------------------------- */

struct fgw_kv_batch *fgw_kv_batch_new(struct fgw_kv *kv);
/* Takes NULL. */
void fgw_kv_batch_free(struct fgw_kv_batch *batch);
/* Empty again, the memory kept. */
void fgw_kv_batch_clear(struct fgw_kv_batch *batch);
/* Later operations on a key win over earlier ones. Key and value are copied. */
void fgw_kv_batch_put(struct fgw_kv_batch *batch, enum fgw_kv_family family, struct fgw_bytes key,
                      struct fgw_bytes value);
void fgw_kv_batch_delete(struct fgw_kv_batch *batch, enum fgw_kv_family family,
                         struct fgw_bytes key);
/* Adds to a counter: its value is eight bytes, little-endian, the sum of everything added since it
 * was put, or from zero. The value counts what reached the store, whatever was lost before it. */
void fgw_kv_batch_add(struct fgw_kv_batch *batch, enum fgw_kv_family family, struct fgw_bytes key,
                      uint64_t delta);
size_t fgw_kv_batch_count(const struct fgw_kv_batch *batch);
size_t fgw_kv_batch_bytes(const struct fgw_kv_batch *batch);
/* All or nothing, over all families; visible to every reader when it returns. sync: on the platter
 * too, with everything written before. The batch keeps its contents. May wait for a flush or a
 * compaction that has fallen behind. `error` may be NULL. */
enum fgw_err fgw_kv_batch_write(struct fgw_kv_batch *batch, bool sync,
                                struct fgw_error *error) FGW_MUST_CHECK;
/* Everything written so far is on the platter afterwards. */
enum fgw_err fgw_kv_sync_wal(struct fgw_kv *kv, struct fgw_error *error) FGW_MUST_CHECK;
/* Everything written so far is in synced table files afterwards, needing no WAL. */
enum fgw_err fgw_kv_flush(struct fgw_kv *kv, struct fgw_error *error) FGW_MUST_CHECK;
/* FGW_OK, or FGW_ERR_READ_ONLY with the reason in `error`. Does not block. */
enum fgw_err fgw_kv_writable(struct fgw_kv *kv, struct fgw_error *error) FGW_MUST_CHECK;

/* -- reading in order ------------------------------------------------------------------------ */

struct fgw_kv_snapshot *fgw_kv_snapshot_new(struct fgw_kv *kv);
/* Takes NULL. A snapshot that lives long keeps old values on disk. */
void fgw_kv_snapshot_free(struct fgw_kv_snapshot *snapshot);

struct fgw_kv_scan {
    enum fgw_kv_family family;
    struct fgw_bytes lower;                 /* first key of the range; empty: none */
    struct fgw_bytes upper;                 /* first key behind it; empty: none */
    const struct fgw_kv_snapshot *snapshot; /* NULL: the store as it is when the iterator is made */
    bool cache_only;                        /* never touches the disk: FGW_ERR_AGAIN instead */
    bool background;        /* a long walk: does not push other blocks out of the cache */
    size_t readahead_bytes; /* 0: grows by itself while walking forward */
    /* Walked on one thread, which may block: when most of what it passed were rows overwritten or
     * deleted in memory, freeing the iterator starts a flush, which drops them, so that the next walk
     * is quick. At most one a second. */
    bool tidy;
};

/* Bounds are copied. Not positioned: seek first. */
struct fgw_kv_iter *fgw_kv_iter_scan(struct fgw_kv *kv, const struct fgw_kv_scan *scan);
static inline struct fgw_kv_iter *fgw_kv_iter_new(struct fgw_kv *kv, enum fgw_kv_family family,
                                                  struct fgw_bytes lower, struct fgw_bytes upper,
                                                  const struct fgw_kv_snapshot *snapshot)
{
    struct fgw_kv_scan scan = {
        .family = family, .lower = lower, .upper = upper, .snapshot = snapshot};
    return fgw_kv_iter_scan(kv, &scan);
}
/* Takes NULL. */
void fgw_kv_iter_free(struct fgw_kv_iter *iter);
/* To the first key >= `key`, inside the bounds. */
void fgw_kv_iter_seek(struct fgw_kv_iter *iter, struct fgw_bytes key);
/* To the last key <= `key`, inside the bounds. */
void fgw_kv_iter_seek_for_prev(struct fgw_kv_iter *iter, struct fgw_bytes key);
void fgw_kv_iter_seek_first(struct fgw_kv_iter *iter);
void fgw_kv_iter_seek_last(struct fgw_kv_iter *iter);
/* Only when valid. */
void fgw_kv_iter_next(struct fgw_kv_iter *iter);
void fgw_kv_iter_prev(struct fgw_kv_iter *iter);
/* False at the end of the range and after a failure: ask status. */
bool fgw_kv_iter_valid(const struct fgw_kv_iter *iter);
/* Only when valid; until the iterator moves. */
struct fgw_bytes fgw_kv_iter_key(const struct fgw_kv_iter *iter);
struct fgw_bytes fgw_kv_iter_value(const struct fgw_kv_iter *iter);
/* FGW_OK, FGW_ERR_AGAIN (cache_only), _CORRUPT, _IO, _UNAVAILABLE. `error` may be NULL. */
enum fgw_err fgw_kv_iter_status(const struct fgw_kv_iter *iter,
                                struct fgw_error *error) FGW_MUST_CHECK;

/* -- measuring ------------------------------------------------------------------------------- */

struct fgw_kv_stats {
    uint64_t cache_capacity_bytes;
    uint64_t cache_used_bytes;
    uint64_t cache_pinned_bytes;
    uint64_t memtable_bytes;     /* of both families */
    uint64_t table_reader_bytes; /* held outside the cache for open tables */
    uint64_t live_table_bytes;   /* on disk */
    uint64_t pending_compaction_bytes;
    uint64_t background_errors;     /* since open */
    uint64_t keys[FGW_KV_FAMILIES]; /* estimates */
    bool write_stopped;             /* writers wait for a flush or a compaction */
};

/* Does not block. */
void fgw_kv_stats(struct fgw_kv *kv, struct fgw_kv_stats *out_stats);
/* Bytes of table files that hold [lower, upper); memtables are not counted. */
enum fgw_err fgw_kv_approximate_size(struct fgw_kv *kv, enum fgw_kv_family family,
                                     struct fgw_bytes lower, struct fgw_bytes upper,
                                     uint64_t *out_bytes) FGW_MUST_CHECK;
/* A property of RocksDB ("rocksdb.stats"): FGW_ERR_NOT_FOUND when it has none of that name. */
enum fgw_err fgw_kv_property(struct fgw_kv *kv, enum fgw_kv_family family, const char *name,
                             struct fgw_buf *out) FGW_MUST_CHECK;

#endif
