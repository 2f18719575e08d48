/* cbor.c: see cbor.h. */
#include "cid/cbor.h"

enum { CID_TAG = 42, INLINE_MAX = 23, ONE_BYTE = 24, EIGHT_BYTES = 27 };

enum fgw_err fgw_cbor_take_head(struct fgw_bytes *rest, enum fgw_cbor_major major,
                                uint64_t *out_value)
{
    if (rest->len == 0 || rest->ptr[0] >> 5 != major) {
        return FGW_ERR_CORRUPT;
    }
    unsigned info = rest->ptr[0] & 0x1f;
    if (info <= INLINE_MAX) {
        *out_value = info;
        *rest = fgw_bytes_sub(*rest, 1, SIZE_MAX);
        return FGW_OK;
    }
    if (info > EIGHT_BYTES) {
        return FGW_ERR_CORRUPT;
    }
    size_t len = (size_t)1 << (info - ONE_BYTE);
    if (rest->len - 1 < len) {
        return FGW_ERR_CORRUPT;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) {
        value = value << 8 | rest->ptr[1 + i];
    }
    uint64_t smallest = info == ONE_BYTE ? ONE_BYTE : UINT64_C(1) << (len * 4);
    if (value < smallest) {
        return FGW_ERR_CORRUPT;
    }
    *out_value = value;
    *rest = fgw_bytes_sub(*rest, 1 + len, SIZE_MAX);
    return FGW_OK;
}

enum fgw_err fgw_cbor_take_string(struct fgw_bytes *rest, enum fgw_cbor_major major,
                                  struct fgw_bytes *out_string)
{
    struct fgw_bytes after = *rest;
    uint64_t len = 0;
    enum fgw_err err = fgw_cbor_take_head(&after, major, &len);
    if (err != FGW_OK || len > after.len) {
        return FGW_ERR_CORRUPT;
    }
    *out_string = fgw_bytes_sub(after, 0, (size_t)len);
    *rest = fgw_bytes_sub(after, (size_t)len, SIZE_MAX);
    return FGW_OK;
}

enum fgw_err fgw_cbor_take_cid(struct fgw_bytes *rest, struct fgw_cid_view *out_cid)
{
    struct fgw_bytes after = *rest;
    uint64_t tag = 0;
    struct fgw_bytes string;
    struct fgw_cid_view cid;
    if (fgw_cbor_take_head(&after, FGW_CBOR_TAG, &tag) != FGW_OK || tag != CID_TAG ||
        fgw_cbor_take_string(&after, FGW_CBOR_BYTES, &string) != FGW_OK || string.len == 0 ||
        string.ptr[0] != 0 || fgw_cid_decode(fgw_bytes_sub(string, 1, SIZE_MAX), &cid) != FGW_OK ||
        cid.encoded.len != string.len - 1) {
        return FGW_ERR_CORRUPT;
    }
    *out_cid = cid;
    *rest = after;
    return FGW_OK;
}
