/* test_care.c: release of what nothing holds, reading sessions, lists of dead writers, hints. */
#include "fixture.h"

#include <stdio.h>

#include <unistd.h>

#include "storage/items.h"
#include "storage/release.h"
#include "storage/storage_internal.h"

enum { MIB = 1024 * 1024 };

static struct fgw_release_result release_all(struct fgw_storage *storage)
{
    struct fgw_release_result sum = {0};
    struct fgw_release_result one = {.more = true};
    while (one.more) {
        assert_int_equal(fgw_release_pass(storage, &one), FGW_OK);
        sum.blocks += one.blocks;
        sum.blobs += one.blobs;
        sum.owners += one.owners;
        sum.slices += one.slices;
    }
    return sum;
}

static struct fgw_storage_stats stats_of(struct fgw_storage *storage)
{
    struct fgw_storage_stats stats;
    fgw_storage_stats(storage, &stats);
    return stats;
}

static void run_fresh(void (*fn)(struct fixture *fixture), uint64_t release_delay_ms)
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.release_delay_ms = release_delay_ms;
    fixture_open(&fixture);
    fixture_run(&fixture, fn);
    fixture_deinit(&fixture);
}

/* -- small bodies -------------------------------------------------------------------------------- */

static void put_three_delete_two(struct fixture *fixture)
{
    struct put puts[] = {{.key = "a", .body = FGW_LIT("one"), .owner_number = 1},
                         {.key = "b", .body = FGW_LIT("two"), .owner_number = 2},
                         {.key = "c", .body = FGW_LIT("one"), .owner_number = 3}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(put_object(fixture->storage, &puts[i]), FGW_OK);
    }
    assert_int_equal(stats_of(fixture->storage).blocks, 2);
    assert_int_equal(stats_of(fixture->storage).groups, 1);
    uint64_t written =
        stats_of(fixture->storage).live_bytes + stats_of(fixture->storage).dead_bytes;
    assert_true(stats_of(fixture->storage).log_bytes > written);
    assert_int_equal(delete_object(fixture->storage, "a"), FGW_OK);
    assert_int_equal(delete_object(fixture->storage, "b"), FGW_OK);
    usleep(5000);
}

static void frees_what_is_due(struct fixture *fixture)
{
    put_three_delete_two(fixture);
    struct fgw_storage_stats before = stats_of(fixture->storage);
    struct fgw_release_result result = release_all(fixture->storage);
    assert_int_equal(result.blocks, 1); /* "one" is still held by c */
    struct fgw_storage_stats after = stats_of(fixture->storage);
    assert_int_equal(after.blocks, 1);
    assert_int_equal(after.live_bytes + after.dead_bytes, before.live_bytes + before.dead_bytes);
    assert_true(after.dead_bytes > before.dead_bytes);
    assert_false(has_row(fixture->storage, 'q'));
    assert_int_equal(release_all(fixture->storage).blocks, 0);
}

static void deleted_bodies_are_freed(void **state)
{
    (void)state;
    run_fresh(frees_what_is_due, 0);
}

static void keeps_what_is_not_due(struct fixture *fixture)
{
    put_three_delete_two(fixture);
    assert_int_equal(release_all(fixture->storage).blocks, 0);
    assert_true(has_row(fixture->storage, 'q'));
    /* held again before it was due: it stays */
    struct put again = {.key = "d", .body = FGW_LIT("two"), .owner_number = 4};
    assert_int_equal(put_object(fixture->storage, &again), FGW_OK);
    assert_false(has_row(fixture->storage, 'q'));
}

static void nothing_is_freed_before_the_delay(void **state)
{
    (void)state;
    run_fresh(keeps_what_is_not_due, 3600 * 1000);
}

/* -- large bodies and their readers -------------------------------------------------------------- */

static void read_while_released(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_storage_owner owner;
    struct fgw_cid root;
    struct fgw_storage_reader *reader;
    struct fgw_storage_run run;
    make_owner(&owner, "large", 7);
    assert_int_equal(put_large(storage, &owner, 3 * MIB + 5, 1, &root), FGW_OK);
    assert_int_equal(stats_of(storage).blocks, 5);
    assert_int_equal(fgw_storage_reader_open(storage, &root, NULL, &reader), FGW_OK);
    assert_int_equal(fgw_storage_reader_next(reader, 0, 100, true, &run), FGW_OK);
    assert_int_equal(release_hold(storage, &owner, &root), FGW_OK);
    usleep(5000);
    assert_int_equal(release_all(storage).blobs, 0);
    assert_int_equal(fgw_storage_reader_next(reader, 3 * MIB, 100, true, &run), FGW_OK);
    assert_int_equal(run.bytes.len, 5);
    fgw_storage_reader_close(reader);
    struct fgw_release_result result = release_all(storage);
    assert_int_equal(result.blobs, 1);
    assert_int_equal(result.slices, 2); /* leaves and nodes */
    assert_int_equal(stats_of(storage).blocks, 0);
    assert_int_equal(stats_of(storage).live_bytes, 0);
    assert_false(has_row(storage, 'q') || has_row(storage, 'p') || has_row(storage, 'l') ||
                 has_row(storage, 'B') || has_row(storage, 'b') || has_row(storage, 'h'));
    assert_int_equal(fgw_storage_reader_open(storage, &root, NULL, &reader), FGW_ERR_NOT_FOUND);
}

