/* unixfs.c: encoding of a file's inner node; see unixfs.h.
 *
 * Node = links (field 2) first, then data (field 1): the order of dag-pb, on purpose not that of
 * the field numbers. A link's name is present and empty: without it no CID matches other tools'.
 */
#include "cid/unixfs.h"

#include "base/check.h"
#include "base/encode.h"
#include "cid/protobuf.h"

enum {
    NODE_LINK = 0x12,      /* PBNode.Links, bytes */
    NODE_DATA = 0x0a,      /* PBNode.Data, bytes */
    LINK_HASH = 0x0a,      /* PBLink.Hash, bytes */
    LINK_NAME = 0x12,      /* PBLink.Name, bytes */
    LINK_TSIZE = 0x18,     /* PBLink.Tsize, varint */
    FILE_TYPE = 0x08,      /* Data.Type, varint */
    FILE_SIZE = 0x18,      /* Data.filesize, varint */
    FILE_BLOCK_SIZE = 0x20 /* Data.blocksizes, varint each, not packed */
};

#define SUM_MAX (UINT64_C(1) << 62)

void fgw_unixfs_encoder_init(struct fgw_unixfs_encoder *encoder)
{
    *encoder = (struct fgw_unixfs_encoder){0};
    /* FGW_UNIXFS_LINKS_MAX bounds both */
    fgw_buf_init(&encoder->links, 0);
    fgw_buf_init(&encoder->block_sizes, 0);
}

void fgw_unixfs_encoder_deinit(struct fgw_unixfs_encoder *encoder)
{
    fgw_buf_deinit(&encoder->links);
    fgw_buf_deinit(&encoder->block_sizes);
}

void fgw_unixfs_encoder_clear(struct fgw_unixfs_encoder *encoder)
{
    fgw_buf_clear(&encoder->links);
    fgw_buf_clear(&encoder->block_sizes);
    encoder->link_count = 0;
    encoder->file_bytes = 0;
    encoder->tree_bytes = 0;
}

enum fgw_err fgw_unixfs_encoder_add(struct fgw_unixfs_encoder *encoder, const struct fgw_cid *cid,
                                    uint64_t file_bytes, uint64_t tree_bytes)
{
    if (encoder->link_count >= FGW_UNIXFS_LINKS_MAX || file_bytes > SUM_MAX - encoder->file_bytes ||
        tree_bytes > SUM_MAX - encoder->tree_bytes) {
        return FGW_ERR_TOO_LARGE;
    }
    uint8_t tsize[FGW_UVARINT_MAX];
    size_t tsize_len = fgw_uvarint_encode(tree_bytes, tsize);
    /* hash: tag, length, CID; name: tag, zero; tsize: tag, varint. Always below 128 */
    size_t link_len = 2 + FGW_CID_SIZE + 2 + 1 + tsize_len;
    uint8_t head[] = {NODE_LINK, (uint8_t)link_len, LINK_HASH, FGW_CID_SIZE};
    uint8_t tail[] = {LINK_NAME, 0, LINK_TSIZE};
    (void)fgw_buf_append(&encoder->links, fgw_bytes(head, sizeof head));
    (void)fgw_buf_append(&encoder->links, fgw_cid_bytes(cid));
    (void)fgw_buf_append(&encoder->links, fgw_bytes(tail, sizeof tail));
    (void)fgw_buf_append(&encoder->links, fgw_bytes(tsize, tsize_len));
    (void)fgw_buf_append_byte(&encoder->block_sizes, FILE_BLOCK_SIZE);
    fgw_protobuf_put_varint(&encoder->block_sizes, file_bytes);
    encoder->link_count++;
    encoder->file_bytes += file_bytes;
    encoder->tree_bytes += tree_bytes;
    return FGW_OK;
}

struct fgw_bytes fgw_unixfs_encoder_finish(struct fgw_unixfs_encoder *encoder)
{
    uint8_t size[FGW_UVARINT_MAX];
    size_t size_len = fgw_uvarint_encode(encoder->file_bytes, size);
    uint8_t type[] = {FILE_TYPE, FGW_UNIXFS_FILE, FILE_SIZE};
    struct fgw_buf *node = &encoder->links;
    (void)fgw_buf_append_byte(node, NODE_DATA);
    fgw_protobuf_put_varint(node, sizeof type + size_len + encoder->block_sizes.len);
    (void)fgw_buf_append(node, fgw_bytes(type, sizeof type));
    (void)fgw_buf_append(node, fgw_bytes(size, size_len));
    (void)fgw_buf_append(node, fgw_buf_bytes(&encoder->block_sizes));
    FGW_CHECK(node->len <= FGW_UNIXFS_NODE_MAX);
    return fgw_buf_bytes(node);
}
