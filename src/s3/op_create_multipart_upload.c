/* op_create_multipart_upload.c: CreateMultipartUpload. Headers, ACL, tags and class of the object to
 * be are kept in the upload's row; spec/s3-wire.md 5.67. */
#include "s3/answer.h"
#include "s3/checksum.h"
#include "s3/engine_internal.h"
#include "s3/headers.h"
#include "s3/multipart.h"
#include "s3/op.h"
#include "s3/xml_write.h"

enum { DOCUMENT_MAX_BYTES = 16 * 1024 };

static enum fgw_err answer(struct fgw_s3_request *request, const struct fgw_upload *upload,
                           const struct fgw_id *id)
{
    char id_text[33];
    struct fgw_buf out;
    fgw_id_hex(id, id_text);
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "InitiateMultipartUploadResult");
    fgw_xml_text(&out, "Bucket", request->bucket.name);
    fgw_xml_text(&out, "Key", request->key);
    fgw_xml_text(&out, "UploadId", fgw_bytes_str(id_text));
    fgw_xml_close(&out, "InitiateMultipartUploadResult");
    if (upload->checksum_algorithm != FGW_CHECKSUM_NONE) {
        fgw_s3_extra_header(request, "x-amz-checksum-algorithm",
                            fgw_bytes_str(fgw_s3_checksum_name(upload->checksum_algorithm)));
        fgw_s3_extra_header(request, "x-amz-checksum-type",
                            fgw_bytes_str(fgw_s3_checksum_type_name(upload->checksum_type)));
    }
    enum fgw_err err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}

enum fgw_err fgw_s3_op_create_multipart_upload(struct fgw_s3_request *request)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_upload upload = {.key = request->key};
    struct fgw_id id;
    upload.object.key = request->key;
    upload.object.creator_id = request->identity.canonical_id;
    upload.object.creator_name = request->identity.display_name;
    enum fgw_err err = fgw_s3_collect_headers(request, &upload.object);
    if (err == FGW_OK) {
        err = fgw_s3_upload_checksum(request, &upload.checksum_algorithm, &upload.checksum_type);
    }
    if (err == FGW_OK) {
        err = meta->ops->upload_create(meta, request->arena, &request->bucket, &upload, &id,
                                       &request->error);
    }
    return err == FGW_OK ? answer(request, &upload, &id) : err;
}
