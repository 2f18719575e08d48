/* conn.c: see conn.h. The poll stays armed for reading between requests, and for writing while a
 * large answer goes out: an event that nobody waits for disarms it, so that steady traffic costs no
 * epoll_ctl at all. */
#include "net/conn.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/conn_internal.h"

enum {
    SENDFILE_STEP = 1024 * 1024, /* then others of this loop have their turn */
    TLS_FILE_STEP = 64 * 1024
};

static void signal_side(struct fgw_conn_side *side)
{
    side->waiting = false;
    fgw_wait_signal(&side->wait);
}

static void on_ready(void *arg, int events)
{
    struct fgw_conn *conn = arg;
    int unwanted = 0;
    if ((events & FGW_POLL_WRITE) != 0) {
        if (conn->writer.waiting) {
            signal_side(&conn->writer);
        } else {
            unwanted |= FGW_POLL_WRITE;
        }
    }
    bool readable = (events & FGW_POLL_READ) != 0;
    if (readable && !conn->reader.waiting && conn->watch == NULL) {
        unwanted |= FGW_POLL_READ;
    }
    if (unwanted != 0) {
        fgw_poll_set(conn->poll, fgw_poll_events(conn->poll) & ~unwanted);
    }
    if (readable && conn->reader.waiting) {
        signal_side(&conn->reader);
    } else if (readable && conn->watch != NULL) {
        conn->watch(conn->watch_arg, FGW_CONN_READABLE); /* may free conn */
    }
}

struct fgw_conn *fgw_conn_new(struct fgw_loop *loop, int fd)
{
    struct fgw_conn *conn = fgw_xcalloc(1, sizeof *conn);
    conn->loop = loop;
    conn->fd = fd;
    conn->reader.deadline_ms = FGW_CONN_NO_DEADLINE;
    conn->writer.deadline_ms = FGW_CONN_NO_DEADLINE;
    fgw_buf_init(&conn->unread, 0);
    conn->poll = fgw_poll_new(loop, fd, on_ready, conn);
    if (conn->poll == NULL) {
        (void)close(fd);
        fgw_xfree(conn);
        return NULL;
    }
    fgw_sweep_add(conn);
    return conn;
}

void fgw_conn_close(struct fgw_conn *conn)
{
    if (conn == NULL) {
        return;
    }
    FGW_CHECK(!conn->reader.waiting && !conn->writer.waiting);
    fgw_conn_tls_shutdown(conn);
    fgw_conn_tls_free(conn);
    fgw_sweep_remove(conn);
    fgw_poll_free(conn->poll);
    (void)close(conn->fd);
    fgw_buf_deinit(&conn->unread);
    fgw_xfree(conn);
}

void fgw_conn_break(struct fgw_conn *conn)
{
    conn->broken = true;
    (void)shutdown(conn->fd, SHUT_RDWR);
    if (conn->reader.waiting) {
        signal_side(&conn->reader);
    }
    if (conn->writer.waiting) {
        signal_side(&conn->writer);
    }
}

bool fgw_conn_is_broken(const struct fgw_conn *conn)
{
    return conn->broken;
}

void fgw_conn_shutdown_write(struct fgw_conn *conn)
{
    fgw_conn_tls_shutdown(conn);
    (void)shutdown(conn->fd, SHUT_WR);
}

int fgw_conn_fd(const struct fgw_conn *conn)
{
    return conn->fd;
}

uint64_t fgw_conn_bytes_in(const struct fgw_conn *conn)
{
    return conn->bytes_in;
}

uint64_t fgw_conn_bytes_out(const struct fgw_conn *conn)
{
    return conn->bytes_out;
}

void fgw_conn_watch(struct fgw_conn *conn, fgw_conn_watch_fn *fn, void *arg)
{
    conn->watch = fn;
    conn->watch_arg = arg;
    if (fn != NULL) {
        fgw_poll_set(conn->poll, fgw_poll_events(conn->poll) | FGW_POLL_READ);
    }
}

bool fgw_conn_has_buffered(const struct fgw_conn *conn)
{
    return conn->unread.len > 0 || (conn->tls != NULL && fgw_conn_tls_has_buffered(conn));
}

void fgw_conn_unread(struct fgw_conn *conn, struct fgw_bytes bytes)
{
    struct fgw_buf joined;
    fgw_buf_init(&joined, 0);
    (void)fgw_buf_append(&joined, bytes);
    (void)fgw_buf_append(&joined, fgw_buf_bytes(&conn->unread));
    fgw_buf_deinit(&conn->unread);
    conn->unread = joined;
}

void fgw_conn_set_read_deadline(struct fgw_conn *conn, uint64_t deadline_ms)
{
    conn->reader.deadline_ms = deadline_ms;
}

void fgw_conn_set_write_deadline(struct fgw_conn *conn, uint64_t deadline_ms)
{
    conn->writer.deadline_ms = deadline_ms;
}

