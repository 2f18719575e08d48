/* bucket_list.c: buckets of an owner, from the look-up rows, each checked against the truth; and all
 * buckets, from a scan of the table that keeps the smallest names only. */
#include "meta/cql/cql_internal.h"

enum { CHECK_AT_ONCE = 100 };

struct bucket_page {
    struct fgw_bucket *buckets; /* max + 1 */
    size_t count;
    size_t max;
};

static bool is_full(const struct bucket_page *page)
{
    return page->count > page->max;
}

static void add(struct bucket_page *page, const struct fgw_bucket *bucket)
{
    if (!is_full(page)) {
        page->buckets[page->count++] = *bucket;
    }
}

/* -- by owner --------------------------------------------------------------------------------------- */

struct look_up {
    struct fgw_bytes name;
    struct fgw_id id;
    struct fgw_cql_call *call;
};

/* Reads the rows of `count` names side by side, keeps those that are the buckets meant. */
static enum fgw_err check_names(struct cql *cql, struct fgw_arena *arena, struct look_up *names,
                                size_t count, struct bucket_page *page, struct fgw_error *error)
{
    enum fgw_err first = FGW_OK;
    for (size_t i = 0; i < count; i++) {
        names[i].call = cql_bucket_start(cql, names[i].name);
    }
    for (size_t i = 0; i < count; i++) {
        struct cql_bucket_row row = {0};
        enum fgw_err err = cql_bucket_wait(cql, arena, names[i].call, names[i].name, &row, error);
        if (err == FGW_OK && row.present && fgw_id_eq(&row.bucket.id, &names[i].id)) {
            add(page, &row.bucket);
        }
        first = first == FGW_OK ? err : first;
    }
    return first;
}

static enum fgw_err check_result(struct cql *cql, struct fgw_arena *arena,
                                 struct fgw_cql_result *result, struct bucket_page *page,
                                 struct fgw_error *error)
{
    struct look_up names[CHECK_AT_ONCE];
    enum fgw_err err = FGW_OK;
    bool rows = true;
    while (err == FGW_OK && rows && !is_full(page)) {
        size_t count = 0;
        while (count < CHECK_AT_ONCE && (rows = fgw_cql_result_next(result))) {
            struct fgw_bytes name;
            if (fgw_cql_get_text(result, "name", &name) != FGW_OK ||
                fgw_cql_get_uuid(result, "bucket_id", names[count].id.bytes) != FGW_OK) {
                return FGW_ERR_CORRUPT;
            }
            names[count++].name = fgw_arena_copy(arena, name);
        }
        err = check_names(cql, arena, names, count, page, error);
    }
    return err;
}

static enum fgw_err list_owner(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes owner_id,
                               struct fgw_bytes after, struct bucket_page *page,
                               struct fgw_error *error)
{
    struct fgw_cql_value values[] = {fgw_cql_text(owner_id), fgw_cql_text(after)};
    struct fgw_cql_options options = {.page_size = (int32_t)(page->max + 1)};
    bool more = true;
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK && more && !is_full(page)) {
        struct fgw_cql_result *result = NULL;
        err = cql_read(cql, CQL_OWNER_SCAN, values, 2, &options, &result, error);
        if (err == FGW_OK) {
            more = fgw_cql_result_has_more(result);
            options.paging_state = fgw_arena_copy(arena, fgw_cql_result_paging_state(result));
            err = check_result(cql, arena, result, page, error);
            fgw_cql_result_free(result);
        }
    }
    return err;
}

/* -- all -------------------------------------------------------------------------------------------- */

/* Keeps the max + 1 smallest names, sorted. */
static void insert_sorted(struct bucket_page *page, const struct fgw_bucket *bucket)
{
    if (is_full(page)) {
        if (fgw_bytes_cmp(bucket->name, page->buckets[page->max].name) >= 0) {
            return;
        }
        page->count--;
    }
    size_t at = page->count++;
    while (at > 0 && fgw_bytes_cmp(bucket->name, page->buckets[at - 1].name) < 0) {
        page->buckets[at] = page->buckets[at - 1];
        at--;
    }
    page->buckets[at] = *bucket;
}

static enum fgw_err list_all(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes after,
                             struct bucket_page *page, struct fgw_error *error)
{
    struct fgw_cql_options options = {.page_size = 1000};
    bool more = true;
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK && more) {
        struct fgw_cql_result *result = NULL;
        err = cql_read(cql, CQL_BUCKET_SCAN, NULL, 0, &options, &result, error);
        if (err != FGW_OK) {
            return err;
        }
        more = fgw_cql_result_has_more(result);
        options.paging_state = fgw_arena_copy(arena, fgw_cql_result_paging_state(result));
        while (err == FGW_OK && fgw_cql_result_next(result)) {
            struct fgw_bytes name;
            struct cql_bucket_row row;
            err = fgw_cql_get_text(result, "name", &name);
            if (err != FGW_OK || fgw_bytes_cmp(name, after) <= 0) {
                continue;
            }
            err = cql_bucket_row_decode(arena, name, result, &row);
            if (err == FGW_OK) {
                insert_sorted(page, &row.bucket);
            }
        }
        fgw_cql_result_free(result);
    }
    return err;
}

enum fgw_err cql_bucket_list(struct fgw_meta *meta, struct fgw_arena *arena,
                             struct fgw_bytes owner_id, struct fgw_bytes after, unsigned max,
                             struct fgw_bucket **out_buckets, size_t *out_count,
                             bool *out_truncated, struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct bucket_page page = {.max = max};
    enum fgw_err err = FGW_OK;
    page.buckets = fgw_arena_zalloc(arena, (max + 1U) * sizeof *page.buckets);
    if (fgw_utf8_valid(after) && fgw_utf8_valid(owner_id)) {
        err = owner_id.len == 0 ? list_all(cql, arena, after, &page, error)
                                : list_owner(cql, arena, owner_id, after, &page, error);
    }
    if (err == FGW_OK) {
        *out_buckets = page.buckets;
        *out_count = page.count > max ? max : page.count;
        *out_truncated = page.count > max;
    }
    return cql_fail(error, err, "listing buckets of", owner_id);
}
