/* scan.c: what RocksDB alone takes for the rows that a list page of 1,000 returns.
 *
 *   fgw-scan DIRECTORY/meta
 *
 * Walks all rows of names in order, 1,000 with an iterator of its own each, as a list does, in a data
 * directory that no process uses. Prints a JSON object: rows, bytes a row, pages, CPU and time a page in us.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "kv/kv.h"

enum { ROWS_A_PAGE = 1000, LAST_MAX = 4096 };

static const size_t CACHE_BYTES = (size_t)1 << 30;

struct totals {
    uint64_t rows, pages, bytes;
};

static double seconds(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Rows from `last` on; *last becomes the last one met. False at the end. */
static bool page(struct fgw_kv *kv, struct fgw_buf *last, struct totals *totals)
{
    struct fgw_kv_iter *iter =
        fgw_kv_iter_new(kv, FGW_KV_NAMES, fgw_buf_bytes(last), fgw_bytes(NULL, 0), NULL);
    unsigned count = 0;
    for (fgw_kv_iter_seek_first(iter); fgw_kv_iter_valid(iter) && count < ROWS_A_PAGE;
         fgw_kv_iter_next(iter)) {
        totals->bytes += fgw_kv_iter_key(iter).len + fgw_kv_iter_value(iter).len;
        count++;
    }
    bool more = fgw_kv_iter_valid(iter);
    if (more) {
        fgw_buf_clear(last);
        FGW_CHECK(fgw_buf_append(last, fgw_kv_iter_key(iter)) == FGW_OK);
    }
    fgw_kv_iter_free(iter);
    totals->rows += count;
    totals->pages++;
    return more;
}

static void walk(struct fgw_kv *kv, struct totals *totals)
{
    struct fgw_buf last;
    fgw_buf_init(&last, LAST_MAX);
    while (page(kv, &last, totals)) {
    }
    fgw_buf_deinit(&last);
}

int main(int argc, char **argv)
{
    struct fgw_kv *kv = NULL;
    struct fgw_error error = {0};
    struct fgw_kv_options options = {.cache_bytes = CACHE_BYTES, .must_exist = true};
    if (argc != 2 || fgw_kv_open(argv[1], &options, &kv, &error) != FGW_OK) {
        (void)fprintf(stderr, "usage: fgw-scan DIRECTORY/meta\n%s\n", fgw_error_message(&error));
        return 2;
    }
    struct totals first = {0};
    struct totals totals = {0};
    walk(kv, &first); /* fills the cache */
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    double wall = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < 3; i++) {
        walk(kv, &totals);
    }
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    (void)printf("{\"rows\":%llu,\"row_bytes\":%.1f,\"pages\":%llu,\"cpu_us\":%.1f,"
                 "\"page_us\":%.1f}\n",
                 (unsigned long long)first.rows,
                 first.rows == 0 ? 0 : (double)first.bytes / (double)first.rows,
                 (unsigned long long)first.pages, cpu / (double)totals.pages * 1e6,
                 wall / (double)totals.pages * 1e6);
    fgw_kv_close(kv);
    return 0;
}
