/* workers.h: the N worker threads of a process, each running one loop. */
#ifndef FGW_EVENT_WORKERS_H
#define FGW_EVENT_WORKERS_H

#include "event/loop.h"

struct fgw_workers;

/* on_start runs in a fiber on each worker's loop before fgw_workers_start returns (arg, index). */
typedef void fgw_worker_fn(void *arg, unsigned index);
struct fgw_workers *fgw_workers_start(unsigned count, fgw_worker_fn *on_start, void *arg);
unsigned fgw_workers_count(const struct fgw_workers *workers);
struct fgw_loop *fgw_workers_loop(const struct fgw_workers *workers, unsigned index);
/* Index of the calling worker thread, or UINT_MAX elsewhere. */
unsigned fgw_worker_index(void);
/* Runs fn in a fiber on every worker and waits for all (from a thread that is no worker). */
void fgw_workers_run(struct fgw_workers *workers, fgw_worker_fn *fn, void *arg);
/* Stops the loops and joins the threads. */
void fgw_workers_stop(struct fgw_workers *workers);

#endif
