/* operate.c: what people order: drain, remove, rebalance. An order is one conditional write a row;
 * the members of the sets carry it out (repair.c, walk.c), whoever gave it. */
#include <stdio.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "cluster/cluster_internal.h"

enum { NAME_LEAST = 8, LOOK_TRIES = 50, LOOK_WAIT_MS = 100 };
#define TOLERATED 0.2

enum fgw_err fgw_cluster_look(struct fgw_cluster *cluster, uint64_t wait_ms,
                              struct fgw_error *error)
{
    enum fgw_err err = cluster_map_refresh(cluster, true, error);
    if (err == FGW_OK) {
        err = cluster_beats_read(cluster, error);
    }
    if (err != FGW_OK || wait_ms == 0) {
        return err;
    }
    uint64_t first_ms = fgw_clock_boot_ms();
    fgw_fiber_sleep_ms(wait_ms);
    err = cluster_beats_read(cluster, error);
    struct cluster_map *map = &cluster->guarded.map;
    for (size_t i = 0; i < map->store_count; i++) {
        if (map->stores[i].beat_changed_ms <= first_ms) {
            map->stores[i].beat_changed_ms = first_ms - CLUSTER_FRESH_MS;
        }
    }
    return err;
}

/* -- which store --------------------------------------------------------------------------------- */

static bool is_named(const struct cluster_store *store, const char *name)
{
    char id[2 * FGW_STORAGE_ID_SIZE + 1] = {0};
    size_t len = strlen(name);
    fgw_hex_encode(fgw_bytes(store->id, sizeof store->id), id);
    return len >= NAME_LEAST && len <= strlen(id) && memcmp(id, name, len) == 0;
}

/* By node id the store that the node has now; lost and removed ones only by store id. */
static enum fgw_err find_store(const struct cluster_map *map, const char *name, uint32_t *out_index,
                               struct fgw_error *error)
{
    uint32_t found = UINT32_MAX;
    unsigned matches = 0;
    for (uint32_t i = 0; i < map->store_count; i++) {
        const struct cluster_store *store = &map->stores[i];
        bool there = store->state != CLUSTER_LOST && store->state != CLUSTER_REMOVED;
        if ((there && strcmp(store->node_id, name) == 0) || is_named(store, name)) {
            found = i;
            matches++;
        }
    }
    if (matches == 0) {
        for (uint32_t i = 0; i < map->store_count; i++) {
            if (strcmp(map->stores[i].node_id, name) == 0) {
                found = i;
                matches++;
            }
        }
    }
    if (matches != 1) {
        return fgw_error_set(error, FGW_ERR_NOT_FOUND,
                             matches == 0 ? "There is no node or store %s (fgw node list)."
                                          : "%s names several stores: give a store id.",
                             name);
    }
    *out_index = found;
    return FGW_OK;
}

static bool has(const struct cluster_set *set, uint32_t store, bool also_joining)
{
    for (unsigned i = 0; i < set->count + (also_joining ? set->joining : 0); i++) {
        if (set->stores[i] == store) {
            return true;
        }
    }
    return false;
}

/* -- drain --------------------------------------------------------------------------------------- */

/* Somebody must be able to take what it has: as many stores as the largest of its sets has members. */
static enum fgw_err check_room(const struct cluster_map *map, uint32_t index,
                               struct fgw_error *error)
{
    unsigned most = 0;
    unsigned others = 0;
    for (size_t i = 0; i < map->set_count; i++) {
        if (has(&map->sets[i], index, true) && map->sets[i].count > most) {
            most = map->sets[i].count;
        }
    }
    for (uint32_t i = 0; i < map->store_count; i++) {
        others += i != index && map->stores[i].state == CLUSTER_ACTIVE;
    }
    if (others < most || others == 0) {
        return fgw_error_set(error, FGW_ERR_CONFLICT,
                             "There would be %u active stores left for sets of %u copies: add a "
                             "node first.",
                             others, most);
    }
    return FGW_OK;
}

static enum fgw_err change_state(struct fgw_cluster *cluster, const struct cluster_store *store,
                                 enum cluster_node_state to, struct fgw_error *error)
{
    bool applied = false;
    enum fgw_err err = cluster_node_state(cluster, store, to, &applied, error);
    if (err == FGW_OK && !applied) {
        err =
            fgw_error_set(error, FGW_ERR_CONFLICT,
                          "The store changed meanwhile (it was restarted, or somebody else gave an "
                          "order): please try again.");
    }
    return err;
}

