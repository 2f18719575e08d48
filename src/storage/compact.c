/* compact.c: see compact.h.
 *
 * Crash argument: a block is moved by one logged item that applies if the index still points at the
 * old place, and the old bytes stay until nothing can ask for them; GROUP_GONE is logged when the
 * index has left the group; the file goes only when neither log, nor index, nor checkpoint of any
 * later start can name it. So a crash anywhere leaves bytes too many, never too few.
 */
#include "storage/compact.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "storage/index_page.h"
#include "storage/storage_internal.h"

enum {
    CALL_MS = 5000,
    RETRY_MS = 60 * 1000,
    APPLY_WAIT_MS = 5000,
    DEAD_PERCENT_DEFAULT = 50,
    MOVE_BYTES_PER_S = 64 * 1024 * 1024, /* at most, while there is space */
    ROOM_BYTES = 64 * 1024 * 1024,       /* that must stay free besides what is moved */
    SEAL_BYTES = 64 * 1024 * 1024,       /* of a group that is left before it is full, at least */
    WAITING_GROUPS = 2                   /* given up and not unlinked yet: then nothing is moved */
};
static const uint64_t CHECKPOINT_FOR_BYTES = 1024u * 1024u * 1024u;

/* A group as the index and the file system see it. */
struct group {
    uint64_t id;
    uint64_t bytes; /* of its file */
    struct fgw_group_row row;
};

struct groups {
    struct group *list;
    size_t count;
    struct fgw_applied applied; /* how far the index was at the time */
};

static unsigned dead_percent(const struct fgw_storage *storage)
{
    return storage->options.dead_percent != 0 ? storage->options.dead_percent
                                              : (unsigned)DEAD_PERCENT_DEFAULT;
}

/* -- what there is ------------------------------------------------------------------------------- */

static uint64_t file_bytes(const struct fgw_storage *storage, uint64_t id)
{
    char name[FGW_GROUP_NAME_SIZE];
    struct stat status;
    fgw_group_name(id, name);
    return fstatat(storage->dir.groups, name, &status, 0) == 0 ? (uint64_t)status.st_size : 0;
}

static enum fgw_err read_applied(struct fgw_storage *storage, struct fgw_applied *out)
{
    struct fgw_row_key key = fgw_row_key_applied();
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    enum fgw_err err =
        fgw_kv_get(storage->kv, FGW_KV_BLOCKS, fgw_row_key_bytes(&key), false, &value);
    if (err == FGW_OK) {
        err = fgw_applied_decode(fgw_buf_bytes(&value), out);
    }
    fgw_buf_deinit(&value);
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err; /* nothing was committed ever */
}

struct list_job {
    struct fgw_storage *storage;
    struct groups *groups;
    enum fgw_err result;
};

static void run_list(void *arg)
{
    struct list_job *job = arg;
    struct groups *groups = job->groups;
    struct fgw_row_key lower = {.bytes = {'g'}, .len = 1};
    struct fgw_row_key upper = {.bytes = {'g' + 1}, .len = 1};
    struct fgw_index_range range = {fgw_row_key_bytes(&lower), fgw_row_key_bytes(&upper), SIZE_MAX};
    struct fgw_index_page page;
    fgw_index_page_init(&page);
    job->result = read_applied(job->storage, &groups->applied);
    if (job->result == FGW_OK) {
        job->result = fgw_index_page_load(&page, job->storage->kv, &range);
    }
    groups->list = fgw_xcalloc(page.count + 1, sizeof *groups->list);
    for (size_t i = 0; i < page.count && job->result == FGW_OK; i++) {
        struct group *group = &groups->list[groups->count++];
        group->id = fgw_get_u64be(page.rows[i].key.ptr + 1);
        group->bytes = file_bytes(job->storage, group->id);
        job->result = fgw_group_row_decode(page.rows[i].value, &group->row);
    }
    fgw_index_page_deinit(&page);
}

static enum fgw_err list_groups(struct fgw_storage *storage, struct groups *groups)
{
    struct list_job job = {storage, groups, FGW_OK};
    fgw_pool_run(storage->pool, run_list, &job);
    return job.result;
}

