/* acl.h: canned ACLs: names, the grants they stand for, and documents. Grants beyond the canned
 * ones are not kept by FGW and are answered NotImplemented. Source: AWS "Canned ACL". */
#ifndef FGW_S3_ACL_H
#define FGW_S3_ACL_H

#include "s3/request.h"

/* x-amz-acl; absent: PRIVATE and *out_given false. FGW_ERR_INVALID_ARGUMENT for other names,
 * NOT_IMPLEMENTED for x-amz-grant-* headers. Buckets take only the first four. */
enum fgw_err fgw_s3_acl_from_headers(struct fgw_s3_request *request, bool for_bucket,
                                     enum fgw_acl *out_acl, bool *out_given) FGW_MUST_CHECK;

/* Who owns what the ACL is of. */
struct fgw_s3_acl_owner {
    struct fgw_bytes id;
    struct fgw_bytes display_name;
};
/* AccessControlPolicy: group grants before user grants (spec/s3-wire.md 5.77). bucket_owner is
 * used by the bucket-owner-* ACLs of objects. */
void fgw_s3_acl_document(enum fgw_acl acl, const struct fgw_s3_acl_owner *owner,
                         const struct fgw_s3_acl_owner *bucket_owner, struct fgw_buf *out);
/* The canned ACL an AccessControlPolicy document equals. FGW_ERR_MALFORMED_XML; ACCESS_DENIED when
 * it names another owner; NOT_IMPLEMENTED when no canned ACL says the same. */
enum fgw_err fgw_s3_acl_from_document(struct fgw_s3_request *request, struct fgw_bytes document,
                                      const struct fgw_s3_acl_owner *owner,
                                      enum fgw_acl *out_acl) FGW_MUST_CHECK;
/* Of a PUT ?acl: from the header, else from the body. */
enum fgw_err fgw_s3_acl_from_request(struct fgw_s3_request *request, bool for_bucket,
                                     const struct fgw_s3_acl_owner *owner, enum fgw_acl *out_acl)
    FGW_MUST_CHECK;

#endif
