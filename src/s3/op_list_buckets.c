/* op_list_buckets.c: ListBuckets, whole or in pages. spec/s3-wire.md 5.26. Root and users with a
 * policy see the buckets of all owners; anonymous callers see none (strict_aws: are refused). */
#include "s3/access.h"
#include "s3/answer.h"
#include "s3/engine_internal.h"
#include "s3/list.h"
#include "s3/op.h"
#include "s3/token.h"
#include "s3/xml_write.h"

enum { MAX_BUCKETS = 10000, FETCH = 1000, DOCUMENT_MAX_BYTES = 16 * 1024 * 1024 };

struct bucket_page {
    struct fgw_buf *out;
    struct fgw_bytes prefix;
    unsigned left;         /* buckets still wanted */
    struct fgw_bytes last; /* name of the last one written */
    bool more;             /* another one follows */
};

static struct fgw_bytes region_of(const struct fgw_s3 *s3, const struct fgw_bucket *bucket)
{
    return bucket->region.len > 0 ? bucket->region : fgw_bytes_str(s3->region);
}

static void write_bucket(struct fgw_buf *out, const struct fgw_s3 *s3,
                         const struct fgw_bucket *bucket)
{
    fgw_xml_open(out, "Bucket");
    fgw_xml_text(out, "Name", bucket->name);
    fgw_xml_time(out, "CreationDate", bucket->created_ms);
    fgw_xml_text(out, "BucketRegion", region_of(s3, bucket));
    fgw_xml_close(out, "Bucket");
}

/* False when no further bucket is needed. */
static bool take_bucket(struct bucket_page *page, const struct fgw_s3_request *request,
                        const struct fgw_bucket *bucket)
{
    struct fgw_bytes region = fgw_s3_param(request, "bucket-region");
    bool wanted = fgw_bytes_starts_with(bucket->name, page->prefix) &&
                  (region.len == 0 || fgw_bytes_eq(region, region_of(request->s3, bucket)));
    if (!wanted) {
        return page->prefix.len == 0 || fgw_bytes_starts_with(bucket->name, page->prefix) ||
               fgw_bytes_cmp(bucket->name, page->prefix) < 0;
    }
    if (page->left == 0) {
        page->more = true;
        return false;
    }
    page->left--;
    page->last = bucket->name;
    write_bucket(page->out, request->s3, bucket);
    return true;
}

static enum fgw_err write_buckets(struct fgw_s3_request *request, struct bucket_page *page,
                                  struct fgw_bytes after)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_bytes owner = fgw_s3_may_see_all(&request->identity)
                                 ? FGW_LIT("")
                                 : request->identity.canonical_id;
    for (;;) {
        struct fgw_bucket *buckets = NULL;
        size_t count = 0;
        bool truncated = false;
        enum fgw_err err = meta->ops->bucket_list(meta, request->arena, owner, after, FETCH,
                                                  &buckets, &count, &truncated, &request->error);
        if (err != FGW_OK) {
            return err;
        }
        for (size_t i = 0; i < count; i++) {
            if (!take_bucket(page, request, &buckets[i])) {
                return FGW_OK;
            }
        }
        if (!truncated || count == 0) {
            return FGW_OK;
        }
        after = buckets[count - 1].name;
    }
}

static enum fgw_err read_arguments(struct fgw_s3_request *request, struct bucket_page *page,
                                   struct fgw_bytes *out_after)
{
    struct fgw_bytes token = fgw_s3_param(request, "continuation-token");
    *out_after = FGW_LIT("");
    page->prefix = fgw_s3_param(request, "prefix");
    enum fgw_err err =
        fgw_s3_param_number(request, "max-buckets", MAX_BUCKETS, MAX_BUCKETS, &page->left);
    if (err == FGW_OK && page->left == 0) {
        return fgw_s3_bad_argument(request, "max-buckets", FGW_LIT("0"),
                                   "Argument max-buckets must be an integer between 1 and 10000");
    }
    if (err == FGW_OK && token.len > 0 &&
        fgw_s3_token_open(request->arena, request->s3->token_key, token, out_after) != FGW_OK) {
        return fgw_s3_bad_argument(request, "continuation-token", token,
                                   "The continuation token provided is incorrect");
    }
    return err;
}

static enum fgw_err write_document(struct fgw_s3_request *request, struct bucket_page *page,
                                   struct fgw_bytes after)
{
    struct fgw_buf *out = page->out;
    fgw_xml_begin(out);
    fgw_xml_root(out, "ListAllMyBucketsResult");
    fgw_s3_list_owner(out, "Owner", request->identity.canonical_id,
                      request->identity.display_name);
    fgw_xml_open(out, "Buckets");
    if (!fgw_s3_anonymous(&request->identity)) {
        enum fgw_err err = write_buckets(request, page, after);
        if (err != FGW_OK) {
            return err;
        }
    }
    fgw_xml_close(out, "Buckets");
    if (page->more) {
        fgw_xml_text(out, "ContinuationToken",
                     fgw_s3_token_make(request->arena, request->s3->token_key, page->last));
    }
    if (page->prefix.len > 0) {
        fgw_xml_text(out, "Prefix", page->prefix);
    }
    fgw_xml_close(out, "ListAllMyBucketsResult");
    return fgw_s3_answer_xml(request, out);
}

enum fgw_err fgw_s3_op_list_buckets(struct fgw_s3_request *request)
{
    struct fgw_buf out;
    struct bucket_page page = {.out = &out};
    struct fgw_bytes after;
    if (fgw_s3_anonymous(&request->identity) && request->s3->strict_aws) {
        return fgw_s3_deny(request);
    }
    enum fgw_err err = read_arguments(request, &page, &after);
    if (err != FGW_OK) {
        return err;
    }
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    err = write_document(request, &page, after);
    fgw_buf_deinit(&out);
    return err;
}
