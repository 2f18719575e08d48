/* answer.h: what every answer of the S3 engine has in common: the two request ids, the error
 * document, XML documents, and answers without a body. */
#ifndef FGW_S3_ANSWER_H
#define FGW_S3_ANSWER_H

#include "s3/request.h"

/* fgw_http_response_start plus x-amz-request-id, x-amz-id-2 and the request's extra headers. */
void fgw_s3_start(struct fgw_s3_request *request, int status, int64_t content_length);
/* A whole answer without a body. To add headers: fgw_s3_start(..., 0), headers, fgw_s3_end. */
enum fgw_err fgw_s3_answer_empty(struct fgw_s3_request *request, int status);
/* Sends what is buffered and ends the answer. */
enum fgw_err fgw_s3_end(struct fgw_s3_request *request);
/* A whole answer of type application/xml; FGW_ERR_TOO_LARGE when the buffer overflowed. Extra
 * headers cannot be added. Ends an answer that late.h has begun. */
enum fgw_err fgw_s3_answer_xml(struct fgw_s3_request *request, const struct fgw_buf *xml);

/* Writes the error document of request->error for `err` (a HEAD request gets the status only); into
 * the 200 that late.h has begun, when it has.
 * Breaks the connection when an answer had been started already; does nothing when the client is
 * gone. */
void fgw_s3_answer_error(struct fgw_s3_request *request, enum fgw_err err);
/* The document itself. */
void fgw_s3_error_document(const struct fgw_s3_request *request, enum fgw_err err,
                           struct fgw_buf *out);

#endif
