/* cmd_import.c: `fgw import FOLDER`: takes over the objects of the Go gateway (import/import.h), into
 * a data directory or into a cluster. */
#include <stdio.h>

#include "base/encode.h"
#include "bin/cql_settings.h"
#include "bin/role_job.h"
#include "event/fiber.h"
#include "import/import.h"

enum option { OPT_INTO, OPT_KEYSPACE, OPT_BUCKET, OPT_DRY_RUN, OPT_JSON, OPT_COUNT };
enum { CONNECT_MS = 30000 };

struct import_verb {
    struct fgw_config config;
    struct fgw_config_option options[OPT_COUNT];
    const char *folder;
    bool cluster;
    struct fgw_cql_config *cql;
    const struct fgw_role_parts *parts; /* NULL in a dry run */
    struct fgw_import_counts counts;
    struct fgw_error error;
    enum fgw_err result;
};

static void print_problem(void *context, const struct fgw_import_problem *problem)
{
    (void)context;
    if (problem->bucket.len == 0 && problem->key.len == 0) {
        (void)fprintf(stderr, "fgw: import: %s\n", problem->message);
    } else {
        (void)fprintf(stderr, "fgw: import: %.*s/%.*s: %.*s: %s\n", FGW_FMT(problem->bucket),
                      FGW_FMT(problem->key), FGW_FMT(problem->cid), problem->message);
    }
}

static int usage(const char *text, const char *detail)
{
    (void)fprintf(stderr, "fgw: error: %s%s\n", text, detail);
    return FGW_EXIT_USAGE;
}

/* -- the import ---------------------------------------------------------------------------------- */

static void run(void *arg)
{
    struct import_verb *verb = arg;
    const struct fgw_role_parts *parts = verb->parts;
    const char *keyspace = verb->options[OPT_KEYSPACE].value;
    struct fgw_loop *loop = fgw_loop_current();
    uint8_t digest[FGW_SHA256_SIZE];
    char owner[2 * FGW_SHA256_SIZE];
    struct fgw_import_options options = {.client = fgw_cql_client_new(loop, verb->cql),
                                         .keyspace = keyspace == NULL ? verb->config.cql_keyspace
                                                                      : keyspace,
                                         .folder = verb->folder,
                                         .only_bucket = verb->options[OPT_BUCKET].value,
                                         .dry_run = parts == NULL,
                                         .region = verb->config.region,
                                         .on_problem = print_problem};
    if (parts != NULL) {
        fgw_sha256(fgw_bytes_str(parts->root_access_key), digest);
        fgw_hex_encode(fgw_bytes(digest, sizeof digest), owner);
        options.owner_id = fgw_bytes(owner, sizeof owner);
        options.meta = parts->meta;
        options.blobs = parts->blobs;
    }
    fgw_error_init(&verb->error);
    verb->result =
        fgw_cql_client_wait_ready(options.client, fgw_loop_now_ms(loop) + CONNECT_MS, &verb->error);
    if (verb->result == FGW_OK) {
        verb->result = fgw_import_run(&options, &verb->counts, &verb->error);
    }
    fgw_cql_client_free(options.client);
}

static void run_on_first(void *arg, unsigned index)
{
    if (index == 0) {
        run(arg);
    }
}

static int job(void *context, const struct fgw_role_parts *parts)
{
    struct import_verb *verb = context;
    verb->parts = parts;
    fgw_workers_run(parts->workers, run_on_first, verb);
    return FGW_EXIT_OK;
}

/* -- what is printed ----------------------------------------------------------------------------- */

static void print_counts(const struct import_verb *verb)
{
    const struct fgw_import_counts *counts = &verb->counts;
    bool dry = verb->options[OPT_DRY_RUN].value != NULL;
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"cars", counts->cars},
                {"cars_damaged", counts->cars_damaged},
                {"car_blocks", counts->car_blocks},
                {"objects", counts->rows},
                {dry ? "would_import" : "imported", counts->imported},
                {"bytes", counts->bytes},
                {"present", counts->present},
                {"kept", counts->kept},
                {"expired", counts->expired},
                {"failed", counts->failed},
                {"blocks_checked", counts->blocks},
                {"buckets_made", counts->buckets_made}};
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)json_object_set_new(all, rows[i].name, json_integer((json_int_t)rows[i].value));
        if (verb->options[OPT_JSON].value == NULL) {
            (void)printf("%-14s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
        }
    }
    if (verb->options[OPT_JSON].value != NULL) {
        (void)json_dumpf(all, stdout, JSON_INDENT(2));
        (void)printf("\n");
    }
    json_decref(all);
    (void)fflush(stdout);
}

