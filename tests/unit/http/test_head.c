/* test_head.c: a table of raw heads, right and wrong, each given whole, byte by byte, and cut off;
 * what a right one means; answers as the client reads them. */
#include "cmocka_all.h"

#include <stdio.h>

#include "base/check.h"
#include "http/head.h"

enum { MAX_HEAD = 32 * 1024 };

/* Scan (byte by byte or at once) and parse, as the server does. */
static enum fgw_err read_head(struct fgw_arena *arena, struct fgw_bytes raw, bool bytewise,
                              struct fgw_http_request *out_request)
{
    struct fgw_http_scan scan = {0};
    size_t end = 0;
    const char *reason = NULL;
    enum fgw_err err = FGW_ERR_AGAIN;
    for (size_t len = bytewise ? 0 : raw.len; len <= raw.len && err == FGW_ERR_AGAIN; len++) {
        err = fgw_http_head_scan(&scan, fgw_bytes(raw.ptr, len), MAX_HEAD, &end, &reason);
    }
    if (err == FGW_OK) {
        struct fgw_bytes head = fgw_bytes_sub(raw, scan.head_start, end - scan.head_start);
        err = fgw_http_head_parse(arena, head, out_request, &reason);
    }
    if (err != FGW_OK && err != FGW_ERR_AGAIN && err != FGW_ERR_HEADER_SECTION_TOO_LARGE) {
        assert_non_null(reason);
    }
    return err;
}

#define H "Host: a\r\n"
#define OK11(lines) "PUT /b/k HTTP/1.1\r\n" H lines "\r\n"

struct row {
    const char *raw;
    size_t len;
    enum fgw_err expected;
};
#define ROW(raw, err) \
    { \
        raw, sizeof(raw) - 1, FGW_##err \
    }

