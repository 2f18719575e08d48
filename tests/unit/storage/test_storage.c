/* test_storage.c: the engine through its contract: open, commit, read, restart, rebuild. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void put_text(struct fixture *fixture, const char *key, const char *body, unsigned number)
{
    struct put put = {.key = key, .body = fgw_bytes_str(body), .owner_number = number};
    assert_int_equal(put_object(fixture->storage, &put), FGW_OK);
}

static void expect_text(struct fixture *fixture, const char *key, const char *body)
{
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    assert_int_equal(get_object(fixture->storage, key, &out), FGW_OK);
    assert_true(fgw_bytes_eq_str(fgw_buf_bytes(&out), body));
    fgw_buf_deinit(&out);
}

static void expect_absent(struct fixture *fixture, const char *key)
{
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    assert_int_equal(get_object(fixture->storage, key, &out), FGW_ERR_NOT_FOUND);
    fgw_buf_deinit(&out);
}

static void write_some(struct fixture *fixture)
{
    put_text(fixture, "a", "first", 1);
    put_text(fixture, "b", "second", 2);
    put_text(fixture, "a", "third", 3);
    put_text(fixture, "c", "second", 4);
    put_text(fixture, "d", "", 5);
    assert_int_equal(delete_object(fixture->storage, "b"), FGW_OK);
    assert_int_equal(delete_object(fixture->storage, "b"), FGW_ERR_NOT_FOUND);
}

static void check_some(struct fixture *fixture)
{
    expect_text(fixture, "a", "third");
    expect_absent(fixture, "b");
    expect_text(fixture, "c", "second");
    expect_text(fixture, "d", "");
}

static void survives_restart_and_loss_of_index(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fgw_buf live;
    struct fgw_buf rebuilt;
    fixture_init(&fixture);
    fgw_buf_init(&live, 0);
    fgw_buf_init(&rebuilt, 0);
    fixture_open(&fixture);
    fixture_run(&fixture, write_some);
    fixture_run(&fixture, check_some);
    dump_rows(fixture.storage, &live);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_some);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_some);
    dump_rows(fixture.storage, &rebuilt);
    assert_true(live.len > 0);
    assert_true(fgw_bytes_eq(fgw_buf_bytes(&live), fgw_buf_bytes(&rebuilt)));
    fgw_buf_deinit(&live);
    fgw_buf_deinit(&rebuilt);
    fixture_deinit(&fixture);
}

/* -- many at once ------------------------------------------------------------------------------ */

enum { RACERS = 64 };

struct race {
    struct fixture *fixture;
    struct fgw_wait wait;
    unsigned won;
    unsigned lost;
    unsigned next;
};

static void racer(void *arg)
{
    struct race *race = arg;
    struct put put = {.key = "contended", .body = FGW_LIT("x"), .owner_number = ++race->next,
                      .if_none_match = true};
    enum fgw_err err = put_object(race->fixture->storage, &put);
    assert_true(err == FGW_OK || err == FGW_ERR_PRECONDITION_FAILED);
    race->won += err == FGW_OK;
    race->lost += err != FGW_OK;
    fgw_wait_signal(&race->wait);
}

static void run_race(struct fixture *fixture)
{
    struct race race = {.fixture = fixture};
    fgw_wait_init(&race.wait, RACERS);
    for (int i = 0; i < RACERS; i++) {
        fgw_fiber_spawn(fgw_loop_current(), racer, &race);
    }
    fgw_wait_for(&race.wait);
    assert_int_equal(race.won, 1);
    assert_int_equal(race.lost, RACERS - 1);
}

static void one_of_many_conditional_puts_wins(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fgw_storage_stats stats;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, run_race);
    fgw_storage_stats(fixture.storage, &stats);
    assert_int_equal(stats.operations, 1);
    fixture_deinit(&fixture);
}

/* -- bodies ------------------------------------------------------------------------------------ */

