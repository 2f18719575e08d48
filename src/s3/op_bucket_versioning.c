/* op_bucket_versioning.c: GetBucketVersioning and PutBucketVersioning. spec/s3-wire.md 5.69. */
#include "s3/answer.h"
#include "s3/body.h"
#include "s3/bucket_update.h"
#include "s3/engine_internal.h"
#include "s3/op.h"
#include "s3/xml_read.h"
#include "s3/xml_write.h"

enum { DOCUMENT_MAX_BYTES = 4096, MAX_ELEMENTS = 100 };

enum fgw_err fgw_s3_op_get_bucket_versioning(struct fgw_s3_request *request)
{
    struct fgw_buf out;
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "VersioningConfiguration");
    if (request->bucket.versioning != FGW_VERSIONING_NEVER) {
        fgw_xml_text(&out, "Status",
                     request->bucket.versioning == FGW_VERSIONING_ENABLED ? FGW_LIT("Enabled")
                                                                          : FGW_LIT("Suspended"));
    }
    fgw_xml_close(&out, "VersioningConfiguration");
    enum fgw_err err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}

static enum fgw_err parse(struct fgw_s3_request *request, struct fgw_bytes document,
                          enum fgw_versioning *out_versioning)
{
    struct fgw_xml_node *root = NULL;
    enum fgw_err err = fgw_xml_parse(request->arena, document, "VersioningConfiguration",
                                     MAX_ELEMENTS, &root);
    struct fgw_bytes status = {NULL, 0};
    struct fgw_bytes mfa_delete = {NULL, 0};
    if (err == FGW_OK) {
        status = fgw_xml_child_text(root, "Status");
        mfa_delete = fgw_xml_child_text(root, "MfaDelete");
    }
    if (fgw_bytes_eq_str(mfa_delete, "Enabled")) {
        return fgw_s3_not_built(request, "MFA delete");
    }
    if (fgw_bytes_eq_str(status, "Enabled")) {
        *out_versioning = FGW_VERSIONING_ENABLED;
        return FGW_OK;
    }
    if (fgw_bytes_eq_str(status, "Suspended")) {
        *out_versioning = FGW_VERSIONING_SUSPENDED;
        return FGW_OK;
    }
    return fgw_error_set(&request->error, FGW_ERR_MALFORMED_XML, NULL);
}

static enum fgw_err set_versioning(struct fgw_s3_request *request, struct fgw_bucket *bucket,
                                   void *context)
{
    const enum fgw_versioning *wanted = context;
    if (bucket->object_lock && *wanted == FGW_VERSIONING_SUSPENDED) {
        return fgw_error_set(&request->error, FGW_ERR_INVALID_BUCKET_STATE,
                             "An Object Lock configuration is present on this bucket, so the "
                             "versioning state cannot be changed.");
    }
    bucket->versioning = *wanted;
    return FGW_OK;
}

enum fgw_err fgw_s3_op_put_bucket_versioning(struct fgw_s3_request *request)
{
    enum fgw_versioning wanted;
    struct fgw_buf body;
    fgw_buf_init(&body, FGW_S3_XML_MAX);
    enum fgw_err err = fgw_s3_body_collect(request, FGW_S3_XML_MAX, false, &body);
    if (err == FGW_OK) {
        err = parse(request, fgw_buf_bytes(&body), &wanted);
    }
    fgw_buf_deinit(&body);
    if (err == FGW_OK) {
        err = fgw_s3_bucket_update(request, set_versioning, &wanted);
    }
    return err == FGW_OK ? fgw_s3_answer_empty(request, 200) : err;
}
