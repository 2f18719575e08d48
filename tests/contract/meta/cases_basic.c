/* cases_basic.c: buckets, objects, conditions, identities. */
#include "contract/meta/meta_contract.h"

#include "base/check.h"
#include "base/rng.h"
#include "event/fiber.h"

#define OPS (c->meta->ops)

static const struct fgw_version LATEST = {.kind = FGW_VERSION_LATEST};

static bool reads_as(struct contract *c, const struct fgw_bucket *bucket, const char *key,
                     const char *body)
{
    struct fgw_object object;
    enum fgw_err err =
        OPS->object_get(c->meta, &c->arena, bucket, fgw_bytes_str(key), LATEST, &object, &c->error);
    if (err != FGW_OK || object.size != strlen(body) || object.extent_count != 1) {
        return false;
    }
    struct fgw_blob_reader *reader;
    MUST_ANSWER(fgw_blob_read_open(c->blobs, &object.extents[0], &reader, &c->error), FGW_OK);
    struct fgw_storage_run run = {.fd = -1};
    bool same = object.size == 0;
    if (!same) {
        MUST_ANSWER(fgw_blob_read_next(reader, 0, object.size, true, &run), FGW_OK);
        same = fgw_bytes_eq_str(run.bytes, body);
    }
    fgw_blob_read_close(reader);
    return same;
}

void case_buckets(struct contract *c)
{
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_bucket got;
    MUST_ANSWER(OPS->bucket_get(c->meta, &c->arena, bucket.name, true, &got, &c->error), FGW_OK);
    MUST(fgw_id_eq(&got.id, &bucket.id) && fgw_bytes_eq(got.owner_id, bucket.owner_id));
    MUST(got.created_ms == bucket.created_ms && got.shards >= 1);
    struct fgw_bucket again = bucket;
    again.owner_id = FGW_LIT("somebody else");
    MUST_ANSWER(OPS->bucket_create(c->meta, &c->arena, &again, &got, &c->error), FGW_ERR_EXISTS);
    MUST(fgw_bytes_eq(got.owner_id, bucket.owner_id));
    /* a change names the rev it saw */
    struct fgw_bucket changed = bucket;
    struct fgw_meta_pair document = {FGW_LIT("policy"), FGW_LIT("{}")};
    changed.versioning = FGW_VERSIONING_ENABLED;
    changed.documents = &document;
    changed.document_count = 1;
    MUST_ANSWER(OPS->bucket_update(c->meta, &c->arena, &changed, &c->error), FGW_OK);
    MUST_ANSWER(OPS->bucket_update(c->meta, &c->arena, &changed, &c->error), FGW_ERR_CONFLICT);
    MUST_ANSWER(OPS->bucket_get(c->meta, &c->arena, bucket.name, true, &got, &c->error), FGW_OK);
    MUST(got.versioning == FGW_VERSIONING_ENABLED && got.document_count == 1);
    /* not empty, then empty, then gone, then new under the same name */
    struct fgw_written written;
    MUST_ANSWER(contract_put(c, &got, "k", "body", NULL, &written), FGW_OK);
    MUST_ANSWER(OPS->bucket_delete(c->meta, &c->arena, &got, &c->error), FGW_ERR_BUCKET_NOT_EMPTY);
    struct fgw_version version = {FGW_VERSION_ID, written.version_id};
    MUST_ANSWER(OPS->object_delete(c->meta, &c->arena, &got, FGW_LIT("k"), version, NULL, &written,
                                   &c->error),
                FGW_OK);
    MUST_ANSWER(OPS->bucket_delete(c->meta, &c->arena, &got, &c->error), FGW_OK);
    MUST_ANSWER(OPS->bucket_get(c->meta, &c->arena, bucket.name, true, &got, &c->error),
                FGW_ERR_NO_SUCH_BUCKET);
    MUST_ANSWER(contract_put(c, &bucket, "k", "body", NULL, NULL), FGW_ERR_NO_SUCH_BUCKET);
    MUST_ANSWER(OPS->bucket_create(c->meta, &c->arena, &bucket, &got, &c->error), FGW_OK);
    MUST(!fgw_id_eq(&got.id, &bucket.id));
    MUST_ANSWER(contract_put(c, &bucket, "k", "body", NULL, NULL), FGW_ERR_NO_SUCH_BUCKET);
}

