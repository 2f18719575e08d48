/* database.c: see database.h. */
#include "bin/database.h"

#include <unistd.h>

#include "base/clock.h"
#include "bin/cql_metrics.h"
#include "bin/cql_settings.h"
#include "bin/purger.h"
#include "bin/schema.h"
#include "bin/schema_metrics.h"
#include "event/fiber.h"

enum {
    FIRST_WAIT_MS = 10000,
    CHECK_GOOD_MS = 5000,
    CHECK_BAD_MS = 1000,
    DEGRADED_MS = 60000, /* ready for so long after the database was last good (cluster.md 7) */
    IDENTIFY_MS = 30000,
    PURGE_INTERVAL_MS = 24 * 3600 * 1000,
    REGISTER_MS = 180000, /* rows of fgw_schema_nodes count for 10 min */
    PURGE_PAUSE_MS = 100  /* 5,000 rows a second at most */
};

struct fgw_database {
    struct fgw_workers *workers;
    struct fgw_health *health;
    const struct fgw_config *settings;
    struct fgw_cql_config *config;
    enum fgw_migrate_exit schema;    /* of the migrations at start */
    struct fgw_cql_client **clients; /* one a worker */
    struct fgw_meta *meta;
    struct fgw_purger *purger;
    struct fgw_error first_error; /* of worker 0's first wait */
    /* the watch over the database, on worker 0 */
    struct fgw_wait wake;
    struct fgw_wait ended;
    bool schema_fits; /* worker 0 only */
    bool watching;
    bool stopping;
    /* which sets are on this process's store; NULL: all */
    fgw_database_here_fn *here;
    void *here_context;
};

struct fgw_cql_client *fgw_database_client(void *context)
{
    struct fgw_database *database = context;
    return database->clients[fgw_worker_index()];
}

/* -- readiness ------------------------------------------------------------------------------------ */

static void watch(void *arg)
{
    struct fgw_database *database = arg;
    uint64_t good_ms = 0;
    uint64_t register_ms = 0;
    while (!database->stopping) {
        struct fgw_error error;
        fgw_error_init(&error);
        bool good = database->meta->ops->ready(database->meta, &error) == FGW_OK;
        uint64_t now_ms = fgw_clock_boot_ms();
        if (good) {
            good_ms = now_ms;
            fgw_health_set(database->health, "metadata", NULL);
        } else if (good_ms == 0 || now_ms - good_ms > DEGRADED_MS) {
            fgw_health_set(database->health, "metadata", fgw_error_message(&error));
        }
        if (good && database->schema_fits && now_ms >= register_ms) {
            register_ms = now_ms + REGISTER_MS;
            fgw_schema_register(database->settings, database->clients[0]);
        }
        uint64_t until_ms =
            fgw_loop_now_ms(fgw_loop_current()) + (good ? CHECK_GOOD_MS : CHECK_BAD_MS);
        if (!database->stopping && fgw_wait_until(&database->wake, until_ms) == FGW_OK) {
            break;
        }
    }
    fgw_wait_signal(&database->ended);
}

/* -- rows that nobody needs any more --------------------------------------------------------------- */

static void purge(void *context, struct fgw_purger *purger)
{
    struct fgw_database *database = context;
    struct fgw_meta_cql_purge options = {
        .pause_ms = PURGE_PAUSE_MS, .stop = fgw_purger_stopping, .context = purger};
    struct fgw_meta_cql_purged done;
    struct fgw_error error;
    bool mine = false;
    fgw_error_init(&error);
    enum fgw_err err = fgw_meta_cql_purge_claim(database->meta, PURGE_INTERVAL_MS, &mine, &error);
    if (err == FGW_OK && mine) {
        err = fgw_meta_cql_purge(database->meta, &options, &done, &error);
        fgw_log_info("metadata",
                     "purge: %llu rows seen, removed %llu heads, %llu versions, %llu uploads; %llu "
                     "uploads carried to their end",
                     (unsigned long long)done.rows, (unsigned long long)done.heads,
                     (unsigned long long)done.versions, (unsigned long long)done.uploads,
                     (unsigned long long)done.finished);
    }
    if (err != FGW_OK && err != FGW_ERR_CANCELLED) {
        fgw_log_warn("metadata", "purge: %s", fgw_error_message(&error));
    }
    if (!fgw_purger_stopping(purger)) {
        fgw_schema_look(database->settings, database->clients[0]);
    }
}

/* -- life ----------------------------------------------------------------------------------------- */

