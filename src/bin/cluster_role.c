/* cluster_role.c: see cluster_role.h. Until requests are served a signal ends the process at once;
 * while migrations may hold their lock, after it was given back. */
#include "bin/cluster_role.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "bin/cql_settings.h"
#include "bin/database.h"
#include "bin/node_calls.h"
#include "bin/role_job.h"
#include "bin/schema.h"
#include "bin/server.h"
#include "bin/store.h"
#include "bin/store_calls.h"
#include "blobs/replicated.h"
#include "cluster/cluster.h"
#include "event/fiber.h"
#include "node/node.h"

enum { RETRY_MS = 1000, PENDING_ASK_MAX_MS = 5 * 60 * 1000 };

struct role {
    struct fgw_config config;
    bool storage_node;
    struct fgw_server *server;
    struct fgw_bytes *secrets;
    uint8_t cluster_id[FGW_CLUSTER_ID_SIZE];
    struct fgw_storage *storage;
    struct fgw_remotes *remotes;
    struct fgw_small_cache *cache;
    struct fgw_cluster *cluster;
    struct fgw_blobs *blobs;
    struct fgw_database *database;
    _Atomic(struct fgw_node *) node;
    struct fgw_s3 *s3;
    struct fgw_node_calls node_calls;
    fgw_role_job *job; /* instead of serving; NULL: serve */
    void *job_context;
    struct fgw_piece_worker *pieces;
    struct fgw_admin_extra calls[FGW_STORE_CALLS];
    bool stopped; /* by a signal, while the schema was waited for */
};

static void set_health(void *context, const char *what, const char *text)
{
    struct role *role = context;
    fgw_health_set(fgw_server_health(role->server), what, text);
}

/* -- the database -------------------------------------------------------------------------------- */

struct looking {
    struct role *role;
    struct fgw_cql_config *config;
    int exit_code;
};

/* What others may still bring about (a database, a keyspace, a migration) is waited for. */
static bool worth_waiting(enum fgw_migrate_exit exit)
{
    return exit == FGW_MIGRATE_EXIT_USAGE || exit == FGW_MIGRATE_EXIT_PENDING ||
           exit == FGW_MIGRATE_EXIT_UNREACHABLE || exit == FGW_MIGRATE_EXIT_LOCKED ||
           exit == FGW_MIGRATE_EXIT_LOST;
}

/* A storage node may make the id: with its directory's own when that has one. */
static enum fgw_err identify(struct role *role, struct fgw_cql_client *client,
                             struct fgw_error *error)
{
    uint8_t own[FGW_CLUSTER_ID_SIZE];
    struct fgw_identify how = {.make = role->storage_node};
    if (role->storage_node) {
        enum fgw_err err = fgw_storage_peek_cluster_id(role->config.data_dir, own, error);
        if (err != FGW_OK && err != FGW_ERR_NOT_FOUND) {
            return err;
        }
        how.own = err == FGW_OK ? own : NULL;
    }
    return fgw_cluster_identify(client, role->config.cql_keyspace, &how, role->cluster_id, error);
}

/* One attempt: FGW_OK, FGW_ERR_AGAIN, or FGW_ERR_CONFIG with looking->exit_code. */
static enum fgw_err look_once(struct looking *looking, struct fgw_cql_client *client)
{
    struct role *role = looking->role;
    struct fgw_health *health = fgw_server_health(role->server);
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err =
        fgw_cql_client_wait_ready(client, fgw_loop_now_ms(fgw_loop_current()) + RETRY_MS, &error);
    if (err == FGW_OK) {
        set_health(role, "database", NULL);
        enum fgw_migrate_exit exit = fgw_schema_at_start(&role->config, client, health);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            looking->exit_code = (int)exit;
            return worth_waiting(exit) ? FGW_ERR_AGAIN : FGW_ERR_CONFIG;
        }
        err = identify(role, client, &error);
    }
    if (err != FGW_OK) {
        set_health(role, "database", fgw_error_message(&error));
        return FGW_ERR_AGAIN;
    }
    return FGW_OK;
}

/* Until the tables are there and say which cluster this is. */
static void look_for_cluster(void *arg, unsigned index)
{
    struct looking *looking = arg;
    struct role *role = looking->role;
    if (index != 0) {
        return;
    }
    struct fgw_cql_client *client = fgw_cql_client_new(fgw_loop_current(), looking->config);
    enum fgw_err err = FGW_ERR_AGAIN;
    while (!fgw_schema_stop_requested(NULL) && err == FGW_ERR_AGAIN) {
        err = look_once(looking, client);
        if (err == FGW_ERR_AGAIN) {
            fgw_fiber_sleep_ms(RETRY_MS);
        }
    }
    if (err == FGW_OK) {
        set_health(role, "database", NULL);
        looking->exit_code = FGW_EXIT_OK;
    }
    fgw_cql_client_free(client);
}

