/* body.c: see body.h. */
#include "s3/body.h"

#include "base/check.h"
#include "base/encode.h"
#include "event/fiber.h"

enum { YIELD_BYTES = 64 * 1024 };

/* -- plan ----------------------------------------------------------------------------------- */

static enum fgw_err too_large(struct fgw_s3_body *body, uint64_t size)
{
    struct fgw_error *error = &body->request->error;
    (void)fgw_error_set(error, body->options.too_large, NULL);
    if (body->options.too_large == FGW_ERR_ENTITY_TOO_LARGE) {
        fgw_error_add(error, "ProposedSize", "%llu", (unsigned long long)size);
        fgw_error_add(error, "MaxSizeAllowed", "%llu", (unsigned long long)body->options.max_bytes);
    }
    return body->options.too_large;
}

static enum fgw_err plan_chunked(struct fgw_s3_body *body)
{
    struct fgw_s3_request *request = body->request;
    struct fgw_chunked_options options;
    enum fgw_err err =
        fgw_chunked_options_from(&request->auth, request->seed, &options, &request->error);
    if (err != FGW_OK) {
        return err;
    }
    body->length = options.decoded_length;
    body->chunked = fgw_arena_zalloc(request->arena, sizeof *body->chunked);
    return fgw_chunked_init(body->chunked, &options, &request->error);
}

static enum fgw_err plan_length(struct fgw_s3_body *body)
{
    struct fgw_s3_request *request = body->request;
    const struct fgw_http_request *http = request->http;
    if (fgw_sig_payload_is_chunked(request->auth.payload)) {
        enum fgw_err err = plan_chunked(body);
        if (err != FGW_OK) {
            return err;
        }
    } else if (http->chunked) {
        body->length = UINT64_MAX;
    } else if (http->has_content_length) {
        body->length = http->content_length;
    } else if (body->options.need_length) {
        return fgw_error_set(&request->error, FGW_ERR_MISSING_CONTENT_LENGTH, NULL);
    }
    bool known = body->length != UINT64_MAX;
    return known && body->length > body->options.max_bytes ? too_large(body, body->length) : FGW_OK;
}

static enum fgw_err plan_content_md5(struct fgw_s3_body *body)
{
    struct fgw_bytes text = fgw_s3_header(body->request, "Content-MD5");
    if (text.ptr == NULL) {
        return FGW_OK;
    }
    uint8_t decoded[FGW_MD5_SIZE + 2];
    size_t len = 0;
    if (text.len != 24 || fgw_base64_decode(text, decoded, &len) != FGW_OK || len != FGW_MD5_SIZE) {
        (void)fgw_error_set(&body->request->error, FGW_ERR_INVALID_DIGEST, NULL);
        fgw_error_add(&body->request->error, "Content-MD5", "%.*s",
                      FGW_FMT(fgw_bytes_sub(text, 0, 100)));
        return FGW_ERR_INVALID_DIGEST;
    }
    memcpy(body->content_md5, decoded, FGW_MD5_SIZE);
    body->has_content_md5 = true;
    return FGW_OK;
}

enum fgw_err fgw_s3_body_plan(struct fgw_s3_request *request,
                              const struct fgw_s3_body_options *options,
                              struct fgw_s3_body **out_body)
{
    struct fgw_s3_body *body = fgw_arena_zalloc(request->arena, sizeof *body);
    body->request = request;
    body->options = *options;
    enum fgw_err err = plan_content_md5(body);
    if (err == FGW_OK && !options->checksum_of_object) {
        err = fgw_s3_checksum_wish(request, &body->wish);
    }
    if (err == FGW_OK && options->need_integrity && !body->has_content_md5 &&
        body->wish.algorithm == FGW_CHECKSUM_NONE) {
        err = fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                            "Missing required header for this request: Content-MD5 OR "
                            "x-amz-checksum-*");
    }
    if (err == FGW_OK && body->wish.algorithm == FGW_CHECKSUM_NONE) {
        body->wish.algorithm = options->want_checksum;
    }
    if (err == FGW_OK) {
        err = plan_length(body);
    }
    if (err != FGW_OK) {
        fgw_s3_body_deinit(body);
        return err;
    }
    *out_body = body;
    return FGW_OK;
}

/* -- digests -------------------------------------------------------------------------------- */

static bool wants_md5(const struct fgw_s3_body *body)
{
    return body->md5_of_sink == NULL && (body->options.want_md5 || body->has_content_md5);
}

static bool wants_sha256(const struct fgw_s3_body *body)
{
    return body->request->auth.payload == FGW_SIG_PAYLOAD_HASH;
}

