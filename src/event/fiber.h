/* fiber.h: request code that reads like blocking code.
 *
 * A fiber is a function with a stack of its own on a loop's thread. Waiting suspends the fiber and
 * lets the loop go on; only one fiber or callback of a loop runs at a time, so data of one loop
 * needs no locks, but anything may have changed after a wait. A fiber never moves to another loop.
 * Stacks are FGW_FIBER_STACK_SIZE with a guard page behind: no large arrays on them.
 * Context switches: Boost.Context's fcontext (docs/decisions/0002-fibers.md).
 */
#ifndef FGW_EVENT_FIBER_H
#define FGW_EVENT_FIBER_H

#include "base/err.h"
#include "event/loop.h"

struct fgw_fiber;
typedef void fgw_fiber_fn(void *arg);

/* Starts fn(arg) on this thread's loop: at once when called outside of a fiber (control comes back
 * at its first wait), at the loop's next turn when called from one. */
void fgw_fiber_spawn(struct fgw_loop *loop, fgw_fiber_fn *fn, void *arg);
/* The running fiber, NULL outside of one. */
struct fgw_fiber *fgw_fiber_self(void);
/* Lets other fibers and events of the loop go first. */
void fgw_fiber_yield(void);
void fgw_fiber_sleep_ms(uint64_t delay_ms);
/* How long the running fiber may yet wait, in ms, for what a request depends on and cannot hurry (the
 * database): layers below wait no longer, and take off what they waited. UINT64_MAX, as at first and
 * outside of a fiber: as long as it takes. A fiber that is spawned begins without a limit. */
void fgw_fiber_set_patience(uint64_t left_ms);
uint64_t fgw_fiber_patience(void);
void fgw_fiber_waited(uint64_t waited_ms);

/* Runs fn(arg) in a fiber on a loop of its own until it returns: for command line verbs and tests. */
void fgw_fiber_run_alone(fgw_fiber_fn *fn, void *arg);

/* -- waiting for completions ---------------------------------------------------------------- */

/* Counts completions still missing. One fiber waits, any number of signals end it.
 * Lives in the waiting fiber's frame or heap; all expected signals must have come before it goes. */
struct fgw_wait {
    struct fgw_task task; /* private: for signals from other threads */
    struct fgw_loop *loop;
    struct fgw_fiber *waiting;
    unsigned missing;
};

/* expected: signals that must come. To be called in the fiber (or on the loop) that will wait. */
void fgw_wait_init(struct fgw_wait *wait, unsigned expected);
void fgw_wait_expect(struct fgw_wait *wait, unsigned more);
/* On the loop's thread. */
void fgw_wait_signal(struct fgw_wait *wait);
/* From any thread; only for a wait with expected == 1 (one task can be posted once). */
void fgw_wait_signal_remote(struct fgw_wait *wait);
/* Returns when none is missing. */
void fgw_wait_for(struct fgw_wait *wait);
/* FGW_ERR_TIMEOUT when some are still missing at the deadline (fgw_loop_now_ms clock); the wait
 * must then be kept until they came. */
enum fgw_err fgw_wait_until(struct fgw_wait *wait, uint64_t deadline_ms) FGW_MUST_CHECK;

/* -- a gate for fibers of one loop: at most `limit` inside, first come first served ----------- */

struct fgw_gate {
    struct fgw_list waiting;
    uint64_t used;
    uint64_t limit;
};
void fgw_gate_init(struct fgw_gate *gate, uint64_t limit);
/* Takes `units` (cut to limit), waiting for its turn. */
void fgw_gate_enter(struct fgw_gate *gate, uint64_t units);
void fgw_gate_leave(struct fgw_gate *gate, uint64_t units);

/* -- threads for what blocks ----------------------------------------------------------------- */

struct fgw_pool;
/* name: at most 11 characters, shown as NAME-0, NAME-1... */
struct fgw_pool *fgw_pool_new(const char *name, unsigned threads);
/* Waits for jobs that run and are queued. */
void fgw_pool_free(struct fgw_pool *pool);
/* Runs fn(arg) on a thread of the pool and suspends the calling fiber until it is done. */
void fgw_pool_run(struct fgw_pool *pool, void (*fn)(void *arg), void *arg);
/* Jobs queued and not started. */
unsigned fgw_pool_backlog(struct fgw_pool *pool);

#endif
