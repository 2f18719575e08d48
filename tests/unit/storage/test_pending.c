/* test_pending.c: holds that wait for their name: taken, confirmed, asked about, dropped, remembered by the
 * log. */
#include "fixture.h"

#include "storage/pending.h"
#include "storage/storage_internal.h"

enum { MIB = 1024 * 1024 };

static enum fgw_storage_liveness answer;
static enum fgw_err named_answer;
static unsigned asked, named;
static struct fgw_storage_hold_seen last_named;

static enum fgw_err live(void *context, const struct fgw_storage_owner *owner,
                         const struct fgw_cid *root, enum fgw_storage_liveness *out_liveness)
{
    (void)context;
    (void)root;
    assert_true(fgw_bytes_eq_str(owner->key, "key"));
    asked++;
    *out_liveness = answer;
    return FGW_OK;
}

static enum fgw_err on_named(void *context, const struct fgw_storage_hold_seen *hold)
{
    (void)context;
    named++;
    last_named = *hold;
    return named_answer;
}

static enum fgw_err accept(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    (void)op;
    (void)txn;
    return FGW_OK;
}

static struct fgw_cid hold_small(struct fgw_storage *storage, unsigned owner_number)
{
    struct fgw_storage_owner owner;
    struct fgw_storage_block block = make_block(FGW_LIT("a small body"));
    make_owner(&owner, "key", owner_number);
    struct fgw_storage_hold hold = {.owner = &owner,
                                    .extent = 7,
                                    .root = block.cid,
                                    .size_bytes = block.bytes.len,
                                    .block = &block,
                                    .pending = true,
                                    .listed = true};
    struct fgw_storage_op op = {
        .name = "hold", .evaluate = accept, .holds = &hold, .hold_count = 1};
    assert_int_equal(fgw_storage_commit(storage, &op), FGW_OK);
    return block.cid;
}

static void pass(struct fgw_storage *storage, enum fgw_storage_liveness says)
{
    answer = says;
    fgw_fiber_sleep_ms(5);
    (void)fgw_pending_care(storage, live, NULL);
}

/* How many wait, as of a look that decides nothing. */
static uint64_t waiting(struct fgw_storage *storage)
{
    struct fgw_storage_stats stats;
    unsigned before = asked;
    pass(storage, FGW_STORAGE_UNDECIDED);
    asked = before;
    fgw_storage_stats(storage, &stats);
    return stats.pending_holds;
}

static uint64_t holds_of(struct fgw_storage *storage)
{
    struct fgw_buf cursor;
    struct fgw_arena arena;
    struct fgw_storage_hold_seen *seen;
    uint64_t total = 0;
    size_t count;
    fgw_buf_init(&cursor, 0);
    fgw_arena_init(&arena, 0);
    do {
        assert_int_equal(fgw_storage_holds_next(storage, &cursor, &arena, 100, &seen, &count),
                         FGW_OK);
        total += count;
    } while (count > 0);
    fgw_arena_deinit(&arena);
    fgw_buf_deinit(&cursor);
    return total;
}

static void open_it(struct fixture *fixture, uint64_t ask_ms, uint64_t drop_ms)
{
    fixture_init(fixture);
    fixture->options.pending_ask_ms = ask_ms;
    fixture->options.pending_drop_ms = drop_ms;
    fixture_open(fixture);
    asked = named = 0;
    named_answer = FGW_OK;
}

/* -- confirmed ----------------------------------------------------------------------------------- */

static void confirm_them(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_storage_hold_seen seen = {.extent = 7, .root = hold_small(storage, 1)};
    make_owner(&seen.owner, "key", 1);
    (void)hold_small(storage, 2);
    (void)hold_small(storage, 2); /* said twice */
    assert_int_equal(waiting(storage), 2);
    /* another root: passed over */
    struct fgw_storage_hold_seen other = seen;
    other.root.bytes[20] ^= 1;
    assert_int_equal(fgw_storage_confirm(storage, &other, 1), FGW_OK);
    assert_int_equal(waiting(storage), 2);
    assert_int_equal(fgw_storage_confirm(storage, &seen, 1), FGW_OK);
    assert_int_equal(fgw_storage_confirm(storage, &seen, 1), FGW_OK);
    assert_int_equal(waiting(storage), 1);
    assert_int_equal(holds_of(storage), 2);
}

static void reopened(struct fixture *fixture)
{
    assert_int_equal(waiting(fixture->storage), 1);
    assert_int_equal(holds_of(fixture->storage), 2);
    make_owner(&last_named.owner, "key", 2);
    struct fgw_storage_block block = make_block(FGW_LIT("a small body"));
    assert_int_equal(
        fgw_storage_release(fixture->storage, last_named.owner.owner_id, 7, &block.cid), FGW_OK);
    assert_int_equal(waiting(fixture->storage), 0);
    assert_int_equal(holds_of(fixture->storage), 1);
}

