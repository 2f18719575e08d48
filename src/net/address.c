/* address.c: see address.h. */
#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

static enum fgw_err parse_unix(struct fgw_bytes path, struct fgw_endpoint *out_endpoint)
{
    if (path.len == 0 || path.len >= sizeof((struct sockaddr_un *)0)->sun_path ||
        path.len >= sizeof out_endpoint->host || fgw_bytes_find_byte(path, 0) != SIZE_MAX) {
        return FGW_ERR_PARSE;
    }
    *out_endpoint = (struct fgw_endpoint){.is_unix = true};
    memcpy(out_endpoint->host, path.ptr, path.len);
    return FGW_OK;
}

enum fgw_err fgw_endpoint_parse(struct fgw_bytes text, struct fgw_endpoint *out_endpoint)
{
    if (fgw_bytes_starts_with(text, FGW_LIT("unix:"))) {
        return parse_unix(fgw_bytes_sub(text, 5, SIZE_MAX), out_endpoint);
    }
    size_t colon = text.len;
    while (colon > 0 && text.ptr[colon - 1] != ':') {
        colon--;
    }
    uint64_t port;
    if (colon == 0 || text.len - colon > 5 ||
        fgw_bytes_to_u64(fgw_bytes_sub(text, colon, SIZE_MAX), &port) != FGW_OK || port > 65535) {
        return FGW_ERR_PARSE;
    }
    struct fgw_bytes host = fgw_bytes_sub(text, 0, colon - 1);
    bool bracketed = host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    if (bracketed) {
        host = fgw_bytes_sub(host, 1, host.len - 2);
    }
    if (host.len >= sizeof out_endpoint->host || fgw_bytes_find_byte(host, 0) != SIZE_MAX ||
        (!bracketed && fgw_bytes_find_byte(host, ':') != SIZE_MAX)) {
        return FGW_ERR_PARSE;
    }
    *out_endpoint = (struct fgw_endpoint){.port = (uint16_t)port};
    if (host.len > 0 && !fgw_bytes_eq_str(host, "*")) {
        memcpy(out_endpoint->host, host.ptr, host.len);
    }
    return FGW_OK;
}

void fgw_address_format(const struct sockaddr *address, socklen_t len,
                        char out[FGW_ADDRESS_TEXT_SIZE])
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        (void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        (void)snprintf(out, FGW_ADDRESS_TEXT_SIZE, "%s:%u", host, ntohs(in->sin_port));
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)address;
        (void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        (void)snprintf(out, FGW_ADDRESS_TEXT_SIZE, "[%s]:%u", host, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_un *un = (const void *)address;
        bool named = len > offsetof(struct sockaddr_un, sun_path) && un->sun_path[0] != '\0';
        (void)snprintf(out, FGW_ADDRESS_TEXT_SIZE, "unix%s%.*s", named ? ":" : "",
                       named ? (int)sizeof un->sun_path : 0, un->sun_path);
    }
}

enum fgw_err fgw_address_unix(const char *path, struct sockaddr_storage *out, socklen_t *out_len)
{
    struct sockaddr_un *un = (void *)out;
    size_t len = strlen(path);
    if (len >= sizeof un->sun_path) {
        return FGW_ERR_TOO_LARGE;
    }
    memset(out, 0, sizeof *out);
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, len);
    *out_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    return FGW_OK;
}
