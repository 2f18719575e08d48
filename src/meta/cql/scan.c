/* scan.c: the rows of a bucket's shards, merged in the order of their keys (design/metadata.md
 * section 7). Each shard is one partition and is read in pages; pages are asked for side by side,
 * and again only for shards that ran dry, so that a list page costs one round, rarely two.
 *
 * Rows are what a database takes time for, so a page asks for little more than it returns. Where a
 * caller seeks past common prefixes, how much there is between them is not known beforehand: pages
 * grow to what the entries still wanted take by what those so far have taken, and shrink while a
 * whole page lay under one prefix.
 */
#include <math.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "meta/cql/cql_internal.h"
#include "meta/lister.h"

/* What one round of a scan may bring: so many rows (more only as fast as the last round was brought),
 * and so much memory, of which all scans of the process have a share. */
enum { ROUND_ROWS = 16384, ROUND_MS = 1000, PAGE_ROWS_MAX = 16384, SCANS_AT_ONCE = 4 };
enum { ROUND_BYTES_MAX = 24 << 20 };

/* What a page of `wanted` entries takes from one shard of `shards`: the mean, three deviations and a
 * little: of 1,000 entries in 64 shards one page in fifty asks some shard once more. */
static int32_t rows_per_shard(size_t wanted, unsigned shards)
{
    double mean = (double)wanted / shards;
    return (int32_t)(mean + 3 * sqrt(mean) + 3);
}

void cql_scan_init(struct cql_scan *scan, struct fgw_bytes start, struct fgw_bytes prefix,
                   size_t wanted)
{
    scan->shards = cql_shards(&scan->bucket_id);
    scan->wanted = wanted;
    scan->page_rows = rows_per_shard(wanted, scan->shards);
    scan->rows_most = PAGE_ROWS_MAX;
    scan->seeks = 0;
    scan->prefixes = 0;
    scan->rows_read = 0;
    scan->bytes_read = 0;
    scan->round_rows = 0;
    scan->round_ms = 0;
    atomic_fetch_add(&scan->cql->scans, 1);
    scan->streams = fgw_xcalloc(scan->shards, sizeof *scan->streams);
    scan->heap = fgw_xcalloc(scan->shards, sizeof *scan->heap);
    scan->heap_size = 0;
    scan->heap_valid = false;
    fgw_buf_init(&scan->to, 0);
    (void)fgw_prefix_successor(&scan->to, prefix);
    for (unsigned i = 0; i < scan->shards; i++) {
        struct cql_stream *stream = &scan->streams[i];
        fgw_arena_init(&stream->arena, 0);
        fgw_buf_init(&stream->from, 0);
        fgw_buf_init(&stream->paging, 0);
        fgw_buf_init(&stream->limit, 0);
        (void)fgw_buf_append(&stream->from, start);
    }
}

void cql_scan_deinit(struct cql_scan *scan)
{
    for (unsigned i = 0; i < scan->shards; i++) {
        fgw_arena_deinit(&scan->streams[i].arena);
        fgw_buf_deinit(&scan->streams[i].from);
        fgw_buf_deinit(&scan->streams[i].paging);
        fgw_buf_deinit(&scan->streams[i].limit);
    }
    fgw_xfree(scan->streams);
    fgw_xfree(scan->heap);
    fgw_buf_deinit(&scan->to);
    atomic_fetch_sub(&scan->cql->scans, 1);
}

/* -- pages ---------------------------------------------------------------------------------------- */

enum fgw_err cql_entry_take(struct fgw_arena *arena, const struct fgw_cql_result *result,
                            struct cql_entry *out_entry)
{
    struct cql_entry entry = {.state = CQL_LIVE};
    struct fgw_bytes bytes;
    int32_t state = CQL_LIVE;
    if (fgw_cql_get_blob(result, "key", &bytes) != FGW_OK) {
        return FGW_ERR_CORRUPT;
    }
    entry.key = fgw_arena_copy(arena, bytes);
    if (fgw_cql_result_column(result, "upload_id") >= 0) {
        *out_entry = entry;
        return fgw_cql_get_text(result, "upload_id", &bytes) == FGW_OK &&
                       fgw_id_parse(bytes, &out_entry->id) == FGW_OK
                   ? FGW_OK
                   : FGW_ERR_CORRUPT;
    }
    enum fgw_err err = fgw_cql_get_int(result, "state", &state);
    if (err == FGW_OK && fgw_cql_result_column(result, "version_id") >= 0) {
        err = cql_get_id(result, "version_id", &entry.id);
    }
    if (err == FGW_OK) {
        err = cql_get_id(result, "rev", &entry.rev);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_blob(result, "listing", &bytes);
    }
    if (err != FGW_OK) {
        return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
    }
    if (state < CQL_LIVE || state > CQL_MOVED) {
        return FGW_ERR_NEWER_VERSION;
    }
    entry.state = (enum cql_state)state;
    entry.listing = fgw_arena_copy(arena, bytes);
    *out_entry = entry;
    return FGW_OK;
}

