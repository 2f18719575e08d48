/* figures.c: sums over the group rows of the index, for stats: refreshed by care, as reading them
 * may touch the disk. */
#include "storage/index_page.h"
#include "storage/storage_internal.h"

struct sums {
    uint64_t groups, log_bytes, bulk_bytes, live_bytes, dead_bytes, blocks;
};

static void add_group(struct sums *sums, const struct fgw_group_row *row)
{
    sums->groups++;
    sums->blocks += row->live_blocks;
    sums->live_bytes += row->live_bytes;
    sums->dead_bytes += row->written_bytes - row->live_bytes;
    if (row->kind == FGW_GROUP_BULK) {
        sums->bulk_bytes += row->end;
    } else {
        sums->log_bytes += row->end; /* 0 for the one being written */
    }
}

/* Blocks. */
static enum fgw_err sum_groups(struct fgw_storage *storage, struct sums *out)
{
    enum { PAGE = 1000 };
    struct fgw_row_key lower = {.bytes = {'g'}, .len = 1};
    struct fgw_row_key upper = {.bytes = {'g' + 1}, .len = 1};
    struct fgw_index_page page;
    enum fgw_err err = FGW_OK;
    fgw_index_page_init(&page);
    do {
        struct fgw_index_range range = {fgw_row_key_bytes(&lower), fgw_row_key_bytes(&upper), PAGE};
        err = fgw_index_page_load(&page, storage->kv, &range);
        for (size_t i = 0; i < page.count && err == FGW_OK; i++) {
            struct fgw_group_row row;
            err = fgw_group_row_decode(page.rows[i].value, &row);
            if (err == FGW_OK) {
                add_group(out, &row);
                lower = fgw_row_key_group(fgw_get_u64be(page.rows[i].key.ptr + 1) + 1);
            }
        }
    } while (err == FGW_OK && page.more);
    fgw_index_page_deinit(&page);
    return err;
}

static void refresh(void *arg)
{
    struct fgw_storage *storage = arg;
    struct sums sums = {0};
    if (sum_groups(storage, &sums) == FGW_OK) {
        atomic_store(&storage->figures.groups, sums.groups);
        atomic_store(&storage->figures.log_bytes, sums.log_bytes);
        atomic_store(&storage->figures.bulk_bytes, sums.bulk_bytes);
        atomic_store(&storage->figures.live_bytes, sums.live_bytes);
        atomic_store(&storage->figures.dead_bytes, sums.dead_bytes);
        atomic_store(&storage->figures.blocks, sums.blocks);
    }
    fgw_storage_check_space(storage, false);
}

void fgw_figures_refresh(struct fgw_storage *storage)
{
    if (fgw_fiber_self() != NULL) {
        fgw_pool_run(storage->pool, refresh, storage);
    } else {
        refresh(storage);
    }
}