/* The whole body in one piece: per-thread contexts, nothing to allocate. */
static void digest_whole(struct fgw_s3_body *body, struct fgw_bytes bytes)
{
    if (wants_md5(body)) {
        fgw_digest_once(FGW_DIGEST_MD5, bytes, body->md5);
    }
    if (wants_sha256(body)) {
        fgw_digest_once(FGW_DIGEST_SHA256, bytes, body->sha256);
    }
    fgw_s3_checksummer_init(&body->summer, body->wish.algorithm);
    fgw_s3_checksummer_update(&body->summer, bytes);
    fgw_s3_checksummer_end(&body->summer, &body->checksum);
    body->digests_done = true;
}

static void begin_digests(struct fgw_s3_body *body)
{
    if (wants_md5(body)) {
        fgw_digest_begin(&body->md5_digest, FGW_DIGEST_MD5);
    }
    if (wants_sha256(body)) {
        fgw_digest_begin(&body->sha256_digest, FGW_DIGEST_SHA256);
    }
    fgw_s3_checksummer_init(&body->summer, body->wish.algorithm);
    body->digests_begun = true;
}

static void update_digests(struct fgw_s3_body *body, struct fgw_bytes bytes)
{
    if (!body->digests_begun) {
        begin_digests(body);
    }
    if (wants_md5(body)) {
        fgw_digest_update(&body->md5_digest, bytes);
    }
    if (wants_sha256(body)) {
        fgw_digest_update(&body->sha256_digest, bytes);
    }
    fgw_s3_checksummer_update(&body->summer, bytes);
}

static void end_digests(struct fgw_s3_body *body)
{
    if (body->digests_done) {
        return;
    }
    if (!body->digests_begun) {
        digest_whole(body, FGW_LIT(""));
        return;
    }
    if (wants_md5(body)) {
        fgw_digest_end(&body->md5_digest, body->md5);
    }
    if (wants_sha256(body)) {
        fgw_digest_end(&body->sha256_digest, body->sha256);
    }
    fgw_s3_checksummer_end(&body->summer, &body->checksum);
    body->digests_done = true;
}

/* Hashing 64 KiB takes about as long as ten small requests: let those go first. */
static void yield_when_due(struct fgw_s3_body *body, size_t len)
{
    body->since_yield_bytes += len;
    if (body->since_yield_bytes >= YIELD_BYTES) {
        body->since_yield_bytes = 0;
        fgw_fiber_yield();
    }
}

/* -- run ------------------------------------------------------------------------------------ */

static enum fgw_err take_data(struct fgw_s3_body *body, struct fgw_bytes data, fgw_s3_sink *sink,
                              void *sink_context)
{
    if (body->size + data.len > body->options.max_bytes) {
        return too_large(body, body->size + data.len);
    }
    if (body->size == 0 && data.len == body->length && data.len <= YIELD_BYTES) {
        body->size = data.len;
        digest_whole(body, data);
        return sink(sink_context, data);
    }
    while (data.len > 0) {
        struct fgw_bytes slice = fgw_bytes_sub(data, 0, YIELD_BYTES);
        data = fgw_bytes_sub(data, slice.len, SIZE_MAX);
        body->size += slice.len;
        update_digests(body, slice);
        enum fgw_err err = sink(sink_context, slice);
        if (err != FGW_OK) {
            return err;
        }
        yield_when_due(body, slice.len);
    }
    return FGW_OK;
}

static enum fgw_err take_piece(struct fgw_s3_body *body, struct fgw_bytes piece, fgw_s3_sink *sink,
                               void *sink_context)
{
    if (body->chunked == NULL) {
        return take_data(body, piece, sink, sink_context);
    }
    while (piece.len > 0) {
        size_t consumed = 0;
        struct fgw_bytes data = {NULL, 0};
        enum fgw_err err =
            fgw_chunked_feed(body->chunked, piece, &consumed, &data, &body->request->error);
        if (err == FGW_OK && data.len > 0) {
            err = take_data(body, data, sink, sink_context);
        }
        if (err != FGW_OK) {
            return err;
        }
        piece = fgw_bytes_sub(piece, consumed, SIZE_MAX);
    }
    return FGW_OK;
}

static enum fgw_err read_all(struct fgw_s3_body *body, fgw_s3_sink *sink, void *sink_context)
{
    for (;;) {
        struct fgw_bytes piece;
        uint8_t *room = NULL;
        size_t size = body->room_of_sink != NULL && body->chunked == NULL
                          ? body->room_of_sink(sink_context, &room)
                          : 0;
        enum fgw_err err = fgw_http_body_read_to(body->request->exchange, room, size, &piece);
        if (err == FGW_ERR_END) {
            break;
        }
        if (err == FGW_OK) {
            err = take_piece(body, piece, sink, sink_context);
        }
        if (err != FGW_OK) {
            return err;
        }
    }
    return body->chunked == NULL ? FGW_OK
                                 : fgw_chunked_finish(body->chunked, &body->request->error);
}

