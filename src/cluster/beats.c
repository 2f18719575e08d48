/* beats.c: the counter that shows that a store's process lives, and what goes with it: space, what
 * it does not reach, how far it is with copying (docs/formats/cluster-tables.md, heartbeats.data).
 * Readers time the counter on their own boot clock: nobody's clock is believed. */
#include "base/clock.h"
#include "base/tlv.h"
#include "cluster/cluster_internal.h"

enum {
    TAG_FREE = 2,
    TAG_TOTAL = 4,
    TAG_STORED = 6,
    TAG_FLAGS = 8,
    TAG_UNREACHABLE = 10,
    TAG_DONE = 12, /* set id u64, epoch u64 */
    TAG_LOOKED = 14,
    TAG_COPIED = 16,
    TAG_COPIED_BYTES = 18,
    TAG_FAILED = 20,
    TAG_DROPPED = 22,
    TAG_DISTRUST = 24,
    DATA_MAX = 256 * 1024
};

/* -- writing ------------------------------------------------------------------------------------- */

static void put_unreachable(struct fgw_cluster *cluster, struct fgw_buf *data)
{
    unsigned count = 0;
    const struct cluster_map *map = &cluster->guarded.map;
    for (size_t i = 0; i < map->store_count && count < CLUSTER_UNREACHABLE_MAX; i++) {
        if (map->stores[i].unreachable) {
            fgw_tlv_put(data, TAG_UNREACHABLE, fgw_bytes(map->stores[i].id, FGW_STORAGE_ID_SIZE));
            count++;
        }
    }
}

static void put_own(struct fgw_cluster *cluster, struct fgw_buf *data)
{
    struct fgw_storage_stats stats;
    fgw_storage_stats(cluster->options.storage, &stats);
    fgw_tlv_put_u64(data, TAG_FREE, stats.free_bytes);
    fgw_tlv_put_u64(data, TAG_TOTAL, stats.total_bytes);
    fgw_tlv_put_u64(data, TAG_STORED, stats.live_bytes);
    fgw_tlv_put_u64(data, TAG_FLAGS,
                    (stats.below_reserve ? CLUSTER_BEAT_BELOW_RESERVE : 0u) |
                        (stats.read_only ? CLUSTER_BEAT_READ_ONLY : 0u) |
                        (cluster_seen_nothing_left(cluster) ? CLUSTER_BEAT_NOTHING_LEFT : 0u));
    fgw_tlv_put_u64(data, TAG_LOOKED, cluster->walk.looked);
    fgw_tlv_put_u64(data, TAG_COPIED, cluster->walk.copied);
    fgw_tlv_put_u64(data, TAG_COPIED_BYTES, cluster->walk.copied_bytes);
    fgw_tlv_put_u64(data, TAG_FAILED, cluster->walk.failed);
    fgw_tlv_put_u64(data, TAG_DROPPED, cluster->walk.dropped);
    fgw_tlv_put_u64(data, TAG_DISTRUST, cluster->distrust_until_ms);
    put_unreachable(cluster, data);
    for (size_t i = 0; i < cluster->walk.done_count; i++) {
        uint8_t done[16];
        fgw_put_u64le(done, cluster->walk.done[i].set);
        fgw_put_u64le(done + 8, cluster->walk.done[i].epoch);
        fgw_tlv_put(data, TAG_DONE, fgw_bytes(done, sizeof done));
    }
}

