/* test_replicated.c: three storage nodes on real ports, a replicated store in front of them: bodies of
 * every size, a node that dies, one that lies, a fenced one, a full set of wrong secrets. */
#include "fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "blobs/replicated_internal.h"
#include "blobs/small_cache.h"
#include "event/workers.h"
#include "node/node.h"
#include "storage/pending.h"
#include "storage/storage_internal.h"

enum { MIB = 1024 * 1024, NODES = 3 };

struct storage_node {
    struct fixture fixture;
    struct fgw_node *node;
    struct fgw_http_server *http;
    char address[64];
    bool dead;
};

struct world {
    struct fgw_workers *workers;      /* of the edge */
    struct fgw_workers *node_workers; /* of all nodes */
    struct storage_node nodes[NODES];
    struct fgw_bytes secret;
    struct fgw_remotes *remotes;
    struct fgw_placement placement;
    struct fgw_blobs *blobs;
    unsigned needed;
    unsigned events[NODES][4];
    uint64_t newer_set; /* the stores know epoch 2 of it */
    unsigned stale;
    void (*fn)(struct world *world);
};

/* -- placement: set 1 = nodes 0 and 1, set 2 = 1 and 2, set 3 = 2 and 0 --------------------------- */

static enum fgw_err resolve(void *context, uint64_t set_id, struct fgw_placement_set *out)
{
    struct world *world = context;
    if (set_id < 1 || set_id > NODES) {
        return FGW_ERR_NOT_FOUND;
    }
    *out =
        (struct fgw_placement_set){.id = set_id, .epoch = 1, .count = 2, .needed = world->needed};
    for (unsigned i = 0; i < 2; i++) {
        struct storage_node *node = &world->nodes[(set_id - 1 + i) % NODES];
        struct fgw_placement_member *member = &out->members[i];
        memcpy(member->store_id, fgw_storage_id(node->fixture.storage), FGW_STORAGE_ID_SIZE);
        member->epoch = 1;
        (void)snprintf(member->address, sizeof member->address, "%s", node->address);
    }
    return FGW_OK;
}

static enum fgw_err choose(void *context, unsigned replicas, const uint64_t *avoid,
                           size_t avoid_count, struct fgw_placement_set *out,
                           struct fgw_error *error)
{
    (void)replicas;
    for (uint64_t set = 1; set <= NODES; set++) {
        bool avoided = false;
        for (size_t i = 0; i < avoid_count; i++) {
            avoided = avoided || avoid[i] == set;
        }
        if (!avoided) {
            return resolve(context, set, out);
        }
    }
    return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "no set left");
}

static void report(void *context, const uint8_t *store_id, enum fgw_placement_event event,
                   const struct fgw_cid *root)
{
    struct world *world = context;
    (void)root;
    for (unsigned i = 0; i < NODES; i++) {
        if (memcmp(fgw_storage_id(world->nodes[i].fixture.storage), store_id,
                   FGW_STORAGE_ID_SIZE) == 0) {
            world->events[i][event]++;
        }
    }
}

static void note_stale(void *context, uint64_t set_id)
{
    struct world *world = context;
    assert_int_equal(set_id, world->newer_set);
    world->stale++;
}

static uint64_t epoch_of_set(void *context, uint64_t set)
{
    const struct world *world = context;
    return set == world->newer_set ? 2 : 1;
}

/* -- the world ----------------------------------------------------------------------------------- */

static void start_node(struct world *world, unsigned index, const char *address)
{
    struct storage_node *node = &world->nodes[index];
    struct fgw_error error = {0};
    struct fgw_node_options options = {.storage = node->fixture.storage,
                                       .workers = world->node_workers,
                                       .secrets = &world->secret,
                                       .secret_count = 1,
                                       .epoch = 1,
                                       .set_epoch = epoch_of_set,
                                       .set_context = world};
    node->node = fgw_node_new(&options);
    struct fgw_http_server_options http = {.addresses = &address,
                                           .address_count = 1,
                                           .workers = world->node_workers,
                                           .handler = fgw_node_handle,
                                           .context = node->node,
                                           .max_header_bytes = 32768,
                                           .header_timeout_ms = 5000,
                                           .first_byte_timeout_ms = 5000,
                                           .idle_timeout_ms = 5000,
                                           .max_connections = 100,
                                           .conn_inflight_bytes = 1 << 20};
    assert_int_equal(fgw_http_server_start(&http, &node->http, &error), FGW_OK);
    (void)snprintf(node->address, sizeof node->address, "%s",
                   fgw_http_server_address(node->http, 0));
}

/* As seen from outside: the process is gone. Its address stays known. */
static void kill_node(struct world *world, unsigned index)
{
    struct storage_node *node = &world->nodes[index];
    if (!node->dead) {
        node->dead = true;
        fgw_http_server_stop(node->http, 0);
        fgw_node_stop(node->node);
    }
}

static void run_fn(void *arg, unsigned index)
{
    struct world *world = arg;
    if (index == 0) {
        world->fn(world);
    }
}

static void in_worker(struct world *world, void (*fn)(struct world *world))
{
    world->fn = fn;
    fgw_workers_run(world->workers, run_fn, world);
}