static void a_blob_that_is_read_stays(void **state)
{
    (void)state;
    run_fresh(read_while_released, 0);
}

static void same_body_twice(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_storage_owner owners[2];
    struct fgw_cid root;
    make_owner(&owners[0], "first", 1);
    make_owner(&owners[1], "second", 2);
    assert_int_equal(put_large(storage, &owners[0], 2 * MIB, 9, &root), FGW_OK);
    assert_int_equal(put_large(storage, &owners[1], 2 * MIB, 9, &root), FGW_OK);
    assert_int_equal(release_all(storage).slices, 2); /* the second list */
    assert_int_equal(stats_of(storage).blocks, 3);
    assert_int_equal(release_hold(storage, &owners[0], &root), FGW_OK);
    usleep(5000);
    assert_int_equal(release_all(storage).blobs, 0);
    assert_int_equal(release_hold(storage, &owners[1], &root), FGW_OK);
    usleep(5000);
    assert_int_equal(release_all(storage).blobs, 1);
    assert_int_equal(stats_of(storage).blocks, 0);
}

static void a_shared_blob_goes_with_its_last_hold(void **state)
{
    (void)state;
    run_fresh(same_body_twice, 0);
}

/* -- owners -------------------------------------------------------------------------------------- */

enum { PARTS = 1203 };

/* Holds as parts of an upload have them, many to one owner. */
static void hold_parts(struct fgw_storage *storage, const struct fgw_storage_owner *owner)
{
    struct fgw_buf items;
    fgw_buf_init(&items, 0);
    for (unsigned i = 0; i < PARTS; i++) {
        struct fgw_item_owner part = {.address = *owner, .extent = i, .listed = true};
        struct fgw_item_block block = {.written = true,
                                       .codec = FGW_CODEC_RAW,
                                       .len = 100,
                                       .group = 1,
                                       .offset = 1000 + 200 * i};
        fgw_put_u32le(block.digest, i);
        fgw_item_put_block_hold(&items, &block, &part);
    }
    assert_int_equal(fgw_storage_commit_items(storage, "parts", &items), FGW_OK);
    fgw_buf_deinit(&items);
}

static void release_an_upload(struct fixture *fixture)
{
    struct fgw_storage_owner owner;
    make_owner(&owner, "upload", 77);
    hold_parts(fixture->storage, &owner);
    assert_int_equal(release_hold(fixture->storage, &owner, NULL), FGW_OK);
    usleep(5000);
    struct fgw_release_result result = release_all(fixture->storage);
    assert_int_equal(result.owners, 1);
    usleep(5000);
    result.blocks += release_all(fixture->storage).blocks;
    assert_int_equal(result.blocks, PARTS);
    assert_int_equal(stats_of(fixture->storage).blocks, 0);
    assert_false(has_row(fixture->storage, 'q') || has_row(fixture->storage, 'h'));
}

static void all_parts_of_an_owner_are_released(void **state)
{
    (void)state;
    run_fresh(release_an_upload, 0);
}

/* -- lists of dead writers ----------------------------------------------------------------------- */

enum { SLICES = 3 };

static void put_slices(struct fgw_buf *items, struct fgw_item_slice *slice)
{
    struct fgw_item_block *blocks = fgw_xcalloc(FGW_SLICE_BLOCKS, sizeof *blocks);
    for (unsigned n = 0; n < SLICES; n++) {
        for (unsigned i = 0; i < FGW_SLICE_BLOCKS; i++) {
            blocks[i] = (struct fgw_item_block){.written = true,
                                                .codec = FGW_CODEC_RAW,
                                                .len = 10,
                                                .group = 2,
                                                .offset = 100 + 60 * i};
            fgw_put_u32le(blocks[i].digest, i / 2 + 1000 * n); /* each block twice */
        }
        slice->first = (uint64_t)n * FGW_SLICE_BLOCKS;
        fgw_item_put_slice(items, slice, blocks, n + 1 == SLICES ? 7 : FGW_SLICE_BLOCKS);
    }
    fgw_xfree(blocks);
}

static void leave_a_list(struct fixture *fixture)
{
    struct fgw_item_slice slice = {.list_id = "list", .kind = FGW_LIST_LEAVES};
    struct fgw_buf items;
    fgw_buf_init(&items, 0);
    make_owner(&slice.owner.address, "unfinished", 5);
    put_slices(&items, &slice);
    assert_int_equal(fgw_storage_commit_items(fixture->storage, "slices", &items), FGW_OK);
    fgw_buf_deinit(&items);
    assert_int_equal(stats_of(fixture->storage).blocks, 500 + 500 + 4);
    /* its writer may be at work */
    assert_int_equal(release_all(fixture->storage).slices, 0);
}

