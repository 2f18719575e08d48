/* storage.c: opening, closing, committing; see storage.h. */
#include "storage/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "storage/apply.h"
#include "storage/open_index.h"
#include "storage/recover.h"
#include "storage/storage_internal.h"
#include "storage/txn.h"

enum { POOL_THREADS = 8, IDLE_FILES_MAX = 512 };
static const uint64_t GROUP_SIZE_DEFAULT = 4ull * 1024 * 1024 * 1024;
static const uint64_t MEMORY_DEFAULT = 64u * 1024 * 1024;

/* -- opening ------------------------------------------------------------------------------------ */

struct fgw_record_sealer fgw_storage_sealer(const struct fgw_storage *storage)
{
    struct fgw_record_sealer sealer;
    fgw_record_sealer_init(&sealer, &storage->dir.keyring, storage->dir.store_ids[0]);
    return sealer;
}

/* The first log group, then FORMAT. */
static enum fgw_err create(struct fgw_storage *storage, struct fgw_error *error)
{
    struct fgw_log log;
    struct fgw_record_sealer sealer = fgw_storage_sealer(storage);
    fgw_log_init(&log, &storage->dir, &sealer, &storage->last_group);
    enum fgw_err err = fgw_log_rotate(&log, false);
    fgw_log_deinit(&log);
    storage->last_group = 0;
    if (err != FGW_OK) {
        return fgw_error_set(error, err, "cannot create the first log group in %s: %s",
                             storage->dir.path, fgw_err_text(err));
    }
    return fgw_datadir_commit(&storage->dir, error);
}

static void report_replay(struct fgw_storage *storage, const struct fgw_replay *replay,
                          uint64_t start_ns)
{
    storage->recovered = (struct fgw_storage_recovery){.checkpoint = storage->checkpoint.loaded_id,
                                                       .batches = replay->replayed,
                                                       .damages = replay->damages,
                                                       .lost_batches = replay->lost,
                                                       .misfits = replay->apply->misfits};
    if (replay->damages > 0) {
        fgw_log_error("storage",
                      "damage was passed over places=%llu lost_batches=%llu misfits=%llu: run `fgw "
                      "scrub` to find what misses its bytes",
                      (unsigned long long)replay->damages, (unsigned long long)replay->lost,
                      (unsigned long long)replay->apply->misfits);
    }
    if (replay->replayed > 0) {
        fgw_log_info("storage", "replayed the log batches=%llu ms=%llu",
                     (unsigned long long)replay->replayed,
                     (unsigned long long)(fgw_clock_boot_ns() - start_ns) / 1000000);
    }
}

/* The log lost what the index knows: allowed when it was not synced, or when damage may be passed
 * over. A checkpoint may know it too. */
static enum fgw_err replay_anew(struct fgw_storage *storage, struct fgw_replay *replay,
                                struct fgw_error *error)
{
    const char *why = "it knows batches that the log lost";
    enum fgw_err err;
    do {
        err = fgw_open_index_anew(storage, replay->apply, why, error);
        replay->index_ahead = false;
        for (size_t i = 0; i < replay->found->count; i++) {
            replay->found->groups[i].in_chain = false;
        }
        if (err == FGW_OK) {
            err = fgw_replay_log(replay, error);
        }
    } while (err == FGW_ERR_CORRUPT && replay->index_ahead &&
             fgw_open_index_drop_checkpoint(storage));
    return err;
}