static void close_edge(void *arg, unsigned index)
{
    struct world *world = arg;
    fgw_blobs_replicated_close_worker(world->blobs, index);
    fgw_remotes_close_worker(world->remotes, index);
}

static struct fgw_small_cache *cache; /* of the tests that have one */

static int set_up(void **state, struct fgw_small_cache *with)
{
    struct world *world = fgw_xcalloc(1, sizeof *world);
    world->workers = fgw_workers_start(1, NULL, NULL);
    world->node_workers = fgw_workers_start(2, NULL, NULL);
    world->secret = FGW_LIT("a secret of a test cluster, 32 and more");
    world->needed = 2;
    for (unsigned i = 0; i < NODES; i++) {
        fixture_init(&world->nodes[i].fixture);
        fixture_open(&world->nodes[i].fixture);
        start_node(world, i, "127.0.0.1:0");
    }
    world->placement = (struct fgw_placement){.context = world,
                                              .choose = choose,
                                              .resolve = resolve,
                                              .report = report,
                                              .stale = note_stale};
    world->remotes = fgw_remotes_new(1, &world->secret, 1);
    struct fgw_replicated_options options = {
        .placement = &world->placement, .remotes = world->remotes, .workers = 1};
    world->blobs = fgw_blobs_replicated_new(&options);
    world->blobs->cache = with;
    *state = world;
    return 0;
}

static int setup(void **state)
{
    return set_up(state, NULL);
}

static int teardown(void **state)
{
    struct world *world = *state;
    fgw_workers_run(world->workers, close_edge, world);
    for (unsigned i = 0; i < NODES; i++) {
        kill_node(world, i);
        fgw_http_server_free(world->nodes[i].http);
        fgw_node_free(world->nodes[i].node);
    }
    fgw_workers_stop(world->workers);
    fgw_workers_stop(world->node_workers);
    for (unsigned i = 0; i < NODES; i++) {
        fixture_deinit(&world->nodes[i].fixture);
    }
    fgw_blobs_replicated_free(world->blobs);
    fgw_remotes_free(world->remotes);
    fgw_xfree(world);
    return 0;
}

static int setup_with_cache(void **state)
{
    cache = fgw_small_cache_new(16 * MIB);
    return set_up(state, cache);
}

static int teardown_with_cache(void **state)
{
    int result = teardown(state);
    fgw_small_cache_free(cache);
    return result;
}

/* -- bodies -------------------------------------------------------------------------------------- */

static unsigned rooms; /* writes into a stage's own memory */

static uint8_t *make_body(size_t size)
{
    uint8_t *body = fgw_xmalloc(size + 1);
    fgw_rng_fill(body, size);
    return body;
}

/* The next bytes, in the stage's own memory where it has some. */
static enum fgw_err write_piece(struct fgw_blob_stage *stage, struct fgw_bytes *body)
{
    uint8_t *room = NULL;
    size_t size = fgw_blob_stage_room(stage, &room);
    struct fgw_bytes piece = fgw_bytes_sub(*body, 0, size > 0 && size < 100000 ? size : 100000);
    if (size > 0) {
        memcpy(room, piece.ptr, piece.len);
        piece.ptr = room;
        rooms++;
    }
    *body = fgw_bytes_sub(*body, piece.len, SIZE_MAX);
    return fgw_blob_stage_write(stage, piece);
}

static enum fgw_err stage(struct world *world, struct fgw_arena *arena, struct fgw_bytes body,
                          unsigned owner_number, struct fgw_blob_staged *out)
{
    struct fgw_storage_owner owner;
    struct fgw_blob_stage *stage;
    struct fgw_error error = {0};
    make_owner(&owner, "key", owner_number);
    struct fgw_blob_stage_options options = {
        .arena = arena, .owner = &owner, .size_hint = UINT64_MAX};
    enum fgw_err err = fgw_blob_stage_begin(world->blobs, &options, &stage, &error);
    while (body.len > 0 && err == FGW_OK) {
        err = write_piece(stage, &body);
    }
    if (err != FGW_OK) {
        fgw_blob_stage_abort(stage);
        return err;
    }
    err = fgw_blob_stage_finish(stage, out);
    return err == FGW_OK ? fgw_blob_make_durable(out) : err;
}

static enum fgw_err read_range(struct world *world, const struct fgw_extent *extent,
                               struct fgw_bytes body, uint64_t from, uint64_t to)
{
    struct fgw_blob_reader *reader;
    struct fgw_error error = {0};
    enum fgw_err err = fgw_blob_read_open(world->blobs, extent, &reader, &error);
    if (err != FGW_OK) {
        return err;
    }
    for (uint64_t at = from; at < to && err == FGW_OK;) {
        struct fgw_storage_run run;
        size_t want = to - at < MIB ? (size_t)(to - at) : MIB;
        err = fgw_blob_read_next(reader, at, want, false, &run);
        if (err == FGW_OK) {
            assert_true(run.bytes.len > 0 && run.bytes.len <= want);
            assert_non_null(run.bytes.ptr);
            assert_memory_equal(run.bytes.ptr, body.ptr + at, run.bytes.len);
            at += run.bytes.len;
        }
    }
    fgw_blob_read_close(reader);
    return err;
}

