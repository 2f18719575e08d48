/* memory_store.h: names and bytes in memory: the two contracts of the S3 engine without a disk, for
 * tests of the engine alone. One worker only, nothing is durable, no multipart. */
#ifndef FGW_TESTS_MEMORY_STORE_H
#define FGW_TESTS_MEMORY_STORE_H

#include "meta/meta.h"

struct fgw_meta *memory_meta_new(void);
struct fgw_blobs *memory_blobs_new(void);
void memory_blobs_free(struct fgw_blobs *blobs);

#endif
