/* workload.c: what the power-loss recorder watches, and what looks at the disks it makes up.
 *
 * fgw-fault-workload run DIR ACKS SEED STEPS   random operations of several fibers on keys of their
 *     own; each writes "start KEY STATE" before and "done KEY STATE" after an operation to ACKS
 * fgw-fault-workload dump DIR                  opens DIR and prints "KEY STATE" for every key; then
 *     writes one more object and finds it after closing and opening again
 * A state is "absent" or SIZE:CRC32C of the body.
 */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc.h"
#include "kv/kv.h"
#include "storage/storage_internal.h"

enum { FIBERS = 3, KEYS = 5, KEY_SIZE = 24 };

static enum fgw_err always_live(void *context, const struct fgw_storage_owner *owner,
                                const struct fgw_cid *root, enum fgw_storage_liveness *out_live)
{
    (void)context;
    (void)owner;
    (void)root;
    *out_live = FGW_STORAGE_HERE;
    return FGW_OK;
}

static void open_at(struct fixture *fixture, const char *path)
{
    *fixture = (struct fixture){.options = {.path = path,
                                            .min_free_bytes = 1,
                                            .group_size_bytes = 512 * 1024,
                                            .dead_percent = 30,
                                            .checkpoint_bytes = 16 * 1024}};
    enum fgw_err err = fixture_try_open(fixture);
    if (err != FGW_OK) {
        (void)fprintf(stderr, "open: %s: %s\n", fgw_err_name(err),
                      fgw_error_message(&fixture->error));
        exit(1);
    }
}

static void make_key(char out[KEY_SIZE], unsigned fiber, unsigned key)
{
    (void)snprintf(out, KEY_SIZE, "fiber%u/key%u", fiber, key);
}

/* -- run ----------------------------------------------------------------------------------------- */

struct walker {
    struct fixture *fixture;
    struct fgw_wait *wait;
    uint64_t random;
    unsigned number;
    unsigned steps;
    int acks;
};

static unsigned next_owner;

static uint64_t draw(struct walker *walker, uint64_t below)
{
    walker->random ^= walker->random << 13;
    walker->random ^= walker->random >> 7;
    walker->random ^= walker->random << 17;
    return (walker->random >> 11) % below;
}

static void mark(const struct walker *walker, const char *what, const char *key, const char *state)
{
    char line[128];
    int len = snprintf(line, sizeof line, "%s %s %s\n", what, key, state);
    if (write(walker->acks, line, (size_t)len) != len) {
        exit(2);
    }
}

static void check(enum fgw_err err, const char *what)
{
    if (err != FGW_OK) {
        (void)fprintf(stderr, "%s: %s\n", what, fgw_err_name(err));
        exit(2);
    }
}

static void put_one(struct walker *walker, const char *key)
{
    static const size_t SIZES[] = {0, 10, 700, 4096, 5000, 30000, 262144, 1048577, 1400000};
    char state[64];
    size_t size = SIZES[draw(walker, 100) < 85 ? draw(walker, 6) : 6 + draw(walker, 3)];
    unsigned seed = (unsigned)draw(walker, 5);
    uint8_t *body = fgw_xmalloc(size + 1);
    fill_large(body, size, seed);
    (void)snprintf(state, sizeof state, "%zu:%08x", size, fgw_crc32c(0, fgw_bytes(body, size)));
    unsigned owner = ++next_owner;
    mark(walker, "start", key, state);
    if (size > FGW_STORAGE_BLOCK_MAX) {
        check(put_large_object(walker->fixture->storage, key, owner, size, seed), "put large");
    } else {
        struct put put = {.key = key, .body = fgw_bytes(body, size), .owner_number = owner};
        check(put_object(walker->fixture->storage, &put), "put");
    }
    mark(walker, "done", key, state);
    fgw_xfree(body);
}

static void delete_one(struct walker *walker, const char *key)
{
    mark(walker, "start", key, "absent");
    enum fgw_err err = delete_object(walker->fixture->storage, key);
    check(err == FGW_ERR_NOT_FOUND ? FGW_OK : err, "delete");
    mark(walker, "done", key, "absent");
}

static void flush_index(void *arg)
{
    check(fgw_kv_flush(arg, NULL), "flush");
}

