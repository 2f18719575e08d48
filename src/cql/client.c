/* client.c: the client's life, its helper fibers, and the choice of a connection for a call. */
#include "cql/client_internal.h"

#include <stdio.h>

#include "base/log.h"

enum { TICK_MS = 1000, NODES_MAX = 1024, RETRY_TOKENS_MAX = 1000 };

/* -- helper fibers and pauses ------------------------------------------------------------------ */

void fgw_cql_client_spawn(struct fgw_cql_client *client, fgw_fiber_fn *fn, void *arg)
{
    client->fibers++;
    fgw_fiber_spawn(client->loop, fn, arg);
}

void fgw_cql_client_fiber_ended(struct fgw_cql_client *client)
{
    client->fibers--;
    if (client->fibers == 0 && client->end_wait != NULL) {
        fgw_wait_signal(client->end_wait);
    }
}

enum fgw_err fgw_cql_pause_until(struct fgw_list *list, uint64_t deadline_ms)
{
    struct cql_waiter waiter;
    fgw_wait_init(&waiter.wait, 1);
    fgw_list_push_back(list, &waiter.link);
    enum fgw_err err = fgw_wait_until(&waiter.wait, deadline_ms);
    fgw_list_remove(&waiter.link);
    return err;
}

void fgw_cql_pause(struct fgw_list *list, uint64_t delay_ms)
{
    uint64_t now_ms = fgw_loop_now_ms(fgw_loop_current());
    enum fgw_err err = fgw_cql_pause_until(list, now_ms + delay_ms);
    (void)err; /* how it ended makes no difference */
}

void fgw_cql_wake_one(struct fgw_list *list)
{
    struct fgw_list *first = fgw_list_pop_front(list);
    if (first != NULL) {
        fgw_wait_signal(&FGW_CONTAINER_OF(first, struct cql_waiter, link)->wait);
    }
}

void fgw_cql_wake_all(struct fgw_list *list)
{
    while (!fgw_list_empty(list)) {
        fgw_cql_wake_one(list);
    }
}

void fgw_cql_client_wake(struct fgw_cql_client *client)
{
    fgw_cql_wake_one(&client->waiting);
}

void fgw_cql_client_wake_all(struct fgw_cql_client *client)
{
    fgw_cql_wake_all(&client->waiting);
}

static void tick(struct fgw_cql_client *client)
{
    uint64_t now_ms = fgw_loop_now_ms(client->loop);
    for (size_t i = 0; i < client->node_count; i++) {
        struct cql_node *node = client->nodes[i];
        struct fgw_list *next;
        for (struct fgw_list *at = node->conns.next; at != &node->conns; at = next) {
            next = at->next;
            fgw_cql_conn_tick(FGW_CONTAINER_OF(at, struct cql_conn, node_link), now_ms);
        }
    }
    fgw_cql_stats_note(client->stats, client);
}

static void ticker_main(void *arg)
{
    struct fgw_cql_client *client = arg;
    while (!client->closing) {
        fgw_cql_pause(&client->tickers, TICK_MS);
        tick(client);
    }
    fgw_cql_client_fiber_ended(client);
}

/* -- life ------------------------------------------------------------------------------------- */

struct cql_node *fgw_cql_client_find_node(struct fgw_cql_client *client, const char *address,
                                          uint16_t port)
{
    for (size_t i = 0; i < client->node_count; i++) {
        struct cql_node *node = client->nodes[i];
        if (node->contact.port == port &&
            (strcmp(node->address, address) == 0 || strcmp(node->contact.host, address) == 0)) {
            return node;
        }
    }
    return NULL;
}

struct cql_node *fgw_cql_client_add_node(struct fgw_cql_client *client,
                                         const struct fgw_cql_contact *contact, bool discovered)
{
    if (client->node_count == NODES_MAX) {
        return NULL;
    }
    struct cql_node *node = fgw_cql_node_new(client, contact, discovered);
    client->nodes[client->node_count++] = node;
    fgw_cql_node_start(node);
    return node;
}

