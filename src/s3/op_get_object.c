/* op_get_object.c: GetObject and HeadObject: versions, conditions, ranges, single parts,
 * response-* overrides. The first bytes are read before the answer starts, so that damage found
 * there is an error document and not a broken connection. spec/s3-wire.md 5.41 to 5.46, 5.64, 5.72. */
#include "base/timefmt.h"
#include "s3/answer.h"
#include "s3/conditions.h"
#include "s3/engine_internal.h"
#include "s3/headers.h"
#include "s3/multipart.h"
#include "s3/object_info.h"
#include "s3/object_read.h"
#include "s3/op.h"

/* What of the object the answer holds. */
struct selection {
    bool partial; /* 206 */
    struct fgw_s3_range range;
    const struct fgw_object_part *part; /* of a multipart object, asked for by number */
};

static enum fgw_err no_such_part(struct fgw_s3_request *request)
{
    bool strict = request->s3->strict_aws;
    return fgw_error_set(&request->error,
                         strict ? FGW_ERR_INVALID_PART_NUMBER : FGW_ERR_INVALID_PART, NULL);
}

static enum fgw_err select_part(struct fgw_s3_request *request, const struct fgw_object *object,
                                struct selection *out)
{
    struct fgw_bytes text = fgw_s3_param(request, "partNumber");
    uint64_t number = 0;
    if (fgw_bytes_to_u64(text, &number) != FGW_OK || number < 1 ||
        number > FGW_S3_PART_NUMBER_MAX) {
        return fgw_s3_bad_argument(request, "partNumber", text,
                                   "Part number must be an integer between 1 and 10000, inclusive");
    }
    if (fgw_s3_header(request, "Range").ptr != NULL) {
        return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                             "Cannot specify both Range header and partNumber query parameter");
    }
    if (object->part_count == 0) {
        if (number != 1) {
            return no_such_part(request);
        }
        *out = (struct selection){object->size > 0, {0, object->size}, NULL};
        return FGW_OK;
    }
    if (number > object->part_count) {
        return no_such_part(request);
    }
    uint64_t offset = 0;
    for (uint64_t i = 0; i + 1 < number; i++) {
        offset += object->parts[i].size;
    }
    const struct fgw_object_part *part = &object->parts[number - 1];
    *out = (struct selection){part->size > 0, {offset, part->size}, part};
    return FGW_OK;
}

static enum fgw_err unsatisfiable(struct fgw_s3_request *request, const struct fgw_object *object)
{
    char *size = fgw_arena_printf(request->arena, "bytes */%llu", (unsigned long long)object->size);
    fgw_s3_extra_header(request, "Content-Range", fgw_bytes_str(size));
    (void)fgw_error_set(&request->error, FGW_ERR_INVALID_RANGE, NULL);
    fgw_error_add(&request->error, "RangeRequested", "%.*s",
                  FGW_FMT(fgw_bytes_sub(fgw_s3_header(request, "Range"), 0, 100)));
    fgw_error_add(&request->error, "ActualObjectSize", "%llu", (unsigned long long)object->size);
    return FGW_ERR_INVALID_RANGE;
}

static enum fgw_err select_bytes(struct fgw_s3_request *request, const struct fgw_object *object,
                                 struct selection *out)
{
    *out = (struct selection){false, {0, object->size}, NULL};
    if (request->query.count > 0 && fgw_s3_has_param(request, "partNumber")) {
        return select_part(request, object, out);
    }
    struct fgw_bytes text = fgw_s3_header(request, "Range");
    if (text.ptr == NULL || !fgw_s3_if_range_holds(request->http, object->etag, object->mtime_ms)) {
        return FGW_OK;
    }
    struct fgw_s3_range range;
    switch (fgw_s3_range_parse(text, object->size, &range)) {
    case FGW_S3_RANGE_WHOLE:
        return FGW_OK;
    case FGW_S3_RANGE_UNSATISFIABLE:
        return unsatisfiable(request, object);
    case FGW_S3_RANGE_PART:
        *out = (struct selection){true, range, NULL};
        return FGW_OK;
    }
    return FGW_OK;
}

static enum fgw_err answer_not_modified(struct fgw_s3_request *request,
                                        const struct fgw_object *object)
{
    fgw_s3_start(request, 304, 0);
    fgw_s3_send_object_info(request, object);
    return fgw_s3_end(request);
}

static bool wants_checksum(const struct fgw_s3_request *request)
{
    return fgw_bytes_ieq_str(fgw_s3_header(request, "x-amz-checksum-mode"), "ENABLED");
}

