/* access.h: who may do what. Pure functions of identity, bucket and object.
 *
 * - The owner of a bucket has all rights on it and on what it holds; root and users with the policy
 *   admin have all rights on every bucket.
 * - readwrite: reads and writes objects of every bucket, creates buckets. readonly: reads objects,
 *   lists and settings of every bucket, creates none.
 * - Users without a policy and readwrite users create buckets of their own.
 * - Canned ACLs of bucket and object grant the rest, also to anonymous callers.
 * Source: spec/interface.md 7, spec/s3-wire.md 5.19, AWS "Access control list overview". */
#ifndef FGW_S3_ACCESS_H
#define FGW_S3_ACCESS_H

#include "s3/op.h"
#include "s3/request.h"

static inline bool fgw_s3_anonymous(const struct fgw_s3_identity *identity)
{
    return identity->canonical_id.len == 0;
}

bool fgw_s3_may(const struct fgw_s3_identity *identity, const struct fgw_bucket *bucket,
                enum fgw_s3_need need);
bool fgw_s3_may_create_bucket(const struct fgw_s3_identity *identity);
/* Sees the buckets of all owners in ListBuckets. */
bool fgw_s3_may_see_all(const struct fgw_s3_identity *identity);
bool fgw_s3_may_read_object(const struct fgw_s3_identity *identity, const struct fgw_bucket *bucket,
                            const struct fgw_object *object);
/* Read or change the object's ACL. */
bool fgw_s3_may_own_object(const struct fgw_s3_identity *identity, const struct fgw_bucket *bucket,
                           const struct fgw_object *object);

/* FGW_ERR_ACCESS_DENIED, set in request->error. */
enum fgw_err fgw_s3_deny(struct fgw_s3_request *request);
/* `err` of a look-up of an object: a caller who may not list the bucket is told 403 instead of
 * 404, because the answer would reveal which keys exist. */
enum fgw_err fgw_s3_hide_missing(struct fgw_s3_request *request, enum fgw_err err);
/* x-amz-expected-bucket-owner: FGW_ERR_ACCESS_DENIED when the bucket is another's. */
enum fgw_err fgw_s3_check_expected_owner(struct fgw_s3_request *request) FGW_MUST_CHECK;

#endif
