/* server_conn.c: a connection from accept to close. Between requests a callback watches it; once a
 * head is complete a fiber runs the handler and goes on with the requests that are already there
 * (pipelining, strictly in order). Closing after an answer lingers where input may still be on its
 * way: closing a socket with unread input resets it, and the client might never see the answer. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "http/server_internal.h"

enum {
    IDLE_EXCHANGES_MAX = 64,
    LINGER_MS = 5 * 1000,
    LINGER_REFUSED_MS = 1000,
    LINGERING_MAX = 256,   /* per worker; above it connections are closed the hard way */
    REQUESTS_PER_TURN = 16 /* pipelined; then others of this loop have their turn */
};

static void on_event(void *arg, enum fgw_conn_event event);

/* -- exchanges --------------------------------------------------------------------------------- */

static struct fgw_http_exchange *take_exchange(struct fgw_http_conn *conn)
{
    struct fgw_http_worker *worker = conn->worker;
    struct fgw_http_exchange *exchange;
    struct fgw_list *node = fgw_list_pop_front(&worker->idle_exchanges);
    if (node != NULL) {
        worker->idle_exchange_count--;
        exchange = FGW_CONTAINER_OF(node, struct fgw_http_exchange, node);
    } else {
        exchange = fgw_xcalloc(1, sizeof *exchange);
        fgw_arena_init(&exchange->arena, 0);
        exchange->worker = worker;
    }
    exchange->conn = conn;
    exchange->started_ns = conn->head_begun_ns;
    exchange->request = (struct fgw_http_request){.method = FGW_HTTP_OTHER,
                                                  .raw_path = FGW_LIT("/"),
                                                  .target = FGW_LIT("/"),
                                                  .tls = conn->is_tls,
                                                  .peer = conn->peer};
    exchange->refused = FGW_OK;
    exchange->refused_message = NULL;
    exchange->close_after = false;
    exchange->broken = false;
    exchange->upgraded = false;
    fgw_http_response_reset_all(exchange);
    return exchange;
}

static void free_exchange(struct fgw_http_exchange *exchange)
{
    fgw_arena_deinit(&exchange->arena);
    fgw_buf_deinit(&exchange->response.headers);
    fgw_buf_deinit(&exchange->response.pending);
    fgw_xfree(exchange);
}

static void give_back_exchange(struct fgw_http_exchange *exchange)
{
    struct fgw_http_worker *worker = exchange->worker;
    if (worker->idle_exchange_count >= IDLE_EXCHANGES_MAX) {
        free_exchange(exchange);
        return;
    }
    fgw_arena_reset(&exchange->arena);
    worker->idle_exchange_count++;
    fgw_list_push_front(&worker->idle_exchanges, &exchange->node);
}

/* -- the end of a connection -------------------------------------------------------------------- */

static void uncount(struct fgw_http_conn *conn)
{
    if (conn->counted) {
        conn->counted = false;
        atomic_fetch_sub(&conn->worker->server->open_per_worker[conn->worker->index], 1);
    }
}

static void count_bytes(struct fgw_http_conn *conn)
{
    uint64_t in = fgw_conn_bytes_in(conn->net);
    uint64_t out = fgw_conn_bytes_out(conn->net);
    fgw_http_count(&conn->worker->counters.bytes_in, in - conn->counted_in);
    fgw_http_count(&conn->worker->counters.bytes_out, out - conn->counted_out);
    conn->counted_in = in;
    conn->counted_out = out;
}

static void close_conn(struct fgw_http_conn *conn)
{
    uncount(conn);
    if (conn->state == FGW_HTTP_CONN_LINGER) {
        conn->worker->lingering--;
    }
    if (conn->net != NULL) {
        count_bytes(conn);
        fgw_conn_close(conn->net);
    }
    fgw_tls_unref(conn->tls);
    fgw_http_input_free(conn);
    fgw_list_remove(&conn->node);
    fgw_xfree(conn);
}

