/* cors.c: see cors.h. */
#include "s3/cors.h"

#include "base/check.h"
#include "s3/answer.h"
#include "s3/documents.h"
#include "s3/engine_internal.h"
#include "s3/names.h"

enum { MAX_RULES = 100, MAX_ELEMENTS = 10000 };

static const char *const METHODS[] = {"GET", "PUT", "POST", "DELETE", "HEAD"};

/* -- checking --------------------------------------------------------------------------------- */

static bool is_method(struct fgw_bytes text)
{
    for (size_t i = 0; i < FGW_COUNT_OF(METHODS); i++) {
        if (fgw_bytes_eq_str(text, METHODS[i])) {
            return true;
        }
    }
    return false;
}

static size_t stars(struct fgw_bytes text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += text.ptr[i] == '*';
    }
    return count;
}

static enum fgw_err check_element(const struct fgw_xml_node *node, struct fgw_error *error)
{
    struct fgw_bytes text = node->text;
    uint64_t seconds = 0;
    if (fgw_xml_is(node, "AllowedMethod")) {
        return is_method(text) ? FGW_OK
                               : fgw_error_set(error, FGW_ERR_INVALID_REQUEST,
                                               "Found unsupported HTTP method in CORS config. "
                                               "Unsupported method is %.*s",
                                               FGW_FMT(fgw_bytes_sub(text, 0, 100)));
    }
    if (fgw_xml_is(node, "AllowedOrigin") || fgw_xml_is(node, "AllowedHeader")) {
        return stars(text) <= 1
                   ? FGW_OK
                   : fgw_error_set(error, FGW_ERR_INVALID_REQUEST,
                                   "%.*s \"%.*s\" can not have more than one wildcard.",
                                   FGW_FMT(node->name), FGW_FMT(fgw_bytes_sub(text, 0, 100)));
    }
    if (fgw_xml_is(node, "ExposeHeader")) {
        return stars(text) == 0 ? FGW_OK
                                : fgw_error_set(error, FGW_ERR_INVALID_REQUEST,
                                                "ExposeHeader \"%.*s\" contains wildcard. We "
                                                "currently do not support wildcard for "
                                                "ExposeHeader.",
                                                FGW_FMT(fgw_bytes_sub(text, 0, 100)));
    }
    bool known =
        fgw_xml_is(node, "ID") ||
        (fgw_xml_is(node, "MaxAgeSeconds") &&
         fgw_bytes_to_u64(fgw_bytes_trim(text), &seconds) == FGW_OK && seconds <= INT32_MAX);
    return known ? FGW_OK : fgw_error_set(error, FGW_ERR_MALFORMED_XML, NULL);
}

