/* test_sweep.c: the sweeper: what no row names goes, after two looks, and nothing else ever. */
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/encode.h"
#include "storage/release.h"
#include "storage/storage_internal.h"

enum { MIB = 1024 * 1024, GRACE_MS = 60, MIN_AGE_MS = 40 };

static uint64_t random_state = 20261130;

static unsigned draw(unsigned bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 32) % bound;
}

/* -- the table ----------------------------------------------------------------------------------- */

enum { TABLE_OWNERS = 40, TABLE_TAGS = 6 };

static struct fgw_sweep_candidate make_candidate(unsigned owner, unsigned tag)
{
    struct fgw_sweep_candidate candidate = {.found_ms = 1 + owner, .pass = tag};
    /* few homes, some at the end of the table: long runs that wrap around */
    candidate.owner_id[0] = (uint8_t)(owner % 5 == 0 ? 0xff : 0xf8 + owner % 3);
    candidate.owner_id[8] = (uint8_t)owner;
    candidate.tag[0] = (uint8_t)tag;
    return candidate;
}

static void compare_table(struct fgw_sweep_table *table, bool model[TABLE_OWNERS][TABLE_TAGS])
{
    size_t count = 0;
    for (unsigned owner = 0; owner < TABLE_OWNERS; owner++) {
        for (unsigned tag = 0; tag < TABLE_TAGS; tag++) {
            struct fgw_sweep_candidate like = make_candidate(owner, tag);
            struct fgw_sweep_candidate *found = fgw_sweep_find(table, &like);
            assert_int_equal(found != NULL, model[owner][tag]);
            assert_true(found == NULL || found->found_ms == 1 + owner);
            count += model[owner][tag];
        }
    }
    assert_int_equal(table->count, count);
}

static void candidates_are_kept_like_in_a_list(void **state)
{
    (void)state;
    bool model[TABLE_OWNERS][TABLE_TAGS] = {0};
    struct fgw_sweep_table table = {0};
    for (int step = 0; step < 20000; step++) {
        unsigned owner = draw(TABLE_OWNERS);
        unsigned tag = draw(TABLE_TAGS);
        struct fgw_sweep_candidate candidate = make_candidate(owner, tag);
        struct fgw_sweep_candidate *found = fgw_sweep_find(&table, &candidate);
        if (draw(20) == 0) {
            fgw_sweep_erase_owner(&table, candidate.owner_id);
            memset(model[owner], 0, sizeof model[owner]);
        } else if (found == NULL) {
            assert_non_null(fgw_sweep_enter(&table, &candidate));
            model[owner][tag] = true;
        } else if (draw(2) == 0) {
            fgw_sweep_erase(&table, found);
            model[owner][tag] = false;
        } else {
            assert_ptr_equal(fgw_sweep_enter(&table, &candidate), found);
        }
        if (step % 50 == 0) {
            compare_table(&table, model);
        }
    }
    fgw_sweep_prune(&table, 3);
    for (unsigned owner = 0; owner < TABLE_OWNERS; owner++) {
        for (unsigned tag = 0; tag < TABLE_TAGS; tag++) {
            model[owner][tag] = model[owner][tag] && tag == 3;
        }
    }
    compare_table(&table, model);
    fgw_sweep_table_free(&table);
}

/* -- the file ------------------------------------------------------------------------------------ */

static void the_file_is_read_whole_or_not_at_all(void **state)
{
    (void)state;
    static const uint8_t STORE[FGW_STORAGE_ID_SIZE] = "this store";
    static const uint8_t OTHER[FGW_STORAGE_ID_SIZE] = "another";
    struct fgw_sweep_memory memory = {
        .alarm = true, .last_ms = 77, .approved_ms = 66, .ownerless = 55};
    struct fgw_sweep_memory read;
    struct fgw_buf file;
    fgw_buf_init(&file, 0);
    for (unsigned i = 0; i < 100; i++) {
        struct fgw_sweep_candidate candidate = make_candidate(i, i % TABLE_TAGS);
        (void)fgw_sweep_enter(&memory.table, &candidate);
    }
    fgw_sweep_encode(&memory, STORE, &file);
    assert_int_equal(file.len, 64 + 100 * 32 + 4);
    assert_int_equal(fgw_sweep_decode(fgw_buf_bytes(&file), STORE, &read), FGW_OK);
    assert_true(read.alarm && read.last_ms == 77 && read.approved_ms == 66 && read.ownerless == 55);
    assert_int_equal(read.table.count, 100);
    fgw_sweep_table_free(&read.table);
    assert_int_equal(fgw_sweep_decode(fgw_buf_bytes(&file), OTHER, &read), FGW_ERR_CORRUPT);
    for (size_t len = 0; len < file.len; len++) {
        assert_int_not_equal(fgw_sweep_decode(fgw_bytes(file.ptr, len), STORE, &read), FGW_OK);
    }
    for (size_t at = 0; at < file.len; at += 7) {
        file.ptr[at] ^= 0x10;
        assert_int_not_equal(fgw_sweep_decode(fgw_buf_bytes(&file), STORE, &read), FGW_OK);
        file.ptr[at] ^= 0x10;
    }
    fgw_sweep_table_free(&memory.table);
    fgw_buf_deinit(&file);
}

