/* cql_port.h: the migration engine's operations (ops.h) on a real database through src/cql.
 *
 * One port serves one run at a time, in a fiber of the client's loop; the heartbeat task is a second
 * fiber. The worker lane keeps to one connection of one node (the first by address, so that all who
 * migrate meet at one coordinator); the heartbeat goes through the pool. Values travel as literals:
 * migrations are rare, and so no statement outlives a run.
 */
#ifndef FGW_MIGRATE_CQL_PORT_H
#define FGW_MIGRATE_CQL_PORT_H

#include "cql/client.h"
#include "migrate/ops.h"

struct fgw_migrate_port;

struct fgw_migrate_port_options {
    struct fgw_cql_client *client;
    const char
        *replication; /* "{'class': 'SimpleStrategy', 'replication_factor': 1}", for keyspaces
                                that are created */
    uint32_t ddl_timeout_ms;               /* how long one DDL statement may take; 0: 210 s */
    bool (*stop_requested)(void *context); /* may be NULL */
    void *stop_context;
    bool quiet; /* no log lines (verbs that print a report) */
};

struct fgw_migrate_port *fgw_migrate_port_new(const struct fgw_migrate_port_options *options);
/* Takes NULL. */
void fgw_migrate_port_free(struct fgw_migrate_port *port);
/* DDL statements sent so far and how long they took. */
unsigned fgw_migrate_port_statements(const struct fgw_migrate_port *port, uint64_t *out_ms);
const struct fgw_migrate_ops *fgw_migrate_port_ops(const struct fgw_migrate_port *port);

#endif
