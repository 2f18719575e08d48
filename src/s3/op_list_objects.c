/* op_list_objects.c: ListObjects (version 1) and ListObjectsV2. spec/s3-wire.md 5.27 to 5.38. */
#include "s3/answer.h"
#include "s3/engine_internal.h"
#include "s3/list.h"
#include "s3/op.h"
#include "s3/token.h"
#include "s3/xml_write.h"

enum { PAGE_MAX_BYTES = 64 * 1024 * 1024, PAGE_RESERVE_BYTES = 64 * 1024 };

static enum fgw_err read_page(struct fgw_s3_request *request, const struct fgw_s3_list_args *args,
                              struct fgw_bytes after, struct fgw_object_list *out_list)
{
    struct fgw_meta *meta = request->s3->meta;
    if (args->max == 0) { /* an empty page, and never "more to come" (B42) */
        *out_list = (struct fgw_object_list){0};
        return FGW_OK;
    }
    struct fgw_list_query query = {.prefix = args->prefix,
                                   .delimiter = args->delimiter,
                                   .after = after,
                                   .max = args->max};
    return meta->ops->object_list(meta, request->arena, &request->bucket, &query, out_list,
                                  &request->error);
}

static void write_contents(struct fgw_buf *out, const struct fgw_object *object, bool url,
                           bool owner)
{
    fgw_xml_open(out, "Contents");
    fgw_xml_key(out, "Key", object->key, url);
    fgw_s3_list_columns(out, object);
    if (owner) {
        fgw_s3_list_owner(out, "Owner", object->creator_id, object->creator_name);
    }
    fgw_xml_close(out, "Contents");
}

static void write_entries(struct fgw_buf *out, const struct fgw_object_list *list, bool url, bool owner)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!list->entries[i].is_prefix) {
            write_contents(out, &list->entries[i].object, url, owner);
        }
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i].is_prefix) {
            fgw_s3_list_common_prefix(out, list->entries[i].prefix, url);
        }
    }
}

static void write_arguments(struct fgw_buf *out, const struct fgw_s3_list_args *args,
                            const struct fgw_object_list *list)
{
    fgw_xml_number(out, "MaxKeys", args->max);
    if (args->delimiter.len > 0) {
        fgw_xml_key(out, "Delimiter", args->delimiter, args->url);
    }
    fgw_xml_bool(out, "IsTruncated", list->truncated);
    if (args->url) {
        fgw_xml_text(out, "EncodingType", FGW_LIT("url"));
    }
}

static enum fgw_err finish(struct fgw_s3_request *request, struct fgw_buf *out)
{
    fgw_xml_close(out, "ListBucketResult");
    enum fgw_err err = fgw_s3_answer_xml(request, out);
    fgw_buf_deinit(out);
    return err;
}

static void begin(struct fgw_s3_request *request, struct fgw_buf *out)
{
    fgw_buf_init(out, PAGE_MAX_BYTES);
    (void)fgw_buf_reserve(out, PAGE_RESERVE_BYTES);
    fgw_xml_begin(out);
    fgw_xml_root(out, "ListBucketResult");
    fgw_xml_text(out, "Name", request->bucket.name);
}

enum fgw_err fgw_s3_op_list_objects(struct fgw_s3_request *request)
{
    struct fgw_s3_list_args args;
    struct fgw_object_list list;
    struct fgw_bytes marker = fgw_s3_param(request, "marker");
    enum fgw_err err = fgw_s3_list_args(request, "max-keys", &args);
    if (err == FGW_OK) {
        err = read_page(request, &args, marker, &list);
    }
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_buf out;
    begin(request, &out);
    fgw_xml_text(&out, "Prefix", args.prefix); /* never URL-encoded: clients do not decode it */
    fgw_xml_key(&out, "Marker", marker, args.url);
    if (list.truncated && args.delimiter.len > 0) {
        fgw_xml_key(&out, "NextMarker", fgw_s3_list_last(&list), args.url);
    }
    write_arguments(&out, &args, &list);
    write_entries(&out, &list, args.url, true);
    return finish(request, &out);
}

/* Where version 2 goes on: behind the token, else behind start-after. */
static enum fgw_err find_after(struct fgw_s3_request *request, struct fgw_bytes *out_after)
{
    struct fgw_bytes token = fgw_s3_param(request, "continuation-token");
    *out_after = fgw_s3_param(request, "start-after");
    if (token.len == 0) {
        return FGW_OK;
    }
    if (fgw_s3_token_open(request->arena, request->s3->token_key, token, out_after) != FGW_OK) {
        return fgw_s3_bad_argument(request, "continuation-token", token,
                                   "The continuation token provided is incorrect");
    }
    return FGW_OK;
}

static void write_position(struct fgw_s3_request *request, struct fgw_buf *out,
                           const struct fgw_s3_list_args *args, const struct fgw_object_list *list)
{
    struct fgw_bytes token = fgw_s3_param(request, "continuation-token");
    struct fgw_bytes start_after = fgw_s3_param(request, "start-after");
    fgw_xml_key(out, "Prefix", args->prefix, args->url);
    if (token.ptr != NULL) {
        fgw_xml_text(out, "ContinuationToken", token);
    }
    if (start_after.len > 0) {
        fgw_xml_key(out, "StartAfter", start_after, args->url);
    }
    if (list->truncated) {
        fgw_xml_text(out, "NextContinuationToken",
                     fgw_s3_token_make(request->arena, request->s3->token_key,
                                       fgw_s3_list_last(list)));
    }
    fgw_xml_number(out, "KeyCount", list->count);
}

enum fgw_err fgw_s3_op_list_objects_v2(struct fgw_s3_request *request)
{
    struct fgw_s3_list_args args;
    struct fgw_object_list list;
    struct fgw_bytes after;
    struct fgw_bytes type = fgw_s3_param(request, "list-type");
    if (!fgw_bytes_eq_str(type, "2")) {
        return fgw_s3_bad_argument(request, "list-type", type, "Invalid List Type specified in "
                                                               "Request");
    }
    enum fgw_err err = fgw_s3_list_args(request, "max-keys", &args);
    if (err == FGW_OK) {
        err = find_after(request, &after);
    }
    if (err == FGW_OK) {
        err = read_page(request, &args, after, &list);
    }
    if (err != FGW_OK) {
        return err;
    }
    bool owner = fgw_bytes_eq_str(fgw_s3_param(request, "fetch-owner"), "true");
    struct fgw_buf out;
    begin(request, &out);
    write_position(request, &out, &args, &list);
    write_arguments(&out, &args, &list);
    write_entries(&out, &list, args.url, owner);
    return finish(request, &out);
}