/* Nothing is appended any more, nothing unheld lies in it, and no batch in it waits to be applied. */
static bool is_closed(struct fgw_storage *storage, const struct groups *groups,
                      const struct group *group)
{
    struct fgw_committer_stats stats;
    fgw_committer_stats(storage->committer, &stats);
    return group->row.kind == FGW_GROUP_BULK
               ? !fgw_bulk_busy(storage->bulk, group->id)
               : group->id != stats.log_group && groups->applied.group > group->id;
}

/* Batches that may refer to a bulk group that was busy a moment ago are applied. */
static bool wait_applied(struct fgw_storage *storage)
{
    struct fgw_committer_stats stats;
    fgw_committer_stats(storage->committer, &stats);
    uint64_t batch = stats.last_batch;
    for (int waited_ms = 0; stats.applied_batch < batch; waited_ms += 10) {
        if (waited_ms >= APPLY_WAIT_MS) {
            return false;
        }
        fgw_fiber_sleep_ms(10);
        fgw_committer_stats(storage->committer, &stats);
    }
    return true;
}

/* -- giving up ----------------------------------------------------------------------------------- */

static void add_gone(struct fgw_compact *compact, const struct fgw_gone_group *gone)
{
    if (compact->gone_count == compact->gone_capacity) {
        compact->gone_capacity = 2 * compact->gone_capacity + 8;
        compact->gone = fgw_xrealloc(compact->gone, compact->gone_capacity * sizeof *compact->gone);
    }
    compact->gone[compact->gone_count++] = *gone;
}

struct row_job {
    struct fgw_storage *storage;
    uint64_t id;
    struct fgw_group_row row;
    enum fgw_err result;
};

static void run_row(void *arg)
{
    struct row_job *job = arg;
    job->result = fgw_storage_group_row(job->storage, job->id, &job->row);
}

static uint64_t last_batch(struct fgw_storage *storage)
{
    struct fgw_committer_stats stats;
    fgw_committer_stats(storage->committer, &stats);
    return stats.last_batch;
}

/* Logs that the index has left the group; apply looks once more. */
static enum fgw_err give_up(struct fgw_storage *storage, const struct group *group)
{
    struct row_job job = {.storage = storage, .id = group->id};
    struct fgw_buf items;
    if (!wait_applied(storage)) {
        return FGW_OK; /* at another time */
    }
    fgw_pool_run(storage->pool, run_row, &job);
    if (job.result != FGW_OK || job.row.live_blocks > 0) {
        return job.result == FGW_ERR_NOT_FOUND ? FGW_OK : job.result;
    }
    fgw_buf_init(&items, 0);
    fgw_item_put_group_gone(&items, group->id);
    enum fgw_err err = fgw_storage_commit_items(storage, "group gone", &items);
    fgw_buf_deinit(&items);
    if (err != FGW_OK) {
        return err;
    }
    fgw_pool_run(storage->pool, run_row, &job);
    if (job.result == FGW_ERR_NOT_FOUND) {
        add_gone(&storage->compact, &(struct fgw_gone_group){.id = group->id,
                                                             .bytes = group->bytes,
                                                             .batch = last_batch(storage)});
        return FGW_OK;
    }
    return job.result;
}

static enum fgw_err give_up_empty(struct fgw_storage *storage, const struct groups *groups)
{
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < groups->count && err == FGW_OK; i++) {
        const struct group *group = &groups->list[i];
        if (group->row.live_blocks == 0 && is_closed(storage, groups, group)) {
            err = give_up(storage, group);
        }
    }
    return err;
}

/* -- groups that are still written --------------------------------------------------------------- */

/* A group of 4 GiB that is never filled would keep what was deleted for ever. Records do not count:
 * a new log group would fill with them as well. */
static bool is_wasteful(const struct fgw_storage *storage, const struct group *group)
{
    uint64_t enough = storage->options.group_size_bytes / 2;
    enough = enough < SEAL_BYTES ? enough : (uint64_t)SEAL_BYTES;
    uint64_t dead = group->row.written_bytes - group->row.live_bytes;
    return group->bytes >= enough && dead >= group->bytes / 100 * dead_percent(storage);
}

enum fgw_err fgw_compact_leave_log_group(struct fgw_storage *storage, uint64_t id)
{
    struct fgw_buf nothing;
    fgw_buf_init(&nothing, 0);
    fgw_committer_seal(storage->committer, id);
    enum fgw_err err = fgw_storage_commit_items(storage, "seal", &nothing);
    fgw_buf_deinit(&nothing);
    return err;
}

