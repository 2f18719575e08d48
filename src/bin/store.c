/* store.c: see store.h. */
#include "bin/store.h"

#include <stdio.h>
#include <sys/stat.h>

#include "bin/server.h"

enum { CACHE_SHARE = 8 };

struct fgw_storage_options fgw_store_options(const struct fgw_config *config)
{
    return (struct fgw_storage_options){
        .path = config->data_dir,
        .memory_bytes = config->memory_bytes / 2,
        .group_size_bytes = config->group_size_bytes,
        .min_free_bytes = config->min_free_bytes == FGW_CONFIG_AUTO ? 0 : config->min_free_bytes,
        .sync_off = config->sync == FGW_CONFIG_SYNC_OFF,
        .release_delay_ms = config->release_delay_ms,
        .sweep_grace_ms = config->sweep_grace_ms,
        .dead_percent = config->dead_percent,
    };
}

int fgw_store_open(const struct fgw_storage_options *options, struct fgw_storage **out_storage)
{
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = fgw_storage_open(options, out_storage, &error);
    if (err != FGW_OK) {
        return fgw_exit_failed(err, &error);
    }
    if (options->sync_off) {
        fgw_log_warn("storage", "FGW_SYNC=off: writes are acknowledged before they are on disk and "
                                "can be lost; for benchmarks and throw-away data only");
    }
    return FGW_EXIT_OK;
}

int fgw_store_open_existing(const struct fgw_storage_options *options,
                            struct fgw_storage **out_storage)
{
    struct stat status;
    if (stat(options->path, &status) != 0) {
        (void)fprintf(stderr, "fgw: error: there is no data directory %s; name it with --data\n",
                      options->path);
        return FGW_EXIT_DATA_UNUSABLE;
    }
    return fgw_store_open(options, out_storage);
}

static void write_space_metrics(const struct fgw_storage_stats *stats, struct fgw_buf *out)
{
    fgw_metrics_counter(out, "fgw_compaction_moved_blocks_total",
                        "Blocks moved out of groups that are mostly dead.", stats->moved_blocks);
    fgw_metrics_counter(out, "fgw_compaction_moved_bytes_total", "Bytes of these blocks.",
                        stats->moved_bytes);
    fgw_metrics_counter(out, "fgw_compaction_groups_unlinked_total", "Group files given back.",
                        stats->groups_unlinked);
    fgw_metrics_counter(out, "fgw_compaction_unlinked_bytes_total", "Bytes of these files.",
                        stats->bytes_unlinked);
    fgw_metrics_counter(out, "fgw_storage_spared_bytes_total",
                        "Bytes that were not written, as the store had the block.",
                        stats->spared_bytes);
    fgw_metrics_gauge(out, "fgw_compaction_waiting_bytes",
                      "Bytes of group files that go once two checkpoints cover them.",
                      stats->bytes_waiting);
}

static void write_care_metrics(struct fgw_storage *storage, struct fgw_buf *out)
{
    struct fgw_storage_sweep_status sweep;
    fgw_storage_sweep_status(storage, &sweep);
    fgw_metrics_counter(out, "fgw_sweep_passes_total", "Passes of the sweeper.", sweep.passes);
    fgw_metrics_gauge(out, "fgw_sweep_ownerless_holds",
                      "Holds that no object names, in the last pass.", sweep.ownerless);
    fgw_metrics_counter(out, "fgw_sweep_freed_total", "Holds without an owner that were released.",
                        sweep.freed_total);
    fgw_metrics_gauge(out, "fgw_sweep_alarm",
                      "1 while nothing is freed before `fgw sweep --approve`.", sweep.alarm);
}

static void write_cache_metrics(void *context, struct fgw_buf *out)
{
    struct fgw_small_cache_stats stats;
    fgw_small_cache_stats(context, &stats);
    fgw_metrics_counter(out, "fgw_cache_hits_total", "Small blobs that were read from memory.",
                        stats.hits);
    fgw_metrics_counter(out, "fgw_cache_misses_total", "Small blobs that were not in memory.",
                        stats.misses);
    fgw_metrics_gauge(out, "fgw_cache_bytes", "Memory that small blobs take.", stats.bytes);
}

struct fgw_small_cache *fgw_store_keep_small(const struct fgw_config *config,
                                             struct fgw_metrics *metrics, struct fgw_blobs *blobs)
{
    blobs->cache = fgw_small_cache_new(config->memory_bytes / CACHE_SHARE);
    fgw_metrics_register(metrics, write_cache_metrics, blobs->cache);
    return blobs->cache;
}

void fgw_store_write_metrics(void *context, struct fgw_buf *out)
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
    fgw_metrics_gauge(out, "fgw_storage_total_bytes", "Size of the file system.",
                      stats.total_bytes);
    fgw_metrics_counter(out, "fgw_storage_batches_total", "Batches committed.", stats.batches);
    fgw_metrics_counter(out, "fgw_storage_operations_total", "Operations committed.",
                        stats.operations);
    fgw_metrics_counter(out, "fgw_storage_syncs_total", "fdatasync calls.", stats.syncs);
    (void)fgw_buf_appendf(out,
                          "# HELP fgw_storage_sync_seconds_total Time in fdatasync.\n"
                          "# TYPE fgw_storage_sync_seconds_total counter\n"
                          "fgw_storage_sync_seconds_total %.6f\n",
                          (double)stats.sync_ns_total / 1e9);
    fgw_metrics_gauge(out, "fgw_storage_applied_batch", "Last batch in the index.",
                      stats.applied_batch);
    fgw_metrics_gauge(out, "fgw_storage_checkpoint_batch",
                      "Last batch covered by a checkpoint that was read back.",
                      stats.checkpoint_batch);
    fgw_metrics_gauge(out, "fgw_storage_read_only", "1 after a failed write.", stats.read_only);
    fgw_metrics_gauge(out, "fgw_storage_below_reserve", "1 when writes get 507.",
                      stats.below_reserve);
    write_space_metrics(&stats, out);
    write_care_metrics(context, out);
}

void fgw_store_look(void *storage, struct fgw_health *health)
{
    struct fgw_storage_stats stats;
    fgw_storage_stats(storage, &stats);
    fgw_health_set(health, "storage",
                   stats.read_only
                       ? "the store takes no writes after one that failed (see the log); "
                         "reads go on; check the disk, then restart"
                       : NULL);
}

void fgw_store_add_status(struct fgw_storage *storage, json_t *status)
{
    struct fgw_storage_stats stats;
    struct fgw_storage_sweep_status sweep;
    fgw_storage_stats(storage, &stats);
    fgw_storage_sweep_status(storage, &sweep);
    (void)json_object_set_new(status, "groups", json_integer((json_int_t)stats.groups));
    (void)json_object_set_new(status, "live_bytes", json_integer((json_int_t)stats.live_bytes));
    (void)json_object_set_new(status, "dead_bytes", json_integer((json_int_t)stats.dead_bytes));
    (void)json_object_set_new(status, "free_bytes", json_integer((json_int_t)stats.free_bytes));
    (void)json_object_set_new(status, "total_bytes", json_integer((json_int_t)stats.total_bytes));
    (void)json_object_set_new(status, "read_only", json_boolean(stats.read_only));
    (void)json_object_set_new(status, "below_reserve", json_boolean(stats.below_reserve));
    (void)json_object_set_new(status, "ownerless_holds", json_integer((json_int_t)sweep.ownerless));
    (void)json_object_set_new(status, "sweep_alarm", json_boolean(sweep.alarm));
}
