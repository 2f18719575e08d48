/* tlv.h: tag-length-value, the encoding of rows and of record contents.
 *
 * An item is uvarint(tag) | uvarint(length) | value, items in any order, repeated tags allowed.
 * A tag with bit 0 set is critical: a reader that does not know it must refuse the whole value
 * (FGW_ERR_NEWER_VERSION); an unknown tag with bit 0 clear is carried over unchanged when the value
 * is rewritten. Integers are little-endian without leading zero bytes (0 has length 0).
 */
#ifndef FGW_BASE_TLV_H
#define FGW_BASE_TLV_H

#include "base/bytes.h"

void fgw_tlv_put(struct fgw_buf *out, uint64_t tag, struct fgw_bytes value);
void fgw_tlv_put_u64(struct fgw_buf *out, uint64_t tag, uint64_t value);
/* Nothing is written for an empty value: an absent item reads as empty. */
void fgw_tlv_put_nonempty(struct fgw_buf *out, uint64_t tag, struct fgw_bytes value);

struct fgw_tlv_item {
    uint64_t tag;
    struct fgw_bytes value;
    struct fgw_bytes raw; /* the whole item, to carry it over */
};

struct fgw_tlv_reader {
    struct fgw_bytes rest;
};

static inline struct fgw_tlv_reader fgw_tlv_reader(struct fgw_bytes bytes)
{
    return (struct fgw_tlv_reader){bytes};
}
/* The general case of the next one. */
enum fgw_err fgw_tlv_next_any(struct fgw_tlv_reader *reader,
                              struct fgw_tlv_item *out_item) FGW_MUST_CHECK;
/* FGW_OK with an item, FGW_ERR_END at the end, FGW_ERR_CORRUPT when an item does not fit. Inline for
 * small tags and lengths, since every row is read by it. */
FGW_MUST_CHECK static inline enum fgw_err fgw_tlv_next(struct fgw_tlv_reader *reader,
                                                       struct fgw_tlv_item *out_item)
{
    struct fgw_bytes rest = reader->rest;
    if (rest.len < 2 || ((rest.ptr[0] | rest.ptr[1]) & 0x80) != 0 || rest.ptr[1] > rest.len - 2) {
        return fgw_tlv_next_any(reader, out_item);
    }
    size_t len = rest.ptr[1];
    out_item->tag = rest.ptr[0];
    out_item->value = (struct fgw_bytes){rest.ptr + 2, len};
    out_item->raw = (struct fgw_bytes){rest.ptr, len + 2};
    reader->rest = (struct fgw_bytes){rest.ptr + len + 2, rest.len - len - 2};
    return FGW_OK;
}
/* FGW_ERR_CORRUPT when longer than 8 bytes or with a leading zero byte at the top. */
enum fgw_err fgw_tlv_u64(struct fgw_bytes value, uint64_t *out_value) FGW_MUST_CHECK;
static inline bool fgw_tlv_critical(uint64_t tag)
{
    return (tag & 1) != 0;
}

#endif
