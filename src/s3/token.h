/* token.h: continuation tokens: the last key given out, signed with a key all proxies share, so that
 * one proxy goes on where another stopped and a token that is not ours is refused. */
#ifndef FGW_S3_TOKEN_H
#define FGW_S3_TOKEN_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/digest.h"

/* Text for `last`, in the arena. */
struct fgw_bytes fgw_s3_token_make(struct fgw_arena *arena, const uint8_t key[FGW_SHA256_SIZE],
                                   struct fgw_bytes last);
/* The key inside; FGW_ERR_INVALID_ARGUMENT when the token is not one of ours. */
enum fgw_err fgw_s3_token_open(struct fgw_arena *arena, const uint8_t key[FGW_SHA256_SIZE],
                               struct fgw_bytes token, struct fgw_bytes *out_last) FGW_MUST_CHECK;

#endif
