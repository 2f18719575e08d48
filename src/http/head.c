/* head.c: see head.h. */
#include "http/head.h"

#include <llhttp.h>

enum { HEADERS_FIRST = 24, HEADERS_MAX = 512 };

/* -- characters ------------------------------------------------------------------------------- */

enum { TOKEN = 1, AUTHORITY = 2 };

/* tchar of RFC 9110 section 5.6.2; characters of a registered name, address or port (RFC 3986
 * section 3.2.2). */
static const uint8_t classes[256] = {
    ['0' ... '9'] = TOKEN | AUTHORITY,
    ['A' ... 'Z'] = TOKEN | AUTHORITY,
    ['a' ... 'z'] = TOKEN | AUTHORITY,
    ['-'] = TOKEN | AUTHORITY,
    ['.'] = TOKEN | AUTHORITY,
    ['_'] = TOKEN | AUTHORITY,
    ['~'] = TOKEN | AUTHORITY,
    ['!'] = TOKEN | AUTHORITY,
    ['$'] = TOKEN | AUTHORITY,
    ['%'] = TOKEN | AUTHORITY,
    ['&'] = TOKEN | AUTHORITY,
    ['\''] = TOKEN | AUTHORITY,
    ['*'] = TOKEN | AUTHORITY,
    ['+'] = TOKEN | AUTHORITY,
    ['#'] = TOKEN,
    ['^'] = TOKEN,
    ['`'] = TOKEN,
    ['|'] = TOKEN,
    ['('] = AUTHORITY,
    [')'] = AUTHORITY,
    [':'] = AUTHORITY,
    [';'] = AUTHORITY,
    ['='] = AUTHORITY,
    ['['] = AUTHORITY,
    [']'] = AUTHORITY,
};

static bool consists_of(struct fgw_bytes text, uint8_t class)
{
    uint8_t common = class;
    for (size_t i = 0; i < text.len; i++) {
        common &= classes[text.ptr[i]];
    }
    return common == class;
}

/* -- finding the end --------------------------------------------------------------------------- */

/* HTTP/0.9 has no version, and its sender waits for an answer after this line. */
static enum fgw_err check_request_line(struct fgw_bytes line, const char **out_reason)
{
    if (line.len < 9 || memcmp(line.ptr + line.len - 9, " HTTP/", 6) != 0) {
        *out_reason = "The request line has no HTTP version.";
        return FGW_ERR_BAD_REQUEST;
    }
    return FGW_OK;
}

/* `end`: offset of the LF of the line. FGW_OK when the head ends with it. */
static enum fgw_err scan_line(struct fgw_http_scan *scan, struct fgw_bytes bytes, size_t end,
                              const char **out_reason)
{
    size_t len = end - scan->line_start; /* with the CR */
    if (len == 0 || bytes.ptr[end - 1] != '\r') {
        *out_reason = "A line of the request head ends without CR.";
        return FGW_ERR_BAD_REQUEST;
    }
    struct fgw_bytes line = fgw_bytes(bytes.ptr + scan->line_start, len - 1);
    scan->line_start = end + 1;
    if (line.len == 0) {
        if (scan->in_head) {
            return FGW_OK;
        }
        scan->head_start = end + 1;
        return FGW_ERR_AGAIN;
    }
    if (!scan->has_request_line) {
        scan->has_request_line = true;
        enum fgw_err err = check_request_line(line, out_reason);
        return err == FGW_OK ? FGW_ERR_AGAIN : err;
    }
    return FGW_ERR_AGAIN;
}

/* The first byte that is no line end tells other protocols (TLS, binary) at once. */
static enum fgw_err check_start(struct fgw_http_scan *scan, struct fgw_bytes bytes,
                                const char **out_reason)
{
    struct fgw_bytes line = fgw_bytes_sub(bytes, scan->line_start, SIZE_MAX);
    if (scan->in_head || line.len == 0 || line.ptr[0] == '\n') {
        return FGW_OK;
    }
    uint8_t lower = line.ptr[0] | 0x20;
    bool is_line_end = line.ptr[0] == '\r' && (line.len == 1 || line.ptr[1] == '\n');
    if (!is_line_end && (lower < 'a' || lower > 'z')) {
        *out_reason = line.ptr[0] == 0x16 ? "This port speaks plain HTTP, not TLS."
                                          : "This is not an HTTP request.";
        return FGW_ERR_BAD_REQUEST;
    }
    scan->in_head = !is_line_end;
    return FGW_OK;
}

