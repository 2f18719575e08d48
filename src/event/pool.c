/* pool.c: threads for what blocks (see fiber.h): one queue, a mutex and a condition. */
#include <pthread.h>
#include <stdio.h>

#include "base/bytes.h"
#include "event/fiber.h"

struct job {
    struct fgw_list node;
    void (*fn)(void *arg);
    void *arg;
    struct fgw_wait wait;
};

struct fgw_pool {
    unsigned thread_count;
    pthread_t *threads;
    char name[12];
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t wakeup;
        struct fgw_list jobs;
        unsigned backlog;
        unsigned started;
        bool stopping;
    } lock;
};

static struct job *next_job(struct fgw_pool *pool)
{
    struct fgw_list *node;
    while ((node = fgw_list_pop_front(&pool->lock.jobs)) == NULL && !pool->lock.stopping) {
        (void)pthread_cond_wait(&pool->lock.wakeup, &pool->lock.mutex);
    }
    if (node == NULL) {
        return NULL;
    }
    pool->lock.backlog--;
    return FGW_CONTAINER_OF(node, struct job, node);
}

static void *thread_main(void *arg)
{
    struct fgw_pool *pool = arg;
    char name[24];
    (void)pthread_mutex_lock(&pool->lock.mutex);
    (void)snprintf(name, sizeof name, "%s-%u", pool->name, pool->lock.started++ % 1000);
    (void)pthread_setname_np(pthread_self(), name);
    struct job *job;
    while ((job = next_job(pool)) != NULL) {
        (void)pthread_mutex_unlock(&pool->lock.mutex);
        job->fn(job->arg);
        fgw_wait_signal_remote(&job->wait);
        (void)pthread_mutex_lock(&pool->lock.mutex);
    }
    (void)pthread_mutex_unlock(&pool->lock.mutex);
    return NULL;
}

struct fgw_pool *fgw_pool_new(const char *name, unsigned threads)
{
    struct fgw_pool *pool = fgw_xcalloc(1, sizeof *pool);
    (void)snprintf(pool->name, sizeof pool->name, "%s", name);
    pool->thread_count = threads;
    pool->threads = fgw_xcalloc(threads, sizeof *pool->threads);
    (void)pthread_mutex_init(&pool->lock.mutex, NULL);
    (void)pthread_cond_init(&pool->lock.wakeup, NULL);
    fgw_list_init(&pool->lock.jobs);
    for (unsigned i = 0; i < threads; i++) {
        FGW_CHECK(pthread_create(&pool->threads[i], NULL, thread_main, pool) == 0);
    }
    return pool;
}

void fgw_pool_free(struct fgw_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&pool->lock.mutex);
    pool->lock.stopping = true;
    (void)pthread_cond_broadcast(&pool->lock.wakeup);
    (void)pthread_mutex_unlock(&pool->lock.mutex);
    for (unsigned i = 0; i < pool->thread_count; i++) {
        (void)pthread_join(pool->threads[i], NULL);
    }
    (void)pthread_cond_destroy(&pool->lock.wakeup);
    (void)pthread_mutex_destroy(&pool->lock.mutex);
    fgw_xfree(pool->threads);
    fgw_xfree(pool);
}

void fgw_pool_run(struct fgw_pool *pool, void (*fn)(void *arg), void *arg)
{
    struct job job = {.fn = fn, .arg = arg};
    fgw_wait_init(&job.wait, 1);
    (void)pthread_mutex_lock(&pool->lock.mutex);
    fgw_list_push_back(&pool->lock.jobs, &job.node);
    pool->lock.backlog++;
    (void)pthread_mutex_unlock(&pool->lock.mutex);
    (void)pthread_cond_signal(&pool->lock.wakeup);
    fgw_wait_for(&job.wait);
}

unsigned fgw_pool_backlog(struct fgw_pool *pool)
{
    (void)pthread_mutex_lock(&pool->lock.mutex);
    unsigned backlog = pool->lock.backlog;
    (void)pthread_mutex_unlock(&pool->lock.mutex);
    return backlog;
}
