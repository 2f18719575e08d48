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
#include "contract/meta/cql_keyspace.h"
#include "contract/meta/memory_blobs.h"
#include "event/fiber.h"
#include "meta/cql/cql.h"
#include "meta/cql/cql_internal.h"

enum { BATCH_ROWS = 100, KEY_SIZE = 32, PAGE_MAX = 1000 };

struct bench {
    unsigned long keys, per_group, shards, pages, database_pid;
    struct cql_keyspace keyspace;
    struct fgw_meta *meta;
    struct fgw_bucket bucket;
    struct fgw_cql_statement insert;
    struct fgw_wait loaded;
};

struct loader {
    struct bench *bench;
    unsigned shard;
    struct fgw_arena arena;
    struct fgw_cql_value (*values)[7];
    struct fgw_cql_write *writes;
    size_t count;
};

static void die(const char *what, const struct fgw_error *error)
{
    (void)fprintf(stderr, "%s: %s\n", what, fgw_error_message(error));
    exit(1);
}

/* -- loading ------------------------------------------------------------------------------------- */

static size_t key_of(const struct bench *bench, unsigned long index, char out[KEY_SIZE])
{
    int len = snprintf(out, KEY_SIZE, "group-%06lu/%06lu", index / bench->per_group,
                       index % bench->per_group);
    return (size_t)len;
}

static void flush(struct loader *loader)
{
    struct fgw_error error;
    fgw_error_init(&error);
    if (loader->count > 0 && fgw_cql_batch(loader->bench->keyspace.client, loader->writes,
                                           loader->count, NULL, &error) != FGW_OK) {
        die("batch", &error);
    }
    loader->count = 0;
    fgw_arena_reset(&loader->arena);
}

static void add(struct loader *loader, struct fgw_bytes key)
{
    struct fgw_object object = {.key = key,
                                .size = 4096,
                                .mtime_ms = fgw_clock_wall_ms(),
                                .etag = FGW_LIT("d41d8cd98f00b204e9800998ecf8427e")};
    struct fgw_row_state state = {.recent_count = 0};
    struct fgw_id *rev = fgw_arena_alloc(&loader->arena, sizeof *rev);
    struct fgw_cql_value *values = loader->values[loader->count];
    struct fgw_buf row;
    fgw_id_random(rev);
    fgw_id_version(object.mtime_ms, NULL, &object.version_id);
    object.owner_id = object.version_id;
    fgw_buf_init(&row, 0);
    fgw_row_encode_object(&row, &object, &state);
    struct fgw_bytes bytes = fgw_arena_copy(&loader->arena, fgw_buf_bytes(&row));
    fgw_buf_deinit(&row);
    size_t listing = fgw_row_listing_size(bytes);
    values[0] = fgw_cql_int(CQL_LIVE);
    values[1] = cql_id_blob(rev);
    values[2] = fgw_cql_blob(fgw_bytes_sub(bytes, 0, listing));
    values[3] = fgw_cql_blob(fgw_bytes_sub(bytes, listing, SIZE_MAX));
    values[4] = cql_id_uuid(&loader->bench->bucket.id);
    values[5] = fgw_cql_int((int32_t)loader->shard);
    values[6] = fgw_cql_blob(fgw_arena_copy(&loader->arena, key));
    loader->writes[loader->count++] =
        (struct fgw_cql_write){&loader->bench->insert, values, FGW_COUNT_OF(loader->values[0])};
    if (loader->count == BATCH_ROWS) {
        flush(loader);
    }
}

static void load_shard(void *arg)
{
    struct loader *loader = arg;
    struct bench *bench = loader->bench;
    fgw_arena_init(&loader->arena, 0);
    loader->values = fgw_xcalloc(BATCH_ROWS, sizeof *loader->values);
    loader->writes = fgw_xcalloc(BATCH_ROWS, sizeof *loader->writes);
    for (unsigned long i = 0; i < bench->keys; i++) {
        char text[KEY_SIZE];
        struct fgw_bytes key = fgw_bytes((const uint8_t *)text, key_of(bench, i, text));
        struct cql_place place = {&bench->bucket.id, key};
        if (cql_shard(&place) == (int32_t)loader->shard) {
            add(loader, key);
        }
    }
    flush(loader);
    fgw_arena_deinit(&loader->arena);
    fgw_xfree(loader->values);
    fgw_xfree(loader->writes);
    fgw_wait_signal(&bench->loaded);
}

static void load(struct bench *bench)
{
    char *text = fgw_xmalloc(256);
    unsigned shards = cql_shards(&bench->bucket.id);
    struct loader *loaders = fgw_xcalloc(shards, sizeof *loaders);
    uint64_t start_ms = fgw_clock_boot_ms();
    (void)snprintf(text, 256,
                   "INSERT INTO %s.objects (state, rev, listing, data, bucket_id, shard, key)"
                   " VALUES (?, ?, ?, ?, ?, ?, ?)",
                   bench->keyspace.name);
    bench->insert = (struct fgw_cql_statement){"load", text, FGW_CQL_WRITE, true};
    for (unsigned done = 0; done < shards;) { /* a few at a time */
        unsigned some = shards - done < 8 ? shards - done : 8;
        fgw_wait_init(&bench->loaded, some);
        for (unsigned i = 0; i < some; i++, done++) {
            loaders[done] = (struct loader){.bench = bench, .shard = done};
            fgw_fiber_spawn(fgw_loop_current(), load_shard, &loaders[done]);
        }
        fgw_wait_for(&bench->loaded);
    }
    fgw_xfree(loaders);
    (void)printf("{\"loaded\": %lu, \"shards\": %u, \"seconds\": %.1f}\n", bench->keys, shards,
                 (double)(fgw_clock_boot_ms() - start_ms) / 1000);
    (void)fflush(stdout);
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
    fgw_xfree((char *)(uintptr_t)bench->insert.text);
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
