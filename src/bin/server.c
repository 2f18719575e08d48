/* server.c: see server.h. */
#include "bin/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/timefmt.h"
#include "console/ops.h"
#include "net/tls.h"

enum { GRACE_MS = 30000 };

struct fgw_server {
    const struct fgw_config *config;
    struct fgw_loop *loop; /* main thread: signals */
    struct fgw_workers *workers;
    struct fgw_health *health;
    struct fgw_metrics *metrics;
    struct fgw_ops ops;
    struct fgw_admin admin;
    struct fgw_admin local_admin; /* on the socket: calls that read and write files as well */
    fgw_admin_status_fn *role_status;
    void *role_context;
    const char *role;
    struct fgw_http_server *s3_http;
    struct fgw_http_server *ops_http;
    struct fgw_http_server *admin_http;
    struct fgw_tls_context *tls;
    _Atomic(struct fgw_s3 *) s3;
    fgw_http_handler *block_api;
    void *block_context;
    struct fgw_signal *signals[3];
    int access_log_fd; /* -1: off */
    bool stopped;
    char endpoint[128];
};

struct fgw_health *fgw_server_health(struct fgw_server *server)
{
    return server->health;
}

struct fgw_metrics *fgw_server_metrics(struct fgw_server *server)
{
    return server->metrics;
}

void fgw_server_note_opening(void *context, const char *text)
{
    struct fgw_server *server = context;
    fgw_health_set(server->health, "engine", text);
}

struct fgw_workers *fgw_server_workers(struct fgw_server *server)
{
    return server->workers;
}

const char *fgw_server_endpoint(const struct fgw_server *server)
{
    return server->endpoint;
}

void fgw_server_set_block_api(struct fgw_server *server, fgw_http_handler *handler, void *context)
{
    server->block_api = handler;
    server->block_context = context;
}

int fgw_exit_of(enum fgw_err err)
{
    switch (err) {
    case FGW_OK:
        return FGW_EXIT_OK;
    case FGW_ERR_CONFIG:
        return FGW_EXIT_USAGE;
    case FGW_ERR_NEWER_VERSION:
        return FGW_EXIT_VERSION;
    case FGW_ERR_UNAVAILABLE:
    case FGW_ERR_TIMEOUT:
        return FGW_EXIT_DB_UNREACHABLE;
    case FGW_ERR_IN_USE:
        return FGW_EXIT_DATA_IN_USE;
    case FGW_ERR_CORRUPT:
        return FGW_EXIT_DATA_DAMAGED;
    case FGW_ERR_IO:
    case FGW_ERR_NOSPACE:
        return FGW_EXIT_DATA_UNUSABLE;
    default:
        return FGW_EXIT_INTERNAL;
    }
}

int fgw_exit_of_error(enum fgw_err err, const struct fgw_error *error)
{
    uint64_t code = 0;
    for (unsigned i = 0; i < error->extra_count; i++) {
        if (strcmp(error->extra[i].name, FGW_ERROR_EXIT_CODE) == 0 &&
            fgw_bytes_to_u64(fgw_bytes_str(error->extra[i].value), &code) == FGW_OK) {
            return (int)code;
        }
    }
    return fgw_exit_of(err);
}

int fgw_exit_failed(enum fgw_err err, const struct fgw_error *error)
{
    (void)fprintf(stderr, "fgw: error: %s\n",
                  error->message[0] != '\0' ? error->message : fgw_err_text(err));
    return fgw_exit_of_error(err, error);
}

/* -- requests ---------------------------------------------------------------------------------- */

static void handle_s3(void *context, struct fgw_http_exchange *exchange)
{
    struct fgw_server *server = context;
    struct fgw_s3 *s3 = atomic_load_explicit(&server->s3, memory_order_acquire);
    if (s3 != NULL) {
        fgw_s3_handle(s3, exchange);
        return;
    }
    if (fgw_ops_internal(&server->ops, exchange)) {
        return;
    }
    fgw_http_response_start(exchange, 503, FGW_HTTP_LENGTH_UNKNOWN);
    fgw_http_response_header(exchange, "Retry-After", FGW_LIT("1"));
    fgw_http_response_header(exchange, "Content-Type", FGW_LIT("application/xml"));
    (void)fgw_http_response_write(
        exchange,
        FGW_LIT("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>ServiceUnavailable"
                "</Code><Message>Starting; see /_fgw/readyz.</Message></Error>"));
    (void)fgw_http_response_end(exchange);
}

