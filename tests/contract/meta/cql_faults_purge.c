/* cql_faults_purge.c: what the purge takes away and what it leaves, and that one process does it. See
 * cql_faults.h. */
#include "contract/meta/cql_faults.h"

#include "base/check.h"
#include "base/clock.h"
#include "contract/meta/memory_blobs.h"
#include "meta/cql/cql.h"

static const struct fgw_version LATEST = {.kind = FGW_VERSION_LATEST};

static size_t rows_in(struct world *world, const struct fgw_bucket *bucket)
{
    struct contract *c = &world->c;
    struct fgw_cql_options options = {.page_size = 1000};
    size_t rows = 0;
    bool more = true;
    const char *text =
        fgw_arena_printf(&c->arena, "SELECT bucket_id, key FROM %s.objects", world->keyspace.name);
    while (more) {
        struct fgw_cql_result *result = NULL;
        MUST_ANSWER(
            fgw_cql_query(world->keyspace.client, text, FGW_CQL_READ, &options, &result, &c->error),
            FGW_OK);
        more = fgw_cql_result_has_more(result);
        options.paging_state = fgw_arena_copy(&c->arena, fgw_cql_result_paging_state(result));
        while (fgw_cql_result_next(result)) {
            struct fgw_id id;
            MUST_ANSWER(fgw_cql_get_uuid(result, "bucket_id", id.bytes), FGW_OK);
            rows += fgw_id_eq(&id, &bucket->id);
        }
        fgw_cql_result_free(result);
    }
    return rows;
}

/* Gone rows stay for ten minutes; then lists remove them. */
void case_purge(struct world *world)
{
    struct contract *c = &world->c;
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_list_query query = {.max = 100};
    struct fgw_object_list list;
    struct fgw_written written;
    for (unsigned i = 0; i < 5; i++) {
        struct fgw_bytes key = fgw_bytes_str(fgw_arena_printf(&c->arena, "k%u", i));
        MUST_ANSWER(contract_put(c, &bucket, (const char *)key.ptr, "x", NULL, NULL), FGW_OK);
        if (i > 0) {
            MUST_ANSWER(c->meta->ops->object_delete(c->meta, &c->arena, &bucket, key, LATEST, NULL,
                                                    &written, &c->error),
                        FGW_OK);
        }
    }
    MUST_ANSWER(c->meta->ops->object_list(c->meta, &c->arena, &bucket, &query, &list, &c->error),
                FGW_OK);
    MUST(list.count == 1 && rows_in(world, &bucket) == 5);
    fgw_clock_set_wall_offset_ms(20 * 60 * 1000);
    MUST_ANSWER(c->meta->ops->object_list(c->meta, &c->arena, &bucket, &query, &list, &c->error),
                FGW_OK);
    fgw_clock_set_wall_offset_ms(0);
    MUST(list.count == 1 && rows_in(world, &bucket) == 1);
    MUST_ANSWER(contract_put(c, &bucket, "k1", "x", NULL, NULL), FGW_OK);
    MUST_ANSWER(c->meta->ops->object_list(c->meta, &c->arena, &bucket, &query, &list, &c->error),
                FGW_OK);
    MUST(list.count == 2);
}

/* Everything that can go, in one run: gone heads, gone versions, ended uploads; and what was left
 * half done is carried on. */
static struct fgw_meta_cql_purged purge_at(struct world *world, int64_t later_ms)
{
    struct fgw_meta_cql_purge purge = {0};
    struct fgw_meta_cql_purged done;
    fgw_clock_set_wall_offset_ms(later_ms);
    MUST_ANSWER(fgw_meta_cql_purge(world->c.meta, &purge, &done, &world->c.error), FGW_OK);
    fgw_clock_set_wall_offset_ms(0);
    (void)fprintf(stderr, "    %llu rows, removed %llu heads, %llu versions, %llu uploads\n",
                  (unsigned long long)done.rows, (unsigned long long)done.heads,
                  (unsigned long long)done.versions, (unsigned long long)done.uploads);
    return done;
}

