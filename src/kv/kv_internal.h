/* kv_internal.h: what the files of src/kv share. */
#ifndef FGW_KV_KV_INTERNAL_H
#define FGW_KV_KV_INTERNAL_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>

#include "kv/kv.h"

enum { FGW_KV_REASON_MAX = 256 };

struct fgw_kv {
    char *path;
    struct fgw_kv_options options; /* without zeros */
    /* held shared by every call into `db`, exclusively while it is closed and opened again */
    pthread_rwlock_t use;
    rocksdb_t *db; /* NULL: down after a failed reopening */
    rocksdb_cache_t *cache;
    rocksdb_column_family_handle_t *default_family; /* RocksDB insists on it; empty */
    rocksdb_column_family_handle_t *families[FGW_KV_FAMILIES];
    rocksdb_readoptions_t *read;
    rocksdb_readoptions_t *read_cached;
    rocksdb_writeoptions_t *write;
    rocksdb_writeoptions_t *write_synced;
    atomic_uint children;      /* batches, iterators, snapshots alive */
    atomic_uint views;         /* of them iterators and snapshots: they point into `db` */
    atomic_bool failed;        /* a write has failed; cleared by reopening */
    _Atomic int64_t tidied_ms; /* boot clock: the last flush that an iterator started */
    struct {
        pthread_mutex_t mutex;
        char reason[FGW_KV_REASON_MAX]; /* what RocksDB said then */
    } failure;
};

struct fgw_kv_snapshot {
    struct fgw_kv *kv;
    const rocksdb_snapshot_t *snapshot;
};

/* The code behind the text of a RocksDB status, and the text into `error`. Frees `status`. */
enum fgw_err fgw_kv_take_status(char *status, struct fgw_error *error);
/* The same for a writing call: a failure makes the store read-only. NULL is success. */
enum fgw_err fgw_kv_take_write_status(struct fgw_kv *kv, char *status, struct fgw_error *error);

/* Must surround calls into `db`; false, and nothing to leave, when the store is down. */
bool fgw_kv_enter(struct fgw_kv *kv);
void fgw_kv_leave(struct fgw_kv *kv);

/* Settings for the store and both families. */
rocksdb_options_t *fgw_kv_make_options(const struct fgw_kv_options *options,
                                       rocksdb_cache_t *cache);
/* With the defaults in place of zeros. */
struct fgw_kv_options fgw_kv_with_defaults(const struct fgw_kv_options *options);

#endif