static void linger(struct fgw_http_conn *conn, uint64_t for_ms)
{
    struct fgw_http_worker *worker = conn->worker;
    if (worker->lingering >= LINGERING_MAX || atomic_load(&worker->server->stopping)) {
        close_conn(conn);
        return;
    }
    uncount(conn);
    worker->lingering++;
    conn->state = FGW_HTTP_CONN_LINGER;
    fgw_http_input_free(conn);
    fgw_conn_shutdown_write(conn->net);
    fgw_conn_set_read_deadline(conn->net, fgw_loop_now_ms(worker->loop) + for_ms);
    fgw_conn_watch(conn->net, on_event, conn);
}

static void linger_read(struct fgw_http_conn *conn)
{
    int fd = fgw_conn_fd(conn->net); /* below TLS: nobody wants to know what it says */
    ssize_t got = recv(fd, conn->worker->scratch, FGW_HTTP_SCRATCH_SIZE, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        close_conn(conn);
    }
}

static void leave_busy(struct fgw_http_worker *worker)
{
    worker->busy--;
    if (worker->busy == 0 && worker->all_idle != NULL) {
        struct fgw_wait *wait = worker->all_idle;
        worker->all_idle = NULL;
        fgw_wait_signal(wait);
    }
}

/* -- running requests -------------------------------------------------------------------------- */

static void answer_refused(struct fgw_http_exchange *exchange)
{
    const struct fgw_http_server_options *options = &exchange->worker->server->options;
    const char *message = exchange->refused_message != NULL ? exchange->refused_message
                                                            : fgw_err_text(exchange->refused);
    fgw_http_count(&exchange->worker->counters.refused, 1);
    exchange->close_after = true;
    if (options->on_refused != NULL) {
        options->on_refused(options->context, exchange, exchange->refused, message);
    }
    if (!exchange->response.started) {
        (void)fgw_http_respond(exchange, fgw_err_http_status(exchange->refused), "text/plain",
                               fgw_bytes_str(message));
    }
}

static void run(struct fgw_http_exchange *exchange)
{
    const struct fgw_http_server_options *options = &exchange->worker->server->options;
    if (exchange->refused != FGW_OK) {
        answer_refused(exchange);
        return;
    }
    fgw_http_count(&exchange->worker->counters.requests, 1);
    options->handler(options->context, exchange);
    if (!exchange->response.started && !exchange->broken) {
        exchange->close_after = true;
        (void)fgw_http_respond(exchange, 500, NULL, fgw_bytes(NULL, 0));
    }
}

enum after { AFTER_KEEP, AFTER_LINGER, AFTER_CLOSE };

static enum after finish(struct fgw_http_exchange *exchange)
{
    const struct fgw_http_response *response = &exchange->response;
    if (exchange->upgraded || exchange->broken || !response->ended) {
        return AFTER_CLOSE;
    }
    if (response->keep && !exchange->close_after && fgw_http_body_drain(exchange)) {
        return AFTER_KEEP;
    }
    bool client_closes = !exchange->request.keep_alive && exchange->refused == FGW_OK;
    return client_closes && exchange->body.ended == FGW_ERR_END ? AFTER_CLOSE : AFTER_LINGER;
}

/* -- heads ------------------------------------------------------------------------------------- */

static void mark_refused(struct fgw_http_exchange *exchange, struct fgw_bytes head,
                         enum fgw_err err, const char *reason)
{
    exchange->refused = err;
    exchange->refused_message = reason;
    exchange->request.method = fgw_http_head_guess_method(head);
    exchange->body = (struct fgw_http_body){.ended = FGW_ERR_END};
}

static struct fgw_http_exchange *refuse(struct fgw_http_conn *conn, struct fgw_bytes head,
                                        enum fgw_err err, const char *reason)
{
    struct fgw_http_exchange *exchange = take_exchange(conn);
    mark_refused(exchange, head, err, reason);
    return exchange;
}

static struct fgw_http_exchange *begin_exchange(struct fgw_http_conn *conn, struct fgw_bytes head)
{
    struct fgw_http_exchange *exchange = take_exchange(conn);
    const char *reason = NULL;
    head = fgw_arena_copy(&exchange->arena, head);
    enum fgw_err err = fgw_http_head_parse(&exchange->arena, head, &exchange->request, &reason);
    if (err == FGW_OK) {
        fgw_http_body_begin(exchange);
    } else {
        mark_refused(exchange, head, err, reason);
    }
    return exchange;
}

