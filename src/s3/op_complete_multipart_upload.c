/* op_complete_multipart_upload.c: CompleteMultipartUpload. Moves no bytes: the object's extents are
 * the parts' own. Sent again after success it answers the same; refused for whatever reason it
 * leaves upload and parts as they are. spec/s3-wire.md 5.57 to 5.60, 5.63, 5.65. */
#include "base/encode.h"
#include "s3/answer.h"
#include "s3/body.h"
#include "s3/checksum.h"
#include "s3/complete_list.h"
#include "s3/conditions.h"
#include "s3/engine_internal.h"
#include "s3/etag.h"
#include "s3/late.h"
#include "s3/multipart.h"
#include "s3/object_cid.h"
#include "s3/object_info.h"
#include "s3/op.h"
#include "s3/xml_write.h"

enum { DOCUMENT_MAX_BYTES = 16 * 1024, ETAG_HEX_LEN = 32 };
static const uint64_t OBJECT_MAX_BYTES = 5ULL * 1024 * 1024 * 1024 * 1024;

struct completion {
    struct fgw_upload upload;
    struct fgw_complete complete;
    struct fgw_s3_listed_part *listed;
    size_t count;
    struct fgw_object_part *parts;
    struct fgw_extent *extents;
    struct fgw_written written;
};

/* -- the request ------------------------------------------------------------------------------ */

static enum fgw_err read_list(struct fgw_s3_request *request, struct completion *completion)
{
    struct fgw_s3_body_options options = {.max_bytes = FGW_S3_XML_LARGE_MAX,
                                          .too_large = FGW_ERR_MALFORMED_XML,
                                          .checksum_of_object = true};
    struct fgw_buf body;
    fgw_buf_init(&body, FGW_S3_XML_LARGE_MAX);
    enum fgw_err err = fgw_s3_body_collect_with(request, &options, &body);
    if (err == FGW_OK) {
        err = fgw_s3_complete_list_parse(request->arena,
                                         fgw_arena_copy(request->arena, fgw_buf_bytes(&body)),
                                         &completion->listed, &completion->count, &request->error);
    }
    fgw_buf_deinit(&body);
    return err;
}

static enum fgw_err invalid_part(struct fgw_s3_request *request,
                                 const struct fgw_s3_listed_part *listed)
{
    (void)fgw_error_set(&request->error, FGW_ERR_INVALID_PART, NULL);
    fgw_error_add(&request->error, "UploadId", "%.*s", FGW_FMT(fgw_s3_param(request, "uploadId")));
    fgw_error_add(&request->error, "PartNumber", "%u", listed->number);
    fgw_error_add(&request->error, "ETag", "%.*s", FGW_FMT(fgw_bytes_sub(listed->etag, 0, 100)));
    return FGW_ERR_INVALID_PART;
}

static enum fgw_err take_md5(struct fgw_s3_request *request,
                             const struct fgw_s3_listed_part *listed, uint8_t md5[FGW_MD5_SIZE])
{
    if (listed->etag.len != ETAG_HEX_LEN || fgw_hex_decode(listed->etag, md5) != FGW_OK) {
        return invalid_part(request, listed);
    }
    return FGW_OK;
}

/* -- from listed parts to the object ---------------------------------------------------------- */

static enum fgw_err too_small(struct fgw_s3_request *request, const struct fgw_object_part *part)
{
    (void)fgw_error_set(&request->error, FGW_ERR_ENTITY_TOO_SMALL, NULL);
    fgw_error_add(&request->error, "ProposedSize", "%llu", (unsigned long long)part->size);
    fgw_error_add(&request->error, "MinSizeAllowed", "%llu",
                  (unsigned long long)FGW_S3_PART_MIN_BYTES);
    fgw_error_add(&request->error, "PartNumber", "%u", part->number);
    return FGW_ERR_ENTITY_TOO_SMALL;
}

static bool matches(const struct fgw_s3_listed_part *listed, const struct fgw_part *part,
                    const uint8_t md5[FGW_MD5_SIZE])
{
    bool comparable = listed->checksum.algorithm != FGW_CHECKSUM_NONE &&
                      part->checksum.algorithm != FGW_CHECKSUM_NONE;
    if (comparable &&
        (listed->checksum.algorithm != part->checksum.algorithm ||
         memcmp(listed->checksum.bytes, part->checksum.bytes, part->checksum.len) != 0)) {
        return false;
    }
    return memcmp(md5, part->md5, FGW_MD5_SIZE) == 0;
}

/* Both lists ascend; stored has at most one part a number. */
static enum fgw_err pick_parts(struct fgw_s3_request *request, struct completion *completion,
                               const struct fgw_part *stored, size_t stored_count)
{
    size_t at = 0;
    for (size_t i = 0; i < completion->count; i++) {
        const struct fgw_s3_listed_part *listed = &completion->listed[i];
        uint8_t md5[FGW_MD5_SIZE];
        while (at < stored_count && stored[at].number < listed->number) {
            at++;
        }
        enum fgw_err err = take_md5(request, listed, md5);
        if (err == FGW_OK && (at == stored_count || stored[at].number != listed->number ||
                              !matches(listed, &stored[at], md5))) {
            err = invalid_part(request, listed);
        }
        if (err != FGW_OK) {
            return err;
        }
        struct fgw_object_part *part = &completion->parts[i];
        *part = (struct fgw_object_part){
            .number = listed->number, .size = stored[at].size, .checksum = stored[at].checksum};
        memcpy(part->md5, md5, sizeof part->md5);
        completion->extents[i] = stored[at].extent;
    }
    return FGW_OK;
}

