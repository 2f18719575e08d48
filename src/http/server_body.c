/* server_body.c: input of a connection and reading of request bodies. Buffers are held only while
 * they hold something: a connection that waits for its client gives its buffer back to the worker,
 * so a few buffers serve any number of slow uploads. */
#include "http/server_internal.h"

#include "base/clock.h"

enum {
    HEAD_BUFFER_SIZE = 4 * 1024,
    IDLE_BUFFERS_MAX = 8,
    BODY_BUFFERS_MAX = 128,
    YIELD_ABOVE = 64 * 1024, /* a full read of this size: others of the loop have their turn */
    DRAIN_TIME_MS = 5 * 1000
};

/* -- buffers ----------------------------------------------------------------------------------- */

static void free_memory(struct fgw_http_worker *worker, struct fgw_http_input *input)
{
    if (input->is_body_buffer) {
        worker->used_buffer_count--;
    }
    if (input->is_body_buffer && worker->idle_buffer_count < IDLE_BUFFERS_MAX) {
        fgw_list_push_front(&worker->idle_buffers, (struct fgw_list *)(void *)input->ptr);
        worker->idle_buffer_count++;
    } else {
        fgw_xfree(input->ptr);
    }
    *input = (struct fgw_http_input){0};
}

/* Many slow handlers must not hold many large buffers: beyond BODY_BUFFERS_MAX they are small. */
static void take_memory(struct fgw_http_worker *worker, struct fgw_http_input *input, size_t wanted)
{
    bool large =
        wanted > FGW_HTTP_SMALL_BUFFER_SIZE && worker->used_buffer_count < BODY_BUFFERS_MAX;
    size_t size = large ? worker->server->body_buffer_size : FGW_HTTP_SMALL_BUFFER_SIZE;
    struct fgw_list *idle = large ? fgw_list_pop_front(&worker->idle_buffers) : NULL;
    worker->idle_buffer_count -= idle != NULL;
    worker->used_buffer_count += large;
    *input = (struct fgw_http_input){.ptr = idle != NULL ? (void *)idle : fgw_xmalloc(size),
                                     .cap = size,
                                     .is_body_buffer = large};
}

void fgw_http_input_free(struct fgw_http_conn *conn)
{
    if (conn->input.ptr != NULL) {
        free_memory(conn->worker, &conn->input);
    }
}

void fgw_http_input_trim(struct fgw_http_conn *conn)
{
    if (conn->input.start == conn->input.end) {
        fgw_http_input_free(conn);
    }
}

static void move_input(struct fgw_http_conn *conn, size_t room)
{
    struct fgw_bytes held = fgw_http_input_view(&conn->input);
    size_t cap = HEAD_BUFFER_SIZE;
    while (cap < held.len + room) {
        cap *= 2;
    }
    uint8_t *moved = fgw_xmalloc(cap);
    if (held.len > 0) {
        memcpy(moved, held.ptr, held.len);
    }
    fgw_http_input_free(conn);
    conn->input = (struct fgw_http_input){.ptr = moved, .end = held.len, .cap = cap};
}

void fgw_http_input_shrink(struct fgw_http_conn *conn)
{
    fgw_http_input_trim(conn);
    if (conn->input.is_body_buffer) {
        move_input(conn, 0);
    }
}

/* Callers bound what is appended: one scratch buffer, or FGW_MAX_HEADER in all. */
void fgw_http_input_append(struct fgw_http_conn *conn, struct fgw_bytes bytes)
{
    struct fgw_http_input *input = &conn->input;
    if (bytes.len == 0) {
        return;
    }
    if (input->cap - input->end < bytes.len) {
        move_input(conn, bytes.len);
    }
    memcpy(input->ptr + input->end, bytes.ptr, bytes.len);
    input->end += bytes.len;
}

/* -- the body ---------------------------------------------------------------------------------- */

void fgw_http_body_begin(struct fgw_http_exchange *exchange)
{
    const struct fgw_http_request *request = &exchange->request;
    exchange->body = (struct fgw_http_body){.continue_wanted = request->expect_continue};
    if (request->chunked) {
        exchange->body.kind = FGW_HTTP_BODY_CHUNKED;
    } else if (request->content_length > 0) {
        exchange->body.kind = FGW_HTTP_BODY_LENGTH;
        exchange->body.remaining = request->content_length;
    } else {
        exchange->body.ended = FGW_ERR_END;
    }
}

