/* copy.c: see copy.h. */
#include "s3/copy.h"

#include "event/fiber.h"
#include "s3/access.h"
#include "s3/checksum.h"
#include "s3/conditions.h"
#include "s3/copy_source.h"
#include "s3/engine_internal.h"
#include "s3/names.h"
#include "s3/object_read.h"
#include "s3/op.h"

enum { SLICE_BYTES = 64 * 1024 };

/* -- the source ------------------------------------------------------------------------------- */

static enum fgw_err find_bucket(struct fgw_s3_request *request, struct fgw_bytes name,
                                struct fgw_bucket *out_bucket)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_bytes expected = fgw_s3_header(request, "x-amz-source-expected-bucket-owner");
    if (!fgw_s3_bucket_name_valid(name)) {
        return fgw_error_set(&request->error, FGW_ERR_NO_SUCH_BUCKET, NULL);
    }
    enum fgw_err err = meta->ops->bucket_get(meta, request->arena, name, false, out_bucket,
                                             &request->error);
    if (err == FGW_OK && expected.ptr != NULL && !fgw_bytes_eq(expected, out_bucket->owner_id)) {
        return fgw_s3_deny(request);
    }
    return err;
}

/* Who may not list the source's bucket is not told which keys it has. */
static enum fgw_err missing(struct fgw_s3_request *request, const struct fgw_bucket *bucket,
                            enum fgw_err err)
{
    if (!fgw_s3_may(&request->identity, bucket, FGW_S3_NEED_BUCKET_READ)) {
        return fgw_s3_deny(request);
    }
    return fgw_error_set(&request->error, err, NULL);
}

static enum fgw_err find_object(struct fgw_s3_request *request,
                                const struct fgw_s3_copy_source *named,
                                struct fgw_s3_source *source)
{
    struct fgw_meta *meta = request->s3->meta;
    enum fgw_err err = meta->ops->object_get(meta, request->arena, &source->bucket, named->key,
                                             named->version, &source->object, &request->error);
    if (err == FGW_ERR_NO_SUCH_KEY || err == FGW_ERR_NO_SUCH_VERSION) {
        return missing(request, &source->bucket, err);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (source->object.delete_marker) {
        return named->version.kind == FGW_VERSION_LATEST
                   ? missing(request, &source->bucket, FGW_ERR_NO_SUCH_KEY)
                   : fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                                   "The source of a copy request may not specifically refer to a "
                                   "delete marker by version id.");
    }
    return fgw_s3_may_read_object(&request->identity, &source->bucket, &source->object)
               ? FGW_OK
               : fgw_s3_deny(request);
}

static enum fgw_err check_conditions(struct fgw_s3_request *request,
                                     const struct fgw_object *object)
{
    struct fgw_s3_read_conditions conditions = fgw_s3_copy_conditions(request->http);
    const char *condition = "";
    enum fgw_s3_verdict verdict =
        fgw_s3_read_verdict(&conditions, object->etag, object->mtime_ms, &condition);
    if (verdict == FGW_S3_PROCEED) {
        return FGW_OK;
    }
    return fgw_s3_condition_failed(
        request, fgw_arena_printf(request->arena, "x-amz-copy-source-%s", condition));
}

static void describe_source(struct fgw_s3_request *request, const struct fgw_s3_source *source)
{
    if (source->bucket.versioning == FGW_VERSIONING_NEVER) {
        return;
    }
    char *text = fgw_arena_alloc(request->arena, 33);
    fgw_id_hex(&source->object.version_id, text);
    fgw_s3_extra_header(request, "x-amz-copy-source-version-id",
                        source->object.is_null ? FGW_LIT("null") : fgw_bytes(text, 32));
}

enum fgw_err fgw_s3_find_source(struct fgw_s3_request *request, struct fgw_s3_source *out_source)
{
    struct fgw_s3_copy_source named;
    struct fgw_bytes text = fgw_s3_header(request, "x-amz-copy-source");
    if (fgw_s3_copy_source_parse(request->arena, text, &named) != FGW_OK) {
        return fgw_s3_bad_argument(request, "x-amz-copy-source", text,
                                   "Copy Source must mention the source bucket and key: "
                                   "sourcebucket/sourcekey");
    }
    enum fgw_err err = find_bucket(request, named.bucket, &out_source->bucket);
    if (err == FGW_OK) {
        err = find_object(request, &named, out_source);
    }
    if (err == FGW_OK) {
        err = check_conditions(request, &out_source->object);
    }
    if (err == FGW_OK) {
        describe_source(request, out_source);
    }
    return err;
}

