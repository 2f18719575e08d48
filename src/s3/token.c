/* token.c: see token.h. */
#include "s3/token.h"

#include "base/encode.h"

/* base64url( mac[12] | last key ) */
enum { MAC_SIZE = 12, MAX_TOKEN = 2048 };

struct fgw_bytes fgw_s3_token_make(struct fgw_arena *arena, const uint8_t key[FGW_SHA256_SIZE],
                                   struct fgw_bytes last)
{
    uint8_t mac[FGW_SHA256_SIZE];
    fgw_hmac_sha256(fgw_bytes(key, FGW_SHA256_SIZE), last, mac);
    uint8_t *plain = fgw_arena_alloc(arena, MAC_SIZE + last.len);
    memcpy(plain, mac, MAC_SIZE);
    if (last.len > 0) {
        memcpy(plain + MAC_SIZE, last.ptr, last.len);
    }
    char *text = fgw_arena_alloc(arena, FGW_BASE64_SIZE(MAC_SIZE + last.len));
    fgw_base64url_encode(fgw_bytes(plain, MAC_SIZE + last.len), text);
    return fgw_bytes_str(text);
}

enum fgw_err fgw_s3_token_open(struct fgw_arena *arena, const uint8_t key[FGW_SHA256_SIZE],
                               struct fgw_bytes token, struct fgw_bytes *out_last)
{
    if (token.len > MAX_TOKEN) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    uint8_t *plain = fgw_arena_alloc(arena, token.len + 4);
    size_t len = 0;
    if (fgw_base64url_decode(token, plain, &len) != FGW_OK || len < MAC_SIZE) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    struct fgw_bytes last = fgw_bytes(plain + MAC_SIZE, len - MAC_SIZE);
    uint8_t mac[FGW_SHA256_SIZE];
    fgw_hmac_sha256(fgw_bytes(key, FGW_SHA256_SIZE), last, mac);
    if (!fgw_bytes_eq_secret(fgw_bytes(mac, MAC_SIZE), fgw_bytes(plain, MAC_SIZE))) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    *out_last = last;
    return FGW_OK;
}
