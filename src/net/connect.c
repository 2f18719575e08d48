/* connect.c: see connect.h. A look-up that outlives its deadline finishes alone: its job is on the
 * heap and belongs to the helper fiber that waits for the resolver's thread. */
#include "net/connect.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "event/fiber.h"
#include "net/address.h"
#include "net/conn_internal.h"

enum { RESOLVER_THREADS = 2, ADDRESSES_MAX = 8 };

/* -- names ------------------------------------------------------------------------------------- */

struct lookup {
    char host[108];
    char port[8];
    int rc;
    struct addrinfo *found;
    struct fgw_wait done;
    bool abandoned; /* the asking fiber gave up */
};

static struct fgw_pool *resolver;
static pthread_once_t resolver_once = PTHREAD_ONCE_INIT;

/* Lives as long as the process: a look-up may hang past every exit path. */
static void start_resolver(void)
{
    resolver = fgw_pool_new("resolver", RESOLVER_THREADS);
}

static void resolve(struct lookup *lookup, int flags)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    lookup->rc = getaddrinfo(lookup->host, lookup->port, &hints, &lookup->found);
}

static void resolve_on_pool(void *arg)
{
    resolve(arg, AI_ADDRCONFIG);
}

static void free_lookup(struct lookup *lookup)
{
    if (lookup->found != NULL) {
        freeaddrinfo(lookup->found);
    }
    fgw_xfree(lookup);
}

static void lookup_fiber(void *arg)
{
    struct lookup *lookup = arg;
    fgw_pool_run(resolver, resolve_on_pool, lookup);
    if (lookup->abandoned) {
        free_lookup(lookup);
    } else {
        fgw_wait_signal(&lookup->done);
    }
}

static enum fgw_err wait_for_lookup(struct lookup *lookup, uint64_t deadline_ms)
{
    (void)pthread_once(&resolver_once, start_resolver);
    fgw_wait_init(&lookup->done, 1);
    fgw_fiber_spawn(fgw_loop_current(), lookup_fiber, lookup);
    if (deadline_ms == FGW_CONN_NO_DEADLINE) {
        fgw_wait_for(&lookup->done);
        return FGW_OK;
    }
    enum fgw_err err = fgw_wait_until(&lookup->done, deadline_ms);
    lookup->abandoned = err != FGW_OK;
    return err;
}

/* -- one address ------------------------------------------------------------------------------- */

static enum fgw_err finish_connecting(struct fgw_conn *conn, int *out_errno)
{
    int socket_error = 0;
    socklen_t len = sizeof socket_error;
    enum fgw_err err = fgw_conn_wait_ready(conn, FGW_POLL_WRITE);
    if (err == FGW_OK) {
        (void)getsockopt(fgw_conn_fd(conn), SOL_SOCKET, SO_ERROR, &socket_error, &len);
        *out_errno = socket_error;
        err = socket_error == 0 ? FGW_OK : FGW_ERR_UNAVAILABLE;
    }
    return err;
}

static enum fgw_err try_address(const struct sockaddr *address, socklen_t len, uint64_t deadline_ms,
                                struct fgw_conn **out_conn, int *out_errno)
{
    int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        *out_errno = errno;
        return FGW_ERR_UNAVAILABLE;
    }
    if (address->sa_family != AF_UNIX) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    int rc = connect(fd, address, len);
    if (rc != 0 && errno != EINPROGRESS) {
        *out_errno = errno;
        (void)close(fd);
        return FGW_ERR_UNAVAILABLE;
    }
    struct fgw_conn *conn = fgw_conn_new(fgw_loop_current(), fd);
    if (conn == NULL) {
        *out_errno = EBADF;
        return FGW_ERR_UNAVAILABLE;
    }
    fgw_conn_set_read_deadline(conn, deadline_ms);
    fgw_conn_set_write_deadline(conn, deadline_ms);
    enum fgw_err err = rc == 0 ? FGW_OK : finish_connecting(conn, out_errno);
    if (err != FGW_OK) {
        fgw_conn_close(conn);
        return err;
    }
    *out_conn = conn;
    return FGW_OK;
}

