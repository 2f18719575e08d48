/* range.h: the Range header of GET and HEAD, and x-amz-copy-source-range. Pure functions.
 * Source: RFC 9110 section 14, spec/s3-wire.md 5.43 and 5.56. */
#ifndef FGW_S3_RANGE_H
#define FGW_S3_RANGE_H

#include "base/bytes.h"

/* Bytes [offset, offset+len) of something. */
struct fgw_s3_range {
    uint64_t offset;
    uint64_t len;
};

enum fgw_s3_range_kind {
    FGW_S3_RANGE_WHOLE,        /* no, other, malformed or several ranges: 200, all of it */
    FGW_S3_RANGE_PART,         /* 206 */
    FGW_S3_RANGE_UNSATISFIABLE /* 416 */
};

/* text: the header's value (ptr NULL: none); size: of the object. out_range is set for PART only. */
enum fgw_s3_range_kind fgw_s3_range_parse(struct fgw_bytes text, uint64_t size,
                                          struct fgw_s3_range *out_range);
/* "bytes=a-b" with both ends given and a <= b < size. FGW_ERR_INVALID_ARGUMENT for other syntax,
 * FGW_ERR_INVALID_RANGE past the end. */
enum fgw_err fgw_s3_copy_range_parse(struct fgw_bytes text, uint64_t size,
                                     struct fgw_s3_range *out_range) FGW_MUST_CHECK;

#endif
