/* server_internal.h: the parts of the server. A worker's part, its connections and its exchanges
 * are touched by that worker's thread only (counters are read from everywhere). A connection is
 * either watched by a callback (no fiber, no exchange, no buffer unless a head came in part) or
 * owned by the one fiber that serves its requests in order. */
#ifndef FGW_HTTP_SERVER_INTERNAL_H
#define FGW_HTTP_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "event/fiber.h"
#include "event/workers.h"
#include "http/chunked.h"
#include "http/head.h"
#include "http/server.h"
#include "net/acceptor.h"
#include "net/conn.h"
#include "net/listener.h"
#include "net/tls.h"

enum {
    FGW_HTTP_SCRATCH_SIZE = 64 * 1024, /* what one read of a head may bring along */
    FGW_HTTP_BODY_BUFFER_SIZE = 256 * 1024,
    FGW_HTTP_SMALL_BUFFER_SIZE = 16 * 1024,
    FGW_HTTP_DRAIN_MAX = 64 * 1024,     /* rest of a body that is read to keep the connection */
    FGW_HTTP_RATE_WINDOW_MS = 20 * 1000 /* over which FGW_MIN_BODY_RATE is averaged */
};

struct fgw_http_counters {
    _Atomic uint64_t accepted, refused, requests, bytes_in, bytes_out;
};

struct fgw_http_worker {
    struct fgw_http_server *server;
    struct fgw_loop *loop;
    unsigned index;
    struct fgw_list conns;
    struct fgw_list idle_exchanges;
    unsigned idle_exchange_count;
    struct fgw_list idle_buffers; /* of FGW_HTTP_BODY_BUFFER_SIZE, linked through their bytes */
    unsigned idle_buffer_count;
    unsigned used_buffer_count;
    unsigned busy; /* connections owned by a fiber */
    unsigned lingering;
    struct fgw_wait *all_idle; /* signalled when busy becomes 0, while stopping */
    uint8_t *scratch;
    struct fgw_http_counters counters;
};

struct fgw_http_server {
    struct fgw_http_server_options options;
    size_t body_buffer_size;
    struct fgw_http_worker *workers;
    unsigned worker_count;
    _Atomic unsigned *open_per_worker;
    struct fgw_listener **listeners;
    struct fgw_acceptor **acceptors; /* same index; on worker index % worker_count */
    _Atomic bool stopping;
    bool stopped;
    uint64_t grace_ms;
    struct {
        pthread_mutex_t mutex;
        struct fgw_tls_context *context;
    } tls;
};

enum fgw_http_conn_state {
    FGW_HTTP_CONN_WATCHED, /* between requests, or a head came in part */
    FGW_HTTP_CONN_BUSY,    /* a fiber owns it */
    FGW_HTTP_CONN_LINGER   /* answered and shut down; input is dropped until the peer closes */
};

struct fgw_http_input {
    bool is_body_buffer; /* of the worker's body_buffer_size */
    uint8_t *ptr;
    size_t start;
    size_t end;
    size_t cap;
};

struct fgw_http_conn {
    struct fgw_list node;
    struct fgw_http_worker *worker;
    struct fgw_conn *net;
    struct fgw_tls_context *tls; /* to begin with, NULL once the handshake is done or plain */
    enum fgw_http_conn_state state;
    bool is_tls;
    bool counted; /* in open_per_worker */
    bool head_begun;
    bool last_read_short; /* the socket is empty: wait before the next read */
    uint64_t head_begun_ns;
    struct fgw_http_scan scan;
    struct fgw_http_input input; /* read and not consumed */
    uint64_t counted_in;         /* bytes already in the worker's counters */
    uint64_t counted_out;
    char peer[FGW_ADDRESS_TEXT_SIZE];
};

enum fgw_http_body_kind { FGW_HTTP_BODY_NONE, FGW_HTTP_BODY_LENGTH, FGW_HTTP_BODY_CHUNKED };

struct fgw_http_body {
    enum fgw_http_body_kind kind;
    uint64_t remaining;
    struct fgw_http_chunked chunked;
    bool continue_wanted; /* the client waits for 100 Continue */
    enum fgw_err ended;   /* FGW_OK while there may be more; the answer of every later read */
    uint64_t window_waited_ms;
    uint64_t window_bytes;
};

struct fgw_http_response {
    int status;
    int64_t length;
    bool started;
    bool head_sent;
    bool ended;
    bool chunked;
    bool no_body;     /* HEAD, 204, 304 */
    bool keep;        /* what the head said; valid once it is sent */
    uint64_t written; /* by the handler */
    uint64_t sent;    /* to the client */
    /* what follows outlives the exchange */
    struct fgw_buf headers;
    struct fgw_buf pending; /* small writes, gathered */
    char prefix[320];
};

struct fgw_http_exchange {
    struct fgw_list node; /* in idle_exchanges */
    struct fgw_http_conn *conn;
    struct fgw_http_worker *worker;
    struct fgw_arena arena;
    struct fgw_http_request request;
    uint64_t started_ns;
    struct fgw_http_body body;
    struct fgw_http_response response;
    enum fgw_err refused; /* FGW_OK: for the handler */
    const char *refused_message;
    bool close_after;
    bool broken;
    bool upgraded;
};

static inline void fgw_http_count(_Atomic uint64_t *counter, uint64_t more)
{
    /* one writer: no locked instruction is needed */
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, now + more, memory_order_relaxed);
}

/* server_conn.c */
void fgw_http_conn_accepted(void *server, unsigned worker_index, int fd, const char *peer);
/* Closes what no fiber owns. */
void fgw_http_worker_close_idle(struct fgw_http_worker *worker);
void fgw_http_worker_break_all(struct fgw_http_worker *worker);
void fgw_http_worker_deinit(struct fgw_http_worker *worker);

/* server_body.c */
static inline struct fgw_bytes fgw_http_input_view(const struct fgw_http_input *input)
{
    return fgw_bytes(input->ptr + input->start, input->end - input->start);
}
void fgw_http_input_append(struct fgw_http_conn *conn, struct fgw_bytes bytes);
/* Gives the memory back when all is consumed. */
void fgw_http_input_trim(struct fgw_http_conn *conn);
/* Before a wait of unknown length: no more memory than the rest needs. */
void fgw_http_input_shrink(struct fgw_http_conn *conn);
void fgw_http_input_free(struct fgw_http_conn *conn);
void fgw_http_body_begin(struct fgw_http_exchange *exchange);
/* True when what is left of the body can be read without trouble after the answer. */
bool fgw_http_body_is_drainable(const struct fgw_http_exchange *exchange);
/* Reads the rest; false when the connection must close instead. */
bool fgw_http_body_drain(struct fgw_http_exchange *exchange);

/* server_response.c */
void fgw_http_response_reset_all(struct fgw_http_exchange *exchange);

#endif