/* Looks at input (the connection's own, or fresh bytes in the scratch buffer): an exchange when a
 * head is complete or must be refused, NULL when more is needed. What is left stays in
 * conn->input. */
static struct fgw_http_exchange *look_at(struct fgw_http_conn *conn, struct fgw_bytes bytes,
                                         bool is_scratch)
{
    size_t end = 0;
    const char *reason = NULL;
    if (!conn->head_begun) {
        conn->head_begun_ns = fgw_clock_boot_ns();
    }
    enum fgw_err err = fgw_http_head_scan(
        &conn->scan, bytes, conn->worker->server->options.max_header_bytes, &end, &reason);
    conn->head_begun = conn->scan.in_head; /* empty lines before a head do not begin it */
    struct fgw_http_exchange *exchange = NULL;
    if (err == FGW_OK) {
        size_t start = conn->scan.head_start;
        exchange = begin_exchange(conn, fgw_bytes_sub(bytes, start, end - start));
    } else if (err != FGW_ERR_AGAIN) {
        exchange = refuse(conn, bytes, err, reason);
        end = bytes.len;
    }
    if (is_scratch) {
        fgw_http_input_append(conn, fgw_bytes_sub(bytes, end, SIZE_MAX));
    } else {
        conn->input.start += end;
        fgw_http_input_trim(conn);
    }
    return exchange;
}

/* One read. FGW_OK with *out_exchange NULL: more is needed. */
static enum fgw_err read_head(struct fgw_http_conn *conn, struct fgw_http_exchange **out_exchange)
{
    struct fgw_http_worker *worker = conn->worker;
    size_t got = 0;
    enum fgw_err err = fgw_conn_try_read(conn->net, worker->scratch, FGW_HTTP_SCRATCH_SIZE, &got);
    if (err != FGW_OK) {
        return err;
    }
    conn->last_read_short = got < FGW_HTTP_SCRATCH_SIZE && !conn->is_tls;
    if (conn->input.ptr == NULL) {
        *out_exchange = look_at(conn, fgw_bytes(worker->scratch, got), true);
    } else {
        fgw_http_input_append(conn, fgw_bytes(worker->scratch, got));
        *out_exchange = look_at(conn, fgw_http_input_view(&conn->input), false);
    }
    return FGW_OK;
}

/* Reads as long as that needs no waiting. FGW_OK with NULL: watch. */
static enum fgw_err next_exchange(struct fgw_http_conn *conn, bool readable,
                                  struct fgw_http_exchange **out_exchange)
{
    *out_exchange = NULL;
    if (conn->input.ptr != NULL && !readable) {
        *out_exchange = look_at(conn, fgw_http_input_view(&conn->input), false);
    }
    while (*out_exchange == NULL && (readable || fgw_conn_has_buffered(conn->net))) {
        readable = false;
        enum fgw_err err = read_head(conn, out_exchange);
        if (err != FGW_OK) {
            return err == FGW_ERR_AGAIN ? FGW_OK : err;
        }
    }
    return FGW_OK;
}

/* -- the fiber --------------------------------------------------------------------------------- */

static void watch(struct fgw_http_conn *conn)
{
    const struct fgw_http_server_options *options = &conn->worker->server->options;
    conn->state = FGW_HTTP_CONN_WATCHED;
    fgw_http_input_shrink(conn);
    fgw_conn_set_read_deadline(
        conn->net, fgw_loop_now_ms(conn->worker->loop) +
                       (conn->head_begun ? options->header_timeout_ms : options->idle_timeout_ms));
    fgw_conn_watch(conn->net, on_event, conn);
}

/* Serves the exchange and those that follow without waiting; then the connection is watched,
 * lingers or is gone. */