/* Only a value over exactly the bytes sent may go with them. */
static void send_checksum(struct fgw_s3_request *request, const struct fgw_object *object,
                          const struct selection *selection)
{
    if (!wants_checksum(request)) {
        return;
    }
    bool whole = selection->range.offset == 0 && selection->range.len == object->size;
    if (selection->part != NULL) {
        struct fgw_checksum_value value = selection->part->checksum;
        value.type =
            object->checksum.algorithm == FGW_CHECKSUM_NONE ? value.type : object->checksum.type;
        fgw_s3_send_checksum(request, &value, 0);
    } else if (whole && (!selection->partial || object->part_count == 0) &&
               fgw_s3_header(request, "Range").ptr == NULL) {
        fgw_s3_send_checksum(request, &object->checksum, fgw_s3_etag_parts(object->etag));
    }
}

static void start(struct fgw_s3_request *request, const struct fgw_object *object,
                  const struct selection *selection)
{
    const struct fgw_s3_range *range = &selection->range;
    fgw_s3_start(request, selection->partial ? 206 : 200, (int64_t)range->len);
    fgw_http_response_header(request->exchange, "Accept-Ranges", FGW_LIT("bytes"));
    if (selection->partial) {
        fgw_http_response_headerf(request->exchange, "Content-Range", "bytes %llu-%llu/%llu",
                                  (unsigned long long)range->offset,
                                  (unsigned long long)(range->offset + range->len - 1),
                                  (unsigned long long)object->size);
    }
    fgw_s3_send_object_info(request, object);
    send_checksum(request, object, selection);
    fgw_s3_send_object_headers(request, object);
}

static enum fgw_err send_run(struct fgw_s3_request *request, const struct fgw_storage_run *run)
{
    if (run->bytes.ptr != NULL) {
        return fgw_http_response_write(request->exchange, run->bytes);
    }
    return fgw_http_response_send_file(request->exchange, run->fd, run->file_offset,
                                       run->bytes.len);
}

static enum fgw_err send_body(struct fgw_s3_request *request, const struct fgw_object *object,
                              const struct selection *selection)
{
    struct fgw_s3_object_reader reader;
    struct fgw_storage_run run;
    enum fgw_err err =
        fgw_s3_object_reader_open(request, object, &selection->range, request->http->tls, &reader);
    if (err == FGW_OK) {
        err = fgw_s3_object_reader_next(&reader, &run);
    }
    if (err == FGW_OK) {
        start(request, object, selection);
    }
    while (err == FGW_OK) {
        err = send_run(request, &run);
        if (err == FGW_OK) {
            err = fgw_s3_object_reader_next(&reader, &run);
        }
    }
    fgw_s3_object_reader_close(&reader);
    return err == FGW_ERR_END ? fgw_s3_end(request) : err;
}

static enum fgw_err check_conditions(struct fgw_s3_request *request,
                                     const struct fgw_object *object, bool *out_not_modified)
{
    struct fgw_s3_read_conditions conditions = fgw_s3_read_conditions(request->http);
    const char *condition = "";
    enum fgw_s3_verdict verdict =
        fgw_s3_read_verdict(&conditions, object->etag, object->mtime_ms, &condition);
    *out_not_modified = verdict == FGW_S3_NOT_MODIFIED;
    return verdict == FGW_S3_FAILED ? fgw_s3_condition_failed(request, condition) : FGW_OK;
}

/* A customer's key with an object that is not encrypted by one (spec/s3-wire.md 5.85, 5.86). */
static enum fgw_err refuse_encryption(struct fgw_s3_request *request)
{
    static const char PREFIX[] = "x-amz-server-side-encryption";
    for (size_t i = 0; i < request->http->header_count; i++) {
        struct fgw_bytes name = request->http->headers[i].name;
        if (fgw_bytes_ieq_str(fgw_bytes_sub(name, 0, sizeof PREFIX - 1), PREFIX)) {
            return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                                 "The encryption parameters are not applicable to this object.");
        }
    }
    return FGW_OK;
}

enum fgw_err fgw_s3_op_get_object(struct fgw_s3_request *request)
{
    struct fgw_object object;
    struct selection selection;
    bool not_modified = false;
    enum fgw_err err = fgw_s3_check_overrides(request);
    if (err == FGW_OK) {
        err = fgw_s3_find_object(request, FGW_S3_OBJECT_READ, &object);
    }
    if (err == FGW_OK) {
        err = refuse_encryption(request);
    }
    if (err == FGW_OK) {
        err = check_conditions(request, &object, &not_modified);
    }
    if (err == FGW_OK && not_modified) {
        return answer_not_modified(request, &object);
    }
    if (err == FGW_OK) {
        err = select_bytes(request, &object, &selection);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (fgw_s3_is_head(request) || selection.range.len == 0) {
        start(request, &object, &selection);
        return fgw_s3_end(request);
    }
    return send_body(request, &object, &selection);
}
