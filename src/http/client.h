/* client.h: HTTP/1.1 client for requests between parts of FGW (block API, admin socket, health):
 * one server a client, connections kept and reused, everything in fibers, with deadlines.
 *
 * A client and its calls belong to the loop they were made on. A call is used by one fiber:
 * begin, write the body, read the head of the answer, read its body, end. Nothing is retried here
 * but by fgw_http_fetch, which may: a request on a kept connection that turns out dead.
 */
#ifndef FGW_HTTP_CLIENT_H
#define FGW_HTTP_CLIENT_H

#include "http/message.h"

struct fgw_tls_context;
struct fgw_http_client;
struct fgw_http_call;

struct fgw_http_client_options {
    const char *address;         /* "host:port", "[::1]:9010", "unix:/path" */
    const char *host;            /* Host header; NULL: made from address */
    struct fgw_tls_context *tls; /* NULL: plain */
    const char *tls_name;        /* to verify; NULL: the host of address */
    unsigned max_idle;           /* connections kept for reuse; 0: 16 */
    uint64_t idle_timeout_ms;    /* how long; 0: 30 s */
    uint64_t connect_timeout_ms; /* 0: 5 s */
};

struct fgw_http_client *fgw_http_client_new(const struct fgw_http_client_options *options);
/* No call may be open. Takes NULL. */
void fgw_http_client_free(struct fgw_http_client *client);

struct fgw_http_call_options {
    const char *method;
    struct fgw_bytes target;               /* "/path?query", already encoded */
    const struct fgw_http_header *headers; /* besides Host and the framing; sent as given */
    size_t header_count;
    int64_t content_length; /* of the body; 0: none; -1: unknown (sent chunked) */
    uint64_t deadline_ms;   /* of the whole call, on the clock of fgw_loop_now_ms; 0: none */
};

struct fgw_http_answer {
    int status;
    const struct fgw_http_header *headers; /* live until the call ends */
    size_t header_count;
    bool has_content_length;
    uint64_t content_length;
};

/* Takes a kept connection or makes one. FGW_ERR_UNAVAILABLE, FGW_ERR_NOT_FOUND (name),
 * FGW_ERR_TIMEOUT, FGW_ERR_CLIENT_GONE (TLS); details in *error (may be NULL). */
enum fgw_err fgw_http_call_begin(struct fgw_http_client *client,
                                 const struct fgw_http_call_options *options,
                                 struct fgw_http_call **out_call,
                                 struct fgw_error *error) FGW_MUST_CHECK;
/* Part of the body, as announced. After an error the server may still have answered (refused):
 * fgw_http_call_answer tells. */
enum fgw_err fgw_http_call_write(struct fgw_http_call *call, struct fgw_bytes bytes) FGW_MUST_CHECK;
/* Ends the request and waits for the head of the final answer. FGW_ERR_PARSE for an answer that is
 * no HTTP, FGW_ERR_TIMEOUT, FGW_ERR_CLIENT_GONE (no answer), FGW_ERR_TOO_LARGE (head). */
enum fgw_err fgw_http_call_answer(struct fgw_http_call *call,
                                  struct fgw_http_answer *out_answer) FGW_MUST_CHECK;
/* Next piece of the answer's body, valid until the next call; FGW_ERR_END behind the last one;
 * FGW_ERR_CLIENT_GONE when it breaks off, FGW_ERR_TIMEOUT, FGW_ERR_PARSE (chunked coding). */
enum fgw_err fgw_http_call_read(struct fgw_http_call *call,
                                struct fgw_bytes *out_piece) FGW_MUST_CHECK;
/* True when the request went out on a kept connection and no byte of an answer came: it may never
 * have been executed, and a repetition on a fresh connection is worth while. */
bool fgw_http_call_maybe_stale(const struct fgw_http_call *call);
/* Keeps the connection when the answer was read to its end, else closes it. Takes NULL. */
void fgw_http_call_end(struct fgw_http_call *call);

/* A whole request: options->content_length is replaced by body.len; the answer's body is appended
 * to `out` (FGW_ERR_TOO_LARGE above its maximum). Repeats once when the kept connection was dead
 * and the method is idempotent. */
enum fgw_err fgw_http_fetch(struct fgw_http_client *client,
                            const struct fgw_http_call_options *options, struct fgw_bytes body,
                            int *out_status, struct fgw_buf *out,
                            struct fgw_error *error) FGW_MUST_CHECK;

#endif
