/* cql_list.c: how long lists of a large bucket take on a real database (FGW_TEST_CQL_HOSTS,
 * FGW_TEST_CQL_PORT): loads N heads into a keyspace of its own by batches, one partition each, then
 * lists the bucket page by page, without and with a delimiter, and prints one JSON object a list.
 *
 *   fgw-cql-list [--keys N] [--per-group N] [--shards N] [--pages N] [--database-pid N]
 *
 * Keys are group-NNNNNN/NNNNNN. --pages ends a list early. --database-pid: the CPU time that process
 * uses meanwhile is told too. Never part of a test.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "contract/meta/cql_heads.h"
#include "contract/meta/memory_blobs.h"
#include "event/fiber.h"
#include "meta/cql/cql.h"
#include "meta/cql/cql_internal.h"

enum { PAGE_MAX = 1000 };

struct bench {
    unsigned long keys, per_group, shards, pages, database_pid;
    struct cql_keyspace keyspace;
    struct fgw_meta *meta;
    struct fgw_bucket bucket;
};

static void die(const char *what, const struct fgw_error *error)
{
    (void)fprintf(stderr, "%s: %s\n", what, fgw_error_message(error));
    exit(1);
}

/* -- listing ------------------------------------------------------------------------------------- */

struct figures {
    double *ms;
    size_t pages;
    unsigned long entries;
    struct fgw_cql_rounds rounds;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double cpu_s(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Of the database's process: user and system ticks are the 14th and 15th field of its stat. */
static double database_cpu_s(const struct bench *bench)
{
    char path[64];
    unsigned long user = 0;
    unsigned long system = 0;
    (void)snprintf(path, sizeof path, "/proc/%lu/stat", bench->database_pid);
    FILE *file = bench->database_pid == 0 ? NULL : fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &system) != 2) {
        user = 0;
    }
    (void)fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void list_pages(struct bench *bench, struct fgw_bytes delimiter, struct figures *figures)
{
    struct fgw_arena arena;
    struct fgw_error error;
    struct fgw_buf after;
    bool more = true;
    fgw_arena_init(&arena, 0);
    fgw_error_init(&error);
    fgw_buf_init(&after, 0);
    while (more && (bench->pages == 0 || figures->pages < bench->pages)) {
        struct fgw_list_query query = {
            .delimiter = delimiter, .after = fgw_buf_bytes(&after), .max = PAGE_MAX};
        struct fgw_object_list list;
        uint64_t start_ns = fgw_clock_boot_ns();
        if (bench->meta->ops->object_list(bench->meta, &arena, &bench->bucket, &query, &list,
                                          &error) != FGW_OK) {
            die("list", &error);
        }
        figures->ms[figures->pages++] = (double)(fgw_clock_boot_ns() - start_ns) / 1e6;
        figures->entries += list.count;
        more = list.truncated;
        if (list.count > 0) {
            const struct fgw_list_entry *last = &list.entries[list.count - 1];
            fgw_buf_clear(&after);
            (void)fgw_buf_append(&after, last->is_prefix ? last->prefix : last->object.key);
        }
        fgw_arena_reset(&arena);
    }
    fgw_arena_deinit(&arena);
    fgw_buf_deinit(&after);
}

static void list(struct bench *bench, const char *name, struct fgw_bytes delimiter)
{
    struct figures figures = {.ms = fgw_xcalloc(bench->keys / PAGE_MAX + 16, sizeof(double))};
    uint64_t start_ms = fgw_clock_boot_ms();
    double start_cpu_s = cpu_s();
    double start_database_s = database_cpu_s(bench);
    fgw_meta_cql_count_rounds(bench->meta, &figures.rounds);
    list_pages(bench, delimiter, &figures);
    fgw_meta_cql_count_rounds(bench->meta, NULL);
    double took_s = (double)(fgw_clock_boot_ms() - start_ms) / 1000;
    double used_s = cpu_s() - start_cpu_s;
    double database_s = database_cpu_s(bench) - start_database_s;
    size_t pages = figures.pages;
    qsort(figures.ms, pages, sizeof *figures.ms, by_value);
    (void)printf("{\"list\": \"%s\", \"entries\": %lu, \"pages\": %zu, \"seconds\": %.1f, "
                 "\"median_ms\": %.1f, \"p99_ms\": %.1f, \"longest_ms\": %.1f, "
                 "\"rounds_a_page\": %.2f, \"statements_a_page\": %.1f, \"own_cpu_ms_a_page\": "
                 "%.2f, \"database_cpu_ms_a_page\": %.2f}\n",
                 name, figures.entries, pages, took_s, figures.ms[pages / 2],
                 figures.ms[pages * 99 / 100], figures.ms[pages - 1],
                 (double)figures.rounds.rounds / (double)pages,
                 (double)figures.rounds.statements / (double)pages, used_s * 1000 / (double)pages,
                 database_s * 1000 / (double)pages);
    (void)fflush(stdout);
    fgw_xfree(figures.ms);
}

/* -- the run --------------------------------------------------------------------------------------- */

static void load(struct bench *bench)
{
    struct cql_heads heads = {&bench->keyspace, &bench->bucket, bench->keys, bench->per_group};
    uint64_t start_ms = fgw_clock_boot_ms();
    cql_heads_load(&heads);
    (void)printf("{\"loaded\": %lu, \"shards\": %u, \"seconds\": %.1f}\n", bench->keys,
                 cql_shards(&bench->bucket.id), (double)(fgw_clock_boot_ms() - start_ms) / 1000);
    (void)fflush(stdout);
}

static struct fgw_cql_client *client(void *context)
{
    return ((struct bench *)context)->keyspace.client;
}

static void run(void *arg)
{
    struct bench *bench = arg;
    struct fgw_bytes secret = FGW_LIT("a secret of at least thirty-two characters");
    struct fgw_arena arena;
    struct fgw_error error;
    fgw_arena_init(&arena, 0);
    fgw_error_init(&error);
    cql_keyspace_open(&bench->keyspace);
    struct fgw_blobs *blobs = memory_blobs_new();
    struct fgw_meta_cql_options options = {.client = client,
                                           .client_context = bench,
                                           .keyspace = bench->keyspace.name,
                                           .blobs = blobs,
                                           .secrets = &secret,
                                           .secret_count = 1,
                                           .shards = (unsigned)bench->shards};
    struct fgw_bucket wanted = {
        .name = FGW_LIT("large"), .owner_id = FGW_LIT("owner"), .region = FGW_LIT("us-east-1")};
    bench->meta = fgw_meta_cql_new(&options);
    if (bench->meta->ops->bucket_create(bench->meta, &arena, &wanted, &bench->bucket, &error) !=
        FGW_OK) {
        die("bucket", &error);
    }
    load(bench);
    list(bench, "flat", fgw_bytes(NULL, 0));
    list(bench, "delimiter", FGW_LIT("/"));
    cql_keyspace_close(&bench->keyspace);
    bench->meta->ops->free(bench->meta);
    memory_blobs_free(blobs);
    fgw_arena_deinit(&arena);
}

int main(int argc, char **argv)
{
    struct bench bench = {.keys = 1000000, .per_group = 1000};
    const struct option options[] = {
        {"keys", required_argument, NULL, 'k'},         {"per-group", required_argument, NULL, 'g'},
        {"shards", required_argument, NULL, 's'},       {"pages", required_argument, NULL, 'p'},
        {"database-pid", required_argument, NULL, 'd'}, {0}};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        unsigned long *to = option == 'k'   ? &bench.keys
                            : option == 'g' ? &bench.per_group
                            : option == 's' ? &bench.shards
                            : option == 'p' ? &bench.pages
                            : option == 'd' ? &bench.database_pid
                                            : NULL;
        if (to == NULL) {
            return 2;
        }
        *to = strtoul(optarg, NULL, 10);
    }
    if (!cql_keyspace_configured() || bench.per_group == 0) {
        (void)fprintf(stderr, "FGW_TEST_CQL_HOSTS names no database\n");
        return 2;
    }
    fgw_fiber_run_alone(run, &bench);
    return 0;
}
