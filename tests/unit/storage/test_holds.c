/* test_holds.c: the walk over all holds, against a model; reading blocks one by one. */
#include "fixture.h"

#include <stdio.h>

#include "base/encode.h"
#include "storage/items.h"
#include "storage/storage_internal.h"

enum { OWNERS = 60, BODIES = 7, LARGE_BODIES = 2, LARGE_SIZE = 2 * 1024 * 1024 + 77 };

/* What owner i holds. */
struct model {
    bool held[OWNERS];
    bool steady[OWNERS]; /* held during a whole walk */
    struct fgw_cid roots[OWNERS];
    uint64_t sizes[OWNERS];
};

static unsigned seen_times[OWNERS];
static uint64_t random_state = 4711;

static unsigned draw(unsigned bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 32) % bound;
}

static void take(struct fgw_storage *storage, struct model *model, unsigned i)
{
    static const char *const TEXTS[BODIES] = {"", "a", "bb", "ccc", "dddd", "eeeee", "ffffff"};
    struct fgw_storage_owner owner;
    unsigned body = draw(BODIES + LARGE_BODIES);
    char key[32];
    (void)snprintf(key, sizeof key, "key-%u", i);
    make_owner(&owner, key, i + 1);
    if (body < BODIES) {
        struct put put = {.key = key, .body = fgw_bytes_str(TEXTS[body]), .owner_number = i + 1};
        assert_int_equal(put_object(storage, &put), FGW_OK);
        model->roots[i] = fgw_cid_of(FGW_CODEC_RAW, put.body);
        model->sizes[i] = put.body.len;
    } else {
        assert_int_equal(put_large_object(storage, key, i + 1, LARGE_SIZE, body), FGW_OK);
        struct fgw_row_key hold_key = fgw_row_key_hold(owner.owner_id, 0);
        struct fgw_hold_row row;
        struct fgw_buf value;
        fgw_buf_init(&value, 0);
        assert_int_equal(fgw_storage_index_get(storage, &hold_key, &value), FGW_OK);
        assert_int_equal(fgw_hold_row_decode(fgw_buf_bytes(&value), &row), FGW_OK);
        model->roots[i] = fgw_cid_make(row.codec, row.digest);
        model->sizes[i] = LARGE_SIZE;
        fgw_buf_deinit(&value);
    }
    model->held[i] = true;
}

static void drop(struct fgw_storage *storage, struct model *model, unsigned i)
{
    char key[32];
    (void)snprintf(key, sizeof key, "key-%u", i);
    assert_int_equal(delete_object(storage, key), FGW_OK);
    model->held[i] = false;
}

static void step(struct fgw_storage *storage, struct model *model)
{
    unsigned i = draw(OWNERS);
    if (!model->held[i]) {
        take(storage, model, i);
    } else if (!model->steady[i]) {
        drop(storage, model, i);
    }
}

static void check_seen(const struct model *model, const struct fgw_storage_hold_seen *seen)
{
    char key[32];
    unsigned i = fgw_get_u32le(seen->owner.owner_id) - 1;
    assert_true(i < OWNERS);
    seen_times[i]++;
    (void)snprintf(key, sizeof key, "key-%u", i);
    assert_true(fgw_bytes_eq_str(seen->owner.key, key));
    assert_memory_equal(seen->owner.bucket_id, "bucket", 6);
    assert_int_equal(seen->extent, 0);
    if (model->steady[i]) {
        assert_true(fgw_cid_eq(&seen->root, &model->roots[i]));
        assert_int_equal(seen->size_bytes, model->sizes[i]);
    }
}

static void walk(struct fgw_storage *storage, struct model *model, size_t max, bool change)
{
    struct fgw_arena arena;
    struct fgw_buf cursor;
    size_t count = 0;
    struct fgw_storage_hold_seen *seen = NULL;
    memset(seen_times, 0, sizeof seen_times);
    memcpy(model->steady, model->held, sizeof model->steady);
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&cursor, 0);
    do {
        assert_int_equal(fgw_storage_holds_next(storage, &cursor, &arena, max, &seen, &count),
                         FGW_OK);
        assert_true(count <= max);
        for (size_t i = 0; i < count; i++) {
            check_seen(model, &seen[i]);
        }
        if (change && draw(4) == 0) {
            step(storage, model);
        }
    } while (count > 0);
    for (unsigned i = 0; i < OWNERS; i++) {
        if (model->steady[i]) {
            assert_int_equal(seen_times[i], 1);
        } else if (!change) {
            assert_int_equal(seen_times[i], 0);
        }
    }
    assert_int_equal(fgw_storage_holds_next(storage, &cursor, &arena, max, &seen, &count), FGW_OK);
    assert_int_equal(count, 0);
    memset(model->steady, 0, sizeof model->steady);
    fgw_buf_deinit(&cursor);
    fgw_arena_deinit(&arena);
}

static void compare_with_model(struct fixture *fixture)
{
    struct model model = {0};
    walk(fixture->storage, &model, 10, false);
    for (unsigned round = 0; round < 12; round++) {
        for (unsigned i = 0; i < 25; i++) {
            step(fixture->storage, &model);
        }
        walk(fixture->storage, &model, 1 + round * round, false);
        walk(fixture->storage, &model, 1 + draw(5), true);
    }
}

static void every_hold_is_met_once(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, compare_with_model);
    fixture_deinit(&fixture);
}

