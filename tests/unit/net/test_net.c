/* test_net.c: addresses, listeners, connections by fiber and by callback, deadlines, TLS both ways,
 * outgoing connections. Everything on 127.0.0.1 and on one loop. */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "event/fiber.h"
#include "net/address.h"
#include "net/conn.h"
#include "net/connect.h"
#include "net/listener.h"
#include "net/tls.h"

/* -- addresses --------------------------------------------------------------------------------- */

static void endpoints_are_parsed(void **state)
{
    static const struct {
        const char *text;
        const char *host; /* NULL: refused */
        unsigned port;
        bool is_unix;
    } rows[] = {
        {"127.0.0.1:8078", "127.0.0.1", 8078, false},
        {"[::1]:0", "::1", 0, false},
        {":8078", "", 8078, false},
        {"*:1", "", 1, false},
        {"db-1.example:9042", "db-1.example", 9042, false},
        {"unix:/run/x.sock", "/run/x.sock", 0, true},
        {"unix:", NULL, 0, false},
        {"127.0.0.1", NULL, 0, false},
        {"127.0.0.1:", NULL, 0, false},
        {"127.0.0.1:65536", NULL, 0, false},
        {"127.0.0.1:-1", NULL, 0, false},
        {"127.0.0.1:080780", NULL, 0, false},
        {"::1:80", NULL, 0, false},
        {"", NULL, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < FGW_COUNT_OF(rows); i++) {
        struct fgw_endpoint endpoint;
        enum fgw_err err = fgw_endpoint_parse(fgw_bytes_str(rows[i].text), &endpoint);
        assert_int_equal(err, rows[i].host == NULL ? FGW_ERR_PARSE : FGW_OK);
        if (err == FGW_OK) {
            assert_string_equal(endpoint.host, rows[i].host);
            assert_int_equal(endpoint.port, rows[i].port);
            assert_int_equal(endpoint.is_unix, rows[i].is_unix);
        }
    }
}

static uint16_t port_of(const struct fgw_listener *listener)
{
    struct fgw_endpoint endpoint;
    assert_int_equal(fgw_endpoint_parse(fgw_bytes_str(fgw_listener_address(listener)), &endpoint),
                     FGW_OK);
    return endpoint.port;
}

static struct fgw_listener *listen_anywhere(void)
{
    struct fgw_listener *listener = NULL;
    assert_int_equal(fgw_listener_open("127.0.0.1:0", &listener, NULL), FGW_OK);
    return listener;
}

/* Another holder, with SO_REUSEPORT, in every relation of addresses. */
static void taken_ports_are_noticed(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "0.0.0.0", "", "[::]", "localhost"};
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    for (size_t i = 0; i < FGW_COUNT_OF(hosts); i++) {
        char text[64];
        char pid[32];
        struct fgw_listener *listener = NULL;
        struct fgw_error error = {0};
        (void)snprintf(text, sizeof text, "%s:%u", hosts[i], ntohs(address.sin_port));
        (void)snprintf(pid, sizeof pid, "(pid %d)", getpid());
        assert_int_equal(fgw_listener_open(text, &listener, &error), FGW_ERR_IN_USE);
        assert_non_null(strstr(fgw_error_message(&error), pid));
    }
    (void)close(fd);
}

static void own_listeners_exclude_each_other(void **state)
{
    char text[64];
    struct fgw_listener *second = NULL;
    struct fgw_error error = {0};
    (void)state;
    struct fgw_listener *first = listen_anywhere();
    (void)snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)port_of(first));
    fgw_listener_close(first);
    assert_int_equal(fgw_listener_open(text, &first, NULL), FGW_OK);
    assert_int_equal(fgw_listener_open(text, &second, &error), FGW_ERR_IN_USE);
    assert_non_null(strstr(fgw_error_message(&error), text));
    fgw_listener_close(first);
    assert_int_equal(fgw_listener_open(text, &second, NULL), FGW_OK);
    fgw_listener_close(second);
}

