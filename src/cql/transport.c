/* transport.c: see transport.h. Plain TCP on the loop's readiness events. */
#include "cql/transport.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

#include "event/fiber.h"

struct side {
    struct fgw_wait wait;
    bool waiting;
};

struct fgw_cql_transport {
    struct fgw_loop *loop;
    struct fgw_poll *poll;
    int fd;
    bool broken;
    struct side reader;
    struct side writer;
};

static void wake(struct side *side)
{
    if (side->waiting) {
        side->waiting = false;
        fgw_wait_signal(&side->wait);
    }
}

/* An event that nobody waits for disarms the poll. */
static void on_ready(void *arg, int events)
{
    struct fgw_cql_transport *transport = arg;
    int armed = fgw_poll_events(transport->poll);
    if ((events & FGW_POLL_READ) && !transport->reader.waiting) {
        armed &= ~FGW_POLL_READ;
    }
    if ((events & FGW_POLL_WRITE) && !transport->writer.waiting) {
        armed &= ~FGW_POLL_WRITE;
    }
    fgw_poll_set(transport->poll, armed);
    if (events & FGW_POLL_READ) {
        wake(&transport->reader);
    }
    if (events & FGW_POLL_WRITE) {
        wake(&transport->writer);
    }
}

static enum fgw_err wait_ready(struct fgw_cql_transport *transport, int event, uint64_t deadline_ms)
{
    struct side *side = event == FGW_POLL_READ ? &transport->reader : &transport->writer;
    if (transport->broken) {
        return FGW_ERR_IO;
    }
    fgw_wait_init(&side->wait, 1);
    side->waiting = true;
    fgw_poll_set(transport->poll, fgw_poll_events(transport->poll) | event);
    enum fgw_err err = FGW_OK;
    if (deadline_ms == 0) {
        fgw_wait_for(&side->wait);
    } else {
        err = fgw_wait_until(&side->wait, deadline_ms);
    }
    side->waiting = false;
    return transport->broken ? FGW_ERR_IO : err;
}

/* -- opening --------------------------------------------------------------------------------- */

struct look_up {
    const char *host;
    char service[8];
    int flags;
    int result;
    struct addrinfo *list;
};

static void look_up(void *arg)
{
    struct look_up *job = arg;
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | job->flags};
    job->result = getaddrinfo(job->host, job->service, &hints, &job->list);
}

static enum fgw_err resolve(const struct fgw_cql_config *config,
                            const struct fgw_cql_contact *contact, struct addrinfo **out,
                            struct fgw_error *error)
{
    struct look_up job = {.host = contact->host, .flags = AI_NUMERICHOST};
    (void)snprintf(job.service, sizeof job.service, "%u", contact->port);
    look_up(&job);
    if (job.result != 0) {
        job.flags = 0;
        fgw_pool_run(config->resolver, look_up, &job);
    }
    if (job.result != 0) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "%s: %s", contact->host,
                             gai_strerror(job.result));
    }
    *out = job.list;
    return FGW_OK;
}

static enum fgw_err connect_one(struct fgw_cql_transport *transport, const struct addrinfo *info,
                                uint64_t deadline_ms, int *out_errno)
{
    if (connect(transport->fd, info->ai_addr, info->ai_addrlen) == 0) {
        return FGW_OK;
    }
    if (errno != EINPROGRESS) {
        *out_errno = errno;
        return FGW_ERR_UNAVAILABLE;
    }
    enum fgw_err err = wait_ready(transport, FGW_POLL_WRITE, deadline_ms);
    socklen_t len = sizeof *out_errno;
    if (err == FGW_OK && getsockopt(transport->fd, SOL_SOCKET, SO_ERROR, out_errno, &len) == 0 &&
        *out_errno == 0) {
        return FGW_OK;
    }
    return err == FGW_OK ? FGW_ERR_UNAVAILABLE : err;
}

static struct fgw_cql_transport *new_transport(struct fgw_loop *loop, int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return NULL;
    }
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    struct fgw_cql_transport *transport = fgw_xcalloc(1, sizeof *transport);
    transport->loop = loop;
    transport->fd = fd;
    transport->poll = fgw_poll_new(loop, fd, on_ready, transport);
    if (transport->poll == NULL) {
        (void)close(fd);
        fgw_xfree(transport);
        return NULL;
    }
    return transport;
}

enum fgw_err fgw_cql_transport_open(struct fgw_loop *loop, const struct fgw_cql_config *config,
                                    const struct fgw_cql_contact *contact, uint64_t deadline_ms,
                                    struct fgw_cql_transport **out, char *out_address,
                                    struct fgw_error *error)
{
    struct addrinfo *list = NULL;
    enum fgw_err err = resolve(config, contact, &list, error);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_cql_transport *transport = NULL;
    for (struct addrinfo *info = list; info != NULL; info = info->ai_next) {
        int error_number = 0;
        transport = new_transport(loop, info->ai_family);
        err = transport == NULL ? FGW_ERR_UNAVAILABLE
                                : connect_one(transport, info, deadline_ms, &error_number);
        if (err == FGW_OK) {
            (void)getnameinfo(info->ai_addr, info->ai_addrlen, out_address, FGW_CQL_HOST_SIZE, NULL,
                              0, NI_NUMERICHOST);
            break;
        }
        fgw_cql_transport_close(transport);
        transport = NULL;
        (void)fgw_error_set(error, err, "%s:%u: %s", contact->host, contact->port,
                            err == FGW_ERR_TIMEOUT ? "no answer" : strerror(error_number));
    }
    freeaddrinfo(list);
    if (transport != NULL) {
        *out = transport;
    }
    return err;
}

/* -- reading and writing ---------------------------------------------------------------------- */

enum fgw_err fgw_cql_transport_read(struct fgw_cql_transport *transport, void *out, size_t size,
                                    uint64_t deadline_ms, size_t *out_len)
{
    for (;;) {
        if (transport->broken) {
            return FGW_ERR_IO;
        }
        ssize_t got = recv(transport->fd, out, size, 0);
        if (got > 0) {
            *out_len = (size_t)got;
            return FGW_OK;
        }
        if (got == 0) {
            return FGW_ERR_END;
        }
        if (errno != EAGAIN && errno != EINTR) {
            return FGW_ERR_IO;
        }
        enum fgw_err err = wait_ready(transport, FGW_POLL_READ, deadline_ms);
        if (err != FGW_OK) {
            return err;
        }
    }
}

enum fgw_err fgw_cql_transport_write(struct fgw_cql_transport *transport, struct fgw_bytes bytes)
{
    while (bytes.len > 0) {
        if (transport->broken) {
            return FGW_ERR_IO;
        }
        ssize_t sent = send(transport->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes = fgw_bytes_sub(bytes, (size_t)sent, SIZE_MAX);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) {
            return FGW_ERR_IO;
        }
        enum fgw_err err = wait_ready(transport, FGW_POLL_WRITE, 0);
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

void fgw_cql_transport_break(struct fgw_cql_transport *transport)
{
    transport->broken = true;
    (void)shutdown(transport->fd, SHUT_RDWR);
    wake(&transport->reader);
    wake(&transport->writer);
}

void fgw_cql_transport_close(struct fgw_cql_transport *transport)
{
    if (transport == NULL) {
        return;
    }
    fgw_poll_free(transport->poll);
    (void)close(transport->fd);
    fgw_xfree(transport);
}
