/* fuzz_range.c: Range headers: what is served lies inside the object. The first 8 bytes are the
 * object's size. */
#include "base/check.h"
#include "s3/range.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(const struct fgw_s3_range *range, uint64_t size)
{
    FGW_CHECK(range->len > 0);
    FGW_CHECK(range->offset < size);
    FGW_CHECK(range->len <= size - range->offset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8) {
        return 0;
    }
    uint64_t object_size = fgw_get_u64le(data) >> (data[0] & 63);
    struct fgw_bytes text = fgw_bytes(data + 8, size - 8);
    struct fgw_s3_range range;
    if (fgw_s3_range_parse(text, object_size, &range) == FGW_S3_RANGE_PART) {
        check_inside(&range, object_size);
    }
    if (fgw_s3_copy_range_parse(text, object_size, &range) == FGW_OK) {
        check_inside(&range, object_size);
    }
    return 0;
}