enum fgw_err fgw_cluster_drain(struct fgw_cluster *cluster, const char *name, bool cancel,
                               struct fgw_error *error)
{
    struct cluster_map map;
    uint32_t index = 0;
    enum fgw_err err = cluster_map_fresh(cluster, &map, error);
    if (err != FGW_OK) {
        return err;
    }
    err = find_store(&map, name, &index, error);
    if (err == FGW_OK) {
        const struct cluster_store *store = &map.stores[index];
        bool away = store->state == CLUSTER_AWAY || store->state == CLUSTER_DRAINING_AWAY;
        bool drains = store->state == CLUSTER_DRAINING || store->state == CLUSTER_DRAINING_AWAY;
        if (store->state == CLUSTER_LOST || store->state == CLUSTER_REMOVED) {
            err = fgw_error_set(error, FGW_ERR_CONFLICT, "The store is lost or removed.");
        } else if (drains != cancel) {
            err = FGW_OK; /* as wanted */
        } else if (cancel) {
            err = change_state(cluster, store, away ? CLUSTER_AWAY : CLUSTER_ACTIVE, error);
        } else {
            err = check_room(&map, index, error);
            err = err != FGW_OK
                      ? err
                      : change_state(cluster, store,
                                     away ? CLUSTER_DRAINING_AWAY : CLUSTER_DRAINING, error);
        }
    }
    cluster_map_deinit(&map);
    return err;
}

/* -- remove -------------------------------------------------------------------------------------- */

static bool another_is_there(const struct cluster_map *map, const struct cluster_set *set,
                             uint32_t index)
{
    for (unsigned i = 0; i < set->count; i++) {
        uint32_t member = set->stores[i];
        if (member != index && member != UINT32_MAX &&
            (map->stores[member].state == CLUSTER_ACTIVE ||
             map->stores[member].state == CLUSTER_DRAINING)) {
            return true;
        }
    }
    return false;
}

static enum fgw_err may_remove(const struct cluster_map *map, uint32_t index, bool force,
                               unsigned *out_lost, struct fgw_error *error)
{
    unsigned member_of = 0;
    unsigned lost = 0;
    for (size_t i = 0; i < map->set_count; i++) {
        if (has(&map->sets[i], index, false)) {
            member_of++;
            lost += !another_is_there(map, &map->sets[i], index);
        }
    }
    if (member_of > 0 && !force) {
        return fgw_error_set(
            error, FGW_ERR_CONFLICT,
            "The store is a member of %u sets, and of %u of them nobody else has a copy. Drain it "
            "first (fgw node drain), or --force: then what only it has is lost for good.",
            member_of, lost);
    }
    bool hands_over =
        map->stores[index].state == CLUSTER_DRAINING && !cluster_is_drained(map, index);
    if (hands_over && !force) {
        return fgw_error_set(error, FGW_ERR_CONFLICT,
                             "The store has not handed over all it holds yet: wait until fgw node "
                             "list shows drained, or --force.");
    }
    *out_lost = lost;
    return FGW_OK;
}

/* What stores said up to now is known afterwards, or not to be had. Only a process that runs has
 * somebody who looks; fgw_cluster_look does it for the others. */
static void look_now(struct fgw_cluster *cluster)
{
    uint64_t wanted = atomic_load(&cluster->looks_begun) + 1;
    for (unsigned i = 0; i < LOOK_TRIES && cluster->running && !cluster->stopping &&
                         atomic_load(&cluster->looks_done) < wanted;
         i++) {
        atomic_store(&cluster->look, true);
        fgw_fiber_sleep_ms(LOOK_WAIT_MS);
    }
}

enum fgw_err fgw_cluster_remove(struct fgw_cluster *cluster, const char *name, bool force,
                                unsigned *out_lost, struct fgw_error *error)
{
    struct cluster_map map;
    uint32_t index = 0;
    unsigned lost = 0;
    look_now(cluster);
    enum fgw_err err = cluster_map_fresh(cluster, &map, error);
    if (err != FGW_OK) {
        return err;
    }
    err = find_store(&map, name, &index, error);
    if (err == FGW_OK) {
        err = may_remove(&map, index, force, &lost, error);
    }
    if (err == FGW_OK && map.stores[index].state != CLUSTER_REMOVED) {
        err = change_state(cluster, &map.stores[index], CLUSTER_REMOVED, error);
    }
    cluster_map_deinit(&map);
    if (err == FGW_OK) {
        *out_lost = lost;
    }
    return err;
}

/* -- rebalance ----------------------------------------------------------------------------------- */

void cluster_note_move(struct cluster_load *from, struct cluster_load *to)
{
    double share = from->sets == 0 ? 0 : from->bytes / from->sets;
    from->bytes -= share;
    from->sets -= from->sets > 0;
    from->moved++;
    to->bytes += share;
}

