/* loop.h: one event loop a thread, over libuv (which appears nowhere outside src/event).
 *
 * A loop belongs to the thread that runs it. Only fgw_loop_post and fgw_loop_stop may be called
 * from other threads. Handles (polls, timers) are made and freed on the loop's thread; a freed
 * handle never calls back again. Callbacks run outside of fibers; whatever takes more than a few
 * steps starts a fiber (fiber.h).
 */
#ifndef FGW_EVENT_LOOP_H
#define FGW_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct fgw_loop;

struct fgw_loop *fgw_loop_new(void);
/* Only after fgw_loop_run returned and all handles were freed. */
void fgw_loop_free(struct fgw_loop *loop);
/* Runs until fgw_loop_stop; what was posted before the stop is run first. */
void fgw_loop_run(struct fgw_loop *loop);
void fgw_loop_stop(struct fgw_loop *loop);
/* The loop running on this thread, or NULL. */
struct fgw_loop *fgw_loop_current(void);
/* Monotonic milliseconds as of the last turn of the loop: cheap, up to one turn old. Only for
 * deadlines on this loop; ages that are stored use base/clock.h. */
uint64_t fgw_loop_now_ms(const struct fgw_loop *loop);

/* A unit of work handed to a loop. Owned by whoever made it; free or reusable once run began. */
struct fgw_task {
    void (*run)(struct fgw_task *task);
    struct fgw_task *next; /* private */
};
/* From any thread: runs task->run on the loop's thread, once, in the order posted by one thread. */
void fgw_loop_post(struct fgw_loop *loop, struct fgw_task *task);
/* Same for a chain of tasks already linked by `next` in running order: one wake-up for all. */
void fgw_loop_post_chain(struct fgw_loop *loop, struct fgw_task *first, struct fgw_task *last);

/* -- readiness of a file descriptor --------------------------------------------------------- */

enum { FGW_POLL_READ = 1, FGW_POLL_WRITE = 2 };
struct fgw_poll;
typedef void fgw_poll_fn(void *arg, int events);
/* Level-triggered; errors and hang-ups arrive as FGW_POLL_READ | FGW_POLL_WRITE. NULL when the
 * descriptor cannot be polled. Starts with no events. The descriptor stays the caller's; free the
 * poll before closing it. */
struct fgw_poll *fgw_poll_new(struct fgw_loop *loop, int fd, fgw_poll_fn *fn, void *arg);
/* events: 0 pauses. Setting what is set costs nothing. */
void fgw_poll_set(struct fgw_poll *poll, int events);
int fgw_poll_events(const struct fgw_poll *poll);
void fgw_poll_free(struct fgw_poll *poll);

/* -- timers --------------------------------------------------------------------------------- */

struct fgw_timer;
typedef void fgw_timer_fn(void *arg);
struct fgw_timer *fgw_timer_new(struct fgw_loop *loop, fgw_timer_fn *fn, void *arg);
/* Fires once after delay_ms; restarts when running. */
void fgw_timer_start(struct fgw_timer *timer, uint64_t delay_ms);
void fgw_timer_stop(struct fgw_timer *timer);
void fgw_timer_free(struct fgw_timer *timer);

/* -- signals (of the process; use on one loop only) ------------------------------------------ */

struct fgw_signal;
typedef void fgw_signal_fn(void *arg, int signal_number);
struct fgw_signal *fgw_signal_new(struct fgw_loop *loop, int signal_number, fgw_signal_fn *fn,
                                  void *arg);
void fgw_signal_free(struct fgw_signal *signal);

#endif
