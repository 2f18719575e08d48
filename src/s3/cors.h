/* cors.h: cross-origin rules of a bucket: checking a configuration, choosing the rule of a request,
 * the headers of answers, and preflights. The configuration is stored as it was sent.
 * Source: WHATWG Fetch "CORS protocol"; AWS "Using cross-origin resource sharing"; spec/s3-wire.md
 * 5.80; public bug reports B81, B83. */
#ifndef FGW_S3_CORS_H
#define FGW_S3_CORS_H

#include "s3/request.h"
#include "s3/xml_read.h"

#define FGW_S3_CORS_DOCUMENT "cors" /* name of the document in the bucket's row */

/* FGW_ERR_MALFORMED_XML; INVALID_REQUEST for unknown methods and more than one '*', with a message
 * in *error. */
enum fgw_err fgw_s3_cors_check(struct fgw_arena *arena, struct fgw_bytes document,
                               struct fgw_error *error) FGW_MUST_CHECK;

/* What a browser says of a request it wants to make. */
struct fgw_s3_cors_question {
    struct fgw_bytes origin;
    struct fgw_bytes method;
    struct fgw_bytes headers; /* list with commas; empty: none */
};
/* First rule of a configuration that allows it, or NULL. */
const struct fgw_xml_node *fgw_s3_cors_rule(const struct fgw_xml_node *configuration,
                                            const struct fgw_s3_cors_question *question);
/* pattern: at most one '*', for any text. any_case: ASCII case does not matter. */
bool fgw_s3_cors_match(struct fgw_bytes pattern, struct fgw_bytes text, bool any_case);

/* For a request with an Origin: the headers that whatever answer comes shall carry, errors too. */
void fgw_s3_cors_headers(struct fgw_s3_request *request);
/* OPTIONS, which browsers send unsigned: BAD_REQUEST, NO_SUCH_BUCKET, CORS_FORBIDDEN. */
enum fgw_err fgw_s3_cors_preflight(struct fgw_s3_request *request);

#endif
