/* conditions.h: If-* headers. For reads they are judged here, against the object found; for writes
 * they are only collected, and judged by the metadata backend against the row the write replaces.
 * Source: RFC 9110 section 13.2.2, spec/s3-wire.md 5.41, 5.50, 5.51, 5.55. */
#ifndef FGW_S3_CONDITIONS_H
#define FGW_S3_CONDITIONS_H

#include "s3/request.h"

/* Values as sent; ptr NULL: absent. Broken dates are ignored. */
struct fgw_s3_read_conditions {
    struct fgw_bytes if_match;
    struct fgw_bytes if_none_match;
    struct fgw_bytes if_modified_since;
    struct fgw_bytes if_unmodified_since;
};

enum fgw_s3_verdict { FGW_S3_PROCEED, FGW_S3_NOT_MODIFIED, FGW_S3_FAILED };

/* If-Match ... of GET and HEAD. */
struct fgw_s3_read_conditions fgw_s3_read_conditions(const struct fgw_http_request *http);
/* x-amz-copy-source-if-match ... of copies (there NOT_MODIFIED counts as FAILED too). */
struct fgw_s3_read_conditions fgw_s3_copy_conditions(const struct fgw_http_request *http);
/* etag without quotes; times are compared in whole seconds. *out_condition names what failed. */
enum fgw_s3_verdict fgw_s3_read_verdict(const struct fgw_s3_read_conditions *conditions,
                                        struct fgw_bytes etag, int64_t mtime_ms,
                                        const char **out_condition);
/* FGW_ERR_PRECONDITION_FAILED with the element Condition. */
enum fgw_err fgw_s3_condition_failed(struct fgw_s3_request *request, const char *condition);
/* If-Range: false when a range must be ignored because the object is another one now. */
bool fgw_s3_if_range_holds(const struct fgw_http_request *http, struct fgw_bytes etag,
                           int64_t mtime_ms);

/* If-Match and If-None-Match of PUT, Complete and DELETE, and DELETE's x-amz-if-match-*. Errors:
 * NOT_IMPLEMENTED (lists; If-None-Match with an ETag when strict_aws), INVALID_ARGUMENT. */
enum fgw_err fgw_s3_write_conditions(struct fgw_s3_request *request,
                                     struct fgw_conditions *out_conditions) FGW_MUST_CHECK;

#endif
