/* bytes.c: views, allocation, the growable buffer, UTF-8. See bytes.h. */
#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

void fgw_check_failed(const char *file, int line, const char *expression)
{
    (void)fprintf(stderr, "fgw: check failed at %s:%d: %s\n", file, line, expression);
    abort();
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

bool fgw_bytes_ieq(struct fgw_bytes a, struct fgw_bytes b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (a.ptr[i] != b.ptr[i] && lower(a.ptr[i]) != lower(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

int fgw_bytes_cmp(struct fgw_bytes a, struct fgw_bytes b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common == 0 ? 0 : memcmp(a.ptr, b.ptr, common);
    if (order != 0) {
        return order;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

bool fgw_bytes_starts_with(struct fgw_bytes whole, struct fgw_bytes prefix)
{
    return whole.len >= prefix.len &&
           (prefix.len == 0 || memcmp(whole.ptr, prefix.ptr, prefix.len) == 0);
}

bool fgw_bytes_ends_with(struct fgw_bytes whole, struct fgw_bytes suffix)
{
    return whole.len >= suffix.len && (suffix.len == 0 || memcmp(whole.ptr + whole.len - suffix.len,
                                                                 suffix.ptr, suffix.len) == 0);
}

size_t fgw_bytes_find(struct fgw_bytes whole, struct fgw_bytes part, size_t from)
{
    if (from > whole.len) {
        return SIZE_MAX;
    }
    if (part.len == 0) {
        return from;
    }
    if (whole.len == from) {
        return SIZE_MAX;
    }
    const uint8_t *hit = memmem(whole.ptr + from, whole.len - from, part.ptr, part.len);
    return hit == NULL ? SIZE_MAX : (size_t)(hit - whole.ptr);
}

size_t fgw_bytes_find_byte(struct fgw_bytes whole, uint8_t byte)
{
    const uint8_t *hit = whole.len == 0 ? NULL : memchr(whole.ptr, byte, whole.len);
    return hit == NULL ? SIZE_MAX : (size_t)(hit - whole.ptr);
}

/* Jumps from one to the next: they are few in what is counted here. */
size_t fgw_bytes_count_byte(struct fgw_bytes whole, uint8_t byte)
{
    size_t count = 0;
    size_t at;
    while ((at = fgw_bytes_find_byte(whole, byte)) != SIZE_MAX) {
        whole = fgw_bytes_sub(whole, at + 1, SIZE_MAX);
        count++;
    }
    return count;
}

struct fgw_bytes fgw_bytes_trim(struct fgw_bytes whole)
{
    while (whole.len > 0 && (whole.ptr[0] == ' ' || whole.ptr[0] == '\t')) {
        whole.ptr++;
        whole.len--;
    }
    while (whole.len > 0 && (whole.ptr[whole.len - 1] == ' ' || whole.ptr[whole.len - 1] == '\t')) {
        whole.len--;
    }
    return whole;
}

bool fgw_bytes_split(struct fgw_bytes *rest, uint8_t separator, struct fgw_bytes *out_part)
{
    if (rest->ptr == NULL) {
        return false;
    }
    size_t at = fgw_bytes_find_byte(*rest, separator);
    if (at == SIZE_MAX) {
        *out_part = *rest;
        *rest = (struct fgw_bytes){NULL, 0};
        return true;
    }
    *out_part = (struct fgw_bytes){rest->ptr, at};
    *rest = (struct fgw_bytes){rest->ptr + at + 1, rest->len - at - 1};
    return true;
}

bool fgw_bytes_eq_secret(struct fgw_bytes a, struct fgw_bytes b)
{
    if (a.len != b.len) {
        return false;
    }
    volatile uint8_t difference = 0;
    for (size_t i = 0; i < a.len; i++) {
        difference = (uint8_t)(difference | (a.ptr[i] ^ b.ptr[i]));
    }
    return difference == 0;
}

enum fgw_err fgw_bytes_to_u64(struct fgw_bytes text, uint64_t *out_value)
{
    uint64_t value = 0;
    if (text.len == 0) {
        return FGW_ERR_PARSE;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return FGW_ERR_PARSE;
        }
        if (__builtin_mul_overflow(value, 10U, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.ptr[i] - '0'), &value)) {
            return FGW_ERR_PARSE;
        }
    }
    *out_value = value;
    return FGW_OK;
}

/* Length of the well-formed sequence at p (1..4), or 0. */
static size_t utf8_sequence(const uint8_t *p, size_t left)
{
    uint8_t first = p[0];
    if (first < 0x80) {
        return 1;
    }
    size_t len = first >= 0xc2 && first <= 0xdf   ? 2
                 : (first & 0xf0) == 0xe0         ? 3
                 : first >= 0xf0 && first <= 0xf4 ? 4
                                                  : 0;
    if (len == 0 || left < len) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (first == 0xe0 && p[1] < 0xa0) || (first == 0xed && p[1] > 0x9f) ||
               (first == 0xf0 && p[1] < 0x90) || (first == 0xf4 && p[1] > 0x8f);
    return bad ? 0 : len;
}

bool fgw_utf8_valid(struct fgw_bytes text)
{
    for (size_t i = 0; i < text.len;) {
        size_t len = utf8_sequence(text.ptr + i, text.len - i);
        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}

static void *or_abort(void *ptr)
{
    FGW_CHECK(ptr != NULL);
    return ptr;
}

void *fgw_xmalloc(size_t size)
{
    return or_abort(malloc(size == 0 ? 1 : size));
}

void *fgw_xcalloc(size_t count, size_t size)
{
    return or_abort(calloc(count == 0 ? 1 : count, size == 0 ? 1 : size));
}

void *fgw_xrealloc(void *ptr, size_t size)
{
    return or_abort(realloc(ptr, size == 0 ? 1 : size));
}

void fgw_xfree(void *ptr)
{
    free(ptr);
}

char *fgw_xstrdup_bytes(struct fgw_bytes text)
{
    char *copy = fgw_xmalloc(text.len + 1);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    copy[text.len] = '\0';
    return copy;
}

char *fgw_xstrdup(const char *text)
{
    return fgw_xstrdup_bytes(fgw_bytes_str(text));
}

void fgw_buf_init(struct fgw_buf *buf, size_t max)
{
    *buf = (struct fgw_buf){.max = max};
}

void fgw_buf_deinit(struct fgw_buf *buf)
{
    fgw_xfree(buf->ptr);
    fgw_buf_init(buf, buf->max);
}

void fgw_buf_clear(struct fgw_buf *buf)
{
    buf->len = 0;
    buf->overflow = false;
}

enum fgw_err fgw_buf_reserve(struct fgw_buf *buf, size_t extra)
{
    size_t need;
    if (__builtin_add_overflow(buf->len, extra, &need) || (buf->max != 0 && need > buf->max)) {
        buf->overflow = true;
        return FGW_ERR_TOO_LARGE;
    }
    if (need <= buf->cap) {
        return FGW_OK;
    }
    size_t cap = buf->cap < 64 ? 64 : buf->cap;
    while (cap < need) {
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    }
    if (buf->max != 0 && cap > buf->max) {
        cap = buf->max;
    }
    buf->ptr = fgw_xrealloc(buf->ptr, cap);
    buf->cap = cap;
    return FGW_OK;
}

enum fgw_err fgw_buf_appendf(struct fgw_buf *buf, const char *format, ...)
{
    char small[512];
    va_list args;
    va_start(args, format);
    int needed = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    FGW_CHECK(needed >= 0);
    if ((size_t)needed < sizeof small) {
        return fgw_buf_append(buf, fgw_bytes(small, (size_t)needed));
    }
    char *large = fgw_xmalloc((size_t)needed + 1);
    va_start(args, format);
    (void)vsnprintf(large, (size_t)needed + 1, format, args);
    va_end(args);
    enum fgw_err err = fgw_buf_append(buf, fgw_bytes(large, (size_t)needed));
    fgw_xfree(large);
    return err;
}

enum fgw_err fgw_buf_status(const struct fgw_buf *buf)
{
    return buf->overflow ? FGW_ERR_TOO_LARGE : FGW_OK;
}

void fgw_buf_consume(struct fgw_buf *buf, size_t count)
{
    FGW_CHECK(count <= buf->len);
    if (count > 0 && count < buf->len) {
        memmove(buf->ptr, buf->ptr + count, buf->len - count);
    }
    buf->len -= count;
}
