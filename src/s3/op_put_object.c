/* op_put_object.c: PutObject. Everything the head can tell is checked before the body is read; the
 * name appears only when body, digests and signatures were right and the commit succeeded. */
#include "s3/answer.h"
#include "s3/body.h"
#include "s3/conditions.h"
#include "s3/engine_internal.h"
#include "s3/etag.h"
#include "s3/headers.h"
#include "s3/object_info.h"
#include "s3/op.h"
#include "s3/staging.h"

/* A condition that fails already now spares the client the upload; what counts is the judgement at
 * the commit. */
static enum fgw_err check_early(struct fgw_s3_request *request,
                                const struct fgw_conditions *conditions)
{
    if (!fgw_conditions_any(conditions)) {
        return FGW_OK;
    }
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_version latest = {.kind = FGW_VERSION_LATEST};
    struct fgw_object existing;
    enum fgw_err err = meta->ops->object_get(meta, request->arena, &request->bucket, request->key,
                                             latest, &existing, &request->error);
    if (err != FGW_OK && err != FGW_ERR_NO_SUCH_KEY) {
        return err;
    }
    bool missing = err == FGW_ERR_NO_SUCH_KEY || existing.delete_marker;
    fgw_error_init(&request->error);
    return fgw_conditions_check(conditions, missing ? NULL : &existing, &request->error);
}

static enum fgw_err plan(struct fgw_s3_request *request, struct fgw_put *put,
                         struct fgw_s3_body **out_body)
{
    struct fgw_s3_body_options options = {.max_bytes = request->s3->max_put_bytes,
                                          .too_large = FGW_ERR_ENTITY_TOO_LARGE,
                                          .need_length = true,
                                          .want_md5 = true};
    if (fgw_s3_has_param(request, "partNumber")) {
        return fgw_s3_bad_argument(request, "uploadId", FGW_LIT(""),
                                   "This operation does not accept partNumber without uploadId");
    }
    enum fgw_err err = fgw_s3_collect_headers(request, &put->object);
    if (err == FGW_OK) {
        err = fgw_s3_write_conditions(request, &put->conditions);
    }
    if (err == FGW_OK) {
        err = check_early(request, &put->conditions);
    }
    return err == FGW_OK ? fgw_s3_body_plan(request, &options, out_body) : err;
}

static void fill_object(struct fgw_s3_request *request, const struct fgw_s3_body *body,
                        const struct fgw_blob_staged *staged, struct fgw_object *object)
{
    object->size = body->size;
    object->etag = fgw_s3_etag_of_md5(request->arena, body->md5);
    object->checksum = body->checksum;
    object->creator_id = request->identity.canonical_id;
    object->creator_name = request->identity.display_name;
    object->extents = &staged->extent;
    object->extent_count = 1;
    object->cid = staged->extent.root;
    object->has_cid = true;
    object->canonical_cid = true; /* one blob is laid out as unixfs-v1-2025 says */
}

static enum fgw_err answer(struct fgw_s3_request *request, const struct fgw_object *object,
                           const struct fgw_written *written)
{
    fgw_s3_extra_written(request, written);
    fgw_s3_start(request, 200, 0);
    fgw_s3_send_etag(request, object->etag);
    fgw_s3_send_checksum(request, &object->checksum, 0);
    fgw_s3_send_cid(request, object);
    return fgw_s3_end(request);
}

enum fgw_err fgw_s3_op_put_object(struct fgw_s3_request *request)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_put put = {.bucket = &request->bucket};
    struct fgw_s3_body *body = NULL;
    struct fgw_blob_staged staged;
    struct fgw_written written;
    put.object.key = request->key;
    fgw_id_random(&put.object.owner_id);
    enum fgw_err err = plan(request, &put, &body);
    if (err == FGW_OK) {
        err = fgw_s3_stage_body(request, body, &put.object.owner_id, 0, &staged);
    }
    if (err == FGW_OK) {
        fill_object(request, body, &staged, &put.object);
        put.staged = &staged;
        put.staged_count = 1;
        err = meta->ops->object_put(meta, request->arena, &put, &written, &request->error);
    }
    fgw_s3_body_deinit(body);
    return err == FGW_OK ? answer(request, &put.object, &written) : err;
}
