/* kv_write.c: batches, sync, flush; see kv.h. */
#include "base/clock.h"
#include "kv/kv_internal.h"

enum { STALL_WAIT_MS = 1 };

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

void fgw_kv_batch_add(struct fgw_kv_batch *batch, enum fgw_kv_family family, struct fgw_bytes key,
                      uint64_t delta)
{
    uint8_t bytes[8];
    fgw_put_u64le(bytes, delta);
    rocksdb_writebatch_merge_cf(batch->batch, batch->kv->families[family], (const char *)key.ptr,
                                key.len, (const char *)bytes, sizeof bytes);
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

/* Once; FGW_ERR_AGAIN: flushes and compactions have to catch up first. */
static enum fgw_err try_write(struct fgw_kv_batch *batch, bool sync, struct fgw_error *error)
{
    static const char STALL[] = "Result incomplete: "; /* as rocksdb::Status prints it */
    struct fgw_kv *kv = batch->kv;
    enum fgw_err err = fgw_kv_writable(kv, error);
    if (err != FGW_OK || !fgw_kv_enter(kv)) {
        return err != FGW_OK ? err : FGW_ERR_READ_ONLY;
    }
    char *status = NULL;
    rocksdb_write(kv->db, sync ? kv->write_synced : kv->write, batch->batch, &status);
    fgw_kv_leave(kv);
    if (status != NULL && strncmp(status, STALL, sizeof STALL - 1) == 0) {
        rocksdb_free(status);
        return FGW_ERR_AGAIN;
    }
    return fgw_kv_take_write_status(kv, status, error);
}

/* RocksDB does not wait for a stall itself (kv.c): it would do so at the head of its queue of writes,
 * where its own recovery from a full disk, which is what ends the stall, waits behind it for ever
 * (seen with 9.10). */
enum fgw_err fgw_kv_batch_write(struct fgw_kv_batch *batch, bool sync, struct fgw_error *error)
{
    enum fgw_err err = try_write(batch, sync, error);
    while (err == FGW_ERR_AGAIN) {
        fgw_clock_block_ms(STALL_WAIT_MS);
        err = try_write(batch, sync, error);
    }
    return err;
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