static enum fgw_err check_rule(const struct fgw_xml_node *rule, struct fgw_error *error)
{
    if (!fgw_xml_is(rule, "CORSRule") || fgw_xml_child(rule, "AllowedOrigin") == NULL ||
        fgw_xml_child(rule, "AllowedMethod") == NULL) {
        return fgw_error_set(error, FGW_ERR_MALFORMED_XML, NULL);
    }
    for (const struct fgw_xml_node *node = rule->first_child; node != NULL; node = node->next) {
        enum fgw_err err = check_element(node, error);
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

enum fgw_err fgw_s3_cors_check(struct fgw_arena *arena, struct fgw_bytes document,
                               struct fgw_error *error)
{
    struct fgw_xml_node *root = NULL;
    size_t count = 0;
    if (fgw_xml_parse(arena, document, "CORSConfiguration", MAX_ELEMENTS, &root) != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_MALFORMED_XML, NULL);
    }
    for (const struct fgw_xml_node *rule = root->first_child; rule != NULL; rule = rule->next) {
        enum fgw_err err = check_rule(rule, error);
        if (err != FGW_OK) {
            return err;
        }
        count++;
    }
    return count >= 1 && count <= MAX_RULES ? FGW_OK
                                            : fgw_error_set(error, FGW_ERR_MALFORMED_XML, NULL);
}

/* -- choosing --------------------------------------------------------------------------------- */

static bool equal(struct fgw_bytes a, struct fgw_bytes b, bool any_case)
{
    for (size_t i = 0; any_case && a.len == b.len && i < a.len; i++) {
        uint8_t x = a.ptr[i];
        uint8_t y = b.ptr[i];
        x = x >= 'A' && x <= 'Z' ? (uint8_t)(x | 0x20) : x;
        y = y >= 'A' && y <= 'Z' ? (uint8_t)(y | 0x20) : y;
        if (x != y) {
            return false;
        }
    }
    return any_case ? a.len == b.len : fgw_bytes_eq(a, b);
}

bool fgw_s3_cors_match(struct fgw_bytes pattern, struct fgw_bytes text, bool any_case)
{
    size_t star = fgw_bytes_find_byte(pattern, '*');
    if (star == SIZE_MAX) {
        return equal(pattern, text, any_case);
    }
    struct fgw_bytes tail = fgw_bytes_sub(pattern, star + 1, SIZE_MAX);
    return text.len >= star + tail.len &&
           equal(fgw_bytes_sub(pattern, 0, star), fgw_bytes_sub(text, 0, star), any_case) &&
           equal(tail, fgw_bytes_sub(text, text.len - tail.len, SIZE_MAX), any_case);
}

/* The element of that name that matches text, or NULL. */
static const struct fgw_xml_node *matching(const struct fgw_xml_node *rule, const char *name,
                                           struct fgw_bytes text, bool any_case)
{
    for (const struct fgw_xml_node *node = rule->first_child; node != NULL; node = node->next) {
        if (fgw_xml_is(node, name) && fgw_s3_cors_match(node->text, text, any_case)) {
            return node;
        }
    }
    return NULL;
}

static bool allows_headers(const struct fgw_xml_node *rule, struct fgw_bytes headers)
{
    struct fgw_bytes rest = headers;
    struct fgw_bytes name;
    while (headers.len > 0 && fgw_bytes_split(&rest, ',', &name)) {
        name = fgw_bytes_trim(name);
        if (name.len > 0 && matching(rule, "AllowedHeader", name, true) == NULL) {
            return false;
        }
    }
    return true;
}

const struct fgw_xml_node *fgw_s3_cors_rule(const struct fgw_xml_node *configuration,
                                            const struct fgw_s3_cors_question *question)
{
    for (const struct fgw_xml_node *rule = configuration->first_child; rule != NULL;
         rule = rule->next) {
        if (matching(rule, "AllowedOrigin", question->origin, false) != NULL &&
            matching(rule, "AllowedMethod", question->method, false) != NULL &&
            allows_headers(rule, question->headers)) {
            return rule;
        }
    }
    return NULL;
}

/* -- answering -------------------------------------------------------------------------------- */

static struct fgw_bytes exposed(struct fgw_arena *arena, const struct fgw_xml_node *rule)
{
    struct fgw_buf list;
    fgw_buf_init(&list, 0);
    for (const struct fgw_xml_node *node = rule->first_child; node != NULL; node = node->next) {
        if (fgw_xml_is(node, "ExposeHeader")) {
            (void)fgw_buf_appendf(&list, "%s%.*s", list.len > 0 ? ", " : "", FGW_FMT(node->text));
        }
    }
    struct fgw_bytes text =
        list.len == 0 ? (struct fgw_bytes){NULL, 0} : fgw_arena_copy(arena, fgw_buf_bytes(&list));
    fgw_buf_deinit(&list);
    return text;
}

static void allow(struct fgw_s3_request *request, const struct fgw_xml_node *rule,
                  const struct fgw_s3_cors_question *question)
{
    const struct fgw_xml_node *origin = matching(rule, "AllowedOrigin", question->origin, false);
    bool any = fgw_bytes_eq_str(origin->text, "*");
    fgw_s3_extra_header(request, "Access-Control-Allow-Origin",
                        any ? FGW_LIT("*") : question->origin);
    fgw_s3_extra_header(request, "Access-Control-Allow-Methods", question->method);
    fgw_s3_extra_header(request, "Access-Control-Expose-Headers", exposed(request->arena, rule));
    if (!any) {
        fgw_s3_extra_header(request, "Access-Control-Allow-Credentials", FGW_LIT("true"));
    }
    fgw_s3_extra_header(request, "Vary",
                        FGW_LIT("Origin, Access-Control-Request-Headers, "
                                "Access-Control-Request-Method"));
}

/* The rule of the bucket that the request names; its error is not the request's. */
static enum fgw_err find_rule(struct fgw_s3_request *request,
                              const struct fgw_s3_cors_question *question,
                              const struct fgw_xml_node **out_rule, struct fgw_error *error)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_bucket bucket;
    struct fgw_xml_node *configuration = NULL;
    if (request->scope == FGW_S3_SERVICE || !fgw_s3_bucket_name_valid(request->bucket_name)) {
        return fgw_error_set(error, FGW_ERR_NO_SUCH_BUCKET, NULL);
    }
    enum fgw_err err =
        meta->ops->bucket_get(meta, request->arena, request->bucket_name, false, &bucket, error);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_bytes document = fgw_s3_document(&bucket, FGW_S3_CORS_DOCUMENT);
    if (document.ptr == NULL || fgw_xml_parse(request->arena, document, "CORSConfiguration",
                                              MAX_ELEMENTS, &configuration) != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_CORS_FORBIDDEN, NULL);
    }
    *out_rule = fgw_s3_cors_rule(configuration, question);
    return *out_rule != NULL
               ? FGW_OK
               : fgw_error_set(error, FGW_ERR_CORS_FORBIDDEN,
                               "CORSResponse: This CORS request is not allowed. This is usually "
                               "because the evaluation of Origin, request method / "
                               "Access-Control-Request-Method or Access-Control-Request-Headers "
                               "are not whitelisted by the resource's CORS spec.");
}