static int find_cluster(struct role *role)
{
    struct fgw_error error;
    struct looking looking = {.role = role, .exit_code = FGW_EXIT_INTERNAL};
    fgw_error_init(&error);
    set_health(role, "database", "connecting to the database");
    enum fgw_err err = fgw_cql_config_of(&role->config, &looking.config, &error);
    if (err != FGW_OK) {
        return fgw_exit_failed(err, &error);
    }
    fgw_schema_stop_on_signals();
    fgw_workers_run(fgw_server_workers(role->server), look_for_cluster, &looking);
    fgw_schema_signals_back();
    fgw_cql_config_free(looking.config);
    role->stopped = fgw_schema_stop_requested(NULL);
    return looking.exit_code;
}

/* -- the store ----------------------------------------------------------------------------------- */

static int open_storage(struct role *role)
{
    const struct fgw_config *config = &role->config;
    struct fgw_storage_options options = fgw_store_options(config);
    options.progress = fgw_server_note_opening;
    options.progress_context = role->server;
    options.cluster_id = role->cluster_id;
    options.pending_ask_ms = config->node_down_after_ms / 2 < PENDING_ASK_MAX_MS
                                 ? config->node_down_after_ms / 2
                                 : PENDING_ASK_MAX_MS;
    int exit_code = fgw_store_open(&options, &role->storage);
    if (exit_code == FGW_EXIT_OK &&
        memcmp(fgw_storage_cluster_id(role->storage), role->cluster_id, FGW_CLUSTER_ID_SIZE) != 0) {
        struct fgw_error error;
        fgw_error_init(&error);
        (void)fgw_error_set(&error, FGW_ERR_CONFIG,
                            "%s belongs to another cluster than keyspace %s (see fgw node adopt)",
                            config->data_dir, config->cql_keyspace);
        return fgw_exit_failed(FGW_ERR_CONFIG, &error);
    }
    return exit_code;
}

/* -- registry and blobs -------------------------------------------------------------------------- */

static void on_renewed(void *context, uint64_t sent_boot_ms)
{
    struct role *role = context;
    struct fgw_node *node = role->node;
    if (node != NULL) {
        fgw_node_renewed(node, sent_boot_ms);
    }
}

static void on_fenced(void *context, uint64_t higher_epoch)
{
    struct role *role = context;
    struct fgw_node *node = role->node;
    if (node != NULL) {
        fgw_node_fence(node, higher_epoch);
    }
}

static void on_taking(void *context, uint64_t epoch)
{
    struct role *role = context;
    struct fgw_node *node = role->node;
    if (node != NULL) {
        fgw_node_take(node, epoch);
    }
}

static enum fgw_err may_acknowledge(void *context)
{
    struct role *role = context;
    struct fgw_node *node = role->node;
    return node == NULL ? FGW_ERR_CANCELLED : fgw_node_may_acknowledge(node);
}

static struct fgw_cql_client *client_of_worker(void *context)
{
    struct role *role = context;
    return fgw_database_client(role->database);
}

/* Which sets the metadata names a blob on; on worker 0. */
static enum fgw_err named_sets(void *context, const struct fgw_storage_owner *owner,
                               const struct fgw_cid *root, struct fgw_cluster_named *out_named,
                               struct fgw_error *error)
{
    struct role *role = context;
    struct fgw_meta *meta = fgw_database_meta(role->database);
    struct fgw_arena arena;
    struct fgw_blob_live live = {0};
    fgw_arena_init(&arena, 0);
    enum fgw_err err = meta->ops->blob_live(meta, &arena, owner, root, &live);
    fgw_arena_deinit(&arena);
    if (err != FGW_OK) {
        return fgw_error_set(error, err, "The metadata cannot be asked: %s", fgw_err_text(err));
    }
    *out_named =
        (struct fgw_cluster_named){.live = live.live, .any_set = live.any_set, .count = live.count};
    _Static_assert(sizeof out_named->sets == sizeof live.sets, "as many sets");
    memcpy(out_named->sets, live.sets, sizeof live.sets);
    return FGW_OK;
}

