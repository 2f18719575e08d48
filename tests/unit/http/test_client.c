/* test_client.c: the client against the server of the same process (one worker), over TCP and a
 * Unix socket, and against a scripted peer for what our server never does. */
#include "cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "event/fiber.h"
#include "event/workers.h"
#include "http/client.h"
#include "http/server.h"
#include "net/conn.h"
#include "net/listener.h"

enum { LARGE_SIZE = 2 * 1024 * 1024 };

/* -- a server that sends back what it gets ------------------------------------------------------ */

static void echo(struct fgw_http_exchange *exchange)
{
    struct fgw_bytes piece;
    enum fgw_err err;
    fgw_http_response_start(exchange, 200, FGW_HTTP_LENGTH_UNKNOWN);
    fgw_http_response_header(exchange, "X-Method", fgw_http_request(exchange)->method_text);
    while ((err = fgw_http_body_read(exchange, &piece)) == FGW_OK) {
        if (fgw_http_response_write(exchange, piece) != FGW_OK) {
            return;
        }
    }
    if (err == FGW_ERR_END) {
        (void)fgw_http_response_end(exchange);
    }
}

static void handle(void *context, struct fgw_http_exchange *exchange)
{
    struct fgw_bytes path = fgw_http_request(exchange)->raw_path;
    (void)context;
    if (fgw_bytes_eq_str(path, "/refuse")) {
        (void)fgw_http_respond(exchange, 403, "text/plain", FGW_LIT("no"));
    } else if (fgw_bytes_eq_str(path, "/sleep")) {
        fgw_fiber_sleep_ms(2000);
        (void)fgw_http_respond(exchange, 200, NULL, FGW_LIT("late"));
    } else if (fgw_bytes_eq_str(path, "/host")) {
        (void)fgw_http_respond(exchange, 200, NULL, fgw_http_request(exchange)->host);
    } else if (fgw_bytes_eq_str(path, "/break")) {
        fgw_http_response_start(exchange, 200, 10);
        (void)fgw_http_response_write(exchange, FGW_LIT("half"));
        (void)fgw_http_response_flush(exchange);
    } else {
        echo(exchange);
    }
}

struct fixture {
    struct fgw_workers *workers;
    struct fgw_http_server *server;
    char unix_address[64];
};

static int start_server(void **state)
{
    static struct fixture fixture;
    (void)snprintf(fixture.unix_address, sizeof fixture.unix_address, "unix:/tmp/fgw-client-%d",
                   getpid());
    const char *addresses[] = {"127.0.0.1:0", fixture.unix_address};
    fixture.workers = fgw_workers_start(1, NULL, NULL);
    struct fgw_http_server_options options = {.addresses = addresses,
                                              .address_count = 2,
                                              .workers = fixture.workers,
                                              .handler = handle,
                                              .max_header_bytes = 32768,
                                              .header_timeout_ms = 5000,
                                              .first_byte_timeout_ms = 5000,
                                              .idle_timeout_ms = 400,
                                              .max_connections = 100,
                                              .conn_inflight_bytes = 1 << 20};
    *state = &fixture;
    return fgw_http_server_start(&options, &fixture.server, NULL) == FGW_OK ? 0 : -1;
}

static int stop_server(void **state)
{
    struct fixture *fixture = *state;
    fgw_http_server_stop(fixture->server, 1000);
    fgw_http_server_free(fixture->server);
    fgw_workers_stop(fixture->workers);
    return 0;
}

static uint64_t accepted(struct fixture *fixture)
{
    struct fgw_http_server_stats stats;
    fgw_http_server_stats(fixture->server, &stats);
    return stats.accepted;
}

static struct fgw_http_client *new_client(const char *address)
{
    struct fgw_http_client_options options = {.address = address};
    return fgw_http_client_new(&options);
}

static enum fgw_err fetch(struct fgw_http_client *client, const char *method, const char *target,
                          struct fgw_bytes body, int *out_status, struct fgw_buf *out)
{
    struct fgw_http_call_options options = {.method = method,
                                            .target = fgw_bytes_str(target),
                                            .deadline_ms =
                                                fgw_loop_now_ms(fgw_loop_current()) + 5000};
    fgw_buf_clear(out);
    return fgw_http_fetch(client, &options, body, out_status, out, NULL);
}

/* -- tests in fibers ---------------------------------------------------------------------------- */

