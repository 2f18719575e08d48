/* test_xml.c: writer and reader of XML, and the ACL documents made of both. */
#include "cmocka_all.h"

#include "fake_request.h"
#include "s3/acl.h"
#include "s3/xml_read.h"
#include "s3/xml_write.h"

#define assert_bytes(view, text) assert_true(fgw_bytes_eq_str(view, text))

enum { MAX_ELEMENTS = 100 };

static void writes(void **state)
{
    (void)state;
    struct fgw_buf out;
    fgw_buf_init(&out, 4096);
    fgw_xml_text(&out, "Key", FGW_LIT("a&b<c>\"q'\n\x01\xc3\xa9"));
    fgw_xml_number(&out, "Size", 0);
    fgw_xml_number(&out, "Size", UINT64_MAX);
    fgw_xml_bool(&out, "Is", true);
    fgw_xml_time(&out, "At", 1234567890123);
    fgw_xml_etag(&out, "ETag", FGW_LIT("abc"));
    fgw_xml_key(&out, "K", FGW_LIT("a b+c/\xc3\xa9%"), true);
    assert_bytes(fgw_buf_bytes(&out),
                 "<Key>a&amp;b&lt;c&gt;\"q'&#xA;&#x1;\xc3\xa9</Key><Size>0</Size>"
                 "<Size>18446744073709551615</Size><Is>true</Is><At>2009-02-13T23:31:30.123Z</At>"
                 "<ETag>\"abc\"</ETag><K>a%20b%2Bc/%C3%A9%25</K>");
    fgw_buf_deinit(&out);
    fgw_buf_init(&out, 8);
    fgw_xml_text(&out, "Key", FGW_LIT("does not fit"));
    assert_int_equal(fgw_buf_status(&out), FGW_ERR_TOO_LARGE);
    fgw_buf_deinit(&out);
}

/* What a byte becomes, by the plain rule. */
static void escape_byte(uint8_t c, struct fgw_buf *out)
{
    if (c == '&' || c == '<' || c == '>') {
        (void)fgw_buf_append_str(out, c == '&' ? "&amp;" : c == '<' ? "&lt;" : "&gt;");
    } else if (c < 0x20 || c == 0x7f) {
        (void)fgw_buf_appendf(out, "&#x%X;", c);
    } else {
        (void)fgw_buf_append_byte(out, c);
    }
}

static void escapes_every_byte_at_every_place(void **state)
{
    (void)state;
    enum { LENGTH = 21 }; /* two words and a rest */
    struct fgw_buf got;
    struct fgw_buf want;
    fgw_buf_init(&got, 0);
    fgw_buf_init(&want, 0);
    for (unsigned c = 0; c < 256; c++) {
        for (size_t at = 0; at < LENGTH; at++) {
            uint8_t text[LENGTH];
            memset(text, c % 2 == 0 ? 'x' : 0xe9, sizeof text);
            text[at] = (uint8_t)c;
            text[LENGTH - 1 - at] = (uint8_t)(c ^ 1);
            fgw_buf_clear(&got);
            fgw_buf_clear(&want);
            fgw_xml_escape(&got, fgw_bytes(text, sizeof text));
            for (size_t i = 0; i < LENGTH; i++) {
                escape_byte(text[i], &want);
            }
            assert_true(fgw_bytes_eq(fgw_buf_bytes(&got), fgw_buf_bytes(&want)));
        }
    }
    fgw_buf_deinit(&got);
    fgw_buf_deinit(&want);
}

static void reads_any_form(void **state)
{
    (void)state;
    static const char *const FORMS[] = {
        "<Delete><Quiet>true</Quiet><Object><Key>a&amp;b</Key></Object></Delete>",
        "<?xml version='1.0' encoding='UTF-8'?>\n<Delete xmlns=\"http://s3.amazonaws.com/doc/"
        "2006-03-01/\">\n <Quiet>true</Quiet><!-- c --><Object><Key>a&#38;b</Key></Object></Delete>\n",
        "\xef\xbb\xbf<s:Delete xmlns:s='urn:x'><s:Quiet>true</s:Quiet><s:Object><s:Key>"
        "<![CDATA[a&b]]></s:Key></s:Object></s:Delete>",
    };
    for (size_t i = 0; i < sizeof FORMS / sizeof FORMS[0]; i++) {
        struct fgw_arena arena;
        struct fgw_xml_node *root = NULL;
        fgw_arena_init(&arena, 0);
        assert_int_equal(
            fgw_xml_parse(&arena, fgw_bytes_str(FORMS[i]), "Delete", MAX_ELEMENTS, &root), FGW_OK);
        assert_bytes(fgw_xml_child_text(root, "Quiet"), "true");
        assert_bytes(fgw_xml_child_text(fgw_xml_child(root, "Object"), "Key"), "a&b");
        assert_null(fgw_xml_child(root, "Nothing"));
        assert_null(fgw_xml_child_text(NULL, "Key").ptr);
        fgw_arena_deinit(&arena);
    }
}

