/* op_delete_object.c: DeleteObject, with versions, delete markers and conditions.
 * spec/s3-wire.md 5.51, 5.70, 5.71. */
#include "s3/answer.h"
#include "s3/conditions.h"
#include "s3/object_delete.h"
#include "s3/op.h"

static enum fgw_err answer(struct fgw_s3_request *request, const struct fgw_s3_deletion *deletion)
{
    const struct fgw_written *written = &deletion->written;
    bool named = deletion->version.kind != FGW_VERSION_LATEST;
    fgw_s3_start(request, 204, 0);
    if (request->bucket.versioning != FGW_VERSIONING_NEVER &&
        (named || written->delete_marker || written->removed_version)) {
        /* a version that was named is echoed also when it was not there */
        struct fgw_bytes text =
            named ? fgw_s3_version_text(request, &deletion->version.id,
                                        deletion->version.kind == FGW_VERSION_NULL)
                  : fgw_s3_version_text(request, &written->version_id, written->is_null);
        fgw_http_response_header(request->exchange, "x-amz-version-id", text);
    }
    if (written->delete_marker) {
        fgw_http_response_header(request->exchange, "x-amz-delete-marker", FGW_LIT("true"));
    }
    return fgw_s3_end(request);
}

enum fgw_err fgw_s3_op_delete_object(struct fgw_s3_request *request)
{
    struct fgw_s3_deletion deletion = {.key = request->key};
    enum fgw_err err = fgw_s3_param_version(request, "versionId", &deletion.version);
    if (err == FGW_OK) {
        err = fgw_s3_write_conditions(request, &deletion.conditions);
    }
    if (err == FGW_OK) {
        err = fgw_s3_object_delete(request, &deletion, &request->error);
    }
    if (err != FGW_OK) {
        return err;
    }
    return deletion.missing ? fgw_s3_answer_empty(request, 204) : answer(request, &deletion);
}
