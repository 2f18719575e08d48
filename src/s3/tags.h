/* tags.h: tags of objects and buckets: given with a PUT (x-amz-tagging) or as a document, and the
 * document that shows them. Source: spec/s3-wire.md 5.81. */
#ifndef FGW_S3_TAGS_H
#define FGW_S3_TAGS_H

#include "s3/request.h"

/* Tags of x-amz-tagging ("k1=v1&k2=v2", percent-encoded); none: count 0. FGW_ERR_INVALID_TAG for
 * more than 10, a key over 128 or a value over 256 characters, an empty or repeated key;
 * FGW_ERR_INVALID_ARGUMENT when the header cannot be read. */
enum fgw_err fgw_s3_tags_from_header(struct fgw_s3_request *request,
                                     const struct fgw_meta_pair **out_tags,
                                     size_t *out_count) FGW_MUST_CHECK;
enum { FGW_S3_OBJECT_TAGS_MAX = 10, FGW_S3_BUCKET_TAGS_MAX = 50 };

/* Tags of a Tagging document, at most `max`; views into the arena. FGW_ERR_MALFORMED_XML; the rest
 * as tags_from_header. */
enum fgw_err fgw_s3_tags_from_document(struct fgw_s3_request *request, struct fgw_bytes document,
                                       size_t max, const struct fgw_meta_pair **out_tags,
                                       size_t *out_count) FGW_MUST_CHECK;
/* The same of the request's body. */
enum fgw_err fgw_s3_tags_from_body(struct fgw_s3_request *request, size_t max,
                                   const struct fgw_meta_pair **out_tags,
                                   size_t *out_count) FGW_MUST_CHECK;
/* Tagging document. */
void fgw_s3_tags_document(const struct fgw_meta_pair *tags, size_t count, struct fgw_buf *out);

#endif
