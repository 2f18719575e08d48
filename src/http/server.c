/* server.c: start, stop and figures of the HTTP server (see server.h); its work is in
 * server_conn.c, server_body.c and server_response.c. */
#include "http/server_internal.h"

#include <limits.h>
#include <signal.h>

/* -- start ------------------------------------------------------------------------------------- */

static void init_workers(struct fgw_http_server *server)
{
    struct fgw_workers *workers = server->options.workers;
    server->worker_count = fgw_workers_count(workers);
    server->workers = fgw_xcalloc(server->worker_count, sizeof *server->workers);
    server->open_per_worker = fgw_xcalloc(server->worker_count, sizeof *server->open_per_worker);
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct fgw_http_worker *worker = &server->workers[i];
        worker->server = server;
        worker->loop = fgw_workers_loop(workers, i);
        worker->index = i;
        worker->scratch = fgw_xmalloc(FGW_HTTP_SCRATCH_SIZE);
        fgw_list_init(&worker->conns);
        fgw_list_init(&worker->idle_exchanges);
        fgw_list_init(&worker->idle_buffers);
    }
}

static void start_accepting(void *arg, unsigned index)
{
    struct fgw_http_server *server = arg;
    for (size_t i = index; i < server->options.address_count; i += server->worker_count) {
        struct fgw_acceptor_options options = {
            .listen_fd = fgw_listener_fd(server->listeners[i]),
            .workers = server->options.workers,
            .home = index,
            .open_per_worker = server->open_per_worker,
            .fn = fgw_http_conn_accepted,
            .arg = server,
        };
        server->acceptors[i] = fgw_acceptor_new(&options);
    }
}

static enum fgw_err open_listeners(struct fgw_http_server *server, struct fgw_error *error)
{
    size_t count = server->options.address_count;
    server->listeners = fgw_xcalloc(count + 1, sizeof(struct fgw_listener *));
    server->acceptors = fgw_xcalloc(count + 1, sizeof(struct fgw_acceptor *));
    for (size_t i = 0; i < count; i++) {
        enum fgw_err err =
            fgw_listener_open(server->options.addresses[i], &server->listeners[i], error);
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

/* At most half of what a connection may have in flight: the rest is for its answer. */
static size_t body_buffer_size(size_t conn_inflight_bytes)
{
    size_t size = FGW_HTTP_BODY_BUFFER_SIZE;
    while (size > FGW_HTTP_SMALL_BUFFER_SIZE && size > conn_inflight_bytes / 2) {
        size /= 2;
    }
    return size;
}

enum fgw_err fgw_http_server_start(const struct fgw_http_server_options *options,
                                   struct fgw_http_server **out_server, struct fgw_error *error)
{
    FGW_CHECK(fgw_worker_index() == UINT_MAX);
    (void)signal(SIGPIPE, SIG_IGN); /* sendfile has no MSG_NOSIGNAL */
    struct fgw_http_server *server = fgw_xcalloc(1, sizeof *server);
    server->options = *options;
    server->body_buffer_size = body_buffer_size(options->conn_inflight_bytes);
    (void)pthread_mutex_init(&server->tls.mutex, NULL);
    server->tls.context = options->tls == NULL ? NULL : fgw_tls_ref(options->tls);
    init_workers(server);
    enum fgw_err err = open_listeners(server, error);
    if (err != FGW_OK) {
        server->stopped = true;
        fgw_http_server_free(server);
        return err;
    }
    *out_server = server; /* before the first handler may run */
    fgw_workers_run(options->workers, start_accepting, server);
    return FGW_OK;
}

/* -- stop -------------------------------------------------------------------------------------- */

static void stop_accepting(void *arg, unsigned index)
{
    struct fgw_http_server *server = arg;
    for (size_t i = index; i < server->options.address_count; i += server->worker_count) {
        fgw_acceptor_free(server->acceptors[i]);
        server->acceptors[i] = NULL;
    }
}

static void stop_serving(void *arg, unsigned index)
{
    struct fgw_http_server *server = arg;
    struct fgw_http_worker *worker = &server->workers[index];
    fgw_http_worker_close_idle(worker);
    if (worker->busy > 0) {
        struct fgw_wait wait;
        fgw_wait_init(&wait, 1);
        worker->all_idle = &wait;
        enum fgw_err err = fgw_wait_until(&wait, fgw_loop_now_ms(worker->loop) + server->grace_ms);
        if (err != FGW_OK) {
            fgw_http_worker_break_all(worker);
            fgw_wait_for(&wait);
        }
    }
    fgw_http_worker_close_idle(worker);
}

void fgw_http_server_stop(struct fgw_http_server *server, uint64_t grace_ms)
{
    if (server->stopped) {
        return;
    }
    FGW_CHECK(fgw_worker_index() == UINT_MAX);
    server->grace_ms = grace_ms;
    atomic_store(&server->stopping, true);
    fgw_workers_run(server->options.workers, stop_accepting, server);
    for (size_t i = 0; i < server->options.address_count; i++) {
        fgw_listener_close(server->listeners[i]);
        server->listeners[i] = NULL;
    }
    /* connections on their way to a worker arrive before this does */
    fgw_workers_run(server->options.workers, stop_serving, server);
    server->stopped = true;
}

void fgw_http_server_free(struct fgw_http_server *server)
{
    if (server == NULL) {
        return;
    }
    fgw_http_server_stop(server, 0);
    for (size_t i = 0; server->listeners != NULL && i < server->options.address_count; i++) {
        fgw_listener_close(server->listeners[i]);
    }
    for (unsigned i = 0; i < server->worker_count; i++) {
        fgw_http_worker_deinit(&server->workers[i]);
    }
    fgw_tls_unref(server->tls.context);
    (void)pthread_mutex_destroy(&server->tls.mutex);
    fgw_xfree(server->listeners);
    fgw_xfree(server->acceptors);
    fgw_xfree(server->workers);
    fgw_xfree(server->open_per_worker);
    fgw_xfree(server);
}

/* -- figures ----------------------------------------------------------------------------------- */

const char *fgw_http_server_address(const struct fgw_http_server *server, size_t index)
{
    return fgw_listener_address(server->listeners[index]);
}

void fgw_http_server_stats(struct fgw_http_server *server, struct fgw_http_server_stats *out_stats)
{
    *out_stats = (struct fgw_http_server_stats){0};
    for (unsigned i = 0; i < server->worker_count; i++) {
        const struct fgw_http_counters *counters = &server->workers[i].counters;
        out_stats->accepted += atomic_load_explicit(&counters->accepted, memory_order_relaxed);
        out_stats->refused += atomic_load_explicit(&counters->refused, memory_order_relaxed);
        out_stats->requests += atomic_load_explicit(&counters->requests, memory_order_relaxed);
        out_stats->bytes_in += atomic_load_explicit(&counters->bytes_in, memory_order_relaxed);
        out_stats->bytes_out += atomic_load_explicit(&counters->bytes_out, memory_order_relaxed);
        out_stats->open += atomic_load_explicit(&server->open_per_worker[i], memory_order_relaxed);
    }
}

void fgw_http_server_set_tls(struct fgw_http_server *server, struct fgw_tls_context *tls)
{
    (void)pthread_mutex_lock(&server->tls.mutex);
    struct fgw_tls_context *old = server->tls.context;
    server->tls.context = tls == NULL ? NULL : fgw_tls_ref(tls);
    (void)pthread_mutex_unlock(&server->tls.mutex);
    fgw_tls_unref(old);
}
