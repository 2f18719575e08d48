/* fs.c: see fs.h. */
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* -- fail call N --------------------------------------------------------------------------- */

enum call {
    CALL_PWRITE,
    CALL_PREAD,
    CALL_FDATASYNC,
    CALL_FSYNC,
    CALL_FTRUNCATE,
    CALL_RENAME,
    CALL_UNLINK,
    CALLS
};

static const char *const CALL_NAMES[CALLS] = {"pwrite",    "pread",  "fdatasync", "fsync",
                                              "ftruncate", "rename", "unlink"};

struct fault {
    unsigned long first; /* 0 = none; counted from 1 */
    bool later_too;
    int error_number;
    _Atomic unsigned long seen;
};

static struct fault faults[CALLS];
static bool faults_on;
static pthread_once_t faults_once = PTHREAD_ONCE_INIT;

static void parse_fault(const char *item, size_t len)
{
    char text[64];
    if (len >= sizeof text) {
        return;
    }
    memcpy(text, item, len);
    text[len] = '\0';
    char *number = strchr(text, ':');
    char *name = number == NULL ? NULL : strchr(number + 1, ':');
    if (name == NULL) {
        return;
    }
    *number++ = '\0';
    *name++ = '\0';
    for (int i = 0; i < CALLS; i++) {
        if (strcmp(CALL_NAMES[i], text) == 0) {
            faults[i].first = strtoul(number, NULL, 10);
            faults[i].later_too = strchr(number, '+') != NULL;
            faults[i].error_number = strcmp(name, "ENOSPC") == 0 ? ENOSPC : EIO;
            faults_on = true;
        }
    }
}

static void parse_text(const char *text)
{
    while (text != NULL && *text != '\0') {
        size_t len = strcspn(text, ",");
        parse_fault(text, len);
        text += len + (text[len] == ',');
    }
}

static void parse_faults(void)
{
    parse_text(getenv("FGW_TEST_FS_FAIL"));
}

void fgw_fs_set_faults(const char *text)
{
    (void)pthread_once(&faults_once, parse_faults);
    faults_on = false;
    for (int i = 0; i < CALLS; i++) {
        faults[i].first = 0;
        atomic_store(&faults[i].seen, 0);
    }
    parse_text(text);
}

static bool fails(enum call call)
{
    (void)pthread_once(&faults_once, parse_faults);
    if (__builtin_expect(!faults_on, 1) || faults[call].first == 0) {
        return false;
    }
    unsigned long now = atomic_fetch_add(&faults[call].seen, 1) + 1;
    if (now == faults[call].first || (faults[call].later_too && now > faults[call].first)) {
        errno = faults[call].error_number;
        return true;
    }
    return false;
}

static enum fgw_err result_of(int rc)
{
    return rc == 0 ? FGW_OK : fgw_err_from_errno(errno);
}

/* -- operations ---------------------------------------------------------------------------- */

enum fgw_err fgw_fs_pwrite(int fd, struct fgw_bytes bytes, uint64_t offset)
{
    struct iovec iov = {(void *)(uintptr_t)bytes.ptr, bytes.len};
    return bytes.len == 0 ? FGW_OK : fgw_fs_pwritev(fd, &iov, 1, offset);
}

enum fgw_err fgw_fs_pwritev(int fd, struct iovec *iov, int count, uint64_t offset)
{
    if (fails(CALL_PWRITE)) {
        return fgw_err_from_errno(errno);
    }
    while (count > 0) {
        ssize_t written = pwritev(fd, iov, count < 1024 ? count : 1024, (off_t)offset);
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            return fgw_err_from_errno(errno);
        }
        if (written == 0) {
            return FGW_ERR_IO;
        }
        offset += (uint64_t)written;
        size_t left = (size_t)written;
        while (count > 0 && left >= iov->iov_len) {
            left -= iov->iov_len;
            iov++;
            count--;
        }
        if (count > 0) {
            iov->iov_base = (uint8_t *)iov->iov_base + left;
            iov->iov_len -= left;
        }
    }
    return FGW_OK;
}