static int finish(const struct import_verb *verb)
{
    if (verb->result != FGW_OK) {
        int exit_code = fgw_exit_failed(verb->result, &verb->error);
        print_counts(verb);
        return verb->result == FGW_ERR_NOT_FOUND ? FGW_EXIT_USAGE : exit_code;
    }
    print_counts(verb);
    return verb->counts.failed > 0 || verb->counts.cars_damaged > 0 ? FGW_EXIT_INTERNAL
                                                                    : FGW_EXIT_OK;
}

/* -- start --------------------------------------------------------------------------------------- */

static int check(struct import_verb *verb)
{
    const char *keyspace = verb->options[OPT_KEYSPACE].value;
    const char *into = verb->options[OPT_INTO].value;
    struct fgw_error error;
    fgw_error_init(&error);
    if (verb->folder == NULL) {
        return usage("usage: fgw import FOLDER, the folder of the group CARs", "");
    }
    if (into != NULL && strcmp(into, "store") != 0 && strcmp(into, "cluster") != 0) {
        return usage("--into takes store or cluster, not ", into);
    }
    for (const char *p = keyspace; p != NULL && *p != '\0'; p++) {
        bool fits = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '_';
        if (!fits) {
            return usage("--from-keyspace takes a name of a-z 0-9 _, not ", keyspace);
        }
    }
    if (verb->config.cql_hosts.count == 0) {
        return usage("FGW_CQL_HOSTS must name the database that has the table S3Objects", "");
    }
    enum fgw_err err = fgw_cql_config_of(&verb->config, &verb->cql, &error);
    return err == FGW_OK ? FGW_EXIT_OK : fgw_exit_failed(err, &error);
}

/* Whose settings count is known before they are read. */
static bool goes_into_cluster(const struct fgw_command *command)
{
    for (int i = 0; i < command->argc; i++) {
        bool next = strcmp(command->argv[i], "--into") == 0 && i + 1 < command->argc &&
                    strcmp(command->argv[i + 1], "cluster") == 0;
        if (next || strcmp(command->argv[i], "--into=cluster") == 0) {
            return true;
        }
    }
    return false;
}

static const struct fgw_config_option OPTIONS[OPT_COUNT] = {
    [OPT_INTO] = {"into", true, NULL,
                  "store (FGW_DATA, the default) or cluster (its nodes, as a proxy)"},
    [OPT_KEYSPACE] = {"from-keyspace", true, NULL,
                      "keyspace of the table S3Objects; FGW_CQL_KEYSPACE unless given"},
    [OPT_BUCKET] = {"bucket", true, NULL, "only this bucket"},
    [OPT_DRY_RUN] = {"dry-run", false, NULL, "read and check everything, write nothing"},
    [OPT_JSON] = {"json", false, NULL, "one JSON document"},
};

int fgw_cmd_import(const struct fgw_command *command)
{
    struct import_verb verb = {.cluster = goes_into_cluster(command)};
    struct fgw_command as_role = *command;
    memcpy(verb.options, OPTIONS, sizeof OPTIONS);
    as_role.role = verb.cluster ? FGW_ROLE_PROXY : FGW_ROLE_SERVE;
    struct fgw_config_input input = {.options = verb.options,
                                     .option_count = OPT_COUNT,
                                     .positionals = &verb.folder,
                                     .positional_max = 1};
    if (fgw_command_config(&as_role, &input, &verb.config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    int exit_code = check(&verb);
    if (exit_code == FGW_EXIT_OK && verb.options[OPT_DRY_RUN].value != NULL) {
        fgw_fiber_run_alone(run, &verb);
    } else if (exit_code == FGW_EXIT_OK) {
        exit_code = verb.cluster ? fgw_proxy_job(&verb.config, job, &verb)
                                 : fgw_serve_job(&verb.config, job, &verb);
    }
    exit_code = exit_code == FGW_EXIT_OK ? finish(&verb) : exit_code;
    fgw_cql_config_free(verb.cql);
    fgw_config_deinit(&verb.config);
    return exit_code;
}
