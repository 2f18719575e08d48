/* discovery.c: the other nodes of the cluster, from system.peers every minute (no events: YCQL
 * sends hardly any, spec/ycql.md section 5.6).
 *
 * The private-address trap: in containers, servers announce addresses that only they can reach. A
 * discovered node therefore counts only once a connection to it works; until then it is never
 * waited for, never reported as down, and contact points are never given up for it. All nodes share
 * the port of the contact that answered (YCQL's table has no port column). */
#include <arpa/inet.h>

#include "base/log.h"
#include "cql/client_internal.h"

enum {
    REFRESH_MS = 60000,
    RETRY_MS = 2000,
    MISSES_MAX = 3, /* refreshes without a node before it is given up */
    PEERS_MAX = 1000
};

static bool unspecified(struct fgw_bytes address)
{
    for (size_t i = 0; i < address.len; i++) {
        if (address.ptr[i] != 0) {
            return false;
        }
    }
    return true;
}

/* rpc_address, or peer where that says "all interfaces" or nothing. */
static bool peer_address(const struct fgw_cql_result *result, char out[FGW_CQL_HOST_SIZE])
{
    struct fgw_bytes address = {0};
    if (fgw_cql_get_inet(result, "rpc_address", &address) != FGW_OK || unspecified(address)) {
        if (fgw_cql_get_inet(result, "peer", &address) != FGW_OK || unspecified(address)) {
            return false;
        }
    }
    return inet_ntop(address.len == 4 ? AF_INET : AF_INET6, address.ptr, out, FGW_CQL_HOST_SIZE) !=
           NULL;
}

static bool in_local_dc(const struct fgw_cql_client *client, const struct fgw_cql_result *result)
{
    struct fgw_bytes dc = {0};
    return client->config->local_dc == NULL ||
           (fgw_cql_get_text(result, "data_center", &dc) == FGW_OK &&
            fgw_bytes_eq_str(dc, client->config->local_dc));
}

static void meet_peer(struct fgw_cql_client *client, const struct fgw_cql_result *result,
                      uint16_t port)
{
    struct fgw_cql_contact contact = {.port = port};
    if (!peer_address(result, contact.host) || !in_local_dc(client, result)) {
        return;
    }
    struct cql_node *node = fgw_cql_client_find_node(client, contact.host, port);
    if (node == NULL) {
        (void)fgw_cql_client_add_node(client, &contact, true);
        return;
    }
    node->misses = 0;
    if (node->removed) {
        fgw_cql_node_start(node);
    }
}

/* A node that still has connections is alive, whatever the table says. */
static bool is_lost(const struct cql_node *node)
{
    return node->discovered && !node->removed && node->conn_count == 0 && node->misses > MISSES_MAX;
}

static void drop_missing(struct fgw_cql_client *client)
{
    for (size_t i = 0; i < client->node_count; i++) {
        if (is_lost(client->nodes[i])) {
            client->nodes[i]->removed = true;
            fgw_cql_node_stop(client->nodes[i]);
        }
    }
}

static enum fgw_err refresh(struct fgw_cql_client *client)
{
    struct fgw_cql_pin *pin = NULL;
    struct fgw_error error = {0};
    struct fgw_cql_options options = {
        .deadline_ms = fgw_loop_now_ms(client->loop) + FGW_CQL_CONNECT_MS, .page_size = PEERS_MAX};
    enum fgw_err err = fgw_cql_pin_new(client, options.deadline_ms, &pin, &error);
    if (err != FGW_OK) {
        return err;
    }
    options.pin = pin;
    struct fgw_cql_result *result = NULL;
    err = fgw_cql_query(client, "SELECT peer, rpc_address, data_center FROM system.peers",
                        FGW_CQL_READ, &options, &result, &error);
    if (err == FGW_OK) {
        for (size_t i = 0; i < client->node_count; i++) {
            client->nodes[i]->misses++;
        }
        while (!client->closing && fgw_cql_result_next(result)) {
            meet_peer(client, result, fgw_cql_pin_port(pin));
        }
        drop_missing(client);
        fgw_cql_result_free(result);
    } else if (!client->closing) {
        fgw_log_debug("cql", "the peers could not be read: %s", fgw_error_message(&error));
    }
    fgw_cql_pin_free(pin);
    return err;
}

void fgw_cql_discovery_main(void *arg)
{
    struct fgw_cql_client *client = arg;
    while (!client->closing) {
        enum fgw_err err = refresh(client);
        if (!client->closing) {
            fgw_cql_pause(&client->tickers, err == FGW_OK ? REFRESH_MS : RETRY_MS);
        }
    }
    fgw_cql_client_fiber_ended(client);
}
