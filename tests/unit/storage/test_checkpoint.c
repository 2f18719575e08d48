/* test_checkpoint.c: checkpoints: what an index made from one is, what damage in them does, failures
 * while one is written, which of them are kept. */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "storage/storage_internal.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

/* -- helpers ------------------------------------------------------------------------------------- */

static enum fgw_err put_text(struct fixture *fixture, const char *key, const char *body,
                             unsigned number)
{
    struct put put = {.key = key, .body = fgw_bytes_str(body), .owner_number = number};
    return put_object(fixture->storage, &put);
}

static unsigned next_number;

/* `count` objects "PREFIX 0"... with bodies of a kilobyte. */
static void put_some(struct fixture *fixture, const char *prefix, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char key[32];
        uint8_t body[KIB];
        (void)snprintf(key, sizeof key, "%s %u", prefix, i);
        fill_large(body, sizeof body, i + 1);
        struct put put = {
            .key = key, .body = fgw_bytes(body, sizeof body), .owner_number = ++next_number};
        assert_int_equal(put_object(fixture->storage, &put), FGW_OK);
    }
}

static unsigned count_files(const struct fixture *fixture, const char *folder)
{
    unsigned count = 0;
    struct dirent *entry;
    DIR *names = opendir(fixture_file(fixture, folder));
    assert_non_null(names);
    while ((entry = readdir(names)) != NULL) {
        count += entry->d_name[0] != '.' && strncmp(entry->d_name, "meta.", 5) != 0 ? 1 : 0;
    }
    (void)closedir(names);
    return count;
}

static bool exists(const struct fixture *fixture, const char *name)
{
    return access(fixture_file(fixture, name), F_OK) == 0;
}

static void remove_file(const struct fixture *fixture, const char *name)
{
    assert_int_equal(unlink(fixture_file(fixture, name)), 0);
}

static uint64_t size_of(const struct fixture *fixture, const char *name)
{
    struct stat status;
    assert_int_equal(stat(fixture_file(fixture, name), &status), 0);
    return (uint64_t)status.st_size;
}

static void flip(const struct fixture *fixture, const char *name, uint64_t offset)
{
    uint8_t byte;
    int fd = open(fixture_file(fixture, name), O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, (off_t)offset), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)offset), 1);
    (void)close(fd);
}

static void dump_to(struct fixture *fixture, struct fgw_buf *out)
{
    fgw_buf_clear(out);
    dump_rows(fixture->storage, out);
}

/* Drops the index, opens, expects the rows of before and `replayed` batches out of the log. */
static void expect_made_anew(struct fixture *fixture, uint64_t replayed)
{
    struct fgw_buf live;
    struct fgw_buf anew;
    fgw_buf_init(&live, 0);
    fgw_buf_init(&anew, 0);
    dump_to(fixture, &live);
    fixture_close(fixture);
    fixture_drop_index(fixture);
    fixture_open(fixture);
    assert_int_equal(fgw_storage_recovered(fixture->storage).batches, replayed);
    dump_to(fixture, &anew);
    assert_true(live.len > 0);
    assert_true(fgw_bytes_eq(fgw_buf_bytes(&live), fgw_buf_bytes(&anew)));
    fgw_buf_deinit(&live);
    fgw_buf_deinit(&anew);
}

/* -- what an index made from one is -------------------------------------------------------------- */

static struct fgw_storage_checkpoint written;

static void write_one(struct fixture *fixture)
{
    assert_int_equal(fgw_storage_checkpoint(fixture->storage, &written), FGW_OK);
}

static void put_and_checkpoint(struct fixture *fixture)
{
    struct fgw_storage_owner owner;
    struct fgw_cid root;
    struct fgw_storage_stats stats;
    put_some(fixture, "before", 20);
    make_owner(&owner, "large", ++next_number);
    assert_int_equal(put_large(fixture->storage, &owner, 3 * MIB, 1, &root), FGW_OK);
    write_one(fixture);
    fgw_storage_stats(fixture->storage, &stats);
    assert_int_equal(written.batch, stats.applied_batch);
    assert_int_equal(stats.checkpoint_batch, written.batch);
    assert_int_equal(written.id, 1);
    assert_int_equal(written.bytes, size_of(fixture, "checkpoints/0000000001.car"));
    put_some(fixture, "behind", 5);
}

