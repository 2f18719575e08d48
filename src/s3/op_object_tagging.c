/* op_object_tagging.c: GetObjectTagging, PutObjectTagging, DeleteObjectTagging: of the version named or
 * the latest. Changing tags leaves bytes and Last-Modified alone. spec/s3-wire.md 5.81. */
#include "event/fiber.h"
#include "s3/answer.h"
#include "s3/engine_internal.h"
#include "s3/object_info.h"
#include "s3/op.h"
#include "s3/tags.h"

enum { DOCUMENT_MAX_BYTES = 64 * 1024, MAX_TRIES = 16, PAUSE_MS = 2 };

static void name_version(struct fgw_s3_request *request, const struct fgw_object *object)
{
    fgw_s3_extra_header(request, "x-amz-version-id",
                        fgw_s3_version_text(request, &object->version_id, object->is_null));
}

enum fgw_err fgw_s3_op_get_object_tagging(struct fgw_s3_request *request)
{
    struct fgw_object object;
    enum fgw_err err = fgw_s3_find_object(request, FGW_S3_OBJECT_SETTINGS, &object);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_buf out;
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    fgw_s3_tags_document(object.tags, object.tag_count, &out);
    name_version(request, &object);
    err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}

/* Again from the newest row when somebody else changed it in between. */
static enum fgw_err change_tags(struct fgw_s3_request *request, const struct fgw_meta_pair *tags,
                                size_t count, struct fgw_object *out_object)
{
    struct fgw_meta *meta = request->s3->meta;
    for (unsigned attempt = 1;; attempt++) {
        enum fgw_err err = fgw_s3_find_object(request, FGW_S3_OBJECT_OWN, out_object);
        if (err != FGW_OK) {
            return err;
        }
        out_object->tags = tags;
        out_object->tag_count = count;
        err = meta->ops->object_update(meta, request->arena, &request->bucket, out_object,
                                       &request->error);
        if (err != FGW_ERR_CONFLICT || attempt == MAX_TRIES) {
            return err;
        }
        fgw_error_init(&request->error);
        fgw_fiber_sleep_ms(PAUSE_MS * attempt);
    }
}

enum fgw_err fgw_s3_op_put_object_tagging(struct fgw_s3_request *request)
{
    const struct fgw_meta_pair *tags = NULL;
    size_t count = 0;
    struct fgw_object object;
    enum fgw_err err = fgw_s3_tags_from_body(request, FGW_S3_OBJECT_TAGS_MAX, &tags, &count);
    if (err == FGW_OK) {
        err = change_tags(request, tags, count, &object);
    }
    if (err != FGW_OK) {
        return err;
    }
    name_version(request, &object);
    return fgw_s3_answer_empty(request, 200);
}

enum fgw_err fgw_s3_op_delete_object_tagging(struct fgw_s3_request *request)
{
    struct fgw_object object;
    enum fgw_err err = change_tags(request, NULL, 0, &object);
    if (err != FGW_OK) {
        return err;
    }
    name_version(request, &object);
    return fgw_s3_answer_empty(request, 204);
}
