/* multipart.c: see multipart.h. */
#include "s3/multipart.h"

#include "base/clock.h"
#include "base/crc.h"
#include "base/encode.h"
#include "base/rng.h"
#include "s3/checksum.h"
#include "s3/engine_internal.h"

/* -- the upload ------------------------------------------------------------------------------- */

static enum fgw_err no_such_upload(struct fgw_s3_request *request)
{
    (void)fgw_error_set(&request->error, FGW_ERR_NO_SUCH_UPLOAD, NULL);
    fgw_error_add(&request->error, "UploadId", "%.*s",
                  FGW_FMT(fgw_bytes_sub(fgw_s3_param(request, "uploadId"), 0, 190)));
    return FGW_ERR_NO_SUCH_UPLOAD;
}

enum fgw_err fgw_s3_find_upload(struct fgw_s3_request *request, struct fgw_upload *out_upload)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_id id;
    if (fgw_id_parse(fgw_s3_param(request, "uploadId"), &id) != FGW_OK) {
        return no_such_upload(request);
    }
    enum fgw_err err = meta->ops->upload_get(meta, request->arena, &request->bucket, request->key,
                                             &id, out_upload, &request->error);
    return err == FGW_ERR_NO_SUCH_UPLOAD ? no_such_upload(request) : err;
}

enum fgw_err fgw_s3_find_open_upload(struct fgw_s3_request *request, struct fgw_upload *out_upload)
{
    struct fgw_upload upload;
    enum fgw_err err = fgw_s3_find_upload(request, &upload);
    if (err == FGW_OK && upload.completed) {
        return no_such_upload(request);
    }
    if (err == FGW_OK) {
        *out_upload = upload;
    }
    return err;
}

enum fgw_err fgw_s3_part_number(struct fgw_s3_request *request, unsigned *out_number)
{
    struct fgw_bytes text = fgw_s3_param(request, "partNumber");
    uint64_t number = 0;
    if (fgw_bytes_to_u64(text, &number) != FGW_OK || number < 1 ||
        number > FGW_S3_PART_NUMBER_MAX) {
        return fgw_s3_bad_argument(request, "partNumber", text,
                                   "Part number must be an integer between 1 and 10000, inclusive");
    }
    *out_number = (unsigned)number;
    return FGW_OK;
}

/* -- checksum settings ------------------------------------------------------------------------ */

static bool is_crc(enum fgw_checksum algorithm)
{
    return algorithm == FGW_CHECKSUM_CRC32 || algorithm == FGW_CHECKSUM_CRC32C ||
           algorithm == FGW_CHECKSUM_CRC64NVME;
}

static enum fgw_err parse_type(struct fgw_s3_request *request, struct fgw_bytes text,
                               enum fgw_checksum_type *out_type)
{
    if (fgw_bytes_ieq_str(text, "COMPOSITE")) {
        *out_type = FGW_CHECKSUM_COMPOSITE;
        return FGW_OK;
    }
    if (fgw_bytes_ieq_str(text, "FULL_OBJECT")) {
        *out_type = FGW_CHECKSUM_FULL_OBJECT;
        return FGW_OK;
    }
    return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                         "Value for x-amz-checksum-type header is invalid.");
}

enum fgw_err fgw_s3_upload_checksum(struct fgw_s3_request *request, enum fgw_checksum *out_algorithm,
                                    enum fgw_checksum_type *out_type)
{
    struct fgw_bytes name = fgw_s3_header(request, "x-amz-checksum-algorithm");
    struct fgw_bytes type_name = fgw_s3_header(request, "x-amz-checksum-type");
    enum fgw_checksum algorithm = fgw_s3_checksum_by_name(name);
    if (name.ptr != NULL && algorithm == FGW_CHECKSUM_NONE) {
        return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                             "Checksum algorithm provided is unsupported. Please try again with "
                             "any of the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]");
    }
    if (name.ptr == NULL && type_name.ptr != NULL) {
        return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                             "The x-amz-checksum-type header can only be used with the "
                             "x-amz-checksum-algorithm header.");
    }
    enum fgw_checksum_type type = algorithm == FGW_CHECKSUM_CRC64NVME ||
                                          algorithm == FGW_CHECKSUM_NONE
                                      ? FGW_CHECKSUM_FULL_OBJECT
                                      : FGW_CHECKSUM_COMPOSITE;
    enum fgw_err err = type_name.ptr == NULL ? FGW_OK : parse_type(request, type_name, &type);
    bool impossible = type == FGW_CHECKSUM_COMPOSITE ? algorithm == FGW_CHECKSUM_CRC64NVME
                                                     : !is_crc(algorithm);
    if (err == FGW_OK && algorithm != FGW_CHECKSUM_NONE && impossible) {
        return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                             "The %s checksum type cannot be used with the %s checksum algorithm.",
                             fgw_s3_checksum_type_name(type), fgw_s3_checksum_name(algorithm));
    }
    if (err == FGW_OK) {
        *out_algorithm = algorithm;
        *out_type = type;
    }
    return err;
}

enum fgw_err fgw_s3_check_part_algorithm(struct fgw_s3_request *request,
                                         const struct fgw_upload *upload,
                                         enum fgw_checksum algorithm)
{
    if (upload->checksum_algorithm == FGW_CHECKSUM_NONE || algorithm == FGW_CHECKSUM_NONE ||
        algorithm == upload->checksum_algorithm) {
        return FGW_OK;
    }
    return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                         "Checksum Type mismatch occurred, expected checksum Type: %s, actual "
                         "checksum Type: %s",
                         fgw_s3_checksum_name(upload->checksum_algorithm),
                         fgw_s3_checksum_name(algorithm));
}

