/* out_file.c: see out_file.h. */
#include "piece/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

enum { BUFFER_BYTES = 1024 * 1024, SYNC_BYTES = 64 * 1024 * 1024, MODE = 0600 };

/* Another export may have renamed it between our open and our lock: it is a piece now. */
static bool still_named(const struct fgw_piece_out_file *file)
{
    struct stat ours;
    struct stat named;
    return fstat(file->fd, &ours) == 0 &&
           fstatat(file->dir, file->tmp_name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
}

enum fgw_err fgw_piece_out_begin(struct fgw_piece_out_file *file, int dir, const char *tmp_name)
{
    *file = (struct fgw_piece_out_file){.dir = dir, .tmp_name = tmp_name};
    fgw_buf_init(&file->buffer, 0);
    file->fd = openat(dir, tmp_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, MODE);
    if (file->fd < 0) {
        return fgw_err_from_errno(errno);
    }
    if (flock(file->fd, LOCK_EX | LOCK_NB) != 0 || !still_named(file)) {
        (void)close(file->fd);
        file->fd = -1; /* it is the other's */
        return FGW_ERR_IN_USE;
    }
    return fgw_fs_ftruncate(file->fd, 0);
}

static enum fgw_err flush(struct fgw_piece_out_file *file)
{
    enum fgw_err err = fgw_fs_pwrite(file->fd, fgw_buf_bytes(&file->buffer), file->written);
    if (err != FGW_OK) {
        return err;
    }
    file->written += file->buffer.len;
    fgw_buf_clear(&file->buffer);
    if (file->written - file->synced < SYNC_BYTES) {
        return FGW_OK;
    }
    file->synced = file->written;
    return fgw_fs_fdatasync(file->fd);
}

enum fgw_err fgw_piece_out_append(struct fgw_piece_out_file *file, struct fgw_bytes bytes)
{
    enum fgw_err err = fgw_buf_append(&file->buffer, bytes);
    return err == FGW_OK && file->buffer.len >= BUFFER_BYTES ? flush(file) : err;
}

enum fgw_err fgw_piece_out_commit(struct fgw_piece_out_file *file, int dir, const char *name)
{
    enum fgw_err err = flush(file);
    if (err != FGW_OK) {
        return err;
    }
    err = fgw_fs_commit_durable(file->fd, file->dir, file->tmp_name, dir, name);
    (void)close(file->fd);
    file->fd = -1; /* renamed, or removed */
    return err;
}

void fgw_piece_out_deinit(struct fgw_piece_out_file *file)
{
    if (file->fd >= 0) {
        (void)unlinkat(file->dir, file->tmp_name, 0);
        (void)close(file->fd);
        file->fd = -1;
    }
    fgw_buf_deinit(&file->buffer);
}
