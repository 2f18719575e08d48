/* log.c: see log.h.
 *
 * Commit point of a batch: the fdatasync in fgw_log_append. Crash argument: until it returns nobody
 * was told; after it the batch is whole on disk, as its bytes were all written before. A batch that
 * could not be written is undone by the successor's opening record, which names an end before it;
 * that record is durable before the next batch is written and before the failure is answered.
 */
#include "storage/log.h"

#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "storage/items.h"

enum {
    RETRY_MS = 200, /* between tries to go on after the disk was full */
    FILL_BYTES = 256 * 1024,
    FILL_PIECE = 64 * 1024,
    FILL_PAGE = 4096,
    FILL_BATCH_MAX = 64 * 1024 /* of larger batches a sync costs more than the growing does */
};

void fgw_log_init(struct fgw_log *log, struct fgw_datadir *dir,
                  const struct fgw_record_sealer *sealer, _Atomic uint64_t *last_group)
{
    *log = (struct fgw_log){.dir = dir, .sealer = *sealer, .last_group = last_group, .fd = -1};
    fgw_buf_init(&log->records, 0);
}

void fgw_log_adopt(struct fgw_log *log, const struct fgw_log_position *position)
{
    uint64_t size = 0;
    log->fd = position->fd;
    log->group = position->group;
    log->end = position->end;
    log->last_record = position->last_record;
    log->last_batch = position->last_batch;
    log->allocated = fgw_fs_size(log->fd, &size) == FGW_OK && size > log->end ? size : log->end;
}

/* The file ends where its last batch does. Losing this to a crash costs nothing: zero bytes. */
static void cut(struct fgw_log *log)
{
    if (log->allocated > log->end &&
        (fgw_fs_ftruncate(log->fd, log->end) != FGW_OK || fgw_fs_fsync(log->fd) != FGW_OK)) {
        fgw_log_warn("storage", "cannot cut log group %llu at its end",
                     (unsigned long long)log->group);
    }
}

void fgw_log_deinit(struct fgw_log *log)
{
    if (log->fd >= 0) {
        if (!log->read_only && !log->full) {
            cut(log);
        }
        (void)close(log->fd);
        log->fd = -1;
    }
    fgw_buf_deinit(&log->records);
}

enum fgw_err fgw_log_rotate(struct fgw_log *log, bool poisoned)
{
    struct fgw_item_predecessor predecessor = {log->group, log->end, log->last_batch};
    struct fgw_record_head head = {
        .kind = FGW_RECORD_LOG_OPEN, .batch = log->last_batch, .part = 1, .parts = 1};
    struct fgw_buf payload;
    int fd = -1;
    uint64_t end = 0;
    uint64_t id = atomic_fetch_add(log->last_group, 1) + 1;
    fgw_buf_init(&payload, 0);
    fgw_item_put_u64(&payload, FGW_ITEM_RUNNING_MS, log->running_ms);
    fgw_item_put_predecessor(&payload, &predecessor);
    enum fgw_err err = fgw_group_create(log->dir->tmp, log->dir->groups, id, &log->sealer, &head,
                                        fgw_buf_bytes(&payload), &fd, &end);
    fgw_buf_deinit(&payload);
    if (err != FGW_OK) {
        return err;
    }
    if (log->fd >= 0) {
        if (!poisoned) {
            cut(log);
        }
        (void)close(log->fd);
    }
    fgw_log_adopt(log, &(struct fgw_log_position){fd, id, end, 0, log->last_batch});
    return FGW_OK;
}

static void leave_group(struct fgw_log *log)
{
    enum fgw_err err = fgw_log_rotate(log, true);
    log->full = err == FGW_ERR_NOSPACE;
    log->read_only = err != FGW_OK && !log->full;
    log->full_since_ms = fgw_clock_boot_ms();
    if (err == FGW_OK) {
        fgw_log_warn("storage", "the log goes on in group %llu", (unsigned long long)log->group);
    } else if (log->read_only) {
        fgw_log_error("storage", "no new log group can be opened (%s): read-only until restart",
                      fgw_err_name(err));
    }
}

enum fgw_err fgw_log_prepare(struct fgw_log *log)
{
    if (log->full && fgw_clock_boot_ms() - log->full_since_ms >= RETRY_MS) {
        leave_group(log);
    }
    if (log->read_only || log->full) {
        return log->full ? FGW_ERR_NOSPACE : FGW_ERR_READ_ONLY;
    }
    bool leave = log->end >= log->group_size || atomic_load(&log->seal_wanted) == log->group;
    return leave ? fgw_log_rotate(log, false) : FGW_OK;
}

