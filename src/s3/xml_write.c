/* xml_write.c: see xml_write.h. */
#include "s3/xml_write.h"

#include "base/encode.h"
#include "base/timefmt.h"

static void append_tag(struct fgw_buf *out, const char *prefix, const char *name)
{
    (void)fgw_buf_append_str(out, prefix);
    (void)fgw_buf_append_str(out, name);
    (void)fgw_buf_append_byte(out, '>');
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
    append_tag(out, "<", name);
}

void fgw_xml_close(struct fgw_buf *out, const char *name)
{
    append_tag(out, "</", name);
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

void fgw_xml_escape(struct fgw_buf *out, struct fgw_bytes text)
{
    size_t from = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (needs_escape(text.ptr[i])) {
            (void)fgw_buf_append(out, fgw_bytes_sub(text, from, i - from));
            append_escaped(out, text.ptr[i]);
            from = i + 1;
        }
    }
    (void)fgw_buf_append(out, fgw_bytes_sub(text, from, SIZE_MAX));
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
    char text[FGW_TIME_ISO8601_SIZE];
    fgw_time_iso8601(wall_ms, text);
    fgw_xml_text(out, name, fgw_bytes_str(text));
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
