/* cmd_serve.c: `fgw serve`: storage, metadata (embedded, or with FGW_META=cql in a database) and the
 * S3 engine in one process. */
#include <stdio.h>
#include <unistd.h>

#include "bin/credentials.h"
#include "bin/database.h"
#include "bin/purger.h"
#include "bin/role_job.h"
#include "bin/server.h"
#include "bin/store.h"
#include "bin/store_calls.h"
#include "blobs/local.h"
#include "meta/rocks/rocks.h"

struct serve {
    struct fgw_config config;
    struct fgw_server *server;
    struct fgw_storage *storage;
    struct fgw_piece_worker *pieces;
    struct fgw_small_cache *cache;
    struct fgw_blobs *blobs;
    struct fgw_meta *meta;
    struct fgw_purger *purger;     /* of the embedded metadata */
    struct fgw_database *database; /* with FGW_META=cql; meta is its own then */
    struct fgw_s3 *s3;
    struct fgw_credentials credentials;
    struct fgw_admin_extra calls[FGW_STORE_CALLS];
};

static enum fgw_err blob_live(void *context, const struct fgw_storage_owner *owner,
                              const struct fgw_cid *root, enum fgw_storage_liveness *out_liveness)
{
    struct fgw_meta *meta = context;
    struct fgw_blob_live live;
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    enum fgw_err err = meta->ops->blob_live(meta, &arena, owner, root, &live);
    fgw_arena_deinit(&arena);
    if (err == FGW_OK) {
        *out_liveness = live.live ? FGW_STORAGE_HERE : FGW_STORAGE_ABSENT;
    }
    return err;
}

static int open_storage(struct serve *serve)
{
    struct fgw_error error;
    struct fgw_storage_options options = fgw_store_options(&serve->config);
    options.progress = fgw_server_note_opening;
    options.progress_context = serve->server;
    fgw_error_init(&error);
    int exit_code = fgw_store_open(&options, &serve->storage);
    if (exit_code != FGW_EXIT_OK) {
        return exit_code;
    }
    enum fgw_err err = fgw_credentials_load(&serve->config, &serve->credentials, &error);
    return err == FGW_OK ? FGW_EXIT_OK : fgw_exit_failed(err, &error);
}

static void add_status(void *context, json_t *status)
{
    struct serve *serve = context;
    fgw_store_add_status(serve->storage, status);
}

/* Database and directory carry one cluster id, or nothing is served, and nothing swept. */
static enum fgw_err check_cluster(struct serve *serve, struct fgw_error *error)
{
    uint8_t id[FGW_CLUSTER_ID_SIZE];
    struct fgw_storage_stats stats;
    const uint8_t *own = fgw_storage_cluster_id(serve->storage);
    fgw_storage_stats(serve->storage, &stats);
    struct fgw_identify how = {
        .make = true, .own = own, .own_is_empty = stats.live_bytes + stats.dead_bytes == 0};
    enum fgw_err err = fgw_database_identify(serve->database, &how, id, error);
    if (err == FGW_ERR_NOT_FOUND) {
        error->code = FGW_ERR_CONFIG; /* nothing to wait for: the text says what to do */
        return FGW_ERR_CONFIG;
    }
    if (err != FGW_OK || memcmp(id, own, sizeof id) == 0) {
        return err;
    }
    if (!how.own_is_empty) {
        return fgw_error_set(error, FGW_ERR_CONFIG,
                             "%s belongs to another cluster than keyspace %s: FGW_CQL_HOSTS, "
                             "FGW_CQL_KEYSPACE or FGW_DATA is not the right one",
                             serve->config.data_dir, serve->config.cql_keyspace);
    }
    return fgw_storage_join(serve->storage, id, error);
}

static void purge(void *context, struct fgw_purger *purger)
{
    uint64_t removed = 0;
    (void)purger; /* a run takes as long as reading the open uploads */
    enum fgw_err err = fgw_meta_rocks_purge(context, &removed);
    if (err != FGW_OK) {
        fgw_log_warn("metadata", "purge of completed uploads: %s", fgw_err_text(err));
    } else if (removed > 0) {
        fgw_log_info("metadata", "purge: removed %llu completed uploads",
                     (unsigned long long)removed);
    }
}

static int open_metadata(struct serve *serve)
{
    struct fgw_error error;
    fgw_error_init(&error);
    serve->blobs = fgw_blobs_local_new(serve->storage);
    serve->cache =
        fgw_store_keep_small(&serve->config, fgw_server_metrics(serve->server), serve->blobs);
    if (serve->config.meta != FGW_CONFIG_META_CQL) {
        serve->meta = fgw_meta_rocks_new(serve->storage);
        fgw_storage_start_care(serve->storage, blob_live, serve->meta);
        serve->purger = fgw_purger_start(fgw_server_workers(serve->server), purge, serve->meta);
        return FGW_EXIT_OK;
    }
    struct fgw_database_options options = {
        .config = &serve->config, .server = serve->server, .blobs = serve->blobs};
    enum fgw_err err = fgw_database_open(&options, &serve->database, &error);
    if (err != FGW_OK) {
        return fgw_exit_failed(err, &error);
    }
    err = check_cluster(serve, &error);
    if (err != FGW_OK) {
        return fgw_exit_failed(err, &error);
    }
    serve->meta = fgw_database_meta(serve->database);
    fgw_storage_start_care(serve->storage, fgw_database_blob_live, serve->database);
    return FGW_EXIT_OK;
}

