/* test_recovery.c: recovery from nothing equals the live state, after random histories; damage in
 * every kind of file is named, and passed over when that is asked for. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/rng.h"
#include "storage/items.h"
#include "storage/release.h"
#include "storage/storage_internal.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

/* -- random histories ---------------------------------------------------------------------------- */

enum { KEYS = 24, LARGE = 6, STEPS = 150 };

struct history {
    struct fixture *fixture;
    uint64_t random;
    unsigned next_owner;
    struct {
        struct fgw_storage_owner owner;
        struct fgw_cid root;
        size_t size;
        bool held;
    } large[LARGE];
};

static uint64_t draw(struct history *history, uint64_t below)
{
    history->random ^= history->random << 13;
    history->random ^= history->random >> 7;
    history->random ^= history->random << 17;
    return (history->random >> 11) % below;
}

/* A refusal is as good as success: it must leave no trace in the log. */
static void accept_fault(enum fgw_err err)
{
    assert_true(err == FGW_OK || err == FGW_ERR_IO || err == FGW_ERR_NOT_FOUND ||
                err == FGW_ERR_PRECONDITION_FAILED);
}

static void step_put(struct history *history)
{
    static const size_t SIZES[] = {0, 1, 100, 4096, 70000, 262144};
    char key[16];
    size_t size = SIZES[draw(history, 6)];
    uint8_t *body = fgw_xmalloc(size + 1);
    fill_large(body, size, (unsigned)draw(history, 3));
    (void)snprintf(key, sizeof key, "key %u", (unsigned)draw(history, KEYS));
    struct put put = {.key = key,
                      .body = fgw_bytes(body, size),
                      .owner_number = ++history->next_owner,
                      .if_none_match = draw(history, 4) == 0};
    accept_fault(put_object(history->fixture->storage, &put));
    fgw_xfree(body);
}

static void step_delete(struct history *history)
{
    char key[16];
    (void)snprintf(key, sizeof key, "key %u", (unsigned)draw(history, KEYS));
    accept_fault(delete_object(history->fixture->storage, key));
}

static void step_large(struct history *history)
{
    unsigned i = (unsigned)draw(history, LARGE);
    struct fgw_storage *storage = history->fixture->storage;
    if (history->large[i].held) {
        accept_fault(release_hold(storage, &history->large[i].owner,
                                  draw(history, 2) == 0 ? NULL : &history->large[i].root));
        history->large[i].held = false;
        return;
    }
    make_owner(&history->large[i].owner, "large", ++history->next_owner);
    history->large[i].size = MIB + 1 + (size_t)draw(history, 3) * 700 * KIB;
    enum fgw_err err = put_large(storage, &history->large[i].owner, history->large[i].size,
                                 (unsigned)draw(history, 2), &history->large[i].root);
    accept_fault(err);
    history->large[i].held = err == FGW_OK;
}

static enum fgw_err accept_op(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    (void)op;
    (void)txn;
    return FGW_OK;
}

static void step_copy(struct history *history)
{
    unsigned from = (unsigned)draw(history, LARGE);
    unsigned to = (unsigned)draw(history, LARGE);
    if (!history->large[from].held || history->large[to].held) {
        return;
    }
    make_owner(&history->large[to].owner, "copy", ++history->next_owner);
    struct fgw_storage_hold hold = {.owner = &history->large[to].owner,
                                    .root = history->large[from].root,
                                    .size_bytes = history->large[from].size};
    struct fgw_storage_op op = {
        .name = "copy", .evaluate = accept_op, .holds = &hold, .hold_count = 1};
    enum fgw_err err = fgw_storage_commit(history->fixture->storage, &op);
    accept_fault(err);
    history->large[to].root = history->large[from].root;
    history->large[to].size = history->large[from].size;
    history->large[to].held = err == FGW_OK;
}

static void step_release(struct history *history)
{
    struct fgw_release_result result = {.more = true};
    enum fgw_err err = FGW_OK;
    fgw_fiber_sleep_ms(2);
    while (result.more && err == FGW_OK) {
        err = fgw_release_pass(history->fixture->storage, &result);
    }
    accept_fault(err);
}

static void step_compact(struct history *history)
{
    struct fgw_compact_result result = {.more = true};
    enum fgw_err err = FGW_OK;
    while (result.more && err == FGW_OK) {
        err = fgw_compact_pass(history->fixture->storage, &result);
    }
    accept_fault(err);
}

static void step_checkpoint(struct history *history)
{
    accept_fault(fgw_storage_checkpoint(history->fixture->storage, NULL));
}

