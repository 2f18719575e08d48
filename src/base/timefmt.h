/* timefmt.h: the date formats of HTTP, S3 XML and SigV4, always UTC, in milliseconds since 1970. */
#ifndef FGW_BASE_TIMEFMT_H
#define FGW_BASE_TIMEFMT_H

#include <stdint.h>

#include "base/bytes.h"

enum {
    FGW_TIME_ISO8601_SIZE = 25, /* 2026-11-30T17:00:00.123Z + NUL */
    FGW_TIME_HTTP_SIZE = 30,    /* Mon, 30 Nov 2026 17:00:00 GMT + NUL */
    FGW_TIME_BASIC_SIZE = 17    /* 20261130T170000Z + NUL */
};

/* With milliseconds (S3 XML). Years outside 0..9999 are clamped. */
void fgw_time_iso8601(int64_t wall_ms, char out[FGW_TIME_ISO8601_SIZE]);
/* IMF-fixdate, RFC 9110 section 5.6.7; cut to seconds. */
void fgw_time_http(int64_t wall_ms, char out[FGW_TIME_HTTP_SIZE]);
/* ISO 8601 basic, SigV4's x-amz-date. */
void fgw_time_basic(int64_t wall_ms, char out[FGW_TIME_BASIC_SIZE]);

/* All three HTTP forms (IMF-fixdate, RFC 850, asctime); FGW_ERR_PARSE otherwise. */
enum fgw_err fgw_time_parse_http(struct fgw_bytes text, int64_t *out_wall_ms) FGW_MUST_CHECK;
/* 20261130T170000Z exactly. */
enum fgw_err fgw_time_parse_basic(struct fgw_bytes text, int64_t *out_wall_ms) FGW_MUST_CHECK;
/* 2026-11-30, 2026-11-30T17:00:00Z, ...00.123Z, ...+01:00. */
enum fgw_err fgw_time_parse_iso8601(struct fgw_bytes text, int64_t *out_wall_ms) FGW_MUST_CHECK;

#endif