static enum fgw_err check_sizes(struct fgw_s3_request *request, const struct completion *completion,
                                uint64_t *out_total)
{
    uint64_t total = 0;
    for (size_t i = 0; i < completion->count; i++) {
        const struct fgw_object_part *part = &completion->parts[i];
        if (part->size < FGW_S3_PART_MIN_BYTES && i + 1 < completion->count) {
            return too_small(request, part);
        }
        total += part->size;
    }
    struct fgw_bytes text = fgw_s3_header(request, "x-amz-mp-object-size");
    uint64_t announced = total;
    if (text.ptr != NULL && (fgw_bytes_to_u64(text, &announced) != FGW_OK || announced != total)) {
        return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                             "The provided 'x-amz-mp-object-size' header value %.*s does not match "
                             "what was computed: %llu",
                             FGW_FMT(fgw_bytes_sub(text, 0, 40)), (unsigned long long)total);
    }
    if (total > OBJECT_MAX_BYTES) {
        return fgw_error_set(&request->error, FGW_ERR_ENTITY_TOO_LARGE, NULL);
    }
    *out_total = total;
    return FGW_OK;
}

/* The value the client expects of the whole, with or without "-parts". */
static enum fgw_err check_expected(struct fgw_s3_request *request,
                                   const struct fgw_checksum_value *value, size_t count)
{
    struct fgw_bytes type = fgw_s3_header(request, "x-amz-checksum-type");
    if (type.ptr != NULL && value->algorithm != FGW_CHECKSUM_NONE &&
        !fgw_bytes_ieq_str(type, fgw_s3_checksum_type_name(value->type))) {
        return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                             "The upload was created with the checksum type %s.",
                             fgw_s3_checksum_type_name(value->type));
    }
    if (value->algorithm == FGW_CHECKSUM_NONE) {
        return FGW_OK;
    }
    struct fgw_bytes sent = fgw_s3_header(request, fgw_s3_checksum_header(value->algorithm));
    char with_count[FGW_S3_CHECKSUM_TEXT_SIZE];
    char bare[FGW_S3_CHECKSUM_TEXT_SIZE];
    fgw_s3_checksum_text(value, (unsigned)count, with_count);
    fgw_s3_checksum_text(value, 0, bare);
    if (sent.ptr == NULL || fgw_bytes_eq_str(sent, with_count) || fgw_bytes_eq_str(sent, bare)) {
        return FGW_OK;
    }
    return fgw_error_set(&request->error, FGW_ERR_BAD_DIGEST,
                         "The %s you specified did not match the calculated checksum.",
                         fgw_s3_checksum_name(value->algorithm));
}

static enum fgw_err whole_checksum(struct fgw_s3_request *request, struct completion *completion,
                                   struct fgw_checksum_value *out_value)
{
    const struct fgw_upload *upload = &completion->upload;
    enum fgw_err err = fgw_s3_combine_checksums(upload->checksum_algorithm, upload->checksum_type,
                                                completion->parts, completion->count, out_value);
    if (err != FGW_OK) {
        return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                             "The upload was created with the checksum algorithm %s, which a part "
                             "does not have.",
                             fgw_s3_checksum_name(upload->checksum_algorithm));
    }
    return check_expected(request, out_value, completion->count);
}

static enum fgw_err make_object(struct fgw_s3_request *request, struct completion *completion)
{
    struct fgw_object *object = &completion->complete.object;
    *object = completion->upload.object;
    object->key = request->key;
    object->owner_id = completion->upload.id;
    object->upload_id = completion->upload.id;
    enum fgw_err err = check_sizes(request, completion, &object->size);
    if (err == FGW_OK) {
        err = whole_checksum(request, completion, &object->checksum);
    }
    object->etag = fgw_s3_multipart_etag(request->arena, completion->parts, completion->count);
    object->parts = completion->parts;
    object->part_count = completion->count;
    object->extents = completion->extents;
    object->extent_count = completion->count;
    if (err == FGW_OK) {
        fgw_s3_find_object_cid(request->s3->blobs, object);
    }
    return err;
}

static void hash_list(const struct completion *completion, uint8_t out[FGW_SHA256_SIZE])
{
    struct fgw_digest digest = {0};
    fgw_digest_begin(&digest, FGW_DIGEST_SHA256);
    for (size_t i = 0; i < completion->count; i++) {
        uint8_t number[4];
        fgw_put_u32be(number, completion->parts[i].number);
        fgw_digest_update(&digest, fgw_bytes(number, sizeof number));
        fgw_digest_update(&digest, fgw_bytes(completion->parts[i].md5, FGW_MD5_SIZE));
    }
    fgw_digest_end(&digest, out);
    fgw_digest_deinit(&digest);
}

