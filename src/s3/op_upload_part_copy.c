/* op_upload_part_copy.c: UploadPartCopy: a part from bytes that are stored already. When they are one
 * whole blob whose digests are known, the part is a new hold on it; else they are read, hashed and
 * staged. spec/s3-wire.md 5.56; public bug reports B55, B64. */
#include "base/encode.h"
#include "s3/answer.h"
#include "s3/checksum.h"
#include "s3/copy.h"
#include "s3/engine_internal.h"
#include "s3/etag.h"
#include "s3/headers.h"
#include "s3/late.h"
#include "s3/multipart.h"
#include "s3/object_info.h"
#include "s3/op.h"
#include "s3/staging.h"
#include "s3/xml_write.h"

enum { DOCUMENT_MAX_BYTES = 16 * 1024, MD5_HEX_LEN = 32 };

struct part_copy {
    struct fgw_s3_source source;
    struct fgw_s3_range range;
    struct fgw_upload upload;
    struct fgw_part part;
};

/* -- what is asked for ------------------------------------------------------------------------ */

static enum fgw_err read_range(struct fgw_s3_request *request, struct part_copy *copy)
{
    uint64_t size = copy->source.object.size;
    struct fgw_bytes text = fgw_s3_header(request, "x-amz-copy-source-range");
    copy->range = (struct fgw_s3_range){0, size};
    if (text.ptr == NULL) {
        return FGW_OK;
    }
    enum fgw_err err = fgw_s3_copy_range_parse(text, size, &copy->range);
    if (err == FGW_ERR_INVALID_ARGUMENT) {
        return fgw_s3_bad_argument(request, "x-amz-copy-source-range", text,
                                   "The x-amz-copy-source-range value must be of the form "
                                   "bytes=first-last where first and last are the zero-based "
                                   "offsets of the first and last bytes to copy");
    }
    if (err == FGW_OK) {
        return FGW_OK;
    }
    char *message = fgw_arena_printf(request->arena,
                                     "Range specified is not valid for source object of size: %llu",
                                     (unsigned long long)size);
    if (request->s3->strict_aws) {
        return fgw_s3_bad_argument(request, "x-amz-copy-source-range", text, message);
    }
    return fgw_error_set(&request->error, FGW_ERR_INVALID_RANGE, "%s", message);
}

static enum fgw_err plan(struct fgw_s3_request *request, struct part_copy *copy)
{
    enum fgw_err err = fgw_s3_part_number(request, &copy->part.number);
    if (err == FGW_OK) {
        err = fgw_s3_refuse_unbuilt_headers(request);
    }
    if (err == FGW_OK) {
        err = fgw_s3_find_open_upload(request, &copy->upload);
    }
    if (err == FGW_OK) {
        err = fgw_s3_find_source(request, &copy->source);
    }
    if (err == FGW_OK) {
        err = read_range(request, copy);
    }
    if (err == FGW_OK && copy->range.len > request->s3->max_put_bytes) {
        err = fgw_error_set(&request->error, FGW_ERR_ENTITY_TOO_LARGE, NULL);
    }
    return err == FGW_OK ? fgw_s3_quota_take(request, copy->range.len, 0) : err;
}

/* -- by a hold -------------------------------------------------------------------------------- */

/* The digests of extent `index`, when they are known without reading it: those of a plain object,
 * or of a part. */
static bool known_digests(const struct part_copy *copy, size_t index, struct fgw_part *part)
{
    const struct fgw_object *object = &copy->source.object;
    if (object->part_count == object->extent_count) {
        memcpy(part->md5, object->parts[index].md5, sizeof part->md5);
        part->checksum = object->parts[index].checksum;
    } else if (object->extent_count == 1 && object->etag.len == MD5_HEX_LEN &&
               fgw_hex_decode(object->etag, part->md5) == FGW_OK) {
        part->checksum = object->checksum;
    } else {
        return false;
    }
    enum fgw_checksum wanted = copy->upload.checksum_algorithm;
    if (wanted == FGW_CHECKSUM_NONE) {
        memset(&part->checksum, 0, sizeof part->checksum);
        return true;
    }
    return part->checksum.algorithm == wanted && part->checksum.type == FGW_CHECKSUM_FULL_OBJECT;
}

