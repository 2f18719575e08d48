/* multibase.h: text to bytes by the first character (multiformats/multibase). Encoding is
 * fgw_base32_encode of base/encode.h behind a 'b': FGW writes no other base. */
#ifndef FGW_CID_MULTIBASE_H
#define FGW_CID_MULTIBASE_H

#include "base/bytes.h"

/* Bases b, B, k, K, z, f, F. Writes at most out_size bytes; FGW_ERR_TOO_LARGE when they do not
 * fit, FGW_ERR_PARSE for another base, a foreign character or spare bits that are not zero. */
enum fgw_err fgw_multibase_decode(struct fgw_bytes text, uint8_t *out, size_t out_size,
                                  size_t *out_len) FGW_MUST_CHECK;
/* Bitcoin's base58, without a multibase prefix. */
enum fgw_err fgw_base58_decode(struct fgw_bytes text, uint8_t *out, size_t out_size,
                               size_t *out_len) FGW_MUST_CHECK;

#endif
