/* etag.c: see etag.h. */
#include "s3/etag.h"

#include "base/encode.h"

struct fgw_bytes fgw_s3_etag_bare(struct fgw_bytes text, bool *out_weak)
{
    struct fgw_bytes bare = fgw_bytes_trim(text);
    bool weak = fgw_bytes_starts_with(bare, FGW_LIT("W/"));
    if (weak) {
        bare = fgw_bytes_sub(bare, 2, SIZE_MAX);
    }
    if (bare.len >= 2 && bare.ptr[0] == '"' && bare.ptr[bare.len - 1] == '"') {
        bare = fgw_bytes_sub(bare, 1, bare.len - 2);
    }
    if (out_weak != NULL) {
        *out_weak = weak;
    }
    return bare;
}

bool fgw_s3_etag_list_has(struct fgw_bytes list, struct fgw_bytes etag, bool strong)
{
    struct fgw_bytes rest = list;
    struct fgw_bytes entry;
    while (fgw_bytes_split(&rest, ',', &entry)) {
        bool weak = false;
        struct fgw_bytes bare = fgw_s3_etag_bare(entry, &weak);
        if (fgw_bytes_eq_str(bare, "*") || (fgw_bytes_eq(bare, etag) && !(weak && strong))) {
            return true;
        }
    }
    return false;
}

struct fgw_bytes fgw_s3_etag_quoted(struct fgw_arena *arena, struct fgw_bytes etag)
{
    uint8_t *text = fgw_arena_alloc(arena, etag.len + 2);
    text[0] = '"';
    if (etag.len > 0) {
        memcpy(text + 1, etag.ptr, etag.len);
    }
    text[etag.len + 1] = '"';
    return fgw_bytes(text, etag.len + 2);
}

struct fgw_bytes fgw_s3_etag_of_md5(struct fgw_arena *arena, const uint8_t md5[16])
{
    char *text = fgw_arena_alloc(arena, 32);
    fgw_hex_encode(fgw_bytes(md5, 16), text);
    return fgw_bytes(text, 32);
}
