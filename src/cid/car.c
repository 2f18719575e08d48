/* car.c: header and section codec; see car.h. */
#include "cid/car.h"

#include "base/check.h"
#include "base/encode.h"
#include "cid/cbor.h"

/* map(2) "roots": array(1) of tag 42 over bytes(37): 00, CID; "version": 1 */
static const uint8_t HEADER_FRONT[] = {0x3a, 0xa2, 0x65, 'r',  'o',  'o',  't',
                                       's',  0x81, 0xd8, 0x2a, 0x58, 0x25, 0x00};
static const uint8_t HEADER_BACK[] = {0x67, 'v', 'e', 'r', 's', 'i', 'o', 'n', 0x01};
_Static_assert(sizeof HEADER_FRONT + FGW_CID_SIZE + sizeof HEADER_BACK == FGW_CAR_HEADER_SIZE,
               "a disk format");

struct fgw_cid fgw_car_placeholder_root(void)
{
    return (struct fgw_cid){{1, FGW_CODEC_RAW, FGW_MULTIHASH_IDENTITY, FGW_SHA256_SIZE}};
}

void fgw_car_header_encode(const struct fgw_cid *root, uint8_t out[FGW_CAR_HEADER_SIZE])
{
    memcpy(out, HEADER_FRONT, sizeof HEADER_FRONT);
    memcpy(out + sizeof HEADER_FRONT, root->bytes, FGW_CID_SIZE);
    memcpy(out + sizeof HEADER_FRONT + FGW_CID_SIZE, HEADER_BACK, sizeof HEADER_BACK);
}

size_t fgw_car_section_head_encode(const struct fgw_cid *cid, size_t block_size,
                                   uint8_t out[FGW_CAR_SECTION_HEAD_MAX])
{
    FGW_CHECK(block_size <= FGW_CAR_BLOCK_MAX);
    size_t len = fgw_uvarint_encode(FGW_CID_SIZE + block_size, out);
    memcpy(out + len, cid->bytes, FGW_CID_SIZE);
    return len + FGW_CID_SIZE;
}

size_t fgw_car_section_size(size_t block_size)
{
    uint8_t varint[FGW_UVARINT_MAX];
    return fgw_uvarint_encode(FGW_CID_SIZE + block_size, varint) + FGW_CID_SIZE + block_size;
}

static enum fgw_err take_roots(struct fgw_bytes *rest, struct fgw_car_header *header)
{
    uint64_t count = 0;
    enum fgw_err err = fgw_cbor_take_head(rest, FGW_CBOR_ARRAY, &count);
    if (err != FGW_OK || count > FGW_CAR_HEADER_MAX) {
        return FGW_ERR_CORRUPT;
    }
    struct fgw_bytes before = *rest;
    for (uint64_t i = 0; i < count; i++) {
        struct fgw_cid_view root;
        err = fgw_cbor_take_cid(rest, &root);
        if (err != FGW_OK) {
            return err;
        }
    }
    header->root_count = (size_t)count;
    header->roots = fgw_bytes_sub(before, 0, before.len - rest->len);
    return FGW_OK;
}

/* One key and its value; a version other than 1 is told from damage. */
static enum fgw_err take_header_entry(struct fgw_bytes *rest, struct fgw_car_header *header,
                                      bool *seen_roots, bool *seen_version)
{
    struct fgw_bytes key;
    enum fgw_err err = fgw_cbor_take_string(rest, FGW_CBOR_TEXT, &key);
    if (err != FGW_OK) {
        return err;
    }
    if (fgw_bytes_eq(key, FGW_LIT("roots")) && !*seen_roots) {
        *seen_roots = true;
        return take_roots(rest, header);
    }
    if (fgw_bytes_eq(key, FGW_LIT("version")) && !*seen_version) {
        *seen_version = true;
        uint64_t version = 0;
        err = fgw_cbor_take_head(rest, FGW_CBOR_UINT, &version);
        return err == FGW_OK && version != 1 ? FGW_ERR_NOT_IMPLEMENTED : err;
    }
    return FGW_ERR_CORRUPT;
}

enum fgw_err fgw_car_header_decode(struct fgw_bytes cbor, struct fgw_car_header *out_header)
{
    struct fgw_bytes rest = cbor;
    struct fgw_car_header header = {0};
    uint64_t entries = 0;
    bool seen_roots = false;
    bool seen_version = false;
    enum fgw_err err = fgw_cbor_take_head(&rest, FGW_CBOR_MAP, &entries);
    for (uint64_t i = 0; err == FGW_OK && i < entries; i++) {
        err = take_header_entry(&rest, &header, &seen_roots, &seen_version);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (!seen_roots || !seen_version || rest.len != 0) {
        return FGW_ERR_CORRUPT;
    }
    *out_header = header;
    return FGW_OK;
}

enum fgw_err fgw_car_next_root(struct fgw_bytes *roots, struct fgw_cid_view *out_root)
{
    return roots->len == 0 ? FGW_ERR_END : fgw_cbor_take_cid(roots, out_root);
}

enum fgw_err fgw_car_section_decode(struct fgw_bytes bytes, struct fgw_car_section *out_section)
{
    uint64_t len = 0;
    size_t varint_len = 0;
    enum fgw_err err = fgw_uvarint_decode(bytes, &len, &varint_len);
    if (err != FGW_OK) {
        return err == FGW_ERR_END ? err : FGW_ERR_CORRUPT;
    }
    if (len > FGW_CAR_SECTION_MAX) {
        return FGW_ERR_TOO_LARGE;
    }
    struct fgw_bytes inside = fgw_bytes_sub(bytes, varint_len, (size_t)len);
    struct fgw_cid_view cid;
    err = fgw_cid_decode(inside, &cid);
    if (err == FGW_ERR_END && inside.len < len) {
        return FGW_ERR_END;
    }
    if (err != FGW_OK) {
        return FGW_ERR_CORRUPT;
    }
    size_t block_size = (size_t)len - cid.encoded.len;
    if (block_size > FGW_CAR_BLOCK_MAX) {
        return FGW_ERR_TOO_LARGE;
    }
    *out_section = (struct fgw_car_section){varint_len + cid.encoded.len, block_size, cid};
    return FGW_OK;
}
