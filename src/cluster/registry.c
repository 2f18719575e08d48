/* registry.c: the row of the own store: taking it, renewing, beating. */
#include <stdio.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "cluster/cluster_internal.h"

enum { TAKE_TRIES = 5, ALIVE_MS = 2 * FGW_CLUSTER_BEAT_MS + 2000 };

/* -- another store under our name ---------------------------------------------------------------- */

enum fgw_err cluster_node_state(struct fgw_cluster *cluster, const struct cluster_store *store,
                                enum cluster_node_state to, bool *out_applied,
                                struct fgw_error *error)
{
    struct fgw_cql_value values[] = {fgw_cql_int((int32_t)to), fgw_cql_uuid(store->id),
                                     fgw_cql_bigint((int64_t)store->epoch),
                                     fgw_cql_int(store->state)};
    bool applied = false;
    enum fgw_err err = cluster_change(cluster, STATEMENT_NODE_STATE, values, 4, &applied, error);
    if (err == FGW_OK && applied) {
        err = cluster_map_bump(cluster, error);
    }
    if (err == FGW_OK) {
        *out_applied = applied;
    }
    return err;
}

static enum fgw_err lose(struct fgw_cluster *cluster, const struct cluster_store *store,
                         struct fgw_error *error)
{
    bool applied = false;
    char id[2 * FGW_STORAGE_ID_SIZE + 1] = {0};
    fgw_hex_encode(fgw_bytes(store->id, sizeof store->id), id);
    fgw_log_warn("cluster",
                 "store %s of node %s does not beat any more and this node has another "
                 "one now: it counts as lost",
                 id, store->node_id);
    enum fgw_err err = cluster_node_state(cluster, store, CLUSTER_LOST, &applied, error);
    if (err == FGW_OK && !applied) {
        err = fgw_error_set(error, FGW_ERR_UNAVAILABLE,
                            "The store that this node had before changed meanwhile.");
    }
    return err;
}

static enum fgw_err is_beating(struct fgw_cluster *cluster, const struct cluster_store *store,
                               bool *out_beating, struct fgw_error *error)
{
    int64_t before;
    int64_t after;
    enum fgw_err err = cluster_read_beat(cluster, store, &before, error);
    if (err == FGW_OK) {
        fgw_fiber_sleep_ms(ALIVE_MS);
        err = cluster_read_beat(cluster, store, &after, error);
    }
    if (err == FGW_OK) {
        *out_beating = before != after;
    }
    return err;
}

/* A disk that comes back empty under an old node id is a new store, and the old one is lost; one
 * that beats belongs to a process that is alive. */
static enum fgw_err settle_rival(struct fgw_cluster *cluster, const struct cluster_store *store,
                                 struct fgw_error *error)
{
    bool beating;
    enum fgw_err err = is_beating(cluster, store, &beating, error);
    if (err != FGW_OK) {
        return err;
    }
    if (beating) {
        char id[2 * FGW_STORAGE_ID_SIZE + 1] = {0};
        fgw_hex_encode(fgw_bytes(store->id, sizeof store->id), id);
        return fgw_error_set(error, FGW_ERR_IN_USE,
                             "FGW_NODE_ID %s belongs to store %s at %s (host %s), which is alive.",
                             store->node_id, id, store->address, store->host);
    }
    return lose(cluster, store, error);
}

/* The same store under another name or address: moved here, if nobody beats for it any more; else
 * this directory is a copy of one that is in use. */
static enum fgw_err settle_twin(struct fgw_cluster *cluster, struct fgw_error *error)
{
    const struct fgw_cluster_options *options = &cluster->options;
    const struct cluster_store *store = cluster_map_store(&cluster->guarded.map, cluster->store_id);
    char address[FGW_PLACEMENT_ADDRESS_SIZE];
    cluster_address_of_url(fgw_bytes_str(options->url), address);
    if (store == NULL ||
        (strcmp(store->node_id, options->node_id) == 0 && strcmp(store->address, address) == 0)) {
        return FGW_OK;
    }
    bool beating = false;
    struct cluster_store seen = *store;
    enum fgw_err err = is_beating(cluster, &seen, &beating, error);
    if (err == FGW_OK && beating) {
        err =
            fgw_error_set(error, FGW_ERR_IN_USE,
                          "The store of this data directory is in use by node %s at %s (host %s), "
                          "which is alive: this directory is a copy of it. Stop one of the two; a "
                          "copy becomes a store of its own with fgw node adopt.",
                          seen.node_id, seen.address, seen.host);
    }
    return err;
}