static enum fgw_err body_failed(struct fgw_http_exchange *exchange, enum fgw_err err)
{
    exchange->body.ended = err;
    exchange->close_after = true;
    if (err == FGW_ERR_CLIENT_GONE) {
        exchange->broken = true;
    }
    return err;
}

/* Waiting counts against the client only while we are ready to read. */
static enum fgw_err wait_for_input(struct fgw_http_exchange *exchange)
{
    struct fgw_http_body *body = &exchange->body;
    struct fgw_http_conn *conn = exchange->conn;
    uint64_t rate = conn->worker->server->options.min_body_rate_bytes_s;
    uint64_t begun_ms = fgw_loop_now_ms(conn->worker->loop);
    fgw_conn_set_read_deadline(conn->net, rate == 0 ? FGW_CONN_NO_DEADLINE
                                                    : begun_ms + FGW_HTTP_RATE_WINDOW_MS -
                                                          body->window_waited_ms);
    enum fgw_err err = fgw_conn_wait_readable(conn->net);
    body->window_waited_ms += fgw_loop_now_ms(conn->worker->loop) - begun_ms;
    if (err == FGW_OK && body->window_waited_ms < FGW_HTTP_RATE_WINDOW_MS) {
        return FGW_OK;
    }
    if (err != FGW_OK && err != FGW_ERR_TIMEOUT) {
        return err;
    }
    bool too_slow = rate != 0 && body->window_bytes < rate * (FGW_HTTP_RATE_WINDOW_MS / 1000);
    body->window_waited_ms = 0;
    body->window_bytes = 0;
    return too_slow ? FGW_ERR_REQUEST_TIMEOUT : FGW_OK;
}

static enum fgw_err send_continue(struct fgw_http_exchange *exchange)
{
    struct fgw_http_body *body = &exchange->body;
    bool wanted = body->continue_wanted && !exchange->response.head_sent;
    body->continue_wanted = false;
    return wanted ? fgw_conn_write(exchange->conn->net, FGW_LIT("HTTP/1.1 100 Continue\r\n\r\n"))
                  : FGW_OK;
}

/* The caller's memory for bytes of the body, and how much of it was filled. */
struct room {
    uint8_t *ptr;
    size_t size; /* 0: read into the connection's input */
    size_t len;
};

static enum fgw_err read_socket(struct fgw_http_exchange *exchange, uint8_t *out, size_t wanted,
                                size_t *out_got)
{
    struct fgw_http_conn *conn = exchange->conn;
    size_t got = 0;
    enum fgw_err err = fgw_conn_try_read(conn->net, out, wanted, &got);
    *out_got = got;
    conn->last_read_short = err == FGW_ERR_AGAIN || (got < wanted && !conn->is_tls);
    exchange->body.window_bytes += got;
    if (err == FGW_OK && got >= YIELD_ABOVE && got == wanted) {
        fgw_fiber_yield();
    }
    return err;
}

/* One read into the room or the empty input; never beyond the end of a body of known length. */
static enum fgw_err read_some(struct fgw_http_exchange *exchange, struct room *room)
{
    struct fgw_http_conn *conn = exchange->conn;
    struct fgw_http_body *body = &exchange->body;
    size_t wanted = body->kind == FGW_HTTP_BODY_CHUNKED || body->remaining > SIZE_MAX
                        ? FGW_HTTP_SCRATCH_SIZE
                        : (size_t)body->remaining;
    if (room->size > 0) {
        fgw_http_input_free(conn);
        wanted = wanted < room->size ? wanted : room->size;
        return read_socket(exchange, room->ptr, wanted, &room->len);
    }
    if (conn->input.ptr != NULL && conn->input.cap < wanted && !conn->input.is_body_buffer) {
        fgw_http_input_free(conn);
    }
    if (conn->input.ptr == NULL) {
        take_memory(conn->worker, &conn->input, wanted);
    }
    wanted = wanted < conn->input.cap ? wanted : conn->input.cap;
    conn->input.start = 0;
    return read_socket(exchange, conn->input.ptr, wanted, &conn->input.end);
}

static enum fgw_err fill(struct fgw_http_exchange *exchange, struct room *room)
{
    struct fgw_http_conn *conn = exchange->conn;
    enum fgw_err err = send_continue(exchange);
    conn->input.start = 0;
    conn->input.end = 0;
    while (err == FGW_OK) {
        if (conn->last_read_short) {
            fgw_http_input_trim(conn);
            err = wait_for_input(exchange);
            conn->last_read_short = false;
            if (err != FGW_OK) {
                break;
            }
        }
        err = read_some(exchange, room);
        if (err != FGW_ERR_AGAIN) {
            break;
        }
        err = FGW_OK;
    }
    return err == FGW_ERR_END ? FGW_ERR_INCOMPLETE_BODY : err;
}

