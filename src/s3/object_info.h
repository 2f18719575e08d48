/* object_info.h: finding the version a request means, and the headers that describe it. */
#ifndef FGW_S3_OBJECT_INFO_H
#define FGW_S3_OBJECT_INFO_H

#include "s3/range.h"
#include "s3/request.h"

/* What a caller must be allowed to do with an object. */
enum fgw_s3_object_need {
    FGW_S3_OBJECT_READ,    /* its bytes */
    FGW_S3_OBJECT_OWN,     /* change its ACL */
    FGW_S3_OBJECT_SETTINGS /* see its ACL and tags */
};

/* The version that versionId names, or the latest, if the caller may do what it needs. Sets the extra headers of delete markers. Errors: NO_SUCH_KEY, NO_SUCH_VERSION,
 * METHOD_NOT_ALLOWED (a marker by its id), ACCESS_DENIED, INVALID_ARGUMENT. */
enum fgw_err fgw_s3_find_object(struct fgw_s3_request *request, enum fgw_s3_object_need need,
                                struct fgw_object *out_object) FGW_MUST_CHECK;

/* ETag, Last-Modified, x-amz-version-id, x-fgw-cid, x-amz-storage-class...: everything GET and HEAD
 * say of an object besides its own headers. After fgw_s3_start. */
void fgw_s3_send_object_info(struct fgw_s3_request *request, const struct fgw_object *object);
/* x-fgw-cid and x-fgw-cid-profile, when known. */
void fgw_s3_send_cid(struct fgw_s3_request *request, const struct fgw_object *object);
/* The same for whatever answer comes. */
void fgw_s3_extra_cid(struct fgw_s3_request *request, const struct fgw_object *object);
/* x-amz-version-id of what was just written, for whatever answer comes: none in a bucket that was
 * never versioned, nor, unless strict_aws, in a suspended one (spec/s3-wire.md 5.69). */
void fgw_s3_extra_written(struct fgw_s3_request *request, const struct fgw_written *written);
/* ETag in quotes. */
void fgw_s3_send_etag(struct fgw_s3_request *request, struct fgw_bytes etag);
/* x-amz-checksum-<algorithm> and -type; nothing for NONE. parts: of a COMPOSITE value, else 0. */
void fgw_s3_send_checksum(struct fgw_s3_request *request, const struct fgw_checksum_value *value,
                          unsigned parts);
/* Of a part: the value alone. */
void fgw_s3_send_part_checksum(struct fgw_s3_request *request,
                               const struct fgw_checksum_value *value);
/* <ChecksumCRC32>value</ChecksumCRC32> and <ChecksumType>; nothing for NONE. */
void fgw_s3_checksum_elements(struct fgw_buf *out, const struct fgw_checksum_value *value,
                              unsigned parts);
/* Of a part: the value alone. */
void fgw_s3_part_checksum_element(struct fgw_buf *out, const struct fgw_checksum_value *value);

#endif