static void serve(struct fgw_http_conn *conn, struct fgw_http_exchange *exchange)
{
    struct fgw_http_worker *worker = conn->worker;
    enum after after = AFTER_KEEP;
    for (unsigned served = 1; exchange != NULL; served++) {
        run(exchange);
        after = finish(exchange);
        give_back_exchange(exchange);
        exchange = NULL;
        if (after != AFTER_KEEP) {
            break;
        }
        count_bytes(conn);
        conn->head_begun = false;
        conn->scan = (struct fgw_http_scan){0};
        fgw_http_input_trim(conn);
        if (served % REQUESTS_PER_TURN == 0) {
            fgw_fiber_yield();
        }
        if (atomic_load_explicit(&worker->server->stopping, memory_order_relaxed) ||
            next_exchange(conn, false, &exchange) != FGW_OK) {
            after = AFTER_CLOSE;
            break;
        }
    }
    if (after == AFTER_KEEP) {
        watch(conn);
    } else if (after == AFTER_LINGER) {
        linger(conn, LINGER_MS);
    } else {
        close_conn(conn);
    }
    leave_busy(worker);
}

static void serve_fiber(void *arg)
{
    struct fgw_http_exchange *exchange = arg;
    serve(exchange->conn, exchange);
}

static void start_serving(struct fgw_http_conn *conn, struct fgw_http_exchange *exchange)
{
    conn->state = FGW_HTTP_CONN_BUSY;
    conn->worker->busy++;
    fgw_conn_watch(conn->net, NULL, NULL);
    fgw_fiber_spawn(conn->worker->loop, serve_fiber, exchange);
}

/* Ends in the header deadline set by the first byte. */
static void handshake_fiber(void *arg)
{
    struct fgw_http_conn *conn = arg;
    struct fgw_http_worker *worker = conn->worker;
    struct fgw_http_exchange *exchange = NULL;
    struct fgw_tls_context *context = conn->tls;
    conn->tls = NULL;
    enum fgw_err err = fgw_conn_start_tls_server(conn->net, context);
    fgw_tls_unref(context);
    if (err == FGW_OK) {
        err = next_exchange(conn, true, &exchange);
    }
    if (err != FGW_OK || atomic_load(&worker->server->stopping)) {
        if (exchange != NULL) {
            give_back_exchange(exchange);
        }
        close_conn(conn);
        leave_busy(worker);
    } else if (exchange != NULL) {
        serve(conn, exchange);
    } else {
        watch(conn);
        leave_busy(worker);
    }
}

/* -- the callback ------------------------------------------------------------------------------ */

static void on_deadline(struct fgw_http_conn *conn)
{
    if (conn->state == FGW_HTTP_CONN_WATCHED && conn->head_begun && conn->tls == NULL) {
        start_serving(
            conn, refuse(conn, fgw_http_input_view(&conn->input), FGW_ERR_REQUEST_TIMEOUT, NULL));
    } else {
        close_conn(conn);
    }
}

static void on_input(struct fgw_http_conn *conn)
{
    struct fgw_http_worker *worker = conn->worker;
    struct fgw_http_exchange *exchange;
    bool head_was_begun = conn->head_begun;
    if (next_exchange(conn, true, &exchange) != FGW_OK) {
        close_conn(conn);
        return;
    }
    if (exchange != NULL) {
        start_serving(conn, exchange);
    } else if (conn->head_begun && !head_was_begun) {
        fgw_conn_set_read_deadline(conn->net, fgw_loop_now_ms(worker->loop) +
                                                  worker->server->options.header_timeout_ms);
    }
}

static void on_event(void *arg, enum fgw_conn_event event)
{
    struct fgw_http_conn *conn = arg;
    if (event == FGW_CONN_DEADLINE) {
        on_deadline(conn);
    } else if (conn->state == FGW_HTTP_CONN_LINGER) {
        linger_read(conn);
    } else if (conn->tls != NULL) {
        uint64_t deadline_ms =
            fgw_loop_now_ms(conn->worker->loop) + conn->worker->server->options.header_timeout_ms;
        conn->state = FGW_HTTP_CONN_BUSY;
        conn->worker->busy++;
        fgw_conn_watch(conn->net, NULL, NULL);
        fgw_conn_set_read_deadline(conn->net, deadline_ms);
        fgw_fiber_spawn(conn->worker->loop, handshake_fiber, conn);
    } else {
        on_input(conn);
    }
}

