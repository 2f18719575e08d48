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
    bool more_heads;
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
        scan->more_heads = true;
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

struct noncurrent_scan {
    struct fgw_arena *arena;
    struct fgw_lister *lister;
    struct fgw_bytes key;
    enum fgw_err err;
    bool full;
};

static enum rocks_scan_next take_noncurrent(void *context, struct fgw_bytes row_key,
                                            struct fgw_bytes row, struct fgw_bytes *out_seek)
{
    struct noncurrent_scan *scan = context;
    struct fgw_object object;
    (void)row_key;
    (void)out_seek;
    scan->err = fgw_row_decode_object(scan->arena, scan->key, fgw_arena_copy(scan->arena, row),
                                      FGW_ROW_LISTING, &object, NULL);
    if (scan->err != FGW_OK) {
        return ROCKS_SCAN_STOP;
    }
    if (fgw_lister_add(scan->lister, &object) == FGW_LISTER_DONE) {
        scan->full = true;
        return ROCKS_SCAN_STOP;
    }
    return ROCKS_SCAN_NEXT;
}

/* Adds what of a key's noncurrent versions lies behind `after` (NULL: all). */
static enum fgw_err add_noncurrent(struct version_scan *scan, struct fgw_lister *lister,
                                   struct fgw_bytes key, const struct fgw_id *after)
{
    struct fgw_arena *arena = scan->common.arena;
    const struct fgw_id *bucket_id = &scan->common.bucket->id;
    struct fgw_bytes lower = rocks_key_versions_of(arena, bucket_id, key);
    struct fgw_bytes upper = rocks_key_end(arena, lower);
    if (after != NULL) {
        /* the first key behind the row of `after` */
        struct fgw_buf behind;
        fgw_buf_init(&behind, 0);
        (void)fgw_buf_append(&behind, rocks_key_version(arena, bucket_id, key, after));
        (void)fgw_buf_append_byte(&behind, 0);
        lower = fgw_arena_copy(arena, fgw_buf_bytes(&behind));
        fgw_buf_deinit(&behind);
    }
    struct noncurrent_scan inner = {.arena = arena, .lister = lister, .key = key};
    enum fgw_err err = rocks_scan(scan->rocks, lower, upper, take_noncurrent, &inner);
    return err == FGW_OK ? inner.err : err;
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

/* One key: its head unless the marker lies behind it, then the noncurrent versions. */
static enum fgw_err add_key(struct version_scan *scan, struct fgw_lister *lister, size_t index)
{
    struct fgw_bytes key = scan->keys[index];
    struct rocks_head head;
    enum fgw_err err = fgw_row_decode_object(scan->common.arena, key, scan->rows[index],
                                             FGW_ROW_FULL, &head.object, &head.state);
    if (err != FGW_OK) {
        return err;
    }
    const struct fgw_list_query *query = scan->query;
    if (query->has_after_version && fgw_bytes_eq(key, query->after)) {
        struct fgw_id marker;
        marker_id(query, &head.object, &head.state, &marker);
        if (!marker_is_gone(&head.object, &marker)) {
            return add_noncurrent(scan, lister, key, &marker);
        }
    }
    head.object.latest = true;
    if (fgw_lister_add(lister, &head.object) == FGW_LISTER_DONE) {
        return FGW_OK;
    }
    /* a never-versioned key has none: spare the scan */
    if (scan->common.bucket->versioning == FGW_VERSIONING_NEVER) {
        return FGW_OK;
    }
    return add_noncurrent(scan, lister, key, NULL);
}

static enum fgw_err merge(struct version_scan *scan, struct fgw_lister *lister)
{
    for (size_t i = 0; i < scan->head_count && !lister->full; i++) {
        bool take = false;
        enum fgw_lister_next next = fgw_lister_key(lister, scan->keys[i], true, &take);
        if (next == FGW_LISTER_DONE) {
            return FGW_OK;
        }
        if (take) {
            enum fgw_err err = add_key(scan, lister, i);
            if (err != FGW_OK) {
                return err;
            }
        }
    }
    return FGW_OK;
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
    err = err == FGW_OK ? merge(&scan, &lister) : err;
    if (err == FGW_OK) {
        fgw_lister_result(&lister, out_list);
    }
    fgw_lister_deinit(&lister);
    fgw_lister_deinit(&scan.common.lister);
    fgw_buf_deinit(&scan.common.seek);
    return rocks_fail(error, err, "listing versions of bucket", bucket->name);
}
