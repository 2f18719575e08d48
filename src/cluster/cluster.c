/* cluster.c: see cluster.h: the object, its statements, and the fiber that keeps it fresh. */
#include "cluster/cluster.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "cluster/cluster_internal.h"

enum {
    TICK_MS = 250,
    RENEW_LIMIT_MS = 30000,
    PAGE_ROWS = 100000,
    LOOK_CHANGING_MS = 2000,
    LOOK_RARELY_MS = 30000,
    WATCHED_MS = 60000, /* since somebody asked for the stores */
    GOOD_FOR_MS = 5 * 60 * 1000,
    BEATS_BACK = GOOD_FOR_MS / FGW_CLUSTER_BEAT_MS, /* a write may come late, not as late as this */
    DOWN_AFTER_LEAST_MS = 2 * FGW_CLUSTER_BEAT_MS + 2000
};

static const struct {
    const char *name;
    const char *text; /* %s: the keyspace */
    enum fgw_cql_statement_kind kind;
} STATEMENTS[STATEMENT_COUNT] = {
    [STATEMENT_NODES] = {"cluster_nodes",
                         "SELECT store_id, node_id, epoch, state, zone, host, url "
                         "FROM %s.nodes",
                         FGW_CQL_READ},
    [STATEMENT_NODE] = {"cluster_node", "SELECT epoch, state FROM %s.nodes WHERE store_id = ?",
                        FGW_CQL_READ},
    [STATEMENT_NODE_INSERT] = {"cluster_node_insert",
                               "INSERT INTO %s.nodes (epoch, node_id, zone, "
                               "host, url, state, store_id) VALUES (?, ?, ?, ?, ?, ?, ?) "
                               "IF NOT EXISTS",
                               FGW_CQL_LWT},
    [STATEMENT_NODE_TAKE] = {"cluster_node_take",
                             "UPDATE %s.nodes SET epoch = ?, node_id = ?, "
                             "zone = ?, host = ?, url = ?, state = ? WHERE store_id = ? "
                             "IF epoch = ?",
                             FGW_CQL_LWT},
    [STATEMENT_NODE_STATE] = {"cluster_node_state",
                              "UPDATE %s.nodes SET state = ? WHERE "
                              "store_id = ? IF epoch = ? AND state = ?",
                              FGW_CQL_LWT},
    [STATEMENT_BEAT] = {"cluster_beat",
                        "INSERT INTO %s.heartbeats (store_id, epoch, beat, data) "
                        "VALUES (?, ?, ?, ?)",
                        FGW_CQL_WRITE},
    [STATEMENT_BEAT_OF] = {"cluster_beat_of",
                           "SELECT beat FROM %s.heartbeats WHERE store_id = ? "
                           "AND epoch = ?",
                           FGW_CQL_READ},
    [STATEMENT_BEATS] = {"cluster_beats", "SELECT store_id, epoch, beat, data FROM %s.heartbeats",
                         FGW_CQL_READ},
    [STATEMENT_MAP] = {"cluster_map", "SELECT version FROM %s.map WHERE id = 'map'", FGW_CQL_READ},
    [STATEMENT_MAP_INSERT] = {"cluster_map_insert",
                              "INSERT INTO %s.map (id, version) VALUES "
                              "('map', 1) IF NOT EXISTS",
                              FGW_CQL_LWT},
    [STATEMENT_MAP_BUMP] = {"cluster_map_bump",
                            "UPDATE %s.map SET version = ? WHERE id = 'map' "
                            "IF version = ?",
                            FGW_CQL_LWT},
    [STATEMENT_SETS] = {"cluster_sets", "SELECT set_id, epoch, state, data FROM %s.sets",
                        FGW_CQL_READ},
    [STATEMENT_SET] = {"cluster_set", "SELECT epoch, state, data FROM %s.sets WHERE set_id = ?",
                       FGW_CQL_READ},
    [STATEMENT_SET_CHANGE] = {"cluster_set_change",
                              "UPDATE %s.sets SET epoch = ?, state = ?, data = ? "
                              "WHERE set_id = ? IF epoch = ?",
                              FGW_CQL_LWT},
    [STATEMENT_SET_INSERT] = {"cluster_set_insert",
                              "INSERT INTO %s.sets (set_id, epoch, state, "
                              "data) VALUES (?, 1, 1, ?) IF NOT EXISTS",
                              FGW_CQL_LWT},
    [STATEMENT_RELEASE_INSERT] = {"release_insert",
                                  "INSERT INTO %s.releases (store_id, hour, owner_id, bucket_id, "
                                  "key, root) VALUES (?, ?, ?, ?, ?, ?) USING TTL 604800",
                                  FGW_CQL_WRITE},
    [STATEMENT_RELEASES] = {"releases",
                            "SELECT owner_id, bucket_id, key, root FROM %s.releases WHERE "
                            "store_id = ? AND hour = ? AND owner_id > ? LIMIT ?",
                            FGW_CQL_READ},
    [STATEMENT_RELEASE_DELETE] = {"release_delete",
                                  "DELETE FROM %s.releases WHERE store_id = ? AND hour = ? AND "
                                  "owner_id = ?",
                                  FGW_CQL_WRITE},
};

