/* restore.c: fgw_storage_restore: a data directory out of a backup (docs/formats/backup.md). Blocks;
 * opens no storage.
 *
 * Commit point: FORMAT, written last. Crash argument: until then RESTORING says what the directory
 * is; every other command refuses it, the same restore goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "storage/backup_files.h"
#include "storage/storage.h"

enum { TEXT_MAX = 64 * 1024 * 1024, FORMAT_MAX = 64 * 1024, MARK_MAX = 64 };
static const char RESTORING[] = "RESTORING";

struct restore {
    const struct fgw_storage_restore *options;
    struct fgw_backup_place from;
    struct fgw_backup_place to;
    struct fgw_backup_list list;
    char mark[MARK_MAX]; /* the last line of BACKUP */
    struct fgw_error *error;
};

static enum fgw_err fail(struct restore *restore, enum fgw_err err, const char *what,
                         const char *path)
{
    return fgw_error_set(restore->error, err, "%s %s: %s", what, path,
                         errno != 0 ? strerror(errno) : fgw_err_text(err));
}

/* -- the backup ---------------------------------------------------------------------------------- */

static enum fgw_err read_list(struct restore *restore)
{
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    enum fgw_err err = fgw_fs_read_file(restore->from.root, "BACKUP", &text);
    if (err == FGW_OK) {
        struct fgw_bytes bytes = fgw_buf_bytes(&text);
        size_t tail = bytes.len < 16 ? bytes.len : 16;
        (void)snprintf(restore->mark, sizeof restore->mark, "%.*s",
                       FGW_FMT(fgw_bytes_sub(bytes, bytes.len - tail, tail)));
        err = fgw_backup_list_decode(&restore->list, bytes);
    }
    fgw_buf_deinit(&text);
    switch (err) {
    case FGW_OK:
        return FGW_OK;
    case FGW_ERR_NOT_FOUND:
        return fgw_error_set(restore->error, FGW_ERR_IO,
                             "%s holds no finished backup: there is no file BACKUP in it",
                             restore->options->from);
    case FGW_ERR_NEWER_VERSION:
        return fgw_error_set(restore->error, err, "%s/BACKUP was written by a newer version",
                             restore->options->from);
    default:
        return fgw_error_set(restore->error, err, "%s/BACKUP is damaged", restore->options->from);
    }
}

static enum fgw_err open_backup(struct restore *restore)
{
    errno = 0;
    restore->from.root = open(restore->options->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (restore->from.root < 0) {
        return fail(restore, FGW_ERR_IO, "cannot open", restore->options->from);
    }
    enum fgw_err err = read_list(restore);
    if (err == FGW_OK && (fgw_backup_list_find(&restore->list, "FORMAT") == NULL ||
                          fgw_backup_list_find(&restore->list, "keys") == NULL)) {
        err = fgw_error_set(restore->error, FGW_ERR_CORRUPT, "%s/BACKUP names no FORMAT or no keys",
                            restore->options->from);
    }
    return err;
}

/* -- the data directory -------------------------------------------------------------------------- */

static enum fgw_err note_entry(void *context, int dir_fd, const char *name)
{
    bool *empty = context;
    (void)dir_fd;
    *empty = *empty && strcmp(name, "lost+found") == 0;
    return FGW_OK;
}

/* Empty, or where this restore was interrupted. */
static enum fgw_err check_target(struct restore *restore)
{
    struct fgw_buf mark;
    bool empty = true;
    fgw_buf_init(&mark, MARK_MAX);
    enum fgw_err err = fgw_fs_read_file(restore->to.root, RESTORING, &mark);
    bool ours = err == FGW_OK && fgw_bytes_eq_str(fgw_buf_bytes(&mark), restore->mark) &&
                faccessat(restore->to.root, "FORMAT", F_OK, 0) != 0;
    fgw_buf_deinit(&mark);
    if (ours) {
        return FGW_OK;
    }
    err = fgw_backup_each_entry(restore->to.root, note_entry, &empty);
    if (err != FGW_OK) {
        return fail(restore, err, "cannot list", restore->options->to);
    }
    return empty ? FGW_OK
                 : fgw_error_set(restore->error, FGW_ERR_EXISTS,
                                 "%s is not empty: a backup is restored into a new directory only",
                                 restore->options->to);
}

static enum fgw_err open_target(struct restore *restore)
{
    const char *path = restore->options->to;
    errno = 0;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return fail(restore, fgw_err_from_errno(errno), "cannot make", path);
    }
    restore->to.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (restore->to.root < 0) {
        return fail(restore, fgw_err_from_errno(errno), "cannot open", path);
    }
    enum fgw_err err = check_target(restore);
    if (err != FGW_OK) {
        return err;
    }
    err = fgw_backup_open_sub(restore->to.root, "tmp", &restore->to.tmp);
    if (err == FGW_OK) {
        err = fgw_fs_create_durable(restore->to.tmp, restore->to.root, RESTORING,
                                    fgw_bytes_str(restore->mark), 0600, NULL);
    }
    static const char *const FOLDERS[] = {"groups", "checkpoints", "pieces"};
    for (size_t i = 0; i < 3 && err == FGW_OK; i++) {
        int fd = -1;
        err = fgw_backup_open_sub(restore->to.root, FOLDERS[i], &fd);
        if (err == FGW_OK) {
            (void)close(fd);
        }
    }
    return err == FGW_OK ? err : fail(restore, err, "cannot write to", path);
}

