/* recorder.c: LD_PRELOAD library that writes down what a process does to the files below a folder, in
 * the order in which it happened: what tests/fault/power_loss.py replays.
 *
 * FGW_RECORD_ROOT    absolute path of the folder
 * FGW_RECORD_FILE    where the record goes (outside of it)
 * FGW_RECORD_ACKS    absolute path of a file whose writes are marks: "operation N was answered"
 *
 * An event is: type (1), descriptor or 0 (4), two numbers (8 each), lengths of two byte strings
 * (4 each), the strings. Native byte order. Events are written after the call they tell of returned
 * successfully; syncs twice, when they begin and when they have ended, as only what was there when
 * they began is durable when they end. O_DIRECT and mappings are not followed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum event {
    OPEN = 'o',
    CLOSE = 'c',
    WRITE = 'w',
    SYNC_BEGIN = 's',
    SYNC_END = 'S',
    TRUNCATE = 't',
    ALLOCATE = 'a',
    RENAME = 'r',
    UNLINK = 'u',
    MKDIR = 'm',
    RMDIR = 'd',
    LINK = 'l',
    MARK = 'k'
};
enum { FDS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int out = -1;
static const char *root;
static size_t root_len;
static const char *acks;
static bool followed[FDS]; /* below the root */
static bool marks[FDS];
static uint64_t positions[FDS];
static uint64_t syncs;

/* Without the library's own functions: they are the ones replaced here. */
static void put(const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        long done = syscall(SYS_write, out, at, len);
        if (done <= 0) {
            abort();
        }
        at += done;
        len -= (size_t)done;
    }
}

static void start(void)
{
    const char *file = getenv("FGW_RECORD_FILE");
    root = getenv("FGW_RECORD_ROOT");
    acks = getenv("FGW_RECORD_ACKS");
    if (file != NULL && root != NULL) {
        root_len = strlen(root);
        out = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                           0600);
    }
}

static bool on(void)
{
    (void)pthread_once(&once, start);
    return out >= 0;
}

/* Locked. */
static void event(enum event type, int fd, uint64_t a, uint64_t b, struct iovec first,
                  struct iovec second)
{
    char head[29];
    uint32_t lens[2] = {(uint32_t)first.iov_len, (uint32_t)second.iov_len};
    head[0] = (char)type;
    memcpy(head + 1, &fd, 4);
    memcpy(head + 5, &a, 8);
    memcpy(head + 13, &b, 8);
    memcpy(head + 21, lens, 8);
    put(head, sizeof head);
    put(first.iov_base, first.iov_len);
    put(second.iov_base, second.iov_len);
}

static struct iovec text(const char *string)
{
    return (struct iovec){(void *)(uintptr_t)string, strlen(string)};
}

static const struct iovec NONE = {"", 0};