static enum fgw_err seal_wasteful(struct fgw_storage *storage, const struct groups *groups)
{
    struct fgw_committer_stats stats;
    enum fgw_err err = FGW_OK;
    fgw_committer_stats(storage->committer, &stats);
    for (size_t i = 0; i < groups->count && err == FGW_OK; i++) {
        const struct group *group = &groups->list[i];
        if (!is_wasteful(storage, group)) {
            continue;
        }
        if (group->row.kind == FGW_GROUP_BULK && fgw_bulk_busy(storage->bulk, group->id)) {
            fgw_bulk_seal(storage->bulk, group->id);
        } else if (group->id == stats.log_group) {
            err = fgw_compact_leave_log_group(storage, group->id);
        }
    }
    return err;
}

/* -- moving -------------------------------------------------------------------------------------- */

/* Where blocks of one slice went. */
struct targets {
    struct fgw_bulk_place places[FGW_COMPACT_BLOCKS];
    size_t count;
};

static enum fgw_err append_slice(struct fgw_storage *storage, const struct fgw_compact_slice *slice,
                                 struct targets *targets)
{
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < slice->count && err == FGW_OK; i++) {
        const struct fgw_compact_block *block = &slice->blocks[i];
        struct fgw_storage_block copy = {fgw_cid_make(block->codec, block->digest), block->crc32c,
                                         block->bytes};
        atomic_fetch_add(&storage->space.used_bytes, block->len);
        err = fgw_bulk_append(storage->bulk, &copy, &targets->places[targets->count]);
        targets->count += err == FGW_OK ? 1 : 0;
    }
    for (size_t i = 0; i < targets->count && err == FGW_OK; i++) {
        err = fgw_bulk_sync(storage->bulk, targets->places[i].file, targets->places[i].end);
    }
    return err;
}

static bool is_last_of_file(const struct targets *targets, size_t i)
{
    return i + 1 == targets->count || targets->places[i + 1].file != targets->places[i].file;
}

static enum fgw_err log_moves(struct fgw_storage *storage, const struct fgw_compact_slice *slice,
                              const struct targets *targets)
{
    struct fgw_buf items;
    fgw_buf_init(&items, 0);
    for (size_t i = 0; i < targets->count; i++) {
        if (is_last_of_file(targets, i)) {
            fgw_item_put_bulk_end(&items, targets->places[i].group, targets->places[i].end);
        }
    }
    for (size_t i = 0; i < targets->count; i++) {
        struct fgw_item_move move = {.from_group = slice->group,
                                     .from_offset = slice->blocks[i].offset,
                                     .to_group = targets->places[i].group,
                                     .to_offset = targets->places[i].offset};
        memcpy(move.digest, slice->blocks[i].digest, sizeof move.digest);
        fgw_item_put_move(&items, &move);
    }
    enum fgw_err err = fgw_storage_commit_items(storage, "move", &items);
    fgw_buf_deinit(&items);
    return err;
}

static enum fgw_err move_slice(struct fgw_storage *storage, const struct fgw_compact_slice *slice)
{
    struct targets *targets = fgw_xcalloc(1, sizeof *targets);
    enum fgw_err err = append_slice(storage, slice, targets);
    if (err == FGW_OK) {
        err = log_moves(storage, slice, targets);
    }
    for (size_t i = 0; i < targets->count; i++) {
        fgw_bulk_unref(storage->bulk, targets->places[i].file);
    }
    fgw_xfree(targets);
    if (err == FGW_OK) {
        atomic_fetch_add(&storage->compact.figures.moved_blocks, slice->count);
        atomic_fetch_add(&storage->compact.figures.moved_bytes, slice->bytes.len);
    }
    return err;
}

struct read_job {
    struct fgw_storage *storage;
    struct fgw_compact_slice *slice;
    enum fgw_err result;
};

static void run_read(void *arg)
{
    struct read_job *job = arg;
    job->result = fgw_compact_read(job->storage, job->slice);
}

/* Others want the disk too, unless space is what they want most. */
static void keep_rate(struct fgw_storage *storage, uint64_t bytes)
{
    if (!atomic_load(&storage->space.below_reserve)) {
        fgw_fiber_sleep_ms(bytes * 1000 / MOVE_BYTES_PER_S);
    }
}

