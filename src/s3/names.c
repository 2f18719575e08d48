/* names.c: see names.h. */
#include "s3/names.h"

#include "base/check.h"

static bool is_alnum(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Four groups of one to three digits: AWS looks at the shape, not at the values. */
static bool looks_like_ipv4(struct fgw_bytes name)
{
    struct fgw_bytes rest = name;
    struct fgw_bytes group;
    unsigned groups = 0;
    while (fgw_bytes_split(&rest, '.', &group)) {
        uint64_t value;
        if (group.len > 3 || fgw_bytes_to_u64(group, &value) != FGW_OK) {
            return false;
        }
        groups++;
    }
    return groups == 4;
}

bool fgw_s3_bucket_name_valid(struct fgw_bytes name)
{
    if (name.len < 3 || name.len > 63 || !is_alnum(name.ptr[0]) ||
        !is_alnum(name.ptr[name.len - 1])) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        if (!is_alnum(c) && c != '.' && c != '-') {
            return false;
        }
        bool after_dot = i > 0 && name.ptr[i - 1] == '.';
        bool after_dash = i > 0 && name.ptr[i - 1] == '-';
        if ((c == '.' && (after_dot || after_dash)) || (c == '-' && after_dot)) {
            return false;
        }
    }
    return !looks_like_ipv4(name);
}

bool fgw_s3_bucket_name_reserved(struct fgw_bytes name)
{
    static const char *const BEGINNINGS[] = {"xn--", "sthree-", "amzn-s3-demo-"};
    static const char *const ENDS[] = {"-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"};
    for (size_t i = 0; i < FGW_COUNT_OF(BEGINNINGS); i++) {
        if (fgw_bytes_starts_with(name, fgw_bytes_str(BEGINNINGS[i]))) {
            return true;
        }
    }
    for (size_t i = 0; i < FGW_COUNT_OF(ENDS); i++) {
        if (fgw_bytes_ends_with(name, fgw_bytes_str(ENDS[i]))) {
            return true;
        }
    }
    return false;
}
