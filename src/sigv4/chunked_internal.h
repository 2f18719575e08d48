/* chunked_internal.h: the chunk and trailer signatures that decoder and encoder share. */
#ifndef FGW_SIGV4_CHUNKED_INTERNAL_H
#define FGW_SIGV4_CHUNKED_INTERNAL_H

#include "sigv4/chunked.h"

/* HMAC of "AWS4-HMAC-SHA256-PAYLOAD", date, scope, previous signature, the empty hash, and the
 * hash of the chunk's data. */
void fgw_chunked_sign_chunk(const struct fgw_sig_seed *seed,
                            const uint8_t data_sha256[FGW_SHA256_SIZE],
                            uint8_t out_signature[FGW_SHA256_SIZE]);
/* HMAC of "AWS4-HMAC-SHA256-TRAILER", date, scope, previous signature, and the hash of the
 * trailers written as "name:value\n". */
void fgw_chunked_sign_trailer(const struct fgw_sig_seed *seed,
                              const uint8_t trailer_sha256[FGW_SHA256_SIZE],
                              uint8_t out_signature[FGW_SHA256_SIZE]);

#endif
