/* fuzz_s3_documents.c: bodies of Complete, of cross-origin configurations, of tag sets and of ACLs, and
 * policies of browser uploads; the first byte chooses. What is accepted keeps its promises, and what
 * FGW writes of it is read again as the same. */
#include "base/check.h"
#include "base/encode.h"
#include "s3/acl.h"
#include "s3/complete_list.h"
#include "s3/cors.h"
#include "s3/engine_internal.h"
#include "s3/form_policy.h"
#include "s3/tags.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void complete_list(struct fgw_arena *arena, struct fgw_bytes document,
                          struct fgw_error *error)
{
    struct fgw_s3_listed_part *parts = NULL;
    size_t count = 0;
    if (fgw_s3_complete_list_parse(arena, document, &parts, &count, error) != FGW_OK) {
        FGW_CHECK(parts == NULL && error->code != FGW_OK);
        return;
    }
    FGW_CHECK(count >= 1 && parts[0].number >= 1 && parts[count - 1].number <= 10000);
    for (size_t i = 1; i < count; i++) {
        FGW_CHECK(parts[i].number > parts[i - 1].number);
    }
}

static void cors(struct fgw_arena *arena, struct fgw_bytes document, struct fgw_error *error)
{
    struct fgw_xml_node *root = NULL;
    struct fgw_s3_cors_question question = {FGW_LIT("http://a.b"), FGW_LIT("GET"),
                                            FGW_LIT("x-a, content-type")};
    if (fgw_s3_cors_check(arena, document, error) == FGW_OK) {
        FGW_CHECK(fgw_xml_parse(arena, document, "CORSConfiguration", 10000, &root) == FGW_OK);
        (void)fgw_s3_cors_rule(root, &question);
    }
}

static void policy(struct fgw_arena *arena, struct fgw_bytes json, struct fgw_error *error)
{
    struct fgw_meta_pair fields[] = {{FGW_LIT("key"), FGW_LIT("foo")},
                                     {FGW_LIT("bucket"), FGW_LIT("b")}};
    struct fgw_s3_form_limits limits = {0, 1000};
    char *text = fgw_arena_alloc(arena, FGW_BASE64_SIZE(json.len));
    fgw_base64_encode(json, text);
    enum fgw_err err =
        fgw_s3_form_policy_check(arena, fgw_bytes_str(text), fields, 2, 0, &limits, error);
    FGW_CHECK(limits.max_bytes <= 1000);
    FGW_CHECK(err == FGW_OK || (limits.min_bytes == 0 && limits.max_bytes == 1000));
}

static void tags(struct fgw_s3_request *request, struct fgw_bytes document)
{
    const struct fgw_meta_pair *first = NULL;
    const struct fgw_meta_pair *again = NULL;
    size_t count = 0;
    size_t count_again = 0;
    struct fgw_buf text;
    if (fgw_s3_tags_from_document(request, document, FGW_S3_OBJECT_TAGS_MAX, &first, &count) !=
        FGW_OK) {
        return;
    }
    FGW_CHECK(count <= FGW_S3_OBJECT_TAGS_MAX);
    fgw_buf_init(&text, 0);
    fgw_s3_tags_document(first, count, &text);
    FGW_CHECK(fgw_s3_tags_from_document(request, fgw_buf_bytes(&text), FGW_S3_OBJECT_TAGS_MAX,
                                        &again, &count_again) == FGW_OK);
    FGW_CHECK(count == count_again);
    for (size_t i = 0; i < count; i++) {
        FGW_CHECK(fgw_bytes_eq(first[i].name, again[i].name));
        FGW_CHECK(fgw_bytes_eq(first[i].value, again[i].value));
    }
    fgw_buf_deinit(&text);
}

static void acl(struct fgw_s3_request *request, struct fgw_bytes document)
{
    struct fgw_s3_acl_owner owner = {FGW_LIT("me"), FGW_LIT("Me")};
    enum fgw_acl found;
    enum fgw_acl again;
    struct fgw_buf text;
    if (fgw_s3_acl_from_document(request, document, &owner, &found) != FGW_OK) {
        return;
    }
    fgw_buf_init(&text, 0);
    fgw_s3_acl_document(found, &owner, &owner, &text);
    FGW_CHECK(fgw_s3_acl_from_document(request, fgw_buf_bytes(&text), &owner, &again) == FGW_OK);
    FGW_CHECK(found == again);
    fgw_buf_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fgw_s3 s3;
    struct fgw_s3_request request = {.s3 = &s3};
    struct fgw_arena arena;
    struct fgw_error error;
    if (size == 0) {
        return 0;
    }
    struct fgw_bytes rest = fgw_bytes(data + 1, size - 1);
    fgw_arena_init(&arena, 0);
    fgw_error_init(&error);
    fgw_error_init(&request.error);
    request.arena = &arena;
    switch (data[0] % 5) {
    case 0:
        complete_list(&arena, rest, &error);
        break;
    case 1:
        cors(&arena, rest, &error);
        break;
    case 2:
        tags(&request, rest);
        break;
    case 3:
        acl(&request, rest);
        break;
    default:
        policy(&arena, rest, &error);
        break;
    }
    fgw_arena_deinit(&arena);
    return 0;
}
