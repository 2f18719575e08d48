/* test_rows.c: row codecs keep everything, carry unknown items over, refuse critical ones; version
 * ids grow whatever the clock does; list rules. */
#include "cmocka_all.h"

#include "base/rng.h"
#include "base/tlv.h"
#include "meta/lister.h"
#include "meta/row.h"

static void fill_object(struct fgw_arena *arena, struct fgw_object *object)
{
    static const struct fgw_meta_pair HEADERS[] = {
        {{(const uint8_t *)"content-type", 12}, {(const uint8_t *)"text/plain", 10}},
        {{(const uint8_t *)"x-amz-meta-empty", 16}, {NULL, 0}}};
    static const struct fgw_meta_pair TAGS[] = {
        {{(const uint8_t *)"k", 1}, {(const uint8_t *)"v", 1}}};
    memset(object, 0, sizeof *object);
    object->key = FGW_LIT("a/b");
    fgw_id_version(1700000000000, NULL, &object->version_id);
    object->is_null = true;
    fgw_id_random(&object->owner_id);
    fgw_id_random(&object->rev);
    fgw_id_random(&object->upload_id);
    object->size = UINT64_C(5) << 40;
    object->mtime_ms = 1700000000123;
    object->etag = FGW_LIT("5d41402abc4b2a76b9719d911017c592-2");
    object->storage_class = FGW_LIT("REDUCED_REDUNDANCY");
    object->acl = FGW_ACL_PUBLIC_READ;
    object->creator_id = FGW_LIT("creator");
    object->creator_name = FGW_LIT("name");
    object->headers = HEADERS;
    object->header_count = 2;
    object->tags = TAGS;
    object->tag_count = 1;
    object->checksum =
        (struct fgw_checksum_value){FGW_CHECKSUM_CRC32C, FGW_CHECKSUM_COMPOSITE, 4, {1, 2, 3, 4}};
    struct fgw_object_part *parts = fgw_arena_zalloc(arena, 2 * sizeof *parts);
    struct fgw_extent *extents = fgw_arena_zalloc(arena, 2 * sizeof *extents);
    for (unsigned i = 0; i < 2; i++) {
        parts[i].number = i + 1;
        parts[i].size = 1000U + i;
        fgw_rng_fill(parts[i].md5, sizeof parts[i].md5);
        extents[i].number = (uint64_t)(i + 1) << 48 | 7;
        extents[i].set = i;
        extents[i].size = 1000U + i;
        fgw_rng_fill(extents[i].root.bytes, sizeof extents[i].root.bytes);
    }
    extents[0].first = (struct fgw_storage_place){3, UINT64_C(1) << 33, 77, 0xdeadbeef};
    object->parts = parts;
    object->part_count = 2;
    object->extents = extents;
    object->extent_count = 2;
    object->has_cid = true;
    fgw_rng_fill(object->cid.bytes, sizeof object->cid.bytes);
}

static void object_rows_keep_everything(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_object in;
    struct fgw_object out;
    struct fgw_row_state row_state = {.recent_count = 2};
    struct fgw_row_state back;
    struct fgw_buf first;
    struct fgw_buf second;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&first, 0);
    fgw_buf_init(&second, 0);
    fill_object(&arena, &in);
    fgw_id_random(&row_state.null_version);
    fgw_id_random(&row_state.recent[0]);
    fgw_id_random(&row_state.recent[1]);
    fgw_row_encode_object(&first, &in, &row_state);
    fgw_tlv_put(&first, 1000, FGW_LIT("from the future"));
    assert_int_equal(
        fgw_row_decode_object(&arena, in.key, fgw_buf_bytes(&first), FGW_ROW_FULL, &out, &back),
        FGW_OK);
    /* decoding and encoding again gives the same bytes, the unknown item included */
    fgw_row_encode_object(&second, &out, &back);
    assert_true(fgw_bytes_eq(fgw_buf_bytes(&first), fgw_buf_bytes(&second)));
    assert_true(out.size == in.size && out.mtime_ms == in.mtime_ms && out.is_null);
    assert_true(fgw_bytes_eq(out.headers[0].value, in.headers[0].value));
    assert_int_equal(out.headers[1].value.len, 0);
    assert_memory_equal(&out.extents[0].first, &in.extents[0].first, sizeof in.extents[0].first);
    assert_memory_equal(out.parts[1].md5, in.parts[1].md5, 16);
    fgw_buf_deinit(&first);
    fgw_buf_deinit(&second);
    fgw_arena_deinit(&arena);
}

