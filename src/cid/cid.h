/* cid.h: content identifiers.
 *
 * FGW makes one kind: CIDv1, codec raw or dag-pb, sha2-256: 36 bytes, struct fgw_cid. It reads more
 * kinds (version 0, other codecs and hashes, several text forms) into a view, which the caller
 * turns into its own kind or refuses. Bytes: docs/formats/cid.md; source: multiformats cid,
 * multihash, multibase, unsigned-varint. Pure functions, any thread; views do not own.
 */
#ifndef FGW_CID_CID_H
#define FGW_CID_CID_H

#include "base/bytes.h"
#include "base/digest.h"

/* multicodec table */
enum fgw_codec { FGW_CODEC_RAW = 0x55, FGW_CODEC_DAG_PB = 0x70, FGW_CODEC_DAG_CBOR = 0x71 };
enum fgw_multihash { FGW_MULTIHASH_IDENTITY = 0x00, FGW_MULTIHASH_SHA2_256 = 0x12 };

enum {
    FGW_CID_SIZE = 36,
    FGW_CID_TEXT_SIZE = 60,      /* 'b', 58 characters of base32, NUL */
    FGW_CID_DIGEST_MAX = 128,    /* longest digest accepted of any hash */
    FGW_CID_ENCODED_MAX = 160,   /* longest binary CID accepted */
    FGW_CID_TEXT_INPUT_MAX = 330 /* longest text accepted */
};

/* 01 | codec | 12 20 | digest[32] */
struct fgw_cid {
    uint8_t bytes[FGW_CID_SIZE];
};
_Static_assert(sizeof(struct fgw_cid) == FGW_CID_SIZE, "a disk and wire format");

/* Any CID; digest and encoded point into what was parsed. */
struct fgw_cid_view {
    unsigned version; /* 0 or 1 */
    uint64_t codec;   /* dag-pb for version 0 */
    uint64_t hash;    /* multihash code */
    struct fgw_bytes digest;
    struct fgw_bytes encoded; /* the whole binary CID */
};

/* codec: raw, dag-pb, or dag-cbor (the list nodes of a piece only; not read back). */
struct fgw_cid fgw_cid_make(enum fgw_codec codec, const uint8_t sha256[FGW_SHA256_SIZE]);
/* The CID of a block's bytes. */
struct fgw_cid fgw_cid_of(enum fgw_codec codec, struct fgw_bytes block);
static inline enum fgw_codec fgw_cid_codec(const struct fgw_cid *cid)
{
    return (enum fgw_codec)cid->bytes[1];
}
/* The 32 digest bytes inside `cid`. */
static inline const uint8_t *fgw_cid_digest(const struct fgw_cid *cid)
{
    return cid->bytes + 4;
}
static inline struct fgw_bytes fgw_cid_bytes(const struct fgw_cid *cid)
{
    return fgw_bytes(cid->bytes, FGW_CID_SIZE);
}
static inline bool fgw_cid_eq(const struct fgw_cid *a, const struct fgw_cid *b)
{
    return memcmp(a->bytes, b->bytes, FGW_CID_SIZE) == 0;
}

/* Writes the canonical text (multibase 'b') and a NUL. */
void fgw_cid_text(const struct fgw_cid *cid, char out[FGW_CID_TEXT_SIZE]);

/* One CID at the front of `bytes`; out_cid->encoded tells how long it is. FGW_ERR_END when it is
 * cut off, FGW_ERR_PARSE when it is none (other version, varint not minimal, sha2-256 not of 32
 * bytes), FGW_ERR_TOO_LARGE when the digest is longer than FGW_CID_DIGEST_MAX. */
enum fgw_err fgw_cid_decode(struct fgw_bytes bytes, struct fgw_cid_view *out_cid) FGW_MUST_CHECK;
/* A whole text: version 0 ("Qm...", base58btc) or a multibase form: b, B (base32), k, K (base36),
 * z (base58btc), f, F (hex). The view points into `scratch`. FGW_ERR_PARSE, _TOO_LARGE. */
enum fgw_err fgw_cid_decode_text(struct fgw_bytes text, uint8_t scratch[FGW_CID_ENCODED_MAX],
                                 struct fgw_cid_view *out_cid) FGW_MUST_CHECK;
/* Into our own kind; a version 0 becomes version 1 dag-pb. FGW_ERR_NOT_IMPLEMENTED when the hash is
 * not sha2-256 or the codec neither raw nor dag-pb. */
enum fgw_err fgw_cid_from_view(const struct fgw_cid_view *view,
                               struct fgw_cid *out_cid) FGW_MUST_CHECK;
/* fgw_cid_decode_text and fgw_cid_from_view in one. */
enum fgw_err fgw_cid_from_text(struct fgw_bytes text, struct fgw_cid *out_cid) FGW_MUST_CHECK;
/* Our kind exactly, all of `bytes`: FGW_ERR_PARSE for anything else, also for version 0. */
enum fgw_err fgw_cid_from_bytes(struct fgw_bytes bytes, struct fgw_cid *out_cid) FGW_MUST_CHECK;
/* Does the CID name these bytes? FGW_ERR_CORRUPT when not, FGW_ERR_NOT_IMPLEMENTED when the hash is
 * neither sha2-256 nor identity. */
enum fgw_err fgw_cid_verify(const struct fgw_cid_view *cid, struct fgw_bytes block) FGW_MUST_CHECK;

#endif