static void bad_addresses_are_told_apart(void **state)
{
    struct fgw_listener *listener = NULL;
    struct fgw_error error = {0};
    (void)state;
    assert_int_equal(fgw_listener_open("nonsense", &listener, &error), FGW_ERR_CONFIG);
    assert_int_equal(fgw_listener_open("192.0.2.1:0", &listener, &error), FGW_ERR_CONFIG);
    assert_non_null(strstr(fgw_error_message(&error), "192.0.2.1"));
    assert_int_equal(fgw_listener_open("unix:/nonexistent/x", &listener, &error), FGW_ERR_IO);
}

/* -- connections ------------------------------------------------------------------------------- */

struct pair {
    struct fgw_conn *left;
    struct fgw_conn *right;
};

static struct pair new_pair(void)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    struct fgw_loop *loop = fgw_loop_current();
    struct pair pair = {fgw_conn_new(loop, fds[0]), fgw_conn_new(loop, fds[1])};
    assert_true(pair.left != NULL && pair.right != NULL);
    return pair;
}

static void close_pair(struct pair *pair)
{
    fgw_conn_close(pair->left);
    fgw_conn_close(pair->right);
}

enum { LARGE_SIZE = 3 * 1024 * 1024 };

struct transfer {
    struct fgw_conn *conn;
    struct fgw_bytes bytes;
    struct fgw_wait done;
    enum fgw_err err;
};

static void write_all(void *arg)
{
    struct transfer *transfer = arg;
    transfer->err = fgw_conn_write(transfer->conn, transfer->bytes);
    fgw_wait_signal(&transfer->done);
}

static void read_and_compare(struct fgw_conn *conn, struct fgw_bytes expected)
{
    uint8_t *seen = fgw_xmalloc(expected.len);
    assert_int_equal(fgw_conn_read_exact(conn, seen, expected.len), FGW_OK);
    assert_memory_equal(seen, expected.ptr, expected.len);
    fgw_xfree(seen);
}

/* Both directions at once, far more than the socket's buffers. */
static void exchange_large(struct pair *pair)
{
    uint8_t *bytes = fgw_xmalloc(LARGE_SIZE);
    fgw_rng_fill(bytes, LARGE_SIZE);
    struct transfer there = {.conn = pair->left, .bytes = fgw_bytes(bytes, LARGE_SIZE)};
    struct transfer back = {.conn = pair->right, .bytes = fgw_bytes(bytes, LARGE_SIZE / 2)};
    fgw_wait_init(&there.done, 1);
    fgw_wait_init(&back.done, 1);
    fgw_fiber_spawn(fgw_loop_current(), write_all, &there);
    fgw_fiber_spawn(fgw_loop_current(), write_all, &back);
    read_and_compare(pair->right, there.bytes);
    read_and_compare(pair->left, back.bytes);
    fgw_wait_for(&there.done);
    fgw_wait_for(&back.done);
    assert_int_equal(there.err, FGW_OK);
    assert_int_equal(back.err, FGW_OK);
    assert_true(fgw_conn_bytes_out(pair->left) >= LARGE_SIZE);
    fgw_xfree(bytes);
}

static void transfer_fiber(void *arg)
{
    struct pair pair = new_pair();
    uint8_t byte;
    size_t len = 0;
    (void)arg;
    exchange_large(&pair);
    assert_int_equal(fgw_conn_try_read(pair.left, &byte, 1, &len), FGW_ERR_AGAIN);
    fgw_conn_unread(pair.left, FGW_LIT("bc"));
    fgw_conn_unread(pair.left, FGW_LIT("a"));
    assert_true(fgw_conn_has_buffered(pair.left));
    read_and_compare(pair.left, FGW_LIT("abc"));
    assert_false(fgw_conn_has_buffered(pair.left));
    fgw_conn_shutdown_write(pair.right);
    assert_int_equal(fgw_conn_read(pair.left, &byte, 1, &len), FGW_ERR_END);
    assert_int_equal(fgw_conn_write(pair.left, FGW_LIT("still")), FGW_OK);
    read_and_compare(pair.right, FGW_LIT("still"));
    fgw_conn_close(pair.right);
    assert_int_equal(fgw_conn_write(pair.left, FGW_LIT("x")), FGW_ERR_CLIENT_GONE);
    fgw_conn_close(pair.left);
}

