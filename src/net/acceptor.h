/* acceptor.h: takes connections of a listener and hands each to the worker with the fewest.
 *
 * It lives on one worker's loop. When the process runs out of descriptors it pauses instead of
 * spinning on the level-triggered listener: clients wait in the backlog until some are free. */
#ifndef FGW_NET_ACCEPTOR_H
#define FGW_NET_ACCEPTOR_H

#include <stdatomic.h>

#include "event/workers.h"
#include "net/address.h"

struct fgw_acceptor;

/* On the chosen worker's loop, outside of a fiber. fd: non-blocking, close-on-exec, TCP_NODELAY and
 * SO_KEEPALIVE set; now the callee's. peer is copied by the callee. */
typedef void fgw_accepted_fn(void *arg, unsigned worker_index, int fd, const char *peer);

struct fgw_acceptor_options {
    int listen_fd; /* stays the caller's */
    struct fgw_workers *workers;
    unsigned home;                     /* index of the worker whose loop accepts */
    _Atomic unsigned *open_per_worker; /* read to choose, incremented at hand-over; the callee
                                          decrements when the connection is gone */
    fgw_accepted_fn *fn;
    void *arg;
};

/* Both on the home worker's loop. After free, connections already handed over may still be on their
 * way to their loops: run something on each worker to know that they came. */
struct fgw_acceptor *fgw_acceptor_new(const struct fgw_acceptor_options *options);
void fgw_acceptor_free(struct fgw_acceptor *acceptor);

#endif