struct fgw_cql_client *fgw_cql_client_new(struct fgw_loop *loop,
                                          const struct fgw_cql_config *config)
{
    struct fgw_cql_client *client = fgw_xcalloc(1, sizeof *client);
    client->loop = loop;
    client->config = config;
    client->retry_tokens = RETRY_TOKENS_MAX;
    client->stats = fgw_cql_stats_join();
    client->nodes = fgw_xcalloc(NODES_MAX, sizeof(struct cql_node *));
    fgw_list_init(&client->waiting);
    fgw_list_init(&client->tickers);
    for (size_t i = 0; i < config->contact_count; i++) {
        const struct fgw_cql_contact *contact = &config->contacts[i];
        if (fgw_cql_client_find_node(client, contact->host, contact->port) == NULL) {
            (void)fgw_cql_client_add_node(client, contact, false);
        }
    }
    fgw_cql_client_spawn(client, ticker_main, client);
    if (!config->contact_points_only) {
        fgw_cql_client_spawn(client, fgw_cql_discovery_main, client);
    }
    return client;
}

void fgw_cql_client_free(struct fgw_cql_client *client)
{
    if (client == NULL) {
        return;
    }
    client->closing = true;
    fgw_cql_wake_all(&client->tickers);
    for (size_t i = 0; i < client->node_count; i++) {
        fgw_cql_node_stop(client->nodes[i]);
    }
    fgw_cql_client_wake_all(client);
    while (client->fibers > 0) {
        struct fgw_wait wait;
        fgw_wait_init(&wait, 1);
        client->end_wait = &wait;
        fgw_wait_for(&wait);
        client->end_wait = NULL;
    }
    FGW_CHECK(client->calls == 0);
    fgw_cql_stats_leave(client->stats, client);
    for (size_t i = 0; i < client->node_count; i++) {
        fgw_cql_node_free(client->nodes[i]);
    }
    fgw_xfree(client->nodes);
    fgw_xfree(client);
}

/* -- choice ----------------------------------------------------------------------------------- */

static enum fgw_err all_down(struct fgw_cql_client *client, struct fgw_error *error)
{
    enum fgw_err code = FGW_ERR_COUNT;
    struct fgw_buf text;
    fgw_buf_init(&text, sizeof error->message - 64);
    for (size_t i = 0; i < client->node_count; i++) {
        const struct cql_node *node = client->nodes[i];
        if (node->discovered) {
            continue;
        }
        fgw_buf_appendf(&text, "%s%s: %s", text.len > 0 ? "; " : "", node->name, node->last_error);
        /* what a person must mend is told as such only when no contact point says otherwise */
        enum fgw_err mine =
            node->last_err == FGW_ERR_CONFIG || node->last_err == FGW_ERR_ACCESS_DENIED
                ? node->last_err
                : FGW_ERR_UNAVAILABLE;
        code = code == FGW_ERR_COUNT || code == mine ? mine : FGW_ERR_UNAVAILABLE;
    }
    (void)fgw_error_set(error, code, "no database node can be used: %.*s",
                        FGW_FMT(fgw_buf_bytes(&text)));
    fgw_buf_deinit(&text);
    return code;
}

/* The usable node with the fewest in flight, later ones in turn when equal. */
static struct cql_conn *choose(struct fgw_cql_client *client, const struct cql_node *avoid)
{
    FGW_CHECK(client->node_count > 0);
    uint64_t now_ms = fgw_loop_now_ms(client->loop);
    struct cql_conn *best = NULL;
    for (size_t i = 0; i < client->node_count; i++) {
        struct cql_node *node = client->nodes[(client->next_node + i) % client->node_count];
        if (node == avoid || !fgw_cql_node_usable(node, now_ms)) {
            continue;
        }
        struct cql_conn *conn = fgw_cql_node_conn(node);
        if (conn != NULL && (best == NULL || node->in_flight < best->node->in_flight)) {
            best = conn;
        }
    }
    client->next_node = (client->next_node + 1) % client->node_count;
    return best;
}

