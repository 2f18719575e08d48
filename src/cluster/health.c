/* health.c: who is away (design/cluster.md section 6). A store is declared away when its counter has
 * not moved for FGW_NODE_DOWN_AFTER on our own boot clock, its block API does not answer us, and
 * others say the same with their beats; never while we may rather be cut off ourselves. The
 * declaration is a conditional write that names the epoch: a store that was taken meanwhile stays.
 * Fibers of worker 0. */
#include <stdio.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "cluster/cluster_internal.h"

/* -- judging: pure ------------------------------------------------------------------------------- */

static bool takes_part(const struct cluster_store *store)
{
    return store->state == CLUSTER_ACTIVE || store->state == CLUSTER_DRAINING;
}

static bool is_away(const struct cluster_store *store)
{
    return store->state == CLUSTER_AWAY || store->state == CLUSTER_DRAINING_AWAY;
}

static bool lives(const struct cluster_store *store, uint64_t now_ms)
{
    return takes_part(store) && now_ms - store->beat_changed_ms < CLUSTER_FRESH_MS;
}

/* How many different zones, hosts and stores there are among those marked. */
struct spread {
    unsigned zones, hosts, stores;
};

static struct spread spread_of(const struct cluster_map *map, const bool *marked)
{
    struct spread spread = {0};
    for (size_t i = 0; i < map->store_count; i++) {
        bool new_zone = true;
        bool new_host = true;
        for (size_t k = 0; k < i && marked[i]; k++) {
            bool same_zone = marked[k] && strcmp(map->stores[i].zone, map->stores[k].zone) == 0;
            bool same_host = marked[k] && strcmp(map->stores[i].host, map->stores[k].host) == 0;
            new_zone = new_zone && !same_zone;
            new_host = new_host && !same_host;
        }
        spread.stores += marked[i];
        spread.zones += marked[i] && new_zone;
        spread.hosts += marked[i] && new_host;
    }
    return spread;
}

bool cluster_witnessed(const struct cluster_map *map, size_t index, uint64_t now_ms)
{
    bool *others = fgw_xcalloc(map->store_count + 1, sizeof *others);
    bool *witnesses = fgw_xcalloc(map->store_count + 1, sizeof *witnesses);
    for (size_t i = 0; i < map->store_count; i++) {
        others[i] = i != index && lives(&map->stores[i], now_ms);
        witnesses[i] = others[i] && cluster_beat_misses(&map->stores[i], map->stores[index].id);
    }
    struct spread there = spread_of(map, others);
    struct spread said = spread_of(map, witnesses);
    fgw_xfree(others);
    fgw_xfree(witnesses);
    if (there.zones >= 2) {
        return said.zones >= 2;
    }
    return said.stores >= 2 && (there.hosts < 2 || said.hosts >= 2);
}

static bool in_a_set(const struct cluster_map *map, size_t index)
{
    for (size_t i = 0; i < map->set_count; i++) {
        for (unsigned k = 0; k < map->sets[i].count + map->sets[i].joining; k++) {
            if (map->sets[i].stores[k] == index) {
                return true;
            }
        }
    }
    return false;
}

/* Counts: it takes part, or is away and copies of it are still to be made. */
static bool matters(const struct cluster_map *map, size_t index)
{
    const struct cluster_store *store = &map->stores[index];
    return takes_part(store) || (is_away(store) && in_a_set(map, index));
}

