/* scan_range.c: what a shard of a scan is asked for next: the next page, or less when the database
 * refuses to pass over removed rows.
 *
 * Cassandra refuses a read that meets too many rows that were removed lately (100,000 by default):
 * smaller pages help where rows are between them, else only smaller ranges of keys. A range begins at
 * `from` and ends where byte number `depth` of it is larger by `step`: at first the keys that begin as
 * `from` does; refused, it is halved, byte by byte deeper; read, it is doubled. After a refusal a page
 * begins behind the last row that was delivered, not at the server's paging state. Where keys have
 * several rows, those of a key that is refused alone, and the rest of one that was delivered in part,
 * are read by a statement of their own, and if need be by ranges of ids (id_range.c).
 */
#include "meta/cql/cql_internal.h"

enum { DEPTH_MAX = 1024, STEP_MAX = 128 };

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

static void enter_key(const struct cql_scan *scan, struct cql_stream *stream)
{
    stream->in_key = true;
    cql_id_range_init(&stream->ids, scan->within == CQL_UPLOADS_BEHIND);
}

/* From now on behind what was delivered, by key and not by the server's state. */
static void restart_behind(const struct cql_scan *scan, struct cql_stream *stream)
{
    if (stream->count > 0 && stream->paging.len > 0) {
        const struct cql_entry *last = &stream->rows[stream->count - 1];
        fgw_buf_clear(&stream->from);
        (void)fgw_buf_append(&stream->from, last->key);
        if (scan->within == 0) {
            (void)fgw_buf_append_byte(&stream->from, 0);
        } else {
            if (!stream->in_key) {
                enter_key(scan, stream);
            }
            cql_id_range_pass(&stream->ids, &last->id);
        }
    }
    fgw_buf_clear(&stream->paging);
}

enum fgw_err cql_stream_narrow(struct cql_scan *scan, unsigned shard, struct fgw_error *error)
{
    struct cql_stream *stream = &scan->streams[shard];
    if (scan->page_rows > CQL_SCAN_ROWS_LEAST) {
        scan->page_rows =
            scan->page_rows / 4 > CQL_SCAN_ROWS_LEAST ? scan->page_rows / 4 : CQL_SCAN_ROWS_LEAST;
        scan->rows_most = scan->page_rows;
        return FGW_OK;
    }
    bool in_key = stream->in_key;
    bool delivered = stream->paging.len > 0 && stream->count > 0;
    restart_behind(scan, stream);
    if (in_key && !delivered && !cql_id_range_narrow(&stream->ids)) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, NULL);
    }
    if (stream->in_key) {
        return FGW_OK;
    }
    if (scan->within != 0 && stream->depth > stream->from.len) {
        enter_key(scan, stream); /* nothing but the key `from` and those that begin with it */
        return FGW_OK;
    }
    if (stream->depth == 0 && stream->from.len > 0) {
        stream->depth = stream->from.len < DEPTH_MAX ? (unsigned)stream->from.len : DEPTH_MAX;
        stream->step = 1;
    } else if (stream->depth == 0) {
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

/* The rows of key `from`. */
static struct fgw_cql_call *ask_within(struct cql_scan *scan, unsigned shard,
                                       const struct fgw_cql_options *options)
{
    struct cql_stream *stream = &scan->streams[shard];
    const struct cql_id_range *ids = &stream->ids;
    char behind[33];
    char to[33];
    fgw_id_hex(&ids->behind, behind);
    fgw_id_hex(&ids->to, to);
    struct fgw_cql_value values[] = {cql_id_uuid(&scan->bucket_id), fgw_cql_int((int32_t)shard),
                                     fgw_cql_blob(fgw_buf_bytes(&stream->from)),
                                     ids->ascending ? fgw_cql_str(behind)
                                                    : cql_id_blob(&ids->behind),
                                     ids->ascending ? fgw_cql_str(to) : cql_id_blob(&ids->to)};
    return cql_start(scan->cql, ids->bounded ? scan->within_to : scan->within, values,
                     ids->bounded ? 5 : 4, options);
}

struct fgw_cql_call *cql_stream_ask(struct cql_scan *scan, unsigned shard)
{
    struct cql_stream *stream = &scan->streams[shard];
    struct fgw_bytes end = query_end(scan, stream);
    struct fgw_cql_value values[] = {cql_id_uuid(&scan->bucket_id), fgw_cql_int((int32_t)shard),
                                     fgw_cql_blob(fgw_buf_bytes(&stream->from)), fgw_cql_blob(end)};
    struct fgw_cql_options options = {.page_size = scan->page_rows,
                                      .paging_state = fgw_buf_bytes(&stream->paging)};
    if (stream->in_key) {
        return ask_within(scan, shard, &options);
    }
    bool bounded = end.len > 0;
    return cql_start(scan->cql, bounded ? scan->bounded : scan->all, values, bounded ? 4 : 3,
                     &options);
}

/* The whole key was read: on with the next one. */
static void leave_key(struct cql_stream *stream)
{
    stream->in_key = false;
    (void)fgw_buf_append_byte(&stream->from, 0);
    if (stream->depth > 0) {
        set_limit(stream);
    }
}

enum fgw_err cql_stream_take(struct cql_scan *scan, unsigned shard, struct fgw_cql_result *result)
{
    struct cql_stream *stream = &scan->streams[shard];
    fgw_arena_reset(&stream->arena);
    fgw_buf_clear(&stream->paging);
    stream->at = 0;
    stream->count = 0;
    if (fgw_cql_result_has_more(result)) {
        (void)fgw_buf_append(&stream->paging, fgw_cql_result_paging_state(result));
    } else if (stream->in_key && !cql_id_range_next(&stream->ids)) {
        leave_key(stream);
    } else if (stream->in_key) {
        /* the next ids of it */
    } else if (is_narrowed(scan, stream)) {
        widen(stream);
    } else {
        stream->ended = true;
    }
    enum fgw_err err = cql_entries_take(&stream->arena, result, &stream->rows, &stream->count);
    scan->rows_read += stream->count;
    scan->bytes_read += stream->arena.used_bytes;
    fgw_cql_result_free(result);
    return err;
}

void cql_stream_goto(struct cql_stream *stream, struct fgw_bytes key)
{
    fgw_buf_clear(&stream->paging);
    fgw_buf_clear(&stream->from);
    (void)fgw_buf_append(&stream->from, key);
    stream->in_key = false;
    if (stream->depth > 0) {
        set_limit(stream);
    }
}
