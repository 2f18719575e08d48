/* placement.c: answers from the snapshot: which set takes new bytes, where a set's members are, what
 * traffic shows of them. A store that failed is suspect for a while, longer each time: it is the
 * last choice, never excluded when there is no other. */
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "cluster/cluster_internal.h"

enum { SUSPECT_MS = 2000, SUSPECT_MAX_MS = 30000, CHOICES = 2 };

static void fill_member(const struct fgw_cluster *cluster, const struct cluster_store *store,
                        uint64_t now_ms, struct fgw_placement_member *out)
{
    cluster_member_of(store, out);
    out->local = cluster->options.storage != NULL &&
                 memcmp(store->id, cluster->store_id, sizeof store->id) == 0;
    bool gone = store->state != CLUSTER_ACTIVE && store->state != CLUSTER_DRAINING;
    out->suspect = store->suspect_until_ms > now_ms || gone;
}

/* design/cluster.md section 2: with at least three stores min(2, R) copies acknowledge, else one.
 * replicas: what a bucket wishes, 0: FGW_REPLICAS. What is set by FGW_MIN_REPLICAS holds as it is. */
static unsigned needed_of(const struct fgw_cluster *cluster, unsigned replicas)
{
    unsigned wanted = replicas == 0 ? cluster->options.replicas : replicas;
    unsigned needed = cluster->options.min_replicas;
    if (needed == 0) {
        needed = cluster_possible(&cluster->guarded.map, 3) >= 3 ? 2 : 1;
        return needed < wanted ? needed : wanted;
    }
    return replicas == 0 || needed < replicas ? needed : replicas;
}

static void fill_set(const struct fgw_cluster *cluster, const struct cluster_set *set,
                     struct fgw_placement_set *out)
{
    uint64_t now_ms = fgw_clock_boot_ms();
    memset(out, 0, sizeof *out);
    out->id = set->id;
    out->epoch = set->epoch;
    for (unsigned i = 0; i < set->count + set->joining; i++) {
        if (set->stores[i] != UINT32_MAX) {
            struct fgw_placement_member *member = &out->members[out->count++];
            fill_member(cluster, &cluster->guarded.map.stores[set->stores[i]], now_ms, member);
            member->joining = i >= set->count;
            member->suspect = member->suspect || member->joining;
        }
    }
    out->needed = needed_of(cluster, set->count);
}

enum fgw_err cluster_resolve(void *context, uint64_t set_id, struct fgw_placement_set *out_set)
{
    struct fgw_cluster *cluster = context;
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    const struct cluster_set *set = cluster_map_set(&cluster->guarded.map, set_id);
    if (set != NULL) {
        fill_set(cluster, set, out_set);
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    if (set == NULL) {
        cluster->reload = true;
    }
    return set == NULL ? FGW_ERR_NOT_FOUND : FGW_OK;
}

/* -- choosing ------------------------------------------------------------------------------------ */

/* Lower is better: 0 good, then with suspects, avoided by the caller last. UINT32_MAX: unusable. */
static unsigned badness(const struct cluster_map *map, const struct cluster_set *set,
                        const uint64_t *avoid, size_t avoid_count, uint64_t now_ms)
{
    unsigned bad = 0;
    if (set->state != CLUSTER_SET_OPEN) {
        return UINT32_MAX;
    }
    for (unsigned i = 0; i < set->count; i++) {
        if (set->stores[i] == UINT32_MAX) {
            return UINT32_MAX;
        }
        const struct cluster_store *store = &map->stores[set->stores[i]];
        if (store->state == CLUSTER_LOST || store->state == CLUSTER_REMOVED) {
            return UINT32_MAX;
        }
        bad += store->suspect_until_ms > now_ms;
        bad += (store->said.flags & CLUSTER_BEAT_NO_ROOM) != 0 ? 5u : 0u;
        bad += store->state != CLUSTER_ACTIVE ? 20u : 0u;
    }
    bad += set->joining > 0 ? 10u : 0u; /* what is written now would be copied */
    for (size_t i = 0; i < avoid_count; i++) {
        bad += avoid[i] == set->id ? 100u : 0u;
    }
    return bad;
}

/* Of the member with the least. */
static uint64_t free_of(const struct cluster_map *map, const struct cluster_set *set)
{
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < set->count; i++) {
        uint64_t free_bytes = map->stores[set->stores[i]].said.free_bytes;
        least = free_bytes < least ? free_bytes : least;
    }
    return least;
}

