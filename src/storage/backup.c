/* backup.c: fgw_storage_backup: a checkpoint, then everything it counts on, copied while nothing is
 * unlinked. Runs in one fiber, the file work on the pool; what it says of itself is read by others
 * under the lock of storage->backup. Crash argument: BACKUP is written last; without it the target
 * is an unfinished backup, which the next call takes up again.
 */
#include "storage/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/fs.h"
#include "base/log.h"
#include "storage/backup_files.h"
#include "storage/storage_internal.h"

static const char PARTIAL[] = "BACKUP.partial";
enum { PARTIAL_MAX = 4096 };

struct task {
    struct fgw_storage *storage;
    const char *to;
    bool by_care;
    struct fgw_backup_place from;
    struct fgw_backup_place target;
    struct fgw_backup_list list;
    struct fgw_storage_checkpoint checkpoint;
    size_t at; /* file under way */
    struct fgw_backup_copy *copy;
    uint64_t bytes; /* of the last step */
    uint64_t damaged;
    struct fgw_error error;
    enum fgw_err result;
};

/* -- what it says of itself ---------------------------------------------------------------------- */

void fgw_backup_init(struct fgw_backup_state *state)
{
    (void)pthread_mutex_init(&state->mutex, NULL);
}

void fgw_backup_deinit(struct fgw_backup_state *state)
{
    (void)pthread_mutex_destroy(&state->mutex);
}

void fgw_storage_backup_status(struct fgw_storage *storage,
                               struct fgw_storage_backup_status *out_status)
{
    (void)pthread_mutex_lock(&storage->backup.mutex);
    *out_status = storage->backup.status;
    (void)pthread_mutex_unlock(&storage->backup.mutex);
}

static void note_plan(struct task *task)
{
    struct fgw_backup_state *state = &task->storage->backup;
    uint64_t total = 0;
    for (size_t i = 0; i < task->list.count; i++) {
        total += task->list.files[i].size == UINT64_MAX ? 0 : task->list.files[i].size;
    }
    (void)pthread_mutex_lock(&state->mutex);
    state->status.files_total = task->list.count;
    state->status.bytes_total = total;
    state->status.batch = task->checkpoint.batch;
    (void)pthread_mutex_unlock(&state->mutex);
}

static void note_progress(struct task *task, bool file_done)
{
    struct fgw_backup_state *state = &task->storage->backup;
    (void)pthread_mutex_lock(&state->mutex);
    state->status.bytes += task->bytes;
    state->status.files += file_done ? 1 : 0;
    state->status.damaged = task->damaged;
    (void)pthread_mutex_unlock(&state->mutex);
}

static bool begin_state(struct fgw_storage *storage, const char *to)
{
    struct fgw_backup_state *state = &storage->backup;
    (void)pthread_mutex_lock(&state->mutex);
    bool free_now =
        state->status.state != FGW_STORAGE_BACKUP_RUNNING && strlen(to) < sizeof state->status.to;
    if (free_now) {
        state->status = (struct fgw_storage_backup_status){.state = FGW_STORAGE_BACKUP_RUNNING};
        (void)snprintf(state->status.to, sizeof state->status.to, "%s", to);
    }
    (void)pthread_mutex_unlock(&state->mutex);
    return free_now;
}

static void end_state(struct task *task, enum fgw_err err)
{
    struct fgw_backup_state *state = &task->storage->backup;
    (void)pthread_mutex_lock(&state->mutex);
    state->status.state = err == FGW_OK ? FGW_STORAGE_BACKUP_DONE : FGW_STORAGE_BACKUP_FAILED;
    state->status.result = err;
    (void)snprintf(state->status.message, sizeof state->status.message, "%s",
                   err == FGW_OK ? "" : fgw_error_message(&task->error));
    (void)pthread_mutex_unlock(&state->mutex);
    if (err == FGW_OK) {
        fgw_log_info("storage", "backup written to %s batch=%llu files=%zu", task->to,
                     (unsigned long long)task->checkpoint.batch, task->list.count);
    } else {
        fgw_log_error("storage", "the backup to %s ended: %s", task->to,
                      fgw_error_message(&task->error));
    }
}

