/* op_delete_object.c: DeleteObject, with versions, delete markers and conditions.
 * spec/s3-wire.md 5.51, 5.70, 5.71. */
#include "s3/answer.h"
#include "s3/conditions.h"
#include "s3/engine_internal.h"
#include "s3/op.h"

static enum fgw_err answer(struct fgw_s3_request *request, const struct fgw_version *version,
                           const struct fgw_written *written)
{
    fgw_s3_start(request, 204, 0);
    bool shown = request->bucket.versioning != FGW_VERSIONING_NEVER &&
                 (written->delete_marker || written->removed_version ||
                  version->kind != FGW_VERSION_LATEST);
    if (shown) {
        /* a version that was named is echoed also when it was not there */
        struct fgw_bytes text =
            version->kind == FGW_VERSION_LATEST
                ? fgw_s3_version_text(request, &written->version_id, written->is_null)
                : fgw_s3_version_text(request, &version->id, version->kind == FGW_VERSION_NULL);
        fgw_http_response_header(request->exchange, "x-amz-version-id", text);
    }
    if (written->delete_marker) {
        fgw_http_response_header(request->exchange, "x-amz-delete-marker", FGW_LIT("true"));
    }
    return fgw_s3_end(request);
}

enum fgw_err fgw_s3_op_delete_object(struct fgw_s3_request *request)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_version version;
    struct fgw_conditions conditions;
    struct fgw_written written = {0};
    enum fgw_err err = fgw_s3_param_version(request, "versionId", &version);
    if (err == FGW_OK) {
        err = fgw_s3_write_conditions(request, &conditions);
    }
    if (err == FGW_OK) {
        err = meta->ops->object_delete(meta, request->arena, &request->bucket, request->key,
                                       version, &conditions, &written, &request->error);
    }
    /* a condition on what is not there deletes nothing, which is what was asked for */
    if (err == FGW_ERR_NO_SUCH_KEY || err == FGW_ERR_NO_SUCH_VERSION) {
        return fgw_s3_answer_empty(request, 204);
    }
    return err == FGW_OK ? answer(request, &version, &written) : err;
}
