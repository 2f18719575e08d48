/* server_response.c: answers. The head is put together when the first byte goes out, so that head
 * and body (or its first part) are one system call, and so that it can tell whether the connection
 * stays open. Small writes are gathered; a large one goes out together with what was gathered. */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/timefmt.h"
#include "http/server_internal.h"

enum {
    GATHER_SIZE = 16 * 1024,
    HEADERS_SIZE_MAX = 256 * 1024,
    KEPT_BUFFER_SIZE = 32 * 1024, /* larger ones are freed between exchanges */
    IOVECS_MAX = 6,
    DATE_STEP_MS = 100
};

const struct fgw_http_request *fgw_http_request(const struct fgw_http_exchange *exchange)
{
    return &exchange->request;
}

struct fgw_arena *fgw_http_arena(struct fgw_http_exchange *exchange)
{
    return &exchange->arena;
}

uint64_t fgw_http_started_ns(const struct fgw_http_exchange *exchange)
{
    return exchange->started_ns;
}

bool fgw_http_response_started(const struct fgw_http_exchange *exchange)
{
    return exchange->response.started;
}

int fgw_http_response_status(const struct fgw_http_exchange *exchange)
{
    return exchange->response.status;
}

uint64_t fgw_http_response_bytes(const struct fgw_http_exchange *exchange)
{
    return exchange->response.sent;
}

void fgw_http_close_after(struct fgw_http_exchange *exchange)
{
    exchange->close_after = true;
}

void fgw_http_abort(struct fgw_http_exchange *exchange)
{
    exchange->broken = true;
    if (!exchange->upgraded) {
        fgw_conn_break(exchange->conn->net);
    }
}

static void clear_buffer(struct fgw_buf *buf)
{
    if (buf->cap > KEPT_BUFFER_SIZE) {
        fgw_buf_deinit(buf);
    } else {
        fgw_buf_clear(buf);
    }
}

void fgw_http_response_reset_all(struct fgw_http_exchange *exchange)
{
    struct fgw_buf headers = exchange->response.headers;
    struct fgw_buf pending = exchange->response.pending;
    headers.max = HEADERS_SIZE_MAX;
    clear_buffer(&headers);
    clear_buffer(&pending);
    memset(&exchange->response, 0, offsetof(struct fgw_http_response, headers));
    exchange->response.headers = headers;
    exchange->response.pending = pending;
}

bool fgw_http_response_reset(struct fgw_http_exchange *exchange)
{
    if (exchange->response.head_sent) {
        return false;
    }
    fgw_http_response_reset_all(exchange);
    return true;
}

/* -- the head ---------------------------------------------------------------------------------- */

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {303, "See Other"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < FGW_COUNT_OF(reasons); i++) {
        if (reasons[i].status == status) {
            return reasons[i].reason;
        }
    }
    return "Unknown";
}

/* "Server: FGW" and "Date", looked at again every DATE_STEP_MS of the loop's clock. */
static struct fgw_bytes standing_headers(const struct fgw_http_worker *worker)
{
    static _Thread_local uint64_t made_ms = 0;
    static _Thread_local char text[80];
    static _Thread_local size_t len;
    uint64_t now_ms = fgw_loop_now_ms(worker->loop);
    if (len == 0 || now_ms - made_ms >= DATE_STEP_MS) {
        char date[FGW_TIME_HTTP_SIZE];
        fgw_time_http(fgw_clock_wall_ms(), date);
        made_ms = now_ms;
        len = (size_t)snprintf(text, sizeof text, "Server: FGW\r\nDate: %s\r\n", date);
    }
    return fgw_bytes(text, len);
}

static char *put(char *at, struct fgw_bytes text)
{
    if (text.len > 0) {
        memcpy(at, text.ptr, text.len);
    }
    return at + text.len;
}

static char *put_decimal(char *at, uint64_t value)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    while (count > 0) {
        *at++ = digits[--count];
    }
    return at;
}

static char *put_status_line(char *at, int status)
{
    if (status == 200) {
        return put(at, FGW_LIT("HTTP/1.1 200 OK\r\n"));
    }
    at = put(at, FGW_LIT("HTTP/1.1 "));
    at = put_decimal(at, (uint64_t)status);
    *at++ = ' ';
    at = put(at, fgw_bytes_str(reason_of(status)));
    return put(at, FGW_LIT("\r\n"));
}

