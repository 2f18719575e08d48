/* client_call.c: one request and its answer. The head goes out with the first bytes of the body. */
#include <stdio.h>

#include "base/arena.h"
#include "http/chunked.h"
#include "http/client_internal.h"
#include "http/head.h"

enum { HEAD_MAX = 64 * 1024, BUFFER_SIZE = 64 * 1024, SMALL_BUFFER_SIZE = 8 * 1024 };

enum answer_body { BODY_NONE, BODY_LENGTH, BODY_CHUNKED, BODY_UNTIL_CLOSE };

struct fgw_http_call {
    struct fgw_http_client *client;
    struct fgw_conn *conn;
    struct fgw_arena arena;
    struct fgw_buf head; /* of the request, until it is sent */
    bool reused;
    bool is_head_method;
    bool chunked_request;
    uint64_t left_to_write; /* of a body of known length */
    bool answered;          /* a byte of an answer came */
    bool keep;              /* as far as the answer's head allows */
    enum answer_body body;
    uint64_t left_to_read;
    struct fgw_http_chunked chunked;
    enum fgw_err ended; /* FGW_OK while there may be more of the answer */
    uint8_t *input;
    size_t input_size;
    size_t input_start;
    size_t input_end;
};

/* -- request ----------------------------------------------------------------------------------- */

static void build_head(struct fgw_http_call *call, const struct fgw_http_call_options *options)
{
    struct fgw_buf *head = &call->head;
    (void)fgw_buf_appendf(head, "%s %.*s HTTP/1.1\r\nHost: %s\r\n", options->method,
                          FGW_FMT(options->target), call->client->host);
    for (size_t i = 0; i < options->header_count; i++) {
        (void)fgw_buf_append(head, options->headers[i].name);
        (void)fgw_buf_append(head, FGW_LIT(": "));
        (void)fgw_buf_append(head, options->headers[i].value);
        (void)fgw_buf_append(head, FGW_LIT("\r\n"));
    }
    bool sends_body = strcmp(options->method, "PUT") == 0 || strcmp(options->method, "POST") == 0;
    if (options->content_length < 0) {
        (void)fgw_buf_append_str(head, "Transfer-Encoding: chunked\r\n");
    } else if (options->content_length > 0 || sends_body) {
        (void)fgw_buf_appendf(head, "Content-Length: %lld\r\n", (long long)options->content_length);
    }
    (void)fgw_buf_append(head, FGW_LIT("\r\n"));
}

/* A CR or LF in what the caller gives would be a second request. */
static bool has_line_end(struct fgw_bytes text)
{
    return fgw_bytes_find_byte(text, '\r') != SIZE_MAX ||
           fgw_bytes_find_byte(text, '\n') != SIZE_MAX;
}

static bool is_clean(const struct fgw_http_call_options *options)
{
    bool clean = !has_line_end(options->target) && options->target.len > 0 &&
                 fgw_bytes_find_byte(options->target, ' ') == SIZE_MAX;
    for (size_t i = 0; i < options->header_count && clean; i++) {
        clean = !has_line_end(options->headers[i].name) && !has_line_end(options->headers[i].value);
    }
    return clean;
}

enum fgw_err fgw_http_call_begin_on(struct fgw_http_client *client,
                                    const struct fgw_http_call_options *options, bool fresh_only,
                                    struct fgw_http_call **out_call, struct fgw_error *error)
{
    uint64_t deadline_ms = options->deadline_ms == 0 ? FGW_CONN_NO_DEADLINE : options->deadline_ms;
    struct fgw_conn *conn;
    bool reused;
    if (!is_clean(options)) {
        (void)fgw_error_set(error, FGW_ERR_INVALID_REQUEST, "request with line ends in its head");
        return FGW_ERR_INVALID_REQUEST;
    }
    enum fgw_err err = fgw_http_client_take(client, fresh_only, deadline_ms, &conn, &reused, error);
    if (err != FGW_OK) {
        return err;
    }
    fgw_conn_set_read_deadline(conn, deadline_ms);
    fgw_conn_set_write_deadline(conn, deadline_ms);
    struct fgw_http_call *call = fgw_xcalloc(1, sizeof *call);
    call->client = client;
    call->conn = conn;
    call->reused = reused;
    call->is_head_method = strcmp(options->method, "HEAD") == 0;
    call->chunked_request = options->content_length < 0;
    call->left_to_write = options->content_length < 0 ? 0 : (uint64_t)options->content_length;
    fgw_arena_init(&call->arena, 4096);
    fgw_buf_init(&call->head, 0);
    build_head(call, options);
    client->open_calls++;
    *out_call = call;
    return FGW_OK;
}

enum fgw_err fgw_http_call_begin(struct fgw_http_client *client,
                                 const struct fgw_http_call_options *options,
                                 struct fgw_http_call **out_call, struct fgw_error *error)
{
    return fgw_http_call_begin_on(client, options, false, out_call, error);
}

