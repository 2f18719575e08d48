/* test_compact.c: groups that are mostly dead give their space back; what is alive stays, byte for
 * byte, whatever happens meanwhile. */
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/encode.h"
#include "base/fs.h"
#include "storage/release.h"
#include "storage/storage_internal.h"

enum { KIB = 1024, MIB = 1024 * KIB, SMALL = 60, LARGE = 8, LARGE_OWNERS = 1000000 };

static void open_small_groups(struct fixture *fixture)
{
    fixture_init(fixture);
    fixture->options.group_size_bytes = MIB;
    fixture_open(fixture);
}

static void run_fresh(void (*fn)(struct fixture *fixture))
{
    struct fixture fixture;
    open_small_groups(&fixture);
    fixture_run(&fixture, fn);
    fixture_deinit(&fixture);
}

/* -- objects whose bodies follow from their owner's number --------------------------------------- */

static size_t size_of(unsigned owner_number)
{
    return owner_number >= LARGE_OWNERS ? MIB + 1 + (owner_number % 3) * 700 * KIB
                                        : 1 + (owner_number * 7919) % (90 * KIB);
}

static enum fgw_err put_one(struct fgw_storage *storage, const char *key, unsigned owner_number)
{
    size_t size = size_of(owner_number);
    if (owner_number >= LARGE_OWNERS) {
        return put_large_object(storage, key, owner_number, size, owner_number);
    }
    uint8_t *body = fgw_xmalloc(size);
    fill_large(body, size, owner_number);
    struct put put = {.key = key, .body = fgw_bytes(body, size), .owner_number = owner_number};
    enum fgw_err err = put_object(storage, &put);
    fgw_xfree(body);
    return err;
}

static void check_one(struct fgw_storage *storage, const char *key, unsigned owner_number)
{
    struct fgw_buf body;
    size_t size = size_of(owner_number);
    uint8_t *expected = fgw_xmalloc(size);
    fill_large(expected, size, owner_number);
    fgw_buf_init(&body, 0);
    assert_int_equal(get_object(storage, key, &body), FGW_OK);
    assert_int_equal(body.len, size);
    assert_memory_equal(body.ptr, expected, size);
    fgw_buf_deinit(&body);
    fgw_xfree(expected);
}

static void make_key(char key[16], unsigned i)
{
    (void)snprintf(key, 16, "k%u", i);
}

static void put_all(struct fgw_storage *storage)
{
    char key[16];
    for (unsigned i = 0; i < SMALL + LARGE; i++) {
        make_key(key, i);
        unsigned owner = i < SMALL ? i + 1 : LARGE_OWNERS + i;
        assert_int_equal(put_one(storage, key, owner), FGW_OK);
    }
}

/* All but every eighth. */
static bool stays(unsigned i)
{
    return i % 8 == 3;
}

static void delete_most(struct fgw_storage *storage)
{
    char key[16];
    for (unsigned i = 0; i < SMALL + LARGE; i++) {
        make_key(key, i);
        if (!stays(i)) {
            assert_int_equal(delete_object(storage, key), FGW_OK);
        }
    }
}

static void check_rest(struct fgw_storage *storage)
{
    char key[16];
    for (unsigned i = 0; i < SMALL + LARGE; i++) {
        make_key(key, i);
        if (stays(i)) {
            check_one(storage, key, i < SMALL ? i + 1 : LARGE_OWNERS + i);
        }
    }
}

static void release_all(struct fgw_storage *storage)
{
    struct fgw_release_result result = {.more = true};
    fgw_fiber_sleep_ms(3);
    while (result.more) {
        assert_int_equal(fgw_release_pass(storage, &result), FGW_OK);
    }
}

/* -- passes -------------------------------------------------------------------------------------- */

static void write_checkpoint(struct fgw_storage *storage)
{
    assert_int_equal(fgw_storage_checkpoint(storage, NULL), FGW_OK);
}

static void cover(struct fgw_storage *storage)
{
    write_checkpoint(storage);
    write_checkpoint(storage);
}

