/* read_pages.h: reading group files from a worker thread: without waiting when the pages are in the
 * cache (preadv2 RWF_NOWAIT), else on the pool. Called from fibers. */
#ifndef FGW_STORAGE_READ_PAGES_H
#define FGW_STORAGE_READ_PAGES_H

#include "event/fiber.h"
#include "storage/group.h"

/* Exactly len bytes; FGW_ERR_END when the file ends before. */
enum fgw_err fgw_read_bytes(struct fgw_pool *pool, int fd, uint64_t offset, void *out,
                            size_t len) FGW_MUST_CHECK;
/* Sees what is checked: the block's bytes in order, from `at` on; 0: from the start, perhaps again. */
struct fgw_check_tap {
    void (*see)(void *context, size_t at, struct fgw_bytes bytes);
    void *context;
};
/* Checks a block in place, head and CRC32C, bringing its pages into the cache. tap may be NULL.
 * FGW_ERR_CORRUPT when it is another block, damaged or behind the file's end. */
enum fgw_err fgw_check_block(struct fgw_pool *pool, int fd, const struct fgw_group_block *block,
                             const struct fgw_check_tap *tap) FGW_MUST_CHECK;

#endif
