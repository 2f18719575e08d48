/* stats.c: see stats.h. One slot a client in a list of the process. */
#include "cql/stats.h"

#include <pthread.h>
#include <stdio.h>

#include "cql/client_internal.h"

struct cql_stats_slot {
    struct fgw_list link;
    struct fgw_cql_stats stats;
};

static struct {
    pthread_mutex_t lock;
    struct fgw_list slots;
    bool ready;
    struct fgw_cql_counters ended; /* of clients that are gone */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct cql_stats_slot *fgw_cql_stats_join(void)
{
    struct cql_stats_slot *slot = fgw_xcalloc(1, sizeof *slot);
    (void)pthread_mutex_lock(&table.lock);
    if (!table.ready) {
        fgw_list_init(&table.slots);
        table.ready = true;
    }
    fgw_list_push_back(&table.slots, &slot->link);
    (void)pthread_mutex_unlock(&table.lock);
    return slot;
}

/* Both consist of counters of one type and nothing else. */
static void add_counters(struct fgw_cql_counters *to, const struct fgw_cql_counters *from)
{
    _Static_assert(sizeof *to % sizeof(uint64_t) == 0, "counters only");
    uint64_t *sums = (uint64_t *)(void *)to;
    const uint64_t *values = (const uint64_t *)(const void *)from;
    for (size_t i = 0; i < sizeof *to / sizeof(uint64_t); i++) {
        sums[i] += values[i];
    }
}

static struct fgw_cql_stats_node node_of(const struct cql_node *node, uint64_t now_ms)
{
    struct fgw_cql_stats_node figures = {.connections = node->conn_count,
                                         .in_flight = node->in_flight,
                                         .requests = node->requests,
                                         .errors = node->errors};
    figures.circuit = node->breaker_ms == 0             ? FGW_CQL_CIRCUIT_CLOSED
                      : now_ms < node->breaker_until_ms ? FGW_CQL_CIRCUIT_OPEN
                                                        : FGW_CQL_CIRCUIT_TRYING;
    (void)snprintf(figures.name, sizeof figures.name, "%s", node->name);
    return figures;
}

void fgw_cql_stats_note(struct cql_stats_slot *slot, const struct fgw_cql_client *client)
{
    uint64_t now_ms = fgw_loop_now_ms(client->loop);
    (void)pthread_mutex_lock(&table.lock);
    struct fgw_cql_stats *stats = &slot->stats;
    stats->counters = client->counters;
    stats->waiting = client->waiting_count;
    stats->in_flight = 0;
    stats->node_count = 0;
    for (size_t i = 0; i < client->node_count; i++) {
        stats->in_flight += client->nodes[i]->in_flight;
        if (!client->nodes[i]->removed && stats->node_count < FGW_CQL_STATS_NODES) {
            stats->nodes[stats->node_count++] = node_of(client->nodes[i], now_ms);
        }
    }
    (void)pthread_mutex_unlock(&table.lock);
}

void fgw_cql_stats_leave(struct cql_stats_slot *slot, const struct fgw_cql_client *client)
{
    (void)pthread_mutex_lock(&table.lock);
    add_counters(&table.ended, &client->counters);
    fgw_list_remove(&slot->link);
    (void)pthread_mutex_unlock(&table.lock);
    fgw_xfree(slot);
}

static void add_node(struct fgw_cql_stats *to, const struct fgw_cql_stats_node *from)
{
    size_t i = 0;
    while (i < to->node_count && strcmp(to->nodes[i].name, from->name) != 0) {
        i++;
    }
    if (i == FGW_CQL_STATS_NODES) {
        return;
    }
    struct fgw_cql_stats_node *node = &to->nodes[i];
    if (i == to->node_count) {
        to->node_count++;
        *node = *from;
        return;
    }
    node->connections += from->connections;
    node->in_flight += from->in_flight;
    node->requests += from->requests;
    node->errors += from->errors;
    /* open is worse than trying */
    bool worse = node->circuit == FGW_CQL_CIRCUIT_CLOSED || from->circuit == FGW_CQL_CIRCUIT_OPEN;
    node->circuit = worse ? from->circuit : node->circuit;
}

void fgw_cql_stats_read(struct fgw_cql_stats *out_stats)
{
    memset(out_stats, 0, sizeof *out_stats);
    (void)pthread_mutex_lock(&table.lock);
    add_counters(&out_stats->counters, &table.ended);
    struct fgw_list *end = &table.slots;
    for (struct fgw_list *at = table.ready ? end->next : end; at != end; at = at->next) {
        const struct fgw_cql_stats *from =
            &FGW_CONTAINER_OF(at, struct cql_stats_slot, link)->stats;
        add_counters(&out_stats->counters, &from->counters);
        out_stats->clients++;
        out_stats->in_flight += from->in_flight;
        out_stats->waiting += from->waiting;
        for (size_t i = 0; i < from->node_count; i++) {
            add_node(out_stats, &from->nodes[i]);
        }
    }
    (void)pthread_mutex_unlock(&table.lock);
}
