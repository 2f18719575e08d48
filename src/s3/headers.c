/* headers.c: see headers.h. */
#include "s3/headers.h"

#include <stdio.h>

#include "base/check.h"
#include "base/encode.h"
#include "s3/access.h"
#include "s3/acl.h"
#include "s3/tags.h"

enum {
    MAX_USER_METADATA_BYTES = 2048,
    META_PREFIX_LEN = 11,
    WORD_BYTES = 42, /* of an encoded word, before base64: 75 characters in all (RFC 2047) */
    WORD_ROOM = 80
};

static const char META_PREFIX[] = "x-amz-meta-";

/* System headers kept as sent; `parameter` overrides the value in an answer. */
struct system_header {
    const char *stored; /* lower case, as in the row */
    const char *sent;
    const char *parameter;
};
static const struct system_header SYSTEM_HEADERS[] = {
    {"content-type", "Content-Type", "response-content-type"},
    {"cache-control", "Cache-Control", "response-cache-control"},
    {"content-disposition", "Content-Disposition", "response-content-disposition"},
    {"content-encoding", "Content-Encoding", "response-content-encoding"},
    {"content-language", "Content-Language", "response-content-language"},
    {"expires", "Expires", "response-expires"},
    {"x-amz-website-redirect-location", "x-amz-website-redirect-location", NULL},
};
enum { CONTENT_TYPE = 0, CONTENT_ENCODING = 3 };

/* -- collecting ----------------------------------------------------------------------------- */

struct fgw_bytes fgw_s3_content_encoding(struct fgw_arena *arena, struct fgw_bytes value)
{
    uint8_t *kept = fgw_arena_alloc(arena, 2 * value.len + 1);
    size_t len = 0;
    struct fgw_bytes rest = value;
    struct fgw_bytes token;
    while (fgw_bytes_split(&rest, ',', &token)) {
        token = fgw_bytes_trim(token);
        if (token.len == 0 || fgw_bytes_ieq_str(token, "aws-chunked")) {
            continue;
        }
        if (len > 0) {
            kept[len++] = ',';
            kept[len++] = ' ';
        }
        memcpy(kept + len, token.ptr, token.len);
        len += token.len;
    }
    return len == 0 ? (struct fgw_bytes){NULL, 0} : fgw_bytes(kept, len);
}

static bool is_meta(struct fgw_bytes name)
{
    return name.len > META_PREFIX_LEN &&
           fgw_bytes_ieq_str(fgw_bytes_sub(name, 0, META_PREFIX_LEN), META_PREFIX);
}

static struct fgw_bytes lower(struct fgw_arena *arena, struct fgw_bytes name)
{
    uint8_t *copy = fgw_arena_alloc(arena, name.len);
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.ptr[i];
        copy[i] = c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
    }
    return fgw_bytes(copy, name.len);
}

/* A header sent again: "a" and "b" become "a,b". */
static bool join_repeated(struct fgw_arena *arena, struct fgw_meta_pair *pairs, size_t count,
                          const struct fgw_meta_pair *pair)
{
    for (size_t i = 0; i < count; i++) {
        if (fgw_bytes_eq(pairs[i].name, pair->name)) {
            char *joined = fgw_arena_printf(arena, "%.*s,%.*s", FGW_FMT(pairs[i].value),
                                            FGW_FMT(pair->value));
            pairs[i].value = fgw_bytes(joined, pairs[i].value.len + 1 + pair->value.len);
            return true;
        }
    }
    return false;
}

static size_t collect_system(struct fgw_s3_request *request, struct fgw_meta_pair *pairs)
{
    size_t count = 0;
    for (size_t i = 0; i < FGW_COUNT_OF(SYSTEM_HEADERS); i++) {
        struct fgw_bytes value = fgw_s3_header(request, SYSTEM_HEADERS[i].stored);
        if (i == CONTENT_ENCODING && value.ptr != NULL) {
            value = fgw_s3_content_encoding(request->arena, value);
        }
        if (value.len > 0) {
            pairs[count++] =
                (struct fgw_meta_pair){fgw_bytes_str(SYSTEM_HEADERS[i].stored), value};
        }
    }
    return count;
}