static void an_index_made_from_it_equals_the_live_one(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, put_and_checkpoint);
    expect_made_anew(&fixture, 5);
    fixture_close(&fixture);
    fixture.options.rebuild_index = true;
    fixture_open(&fixture);
    assert_int_equal(fgw_storage_recovered(fixture.storage).batches, 5);
    fixture_deinit(&fixture);
}

static void write_of_nothing(struct fixture *fixture)
{
    write_one(fixture);
    assert_int_equal(written.batch, 1);
}

static void an_empty_store_has_one_too(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, write_of_nothing);
    expect_made_anew(&fixture, 0);
    fixture_deinit(&fixture);
}

/* -- rows larger than a record ------------------------------------------------------------------- */

enum { LONG_ROW = 3 * MIB + 17 };

static enum fgw_err evaluate_long(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    fgw_storage_txn_put(txn, fgw_bytes_str("long"), *(struct fgw_bytes *)op->context);
    return FGW_OK;
}

static void put_long_row(struct fixture *fixture)
{
    uint8_t *bytes = fgw_xmalloc(LONG_ROW);
    fill_large(bytes, LONG_ROW, 5);
    struct fgw_bytes value = fgw_bytes(bytes, LONG_ROW);
    struct fgw_storage_op op = {.name = "long", .evaluate = evaluate_long, .context = &value};
    assert_int_equal(fgw_storage_commit(fixture->storage, &op), FGW_OK);
    fgw_xfree(bytes);
    put_some(fixture, "a", 3);
    put_some(fixture, "z", 3);
    write_one(fixture);
}

static void rows_larger_than_a_record_are_split(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, put_long_row);
    expect_made_anew(&fixture, 0);
    fixture_deinit(&fixture);
}

/* -- groups that are gone ------------------------------------------------------------------------ */

/* Groups of 8 KiB: some below the checkpoint, some above. */
static void open_with_small_groups(struct fixture *fixture)
{
    fixture_init(fixture);
    fixture->options.group_size_bytes = 8 * KIB;
    fixture_open(fixture);
    fixture_run(fixture, put_and_checkpoint);
}

static void log_groups_below_may_be_missing(void **state)
{
    struct fixture fixture;
    (void)state;
    open_with_small_groups(&fixture);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    remove_file(&fixture, "groups/0000000001.car");
    fixture_open(&fixture);
    assert_int_equal(fgw_storage_recovered(fixture.storage).batches, 5);
    assert_int_equal(fgw_storage_recovered(fixture.storage).damaged_groups, 1); /* its bodies */
    fixture_deinit(&fixture);
}

static void put_many(struct fixture *fixture)
{
    put_some(fixture, "many", 30);
}

static void log_groups_above_must_not(void **state)
{
    struct fixture fixture;
    char name[64];
    char last[64] = "";
    (void)state;
    open_with_small_groups(&fixture);
    fixture_run(&fixture, put_many);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    for (unsigned i = 1; i < 40; i++) {
        (void)snprintf(name, sizeof name, "groups/%010u.car", i);
        if (exists(&fixture, name)) {
            (void)snprintf(last, sizeof last, "groups/%010u.car", i - 1);
        }
    }
    remove_file(&fixture, last);
    assert_int_equal(fixture_try_open(&fixture), FGW_ERR_CORRUPT);
    assert_non_null(strstr(fixture.error.message, last));
    fixture_deinit(&fixture);
}

static void fill_group(struct fixture *fixture)
{
    struct fgw_committer_stats stats;
    do {
        put_some(fixture, "full", 1);
        fgw_committer_stats(fixture->storage->committer, &stats);
    } while (stats.log_end < 8 * KIB);
    write_one(fixture);
}

static void put_three(struct fixture *fixture)
{
    put_some(fixture, "three", 3);
}

/* The checkpoint covers the last batch of its group: the next group begins where it stands. */
static void its_own_group_may_be_missing_when_all_of_it_is_covered(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    fixture.options.group_size_bytes = 8 * KIB;
    fixture_open(&fixture);
    fixture_run(&fixture, fill_group);
    fixture_run(&fixture, put_three);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    assert_true(exists(&fixture, "groups/0000000002.car"));
    remove_file(&fixture, "groups/0000000001.car");
    fixture_open(&fixture);
    assert_int_equal(fgw_storage_recovered(fixture.storage).batches, 3);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_deinit(&fixture);
}

