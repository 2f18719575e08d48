/* range.c: see range.h. */
#include "s3/range.h"

/* One "first-last" with the ends as written. */
struct spec {
    bool has_first;
    bool has_last;
    uint64_t first;
    uint64_t last;
};

/* Digits, also more than fit: those count as UINT64_MAX. */
static bool parse_number(struct fgw_bytes text, bool *out_given, uint64_t *out_value)
{
    *out_given = text.len > 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
    }
    if (text.len > 0 && fgw_bytes_to_u64(text, out_value) != FGW_OK) {
        *out_value = UINT64_MAX;
    }
    return true;
}

static bool parse_spec(struct fgw_bytes text, struct spec *out_spec)
{
    struct fgw_bytes unit = fgw_bytes_sub(text, 0, 6);
    if (!fgw_bytes_ieq_str(unit, "bytes=")) {
        return false;
    }
    struct fgw_bytes spec = fgw_bytes_sub(text, 6, SIZE_MAX);
    size_t dash = fgw_bytes_find_byte(spec, '-');
    if (dash == SIZE_MAX) {
        return false;
    }
    struct spec parsed = {0};
    if (!parse_number(fgw_bytes_sub(spec, 0, dash), &parsed.has_first, &parsed.first) ||
        !parse_number(fgw_bytes_sub(spec, dash + 1, SIZE_MAX), &parsed.has_last, &parsed.last)) {
        return false;
    }
    if ((!parsed.has_first && !parsed.has_last) ||
        (parsed.has_first && parsed.has_last && parsed.last < parsed.first)) {
        return false;
    }
    *out_spec = parsed;
    return true;
}

static enum fgw_s3_range_kind suffix(uint64_t wanted, uint64_t size, struct fgw_s3_range *out_range)
{
    if (wanted == 0) {
        return FGW_S3_RANGE_UNSATISFIABLE;
    }
    if (size == 0) {
        return FGW_S3_RANGE_WHOLE;
    }
    uint64_t len = wanted < size ? wanted : size;
    *out_range = (struct fgw_s3_range){size - len, len};
    return FGW_S3_RANGE_PART;
}

enum fgw_s3_range_kind fgw_s3_range_parse(struct fgw_bytes text, uint64_t size,
                                          struct fgw_s3_range *out_range)
{
    struct spec spec;
    if (text.ptr == NULL || !parse_spec(text, &spec)) {
        return FGW_S3_RANGE_WHOLE;
    }
    if (!spec.has_first) {
        return suffix(spec.last, size, out_range);
    }
    if (spec.first >= size) {
        return FGW_S3_RANGE_UNSATISFIABLE;
    }
    uint64_t last = spec.has_last && spec.last < size ? spec.last : size - 1;
    *out_range = (struct fgw_s3_range){spec.first, last - spec.first + 1};
    return FGW_S3_RANGE_PART;
}

enum fgw_err fgw_s3_copy_range_parse(struct fgw_bytes text, uint64_t size,
                                     struct fgw_s3_range *out_range)
{
    struct spec spec;
    if (!parse_spec(text, &spec) || !spec.has_first || !spec.has_last) {
        return FGW_ERR_INVALID_ARGUMENT;
    }
    if (spec.last >= size) {
        return FGW_ERR_INVALID_RANGE;
    }
    *out_range = (struct fgw_s3_range){spec.first, spec.last - spec.first + 1};
    return FGW_OK;
}
