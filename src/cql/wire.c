/* wire.c: see wire.h. */
#include "cql/wire.h"

struct fgw_bytes fgw_cql_read_raw(struct fgw_cql_reader *reader, size_t len)
{
    if (reader->bad || len > reader->rest.len) {
        reader->bad = true;
        return fgw_bytes(NULL, 0);
    }
    struct fgw_bytes taken = fgw_bytes(reader->rest.ptr, len);
    reader->rest = fgw_bytes_sub(reader->rest, len, SIZE_MAX);
    return taken;
}

uint8_t fgw_cql_read_u8(struct fgw_cql_reader *reader)
{
    struct fgw_bytes raw = fgw_cql_read_raw(reader, 1);
    return raw.len == 0 ? 0 : raw.ptr[0];
}

uint16_t fgw_cql_read_u16(struct fgw_cql_reader *reader)
{
    struct fgw_bytes raw = fgw_cql_read_raw(reader, 2);
    return raw.len == 0 ? 0 : fgw_get_u16be(raw.ptr);
}

int32_t fgw_cql_read_i32(struct fgw_cql_reader *reader)
{
    struct fgw_bytes raw = fgw_cql_read_raw(reader, 4);
    return raw.len == 0 ? 0 : (int32_t)fgw_get_u32be(raw.ptr);
}

struct fgw_bytes fgw_cql_read_string(struct fgw_cql_reader *reader)
{
    return fgw_cql_read_raw(reader, fgw_cql_read_u16(reader));
}

struct fgw_bytes fgw_cql_read_bytes(struct fgw_cql_reader *reader, bool *out_null)
{
    int32_t len = fgw_cql_read_i32(reader);
    if (out_null != NULL) {
        *out_null = len < 0;
    }
    return fgw_cql_read_raw(reader, len < 0 ? 0 : (size_t)len);
}

size_t fgw_cql_read_count(struct fgw_cql_reader *reader, size_t min_size)
{
    int32_t count = fgw_cql_read_i32(reader);
    if (reader->bad || count < 0 || (size_t)count > reader->rest.len / min_size) {
        reader->bad = true;
        return 0;
    }
    return (size_t)count;
}

struct fgw_bytes fgw_cql_read_inet_address(struct fgw_cql_reader *reader)
{
    uint8_t size = fgw_cql_read_u8(reader);
    if (size != 4 && size != 16) {
        reader->bad = true;
    }
    return fgw_cql_read_raw(reader, size);
}

void fgw_cql_put_u16(struct fgw_buf *out, uint16_t value)
{
    uint8_t raw[2];
    fgw_put_u16be(raw, value);
    fgw_buf_append(out, fgw_bytes(raw, sizeof raw));
}

void fgw_cql_put_i32(struct fgw_buf *out, int32_t value)
{
    uint8_t raw[4];
    fgw_put_u32be(raw, (uint32_t)value);
    fgw_buf_append(out, fgw_bytes(raw, sizeof raw));
}

void fgw_cql_put_string(struct fgw_buf *out, struct fgw_bytes text)
{
    if (text.len > UINT16_MAX) {
        out->overflow = true;
        return;
    }
    fgw_cql_put_u16(out, (uint16_t)text.len);
    fgw_buf_append(out, text);
}

void fgw_cql_put_bytes(struct fgw_buf *out, struct fgw_bytes bytes)
{
    if (bytes.len > INT32_MAX) {
        out->overflow = true;
        return;
    }
    fgw_cql_put_i32(out, (int32_t)bytes.len);
    fgw_buf_append(out, bytes);
}
