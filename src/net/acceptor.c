/* acceptor.c: see acceptor.h. */
#include "net/acceptor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum {
    ACCEPTS_PER_TURN = 64, /* then others of this loop have their turn */
    PAUSE_MS = 50,
    COMPLAIN_EVERY_MS = 10000
};

struct fgw_acceptor {
    struct fgw_acceptor_options options;
    struct fgw_poll *poll;
    struct fgw_timer *pause;
    uint64_t next_complaint_ms;
};

struct hand_over {
    struct fgw_task task;
    fgw_accepted_fn *fn;
    void *arg;
    unsigned worker;
    int fd;
    char peer[FGW_ADDRESS_TEXT_SIZE];
};

static void arrive(struct fgw_task *task)
{
    struct hand_over *hand_over = FGW_CONTAINER_OF(task, struct hand_over, task);
    hand_over->fn(hand_over->arg, hand_over->worker, hand_over->fd, hand_over->peer);
    fgw_xfree(hand_over);
}

static unsigned choose_worker(const struct fgw_acceptor *acceptor)
{
    unsigned count = fgw_workers_count(acceptor->options.workers);
    unsigned best = acceptor->options.home;
    unsigned best_open = atomic_load(&acceptor->options.open_per_worker[best]);
    for (unsigned i = 0; i < count; i++) {
        unsigned open = atomic_load(&acceptor->options.open_per_worker[i]);
        if (open < best_open) {
            best = i;
            best_open = open;
        }
    }
    return best;
}

static void hand_over(struct fgw_acceptor *acceptor, int fd, const char *peer)
{
    unsigned worker = choose_worker(acceptor);
    atomic_fetch_add(&acceptor->options.open_per_worker[worker], 1);
    if (worker == acceptor->options.home) {
        acceptor->options.fn(acceptor->options.arg, worker, fd, peer);
        return;
    }
    struct hand_over *hand_over = fgw_xcalloc(1, sizeof *hand_over);
    hand_over->task.run = arrive;
    hand_over->fn = acceptor->options.fn;
    hand_over->arg = acceptor->options.arg;
    hand_over->worker = worker;
    hand_over->fd = fd;
    (void)snprintf(hand_over->peer, sizeof hand_over->peer, "%s", peer);
    fgw_loop_post(fgw_workers_loop(acceptor->options.workers, worker), &hand_over->task);
}

static void resume(void *arg)
{
    struct fgw_acceptor *acceptor = arg;
    fgw_poll_set(acceptor->poll, FGW_POLL_READ);
}

/* EMFILE, ENFILE, ENOBUFS, ENOMEM. */
static void pause_accepting(struct fgw_acceptor *acceptor)
{
    uint64_t now = fgw_clock_boot_ms();
    if (now >= acceptor->next_complaint_ms) {
        acceptor->next_complaint_ms = now + COMPLAIN_EVERY_MS;
        fgw_log_warn("net", "cannot accept connections for now: %s", strerror(errno));
    }
    fgw_poll_set(acceptor->poll, 0);
    fgw_timer_start(acceptor->pause, PAUSE_MS);
}

static void prepare_socket(int fd, const struct sockaddr_storage *peer)
{
    int on = 1;
    if (peer->ss_family == AF_INET || peer->ss_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
}

static void on_connections(void *arg, int events)
{
    struct fgw_acceptor *acceptor = arg;
    (void)events;
    for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct sockaddr_storage address = {0};
        socklen_t len = sizeof address;
        int fd = accept4(acceptor->options.listen_fd, (struct sockaddr *)&address, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                pause_accepting(acceptor);
                return;
            }
            if (errno == EAGAIN || errno == EBADF || errno == EINVAL) {
                return;
            }
            continue; /* this connection died in the backlog */
        }
        char peer[FGW_ADDRESS_TEXT_SIZE];
        prepare_socket(fd, &address);
        fgw_address_format((struct sockaddr *)&address, len, peer);
        hand_over(acceptor, fd, peer);
    }
}

struct fgw_acceptor *fgw_acceptor_new(const struct fgw_acceptor_options *options)
{
    struct fgw_loop *loop = fgw_workers_loop(options->workers, options->home);
    struct fgw_acceptor *acceptor = fgw_xcalloc(1, sizeof *acceptor);
    acceptor->options = *options;
    acceptor->pause = fgw_timer_new(loop, resume, acceptor);
    acceptor->poll = fgw_poll_new(loop, options->listen_fd, on_connections, acceptor);
    FGW_CHECK(acceptor->poll != NULL);
    fgw_poll_set(acceptor->poll, FGW_POLL_READ);
    return acceptor;
}

void fgw_acceptor_free(struct fgw_acceptor *acceptor)
{
    if (acceptor != NULL) {
        fgw_poll_free(acceptor->poll);
        fgw_timer_free(acceptor->pause);
        fgw_xfree(acceptor);
    }
}
