/* tell.c: the cluster for people: stores, sets and what is wrong, as JSON. Any thread. */
#include "base/clock.h"
#include "base/encode.h"
#include "cluster/cluster_internal.h"

/* Zones are free text. */
static void put_text(struct fgw_buf *out, const char *text)
{
    (void)fgw_buf_append_byte(out, '"');
    for (; *text != '\0'; text++) {
        uint8_t c = (uint8_t)*text;
        if (c == '"' || c == '\\' || c < ' ') {
            (void)fgw_buf_appendf(out, "\\u%04x", c);
        } else {
            (void)fgw_buf_append_byte(out, c);
        }
    }
    (void)fgw_buf_append_byte(out, '"');
}

static void put_member(struct fgw_buf *out, const char *name, const char *text)
{
    (void)fgw_buf_appendf(out, ",\"%s\":", name);
    put_text(out, text);
}

/* -- stores -------------------------------------------------------------------------------------- */

static const char *state_of(const struct cluster_map *map, uint32_t index)
{
    const struct cluster_store *store = &map->stores[index];
    static const char *const STATES[] = {"unknown", "active", "draining",      "lost",
                                         "removed", "away",   "draining, away"};
    if (cluster_is_drained(map, index)) {
        return "drained";
    }
    bool known = store->state >= 1 && store->state < (int32_t)FGW_COUNT_OF(STATES);
    return STATES[known ? store->state : 0];
}

static void put_store(struct fgw_buf *out, const struct cluster_map *map, uint32_t index,
                      uint64_t now_ms, uint64_t read_ms)
{
    const struct cluster_store *store = &map->stores[index];
    const struct cluster_beat *said = &store->said;
    char id[2 * FGW_STORAGE_ID_SIZE + 1] = {0};
    unsigned sets = cluster_sets_of(map, index);
    /* as of the last read: what came later is not known yet */
    uint64_t silent_ms = read_ms > store->beat_changed_ms ? read_ms - store->beat_changed_ms : 0;
    fgw_hex_encode(fgw_bytes(store->id, sizeof store->id), id);
    (void)fgw_buf_appendf(out, "%s{\"store\":\"%s\"", index == 0 ? "" : ",", id);
    put_member(out, "node", store->node_id);
    put_member(out, "state", state_of(map, index));
    put_member(out, "zone", store->zone);
    put_member(out, "host", store->host);
    put_member(out, "address", store->address);
    (void)fgw_buf_appendf(
        out,
        ",\"epoch\":%llu,\"sets\":%u,\"stored_bytes\":%llu,\"free_bytes\":%llu,"
        "\"total_bytes\":%llu,\"beats\":%s,\"silent_s\":%llu,\"unreachable\":%s,\"suspect\":%s,"
        "\"looked\":%llu,\"copied\":%llu,\"copied_bytes\":%llu,\"not_settled\":%llu,"
        "\"given_up\":%llu}",
        (unsigned long long)store->epoch, sets, (unsigned long long)said->stored_bytes,
        (unsigned long long)said->free_bytes, (unsigned long long)said->total_bytes,
        silent_ms < CLUSTER_FRESH_MS ? "true" : "false", (unsigned long long)silent_ms / 1000,
        store->unreachable ? "true" : "false", store->suspect_until_ms > now_ms ? "true" : "false",
        (unsigned long long)said->looked, (unsigned long long)said->copied,
        (unsigned long long)said->copied_bytes, (unsigned long long)said->failed,
        (unsigned long long)said->dropped);
}

void fgw_cluster_json(struct fgw_cluster *cluster, struct fgw_buf *out)
{
    struct cluster_map map;
    uint64_t now_ms = fgw_clock_boot_ms();
    if (now_ms - cluster->beats_read_ms > FGW_CLUSTER_BEAT_MS) {
        cluster->look = true; /* the next one who asks sees more */
    }
    cluster->told_ms = now_ms;
    cluster_map_copy(cluster, &map);
    (void)fgw_buf_append_str(out, "[");
    for (uint32_t i = 0; i < map.store_count; i++) {
        put_store(out, &map, i, now_ms, cluster->beats_read_ms);
    }
    (void)fgw_buf_append_str(out, "]");
    cluster_map_deinit(&map);
}

/* -- sets ---------------------------------------------------------------------------------------- */

struct tally {
    unsigned complete, changing, to_change, without, one_host;
};

static bool is_there(const struct cluster_store *store)
{
    return store->state == CLUSTER_ACTIVE || store->state == CLUSTER_DRAINING;
}

