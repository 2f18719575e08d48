/* list.c: see list.h. */
#include "s3/list.h"

#include "s3/checksum.h"
#include "s3/engine_internal.h"
#include "s3/xml_write.h"

enum fgw_err fgw_s3_list_args(struct fgw_s3_request *request, const char *max_name,
                              struct fgw_s3_list_args *out_args)
{
    struct fgw_bytes encoding = fgw_s3_param(request, "encoding-type");
    if (encoding.len > 0 && !fgw_bytes_eq_str(encoding, "url")) {
        return fgw_s3_bad_argument(request, "encoding-type", encoding,
                                   "Invalid Encoding Method specified in Request");
    }
    struct fgw_s3_list_args args = {.prefix = fgw_s3_param(request, "prefix"),
                                    .delimiter = fgw_s3_param(request, "delimiter"),
                                    .url = encoding.len > 0};
    enum fgw_err err =
        fgw_s3_param_number(request, max_name, FGW_S3_LIST_MAX, FGW_S3_LIST_MAX, &args.max);
    if (err == FGW_OK) {
        *out_args = args;
    }
    return err;
}

void fgw_s3_list_owner(struct fgw_buf *out, const char *element, struct fgw_bytes id,
                       struct fgw_bytes display_name)
{
    fgw_xml_open(out, element);
    fgw_xml_text(out, "ID", id);
    fgw_xml_text(out, "DisplayName", display_name);
    fgw_xml_close(out, element);
}

void fgw_s3_list_checksum(struct fgw_buf *out, enum fgw_checksum algorithm,
                          enum fgw_checksum_type type)
{
    if (algorithm != FGW_CHECKSUM_NONE) {
        fgw_xml_text(out, "ChecksumAlgorithm", fgw_bytes_str(fgw_s3_checksum_name(algorithm)));
        fgw_xml_text(out, "ChecksumType", fgw_bytes_str(fgw_s3_checksum_type_name(type)));
    }
}

void fgw_s3_list_columns(struct fgw_buf *out, const struct fgw_object *object)
{
    fgw_xml_time(out, "LastModified", object->mtime_ms);
    fgw_xml_etag(out, "ETag", object->etag);
    fgw_s3_list_checksum(out, object->checksum.algorithm, object->checksum.type);
    fgw_xml_number(out, "Size", object->size);
    fgw_xml_text(out, "StorageClass",
                 object->storage_class.len > 0 ? object->storage_class : FGW_LIT("STANDARD"));
}

void fgw_s3_list_common_prefix(struct fgw_buf *out, struct fgw_bytes prefix, bool url)
{
    fgw_xml_open(out, "CommonPrefixes");
    fgw_xml_key(out, "Prefix", prefix, url);
    fgw_xml_close(out, "CommonPrefixes");
}

struct fgw_bytes fgw_s3_list_last(const struct fgw_object_list *list)
{
    if (list->count == 0) {
        return FGW_LIT("");
    }
    const struct fgw_list_entry *last = &list->entries[list->count - 1];
    return last->is_prefix ? last->prefix : last->object.key;
}