static enum fgw_err parse(struct fgw_bytes document)
{
    struct fgw_arena arena;
    struct fgw_xml_node *root = NULL;
    fgw_arena_init(&arena, 0);
    enum fgw_err err = fgw_xml_parse(&arena, document, "a", MAX_ELEMENTS, &root);
    fgw_arena_deinit(&arena);
    return err;
}

static void refuses_hostile_documents(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "",
        " ",
        "x",
        "<a>",
        "<a></b>",
        "<b></b>",
        "<a></a><a></a>",
        "<a></a>trailing",
        "<a x></a>",
        "<a>&unknown;</a>",
        "<a>\x01</a>",
        "<a>\xff</a>",
        "<!DOCTYPE a><a></a>",
        "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
        "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a></a>",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(parse(fgw_bytes_str(BAD[i])), FGW_ERR_MALFORMED_XML);
    }
    struct fgw_buf deep;
    fgw_buf_init(&deep, 0);
    for (int i = 0; i < 100000; i++) {
        (void)fgw_buf_append_str(&deep, "<a>");
    }
    assert_int_equal(parse(fgw_buf_bytes(&deep)), FGW_ERR_MALFORMED_XML);
    fgw_buf_clear(&deep);
    (void)fgw_buf_append_str(&deep, "<a>");
    for (int i = 0; i < MAX_ELEMENTS; i++) {
        (void)fgw_buf_append_str(&deep, "<b/>");
    }
    (void)fgw_buf_append_str(&deep, "</a>");
    assert_int_equal(parse(fgw_buf_bytes(&deep)), FGW_ERR_MALFORMED_XML);
    fgw_buf_clear(&deep);
    (void)fgw_buf_append_str(&deep, "<a>");
    for (int i = 0; i < 70000; i++) {
        (void)fgw_buf_append_byte(&deep, 'x');
    }
    (void)fgw_buf_append_str(&deep, "</a>");
    assert_int_equal(parse(fgw_buf_bytes(&deep)), FGW_ERR_MALFORMED_XML);
    fgw_buf_deinit(&deep);
}

static void acl_documents(void **state)
{
    (void)state;
    struct fgw_s3_acl_owner owner = {FGW_LIT("0123"), FGW_LIT("me & you")};
    struct fgw_s3_acl_owner other = {FGW_LIT("4567"), FGW_LIT("other")};
    static const enum fgw_acl ACLS[] = {FGW_ACL_PRIVATE, FGW_ACL_PUBLIC_READ,
                                        FGW_ACL_PUBLIC_READ_WRITE, FGW_ACL_AUTHENTICATED_READ};
    struct fake_request fake;
    fake_init(&fake, FGW_HTTP_PUT, "/bk?acl");
    struct fgw_buf out;
    fgw_buf_init(&out, 65536);
    for (size_t i = 0; i < sizeof ACLS / sizeof ACLS[0]; i++) {
        enum fgw_acl found = FGW_ACL_BUCKET_OWNER_READ;
        fgw_buf_clear(&out);
        fgw_s3_acl_document(ACLS[i], &owner, &owner, &out);
        assert_int_equal(
            fgw_s3_acl_from_document(&fake.request, fgw_buf_bytes(&out), &owner, &found), FGW_OK);
        assert_int_equal(found, ACLS[i]);
        assert_int_equal(
            fgw_s3_acl_from_document(&fake.request, fgw_buf_bytes(&out), &other, &found),
            FGW_ERR_ACCESS_DENIED);
    }
    fgw_buf_clear(&out);
    fgw_s3_acl_document(FGW_ACL_BUCKET_OWNER_READ, &owner, &other, &out);
    enum fgw_acl found;
    assert_int_equal(fgw_s3_acl_from_document(&fake.request, fgw_buf_bytes(&out), &owner, &found),
                     FGW_ERR_NOT_IMPLEMENTED);
    assert_int_equal(fgw_s3_acl_from_document(&fake.request, FGW_LIT("<x/>"), &owner, &found),
                     FGW_ERR_MALFORMED_XML);
    fgw_buf_deinit(&out);
    fake_deinit(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes),         cmocka_unit_test(escapes_every_byte_at_every_place),
        cmocka_unit_test(reads_any_form), cmocka_unit_test(refuses_hostile_documents),
        cmocka_unit_test(acl_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