/* The absolute path of `path` seen from `dir`; false when it lies elsewhere. */
static bool below_root(int dir, const char *path, char full[PATH_MAX * 2])
{
    if (path[0] == '/' || dir == AT_FDCWD) {
        char cwd[PATH_MAX] = "";
        if (path[0] != '/' && syscall(SYS_getcwd, cwd, sizeof cwd) < 0) {
            return false;
        }
        (void)snprintf(full, (size_t)PATH_MAX * 2, "%s%s%s", cwd, path[0] == '/' ? "" : "/", path);
    } else {
        char link[64];
        char base[PATH_MAX];
        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        long len = syscall(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
        if (len < 0) {
            return false;
        }
        base[len] = '\0';
        (void)snprintf(full, (size_t)PATH_MAX * 2, "%s/%s", base, path);
    }
    return strncmp(full, root, root_len) == 0 && (full[root_len] == '/' || full[root_len] == '\0');
}

static bool is_followed(int fd)
{
    return on() && fd >= 0 && fd < FDS && (followed[fd] || marks[fd]);
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (real == NULL) { \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name); \
    }

/* -- opening and closing ------------------------------------------------------------------------- */

static void note_open(int fd, int dir, const char *path, int flags)
{
    char full[PATH_MAX * 2];
    if (fd < 0 || fd >= FDS || !on()) {
        return;
    }
    (void)pthread_mutex_lock(&lock);
    bool below = below_root(dir, path, full);
    followed[fd] = below;
    marks[fd] = acks != NULL && strcmp(full, acks) == 0;
    positions[fd] = 0;
    if (below) {
        event(OPEN, fd, (uint64_t)flags, 0, text(full), NONE);
    }
    (void)pthread_mutex_unlock(&lock);
}

#define MODE_OF(flags, last) \
    mode_t mode = 0; \
    if (((flags) & (O_CREAT | __O_TMPFILE)) != 0) { \
        va_list args; \
        va_start(args, last); \
        mode = va_arg(args, mode_t); \
        va_end(args); \
    }

int open(const char *path, int flags, ...)
{
    REAL(open)
    MODE_OF(flags, flags)
    int fd = real(path, flags, mode);
    note_open(fd, AT_FDCWD, path, flags);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    REAL(open64)
    MODE_OF(flags, flags)
    int fd = real(path, flags, mode);
    note_open(fd, AT_FDCWD, path, flags);
    return fd;
}

int openat(int dir, const char *path, int flags, ...)
{
    REAL(openat)
    MODE_OF(flags, flags)
    int fd = real(dir, path, flags, mode);
    note_open(fd, dir, path, flags);
    return fd;
}

int openat64(int dir, const char *path, int flags, ...)
{
    REAL(openat64)
    MODE_OF(flags, flags)
    int fd = real(dir, path, flags, mode);
    note_open(fd, dir, path, flags);
    return fd;
}

int close(int fd)
{
    REAL(close)
    if (is_followed(fd)) {
        (void)pthread_mutex_lock(&lock);
        event(CLOSE, fd, 0, 0, NONE, NONE);
        followed[fd] = false;
        marks[fd] = false;
        (void)pthread_mutex_unlock(&lock);
    }
    return real(fd);
}

/* -- writing ------------------------------------------------------------------------------------- */

static void note_write(int fd, const struct iovec *iov, int count, uint64_t offset, size_t done)
{
    (void)pthread_mutex_lock(&lock);
    for (int i = 0; i < count && done > 0; i++) {
        struct iovec piece = iov[i];
        piece.iov_len = piece.iov_len < done ? piece.iov_len : done;
        event(marks[fd] ? MARK : WRITE, fd, offset, piece.iov_len, piece, NONE);
        offset += piece.iov_len;
        done -= piece.iov_len;
    }
    positions[fd] = offset;
    (void)pthread_mutex_unlock(&lock);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    REAL(write)
    ssize_t done = real(fd, bytes, len);
    if (done > 0 && is_followed(fd)) {
        struct iovec iov = {(void *)(uintptr_t)bytes, len};
        note_write(fd, &iov, 1, positions[fd], (size_t)done);
    }
    return done;
}

ssize_t writev(int fd, const struct iovec *iov, int count)
{
    REAL(writev)
    ssize_t done = real(fd, iov, count);
    if (done > 0 && is_followed(fd)) {
        note_write(fd, iov, count, positions[fd], (size_t)done);
    }
    return done;
}

#define POSITIONED(name, type) \
    ssize_t name(int fd, const void *bytes, size_t len, type offset) \
    { \
        REAL(name) \
        ssize_t done = real(fd, bytes, len, offset); \
        if (done > 0 && is_followed(fd)) { \
            struct iovec iov = {(void *)(uintptr_t)bytes, len}; \
            uint64_t position = positions[fd]; \
            note_write(fd, &iov, 1, (uint64_t)offset, (size_t)done); \
            positions[fd] = position; \
        } \
        return done; \
    }
POSITIONED(pwrite, off_t)
POSITIONED(pwrite64, off64_t)

#define POSITIONED_V(name, type) \
    ssize_t name(int fd, const struct iovec *iov, int count, type offset) \
    { \
        REAL(name) \
        ssize_t done = real(fd, iov, count, offset); \
        if (done > 0 && is_followed(fd)) { \
            uint64_t position = positions[fd]; \
            note_write(fd, iov, count, (uint64_t)offset, (size_t)done); \
            positions[fd] = position; \
        } \
        return done; \
    }
POSITIONED_V(pwritev, off_t)
POSITIONED_V(pwritev64, off64_t)

off_t lseek(int fd, off_t offset, int whence)
{
    REAL(lseek)
    off_t position = real(fd, offset, whence);
    if (position >= 0 && is_followed(fd)) {
        positions[fd] = (uint64_t)position;
    }
    return position;
}

static int note_size(enum event type, int fd, uint64_t a, uint64_t b, int rc)
{
    if (rc == 0 && is_followed(fd)) {
        (void)pthread_mutex_lock(&lock);
        event(type, fd, a, b, NONE, NONE);
        (void)pthread_mutex_unlock(&lock);
    }
    return rc;
}

int ftruncate(int fd, off_t size)
{
    REAL(ftruncate)
    return note_size(TRUNCATE, fd, (uint64_t)size, 0, real(fd, size));
}

int ftruncate64(int fd, off64_t size)
{
    REAL(ftruncate64)
    return note_size(TRUNCATE, fd, (uint64_t)size, 0, real(fd, size));
}

/* b: the file does not grow by it. */
int fallocate(int fd, int mode, off_t offset, off_t len)
{
    REAL(fallocate)
    int rc = real(fd, mode, offset, len);
    return note_size(ALLOCATE, fd, (uint64_t)(offset + len), (uint64_t)mode, rc);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
    REAL(fallocate64)
    int rc = real(fd, mode, offset, len);
    return note_size(ALLOCATE, fd, (uint64_t)(offset + len), (uint64_t)mode, rc);
}

/* -- syncing ------------------------------------------------------------------------------------- */

static uint64_t note_sync(int fd, enum event type, uint64_t number)
{
    if (!is_followed(fd) || marks[fd]) {
        return 0;
    }
    (void)pthread_mutex_lock(&lock);
    number = type == SYNC_BEGIN ? ++syncs : number;
    event(type, fd, number, 0, NONE, NONE);
    (void)pthread_mutex_unlock(&lock);
    return number;
}

#define SYNCING(name) \
    int name(int fd) \
    { \
        REAL(name) \
        uint64_t number = note_sync(fd, SYNC_BEGIN, 0); \
        int rc = real(fd); \
        if (rc == 0 && number != 0) { \
            (void)note_sync(fd, SYNC_END, number); \
        } \
        return rc; \
    }
SYNCING(fsync)
SYNCING(fdatasync)

/* -- names --------------------------------------------------------------------------------------- */

static int note_name(enum event type, int dir, const char *path, int rc)
{
    char full[PATH_MAX * 2];
    int saved = errno;
    if (rc == 0 && on() && below_root(dir, path, full)) {
        (void)pthread_mutex_lock(&lock);
        event(type, 0, 0, 0, text(full), NONE);
        (void)pthread_mutex_unlock(&lock);
    }
    errno = saved;
    return rc;
}

static int note_names(enum event type, int from_dir, const char *from, int to_dir, const char *to)
{
    char full_from[PATH_MAX * 2];
    char full_to[PATH_MAX * 2];
    if (on() && below_root(from_dir, from, full_from) && below_root(to_dir, to, full_to)) {
        (void)pthread_mutex_lock(&lock);
        event(type, 0, 0, 0, text(full_from), text(full_to));
        (void)pthread_mutex_unlock(&lock);
    }
    return 0;
}

int rename(const char *from, const char *to)
{
    REAL(rename)
    int rc = real(from, to);
    return rc == 0 ? note_names(RENAME, AT_FDCWD, from, AT_FDCWD, to) : rc;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    REAL(renameat)
    int rc = real(from_dir, from, to_dir, to);
    return rc == 0 ? note_names(RENAME, from_dir, from, to_dir, to) : rc;
}

int link(const char *from, const char *to)
{
    REAL(link)
    int rc = real(from, to);
    return rc == 0 ? note_names(LINK, AT_FDCWD, from, AT_FDCWD, to) : rc;
}

int unlink(const char *path)
{
    REAL(unlink)
    return note_name(UNLINK, AT_FDCWD, path, real(path));
}

int unlinkat(int dir, const char *path, int flags)
{
    REAL(unlinkat)
    return note_name((flags & AT_REMOVEDIR) != 0 ? RMDIR : UNLINK, dir, path,
                     real(dir, path, flags));
}

int mkdir(const char *path, mode_t mode)
{
    REAL(mkdir)
    return note_name(MKDIR, AT_FDCWD, path, real(path, mode));
}

int mkdirat(int dir, const char *path, mode_t mode)
{
    REAL(mkdirat)
    return note_name(MKDIR, dir, path, real(dir, path, mode));
}

int rmdir(const char *path)
{
    REAL(rmdir)
    return note_name(RMDIR, AT_FDCWD, path, real(path));
}