static void try_cursors(struct fixture *fixture)
{
    struct fgw_arena arena;
    struct fgw_buf cursor;
    struct fgw_storage_hold_seen *seen;
    size_t count;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&cursor, 0);
    (void)fgw_buf_append(&cursor, FGW_LIT("x"));
    assert_int_equal(fgw_storage_holds_next(fixture->storage, &cursor, &arena, 1, &seen, &count),
                     FGW_ERR_INVALID_ARGUMENT);
    fgw_buf_clear(&cursor);
    for (int i = 0; i < 100; i++) {
        (void)fgw_buf_append_byte(&cursor, 'b');
    }
    assert_int_equal(fgw_storage_holds_next(fixture->storage, &cursor, &arena, 1, &seen, &count),
                     FGW_ERR_INVALID_ARGUMENT);
    fgw_buf_deinit(&cursor);
    fgw_arena_deinit(&arena);
}

static void a_foreign_cursor_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, try_cursors);
    fixture_deinit(&fixture);
}

/* -- an owner that says it twice ----------------------------------------------------------------- */

static void hold_twice(struct fixture *fixture)
{
    struct fgw_storage_owner owner;
    struct fgw_cid root = fgw_cid_of(FGW_CODEC_RAW, FGW_LIT("same"));
    struct put first = {.key = "first", .body = FGW_LIT("same"), .owner_number = 1};
    struct put second = {.key = "second", .body = FGW_LIT("same"), .owner_number = 2};
    assert_int_equal(put_object(fixture->storage, &first), FGW_OK);
    assert_int_equal(put_object(fixture->storage, &second), FGW_OK);
    assert_int_equal(delete_object(fixture->storage, "first"), FGW_OK);
    make_owner(&owner, "second", 2);
    struct fgw_storage_block block = make_block(FGW_LIT("same"));
    struct fgw_item_owner item_owner = {.address = owner};
    struct fgw_item_block item = {.codec = FGW_CODEC_RAW, .len = 4, .crc32c = block.crc32c};
    struct fgw_buf items;
    memcpy(item.digest, fgw_cid_digest(&root), sizeof item.digest);
    fgw_buf_init(&items, 0);
    fgw_item_put_block_hold(&items, &item, &item_owner);
    assert_int_equal(fgw_storage_commit_items(fixture->storage, "hold", &items), FGW_OK);
    fgw_buf_deinit(&items);
    assert_int_equal(count_holds(fixture->storage), 1);
    assert_int_equal(release_hold(fixture->storage, &owner, &root), FGW_OK);
    assert_int_equal(count_holds(fixture->storage), 0);
    assert_true(has_row(fixture->storage, 'q'));
    assert_false(has_row(fixture->storage, 'r'));
}

static void an_owner_holds_a_block_once(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, hold_twice);
    fixture_deinit(&fixture);
}

/* -- copying block by block ---------------------------------------------------------------------- */

static void copy_blocks(struct fgw_storage *storage, struct fgw_storage_reader *reader,
                        struct fgw_storage_writer *writer, bool leaves)
{
    uint8_t digests[4][FGW_SHA256_SIZE];
    uint64_t total = fgw_storage_reader_blocks(reader, leaves);
    struct fgw_buf bytes;
    fgw_buf_init(&bytes, 0);
    for (uint64_t first = 0; first < total;) {
        size_t count = 0;
        assert_int_equal(fgw_storage_reader_digests(reader, leaves, first, 4, digests, &count),
                         FGW_OK);
        for (size_t i = 0; i < count; i++) {
            struct fgw_cid cid =
                fgw_cid_make(leaves ? FGW_CODEC_RAW : FGW_CODEC_DAG_PB, digests[i]);
            struct fgw_storage_block block;
            assert_int_equal(fgw_storage_read_block(storage, &cid, &bytes, &block), FGW_OK);
            assert_int_equal(fgw_storage_writer_add(writer, &block, leaves), FGW_OK);
        }
        first += count;
    }
    size_t none = 0;
    assert_int_equal(fgw_storage_reader_digests(reader, leaves, total, 4, digests, &none),
                     FGW_ERR_NOT_FOUND);
    fgw_buf_deinit(&bytes);
}

enum { COPIED_SIZE = 5 * 1024 * 1024 + 9 };

static void copy_a_blob(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_storage_owner owners[2];
    struct fgw_storage_reader *reader;
    struct fgw_storage_writer *writer;
    struct fgw_cid root;
    make_owner(&owners[0], "from", 1);
    make_owner(&owners[1], "to", 2);
    assert_int_equal(put_large(storage, &owners[0], COPIED_SIZE, 3, &root), FGW_OK);
    assert_int_equal(fgw_storage_reader_open(storage, &root, NULL, &reader), FGW_OK);
    assert_int_equal(fgw_storage_reader_blocks(reader, true), 6);
    assert_int_equal(fgw_storage_reader_blocks(reader, false), 1);
    assert_int_equal(fgw_storage_writer_new(storage, &owners[1], 0, COPIED_SIZE, &writer), FGW_OK);
    copy_blocks(storage, reader, writer, true);
    copy_blocks(storage, reader, writer, false);
    assert_int_equal(fgw_storage_writer_finish(writer, &root, COPIED_SIZE), FGW_OK);
    fgw_storage_writer_free(writer);
    fgw_storage_reader_close(reader);
    assert_int_equal(count_holds(storage), 2);
    struct fgw_cid absent = fgw_cid_of(FGW_CODEC_RAW, FGW_LIT("nowhere"));
    struct fgw_storage_block block;
    struct fgw_buf bytes;
    fgw_buf_init(&bytes, 0);
    assert_int_equal(fgw_storage_read_block(storage, &absent, &bytes, &block), FGW_ERR_NOT_FOUND);
    fgw_buf_deinit(&bytes);
}

static void a_blob_is_copied_block_by_block(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, copy_a_blob);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_hold_is_met_once),
        cmocka_unit_test(a_foreign_cursor_is_refused),
        cmocka_unit_test(an_owner_holds_a_block_once),
        cmocka_unit_test(a_blob_is_copied_block_by_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
