/* cases_multipart.c: uploads, parts, Complete exactly once. */
#include "contract/meta/meta_contract.h"

#include "event/fiber.h"

#define OPS (c->meta->ops)

static const struct fgw_version LATEST = {.kind = FGW_VERSION_LATEST};

static struct fgw_upload new_upload(struct contract *c, const struct fgw_bucket *bucket,
                                    const char *key)
{
    struct fgw_meta_pair header = {FGW_LIT("content-type"), FGW_LIT("text/x")};
    struct fgw_upload wanted = {.key = fgw_bytes_str(key), .object.headers = &header,
                                .object.header_count = 1};
    struct fgw_upload got;
    struct fgw_id id;
    MUST_ANSWER(OPS->upload_create(c->meta, &c->arena, bucket, &wanted, &id, &c->error), FGW_OK);
    MUST_ANSWER(OPS->upload_get(c->meta, &c->arena, bucket, wanted.key, &id, &got, &c->error), FGW_OK);
    MUST(got.object.header_count == 1 && got.created_ms > 0 && !got.completed);
    return got;
}

static enum fgw_err put_part(struct contract *c, const struct fgw_bucket *bucket,
                             const struct fgw_upload *upload, unsigned number, const char *body)
{
    struct fgw_blob_staged *staged = fgw_arena_zalloc(&c->arena, sizeof *staged);
    struct fgw_part part = {.number = number, .size = strlen(body), .mtime_ms = 1};
    fgw_id_version(1, NULL, &part.attempt);
    static int64_t attempts;
    fgw_id_version(++attempts, NULL, &part.attempt);
    memset(part.md5, (int)(unsigned char)body[0], sizeof part.md5);
    contract_stage(c, bucket, upload->key, &upload->id,
                   (uint64_t)number << 48 | (uint64_t)attempts, body, staged);
    part.extent = staged->extent;
    return OPS->part_put(c->meta, &c->arena, upload, &part, staged, &c->error);
}

/* The complete that takes the newest attempt of each part. */
static struct fgw_complete completion(struct contract *c, const struct fgw_bucket *bucket,
                                      const struct fgw_upload *upload)
{
    struct fgw_part *parts;
    size_t count;
    bool truncated;
    MUST_ANSWER(OPS->part_list(c->meta, &c->arena, upload, 0, 0, false, &parts, &count, &truncated,
                               &c->error),
                FGW_OK);
    struct fgw_extent *extents = fgw_arena_alloc(&c->arena, count * sizeof *extents);
    struct fgw_object_part *rows = fgw_arena_zalloc(&c->arena, count * sizeof *rows);
    struct fgw_complete complete = {.bucket = bucket, .upload_id = upload->id,
                                    .upload_rev = upload->rev, .object = upload->object};
    complete.object.key = upload->key;
    complete.object.owner_id = upload->id;
    complete.object.etag = FGW_LIT("0123456789abcdef0123456789abcdef-2");
    for (size_t i = 0; i < count; i++) {
        extents[i] = parts[i].extent;
        rows[i].number = parts[i].number;
        rows[i].size = parts[i].size;
        complete.object.size += parts[i].size;
    }
    complete.object.extents = extents;
    complete.object.extent_count = count;
    complete.object.parts = rows;
    complete.object.part_count = count;
    return complete;
}

void case_multipart(struct contract *c)
{
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    struct fgw_upload upload = new_upload(c, &bucket, "big");
    struct fgw_object object;
    struct fgw_part *parts;
    size_t count;
    bool truncated;
    struct fgw_written written;
    MUST_ANSWER(put_part(c, &bucket, &upload, 2, "second"), FGW_OK);
    MUST_ANSWER(put_part(c, &bucket, &upload, 1, "first"), FGW_OK);
    MUST_ANSWER(put_part(c, &bucket, &upload, 7, "last"), FGW_OK);
    MUST_ANSWER(put_part(c, &bucket, &upload, 1, "again"), FGW_OK);
    MUST_ANSWER(OPS->part_list(c->meta, &c->arena, &upload, 0, 2, false, &parts, &count, &truncated,
                               &c->error),
                FGW_OK);
    MUST(count == 2 && truncated && parts[0].number == 1 && parts[0].md5[0] == 'a');
    MUST_ANSWER(OPS->part_list(c->meta, &c->arena, &upload, 2, 10, false, &parts, &count, &truncated,
                               &c->error),
                FGW_OK);
    MUST(count == 1 && !truncated && parts[0].number == 7);
    MUST_ANSWER(OPS->part_list(c->meta, &c->arena, &upload, 0, 0, true, &parts, &count, &truncated,
                               &c->error),
                FGW_OK);
    MUST(count == 4);
    /* nothing is visible before Complete */
    MUST_ANSWER(OPS->object_get(c->meta, &c->arena, &bucket, FGW_LIT("big"), LATEST, &object,
                                &c->error),
                FGW_ERR_NO_SUCH_KEY);
    struct fgw_complete complete = completion(c, &bucket, &upload);
    struct fgw_conditions create = {.if_match = FGW_LIT("nothing")};
    complete.conditions = create;
    MUST_ANSWER(OPS->upload_complete(c->meta, &c->arena, &complete, &written, &c->error),
                FGW_ERR_NO_SUCH_KEY);
    /* a refused condition leaves the upload open */
    memset(&complete.conditions, 0, sizeof complete.conditions);
    MUST_ANSWER(OPS->upload_complete(c->meta, &c->arena, &complete, &written, &c->error), FGW_OK);
    MUST_ANSWER(OPS->object_get(c->meta, &c->arena, &bucket, FGW_LIT("big"), LATEST, &object,
                                &c->error),
                FGW_OK);
    MUST(object.size == 15 && object.extent_count == 3 && object.part_count == 3);
    MUST(fgw_id_eq(&object.upload_id, &upload.id) && object.header_count == 1);
    MUST_ANSWER(put_part(c, &bucket, &upload, 3, "late"), FGW_ERR_NO_SUCH_UPLOAD);
    MUST_ANSWER(OPS->upload_abort(c->meta, &c->arena, &bucket, &upload, &c->error),
                FGW_ERR_NO_SUCH_UPLOAD);
    /* aborted: parts go, no object */
    struct fgw_upload aborted = new_upload(c, &bucket, "other");
    MUST_ANSWER(put_part(c, &bucket, &aborted, 1, "x"), FGW_OK);
    MUST_ANSWER(OPS->upload_abort(c->meta, &c->arena, &bucket, &aborted, &c->error), FGW_OK);
    MUST_ANSWER(put_part(c, &bucket, &aborted, 2, "x"), FGW_ERR_NO_SUCH_UPLOAD);
    MUST_ANSWER(OPS->upload_get(c->meta, &c->arena, &bucket, FGW_LIT("other"), &aborted.id, &aborted,
                                &c->error),
                FGW_ERR_NO_SUCH_UPLOAD);
}