static void put_sizes(struct fixture *fixture)
{
    static const size_t SIZES[] = {0, 1, 2, 35, 91, 92, 93, 4096, 16347, 16348, 65536, 262144};
    uint8_t *body = fgw_xmalloc(262144);
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        char key[16];
        memset(body, (int)i + 1, SIZES[i]);
        (void)snprintf(key, sizeof key, "k%zu", i);
        struct put put = {.key = key, .body = fgw_bytes(body, SIZES[i]),
                          .owner_number = (unsigned)i};
        assert_int_equal(put_object(fixture->storage, &put), FGW_OK);
        fgw_buf_clear(&out);
        assert_int_equal(get_object(fixture->storage, key, &out), FGW_OK);
        assert_true(fgw_bytes_eq(fgw_buf_bytes(&out), put.body));
        struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, put.body);
        struct fgw_storage_place wrong = put.place;
        wrong.offset += 1;
        fgw_buf_clear(&out);
        assert_int_equal(read_blob(fixture->storage, &cid, NULL, &out), FGW_OK);
        assert_int_equal(read_blob(fixture->storage, &cid, &wrong, &out), FGW_OK);
        assert_int_equal(out.len, 2 * SIZES[i]);
    }
    fgw_buf_deinit(&out);
    fgw_xfree(body);
}

static void bodies_of_all_sizes_come_back(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, put_sizes);
    fixture_deinit(&fixture);
}

/* -- a stored copy of a log is data --------------------------------------------------------------- */

static void put_copy_of_log(struct fixture *fixture)
{
    uint8_t *copy = fgw_xmalloc(262144);
    int fd = open(fixture_file(fixture, "groups/0000000001.car"), O_RDONLY);
    ssize_t len = pread(fd, copy, 262144, 59 + 38); /* begins with the opening record itself */
    assert_true(len > 200);
    (void)close(fd);
    struct put put = {.key = "copy", .body = fgw_bytes(copy, (size_t)len), .owner_number = 50};
    assert_int_equal(put_object(fixture->storage, &put), FGW_OK);
    put_text(fixture, "after", "it", 51);
    fgw_xfree(copy);
}

static void check_after_copy(struct fixture *fixture)
{
    expect_text(fixture, "after", "it");
}

static void a_stored_copy_of_the_log_is_no_log(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, write_some);
    fixture_run(&fixture, put_copy_of_log);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_some);
    fixture_run(&fixture, check_after_copy);
    fixture_deinit(&fixture);
}

/* -- torn tails, damage ------------------------------------------------------------------------- */

static off_t log_size(const struct fixture *fixture)
{
    struct stat status;
    assert_int_equal(stat(fixture_file(fixture, "groups/0000000001.car"), &status), 0);
    return status.st_size;
}

static void put_one_more(struct fixture *fixture)
{
    put_text(fixture, "more", "one more", 60);
}

/* All cuts of the last batch, or a sample: its ends, and a few between. */
static off_t next_cut(off_t cut, off_t before, off_t after)
{
    bool all = getenv("FGW_TEST_SLOW") != NULL;
    off_t step = all || cut == before || cut + 1 >= after ? 1 : (after - before) / 4;
    return cut < after && cut + step > after ? after - (cut < after - 1) : cut + step;
}

/* Every cut of the last batch forgets exactly that batch. */
static void every_torn_tail_is_cut(void **state)
{
    (void)state;
    struct fixture fixture;
    char saved[128];
    char command[256];
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, write_some);
    fixture_close(&fixture);
    off_t before = log_size(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, put_one_more);
    fixture_close(&fixture);
    off_t after = log_size(&fixture);
    (void)snprintf(saved, sizeof saved, "%s.saved", fixture.path);
    (void)snprintf(command, sizeof command, "cp %s %s",
                   fixture_file(&fixture, "groups/0000000001.car"), saved);
    assert_int_equal(system(command), 0);
    for (off_t cut = before; cut <= after; cut = next_cut(cut, before, after)) {
        (void)snprintf(command, sizeof command, "cp %s %s && truncate -s %lld %s", saved,
                       fixture_file(&fixture, "groups/0000000001.car"), (long long)cut,
                       fixture_file(&fixture, "groups/0000000001.car"));
        assert_int_equal(system(command), 0);
        fixture_drop_index(&fixture);
        fixture_open(&fixture);
        fixture_run(&fixture, check_some);
        if (cut < after) {
            fixture_run(&fixture, put_one_more);
        }
        fixture_close(&fixture);
    }
    (void)unlink(saved);
    fixture_deinit(&fixture);
}

static void flip(const char *path, off_t offset)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    (void)close(fd);
}

static void damage_before_the_end_is_named(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, write_some);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    off_t size = log_size(&fixture);
    flip(fixture_file(&fixture, "groups/0000000001.car"), size / 2);
    assert_int_equal(fixture_try_open(&fixture), FGW_ERR_CORRUPT);
    assert_non_null(strstr(fixture.error.message, "groups/0000000001.car"));
    assert_non_null(strstr(fixture.error.message, "offset"));
    assert_non_null(strstr(fixture.error.message, "--skip-damaged"));
    fixture_deinit(&fixture);
}

