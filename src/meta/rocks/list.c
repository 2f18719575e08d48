/* list.c: lists of objects and of versions in the embedded backend: one pass of one iterator a
 * page, seeking past what is under a common prefix. */
#include "meta/lister.h"
#include "meta/rocks/rocks_internal.h"

enum { HEAD_PREFIX = 1 + FGW_META_ID_SIZE };

struct list_scan {
    struct fgw_lister lister;
    struct fgw_arena *arena;
    const struct fgw_bucket *bucket;
    struct fgw_buf seek; /* row key to go to */
    enum fgw_err err;
};

static enum rocks_scan_next seek_head(struct list_scan *scan, struct fgw_bytes *out_seek)
{
    fgw_buf_clear(&scan->seek);
    (void)fgw_buf_append_byte(&scan->seek, 'o');
    (void)fgw_buf_append(&scan->seek, fgw_bytes(scan->bucket->id.bytes, FGW_META_ID_SIZE));
    (void)fgw_buf_append(&scan->seek, fgw_lister_seek(&scan->lister));
    *out_seek = fgw_buf_bytes(&scan->seek);
    return ROCKS_SCAN_SEEK;
}

/* Decodes the row into the page; what it keeps is copied, as the row dies with the step. */
static enum fgw_lister_next take_row(struct list_scan *scan, struct fgw_bytes key,
                                     struct fgw_bytes row)
{
    struct fgw_object *object = fgw_lister_slot(&scan->lister);
    if (object == NULL) {
        return FGW_LISTER_DONE;
    }
    object->key = fgw_arena_copy(scan->arena, key);
    scan->err = fgw_row_decode_listing(scan->arena, row, object);
    return scan->err == FGW_OK ? FGW_LISTER_NEXT : FGW_LISTER_DONE;
}

static enum rocks_scan_next take_object(void *context, struct fgw_bytes row_key,
                                        struct fgw_bytes row, struct fgw_bytes *out_seek)
{
    struct list_scan *scan = context;
    struct fgw_bytes key = fgw_bytes_sub(row_key, HEAD_PREFIX, SIZE_MAX);
    bool marker = false;
    bool take = false;
    scan->err = fgw_row_is_marker(row, &marker);
    if (scan->err != FGW_OK) {
        return ROCKS_SCAN_STOP;
    }
    enum fgw_lister_next next = fgw_lister_key(&scan->lister, key, !marker, &take);
    if (take) {
        next = take_row(scan, key, row);
    }
    if (next == FGW_LISTER_SEEK) {
        return seek_head(scan, out_seek);
    }
    return next == FGW_LISTER_DONE ? ROCKS_SCAN_STOP : ROCKS_SCAN_NEXT;
}

enum fgw_err rocks_object_list(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, const struct fgw_list_query *query,
                               struct fgw_object_list *out_list, struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct list_scan scan = {.arena = arena, .bucket = bucket};
    fgw_lister_init(&scan.lister, arena, query);
    fgw_buf_init(&scan.seek, 0);
    struct fgw_bytes start = rocks_key_head(arena, &bucket->id, fgw_lister_start(&scan.lister));
    struct fgw_bytes all = rocks_key_of_id(arena, 'o', &bucket->id);
    enum fgw_err err = rocks_scan(rocks, start, rocks_key_end(arena, all), take_object, &scan);
    err = err == FGW_OK ? scan.err : err;
    if (err == FGW_OK) {
        fgw_lister_result(&scan.lister, out_list);
    }
    fgw_lister_deinit(&scan.lister);
    fgw_buf_deinit(&scan.seek);
    return rocks_fail(error, err, "listing bucket", bucket->name);
}

/* -- versions --------------------------------------------------------------------------------- */

/* Heads and noncurrent versions are two ranges. A page reads the keys it needs from the heads; for
 * each key the head comes first, then its noncurrent rows. */
struct version_scan {
    struct list_scan common;
    struct rocks *rocks;
    const struct fgw_list_query *query;
    struct fgw_bytes *keys; /* heads of this round, in order */
    struct fgw_bytes *rows;
    size_t head_count;
    size_t head_max;
};

