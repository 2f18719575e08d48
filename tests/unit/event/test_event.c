/* test_event.c: fibers, waits, pool, workers, posting from other threads. */
#include "cmocka_all.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/bytes.h"
#include "event/fiber.h"
#include "event/workers.h"

static void add_one(void *arg)
{
    (*(int *)arg)++;
}

static void pool_fiber(void *arg)
{
    struct fgw_pool *pool = fgw_pool_new("test", 2);
    for (int i = 0; i < 100; i++) {
        fgw_pool_run(pool, add_one, arg);
    }
    fgw_pool_free(pool);
}

static void pool_runs_and_comes_back(void **state)
{
    (void)state;
    int count = 0;
    fgw_fiber_run_alone(pool_fiber, &count);
    assert_int_equal(count, 100);
}

static void patient_child(void *arg)
{
    *(uint64_t *)arg = fgw_fiber_patience();
}

static void patience_fiber(void *arg)
{
    uint64_t child_ms = 0;
    (void)arg;
    assert_true(fgw_fiber_patience() == UINT64_MAX);
    fgw_fiber_waited(5);
    assert_true(fgw_fiber_patience() == UINT64_MAX);
    fgw_fiber_set_patience(100);
    fgw_fiber_waited(30);
    assert_int_equal(fgw_fiber_patience(), 70);
    fgw_fiber_spawn(fgw_loop_current(), patient_child, &child_ms);
    fgw_fiber_yield();
    assert_true(child_ms == UINT64_MAX);
    fgw_fiber_waited(71);
    assert_int_equal(fgw_fiber_patience(), 0);
}

static void patience_is_used_up(void **state)
{
    (void)state;
    fgw_fiber_run_alone(patience_fiber, NULL);
    assert_true(fgw_fiber_patience() == UINT64_MAX);
}

struct race {
    struct fgw_gate gate;
    struct fgw_wait all;
    int inside;
    int most;
};

static void gate_fiber(void *arg)
{
    struct race *race = arg;
    fgw_gate_enter(&race->gate, 1);
    race->inside++;
    race->most = race->inside > race->most ? race->inside : race->most;
    fgw_fiber_sleep_ms(1);
    fgw_fiber_yield();
    race->inside--;
    fgw_gate_leave(&race->gate, 1);
    fgw_wait_signal(&race->all);
}

static void gate_main(void *arg)
{
    struct race *race = arg;
    fgw_gate_init(&race->gate, 3);
    fgw_wait_init(&race->all, 20);
    for (int i = 0; i < 20; i++) {
        fgw_fiber_spawn(fgw_loop_current(), gate_fiber, race);
    }
    fgw_wait_for(&race->all);
}

static void gate_bounds_fibers(void **state)
{
    (void)state;
    struct race race = {0};
    fgw_fiber_run_alone(gate_main, &race);
    assert_int_equal(race.most, 3);
    assert_int_equal(race.inside, 0);
}

static void deadline_main(void *arg)
{
    struct fgw_wait wait;
    (void)arg;
    fgw_wait_init(&wait, 1);
    uint64_t start = fgw_loop_now_ms(fgw_loop_current());
    assert_int_equal(fgw_wait_until(&wait, start + 20), FGW_ERR_TIMEOUT);
    assert_true(fgw_loop_now_ms(fgw_loop_current()) >= start + 20);
    fgw_wait_signal(&wait);
    assert_int_equal(fgw_wait_until(&wait, start), FGW_OK);
}

static void wait_has_a_deadline(void **state)
{
    (void)state;
    fgw_fiber_run_alone(deadline_main, NULL);
}

enum { POSTS = 10000 };

struct poster {
    struct fgw_loop *loop;
    struct fgw_task tasks[POSTS];
    struct counter {
        int seen;
        int expected_next;
    } counter;
};

static struct poster poster;

static void on_post(struct fgw_task *task)
{
    assert_int_equal(task - poster.tasks, poster.counter.expected_next);
    poster.counter.expected_next++;
    if (poster.counter.expected_next == POSTS) {
        fgw_loop_stop(poster.loop);
    }
}

static void *post_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < POSTS; i++) {
        poster.tasks[i].run = on_post;
        fgw_loop_post(poster.loop, &poster.tasks[i]);
    }
    return NULL;
}

static void posts_arrive_in_order(void **state)
{
    (void)state;
    pthread_t thread;
    poster.loop = fgw_loop_new();
    assert_int_equal(pthread_create(&thread, NULL, post_all, NULL), 0);
    fgw_loop_run(poster.loop);
    (void)pthread_join(thread, NULL);
    fgw_loop_free(poster.loop);
    assert_int_equal(poster.counter.expected_next, POSTS);
}

static void count_worker(void *arg, unsigned index)
{
    assert_int_equal(index, fgw_worker_index());
    fgw_fiber_sleep_ms(1);
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void workers_run_on_each(void **state)
{
    (void)state;
    _Atomic int count = 0;
    struct fgw_workers *workers = fgw_workers_start(3, count_worker, &count);
    fgw_workers_run(workers, count_worker, &count);
    fgw_workers_stop(workers);
    assert_int_equal(atomic_load(&count), 6);
}

static void on_pipe(void *arg, int events)
{
    assert_true((events & FGW_POLL_READ) != 0);
    fgw_wait_signal(arg);
}

static void poll_main(void *arg)
{
    (void)arg;
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    struct fgw_wait wait;
    fgw_wait_init(&wait, 1);
    struct fgw_poll *poll = fgw_poll_new(fgw_loop_current(), pipe_fds[0], on_pipe, &wait);
    fgw_poll_set(poll, FGW_POLL_READ);
    assert_int_equal(write(pipe_fds[1], "x", 1), 1);
    fgw_wait_for(&wait);
    fgw_poll_free(poll);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
}

static void polls_report_readiness(void **state)
{
    (void)state;
    fgw_fiber_run_alone(poll_main, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patience_is_used_up),    cmocka_unit_test(pool_runs_and_comes_back),
        cmocka_unit_test(gate_bounds_fibers),     cmocka_unit_test(wait_has_a_deadline),
        cmocka_unit_test(posts_arrive_in_order),  cmocka_unit_test(workers_run_on_each),
        cmocka_unit_test(polls_report_readiness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