static void step_fault(struct history *history)
{
    static const char *const FAULTS[] = {"pwrite:1:EIO", "fdatasync:1:EIO", "fdatasync:2:EIO"};
    fgw_fs_set_faults(FAULTS[draw(history, 3)]);
    if (draw(history, 4) == 0) {
        step_checkpoint(history);
    }
    step_put(history);
    step_large(history);
    step_delete(history);
    fgw_fs_set_faults(NULL);
}

/* Compaction unlinks groups: the log alone is not enough any more. */
static bool groups_may_go;

static void run_history(struct fixture *fixture)
{
    static struct history history;
    if (history.fixture != fixture) {
        const char *seed = getenv("FGW_TEST_SEED");
        history = (struct history){.fixture = fixture};
        history.random = seed != NULL ? strtoull(seed, NULL, 10) : fgw_rng_u64();
        history.random |= 1;
        print_message("seed %llu\n", (unsigned long long)history.random);
    }
    if (!groups_may_go) {
        fgw_storage_hold_groups(fixture->storage);
    }
    for (int i = 0; i < STEPS; i++) {
        uint64_t kind = draw(&history, 100);
        if (kind < 50) {
            step_put(&history);
        } else if (kind < 68) {
            step_delete(&history);
        } else if (kind < 80) {
            step_large(&history);
        } else if (kind < 86) {
            step_copy(&history);
        } else if (kind < 93) {
            step_release(&history);
        } else if (kind < 95) {
            step_compact(&history);
        } else if (kind < 97) {
            step_checkpoint(&history);
        } else {
            step_fault(&history);
        }
    }
    if (!groups_may_go) {
        fgw_storage_release_groups(fixture->storage);
    }
}

static void expect_same_rows(struct fgw_buf *live, struct fgw_buf *rebuilt)
{
    struct fgw_bytes a = fgw_buf_bytes(live);
    struct fgw_bytes b = fgw_buf_bytes(rebuilt);
    struct fgw_bytes line_a;
    struct fgw_bytes line_b;
    while (a.len > 0 && b.len > 0) {
        (void)fgw_bytes_split(&a, '\n', &line_a);
        (void)fgw_bytes_split(&b, '\n', &line_b);
        if (!fgw_bytes_eq(line_a, line_b)) {
            fail_msg("live    %.*s\nrebuilt %.*s", FGW_FMT(line_a), FGW_FMT(line_b));
        }
    }
    assert_int_equal(a.len, b.len);
}

static void compare_with_rebuilt(struct fixture *fixture)
{
    struct fgw_buf live;
    struct fgw_buf rebuilt;
    fgw_buf_init(&live, 0);
    fgw_buf_init(&rebuilt, 0);
    dump_rows(fixture->storage, &live);
    fixture_close(fixture);
    fixture_drop_index(fixture);
    fixture_open(fixture);
    dump_rows(fixture->storage, &rebuilt);
    assert_true(live.len > 0);
    expect_same_rows(&live, &rebuilt);
    if (!groups_may_go) {
        fixture_close(fixture);
        fixture_drop_index(fixture);
        fixture_drop_checkpoints(fixture); /* now from the log alone */
        fixture_open(fixture);
        fgw_buf_clear(&rebuilt);
        dump_rows(fixture->storage, &rebuilt);
        expect_same_rows(&live, &rebuilt);
    }
    fgw_buf_deinit(&live);
    fgw_buf_deinit(&rebuilt);
}

static void compare_histories(void)
{
    struct fixture fixture;
    int rounds = getenv("FGW_TEST_SLOW") != NULL ? 30 : 3;
    fixture_init(&fixture);
    fixture.options.group_size_bytes = MIB;
    fixture_open(&fixture);
    for (int i = 0; i < rounds; i++) {
        fixture_run(&fixture, run_history);
        if (i % 2 == 0) {
            fixture_close(&fixture); /* a restart in the middle, sometimes after a rebuild */
            fixture_open(&fixture);
            fixture_run(&fixture, run_history);
        }
        compare_with_rebuilt(&fixture);
    }
    fixture_deinit(&fixture);
}

static void recovery_from_nothing_equals_the_live_state(void **state)
{
    (void)state;
    groups_may_go = false;
    compare_histories();
}

static void recovery_from_what_compaction_leaves_equals_the_live_state(void **state)
{
    (void)state;
    groups_may_go = true;
    compare_histories();
}

/* -- damage -------------------------------------------------------------------------------------- */

enum { OBJECTS = 30 };

