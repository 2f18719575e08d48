/* index_page.h: a stretch of the block index, read on the pool and kept in memory. For the workers
 * of care and for opening; called from fibers, or, with fgw_index_page_load, from any thread that
 * may block. */
#ifndef FGW_STORAGE_INDEX_PAGE_H
#define FGW_STORAGE_INDEX_PAGE_H

#include "base/arena.h"
#include "event/fiber.h"
#include "kv/kv.h"

struct fgw_index_row {
    struct fgw_bytes key;
    struct fgw_bytes value;
};

struct fgw_index_range {
    struct fgw_bytes lower;
    struct fgw_bytes upper; /* first key behind it */
    size_t max;             /* rows */
};

struct fgw_index_page {
    struct fgw_arena arena;
    struct fgw_index_row *rows;
    size_t count;
    size_t capacity;
    bool more; /* rows follow behind the last one */
};

void fgw_index_page_init(struct fgw_index_page *page);
void fgw_index_page_deinit(struct fgw_index_page *page);
/* Replaces the page by the first rows of the range. Blocks. */
enum fgw_err fgw_index_page_load(struct fgw_index_page *page, struct fgw_kv *kv,
                                 const struct fgw_index_range *range) FGW_MUST_CHECK;
/* The same from a fiber. */
enum fgw_err fgw_index_page_read(struct fgw_index_page *page, struct fgw_pool *pool,
                                 struct fgw_kv *kv,
                                 const struct fgw_index_range *range) FGW_MUST_CHECK;

#endif
