/* compact.c: see compact.h.
 *
 * Crash argument: a block is moved by one logged item that applies if the index still points at the
 * old place, and the old bytes stay until nothing can ask for them; GROUP_GONE is logged when the
 * index has left the group; the file goes only when neither log, nor index, nor checkpoint of any
 * later start can name it. So a crash anywhere leaves bytes too many, never too few.
 */
#include "storage/compact.h"

#include "base/log.h"
#include "storage/index_page.h"
#include "storage/storage_internal.h"

enum {
    CALL_MS = 5000,
    RETRY_MS = 60 * 1000,
    APPLY_WAIT_MS = 5000,
    DEAD_PERCENT_DEFAULT = 50,
    ROOM_BYTES = 64 * 1024 * 1024, /* at most: that must stay free besides what is moved */
    SEAL_BYTES = 64 * 1024 * 1024, /* of a group that is left before it is full, at least */
    WAITING_GROUPS = 2             /* given up and not unlinked yet: then nothing is moved */
};

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
        group->bytes = fgw_storage_group_bytes(job->storage, group->id);
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
        fgw_compact_add_gone(&storage->compact,
                             &(struct fgw_gone_group){.id = group->id,
                                                      .bytes = group->bytes,
                                                      .counted = true,
                                                      .batch = fgw_compact_last_batch(storage)});
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

/* -- which group next ---------------------------------------------------------------------------- */

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

static bool has_room(const struct fgw_storage *storage, const struct group *group)
{
    return atomic_load(&storage->space.free_bytes) >=
           group->row.live_bytes + fgw_storage_reserve_part(storage, ROOM_BYTES);
}

/* The group that gives most for what it costs; NULL when none is worth it, or none has room to be
 * moved. */
static const struct group *choose(struct fgw_storage *storage, const struct groups *groups,
                                  bool *out_cramped)
{
    const struct group *best = NULL;
    *out_cramped = false;
    fgw_storage_check_space(storage, true);
    for (size_t i = 0; i < groups->count; i++) {
        const struct group *group = &groups->list[i];
        if (!is_worth_it(storage, group) || !is_closed(storage, groups, group) ||
            is_stuck(&storage->compact, group->id)) {
            continue;
        }
        if (!has_room(storage, group)) {
            *out_cramped = true;
        } else if (best == NULL || (double)dead_bytes(group) / (double)group->bytes >
                                       (double)dead_bytes(best) / (double)best->bytes) {
            best = group;
        }
    }
    return best;
}

/* -- a pass -------------------------------------------------------------------------------------- */

static bool may_move(struct fgw_storage *storage)
{
    uint64_t limit = WAITING_GROUPS * storage->options.group_size_bytes;
    return fgw_compact_uncovered(storage) <
           (limit > FGW_COMPACT_WAITING_BYTES ? limit : FGW_COMPACT_WAITING_BYTES);
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
    fgw_compact_unlink(storage, groups->applied.group, result);
    fgw_compact_ask_for_checkpoint(storage);
    bool cramped = false;
    const struct group *group = may_move(storage) ? choose(storage, groups, &cramped) : NULL;
    if (group == NULL) {
        return cramped ? FGW_ERR_NOSPACE : FGW_OK;
    }
    if (!wait_applied(storage)) {
        return FGW_ERR_UNAVAILABLE;
    }
    err = fgw_compact_move(storage, group->id, group->row.end, result);
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
    if (storage->compact.gone_count == 0 &&
        storage->compact.idle_batch == fgw_compact_last_batch(storage)) {
        return CALL_MS; /* nothing was freed since nothing was to do */
    }
    while (err == FGW_OK && result.more && !fgw_care_stopping(storage->care)) {
        err = fgw_compact_pass(storage, &result);
    }
    if (err != FGW_OK && err != FGW_ERR_CANCELLED) {
        fgw_log_warn("storage", "compaction waits: %s", fgw_err_text(err));
        return RETRY_MS;
    }
    storage->compact.idle_batch = fgw_compact_last_batch(storage);
    return CALL_MS;
}

/* -- life ---------------------------------------------------------------------------------------- */

void fgw_compact_deinit(struct fgw_compact *compact)
{
    fgw_xfree(compact->gone);
    fgw_xfree(compact->stuck);
}
