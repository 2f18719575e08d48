/* xml_write.c: see xml_write.h. */
#include "s3/xml_write.h"

#include "base/encode.h"
#include "base/timefmt.h"

/* lead | name | '>', with one look at the room. */
static void append_tag(struct fgw_buf *out, struct fgw_bytes lead, const char *name)
{
    struct fgw_bytes text = fgw_bytes(name, strlen(name));
    size_t size = lead.len + text.len + 1;
    if (fgw_buf_reserve(out, size) != FGW_OK) {
        return;
    }
    uint8_t *to = out->ptr + out->len;
    memcpy(to, lead.ptr, lead.len);
    memcpy(to + lead.len, text.ptr, text.len);
    to[size - 1] = '>';
    out->len += size;
}

void fgw_xml_begin(struct fgw_buf *out)
{
    (void)fgw_buf_append(out, FGW_LIT("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"));
}

void fgw_xml_root(struct fgw_buf *out, const char *name)
{
    (void)fgw_buf_append_byte(out, '<');
    (void)fgw_buf_append_str(out, name);
    (void)fgw_buf_append(out, FGW_LIT(" xmlns=\"" FGW_XML_NAMESPACE "\">"));
}

void fgw_xml_open(struct fgw_buf *out, const char *name)
{
    append_tag(out, FGW_LIT("<"), name);
}

void fgw_xml_close(struct fgw_buf *out, const char *name)
{
    append_tag(out, FGW_LIT("</"), name);
}

static bool needs_escape(uint8_t c)
{
    return c < 0x20 || c == '&' || c == '<' || c == '>' || c == 0x7f;
}

static void append_escaped(struct fgw_buf *out, uint8_t c)
{
    switch (c) {
    case '&':
        (void)fgw_buf_append(out, FGW_LIT("&amp;"));
        break;
    case '<':
        (void)fgw_buf_append(out, FGW_LIT("&lt;"));
        break;
    case '>':
        (void)fgw_buf_append(out, FGW_LIT("&gt;"));
        break;
    default:
        (void)fgw_buf_appendf(out, "&#x%X;", c);
        break;
    }
}

/* True when one of eight bytes needs it: in each byte, bit 7 is set by a borrow when it lies below a
 * bound or is zero after the xor (and by bytes from 0x80 on, which are masked out). A borrow may run
 * on and name a byte too many, never one too few: the caller looks at each then. */
static bool word_needs_escape(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t amp = word ^ ones * '&';
    uint64_t less = word ^ ones * '<';
    uint64_t more = word ^ ones * '>';
    uint64_t del = word ^ ones * 0x7f;
    uint64_t hit = ((word - ones * 0x20) & ~word) | ((amp - ones) & ~amp) |
                   ((less - ones) & ~less) | ((more - ones) & ~more) | ((del - ones) & ~del);
    return (hit & ones * 0x80) != 0;
}

/* Index of the first byte at or behind `from` that needs it, or text.len. */
static size_t find_escape(struct fgw_bytes text, size_t from)
{
    for (; text.len - from >= sizeof(uint64_t); from += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, text.ptr + from, sizeof word);
        if (word_needs_escape(word)) {
            break;
        }
    }
    while (from < text.len && !needs_escape(text.ptr[from])) {
        from++;
    }
    return from;
}

void fgw_xml_escape(struct fgw_buf *out, struct fgw_bytes text)
{
    size_t from = 0;
    while (from < text.len) {
        size_t at = find_escape(text, from);
        (void)fgw_buf_append(out, fgw_bytes_sub(text, from, at - from));
        if (at < text.len) {
            append_escaped(out, text.ptr[at]);
        }
        from = at + 1;
    }
}

void fgw_xml_text(struct fgw_buf *out, const char *name, struct fgw_bytes text)
{
    fgw_xml_open(out, name);
    fgw_xml_escape(out, text);
    fgw_xml_close(out, name);
}

void fgw_xml_number(struct fgw_buf *out, const char *name, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    fgw_xml_open(out, name);
    (void)fgw_buf_append(out, fgw_bytes(digits + at, sizeof digits - at));
    fgw_xml_close(out, name);
}

void fgw_xml_bool(struct fgw_buf *out, const char *name, bool value)
{
    fgw_xml_text(out, name, value ? FGW_LIT("true") : FGW_LIT("false"));
}

void fgw_xml_time(struct fgw_buf *out, const char *name, int64_t wall_ms)
{
    fgw_xml_open(out, name);
    if (fgw_buf_reserve(out, FGW_TIME_ISO8601_SIZE) == FGW_OK) { /* nothing in it needs escaping */
        fgw_time_iso8601(wall_ms, (char *)out->ptr + out->len);
        out->len += FGW_TIME_ISO8601_SIZE - 1;
    }
    fgw_xml_close(out, name);
}

void fgw_xml_etag(struct fgw_buf *out, const char *name, struct fgw_bytes etag)
{
    fgw_xml_open(out, name);
    (void)fgw_buf_append_byte(out, '"');
    fgw_xml_escape(out, etag);
    (void)fgw_buf_append_byte(out, '"');
    fgw_xml_close(out, name);
}

void fgw_xml_key(struct fgw_buf *out, const char *name, struct fgw_bytes key, bool url)
{
    if (!url) {
        fgw_xml_text(out, name, key);
        return;
    }
    fgw_xml_open(out, name);
    (void)fgw_uri_encode(out, key, true);
    fgw_xml_close(out, name);
}