static void sizes(struct world *world)
{
    static const size_t SIZES[] = {0, 1, 262144, 262145, MIB - 1, MIB, MIB + 1, 3 * MIB + 77};
    for (unsigned i = 0; i < FGW_COUNT_OF(SIZES); i++) {
        struct fgw_arena arena;
        struct fgw_blob_staged staged;
        uint8_t *body = make_body(SIZES[i]);
        struct fgw_bytes bytes = fgw_bytes(body, SIZES[i]);
        fgw_arena_init(&arena, 0);
        assert_int_equal(stage(world, &arena, bytes, i + 1, &staged), FGW_OK);
        assert_int_equal(staged.extent.set, 1);
        assert_int_equal(staged.extent.size, SIZES[i]);
        assert_int_equal(read_range(world, &staged.extent, bytes, 0, SIZES[i]), FGW_OK);
        if (SIZES[i] > MIB) {
            assert_int_equal(read_range(world, &staged.extent, bytes, MIB - 5, SIZES[i] - 1),
                             FGW_OK);
        }
        /* both members have it, the third node does not */
        for (unsigned n = 0; n < NODES; n++) {
            struct fgw_storage_reader *reader;
            enum fgw_err err = fgw_storage_reader_open(world->nodes[n].fixture.storage,
                                                       &staged.extent.root, NULL, &reader);
            assert_int_equal(err, n < 2 ? FGW_OK : FGW_ERR_NOT_FOUND);
            if (err == FGW_OK) {
                assert_int_equal(fgw_storage_reader_size(reader), SIZES[i]);
                fgw_storage_reader_close(reader);
            }
        }
        fgw_arena_deinit(&arena);
        fgw_xfree(body);
    }
    struct fgw_replicated_stats stats;
    fgw_blobs_replicated_stats(world->blobs, &stats);
    assert_int_equal(stats.read_failovers, 0);
    assert_int_equal(stats.digests_wrong, 0);
    assert_true(stats.digests_checked > 8);
}

static void every_size_is_on_both_members(void **state)
{
    rooms = 0;
    in_worker(*state, sizes);
    assert_true(rooms > 10);
}

/* -- a node dies --------------------------------------------------------------------------------- */

static struct fgw_extent kept_extent;
static uint8_t *kept_body;
enum { KEPT_SIZE = 9 * MIB + 3 };

static void write_kept(struct world *world)
{
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    kept_body = make_body(KEPT_SIZE);
    fgw_arena_init(&arena, 0);
    assert_int_equal(stage(world, &arena, fgw_bytes(kept_body, KEPT_SIZE), 50, &staged), FGW_OK);
    kept_extent = staged.extent;
    fgw_arena_deinit(&arena);
}

static void read_and_write_without_one(struct world *world)
{
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    struct fgw_bytes body = fgw_bytes(kept_body, KEPT_SIZE);
    fgw_arena_init(&arena, 0);
    assert_int_equal(read_range(world, &kept_extent, body, 0, KEPT_SIZE), FGW_OK);
    /* sets 1 and 3 have the dead node: both ways of writing end up in set 2 */
    assert_int_equal(stage(world, &arena, fgw_bytes_sub(body, 0, 1000), 51, &staged), FGW_OK);
    assert_int_equal(staged.extent.set, 2);
    assert_int_equal(stage(world, &arena, fgw_bytes_sub(body, 0, 2 * MIB), 52, &staged), FGW_OK);
    assert_int_equal(staged.extent.set, 2);
    assert_true(world->events[0][FGW_PLACEMENT_FAILED] > 0);
    assert_int_equal(read_range(world, &staged.extent, fgw_bytes_sub(body, 0, 2 * MIB), 0, 2 * MIB),
                     FGW_OK);
    fgw_arena_deinit(&arena);
}

static void reads_and_writes_go_on_without_a_node(void **state)
{
    struct world *world = *state;
    in_worker(world, write_kept);
    kill_node(world, 0);
    in_worker(world, read_and_write_without_one);
    fgw_xfree(kept_body);
}

static void read_while_it_dies(struct world *world)
{
    struct fgw_blob_reader *reader;
    struct fgw_error error = {0};
    unsigned first = kept_extent.root.bytes[FGW_CID_SIZE - 1] % 2 == 0 ? 0 : 1;
    assert_int_equal(fgw_blob_read_open(world->blobs, &kept_extent, &reader, &error), FGW_OK);
    for (uint64_t at = 0; at < KEPT_SIZE;) {
        struct fgw_storage_run run;
        size_t want = KEPT_SIZE - at < MIB ? (size_t)(KEPT_SIZE - at) : MIB;
        assert_int_equal(fgw_blob_read_next(reader, at, want, false, &run), FGW_OK);
        assert_memory_equal(run.bytes.ptr, kept_body + at, run.bytes.len);
        at += run.bytes.len;
        if (at == 2 * MIB) {
            fgw_node_stop(world->nodes[first].node); /* its workers are other threads */
        }
    }
    fgw_blob_read_close(reader);
    assert_true(world->events[first][FGW_PLACEMENT_FAILED] > 0);
}