/* -- bytes ------------------------------------------------------------------------------------ */

static struct fgw_blob_stage_options stage_options(struct fgw_s3_request *request,
                                                   const struct fgw_storage_owner *owner,
                                                   uint64_t extent_number, uint64_t size)
{
    return (struct fgw_blob_stage_options){.arena = request->arena,
                                           .owner = owner,
                                           .extent_number = extent_number,
                                           .size_hint = size,
                                           .replicas = request->bucket.replicas};
}

struct pump {
    struct fgw_s3_byte_copy *copy;
    struct fgw_blob_stage *stage; /* NULL: only hashed */
    struct fgw_digest md5;
    struct fgw_s3_checksummer summer;
};

static enum fgw_err pump_run(struct pump *pump, struct fgw_bytes run)
{
    while (run.len > 0) {
        struct fgw_bytes slice = fgw_bytes_sub(run, 0, SLICE_BYTES);
        run = fgw_bytes_sub(run, slice.len, SIZE_MAX);
        if (pump->copy->want_md5) {
            fgw_digest_update(&pump->md5, slice);
        }
        fgw_s3_checksummer_update(&pump->summer, slice);
        enum fgw_err err =
            pump->stage == NULL ? FGW_OK : fgw_blob_stage_write(pump->stage, slice);
        if (err != FGW_OK) {
            return err;
        }
        fgw_fiber_yield();
    }
    return FGW_OK;
}

static enum fgw_err pump_all(struct fgw_s3_request *request, struct pump *pump)
{
    struct fgw_s3_object_reader reader;
    struct fgw_storage_run run;
    enum fgw_err err = fgw_s3_object_reader_open(request, pump->copy->object, &pump->copy->range,
                                                 true, &reader);
    while (err == FGW_OK) {
        err = fgw_s3_object_reader_next(&reader, &run);
        if (err == FGW_OK) {
            err = pump_run(pump, run.bytes);
        }
    }
    fgw_s3_object_reader_close(&reader);
    return err == FGW_ERR_END ? FGW_OK : err;
}

enum fgw_err fgw_s3_copy_bytes(struct fgw_s3_request *request, struct fgw_s3_byte_copy *copy)
{
    struct pump *pump = fgw_arena_zalloc(request->arena, sizeof *pump);
    pump->copy = copy;
    if (copy->owner != NULL) {
        struct fgw_blob_stage_options options =
            stage_options(request, copy->owner, copy->extent_number, copy->range.len);
        enum fgw_err err = fgw_blob_stage_begin(request->s3->blobs, &options, &pump->stage,
                                                &request->error);
        if (err != FGW_OK) {
            return err;
        }
    }
    if (copy->want_md5) {
        fgw_digest_begin(&pump->md5, FGW_DIGEST_MD5);
    }
    fgw_s3_checksummer_init(&pump->summer, copy->want_checksum);
    enum fgw_err err = pump_all(request, pump);
    if (err != FGW_OK && pump->stage != NULL) {
        fgw_blob_stage_abort(pump->stage);
    } else if (err == FGW_OK && pump->stage != NULL) {
        err = fgw_blob_stage_finish(pump->stage, &copy->staged);
    }
    if (err == FGW_OK && copy->want_md5) {
        fgw_digest_end(&pump->md5, copy->md5);
    }
    if (err == FGW_OK) {
        fgw_s3_checksummer_end(&pump->summer, &copy->checksum);
    }
    fgw_digest_deinit(&pump->md5);
    fgw_s3_checksummer_deinit(&pump->summer);
    return err;
}

enum fgw_err fgw_s3_copy_extent(struct fgw_s3_request *request, const struct fgw_extent *extent,
                                const struct fgw_storage_owner *owner, uint64_t extent_number,
                                bool by_bytes, struct fgw_blob_staged *out_staged)
{
    struct fgw_blob_stage_options options =
        stage_options(request, owner, extent_number, extent->size);
    enum fgw_err err = by_bytes ? FGW_ERR_NOT_FOUND
                                : fgw_blob_stage_copy(request->s3->blobs, &options, extent,
                                                      out_staged);
    if (err != FGW_ERR_NOT_FOUND) {
        return err;
    }
    struct fgw_object object = {.size = extent->size, .extents = extent, .extent_count = 1};
    struct fgw_s3_byte_copy copy = {.object = &object,
                                    .range = {0, extent->size},
                                    .owner = owner,
                                    .extent_number = extent_number};
    err = fgw_s3_copy_bytes(request, &copy);
    if (err == FGW_OK) {
        *out_staged = copy.staged;
    }
    return err;
}
