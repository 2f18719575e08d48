/* test_form.c: multipart/form-data cut anywhere, policies of browser uploads, cross-origin rules:
 * edge cases and hostile input. */
#include "cmocka_all.h"

#include "base/encode.h"
#include "s3/cors.h"
#include "s3/form.h"
#include "s3/form_policy.h"

/* -- forms ------------------------------------------------------------------------------------ */

/* What the calls said, as text: [name|filename|type]data; */
struct record {
    struct fgw_buf text;
};

static void add(struct record *record, struct fgw_bytes bytes)
{
    (void)fgw_buf_append(&record->text, bytes.ptr == NULL ? FGW_LIT("-") : bytes);
}

static enum fgw_err on_begin(void *context, const struct fgw_form_part *part)
{
    struct record *record = context;
    add(record, FGW_LIT("["));
    add(record, part->name);
    add(record, FGW_LIT("|"));
    add(record, part->filename);
    add(record, FGW_LIT("|"));
    add(record, part->content_type);
    add(record, FGW_LIT("]"));
    return FGW_OK;
}

static enum fgw_err on_data(void *context, struct fgw_bytes bytes)
{
    assert_true(bytes.len > 0);
    add(context, bytes);
    return FGW_OK;
}

static enum fgw_err on_end(void *context)
{
    add(context, FGW_LIT(";"));
    return FGW_OK;
}

/* The whole in pieces of `step` bytes; what was called ends up in record. */
static enum fgw_err run(struct fgw_bytes body, size_t step, struct record *record)
{
    struct fgw_arena arena;
    struct fgw_form form;
    struct fgw_form_handler handler = {on_begin, on_data, on_end, record};
    enum fgw_err err = FGW_OK;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&record->text, 0);
    fgw_form_init(&form, &arena, FGW_LIT("b-1"), &handler);
    for (size_t at = 0; err == FGW_OK && at < body.len; at += step) {
        err = fgw_form_feed(&form, fgw_bytes_sub(body, at, step));
    }
    if (err == FGW_OK) {
        err = fgw_form_finish(&form);
    }
    fgw_form_deinit(&form);
    fgw_arena_deinit(&arena);
    return err;
}

static void expect_form(const char *body, const char *calls)
{
    size_t len = strlen(body);
    for (size_t step = 1; step <= len; step = step < 8 ? step + 1 : step + len / 3) {
        struct record record;
        enum fgw_err err = run(fgw_bytes(body, len), step, &record);
        assert_int_equal(err, calls == NULL ? FGW_ERR_MALFORMED_POST : FGW_OK);
        if (calls != NULL) {
            assert_true(fgw_bytes_eq_str(fgw_buf_bytes(&record.text), calls));
        }
        fgw_buf_deinit(&record.text);
    }
}

#define HEAD "Content-Disposition: form-data; name="

static void good_forms(void **state)
{
    (void)state;
    expect_form("--b-1--", "");
    expect_form("preamble\r\n--b-1--\r\nepilogue \r\n--b-1\r\n", "");
    expect_form("--b-1\r\n" HEAD "a\r\n\r\nvalue\r\n--b-1--\r\n", "[a|-|-]value;");
    expect_form("--b-1\r\n" HEAD "a\r\n\r\n\r\n--b-1--", "[a|-|-];");
    expect_form("--b-1 \t\r\nX-Other: y\r\ncontent-disposition:form-data;NAME=\"a;\\\"b\\\\\"; "
                "filename=\"\"\r\nContent-Type: text/plain; charset=x\r\n\r\n"
                "\r\n--b-\r\n--b-2\r\n-\r\n--b-1\r\n" HEAD "\"c\"\r\n\r\n--b-1\r\n--b-1--",
                "[a;\"b\\||text/plain; charset=x]\r\n--b-\r\n--b-2\r\n-;[c|-|-]--b-1;");
}

static void bad_forms(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "",
        "x",
        "--b-2--",
        "--b-1",
        "--b-1\r\n",
        "--b-1-",
        "--b-1-x",
        "--b-1x\r\n" HEAD "a\r\n\r\nv\r\n--b-1--",
        "--b-1\r\n" HEAD "a\r\n\r\nv",
        "--b-1\r\n" HEAD "a\r\n\r\nv\r\n--b-1",
        "--b-1\r\n" HEAD "a\r\n\r\nv\r\n--b-1-",
        "--b-1\r\nno colon\r\n\r\nv\r\n--b-1--",
        "--b-1\r\nContent-Type: a\r\n\r\nv\r\n--b-1--",
        "--b-1\r\nContent-Disposition: attachment; name=a\r\n\r\nv\r\n--b-1--",
        "--b-1\r\nContent-Disposition: form-data\r\n\r\nv\r\n--b-1--",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        expect_form(BAD[i], NULL);
    }
}

