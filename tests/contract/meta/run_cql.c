/* run_cql.c: the metadata contract on a real database (FGW_TEST_CQL_HOSTS, FGW_TEST_CQL_PORT), in a
 * keyspace of its own. Exit 77 (skipped) when no database is named. */
#include "contract/meta/meta_contract.h"

#include "contract/meta/cql_keyspace.h"
#include "contract/meta/memory_blobs.h"
#include "event/fiber.h"
#include "meta/cql/cql.h"

enum { SHORT_ROWS = 60 }; /* after which list pages of the second backend end */
static const char *only;
static unsigned passed;

static struct fgw_cql_client *client(void *context)
{
    return ((struct cql_keyspace *)context)->client;
}

/* Few common prefixes with many keys each: pages end early, and together they are the whole list. */
static void case_early_page_end(struct contract *c)
{
    enum { PREFIXES = 6, EACH = 60 };
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_list_query query = {.max = 1000, .delimiter = FGW_LIT("/")};
    struct fgw_object_list list = {.truncated = true};
    size_t seen = 0;
    size_t pages = 0;
    for (unsigned i = 0; i < PREFIXES * EACH; i++) {
        const char *key = fgw_arena_printf(&c->arena, "p%u/%u", i / EACH, i % EACH);
        MUST_ANSWER(contract_put(c, &bucket, key, "x", NULL, NULL), FGW_OK);
    }
    MUST_ANSWER(contract_put(c, &bucket, "q", "x", NULL, NULL), FGW_OK);
    for (; list.truncated; pages++) {
        MUST_ANSWER(
            c->meta->ops->object_list(c->meta, &c->arena, &bucket, &query, &list, &c->error),
            FGW_OK);
        MUST(list.count > 0);
        for (size_t i = 0; i < list.count; i++, seen++) {
            const struct fgw_list_entry *entry = &list.entries[i];
            struct fgw_bytes name = entry->is_prefix ? entry->prefix : entry->object.key;
            const char *expected =
                seen == PREFIXES ? "q" : fgw_arena_printf(&c->arena, "p%zu/", seen);
            MUST(fgw_bytes_eq_str(name, expected));
            query.after = fgw_arena_copy(&c->arena, name);
        }
    }
    MUST(seen == PREFIXES + 1);
    MUST(pages > 1);
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
    options.list_rows = SHORT_ROWS;
    struct fgw_meta *hasty = fgw_meta_cql_new(&options);
    passed += meta_contract_run(meta, blobs, only);
    if (only == NULL || strstr("early page end", only) != NULL) {
        struct contract c = {.meta = hasty, .blobs = blobs};
        fgw_error_init(&c.error);
        fgw_arena_init(&c.arena, 0);
        case_early_page_end(&c);
        fgw_arena_deinit(&c.arena);
        passed++;
    }
    cql_keyspace_close(&keyspace);
    meta->ops->free(meta);
    hasty->ops->free(hasty);
    memory_blobs_free(blobs);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    contract_loses_answers = getenv("FGW_TEST_LOST_ANSWERS") != NULL;
    if (!cql_keyspace_configured()) {
        (void)fprintf(stderr, "FGW_TEST_CQL_HOSTS names no database: skipped\n");
        return 77;
    }
    fgw_fiber_run_alone(run, NULL);
    (void)fprintf(stderr, "[==========] %u test(s) run.\n[  PASSED  ] %u test(s).\n", passed,
                  passed);
    return 0;
}