static void remember_stuck(struct fgw_compact *compact, uint64_t id)
{
    compact->stuck =
        fgw_xrealloc(compact->stuck, (compact->stuck_count + 1) * sizeof *compact->stuck);
    compact->stuck[compact->stuck_count++] = id;
}

/* Blocks that cannot be moved keep their group; blocks without references go by themselves. */
static void note_rest(struct fgw_storage *storage, const struct fgw_compact_slice *slice,
                      enum fgw_err err)
{
    if (slice->unmovable > 0 || err == FGW_ERR_CORRUPT) {
        fgw_log_warn("storage",
                     "group %llu keeps its space: damaged=%llu%s; `fgw scrub` tells which",
                     (unsigned long long)slice->group, (unsigned long long)slice->unmovable,
                     err == FGW_ERR_CORRUPT ? " and its sections cannot be followed" : "");
        remember_stuck(&storage->compact, slice->group);
    }
}

static enum fgw_err move_group(struct fgw_storage *storage, const struct group *group,
                               struct fgw_compact_result *result)
{
    struct fgw_compact_slice *slice = fgw_xcalloc(1, sizeof *slice);
    enum fgw_err err = wait_applied(storage) ? FGW_OK : FGW_ERR_UNAVAILABLE;
    slice->group = group->id;
    slice->file_end = group->row.end;
    fgw_buf_init(&slice->bytes, 0);
    while (err == FGW_OK && !slice->end) {
        struct read_job job = {storage, slice, FGW_OK};
        fgw_pool_run(storage->pool, run_read, &job);
        err = job.result;
        if (slice->count > 0 && (err == FGW_OK || err == FGW_ERR_CORRUPT)) {
            enum fgw_err moved = move_slice(storage, slice);
            result->moved_blocks += moved == FGW_OK ? slice->count : 0;
            err = moved == FGW_OK ? err : moved;
        }
        keep_rate(storage, slice->bytes.len);
        if (err == FGW_OK && fgw_care_stopping(storage->care)) {
            err = FGW_ERR_CANCELLED;
        }
    }
    if (err == FGW_OK || err == FGW_ERR_CORRUPT) {
        note_rest(storage, slice, err);
        err = FGW_OK;
    }
    fgw_buf_deinit(&slice->bytes);
    fgw_xfree(slice);
    return err;
}

static bool is_stuck(const struct fgw_compact *compact, uint64_t id)
{
    for (size_t i = 0; i < compact->stuck_count; i++) {
        if (compact->stuck[i] == id) {
            return true;
        }
    }
    return false;
}

static uint64_t dead_bytes(const struct group *group)
{
    return group->bytes > group->row.live_bytes ? group->bytes - group->row.live_bytes : 0;
}

static bool is_worth_it(const struct fgw_storage *storage, const struct group *group)
{
    return group->row.live_blocks > 0 && group->bytes > 0 &&
           dead_bytes(group) >= group->bytes / 100 * dead_percent(storage);
}

static bool has_room(struct fgw_storage *storage, const struct group *group)
{
    fgw_storage_check_space(storage, true);
    return atomic_load(&storage->space.free_bytes) >= group->row.live_bytes + ROOM_BYTES;
}

/* The group that gives most for what it costs; NULL when none is worth it. */
static const struct group *choose(struct fgw_storage *storage, const struct groups *groups)
{
    const struct group *best = NULL;
    for (size_t i = 0; i < groups->count; i++) {
        const struct group *group = &groups->list[i];
        if (is_worth_it(storage, group) && is_closed(storage, groups, group) &&
            !is_stuck(&storage->compact, group->id) &&
            (best == NULL || (double)dead_bytes(group) / (double)group->bytes >
                                 (double)dead_bytes(best) / (double)best->bytes)) {
            best = group;
        }
    }
    return best;
}

/* -- unlinking ----------------------------------------------------------------------------------- */

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
    return atomic_load(&storage->checkpoint.verified_batch);
}

