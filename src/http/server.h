/* server.h: HTTP/1.1 server. Each request is executed by one fiber of the worker that owns its
 * connection; the fiber reads the body and writes the answer through the exchange, with
 * back-pressure both ways. The head has been checked (strict llhttp plus own rules) before the
 * handler sees it: what fails there is answered 400 and closed by the server itself.
 *
 * Contract of a handler: read as much of the body as it likes, start one answer, end it, return.
 *  - Returning without an answer sends 500; returning in the middle of one closes the connection.
 *  - A body that was not read to its end is drained when it is small, or the connection closes
 *    after the answer ("Connection: close"); with Expect: 100-continue and no 100 sent it always
 *    closes. The next request on a kept connection is therefore always read from its first byte.
 *  - All functions return FGW_ERR_CLIENT_GONE once the connection is broken; the handler just
 *    cleans up and returns.
 *  - HEAD and 304/204 answers: bytes written are counted and dropped.
 */
#ifndef FGW_HTTP_SERVER_H
#define FGW_HTTP_SERVER_H

#include "base/arena.h"
#include "event/loop.h"
#include "http/message.h"

struct fgw_http_exchange;
struct fgw_conn;

/* -- request --------------------------------------------------------------------------------- */

const struct fgw_http_request *fgw_http_request(const struct fgw_http_exchange *exchange);
/* Lives until the exchange ends. */
struct fgw_arena *fgw_http_arena(struct fgw_http_exchange *exchange);
/* When the first byte of the head arrived (fgw_clock_boot_ns). */
uint64_t fgw_http_started_ns(const struct fgw_http_exchange *exchange);

/* Next piece of the body (transfer coding removed), at least one byte, valid until the next call on
 * this exchange; sends "100 Continue" first when the client waits for it. FGW_ERR_END at the end;
 * FGW_ERR_INCOMPLETE_BODY, FGW_ERR_REQUEST_TIMEOUT (slower than FGW_MIN_BODY_RATE),
 * FGW_ERR_CLIENT_GONE, FGW_ERR_BAD_REQUEST (broken chunked coding) end the connection. */
enum fgw_err fgw_http_body_read(struct fgw_http_exchange *exchange,
                                struct fgw_bytes *out_piece) FGW_MUST_CHECK;

/* The same, but bytes that have not been read from the connection yet may be read straight to `room`
 * (of `size` bytes, 0: none): *out_piece then begins there. Only bodies of a known length are. */
enum fgw_err fgw_http_body_read_to(struct fgw_http_exchange *exchange, uint8_t *room, size_t size,
                                   struct fgw_bytes *out_piece) FGW_MUST_CHECK;

/* -- answer ---------------------------------------------------------------------------------- */

enum { FGW_HTTP_LENGTH_UNKNOWN = -1 };

/* Begins the answer: nothing is sent yet; again as long as nothing was. Whether the connection can
 * be kept is decided when the head goes out: with a large part of the body unread then, it closes. content_length in bytes, or FGW_HTTP_LENGTH_UNKNOWN
 * (chunked coding on 1.1, until close on 1.0). Adds Date, Server, Content-Length,
 * Transfer-Encoding and Connection as needed: the handler must not. */
void fgw_http_response_start(struct fgw_http_exchange *exchange, int status,
                             int64_t content_length);
/* Before the first write. CR, LF and NUL in the value are replaced by blanks. */
void fgw_http_response_header(struct fgw_http_exchange *exchange, const char *name,
                              struct fgw_bytes value);
