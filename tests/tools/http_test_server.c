/* http_test_server.c: a program around src/http for tests and measurements: each path exercises one
 * thing a handler can do. Prints "listening ADDRESS" for each address, then "ready". SIGHUP loads
 * the certificate again, SIGTERM stops in order. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/encode.h"
#include "base/log.h"
#include "event/fiber.h"
#include "event/workers.h"
#include "http/server.h"
#include "net/conn.h"
#include "net/tls.h"

enum { ADDRESSES_MAX = 8, MEMORY_SIZE = 4096, STOP_GRACE_MS = 3000 };

struct program {
    struct fgw_http_server_options options;
    const char *addresses[ADDRESSES_MAX];
    const char *cert;
    const char *key;
    unsigned threads;
    int file;
    struct fgw_http_server *server;
    struct fgw_loop *loop;
    uint8_t memory[MEMORY_SIZE];
};

typedef void handler_fn(struct program *program, struct fgw_http_exchange *exchange);

static uint64_t query_number(struct fgw_http_exchange *exchange, uint64_t otherwise)
{
    uint64_t value;
    return fgw_bytes_to_u64(fgw_http_request(exchange)->raw_query, &value) == FGW_OK ? value
                                                                                     : otherwise;
}

static void hello(struct program *program, struct fgw_http_exchange *exchange)
{
    (void)program;
    (void)fgw_http_respond(exchange, 200, "text/plain", FGW_LIT("hello\n"));
}

static void from_memory(struct program *program, struct fgw_http_exchange *exchange)
{
    fgw_http_response_header(exchange, "ETag", FGW_LIT("\"d41d8cd98f00b204e9800998ecf8427e\""));
    fgw_http_response_header(exchange, "Last-Modified", FGW_LIT("Mon, 30 Nov 2026 17:00:00 GMT"));
    (void)fgw_http_respond(exchange, 200, "application/octet-stream",
                           fgw_bytes(program->memory, sizeof program->memory));
}

static void from_file(struct program *program, struct fgw_http_exchange *exchange)
{
    uint64_t size = query_number(exchange, MEMORY_SIZE);
    fgw_http_response_start(exchange, 200, (int64_t)size);
    if (fgw_http_response_send_file(exchange, program->file, 0, size) == FGW_OK) {
        (void)fgw_http_response_end(exchange);
    }
}

static void answer_body_error(struct fgw_http_exchange *exchange, enum fgw_err err)
{
    (void)fgw_http_respond(exchange, fgw_err_http_status(err), "text/plain",
                           fgw_bytes_str(fgw_err_s3_code(err)));
}

/* Reads all of the body and answers with its size and hash; with a number as the query, where it can
 * straight to a room of that many bytes. */
static void count(struct program *program, struct fgw_http_exchange *exchange)
{
    size_t room_size = (size_t)query_number(exchange, 0);
    uint8_t *room = fgw_arena_alloc(fgw_http_arena(exchange), room_size + 1);
    struct fgw_digest digest = {0};
    uint8_t hash[FGW_SHA256_SIZE];
    uint64_t size = 0;
    struct fgw_bytes piece;
    enum fgw_err err;
    (void)program;
    fgw_digest_begin(&digest, FGW_DIGEST_SHA256);
    while ((err = fgw_http_body_read_to(exchange, room, room_size, &piece)) == FGW_OK) {
        size += piece.len;
        FGW_CHECK(piece.ptr != room || piece.len <= room_size);
        fgw_digest_update(&digest, piece);
    }
    fgw_digest_end(&digest, hash);
    fgw_digest_deinit(&digest);
    if (err != FGW_ERR_END) {
        answer_body_error(exchange, err);
        return;
    }
    const char *text =
        fgw_arena_printf(fgw_http_arena(exchange), "%llu %s\n", (unsigned long long)size,
                         fgw_hex(fgw_http_arena(exchange), fgw_bytes(hash, sizeof hash)));
    (void)fgw_http_respond(exchange, 200, "text/plain", fgw_bytes_str(text));
}

/* Same without the hash: for measurements. */
static void swallow(struct program *program, struct fgw_http_exchange *exchange)
{
    struct fgw_bytes piece;
    (void)program;
    while (fgw_http_body_read(exchange, &piece) == FGW_OK) {
    }
    (void)fgw_http_respond(exchange, 200, NULL, fgw_bytes(NULL, 0));
}