static struct fgw_compact_result compact(struct fgw_storage *storage)
{
    struct fgw_compact_result sum = {0};
    struct fgw_compact_result one = {.more = true};
    while (one.more) {
        assert_int_equal(fgw_compact_pass(storage, &one), FGW_OK);
        sum.moved_blocks += one.moved_blocks;
        sum.unlinked_groups += one.unlinked_groups;
    }
    return sum;
}

static uint64_t bytes_in_groups(const struct fixture *fixture, unsigned *out_files)
{
    DIR *dir = opendir(fixture_file(fixture, "groups"));
    struct dirent *entry;
    uint64_t bytes = 0;
    *out_files = 0;
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        char path[512];
        struct stat status;
        (void)snprintf(path, sizeof path, "%s/groups/%s", fixture->path, entry->d_name);
        if (entry->d_name[0] != '.' && stat(path, &status) == 0) {
            bytes += (uint64_t)status.st_size;
            (*out_files)++;
        }
    }
    (void)closedir(dir);
    return bytes;
}

static void give_back(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    unsigned files_before;
    unsigned files_after;
    put_all(storage);
    delete_most(storage);
    release_all(storage);
    uint64_t before = bytes_in_groups(fixture, &files_before);
    struct fgw_compact_result result = compact(storage);
    assert_true(result.moved_blocks > 0);
    assert_int_equal(result.unlinked_groups, 0); /* no checkpoint covers anything yet */
    check_rest(storage);
    cover(storage);
    result = compact(storage);
    assert_true(result.unlinked_groups >= 5);
    uint64_t after = bytes_in_groups(fixture, &files_after);
    assert_true(files_after < files_before);
    assert_true(after < before / 2);
    check_rest(storage); /* their rows' hints name groups that are gone */
    fgw_figures_refresh(storage);
    struct fgw_storage_stats stats;
    fgw_storage_stats(storage, &stats);
    assert_true(stats.dead_bytes < after);
    assert_true(stats.live_bytes <= after);
    cover(storage);
    assert_int_equal(compact(storage).moved_blocks, 0); /* it comes to rest */
}

static void check_after_restart(struct fixture *fixture)
{
    struct fgw_storage_scrub scrub = {0};
    check_rest(fixture->storage);
    assert_int_equal(fgw_storage_scrub(fixture->storage, &scrub), FGW_OK);
    assert_int_equal(scrub.damaged, 0);
}

static void deleted_bytes_are_given_back(void **state)
{
    (void)state;
    struct fixture fixture;
    open_small_groups(&fixture);
    fixture_run(&fixture, give_back);
    fixture_close(&fixture);
    fixture_open(&fixture);
    assert_int_equal(fgw_storage_recovered(fixture.storage).damaged_groups, 0);
    fixture_run(&fixture, check_after_restart);
    fixture_close(&fixture);
    fixture_drop_index(&fixture); /* checkpoint and what is left of the log are enough */
    fixture_open(&fixture);
    fixture_run(&fixture, check_after_restart);
    fixture_deinit(&fixture);
}

/* -- either of the two checkpoints is enough ----------------------------------------------------- */

static void give_up_only(struct fixture *fixture)
{
    put_all(fixture->storage);
    delete_most(fixture->storage);
    release_all(fixture->storage);
    (void)compact(fixture->storage);
    assert_true(fixture->storage->compact.gone_count > 0);
}

static void one_is_not_enough(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    put_all(storage);
    delete_most(storage);
    release_all(storage);
    write_checkpoint(storage); /* knows the groups that are given up next */
    (void)compact(storage);
    write_checkpoint(storage);
    assert_int_equal(compact(storage).unlinked_groups, 0);
    write_checkpoint(storage);
    assert_true(compact(storage).unlinked_groups > 0);
    assert_int_equal(put_one(storage, "behind", 5), FGW_OK);
}

static void damage(const struct fixture *fixture, const char *checkpoint)
{
    int fd = open(fixture_file(fixture, checkpoint), O_RDWR);
    assert_int_equal(pwrite(fd, "damage", 6, 300), 6);
    (void)close(fd);
}

