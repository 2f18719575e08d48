/* compact_gone.c: groups that were given up, until their files may go; see compact.h.
 *
 * Crash argument: the file goes only when neither log, nor index, nor checkpoint of any later start
 * can name it; what a crash leaves is found at open and taken up again. */
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "storage/compact.h"
#include "storage/storage_internal.h"

uint64_t fgw_compact_last_batch(struct fgw_storage *storage)
{
    struct fgw_committer_stats stats;
    fgw_committer_stats(storage->committer, &stats);
    return stats.last_batch;
}

void fgw_compact_add_gone(struct fgw_compact *compact, const struct fgw_gone_group *gone)
{
    if (compact->gone_count == compact->gone_capacity) {
        compact->gone_capacity = 2 * compact->gone_capacity + 8;
        compact->gone = fgw_xrealloc(compact->gone, compact->gone_capacity * sizeof *compact->gone);
    }
    compact->gone[compact->gone_count++] = *gone;
}

/* -- unlinking ----------------------------------------------------------------------------------- */

/* As a batch: until a restart. */
static const uint64_t NEVER = UINT64_MAX;

struct check_job {
    struct fgw_storage *storage;
    uint64_t id;
    uint64_t rows;
    enum fgw_err result;
};

static void run_check(void *arg)
{
    struct check_job *job = arg;
    struct fgw_compact_slice *slice = fgw_xcalloc(1, sizeof *slice);
    slice->group = job->id;
    fgw_buf_init(&slice->bytes, 0);
    while (job->result == FGW_OK && !slice->end && slice->rows == 0) {
        job->result = fgw_compact_read(job->storage, slice);
    }
    job->rows = slice->rows;
    fgw_buf_deinit(&slice->bytes);
    fgw_xfree(slice);
}

/* Counts may be wrong, and what is unlinked is lost: the index is asked about every section. */
static bool is_left(struct fgw_storage *storage, struct fgw_gone_group *gone)
{
    struct check_job job = {.storage = storage, .id = gone->id};
    if (gone->checked) {
        return true;
    }
    fgw_pool_run(storage->pool, run_check, &job);
    bool follows = job.result == FGW_OK || (job.result == FGW_ERR_CORRUPT && gone->counted);
    gone->checked = follows && job.rows == 0;
    if (!gone->checked && (job.rows > 0 || job.result == FGW_ERR_CORRUPT)) {
        fgw_log_error("storage", "group %llu is kept: %s", (unsigned long long)gone->id,
                      job.rows > 0 ? "the index points into it although its count is zero"
                                   : "its sections cannot be followed");
        gone->batch = NEVER;
    }
    return gone->checked;
}

struct unlink_job {
    struct fgw_storage *storage;
    uint64_t id;
    enum fgw_err result;
};

static void run_unlink(void *arg)
{
    struct unlink_job *job = arg;
    char name[FGW_GROUP_NAME_SIZE];
    int dir = job->storage->dir.groups;
    fgw_group_name(job->id, name);
    char *dot = strrchr(name, '.');
    memcpy(dot, ".idx", 4);
    (void)unlinkat(dir, name, 0);
    memcpy(dot, ".car", 4);
    job->result = fgw_fs_unlink(dir, name);
    if (job->result == FGW_OK) {
        job->result = fgw_fs_fsync_dir(dir);
    }
}

struct flush_job {
    struct fgw_kv *kv;
    struct fgw_error error;
    enum fgw_err result;
};

static void run_flush(void *arg)
{
    struct flush_job *job = arg;
    job->result = fgw_kv_flush(job->kv, &job->error);
}

/* Whatever RocksDB's log loses from now on, the index is behind `batch`. */
static enum fgw_err flush_index(struct fgw_storage *storage, uint64_t batch)
{
    struct flush_job job = {.kv = storage->kv};
    struct fgw_committer_stats stats;
    if (storage->compact.flushed_batch >= batch) {
        return FGW_OK;
    }
    fgw_committer_stats(storage->committer, &stats);
    if (stats.applied_batch < batch) {
        return FGW_ERR_AGAIN;
    }
    fgw_error_init(&job.error);
    fgw_pool_run(storage->pool, run_flush, &job);
    if (job.result == FGW_OK) {
        storage->compact.flushed_batch = stats.applied_batch;
    }
    return job.result;
}

