/* fiber.c: see fiber.h. Fibers of a loop are resumed only from the loop's own stack, so a switch
 * always goes loop -> fiber -> loop; the sanitizers are told of each one. */
#include "event/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "event/loop_internal.h"

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_TSAN 1
#endif

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* Boost.Context, boost/context/detail/fcontext.hpp: extern "C" functions of its library. */
typedef void *fcontext_t;
struct transfer {
    fcontext_t from;
    void *data;
};
extern struct transfer jump_fcontext(fcontext_t to, void *data);
extern fcontext_t make_fcontext(void *stack_top, size_t size, void (*fn)(struct transfer));

#if defined(FIBER_ASAN) || defined(FIBER_TSAN)
enum { STACK_SIZE = 512 * 1024 };
#else
enum { STACK_SIZE = 128 * 1024 };
#endif
enum { GUARD_SIZE = 4096, IDLE_STACKS_MAX = 128 };

struct fgw_fiber {
    struct fgw_list node; /* in ready, idle_stacks, or linked to itself */
    struct fgw_loop *loop;
    fcontext_t context;
    uint8_t *stack; /* mapping: guard page, then STACK_SIZE */
    fgw_fiber_fn *fn;
    void *arg;
    uint64_t patience_ms;
    bool finished;
#ifdef FIBER_ASAN
    void *fake_stack;
#endif
#ifdef FIBER_TSAN
    void *tsan_fiber;
#endif
};

static _Thread_local struct fgw_fiber *running;
#ifdef FIBER_ASAN
static _Thread_local void *loop_fake_stack;
static _Thread_local const void *loop_stack_bottom;
static _Thread_local size_t loop_stack_size;
#endif
#ifdef FIBER_TSAN
static _Thread_local void *loop_tsan_fiber;
#endif

struct fgw_fiber *fgw_fiber_self(void)
{
    return running;
}

void fgw_fiber_set_patience(uint64_t left_ms)
{
    FGW_CHECK(running != NULL);
    running->patience_ms = left_ms;
}

uint64_t fgw_fiber_patience(void)
{
    return running == NULL ? UINT64_MAX : running->patience_ms;
}

void fgw_fiber_waited(uint64_t waited_ms)
{
    if (running != NULL && running->patience_ms != UINT64_MAX) {
        running->patience_ms -= waited_ms < running->patience_ms ? waited_ms : running->patience_ms;
    }
}

/* Back to the loop; returns when the fiber is resumed. */
static void leave(struct fgw_fiber *fiber)
{
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(fiber->finished ? NULL : &fiber->fake_stack, loop_stack_bottom,
                                   loop_stack_size);
#endif
#ifdef FIBER_TSAN
    __tsan_switch_to_fiber(loop_tsan_fiber, 0);
#endif
    struct transfer back = jump_fcontext(fiber->loop->main_context, NULL);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &loop_stack_bottom, &loop_stack_size);
#endif
    fiber->loop->main_context = back.from;
}

static void enter_first(struct transfer from)
{
    struct fgw_fiber *fiber = from.data;
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(NULL, &loop_stack_bottom, &loop_stack_size);
#endif
    fiber->loop->main_context = from.from;
    fiber->fn(fiber->arg);
    fiber->finished = true;
    leave(fiber);
    FGW_CHECK(!fiber->finished); /* it was resumed all the same */
}

static struct fgw_fiber *take_fiber(struct fgw_loop *loop)
{
    struct fgw_list *node = fgw_list_pop_front(&loop->idle_stacks);
    if (node != NULL) {
        loop->idle_stack_count--;
        return FGW_CONTAINER_OF(node, struct fgw_fiber, node);
    }
    struct fgw_fiber *fiber = fgw_xcalloc(1, sizeof *fiber);
    fiber->stack = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FGW_CHECK(fiber->stack != MAP_FAILED && mprotect(fiber->stack, GUARD_SIZE, PROT_NONE) == 0);
#ifdef FIBER_ASAN
    /* whose frames lay here before is still marked */
    __asan_unpoison_memory_region(fiber->stack, GUARD_SIZE + STACK_SIZE);
#endif
    return fiber;
}

