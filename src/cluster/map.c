/* map.c: the snapshot of nodes and sets: loaded when the version in the database is another, swapped
 * in under the lock. The version is read before what it covers: a change meanwhile shows as a newer
 * version next time. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "cluster/cluster_internal.h"

enum { BUMP_TRIES = 20, SETS_OF_STORES_MAX = 4096, DATA_MAX = 256 * 1024 };

void cluster_map_deinit(struct cluster_map *map)
{
    for (size_t i = 0; i < map->store_count; i++) {
        fgw_buf_deinit(&map->stores[i].data);
    }
    fgw_xfree(map->stores);
    fgw_xfree(map->sets);
    *map = (struct cluster_map){0};
}

void cluster_map_copy(struct fgw_cluster *cluster, struct cluster_map *out)
{
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    const struct cluster_map *map = &cluster->guarded.map;
    *out = *map;
    out->stores = fgw_xcalloc(map->store_count + 1, sizeof *out->stores);
    out->sets = fgw_xcalloc(map->set_count + 1, sizeof *out->sets);
    for (size_t i = 0; i < map->store_count; i++) {
        out->stores[i] = map->stores[i];
        fgw_buf_init(&out->stores[i].data, DATA_MAX);
        (void)fgw_buf_append(&out->stores[i].data, fgw_buf_bytes(&map->stores[i].data));
    }
    for (size_t i = 0; i < map->set_count; i++) {
        out->sets[i] = map->sets[i];
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
}

/* -- finding ------------------------------------------------------------------------------------- */

static int compare_stores(const void *a, const void *b)
{
    return memcmp(((const struct cluster_store *)a)->id, ((const struct cluster_store *)b)->id,
                  FGW_STORAGE_ID_SIZE);
}

static int compare_sets(const void *a, const void *b)
{
    uint64_t x = ((const struct cluster_set *)a)->id;
    uint64_t y = ((const struct cluster_set *)b)->id;
    return x < y ? -1 : x > y;
}

struct cluster_store *cluster_map_store(const struct cluster_map *map, const uint8_t *id)
{
    struct cluster_store wanted = {0};
    memcpy(wanted.id, id, sizeof wanted.id);
    return map->store_count == 0 ? NULL
                                 : bsearch(&wanted, map->stores, map->store_count,
                                           sizeof *map->stores, compare_stores);
}

void cluster_member_of(const struct cluster_store *store, struct fgw_placement_member *out)
{
    *out = (struct fgw_placement_member){.epoch = store->epoch, .tls = store->tls};
    memcpy(out->store_id, store->id, sizeof out->store_id);
    memcpy(out->address, store->address, sizeof out->address);
}

const struct cluster_set *cluster_map_set(const struct cluster_map *map, uint64_t id)
{
    struct cluster_set wanted = {.id = id};
    return map->set_count == 0
               ? NULL
               : bsearch(&wanted, map->sets, map->set_count, sizeof *map->sets, compare_sets);
}

/* -- rows ---------------------------------------------------------------------------------------- */

void cluster_address_of_url(struct fgw_bytes url, char out[FGW_PLACEMENT_ADDRESS_SIZE])
{
    size_t start = fgw_bytes_find(url, FGW_LIT("://"), 0);
    out[0] = '\0';
    if (start == SIZE_MAX) {
        return;
    }
    struct fgw_bytes rest = fgw_bytes_sub(url, start + 3, SIZE_MAX);
    struct fgw_bytes address = {NULL, 0};
    if (fgw_bytes_split(&rest, '/', &address) && address.len < FGW_PLACEMENT_ADDRESS_SIZE) {
        (void)snprintf(out, FGW_PLACEMENT_ADDRESS_SIZE, "%.*s", FGW_FMT(address));
    }
}

static void copy_text(const struct fgw_cql_result *row, const char *name, char *out, size_t size)
{
    struct fgw_bytes text = {NULL, 0};
    out[0] = '\0';
    if (fgw_cql_get_text(row, name, &text) == FGW_OK) {
        (void)snprintf(out, size, "%.*s", FGW_FMT(text));
    }
}

