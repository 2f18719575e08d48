/* fuzz_dates.c: dates of HTTP, SigV4 and XML. What is read is written back as the same moment. */
#include <string.h>

#include "base/check.h"
#include "base/timefmt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DAY_MS = 24 * 3600 * 1000 };

/* Writing clamps years; an offset may lead out of them by less than two days. */
static bool within_years(int64_t wall_ms)
{
    static const int64_t FIRST = -62167219200000; /* 0000-01-01 */
    static const int64_t LAST = 253402300799999;  /* 9999-12-31 */
    FGW_CHECK(wall_ms >= FIRST - 2 * (int64_t)DAY_MS && wall_ms <= LAST + 2 * (int64_t)DAY_MS);
    return wall_ms >= FIRST && wall_ms <= LAST;
}

static int64_t seconds(int64_t wall_ms)
{
    int64_t rest = wall_ms % 1000;
    return wall_ms - (rest < 0 ? rest + 1000 : rest);
}

static void check_moment(int64_t wall_ms)
{
    char http[FGW_TIME_HTTP_SIZE];
    char basic[FGW_TIME_BASIC_SIZE];
    char iso[FGW_TIME_ISO8601_SIZE];
    int64_t again = 0;
    if (!within_years(wall_ms)) {
        return;
    }
    fgw_time_http(wall_ms, http);
    FGW_CHECK(fgw_time_parse_http(fgw_bytes_str(http), &again) == FGW_OK);
    FGW_CHECK(again == seconds(wall_ms));
    fgw_time_basic(wall_ms, basic);
    FGW_CHECK(fgw_time_parse_basic(fgw_bytes_str(basic), &again) == FGW_OK);
    FGW_CHECK(again == seconds(wall_ms));
    fgw_time_iso8601(wall_ms, iso);
    FGW_CHECK(fgw_time_parse_iso8601(fgw_bytes_str(iso), &again) == FGW_OK);
    FGW_CHECK(again == wall_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_bytes text = fgw_bytes(data, size);
    int64_t wall_ms = 0;
    if (fgw_time_parse_http(text, &wall_ms) == FGW_OK) {
        check_moment(wall_ms);
    }
    if (fgw_time_parse_basic(text, &wall_ms) == FGW_OK) {
        check_moment(wall_ms);
    }
    if (fgw_time_parse_iso8601(text, &wall_ms) == FGW_OK) {
        check_moment(wall_ms);
    }
    return 0;
}
