/* repair.c: what has to be done to the sets: members that are gone or to go are replaced, one
 * conditional write a step (design/cluster.md sections 2 and 6).
 *
 *   {A gone, B}  ->  {A gone, B, C joining, A leaving}  ->  B has copied all  ->  {B, C}
 *
 * The repairer of a set is its first member that is there. Two who take themselves for it do no
 * harm: every step names the epoch it saw. Copying is the members' own work (walk.c): the last step
 * waits until each member that is there says in its beats that it is through with this epoch.
 * Killed anywhere, whoever comes next goes on from the row. Fibers of worker 0. */
#include "base/encode.h"
#include "base/log.h"
#include "cluster/cluster_internal.h"

static bool is_gone(const struct cluster_store *store)
{
    return store->state != CLUSTER_ACTIVE && store->state != CLUSTER_DRAINING;
}

/* -- who joins: pure ----------------------------------------------------------------------------- */

unsigned cluster_closeness(const struct cluster_map *map, const struct cluster_set *set,
                           uint32_t leaving, uint32_t candidate)
{
    unsigned worst = 0;
    for (unsigned i = 0; i < set->count + set->joining; i++) {
        uint32_t member = set->stores[i];
        if (member == leaving || member == UINT32_MAX) {
            continue;
        }
        if (member == candidate) {
            return UINT32_MAX;
        }
        bool zone = strcmp(map->stores[member].zone, map->stores[candidate].zone) == 0;
        bool host = zone && strcmp(map->stores[member].host, map->stores[candidate].host) == 0;
        worst += host ? 1000u : zone ? 1u : 0u;
    }
    return worst;
}

double cluster_fill(const struct cluster_store *store)
{
    double room = (double)store->said.free_bytes + (double)store->said.stored_bytes;
    return room > 0 ? (double)store->said.stored_bytes / room : 1.0;
}

unsigned cluster_sets_of(const struct cluster_map *map, uint32_t store)
{
    unsigned count = 0;
    for (size_t i = 0; i < map->set_count; i++) {
        for (unsigned k = 0; k < map->sets[i].count + map->sets[i].joining; k++) {
            count += map->sets[i].stores[k] == store;
        }
    }
    return count;
}

bool cluster_is_drained(const struct cluster_map *map, uint32_t store)
{
    return map->stores[store].state == CLUSTER_DRAINING && cluster_sets_of(map, store) == 0 &&
           (map->stores[store].said.flags & CLUSTER_BEAT_NOTHING_LEFT) != 0;
}

bool cluster_can_join(const struct cluster_store *store)
{
    return store->state == CLUSTER_ACTIVE && !store->unreachable &&
           (store->said.flags & CLUSTER_BEAT_NO_ROOM) == 0;
}

uint32_t cluster_candidate(const struct cluster_map *map, const struct cluster_set *set,
                           uint32_t leaving)
{
    uint32_t best = UINT32_MAX;
    unsigned best_close = UINT32_MAX;
    double best_load = 0;
    for (uint32_t i = 0; i < map->store_count; i++) {
        unsigned close = cluster_closeness(map, set, leaving, i);
        /* the fullest last; among equals the one with the fewest sets */
        double load = cluster_fill(&map->stores[i]) + 0.001 * cluster_sets_of(map, i);
        if (i != leaving && cluster_can_join(&map->stores[i]) && close != UINT32_MAX &&
            (close < best_close || (close == best_close && load < best_load))) {
            best = i;
            best_close = close;
            best_load = load;
        }
    }
    return best;
}

/* -- what is to be done: pure -------------------------------------------------------------------- */

static uint32_t repairer_of(const struct cluster_map *map, const struct cluster_set *set)
{
    for (int draining = 0; draining < 2; draining++) {
        for (unsigned i = 0; i < set->count; i++) {
            uint32_t member = set->stores[i];
            if (member != UINT32_MAX &&
                map->stores[member].state == (draining ? CLUSTER_DRAINING : CLUSTER_ACTIVE)) {
                return member;
            }
        }
    }
    return UINT32_MAX;
}

/* The member to replace: one that is gone before one that is draining. */
static uint32_t to_replace(const struct cluster_map *map, const struct cluster_set *set)
{
    uint32_t found = UINT32_MAX;
    for (unsigned i = 0; i < set->count; i++) {
        uint32_t member = set->stores[i];
        if (member == UINT32_MAX) {
            return UINT32_MAX; /* the map is not complete */
        }
        if (is_gone(&map->stores[member])) {
            return member;
        }
        if (map->stores[member].state == CLUSTER_DRAINING) {
            found = member;
        }
    }
    return found;
}

