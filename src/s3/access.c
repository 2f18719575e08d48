/* access.c: see access.h. */
#include "s3/access.h"

static bool is_owner(const struct fgw_s3_identity *identity, const struct fgw_bucket *bucket)
{
    return !fgw_s3_anonymous(identity) && fgw_bytes_eq(identity->canonical_id, bucket->owner_id);
}

static bool is_admin(const struct fgw_s3_identity *identity)
{
    return identity->root || identity->policy == FGW_POLICY_ADMIN;
}

static bool reads_all(const struct fgw_s3_identity *identity)
{
    return is_admin(identity) || identity->policy == FGW_POLICY_READWRITE ||
           identity->policy == FGW_POLICY_READONLY;
}

static bool may_list(const struct fgw_s3_identity *identity, const struct fgw_bucket *bucket)
{
    if (reads_all(identity) || bucket->acl == FGW_ACL_PUBLIC_READ ||
        bucket->acl == FGW_ACL_PUBLIC_READ_WRITE) {
        return true;
    }
    return bucket->acl == FGW_ACL_AUTHENTICATED_READ && !fgw_s3_anonymous(identity);
}

bool fgw_s3_may(const struct fgw_s3_identity *identity, const struct fgw_bucket *bucket,
                enum fgw_s3_need need)
{
    if (is_owner(identity, bucket) || is_admin(identity)) {
        return true;
    }
    switch (need) {
    case FGW_S3_NEED_SELF:
        return true;
    case FGW_S3_NEED_BUCKET_READ:
        return may_list(identity, bucket);
    case FGW_S3_NEED_BUCKET_WRITE:
        return identity->policy == FGW_POLICY_READWRITE || bucket->acl == FGW_ACL_PUBLIC_READ_WRITE;
    case FGW_S3_NEED_BUCKET_OWNER_READ:
        return reads_all(identity);
    case FGW_S3_NEED_BUCKET_OWNER:
        return false;
    }
    return false;
}

bool fgw_s3_may_create_bucket(const struct fgw_s3_identity *identity)
{
    return !fgw_s3_anonymous(identity) && identity->policy != FGW_POLICY_READONLY;
}

bool fgw_s3_may_see_all(const struct fgw_s3_identity *identity)
{
    return reads_all(identity);
}

static bool is_creator(const struct fgw_s3_identity *identity, const struct fgw_object *object)
{
    return !fgw_s3_anonymous(identity) && fgw_bytes_eq(identity->canonical_id, object->creator_id);
}

bool fgw_s3_may_read_object(const struct fgw_s3_identity *identity, const struct fgw_bucket *bucket,
                            const struct fgw_object *object)
{
    if (is_owner(identity, bucket) || reads_all(identity) || is_creator(identity, object)) {
        return true;
    }
    switch (object->acl) {
    case FGW_ACL_PUBLIC_READ:
    case FGW_ACL_PUBLIC_READ_WRITE:
        return true;
    case FGW_ACL_AUTHENTICATED_READ:
        return !fgw_s3_anonymous(identity);
    default:
        return false;
    }
}

bool fgw_s3_may_own_object(const struct fgw_s3_identity *identity, const struct fgw_bucket *bucket,
                           const struct fgw_object *object)
{
    return is_owner(identity, bucket) || is_admin(identity) || is_creator(identity, object);
}

enum fgw_err fgw_s3_deny(struct fgw_s3_request *request)
{
    return fgw_error_set(&request->error, FGW_ERR_ACCESS_DENIED, NULL);
}

enum fgw_err fgw_s3_hide_missing(struct fgw_s3_request *request, enum fgw_err err)
{
    bool missing = err == FGW_ERR_NO_SUCH_KEY || err == FGW_ERR_NO_SUCH_VERSION;
    if (missing &&
        !fgw_s3_may(&request->identity, &request->bucket, FGW_S3_NEED_BUCKET_READ)) {
        return fgw_s3_deny(request);
    }
    return err;
}

enum fgw_err fgw_s3_check_expected_owner(struct fgw_s3_request *request)
{
    struct fgw_bytes expected = fgw_s3_header(request, "x-amz-expected-bucket-owner");
    if (expected.ptr != NULL && !fgw_bytes_eq(expected, request->bucket.owner_id)) {
        return fgw_s3_deny(request);
    }
    return FGW_OK;
}
