/* acl.c: see acl.h. */
#include "s3/acl.h"

#include "base/check.h"
#include "s3/body.h"
#include "s3/engine_internal.h"
#include "s3/xml_read.h"
#include "s3/xml_write.h"

#define ALL_USERS "http://acs.amazonaws.com/groups/global/AllUsers"
#define AUTHENTICATED_USERS "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"

enum { MAX_ACL_ELEMENTS = 1000 };

static const char *const NAMES[] = {
    [FGW_ACL_PRIVATE] = "private",
    [FGW_ACL_PUBLIC_READ] = "public-read",
    [FGW_ACL_PUBLIC_READ_WRITE] = "public-read-write",
    [FGW_ACL_AUTHENTICATED_READ] = "authenticated-read",
    [FGW_ACL_BUCKET_OWNER_READ] = "bucket-owner-read",
    [FGW_ACL_BUCKET_OWNER_FULL_CONTROL] = "bucket-owner-full-control",
};

static bool has_grant_header(const struct fgw_s3_request *request)
{
    for (size_t i = 0; i < request->http->header_count; i++) {
        if (fgw_bytes_ieq_str(fgw_bytes_sub(request->http->headers[i].name, 0, 12),
                              "x-amz-grant-")) {
            return true;
        }
    }
    return false;
}

enum fgw_err fgw_s3_acl_from_headers(struct fgw_s3_request *request, bool for_bucket,
                                     enum fgw_acl *out_acl, bool *out_given)
{
    struct fgw_bytes name = fgw_s3_header(request, "x-amz-acl");
    if (has_grant_header(request)) {
        return fgw_s3_not_built(request, "A grant other than a canned ACL");
    }
    if (name.ptr == NULL) {
        *out_acl = FGW_ACL_PRIVATE;
        *out_given = false;
        return FGW_OK;
    }
    size_t count = for_bucket ? FGW_ACL_BUCKET_OWNER_READ : FGW_COUNT_OF(NAMES);
    for (size_t i = 0; i < count; i++) {
        if (fgw_bytes_eq_str(name, NAMES[i])) {
            *out_acl = (enum fgw_acl)i;
            *out_given = true;
            return FGW_OK;
        }
    }
    return fgw_s3_bad_argument(request, "x-amz-acl", name, "This is not a canned ACL.");
}

/* -- writing -------------------------------------------------------------------------------- */

static void open_grantee(struct fgw_buf *out, const char *type)
{
    fgw_xml_open(out, "Grant");
    (void)fgw_buf_appendf(out,
                          "<Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
                          "xsi:type=\"%s\">",
                          type);
}

static void close_grantee(struct fgw_buf *out, const char *permission)
{
    fgw_xml_close(out, "Grantee");
    fgw_xml_text(out, "Permission", fgw_bytes_str(permission));
    fgw_xml_close(out, "Grant");
}

static void group_grant(struct fgw_buf *out, const char *uri, const char *permission)
{
    open_grantee(out, "Group");
    fgw_xml_text(out, "URI", fgw_bytes_str(uri));
    close_grantee(out, permission);
}

static void user_grant(struct fgw_buf *out, const struct fgw_s3_acl_owner *user,
                       const char *permission)
{
    open_grantee(out, "CanonicalUser");
    fgw_xml_text(out, "ID", user->id);
    fgw_xml_text(out, "DisplayName", user->display_name);
    close_grantee(out, permission);
}

void fgw_s3_acl_document(enum fgw_acl acl, const struct fgw_s3_acl_owner *owner,
                         const struct fgw_s3_acl_owner *bucket_owner, struct fgw_buf *out)
{
    fgw_xml_begin(out);
    fgw_xml_root(out, "AccessControlPolicy");
    fgw_xml_open(out, "Owner");
    fgw_xml_text(out, "ID", owner->id);
    fgw_xml_text(out, "DisplayName", owner->display_name);
    fgw_xml_close(out, "Owner");
    fgw_xml_open(out, "AccessControlList");
    if (acl == FGW_ACL_PUBLIC_READ || acl == FGW_ACL_PUBLIC_READ_WRITE) {
        group_grant(out, ALL_USERS, "READ");
    }
    if (acl == FGW_ACL_PUBLIC_READ_WRITE) {
        group_grant(out, ALL_USERS, "WRITE");
    }
    if (acl == FGW_ACL_AUTHENTICATED_READ) {
        group_grant(out, AUTHENTICATED_USERS, "READ");
    }
    user_grant(out, owner, "FULL_CONTROL");
    bool same = fgw_bytes_eq(owner->id, bucket_owner->id);
    if (acl == FGW_ACL_BUCKET_OWNER_READ && !same) {
        user_grant(out, bucket_owner, "READ");
    }
    if (acl == FGW_ACL_BUCKET_OWNER_FULL_CONTROL && !same) {
        user_grant(out, bucket_owner, "FULL_CONTROL");
    }
    fgw_xml_close(out, "AccessControlList");
    fgw_xml_close(out, "AccessControlPolicy");
}