static void echo(struct program *program, struct fgw_http_exchange *exchange)
{
    const struct fgw_http_request *request = fgw_http_request(exchange);
    struct fgw_bytes piece;
    enum fgw_err err = fgw_http_body_read(exchange, &piece);
    (void)program;
    if (err != FGW_OK && err != FGW_ERR_END) {
        answer_body_error(exchange, err);
        return;
    }
    fgw_http_response_start(exchange, 200,
                            request->chunked ? FGW_HTTP_LENGTH_UNKNOWN
                                             : (int64_t)request->content_length);
    while (err == FGW_OK) {
        err = fgw_http_response_write(exchange, piece);
        if (err == FGW_OK) {
            err = fgw_http_body_read(exchange, &piece);
        }
    }
    if (err == FGW_ERR_END) {
        (void)fgw_http_response_end(exchange);
    }
}

static void refuse(struct program *program, struct fgw_http_exchange *exchange)
{
    (void)program;
    (void)fgw_http_respond(exchange, 403, "text/plain", FGW_LIT("refused\n"));
}

static void read_one_piece(struct program *program, struct fgw_http_exchange *exchange)
{
    struct fgw_bytes piece = {0};
    (void)program;
    enum fgw_err err = fgw_http_body_read(exchange, &piece);
    (void)fgw_http_respond(exchange, err == FGW_OK ? 200 : 400, "text/plain", FGW_LIT("piece\n"));
}

static void stream(struct program *program, struct fgw_http_exchange *exchange)
{
    uint64_t pieces = query_number(exchange, 3);
    (void)program;
    fgw_http_response_start(exchange, 200, FGW_HTTP_LENGTH_UNKNOWN);
    for (uint64_t i = 0; i < pieces; i++) {
        const char *text =
            fgw_arena_printf(fgw_http_arena(exchange), "piece %llu\n", (unsigned long long)i);
        if (fgw_http_response_write(exchange, fgw_bytes_str(text)) != FGW_OK ||
            fgw_http_response_flush(exchange) != FGW_OK) {
            return;
        }
    }
    (void)fgw_http_response_end(exchange);
}

static void sleep_first(struct program *program, struct fgw_http_exchange *exchange)
{
    fgw_fiber_sleep_ms(query_number(exchange, 100));
    hello(program, exchange);
}

static void stay_silent(struct program *program, struct fgw_http_exchange *exchange)
{
    (void)program;
    (void)exchange;
}

static void write_too_little(struct program *program, struct fgw_http_exchange *exchange)
{
    (void)program;
    fgw_http_response_start(exchange, 200, 10);
    (void)fgw_http_response_write(exchange, FGW_LIT("12345"));
    (void)fgw_http_response_flush(exchange);
    (void)fgw_http_response_end(exchange);
}

static void no_content(struct program *program, struct fgw_http_exchange *exchange)
{
    (void)program;
    (void)fgw_http_respond(exchange, 204, NULL, fgw_bytes(NULL, 0));
}

static void not_modified(struct program *program, struct fgw_http_exchange *exchange)
{
    (void)program;
    (void)fgw_http_respond(exchange, 304, NULL, FGW_LIT("must not be sent"));
}

static void restart_answer(struct program *program, struct fgw_http_exchange *exchange)
{
    (void)program;
    fgw_http_response_start(exchange, 200, 100);
    fgw_http_response_header(exchange, "X-Gone", FGW_LIT("1"));
    (void)fgw_http_response_write(exchange, FGW_LIT("gone"));
    if (fgw_http_response_reset(exchange)) {
        (void)fgw_http_respond(exchange, 409, "text/plain", FGW_LIT("restarted\n"));
    }
}

/* The head as the handler sees it, and a header value with characters that must not get through. */
static void show(struct program *program, struct fgw_http_exchange *exchange)
{
    const struct fgw_http_request *request = fgw_http_request(exchange);
    struct fgw_bytes custom = fgw_http_header_get(request, "X-Custom");
    (void)program;
    fgw_http_response_header(exchange, "X-Split", FGW_LIT("a\r\nX-Injected: 1"));
    const char *text = fgw_arena_printf(
        fgw_http_arena(exchange),
        "method=%.*s\npath=%.*s\nquery=%.*s\nhost=%.*s\nheaders=%zu\nminor=%u\nlength=%d:%llu\n"
        "chunked=%d\nexpect=%d\nkeep=%d\ntls=%d\npeer=%s\ncustom=%.*s\n",
        FGW_FMT(request->method_text), FGW_FMT(request->raw_path), FGW_FMT(request->raw_query),
        FGW_FMT(request->host), request->header_count, request->version_minor,
        request->has_content_length, (unsigned long long)request->content_length, request->chunked,
        request->expect_continue, request->keep_alive, request->tls, request->peer,
        FGW_FMT(custom));
    (void)fgw_http_respond(exchange, 200, "text/plain", fgw_bytes_str(text));
}

