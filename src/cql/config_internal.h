/* config_internal.h: the checked form of the settings, for src/cql only. */
#ifndef FGW_CQL_CONFIG_INTERNAL_H
#define FGW_CQL_CONFIG_INTERNAL_H

#include "cql/config.h"

struct fgw_tls_context;

enum { FGW_CQL_HOST_SIZE = 256, FGW_CQL_CONTACTS_MAX = 256, FGW_CQL_IN_FLIGHT_MAX = 1024 };

struct fgw_cql_contact {
    char host[FGW_CQL_HOST_SIZE]; /* without brackets */
    uint16_t port;
};

struct fgw_cql_config {
    struct fgw_cql_contact *contacts;
    size_t contact_count;
    uint16_t port; /* of discovered nodes */
    char *user;    /* NULL: none */
    char *password;
    struct fgw_tls_context *tls; /* NULL: plain */
    char *local_dc;
    uint32_t timeout_ms;
    enum fgw_cql_consistency consistency;
    bool contact_points_only;
    unsigned connections_per_node;
    unsigned in_flight_max;
    unsigned queue_max;
};

#endif
