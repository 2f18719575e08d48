/* bytes.h: byte views by value (never owning, never NUL-dependent) and the growable buffer.
 *
 * A view is valid as long as what it points into. A buffer owns its heap memory, has a maximum and
 * answers FGW_ERR_TOO_LARGE above it; memory exhaustion aborts the process (fgw_xmalloc).
 */
#ifndef FGW_BASE_BYTES_H
#define FGW_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct fgw_bytes {
    const uint8_t *ptr; /* may be NULL when len is 0 */
    size_t len;
};

static inline struct fgw_bytes fgw_bytes(const void *ptr, size_t len)
{
    return (struct fgw_bytes){(const uint8_t *)ptr, len};
}
static inline struct fgw_bytes fgw_bytes_str(const char *text)
{
    return (struct fgw_bytes){(const uint8_t *)text, text == NULL ? 0 : strlen(text)};
}
/* A view of a string literal, without strlen. */
#define FGW_LIT(literal) ((struct fgw_bytes){(const uint8_t *)("" literal), sizeof(literal) - 1})
/* For printf: "%.*s", FGW_FMT(view). */
#define FGW_FMT(view) (int)(view).len, (view).len ? (const char *)(view).ptr : ""

/* Inline: every request asks some hundred times, and the length of a literal costs nothing then. */
static inline bool fgw_bytes_eq(struct fgw_bytes a, struct fgw_bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
static inline bool fgw_bytes_eq_str(struct fgw_bytes a, const char *text)
{
    return fgw_bytes_eq(a, fgw_bytes_str(text));
}
/* ASCII case-insensitive. */
bool fgw_bytes_ieq(struct fgw_bytes a, struct fgw_bytes b);
static inline bool fgw_bytes_ieq_str(struct fgw_bytes a, const char *text)
{
    return a.len == strlen(text) && fgw_bytes_ieq(a, fgw_bytes_str(text));
}
/* Unsigned byte order, shorter first: <0, 0, >0. */
int fgw_bytes_cmp(struct fgw_bytes a, struct fgw_bytes b);
bool fgw_bytes_starts_with(struct fgw_bytes whole, struct fgw_bytes prefix);
bool fgw_bytes_ends_with(struct fgw_bytes whole, struct fgw_bytes suffix);
/* Offset of the first occurrence at or after `from`, or SIZE_MAX. */
size_t fgw_bytes_find(struct fgw_bytes whole, struct fgw_bytes part, size_t from);
size_t fgw_bytes_find_byte(struct fgw_bytes whole, uint8_t byte);
/* How often it occurs. */
size_t fgw_bytes_count_byte(struct fgw_bytes whole, uint8_t byte);
/* [from, from+len) cut to the view. */
static inline struct fgw_bytes fgw_bytes_sub(struct fgw_bytes whole, size_t from, size_t len)
{
    if (from >= whole.len) {
        return (struct fgw_bytes){whole.ptr == NULL ? NULL : whole.ptr + whole.len, 0};
    }
    size_t left = whole.len - from;
    return (struct fgw_bytes){whole.ptr + from, len < left ? len : left};
}
/* Without leading and trailing space and tab. */
struct fgw_bytes fgw_bytes_trim(struct fgw_bytes whole);
/* Takes the part before the first `separator` off the front of *rest; when there is none, all of
 * it. Returns false once *rest is used up (ptr NULL). "a,,b" gives "a", "", "b"; "" gives "". */
bool fgw_bytes_split(struct fgw_bytes *rest, uint8_t separator, struct fgw_bytes *out_part);
/* Constant-time equality for secrets of equal length; false at once when the lengths differ. */
bool fgw_bytes_eq_secret(struct fgw_bytes a, struct fgw_bytes b);
/* Decimal digits only, no sign, no blanks, at most UINT64_MAX: FGW_ERR_PARSE otherwise. */
enum fgw_err fgw_bytes_to_u64(struct fgw_bytes text, uint64_t *out_value) FGW_MUST_CHECK;
/* Well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF). */
bool fgw_utf8_valid(struct fgw_bytes text);

/* Heap allocation that aborts when memory is exhausted; only base may call malloc itself. */
void *fgw_xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *fgw_xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *fgw_xrealloc(void *ptr, size_t size) __attribute__((returns_nonnull));
/* Takes NULL. */
void fgw_xfree(void *ptr);
/* Heap copy with a NUL behind it. */
char *fgw_xstrdup_bytes(struct fgw_bytes text) __attribute__((malloc, returns_nonnull));
char *fgw_xstrdup(const char *text) __attribute__((malloc, returns_nonnull));

struct fgw_buf {
    uint8_t *ptr;
    size_t len;
    size_t cap;
    size_t max;    /* 0 = no maximum: only for sizes our own code bounds */
    bool overflow; /* an append was refused; fgw_buf_status reports it */
};

void fgw_buf_init(struct fgw_buf *buf, size_t max);
/* Takes NULL-initialised and used buffers; leaves an empty buffer with the same maximum. */
void fgw_buf_deinit(struct fgw_buf *buf);
/* Keeps the memory. */
void fgw_buf_clear(struct fgw_buf *buf);
/* Room for `extra` more bytes behind len; FGW_ERR_TOO_LARGE above max (and overflow is set). */
enum fgw_err fgw_buf_reserve(struct fgw_buf *buf, size_t extra);
/* Inline, as documents are written a few bytes at a time. */
static inline enum fgw_err fgw_buf_append(struct fgw_buf *buf, struct fgw_bytes bytes)
{
    if (bytes.len > buf->cap - buf->len) {
        enum fgw_err err = fgw_buf_reserve(buf, bytes.len);
        if (err != FGW_OK) {
            return err;
        }
    }
    if (bytes.len > 0) {
        memcpy(buf->ptr + buf->len, bytes.ptr, bytes.len);
        buf->len += bytes.len;
    }
    return FGW_OK;
}
static inline enum fgw_err fgw_buf_append_str(struct fgw_buf *buf, const char *text)
{
    return fgw_buf_append(buf, fgw_bytes_str(text));
}
static inline enum fgw_err fgw_buf_append_byte(struct fgw_buf *buf, uint8_t byte)
{
    return fgw_buf_append(buf, fgw_bytes(&byte, 1));
}
enum fgw_err fgw_buf_appendf(struct fgw_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* FGW_ERR_TOO_LARGE when any append since init or clear was refused: append freely, ask once. */
enum fgw_err fgw_buf_status(const struct fgw_buf *buf) FGW_MUST_CHECK;
/* Drops `count` bytes from the front (moves the rest). */
void fgw_buf_consume(struct fgw_buf *buf, size_t count);
static inline struct fgw_bytes fgw_buf_bytes(const struct fgw_buf *buf)
{
    return (struct fgw_bytes){buf->ptr, buf->len};
}

/* Fixed-width integers in files and frames. */
static inline void fgw_put_u16le(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
static inline void fgw_put_u32le(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}
static inline void fgw_put_u64le(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++) {
        p[i] = (uint8_t)(v >> (8 * i));
    }
}
static inline uint16_t fgw_get_u16le(const uint8_t *p)
{
    return (uint16_t)(p[0] | (p[1] << 8));
}
static inline uint32_t fgw_get_u32le(const uint8_t *p)
{
    uint32_t v = 0;
    for (int i = 3; i >= 0; i--) {
        v = (v << 8) | p[i];
    }
    return v;
}
static inline uint64_t fgw_get_u64le(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) {
        v = (v << 8) | p[i];
    }
    return v;
}
static inline void fgw_put_u16be(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}
static inline void fgw_put_u32be(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) {
        p[i] = (uint8_t)(v >> (24 - 8 * i));
    }
}
static inline void fgw_put_u64be(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++) {
        p[i] = (uint8_t)(v >> (56 - 8 * i));
    }
}
static inline uint16_t fgw_get_u16be(const uint8_t *p)
{
    return (uint16_t)((p[0] << 8) | p[1]);
}
static inline uint32_t fgw_get_u32be(const uint8_t *p)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        v = (v << 8) | p[i];
    }
    return v;
}
static inline uint64_t fgw_get_u64be(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) {
        v = (v << 8) | p[i];
    }
    return v;
}

#endif
