/* checksum.c: see checksum.h. */
#include "s3/checksum.h"

#include <stdio.h>

#include "base/check.h"
#include "base/crc.h"
#include "base/encode.h"
#include "s3/engine_internal.h"

struct row {
    const char *name;
    const char *header;
    const char *element;
    uint8_t size;
};

static const struct row ROWS[] = {
    [FGW_CHECKSUM_NONE] = {"", "", "", 0},
    [FGW_CHECKSUM_CRC32] = {"CRC32", "x-amz-checksum-crc32", "ChecksumCRC32", 4},
    [FGW_CHECKSUM_CRC32C] = {"CRC32C", "x-amz-checksum-crc32c", "ChecksumCRC32C", 4},
    [FGW_CHECKSUM_CRC64NVME] = {"CRC64NVME", "x-amz-checksum-crc64nvme", "ChecksumCRC64NVME", 8},
    [FGW_CHECKSUM_SHA1] = {"SHA1", "x-amz-checksum-sha1", "ChecksumSHA1", 20},
    [FGW_CHECKSUM_SHA256] = {"SHA256", "x-amz-checksum-sha256", "ChecksumSHA256", 32},
};

static const struct row *row_of(enum fgw_checksum algorithm)
{
    return &ROWS[(unsigned)algorithm < FGW_COUNT_OF(ROWS) ? algorithm : FGW_CHECKSUM_NONE];
}

const char *fgw_s3_checksum_name(enum fgw_checksum algorithm)
{
    return row_of(algorithm)->name;
}

const char *fgw_s3_checksum_header(enum fgw_checksum algorithm)
{
    return row_of(algorithm)->header;
}

const char *fgw_s3_checksum_element(enum fgw_checksum algorithm)
{
    return row_of(algorithm)->element;
}

uint8_t fgw_s3_checksum_size(enum fgw_checksum algorithm)
{
    return row_of(algorithm)->size;
}

const char *fgw_s3_checksum_type_name(enum fgw_checksum_type type)
{
    return type == FGW_CHECKSUM_COMPOSITE ? "COMPOSITE" : "FULL_OBJECT";
}

enum fgw_checksum fgw_s3_checksum_by_name(struct fgw_bytes name)
{
    for (size_t i = 1; i < FGW_COUNT_OF(ROWS); i++) {
        if (fgw_bytes_ieq_str(name, ROWS[i].name)) {
            return (enum fgw_checksum)i;
        }
    }
    return FGW_CHECKSUM_NONE;
}

enum fgw_checksum fgw_s3_checksum_by_header(struct fgw_bytes name)
{
    for (size_t i = 1; i < FGW_COUNT_OF(ROWS); i++) {
        if (fgw_bytes_ieq_str(name, ROWS[i].header)) {
            return (enum fgw_checksum)i;
        }
    }
    return FGW_CHECKSUM_NONE;
}

enum fgw_err fgw_s3_checksum_parse(enum fgw_checksum algorithm, struct fgw_bytes text,
                                   uint8_t out[FGW_META_CHECKSUM_MAX])
{
    uint8_t decoded[FGW_META_CHECKSUM_MAX + 4];
    size_t len = 0;
    size_t want = row_of(algorithm)->size;
    if (text.len == 0 || text.len / 4 * 3 > sizeof decoded ||
        fgw_base64_decode(text, decoded, &len) != FGW_OK || len != want) {
        return FGW_ERR_PARSE;
    }
    memcpy(out, decoded, len);
    return FGW_OK;
}

void fgw_s3_checksum_text(const struct fgw_checksum_value *value, unsigned parts,
                          char out[FGW_S3_CHECKSUM_TEXT_SIZE])
{
    fgw_base64_encode(fgw_bytes(value->bytes, value->len), out);
    if (value->type == FGW_CHECKSUM_COMPOSITE && parts > 0) {
        size_t len = strlen(out);
        (void)snprintf(out + len, FGW_S3_CHECKSUM_TEXT_SIZE - len, "-%u", parts);
    }
}

/* -- what the request says ------------------------------------------------------------------ */

static enum fgw_err refuse(struct fgw_s3_request *request, const char *message)
{
    return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST, "%s", message);
}

enum fgw_err fgw_s3_bad_checksum(struct fgw_s3_request *request, enum fgw_checksum algorithm)
{
    return fgw_error_set(&request->error,
                         request->s3->strict_aws ? FGW_ERR_INVALID_REQUEST : FGW_ERR_BAD_DIGEST,
                         "Value for %s header is invalid.", fgw_s3_checksum_header(algorithm));
}

static bool is_setting(struct fgw_bytes name)
{
    return fgw_bytes_ieq_str(name, "x-amz-checksum-algorithm") ||
           fgw_bytes_ieq_str(name, "x-amz-checksum-type") ||
           fgw_bytes_ieq_str(name, "x-amz-checksum-mode");
}

static enum fgw_err take_value(struct fgw_s3_request *request,
                               const struct fgw_http_header *header,
                               struct fgw_s3_checksum_wish *wish)
{
    enum fgw_checksum algorithm = fgw_s3_checksum_by_header(header->name);
    if (algorithm == FGW_CHECKSUM_NONE) {
        return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                             "The checksum algorithm of %.*s is not supported.",
                             FGW_FMT(fgw_bytes_sub(header->name, 0, 100)));
    }
    if (wish->algorithm != FGW_CHECKSUM_NONE) {
        return refuse(request, "Expecting a single x-amz-checksum- header. Multiple checksum Types "
                               "are not allowed.");
    }
    if (fgw_s3_checksum_parse(algorithm, header->value, wish->expected) != FGW_OK) {
        return fgw_s3_bad_checksum(request, algorithm);
    }
    wish->algorithm = algorithm;
    wish->has_expected = true;
    return FGW_OK;
}