/* -- the beginning ------------------------------------------------------------------------------ */

static struct fgw_tls_context *current_tls(struct fgw_http_server *server)
{
    (void)pthread_mutex_lock(&server->tls.mutex);
    struct fgw_tls_context *context = server->tls.context;
    if (context != NULL) {
        (void)fgw_tls_ref(context);
    }
    (void)pthread_mutex_unlock(&server->tls.mutex);
    return context;
}

static unsigned open_connections(struct fgw_http_server *server)
{
    unsigned open = 0;
    for (unsigned i = 0; i < server->worker_count; i++) {
        open += atomic_load_explicit(&server->open_per_worker[i], memory_order_relaxed);
    }
    return open;
}

/* Too many: said in plain, which a TLS client cannot read; it sees the connection end. */
static void turn_away(struct fgw_http_conn *conn)
{
    static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\nServer: FGW\r\n"
                                 "Retry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    fgw_http_count(&conn->worker->counters.refused, 1);
    if (conn->tls != NULL) {
        close_conn(conn);
        return;
    }
    (void)send(fgw_conn_fd(conn->net), answer, sizeof answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    linger(conn, LINGER_REFUSED_MS);
}

void fgw_http_conn_accepted(void *arg, unsigned worker_index, int fd, const char *peer)
{
    struct fgw_http_server *server = arg;
    struct fgw_http_worker *worker = &server->workers[worker_index];
    struct fgw_conn *net = fgw_conn_new(worker->loop, fd);
    fgw_http_count(&worker->counters.accepted, 1);
    if (net == NULL || atomic_load(&server->stopping)) {
        fgw_conn_close(net);
        atomic_fetch_sub(&server->open_per_worker[worker_index], 1);
        return;
    }
    struct fgw_http_conn *conn = fgw_xcalloc(1, sizeof *conn);
    conn->worker = worker;
    conn->net = net;
    conn->tls = current_tls(server);
    conn->is_tls = conn->tls != NULL;
    conn->counted = true;
    (void)snprintf(conn->peer, sizeof conn->peer, "%s", peer);
    fgw_list_push_back(&worker->conns, &conn->node);
    fgw_conn_set_write_stall(net, FGW_HTTP_RATE_WINDOW_MS,
                             server->options.min_body_rate_bytes_s * FGW_HTTP_RATE_WINDOW_MS /
                                 1000);
    if (open_connections(server) > server->options.max_connections) {
        turn_away(conn);
        return;
    }
    fgw_conn_set_read_deadline(net, fgw_loop_now_ms(worker->loop) +
                                        server->options.first_byte_timeout_ms);
    fgw_conn_watch(net, on_event, conn);
}

/* -- for server.c ------------------------------------------------------------------------------ */

void fgw_http_worker_close_idle(struct fgw_http_worker *worker)
{
    struct fgw_list *node = worker->conns.next;
    while (node != &worker->conns) {
        struct fgw_http_conn *conn = FGW_CONTAINER_OF(node, struct fgw_http_conn, node);
        node = node->next;
        if (conn->state != FGW_HTTP_CONN_BUSY) {
            close_conn(conn);
        }
    }
}

void fgw_http_worker_break_all(struct fgw_http_worker *worker)
{
    for (struct fgw_list *node = worker->conns.next; node != &worker->conns; node = node->next) {
        struct fgw_http_conn *conn = FGW_CONTAINER_OF(node, struct fgw_http_conn, node);
        if (conn->net != NULL) {
            fgw_conn_break(conn->net);
        }
    }
}

void fgw_http_worker_deinit(struct fgw_http_worker *worker)
{
    struct fgw_list *node;
    while ((node = fgw_list_pop_front(&worker->idle_exchanges)) != NULL) {
        free_exchange(FGW_CONTAINER_OF(node, struct fgw_http_exchange, node));
    }
    while ((node = fgw_list_pop_front(&worker->idle_buffers)) != NULL) {
        fgw_xfree(node);
    }
    fgw_xfree(worker->scratch);
}
