/* object_info.c: see object_info.h. */
#include "s3/object_info.h"

#include "base/timefmt.h"
#include "s3/access.h"
#include "s3/checksum.h"
#include "s3/engine_internal.h"
#include "s3/xml_write.h"

static void describe_marker(struct fgw_s3_request *request, const struct fgw_object *object)
{
    fgw_s3_extra_header(request, "x-amz-delete-marker", FGW_LIT("true"));
    fgw_s3_extra_header(request, "x-amz-version-id",
                        fgw_s3_version_text(request, &object->version_id, object->is_null));
}

/* A delete marker is no object: 404 when it is the newest version, 405 when it was named. */
static enum fgw_err refuse_marker(struct fgw_s3_request *request, const struct fgw_object *object,
                                  enum fgw_version_kind kind)
{
    enum fgw_err err =
        fgw_s3_hide_missing(request, fgw_error_set(&request->error, FGW_ERR_NO_SUCH_KEY, NULL));
    if (err == FGW_ERR_ACCESS_DENIED) {
        return err;
    }
    describe_marker(request, object);
    if (kind == FGW_VERSION_LATEST) {
        return err;
    }
    char *date = fgw_arena_alloc(request->arena, FGW_TIME_HTTP_SIZE);
    fgw_time_http(object->mtime_ms, date);
    fgw_s3_extra_header(request, "Last-Modified", fgw_bytes_str(date));
    (void)fgw_error_set(&request->error, FGW_ERR_METHOD_NOT_ALLOWED, NULL);
    fgw_error_add(&request->error, "Method", "%.*s", FGW_FMT(request->http->method_text));
    fgw_error_add(&request->error, "ResourceType", "DeleteMarker");
    return FGW_ERR_METHOD_NOT_ALLOWED;
}

static bool may(const struct fgw_s3_request *request, const struct fgw_object *object,
                enum fgw_s3_object_need need)
{
    const struct fgw_s3_identity *identity = &request->identity;
    switch (need) {
    case FGW_S3_OBJECT_READ:
        return fgw_s3_may_read_object(identity, &request->bucket, object);
    case FGW_S3_OBJECT_OWN:
        return fgw_s3_may_own_object(identity, &request->bucket, object);
    case FGW_S3_OBJECT_SETTINGS:
        return fgw_s3_may_own_object(identity, &request->bucket, object) ||
               fgw_s3_may(identity, &request->bucket, FGW_S3_NEED_BUCKET_OWNER_READ);
    }
    return false;
}

enum fgw_err fgw_s3_find_object(struct fgw_s3_request *request, enum fgw_s3_object_need need,
                                struct fgw_object *out_object)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_version version;
    enum fgw_err err = fgw_s3_param_version(request, "versionId", &version);
    if (err != FGW_OK) {
        return err;
    }
    err = meta->ops->object_get(meta, request->arena, &request->bucket, request->key, version,
                                out_object, &request->error);
    if (err != FGW_OK) {
        return fgw_s3_hide_missing(request, err);
    }
    if (out_object->delete_marker) {
        return refuse_marker(request, out_object, version.kind);
    }
    return may(request, out_object, need) ? FGW_OK : fgw_s3_deny(request);
}

void fgw_s3_send_etag(struct fgw_s3_request *request, struct fgw_bytes etag)
{
    char text[80];
    if (etag.len + 2 > sizeof text) {
        return;
    }
    text[0] = '"';
    memcpy(text + 1, etag.ptr, etag.len);
    text[etag.len + 1] = '"';
    fgw_http_response_header(request->exchange, "ETag", fgw_bytes(text, etag.len + 2));
}

static struct fgw_bytes cid_profile(const struct fgw_object *object)
{
    return object->canonical_cid ? FGW_LIT("unixfs-v1-2025") : FGW_LIT("custom");
}

void fgw_s3_send_cid(struct fgw_s3_request *request, const struct fgw_object *object)
{
    if (!object->has_cid) {
        return;
    }
    char text[FGW_CID_TEXT_SIZE];
    fgw_cid_text(&object->cid, text);
    fgw_http_response_header(request->exchange, "x-fgw-cid", fgw_bytes_str(text));
    fgw_http_response_header(request->exchange, "x-fgw-cid-profile", cid_profile(object));
}

