/* care.c: see care.h. */
#include "storage/care.h"

#include <pthread.h>
#include <semaphore.h>

#include "base/log.h"
#include "storage/release.h"
#include "storage/storage_internal.h"

enum {
    HOUR_MS = 3600 * 1000,
    SYNC_MS = 1000,
    RELEASE_MS = 1000,
    FIGURES_MS = 5000,
    CHECKPOINT_MS = 1000,
    CHECKPOINT_RETRY_MS = 60 * 1000,
    RETRY_MS = 10 * 1000, /* after a failed pass */
    HINTS_MAX = 10000,
    HINTS_AT_ONCE = 32 /* asked about side by side; those that end, end in one commit */
};

/* A job: `run` does one pass and returns the delay until the next. */
struct job {
    struct fgw_care *care;
    uint64_t (*run)(struct fgw_care *care);
    struct fgw_task kick;
    _Atomic bool kick_posted;
    bool kicked; /* came while it was running */
    bool sleeping;
    struct fgw_wait wake;
};

struct hint {
    struct fgw_list node;
    struct fgw_storage_owner owner;
    uint64_t extent;
    struct fgw_cid root;
    uint8_t key[];
};

struct fgw_care {
    struct fgw_storage *storage;
    fgw_storage_live_fn *live;
    void *live_context;
    pthread_t thread;
    sem_t started;
    struct fgw_loop *loop; /* its own */
    _Atomic bool stopping;
    bool joinable;
    struct {
        pthread_mutex_t mutex;
        struct fgw_loop *loop; /* NULL: does not run, nothing may be posted */
    } life;
    struct fgw_wait finished;
    struct job jobs[FGW_CARE_JOBS];
    struct {
        pthread_mutex_t mutex;
        struct fgw_list list;
        size_t count;
    } hints;
    /* of the release job */
    uint64_t released_batch; /* applied batch after which nothing was left to free at once */
    uint64_t released_ms;    /* running time of that pass */
    uint64_t synced_batch;
};

/* -- jobs ---------------------------------------------------------------------------------------- */

static uint64_t applied_batch(const struct fgw_care *care)
{
    struct fgw_committer_stats stats;
    fgw_committer_stats(care->storage->committer, &stats);
    return stats.applied_batch;
}

struct sync_job {
    struct fgw_kv *kv;
    struct fgw_error error;
    enum fgw_err result;
};

static void run_sync(void *arg)
{
    struct sync_job *job = arg;
    job->result = fgw_kv_sync_wal(job->kv, &job->error);
}

static void say_not_synced(const struct sync_job *job)
{
    if (job->result != FGW_ERR_READ_ONLY) {
        fgw_log_error("storage", "syncing the index failed: %s", fgw_error_message(&job->error));
    }
}

/* An index that lags behind costs replay at the next start, nothing else. */
static uint64_t sync_index(struct fgw_care *care)
{
    struct sync_job job = {.kv = care->storage->kv};
    uint64_t batch = applied_batch(care);
    if (batch == care->synced_batch || care->storage->options.sync_off) {
        return SYNC_MS;
    }
    fgw_error_init(&job.error);
    atomic_store(&care->storage->unsynced_index_bytes, 0);
    fgw_pool_run(care->storage->pool, run_sync, &job);
    if (job.result != FGW_OK) {
        say_not_synced(&job);
        return RETRY_MS;
    }
    care->synced_batch = batch;
    return SYNC_MS;
}

static uint64_t release_dead(struct fgw_care *care)
{
    struct fgw_release_result result = {.more = true};
    uint64_t batch = applied_batch(care);
    uint64_t now_ms = fgw_storage_running_ms(care->storage);
    uint64_t delay_ms = care->storage->options.release_delay_ms;
    if (batch == care->released_batch && now_ms - care->released_ms < delay_ms) {
        return RELEASE_MS; /* nothing new, and what waited then may still have to wait */
    }
    while (result.more && !atomic_load(&care->stopping)) {
        enum fgw_err err = fgw_release_pass(care->storage, &result);
        if (err != FGW_OK) {
            return RETRY_MS;
        }
    }
    care->released_ms = now_ms;
    /* the passes' own batches change nothing that would need another one */
    care->released_batch = applied_batch(care);
    return RELEASE_MS;
}

static uint64_t count_figures(struct fgw_care *care)
{
    fgw_figures_refresh(care->storage);
    return FIGURES_MS;
}

static uint64_t write_checkpoint(struct fgw_care *care)
{
    enum fgw_err err = fgw_checkpoint_care(care->storage);
    return err == FGW_OK || err == FGW_ERR_CANCELLED ? CHECKPOINT_MS : CHECKPOINT_RETRY_MS;
}

static uint64_t sweep_holds(struct fgw_care *care)
{
    return fgw_sweep_care(care->storage, care->live, care->live_context);
}

