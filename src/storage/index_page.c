/* index_page.c: see index_page.h. */
#include "storage/index_page.h"

void fgw_index_page_init(struct fgw_index_page *page)
{
    *page = (struct fgw_index_page){0};
    fgw_arena_init(&page->arena, 0);
}

void fgw_index_page_deinit(struct fgw_index_page *page)
{
    fgw_arena_deinit(&page->arena);
    fgw_xfree(page->rows);
    *page = (struct fgw_index_page){0};
}

static void add_row(struct fgw_index_page *page, struct fgw_bytes key, struct fgw_bytes value)
{
    if (page->count == page->capacity) {
        page->capacity = 2 * page->capacity + 64;
        page->rows = fgw_xrealloc(page->rows, page->capacity * sizeof *page->rows);
    }
    page->rows[page->count++] = (struct fgw_index_row){fgw_arena_copy(&page->arena, key),
                                                       fgw_arena_copy(&page->arena, value)};
}

enum fgw_err fgw_index_page_load(struct fgw_index_page *page, struct fgw_kv *kv,
                                 const struct fgw_index_range *range)
{
    struct fgw_kv_scan scan = {.family = FGW_KV_BLOCKS,
                               .lower = range->lower,
                               .upper = range->upper,
                               .background = true};
    fgw_arena_reset(&page->arena);
    page->count = 0;
    struct fgw_kv_iter *iter = fgw_kv_iter_scan(kv, &scan);
    fgw_kv_iter_seek_first(iter);
    while (fgw_kv_iter_valid(iter) && page->count < range->max) {
        add_row(page, fgw_kv_iter_key(iter), fgw_kv_iter_value(iter));
        fgw_kv_iter_next(iter);
    }
    page->more = fgw_kv_iter_valid(iter);
    enum fgw_err err = fgw_kv_iter_status(iter, NULL);
    fgw_kv_iter_free(iter);
    return err;
}

struct load_job {
    struct fgw_index_page *page;
    struct fgw_kv *kv;
    const struct fgw_index_range *range;
    enum fgw_err result;
};

static void run_load(void *arg)
{
    struct load_job *job = arg;
    job->result = fgw_index_page_load(job->page, job->kv, job->range);
}

enum fgw_err fgw_index_page_read(struct fgw_index_page *page, struct fgw_pool *pool,
                                 struct fgw_kv *kv, const struct fgw_index_range *range)
{
    struct load_job job = {page, kv, range, FGW_OK};
    fgw_pool_run(pool, run_load, &job);
    return job.result;
}
