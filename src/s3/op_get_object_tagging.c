/* op_get_object_tagging.c: GetObjectTagging: the tags given with the PUT. */
#include "s3/answer.h"
#include "s3/object_info.h"
#include "s3/op.h"
#include "s3/tags.h"

enum { DOCUMENT_MAX_BYTES = 64 * 1024 };

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
    fgw_s3_extra_header(request, "x-amz-version-id",
                        fgw_s3_version_text(request, &object.version_id, object.is_null));
    err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}
