/* care.h: background work of an open storage: one thread with a loop, a fiber for each job. A job's
 * pass says when it wants to be called again; a kick calls it at once. */
#ifndef FGW_STORAGE_CARE_H
#define FGW_STORAGE_CARE_H

#include "storage/storage.h"

struct fgw_care;

enum fgw_care_job {
    FGW_CARE_SYNC,
    FGW_CARE_RELEASE,
    FGW_CARE_HINTS,
    FGW_CARE_FIGURES,
    FGW_CARE_SWEEP,
    FGW_CARE_PENDING,
    FGW_CARE_CHECKPOINT,
    FGW_CARE_BACKUP,
    FGW_CARE_COMPACT,
    FGW_CARE_SCRUB,
    FGW_CARE_JOBS
};

/* Not started yet. */
struct fgw_care *fgw_care_new(struct fgw_storage *storage);
/* Stopped before; takes NULL. */
void fgw_care_free(struct fgw_care *care);
void fgw_care_start(struct fgw_care *care, fgw_storage_live_fn *live, void *context);
/* Waits for the passes that run; nothing to do when it was not started. */
void fgw_care_stop(struct fgw_care *care);
bool fgw_care_running(struct fgw_care *care);
/* From any thread; nothing happens when it does not run. */
void fgw_care_kick(struct fgw_care *care, enum fgw_care_job job);
bool fgw_care_stopping(const struct fgw_care *care);
/* A hold that may have ended: the liveness callback decides. From any thread. */
void fgw_care_hint(struct fgw_care *care, const struct fgw_storage_owner *owner, uint64_t extent,
                   const struct fgw_cid *root);

#endif