static bool may_keep(const struct fgw_http_exchange *exchange)
{
    const struct fgw_http_response *response = &exchange->response;
    bool delimited = response->no_body || response->chunked || response->length >= 0;
    return exchange->request.keep_alive && !exchange->close_after && delimited &&
           !atomic_load_explicit(&exchange->worker->server->stopping, memory_order_relaxed) &&
           fgw_http_body_is_drainable(exchange);
}

/* Everything but the handler's own headers. */
static struct fgw_bytes build_prefix(struct fgw_http_exchange *exchange)
{
    struct fgw_http_response *response = &exchange->response;
    response->chunked =
        response->length < 0 && !response->no_body && exchange->request.version_minor > 0;
    response->keep = may_keep(exchange);
    char *at = put_status_line(response->prefix, response->status);
    at = put(at, standing_headers(exchange->worker));
    if (response->chunked) {
        at = put(at, FGW_LIT("Transfer-Encoding: chunked\r\n"));
    } else if (response->length >= 0 && response->status != 204 && response->status != 304) {
        at = put(at, FGW_LIT("Content-Length: "));
        at = put_decimal(at, (uint64_t)response->length);
        at = put(at, FGW_LIT("\r\n"));
    }
    if (!response->keep) {
        at = put(at, FGW_LIT("Connection: close\r\n"));
    } else if (exchange->request.version_minor == 0) {
        at = put(at, FGW_LIT("Connection: keep-alive\r\n"));
    }
    return fgw_bytes(response->prefix, (size_t)(at - response->prefix));
}

void fgw_http_response_start(struct fgw_http_exchange *exchange, int status, int64_t content_length)
{
    struct fgw_http_response *response = &exchange->response;
    FGW_CHECK(!response->head_sent && status >= 200 && status <= 999);
    response->started = true;
    response->status = status;
    response->length = content_length < 0 ? FGW_HTTP_LENGTH_UNKNOWN : content_length;
    response->no_body = exchange->request.method == FGW_HTTP_HEAD || status == 204 || status == 304;
}

/* Eight bytes at a time, since every header passes here: true when one may be below 0x10 (with CR,
 * LF and NUL among them); a false alarm costs a closer look. */
static bool has_control(struct fgw_bytes value)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t seen = 0;
    size_t i = 0;
    for (; i + 8 <= value.len; i += 8) {
        uint64_t eight;
        memcpy(&eight, value.ptr + i, 8);
        seen |= (eight - ones * 0x10) & ~eight;
    }
    for (; i < value.len; i++) {
        seen |= value.ptr[i] < 0x10 ? ones * 0x80 : 0;
    }
    return (seen & ones * 0x80) != 0;
}

static void blank_line_ends(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\r' || text[i] == '\n' || text[i] == '\0') {
            text[i] = ' ';
        }
    }
}

void fgw_http_response_header(struct fgw_http_exchange *exchange, const char *name,
                              struct fgw_bytes value)
{
    struct fgw_buf *headers = &exchange->response.headers;
    FGW_CHECK(!exchange->response.head_sent);
    size_t name_len = strlen(name);
    if (fgw_buf_reserve(headers, name_len + value.len + 4) != FGW_OK) {
        return; /* noticed by fgw_buf_status when the head goes out */
    }
    char *at = put((char *)headers->ptr + headers->len, fgw_bytes(name, name_len));
    at = put(at, FGW_LIT(": "));
    at = put(at, value);
    if (has_control(value)) {
        blank_line_ends(at - value.len, value.len);
    }
    at = put(at, FGW_LIT("\r\n"));
    headers->len = (size_t)(at - (char *)headers->ptr);
}

void fgw_http_response_headerf(struct fgw_http_exchange *exchange, const char *name,
                               const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    FGW_CHECK(len >= 0);
    if ((size_t)len < sizeof text) {
        fgw_http_response_header(exchange, name, fgw_bytes(text, (size_t)len));
        return;
    }
    char *large = fgw_arena_alloc(&exchange->arena, (size_t)len + 1);
    va_start(args, format);
    (void)vsnprintf(large, (size_t)len + 1, format, args);
    va_end(args);
    fgw_http_response_header(exchange, name, fgw_bytes(large, (size_t)len));
}

/* -- sending ----------------------------------------------------------------------------------- */

