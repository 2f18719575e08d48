/* seen.c: what this store remembers of the cluster, in a row of its own log: the highest epoch and
 * map version it has seen, and the sets it is or was in and has not given up yet. A database that
 * shows less was restored from an earlier state (design/cluster.md section 8): an alarm, and for
 * seven days nothing is freed because of what it says. Fibers of worker 0.
 *
 * Row "fgw.cluster/" | cluster id 16 | store id 16: tag-length-value: 2 epoch, 4 map version, 6 wall
 * clock (ms) until which the database is not believed, 8 a set id (once a set), 10 epoch and 12 map
 * version seen before the database showed less, 14 the own counter in the table heartbeats, for the
 * epoch, as it was within the last hour.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/tlv.h"
#include "cluster/cluster_internal.h"

enum {
    TAG_EPOCH = 2,
    TAG_MAP = 4,
    TAG_DISTRUST = 6,
    TAG_SET = 8,
    TAG_EPOCH_BEFORE = 10,
    TAG_MAP_BEFORE = 12,
    TAG_BEAT = 14,
    SKEW_MS = 24 * 3600 * 1000, /* of another's clock */
    BEATS_A_SAVE = 3600 * 1000 / FGW_CLUSTER_BEAT_MS,
    ROW_MAX = 1024 * 1024,
    DISTRUST_MS = 7 * 24 * 3600 * 1000
};

static void put_key(const struct fgw_cluster *cluster, struct fgw_buf *key)
{
    struct fgw_storage *storage = cluster->options.storage;
    fgw_buf_init(key, 256);
    (void)fgw_buf_append_str(key, "fgw.cluster/");
    (void)fgw_buf_append(key, fgw_bytes(fgw_storage_cluster_id(storage), FGW_CLUSTER_ID_SIZE));
    (void)fgw_buf_append(key, fgw_bytes(cluster->store_id, FGW_STORAGE_ID_SIZE));
}

/* -- sets remembered ----------------------------------------------------------------------------- */

static bool remembers(const struct cluster_seen *seen, uint64_t set)
{
    for (size_t i = 0; i < seen->set_count; i++) {
        if (seen->sets[i] == set) {
            return true;
        }
    }
    return false;
}

static void remember(struct cluster_seen *seen, uint64_t set)
{
    seen->sets = fgw_xrealloc(seen->sets, (seen->set_count + 1) * sizeof *seen->sets);
    seen->sets[seen->set_count++] = set;
}

/* -- the row ------------------------------------------------------------------------------------- */

static enum fgw_err take_row(struct cluster_seen *seen, struct fgw_bytes row)
{
    struct fgw_tlv_item item;
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        uint64_t value;
        if (fgw_tlv_critical(item.tag)) {
            return FGW_ERR_NEWER_VERSION;
        }
        if (fgw_tlv_u64(item.value, &value) != FGW_OK) {
            return FGW_ERR_CORRUPT;
        }
        seen->epoch = item.tag == TAG_EPOCH ? value : seen->epoch;
        seen->map_version = item.tag == TAG_MAP ? value : seen->map_version;
        seen->distrust_until_ms = item.tag == TAG_DISTRUST ? value : seen->distrust_until_ms;
        seen->epoch_before = item.tag == TAG_EPOCH_BEFORE ? value : seen->epoch_before;
        seen->map_before = item.tag == TAG_MAP_BEFORE ? value : seen->map_before;
        seen->beat = item.tag == TAG_BEAT ? value : seen->beat;
        if (item.tag == TAG_SET) {
            remember(seen, value);
        }
    }
    return err == FGW_ERR_END ? FGW_OK : err;
}

enum fgw_err cluster_seen_load(struct fgw_cluster *cluster, struct fgw_error *error)
{
    struct fgw_buf key;
    struct fgw_buf row;
    put_key(cluster, &key);
    fgw_buf_init(&row, ROW_MAX);
    fgw_xfree(cluster->seen.sets);
    cluster->seen = (struct cluster_seen){0};
    enum fgw_err err = fgw_storage_get(cluster->options.storage, fgw_buf_bytes(&key), &row);
    if (err == FGW_OK) {
        err = take_row(&cluster->seen, fgw_buf_bytes(&row));
    } else if (err == FGW_ERR_NOT_FOUND) {
        err = FGW_OK;
    }
    fgw_buf_deinit(&key);
    fgw_buf_deinit(&row);
    if (err != FGW_OK) {
        return fgw_error_set(error, err, "What the store remembers of the cluster: %s",
                             fgw_err_text(err));
    }
    const struct cluster_seen *seen = &cluster->seen;
    cluster->distrust_until_ms = seen->distrust_until_ms;
    cluster->map_known =
        seen->map_version > seen->map_before ? seen->map_version : seen->map_before;
    return FGW_OK;
}

