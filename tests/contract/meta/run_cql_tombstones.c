/* run_cql_tombstones.c: lists on a database that refuses to pass over many removed rows
 * (FGW_TEST_CQL_HOSTS; tests/integration/test_tombstones.py starts one whose limit is 40). Rows are
 * removed for good by the purge of a later day. Holds on any other database too. */
#include "contract/meta/meta_contract.h"

#include "base/clock.h"
#include "contract/meta/cql_keyspace.h"
#include "contract/meta/memory_blobs.h"
#include "event/fiber.h"
#include "meta/cql/cql.h"

enum { HOUR_MS = 3600 * 1000 };
static const struct fgw_version LATEST = {.kind = FGW_VERSION_LATEST};

static struct fgw_meta_cql_purged purge_at(struct contract *c, int64_t later_ms)
{
    struct fgw_meta_cql_purge purge = {0};
    struct fgw_meta_cql_purged done;
    fgw_clock_set_wall_offset_ms(later_ms);
    MUST_ANSWER(fgw_meta_cql_purge(c->meta, &purge, &done, &c->error), FGW_OK);
    fgw_clock_set_wall_offset_ms(0);
    return done;
}

/* Lists over rows that were removed lately: a server may refuse to pass more than so many of them
 * (tests/integration/test_tombstones.py runs this on one that does). */
static void case_tombstones(struct contract *c)
{
    enum { KEYS = 300 };
    struct fgw_bucket wanted = {
        .name = FGW_LIT("tombstones"), .owner_id = FGW_LIT("owner"), .shards = 1};
    struct fgw_bucket bucket;
    struct fgw_written ignored;
    MUST_ANSWER(c->meta->ops->bucket_create(c->meta, &c->arena, &wanted, &bucket, &c->error),
                FGW_OK);
    for (unsigned i = 0; i < KEYS; i++) {
        const char *key = fgw_arena_printf(&c->arena, "some/long/prefix/%06u", i);
        MUST_ANSWER(contract_put(c, &bucket, key, "x", NULL, NULL), FGW_OK);
        if (i % 100 != 50) {
            MUST_ANSWER(c->meta->ops->object_delete(c->meta, &c->arena, &bucket, fgw_bytes_str(key),
                                                    LATEST, NULL, &ignored, &c->error),
                        FGW_OK);
        }
    }
    MUST_ANSWER(contract_put(c, &bucket, "zzz", "x", NULL, NULL), FGW_OK);
    MUST(purge_at(c, HOUR_MS).heads >= KEYS - 3);
    for (unsigned max = 1; max <= 1000; max += 999) {
        struct fgw_list_query query = {.max = max};
        struct fgw_object_list list = {.truncated = true};
        size_t seen = 0;
        while (list.truncated) {
            MUST_ANSWER(
                c->meta->ops->object_list(c->meta, &c->arena, &bucket, &query, &list, &c->error),
                FGW_OK);
            seen += list.count;
            query.after = list.count > 0 ? list.entries[list.count - 1].object.key : query.after;
        }
        MUST(seen == 4);
    }
}

static struct fgw_bucket bucket_of_one_shard(struct contract *c, const char *name,
                                             enum fgw_versioning versioning)
{
    struct fgw_bucket wanted = {
        .name = fgw_bytes_str(name), .owner_id = FGW_LIT("owner"), .shards = 1};
    struct fgw_bucket bucket;
    MUST_ANSWER(c->meta->ops->bucket_create(c->meta, &c->arena, &wanted, &bucket, &c->error),
                FGW_OK);
    if (versioning != FGW_VERSIONING_NEVER) {
        bucket.versioning = versioning;
        MUST_ANSWER(c->meta->ops->bucket_update(c->meta, &c->arena, &bucket, &c->error), FGW_OK);
    }
    return bucket;
}

/* Versions of a list in pages of `max`, each held to be older than the one before of its key. */
static size_t count_versions(struct contract *c, const struct fgw_bucket *bucket, unsigned max)
{
    struct fgw_list_query query = {.max = max};
    struct fgw_object_list list = {.truncated = true};
    size_t seen = 0;
    while (list.truncated) {
        MUST_ANSWER(
            c->meta->ops->version_list(c->meta, &c->arena, bucket, &query, &list, &c->error),
            FGW_OK);
        for (size_t i = 0; i < list.count; i++) {
            const struct fgw_object *object = &list.entries[i].object;
            if (query.has_after_version) {
                int order = fgw_bytes_cmp(query.after, object->key);
                MUST(order < 0 ||
                     (order == 0 && memcmp(&query.after_version.id, &object->version_id,
                                           sizeof object->version_id) > 0));
            }
            query.after = object->key;
            query.has_after_version = true;
            query.after_version = (struct fgw_version){FGW_VERSION_ID, object->version_id};
        }
        seen += list.count;
    }
    return seen;
}

