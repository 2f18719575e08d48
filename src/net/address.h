/* address.h: socket addresses in text: "127.0.0.1:8078", "[::1]:8078", ":8078" (all interfaces),
 * "name:8078" and "unix:/path". No resolving here: names stay names (connect.h resolves them). */
#ifndef FGW_NET_ADDRESS_H
#define FGW_NET_ADDRESS_H

#include <sys/socket.h>

#include "base/bytes.h"

enum { FGW_ADDRESS_TEXT_SIZE = 128 };

struct fgw_endpoint {
    bool is_unix;
    char host[108]; /* host without brackets, "" for all interfaces; or the path of a Unix socket */
    uint16_t port;  /* 0 for Unix sockets */
};

/* FGW_ERR_PARSE unless one of the forms above; a port is required and at most 65535. */
enum fgw_err fgw_endpoint_parse(struct fgw_bytes text,
                                struct fgw_endpoint *out_endpoint) FGW_MUST_CHECK;
/* "127.0.0.1:8078", "[::1]:8078", "unix:/path" ("unix" for an unnamed peer). */
void fgw_address_format(const struct sockaddr *address, socklen_t len,
                        char out[FGW_ADDRESS_TEXT_SIZE]);
/* The abstract or file address of a Unix socket; FGW_ERR_TOO_LARGE when path does not fit. */
enum fgw_err fgw_address_unix(const char *path, struct sockaddr_storage *out,
                              socklen_t *out_len) FGW_MUST_CHECK;

#endif