static void fetch_on(struct fixture *fixture, const char *address)
{
    struct fgw_http_client *client = new_client(address);
    struct fgw_buf out;
    int status = 0;
    fgw_buf_init(&out, 1 << 20);
    uint64_t before = accepted(fixture);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(fetch(client, "PUT", "/echo?x", FGW_LIT("hello"), &status, &out), FGW_OK);
        assert_int_equal(status, 200);
        assert_true(fgw_bytes_eq_str(fgw_buf_bytes(&out), "hello"));
    }
    assert_int_equal(fetch(client, "HEAD", "/host", fgw_bytes(NULL, 0), &status, &out), FGW_OK);
    assert_int_equal(out.len, 0);
    assert_int_equal(fetch(client, "GET", "/refuse", fgw_bytes(NULL, 0), &status, &out), FGW_OK);
    assert_int_equal(status, 403);
    assert_int_equal(accepted(fixture), before + 1);
    /* the server closes idle connections after 400 ms: noticed, not an error */
    fgw_fiber_sleep_ms(1200);
    assert_int_equal(fetch(client, "GET", "/host", fgw_bytes(NULL, 0), &status, &out), FGW_OK);
    assert_int_equal(accepted(fixture), before + 2);
    fgw_buf_deinit(&out);
    fgw_http_client_free(client);
}

static void fetch_fiber(void *arg)
{
    struct fixture *fixture = arg;
    fetch_on(fixture, fgw_http_server_address(fixture->server, 0));
    fetch_on(fixture, fixture->unix_address);
}

static void whole_requests(void **state)
{
    fgw_fiber_run_alone(fetch_fiber, *state);
}

static void stream(struct fgw_http_client *client, int64_t content_length)
{
    struct fgw_http_header header = {FGW_LIT("X-Extra"), FGW_LIT("1")};
    struct fgw_http_call_options options = {.method = "POST",
                                            .target = FGW_LIT("/echo"),
                                            .headers = &header,
                                            .header_count = 1,
                                            .content_length = content_length};
    struct fgw_http_call *call;
    struct fgw_http_answer answer;
    struct fgw_bytes piece;
    uint8_t *bytes = fgw_xmalloc(LARGE_SIZE);
    size_t seen = 0;
    enum fgw_err err;
    memset(bytes, 'b', LARGE_SIZE);
    assert_int_equal(fgw_http_call_begin(client, &options, &call, NULL), FGW_OK);
    /* less than the sockets hold: the echo comes back only as we read */
    for (size_t at = 0; at < 128 * 1024; at += 16 * 1024) {
        assert_int_equal(fgw_http_call_write(call, fgw_bytes(bytes + at, 16 * 1024)), FGW_OK);
    }
    assert_int_equal(fgw_http_call_answer(call, &answer), FGW_OK);
    assert_int_equal(answer.status, 200);
    assert_true(answer.header_count >= 3);
    while ((err = fgw_http_call_read(call, &piece)) == FGW_OK) {
        assert_memory_equal(piece.ptr, bytes + seen, piece.len);
        seen += piece.len;
    }
    assert_int_equal(err, FGW_ERR_END);
    assert_int_equal(fgw_http_call_read(call, &piece), FGW_ERR_END);
    assert_int_equal(seen, 128 * 1024);
    fgw_http_call_end(call);
    fgw_xfree(bytes);
}

static void stream_fiber(void *arg)
{
    struct fixture *fixture = arg;
    struct fgw_http_client *client = new_client(fgw_http_server_address(fixture->server, 0));
    stream(client, 128 * 1024);
    stream(client, -1);
    fgw_http_client_free(client);
}

static void bodies_stream_both_ways(void **state)
{
    fgw_fiber_run_alone(stream_fiber, *state);
}

/* An answer that comes although the body is not wanted. */
static void refused_fiber(void *arg)
{
    struct fixture *fixture = arg;
    struct fgw_http_client *client = new_client(fgw_http_server_address(fixture->server, 0));
    struct fgw_buf out;
    uint8_t *bytes = fgw_xcalloc(1, LARGE_SIZE);
    int status = 0;
    fgw_buf_init(&out, 4096);
    assert_int_equal(fetch(client, "PUT", "/refuse", fgw_bytes(bytes, LARGE_SIZE), &status, &out),
                     FGW_OK);
    assert_int_equal(status, 403);
    assert_int_equal(fetch(client, "PUT", "/echo", fgw_bytes(bytes, 8192), &status, &out),
                     FGW_ERR_TOO_LARGE);
    assert_int_equal(fetch(client, "GET", "/break", fgw_bytes(NULL, 0), &status, &out),
                     FGW_ERR_CLIENT_GONE);
    assert_int_equal(fetch(client, "GET", "/a\r\nX: b", fgw_bytes(NULL, 0), &status, &out),
                     FGW_ERR_INVALID_REQUEST);
    struct fgw_http_call_options options = {.method = "GET",
                                            .target = FGW_LIT("/sleep"),
                                            .deadline_ms =
                                                fgw_loop_now_ms(fgw_loop_current()) + 100};
    assert_int_equal(fgw_http_fetch(client, &options, fgw_bytes(NULL, 0), &status, &out, NULL),
                     FGW_ERR_TIMEOUT);
    fgw_xfree(bytes);
    fgw_buf_deinit(&out);
    fgw_http_client_free(client);
}