static void confirmed_holds_wait_no_longer(void **state)
{
    (void)state;
    struct fixture fixture;
    open_it(&fixture, 1, 0);
    fixture_run(&fixture, confirm_them);
    fixture_close(&fixture);
    fixture_drop_index(&fixture); /* the log knows it too */
    fixture_open(&fixture);
    fixture_run(&fixture, reopened);
    fixture_deinit(&fixture);
}

/* -- asked about --------------------------------------------------------------------------------- */

static void young_ones(struct fixture *fixture)
{
    (void)hold_small(fixture->storage, 1);
    pass(fixture->storage, FGW_STORAGE_HERE);
    assert_int_equal(asked, 0);
    assert_int_equal(waiting(fixture->storage), 1);
}

static void young_ones_are_not_asked_about(void **state)
{
    (void)state;
    struct fixture fixture;
    open_it(&fixture, 0, 0);
    fixture_run(&fixture, young_ones);
    fixture_deinit(&fixture);
}

static void named_here(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_cid root;
    struct fgw_storage_owner owner;
    make_owner(&owner, "key", 3);
    fgw_storage_set_named(storage, on_named, NULL);
    assert_int_equal(put_large(storage, &owner, 3 * MIB, 5, &root), FGW_OK);
    /* the same blob once more, pending: a copy */
    struct fgw_storage_hold hold = {
        .owner = &owner, .extent = 8, .root = root, .size_bytes = 3 * MIB, .pending = true};
    struct fgw_storage_op op = {
        .name = "hold", .evaluate = accept, .holds = &hold, .hold_count = 1};
    assert_int_equal(fgw_storage_commit(storage, &op), FGW_OK);
    named_answer = FGW_ERR_UNAVAILABLE; /* another store cannot be reached */
    pass(storage, FGW_STORAGE_HERE);
    assert_int_equal(named, 1);
    assert_int_equal(last_named.extent, 8);
    assert_int_equal(last_named.size_bytes, 3 * MIB);
    assert_true(fgw_cid_eq(&last_named.root, &root));
    assert_int_equal(waiting(storage), 1);
    named_answer = FGW_OK;
    pass(storage, FGW_STORAGE_HERE);
    assert_int_equal(named, 2);
    assert_int_equal(waiting(storage), 0);
    assert_int_equal(holds_of(storage), 2);
}

static void what_is_named_here_is_confirmed_once_it_is_whole(void **state)
{
    (void)state;
    struct fixture fixture;
    open_it(&fixture, 1, 0);
    fixture_run(&fixture, named_here);
    fixture_deinit(&fixture);
}

static void absent_or_elsewhere(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    (void)hold_small(storage, 1);
    pass(storage, FGW_STORAGE_ABSENT);
    fgw_fiber_sleep_ms(100);
    pass(storage, FGW_STORAGE_ABSENT); /* the sweeper's, however old */
    assert_int_equal(waiting(storage), 1);
    (void)hold_small(storage, 1); /* taken again: young again */
    pass(storage, FGW_STORAGE_ELSEWHERE);
    assert_int_equal(waiting(storage), 1);
    assert_int_equal(holds_of(storage), 1);
    fgw_fiber_sleep_ms(100);
    fgw_storage_free_nothing_until(storage, UINT64_MAX);
    pass(storage, FGW_STORAGE_ELSEWHERE);
    assert_int_equal(holds_of(storage), 1);
    fgw_storage_free_nothing_until(storage, 0);
    pass(storage, FGW_STORAGE_ELSEWHERE);
    assert_int_equal(waiting(storage), 0);
    assert_int_equal(holds_of(storage), 0);
}

static void only_what_is_named_elsewhere_goes_and_not_soon(void **state)
{
    (void)state;
    struct fixture fixture;
    open_it(&fixture, 1, 80);
    fixture_run(&fixture, absent_or_elsewhere);
    fixture_deinit(&fixture);
}

static void many(struct fixture *fixture)
{
    enum { MANY = 1203 };
    for (unsigned i = 0; i < MANY; i++) {
        (void)hold_small(fixture->storage, i + 1);
    }
    assert_int_equal(waiting(fixture->storage), MANY);
    pass(fixture->storage, FGW_STORAGE_HERE);
    assert_int_equal(asked, MANY);
    assert_int_equal(waiting(fixture->storage), 0);
    assert_int_equal(holds_of(fixture->storage), MANY);
}

static void more_than_a_page_is_settled_in_a_pass(void **state)
{
    (void)state;
    struct fixture fixture;
    open_it(&fixture, 1, 0);
    fixture.options.sync_off = true;
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, many);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(confirmed_holds_wait_no_longer),
        cmocka_unit_test(young_ones_are_not_asked_about),
        cmocka_unit_test(what_is_named_here_is_confirmed_once_it_is_whole),
        cmocka_unit_test(only_what_is_named_elsewhere_goes_and_not_soon),
        cmocka_unit_test(more_than_a_page_is_settled_in_a_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
