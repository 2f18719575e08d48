/* op.h: the table of operations (ops.def) as data, and how a request finds its row.
 *
 * A handler runs after authentication, the look-up of the bucket and the permission its row needs.
 * It reads the body, writes the answer and returns FGW_OK, or returns an error (details in
 * request->error) before it has started an answer; the engine then writes the error document.
 */
#ifndef FGW_S3_OP_H
#define FGW_S3_OP_H

#include "s3/request.h"

/* What a caller must be allowed to do with the bucket; access.h says who may. */
enum fgw_s3_need {
    FGW_S3_NEED_SELF,         /* the handler checks */
    FGW_S3_NEED_BUCKET_READ,  /* list */
    FGW_S3_NEED_BUCKET_WRITE, /* put and delete objects */
    FGW_S3_NEED_BUCKET_OWNER_READ, /* read settings */
    FGW_S3_NEED_BUCKET_OWNER  /* change settings, delete the bucket */
};

enum { FGW_S3_OP_WRITE = 1, FGW_S3_OP_NO_BUCKET = 2 };

typedef enum fgw_err fgw_s3_op_handler(struct fgw_s3_request *request);

struct fgw_s3_op {
    const char *name; /* "GetObject" */
    enum fgw_http_method method;
    enum fgw_s3_scope scope;
    const char *sub;
    const char *header;
    fgw_s3_op_handler *handler;
    enum fgw_s3_need need;
    unsigned flags;
    enum fgw_err otherwise;
};

enum {
#define X(name, method, scope, sub, header, handler, need, flags, otherwise) FGW_S3_OP_INDEX_##name,
#include "s3/ops.def"
#undef X
    FGW_S3_OP_COUNT
};

/* Row by index, in the order of ops.def; for metrics. */
const struct fgw_s3_op *fgw_s3_op_at(size_t index);
size_t fgw_s3_op_index(const struct fgw_s3_op *op);

/* Finds the row. The query decides first: names of AWS's sub-resources select a row or are refused;
 * other names are ignored on GET and HEAD and, when they carry no value, refused on PUT, POST and
 * DELETE, so that a sub-resource FGW does not know never falls through to the plain verb.
 * Errors: FGW_ERR_NOT_IMPLEMENTED, FGW_ERR_METHOD_NOT_ALLOWED. */
enum fgw_err fgw_s3_route(struct fgw_s3_request *request, const struct fgw_s3_op **out_op)
    FGW_MUST_CHECK;

#define X(name, method, scope, sub, header, handler, need, flags, otherwise) \
    enum fgw_err fgw_s3_op_##handler(struct fgw_s3_request *request);
#include "s3/ops.def"
#undef X

#endif