/* -- passes -------------------------------------------------------------------------------------- */

static void open_for_sweep(struct fixture *fixture)
{
    fixture_init(fixture);
    fixture->options.sweep_grace_ms = GRACE_MS;
    fixture->options.sweep_min_age_ms = MIN_AGE_MS;
    fixture_open(fixture);
}

/* Liveness as metadata tells it: the row of the key names the owner. */
static enum fgw_err named_by_row(void *context, const struct fgw_storage_owner *owner,
                                 const struct fgw_cid *root, enum fgw_storage_liveness *out_live)
{
    struct fgw_buf row;
    (void)root;
    fgw_buf_init(&row, 0);
    enum fgw_err err = fgw_storage_get(context, owner->key, &row);
    bool named = err == FGW_OK && row.len >= 4 && memcmp(row.ptr, owner->owner_id, 4) == 0;
    *out_live = named ? FGW_STORAGE_HERE : FGW_STORAGE_ABSENT;
    fgw_buf_deinit(&row);
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

static struct fgw_storage_sweep_status status_of(struct fgw_storage *storage)
{
    struct fgw_storage_sweep_status status;
    fgw_storage_sweep_status(storage, &status);
    return status;
}

static uint64_t sweep(struct fgw_storage *storage)
{
    assert_int_equal(fgw_storage_sweep(storage, named_by_row, storage), FGW_OK);
    return status_of(storage).freed;
}

/* A look for which none of the waits has passed, however slow the machine is. */
static uint64_t sweep_early(struct fgw_storage *storage)
{
    enum { HOUR_MS = 3600 * 1000 };
    storage->options.sweep_grace_ms = HOUR_MS;
    storage->options.sweep_min_age_ms = HOUR_MS;
    uint64_t freed = sweep(storage);
    storage->options.sweep_grace_ms = GRACE_MS;
    storage->options.sweep_min_age_ms = MIN_AGE_MS;
    return freed;
}

static void wait_grace(void)
{
    fgw_fiber_sleep_ms(GRACE_MS + 10);
}

/* A hold without a row. */
static void leave_hold(struct fgw_storage *storage, unsigned owner_number, size_t size)
{
    struct fgw_storage_owner owner;
    struct fgw_cid root;
    make_owner(&owner, "nobody", owner_number);
    assert_int_equal(put_large(storage, &owner, size, owner_number, &root), FGW_OK);
}

static void two_looks(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct put put = {.key = "kept", .body = FGW_LIT("kept"), .owner_number = 1};
    assert_int_equal(put_object(storage, &put), FGW_OK);
    leave_hold(storage, 100, 3 * MIB);
    leave_hold(storage, 101, 2 * MIB + 1);
    assert_int_equal(sweep(storage), 0);
    assert_int_equal(status_of(storage).candidates, 2);
    assert_int_equal(status_of(storage).held, 3);
    assert_int_equal(sweep_early(storage), 0);
    wait_grace();
    assert_int_equal(sweep(storage), 2);
    assert_int_equal(count_holds(storage), 1);
    assert_int_equal(status_of(storage).candidates, 0);
    wait_grace();
    assert_int_equal(sweep(storage), 0);
    assert_int_equal(count_holds(storage), 1);
}

static void what_no_row_names_goes_after_two_looks(void **state)
{
    (void)state;
    struct fixture fixture;
    open_for_sweep(&fixture);
    fixture_run(&fixture, two_looks);
    fixture_deinit(&fixture);
}

static void first_look(struct fixture *fixture)
{
    leave_hold(fixture->storage, 100, 2 * MIB);
    assert_int_equal(sweep(fixture->storage), 0);
}

static void second_look(struct fixture *fixture)
{
    assert_int_equal(status_of(fixture->storage).candidates, 1);
    assert_int_equal(sweep_early(fixture->storage), 0); /* two hours after opening, at the least */
    wait_grace();
    assert_int_equal(sweep(fixture->storage), 1);
}

static void the_first_look_survives_a_restart(void **state)
{
    (void)state;
    struct fixture fixture;
    open_for_sweep(&fixture);
    fixture_run(&fixture, first_look);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, second_look);
    fixture_deinit(&fixture);
}

