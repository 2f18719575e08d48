/* transport.c: see transport.h. */
#include "cql/transport.h"

#include <netdb.h>
#include <stdio.h>

#include "net/conn.h"
#include "net/connect.h"
#include "net/tls.h"

enum { ADDRESS_TEXT_SIZE = FGW_CQL_HOST_SIZE + 16 };

enum fgw_err fgw_cql_transport_open(const struct fgw_cql_config *config,
                                    const struct fgw_cql_contact *contact, uint64_t deadline_ms,
                                    struct fgw_conn **out, char out_address[FGW_CQL_HOST_SIZE],
                                    struct fgw_error *error)
{
    char address[ADDRESS_TEXT_SIZE];
    bool v6 = strchr(contact->host, ':') != NULL;
    (void)snprintf(address, sizeof address, v6 ? "[%s]:%u" : "%s:%u", contact->host, contact->port);
    struct fgw_connect_options options = {
        .address = address, .deadline_ms = deadline_ms, .tls = config->tls};
    struct fgw_conn *transport = NULL;
    enum fgw_err err = fgw_connect(&options, &transport, error);
    if (err != FGW_OK) {
        error->code = err == FGW_ERR_TIMEOUT ? FGW_ERR_TIMEOUT : FGW_ERR_UNAVAILABLE;
        return error->code;
    }
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    if (getpeername(fgw_conn_fd(transport), (struct sockaddr *)&peer, &len) != 0 ||
        getnameinfo((struct sockaddr *)&peer, len, out_address, FGW_CQL_HOST_SIZE, NULL, 0,
                    NI_NUMERICHOST) != 0) {
        (void)snprintf(out_address, FGW_CQL_HOST_SIZE, "%s", contact->host);
    }
    *out = transport;
    return FGW_OK;
}

static enum fgw_err narrowed(enum fgw_err err)
{
    return err == FGW_OK || err == FGW_ERR_END || err == FGW_ERR_TIMEOUT ? err : FGW_ERR_IO;
}

enum fgw_err fgw_cql_transport_read(struct fgw_conn *transport, void *out, size_t size,
                                    uint64_t deadline_ms, size_t *out_len)
{
    fgw_conn_set_read_deadline(transport, deadline_ms == 0 ? FGW_CONN_NO_DEADLINE : deadline_ms);
    return narrowed(fgw_conn_read(transport, out, size, out_len));
}

enum fgw_err fgw_cql_transport_write(struct fgw_conn *transport, struct fgw_bytes bytes)
{
    fgw_conn_set_write_deadline(transport, FGW_CONN_NO_DEADLINE);
    return narrowed(fgw_conn_write(transport, bytes));
}

void fgw_cql_transport_break(struct fgw_conn *transport)
{
    fgw_conn_break(transport);
}

void fgw_cql_transport_close(struct fgw_conn *transport)
{
    fgw_conn_close(transport);
}