static uint64_t make_backup(struct fgw_care *care)
{
    fgw_backup_care(care->storage);
    return HOUR_MS;
}

static uint64_t compact_groups(struct fgw_care *care)
{
    return fgw_compact_care(care->storage);
}

static uint64_t scrub_when_asked(struct fgw_care *care)
{
    return fgw_scrub_care(care->storage);
}

/* -- hints --------------------------------------------------------------------------------------- */

static struct hint *next_hint(struct fgw_care *care)
{
    (void)pthread_mutex_lock(&care->hints.mutex);
    struct fgw_list *node = fgw_list_pop_front(&care->hints.list);
    care->hints.count -= node != NULL ? 1 : 0;
    (void)pthread_mutex_unlock(&care->hints.mutex);
    return node == NULL ? NULL : FGW_CONTAINER_OF(node, struct hint, node);
}

static uint64_t ask_pending(struct fgw_care *care)
{
    return fgw_pending_care(care->storage, care->live, care->live_context);
}

/* Hints that are followed together. */
struct hint_round {
    struct fgw_care *care;
    struct fgw_wait asked;
};

struct question {
    struct hint_round *round;
    struct hint *hint;
    bool ends;
};

/* What fails is left to the sweeper. */
static void ask(void *arg)
{
    struct question *question = arg;
    struct fgw_care *care = question->round->care;
    const struct hint *hint = question->hint;
    enum fgw_storage_liveness live = FGW_STORAGE_HERE;
    enum fgw_err err = care->live(care->live_context, &hint->owner, &hint->root, &live);
    question->ends = err == FGW_OK && (live == FGW_STORAGE_ABSENT || live == FGW_STORAGE_ELSEWHERE);
    fgw_wait_signal(&question->round->asked);
}

static void end_holds(struct fgw_care *care, const struct question *questions, size_t count)
{
    struct fgw_storage_hold_seen ended[HINTS_AT_ONCE];
    size_t ended_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hint *hint = questions[i].hint;
        if (questions[i].ends) {
            ended[ended_count++] = (struct fgw_storage_hold_seen){
                .owner = hint->owner, .extent = hint->extent, .root = hint->root};
        }
    }
    (void)!fgw_release_holds(care->storage, ended, ended_count);
}

static uint64_t follow_hints(struct fgw_care *care)
{
    struct hint_round round = {.care = care};
    struct question questions[HINTS_AT_ONCE];
    size_t count;
    do {
        count = 0;
        while (count < HINTS_AT_ONCE && !atomic_load(&care->stopping) &&
               (questions[count].hint = next_hint(care)) != NULL) {
            questions[count++].round = &round;
        }
        fgw_wait_init(&round.asked, (unsigned)count);
        for (size_t i = 0; i < count; i++) {
            fgw_fiber_spawn(care->loop, ask, &questions[i]);
        }
        fgw_wait_for(&round.asked);
        end_holds(care, questions, count);
        for (size_t i = 0; i < count; i++) {
            fgw_xfree(questions[i].hint);
        }
    } while (count == HINTS_AT_ONCE);
    return HOUR_MS;
}

void fgw_care_hint(struct fgw_care *care, const struct fgw_storage_owner *owner, uint64_t extent,
                   const struct fgw_cid *root)
{
    struct hint *hint = fgw_xmalloc(sizeof *hint + owner->key.len);
    *hint = (struct hint){.owner = *owner, .extent = extent, .root = *root};
    if (owner->key.len > 0) {
        memcpy(hint->key, owner->key.ptr, owner->key.len);
    }
    hint->owner.key = fgw_bytes(hint->key, owner->key.len);
    (void)pthread_mutex_lock(&care->hints.mutex);
    bool full = care->hints.count >= HINTS_MAX;
    if (!full) {
        fgw_list_push_back(&care->hints.list, &hint->node);
        care->hints.count++;
    }
    (void)pthread_mutex_unlock(&care->hints.mutex);
    if (full) {
        fgw_xfree(hint);
    } else {
        fgw_care_kick(care, FGW_CARE_HINTS);
    }
}

/* -- running them -------------------------------------------------------------------------------- */

static void on_kick(struct fgw_task *task)
{
    struct job *job = FGW_CONTAINER_OF(task, struct job, kick);
    atomic_store(&job->kick_posted, false);
    if (job->sleeping && job->wake.missing > 0) {
        fgw_wait_signal(&job->wake);
    } else {
        job->kicked = true;
    }
}

void fgw_care_kick(struct fgw_care *care, enum fgw_care_job which)
{
    struct job *job = &care->jobs[which];
    (void)pthread_mutex_lock(&care->life.mutex);
    if (care->life.loop != NULL && !atomic_exchange(&job->kick_posted, true)) {
        fgw_loop_post(care->life.loop, &job->kick);
    }
    (void)pthread_mutex_unlock(&care->life.mutex);
}