static void refuse_s3(void *context, struct fgw_http_exchange *exchange, enum fgw_err err,
                      const char *message)
{
    struct fgw_server *server = context;
    struct fgw_s3 *s3 = atomic_load_explicit(&server->s3, memory_order_acquire);
    if (s3 != NULL) {
        fgw_s3_refused(s3, exchange, err, message);
    } else {
        (void)fgw_http_respond(exchange, fgw_err_http_status(err), "text/plain",
                               fgw_bytes_str(message));
    }
}

static bool answer_internal(void *context, struct fgw_http_exchange *exchange)
{
    struct fgw_server *server = context;
    if (server->block_api != NULL &&
        fgw_bytes_starts_with(fgw_http_request(exchange)->raw_path, FGW_LIT("/_fgw/v1/"))) {
        server->block_api(server->block_context, exchange);
        return true;
    }
    return fgw_ops_internal(&server->ops, exchange);
}

/* Blanks, quotes and control bytes of what clients send must not break a log line. */
static void append_logged(struct fgw_buf *line, struct fgw_bytes text)
{
    if (text.len == 0) {
        (void)fgw_buf_append_byte(line, '-');
    }
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c <= ' ' || c == '"' || c == '\\' || c == 0x7f) {
            (void)fgw_buf_appendf(line, "\\x%02x", c);
        } else {
            (void)fgw_buf_append_byte(line, c);
        }
    }
    (void)fgw_buf_append_byte(line, ' ');
}

static void write_access_log(const struct fgw_server *server, const struct fgw_s3_done *done,
                             uint64_t duration_ns)
{
    struct fgw_buf line;
    char stamp[FGW_TIME_ISO8601_SIZE];
    const struct fgw_http_request *request = fgw_http_request(done->exchange);
    fgw_time_iso8601(fgw_clock_wall_ms(), stamp);
    fgw_buf_init(&line, 16384);
    (void)fgw_buf_appendf(&line, "%s %s %s ", stamp, request->peer, done->request_id);
    append_logged(&line, done->access_key);
    (void)fgw_buf_appendf(&line, "%s ", done->operation);
    append_logged(&line, done->bucket);
    append_logged(&line, done->key);
    (void)fgw_buf_appendf(&line, "%d %s %" PRIu64 " %" PRIu64 " %" PRIu64 "us\n", done->status,
                          done->error_code == NULL ? "-" : done->error_code, done->body_bytes,
                          done->sent_bytes, duration_ns / 1000);
    ssize_t ignored = write(server->access_log_fd, line.ptr, line.len);
    (void)ignored;
    fgw_buf_deinit(&line);
}

static void on_done(void *context, const struct fgw_s3_done *done)
{
    struct fgw_server *server = context;
    uint64_t duration_ns = fgw_clock_boot_ns() - fgw_http_started_ns(done->exchange);
    fgw_metrics_add(server->metrics,
                    &(struct fgw_metrics_request){.operation = done->operation,
                                                  .status = done->status,
                                                  .error_code = done->error_code,
                                                  .duration_ns = duration_ns,
                                                  .received_bytes = done->body_bytes,
                                                  .sent_bytes = done->sent_bytes});
    if (server->access_log_fd >= 0) {
        write_access_log(server, done, duration_ns);
    }
}

/* -- metrics of the process --------------------------------------------------------------------- */

/* The second figure of /proc/self/statm, in pages (proc(5)). */
static bool resident_bytes(uint64_t *out_bytes)
{
    char line[256];
    uint64_t pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    bool read = statm != NULL && fgets(line, sizeof line, statm) != NULL;
    if (statm != NULL) {
        (void)fclose(statm);
    }
    if (!read) {
        return false;
    }
    struct fgw_bytes rest = fgw_bytes_str(line);
    struct fgw_bytes part;
    if (!fgw_bytes_split(&rest, ' ', &part) || !fgw_bytes_split(&rest, ' ', &part) ||
        fgw_bytes_to_u64(part, &pages) != FGW_OK) {
        return false;
    }
    *out_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return true;
}

static void write_process(void *context, struct fgw_buf *out)
{
    struct fgw_server *server = context;
    struct rusage usage;
    struct fgw_http_server_stats stats;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        double cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
        (void)fgw_buf_appendf(out,
                              "# HELP process_cpu_seconds_total User and system CPU time.\n"
                              "# TYPE process_cpu_seconds_total counter\n"
                              "process_cpu_seconds_total %.3f\n",
                              cpu_s);
    }
    uint64_t resident = 0;
    if (resident_bytes(&resident)) {
        fgw_metrics_gauge(out, "process_resident_memory_bytes", "Resident memory.", resident);
    }
    fgw_http_server_stats(server->s3_http, &stats);
    fgw_metrics_gauge(out, "fgw_http_connections", "Open S3 connections.", stats.open);
    fgw_metrics_counter(out, "fgw_http_connections_accepted_total", "S3 connections accepted.",
                        stats.accepted);
    fgw_metrics_counter(out, "fgw_http_connections_refused_total",
                        "S3 connections refused above FGW_MAX_CONNECTIONS.", stats.refused);
    fgw_metrics_gauge(out, "fgw_ready", "1 when /readyz answers 200.",
                      fgw_health_ready(server->health));
}

