/* chunked.c: see chunked.h. One byte a step but for data, which is handed out whole. */
#include "http/chunked.h"

enum {
    SIZE_DIGITS_MAX = 16,
    EXTRA_BYTES_MAX = 16 * 1024 /* else a body of nothing but extensions would never end */
};

static int hex_value(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    uint8_t lower = byte | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool is_token(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
           (byte != 0 && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

static bool is_text(uint8_t byte)
{
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

static bool size_step(struct fgw_http_chunked *chunked, uint8_t byte)
{
    int value = hex_value(byte);
    if (value >= 0) {
        chunked->left = chunked->left << 4 | (uint64_t)value;
        chunked->state = FGW_HTTP_CHUNKED_SIZE;
        return ++chunked->size_digits <= SIZE_DIGITS_MAX;
    }
    if (chunked->state == FGW_HTTP_CHUNKED_SIZE_FIRST) {
        return false;
    }
    chunked->state = byte == ';' ? FGW_HTTP_CHUNKED_EXTENSION : FGW_HTTP_CHUNKED_SIZE_LF;
    return byte == ';' || byte == '\r';
}

static bool trailer_step(struct fgw_http_chunked *chunked, uint8_t byte)
{
    if (byte == '\r') {
        bool empty = chunked->state == FGW_HTTP_CHUNKED_TRAILER_START;
        chunked->state = empty ? FGW_HTTP_CHUNKED_END_LF : FGW_HTTP_CHUNKED_TRAILER_LF;
        return empty || chunked->trailer_colon;
    }
    bool first = chunked->state == FGW_HTTP_CHUNKED_TRAILER_START;
    if (first) {
        chunked->trailer_colon = false;
    }
    chunked->state = FGW_HTTP_CHUNKED_TRAILER;
    if (++chunked->extra_bytes > EXTRA_BYTES_MAX) {
        return false;
    }
    if (chunked->trailer_colon) {
        return is_text(byte);
    }
    chunked->trailer_colon = byte == ':' && !first;
    return chunked->trailer_colon || is_token(byte);
}

/* The line end behind a chunk's size. */
static void begin_data(struct fgw_http_chunked *chunked)
{
    chunked->size_digits = 0;
    chunked->state = chunked->left == 0 ? FGW_HTTP_CHUNKED_TRAILER_START : FGW_HTTP_CHUNKED_DATA;
}

/* One byte of anything but data; false when it must not stand here. */
static bool step(struct fgw_http_chunked *chunked, uint8_t byte)
{
    switch (chunked->state) {
    case FGW_HTTP_CHUNKED_SIZE_FIRST:
    case FGW_HTTP_CHUNKED_SIZE:
        return size_step(chunked, byte);
    case FGW_HTTP_CHUNKED_EXTENSION:
        if (byte == '\r') {
            chunked->state = FGW_HTTP_CHUNKED_SIZE_LF;
            return true;
        }
        return is_text(byte) && ++chunked->extra_bytes <= EXTRA_BYTES_MAX;
    case FGW_HTTP_CHUNKED_SIZE_LF:
        begin_data(chunked);
        return byte == '\n';
    case FGW_HTTP_CHUNKED_DATA_CR:
        chunked->state = FGW_HTTP_CHUNKED_DATA_LF;
        return byte == '\r';
    case FGW_HTTP_CHUNKED_DATA_LF:
        chunked->state = FGW_HTTP_CHUNKED_SIZE_FIRST;
        return byte == '\n';
    case FGW_HTTP_CHUNKED_TRAILER_START:
    case FGW_HTTP_CHUNKED_TRAILER:
        return trailer_step(chunked, byte);
    case FGW_HTTP_CHUNKED_TRAILER_LF:
        chunked->state = FGW_HTTP_CHUNKED_TRAILER_START;
        return byte == '\n';
    case FGW_HTTP_CHUNKED_END_LF:
        chunked->state = FGW_HTTP_CHUNKED_DONE;
        return byte == '\n';
    case FGW_HTTP_CHUNKED_DATA:
    case FGW_HTTP_CHUNKED_DONE:
        break;
    }
    return false;
}

enum fgw_err fgw_http_chunked_next(struct fgw_http_chunked *chunked, struct fgw_bytes *input,
                                   struct fgw_bytes *out_piece)
{
    while (chunked->state != FGW_HTTP_CHUNKED_DONE) {
        if (input->len == 0) {
            return FGW_ERR_AGAIN;
        }
        if (chunked->state == FGW_HTTP_CHUNKED_DATA) {
            size_t len = chunked->left < input->len ? (size_t)chunked->left : input->len;
            *out_piece = fgw_bytes(input->ptr, len);
            *input = fgw_bytes_sub(*input, len, SIZE_MAX);
            chunked->left -= len;
            chunked->state = chunked->left == 0 ? FGW_HTTP_CHUNKED_DATA_CR : FGW_HTTP_CHUNKED_DATA;
            return FGW_OK;
        }
        if (!step(chunked, input->ptr[0])) {
            return FGW_ERR_BAD_REQUEST;
        }
        *input = fgw_bytes_sub(*input, 1, SIZE_MAX);
    }
    return FGW_ERR_END;
}