static bool is_complete(const struct cluster_map *map, const struct cluster_set *set)
{
    for (unsigned i = 0; i < set->count; i++) {
        if (set->stores[i] == UINT32_MAX || map->stores[set->stores[i]].state != CLUSTER_ACTIVE) {
            return false;
        }
    }
    return true;
}

/* Has every member that is there copied what it holds to those that join? */
static bool is_copied(const struct cluster_map *map, const struct cluster_set *set)
{
    bool any = false;
    for (unsigned i = 0; i < set->count; i++) {
        uint32_t member = set->stores[i];
        if (member == UINT32_MAX) {
            return false;
        }
        if (is_gone(&map->stores[member])) {
            continue;
        }
        if (!cluster_beat_done(&map->stores[member], set->id, set->epoch)) {
            return false;
        }
        any = true;
    }
    return any;
}

static bool joining_is_lost(const struct cluster_map *map, const struct cluster_set *set)
{
    for (unsigned i = set->count; i < set->count + set->joining; i++) {
        if (set->stores[i] != UINT32_MAX && map->stores[set->stores[i]].state != CLUSTER_ACTIVE) {
            return true;
        }
    }
    return false;
}

struct cluster_step cluster_next_step(const struct cluster_map *map, const struct cluster_set *set)
{
    struct cluster_step step = {CLUSTER_STEP_NONE, UINT32_MAX, UINT32_MAX};
    if (set->joining > 0) {
        step.kind = joining_is_lost(map, set) ? CLUSTER_STEP_CANCEL
                    : is_copied(map, set)     ? CLUSTER_STEP_FINISH
                                              : CLUSTER_STEP_NONE;
        return step;
    }
    step.leaving = to_replace(map, set);
    /* it was made when there were fewer stores */
    bool grows = step.leaving == UINT32_MAX && set->count < set->wanted && is_complete(map, set);
    if (step.leaving != UINT32_MAX || grows) {
        step.joining = cluster_candidate(map, set, step.leaving);
        step.kind = step.joining == UINT32_MAX ? CLUSTER_STEP_NONE : CLUSTER_STEP_START;
    }
    return step;
}

/* -- changing a row ------------------------------------------------------------------------------ */

static void remove_at(struct cluster_set_row *row, unsigned at)
{
    unsigned all = row->count + row->joining;
    memmove(row->members[at], row->members[at + 1], (all - at - 1) * sizeof row->members[0]);
    if (at < row->count) {
        row->count--;
    } else {
        row->joining--;
    }
}

bool cluster_row_start(struct cluster_set_row *row, const uint8_t *joining, const uint8_t *leaving)
{
    if (row->joining > 0 || row->count >= FGW_PLACEMENT_MEMBERS_MAX) {
        return false;
    }
    memcpy(row->members[row->count], joining, FGW_STORAGE_ID_SIZE);
    row->joining = 1;
    row->has_leaving = leaving != NULL;
    if (leaving != NULL) {
        memcpy(row->leaving, leaving, FGW_STORAGE_ID_SIZE);
    }
    return true;
}

void cluster_row_cancel(struct cluster_set_row *row)
{
    row->joining = 0;
    row->has_leaving = false;
}

void cluster_row_finish(struct cluster_set_row *row)
{
    for (unsigned i = 0; row->has_leaving && i < row->count; i++) {
        if (memcmp(row->members[i], row->leaving, FGW_STORAGE_ID_SIZE) == 0) {
            remove_at(row, i);
            break;
        }
    }
    row->count += row->joining;
    row->joining = 0;
    row->has_leaving = false;
}

static bool change_row(const struct cluster_map *map, const struct cluster_step *step,
                       struct cluster_set_row *row)
{
    switch (step->kind) {
    case CLUSTER_STEP_START:
        return cluster_row_start(row, map->stores[step->joining].id,
                                 step->leaving == UINT32_MAX ? NULL
                                                             : map->stores[step->leaving].id);
    case CLUSTER_STEP_CANCEL:
        cluster_row_cancel(row);
        return true;
    case CLUSTER_STEP_FINISH:
        cluster_row_finish(row);
        return true;
    default:
        return false;
    }
}

