/* op_acl.c: GetBucketAcl, PutBucketAcl, GetObjectAcl, PutObjectAcl: canned ACLs.
 * spec/s3-wire.md 5.38, 5.77. */
#include "s3/acl.h"
#include "s3/answer.h"
#include "s3/bucket_update.h"
#include "s3/engine_internal.h"
#include "s3/object_info.h"
#include "s3/op.h"

enum { DOCUMENT_MAX_BYTES = 16 * 1024, MAX_TRIES = 8 };

static struct fgw_s3_acl_owner bucket_owner(const struct fgw_s3_request *request)
{
    return (struct fgw_s3_acl_owner){request->bucket.owner_id, request->bucket.owner_name};
}

/* What anonymous callers wrote belongs to the bucket's owner. */
static struct fgw_s3_acl_owner object_owner(const struct fgw_s3_request *request,
                                            const struct fgw_object *object)
{
    return object->creator_id.len == 0
               ? bucket_owner(request)
               : (struct fgw_s3_acl_owner){object->creator_id, object->creator_name};
}

static enum fgw_err answer_acl(struct fgw_s3_request *request, enum fgw_acl acl,
                               const struct fgw_s3_acl_owner *owner)
{
    struct fgw_s3_acl_owner of_bucket = bucket_owner(request);
    struct fgw_buf out;
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    fgw_s3_acl_document(acl, owner, &of_bucket, &out);
    enum fgw_err err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}

enum fgw_err fgw_s3_op_get_bucket_acl(struct fgw_s3_request *request)
{
    struct fgw_s3_acl_owner owner = bucket_owner(request);
    return answer_acl(request, request->bucket.acl, &owner);
}

static enum fgw_err set_acl(struct fgw_s3_request *request, struct fgw_bucket *bucket,
                            void *context)
{
    (void)request;
    bucket->acl = *(const enum fgw_acl *)context;
    return FGW_OK;
}

enum fgw_err fgw_s3_op_put_bucket_acl(struct fgw_s3_request *request)
{
    enum fgw_acl acl;
    struct fgw_s3_acl_owner owner = bucket_owner(request);
    enum fgw_err err = fgw_s3_acl_from_request(request, true, &owner, &acl);
    if (err == FGW_OK) {
        err = fgw_s3_bucket_update(request, set_acl, &acl);
    }
    return err == FGW_OK ? fgw_s3_answer_empty(request, 200) : err;
}

enum fgw_err fgw_s3_op_get_object_acl(struct fgw_s3_request *request)
{
    struct fgw_object object;
    enum fgw_err err = fgw_s3_find_object(request, FGW_S3_OBJECT_SETTINGS, &object);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_s3_acl_owner owner = object_owner(request, &object);
    fgw_s3_extra_header(request, "x-amz-version-id",
                        fgw_s3_version_text(request, &object.version_id, object.is_null));
    return answer_acl(request, object.acl, &owner);
}

static enum fgw_err store_acl(struct fgw_s3_request *request, struct fgw_object *object,
                              enum fgw_acl acl)
{
    struct fgw_meta *meta = request->s3->meta;
    enum fgw_err err = FGW_OK;
    for (unsigned attempt = 0; attempt < MAX_TRIES; attempt++) {
        object->acl = acl;
        err = meta->ops->object_update(meta, request->arena, &request->bucket, object,
                                       &request->error);
        if (err != FGW_ERR_CONFLICT) {
            return err;
        }
        err = fgw_s3_find_object(request, FGW_S3_OBJECT_OWN, object);
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_ERR_CONFLICT;
}

enum fgw_err fgw_s3_op_put_object_acl(struct fgw_s3_request *request)
{
    struct fgw_object object;
    enum fgw_acl acl;
    enum fgw_err err = fgw_s3_find_object(request, FGW_S3_OBJECT_OWN, &object);
    if (err == FGW_OK) {
        struct fgw_s3_acl_owner owner = object_owner(request, &object);
        err = fgw_s3_acl_from_request(request, false, &owner, &acl);
    }
    if (err == FGW_OK) {
        err = store_acl(request, &object, acl);
    }
    if (err != FGW_OK) {
        return err;
    }
    fgw_s3_extra_header(request, "x-amz-version-id",
                        fgw_s3_version_text(request, &object.version_id, object.is_null));
    return fgw_s3_answer_empty(request, 200);
}
