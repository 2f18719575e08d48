/* local.h: blobs in the storage engine of this process (blobs.h). */
#ifndef FGW_BLOBS_LOCAL_H
#define FGW_BLOBS_LOCAL_H

#include "blobs/blobs.h"

/* storage outlives the result. */
struct fgw_blobs *fgw_blobs_local_new(struct fgw_storage *storage);
/* Takes NULL; all stages and readers must have ended. */
void fgw_blobs_local_free(struct fgw_blobs *blobs);

#endif
