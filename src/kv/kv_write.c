/* kv_write.c: batches, sync, flush; see kv.h. */
#include "kv/kv_internal.h"

struct fgw_kv_batch {
    struct fgw_kv *kv;
    rocksdb_writebatch_t *batch;
};

struct fgw_kv_batch *fgw_kv_batch_new(struct fgw_kv *kv)
{
    struct fgw_kv_batch *batch = fgw_xcalloc(1, sizeof *batch);
    batch->kv = kv;
    batch->batch = rocksdb_writebatch_create();
    atomic_fetch_add(&kv->children, 1);
    return batch;
}

void fgw_kv_batch_free(struct fgw_kv_batch *batch)
{
    if (batch == NULL) {
        return;
    }
    rocksdb_writebatch_destroy(batch->batch);
    atomic_fetch_sub(&batch->kv->children, 1);
    fgw_xfree(batch);
}

void fgw_kv_batch_clear(struct fgw_kv_batch *batch)
{
    rocksdb_writebatch_clear(batch->batch);
}

void fgw_kv_batch_put(struct fgw_kv_batch *batch, enum fgw_kv_family family, struct fgw_bytes key,
                      struct fgw_bytes value)
{
    rocksdb_writebatch_put_cf(batch->batch, batch->kv->families[family], (const char *)key.ptr,
                              key.len, (const char *)value.ptr, value.len);
}

void fgw_kv_batch_delete(struct fgw_kv_batch *batch, enum fgw_kv_family family,
                         struct fgw_bytes key)
{
    rocksdb_writebatch_delete_cf(batch->batch, batch->kv->families[family], (const char *)key.ptr,
                                 key.len);
}

size_t fgw_kv_batch_count(const struct fgw_kv_batch *batch)
{
    return (size_t)rocksdb_writebatch_count(batch->batch);
}

size_t fgw_kv_batch_bytes(const struct fgw_kv_batch *batch)
{
    size_t size = 0;
    (void)rocksdb_writebatch_data(batch->batch, &size);
    return size;
}

enum fgw_err fgw_kv_batch_write(struct fgw_kv_batch *batch, bool sync, struct fgw_error *error)
{
    struct fgw_kv *kv = batch->kv;
    enum fgw_err err = fgw_kv_writable(kv, error);
    if (err != FGW_OK || !fgw_kv_enter(kv)) {
        return err != FGW_OK ? err : FGW_ERR_READ_ONLY;
    }
    char *status = NULL;
    rocksdb_write(kv->db, sync ? kv->write_synced : kv->write, batch->batch, &status);
    fgw_kv_leave(kv);
    return fgw_kv_take_write_status(kv, status, error);
}

enum fgw_err fgw_kv_sync_wal(struct fgw_kv *kv, struct fgw_error *error)
{
    enum fgw_err err = fgw_kv_writable(kv, error);
    if (err != FGW_OK || !fgw_kv_enter(kv)) {
        return err != FGW_OK ? err : FGW_ERR_READ_ONLY;
    }
    char *status = NULL;
    rocksdb_flush_wal(kv->db, 1, &status);
    fgw_kv_leave(kv);
    return fgw_kv_take_write_status(kv, status, error);
}

enum fgw_err fgw_kv_flush(struct fgw_kv *kv, struct fgw_error *error)
{
    enum fgw_err err = fgw_kv_writable(kv, error);
    if (err != FGW_OK || !fgw_kv_enter(kv)) {
        return err != FGW_OK ? err : FGW_ERR_READ_ONLY;
    }
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(options, 1);
    for (size_t i = 0; err == FGW_OK && i < FGW_KV_FAMILIES; i++) {
        char *status = NULL;
        rocksdb_flush_cf(kv->db, options, kv->families[i], &status);
        err = fgw_kv_take_write_status(kv, status, error);
    }
    rocksdb_flushoptions_destroy(options);
    fgw_kv_leave(kv);
    return err;
}