struct row_put {
    struct fgw_bytes key;
    struct fgw_bytes row;
};

static enum fgw_err put_row(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    const struct row_put *put = op->context;
    fgw_storage_txn_put(txn, put->key, put->row);
    return FGW_OK;
}

static enum fgw_err save(struct fgw_cluster *cluster)
{
    const struct cluster_seen *seen = &cluster->seen;
    struct fgw_buf key;
    struct fgw_buf row;
    put_key(cluster, &key);
    fgw_buf_init(&row, ROW_MAX);
    fgw_tlv_put_u64(&row, TAG_EPOCH, seen->epoch);
    fgw_tlv_put_u64(&row, TAG_MAP, seen->map_version);
    fgw_tlv_put_u64(&row, TAG_DISTRUST, seen->distrust_until_ms);
    fgw_tlv_put_u64(&row, TAG_EPOCH_BEFORE, seen->epoch_before);
    fgw_tlv_put_u64(&row, TAG_MAP_BEFORE, seen->map_before);
    fgw_tlv_put_u64(&row, TAG_BEAT, seen->beat);
    for (size_t i = 0; i < seen->set_count; i++) {
        fgw_tlv_put_u64(&row, TAG_SET, seen->sets[i]);
    }
    struct row_put put = {fgw_buf_bytes(&key), fgw_buf_bytes(&row)};
    struct fgw_storage_op op = {
        .name = "cluster", .evaluate = put_row, .context = &put, .frees_space = true};
    enum fgw_err err = fgw_storage_commit(cluster->options.storage, &op);
    if (err != FGW_OK) {
        fgw_log_warn("cluster", "what was seen of the cluster could not be logged: %s",
                     fgw_err_text(err));
    }
    fgw_buf_deinit(&key);
    fgw_buf_deinit(&row);
    return err;
}

/* -- a database that shows less ------------------------------------------------------------------ */

/* Logged before anybody acts on what the database says. From here on what it shows counts again:
 * one restore is one alarm. */
static void distrust(struct fgw_cluster *cluster, const char *what, uint64_t shown, uint64_t logged)
{
    struct cluster_seen *seen = &cluster->seen;
    fgw_log_error(
        "cluster",
        "ALARM: the database shows %s %llu, this store has seen %llu: it was restored from "
        "an earlier state. Nothing is freed for 7 days; fgw node reconcile shows the "
        "difference",
        what, (unsigned long long)shown, (unsigned long long)logged);
    seen->epoch_before = seen->epoch > seen->epoch_before ? seen->epoch : seen->epoch_before;
    seen->map_before = seen->map_version;
    seen->distrust_until_ms = (uint64_t)fgw_clock_wall_ms() + DISTRUST_MS;
    cluster->distrust_until_ms = seen->distrust_until_ms;
}

void cluster_seen_check(struct fgw_cluster *cluster, uint64_t epoch, uint64_t map_version)
{
    struct cluster_seen *seen = &cluster->seen;
    bool epoch_less = epoch < seen->epoch;
    bool map_less = map_version < seen->map_version;
    if (epoch_less) {
        distrust(cluster, "epoch", epoch, seen->epoch);
    } else if (map_less) {
        distrust(cluster, "map version", map_version, seen->map_version);
    }
    if (epoch_less || map_less) {
        seen->map_version = map_less ? map_version : seen->map_version;
        seen->epoch = epoch_less ? epoch : seen->epoch;
        seen->beat = epoch_less ? 0 : seen->beat;
        (void)!save(cluster);
    }
}

/* Neither epoch nor map need have changed since the state that came back. */
void cluster_seen_beat(struct fgw_cluster *cluster, uint64_t shown, uint64_t taken)
{
    struct cluster_seen *seen = &cluster->seen;
    if (shown + cluster->beats_back < taken) {
        distrust(cluster, "heartbeat", shown, taken);
        seen->beat = shown;
        cluster->beat_taken = shown;
        (void)!save(cluster);
    } else if (taken >= seen->beat + BEATS_A_SAVE) {
        seen->beat = taken;
        (void)!save(cluster);
    }
}

/* The store whose alarm lasts longest, longer than ours; NULL: none. */
static const struct cluster_store *longest_alarm(const struct fgw_cluster *cluster,
                                                 const struct cluster_map *map)
{
    const struct cluster_store *longest = NULL;
    uint64_t now_ms = (uint64_t)fgw_clock_wall_ms();
    uint64_t until_ms = cluster->seen.distrust_until_ms;
    until_ms = until_ms > now_ms ? until_ms : now_ms;
    for (size_t i = 0; i < map->store_count; i++) {
        uint64_t said_ms = map->stores[i].said.distrust_until_ms;
        if (said_ms > until_ms && said_ms <= now_ms + DISTRUST_MS + SKEW_MS) {
            until_ms = said_ms;
            longest = &map->stores[i];
        }
    }
    return longest;
}

