/* part.c: parts of uploads. A part row is insert-only, one an attempt; it counts when the upload is
 * found open after the row was written: whoever completes reads the rows later than that. */
#include "meta/cql/cql_internal.h"

static enum fgw_err insert_part(struct cql *cql, const struct fgw_upload *upload,
                                const struct fgw_part *part, struct fgw_error *error)
{
    char hex[33];
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_id_hex(&upload->id, hex);
    fgw_row_encode_part(&row, part);
    struct fgw_cql_value values[] = {fgw_cql_str(hex), fgw_cql_int((int32_t)part->number),
                                     cql_id_blob(&part->attempt),
                                     fgw_cql_blob(fgw_buf_bytes(&row))};
    enum fgw_err err = cql_write(cql, CQL_PART_INSERT, values, 4, error);
    fgw_buf_deinit(&row);
    return err;
}

static void delete_part(struct cql *cql, const struct fgw_upload *upload,
                        const struct fgw_part *part)
{
    char hex[33];
    fgw_id_hex(&upload->id, hex);
    struct fgw_cql_value values[] = {fgw_cql_str(hex), fgw_cql_int((int32_t)part->number),
                                     cql_id_blob(&part->attempt)};
    enum fgw_err ignored = cql_write(cql, CQL_PART_DELETE, values, 3, NULL);
    (void)ignored; /* nobody reads parts of an upload that is not open */
}

static enum fgw_err put_part(struct cql *cql, struct fgw_arena *arena,
                             const struct fgw_upload *upload, const struct fgw_part *wanted,
                             struct fgw_blob_staged *staged, struct fgw_error *error)
{
    struct fgw_part part = *wanted;
    struct cql_upload_row row = {0};
    if (upload->completed) {
        return FGW_ERR_NO_SUCH_UPLOAD;
    }
    enum fgw_err err = fgw_blob_make_durable(staged);
    if (err != FGW_OK) {
        return err;
    }
    part.extent = staged->extent;
    err = insert_part(cql, upload, &part, error);
    if (err != FGW_OK) {
        return err;
    }
    err = cql_upload_read(cql, arena, &upload->id, false, &row, error);
    if (err != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_UNKNOWN_OUTCOME, NULL);
    }
    if (row.state != CQL_UPLOAD_OPEN) {
        delete_part(cql, upload, &part);
        return FGW_ERR_NO_SUCH_UPLOAD;
    }
    return FGW_OK;
}

enum fgw_err cql_part_put(struct fgw_meta *meta, struct fgw_arena *arena,
                          const struct fgw_upload *upload, const struct fgw_part *part,
                          struct fgw_blob_staged *staged, struct fgw_error *error)
{
    enum fgw_err err = put_part(cql_of(meta), arena, upload, part, staged, error);
    if (err == FGW_OK) {
        fgw_blob_confirm(staged);
    } else if (err != FGW_ERR_UNKNOWN_OUTCOME) {
        fgw_blob_discard(staged);
    }
    return cql_fail(error, err, "writing part of", upload->key);
}

struct part_scan {
    struct fgw_part *parts;
    size_t count, cap, max;
    bool all_attempts;
    bool truncated;
};

static enum fgw_err take_part(struct part_scan *scan, const struct fgw_cql_result *result)
{
    struct fgw_bytes data;
    struct fgw_part part;
    enum fgw_err err = fgw_cql_get_blob(result, "data", &data);
    if (err == FGW_OK) {
        err = fgw_row_decode_part(data, &part);
    }
    if (err != FGW_OK) {
        return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
    }
    /* newest attempt first: later rows of the same number are older */
    if (!scan->all_attempts && scan->count > 0 &&
        scan->parts[scan->count - 1].number == part.number) {
        return FGW_OK;
    }
    if (scan->max != 0 && scan->count == scan->max) {
        scan->truncated = true;
        return FGW_OK;
    }
    if (scan->count == scan->cap) {
        scan->cap = scan->cap == 0 ? 64 : scan->cap * 2;
        scan->parts = fgw_xrealloc(scan->parts, scan->cap * sizeof *scan->parts);
    }
    scan->parts[scan->count++] = part;
    return FGW_OK;
}

static enum fgw_err scan_parts(struct cql *cql, struct fgw_arena *arena,
                               const struct fgw_upload *upload, unsigned after,
                               struct part_scan *scan, struct fgw_error *error)
{
    char hex[33];
    fgw_id_hex(&upload->id, hex);
    struct fgw_cql_value values[] = {fgw_cql_str(hex), fgw_cql_int((int32_t)after)};
    struct fgw_cql_options options = {.page_size = 1000};
    bool more = true;
    while (more && !scan->truncated) {
        struct fgw_cql_result *result = NULL;
        enum fgw_err err = cql_read(cql, CQL_PART_SCAN, values, 2, &options, &result, error);
        if (err != FGW_OK) {
            return err;
        }
        more = fgw_cql_result_has_more(result);
        options.paging_state = fgw_arena_copy(arena, fgw_cql_result_paging_state(result));
        while (err == FGW_OK && !scan->truncated && fgw_cql_result_next(result)) {
            err = take_part(scan, result);
        }
        fgw_cql_result_free(result);
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

enum fgw_err cql_part_list(struct fgw_meta *meta, struct fgw_arena *arena,
                           const struct fgw_upload *upload, unsigned after, unsigned max,
                           bool all_attempts, struct fgw_part **out_parts, size_t *out_count,
                           bool *out_truncated, struct fgw_error *error)
{
    struct part_scan scan = {.max = max, .all_attempts = all_attempts};
    enum fgw_err err = scan_parts(cql_of(meta), arena, upload, after, &scan, error);
    if (err == FGW_OK) {
        struct fgw_part *parts = fgw_arena_alloc(arena, (scan.count + 1) * sizeof *parts);
        if (scan.count > 0) {
            memcpy(parts, scan.parts, scan.count * sizeof *parts);
        }
        *out_parts = parts;
        *out_count = scan.count;
        *out_truncated = scan.truncated;
    }
    fgw_xfree(scan.parts);
    return cql_fail(error, err, "listing parts of", upload->key);
}