static void set_loop(struct fgw_care *care, struct fgw_loop *loop)
{
    (void)pthread_mutex_lock(&care->life.mutex);
    care->life.loop = loop;
    (void)pthread_mutex_unlock(&care->life.mutex);
}

bool fgw_care_running(struct fgw_care *care)
{
    (void)pthread_mutex_lock(&care->life.mutex);
    bool running = care->life.loop != NULL;
    (void)pthread_mutex_unlock(&care->life.mutex);
    return running;
}

bool fgw_care_stopping(const struct fgw_care *care)
{
    return atomic_load(&care->stopping);
}

static void sleep_job(struct job *job, uint64_t delay_ms)
{
    if (job->kicked) {
        job->kicked = false;
        return;
    }
    fgw_wait_init(&job->wake, 1);
    job->sleeping = true;
    (void)!fgw_wait_until(&job->wake, fgw_loop_now_ms(job->care->loop) + delay_ms);
    job->sleeping = false;
}

static void job_main(void *arg)
{
    struct job *job = arg;
    while (!atomic_load(&job->care->stopping)) {
        uint64_t delay_ms = job->run(job->care);
        if (!atomic_load(&job->care->stopping)) {
            sleep_job(job, delay_ms);
        }
    }
    fgw_wait_signal(&job->care->finished);
}

static void care_main(void *arg)
{
    struct fgw_care *care = arg;
    care->loop = fgw_loop_current();
    fgw_wait_init(&care->finished, FGW_CARE_JOBS);
    set_loop(care, care->loop);
    (void)sem_post(&care->started);
    for (size_t i = 0; i < FGW_CARE_JOBS; i++) {
        fgw_fiber_spawn(care->loop, job_main, &care->jobs[i]);
    }
    fgw_wait_for(&care->finished);
    set_loop(care, NULL); /* what was posted before still runs */
}

static void *thread_main(void *arg)
{
    (void)pthread_setname_np(pthread_self(), "care");
    fgw_fiber_run_alone(care_main, arg);
    return NULL;
}

struct fgw_care *fgw_care_new(struct fgw_storage *storage)
{
    static uint64_t (*const RUN[FGW_CARE_JOBS])(struct fgw_care *) = {
        [FGW_CARE_SYNC] = sync_index,        [FGW_CARE_RELEASE] = release_dead,
        [FGW_CARE_HINTS] = follow_hints,     [FGW_CARE_FIGURES] = count_figures,
        [FGW_CARE_SWEEP] = sweep_holds,      [FGW_CARE_CHECKPOINT] = write_checkpoint,
        [FGW_CARE_COMPACT] = compact_groups, [FGW_CARE_PENDING] = ask_pending,
        [FGW_CARE_BACKUP] = make_backup,     [FGW_CARE_SCRUB] = scrub_when_asked,
    };
    struct fgw_care *care = fgw_xcalloc(1, sizeof *care);
    care->storage = storage;
    (void)sem_init(&care->started, 0, 0);
    (void)pthread_mutex_init(&care->life.mutex, NULL);
    (void)pthread_mutex_init(&care->hints.mutex, NULL);
    fgw_list_init(&care->hints.list);
    for (size_t i = 0; i < FGW_CARE_JOBS; i++) {
        care->jobs[i].care = care;
        care->jobs[i].run = RUN[i];
        care->jobs[i].kick.run = on_kick;
    }
    return care;
}

void fgw_care_start(struct fgw_care *care, fgw_storage_live_fn *live, void *context)
{
    care->live = live;
    care->live_context = context;
    atomic_store(&care->stopping, false);
    FGW_CHECK(pthread_create(&care->thread, NULL, thread_main, care) == 0);
    care->joinable = true;
    while (sem_wait(&care->started) != 0) {
    }
}

void fgw_care_stop(struct fgw_care *care)
{
    if (!care->joinable) {
        return;
    }
    atomic_store(&care->stopping, true);
    for (size_t i = 0; i < FGW_CARE_JOBS; i++) {
        fgw_care_kick(care, (enum fgw_care_job)i);
    }
    (void)pthread_join(care->thread, NULL);
    care->joinable = false;
}

void fgw_care_free(struct fgw_care *care)
{
    struct hint *hint;
    if (care == NULL) {
        return;
    }
    FGW_CHECK(!care->joinable);
    while ((hint = next_hint(care)) != NULL) {
        fgw_xfree(hint);
    }
    (void)pthread_mutex_destroy(&care->hints.mutex);
    (void)pthread_mutex_destroy(&care->life.mutex);
    (void)sem_destroy(&care->started);
    fgw_xfree(care);
}
