/* map.c: the snapshot of nodes and sets: loaded when the version in the database is another, swapped
 * in under the lock. The version is read before what it covers: a change meanwhile shows as a newer
 * version next time. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/tlv.h"
#include "cluster/cluster_internal.h"

enum { TAG_MEMBER = 1, TAG_FREE = 2, TAG_TOTAL = 4, BUMP_TRIES = 20 };

void cluster_map_deinit(struct cluster_map *map)
{
    fgw_xfree(map->stores);
    fgw_xfree(map->sets);
    *map = (struct cluster_map){0};
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
    }
    return err;
}

static enum fgw_err read_set(const struct fgw_cql_result *row, const struct cluster_map *map,
                             struct cluster_set *out)
{
    int64_t id;
    int64_t epoch;
    struct fgw_bytes data;
    struct fgw_tlv_item item;
    memset(out, 0, sizeof *out);
    enum fgw_err err = fgw_cql_get_bigint(row, "set_id", &id);
    if (err == FGW_OK) {
        err = fgw_cql_get_bigint(row, "epoch", &epoch);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_int(row, "state", &out->state);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_blob(row, "data", &data);
    }
    if (err != FGW_OK) {
        return err;
    }
    out->id = (uint64_t)id;
    out->epoch = (uint64_t)epoch;
    struct fgw_tlv_reader reader = fgw_tlv_reader(data);
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        if (item.tag == TAG_MEMBER && item.value.len == FGW_STORAGE_ID_SIZE &&
            out->count < FGW_PLACEMENT_MEMBERS_MAX) {
            const struct cluster_store *store = cluster_map_store(map, item.value.ptr);
            out->stores[out->count++] =
                store == NULL ? UINT32_MAX : (uint32_t)(store - map->stores);
        } else if (fgw_tlv_critical(item.tag)) {
            return FGW_ERR_NEWER_VERSION;
        }
    }
    return err == FGW_ERR_END && out->count > 0 ? FGW_OK : FGW_ERR_CORRUPT;
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

static enum fgw_err read_version(struct fgw_cluster *cluster, uint64_t *out_version,
                                 struct fgw_error *error)
{
    struct fgw_cql_result *result;
    int64_t version = 0;
    enum fgw_err err = cluster_execute(cluster, STATEMENT_MAP, NULL, 0, false, &result, error);
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

/* What traffic showed of a store outlives the snapshot, unless the store was taken anew. */
static void carry_over(const struct cluster_map *from, struct cluster_map *to)
{
    for (size_t i = 0; i < to->store_count; i++) {
        struct cluster_store *store = &to->stores[i];
        const struct cluster_store *old = cluster_map_store(from, store->id);
        if (old != NULL) {
            store->free_bytes = old->free_bytes;
            store->total_bytes = old->total_bytes;
            store->beat = old->beat;
            if (old->epoch == store->epoch && strcmp(old->address, store->address) == 0) {
                store->suspect_until_ms = old->suspect_until_ms;
                store->failures = old->failures;
            }
        }
    }
}

enum fgw_err cluster_map_refresh(struct fgw_cluster *cluster, bool force, struct fgw_error *error)
{
    struct cluster_map map = {0};
    uint64_t sent_ms = fgw_clock_boot_ms();
    enum fgw_err err = read_version(cluster, &map.version, error);
    if (err == FGW_OK && !force && map.version == cluster->guarded.map.version) {
        cluster->map_read_ms = sent_ms;
        return FGW_OK;
    }
    if (err != FGW_OK) {
        return err;
    }
    if (map.version < cluster->guarded.map.version) {
        fgw_log_error("cluster",
                      "the map in the database is older (%llu) than the one known "
                      "(%llu): was the database restored?",
                      (unsigned long long)map.version,
                      (unsigned long long)cluster->guarded.map.version);
        return FGW_OK;
    }
    err = load_stores(cluster, &map, error);
    if (err == FGW_OK) {
        err = load_sets(cluster, &map, error);
    }
    if (err != FGW_OK) {
        cluster_map_deinit(&map);
        return err;
    }
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    carry_over(&cluster->guarded.map, &map);
    struct cluster_map old = cluster->guarded.map;
    cluster->guarded.map = map;
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    cluster->map_read_ms = sent_ms;
    if (old.version != map.version) {
        fgw_log_info("cluster", "map version %llu: %zu stores, %zu sets",
                     (unsigned long long)map.version, map.store_count, map.set_count);
    }
    cluster_map_deinit(&old);
    return FGW_OK;
}

