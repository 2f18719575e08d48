/* listener.c: see listener.h. Order: lock, bind, listen. */
#include "net/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/holder.h"

enum { BACKLOG = 1024, HOLDER_SIZE = 128 };

struct fgw_listener {
    int fd;
    int lock_fd;
    bool is_unix;
    char path[108]; /* of a Unix socket */
    struct stat path_stat;
    char address[FGW_ADDRESS_TEXT_SIZE];
};

static enum fgw_err in_use(const char *address, const char *holder, struct fgw_error *error)
{
    return fgw_error_set(error, FGW_ERR_IN_USE, "address %s is in use by %s", address, holder);
}

/* The lock is named after the resolved address, so that "localhost" and "127.0.0.1" meet. */
static enum fgw_err take_lock(const char *address, int *out_fd, struct fgw_error *error)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int len = snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "fgw/listen/%s", address);
    size_t name_len = (size_t)len < sizeof un.sun_path - 1 ? (size_t)len : sizeof un.sun_path - 2;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return fgw_error_set(error, FGW_ERR_IO, "socket: %m");
    }
    socklen_t un_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + name_len);
    if (bind(fd, (struct sockaddr *)&un, un_len) == 0) {
        *out_fd = fd;
        return FGW_OK;
    }
    enum fgw_err err = FGW_OK;
    if (errno == EADDRINUSE) {
        char holder[HOLDER_SIZE];
        un.sun_path[0] = '@';
        fgw_holder_of_unix(un.sun_path, holder, sizeof holder);
        err = in_use(address, holder, error);
    } else {
        err = fgw_error_set(error, FGW_ERR_IO, "cannot lock address %s: %m", address);
    }
    (void)close(fd);
    return err;
}

static enum fgw_err bind_failed(const char *address, uint16_t port, struct fgw_error *error)
{
    char holder[HOLDER_SIZE];
    switch (errno) {
    case EADDRINUSE:
        fgw_holder_of_tcp_port(port, holder, sizeof holder);
        return in_use(address, holder, error);
    case EADDRNOTAVAIL:
        return fgw_error_set(error, FGW_ERR_CONFIG, "address %s is not one of this machine",
                             address);
    case EACCES:
    case EPERM:
        return fgw_error_set(error, FGW_ERR_ACCESS_DENIED,
                             "not allowed to listen on %s (ports below 1024 need privileges)",
                             address);
    default:
        return fgw_error_set(error, FGW_ERR_IO, "cannot listen on %s: %m", address);
    }
}

static enum fgw_err open_tcp(struct fgw_listener *listener, const struct addrinfo *info,
                             uint16_t port, struct fgw_error *error)
{
    fgw_address_format(info->ai_addr, info->ai_addrlen, listener->address);
    enum fgw_err err = FGW_OK;
    if (port != 0) {
        err = take_lock(listener->address, &listener->lock_fd, error);
        if (err != FGW_OK) {
            return err;
        }
    }
    int on = 1;
    int off = 0;
    listener->fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener->fd < 0) {
        return bind_failed(listener->address, port, error);
    }
    (void)setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (info->ai_family == AF_INET6) {
        (void)setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind(listener->fd, info->ai_addr, info->ai_addrlen) != 0 ||
        listen(listener->fd, BACKLOG) != 0) {
        return bind_failed(listener->address, port, error);
    }
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    if (getsockname(listener->fd, (struct sockaddr *)&bound, &len) == 0) {
        fgw_address_format((struct sockaddr *)&bound, len, listener->address);
    }
    return FGW_OK;
}

