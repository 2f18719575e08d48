/* walk.c: a member of a set that somebody joins copies what it holds of that set to whoever joins;
 * one walk over all holds serves all such sets. For each hold the metadata says, linearizably,
 * whether a row names it and on which sets: lists kept by nodes only find work. A hold that no row
 * names yet is not copied: its edge finds out after the commit that the epoch moved, or the hold
 * stays pending and is looked after (design/cluster.md section 3).
 *
 * A walk that was interrupted starts over: what is there already costs one request. Nothing is sent
 * within CLUSTER_SETTLE_MS of learning that a store joins; a store that leaves a set gives up holds
 * only within CLUSTER_DROP_MS of reading that it is no member (drop.c), so that the two cannot
 * cross. Fibers of worker 0. */
#include "base/clock.h"
#include "base/log.h"
#include "cluster/cluster_internal.h"

enum { IDLE_MS = 500, BATCH = 64, LANES = 4, RETRY_MS = 2000, TRIES = 3, AFTER_FAILURE_MS = 10000 };

/* One set under work. */
struct job {
    uint64_t set;
    uint64_t epoch;
    unsigned count;
    struct fgw_placement_member targets[FGW_PLACEMENT_MEMBERS_MAX];
    bool failed;
};

struct pass {
    struct fgw_cluster *cluster;
    struct job *jobs;
    size_t job_count;
    uint64_t *left; /* sets this store has left */
    size_t left_count;
    bool left_failed;
    /* of the batch under work */
    const struct fgw_storage_hold_seen *holds;
    size_t hold_count;
    size_t next;
    struct fgw_wait wait;
};

/* -- what there is to do ------------------------------------------------------------------------- */

static bool is_done(const struct fgw_cluster *cluster, uint64_t set, uint64_t epoch)
{
    for (size_t i = 0; i < cluster->walk.done_count; i++) {
        if (cluster->walk.done[i].set == set && cluster->walk.done[i].epoch == epoch) {
            return true;
        }
    }
    return false;
}

