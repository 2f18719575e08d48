/* headers.h: the headers an object keeps: collected from PUT, CreateMultipartUpload and copies that
 * replace metadata, and given back by GET and HEAD.
 * Source: spec/s3-wire.md 5.14, 5.46 to 5.48 and the last paragraph of section 5. */
#ifndef FGW_S3_HEADERS_H
#define FGW_S3_HEADERS_H

#include "s3/request.h"

/* Fills headers, storage_class, acl and tags of `object` with views into the request and the arena.
 * Errors: METADATA_TOO_LARGE (names without prefix and values above 2 KiB), INVALID_STORAGE_CLASS,
 * INVALID_TAG, those of fgw_s3_acl_from_headers, and NOT_IMPLEMENTED or INVALID_REQUEST for headers
 * that ask for what is not built (encryption, object lock). */
enum fgw_err fgw_s3_collect_headers(struct fgw_s3_request *request, struct fgw_object *object)
    FGW_MUST_CHECK;
/* The checks of collect for what does not belong to a stored object. */
enum fgw_err fgw_s3_refuse_unbuilt_headers(struct fgw_s3_request *request) FGW_MUST_CHECK;

/* The response-* parameters of GET and HEAD; INVALID_REQUEST when an anonymous request has any. */
enum fgw_err fgw_s3_check_overrides(struct fgw_s3_request *request) FGW_MUST_CHECK;
/* Adds Content-Type and the rest of the object's own headers to an answer that was started; the
 * request's response-* parameters win. */
void fgw_s3_send_object_headers(struct fgw_s3_request *request, const struct fgw_object *object);

/* Without its aws-chunked tokens; ptr NULL when nothing is left. */
struct fgw_bytes fgw_s3_content_encoding(struct fgw_arena *arena, struct fgw_bytes value);
/* A value that is not ASCII as RFC 2047 words, else itself. */
struct fgw_bytes fgw_s3_header_text(struct fgw_arena *arena, struct fgw_bytes value);

#endif