static void add_iovec(struct iovec *iov, unsigned *count, struct fgw_bytes bytes)
{
    if (bytes.len > 0) {
        iov[(*count)++] = (struct iovec){(void *)(uintptr_t)bytes.ptr, bytes.len};
    }
}

static enum fgw_err response_failed(struct fgw_http_exchange *exchange, enum fgw_err err)
{
    fgw_http_abort(exchange);
    return err;
}

/* Head (if not sent), what was gathered, and `bytes`, in one call. */
static enum fgw_err push(struct fgw_http_exchange *exchange, struct fgw_bytes bytes, bool last,
                         bool more)
{
    struct fgw_http_response *response = &exchange->response;
    struct iovec iov[IOVECS_MAX];
    unsigned count = 0;
    char chunk_head[24];
    if (exchange->broken) {
        return FGW_ERR_CLIENT_GONE;
    }
    if (!response->head_sent) {
        add_iovec(iov, &count, build_prefix(exchange));
        (void)fgw_buf_append(&response->headers, FGW_LIT("\r\n"));
        if (fgw_buf_status(&response->headers) != FGW_OK) {
            return response_failed(exchange, FGW_ERR_INTERNAL);
        }
        add_iovec(iov, &count, fgw_buf_bytes(&response->headers));
        response->head_sent = true;
    }
    size_t len = response->pending.len + bytes.len;
    if (response->chunked && len > 0) {
        int chunk_len = snprintf(chunk_head, sizeof chunk_head, "%zx\r\n", len);
        add_iovec(iov, &count, fgw_bytes(chunk_head, (size_t)chunk_len));
    }
    add_iovec(iov, &count, fgw_buf_bytes(&response->pending));
    add_iovec(iov, &count, bytes);
    if (response->chunked) {
        struct fgw_bytes tail = FGW_LIT("\r\n0\r\n\r\n");
        size_t from = len > 0 ? 0 : 2;
        add_iovec(iov, &count, fgw_bytes_sub(tail, from, last ? SIZE_MAX : 2 - from));
    }
    enum fgw_err err = fgw_conn_writev(exchange->conn->net, iov, count, more);
    fgw_buf_clear(&response->pending);
    if (err != FGW_OK) {
        return response_failed(exchange, FGW_ERR_CLIENT_GONE);
    }
    response->sent += len;
    return FGW_OK;
}

/* False when the handler wrote more than it announced: nothing right can be sent any more. */
static bool account(struct fgw_http_exchange *exchange, uint64_t len)
{
    struct fgw_http_response *response = &exchange->response;
    FGW_CHECK(response->started && !response->ended);
    response->written += len;
    return response->length < 0 || response->no_body ||
           response->written <= (uint64_t)response->length;
}

static bool all_written(const struct fgw_http_response *response)
{
    return response->length >= 0 && response->written == (uint64_t)response->length;
}

enum fgw_err fgw_http_response_write(struct fgw_http_exchange *exchange, struct fgw_bytes bytes)
{
    struct fgw_http_response *response = &exchange->response;
    if (exchange->broken) {
        return FGW_ERR_CLIENT_GONE;
    }
    if (!account(exchange, bytes.len)) {
        return response_failed(exchange, FGW_ERR_INTERNAL);
    }
    if (response->no_body || bytes.len == 0) {
        return FGW_OK;
    }
    if (!all_written(response) && response->pending.len + bytes.len <= GATHER_SIZE) {
        return fgw_buf_append(&response->pending, bytes);
    }
    return push(exchange, bytes, false, false);
}

/* The file's bytes as one chunk: its head goes out with the answer's. */
static enum fgw_err send_file_chunk(struct fgw_http_exchange *exchange, int fd, uint64_t offset,
                                    uint64_t len)
{
    char chunk_head[24];
    struct fgw_conn *net = exchange->conn->net;
    int head_len = snprintf(chunk_head, sizeof chunk_head, "%llx\r\n", (unsigned long long)len);
    enum fgw_err err = fgw_conn_write(net, fgw_bytes(chunk_head, (size_t)head_len));
    if (err == FGW_OK) {
        err = fgw_conn_send_file(net, fd, offset, len);
    }
    return err == FGW_OK ? fgw_conn_write(net, FGW_LIT("\r\n")) : err;
}

