/* sim.c: virtual time, coroutines, processes; see sim.h. */
#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
static void *scheduler_fake;
static const void *scheduler_bottom;
static size_t scheduler_size;
#define UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#define LEAVE(keep, bottom, size) __sanitizer_start_switch_fiber(keep, bottom, size)
#define ARRIVE(kept, bottom, size) __sanitizer_finish_switch_fiber(kept, bottom, size)
#else
#define UNPOISON(p, n) ((void)0)
#define LEAVE(keep, bottom, size) ((void)0)
#define ARRIVE(kept, bottom, size) ((void)0)
#endif

enum { STACK_SIZE = 256 * 1024 };

struct sim_coroutine {
    ucontext_t context;
    void *stack;
    void (*body)(struct sim_proc *);
    struct sim_proc *proc;
    uint64_t wake_us;
    bool over;
    void *fake_stack;
    struct sim_coroutine *next_free;
};

/* One simulation runs at a time in this thread. */
static ucontext_t scheduler;
static struct sim_coroutine *running;
static struct sim_coroutine *free_list;

uint64_t sim_random(struct sim *sim)
{
    uint64_t z = (sim->random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t sim_below(struct sim *sim, uint64_t bound)
{
    return bound == 0 ? 0 : sim_random(sim) % bound;
}

void sim_fail(struct sim *sim, const char *format, ...)
{
    if (sim->failed) {
        return;
    }
    sim->failed = true;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sim->failure, sizeof sim->failure, format, args);
    va_end(args);
    (void)fprintf(stderr, "seed %llu at %.3f s: %s\n", (unsigned long long)sim->seed,
                  (double)sim->now_us / 1e6, sim->failure);
}

/* -- coroutines ---------------------------------------------------------------------------- */

static void to_scheduler(bool last)
{
    struct sim_coroutine *self = running;
    (void)last;
    LEAVE(last ? NULL : &self->fake_stack, scheduler_bottom, scheduler_size);
    swapcontext(&self->context, &scheduler);
    ARRIVE(self->fake_stack, &scheduler_bottom, &scheduler_size);
}

static void entry(void)
{
    ARRIVE(NULL, &scheduler_bottom, &scheduler_size);
    running->body(running->proc);
    running->over = true;
    to_scheduler(true);
    abort();
}

static void prepare(struct sim_coroutine *c)
{
    getcontext(&c->context);
    c->context.uc_stack.ss_sp = c->stack;
    c->context.uc_stack.ss_size = STACK_SIZE;
    c->context.uc_link = NULL;
    makecontext(&c->context, entry, 0);
}

static struct sim_coroutine *coroutine_new(struct sim_proc *proc, void (*body)(struct sim_proc *),
                                           uint64_t wake_us)
{
    struct sim_coroutine *c = free_list;
    if (c != NULL) {
        free_list = c->next_free;
    } else {
        c = fgw_xcalloc(1, sizeof *c);
        c->stack =
            mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        FGW_CHECK(c->stack != MAP_FAILED);
    }
    UNPOISON(c->stack, STACK_SIZE);
    c->body = body;
    c->proc = proc;
    c->wake_us = wake_us;
    c->over = false;
    c->fake_stack = NULL;
    prepare(c);
    return c;
}
static void coroutine_free(struct sim_coroutine *c)
{
    if (c != NULL) {
        c->next_free = free_list;
        free_list = c;
    }
}

static void resume(struct sim_coroutine *c)
{
    running = c;
    LEAVE(&scheduler_fake, c->stack, STACK_SIZE);
    swapcontext(&scheduler, &c->context);
    ARRIVE(scheduler_fake, NULL, NULL);
    running = NULL;
}

void sim_sleep_us(struct sim_proc *proc, uint64_t us)
{
    running->wake_us = proc->sim->now_us + us;
    to_scheduler(false);
}

/* A killed process never comes back: its coroutines are abandoned where they stand. */
static void vanish(struct sim_proc *proc)
{
    proc->dead = true;
    running->wake_us = SIM_NEVER;
    to_scheduler(false);
    abort();
}

void sim_site(struct sim_proc *proc)
{
    if (proc->dead) {
        vanish(proc);
    }
    int site = proc->sites++;
    if (site == proc->kill_at) {
        vanish(proc);
    }
    if (site == proc->stop_at) {
        proc->stop = true;
    }
    if (site == proc->jump_at) {
        proc->jumped = true;
    }
    if (site == proc->pause_at) {
        proc->paused_until_us = proc->sim->now_us + proc->pause_us;
    }
    while (proc->sim->now_us < proc->paused_until_us) {
        sim_sleep_us(proc, proc->paused_until_us - proc->sim->now_us);
    }
    if (proc->dead) {
        vanish(proc);
    }
}

void sim_if_dead(struct sim_proc *proc)
{
    if (proc->dead) {
        vanish(proc);
    }
}

static void side_body(struct sim_proc *proc)
{
    if (!proc->heartbeat_dead) {
        proc->side(proc->side_argument);
    }
    proc->side_over = true;
}

void sim_start_side(struct sim_proc *proc)
{
    coroutine_free(proc->side_task);
    proc->side_over = false;
    proc->side_task = coroutine_new(proc, side_body, proc->sim->now_us);
}

/* -- processes ----------------------------------------------------------------------------- */

static enum fgw_migrate_exit run_command(struct sim_proc *proc)
{
    switch (proc->command) {
    case SIM_UP:
        return fgw_migrate_up(proc->engine);
    case SIM_STATUS:
        return fgw_migrate_status(proc->engine);
    case SIM_PLAN:
        return fgw_migrate_plan(proc->engine);
    case SIM_VERIFY:
        return fgw_migrate_verify(proc->engine);
    case SIM_REPAIR:
        return fgw_migrate_repair(proc->engine);
    case SIM_FORCE:
        return fgw_migrate_force(proc->engine);
    case SIM_UNLOCK:
        return fgw_migrate_unlock(proc->engine);
    case SIM_WAIT:
        return fgw_migrate_wait(proc->engine);
    case SIM_CHECK:
        return fgw_migrate_check(proc->engine);
    }
    return FGW_MIGRATE_EXIT_INTERNAL;
}

static void main_body(struct sim_proc *proc)
{
    proc->started_us = proc->sim->now_us;
    proc->engine = fgw_migrate_engine_new(&proc->ops, &proc->arena, &proc->scratch, &proc->options);
    proc->exit = run_command(proc);
    proc->report = fgw_migrate_report(proc->engine);
    proc->over = true;
    proc->ended_us = proc->sim->now_us;
}

void sim_init(struct sim *sim, uint64_t seed)
{
    memset(sim, 0, sizeof *sim);
    sim->seed = seed;
    sim->random = seed * 2654435761u + 1;
    sim->now_us = 1000000;
    sim->ddl_ms = 400;
    sim->limit_us = UINT64_C(6) * 3600 * 1000000;
    sim->db.exists = true;
    sim->holder = -1;
    fgw_arena_init(&sim->arena, 0);
}

void sim_forget(struct sim *sim)
{
    for (int i = 0; i < sim->proc_count; i++) {
        struct sim_proc *proc = sim->procs[i];
        coroutine_free(proc->main_task);
        coroutine_free(proc->side_task);
        fgw_arena_deinit(&proc->arena);
        fgw_arena_deinit(&proc->scratch);
        fgw_xfree(proc);
    }
    sim->proc_count = 0;
    sim->holder = -1;
}

void sim_deinit(struct sim *sim)
{
    sim_forget(sim);
    for (int i = 0; i < sim->late_count; i++) {
        fgw_xfree(sim->late[i].effect);
    }
    fgw_arena_deinit(&sim->arena);
}

struct sim_proc *sim_add(struct sim *sim, const char *name, const struct fgw_migrate_set *set,
                         enum sim_command command, uint64_t start_ms)
{
    FGW_CHECK(sim->proc_count < SIM_PROCS_MAX);
    struct sim_proc *proc = fgw_xcalloc(1, sizeof *proc);
    proc->sim = sim;
    proc->index = sim->proc_count;
    (void)snprintf(proc->name, sizeof proc->name, "%s", name);
    fgw_arena_init(&proc->arena, 0);
    fgw_arena_init(&proc->scratch, 0);
    sim_ops_init(proc);
    proc->options = (struct fgw_migrate_options){
        .keyspace = "ks",
        .set = set,
        .actor = proc->name,
        .build = "test",
        .timing = fgw_migrate_default_timing,
    };
    proc->command = command;
    proc->kill_at = proc->kill_point = proc->pause_at = proc->stop_at = proc->jump_at = -1;
    proc->clock_rate = 1.0;
    proc->main_task = coroutine_new(proc, main_body, sim->now_us + start_ms * 1000);
    sim->procs[sim->proc_count++] = proc;
    return proc;
}

/* Earliest wake-up; ties are broken by chance. */
static struct sim_coroutine *next_task(struct sim *sim, uint64_t *out_at)
{
    struct sim_coroutine *best = NULL;
    uint64_t ties = 0;
    for (int i = 0; i < sim->proc_count; i++) {
        struct sim_coroutine *tasks[] = {sim->procs[i]->main_task, sim->procs[i]->side_task};
        for (size_t k = 0; k < FGW_COUNT_OF(tasks); k++) {
            struct sim_coroutine *c = tasks[k];
            if (c == NULL || c->over || c->wake_us == SIM_NEVER) {
                continue;
            }
            if (best == NULL || c->wake_us < best->wake_us) {
                best = c;
                ties = 1;
            } else if (c->wake_us == best->wake_us && sim_below(sim, ++ties) == 0) {
                best = c;
            }
        }
    }
    *out_at = best == NULL ? SIM_NEVER : best->wake_us;
    return best;
}

static int next_late(const struct sim *sim, uint64_t *out_at)
{
    int best = -1;
    *out_at = SIM_NEVER;
    for (int i = 0; i < sim->late_count; i++) {
        if (sim->late[i].at_us < *out_at) {
            *out_at = sim->late[i].at_us;
            best = i;
        }
    }
    return best;
}

static void apply_late(struct sim *sim, int index)
{
    struct sim_effect *effect = sim->late[index].effect;
    sim->late[index] = sim->late[--sim->late_count];
    bool applied;
    (void)sim_apply(sim, effect, &applied);
    fgw_xfree(effect);
}

/* The main task of an ended process leaves its heartbeat behind only if it forgot to join. */
static bool all_ended(const struct sim *sim)
{
    for (int i = 0; i < sim->proc_count; i++) {
        if (!sim->procs[i]->over && !sim->procs[i]->dead) {
            return false;
        }
    }
    return true;
}

/* The next event, unless it lies beyond `at_us`. */
static bool next_event(struct sim *sim, uint64_t at_us)
{
    uint64_t task_at;
    uint64_t late_at;
    struct sim_coroutine *task = next_task(sim, &task_at);
    int late = next_late(sim, &late_at);
    bool late_first = late >= 0 && late_at <= task_at;
    uint64_t next_at = late_first ? late_at : task_at;
    if (next_at == SIM_NEVER || next_at > at_us || sim->failed) {
        return false;
    }
    sim->now_us = next_at > sim->now_us ? next_at : sim->now_us;
    if (late_first) {
        apply_late(sim, late);
    } else {
        resume(task);
    }
    return true;
}

void sim_run_until(struct sim *sim, uint64_t at_us)
{
    while (next_event(sim, at_us)) {
    }
    sim->now_us = at_us > sim->now_us ? at_us : sim->now_us;
}

void sim_run(struct sim *sim)
{
    while (next_event(sim, SIM_NEVER)) {
        if (sim->now_us > sim->limit_us) {
            sim_fail(sim, "I8: a wait did not end");
        }
    }
    if (!sim->failed && !all_ended(sim)) {
        sim_fail(sim, "a process neither ended nor died");
    }
}

enum fgw_migrate_exit sim_once(struct sim *sim, const struct fgw_migrate_set *set,
                               enum sim_command command)
{
    sim_forget(sim);
    struct sim_proc *proc = sim_add(sim, "once", set, command, 0);
    sim_run(sim);
    return sim->failed ? FGW_MIGRATE_EXIT_INTERNAL : proc->exit;
}

const struct fgw_migrate_finding *sim_finding(const struct sim_proc *proc,
                                              enum fgw_migrate_code code)
{
    for (size_t i = 0; proc->report != NULL && i < proc->report->finding_count; i++) {
        if (proc->report->findings[i].code == code) {
            return &proc->report->findings[i];
        }
    }
    return NULL;
}
