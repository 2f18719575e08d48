/* cmd_serve.c: `fgw serve`: storage, metadata (embedded, or with FGW_META=cql in a database) and the
 * S3 engine in one process. */
#include <stdio.h>
#include <unistd.h>

#include "bin/credentials.h"
#include "bin/database.h"
#include "bin/server.h"
#include "blobs/local.h"
#include "console/admin.h"
#include "meta/rocks/rocks.h"

struct serve {
    struct fgw_config config;
    struct fgw_server *server;
    struct fgw_storage *storage;
    struct fgw_blobs *blobs;
    struct fgw_meta *meta;
    struct fgw_database *database; /* with FGW_META=cql; meta is its own then */
    struct fgw_s3 *s3;
    struct fgw_credentials credentials;
    struct fgw_admin admin;
};

static void write_storage(void *context, struct fgw_buf *out)
{
    struct fgw_storage_stats stats;
    fgw_storage_stats(context, &stats);
    fgw_metrics_gauge(out, "fgw_storage_groups", "Group files.", stats.groups);
    fgw_metrics_gauge(out, "fgw_storage_live_bytes", "Bytes of blocks that are held.",
                      stats.live_bytes);
    fgw_metrics_gauge(out, "fgw_storage_dead_bytes", "Bytes of blocks that nothing holds.",
                      stats.dead_bytes);
    fgw_metrics_gauge(out, "fgw_storage_free_bytes", "Free bytes of the file system.",
                      stats.free_bytes);
    fgw_metrics_counter(out, "fgw_storage_batches_total", "Batches committed.", stats.batches);
    fgw_metrics_counter(out, "fgw_storage_operations_total", "Operations committed.",
                        stats.operations);
    fgw_metrics_counter(out, "fgw_storage_syncs_total", "fdatasync calls.", stats.syncs);
    (void)fgw_buf_appendf(out,
                          "# HELP fgw_storage_sync_seconds_total Time in fdatasync.\n"
                          "# TYPE fgw_storage_sync_seconds_total counter\n"
                          "fgw_storage_sync_seconds_total %.6f\n",
                          (double)stats.sync_ns_total / 1e9);
    fgw_metrics_gauge(out, "fgw_storage_read_only", "1 after a failed write.", stats.read_only);
    fgw_metrics_gauge(out, "fgw_storage_below_reserve", "1 when writes get 507.",
                      stats.below_reserve);
}

static int fail(const struct fgw_error *error, enum fgw_err err)
{
    (void)fprintf(stderr, "fgw: error: %s\n",
                  error->message[0] != '\0' ? error->message : fgw_err_text(err));
    return fgw_exit_of_error(err, error);
}

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
    const struct fgw_config *config = &serve->config;
    struct fgw_error error;
    fgw_error_init(&error);
    struct fgw_storage_options options = {
        .path = config->data_dir,
        .memory_bytes = config->memory_bytes / 2,
        .group_size_bytes = config->group_size_bytes,
        .min_free_bytes = config->min_free_bytes == FGW_CONFIG_AUTO ? 0 : config->min_free_bytes,
        .sync_off = config->sync == FGW_CONFIG_SYNC_OFF,
        .release_delay_ms = config->release_delay_ms,
        .sweep_grace_ms = config->sweep_grace_ms,
        .dead_percent = config->dead_percent,
    };
    enum fgw_err err = fgw_storage_open(&options, &serve->storage, &error);
    if (err != FGW_OK) {
        return fail(&error, err);
    }
    if (options.sync_off) {
        fgw_log_warn("storage", "FGW_SYNC=off: writes are acknowledged before they are on disk and "
                                "can be lost; for benchmarks and throw-away data only");
    }
    err = fgw_credentials_load(config, &serve->credentials, &error);
    return err == FGW_OK ? FGW_EXIT_OK : fail(&error, err);
}

static void add_status(void *context, json_t *status)
{
    struct serve *serve = context;
    struct fgw_storage_stats stats;
    fgw_storage_stats(serve->storage, &stats);
    (void)json_object_set_new(status, "version", json_string(fgw_version()));
    (void)json_object_set_new(status, "role", json_string("serve"));
    (void)json_object_set_new(status, "ready",
                              json_boolean(fgw_health_ready(fgw_server_health(serve->server))));
    (void)json_object_set_new(status, "endpoint", json_string(fgw_server_endpoint(serve->server)));
    (void)json_object_set_new(status, "groups", json_integer((json_int_t)stats.groups));
    (void)json_object_set_new(status, "live_bytes", json_integer((json_int_t)stats.live_bytes));
    (void)json_object_set_new(status, "dead_bytes", json_integer((json_int_t)stats.dead_bytes));
    (void)json_object_set_new(status, "free_bytes", json_integer((json_int_t)stats.free_bytes));
    (void)json_object_set_new(status, "read_only", json_boolean(stats.read_only));
}

static int open_metadata(struct serve *serve)
{
    struct fgw_error error;
    fgw_error_init(&error);
    serve->blobs = fgw_blobs_local_new(serve->storage);
    if (serve->config.meta != FGW_CONFIG_META_CQL) {
        serve->meta = fgw_meta_rocks_new(serve->storage);
        fgw_storage_start_care(serve->storage, blob_live, serve->meta);
        return FGW_EXIT_OK;
    }
    enum fgw_err err =
        fgw_database_open(&serve->config, serve->server, serve->blobs, &serve->database, &error);
    if (err != FGW_OK) {
        return fail(&error, err);
    }
    serve->meta = fgw_database_meta(serve->database);
    fgw_storage_start_care(serve->storage, fgw_database_blob_live, serve->database);
    return FGW_EXIT_OK;
}

static int start_engine(struct serve *serve)
{
    const struct fgw_config *config = &serve->config;
    struct fgw_s3_options options = {
        .meta = serve->meta,
        .blobs = serve->blobs,
        .workers = config->threads,
        .region = config->region,
        .locations = config->locations.items,
        .location_count = config->locations.count,
        .domains = config->domains.items,
        .domain_count = config->domains.count,
        .strict_aws = config->s3_strict_aws,
        .root_access_key = serve->credentials.access_key,
        .root_secret_key = serve->credentials.secret_key,
        .internal = fgw_server_internal,
        .internal_context = serve->server,
        .done = fgw_server_done,
        .done_context = serve->server,
    };
    serve->s3 = fgw_s3_new(&options);
    fgw_metrics_register(fgw_server_metrics(serve->server), write_storage, serve->storage);
    serve->admin = (struct fgw_admin){.meta = serve->meta,
                                      .root_id = fgw_s3_root_id(serve->s3),
                                      .root_access_key = serve->credentials.access_key,
                                      .region = config->region,
                                      .status = add_status,
                                      .status_context = serve};
    int exit_code = fgw_server_start_admin(serve->server, &serve->admin);
    if (exit_code == FGW_EXIT_OK) {
        fgw_server_attach(serve->server, serve->s3);
    }
    return exit_code;
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
    if (serve->storage != NULL) {
        fgw_storage_stop_care(serve->storage);
    }
    fgw_s3_free(serve->s3);
    if (serve->database != NULL) {
        fgw_database_close(serve->database);
    } else if (serve->meta != NULL) {
        serve->meta->ops->free(serve->meta);
    }
    fgw_blobs_local_free(serve->blobs);
    if (serve->storage != NULL) {
        fgw_storage_close(serve->storage);
    }
    fgw_server_free(serve->server);
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