static enum fgw_err not_reached(const char *address, enum fgw_err err, int error_number,
                                struct fgw_error *error)
{
    if (err == FGW_ERR_TIMEOUT) {
        return fgw_error_set(error, err, "%s does not answer in time", address);
    }
    return fgw_error_set(error, err, "cannot connect to %s: %s", address, strerror(error_number));
}

static enum fgw_err connect_inet(const struct fgw_connect_options *options, uint64_t deadline_ms,
                                 const struct fgw_endpoint *endpoint, struct fgw_conn **out_conn,
                                 struct fgw_error *error)
{
    struct lookup *lookup = fgw_xcalloc(1, sizeof *lookup);
    (void)snprintf(lookup->host, sizeof lookup->host, "%s",
                   endpoint->host[0] == '\0' ? "127.0.0.1" : endpoint->host);
    (void)snprintf(lookup->port, sizeof lookup->port, "%u", endpoint->port);
    resolve(lookup, AI_NUMERICHOST);
    if (lookup->rc != 0) {
        enum fgw_err err = wait_for_lookup(lookup, deadline_ms);
        if (err != FGW_OK) {
            return fgw_error_set(error, err, "name %s is not resolved in time", endpoint->host);
        }
    }
    enum fgw_err err = FGW_ERR_UNAVAILABLE;
    int error_number = 0;
    if (lookup->rc != 0) {
        err = fgw_error_set(error, FGW_ERR_NOT_FOUND, "cannot resolve %s: %s", endpoint->host,
                            gai_strerror(lookup->rc));
        free_lookup(lookup);
        return err;
    }
    struct addrinfo *info = lookup->found;
    for (unsigned i = 0; info != NULL && i < ADDRESSES_MAX && err == FGW_ERR_UNAVAILABLE; i++) {
        err = try_address(info->ai_addr, info->ai_addrlen, deadline_ms, out_conn, &error_number);
        info = info->ai_next;
    }
    free_lookup(lookup);
    return err == FGW_OK ? FGW_OK : not_reached(options->address, err, error_number, error);
}

static enum fgw_err connect_unix(const struct fgw_connect_options *options, uint64_t deadline_ms,
                                 const struct fgw_endpoint *endpoint, struct fgw_conn **out_conn,
                                 struct fgw_error *error)
{
    struct sockaddr_storage address;
    socklen_t len;
    int error_number = 0;
    if (fgw_address_unix(endpoint->host, &address, &len) != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_CONFIG, "socket path %s is too long", endpoint->host);
    }
    enum fgw_err err =
        try_address((struct sockaddr *)&address, len, deadline_ms, out_conn, &error_number);
    return err == FGW_OK ? FGW_OK : not_reached(options->address, err, error_number, error);
}

enum fgw_err fgw_connect(const struct fgw_connect_options *options, struct fgw_conn **out_conn,
                         struct fgw_error *error)
{
    struct fgw_endpoint endpoint;
    uint64_t deadline_ms = options->deadline_ms == 0 ? FGW_CONN_NO_DEADLINE : options->deadline_ms;
    if (fgw_endpoint_parse(fgw_bytes_str(options->address), &endpoint) != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_CONFIG, "\"%s\" is no address (HOST:PORT)",
                             options->address);
    }
    struct fgw_conn *conn = NULL;
    enum fgw_err err = endpoint.is_unix
                           ? connect_unix(options, deadline_ms, &endpoint, &conn, error)
                           : connect_inet(options, deadline_ms, &endpoint, &conn, error);
    if (err == FGW_OK && options->tls != NULL) {
        const char *name = options->tls_name == NULL ? endpoint.host : options->tls_name;
        err = fgw_conn_start_tls_client(conn, options->tls, name, error);
        if (err != FGW_OK) {
            fgw_conn_close(conn);
        }
    }
    if (err != FGW_OK) {
        return err;
    }
    fgw_conn_set_read_deadline(conn, FGW_CONN_NO_DEADLINE);
    fgw_conn_set_write_deadline(conn, FGW_CONN_NO_DEADLINE);
    *out_conn = conn;
    return FGW_OK;
}