static void share_alarm(struct fgw_cluster *cluster, const struct cluster_store *other)
{
    if (!fgw_cluster_distrusts(cluster)) {
        fgw_log_error("cluster",
                      "ALARM: node %s says that the database was restored from an earlier state. "
                      "Nothing is freed for 7 days; fgw node reconcile shows the difference",
                      other->node_id);
    }
    cluster->seen.distrust_until_ms = other->said.distrust_until_ms;
    cluster->distrust_until_ms = other->said.distrust_until_ms;
    (void)!save(cluster);
}

void cluster_seen_others(struct fgw_cluster *cluster)
{
    struct cluster_map map;
    cluster_map_copy(cluster, &map);
    const struct cluster_store *other = longest_alarm(cluster, &map);
    if (other != NULL) {
        share_alarm(cluster, other);
    }
    cluster_map_deinit(&map);
}

bool fgw_cluster_distrusts(struct fgw_cluster *cluster)
{
    return cluster->distrust_until_ms > (uint64_t)fgw_clock_wall_ms();
}

/* -- what is seen -------------------------------------------------------------------------------- */

static bool is_in(const struct fgw_cluster *cluster, const struct cluster_map *map,
                  const struct cluster_set *set)
{
    for (unsigned i = 0; i < set->count + set->joining; i++) {
        if (set->stores[i] != UINT32_MAX &&
            memcmp(map->stores[set->stores[i]].id, cluster->store_id, FGW_STORAGE_ID_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

void cluster_seen_note(struct fgw_cluster *cluster)
{
    struct cluster_map map;
    struct cluster_seen *seen = &cluster->seen;
    bool changed = false;
    cluster_map_copy(cluster, &map);
    for (size_t i = 0; i < map.set_count; i++) {
        if (is_in(cluster, &map, &map.sets[i]) && !remembers(seen, map.sets[i].id)) {
            remember(seen, map.sets[i].id);
            changed = true;
        }
    }
    if (map.version > seen->map_version || cluster->epoch > seen->epoch) {
        seen->map_version = map.version > seen->map_version ? map.version : seen->map_version;
        seen->beat = cluster->epoch > seen->epoch ? 0 : seen->beat;
        seen->epoch = cluster->epoch > seen->epoch ? cluster->epoch : seen->epoch;
        changed = true;
    }
    cluster_map_deinit(&map);
    if (changed) {
        (void)!save(cluster);
    }
}

uint64_t cluster_seen_epoch(const struct fgw_cluster *cluster)
{
    const struct cluster_seen *seen = &cluster->seen;
    return seen->epoch > seen->epoch_before ? seen->epoch : seen->epoch_before;
}

size_t cluster_seen_left(struct fgw_cluster *cluster, uint64_t **out_sets)
{
    struct cluster_map map;
    size_t count = 0;
    cluster_map_copy(cluster, &map);
    uint64_t *left = fgw_xcalloc(cluster->seen.set_count + 1, sizeof *left);
    for (size_t i = 0; i < cluster->seen.set_count; i++) {
        const struct cluster_set *set = cluster_map_set(&map, cluster->seen.sets[i]);
        if (set != NULL && !is_in(cluster, &map, set)) {
            left[count++] = set->id;
        }
    }
    cluster_map_deinit(&map);
    *out_sets = left;
    return count;
}

bool cluster_seen_nothing_left(struct fgw_cluster *cluster)
{
    struct cluster_map map;
    uint64_t *left;
    cluster_map_copy(cluster, &map);
    const struct cluster_store *own = cluster_map_store(&map, cluster->store_id);
    bool outside = own != NULL && own->state == CLUSTER_DRAINING &&
                   cluster_sets_of(&map, (uint32_t)(own - map.stores)) == 0;
    cluster_map_deinit(&map);
    if (!outside || fgw_cluster_distrusts(cluster)) {
        return false;
    }
    bool nothing = cluster_seen_left(cluster, &left) == 0;
    fgw_xfree(left);
    return nothing;
}

void cluster_seen_forget(struct fgw_cluster *cluster, const uint64_t *sets, size_t count)
{
    struct cluster_seen *seen = &cluster->seen;
    size_t kept = 0;
    for (size_t i = 0; i < seen->set_count; i++) {
        bool forget = false;
        for (size_t k = 0; k < count; k++) {
            forget = forget || seen->sets[i] == sets[k];
        }
        if (!forget) {
            seen->sets[kept++] = seen->sets[i];
        }
    }
    seen->set_count = kept;
    (void)!save(cluster);
    cluster_seen_note(cluster); /* one that it came back to meanwhile */
}
