/* run_cql_faults.c: the backend on a real database while answers are lost, statements apply late,
 * fibers pause between any two steps, and several backend objects (as several processes would) work
 * on the same rows. Each case ends with a look at everything that was acknowledged. Also the rounds
 * that each call costs (design/metadata.md section 3). Exit 77 when no database is named.
 */
#include "contract/meta/cql_faults.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "contract/meta/cql_heads.h"
#include "contract/meta/memory_blobs.h"
#include "event/fiber.h"
#include "meta/cql/cql.h"

static const struct fgw_version LATEST = {.kind = FGW_VERSION_LATEST};

static struct fgw_cql_client *client(void *context)
{
    return ((struct world *)context)->keyspace.client;
}

static enum fgw_err inject(void *context, const struct fgw_cql_statement *statement, bool after)
{
    struct faults *faults = &((struct world *)context)->faults;
    unsigned dice = (unsigned)fgw_rng_below(1000);
    if (fgw_rng_below(1000) < faults->pause_permille) {
        fgw_fiber_sleep_ms(fgw_rng_below(faults->pause_max_ms + 1));
    }
    if (faults->died) {
        return FGW_ERR_UNAVAILABLE;
    }
    if (statement->kind == FGW_CQL_READ) {
        return FGW_OK;
    }
    if (faults->dies && !after) {
        faults->died = faults->writes_left == 0;
        if (faults->died) {
            return FGW_ERR_UNAVAILABLE;
        }
        faults->writes_left--;
    }
    enum fgw_err err = FGW_OK;
    if (after) {
        err = dice < faults->lost_permille ? FGW_ERR_UNKNOWN_OUTCOME : FGW_OK;
    } else if (dice < faults->unsent_permille) {
        err = FGW_ERR_UNKNOWN_OUTCOME;
    } else if (dice < faults->unsent_permille + faults->late_permille) {
        err = FGW_ERR_AGAIN;
    }
    faults->hit += err != FGW_OK;
    return err;
}

static void calm(struct world *world)
{
    world->faults = (struct faults){0};
    /* what is on its way late arrives */
    fgw_fiber_sleep_ms(2 * FGW_META_CQL_LATE_MS);
}

static void storm(struct world *world)
{
    world->faults = (struct faults){.lost_permille = 60,
                                    .unsent_permille = 40,
                                    .late_permille = 30,
                                    .pause_permille = 100,
                                    .pause_max_ms = 20};
}

/* -- fibers that work side by side ------------------------------------------------------------------- */

struct worker {
    struct contract own; /* backend and arena of this fiber */
    struct world *world;
    const struct fgw_bucket *bucket;
    struct fgw_wait *done;
    void (*run)(struct worker *);
    unsigned index;
    unsigned rounds;
    unsigned ok;
    unsigned unknown;
    void *shared;
};

static void worker_main(void *arg)
{
    struct worker *worker = arg;
    worker->run(worker);
    fgw_wait_signal(worker->done);
}

/* Runs `count` fibers spread over the backends; *out_ok and *out_unknown are their sums. */
static void run_workers(struct world *world, const struct fgw_bucket *bucket, unsigned count,
                        unsigned rounds, void (*run)(struct worker *), void *shared,
                        unsigned *out_ok, unsigned *out_unknown)
{
    struct worker *workers = fgw_xcalloc(count, sizeof *workers);
    struct fgw_wait done;
    fgw_wait_init(&done, count);
    for (unsigned i = 0; i < count; i++) {
        workers[i] =
            (struct worker){.own = {.meta = world->backends[i % BACKENDS], .blobs = world->blobs},
                            .world = world,
                            .bucket = bucket,
                            .done = &done,
                            .run = run,
                            .index = i,
                            .rounds = rounds,
                            .shared = shared};
        fgw_arena_init(&workers[i].own.arena, 0);
        fgw_fiber_spawn(fgw_loop_current(), worker_main, &workers[i]);
    }
    fgw_wait_for(&done);
    *out_ok = 0;
    *out_unknown = 0;
    for (unsigned i = 0; i < count; i++) {
        *out_ok += workers[i].ok;
        *out_unknown += workers[i].unknown;
        fgw_arena_deinit(&workers[i].own.arena);
    }
    fgw_xfree(workers);
}

/* Every row that can be listed names bytes that are held. */
static void bytes_are_there(struct world *world, const struct fgw_bucket *bucket)
{
    struct contract *c = &world->c;
    struct fgw_list_query query = {.max = 1000};
    struct fgw_object_list list = {.truncated = true};
    while (list.truncated) {
        MUST_ANSWER(
            c->meta->ops->version_list(c->meta, &c->arena, bucket, &query, &list, &c->error),
            FGW_OK);
        for (size_t i = 0; i < list.count; i++) {
            struct fgw_object *entry = &list.entries[i].object;
            struct fgw_object object;
            struct fgw_version version = {entry->is_null ? FGW_VERSION_NULL : FGW_VERSION_ID,
                                          entry->version_id};
            MUST_ANSWER(c->meta->ops->object_get(c->meta, &c->arena, bucket, entry->key, version,
                                                 &object, &c->error),
                        FGW_OK);
            for (size_t e = 0; e < object.extent_count; e++) {
                MUST(memory_blobs_hold(world->blobs, object.owner_id.bytes, &object.extents[e]));
            }
            query.after = entry->key;
            query.has_after_version = true;
            query.after_version = version;
        }
    }
}

