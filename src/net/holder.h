/* holder.h: which process holds a port or a Unix socket: for messages people act on. Linux: found
 * through /proc, so only as far as this user may look. Blocking; for start-up and doctor. */
#ifndef FGW_NET_HOLDER_H
#define FGW_NET_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes "nginx (pid 4711)", or "another process" when it cannot be seen. Listening TCP port of
 * any local address. */
void fgw_holder_of_tcp_port(uint16_t port, char *out, size_t out_size);
/* Its process id; false when nobody listens or it cannot be seen. */
bool fgw_holder_pid_of_tcp_port(uint16_t port, long *out_pid);
/* Same for a listening Unix socket: path as in /proc/net/unix (abstract names begin with '@'). */
void fgw_holder_of_unix(const char *path, char *out, size_t out_size);

#endif
