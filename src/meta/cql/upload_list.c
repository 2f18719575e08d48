/* upload_list.c: open uploads of a bucket: look-up rows of all shards in the order of keys, each
 * checked against the upload's own row before it counts. One that is completing is carried to its end
 * first, whoever began it: a list never shows an upload that a call on it would find completed. */
#include "meta/cql/cql_internal.h"
#include "meta/lister.h"

enum { CHECK_AT_ONCE = 100 };

struct candidate {
    struct fgw_bytes key;
    struct fgw_id id;
    struct fgw_cql_call *call;
    struct cql_upload_row row;
};

struct upload_page {
    struct cql *cql;
    struct fgw_arena *arena;
    const struct fgw_bucket *bucket;
    const struct fgw_upload_list_query *query;
    struct fgw_lister lister;
    struct cql_scan scan;
    struct candidate *candidates; /* CHECK_AT_ONCE */
    struct fgw_upload *uploads;   /* by index of the lister's entries */
};

static bool behind_marker(const struct upload_page *page, const struct cql_entry *entry)
{
    const struct fgw_upload_list_query *query = page->query;
    return !query->has_upload_id_marker || !fgw_bytes_eq(entry->key, query->key_marker) ||
           memcmp(&entry->id, &query->upload_id_marker, sizeof entry->id) > 0;
}

/* *out_count 0: no more. */
static enum fgw_err next_candidates(struct upload_page *page, size_t *out_count,
                                    struct fgw_error *error)
{
    size_t count = 0;
    while (count < CHECK_AT_ONCE) {
        struct cql_entry entry;
        enum fgw_err err = cql_scan_next(&page->scan, &entry, error);
        if (err == FGW_ERR_NOT_FOUND) {
            break;
        }
        if (err != FGW_OK) {
            return err;
        }
        if (behind_marker(page, &entry)) {
            page->candidates[count++] =
                (struct candidate){.key = fgw_arena_copy(page->arena, entry.key), .id = entry.id};
        }
    }
    *out_count = count;
    return FGW_OK;
}

static enum fgw_err check(struct upload_page *page, size_t count, struct fgw_error *error)
{
    enum fgw_err first = FGW_OK;
    for (size_t i = 0; i < count; i++) {
        page->candidates[i].call = cql_upload_start(page->cql, &page->candidates[i].id);
    }
    for (size_t i = 0; i < count; i++) {
        struct candidate *candidate = &page->candidates[i];
        enum fgw_err err = cql_upload_wait(page->cql, page->arena, candidate->call, &candidate->id,
                                           &candidate->row, error);
        first = first == FGW_OK ? err : first;
        if (err == FGW_OK && candidate->row.state == CQL_UPLOAD_COMPLETING) {
            /* what cannot be carried on now is still in progress */
            enum fgw_err ignored =
                cql_finish_complete(page->cql, page->arena, &candidate->row, NULL);
            (void)ignored;
        }
    }
    return first;
}

static enum fgw_lister_next add(struct upload_page *page, const struct candidate *candidate)
{
    enum cql_upload_state state = candidate->row.state;
    bool visible = state == CQL_UPLOAD_OPEN || state == CQL_UPLOAD_COMPLETING;
    bool take = false;
    enum fgw_lister_next next = fgw_lister_key(&page->lister, candidate->key, visible, &take);
    if (take) {
        struct fgw_object entry = {.key = candidate->key, .upload_id = candidate->id};
        next = fgw_lister_add(&page->lister, &entry);
        if (next != FGW_LISTER_DONE) {
            page->uploads[page->lister.count - 1] = candidate->row.upload;
        }
    }
    return next;
}

static enum fgw_err fill_page(struct upload_page *page, struct fgw_error *error)
{
    enum fgw_lister_next next = FGW_LISTER_NEXT;
    size_t count = 1;
    while (next != FGW_LISTER_DONE && count > 0) {
        enum fgw_err err = next_candidates(page, &count, error);
        if (err == FGW_OK) {
            err = check(page, count, error);
        }
        if (err != FGW_OK) {
            return err;
        }
        for (size_t i = 0; i < count && next != FGW_LISTER_DONE; i++) {
            next = add(page, &page->candidates[i]);
            if (next == FGW_LISTER_SEEK) {
                cql_scan_seek(&page->scan, fgw_lister_seek(&page->lister));
            }
        }
    }
    return FGW_OK;
}

static void take_result(struct upload_page *page, struct fgw_upload_list *out_list)
{
    struct fgw_object_list found;
    fgw_lister_result(&page->lister, &found);
    struct fgw_upload_list_entry *entries =
        fgw_arena_zalloc(page->arena, (found.count + 1) * sizeof *entries);
    for (size_t i = 0; i < found.count; i++) {
        entries[i].is_prefix = found.entries[i].is_prefix;
        entries[i].prefix = found.entries[i].prefix;
        if (!entries[i].is_prefix) {
            entries[i].upload = page->uploads[i];
        }
    }
    *out_list = (struct fgw_upload_list){entries, found.count, found.truncated};
}

enum fgw_err cql_upload_list(struct fgw_meta *meta, struct fgw_arena *arena,
                             const struct fgw_bucket *bucket,
                             const struct fgw_upload_list_query *query,
                             struct fgw_upload_list *out_list, struct fgw_error *error)
{
    struct fgw_list_query common = {.prefix = query->prefix,
                                    .delimiter = query->delimiter,
                                    .after = query->key_marker,
                                    .max = query->max,
                                    .has_after_version = query->has_upload_id_marker};
    struct upload_page page = {
        .cql = cql_of(meta), .arena = arena, .bucket = bucket, .query = query};
    page.scan = (struct cql_scan){.cql = page.cql,
                                  .bucket_id = bucket->id,
                                  .all = CQL_UPLOAD_SCAN,
                                  .bounded = CQL_UPLOAD_SCAN_TO,
                                  .within = CQL_UPLOADS_BEHIND,
                                  .within_to = CQL_UPLOADS_BEHIND_TO};
    page.candidates = fgw_arena_zalloc(arena, CHECK_AT_ONCE * sizeof *page.candidates);
    page.uploads = fgw_arena_zalloc(arena, (query->max + 1U) * sizeof *page.uploads);
    fgw_lister_init(&page.lister, arena, &common);
    cql_scan_init(&page.scan, fgw_lister_start(&page.lister), query->prefix, query->max + 1U);
    enum fgw_err err = fill_page(&page, error);
    if (err == FGW_OK) {
        take_result(&page, out_list);
    }
    cql_scan_deinit(&page.scan);
    fgw_lister_deinit(&page.lister);
    return cql_fail(error, err, "listing uploads of bucket", bucket->name);
}