enum fgw_err cluster_read_beat(struct fgw_cluster *cluster, const struct cluster_store *store,
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

enum fgw_err cluster_check_beat(struct fgw_cluster *cluster, uint64_t epoch, uint64_t taken,
                                struct fgw_error *error)
{
    struct cluster_store own = {.epoch = epoch};
    uint64_t held = cluster->epoch;
    int64_t shown;
    if (taken == 0) {
        return FGW_OK;
    }
    memcpy(own.id, cluster->store_id, sizeof own.id);
    enum fgw_err err = cluster_read_beat(cluster, &own, &shown, error);
    if (err == FGW_OK && cluster->epoch == held) {
        cluster_seen_beat(cluster, (uint64_t)shown, taken);
    }
    return err;
}

/* A database that came back as an earlier state of itself shows a lower counter only until the next
 * beat is written: so it is looked at first, each time. */
void cluster_beat(struct fgw_cluster *cluster)
{
    struct fgw_buf data;
    struct fgw_error error;
    struct fgw_cql_result *result;
    fgw_error_init(&error);
    if (cluster_check_beat(cluster, cluster->epoch, cluster->beat_taken, &error) != FGW_OK) {
        return;
    }
    fgw_buf_init(&data, DATA_MAX);
    put_own(cluster, &data);
    struct fgw_cql_value values[] = {
        fgw_cql_uuid(cluster->store_id), fgw_cql_bigint((int64_t)cluster->epoch),
        fgw_cql_bigint((int64_t)++cluster->beat), fgw_cql_blob(fgw_buf_bytes(&data))};
    uint64_t sent_ms = fgw_clock_boot_ms();
    if (cluster_execute(cluster, STATEMENT_BEAT, values, 4, false, &result, &error) == FGW_OK) {
        fgw_cql_result_free(result);
        cluster->last_beat_ms = sent_ms;
        cluster->beat_taken = cluster->beat;
    }
    fgw_buf_deinit(&data);
}

/* -- reading ------------------------------------------------------------------------------------- */

static void take_number(const struct fgw_tlv_item *item, struct cluster_beat *said)
{
    uint64_t value;
    if (item->value.len > 8 || fgw_tlv_u64(item->value, &value) != FGW_OK) {
        return;
    }
    switch (item->tag) {
    case TAG_FREE:
        said->free_bytes = value;
        break;
    case TAG_TOTAL:
        said->total_bytes = value;
        break;
    case TAG_STORED:
        said->stored_bytes = value;
        break;
    case TAG_FLAGS:
        said->flags = value;
        break;
    case TAG_LOOKED:
        said->looked = value;
        break;
    case TAG_COPIED:
        said->copied = value;
        break;
    case TAG_COPIED_BYTES:
        said->copied_bytes = value;
        break;
    case TAG_FAILED:
        said->failed = value;
        break;
    case TAG_DROPPED:
        said->dropped = value;
        break;
    case TAG_DISTRUST:
        said->distrust_until_ms = value;
        break;
    default:
        break;
    }
}

static void take_data(struct cluster_store *store, struct fgw_bytes data)
{
    struct fgw_tlv_item item;
    struct fgw_tlv_reader reader = fgw_tlv_reader(data);
    struct cluster_beat said = {0};
    while (fgw_tlv_next(&reader, &item) == FGW_OK) {
        take_number(&item, &said);
    }
    store->said = said;
    fgw_buf_clear(&store->data);
    (void)fgw_buf_append(&store->data, data);
}

static void take_beat(struct fgw_cluster *cluster, const struct fgw_cql_result *row,
                      uint64_t now_ms)
{
    uint8_t id[FGW_STORAGE_ID_SIZE];
    int64_t epoch;
    int64_t beat;
    struct fgw_bytes data;
    struct cluster_store *store = NULL;
    if (fgw_cql_get_uuid(row, "store_id", id) == FGW_OK) {
        store = cluster_map_store(&cluster->guarded.map, id);
    }
    if (store == NULL || fgw_cql_get_bigint(row, "epoch", &epoch) != FGW_OK ||
        (uint64_t)epoch != store->epoch || fgw_cql_get_bigint(row, "beat", &beat) != FGW_OK ||
        fgw_cql_get_blob(row, "data", &data) != FGW_OK) {
        return;
    }
    if (store->beat != (uint64_t)beat) {
        store->beat = (uint64_t)beat;
        store->beat_changed_ms = now_ms;
    }
    take_data(store, data);
}

enum fgw_err cluster_beats_read(struct fgw_cluster *cluster, struct fgw_error *error)
{
    struct fgw_cql_result *result;
    enum fgw_err err = cluster_execute(cluster, STATEMENT_BEATS, NULL, 0, false, &result, error);
    if (err != FGW_OK) {
        return err;
    }
    uint64_t now_ms = fgw_clock_boot_ms();
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    while (fgw_cql_result_next(result)) {
        take_beat(cluster, result, now_ms);
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    fgw_cql_result_free(result);
    cluster->beats_read_ms = now_ms;
    return FGW_OK;
}

bool cluster_beat_misses(const struct cluster_store *store, const uint8_t *other)
{
    struct fgw_tlv_item item;
    struct fgw_tlv_reader reader = fgw_tlv_reader(fgw_buf_bytes(&store->data));
    while (fgw_tlv_next(&reader, &item) == FGW_OK) {
        if (item.tag == TAG_UNREACHABLE && item.value.len == FGW_STORAGE_ID_SIZE &&
            memcmp(item.value.ptr, other, FGW_STORAGE_ID_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

bool cluster_beat_done(const struct cluster_store *store, uint64_t set, uint64_t epoch)
{
    struct fgw_tlv_item item;
    struct fgw_tlv_reader reader = fgw_tlv_reader(fgw_buf_bytes(&store->data));
    while (fgw_tlv_next(&reader, &item) == FGW_OK) {
        if (item.tag == TAG_DONE && item.value.len == 16 && fgw_get_u64le(item.value.ptr) == set &&
            fgw_get_u64le(item.value.ptr + 8) == epoch) {
            return true;
        }
    }
    return false;
}
