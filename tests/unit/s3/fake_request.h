/* fake_request.h: a request head made by hand, for tests of what reads only the head. */
#ifndef FGW_TESTS_S3_FAKE_REQUEST_H
#define FGW_TESTS_S3_FAKE_REQUEST_H

#include "base/check.h"
#include "s3/engine_internal.h"
#include "s3/op.h"

enum { FAKE_HEADERS_MAX = 32 };

struct fake_request {
    struct fgw_arena arena;
    struct fgw_s3 s3;
    struct fgw_http_request http;
    struct fgw_http_header headers[FAKE_HEADERS_MAX];
    struct fgw_s3_request request;
};

/* target: path, and query behind '?'. */
static inline void fake_init(struct fake_request *fake, enum fgw_http_method method,
                             const char *target)
{
    memset(fake, 0, sizeof *fake);
    fgw_arena_init(&fake->arena, 0);
    struct fgw_bytes whole = fgw_bytes_str(target);
    size_t question = fgw_bytes_find_byte(whole, '?');
    fake->http.method = method;
    fake->http.raw_path = fgw_bytes_sub(whole, 0, question);
    if (question != SIZE_MAX) {
        fake->http.raw_query = fgw_bytes_sub(whole, question + 1, SIZE_MAX);
    }
    fake->http.host = FGW_LIT("localhost:8078");
    fake->http.headers = fake->headers;
    fake->s3.region = "us-east-1";
    fake->request.s3 = &fake->s3;
    fake->request.http = &fake->http;
    fake->request.arena = &fake->arena;
}

static inline void fake_header(struct fake_request *fake, const char *name, const char *value)
{
    FGW_CHECK(fake->http.header_count < FAKE_HEADERS_MAX);
    fake->headers[fake->http.header_count++] =
        (struct fgw_http_header){fgw_bytes_str(name), fgw_bytes_str(value)};
}

static inline void fake_deinit(struct fake_request *fake)
{
    fgw_arena_deinit(&fake->arena);
}

#endif