enum fgw_err fgw_http_head_scan(struct fgw_http_scan *scan, struct fgw_bytes bytes,
                                size_t max_bytes, size_t *out_end, const char **out_reason)
{
    while (scan->at < bytes.len) {
        enum fgw_err err = check_start(scan, bytes, out_reason);
        if (err != FGW_OK) {
            return err;
        }
        const uint8_t *lf = memchr(bytes.ptr + scan->at, '\n', bytes.len - scan->at);
        if (lf == NULL) {
            scan->at = bytes.len;
            break;
        }
        size_t end = (size_t)(lf - bytes.ptr);
        scan->at = end + 1;
        err = scan_line(scan, bytes, end, out_reason);
        if (err == FGW_OK && end + 1 - scan->head_start <= max_bytes) {
            *out_end = end + 1;
            return FGW_OK;
        }
        if (err != FGW_OK && err != FGW_ERR_AGAIN) {
            return err;
        }
    }
    if (bytes.len > max_bytes) {
        *out_reason = NULL;
        return FGW_ERR_HEADER_SECTION_TOO_LARGE;
    }
    return FGW_ERR_AGAIN;
}

enum fgw_http_method fgw_http_head_guess_method(struct fgw_bytes head)
{
    return fgw_bytes_starts_with(head, FGW_LIT("HEAD ")) ? FGW_HTTP_HEAD : FGW_HTTP_OTHER;
}

/* -- reading with llhttp ----------------------------------------------------------------------- */

struct builder {
    struct fgw_arena *arena;
    struct fgw_bytes target;
    struct fgw_http_header *headers;
    size_t count;
    size_t cap;
    bool value_open; /* the last header has its value: the next field begins a new one */
    bool too_many;
    bool complete;
    bool keep_alive;
};

/* Spans of one buffer arrive whole or in neighbouring pieces. */
static void join(struct fgw_bytes *view, const char *at, size_t len)
{
    if (view->ptr == NULL) {
        *view = fgw_bytes(at, len);
    } else {
        view->len = (size_t)((const uint8_t *)at - view->ptr) + len;
    }
}

static bool add_header(struct builder *builder)
{
    if (builder->count == builder->cap) {
        if (builder->cap >= HEADERS_MAX) {
            builder->too_many = true;
            return false;
        }
        size_t cap = builder->cap == 0 ? HEADERS_FIRST : builder->cap * 2;
        cap = cap > HEADERS_MAX ? HEADERS_MAX : cap;
        struct fgw_http_header *grown =
            fgw_arena_alloc(builder->arena, cap * sizeof *builder->headers);
        if (builder->count > 0) {
            memcpy(grown, builder->headers, builder->count * sizeof *grown);
        }
        builder->headers = grown;
        builder->cap = cap;
    }
    builder->headers[builder->count++] = (struct fgw_http_header){0};
    builder->value_open = false;
    return true;
}

static int on_url(llhttp_t *parser, const char *at, size_t len)
{
    struct builder *builder = parser->data;
    join(&builder->target, at, len);
    return 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t len)
{
    struct builder *builder = parser->data;
    if ((builder->count == 0 || builder->value_open) && !add_header(builder)) {
        return -1;
    }
    join(&builder->headers[builder->count - 1].name, at, len);
    return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t len)
{
    struct builder *builder = parser->data;
    join(&builder->headers[builder->count - 1].value, at, len);
    builder->value_open = true;
    return 0;
}

static int on_header_value_complete(llhttp_t *parser)
{
    struct builder *builder = parser->data;
    builder->value_open = true; /* also of an empty value, which makes no span */
    return 0;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct builder *builder = parser->data;
    builder->complete = true;
    builder->keep_alive = llhttp_should_keep_alive(parser) != 0;
    return HPE_PAUSED; /* the body is not llhttp's business */
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
};

/* Lines as llhttp might forgive them: obsolete folding, empty names, CR or NUL inside. */
static bool lines_are_clean(struct fgw_bytes head, const char **out_reason)
{
    size_t start = 0;
    while (start < head.len) {
        const uint8_t *lf = memchr(head.ptr + start, '\n', head.len - start);
        size_t end = lf == NULL ? head.len : (size_t)(lf - head.ptr);
        if (lf == NULL || end == start || head.ptr[end - 1] != '\r') {
            *out_reason = "A line of the request head ends without CR.";
            return false;
        }
        if (start > 0 && (head.ptr[start] == ' ' || head.ptr[start] == '\t')) {
            *out_reason = "Header lines must not be folded.";
            return false;
        }
        if (head.ptr[start] == ':') {
            *out_reason = "A header has no name.";
            return false;
        }
        if (memchr(head.ptr + start, '\r', end - 1 - start) != NULL) {
            *out_reason = "A line of the request head contains CR.";
            return false;
        }
        start = end + 1;
    }
    if (head.len > 0 && memchr(head.ptr, 0, head.len) != NULL) {
        *out_reason = "The request head contains NUL.";
        return false;
    }
    return true;
}