/* -- files --------------------------------------------------------------------------------------- */

static enum fgw_err copy_checked(struct restore *restore, const struct fgw_backup_file *wanted)
{
    struct fgw_backup_copy *copy = NULL;
    struct fgw_backup_file file = *wanted;
    uint64_t bytes;
    enum fgw_err err = fgw_backup_copy_begin(&restore->from, &restore->to, &file, &copy);
    while (err == FGW_OK) {
        err = fgw_backup_copy_step(copy, &file, &bytes);
    }
    fgw_backup_copy_free(copy);
    if (err == FGW_ERR_END && memcmp(file.sha256, wanted->sha256, sizeof file.sha256) == 0) {
        return FGW_OK;
    }
    return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
}

static enum fgw_err copy_file(struct restore *restore, const struct fgw_backup_file *file)
{
    struct stat status;
    errno = 0;
    if (fstatat(restore->from.root, file->name, &status, 0) != 0 ||
        (uint64_t)status.st_size != file->size) {
        return fgw_error_set(restore->error, FGW_ERR_CORRUPT,
                             "the backup is damaged: %s/%s is missing or has another length",
                             restore->options->from, file->name);
    }
    enum fgw_err err = copy_checked(restore, file);
    if (err == FGW_ERR_CORRUPT) {
        return fgw_error_set(restore->error, err,
                             "the backup is damaged: %s/%s has not the SHA-256 it was written with",
                             restore->options->from, file->name);
    }
    return err == FGW_OK ? err : fail(restore, err, "cannot copy", file->name);
}

static enum fgw_err copy_all(struct restore *restore)
{
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < restore->list.count && err == FGW_OK; i++) {
        const struct fgw_backup_file *file = &restore->list.files[i];
        err = strcmp(file->name, "FORMAT") == 0 ? FGW_OK : copy_file(restore, file);
        restore->options->progress(restore->options->context, i + 1, restore->list.count);
    }
    return err;
}

/* -- FORMAT -------------------------------------------------------------------------------------- */

static enum fgw_err read_format(struct restore *restore, struct fgw_buf *out)
{
    uint8_t sha256[FGW_SHA256_SIZE];
    const struct fgw_backup_file *file = fgw_backup_list_find(&restore->list, "FORMAT");
    enum fgw_err err = fgw_fs_read_file(restore->from.root, "FORMAT", out);
    if (err == FGW_OK) {
        fgw_sha256(fgw_buf_bytes(out), sha256);
        err = memcmp(sha256, file->sha256, sizeof sha256) == 0 ? FGW_OK : FGW_ERR_CORRUPT;
    }
    return err == FGW_OK
               ? err
               : fgw_error_set(restore->error, FGW_ERR_CORRUPT, "the backup is damaged: %s/FORMAT",
                               restore->options->from);
}

/* From now on it is a data directory. */
static enum fgw_err write_format(struct restore *restore)
{
    struct fgw_buf old;
    struct fgw_buf text;
    fgw_buf_init(&old, FORMAT_MAX);
    fgw_buf_init(&text, FORMAT_MAX);
    enum fgw_err err = read_format(restore, &old);
    if (err == FGW_OK) {
        err = restore->options->replace
                  ? fgw_buf_append(&text, fgw_buf_bytes(&old))
                  : fgw_datadir_new_identity(fgw_buf_bytes(&old), &text, restore->error);
    }
    if (err == FGW_OK) {
        errno = 0;
        err = fgw_fs_create_durable(restore->to.tmp, restore->to.root, "FORMAT",
                                    fgw_buf_bytes(&text), 0600, NULL);
        if (err != FGW_OK) {
            err = fail(restore, err, "cannot write FORMAT in", restore->options->to);
        }
    }
    if (err == FGW_OK) {
        (void)!fgw_fs_unlink(restore->to.root, RESTORING); /* without effect beside FORMAT */
    }
    fgw_buf_deinit(&old);
    fgw_buf_deinit(&text);
    return err;
}

static void no_progress(void *context, uint64_t files, uint64_t files_total)
{
    (void)context;
    (void)files;
    (void)files_total;
}

enum fgw_err fgw_storage_restore(const struct fgw_storage_restore *options, struct fgw_error *error)
{
    struct fgw_storage_restore filled = *options;
    struct restore restore = {.options = &filled, .from = {-1, -1}, .to = {-1, -1}, .error = error};
    filled.progress = options->progress == NULL ? no_progress : options->progress;
    enum fgw_err err = open_backup(&restore);
    if (err == FGW_OK) {
        err = open_target(&restore);
    }
    if (err == FGW_OK) {
        err = copy_all(&restore);
    }
    if (err == FGW_OK) {
        err = write_format(&restore);
    }
    int fds[] = {restore.from.root, restore.to.root, restore.to.tmp};
    for (size_t i = 0; i < 3; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    fgw_backup_list_deinit(&restore.list);
    return err;
}