static void make_statements(struct fgw_cluster *cluster)
{
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        struct fgw_buf text;
        fgw_buf_init(&text, 0);
        struct fgw_bytes format = fgw_bytes_str(STATEMENTS[i].text);
        size_t at = fgw_bytes_find(format, FGW_LIT("%s"), 0);
        (void)fgw_buf_append(&text, fgw_bytes_sub(format, 0, at));
        (void)fgw_buf_append_str(&text, cluster->options.keyspace);
        (void)fgw_buf_append(&text, fgw_bytes_sub(format, at + 2, SIZE_MAX));
        cluster->texts[i] = fgw_xstrdup_bytes(fgw_buf_bytes(&text));
        fgw_buf_deinit(&text);
        cluster->statements[i] = (struct fgw_cql_statement){.name = STATEMENTS[i].name,
                                                            .text = cluster->texts[i],
                                                            .kind = STATEMENTS[i].kind,
                                                            .idempotent = true};
    }
}

enum fgw_err cluster_execute(struct fgw_cluster *cluster, enum cluster_statement statement,
                             const struct fgw_cql_value *values, size_t count, bool serial,
                             struct fgw_cql_result **out_result, struct fgw_error *error)
{
    struct fgw_cql_options options = {.serial = serial, .page_size = PAGE_ROWS};
    struct fgw_cql_client *client = cluster->options.client(cluster->options.client_context);
    return fgw_cql_execute(client, &cluster->statements[statement], values, count, &options,
                           out_result, error);
}

enum fgw_err cluster_change(struct fgw_cluster *cluster, enum cluster_statement statement,
                            const struct fgw_cql_value *values, size_t count, bool *out_applied,
                            struct fgw_error *error)
{
    struct fgw_cql_result *result;
    enum fgw_err err = cluster_execute(cluster, statement, values, count, false, &result, error);
    if (err == FGW_OK) {
        err = fgw_cql_result_applied(result, out_applied);
        fgw_cql_result_free(result);
    }
    return err;
}

/* -- life ---------------------------------------------------------------------------------------- */

static const char *keep(struct fgw_cluster *cluster, unsigned slot, const char *text)
{
    cluster->strings[slot] = fgw_xstrdup(text == NULL ? "" : text);
    return cluster->strings[slot];
}

/* What tests shorten. */
static uint64_t from_environment(const char *name, uint64_t usual)
{
    uint64_t value;
    const char *text = getenv(name);
    return text != NULL && fgw_bytes_to_u64(fgw_bytes_str(text), &value) == FGW_OK ? value : usual;
}

struct fgw_cluster *fgw_cluster_new(const struct fgw_cluster_options *options)
{
    struct fgw_cluster *cluster = fgw_xcalloc(1, sizeof *cluster);
    cluster->options = *options;
    cluster->options.keyspace = keep(cluster, 0, options->keyspace);
    cluster->options.node_id = keep(cluster, 1, options->node_id);
    cluster->options.zone = keep(cluster, 2, options->zone);
    cluster->options.host = keep(cluster, 3, options->host);
    cluster->options.url = keep(cluster, 4, options->url);
    cluster->placement = (struct fgw_placement){.context = cluster,
                                                .choose = cluster_choose,
                                                .resolve = cluster_resolve,
                                                .report = cluster_report,
                                                .stale = cluster_stale,
                                                .seen_ms = cluster_seen_ms,
                                                .keep_release = cluster_keep_release};
    if (cluster->options.down_after_ms < DOWN_AFTER_LEAST_MS) {
        cluster->options.down_after_ms = DOWN_AFTER_LEAST_MS;
    }
    /* so long the database must have been good before anybody is declared away */
    cluster->good_for_ms = from_environment("FGW_TEST_DATABASE_GOOD_MS", GOOD_FOR_MS);
    cluster->beats_back = from_environment("FGW_TEST_BEATS_BACK", BEATS_BACK);
    (void)pthread_mutex_init(&cluster->guarded.mutex, NULL);
    if (options->storage != NULL) {
        memcpy(cluster->store_id, fgw_storage_id(options->storage), sizeof cluster->store_id);
    }
    make_statements(cluster);
    return cluster;
}