void cluster_measure(const struct cluster_map *map, struct cluster_load *loads)
{
    for (uint32_t i = 0; i < map->store_count; i++) {
        const struct cluster_beat *said = &map->stores[i].said;
        loads[i].bytes = (double)said->stored_bytes;
        loads[i].room = (double)said->stored_bytes + (double)said->free_bytes;
        for (size_t k = 0; k < map->set_count; k++) {
            loads[i].sets += has(&map->sets[k], i, false);
        }
    }
    for (size_t k = 0; k < map->set_count; k++) {
        const struct cluster_set *set = &map->sets[k];
        uint32_t to = set->joining > 0 ? set->stores[set->count] : UINT32_MAX;
        if (to != UINT32_MAX && set->leaving != UINT32_MAX) {
            cluster_note_move(&loads[set->leaving], &loads[to]);
        }
    }
}

static double fill_of(const struct cluster_load *load)
{
    return load->room > 0 ? load->bytes / load->room : 1;
}

/* A set whose membership can move from one store to the other without bringing copies closer
 * together, or NULL. */
static struct cluster_set *pick_set(const struct cluster_map *map, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < map->set_count; i++) {
        struct cluster_set *set = &map->sets[i];
        if (set->joining == 0 && has(set, from, false) && !has(set, to, false) &&
            cluster_closeness(map, set, from, to) <= cluster_closeness(map, set, from, from)) {
            return set;
        }
    }
    return NULL;
}

static bool begin_move(struct fgw_cluster *cluster, const struct cluster_map *map,
                       struct cluster_set *set, uint32_t from, uint32_t to, enum fgw_err *out_err,
                       struct fgw_error *error)
{
    struct cluster_set_row row;
    bool applied = false;
    *out_err = cluster_set_read(cluster, set->id, &row, error);
    if (*out_err == FGW_OK) {
        if (row.epoch == set->epoch &&
            cluster_row_start(&row, map->stores[to].id, map->stores[from].id)) {
            *out_err = cluster_set_write(cluster, &row, &applied, error);
        }
        cluster_set_deinit(&row);
    }
    /* ours or somebody else's: not looked at again */
    set->stores[set->count] = to;
    set->joining = 1;
    return applied;
}

/* Stores whose fill differs by less than this share of the mean are balanced: what a set weighs is
 * an estimate. */
static double tolerance(const struct cluster_map *map, const struct cluster_load *loads)
{
    double sum = 0;
    unsigned count = 0;
    for (uint32_t i = 0; i < map->store_count; i++) {
        if (map->stores[i].state == CLUSTER_ACTIVE) {
            sum += fill_of(&loads[i]);
            count++;
        }
    }
    return count == 0 ? 0 : TOLERATED * sum / count;
}

static bool may_give(const struct cluster_map *map, const struct cluster_load *loads, uint32_t from)
{
    return map->stores[from].state == CLUSTER_ACTIVE && loads[from].sets > 0 &&
           loads[from].moved * 4 < loads[from].sets + 3;
}

bool cluster_pick_pair(const struct cluster_map *map, const struct cluster_load *loads,
                       uint32_t *out_from, uint32_t *out_to)
{
    double best = tolerance(map, loads);
    bool found = false;
    for (uint32_t from = 0; from < map->store_count; from++) {
        if (!may_give(map, loads, from)) {
            continue;
        }
        double share = loads[from].bytes / loads[from].sets;
        for (uint32_t to = 0; to < map->store_count; to++) {
            struct cluster_load less = loads[from];
            struct cluster_load more = loads[to];
            double difference = fill_of(&less) - fill_of(&more);
            less.bytes -= share;
            more.bytes += share;
            if (to != from && difference > best && fill_of(&less) >= fill_of(&more) &&
                cluster_can_join(&map->stores[to]) && pick_set(map, from, to) != NULL) {
                best = difference;
                *out_from = from;
                *out_to = to;
                found = true;
            }
        }
    }
    return found;
}

enum fgw_err fgw_cluster_rebalance(struct fgw_cluster *cluster, unsigned *out_moves,
                                   struct fgw_error *error)
{
    struct cluster_map map;
    unsigned moves = 0;
    uint32_t from = 0;
    uint32_t to = 0;
    enum fgw_err err = cluster_map_fresh(cluster, &map, error);
    if (err != FGW_OK) {
        return err;
    }
    struct cluster_load *loads = fgw_xcalloc(map.store_count + 1, sizeof *loads);
    cluster_measure(&map, loads);
    while (err == FGW_OK && cluster_pick_pair(&map, loads, &from, &to)) {
        moves += begin_move(cluster, &map, pick_set(&map, from, to), from, to, &err, error);
        cluster_note_move(&loads[from], &loads[to]);
    }
    fgw_xfree(loads);
    cluster_map_deinit(&map);
    if (moves > 0) {
        enum fgw_err bumped = cluster_map_bump(cluster, error);
        err = err == FGW_OK ? bumped : err;
        fgw_log_info("cluster", "rebalance: %u memberships move", moves);
    }
    if (err == FGW_OK) {
        *out_moves = moves;
    }
    return err;
}
