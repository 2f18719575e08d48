/* cid.c: see cid.h. */
#include "cid/cid.h"

#include "base/check.h"
#include "base/encode.h"
#include "cid/multibase.h"

enum { V0_SIZE = 34, V0_TEXT_LEN = 46, HEAD_SIZE = 4 };

struct fgw_cid fgw_cid_make(enum fgw_codec codec, const uint8_t sha256[FGW_SHA256_SIZE])
{
    FGW_CHECK(codec == FGW_CODEC_RAW || codec == FGW_CODEC_DAG_PB || codec == FGW_CODEC_DAG_CBOR);
    struct fgw_cid cid = {{1, (uint8_t)codec, FGW_MULTIHASH_SHA2_256, FGW_SHA256_SIZE}};
    memcpy(cid.bytes + HEAD_SIZE, sha256, FGW_SHA256_SIZE);
    return cid;
}

struct fgw_cid fgw_cid_of(enum fgw_codec codec, struct fgw_bytes block)
{
    uint8_t sha256[FGW_SHA256_SIZE];
    fgw_sha256(block, sha256);
    return fgw_cid_make(codec, sha256);
}

void fgw_cid_text(const struct fgw_cid *cid, char out[FGW_CID_TEXT_SIZE])
{
    _Static_assert(1 + FGW_BASE32_SIZE(FGW_CID_SIZE) == FGW_CID_TEXT_SIZE, "room for the text");
    out[0] = 'b';
    fgw_base32_encode(fgw_cid_bytes(cid), out + 1);
}

static bool starts_as_v0(struct fgw_bytes bytes)
{
    return bytes.len >= 2 && bytes.ptr[0] == FGW_MULTIHASH_SHA2_256 &&
           bytes.ptr[1] == FGW_SHA256_SIZE;
}

static enum fgw_err take_uvarint(struct fgw_bytes *rest, uint64_t *out_value)
{
    size_t len;
    enum fgw_err err = fgw_uvarint_decode(*rest, out_value, &len);
    if (err == FGW_OK) {
        *rest = fgw_bytes_sub(*rest, len, SIZE_MAX);
    }
    return err;
}

static enum fgw_err decode_v0(struct fgw_bytes bytes, struct fgw_cid_view *out_cid)
{
    if (bytes.len < V0_SIZE) {
        return FGW_ERR_END;
    }
    *out_cid = (struct fgw_cid_view){.version = 0,
                                     .codec = FGW_CODEC_DAG_PB,
                                     .hash = FGW_MULTIHASH_SHA2_256,
                                     .digest = fgw_bytes(bytes.ptr + 2, FGW_SHA256_SIZE),
                                     .encoded = fgw_bytes(bytes.ptr, V0_SIZE)};
    return FGW_OK;
}

enum fgw_err fgw_cid_decode(struct fgw_bytes bytes, struct fgw_cid_view *out_cid)
{
    if (starts_as_v0(bytes)) {
        return decode_v0(bytes, out_cid);
    }
    struct fgw_bytes rest = bytes;
    uint64_t fields[4]; /* version, codec, hash, digest length */
    for (size_t i = 0; i < FGW_COUNT_OF(fields); i++) {
        enum fgw_err err = take_uvarint(&rest, &fields[i]);
        if (err != FGW_OK) {
            return err;
        }
        /* at once, not when the rest has come: a stream must fail on its first wrong byte, except
         * that 0x12 alone may still become a version 0 */
        if (i == 0 && fields[0] != 1) {
            return bytes.len == 1 && fields[0] == FGW_MULTIHASH_SHA2_256 ? FGW_ERR_END
                                                                         : FGW_ERR_PARSE;
        }
    }
    if (fields[2] == FGW_MULTIHASH_SHA2_256 && fields[3] != FGW_SHA256_SIZE) {
        return FGW_ERR_PARSE;
    }
    if (fields[3] > FGW_CID_DIGEST_MAX) {
        return FGW_ERR_TOO_LARGE;
    }
    if (rest.len < fields[3]) {
        return FGW_ERR_END;
    }
    size_t head_len = bytes.len - rest.len;
    *out_cid = (struct fgw_cid_view){.version = 1,
                                     .codec = fields[1],
                                     .hash = fields[2],
                                     .digest = fgw_bytes(rest.ptr, (size_t)fields[3]),
                                     .encoded = fgw_bytes(bytes.ptr, head_len + (size_t)fields[3])};
    return FGW_OK;
}