void fgw_cluster_free(struct fgw_cluster *cluster)
{
    if (cluster == NULL) {
        return;
    }
    fgw_xfree(cluster->walk.done);
    fgw_xfree(cluster->seen.sets);
    cluster_map_deinit(&cluster->guarded.map);
    (void)pthread_mutex_destroy(&cluster->guarded.mutex);
    for (size_t i = 0; i < FGW_COUNT_OF(cluster->strings); i++) {
        fgw_xfree(cluster->strings[i]);
    }
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        fgw_xfree(cluster->texts[i]);
    }
    fgw_xfree(cluster);
}

const struct fgw_placement *fgw_cluster_placement(struct fgw_cluster *cluster)
{
    return &cluster->placement;
}

uint64_t fgw_cluster_epoch(const struct fgw_cluster *cluster)
{
    return cluster->epoch;
}

/* -- joining ------------------------------------------------------------------------------------- */

struct joining {
    struct fgw_cluster *cluster;
    struct fgw_error *error;
    enum fgw_err err;
};

static enum fgw_err join_as_store(struct fgw_cluster *cluster, struct fgw_error *error)
{
    enum fgw_err err = cluster_seen_load(cluster, error);
    if (err == FGW_OK) {
        err = cluster_take_store(cluster, error);
    }
    if (err == FGW_OK) {
        cluster_beat(cluster);
        err = cluster_map_refresh(cluster, true, error);
    }
    if (err == FGW_OK) {
        err = cluster_make_sets(cluster, error);
    }
    if (err == FGW_OK) {
        err = cluster_map_refresh(cluster, false, error);
    }
    if (err == FGW_OK) {
        cluster_seen_note(cluster);
    }
    return err;
}

static void join_on_worker(void *arg, unsigned index)
{
    struct joining *joining = arg;
    struct fgw_cluster *cluster = joining->cluster;
    if (index != 0) {
        return;
    }
    enum fgw_err err = cluster_map_refresh(cluster, true, joining->error);
    if (err == FGW_OK && cluster->options.storage != NULL) {
        err = join_as_store(cluster, joining->error);
    }
    joining->err = err;
}

enum fgw_err fgw_cluster_join(struct fgw_cluster *cluster, struct fgw_error *error)
{
    struct joining joining = {cluster, error, FGW_OK};
    fgw_workers_run(cluster->options.workers, join_on_worker, &joining);
    return joining.err;
}

/* -- keeping fresh ------------------------------------------------------------------------------- */

static void tell_health(struct fgw_cluster *cluster)
{
    const struct cluster_map *map = &cluster->guarded.map;
    const struct fgw_cluster_options *options = &cluster->options;
    bool serves = map->set_count > 0;
    options->health(options->context, "stores",
                    serves ? NULL : "no storage node has joined the cluster yet");
    if (options->storage != NULL) {
        bool late = fgw_clock_boot_ms() - cluster->last_renewed_ms > RENEW_LIMIT_MS;
        options->health(options->context, "registry",
                        late ? "the epoch of the store could not be renewed for 30 s: it does not "
                               "acknowledge writes"
                             : NULL);
    }
}

static void refresh(struct fgw_cluster *cluster, bool force)
{
    struct fgw_error error;
    fgw_error_init(&error);
    uint64_t before = cluster->guarded.map.version;
    /* a database that was away may come back as an earlier state of itself with the same version */
    bool was_away = cluster->good_since_ms == 0;
    enum fgw_err err = cluster_map_refresh(cluster, force || was_away, &error);
    bool makes_sets = cluster->options.storage != NULL || cluster->sizes_wanted != 0;
    bool lacking = atomic_exchange(&cluster->sizes_lacking, false);
    if (err == FGW_OK && makes_sets && (lacking || cluster->guarded.map.version != before)) {
        err = cluster_make_sets(cluster, &error);
        if (cluster->options.storage != NULL) {
            cluster_seen_note(cluster);
        }
    }
    if (err != FGW_OK) {
        cluster->good_since_ms = 0;
        fgw_log_debug("cluster", "the map could not be read: %s", fgw_error_message(&error));
    } else if (cluster->good_since_ms == 0) {
        cluster->good_since_ms = fgw_clock_boot_ms();
    }
}

static void keep_fresh(void *arg)
{
    struct fgw_cluster *cluster = arg;
    uint64_t poll_ms = 0;
    uint64_t beat_ms = 0;
    while (!cluster->stopping) {
        uint64_t now_ms = fgw_clock_boot_ms();
        if (cluster->options.storage != NULL && now_ms >= beat_ms) {
            beat_ms = now_ms + FGW_CLUSTER_BEAT_MS;
            cluster_renew(cluster);
            cluster_beat(cluster);
        }
        bool asked = atomic_exchange(&cluster->reload, false);
        if (asked || now_ms >= poll_ms) {
            poll_ms = now_ms + FGW_CLUSTER_POLL_MS;
            refresh(cluster, asked);
        }
        tell_health(cluster);
        fgw_fiber_sleep_ms(TICK_MS);
    }
    fgw_wait_signal(&cluster->ended);
}