static void renew_between(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_storage_owner owner;
    make_owner(&owner, "nobody", 100);
    leave_hold(storage, 100, 2 * MIB);
    assert_int_equal(sweep(storage), 0);
    wait_grace();
    fgw_storage_hold_renewed(storage, owner.owner_id);
    assert_int_equal(sweep(storage), 0);
    assert_int_equal(count_holds(storage), 1);
    wait_grace();
    assert_int_equal(sweep(storage), 1);
}

static void a_renewed_hold_is_looked_at_anew(void **state)
{
    (void)state;
    struct fixture fixture;
    open_for_sweep(&fixture);
    fixture_run(&fixture, renew_between);
    fixture_deinit(&fixture);
}

static void write_between(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_storage_owner owner;
    struct fgw_storage_writer *writer;
    make_owner(&owner, "nobody", 100);
    leave_hold(storage, 100, 2 * MIB);
    assert_int_equal(fgw_storage_writer_new(storage, &owner, 1, MIB, &writer), FGW_OK);
    assert_int_equal(sweep(storage), 0);
    assert_int_equal(status_of(storage).candidates, 0);
    wait_grace();
    assert_int_equal(sweep(storage), 0);
    fgw_storage_writer_free(writer);
    assert_int_equal(sweep(storage), 0);
    wait_grace();
    assert_int_equal(sweep(storage), 1);
}

static void an_upload_in_progress_keeps_its_holds(void **state)
{
    (void)state;
    struct fixture fixture;
    open_for_sweep(&fixture);
    fixture_run(&fixture, write_between);
    fixture_deinit(&fixture);
}

/* The row comes while the metadata is being asked, or right behind its answer. */
static enum fgw_err absent_then_named(void *context, const struct fgw_storage_owner *owner,
                                      const struct fgw_cid *root,
                                      enum fgw_storage_liveness *out_live)
{
    struct fixture *fixture = context;
    struct fgw_storage_hold hold = {
        .owner = owner, .root = *root, .size_bytes = 2 * MIB, .finished_writer = true};
    assert_int_equal(commit_row(fixture->storage, "nobody", 100, &hold), FGW_OK);
    *out_live = FGW_STORAGE_ABSENT;
    return FGW_OK;
}

static void name_while_asked(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    leave_hold(storage, 100, 2 * MIB);
    assert_int_equal(sweep(storage), 0);
    wait_grace();
    assert_int_equal(fgw_storage_sweep(storage, absent_then_named, fixture), FGW_OK);
    assert_int_equal(status_of(storage).freed, 0);
    assert_int_equal(count_holds(storage), 1);
    wait_grace();
    assert_int_equal(sweep(storage), 0);
}

static void a_hold_that_is_named_meanwhile_stays(void **state)
{
    (void)state;
    struct fixture fixture;
    open_for_sweep(&fixture);
    fixture_run(&fixture, name_while_asked);
    fixture_deinit(&fixture);
}

static enum fgw_err metadata_is_down(void *context, const struct fgw_storage_owner *owner,
                                     const struct fgw_cid *root,
                                     enum fgw_storage_liveness *out_live)
{
    (void)context;
    (void)owner;
    (void)root;
    (void)out_live;
    return FGW_ERR_UNAVAILABLE;
}

static void ask_in_vain(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    leave_hold(storage, 100, 2 * MIB);
    assert_int_equal(sweep(storage), 0);
    wait_grace();
    assert_int_equal(fgw_storage_sweep(storage, metadata_is_down, NULL), FGW_ERR_UNAVAILABLE);
    assert_int_equal(count_holds(storage), 1);
    assert_int_equal(status_of(storage).failed, FGW_ERR_UNAVAILABLE);
    fgw_storage_free_nothing_until(storage, fgw_storage_running_ms(storage) + 3600 * 1000);
    assert_int_equal(sweep(storage), 0);
    fgw_storage_free_nothing_until(storage, 0);
    assert_int_equal(sweep(storage), 1);
}