/* Parts of at most FGW_RECORD_PAYLOAD_MAX, one section each, behind the blocks. */
static void seal_parts(struct fgw_log *log, uint64_t offset, struct fgw_bytes items,
                       uint64_t *out_last_record)
{
    uint64_t previous = log->last_record;
    struct fgw_record_head head = {.kind = FGW_RECORD_BATCH,
                                   .flags = log->sync_off ? FGW_RECORD_UNSYNCED : 0,
                                   .batch = log->last_batch + 1};
    head.parts = (uint32_t)((items.len + FGW_RECORD_PAYLOAD_MAX - 1) / FGW_RECORD_PAYLOAD_MAX);
    FGW_CHECK(head.parts > 0 && head.parts <= FGW_RECORD_PARTS_MAX);
    fgw_buf_clear(&log->records);
    for (head.part = 1; head.part <= head.parts; head.part++) {
        struct fgw_record_place place = {log->group, offset + log->records.len};
        struct fgw_bytes payload = fgw_bytes_sub(items, 0, FGW_RECORD_PAYLOAD_MAX);
        items = fgw_bytes_sub(items, payload.len, SIZE_MAX);
        head.previous = previous;
        fgw_group_put_record(&log->records, &log->sealer, &head, place, payload);
        previous = place.offset;
    }
    *out_last_record = previous;
}

/* Zeros behind a small batch, for its sync to make durable too: the batches after it then overwrite
 * what is there, and syncing those writes their bytes alone, without the inode and the map of the
 * file, in about half the time. Failing is no harm: the file just grows. */
static void fill_ahead(struct fgw_log *log, uint64_t end)
{
    static uint8_t zeros[FILL_PIECE];
    struct iovec iov[FILL_BYTES / FILL_PIECE + 1];
    uint64_t to = (end + FILL_BYTES) / FILL_PAGE * FILL_PAGE;
    int count = 0;
    for (uint64_t left = to - end; left > 0; count++) {
        iov[count] = (struct iovec){zeros, left < FILL_PIECE ? (size_t)left : FILL_PIECE};
        left -= iov[count].iov_len;
    }
    if (fgw_fs_pwritev(log->fd, iov, count, end) == FGW_OK) {
        log->allocated = to;
    }
}

static enum fgw_err sync_group(struct fgw_log *log)
{
    if (log->sync_off) {
        return FGW_OK;
    }
    uint64_t start = fgw_clock_boot_ns();
    enum fgw_err err = fgw_fs_fdatasync(log->fd);
    atomic_fetch_add_explicit(&log->syncs.count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&log->syncs.ns_total, fgw_clock_boot_ns() - start,
                              memory_order_relaxed);
    return err;
}

/* The group is left alone for ever: the kernel may have dropped what it failed to write. Returns
 * what the batch is answered: when it was written whole and no successor could say that it is void,
 * a restart may still find it, unless the cut below reaches the disk. */
static enum fgw_err abandon_group(struct fgw_log *log, enum fgw_err why, bool whole)
{
    fgw_log_error("storage", "writing log group %llu failed (%s): it is not written any more",
                  (unsigned long long)log->group, fgw_err_name(why));
    leave_group(log);
    if (!whole || (!log->read_only && !log->full)) {
        return why;
    }
    (void)!fgw_fs_ftruncate(log->fd, log->end);
    return FGW_ERR_UNKNOWN_OUTCOME;
}

enum fgw_err fgw_log_append(struct fgw_log *log, const struct fgw_log_append *append)
{
    uint64_t last_record;
    FGW_CHECK(!log->read_only && !log->full);
    seal_parts(log, log->end + append->block_bytes, append->items, &last_record);
    append->blocks[append->block_count] = (struct iovec){log->records.ptr, log->records.len};
    enum fgw_err err = fgw_fs_pwritev(log->fd, append->blocks, append->block_count + 1, log->end);
    if (err != FGW_OK) {
        return abandon_group(log, err, false);
    }
    uint64_t size = append->block_bytes + log->records.len;
    if (!log->sync_off && log->end + size > log->allocated && size <= FILL_BATCH_MAX) {
        fill_ahead(log, log->end + size);
    }
    err = sync_group(log);
    if (err != FGW_OK) {
        return abandon_group(log, err, true);
    }
    log->end += size;
    log->allocated = log->end > log->allocated ? log->end : log->allocated;
    log->last_record = last_record;
    log->last_batch++;
    return FGW_OK;
}
