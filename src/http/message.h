/* message.h: a request head as received, for whoever executes it. All views live in the exchange's
 * arena or connection buffer and stay valid until the exchange ends. RFC 9110, RFC 9112. */
#ifndef FGW_HTTP_MESSAGE_H
#define FGW_HTTP_MESSAGE_H

#include "base/bytes.h"

enum fgw_http_method {
    FGW_HTTP_GET,
    FGW_HTTP_HEAD,
    FGW_HTTP_PUT,
    FGW_HTTP_POST,
    FGW_HTTP_DELETE,
    FGW_HTTP_OPTIONS,
    FGW_HTTP_OTHER /* a known token of HTTP that we never serve (PATCH, TRACE, ...) */
};

struct fgw_http_header {
    struct fgw_bytes name;  /* as sent; compare case-insensitively */
    struct fgw_bytes value; /* without leading and trailing blanks */
};

struct fgw_http_request {
    enum fgw_http_method method;
    struct fgw_bytes method_text;
    struct fgw_bytes target;    /* as sent */
    struct fgw_bytes raw_path;  /* up to '?', still percent-encoded; begins with '/' (absolute-form
                                   targets are cut to their path) or is "*" */
    struct fgw_bytes raw_query; /* behind '?'; ptr NULL when there is no '?' */
    struct fgw_bytes host;      /* exactly one Host header is required on 1.1; authority of an
                                   absolute-form target wins */
    const struct fgw_http_header *headers; /* wire order, repeats kept */
    size_t header_count;
    unsigned version_minor; /* 0 or 1 */
    bool has_content_length;
    uint64_t content_length; /* valid when has_content_length */
    bool chunked;            /* Transfer-Encoding: chunked */
    bool expect_continue;    /* Expect is exactly 100-continue (any case) and there is a body, which
                                may be empty */
    bool keep_alive;
    bool tls;
    const char *peer; /* "127.0.0.1:41234" */
};

/* Value of the first header of that name (any case), or a view with ptr NULL when absent. */
struct fgw_bytes fgw_http_header_get(const struct fgw_http_request *request, const char *name);
unsigned fgw_http_header_occurrences(const struct fgw_http_request *request, const char *name);

#endif