static size_t collect_user(struct fgw_s3_request *request, struct fgw_meta_pair *pairs)
{
    size_t count = 0;
    for (size_t i = 0; i < request->http->header_count; i++) {
        const struct fgw_http_header *header = &request->http->headers[i];
        if (!is_meta(header->name)) {
            continue;
        }
        struct fgw_meta_pair pair = {lower(request->arena, header->name), header->value};
        if (!join_repeated(request->arena, pairs, count, &pair)) {
            pairs[count++] = pair;
        }
    }
    return count;
}

static enum fgw_err check_user_size(struct fgw_s3_request *request,
                                    const struct fgw_meta_pair *pairs, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += pairs[i].name.len - META_PREFIX_LEN + pairs[i].value.len;
    }
    if (bytes <= MAX_USER_METADATA_BYTES) {
        return FGW_OK;
    }
    (void)fgw_error_set(&request->error, FGW_ERR_METADATA_TOO_LARGE, NULL);
    fgw_error_add(&request->error, "Size", "%zu", bytes);
    fgw_error_add(&request->error, "MaxSizeAllowed", "%d", MAX_USER_METADATA_BYTES);
    return FGW_ERR_METADATA_TOO_LARGE;
}

static enum fgw_err collect_storage_class(struct fgw_s3_request *request, struct fgw_bytes *out_class)
{
    static const char *const CLASSES[] = {"REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA",
                                          "INTELLIGENT_TIERING", "GLACIER_IR"};
    struct fgw_bytes name = fgw_s3_header(request, "x-amz-storage-class");
    if (name.len == 0 || fgw_bytes_eq_str(name, "STANDARD")) {
        return FGW_OK;
    }
    for (size_t i = 0; i < FGW_COUNT_OF(CLASSES); i++) {
        if (fgw_bytes_eq_str(name, CLASSES[i])) {
            *out_class = name;
            return FGW_OK;
        }
    }
    return fgw_error_set(&request->error, FGW_ERR_INVALID_STORAGE_CLASS, NULL);
}

static bool starts_with(struct fgw_bytes name, const char *prefix)
{
    return fgw_bytes_ieq_str(fgw_bytes_sub(name, 0, strlen(prefix)), prefix);
}

enum fgw_err fgw_s3_refuse_unbuilt_headers(struct fgw_s3_request *request)
{
    for (size_t i = 0; i < request->http->header_count; i++) {
        struct fgw_bytes name = request->http->headers[i].name;
        if (!starts_with(name, "x-amz-")) {
            continue;
        }
        if (starts_with(name, "x-amz-server-side-encryption")) {
            return fgw_s3_not_built(request, "Server-side encryption");
        }
        if (starts_with(name, "x-amz-object-lock-")) {
            return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                                 "Bucket is missing Object Lock Configuration");
        }
        if (starts_with(name, "x-amz-write-offset-bytes")) {
            return fgw_s3_not_built(request, "Appending to an object");
        }
    }
    return FGW_OK;
}

static enum fgw_err collect_pairs(struct fgw_s3_request *request, struct fgw_object *object)
{
    size_t room = FGW_COUNT_OF(SYSTEM_HEADERS) + request->http->header_count;
    struct fgw_meta_pair *pairs = fgw_arena_alloc(request->arena, room * sizeof *pairs);
    size_t system = collect_system(request, pairs);
    size_t user = collect_user(request, pairs + system);
    object->headers = pairs;
    object->header_count = system + user;
    return check_user_size(request, pairs + system, user);
}

enum fgw_err fgw_s3_collect_headers(struct fgw_s3_request *request, struct fgw_object *object)
{
    bool acl_given = false;
    enum fgw_err err = fgw_s3_refuse_unbuilt_headers(request);
    if (err == FGW_OK) {
        err = collect_pairs(request, object);
    }
    if (err == FGW_OK) {
        err = collect_storage_class(request, &object->storage_class);
    }
    if (err == FGW_OK) {
        err = fgw_s3_acl_from_headers(request, false, &object->acl, &acl_given);
    }
    if (err == FGW_OK) {
        err = fgw_s3_tags_from_header(request, &object->tags, &object->tag_count);
    }
    return err;
}

/* -- giving back ---------------------------------------------------------------------------- */

enum fgw_err fgw_s3_check_overrides(struct fgw_s3_request *request)
{
    if (request->query.count == 0 || !fgw_s3_anonymous(&request->identity)) {
        return FGW_OK;
    }
    for (size_t i = 0; i < FGW_COUNT_OF(SYSTEM_HEADERS); i++) {
        const char *parameter = SYSTEM_HEADERS[i].parameter;
        if (parameter != NULL && fgw_s3_has_param(request, parameter)) {
            return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                                 "Request specific response headers cannot be used for anonymous "
                                 "GET requests.");
        }
    }
    return FGW_OK;
}