/* -- beats --------------------------------------------------------------------------------------- */

static void take_beat(struct fgw_cluster *cluster, const struct fgw_cql_result *row)
{
    uint8_t id[FGW_STORAGE_ID_SIZE];
    int64_t epoch;
    int64_t beat;
    struct fgw_bytes data;
    struct fgw_tlv_item item;
    struct cluster_store *store = NULL;
    if (fgw_cql_get_uuid(row, "store_id", id) == FGW_OK) {
        store = cluster_map_store(&cluster->guarded.map, id);
    }
    if (store == NULL || fgw_cql_get_bigint(row, "epoch", &epoch) != FGW_OK ||
        (uint64_t)epoch != store->epoch || fgw_cql_get_bigint(row, "beat", &beat) != FGW_OK ||
        fgw_cql_get_blob(row, "data", &data) != FGW_OK) {
        return;
    }
    store->beat = (uint64_t)beat;
    struct fgw_tlv_reader reader = fgw_tlv_reader(data);
    while (fgw_tlv_next(&reader, &item) == FGW_OK) {
        uint64_t value;
        if (fgw_tlv_u64(item.value, &value) == FGW_OK) {
            store->free_bytes = item.tag == TAG_FREE ? value : store->free_bytes;
            store->total_bytes = item.tag == TAG_TOTAL ? value : store->total_bytes;
        }
    }
}

enum fgw_err cluster_map_beats(struct fgw_cluster *cluster, struct fgw_error *error)
{
    struct fgw_cql_result *result;
    enum fgw_err err = cluster_execute(cluster, STATEMENT_BEATS, NULL, 0, false, &result, error);
    if (err != FGW_OK) {
        return err;
    }
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    while (fgw_cql_result_next(result)) {
        take_beat(cluster, result);
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    fgw_cql_result_free(result);
    return FGW_OK;
}

/* -- changing ------------------------------------------------------------------------------------ */

/* Readers must see a version above the one they may have read before our change. */
enum fgw_err cluster_map_bump(struct fgw_cluster *cluster, struct fgw_error *error)
{
    for (unsigned attempt = 0; attempt < BUMP_TRIES; attempt++) {
        uint64_t version = 0;
        bool applied = false;
        enum fgw_err err = read_version(cluster, &version, error);
        if (err == FGW_OK && version == 0) {
            err = cluster_change(cluster, STATEMENT_MAP_INSERT, NULL, 0, &applied, error);
        } else if (err == FGW_OK) {
            struct fgw_cql_value values[] = {fgw_cql_bigint((int64_t)version + 1),
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
                               const struct cluster_planned *set, bool *out_applied,
                               struct fgw_error *error)
{
    struct fgw_buf data;
    fgw_buf_init(&data, 4096);
    for (unsigned i = 0; i < set->count; i++) {
        fgw_tlv_put(&data, TAG_MEMBER,
                    fgw_bytes(map->stores[set->stores[i]].id, FGW_STORAGE_ID_SIZE));
    }
    struct fgw_cql_value values[] = {fgw_cql_bigint((int64_t)set->id),
                                     fgw_cql_blob(fgw_buf_bytes(&data))};
    enum fgw_err err = cluster_change(cluster, STATEMENT_SET_INSERT, values, 2, out_applied, error);
    fgw_buf_deinit(&data);
    return err == FGW_ERR_UNKNOWN_OUTCOME ? FGW_OK : err;
}

/* Only worker 0 replaces the map, and this runs there: reading it needs no lock. */
enum fgw_err cluster_make_sets(struct fgw_cluster *cluster, struct fgw_error *error)
{
    struct cluster_planned *planned;
    size_t count;
    bool changed = false;
    enum fgw_err err = FGW_OK;
    const struct cluster_map *map = &cluster->guarded.map;
    cluster_plan_sets(map, cluster->options.replicas, &planned, &count);
    for (size_t i = 0; i < count && err == FGW_OK; i++) {
        bool applied = false;
        if (cluster_map_set(map, planned[i].id) == NULL) {
            err = insert_set(cluster, map, &planned[i], &applied, error);
            changed = true;
        }
    }
    fgw_xfree(planned);
    if (changed) {
        enum fgw_err bumped = cluster_map_bump(cluster, error);
        err = err == FGW_OK ? bumped : err;
    }
    return err;
}