static bool share_a_host(const struct cluster_map *map, const struct cluster_set *set)
{
    for (unsigned i = 0; i < set->count; i++) {
        for (unsigned k = 0; k < i; k++) {
            const struct cluster_store *a = &map->stores[set->stores[i]];
            const struct cluster_store *b = &map->stores[set->stores[k]];
            if (strcmp(a->zone, b->zone) == 0 && strcmp(a->host, b->host) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void count_set(const struct cluster_map *map, const struct cluster_set *set,
                      struct tally *tally)
{
    unsigned there = 0;
    unsigned active = 0;
    for (unsigned i = 0; i < set->count; i++) {
        if (set->stores[i] == UINT32_MAX) {
            return;
        }
        there += is_there(&map->stores[set->stores[i]]);
        active += map->stores[set->stores[i]].state == CLUSTER_ACTIVE;
    }
    unsigned wanted = cluster_possible(map, set->wanted);
    tally->without += there == 0;
    tally->one_host += share_a_host(map, set);
    if (set->joining > 0) {
        tally->changing++;
    } else if (active < set->count || set->count < wanted) {
        tally->to_change++;
    } else {
        tally->complete++;
    }
}

/* number 0: not said */
static void warn(struct fgw_buf *out, bool *first, unsigned number, const char *text)
{
    (void)fgw_buf_append_str(out, *first ? "\"" : ",\"");
    if (number > 0) {
        (void)fgw_buf_appendf(out, "%u ", number);
    }
    (void)fgw_buf_append_str(out, text);
    (void)fgw_buf_append_byte(out, '"');
    *first = false;
}

static void put_warnings(struct fgw_cluster *cluster, const struct tally *tally, unsigned possible,
                         struct fgw_buf *out)
{
    char brake[CLUSTER_WHY_SIZE];
    bool first = true;
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    memcpy(brake, cluster->brake, sizeof brake);
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    if (possible < cluster->options.replicas) {
        warn(out, &first, 0, "fewer stores than FGW_REPLICAS: new objects have fewer copies");
    }
    if (tally->one_host > 0) {
        warn(out, &first, tally->one_host, "sets have two copies on one host");
    }
    if (tally->without > 0) {
        warn(out, &first, tally->without,
             "sets have no member that is there: their objects cannot be read");
    }
    if (tally->to_change > 0) {
        warn(out, &first, tally->to_change, "sets wait for a store that takes a copy");
    }
    if (fgw_cluster_distrusts(cluster)) {
        warn(out, &first, 0,
             "the database was restored from an earlier state: nothing is freed for 7 days (fgw "
             "node reconcile)");
    }
    if (brake[0] != '\0') {
        warn(out, &first, 0, brake);
    }
}

void fgw_cluster_sets_json(struct fgw_cluster *cluster, struct fgw_buf *out)
{
    struct cluster_map map;
    struct tally tally = {0};
    cluster_map_copy(cluster, &map);
    for (size_t i = 0; i < map.set_count; i++) {
        count_set(&map, &map.sets[i], &tally);
    }
    unsigned possible = cluster_possible(&map, cluster->options.replicas);
    (void)fgw_buf_appendf(out,
                          "\"map_version\":%llu,\"sets\":%zu,\"sets_complete\":%u,"
                          "\"sets_changing\":%u,\"sets_waiting\":%u,\"replicas_possible\":%u,"
                          "\"warnings\":[",
                          (unsigned long long)map.version, map.set_count, tally.complete,
                          tally.changing, tally.to_change, possible);
    put_warnings(cluster, &tally, possible, out);
    (void)fgw_buf_append_str(out, "]");
    cluster_map_deinit(&map);
}

void fgw_cluster_seen_json(struct fgw_cluster *cluster, struct fgw_buf *out)
{
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    uint64_t version = cluster->guarded.map.version;
    const struct cluster_store *own = cluster_map_store(&cluster->guarded.map, cluster->store_id);
    uint64_t epoch = own == NULL ? 0 : own->epoch;
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    uint64_t now_ms = (uint64_t)fgw_clock_wall_ms();
    uint64_t until_ms = cluster->distrust_until_ms;
    (void)fgw_buf_appendf(
        out,
        "{\"alarm\":%s,\"free_nothing_for_s\":%llu,\"epoch_shown\":%llu,\"epoch_seen\":%llu,"
        "\"map_version_shown\":%llu,\"map_version_seen_before\":%llu}",
        until_ms > now_ms ? "true" : "false",
        (unsigned long long)(until_ms > now_ms ? (until_ms - now_ms) / 1000 : 0),
        (unsigned long long)epoch, (unsigned long long)cluster_seen_epoch(cluster),
        (unsigned long long)version, (unsigned long long)cluster->seen.map_before);
}