/* -- start -------------------------------------------------------------------------------------- */

static int fail(const struct fgw_error *error, int exit_code)
{
    (void)fprintf(stderr, "fgw: error: %s\n", fgw_error_message(error));
    return exit_code;
}

static int open_access_log(struct fgw_server *server)
{
    const char *path = server->config->access_log;
    server->access_log_fd = -1;
    if (path == NULL || path[0] == '\0') {
        return FGW_EXIT_OK;
    }
    server->access_log_fd = strcmp(path, "-") == 0
                                ? dup(STDOUT_FILENO)
                                : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (server->access_log_fd < 0) {
        (void)fprintf(stderr, "fgw: error: FGW_ACCESS_LOG %s: %s\n", path, strerror(errno));
        return FGW_EXIT_USAGE;
    }
    return FGW_EXIT_OK;
}

/* "host:port" or "[host]:port" for each address. */
static const char **address_texts(struct fgw_arena *arena, const struct fgw_config_addresses *from)
{
    const char **texts = fgw_arena_alloc(arena, (from->count + 1) * sizeof *texts);
    for (size_t i = 0; i < from->count; i++) {
        bool v6 = strchr(from->items[i].host, ':') != NULL;
        texts[i] = fgw_arena_printf(arena, v6 ? "[%s]:%u" : "%s:%u", from->items[i].host,
                                    (unsigned)from->items[i].port);
    }
    return texts;
}

static struct fgw_http_server_options http_options(struct fgw_server *server,
                                                   const struct fgw_config_addresses *addresses,
                                                   struct fgw_arena *arena)
{
    const struct fgw_config *config = server->config;
    return (struct fgw_http_server_options){
        .addresses = address_texts(arena, addresses),
        .address_count = addresses->count,
        .workers = server->workers,
        .context = server,
        .max_header_bytes = config->max_header_bytes,
        .header_timeout_ms = config->header_timeout_ms,
        .first_byte_timeout_ms = config->first_byte_timeout_ms,
        .idle_timeout_ms = config->idle_timeout_ms,
        .min_body_rate_bytes_s = config->min_body_rate,
        .max_connections = config->max_connections,
        .conn_inflight_bytes = config->conn_inflight_bytes,
    };
}

static int start_listeners(struct fgw_server *server)
{
    struct fgw_error error;
    struct fgw_arena arena;
    fgw_error_init(&error);
    fgw_arena_init(&arena, 0);
    struct fgw_http_server_options options =
        http_options(server, &server->config->s3_listen, &arena);
    options.handler = handle_s3;
    options.on_refused = refuse_s3;
    options.tls = server->tls;
    enum fgw_err err = FGW_OK; /* no address at all: work without serving (role_job.h) */
    if (options.address_count > 0) {
        err = fgw_http_server_start(&options, &server->s3_http, &error);
    }
    if (err == FGW_OK && server->config->ops_listen.count > 0) {
        options = http_options(server, &server->config->ops_listen, &arena);
        options.handler = fgw_ops_handle;
        options.context = &server->ops;
        err = fgw_http_server_start(&options, &server->ops_http, &error);
    }
    fgw_arena_deinit(&arena);
    if (err == FGW_ERR_IN_USE) {
        return fail(&error, FGW_EXIT_ADDRESS_IN_USE);
    }
    return err == FGW_OK ? FGW_EXIT_OK : fail(&error, FGW_EXIT_USAGE);
}

static int start_tls(struct fgw_server *server)
{
    struct fgw_error error;
    fgw_error_init(&error);
    if (server->config->tls_cert == NULL) {
        return FGW_EXIT_OK;
    }
    enum fgw_err err =
        fgw_tls_server_new(server->config->tls_cert, server->config->tls_key, &server->tls, &error);
    return err == FGW_OK ? FGW_EXIT_OK : fail(&error, FGW_EXIT_USAGE);
}

