/* op_bucket_cors.c: GetBucketCors, PutBucketCors, DeleteBucketCors. */
#include "s3/answer.h"
#include "s3/body.h"
#include "s3/cors.h"
#include "s3/documents.h"
#include "s3/op.h"

enum { DOCUMENT_MAX_BYTES = 64 * 1024 };

enum fgw_err fgw_s3_op_get_bucket_cors(struct fgw_s3_request *request)
{
    return fgw_s3_answer_document(request, FGW_S3_CORS_DOCUMENT, FGW_ERR_NO_SUCH_CORS);
}

enum fgw_err fgw_s3_op_put_bucket_cors(struct fgw_s3_request *request)
{
    struct fgw_buf body;
    fgw_buf_init(&body, DOCUMENT_MAX_BYTES);
    enum fgw_err err = fgw_s3_body_collect(request, DOCUMENT_MAX_BYTES, false, &body);
    if (err == FGW_OK) {
        err = fgw_s3_cors_check(request->arena, fgw_buf_bytes(&body), &request->error);
    }
    if (err == FGW_OK) {
        err = fgw_s3_set_document(request, FGW_S3_CORS_DOCUMENT, fgw_buf_bytes(&body));
    }
    fgw_buf_deinit(&body);
    return err == FGW_OK ? fgw_s3_answer_empty(request, 200) : err;
}

enum fgw_err fgw_s3_op_delete_bucket_cors(struct fgw_s3_request *request)
{
    enum fgw_err err =
        fgw_s3_set_document(request, FGW_S3_CORS_DOCUMENT, (struct fgw_bytes){NULL, 0});
    return err == FGW_OK ? fgw_s3_answer_empty(request, 204) : err;
}