static void nothing_goes_without_an_answer_or_while_forbidden(void **state)
{
    (void)state;
    struct fixture fixture;
    open_for_sweep(&fixture);
    fixture_run(&fixture, ask_in_vain);
    fixture_deinit(&fixture);
}

/* -- the brake ----------------------------------------------------------------------------------- */

enum { MANY = 1005 };

static enum fgw_err nobody_lives(void *context, const struct fgw_storage_owner *owner,
                                 const struct fgw_cid *root, enum fgw_storage_liveness *out_live)
{
    (void)context;
    (void)owner;
    (void)root;
    *out_live = FGW_STORAGE_ABSENT;
    return FGW_OK;
}

static void lose_the_database(struct fixture *fixture)
{
    for (unsigned i = 0; i < MANY; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%u", i);
        struct put put = {.key = key, .body = fgw_bytes_str(key), .owner_number = i + 1};
        assert_int_equal(put_object(fixture->storage, &put), FGW_OK);
    }
    for (int look = 0; look < 3; look++) {
        assert_int_equal(fgw_storage_sweep(fixture->storage, nobody_lives, NULL), FGW_OK);
        assert_int_equal(status_of(fixture->storage).freed, 0);
        assert_int_equal(status_of(fixture->storage).ownerless, MANY);
        assert_true(status_of(fixture->storage).alarm);
        wait_grace();
    }
}

static void approve(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    assert_true(status_of(storage).alarm);
    wait_grace();
    assert_int_equal(fgw_storage_sweep(storage, nobody_lives, NULL), FGW_OK);
    assert_int_equal(status_of(storage).freed, 0);
    fgw_storage_sweep_approve(storage);
    struct put put = {.key = "new", .body = FGW_LIT("new"), .owner_number = MANY + 1};
    assert_int_equal(put_object(storage, &put), FGW_OK);
    assert_int_equal(fgw_storage_sweep(storage, nobody_lives, NULL), FGW_OK);
    /* the new one is due too when this pass took longer than the grace: one alone is believed */
    uint64_t freed = status_of(storage).freed;
    assert_true(freed == MANY || freed == MANY + 1);
    assert_false(status_of(storage).alarm);
    assert_int_equal(count_holds(storage), MANY + 1 - freed);
}

static void too_many_are_not_believed(void **state)
{
    (void)state;
    struct fixture fixture;
    open_for_sweep(&fixture);
    fixture_run(&fixture, lose_the_database);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, approve);
    fixture_deinit(&fixture);
}

/* -- kill -9 between a finished blob and its row ------------------------------------------------- */

static void finish_and_die(struct fixture *fixture)
{
    assert_int_equal(put_large_object(fixture->storage, "kept", 1, 2 * MIB + 3, 5), FGW_OK);
    leave_hold(fixture->storage, 2, 3 * MIB + 3);
    (void)raise(SIGKILL);
}

static void expect_only_kept(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    assert_int_equal(count_holds(storage), 2);
    assert_int_equal(sweep(storage), 0);
    wait_grace();
    assert_int_equal(sweep(storage), 1);
    assert_int_equal(count_holds(storage), 1);
    struct fgw_release_result result = {.more = true};
    fgw_fiber_sleep_ms(5);
    while (result.more) {
        assert_int_equal(fgw_release_pass(storage, &result), FGW_OK);
    }
    assert_int_equal(get_object(storage, "kept", &body), FGW_OK);
    assert_int_equal(body.len, 2 * MIB + 3);
    fgw_figures_refresh(storage);
    struct fgw_storage_stats stats;
    fgw_storage_stats(storage, &stats);
    assert_int_equal(stats.blocks, 4); /* three leaves and a node */
    fgw_buf_deinit(&body);
}