static enum fgw_err check_sha256(struct fgw_s3_body *body)
{
    struct fgw_s3_request *request = body->request;
    if (!wants_sha256(body) ||
        memcmp(body->sha256, request->auth.payload_sha256, FGW_SHA256_SIZE) == 0) {
        return FGW_OK;
    }
    (void)fgw_error_set(&request->error, FGW_ERR_CONTENT_SHA256_MISMATCH, NULL);
    fgw_error_add(
        &request->error, "ClientComputedContentSHA256", "%s",
        fgw_hex(request->arena, fgw_bytes(request->auth.payload_sha256, FGW_SHA256_SIZE)));
    fgw_error_add(&request->error, "S3ComputedContentSHA256", "%s",
                  fgw_hex(request->arena, fgw_bytes(body->sha256, FGW_SHA256_SIZE)));
    return FGW_ERR_CONTENT_SHA256_MISMATCH;
}

static enum fgw_err check_md5(struct fgw_s3_body *body)
{
    struct fgw_s3_request *request = body->request;
    if (body->md5_of_sink != NULL) {
        fgw_md5_end(body->md5_of_sink, body->md5);
    }
    if (!body->has_content_md5 || memcmp(body->md5, body->content_md5, FGW_MD5_SIZE) == 0) {
        return FGW_OK;
    }
    (void)fgw_error_set(&request->error, FGW_ERR_BAD_DIGEST,
                        "The Content-MD5 you specified did not match what we received.");
    fgw_error_add(&request->error, "ExpectedDigest", "%s",
                  fgw_hex(request->arena, fgw_bytes(body->content_md5, FGW_MD5_SIZE)));
    fgw_error_add(&request->error, "CalculatedDigest", "%s",
                  fgw_hex(request->arena, fgw_bytes(body->md5, FGW_MD5_SIZE)));
    return FGW_ERR_BAD_DIGEST;
}

static enum fgw_err take_trailer_value(struct fgw_s3_body *body)
{
    struct fgw_bytes value;
    if (!body->wish.in_trailer) {
        return FGW_OK;
    }
    if (!fgw_chunked_trailer(body->chunked, fgw_s3_checksum_header(body->wish.algorithm), &value)) {
        return fgw_error_set(&body->request->error, FGW_ERR_MALFORMED_TRAILER, NULL);
    }
    if (fgw_s3_checksum_parse(body->wish.algorithm, value, body->wish.expected) != FGW_OK) {
        return fgw_s3_bad_checksum(body->request, body->wish.algorithm);
    }
    body->wish.has_expected = true;
    return FGW_OK;
}

static enum fgw_err check_checksum(struct fgw_s3_body *body)
{
    enum fgw_err err = take_trailer_value(body);
    if (err != FGW_OK || !body->wish.has_expected ||
        memcmp(body->checksum.bytes, body->wish.expected, body->checksum.len) == 0) {
        return err;
    }
    return fgw_error_set(&body->request->error, FGW_ERR_BAD_DIGEST,
                         "The %s you specified did not match the calculated checksum.",
                         fgw_s3_checksum_name(body->wish.algorithm));
}

enum fgw_err fgw_s3_body_run(struct fgw_s3_body *body, fgw_s3_sink *sink, void *sink_context)
{
    enum fgw_err err = read_all(body, sink, sink_context);
    body->request->body_bytes = body->size;
    if (err != FGW_OK) {
        return err;
    }
    if (body->length != UINT64_MAX && body->size != body->length) {
        return fgw_error_set(&body->request->error, FGW_ERR_INCOMPLETE_BODY, NULL);
    }
    end_digests(body);
    err = check_sha256(body);
    if (err == FGW_OK) {
        err = check_md5(body);
    }
    return err == FGW_OK ? check_checksum(body) : err;
}

void fgw_s3_body_deinit(struct fgw_s3_body *body)
{
    if (body == NULL) {
        return;
    }
    if (body->chunked != NULL) {
        fgw_chunked_deinit(body->chunked);
    }
    fgw_digest_deinit(&body->md5_digest);
    fgw_digest_deinit(&body->sha256_digest);
    fgw_s3_checksummer_deinit(&body->summer);
}

static enum fgw_err append(void *context, struct fgw_bytes bytes)
{
    return fgw_buf_append(context, bytes);
}

enum fgw_err fgw_s3_body_collect(struct fgw_s3_request *request, size_t max_bytes,
                                 bool need_integrity, struct fgw_buf *out)
{
    struct fgw_s3_body_options options = {.max_bytes = max_bytes,
                                          .too_large = FGW_ERR_MALFORMED_XML,
                                          .need_integrity = need_integrity};
    return fgw_s3_body_collect_with(request, &options, out);
}

enum fgw_err fgw_s3_body_collect_with(struct fgw_s3_request *request,
                                      const struct fgw_s3_body_options *options,
                                      struct fgw_buf *out)
{
    struct fgw_s3_body *body = NULL;
    enum fgw_err err = fgw_s3_body_plan(request, options, &body);
    if (err == FGW_OK) {
        err = fgw_s3_body_run(body, append, out);
    }
    fgw_s3_body_deinit(body);
    return err;
}
