/* listener.h: a bound, listening socket. Taken addresses are refused with the holder's name: a lock
 * per address (an abstract Unix socket, released by the kernel when the process dies) keeps two FGW
 * apart even where SO_REUSEPORT would let both bind; it is never set here, so that any other
 * holder makes bind or listen fail. Blocking (names, /proc): for start-up. */
#ifndef FGW_NET_LISTENER_H
#define FGW_NET_LISTENER_H

#include "net/address.h"

struct fgw_listener;

/* address: "127.0.0.1:8078", "[::]:8078" (takes IPv4 too), ":8078", "unix:/path" (mode 0600; a
 * stale socket file is replaced). Port 0 draws one. FGW_ERR_IN_USE with the holder in
 * error->message, FGW_ERR_CONFIG for an address that cannot be parsed or is not of this machine,
 * FGW_ERR_ACCESS_DENIED, FGW_ERR_IO. */
enum fgw_err fgw_listener_open(const char *address, struct fgw_listener **out_listener,
                               struct fgw_error *error) FGW_MUST_CHECK;
/* Closes, removes the socket file of a Unix listener, gives the lock back. Takes NULL. */
void fgw_listener_close(struct fgw_listener *listener);
int fgw_listener_fd(const struct fgw_listener *listener);
/* What was really bound, port resolved. */
const char *fgw_listener_address(const struct fgw_listener *listener);
bool fgw_listener_is_unix(const struct fgw_listener *listener);

#endif
