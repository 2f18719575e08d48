/* connect.h: outgoing connections, by name or address, within a deadline. Names are resolved on
 * threads of their own, so that a slow look-up stands behind no disk. Fiber functions. */
#ifndef FGW_NET_CONNECT_H
#define FGW_NET_CONNECT_H

#include "net/conn.h"

struct fgw_connect_options {
    const char *address;         /* "host:port", "[::1]:9042", "unix:/path" */
    uint64_t deadline_ms;        /* fgw_loop_now_ms clock; also of the TLS handshake; 0: none */
    struct fgw_tls_context *tls; /* NULL: plain */
    const char *tls_name;        /* to verify; NULL: the host of address */
};

/* Tries the addresses of a name one after the other. TCP_NODELAY and SO_KEEPALIVE are set.
 * FGW_ERR_CONFIG (address), FGW_ERR_NOT_FOUND (name), FGW_ERR_UNAVAILABLE (nobody answers),
 * FGW_ERR_TIMEOUT, FGW_ERR_CLIENT_GONE (TLS refused); error->message names address and reason. */
enum fgw_err fgw_connect(const struct fgw_connect_options *options, struct fgw_conn **out_conn,
                         struct fgw_error *error) FGW_MUST_CHECK;

#endif
