/* head.h: from raw bytes to a checked request head, without I/O. llhttp (strict) reads the grammar;
 * what it lets through and a proxy in front might read differently (RFC 9112 section 11.2, request
 * smuggling) is refused here. Finding the end of a head is a separate, incremental step, so that
 * broken line ends and foreign protocols are refused before they are complete. */
#ifndef FGW_HTTP_HEAD_H
#define FGW_HTTP_HEAD_H

#include "base/arena.h"
#include "http/message.h"

/* Progress of the search for the end of a head; zero-initialise for each head. */
struct fgw_http_scan {
    size_t at; /* bytes looked at */
    size_t line_start;
    size_t head_start; /* behind the empty lines that may come first (RFC 9112 section 2.2) */
    bool in_head;      /* something but empty lines was seen */
    bool has_request_line;
};

/* bytes: all input since the scan began. FGW_OK: the head is bytes[scan->head_start .. *out_end),
 * with its empty line. FGW_ERR_AGAIN: more is needed. FGW_ERR_BAD_REQUEST (*out_reason says why),
 * FGW_ERR_HTTP_VERSION_NOT_SUPPORTED, FGW_ERR_HEADER_SECTION_TOO_LARGE above max_bytes. */
enum fgw_err fgw_http_head_scan(struct fgw_http_scan *scan, struct fgw_bytes bytes,
                                size_t max_bytes, size_t *out_end,
                                const char **out_reason) FGW_MUST_CHECK;

/* head: one whole head; the request's views point into it and into the arena. tls and peer are not
 * touched. FGW_ERR_BAD_REQUEST, FGW_ERR_NOT_IMPLEMENTED (unknown method, CONNECT, transfer coding),
 * FGW_ERR_HTTP_VERSION_NOT_SUPPORTED, FGW_ERR_HEADER_SECTION_TOO_LARGE (more than 512 headers), with
 * a static text in *out_reason. On failure *out_request is unchanged. */
enum fgw_err fgw_http_head_parse(struct fgw_arena *arena, struct fgw_bytes head,
                                 struct fgw_http_request *out_request,
                                 const char **out_reason) FGW_MUST_CHECK;

/* The method a head seems to begin with, for the answer to one that failed. */
enum fgw_http_method fgw_http_head_guess_method(struct fgw_bytes head);

struct fgw_http_response_head {
    int status;
    unsigned version_minor;
    const struct fgw_http_header *headers;
    size_t header_count;
    bool has_content_length;
    uint64_t content_length;
    bool chunked;
    bool keep_alive;
};

/* Same for the head of an answer. FGW_ERR_PARSE. */
enum fgw_err fgw_http_response_head_parse(struct fgw_arena *arena, struct fgw_bytes head,
                                          struct fgw_http_response_head *out_head,
                                          const char **out_reason) FGW_MUST_CHECK;

#endif
