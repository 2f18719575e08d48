/* conn.h: one stream connection (TCP or Unix socket, plain or TLS) on one loop.
 *
 * Two ways to use it, side by side: a fiber reads and writes as if it blocked (one reading and one
 * writing fiber at a time), or a callback waits for input without any fiber, so that an idle
 * connection costs no stack. All functions belong to the loop's thread.
 * Errors: FGW_ERR_END (the peer ended its side in order), FGW_ERR_CLIENT_GONE (broken, by the peer
 * or fgw_conn_break), FGW_ERR_TIMEOUT (deadline; the connection stays usable).
 * Deadlines are checked by one timer a loop: they pass up to FGW_CONN_SWEEP_MS late.
 */
#ifndef FGW_NET_CONN_H
#define FGW_NET_CONN_H

#include <sys/uio.h>

#include "base/bytes.h"
#include "event/loop.h"

struct fgw_conn;
struct fgw_tls_context;

enum { FGW_CONN_SWEEP_MS = 200 };
#define FGW_CONN_NO_DEADLINE UINT64_MAX

/* Takes a connected, non-blocking fd over. NULL (fd closed) when it cannot be polled. */
struct fgw_conn *fgw_conn_new(struct fgw_loop *loop, int fd);
/* Closes and frees; no fiber may be waiting in it. Takes NULL. */
void fgw_conn_close(struct fgw_conn *conn);
/* Makes every wait on it, now and later, return FGW_ERR_CLIENT_GONE; it must still be closed. */
void fgw_conn_break(struct fgw_conn *conn);
bool fgw_conn_is_broken(const struct fgw_conn *conn);
/* Tells the peer that nothing more will come (shutdown for writing). Best effort, never waits. */
void fgw_conn_shutdown_write(struct fgw_conn *conn);
int fgw_conn_fd(const struct fgw_conn *conn);
uint64_t fgw_conn_bytes_in(const struct fgw_conn *conn);
uint64_t fgw_conn_bytes_out(const struct fgw_conn *conn);

/* -- waiting without a fiber ------------------------------------------------------------------ */

enum fgw_conn_event { FGW_CONN_READABLE, FGW_CONN_DEADLINE };
typedef void fgw_conn_watch_fn(void *arg, enum fgw_conn_event event);
/* fn is called on the loop when input (or its end) can be read, or once when the read deadline has
 * passed, as long as no fiber is reading; it may close the connection. NULL stops it. Check
 * fgw_conn_has_buffered first: buffered input makes no event. */
void fgw_conn_watch(struct fgw_conn *conn, fgw_conn_watch_fn *fn, void *arg);
/* True when fgw_conn_try_read can deliver without the socket becoming readable. */
bool fgw_conn_has_buffered(const struct fgw_conn *conn);
/* Puts bytes back in front of the input (copied). */
void fgw_conn_unread(struct fgw_conn *conn, struct fgw_bytes bytes);

/* -- reading and writing ---------------------------------------------------------------------- */

/* Absolute, on the clock of fgw_loop_now_ms; stays until changed. Default: none. */
void fgw_conn_set_read_deadline(struct fgw_conn *conn, uint64_t deadline_ms);
void fgw_conn_set_write_deadline(struct fgw_conn *conn, uint64_t deadline_ms);
/* A write that has to wait fails with FGW_ERR_TIMEOUT when the peer takes less than min_bytes (at
 * least one) in stall_ms; what the kernel still holds for it counts as not taken, so that a slow
 * reader behind large socket buffers is seen to move. 0: unbounded, the default. */
void fgw_conn_set_write_stall(struct fgw_conn *conn, uint64_t stall_ms, uint64_t min_bytes);

/* At least one byte, without waiting: FGW_ERR_AGAIN when there is none. */
enum fgw_err fgw_conn_try_read(struct fgw_conn *conn, void *out, size_t size,
                               size_t *out_len) FGW_MUST_CHECK;
/* At least one byte; suspends the fiber. */
enum fgw_err fgw_conn_read(struct fgw_conn *conn, void *out, size_t size,
                           size_t *out_len) FGW_MUST_CHECK;
/* Suspends until a try_read may deliver. */
enum fgw_err fgw_conn_wait_readable(struct fgw_conn *conn) FGW_MUST_CHECK;
/* Exactly size bytes; FGW_ERR_END when the input ends before. */
enum fgw_err fgw_conn_read_exact(struct fgw_conn *conn, void *out, size_t size) FGW_MUST_CHECK;
enum fgw_err fgw_conn_write(struct fgw_conn *conn, struct fgw_bytes bytes) FGW_MUST_CHECK;
/* All of iov (which is changed), in one system call where the kernel takes it. more: further bytes
 * follow at once, so the kernel may hold back a part-filled segment. */
enum fgw_err fgw_conn_writev(struct fgw_conn *conn, struct iovec *iov, unsigned count,
                             bool more) FGW_MUST_CHECK;
/* File bytes [offset, offset+len). The caller sees to it that they are in the page cache: a miss
 * would block the loop. FGW_ERR_IO when the file is shorter or cannot be read (the connection is
 * then broken: the peer was promised more). */
enum fgw_err fgw_conn_send_file(struct fgw_conn *conn, int fd, uint64_t offset,
                                uint64_t len) FGW_MUST_CHECK;

/* -- TLS -------------------------------------------------------------------------------------- */

/* Handshakes within the read and write deadlines; from then on all is encrypted. The context is
 * referenced as long as the connection lives. FGW_ERR_CLIENT_GONE, FGW_ERR_TIMEOUT. */
enum fgw_err fgw_conn_start_tls_server(struct fgw_conn *conn,
                                       struct fgw_tls_context *context) FGW_MUST_CHECK;
/* host: name to verify and to send as SNI (or an IP address to verify); error->message tells why. */
enum fgw_err fgw_conn_start_tls_client(struct fgw_conn *conn, struct fgw_tls_context *context,
                                       const char *host, struct fgw_error *error) FGW_MUST_CHECK;
bool fgw_conn_is_tls(const struct fgw_conn *conn);

#endif
