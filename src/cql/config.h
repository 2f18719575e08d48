/* config.h: how to reach the database: checked once, then shared read-only by the clients of all
 * workers, which it must outlive. */
#ifndef FGW_CQL_CONFIG_H
#define FGW_CQL_CONFIG_H

#include "base/bytes.h"
#include "cql/protocol.h"

/* What a person sets (spec/interface.md, FGW_CQL_*). Strings are copied. */
struct fgw_cql_settings {
    const char *hosts; /* comma-separated: name, IPv4, IPv6, each with :port or not ([v6]:port) */
    uint16_t port;     /* for hosts without one; 0: 9042 */
    const char *user;  /* NULL or empty: no authentication */
    const char *password; /* never logged */
    /* PEM file of the authority to trust; NULL or empty: no TLS. The names in certificates are
     * verified, the address for nodes that are known by address. */
    const char *tls_ca;
    uint32_t timeout_ms;                  /* of each statement, retries included; 0: 10,000 */
    enum fgw_cql_consistency consistency; /* of each statement; ANY (0) stands for QUORUM */
    const char *local_dc;          /* use only discovered nodes of this data center; NULL: all */
    bool contact_points_only;      /* no discovery: for databases that announce private addresses */
    unsigned connections_per_node; /* 0: 2; at most 8 */
    unsigned in_flight_max;        /* requests of a connection, 0 or above 1,024: 1,024 */
    unsigned queue_max;            /* calls waiting for a connection, 0: 1,024; above: SLOW_DOWN */
};

struct fgw_cql_config;

/* FGW_ERR_CONFIG with a text that names the host or the file at fault. */
enum fgw_err fgw_cql_config_new(const struct fgw_cql_settings *settings,
                                struct fgw_cql_config **out_config,
                                struct fgw_error *error) FGW_MUST_CHECK;
/* Takes NULL; after all clients are gone. */
void fgw_cql_config_free(struct fgw_cql_config *config);

/* "QUORUM", "LOCAL_QUORUM", ... in any case. FGW_ERR_CONFIG for what FGW refuses: ONE, LOCAL_ONE
 * and ANY (stale reads), ALL (down with one node), SERIAL ones (no consistency of writes). */
enum fgw_err fgw_cql_consistency_parse(struct fgw_bytes text, enum fgw_cql_consistency *out,
                                       struct fgw_error *error) FGW_MUST_CHECK;

#endif