static void an_index_ahead_of_the_log_is_damage(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, write_some);
    fixture_close(&fixture);
    assert_int_equal(truncate(fixture_file(&fixture, "groups/0000000001.car"),
                              log_size(&fixture) - 1), 0);
    assert_int_equal(fixture_try_open(&fixture), FGW_ERR_CORRUPT);
    fixture_deinit(&fixture);
}

/* -- the directory ------------------------------------------------------------------------------ */

static void refuses_a_second_owner(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fixture second;
    fixture_init(&fixture);
    fixture_open(&fixture);
    second = fixture;
    assert_int_equal(fixture_try_open(&second), FGW_ERR_IN_USE);
    assert_non_null(strstr(second.error.message, fixture.path));
    fixture_deinit(&fixture);
}

static void refuses_foreign_files(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    int fd = open(fixture_file(&fixture, "holiday.jpg"), O_CREAT | O_WRONLY, 0600);
    (void)close(fd);
    assert_int_equal(fixture_try_open(&fixture), FGW_ERR_IO);
    assert_non_null(strstr(fixture.error.message, "holiday.jpg"));
    assert_int_equal(access(fixture_file(&fixture, "holiday.jpg"), F_OK), 0);
    assert_int_not_equal(access(fixture_file(&fixture, "LOCK"), F_OK), 0);
    fixture_deinit(&fixture);
}

static void refuses_a_file_as_directory(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    assert_int_equal(rmdir(fixture.path), 0);
    int fd = open(fixture.path, O_CREAT | O_WRONLY, 0600);
    (void)close(fd);
    assert_int_equal(fixture_try_open(&fixture), FGW_ERR_IO);
    fixture_deinit(&fixture);
}

static void replace_in_format(struct fixture *fixture, const char *from, const char *to)
{
    char command[256];
    (void)snprintf(command, sizeof command, "sed -i 's/%s/%s/' %s", from, to,
                   fixture_file(fixture, "FORMAT"));
    assert_int_equal(system(command), 0);
}

static void damaged_format_and_lost_keys_are_named(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_close(&fixture);
    replace_in_format(&fixture, "readable-since 1", "readable-since 2");
    assert_int_equal(fixture_try_open(&fixture), FGW_ERR_CORRUPT);
    replace_in_format(&fixture, "readable-since 2", "readable-since 1");
    fixture_open(&fixture);
    fixture_close(&fixture);
    assert_int_equal(unlink(fixture_file(&fixture, "keys")), 0);
    assert_int_equal(fixture_try_open(&fixture), FGW_ERR_CORRUPT);
    assert_non_null(strstr(fixture.error.message, "keys"));
    fixture_deinit(&fixture);
}

static void keys_are_private_and_cluster_ids_checked(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stat status;
    uint8_t other[FGW_STORAGE_ID_SIZE] = "other cluster";
    uint8_t own[FGW_STORAGE_ID_SIZE];
    fixture_init(&fixture);
    fixture_open(&fixture);
    memcpy(own, fgw_storage_cluster_id(fixture.storage), sizeof own);
    fixture_close(&fixture);
    assert_int_equal(stat(fixture_file(&fixture, "keys"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    fixture.options.cluster_id = other;
    assert_int_equal(fixture_try_open(&fixture), FGW_ERR_CONFIG);
    fixture.options.cluster_id = own;
    fixture_open(&fixture);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives_restart_and_loss_of_index),
        cmocka_unit_test(one_of_many_conditional_puts_wins),
        cmocka_unit_test(bodies_of_all_sizes_come_back),
        cmocka_unit_test(a_stored_copy_of_the_log_is_no_log),
        cmocka_unit_test(every_torn_tail_is_cut),
        cmocka_unit_test(damage_before_the_end_is_named),
        cmocka_unit_test(an_index_ahead_of_the_log_is_damage),
        cmocka_unit_test(refuses_a_second_owner),
        cmocka_unit_test(refuses_foreign_files),
        cmocka_unit_test(refuses_a_file_as_directory),
        cmocka_unit_test(damaged_format_and_lost_keys_are_named),
        cmocka_unit_test(keys_are_private_and_cluster_ids_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
