/* plan.c: which replica sets there should be: by rendezvous hashing, so that every process that
 * plans over the same stores makes the same sets, and a store more changes few of them. */
#include <stdlib.h>
#include <xxhash.h>

#include "cluster/cluster_internal.h"

static unsigned active_stores(const struct cluster_map *map)
{
    unsigned count = 0;
    for (size_t i = 0; i < map->store_count; i++) {
        count += map->stores[i].state == CLUSTER_ACTIVE;
    }
    return count;
}

unsigned cluster_possible(const struct cluster_map *map, unsigned replicas)
{
    unsigned stores = active_stores(map);
    unsigned most = replicas < FGW_PLACEMENT_MEMBERS_MAX ? replicas : FGW_PLACEMENT_MEMBERS_MAX;
    return stores < most ? stores : most;
}

static int compare_id(const void *a, const void *b)
{
    uint64_t x = ((const struct cluster_planned *)a)->id;
    uint64_t y = ((const struct cluster_planned *)b)->id;
    return x < y ? -1 : x > y;
}

static uint64_t score_of(const struct cluster_store *store, uint64_t round)
{
    return XXH64(store->id, sizeof store->id, round);
}

/* How badly a store fits to those taken: 2 for each in its zone's host, 1 for each in its zone.
 * UINT32_MAX: taken itself. */
static unsigned closeness(const struct cluster_map *map, const struct cluster_planned *set,
                          uint32_t candidate)
{
    unsigned worst = 0;
    const struct cluster_store *store = &map->stores[candidate];
    for (unsigned i = 0; i < set->count; i++) {
        const struct cluster_store *taken = &map->stores[set->stores[i]];
        if (set->stores[i] == candidate) {
            return UINT32_MAX;
        }
        bool zone = strcmp(store->zone, taken->zone) == 0;
        bool host = zone && strcmp(store->host, taken->host) == 0;
        worst += host ? 1000u : zone ? 1u : 0u;
    }
    return worst;
}

static void take_best(const struct cluster_map *map, uint64_t round, struct cluster_planned *set)
{
    uint32_t best = UINT32_MAX;
    unsigned best_close = UINT32_MAX;
    uint64_t best_score = 0;
    for (uint32_t i = 0; i < map->store_count; i++) {
        unsigned close = closeness(map, set, i);
        uint64_t score = score_of(&map->stores[i], round);
        if (map->stores[i].state == CLUSTER_ACTIVE && close != UINT32_MAX &&
            (close < best_close || (close == best_close && score > best_score))) {
            best = i;
            best_close = close;
            best_score = score;
        }
    }
    if (best != UINT32_MAX) {
        set->stores[set->count++] = best;
    }
}

/* Members in the order of their ids: who was chosen first does not matter. Stores are sorted. */
static void name_set(const struct cluster_map *map, struct cluster_planned *set)
{
    XXH64_hash_t hash = set->count;
    for (unsigned i = 1; i < set->count; i++) {
        for (unsigned k = i; k > 0 && set->stores[k - 1] > set->stores[k]; k--) {
            uint32_t swap = set->stores[k];
            set->stores[k] = set->stores[k - 1];
            set->stores[k - 1] = swap;
        }
    }
    for (unsigned i = 0; i < set->count; i++) {
        hash = XXH64(map->stores[set->stores[i]].id, FGW_STORAGE_ID_SIZE, hash);
    }
    set->id = (hash & INT64_MAX) | 1; /* a bigint, and never 0 */
}

uint64_t cluster_set_id(uint64_t first, unsigned number)
{
    return number == 0 ? first : (XXH64(&first, sizeof first, number) & INT64_MAX) | 1;
}

void cluster_plan_sets(const struct cluster_map *map, unsigned replicas,
                       struct cluster_planned **out_sets, size_t *out_count)
{
    unsigned members = cluster_possible(map, replicas);
    size_t rounds =
        members == 0
            ? 0
            : ((size_t)active_stores(map) * CLUSTER_SETS_PER_STORE + members - 1) / members;
    struct cluster_planned *sets = fgw_xcalloc(rounds + 1, sizeof *sets);
    size_t count = 0;
    for (size_t round = 0; round < rounds; round++) {
        struct cluster_planned *set = &sets[round];
        while (set->count < members) {
            take_best(map, round, set);
        }
        name_set(map, set);
    }
    qsort(sets, rounds, sizeof *sets, compare_id);
    for (size_t i = 0; i < rounds; i++) {
        if (i == 0 || sets[i].id != sets[count - 1].id) {
            sets[count] = sets[i];
            sets[count].replicas = replicas;
            sets[count++].wanted = 1;
        } else {
            sets[count - 1].wanted++;
        }
    }
    *out_sets = sets;
    *out_count = count;
}

void cluster_plan_all(const struct cluster_map *map, unsigned replicas, uint32_t sizes,
                      struct cluster_planned **out_sets, size_t *out_count)
{
    struct cluster_planned *all;
    size_t total;
    cluster_plan_sets(map, replicas, &all, &total);
    for (unsigned size = 1; size <= FGW_PLACEMENT_MEMBERS_MAX; size++) {
        struct cluster_planned *more;
        size_t count;
        bool wanted = (sizes & (1u << size)) != 0 && cluster_possible(map, size) == size &&
                      cluster_possible(map, replicas) != size;
        if (!wanted) {
            continue;
        }
        cluster_plan_sets(map, size, &more, &count);
        all = fgw_xrealloc(all, (total + count + 1) * sizeof *all);
        memcpy(all + total, more, count * sizeof *more);
        total += count;
        fgw_xfree(more);
    }
    *out_sets = all;
    *out_count = total;
}
