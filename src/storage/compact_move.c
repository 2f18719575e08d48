/* compact_move.c: the live blocks of a group go to the current bulk group; see compact.h.
 *
 * Crash argument: a slice is appended and synced, then its moves are logged together with the end
 * offset that covers them; the old bytes stay. What was appended and not logged is dead. */
#include "base/log.h"
#include "storage/compact.h"
#include "storage/storage_internal.h"

enum { MOVE_BYTES_PER_S = 64 * 1024 * 1024 /* at most, while there is space */ };

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

enum fgw_err fgw_compact_move(struct fgw_storage *storage, uint64_t group, uint64_t file_end,
                              struct fgw_compact_result *result)
{
    struct fgw_compact_slice *slice = fgw_xcalloc(1, sizeof *slice);
    enum fgw_err err = FGW_OK;
    slice->group = group;
    slice->file_end = file_end;
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
        bool kept = atomic_load(&storage->compact.kept) == atomic_load(&storage->compact.moving);
        if (err == FGW_OK && (kept || fgw_care_stopping(storage->care))) {
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
