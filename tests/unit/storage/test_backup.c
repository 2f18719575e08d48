/* test_backup.c: the list of a backup against hostile bytes; a backup that fails half-way is gone on
 * with; groups that are damaged already; identities after a restore. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/fs.h"
#include "storage/backup_files.h"
#include "storage/storage_internal.h"

enum { KIB = 1024, MIB = 1024 * 1024 };

/* -- the list ------------------------------------------------------------------------------------ */

static void make_list(struct fgw_backup_list *list)
{
    *list =
        (struct fgw_backup_list){.store_id = "store", .checkpoint = 7, .batch = 99, .made_ms = 5};
    fgw_backup_list_add(list, "FORMAT", 100)->sha256[0] = 1;
    fgw_backup_list_add(list, "groups/0000000001.car", 1u << 31)->sha256[31] = 2;
}

static void a_list_is_read_as_it_was_written(void **state)
{
    struct fgw_backup_list list;
    struct fgw_backup_list again;
    struct fgw_buf text;
    (void)state;
    make_list(&list);
    fgw_buf_init(&text, 0);
    fgw_backup_list_encode(&list, &text);
    assert_int_equal(fgw_backup_list_decode(&again, fgw_buf_bytes(&text)), FGW_OK);
    assert_int_equal(again.count, 2);
    assert_int_equal(again.checkpoint, 7);
    assert_int_equal(again.batch, 99);
    assert_memory_equal(again.store_id, list.store_id, sizeof list.store_id);
    assert_int_equal(again.files[1].size, 1u << 31);
    assert_memory_equal(again.files[1].sha256, list.files[1].sha256, FGW_SHA256_SIZE);
    fgw_backup_list_deinit(&again);
    for (size_t len = 0; len < text.len; len++) {
        assert_int_equal(fgw_backup_list_decode(&again, fgw_bytes(text.ptr, len)), FGW_ERR_CORRUPT);
        text.ptr[len] ^= 4;
        assert_int_equal(fgw_backup_list_decode(&again, fgw_buf_bytes(&text)), FGW_ERR_CORRUPT);
        text.ptr[len] ^= 4;
    }
    fgw_buf_deinit(&text);
    fgw_backup_list_deinit(&list);
}

static void names_that_lead_elsewhere_are_refused(void **state)
{
    static const char *const NAMES[] = {"../x",    "/etc/passwd", "groups/../../x",
                                        "groups/", "groups/a/b",  "meta/x",
                                        "LOCK",    "groups/..",   ""};
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        struct fgw_backup_list list;
        struct fgw_backup_list again;
        struct fgw_buf text;
        make_list(&list);
        fgw_backup_list_add(&list, NAMES[i], 1);
        fgw_buf_init(&text, 0);
        fgw_backup_list_encode(&list, &text);
        assert_int_equal(fgw_backup_list_decode(&again, fgw_buf_bytes(&text)), FGW_ERR_CORRUPT);
        fgw_buf_deinit(&text);
        fgw_backup_list_deinit(&list);
    }
}

static void a_newer_list_is_said_to_be_one(void **state)
{
    struct fgw_backup_list list;
    struct fgw_buf text;
    (void)state;
    fgw_buf_init(&text, 0);
    (void)fgw_buf_append_str(&text, "fgw-backup\nformat 2\nsomething else\n");
    (void)fgw_buf_appendf(&text, "crc32c %08x\n", fgw_crc32c(0, fgw_buf_bytes(&text)));
    assert_int_equal(fgw_backup_list_decode(&list, fgw_buf_bytes(&text)), FGW_ERR_NEWER_VERSION);
    fgw_buf_deinit(&text);
}

/* -- making one ---------------------------------------------------------------------------------- */

static char target[128];
static char restored[64];
static unsigned next_number;

static void put_some(struct fixture *fixture)
{
    struct fgw_storage_owner owner;
    struct fgw_cid root;
    for (unsigned i = 0; i < 40; i++) {
        char key[32];
        uint8_t body[KIB];
        (void)snprintf(key, sizeof key, "%u", i);
        fill_large(body, sizeof body, i + 1);
        struct put put = {
            .key = key, .body = fgw_bytes(body, sizeof body), .owner_number = ++next_number};
        assert_int_equal(put_object(fixture->storage, &put), FGW_OK);
    }
    make_owner(&owner, "large", ++next_number);
    assert_int_equal(put_large(fixture->storage, &owner, 3 * MIB, 1, &root), FGW_OK);
}

static void begin(struct fixture *fixture)
{
    fixture_init(fixture);
    fixture->options.group_size_bytes = 16 * KIB;
    (void)snprintf(target, sizeof target, "%s.copy", fixture->path);
    (void)snprintf(restored, sizeof restored, "%.50s.back", fixture->path);
    fixture_open(fixture);
    fixture_run(fixture, put_some);
}

static void end(struct fixture *fixture)
{
    char command[400];
    fixture_deinit(fixture);
    (void)snprintf(command, sizeof command, "rm -rf %s %s", target, restored);
    assert_int_equal(system(command), 0);
}

static enum fgw_err back_up(struct fixture *fixture)
{
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = fgw_storage_backup(fixture->storage, target, &error);
    assert_true(err == FGW_OK || error.message[0] != '\0');
    assert_true(fgw_storage_begin_unlink(fixture->storage)); /* the hold was given back */
    fgw_storage_end_unlink(fixture->storage);
    return err;
}

