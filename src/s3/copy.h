/* copy.h: what CopyObject and UploadPartCopy share: the source with its permissions and conditions,
 * and its bytes staged again, by a new hold where the store grants one, else by reading them.
 * Source: spec/s3-wire.md 5.53 to 5.56. */
#ifndef FGW_S3_COPY_H
#define FGW_S3_COPY_H

#include "base/digest.h"
#include "s3/range.h"
#include "s3/request.h"

struct fgw_s3_source {
    struct fgw_bucket bucket;
    struct fgw_object object;
};

/* The version that x-amz-copy-source names, when the caller may read it and the headers
 * x-amz-copy-source-if-* hold. Adds x-amz-copy-source-version-id to whatever answer comes. Errors:
 * INVALID_ARGUMENT (the header), NO_SUCH_BUCKET, NO_SUCH_KEY, NO_SUCH_VERSION, ACCESS_DENIED,
 * INVALID_REQUEST (a delete marker by its id), PRECONDITION_FAILED. */
enum fgw_err fgw_s3_find_source(struct fgw_s3_request *request, struct fgw_s3_source *out_source)
    FGW_MUST_CHECK;

/* Bytes of an object read for hashing, and staged unless owner is NULL. */
struct fgw_s3_byte_copy {
    const struct fgw_object *object;
    struct fgw_s3_range range;
    bool want_md5;
    enum fgw_checksum want_checksum;
    const struct fgw_storage_owner *owner;
    uint64_t extent_number;
    /* results */
    uint8_t md5[FGW_MD5_SIZE];
    struct fgw_checksum_value checksum;
    struct fgw_blob_staged staged;
};
enum fgw_err fgw_s3_copy_bytes(struct fgw_s3_request *request, struct fgw_s3_byte_copy *copy)
    FGW_MUST_CHECK;

/* One extent staged for another owner: a hold when the store grants it and by_bytes is not set. */
enum fgw_err fgw_s3_copy_extent(struct fgw_s3_request *request, const struct fgw_extent *extent,
                                const struct fgw_storage_owner *owner, uint64_t extent_number,
                                bool by_bytes, struct fgw_blob_staged *out_staged) FGW_MUST_CHECK;

#endif
