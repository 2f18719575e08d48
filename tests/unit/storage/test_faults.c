/* test_faults.c: writes and syncs that fail, disks that are full: what was acknowledged stays, what
 * was refused leaves no trace, the process goes on. */
#include "fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "storage/items.h"
#include "storage/storage_internal.h"

enum { MIB = 1024 * 1024 };

static enum fgw_err try_put(struct fixture *fixture, const char *key, const char *body,
                            unsigned number)
{
    struct put put = {.key = key, .body = fgw_bytes_str(body), .owner_number = number};
    return put_object(fixture->storage, &put);
}

static void expect_text(struct fixture *fixture, const char *key, const char *body)
{
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    enum fgw_err err = get_object(fixture->storage, key, &out);
    assert_int_equal(err, body == NULL ? FGW_ERR_NOT_FOUND : FGW_OK);
    assert_true(body == NULL || fgw_bytes_eq_str(fgw_buf_bytes(&out), body));
    fgw_buf_deinit(&out);
}

/* -- one failure --------------------------------------------------------------------------------- */

static const char *fault;
static enum fgw_err fault_answer;

static void check_one_failure(struct fixture *fixture)
{
    expect_text(fixture, "a", "second");
    expect_text(fixture, "b", NULL);
    expect_text(fixture, "c", "third");
}

static void fail_once(struct fixture *fixture)
{
    assert_int_equal(try_put(fixture, "a", "first", 1), FGW_OK);
    fgw_fs_set_faults(fault);
    assert_int_equal(try_put(fixture, "b", "lost", 2), fault_answer);
    fgw_fs_set_faults(NULL);
    expect_text(fixture, "a", "first");
    assert_int_equal(try_put(fixture, "a", "second", 3), FGW_OK);
    assert_int_equal(try_put(fixture, "c", "third", 4), FGW_OK);
    check_one_failure(fixture);
}

static void refused_batches_leave_no_trace(void **state)
{
    static const struct {
        const char *fault;
        enum fgw_err answer;
    } CASES[] = {{"pwrite:1:EIO", FGW_ERR_IO},
                 {"pwrite:1:ENOSPC", FGW_ERR_NOSPACE},
                 {"fdatasync:1:EIO", FGW_ERR_IO},
                 {"fdatasync:1:ENOSPC", FGW_ERR_NOSPACE}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fixture fixture;
        fault = CASES[i].fault;
        fault_answer = CASES[i].answer;
        fixture_init(&fixture);
        fixture_open(&fixture);
        fixture_run(&fixture, fail_once);
        fixture_close(&fixture);
        assert_int_equal(access(fixture_file(&fixture, "groups/0000000002.car"), F_OK), 0);
        fixture_open(&fixture);
        fixture_run(&fixture, check_one_failure);
        fixture_close(&fixture);
        fixture_drop_index(&fixture);
        fixture_open(&fixture);
        fixture_run(&fixture, check_one_failure);
        fixture_deinit(&fixture);
    }
}

/* -- many in the failing batch ------------------------------------------------------------------- */

enum { RACERS = 48 };

struct race {
    struct fixture *fixture;
    struct fgw_wait wait;
    unsigned won, lost, failed, next;
};

static void racer(void *arg)
{
    struct race *race = arg;
    struct put put = {.key = "contended", .body = FGW_LIT("x"), .owner_number = ++race->next,
                      .if_none_match = true};
    enum fgw_err err = put_object(race->fixture->storage, &put);
    race->won += err == FGW_OK;
    race->lost += err == FGW_ERR_PRECONDITION_FAILED;
    race->failed += err == FGW_ERR_IO;
    fgw_wait_signal(&race->wait);
}

static void race_over_a_failure(struct fixture *fixture)
{
    struct race race = {.fixture = fixture};
    fgw_fs_set_faults("fdatasync:1:EIO");
    fgw_wait_init(&race.wait, RACERS);
    for (int i = 0; i < RACERS; i++) {
        fgw_fiber_spawn(fgw_loop_current(), racer, &race);
    }
    fgw_wait_for(&race.wait);
    fgw_fs_set_faults(NULL);
    /* whoever was refused because of a winner that failed is evaluated again */
    assert_int_equal(race.failed, 1);
    assert_int_equal(race.won, 1);
    assert_int_equal(race.lost, RACERS - 2);
}

static void losers_of_a_failed_winner_run_again(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, race_over_a_failure);
    fixture_deinit(&fixture);
}

/* -- no way on ----------------------------------------------------------------------------------- */