/* Exactly "METHOD target HTTP/1.x" with single spaces: llhttp takes more of them, and a proxy in
 * front may split such a line elsewhere. */
static enum fgw_err check_parts(struct fgw_bytes head, const char **out_reason)
{
    size_t end = fgw_bytes_find_byte(head, '\r');
    struct fgw_bytes rest = fgw_bytes_sub(head, 0, end);
    struct fgw_bytes method;
    struct fgw_bytes target;
    *out_reason = "The request line is not valid.";
    if (!fgw_bytes_split(&rest, ' ', &method) || method.len == 0 || !consists_of(method, TOKEN) ||
        !fgw_bytes_split(&rest, ' ', &target) || target.len == 0 || rest.len != 8 ||
        !fgw_bytes_starts_with(rest, FGW_LIT("HTTP/")) || rest.ptr[6] != '.' || rest.ptr[5] < '0' ||
        rest.ptr[5] > '9' || rest.ptr[7] < '0' || rest.ptr[7] > '9') {
        return FGW_ERR_BAD_REQUEST;
    }
    if (rest.ptr[5] != '1' || rest.ptr[7] > '1') {
        *out_reason = "Only HTTP/1.1 and HTTP/1.0 are supported.";
        return FGW_ERR_HTTP_VERSION_NOT_SUPPORTED;
    }
    return FGW_OK;
}

/* Every failure of llhttp, told apart as far as the answer differs. */
static enum fgw_err llhttp_failed(const llhttp_t *parser, const struct builder *builder,
                                  const char **out_reason)
{
    switch (llhttp_get_errno(parser)) {
    case HPE_INVALID_METHOD:
        *out_reason = "The request method is not known.";
        return FGW_ERR_NOT_IMPLEMENTED;
    case HPE_INVALID_URL:
        *out_reason = "The request target is not valid.";
        return FGW_ERR_BAD_REQUEST;
    case HPE_INVALID_CONTENT_LENGTH:
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        *out_reason = "Content-Length is not valid.";
        return FGW_ERR_BAD_REQUEST;
    case HPE_INVALID_TRANSFER_ENCODING:
        *out_reason = "Transfer-Encoding is not valid.";
        return FGW_ERR_BAD_REQUEST;
    default:
        *out_reason =
            builder->too_many ? "There are too many headers." : "The request head is not valid.";
        return builder->too_many ? FGW_ERR_HEADER_SECTION_TOO_LARGE : FGW_ERR_BAD_REQUEST;
    }
}

/* -- own checks -------------------------------------------------------------------------------- */

struct framing {
    struct fgw_bytes host;
    struct fgw_bytes content_length;
    struct fgw_bytes transfer_encoding;
    struct fgw_bytes expect;
    unsigned hosts;
    unsigned content_lengths;
    unsigned transfer_encodings;
};

static void note_header(struct framing *framing, const struct fgw_http_header *header)
{
    switch (header->name.len) {
    case 4:
        if (fgw_bytes_ieq_str(header->name, "host")) {
            framing->host = header->value;
            framing->hosts++;
        }
        break;
    case 6:
        if (fgw_bytes_ieq_str(header->name, "expect")) {
            framing->expect = header->value;
        }
        break;
    case 14:
        if (fgw_bytes_ieq_str(header->name, "content-length")) {
            framing->content_length = header->value;
            framing->content_lengths++;
        }
        break;
    case 17:
        if (fgw_bytes_ieq_str(header->name, "transfer-encoding")) {
            framing->transfer_encoding = header->value;
            framing->transfer_encodings++;
        }
        break;
    default:
        break;
    }
}

static enum fgw_err bad(const char *reason, const char **out_reason)
{
    *out_reason = reason;
    return FGW_ERR_BAD_REQUEST;
}