static void free_fiber(struct fgw_fiber *fiber)
{
    (void)munmap(fiber->stack, GUARD_SIZE + STACK_SIZE);
    fgw_xfree(fiber);
}

void fgw_fiber_free_idle(struct fgw_loop *loop)
{
    struct fgw_list *node;
    while ((node = fgw_list_pop_front(&loop->idle_stacks)) != NULL) {
        free_fiber(FGW_CONTAINER_OF(node, struct fgw_fiber, node));
    }
    loop->idle_stack_count = 0;
}

static void retire(struct fgw_fiber *fiber)
{
    struct fgw_loop *loop = fiber->loop;
    loop->live_fibers--;
#ifdef FIBER_TSAN
    __tsan_destroy_fiber(fiber->tsan_fiber);
#endif
    if (loop->idle_stack_count >= IDLE_STACKS_MAX) {
        free_fiber(fiber);
        return;
    }
    loop->idle_stack_count++;
    fgw_list_push_front(&loop->idle_stacks, &fiber->node);
}

/* From the loop's own stack. */
static void resume(struct fgw_fiber *fiber)
{
    running = fiber;
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(&loop_fake_stack, fiber->stack + GUARD_SIZE, STACK_SIZE);
#endif
#ifdef FIBER_TSAN
    loop_tsan_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber->tsan_fiber, 0);
#endif
    struct transfer back = jump_fcontext(fiber->context, fiber);
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(loop_fake_stack, NULL, NULL);
#endif
    running = NULL;
    fiber->context = back.from;
    if (fiber->finished) {
        retire(fiber);
    }
}

void fgw_loop_run_ready(struct fgw_loop *loop)
{
    struct fgw_list now;
    fgw_list_init(&now);
    fgw_list_splice_back(&now, &loop->ready);
    struct fgw_list *node;
    while ((node = fgw_list_pop_front(&now)) != NULL) {
        resume(FGW_CONTAINER_OF(node, struct fgw_fiber, node));
    }
}

static void make_ready(struct fgw_fiber *fiber)
{
    fgw_list_push_back(&fiber->loop->ready, &fiber->node);
    fgw_loop_mark_busy(fiber->loop);
}

void fgw_fiber_spawn(struct fgw_loop *loop, fgw_fiber_fn *fn, void *arg)
{
    struct fgw_fiber *fiber = take_fiber(loop);
    fgw_list_init(&fiber->node);
    fiber->loop = loop;
    fiber->fn = fn;
    fiber->arg = arg;
    fiber->patience_ms = UINT64_MAX;
    fiber->finished = false;
    fiber->context = make_fcontext(fiber->stack + GUARD_SIZE + STACK_SIZE, STACK_SIZE, enter_first);
#ifdef FIBER_TSAN
    fiber->tsan_fiber = __tsan_create_fiber(0);
#endif
    loop->live_fibers++;
    if (running == NULL && fgw_loop_current() == loop) {
        resume(fiber);
    } else {
        make_ready(fiber);
    }
}

void fgw_fiber_yield(void)
{
    FGW_CHECK(running != NULL);
    make_ready(running);
    leave(running);
}

/* -- waits ----------------------------------------------------------------------------------- */

static void signal_here(struct fgw_task *task)
{
    fgw_wait_signal(FGW_CONTAINER_OF(task, struct fgw_wait, task));
}

void fgw_wait_init(struct fgw_wait *wait, unsigned expected)
{
    *wait = (struct fgw_wait){.task.run = signal_here,
                              .loop = running != NULL ? running->loop : fgw_loop_current(),
                              .missing = expected};
    FGW_CHECK(wait->loop != NULL);
}

void fgw_wait_expect(struct fgw_wait *wait, unsigned more)
{
    wait->missing += more;
}

void fgw_wait_signal(struct fgw_wait *wait)
{
    FGW_CHECK(wait->missing > 0);
    if (--wait->missing == 0 && wait->waiting != NULL) {
        struct fgw_fiber *fiber = wait->waiting;
        wait->waiting = NULL;
        make_ready(fiber);
    }
}

void fgw_wait_signal_remote(struct fgw_wait *wait)
{
    fgw_loop_post(wait->loop, &wait->task);
}

