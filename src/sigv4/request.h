/* request.h: the parts of an HTTP request that a signature covers, exactly as received.
 *
 * Views only: the request owns nothing and must outlive every struct that points to it. The target
 * is split at the first '?' and is not decoded; header names keep their case and wire order, and
 * repeats are allowed.
 */
#ifndef FGW_SIGV4_REQUEST_H
#define FGW_SIGV4_REQUEST_H

#include "base/bytes.h"

struct fgw_sig_header {
    struct fgw_bytes name;
    struct fgw_bytes value;
};

struct fgw_sig_request {
    struct fgw_bytes method;
    struct fgw_bytes raw_path;  /* "/bucket/key%20x"; empty counts as "/" */
    struct fgw_bytes raw_query; /* without the '?'; may be empty */
    const struct fgw_sig_header *headers;
    size_t header_count;
};

/* First header of this name (ASCII case-insensitive), or NULL. */
const struct fgw_sig_header *fgw_sig_header_find(const struct fgw_sig_request *request,
                                                 const char *name);

#endif