void fgw_conn_set_write_stall(struct fgw_conn *conn, uint64_t stall_ms, uint64_t min_bytes)
{
    conn->write_stall_ms = stall_ms;
    conn->write_stall_bytes = min_bytes == 0 ? 1 : min_bytes;
}

/* -- waiting ---------------------------------------------------------------------------------- */

static void check_side(struct fgw_conn_side *side, uint64_t now_ms)
{
    if (side->waiting && now_ms >= side->wait_until_ms) {
        side->timed_out = true;
        signal_side(side);
    }
}

void fgw_conn_check_deadlines(struct fgw_conn *conn, uint64_t now_ms)
{
    bool fiber_reads = conn->reader.waiting;
    check_side(&conn->writer, now_ms);
    check_side(&conn->reader, now_ms);
    if (!fiber_reads && conn->watch != NULL && now_ms >= conn->reader.deadline_ms) {
        conn->reader.deadline_ms = FGW_CONN_NO_DEADLINE;
        conn->watch(conn->watch_arg, FGW_CONN_DEADLINE); /* may free conn */
    }
}

/* One wait, at most until until_ms. */
static enum fgw_err wait_once(struct fgw_conn *conn, struct fgw_conn_side *side, int event,
                              uint64_t until_ms)
{
    FGW_CHECK(!side->waiting);
    fgw_wait_init(&side->wait, 1);
    side->waiting = true;
    side->wait_until_ms = until_ms;
    side->timed_out = false;
    fgw_poll_set(conn->poll, fgw_poll_events(conn->poll) | event);
    fgw_wait_for(&side->wait);
    if (conn->broken) {
        return FGW_ERR_CLIENT_GONE;
    }
    return side->timed_out ? FGW_ERR_TIMEOUT : FGW_OK;
}

/* Bytes written and not yet acknowledged by the peer's kernel. */
static uint64_t queued_bytes(const struct fgw_conn *conn)
{
    int queued = 0;
    return ioctl(conn->fd, SIOCOUTQ, &queued) == 0 && queued > 0 ? (uint64_t)queued : 0;
}

enum fgw_err fgw_conn_wait_ready(struct fgw_conn *conn, int event)
{
    struct fgw_conn_side *side = event == FGW_POLL_READ ? &conn->reader : &conn->writer;
    bool stalls = side == &conn->writer && conn->write_stall_ms != 0;
    for (;;) {
        uint64_t now_ms = fgw_loop_now_ms(conn->loop);
        if (conn->broken) {
            return FGW_ERR_CLIENT_GONE;
        }
        if (now_ms >= side->deadline_ms) {
            return FGW_ERR_TIMEOUT;
        }
        if (!stalls || now_ms + conn->write_stall_ms >= side->deadline_ms) {
            return wait_once(conn, side, event, side->deadline_ms);
        }
        uint64_t before = queued_bytes(conn);
        enum fgw_err err = wait_once(conn, side, event, now_ms + conn->write_stall_ms);
        if (err != FGW_ERR_TIMEOUT || queued_bytes(conn) + conn->write_stall_bytes > before) {
            return err;
        }
    }
}

enum fgw_err fgw_conn_wait_readable(struct fgw_conn *conn)
{
    return fgw_conn_has_buffered(conn) ? FGW_OK : fgw_conn_wait_ready(conn, FGW_POLL_READ);
}

/* -- the socket ------------------------------------------------------------------------------- */

static enum fgw_err gone(struct fgw_conn *conn)
{
    conn->broken = true;
    return FGW_ERR_CLIENT_GONE;
}

enum fgw_err fgw_conn_socket_read(struct fgw_conn *conn, void *out, size_t size, size_t *out_len)
{
    if (conn->broken) {
        return FGW_ERR_CLIENT_GONE;
    }
    ssize_t got;
    do {
        got = read(conn->fd, out, size);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        conn->bytes_in += (uint64_t)got;
        *out_len = (size_t)got;
        return FGW_OK;
    }
    if (got == 0) {
        return FGW_ERR_END;
    }
    return errno == EAGAIN ? FGW_ERR_AGAIN : gone(conn);
}

/* Drops what was sent from the front; returns what is left. */
static unsigned advance(struct iovec **iov, unsigned count, size_t sent)
{
    while (count > 0 && sent >= (*iov)->iov_len) {
        sent -= (*iov)->iov_len;
        (*iov)++;
        count--;
    }
    if (count > 0) {
        (*iov)->iov_base = (uint8_t *)(*iov)->iov_base + sent;
        (*iov)->iov_len -= sent;
    }
    return count;
}