static enum fgw_err take_trailer(struct fgw_s3_request *request, struct fgw_s3_checksum_wish *wish)
{
    struct fgw_bytes rest = fgw_s3_header(request, "x-amz-trailer");
    struct fgw_bytes name;
    while (fgw_bytes_split(&rest, ',', &name)) {
        enum fgw_checksum algorithm = fgw_s3_checksum_by_header(fgw_bytes_trim(name));
        if (algorithm == FGW_CHECKSUM_NONE) {
            return refuse(request, "The value specified in the x-amz-trailer header is not "
                                   "supported");
        }
        if (wish->algorithm != FGW_CHECKSUM_NONE) {
            return refuse(request, "Expecting a single x-amz-checksum- header");
        }
        wish->algorithm = algorithm;
        wish->in_trailer = true;
    }
    if (wish->in_trailer && !fgw_sig_payload_is_chunked(request->auth.payload)) {
        return fgw_error_set(&request->error, FGW_ERR_MALFORMED_TRAILER, NULL);
    }
    return FGW_OK;
}

static enum fgw_err check_sdk_algorithm(struct fgw_s3_request *request,
                                        const struct fgw_s3_checksum_wish *wish)
{
    struct fgw_bytes name = fgw_s3_header(request, "x-amz-sdk-checksum-algorithm");
    if (name.ptr == NULL) {
        return FGW_OK;
    }
    enum fgw_checksum algorithm = fgw_s3_checksum_by_name(name);
    if (algorithm == FGW_CHECKSUM_NONE) {
        return refuse(request, "Value for x-amz-sdk-checksum-algorithm header is invalid.");
    }
    if (wish->algorithm == FGW_CHECKSUM_NONE) {
        return refuse(request, "x-amz-sdk-checksum-algorithm specified, but no corresponding "
                               "x-amz-checksum-* or x-amz-trailer headers were found.");
    }
    if (algorithm != wish->algorithm) {
        return refuse(request, "Value for x-amz-sdk-checksum-algorithm header is invalid.");
    }
    return FGW_OK;
}

enum fgw_err fgw_s3_checksum_wish(struct fgw_s3_request *request,
                                  struct fgw_s3_checksum_wish *out_wish)
{
    struct fgw_s3_checksum_wish wish = {0};
    for (size_t i = 0; i < request->http->header_count; i++) {
        const struct fgw_http_header *header = &request->http->headers[i];
        if (!fgw_bytes_ieq_str(fgw_bytes_sub(header->name, 0, 15), "x-amz-checksum-") ||
            is_setting(header->name)) {
            continue;
        }
        enum fgw_err err = take_value(request, header, &wish);
        if (err != FGW_OK) {
            return err;
        }
    }
    enum fgw_err err = take_trailer(request, &wish);
    if (err == FGW_OK) {
        err = check_sdk_algorithm(request, &wish);
    }
    if (err == FGW_OK) {
        *out_wish = wish;
    }
    return err;
}

/* -- computing ------------------------------------------------------------------------------ */

static bool digest_kind(enum fgw_checksum algorithm, enum fgw_digest_kind *out_kind)
{
    if (algorithm == FGW_CHECKSUM_SHA1 || algorithm == FGW_CHECKSUM_SHA256) {
        *out_kind = algorithm == FGW_CHECKSUM_SHA1 ? FGW_DIGEST_SHA1 : FGW_DIGEST_SHA256;
        return true;
    }
    return false;
}

void fgw_s3_checksummer_init(struct fgw_s3_checksummer *summer, enum fgw_checksum algorithm)
{
    *summer = (struct fgw_s3_checksummer){.algorithm = algorithm};
    enum fgw_digest_kind kind;
    if (digest_kind(algorithm, &kind)) {
        fgw_digest_begin(&summer->digest, kind);
        summer->digesting = true;
    }
}

void fgw_s3_checksummer_update(struct fgw_s3_checksummer *summer, struct fgw_bytes bytes)
{
    switch (summer->algorithm) {
    case FGW_CHECKSUM_NONE:
        break;
    case FGW_CHECKSUM_CRC32:
        summer->crc = fgw_crc32(summer->crc, bytes);
        break;
    case FGW_CHECKSUM_CRC32C:
        summer->crc = fgw_crc32c(summer->crc, bytes);
        break;
    case FGW_CHECKSUM_CRC64NVME:
        summer->crc64 = fgw_crc64nvme(summer->crc64, bytes);
        break;
    case FGW_CHECKSUM_SHA1:
    case FGW_CHECKSUM_SHA256:
        fgw_digest_update(&summer->digest, bytes);
        break;
    }
}

void fgw_s3_checksummer_end(struct fgw_s3_checksummer *summer, struct fgw_checksum_value *out_value)
{
    struct fgw_checksum_value value = {.algorithm = summer->algorithm,
                                       .type = FGW_CHECKSUM_FULL_OBJECT,
                                       .len = row_of(summer->algorithm)->size};
    if (summer->digesting) {
        fgw_digest_end(&summer->digest, value.bytes);
    } else if (summer->algorithm == FGW_CHECKSUM_CRC64NVME) {
        fgw_put_u64be(value.bytes, summer->crc64);
    } else {
        fgw_put_u32be(value.bytes, summer->crc);
    }
    fgw_s3_checksummer_deinit(summer);
    *out_value = value;
}

void fgw_s3_checksummer_deinit(struct fgw_s3_checksummer *summer)
{
    if (summer->digesting) {
        fgw_digest_deinit(&summer->digest);
        summer->digesting = false;
    }
}