/* -- rounds ---------------------------------------------------------------------------------------------- */

static unsigned rounds_since(struct fgw_cql_rounds *rounds)
{
    unsigned count = rounds->rounds;
    *rounds = (struct fgw_cql_rounds){0};
    return count;
}

#define MUST_COST(call, code, most) \
    do { \
        (void)rounds_since(&rounds); \
        MUST_ANSWER(call, code); \
        unsigned cost_ = rounds_since(&rounds); \
        (void)fprintf(stderr, "    %2u rounds (of %u): %s\n", cost_, (unsigned)(most), #call); \
        MUST(cost_ == (most)); \
    } while (0)

static void list_costs(struct contract *c, const struct fgw_bucket *bucket,
                       struct fgw_cql_rounds *counted)
{
    struct fgw_cql_rounds rounds = {0};
    struct fgw_object_list list;
    struct fgw_list_query query = {.max = 1000};
    (void)counted;
    fgw_meta_cql_count_rounds(c->meta, &rounds);
    MUST_COST(c->meta->ops->object_list(c->meta, &c->arena, bucket, &query, &list, &c->error),
              FGW_OK, 1);
    MUST(list.count == 300);
    query.max = 100;
    MUST_COST(c->meta->ops->object_list(c->meta, &c->arena, bucket, &query, &list, &c->error),
              FGW_OK, 1);
    MUST(list.count == 100 && list.truncated);
    query.delimiter = FGW_LIT("/");
    query.max = 1000;
    MUST_COST(c->meta->ops->object_list(c->meta, &c->arena, bucket, &query, &list, &c->error),
              FGW_OK, 1);
    MUST(list.count == 10);
    MUST_COST(c->meta->ops->version_list(c->meta, &c->arena, bucket, &query, &list, &c->error),
              FGW_OK, 2);
    fgw_meta_cql_count_rounds(c->meta, NULL);
}

/* With a delimiter: 1 + prefixes / 100, here for 102 prefixes of 100 keys each. */
static void prefixes_cost(struct world *world)
{
    enum { PREFIXES = 102, KEYS_EACH = 100 };
    struct contract *c = &world->c;
    struct fgw_cql_rounds rounds = {0};
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct cql_heads heads = {&world->keyspace, &bucket, (unsigned long)PREFIXES * KEYS_EACH,
                              KEYS_EACH};
    struct fgw_list_query query = {.delimiter = FGW_LIT("/"), .max = 1000};
    struct fgw_object_list list;
    cql_heads_load(&heads);
    fgw_meta_cql_count_rounds(c->meta, &rounds);
    MUST_ANSWER(c->meta->ops->object_list(c->meta, &c->arena, &bucket, &query, &list, &c->error),
                FGW_OK);
    fgw_meta_cql_count_rounds(c->meta, NULL);
    MUST(list.count == PREFIXES && !list.truncated);
    (void)fprintf(stderr, "    %2u rounds: %zu prefixes of %u keys\n", rounds.rounds, list.count,
                  KEYS_EACH);
    MUST(rounds.rounds * 100 <= 100 + list.count);
}

/* A claim that was left on a version is seen through, at the price of one round. */
static void promotion_costs(struct world *world)
{
    struct contract *c = &world->c;
    struct fgw_cql_rounds rounds = {0};
    struct fgw_bucket wanted = {
        .name = FGW_LIT("promotion-costs"), .owner_id = FGW_LIT("owner"), .shards = 1};
    struct fgw_bucket bucket;
    struct fgw_object object;
    struct fgw_written first;
    struct fgw_cql_result *result = NULL;
    char bucket_id[33];
    char version_id[33];
    MUST_ANSWER(c->meta->ops->bucket_create(c->meta, &c->arena, &wanted, &bucket, &c->error),
                FGW_OK);
    bucket.versioning = FGW_VERSIONING_ENABLED;
    MUST_ANSWER(c->meta->ops->bucket_update(c->meta, &c->arena, &bucket, &c->error), FGW_OK);
    MUST_ANSWER(contract_put(c, &bucket, "k", "one", NULL, &first), FGW_OK);
    MUST_ANSWER(contract_put(c, &bucket, "k", "two", NULL, NULL), FGW_OK);
    fgw_id_hex(&bucket.id, bucket_id);
    fgw_id_hex(&first.version_id, version_id);
    const char *claim = fgw_arena_printf(
        &c->arena,
        "UPDATE %s.object_versions SET state = 4 WHERE bucket_id = %.8s-%.4s-%.4s-%.4s-%.12s"
        " AND shard = 0 AND key = 0x6b AND version_id = 0x%s IF state = 1",
        world->keyspace.name, bucket_id, bucket_id + 8, bucket_id + 12, bucket_id + 16,
        bucket_id + 20, version_id);
    MUST_ANSWER(fgw_cql_query(world->keyspace.client, claim, FGW_CQL_LWT, NULL, &result, &c->error),
                FGW_OK);
    bool applied = false;
    MUST(fgw_cql_result_applied(result, &applied) == FGW_OK && applied);
    fgw_cql_result_free(result);
    struct fgw_version by_id = {FGW_VERSION_ID, first.version_id};
    fgw_meta_cql_count_rounds(c->meta, &rounds);
    MUST_COST(c->meta->ops->object_get(c->meta, &c->arena, &bucket, FGW_LIT("k"), by_id, &object,
                                       &c->error),
              FGW_OK, 3);
    fgw_meta_cql_count_rounds(c->meta, NULL);
}

static void case_rounds(struct world *world)
{
    struct contract *c = &world->c;
    struct fgw_cql_rounds rounds = {0};
    struct fgw_bucket plain = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_bucket versioned = contract_bucket(c, FGW_VERSIONING_ENABLED);
    struct fgw_object object;
    struct fgw_written first;
    struct fgw_written written;
    fgw_meta_cql_count_rounds(c->meta, &rounds);
    MUST_COST(contract_put(c, &plain, "k", "one", NULL, NULL), FGW_OK, 2);
    MUST_COST(contract_put(c, &plain, "k", "two", NULL, NULL), FGW_OK, 2);
    MUST_COST(c->meta->ops->object_get(c->meta, &c->arena, &plain, FGW_LIT("k"), LATEST, &object,
                                       &c->error),
              FGW_OK, 1);
    MUST_COST(c->meta->ops->object_delete(c->meta, &c->arena, &plain, FGW_LIT("k"), LATEST, NULL,
                                          &written, &c->error),
              FGW_OK, 2);
    MUST_COST(contract_put(c, &versioned, "k", "one", NULL, &first), FGW_OK, 2);
    MUST_COST(contract_put(c, &versioned, "k", "two", NULL, NULL), FGW_OK, 3);
    struct fgw_version by_id = {FGW_VERSION_ID, first.version_id};
    MUST_COST(c->meta->ops->object_get(c->meta, &c->arena, &versioned, FGW_LIT("k"), by_id, &object,
                                       &c->error),
              FGW_OK, 2);
    MUST_COST(c->meta->ops->object_delete(c->meta, &c->arena, &versioned, FGW_LIT("k"), by_id, NULL,
                                          &written, &c->error),
              FGW_OK, 3);
    struct fgw_bucket got;
    (void)rounds_since(&rounds);
    MUST_ANSWER(c->meta->ops->bucket_get(c->meta, &c->arena, plain.name, false, &got, &c->error),
                FGW_OK);
    MUST_COST(c->meta->ops->bucket_get(c->meta, &c->arena, plain.name, false, &got, &c->error),
              FGW_OK, 0);
    fgw_meta_cql_count_rounds(c->meta, NULL);
    for (unsigned i = 0; i < 300; i++) {
        MUST_ANSWER(contract_put(c, &versioned, fgw_arena_printf(&c->arena, "p%u/%u", i % 10, i),
                                 "x", NULL, NULL),
                    FGW_OK);
    }
    MUST_ANSWER(c->meta->ops->object_delete(c->meta, &c->arena, &versioned, FGW_LIT("k"), LATEST,
                                            NULL, &written, &c->error),
                FGW_OK);
    list_costs(c, &versioned, &rounds);
    prefixes_cost(world);
    promotion_costs(world);
}

/* -- races --------------------------------------------------------------------------------------------- */

static void create_once(struct worker *worker)
{
    struct contract *c = &worker->own;
    struct fgw_conditions create = {.if_none_match_any = true};
    const char *body = fgw_arena_printf(&c->arena, "%u-%p", worker->index, worker->shared);
    enum fgw_err err = contract_put(c, worker->bucket, worker->shared, body, &create, NULL);
    /* SLOW_DOWN: too many wait for the partition, which a slow database brings about; UNAVAILABLE: it
     * refused whatever was tried. Neither has written. */
    bool refused = err == FGW_ERR_SLOW_DOWN;
    bool told = err == FGW_ERR_PRECONDITION_FAILED || err == FGW_ERR_UNKNOWN_OUTCOME;
    MUST_ANSWER(refused || told ? FGW_OK : err, FGW_OK);
    worker->ok += err == FGW_OK;
    worker->unknown += err == FGW_ERR_UNKNOWN_OUTCOME;
}

/* A quarter of them in a usual run, all with FGW_TEST_WHOLE (make test-full): what happens is drawn
 * anew each time, so that runs add up. */
static unsigned times(unsigned whole)
{
    return getenv("FGW_TEST_WHOLE") != NULL ? whole : whole / 4;
}

static void race_creations(struct world *world, unsigned races, bool stormy)
{
    struct contract *c = &world->c;
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    unsigned unknown_races = 0;
    for (unsigned race = 0; race < races; race++) {
        unsigned ok;
        unsigned unknown;
        char key[32];
        struct fgw_object object;
        (void)snprintf(key, sizeof key, "race-%u", race);
        if (stormy) {
            storm(world);
        }
        run_workers(world, &bucket, 6, 1, create_once, key, &ok, &unknown);
        MUST(ok <= 1);
        unknown_races += ok == 0;
        if (!stormy) {
            MUST(ok == 1);
        }
        world->faults = (struct faults){0};
        enum fgw_err err = c->meta->ops->object_get(c->meta, &c->arena, &bucket, fgw_bytes_str(key),
                                                    LATEST, &object, &c->error);
        bool may_be_there = ok == 1 || unknown > 0;
        MUST(err == FGW_OK ? may_be_there : ok == 0 && err == FGW_ERR_NO_SUCH_KEY);
        if (race % 100 == 99 || race + 1 == races) {
            bytes_are_there(world, &bucket);
            fgw_arena_reset(&c->arena);
            /* the bucket's name went with the arena: a new one */
            bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
        }
    }
    (void)fprintf(stderr, "    %u races, %u without a known winner\n", races, unknown_races);
}

static void case_one_winner_each(struct world *world)
{
    race_creations(world, times(1000), false);
}

static void case_one_winner_in_a_storm(struct world *world)
{
    race_creations(world, times(200), true);
    calm(world);
}

static void increment(struct worker *worker)
{
    struct contract *c = &worker->own;
    for (unsigned round = 0; round < worker->rounds; round++) {
        struct fgw_object object;
        MUST_ANSWER(c->meta->ops->object_get(c->meta, &c->arena, worker->bucket, FGW_LIT("n"),
                                             LATEST, &object, &c->error),
                    FGW_OK);
        struct fgw_conditions match = {.if_match = object.etag};
        char *body = fgw_arena_zalloc(&c->arena, object.size + 2);
        memset(body, 'n', object.size + 1);
        enum fgw_err err = contract_put(c, worker->bucket, "n", body, &match, NULL);
        MUST(err == FGW_OK || err == FGW_ERR_PRECONDITION_FAILED || err == FGW_ERR_UNKNOWN_OUTCOME);
        worker->ok += err == FGW_OK;
        worker->unknown += err == FGW_ERR_UNKNOWN_OUTCOME;
    }
}

static void case_counter_in_a_storm(struct world *world)
{
    struct contract *c = &world->c;
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
    struct fgw_object object;
    unsigned ok;
    unsigned unknown;
    MUST_ANSWER(contract_put(c, &bucket, "n", "", NULL, NULL), FGW_OK);
    storm(world);
    run_workers(world, &bucket, 6, times(40), increment, NULL, &ok, &unknown);
    calm(world);
    MUST_ANSWER(c->meta->ops->object_get(c->meta, &c->arena, &bucket, FGW_LIT("n"), LATEST, &object,
                                         &c->error),
                FGW_OK);
    (void)fprintf(stderr, "    %u increments, %u unknown, counter %llu\n", ok, unknown,
                  (unsigned long long)object.size);
    MUST(object.size >= ok && object.size <= ok + unknown);
    bytes_are_there(world, &bucket);
}

/* -- versions ------------------------------------------------------------------------------------------ */

enum { HISTORY_MAX = 2000, HISTORY_KEYS = 3 };

struct history {
    struct {
        struct fgw_id id;
        unsigned key;
        bool deleted;
        bool unsure; /* a deletion without a known outcome */
    } written[HISTORY_MAX];
    size_t count;
    unsigned lost_puts;
};

static const char *const HISTORY_NAMES[HISTORY_KEYS] = {"a", "b/1", "b/2"};

static void write_version(struct worker *worker, struct history *history, unsigned key)
{
    struct contract *c = &worker->own;
    struct fgw_written written;
    const char *body = fgw_arena_printf(&c->arena, "%llx", (unsigned long long)fgw_rng_u64());
    enum fgw_err err = contract_put(c, worker->bucket, HISTORY_NAMES[key], body, NULL, &written);
    MUST(err == FGW_OK || err == FGW_ERR_UNKNOWN_OUTCOME);
    history->lost_puts += err != FGW_OK;
    if (err == FGW_OK) {
        MUST(history->count < HISTORY_MAX);
        history->written[history->count].id = written.version_id;
        history->written[history->count++].key = key;
    }
}

static void delete_version(struct worker *worker, struct history *history)
{
    struct contract *c = &worker->own;
    size_t at = fgw_rng_below(history->count);
    /* the newest are the interesting ones */
    at = fgw_rng_below(2) == 0 ? history->count - 1 - at % 4 % history->count : at;
    struct fgw_version version = {FGW_VERSION_ID, history->written[at].id};
    struct fgw_written written;
    enum fgw_err err = c->meta->ops->object_delete(
        c->meta, &c->arena, worker->bucket, fgw_bytes_str(HISTORY_NAMES[history->written[at].key]),
        version, NULL, &written, &c->error);
    MUST(err == FGW_OK || err == FGW_ERR_UNKNOWN_OUTCOME);
    if (err == FGW_OK) {
        history->written[at].deleted = true;
    } else {
        history->written[at].unsure = true;
    }
}

static void read_and_list(struct worker *worker)
{
    struct contract *c = &worker->own;
    struct fgw_object object;
    struct fgw_object_list list;
    struct fgw_list_query query = {.max = 100};
    enum fgw_err err = c->meta->ops->object_get(c->meta, &c->arena, worker->bucket, FGW_LIT("a"),
                                                LATEST, &object, &c->error);
    MUST(err == FGW_OK || err == FGW_ERR_NO_SUCH_KEY || err == FGW_ERR_UNKNOWN_OUTCOME);
    err = c->meta->ops->version_list(c->meta, &c->arena, worker->bucket, &query, &list, &c->error);
    MUST(err == FGW_OK || err == FGW_ERR_UNKNOWN_OUTCOME);
}

static void live_through(struct worker *worker)
{
    struct history *history = worker->shared;
    for (unsigned round = 0; round < worker->rounds; round++) {
        unsigned dice = (unsigned)fgw_rng_below(10);
        if (dice < 5 || history->count == 0) {
            write_version(worker, history, (unsigned)fgw_rng_below(HISTORY_KEYS));
        } else if (dice < 9) {
            delete_version(worker, history);
        } else {
            read_and_list(worker);
        }
        fgw_arena_reset(&worker->own.arena);
    }
}

static bool is_listed(const struct fgw_object_list *list, const struct fgw_id *id)
{
    bool found = false;
    for (size_t i = 0; i < list->count; i++) {
        bool same = fgw_id_eq(&list->entries[i].object.version_id, id);
        MUST(!same || !found); /* each once */
        found = found || same;
    }
    return found;
}

static void check_history(struct world *world, const struct fgw_bucket *bucket,
                          const struct history *history)
{
    struct contract *c = &world->c;
    struct fgw_list_query query = {.max = 1000};
    struct fgw_object_list list;
    size_t kept = 0;
    MUST_ANSWER(c->meta->ops->version_list(c->meta, &c->arena, bucket, &query, &list, &c->error),
                FGW_OK);
    MUST(!list.truncated);
    for (size_t i = 0; i < history->count; i++) {
        bool listed = is_listed(&list, &history->written[i].id);
        MUST(!(listed && history->written[i].deleted));
        MUST(listed || history->written[i].deleted || history->written[i].unsure);
        kept += listed;
    }
    (void)fprintf(stderr, "    %zu versions written, %u unknown, %zu left, %zu listed\n",
                  history->count, history->lost_puts, kept, list.count);
    MUST(list.count >= kept && list.count <= kept + history->lost_puts);
    for (size_t i = 0; i < list.count; i++) {
        bool first =
            i == 0 || !fgw_bytes_eq(list.entries[i - 1].object.key, list.entries[i].object.key);
        MUST(list.entries[i].object.latest == first);
    }
    bytes_are_there(world, bucket);
}

static void run_history(struct world *world, bool stormy, unsigned workers, unsigned rounds)
{
    struct contract *c = &world->c;
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
    struct history *history = fgw_xcalloc(1, sizeof *history);
    unsigned ok;
    unsigned unknown;
    if (stormy) {
        storm(world);
    }
    run_workers(world, &bucket, workers, rounds, live_through, history, &ok, &unknown);
    calm(world);
    check_history(world, &bucket, history);
    fgw_xfree(history);
}

static void case_versions_race(struct world *world)
{
    run_history(world, false, 9, times(60));
}

static void case_versions_in_a_storm(struct world *world)
{
    run_history(world, true, 6, times(40));
}

/* -- buckets ------------------------------------------------------------------------------------------- */

static void put_until_gone(struct worker *worker)
{
    struct contract *c = &worker->own;
    for (unsigned i = 0; i < worker->rounds; i++) {
        const char *key = fgw_arena_printf(&c->arena, "k%u-%u", worker->index, i);
        struct fgw_written written;
        enum fgw_err err = contract_put(c, worker->bucket, key, "body", NULL, NULL);
        if (err == FGW_ERR_NO_SUCH_BUCKET) {
            return;
        }
        MUST(err == FGW_OK || err == FGW_ERR_UNKNOWN_OUTCOME);
        worker->ok += err == FGW_OK;
        err = c->meta->ops->object_delete(c->meta, &c->arena, worker->bucket, fgw_bytes_str(key),
                                          LATEST, NULL, &written, &c->error);
        /* until this deletion the bucket cannot go, unless the put was never acknowledged */
        MUST(err == FGW_OK || err == FGW_ERR_UNKNOWN_OUTCOME || err == FGW_ERR_NO_SUCH_BUCKET);
    }
}

static void case_bucket_deletion_in_a_storm(struct world *world)
{
    struct contract *c = &world->c;
    for (unsigned round = 0; round < 4; round++) {
        struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
        struct fgw_bucket got;
        unsigned ok;
        unsigned unknown;
        world->faults = (struct faults){.lost_permille = 30,
                                        .unsent_permille = 20,
                                        .late_permille = 10,
                                        .pause_permille = 100,
                                        .pause_max_ms = 300};
        run_workers(world, &bucket, 3, 10, put_until_gone, NULL, &ok, &unknown);
        enum fgw_err err = FGW_ERR_UNKNOWN_OUTCOME;
        for (unsigned attempt = 0; err != FGW_OK && attempt < 20; attempt++) {
            err = c->meta->ops->bucket_delete(c->meta, &c->arena, &bucket, &c->error);
            MUST(err == FGW_OK || err == FGW_ERR_UNKNOWN_OUTCOME || err == FGW_ERR_NO_SUCH_BUCKET ||
                 err == FGW_ERR_BUCKET_NOT_EMPTY);
            if (err == FGW_ERR_NO_SUCH_BUCKET) {
                err = FGW_OK;
            }
            if (err == FGW_ERR_BUCKET_NOT_EMPTY) {
                struct fgw_object_list list;
                struct fgw_list_query query = {.max = 1000};
                MUST_ANSWER(c->meta->ops->object_list(c->meta, &c->arena, &bucket, &query, &list,
                                                      &c->error),
                            FGW_OK);
                for (size_t i = 0; i < list.count; i++) {
                    struct fgw_written written;
                    enum fgw_err deleted = c->meta->ops->object_delete(
                        c->meta, &c->arena, &bucket, list.entries[i].object.key, LATEST, NULL,
                        &written, &c->error);
                    MUST(deleted == FGW_OK || deleted == FGW_ERR_UNKNOWN_OUTCOME);
                }
            }
        }
        MUST_ANSWER(err, FGW_OK);
        calm(world);
        MUST_ANSWER(
            c->meta->ops->bucket_get(c->meta, &c->arena, bucket.name, true, &got, &c->error),
            FGW_ERR_NO_SUCH_BUCKET);
    }
}

/* A bucket whose deleter died half way is opened or removed by whoever meets it. */
static void case_bucket_take_over(struct world *world)
{
    struct contract *c = &world->c;
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_cql_result *result = NULL;
    MUST_ANSWER(contract_put(c, &bucket, "k", "body", NULL, NULL), FGW_OK);
    const char *text = fgw_arena_printf(
        &c->arena, "UPDATE %s.buckets SET state = 2, rev = 0x%032x WHERE name = '%.*s' IF EXISTS",
        world->keyspace.name, 7, FGW_FMT(bucket.name));
    MUST_ANSWER(fgw_cql_query(world->keyspace.client, text, FGW_CQL_LWT, NULL, &result, &c->error),
                FGW_OK);
    fgw_cql_result_free(result);
    uint64_t begun_ms = fgw_clock_boot_ms();
    MUST_ANSWER(contract_put(c, &bucket, "k2", "body", NULL, NULL), FGW_OK);
    MUST(fgw_clock_boot_ms() - begun_ms >= 10000);
    MUST_ANSWER(c->meta->ops->bucket_delete(c->meta, &c->arena, &bucket, &c->error),
                FGW_ERR_BUCKET_NOT_EMPTY);
}

/* -- multipart ------------------------------------------------------------------------------------------- */

struct upload_race {
    struct fgw_complete complete;
    struct fgw_id version;
    bool known;
};

static void complete_it(struct worker *worker)
{
    struct contract *c = &worker->own;
    struct upload_race *race = worker->shared;
    struct fgw_written written;
    enum fgw_err err = FGW_ERR_UNKNOWN_OUTCOME;
    for (unsigned attempt = 0; err == FGW_ERR_UNKNOWN_OUTCOME && attempt < 20; attempt++) {
        err =
            c->meta->ops->upload_complete(c->meta, &c->arena, &race->complete, &written, &c->error);
    }
    MUST_ANSWER(err, FGW_OK);
    MUST(!race->known || fgw_id_eq(&race->version, &written.version_id));
    race->version = written.version_id;
    race->known = true;
    worker->ok++;
}

/* An upload of one part, and what completes it. */
static struct fgw_upload begin_upload(struct contract *c, const struct fgw_bucket *bucket,
                                      const char *key, struct fgw_complete *out_complete)
{
    struct fgw_upload wanted = {.key = fgw_bytes_str(key)};
    struct fgw_upload upload;
    struct fgw_id id;
    struct fgw_part part = {.number = 1, .size = 4, .mtime_ms = 1};
    struct fgw_blob_staged *staged = fgw_arena_zalloc(&c->arena, sizeof *staged);
    MUST_ANSWER(c->meta->ops->upload_create(c->meta, &c->arena, bucket, &wanted, &id, &c->error),
                FGW_OK);
    MUST_ANSWER(
        c->meta->ops->upload_get(c->meta, &c->arena, bucket, wanted.key, &id, &upload, &c->error),
        FGW_OK);
    fgw_id_random(&part.attempt);
    contract_stage(c, bucket, wanted.key, &id, UINT64_C(1) << 48, "part", staged);
    part.extent = staged->extent;
    MUST_ANSWER(c->meta->ops->part_put(c->meta, &c->arena, &upload, &part, staged, &c->error),
                FGW_OK);
    *out_complete = (struct fgw_complete){.bucket = bucket,
                                          .upload_id = id,
                                          .upload_rev = upload.rev,
                                          .object = {.key = wanted.key,
                                                     .owner_id = id,
                                                     .etag = FGW_LIT("e-1"),
                                                     .size = 4,
                                                     .extents = &staged->extent,
                                                     .extent_count = 1}};
    return upload;
}

static void case_complete_once_in_a_storm(struct world *world)
{
    struct contract *c = &world->c;
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
    for (unsigned round = 0; round < 15; round++) {
        const char *key = fgw_arena_printf(&c->arena, "u%u", round);
        struct upload_race race = {0};
        unsigned ok;
        unsigned unknown;
        MUST_ANSWER(contract_put(c, &bucket, key, "old", NULL, NULL), FGW_OK);
        (void)begin_upload(c, &bucket, key, &race.complete);
        storm(world);
        run_workers(world, &bucket, 5, 1, complete_it, &race, &ok, &unknown);
        calm(world);
        struct fgw_list_query query = {.prefix = fgw_bytes_str(key), .max = 10};
        struct fgw_object_list list;
        MUST_ANSWER(
            c->meta->ops->version_list(c->meta, &c->arena, &bucket, &query, &list, &c->error),
            FGW_OK);
        size_t own = 0;
        for (size_t i = 0; i < list.count; i++) {
            own += fgw_bytes_eq_str(list.entries[i].object.key, key);
        }
        MUST(own == 2); /* the old one and one of ours */
    }
    bytes_are_there(world, &bucket);
}

/* Whoever completes dies behind each of its writes: another process lists the upload and can abort it,
 * or lists it not and has the object. */
static void case_complete_that_died(struct world *world)
{
    enum { WRITES = 6 };
    struct contract *c = &world->c;
    struct fgw_meta *other = world->backends[1];
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    unsigned listed = 0;
    for (unsigned writes = 0; writes < WRITES; writes++) {
        const char *key = fgw_arena_printf(&c->arena, "u%u", writes);
        struct fgw_complete complete;
        struct fgw_written written;
        struct fgw_object object;
        struct fgw_upload_list list;
        struct fgw_upload upload = begin_upload(c, &bucket, key, &complete);
        world->faults = (struct faults){.dies = true, .writes_left = writes};
        enum fgw_err ignored =
            c->meta->ops->upload_complete(c->meta, &c->arena, &complete, &written, &c->error);
        (void)ignored;
        world->faults = (struct faults){0};
        struct fgw_upload_list_query query = {.prefix = fgw_bytes_str(key), .max = 10};
        MUST_ANSWER(other->ops->upload_list(other, &c->arena, &bucket, &query, &list, &c->error),
                    FGW_OK);
        MUST_ANSWER(other->ops->object_get(other, &c->arena, &bucket, fgw_bytes_str(key), LATEST,
                                           &object, &c->error),
                    list.count == 0 ? FGW_OK : FGW_ERR_NO_SUCH_KEY);
        MUST_ANSWER(other->ops->upload_abort(other, &c->arena, &bucket, &upload, &c->error),
                    list.count == 0 ? FGW_ERR_NO_SUCH_UPLOAD : FGW_OK);
        listed += list.count == 1;
    }
    MUST(listed == 1); /* where nothing had been written */
    bytes_are_there(world, &bucket);
}

/* A Complete of as many parts as there can be, each with a checksum, is one row. */
static void case_ten_thousand_parts(struct world *world)
{
    enum { PARTS = 10000 };
    struct contract *c = &world->c;
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_upload wanted = {.key = FGW_LIT("big")};
    struct fgw_object_part *parts = fgw_arena_zalloc(&c->arena, PARTS * sizeof *parts);
    struct fgw_extent *extents = fgw_arena_zalloc(&c->arena, PARTS * sizeof *extents);
    struct fgw_object object;
    struct fgw_written written;
    struct fgw_id id;
    MUST_ANSWER(c->meta->ops->upload_create(c->meta, &c->arena, &bucket, &wanted, &id, &c->error),
                FGW_OK);
    for (unsigned i = 0; i < PARTS; i++) {
        parts[i] = (struct fgw_object_part){.number = i + 1, .size = 5 << 20};
        fgw_rng_fill(parts[i].md5, sizeof parts[i].md5);
        parts[i].checksum = (struct fgw_checksum_value){
            .algorithm = FGW_CHECKSUM_SHA256, .type = FGW_CHECKSUM_COMPOSITE, .len = 32};
        extents[i] = (struct fgw_extent){.number = (uint64_t)(i + 1) << 48 | 1,
                                         .size = 5 << 20,
                                         .first = {7, UINT64_C(1) << 31, 1 << 20, 0xdeadbeef}};
        fgw_rng_fill(extents[i].root.bytes, sizeof extents[i].root.bytes);
    }
    struct fgw_complete complete = {.bucket = &bucket,
                                    .upload_id = id,
                                    .object = {.key = wanted.key,
                                               .owner_id = id,
                                               .etag = FGW_LIT("e-10000"),
                                               .parts = parts,
                                               .part_count = PARTS,
                                               .extents = extents,
                                               .extent_count = PARTS}};
    MUST_ANSWER(c->meta->ops->upload_complete(c->meta, &c->arena, &complete, &written, &c->error),
                FGW_OK);
    MUST_ANSWER(c->meta->ops->object_get(c->meta, &c->arena, &bucket, wanted.key, LATEST, &object,
                                         &c->error),
                FGW_OK);
    MUST(object.part_count == PARTS && object.extent_count == PARTS);
    MUST(object.extents[0].first.group == 7);
    MUST(memcmp(object.extents[PARTS - 1].root.bytes, extents[PARTS - 1].root.bytes,
                sizeof extents[0].root.bytes) == 0);
}

/* -- main ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    void (*run)(struct world *world);
} CASES[] = {
    {"rounds", case_rounds},
    {"one winner in each of many races", case_one_winner_each},
    {"one winner in a storm", case_one_winner_in_a_storm},
    {"counter in a storm", case_counter_in_a_storm},
    {"versions race", case_versions_race},
    {"versions in a storm", case_versions_in_a_storm},
    {"bucket deletion in a storm", case_bucket_deletion_in_a_storm},
    {"bucket take-over", case_bucket_take_over},
    {"complete once in a storm", case_complete_once_in_a_storm},
    {"complete that died", case_complete_that_died},
    {"ten thousand parts", case_ten_thousand_parts},
    {"purge", case_purge},
    {"purge of everything", case_purge_of_everything},
    {"purge is claimed once", case_purge_is_claimed_once},
};

static const char *only;
static unsigned passed;

static void run(void *arg)
{
    struct world *world = arg;
    struct fgw_bytes secret = FGW_LIT("a secret of at least thirty-two characters");
    cql_keyspace_open(&world->keyspace);
    world->blobs = memory_blobs_new();
    struct fgw_meta_cql_options options = {.client = client,
                                           .client_context = world,
                                           .keyspace = world->keyspace.name,
                                           .blobs = world->blobs,
                                           .secrets = &secret,
                                           .secret_count = 1,
                                           .shards = 16,
                                           .fault = inject,
                                           .fault_context = world};
    for (unsigned i = 0; i < BACKENDS; i++) {
        world->backends[i] = fgw_meta_cql_new(&options);
    }
    world->c = (struct contract){.meta = world->backends[0], .blobs = world->blobs};
    fgw_arena_init(&world->c.arena, 64 * 1024);
    for (size_t i = 0; i < FGW_COUNT_OF(CASES); i++) {
        if (only != NULL && strstr(CASES[i].name, only) == NULL) {
            continue;
        }
        (void)fprintf(stderr, "[ RUN      ] %s\n", CASES[i].name);
        CASES[i].run(world);
        (void)fprintf(stderr, "[       OK ] %s\n", CASES[i].name);
        fgw_arena_reset(&world->c.arena);
        passed++;
    }
    fgw_arena_deinit(&world->c.arena);
    cql_keyspace_close(&world->keyspace);
    for (unsigned i = 0; i < BACKENDS; i++) {
        world->backends[i]->ops->free(world->backends[i]);
    }
    memory_blobs_free(world->blobs);
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    if (!cql_keyspace_configured()) {
        (void)fprintf(stderr, "FGW_TEST_CQL_HOSTS names no database: skipped\n");
        return 77;
    }
    struct world *world = fgw_xcalloc(1, sizeof *world);
    fgw_fiber_run_alone(run, world);
    fgw_xfree(world);
    (void)fprintf(stderr, "[==========] %u test(s) run.\n[  PASSED  ] %u test(s).\n", passed,
                  passed);
    return 0;
}