static void a_read_goes_on_elsewhere_in_the_middle(void **state)
{
    in_worker(*state, write_kept);
    in_worker(*state, read_while_it_dies);
    fgw_xfree(kept_body);
}

/* -- a node dies while a body is written ---------------------------------------------------------- */

enum { UPLOAD_SIZE = 6 * MIB + 123 };
static size_t killed_at;   /* bytes written before; UPLOAD_SIZE: before finish */
static unsigned killed[2]; /* nodes; NODES: none */

static bool has_blob(struct world *world, unsigned node, const struct fgw_cid *root)
{
    struct fgw_storage_reader *reader;
    enum fgw_err err =
        fgw_storage_reader_open(world->nodes[node].fixture.storage, root, NULL, &reader);
    if (err == FGW_OK) {
        fgw_storage_reader_close(reader);
    }
    return err == FGW_OK;
}

static enum fgw_err upload_while_they_die(struct world *world, struct fgw_arena *arena,
                                          struct fgw_bytes body, struct fgw_blob_staged *out)
{
    struct fgw_storage_owner owner;
    struct fgw_blob_stage *stage;
    struct fgw_error error = {0};
    make_owner(&owner, "key", 80);
    struct fgw_blob_stage_options options = {
        .arena = arena, .owner = &owner, .size_hint = UINT64_MAX};
    enum fgw_err err = fgw_blob_stage_begin(world->blobs, &options, &stage, &error);
    for (size_t at = 0; at < UPLOAD_SIZE && err == FGW_OK; at += 65536) {
        if (at <= killed_at && killed_at < at + 65536) {
            for (unsigned i = 0; i < 2 && killed[i] < NODES; i++) {
                fgw_node_stop(world->nodes[killed[i]].node);
            }
        }
        err = fgw_blob_stage_write(stage, fgw_bytes_sub(body, at, 65536));
    }
    if (err != FGW_OK) {
        fgw_blob_stage_abort(stage);
        return err;
    }
    if (killed_at == UPLOAD_SIZE) {
        fgw_node_stop(world->nodes[killed[0]].node);
    }
    return fgw_blob_stage_finish(stage, out);
}

static void upload_survives(struct world *world)
{
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    struct fgw_replicated_stats stats;
    uint8_t *body = make_body(UPLOAD_SIZE);
    struct fgw_bytes bytes = fgw_bytes(body, UPLOAD_SIZE);
    fgw_arena_init(&arena, 0);
    assert_int_equal(upload_while_they_die(world, &arena, bytes, &staged), FGW_OK);
    fgw_blobs_replicated_stats(world->blobs, &stats);
    assert_int_equal(staged.extent.set, killed[0] == 0 ? 2 : killed[0] == 1 ? 3 : 1);
    assert_int_equal(stats.restages, 1);
    assert_int_equal(stats.writes_failed, 0);
    for (unsigned i = 0; i < NODES; i++) {
        assert_int_equal(has_blob(world, i, &staged.extent.root), i != killed[0]);
    }
    assert_int_equal(read_range(world, &staged.extent, bytes, 0, UPLOAD_SIZE), FGW_OK);
    fgw_arena_deinit(&arena);
    fgw_xfree(body);
}

static void upload_ends_without_anybody(struct world *world)
{
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    uint8_t *body = make_body(UPLOAD_SIZE);
    fgw_arena_init(&arena, 0);
    assert_int_equal(upload_while_they_die(world, &arena, fgw_bytes(body, UPLOAD_SIZE), &staged),
                     FGW_ERR_UNAVAILABLE);
    fgw_arena_deinit(&arena);
    fgw_xfree(body);
}

static void a_write_goes_on_in_another_set(void **state)
{
    static const size_t MOMENTS[] = {MIB + 65536, 3 * MIB, 5 * MIB + 7, 6 * MIB, UPLOAD_SIZE};
    struct world *world = *state;
    for (unsigned i = 0; i < FGW_COUNT_OF(MOMENTS); i++) {
        for (unsigned node = 0; node < 2; node++) {
            assert_int_equal(teardown(state), 0);
            assert_int_equal(setup(state), 0);
            world = *state;
            killed_at = MOMENTS[i];
            killed[0] = node;
            killed[1] = NODES;
            in_worker(world, upload_survives);
        }
    }
}

static void a_write_that_lost_all_members_ends(void **state)
{
    killed_at = 3 * MIB;
    killed[0] = 0;
    killed[1] = 1;
    in_worker(*state, upload_ends_without_anybody);
}

/* -- a set that has changed ---------------------------------------------------------------------- */