/* What is known of the room is some seconds old: taking always the one with more would send everything
 * past a store that has hardly less. */
static bool prefers_first(uint64_t first_bytes, uint64_t second_bytes)
{
    uint64_t first_mib = first_bytes >> 20;
    uint64_t all_mib = first_mib + (second_bytes >> 20);
    return all_mib == 0 ? first_bytes >= second_bytes : fgw_rng_below(all_mib) < first_mib;
}

/* Among the best sets: two by lot, of them one by their shares of the room. */
static const struct cluster_set *choose_set(const struct cluster_map *map, unsigned members,
                                            const uint64_t *avoid, size_t avoid_count)
{
    uint64_t now_ms = fgw_clock_boot_ms();
    const struct cluster_set *picked[CHOICES] = {NULL, NULL};
    unsigned best = UINT32_MAX;
    uint64_t seen = 0;
    for (size_t i = 0; i < map->set_count; i++) {
        const struct cluster_set *set = &map->sets[i];
        unsigned bad =
            set->count != members ? UINT32_MAX : badness(map, set, avoid, avoid_count, now_ms);
        if (bad == UINT32_MAX || bad > best) {
            continue;
        }
        if (bad < best) {
            best = bad;
            seen = 0;
        }
        seen++;
        for (unsigned k = 0; k < CHOICES; k++) {
            if (seen == 1 || fgw_rng_below(seen) == 0) {
                picked[k] = set;
            }
        }
    }
    if (picked[0] == NULL) {
        return NULL;
    }
    return prefers_first(free_of(map, picked[0]), free_of(map, picked[1])) ? picked[0] : picked[1];
}

enum fgw_err cluster_choose(void *context, unsigned replicas, const uint64_t *avoid,
                            size_t avoid_count, struct fgw_placement_set *out_set,
                            struct fgw_error *error)
{
    struct fgw_cluster *cluster = context;
    const struct cluster_map *map = &cluster->guarded.map;
    unsigned wanted = replicas == 0 ? cluster->options.replicas : replicas;
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    unsigned members = cluster_possible(map, wanted);
    unsigned needed = needed_of(cluster, replicas);
    const struct cluster_set *set =
        members < needed ? NULL : choose_set(map, members, avoid, avoid_count);
    if (set == NULL && members > 0) { /* until they are made: rather fewer copies, else more */
        cluster->sizes_wanted |= 1u << members;
        cluster->sizes_lacking = true;
        cluster->reload = true;
    }
    for (unsigned fewer = members; set == NULL && fewer > needed && fewer > 1; fewer--) {
        set = choose_set(map, fewer - 1, avoid, avoid_count);
    }
    for (unsigned more = members + 1; set == NULL && more <= FGW_PLACEMENT_MEMBERS_MAX; more++) {
        set = choose_set(map, more, avoid, avoid_count);
    }
    if (set != NULL) {
        fill_set(cluster, set, out_set);
        out_set->needed = needed;
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    if (set == NULL) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE,
                             "There is no replica set of at least %u stores to write to (yet). "
                             "Please try again.",
                             needed);
    }
    return FGW_OK;
}

/* -- what traffic shows -------------------------------------------------------------------------- */

void cluster_report(void *context, const uint8_t *store_id, enum fgw_placement_event event,
                    const struct fgw_cid *root)
{
    struct fgw_cluster *cluster = context;
    uint64_t now_ms = fgw_clock_boot_ms();
    (void)root;
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    struct cluster_store *store = cluster_map_store(&cluster->guarded.map, store_id);
    if (store != NULL && event == FGW_PLACEMENT_GOOD) {
        store->failures = 0;
        store->suspect_until_ms = 0;
    } else if (store != NULL && event != FGW_PLACEMENT_DAMAGED) {
        unsigned shift = store->failures < 4 ? store->failures : 4;
        uint64_t for_ms = (uint64_t)SUSPECT_MS << shift;
        store->suspect_until_ms = now_ms + (for_ms < SUSPECT_MAX_MS ? for_ms : SUSPECT_MAX_MS);
        store->failures++;
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
}

void cluster_stale(void *context, uint64_t set_id)
{
    struct fgw_cluster *cluster = context;
    (void)set_id;
    cluster->reload = true;
}

uint64_t cluster_seen_ms(void *context)
{
    struct fgw_cluster *cluster = context;
    return cluster->map_read_ms;
}