enum fgw_err fgw_conn_socket_writev(struct fgw_conn *conn, struct iovec *iov, unsigned count,
                                    bool more)
{
    count = advance(&iov, count, 0);
    while (count > 0) {
        if (conn->broken) {
            return FGW_ERR_CLIENT_GONE;
        }
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
        ssize_t sent = sendmsg(conn->fd, &message, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
        if (sent >= 0) {
            conn->bytes_out += (uint64_t)sent;
            count = advance(&iov, count, (size_t)sent);
        } else if (errno == EAGAIN) {
            enum fgw_err err = fgw_conn_wait_ready(conn, FGW_POLL_WRITE);
            if (err != FGW_OK) {
                return err;
            }
        } else if (errno != EINTR) {
            return gone(conn);
        }
    }
    return FGW_OK;
}

/* -- reading and writing ---------------------------------------------------------------------- */

static size_t take_unread(struct fgw_conn *conn, void *out, size_t size)
{
    size_t len = conn->unread.len < size ? conn->unread.len : size;
    memcpy(out, conn->unread.ptr, len);
    fgw_buf_consume(&conn->unread, len);
    if (conn->unread.len == 0) {
        fgw_buf_deinit(&conn->unread);
    }
    return len;
}

enum fgw_err fgw_conn_try_read(struct fgw_conn *conn, void *out, size_t size, size_t *out_len)
{
    if (conn->unread.len > 0) {
        *out_len = take_unread(conn, out, size);
        return FGW_OK;
    }
    if (conn->tls != NULL) {
        return fgw_conn_tls_try_read(conn, out, size, out_len);
    }
    return fgw_conn_socket_read(conn, out, size, out_len);
}

enum fgw_err fgw_conn_read(struct fgw_conn *conn, void *out, size_t size, size_t *out_len)
{
    for (;;) {
        enum fgw_err err = fgw_conn_try_read(conn, out, size, out_len);
        if (err != FGW_ERR_AGAIN) {
            return err;
        }
        err = fgw_conn_wait_ready(conn, FGW_POLL_READ);
        if (err != FGW_OK) {
            return err;
        }
    }
}

enum fgw_err fgw_conn_read_exact(struct fgw_conn *conn, void *out, size_t size)
{
    uint8_t *next = out;
    while (size > 0) {
        size_t got = 0;
        enum fgw_err err = fgw_conn_read(conn, next, size, &got);
        if (err != FGW_OK) {
            return err;
        }
        next += got;
        size -= got;
    }
    return FGW_OK;
}

enum fgw_err fgw_conn_writev(struct fgw_conn *conn, struct iovec *iov, unsigned count, bool more)
{
    if (conn->tls != NULL) {
        return fgw_conn_tls_writev(conn, iov, count);
    }
    return fgw_conn_socket_writev(conn, iov, count, more);
}

enum fgw_err fgw_conn_write(struct fgw_conn *conn, struct fgw_bytes bytes)
{
    struct iovec iov = {(void *)(uintptr_t)bytes.ptr, bytes.len};
    return fgw_conn_writev(conn, &iov, 1, false);
}

static enum fgw_err file_failed(struct fgw_conn *conn)
{
    fgw_conn_break(conn);
    return FGW_ERR_IO;
}

static enum fgw_err send_file_plain(struct fgw_conn *conn, int fd, uint64_t offset, uint64_t len)
{
    off_t at = (off_t)offset;
    while (len > 0) {
        if (conn->broken) {
            return FGW_ERR_CLIENT_GONE;
        }
        size_t step = len < SENDFILE_STEP ? (size_t)len : SENDFILE_STEP;
        ssize_t sent = sendfile(conn->fd, fd, &at, step);
        if (sent > 0) {
            conn->bytes_out += (uint64_t)sent;
            len -= (uint64_t)sent;
            if (len > 0 && (size_t)sent == step) {
                fgw_fiber_yield();
            }
        } else if (sent < 0 && errno == EAGAIN) {
            enum fgw_err err = fgw_conn_wait_ready(conn, FGW_POLL_WRITE);
            if (err != FGW_OK) {
                return err;
            }
        } else if (sent == 0 || errno == EIO || errno == EINVAL || errno == EBADF) {
            return file_failed(conn);
        } else if (errno != EINTR) {
            return gone(conn);
        }
    }
    return FGW_OK;
}

static enum fgw_err send_file_copied(struct fgw_conn *conn, int fd, uint64_t offset, uint64_t len)
{
    enum fgw_err err = FGW_OK;
    uint8_t *step = fgw_xmalloc(TLS_FILE_STEP);
    while (len > 0 && err == FGW_OK) {
        size_t want = len < TLS_FILE_STEP ? (size_t)len : TLS_FILE_STEP;
        ssize_t got = pread(fd, step, want, (off_t)offset);
        if (got <= 0) {
            err = file_failed(conn);
            break;
        }
        err = fgw_conn_write(conn, fgw_bytes(step, (size_t)got));
        offset += (uint64_t)got;
        len -= (uint64_t)got;
    }
    fgw_xfree(step);
    return err;
}

enum fgw_err fgw_conn_send_file(struct fgw_conn *conn, int fd, uint64_t offset, uint64_t len)
{
    return conn->tls != NULL ? send_file_copied(conn, fd, offset, len)
                             : send_file_plain(conn, fd, offset, len);
}

bool fgw_conn_is_tls(const struct fgw_conn *conn)
{
    return conn->tls != NULL;
}