static enum fgw_err read_store(const struct fgw_cql_result *row, struct cluster_store *out)
{
    char url[FGW_PLACEMENT_ADDRESS_SIZE];
    int64_t epoch;
    memset(out, 0, sizeof *out);
    enum fgw_err err = fgw_cql_get_uuid(row, "store_id", out->id);
    if (err == FGW_OK) {
        err = fgw_cql_get_bigint(row, "epoch", &epoch);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_int(row, "state", &out->state);
    }
    if (err == FGW_OK) {
        out->epoch = (uint64_t)epoch;
        copy_text(row, "node_id", out->node_id, sizeof out->node_id);
        copy_text(row, "zone", out->zone, sizeof out->zone);
        copy_text(row, "host", out->host, sizeof out->host);
        copy_text(row, "url", url, sizeof url);
        cluster_address_of_url(fgw_bytes_str(url), out->address);
        out->tls = strncmp(url, "https://", 8) == 0;
    }
    return err;
}

static uint32_t index_of(const struct cluster_map *map, const uint8_t *id)
{
    const struct cluster_store *store = cluster_map_store(map, id);
    return store == NULL ? UINT32_MAX : (uint32_t)(store - map->stores);
}

static enum fgw_err read_set(const struct fgw_cql_result *result, const struct cluster_map *map,
                             struct cluster_set *out)
{
    int64_t id;
    int64_t epoch;
    struct fgw_bytes data;
    struct cluster_set_row row;
    memset(out, 0, sizeof *out);
    enum fgw_err err = fgw_cql_get_bigint(result, "set_id", &id);
    if (err == FGW_OK) {
        err = fgw_cql_get_bigint(result, "epoch", &epoch);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_int(result, "state", &out->state);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_blob(result, "data", &data);
    }
    if (err == FGW_OK) {
        err = cluster_set_decode(data, &row);
    }
    if (err != FGW_OK) {
        return err;
    }
    out->id = (uint64_t)id;
    out->epoch = (uint64_t)epoch;
    out->count = row.count;
    out->joining = row.joining;
    out->wanted = row.wanted;
    out->leaving = row.has_leaving ? index_of(map, row.leaving) : UINT32_MAX;
    for (unsigned i = 0; i < row.count + row.joining; i++) {
        out->stores[i] = index_of(map, row.members[i]);
    }
    cluster_set_deinit(&row);
    return FGW_OK;
}

/* -- loading ------------------------------------------------------------------------------------- */

static enum fgw_err load_stores(struct fgw_cluster *cluster, struct cluster_map *map,
                                struct fgw_error *error)
{
    struct fgw_cql_result *result;
    enum fgw_err err = cluster_execute(cluster, STATEMENT_NODES, NULL, 0, false, &result, error);
    if (err != FGW_OK) {
        return err;
    }
    map->stores = fgw_xcalloc(fgw_cql_result_row_count(result) + 1, sizeof *map->stores);
    while (err == FGW_OK && fgw_cql_result_next(result)) {
        err = read_store(result, &map->stores[map->store_count++]);
    }
    if (err == FGW_OK && fgw_cql_result_has_more(result)) {
        err = fgw_error_set(error, FGW_ERR_TOO_LARGE, "More nodes than this build can handle.");
    }
    fgw_cql_result_free(result);
    qsort(map->stores, map->store_count, sizeof *map->stores, compare_stores);
    return err;
}

static enum fgw_err load_sets(struct fgw_cluster *cluster, struct cluster_map *map,
                              struct fgw_error *error)
{
    struct fgw_cql_result *result;
    enum fgw_err err = cluster_execute(cluster, STATEMENT_SETS, NULL, 0, false, &result, error);
    if (err != FGW_OK) {
        return err;
    }
    map->sets = fgw_xcalloc(fgw_cql_result_row_count(result) + 1, sizeof *map->sets);
    while (err == FGW_OK && fgw_cql_result_next(result)) {
        err = read_set(result, map, &map->sets[map->set_count++]);
    }
    if (err == FGW_OK && fgw_cql_result_has_more(result)) {
        err = fgw_error_set(error, FGW_ERR_TOO_LARGE, "More sets than this build can handle.");
    }
    fgw_cql_result_free(result);
    qsort(map->sets, map->set_count, sizeof *map->sets, compare_sets);
    return err;
}

static enum fgw_err read_version(struct fgw_cluster *cluster, bool serial, uint64_t *out_version,
                                 struct fgw_error *error)
{
    struct fgw_cql_result *result;
    int64_t version = 0;
    enum fgw_err err = cluster_execute(cluster, STATEMENT_MAP, NULL, 0, serial, &result, error);
    if (err == FGW_OK) {
        if (fgw_cql_result_next(result)) {
            err = fgw_cql_get_bigint(result, "version", &version);
        }
        fgw_cql_result_free(result);
    }
    if (err == FGW_OK) {
        *out_version = (uint64_t)version;
    }
    return err;
}

