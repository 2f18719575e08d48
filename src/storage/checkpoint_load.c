/* checkpoint_load.c: see checkpoint_load.h.
 *
 * Commit point: the rename of meta.new to meta. Crash argument: until then the directory counts for
 * nothing and is removed by the next opening; before it all rows lie in synced tables, so no batch
 * of a write-ahead log can be lost from the middle.
 */
#include "storage/checkpoint_load.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"

enum { BATCH_BYTES = 1024 * 1024 };
static const char NEW[] = "meta.new";

/* -- the directory ------------------------------------------------------------------------------- */

static enum fgw_err remove_files(int fd)
{
    DIR *names = fdopendir(fd);
    enum fgw_err err = FGW_OK;
    struct dirent *entry;
    if (names == NULL) {
        (void)close(fd);
        return FGW_ERR_IO;
    }
    while (err == FGW_OK && (entry = readdir(names)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            err = fgw_fs_unlink(dirfd(names), entry->d_name);
        }
    }
    (void)closedir(names);
    return err;
}

enum fgw_err fgw_checkpoint_load_clean(const struct fgw_datadir *dir, struct fgw_error *error)
{
    int fd = openat(dir->root, NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return FGW_OK;
    }
    if (fd < 0 || remove_files(fd) != FGW_OK || unlinkat(dir->root, NEW, AT_REMOVEDIR) != 0) {
        return fgw_error_set(error, FGW_ERR_IO, "cannot remove %s/%s: %s", dir->path, NEW,
                             strerror(errno));
    }
    return FGW_OK;
}

static enum fgw_err take_place(const struct fgw_datadir *dir, struct fgw_error *error)
{
    enum fgw_err err = fgw_fs_rename(dir->root, NEW, dir->root, "meta");
    if (err == FGW_OK) {
        err = fgw_fs_fsync_dir(dir->root);
    }
    return err == FGW_OK ? err
                         : fgw_error_set(error, err, "cannot rename %s/%s: %s", dir->path, NEW,
                                         strerror(errno));
}

/* -- the rows ------------------------------------------------------------------------------------ */

struct load {
    struct fgw_checkpoint_reader *reader;
    struct fgw_kv *kv;
    struct fgw_kv_batch *batch;
    uint64_t rows;
    uint64_t size_bytes; /* of the file */
    struct fgw_open_progress *progress;
    bool reading; /* what failed last was the reading */
};

static enum fgw_err write_rows(struct load *load, struct fgw_error *error)
{
    enum fgw_err err = fgw_kv_batch_write(load->batch, false, error);
    fgw_kv_batch_clear(load->batch);
    fgw_open_progress(load->progress, "loading the index from a checkpoint: %llu of %llu MiB",
                      (unsigned long long)fgw_checkpoint_reader_offset(load->reader) >> 20,
                      (unsigned long long)load->size_bytes >> 20);
    return err;
}

static enum fgw_err copy_rows(struct load *load, struct fgw_error *error)
{
    struct fgw_checkpoint_row row;
    enum fgw_err err;
    while ((err = fgw_checkpoint_reader_next(load->reader, &row)) == FGW_OK) {
        fgw_kv_batch_put(load->batch, row.family, row.key, row.value);
        load->rows++;
        if (fgw_kv_batch_bytes(load->batch) < BATCH_BYTES) {
            continue;
        }
        err = write_rows(load, error);
        if (err != FGW_OK) {
            return err;
        }
    }
    load->reading = err != FGW_ERR_END;
    if (err == FGW_ERR_END) {
        err = write_rows(load, error);
    }
    return err == FGW_OK ? fgw_kv_flush(load->kv, error) : err;
}

static enum fgw_err open_new(const struct fgw_datadir *dir, struct load *load,
                             struct fgw_error *error)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/%s", dir->path, NEW);
    if (len < 0 || (size_t)len >= sizeof path) {
        return fgw_error_set(error, FGW_ERR_IO, "the path of the data directory is too long");
    }
    enum fgw_err err = fgw_kv_open(path, NULL, &load->kv, error);
    if (err == FGW_OK) {
        load->batch = fgw_kv_batch_new(load->kv);
    }
    return err;
}

static enum fgw_err name_damage(const struct fgw_datadir *dir, uint64_t id, enum fgw_err err,
                                uint64_t offset, struct fgw_error *error)
{
    char name[FGW_GROUP_NAME_SIZE];
    fgw_group_name(id, name);
    if (err == FGW_ERR_NEWER_VERSION) {
        return fgw_error_set(error, err, "%s/checkpoints/%s was written by a newer version",
                             dir->path, name);
    }
    return fgw_error_set(error, err, "%s/checkpoints/%s is damaged at offset %llu: %s", dir->path,
                         name, (unsigned long long)offset, fgw_err_text(err));
}

enum fgw_err fgw_checkpoint_load(const struct fgw_datadir *dir,
                                 const struct fgw_checkpoint_info *info,
                                 struct fgw_record_opener *opener,
                                 struct fgw_open_progress *progress, struct fgw_error *error)
{
    uint64_t id = info->id;
    struct load load = {.size_bytes = info->size_bytes, .progress = progress};
    enum fgw_err err = fgw_checkpoint_load_clean(dir, error);
    if (err != FGW_OK) {
        return err;
    }
    err = fgw_checkpoint_reader_open(dir, id, opener, false, &load.reader);
    if (err != FGW_OK) {
        return name_damage(dir, id, err, 0, error);
    }
    err = open_new(dir, &load, error);
    if (err == FGW_OK) {
        err = copy_rows(&load, error);
    }
    fgw_kv_batch_free(load.batch);
    fgw_kv_close(load.kv);
    if (err == FGW_OK) {
        err = take_place(dir, error);
    } else if (load.reading) {
        err = name_damage(dir, id, err, fgw_checkpoint_reader_offset(load.reader), error);
    }
    if (err == FGW_OK) {
        fgw_log_info(
            "storage", "the index was loaded from checkpoint %llu rows=%llu batch=%llu",
            (unsigned long long)id, (unsigned long long)load.rows,
            (unsigned long long)fgw_checkpoint_reader_info(load.reader)->position.last_batch);
    } else {
        (void)!fgw_checkpoint_load_clean(dir, NULL);
    }
    fgw_checkpoint_reader_close(load.reader);
    return err;
}
