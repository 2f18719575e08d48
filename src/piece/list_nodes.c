/* list_nodes.c: see list_nodes.h. */
#include "piece/list_nodes.h"

#include "base/check.h"

enum { CBOR_ARRAY = 0x80, CBOR_ONE_BYTE = 24, CBOR_TWO_BYTES = 25, CBOR_INLINE_MAX = 23 };

/* Tag 42, a byte string of 37, the identity multibase. */
static const uint8_t LINK_HEAD[] = {0xd8, 0x2a, 0x58, FGW_CID_SIZE + 1, 0x00};

static void put_array_head(struct fgw_buf *out, size_t count)
{
    uint8_t head[3] = {(uint8_t)(CBOR_ARRAY | count)};
    size_t len = 1;
    if (count > UINT8_MAX) {
        head[0] = CBOR_ARRAY | CBOR_TWO_BYTES;
        fgw_put_u16be(head + 1, (uint16_t)count);
        len = 3;
    } else if (count > CBOR_INLINE_MAX) {
        head[0] = CBOR_ARRAY | CBOR_ONE_BYTE;
        head[1] = (uint8_t)count;
        len = 2;
    }
    (void)fgw_buf_append(out, fgw_bytes(head, len));
}

struct fgw_cid fgw_piece_list_node(const struct fgw_cid *cids, size_t stride, size_t count,
                                   struct fgw_buf *out)
{
    FGW_CHECK(count >= 1 && count <= FGW_PIECE_LINKS_MAX);
    const uint8_t *at = (const uint8_t *)cids;
    fgw_buf_clear(out);
    put_array_head(out, count);
    for (size_t i = 0; i < count; i++, at += stride) {
        (void)fgw_buf_append(out, fgw_bytes(LINK_HEAD, sizeof LINK_HEAD));
        (void)fgw_buf_append(out, fgw_bytes(at, FGW_CID_SIZE));
    }
    return fgw_cid_of(FGW_CODEC_DAG_CBOR, fgw_buf_bytes(out));
}
