/* message.c: see message.h. */
#include "http/message.h"

struct fgw_bytes fgw_http_header_get(const struct fgw_http_request *request, const char *name)
{
    struct fgw_bytes wanted = fgw_bytes_str(name);
    for (size_t i = 0; i < request->header_count; i++) {
        if (request->headers[i].name.len == wanted.len &&
            fgw_bytes_ieq(request->headers[i].name, wanted)) {
            return request->headers[i].value;
        }
    }
    return (struct fgw_bytes){NULL, 0};
}

unsigned fgw_http_header_occurrences(const struct fgw_http_request *request, const char *name)
{
    unsigned count = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        count += fgw_bytes_ieq_str(request->headers[i].name, name);
    }
    return count;
}