void case_bucket_list_pages(struct contract *c)
{
    struct fgw_bytes owner =
        fgw_bytes_str(fgw_arena_printf(&c->arena, "o-%llx", (unsigned long long)fgw_rng_u64()));
    for (unsigned i = 0; i < 7; i++) {
        struct fgw_bucket made;
        struct fgw_bucket wanted = {
            .name = fgw_bytes_str(fgw_arena_printf(&c->arena, "%.*s-%u", FGW_FMT(owner), i)),
            .owner_id = owner};
        MUST_ANSWER(OPS->bucket_create(c->meta, &c->arena, &wanted, &made, &c->error), FGW_OK);
    }
    struct fgw_bytes after = {NULL, 0};
    size_t seen = 0;
    bool truncated = true;
    while (truncated) {
        struct fgw_bucket *buckets;
        size_t count;
        MUST_ANSWER(OPS->bucket_list(c->meta, &c->arena, owner, after, 3, &buckets, &count,
                                     &truncated, &c->error),
                    FGW_OK);
        MUST(count <= 3 && (!truncated || count == 3));
        for (size_t i = 0; i < count; i++) {
            MUST(fgw_bytes_cmp(buckets[i].name, after) > 0 && buckets[i].created_ms > 0);
            after = buckets[i].name;
        }
        seen += count;
    }
    MUST(seen == 7);
}

void case_objects(struct contract *c)
{
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_object object;
    struct fgw_written first;
    struct fgw_written second;
    MUST_ANSWER(
        OPS->object_get(c->meta, &c->arena, &bucket, FGW_LIT("k"), LATEST, &object, &c->error),
        FGW_ERR_NO_SUCH_KEY);
    MUST_ANSWER(contract_put(c, &bucket, "k", "one", NULL, &first), FGW_OK);
    MUST(first.is_null && reads_as(c, &bucket, "k", "one"));
    MUST_ANSWER(contract_put(c, &bucket, "k", "second", NULL, &second), FGW_OK);
    MUST(memcmp(&second.version_id, &first.version_id, sizeof first.version_id) > 0);
    MUST(second.mtime_ms > first.mtime_ms && reads_as(c, &bucket, "k", "second"));
    MUST_ANSWER(contract_put(c, &bucket, "empty", "", NULL, NULL), FGW_OK);
    MUST(reads_as(c, &bucket, "empty", ""));
    for (int i = 0; i < 2; i++) {
        MUST_ANSWER(OPS->object_delete(c->meta, &c->arena, &bucket, FGW_LIT("k"), LATEST, NULL,
                                       &first, &c->error),
                    FGW_OK);
        MUST(!first.delete_marker);
        MUST_ANSWER(
            OPS->object_get(c->meta, &c->arena, &bucket, FGW_LIT("k"), LATEST, &object, &c->error),
            FGW_ERR_NO_SUCH_KEY);
    }
    MUST_ANSWER(contract_put(c, &bucket, "k", "third", NULL, NULL), FGW_OK);
    MUST(reads_as(c, &bucket, "k", "third"));
}