/* Everything the log holds into the index. */
static enum fgw_err replay(struct fgw_storage *storage, struct fgw_found_groups *found,
                           struct fgw_apply *apply, struct fgw_log_position *position,
                           struct fgw_error *error)
{
    struct fgw_replay replay = {.dir = &storage->dir,
                                .opener = &storage->opener,
                                .found = found,
                                .apply = apply,
                                .progress = &storage->progress,
                                .skip_damaged = storage->options.skip_damaged};
    uint64_t start_ns = fgw_clock_boot_ns();
    enum fgw_err err = fgw_replay_log(&replay, error);
    if (err == FGW_ERR_CORRUPT && replay.index_ahead &&
        (storage->options.sync_off || storage->options.skip_damaged)) {
        err = replay_anew(storage, &replay, error);
    }
    if (err == FGW_OK) {
        report_replay(storage, &replay, start_ns);
        *position = replay.position;
    } else if (err == FGW_ERR_CORRUPT) {
        fgw_open_index_name_damage(storage, error);
    }
    return err;
}

static void note_last_group(struct fgw_storage *storage, const struct fgw_found_groups *found,
                            const struct fgw_apply *apply)
{
    storage->last_group = found->last_id > apply->last_group ? found->last_id : apply->last_group;
}

/* About how much a recovery would replay: bodies in the log are counted as well. */
static void note_log_bytes(struct fgw_storage *storage, const struct fgw_found_groups *found)
{
    const struct fgw_item_predecessor *position = &storage->checkpoint.newest.position;
    for (size_t i = 0; i < found->count; i++) {
        const struct fgw_found_group *group = &found->groups[i];
        if (group->is_log && group->id >= position->group) {
            uint64_t covered = group->id == position->group ? position->end : 0;
            storage->checkpoint.log_bytes += group->size > covered ? group->size - covered : 0;
        }
    }
}

/* The newest bulk group goes on behind its logged end. */
static void start_bulk(struct fgw_storage *storage, const struct fgw_found_groups *found)
{
    struct fgw_bulk_options options = {.dir = &storage->dir,
                                       .sealer = fgw_storage_sealer(storage),
                                       .last_group = &storage->last_group,
                                       .group_size = storage->options.group_size_bytes,
                                       .sync_off = storage->options.sync_off};
    for (size_t i = found->count; i > 0 && options.resume_id == 0; i--) {
        const struct fgw_found_group *group = &found->groups[i - 1];
        struct fgw_group_row row = {0};
        if (group->is_log || !group->readable) {
            continue;
        }
        enum fgw_err err = fgw_storage_group_row(storage, group->id, &row);
        if (err == FGW_OK || err == FGW_ERR_NOT_FOUND) {
            options.resume_id = group->id;
            options.resume_end = row.end > group->first_end ? row.end : group->first_end;
        }
    }
    storage->bulk = fgw_bulk_start(&options);
}

enum fgw_err fgw_storage_group_row(struct fgw_storage *storage, uint64_t group,
                                   struct fgw_group_row *out_row)
{
    struct fgw_row_key key = fgw_row_key_group(group);
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    enum fgw_err err =
        fgw_kv_get(storage->kv, FGW_KV_BLOCKS, fgw_row_key_bytes(&key), false, &value);
    if (err == FGW_OK) {
        err = fgw_group_row_decode(fgw_buf_bytes(&value), out_row);
    }
    fgw_buf_deinit(&value);
    return err;
}

static enum fgw_err start(struct fgw_storage *storage, struct fgw_apply *apply,
                          struct fgw_error *error)
{
    struct fgw_found_groups found = {0};
    struct fgw_committer_options options = {
        .storage = storage, .sealer = fgw_storage_sealer(storage), .apply = apply};
    enum fgw_err err = fgw_found_groups_read(&found, &storage->dir, &storage->opener, error);
    if (err == FGW_OK && storage->options.rebuild_index) {
        err = fgw_open_index_anew(storage, apply, "a rebuild was asked for", error);
    }
    if (err == FGW_OK) {
        err = replay(storage, &found, apply, &options.position, error);
    }
    if (err == FGW_OK) {
        err = fgw_release_find_orphans(storage);
    }
    if (err == FGW_OK) {
        storage->recovered.damaged_groups =
            fgw_found_groups_check(&found, &storage->dir, storage->kv);
        note_last_group(storage, &found, apply);
        note_log_bytes(storage, &found);
        storage->running_base_ms = apply->applied.running_ms;
        storage->opened_boot_ms = fgw_clock_boot_ms();
        fgw_sweep_load(storage);
        start_bulk(storage, &found);
        storage->log_group_at_open = options.position.group;
        if (storage->recovered.damages == 0) {
            fgw_compact_find_leftovers(storage, &found);
        }
        storage->committer = fgw_committer_start(&options);
    }
    fgw_found_groups_free(&found);
    return err;
}

