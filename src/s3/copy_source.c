/* copy_source.c: see copy_source.h. */
#include "s3/copy_source.h"

#include "base/encode.h"

static enum fgw_err parse_version(struct fgw_bytes text, struct fgw_version *out_version)
{
    static const char NAME[] = "versionId=";
    if (!fgw_bytes_starts_with(text, FGW_LIT("versionId="))) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    struct fgw_bytes id = fgw_bytes_sub(text, sizeof NAME - 1, SIZE_MAX);
    struct fgw_version version = {.kind = FGW_VERSION_NULL};
    if (!fgw_bytes_eq_str(id, "null")) {
        version.kind = FGW_VERSION_ID;
        if (fgw_id_parse(id, &version.id) != FGW_OK) {
            return FGW_ERR_INVALID_ARGUMENT;
        }
    }
    *out_version = version;
    return FGW_OK;
}

enum fgw_err fgw_s3_copy_source_parse(struct fgw_arena *arena, struct fgw_bytes text,
                                      struct fgw_s3_copy_source *out_source)
{
    struct fgw_s3_copy_source source = {.version = {.kind = FGW_VERSION_LATEST}};
    struct fgw_bytes path = text;
    size_t question = fgw_bytes_find_byte(text, '?');
    if (question != SIZE_MAX) {
        path = fgw_bytes_sub(text, 0, question);
        if (parse_version(fgw_bytes_sub(text, question + 1, SIZE_MAX), &source.version) != FGW_OK) {
            return FGW_ERR_INVALID_ARGUMENT;
        }
    }
    /* decoded before it is split: some clients send the separator as %2F */
    struct fgw_bytes decoded;
    if (fgw_uri_decode(arena, path, false, &decoded) != FGW_OK || !fgw_utf8_valid(decoded)) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    if (decoded.len > 0 && decoded.ptr[0] == '/') {
        decoded = fgw_bytes_sub(decoded, 1, SIZE_MAX);
    }
    size_t slash = fgw_bytes_find_byte(decoded, '/');
    if (slash == SIZE_MAX) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    source.bucket = fgw_bytes_sub(decoded, 0, slash);
    source.key = fgw_bytes_sub(decoded, slash + 1, SIZE_MAX);
    if (source.bucket.len == 0 || source.key.len == 0 || source.key.len > FGW_META_KEY_MAX) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    *out_source = source;
    return FGW_OK;
}