static struct fgw_s3_cors_question question_of(const struct fgw_s3_request *request)
{
    struct fgw_s3_cors_question question = {
        .origin = fgw_s3_header(request, "Origin"),
        .method = fgw_s3_header(request, "Access-Control-Request-Method"),
        .headers = fgw_s3_header(request, "Access-Control-Request-Headers")};
    if (question.method.len == 0) {
        question.method = request->http->method_text;
    }
    return question;
}

void fgw_s3_cors_headers(struct fgw_s3_request *request)
{
    const struct fgw_xml_node *rule = NULL;
    struct fgw_error ignored;
    struct fgw_s3_cors_question question = question_of(request);
    if (question.origin.len == 0) {
        return;
    }
    fgw_error_init(&ignored);
    if (find_rule(request, &question, &rule, &ignored) == FGW_OK) {
        allow(request, rule, &question);
    }
}

enum fgw_err fgw_s3_cors_preflight(struct fgw_s3_request *request)
{
    const struct fgw_xml_node *rule = NULL;
    struct fgw_s3_cors_question question = question_of(request);
    if (question.origin.len == 0) {
        return fgw_error_set(&request->error, FGW_ERR_BAD_REQUEST,
                             "Insufficient information. Origin request header needed.");
    }
    if (fgw_s3_header(request, "Access-Control-Request-Method").len == 0) {
        return fgw_error_set(&request->error, FGW_ERR_BAD_REQUEST,
                             "Invalid Access-Control-Request-Method: null");
    }
    enum fgw_err err = find_rule(request, &question, &rule, &request->error);
    if (err != FGW_OK) {
        return err;
    }
    allow(request, rule, &question);
    if (question.headers.len > 0) {
        fgw_s3_extra_header(request, "Access-Control-Allow-Headers", question.headers);
    }
    fgw_s3_extra_header(request, "Access-Control-Max-Age",
                        fgw_bytes_trim(fgw_xml_child_text(rule, "MaxAgeSeconds")));
    return fgw_s3_answer_empty(request, 200);
}
