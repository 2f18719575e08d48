/* fuzz_http_head.c: any bytes as input of a connection. Read whole and byte by byte they must give
 * the same; an accepted head must keep the promises of message.h; what follows it is decoded as a
 * chunked body, cut in two ways. The same bytes are read as an answer, too. */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "http/chunked.h"
#include "http/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_HEAD = 2048 };

static enum fgw_err scan(struct fgw_bytes raw, size_t first, struct fgw_http_scan *scan_state,
                         size_t *out_end)
{
    const char *reason = NULL;
    enum fgw_err err = FGW_ERR_AGAIN;
    *scan_state = (struct fgw_http_scan){0};
    for (size_t len = first; len <= raw.len && err == FGW_ERR_AGAIN; len++) {
        err = fgw_http_head_scan(scan_state, fgw_bytes(raw.ptr, len), MAX_HEAD, out_end, &reason);
    }
    FGW_CHECK(err != FGW_ERR_BAD_REQUEST || reason != NULL);
    return err;
}

static bool lies_within(struct fgw_bytes part, struct fgw_bytes whole)
{
    return part.len == 0 || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

static void check_request(const struct fgw_http_request *request, struct fgw_bytes head)
{
    FGW_CHECK(request->version_minor <= 1);
    FGW_CHECK(request->raw_path.len > 0);
    FGW_CHECK(request->raw_path.ptr[0] == '/' || fgw_bytes_eq_str(request->raw_path, "*"));
    FGW_CHECK(fgw_bytes_find_byte(request->target, '#') == SIZE_MAX);
    FGW_CHECK(!(request->chunked && request->has_content_length));
    FGW_CHECK(!request->chunked || request->version_minor == 1);
    FGW_CHECK(fgw_http_header_occurrences(request, "host") + (request->version_minor == 0) >= 1);
    FGW_CHECK(fgw_http_header_occurrences(request, "host") <= 1);
    FGW_CHECK(fgw_http_header_occurrences(request, "content-length") <= 1);
    FGW_CHECK(fgw_http_header_occurrences(request, "transfer-encoding") <= 1);
    FGW_CHECK(lies_within(request->target, head) && lies_within(request->host, head));
    for (size_t i = 0; i < request->header_count; i++) {
        FGW_CHECK(request->headers[i].name.len > 0);
        FGW_CHECK(lies_within(request->headers[i].name, head));
        FGW_CHECK(lies_within(request->headers[i].value, head));
        FGW_CHECK(fgw_bytes_find_byte(request->headers[i].value, '\n') == SIZE_MAX);
        FGW_CHECK(fgw_bytes_find_byte(request->headers[i].value, '\r') == SIZE_MAX);
        FGW_CHECK(fgw_bytes_find_byte(request->headers[i].value, 0) == SIZE_MAX);
    }
}

struct decoded {
    enum fgw_err err;
    size_t data;
    uint64_t sum;
};

static struct decoded decode(struct fgw_bytes coded, size_t step)
{
    struct fgw_http_chunked chunked = {0};
    struct decoded decoded = {.err = FGW_ERR_AGAIN};
    for (size_t at = 0; at < coded.len && decoded.err == FGW_ERR_AGAIN; at += step) {
        struct fgw_bytes input = fgw_bytes_sub(coded, at, step);
        struct fgw_bytes piece;
        while ((decoded.err = fgw_http_chunked_next(&chunked, &input, &piece)) == FGW_OK) {
            FGW_CHECK(piece.len > 0);
            decoded.data += piece.len;
            for (size_t i = 0; i < piece.len; i++) {
                decoded.sum = decoded.sum * 31 + piece.ptr[i];
            }
        }
    }
    return decoded;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_bytes raw = fgw_bytes(data, size);
    struct fgw_http_scan whole_scan;
    struct fgw_http_scan bytewise_scan;
    size_t end = 0;
    size_t bytewise_end = 0;
    struct fgw_arena arena;
    const char *reason = NULL;
    fgw_arena_init(&arena, 0);
    enum fgw_err whole = scan(raw, raw.len, &whole_scan, &end);
    enum fgw_err bytewise = scan(raw, 0, &bytewise_scan, &bytewise_end);
    FGW_CHECK((whole == FGW_OK) == (bytewise == FGW_OK) || size > MAX_HEAD);
    if (whole == FGW_OK) {
        struct fgw_http_request request = {0};
        struct fgw_bytes head =
            fgw_bytes_sub(raw, whole_scan.head_start, end - whole_scan.head_start);
        if (fgw_http_head_parse(&arena, head, &request, &reason) == FGW_OK) {
            check_request(&request, head);
        }
        FGW_CHECK(end == bytewise_end || size > MAX_HEAD);
        struct fgw_bytes body = fgw_bytes_sub(raw, end, SIZE_MAX);
        struct decoded at_once = decode(body, body.len + 1);
        struct decoded in_steps = decode(body, 1 + body.len % 7);
        FGW_CHECK(at_once.err == in_steps.err && at_once.data == in_steps.data &&
                  at_once.sum == in_steps.sum);
    }
    struct fgw_http_response_head answer;
    (void)!fgw_http_response_head_parse(&arena, raw, &answer, &reason);
    fgw_arena_deinit(&arena);
    return 0;
}