enum fgw_err fgw_fs_pread(int fd, void *out, size_t len, uint64_t offset)
{
    if (fails(CALL_PREAD)) {
        return fgw_err_from_errno(errno);
    }
    uint8_t *to = out;
    while (len > 0) {
        ssize_t got = pread(fd, to, len, (off_t)offset);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return fgw_err_from_errno(errno);
        }
        if (got == 0) {
            return FGW_ERR_END;
        }
        to += got;
        offset += (uint64_t)got;
        len -= (size_t)got;
    }
    return FGW_OK;
}

enum fgw_err fgw_fs_fdatasync(int fd)
{
    return result_of(fails(CALL_FDATASYNC) ? -1 : fdatasync(fd));
}

enum fgw_err fgw_fs_fsync(int fd)
{
    return result_of(fails(CALL_FSYNC) ? -1 : fsync(fd));
}

enum fgw_err fgw_fs_fsync_dir(int dir_fd)
{
    /* a descriptor opened with O_PATH cannot be synced */
    return fgw_fs_fsync(dir_fd);
}

enum fgw_err fgw_fs_ftruncate(int fd, uint64_t size)
{
    return result_of(fails(CALL_FTRUNCATE) ? -1 : ftruncate(fd, (off_t)size));
}

enum fgw_err fgw_fs_rename(int from_dir, const char *from, int to_dir, const char *to)
{
    return result_of(fails(CALL_RENAME) ? -1 : renameat(from_dir, from, to_dir, to));
}

enum fgw_err fgw_fs_unlink(int dir_fd, const char *name)
{
    return result_of(fails(CALL_UNLINK) ? -1 : unlinkat(dir_fd, name, 0));
}

enum fgw_err fgw_fs_size(int fd, uint64_t *out_size)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return fgw_err_from_errno(errno);
    }
    *out_size = (uint64_t)status.st_size;
    return FGW_OK;
}

enum fgw_err fgw_fs_space(int dir_fd, uint64_t *out_free, uint64_t *out_total)
{
    struct statvfs status;
    if (fstatvfs(dir_fd, &status) != 0) {
        return fgw_err_from_errno(errno);
    }
    *out_free = (uint64_t)status.f_bavail * status.f_frsize;
    *out_total = (uint64_t)status.f_blocks * status.f_frsize;
    return FGW_OK;
}

enum fgw_err fgw_fs_commit_durable(int fd, int tmp_dir, const char *tmp_name, int dir,
                                   const char *name)
{
    enum fgw_err err = fgw_fs_fsync(fd);
    if (err == FGW_OK) {
        err = fgw_fs_rename(tmp_dir, tmp_name, dir, name);
    }
    if (err != FGW_OK) {
        (void)unlinkat(tmp_dir, tmp_name, 0); /* a full disk needs every byte */
        return err;
    }
    err = fgw_fs_fsync_dir(dir);
    return err == FGW_OK ? fgw_fs_fsync_dir(tmp_dir) : err;
}

enum fgw_err fgw_fs_create_durable(int tmp_dir, int dir, const char *name, struct fgw_bytes content,
                                   mode_t mode, int *out_fd)
{
    int fd = openat(tmp_dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd < 0) {
        return fgw_err_from_errno(errno);
    }
    enum fgw_err err = fgw_fs_pwrite(fd, content, 0);
    if (err == FGW_OK) {
        err = fgw_fs_commit_durable(fd, tmp_dir, name, dir, name);
    } else {
        (void)unlinkat(tmp_dir, name, 0); /* a full disk needs every byte */
    }
    if (err != FGW_OK || out_fd == NULL) {
        (void)close(fd);
    } else {
        *out_fd = fd;
    }
    return err;
}

enum fgw_err fgw_fs_read_file(int dir_fd, const char *name, struct fgw_buf *out)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? FGW_ERR_NOT_FOUND : fgw_err_from_errno(errno);
    }
    uint64_t size = 0;
    enum fgw_err err = fgw_fs_size(fd, &size);
    if (err == FGW_OK) {
        err = fgw_buf_reserve(out, (size_t)size);
    }
    if (err == FGW_OK) {
        err = fgw_fs_pread(fd, out->ptr + out->len, (size_t)size, 0);
    }
    if (err == FGW_OK) {
        out->len += (size_t)size;
    }
    (void)close(fd);
    return err;
}