static void stats(struct program *program, struct fgw_http_exchange *exchange)
{
    struct fgw_http_server_stats now;
    struct rusage usage;
    fgw_http_server_stats(program->server, &now);
    (void)getrusage(RUSAGE_SELF, &usage);
    const char *text = fgw_arena_printf(
        fgw_http_arena(exchange),
        "{\"accepted\":%llu,\"refused\":%llu,\"open\":%llu,\"requests\":%llu,\"bytes_in\":%llu,"
        "\"bytes_out\":%llu,\"cpu_us\":%lld,\"max_rss_kib\":%ld}\n",
        (unsigned long long)now.accepted, (unsigned long long)now.refused,
        (unsigned long long)now.open, (unsigned long long)now.requests,
        (unsigned long long)now.bytes_in, (unsigned long long)now.bytes_out,
        (long long)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
            usage.ru_utime.tv_usec + usage.ru_stime.tv_usec,
        usage.ru_maxrss);
    (void)fgw_http_respond(exchange, 200, "application/json", fgw_bytes_str(text));
}

/* Takes the connection over and sends back what comes. */
static void upgrade(struct program *program, struct fgw_http_exchange *exchange)
{
    struct fgw_conn *conn;
    char buffer[512];
    size_t len = 0;
    (void)program;
    if (fgw_http_upgrade(exchange, "echo", &conn) != FGW_OK) {
        return;
    }
    while (fgw_conn_read(conn, buffer, sizeof buffer, &len) == FGW_OK &&
           fgw_conn_write(conn, fgw_bytes(buffer, len)) == FGW_OK) {
    }
    fgw_conn_close(conn);
}

static const struct {
    const char *path;
    handler_fn *fn;
} routes[] = {
    {"/4k", from_memory},    {"/hello", hello},          {"/file", from_file},
    {"/count", count},       {"/swallow", swallow},      {"/echo", echo},
    {"/refuse", refuse},     {"/piece", read_one_piece}, {"/stream", stream},
    {"/sleep", sleep_first}, {"/silent", stay_silent},   {"/short", write_too_little},
    {"/204", no_content},    {"/304", not_modified},     {"/restart", restart_answer},
    {"/show", show},         {"/stats", stats},          {"/upgrade", upgrade},
};

static void handle(void *context, struct fgw_http_exchange *exchange)
{
    struct fgw_bytes path = fgw_http_request(exchange)->raw_path;
    for (size_t i = 0; i < FGW_COUNT_OF(routes); i++) {
        if (fgw_bytes_eq_str(path, routes[i].path)) {
            routes[i].fn(context, exchange);
            return;
        }
    }
    (void)fgw_http_respond(exchange, 404, "text/plain", FGW_LIT("not found\n"));
}

static void on_refused(void *context, struct fgw_http_exchange *exchange, enum fgw_err err,
                       const char *message)
{
    (void)context;
    const char *text = fgw_arena_printf(fgw_http_arena(exchange),
                                        "<Error><Code>%s</Code>"
                                        "<Message>%s</Message></Error>\n",
                                        fgw_err_s3_code(err), message);
    (void)fgw_http_respond(exchange, fgw_err_http_status(err), "application/xml",
                           fgw_bytes_str(text));
}

/* -- the program ------------------------------------------------------------------------------- */

static struct fgw_tls_context *load_tls(const struct program *program)
{
    struct fgw_tls_context *context = NULL;
    struct fgw_error error = {0};
    if (program->cert != NULL &&
        fgw_tls_server_new(program->cert, program->key, &context, &error) != FGW_OK) {
        fgw_log_error("test-server", "%s", fgw_error_message(&error));
    }
    return context;
}

