/* checkpoint.c: when a checkpoint is written, and what follows: it is read back, older ones go. In
 * fibers; the file work runs on the pool, in steps, so that it can be ended and keeps its rate. One
 * at a time (storage->checkpoint.busy). See checkpoint.h for the files. */
#include "storage/checkpoint.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "storage/storage_internal.h"

enum {
    STEP_BYTES = 4 * 1024 * 1024,
    STEP_ROWS = 20000,
    SPARE_BYTES = 16 * 1024 * 1024, /* at most: left to log and index whatever happens */
    POLL_MS = 10
};
static const uint64_t RECORD_BYTES = 256u * 1024 * 1024;
static const uint64_t CARE_BYTES_PER_S = 64u * 1024 * 1024;

/* -- what must not be unlinked now --------------------------------------------------------------- */

bool fgw_storage_begin_unlink(struct fgw_storage *storage)
{
    (void)pthread_mutex_lock(&storage->groups_held.mutex);
    bool allowed = storage->groups_held.holders == 0;
    storage->groups_held.unlinking += allowed ? 1 : 0;
    (void)pthread_mutex_unlock(&storage->groups_held.mutex);
    return allowed;
}

void fgw_storage_end_unlink(struct fgw_storage *storage)
{
    (void)pthread_mutex_lock(&storage->groups_held.mutex);
    storage->groups_held.unlinking--;
    (void)pthread_mutex_unlock(&storage->groups_held.mutex);
}

static bool unlinking(struct fgw_storage *storage)
{
    (void)pthread_mutex_lock(&storage->groups_held.mutex);
    bool now = storage->groups_held.unlinking > 0;
    (void)pthread_mutex_unlock(&storage->groups_held.mutex);
    return now;
}

void fgw_storage_hold_groups(struct fgw_storage *storage)
{
    (void)pthread_mutex_lock(&storage->groups_held.mutex);
    storage->groups_held.holders++;
    (void)pthread_mutex_unlock(&storage->groups_held.mutex);
    while (unlinking(storage)) {
        fgw_fiber_sleep_ms(POLL_MS);
    }
}

void fgw_storage_release_groups(struct fgw_storage *storage)
{
    (void)pthread_mutex_lock(&storage->groups_held.mutex);
    FGW_CHECK(storage->groups_held.holders > 0);
    storage->groups_held.holders--;
    (void)pthread_mutex_unlock(&storage->groups_held.mutex);
}

/* -- steps on the pool --------------------------------------------------------------------------- */

/* One checkpoint on its way. */
struct task {
    struct fgw_storage *storage;
    bool by_care; /* ends when care does */
    bool paced;   /* keeps to a rate */
    struct fgw_checkpoint_writer *writer;
    struct fgw_checkpoint_reader *reader;
    struct fgw_record_opener opener;
    struct fgw_checkpoint_info info;
    struct fgw_checkpoint_info previous; /* the one to keep besides */
    struct fgw_checkpoint_list found;    /* by opening */
    bool done;
    enum fgw_err result;
};

static void run_begin(void *arg)
{
    struct task *task = arg;
    struct fgw_storage *storage = task->storage;
    struct fgw_checkpoint_writer_options options = {.dir = &storage->dir,
                                                    .kv = storage->kv,
                                                    .sealer = fgw_storage_sealer(storage),
                                                    .id = ++storage->checkpoint.last_id};
    task->result = fgw_checkpoint_writer_new(&options, &task->writer);
    storage->checkpoint.last_id -= task->result == FGW_OK ? 0 : 1;
}

/* Below this the log and the index would be in danger, not the checkpoint alone. */
static bool room_left(const struct fgw_storage *storage)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    return fgw_fs_space(storage->dir.root, &free_bytes, &total_bytes) == FGW_OK &&
           free_bytes >= fgw_storage_reserve_part(storage, SPARE_BYTES) + STEP_BYTES;
}

static void run_step(void *arg)
{
    struct task *task = arg;
    task->result = room_left(task->storage)
                       ? fgw_checkpoint_writer_step(task->writer, STEP_BYTES, &task->done)
                       : FGW_ERR_NOSPACE;
}