/* The same of versions: a page ends in the middle of a key, and removed rows of others follow. */
static void case_tombstones_of_versions(struct contract *c)
{
    enum { KEYS = 40, VERSIONS = 7, KEPT = 30 };
    struct fgw_bucket bucket =
        bucket_of_one_shard(c, "tombstones-of-versions", FGW_VERSIONING_ENABLED);
    for (unsigned i = 0; i < KEYS; i++) {
        bool kept = i % 20 == 10;
        const char *key = fgw_arena_printf(&c->arena, "some/long/prefix/%06u", i);
        struct fgw_written written[KEPT];
        struct fgw_written ignored;
        for (unsigned j = 0; j < (kept ? KEPT : VERSIONS); j++) {
            MUST_ANSWER(contract_put(c, &bucket, key, "x", NULL, &written[j]), FGW_OK);
        }
        for (unsigned j = 0; !kept && j < VERSIONS - 1; j++) { /* the newest stays */
            struct fgw_version version = {FGW_VERSION_ID, written[j].version_id};
            MUST_ANSWER(c->meta->ops->object_delete(c->meta, &c->arena, &bucket, fgw_bytes_str(key),
                                                    version, NULL, &ignored, &c->error),
                        FGW_OK);
        }
    }
    MUST(purge_at(c, INT64_C(25) * HOUR_MS).versions >= (KEYS - 2) * (VERSIONS - 1));
    size_t all = KEYS - 2 + 2 * KEPT;
    MUST(count_versions(c, &bucket, 1000) == all);
    MUST(count_versions(c, &bucket, 7) == all);
    MUST(count_versions(c, &bucket, 1) == all);
}

static size_t count_uploads(struct contract *c, const struct fgw_bucket *bucket, unsigned max)
{
    struct fgw_upload_list_query query = {.max = max};
    struct fgw_upload_list list = {.truncated = true};
    size_t seen = 0;
    while (list.truncated) {
        MUST_ANSWER(c->meta->ops->upload_list(c->meta, &c->arena, bucket, &query, &list, &c->error),
                    FGW_OK);
        seen += list.count;
        if (list.count > 0) {
            query.key_marker = list.entries[list.count - 1].upload.key;
            query.upload_id_marker = list.entries[list.count - 1].upload.id;
            query.has_upload_id_marker = true;
        }
    }
    return seen;
}

/* The same of uploads, many of one key among them. */
static void case_tombstones_of_uploads(struct contract *c)
{
    enum { KEYS = 200, SAME = 20 };
    struct fgw_bucket bucket =
        bucket_of_one_shard(c, "tombstones-of-uploads", FGW_VERSIONING_NEVER);
    size_t open = 0;
    for (unsigned i = 0; i < KEYS + SAME; i++) {
        struct fgw_upload wanted = {
            .key = fgw_bytes_str(fgw_arena_printf(&c->arena, "k%06u", i < KEYS ? i : 30))};
        struct fgw_upload upload;
        struct fgw_id id;
        MUST_ANSWER(
            c->meta->ops->upload_create(c->meta, &c->arena, &bucket, &wanted, &id, &c->error),
            FGW_OK);
        if (i >= KEYS || i % 50 == 30) {
            open++;
            continue;
        }
        MUST_ANSWER(c->meta->ops->upload_get(c->meta, &c->arena, &bucket, wanted.key, &id, &upload,
                                             &c->error),
                    FGW_OK);
        MUST_ANSWER(c->meta->ops->upload_abort(c->meta, &c->arena, &bucket, &upload, &c->error),
                    FGW_OK);
    }
    MUST(count_uploads(c, &bucket, 1000) == open);
    MUST(count_uploads(c, &bucket, 6) == open);
}

/* One key whose versions were removed by the hundred: lists, versions by id, the deletion of the newest
 * and the liveness of a blob look for what is left between them. */