static void long_heads_are_refused(void **state)
{
    (void)state;
    struct fgw_buf body;
    struct record record;
    fgw_buf_init(&body, 0);
    (void)fgw_buf_append_str(&body, "--b-1\r\nX: ");
    for (size_t i = 0; i < 10000; i++) {
        (void)fgw_buf_append_byte(&body, 'x');
    }
    assert_int_equal(run(fgw_buf_bytes(&body), 100, &record), FGW_ERR_MALFORMED_POST);
    fgw_buf_deinit(&record.text);
    fgw_buf_deinit(&body);
}

static void boundaries(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_bytes boundary = {NULL, 0};
    fgw_arena_init(&arena, 0);
    static const char *const BAD[] = {
        "",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=x",
        "multipart/form-data; boundary",
        "multipart/form-data boundary=x",
        "multipart/form-data; boundary=1234567890123456789012345678901234567890123456789012345678901"
        "2345678901"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(fgw_form_boundary(&arena, fgw_bytes_str(BAD[i]), &boundary),
                         FGW_ERR_PARSE);
    }
    assert_int_equal(fgw_form_boundary(&arena,
                                       FGW_LIT("Multipart/Form-Data ; a=b;; Boundary=\"x y\""),
                                       &boundary),
                     FGW_OK);
    assert_true(fgw_bytes_eq_str(boundary, "x y"));
    assert_int_equal(
        fgw_form_boundary(&arena, FGW_LIT("multipart/form-data;boundary=xyz ;c=d"), &boundary),
        FGW_OK);
    assert_true(fgw_bytes_eq_str(boundary, "xyz"));
    fgw_arena_deinit(&arena);
}

/* -- policies --------------------------------------------------------------------------------- */

static enum fgw_err check_policy(const char *json, struct fgw_s3_form_limits *limits)
{
    static const struct fgw_meta_pair FIELDS[] = {
        {{(const uint8_t *)"Key", 3}, {(const uint8_t *)"dir/file", 8}},
        {{(const uint8_t *)"policy", 6}, {(const uint8_t *)"x", 1}},
        {{(const uint8_t *)"X-Ignore-Me", 11}, {(const uint8_t *)"x", 1}},
        {{(const uint8_t *)"bucket", 6}, {(const uint8_t *)"b", 1}}};
    struct fgw_arena arena;
    struct fgw_error error;
    char text[2048];
    fgw_error_init(&error);
    fgw_arena_init(&arena, 0);
    fgw_base64_encode(fgw_bytes_str(json), text);
    enum fgw_err err = fgw_s3_form_policy_check(&arena, fgw_bytes_str(text), FIELDS, 4,
                                                1000LL * 1000 * 1000 * 1000, limits, &error);
    assert_int_equal(error.code, err);
    fgw_arena_deinit(&arena);
    return err;
}

#define POLICY(conditions) \
    "{\"expiration\":\"2001-09-09T01:46:40.000Z\",\"conditions\":[" conditions "]}"
#define USUAL "{\"bucket\":\"b\"},[\"starts-with\",\"$key\",\"dir/\"]"