static void refusals_and_failures(void **state)
{
    fgw_fiber_run_alone(refused_fiber, *state);
}

/* -- a scripted peer ---------------------------------------------------------------------------- */

struct script {
    struct fgw_listener *listener;
    const char *answers[3]; /* one a connection; NULL ends */
    struct fgw_wait done;
};

static void play(void *arg)
{
    struct script *script = arg;
    char request[4096];
    for (size_t i = 0; i < 3 && script->answers[i] != NULL; i++) {
        int fd;
        while ((fd = accept4(fgw_listener_fd(script->listener), NULL, NULL,
                             SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0) {
            fgw_fiber_sleep_ms(1);
        }
        struct fgw_conn *conn = fgw_conn_new(fgw_loop_current(), fd);
        size_t len;
        (void)!fgw_conn_read(conn, request, sizeof request, &len);
        for (const char *at = script->answers[i]; *at != '\0'; at++) {
            (void)!fgw_conn_write(conn, fgw_bytes(at, 1));
            fgw_fiber_yield();
        }
        fgw_conn_close(conn);
    }
    fgw_wait_signal(&script->done);
}

static enum fgw_err ask_script(const char *first, const char *second, struct fgw_buf *out,
                               int *out_status)
{
    struct script script = {.answers = {first, second}};
    assert_int_equal(fgw_listener_open("127.0.0.1:0", &script.listener, NULL), FGW_OK);
    struct fgw_http_client *client = new_client(fgw_listener_address(script.listener));
    fgw_wait_init(&script.done, 1);
    fgw_fiber_spawn(fgw_loop_current(), play, &script);
    enum fgw_err err = fetch(client, "GET", "/", fgw_bytes(NULL, 0), out_status, out);
    if (second != NULL) {
        assert_int_equal(err, FGW_OK);
        err = fetch(client, "GET", "/", fgw_bytes(NULL, 0), out_status, out);
    }
    fgw_wait_for(&script.done);
    fgw_http_client_free(client);
    fgw_listener_close(script.listener);
    return err;
}

static void script_fiber(void *arg)
{
    static const struct {
        const char *answer;
        enum fgw_err err;
        const char *body;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", FGW_OK, "ok"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", FGW_OK,
         "ok"},
        {"HTTP/1.1 200 OK\r\n\r\nuntil close", FGW_OK, "until close"},
        {"HTTP/1.0 200 OK\r\n\r\nold", FGW_OK, "old"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", FGW_OK,
         "abc"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", FGW_ERR_CLIENT_GONE,
         NULL},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", FGW_ERR_PARSE, NULL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok", FGW_ERR_CLIENT_GONE, NULL},
        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nok", FGW_ERR_PARSE,
         NULL},
        {"SSH-2.0-OpenSSH\r\n\r\n", FGW_ERR_PARSE, NULL},
        {"HTTP/1.1 200", FGW_ERR_CLIENT_GONE, NULL},
        {"", FGW_ERR_CLIENT_GONE, NULL},
    };
    struct fgw_buf out;
    int status;
    (void)arg;
    fgw_buf_init(&out, 4096);
    for (size_t i = 0; i < FGW_COUNT_OF(rows); i++) {
        enum fgw_err err = ask_script(rows[i].answer, NULL, &out, &status);
        if (err != rows[i].err) {
            fail_msg("row %zu: %s", i, fgw_err_name(err));
        }
        assert_true(rows[i].body == NULL || fgw_bytes_eq_str(fgw_buf_bytes(&out), rows[i].body));
    }
    /* kept, then closed by the peer: the second request goes over a fresh connection */
    assert_int_equal(ask_script("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1",
                                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2", &out, &status),
                     FGW_OK);
    assert_true(fgw_bytes_eq_str(fgw_buf_bytes(&out), "2"));
    fgw_buf_deinit(&out);
}

static void answers_of_other_servers(void **state)
{
    (void)state;
    fgw_fiber_run_alone(script_fiber, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_requests),
        cmocka_unit_test(bodies_stream_both_ways),
        cmocka_unit_test(refusals_and_failures),
        cmocka_unit_test(answers_of_other_servers),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
