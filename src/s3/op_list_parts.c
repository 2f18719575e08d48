/* op_list_parts.c: ListParts: what an open upload has, page by page. spec/s3-wire.md 5.62; public bug
 * reports B55. */
#include "s3/access.h"
#include "s3/answer.h"
#include "s3/checksum.h"
#include "s3/engine_internal.h"
#include "s3/etag.h"
#include "s3/list.h"
#include "s3/multipart.h"
#include "s3/object_info.h"
#include "s3/op.h"
#include "s3/xml_write.h"

enum { PAGE_MAX_BYTES = 2 * 1024 * 1024 };

struct page {
    unsigned after;
    unsigned max;
    struct fgw_upload upload;
    struct fgw_part *parts;
    size_t count;
    bool truncated;
};

/* Who may write to the bucket, and who began the upload. */
static enum fgw_err check_reader(struct fgw_s3_request *request, const struct fgw_upload *upload)
{
    bool mine = !fgw_s3_anonymous(&request->identity) &&
                fgw_bytes_eq(upload->object.creator_id, request->identity.canonical_id);
    return mine || fgw_s3_may(&request->identity, &request->bucket, FGW_S3_NEED_BUCKET_WRITE)
               ? FGW_OK
               : fgw_s3_deny(request);
}

static enum fgw_err read_page(struct fgw_s3_request *request, struct page *page)
{
    struct fgw_meta *meta = request->s3->meta;
    enum fgw_err err = fgw_s3_param_number(request, "part-number-marker", FGW_S3_PART_NUMBER_MAX, 0,
                                           &page->after);
    if (err == FGW_OK) {
        err = fgw_s3_param_number(request, "max-parts", FGW_S3_LIST_MAX, FGW_S3_LIST_MAX,
                                  &page->max);
    }
    if (err == FGW_OK) {
        err = fgw_s3_find_open_upload(request, &page->upload);
    }
    if (err == FGW_OK) {
        err = check_reader(request, &page->upload);
    }
    if (err != FGW_OK || page->max == 0) {
        return err;
    }
    return meta->ops->part_list(meta, request->arena, &page->upload, page->after, page->max, false,
                                &page->parts, &page->count, &page->truncated, &request->error);
}

static void write_part(struct fgw_s3_request *request, struct fgw_buf *out,
                       const struct fgw_part *part)
{
    fgw_xml_open(out, "Part");
    fgw_xml_number(out, "PartNumber", part->number);
    fgw_xml_time(out, "LastModified", part->mtime_ms);
    fgw_xml_etag(out, "ETag", fgw_s3_etag_of_md5(request->arena, part->md5));
    fgw_xml_number(out, "Size", part->size);
    fgw_s3_part_checksum_element(out, &part->checksum);
    fgw_xml_close(out, "Part");
}

static void write_page(struct fgw_s3_request *request, struct fgw_buf *out, const struct page *page)
{
    const struct fgw_object *object = &page->upload.object;
    fgw_xml_text(out, "Bucket", request->bucket.name);
    fgw_xml_text(out, "Key", request->key);
    fgw_xml_text(out, "UploadId", fgw_s3_param(request, "uploadId"));
    fgw_s3_list_owner(out, "Initiator", object->creator_id, object->creator_name);
    fgw_s3_list_owner(out, "Owner", object->creator_id, object->creator_name);
    fgw_xml_text(out, "StorageClass",
                 object->storage_class.len > 0 ? object->storage_class : FGW_LIT("STANDARD"));
    fgw_s3_list_checksum(out, page->upload.checksum_algorithm, page->upload.checksum_type);
    fgw_xml_number(out, "PartNumberMarker", page->after);
    if (page->count > 0) {
        fgw_xml_number(out, "NextPartNumberMarker", page->parts[page->count - 1].number);
    }
    fgw_xml_number(out, "MaxParts", page->max);
    fgw_xml_bool(out, "IsTruncated", page->truncated);
    for (size_t i = 0; i < page->count; i++) {
        write_part(request, out, &page->parts[i]);
    }
}

enum fgw_err fgw_s3_op_list_parts(struct fgw_s3_request *request)
{
    struct page page = {0};
    enum fgw_err err = read_page(request, &page);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_buf out;
    fgw_buf_init(&out, PAGE_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "ListPartsResult");
    write_page(request, &out, &page);
    fgw_xml_close(&out, "ListPartsResult");
    err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}