static enum fgw_err send_parts(struct fgw_http_call *call, struct fgw_bytes bytes, bool last)
{
    char size_line[24];
    struct iovec iov[4];
    unsigned count = 0;
    iov[count++] = (struct iovec){call->head.ptr, call->head.len};
    if (call->chunked_request && bytes.len > 0) {
        int len = snprintf(size_line, sizeof size_line, "%zx\r\n", bytes.len);
        iov[count++] = (struct iovec){size_line, (size_t)len};
    }
    iov[count++] = (struct iovec){(void *)(uintptr_t)bytes.ptr, bytes.len};
    if (call->chunked_request) {
        char *tail = "\r\n0\r\n\r\n";
        size_t from = bytes.len > 0 ? 0 : 2;
        size_t len = (last ? 7 : 2) - from;
        iov[count++] = (struct iovec){tail + from, len};
    }
    enum fgw_err err = fgw_conn_writev(call->conn, iov, count, false);
    fgw_buf_deinit(&call->head);
    return err;
}

enum fgw_err fgw_http_call_write(struct fgw_http_call *call, struct fgw_bytes bytes)
{
    if (bytes.len == 0) {
        return FGW_OK;
    }
    if (!call->chunked_request) {
        FGW_CHECK(bytes.len <= call->left_to_write);
        call->left_to_write -= bytes.len;
    }
    return send_parts(call, bytes, false);
}

/* -- answer ------------------------------------------------------------------------------------ */

static enum fgw_err read_more(struct fgw_http_call *call)
{
    size_t got = 0;
    enum fgw_err err = fgw_conn_read(call->conn, call->input + call->input_end,
                                     call->input_size - call->input_end, &got);
    if (err == FGW_OK) {
        call->input_end += got;
        call->answered = true;
    }
    return err;
}

static void grow_input(struct fgw_http_call *call, size_t size)
{
    if (call->input_size < size) {
        call->input = fgw_xrealloc(call->input, size);
        call->input_size = size;
    }
}

/* The bytes of the next head, copied into the arena. */
static enum fgw_err read_head(struct fgw_http_call *call, struct fgw_bytes *out_head)
{
    size_t looked_at = 0;
    for (;;) {
        struct fgw_bytes view =
            fgw_bytes(call->input + call->input_start, call->input_end - call->input_start);
        size_t end = fgw_bytes_find(view, FGW_LIT("\r\n\r\n"), looked_at);
        if (end != SIZE_MAX) {
            *out_head = fgw_arena_copy(&call->arena, fgw_bytes(view.ptr, end + 4));
            call->input_start += end + 4;
            return FGW_OK;
        }
        looked_at = view.len < 3 ? 0 : view.len - 3;
        if (call->input_end == call->input_size) {
            if (call->input_size >= HEAD_MAX) {
                return FGW_ERR_TOO_LARGE;
            }
            grow_input(call, call->input_size == 0 ? SMALL_BUFFER_SIZE : call->input_size * 2);
        }
        enum fgw_err err = read_more(call);
        if (err != FGW_OK) {
            return err == FGW_ERR_END ? FGW_ERR_CLIENT_GONE : err;
        }
    }
}

static void choose_body(struct fgw_http_call *call, const struct fgw_http_response_head *head)
{
    call->keep = head->keep_alive;
    call->ended = FGW_OK;
    if (call->is_head_method || head->status == 204 || head->status == 304) {
        call->body = BODY_NONE;
        call->ended = FGW_ERR_END;
        call->keep = head->version_minor > 0 || head->keep_alive;
    } else if (head->chunked) {
        call->body = BODY_CHUNKED;
    } else if (head->has_content_length) {
        call->body = BODY_LENGTH;
        call->left_to_read = head->content_length;
        call->ended = head->content_length == 0 ? FGW_ERR_END : FGW_OK;
    } else {
        call->body = BODY_UNTIL_CLOSE;
        call->keep = false;
    }
}

enum fgw_err fgw_http_call_answer(struct fgw_http_call *call, struct fgw_http_answer *out_answer)
{
    struct fgw_http_response_head head;
    bool all_sent = call->left_to_write == 0;
    if ((call->head.len > 0 || call->chunked_request) && all_sent) {
        /* an answer may be there although the server stopped reading */
        all_sent = send_parts(call, fgw_bytes(NULL, 0), true) == FGW_OK;
    }
    do {
        struct fgw_bytes raw;
        const char *reason;
        enum fgw_err err = read_head(call, &raw);
        if (err != FGW_OK) {
            return err;
        }
        err = fgw_http_response_head_parse(&call->arena, raw, &head, &reason);
        if (err != FGW_OK || head.status == 101) {
            return FGW_ERR_PARSE;
        }
    } while (head.status < 200);
    choose_body(call, &head);
    call->keep = call->keep && all_sent;
    *out_answer = (struct fgw_http_answer){
        .status = head.status,
        .headers = head.headers,
        .header_count = head.header_count,
        .has_content_length = head.has_content_length,
        .content_length = head.content_length,
    };
    return FGW_OK;
}

