/* fuzz_s3_documents.c: bodies of Complete and of cross-origin configurations, and policies of
 * browser uploads; the first byte chooses. What is accepted keeps its promises. */
#include "base/check.h"
#include "base/encode.h"
#include "s3/complete_list.h"
#include "s3/cors.h"
#include "s3/form_policy.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fgw_arena arena;
    struct fgw_error error;
    if (size == 0) {
        return 0;
    }
    struct fgw_bytes rest = fgw_bytes(data + 1, size - 1);
    fgw_arena_init(&arena, 0);
    fgw_error_init(&error);
    switch (data[0] % 3) {
    case 0:
        complete_list(&arena, rest, &error);
        break;
    case 1:
        cors(&arena, rest, &error);
        break;
    default:
        policy(&arena, rest, &error);
        break;
    }
    fgw_arena_deinit(&arena);
    return 0;
}