static uint64_t covered_batch(struct fgw_storage *storage)
{
    return atomic_load(&storage->checkpoint.covered_batch);
}

static bool unlink_group(struct fgw_storage *storage, struct fgw_gone_group *gone)
{
    struct unlink_job job = {storage, gone->id, FGW_OK};
    if (flush_index(storage, gone->batch) != FGW_OK ||
        fgw_group_files_used(&storage->files, gone->id) || !is_left(storage, gone)) {
        return false;
    }
    if (!fgw_storage_begin_unlink(storage)) {
        return false; /* a backup is reading */
    }
    fgw_pool_run(storage->pool, run_unlink, &job);
    fgw_storage_end_unlink(storage);
    if (job.result != FGW_OK && job.result != FGW_ERR_NOT_FOUND) {
        fgw_log_warn("storage", "group %llu cannot be unlinked: %s", (unsigned long long)gone->id,
                     fgw_err_text(job.result));
        return false;
    }
    /* an open file that waits for a reader would keep the space */
    (void)fgw_group_files_forget(&storage->files, gone->id);
    atomic_fetch_add(&storage->compact.figures.groups, 1);
    atomic_fetch_add(&storage->compact.figures.bytes, gone->bytes);
    fgw_log_info("storage", "group %llu is gone bytes=%llu", (unsigned long long)gone->id,
                 (unsigned long long)gone->bytes);
    return true;
}

void fgw_compact_unlink(struct fgw_storage *storage, uint64_t applied_group,
                        struct fgw_compact_result *result)
{
    struct fgw_compact *compact = &storage->compact;
    size_t kept = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < compact->gone_count; i++) {
        struct fgw_gone_group *gone = &compact->gone[i];
        if (gone->batch == 0 && applied_group > gone->id) {
            gone->batch = fgw_compact_last_batch(storage);
        }
        if (gone->batch != 0 && covered_batch(storage) >= gone->batch &&
            unlink_group(storage, gone)) {
            result->unlinked_groups++;
        } else {
            bytes += gone->bytes;
            compact->gone[kept++] = *gone;
        }
    }
    compact->gone_count = kept;
    atomic_store(&compact->figures.waiting_groups, kept);
    atomic_store(&compact->figures.waiting_bytes, bytes);
}

/* -- what they wait for -------------------------------------------------------------------------- */

uint64_t fgw_compact_uncovered(struct fgw_storage *storage)
{
    const struct fgw_compact *compact = &storage->compact;
    uint64_t covered = covered_batch(storage);
    uint64_t bytes = 0;
    for (size_t i = 0; i < compact->gone_count; i++) {
        bytes += compact->gone[i].batch > covered && compact->gone[i].batch != NEVER
                     ? compact->gone[i].bytes
                     : 0;
    }
    return bytes;
}

/* A checkpoint is as large as the metadata: worth it when it gives more back. */
void fgw_compact_ask_for_checkpoint(struct fgw_storage *storage)
{
    struct fgw_kv_stats kv;
    uint64_t enough = storage->options.group_size_bytes;
    enough = enough < FGW_COMPACT_WAITING_BYTES ? enough : FGW_COMPACT_WAITING_BYTES;
    uint64_t bytes = fgw_compact_uncovered(storage);
    fgw_kv_stats(storage->kv, &kv);
    if (bytes > 0 && bytes >= kv.live_table_bytes &&
        (bytes >= enough || atomic_load(&storage->space.below_reserve))) {
        atomic_store(&storage->checkpoint.wanted, true);
        fgw_care_kick(storage->care, FGW_CARE_CHECKPOINT);
    }
}

/* -- at open ------------------------------------------------------------------------------------- */

void fgw_compact_find_leftovers(struct fgw_storage *storage, const struct fgw_found_groups *found)
{
    struct fgw_group_row row;
    for (size_t i = 0; i < found->count; i++) {
        const struct fgw_found_group *group = &found->groups[i];
        bool written = group->is_log ? group->id == storage->log_group_at_open
                                     : fgw_bulk_busy(storage->bulk, group->id);
        if (group->readable && !written &&
            fgw_storage_group_row(storage, group->id, &row) == FGW_ERR_NOT_FOUND) {
            fgw_compact_add_gone(&storage->compact,
                                 &(struct fgw_gone_group){.id = group->id, .bytes = group->size});
        }
    }
}