/* Stores with an https URL are verified against the system's authorities. */
static int trust_stores(struct role *role)
{
    struct fgw_tls_context *tls;
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = fgw_tls_client_new(NULL, &tls, &error);
    if (err != FGW_OK) {
        return fgw_exit_failed(err, &error);
    }
    fgw_remotes_set_tls(role->remotes, tls);
    fgw_tls_unref(tls);
    return FGW_EXIT_OK;
}

static void make_blobs(struct role *role)
{
    const struct fgw_config *config = &role->config;
    unsigned workers = fgw_workers_count(fgw_server_workers(role->server));
    struct fgw_cluster_options cluster = {
        .workers = fgw_server_workers(role->server),
        .client = client_of_worker,
        .client_context = role,
        .keyspace = config->cql_keyspace,
        .replicas = config->replicas,
        .min_replicas = config->min_replicas,
        .storage = role->storage,
        .node_id = config->node_id,
        .zone = config->zone,
        .host = config->host,
        .url = config->node_url,
        .down_after_ms = config->node_down_after_ms,
        .repair_bytes_per_s = config->repair_rate,
        .named = named_sets,
        .renewed = on_renewed,
        .fenced = on_fenced,
        .taking = on_taking,
        .health = set_health,
        .context = role,
    };
    role->remotes = fgw_remotes_new(workers, role->secrets, config->cluster_secrets.count);
    cluster.remotes = role->remotes;
    role->cluster = fgw_cluster_new(&cluster);
    struct fgw_replicated_options blobs = {.placement = fgw_cluster_placement(role->cluster),
                                           .remotes = role->remotes,
                                           .workers = workers,
                                           .storage = role->storage,
                                           .may_acknowledge = may_acknowledge,
                                           .local_context = role};
    role->blobs = fgw_blobs_replicated_new(&blobs);
    role->cache = fgw_store_keep_small(config, fgw_server_metrics(role->server), role->blobs);
}

static int open_database(struct role *role)
{
    struct fgw_error error;
    fgw_error_init(&error);
    struct fgw_database_options options = {.config = &role->config,
                                           .server = role->server,
                                           .blobs = role->blobs,
                                           .schema_fits = true}; /* find_cluster */
    enum fgw_err err = fgw_database_open(&options, &role->database, &error);
    role->stopped = fgw_schema_stop_requested(NULL);
    return err == FGW_OK ? FGW_EXIT_OK : fgw_exit_failed(err, &error);
}

/* Until it is done, or only people can help: another store has this node's name, this one was
 * removed. */
static int join(struct role *role)
{
    for (;;) {
        struct fgw_error error;
        fgw_error_init(&error);
        set_health(role, "registry", "joining the cluster");
        enum fgw_err err = fgw_cluster_join(role->cluster, &error);
        if (err == FGW_OK) {
            set_health(role, "registry", NULL);
            return FGW_EXIT_OK;
        }
        if (err == FGW_ERR_IN_USE || err == FGW_ERR_CONFIG) {
            return fgw_exit_failed(err, &error);
        }
        set_health(role, "registry", fgw_error_message(&error));
        (void)sleep(1);
    }
}

/* -- serving ------------------------------------------------------------------------------------- */

static enum fgw_storage_liveness set_is_here(void *context, uint64_t set_id)
{
    struct role *role = context;
    const struct fgw_placement *placement = fgw_cluster_placement(role->cluster);
    struct fgw_placement_set *set = fgw_xmalloc(sizeof *set);
    enum fgw_storage_liveness here = FGW_STORAGE_UNDECIDED;
    if (placement->resolve(placement->context, set_id, set) == FGW_OK) {
        here = fgw_placement_set_is_here(set) ? FGW_STORAGE_HERE : FGW_STORAGE_ELSEWHERE;
    }
    fgw_xfree(set);
    return here;
}

/* A database that was restored from an earlier state frees nothing. */
static enum fgw_err blob_live(void *context, const struct fgw_storage_owner *owner,
                              const struct fgw_cid *root, enum fgw_storage_liveness *out_liveness)
{
    struct role *role = context;
    if (fgw_cluster_distrusts(role->cluster)) {
        *out_liveness = FGW_STORAGE_UNDECIDED;
        return FGW_OK;
    }
    return fgw_database_blob_live(role->database, owner, root, out_liveness);
}

static uint64_t epoch_of_set(void *context, uint64_t set_id)
{
    struct role *role = context;
    const struct fgw_placement *placement = fgw_cluster_placement(role->cluster);
    struct fgw_placement_set *set = fgw_xmalloc(sizeof *set);
    bool known = placement->resolve(placement->context, set_id, set) == FGW_OK;
    uint64_t epoch = known ? set->epoch : 0;
    fgw_xfree(set);
    return epoch;
}