static void fibers_read_and_write(void **state)
{
    (void)state;
    fgw_fiber_run_alone(transfer_fiber, NULL);
}

static void breaker_fiber(void *arg)
{
    fgw_fiber_sleep_ms(20);
    fgw_conn_break(arg);
}

static void deadline_fiber(void *arg)
{
    struct pair pair = new_pair();
    uint8_t *bytes = fgw_xcalloc(1, LARGE_SIZE);
    uint8_t byte;
    size_t len;
    struct fgw_loop *loop = fgw_loop_current();
    (void)arg;
    uint64_t begun_ms = fgw_loop_now_ms(loop);
    fgw_conn_set_read_deadline(pair.left, begun_ms + 50);
    assert_int_equal(fgw_conn_read(pair.left, &byte, 1, &len), FGW_ERR_TIMEOUT);
    assert_true(fgw_loop_now_ms(loop) >= begun_ms + 50);
    assert_true(fgw_loop_now_ms(loop) < begun_ms + 50 + 5 * FGW_CONN_SWEEP_MS);
    assert_int_equal(fgw_conn_write(pair.right, FGW_LIT("x")), FGW_OK);
    assert_int_equal(fgw_conn_read(pair.left, &byte, 1, &len), FGW_OK);
    fgw_conn_set_write_stall(pair.left, 50, 1);
    assert_int_equal(fgw_conn_write(pair.left, fgw_bytes(bytes, LARGE_SIZE)), FGW_ERR_TIMEOUT);
    fgw_conn_set_read_deadline(pair.left, FGW_CONN_NO_DEADLINE);
    fgw_fiber_spawn(loop, breaker_fiber, pair.left);
    assert_int_equal(fgw_conn_read(pair.left, &byte, 1, &len), FGW_ERR_CLIENT_GONE);
    assert_int_equal(fgw_conn_read(pair.left, &byte, 1, &len), FGW_ERR_CLIENT_GONE);
    assert_int_equal(fgw_conn_write(pair.left, FGW_LIT("x")), FGW_ERR_CLIENT_GONE);
    fgw_xfree(bytes);
    close_pair(&pair);
}

static void waits_end_by_deadline_stall_and_break(void **state)
{
    (void)state;
    fgw_fiber_run_alone(deadline_fiber, NULL);
}

struct watched {
    struct fgw_conn *conn;
    struct fgw_wait wait;
    unsigned readable;
    unsigned deadlines;
};

static void on_watched(void *arg, enum fgw_conn_event event)
{
    struct watched *watched = arg;
    char bytes[16];
    size_t len;
    if (event == FGW_CONN_DEADLINE) {
        watched->deadlines++;
        fgw_conn_close(watched->conn); /* from within its own callback */
    } else {
        assert_int_equal(fgw_conn_try_read(watched->conn, bytes, sizeof bytes, &len), FGW_OK);
        watched->readable++;
    }
    fgw_wait_signal(&watched->wait);
}

static void watch_fiber(void *arg)
{
    struct pair pair = new_pair();
    struct watched watched = {.conn = pair.left};
    (void)arg;
    fgw_conn_watch(pair.left, on_watched, &watched);
    for (int i = 0; i < 3; i++) {
        fgw_wait_init(&watched.wait, 1);
        assert_int_equal(fgw_conn_write(pair.right, FGW_LIT("x")), FGW_OK);
        fgw_wait_for(&watched.wait);
    }
    fgw_conn_watch(pair.left, NULL, NULL);
    assert_int_equal(fgw_conn_write(pair.right, FGW_LIT("y")), FGW_OK);
    fgw_fiber_sleep_ms(20); /* nobody is interested: disarmed, not lost */
    assert_int_equal(watched.readable, 3);
    fgw_wait_init(&watched.wait, 1);
    fgw_conn_watch(pair.left, on_watched, &watched);
    fgw_wait_for(&watched.wait);
    assert_int_equal(watched.readable, 4);
    fgw_wait_init(&watched.wait, 1);
    fgw_conn_set_read_deadline(pair.left, fgw_loop_now_ms(fgw_loop_current()) + 10);
    fgw_wait_for(&watched.wait);
    assert_int_equal(watched.deadlines, 1);
    fgw_conn_close(pair.right);
}

