/* encode.c: see encode.h. */
#include "base/encode.h"

#include "base/check.h"

static const char HEX_DIGITS[] = "0123456789abcdef";
static const char BASE64_STD[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char BASE64_URL[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char BASE32[] = "abcdefghijklmnopqrstuvwxyz234567";

void fgw_hex_encode(struct fgw_bytes bytes, char *out)
{
    for (size_t i = 0; i < bytes.len; i++) {
        out[2 * i] = HEX_DIGITS[bytes.ptr[i] >> 4];
        out[2 * i + 1] = HEX_DIGITS[bytes.ptr[i] & 15];
    }
}

char *fgw_hex(struct fgw_arena *arena, struct fgw_bytes bytes)
{
    char *out = fgw_arena_alloc(arena, bytes.len * 2 + 1);
    fgw_hex_encode(bytes, out);
    out[bytes.len * 2] = '\0';
    return out;
}

/* Value + 1 of each hexadecimal digit, 0 for any other byte. */
static const uint8_t HEX_VALUES[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};

static int hex_value(uint8_t c)
{
    return HEX_VALUES[c] - 1;
}

enum fgw_err fgw_hex_decode(struct fgw_bytes text, uint8_t *out)
{
    if (text.len % 2 != 0) {
        return FGW_ERR_PARSE;
    }
    for (size_t i = 0; i < text.len; i += 2) {
        int high = hex_value(text.ptr[i]);
        int low = hex_value(text.ptr[i + 1]);
        if (high < 0 || low < 0) {
            return FGW_ERR_PARSE;
        }
        out[i / 2] = (uint8_t)(high << 4 | low);
    }
    return FGW_OK;
}

static size_t base64_write(struct fgw_bytes bytes, const char *alphabet, bool pad, char *out)
{
    size_t o = 0;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t group = (uint32_t)bytes.ptr[i] << 16 |
                         (left > 1 ? (uint32_t)bytes.ptr[i + 1] << 8 : 0) |
                         (left > 2 ? bytes.ptr[i + 2] : 0U);
        size_t chars = left >= 3 ? 4 : left + 1;
        for (size_t j = 0; j < chars; j++) {
            out[o++] = alphabet[group >> (18 - 6 * j) & 63];
        }
        for (size_t j = chars; pad && j < 4; j++) {
            out[o++] = '=';
        }
    }
    out[o] = '\0';
    return o;
}

void fgw_base64_encode(struct fgw_bytes bytes, char *out)
{
    (void)base64_write(bytes, BASE64_STD, true, out);
}

void fgw_base64url_encode(struct fgw_bytes bytes, char *out)
{
    (void)base64_write(bytes, BASE64_URL, false, out);
}

static enum fgw_err bits_decode(struct fgw_bytes text, const char *alphabet, unsigned bits_each,
                                uint8_t *out, size_t *out_len)
{
    uint32_t pending = 0;
    unsigned bits = 0;
    size_t o = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *hit = text.ptr[i] == 0 ? NULL : strchr(alphabet, text.ptr[i]);
        if (hit == NULL) {
            return FGW_ERR_PARSE;
        }
        pending = (pending << bits_each) | (uint32_t)(hit - alphabet);
        bits += bits_each;
        if (bits >= 8) {
            bits -= 8;
            out[o++] = (uint8_t)(pending >> bits);
            pending &= (1U << bits) - 1U;
        }
    }
    if (bits >= bits_each || pending != 0) {
        return FGW_ERR_PARSE;
    }
    *out_len = o;
    return FGW_OK;
}

enum fgw_err fgw_base64_decode(struct fgw_bytes text, uint8_t *out, size_t *out_len)
{
    if (text.len % 4 != 0) {
        return FGW_ERR_PARSE;
    }
    for (int i = 0; i < 2 && text.len > 0 && text.ptr[text.len - 1] == '='; i++) {
        text.len--;
    }
    return bits_decode(text, BASE64_STD, 6, out, out_len);
}

enum fgw_err fgw_base64url_decode(struct fgw_bytes text, uint8_t *out, size_t *out_len)
{
    return bits_decode(text, BASE64_URL, 6, out, out_len);
}