static void check_behind(struct fixture *fixture)
{
    check_rest(fixture->storage);
    check_one(fixture->storage, "behind", 5);
}

static void the_older_checkpoint_finds_its_log(void **state)
{
    struct fixture fixture;
    (void)state;
    open_small_groups(&fixture);
    fixture_run(&fixture, one_is_not_enough);
    fixture_close(&fixture);
    damage(&fixture, "checkpoints/0000000003.car");
    fixture_drop_index(&fixture);
    fixture_open(&fixture);
    assert_int_equal(fgw_storage_recovered(fixture.storage).checkpoint, 2);
    fixture_run(&fixture, check_behind);
    fixture_deinit(&fixture);
}

static void find_both(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    (void)compact(storage);
    assert_true(storage->compact.gone_count > 0); /* what opening found is not read back yet */
    assert_int_equal(fgw_checkpoint_care(storage), FGW_OK);
    assert_true(compact(storage).unlinked_groups > 0);
    check_rest(storage);
}

static void write_both(struct fixture *fixture)
{
    give_up_only(fixture);
    cover(fixture->storage);
}

static void both_are_found_after_a_restart(void **state)
{
    struct fixture fixture;
    (void)state;
    open_small_groups(&fixture);
    fixture_run(&fixture, write_both);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, find_both);
    fixture_deinit(&fixture);
}

static void find_one(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    assert_int_equal(fgw_checkpoint_care(storage), FGW_OK); /* replaces the damaged one */
    assert_int_equal(storage->checkpoint.damaged_id, 0);
    assert_int_equal(storage->checkpoint.newest.id, 3);
    assert_true(compact(storage).unlinked_groups > 0); /* the whole one and the new one */
    check_rest(storage);
}

static void a_damaged_one_of_the_two_is_replaced(void **state)
{
    struct fixture fixture;
    (void)state;
    for (unsigned id = 1; id <= 2; id++) {
        char name[64];
        (void)snprintf(name, sizeof name, "checkpoints/%010u.car", id);
        open_small_groups(&fixture);
        fixture_run(&fixture, write_both);
        fixture_close(&fixture);
        damage(&fixture, name);
        fixture_open(&fixture);
        fixture_run(&fixture, find_one);
        fixture_deinit(&fixture);
    }
}

static void delete_everything(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    char key[16];
    unsigned files;
    put_all(storage);
    for (unsigned i = 0; i < SMALL + LARGE; i++) {
        make_key(key, i);
        assert_int_equal(delete_object(storage, key), FGW_OK);
    }
    release_all(storage);
    (void)compact(storage); /* leaves the groups that are being written */
    (void)compact(storage);
    cover(storage);
    (void)compact(storage);
    uint64_t bytes = bytes_in_groups(fixture, &files);
    assert_true(bytes < 2 * 512 * KIB); /* what is not worth being left yet */
    assert_true(files <= 2);
    assert_int_equal(put_one(storage, "again", 5), FGW_OK);
    assert_int_equal(put_one(storage, "again large", LARGE_OWNERS + 5), FGW_OK);
    check_one(storage, "again", 5);
    check_one(storage, "again large", LARGE_OWNERS + 5);
}

static void check_again(struct fixture *fixture)
{
    check_one(fixture->storage, "again", 5);
    check_one(fixture->storage, "again large", LARGE_OWNERS + 5);
}

static void groups_being_written_are_left_when_they_are_dead(void **state)
{
    (void)state;
    struct fixture fixture;
    open_small_groups(&fixture);
    fixture_run(&fixture, delete_everything);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_again);
    fixture_deinit(&fixture);
}

/* -- meanwhile ----------------------------------------------------------------------------------- */

