/* piece_cid.c: see piece_cid.h. */
#include "cid/piece_cid.h"

#include "base/check.h"
#include "base/encode.h"
#include "cid/cid.h"

/* multicodec table */
enum {
    CODEC_UNSEALED = 0xf101, /* fil-commitment-unsealed */
    HASH_V1 = 0x1012,        /* sha2-256-trunc254-padded */
    HASH_V2 = 0x1011         /* fr32-sha256-trunc254-padbintree */
};

enum { V2_DIGEST_MIN = 1 + 1 + FGW_COMMP_NODE_SIZE };

static const uint8_t V1_FRONT[] = {0x01, 0x81, 0xe2, 0x03, 0x92, 0x20, FGW_COMMP_NODE_SIZE};
static const uint8_t V2_FRONT[] = {0x01, FGW_CODEC_RAW, 0x91, 0x20};

void fgw_piece_cid_v1_text(const struct fgw_piece *piece, char out[FGW_PIECE_CID_V1_TEXT_SIZE])
{
    uint8_t cid[sizeof V1_FRONT + FGW_COMMP_NODE_SIZE];
    _Static_assert(1 + FGW_BASE32_SIZE(sizeof cid) == FGW_PIECE_CID_V1_TEXT_SIZE, "room");
    memcpy(cid, V1_FRONT, sizeof V1_FRONT);
    memcpy(cid + sizeof V1_FRONT, piece->root, FGW_COMMP_NODE_SIZE);
    out[0] = 'b';
    fgw_base32_encode(fgw_bytes(cid, sizeof cid), out + 1);
}

void fgw_piece_cid_v2_text(const struct fgw_piece *piece, char out[FGW_PIECE_CID_V2_TEXT_SIZE])
{
    uint8_t cid[sizeof V2_FRONT + 1 + FGW_UVARINT_MAX + 1 + FGW_COMMP_NODE_SIZE];
    _Static_assert(1 + FGW_BASE32_SIZE(sizeof cid) == FGW_PIECE_CID_V2_TEXT_SIZE, "room");
    uint8_t padding[FGW_UVARINT_MAX];
    size_t padding_len =
        fgw_uvarint_encode(fgw_commp_capacity(piece->height) - piece->payload_bytes, padding);
    uint8_t *at = cid;
    memcpy(at, V2_FRONT, sizeof V2_FRONT);
    at += sizeof V2_FRONT;
    *at++ = (uint8_t)(padding_len + 1 + FGW_COMMP_NODE_SIZE);
    memcpy(at, padding, padding_len);
    at += padding_len;
    *at++ = (uint8_t)piece->height;
    memcpy(at, piece->root, FGW_COMMP_NODE_SIZE);
    at += FGW_COMMP_NODE_SIZE;
    out[0] = 'b';
    fgw_base32_encode(fgw_bytes(cid, (size_t)(at - cid)), out + 1);
}

/* padding | height | root */
static enum fgw_err decode_v2(struct fgw_bytes digest, struct fgw_piece *piece)
{
    uint64_t padding = 0;
    size_t padding_len = 0;
    if (digest.len < V2_DIGEST_MIN ||
        fgw_uvarint_decode(digest, &padding, &padding_len) != FGW_OK ||
        digest.len != padding_len + 1 + FGW_COMMP_NODE_SIZE) {
        return FGW_ERR_PARSE;
    }
    piece->height = digest.ptr[padding_len];
    if (piece->height > FGW_COMMP_HEIGHT_MAX) {
        return FGW_ERR_TOO_LARGE;
    }
    if (piece->height < FGW_COMMP_HEIGHT_MIN || padding > fgw_commp_capacity(piece->height)) {
        return FGW_ERR_PARSE;
    }
    piece->payload_bytes = fgw_commp_capacity(piece->height) - padding;
    memcpy(piece->root, digest.ptr + padding_len + 1, FGW_COMMP_NODE_SIZE);
    return FGW_OK;
}

enum fgw_err fgw_piece_cid_from_text(struct fgw_bytes text, struct fgw_piece *out_piece,
                                     bool *out_sized)
{
    uint8_t scratch[FGW_CID_ENCODED_MAX];
    struct fgw_cid_view cid;
    enum fgw_err err = fgw_cid_decode_text(text, scratch, &cid);
    if (err != FGW_OK) {
        return FGW_ERR_PARSE;
    }
    struct fgw_piece piece = {0};
    bool sized = cid.codec == FGW_CODEC_RAW && cid.hash == HASH_V2;
    if (sized) {
        err = decode_v2(cid.digest, &piece);
    } else if (cid.codec == CODEC_UNSEALED && cid.hash == HASH_V1 &&
               cid.digest.len == FGW_COMMP_NODE_SIZE) {
        memcpy(piece.root, cid.digest.ptr, FGW_COMMP_NODE_SIZE);
    } else {
        err = FGW_ERR_PARSE;
    }
    if (err != FGW_OK) {
        return err;
    }
    /* a root has 254 bits */
    if (piece.root[FGW_COMMP_NODE_SIZE - 1] > 0x3f) {
        return FGW_ERR_PARSE;
    }
    *out_piece = piece;
    *out_sized = sized;
    return FGW_OK;
}