static bool target_has(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", target, name);
    return access(path, F_OK) == 0;
}

static enum fgw_err restore_it(bool replace)
{
    struct fgw_error error;
    struct fgw_storage_restore options = {.from = target, .to = restored, .replace = replace};
    fgw_error_init(&error);
    return fgw_storage_restore(&options, &error);
}

static void expect_all(struct fixture *fixture)
{
    struct fgw_buf out;
    fgw_buf_init(&out, 0);
    for (unsigned i = 0; i < 40; i++) {
        char key[32];
        uint8_t body[KIB];
        (void)snprintf(key, sizeof key, "%u", i);
        fill_large(body, sizeof body, i + 1);
        fgw_buf_clear(&out);
        assert_int_equal(get_object(fixture->storage, key, &out), FGW_OK);
        assert_true(fgw_bytes_eq(fgw_buf_bytes(&out), fgw_bytes(body, sizeof body)));
    }
    fgw_buf_deinit(&out);
}

/* The restored directory has everything, takes more, and can be made anew. */
static void expect_restored(struct fgw_buf *rows)
{
    struct fixture fixture = {.options = {.path = restored, .min_free_bytes = 1}};
    struct fgw_buf found;
    (void)snprintf(fixture.path, sizeof fixture.path, "%s", restored);
    fgw_buf_init(&found, 0);
    fixture_open(&fixture);
    assert_int_equal(fgw_storage_recovered(fixture.storage).damaged_groups, 0);
    dump_rows(fixture.storage, &found);
    assert_true(fgw_bytes_eq(fgw_buf_bytes(&found), fgw_buf_bytes(rows)));
    fixture_run(&fixture, expect_all);
    fixture_run(&fixture, put_some);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, expect_all);
    fixture_close(&fixture);
    fgw_buf_deinit(&found);
}

static void back_up_whole(struct fixture *fixture)
{
    assert_int_equal(back_up(fixture), FGW_OK);
    assert_int_equal(back_up(fixture), FGW_ERR_EXISTS);
}

static void a_restored_directory_equals_the_one_that_was_copied(void **state)
{
    (void)state;
    for (int replace = 0; replace < 2; replace++) {
        struct fixture fixture;
        struct fgw_buf rows;
        begin(&fixture);
        fgw_buf_init(&rows, 0);
        fixture_run(&fixture, back_up_whole);
        dump_rows(fixture.storage, &rows);
        assert_int_equal(restore_it(replace == 1), FGW_OK);
        assert_int_equal(restore_it(replace == 1), FGW_ERR_EXISTS);
        expect_restored(&rows);
        fgw_buf_deinit(&rows);
        end(&fixture);
    }
}

static const char *fault;

static void fail_then_go_on(struct fixture *fixture)
{
    fgw_fs_set_faults(fault);
    enum fgw_err err = back_up(fixture);
    fgw_fs_set_faults(NULL);
    assert_true(err == FGW_ERR_NOSPACE || err == FGW_ERR_IO);
    assert_false(target_has("BACKUP"));
    put_some(fixture);
    assert_int_equal(back_up(fixture), FGW_OK);
    assert_true(target_has("BACKUP"));
    assert_false(target_has("BACKUP.partial"));
    assert_false(target_has("tmp"));
}

static void after_a_failure_the_next_call_goes_on(void **state)
{
    static const char *const FAULTS[] = {"pwrite:2:ENOSPC", "pwrite:7:ENOSPC", "pwrite:9:EIO",
                                         "fsync:6:EIO",     "rename:3:EIO",    "rename:6:EIO"};
    (void)state;
    for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++) {
        struct fixture fixture;
        struct fgw_buf rows;
        begin(&fixture);
        fgw_buf_init(&rows, 0);
        fault = FAULTS[i];
        fixture_run(&fixture, fail_then_go_on);
        dump_rows(fixture.storage, &rows);
        assert_int_equal(restore_it(false), FGW_OK);
        expect_restored(&rows);
        fgw_buf_deinit(&rows);
        end(&fixture);
    }
}

static void back_up_what_is_left(struct fixture *fixture)
{
    struct fgw_storage_backup_status status;
    assert_int_equal(back_up(fixture), FGW_OK);
    fgw_storage_backup_status(fixture->storage, &status);
    assert_int_equal(status.state, FGW_STORAGE_BACKUP_DONE);
    assert_int_equal(status.damaged, 2);
    assert_int_equal(status.files, status.files_total - 1);
}

/* One group is gone, one is cut: what is left is copied all the same. */
static void damaged_groups_are_copied_as_they_are(void **state)
{
    struct fixture fixture;
    (void)state;
    begin(&fixture);
    assert_int_equal(unlink(fixture_file(&fixture, "groups/0000000001.car")), 0);
    assert_int_equal(truncate(fixture_file(&fixture, "groups/0000000002.car"), 5000), 0);
    fixture_run(&fixture, back_up_what_is_left);
    assert_int_equal(restore_it(false), FGW_OK);
    end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_read_as_it_was_written),
        cmocka_unit_test(names_that_lead_elsewhere_are_refused),
        cmocka_unit_test(a_newer_list_is_said_to_be_one),
        cmocka_unit_test(a_restored_directory_equals_the_one_that_was_copied),
        cmocka_unit_test(after_a_failure_the_next_call_goes_on),
        cmocka_unit_test(damaged_groups_are_copied_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