struct completer {
    struct contract own;
    const struct fgw_complete *complete;
    struct fgw_written written;
    struct fgw_wait *done;
};

static void complete_it(void *arg)
{
    struct completer *self = arg;
    struct contract *c = &self->own;
    MUST_ANSWER(OPS->upload_complete(c->meta, &c->arena, self->complete, &self->written, &c->error),
                FGW_OK);
    fgw_wait_signal(self->done);
}

void case_complete_once(struct contract *c)
{
    enum { COMPLETERS = 8 };
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_ENABLED);
    struct fgw_upload upload = new_upload(c, &bucket, "k");
    struct completer all[COMPLETERS];
    struct fgw_wait done;
    MUST_ANSWER(put_part(c, &bucket, &upload, 1, "body"), FGW_OK);
    struct fgw_complete complete = completion(c, &bucket, &upload);
    fgw_wait_init(&done, COMPLETERS);
    for (size_t i = 0; i < COMPLETERS; i++) {
        all[i] = (struct completer){.own = {.meta = c->meta, .blobs = c->blobs},
                                    .complete = &complete, .done = &done};
        fgw_arena_init(&all[i].own.arena, 0);
        fgw_fiber_spawn(fgw_loop_current(), complete_it, &all[i]);
    }
    fgw_wait_for(&done);
    for (size_t i = 0; i < COMPLETERS; i++) {
        MUST(fgw_id_eq(&all[i].written.version_id, &all[0].written.version_id));
        fgw_arena_deinit(&all[i].own.arena);
    }
    struct fgw_list_query query = {.max = 10};
    struct fgw_object_list list;
    MUST_ANSWER(OPS->version_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == 1);
    struct fgw_upload kept;
    MUST_ANSWER(OPS->upload_get(c->meta, &c->arena, &bucket, upload.key, &upload.id, &kept, &c->error),
                FGW_OK);
    MUST(kept.completed && fgw_bytes_eq(kept.answer_etag, complete.object.etag));
    /* another list of parts is no repeat */
    complete.object.etag = FGW_LIT("fedcba9876543210fedcba9876543210-1");
    struct fgw_written written;
    MUST_ANSWER(OPS->upload_complete(c->meta, &c->arena, &complete, &written, &c->error),
                FGW_ERR_NO_SUCH_UPLOAD);
}

void case_upload_list(struct contract *c)
{
    static const char *const KEYS[] = {"r/x", "r/x", "r/y", "s"};
    struct fgw_bucket bucket = contract_bucket(c, FGW_VERSIONING_NEVER);
    for (size_t i = 0; i < FGW_COUNT_OF(KEYS); i++) {
        (void)new_upload(c, &bucket, KEYS[i]);
    }
    struct fgw_upload_list_query query = {.max = 1};
    struct fgw_upload_list list = {.truncated = true};
    size_t seen = 0;
    while (list.truncated) {
        MUST_ANSWER(OPS->upload_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
        MUST(list.count == 1 && seen < 4);
        MUST(fgw_bytes_eq_str(list.entries[0].upload.key, KEYS[seen]));
        query.key_marker = list.entries[0].upload.key;
        query.has_upload_id_marker = true;
        query.upload_id_marker = list.entries[0].upload.id;
        seen++;
    }
    MUST(seen == 4);
    query = (struct fgw_upload_list_query){.prefix = FGW_LIT("r/x"), .max = 10};
    MUST_ANSWER(OPS->upload_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == 2 && !list.truncated);
    query = (struct fgw_upload_list_query){.delimiter = FGW_LIT("/"), .max = 10};
    MUST_ANSWER(OPS->upload_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == 2 && list.entries[0].is_prefix);
    query = (struct fgw_upload_list_query){.key_marker = FGW_LIT("r/x"), .max = 10};
    MUST_ANSWER(OPS->upload_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == 2 && fgw_bytes_eq_str(list.entries[0].upload.key, "r/y"));
    /* markers that lie in front of the prefix */
    query = (struct fgw_upload_list_query){.prefix = FGW_LIT("s"), .key_marker = FGW_LIT("r/x"),
                                           .has_upload_id_marker = true, .max = 10};
    MUST_ANSWER(OPS->upload_list(c->meta, &c->arena, &bucket, &query, &list, &c->error), FGW_OK);
    MUST(list.count == 1 && fgw_bytes_eq_str(list.entries[0].upload.key, "s"));
    /* open uploads do not block a bucket's deletion */
    MUST_ANSWER(OPS->bucket_delete(c->meta, &c->arena, &bucket, &c->error), FGW_OK);
}
