/* op_bucket.c: the three smallest operations on a bucket: HeadBucket, DeleteBucket,
 * GetBucketLocation. spec/s3-wire.md 5.24, 5.25. */
#include "s3/answer.h"
#include "s3/engine_internal.h"
#include "s3/op.h"
#include "s3/xml_write.h"

enum { DOCUMENT_MAX_BYTES = 4096 };

static struct fgw_bytes region_of(const struct fgw_s3_request *request)
{
    return request->bucket.region.len > 0 ? request->bucket.region
                                          : fgw_bytes_str(request->s3->region);
}

enum fgw_err fgw_s3_op_head_bucket(struct fgw_s3_request *request)
{
    fgw_s3_extra_header(request, "x-amz-bucket-region", region_of(request));
    return fgw_s3_answer_empty(request, 200);
}

enum fgw_err fgw_s3_op_delete_bucket(struct fgw_s3_request *request)
{
    struct fgw_meta *meta = request->s3->meta;
    enum fgw_err err =
        meta->ops->bucket_delete(meta, request->arena, &request->bucket, &request->error);
    return err == FGW_OK ? fgw_s3_answer_empty(request, 204) : err;
}

enum fgw_err fgw_s3_op_get_bucket_location(struct fgw_s3_request *request)
{
    struct fgw_bytes region = region_of(request);
    struct fgw_buf out;
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "LocationConstraint");
    if (!fgw_bytes_eq_str(region, "us-east-1")) {
        fgw_xml_escape(&out, region);
    }
    fgw_xml_close(&out, "LocationConstraint");
    enum fgw_err err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}
