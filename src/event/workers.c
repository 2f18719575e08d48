/* workers.c: see workers.h. */
#include "event/workers.h"

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "base/bytes.h"
#include "event/fiber.h"

struct worker {
    struct fgw_loop *loop;
    pthread_t thread;
    unsigned index;
};

struct fgw_workers {
    unsigned count;
    struct worker *all;
};

static _Thread_local unsigned my_index = UINT_MAX;

unsigned fgw_worker_index(void)
{
    return my_index;
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    char name[16];
    my_index = worker->index;
    (void)snprintf(name, sizeof name, "worker-%u", worker->index % 1000);
    (void)pthread_setname_np(pthread_self(), name);
    fgw_loop_run(worker->loop);
    return NULL;
}

struct errand {
    struct fgw_task task;
    struct fgw_loop *loop;
    fgw_worker_fn *fn;
    void *arg;
    unsigned index;
    sem_t *done;
};

static void errand_main(void *opaque)
{
    struct errand *errand = opaque;
    errand->fn(errand->arg, errand->index);
    (void)sem_post(errand->done);
}

static void errand_start(struct fgw_task *task)
{
    struct errand *errand = FGW_CONTAINER_OF(task, struct errand, task);
    fgw_fiber_spawn(errand->loop, errand_main, errand);
}

void fgw_workers_run(struct fgw_workers *workers, fgw_worker_fn *fn, void *arg)
{
    sem_t done;
    (void)sem_init(&done, 0, 0);
    struct errand *errands = fgw_xcalloc(workers->count, sizeof *errands);
    for (unsigned i = 0; i < workers->count; i++) {
        errands[i] = (struct errand){.task.run = errand_start, .loop = workers->all[i].loop,
                                     .fn = fn, .arg = arg, .index = i, .done = &done};
        fgw_loop_post(workers->all[i].loop, &errands[i].task);
    }
    for (unsigned i = 0; i < workers->count; i++) {
        while (sem_wait(&done) != 0) {
        }
    }
    (void)sem_destroy(&done);
    fgw_xfree(errands);
}

struct fgw_workers *fgw_workers_start(unsigned count, fgw_worker_fn *on_start, void *arg)
{
    struct fgw_workers *workers = fgw_xcalloc(1, sizeof *workers);
    workers->count = count;
    workers->all = fgw_xcalloc(count, sizeof *workers->all);
    for (unsigned i = 0; i < count; i++) {
        workers->all[i].loop = fgw_loop_new();
        workers->all[i].index = i;
        FGW_CHECK(pthread_create(&workers->all[i].thread, NULL, worker_main, &workers->all[i]) == 0);
    }
    if (on_start != NULL) {
        fgw_workers_run(workers, on_start, arg);
    }
    return workers;
}

unsigned fgw_workers_count(const struct fgw_workers *workers)
{
    return workers->count;
}

struct fgw_loop *fgw_workers_loop(const struct fgw_workers *workers, unsigned index)
{
    return workers->all[index].loop;
}

void fgw_workers_stop(struct fgw_workers *workers)
{
    if (workers == NULL) {
        return;
    }
    for (unsigned i = 0; i < workers->count; i++) {
        fgw_loop_stop(workers->all[i].loop);
        (void)pthread_join(workers->all[i].thread, NULL);
        fgw_loop_free(workers->all[i].loop);
    }
    fgw_xfree(workers->all);
    fgw_xfree(workers);
}
