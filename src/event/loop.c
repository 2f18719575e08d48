/* loop.c: see loop.h. The inbox is a lock-free stack of tasks, newest first; the loop takes all of
 * it at once and turns it round, so tasks of one thread keep their order. */
#include "event/loop.h"

#include "base/bytes.h"
#include "event/loop_internal.h"

static _Thread_local struct fgw_loop *current_loop;

struct fgw_loop *fgw_loop_current(void)
{
    return current_loop;
}

static void run_inbox(struct fgw_loop *loop)
{
    struct fgw_task *newest = atomic_exchange(&loop->inbox, NULL);
    struct fgw_task *oldest = NULL;
    while (newest != NULL) {
        struct fgw_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct fgw_task *next = oldest->next;
        oldest->run(oldest);
        oldest = next;
    }
}

static void on_wakeup(uv_async_t *handle)
{
    struct fgw_loop *loop = handle->data;
    run_inbox(loop);
    if (atomic_load(&loop->stopping)) {
        uv_stop(&loop->uv);
    }
}

static void on_busy(uv_idle_t *handle)
{
    (void)handle; /* its being active is all that matters */
}

static void on_after(uv_check_t *handle)
{
    struct fgw_loop *loop = handle->data;
    fgw_loop_run_ready(loop);
    if (loop->busy_on && fgw_list_empty(&loop->ready)) {
        loop->busy_on = false;
        (void)uv_idle_stop(&loop->busy);
    }
}

void fgw_loop_mark_busy(struct fgw_loop *loop)
{
    if (!loop->busy_on) {
        loop->busy_on = true;
        (void)uv_idle_start(&loop->busy, on_busy);
    }
}

struct fgw_loop *fgw_loop_new(void)
{
    struct fgw_loop *loop = fgw_xcalloc(1, sizeof *loop);
    fgw_list_init(&loop->ready);
    fgw_list_init(&loop->idle_stacks);
    FGW_CHECK(uv_loop_init(&loop->uv) == 0);
    FGW_CHECK(uv_async_init(&loop->uv, &loop->wakeup, on_wakeup) == 0);
    FGW_CHECK(uv_idle_init(&loop->uv, &loop->busy) == 0);
    FGW_CHECK(uv_check_init(&loop->uv, &loop->after) == 0);
    loop->wakeup.data = loop;
    loop->busy.data = loop;
    loop->after.data = loop;
    (void)uv_check_start(&loop->after, on_after);
    return loop;
}