static enum fgw_err check_transfer_encoding(const struct framing *framing, unsigned version_minor,
                                            const char **out_reason)
{
    if (version_minor == 0) {
        return bad("Transfer-Encoding is not part of HTTP/1.0.", out_reason);
    }
    if (framing->content_lengths > 0) {
        return bad("Content-Length and Transfer-Encoding exclude each other.", out_reason);
    }
    if (framing->transfer_encodings > 1) {
        return bad("Transfer-Encoding must not be repeated.", out_reason);
    }
    if (fgw_bytes_ieq_str(framing->transfer_encoding, "chunked")) {
        return FGW_OK;
    }
    struct fgw_bytes coding = framing->transfer_encoding;
    size_t tail = coding.len > 7 ? coding.len - 7 : 0;
    if (fgw_bytes_ieq_str(fgw_bytes_sub(coding, tail, SIZE_MAX), "chunked") && tail > 0 &&
        (coding.ptr[tail - 1] == ',' || coding.ptr[tail - 1] == ' ')) {
        *out_reason = "The only transfer coding supported is chunked.";
        return FGW_ERR_NOT_IMPLEMENTED;
    }
    return bad("Transfer-Encoding must be chunked.", out_reason);
}

static enum fgw_err check_framing(const struct framing *framing, struct fgw_http_request *request,
                                  const char **out_reason)
{
    if (framing->transfer_encodings > 0) {
        enum fgw_err err = check_transfer_encoding(framing, request->version_minor, out_reason);
        request->chunked = true;
        return err;
    }
    if (framing->content_lengths > 1) {
        return bad("Content-Length must not be repeated.", out_reason);
    }
    if (framing->content_lengths == 1) {
        if (fgw_bytes_to_u64(framing->content_length, &request->content_length) != FGW_OK ||
            request->content_length > INT64_MAX) {
            return bad("Content-Length is not valid.", out_reason);
        }
        request->has_content_length = true;
    }
    return FGW_OK;
}

static enum fgw_err check_host(const struct framing *framing, struct fgw_http_request *request,
                               const char **out_reason)
{
    if (framing->hosts > 1) {
        return bad("Host must not be repeated.", out_reason);
    }
    if (framing->hosts == 0 && request->version_minor > 0) {
        return bad("Host is missing.", out_reason);
    }
    if (!consists_of(framing->host, AUTHORITY)) {
        return bad("Host is not valid.", out_reason);
    }
    request->host = framing->host;
    return FGW_OK;
}

/* -- the target (RFC 9112 section 3.2) --------------------------------------------------------- */

static enum fgw_err cut_absolute_form(struct fgw_http_request *request, struct fgw_bytes *rest,
                                      const char **out_reason)
{
    size_t authority = fgw_bytes_find(*rest, FGW_LIT("://"), 0);
    struct fgw_bytes scheme = fgw_bytes_sub(*rest, 0, authority == SIZE_MAX ? 0 : authority);
    if (!fgw_bytes_ieq_str(scheme, "http") && !fgw_bytes_ieq_str(scheme, "https")) {
        return bad("The request target is not valid.", out_reason);
    }
    *rest = fgw_bytes_sub(*rest, authority + 3, SIZE_MAX);
    size_t end = 0;
    while (end < rest->len && rest->ptr[end] != '/' && rest->ptr[end] != '?') {
        end++;
    }
    request->host = fgw_bytes_sub(*rest, 0, end);
    *rest = fgw_bytes_sub(*rest, end, SIZE_MAX);
    if (request->host.len == 0 || !consists_of(request->host, AUTHORITY)) {
        return bad("The request target is not valid.", out_reason);
    }
    return FGW_OK;
}

static enum fgw_err split_target(struct fgw_http_request *request, const char **out_reason)
{
    struct fgw_bytes rest = request->target;
    if (fgw_bytes_find_byte(rest, '#') != SIZE_MAX) {
        return bad("The request target contains a fragment.", out_reason);
    }
    if (fgw_bytes_eq_str(rest, "*") && request->method == FGW_HTTP_OPTIONS) {
        request->raw_path = rest;
        return FGW_OK;
    }
    if (rest.len == 0 || rest.ptr[0] != '/') {
        enum fgw_err err = cut_absolute_form(request, &rest, out_reason);
        if (err != FGW_OK) {
            return err;
        }
    }
    size_t mark = fgw_bytes_find_byte(rest, '?');
    request->raw_path = fgw_bytes_sub(rest, 0, mark);
    if (mark != SIZE_MAX) {
        request->raw_query = fgw_bytes(rest.ptr + mark + 1, rest.len - mark - 1);
    }
    if (request->raw_path.len == 0) {
        request->raw_path = FGW_LIT("/");
    }
    return FGW_OK;
}

