/* local.h: blobs on this process's own data directory. */
#ifndef FGW_BLOBS_LOCAL_H
#define FGW_BLOBS_LOCAL_H

#include "blobs/blobs.h"

/* storage outlives the store. */
struct fgw_blobs *fgw_blobs_local_new(struct fgw_storage *storage);
/* Takes NULL. */
void fgw_blobs_local_free(struct fgw_blobs *blobs);

#endif