bool cluster_too_many_down(const struct cluster_map *map, const bool *down, char *why, size_t size)
{
    bool *counted = fgw_xcalloc(map->store_count + 1, sizeof *counted);
    bool *up = fgw_xcalloc(map->store_count + 1, sizeof *up);
    unsigned gone = 0;
    unsigned zones_gone = 0;
    for (size_t i = 0; i < map->store_count; i++) {
        counted[i] = matters(map, i);
        up[i] = counted[i] && !down[i];
        gone += counted[i] && down[i];
    }
    struct spread all = spread_of(map, counted);
    for (size_t i = 0; i < map->store_count; i++) {
        unsigned members = 0;
        unsigned members_up = 0;
        bool first = counted[i];
        for (size_t k = 0; k < map->store_count; k++) {
            bool same = counted[k] && strcmp(map->stores[i].zone, map->stores[k].zone) == 0;
            first = first && !(same && k < i);
            members += same;
            members_up += same && up[k];
        }
        if (first && members_up == 0) {
            zones_gone++;
            gone -= all.zones >= 3 ? members - 1 : 0; /* a whole zone counts as one */
        }
    }
    unsigned limit = all.stores / 10 > 1 ? all.stores / 10 : 1;
    fgw_xfree(counted);
    fgw_xfree(up);
    if (gone > limit) {
        (void)snprintf(why, size, "%u of %u stores look down", gone, all.stores);
    } else if (all.zones >= 2 && zones_gone > 1) {
        (void)snprintf(why, size, "%u of %u zones look down", zones_gone, all.zones);
    } else {
        return false;
    }
    return true;
}

/* -- asking -------------------------------------------------------------------------------------- */

struct question {
    struct fgw_cluster *cluster;
    struct fgw_placement_member member;
    bool answers;
    struct fgw_wait *wait;
};

static void ask(void *arg)
{
    struct question *question = arg;
    struct fgw_blockapi_health health;
    struct fgw_error error;
    struct fgw_remote_target target = {.member = &question->member};
    fgw_error_init(&error);
    enum fgw_err err =
        fgw_remote_health(question->cluster->options.remotes, &target, &health, &error);
    /* whatever it answers, its process lives */
    question->answers = err != FGW_ERR_UNAVAILABLE && err != FGW_ERR_TIMEOUT;
    fgw_wait_signal(question->wait);
}

/* Asks the stores that are marked, side by side; unmarks those that answer. */
static void ask_all(struct fgw_cluster *cluster, const struct cluster_map *map, bool *marked)
{
    struct question *questions = fgw_xcalloc(map->store_count + 1, sizeof *questions);
    struct fgw_wait wait;
    fgw_wait_init(&wait, 0);
    for (size_t i = 0; i < map->store_count; i++) {
        if (marked[i]) {
            struct question *question = &questions[i];
            question->cluster = cluster;
            question->wait = &wait;
            cluster_member_of(&map->stores[i], &question->member);
            question->member.epoch = 0; /* whoever has the store may answer */
            fgw_wait_expect(&wait, 1);
            fgw_fiber_spawn(fgw_loop_current(), ask, question);
        }
    }
    fgw_wait_for(&wait);
    for (size_t i = 0; i < map->store_count; i++) {
        marked[i] = marked[i] && !questions[i].answers;
    }
    fgw_xfree(questions);
}

static bool is_own(const struct fgw_cluster *cluster, const struct cluster_store *store)
{
    return memcmp(store->id, cluster->store_id, FGW_STORAGE_ID_SIZE) == 0;
}