/* In a fiber of its own, see late.h. */
static enum fgw_err complete(struct fgw_s3_request *request, void *context)
{
    struct completion *completion = context;
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_part *stored = NULL;
    size_t stored_count = 0;
    bool truncated = false;
    completion->parts =
        fgw_arena_zalloc(request->arena, completion->count * sizeof *completion->parts);
    completion->extents =
        fgw_arena_zalloc(request->arena, completion->count * sizeof *completion->extents);
    enum fgw_err err = meta->ops->part_list(meta, request->arena, &completion->upload, 0, 0, false,
                                            &stored, &stored_count, &truncated, &request->error);
    if (err == FGW_OK) {
        err = pick_parts(request, completion, stored, stored_count);
    }
    if (err == FGW_OK) {
        err = make_object(request, completion);
    }
    if (err != FGW_OK) {
        return err;
    }
    completion->complete.bucket = &request->bucket;
    completion->complete.upload_id = completion->upload.id;
    completion->complete.upload_rev = completion->upload.rev;
    hash_list(completion, completion->complete.part_list_hash);
    return meta->ops->upload_complete(meta, request->arena, &completion->complete,
                                      &completion->written, &request->error);
}

/* -- the answer ------------------------------------------------------------------------------- */

static void write_location(struct fgw_s3_request *request, struct fgw_buf *out)
{
    fgw_xml_open(out, "Location");
    (void)fgw_buf_append_str(out, request->http->tls ? "https://" : "http://");
    fgw_xml_escape(out, request->http->host);
    fgw_xml_escape(out, request->http->raw_path);
    fgw_xml_close(out, "Location");
}

static enum fgw_err answer(struct fgw_s3_request *request, const struct fgw_object *object,
                           const struct fgw_written *written)
{
    struct fgw_buf out;
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "CompleteMultipartUploadResult");
    write_location(request, &out);
    fgw_xml_text(&out, "Bucket", request->bucket.name);
    fgw_xml_text(&out, "Key", request->key);
    fgw_xml_etag(&out, "ETag", object->etag);
    fgw_s3_checksum_elements(&out, &object->checksum, fgw_s3_etag_parts(object->etag));
    fgw_xml_close(&out, "CompleteMultipartUploadResult");
    fgw_s3_extra_written(request, written);
    fgw_s3_extra_cid(request, object);
    enum fgw_err err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}

/* The upload was completed before: the same list gets the same answer, as the client may not have
 * seen the first one. The ETag stands for the list. */
static enum fgw_err answer_again(struct fgw_s3_request *request, struct completion *completion)
{
    const struct fgw_upload *upload = &completion->upload;
    struct fgw_object object = {.etag = upload->answer_etag, .checksum = upload->answer_checksum};
    completion->parts =
        fgw_arena_zalloc(request->arena, completion->count * sizeof *completion->parts);
    for (size_t i = 0; i < completion->count; i++) {
        enum fgw_err err = take_md5(request, &completion->listed[i], completion->parts[i].md5);
        if (err != FGW_OK) {
            return err;
        }
    }
    struct fgw_bytes etag =
        fgw_s3_multipart_etag(request->arena, completion->parts, completion->count);
    if (!fgw_bytes_eq(etag, upload->answer_etag)) {
        return fgw_error_set(&request->error, FGW_ERR_NO_SUCH_UPLOAD, NULL);
    }
    return answer(request, &object, &upload->answer);
}

/* Somebody else, e.g. the same client over another connection, may have completed it meanwhile: then
 * its parts are gone. */
static enum fgw_err settle(struct fgw_s3_request *request, struct completion *completion,
                           enum fgw_err err)
{
    if (err == FGW_OK) {
        return answer(request, &completion->complete.object, &completion->written);
    }
    if (err != FGW_ERR_INVALID_PART && err != FGW_ERR_NO_SUCH_UPLOAD) {
        return err;
    }
    struct fgw_error first = request->error;
    fgw_error_init(&request->error);
    if (fgw_s3_find_upload(request, &completion->upload) == FGW_OK &&
        completion->upload.completed) {
        return answer_again(request, completion);
    }
    request->error = first;
    return err;
}

enum fgw_err fgw_s3_op_complete_multipart_upload(struct fgw_s3_request *request)
{
    struct completion *completion = fgw_arena_zalloc(request->arena, sizeof *completion);
    enum fgw_err err = fgw_s3_find_upload(request, &completion->upload);
    if (err == FGW_OK) {
        err = fgw_s3_write_conditions(request, &completion->complete.conditions);
    }
    if (err == FGW_OK) {
        err = read_list(request, completion);
    }
    if (err != FGW_OK || completion->upload.completed) {
        return err == FGW_OK ? answer_again(request, completion) : err;
    }
    /* its bytes were taken with the parts */
    err = fgw_s3_quota_take(request, 0, 1);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_s3_late late;
    fgw_s3_late_begin(&late, request);
    err = settle(request, completion, fgw_s3_late_run(&late, complete, completion));
    fgw_s3_late_end(&late);
    return err;
}