static int start_engine(struct serve *serve)
{
    fgw_metrics_register(fgw_server_metrics(serve->server), fgw_store_write_metrics,
                         serve->storage);
    fgw_health_set_look(fgw_server_health(serve->server), fgw_store_look, serve->storage);
    struct fgw_server_engine engine = {.meta = serve->meta,
                                       .storage = serve->storage,
                                       .blobs = serve->blobs,
                                       .root_access_key = serve->credentials.access_key,
                                       .root_secret_key = serve->credentials.secret_key,
                                       .status = add_status,
                                       .status_context = serve,
                                       .admin_extras = serve->calls,
                                       .admin_extra_count = FGW_STORE_CALLS,
                                       .admin_socket = true};
    serve->pieces = fgw_piece_worker_new(serve->storage, serve->config.data_dir);
    fgw_store_calls_init(serve->calls, serve->storage, serve->pieces);
    return fgw_server_start_engine(serve->server, &engine, &serve->s3);
}

static void print_greeting(const struct serve *serve)
{
    bool terminal = isatty(STDOUT_FILENO) == 1;
    (void)printf("FGW %s is ready\n\n  endpoint    %s\n  region      %s\n  data        %s\n",
                 fgw_version(), fgw_server_endpoint(serve->server), serve->config.region,
                 serve->config.data_dir);
    (void)printf("  access key  %s\n", serve->credentials.access_key);
    /* a secret that the operator set is not repeated into logs */
    (void)printf("  secret key  %s\n\n", serve->credentials.from_file
                                             ? serve->credentials.secret_key
                                             : "as set in FGW_ROOT_SECRET_KEY");
    if (terminal) {
        (void)printf("  aws --endpoint-url %s s3 ls\n  Ctrl-C stops.\n\n",
                     fgw_server_endpoint(serve->server));
    }
    (void)fflush(stdout);
}

static void close_all(struct serve *serve)
{
    fgw_health_set_look(fgw_server_health(serve->server), NULL, NULL);
    fgw_piece_worker_free(serve->pieces);
    if (serve->storage != NULL) {
        fgw_storage_stop_care(serve->storage);
    }
    fgw_s3_free(serve->s3);
    fgw_purger_stop(serve->purger);
    if (serve->database != NULL) {
        fgw_database_close(serve->database);
    } else if (serve->meta != NULL) {
        serve->meta->ops->free(serve->meta);
    }
    fgw_blobs_local_free(serve->blobs);
    fgw_small_cache_free(serve->cache);
    if (serve->storage != NULL) {
        fgw_storage_close(serve->storage);
    }
    fgw_server_free(serve->server);
}

int fgw_serve_job(const struct fgw_config *config, fgw_role_job *job, void *context)
{
    struct serve serve = {.config = *config};
    serve.config.s3_listen.count = 0;
    serve.config.ops_listen.count = 0;
    int exit_code = fgw_server_start(&serve.config, "serve", &serve.server);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = open_storage(&serve);
        exit_code = exit_code == FGW_EXIT_OK ? open_metadata(&serve) : exit_code;
        if (exit_code == FGW_EXIT_OK) {
            struct fgw_role_parts parts = {.workers = fgw_server_workers(serve.server),
                                           .meta = serve.meta,
                                           .blobs = serve.blobs,
                                           .root_access_key = serve.credentials.access_key,
                                           .config = &serve.config};
            exit_code = job(context, &parts);
        }
        fgw_server_stop(serve.server);
        close_all(&serve);
    }
    return exit_code;
}

int fgw_cmd_serve(const struct fgw_command *command)
{
    struct serve serve = {0};
    struct fgw_config_input input = {0};
    if (fgw_command_config(command, &input, &serve.config) != FGW_OK) {
        return FGW_EXIT_USAGE;
    }
    int exit_code = fgw_server_start(&serve.config, "serve", &serve.server);
    if (exit_code == FGW_EXIT_OK) {
        exit_code = open_storage(&serve);
        exit_code = exit_code == FGW_EXIT_OK ? open_metadata(&serve) : exit_code;
        exit_code = exit_code == FGW_EXIT_OK ? start_engine(&serve) : exit_code;
        if (exit_code == FGW_EXIT_OK) {
            print_greeting(&serve);
            fgw_server_run(serve.server);
        } else {
            fgw_server_stop(serve.server);
        }
        close_all(&serve);
    }
    fgw_config_deinit(&serve.config);
    return exit_code;
}
