/* conn.c: one connection: stream ids, the reading loop, the writing fiber, and the end of it all.
 *
 * The reader is the fiber of the pool slot that opened the connection (node.c); the writer is a
 * fiber of its own that sends whatever was queued since it last looked, so that the requests of one
 * turn of the loop leave in one system call. A stream whose request was given up stays taken until
 * its answer comes (spec/ycql.md section 5.1); too many of those and the connection is closed.
 */
#include <stdio.h>

#include "cql/client_internal.h"

enum {
    READ_SIZE = 64 * 1024,
    IDLE_PROBE_MS = 30000, /* nothing came for so long: ask */
    BUSY_PROBE_MS = 3000,  /* the same while answers are awaited */
    PROBE_TIMEOUT_MS = 5000,
    OUT_KEEP = 256 * 1024 /* buffers above this are given back */
};

struct cql_conn *fgw_cql_conn_new(struct cql_node *node)
{
    struct cql_conn *conn = fgw_xcalloc(1, sizeof *conn);
    conn->client = node->client;
    conn->node = node;
    conn->refs = 1;
    conn->probe_stream = -1;
    conn->read_buf = fgw_xmalloc(READ_SIZE);
    fgw_list_init(&conn->node_link);
    fgw_buf_init(&conn->out, 0);
    fgw_buf_init(&conn->sending, 0);
    for (int i = 0; i < FGW_CQL_STREAMS; i++) {
        conn->free_streams[i] = (int16_t)(FGW_CQL_STREAMS - 1 - i);
    }
    conn->free_count = FGW_CQL_STREAMS;
    return conn;
}

struct cql_conn *fgw_cql_conn_ref(struct cql_conn *conn)
{
    conn->refs++;
    return conn;
}

void fgw_cql_conn_unref(struct cql_conn *conn)
{
    if (conn == NULL || --conn->refs > 0) {
        return;
    }
    FGW_CHECK(conn->transport == NULL && conn->in_flight == 0);
    fgw_cql_assembler_deinit(&conn->assembler);
    fgw_buf_deinit(&conn->out);
    fgw_buf_deinit(&conn->sending);
    fgw_xfree(conn->read_buf);
    fgw_xfree(conn);
}

/* -- streams ---------------------------------------------------------------------------------- */

bool fgw_cql_conn_has_room(const struct cql_conn *conn)
{
    return conn->state == CQL_CONN_READY && conn->free_count > 0 &&
           conn->in_flight < conn->client->config->in_flight_max && conn->out.len < FGW_CQL_OUT_MAX;
}

void fgw_cql_conn_begin(struct cql_conn *conn, struct cql_request *request)
{
    FGW_CHECK(conn->state == CQL_CONN_READY && conn->free_count > 0);
    *request = (struct cql_request){.start_offset = conn->queued_bytes};
    fgw_wait_init(&request->wait, 1);
    request->stream = conn->free_streams[--conn->free_count];
    conn->slots[request->stream] = (struct cql_slot){.request = request, .taken = true};
    conn->in_flight++;
    conn->node->in_flight++;
}

static void leave_flight(struct cql_conn *conn)
{
    conn->in_flight--;
    conn->node->in_flight--;
}

static void release_stream(struct cql_conn *conn, int16_t stream)
{
    conn->slots[stream] = (struct cql_slot){0};
    conn->free_streams[conn->free_count++] = stream;
    fgw_cql_client_wake(conn->client);
}

void fgw_cql_conn_send(struct cql_conn *conn)
{
    if (conn->in_flight <= 1) {
        conn->silent_since_ms = fgw_loop_now_ms(conn->client->loop);
    }
    conn->queued_bytes = conn->handed_bytes + conn->out.len;
    if (conn->writer_idle) {
        conn->writer_idle = false;
        fgw_wait_signal(&conn->writer_wait);
    }
}

static void complete(struct cql_request *request, enum fgw_err err,
                     struct fgw_cql_response *response)
{
    request->done = true;
    request->err = err;
    request->response = response;
    fgw_wait_signal(&request->wait);
}

enum fgw_err fgw_cql_conn_await(struct cql_conn *conn, struct cql_request *request,
                                uint64_t deadline_ms, struct fgw_cql_response **out_response)
{
    enum fgw_err err = fgw_wait_until(&request->wait, deadline_ms);
    if (!request->done) {
        conn->slots[request->stream].request = NULL;
        conn->quarantined++;
        leave_flight(conn);
        conn->client->counters.timeouts++;
        fgw_cql_node_silent(conn->node);
        if (conn->quarantined > FGW_CQL_QUARANTINE_MAX) {
            fgw_cql_conn_close(conn, FGW_ERR_TIMEOUT, "too many requests without an answer");
        }
        return err;
    }
    if (request->err == FGW_OK) {
        *out_response = request->response;
    }
    return request->err;
}