/* -- holds that stay pending --------------------------------------------------------------------- */

/* A question of the storage's care to a worker. */
struct mending {
    struct fgw_task task;
    struct fgw_wait done;
    struct role *role;
    const struct fgw_storage_hold_seen *hold;
    enum fgw_err err;
};

/* The sets that name it, as the metadata says now. */
static enum fgw_err mend_named(struct mending *mending)
{
    struct role *role = mending->role;
    const struct fgw_storage_hold_seen *hold = mending->hold;
    struct fgw_cluster_named named = {0};
    struct fgw_error error;
    bool here = false;
    fgw_error_init(&error);
    enum fgw_err err = named_sets(role, &hold->owner, &hold->root, &named, &error);
    for (unsigned i = 0; err == FGW_OK && i < named.count; i++) {
        struct fgw_extent extent = {.number = hold->extent,
                                    .set = named.sets[i],
                                    .root = hold->root,
                                    .size = hold->size_bytes};
        if (set_is_here(role, extent.set) == FGW_STORAGE_HERE) {
            err = fgw_blobs_replicated_mend(role->blobs, &hold->owner, &extent, &error);
            here = true;
        }
    }
    if (err == FGW_OK && !here && named.count > 0) {
        err = fgw_cluster_hand_over(role->cluster, hold, &named, &error);
    }
    if (err != FGW_OK) {
        fgw_log_debug("cluster", "copies of a pending hold: %s", fgw_error_message(&error));
    }
    return err;
}

static void mend_on_worker(void *arg)
{
    struct mending *mending = arg;
    mending->err = mend_named(mending);
    fgw_wait_signal_remote(&mending->done);
}

static void start_mending(struct fgw_task *task)
{
    fgw_fiber_spawn(fgw_loop_current(), mend_on_worker,
                    FGW_CONTAINER_OF(task, struct mending, task));
}

static enum fgw_err pending_is_named(void *context, const struct fgw_storage_hold_seen *hold)
{
    struct role *role = context;
    struct mending mending = {.task.run = start_mending, .role = role, .hold = hold};
    fgw_wait_init(&mending.done, 1);
    fgw_loop_post(fgw_workers_loop(fgw_server_workers(role->server), 0), &mending.task);
    fgw_wait_for(&mending.done);
    return mending.err;
}

static void start_node(struct role *role)
{
    struct fgw_node_options options = {.storage = role->storage,
                                       .workers = fgw_server_workers(role->server),
                                       .secrets = role->secrets,
                                       .secret_count = role->config.cluster_secrets.count,
                                       .epoch = fgw_cluster_epoch(role->cluster),
                                       .set_epoch = epoch_of_set,
                                       .set_context = role};
    role->node = fgw_node_new(&options);
    fgw_server_set_block_api(role->server, fgw_node_handle, role->node);
    fgw_database_set_here(role->database, set_is_here, role);
    fgw_storage_set_named(role->storage, pending_is_named, role);
    fgw_storage_start_care(role->storage, blob_live, role);
}

