/* stats.h: what the clients of this process did and how its nodes stand, summed, for metrics. Clients
 * note their figures once a second and when they end (counters never go back); any thread may read.
 * The lock is held for copying only. */
#ifndef FGW_CQL_STATS_H
#define FGW_CQL_STATS_H

#include "cql/client.h"

enum { FGW_CQL_STATS_NODES = 64 }; /* nodes beyond are counted in the sums only */

enum fgw_cql_circuit {
    FGW_CQL_CIRCUIT_CLOSED, /* requests go there */
    FGW_CQL_CIRCUIT_OPEN,   /* paused: requests were not answered in time */
    FGW_CQL_CIRCUIT_TRYING  /* the pause is over, one request at a time */
};

struct fgw_cql_stats_node {
    char name[FGW_CQL_NODE_TEXT_SIZE]; /* address:port */
    unsigned connections;
    unsigned in_flight;
    uint64_t requests;
    uint64_t errors;
    enum fgw_cql_circuit circuit; /* the worst of all clients */
};

struct fgw_cql_stats {
    struct fgw_cql_counters counters;
    unsigned clients;
    unsigned in_flight;
    unsigned waiting; /* calls that wait for a connection */
    struct fgw_cql_stats_node nodes[FGW_CQL_STATS_NODES];
    size_t node_count;
};

/* Large: on the heap. */
void fgw_cql_stats_read(struct fgw_cql_stats *out_stats);

#endif
