/* space.c: the reserve: free space that only deletes, compaction and RocksDB may use
 * (design/architecture.md section 6). */
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "storage/storage_internal.h"

enum {
    CHECK_INTERVAL_MS = 1000,
    CLOSE_BYTES = 64 * 1024 * 1024, /* above the reserve: looked at every time */
    RESERVE_PERCENT = 1
};
static const uint64_t RESERVE_MIN_BYTES = 1024u * 1024u * 1024u;

static uint64_t reserve_of(const struct fgw_storage *storage, uint64_t total)
{
    if (storage->options.min_free_bytes != 0) {
        return storage->options.min_free_bytes;
    }
    uint64_t percent = total / 100 * RESERVE_PERCENT;
    return percent > RESERVE_MIN_BYTES ? percent : RESERVE_MIN_BYTES;
}

void fgw_storage_check_space(struct fgw_storage *storage, bool now)
{
    uint64_t free_bytes;
    uint64_t total_bytes;
    uint64_t now_ms = fgw_clock_boot_ms();
    uint64_t last_ms = atomic_load(&storage->space.checked_ms);
    uint64_t reserve = reserve_of(storage, atomic_load(&storage->space.total_bytes));
    bool close = atomic_load(&storage->space.free_bytes) <
                 reserve + CLOSE_BYTES + atomic_load(&storage->space.used_bytes);
    if (!now && !close && now_ms - last_ms < CHECK_INTERVAL_MS) {
        return;
    }
    atomic_store(&storage->space.used_bytes, 0);
    atomic_store(&storage->space.checked_ms, now_ms);
    if (fgw_fs_space(storage->dir.root, &free_bytes, &total_bytes) != FGW_OK) {
        return;
    }
    bool below = free_bytes < reserve_of(storage, total_bytes);
    atomic_store(&storage->space.free_bytes, free_bytes);
    atomic_store(&storage->space.total_bytes, total_bytes);
    if (atomic_exchange(&storage->space.below_reserve, below) != below) {
        fgw_log_warn("storage", below ? "free space is below the reserve: writes that add bytes are "
                                        "refused free_bytes=%llu"
                                      : "free space is above the reserve again free_bytes=%llu",
                     (unsigned long long)free_bytes);
    }
}