static void fail_for_good(struct fixture *fixture)
{
    struct fgw_storage_stats stats;
    assert_int_equal(try_put(fixture, "a", "second", 1), FGW_OK);
    assert_int_equal(try_put(fixture, "c", "third", 2), FGW_OK);
    fgw_fs_set_faults("fdatasync:1:EIO,fsync:1:EIO");
    assert_int_equal(try_put(fixture, "b", "lost", 3), FGW_ERR_UNKNOWN_OUTCOME);
    fgw_fs_set_faults(NULL);
    assert_int_equal(try_put(fixture, "b", "lost", 4), FGW_ERR_READ_ONLY);
    assert_int_equal(delete_object(fixture->storage, "a"), FGW_ERR_READ_ONLY);
    fgw_storage_stats(fixture->storage, &stats);
    assert_true(stats.read_only);
    check_one_failure(fixture);
}

static void put_again(struct fixture *fixture)
{
    check_one_failure(fixture);
    assert_int_equal(try_put(fixture, "d", "fourth", 9), FGW_OK);
}

static void two_failures_make_it_read_only_until_restart(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, fail_for_good);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, put_again);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_one_failure);
    fixture_deinit(&fixture);
}

static void fill_and_free(struct fixture *fixture)
{
    assert_int_equal(try_put(fixture, "a", "second", 1), FGW_OK);
    fgw_fs_set_faults("pwrite:1+:ENOSPC");
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(try_put(fixture, "b", "lost", 2 + i), FGW_ERR_NOSPACE);
        fgw_fiber_sleep_ms(120);
    }
    fgw_fs_set_faults(NULL);
    fgw_fiber_sleep_ms(300);
    assert_int_equal(try_put(fixture, "c", "third", 7), FGW_OK);
    check_one_failure(fixture);
}

static void a_full_disk_is_left_by_itself(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, fill_and_free);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_one_failure);
    fixture_deinit(&fixture);
}

/* -- bulk groups --------------------------------------------------------------------------------- */

static struct fgw_cid large_roots[2];

static void check_large(struct fixture *fixture)
{
    for (unsigned i = 0; i < 2; i++) {
        uint8_t *body = fgw_xmalloc(2 * MIB);
        struct fgw_buf out;
        fgw_buf_init(&out, 0);
        fill_large(body, 2 * MIB, i + 1);
        assert_int_equal(read_blob(fixture->storage, &large_roots[i], NULL, &out), FGW_OK);
        assert_true(fgw_bytes_eq(fgw_buf_bytes(&out), fgw_bytes(body, 2 * MIB)));
        fgw_buf_deinit(&out);
        fgw_xfree(body);
    }
}

static void fail_bulk(struct fixture *fixture)
{
    struct fgw_storage_owner owner;
    struct fgw_cid root;
    make_owner(&owner, "large", 1);
    assert_int_equal(put_large(fixture->storage, &owner, 2 * MIB, 1, &large_roots[0]), FGW_OK);
    make_owner(&owner, "large", 2);
    fgw_fs_set_faults(fault);
    assert_int_equal(put_large(fixture->storage, &owner, 2 * MIB, 7, &root), fault_answer);
    fgw_fs_set_faults(NULL);
    make_owner(&owner, "large", 3);
    assert_int_equal(put_large(fixture->storage, &owner, 2 * MIB, 2, &large_roots[1]), FGW_OK);
    check_large(fixture);
}

static void bulk_groups_that_fail_are_left(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fixture fixture;
        fault = i == 0 ? "pwrite:1:EIO" : "fdatasync:1:EIO";
        fault_answer = FGW_ERR_IO;
        fixture_init(&fixture);
        fixture_open(&fixture);
        fixture_run(&fixture, fail_bulk);
        fixture_close(&fixture);
        fixture_drop_index(&fixture);
        fixture_open(&fixture);
        fixture_run(&fixture, check_large);
        fixture_deinit(&fixture);
    }
}

/* -- a small file system ------------------------------------------------------------------------- */

enum { OBJECTS_MAX = 1000, OBJECT_SIZE = 200 * 1024 };

static unsigned stored;  /* objects "0".."stored - 1" were acknowledged, */
static unsigned deleted; /* the first of them deleted */

static enum fgw_err put_numbered(struct fixture *fixture, unsigned number)
{
    char key[16];
    uint8_t *body = fgw_xmalloc(OBJECT_SIZE);
    fill_large(body, OBJECT_SIZE, number + 1);
    (void)snprintf(key, sizeof key, "%u", number);
    struct put put = {
        .key = key, .body = fgw_bytes(body, OBJECT_SIZE), .owner_number = number + 1};
    enum fgw_err err = put_object(fixture->storage, &put);
    fgw_xfree(body);
    return err;
}