void fgw_base32_encode(struct fgw_bytes bytes, char *out)
{
    uint32_t pending = 0;
    unsigned bits = 0;
    size_t o = 0;
    size_t i = 0;
    for (; i + 5 <= bytes.len; i += 5) {
        uint64_t five = (uint64_t)fgw_get_u32be(bytes.ptr + i) << 8 | bytes.ptr[i + 4];
        for (unsigned shift = 40; shift > 0; shift -= 5) {
            out[o++] = BASE32[five >> (shift - 5) & 31];
        }
    }
    for (; i < bytes.len; i++) {
        pending = (pending << 8) | bytes.ptr[i];
        bits += 8;
        while (bits >= 5) {
            bits -= 5;
            out[o++] = BASE32[pending >> bits & 31];
        }
        pending &= (1U << bits) - 1U;
    }
    if (bits > 0) {
        out[o++] = BASE32[pending << (5 - bits) & 31];
    }
    out[o] = '\0';
}

enum fgw_err fgw_base32_decode(struct fgw_bytes text, uint8_t *out, size_t *out_len)
{
    return bits_decode(text, BASE32, 5, out, out_len);
}

static bool unreserved(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '~';
}

enum fgw_err fgw_uri_encode(struct fgw_buf *out, struct fgw_bytes text, bool keep_slash)
{
    static const char UPPER[] = "0123456789ABCDEF";
    enum fgw_err err = fgw_buf_reserve(out, text.len);
    for (size_t i = 0; err == FGW_OK && i < text.len; i++) {
        size_t from = i;
        while (i < text.len && (unreserved(text.ptr[i]) || (keep_slash && text.ptr[i] == '/'))) {
            i++;
        }
        err = fgw_buf_append(out, fgw_bytes(text.ptr + from, i - from));
        if (err == FGW_OK && i < text.len) {
            uint8_t c = text.ptr[i];
            uint8_t escaped[3] = {'%', (uint8_t)UPPER[c >> 4], (uint8_t)UPPER[c & 15]};
            err = fgw_buf_append(out, fgw_bytes(escaped, sizeof escaped));
        }
    }
    return err;
}

static size_t as_they_are(struct fgw_bytes text, bool plus_is_space)
{
    size_t run = 0;
    while (run < text.len && text.ptr[run] != '%' && (text.ptr[run] != '+' || !plus_is_space)) {
        run++;
    }
    return run;
}

enum fgw_err fgw_uri_decode(struct fgw_arena *arena, struct fgw_bytes text, bool plus_is_space,
                            struct fgw_bytes *out_text)
{
    if (fgw_bytes_find_byte(text, '%') == SIZE_MAX &&
        (!plus_is_space || fgw_bytes_find_byte(text, '+') == SIZE_MAX)) {
        *out_text = text;
        return FGW_OK;
    }
    uint8_t *out = fgw_arena_alloc(arena, text.len + 1);
    size_t o = 0;
    while (text.len > 0) {
        size_t run = as_they_are(text, plus_is_space);
        memcpy(out + o, text.ptr, run);
        o += run;
        if (run == text.len) {
            break;
        }
        size_t used = 1;
        out[o] = ' ';
        if (text.ptr[run] == '%') {
            struct fgw_bytes digits = fgw_bytes_sub(text, run + 1, 2);
            if (digits.len < 2 || fgw_hex_decode(digits, out + o) != FGW_OK) {
                return FGW_ERR_PARSE;
            }
            used = 3;
        }
        o++;
        text = fgw_bytes_sub(text, run + used, SIZE_MAX);
    }
    out[o] = '\0';
    *out_text = fgw_bytes(out, o);
    return FGW_OK;
}

size_t fgw_uvarint_encode(uint64_t value, uint8_t out[FGW_UVARINT_MAX])
{
    FGW_CHECK(value >> 63 == 0);
    size_t len = 0;
    while (value >= 0x80) {
        out[len++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[len++] = (uint8_t)value;
    return len;
}

enum fgw_err fgw_uvarint_decode(struct fgw_bytes bytes, uint64_t *out_value, size_t *out_len)
{
    uint64_t value = 0;
    for (size_t i = 0; i < FGW_UVARINT_MAX; i++) {
        if (i >= bytes.len) {
            return FGW_ERR_END;
        }
        value |= (uint64_t)(bytes.ptr[i] & 0x7f) << (7 * i);
        if (bytes.ptr[i] < 0x80) {
            if (bytes.ptr[i] == 0 && i > 0) {
                return FGW_ERR_PARSE;
            }
            *out_value = value;
            *out_len = i + 1;
            return FGW_OK;
        }
    }
    return FGW_ERR_PARSE;
}
