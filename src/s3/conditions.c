/* conditions.c: see conditions.h. */
#include "s3/conditions.h"

#include "base/timefmt.h"
#include "s3/engine_internal.h"
#include "s3/etag.h"

struct fgw_s3_read_conditions fgw_s3_read_conditions(const struct fgw_http_request *http)
{
    return (struct fgw_s3_read_conditions){
        .if_match = fgw_http_header_get(http, "If-Match"),
        .if_none_match = fgw_http_header_get(http, "If-None-Match"),
        .if_modified_since = fgw_http_header_get(http, "If-Modified-Since"),
        .if_unmodified_since = fgw_http_header_get(http, "If-Unmodified-Since"),
    };
}

struct fgw_s3_read_conditions fgw_s3_copy_conditions(const struct fgw_http_request *http)
{
    return (struct fgw_s3_read_conditions){
        .if_match = fgw_http_header_get(http, "x-amz-copy-source-if-match"),
        .if_none_match = fgw_http_header_get(http, "x-amz-copy-source-if-none-match"),
        .if_modified_since = fgw_http_header_get(http, "x-amz-copy-source-if-modified-since"),
        .if_unmodified_since = fgw_http_header_get(http, "x-amz-copy-source-if-unmodified-since"),
    };
}

static int64_t whole_seconds(int64_t wall_ms)
{
    return wall_ms - (wall_ms % 1000 + 1000) % 1000;
}

enum fgw_s3_verdict fgw_s3_read_verdict(const struct fgw_s3_read_conditions *conditions,
                                        struct fgw_bytes etag, int64_t mtime_ms,
                                        const char **out_condition)
{
    int64_t mtime = whole_seconds(mtime_ms);
    int64_t date;
    if (conditions->if_match.ptr != NULL) {
        if (!fgw_s3_etag_list_has(conditions->if_match, etag, true)) {
            *out_condition = "If-Match";
            return FGW_S3_FAILED;
        }
    } else if (conditions->if_unmodified_since.ptr != NULL &&
               fgw_time_parse_http(conditions->if_unmodified_since, &date) == FGW_OK &&
               mtime > date) {
        *out_condition = "If-Unmodified-Since";
        return FGW_S3_FAILED;
    }
    if (conditions->if_none_match.ptr != NULL) {
        if (fgw_s3_etag_list_has(conditions->if_none_match, etag, false)) {
            *out_condition = "If-None-Match";
            return FGW_S3_NOT_MODIFIED;
        }
    } else if (conditions->if_modified_since.ptr != NULL &&
               fgw_time_parse_http(conditions->if_modified_since, &date) == FGW_OK &&
               mtime <= date) {
        *out_condition = "If-Modified-Since";
        return FGW_S3_NOT_MODIFIED;
    }
    return FGW_S3_PROCEED;
}

enum fgw_err fgw_s3_condition_failed(struct fgw_s3_request *request, const char *condition)
{
    (void)fgw_error_set(&request->error, FGW_ERR_PRECONDITION_FAILED, NULL);
    fgw_error_add(&request->error, "Condition", "%s", condition);
    return FGW_ERR_PRECONDITION_FAILED;
}

bool fgw_s3_if_range_holds(const struct fgw_http_request *http, struct fgw_bytes etag,
                           int64_t mtime_ms)
{
    struct fgw_bytes value = fgw_http_header_get(http, "If-Range");
    int64_t date;
    if (value.ptr == NULL) {
        return true;
    }
    if (fgw_time_parse_http(value, &date) == FGW_OK) {
        return whole_seconds(mtime_ms) == date;
    }
    bool weak = false;
    return fgw_bytes_eq(fgw_s3_etag_bare(value, &weak), etag) && !weak;
}

/* One ETag or "*". */
static enum fgw_err take_etag(struct fgw_s3_request *request, const char *header, bool *out_any,
                              struct fgw_bytes *out_etag)
{
    struct fgw_bytes value = fgw_s3_header(request, header);
    if (value.ptr == NULL) {
        return FGW_OK;
    }
    if (fgw_bytes_find_byte(value, ',') != SIZE_MAX) {
        return fgw_error_set(&request->error, FGW_ERR_NOT_IMPLEMENTED,
                             "%s with several ETags is not implemented for writes.", header);
    }
    struct fgw_bytes bare = fgw_s3_etag_bare(value, NULL);
    if (bare.len == 0) {
        return fgw_s3_bad_argument(request, header, value, "The ETag is empty.");
    }
    *out_any = fgw_bytes_eq_str(bare, "*");
    *out_etag = *out_any ? (struct fgw_bytes){NULL, 0} : bare;
    return FGW_OK;
}

static enum fgw_err take_delete_headers(struct fgw_s3_request *request,
                                        struct fgw_conditions *conditions)
{
    static const char TIME[] = "x-amz-if-match-last-modified-time";
    static const char SIZE[] = "x-amz-if-match-size";
    struct fgw_bytes time = fgw_s3_header(request, TIME);
    if (time.ptr != NULL) {
        if (fgw_time_parse_http(time, &conditions->if_match_mtime_ms) != FGW_OK &&
            fgw_time_parse_iso8601(time, &conditions->if_match_mtime_ms) != FGW_OK) {
            return fgw_s3_bad_argument(request, TIME, time, "This is not a date.");
        }
        conditions->has_if_match_mtime = true;
    }
    struct fgw_bytes size = fgw_s3_header(request, SIZE);
    if (size.ptr != NULL) {
        if (fgw_bytes_to_u64(size, &conditions->if_match_size) != FGW_OK) {
            return fgw_s3_bad_argument(request, SIZE, size, "This is not a size.");
        }
        conditions->has_if_match_size = true;
    }
    return FGW_OK;
}

enum fgw_err fgw_s3_write_conditions(struct fgw_s3_request *request,
                                     struct fgw_conditions *out_conditions)
{
    struct fgw_conditions conditions = {0};
    enum fgw_err err =
        take_etag(request, "If-Match", &conditions.if_match_any, &conditions.if_match);
    if (err == FGW_OK) {
        err = take_etag(request, "If-None-Match", &conditions.if_none_match_any,
                        &conditions.if_none_match);
    }
    if (err == FGW_OK && request->http->method == FGW_HTTP_DELETE) {
        err = take_delete_headers(request, &conditions);
    }
    if (err == FGW_OK && conditions.if_none_match.len > 0 && request->s3->strict_aws) {
        err = fgw_s3_not_built(request, "If-None-Match with an ETag");
    }
    if (err == FGW_OK) {
        *out_conditions = conditions;
    }
    return err;
}
