/* protobuf.c: see protobuf.h. */
#include "cid/protobuf.h"

#include "base/encode.h"

enum fgw_err fgw_protobuf_take_varint(struct fgw_bytes *rest, uint64_t *out_value)
{
    if (rest->len == 0) {
        return FGW_ERR_END;
    }
    size_t len = 0;
    if (fgw_uvarint_decode(*rest, out_value, &len) != FGW_OK) {
        return FGW_ERR_CORRUPT;
    }
    *rest = fgw_bytes_sub(*rest, len, SIZE_MAX);
    return FGW_OK;
}

/* Bytes behind the tag of this wire type, or false. */
static bool value_size(struct fgw_bytes *rest, unsigned wire, uint64_t *out_size)
{
    switch (wire) {
    case FGW_PROTOBUF_FIXED64:
        *out_size = 8;
        return true;
    case FGW_PROTOBUF_FIXED32:
        *out_size = 4;
        return true;
    case FGW_PROTOBUF_BYTES:
        return fgw_protobuf_take_varint(rest, out_size) == FGW_OK;
    default:
        return false;
    }
}

enum fgw_err fgw_protobuf_take(struct fgw_bytes *rest, struct fgw_protobuf_field *out_field)
{
    struct fgw_bytes after = *rest;
    uint64_t tag = 0;
    enum fgw_err err = fgw_protobuf_take_varint(&after, &tag);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_protobuf_field field = {.number = tag >> 3,
                                       .wire = (enum fgw_protobuf_wire)(tag & 7)};
    if (field.number == 0) {
        return FGW_ERR_CORRUPT;
    }
    if (field.wire == FGW_PROTOBUF_VARINT) {
        if (fgw_protobuf_take_varint(&after, &field.value) != FGW_OK) {
            return FGW_ERR_CORRUPT;
        }
    } else {
        uint64_t size = 0;
        if (!value_size(&after, (unsigned)(tag & 7), &size) || size > after.len) {
            return FGW_ERR_CORRUPT;
        }
        field.bytes = fgw_bytes_sub(after, 0, (size_t)size);
        after = fgw_bytes_sub(after, (size_t)size, SIZE_MAX);
    }
    *out_field = field;
    *rest = after;
    return FGW_OK;
}

void fgw_protobuf_put_varint(struct fgw_buf *out, uint64_t value)
{
    uint8_t varint[FGW_UVARINT_MAX];
    size_t len = fgw_uvarint_encode(value, varint);
    (void)fgw_buf_append(out, fgw_bytes(varint, len));
}