static void what_a_killed_process_left_behind_goes(void **state)
{
    (void)state;
    struct fixture fixture;
    int status;
    fixture_init(&fixture);
    fixture.options.sweep_grace_ms = GRACE_MS;
    fixture.options.sweep_min_age_ms = MIN_AGE_MS;
    pid_t child = fork();
    if (child == 0) {
        fixture_open(&fixture);
        fixture_run(&fixture, finish_and_die);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    fixture_open(&fixture);
    fixture_run(&fixture, expect_only_kept);
    fixture_deinit(&fixture);
}

/* -- random histories ---------------------------------------------------------------------------- */

enum { KEYS = 30, ROUNDS = 40, STEPS = 12 };

struct history {
    unsigned next_owner;
    bool present[KEYS];
    uint8_t body[KEYS]; /* which */
};

static struct history history;

static void random_step(struct fgw_storage *storage)
{
    static const char *const BODIES[] = {"a", "bb", "ccc", "dddd"};
    unsigned i = draw(KEYS);
    char key[16];
    (void)snprintf(key, sizeof key, "k%u", i);
    unsigned owner_number = history.next_owner++;
    switch (draw(5)) {
    case 0:
        if (history.present[i]) {
            assert_int_equal(delete_object(storage, key), FGW_OK);
            history.present[i] = false;
        }
        break;
    case 1: /* an upload that is never committed */
        leave_hold(storage, owner_number, MIB + 1 + draw(3) * MIB);
        break;
    case 2:
        history.body[i] = (uint8_t)(100 + draw(3));
        assert_int_equal(put_large_object(storage, key, owner_number, 2 * MIB, history.body[i]),
                         FGW_OK);
        history.present[i] = true;
        break;
    default:
        history.body[i] = (uint8_t)draw(4);
        struct put put = {.key = key,
                          .body = fgw_bytes_str(BODIES[history.body[i]]),
                          .owner_number = owner_number};
        assert_int_equal(put_object(storage, &put), FGW_OK);
        history.present[i] = true;
    }
}

static void check_all(struct fgw_storage *storage)
{
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%u", i);
        fgw_buf_clear(&body);
        enum fgw_err err = get_object(storage, key, &body);
        assert_int_equal(err, history.present[i] ? FGW_OK : FGW_ERR_NOT_FOUND);
        if (history.present[i]) {
            assert_int_equal(body.len, history.body[i] >= 100 ? 2 * MIB : history.body[i] + 1);
        }
    }
    fgw_buf_deinit(&body);
}

static void live_through_it(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    for (int round = 0; round < ROUNDS / 2; round++) {
        for (int i = 0; i < STEPS; i++) {
            random_step(storage);
        }
        fgw_fiber_sleep_ms(draw(GRACE_MS));
        (void)sweep(storage);
        struct fgw_release_result result = {.more = true};
        while (result.more) {
            assert_int_equal(fgw_release_pass(storage, &result), FGW_OK);
        }
        check_all(storage);
    }
}

static void expect_no_stranger(struct fixture *fixture)
{
    size_t present = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        present += history.present[i];
    }
    (void)sweep(fixture->storage);
    wait_grace();
    (void)sweep(fixture->storage);
    assert_int_equal(count_holds(fixture->storage), present);
    check_all(fixture->storage);
}

static void in_random_histories_nothing_live_ever_goes(void **state)
{
    (void)state;
    struct fixture fixture;
    history = (struct history){.next_owner = 1};
    open_for_sweep(&fixture);
    fixture_run(&fixture, live_through_it);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, live_through_it);
    fixture_run(&fixture, expect_no_stranger);
    fixture_deinit(&fixture);
}

/* -- care ---------------------------------------------------------------------------------------- */

static void wait_for_care(struct fixture *fixture)
{
    leave_hold(fixture->storage, 100, 2 * MIB);
    for (int i = 0; i < 500 && status_of(fixture->storage).freed_total == 0; i++) {
        fgw_storage_sweep_start(fixture->storage);
        fgw_fiber_sleep_ms(20);
    }
    assert_int_equal(status_of(fixture->storage).freed_total, 1);
    assert_true(status_of(fixture->storage).passes >= 2);
}

static void care_sweeps(void **state)
{
    (void)state;
    struct fixture fixture;
    open_for_sweep(&fixture);
    fgw_storage_start_care(fixture.storage, named_by_row, fixture.storage);
    fixture_run(&fixture, wait_for_care);
    fgw_storage_stop_care(fixture.storage);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates_are_kept_like_in_a_list),
        cmocka_unit_test(the_file_is_read_whole_or_not_at_all),
        cmocka_unit_test(what_no_row_names_goes_after_two_looks),
        cmocka_unit_test(the_first_look_survives_a_restart),
        cmocka_unit_test(a_renewed_hold_is_looked_at_anew),
        cmocka_unit_test(an_upload_in_progress_keeps_its_holds),
        cmocka_unit_test(a_hold_that_is_named_meanwhile_stays),
        cmocka_unit_test(nothing_goes_without_an_answer_or_while_forbidden),
        cmocka_unit_test(too_many_are_not_believed),
        cmocka_unit_test(what_a_killed_process_left_behind_goes),
        cmocka_unit_test(in_random_histories_nothing_live_ever_goes),
        cmocka_unit_test(care_sweeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