/* While sets change the members are asked more often how far they are. A proxy does not act upon what
 * stores say, but for their free space: it reads rarely unless somebody wants to see it, or a store
 * has news: one that was taken anew has not been heard of since, and what is known is what it said
 * before, that it is full for instance. */
static uint64_t look_again_ms(struct fgw_cluster *cluster)
{
    bool changing = false;
    bool unheard = false;
    uint64_t now_ms = fgw_clock_boot_ms();
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    const struct cluster_map *map = &cluster->guarded.map;
    for (size_t i = 0; i < map->store_count && !unheard; i++) {
        unheard = map->stores[i].state == CLUSTER_ACTIVE && map->stores[i].beat == 0;
    }
    for (size_t i = 0; i < map->set_count && !changing; i++) {
        changing = map->sets[i].joining > 0;
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    bool rarely =
        cluster->options.storage == NULL && !unheard && now_ms - cluster->told_ms > WATCHED_MS;
    return now_ms + (rarely ? LOOK_RARELY_MS : changing ? LOOK_CHANGING_MS : FGW_CLUSTER_BEAT_MS);
}

/* Reads what all stores say; a storage node acts upon it. */
static void look_around(void *arg)
{
    struct fgw_cluster *cluster = arg;
    struct fgw_error error;
    uint64_t look_ms = 0;
    while (!cluster->stopping) {
        if (fgw_clock_boot_ms() >= look_ms || atomic_exchange(&cluster->look, false)) {
            fgw_error_init(&error);
            uint64_t number = atomic_fetch_add(&cluster->looks_begun, 1) + 1;
            enum fgw_err err = cluster_beats_read(cluster, &error);
            if (err == FGW_OK) {
                atomic_store(&cluster->looks_done, number);
            }
            if (err == FGW_OK && cluster->options.storage != NULL) {
                cluster_seen_others(cluster);
                cluster_watch(cluster);
                cluster_repair(cluster);
            }
            look_ms = look_again_ms(cluster);
        }
        fgw_fiber_sleep_ms(TICK_MS);
    }
    fgw_wait_signal(&cluster->ended);
}

static void start_on_worker(void *arg, unsigned index)
{
    struct fgw_cluster *cluster = arg;
    if (index == 0) {
        bool copies = cluster->options.storage != NULL;
        fgw_wait_init(&cluster->ended, copies ? 4 : 2);
        cluster->running = true;
        fgw_fiber_spawn(fgw_loop_current(), keep_fresh, cluster);
        fgw_fiber_spawn(fgw_loop_current(), look_around, cluster);
        if (copies) {
            fgw_fiber_spawn(fgw_loop_current(), cluster_walk_run, cluster);
            fgw_fiber_spawn(fgw_loop_current(), cluster_releases_run, cluster);
        }
    }
}

static void stop_on_worker(void *arg, unsigned index)
{
    struct fgw_cluster *cluster = arg;
    if (index == 0 && cluster->running) {
        cluster->stopping = true;
        fgw_wait_for(&cluster->ended);
        cluster->running = false;
    }
}

void fgw_cluster_start(struct fgw_cluster *cluster)
{
    fgw_workers_run(cluster->options.workers, start_on_worker, cluster);
}

void fgw_cluster_stop(struct fgw_cluster *cluster)
{
    if (cluster != NULL) {
        fgw_workers_run(cluster->options.workers, stop_on_worker, cluster);
    }
}

/* -- telling ------------------------------------------------------------------------------------- */

void fgw_cluster_stats(struct fgw_cluster *cluster, struct fgw_cluster_stats *out_stats)
{
    uint64_t now_ms = fgw_clock_boot_ms();
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    const struct cluster_map *map = &cluster->guarded.map;
    *out_stats = (struct fgw_cluster_stats){.map_version = map->version,
                                            .stores = map->store_count,
                                            .sets = map->set_count,
                                            .epoch = cluster->epoch,
                                            .distrusts = fgw_cluster_distrusts(cluster),
                                            .releases_kept = cluster->releases_kept,
                                            .releases_followed = cluster->releases_followed,
                                            .replicas_possible =
                                                cluster_possible(map, cluster->options.replicas)};
    for (size_t i = 0; i < map->store_count; i++) {
        out_stats->stores_suspect += map->stores[i].suspect_until_ms > now_ms;
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
}
