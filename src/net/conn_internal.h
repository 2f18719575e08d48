/* conn_internal.h: what conn.c, conn_tls.c and sweep.c share. */
#ifndef FGW_NET_CONN_INTERNAL_H
#define FGW_NET_CONN_INTERNAL_H

#include "base/list.h"
#include "event/fiber.h"
#include "net/conn.h"

struct fgw_sweep;
struct fgw_conn_tls;

/* One direction of a connection. */
struct fgw_conn_side {
    struct fgw_wait wait;
    bool waiting; /* a fiber is, in `wait` */
    uint64_t deadline_ms;
    uint64_t wait_until_ms; /* of the wait going on */
    bool timed_out;
};

struct fgw_conn {
    struct fgw_list node; /* in its sweep */
    struct fgw_loop *loop;
    struct fgw_sweep *sweep;
    struct fgw_poll *poll;
    int fd;
    bool broken;
    struct fgw_conn_side reader;
    struct fgw_conn_side writer;
    uint64_t write_stall_ms;
    uint64_t write_stall_bytes;
    fgw_conn_watch_fn *watch;
    void *watch_arg;
    struct fgw_buf unread;
    struct fgw_conn_tls *tls;
    uint64_t bytes_in;
    uint64_t bytes_out;
};

/* sweep.c: the connections of a loop whose deadlines one timer checks. */
void fgw_sweep_add(struct fgw_conn *conn);
void fgw_sweep_remove(struct fgw_conn *conn);
/* Called by the sweep for each connection; may close it. */
void fgw_conn_check_deadlines(struct fgw_conn *conn, uint64_t now_ms);

/* Suspends the fiber until the socket is ready for it (FGW_POLL_READ or FGW_POLL_WRITE). */
enum fgw_err fgw_conn_wait_ready(struct fgw_conn *conn, int event) FGW_MUST_CHECK;
/* The plain socket below TLS. Without waiting: FGW_ERR_AGAIN. */
enum fgw_err fgw_conn_socket_read(struct fgw_conn *conn, void *out, size_t size,
                                  size_t *out_len) FGW_MUST_CHECK;
enum fgw_err fgw_conn_socket_writev(struct fgw_conn *conn, struct iovec *iov, unsigned count,
                                    bool more) FGW_MUST_CHECK;

/* conn_tls.c */
enum fgw_err fgw_conn_tls_try_read(struct fgw_conn *conn, void *out, size_t size,
                                   size_t *out_len) FGW_MUST_CHECK;
enum fgw_err fgw_conn_tls_writev(struct fgw_conn *conn, struct iovec *iov,
                                 unsigned count) FGW_MUST_CHECK;
bool fgw_conn_tls_has_buffered(const struct fgw_conn *conn);
void fgw_conn_tls_shutdown(struct fgw_conn *conn);
void fgw_conn_tls_free(struct fgw_conn *conn);

#endif