void case_odd_keys(struct contract *c)
{
    static const char *const KEYS[] = {"/",
                                       "//",
                                       "a/",
                                       "a//b",
                                       " ",
                                       "\x01",
                                       "\xc3\xbc",
                                       "a\xf0\x9f\x98\x80",
                                       "\xef\xbf\xbf",
                                       "..",
                                       "%2F",
                                       "a+b",
                                       "a b",
                                       "'\"<>&"};
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
    char *longest = fgw_arena_alloc(&c->arena, FGW_META_KEY_MAX + 1);
    memset(longest, 'x', FGW_META_KEY_MAX);
    longest[FGW_META_KEY_MAX] = '\0';
    for (size_t i = 0; i < FGW_COUNT_OF(KEYS); i++) {
        MUST_ANSWER(contract_put(c, &bucket, KEYS[i], "old", NULL, NULL), FGW_OK);
        MUST_ANSWER(contract_put(c, &bucket, KEYS[i], KEYS[i], NULL, NULL), FGW_OK);
    }
    MUST_ANSWER(contract_put(c, &bucket, longest, longest, NULL, NULL), FGW_OK);
    for (size_t i = 0; i < FGW_COUNT_OF(KEYS); i++) {
        MUST(reads_as(c, &bucket, KEYS[i], KEYS[i]));
    }
    MUST(reads_as(c, &bucket, longest, longest));
    struct fgw_list_query query = {.max = 1000};
    struct fgw_object_list list;
    MUST_ANSWER(OPS->object_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == FGW_COUNT_OF(KEYS) + 1);
    for (size_t i = 1; i < list.count; i++) {
        MUST(fgw_bytes_cmp(list.entries[i - 1].object.key, list.entries[i].object.key) < 0);
    }
    MUST_ANSWER(OPS->version_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == 2 * FGW_COUNT_OF(KEYS) + 1);
}

void case_conditions(struct contract *c)
{
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_conditions create = {.if_none_match_any = true};
    struct fgw_conditions match = {.if_match = contract_etag(c, "one")};
    struct fgw_written written;
    MUST_ANSWER(contract_put(c, &bucket, "k", "one", &match, NULL), FGW_ERR_NO_SUCH_KEY);
    MUST_ANSWER(contract_put(c, &bucket, "k", "one", &create, NULL), FGW_OK);
    MUST_ANSWER(contract_put(c, &bucket, "k", "two", &create, NULL), FGW_ERR_PRECONDITION_FAILED);
    MUST(reads_as(c, &bucket, "k", "one"));
    MUST_ANSWER(contract_put(c, &bucket, "k", "two", &match, NULL), FGW_OK);
    MUST_ANSWER(contract_put(c, &bucket, "k", "three", &match, NULL), FGW_ERR_PRECONDITION_FAILED);
    MUST_ANSWER(OPS->object_delete(c->meta, &c->arena, &bucket, FGW_LIT("k"), LATEST, &match,
                                   &written, &c->error),
                FGW_ERR_PRECONDITION_FAILED);
    MUST(reads_as(c, &bucket, "k", "two"));
    match.if_match = contract_etag(c, "two");
    MUST_ANSWER(OPS->object_delete(c->meta, &c->arena, &bucket, FGW_LIT("k"), LATEST, &match,
                                   &written, &c->error),
                FGW_OK);
    MUST_ANSWER(OPS->object_delete(c->meta, &c->arena, &bucket, FGW_LIT("k"), LATEST, &match,
                                   &written, &c->error),
                FGW_OK);
}

/* -- concurrency ------------------------------------------------------------------------------- */

struct racer {
    struct contract own;
    const struct fgw_bucket *bucket;
    struct fgw_wait *done;
    unsigned rounds;
    unsigned wins;
};

static void racer_init(struct racer *racer, struct contract *c, const struct fgw_bucket *bucket,
                       struct fgw_wait *done)
{
    *racer =
        (struct racer){.own = {.meta = c->meta, .blobs = c->blobs}, .bucket = bucket, .done = done};
    fgw_arena_init(&racer->own.arena, 0);
}

static void create_once(void *arg)
{
    struct racer *racer = arg;
    struct fgw_conditions create = {.if_none_match_any = true};
    enum fgw_err err = contract_put(&racer->own, racer->bucket, "lock", "mine", &create, NULL);
    MUST(err == FGW_OK || err == FGW_ERR_PRECONDITION_FAILED);
    racer->wins += err == FGW_OK;
    fgw_wait_signal(racer->done);
}

enum { RACERS = 24, ROUNDS = 5 };