static void read_certificate_again(struct fgw_server *server)
{
    const struct fgw_config *config = server->config;
    struct fgw_error error;
    struct fgw_tls_context *fresh = NULL;
    fgw_error_init(&error);
    if (config->tls_cert == NULL) {
        return;
    }
    if (fgw_tls_server_new(config->tls_cert, config->tls_key, &fresh, &error) != FGW_OK) {
        fgw_log_error("server", "the certificate stays as it was: %s", fgw_error_message(&error));
        return;
    }
    fgw_http_server_set_tls(server->s3_http, fresh);
    fgw_tls_unref(server->tls);
    server->tls = fresh;
    fgw_log_info("server", "certificate read again from %s", config->tls_cert);
}

static void on_signal(void *arg, int number)
{
    struct fgw_server *server = arg;
    if (number == SIGHUP) {
        read_certificate_again(server);
        return;
    }
    fgw_log_info("server", "signal %d: finishing requests in flight", number);
    fgw_loop_stop(server->loop);
}

static void exit_at_once(int number)
{
    (void)number;
    _exit(FGW_EXIT_OK); /* safe: nothing is acknowledged that is not durable */
}

/* Every connection is a descriptor, and group files, RocksDB's tables and the database's connections
 * come on top: the usual soft limit of 1,024 is too low. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int fgw_server_start(const struct fgw_config *config, const char *role, struct fgw_server **out)
{
    struct fgw_server *server = fgw_xcalloc(1, sizeof *server);
    (void)signal(SIGPIPE, SIG_IGN);
    raise_file_limit();
    server->config = config;
    server->role = role;
    server->loop = fgw_loop_new();
    server->health = fgw_health_new(role);
    fgw_health_set(server->health, "engine", "starting");
    /* until requests are served there is nothing to finish: a signal ends the process */
    (void)signal(SIGTERM, exit_at_once);
    (void)signal(SIGINT, exit_at_once);
    (void)signal(SIGHUP, SIG_IGN);
    size_t count = fgw_s3_operation_count();
    const char **names = fgw_xcalloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        names[i] = fgw_s3_operation_name(i);
    }
    server->metrics = fgw_metrics_new(config->threads, names, count);
    fgw_xfree(names);
    fgw_metrics_register(server->metrics, write_process, server);
    server->ops = (struct fgw_ops){
        .health = server->health, .metrics = server->metrics, .version = fgw_version()};
    server->workers = fgw_workers_start(config->threads, NULL, NULL);
    int exit_code = open_access_log(server);
    exit_code = exit_code == FGW_EXIT_OK ? start_tls(server) : exit_code;
    exit_code = exit_code == FGW_EXIT_OK ? start_listeners(server) : exit_code;
    if (exit_code != FGW_EXIT_OK) {
        fgw_server_stop(server);
        fgw_server_free(server);
        return exit_code;
    }
    if (server->s3_http != NULL) {
        (void)snprintf(server->endpoint, sizeof server->endpoint, "%s://%s",
                       server->tls != NULL ? "https" : "http",
                       fgw_http_server_address(server->s3_http, 0));
    }
    *out = server;
    return FGW_EXIT_OK;
}

static int start_admin_socket(struct fgw_server *server)
{
    struct fgw_error error;
    struct fgw_arena arena;
    struct fgw_config_addresses none = {NULL, 0};
    fgw_error_init(&error);
    fgw_arena_init(&arena, 0);
    struct fgw_http_server_options options = http_options(server, &none, &arena);
    const char *address = fgw_arena_printf(&arena, "unix:%s/admin.sock", server->config->data_dir);
    options.addresses = &address;
    options.address_count = 1;
    options.handler = fgw_admin_handle;
    options.context = &server->local_admin;
    enum fgw_err err = fgw_http_server_start(&options, &server->admin_http, &error);
    fgw_arena_deinit(&arena);
    return err == FGW_OK ? FGW_EXIT_OK : fail(&error, FGW_EXIT_DATA_UNUSABLE);
}

static void add_status(void *context, json_t *status)
{
    struct fgw_server *server = context;
    const char *node_id = server->config->node_id;
    struct fgw_buf text;
    fgw_buf_init(&text, 0);
    fgw_health_json(server->health, &text);
    json_t *health = json_loadb((const char *)text.ptr, text.len, 0, NULL);
    fgw_buf_deinit(&text);
    (void)json_object_set_new(status, "version", json_string(fgw_version()));
    (void)json_object_set_new(status, "role", json_string(server->role));
    (void)json_object_set_new(status, "node_id",
                              node_id == NULL ? json_null() : json_string(node_id));
    (void)json_object_set_new(status, "ready", json_boolean(fgw_health_ready(server->health)));
    (void)json_object_set(status, "reasons", json_object_get(health, "reasons"));
    (void)json_object_set_new(status, "endpoint", json_string(server->endpoint));
    json_decref(health);
    server->role_status(server->role_context, status);
}