static void damaged_and_newer_rows_are_refused(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_object in;
    struct fgw_object out;
    struct fgw_buf row;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&row, 0);
    fill_object(&arena, &in);
    fgw_row_encode_object(&row, &in, NULL);
    for (size_t len = 0; len < row.len; len++) {
        enum fgw_err err = fgw_row_decode_object(&arena, in.key, fgw_bytes(row.ptr, len),
                                                 FGW_ROW_FULL, &out, NULL);
        assert_true(err == FGW_OK || err == FGW_ERR_CORRUPT);
    }
    fgw_tlv_put(&row, 1001, FGW_LIT("x"));
    assert_int_equal(
        fgw_row_decode_object(&arena, in.key, fgw_buf_bytes(&row), FGW_ROW_FULL, &out, NULL),
        FGW_ERR_NEWER_VERSION);
    /* lists do not read that far and still work */
    assert_int_equal(
        fgw_row_decode_object(&arena, in.key, fgw_buf_bytes(&row), FGW_ROW_LISTING, &out, NULL),
        FGW_OK);
    assert_true(out.size == in.size && fgw_bytes_eq(out.etag, in.etag));
    fgw_buf_deinit(&row);
    fgw_arena_deinit(&arena);
}

static void listing_columns_outlive_the_row(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_object in;
    struct fgw_object out = {.key = FGW_LIT("k")};
    struct fgw_buf row;
    bool marker = true;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&row, 0);
    fill_object(&arena, &in);
    fgw_row_encode_object(&row, &in, NULL);
    assert_int_equal(fgw_row_is_marker(fgw_buf_bytes(&row), &marker), FGW_OK);
    assert_true(marker == in.delete_marker);
    assert_int_equal(fgw_row_decode_listing(&arena, fgw_buf_bytes(&row), &out), FGW_OK);
    memset(row.ptr, 0xee, row.len);
    assert_true(out.size == in.size && out.mtime_ms == in.mtime_ms && out.is_null == in.is_null);
    assert_true(fgw_bytes_eq(out.etag, in.etag) && fgw_bytes_eq(out.creator_id, in.creator_id));
    assert_true(fgw_bytes_eq(out.creator_name, in.creator_name) &&
                fgw_bytes_eq(out.storage_class, in.storage_class));
    assert_memory_equal(&out.checksum, &in.checksum, sizeof in.checksum);
    assert_true(out.header_count == 0 && fgw_bytes_eq_str(out.key, "k"));
    in.delete_marker = !in.delete_marker;
    fgw_buf_clear(&row);
    fgw_row_encode_object(&row, &in, NULL);
    assert_int_equal(fgw_row_is_marker(fgw_buf_bytes(&row), &marker), FGW_OK);
    assert_true(marker == in.delete_marker);
    for (size_t len = 0; len < row.len; len++) {
        struct fgw_object cut = {0};
        enum fgw_err err = fgw_row_decode_listing(&arena, fgw_bytes(row.ptr, len), &cut);
        assert_true(err == FGW_OK || err == FGW_ERR_CORRUPT);
    }
    assert_int_equal(fgw_row_is_marker(fgw_bytes(NULL, 0), &marker), FGW_ERR_CORRUPT);
    assert_int_equal(fgw_row_is_marker(fgw_bytes("\x02\x05\x01", 3), &marker), FGW_ERR_CORRUPT);
    fgw_buf_deinit(&row);
    fgw_arena_deinit(&arena);
}

static void random_bytes_never_crash_a_decoder(void **state)
{
    (void)state;
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[64];
        struct fgw_object object;
        struct fgw_bucket bucket;
        struct fgw_upload upload;
        struct fgw_part part;
        struct fgw_id id = {{0}};
        size_t len = (size_t)fgw_rng_below(sizeof bytes);
        fgw_rng_fill(bytes, len);
        for (size_t j = 0; j < len; j++) {
            bytes[j] &= fgw_rng_below(2) ? 0x3e : 0xff;
        }
        struct fgw_bytes row = fgw_bytes(bytes, len);
        (void)!fgw_row_decode_object(&arena, row, row, FGW_ROW_FULL, &object, NULL);
        struct fgw_object listed = {0};
        bool marker;
        (void)!fgw_row_decode_listing(&arena, row, &listed);
        (void)!fgw_row_is_marker(row, &marker);
        (void)!fgw_row_decode_bucket(&arena, row, row, &bucket);
        (void)!fgw_row_decode_upload(&arena, &id, row, &upload);
        (void)!fgw_row_decode_part(row, &part);
        fgw_arena_reset(&arena);
    }
    fgw_arena_deinit(&arena);
}

static void version_ids_grow(void **state)
{
    (void)state;
    struct fgw_id last;
    fgw_id_version(5000, NULL, &last);
    static const int64_t CLOCK[] = {5000, 5000, 4000, 0, -5, 6000, 6000};
    for (size_t i = 0; i < sizeof CLOCK / sizeof CLOCK[0]; i++) {
        struct fgw_id next;
        fgw_id_version(CLOCK[i], &last, &next);
        assert_true(memcmp(&next, &last, sizeof next) > 0);
        assert_true(fgw_id_version_ms(&next) > fgw_id_version_ms(&last));
        last = next;
    }
}