static void check_numbered(struct fixture *fixture)
{
    uint8_t *body = fgw_xmalloc(OBJECT_SIZE);
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    for (unsigned i = 0; i < stored; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%u", i);
        fgw_buf_clear(&out);
        enum fgw_err err = get_object(fixture->storage, key, &out);
        assert_int_equal(err, i < deleted ? FGW_ERR_NOT_FOUND : FGW_OK);
        fill_large(body, OBJECT_SIZE, i + 1);
        assert_true(err != FGW_OK ||
                    fgw_bytes_eq(fgw_buf_bytes(&out), fgw_bytes(body, OBJECT_SIZE)));
    }
    fgw_buf_deinit(&out);
    fgw_xfree(body);
}

static void fill_up(struct fixture *fixture)
{
    enum fgw_err err = FGW_OK;
    while (stored < OBJECTS_MAX && (err = put_numbered(fixture, stored)) == FGW_OK) {
        stored++;
    }
    assert_int_equal(err, FGW_ERR_NOSPACE);
    assert_true(stored > 20);
    struct fgw_storage_owner owner;
    struct fgw_cid root;
    make_owner(&owner, "large", 5000);
    assert_int_equal(put_large(fixture->storage, &owner, 2 * MIB, 3, &root), FGW_ERR_NOSPACE);
    check_numbered(fixture);
}

static void delete_some(struct fixture *fixture)
{
    while (deleted < 10) {
        char key[16];
        (void)snprintf(key, sizeof key, "%u", deleted);
        assert_int_equal(delete_object(fixture->storage, key), FGW_OK);
        deleted++;
    }
    check_numbered(fixture);
}

/* Takes what is left, to the last byte. */
static void fill_disk(struct fixture *fixture)
{
    int fd = open(fixture_file(fixture, "tmp/filler"), O_CREAT | O_WRONLY, 0600);
    uint8_t *zeros = fgw_xcalloc(1, MIB);
    for (size_t step = MIB; step > 0; step /= 16) {
        while (write(fd, zeros, step) == (ssize_t)step) {
        }
    }
    fgw_xfree(zeros);
    (void)close(fd);
}

static void write_on_a_full_disk(struct fixture *fixture)
{
    fill_disk(fixture);
    for (int i = 0; i < 300; i++) { /* until the log, then the index has no room */
        enum fgw_err err = try_put(fixture, "row", "small", 6000);
        if (err != FGW_OK && err != FGW_ERR_NOSPACE && err != FGW_ERR_UNKNOWN_OUTCOME) {
            fail_msg("put on a full disk: %s", fgw_err_name(err));
        }
        err = delete_object(fixture->storage, "never there");
        if (err != FGW_ERR_NOT_FOUND && err != FGW_ERR_NOSPACE) {
            fail_msg("delete on a full disk: %s", fgw_err_name(err));
        }
    }
    check_numbered(fixture);
}

static void resume(struct fixture *fixture)
{
    enum fgw_err err = FGW_ERR_NOSPACE;
    for (int i = 0; i < 100 && err != FGW_OK; i++) {
        err = put_numbered(fixture, stored);
        fgw_fiber_sleep_ms(100);
    }
    assert_int_equal(err, FGW_OK);
    stored++;
    check_numbered(fixture);
}

static bool mount_at(struct fixture *fixture, unsigned long flags, const char *size)
{
    return mount("tmpfs", fixture->path, "tmpfs", flags, size) == 0;
}

static void lives_on_a_small_file_system(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    if (!mount_at(&fixture, 0, "size=40m")) {
        fixture_deinit(&fixture);
        skip(); /* needs root */
    }
    stored = 0;
    deleted = 0;
    fixture.options.min_free_bytes = 8 * MIB;
    fixture_open(&fixture);
    fixture_run(&fixture, fill_up);
    fixture_run(&fixture, delete_some);
    fixture_run(&fixture, write_on_a_full_disk);
    assert_int_equal(unlink(fixture_file(&fixture, "tmp/filler")), 0);
    assert_true(mount_at(&fixture, MS_REMOUNT, "size=64m"));
    fixture_run(&fixture, resume);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_numbered);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_numbered);
    fixture_close(&fixture);
    assert_int_equal(umount(fixture.path), 0);
    fixture_deinit(&fixture);
}