static void write_metrics(void *context, struct fgw_buf *out)
{
    struct role *role = context;
    struct fgw_cluster_stats cluster;
    struct fgw_replicated_stats blobs;
    fgw_cluster_stats(role->cluster, &cluster);
    fgw_blobs_replicated_stats(role->blobs, &blobs);
    fgw_metrics_gauge(out, "fgw_cluster_stores", "Stores in the map.", cluster.stores);
    fgw_metrics_gauge(out, "fgw_cluster_stores_suspect", "Stores that failed lately.",
                      cluster.stores_suspect);
    fgw_metrics_gauge(out, "fgw_cluster_sets", "Replica sets in the map.", cluster.sets);
    fgw_metrics_gauge(out, "fgw_cluster_map_version", "Version of the map.", cluster.map_version);
    fgw_metrics_gauge(out, "fgw_cluster_database_restored",
                      "1: the database went back to an earlier state; nothing is freed.",
                      cluster.distrusts);
    fgw_metrics_gauge(out, "fgw_cluster_replicas_possible", "Copies that new objects get.",
                      cluster.replicas_possible);
    fgw_metrics_counter(out, "fgw_cluster_releases_kept_total",
                        "Releases written down for a store that could not be told.",
                        cluster.releases_kept);
    fgw_metrics_counter(out, "fgw_cluster_releases_followed_total",
                        "Holds that this store ended by such notes.", cluster.releases_followed);
    fgw_metrics_counter(out, "fgw_blobs_writes_total", "Blobs written.", blobs.writes);
    fgw_metrics_counter(out, "fgw_blobs_writes_failed_total", "Blobs with too few copies.",
                        blobs.writes_failed);
    fgw_metrics_counter(out, "fgw_blobs_sets_replaced_total", "Writes that went to another set.",
                        blobs.sets_replaced);
    fgw_metrics_counter(out, "fgw_blobs_restages_total",
                        "Writes that went on in another set in the middle of their body.",
                        blobs.restages);
    fgw_metrics_counter(out, "fgw_blobs_copies_missing_total",
                        "Copies that acknowledged writes lacked.", blobs.copies_missing);
    fgw_metrics_counter(out, "fgw_blobs_copies_made_total", "Missing copies that were made.",
                        blobs.copies_made);
    fgw_metrics_counter(out, "fgw_blobs_holds_confirmed_total",
                        "Holds that stores were told the name of.", blobs.confirmed);
    fgw_metrics_counter(out, "fgw_blobs_read_failovers_total", "Reads that went on elsewhere.",
                        blobs.read_failovers);
    fgw_metrics_counter(out, "fgw_blobs_reads_hedged_total",
                        "Reads that asked a second store because the first took long.",
                        blobs.reads_hedged);
    fgw_metrics_counter(out, "fgw_blobs_blocks_mended_total",
                        "Damaged blocks that got their bytes from another store.",
                        blobs.blocks_mended);
    fgw_metrics_counter(out, "fgw_blobs_reads_failed_total", "Reads that nobody could serve.",
                        blobs.reads_failed);
    fgw_metrics_counter(out, "fgw_blobs_digests_wrong_total",
                        "Leaves whose bytes had another digest.", blobs.digests_wrong);
    if (role->node != NULL) {
        struct fgw_node_stats node;
        fgw_node_stats(role->node, &node);
        fgw_metrics_gauge(out, "fgw_node_sessions", "Open block API sessions.", node.sessions);
        fgw_metrics_counter(out, "fgw_node_requests_total", "Block API requests.", node.requests);
        fgw_metrics_counter(out, "fgw_node_refused_total", "Sessions without the secret.",
                            node.refused);
        struct fgw_storage_stats storage;
        fgw_storage_stats(role->storage, &storage);
        fgw_metrics_gauge(out, "fgw_storage_pending_holds",
                          "Holds whose name was not confirmed, as of the last look.",
                          storage.pending_holds);
        fgw_metrics_gauge(out, "fgw_node_fenced", "1 when nothing is acknowledged.", node.fenced);
    }
}

static void add_status(void *context, json_t *status)
{
    struct role *role = context;
    struct fgw_cluster_stats stats;
    fgw_cluster_stats(role->cluster, &stats);
    if (role->storage != NULL) {
        fgw_store_add_status(role->storage, status);
    }
    (void)json_object_set_new(status, "epoch", json_integer((json_int_t)stats.epoch));
    fgw_node_calls_describe(role->cluster, status);
}

static int start_engine(struct role *role)
{
    const struct fgw_config *config = &role->config;
    struct fgw_metrics *metrics = fgw_server_metrics(role->server);
    role->node_calls = (struct fgw_node_calls){.cluster = role->cluster,
                                               .storage = role->storage,
                                               .named = named_sets,
                                               .named_context = role};
    fgw_metrics_register(metrics, write_metrics, role);
    if (role->storage != NULL) {
        fgw_metrics_register(metrics, fgw_store_write_metrics, role->storage);
        fgw_health_set_look(fgw_server_health(role->server), fgw_store_look, role->storage);
    }
    struct fgw_server_engine engine = {.meta = fgw_database_meta(role->database),
                                       .blobs = role->blobs,
                                       .storage = role->storage,
                                       .root_access_key = config->root_access_key,
                                       .root_secret_key = config->root_secret_key,
                                       .status = add_status,
                                       .status_context = role,
                                       .nodes = fgw_node_call,
                                       .nodes_context = &role->node_calls,
                                       .admin_extras = role->calls,
                                       .admin_extra_count =
                                           role->storage != NULL ? FGW_STORE_CALLS : 0,
                                       .admin_socket = role->storage_node};
    if (role->storage != NULL) {
        role->pieces = fgw_piece_worker_new(role->storage, config->data_dir);
        fgw_store_calls_init(role->calls, role->storage, role->pieces);
    }
    int exit_code = fgw_server_start_engine(role->server, &engine, &role->s3);
    if (exit_code == FGW_EXIT_OK) {
        fgw_log_info("server", "%s serves S3 at %s", config->node_id,
                     fgw_server_endpoint(role->server));
    }
    return exit_code;
}