static void read_meanwhile(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_storage_owner owner;
    struct fgw_cid root;
    struct fgw_storage_reader *reader;
    enum { SIZE = 5 * MIB + 3 };
    uint8_t *expected = fgw_xmalloc(SIZE);
    make_owner(&owner, "read", 900);
    assert_int_equal(put_large(storage, &owner, SIZE, 77, &root), FGW_OK);
    fill_large(expected, SIZE, 77);
    put_all(storage);
    delete_most(storage);
    release_all(storage);
    assert_int_equal(fgw_storage_reader_open(storage, &root, NULL, &reader), FGW_OK);
    for (uint64_t at = 0; at < SIZE;) {
        struct fgw_storage_run run;
        uint8_t bytes[4096];
        assert_int_equal(fgw_storage_reader_next(reader, at, sizeof bytes, false, &run), FGW_OK);
        (void)compact(storage);
        cover(storage);
        (void)compact(storage);
        if (run.bytes.ptr == NULL) {
            assert_int_equal(pread(run.fd, bytes, run.bytes.len, (off_t)run.file_offset),
                             (ssize_t)run.bytes.len);
            run.bytes.ptr = bytes;
        }
        assert_memory_equal(run.bytes.ptr, expected + at, run.bytes.len);
        at += at % MIB == 0 ? run.bytes.len : MIB - at % MIB;
    }
    fgw_storage_reader_close(reader);
    fgw_xfree(expected);
    check_rest(storage);
}

static void a_reader_gets_all_bytes(void **state)
{
    (void)state;
    run_fresh(read_meanwhile);
}

static void write_meanwhile(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_storage_owner owner;
    struct fgw_storage_writer *writer;
    uint8_t *leaf = fgw_xmalloc(MIB);
    struct fgw_buf node;
    fgw_buf_init(&node, 0);
    make_owner(&owner, "written", 901);
    assert_int_equal(fgw_storage_writer_new(storage, &owner, 0, 4 * MIB, &writer), FGW_OK);
    for (unsigned i = 0; i < 4; i++) {
        fill_large(leaf, MIB, 500 + i);
        struct fgw_storage_block block = make_block(fgw_bytes(leaf, MIB));
        (void)fgw_buf_append(&node, fgw_bytes(block.cid.bytes, FGW_CID_SIZE));
        assert_int_equal(fgw_storage_writer_add(writer, &block, true), FGW_OK);
        (void)compact(storage); /* each leaf fills a group that nothing holds yet */
        cover(storage);
        (void)compact(storage);
    }
    struct fgw_storage_block top = make_block(fgw_buf_bytes(&node));
    top.cid = fgw_cid_of(FGW_CODEC_DAG_PB, top.bytes);
    assert_int_equal(fgw_storage_writer_add(writer, &top, false), FGW_OK);
    assert_int_equal(fgw_storage_writer_finish(writer, &top.cid, 4 * MIB), FGW_OK);
    fgw_storage_writer_free(writer);
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    assert_int_equal(read_blob(storage, &top.cid, NULL, &body), FGW_OK);
    assert_int_equal(body.len, 4 * MIB);
    fgw_buf_deinit(&body);
    fgw_buf_deinit(&node);
    fgw_xfree(leaf);
}

static void groups_with_blocks_not_held_yet_stay(void **state)
{
    (void)state;
    run_fresh(write_meanwhile);
}

/* -- what goes wrong ----------------------------------------------------------------------------- */

static void run_out_of_space(struct fixture *fixture)
{
    static const char *const FAULTS[] = {"pwrite:1:ENOSPC", "pwrite:2:ENOSPC", "pwrite:3:EIO",
                                         "fdatasync:1:EIO", "fdatasync:2:EIO", "fsync:1:ENOSPC"};
    struct fgw_storage *storage = fixture->storage;
    put_all(storage);
    delete_most(storage);
    release_all(storage);
    for (size_t i = 0; i < FGW_COUNT_OF(FAULTS); i++) {
        struct fgw_compact_result result;
        fgw_fs_set_faults(FAULTS[i]);
        (void)!fgw_compact_pass(storage, &result);
        fgw_fs_set_faults(NULL);
        check_rest(storage);
    }
    (void)compact(storage);
    cover(storage);
    assert_true(compact(storage).unlinked_groups > 0);
    check_rest(storage);
}

