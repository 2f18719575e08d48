/* staging.c: see staging.h. */
#include "s3/staging.h"

#include "s3/engine_internal.h"

struct fgw_storage_owner fgw_s3_owner(const struct fgw_s3_request *request,
                                      const struct fgw_id *owner_id)
{
    struct fgw_storage_owner owner = {.key = request->key};
    memcpy(owner.bucket_id, request->bucket.id.bytes, sizeof owner.bucket_id);
    memcpy(owner.owner_id, owner_id->bytes, sizeof owner.owner_id);
    return owner;
}

static enum fgw_err write_stage(void *context, struct fgw_bytes bytes)
{
    return fgw_blob_stage_write(context, bytes);
}

static size_t stage_room(void *context, uint8_t **out_room)
{
    return fgw_blob_stage_room(context, out_room);
}

enum fgw_err fgw_s3_stage_body(struct fgw_s3_request *request, struct fgw_s3_body *body,
                               const struct fgw_id *owner_id, uint64_t extent_number,
                               struct fgw_blob_staged *out_staged)
{
    struct fgw_storage_owner owner = fgw_s3_owner(request, owner_id);
    struct fgw_blob_stage_options options = {.arena = request->arena,
                                             .owner = &owner,
                                             .extent_number = extent_number,
                                             .size_hint = body->length,
                                             .replicas = request->bucket.replicas};
    struct fgw_blob_stage *stage = NULL;
    struct fgw_md5 md5;
    if (request->s3->blobs->ops->stage_takes_md5 && fgw_hash_pair_available()) {
        fgw_md5_begin(&md5);
        options.md5 = body->md5_of_sink = &md5;
    }
    bool told = body->length != UINT64_MAX;
    enum fgw_err err = fgw_s3_quota_take(request, told ? body->length : 0, extent_number == 0);
    if (err == FGW_OK) {
        err = fgw_blob_stage_begin(request->s3->blobs, &options, &stage, &request->error);
    }
    if (err != FGW_OK) {
        return err;
    }
    body->room_of_sink = stage_room;
    err = fgw_s3_body_run(body, write_stage, stage);
    body->room_of_sink = NULL;
    body->md5_of_sink = NULL;
    if (err == FGW_OK && !told) {
        err = fgw_s3_quota_take(request, body->size, 0);
    }
    if (err != FGW_OK) {
        fgw_blob_stage_abort(stage);
        return err;
    }
    return fgw_blob_stage_finish(stage, out_staged);
}