static void write_to_a_changed_set(struct world *world)
{
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    struct fgw_blob_staged copy;
    struct fgw_storage_owner owner;
    uint8_t *body = make_body(2 * MIB);
    struct fgw_bytes bytes = fgw_bytes(body, 2 * MIB);
    fgw_arena_init(&arena, 0);
    assert_int_equal(stage(world, &arena, fgw_bytes_sub(bytes, 0, 1000), 90, &staged), FGW_OK);
    assert_int_equal(staged.extent.set, 2);
    assert_int_equal(world->stale, 2);
    assert_int_equal(stage(world, &arena, bytes, 91, &staged), FGW_OK);
    assert_int_equal(staged.extent.set, 2);
    assert_int_equal(world->stale, 4);
    /* no fault of the stores */
    assert_int_equal(world->events[0][FGW_PLACEMENT_FAILED], 0);
    assert_int_equal(world->events[1][FGW_PLACEMENT_FAILED], 0);
    /* a copy within the changed set is not granted: the bytes are staged anew */
    make_owner(&owner, "copy", 92);
    struct fgw_blob_stage_options options = {.arena = &arena, .owner = &owner};
    world->newer_set = 2;
    assert_int_equal(fgw_blob_stage_copy(world->blobs, &options, &staged.extent, &copy),
                     FGW_ERR_NOT_FOUND);
    fgw_arena_deinit(&arena);
    fgw_xfree(body);
}

static void stores_refuse_an_older_set(void **state)
{
    struct world *world = *state;
    world->newer_set = 1;
    in_worker(world, write_to_a_changed_set);
}

/* -- copies that are missing --------------------------------------------------------------------- */

static uint64_t pending_of(struct world *world, unsigned node)
{
    struct fgw_storage_stats stats;
    struct fgw_storage *storage = world->nodes[node].fixture.storage;
    (void)fgw_pending_care(storage, NULL, NULL); /* nothing is old enough to be asked about */
    fgw_storage_stats(storage, &stats);
    return stats.pending_holds;
}

static void mend_all(struct world *world)
{
    static const size_t SIZES[] = {0, 1000, 300000, MIB, 5 * MIB + 9};
    struct fgw_replicated_stats stats;
    struct fgw_error error = {0};
    for (unsigned i = 0; i < FGW_COUNT_OF(SIZES); i++) {
        struct fgw_arena arena;
        struct fgw_blob_staged staged;
        uint8_t *body = make_body(SIZES[i]);
        struct fgw_bytes bytes = fgw_bytes(body, SIZES[i]);
        fgw_arena_init(&arena, 0);
        assert_int_equal(stage(world, &arena, bytes, 100 + i, &staged), FGW_OK);
        assert_int_equal(pending_of(world, 1), 1);
        struct fgw_extent extent = staged.extent;
        extent.set = 2; /* node 1 has it, node 2 does not */
        for (int times = 0; times < 2; times++) {
            assert_int_equal(
                fgw_blobs_replicated_mend(world->blobs, &staged.owner, &extent, &error), FGW_OK);
            fgw_blobs_replicated_stats(world->blobs, &stats);
            assert_int_equal(stats.copies_made, i + 1);
        }
        assert_true(has_blob(world, 2, &extent.root));
        assert_int_equal(pending_of(world, 1), 0);
        assert_int_equal(pending_of(world, 2), 0);
        assert_int_equal(read_range(world, &extent, bytes, 0, SIZES[i]), FGW_OK);
        fgw_blob_confirm(&staged); /* node 0 waits for it yet */
        fgw_arena_deinit(&arena);
        fgw_xfree(body);
    }
    for (int tries = 0; tries < 500 && pending_of(world, 0) > 0; tries++) {
        fgw_fiber_sleep_ms(10);
    }
    assert_int_equal(pending_of(world, 0), 0);
    /* a blob that nobody has */
    struct fgw_storage_owner owner;
    make_owner(&owner, "key", 120);
    struct fgw_extent absent = {.set = 2, .size = 3 * MIB};
    absent.root = fgw_cid_of(FGW_CODEC_DAG_PB, FGW_LIT("absent"));
    assert_int_equal(fgw_blobs_replicated_mend(world->blobs, &owner, &absent, &error),
                     FGW_ERR_NOT_FOUND);
}

static void missing_copies_are_made(void **state)
{
    in_worker(*state, mend_all);
}

/* A commit that comes late renews the holds first. */
static void commit_late(struct world *world)
{
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    struct fgw_replicated_stats stats;
    struct fgw_replicated *replicated = fgw_replicated_of(world->blobs);
    uint8_t *body = make_body(2 * MIB);
    fgw_arena_init(&arena, 0);
    assert_int_equal(stage(world, &arena, fgw_bytes(body, 2 * MIB), 130, &staged), FGW_OK);
    replicated->options.renew_after_ms = 20;
    fgw_fiber_sleep_ms(30);
    assert_int_equal(fgw_blob_make_durable(&staged), FGW_OK);
    fgw_blobs_replicated_stats(world->blobs, &stats);
    assert_int_equal(stats.renewed, 1);
    /* a store that has lost it, or is gone, must not be named */
    fgw_fiber_sleep_ms(30);
    fgw_node_stop(world->nodes[0].node);
    assert_int_equal(fgw_blob_make_durable(&staged), FGW_ERR_UNAVAILABLE);
    fgw_arena_deinit(&arena);
    fgw_xfree(body);
}