/* -- the target ---------------------------------------------------------------------------------- */

static enum fgw_err fail(struct task *task, enum fgw_err err, const char *what)
{
    return fgw_error_set(&task->error, err, "%s %s: %s", what, task->to,
                         errno != 0 ? strerror(errno) : fgw_err_text(err));
}

static void partial_text(const struct task *task, char out[64])
{
    char hex[2 * FGW_RECORD_ID_SIZE];
    fgw_hex_encode(fgw_bytes(task->storage->dir.store_ids[0], FGW_RECORD_ID_SIZE), hex);
    (void)snprintf(out, 64, "store %.*s\n", (int)sizeof hex, hex);
}

static enum fgw_err note_entry(void *context, int dir_fd, const char *name)
{
    bool *empty = context;
    (void)dir_fd;
    *empty = *empty && strcmp(name, "lost+found") == 0;
    return FGW_OK;
}

/* Empty, or an unfinished backup of this store. */
static enum fgw_err check_target(struct task *task)
{
    char want[64];
    struct fgw_buf found;
    bool empty = true;
    partial_text(task, want);
    fgw_buf_init(&found, PARTIAL_MAX);
    enum fgw_err err = fgw_fs_read_file(task->target.root, PARTIAL, &found);
    bool ours = err == FGW_OK && fgw_bytes_eq_str(fgw_buf_bytes(&found), want) &&
                faccessat(task->target.root, "BACKUP", F_OK, 0) != 0;
    fgw_buf_deinit(&found);
    if (ours) {
        return FGW_OK;
    }
    err = fgw_backup_each_entry(task->target.root, note_entry, &empty);
    if (err != FGW_OK) {
        return fail(task, err, "cannot list");
    }
    return empty ? FGW_OK
                 : fgw_error_set(&task->error, FGW_ERR_EXISTS,
                                 "%s is not empty and no unfinished backup of this store: name "
                                 "another directory",
                                 task->to);
}