static void walk(void *arg)
{
    struct walker *walker = arg;
    for (unsigned i = 0; i < walker->steps; i++) {
        char key[KEY_SIZE];
        make_key(key, walker->number, (unsigned)draw(walker, KEYS));
        uint64_t kind = draw(walker, 100);
        if (kind < 70) {
            put_one(walker, key);
        } else if (kind < 92) {
            delete_one(walker, key);
        } else if (kind < 94) {
            check(fgw_storage_checkpoint(walker->fixture->storage, NULL), "checkpoint");
        } else if (kind < 98) {
            fgw_care_kick(walker->fixture->storage->care, FGW_CARE_RELEASE);
            fgw_care_kick(walker->fixture->storage->care, FGW_CARE_COMPACT);
        } else if (kind < 99) {
            fgw_pool_run(fgw_storage_pool(walker->fixture->storage), flush_index,
                         fgw_storage_kv(walker->fixture->storage));
        } else {
            fgw_fiber_sleep_ms(300);
        }
    }
    fgw_wait_signal(walker->wait);
}

struct run {
    struct fixture *fixture;
    const char *acks;
    uint64_t seed;
    unsigned steps;
};

static void run_main(void *arg)
{
    struct run *run = arg;
    struct walker walkers[FIBERS];
    struct fgw_wait wait;
    int acks = open(run->acks, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fgw_wait_init(&wait, FIBERS);
    for (unsigned i = 0; i < FIBERS; i++) {
        walkers[i] = (struct walker){.fixture = run->fixture,
                                     .wait = &wait,
                                     .random = (run->seed * FIBERS + i) * 0x9e3779b97f4a7c15u + 1,
                                     .number = i,
                                     .steps = run->steps,
                                     .acks = acks};
        fgw_fiber_spawn(fgw_loop_current(), walk, &walkers[i]);
    }
    fgw_wait_for(&wait);
    (void)close(acks);
}

static int run(char **argv)
{
    struct fixture fixture;
    struct run run = {&fixture, argv[1], strtoull(argv[2], NULL, 10),
                      (unsigned)strtoul(argv[3], NULL, 10)};
    open_at(&fixture, argv[0]);
    fgw_storage_start_care(fixture.storage, always_live, NULL);
    fgw_fiber_run_alone(run_main, &run);
    fixture_close(&fixture);
    return 0;
}

/* -- dump ---------------------------------------------------------------------------------------- */

static void print_key(struct fixture *fixture, const char *key)
{
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    enum fgw_err err = get_object(fixture->storage, key, &body);
    if (err == FGW_OK) {
        (void)printf("%s %zu:%08x\n", key, body.len, fgw_crc32c(0, fgw_buf_bytes(&body)));
    } else if (err == FGW_ERR_NOT_FOUND) {
        (void)printf("%s absent\n", key);
    } else {
        (void)printf("%s unreadable:%s\n", key, fgw_err_name(err));
    }
    fgw_buf_deinit(&body);
}

static void print_all(struct fixture *fixture)
{
    for (unsigned fiber = 0; fiber < FIBERS; fiber++) {
        for (unsigned i = 0; i < KEYS; i++) {
            char key[KEY_SIZE];
            make_key(key, fiber, i);
            print_key(fixture, key);
        }
    }
}

static void put_probe(struct fixture *fixture)
{
    struct put put = {.key = "probe", .body = FGW_LIT("probe"), .owner_number = 1000000000};
    check(put_object(fixture->storage, &put), "probe");
}

static void check_probe(struct fixture *fixture)
{
    struct fgw_buf body;
    fgw_buf_init(&body, 0);
    check(get_object(fixture->storage, "probe", &body), "probe after opening again");
    fgw_buf_deinit(&body);
}

static int dump(char **argv)
{
    struct fixture fixture;
    open_at(&fixture, argv[0]);
    fixture_run(&fixture, print_all);
    fixture_run(&fixture, put_probe);
    fixture_close(&fixture);
    open_at(&fixture, argv[0]);
    fixture_run(&fixture, check_probe);
    fixture_close(&fixture);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "run") == 0) {
        return run(argv + 2);
    }
    if (argc == 3 && strcmp(argv[1], "dump") == 0) {
        return dump(argv + 2);
    }
    (void)fprintf(stderr, "usage: fgw-fault-workload run DIR ACKS SEED STEPS | dump DIR\n");
    return 2;
}