static void on_signal(void *arg, int signal_number)
{
    struct program *program = arg;
    if (signal_number != SIGHUP) {
        fgw_loop_stop(program->loop);
        return;
    }
    struct fgw_tls_context *context = load_tls(program);
    if (context != NULL) {
        fgw_http_server_set_tls(program->server, context);
        fgw_tls_unref(context);
        (void)printf("reloaded\n");
        (void)fflush(stdout);
    }
}

static uint64_t number(const char *text)
{
    uint64_t value;
    if (fgw_bytes_to_u64(fgw_bytes_str(text), &value) != FGW_OK) {
        (void)fprintf(stderr, "not a number: %s\n", text);
        exit(2);
    }
    return value;
}

static void take_option(struct program *program, const char *name, const char *value)
{
    struct fgw_http_server_options *options = &program->options;
    if (strcmp(name, "--listen") == 0 && options->address_count < ADDRESSES_MAX) {
        program->addresses[options->address_count++] = value;
    } else if (strcmp(name, "--threads") == 0) {
        program->threads = (unsigned)number(value);
    } else if (strcmp(name, "--cert") == 0) {
        program->cert = value;
    } else if (strcmp(name, "--key") == 0) {
        program->key = value;
    } else if (strcmp(name, "--file") == 0) {
        program->file = open(value, O_RDONLY | O_CLOEXEC);
    } else if (strcmp(name, "--max-header") == 0) {
        options->max_header_bytes = (size_t)number(value);
    } else if (strcmp(name, "--header-timeout-ms") == 0) {
        options->header_timeout_ms = number(value);
    } else if (strcmp(name, "--first-byte-timeout-ms") == 0) {
        options->first_byte_timeout_ms = number(value);
    } else if (strcmp(name, "--idle-timeout-ms") == 0) {
        options->idle_timeout_ms = number(value);
    } else if (strcmp(name, "--min-body-rate") == 0) {
        options->min_body_rate_bytes_s = number(value);
    } else if (strcmp(name, "--max-connections") == 0) {
        options->max_connections = (unsigned)number(value);
    } else {
        (void)fprintf(stderr, "unknown option %s\n", name);
        exit(2);
    }
}

static void run(struct program *program)
{
    struct fgw_error error = {0};
    struct fgw_workers *workers = fgw_workers_start(program->threads, NULL, NULL);
    program->options.workers = workers;
    program->options.addresses = program->addresses;
    program->options.tls = load_tls(program);
    if (fgw_http_server_start(&program->options, &program->server, &error) != FGW_OK) {
        (void)fprintf(stderr, "%s\n", fgw_error_message(&error));
        exit(13);
    }
    fgw_tls_unref(program->options.tls);
    for (size_t i = 0; i < program->options.address_count; i++) {
        (void)printf("listening %s\n", fgw_http_server_address(program->server, i));
    }
    (void)printf("ready\n");
    (void)fflush(stdout);
    fgw_loop_run(program->loop);
    fgw_http_server_stop(program->server, STOP_GRACE_MS);
    fgw_http_server_free(program->server);
    fgw_workers_stop(workers);
}

int main(int argc, char **argv)
{
    static struct program program = {
        .threads = 2,
        .file = -1,
        .options = {.handler = handle,
                    .context = &program,
                    .on_refused = on_refused,
                    .max_header_bytes = 32 * 1024,
                    .header_timeout_ms = 30 * 1000,
                    .first_byte_timeout_ms = 10 * 1000,
                    .idle_timeout_ms = 75 * 1000,
                    .min_body_rate_bytes_s = 1024,
                    .max_connections = 4096,
                    .conn_inflight_bytes = 4 * 1024 * 1024},
    };
    for (int i = 1; i + 1 < argc; i += 2) {
        take_option(&program, argv[i], argv[i + 1]);
    }
    if (program.options.address_count == 0) {
        program.addresses[program.options.address_count++] = "127.0.0.1:0";
    }
    memset(program.memory, 'x', sizeof program.memory);
    program.loop = fgw_loop_new();
    struct fgw_signal *signals[] = {
        fgw_signal_new(program.loop, SIGTERM, on_signal, &program),
        fgw_signal_new(program.loop, SIGINT, on_signal, &program),
        fgw_signal_new(program.loop, SIGHUP, on_signal, &program),
    };
    run(&program);
    for (size_t i = 0; i < FGW_COUNT_OF(signals); i++) {
        fgw_signal_free(signals[i]);
    }
    fgw_loop_free(program.loop);
    return 0;
}