static bool unlink_group(struct fgw_storage *storage, const struct fgw_gone_group *gone)
{
    struct unlink_job job = {storage, gone->id, FGW_OK};
    if (flush_index(storage, gone->batch) != FGW_OK ||
        fgw_group_files_used(&storage->files, gone->id)) {
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

static void unlink_gone(struct fgw_storage *storage, const struct groups *groups,
                        struct fgw_compact_result *result)
{
    struct fgw_compact *compact = &storage->compact;
    size_t kept = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < compact->gone_count; i++) {
        struct fgw_gone_group *gone = &compact->gone[i];
        if (gone->batch == 0 && groups->applied.group > gone->id) {
            gone->batch = last_batch(storage);
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

/* -- a pass -------------------------------------------------------------------------------------- */

static uint64_t uncovered_bytes(struct fgw_storage *storage)
{
    const struct fgw_compact *compact = &storage->compact;
    uint64_t covered = covered_batch(storage);
    uint64_t bytes = 0;
    for (size_t i = 0; i < compact->gone_count; i++) {
        bytes += compact->gone[i].batch > covered ? compact->gone[i].bytes : 0;
    }
    return bytes;
}

/* A checkpoint is as large as the metadata: worth it when it gives more back. */
static void ask_for_checkpoint(struct fgw_storage *storage)
{
    struct fgw_kv_stats kv;
    uint64_t enough = storage->options.group_size_bytes;
    enough = enough < CHECKPOINT_FOR_BYTES ? enough : CHECKPOINT_FOR_BYTES;
    uint64_t bytes = uncovered_bytes(storage);
    fgw_kv_stats(storage->kv, &kv);
    if (bytes > 0 && bytes >= kv.live_table_bytes &&
        (bytes >= enough || atomic_load(&storage->space.below_reserve))) {
        atomic_store(&storage->checkpoint.wanted, true);
        fgw_care_kick(storage->care, FGW_CARE_CHECKPOINT);
    }
}

static bool may_move(struct fgw_storage *storage)
{
    uint64_t limit = WAITING_GROUPS * storage->options.group_size_bytes;
    return uncovered_bytes(storage) < (limit > CHECKPOINT_FOR_BYTES ? limit : CHECKPOINT_FOR_BYTES);
}

static enum fgw_err work(struct fgw_storage *storage, struct groups *groups,
                         struct fgw_compact_result *result)
{
    enum fgw_err err = list_groups(storage, groups);
    if (err == FGW_OK) {
        err = seal_wasteful(storage, groups);
    }
    if (err == FGW_OK) {
        err = give_up_empty(storage, groups);
    }
    if (err != FGW_OK) {
        return err;
    }
    unlink_gone(storage, groups, result);
    ask_for_checkpoint(storage);
    const struct group *group = may_move(storage) ? choose(storage, groups) : NULL;
    if (group == NULL) {
        return FGW_OK;
    }
    if (!has_room(storage, group)) {
        return FGW_ERR_NOSPACE;
    }
    err = move_group(storage, group, result);
    result->more = result->moved_blocks > 0;
    return err;
}

enum fgw_err fgw_compact_pass(struct fgw_storage *storage, struct fgw_compact_result *out_result)
{
    struct groups groups = {0};
    *out_result = (struct fgw_compact_result){0};
    enum fgw_err err = work(storage, &groups, out_result);
    fgw_xfree(groups.list);
    return err;
}

uint64_t fgw_compact_care(struct fgw_storage *storage)
{
    struct fgw_compact_result result = {.more = true};
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK && result.more && !fgw_care_stopping(storage->care)) {
        err = fgw_compact_pass(storage, &result);
    }
    if (err != FGW_OK && err != FGW_ERR_CANCELLED) {
        fgw_log_warn("storage", "compaction waits: %s", fgw_err_text(err));
        return RETRY_MS;
    }
    return CALL_MS;
}

/* -- life ---------------------------------------------------------------------------------------- */

void fgw_compact_find_leftovers(struct fgw_storage *storage, const struct fgw_found_groups *found)
{
    struct fgw_group_row row;
    for (size_t i = 0; i < found->count; i++) {
        const struct fgw_found_group *group = &found->groups[i];
        bool written = group->is_log ? group->id == storage->log_group_at_open
                                     : fgw_bulk_busy(storage->bulk, group->id);
        if (group->readable && !written &&
            fgw_storage_group_row(storage, group->id, &row) == FGW_ERR_NOT_FOUND) {
            add_gone(&storage->compact,
                     &(struct fgw_gone_group){.id = group->id, .bytes = group->size});
        }
    }
}

void fgw_compact_deinit(struct fgw_compact *compact)
{
    fgw_xfree(compact->gone);
    fgw_xfree(compact->stuck);
}