static void policies(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        enum fgw_err err;
    } CASES[] = {
        {POLICY(USUAL), FGW_OK},
        {POLICY("{\"BUCKET\":\"b\",\"kEy\":\"dir/file\"}"), FGW_OK},
        {POLICY("[\"EQ\",\"$bucket\",\"b\"],[\"eq\",\"$KEY\",\"dir/file\"]"), FGW_OK},
        {POLICY(USUAL ",[\"starts-with\",\"$none\",\"\"],{\"none\":\"\"}"), FGW_OK},
        {POLICY(USUAL ",[\"starts-with\",\"$none\",\"x\"]"), FGW_ERR_ACCESS_DENIED},
        {POLICY(USUAL ",{\"none\":\"x\"}"), FGW_ERR_ACCESS_DENIED},
        {POLICY("{\"bucket\":\"b\"},{\"key\":\"dir/\"}"), FGW_ERR_ACCESS_DENIED},
        {POLICY("{\"bucket\":\"c\"},{\"key\":\"dir/file\"}"), FGW_ERR_ACCESS_DENIED},
        {POLICY("{\"bucket\":\"b\"}"), FGW_ERR_ACCESS_DENIED},
        {POLICY("{\"key\":\"dir/file\"}"), FGW_ERR_ACCESS_DENIED},
        {"{\"expiration\":\"2001-09-09T01:46:39Z\",\"conditions\":[" USUAL "]}",
         FGW_ERR_ACCESS_DENIED},
        {"{\"expiration\":\"soon\",\"conditions\":[" USUAL "]}", FGW_ERR_INVALID_POLICY_DOCUMENT},
        {"{\"conditions\":[" USUAL "]}", FGW_ERR_INVALID_POLICY_DOCUMENT},
        {"{\"expiration\":\"2040-01-01T00:00:00Z\"}", FGW_ERR_INVALID_POLICY_DOCUMENT},
        {"{\"expiration\":\"2040-01-01T00:00:00Z\",\"conditions\":{}}",
         FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY(""), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY("{}"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY("[]"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY("5"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY("{\"key\":null}"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY("[\"eq\",\"key\",\"dir/file\"]"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY("[\"eq\",\"$key\"]"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY("[\"eq\",\"$key\",\"a\",\"b\"]"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY("[\"ends-with\",\"$key\",\"e\"]"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY("[1,2,3]"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY(USUAL ",[\"content-length-range\",5,4]"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY(USUAL ",[\"content-length-range\",-1,4]"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {POLICY(USUAL ",[\"content-length-range\",1.5,4]"), FGW_ERR_INVALID_POLICY_DOCUMENT},
        {"[]", FGW_ERR_INVALID_POLICY_DOCUMENT},
        {"{", FGW_ERR_INVALID_POLICY_DOCUMENT},
        {"", FGW_ERR_INVALID_POLICY_DOCUMENT},
        {"{\"expiration\":\"2040-01-01T00:00:00Z\",\"conditions\":[],\"conditions\":[" USUAL "]}",
         FGW_ERR_INVALID_POLICY_DOCUMENT},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fgw_s3_form_limits limits = {0, 99};
        assert_int_equal(check_policy(CASES[i].json, &limits), CASES[i].err);
        assert_true(limits.min_bytes == 0 && limits.max_bytes == 99);
    }
}

static void policies_narrow_sizes(void **state)
{
    (void)state;
    struct fgw_s3_form_limits limits = {0, 99};
    assert_int_equal(check_policy(POLICY(USUAL ",[\"content-length-range\",\"2\",200],"
                                               "[\"Content-Length-Range\",1,\"50\"]"),
                                  &limits),
                     FGW_OK);
    assert_true(limits.min_bytes == 2 && limits.max_bytes == 50);
}

/* -- cross-origin rules ----------------------------------------------------------------------- */

static void patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *text;
        bool any_case;
        bool match;
    } CASES[] = {
        {"*", "", false, true},         {"*", "abc", false, true},
        {"abc", "abc", false, true},    {"abc", "abcd", false, false},
        {"abc", "ABC", false, false},   {"abc", "ABC", true, true},
        {"a*c", "ac", false, true},     {"a*c", "abbc", false, true},
        {"a*c", "a", false, false},     {"aa*aa", "aaa", false, false},
        {"aa*aa", "aaaa", false, true}, {"*.x", "y.x", false, true},
        {"*.x", "y.xx", false, false},  {"X-*", "x-amz-date", true, true},
        {"", "", false, true},          {"", "a", false, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_int_equal(fgw_s3_cors_match(fgw_bytes_str(CASES[i].pattern),
                                           fgw_bytes_str(CASES[i].text), CASES[i].any_case),
                         CASES[i].match);
    }
}

static void rules_in_order(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_error error;
    struct fgw_xml_node *root = NULL;
    fgw_arena_init(&arena, 0);
    fgw_error_init(&error);
    struct fgw_bytes document =
        FGW_LIT("<CORSConfiguration><CORSRule><ID>1</ID><AllowedOrigin>http://a</AllowedOrigin>"
                "<AllowedMethod>GET</AllowedMethod></CORSRule><CORSRule><ID>2</ID>"
                "<AllowedOrigin>*</AllowedOrigin><AllowedMethod>PUT</AllowedMethod>"
                "<AllowedMethod>GET</AllowedMethod><AllowedHeader>x-*</AllowedHeader></CORSRule>"
                "</CORSConfiguration>");
    assert_int_equal(fgw_s3_cors_check(&arena, document, &error), FGW_OK);
    assert_int_equal(fgw_xml_parse(&arena, document, "CORSConfiguration", 100, &root), FGW_OK);
    static const struct {
        const char *origin, *method, *headers, *id;
    } CASES[] = {
        {"http://a", "GET", "", "1"},        {"http://a", "GET", "X-A, x-b", "2"},
        {"http://a", "PUT", "", "2"},        {"http://b", "GET", "", "2"},
        {"http://b", "GET", "x-a,,", "2"},   {"http://b", "DELETE", "", NULL},
        {"http://b", "GET", "x-a, y", NULL}, {"http://b", "get", "", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fgw_s3_cors_question question = {fgw_bytes_str(CASES[i].origin),
                                                fgw_bytes_str(CASES[i].method),
                                                fgw_bytes_str(CASES[i].headers)};
        const struct fgw_xml_node *rule = fgw_s3_cors_rule(root, &question);
        assert_int_equal(rule != NULL, CASES[i].id != NULL);
        assert_true(rule == NULL || fgw_bytes_eq_str(fgw_xml_child_text(rule, "ID"), CASES[i].id));
    }
    fgw_arena_deinit(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_forms), cmocka_unit_test(bad_forms),
        cmocka_unit_test(boundaries), cmocka_unit_test(long_heads_are_refused),
        cmocka_unit_test(policies),   cmocka_unit_test(policies_narrow_sizes),
        cmocka_unit_test(patterns),   cmocka_unit_test(rules_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