/* The one extent that is exactly the range; NULL when there is none. */
static const struct fgw_extent *whole_extent(struct part_copy *copy)
{
    const struct fgw_object *object = &copy->source.object;
    uint64_t offset = 0;
    for (size_t i = 0; i < object->extent_count && offset <= copy->range.offset; i++) {
        if (offset == copy->range.offset && object->extents[i].size == copy->range.len) {
            return known_digests(copy, i, &copy->part) ? &object->extents[i] : NULL;
        }
        offset += object->extents[i].size;
    }
    return NULL;
}

/* NOT_FOUND: the bytes must be read. */
static enum fgw_err copy_by_hold(struct fgw_s3_request *request, struct part_copy *copy,
                                 const struct fgw_storage_owner *owner)
{
    struct fgw_blob_staged staged;
    const struct fgw_extent *extent = whole_extent(copy);
    if (extent == NULL) {
        return FGW_ERR_NOT_FOUND;
    }
    enum fgw_err err = fgw_s3_copy_extent(
        request, extent, owner, fgw_s3_part_extent_number(copy->part.number), false, &staged);
    return err == FGW_OK ? fgw_s3_put_part(request, &copy->upload, &copy->part, &staged) : err;
}

/* -- by bytes --------------------------------------------------------------------------------- */

static enum fgw_err copy_by_bytes(struct fgw_s3_request *request, struct part_copy *copy,
                                  const struct fgw_storage_owner *owner)
{
    struct fgw_s3_byte_copy bytes = {.object = &copy->source.object,
                                     .range = copy->range,
                                     .want_md5 = true,
                                     .want_checksum = copy->upload.checksum_algorithm,
                                     .owner = owner,
                                     .extent_number = fgw_s3_part_extent_number(copy->part.number)};
    enum fgw_err err = fgw_s3_copy_bytes(request, &bytes);
    if (err != FGW_OK) {
        return err;
    }
    memcpy(copy->part.md5, bytes.md5, sizeof copy->part.md5);
    copy->part.checksum = bytes.checksum;
    return fgw_s3_put_part(request, &copy->upload, &copy->part, &bytes.staged);
}

/* In a fiber of its own, see late.h. */
static enum fgw_err copy_part(struct fgw_s3_request *request, void *context)
{
    struct part_copy *copy = context;
    struct fgw_storage_owner owner = fgw_s3_owner(request, &copy->upload.id);
    copy->part.size = copy->range.len;
    enum fgw_err err = copy_by_hold(request, copy, &owner);
    if (err == FGW_ERR_NOT_FOUND) {
        fgw_error_init(&request->error);
        err = copy_by_bytes(request, copy, &owner);
    }
    return err;
}

static enum fgw_err answer(struct fgw_s3_request *request, const struct fgw_part *part)
{
    struct fgw_buf out;
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "CopyPartResult");
    fgw_xml_time(&out, "LastModified", part->mtime_ms);
    fgw_xml_etag(&out, "ETag", fgw_s3_etag_of_md5(request->arena, part->md5));
    fgw_s3_part_checksum_element(&out, &part->checksum);
    fgw_xml_close(&out, "CopyPartResult");
    enum fgw_err err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}

enum fgw_err fgw_s3_op_upload_part_copy(struct fgw_s3_request *request)
{
    struct part_copy *copy = fgw_arena_zalloc(request->arena, sizeof *copy);
    enum fgw_err err = plan(request, copy);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_s3_late late;
    fgw_s3_late_begin(&late, request);
    err = fgw_s3_late_run(&late, copy_part, copy);
    if (err == FGW_OK) {
        err = answer(request, &copy->part);
    }
    fgw_s3_late_end(&late);
    return err;
}