/* What was seen of a store outlives the snapshot, unless the store was taken anew. */
static void carry_over(const struct cluster_map *from, struct cluster_map *to)
{
    for (size_t i = 0; i < to->store_count; i++) {
        struct cluster_store *store = &to->stores[i];
        const struct cluster_store *old = cluster_map_store(from, store->id);
        store->beat_changed_ms = fgw_clock_boot_ms();
        fgw_buf_init(&store->data, DATA_MAX);
        if (old == NULL) {
            continue;
        }
        store->said = old->said;
        if (old->epoch == store->epoch) {
            store->beat = old->beat;
            store->beat_changed_ms = old->beat_changed_ms;
            store->unreachable = old->unreachable;
            (void)fgw_buf_append(&store->data, fgw_buf_bytes(&old->data));
        }
        if (old->epoch == store->epoch && strcmp(old->address, store->address) == 0) {
            store->suspect_until_ms = old->suspect_until_ms;
            store->failures = old->failures;
        }
    }
}

/* Older than ours: not a replica that lags behind, but a database that was restored; it counts. */
static enum fgw_err face_older(struct fgw_cluster *cluster, struct cluster_map *map,
                               struct fgw_error *error)
{
    uint64_t known = cluster->guarded.map.version;
    enum fgw_err err = read_version(cluster, true, &map->version, error);
    if (err == FGW_OK && map->version < known) {
        fgw_log_error("cluster",
                      "the map in the database is older (%llu) than the one known (%llu): was the "
                      "database restored?",
                      (unsigned long long)map->version, (unsigned long long)known);
        if (cluster->options.storage != NULL) {
            cluster_seen_check(cluster, UINT64_MAX, map->version);
        }
    }
    return err;
}

static enum fgw_err load_map(struct fgw_cluster *cluster, struct cluster_map *map,
                             struct fgw_error *error)
{
    enum fgw_err err = load_stores(cluster, map, error);
    if (err == FGW_OK) {
        err = load_sets(cluster, map, error);
    }
    if (err != FGW_OK) {
        cluster_map_deinit(map);
    }
    return err;
}

enum fgw_err cluster_map_fresh(struct fgw_cluster *cluster, struct cluster_map *out,
                               struct fgw_error *error)
{
    struct cluster_map map = {0};
    enum fgw_err err = read_version(cluster, true, &map.version, error);
    if (err == FGW_OK) {
        err = load_map(cluster, &map, error);
    }
    if (err == FGW_OK) {
        (void)pthread_mutex_lock(&cluster->guarded.mutex);
        carry_over(&cluster->guarded.map, &map);
        (void)pthread_mutex_unlock(&cluster->guarded.mutex);
        *out = map;
    }
    return err;
}

/* The map takes the new one's place. */
static void swap_in(struct fgw_cluster *cluster, struct cluster_map *map)
{
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    carry_over(&cluster->guarded.map, map);
    struct cluster_map old = cluster->guarded.map;
    cluster->guarded.map = *map;
    cluster->map_known = map->version > cluster->map_known ? map->version : cluster->map_known;
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    if (old.version != map->version) {
        fgw_log_info("cluster", "map version %llu: %zu stores, %zu sets",
                     (unsigned long long)map->version, map->store_count, map->set_count);
        cluster->look = true; /* stores that came, or were taken anew, have something to say */
    }
    cluster_map_deinit(&old);
}

enum fgw_err cluster_map_refresh(struct fgw_cluster *cluster, bool force, struct fgw_error *error)
{
    struct cluster_map map = {0};
    uint64_t sent_ms = fgw_clock_boot_ms();
    enum fgw_err err = read_version(cluster, false, &map.version, error);
    if (err == FGW_OK && map.version < cluster->guarded.map.version) {
        err = face_older(cluster, &map, error);
    }
    if (err == FGW_OK && !force && map.version == cluster->guarded.map.version) {
        cluster->map_read_ms = sent_ms;
        return FGW_OK;
    }
    if (err != FGW_OK) {
        return err;
    }
    err = load_map(cluster, &map, error);
    if (err == FGW_OK) {
        swap_in(cluster, &map);
        cluster->map_read_ms = sent_ms;
    }
    return err;
}

/* -- changing ------------------------------------------------------------------------------------ */