enum fgw_err cql_entries_take(struct fgw_arena *arena, struct fgw_cql_result *result,
                              struct cql_entry **out_rows, size_t *out_count)
{
    size_t most = fgw_cql_result_row_count(result);
    struct cql_entry *rows = fgw_arena_alloc(arena, (most + 1) * sizeof *rows);
    size_t count = 0;
    while (count < most && fgw_cql_result_next(result)) {
        enum fgw_err err = cql_entry_take(arena, result, &rows[count]);
        if (err != FGW_OK) {
            return err;
        }
        count++;
    }
    *out_rows = rows;
    *out_count = count;
    return FGW_OK;
}

/* -- reading ahead ---------------------------------------------------------------------------------- */

static bool is_dry(const struct cql_stream *stream)
{
    return stream->at == stream->count && !stream->ended;
}

/* Asks for the next page of up to CQL_PARALLEL_MAX dry shards from *next on. */
static enum fgw_err fill_some(struct cql_scan *scan, unsigned *next, struct fgw_error *error)
{
    struct fgw_cql_call **calls = fgw_xcalloc(CQL_PARALLEL_MAX, sizeof(struct fgw_cql_call *));
    unsigned *shards = fgw_xcalloc(CQL_PARALLEL_MAX, sizeof *shards);
    size_t count = 0;
    enum fgw_err first = FGW_OK;
    for (; *next < scan->shards && count < CQL_PARALLEL_MAX; (*next)++) {
        if (is_dry(&scan->streams[*next])) {
            shards[count] = *next;
            calls[count++] = cql_stream_ask(scan, *next);
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct fgw_cql_result *result = NULL;
        enum fgw_err err = cql_wait(scan->cql, calls[i], &result, error);
        if (err == FGW_OK) {
            err = cql_stream_take(scan, shards[i], result);
        } else if (err == FGW_ERR_TOO_LARGE) {
            err = cql_stream_narrow(scan, shards[i], error);
        }
        first = first == FGW_OK ? err : first;
    }
    fgw_xfree(calls);
    fgw_xfree(shards);
    return first;
}

static bool any_dry(const struct cql_scan *scan)
{
    for (unsigned i = 0; i < scan->shards; i++) {
        if (is_dry(&scan->streams[i])) {
            return true;
        }
    }
    return false;
}

/* Shards that will run dry soon are read again from where they stand, with those that have: rows of
 * all shards are used up at the same pace, and a round costs more time than some rows twice. */
static void join_dry(struct cql_scan *scan, size_t few)
{
    for (unsigned i = 0; i < scan->shards; i++) {
        struct cql_stream *stream = &scan->streams[i];
        if (stream->at < stream->count && stream->count - stream->at < few && !stream->ended &&
            stream->depth == 0) {
            cql_stream_goto(stream, stream->rows[stream->at].key);
            stream->at = stream->count;
        }
    }
}

/* What one round may bring, by the rows seen so far. */
static double round_rows_most(const struct cql_scan *scan)
{
    unsigned scans = atomic_load(&scan->cql->scans);
    double bytes = ROUND_BYTES_MAX;
    if (scans > SCANS_AT_ONCE) {
        bytes = bytes * SCANS_AT_ONCE / scans;
    }
    double by_size = bytes * (double)scan->rows_read / (double)(scan->bytes_read + 1);
    double by_time = (double)scan->round_rows * ROUND_MS / (double)(scan->round_ms + 1);
    double rows = by_time > ROUND_ROWS ? by_time : ROUND_ROWS;
    return by_size < rows ? by_size : rows;
}

/* What the prefixes still wanted take from one shard, if they are like those seen. */
static int32_t rows_to_the_end(const struct cql_scan *scan)
{
    size_t left = scan->wanted > scan->prefixes ? scan->wanted - scan->prefixes : 1;
    size_t rows = left * (scan->rows_read / scan->prefixes + 1);
    int32_t most = (int32_t)(round_rows_most(scan) / scan->shards);
    most = most < scan->rows_most ? most : scan->rows_most;
    int32_t wanted = rows_per_shard(rows, scan->shards);
    return wanted < most ? wanted : most;
}

static void adapt(struct cql_scan *scan)
{
    int32_t rows = scan->page_rows;
    unsigned seeks = scan->seeks;
    scan->seeks = 0;
    if (seeks >= 2) {
        int32_t more = rows_to_the_end(scan);
        scan->page_rows = more > rows ? more : rows;
        join_dry(scan, (size_t)scan->page_rows / 2);
    } else if (seeks == 1) {
        scan->page_rows = rows / 2 > CQL_SCAN_ROWS_LEAST ? rows / 2 : CQL_SCAN_ROWS_LEAST;
    }
}

/* Until every shard has a row or is at its end: pages may be empty with more to come. */
static enum fgw_err fill(struct cql_scan *scan, struct fgw_error *error)
{
    if (!any_dry(scan)) {
        return FGW_OK;
    }
    if (scan->within == 0) {
        adapt(scan);
    }
    uint64_t start_ms = fgw_clock_boot_ms();
    size_t had = scan->rows_read;
    while (any_dry(scan)) {
        for (unsigned next = 0; next < scan->shards;) {
            enum fgw_err err = fill_some(scan, &next, error);
            if (err != FGW_OK) {
                return err;
            }
        }
    }
    scan->round_ms = fgw_clock_boot_ms() - start_ms;
    scan->round_rows = scan->rows_read - had;
    return FGW_OK;
}

/* -- the merge -------------------------------------------------------------------------------------- */

static const struct cql_entry *front(const struct cql_scan *scan, unsigned shard)
{
    const struct cql_stream *stream = &scan->streams[shard];
    return &stream->rows[stream->at];
}

static void sift_down(struct cql_scan *scan, unsigned at)
{
    for (;;) {
        unsigned least = at;
        for (unsigned child = 2 * at + 1; child <= 2 * at + 2; child++) {
            if (child < scan->heap_size && fgw_bytes_cmp(front(scan, scan->heap[child])->key,
                                                         front(scan, scan->heap[least])->key) < 0) {
                least = child;
            }
        }
        if (least == at) {
            return;
        }
        unsigned moved = scan->heap[at];
        scan->heap[at] = scan->heap[least];
        scan->heap[least] = moved;
        at = least;
    }
}

static void build_heap(struct cql_scan *scan)
{
    scan->heap_size = 0;
    for (unsigned i = 0; i < scan->shards; i++) {
        if (scan->streams[i].at < scan->streams[i].count) {
            scan->heap[scan->heap_size++] = i;
        }
    }
    for (unsigned i = scan->heap_size / 2; i > 0; i--) {
        sift_down(scan, i - 1);
    }
    scan->heap_valid = true;
}

enum fgw_err cql_scan_next(struct cql_scan *scan, struct cql_entry *out_entry,
                           struct fgw_error *error)
{
    if (!scan->heap_valid) {
        enum fgw_err err = fill(scan, error);
        if (err != FGW_OK) {
            return err;
        }
        build_heap(scan);
    }
    if (scan->heap_size == 0) {
        return FGW_ERR_NOT_FOUND;
    }
    unsigned shard = scan->heap[0];
    struct cql_stream *stream = &scan->streams[shard];
    *out_entry = stream->rows[stream->at++];
    if (stream->at < stream->count) {
        sift_down(scan, 0);
    } else if (stream->ended) {
        scan->heap[0] = scan->heap[--scan->heap_size];
        sift_down(scan, 0);
    } else {
        scan->heap_valid = false;
    }
    return FGW_OK;
}

void cql_scan_seek(struct cql_scan *scan, struct fgw_bytes key)
{
    for (unsigned i = 0; i < scan->shards; i++) {
        struct cql_stream *stream = &scan->streams[i];
        while (stream->at < stream->count && fgw_bytes_cmp(stream->rows[stream->at].key, key) < 0) {
            stream->at++;
        }
        if (is_dry(stream)) {
            /* all that was read lies below: go there instead of reading on */
            cql_stream_goto(stream, key);
        }
    }
    scan->seeks++;
    scan->prefixes++;
    scan->heap_valid = false;
}

enum fgw_err cql_entry_decode(struct fgw_arena *arena, const struct cql_entry *entry,
                              struct cql_row *out_row)
{
    struct cql_row row = {.state = entry->state};
    enum fgw_err err = fgw_row_decode_object(arena, fgw_arena_copy(arena, entry->key),
                                             fgw_arena_copy(arena, entry->listing), FGW_ROW_LISTING,
                                             &row.object, NULL);
    if (err == FGW_OK) {
        row.object.rev = entry->rev;
        *out_row = row;
    }
    return err;
}
