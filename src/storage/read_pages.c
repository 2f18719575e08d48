/* read_pages.c: see read_pages.h. A block is checked by reading it piece by piece through a small
 * buffer that stays in the processor's cache: cheaper than mapping and unmapping the file, it cannot
 * fault, and it can be asked not to wait. */
#include "storage/read_pages.h"

#include <errno.h>
#include <pthread.h>
#include <sys/uio.h>

#include "base/crc.h"
#include "base/fs.h"

enum { PIECE_SIZE = 128 * 1024 };

/* FGW_ERR_AGAIN when it would have to wait. */
static enum fgw_err read_now(int fd, uint64_t offset, void *out, size_t len)
{
    struct iovec iov = {out, len};
    ssize_t got;
    do {
        got = preadv2(fd, &iov, 1, (off_t)offset, RWF_NOWAIT);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)len ? FGW_OK : FGW_ERR_AGAIN;
}

struct read_job {
    int fd;
    uint64_t offset;
    void *out;
    size_t len;
    enum fgw_err result;
};

static void run_read(void *arg)
{
    struct read_job *job = arg;
    job->result = fgw_fs_pread(job->fd, job->out, job->len, job->offset);
}

enum fgw_err fgw_read_bytes(struct fgw_pool *pool, int fd, uint64_t offset, void *out, size_t len)
{
    if (read_now(fd, offset, out, len) == FGW_OK) {
        return FGW_OK;
    }
    struct read_job job = {fd, offset, out, len, FGW_OK};
    fgw_pool_run(pool, run_read, &job);
    return job.result;
}

/* -- checking in place --------------------------------------------------------------------------- */

struct check_job {
    int fd;
    const struct fgw_group_block *block;
    const struct fgw_check_tap *tap;
    bool may_wait;
    enum fgw_err result;
};

static enum fgw_err read_piece(const struct check_job *job, uint64_t offset, uint8_t *out,
                               size_t len)
{
    if (!job->may_wait) {
        return read_now(job->fd, offset, out, len);
    }
    enum fgw_err err = fgw_fs_pread(job->fd, out, len, offset);
    return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
}

static enum fgw_err check_pieces(const struct check_job *job, uint8_t *piece)
{
    const struct fgw_group_block *block = job->block;
    size_t size = fgw_group_section_size(block->len);
    size_t head_size = size - block->len;
    uint32_t crc = 0;
    for (size_t at = 0; at < size;) {
        size_t len = size - at < PIECE_SIZE ? size - at : PIECE_SIZE;
        enum fgw_err err = read_piece(job, block->offset + at, piece, len);
        if (err != FGW_OK) {
            return err;
        }
        size_t skip = at == 0 ? head_size : 0;
        if (at == 0 && !fgw_group_head_matches(fgw_bytes(piece, head_size), block)) {
            return FGW_ERR_CORRUPT;
        }
        struct fgw_bytes bytes = fgw_bytes(piece + skip, len - skip);
        crc = fgw_crc32c(crc, bytes);
        if (job->tap != NULL) {
            job->tap->see(job->tap->context, at + skip - head_size, bytes);
        }
        at += len;
    }
    return crc == block->crc32c ? FGW_OK : FGW_ERR_CORRUPT;
}

static pthread_key_t buffer_key;
static pthread_once_t buffer_once = PTHREAD_ONCE_INIT;

static void make_buffer_key(void)
{
    FGW_CHECK(pthread_key_create(&buffer_key, fgw_xfree) == 0);
}

/* The thread's own, freed with it. Nobody else uses it meanwhile: no fiber waits inside. */
static uint8_t *piece_buffer(void)
{
    (void)pthread_once(&buffer_once, make_buffer_key);
    uint8_t *buffer = pthread_getspecific(buffer_key);
    if (buffer == NULL) {
        buffer = fgw_xmalloc(PIECE_SIZE);
        FGW_CHECK(pthread_setspecific(buffer_key, buffer) == 0);
    }
    return buffer;
}

static void run_check(void *arg)
{
    struct check_job *job = arg;
    job->result = check_pieces(job, piece_buffer());
}

enum fgw_err fgw_check_block(struct fgw_pool *pool, int fd, const struct fgw_group_block *block,
                             const struct fgw_check_tap *tap)
{
    struct check_job job = {.fd = fd, .block = block, .tap = tap};
    run_check(&job);
    if (job.result == FGW_ERR_AGAIN) {
        job.may_wait = true;
        fgw_pool_run(pool, run_check, &job);
    }
    return job.result;
}
