/* test_vectors.c: the examples of AWS's documentation: "Signature Calculations for the
 * Authorization Header: Transferring Payload in a Single Chunk", "... in Multiple Chunks", "...
 * Including trailing headers", "Using Query Parameters", "Example: Browser-Based Upload using HTTP
 * POST"; and their signatures from our own signer. */
#include "sigv4_fixture.h"

#include "sigv4/post_policy.h"

static void get_object(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, "GET", "/test.txt", "");
    add_header(&f, "Host", "examplebucket.s3.amazonaws.com");
    add_header(&f, "Range", "bytes=0-9");
    add_header(&f, "x-amz-content-sha256", EMPTY_SHA);
    add_header(&f, "x-amz-date", "20130524T000000Z");
    add_authorization(&f, "host;range;x-amz-content-sha256;x-amz-date",
                      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    assert_int_equal(check(&f), FGW_OK);
    assert_int_equal(f.auth.kind, FGW_SIG_HEADER);
    assert_int_equal(f.auth.payload, FGW_SIG_PAYLOAD_HASH);
    assert_true(fgw_bytes_eq_str(f.auth.access_key, DOC_KEY));
    assert_true(fgw_bytes_eq_str(f.auth.scope, DOC_SCOPE));
    assert_true(
        fgw_bytes_eq_str(fgw_sig_canonical_request(&f.auth),
                         "GET\n/test.txt\n\nhost:examplebucket.s3.amazonaws.com\nrange:bytes=0-9\n"
                         "x-amz-content-sha256:" EMPTY_SHA "\nx-amz-date:20130524T000000Z\n\n"
                         "host;range;x-amz-content-sha256;x-amz-date\n" EMPTY_SHA));
    fixture_deinit(&f);
}

static void put_object(void **state)
{
    (void)state;
    static const char SHA[] = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    /* as the client may send it: raw '$' and escaped '$' are the same path */
    static const char *const PATHS[] = {"/test$file.text", "/test%24file.text"};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        fixture_init(&f, "PUT", PATHS[i], "");
        add_header(&f, "Host", "examplebucket.s3.amazonaws.com");
        add_header(&f, "Date", "Fri, 24 May 2013 00:00:00 GMT");
        add_header(&f, "x-amz-date", "20130524T000000Z");
        add_header(&f, "x-amz-storage-class", "REDUCED_REDUNDANCY");
        add_header(&f, "x-amz-content-sha256", SHA);
        add_authorization(&f, "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
                          "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
        assert_int_equal(check(&f), FGW_OK);
        fixture_deinit(&f);
    }
}

static void get_with_query(const char *query, const char *signature)
{
    struct fixture f;
    fixture_init(&f, "GET", "/", query);
    add_header(&f, "Host", "examplebucket.s3.amazonaws.com");
    add_header(&f, "x-amz-content-sha256", EMPTY_SHA);
    add_header(&f, "x-amz-date", "20130524T000000Z");
    add_authorization(&f, "host;x-amz-content-sha256;x-amz-date", signature);
    assert_int_equal(check(&f), FGW_OK);
    fixture_deinit(&f);
}

static void get_lifecycle_and_list(void **state)
{
    (void)state;
    static const char LIFECYCLE[] =
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
    static const char LIST[] = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
    get_with_query("lifecycle", LIFECYCLE);
    get_with_query("lifecycle=", LIFECYCLE);
    get_with_query("max-keys=2&prefix=J", LIST);
    get_with_query("prefix=J&max-keys=2", LIST);
    get_with_query("prefix=%4A&&max-keys=2&", LIST);
}

static void presigned_url(void **state)
{
    (void)state;
    static const char QUERY[] =
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=" DOC_KEY
        "%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z"
        "&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
        "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    struct fixture f;
    fixture_init(&f, "GET", "/test.txt", QUERY);
    add_header(&f, "Host", "examplebucket.s3.amazonaws.com");
    assert_int_equal(check(&f), FGW_OK);
    assert_int_equal(f.auth.kind, FGW_SIG_PRESIGNED);
    assert_int_equal(f.auth.payload, FGW_SIG_PAYLOAD_UNSIGNED);
    assert_int_equal(f.auth.expires_s, 86400);
    f.request.raw_query = FGW_LIT("");
    presign_request(&f, 86400);
    assert_true(fgw_bytes_eq_str(f.request.raw_query, QUERY));
    fixture_deinit(&f);
}