static enum fgw_err settle_rivals(struct fgw_cluster *cluster, struct fgw_error *error)
{
    const struct cluster_map *map = &cluster->guarded.map;
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < map->store_count && err == FGW_OK; i++) {
        const struct cluster_store *store = &map->stores[i];
        bool there = store->state != CLUSTER_LOST && store->state != CLUSTER_REMOVED;
        if (there && strcmp(store->node_id, cluster->options.node_id) == 0 &&
            memcmp(store->id, cluster->store_id, sizeof store->id) != 0) {
            err = settle_rival(cluster, store, error);
        }
    }
    return err;
}

/* -- the own row --------------------------------------------------------------------------------- */

struct own_row {
    uint64_t epoch; /* 0: no row */
    int32_t state;
};

/* Read linearizably. */
static enum fgw_err read_own(struct fgw_cluster *cluster, struct own_row *out,
                             struct fgw_error *error)
{
    struct fgw_cql_result *result;
    struct fgw_cql_value id = fgw_cql_uuid(cluster->store_id);
    int64_t epoch = 0;
    int32_t state = CLUSTER_ACTIVE;
    enum fgw_err err = cluster_execute(cluster, STATEMENT_NODE, &id, 1, true, &result, error);
    if (err == FGW_OK) {
        if (fgw_cql_result_next(result)) {
            err = fgw_cql_get_bigint(result, "epoch", &epoch);
            err = err == FGW_OK ? fgw_cql_get_int(result, "state", &state) : err;
        }
        fgw_cql_result_free(result);
    }
    if (err == FGW_OK) {
        *out = (struct own_row){(uint64_t)epoch, state};
    }
    return err;
}

/* Of a store whose process is there. */
static enum cluster_node_state back_state(int32_t state)
{
    return state == CLUSTER_DRAINING || state == CLUSTER_DRAINING_AWAY ? CLUSTER_DRAINING
                                                                       : CLUSTER_ACTIVE;
}

static enum fgw_err write_epoch(struct fgw_cluster *cluster, const struct own_row *seen,
                                uint64_t next, bool *out_applied, struct fgw_error *error)
{
    const struct fgw_cluster_options *options = &cluster->options;
    int32_t state = (int32_t)back_state(seen->state);
    struct fgw_cql_value values[] = {
        fgw_cql_bigint((int64_t)next),   fgw_cql_str(options->node_id),
        fgw_cql_str(options->zone),      fgw_cql_str(options->host),
        fgw_cql_str(options->url),       fgw_cql_int(state),
        fgw_cql_uuid(cluster->store_id), fgw_cql_bigint((int64_t)seen->epoch)};
    return seen->epoch == 0
               ? cluster_change(cluster, STATEMENT_NODE_INSERT, values, 7, out_applied, error)
               : cluster_change(cluster, STATEMENT_NODE_TAKE, values, 8, out_applied, error);
}

static enum fgw_err refuse_removed(struct fgw_error *error)
{
    return fgw_error_set(error, FGW_ERR_CONFIG,
                         "This store was removed from the cluster (fgw node remove): begin with an "
                         "empty data directory, or run fgw node adopt on this one.");
}

/* One attempt; *out_taken: it is ours. An unknown outcome only skips an epoch. */
static enum fgw_err try_take(struct fgw_cluster *cluster, bool *out_taken, struct fgw_error *error)
{
    struct own_row seen;
    bool applied = false;
    uint64_t sent_ms = fgw_clock_boot_ms();
    enum fgw_err err = read_own(cluster, &seen, error);
    if (err == FGW_OK && seen.state == CLUSTER_REMOVED) {
        return refuse_removed(error);
    }
    uint64_t next = 0;
    if (err == FGW_OK && seen.epoch == cluster->seen.epoch) {
        err = cluster_check_beat(cluster, seen.epoch, cluster->seen.beat, error);
    }
    if (err == FGW_OK) {
        cluster_seen_check(cluster, seen.epoch, cluster->guarded.map.version);
        next = cluster_seen_epoch(cluster);
        next = next > cluster->epoch ? next : cluster->epoch;
        next = (seen.epoch > next ? seen.epoch : next) + 1;
        if (cluster->epoch != 0) {
            cluster->options.taking(cluster->options.context, next);
        }
        err = write_epoch(cluster, &seen, next, &applied, error);
    }
    if (err == FGW_OK && applied) {
        cluster->epoch = next;
        cluster->beat_taken = 0;
        cluster->last_renewed_ms = sent_ms;
        *out_taken = true;
    }
    return err == FGW_ERR_UNKNOWN_OUTCOME ? FGW_OK : err;
}