static enum fgw_http_method method_of(uint8_t llhttp_method)
{
    switch (llhttp_method) {
    case HTTP_GET:
        return FGW_HTTP_GET;
    case HTTP_HEAD:
        return FGW_HTTP_HEAD;
    case HTTP_PUT:
        return FGW_HTTP_PUT;
    case HTTP_POST:
        return FGW_HTTP_POST;
    case HTTP_DELETE:
        return FGW_HTTP_DELETE;
    case HTTP_OPTIONS:
        return FGW_HTTP_OPTIONS;
    default:
        return FGW_HTTP_OTHER;
    }
}

static enum fgw_err finish_request(struct builder *builder, const llhttp_t *parser,
                                   struct fgw_http_request *request, const char **out_reason)
{
    struct framing framing = {0};
    for (size_t i = 0; i < builder->count; i++) {
        builder->headers[i].value = fgw_bytes_trim(builder->headers[i].value);
        note_header(&framing, &builder->headers[i]);
    }
    request->headers = builder->headers;
    request->header_count = builder->count;
    request->target = builder->target;
    request->keep_alive = builder->keep_alive;
    enum fgw_err err = check_framing(&framing, request, out_reason);
    if (err == FGW_OK) {
        err = check_host(&framing, request, out_reason);
    }
    if (err == FGW_OK && parser->method == HTTP_CONNECT) {
        *out_reason = "CONNECT is not supported.";
        err = FGW_ERR_NOT_IMPLEMENTED;
    }
    if (err == FGW_OK) {
        err = split_target(request, out_reason);
    }
    /* an empty body too: botocore waits for the interim answer then, and reads the next answer on
     * the connection wrongly when the final one comes instead */
    bool has_body = request->chunked || request->has_content_length;
    request->expect_continue =
        has_body && request->version_minor > 0 && fgw_bytes_ieq_str(framing.expect, "100-continue");
    return err;
}

enum fgw_err fgw_http_head_parse(struct fgw_arena *arena, struct fgw_bytes head,
                                 struct fgw_http_request *out_request, const char **out_reason)
{
    if (!lines_are_clean(head, out_reason)) {
        return FGW_ERR_BAD_REQUEST;
    }
    enum fgw_err err = check_parts(head, out_reason);
    if (err != FGW_OK) {
        return err;
    }
    struct builder builder = {.arena = arena};
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = &builder;
    (void)llhttp_execute(&parser, (const char *)head.ptr, head.len);
    if (!builder.complete) {
        return llhttp_failed(&parser, &builder, out_reason);
    }
    size_t space = fgw_bytes_find_byte(head, ' ');
    struct fgw_http_request request = {.method = method_of(parser.method),
                                       .method_text = fgw_bytes_sub(head, 0, space),
                                       .version_minor = parser.http_minor};
    err = finish_request(&builder, &parser, &request, out_reason);
    if (err != FGW_OK) {
        return err;
    }
    request.tls = out_request->tls;
    request.peer = out_request->peer;
    *out_request = request;
    return FGW_OK;
}

/* -- answers ----------------------------------------------------------------------------------- */

enum fgw_err fgw_http_response_head_parse(struct fgw_arena *arena, struct fgw_bytes head,
                                          struct fgw_http_response_head *out_head,
                                          const char **out_reason)
{
    if (!lines_are_clean(head, out_reason)) {
        return FGW_ERR_PARSE;
    }
    struct builder builder = {.arena = arena};
    llhttp_t parser;
    llhttp_init(&parser, HTTP_RESPONSE, &settings);
    parser.data = &builder;
    (void)llhttp_execute(&parser, (const char *)head.ptr, head.len);
    if (!builder.complete || parser.http_major != 1) {
        *out_reason = "The head of the answer is not valid.";
        return FGW_ERR_PARSE;
    }
    struct framing framing = {0};
    for (size_t i = 0; i < builder.count; i++) {
        builder.headers[i].value = fgw_bytes_trim(builder.headers[i].value);
        note_header(&framing, &builder.headers[i]);
    }
    struct fgw_http_request request = {.version_minor = parser.http_minor};
    if (check_framing(&framing, &request, out_reason) != FGW_OK) {
        return FGW_ERR_PARSE;
    }
    *out_head = (struct fgw_http_response_head){
        .status = parser.status_code,
        .version_minor = parser.http_minor,
        .headers = builder.headers,
        .header_count = builder.count,
        .has_content_length = request.has_content_length,
        .content_length = request.content_length,
        .chunked = request.chunked,
        .keep_alive = builder.keep_alive,
    };
    return FGW_OK;
}
