/* run_cql.c: the metadata contract on a real database (FGW_TEST_CQL_HOSTS, FGW_TEST_CQL_PORT), in a
 * keyspace of its own. Exit 77 (skipped) when no database is named. */
#include "contract/meta/meta_contract.h"

#include "contract/meta/cql_keyspace.h"
#include "contract/meta/memory_blobs.h"
#include "event/fiber.h"
#include "meta/cql/cql.h"

static const char *only;
static unsigned passed;

static struct fgw_cql_client *client(void *context)
{
    return ((struct cql_keyspace *)context)->client;
}

static void run(void *arg)
{
    struct cql_keyspace keyspace;
    struct fgw_bytes secret = FGW_LIT("a secret of at least thirty-two characters");
    (void)arg;
    cql_keyspace_open(&keyspace);
    struct fgw_blobs *blobs = memory_blobs_new();
    struct fgw_meta_cql_options options = {.client = client,
                                           .client_context = &keyspace,
                                           .keyspace = keyspace.name,
                                           .blobs = blobs,
                                           .secrets = &secret,
                                           .secret_count = 1,
                                           .shards = 16};
    struct fgw_meta *meta = fgw_meta_cql_new(&options);
    passed += meta_contract_run(meta, blobs, only);
    cql_keyspace_close(&keyspace);
    meta->ops->free(meta);
    memory_blobs_free(blobs);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    if (!cql_keyspace_configured()) {
        (void)fprintf(stderr, "FGW_TEST_CQL_HOSTS names no database: skipped\n");
        return 77;
    }
    fgw_fiber_run_alone(run, NULL);
    (void)fprintf(stderr, "[==========] %u test(s) run.\n[  PASSED  ] %u test(s).\n", passed,
                  passed);
    return 0;
}