/* -- reading -------------------------------------------------------------------------------- */

/* Grants of a document that canned ACLs know; other: anything else. */
struct grants {
    bool owner_full;
    bool all_read;
    bool all_write;
    bool authenticated_read;
    bool other;
};

static enum fgw_err take_grant(const struct fgw_xml_node *grant,
                               const struct fgw_s3_acl_owner *owner, struct grants *grants)
{
    const struct fgw_xml_node *grantee = fgw_xml_child(grant, "Grantee");
    struct fgw_bytes permission = fgw_xml_child_text(grant, "Permission");
    if (grantee == NULL || permission.ptr == NULL) {
        return FGW_ERR_MALFORMED_XML;
    }
    struct fgw_bytes uri = fgw_xml_child_text(grantee, "URI");
    struct fgw_bytes id = fgw_xml_child_text(grantee, "ID");
    bool read = fgw_bytes_eq_str(permission, "READ");
    if (id.ptr != NULL && fgw_bytes_eq(id, owner->id) &&
        fgw_bytes_eq_str(permission, "FULL_CONTROL")) {
        grants->owner_full = true;
    } else if (fgw_bytes_eq_str(uri, ALL_USERS) && read) {
        grants->all_read = true;
    } else if (fgw_bytes_eq_str(uri, ALL_USERS) && fgw_bytes_eq_str(permission, "WRITE")) {
        grants->all_write = true;
    } else if (fgw_bytes_eq_str(uri, AUTHENTICATED_USERS) && read) {
        grants->authenticated_read = true;
    } else {
        grants->other = true;
    }
    return FGW_OK;
}

static bool canned_of(const struct grants *grants, enum fgw_acl *out_acl)
{
    if (!grants->owner_full || grants->other || (grants->all_write && !grants->all_read) ||
        (grants->authenticated_read && grants->all_read)) {
        return false;
    }
    *out_acl = grants->all_write            ? FGW_ACL_PUBLIC_READ_WRITE
               : grants->all_read           ? FGW_ACL_PUBLIC_READ
               : grants->authenticated_read ? FGW_ACL_AUTHENTICATED_READ
                                            : FGW_ACL_PRIVATE;
    return true;
}

enum fgw_err fgw_s3_acl_from_document(struct fgw_s3_request *request, struct fgw_bytes document,
                                      const struct fgw_s3_acl_owner *owner,
                                      enum fgw_acl *out_acl)
{
    struct fgw_xml_node *root = NULL;
    enum fgw_err err = fgw_xml_parse(request->arena, document, "AccessControlPolicy",
                                     MAX_ACL_ELEMENTS, &root);
    const struct fgw_xml_node *list = fgw_xml_child(root, "AccessControlList");
    const struct fgw_xml_node *named_owner = fgw_xml_child(root, "Owner");
    if (err != FGW_OK || list == NULL || named_owner == NULL) {
        return fgw_error_set(&request->error, FGW_ERR_MALFORMED_XML, NULL);
    }
    if (!fgw_bytes_eq(fgw_xml_child_text(named_owner, "ID"), owner->id)) {
        return fgw_error_set(&request->error, FGW_ERR_ACCESS_DENIED,
                             "The owner of a bucket or object cannot be changed.");
    }
    struct grants grants = {0};
    for (const struct fgw_xml_node *grant = list->first_child; grant != NULL; grant = grant->next) {
        if (!fgw_xml_is(grant, "Grant") || take_grant(grant, owner, &grants) != FGW_OK) {
            return fgw_error_set(&request->error, FGW_ERR_MALFORMED_XML, NULL);
        }
    }
    return canned_of(&grants, out_acl) ? FGW_OK
                                       : fgw_s3_not_built(request,
                                                          "A grant other than a canned ACL");
}

enum fgw_err fgw_s3_acl_from_request(struct fgw_s3_request *request, bool for_bucket,
                                     const struct fgw_s3_acl_owner *owner, enum fgw_acl *out_acl)
{
    bool given = false;
    enum fgw_err err = fgw_s3_acl_from_headers(request, for_bucket, out_acl, &given);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_buf body;
    fgw_buf_init(&body, FGW_S3_XML_MAX);
    err = fgw_s3_body_collect(request, FGW_S3_XML_MAX, false, &body);
    if (err == FGW_OK && given && body.len > 0) {
        err = fgw_error_set(&request->error, FGW_ERR_UNEXPECTED_CONTENT, NULL);
    } else if (err == FGW_OK && !given) {
        err = fgw_s3_acl_from_document(request, fgw_buf_bytes(&body), owner, out_acl);
    }
    fgw_buf_deinit(&body);
    return err;
}