static bool is_member(const struct fgw_cluster *cluster, const struct cluster_map *map,
                      const struct cluster_set *set)
{
    for (unsigned i = 0; i < set->count; i++) {
        if (set->stores[i] != UINT32_MAX &&
            memcmp(map->stores[set->stores[i]].id, cluster->store_id, FGW_STORAGE_ID_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

static void take_job(const struct cluster_map *map, const struct cluster_set *set, struct job *job)
{
    *job = (struct job){.set = set->id, .epoch = set->epoch};
    for (unsigned i = set->count; i < set->count + set->joining; i++) {
        if (set->stores[i] != UINT32_MAX) {
            cluster_member_of(&map->stores[set->stores[i]], &job->targets[job->count++]);
        }
    }
}

static void find_jobs(struct fgw_cluster *cluster, struct pass *pass)
{
    struct cluster_map map;
    cluster_map_copy(cluster, &map);
    *pass = (struct pass){.cluster = cluster};
    for (size_t i = 0; i < map.set_count; i++) {
        const struct cluster_set *set = &map.sets[i];
        if (set->joining > 0 && is_member(cluster, &map, set) &&
            !is_done(cluster, set->id, set->epoch)) {
            pass->jobs = fgw_xrealloc(pass->jobs, (pass->job_count + 1) * sizeof *pass->jobs);
            take_job(&map, set, &pass->jobs[pass->job_count++]);
        }
    }
    cluster_map_deinit(&map);
    pass->left_count = fgw_cluster_distrusts(cluster) ? 0 : cluster_seen_left(cluster, &pass->left);
}

static void free_jobs(struct pass *pass)
{
    fgw_xfree(pass->jobs);
    fgw_xfree(pass->left);
}

/* What is done is told as long as the set waits for it. */
static void forget_done(struct fgw_cluster *cluster)
{
    struct cluster_walk *walk = &cluster->walk;
    size_t kept = 0;
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    for (size_t i = 0; i < walk->done_count; i++) {
        const struct cluster_set *set = cluster_map_set(&cluster->guarded.map, walk->done[i].set);
        if (set != NULL && set->epoch <= walk->done[i].epoch) {
            walk->done[kept++] = walk->done[i];
        }
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    walk->done_count = kept;
}

/* Another epoch: somebody decided anew, this work is void. */
static bool is_current(struct fgw_cluster *cluster, const struct job *job)
{
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    const struct cluster_set *set = cluster_map_set(&cluster->guarded.map, job->set);
    bool current = set != NULL && set->epoch == job->epoch;
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    return current && !cluster->stopping;
}

/* -- one hold ------------------------------------------------------------------------------------ */

static void pay(struct fgw_cluster *cluster, uint64_t bytes)
{
    uint64_t rate = cluster->options.repair_bytes_per_s;
    uint64_t now_ms = fgw_clock_boot_ms();
    struct cluster_walk *walk = &cluster->walk;
    if (rate == 0 || bytes == 0) {
        return;
    }
    walk->pace_ms = (walk->pace_ms > now_ms ? walk->pace_ms : now_ms) + bytes * 1000 / rate;
    uint64_t until_ms = walk->pace_ms;
    while ((now_ms = fgw_clock_boot_ms()) < until_ms && !cluster->stopping) {
        fgw_fiber_sleep_ms(until_ms - now_ms < 100 ? until_ms - now_ms : 100);
    }
}

static void copy_to(struct pass *pass, struct job *job, const struct fgw_storage_hold_seen *hold,
                    const struct fgw_placement_member *member)
{
    struct fgw_cluster *cluster = pass->cluster;
    struct fgw_remote_target target = {.member = member, .set = job->set, .set_epoch = job->epoch};
    struct fgw_error error;
    enum fgw_err err = FGW_ERR_CANCELLED;
    uint64_t bytes = 0;
    for (unsigned attempt = 0; attempt < TRIES && is_current(cluster, job); attempt++) {
        fgw_error_init(&error);
        err = cluster_copy(cluster, hold, &target, &bytes, &error);
        if (err == FGW_OK) {
            cluster->walk.copied++;
            cluster->walk.copied_bytes += bytes;
            pay(cluster, bytes);
            return;
        }
        fgw_fiber_sleep_ms(RETRY_MS);
    }
    if (!job->failed && is_current(cluster, job)) {
        fgw_log_warn("cluster", "set %llu: a blob could not be copied: %s",
                     (unsigned long long)job->set, fgw_error_message(&error));
    }
    job->failed = true;
    cluster->walk.failed++;
}

/* Until the metadata answers: with the database away the walk stands still. */
static enum fgw_err ask(struct fgw_cluster *cluster, const struct fgw_storage_hold_seen *hold,
                        struct fgw_cluster_named *out_named)
{
    enum fgw_err err = FGW_ERR_CANCELLED;
    while (!cluster->stopping) {
        struct fgw_error error;
        fgw_error_init(&error);
        err = cluster->options.named(cluster->options.context, &hold->owner, &hold->root, out_named,
                                     &error);
        if (err == FGW_OK || !fgw_err_retryable(err)) {
            break;
        }
        fgw_fiber_sleep_ms(RETRY_MS);
    }
    return err;
}

static bool names(const struct fgw_cluster_named *named, uint64_t set)
{
    for (unsigned i = 0; i < named->count; i++) {
        if (named->sets[i] == set) {
            return true;
        }
    }
    return named->any_set;
}

/* Is this store in any of the sets, or may be soon? Unknown sets count. */
static bool is_here(struct fgw_cluster *cluster, const struct fgw_cluster_named *named)
{
    bool here = named->any_set;
    struct fgw_placement_set *set = fgw_xmalloc(sizeof *set);
    for (unsigned i = 0; i < named->count && !here; i++) {
        here = cluster_resolve(cluster, named->sets[i], set) != FGW_OK ||
               fgw_placement_set_is_here(set);
    }
    fgw_xfree(set);
    return here;
}

/* Of a set this store has left: the members have it, then it goes. */
static void give_up(struct pass *pass, const struct fgw_storage_hold_seen *hold,
                    const struct fgw_cluster_named *named)
{
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = cluster_drop(pass->cluster, hold, named, &error);
    if (err == FGW_OK) {
        pass->cluster->walk.dropped++;
        return;
    }
    if (!pass->left_failed && err != FGW_ERR_CANCELLED) {
        fgw_log_warn("cluster", "a blob of a set this store has left is kept: %s",
                     fgw_error_message(&error));
    }
    pass->left_failed = true;
}

static void settle(struct pass *pass, const struct fgw_storage_hold_seen *hold)
{
    struct fgw_cluster_named named = {0};
    if ((hold->extent & FGW_EXTENT_TEMPORARY) != 0) {
        return;
    }
    enum fgw_err err = ask(pass->cluster, hold, &named);
    for (size_t i = 0; i < pass->job_count; i++) {
        struct job *job = &pass->jobs[i];
        if (err != FGW_OK) {
            job->failed = true;
        } else if (named.live && names(&named, job->set)) {
            for (unsigned k = 0; k < job->count; k++) {
                copy_to(pass, job, hold, &job->targets[k]);
            }
        }
    }
    if (err != FGW_OK) {
        pass->cluster->walk.failed++;
        pass->left_failed = true;
    } else if (pass->left_count > 0 && named.live && !is_here(pass->cluster, &named)) {
        give_up(pass, hold, &named);
    }
}

static void run_lane(void *arg)
{
    struct pass *pass = arg;
    while (pass->next < pass->hold_count && !pass->cluster->stopping) {
        const struct fgw_storage_hold_seen *hold = &pass->holds[pass->next++];
        settle(pass, hold);
        pass->cluster->walk.looked++;
    }
    fgw_wait_signal(&pass->wait);
}

/* -- all holds ----------------------------------------------------------------------------------- */

static bool any_current(struct pass *pass)
{
    if (pass->left_count > 0 && !pass->cluster->stopping) {
        return true;
    }
    for (size_t i = 0; i < pass->job_count; i++) {
        if (is_current(pass->cluster, &pass->jobs[i])) {
            return true;
        }
    }
    return false;
}

static void settle_batch(struct pass *pass, const struct fgw_storage_hold_seen *holds, size_t count)
{
    pass->holds = holds;
    pass->hold_count = count;
    pass->next = 0;
    fgw_wait_init(&pass->wait, LANES);
    for (unsigned i = 0; i < LANES; i++) {
        fgw_fiber_spawn(fgw_loop_current(), run_lane, pass);
    }
    fgw_wait_for(&pass->wait);
}

/* False: not all holds were met. */
static bool walk_all(struct pass *pass)
{
    struct fgw_buf cursor;
    struct fgw_arena arena;
    size_t count = 1;
    enum fgw_err err = FGW_OK;
    fgw_buf_init(&cursor, 0);
    while (err == FGW_OK && count > 0 && any_current(pass)) {
        struct fgw_storage_hold_seen *holds;
        fgw_arena_init(&arena, 0);
        err = fgw_storage_holds_next(pass->cluster->options.storage, &cursor, &arena, BATCH, &holds,
                                     &count);
        if (err == FGW_OK && count > 0) {
            settle_batch(pass, holds, count);
        }
        fgw_arena_deinit(&arena);
    }
    fgw_buf_deinit(&cursor);
    if (err != FGW_OK) {
        fgw_log_error("cluster", "the holds of this store cannot be read: %s", fgw_err_text(err));
    }
    return err == FGW_OK && count == 0 && !pass->cluster->stopping;
}

static void note_done(struct fgw_cluster *cluster, const struct job *job)
{
    struct cluster_walk *walk = &cluster->walk;
    walk->done = fgw_xrealloc(walk->done, (walk->done_count + 1) * sizeof *walk->done);
    walk->done[walk->done_count++] = (struct cluster_done){job->set, job->epoch};
}

static bool run_pass(struct pass *pass)
{
    bool clean = true;
    struct cluster_walk *walk = &pass->cluster->walk;
    uint64_t began_ms = fgw_clock_boot_ms();
    walk->looked = 0;
    walk->failed = 0;
    walk->running = true;
    bool all = walk_all(pass);
    walk->running = false;
    bool news = false;
    for (size_t i = 0; i < pass->job_count; i++) {
        if (all && !pass->jobs[i].failed) {
            news = true;
            note_done(pass->cluster, &pass->jobs[i]);
        }
        clean = clean && !pass->jobs[i].failed;
    }
    if (news) {
        cluster_beat(pass->cluster);
    }
    if (all && !pass->left_failed && pass->left_count > 0) {
        cluster_seen_forget(pass->cluster, pass->left, pass->left_count);
    }
    clean = clean && !pass->left_failed;
    if (all) {
        fgw_log_info("cluster",
                     "looked at %llu holds for %zu sets that somebody joins and %zu left, in %llu "
                     "ms, %llu not settled",
                     (unsigned long long)walk->looked, pass->job_count, pass->left_count,
                     (unsigned long long)(fgw_clock_boot_ms() - began_ms),
                     (unsigned long long)walk->failed);
    }
    return clean;
}

static void rest(struct fgw_cluster *cluster, uint64_t for_ms)
{
    uint64_t until_ms = fgw_clock_boot_ms() + for_ms;
    while (!cluster->stopping && fgw_clock_boot_ms() < until_ms) {
        fgw_fiber_sleep_ms(100);
    }
}

void cluster_walk_run(void *arg)
{
    struct fgw_cluster *cluster = arg;
    while (!cluster->stopping) {
        struct pass pass;
        forget_done(cluster);
        find_jobs(cluster, &pass);
        if (pass.job_count > 0 || pass.left_count > 0) {
            /* and in this time the other sets that lost the same store come along */
            rest(cluster, CLUSTER_SETTLE_MS);
            free_jobs(&pass);
            find_jobs(cluster, &pass);
            rest(cluster, CLUSTER_SETTLE_MS);
        }
        bool idle = pass.job_count == 0 && pass.left_count == 0;
        bool clean = idle || run_pass(&pass);
        free_jobs(&pass);
        rest(cluster, clean ? IDLE_MS : AFTER_FAILURE_MS);
    }
    fgw_wait_signal(&cluster->ended);
}
