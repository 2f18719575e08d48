/* op_upload_part.c: UploadPart. A part appears only when all of its bytes were right; the upload is
 * looked up before the body is read, and judged again at the commit. spec/s3-wire.md 5.60, 5.61. */
#include "s3/answer.h"
#include "s3/engine_internal.h"
#include "s3/etag.h"
#include "s3/headers.h"
#include "s3/multipart.h"
#include "s3/object_info.h"
#include "s3/op.h"
#include "s3/staging.h"

static enum fgw_err plan(struct fgw_s3_request *request, struct fgw_upload *upload, unsigned *number,
                         struct fgw_s3_body **out_body)
{
    struct fgw_s3_body_options options = {.max_bytes = request->s3->max_put_bytes,
                                          .too_large = FGW_ERR_ENTITY_TOO_LARGE,
                                          .need_length = true,
                                          .want_md5 = true};
    enum fgw_err err = fgw_s3_part_number(request, number);
    if (err == FGW_OK) {
        err = fgw_s3_refuse_unbuilt_headers(request);
    }
    if (err == FGW_OK) {
        err = fgw_s3_find_open_upload(request, upload);
    }
    if (err != FGW_OK) {
        return err;
    }
    options.want_checksum = upload->checksum_algorithm;
    struct fgw_s3_body *body = NULL;
    err = fgw_s3_body_plan(request, &options, &body);
    if (err == FGW_OK) {
        err = fgw_s3_check_part_algorithm(request, upload, body->wish.algorithm);
    }
    if (err != FGW_OK) {
        fgw_s3_body_deinit(body);
        return err;
    }
    *out_body = body;
    return FGW_OK;
}

static enum fgw_err answer(struct fgw_s3_request *request, const struct fgw_part *part)
{
    fgw_s3_start(request, 200, 0);
    fgw_s3_send_etag(request, fgw_s3_etag_of_md5(request->arena, part->md5));
    fgw_s3_send_part_checksum(request, &part->checksum);
    return fgw_s3_end(request);
}

enum fgw_err fgw_s3_op_upload_part(struct fgw_s3_request *request)
{
    struct fgw_upload upload;
    struct fgw_part part = {0};
    struct fgw_s3_body *body = NULL;
    struct fgw_blob_staged staged;
    enum fgw_err err = plan(request, &upload, &part.number, &body);
    if (err == FGW_OK) {
        err = fgw_s3_stage_body(request, body, &upload.id, fgw_s3_part_extent_number(part.number),
                                &staged);
    }
    if (err == FGW_OK) {
        part.size = body->size;
        memcpy(part.md5, body->md5, sizeof part.md5);
        part.checksum = body->checksum;
        err = fgw_s3_put_part(request, &upload, &part, &staged);
    }
    fgw_s3_body_deinit(body);
    return err == FGW_OK ? answer(request, &part) : err;
}
