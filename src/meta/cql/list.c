/* list.c: lists of objects: heads of all shards merged under the rules of meta/lister.h. No
 * snapshot: what changes while a page is read may or may not show. A page for which very many rows
 * had to be read (common prefixes with a thousand keys each, say) ends before it is full: the client
 * that waits for it has a time limit, and goes on with the next one. */
#include "meta/cql/cql_internal.h"
#include "meta/lister.h"

enum fgw_err cql_settled_row(struct cql *cql, struct fgw_arena *arena,
                             const struct fgw_id *bucket_id, const struct cql_entry *entry,
                             struct cql_row *out_row, struct fgw_error *error)
{
    enum fgw_err err = cql_entry_decode(arena, entry, out_row);
    if (err != FGW_OK || out_row->state != CQL_DELETING) {
        return err;
    }
    struct cql_place place = {bucket_id, out_row->object.key};
    while (err == FGW_OK && out_row->state == CQL_DELETING) {
        err = cql_head_read(cql, arena, &place, false, out_row, error);
        if (err == FGW_OK && out_row->state == CQL_DELETING) {
            err = cql_finish_delete(cql, arena, &place, out_row, error);
        }
    }
    return err;
}

static enum fgw_err fill_page(struct cql_scan *scan, struct fgw_lister *lister,
                              struct cql_purge *purge, struct fgw_error *error)
{
    enum fgw_lister_next next = FGW_LISTER_NEXT;
    while (next != FGW_LISTER_DONE) {
        struct cql_entry entry;
        struct cql_row row = {.state = CQL_GONE};
        bool take = false;
        enum fgw_err err = cql_scan_next(scan, &entry, error);
        if (err == FGW_ERR_NOT_FOUND) {
            return FGW_OK;
        }
        if (err == FGW_OK && entry.state != CQL_GONE) {
            err = cql_settled_row(scan->cql, lister->arena, &scan->bucket_id, &entry, &row, error);
        }
        if (err != FGW_OK) {
            return err;
        }
        cql_purge_note(purge, lister->arena, &entry);
        bool visible = row.state == CQL_LIVE && !row.object.delete_marker;
        next = fgw_lister_key(lister, entry.key, visible, &take);
        if (take) {
            next = fgw_lister_add(lister, &row.object);
        }
        if (next == FGW_LISTER_SEEK) {
            cql_scan_seek(scan, fgw_lister_seek(lister));
        }
        if (lister->count > 0 && scan->rows_read > scan->cql->options.list_rows) {
            lister->full = true;
            return FGW_OK;
        }
    }
    return FGW_OK;
}

enum fgw_err cql_object_list(struct fgw_meta *meta, struct fgw_arena *arena,
                             const struct fgw_bucket *bucket, const struct fgw_list_query *query,
                             struct fgw_object_list *out_list, struct fgw_error *error)
{
    struct cql_scan scan = {.cql = cql_of(meta),
                            .bucket_id = bucket->id,
                            .all = CQL_HEAD_SCAN,
                            .bounded = CQL_HEAD_SCAN_TO};
    struct fgw_lister lister;
    struct cql_purge purge = {.count = 0};
    fgw_lister_init(&lister, arena, query);
    cql_scan_init(&scan, fgw_lister_start(&lister), query->prefix, query->max + 1U);
    enum fgw_err err = fill_page(&scan, &lister, &purge, error);
    if (err == FGW_OK) {
        fgw_lister_result(&lister, out_list);
        cql_purge_run(scan.cql, &bucket->id, &purge);
    }
    cql_scan_deinit(&scan);
    fgw_lister_deinit(&lister);
    return cql_fail(error, err, "listing bucket", bucket->name);
}