static void late_commits_renew_their_holds(void **state)
{
    in_worker(*state, commit_late);
}

/* -- damage -------------------------------------------------------------------------------------- */

/* Changes a byte of the body where it lies in one of the node's group files. */
static bool flip_byte_of(struct world *world, unsigned node, struct fgw_bytes needle)
{
    bool found = false;
    for (unsigned group = 1; group < 10 && !found; group++) {
        char name[64];
        (void)snprintf(name, sizeof name, "groups/%010u.car", group);
        const char *path = fixture_file(&world->nodes[node].fixture, name);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd >= 0) {
            struct stat status;
            assert_int_equal(fstat(fd, &status), 0);
            uint8_t *bytes = fgw_xmalloc((size_t)status.st_size + 1);
            ssize_t got = pread(fd, bytes, (size_t)status.st_size, 0);
            size_t at = fgw_bytes_find(fgw_bytes(bytes, got < 0 ? 0 : (size_t)got), needle, 0);
            if (at != SIZE_MAX) {
                bytes[at] ^= 1;
                assert_int_equal(pwrite(fd, bytes + at, 1, (off_t)at), 1);
                found = true;
            }
            fgw_xfree(bytes);
            (void)close(fd);
        }
    }
    return found;
}

static void read_damaged(struct world *world)
{
    static const size_t SIZES[] = {5000, 700000, 3 * MIB + 5};
    for (unsigned i = 0; i < FGW_COUNT_OF(SIZES); i++) {
        struct fgw_arena arena;
        struct fgw_blob_staged staged;
        struct fgw_replicated_stats stats;
        uint8_t *body = make_body(SIZES[i]);
        struct fgw_bytes bytes = fgw_bytes(body, SIZES[i]);
        fgw_arena_init(&arena, 0);
        assert_int_equal(stage(world, &arena, bytes, 140 + i, &staged), FGW_OK);
        unsigned first = staged.extent.root.bytes[FGW_CID_SIZE - 1] % 2 == 0 ? 0 : 1;
        size_t at = SIZES[i] > 2 * MIB ? MIB + 17 : 17;
        assert_true(flip_byte_of(world, first, fgw_bytes_sub(bytes, at, 64)));
        assert_int_equal(read_range(world, &staged.extent, bytes, 0, SIZES[i]), FGW_OK);
        for (int tries = 0; tries < 500; tries++) {
            fgw_blobs_replicated_stats(world->blobs, &stats);
            if (stats.blocks_mended == i + 1) {
                break;
            }
            fgw_fiber_sleep_ms(10);
        }
        assert_int_equal(stats.blocks_mended, i + 1);
        /* what that store has is right again, and held once only */
        struct fgw_buf got;
        fgw_buf_init(&got, 0);
        assert_int_equal(
            read_blob(world->nodes[first].fixture.storage, &staged.extent.root, NULL, &got),
            FGW_OK);
        assert_int_equal(got.len, SIZES[i]);
        assert_memory_equal(got.ptr, body, SIZES[i]);
        fgw_buf_deinit(&got);
        fgw_arena_deinit(&arena);
        fgw_xfree(body);
    }
}

/* -- small blobs in memory ------------------------------------------------------------------------ */

enum { SMALL = 5000, TOO_LARGE = FGW_SMALL_CACHE_BLOB_MAX + 1 };

struct kept_blob {
    struct fgw_extent extent;
    struct fgw_bytes body;
};
static struct kept_blob small_blob, large_blob;

static void put_and_read(struct world *world, struct kept_blob *blob, size_t size, unsigned number)
{
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    fgw_arena_init(&arena, 0);
    blob->body = fgw_bytes(make_body(size), size);
    assert_int_equal(stage(world, &arena, blob->body, number, &staged), FGW_OK);
    blob->extent = staged.extent;
    for (int times = 0; times < 2; times++) { /* from the second time on it is kept */
        assert_int_equal(read_range(world, &blob->extent, blob->body, 0, size), FGW_OK);
    }
    fgw_arena_deinit(&arena);
}

static void fill_cache(struct world *world)
{
    put_and_read(world, &small_blob, SMALL, 160);
    put_and_read(world, &large_blob, TOO_LARGE, 161);
}

static void read_from_cache(struct world *world)
{
    struct fgw_small_cache_stats stats;
    assert_int_equal(read_range(world, &small_blob.extent, small_blob.body, 0, SMALL), FGW_OK);
    assert_int_equal(read_range(world, &small_blob.extent, small_blob.body, 4000, 4001), FGW_OK);
    assert_int_equal(read_range(world, &large_blob.extent, large_blob.body, 0, TOO_LARGE),
                     FGW_ERR_UNAVAILABLE);
    fgw_small_cache_stats(cache, &stats);
    assert_int_equal(stats.hits, 2);
    assert_int_equal(stats.misses, 2);
    assert_true(stats.bytes > SMALL && stats.bytes < SMALL + 1000);
}

