/* fs.h: file operations that storage relies on, each retried on EINTR, each a fault point.
 *
 * The names are what the fault injector and the power-loss recorder see. "Fail call N": the
 * environment variable FGW_TEST_FS_FAIL="fdatasync:3:EIO,pwrite:10:ENOSPC" makes the third
 * fdatasync and the tenth pwrite of this process fail; "fdatasync:3+:EIO" the third and all later
 * ones. Off unless set.
 */
#ifndef FGW_BASE_FS_H
#define FGW_BASE_FS_H

#include <sys/types.h>
#include <sys/uio.h>

#include "base/bytes.h"

/* For tests within a process: replaces what the environment said, counting anew; NULL: none. Not
 * while other threads call. */
void fgw_fs_set_faults(const char *text);

/* Whole buffer at `offset`, or an error (a short write counts as FGW_ERR_IO or _NOSPACE). */
enum fgw_err fgw_fs_pwrite(int fd, struct fgw_bytes bytes, uint64_t offset) FGW_MUST_CHECK;
/* All of iov; iov is changed. */
enum fgw_err fgw_fs_pwritev(int fd, struct iovec *iov, int count, uint64_t offset) FGW_MUST_CHECK;
/* Reads exactly len bytes; FGW_ERR_END when the file ends before. */
enum fgw_err fgw_fs_pread(int fd, void *out, size_t len, uint64_t offset) FGW_MUST_CHECK;
enum fgw_err fgw_fs_fdatasync(int fd) FGW_MUST_CHECK;
enum fgw_err fgw_fs_fsync(int fd) FGW_MUST_CHECK;
enum fgw_err fgw_fs_fsync_dir(int dir_fd) FGW_MUST_CHECK;
enum fgw_err fgw_fs_ftruncate(int fd, uint64_t size) FGW_MUST_CHECK;
enum fgw_err fgw_fs_rename(int from_dir, const char *from, int to_dir,
                           const char *to) FGW_MUST_CHECK;
enum fgw_err fgw_fs_unlink(int dir_fd, const char *name) FGW_MUST_CHECK;
enum fgw_err fgw_fs_size(int fd, uint64_t *out_size) FGW_MUST_CHECK;
/* Free bytes for an unprivileged process, and the size of the file system. */
enum fgw_err fgw_fs_space(int dir_fd, uint64_t *out_free, uint64_t *out_total) FGW_MUST_CHECK;

/* How every file of a data directory comes into being (design/storage.md section 2): create
 * tmp_dir/name, write `content`, fsync, rename into dir, fsync both directories. With out_fd the
 * open file (O_RDWR) is handed over, else it is closed. An existing dir/name is replaced. */
enum fgw_err fgw_fs_create_durable(int tmp_dir, int dir, const char *name, struct fgw_bytes content,
                                   mode_t mode, int *out_fd) FGW_MUST_CHECK;
/* The same for a file too large for memory: `fd`, made and written as tmp_dir/tmp_name, is synced and
 * takes its place as dir/name. When it cannot, it is removed. */
enum fgw_err fgw_fs_commit_durable(int fd, int tmp_dir, const char *tmp_name, int dir,
                                   const char *name) FGW_MUST_CHECK;
/* Whole file; FGW_ERR_NOT_FOUND when absent, FGW_ERR_TOO_LARGE above the buffer's max. */
enum fgw_err fgw_fs_read_file(int dir_fd, const char *name, struct fgw_buf *out) FGW_MUST_CHECK;

#endif