/* -- damage -------------------------------------------------------------------------------------- */

static const char FIRST[] = "checkpoints/0000000001.car";
static const char SECOND[] = "checkpoints/0000000002.car";

static void put_with_two(struct fixture *fixture)
{
    put_some(fixture, "one", 10);
    write_one(fixture);
    put_some(fixture, "two", 10);
    write_one(fixture);
    put_some(fixture, "three", 10);
}

static void open_with_two(struct fixture *fixture)
{
    fixture_init(fixture);
    fixture->options.group_size_bytes = 8 * KIB;
    fixture_open(fixture);
    fixture_run(fixture, put_with_two);
    assert_true(exists(fixture, FIRST) && exists(fixture, SECOND));
}

static void with_a_damaged_one_the_one_before_it_is_used(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct fixture fixture;
        open_with_two(&fixture);
        uint64_t size = size_of(&fixture, SECOND);
        const uint64_t places[] = {0, 60, 100, 110, 200, size / 2, size - 20, size - 1};
        flip(&fixture, SECOND, places[i]);
        expect_made_anew(&fixture, 20);
        fixture_deinit(&fixture);
    }
}

static void a_shortened_or_lengthened_one_is_none(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct fixture fixture;
        open_with_two(&fixture);
        uint64_t size = size_of(&fixture, SECOND);
        const uint64_t sizes[] = {0, 59, size - 1, size + 1};
        assert_int_equal(truncate(fixture_file(&fixture, SECOND), (off_t)sizes[i]), 0);
        expect_made_anew(&fixture, 20);
        fixture_deinit(&fixture);
    }
}

static void without_a_whole_one_the_log_is_enough(void **state)
{
    struct fixture fixture;
    (void)state;
    open_with_two(&fixture);
    flip(&fixture, FIRST, 300);
    flip(&fixture, SECOND, 300);
    expect_made_anew(&fixture, 30);
    fixture_deinit(&fixture);
}

static void without_a_whole_one_and_with_a_group_gone_it_is_refused(void **state)
{
    struct fixture fixture;
    (void)state;
    open_with_two(&fixture);
    fixture_close(&fixture);
    flip(&fixture, FIRST, 300);
    flip(&fixture, SECOND, 300);
    fixture_drop_index(&fixture);
    remove_file(&fixture, "groups/0000000001.car");
    assert_int_equal(fixture_try_open(&fixture), FGW_ERR_CORRUPT);
    assert_non_null(strstr(fixture.error.message, "groups/0000000001.car"));
    assert_non_null(strstr(fixture.error.message, "checkpoints/000000000"));
    fixture_deinit(&fixture);
}

static void of_another_directory_it_is_none(void **state)
{
    struct fixture fixture;
    struct fixture other;
    char command[400];
    (void)state;
    open_with_two(&fixture);
    fixture_init(&other);
    fixture_open(&other);
    fixture_run(&other, put_and_checkpoint);
    (void)snprintf(command, sizeof command, "cp %s/%s %s/%s", other.path, FIRST, fixture.path,
                   SECOND);
    assert_int_equal(system(command), 0);
    expect_made_anew(&fixture, 20);
    fixture_deinit(&fixture);
    fixture_deinit(&other);
}

/* An index from before the checkpoint: put back by somebody, or lost in a power cut. */
static void an_index_behind_it_is_set_aside(void **state)
{
    struct fixture fixture;
    char command[400];
    struct fgw_buf live;
    struct fgw_buf anew;
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, put_three);
    fixture_close(&fixture);
    (void)snprintf(command, sizeof command, "cp -r %s/meta %s/old", fixture.path, fixture.path);
    assert_int_equal(system(command), 0);
    fixture_open(&fixture);
    fixture_run(&fixture, put_and_checkpoint);
    fgw_buf_init(&live, 0);
    fgw_buf_init(&anew, 0);
    dump_to(&fixture, &live);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    (void)snprintf(command, sizeof command, "mv %s/old %s/meta", fixture.path, fixture.path);
    assert_int_equal(system(command), 0);
    fixture_open(&fixture);
    assert_int_equal(fgw_storage_recovered(fixture.storage).batches, 5);
    dump_to(&fixture, &anew);
    assert_true(fgw_bytes_eq(fgw_buf_bytes(&live), fgw_buf_bytes(&anew)));
    (void)snprintf(command, sizeof command, "ls -d %s/meta.bad-* > /dev/null", fixture.path);
    assert_int_equal(system(command), 0);
    fgw_buf_deinit(&live);
    fgw_buf_deinit(&anew);
    fixture_deinit(&fixture);
}