/* -- storing a part --------------------------------------------------------------------------- */

uint64_t fgw_s3_part_extent_number(unsigned part_number)
{
    return (uint64_t)part_number << 48 | fgw_rng_u64() >> 16;
}

/* Newer than every attempt of this number that can be seen: clocks of several processes differ, and
 * two attempts may fall into one millisecond. */
static enum fgw_err draw_attempt(struct fgw_s3_request *request, const struct fgw_upload *upload,
                                 unsigned number, struct fgw_id *out_attempt)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_part *parts = NULL;
    size_t count = 0;
    bool truncated = false;
    enum fgw_err err = meta->ops->part_list(meta, request->arena, upload, number - 1, 1, false,
                                            &parts, &count, &truncated, &request->error);
    if (err == FGW_OK) {
        bool again = count > 0 && parts[0].number == number;
        fgw_id_version(fgw_clock_wall_ms(), again ? &parts[0].attempt : NULL, out_attempt);
    }
    return err;
}

enum fgw_err fgw_s3_put_part(struct fgw_s3_request *request, const struct fgw_upload *upload,
                             struct fgw_part *part, struct fgw_blob_staged *staged)
{
    struct fgw_meta *meta = request->s3->meta;
    enum fgw_err err = draw_attempt(request, upload, part->number, &part->attempt);
    if (err != FGW_OK) {
        fgw_blob_discard(staged);
        return err;
    }
    part->mtime_ms = fgw_id_version_ms(&part->attempt);
    part->extent = staged->extent;
    err = meta->ops->part_put(meta, request->arena, upload, part, staged, &request->error);
    return err == FGW_ERR_NO_SUCH_UPLOAD ? no_such_upload(request) : err;
}

/* -- the whole -------------------------------------------------------------------------------- */

struct fgw_bytes fgw_s3_multipart_etag(struct fgw_arena *arena, const struct fgw_object_part *parts,
                                       size_t count)
{
    struct fgw_digest digest = {0};
    uint8_t md5[FGW_MD5_SIZE];
    fgw_digest_begin(&digest, FGW_DIGEST_MD5);
    for (size_t i = 0; i < count; i++) {
        fgw_digest_update(&digest, fgw_bytes(parts[i].md5, sizeof parts[i].md5));
    }
    fgw_digest_end(&digest, md5);
    fgw_digest_deinit(&digest);
    return fgw_bytes_str(
        fgw_arena_printf(arena, "%s-%zu", fgw_hex(arena, fgw_bytes(md5, sizeof md5)), count));
}

unsigned fgw_s3_etag_parts(struct fgw_bytes etag)
{
    uint64_t parts = 0;
    size_t dash = fgw_bytes_find_byte(etag, '-');
    if (dash == SIZE_MAX ||
        fgw_bytes_to_u64(fgw_bytes_sub(etag, dash + 1, SIZE_MAX), &parts) != FGW_OK ||
        parts > FGW_S3_PART_NUMBER_MAX) {
        return 0;
    }
    return (unsigned)parts;
}

static void combine_digests(enum fgw_checksum algorithm, const struct fgw_object_part *parts,
                            size_t count, struct fgw_checksum_value *out_value)
{
    struct fgw_s3_checksummer summer;
    fgw_s3_checksummer_init(&summer, algorithm);
    for (size_t i = 0; i < count; i++) {
        fgw_s3_checksummer_update(&summer,
                                  fgw_bytes(parts[i].checksum.bytes, parts[i].checksum.len));
    }
    fgw_s3_checksummer_end(&summer, out_value);
}

static void combine_crcs(enum fgw_checksum algorithm, const struct fgw_object_part *parts,
                         size_t count, struct fgw_checksum_value *out_value)
{
    uint32_t crc = 0;
    uint64_t crc64 = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *value = parts[i].checksum.bytes;
        if (algorithm == FGW_CHECKSUM_CRC64NVME) {
            crc64 = fgw_crc64nvme_combine(crc64, fgw_get_u64be(value), parts[i].size);
        } else if (algorithm == FGW_CHECKSUM_CRC32) {
            crc = fgw_crc32_combine(crc, fgw_get_u32be(value), parts[i].size);
        } else {
            crc = fgw_crc32c_combine(crc, fgw_get_u32be(value), parts[i].size);
        }
    }
    if (algorithm == FGW_CHECKSUM_CRC64NVME) {
        fgw_put_u64be(out_value->bytes, crc64);
    } else {
        fgw_put_u32be(out_value->bytes, crc);
    }
}

enum fgw_err fgw_s3_combine_checksums(enum fgw_checksum algorithm, enum fgw_checksum_type type,
                                      const struct fgw_object_part *parts, size_t count,
                                      struct fgw_checksum_value *out_value)
{
    struct fgw_checksum_value value = {.algorithm = algorithm,
                                       .len = fgw_s3_checksum_size(algorithm)};
    for (size_t i = 0; i < count && algorithm != FGW_CHECKSUM_NONE; i++) {
        if (parts[i].checksum.algorithm != algorithm || parts[i].checksum.len != value.len) {
            return FGW_ERR_INVALID_ARGUMENT;
        }
    }
    if (type == FGW_CHECKSUM_FULL_OBJECT && algorithm != FGW_CHECKSUM_NONE) {
        if (!is_crc(algorithm)) {
            return FGW_ERR_INVALID_ARGUMENT;
        }
        combine_crcs(algorithm, parts, count, &value);
    } else if (algorithm != FGW_CHECKSUM_NONE) {
        combine_digests(algorithm, parts, count, &value);
    }
    value.type = type;
    *out_value = value;
    return FGW_OK;
}
