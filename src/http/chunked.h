/* chunked.h: decoder of the chunked transfer coding (RFC 9112 section 7.1), strict and in place: no
 * bare LF, no blanks around sizes, sizes of at most 16 hex digits, bounded extensions and trailers
 * (both are checked and dropped). Any cut of the input gives the same result. */
#ifndef FGW_HTTP_CHUNKED_H
#define FGW_HTTP_CHUNKED_H

#include "base/bytes.h"

enum fgw_http_chunked_state {
    FGW_HTTP_CHUNKED_SIZE_FIRST,
    FGW_HTTP_CHUNKED_SIZE,
    FGW_HTTP_CHUNKED_EXTENSION,
    FGW_HTTP_CHUNKED_SIZE_LF,
    FGW_HTTP_CHUNKED_DATA,
    FGW_HTTP_CHUNKED_DATA_CR,
    FGW_HTTP_CHUNKED_DATA_LF,
    FGW_HTTP_CHUNKED_TRAILER_START,
    FGW_HTTP_CHUNKED_TRAILER,
    FGW_HTTP_CHUNKED_TRAILER_LF,
    FGW_HTTP_CHUNKED_END_LF,
    FGW_HTTP_CHUNKED_DONE
};

/* Zero-initialise for each body. */
struct fgw_http_chunked {
    enum fgw_http_chunked_state state;
    unsigned size_digits;
    uint64_t left;      /* of the chunk */
    size_t extra_bytes; /* extensions and trailers so far */
    bool trailer_colon;
};

/* Takes from the front of *input. FGW_OK with a piece of data (at least one byte, a view of the
 * input); FGW_ERR_AGAIN when the input is used up; FGW_ERR_END when the body is complete (*input
 * is then what follows it); FGW_ERR_BAD_REQUEST for broken coding. */
enum fgw_err fgw_http_chunked_next(struct fgw_http_chunked *chunked, struct fgw_bytes *input,
                                   struct fgw_bytes *out_piece) FGW_MUST_CHECK;

#endif