/* What was read twice needs no store; larger blobs do. */
static void small_blobs_are_kept(void **state)
{
    in_worker(*state, fill_cache);
    for (unsigned i = 0; i < NODES; i++) {
        kill_node(*state, i);
    }
    in_worker(*state, read_from_cache);
    fgw_xfree((void *)small_blob.body.ptr);
    fgw_xfree((void *)large_blob.body.ptr);
}

/* The node believes that the leaves of a blob of two stand in the other order. */
static void swap_leaves(struct fgw_storage *storage, const struct fgw_cid *root)
{
    struct fgw_blob_row blob;
    struct fgw_buf row;
    struct fgw_error error;
    struct fgw_row_key key = fgw_row_key_blob(fgw_cid_digest(root));
    fgw_buf_init(&row, 0);
    assert_int_equal(fgw_storage_index_get(storage, &key, &row), FGW_OK);
    assert_int_equal(fgw_blob_row_decode(fgw_buf_bytes(&row), &blob), FGW_OK);
    assert_int_equal(blob.leaves, 2);
    key = fgw_row_key_slice(blob.list_id, FGW_LIST_LEAVES, 0);
    fgw_buf_clear(&row);
    assert_int_equal(fgw_storage_index_get(storage, &key, &row), FGW_OK);
    assert_int_equal(row.len, 1 + 2 * FGW_SHA256_SIZE);
    uint8_t first[FGW_SHA256_SIZE];
    memcpy(first, row.ptr + 1, sizeof first);
    memmove(row.ptr + 1, row.ptr + 1 + sizeof first, sizeof first);
    memcpy(row.ptr + 1 + sizeof first, first, sizeof first);
    struct fgw_kv_batch *batch = fgw_kv_batch_new(storage->kv);
    fgw_kv_batch_put(batch, FGW_KV_BLOCKS, fgw_row_key_bytes(&key), fgw_buf_bytes(&row));
    assert_int_equal(fgw_kv_batch_write(batch, false, &error), FGW_OK);
    fgw_kv_batch_free(batch);
    fgw_buf_deinit(&row);
}

static void read_mixed_up(struct world *world)
{
    enum { SIZE = 2 * MIB };
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    struct fgw_replicated_stats stats;
    uint8_t *body = make_body(SIZE);
    struct fgw_bytes bytes = fgw_bytes(body, SIZE);
    fgw_arena_init(&arena, 0);
    assert_int_equal(stage(world, &arena, bytes, 150, &staged), FGW_OK);
    unsigned first = staged.extent.root.bytes[FGW_CID_SIZE - 1] % 2 == 0 ? 0 : 1;
    swap_leaves(world->nodes[first].fixture.storage, &staged.extent.root);
    assert_int_equal(read_range(world, &staged.extent, bytes, 0, SIZE), FGW_OK);
    fgw_blobs_replicated_stats(world->blobs, &stats);
    assert_true(stats.read_failovers > 0);
    fgw_arena_deinit(&arena);
    fgw_xfree(body);
}

/* Blocks that are whole, but not those that were asked for. */
static void other_blocks_are_not_taken(void **state)
{
    in_worker(*state, read_mixed_up);
}

static void a_damaged_block_is_mended_from_another_store(void **state)
{
    in_worker(*state, read_damaged);
}

/* -- refusals ------------------------------------------------------------------------------------ */

static void expect_unavailable(struct world *world)
{
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    uint8_t *body = make_body(2 * MIB);
    fgw_arena_init(&arena, 0);
    assert_int_equal(stage(world, &arena, fgw_bytes(body, 100), 60, &staged), FGW_ERR_UNAVAILABLE);
    assert_int_equal(stage(world, &arena, fgw_bytes(body, 2 * MIB), 61, &staged),
                     FGW_ERR_UNAVAILABLE);
    fgw_arena_deinit(&arena);
    fgw_xfree(body);
}

static void another_secret_opens_nothing(void **state)
{
    struct world *world = *state;
    struct fgw_node_stats stats;
    struct fgw_bytes wrong = FGW_LIT("another secret of a cluster, also long");
    struct fgw_bytes right = world->secret;
    world->remotes = (fgw_remotes_free(world->remotes), fgw_remotes_new(1, &wrong, 1));
    struct fgw_replicated_options options = {
        .placement = &world->placement, .remotes = world->remotes, .workers = 1};
    fgw_blobs_replicated_free(world->blobs);
    world->blobs = fgw_blobs_replicated_new(&options);
    in_worker(world, expect_unavailable);
    fgw_node_stats(world->nodes[0].node, &stats);
    assert_true(stats.refused > 0);
    assert_int_equal(stats.requests, 0);
    world->secret = right;
}

static void fenced_stores_acknowledge_nothing(void **state)
{
    struct world *world = *state;
    struct fgw_node_stats stats;
    for (unsigned i = 0; i < NODES; i++) {
        fgw_node_fence(world->nodes[i].node, 2);
    }
    in_worker(world, expect_unavailable);
    fgw_node_stats(world->nodes[0].node, &stats);
    assert_true(stats.fenced);
}