static void case_tombstones_of_one_key(struct contract *c)
{
    enum { VERSIONS = 240, EACH = 80 };
    struct fgw_bucket bucket =
        bucket_of_one_shard(c, "tombstones-of-one-key", FGW_VERSIONING_ENABLED);
    struct fgw_bytes key = FGW_LIT("some/long/prefix/key");
    struct fgw_written written[VERSIONS + 1];
    struct fgw_written ignored;
    struct fgw_object object;
    MUST_ANSWER(contract_put(c, &bucket, "some/long/prefix/a", "x", NULL, NULL), FGW_OK);
    for (unsigned i = 0; i <= VERSIONS; i++) {
        MUST_ANSWER(contract_put(c, &bucket, "some/long/prefix/key", "x", NULL, &written[i]),
                    FGW_OK);
    }
    MUST_ANSWER(contract_put(c, &bucket, "some/long/prefix/z", "x", NULL, NULL), FGW_OK);
    for (unsigned i = 1; i < VERSIONS; i++) { /* left: 0, EACH, 2 EACH, and the newest */
        struct fgw_version version = {FGW_VERSION_ID, written[i].version_id};
        if (i % EACH != 0) {
            MUST_ANSWER(c->meta->ops->object_delete(c->meta, &c->arena, &bucket, key, version, NULL,
                                                    &ignored, &c->error),
                        FGW_OK);
        }
    }
    MUST(purge_at(c, INT64_C(25) * HOUR_MS).versions >= VERSIONS - VERSIONS / EACH);
    size_t all = 2 + VERSIONS / EACH + 1;
    MUST(count_versions(c, &bucket, 1000) == all);
    MUST(count_versions(c, &bucket, 2) == all);
    MUST(count_versions(c, &bucket, 1) == all);
    for (unsigned i = VERSIONS / EACH; i > 0; i--) { /* each deletion looks for the next one */
        struct fgw_version newest = {
            FGW_VERSION_ID, written[i == VERSIONS / EACH ? VERSIONS : i * EACH].version_id};
        MUST_ANSWER(c->meta->ops->object_delete(c->meta, &c->arena, &bucket, key, newest, NULL,
                                                &ignored, &c->error),
                    FGW_OK);
        MUST_ANSWER(
            c->meta->ops->object_get(c->meta, &c->arena, &bucket, key, LATEST, &object, &c->error),
            FGW_OK);
        MUST(fgw_id_eq(&object.version_id, &written[(i - 1) * EACH].version_id));
    }
    struct fgw_storage_owner owner = {.key = key};
    struct fgw_cid root = {0};
    struct fgw_blob_live live = {0};
    memcpy(owner.bucket_id, bucket.id.bytes, sizeof owner.bucket_id);
    MUST_ANSWER(c->meta->ops->blob_live(c->meta, &c->arena, &owner, &root, &live), FGW_OK);
    MUST(!live.live);
}

/* The same of uploads of one key, before and behind which there are others. */
static void case_tombstones_of_uploads_of_one_key(struct contract *c)
{
    enum { UPLOADS = 150 };
    struct fgw_bucket bucket =
        bucket_of_one_shard(c, "tombstones-of-one-upload-key", FGW_VERSIONING_NEVER);
    for (unsigned i = 0; i < UPLOADS; i++) {
        bool kept = i % 50 == 25;
        const char *key = i == 25 ? "a" : i == 75 ? "zz" : "some/key";
        struct fgw_upload wanted = {.key = fgw_bytes_str(key)};
        struct fgw_upload upload;
        struct fgw_id id;
        MUST_ANSWER(
            c->meta->ops->upload_create(c->meta, &c->arena, &bucket, &wanted, &id, &c->error),
            FGW_OK);
        if (!kept) {
            MUST_ANSWER(c->meta->ops->upload_get(c->meta, &c->arena, &bucket, wanted.key, &id,
                                                 &upload, &c->error),
                        FGW_OK);
            MUST_ANSWER(c->meta->ops->upload_abort(c->meta, &c->arena, &bucket, &upload, &c->error),
                        FGW_OK);
        }
    }
    MUST(count_uploads(c, &bucket, 1000) == 3);
    MUST(count_uploads(c, &bucket, 1) == 3);
}

static struct fgw_cql_client *client(void *context)
{
    return ((struct cql_keyspace *)context)->client;
}

static void run(void *arg)
{
    struct cql_keyspace keyspace;
    struct fgw_bytes secret = FGW_LIT("a secret of at least thirty-two characters");
    struct contract c = {0};
    (void)arg;
    cql_keyspace_open(&keyspace);
    c.blobs = memory_blobs_new();
    struct fgw_meta_cql_options options = {.client = client,
                                           .client_context = &keyspace,
                                           .keyspace = keyspace.name,
                                           .blobs = c.blobs,
                                           .secrets = &secret,
                                           .secret_count = 1};
    c.meta = fgw_meta_cql_new(&options);
    fgw_error_init(&c.error);
    fgw_arena_init(&c.arena, 0);
    case_tombstones(&c);
    case_tombstones_of_versions(&c);
    case_tombstones_of_uploads(&c);
    case_tombstones_of_one_key(&c);
    case_tombstones_of_uploads_of_one_key(&c);
    fgw_arena_deinit(&c.arena);
    cql_keyspace_close(&keyspace);
    c.meta->ops->free(c.meta);
    memory_blobs_free(c.blobs);
}

int main(void)
{
    if (!cql_keyspace_configured()) {
        (void)fprintf(stderr, "FGW_TEST_CQL_HOSTS names no database: skipped\n");
        return 77;
    }
    fgw_fiber_run_alone(run, NULL);
    return 0;
}
