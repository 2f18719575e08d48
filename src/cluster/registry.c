/* registry.c: the row of the own store: taking it, renewing, beating. */
#include <stdio.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "base/tlv.h"
#include "cluster/cluster_internal.h"

enum { TAG_FREE = 2, TAG_TOTAL = 4, TAKE_TRIES = 5, ALIVE_MS = 2 * FGW_CLUSTER_BEAT_MS + 2000 };

/* -- another store under our name ---------------------------------------------------------------- */

static enum fgw_err read_beat(struct fgw_cluster *cluster, const struct cluster_store *store,
                              int64_t *out_beat, struct fgw_error *error)
{
    struct fgw_cql_result *result;
    struct fgw_cql_value values[] = {fgw_cql_uuid(store->id),
                                     fgw_cql_bigint((int64_t)store->epoch)};
    int64_t beat = 0;
    enum fgw_err err =
        cluster_execute(cluster, STATEMENT_BEAT_OF, values, 2, false, &result, error);
    if (err == FGW_OK) {
        if (fgw_cql_result_next(result)) {
            err = fgw_cql_get_bigint(result, "beat", &beat);
        }
        fgw_cql_result_free(result);
    }
    if (err == FGW_OK) {
        *out_beat = beat;
    }
    return err;
}

static enum fgw_err lose(struct fgw_cluster *cluster, const struct cluster_store *store,
                         struct fgw_error *error)
{
    bool applied;
    char id[2 * FGW_STORAGE_ID_SIZE + 1] = {0};
    struct fgw_cql_value values[] = {fgw_cql_uuid(store->id),
                                     fgw_cql_bigint((int64_t)store->epoch)};
    fgw_hex_encode(fgw_bytes(store->id, sizeof store->id), id);
    fgw_log_warn("cluster",
                 "store %s of node %s does not beat any more and this node has another "
                 "one now: it counts as lost",
                 id, store->node_id);
    return cluster_change(cluster, STATEMENT_NODE_LOST, values, 2, &applied, error);
}

/* A disk that comes back empty under an old node id is a new store, and the old one is lost; one
 * that beats belongs to a process that is alive. */
static enum fgw_err settle_rival(struct fgw_cluster *cluster, const struct cluster_store *store,
                                 struct fgw_error *error)
{
    int64_t before;
    int64_t after;
    enum fgw_err err = read_beat(cluster, store, &before, error);
    if (err == FGW_OK) {
        fgw_fiber_sleep_ms(ALIVE_MS);
        err = read_beat(cluster, store, &after, error);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (before != after) {
        char id[2 * FGW_STORAGE_ID_SIZE + 1] = {0};
        fgw_hex_encode(fgw_bytes(store->id, sizeof store->id), id);
        return fgw_error_set(error, FGW_ERR_IN_USE,
                             "FGW_NODE_ID %s belongs to store %s at %s (host %s), which is alive.",
                             store->node_id, id, store->address, store->host);
    }
    return lose(cluster, store, error);
}

static enum fgw_err settle_rivals(struct fgw_cluster *cluster, struct fgw_error *error)
{
    const struct cluster_map *map = &cluster->guarded.map;
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < map->store_count && err == FGW_OK; i++) {
        const struct cluster_store *store = &map->stores[i];
        if (store->state < CLUSTER_LOST && strcmp(store->node_id, cluster->options.node_id) == 0 &&
            memcmp(store->id, cluster->store_id, sizeof store->id) != 0) {
            err = settle_rival(cluster, store, error);
        }
    }
    return err;
}

/* -- the own row --------------------------------------------------------------------------------- */

/* The epoch in the database, read linearizably; 0: no row. */
static enum fgw_err read_epoch(struct fgw_cluster *cluster, uint64_t *out_epoch,
                               struct fgw_error *error)
{
    struct fgw_cql_result *result;
    struct fgw_cql_value id = fgw_cql_uuid(cluster->store_id);
    int64_t epoch = 0;
    enum fgw_err err = cluster_execute(cluster, STATEMENT_NODE, &id, 1, true, &result, error);
    if (err == FGW_OK) {
        if (fgw_cql_result_next(result)) {
            err = fgw_cql_get_bigint(result, "epoch", &epoch);
        }
        fgw_cql_result_free(result);
    }
    if (err == FGW_OK) {
        *out_epoch = (uint64_t)epoch;
    }
    return err;
}