static void copy_and_release(struct world *world)
{
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    struct fgw_blob_staged copy;
    struct fgw_storage_owner owner;
    uint8_t *body = make_body(2 * MIB);
    struct fgw_bytes bytes = fgw_bytes(body, 2 * MIB);
    fgw_arena_init(&arena, 0);
    make_owner(&owner, "copy", 71);
    struct fgw_blob_stage_options options = {.arena = &arena, .owner = &owner};
    assert_int_equal(stage(world, &arena, bytes, 70, &staged), FGW_OK);
    assert_int_equal(fgw_blob_stage_copy(world->blobs, &options, &staged.extent, &copy), FGW_OK);
    assert_int_equal(copy.extent.set, staged.extent.set);
    assert_int_equal(fgw_blob_make_durable(&copy), FGW_OK);
    fgw_blob_discard(&staged);
    assert_int_equal(read_range(world, &copy.extent, bytes, 0, 2 * MIB), FGW_OK);
    /* a blob that is nowhere */
    struct fgw_extent absent = staged.extent;
    absent.root.bytes[20] ^= 1;
    assert_int_equal(fgw_blob_stage_copy(world->blobs, &options, &absent, &copy),
                     FGW_ERR_NOT_FOUND);
    assert_int_equal(read_range(world, &absent, bytes, 0, 1), FGW_ERR_CORRUPT);
    fgw_arena_deinit(&arena);
    fgw_xfree(body);
}

static void copies_hold_and_releases_are_asked(void **state)
{
    in_worker(*state, copy_and_release);
}

/* -- rows that are gone -------------------------------------------------------------------------- */

enum { RELEASED = 40 };
static _Atomic unsigned asked, kept;

static enum fgw_err nobody_names_it(void *context, const struct fgw_storage_owner *owner,
                                    const struct fgw_cid *root, enum fgw_storage_liveness *out_live)
{
    (void)context;
    (void)root;
    assert_true(fgw_bytes_eq_str(owner->key, "key"));
    atomic_fetch_add(&asked, 1);
    *out_live = FGW_STORAGE_ABSENT;
    return FGW_OK;
}

static void keep_release(void *context, const uint8_t *store_id,
                         const struct fgw_storage_owner *owner, uint64_t extent,
                         const struct fgw_cid *root)
{
    struct world *world = context;
    (void)extent;
    (void)root;
    assert_true(fgw_bytes_eq_str(owner->key, "key"));
    assert_memory_equal(store_id, fgw_storage_id(world->nodes[1].fixture.storage),
                        FGW_STORAGE_ID_SIZE);
    atomic_fetch_add(&kept, 1);
}

static void release_many(struct world *world)
{
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    for (unsigned i = 0; i < RELEASED; i++) {
        struct fgw_blob_staged staged;
        uint8_t *body = make_body(100);
        assert_int_equal(stage(world, &arena, fgw_bytes(body, 100), 200 + i, &staged), FGW_OK);
        fgw_blob_release(world->blobs, &staged.owner, &staged.extent, 1);
        fgw_xfree(body);
    }
    fgw_arena_deinit(&arena);
}

static uint64_t requests_of(struct world *world, unsigned node)
{
    struct fgw_node_stats stats;
    fgw_node_stats(world->nodes[node].node, &stats);
    return stats.requests;
}

static void close_blobs(struct world *world)
{
    fgw_blobs_replicated_close_worker(world->blobs, 0);
}

/* Also those that wait when the process ends; what a store cannot be told is kept for it. */
static void releases_go_out_together(void **state)
{
    struct world *world = *state;
    world->placement.keep_release = keep_release;
    fgw_storage_start_care(world->nodes[0].fixture.storage, nobody_names_it, NULL);
    in_worker(world, release_many);
    kill_node(world, 1);
    in_worker(world, close_blobs);
    assert_true(requests_of(world, 0) <= RELEASED + 3); /* a flush may have come in between */
    for (int tries = 0; tries < 6000 && atomic_load(&asked) < RELEASED; tries++) {
        (void)usleep(10000);
    }
    assert_int_equal(atomic_load(&asked), RELEASED);
    assert_true(atomic_load(&kept) <= RELEASED);
    assert_true(atomic_load(&kept) > 0);
    fgw_storage_stop_care(world->nodes[0].fixture.storage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_size_is_on_both_members, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_and_writes_go_on_without_a_node, setup, teardown),
        cmocka_unit_test_setup_teardown(a_read_goes_on_elsewhere_in_the_middle, setup, teardown),
        cmocka_unit_test_setup_teardown(a_write_goes_on_in_another_set, setup, teardown),
        cmocka_unit_test_setup_teardown(a_write_that_lost_all_members_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(stores_refuse_an_older_set, setup, teardown),
        cmocka_unit_test_setup_teardown(missing_copies_are_made, setup, teardown),
        cmocka_unit_test_setup_teardown(late_commits_renew_their_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_block_is_mended_from_another_store, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(small_blobs_are_kept, setup_with_cache,
                                        teardown_with_cache),
        cmocka_unit_test_setup_teardown(other_blocks_are_not_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(another_secret_opens_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(fenced_stores_acknowledge_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_hold_and_releases_are_asked, setup, teardown),
        cmocka_unit_test_setup_teardown(releases_go_out_together, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