static enum rocks_scan_next take_head(void *context, struct fgw_bytes row_key, struct fgw_bytes row,
                                      struct fgw_bytes *out_seek)
{
    struct version_scan *scan = context;
    struct list_scan *common = &scan->common;
    struct fgw_bytes key = fgw_bytes_sub(row_key, HEAD_PREFIX, SIZE_MAX);
    bool take = false;
    enum fgw_lister_next next = FGW_LISTER_NEXT;
    if (scan->head_count == scan->head_max) {
        return ROCKS_SCAN_STOP;
    }
    /* prefixes are added by the second pass, in order with the versions; here only skip */
    next = fgw_lister_key(&common->lister, key, true, &take);
    if (take || next == FGW_LISTER_SEEK) {
        scan->keys[scan->head_count] = fgw_arena_copy(common->arena, key);
        scan->rows[scan->head_count++] = fgw_arena_copy(common->arena, row);
    }
    if (next == FGW_LISTER_SEEK) {
        return seek_head(common, out_seek);
    }
    return next == FGW_LISTER_DONE ? ROCKS_SCAN_STOP : ROCKS_SCAN_NEXT;
}

/* The version that the marker names, as an id: "null" is looked up in the head. */
static void marker_id(const struct fgw_list_query *query, const struct fgw_object *head,
                      const struct fgw_row_state *state, struct fgw_id *out_id)
{
    *out_id = query->after_version.id;
    if (query->after_version.kind == FGW_VERSION_NULL) {
        *out_id = head->is_null ? head->version_id : state->null_version;
    }
}

/* The marker's version was deleted since: the head is an older one, or, for a null version, its place
 * is not known any more and the key is listed again rather than left out. */
static bool marker_is_gone(const struct fgw_object *head, const struct fgw_id *marker)
{
    return fgw_id_is_zero(marker) || memcmp(&head->version_id, marker, sizeof head->version_id) < 0;
}

/* The merge of the heads read before with the noncurrent rows, which one iterator walks through. */
struct merge {
    struct version_scan *scan;
    struct fgw_lister *lister;
    size_t next; /* head to be added next */
    /* the key whose noncurrent rows are due */
    struct fgw_bytes key;
    struct fgw_bytes prefix; /* of their row keys */
    struct fgw_bytes lower;  /* the first of them that is wanted */
    enum fgw_err err;
};

/* What of the key's noncurrent versions is wanted: those behind `after` (NULL: all). */
static void want_noncurrent(struct merge *merge, struct fgw_bytes key, const struct fgw_id *after)
{
    struct fgw_arena *arena = merge->scan->common.arena;
    const struct fgw_id *bucket_id = &merge->scan->common.bucket->id;
    merge->key = key;
    merge->prefix = rocks_key_versions_of(arena, bucket_id, key);
    merge->lower = merge->prefix;
    if (after != NULL) {
        struct fgw_bytes row_key = rocks_key_version(arena, bucket_id, key, after);
        uint8_t *behind = fgw_arena_alloc(arena, row_key.len + 1);
        memcpy(behind, row_key.ptr, row_key.len);
        behind[row_key.len] = 0; /* the first key behind the row of `after` */
        merge->lower = fgw_bytes(behind, row_key.len + 1);
    }
}

/* The key of the marker: its head unless the marker lies behind it. True: it was dealt with. */
static bool add_marked_key(struct merge *merge, size_t index)
{
    struct version_scan *scan = merge->scan;
    const struct fgw_list_query *query = scan->query;
    struct fgw_bytes key = scan->keys[index];
    struct rocks_head head;
    struct fgw_id marker;
    if (!query->has_after_version || !fgw_bytes_eq(key, query->after)) {
        return false;
    }
    merge->err = fgw_row_decode_object(scan->common.arena, key, scan->rows[index], FGW_ROW_FULL,
                                       &head.object, &head.state);
    if (merge->err != FGW_OK) {
        return true;
    }
    marker_id(query, &head.object, &head.state, &marker);
    if (marker_is_gone(&head.object, &marker)) {
        return false;
    }
    want_noncurrent(merge, key, &marker);
    return true;
}

static void add_head(struct merge *merge, size_t index)
{
    struct version_scan *scan = merge->scan;
    struct fgw_object *object = fgw_lister_slot(merge->lister);
    if (object == NULL) {
        return;
    }
    object->key = scan->keys[index];
    object->latest = true;
    merge->err = fgw_row_decode_listing(scan->common.arena, scan->rows[index], object);
    /* a never-versioned key has no other: spare the look */
    if (scan->common.bucket->versioning != FGW_VERSIONING_NEVER) {
        want_noncurrent(merge, object->key, NULL);
    }
}