static int run_job(struct role *role)
{
    struct fgw_role_parts parts = {.workers = fgw_server_workers(role->server),
                                   .meta = fgw_database_meta(role->database),
                                   .blobs = role->blobs,
                                   .root_access_key = role->config.root_access_key,
                                   .config = &role->config};
    fgw_health_set(fgw_server_health(role->server), "engine", NULL);
    return role->job(role->job_context, &parts);
}

/* -- life ---------------------------------------------------------------------------------------- */

static int start(struct role *role)
{
    int exit_code = find_cluster(role);
    if (exit_code == FGW_EXIT_OK && role->storage_node) {
        exit_code = open_storage(role);
    }
    if (exit_code == FGW_EXIT_OK) {
        make_blobs(role);
        exit_code = trust_stores(role);
    }
    if (exit_code == FGW_EXIT_OK) {
        exit_code = open_database(role);
    }
    if (role->stopped) {
        return FGW_EXIT_OK;
    }
    exit_code = exit_code == FGW_EXIT_OK ? join(role) : exit_code;
    if (exit_code == FGW_EXIT_OK) {
        if (role->storage_node) {
            start_node(role);
        }
        fgw_cluster_start(role->cluster);
        exit_code = role->job != NULL ? run_job(role) : start_engine(role);
    }
    return exit_code;
}

static void close_worker(void *arg, unsigned index)
{
    struct role *role = arg;
    fgw_blobs_replicated_close_worker(role->blobs, index);
    fgw_remotes_close_worker(role->remotes, index);
}

static void close_all(struct role *role)
{
    fgw_health_set_look(fgw_server_health(role->server), NULL, NULL);
    fgw_cluster_stop(role->cluster);
    fgw_node_stop(role->node);
    fgw_piece_worker_free(role->pieces);
    if (role->storage != NULL) {
        fgw_storage_stop_care(role->storage);
    }
    fgw_s3_free(role->s3);
    if (role->blobs != NULL) {
        fgw_workers_run(fgw_server_workers(role->server), close_worker, role);
    }
    fgw_database_close(role->database);
    fgw_blobs_replicated_free(role->blobs);
    fgw_small_cache_free(role->cache);
    fgw_remotes_free(role->remotes);
    fgw_cluster_free(role->cluster);
    fgw_node_free(role->node);
    if (role->storage != NULL) {
        fgw_storage_close(role->storage);
    }
    fgw_server_free(role->server);
}

static void say_what_is_not_needed(const struct role *role)
{
    if (role->config.backend_nodes.count > 0) {
        fgw_log_info("cluster", "FGW_BACKEND_NODES is not needed: the registry in the database "
                                "names the nodes");
    }
}

static void take_secrets(struct role *role)
{
    size_t count = role->config.cluster_secrets.count;
    role->secrets = fgw_xcalloc(count + 1, sizeof *role->secrets);
    for (size_t i = 0; i < count; i++) {
        role->secrets[i] = fgw_bytes_str(role->config.cluster_secrets.items[i]);
    }
}

static int run(struct role *role)
{
    take_secrets(role);
    say_what_is_not_needed(role);
    int exit_code =
        fgw_server_start(&role->config, role->storage_node ? "kuri" : "proxy", &role->server);
    if (role->server != NULL) {
        exit_code = start(role);
        if (exit_code == FGW_EXIT_OK && !role->stopped && role->job == NULL) {
            fgw_server_run(role->server);
        } else {
            fgw_server_stop(role->server);
        }
        close_all(role);
    }
    fgw_xfree(role->secrets);
    return exit_code;
}

int fgw_cluster_role_run(const struct fgw_command *command, bool storage_node)
{
    struct role role = {.storage_node = storage_node};
    struct fgw_config_input input = {0};
    if (fgw_command_config(command, &input, &role.config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    int exit_code = run(&role);
    fgw_config_deinit(&role.config);
    return exit_code;
}

int fgw_proxy_job(const struct fgw_config *config, fgw_role_job *job, void *context)
{
    struct role role = {.config = *config, .job = job, .job_context = context};
    role.config.s3_listen.count = 0;
    role.config.ops_listen.count = 0;
    return run(&role);
}
