/* timefmt.c: see timefmt.h. Civil-date arithmetic after Howard Hinnant, "chrono-Compatible
 * Low-Level Date Algorithms" (days_from_civil, civil_from_days). */
#include "base/timefmt.h"

enum { DAYS_OF_ERA = 146097 };

struct civil {
    int64_t year;
    unsigned month, day, hour, minute, second, ms, weekday;
};

static const char *const MONTHS[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char *const WEEKDAYS[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const int64_t MIN_WALL_MS = -62167219200000; /* 0000-01-01 */
static const int64_t MAX_WALL_MS = 253402300799999; /* 9999-12-31 */

static int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    unsigned year_of_era = (unsigned)(year - era * 400);
    unsigned day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + (int64_t)day_of_era - 719468;
}

static struct civil civil_from_ms(int64_t wall_ms)
{
    if (wall_ms < MIN_WALL_MS) {
        wall_ms = MIN_WALL_MS;
    }
    if (wall_ms > MAX_WALL_MS) {
        wall_ms = MAX_WALL_MS;
    }
    int64_t days = wall_ms / 86400000;
    int64_t in_day = wall_ms - days * 86400000;
    if (in_day < 0) {
        in_day += 86400000;
        days--;
    }
    /* counted from an era before the year 0, so that 32 bits without a sign do */
    unsigned shifted = (unsigned)(days + 719468 + DAYS_OF_ERA);
    unsigned era = shifted / DAYS_OF_ERA;
    unsigned day_of_era = shifted - era * DAYS_OF_ERA;
    unsigned year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned shifted_month = (5 * day_of_year + 2) / 153;
    struct civil c;
    c.day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    c.month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
    c.year = (int64_t)year_of_era + (int64_t)era * 400 - 400 + (c.month <= 2);
    unsigned seconds = (unsigned)in_day / 1000;
    c.hour = seconds / 3600;
    c.minute = seconds / 60 % 60;
    c.second = seconds % 60;
    c.ms = (unsigned)in_day - seconds * 1000;
    c.weekday = (shifted + 3) % 7;
    return c;
}

/* Digits with leading zeros; the end of them. snprintf takes ten times as long, and a list of 1,000
 * entries writes 7,000 numbers. */
static char *put_digits(char *out, unsigned value, unsigned count)
{
    for (unsigned i = count; i > 0; i--) {
        out[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return out + count;
}

static char *put_clock(char *out, const struct civil *c)
{
    out = put_digits(out, c->hour, 2);
    *out++ = ':';
    out = put_digits(out, c->minute, 2);
    *out++ = ':';
    return put_digits(out, c->second, 2);
}

static char *put_text3(char *out, const char *text)
{
    memcpy(out, text, 3);
    return out + 3;
}

void fgw_time_iso8601(int64_t wall_ms, char out[FGW_TIME_ISO8601_SIZE])
{
    struct civil c = civil_from_ms(wall_ms);
    out = put_digits(out, (unsigned)c.year, 4);
    *out++ = '-';
    out = put_digits(out, c.month, 2);
    *out++ = '-';
    out = put_digits(out, c.day, 2);
    *out++ = 'T';
    out = put_clock(out, &c);
    *out++ = '.';
    out = put_digits(out, c.ms, 3);
    memcpy(out, "Z", 2);
}

void fgw_time_http(int64_t wall_ms, char out[FGW_TIME_HTTP_SIZE])
{
    struct civil c = civil_from_ms(wall_ms);
    out = put_text3(out, WEEKDAYS[c.weekday]);
    *out++ = ',';
    *out++ = ' ';
    out = put_digits(out, c.day, 2);
    *out++ = ' ';
    out = put_text3(out, MONTHS[c.month - 1]);
    *out++ = ' ';
    out = put_digits(out, (unsigned)c.year, 4);
    *out++ = ' ';
    out = put_clock(out, &c);
    memcpy(out, " GMT", 5);
}

void fgw_time_basic(int64_t wall_ms, char out[FGW_TIME_BASIC_SIZE])
{
    struct civil c = civil_from_ms(wall_ms);
    out = put_digits(out, (unsigned)c.year, 4);
    out = put_digits(out, c.month, 2);
    out = put_digits(out, c.day, 2);
    *out++ = 'T';
    out = put_digits(out, c.hour, 2);
    out = put_digits(out, c.minute, 2);
    out = put_digits(out, c.second, 2);
    memcpy(out, "Z", 2);
}

/* -- parsing ------------------------------------------------------------------------------- */

struct cursor {
    struct fgw_bytes rest;
    bool bad;
};

static unsigned take_digits(struct cursor *in, size_t count)
{
    unsigned value = 0;
    if (in->rest.len < count) {
        in->bad = true;
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        uint8_t c = in->rest.ptr[i];
        if (c < '0' || c > '9') {
            in->bad = true;
            return 0;
        }
        value = value * 10 + (c - '0');
    }
    in->rest = fgw_bytes_sub(in->rest, count, SIZE_MAX);
    return value;
}

static void take_text(struct cursor *in, const char *text)
{
    struct fgw_bytes want = fgw_bytes_str(text);
    if (!fgw_bytes_starts_with(in->rest, want)) {
        in->bad = true;
        return;
    }
    in->rest = fgw_bytes_sub(in->rest, want.len, SIZE_MAX);
}

static unsigned take_month(struct cursor *in)
{
    for (unsigned i = 0; i < 12; i++) {
        if (fgw_bytes_starts_with(in->rest, fgw_bytes_str(MONTHS[i]))) {
            in->rest = fgw_bytes_sub(in->rest, 3, SIZE_MAX);
            return i + 1;
        }
    }
    in->bad = true;
    return 1;
}

static void take_clock(struct cursor *in, struct civil *c)
{
    c->hour = take_digits(in, 2);
    take_text(in, ":");
    c->minute = take_digits(in, 2);
    take_text(in, ":");
    c->second = take_digits(in, 2);
}

static enum fgw_err finish(const struct cursor *in, const struct civil *c, int64_t *out_wall_ms)
{
    static const unsigned DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (in->bad || in->rest.len != 0 || c->month < 1 || c->month > 12 || c->day < 1) {
        return FGW_ERR_PARSE;
    }
    bool leap = (c->year % 4 == 0 && c->year % 100 != 0) || c->year % 400 == 0;
    unsigned days = DAYS[c->month - 1] + (leap && c->month == 2 ? 1U : 0U);
    if (c->day > days || c->hour > 23 || c->minute > 59 || c->second > 60) {
        return FGW_ERR_PARSE;
    }
    int64_t seconds = days_from_civil(c->year, c->month, c->day) * 86400 + c->hour * 3600 +
                      c->minute * 60 + (c->second > 59 ? 59 : c->second);
    *out_wall_ms = seconds * 1000 + c->ms;
    return FGW_OK;
}

static void skip_weekday(struct cursor *in, uint8_t end)
{
    size_t at = fgw_bytes_find_byte(in->rest, end);
    if (at == SIZE_MAX || at > 9) {
        in->bad = true;
        return;
    }
    in->rest = fgw_bytes_sub(in->rest, at, SIZE_MAX);
}

enum fgw_err fgw_time_parse_http(struct fgw_bytes text, int64_t *out_wall_ms)
{
    struct cursor in = {text, false};
    struct civil c = {0};
    size_t comma = fgw_bytes_find_byte(text, ',');
    if (comma == SIZE_MAX) { /* asctime: Sun Nov  6 08:49:37 1994 */
        skip_weekday(&in, ' ');
        take_text(&in, " ");
        c.month = take_month(&in);
        take_text(&in, " ");
        if (in.rest.len > 0 && in.rest.ptr[0] == ' ') {
            take_text(&in, " ");
            c.day = take_digits(&in, 1);
        } else {
            c.day = take_digits(&in, 2);
        }
        take_text(&in, " ");
        take_clock(&in, &c);
        take_text(&in, " ");
        c.year = take_digits(&in, 4);
        return finish(&in, &c, out_wall_ms);
    }
    skip_weekday(&in, ',');
    take_text(&in, ", ");
    c.day = take_digits(&in, 2);
    bool rfc850 = in.rest.len > 0 && in.rest.ptr[0] == '-';
    take_text(&in, rfc850 ? "-" : " ");
    c.month = take_month(&in);
    take_text(&in, rfc850 ? "-" : " ");
    c.year = take_digits(&in, rfc850 ? 2 : 4);
    if (rfc850) {
        c.year += c.year < 70 ? 2000 : 1900;
    }
    take_text(&in, " ");
    take_clock(&in, &c);
    take_text(&in, " GMT");
    return finish(&in, &c, out_wall_ms);
}

enum fgw_err fgw_time_parse_basic(struct fgw_bytes text, int64_t *out_wall_ms)
{
    struct cursor in = {text, false};
    struct civil c = {0};
    c.year = take_digits(&in, 4);
    c.month = take_digits(&in, 2);
    c.day = take_digits(&in, 2);
    take_text(&in, "T");
    c.hour = take_digits(&in, 2);
    c.minute = take_digits(&in, 2);
    c.second = take_digits(&in, 2);
    take_text(&in, "Z");
    return finish(&in, &c, out_wall_ms);
}

static int64_t take_zone_minutes(struct cursor *in)
{
    if (in->rest.len > 0 && (in->rest.ptr[0] == '+' || in->rest.ptr[0] == '-')) {
        int64_t sign = in->rest.ptr[0] == '-' ? -1 : 1;
        in->rest = fgw_bytes_sub(in->rest, 1, SIZE_MAX);
        int64_t hours = take_digits(in, 2);
        take_text(in, ":");
        int64_t minutes = take_digits(in, 2);
        if (hours > 23 || minutes > 59) {
            in->bad = true;
        }
        return sign * (hours * 60 + minutes);
    }
    take_text(in, "Z");
    return 0;
}

enum fgw_err fgw_time_parse_iso8601(struct fgw_bytes text, int64_t *out_wall_ms)
{
    struct cursor in = {text, false};
    struct civil c = {0};
    int64_t zone_minutes = 0;
    c.year = take_digits(&in, 4);
    take_text(&in, "-");
    c.month = take_digits(&in, 2);
    take_text(&in, "-");
    c.day = take_digits(&in, 2);
    if (!in.bad && in.rest.len > 0) {
        take_text(&in, "T");
        take_clock(&in, &c);
        if (in.rest.len > 0 && in.rest.ptr[0] == '.') {
            in.rest = fgw_bytes_sub(in.rest, 1, SIZE_MAX);
            unsigned scale = 100;
            size_t digits = 0;
            while (in.rest.len > 0 && in.rest.ptr[0] >= '0' && in.rest.ptr[0] <= '9') {
                c.ms += (unsigned)(in.rest.ptr[0] - '0') * scale;
                scale /= 10;
                digits++;
                in.rest = fgw_bytes_sub(in.rest, 1, SIZE_MAX);
            }
            in.bad = in.bad || digits == 0 || digits > 9;
        }
        zone_minutes = take_zone_minutes(&in);
    }
    int64_t local_ms = 0;
    enum fgw_err err = finish(&in, &c, &local_ms);
    if (err == FGW_OK) {
        *out_wall_ms = local_ms - zone_minutes * 60000;
    }
    return err;
}
