/* handshake.c: from a connected socket to a usable CQL connection (spec/ycql.md section 5.2):
 * OPTIONS (which also tells the kind of server), STARTUP, and SASL PLAIN when asked for. Every way
 * it can fail is told in words a person can act on. */
#include "cql/client_internal.h"

/* YCQL answers neither key; both are facts of the SUPPORTED answer, not of a version string. */
static enum fgw_cql_flavour tell_flavour(const struct fgw_cql_response *response)
{
    bool cassandra = false;
    for (size_t i = 0; i < response->supported.count; i++) {
        struct fgw_bytes key = response->supported.items[i].key;
        if (fgw_bytes_starts_with(key, FGW_LIT("SCYLLA_"))) {
            return FGW_CQL_FLAVOUR_SCYLLA;
        }
        cassandra = cassandra || fgw_bytes_eq_str(key, "PROTOCOL_VERSIONS");
    }
    return cassandra ? FGW_CQL_FLAVOUR_CASSANDRA : FGW_CQL_FLAVOUR_YUGABYTE;
}

static enum fgw_err ask(struct cql_conn *conn, struct fgw_buf *request, uint64_t deadline_ms,
                        struct fgw_cql_response **out_response, struct fgw_error *error)
{
    enum fgw_err err = fgw_cql_transport_write(conn->transport, fgw_buf_bytes(request));
    if (err != FGW_OK) {
        (void)fgw_error_set(error, FGW_ERR_UNAVAILABLE, "the connection broke while sending");
        return FGW_ERR_UNAVAILABLE;
    }
    for (;;) {
        struct fgw_cql_response *response = NULL;
        err = fgw_cql_conn_read_response(conn, deadline_ms, &response, error);
        if (err != FGW_OK) {
            return err;
        }
        FGW_CHECK(response != NULL);
        if (response->stream >= 0) {
            *out_response = response;
            return FGW_OK;
        }
        fgw_cql_response_free(response); /* an event */
    }
}

/* A server that hangs up on the first frame is no CQL server, or shuts down. */
static enum fgw_err explain(enum fgw_err err, struct fgw_error *error)
{
    switch (err) {
    case FGW_ERR_END:
    case FGW_ERR_IO:
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE,
                             "the server closed the connection without an answer to the first "
                             "CQL frame: it is shutting down, expects TLS, or is no CQL server "
                             "(5433 is YugabyteDB's YSQL, 15433 its web UI, 9042 its YCQL)");
    case FGW_ERR_TIMEOUT:
        return fgw_error_set(error, FGW_ERR_TIMEOUT,
                             "connected, but no answer to the first CQL frame in time");
    case FGW_ERR_PARSE:
    case FGW_ERR_TOO_LARGE:
    case FGW_ERR_CORRUPT:
        error->code = FGW_ERR_CONFIG;
        return FGW_ERR_CONFIG;
    default:
        return err;
    }
}

static enum fgw_err refused(const struct fgw_cql_response *response, const char *step,
                            struct fgw_error *error)
{
    if (response->opcode != FGW_CQL_OP_ERROR) {
        return fgw_error_set(error, FGW_ERR_CONFIG, "unexpected answer 0x%02x to %s",
                             response->opcode, step);
    }
    const struct fgw_cql_server_error *answer = &response->error;
    struct fgw_bytes text = fgw_bytes_sub(answer->message, 0, 200);
    switch (answer->code) {
    case FGW_CQL_ERROR_CREDENTIALS:
    case FGW_CQL_ERROR_UNAUTHORIZED:
        return fgw_error_set(error, FGW_ERR_ACCESS_DENIED,
                             "the database refuses user and password: %.*s", FGW_FMT(text));
    case FGW_CQL_ERROR_PROTOCOL:
        return fgw_error_set(error, FGW_ERR_CONFIG,
                             "the server refuses version 4 of the protocol: %.*s", FGW_FMT(text));
    default:
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "%s was answered with error 0x%04x: %.*s",
                             step, (unsigned)answer->code, FGW_FMT(text));
    }
}

static enum fgw_err authenticate(struct cql_conn *conn, uint64_t deadline_ms,
                                 struct fgw_error *error)
{
    const struct fgw_cql_config *config = conn->client->config;
    if (config->user == NULL) {
        return fgw_error_set(error, FGW_ERR_ACCESS_DENIED,
                             "the database asks for a user and password: set FGW_CQL_USER and "
                             "FGW_CQL_PASSWORD");
    }
    struct fgw_buf request;
    fgw_buf_init(&request, 0);
    fgw_cql_encode_auth(&request, 0, fgw_bytes_str(config->user), fgw_bytes_str(config->password));
    struct fgw_cql_response *response = NULL;
    enum fgw_err err = ask(conn, &request, deadline_ms, &response, error);
    explicit_bzero(request.ptr, request.len);
    fgw_buf_deinit(&request);
    if (err != FGW_OK) {
        return err;
    }
    if (response->opcode == FGW_CQL_OP_AUTH_CHALLENGE) {
        err = fgw_error_set(error, FGW_ERR_CONFIG,
                            "the database uses an authentication other than by password");
    } else if (response->opcode != FGW_CQL_OP_AUTH_SUCCESS) {
        err = refused(response, "AUTH_RESPONSE", error);
    }
    fgw_cql_response_free(response);
    return err;
}

static enum fgw_err start(struct cql_conn *conn, uint64_t deadline_ms, struct fgw_error *error)
{
    struct fgw_buf request;
    fgw_buf_init(&request, 0);
    fgw_cql_encode_startup(&request, 0);
    struct fgw_cql_response *response = NULL;
    enum fgw_err err = ask(conn, &request, deadline_ms, &response, error);
    fgw_buf_deinit(&request);
    if (err != FGW_OK) {
        return err;
    }
    uint8_t opcode = response->opcode;
    if (opcode != FGW_CQL_OP_READY && opcode != FGW_CQL_OP_AUTHENTICATE) {
        err = refused(response, "STARTUP", error);
    }
    fgw_cql_response_free(response);
    return opcode == FGW_CQL_OP_AUTHENTICATE ? authenticate(conn, deadline_ms, error) : err;
}

enum fgw_err fgw_cql_handshake(struct cql_conn *conn, uint64_t deadline_ms, struct fgw_error *error)
{
    struct fgw_buf request;
    fgw_buf_init(&request, 0);
    fgw_cql_encode_options(&request, 0);
    struct fgw_cql_response *response = NULL;
    enum fgw_err err = ask(conn, &request, deadline_ms, &response, error);
    fgw_buf_deinit(&request);
    if (err != FGW_OK) {
        return explain(err, error);
    }
    if (response->opcode == FGW_CQL_OP_SUPPORTED) {
        conn->client->flavour = tell_flavour(response);
    } else {
        err = refused(response, "OPTIONS", error);
    }
    fgw_cql_response_free(response);
    return err == FGW_OK ? start(conn, deadline_ms, error) : err;
}
