/* documents.h: the named documents of a bucket's row (tagging, cors, ...): bytes that their module
 * checked before they were stored. */
#ifndef FGW_S3_DOCUMENTS_H
#define FGW_S3_DOCUMENTS_H

#include "s3/request.h"

/* ptr NULL when there is none. */
struct fgw_bytes fgw_s3_document(const struct fgw_bucket *bucket, const char *name);
/* Stores it in the row of request->bucket, in place of an older one; ptr NULL removes it. Errors as
 * fgw_s3_bucket_update. */
enum fgw_err fgw_s3_set_document(struct fgw_s3_request *request, const char *static_name,
                                 struct fgw_bytes document) FGW_MUST_CHECK;
/* A whole answer: the stored bytes as application/xml, or `otherwise` when there are none. */
enum fgw_err fgw_s3_answer_document(struct fgw_s3_request *request, const char *name,
                                    enum fgw_err otherwise);

#endif
