/* op_list_object_versions.c: ListObjectVersions. spec/s3-wire.md 5.39; public bug reports B79. */
#include "s3/answer.h"
#include "s3/engine_internal.h"
#include "s3/list.h"
#include "s3/op.h"
#include "s3/xml_write.h"

enum { PAGE_MAX_BYTES = 64 * 1024 * 1024 };

static void version_element(struct fgw_buf *out, const char *name, const struct fgw_id *id,
                            bool is_null)
{
    char text[33] = "null";
    if (!is_null) {
        fgw_id_hex(id, text);
    }
    fgw_xml_text(out, name, fgw_bytes_str(text));
}

static void write_version(struct fgw_buf *out, const struct fgw_object *object, bool url)
{
    const char *element = object->delete_marker ? "DeleteMarker" : "Version";
    fgw_xml_open(out, element);
    fgw_xml_key(out, "Key", object->key, url);
    version_element(out, "VersionId", &object->version_id, object->is_null);
    fgw_xml_bool(out, "IsLatest", object->latest);
    if (object->delete_marker) {
        fgw_xml_time(out, "LastModified", object->mtime_ms);
    } else {
        fgw_s3_list_columns(out, object);
    }
    fgw_s3_list_owner(out, "Owner", object->creator_id, object->creator_name);
    fgw_xml_close(out, element);
}

static enum fgw_err read_query(struct fgw_s3_request *request, const struct fgw_s3_list_args *args,
                               struct fgw_list_query *out_query)
{
    struct fgw_bytes version = fgw_s3_param(request, "version-id-marker");
    struct fgw_list_query query = {.prefix = args->prefix,
                                   .delimiter = args->delimiter,
                                   .after = fgw_s3_param(request, "key-marker"),
                                   .max = args->max};
    if (version.len > 0) {
        if (query.after.len == 0) {
            return fgw_s3_bad_argument(request, "version-id-marker", version,
                                       "A version-id marker cannot be specified without a key "
                                       "marker.");
        }
        enum fgw_err err =
            fgw_s3_param_version(request, "version-id-marker", &query.after_version);
        if (err != FGW_OK) {
            return err;
        }
        query.has_after_version = true;
    }
    *out_query = query;
    return FGW_OK;
}

static void write_position(struct fgw_s3_request *request, struct fgw_buf *out,
                           const struct fgw_s3_list_args *args, const struct fgw_object_list *list)
{
    fgw_xml_key(out, "Prefix", args->prefix, args->url);
    fgw_xml_key(out, "KeyMarker", fgw_s3_param(request, "key-marker"), args->url);
    fgw_xml_text(out, "VersionIdMarker", fgw_s3_param(request, "version-id-marker"));
    if (list->truncated && list->count > 0) {
        const struct fgw_list_entry *last = &list->entries[list->count - 1];
        fgw_xml_key(out, "NextKeyMarker", fgw_s3_list_last(list), args->url);
        if (!last->is_prefix) {
            version_element(out, "NextVersionIdMarker", &last->object.version_id,
                            last->object.is_null);
        }
    }
    fgw_xml_number(out, "MaxKeys", args->max);
    if (args->delimiter.len > 0) {
        fgw_xml_key(out, "Delimiter", args->delimiter, args->url);
    }
    fgw_xml_bool(out, "IsTruncated", list->truncated);
    if (args->url) {
        fgw_xml_text(out, "EncodingType", FGW_LIT("url"));
    }
}

static void write_entries(struct fgw_buf *out, const struct fgw_object_list *list, bool url)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!list->entries[i].is_prefix) {
            write_version(out, &list->entries[i].object, url);
        }
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i].is_prefix) {
            fgw_s3_list_common_prefix(out, list->entries[i].prefix, url);
        }
    }
}

enum fgw_err fgw_s3_op_list_object_versions(struct fgw_s3_request *request)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_s3_list_args args;
    struct fgw_list_query query;
    struct fgw_object_list list = {0};
    enum fgw_err err = fgw_s3_list_args(request, "max-keys", &args);
    if (err == FGW_OK) {
        err = read_query(request, &args, &query);
    }
    if (err == FGW_OK && args.max > 0) {
        err = meta->ops->version_list(meta, request->arena, &request->bucket, &query, &list,
                                      &request->error);
    }
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_buf out;
    fgw_buf_init(&out, PAGE_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "ListVersionsResult");
    fgw_xml_text(&out, "Name", request->bucket.name);
    write_position(request, &out, &args, &list);
    write_entries(&out, &list, args.url);
    fgw_xml_close(&out, "ListVersionsResult");
    err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}