static bool is_ascii(struct fgw_bytes value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

/* Bytes of the next encoded word: at most WORD_BYTES, cut between characters of UTF-8. */
static size_t word_len(struct fgw_bytes rest, bool utf8)
{
    if (rest.len <= WORD_BYTES) {
        return rest.len;
    }
    size_t len = WORD_BYTES;
    while (utf8 && (rest.ptr[len] & 0xc0) == 0x80) {
        len--;
    }
    return len;
}

struct fgw_bytes fgw_s3_header_text(struct fgw_arena *arena, struct fgw_bytes value)
{
    if (is_ascii(value)) {
        return value;
    }
    bool utf8 = fgw_utf8_valid(value);
    const char *charset = utf8 ? "UTF-8" : "ISO-8859-1";
    size_t words = value.len / (WORD_BYTES - 3) + 1;
    char *text = fgw_arena_alloc(arena, words * WORD_ROOM);
    size_t len = 0;
    while (value.len > 0) {
        size_t take = word_len(value, utf8);
        char base64[FGW_BASE64_SIZE(WORD_BYTES)];
        fgw_base64_encode(fgw_bytes_sub(value, 0, take), base64);
        len += (size_t)snprintf(text + len, WORD_ROOM, "%s=?%s?B?%s?=", len > 0 ? " " : "", charset,
                                base64);
        value = fgw_bytes_sub(value, take, SIZE_MAX);
    }
    return fgw_bytes(text, len);
}

static struct fgw_bytes override_of(const struct fgw_s3_request *request, struct fgw_bytes name)
{
    if (request->query.count == 0) {
        return (struct fgw_bytes){NULL, 0};
    }
    for (size_t i = 0; i < FGW_COUNT_OF(SYSTEM_HEADERS); i++) {
        if (SYSTEM_HEADERS[i].parameter != NULL &&
            fgw_bytes_eq_str(name, SYSTEM_HEADERS[i].stored)) {
            return fgw_s3_param(request, SYSTEM_HEADERS[i].parameter);
        }
    }
    return (struct fgw_bytes){NULL, 0};
}

/* The name as it goes out; user metadata stays in lower case. */
static const char *sent_name(struct fgw_s3_request *request, struct fgw_bytes stored)
{
    for (size_t i = 0; i < FGW_COUNT_OF(SYSTEM_HEADERS); i++) {
        if (fgw_bytes_eq_str(stored, SYSTEM_HEADERS[i].stored)) {
            return SYSTEM_HEADERS[i].sent;
        }
    }
    return fgw_arena_strdup(request->arena, stored);
}

static bool object_has(const struct fgw_object *object, const char *stored)
{
    for (size_t i = 0; i < object->header_count; i++) {
        if (fgw_bytes_eq_str(object->headers[i].name, stored)) {
            return true;
        }
    }
    return false;
}

/* Parameters that replace a header the object does not have. */
static void send_added(struct fgw_s3_request *request, const struct fgw_object *object)
{
    for (size_t i = 0; i < FGW_COUNT_OF(SYSTEM_HEADERS); i++) {
        const struct system_header *header = &SYSTEM_HEADERS[i];
        if (object_has(object, header->stored)) {
            continue;
        }
        struct fgw_bytes value = request->query.count == 0 || header->parameter == NULL
                                     ? (struct fgw_bytes){NULL, 0}
                                     : fgw_s3_param(request, header->parameter);
        if (value.ptr == NULL && i == CONTENT_TYPE) {
            value = FGW_LIT("binary/octet-stream");
        }
        if (value.ptr != NULL) {
            fgw_http_response_header(request->exchange, header->sent, value);
        }
    }
}

void fgw_s3_send_object_headers(struct fgw_s3_request *request, const struct fgw_object *object)
{
    for (size_t i = 0; i < object->header_count; i++) {
        const struct fgw_meta_pair *pair = &object->headers[i];
        struct fgw_bytes value = override_of(request, pair->name);
        if (value.ptr == NULL) {
            value = fgw_s3_header_text(request->arena, pair->value);
        }
        fgw_http_response_header(request->exchange, sent_name(request, pair->name), value);
    }
    send_added(request, object);
}