void fgw_s3_extra_cid(struct fgw_s3_request *request, const struct fgw_object *object)
{
    if (!object->has_cid) {
        return;
    }
    char *text = fgw_arena_alloc(request->arena, FGW_CID_TEXT_SIZE);
    fgw_cid_text(&object->cid, text);
    fgw_s3_extra_header(request, "x-fgw-cid", fgw_bytes_str(text));
    fgw_s3_extra_header(request, "x-fgw-cid-profile", cid_profile(object));
}

void fgw_s3_extra_written(struct fgw_s3_request *request, const struct fgw_written *written)
{
    if (request->bucket.versioning == FGW_VERSIONING_ENABLED ||
        (request->bucket.versioning == FGW_VERSIONING_SUSPENDED && request->s3->strict_aws)) {
        fgw_s3_extra_header(request, "x-amz-version-id",
                            fgw_s3_version_text(request, &written->version_id, written->is_null));
    }
}

static void send_value(struct fgw_s3_request *request, const struct fgw_checksum_value *value,
                       unsigned parts)
{
    char text[FGW_S3_CHECKSUM_TEXT_SIZE];
    fgw_s3_checksum_text(value, parts, text);
    fgw_http_response_header(request->exchange, fgw_s3_checksum_header(value->algorithm),
                             fgw_bytes_str(text));
}

void fgw_s3_send_checksum(struct fgw_s3_request *request, const struct fgw_checksum_value *value,
                          unsigned parts)
{
    if (value->algorithm == FGW_CHECKSUM_NONE) {
        return;
    }
    send_value(request, value, parts);
    fgw_http_response_header(request->exchange, "x-amz-checksum-type",
                             fgw_bytes_str(fgw_s3_checksum_type_name(value->type)));
}

void fgw_s3_send_part_checksum(struct fgw_s3_request *request,
                               const struct fgw_checksum_value *value)
{
    if (value->algorithm != FGW_CHECKSUM_NONE) {
        send_value(request, value, 0);
    }
}

void fgw_s3_send_object_info(struct fgw_s3_request *request, const struct fgw_object *object)
{
    struct fgw_http_exchange *exchange = request->exchange;
    char date[FGW_TIME_HTTP_SIZE];
    fgw_time_http(object->mtime_ms, date);
    fgw_http_response_header(exchange, "Last-Modified", fgw_bytes_str(date));
    fgw_s3_send_etag(request, object->etag);
    struct fgw_bytes version = fgw_s3_version_text(request, &object->version_id, object->is_null);
    if (version.ptr != NULL) {
        fgw_http_response_header(exchange, "x-amz-version-id", version);
    }
    if (object->storage_class.len > 0) {
        fgw_http_response_header(exchange, "x-amz-storage-class", object->storage_class);
    }
    if (object->tag_count > 0) {
        fgw_http_response_headerf(exchange, "x-amz-tagging-count", "%zu", object->tag_count);
    }
    if (object->part_count > 0 && fgw_s3_has_param(request, "partNumber")) {
        fgw_http_response_headerf(exchange, "x-amz-mp-parts-count", "%zu", object->part_count);
    }
    fgw_s3_send_cid(request, object);
}

void fgw_s3_checksum_elements(struct fgw_buf *out, const struct fgw_checksum_value *value,
                              unsigned parts)
{
    if (value->algorithm == FGW_CHECKSUM_NONE) {
        return;
    }
    char text[FGW_S3_CHECKSUM_TEXT_SIZE];
    fgw_s3_checksum_text(value, parts, text);
    fgw_xml_text(out, fgw_s3_checksum_element(value->algorithm), fgw_bytes_str(text));
    fgw_xml_text(out, "ChecksumType", fgw_bytes_str(fgw_s3_checksum_type_name(value->type)));
}

void fgw_s3_part_checksum_element(struct fgw_buf *out, const struct fgw_checksum_value *value)
{
    if (value->algorithm != FGW_CHECKSUM_NONE) {
        char text[FGW_S3_CHECKSUM_TEXT_SIZE];
        fgw_s3_checksum_text(value, 0, text);
        fgw_xml_text(out, fgw_s3_checksum_element(value->algorithm), fgw_bytes_str(text));
    }
}