/* What was never synced may be lost in a power cut: not behind the back of a checkpoint. */
static enum fgw_err sync_groups(const struct fgw_storage *storage)
{
    int copy = openat(storage->dir.groups, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = copy < 0 ? NULL : fdopendir(copy);
    enum fgw_err err = names == NULL ? FGW_ERR_IO : FGW_OK;
    struct dirent *entry;
    while (err == FGW_OK && (entry = readdir(names)) != NULL) {
        uint64_t id;
        int fd = fgw_group_name_parse(entry->d_name, &id)
                     ? openat(storage->dir.groups, entry->d_name, O_RDONLY | O_CLOEXEC)
                     : -1;
        if (fd >= 0) {
            err = fgw_fs_fdatasync(fd);
            (void)close(fd);
        }
    }
    if (names != NULL) {
        (void)closedir(names);
    }
    return err;
}

static void run_finish(void *arg)
{
    struct task *task = arg;
    task->result = task->storage->options.sync_off ? sync_groups(task->storage) : FGW_OK;
    if (task->result == FGW_OK) {
        task->result = fgw_checkpoint_writer_finish(task->writer, &task->info);
    }
}

static void run_free_writer(void *arg)
{
    struct task *task = arg;
    fgw_checkpoint_writer_free(task->writer);
    task->writer = NULL;
}

static void run_open_reader(void *arg)
{
    struct task *task = arg;
    struct fgw_storage *storage = task->storage;
    fgw_record_opener_init(&task->opener, &storage->dir.keyring,
                           (const uint8_t(*)[FGW_RECORD_ID_SIZE])storage->dir.store_ids,
                           storage->dir.store_id_count);
    task->result = fgw_checkpoint_reader_open(&storage->dir, task->info.id, &task->opener, true,
                                              &task->reader);
}

static void run_read(void *arg)
{
    struct task *task = arg;
    struct fgw_checkpoint_row row;
    task->result = FGW_OK;
    for (int i = 0; i < STEP_ROWS && task->result == FGW_OK; i++) {
        task->result = fgw_checkpoint_reader_next(task->reader, &row);
    }
    task->done = task->result == FGW_ERR_END;
    task->result = task->done ? FGW_OK : task->result;
}

static void run_remove_old(void *arg)
{
    struct task *task = arg;
    struct fgw_datadir *dir = &task->storage->dir;
    struct fgw_checkpoint_list list;
    bool removed = false;
    if (fgw_checkpoint_list_read(&list, dir) != FGW_OK) {
        return;
    }
    for (size_t i = 0; i < list.count; i++) {
        char name[FGW_GROUP_NAME_SIZE];
        fgw_group_name(list.ids[i], name);
        if (list.ids[i] != task->info.id && list.ids[i] != task->previous.id) {
            removed = fgw_fs_unlink(dir->checkpoints, name) == FGW_OK || removed;
        }
    }
    if (removed) {
        (void)!fgw_fs_fsync_dir(dir->checkpoints); /* what comes back is removed the next time */
    }
    fgw_checkpoint_list_free(&list);
}

/* -- one checkpoint ------------------------------------------------------------------------------ */

static enum fgw_err on_pool(struct task *task, void (*fn)(void *arg))
{
    if (task->by_care && fgw_care_stopping(task->storage->care)) {
        return FGW_ERR_CANCELLED;
    }
    task->result = FGW_OK;
    fgw_pool_run(task->storage->pool, fn, task);
    return task->result;
}

/* `bytes` so far take at least this long. */
static void keep_rate(const struct task *task, uint64_t bytes, uint64_t start_ms)
{
    uint64_t due_ms = bytes * 1000 / CARE_BYTES_PER_S;
    uint64_t passed_ms = fgw_clock_boot_ms() - start_ms;
    if (task->paced && due_ms > passed_ms) {
        fgw_fiber_sleep_ms(due_ms - passed_ms);
    }
}

static enum fgw_err write_file(struct task *task)
{
    uint64_t start_ms = fgw_clock_boot_ms();
    uint64_t bytes = 0;
    enum fgw_err err = on_pool(task, run_begin);
    task->done = false;
    while (err == FGW_OK && !task->done) {
        err = on_pool(task, run_step);
        bytes += STEP_BYTES;
        keep_rate(task, task->done ? 0 : bytes, start_ms);
    }
    if (err == FGW_OK) {
        err = on_pool(task, run_finish);
    }
    fgw_pool_run(task->storage->pool, run_free_writer, task);
    return err;
}

static enum fgw_err read_back(struct task *task)
{
    uint64_t start_ms = fgw_clock_boot_ms();
    enum fgw_err err = on_pool(task, run_open_reader);
    task->done = false;
    while (err == FGW_OK && !task->done) {
        err = on_pool(task, run_read);
        keep_rate(task, fgw_checkpoint_reader_offset(task->reader), start_ms);
    }
    if (err == FGW_OK) {
        task->info = *fgw_checkpoint_reader_info(task->reader);
    } else if (err != FGW_ERR_CANCELLED) {
        fgw_log_error("storage", "checkpoint %llu cannot be read back at offset %llu: %s",
                      (unsigned long long)task->info.id,
                      (unsigned long long)(task->reader == NULL
                                               ? 0
                                               : fgw_checkpoint_reader_offset(task->reader)),
                      fgw_err_text(err));
    }
    fgw_checkpoint_reader_close(task->reader);
    task->reader = NULL;
    return err;
}

/* Both were read back; the older one may be none. What is removed lies below both of them: either
 * may be lost together with the index. */
static void note_verified(struct fgw_storage *storage, const struct fgw_checkpoint_info *newest,
                          const struct fgw_checkpoint_info *older)
{
    atomic_store(&storage->checkpoint.verified_batch, newest->position.last_batch);
    atomic_store(&storage->checkpoint.covered_batch, older->position.last_batch);
}

static void remove_old(struct task *task)
{
    if (fgw_storage_begin_unlink(task->storage)) {
        fgw_pool_run(task->storage->pool, run_remove_old, task);
        fgw_storage_end_unlink(task->storage);
    }
}

static void begin_busy(struct fgw_storage *storage)
{
    while (atomic_exchange(&storage->checkpoint.busy, true)) {
        fgw_fiber_sleep_ms(POLL_MS);
    }
}

static void say(const struct task *task, uint64_t start_ms)
{
    fgw_log_info("storage", "checkpoint %llu written batch=%llu rows=%llu bytes=%llu ms=%llu",
                 (unsigned long long)task->info.id,
                 (unsigned long long)task->info.position.last_batch,
                 (unsigned long long)task->info.rows, (unsigned long long)task->info.size_bytes,
                 (unsigned long long)(fgw_clock_boot_ms() - start_ms));
}

/* Reads those that opening found, newest first, until two are whole. One that cannot be read is as
 * good as none. */
static enum fgw_err verify_all(struct task *task, const struct fgw_checkpoint_list *list)
{
    struct fgw_checkpoint_info whole[2] = {{0}, {0}};
    size_t count = 0;
    for (size_t i = 0; i < list->count && count < FGW_COUNT_OF(whole); i++) {
        task->info = (struct fgw_checkpoint_info){.id = list->ids[i]};
        enum fgw_err err = read_back(task);
        if (err == FGW_ERR_CANCELLED) {
            return err;
        }
        if (err == FGW_OK) {
            whole[count++] = task->info;
        } else {
            task->storage->checkpoint.damaged_id = list->ids[i];
        }
    }
    task->storage->checkpoint.newest = whole[0];
    note_verified(task->storage, &whole[0], &whole[1]);
    return FGW_OK;
}

static void run_list(void *arg)
{
    struct task *task = arg;
    task->result = fgw_checkpoint_list_read(&task->found, &task->storage->dir);
}

/* Busy. Once: what the process writes itself is read back at once. */
static enum fgw_err verify_found(struct task *task)
{
    struct fgw_storage *storage = task->storage;
    if (storage->checkpoint.found_verified) {
        return FGW_OK;
    }
    enum fgw_err err = on_pool(task, run_list);
    if (err != FGW_OK) {
        return err;
    }
    err = verify_all(task, &task->found);
    fgw_checkpoint_list_free(&task->found);
    storage->checkpoint.found_verified = err == FGW_OK;
    return err;
}

static void accept(struct task *task, uint64_t start_ms)
{
    struct fgw_storage *storage = task->storage;
    storage->checkpoint.damaged_id = 0;
    note_verified(storage, &task->info, &task->previous);
    say(task, start_ms);
    remove_old(task);
    atomic_store(&storage->checkpoint.wanted, false); /* asked for again if it was not enough */
}

/* Busy. */
static enum fgw_err make_checkpoint(struct task *task)
{
    struct fgw_storage *storage = task->storage;
    struct fgw_committer_stats committer;
    uint64_t start_ms = fgw_clock_boot_ms();
    enum fgw_err err = verify_found(task);
    fgw_committer_stats(storage->committer, &committer);
    if (err == FGW_OK) {
        err = write_file(task);
    }
    if (err != FGW_OK) {
        return err;
    }
    task->previous = storage->checkpoint.newest;
    storage->checkpoint.newest = task->info;
    storage->checkpoint.record_bytes = committer.record_bytes;
    storage->checkpoint.log_bytes = 0;
    err = read_back(task);
    if (err == FGW_OK) {
        accept(task, start_ms);
    } else if (err != FGW_ERR_CANCELLED) {
        storage->checkpoint.damaged_id = task->info.id;
        storage->checkpoint.newest = task->previous;
    }
    return err;
}

static enum fgw_err commit_nothing(struct fgw_storage *storage)
{
    struct fgw_buf items;
    fgw_buf_init(&items, 0);
    enum fgw_err err = fgw_storage_commit_items(storage, "checkpoint", &items);
    fgw_buf_deinit(&items);
    return err;
}

enum fgw_err fgw_storage_checkpoint(struct fgw_storage *storage,
                                    struct fgw_storage_checkpoint *out_checkpoint)
{
    return fgw_checkpoint_write(storage, false, out_checkpoint);
}

enum fgw_err fgw_checkpoint_write(struct fgw_storage *storage, bool by_care,
                                  struct fgw_storage_checkpoint *out_checkpoint)
{
    struct task task = {.storage = storage, .by_care = by_care};
    begin_busy(storage);
    enum fgw_err err = make_checkpoint(&task);
    if (err == FGW_ERR_NOT_FOUND) { /* no batch yet: there is no place in the log to name */
        err = commit_nothing(storage);
        err = err == FGW_OK ? make_checkpoint(&task) : err;
    }
    atomic_store(&storage->checkpoint.busy, false);
    if (err == FGW_OK && out_checkpoint != NULL) {
        *out_checkpoint = (struct fgw_storage_checkpoint){.id = task.info.id,
                                                          .batch = task.info.position.last_batch,
                                                          .rows = task.info.rows,
                                                          .bytes = task.info.size_bytes};
    }
    return err;
}

/* -- care ---------------------------------------------------------------------------------------- */

static bool is_due(struct fgw_storage *storage)
{
    struct fgw_committer_stats committer;
    struct fgw_kv_stats kv;
    fgw_committer_stats(storage->committer, &committer);
    fgw_kv_stats(storage->kv, &kv);
    uint64_t least =
        storage->options.checkpoint_bytes == 0 ? RECORD_BYTES : storage->options.checkpoint_bytes;
    uint64_t metadata = storage->checkpoint.newest.size_bytes > kv.live_table_bytes
                            ? storage->checkpoint.newest.size_bytes
                            : kv.live_table_bytes;
    uint64_t behind =
        storage->checkpoint.log_bytes + committer.record_bytes - storage->checkpoint.record_bytes;
    bool wanted = atomic_exchange(&storage->checkpoint.wanted, false);
    return wanted || storage->checkpoint.damaged_id != 0 ||
           behind > (metadata / 2 > least ? metadata / 2 : least);
}

static enum fgw_err make_due(struct task *task)
{
    enum fgw_err err = make_checkpoint(task);
    err = err == FGW_ERR_NOT_FOUND ? FGW_OK : err; /* nothing to write yet */
    if (err != FGW_OK && err != FGW_ERR_CANCELLED) {
        fgw_log_error("storage", "no checkpoint could be written: %s", fgw_err_text(err));
    }
    return err;
}

enum fgw_err fgw_checkpoint_care(struct fgw_storage *storage)
{
    struct task task = {.storage = storage, .by_care = true, .paced = true};
    if (atomic_exchange(&storage->checkpoint.busy, true)) {
        return FGW_OK;
    }
    enum fgw_err err = verify_found(&task);
    if (err == FGW_OK && is_due(storage)) {
        err = make_due(&task);
    }
    atomic_store(&storage->checkpoint.busy, false);
    return err;
}