static void a_full_disk_loses_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    open_small_groups(&fixture);
    fixture_run(&fixture, run_out_of_space);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_after_restart);
    fixture_deinit(&fixture);
}

static void finish_later(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    assert_true(storage->compact.gone_count > 0);
    struct fgw_compact_result result = compact(storage);
    assert_int_equal(result.unlinked_groups, 0);
    cover(storage);
    assert_true(compact(storage).unlinked_groups > 0);
    assert_int_equal(storage->compact.gone_count, 0);
    check_rest(storage);
}

static void what_was_given_up_goes_after_a_restart(void **state)
{
    (void)state;
    struct fixture fixture;
    open_small_groups(&fixture);
    fixture_run(&fixture, give_up_only);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, finish_later);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_after_restart);
    fixture_deinit(&fixture);
}

/* Flips a byte in every live block of group 1's neighbours: bytes that do not check. */
static void damage_survivor(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_buf row;
    char path[256];
    char name[FGW_GROUP_NAME_SIZE];
    put_all(storage);
    delete_most(storage);
    release_all(storage);
    fgw_buf_init(&row, 0);
    assert_int_equal(fgw_storage_get(storage, FGW_LIT("k3"), &row), FGW_OK);
    uint64_t group = fgw_get_u64le(row.ptr + 48);
    uint64_t offset = fgw_get_u64le(row.ptr + 56);
    fgw_group_name(group, name);
    (void)snprintf(path, sizeof path, "%s/groups/%s", fixture->path, name);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)offset + 300, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, (long)offset + 300, SEEK_SET), 0);
    (void)fputc(byte ^ 1, file);
    (void)fclose(file);
    (void)compact(storage);
    cover(storage);
    (void)compact(storage);
    assert_int_equal(access(path, F_OK), 0);
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    assert_int_equal(get_object(storage, "k3", &body), FGW_ERR_CORRUPT);
    char key[16];
    for (unsigned i = 11; i < SMALL; i += 8) {
        make_key(key, i);
        check_one(storage, key, i + 1);
    }
    fgw_buf_deinit(&body);
    fgw_buf_deinit(&row);
}

static void damaged_blocks_keep_their_group(void **state)
{
    (void)state;
    run_fresh(damage_survivor);
}

/* -- kill -9 ------------------------------------------------------------------------------------- */

enum { KEYS = 24, ROUNDS = 8 };

struct ack {
    uint32_t key;
    uint32_t owner; /* 0: deleted */
    uint32_t done;
};

static int ack_fd;
static unsigned next_owner;

static void tell(unsigned key, unsigned owner, bool done)
{
    struct ack ack = {key, owner, done};
    assert_int_equal(write(ack_fd, &ack, sizeof ack), sizeof ack);
}

/* Until it is killed. The index is flushed where a checkpoint would have been taken. */
static void work_until_killed(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    uint64_t random = next_owner * 2654435761u + 88172645463325252u;
    for (unsigned step = 0;; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        unsigned i = (unsigned)(random >> 33) % KEYS;
        char key[16];
        make_key(key, i);
        if ((random >> 20) % 3 == 0) {
            tell(i, 0, false);
            enum fgw_err err = delete_object(storage, key);
            assert_true(err == FGW_OK || err == FGW_ERR_NOT_FOUND);
            tell(i, 0, true);
        } else {
            unsigned owner = ++next_owner + ((random >> 24) % 4 == 0 ? LARGE_OWNERS : 0);
            tell(i, owner, false);
            assert_int_equal(put_one(storage, key, owner), FGW_OK);
            tell(i, owner, true);
        }
        if (step % 8 == 7) {
            release_all(storage);
            (void)compact(storage);
            cover(storage);
            (void)compact(storage);
        }
    }
}

static unsigned states[KEYS][2]; /* possible owners, 0: absent */

static void read_acks(int fd)
{
    struct ack ack;
    while (read(fd, &ack, sizeof ack) == sizeof ack) {
        if (ack.done) {
            states[ack.key][0] = ack.owner;
        }
        states[ack.key][1] = ack.owner;
        unsigned number = ack.owner % LARGE_OWNERS; /* an owner id is used once */
        next_owner = number > next_owner ? number : next_owner;
    }
}