void case_one_winner(struct contract *c)
{
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    for (int round = 0; round < ROUNDS; round++) {
        struct racer *racers = fgw_xcalloc(RACERS, sizeof *racers);
        struct fgw_wait done;
        unsigned wins = 0;
        fgw_wait_init(&done, RACERS);
        for (size_t i = 0; i < RACERS; i++) {
            racer_init(&racers[i], c, &bucket, &done);
            fgw_fiber_spawn(fgw_loop_current(), create_once, &racers[i]);
        }
        fgw_wait_for(&done);
        for (size_t i = 0; i < RACERS; i++) {
            wins += racers[i].wins;
            fgw_arena_deinit(&racers[i].own.arena);
        }
        fgw_xfree(racers);
        MUST(wins == 1);
        struct fgw_written written;
        MUST_ANSWER(OPS->object_delete(c->meta, &c->arena, &bucket, FGW_LIT("lock"), LATEST, NULL,
                                       &written, &c->error),
                    FGW_OK);
    }
}

static void increment(void *arg)
{
    struct racer *racer = arg;
    struct contract *c = &racer->own;
    while (racer->wins < racer->rounds) {
        struct fgw_object object;
        MUST_ANSWER(OPS->object_get(c->meta, &c->arena, racer->bucket, FGW_LIT("n"), LATEST,
                                    &object, &c->error),
                    FGW_OK);
        struct fgw_conditions match = {.if_match = object.etag};
        /* the size is the counter */
        char *body = fgw_arena_alloc(&c->arena, object.size + 2);
        memset(body, 'n', object.size + 1);
        body[object.size + 1] = '\0';
        enum fgw_err err = contract_put(c, racer->bucket, "n", body, &match, NULL);
        MUST(err == FGW_OK || err == FGW_ERR_PRECONDITION_FAILED);
        racer->wins += err == FGW_OK;
    }
    fgw_wait_signal(racer->done);
}

void case_counter(struct contract *c)
{
    enum { COUNTERS = 6, EACH = 5 };
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct racer racers[COUNTERS];
    struct fgw_wait done;
    struct fgw_object object;
    MUST_ANSWER(contract_put(c, &bucket, "n", "", NULL, NULL), FGW_OK);
    fgw_wait_init(&done, COUNTERS);
    for (size_t i = 0; i < COUNTERS; i++) {
        racer_init(&racers[i], c, &bucket, &done);
        racers[i].rounds = EACH;
        fgw_fiber_spawn(fgw_loop_current(), increment, &racers[i]);
    }
    fgw_wait_for(&done);
    for (size_t i = 0; i < COUNTERS; i++) {
        fgw_arena_deinit(&racers[i].own.arena);
    }
    MUST_ANSWER(
        OPS->object_get(c->meta, &c->arena, &bucket, FGW_LIT("n"), LATEST, &object, &c->error),
        FGW_OK);
    MUST(object.size == COUNTERS * EACH);
}

/* A database that is slow may answer that it is away, or that a write may have been applied (a put
 * that took longer than a bucket is remembered cannot tell while that is being deleted): a client
 * asks again. Not for ever. */
static bool ask_again(struct contract *c, enum fgw_err err, unsigned *times)
{
    if (err != FGW_ERR_UNAVAILABLE && err != FGW_ERR_UNKNOWN_OUTCOME) {
        return false;
    }
    (void)fprintf(stderr, "asked again after %s: %s\n", fgw_err_name(err),
                  fgw_error_message(&c->error));
    MUST(++*times < 10);
    return true;
}

static void put_until_gone(void *arg)
{
    struct racer *racer = arg;
    struct contract *c = &racer->own;
    unsigned times = 0;
    for (unsigned i = 0;; i++) {
        /* a key of its own: the other racer's deletion would make room for the bucket's */
        const char *key = fgw_arena_printf(&c->arena, "k%u-%p", i, arg);
        enum fgw_err err = contract_put(c, racer->bucket, key, "body", NULL, NULL);
        if (err == FGW_ERR_NO_SUCH_BUCKET) {
            break;
        }
        bool taken = !ask_again(c, err, &times);
        MUST_ANSWER(taken ? err : FGW_OK, FGW_OK);
        racer->wins += taken;
        struct fgw_written written;
        unsigned sure = times;
        do {
            err = OPS->object_delete(c->meta, &c->arena, racer->bucket, fgw_bytes_str(key), LATEST,
                                     NULL, &written, &c->error);
        } while (ask_again(c, err, &times));
        /* a call that could not tell may have deleted the key, and the bucket is empty then */
        bool may_be_gone = !taken || times > sure;
        MUST_ANSWER(may_be_gone && err == FGW_ERR_NO_SUCH_BUCKET ? FGW_OK : err, FGW_OK);
        racer->wins -= taken;
    }
    fgw_wait_signal(racer->done);
}