static void start_worker(void *arg, unsigned index)
{
    struct fgw_database *database = arg;
    database->clients[index] = fgw_cql_client_new(fgw_loop_current(), database->config);
}

static void wait_first(void *arg, unsigned index)
{
    struct fgw_database *database = arg;
    if (index != 0) {
        return;
    }
    enum fgw_err err = fgw_cql_client_wait_ready(
        database->clients[0], fgw_loop_now_ms(fgw_loop_current()) + FIRST_WAIT_MS,
        &database->first_error);
    database->first_error.code = err;
    fgw_wait_init(&database->wake, 1);
    fgw_wait_init(&database->ended, 1);
    database->watching = true;
    fgw_fiber_spawn(fgw_loop_current(), watch, database);
}

/* Nothing is served before the schema is what this program needs. */
static void prepare_schema(void *arg, unsigned index)
{
    struct fgw_database *database = arg;
    if (index == 0) {
        database->schema =
            fgw_schema_at_start(database->settings, database->clients[0], database->health);
        database->schema_fits = database->schema == FGW_MIGRATE_EXIT_OK;
    }
}

static void stop_worker(void *arg, unsigned index)
{
    struct fgw_database *database = arg;
    if (index == 0 && database->watching) {
        database->stopping = true;
        fgw_wait_signal(&database->wake);
        fgw_wait_for(&database->ended);
    }
    fgw_cql_client_free(database->clients[index]);
}

static void make_meta(struct fgw_database *database, const struct fgw_config *config,
                      struct fgw_blobs *blobs)
{
    size_t count = config->cluster_secrets.count;
    struct fgw_bytes *secrets = fgw_xcalloc(count + 1, sizeof *secrets);
    for (size_t i = 0; i < count; i++) {
        secrets[i] = fgw_bytes_str(config->cluster_secrets.items[i]);
    }
    struct fgw_meta_cql_options options = {.client = fgw_database_client,
                                           .client_context = database,
                                           .workers = fgw_workers_count(database->workers),
                                           .keyspace = config->cql_keyspace,
                                           .blobs = blobs,
                                           .secrets = secrets,
                                           .secret_count = count};
    database->meta = fgw_meta_cql_new(&options);
    fgw_xfree(secrets);
}

/* FGW_ERR_AGAIN: it is not what this program needs. */
static enum fgw_err look_at_schema(struct fgw_database *database, struct fgw_error *error)
{
    fgw_schema_stop_on_signals(); /* a lock that is held is given back first */
    fgw_workers_run(database->workers, prepare_schema, database);
    fgw_schema_signals_back();
    if (fgw_schema_stop_requested(NULL)) {
        fgw_log_info("server", "stopped by a signal during the start");
        fgw_database_close(database);
        _exit(FGW_EXIT_OK); /* as any signal before requests are served: server.c */
    }
    if (database->schema != FGW_MIGRATE_EXIT_OK) {
        (void)fgw_error_set(
            error, FGW_ERR_AGAIN,
            "the schema of the database is not what this program needs (see above); "
            "fgw migrate status shows it");
        fgw_error_add(error, FGW_ERROR_EXIT_CODE, "%d", (int)database->schema);
        return FGW_ERR_AGAIN;
    }
    return FGW_OK;
}

enum fgw_err fgw_database_open(const struct fgw_database_options *options,
                               struct fgw_database **out_database, struct fgw_error *error)
{
    struct fgw_server *server = options->server;
    struct fgw_database *database = fgw_xcalloc(1, sizeof *database);
    database->workers = fgw_server_workers(server);
    database->health = fgw_server_health(server);
    database->settings = options->config;
    database->schema_fits = options->schema_fits;
    enum fgw_err err = fgw_cql_config_of(options->config, &database->config, error);
    if (err != FGW_OK) {
        fgw_xfree(database);
        return err;
    }
    fgw_health_set(database->health, "metadata", "connecting to the database");
    fgw_metrics_register(fgw_server_metrics(server), fgw_schema_metrics_write, NULL);
    fgw_metrics_register(fgw_server_metrics(server), fgw_cql_metrics_write, NULL);
    database->clients =
        fgw_xcalloc(fgw_workers_count(database->workers), sizeof(struct fgw_cql_client *));
    make_meta(database, options->config, options->blobs);
    fgw_workers_run(database->workers, start_worker, database);
    fgw_workers_run(database->workers, wait_first, database);
    err = database->first_error.code;
    if (err == FGW_ERR_CONFIG || err == FGW_ERR_ACCESS_DENIED) {
        *error = database->first_error;
        fgw_database_close(database);
        return err;
    }
    if (err != FGW_OK) {
        fgw_log_warn("metadata", "the database is away, requests get 503 until it is back: %s",
                     fgw_error_message(&database->first_error));
    }
    err = options->schema_fits ? FGW_OK : look_at_schema(database, error);
    if (err != FGW_OK) {
        fgw_database_close(database);
        return err;
    }
    database->purger = fgw_purger_start(database->workers, purge, database);
    *out_database = database;
    return FGW_OK;
}

