/* space.c: the reserve: free space that only deletes, compaction and RocksDB may use
 * (design/architecture.md section 6). */
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "storage/storage_internal.h"

enum {
    CHECK_INTERVAL_MS = 1000,
    CLOSE_BYTES = 64 * 1024 * 1024, /* above the reserve: looked at every time */
    GROUP_LEAST_BYTES = 64 * 1024 * 1024,
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

uint64_t fgw_storage_reserve(const struct fgw_storage *storage)
{
    return reserve_of(storage, atomic_load(&storage->space.total_bytes));
}

uint64_t fgw_storage_reserve_part(const struct fgw_storage *storage, uint64_t most)
{
    uint64_t part = fgw_storage_reserve(storage) / 4;
    return part < most ? part : most;
}

/* What is alive in a group is moved within the reserve, or a full disk could never be emptied by
 * deleting: a group that is worth it is half dead, so one as large as the reserve can always go. */
void fgw_storage_limit_groups(struct fgw_storage *storage)
{
    fgw_storage_check_space(storage, true);
    uint64_t reserve = fgw_storage_reserve(storage);
    uint64_t most = reserve > GROUP_LEAST_BYTES ? reserve : (uint64_t)GROUP_LEAST_BYTES;
    if (storage->options.group_size_bytes > most) {
        storage->options.group_size_bytes = most;
    }
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
        fgw_log_warn("storage",
                     below ? "free space is below the reserve: writes that add bytes are "
                             "refused free_bytes=%llu"
                           : "free space is above the reserve again free_bytes=%llu",
                     (unsigned long long)free_bytes);
    }
}