enum fgw_err cluster_take_store(struct fgw_cluster *cluster, struct fgw_error *error)
{
    bool taken = false;
    enum fgw_err err = settle_rivals(cluster, error);
    err = err == FGW_OK ? settle_twin(cluster, error) : err;
    for (unsigned attempt = 0; attempt < TAKE_TRIES && err == FGW_OK && !taken; attempt++) {
        err = try_take(cluster, &taken, error);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (!taken) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE,
                             "The store could not be taken in the registry.");
    }
    fgw_log_info("cluster", "store taken with epoch %llu as node %s",
                 (unsigned long long)cluster->epoch, cluster->options.node_id);
    return cluster_map_bump(cluster, error);
}

/* Declared away, but here we are. */
static void come_back(struct fgw_cluster *cluster, int32_t state)
{
    bool applied = false;
    struct fgw_error error;
    struct cluster_store own = {.epoch = cluster->epoch, .state = state};
    fgw_error_init(&error);
    memcpy(own.id, cluster->store_id, sizeof own.id);
    enum fgw_err err = cluster_node_state(cluster, &own, back_state(state), &applied, &error);
    if (err != FGW_OK) {
        fgw_log_warn("cluster", "the store could not be declared back: %s",
                     fgw_error_message(&error));
    } else if (applied) {
        fgw_log_info("cluster", "this store had been declared away and takes part again");
    }
}

/* The database shows an earlier epoch than this running process has: it went back. What was
 * acknowledged under our epoch stays with it; the store is taken anew above every epoch it had. */
static void take_again(struct fgw_cluster *cluster, uint64_t shown)
{
    bool taken = false;
    struct fgw_error error;
    fgw_error_init(&error);
    cluster_seen_check(cluster, shown, UINT64_MAX);
    enum fgw_err err = try_take(cluster, &taken, &error);
    if (err == FGW_OK && taken) {
        cluster->options.renewed(cluster->options.context, cluster->last_renewed_ms);
        fgw_log_warn("cluster", "store taken anew with epoch %llu",
                     (unsigned long long)cluster->epoch);
        err = cluster_map_bump(cluster, &error);
    }
    if (err != FGW_OK) {
        fgw_log_warn("cluster", "the store could not be taken anew: %s", fgw_error_message(&error));
    }
}

/* A line when it begins and one when it is over. */
static void note_renewal(struct fgw_cluster *cluster, uint64_t sent_ms, enum fgw_err err,
                         const struct fgw_error *error)
{
    if (err != FGW_OK && cluster->not_renewed_ms == 0) {
        cluster->not_renewed_ms = sent_ms;
        fgw_log_warn("cluster", "the store's epoch cannot be renewed: %s",
                     fgw_error_message(error));
    } else if (err == FGW_OK && cluster->not_renewed_ms != 0) {
        fgw_log_info("cluster", "the store's epoch is renewed again after %llu ms",
                     (unsigned long long)(sent_ms - cluster->not_renewed_ms));
        cluster->not_renewed_ms = 0;
    }
}

void cluster_renew(struct fgw_cluster *cluster)
{
    struct fgw_error error;
    struct own_row row;
    uint64_t sent_ms = fgw_clock_boot_ms();
    fgw_error_init(&error);
    enum fgw_err err = read_own(cluster, &row, &error);
    note_renewal(cluster, sent_ms, err, &error);
    if (err != FGW_OK) {
        return;
    }
    if (row.epoch == cluster->epoch) {
        cluster->last_renewed_ms = sent_ms;
        cluster->options.renewed(cluster->options.context, sent_ms);
        if (row.state == CLUSTER_AWAY || row.state == CLUSTER_DRAINING_AWAY) {
            come_back(cluster, row.state);
        }
    } else if (row.epoch > cluster->epoch) {
        cluster->options.fenced(cluster->options.context, row.epoch);
    } else {
        take_again(cluster, row.epoch);
    }
}