void fgw_loop_free(struct fgw_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    fgw_fiber_free_idle(loop);
    uv_close((uv_handle_t *)&loop->wakeup, NULL);
    uv_close((uv_handle_t *)&loop->busy, NULL);
    uv_close((uv_handle_t *)&loop->after, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    FGW_CHECK(uv_loop_close(&loop->uv) == 0);
    fgw_xfree(loop);
}

void fgw_loop_run(struct fgw_loop *loop)
{
    struct fgw_loop *outer = current_loop;
    current_loop = loop;
    run_inbox(loop);
    while (!atomic_load(&loop->stopping)) {
        (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    }
    run_inbox(loop);
    fgw_loop_run_ready(loop);
    (void)uv_run(&loop->uv, UV_RUN_NOWAIT); /* close callbacks of freed handles */
    atomic_store(&loop->stopping, false);
    current_loop = outer;
}

void fgw_loop_stop(struct fgw_loop *loop)
{
    atomic_store(&loop->stopping, true);
    (void)uv_async_send(&loop->wakeup);
}

uint64_t fgw_loop_now_ms(const struct fgw_loop *loop)
{
    return uv_now(&loop->uv);
}

void fgw_loop_post_chain(struct fgw_loop *loop, struct fgw_task *first, struct fgw_task *last)
{
    /* the inbox is newest first: turn the chain round */
    struct fgw_task *newest = NULL;
    struct fgw_task *end = last->next;
    last->next = NULL;
    struct fgw_task *oldest = first;
    for (struct fgw_task *task = first; task != end && task != NULL;) {
        struct fgw_task *next = task->next;
        task->next = newest;
        newest = task;
        task = next;
    }
    struct fgw_task *head = atomic_load(&loop->inbox);
    do {
        oldest->next = head;
    } while (!atomic_compare_exchange_weak(&loop->inbox, &head, newest));
    if (head == NULL) {
        (void)uv_async_send(&loop->wakeup);
    }
}

void fgw_loop_post(struct fgw_loop *loop, struct fgw_task *task)
{
    task->next = NULL;
    fgw_loop_post_chain(loop, task, task);
}

/* -- handles: heap-allocated, freed by libuv's close callback -------------------------------- */

static void free_handle(uv_handle_t *handle)
{
    fgw_xfree(handle->data);
}

struct fgw_poll {
    uv_poll_t uv;
    fgw_poll_fn *fn;
    void *arg;
    int events;
};

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct fgw_poll *poll = handle->data;
    int seen = (events & UV_READABLE ? FGW_POLL_READ : 0) |
               (events & UV_WRITABLE ? FGW_POLL_WRITE : 0);
    if (status < 0) {
        poll->events = 0; /* libuv stops a poll when it reports an error */
    }
    poll->fn(poll->arg, status < 0 ? FGW_POLL_READ | FGW_POLL_WRITE : seen);
}

struct fgw_poll *fgw_poll_new(struct fgw_loop *loop, int fd, fgw_poll_fn *fn, void *arg)
{
    struct fgw_poll *poll = fgw_xcalloc(1, sizeof *poll);
    if (uv_poll_init(&loop->uv, &poll->uv, fd) != 0) {
        fgw_xfree(poll);
        return NULL;
    }
    poll->uv.data = poll;
    poll->fn = fn;
    poll->arg = arg;
    return poll;
}

void fgw_poll_set(struct fgw_poll *poll, int events)
{
    if (events == poll->events) {
        return;
    }
    poll->events = events;
    if (events == 0) {
        (void)uv_poll_stop(&poll->uv);
        return;
    }
    int wanted = (events & FGW_POLL_READ ? UV_READABLE : 0) |
                 (events & FGW_POLL_WRITE ? UV_WRITABLE : 0);
    (void)uv_poll_start(&poll->uv, wanted, on_poll);
}

int fgw_poll_events(const struct fgw_poll *poll)
{
    return poll->events;
}

void fgw_poll_free(struct fgw_poll *poll)
{
    if (poll != NULL) {
        (void)uv_poll_stop(&poll->uv);
        uv_close((uv_handle_t *)&poll->uv, free_handle);
    }
}

struct fgw_timer {
    uv_timer_t uv;
    fgw_timer_fn *fn;
    void *arg;
};

static void on_timer(uv_timer_t *handle)
{
    struct fgw_timer *timer = handle->data;
    timer->fn(timer->arg);
}

struct fgw_timer *fgw_timer_new(struct fgw_loop *loop, fgw_timer_fn *fn, void *arg)
{
    struct fgw_timer *timer = fgw_xcalloc(1, sizeof *timer);
    FGW_CHECK(uv_timer_init(&loop->uv, &timer->uv) == 0);
    timer->uv.data = timer;
    timer->fn = fn;
    timer->arg = arg;
    return timer;
}

void fgw_timer_start(struct fgw_timer *timer, uint64_t delay_ms)
{
    uv_update_time(timer->uv.loop);
    (void)uv_timer_start(&timer->uv, on_timer, delay_ms, 0);
}

void fgw_timer_stop(struct fgw_timer *timer)
{
    (void)uv_timer_stop(&timer->uv);
}

void fgw_timer_free(struct fgw_timer *timer)
{
    if (timer != NULL) {
        (void)uv_timer_stop(&timer->uv);
        uv_close((uv_handle_t *)&timer->uv, free_handle);
    }
}

struct fgw_signal {
    uv_signal_t uv;
    fgw_signal_fn *fn;
    void *arg;
};

static void on_signal(uv_signal_t *handle, int signal_number)
{
    struct fgw_signal *signal = handle->data;
    signal->fn(signal->arg, signal_number);
}

struct fgw_signal *fgw_signal_new(struct fgw_loop *loop, int signal_number, fgw_signal_fn *fn,
                                  void *arg)
{
    struct fgw_signal *signal = fgw_xcalloc(1, sizeof *signal);
    FGW_CHECK(uv_signal_init(&loop->uv, &signal->uv) == 0);
    signal->uv.data = signal;
    signal->fn = fn;
    signal->arg = arg;
    FGW_CHECK(uv_signal_start(&signal->uv, on_signal, signal_number) == 0);
    return signal;
}

void fgw_signal_free(struct fgw_signal *signal)
{
    if (signal != NULL) {
        (void)uv_signal_stop(&signal->uv);
        uv_close((uv_handle_t *)&signal->uv, free_handle);
    }
}
