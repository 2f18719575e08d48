/* version_list.c: lists of versions. First the heads of a page are read, then the rows of
 * object_versions in their range: in this order, because a version moves from the head to the
 * versions when the key is written, and what was head when we looked is there afterwards. Two
 * rounds a page; no snapshot.
 */
#include "meta/cql/cql_internal.h"
#include "meta/lister.h"

struct version_page {
    struct cql *cql;
    struct fgw_arena *arena;
    const struct fgw_bucket *bucket;
    const struct fgw_list_query *query;
    struct fgw_lister lister;
    struct cql_row *heads; /* in the order of keys; of a common prefix its first */
    size_t count;
    struct cql_scan scan;  /* of object_versions */
    struct cql_entry next; /* read ahead */
    bool has_next;
};

/* -- the heads of the page -------------------------------------------------------------------------- */

static enum fgw_err take_heads(struct version_page *page, struct cql_scan *scan,
                               struct fgw_lister *keys, size_t most, struct fgw_error *error)
{
    enum fgw_lister_next next = FGW_LISTER_NEXT;
    while (next != FGW_LISTER_DONE && page->count < most) {
        struct cql_entry entry;
        struct cql_row row;
        bool take = false;
        enum fgw_err err = cql_scan_next(scan, &entry, error);
        if (err == FGW_ERR_NOT_FOUND) {
            return FGW_OK;
        }
        if (err == FGW_OK && entry.state == CQL_GONE) {
            continue;
        }
        if (err == FGW_OK) {
            err = cql_settled_row(page->cql, page->arena, &page->bucket->id, &entry, &row, error);
        }
        if (err != FGW_OK) {
            return err;
        }
        if (row.state != CQL_LIVE) {
            continue;
        }
        next = fgw_lister_key(keys, entry.key, true, &take);
        if (take || next == FGW_LISTER_SEEK) {
            page->heads[page->count++] = row;
        }
        if (next == FGW_LISTER_SEEK) {
            cql_scan_seek(scan, fgw_lister_seek(keys));
        }
    }
    return FGW_OK;
}

static enum fgw_err read_heads(struct version_page *page, struct fgw_error *error)
{
    /* every key gives at least one entry, so max + 2 heads are enough for a page (the first may be
     * the marker's own) */
    struct fgw_list_query query = *page->query;
    struct fgw_lister keys;
    struct cql_scan scan = {.cql = page->cql,
                            .bucket_id = page->bucket->id,
                            .all = CQL_HEAD_SCAN,
                            .bounded = CQL_HEAD_SCAN_TO};
    query.max = page->query->max + 2;
    page->heads = fgw_arena_alloc(page->arena, query.max * sizeof *page->heads);
    fgw_lister_init(&keys, page->arena, &query);
    cql_scan_init(&scan, fgw_lister_start(&keys), query.prefix, query.max);
    enum fgw_err err = take_heads(page, &scan, &keys, query.max, error);
    cql_scan_deinit(&scan);
    fgw_lister_deinit(&keys);
    return err;
}

/* -- rows of object_versions ------------------------------------------------------------------------- */

/* A row that may count: *out_counts, and its object. Rows written after the head was read do not
 * belong to the page; a row that was promoted since is shown as what it was. */
static enum fgw_err judge(struct version_page *page, const struct cql_row *head,
                          const struct cql_entry *entry, struct fgw_object *out_object,
                          bool *out_counts, struct fgw_error *error)
{
    struct cql_row row;
    struct cql_row now;
    struct cql_place place = {&page->bucket->id, head->object.key};
    enum fgw_err err = cql_entry_decode(page->arena, entry, &row);
    *out_counts = false;
    if (err != FGW_OK || row.state == CQL_GONE ||
        memcmp(&entry->id, &head->object.version_id, sizeof entry->id) >= 0) {
        return err;
    }
    *out_object = row.object;
    if (row.state == CQL_LIVE && !row.object.is_null) {
        *out_counts = true;
        return FGW_OK;
    }
    /* the null version counts if the head knows it; a promoted one may be the head by now */
    err = cql_head_read(page->cql, page->arena, &place, false, &now, error);
    if (err != FGW_OK || !cql_row_shown(&now)) {
        return err;
    }
    if (fgw_id_eq(&now.object.version_id, &entry->id)) {
        *out_object = now.object;
        *out_counts = true;
        return FGW_OK;
    }
    err = cql_version_read(page->cql, page->arena, &place, &entry->id, false, &row, error);
    if (err == FGW_OK && row.state == CQL_PROMOTING) {
        row.state = CQL_LIVE; /* being promoted or not, it is there */
    }
    *out_counts = err == FGW_OK && cql_version_shown(&now, &row);
    *out_object = row.object;
    return err;
}

