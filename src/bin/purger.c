/* purger.c: see purger.h. */
#include "bin/purger.h"

#include "base/arena.h"
#include "base/rng.h"
#include "event/fiber.h"

enum { FIRST_MS = 60000, INTERVAL_MS = 600000 };

struct fgw_purger {
    struct fgw_workers *workers;
    fgw_purger_fn *run;
    void *context;
    struct fgw_wait wake;
    struct fgw_wait ended;
    bool stopping;
};

static void main_fiber(void *arg)
{
    struct fgw_purger *purger = arg;
    /* processes that were started together do not all ask at once */
    uint64_t delay_ms = FIRST_MS + fgw_rng_below(FIRST_MS);
    while (!purger->stopping) {
        uint64_t until_ms = fgw_loop_now_ms(fgw_loop_current()) + delay_ms;
        if (fgw_wait_until(&purger->wake, until_ms) == FGW_OK || purger->stopping) {
            break;
        }
        purger->run(purger->context, purger);
        delay_ms = INTERVAL_MS;
        fgw_wait_init(&purger->wake, 1);
    }
    fgw_wait_signal(&purger->ended);
}

static void start(void *arg, unsigned index)
{
    struct fgw_purger *purger = arg;
    if (index == 0) {
        fgw_wait_init(&purger->wake, 1);
        fgw_wait_init(&purger->ended, 1);
        fgw_fiber_spawn(fgw_loop_current(), main_fiber, purger);
    }
}

static void stop(void *arg, unsigned index)
{
    struct fgw_purger *purger = arg;
    if (index == 0) {
        purger->stopping = true;
        fgw_wait_signal(&purger->wake);
        fgw_wait_for(&purger->ended);
    }
}

struct fgw_purger *fgw_purger_start(struct fgw_workers *workers, fgw_purger_fn *run, void *context)
{
    struct fgw_purger *purger = fgw_xcalloc(1, sizeof *purger);
    purger->workers = workers;
    purger->run = run;
    purger->context = context;
    fgw_workers_run(workers, start, purger);
    return purger;
}

bool fgw_purger_stopping(void *purger)
{
    return ((struct fgw_purger *)purger)->stopping;
}

void fgw_purger_stop(struct fgw_purger *purger)
{
    if (purger != NULL) {
        fgw_workers_run(purger->workers, stop, purger);
        fgw_xfree(purger);
    }
}