static void leftovers_of_a_load_are_removed(void **state)
{
    struct fixture fixture;
    char command[400];
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, put_and_checkpoint);
    fixture_close(&fixture);
    (void)snprintf(command, sizeof command, "cp -r %s/meta %s/meta.new", fixture.path,
                   fixture.path);
    assert_int_equal(system(command), 0);
    fixture_open(&fixture);
    assert_false(exists(&fixture, "meta.new"));
    expect_made_anew(&fixture, 5);
    fixture_deinit(&fixture);
}

/* -- failures while one is written --------------------------------------------------------------- */

static const char *fault;

static void fail_to_write(struct fixture *fixture)
{
    fgw_fs_set_faults(fault);
    enum fgw_err err = fgw_storage_checkpoint(fixture->storage, NULL);
    fgw_fs_set_faults(NULL);
    assert_true(err == FGW_ERR_IO || err == FGW_ERR_NOSPACE);
    assert_int_equal(put_text(fixture, "goes on", "yes", ++next_number), FGW_OK);
}

static void a_failure_leaves_nothing_behind(void **state)
{
    static const char *const FAULTS[] = {"pwrite:1:ENOSPC", "pwrite:2:ENOSPC", "pwrite:3:EIO",
                                         "fdatasync:1:EIO", "fsync:1:ENOSPC",  "rename:1:ENOSPC"};
    (void)state;
    for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++) {
        struct fixture fixture;
        fault = FAULTS[i];
        fixture_init(&fixture);
        fixture_open(&fixture);
        fixture_run(&fixture, put_and_checkpoint);
        fixture_run(&fixture, fail_to_write);
        assert_int_equal(count_files(&fixture, "tmp"), 0);
        assert_int_equal(count_files(&fixture, "checkpoints"), 1);
        expect_made_anew(&fixture, 6);
        fixture_run(&fixture, write_one);
        expect_made_anew(&fixture, 0);
        fixture_deinit(&fixture);
    }
}

static void fail_to_read_back(struct fixture *fixture)
{
    struct fgw_storage_stats stats;
    uint64_t before = written.batch;
    fgw_fs_set_faults("pread:2:EIO");
    assert_int_equal(fgw_storage_checkpoint(fixture->storage, NULL), FGW_ERR_IO);
    fgw_fs_set_faults(NULL);
    fgw_storage_stats(fixture->storage, &stats);
    assert_int_equal(stats.checkpoint_batch, before);
    assert_int_equal(count_files(fixture, "checkpoints"), 2);
    write_one(fixture);
    assert_int_equal(count_files(fixture, "checkpoints"), 2);
}

static void one_that_cannot_be_read_back_is_not_relied_upon(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, put_and_checkpoint);
    fixture_run(&fixture, fail_to_read_back);
    assert_false(exists(&fixture, SECOND));
    fixture_deinit(&fixture);
}

