/* node.c: see node.h: the node itself, its doors (upgrade, health) and its right to acknowledge. */
#include "node/node_internal.h"

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"

enum { SESSIONS_MAX = 8192 };

static void start_worker(void *arg, unsigned index)
{
    struct fgw_node *node = arg;
    fgw_list_init(&node->per_worker[index].sessions);
}

struct fgw_node *fgw_node_new(const struct fgw_node_options *options)
{
    struct fgw_node *node = fgw_xcalloc(1, sizeof *node);
    node->storage = options->storage;
    node->workers = options->workers;
    atomic_store(&node->epoch, options->epoch);
    node->set_epoch = options->set_epoch;
    node->set_context = options->set_context;
    node->secrets = fgw_xcalloc(options->secret_count + 1, sizeof *node->secrets);
    for (size_t i = 0; i < options->secret_count; i++) {
        char *copy = fgw_xstrdup_bytes(options->secrets[i]);
        node->secrets[i] = fgw_bytes(copy, options->secrets[i].len);
    }
    node->secret_list = (struct fgw_channel_secrets){node->secrets, options->secret_count};
    atomic_store(&node->renewed_ms, fgw_clock_boot_ms());
    unsigned count = fgw_workers_count(node->workers);
    node->per_worker = fgw_xcalloc(count, sizeof *node->per_worker);
    fgw_workers_run(node->workers, start_worker, node);
    return node;
}

/* -- the right to acknowledge -------------------------------------------------------------------- */

void fgw_node_renewed(struct fgw_node *node, uint64_t sent_boot_ms)
{
    atomic_store(&node->renewed_ms, sent_boot_ms);
}

void fgw_node_take(struct fgw_node *node, uint64_t epoch)
{
    atomic_store(&node->epoch, epoch);
}

void fgw_node_fence(struct fgw_node *node, uint64_t higher_epoch)
{
    uint64_t seen = atomic_load(&node->higher_epoch);
    while (seen < higher_epoch &&
           !atomic_compare_exchange_weak(&node->higher_epoch, &seen, higher_epoch)) {
    }
    if (seen == 0) {
        fgw_log_error("node",
                      "another process has taken this store (epoch %llu, ours is %llu): "
                      "nothing is acknowledged any more; stop one of the two",
                      (unsigned long long)higher_epoch,
                      (unsigned long long)atomic_load(&node->epoch));
    }
}

enum fgw_err fgw_node_may_acknowledge(struct fgw_node *node)
{
    uint64_t now_ms = fgw_clock_boot_ms();
    uint64_t renewed_ms = atomic_load(&node->renewed_ms);
    bool expired = now_ms > renewed_ms && now_ms - renewed_ms > FGW_NODE_RENEW_LIMIT_MS;
    return atomic_load(&node->higher_epoch) != 0 || expired ? FGW_ERR_CANCELLED : FGW_OK;
}

/* -- doors --------------------------------------------------------------------------------------- */

static void answer_health(struct fgw_node *node, struct fgw_http_exchange *exchange)
{
    struct fgw_storage_stats stats;
    char id[2 * FGW_STORAGE_ID_SIZE + 1] = {0};
    struct fgw_buf body;
    fgw_buf_init(&body, 4096);
    fgw_storage_stats(node->storage, &stats);
    fgw_hex_encode(fgw_bytes(fgw_storage_id(node->storage), FGW_STORAGE_ID_SIZE), id);
    bool fenced = fgw_node_may_acknowledge(node) != FGW_OK;
    (void)fgw_buf_appendf(
        &body,
        "{\"store\":\"%s\",\"epoch\":%llu,\"free_bytes\":%llu,\"total_bytes\":%llu,"
        "\"read_only\":%s,\"below_reserve\":%s,\"fenced\":%s}\n",
        id, (unsigned long long)atomic_load(&node->epoch), (unsigned long long)stats.free_bytes,
        (unsigned long long)stats.total_bytes, stats.read_only ? "true" : "false",
        stats.below_reserve ? "true" : "false", fenced ? "true" : "false");
    bool ok = !stats.read_only && !fenced;
    (void)fgw_http_respond(exchange, ok ? 200 : 503, "application/json", fgw_buf_bytes(&body));
    fgw_buf_deinit(&body);
}

