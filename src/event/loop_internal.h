/* loop_internal.h: what fiber.c needs of the loop. */
#ifndef FGW_EVENT_LOOP_INTERNAL_H
#define FGW_EVENT_LOOP_INTERNAL_H

#include <stdatomic.h>
#include <uv.h>

#include "event/loop.h"

struct fgw_fiber;

struct fgw_loop {
    uv_loop_t uv;
    uv_async_t wakeup;
    uv_idle_t busy;   /* runs while fibers are ready, so that polling does not block */
    uv_check_t after; /* runs ready fibers after each poll */
    _Atomic(struct fgw_task *) inbox; /* newest first */
    _Atomic bool stopping;
    bool busy_on;
    struct fgw_list ready;        /* fibers to resume */
    struct fgw_list idle_stacks;  /* finished fibers kept for their stacks */
    unsigned idle_stack_count;
    unsigned live_fibers;
    void *main_context; /* of the loop's own stack, while a fiber runs */
};

/* Resumes what was ready when called; called from the loop, never from a fiber. */
void fgw_loop_run_ready(struct fgw_loop *loop);
/* Makes sure the loop turns again at once. */
void fgw_loop_mark_busy(struct fgw_loop *loop);
void fgw_fiber_free_idle(struct fgw_loop *loop);

#endif
