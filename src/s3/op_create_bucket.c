/* op_create_bucket.c: CreateBucket. spec/s3-wire.md 5.22 to 5.24, 5.78; section 6 for what happens
 * when the bucket exists. */
#include "s3/access.h"
#include "s3/acl.h"
#include "s3/answer.h"
#include "s3/body.h"
#include "s3/engine_internal.h"
#include "s3/names.h"
#include "s3/op.h"
#include "s3/xml_read.h"

enum { MAX_ELEMENTS = 1000 };

static enum fgw_err refuse_settings(struct fgw_s3_request *request)
{
    struct fgw_bytes lock = fgw_s3_header(request, "x-amz-bucket-object-lock-enabled");
    struct fgw_bytes ownership = fgw_s3_header(request, "x-amz-object-ownership");
    if (fgw_bytes_ieq_str(lock, "true")) {
        return fgw_s3_not_built(request, "Object lock");
    }
    if (ownership.len > 0 && !fgw_bytes_eq_str(ownership, "ObjectWriter")) {
        return fgw_s3_not_built(request, "Object ownership other than ObjectWriter");
    }
    return FGW_OK;
}

static enum fgw_err check_location(struct fgw_s3_request *request, struct fgw_bytes location)
{
    if (location.len == 0 || fgw_s3_location_known(request->s3, location)) {
        return FGW_OK;
    }
    enum fgw_err err = request->s3->strict_aws ? FGW_ERR_ILLEGAL_LOCATION_CONSTRAINT
                                               : FGW_ERR_INVALID_LOCATION_CONSTRAINT;
    (void)fgw_error_set(&request->error, err, NULL);
    fgw_error_add(&request->error, "LocationConstraint", "%.*s",
                  FGW_FMT(fgw_bytes_sub(location, 0, 100)));
    return err;
}

/* The optional CreateBucketConfiguration. */
static enum fgw_err read_configuration(struct fgw_s3_request *request, struct fgw_bytes document,
                                       struct fgw_bytes *out_location)
{
    struct fgw_xml_node *root = NULL;
    if (document.len == 0) {
        return FGW_OK;
    }
    if (fgw_xml_parse(request->arena, document, "CreateBucketConfiguration", MAX_ELEMENTS, &root) !=
        FGW_OK) {
        return fgw_error_set(&request->error, FGW_ERR_MALFORMED_XML, NULL);
    }
    if (fgw_xml_child(root, "Bucket") != NULL || fgw_xml_child(root, "Location") != NULL) {
        return fgw_s3_not_built(request, "Another kind of bucket than general purpose");
    }
    if (fgw_xml_child(root, "Tags") != NULL) {
        return fgw_s3_not_built(request, "Tagging a bucket");
    }
    *out_location = fgw_xml_child_text(root, "LocationConstraint");
    return check_location(request, *out_location);
}

static enum fgw_err read_body(struct fgw_s3_request *request, struct fgw_bytes *out_location)
{
    struct fgw_buf body;
    fgw_buf_init(&body, FGW_S3_XML_MAX);
    enum fgw_err err = fgw_s3_body_collect(request, FGW_S3_XML_MAX, false, &body);
    if (err == FGW_OK) {
        err = read_configuration(request, fgw_buf_bytes(&body), out_location);
    }
    fgw_buf_deinit(&body);
    return err;
}

/* By its owner and with the same ACL it is as if it had just been made. */
static enum fgw_err decide_existing(struct fgw_s3_request *request,
                                    const struct fgw_bucket *existing, enum fgw_acl acl)
{
    bool mine = fgw_bytes_eq(existing->owner_id, request->identity.canonical_id);
    if (!mine) {
        return fgw_error_set(&request->error, FGW_ERR_BUCKET_ALREADY_EXISTS, NULL);
    }
    if (request->s3->strict_aws) {
        return strcmp(request->s3->region, "us-east-1") == 0
                   ? FGW_OK
                   : fgw_error_set(&request->error, FGW_ERR_BUCKET_ALREADY_OWNED_BY_YOU, NULL);
    }
    return existing->acl == acl
               ? FGW_OK
               : fgw_error_set(&request->error, FGW_ERR_BUCKET_ALREADY_EXISTS, NULL);
}

static enum fgw_err create(struct fgw_s3_request *request, enum fgw_acl acl,
                           struct fgw_bytes location)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_bucket wanted = {.name = request->bucket_name,
                                .owner_id = request->identity.canonical_id,
                                .owner_name = request->identity.display_name,
                                .region = location,
                                .versioning = FGW_VERSIONING_NEVER,
                                .acl = acl};
    struct fgw_bucket bucket;
    enum fgw_err err =
        meta->ops->bucket_create(meta, request->arena, &wanted, &bucket, &request->error);
    return err == FGW_ERR_EXISTS ? decide_existing(request, &bucket, acl) : err;
}

/* A bucket that has a reserved name already (of a former version, imported) is asked for by clients
 * that create what they write to. */
static enum fgw_err check_name(struct fgw_s3_request *request)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_bucket bucket;
    enum fgw_err err =
        fgw_s3_bucket_name_valid(request->bucket_name) ? FGW_OK : FGW_ERR_INVALID_BUCKET_NAME;
    if (err == FGW_OK && fgw_s3_bucket_name_reserved(request->bucket_name)) {
        err = meta->ops->bucket_get(meta, request->arena, request->bucket_name, true, &bucket,
                                    &request->error);
        err = err == FGW_ERR_NO_SUCH_BUCKET ? FGW_ERR_INVALID_BUCKET_NAME : err;
    }
    return err == FGW_ERR_INVALID_BUCKET_NAME ? fgw_error_set(&request->error, err, NULL) : err;
}

enum fgw_err fgw_s3_op_create_bucket(struct fgw_s3_request *request)
{
    enum fgw_acl acl;
    bool acl_given = false;
    struct fgw_bytes location = {NULL, 0};
    if (!fgw_s3_may_create_bucket(&request->identity)) {
        return fgw_s3_deny(request);
    }
    enum fgw_err err = check_name(request);
    if (err == FGW_OK) {
        err = fgw_s3_acl_from_headers(request, true, &acl, &acl_given);
    }
    if (err == FGW_OK) {
        err = refuse_settings(request);
    }
    if (err == FGW_OK) {
        err = read_body(request, &location);
    }
    if (err == FGW_OK) {
        err = create(request, acl, location);
    }
    if (err != FGW_OK) {
        return err;
    }
    fgw_s3_extra_header(
        request, "Location",
        fgw_bytes_str(fgw_arena_printf(request->arena, "/%.*s", FGW_FMT(request->bucket_name))));
    return fgw_s3_answer_empty(request, 200);
}
