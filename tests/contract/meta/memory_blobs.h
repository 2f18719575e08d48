/* memory_blobs.h: a blob store in memory for tests of metadata backends, which remembers how each
 * staged blob was ended, so that a test can hold rows against it: a row that names a blob whose
 * bytes were given up is lost data. One loop. */
#ifndef FGW_TESTS_MEMORY_BLOBS_H
#define FGW_TESTS_MEMORY_BLOBS_H

#include "blobs/blobs.h"

struct fgw_blobs *memory_blobs_new(void);
void memory_blobs_free(struct fgw_blobs *blobs);
/* True when these bytes can be read on behalf of this owner: durable, and not given up. */
bool memory_blobs_hold(const struct fgw_blobs *blobs, const uint8_t owner_id[FGW_STORAGE_ID_SIZE],
                       const struct fgw_extent *extent);

struct memory_blobs_counts {
    unsigned staged, durable, confirmed, discarded, released;
};
struct memory_blobs_counts memory_blobs_counts(const struct fgw_blobs *blobs);

#endif