enum fgw_err fgw_cid_decode_text(struct fgw_bytes text, uint8_t scratch[FGW_CID_ENCODED_MAX],
                                 struct fgw_cid_view *out_cid)
{
    if (text.len > FGW_CID_TEXT_INPUT_MAX) {
        return FGW_ERR_TOO_LARGE;
    }
    bool v0 = text.len == V0_TEXT_LEN && fgw_bytes_starts_with(text, FGW_LIT("Qm"));
    size_t len = 0;
    enum fgw_err err = v0 ? fgw_base58_decode(text, scratch, FGW_CID_ENCODED_MAX, &len)
                          : fgw_multibase_decode(text, scratch, FGW_CID_ENCODED_MAX, &len);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_bytes encoded = fgw_bytes(scratch, len);
    struct fgw_cid_view view;
    /* a version 0 has no multibase form, and only it lacks one */
    if (starts_as_v0(encoded) != v0) {
        return FGW_ERR_PARSE;
    }
    err = fgw_cid_decode(encoded, &view);
    if (err != FGW_OK) {
        return err == FGW_ERR_END ? FGW_ERR_PARSE : err;
    }
    if (view.encoded.len != len) {
        return FGW_ERR_PARSE;
    }
    *out_cid = view;
    return FGW_OK;
}

enum fgw_err fgw_cid_from_view(const struct fgw_cid_view *view, struct fgw_cid *out_cid)
{
    bool known_codec = view->codec == FGW_CODEC_RAW || view->codec == FGW_CODEC_DAG_PB;
    if (!known_codec || view->hash != FGW_MULTIHASH_SHA2_256) {
        return FGW_ERR_NOT_IMPLEMENTED;
    }
    *out_cid = fgw_cid_make((enum fgw_codec)view->codec, view->digest.ptr);
    return FGW_OK;
}

enum fgw_err fgw_cid_from_text(struct fgw_bytes text, struct fgw_cid *out_cid)
{
    uint8_t scratch[FGW_CID_ENCODED_MAX];
    struct fgw_cid_view view;
    enum fgw_err err = fgw_cid_decode_text(text, scratch, &view);
    return err == FGW_OK ? fgw_cid_from_view(&view, out_cid) : err;
}

enum fgw_err fgw_cid_from_bytes(struct fgw_bytes bytes, struct fgw_cid *out_cid)
{
    if (bytes.len != FGW_CID_SIZE || bytes.ptr[0] != 1 ||
        (bytes.ptr[1] != FGW_CODEC_RAW && bytes.ptr[1] != FGW_CODEC_DAG_PB) ||
        bytes.ptr[2] != FGW_MULTIHASH_SHA2_256 || bytes.ptr[3] != FGW_SHA256_SIZE) {
        return FGW_ERR_PARSE;
    }
    memcpy(out_cid->bytes, bytes.ptr, FGW_CID_SIZE);
    return FGW_OK;
}

enum fgw_err fgw_cid_verify(const struct fgw_cid_view *cid, struct fgw_bytes block)
{
    if (cid->hash == FGW_MULTIHASH_IDENTITY) {
        return fgw_bytes_eq(cid->digest, block) ? FGW_OK : FGW_ERR_CORRUPT;
    }
    if (cid->hash != FGW_MULTIHASH_SHA2_256) {
        return FGW_ERR_NOT_IMPLEMENTED;
    }
    uint8_t sha256[FGW_SHA256_SIZE];
    fgw_sha256(block, sha256);
    return fgw_bytes_eq(cid->digest, fgw_bytes(sha256, sizeof sha256)) ? FGW_OK : FGW_ERR_CORRUPT;
}
