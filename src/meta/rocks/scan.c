/* scan.c: reading rows in order on the storage pool, since RocksDB may read the disk. One iterator
 * is one consistent view. */
#include "event/fiber.h"
#include "kv/kv.h"
#include "meta/rocks/rocks_internal.h"

struct scan_job {
    struct fgw_kv *kv;
    struct fgw_bytes lower;
    struct fgw_bytes upper;
    rocks_scan_fn *fn;
    void *context;
    enum fgw_err err;
};

/* A seek within reach is cheaper as a few steps (design/metadata.md section 7). Steps that led nowhere
 * cost as much as the seek behind them, and groups are mostly alike: after such steps the next targets
 * are sought at once, twice as many each time until steps help again. */
enum { STEPS_BEFORE_SEEK = 16, SEEKS_FIRST = 4, SEEKS_MAX = 32 };

struct pace {
    unsigned seeks_due;  /* before steps are tried again */
    unsigned seeks_next; /* due after the next steps in vain */
};

static bool steps_reach(struct fgw_kv_iter *iter, struct fgw_bytes target)
{
    for (int i = 0; i < STEPS_BEFORE_SEEK; i++) {
        fgw_kv_iter_next(iter);
        if (!fgw_kv_iter_valid(iter) || fgw_bytes_cmp(fgw_kv_iter_key(iter), target) >= 0) {
            return true;
        }
    }
    return false;
}

static void go_to(struct fgw_kv_iter *iter, struct fgw_bytes target, struct pace *pace)
{
    if (pace->seeks_due > 0) {
        pace->seeks_due--;
    } else if (steps_reach(iter, target)) {
        pace->seeks_next = SEEKS_FIRST;
        return;
    } else {
        pace->seeks_due = pace->seeks_next;
        pace->seeks_next = 2 * pace->seeks_next < SEEKS_MAX ? 2 * pace->seeks_next : SEEKS_MAX;
    }
    fgw_kv_iter_seek(iter, target);
}

static void scan_on_pool(void *arg)
{
    struct scan_job *job = arg;
    struct fgw_kv_scan scan = {
        .family = FGW_KV_NAMES, .lower = job->lower, .upper = job->upper, .tidy = true};
    struct fgw_kv_iter *iter = fgw_kv_iter_scan(job->kv, &scan);
    struct pace pace = {.seeks_next = SEEKS_FIRST};
    fgw_kv_iter_seek(iter, job->lower);
    while (fgw_kv_iter_valid(iter)) {
        struct fgw_bytes target = {NULL, 0};
        enum rocks_scan_next next =
            job->fn(job->context, fgw_kv_iter_key(iter), fgw_kv_iter_value(iter), &target);
        if (next == ROCKS_SCAN_STOP) {
            break;
        }
        if (next == ROCKS_SCAN_SEEK) {
            go_to(iter, target, &pace);
        } else {
            fgw_kv_iter_next(iter);
        }
    }
    job->err = fgw_kv_iter_status(iter, NULL);
    fgw_kv_iter_free(iter);
}

enum fgw_err rocks_scan(struct rocks *rocks, struct fgw_bytes lower, struct fgw_bytes upper,
                        rocks_scan_fn *fn, void *context)
{
    struct scan_job job = {fgw_storage_kv(rocks->storage), lower, upper, fn, context, FGW_OK};
    fgw_pool_run(fgw_storage_pool(rocks->storage), scan_on_pool, &job);
    return job.err;
}