static void leave_uploads(struct contract *c, const struct fgw_bucket *bucket)
{
    for (unsigned i = 0; i < 3; i++) {
        struct fgw_upload wanted = {.key = FGW_LIT("upload")};
        struct fgw_upload upload;
        struct fgw_id id;
        MUST_ANSWER(
            c->meta->ops->upload_create(c->meta, &c->arena, bucket, &wanted, &id, &c->error),
            FGW_OK);
        MUST_ANSWER(c->meta->ops->upload_get(c->meta, &c->arena, bucket, wanted.key, &id, &upload,
                                             &c->error),
                    FGW_OK);
        if (i < 2) {
            MUST_ANSWER(c->meta->ops->upload_abort(c->meta, &c->arena, bucket, &upload, &c->error),
                        FGW_OK);
        }
    }
}

void case_purge_of_everything(struct world *world)
{
    enum { HOUR_MS = 3600 * 1000 };
    struct contract *c = &world->c;
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
    struct fgw_bucket plain = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_written written[4];
    struct fgw_written ignored;
    (void)purge_at(world, INT64_C(400) * 24 * HOUR_MS); /* what other cases left */
    for (unsigned i = 0; i < 4; i++) {
        MUST_ANSWER(contract_put(c, &bucket, "k", "x", NULL, &written[i]), FGW_OK);
    }
    for (unsigned i = 0; i < 2; i++) { /* two noncurrent ones go; 2 and 3 stay */
        struct fgw_version version = {FGW_VERSION_ID, written[i].version_id};
        MUST_ANSWER(c->meta->ops->object_delete(c->meta, &c->arena, &bucket, FGW_LIT("k"), version,
                                                NULL, &ignored, &c->error),
                    FGW_OK);
    }
    MUST_ANSWER(contract_put(c, &plain, "gone", "x", NULL, NULL), FGW_OK);
    MUST_ANSWER(c->meta->ops->object_delete(c->meta, &c->arena, &plain, FGW_LIT("gone"), LATEST,
                                            NULL, &ignored, &c->error),
                FGW_OK);
    leave_uploads(c, &bucket);
    struct fgw_meta_cql_purged done = purge_at(world, 0);
    MUST(done.heads == 0 && done.versions == 0 && done.uploads == 0 && done.rows >= 6);
    done = purge_at(world, HOUR_MS);
    MUST(done.heads == 1 && done.versions == 0 && done.uploads == 0);
    done = purge_at(world, 25 * HOUR_MS);
    MUST(done.heads == 0 && done.versions == 2 && done.uploads == 0);
    done = purge_at(world, INT64_C(8) * 24 * HOUR_MS);
    MUST(done.uploads == 2 && done.versions == 0);
    struct fgw_list_query query = {.max = 100};
    struct fgw_object_list list;
    MUST_ANSWER(c->meta->ops->version_list(c->meta, &c->arena, &bucket, &query, &list, &c->error),
                FGW_OK);
    MUST(list.count == 2);
    struct fgw_upload_list uploads;
    struct fgw_upload_list_query uploads_query = {.max = 100};
    MUST_ANSWER(
        c->meta->ops->upload_list(c->meta, &c->arena, &bucket, &uploads_query, &uploads, &c->error),
        FGW_OK);
    MUST(uploads.count == 1);
}

/* Of several processes one runs, once an interval. */
void case_purge_is_claimed_once(struct world *world)
{
    struct contract *c = &world->c;
    unsigned claimed = 0;
    for (unsigned i = 0; i < 2 * BACKENDS; i++) {
        bool mine = false;
        MUST_ANSWER(
            fgw_meta_cql_purge_claim(world->backends[i % BACKENDS], 60000, &mine, &c->error),
            FGW_OK);
        claimed += mine;
    }
    MUST(claimed == 1);
    bool mine = false;
    fgw_clock_set_wall_offset_ms(61000);
    MUST_ANSWER(fgw_meta_cql_purge_claim(c->meta, 60000, &mine, &c->error), FGW_OK);
    MUST(mine);
    /* the clock of whoever claimed was an hour ahead: that must not stop the others for long */
    fgw_clock_set_wall_offset_ms(-3600000);
    MUST_ANSWER(fgw_meta_cql_purge_claim(c->meta, 60000, &mine, &c->error), FGW_OK);
    fgw_clock_set_wall_offset_ms(0);
    MUST(mine);
}