static enum fgw_err add_version(struct version_page *page, const struct cql_row *head,
                                const struct cql_entry *entry, struct fgw_error *error)
{
    struct fgw_object object;
    bool counts = false;
    enum fgw_err err = judge(page, head, entry, &object, &counts, error);
    if (err == FGW_OK && counts) {
        object.latest = false;
        (void)fgw_lister_add(&page->lister, &object);
    }
    return err;
}

static enum fgw_err read_ahead(struct version_page *page, struct fgw_error *error)
{
    enum fgw_err err = cql_scan_next(&page->scan, &page->next, error);
    page->has_next = err == FGW_OK;
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

static enum fgw_err pass_over(struct version_page *page, struct fgw_bytes key,
                              struct fgw_error *error)
{
    if (!page->has_next || fgw_bytes_cmp(page->next.key, key) >= 0) {
        return FGW_OK;
    }
    cql_scan_seek(&page->scan, key);
    return read_ahead(page, error);
}

/* Rows of the head's key; those of keys before it belong to heads that are not shown. */
static enum fgw_err add_versions(struct version_page *page, const struct cql_row *head,
                                 struct fgw_error *error)
{
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK && page->has_next && !page->lister.full) {
        int order = fgw_bytes_cmp(page->next.key, head->object.key);
        if (order > 0) {
            return FGW_OK;
        }
        if (order == 0) {
            err = add_version(page, head, &page->next, error);
        }
        if (err == FGW_OK) {
            err = read_ahead(page, error);
        }
    }
    return err;
}

/* -- a page that begins in the middle of a key -------------------------------------------------------- */

/* The id that the marker names; "null" is looked up in the head. */
static enum fgw_err marker_id(struct version_page *page, const struct cql_row *head,
                              struct fgw_id *out_id, struct fgw_error *error)
{
    const struct fgw_version *marker = &page->query->after_version;
    *out_id = marker->id;
    if (marker->kind != FGW_VERSION_NULL) {
        return FGW_OK;
    }
    struct cql_place place = {&page->bucket->id, head->object.key};
    struct cql_row full;
    enum fgw_err err = cql_head_read(page->cql, page->arena, &place, false, &full, error);
    if (err == FGW_OK) {
        *out_id = full.object.is_null ? full.object.version_id : full.more.null_version;
    }
    return err;
}

static enum fgw_err add_below(struct version_page *page, const struct cql_row *head,
                              const struct fgw_id *marker, struct fgw_error *error)
{
    struct cql_place place = {&page->bucket->id, head->object.key};
    struct cql_key_rows rows;
    cql_key_rows_init(&rows, page->cql, &place, (int32_t)page->query->max + 1);
    cql_id_range_pass(&rows.ids, marker);
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK && !page->lister.full) {
        struct cql_entry entry;
        err = cql_key_rows_next(&rows, error);
        if (err == FGW_OK) {
            err = cql_entry_take(page->arena, rows.result, &entry);
        }
        if (err == FGW_OK) {
            err = add_version(page, head, &entry, error);
        }
    }
    cql_key_rows_deinit(&rows);
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

/* The key that the marker names. When the marker's version was deleted since, the head is an older
 * one, or, for a null version, its place is not known any more: then the head counts too. */