void fgw_http_response_headerf(struct fgw_http_exchange *exchange, const char *name,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Head (if not sent) and bytes go out in one system call where possible; suspends until the bytes
 * are taken by the kernel or copied. */
enum fgw_err fgw_http_response_write(struct fgw_http_exchange *exchange, struct fgw_bytes bytes);
/* Bytes [offset, offset+len) of a file by sendfile (read and encrypted under TLS). They should be in
 * the page cache: a miss blocks the worker. A file that ends before breaks the connection and
 * returns FGW_ERR_IO. */
enum fgw_err fgw_http_response_send_file(struct fgw_http_exchange *exchange, int fd,
                                         uint64_t offset, uint64_t len);
/* Pushes out what is buffered now (e.g. white space that keeps a slow answer alive). */
enum fgw_err fgw_http_response_flush(struct fgw_http_exchange *exchange);
/* Ends the answer; fewer bytes written than announced closes the connection. */
enum fgw_err fgw_http_response_end(struct fgw_http_exchange *exchange);
/* Forgets status and headers while nothing was sent (e.g. to answer with an error instead); false
 * when it is too late. */
bool fgw_http_response_reset(struct fgw_http_exchange *exchange);
/* start + headers so far + body + end in one. content_type NULL: none. */
enum fgw_err fgw_http_respond(struct fgw_http_exchange *exchange, int status,
                              const char *content_type, struct fgw_bytes body);
bool fgw_http_response_started(const struct fgw_http_exchange *exchange);
/* Status and body bytes sent so far, for the access log. */
int fgw_http_response_status(const struct fgw_http_exchange *exchange);
uint64_t fgw_http_response_bytes(const struct fgw_http_exchange *exchange);
/* The connection closes after this answer. */
void fgw_http_close_after(struct fgw_http_exchange *exchange);
/* Breaks the connection at once: the only honest end of a body that cannot be finished. */
void fgw_http_abort(struct fgw_http_exchange *exchange);
/* Answers 101 with the headers given so far and hands the connection over (with bytes already read
 * behind the head, to be consumed first). The caller closes it. */
enum fgw_err fgw_http_upgrade(struct fgw_http_exchange *exchange, const char *protocol,
                              struct fgw_conn **out_conn) FGW_MUST_CHECK;

/* -- server ---------------------------------------------------------------------------------- */

typedef void fgw_http_handler(void *context, struct fgw_http_exchange *exchange);

struct fgw_tls_context; /* net/tls.h */
struct fgw_workers;

struct fgw_http_server_options {
    const char *const *addresses; /* "127.0.0.1:8078", "[::]:8078", ":8078",
                                     "unix:/path" (mode 0600) */
    size_t address_count;
    struct fgw_workers *workers; /* whose loops serve */
    fgw_http_handler *handler;
    void *context;
    struct fgw_tls_context *tls; /* NULL: plain */
    /* Called instead of the built-in plain answer when the server itself must refuse a request
     * (broken head, too large): writes the body in the protocol's error format. May be NULL. */
    void (*on_refused)(void *context, struct fgw_http_exchange *exchange, enum fgw_err err,
                       const char *message);
    size_t max_header_bytes;        /* FGW_MAX_HEADER */
    uint64_t header_timeout_ms;     /* FGW_HEADER_TIMEOUT */
    uint64_t first_byte_timeout_ms; /* FGW_FIRST_BYTE_TIMEOUT: of a new connection */
    uint64_t idle_timeout_ms;       /* FGW_IDLE_TIMEOUT: between requests */
    uint64_t min_body_rate_bytes_s; /* FGW_MIN_BODY_RATE, averaged over 20 s */
    unsigned max_connections;       /* FGW_MAX_CONNECTIONS: above it 503 and close */
    size_t conn_inflight_bytes;     /* FGW_CONN_INFLIGHT: unsent answer + unread body */
};

struct fgw_http_server_stats {
    uint64_t accepted, refused, open, requests, bytes_in, bytes_out;
};

struct fgw_http_server;

/* Binds (with a probe, as SO_REUSEPORT alone would not notice a taken port, and a lock per address)
 * and starts accepting. FGW_ERR_IN_USE with the holder's name and pid in error->message. From a
 * thread that is no worker. Sets SIGPIPE to be ignored. References options->tls on its own. */
enum fgw_err fgw_http_server_start(const struct fgw_http_server_options *options,
                                   struct fgw_http_server **out_server,
                                   struct fgw_error *error) FGW_MUST_CHECK;
/* "127.0.0.1:8078" really bound (port 0 resolved), by index of address. */
const char *fgw_http_server_address(const struct fgw_http_server *server, size_t index);
void fgw_http_server_stats(struct fgw_http_server *server, struct fgw_http_server_stats *out_stats);
/* New certificate for new connections (SIGHUP). */
void fgw_http_server_set_tls(struct fgw_http_server *server, struct fgw_tls_context *tls);
/* Stops accepting, closes idle connections, waits up to grace_ms for requests in flight (each
 * answer says Connection: close), then breaks what is left. From a thread that is no worker. */
void fgw_http_server_stop(struct fgw_http_server *server, uint64_t grace_ms);
void fgw_http_server_free(struct fgw_http_server *server);

#endif
