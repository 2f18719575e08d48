/* node.c: a database node: its pool of connections, each kept by a fiber that reconnects with
 * back-off, and its circuit breaker. Nodes live as long as the client, so that calls may hold on to
 * one across waits; one that is no longer announced only loses its connections. */
#include <stdio.h>

#include "base/log.h"
#include "base/rng.h"
#include "cql/client_internal.h"

enum {
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MAX_MS = 5000,
    STRIKES_MAX = 5, /* requests without answer in a row: the breaker opens */
    BREAKER_FIRST_MS = 1000,
    BREAKER_MAX_MS = 10000
};

uint64_t fgw_cql_jitter(uint64_t delay_ms)
{
    return delay_ms / 2 + fgw_rng_below(delay_ms / 2 + 1);
}

struct cql_node *fgw_cql_node_new(struct fgw_cql_client *client,
                                  const struct fgw_cql_contact *contact, bool discovered)
{
    struct cql_node *node = fgw_xcalloc(1, sizeof *node);
    node->client = client;
    node->contact = *contact;
    node->discovered = discovered;
    node->backoff_ms = BACKOFF_FIRST_MS;
    bool v6 = strchr(contact->host, ':') != NULL;
    (void)snprintf(node->name, sizeof node->name, v6 ? "[%s]:%u" : "%s:%u", contact->host,
                   contact->port);
    if (discovered) {
        memcpy(node->address, contact->host, sizeof node->address);
    }
    fgw_list_init(&node->conns);
    fgw_list_init(&node->slots_waiting);
    return node;
}

void fgw_cql_node_free(struct cql_node *node)
{
    FGW_CHECK(node->slot_fibers == 0 && fgw_list_empty(&node->conns));
    fgw_cql_prepared_free_all(node);
    fgw_xfree(node);
}

/* -- slots ------------------------------------------------------------------------------------ */

static bool ended(const struct cql_node *node)
{
    return node->client->closing || node->removed;
}

static void attempt_failed(struct cql_node *node, enum fgw_err err, const struct fgw_error *error)
{
    bool news = node->state != CQL_NODE_DOWN || node->last_err != err;
    node->last_err = err;
    (void)snprintf(node->last_error, sizeof node->last_error, "%s", fgw_error_message(error));
    if (node->conn_count > 0) {
        return;
    }
    node->state = CQL_NODE_DOWN;
    /* announced addresses that nobody can reach (private ones) are no news to a person */
    if (news && !ended(node)) {
        fgw_log_at(node->discovered ? FGW_LOG_DEBUG : FGW_LOG_WARN, "cql", "node %s is down: %s",
                   node->name, node->last_error);
    }
    fgw_cql_client_wake_all(node->client);
}

static void connected(struct cql_node *node, struct cql_conn *conn)
{
    if (node->state != CQL_NODE_UP) {
        fgw_log_info("cql", "node %s is up", node->name);
    }
    node->state = CQL_NODE_UP;
    node->backoff_ms = BACKOFF_FIRST_MS;
    node->strikes = 0;
    node->breaker_until_ms = 0;
    node->breaker_ms = 0;
    fgw_list_push_back(&node->conns, &conn->node_link);
    node->conn_count++;
    fgw_cql_client_wake_all(node->client);
}

static void disconnected(struct cql_node *node, const struct cql_conn *conn)
{
    (void)snprintf(node->last_error, sizeof node->last_error, "%s", conn->reason);
    node->last_err = FGW_ERR_UNAVAILABLE;
    if (ended(node)) {
        return;
    }
    fgw_log_at(node->conn_count > 0 ? FGW_LOG_DEBUG : FGW_LOG_WARN, "cql",
               "connection to %s lost: %s", node->name, conn->reason);
    if (node->conn_count == 0 && node->state == CQL_NODE_UP) {
        node->state = CQL_NODE_LOST;
    }
    fgw_cql_client_wake_all(node->client);
}

