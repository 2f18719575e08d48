/* client.c: the connections of a client. Kept ones are watched without a fiber: they close when the
 * server closes them or after the idle time. */
#include "http/client_internal.h"

#include "net/connect.h"
#include "net/tls.h"

enum { MAX_IDLE = 16, IDLE_TIMEOUT_MS = 30 * 1000, CONNECT_TIMEOUT_MS = 5 * 1000 };

struct idle_conn {
    struct fgw_list node;
    struct fgw_http_client *client;
    struct fgw_conn *conn;
};

struct fgw_http_client *fgw_http_client_new(const struct fgw_http_client_options *options)
{
    struct fgw_http_client *client = fgw_xcalloc(1, sizeof *client);
    bool is_unix = strncmp(options->address, "unix:", 5) == 0;
    client->options = *options;
    client->address = fgw_xstrdup(options->address);
    client->host = fgw_xstrdup(options->host != NULL ? options->host
                               : is_unix             ? "localhost"
                                                     : options->address);
    client->tls_name = options->tls_name == NULL ? NULL : fgw_xstrdup(options->tls_name);
    if (options->tls != NULL) {
        (void)fgw_tls_ref(options->tls);
    }
    client->options.max_idle = options->max_idle == 0 ? MAX_IDLE : options->max_idle;
    client->options.idle_timeout_ms =
        options->idle_timeout_ms == 0 ? IDLE_TIMEOUT_MS : options->idle_timeout_ms;
    client->options.connect_timeout_ms =
        options->connect_timeout_ms == 0 ? CONNECT_TIMEOUT_MS : options->connect_timeout_ms;
    client->loop = fgw_loop_current();
    fgw_list_init(&client->idle);
    return client;
}

static struct fgw_conn *release(struct idle_conn *idle)
{
    struct fgw_conn *conn = idle->conn;
    fgw_list_remove(&idle->node);
    idle->client->idle_count--;
    fgw_conn_watch(conn, NULL, NULL);
    fgw_conn_set_read_deadline(conn, FGW_CONN_NO_DEADLINE);
    fgw_xfree(idle);
    return conn;
}

/* Closed by the server, something unasked from it, or too old. */
static void on_idle_event(void *arg, enum fgw_conn_event event)
{
    (void)event;
    fgw_conn_close(release(arg));
}

void fgw_http_client_free(struct fgw_http_client *client)
{
    if (client == NULL) {
        return;
    }
    FGW_CHECK(client->open_calls == 0);
    while (!fgw_list_empty(&client->idle)) {
        fgw_conn_close(release(FGW_CONTAINER_OF(client->idle.next, struct idle_conn, node)));
    }
    fgw_tls_unref(client->options.tls);
    fgw_xfree(client->address);
    fgw_xfree(client->host);
    fgw_xfree(client->tls_name);
    fgw_xfree(client);
}

void fgw_http_client_keep(struct fgw_http_client *client, struct fgw_conn *conn)
{
    if (client->idle_count >= client->options.max_idle || fgw_conn_is_broken(conn) ||
        fgw_conn_has_buffered(conn)) {
        fgw_conn_close(conn);
        return;
    }
    struct idle_conn *idle = fgw_xcalloc(1, sizeof *idle);
    idle->client = client;
    idle->conn = conn;
    fgw_list_push_front(&client->idle, &idle->node);
    client->idle_count++;
    fgw_conn_set_read_deadline(conn,
                               fgw_loop_now_ms(client->loop) + client->options.idle_timeout_ms);
    fgw_conn_watch(conn, on_idle_event, idle);
}

/* The loop may not have seen yet that the server closed it. */
static bool is_alive(struct fgw_conn *conn)
{
    uint8_t byte;
    size_t got;
    return fgw_conn_try_read(conn, &byte, 1, &got) == FGW_ERR_AGAIN;
}

enum fgw_err fgw_http_client_take(struct fgw_http_client *client, bool fresh_only,
                                  uint64_t deadline_ms, struct fgw_conn **out_conn,
                                  bool *out_reused, struct fgw_error *error)
{
    FGW_CHECK(client->loop == fgw_loop_current());
    while (!fresh_only && !fgw_list_empty(&client->idle)) {
        struct fgw_conn *conn =
            release(FGW_CONTAINER_OF(client->idle.next, struct idle_conn, node));
        if (is_alive(conn)) {
            *out_conn = conn;
            *out_reused = true;
            return FGW_OK;
        }
        fgw_conn_close(conn);
    }
    uint64_t connect_by_ms = fgw_loop_now_ms(client->loop) + client->options.connect_timeout_ms;
    struct fgw_connect_options options = {
        .address = client->address,
        .deadline_ms = deadline_ms < connect_by_ms ? deadline_ms : connect_by_ms,
        .tls = client->options.tls,
        .tls_name = client->tls_name,
    };
    *out_reused = false;
    return fgw_connect(&options, out_conn, error);
}
