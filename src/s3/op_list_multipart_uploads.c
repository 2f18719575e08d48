/* op_list_multipart_uploads.c: ListMultipartUploads: uploads that are open, by key and then in the
 * order they were begun. Markers only order: neither need name an upload that exists.
 * spec/s3-wire.md 5.62; public bug reports B60. */
#include "s3/answer.h"
#include "s3/checksum.h"
#include "s3/engine_internal.h"
#include "s3/list.h"
#include "s3/op.h"
#include "s3/xml_write.h"

enum { PAGE_MAX_BYTES = 64 * 1024 * 1024 };

static enum fgw_err read_query(struct fgw_s3_request *request, const struct fgw_s3_list_args *args,
                               struct fgw_upload_list_query *out_query)
{
    struct fgw_bytes marker = fgw_s3_param(request, "upload-id-marker");
    struct fgw_upload_list_query query = {.prefix = args->prefix,
                                          .delimiter = args->delimiter,
                                          .key_marker = fgw_s3_param(request, "key-marker"),
                                          .max = args->max};
    /* without a key marker it says nothing (AWS) */
    if (marker.len > 0 && query.key_marker.len > 0) {
        if (fgw_id_parse(marker, &query.upload_id_marker) != FGW_OK) {
            return fgw_s3_bad_argument(request, "upload-id-marker", marker,
                                       "Invalid uploadId marker");
        }
        query.has_upload_id_marker = true;
    }
    *out_query = query;
    return FGW_OK;
}

static void write_upload(struct fgw_buf *out, const struct fgw_upload *upload, bool url)
{
    const struct fgw_object *object = &upload->object;
    char id[33];
    fgw_id_hex(&upload->id, id);
    fgw_xml_open(out, "Upload");
    fgw_xml_key(out, "Key", upload->key, url);
    fgw_xml_text(out, "UploadId", fgw_bytes_str(id));
    fgw_s3_list_owner(out, "Initiator", object->creator_id, object->creator_name);
    fgw_s3_list_owner(out, "Owner", object->creator_id, object->creator_name);
    fgw_xml_text(out, "StorageClass",
                 object->storage_class.len > 0 ? object->storage_class : FGW_LIT("STANDARD"));
    fgw_xml_time(out, "Initiated", upload->created_ms);
    fgw_s3_list_checksum(out, upload->checksum_algorithm, upload->checksum_type);
    fgw_xml_close(out, "Upload");
}

static void write_next(struct fgw_buf *out, const struct fgw_upload_list *list, bool url)
{
    if (!list->truncated || list->count == 0) {
        return;
    }
    const struct fgw_upload_list_entry *last = &list->entries[list->count - 1];
    fgw_xml_key(out, "NextKeyMarker", last->is_prefix ? last->prefix : last->upload.key, url);
    if (!last->is_prefix) {
        char id[33];
        fgw_id_hex(&last->upload.id, id);
        fgw_xml_text(out, "NextUploadIdMarker", fgw_bytes_str(id));
    }
}

static void write_page(struct fgw_s3_request *request, struct fgw_buf *out,
                       const struct fgw_s3_list_args *args, const struct fgw_upload_list *list)
{
    fgw_xml_text(out, "Bucket", request->bucket.name);
    fgw_xml_key(out, "KeyMarker", fgw_s3_param(request, "key-marker"), args->url);
    fgw_xml_text(out, "UploadIdMarker", fgw_s3_param(request, "upload-id-marker"));
    write_next(out, list, args->url);
    fgw_xml_key(out, "Prefix", args->prefix, args->url);
    if (args->delimiter.len > 0) {
        fgw_xml_key(out, "Delimiter", args->delimiter, args->url);
    }
    if (args->url) {
        fgw_xml_text(out, "EncodingType", FGW_LIT("url"));
    }
    fgw_xml_number(out, "MaxUploads", args->max);
    fgw_xml_bool(out, "IsTruncated", list->truncated);
    for (size_t i = 0; i < list->count; i++) {
        if (!list->entries[i].is_prefix) {
            write_upload(out, &list->entries[i].upload, args->url);
        }
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i].is_prefix) {
            fgw_s3_list_common_prefix(out, list->entries[i].prefix, args->url);
        }
    }
}

enum fgw_err fgw_s3_op_list_multipart_uploads(struct fgw_s3_request *request)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_s3_list_args args;
    struct fgw_upload_list_query query;
    struct fgw_upload_list list = {0};
    enum fgw_err err = fgw_s3_list_args(request, "max-uploads", &args);
    if (err == FGW_OK) {
        err = read_query(request, &args, &query);
    }
    if (err == FGW_OK && args.max > 0) {
        err = meta->ops->upload_list(meta, request->arena, &request->bucket, &query, &list,
                                     &request->error);
    }
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_buf out;
    fgw_buf_init(&out, PAGE_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "ListMultipartUploadsResult");
    write_page(request, &out, &args, &list);
    fgw_xml_close(&out, "ListMultipartUploadsResult");
    err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}
