/* answer.c: the common parts of answers, and the error document. See answer.h. */
#include "s3/answer.h"

#include "s3/engine_internal.h"
#include "s3/xml_write.h"

enum { ERROR_DOCUMENT_MAX = 64 * 1024 };

void fgw_s3_start(struct fgw_s3_request *request, int status, int64_t content_length)
{
    fgw_http_response_start(request->exchange, status, content_length);
    fgw_http_response_header(request->exchange, "x-amz-request-id",
                             fgw_bytes(request->request_id, FGW_S3_REQUEST_ID_SIZE));
    fgw_http_response_header(request->exchange, "x-amz-id-2",
                             fgw_bytes(request->s3->host_id, FGW_S3_HOST_ID_SIZE));
    for (unsigned i = 0; i < request->extra_header_count; i++) {
        fgw_http_response_header(request->exchange, request->extra_headers[i].name,
                                 request->extra_headers[i].value);
    }
}

enum fgw_err fgw_s3_end(struct fgw_s3_request *request)
{
    return fgw_http_response_end(request->exchange);
}

enum fgw_err fgw_s3_answer_empty(struct fgw_s3_request *request, int status)
{
    fgw_s3_start(request, status, 0);
    return fgw_s3_end(request);
}

/* The XML declaration went out before the white space: only it may not come twice. */
static enum fgw_err end_late(struct fgw_s3_request *request, struct fgw_bytes document)
{
    struct fgw_buf declaration;
    fgw_buf_init(&declaration, 0);
    fgw_xml_begin(&declaration);
    if (fgw_bytes_starts_with(document, fgw_buf_bytes(&declaration))) {
        document = fgw_bytes_sub(document, declaration.len, SIZE_MAX);
    }
    fgw_buf_deinit(&declaration);
    enum fgw_err err = fgw_http_response_write(request->exchange, document);
    return err == FGW_OK ? fgw_s3_end(request) : err;
}

enum fgw_err fgw_s3_answer_xml(struct fgw_s3_request *request, const struct fgw_buf *xml)
{
    enum fgw_err err = fgw_buf_status(xml);
    if (err != FGW_OK) {
        return fgw_error_set(&request->error, FGW_ERR_INTERNAL, "The answer is too large.");
    }
    if (request->late) {
        return end_late(request, fgw_buf_bytes(xml));
    }
    fgw_s3_start(request, 200, (int64_t)xml->len);
    fgw_http_response_header(request->exchange, "Content-Type", FGW_LIT("application/xml"));
    err = fgw_http_response_write(request->exchange, fgw_buf_bytes(xml));
    return err == FGW_OK ? fgw_s3_end(request) : err;
}

void fgw_s3_error_document(const struct fgw_s3_request *request, enum fgw_err err,
                           struct fgw_buf *out)
{
    const struct fgw_error *error = &request->error;
    bool described = error->code == err;
    const char *message =
        described && error->message[0] != '\0' ? error->message : fgw_err_text(err);
    fgw_xml_begin(out);
    fgw_xml_open(out, "Error");
    fgw_xml_text(out, "Code", fgw_bytes_str(fgw_err_s3_code(err)));
    fgw_xml_text(out, "Message", fgw_bytes_str(message));
    for (unsigned i = 0; described && i < error->extra_count; i++) {
        fgw_xml_text(out, error->extra[i].name, fgw_bytes_str(error->extra[i].value));
    }
    if (request->scope != FGW_S3_SERVICE) {
        fgw_xml_text(out, "BucketName", request->bucket_name);
    }
    if (request->scope == FGW_S3_OBJECT) {
        fgw_xml_text(out, "Key", request->key);
    }
    fgw_xml_text(out, "Resource", request->http->raw_path);
    fgw_xml_text(out, "RequestId", fgw_bytes(request->request_id, FGW_S3_REQUEST_ID_SIZE));
    fgw_xml_text(out, "HostId", fgw_bytes(request->s3->host_id, FGW_S3_HOST_ID_SIZE));
    fgw_xml_close(out, "Error");
}

static void error_headers(struct fgw_s3_request *request, enum fgw_err err)
{
    int status = fgw_err_http_status(err);
    if (status == 503) {
        fgw_http_response_header(request->exchange, "Retry-After", FGW_LIT("1"));
    }
    if (status == 405 && request->scope != FGW_S3_SERVICE) {
        fgw_http_response_header(request->exchange, "Allow", FGW_LIT("GET, HEAD, PUT, DELETE, POST"));
    }
}

static void answer_late_error(struct fgw_s3_request *request, enum fgw_err err)
{
    struct fgw_buf document;
    fgw_buf_init(&document, ERROR_DOCUMENT_MAX);
    fgw_s3_error_document(request, err, &document);
    (void)end_late(request, fgw_buf_bytes(&document));
    fgw_buf_deinit(&document);
}

void fgw_s3_answer_error(struct fgw_s3_request *request, enum fgw_err err)
{
    if (err == FGW_ERR_CLIENT_GONE) {
        return;
    }
    if (request->late) {
        answer_late_error(request, err);
        return;
    }
    if (fgw_http_response_started(request->exchange)) {
        fgw_http_abort(request->exchange);
        return;
    }
    int status = fgw_err_http_status(err);
    if (fgw_s3_is_head(request)) {
        fgw_s3_start(request, status, 0);
        error_headers(request, err);
        (void)fgw_s3_end(request);
        return;
    }
    struct fgw_buf document;
    fgw_buf_init(&document, ERROR_DOCUMENT_MAX);
    fgw_s3_error_document(request, err, &document);
    fgw_s3_start(request, status, (int64_t)document.len);
    error_headers(request, err);
    fgw_http_response_header(request->exchange, "Content-Type", FGW_LIT("application/xml"));
    if (fgw_http_response_write(request->exchange, fgw_buf_bytes(&document)) == FGW_OK) {
        (void)fgw_s3_end(request);
    }
    fgw_buf_deinit(&document);
}