static void set_defaults(struct fgw_storage_options *options)
{
    options->group_size_bytes =
        options->group_size_bytes == 0 ? GROUP_SIZE_DEFAULT : options->group_size_bytes;
    options->memory_bytes = options->memory_bytes == 0 ? MEMORY_DEFAULT : options->memory_bytes;
    const char *test = getenv("FGW_TEST_CHECKPOINT_BYTES");
    if (options->checkpoint_bytes == 0 && test != NULL) {
        options->checkpoint_bytes = strtoull(test, NULL, 10);
    }
    test = getenv("FGW_TEST_HOLD_AGE_MS");
    if (test != NULL && options->sweep_min_age_ms == 0 && options->pending_drop_ms == 0) {
        options->sweep_min_age_ms = strtoull(test, NULL, 10);
        options->pending_drop_ms = options->sweep_min_age_ms;
    }
    options->path = NULL; /* the caller's: dir.path from here on */
}

enum fgw_err fgw_storage_open(const struct fgw_storage_options *options,
                              struct fgw_storage **out_storage, struct fgw_error *error)
{
    struct fgw_storage *storage = fgw_xcalloc(1, sizeof *storage);
    struct fgw_apply *apply = fgw_xcalloc(1, sizeof *apply);
    storage->options = *options;
    set_defaults(&storage->options);
    storage->progress = (struct fgw_open_progress){options->progress, options->progress_context,
                                                   fgw_clock_boot_ms()};
    enum fgw_err err = fgw_datadir_open(&storage->dir, options->path, options->cluster_id, error);
    if (err != FGW_OK) {
        fgw_xfree(apply);
        fgw_xfree(storage);
        return err;
    }
    fgw_storage_limit_groups(storage);
    fgw_sessions_init(&storage->sessions);
    (void)pthread_mutex_init(&storage->groups_held.mutex, NULL);
    fgw_backup_init(&storage->backup);
    fgw_sweep_init(&storage->sweep);
    fgw_scrub_care_init(&storage->scrub);
    storage->care = fgw_care_new(storage);
    fgw_group_files_init(&storage->files, storage->dir.groups, IDLE_FILES_MAX);
    storage->pool = fgw_pool_new("disk", POOL_THREADS);
    if (storage->dir.fresh) {
        err = create(storage, error);
    }
    fgw_record_opener_init(&storage->opener, &storage->dir.keyring,
                           (const uint8_t(*)[FGW_RECORD_ID_SIZE])storage->dir.store_ids,
                           storage->dir.store_id_count);
    if (err == FGW_OK) {
        err = fgw_open_index(storage, apply, error);
    }
    if (err == FGW_OK) {
        err = start(storage, apply, error);
    }
    if (err != FGW_OK) {
        if (apply->kv != NULL) {
            fgw_apply_deinit(apply);
        }
        fgw_xfree(apply);
        fgw_storage_close(storage);
        return err;
    }
    if (storage->options.sync_off) {
        fgw_log_warn("storage", "FGW_SYNC=off: acknowledged writes can be lost in a power cut");
    }
    *out_storage = storage;
    return FGW_OK;
}