/* docs/guide/database.md; 0: names are not in a database. */
static uint64_t database_wait_ms(const struct fgw_config *config)
{
    return config->meta == FGW_CONFIG_META_CQL ? 2 * (uint64_t)config->cql_timeout_ms : 0;
}

static struct fgw_s3 *new_engine(struct fgw_server *server, const struct fgw_server_engine *engine)
{
    const struct fgw_config *config = server->config;
    struct fgw_s3_options options = {
        .meta = engine->meta,
        .blobs = engine->blobs,
        .workers = config->threads,
        .region = config->region,
        .locations = config->locations.items,
        .location_count = config->locations.count,
        .domains = config->domains.items,
        .domain_count = config->domains.count,
        .strict_aws = config->s3_strict_aws,
        .root_access_key = engine->root_access_key,
        .root_secret_key = engine->root_secret_key,
        .database_wait_ms = database_wait_ms(config),
        .internal = answer_internal,
        .internal_context = server,
        .done = on_done,
        .done_context = server,
    };
    return fgw_s3_new(&options);
}

int fgw_server_start_engine(struct fgw_server *server, const struct fgw_server_engine *engine,
                            struct fgw_s3 **out_s3)
{
    struct fgw_s3 *s3 = new_engine(server, engine);
    *out_s3 = s3;
    server->role_status = engine->status;
    server->role_context = engine->status_context;
    server->admin = (struct fgw_admin){.meta = engine->meta,
                                       .extras = engine->admin_extras,
                                       .extra_count = engine->admin_extra_count,
                                       .root_id = fgw_s3_root_id(s3),
                                       .root_access_key = engine->root_access_key,
                                       .root_secret_key = engine->root_secret_key,
                                       .region = server->config->region,
                                       .database_wait_ms = database_wait_ms(server->config),
                                       .status = add_status,
                                       .status_context = server,
                                       .nodes = engine->nodes,
                                       .nodes_context = engine->nodes_context};
    server->local_admin = server->admin;
    server->local_admin.storage = engine->storage;
    int exit_code = engine->admin_socket ? start_admin_socket(server) : FGW_EXIT_OK;
    if (exit_code == FGW_EXIT_OK) {
        atomic_store_explicit(&server->ops.admin, &server->admin, memory_order_release);
        atomic_store_explicit(&server->s3, s3, memory_order_release);
        fgw_health_set(server->health, "engine", NULL);
    }
    return exit_code;
}

/* -- end ---------------------------------------------------------------------------------------- */

void fgw_server_stop(struct fgw_server *server)
{
    if (server->stopped) {
        return;
    }
    server->stopped = true;
    if (server->s3_http != NULL) {
        fgw_http_server_stop(server->s3_http, GRACE_MS);
    }
    if (server->admin_http != NULL) {
        fgw_http_server_stop(server->admin_http, GRACE_MS);
    }
    if (server->ops_http != NULL) {
        fgw_http_server_stop(server->ops_http, 0);
    }
}

/* While requests finish, the main thread waits in fgw_http_server_stop, so a second signal cannot
 * come through the loop: a plain handler ends the process. */
static void restore_signals(struct fgw_server *server)
{
    for (size_t i = 0; i < 3; i++) {
        fgw_signal_free(server->signals[i]);
        server->signals[i] = NULL;
    }
    (void)signal(SIGTERM, exit_at_once);
    (void)signal(SIGINT, exit_at_once);
}

void fgw_server_run(struct fgw_server *server)
{
    static const int NUMBERS[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t i = 0; i < 3; i++) {
        server->signals[i] = fgw_signal_new(server->loop, NUMBERS[i], on_signal, server);
    }
    fgw_loop_run(server->loop);
    fgw_health_set(server->health, "engine", "stopping");
    restore_signals(server);
    fgw_server_stop(server);
}

void fgw_server_free(struct fgw_server *server)
{
    if (server == NULL) {
        return;
    }
    fgw_http_server_free(server->s3_http);
    fgw_http_server_free(server->ops_http);
    fgw_http_server_free(server->admin_http);
    fgw_workers_stop(server->workers);
    restore_signals(server);
    fgw_loop_free(server->loop);
    if (server->access_log_fd >= 0) {
        (void)close(server->access_log_fd);
    }
    fgw_tls_unref(server->tls);
    fgw_metrics_free(server->metrics);
    fgw_health_free(server->health);
    fgw_xfree(server);
}
