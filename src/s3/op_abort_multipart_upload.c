/* op_abort_multipart_upload.c: AbortMultipartUpload: gives up the parts. An upload that is not there
 * is 404, so that clients notice a wrong id; spec/s3-wire.md 5.61. */
#include "s3/answer.h"
#include "s3/engine_internal.h"
#include "s3/multipart.h"
#include "s3/op.h"

enum fgw_err fgw_s3_op_abort_multipart_upload(struct fgw_s3_request *request)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_upload upload;
    enum fgw_err err = fgw_s3_find_open_upload(request, &upload);
    if (err == FGW_OK) {
        err = meta->ops->upload_abort(meta, request->arena, &request->bucket, &upload,
                                      &request->error);
    }
    return err == FGW_OK ? fgw_s3_answer_empty(request, 204) : err;
}