/* No put that was answered may be lost in a bucket that was deleted. */
void case_delete_bucket_race(struct contract *c)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
        struct racer racers[2];
        struct fgw_wait done;
        fgw_wait_init(&done, 2);
        for (size_t i = 0; i < 2; i++) {
            racer_init(&racers[i], c, &bucket, &done);
            fgw_fiber_spawn(fgw_loop_current(), put_until_gone, &racers[i]);
        }
        enum fgw_err err = FGW_ERR_BUCKET_NOT_EMPTY;
        unsigned times = 0;
        while (err == FGW_ERR_BUCKET_NOT_EMPTY || ask_again(c, err, &times)) {
            fgw_fiber_yield();
            err = OPS->bucket_delete(c->meta, &c->arena, &bucket, &c->error);
        }
        bool was_gone =
            times > 0 && err == FGW_ERR_NO_SUCH_BUCKET; /* by the call that could not tell */
        MUST_ANSWER(was_gone ? FGW_OK : err, FGW_OK);
        fgw_wait_for(&done);
        for (size_t i = 0; i < 2; i++) {
            MUST(racers[i].wins == 0);
            fgw_arena_deinit(&racers[i].own.arena);
        }
    }
}

/* -- the rest ----------------------------------------------------------------------------------- */

void case_update_object(struct contract *c)
{
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_object object;
    struct fgw_object again;
    struct fgw_meta_pair tag = {FGW_LIT("colour"), FGW_LIT("blue")};
    MUST_ANSWER(contract_put(c, &bucket, "k", "one", NULL, NULL), FGW_OK);
    MUST_ANSWER(
        OPS->object_get(c->meta, &c->arena, &bucket, FGW_LIT("k"), LATEST, &object, &c->error),
        FGW_OK);
    object.tags = &tag;
    object.tag_count = 1;
    object.acl = FGW_ACL_PUBLIC_READ;
    MUST_ANSWER(OPS->object_update(c->meta, &c->arena, &bucket, &object, &c->error), FGW_OK);
    MUST_ANSWER(OPS->object_update(c->meta, &c->arena, &bucket, &object, &c->error),
                FGW_ERR_CONFLICT);
    MUST_ANSWER(
        OPS->object_get(c->meta, &c->arena, &bucket, FGW_LIT("k"), LATEST, &again, &c->error),
        FGW_OK);
    MUST(again.tag_count == 1 && again.acl == FGW_ACL_PUBLIC_READ);
    MUST(again.mtime_ms == object.mtime_ms && fgw_id_eq(&again.version_id, &object.version_id));
    MUST(reads_as(c, &bucket, "k", "one"));
}

void case_blob_live(struct contract *c)
{
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
    struct fgw_object object;
    struct fgw_storage_owner owner = {.key = FGW_LIT("k")};
    struct fgw_blob_live live = {0};
    MUST_ANSWER(contract_put(c, &bucket, "k", "one", NULL, NULL), FGW_OK);
    MUST_ANSWER(
        OPS->object_get(c->meta, &c->arena, &bucket, FGW_LIT("k"), LATEST, &object, &c->error),
        FGW_OK);
    memcpy(owner.bucket_id, bucket.id.bytes, sizeof owner.bucket_id);
    memcpy(owner.owner_id, object.owner_id.bytes, sizeof owner.owner_id);
    const struct fgw_cid *root = &object.extents[0].root;
    MUST_ANSWER(OPS->blob_live(c->meta, &c->arena, &owner, root, &live), FGW_OK);
    MUST(live.live && !live.any_set && live.count == 1 && live.sets[0] == object.extents[0].set);
    /* still live as a noncurrent version; not once that is deleted */
    MUST_ANSWER(contract_put(c, &bucket, "k", "two", NULL, NULL), FGW_OK);
    MUST_ANSWER(OPS->blob_live(c->meta, &c->arena, &owner, root, &live), FGW_OK);
    MUST(live.live);
    struct fgw_version version = {FGW_VERSION_ID, object.version_id};
    struct fgw_written written;
    MUST_ANSWER(OPS->object_delete(c->meta, &c->arena, &bucket, FGW_LIT("k"), version, NULL,
                                   &written, &c->error),
                FGW_OK);
    MUST_ANSWER(OPS->blob_live(c->meta, &c->arena, &owner, root, &live), FGW_OK);
    MUST(!live.live && live.count == 0);
}

