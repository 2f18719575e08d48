/* tlv.c: see tlv.h. */
#include "base/tlv.h"

#include "base/encode.h"

void fgw_tlv_put(struct fgw_buf *out, uint64_t tag, struct fgw_bytes value)
{
    uint8_t head[2 * FGW_UVARINT_MAX];
    size_t len = fgw_uvarint_encode(tag, head);
    len += fgw_uvarint_encode(value.len, head + len);
    if (fgw_buf_reserve(out, len + value.len) == FGW_OK) {
        (void)fgw_buf_append(out, fgw_bytes(head, len));
        (void)fgw_buf_append(out, value);
    }
}

void fgw_tlv_put_u64(struct fgw_buf *out, uint64_t tag, uint64_t value)
{
    uint8_t bytes[8];
    size_t len = 0;
    for (; value != 0; value >>= 8) {
        bytes[len++] = (uint8_t)value;
    }
    fgw_tlv_put(out, tag, fgw_bytes(bytes, len));
}

void fgw_tlv_put_nonempty(struct fgw_buf *out, uint64_t tag, struct fgw_bytes value)
{
    if (value.len > 0) {
        fgw_tlv_put(out, tag, value);
    }
}

/* Tag and length of the item at the front; the size of both, or 0 when they do not fit. */
static size_t read_head(struct fgw_bytes rest, uint64_t *out_tag, uint64_t *out_len)
{
    size_t tag_size;
    size_t len_size;
    if (fgw_uvarint_decode(rest, out_tag, &tag_size) != FGW_OK ||
        fgw_uvarint_decode(fgw_bytes_sub(rest, tag_size, SIZE_MAX), out_len, &len_size) != FGW_OK) {
        return 0;
    }
    return tag_size + len_size;
}

enum fgw_err fgw_tlv_next_any(struct fgw_tlv_reader *reader, struct fgw_tlv_item *out_item)
{
    struct fgw_bytes rest = reader->rest;
    uint64_t tag;
    uint64_t len;
    if (rest.len == 0) {
        return FGW_ERR_END;
    }
    size_t head = read_head(rest, &tag, &len);
    if (head == 0 || len > rest.len - head) {
        return FGW_ERR_CORRUPT;
    }
    size_t whole = head + (size_t)len;
    out_item->tag = tag;
    out_item->value = (struct fgw_bytes){rest.ptr + head, (size_t)len};
    out_item->raw = (struct fgw_bytes){rest.ptr, whole};
    reader->rest = (struct fgw_bytes){rest.ptr + whole, rest.len - whole};
    return FGW_OK;
}

enum fgw_err fgw_tlv_u64(struct fgw_bytes value, uint64_t *out_value)
{
    uint64_t result = 0;
    if (value.len > 8 || (value.len > 0 && value.ptr[value.len - 1] == 0)) {
        return FGW_ERR_CORRUPT;
    }
    for (size_t i = value.len; i > 0; i--) {
        result = result << 8 | value.ptr[i - 1];
    }
    *out_value = result;
    return FGW_OK;
}
