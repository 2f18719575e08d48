/* etag.h: ETags as clients write them. Pure functions. Ours are 32 hex digits, or with "-N". */
#ifndef FGW_S3_ETAG_H
#define FGW_S3_ETAG_H

#include "base/arena.h"
#include "base/bytes.h"

/* Without a leading W/ and without quotes, when they are there. *out_weak may be NULL. */
struct fgw_bytes fgw_s3_etag_bare(struct fgw_bytes text, bool *out_weak);
/* Does a list such as `"a", W/"b", c` or `*` name this etag (given without quotes)? strong: weak
 * entries never match (If-Match, RFC 9110 section 13.1.1). */
bool fgw_s3_etag_list_has(struct fgw_bytes list, struct fgw_bytes etag, bool strong);
/* In quotes, in the arena. */
struct fgw_bytes fgw_s3_etag_quoted(struct fgw_arena *arena, struct fgw_bytes etag);
/* 32 hex digits of an MD5, in the arena. */
struct fgw_bytes fgw_s3_etag_of_md5(struct fgw_arena *arena, const uint8_t md5[16]);

#endif
