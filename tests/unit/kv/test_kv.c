/* test_kv.c: the store's contract: batches, cache-only reads, bounds, snapshots, recovery after a
 * process that died, damage, failed writes. Each test has a directory of its own. */
#include "cmocka_all.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/rng.h"
#include "kv/kv.h"

static bool may_mount;   /* root, and in a mount name space of our own */
static const char *self; /* path of this program: children are new processes, as threads do not
                          * survive fork */

struct fixture {
    char dir[64];
    char path[80];
    struct fgw_kv *kv;
    struct fgw_buf value;
};

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void open_store(struct fixture *f)
{
    struct fgw_error error;
    fgw_error_init(&error);
    if (fgw_kv_open(f->path, NULL, &f->kv, &error) != FGW_OK) {
        fail_msg("open: %s", fgw_error_message(&error));
    }
}

static void close_store(struct fixture *f)
{
    fgw_kv_close(f->kv);
    f->kv = NULL;
}

static int set_up(void **state)
{
    struct fixture *f = fgw_xcalloc(1, sizeof *f);
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(f->dir, sizeof f->dir, "%s/fgw-kv-XXXXXX", tmp != NULL ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "%s/meta", f->dir);
    fgw_buf_init(&f->value, 1 << 20);
    open_store(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    close_store(f);
    fgw_buf_deinit(&f->value);
    (void)nftw(f->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    fgw_xfree(f);
    return 0;
}

static void put(struct fixture *f, enum fgw_kv_family family, const char *key, const char *value)
{
    struct fgw_kv_batch *batch = fgw_kv_batch_new(f->kv);
    fgw_kv_batch_put(batch, family, fgw_bytes_str(key), fgw_bytes_str(value));
    assert_int_equal(fgw_kv_batch_write(batch, false, NULL), FGW_OK);
    fgw_kv_batch_free(batch);
}

static enum fgw_err get(struct fixture *f, enum fgw_kv_family family, const char *key)
{
    return fgw_kv_get(f->kv, family, fgw_bytes_str(key), false, &f->value);
}

static void assert_value(struct fixture *f, enum fgw_kv_family family, const char *key,
                         const char *value)
{
    assert_int_equal(get(f, family, key), FGW_OK);
    assert_true(fgw_bytes_eq_str(fgw_buf_bytes(&f->value), value));
}

/* -- reading and writing --------------------------------------------------------------------- */

static void put_get_delete(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(get(f, FGW_KV_NAMES, "a"), FGW_ERR_NOT_FOUND);
    put(f, FGW_KV_NAMES, "a", "1");
    assert_value(f, FGW_KV_NAMES, "a", "1");
    assert_int_equal(get(f, FGW_KV_BLOCKS, "a"), FGW_ERR_NOT_FOUND);
    put(f, FGW_KV_NAMES, "a", "");
    assert_value(f, FGW_KV_NAMES, "a", "");
    struct fgw_kv_batch *batch = fgw_kv_batch_new(f->kv);
    fgw_kv_batch_put(batch, FGW_KV_NAMES, fgw_bytes("\0\xff\0", 3), fgw_bytes("\0x", 2));
    fgw_kv_batch_delete(batch, FGW_KV_NAMES, FGW_LIT("a"));
    assert_int_equal(fgw_kv_batch_count(batch), 2);
    assert_int_equal(fgw_kv_batch_write(batch, true, NULL), FGW_OK);
    assert_int_equal(get(f, FGW_KV_NAMES, "a"), FGW_ERR_NOT_FOUND);
    assert_int_equal(fgw_kv_get(f->kv, FGW_KV_NAMES, fgw_bytes("\0\xff\0", 3), false, &f->value),
                     FGW_OK);
    assert_true(fgw_bytes_eq(fgw_buf_bytes(&f->value), fgw_bytes("\0x", 2)));
    /* the later operation on a key wins; a cleared batch does nothing */
    fgw_kv_batch_clear(batch);
    assert_int_equal(fgw_kv_batch_count(batch), 0);
    fgw_kv_batch_put(batch, FGW_KV_BLOCKS, FGW_LIT("k"), FGW_LIT("1"));
    fgw_kv_batch_delete(batch, FGW_KV_BLOCKS, FGW_LIT("k"));
    fgw_kv_batch_put(batch, FGW_KV_BLOCKS, FGW_LIT("k"), FGW_LIT("2"));
    assert_true(fgw_kv_batch_bytes(batch) > 6);
    assert_int_equal(fgw_kv_batch_write(batch, false, NULL), FGW_OK);
    assert_value(f, FGW_KV_BLOCKS, "k", "2");
    fgw_kv_batch_free(batch);
    fgw_kv_batch_free(NULL);
}

static void failed_get_leaves_the_buffer(void **state)
{
    struct fixture *f = *state;
    put(f, FGW_KV_NAMES, "long", "0123456789");
    struct fgw_buf small;
    fgw_buf_init(&small, 4);
    assert_int_equal(fgw_buf_append_str(&small, "old"), FGW_OK);
    assert_int_equal(fgw_kv_get(f->kv, FGW_KV_NAMES, FGW_LIT("long"), false, &small),
                     FGW_ERR_TOO_LARGE);
    assert_int_equal(fgw_kv_get(f->kv, FGW_KV_NAMES, FGW_LIT("none"), false, &small),
                     FGW_ERR_NOT_FOUND);
    assert_true(fgw_bytes_eq_str(fgw_buf_bytes(&small), "old"));
    fgw_buf_deinit(&small);
}

/* The memtable and the block cache answer; what is only on disk is AGAIN, never a wait and never
 * NOT_FOUND. */
static void cache_only_says_again(void **state)
{
    struct fixture *f = *state;
    put(f, FGW_KV_NAMES, "a", "1");
    assert_int_equal(fgw_kv_get(f->kv, FGW_KV_NAMES, FGW_LIT("a"), true, &f->value), FGW_OK);
    assert_int_equal(fgw_kv_get(f->kv, FGW_KV_NAMES, FGW_LIT("b"), true, &f->value),
                     FGW_ERR_NOT_FOUND);
    assert_int_equal(fgw_kv_flush(f->kv, NULL), FGW_OK);
    close_store(f);
    open_store(f);
    assert_int_equal(fgw_kv_get(f->kv, FGW_KV_NAMES, FGW_LIT("a"), true, &f->value), FGW_ERR_AGAIN);
    struct fgw_kv_scan scan = {.family = FGW_KV_NAMES, .cache_only = true};
    struct fgw_kv_iter *iter = fgw_kv_iter_scan(f->kv, &scan);
    fgw_kv_iter_seek_first(iter);
    assert_false(fgw_kv_iter_valid(iter));
    assert_int_equal(fgw_kv_iter_status(iter, NULL), FGW_ERR_AGAIN);
    fgw_kv_iter_free(iter);
    assert_value(f, FGW_KV_NAMES, "a", "1"); /* fills the cache */
    assert_int_equal(fgw_kv_get(f->kv, FGW_KV_NAMES, FGW_LIT("a"), true, &f->value), FGW_OK);
    assert_int_equal(fgw_kv_get(f->kv, FGW_KV_NAMES, FGW_LIT("zz"), true, &f->value),
                     FGW_ERR_NOT_FOUND);
    iter = fgw_kv_iter_scan(f->kv, &scan);
    fgw_kv_iter_seek_first(iter);
    assert_true(fgw_kv_iter_valid(iter));
    fgw_kv_iter_free(iter);
}

/* -- order ----------------------------------------------------------------------------------- */

static void assert_at(struct fgw_kv_iter *iter, const char *key)
{
    assert_int_equal(fgw_kv_iter_status(iter, NULL), FGW_OK);
    if (key == NULL) {
        assert_false(fgw_kv_iter_valid(iter));
        return;
    }
    assert_true(fgw_kv_iter_valid(iter));
    assert_true(fgw_bytes_eq_str(fgw_kv_iter_key(iter), key));
    assert_true(fgw_bytes_eq_str(fgw_kv_iter_value(iter), key + 1));
}

static void walk_between_bounds(struct fixture *f)
{
    /* the bounds are copied: the caller's may go */
    char lower[] = "b2";
    char upper[] = "d1";
    struct fgw_kv_iter *iter =
        fgw_kv_iter_new(f->kv, FGW_KV_NAMES, fgw_bytes_str(lower), fgw_bytes_str(upper), NULL);
    memset(lower, 'z', 2);
    memset(upper, 'z', 2);
    static const char *const INSIDE[] = {"b2", "b3", "c1", "c2", "c3"};
    size_t count = FGW_COUNT_OF(INSIDE);
    fgw_kv_iter_seek_first(iter);
    for (size_t i = 0; i < count; i++) {
        assert_at(iter, INSIDE[i]);
        fgw_kv_iter_next(iter);
    }
    assert_at(iter, NULL);
    fgw_kv_iter_seek_last(iter);
    for (size_t i = count; i > 0; i--) {
        assert_at(iter, INSIDE[i - 1]);
        fgw_kv_iter_prev(iter);
    }
    assert_at(iter, NULL);
    fgw_kv_iter_seek(iter, FGW_LIT("a"));
    assert_at(iter, "b2");
    fgw_kv_iter_seek(iter, FGW_LIT("b4"));
    assert_at(iter, "c1");
    fgw_kv_iter_seek(iter, FGW_LIT("d1"));
    assert_at(iter, NULL);
    fgw_kv_iter_seek_for_prev(iter, FGW_LIT("z"));
    assert_at(iter, "c3");
    fgw_kv_iter_seek_for_prev(iter, FGW_LIT("c1"));
    assert_at(iter, "c1");
    fgw_kv_iter_seek_for_prev(iter, FGW_LIT("b1"));
    assert_at(iter, NULL);
    fgw_kv_iter_free(iter);
}

static void bounds_hold(void **state)
{
    struct fixture *f = *state;
    static const char *const KEYS[] = {"a1", "a2", "a3", "b1", "b2", "b3",
                                       "c1", "c2", "c3", "d1", "d2", "d3"};
    for (size_t i = 0; i < FGW_COUNT_OF(KEYS); i++) {
        put(f, FGW_KV_NAMES, KEYS[i], KEYS[i] + 1);
        put(f, FGW_KV_BLOCKS, "c1x", "other family");
    }
    walk_between_bounds(f);
    assert_int_equal(fgw_kv_flush(f->kv, NULL), FGW_OK);
    walk_between_bounds(f);
    struct fgw_kv_iter *iter = fgw_kv_iter_new(f->kv, FGW_KV_NAMES, FGW_LIT(""), FGW_LIT(""), NULL);
    fgw_kv_iter_seek_first(iter);
    assert_at(iter, "a1");
    fgw_kv_iter_seek_last(iter);
    assert_at(iter, "d3");
    fgw_kv_iter_free(iter);
    fgw_kv_iter_free(NULL);
}

static void snapshots_stand_still(void **state)
{
    struct fixture *f = *state;
    put(f, FGW_KV_NAMES, "a1", "1");
    struct fgw_kv_snapshot *snapshot = fgw_kv_snapshot_new(f->kv);
    put(f, FGW_KV_NAMES, "a1", "2");
    put(f, FGW_KV_NAMES, "a2", "2");
    assert_int_equal(fgw_kv_flush(f->kv, NULL), FGW_OK);
    struct fgw_kv_iter *iter =
        fgw_kv_iter_new(f->kv, FGW_KV_NAMES, FGW_LIT("a"), FGW_LIT("b"), snapshot);
    fgw_kv_iter_seek_first(iter);
    assert_at(iter, "a1");
    fgw_kv_iter_next(iter);
    assert_at(iter, NULL);
    fgw_kv_iter_free(iter);
    fgw_kv_snapshot_free(snapshot);
    fgw_kv_snapshot_free(NULL);
    assert_value(f, FGW_KV_NAMES, "a1", "2");
}

/* -- recovery -------------------------------------------------------------------------------- */

enum { CHILD_BATCHES = 500 };

/* The child: batches over both families, not synced, then death without a close. */
static int child_main(const char *path)
{
    struct fgw_kv *kv;
    if (fgw_kv_open(path, NULL, &kv, NULL) != FGW_OK) {
        return 2;
    }
    struct fgw_kv_batch *batch = fgw_kv_batch_new(kv);
    for (int i = 0; i < CHILD_BATCHES; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%06d", i);
        fgw_kv_batch_clear(batch);
        fgw_kv_batch_put(batch, FGW_KV_NAMES, fgw_bytes_str(key), FGW_LIT("name"));
        fgw_kv_batch_put(batch, FGW_KV_BLOCKS, fgw_bytes_str(key), FGW_LIT("block"));
        fgw_kv_batch_put(batch, FGW_KV_NAMES, FGW_LIT("last"), fgw_bytes_str(key));
        if (fgw_kv_batch_write(batch, false, NULL) != FGW_OK) {
            return 3;
        }
        /* one family's memtable goes to a table on the way */
        if (i == CHILD_BATCHES / 3 && fgw_kv_flush(kv, NULL) != FGW_OK) {
            return 4;
        }
    }
    (void)kill(getpid(), SIGKILL);
    return 5;
}

static void run_child(struct fixture *f)
{
    close_store(f);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execl(self, self, "--child", f->path, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* How many of the child's batches are there; each must be whole, none may be missing before a
 * later one. */
static int count_batches(struct fixture *f)
{
    int count = 0;
    bool ended = false;
    for (int i = 0; i < CHILD_BATCHES; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%06d", i);
        enum fgw_err name = get(f, FGW_KV_NAMES, key);
        assert_int_equal(get(f, FGW_KV_BLOCKS, key), name);
        ended = ended || name == FGW_ERR_NOT_FOUND;
        assert_int_equal(name, ended ? FGW_ERR_NOT_FOUND : FGW_OK);
        count += name == FGW_OK;
    }
    char last[16];
    (void)snprintf(last, sizeof last, "%06d", count - 1);
    assert_value(f, FGW_KV_NAMES, "last", last);
    return count;
}

static void killed_process_loses_nothing(void **state)
{
    struct fixture *f = *state;
    run_child(f);
    open_store(f);
    assert_int_equal(count_batches(f), CHILD_BATCHES);
}

/* Path of the newest file in the store whose name ends so. */
static void newest_file(const struct fixture *f, const char *ending, char out[160])
{
    DIR *dir = opendir(f->path);
    assert_non_null(dir);
    unsigned long newest = 0;
    out[0] = '\0';
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (fgw_bytes_ends_with(fgw_bytes_str(entry->d_name), fgw_bytes_str(ending)) &&
            strtoul(entry->d_name, NULL, 10) >= newest) {
            newest = strtoul(entry->d_name, NULL, 10);
            (void)snprintf(out, 160, "%s/%.40s", f->path, entry->d_name);
        }
    }
    (void)closedir(dir);
    assert_true(out[0] != '\0');
}

/* A WAL that lost its end, as after a power cut: a prefix of whole batches. */
static void torn_wal_keeps_a_prefix(void **state)
{
    struct fixture *f = *state;
    run_child(f);
    char wal[160];
    newest_file(f, ".log", wal);
    struct stat st;
    assert_int_equal(stat(wal, &st), 0);
    uint64_t cut = 1 + fgw_rng_below((uint64_t)st.st_size / 2);
    assert_int_equal(truncate(wal, st.st_size - (off_t)cut), 0);
    open_store(f);
    int after = count_batches(f);
    assert_true(after < CHILD_BATCHES && after > CHILD_BATCHES / 3);
}

static void flip_byte(const char *path, off_t at)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    uint8_t byte;
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    (void)close(fd);
}

static void damaged_table_is_corrupt(void **state)
{
    struct fixture *f = *state;
    put(f, FGW_KV_NAMES, "a", "some value that is long enough to be hit");
    assert_int_equal(fgw_kv_flush(f->kv, NULL), FGW_OK);
    close_store(f);
    char table[160];
    newest_file(f, ".sst", table);
    flip_byte(table, 10);
    open_store(f);
    assert_int_equal(get(f, FGW_KV_NAMES, "a"), FGW_ERR_CORRUPT);
    struct fgw_error error;
    fgw_error_init(&error);
    struct fgw_kv_iter *iter = fgw_kv_iter_new(f->kv, FGW_KV_NAMES, FGW_LIT(""), FGW_LIT(""), NULL);
    fgw_kv_iter_seek_first(iter);
    assert_false(fgw_kv_iter_valid(iter));
    assert_int_equal(fgw_kv_iter_status(iter, &error), FGW_ERR_CORRUPT);
    assert_non_null(strstr(fgw_error_message(&error), "checksum mismatch"));
    fgw_kv_iter_free(iter);
}

static void open_failures(void **state)
{
    struct fixture *f = *state;
    struct fgw_kv *other = NULL;
    struct fgw_error error;
    fgw_error_init(&error);
    assert_int_equal(fgw_kv_open(f->path, NULL, &other, &error), FGW_ERR_IN_USE);
    char path[100];
    (void)snprintf(path, sizeof path, "%s/none", f->dir);
    struct fgw_kv_options existing = {.must_exist = true};
    assert_int_equal(fgw_kv_open(path, &existing, &other, &error), FGW_ERR_NOT_FOUND);
    /* a table that the manifest names is gone */
    put(f, FGW_KV_NAMES, "a", "1");
    assert_int_equal(fgw_kv_flush(f->kv, NULL), FGW_OK);
    close_store(f);
    char file[160];
    newest_file(f, ".sst", file);
    char aside[100];
    (void)snprintf(aside, sizeof aside, "%s/aside", f->dir);
    assert_int_equal(rename(file, aside), 0);
    assert_int_equal(fgw_kv_open(f->path, NULL, &other, &error), FGW_ERR_CORRUPT);
    assert_int_equal(rename(aside, file), 0);
    (void)snprintf(file, sizeof file, "%s/CURRENT", f->path);
    flip_byte(file, 3);
    assert_int_equal(fgw_kv_open(f->path, NULL, &other, &error), FGW_ERR_CORRUPT);
    assert_null(other);
    flip_byte(file, 3);
    open_store(f);
    assert_value(f, FGW_KV_NAMES, "a", "1");
}

/* -- failed writes --------------------------------------------------------------------------- */

static enum fgw_err put_noise(struct fixture *f, size_t len, struct fgw_error *error)
{
    uint8_t *noise = fgw_xmalloc(len);
    fgw_rng_fill(noise, len);
    struct fgw_kv_batch *batch = fgw_kv_batch_new(f->kv);
    fgw_kv_batch_put(batch, FGW_KV_BLOCKS, fgw_bytes(noise, 16), fgw_bytes(noise, len));
    enum fgw_err err = fgw_kv_batch_write(batch, false, error);
    fgw_kv_batch_free(batch);
    fgw_xfree(noise);
    return err;
}

static void assert_read_only_never(struct fixture *f)
{
    assert_value(f, FGW_KV_NAMES, "before", "1");
    assert_int_equal(put_noise(f, 100, NULL), FGW_OK);
    assert_int_equal(fgw_kv_flush(f->kv, NULL), FGW_OK);
    assert_int_equal(fgw_kv_writable(f->kv, NULL), FGW_OK);
}

static void assert_read_only_until_reopened(struct fixture *f)
{
    struct fgw_error error;
    fgw_error_init(&error);
    assert_int_equal(put_noise(f, 100, &error), FGW_ERR_READ_ONLY);
    assert_int_equal(fgw_kv_sync_wal(f->kv, NULL), FGW_ERR_READ_ONLY);
    assert_int_equal(fgw_kv_flush(f->kv, NULL), FGW_ERR_READ_ONLY);
    assert_int_equal(fgw_kv_writable(f->kv, &error), FGW_ERR_READ_ONLY);
    assert_value(f, FGW_KV_NAMES, "before", "1");
    close_store(f);
    open_store(f);
    assert_read_only_never(f);
}

static void failed_write_makes_read_only(void **state)
{
    struct fixture *f = *state;
    put(f, FGW_KV_NAMES, "before", "1");
    assert_int_equal(fgw_kv_writable(f->kv, NULL), FGW_OK);
    (void)signal(SIGXFSZ, SIG_IGN);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit tight = {.rlim_cur = 64 * 1024, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = put_noise(f, 200 * 1024, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(err, FGW_ERR_IO);
    assert_non_null(strstr(fgw_error_message(&error), "RocksDB: IO error"));
    assert_read_only_until_reopened(f);
}

static void open_small(struct fixture *f, const char *mount_point, size_t write_buffer_bytes)
{
    (void)snprintf(f->path, sizeof f->path, "%.60s/meta", mount_point);
    struct fgw_kv_options options = {.write_buffer_bytes = write_buffer_bytes};
    assert_int_equal(fgw_kv_open(f->path, &options, &f->kv, NULL), FGW_OK);
}

/* Fills the disk until a write fails, opens and closes on the full disk, frees space, goes on. With
 * small write buffers tables and manifest meet the full disk too, not only the WAL. RocksDB must
 * come through without an abort of the process. */
static void fill_and_free(struct fixture *f, const char *mount_point, size_t write_buffer_bytes)
{
    assert_int_equal(mount("tmpfs", mount_point, "tmpfs", 0, "size=6m"), 0);
    open_small(f, mount_point, write_buffer_bytes);
    put(f, FGW_KV_NAMES, "before", "1");
    enum fgw_err err = FGW_OK;
    for (int i = 0; err == FGW_OK && i < 2000; i++) {
        err = put_noise(f, 16 * 1024, NULL);
    }
    assert_int_equal(err, FGW_ERR_NOSPACE);
    struct fgw_error error;
    fgw_error_init(&error);
    assert_int_equal(fgw_kv_writable(f->kv, &error), FGW_ERR_READ_ONLY);
    assert_value(f, FGW_KV_NAMES, "before", "1");
    struct fgw_kv_iter *iter =
        fgw_kv_iter_new(f->kv, FGW_KV_NAMES, fgw_bytes(NULL, 0), fgw_bytes(NULL, 0), NULL);
    assert_int_equal(fgw_kv_reopen(f->kv, NULL), FGW_ERR_AGAIN);
    fgw_kv_iter_free(iter);
    err = fgw_kv_reopen(f->kv, NULL);
    assert_true(err == FGW_OK || err == FGW_ERR_NOSPACE);
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    assert_int_equal(fgw_kv_get(f->kv, FGW_KV_NAMES, FGW_LIT("before"), false, &value),
                     err == FGW_OK ? FGW_OK : FGW_ERR_UNAVAILABLE);
    fgw_buf_deinit(&value);
    close_store(f);
    for (int i = 0; i < 3; i++) {
        struct fgw_kv *again = NULL;
        err = fgw_kv_open(f->path, NULL, &again, NULL);
        assert_true(err == FGW_OK || err == FGW_ERR_NOSPACE);
        fgw_kv_close(again);
    }
    assert_int_equal(mount("tmpfs", mount_point, "tmpfs", MS_REMOUNT, "size=64m"), 0);
    open_small(f, mount_point, write_buffer_bytes);
    assert_read_only_never(f);
    assert_int_equal(fgw_kv_reopen(f->kv, NULL), FGW_OK);
    assert_value(f, FGW_KV_NAMES, "before", "1");
    assert_read_only_never(f);
    close_store(f);
    assert_int_equal(umount(mount_point), 0);
}

static void full_disk_is_nospace(void **state)
{
    struct fixture *f = *state;
    static const size_t BUFFERS[] = {0, 64 * 1024, 256 * 1024, 1024 * 1024};
    close_store(f);
    char own_path[sizeof f->path];
    memcpy(own_path, f->path, sizeof own_path);
    char mount_point[100];
    (void)snprintf(mount_point, sizeof mount_point, "%s/small", f->dir);
    assert_int_equal(mkdir(mount_point, 0700), 0);
    if (may_mount) {
        for (size_t i = 0; i < FGW_COUNT_OF(BUFFERS); i++) {
            fill_and_free(f, mount_point, BUFFERS[i]);
        }
    }
    memcpy(f->path, own_path, sizeof own_path);
    open_store(f);
    if (!may_mount) {
        skip(); /* needs root */
    }
}

/* Space comes back while the store is still open: RocksDB tries to recover by itself behind the
 * latch, which must stay closed, and it must not abort the process. */
static void freed_space_does_not_reopen(void **state)
{
    struct fixture *f = *state;
    close_store(f);
    char own_path[sizeof f->path];
    memcpy(own_path, f->path, sizeof own_path);
    char mount_point[100];
    (void)snprintf(mount_point, sizeof mount_point, "%s/small", f->dir);
    assert_int_equal(mkdir(mount_point, 0700), 0);
    if (may_mount) {
        assert_int_equal(mount("tmpfs", mount_point, "tmpfs", 0, "size=6m"), 0);
        open_small(f, mount_point, 0);
        put(f, FGW_KV_NAMES, "before", "1");
        enum fgw_err err = FGW_OK;
        for (int i = 0; err == FGW_OK && i < 100; i++) {
            err = put_noise(f, 256 * 1024, NULL);
        }
        assert_int_equal(err, FGW_ERR_NOSPACE);
        assert_int_equal(mount("tmpfs", mount_point, "tmpfs", MS_REMOUNT, "size=64m"), 0);
        assert_read_only_until_reopened(f);
        close_store(f);
        assert_int_equal(umount(mount_point), 0);
    }
    memcpy(f->path, own_path, sizeof own_path);
    open_store(f);
    if (!may_mount) {
        skip(); /* needs root */
    }
}

/* -- figures --------------------------------------------------------------------------------- */

static void figures_move(void **state)
{
    struct fixture *f = *state;
    struct fgw_kv_stats empty;
    fgw_kv_stats(f->kv, &empty);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(put_noise(f, 10 * 1024, NULL), FGW_OK);
    }
    struct fgw_kv_stats filled;
    fgw_kv_stats(f->kv, &filled);
    assert_true(filled.memtable_bytes > empty.memtable_bytes + 1000 * 1024);
    assert_true(filled.keys[FGW_KV_BLOCKS] == 100 && filled.keys[FGW_KV_NAMES] == 0);
    assert_int_equal(fgw_kv_flush(f->kv, NULL), FGW_OK);
    struct fgw_kv_stats flushed;
    fgw_kv_stats(f->kv, &flushed);
    assert_true(flushed.memtable_bytes < filled.memtable_bytes);
    assert_true(flushed.live_table_bytes > 1000 * 1024);
    assert_true(flushed.background_errors == 0 && !flushed.write_stopped);
    assert_true(flushed.cache_capacity_bytes == 32 << 20);
    uint64_t all = 0;
    uint64_t none = 1;
    assert_int_equal(
        fgw_kv_approximate_size(f->kv, FGW_KV_BLOCKS, FGW_LIT("\x00"), FGW_LIT("\xff\xff"), &all),
        FGW_OK);
    assert_int_equal(
        fgw_kv_approximate_size(f->kv, FGW_KV_NAMES, FGW_LIT("\x00"), FGW_LIT("\xff\xff"), &none),
        FGW_OK);
    assert_true(all > 1000 * 1024 && none == 0);
    assert_int_equal(fgw_kv_property(f->kv, FGW_KV_NAMES, "rocksdb.stats", &f->value), FGW_OK);
    assert_true(f->value.len > 100);
    assert_int_equal(fgw_kv_property(f->kv, FGW_KV_NAMES, "rocksdb.nonsense", &f->value),
                     FGW_ERR_NOT_FOUND);
}

/* Rows 0..count-1, `times` each, with values that fill a memtable of some megabytes. */
static void overwrite(struct fixture *f, unsigned count, unsigned times)
{
    char key[16];
    uint8_t value[200] = {0};
    struct fgw_kv_batch *batch = fgw_kv_batch_new(f->kv);
    for (unsigned i = 0; i < count * times; i++) {
        (void)snprintf(key, sizeof key, "k%05u", i % count);
        fgw_kv_batch_put(batch, FGW_KV_NAMES, fgw_bytes_str(key), fgw_bytes(value, sizeof value));
    }
    assert_int_equal(fgw_kv_batch_write(batch, false, NULL), FGW_OK);
    fgw_kv_batch_free(batch);
}

static unsigned walk_all(struct fixture *f, bool tidy)
{
    struct fgw_kv_scan scan = {.family = FGW_KV_NAMES, .tidy = tidy};
    struct fgw_kv_iter *iter = fgw_kv_iter_scan(f->kv, &scan);
    unsigned count = 0;
    for (fgw_kv_iter_seek_first(iter); fgw_kv_iter_valid(iter); fgw_kv_iter_next(iter)) {
        count++;
    }
    assert_int_equal(fgw_kv_iter_status(iter, NULL), FGW_OK);
    fgw_kv_iter_free(iter);
    return count;
}

static uint64_t table_bytes_within(struct fixture *f, unsigned ms)
{
    struct fgw_kv_stats stats;
    uint64_t until_ms = fgw_clock_boot_ms() + ms;
    do {
        fgw_kv_stats(f->kv, &stats);
        (void)usleep(5000);
    } while (stats.live_table_bytes == 0 && fgw_clock_boot_ms() < until_ms);
    return stats.live_table_bytes;
}

static void walks_over_hidden_rows_start_a_flush(void **state)
{
    struct fixture *f = *state;
    overwrite(f, 6000, 1);
    assert_int_equal(walk_all(f, true), 6000); /* nothing is hidden */
    overwrite(f, 1000, 10);
    assert_int_equal(walk_all(f, false), 6000); /* nobody asked */
    assert_int_equal(table_bytes_within(f, 50), 0);
    overwrite(f, 1000, 10);
    assert_int_equal(walk_all(f, true), 6000);
    assert_true(table_bytes_within(f, 20000) > 0);
    assert_int_equal(walk_all(f, true), 6000);
}

static void deleted_rows_are_compacted_away(void **state)
{
    struct fixture *f = *state;
    char key[16];
    overwrite(f, 6000, 1);
    assert_int_equal(fgw_kv_flush(f->kv, NULL), FGW_OK);
    struct fgw_kv_batch *batch = fgw_kv_batch_new(f->kv);
    for (unsigned i = 0; i < 6000; i++) {
        (void)snprintf(key, sizeof key, "k%05u", i);
        fgw_kv_batch_delete(batch, FGW_KV_NAMES, fgw_bytes_str(key));
    }
    assert_int_equal(fgw_kv_batch_write(batch, false, NULL), FGW_OK);
    fgw_kv_batch_free(batch);
    assert_int_equal(fgw_kv_flush(f->kv, NULL), FGW_OK);
    struct fgw_kv_stats stats;
    uint64_t until_ms = fgw_clock_boot_ms() + 20000;
    do {
        fgw_kv_stats(f->kv, &stats);
        (void)usleep(5000);
    } while (stats.live_table_bytes > 0 && fgw_clock_boot_ms() < until_ms);
    assert_int_equal(stats.live_table_bytes, 0);
    assert_int_equal(walk_all(f, false), 0);
}

int main(int argc, char **argv)
{
    self = "/proc/self/exe";
    if (argc == 3 && strcmp(argv[1], "--child") == 0) {
        return child_main(argv[2]);
    }
    /* before there are threads; the mounts go with the process, whatever becomes of it */
    may_mount = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
#define KV_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        KV_TEST(put_get_delete),
        KV_TEST(failed_get_leaves_the_buffer),
        KV_TEST(cache_only_says_again),
        KV_TEST(bounds_hold),
        KV_TEST(snapshots_stand_still),
        KV_TEST(killed_process_loses_nothing),
        KV_TEST(torn_wal_keeps_a_prefix),
        KV_TEST(damaged_table_is_corrupt),
        KV_TEST(open_failures),
        KV_TEST(failed_write_makes_read_only),
        KV_TEST(full_disk_is_nospace),
        KV_TEST(freed_space_does_not_reopen),
        KV_TEST(figures_move),
        KV_TEST(walks_over_hidden_rows_start_a_flush),
        KV_TEST(deleted_rows_are_compacted_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