static enum fgw_err sync_parent(struct task *task)
{
    int parent = openat(task->target.root, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum fgw_err err = parent < 0 ? FGW_ERR_IO : fgw_fs_fsync_dir(parent);
    if (parent >= 0) {
        (void)close(parent);
    }
    return err;
}

static enum fgw_err open_target(struct task *task)
{
    errno = 0;
    if (mkdir(task->to, 0700) != 0 && errno != EEXIST) {
        return fail(task, fgw_err_from_errno(errno), "cannot make");
    }
    task->target.root = open(task->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return task->target.root < 0 ? fail(task, fgw_err_from_errno(errno), "cannot open")
                                 : check_target(task);
}

static enum fgw_err make_folders(struct task *task)
{
    static const char *const FOLDERS[] = {"groups", "checkpoints"};
    char text[64];
    partial_text(task, text);
    enum fgw_err err = fgw_backup_open_sub(task->target.root, "tmp", &task->target.tmp);
    if (err == FGW_OK) {
        err = fgw_fs_create_durable(task->target.tmp, task->target.root, PARTIAL,
                                    fgw_bytes_str(text), 0600, NULL);
    }
    for (size_t i = 0; i < 2 && err == FGW_OK; i++) {
        int fd = -1;
        err = fgw_backup_open_sub(task->target.root, FOLDERS[i], &fd);
        if (err == FGW_OK) {
            (void)close(fd);
        }
    }
    if (err == FGW_OK) {
        err = sync_parent(task);
    }
    return err == FGW_OK ? err : fail(task, err, "cannot write to");
}

static void run_open_target(void *arg)
{
    struct task *task = arg;
    task->result = open_target(task);
    if (task->result == FGW_OK) {
        task->result = make_folders(task);
    }
}

/* -- what to copy -------------------------------------------------------------------------------- */

/* A group row of the checkpoint. */
static enum fgw_err plan_group(struct task *task, const struct fgw_checkpoint_row *row,
                               const struct fgw_item_predecessor *position)
{
    char name[FGW_GROUP_NAME_SIZE];
    char path[FGW_BACKUP_NAME_SIZE];
    struct fgw_group_row group;
    uint64_t id = fgw_get_u64be(row->key.ptr + 1);
    enum fgw_err err = fgw_group_row_decode(row->value, &group);
    if (err != FGW_OK || id == position->group) {
        return err;
    }
    fgw_group_name(id, name);
    (void)snprintf(path, sizeof path, "groups/%s", name);
    if (group.live_blocks > 0 || faccessat(task->storage->dir.root, path, F_OK, 0) == 0) {
        fgw_backup_list_add(&task->list, path, group.end == 0 ? UINT64_MAX : group.end);
    }
    return FGW_OK;
}

static enum fgw_err plan_groups(struct task *task, struct fgw_checkpoint_reader *reader,
                                const struct fgw_item_predecessor *position)
{
    struct fgw_checkpoint_row row;
    enum fgw_err err;
    while ((err = fgw_checkpoint_reader_next(reader, &row)) == FGW_OK) {
        bool is_group = row.family == FGW_KV_BLOCKS && row.key.len == 9 && row.key.ptr[0] == 'g';
        err = is_group ? plan_group(task, &row, position) : FGW_OK;
        if (err != FGW_OK) {
            return err;
        }
    }
    return err == FGW_ERR_END ? FGW_OK : err;
}

/* The group the log stands in goes with the checkpoint, whatever its row says. */
static enum fgw_err plan(struct task *task)
{
    const struct fgw_datadir *dir = &task->storage->dir;
    char name[FGW_GROUP_NAME_SIZE];
    char path[FGW_BACKUP_NAME_SIZE];
    struct fgw_record_opener opener;
    struct fgw_checkpoint_info info;
    struct fgw_checkpoint_reader *reader = NULL;
    fgw_record_opener_init(&opener, &dir->keyring,
                           (const uint8_t(*)[FGW_RECORD_ID_SIZE])dir->store_ids,
                           dir->store_id_count);
    fgw_group_name(task->checkpoint.id, name);
    (void)snprintf(path, sizeof path, "checkpoints/%s", name);
    fgw_backup_list_add(&task->list, path, UINT64_MAX);
    enum fgw_err err = fgw_checkpoint_peek(dir, task->checkpoint.id, &opener, &info);
    if (err == FGW_OK) {
        fgw_group_name(info.position.group, name);
        (void)snprintf(path, sizeof path, "groups/%s", name);
        fgw_backup_list_add(&task->list, path, info.position.end);
        err = fgw_checkpoint_reader_open(dir, task->checkpoint.id, &opener, false, &reader);
    }
    if (err == FGW_OK) {
        err = plan_groups(task, reader, &info.position);
    }
    fgw_checkpoint_reader_close(reader);
    return err == FGW_OK ? err
                         : fgw_error_set(&task->error, err, "the checkpoint cannot be read: %s",
                                         fgw_err_text(err));
}

static void add_head_files(struct task *task)
{
    static const char *const NAMES[] = {"keys", "credentials", "FORMAT"};
    for (size_t i = 0; i < 3; i++) {
        if (faccessat(task->storage->dir.root, NAMES[i], F_OK, 0) == 0) {
            fgw_backup_list_add(&task->list, NAMES[i], UINT64_MAX);
        }
    }
}

struct removal {
    struct task *task;
    const char *folder;
};

static enum fgw_err remove_unlisted(void *context, int dir_fd, const char *name)
{
    const struct removal *removal = context;
    char path[2 * FGW_BACKUP_NAME_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", removal->folder, name);
    return fgw_backup_list_find(&removal->task->list, path) != NULL ? FGW_OK
                                                                    : fgw_fs_unlink(dir_fd, name);
}

/* What an earlier attempt copied and this one does not need. */
static enum fgw_err clean_target(struct task *task)
{
    static const char *const FOLDERS[] = {"groups", "checkpoints"};
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < 2 && err == FGW_OK; i++) {
        struct removal removal = {task, FOLDERS[i]};
        int fd = openat(task->target.root, FOLDERS[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        err = fd < 0 ? FGW_ERR_IO : fgw_backup_each_entry(fd, remove_unlisted, &removal);
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    return err == FGW_OK ? err : fail(task, err, "cannot clean");
}

static void run_plan(void *arg)
{
    struct task *task = arg;
    errno = 0;
    task->result = plan(task);
    if (task->result == FGW_OK) {
        add_head_files(task);
        task->result = clean_target(task);
    }
}

/* -- copying ------------------------------------------------------------------------------------- */

static void drop_file(struct task *task)
{
    task->list.count--;
    memmove(&task->list.files[task->at], &task->list.files[task->at + 1],
            (task->list.count - task->at) * sizeof *task->list.files);
}

/* A group that is damaged is copied as it is: its other blocks are worth as much as ever. */
static enum fgw_err copy_damaged(struct task *task, enum fgw_err err)
{
    struct fgw_backup_file *file = &task->list.files[task->at];
    fgw_log_error("storage", "backup: %s is %s: run `fgw scrub`", file->name,
                  err == FGW_ERR_END ? "shorter than it should be" : "missing");
    task->damaged++;
    if (err == FGW_ERR_NOT_FOUND) {
        drop_file(task);
        return FGW_ERR_END;
    }
    file->size = UINT64_MAX;
    return fgw_backup_copy_begin(&task->from, &task->target, file, &task->copy);
}

/* FGW_ERR_END: on to the next file. */
static void run_begin_file(void *arg)
{
    struct task *task = arg;
    const struct fgw_backup_file *file = &task->list.files[task->at];
    errno = 0;
    task->result = fgw_backup_copy_begin(&task->from, &task->target, file, &task->copy);
    bool is_group = strncmp(file->name, "groups/", 7) == 0;
    if (is_group && (task->result == FGW_ERR_NOT_FOUND || task->result == FGW_ERR_END)) {
        task->result = copy_damaged(task, task->result);
    }
}

static void run_step(void *arg)
{
    struct task *task = arg;
    errno = 0;
    task->result = fgw_backup_copy_step(task->copy, &task->list.files[task->at], &task->bytes);
}

static enum fgw_err on_pool(struct task *task, void (*fn)(void *arg))
{
    if (task->by_care && fgw_care_stopping(task->storage->care)) {
        return fgw_error_set(&task->error, FGW_ERR_CANCELLED,
                             "the process ended; call it again to go on");
    }
    fgw_pool_run(task->storage->pool, fn, task);
    return task->result;
}

static enum fgw_err copy_file(struct task *task)
{
    size_t files = task->list.count;
    enum fgw_err err = on_pool(task, run_begin_file);
    while (err == FGW_OK) {
        err = on_pool(task, run_step);
        note_progress(task, err == FGW_ERR_END);
    }
    fgw_backup_copy_free(task->copy);
    task->copy = NULL;
    if (err == FGW_ERR_END) {
        task->at += files == task->list.count ? 1 : 0;
        return FGW_OK;
    }
    if (err != FGW_ERR_CANCELLED) {
        (void)fgw_error_set(&task->error, err, "copying %s to %s: %s",
                            task->list.files[task->at].name, task->to, fgw_err_text(err));
    }
    return err;
}

static void run_finish(void *arg)
{
    struct task *task = arg;
    struct fgw_storage *storage = task->storage;
    struct fgw_buf text;
    memcpy(task->list.store_id, storage->dir.store_ids[0], sizeof task->list.store_id);
    memcpy(task->list.cluster_id, storage->dir.cluster_id, sizeof task->list.cluster_id);
    task->list.checkpoint = task->checkpoint.id;
    task->list.batch = task->checkpoint.batch;
    task->list.made_ms = (uint64_t)fgw_clock_wall_ms();
    fgw_buf_init(&text, 0);
    fgw_backup_list_encode(&task->list, &text);
    errno = 0;
    task->result = fgw_fs_create_durable(task->target.tmp, task->target.root, "BACKUP",
                                         fgw_buf_bytes(&text), 0600, NULL);
    fgw_buf_deinit(&text);
    if (task->result != FGW_OK) {
        task->result = fail(task, task->result, "cannot write BACKUP in");
        return;
    }
    (void)!fgw_fs_unlink(task->target.root, PARTIAL); /* without effect once BACKUP is there */
    (void)unlinkat(task->target.root, "tmp", AT_REMOVEDIR);
}

/* -- all of it ----------------------------------------------------------------------------------- */

static enum fgw_err write_checkpoint(struct task *task)
{
    enum fgw_err err = fgw_checkpoint_write(task->storage, task->by_care, &task->checkpoint);
    return err == FGW_OK ? err
                         : fgw_error_set(&task->error, err, "no checkpoint could be written: %s",
                                         fgw_err_text(err));
}

static enum fgw_err make_backup(struct task *task)
{
    enum fgw_err err = on_pool(task, run_open_target);
    if (err == FGW_OK) {
        err = write_checkpoint(task);
    }
    if (err == FGW_OK) {
        err = on_pool(task, run_plan);
    }
    if (err == FGW_OK) {
        note_plan(task);
    }
    while (err == FGW_OK && task->at < task->list.count) {
        err = copy_file(task);
    }
    return err == FGW_OK ? on_pool(task, run_finish) : err;
}

static enum fgw_err run_backup(struct task *task)
{
    struct fgw_storage *storage = task->storage;
    task->from = (struct fgw_backup_place){.root = storage->dir.root, .tmp = -1};
    task->target = (struct fgw_backup_place){-1, -1};
    fgw_error_init(&task->error);
    fgw_storage_hold_groups(storage);
    enum fgw_err err = make_backup(task);
    fgw_storage_release_groups(storage);
    end_state(task, err);
    if (task->target.tmp >= 0) {
        (void)close(task->target.tmp);
    }
    if (task->target.root >= 0) {
        (void)close(task->target.root);
    }
    fgw_backup_list_deinit(&task->list);
    return err;
}

enum fgw_err fgw_storage_backup(struct fgw_storage *storage, const char *to,
                                struct fgw_error *error)
{
    struct task task = {.storage = storage, .to = to};
    if (!begin_state(storage, to)) {
        return fgw_error_set(error, FGW_ERR_IN_USE, "a backup is being made already");
    }
    enum fgw_err err = run_backup(&task);
    if (err != FGW_OK && error != NULL) {
        *error = task.error;
    }
    return err;
}

enum fgw_err fgw_storage_backup_start(struct fgw_storage *storage, const char *to)
{
    if (!fgw_care_running(storage->care)) {
        return FGW_ERR_UNAVAILABLE;
    }
    if (!begin_state(storage, to)) {
        return FGW_ERR_IN_USE;
    }
    (void)pthread_mutex_lock(&storage->backup.mutex);
    storage->backup.wanted = true;
    (void)pthread_mutex_unlock(&storage->backup.mutex);
    fgw_care_kick(storage->care, FGW_CARE_BACKUP);
    return FGW_OK;
}

void fgw_backup_care(struct fgw_storage *storage)
{
    char to[sizeof storage->backup.status.to];
    struct task task = {.storage = storage, .to = to, .by_care = true};
    (void)pthread_mutex_lock(&storage->backup.mutex);
    bool wanted = storage->backup.wanted;
    storage->backup.wanted = false;
    (void)snprintf(to, sizeof to, "%s", storage->backup.status.to);
    (void)pthread_mutex_unlock(&storage->backup.mutex);
    if (wanted) {
        (void)!run_backup(&task);
    }
}