void fgw_storage_close(struct fgw_storage *storage)
{
    if (storage == NULL) {
        return;
    }
    fgw_storage_stop_care(storage);
    fgw_bulk_stop(storage->bulk);
    fgw_committer_stop(storage->committer);
    fgw_care_free(storage->care);
    fgw_kv_close(storage->kv);
    fgw_pool_free(storage->pool);
    fgw_group_files_deinit(&storage->files);
    fgw_sessions_deinit(&storage->sessions);
    fgw_release_deinit(&storage->release);
    (void)pthread_mutex_destroy(&storage->groups_held.mutex);
    fgw_backup_deinit(&storage->backup);
    fgw_sweep_deinit(&storage->sweep);
    fgw_scrub_care_deinit(&storage->scrub);
    fgw_compact_deinit(&storage->compact);
    fgw_datadir_close(&storage->dir);
    fgw_xfree(storage);
}

struct fgw_storage_recovery fgw_storage_recovered(const struct fgw_storage *storage)
{
    return storage->recovered;
}

const uint8_t *fgw_storage_id(const struct fgw_storage *storage)
{
    return storage->dir.store_ids[0];
}

const uint8_t *fgw_storage_cluster_id(const struct fgw_storage *storage)
{
    return storage->dir.cluster_id;
}

enum fgw_err fgw_storage_peek_cluster_id(const char *path,
                                         uint8_t out_cluster_id[FGW_STORAGE_ID_SIZE],
                                         struct fgw_error *error)
{
    return fgw_datadir_peek(path, out_cluster_id, error);
}

enum fgw_err fgw_storage_join(struct fgw_storage *storage,
                              const uint8_t cluster_id[FGW_STORAGE_ID_SIZE],
                              struct fgw_error *error)
{
    uint8_t before[FGW_RECORD_ID_SIZE];
    memcpy(before, storage->dir.cluster_id, sizeof before);
    memcpy(storage->dir.cluster_id, cluster_id, sizeof storage->dir.cluster_id);
    enum fgw_err err = fgw_datadir_commit(&storage->dir, error);
    if (err != FGW_OK) {
        memcpy(storage->dir.cluster_id, before, sizeof before);
    }
    return err;
}

void fgw_storage_derive_key(const struct fgw_storage *storage, const char *label, uint8_t out[32])
{
    struct fgw_buf info;
    fgw_buf_init(&info, 0);
    (void)fgw_buf_appendf(&info, "fgw derive: %s", label);
    fgw_hkdf_sha256(fgw_bytes(storage->dir.keyring.keys[0].bytes, FGW_AEAD_KEY_SIZE),
                    fgw_bytes(NULL, 0), fgw_buf_bytes(&info), out, 32);
    fgw_buf_deinit(&info);
}

uint64_t fgw_storage_running_ms(const struct fgw_storage *storage)
{
    return storage->running_base_ms + fgw_clock_boot_ms() - storage->opened_boot_ms;
}

struct fgw_kv *fgw_storage_kv(struct fgw_storage *storage)
{
    return storage->kv;
}

struct fgw_pool *fgw_storage_pool(struct fgw_storage *storage)
{
    return storage->pool;
}

/* -- committing --------------------------------------------------------------------------------- */

struct read_missed {
    struct fgw_kv *kv;
    struct fgw_request *request;
};

static void run_read_missed(void *arg)
{
    struct read_missed *job = arg;
    fgw_missed_read(job->kv, job->request);
}

enum fgw_err fgw_storage_commit(struct fgw_storage *storage, struct fgw_storage_op *op)
{
    struct fgw_request request = {.op = op, .loop = fgw_loop_current()};
    for (size_t i = 0; i < op->hold_count; i++) {
        fgw_sweep_note_taken(storage, op->holds[i].owner->owner_id);
    }
    if (!op->frees_space && atomic_load(&storage->space.below_reserve)) {
        fgw_storage_check_space(storage, false);
        if (atomic_load(&storage->space.below_reserve)) {
            return FGW_ERR_NOSPACE;
        }
    }
    for (;;) {
        fgw_wait_init(&request.wait, 1);
        fgw_committer_push(storage->committer, &request);
        fgw_wait_for(&request.wait);
        if (request.result != FGW_ERR_AGAIN || request.missed == NULL) {
            break;
        }
        struct read_missed job = {storage->kv, &request};
        fgw_pool_run(storage->pool, run_read_missed, &job);
    }
    fgw_missed_free(&request);
    return request.result;
}