static void put_numbered(struct fixture *fixture)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        char key[16];
        uint8_t body[1000];
        (void)snprintf(key, sizeof key, "%u", i);
        fill_large(body, sizeof body, i + 1);
        struct put put = {.key = key, .body = fgw_bytes(body, sizeof body), .owner_number = i + 1};
        assert_int_equal(put_object(fixture->storage, &put), FGW_OK);
    }
}

static unsigned present; /* objects that check_numbered found, */
static unsigned damaged; /* and found damaged */

/* Whatever is there is right. */
static void check_numbered(struct fixture *fixture)
{
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    present = 0;
    damaged = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        char key[16];
        uint8_t body[1000];
        (void)snprintf(key, sizeof key, "%u", i);
        fill_large(body, sizeof body, i + 1);
        fgw_buf_clear(&out);
        enum fgw_err err = get_object(fixture->storage, key, &out);
        assert_true(err == FGW_OK || err == FGW_ERR_NOT_FOUND || err == FGW_ERR_CORRUPT);
        damaged += err == FGW_ERR_CORRUPT;
        assert_true(err != FGW_OK || fgw_bytes_eq(fgw_buf_bytes(&out), fgw_bytes(body, 1000)));
        present += err == FGW_OK;
    }
    fgw_buf_deinit(&out);
}

static off_t size_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_size;
}

static void overwrite(const char *path, off_t offset, size_t len)
{
    uint8_t noise[600];
    fill_large(noise, sizeof noise, 99);
    int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, noise, len, offset), (ssize_t)len);
    (void)close(fd);
}

static void make_numbered(struct fixture *fixture, uint64_t group_size)
{
    fixture_init(fixture);
    fixture->options.group_size_bytes = group_size;
    fixture_open(fixture);
    fixture_run(fixture, put_numbered);
    fixture_close(fixture);
}

static void expect_refused(struct fixture *fixture, const char *file)
{
    assert_int_equal(fixture_try_open(fixture), FGW_ERR_CORRUPT);
    assert_non_null(strstr(fixture->error.message, file));
    assert_non_null(strstr(fixture->error.message, "offset"));
    assert_non_null(strstr(fixture->error.message, "fgw recover --skip-damaged"));
}

/* Refused first; passed over when asked; afterwards it opens as usual. */
static void expect_skipped(struct fixture *fixture, unsigned at_least)
{
    fixture->options.skip_damaged = true;
    fixture_open(fixture);
    struct fgw_storage_recovery recovery = fgw_storage_recovered(fixture->storage);
    assert_true(recovery.damages > 0);
    fixture_run(fixture, check_numbered);
    assert_true(present >= at_least);
    assert_true(present + damaged + recovery.lost_batches >= OBJECTS);
    fixture_close(fixture);
    fixture->options.skip_damaged = false;
    unsigned before = present;
    fixture_open(fixture);
    fixture_run(fixture, check_numbered);
    assert_int_equal(present, before);
    fixture_run(fixture, put_numbered);
    fixture_close(fixture);
}

static void a_damaged_log_is_refused_then_passed_over(void **state)
{
    static const off_t LENGTHS[] = {1, 40, 600};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture fixture;
        make_numbered(&fixture, 0);
        const char *log = fixture_file(&fixture, "groups/0000000001.car");
        off_t middle = size_of(log) / 2;
        /* a record: the magic of one in the middle, or what follows */
        overwrite(log, middle, (size_t)LENGTHS[i]);
        fixture_drop_index(&fixture);
        enum fgw_err err = fixture_try_open(&fixture);
        if (err == FGW_OK) { /* it hit the bytes of a body: found when it is read */
            fixture_deinit(&fixture);
            continue;
        }
        expect_refused(&fixture, "groups/0000000001.car");
        fixture_drop_index(&fixture);
        expect_skipped(&fixture, OBJECTS - 3);
        fixture_deinit(&fixture);
    }
}

static void a_damaged_record_loses_its_batch(void **state)
{
    struct fixture fixture;
    uint8_t *bytes;
    (void)state;
    make_numbered(&fixture, 0);
    char log[256];
    (void)snprintf(log, sizeof log, "%s", fixture_file(&fixture, "groups/0000000001.car"));
    off_t size = size_of(log);
    bytes = fgw_xmalloc((size_t)size);
    int fd = open(log, O_RDONLY);
    assert_int_equal(pread(fd, bytes, (size_t)size, 0), size);
    (void)close(fd);
    size_t at =
        fgw_bytes_find(fgw_bytes(bytes, (size_t)size), FGW_LIT("FGWRECRD"), (size_t)size / 2);
    assert_true(at != SIZE_MAX);
    fgw_xfree(bytes);
    overwrite(log, (off_t)at + 100, 10);
    fixture_drop_index(&fixture);
    expect_refused(&fixture, "groups/0000000001.car");
    fixture_drop_index(&fixture);
    expect_skipped(&fixture, OBJECTS - 1);
    fixture_deinit(&fixture);
}