void case_identities(struct contract *c)
{
    const char *unique = fgw_arena_printf(&c->arena, "%llx", (unsigned long long)fgw_rng_u64());
    struct fgw_user user = {.name = fgw_bytes_str(fgw_arena_printf(&c->arena, "user-%s", unique)),
                            .canonical_id = FGW_LIT("canonical"),
                            .email = FGW_LIT("a@b.c"),
                            .display_name = FGW_LIT("Display"),
                            .policy = FGW_POLICY_READONLY,
                            .created_ms = 5};
    struct fgw_access_key key = {.access_key =
                                     fgw_bytes_str(fgw_arena_printf(&c->arena, "AK%s", unique)),
                                 .secret_key = FGW_LIT("secret-secret-secret"),
                                 .user_name = user.name,
                                 .created_ms = 6};
    struct fgw_access_key got_key;
    struct fgw_user got_user;
    struct fgw_access_key *keys;
    size_t count;
    MUST_ANSWER(OPS->key_get(c->meta, &c->arena, key.access_key, &got_key, &got_user, &c->error),
                FGW_ERR_INVALID_ACCESS_KEY_ID);
    MUST_ANSWER(OPS->key_put(c->meta, &c->arena, &key, true, &c->error), FGW_ERR_NOT_FOUND);
    MUST_ANSWER(OPS->user_put(c->meta, &c->arena, &user, true, &c->error), FGW_OK);
    MUST_ANSWER(OPS->user_put(c->meta, &c->arena, &user, true, &c->error), FGW_ERR_EXISTS);
    MUST_ANSWER(OPS->key_put(c->meta, &c->arena, &key, true, &c->error), FGW_OK);
    MUST_ANSWER(OPS->key_put(c->meta, &c->arena, &key, true, &c->error), FGW_ERR_EXISTS);
    MUST_ANSWER(OPS->key_get(c->meta, &c->arena, key.access_key, &got_key, &got_user, &c->error),
                FGW_OK);
    MUST(fgw_bytes_eq(got_key.secret_key, key.secret_key));
    MUST(fgw_bytes_eq(got_user.name, user.name) && got_user.policy == FGW_POLICY_READONLY);
    MUST_ANSWER(OPS->key_list(c->meta, &c->arena, user.name, &keys, &count, &c->error), FGW_OK);
    MUST(count == 1 && fgw_bytes_eq(keys[0].access_key, key.access_key));
    key.disabled = true;
    MUST_ANSWER(OPS->key_put(c->meta, &c->arena, &key, false, &c->error), FGW_OK);
    MUST_ANSWER(OPS->key_get(c->meta, &c->arena, key.access_key, &got_key, &got_user, &c->error),
                FGW_ERR_INVALID_ACCESS_KEY_ID);
    MUST_ANSWER(OPS->user_remove(c->meta, &c->arena, user.name, &c->error), FGW_OK);
    MUST_ANSWER(OPS->key_list(c->meta, &c->arena, user.name, &keys, &count, &c->error), FGW_OK);
    MUST(count == 0);
    MUST_ANSWER(OPS->user_get(c->meta, &c->arena, user.name, &got_user, &c->error),
                FGW_ERR_NOT_FOUND);
}
