/* multibase.c: see multibase.h. Bases whose digit is not a whole number of bits (36, 58) are
 * decoded by long multiplication, quadratic in an input that the caller bounds. */
#include "cid/multibase.h"

#include "base/encode.h"

enum { LOWERED_MAX = 512 };

static const char BASE58[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
static const char BASE36[] = "0123456789abcdefghijklmnopqrstuvwxyz";

/* The number in out[from..out_size) becomes number * base + digit; *from moves down as it grows. */
static enum fgw_err multiply_add(uint8_t *out, size_t out_size, size_t *from, unsigned base,
                                 unsigned digit)
{
    unsigned carry = digit;
    for (size_t i = out_size; i > *from; i--) {
        carry += out[i - 1] * base;
        out[i - 1] = (uint8_t)carry;
        carry >>= 8;
    }
    while (carry > 0) {
        if (*from == 0) {
            return FGW_ERR_TOO_LARGE;
        }
        out[--*from] = (uint8_t)carry;
        carry >>= 8;
    }
    return FGW_OK;
}

/* Leading zero digits stand for leading zero bytes. */
static enum fgw_err number_decode(struct fgw_bytes text, const char *alphabet, uint8_t *out,
                                  size_t out_size, size_t *out_len)
{
    unsigned base = (unsigned)strlen(alphabet);
    size_t from = out_size;
    size_t zeros = 0;
    bool leading = true;
    for (size_t i = 0; i < text.len; i++) {
        const char *at = text.ptr[i] == '\0' ? NULL : strchr(alphabet, text.ptr[i]);
        if (at == NULL) {
            return FGW_ERR_PARSE;
        }
        leading = leading && at == alphabet;
        zeros += leading;
        enum fgw_err err = multiply_add(out, out_size, &from, base, (unsigned)(at - alphabet));
        if (err != FGW_OK) {
            return err;
        }
    }
    size_t len = out_size - from;
    if (zeros > out_size - len) {
        return FGW_ERR_TOO_LARGE;
    }
    memmove(out + zeros, out + from, len);
    memset(out, 0, zeros);
    *out_len = zeros + len;
    return FGW_OK;
}

enum fgw_err fgw_base58_decode(struct fgw_bytes text, uint8_t *out, size_t out_size,
                               size_t *out_len)
{
    return number_decode(text, BASE58, out, out_size, out_len);
}

static enum fgw_err base32_bounded(struct fgw_bytes text, uint8_t *out, size_t out_size,
                                   size_t *out_len)
{
    if (text.len * 5 / 8 > out_size) {
        return FGW_ERR_TOO_LARGE;
    }
    return fgw_base32_decode(text, out, out_len);
}

static enum fgw_err hex_bounded(struct fgw_bytes text, uint8_t *out, size_t out_size,
                                size_t *out_len)
{
    if (text.len / 2 > out_size) {
        return FGW_ERR_TOO_LARGE;
    }
    enum fgw_err err = fgw_hex_decode(text, out);
    if (err == FGW_OK) {
        *out_len = text.len / 2;
    }
    return err;
}

/* The upper-case bases hold upper-case letters only. */
static enum fgw_err to_lower(struct fgw_bytes text, uint8_t lowered[LOWERED_MAX])
{
    if (text.len > LOWERED_MAX) {
        return FGW_ERR_TOO_LARGE;
    }
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c >= 'a' && c <= 'z') {
            return FGW_ERR_PARSE;
        }
        lowered[i] = c >= 'A' && c <= 'Z' ? (uint8_t)(c + 'a' - 'A') : c;
    }
    return FGW_OK;
}

enum fgw_err fgw_multibase_decode(struct fgw_bytes text, uint8_t *out, size_t out_size,
                                  size_t *out_len)
{
    if (text.len == 0) {
        return FGW_ERR_PARSE;
    }
    uint8_t lowered[LOWERED_MAX];
    uint8_t base = text.ptr[0];
    struct fgw_bytes digits = fgw_bytes_sub(text, 1, SIZE_MAX);
    if (base == 'B' || base == 'K' || base == 'F') {
        enum fgw_err err = to_lower(digits, lowered);
        if (err != FGW_OK) {
            return err;
        }
        digits.ptr = lowered;
        base = (uint8_t)(base + 'a' - 'A');
    }
    switch (base) {
    case 'b':
        return base32_bounded(digits, out, out_size, out_len);
    case 'k':
        return number_decode(digits, BASE36, out, out_size, out_len);
    case 'z':
        return number_decode(digits, BASE58, out, out_size, out_len);
    case 'f':
        return hex_bounded(digits, out, out_size, out_len);
    default:
        return FGW_ERR_PARSE;
    }
}