void fgw_wait_for(struct fgw_wait *wait)
{
    FGW_CHECK(running != NULL && running->loop == wait->loop);
    while (wait->missing > 0) {
        wait->waiting = running;
        leave(running);
    }
}

struct deadline {
    struct fgw_wait *wait;
    bool passed;
};

static void on_deadline(void *arg)
{
    struct deadline *deadline = arg;
    deadline->passed = true;
    if (deadline->wait->waiting != NULL) {
        struct fgw_fiber *fiber = deadline->wait->waiting;
        deadline->wait->waiting = NULL;
        make_ready(fiber);
    }
}

enum fgw_err fgw_wait_until(struct fgw_wait *wait, uint64_t deadline_ms)
{
    FGW_CHECK(running != NULL && running->loop == wait->loop);
    if (wait->missing == 0) {
        return FGW_OK;
    }
    struct deadline deadline = {wait, false};
    struct fgw_timer *timer = fgw_timer_new(wait->loop, on_deadline, &deadline);
    uint64_t now = fgw_loop_now_ms(wait->loop);
    fgw_timer_start(timer, deadline_ms > now ? deadline_ms - now : 0);
    while (wait->missing > 0 && !deadline.passed) {
        wait->waiting = running;
        leave(running);
    }
    wait->waiting = NULL;
    fgw_timer_free(timer);
    return wait->missing > 0 ? FGW_ERR_TIMEOUT : FGW_OK;
}

static void on_sleep_over(void *arg)
{
    fgw_wait_signal(arg);
}

void fgw_fiber_sleep_ms(uint64_t delay_ms)
{
    struct fgw_wait wait;
    fgw_wait_init(&wait, 1);
    struct fgw_timer *timer = fgw_timer_new(wait.loop, on_sleep_over, &wait);
    fgw_timer_start(timer, delay_ms);
    fgw_wait_for(&wait);
    fgw_timer_free(timer);
}

struct alone {
    struct fgw_loop *loop;
    fgw_fiber_fn *fn;
    void *arg;
    struct fgw_task task;
};

static void alone_main(void *opaque)
{
    struct alone *alone = opaque;
    alone->fn(alone->arg);
    fgw_loop_stop(alone->loop);
}

static void alone_start(struct fgw_task *task)
{
    struct alone *alone = FGW_CONTAINER_OF(task, struct alone, task);
    fgw_fiber_spawn(alone->loop, alone_main, alone);
}

void fgw_fiber_run_alone(fgw_fiber_fn *fn, void *arg)
{
    struct alone alone = {.loop = fgw_loop_new(), .fn = fn, .arg = arg, .task.run = alone_start};
    fgw_loop_post(alone.loop, &alone.task);
    fgw_loop_run(alone.loop);
    fgw_loop_free(alone.loop);
}

/* -- gate ------------------------------------------------------------------------------------ */

struct gate_waiter {
    struct fgw_list node;
    struct fgw_wait wait;
    uint64_t units;
};

void fgw_gate_init(struct fgw_gate *gate, uint64_t limit)
{
    fgw_list_init(&gate->waiting);
    gate->used = 0;
    gate->limit = limit;
}

void fgw_gate_enter(struct fgw_gate *gate, uint64_t units)
{
    units = units < gate->limit ? units : gate->limit;
    if (fgw_list_empty(&gate->waiting) && gate->limit - gate->used >= units) {
        gate->used += units;
        return;
    }
    struct gate_waiter waiter = {.units = units};
    fgw_wait_init(&waiter.wait, 1);
    fgw_list_push_back(&gate->waiting, &waiter.node);
    fgw_wait_for(&waiter.wait);
}

void fgw_gate_leave(struct fgw_gate *gate, uint64_t units)
{
    units = units < gate->limit ? units : gate->limit;
    FGW_CHECK(gate->used >= units);
    gate->used -= units;
    while (!fgw_list_empty(&gate->waiting)) {
        struct gate_waiter *next = FGW_CONTAINER_OF(gate->waiting.next, struct gate_waiter, node);
        if (gate->limit - gate->used < next->units) {
            return;
        }
        gate->used += next->units;
        fgw_list_remove(&next->node);
        fgw_wait_signal(&next->wait);
    }
}