static enum fgw_err take_piece(struct fgw_http_call *call, struct fgw_bytes *out_piece)
{
    struct fgw_bytes view =
        fgw_bytes(call->input + call->input_start, call->input_end - call->input_start);
    struct fgw_bytes rest = view;
    enum fgw_err err = view.len > 0 ? FGW_OK : FGW_ERR_AGAIN;
    if (call->body == BODY_CHUNKED) {
        err = fgw_http_chunked_next(&call->chunked, &rest, out_piece);
        err = err == FGW_ERR_BAD_REQUEST ? FGW_ERR_PARSE : err;
    } else if (call->body == BODY_LENGTH) {
        size_t len = call->left_to_read < view.len ? (size_t)call->left_to_read : view.len;
        err = call->left_to_read == 0 ? FGW_ERR_END : err;
        *out_piece = err == FGW_OK ? fgw_bytes(view.ptr, len) : *out_piece;
        rest = fgw_bytes_sub(view, len, SIZE_MAX);
        call->left_to_read -= len;
    } else if (err == FGW_OK) {
        *out_piece = view;
        rest.len = 0;
    }
    call->input_start += view.len - rest.len;
    return err;
}

enum fgw_err fgw_http_call_read(struct fgw_http_call *call, struct fgw_bytes *out_piece)
{
    while (call->ended == FGW_OK) {
        enum fgw_err err = take_piece(call, out_piece);
        if (err == FGW_OK) {
            return FGW_OK;
        }
        if (err == FGW_ERR_AGAIN) {
            call->input_start = 0;
            call->input_end = 0;
            grow_input(call, BUFFER_SIZE);
            err = read_more(call);
            if (err == FGW_ERR_END && call->body != BODY_UNTIL_CLOSE) {
                err = FGW_ERR_CLIENT_GONE;
            }
        }
        call->ended = err;
    }
    return call->ended;
}

bool fgw_http_call_maybe_stale(const struct fgw_http_call *call)
{
    return call->reused && !call->answered;
}

void fgw_http_call_end(struct fgw_http_call *call)
{
    if (call == NULL) {
        return;
    }
    bool finished = call->answered && call->keep && call->ended == FGW_ERR_END &&
                    call->input_start == call->input_end;
    if (finished) {
        fgw_conn_set_write_deadline(call->conn, FGW_CONN_NO_DEADLINE);
        fgw_http_client_keep(call->client, call->conn);
    } else {
        fgw_conn_close(call->conn);
    }
    call->client->open_calls--;
    fgw_buf_deinit(&call->head);
    fgw_arena_deinit(&call->arena);
    fgw_xfree(call->input);
    fgw_xfree(call);
}

/* -- whole requests ---------------------------------------------------------------------------- */

static enum fgw_err exchange(struct fgw_http_call *call, struct fgw_bytes body, int *out_status,
                             struct fgw_buf *out)
{
    struct fgw_http_answer answer;
    struct fgw_bytes piece;
    /* when the body is refused, the answer says why */
    enum fgw_err write_err = fgw_http_call_write(call, body);
    enum fgw_err err = fgw_http_call_answer(call, &answer);
    if (err != FGW_OK) {
        return write_err != FGW_OK ? write_err : err;
    }
    while ((err = fgw_http_call_read(call, &piece)) == FGW_OK) {
        err = fgw_buf_append(out, piece);
        if (err != FGW_OK) {
            return err;
        }
    }
    if (err != FGW_ERR_END) {
        return err;
    }
    *out_status = answer.status;
    return FGW_OK;
}

enum fgw_err fgw_http_fetch(struct fgw_http_client *client,
                            const struct fgw_http_call_options *options, struct fgw_bytes body,
                            int *out_status, struct fgw_buf *out, struct fgw_error *error)
{
    struct fgw_http_call_options own = *options;
    bool idempotent = strcmp(options->method, "POST") != 0;
    size_t before = out->len;
    own.content_length = (int64_t)body.len;
    for (int attempt = 0;; attempt++) {
        struct fgw_http_call *call = NULL;
        enum fgw_err err = fgw_http_call_begin_on(client, &own, attempt > 0, &call, error);
        if (err != FGW_OK) {
            return err;
        }
        err = exchange(call, body, out_status, out);
        bool again = err == FGW_ERR_CLIENT_GONE && idempotent && attempt == 0 &&
                     fgw_http_call_maybe_stale(call);
        fgw_http_call_end(call);
        if (!again) {
            return err == FGW_OK ? FGW_OK
                                 : fgw_error_set(error, err, "%s %.*s: %s", options->method,
                                                 FGW_FMT(options->target), fgw_err_text(err));
        }
        out->len = before;
    }
}