static enum fgw_err take_piece(struct fgw_http_body *body, struct fgw_http_input *input,
                               struct fgw_bytes *out_piece)
{
    struct fgw_bytes view = fgw_http_input_view(input);
    if (body->kind == FGW_HTTP_BODY_LENGTH) {
        if (body->remaining == 0) {
            return FGW_ERR_END;
        }
        size_t len = body->remaining < view.len ? (size_t)body->remaining : view.len;
        if (len == 0) {
            return FGW_ERR_AGAIN;
        }
        *out_piece = fgw_bytes(view.ptr, len);
        body->remaining -= len;
        input->start += len;
        return FGW_OK;
    }
    size_t before = view.len;
    enum fgw_err err = fgw_http_chunked_next(&body->chunked, &view, out_piece);
    input->start += before - view.len;
    return err;
}

/* What was read straight to the room, as if it had come by the input. */
static bool take_room(struct fgw_http_body *body, const struct room *room,
                      struct fgw_bytes *out_piece)
{
    if (room->len == 0) {
        return false;
    }
    body->remaining -= room->len;
    *out_piece = fgw_bytes(room->ptr, room->len);
    return true;
}

enum fgw_err fgw_http_body_read(struct fgw_http_exchange *exchange, struct fgw_bytes *out_piece)
{
    return fgw_http_body_read_to(exchange, NULL, 0, out_piece);
}

enum fgw_err fgw_http_body_read_to(struct fgw_http_exchange *exchange, uint8_t *room_ptr,
                                   size_t size, struct fgw_bytes *out_piece)
{
    struct fgw_http_body *body = &exchange->body;
    size_t most = exchange->worker->server->body_buffer_size;
    struct room room = {room_ptr, size < most ? size : most, 0};
    if (body->kind != FGW_HTTP_BODY_LENGTH) {
        room.size = 0;
    }
    while (body->ended == FGW_OK) {
        enum fgw_err err = take_room(body, &room, out_piece)
                               ? FGW_OK
                               : take_piece(body, &exchange->conn->input, out_piece);
        if (err == FGW_OK) {
            body->continue_wanted = false; /* a client that sends already does not wait */
            return FGW_OK;
        }
        if (err == FGW_ERR_END) {
            body->ended = FGW_ERR_END;
            break;
        }
        if (err == FGW_ERR_AGAIN) {
            err = fill(exchange, &room);
        }
        if (err != FGW_OK) {
            return body_failed(exchange, err);
        }
    }
    if (body->ended == FGW_ERR_END && body->continue_wanted) {
        enum fgw_err err = send_continue(exchange);
        return err == FGW_OK ? FGW_ERR_END : body_failed(exchange, err);
    }
    return body->ended;
}

/* -- what the handler left --------------------------------------------------------------------- */

bool fgw_http_body_is_drainable(const struct fgw_http_exchange *exchange)
{
    const struct fgw_http_body *body = &exchange->body;
    if (body->ended != FGW_OK) {
        return body->ended == FGW_ERR_END && !body->continue_wanted;
    }
    struct fgw_bytes view = fgw_http_input_view(&exchange->conn->input);
    if (body->kind == FGW_HTTP_BODY_LENGTH) {
        bool is_coming = !body->continue_wanted || body->remaining <= view.len;
        return body->remaining <= FGW_HTTP_DRAIN_MAX && is_coming;
    }
    /* of unknown length: only when its end is here already */
    struct fgw_http_chunked ahead = body->chunked;
    struct fgw_bytes piece;
    enum fgw_err err;
    do {
        err = fgw_http_chunked_next(&ahead, &view, &piece);
    } while (err == FGW_OK);
    return err == FGW_ERR_END;
}

bool fgw_http_body_drain(struct fgw_http_exchange *exchange)
{
    struct fgw_bytes piece;
    uint64_t give_up_ms = fgw_clock_boot_ms() + DRAIN_TIME_MS;
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK && fgw_clock_boot_ms() < give_up_ms) {
        err = fgw_http_body_read(exchange, &piece);
    }
    return err == FGW_ERR_END;
}