static void callbacks_watch_without_a_fiber(void **state)
{
    (void)state;
    fgw_fiber_run_alone(watch_fiber, NULL);
}

static void send_file_fiber(void *arg)
{
    struct pair pair = new_pair();
    char name[] = "/tmp/fgw-net-XXXXXX";
    int fd = mkstemp(name);
    uint8_t *bytes = fgw_xmalloc(LARGE_SIZE);
    (void)arg;
    (void)unlink(name);
    fgw_rng_fill(bytes, LARGE_SIZE);
    assert_int_equal(write(fd, bytes, LARGE_SIZE), LARGE_SIZE);
    assert_int_equal(fgw_conn_send_file(pair.left, fd, 5, 1000), FGW_OK);
    read_and_compare(pair.right, fgw_bytes(bytes + 5, 1000));
    assert_int_equal(fgw_conn_send_file(pair.left, fd, LARGE_SIZE - 10, 20), FGW_ERR_IO);
    assert_true(fgw_conn_is_broken(pair.left));
    (void)close(fd);
    fgw_xfree(bytes);
    close_pair(&pair);
}

static void files_are_sent(void **state)
{
    (void)state;
    fgw_fiber_run_alone(send_file_fiber, NULL);
}

/* -- outgoing ---------------------------------------------------------------------------------- */

static struct fgw_conn *accept_one(struct fgw_listener *listener)
{
    for (;;) {
        int fd = accept4(fgw_listener_fd(listener), NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            return fgw_conn_new(fgw_loop_current(), fd);
        }
        assert_int_equal(errno, EAGAIN);
        fgw_fiber_sleep_ms(1);
    }
}

static enum fgw_err connect_to(const char *address, uint64_t limit_ms, struct fgw_conn **out_conn,
                               struct fgw_error *error)
{
    struct fgw_connect_options options = {
        .address = address, .deadline_ms = fgw_loop_now_ms(fgw_loop_current()) + limit_ms};
    return fgw_connect(&options, out_conn, error);
}

static void connect_fiber(void *arg)
{
    struct fgw_listener *listener = listen_anywhere();
    struct fgw_error error = {0};
    struct pair pair;
    char text[64];
    (void)arg;
    (void)snprintf(text, sizeof text, "localhost:%u", port_of(listener));
    assert_int_equal(connect_to(text, 5000, &pair.left, &error), FGW_OK);
    pair.right = accept_one(listener);
    exchange_large(&pair);
    close_pair(&pair);
    (void)snprintf(text, sizeof text, "%s", fgw_listener_address(listener));
    fgw_listener_close(listener);
    assert_int_equal(connect_to(text, 5000, &pair.left, &error), FGW_ERR_UNAVAILABLE);
    assert_non_null(strstr(fgw_error_message(&error), text));
    assert_int_equal(connect_to("no-such-name.invalid:1", 5000, &pair.left, &error),
                     FGW_ERR_NOT_FOUND);
    assert_int_equal(connect_to("unix:/nonexistent", 5000, &pair.left, &error),
                     FGW_ERR_UNAVAILABLE);
    assert_int_equal(connect_to("nonsense", 5000, &pair.left, &error), FGW_ERR_CONFIG);
}

static void connections_are_made(void **state)
{
    (void)state;
    fgw_fiber_run_alone(connect_fiber, NULL);
}

/* -- TLS --------------------------------------------------------------------------------------- */

static char tls_folder[] = "/tmp/fgw-tls-XXXXXX";
static char cert_path[64];
static char key_path[64];

static int make_certificate(void **state)
{
    char command[400];
    (void)state;
    assert_non_null(mkdtemp(tls_folder));
    (void)snprintf(cert_path, sizeof cert_path, "%s/cert.pem", tls_folder);
    (void)snprintf(key_path, sizeof key_path, "%s/key.pem", tls_folder);
    (void)snprintf(command, sizeof command,
                   "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
                   "subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout %s -out %s 2>/dev/null",
                   key_path, cert_path);
    return system(command);
}