struct identification {
    struct fgw_database *database;
    const struct fgw_identify *how;
    uint8_t *out_id;
    struct fgw_error *error;
    enum fgw_err err;
};

static void identify(void *arg, unsigned index)
{
    struct identification *self = arg;
    if (index != 0) {
        return;
    }
    uint64_t limit_ms = fgw_clock_boot_ms() + IDENTIFY_MS;
    do {
        self->err =
            fgw_cluster_identify(self->database->clients[0], self->database->settings->cql_keyspace,
                                 self->how, self->out_id, self->error);
        if (self->err == FGW_OK || self->err == FGW_ERR_NOT_FOUND) {
            return;
        }
        fgw_fiber_sleep_ms(CHECK_BAD_MS);
    } while (fgw_clock_boot_ms() < limit_ms);
}

enum fgw_err fgw_database_identify(struct fgw_database *database, const struct fgw_identify *how,
                                   uint8_t out_id[FGW_CLUSTER_ID_SIZE], struct fgw_error *error)
{
    struct identification self = {database, how, out_id, error, FGW_ERR_UNAVAILABLE};
    fgw_workers_run(database->workers, identify, &self);
    return self.err;
}

struct fgw_meta *fgw_database_meta(struct fgw_database *database)
{
    return database->meta;
}

void fgw_database_close(struct fgw_database *database)
{
    if (database == NULL) {
        return;
    }
    fgw_purger_stop(database->purger);
    fgw_workers_run(database->workers, stop_worker, database);
    database->meta->ops->free(database->meta);
    fgw_cql_config_free(database->config);
    fgw_xfree(database->clients);
    fgw_xfree(database);
}

/* -- questions from other threads ------------------------------------------------------------------ */

struct errand {
    struct fgw_task task;
    struct fgw_wait done;
    struct fgw_database *database;
    const struct fgw_storage_owner *owner;
    const struct fgw_cid *root;
    struct fgw_blob_live live;
    enum fgw_err err;
};

static void ask(void *arg)
{
    struct errand *errand = arg;
    struct fgw_meta *meta = errand->database->meta;
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    errand->err = meta->ops->blob_live(meta, &arena, errand->owner, errand->root, &errand->live);
    fgw_arena_deinit(&arena);
    fgw_wait_signal_remote(&errand->done);
}

static void start_asking(struct fgw_task *task)
{
    fgw_fiber_spawn(fgw_loop_current(), ask, FGW_CONTAINER_OF(task, struct errand, task));
}

void fgw_database_set_here(struct fgw_database *database, fgw_database_here_fn *here, void *context)
{
    database->here = here;
    database->here_context = context;
}

/* A set that is not known says nothing: the hold stays. */
static enum fgw_storage_liveness liveness_of(const struct fgw_database *database,
                                             const struct fgw_blob_live *live)
{
    if (!live->live) {
        return FGW_STORAGE_ABSENT;
    }
    enum fgw_storage_liveness liveness =
        live->any_set ? FGW_STORAGE_UNDECIDED : FGW_STORAGE_ELSEWHERE;
    for (unsigned i = 0; i < live->count; i++) {
        enum fgw_storage_liveness at = live->sets[i] == 0 || database->here == NULL
                                           ? FGW_STORAGE_HERE
                                           : database->here(database->here_context, live->sets[i]);
        if (at == FGW_STORAGE_HERE) {
            return at;
        }
        liveness = at == FGW_STORAGE_UNDECIDED ? at : liveness;
    }
    return liveness;
}

enum fgw_err fgw_database_blob_live(void *context, const struct fgw_storage_owner *owner,
                                    const struct fgw_cid *root,
                                    enum fgw_storage_liveness *out_liveness)
{
    struct errand errand = {
        .task.run = start_asking, .database = context, .owner = owner, .root = root};
    fgw_wait_init(&errand.done, 1);
    fgw_loop_post(fgw_workers_loop(errand.database->workers, 0), &errand.task);
    fgw_wait_for(&errand.done);
    if (errand.err == FGW_OK) {
        *out_liveness = liveness_of(errand.database, &errand.live);
    }
    return errand.err;
}
