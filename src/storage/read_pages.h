/* read_pages.h: reading group files from a worker thread: without waiting when the pages are in the
 * cache (preadv2 RWF_NOWAIT), else on the pool. Called from fibers. */
#ifndef FGW_STORAGE_READ_PAGES_H
#define FGW_STORAGE_READ_PAGES_H

#include "event/fiber.h"
#include "storage/group.h"

/* Exactly len bytes; FGW_ERR_END when the file ends before. */
enum fgw_err fgw_read_bytes(struct fgw_pool *pool, int fd, uint64_t offset, void *out, size_t len) FGW_MUST_CHECK;
/* Checks a block in place, head and CRC32C, bringing its pages into the cache.
 * FGW_ERR_CORRUPT when it is another block, damaged or behind the file's end. */
enum fgw_err fgw_check_block(struct fgw_pool *pool, int fd, const struct fgw_group_block *block) FGW_MUST_CHECK;

#endif