/* -- an index without room ----------------------------------------------------------------------- */

enum { ROW_SIZE = 64 * 1024, ROWS_MAX = 1000 };

static unsigned rows_put;

static enum fgw_err put_row(struct fixture *fixture, unsigned number)
{
    char key[16];
    struct fgw_buf items;
    uint8_t *value = fgw_xmalloc(ROW_SIZE);
    fill_large(value, ROW_SIZE, number + 1);
    (void)snprintf(key, sizeof key, "row %u", number);
    fgw_buf_init(&items, 0);
    fgw_item_put_row(&items, FGW_ITEM_ROW_PUT, fgw_bytes_str(key), fgw_bytes(value, ROW_SIZE));
    enum fgw_err err = fgw_storage_commit_items(fixture->storage, "row", &items);
    fgw_buf_deinit(&items);
    fgw_xfree(value);
    return err;
}

static void check_rows(struct fixture *fixture)
{
    uint8_t *value = fgw_xmalloc(ROW_SIZE);
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    for (unsigned i = 0; i < rows_put; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "row %u", i);
        fill_large(value, ROW_SIZE, i + 1);
        assert_int_equal(fgw_storage_get(fixture->storage, fgw_bytes_str(key), &out), FGW_OK);
        assert_true(fgw_bytes_eq(fgw_buf_bytes(&out), fgw_bytes(value, ROW_SIZE)));
    }
    fgw_buf_deinit(&out);
    fgw_xfree(value);
}

static void fill_index(struct fixture *fixture)
{
    enum fgw_err err = FGW_OK;
    while (rows_put < ROWS_MAX && (err = put_row(fixture, rows_put)) == FGW_OK) {
        rows_put++;
    }
    assert_int_equal(err, FGW_ERR_UNKNOWN_OUTCOME);
    assert_int_equal(put_row(fixture, rows_put), FGW_ERR_NOSPACE);
    check_rows(fixture);
}

static void fill_index_by_many(struct fixture *fixture)
{
    fill_index(fixture);
    fgw_fiber_sleep_ms(1200);
    assert_int_equal(put_row(fixture, rows_put), FGW_ERR_NOSPACE);
    check_rows(fixture);
}

static void resume_index(struct fixture *fixture)
{
    enum fgw_err err = FGW_ERR_NOSPACE;
    for (int i = 0; i < 100 && err != FGW_OK; i++) {
        err = put_row(fixture, rows_put);
        fgw_fiber_sleep_ms(100);
    }
    assert_int_equal(err, FGW_OK);
    rows_put++;
    check_rows(fixture);
}

static void an_index_without_room_resumes(void **state)
{
    struct fixture fixture;
    struct fgw_buf live;
    struct fgw_buf rebuilt;
    char meta[100];
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    (void)snprintf(meta, sizeof meta, "%s", fixture_file(&fixture, "meta"));
    assert_int_equal(mkdir(meta, 0700), 0);
    if (mount("tmpfs", meta, "tmpfs", 0, "size=24m") != 0) {
        fixture_deinit(&fixture);
        skip(); /* needs root */
    }
    fgw_buf_init(&live, 0);
    fgw_buf_init(&rebuilt, 0);
    fixture_open(&fixture);
    fixture_run(&fixture, fill_index_by_many);
    assert_int_equal(mount("tmpfs", meta, "tmpfs", MS_REMOUNT, "size=200m"), 0);
    fixture_run(&fixture, resume_index);
    dump_rows(fixture.storage, &live);
    fixture_close(&fixture);
    assert_int_equal(umount(meta), 0);
    fixture_open(&fixture);
    fixture_run(&fixture, check_rows);
    dump_rows(fixture.storage, &rebuilt);
    assert_true(fgw_bytes_eq(fgw_buf_bytes(&live), fgw_buf_bytes(&rebuilt)));
    fgw_buf_deinit(&live);
    fgw_buf_deinit(&rebuilt);
    fixture_deinit(&fixture);
}

int main(void)
{
    /* mounts of our own, gone with the process */
    if (unshare(CLONE_NEWNS) == 0) {
        (void)mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_batches_leave_no_trace),
        cmocka_unit_test(losers_of_a_failed_winner_run_again),
        cmocka_unit_test(two_failures_make_it_read_only_until_restart),
        cmocka_unit_test(a_full_disk_is_left_by_itself),
        cmocka_unit_test(bulk_groups_that_fail_are_left),
        cmocka_unit_test(lives_on_a_small_file_system),
        cmocka_unit_test(an_index_without_room_resumes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