static void signer_makes_the_same(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, "GET", "/test.txt", "");
    add_header(&f, "Host", "examplebucket.s3.amazonaws.com");
    add_header(&f, "Range", "bytes=0-9");
    add_header(&f, "User-Agent", "not signed");
    sign_request(&f, EMPTY_SHA);
    assert_true(
        fgw_bytes_eq_str(header_of(&f, "authorization")->value,
                         "AWS4-HMAC-SHA256 Credential=" DOC_KEY "/" DOC_SCOPE
                         ",SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature="
                         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
    fixture_deinit(&f);
}

static const char POLICY_1[] =
    "eyAiZXhwaXJhdGlvbiI6ICIyMDE1LTEyLTMwVDEyOjAwOjAwLjAwMFoiLA0KICAiY29uZGl0aW9ucyI6IFsNCiAgICB7"
    "ImJ1Y2tldCI6ICJzaWd2NGV4YW1wbGVidWNrZXQifSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRrZXkiLCAidXNlci91"
    "c2VyMS8iXSwNCiAgICB7ImFjbCI6ICJwdWJsaWMtcmVhZCJ9LA0KICAgIHsic3VjY2Vzc19hY3Rpb25fcmVkaXJlY3Qi"
    "OiAiaHR0cDovL3NpZ3Y0ZXhhbXBsZWJ1Y2tldC5zMy5hbWF6b25hd3MuY29tL3N1Y2Nlc3NmdWxfdXBsb2FkLmh0bWwi"
    "fSwNCiAgICBbInN0YXJ0cy13aXRoIiwgIiRDb250ZW50LVR5cGUiLCAiaW1hZ2UvIl0sDQogICAgeyJ4LWFtei1tZXRh"
    "LXV1aWQiOiAiMTQzNjUxMjM2NTEyNzQifSwNCiAgICB7IngtYW16LXNlcnZlci1zaWRlLWVuY3J5cHRpb24iOiAiQUVT"
    "MjU2In0sDQogICAgWyJzdGFydHMtd2l0aCIsICIkeC1hbXotbWV0YS10YWciLCAiIl0sDQoNCiAgICB7IngtYW16LWNy"
    "ZWRlbnRpYWwiOiAiQUtJQUlPU0ZPRE5ON0VYQU1QTEUvMjAxNTEyMjkvdXMtZWFzdC0xL3MzL2F3czRfcmVxdWVzdCJ9"
    "LA0KICAgIHsieC1hbXotYWxnb3JpdGhtIjogIkFXUzQtSE1BQy1TSEEyNTYifSwNCiAgICB7IngtYW16LWRhdGUiOiAi"
    "MjAxNTEyMjlUMDAwMDAwWiIgfQ0KICBdDQp9";

static void post_policy(void **state)
{
    (void)state;
    struct fixture f;
    struct fgw_bytes access_key;
    struct fgw_sig_post_form form = {
        .policy = fgw_bytes(POLICY_1, sizeof POLICY_1 - 1),
        .algorithm = FGW_LIT("AWS4-HMAC-SHA256"),
        .credential = FGW_LIT(DOC_KEY "/20151229/us-east-1/s3/aws4_request"),
        .date = FGW_LIT("20151229T000000Z"),
        .signature = FGW_LIT("8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e")};
    fixture_init(&f, "POST", "/", "");
    assert_int_equal(fgw_sig_post_parse(&form, &f.policy, &access_key, &f.error), FGW_OK);
    assert_true(fgw_bytes_eq_str(access_key, DOC_KEY));
    assert_int_equal(fgw_sig_verify_post_policy(&form, &f.policy, FGW_LIT(DOC_SECRET), &f.error),
                     FGW_OK);
    assert_int_equal(fgw_sig_verify_post_policy(&form, &f.policy, FGW_LIT("other"), &f.error),
                     FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    form.date = FGW_LIT("20151230T000000Z");
    assert_int_equal(fgw_sig_post_parse(&form, &f.policy, &access_key, &f.error),
                     FGW_ERR_INVALID_ARGUMENT);
    form.date = FGW_LIT("20151229T000000Z");
    form.credential = FGW_LIT(DOC_KEY "/20151229/eu-west-1/s3/aws4_request");
    assert_int_equal(fgw_sig_post_parse(&form, &f.policy, &access_key, &f.error),
                     FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS);
    form.algorithm = FGW_LIT("AWS4-ECDSA-P256-SHA256");
    assert_int_equal(fgw_sig_post_parse(&form, &f.policy, &access_key, &f.error),
                     FGW_ERR_NOT_IMPLEMENTED);
    fixture_deinit(&f);
}

static void post_policy_v2(void **state)
{
    (void)state;
    /* RFC 2202 test case 2 of HMAC-SHA1, in base64 */
    struct fgw_bytes text = FGW_LIT("what do ya want for nothing?");
    struct fgw_bytes mac = FGW_LIT("7/zfauXrL6LSdBbV8YTfnCWafHk=");
    assert_int_equal(fgw_sig_verify_post_policy_v2(text, mac, FGW_LIT("Jefe"), NULL), FGW_OK);
    assert_int_equal(fgw_sig_verify_post_policy_v2(text, mac, FGW_LIT("Jefg"), NULL),
                     FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    assert_int_equal(fgw_sig_verify_post_policy_v2(text, FGW_LIT(""), FGW_LIT("Jefe"), NULL),
                     FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(get_object),
        cmocka_unit_test(put_object),
        cmocka_unit_test(get_lifecycle_and_list),
        cmocka_unit_test(presigned_url),
        cmocka_unit_test(signer_makes_the_same),
        cmocka_unit_test(post_policy),
        cmocka_unit_test(post_policy_v2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