static void check_states(struct fixture *fixture)
{
    for (unsigned i = 0; i < KEYS; i++) {
        struct fgw_buf row;
        char key[16];
        make_key(key, i);
        fgw_buf_init(&row, 0);
        enum fgw_err err = fgw_storage_get(fixture->storage, fgw_bytes_str(key), &row);
        unsigned owner = err == FGW_OK ? fgw_get_u32le(row.ptr) : 0;
        assert_true(owner == states[i][0] || owner == states[i][1]);
        if (owner != 0) {
            check_one(fixture->storage, key, owner);
        }
        states[i][0] = owner;
        states[i][1] = owner;
        fgw_buf_deinit(&row);
    }
    struct fgw_storage_scrub scrub = {0};
    assert_int_equal(fgw_storage_scrub(fixture->storage, &scrub), FGW_OK);
    assert_int_equal(scrub.damaged, 0);
}

/* A process of its own: threads of the index do not survive a fork. */
static pid_t start_worker(const struct fixture *fixture, int fd)
{
    char fd_text[16];
    char owner_text[16];
    (void)snprintf(fd_text, sizeof fd_text, "%d", fd);
    (void)snprintf(owner_text, sizeof owner_text, "%u", next_owner);
    pid_t child = fork();
    if (child == 0) {
        (void)execl("/proc/self/exe", "worker", fixture->path, fd_text, owner_text, (char *)NULL);
        _exit(1);
    }
    return child;
}

static void set_options(struct fixture *fixture)
{
    fixture->options.group_size_bytes = MIB;
    fixture->options.sync_off = true; /* what a killed process wrote stays without it */
}

static int work(char **argv)
{
    struct fixture fixture = {.options = {.path = argv[1], .min_free_bytes = 1}};
    uint64_t fd = 0;
    uint64_t owner = 0;
    assert_int_equal(fgw_bytes_to_u64(fgw_bytes_str(argv[2]), &fd), FGW_OK);
    assert_int_equal(fgw_bytes_to_u64(fgw_bytes_str(argv[3]), &owner), FGW_OK);
    ack_fd = (int)fd;
    next_owner = (unsigned)owner;
    set_options(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, work_until_killed);
    return 1;
}

static void kill_while_it_works(struct fixture *fixture, unsigned round)
{
    int pipe_fds[2];
    int status;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t child = start_worker(fixture, pipe_fds[1]);
    (void)close(pipe_fds[1]);
    pid_t killer = fork();
    if (killer == 0) {
        (void)close(pipe_fds[0]);
        (void)usleep(400 * 1000 + round * 97 % 11 * 80 * 1000);
        (void)kill(child, SIGKILL);
        _exit(0);
    }
    read_acks(pipe_fds[0]);
    (void)close(pipe_fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(waitpid(killer, &status, 0), killer);
}

static void kills_lose_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    set_options(&fixture);
    for (unsigned round = 0; round < ROUNDS; round++) {
        kill_while_it_works(&fixture, round);
        fixture_open(&fixture);
        assert_int_equal(fgw_storage_recovered(fixture.storage).damaged_groups, 0);
        fixture_run(&fixture, check_states);
        fixture_close(&fixture);
    }
    fixture_deinit(&fixture);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[0], "worker") == 0) {
        return work(argv);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deleted_bytes_are_given_back),
        cmocka_unit_test(the_older_checkpoint_finds_its_log),
        cmocka_unit_test(both_are_found_after_a_restart),
        cmocka_unit_test(a_damaged_one_of_the_two_is_replaced),
        cmocka_unit_test(groups_being_written_are_left_when_they_are_dead),
        cmocka_unit_test(a_reader_gets_all_bytes),
        cmocka_unit_test(groups_with_blocks_not_held_yet_stay),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(what_was_given_up_goes_after_a_restart),
        cmocka_unit_test(damaged_blocks_keep_their_group),
        cmocka_unit_test(kills_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