static void keep_connection(struct cql_node *node)
{
    while (!ended(node)) {
        struct cql_conn *conn = fgw_cql_conn_new(node);
        struct fgw_error error = {0};
        enum fgw_err err = fgw_cql_conn_open(conn, &error);
        if (err == FGW_OK) {
            connected(node, conn);
            fgw_cql_conn_run(conn);
            disconnected(node, conn);
        } else {
            attempt_failed(node, err, &error);
        }
        fgw_cql_conn_unref(conn);
        if (!ended(node)) {
            fgw_cql_pause(&node->slots_waiting, fgw_cql_jitter(node->backoff_ms));
            node->backoff_ms =
                node->backoff_ms * 2 < BACKOFF_MAX_MS ? node->backoff_ms * 2 : BACKOFF_MAX_MS;
        }
    }
}

static void slot_main(void *arg)
{
    struct cql_node *node = arg;
    keep_connection(node);
    node->slot_fibers--;
    fgw_cql_client_fiber_ended(node->client);
}

void fgw_cql_node_start(struct cql_node *node)
{
    node->removed = false;
    while (node->slot_fibers < node->client->config->connections_per_node) {
        node->slot_fibers++;
        fgw_cql_client_spawn(node->client, slot_main, node);
    }
}

void fgw_cql_node_stop(struct cql_node *node)
{
    while (!fgw_list_empty(&node->conns)) {
        struct cql_conn *conn = FGW_CONTAINER_OF(node->conns.next, struct cql_conn, node_link);
        fgw_cql_conn_close(conn, FGW_ERR_CANCELLED,
                           node->removed ? "the node left the cluster" : "the client is closing");
    }
    fgw_cql_wake_all(&node->slots_waiting);
}

/* -- choice and health ------------------------------------------------------------------------ */

bool fgw_cql_node_usable(const struct cql_node *node, uint64_t now_ms)
{
    /* an open breaker whose time is over lets one request at a time try */
    return node->conn_count > 0 && !node->removed && now_ms >= node->breaker_until_ms &&
           (node->breaker_ms == 0 || node->in_flight == 0);
}

struct cql_conn *fgw_cql_node_conn(const struct cql_node *node)
{
    struct cql_conn *best = NULL;
    for (struct fgw_list *at = node->conns.next; at != &node->conns; at = at->next) {
        struct cql_conn *conn = FGW_CONTAINER_OF(at, struct cql_conn, node_link);
        if (fgw_cql_conn_has_room(conn) && (best == NULL || conn->in_flight < best->in_flight)) {
            best = conn;
        }
    }
    return best;
}

void fgw_cql_node_answered(struct cql_node *node)
{
    if (node->breaker_ms != 0) {
        fgw_log_info("cql", "node %s answers again", node->name);
        fgw_cql_client_wake_all(node->client);
    }
    node->strikes = 0;
    node->breaker_until_ms = 0;
    node->breaker_ms = 0;
}

void fgw_cql_node_silent(struct cql_node *node)
{
    uint64_t now_ms = fgw_loop_now_ms(node->client->loop);
    node->strikes++;
    if (node->strikes < STRIKES_MAX || now_ms < node->breaker_until_ms) {
        return;
    }
    if (node->breaker_ms == 0) {
        fgw_log_warn("cql", "node %s does not answer: paused", node->name);
    }
    node->breaker_ms = node->breaker_ms == 0 ? BREAKER_FIRST_MS : node->breaker_ms * 2;
    node->breaker_ms = node->breaker_ms > BREAKER_MAX_MS ? BREAKER_MAX_MS : node->breaker_ms;
    node->breaker_until_ms = now_ms + fgw_cql_jitter(node->breaker_ms);
    (void)snprintf(node->last_error, sizeof node->last_error, "requests are not answered in time");
    node->last_err = FGW_ERR_TIMEOUT;
}