static void a_missing_log_group_is_refused_then_passed_over(void **state)
{
    struct fixture fixture;
    (void)state;
    make_numbered(&fixture, 8 * KIB);
    assert_int_equal(unlink(fixture_file(&fixture, "groups/0000000003.car")), 0);
    fixture_drop_index(&fixture);
    expect_refused(&fixture, "groups/0000000003.car");
    fixture_drop_index(&fixture);
    fixture.options.skip_damaged = true;
    fixture_open(&fixture);
    fixture_run(&fixture, check_numbered);
    assert_true(present > 0 && present < OBJECTS);
    assert_int_equal(present + fgw_storage_recovered(fixture.storage).lost_batches, OBJECTS);
    fixture_close(&fixture);
    fixture.options.skip_damaged = false;
    fixture_open(&fixture);
    fixture_deinit(&fixture);
}

static void a_shortened_log_group_is_refused_then_passed_over(void **state)
{
    struct fixture fixture;
    (void)state;
    make_numbered(&fixture, 8 * KIB);
    const char *log = fixture_file(&fixture, "groups/0000000002.car");
    assert_int_equal(truncate(log, size_of(log) - 100), 0);
    fixture_drop_index(&fixture);
    expect_refused(&fixture, "groups/0000000002.car");
    fixture_drop_index(&fixture);
    expect_skipped(&fixture, OBJECTS - 1);
    fixture_deinit(&fixture);
}

static void an_index_ahead_is_rebuilt_when_asked(void **state)
{
    struct fixture fixture;
    (void)state;
    make_numbered(&fixture, 0);
    const char *log = fixture_file(&fixture, "groups/0000000001.car");
    assert_int_equal(truncate(log, size_of(log) - 1), 0);
    assert_int_equal(fixture_try_open(&fixture), FGW_ERR_CORRUPT);
    fixture.options.skip_damaged = true;
    fixture_open(&fixture);
    fixture_run(&fixture, check_numbered);
    assert_int_equal(present, OBJECTS - 1);
    fixture_close(&fixture);
    fixture.options.skip_damaged = false;
    fixture_open(&fixture);
    fixture_deinit(&fixture);
}

static void a_damaged_index_is_rebuilt(void **state)
{
    struct fixture fixture;
    (void)state;
    make_numbered(&fixture, 0);
    overwrite(fixture_file(&fixture, "meta/CURRENT"), 0, 10);
    fixture_open(&fixture);
    assert_int_equal(fgw_storage_recovered(fixture.storage).batches, OBJECTS);
    fixture_run(&fixture, check_numbered);
    assert_int_equal(present, OBJECTS);
    fixture_close(&fixture);
    fixture.options.rebuild_index = true;
    fixture_open(&fixture);
    assert_int_equal(fgw_storage_recovered(fixture.storage).batches, OBJECTS);
    fixture_deinit(&fixture);
}

/* -- bulk groups --------------------------------------------------------------------------------- */

static struct fgw_cid large_root;

static void put_one_large(struct fixture *fixture)
{
    struct fgw_storage_owner owner;
    make_owner(&owner, "large", 1);
    assert_int_equal(put_large(fixture->storage, &owner, 3 * MIB, 1, &large_root), FGW_OK);
}

static void read_one_damaged(struct fixture *fixture)
{
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    assert_int_equal(read_blob(fixture->storage, &large_root, NULL, &out), FGW_ERR_CORRUPT);
    assert_true(out.len >= MIB);
    fgw_buf_deinit(&out);
}

static void damaged_bulk_groups_are_served_but_for_the_damage(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct fixture fixture;
        fixture_init(&fixture);
        fixture_open(&fixture);
        fixture_run(&fixture, put_one_large);
        fixture_close(&fixture);
        const char *bulk = fixture_file(&fixture, "groups/0000000002.car");
        if (i == 0) {
            overwrite(bulk, size_of(bulk) - 300, 1);
            overwrite(bulk, MIB * 2, 1);
        } else {
            assert_int_equal(truncate(bulk, size_of(bulk) - MIB), 0);
        }
        if (i == 2) {
            fixture_drop_index(&fixture);
        }
        fixture_open(&fixture);
        assert_int_equal(fgw_storage_recovered(fixture.storage).damaged_groups, i == 0 ? 0 : 1);
        fixture_run(&fixture, read_one_damaged);
        fixture_run(&fixture, put_numbered);
        fixture_deinit(&fixture);
    }
}

