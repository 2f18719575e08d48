/* cql_keyspace.h: a keyspace of its own for one run of a test program against a real database: made
 * with the statements of migrations/shared, dropped at the end. */
#ifndef FGW_TESTS_CQL_KEYSPACE_H
#define FGW_TESTS_CQL_KEYSPACE_H

#include "cql/client.h"

struct cql_keyspace {
    struct fgw_cql_config *config;
    struct fgw_cql_client *client;
    char name[49];
};

/* hosts: FGW_TEST_CQL_HOSTS and FGW_TEST_CQL_PORT of the environment. Prints why and aborts when it
 * cannot be done. In a fiber. */
void cql_keyspace_open(struct cql_keyspace *keyspace);
void cql_keyspace_close(struct cql_keyspace *keyspace);
/* True when the environment names a database. */
bool cql_keyspace_configured(void);

#endif