static void log_step(const struct cluster_map *map, const struct cluster_set *set,
                     const struct cluster_step *step)
{
    static const char *const DOING[] = {"", "a copy is made anew", "the store that joined is gone",
                                        "complete again"};
    char leaving[2 * FGW_STORAGE_ID_SIZE + 1] = "-";
    char joining[2 * FGW_STORAGE_ID_SIZE + 1] = "-";
    uint32_t leaves = step->kind == CLUSTER_STEP_START ? step->leaving : set->leaving;
    uint32_t joins = step->kind == CLUSTER_STEP_START ? step->joining : set->stores[set->count];
    if (leaves != UINT32_MAX) {
        fgw_hex_encode(fgw_bytes(map->stores[leaves].id, FGW_STORAGE_ID_SIZE), leaving);
    }
    if (joins != UINT32_MAX) {
        fgw_hex_encode(fgw_bytes(map->stores[joins].id, FGW_STORAGE_ID_SIZE), joining);
    }
    fgw_log_info("cluster", "set %llu: %s: leaving=%s joining=%s epoch=%llu",
                 (unsigned long long)set->id, DOING[step->kind], leaving, joining,
                 (unsigned long long)set->epoch + 1);
}

static enum fgw_err take_step(struct fgw_cluster *cluster, const struct cluster_map *map,
                              const struct cluster_set *set, const struct cluster_step *step,
                              bool *out_applied, struct fgw_error *error)
{
    struct cluster_set_row row;
    bool applied = false;
    enum fgw_err err = cluster_set_read(cluster, set->id, &row, error);
    if (err != FGW_OK) {
        return err;
    }
    if (row.epoch == set->epoch && change_row(map, step, &row)) {
        err = cluster_set_write(cluster, &row, &applied, error);
    }
    cluster_set_deinit(&row);
    if (err == FGW_OK && applied) {
        log_step(map, set, step);
        *out_applied = true;
    }
    return err;
}

/* Copies of stores that are gone are made anew only while the own view is trusted; those of stores
 * that drain whenever it works. */
static bool may_start(const struct fgw_cluster *cluster, const struct cluster_map *map,
                      const struct cluster_step *step)
{
    char why[CLUSTER_WHY_SIZE];
    bool *down = fgw_xcalloc(map->store_count + 1, sizeof *down);
    for (size_t i = 0; i < map->store_count; i++) {
        down[i] = map->stores[i].unreachable;
    }
    bool repair = step->kind == CLUSTER_STEP_START && step->leaving != UINT32_MAX &&
                  is_gone(&map->stores[step->leaving]);
    bool may = !repair || (cluster_is_trusted(cluster, why, sizeof why) &&
                           !cluster_too_many_down(map, down, why, sizeof why));
    fgw_xfree(down);
    return may;
}

void cluster_repair(struct fgw_cluster *cluster)
{
    struct cluster_map map;
    struct fgw_error error;
    bool changed = false;
    enum fgw_err err = FGW_OK;
    fgw_error_init(&error);
    cluster_map_copy(cluster, &map);
    for (size_t i = 0; i < map.set_count && err == FGW_OK && !cluster->stopping; i++) {
        struct cluster_set *set = &map.sets[i];
        struct cluster_step step = cluster_next_step(&map, set);
        uint32_t repairer = repairer_of(&map, set);
        if (step.kind == CLUSTER_STEP_NONE || repairer == UINT32_MAX ||
            memcmp(map.stores[repairer].id, cluster->store_id, FGW_STORAGE_ID_SIZE) != 0 ||
            !may_start(cluster, &map, &step)) {
            continue;
        }
        bool applied = false;
        err = take_step(cluster, &map, set, &step, &applied, &error);
        changed = changed || applied;
        if (applied && step.kind == CLUSTER_STEP_START) {
            /* the next candidates are chosen with this one counted */
            set->stores[set->count] = step.joining;
            set->joining = 1;
        }
    }
    if (changed) {
        enum fgw_err bumped = cluster_map_bump(cluster, &error);
        err = err == FGW_OK ? bumped : err;
    }
    if (err != FGW_OK) {
        fgw_log_warn("cluster", "repair waits: %s", fgw_error_message(&error));
    }
    cluster_map_deinit(&map);
}