static enum fgw_err add_marked_key(struct version_page *page, struct cql_row *head,
                                   struct fgw_error *error)
{
    struct fgw_id marker = {0};
    enum fgw_err err = marker_id(page, head, &marker, error);
    if (err != FGW_OK) {
        return err;
    }
    if (fgw_id_is_zero(&marker) || memcmp(&head->object.version_id, &marker, sizeof marker) < 0) {
        head->object.latest = true;
        if (fgw_lister_add(&page->lister, &head->object) == FGW_LISTER_DONE) {
            return FGW_OK;
        }
        marker = head->object.version_id;
    }
    return add_below(page, head, &marker, error);
}

/* -- the page ------------------------------------------------------------------------------------------ */

static enum fgw_err add_key(struct version_page *page, struct cql_row *head,
                            struct fgw_error *error)
{
    const struct fgw_list_query *query = page->query;
    if (query->has_after_version && fgw_bytes_eq(head->object.key, query->after)) {
        return add_marked_key(page, head, error);
    }
    head->object.latest = true;
    if (fgw_lister_add(&page->lister, &head->object) == FGW_LISTER_DONE) {
        return FGW_OK;
    }
    return add_versions(page, head, error);
}

static enum fgw_err merge(struct version_page *page, struct fgw_error *error)
{
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; err == FGW_OK && i < page->count && !page->lister.full; i++) {
        bool take = false;
        enum fgw_lister_next next =
            fgw_lister_key(&page->lister, page->heads[i].object.key, true, &take);
        if (next == FGW_LISTER_DONE) {
            break;
        }
        if (take) {
            err = add_key(page, &page->heads[i], error);
        } else if (next == FGW_LISTER_SEEK) {
            err = pass_over(page, fgw_lister_seek(&page->lister), error);
        }
    }
    return err;
}

/* Where rows of object_versions begin to matter: a marker's own key is asked apart. */
static struct fgw_bytes versions_from(const struct version_page *page)
{
    struct fgw_bytes first = page->heads[0].object.key;
    const struct fgw_list_query *query = page->query;
    if (!query->has_after_version || !fgw_bytes_eq(first, query->after)) {
        return first;
    }
    uint8_t *behind = fgw_arena_zalloc(page->arena, first.len + 1);
    memcpy(behind, first.ptr, first.len);
    return fgw_bytes(behind, first.len + 1);
}

static enum fgw_err fill_page(struct version_page *page, struct fgw_error *error)
{
    enum fgw_err err = read_heads(page, error);
    if (err != FGW_OK || page->count == 0) {
        return err;
    }
    if (page->bucket->versioning == FGW_VERSIONING_NEVER) {
        return merge(page, error);
    }
    page->scan = (struct cql_scan){.cql = page->cql,
                                   .bucket_id = page->bucket->id,
                                   .all = CQL_VERSION_SCAN_TO,
                                   .bounded = CQL_VERSION_SCAN_TO,
                                   .within = CQL_VERSIONS_BELOW,
                                   .within_to = CQL_VERSIONS_BELOW_TO};
    cql_scan_init(&page->scan, versions_from(page), fgw_bytes(NULL, 0), page->query->max + 1U);
    fgw_buf_clear(&page->scan.to);
    (void)fgw_buf_append(&page->scan.to, page->heads[page->count - 1].object.key);
    (void)fgw_buf_append_byte(&page->scan.to, 0);
    err = read_ahead(page, error);
    err = err == FGW_OK ? merge(page, error) : err;
    cql_scan_deinit(&page->scan);
    return err;
}

enum fgw_err cql_version_list(struct fgw_meta *meta, struct fgw_arena *arena,
                              const struct fgw_bucket *bucket, const struct fgw_list_query *query,
                              struct fgw_object_list *out_list, struct fgw_error *error)
{
    struct version_page page = {
        .cql = cql_of(meta), .arena = arena, .bucket = bucket, .query = query};
    fgw_lister_init(&page.lister, arena, query);
    (void)fgw_lister_start(&page.lister); /* sets what is skipped */
    enum fgw_err err = fill_page(&page, error);
    if (err == FGW_OK) {
        fgw_lister_result(&page.lister, out_list);
    }
    fgw_lister_deinit(&page.lister);
    return cql_fail(error, err, "listing versions of bucket", bucket->name);
}