/* All but 3 MiB. */
static void fill_disk(struct fixture *fixture)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    int fd = open(fixture_file(fixture, "ballast"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(fgw_fs_space(fd, &free_bytes, &total_bytes), FGW_OK);
    assert_int_equal(posix_fallocate(fd, 0, (off_t)free_bytes - 3 * MIB), 0);
    (void)close(fd);
}

static void write_on_a_full_disk(struct fixture *fixture)
{
    assert_int_equal(fgw_storage_checkpoint(fixture->storage, NULL), FGW_ERR_NOSPACE);
    assert_int_equal(count_files(fixture, "tmp"), 0);
    put_some(fixture, "full", 10);
    remove_file(fixture, "ballast");
    write_one(fixture);
}

static void a_full_disk_stops_it_and_nothing_else(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    if (mount("tmpfs", fixture.path, "tmpfs", 0, "size=64m") != 0) {
        fixture_deinit(&fixture);
        skip(); /* needs root */
    }
    fixture_open(&fixture);
    fixture_run(&fixture, put_and_checkpoint);
    fill_disk(&fixture);
    fixture_run(&fixture, write_on_a_full_disk);
    expect_made_anew(&fixture, 0);
    fixture_close(&fixture);
    assert_int_equal(umount(fixture.path), 0);
    fixture_deinit(&fixture);
}

/* -- which are kept, and when they are written --------------------------------------------------- */

static void write_under_a_hold(struct fixture *fixture)
{
    fgw_storage_hold_groups(fixture->storage);
    for (int i = 0; i < 4; i++) {
        write_one(fixture);
    }
    assert_int_equal(count_files(fixture, "checkpoints"), 4);
    assert_false(fgw_storage_begin_unlink(fixture->storage));
    fgw_storage_release_groups(fixture->storage);
    write_one(fixture);
    assert_int_equal(count_files(fixture, "checkpoints"), 2);
}

static void older_ones_go_unless_held(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, write_under_a_hold);
    assert_true(exists(&fixture, "checkpoints/0000000004.car"));
    assert_true(exists(&fixture, "checkpoints/0000000005.car"));
    fixture_deinit(&fixture);
}

static enum fgw_err always_live(void *context, const struct fgw_storage_owner *owner,
                                const struct fgw_cid *root, enum fgw_storage_liveness *out_live)
{
    (void)context;
    (void)owner;
    (void)root;
    *out_live = FGW_STORAGE_HERE;
    return FGW_OK;
}

/* Until care has verified one that covers more than `batch`. */
static void await_verified(struct fixture *fixture, uint64_t batch)
{
    struct fgw_storage_stats stats = {0};
    for (int i = 0; i < 1000 && stats.checkpoint_batch <= batch; i++) {
        fgw_fiber_sleep_ms(10);
        fgw_storage_stats(fixture->storage, &stats);
    }
    assert_true(stats.checkpoint_batch > batch);
    written.batch = stats.checkpoint_batch;
}

static void work_with_care(struct fixture *fixture)
{
    fgw_storage_start_care(fixture->storage, always_live, NULL);
    for (unsigned i = 0; i < 3; i++) {
        put_some(fixture, "care", 60);
        await_verified(fixture, written.batch);
    }
    fgw_storage_stop_care(fixture->storage);
}

static void verify_with_care(struct fixture *fixture)
{
    struct fgw_storage_stats stats;
    fgw_storage_stats(fixture->storage, &stats);
    assert_int_equal(stats.checkpoint_batch, 0);
    fgw_storage_start_care(fixture->storage, always_live, NULL);
    await_verified(fixture, 0);
    fgw_storage_stop_care(fixture->storage);
}

static void care_writes_them_when_the_log_has_grown(void **state)
{
    struct fixture fixture;
    (void)state;
    written.batch = 0;
    fixture_init(&fixture);
    fixture.options.checkpoint_bytes = 4 * KIB;
    fixture_open(&fixture);
    fixture_run(&fixture, work_with_care);
    assert_true(count_files(&fixture, "checkpoints") <= 2);
    fixture_close(&fixture);
    fixture.options.checkpoint_bytes = 0;
    fixture_open(&fixture);
    fixture_run(&fixture, verify_with_care);
    fixture_deinit(&fixture);
}

static void replace_with_care(struct fixture *fixture)
{
    fgw_storage_start_care(fixture->storage, always_live, NULL);
    await_verified(fixture, written.batch);
    fgw_storage_stop_care(fixture->storage);
}

static bool newer_exists(struct fixture *fixture)
{
    bool found = false;
    for (int id = 3; id < 10; id++) {
        char name[40];
        (void)snprintf(name, sizeof name, "checkpoints/%010d.car", id);
        found = found || exists(fixture, name);
    }
    return found;
}

/* Found while opening (a head), or by reading back (the middle). */
static void care_replaces_a_damaged_one(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fixture fixture;
        open_with_two(&fixture);
        fixture_close(&fixture);
        flip(&fixture, SECOND, i == 0 ? 100 : size_of(&fixture, SECOND) / 2);
        fixture_open(&fixture);
        fixture_run(&fixture, replace_with_care);
        assert_false(exists(&fixture, SECOND));
        assert_true(newer_exists(&fixture)); /* compaction may have asked for further ones */
        fixture_deinit(&fixture);
    }
}