static enum fgw_err open_inet(struct fgw_listener *listener, const struct fgw_endpoint *endpoint,
                              struct fgw_error *error)
{
    char port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    (void)snprintf(port, sizeof port, "%u", endpoint->port);
    if (endpoint->host[0] == '\0') {
        hints.ai_family = AF_INET;
    }
    int rc = getaddrinfo(endpoint->host[0] == '\0' ? NULL : endpoint->host, port, &hints, &found);
    if (rc != 0) {
        return fgw_error_set(error, FGW_ERR_CONFIG, "cannot resolve listen address %s: %s",
                             endpoint->host, gai_strerror(rc));
    }
    enum fgw_err err = open_tcp(listener, found, endpoint->port, error);
    freeaddrinfo(found);
    return err;
}

/* A socket file that nobody listens on is left over from a killed process. */
static bool is_stale(const struct sockaddr_storage *address, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    bool refused = connect(fd, (const struct sockaddr *)address, len) != 0 && errno == ECONNREFUSED;
    (void)close(fd);
    return refused;
}

static enum fgw_err open_unix(struct fgw_listener *listener, const struct fgw_endpoint *endpoint,
                              struct fgw_error *error)
{
    struct sockaddr_storage address;
    socklen_t len;
    listener->is_unix = true;
    (void)snprintf(listener->address, sizeof listener->address, "unix:%s", endpoint->host);
    if (fgw_address_unix(endpoint->host, &address, &len) != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_CONFIG, "socket path %s is too long", endpoint->host);
    }
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* Linux: the mode of the unbound socket becomes the mode of the file, without a moment of 0755 */
    if (listener->fd < 0 || fchmod(listener->fd, 0600) != 0) {
        return bind_failed(listener->address, 0, error);
    }
    int rc = bind(listener->fd, (struct sockaddr *)&address, len);
    if (rc != 0 && errno == EADDRINUSE && is_stale(&address, len)) {
        (void)unlink(endpoint->host);
        rc = bind(listener->fd, (struct sockaddr *)&address, len);
    }
    if (rc != 0 && errno == EADDRINUSE) {
        char holder[HOLDER_SIZE];
        fgw_holder_of_unix(endpoint->host, holder, sizeof holder);
        return in_use(listener->address, holder, error);
    }
    if (rc != 0 || listen(listener->fd, BACKLOG) != 0) {
        return bind_failed(listener->address, 0, error);
    }
    memcpy(listener->path, endpoint->host, sizeof listener->path);
    (void)stat(listener->path, &listener->path_stat);
    return FGW_OK;
}

enum fgw_err fgw_listener_open(const char *address, struct fgw_listener **out_listener,
                               struct fgw_error *error)
{
    struct fgw_endpoint endpoint;
    if (fgw_endpoint_parse(fgw_bytes_str(address), &endpoint) != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_CONFIG,
                             "listen address \"%s\": HOST:PORT, [IPV6]:PORT, :PORT or unix:/PATH "
                             "is needed",
                             address);
    }
    struct fgw_listener *listener = fgw_xcalloc(1, sizeof *listener);
    listener->fd = -1;
    listener->lock_fd = -1;
    enum fgw_err err = endpoint.is_unix ? open_unix(listener, &endpoint, error)
                                        : open_inet(listener, &endpoint, error);
    if (err != FGW_OK) {
        fgw_listener_close(listener);
        return err;
    }
    *out_listener = listener;
    return FGW_OK;
}

void fgw_listener_close(struct fgw_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    struct stat now;
    if (listener->path[0] != '\0' && stat(listener->path, &now) == 0 &&
        now.st_ino == listener->path_stat.st_ino && now.st_dev == listener->path_stat.st_dev) {
        (void)unlink(listener->path);
    }
    if (listener->fd >= 0) {
        (void)close(listener->fd);
    }
    if (listener->lock_fd >= 0) {
        (void)close(listener->lock_fd);
    }
    fgw_xfree(listener);
}

int fgw_listener_fd(const struct fgw_listener *listener)
{
    return listener->fd;
}

const char *fgw_listener_address(const struct fgw_listener *listener)
{
    return listener->address;
}

bool fgw_listener_is_unix(const struct fgw_listener *listener)
{
    return listener->is_unix;
}