static enum fgw_err evaluate_items(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    return fgw_buf_append(fgw_txn_items(txn), fgw_buf_bytes(op->context));
}

enum fgw_err fgw_storage_commit_items(struct fgw_storage *storage, const char *name,
                                      struct fgw_buf *items)
{
    struct fgw_storage_op op = {
        .name = name, .evaluate = evaluate_items, .context = items, .frees_space = true};
    return fgw_storage_commit(storage, &op);
}

void fgw_storage_mark_bad(struct fgw_storage *storage, const uint8_t digest[FGW_SHA256_SIZE],
                          uint64_t group, uint64_t offset)
{
    struct fgw_buf items;
    fgw_buf_init(&items, 0);
    fgw_item_put_mark_bad(&items, digest, group, offset);
    (void)!fgw_storage_commit_items(storage, "bad", &items);
    fgw_buf_deinit(&items);
}

/* -- care --------------------------------------------------------------------------------------- */

void fgw_storage_start_care(struct fgw_storage *storage, fgw_storage_live_fn *live, void *context)
{
    fgw_care_start(storage->care, live, context);
}

void fgw_storage_stop_care(struct fgw_storage *storage)
{
    fgw_care_stop(storage->care);
}

void fgw_storage_release_hint(struct fgw_storage *storage, const struct fgw_storage_owner *owner,
                              uint64_t extent, const struct fgw_cid *root)
{
    if (fgw_care_running(storage->care)) {
        fgw_care_hint(storage->care, owner, extent, root);
    }
}

void fgw_storage_stats(struct fgw_storage *storage, struct fgw_storage_stats *out_stats)
{
    struct fgw_committer_stats committer;
    struct fgw_kv_stats kv;
    fgw_committer_stats(storage->committer, &committer);
    fgw_kv_stats(storage->kv, &kv);
    if (!fgw_care_running(storage->care)) {
        fgw_figures_refresh(storage);
    }
    *out_stats = (struct fgw_storage_stats){
        .batches = committer.batches,
        .operations = committer.operations,
        .syncs = committer.syncs,
        .sync_ns_total = committer.sync_ns_total,
        .applied_batch = committer.applied_batch,
        .last_batch = committer.last_batch,
        .pending_holds = atomic_load(&storage->pending.count),
        .groups = atomic_load(&storage->figures.groups),
        .log_bytes = atomic_load(&storage->figures.log_bytes) + committer.log_end,
        .bulk_bytes = atomic_load(&storage->figures.bulk_bytes),
        .live_bytes = atomic_load(&storage->figures.live_bytes),
        .dead_bytes = atomic_load(&storage->figures.dead_bytes),
        .blocks = atomic_load(&storage->figures.blocks),
        .cache_bytes = kv.cache_used_bytes,
        .checkpoint_batch = atomic_load(&storage->checkpoint.verified_batch),
        .free_bytes = atomic_load(&storage->space.free_bytes),
        .total_bytes = atomic_load(&storage->space.total_bytes),
        .moved_blocks = atomic_load(&storage->compact.figures.moved_blocks),
        .moved_bytes = atomic_load(&storage->compact.figures.moved_bytes),
        .groups_unlinked = atomic_load(&storage->compact.figures.groups),
        .bytes_unlinked = atomic_load(&storage->compact.figures.bytes),
        .groups_waiting = atomic_load(&storage->compact.figures.waiting_groups),
        .bytes_waiting = atomic_load(&storage->compact.figures.waiting_bytes),
        .spared_bytes = atomic_load(&storage->figures.spared_bytes),
        .read_only = committer.read_only,
        .below_reserve = atomic_load(&storage->space.below_reserve)};
}