static void expect_list_dropped(struct fixture *fixture)
{
    assert_int_equal(release_all(fixture->storage).slices, SLICES);
    assert_int_equal(stats_of(fixture->storage).blocks, 0);
    assert_false(has_row(fixture->storage, 'p') || has_row(fixture->storage, 'l') ||
                 has_row(fixture->storage, 'r'));
}

static void unfinished_lists_are_dropped_after_a_restart(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, leave_a_list);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, expect_list_dropped);
    fixture_deinit(&fixture);
}

/* -- the thread ---------------------------------------------------------------------------------- */

static enum fgw_err live_if_keyed_live(void *context, const struct fgw_storage_owner *owner,
                                       const struct fgw_cid *root,
                                       enum fgw_storage_liveness *out_live)
{
    (void)root;
    _Atomic unsigned *calls = context;
    atomic_fetch_add(calls, 1);
    *out_live = fgw_bytes_eq_str(owner->key, "live") ? FGW_STORAGE_HERE : FGW_STORAGE_ABSENT;
    return FGW_OK;
}

static _Atomic unsigned live_calls;

static void wait_until_blocks_are(struct fgw_storage *storage, uint64_t blocks)
{
    for (int i = 0; i < 1000; i++) {
        fgw_figures_refresh(storage);
        if (stats_of(storage).blocks == blocks) {
            return;
        }
        fgw_fiber_sleep_ms(10);
    }
    fail();
}

static void hint_two(struct fixture *fixture)
{
    struct put puts[] = {{.key = "live", .body = FGW_LIT("one"), .owner_number = 1},
                         {.key = "dead", .body = FGW_LIT("two"), .owner_number = 2}};
    for (size_t i = 0; i < 2; i++) {
        struct fgw_storage_owner owner;
        struct fgw_cid root = fgw_cid_of(FGW_CODEC_RAW, puts[i].body);
        assert_int_equal(put_object(fixture->storage, &puts[i]), FGW_OK);
        make_owner(&owner, puts[i].key, puts[i].owner_number);
        fgw_storage_release_hint(fixture->storage, &owner, 0, &root);
    }
    wait_until_blocks_are(fixture->storage, 1);
    assert_int_equal(atomic_load(&live_calls), 2);
}

static void hints_are_followed_when_the_metadata_agrees(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fgw_storage_start_care(fixture.storage, live_if_keyed_live, &live_calls);
    fixture_run(&fixture, hint_two);
    fgw_storage_stop_care(fixture.storage);
    fgw_storage_stop_care(fixture.storage);
    fixture_deinit(&fixture);
}

/* Takes long enough for others to queue up behind it. */
static enum fgw_err live_slowly(void *context, const struct fgw_storage_owner *owner,
                                const struct fgw_cid *root, enum fgw_storage_liveness *out_live)
{
    (void)root;
    _Atomic unsigned *calls = context;
    fgw_fiber_sleep_ms(20);
    atomic_fetch_add(calls, 1);
    *out_live =
        fgw_bytes_starts_with(owner->key, FGW_LIT("live")) ? FGW_STORAGE_HERE : FGW_STORAGE_ABSENT;
    return FGW_OK;
}

enum { MANY_HINTS = 100 };

static void hint_many(struct fixture *fixture)
{
    char names[MANY_HINTS][16];
    for (unsigned i = 0; i < MANY_HINTS; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s %u", i % 4 == 0 ? "live" : "dead", i);
        struct put put = {.key = names[i], .body = fgw_bytes_str(names[i]), .owner_number = 10 + i};
        assert_int_equal(put_object(fixture->storage, &put), FGW_OK);
    }
    uint64_t before = stats_of(fixture->storage).operations;
    for (unsigned i = 0; i < MANY_HINTS; i++) {
        struct fgw_storage_owner owner;
        struct fgw_cid root = fgw_cid_of(FGW_CODEC_RAW, fgw_bytes_str(names[i]));
        make_owner(&owner, names[i], 10 + i);
        fgw_storage_release_hint(fixture->storage, &owner, 0, &root);
    }
    wait_until_blocks_are(fixture->storage, MANY_HINTS / 4);
    assert_int_equal(atomic_load(&live_calls), MANY_HINTS);
    assert_true(stats_of(fixture->storage).operations - before < MANY_HINTS / 2);
}

static void many_hints_end_in_few_commits(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    atomic_store(&live_calls, 0);
    fgw_storage_start_care(fixture.storage, live_slowly, &live_calls);
    fixture_run(&fixture, hint_many);
    fgw_storage_stop_care(fixture.storage);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deleted_bodies_are_freed),
        cmocka_unit_test(nothing_is_freed_before_the_delay),
        cmocka_unit_test(a_blob_that_is_read_stays),
        cmocka_unit_test(a_shared_blob_goes_with_its_last_hold),
        cmocka_unit_test(all_parts_of_an_owner_are_released),
        cmocka_unit_test(unfinished_lists_are_dropped_after_a_restart),
        cmocka_unit_test(hints_are_followed_when_the_metadata_agrees),
        cmocka_unit_test(many_hints_end_in_few_commits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