static enum fgw_err write_epoch(struct fgw_cluster *cluster, uint64_t seen, bool *out_applied,
                                struct fgw_error *error)
{
    const struct fgw_cluster_options *options = &cluster->options;
    struct fgw_cql_value values[] = {
        fgw_cql_bigint((int64_t)seen + 1), fgw_cql_str(options->node_id),
        fgw_cql_str(options->zone),        fgw_cql_str(options->host),
        fgw_cql_str(options->url),         fgw_cql_uuid(cluster->store_id),
        fgw_cql_bigint((int64_t)seen)};
    return seen == 0 ? cluster_change(cluster, STATEMENT_NODE_INSERT, values, 6, out_applied, error)
                     : cluster_change(cluster, STATEMENT_NODE_TAKE, values, 7, out_applied, error);
}

enum fgw_err cluster_take_store(struct fgw_cluster *cluster, struct fgw_error *error)
{
    enum fgw_err err = settle_rivals(cluster, error);
    for (unsigned attempt = 0; attempt < TAKE_TRIES && err == FGW_OK; attempt++) {
        uint64_t seen;
        bool applied = false;
        uint64_t sent_ms = fgw_clock_boot_ms();
        err = read_epoch(cluster, &seen, error);
        if (err == FGW_OK) {
            err = write_epoch(cluster, seen, &applied, error);
        }
        if (err == FGW_OK && applied) {
            cluster->epoch = seen + 1;
            cluster->last_renewed_ms = sent_ms;
            fgw_log_info("cluster", "store taken with epoch %llu as node %s",
                         (unsigned long long)cluster->epoch, cluster->options.node_id);
            return cluster_map_bump(cluster, error);
        }
        /* unknown: an epoch more is skipped, nothing else */
        err = err == FGW_ERR_UNKNOWN_OUTCOME ? FGW_OK : err;
    }
    return err == FGW_OK ? fgw_error_set(error, FGW_ERR_UNAVAILABLE,
                                         "The store could not be taken "
                                         "in the registry.")
                         : err;
}

void cluster_renew(struct fgw_cluster *cluster)
{
    struct fgw_error error;
    uint64_t epoch;
    uint64_t sent_ms = fgw_clock_boot_ms();
    fgw_error_init(&error);
    enum fgw_err err = read_epoch(cluster, &epoch, &error);
    if (err != FGW_OK) {
        fgw_log_warn("cluster", "the store's epoch could not be renewed: %s",
                     fgw_error_message(&error));
        return;
    }
    if (epoch == cluster->epoch) {
        cluster->last_renewed_ms = sent_ms;
        cluster->options.renewed(cluster->options.context, sent_ms);
    } else if (epoch > cluster->epoch) {
        cluster->options.fenced(cluster->options.context, epoch);
    } else {
        fgw_log_error("cluster",
                      "the registry knows epoch %llu of this store, older than ours "
                      "(%llu): was the database restored?",
                      (unsigned long long)epoch, (unsigned long long)cluster->epoch);
    }
}

void cluster_beat(struct fgw_cluster *cluster)
{
    struct fgw_storage_stats stats;
    struct fgw_buf data;
    struct fgw_error error;
    struct fgw_cql_result *result;
    fgw_error_init(&error);
    fgw_buf_init(&data, 256);
    fgw_storage_stats(cluster->options.storage, &stats);
    fgw_tlv_put_u64(&data, TAG_FREE, stats.free_bytes);
    fgw_tlv_put_u64(&data, TAG_TOTAL, stats.total_bytes);
    struct fgw_cql_value values[] = {
        fgw_cql_uuid(cluster->store_id), fgw_cql_bigint((int64_t)cluster->epoch),
        fgw_cql_bigint((int64_t)++cluster->beat), fgw_cql_blob(fgw_buf_bytes(&data))};
    if (cluster_execute(cluster, STATEMENT_BEAT, values, 4, false, &result, &error) == FGW_OK) {
        fgw_cql_result_free(result);
    }
    fgw_buf_deinit(&data);
}