static const struct row rows[] = {
    /* right */
    ROW(OK11(""), OK),
    ROW("\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n", OK),
    ROW("GET / HTTP/1.0\r\n\r\n", OK),
    ROW("GET http://b.example:8078/k?x HTTP/1.1\r\n" H "\r\n", OK),
    ROW("GET http://b.example HTTP/1.1\r\n" H "\r\n", OK),
    ROW("OPTIONS * HTTP/1.1\r\n" H "\r\n", OK),
    ROW("GET / HTTP/1.1\r\nHost:\r\n\r\n", OK),
    ROW("GET / HTTP/1.1\r\nhOST:[::1]:8078\r\n\r\n", OK),
    ROW("PATCH / HTTP/1.1\r\n" H "\r\n", OK),
    ROW(OK11("Content-Length: 0\r\n"), OK),
    ROW(OK11("Content-Length:   17 \r\n"), OK),
    ROW(OK11("Transfer-Encoding: Chunked\r\n"), OK),
    ROW(OK11("x-amz-meta-a: \xc3\xa4\t b\r\n"), OK),
    ROW(OK11("x-empty:\r\n"), OK),
    ROW(OK11("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"), OK),
    ROW(OK11("Expect: 200-ok\r\nContent-Length: 1\r\n"), OK),
    /* two lengths, in every disguise */
    ROW(OK11("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: 3\r\nContent-Length: 3\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: 3\r\ncontent-length: 4\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: 3, 3\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: 3 3\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: -1\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: +1\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: 0x10\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: 1.0\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length:\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: \xd9\xa3\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: 18446744073709551616\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length: 9223372036854775808\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length : 3\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Content-Length\t: 3\r\n"), ERR_BAD_REQUEST),
    ROW(OK11(" Content-Length: 3\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding : chunked\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding: chunked, chunked\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding: gzip, chunked\r\n"), ERR_NOT_IMPLEMENTED),
    ROW(OK11("Transfer-Encoding: chunked, gzip\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding: xchunked\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding: chunkedx\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding: \"chunked\"\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding: identity\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding:\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding: chunked;q=1\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("Transfer-Encoding: \x0b"
             "chunked\r\n"),
        ERR_BAD_REQUEST),
    ROW("PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", ERR_BAD_REQUEST),
    ROW(OK11("X: a\r\n\tTransfer-Encoding: chunked\r\n"), ERR_BAD_REQUEST),
    /* line ends, folding, control characters */
    ROW("GET / HTTP/1.1\nHost: a\n\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost: a\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost: a\r\n\n", ERR_BAD_REQUEST),
    ROW("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", ERR_BAD_REQUEST),
    ROW(OK11("X: a\r\n b\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("X:\r\n a\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("X: a\0b\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("X\0: a\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("X: a\x01\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("X: a\x7f\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("X: a\x0c\r\n"), ERR_BAD_REQUEST),
    ROW("\0GET / HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET /\0 HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    /* names */
    ROW(OK11("X Y: a\r\n"), ERR_BAD_REQUEST),
    ROW(OK11(": a\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("NoColon\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("X(: a\r\n"), ERR_BAD_REQUEST),
    ROW(OK11("\xc3\xa4: a\r\n"), ERR_BAD_REQUEST),
    ROW(" GET / HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    /* Host */
    ROW("GET / HTTP/1.1\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.1\r\nHost : a\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET http://a/ HTTP/1.1\r\n\r\n", ERR_BAD_REQUEST),
    /* target */
    ROW("GET /k#f HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET /k?q#f HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET * HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET k HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET ftp://a/ HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET http:/// HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET http://u@a/ HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET /a b HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET  /a HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET /a  HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET /a\tb HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET\t/ HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET /\x7f HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    /* versions and methods */
    ROW("GET /\r\n", ERR_BAD_REQUEST),
    ROW("GET /\r\n\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/0.9\r\n" H "\r\n", ERR_HTTP_VERSION_NOT_SUPPORTED),
    ROW("GET / HTTP/2.0\r\n" H "\r\n", ERR_HTTP_VERSION_NOT_SUPPORTED),
    ROW("GET / HTTP/1.2\r\n" H "\r\n", ERR_HTTP_VERSION_NOT_SUPPORTED),
    ROW("GET / HTTP/3.0\r\n" H "\r\n", ERR_HTTP_VERSION_NOT_SUPPORTED),
    ROW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ERR_HTTP_VERSION_NOT_SUPPORTED),
    ROW("GET / HTTP/1.1 \r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/11\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTP/1.10\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET / http/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET / HTTPS/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("GET / RTSP/1.0\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("BREW / HTTP/1.1\r\n" H "\r\n", ERR_NOT_IMPLEMENTED),
    ROW("get / HTTP/1.1\r\n" H "\r\n", ERR_NOT_IMPLEMENTED),
    ROW("GETS / HTTP/1.1\r\n" H "\r\n", ERR_NOT_IMPLEMENTED),
    ROW("CONNECT a:443 HTTP/1.1\r\n" H "\r\n", ERR_NOT_IMPLEMENTED),
    ROW("G@T / HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("\x16\x03\x01\x02", ERR_BAD_REQUEST),
    ROW("\xff", ERR_BAD_REQUEST),
    ROW("\rGET / HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("\r\n\rGET / HTTP/1.1\r\n" H "\r\n", ERR_BAD_REQUEST),
    ROW("HTTP/1.1 200 OK\r\n\r\n", ERR_BAD_REQUEST),
};

static void rows_give_their_error(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < FGW_COUNT_OF(rows); i++) {
        for (int bytewise = 0; bytewise < 2; bytewise++) {
            struct fgw_arena arena;
            struct fgw_http_request request = {0};
            fgw_arena_init(&arena, 0);
            enum fgw_err err =
                read_head(&arena, fgw_bytes(rows[i].raw, rows[i].len), bytewise == 1, &request);
            if (err != rows[i].expected) {
                (void)fprintf(stderr, "row %zu (%s): %s instead of %s\n%s\n", i,
                              bytewise ? "bytewise" : "whole", fgw_err_name(err),
                              fgw_err_name(rows[i].expected), rows[i].raw);
                wrong++;
            }
            fgw_arena_deinit(&arena);
        }
    }
    assert_int_equal(wrong, 0);
}

/* No beginning of a right head is taken for a whole or a wrong one. */
static void beginnings_want_more(void **state)
{
    static const char raw[] = "\r\nPUT /b/k?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    (void)state;
    for (size_t len = 0; len < sizeof raw - 1; len++) {
        struct fgw_http_scan scan = {0};
        size_t end;
        const char *reason;
        assert_int_equal(fgw_http_head_scan(&scan, fgw_bytes(raw, len), MAX_HEAD, &end, &reason),
                         FGW_ERR_AGAIN);
    }
}

static void fields_of_a_request(void **state)
{
    static const char raw[] = "PUT /b/k%20?partNumber=1&x HTTP/1.1\r\nHost: b.example:8078\r\n"
                              "EXPECT: 100-Continue\r\nContent-Length: 42\r\nX-A: 1\r\nx-a:  2 \r\n"
                              "Connection: close\r\n\r\nbody";
    (void)state;
    struct fgw_arena arena;
    struct fgw_http_request request = {.tls = true, .peer = "p"};
    fgw_arena_init(&arena, 0);
    assert_int_equal(read_head(&arena, fgw_bytes(raw, sizeof raw - 1), false, &request), FGW_OK);
    assert_int_equal(request.method, FGW_HTTP_PUT);
    assert_true(fgw_bytes_eq_str(request.method_text, "PUT"));
    assert_true(fgw_bytes_eq_str(request.target, "/b/k%20?partNumber=1&x"));
    assert_true(fgw_bytes_eq_str(request.raw_path, "/b/k%20"));
    assert_true(fgw_bytes_eq_str(request.raw_query, "partNumber=1&x"));
    assert_true(fgw_bytes_eq_str(request.host, "b.example:8078"));
    assert_true(request.has_content_length);
    assert_int_equal(request.content_length, 42);
    assert_true(request.expect_continue);
    assert_false(request.keep_alive);
    assert_false(request.chunked);
    assert_true(request.tls);
    assert_string_equal(request.peer, "p");
    assert_int_equal(request.header_count, 6);
    assert_int_equal(fgw_http_header_occurrences(&request, "X-a"), 2);
    assert_true(fgw_bytes_eq_str(fgw_http_header_get(&request, "x-A"), "1"));
    assert_true(fgw_bytes_eq_str(request.headers[4].value, "2"));
    assert_null(fgw_http_header_get(&request, "x-b").ptr);
    fgw_arena_deinit(&arena);
}

struct target_row {
    const char *target;
    const char *path;
    const char *query; /* NULL: there is no '?' */
    const char *host;
};

static void forms_of_a_target(void **state)
{
    static const struct target_row targets[] = {
        {"/", "/", NULL, "a"},
        {"/?", "/", "", "a"},
        {"//k//", "//k//", NULL, "a"},
        {"/k?a?b", "/k", "a?b", "a"},
        {"http://h:1/k?q", "/k", "q", "h:1"},
        {"HTTPS://h", "/", NULL, "h"},
        {"http://h?q", "/", "q", "h"},
    };
    (void)state;
    for (size_t i = 0; i < FGW_COUNT_OF(targets); i++) {
        char raw[200];
        struct fgw_arena arena;
        struct fgw_http_request request = {0};
        fgw_arena_init(&arena, 0);
        int len =
            snprintf(raw, sizeof raw, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", targets[i].target);
        assert_int_equal(read_head(&arena, fgw_bytes(raw, (size_t)len), false, &request), FGW_OK);
        assert_true(fgw_bytes_eq_str(request.raw_path, targets[i].path));
        assert_true(fgw_bytes_eq_str(request.host, targets[i].host));
        assert_int_equal(request.raw_query.ptr == NULL, targets[i].query == NULL);
        assert_true(targets[i].query == NULL ||
                    fgw_bytes_eq_str(request.raw_query, targets[i].query));
        fgw_arena_deinit(&arena);
    }
}

static void expect_counts_only_with_a_body(void **state)
{
    static const struct {
        const char *lines;
        bool expected;
    } cases[] = {
        {"Expect: 100-continue\r\nContent-Length: 1\r\n", true},
        {"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", true},
        {"Expect: 100-continue\r\nContent-Length: 0\r\n", true},
        {"Expect: 100-continue\r\n", false},
        {"Expect: 100\r\nContent-Length: 1\r\n", false},
        {"Expect:\r\nContent-Length: 1\r\n", false},
    };
    (void)state;
    for (size_t i = 0; i < FGW_COUNT_OF(cases); i++) {
        char raw[200];
        struct fgw_arena arena;
        struct fgw_http_request request = {0};
        fgw_arena_init(&arena, 0);
        int len = snprintf(raw, sizeof raw, "PUT / HTTP/1.1\r\nHost: a\r\n%s\r\n", cases[i].lines);
        assert_int_equal(read_head(&arena, fgw_bytes(raw, (size_t)len), false, &request), FGW_OK);
        assert_int_equal(request.expect_continue, cases[i].expected);
        fgw_arena_deinit(&arena);
    }
}

static void limits_of_a_head(void **state)
{
    (void)state;
    struct fgw_buf raw;
    struct fgw_arena arena;
    struct fgw_http_request request = {0};
    fgw_buf_init(&raw, 0);
    fgw_arena_init(&arena, 0);
    (void)fgw_buf_append_str(&raw, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    while (raw.len < MAX_HEAD - 4) {
        (void)fgw_buf_append_byte(&raw, 'x');
    }
    (void)fgw_buf_append_str(&raw, "\r\n\r\n");
    assert_int_equal(raw.len, MAX_HEAD);
    assert_int_equal(read_head(&arena, fgw_buf_bytes(&raw), false, &request), FGW_OK);
    raw.len -= 4;
    (void)fgw_buf_append_str(&raw, "x\r\n\r\n");
    assert_int_equal(read_head(&arena, fgw_buf_bytes(&raw), false, &request),
                     FGW_ERR_HEADER_SECTION_TOO_LARGE);
    assert_int_equal(read_head(&arena, fgw_bytes(raw.ptr, raw.len - 4), false, &request),
                     FGW_ERR_AGAIN);
    fgw_buf_clear(&raw);
    (void)fgw_buf_append_str(&raw, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 511; i++) {
        (void)fgw_buf_append_str(&raw, "a:\r\n");
    }
    (void)fgw_buf_append_str(&raw, "\r\n");
    assert_int_equal(read_head(&arena, fgw_buf_bytes(&raw), false, &request), FGW_OK);
    assert_int_equal(request.header_count, 512);
    raw.len -= 2;
    (void)fgw_buf_append_str(&raw, "a:\r\n\r\n");
    assert_int_equal(read_head(&arena, fgw_buf_bytes(&raw), false, &request),
                     FGW_ERR_HEADER_SECTION_TOO_LARGE);
    fgw_buf_deinit(&raw);
    fgw_arena_deinit(&arena);
}

static void answers_are_read(void **state)
{
    static const char raw[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nX: y\r\n\r\n";
    static const char *const wrong[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "nonsense\r\n\r\n",
    };
    (void)state;
    struct fgw_arena arena;
    struct fgw_http_response_head head = {0};
    const char *reason;
    fgw_arena_init(&arena, 0);
    assert_int_equal(
        fgw_http_response_head_parse(&arena, fgw_bytes(raw, sizeof raw - 1), &head, &reason),
        FGW_OK);
    assert_int_equal(head.status, 404);
    assert_int_equal(head.content_length, 5);
    assert_int_equal(head.header_count, 2);
    assert_true(head.has_content_length && head.keep_alive && !head.chunked);
    for (size_t i = 0; i < FGW_COUNT_OF(wrong); i++) {
        assert_int_equal(
            fgw_http_response_head_parse(&arena, fgw_bytes_str(wrong[i]), &head, &reason),
            FGW_ERR_PARSE);
    }
    fgw_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_give_their_error),
        cmocka_unit_test(beginnings_want_more),
        cmocka_unit_test(fields_of_a_request),
        cmocka_unit_test(forms_of_a_target),
        cmocka_unit_test(expect_counts_only_with_a_body),
        cmocka_unit_test(limits_of_a_head),
        cmocka_unit_test(answers_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
