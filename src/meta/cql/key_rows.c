/* key_rows.c: the rows of object_versions of one key, newest first, however many removed ones lie
 * between them (id_range.c).
 */
#include "meta/cql/cql_internal.h"

void cql_key_rows_init(struct cql_key_rows *rows, struct cql *cql, const struct cql_place *place,
                       int32_t page_rows)
{
    *rows = (struct cql_key_rows){
        .cql = cql, .place = place, .page_rows = page_rows > 0 ? page_rows : 1};
    cql_id_range_init(&rows->ids, false);
    fgw_buf_init(&rows->paging, 0);
}

void cql_key_rows_deinit(struct cql_key_rows *rows)
{
    fgw_cql_result_free(rows->result);
    fgw_buf_deinit(&rows->paging);
}

/* Less of it: fewer rows a page, then no page of an old query, then fewer ids. */
static enum fgw_err narrow(struct cql_key_rows *rows, struct fgw_error *error)
{
    if (rows->page_rows > CQL_SCAN_ROWS_LEAST) {
        rows->page_rows =
            rows->page_rows / 4 > CQL_SCAN_ROWS_LEAST ? rows->page_rows / 4 : CQL_SCAN_ROWS_LEAST;
        return FGW_OK;
    }
    fgw_buf_clear(&rows->paging);
    if (rows->delivered) { /* on behind it, without the server's state */
        rows->delivered = false;
        cql_id_range_pass(&rows->ids, &rows->last);
        return FGW_OK;
    }
    return cql_id_range_narrow(&rows->ids) ? FGW_OK
                                           : fgw_error_set(error, FGW_ERR_UNAVAILABLE, NULL);
}

static enum fgw_err ask(struct cql_key_rows *rows, struct fgw_error *error)
{
    const struct cql_place *place = rows->place;
    struct fgw_cql_value values[] = {cql_id_uuid(place->bucket_id), fgw_cql_int(cql_shard(place)),
                                     fgw_cql_blob(place->key), cql_id_blob(&rows->ids.behind),
                                     cql_id_blob(&rows->ids.to)};
    struct fgw_cql_options options = {.serial = rows->full,
                                      .page_size = rows->page_rows,
                                      .paging_state = fgw_buf_bytes(&rows->paging)};
    bool bounded = rows->ids.bounded;
    enum cql_statement_id id = rows->full ? (bounded ? CQL_VERSIONS_OF_TO : CQL_VERSIONS_OF)
                                          : (bounded ? CQL_VERSIONS_BELOW_TO : CQL_VERSIONS_BELOW);
    enum fgw_err err =
        cql_read(rows->cql, id, values, bounded ? 5 : 4, &options, &rows->result, error);
    return err == FGW_ERR_TOO_LARGE ? narrow(rows, error) : err;
}

static void leave_page(struct cql_key_rows *rows)
{
    fgw_buf_clear(&rows->paging);
    if (fgw_cql_result_has_more(rows->result)) {
        (void)fgw_buf_append(&rows->paging, fgw_cql_result_paging_state(rows->result));
    } else {
        rows->ended = !cql_id_range_next(&rows->ids);
        rows->delivered = false;
    }
    fgw_cql_result_free(rows->result);
    rows->result = NULL;
}

enum fgw_err cql_key_rows_next(struct cql_key_rows *rows, struct fgw_error *error)
{
    for (;;) {
        if (rows->result != NULL && fgw_cql_result_next(rows->result)) {
            rows->delivered = true;
            return cql_get_id(rows->result, "version_id", &rows->last);
        }
        if (rows->result != NULL) {
            leave_page(rows);
        }
        if (rows->ended) {
            return FGW_ERR_NOT_FOUND;
        }
        enum fgw_err err = ask(rows, error);
        if (err != FGW_OK) {
            return err;
        }
    }
}
