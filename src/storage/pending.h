/* pending.h: holds whose edge has not said that their name is committed (design/cluster.md section 3):
 * the metadata is asked about those that have been pending for long. Confirmation, copies that are
 * missing and holds on the wrong set are all settled here; what no row names is the sweeper's.
 *
 * Crash argument: everything that is decided is one logged item; what was not is asked again.
 */
#ifndef FGW_STORAGE_PENDING_H
#define FGW_STORAGE_PENDING_H

#include <stdatomic.h>

#include "storage/storage.h"

struct fgw_pending {
    fgw_storage_named_fn *named; /* may be NULL */
    void *named_context;
    _Atomic uint64_t count; /* as of the last pass */
};

/* A job of care: one pass. Returns when to call again. */
uint64_t fgw_pending_care(struct fgw_storage *storage, fgw_storage_live_fn *live, void *context);

#endif