/* -- reading ---------------------------------------------------------------------------------- */

static void dispatch(struct cql_conn *conn, struct fgw_cql_response *response)
{
    int16_t stream = response->stream;
    if (stream < 0) { /* an event: none was asked for, YCQL may still send them */
        fgw_cql_response_free(response);
        return;
    }
    if (stream >= FGW_CQL_STREAMS || !conn->slots[stream].taken) {
        fgw_cql_response_free(response);
        fgw_cql_conn_close(conn, FGW_ERR_IO, "an answer to a request that was never sent");
        return;
    }
    struct cql_request *request = conn->slots[stream].request;
    if (request != NULL || stream == conn->probe_stream) {
        fgw_cql_node_answered(conn->node);
    }
    if (request == NULL) {
        conn->quarantined--;
        conn->client->counters.late += stream != conn->probe_stream;
        conn->probe_stream = stream == conn->probe_stream ? -1 : conn->probe_stream;
        fgw_cql_response_free(response);
    } else {
        leave_flight(conn);
        complete(request, FGW_OK, response);
    }
    release_stream(conn, stream);
}

enum fgw_err fgw_cql_conn_read_response(struct cql_conn *conn, uint64_t deadline_ms,
                                        struct fgw_cql_response **out_response,
                                        struct fgw_error *error)
{
    for (;;) {
        struct fgw_cql_frame frame = {0};
        enum fgw_err err = fgw_cql_assembler_feed(&conn->assembler, &conn->unread, &frame, error);
        if (err == FGW_OK) {
            return fgw_cql_decode(&frame, out_response, error);
        }
        if (err != FGW_ERR_END) {
            return err;
        }
        size_t got = 0;
        err = fgw_cql_transport_read(conn->transport, conn->read_buf, READ_SIZE, deadline_ms, &got);
        if (err != FGW_OK) {
            const char *foreign = fgw_cql_foreign_peer(fgw_cql_assembler_pending(&conn->assembler));
            return foreign != NULL
                       ? fgw_error_set(error, FGW_ERR_PARSE, "the peer looks like %s", foreign)
                       : fgw_error_set(error, err, "%s",
                                       err == FGW_ERR_END       ? "the server closed the connection"
                                       : err == FGW_ERR_TIMEOUT ? "no answer in time"
                                                                : "the connection broke");
        }
        conn->unread = fgw_bytes(conn->read_buf, got);
        conn->received_ms = fgw_loop_now_ms(conn->client->loop);
        conn->silent_since_ms = conn->received_ms;
    }
}

static void read_until_closed(struct cql_conn *conn)
{
    while (conn->state != CQL_CONN_CLOSED) {
        struct fgw_cql_response *response = NULL;
        struct fgw_error error = {0};
        enum fgw_err err = fgw_cql_conn_read_response(conn, 0, &response, &error);
        if (err != FGW_OK) {
            fgw_cql_conn_close(conn, err, fgw_error_message(&error));
            return;
        }
        FGW_CHECK(response != NULL);
        dispatch(conn, response);
    }
}

/* -- writing ---------------------------------------------------------------------------------- */

static void recycle(struct fgw_buf *buf)
{
    if (buf->cap > OUT_KEEP) {
        fgw_buf_deinit(buf);
    } else {
        fgw_buf_clear(buf);
    }
}

static void writer_main(void *arg)
{
    struct cql_conn *conn = arg;
    while (conn->state != CQL_CONN_CLOSED) {
        if (conn->out.len == 0) {
            fgw_wait_init(&conn->writer_wait, 1);
            conn->writer_idle = true;
            fgw_wait_for(&conn->writer_wait);
            continue;
        }
        struct fgw_buf taken = conn->out;
        conn->out = conn->sending;
        conn->sending = taken;
        conn->handed_bytes += taken.len;
        bool was_full = taken.len >= FGW_CQL_OUT_MAX;
        if (fgw_cql_transport_write(conn->transport, fgw_buf_bytes(&conn->sending)) != FGW_OK) {
            fgw_cql_conn_close(conn, FGW_ERR_IO, "the connection broke while sending");
        }
        recycle(&conn->sending);
        if (was_full) {
            fgw_cql_client_wake_all(conn->client);
        }
    }
    conn->writer_gone = true;
    if (conn->closed_wait != NULL) {
        fgw_wait_signal(conn->closed_wait);
    }
    struct fgw_cql_client *client = conn->client;
    fgw_cql_conn_unref(conn);
    fgw_cql_client_fiber_ended(client);
}