/* Runs the lister over a sorted set of keys as a backend does. */
static void list(struct fgw_arena *arena, const char *const *keys, size_t count,
                 const struct fgw_list_query *query, struct fgw_object_list *out,
                 unsigned *out_reads)
{
    struct fgw_lister lister;
    fgw_lister_init(&lister, arena, query);
    struct fgw_bytes at = fgw_arena_copy(arena, fgw_lister_start(&lister));
    *out_reads = 0;
    for (size_t i = 0; i < count; i++) {
        struct fgw_bytes key = fgw_bytes_str(keys[i]);
        struct fgw_object object = {.key = key};
        bool take;
        if (fgw_bytes_cmp(key, at) < 0) {
            continue;
        }
        (*out_reads)++;
        enum fgw_lister_next next = fgw_lister_key(&lister, key, true, &take);
        if (take) {
            next = fgw_lister_add(&lister, &object);
        }
        if (next == FGW_LISTER_DONE) {
            break;
        }
        if (next == FGW_LISTER_SEEK) {
            at = fgw_arena_copy(arena, fgw_lister_seek(&lister));
        }
    }
    fgw_lister_result(&lister, out);
    fgw_lister_deinit(&lister);
}

static const char *const KEYS[] = {"a/1", "a/2", "a/3", "b", "b/1", "boo/bar", "boo/baz/x", "c"};

static struct fgw_bytes name_of(const struct fgw_list_entry *entry)
{
    return entry->is_prefix ? entry->prefix : entry->object.key;
}

static void delimiter_pages_cover_everything_once(void **state)
{
    (void)state;
    static const char *const WANT[] = {"a/", "b", "b/", "boo/", "c"};
    for (unsigned max = 1; max <= 6; max++) {
        struct fgw_arena arena;
        struct fgw_bytes after = {NULL, 0};
        struct fgw_object_list page = {.truncated = true};
        size_t seen = 0;
        fgw_arena_init(&arena, 0);
        while (page.truncated) {
            struct fgw_list_query query = {.delimiter = FGW_LIT("/"), .after = after, .max = max};
            unsigned reads;
            list(&arena, KEYS, sizeof KEYS / sizeof KEYS[0], &query, &page, &reads);
            assert_true(page.count <= max && reads <= 2 * max + 3);
            for (size_t i = 0; i < page.count; i++) {
                assert_true(seen < 5 && fgw_bytes_eq_str(name_of(&page.entries[i]), WANT[seen]));
                after = name_of(&page.entries[i]);
                seen++;
            }
        }
        assert_int_equal(seen, 5);
        fgw_arena_deinit(&arena);
    }
}

static void start_inside_a_prefix_skips_it(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_object_list page;
    unsigned reads;
    fgw_arena_init(&arena, 0);
    struct fgw_list_query query = {.delimiter = FGW_LIT("/"), .after = FGW_LIT("a/2"), .max = 10};
    list(&arena, KEYS, sizeof KEYS / sizeof KEYS[0], &query, &page, &reads);
    assert_true(fgw_bytes_eq_str(name_of(&page.entries[0]), "b"));
    query =
        (struct fgw_list_query){.prefix = FGW_LIT("boo/"), .delimiter = FGW_LIT("/"), .max = 10};
    list(&arena, KEYS, sizeof KEYS / sizeof KEYS[0], &query, &page, &reads);
    assert_int_equal(page.count, 2);
    assert_true(fgw_bytes_eq_str(name_of(&page.entries[1]), "boo/baz/"));
    fgw_arena_deinit(&arena);
}

static void conditions(void **state)
{
    (void)state;
    struct fgw_object existing = {.etag = FGW_LIT("abc"), .size = 3, .mtime_ms = 5000};
    struct fgw_error error;
    struct fgw_conditions any = {.if_none_match_any = true};
    struct fgw_conditions match = {.if_match = FGW_LIT("abc")};
    struct fgw_conditions other = {.if_match = FGW_LIT("abd")};
    fgw_error_init(&error);
    assert_int_equal(fgw_conditions_check(&any, NULL, &error), FGW_OK);
    assert_int_equal(fgw_conditions_check(&any, &existing, &error), FGW_ERR_PRECONDITION_FAILED);
    assert_string_equal(error.extra[0].value, "If-None-Match");
    assert_int_equal(fgw_conditions_check(&match, &existing, &error), FGW_OK);
    assert_int_equal(fgw_conditions_check(&match, NULL, &error), FGW_ERR_NO_SUCH_KEY);
    assert_int_equal(fgw_conditions_check(&other, &existing, &error), FGW_ERR_PRECONDITION_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(object_rows_keep_everything),
        cmocka_unit_test(damaged_and_newer_rows_are_refused),
        cmocka_unit_test(listing_columns_outlive_the_row),
        cmocka_unit_test(random_bytes_never_crash_a_decoder),
        cmocka_unit_test(version_ids_grow),
        cmocka_unit_test(delimiter_pages_cover_everything_once),
        cmocka_unit_test(start_inside_a_prefix_skips_it),
        cmocka_unit_test(conditions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
