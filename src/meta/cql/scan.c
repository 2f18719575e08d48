/* scan.c: the rows of a bucket's shards, merged in the order of their keys (design/metadata.md
 * section 7). Each shard is one partition and is read in pages; pages are asked for side by side,
 * and again only for shards that ran dry, so that a list page costs one round, rarely two.
 */
#include <math.h>

#include "meta/cql/cql_internal.h"
#include "meta/lister.h"

/* What a page of `wanted` entries takes from one shard of `shards`: the mean and five deviations. */
static int32_t rows_per_shard(size_t wanted, unsigned shards)
{
    double mean = (double)wanted / shards;
    return (int32_t)(mean + 5 * sqrt(mean) + 3);
}

void cql_scan_init(struct cql_scan *scan, struct fgw_bytes start, struct fgw_bytes prefix,
                   size_t wanted)
{
    scan->shards = cql_shards(&scan->bucket_id);
    scan->page_rows = rows_per_shard(wanted, scan->shards);
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

/* -- past removed rows ------------------------------------------------------------------------------ */

/* Cassandra refuses a read that meets too many rows that were removed lately (100,000 by default):
 * smaller pages help where rows are between them, else only smaller ranges of keys. A range begins at
 * `from` and ends where byte number `depth` of it is larger by `step`; refused, it is halved, byte by
 * byte deeper; read, it is doubled. */
enum { PAGE_ROWS_LEAST = 8, DEPTH_MAX = 1024, STEP_MAX = 128 };

/* Byte `depth` of `from` plus step, with the carry; empty when there is no such key. */
static void set_limit(struct cql_stream *stream)
{
    uint8_t key[DEPTH_MAX + 1] = {0};
    size_t known = stream->from.len < stream->depth ? stream->from.len : stream->depth;
    if (known > 0) {
        memcpy(key, stream->from.ptr, known);
    }
    unsigned carry = stream->step;
    for (unsigned i = stream->depth; i > 0 && carry > 0; i--) {
        unsigned sum = key[i - 1] + carry;
        key[i - 1] = (uint8_t)sum;
        carry = sum >> 8;
    }
    fgw_buf_clear(&stream->limit);
    if (carry == 0) {
        (void)fgw_buf_append(&stream->limit, fgw_bytes(key, stream->depth));
    }
}

/* From now on behind what was delivered, by key and not by the server's state. */
static void restart_behind(struct cql_stream *stream)
{
    if (stream->count > 0 && stream->paging.len > 0) {
        fgw_buf_clear(&stream->from);
        (void)fgw_buf_append(&stream->from, stream->rows[stream->count - 1].key);
        (void)fgw_buf_append_byte(&stream->from, 0);
    }
    fgw_buf_clear(&stream->paging);
}

static enum fgw_err narrow(struct cql_scan *scan, unsigned shard, struct fgw_error *error)
{
    struct cql_stream *stream = &scan->streams[shard];
    if (scan->page_rows > PAGE_ROWS_LEAST) {
        scan->page_rows /= 4;
        return FGW_OK;
    }
    if (stream->count > 0 && stream->paging.len > 0 && scan->all != CQL_HEAD_SCAN) {
        /* several rows of one key: where to go on cannot be told by the key */
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, NULL);
    }
    restart_behind(stream);
    if (stream->depth == 0) {
        stream->depth = 1;
        stream->step = STEP_MAX;
    } else if (stream->step > 1) {
        stream->step /= 2;
    } else {
        stream->depth++;
        stream->step = STEP_MAX;
    }
    if (stream->depth > DEPTH_MAX) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, NULL);
    }
    set_limit(stream);
    return FGW_OK;
}

/* A narrowed range was read to its end: the next one, twice as large. */
static void widen(struct cql_stream *stream)
{
    fgw_buf_clear(&stream->from);
    (void)fgw_buf_append(&stream->from, fgw_buf_bytes(&stream->limit));
    if (stream->step < STEP_MAX) {
        stream->step *= 2;
    } else if (stream->depth > 1) {
        stream->depth--;
        stream->step = 1;
    } else {
        stream->depth = 0;
    }
    fgw_buf_clear(&stream->limit);
    if (stream->depth > 0) {
        set_limit(stream);
    }
}

/* Where this shard's next query ends, of its own limit and the scan's; empty: nowhere. */
static struct fgw_bytes query_end(const struct cql_scan *scan, const struct cql_stream *stream)
{
    struct fgw_bytes limit = fgw_buf_bytes(&stream->limit);
    struct fgw_bytes to = fgw_buf_bytes(&scan->to);
    return limit.len > 0 && (to.len == 0 || fgw_bytes_cmp(limit, to) < 0) ? limit : to;
}

static bool is_narrowed(const struct cql_scan *scan, const struct cql_stream *stream)
{
    return stream->limit.len > 0 &&
           fgw_bytes_eq(query_end(scan, stream), fgw_buf_bytes(&stream->limit));
}

static struct fgw_cql_call *ask(struct cql_scan *scan, unsigned shard)
{
    struct cql_stream *stream = &scan->streams[shard];
    struct fgw_bytes end = query_end(scan, stream);
    struct fgw_cql_value values[] = {cql_id_uuid(&scan->bucket_id), fgw_cql_int((int32_t)shard),
                                     fgw_cql_blob(fgw_buf_bytes(&stream->from)), fgw_cql_blob(end)};
    struct fgw_cql_options options = {.page_size = scan->page_rows,
                                      .paging_state = fgw_buf_bytes(&stream->paging)};
    bool bounded = end.len > 0;
    return cql_start(scan->cql, bounded ? scan->bounded : scan->all, values, bounded ? 4 : 3,
                     &options);
}

static enum fgw_err answered(struct cql_scan *scan, unsigned shard, struct fgw_cql_result *result)
{
    struct cql_stream *stream = &scan->streams[shard];
    fgw_arena_reset(&stream->arena);
    fgw_buf_clear(&stream->paging);
    stream->at = 0;
    stream->count = 0;
    if (fgw_cql_result_has_more(result)) {
        (void)fgw_buf_append(&stream->paging, fgw_cql_result_paging_state(result));
    } else if (is_narrowed(scan, stream)) {
        widen(stream);
    } else {
        stream->ended = true;
    }
    enum fgw_err err = cql_entries_take(&stream->arena, result, &stream->rows, &stream->count);
    fgw_cql_result_free(result);
    return err;
}

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
            calls[count++] = ask(scan, *next);
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct fgw_cql_result *result = NULL;
        enum fgw_err err = cql_wait(scan->cql, calls[i], &result, error);
        if (err == FGW_OK) {
            err = answered(scan, shards[i], result);
        } else if (err == FGW_ERR_TOO_LARGE) {
            err = narrow(scan, shards[i], error);
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

/* Until every shard has a row or is at its end: pages may be empty with more to come. */
static enum fgw_err fill(struct cql_scan *scan, struct fgw_error *error)
{
    while (any_dry(scan)) {
        for (unsigned next = 0; next < scan->shards;) {
            enum fgw_err err = fill_some(scan, &next, error);
            if (err != FGW_OK) {
                return err;
            }
        }
    }
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
            fgw_buf_clear(&stream->paging);
            fgw_buf_clear(&stream->from);
            (void)fgw_buf_append(&stream->from, key);
            if (stream->depth > 0) {
                set_limit(stream);
            }
        }
    }
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