/* True while waiting makes sense: some node is connecting, or full. */
static bool worth_waiting(const struct fgw_cql_client *client)
{
    uint64_t now_ms = fgw_loop_now_ms(client->loop);
    for (size_t i = 0; i < client->node_count; i++) {
        const struct cql_node *node = client->nodes[i];
        if (node->removed || (node->discovered && node->state == CQL_NODE_NEW)) {
            continue;
        }
        if (node->state == CQL_NODE_NEW || node->state == CQL_NODE_LOST ||
            fgw_cql_node_usable(node, now_ms)) {
            return true;
        }
    }
    return false;
}

static enum fgw_err wait_for_room(struct fgw_cql_client *client, uint64_t deadline_ms,
                                  struct fgw_error *error)
{
    if (client->waiting_count >= client->config->queue_max) {
        client->counters.shed++;
        return fgw_error_set(error, FGW_ERR_SLOW_DOWN,
                             "%u calls already wait for a database connection",
                             client->waiting_count);
    }
    client->waiting_count++;
    enum fgw_err err = fgw_cql_pause_until(&client->waiting, deadline_ms);
    client->waiting_count--;
    return err == FGW_OK
               ? err
               : fgw_error_set(error, FGW_ERR_TIMEOUT, "no database connection was free in time");
}

enum fgw_err fgw_cql_client_pick(struct fgw_cql_client *client, const struct cql_node *avoid,
                                 uint64_t deadline_ms, struct cql_conn **out_conn,
                                 struct fgw_error *error)
{
    for (;;) {
        if (client->closing) {
            return fgw_error_set(error, FGW_ERR_CANCELLED, "the client is being closed");
        }
        struct cql_conn *conn = choose(client, avoid);
        if (conn == NULL && avoid != NULL) {
            conn = choose(client, NULL);
        }
        if (conn != NULL) {
            *out_conn = fgw_cql_conn_ref(conn);
            return FGW_OK;
        }
        if (!worth_waiting(client)) {
            return all_down(client, error);
        }
        enum fgw_err err = wait_for_room(client, deadline_ms, error);
        if (err != FGW_OK) {
            return err;
        }
    }
}

enum fgw_err fgw_cql_client_wait_ready(struct fgw_cql_client *client, uint64_t deadline_ms,
                                       struct fgw_error *error)
{
    for (;;) {
        struct cql_conn *conn = NULL;
        enum fgw_err err = fgw_cql_client_pick(client, NULL, deadline_ms, &conn, error);
        if (err == FGW_OK) {
            fgw_cql_conn_unref(conn);
        }
        if (err != FGW_ERR_UNAVAILABLE) {
            return err;
        }
        if (fgw_cql_pause_until(&client->waiting, deadline_ms) != FGW_OK) {
            error->code = FGW_ERR_TIMEOUT;
            return FGW_ERR_TIMEOUT;
        }
    }
}

/* -- what it tells ---------------------------------------------------------------------------- */

enum fgw_cql_flavour fgw_cql_client_flavour(const struct fgw_cql_client *client)
{
    return client->flavour;
}

unsigned fgw_cql_client_nodes_up(const struct fgw_cql_client *client)
{
    unsigned up = 0;
    for (size_t i = 0; i < client->node_count; i++) {
        up += client->nodes[i]->conn_count > 0;
    }
    return up;
}

const struct fgw_cql_counters *fgw_cql_client_counters(const struct fgw_cql_client *client)
{
    return &client->counters;
}

size_t fgw_cql_client_node_count(const struct fgw_cql_client *client)
{
    return client->node_count;
}

void fgw_cql_client_node_stats(const struct fgw_cql_client *client, size_t index,
                               struct fgw_cql_node_stats *out_stats)
{
    const struct cql_node *node = client->nodes[index];
    *out_stats = (struct fgw_cql_node_stats){
        .discovered = node->discovered,
        .up = node->conn_count > 0,
        .breaker_open = node->breaker_ms != 0,
        .connections = node->conn_count,
        .in_flight = node->in_flight,
        .requests = node->requests,
        .errors = node->errors,
    };
    (void)snprintf(out_stats->name, sizeof out_stats->name, "%s", node->name);
    (void)snprintf(out_stats->last_error, sizeof out_stats->last_error, "%s", node->last_error);
}