enum fgw_err fgw_http_response_send_file(struct fgw_http_exchange *exchange, int fd,
                                         uint64_t offset, uint64_t len)
{
    struct fgw_http_response *response = &exchange->response;
    if (exchange->broken) {
        return FGW_ERR_CLIENT_GONE;
    }
    if (!account(exchange, len)) {
        return response_failed(exchange, FGW_ERR_INTERNAL);
    }
    if (response->no_body || len == 0) {
        return FGW_OK;
    }
    if (!response->head_sent || response->pending.len > 0) {
        enum fgw_err err = push(exchange, fgw_bytes(NULL, 0), false, true);
        if (err != FGW_OK) {
            return err;
        }
    }
    enum fgw_err err = response->chunked ? send_file_chunk(exchange, fd, offset, len)
                                         : fgw_conn_send_file(exchange->conn->net, fd, offset, len);
    if (err != FGW_OK) {
        return response_failed(exchange, err == FGW_ERR_IO ? err : FGW_ERR_CLIENT_GONE);
    }
    response->sent += len;
    return FGW_OK;
}

enum fgw_err fgw_http_response_flush(struct fgw_http_exchange *exchange)
{
    struct fgw_http_response *response = &exchange->response;
    FGW_CHECK(response->started);
    if (response->head_sent && response->pending.len == 0) {
        return exchange->broken ? FGW_ERR_CLIENT_GONE : FGW_OK;
    }
    return push(exchange, fgw_bytes(NULL, 0), false, false);
}

enum fgw_err fgw_http_response_end(struct fgw_http_exchange *exchange)
{
    struct fgw_http_response *response = &exchange->response;
    FGW_CHECK(response->started);
    if (exchange->broken) {
        return FGW_ERR_CLIENT_GONE;
    }
    if (response->ended) {
        return FGW_OK;
    }
    if (!response->no_body && response->length >= 0 && !all_written(response)) {
        return response_failed(exchange, FGW_ERR_INTERNAL);
    }
    response->ended = true;
    bool nothing_left = response->head_sent && response->pending.len == 0 && !response->chunked;
    return nothing_left ? FGW_OK : push(exchange, fgw_bytes(NULL, 0), true, false);
}

enum fgw_err fgw_http_respond(struct fgw_http_exchange *exchange, int status,
                              const char *content_type, struct fgw_bytes body)
{
    fgw_http_response_start(exchange, status, (int64_t)body.len);
    if (content_type != NULL) {
        fgw_http_response_header(exchange, "Content-Type", fgw_bytes_str(content_type));
    }
    enum fgw_err err = fgw_http_response_write(exchange, body);
    return err == FGW_OK ? fgw_http_response_end(exchange) : err;
}

enum fgw_err fgw_http_upgrade(struct fgw_http_exchange *exchange, const char *protocol,
                              struct fgw_conn **out_conn)
{
    struct fgw_http_response *response = &exchange->response;
    struct fgw_http_conn *conn = exchange->conn;
    FGW_CHECK(!response->started && !exchange->upgraded);
    if (exchange->broken) {
        return FGW_ERR_CLIENT_GONE;
    }
    fgw_http_response_header(exchange, "Upgrade", fgw_bytes_str(protocol));
    fgw_http_response_header(exchange, "Connection", FGW_LIT("Upgrade"));
    (void)fgw_buf_append(&response->headers, FGW_LIT("\r\n"));
    response->started = response->head_sent = response->ended = true;
    response->status = 101;
    char *at = put_status_line(response->prefix, 101);
    at = put(at, standing_headers(exchange->worker));
    struct iovec iov[2] = {{response->prefix, (size_t)(at - response->prefix)},
                           {response->headers.ptr, response->headers.len}};
    enum fgw_err err = fgw_conn_writev(conn->net, iov, 2, false);
    if (err != FGW_OK) {
        return response_failed(exchange, FGW_ERR_CLIENT_GONE);
    }
    struct fgw_bytes rest = fgw_http_input_view(&conn->input);
    if (rest.len > 0) {
        fgw_conn_unread(conn->net, rest);
    }
    fgw_conn_watch(conn->net, NULL, NULL);
    fgw_conn_set_read_deadline(conn->net, FGW_CONN_NO_DEADLINE);
    fgw_conn_set_write_stall(conn->net, 0, 0);
    exchange->upgraded = true;
    *out_conn = conn->net;
    conn->net = NULL;
    return FGW_OK;
}