/* -- scrub --------------------------------------------------------------------------------------- */

struct found {
    unsigned bytes, records, lists, with_owner;
};

static void on_damage(void *context, const struct fgw_storage_damage *damage)
{
    struct found *found = context;
    found->bytes += strcmp(damage->what, "bytes") == 0;
    found->records += strcmp(damage->what, "log record") == 0;
    found->lists += strcmp(damage->what, "list") == 0;
    found->with_owner += damage->owner != NULL && fgw_bytes_eq_str(damage->owner->key, "7");
    assert_true(damage->group != 0 || strcmp(damage->what, "list") == 0);
}

static struct found scrub(struct fixture *fixture)
{
    struct found found = {0};
    struct fgw_storage_scrub scrub = {.on_damage = on_damage, .context = &found};
    assert_int_equal(fgw_storage_scrub(fixture->storage, &scrub), FGW_OK);
    assert_int_equal(scrub.blocks, OBJECTS + 4);
    assert_int_equal(scrub.blobs, 1);
    assert_true(scrub.log_batches > 0);
    assert_int_equal(scrub.damaged, found.bytes + found.records + found.lists);
    return found;
}

static void scrub_whole(struct fixture *fixture)
{
    put_numbered(fixture);
    put_one_large(fixture);
    struct found found = scrub(fixture);
    assert_int_equal(found.bytes + found.records + found.lists, 0);
}

static void scrub_and_heal(struct fixture *fixture)
{
    struct fgw_buf out;
    struct found found = scrub(fixture);
    assert_int_equal(found.bytes, 3);
    assert_int_equal(found.with_owner, 1);
    assert_int_equal(found.lists, 0);
    fgw_buf_init(&out, 0);
    assert_int_equal(read_blob(fixture->storage, &large_root, NULL, &out), FGW_ERR_CORRUPT);
    put_one_large(fixture); /* the same bytes again replace the bad ones */
    fgw_buf_clear(&out);
    assert_int_equal(read_blob(fixture->storage, &large_root, NULL, &out), FGW_OK);
    fgw_buf_deinit(&out);
    assert_int_equal(scrub(fixture).bytes, 1);
    put_numbered(fixture);
    check_numbered(fixture);
    assert_int_equal(present, OBJECTS);
    assert_int_equal(scrub(fixture).bytes, 0);
}

static off_t find_in(const char *path, const void *bytes, size_t len)
{
    off_t size = size_of(path);
    uint8_t *file = fgw_xmalloc((size_t)size);
    int fd = open(path, O_RDONLY);
    assert_int_equal(pread(fd, file, (size_t)size, 0), size);
    (void)close(fd);
    size_t at = fgw_bytes_find(fgw_bytes(file, (size_t)size), fgw_bytes(bytes, len), 0);
    fgw_xfree(file);
    assert_true(at != SIZE_MAX);
    return (off_t)at;
}

static void scrub_finds_all_damage(void **state)
{
    struct fixture fixture;
    uint8_t body[1000];
    char log[256];
    char bulk[256];
    (void)state;
    fixture_init(&fixture);
    (void)snprintf(log, sizeof log, "%s", fixture_file(&fixture, "groups/0000000001.car"));
    (void)snprintf(bulk, sizeof bulk, "%s", fixture_file(&fixture, "groups/0000000002.car"));
    fixture_open(&fixture);
    fixture_run(&fixture, scrub_whole);
    fixture_close(&fixture);
    fill_large(body, sizeof body, 8);
    overwrite(log, find_in(log, body, 100) + 500, 1); /* object "7" */
    overwrite(bulk, size_of(bulk) - 10, 1);           /* the node */
    overwrite(bulk, MIB * 2, 1);
    fixture_open(&fixture);
    fixture_run(&fixture, scrub_and_heal);
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recovery_from_nothing_equals_the_live_state),
        cmocka_unit_test(recovery_from_what_compaction_leaves_equals_the_live_state),
        cmocka_unit_test(a_damaged_log_is_refused_then_passed_over),
        cmocka_unit_test(a_damaged_record_loses_its_batch),
        cmocka_unit_test(a_missing_log_group_is_refused_then_passed_over),
        cmocka_unit_test(a_shortened_log_group_is_refused_then_passed_over),
        cmocka_unit_test(an_index_ahead_is_rebuilt_when_asked),
        cmocka_unit_test(a_damaged_index_is_rebuilt),
        cmocka_unit_test(damaged_bulk_groups_are_served_but_for_the_damage),
        cmocka_unit_test(scrub_finds_all_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