static void upgrade(struct fgw_node *node, struct fgw_http_exchange *exchange)
{
    const struct fgw_http_request *request = fgw_http_request(exchange);
    struct fgw_conn *conn;
    if (!fgw_bytes_eq_str(fgw_http_header_get(request, "upgrade"), FGW_BLOCKAPI_PROTOCOL)) {
        fgw_http_response_start(exchange, 426, FGW_HTTP_LENGTH_UNKNOWN);
        fgw_http_response_header(exchange, "Upgrade", FGW_LIT(FGW_BLOCKAPI_PROTOCOL));
        (void)fgw_http_response_end(exchange);
        return;
    }
    if (atomic_load(&node->stopping) || atomic_load(&node->sessions_open) >= SESSIONS_MAX) {
        (void)fgw_http_respond(exchange, 503, NULL, fgw_bytes(NULL, 0));
        return;
    }
    if (fgw_http_upgrade(exchange, FGW_BLOCKAPI_PROTOCOL, &conn) == FGW_OK) {
        fgw_node_session_start(node, conn, request->peer);
    }
}

void fgw_node_handle(void *context, struct fgw_http_exchange *exchange)
{
    struct fgw_node *node = context;
    const struct fgw_http_request *request = fgw_http_request(exchange);
    if (fgw_bytes_eq_str(request->raw_path, FGW_BLOCKAPI_PATH) && request->method == FGW_HTTP_GET) {
        upgrade(node, exchange);
    } else if (fgw_bytes_eq_str(request->raw_path, "/_fgw/v1/health")) {
        answer_health(node, exchange);
    } else {
        (void)fgw_http_respond(exchange, 404, "text/plain", FGW_LIT("no such path\n"));
    }
}

void fgw_node_stats(struct fgw_node *node, struct fgw_node_stats *out_stats)
{
    *out_stats = (struct fgw_node_stats){
        .sessions = atomic_load(&node->sessions_open),
        .sessions_total = atomic_load(&node->sessions_total),
        .refused = atomic_load(&node->refused),
        .requests = atomic_load(&node->requests),
        .bytes_in = atomic_load(&node->bytes_in),
        .bytes_out = atomic_load(&node->bytes_out),
        .fenced = fgw_node_may_acknowledge(node) != FGW_OK,
    };
}

/* -- end ----------------------------------------------------------------------------------------- */

static void stop_worker(void *arg, unsigned index)
{
    struct fgw_node *node = arg;
    struct fgw_node_worker *worker = &node->per_worker[index];
    for (struct fgw_list *at = worker->sessions.next; at != &worker->sessions; at = at->next) {
        fgw_conn_break(FGW_CONTAINER_OF(at, struct fgw_node_session, node)->conn);
    }
    if (worker->count > 0) {
        struct fgw_wait wait;
        fgw_wait_init(&wait, 1);
        worker->all_gone = &wait;
        fgw_wait_for(&wait);
    }
}

void fgw_node_stop(struct fgw_node *node)
{
    if (node != NULL) {
        atomic_store(&node->stopping, true);
        fgw_workers_run(node->workers, stop_worker, node);
    }
}

void fgw_node_free(struct fgw_node *node)
{
    if (node == NULL) {
        return;
    }
    for (size_t i = 0; i < node->secret_list.count; i++) {
        explicit_bzero((void *)(uintptr_t)node->secrets[i].ptr, node->secrets[i].len);
        fgw_xfree((void *)(uintptr_t)node->secrets[i].ptr);
    }
    fgw_xfree(node->secrets);
    fgw_xfree(node->per_worker);
    fgw_xfree(node);
}
