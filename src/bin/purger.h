/* purger.h: a fiber on worker 0 that has rows removed which nobody needs any more, some minutes after
 * the start and then every ten minutes; what is due, whoever is asked decides. */
#ifndef FGW_BIN_PURGER_H
#define FGW_BIN_PURGER_H

#include "event/workers.h"

struct fgw_purger;
/* In a fiber of worker 0. Long runs look at fgw_purger_stopping. */
typedef void fgw_purger_fn(void *context, struct fgw_purger *purger);

/* From a thread that is no worker. */
struct fgw_purger *fgw_purger_start(struct fgw_workers *workers, fgw_purger_fn *run, void *context);
/* purger: as void, for interfaces that take a callback. */
bool fgw_purger_stopping(void *purger);
/* From a thread that is no worker; waits until a run under way has ended. Takes NULL. */
void fgw_purger_stop(struct fgw_purger *purger);

#endif
