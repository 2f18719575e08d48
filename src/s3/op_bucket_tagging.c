/* op_bucket_tagging.c: GetBucketTagging, PutBucketTagging, DeleteBucketTagging. spec/s3-wire.md 5.81. */
#include "s3/answer.h"
#include "s3/documents.h"
#include "s3/op.h"
#include "s3/tags.h"

enum { DOCUMENT_MAX_BYTES = 512 * 1024 };
static const char NAME[] = "tagging";

enum fgw_err fgw_s3_op_get_bucket_tagging(struct fgw_s3_request *request)
{
    return fgw_s3_answer_document(request, NAME, FGW_ERR_NO_SUCH_TAG_SET);
}

enum fgw_err fgw_s3_op_put_bucket_tagging(struct fgw_s3_request *request)
{
    const struct fgw_meta_pair *tags = NULL;
    size_t count = 0;
    struct fgw_buf document;
    enum fgw_err err = fgw_s3_tags_from_body(request, FGW_S3_BUCKET_TAGS_MAX, &tags, &count);
    if (err != FGW_OK) {
        return err;
    }
    fgw_buf_init(&document, DOCUMENT_MAX_BYTES);
    fgw_s3_tags_document(tags, count, &document);
    err = fgw_buf_status(&document);
    if (err == FGW_OK) {
        err = fgw_s3_set_document(request, NAME, fgw_buf_bytes(&document));
    }
    fgw_buf_deinit(&document);
    return err == FGW_OK ? fgw_s3_answer_empty(request, 200) : err;
}

enum fgw_err fgw_s3_op_delete_bucket_tagging(struct fgw_s3_request *request)
{
    enum fgw_err err = fgw_s3_set_document(request, NAME, (struct fgw_bytes){NULL, 0});
    return err == FGW_OK ? fgw_s3_answer_empty(request, 204) : err;
}
