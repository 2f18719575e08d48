/* local.h: blobs in the storage engine of this process (blobs.h). */
#ifndef FGW_BLOBS_LOCAL_H
#define FGW_BLOBS_LOCAL_H

#include "blobs/blobs.h"
#include "blobs/small_cache.h"

/* Both outlive the result; cache NULL: nothing is kept. */
struct fgw_blobs *fgw_blobs_local_new(struct fgw_storage *storage, struct fgw_small_cache *cache);
/* Takes NULL; all stages and readers must have ended. */
void fgw_blobs_local_free(struct fgw_blobs *blobs);

#endif