/* Those that fell silent are asked; what comes out goes into our beats. */
static void ask_silent(struct fgw_cluster *cluster, struct cluster_map *map)
{
    uint64_t now_ms = fgw_clock_boot_ms();
    bool *silent = fgw_xcalloc(map->store_count + 1, sizeof *silent);
    for (size_t i = 0; i < map->store_count; i++) {
        const struct cluster_store *store = &map->stores[i];
        silent[i] = (takes_part(store) || is_away(store)) && !is_own(cluster, store) &&
                    now_ms - store->beat_changed_ms >= CLUSTER_SILENT_MS;
    }
    ask_all(cluster, map, silent);
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    for (size_t i = 0; i < map->store_count; i++) {
        struct cluster_store *store = cluster_map_store(&cluster->guarded.map, map->stores[i].id);
        map->stores[i].unreachable = silent[i];
        if (store != NULL) {
            store->unreachable = silent[i];
        }
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    fgw_xfree(silent);
}

/* -- declaring ----------------------------------------------------------------------------------- */

static bool is_due(const struct fgw_cluster *cluster, const struct cluster_map *map, size_t index,
                   uint64_t now_ms)
{
    const struct cluster_store *store = &map->stores[index];
    return takes_part(store) && !is_own(cluster, store) && store->unreachable &&
           now_ms - store->beat_changed_ms >= cluster->options.down_after_ms &&
           cluster_witnessed(map, index, now_ms);
}

bool cluster_is_trusted(const struct fgw_cluster *cluster, char *why, size_t size)
{
    uint64_t now_ms = fgw_clock_boot_ms();
    if (now_ms - cluster->last_beat_ms > CLUSTER_FRESH_MS) {
        (void)snprintf(why, size, "our own heartbeats fail");
        return false;
    }
    if (cluster->good_since_ms == 0 || now_ms - cluster->good_since_ms < cluster->good_for_ms) {
        (void)snprintf(why, size, "the database has not been good for %llu s yet",
                       (unsigned long long)(cluster->good_for_ms / 1000));
        return false;
    }
    return true;
}

/* Is it us who is cut off? Everybody is asked, now. */
static bool brakes_hold(struct fgw_cluster *cluster, const struct cluster_map *map, char *why,
                        size_t size)
{
    if (!cluster_is_trusted(cluster, why, size)) {
        return true;
    }
    bool *down = fgw_xcalloc(map->store_count + 1, sizeof *down);
    for (size_t i = 0; i < map->store_count; i++) {
        down[i] = matters(map, i) && !is_own(cluster, &map->stores[i]);
    }
    ask_all(cluster, map, down);
    bool too_many = cluster_too_many_down(map, down, why, size);
    fgw_xfree(down);
    return too_many;
}

static void tell_brake(struct fgw_cluster *cluster, const char *why)
{
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    bool news = strcmp(cluster->brake, why) != 0;
    (void)snprintf(cluster->brake, sizeof cluster->brake, "%s", why);
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    if (news && why[0] != '\0') {
        fgw_log_warn("cluster", "a store looks down, but nobody is declared away: %s", why);
    }
}

static void declare(struct fgw_cluster *cluster, const struct cluster_store *store)
{
    bool applied = false;
    struct fgw_error error;
    char id[2 * FGW_STORAGE_ID_SIZE + 1] = {0};
    fgw_error_init(&error);
    fgw_hex_encode(fgw_bytes(store->id, sizeof store->id), id);
    enum fgw_err err = cluster_node_state(
        cluster, store, store->state == CLUSTER_DRAINING ? CLUSTER_DRAINING_AWAY : CLUSTER_AWAY,
        &applied, &error);
    if (err != FGW_OK) {
        fgw_log_warn("cluster", "store %s could not be declared away: %s", id,
                     fgw_error_message(&error));
    } else if (applied) {
        fgw_log_warn("cluster",
                     "store %s of node %s has not beaten for %llu s and does not answer: it is "
                     "away, its copies are made anew",
                     id, store->node_id,
                     (unsigned long long)(fgw_clock_boot_ms() - store->beat_changed_ms) / 1000);
    }
}

void cluster_watch(struct fgw_cluster *cluster)
{
    struct cluster_map map;
    char why[sizeof cluster->brake] = "";
    cluster_map_copy(cluster, &map);
    ask_silent(cluster, &map);
    uint64_t now_ms = fgw_clock_boot_ms();
    for (size_t i = 0; i < map.store_count; i++) {
        if (is_due(cluster, &map, i, now_ms)) {
            if (brakes_hold(cluster, &map, why, sizeof why)) {
                break;
            }
            declare(cluster, &map.stores[i]);
        }
    }
    tell_brake(cluster, why);
    cluster_map_deinit(&map);
}