/* -- scrub --------------------------------------------------------------------------------------- */

static unsigned found_damaged;

static void on_damage(void *context, const struct fgw_storage_damage *damage)
{
    (void)context;
    assert_string_equal(damage->what, "checkpoint");
    assert_int_equal(damage->group, 2);
    found_damaged++;
}

static void scrub_all(struct fixture *fixture)
{
    struct fgw_storage_scrub scrub = {.on_damage = on_damage};
    assert_int_equal(fgw_storage_scrub(fixture->storage, &scrub), FGW_OK);
    assert_int_equal(scrub.checkpoints + found_damaged, 2);
}

static void scrub_reads_them_too(void **state)
{
    struct fixture fixture;
    (void)state;
    open_with_two(&fixture);
    fixture_run(&fixture, scrub_all);
    assert_int_equal(found_damaged, 0);
    flip(&fixture, SECOND, size_of(&fixture, SECOND) / 2);
    fixture_run(&fixture, scrub_all);
    assert_int_equal(found_damaged, 1);
    fixture_deinit(&fixture);
}

/* -- while operations go on ---------------------------------------------------------------------- */

struct load {
    struct fixture *fixture;
    struct fgw_wait wait;
    unsigned number;
    bool stop;
};

static void put_on_and_on(void *arg)
{
    struct load *load = arg;
    unsigned number = ++load->number;
    for (unsigned i = 0; !load->stop; i++) {
        char key[32];
        char body[32];
        (void)snprintf(key, sizeof key, "load %u %u", number, i % 50);
        (void)snprintf(body, sizeof body, "body %u", i);
        assert_int_equal(put_text(load->fixture, key, body, ++next_number), FGW_OK);
    }
    fgw_wait_signal(&load->wait);
}

static void checkpoint_under_load(struct fixture *fixture)
{
    struct load load = {.fixture = fixture};
    fgw_wait_init(&load.wait, 4);
    put_some(fixture, "base", 200);
    for (int i = 0; i < 4; i++) {
        fgw_fiber_spawn(fgw_loop_current(), put_on_and_on, &load);
    }
    for (int i = 0; i < 5; i++) {
        fgw_fiber_sleep_ms(20);
        write_one(fixture);
    }
    load.stop = true;
    fgw_wait_for(&load.wait);
}

static void operations_go_on_meanwhile(void **state)
{
    struct fixture fixture;
    struct fgw_storage_stats stats;
    (void)state;
    fixture_init(&fixture);
    fixture.options.group_size_bytes = 64 * KIB;
    fixture_open(&fixture);
    fixture_run(&fixture, checkpoint_under_load);
    fgw_storage_stats(fixture.storage, &stats);
    expect_made_anew(&fixture, stats.last_batch - written.batch);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_index_made_from_it_equals_the_live_one),
        cmocka_unit_test(an_empty_store_has_one_too),
        cmocka_unit_test(rows_larger_than_a_record_are_split),
        cmocka_unit_test(log_groups_below_may_be_missing),
        cmocka_unit_test(log_groups_above_must_not),
        cmocka_unit_test(its_own_group_may_be_missing_when_all_of_it_is_covered),
        cmocka_unit_test(with_a_damaged_one_the_one_before_it_is_used),
        cmocka_unit_test(a_shortened_or_lengthened_one_is_none),
        cmocka_unit_test(without_a_whole_one_the_log_is_enough),
        cmocka_unit_test(without_a_whole_one_and_with_a_group_gone_it_is_refused),
        cmocka_unit_test(of_another_directory_it_is_none),
        cmocka_unit_test(an_index_behind_it_is_set_aside),
        cmocka_unit_test(leftovers_of_a_load_are_removed),
        cmocka_unit_test(a_failure_leaves_nothing_behind),
        cmocka_unit_test(one_that_cannot_be_read_back_is_not_relied_upon),
        cmocka_unit_test(a_full_disk_stops_it_and_nothing_else),
        cmocka_unit_test(older_ones_go_unless_held),
        cmocka_unit_test(care_writes_them_when_the_log_has_grown),
        cmocka_unit_test(care_replaces_a_damaged_one),
        cmocka_unit_test(scrub_reads_them_too),
        cmocka_unit_test(operations_go_on_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
