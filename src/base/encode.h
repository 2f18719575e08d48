/* encode.h: hex, base64, base32 (lower, unpadded), percent-encoding, unsigned varint. */
#ifndef FGW_BASE_ENCODE_H
#define FGW_BASE_ENCODE_H

#include "base/arena.h"
#include "base/bytes.h"

/* Lower case, writes 2*len characters, no NUL. */
void fgw_hex_encode(struct fgw_bytes bytes, char *out);
/* Same, in the arena, NUL-terminated. */
char *fgw_hex(struct fgw_arena *arena, struct fgw_bytes bytes);
/* Either case; out has text.len/2 bytes; FGW_ERR_PARSE for odd length or other characters. */
enum fgw_err fgw_hex_decode(struct fgw_bytes text, uint8_t *out) FGW_MUST_CHECK;

/* RFC 4648 section 4, padded. Needs FGW_BASE64_SIZE(len) bytes, writes a NUL. */
#define FGW_BASE64_SIZE(len) (((len) + 2) / 3 * 4 + 1)
void fgw_base64_encode(struct fgw_bytes bytes, char *out);
/* Strict: full padding, no blanks, zero spare bits. out has text.len/4*3 bytes. */
enum fgw_err fgw_base64_decode(struct fgw_bytes text, uint8_t *out, size_t *out_len) FGW_MUST_CHECK;
/* RFC 4648 section 5 (url-safe alphabet), unpadded. */
void fgw_base64url_encode(struct fgw_bytes bytes, char *out);
enum fgw_err fgw_base64url_decode(struct fgw_bytes text, uint8_t *out, size_t *out_len) FGW_MUST_CHECK;

/* Lower case without padding (multibase 'b' without the letter). Writes a NUL. */
#define FGW_BASE32_SIZE(len) (((len) * 8 + 4) / 5 + 1)
void fgw_base32_encode(struct fgw_bytes bytes, char *out);
enum fgw_err fgw_base32_decode(struct fgw_bytes text, uint8_t *out, size_t *out_len) FGW_MUST_CHECK;

/* Percent-encodes everything but A-Z a-z 0-9 - _ . ~ (RFC 3986 unreserved; SigV4's UriEncode) and,
 * if keep_slash, '/'. Upper-case hex. */
enum fgw_err fgw_uri_encode(struct fgw_buf *out, struct fgw_bytes text, bool keep_slash);
/* Decodes %XX once; '+' stays '+', or becomes ' ' with plus_is_space. FGW_ERR_PARSE for a broken
 * escape. The result lives in the arena (or is the input when nothing was encoded). */
enum fgw_err fgw_uri_decode(struct fgw_arena *arena, struct fgw_bytes text, bool plus_is_space,
                            struct fgw_bytes *out_text) FGW_MUST_CHECK;

/* LEB128 as in multiformats/unsigned-varint: minimal, at most 9 bytes (63 bits). */
enum { FGW_UVARINT_MAX = 9 };
size_t fgw_uvarint_encode(uint64_t value, uint8_t out[FGW_UVARINT_MAX]);
/* Bytes used in *out_len. FGW_ERR_END when cut off, FGW_ERR_PARSE when not minimal or too long. */
enum fgw_err fgw_uvarint_decode(struct fgw_bytes bytes, uint64_t *out_value, size_t *out_len) FGW_MUST_CHECK;

#endif
