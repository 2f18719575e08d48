/* route.c: from method, scope, query and headers to a row of ops.def. See op.h. */
#include "s3/op.h"

#include "base/check.h"

#define METHOD_(name) FGW_HTTP_##name
#define SCOPE_(name) FGW_S3_##name
#define NEED_(name) FGW_S3_NEED_##name

/* Names in the table's flags column. */
enum { WRITE = FGW_S3_OP_WRITE, NO_BUCKET = FGW_S3_OP_NO_BUCKET };

static const struct fgw_s3_op OPS[FGW_S3_OP_COUNT] = {
#define FGW_ERR_OK FGW_OK
#define X(name, method, scope, sub, header, handler, need, flags, otherwise) \
    [FGW_S3_OP_INDEX_##name] = {#name,           METHOD_(method), SCOPE_(scope), \
                                sub,             header,          fgw_s3_op_##handler, \
                                NEED_(need),     flags,           FGW_ERR_##otherwise},
#include "s3/ops.def"
#undef X
#undef FGW_ERR_OK
};

/* Query names that are arguments: never refused, whatever their value. */
static const char *const ARGUMENTS[] = {
    "versionId",        "partNumber",    "prefix",
    "delimiter",        "marker",        "max-keys",
    "encoding-type",    "start-after",   "continuation-token",
    "fetch-owner",      "key-marker",    "version-id-marker",
    "max-uploads",      "max-parts",     "upload-id-marker",
    "part-number-marker", "max-buckets", "bucket-region",
    "x-id",             "id",            "select-type",
    "response-content-type", "response-content-language", "response-expires",
    "response-cache-control", "response-content-disposition", "response-content-encoding",
    "AWSAccessKeyId",   "Signature",     "Expires",
};

const struct fgw_s3_op *fgw_s3_op_at(size_t index)
{
    FGW_CHECK(index < FGW_S3_OP_COUNT);
    return &OPS[index];
}

size_t fgw_s3_op_index(const struct fgw_s3_op *op)
{
    return (size_t)(op - OPS);
}

enum fgw_err fgw_s3_op_none(struct fgw_s3_request *request)
{
    if (request->op->otherwise == FGW_ERR_NOT_IMPLEMENTED) {
        return fgw_error_set(&request->error, FGW_ERR_NOT_IMPLEMENTED, "%s is not implemented.",
                             request->op->name);
    }
    return fgw_error_set(&request->error, request->op->otherwise, NULL);
}

/* The table's own string when `name` selects operations, else NULL. */
static const char *known_sub(struct fgw_bytes name)
{
    for (size_t i = 0; i < FGW_S3_OP_COUNT; i++) {
        if (OPS[i].sub[0] != '\0' && fgw_bytes_eq_str(name, OPS[i].sub)) {
            return OPS[i].sub;
        }
    }
    return NULL;
}

/* Signed queries are mostly X-Amz-: asked first. */
static bool is_argument(struct fgw_bytes name)
{
    if (name.len >= 6 && fgw_bytes_ieq_str(fgw_bytes_sub(name, 0, 6), "x-amz-")) {
        return true;
    }
    for (size_t i = 0; i < FGW_COUNT_OF(ARGUMENTS); i++) {
        if (fgw_bytes_eq_str(name, ARGUMENTS[i])) {
            return true;
        }
    }
    return false;
}

/* The one sub-resource the query names in *out_sub ("" for none). */
static enum fgw_err find_sub(struct fgw_s3_request *request, const char **out_sub)
{
    const char *sub = "";
    bool changes = request->http->method != FGW_HTTP_GET && request->http->method != FGW_HTTP_HEAD;
    for (size_t i = 0; i < request->query.count; i++) {
        const struct fgw_s3_param *param = &request->query.params[i];
        if (is_argument(param->name)) {
            continue;
        }
        const char *found = known_sub(param->name);
        if (found == NULL && changes && param->value.len == 0) {
            return fgw_error_set(&request->error, FGW_ERR_NOT_IMPLEMENTED,
                                 "The sub-resource '%.*s' is not implemented.",
                                 FGW_FMT(fgw_bytes_sub(param->name, 0, 100)));
        }
        if (found != NULL && sub[0] != '\0' && found != sub) {
            return fgw_error_set(&request->error, FGW_ERR_NOT_IMPLEMENTED,
                                 "The sub-resources '%s' and '%s' cannot be combined.", sub, found);
        }
        if (found != NULL) {
            sub = found;
        }
    }
    *out_sub = sub;
    return FGW_OK;
}

static bool row_matches(const struct fgw_s3_op *op, const struct fgw_s3_request *request,
                        const char *sub)
{
    return op->method == request->http->method && op->scope == request->scope &&
           strcmp(op->sub, sub) == 0 &&
           (op->header[0] == '\0' || fgw_s3_header(request, op->header).ptr != NULL);
}

/* Why no row matches: the sub-resource exists for another method here (405), or not at all. */
static enum fgw_err no_row(struct fgw_s3_request *request, const char *sub)
{
    for (size_t i = 0; i < FGW_S3_OP_COUNT; i++) {
        if (OPS[i].scope == request->scope && strcmp(OPS[i].sub, sub) == 0) {
            return fgw_error_set(&request->error, FGW_ERR_METHOD_NOT_ALLOWED, NULL);
        }
    }
    return fgw_error_set(&request->error, FGW_ERR_NOT_IMPLEMENTED,
                         "The sub-resource '%s' is not implemented here.", sub);
}

enum fgw_err fgw_s3_route(struct fgw_s3_request *request, const struct fgw_s3_op **out_op)
{
    const char *sub = "";
    enum fgw_err err = find_sub(request, &sub);
    if (err != FGW_OK) {
        return err;
    }
    for (size_t i = 0; i < FGW_S3_OP_COUNT; i++) {
        if (row_matches(&OPS[i], request, sub)) {
            *out_op = &OPS[i];
            return FGW_OK;
        }
    }
    return no_row(request, sub);
}
