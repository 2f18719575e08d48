/* kv_options.c: how RocksDB is set up, and why. Small when idle, quick on an empty directory,
 * memory bounded by cache_bytes and write_buffer_bytes whatever the size of the data. */
#include "base/check.h"
#include "kv/kv_internal.h"

enum {
    POINT_IN_TIME_RECOVERY = 2, /* rocksdb_options_set_wal_recovery_mode: kPointInTimeRecovery */
    INFO_LOG_FATAL = 4,
    BLOOM_BITS = 10,
    BLOCK_SIZE = 8 * 1024,
    FORMAT_VERSION = 5,
    DELETION_WINDOW = 1024, /* rows */
    MIB = 1024 * 1024
};

static const double MEMTABLE_BLOOM_RATIO = 0.02; /* of the write buffer */

struct fgw_kv_options fgw_kv_with_defaults(const struct fgw_kv_options *options)
{
    struct fgw_kv_options full = options != NULL ? *options : (struct fgw_kv_options){0};
    full.cache_bytes = full.cache_bytes != 0 ? full.cache_bytes : (size_t)32 * MIB;
    full.write_buffer_bytes =
        full.write_buffer_bytes != 0 ? full.write_buffer_bytes : (size_t)16 * MIB;
    full.wal_bytes_max = full.wal_bytes_max != 0 ? full.wal_bytes_max : (size_t)128 * MIB;
    full.background_threads = full.background_threads != 0 ? full.background_threads : 2;
    full.open_files_max = full.open_files_max != 0 ? full.open_files_max : -1;
    return full;
}

/* Index and filter blocks live in the cache, in partitions, so that 24 GB of tables do not need
 * hundreds of MB of memory outside any bound. */
static void set_tables(rocksdb_options_t *db, rocksdb_cache_t *cache)
{
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_block_size(table, BLOCK_SIZE);
    rocksdb_block_based_options_set_format_version(table, FORMAT_VERSION);
    /* owned by the table options */
    rocksdb_block_based_options_set_filter_policy(
        table, rocksdb_filterpolicy_create_bloom_full(BLOOM_BITS));
    rocksdb_block_based_options_set_index_type(
        table, rocksdb_block_based_table_index_type_two_level_index_search);
    rocksdb_block_based_options_set_partition_filters(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks_with_high_priority(table, 1);
    rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);
    rocksdb_block_based_options_set_pin_top_level_index_and_filter(table, 1);
    rocksdb_options_set_block_based_table_factory(db, table);
    rocksdb_block_based_options_destroy(table);
}

static void set_levels(rocksdb_options_t *db, const struct fgw_kv_options *options)
{
    rocksdb_options_set_write_buffer_size(db, options->write_buffer_bytes);
    rocksdb_options_set_max_write_buffer_number(db, 2);
    /* most look-ups before a write find nothing: a bit array answers them without a walk */
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(db, MEMTABLE_BLOOM_RATIO);
    rocksdb_options_set_memtable_whole_key_filtering(db, 1);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(db, 1);
    /* a file where half the rows of some window are deletions is compacted soon: lists would else walk
     * over what was deleted for as long as nothing else is written there */
    rocksdb_options_add_compact_on_deletion_collector_factory(db, DELETION_WINDOW,
                                                              DELETION_WINDOW / 2);
    rocksdb_options_set_target_file_size_base(db, (uint64_t)64 * MIB);
    rocksdb_options_set_max_background_jobs(db, options->background_threads);
    rocksdb_options_set_compression(db, rocksdb_lz4_compression);
    rocksdb_options_set_bottommost_compression(db, rocksdb_zstd_compression);
    /* spread write-back instead of one long fsync at the end of a table */
    rocksdb_options_set_bytes_per_sync(db, MIB);
}

static void set_logs(rocksdb_options_t *db, const struct fgw_kv_options *options)
{
    rocksdb_options_set_wal_recovery_mode(db, POINT_IN_TIME_RECOVERY);
    rocksdb_options_set_max_total_wal_size(db, options->wal_bytes_max);
    rocksdb_options_set_wal_bytes_per_sync(db, MIB);
    rocksdb_options_set_max_manifest_file_size(db, (size_t)64 * MIB);
    rocksdb_options_set_manifest_preallocation_size(db, 64 * 1024);
    /* RocksDB's own text log gets its settings at open and nothing later: a build with assertions,
     * as Debian's, aborts the process at the second line that does not fit on a full disk. What it
     * would say of failures stands in the statuses. */
    rocksdb_options_set_info_log_level(db, INFO_LOG_FATAL);
    rocksdb_options_set_keep_log_file_num(db, 2);
    rocksdb_options_set_stats_dump_period_sec(db, 0);
    rocksdb_options_set_stats_persist_period_sec(db, 0);
}

/* Blocks that a flush writes go into the cache as well: what was in memory stays there, and rows just
 * written are not read from the disk by the next operation on them. The C API has no call for it. */
static rocksdb_options_t *with_warm_flushes(rocksdb_options_t *db)
{
    rocksdb_options_t *full = rocksdb_options_create();
    char *status = NULL;
    rocksdb_get_options_from_string(
        db, "block_based_table_factory={prepopulate_block_cache=kFlushOnly}", full, &status);
    if (status != NULL) { /* a RocksDB that does not know it */
        rocksdb_free(status);
        rocksdb_options_destroy(full);
        return db;
    }
    rocksdb_options_destroy(db);
    return full;
}

rocksdb_options_t *fgw_kv_make_options(const struct fgw_kv_options *options, rocksdb_cache_t *cache)
{
    rocksdb_options_t *db = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(db, !options->must_exist);
    rocksdb_options_set_create_missing_column_families(db, 1);
    rocksdb_options_set_max_open_files(db, options->open_files_max);
    rocksdb_options_set_skip_stats_update_on_db_open(db, 1);
    rocksdb_options_set_uint64add_merge_operator(db); /* fgw_kv_batch_add */
    set_tables(db, cache);
    set_levels(db, options);
    set_logs(db, options);
    return with_warm_flushes(db);
}