/* Readers must see a version above the one they may have read before our change, also in a database
 * that went back: above every version known here. */
enum fgw_err cluster_map_bump(struct fgw_cluster *cluster, struct fgw_error *error)
{
    for (unsigned attempt = 0; attempt < BUMP_TRIES; attempt++) {
        uint64_t version = 0;
        uint64_t known = cluster->map_known;
        bool applied = false;
        enum fgw_err err = read_version(cluster, false, &version, error);
        if (err == FGW_OK && version == 0) {
            err = cluster_change(cluster, STATEMENT_MAP_INSERT, NULL, 0, &applied, error);
        } else if (err == FGW_OK) {
            uint64_t next = (version > known ? version : known) + 1;
            struct fgw_cql_value values[] = {fgw_cql_bigint((int64_t)next),
                                             fgw_cql_bigint((int64_t)version)};
            err = cluster_change(cluster, STATEMENT_MAP_BUMP, values, 2, &applied, error);
        }
        if (err != FGW_OK && err != FGW_ERR_UNKNOWN_OUTCOME) {
            return err;
        }
        if (err == FGW_OK && applied) {
            return FGW_OK;
        }
        fgw_fiber_sleep_ms(20);
    }
    return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "The map could not be changed.");
}

static enum fgw_err insert_set(struct fgw_cluster *cluster, const struct cluster_map *map,
                               const struct cluster_planned *set, uint64_t id, bool *out_applied,
                               struct fgw_error *error)
{
    struct fgw_buf data;
    struct cluster_set_row row = {.count = set->count, .wanted = set->replicas};
    fgw_buf_init(&data, DATA_MAX);
    for (unsigned i = 0; i < set->count; i++) {
        memcpy(row.members[i], map->stores[set->stores[i]].id, FGW_STORAGE_ID_SIZE);
    }
    cluster_set_encode(&row, &data);
    struct fgw_cql_value values[] = {fgw_cql_bigint((int64_t)id),
                                     fgw_cql_blob(fgw_buf_bytes(&data))};
    enum fgw_err err = cluster_change(cluster, STATEMENT_SET_INSERT, values, 2, out_applied, error);
    fgw_buf_deinit(&data);
    return err == FGW_ERR_UNKNOWN_OUTCOME ? FGW_OK : err;
}

static bool same_members(const struct cluster_set *set, const struct cluster_planned *planned)
{
    bool same = set->count == planned->count && set->joining == 0;
    for (unsigned i = 0; i < planned->count && same; i++) {
        bool found = false;
        for (unsigned k = 0; k < set->count; k++) {
            found = found || set->stores[k] == planned->stores[i];
        }
        same = found;
    }
    return same;
}

/* Makes those that are missing. Sets keep their ids when members change: numbers under which other
 * stores are by now are passed over. */
static enum fgw_err make_planned(struct fgw_cluster *cluster, const struct cluster_map *map,
                                 const struct cluster_planned *planned, bool *out_changed,
                                 struct fgw_error *error)
{
    unsigned have = 0;
    enum fgw_err err = FGW_OK;
    for (unsigned number = 0;
         number < SETS_OF_STORES_MAX && have < planned->wanted && err == FGW_OK; number++) {
        bool applied = false;
        uint64_t id = cluster_set_id(planned->id, number);
        const struct cluster_set *set = cluster_map_set(map, id);
        if (set == NULL) {
            err = insert_set(cluster, map, planned, id, &applied, error);
            *out_changed = true;
            have++;
        } else {
            have += set->state == CLUSTER_SET_OPEN && same_members(set, planned);
        }
    }
    return err;
}

/* Only worker 0 replaces the map, in the fiber that runs this: reading it needs no lock. */
enum fgw_err cluster_make_sets(struct fgw_cluster *cluster, struct fgw_error *error)
{
    struct cluster_planned *planned;
    size_t count;
    bool changed = false;
    enum fgw_err err = FGW_OK;
    const struct cluster_map *map = &cluster->guarded.map;
    cluster_plan_all(map, cluster->options.replicas, cluster->sizes_wanted, &planned, &count);
    for (size_t i = 0; i < count && err == FGW_OK; i++) {
        err = make_planned(cluster, map, &planned[i], &changed, error);
    }
    fgw_xfree(planned);
    if (changed) {
        enum fgw_err bumped = cluster_map_bump(cluster, error);
        err = err == FGW_OK ? bumped : err;
    }
    return err;
}