/* -- life ------------------------------------------------------------------------------------- */

enum fgw_err fgw_cql_conn_open(struct cql_conn *conn, struct fgw_error *error)
{
    struct fgw_cql_client *client = conn->client;
    uint64_t deadline_ms = fgw_loop_now_ms(client->loop) + FGW_CQL_CONNECT_MS;
    char address[FGW_CQL_HOST_SIZE];
    enum fgw_err err = fgw_cql_transport_open(client->config, &conn->node->contact, deadline_ms,
                                              &conn->transport, address, error);
    if (err == FGW_OK) {
        memcpy(conn->node->address, address, sizeof address);
        err = fgw_cql_handshake(conn, deadline_ms, error);
    }
    if (err == FGW_OK && client->closing) {
        err = fgw_error_set(error, FGW_ERR_CANCELLED, "the client is being closed");
    }
    if (err != FGW_OK) {
        fgw_cql_transport_close(conn->transport);
        conn->transport = NULL;
        conn->state = CQL_CONN_CLOSED;
        return err;
    }
    conn->state = CQL_CONN_READY;
    conn->received_ms = fgw_loop_now_ms(client->loop);
    conn->silent_since_ms = conn->received_ms;
    client->counters.connects++;
    return FGW_OK;
}

void fgw_cql_conn_run(struct cql_conn *conn)
{
    fgw_cql_client_spawn(conn->client, writer_main, fgw_cql_conn_ref(conn));
    read_until_closed(conn);
    if (!conn->writer_gone) {
        struct fgw_wait wait;
        fgw_wait_init(&wait, 1);
        conn->closed_wait = &wait;
        fgw_wait_for(&wait);
        conn->closed_wait = NULL;
    }
    fgw_cql_transport_close(conn->transport);
    conn->transport = NULL;
}

void fgw_cql_conn_close(struct cql_conn *conn, enum fgw_err err, const char *reason)
{
    if (conn->state != CQL_CONN_READY) {
        return;
    }
    conn->state = CQL_CONN_CLOSED;
    conn->close_err = err;
    (void)snprintf(conn->reason, sizeof conn->reason, "%s", reason);
    conn->client->counters.disconnects++;
    fgw_list_remove(&conn->node_link);
    conn->node->conn_count--;
    for (int stream = 0; stream < FGW_CQL_STREAMS; stream++) {
        struct cql_request *request = conn->slots[stream].request;
        if (request != NULL) {
            conn->slots[stream].request = NULL;
            request->never_sent = request->start_offset >= conn->handed_bytes;
            leave_flight(conn);
            complete(request, FGW_ERR_IO, NULL);
        }
    }
    fgw_cql_transport_break(conn->transport);
    if (conn->writer_idle) {
        conn->writer_idle = false;
        fgw_wait_signal(&conn->writer_wait);
    }
}

/* Asks for a sign of life; nobody waits for the answer, which frees the stream when it comes. */
static void send_probe(struct cql_conn *conn, uint64_t now_ms)
{
    if (conn->free_count == 0) {
        return;
    }
    int16_t stream = conn->free_streams[--conn->free_count];
    conn->slots[stream] = (struct cql_slot){.taken = true};
    conn->quarantined++;
    conn->probe_stream = stream;
    conn->probe_ms = now_ms;
    fgw_cql_encode_options(&conn->out, stream);
    fgw_cql_conn_send(conn);
}

void fgw_cql_conn_tick(struct cql_conn *conn, uint64_t now_ms)
{
    if (conn->probe_ms != 0 && conn->received_ms >= conn->probe_ms) {
        conn->probe_ms = 0;
    }
    uint64_t limit_ms = conn->in_flight > 0 ? BUSY_PROBE_MS : IDLE_PROBE_MS;
    if (conn->probe_ms != 0) {
        if (now_ms - conn->probe_ms >= PROBE_TIMEOUT_MS) {
            fgw_cql_conn_close(conn, FGW_ERR_TIMEOUT, "the server does not answer any more");
        }
    } else if (now_ms - conn->silent_since_ms >= limit_ms) {
        send_probe(conn, now_ms);
    }
}