static int remove_certificate(void **state)
{
    (void)state;
    (void)unlink(cert_path);
    (void)unlink(key_path);
    return rmdir(tls_folder);
}

struct shake {
    struct fgw_conn *conn;
    struct fgw_tls_context *context;
    struct fgw_wait done;
    enum fgw_err err;
};

static void server_handshake(void *arg)
{
    struct shake *shake = arg;
    shake->err = fgw_conn_start_tls_server(shake->conn, shake->context);
    fgw_wait_signal(&shake->done);
}

static enum fgw_err shake_hands(struct pair *pair, struct fgw_tls_context *server,
                                struct fgw_tls_context *client, const char *name,
                                struct fgw_error *error)
{
    struct shake shake = {.conn = pair->right, .context = server};
    fgw_wait_init(&shake.done, 1);
    fgw_fiber_spawn(fgw_loop_current(), server_handshake, &shake);
    enum fgw_err err = fgw_conn_start_tls_client(pair->left, client, name, error);
    fgw_wait_for(&shake.done);
    return err;
}

static void tls_fiber(void *arg)
{
    struct fgw_tls_context *server = NULL;
    struct fgw_tls_context *client = NULL;
    struct fgw_error error = {0};
    uint8_t byte;
    size_t len;
    (void)arg;
    assert_int_equal(fgw_tls_server_new(cert_path, key_path, &server, &error), FGW_OK);
    assert_int_equal(fgw_tls_client_new(cert_path, &client, &error), FGW_OK);
    struct pair pair = new_pair();
    assert_int_equal(shake_hands(&pair, server, client, "localhost", &error), FGW_OK);
    assert_true(fgw_conn_is_tls(pair.left));
    exchange_large(&pair);
    fgw_conn_shutdown_write(pair.right);
    assert_int_equal(fgw_conn_read(pair.left, &byte, 1, &len), FGW_ERR_END);
    close_pair(&pair);

    pair = new_pair();
    assert_int_equal(shake_hands(&pair, server, client, "127.0.0.1", &error), FGW_OK);
    close_pair(&pair);

    pair = new_pair();
    assert_int_equal(shake_hands(&pair, server, client, "other.example", &error),
                     FGW_ERR_CLIENT_GONE);
    assert_non_null(strstr(fgw_error_message(&error), "ostname mismatch"));
    close_pair(&pair);
    fgw_tls_unref(server);
    fgw_tls_unref(client);
}

static void tls_encrypts_and_verifies(void **state)
{
    (void)state;
    fgw_fiber_run_alone(tls_fiber, NULL);
}

static void wrong_files_are_named(void **state)
{
    struct fgw_tls_context *context = NULL;
    struct fgw_error error = {0};
    (void)state;
    assert_int_equal(fgw_tls_server_new("/nonexistent.pem", key_path, &context, &error),
                     FGW_ERR_CONFIG);
    assert_non_null(strstr(fgw_error_message(&error), "/nonexistent.pem"));
    assert_int_equal(fgw_tls_server_new(cert_path, cert_path, &context, &error), FGW_ERR_CONFIG);
    assert_int_equal(fgw_tls_client_new(key_path, &context, &error), FGW_ERR_CONFIG);
    assert_int_equal(fgw_tls_client_new(NULL, &context, &error), FGW_OK);
    fgw_tls_unref(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_are_parsed),
        cmocka_unit_test(taken_ports_are_noticed),
        cmocka_unit_test(own_listeners_exclude_each_other),
        cmocka_unit_test(bad_addresses_are_told_apart),
        cmocka_unit_test(fibers_read_and_write),
        cmocka_unit_test(waits_end_by_deadline_stall_and_break),
        cmocka_unit_test(callbacks_watch_without_a_fiber),
        cmocka_unit_test(files_are_sent),
        cmocka_unit_test(connections_are_made),
        cmocka_unit_test(tls_encrypts_and_verifies),
        cmocka_unit_test(wrong_files_are_named),
    };
    return cmocka_run_group_tests(tests, make_certificate, remove_certificate);
}