/* Adds heads up to the next key whose noncurrent versions are due; false when there is none. */
static bool add_heads(struct merge *merge)
{
    struct version_scan *scan = merge->scan;
    merge->key = fgw_bytes(NULL, 0);
    while (merge->next < scan->head_count && merge->err == FGW_OK && !merge->lister->full &&
           merge->key.len == 0) {
        size_t index = merge->next++;
        bool take = false;
        if (fgw_lister_key(merge->lister, scan->keys[index], true, &take) == FGW_LISTER_DONE) {
            merge->next = scan->head_count;
        } else if (take && !add_marked_key(merge, index)) {
            add_head(merge, index);
        }
    }
    return merge->key.len > 0 && merge->err == FGW_OK && !merge->lister->full;
}

static enum rocks_scan_next take_noncurrent(void *context, struct fgw_bytes row_key,
                                            struct fgw_bytes row, struct fgw_bytes *out_seek)
{
    struct merge *merge = context;
    while (fgw_bytes_cmp(row_key, merge->lower) >= 0 &&
           !fgw_bytes_starts_with(row_key, merge->prefix)) {
        if (!add_heads(merge)) {
            return ROCKS_SCAN_STOP;
        }
    }
    if (fgw_bytes_cmp(row_key, merge->lower) < 0) {
        *out_seek = merge->lower;
        return ROCKS_SCAN_SEEK;
    }
    struct fgw_object *object = fgw_lister_slot(merge->lister);
    if (object == NULL) {
        return ROCKS_SCAN_STOP;
    }
    object->key = merge->key;
    merge->err = fgw_row_decode_listing(merge->scan->common.arena, row, object);
    return merge->err == FGW_OK ? ROCKS_SCAN_NEXT : ROCKS_SCAN_STOP;
}

static enum fgw_err merge_versions(struct version_scan *scan, struct fgw_lister *lister)
{
    struct merge merge = {.scan = scan, .lister = lister};
    if (!add_heads(&merge)) {
        return merge.err;
    }
    struct fgw_bytes all = rocks_key_of_id(scan->common.arena, 'v', &scan->common.bucket->id);
    enum fgw_err err = rocks_scan(scan->rocks, merge.lower, rocks_key_end(scan->common.arena, all),
                                  take_noncurrent, &merge);
    /* behind the last noncurrent row only heads are left */
    while (err == FGW_OK && add_heads(&merge)) {
    }
    return err == FGW_OK ? merge.err : err;
}

enum fgw_err rocks_version_list(struct fgw_meta *meta, struct fgw_arena *arena,
                                const struct fgw_bucket *bucket, const struct fgw_list_query *query,
                                struct fgw_object_list *out_list, struct fgw_error *error)
{
    /* every key gives at least one entry, so max + 2 heads are enough for a page (the first may be
     * the marker's own) */
    struct version_scan scan = {.common = {.arena = arena, .bucket = bucket},
                                .rocks = rocks_of(meta),
                                .query = query,
                                .head_max = query->max + 2U};
    struct fgw_list_query heads_query = *query;
    heads_query.max = query->max + 2;
    struct fgw_lister lister;
    fgw_lister_init(&scan.common.lister, arena, &heads_query);
    fgw_lister_init(&lister, arena, query);
    fgw_buf_init(&scan.common.seek, 0);
    scan.keys = fgw_arena_alloc(arena, scan.head_max * sizeof *scan.keys);
    scan.rows = fgw_arena_alloc(arena, scan.head_max * sizeof *scan.rows);
    (void)fgw_lister_start(&lister); /* sets what is skipped */
    struct fgw_bytes start =
        rocks_key_head(arena, &bucket->id, fgw_lister_start(&scan.common.lister));
    struct fgw_bytes all = rocks_key_of_id(arena, 'o', &bucket->id);
    enum fgw_err err = rocks_scan(scan.rocks, start, rocks_key_end(arena, all), take_head, &scan);
    err = err == FGW_OK ? scan.common.err : err;
    err = err == FGW_OK ? merge_versions(&scan, &lister) : err;
    if (err == FGW_OK) {
        fgw_lister_result(&lister, out_list);
    }
    fgw_lister_deinit(&lister);
    fgw_lister_deinit(&scan.common.lister);
    fgw_buf_deinit(&scan.common.seek);
    return rocks_fail(error, err, "listing versions of bucket", bucket->name);
}
