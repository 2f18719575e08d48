/* test_auth.c: every way a signature can be refused, with the code and the elements AWS answers. */
#include "sigv4_fixture.h"

static void good_ones_pass(void **state)
{
    (void)state;
    struct fixture f;
    signed_get(&f);
    assert_int_equal(check(&f), FGW_OK);
    fixture_deinit(&f);
    presigned_get(&f, 60);
    assert_int_equal(check(&f), FGW_OK);
    fixture_deinit(&f);
}

static void no_credentials_are_anonymous(void **state)
{
    (void)state;
    static const char *const EMPTY[] = {NULL, "", "  "};
    for (size_t i = 0; i < 3; i++) {
        struct fixture f;
        fixture_init(&f, "GET", "/bk/k", "prefix=x&acl");
        add_header(&f, "Host", "store.example");
        if (EMPTY[i] != NULL) {
            add_header(&f, "Authorization", EMPTY[i]);
        }
        assert_int_equal(parse(&f), FGW_OK);
        assert_int_equal(f.auth.kind, FGW_SIG_ANONYMOUS);
        assert_int_equal(f.auth.payload, FGW_SIG_PAYLOAD_UNSIGNED);
        fixture_deinit(&f);
    }
}

static void anonymous_payload_modes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum fgw_err err;
        enum fgw_sig_payload payload;
    } CASES[] = {
        {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", FGW_OK, FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER},
        {EMPTY_SHA, FGW_OK, FGW_SIG_PAYLOAD_HASH},
        {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", FGW_ERR_INVALID_REQUEST, 0},
        {"nonsense", FGW_ERR_INVALID_ARGUMENT, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fixture f;
        fixture_init(&f, "PUT", "/bk/k", "");
        add_header(&f, "X-Amz-Content-SHA256", CASES[i].text);
        assert_int_equal(parse(&f), CASES[i].err);
        assert_true(CASES[i].err != FGW_OK || f.auth.payload == CASES[i].payload);
        fixture_deinit(&f);
    }
}

static void blanks_and_order_of_fields(void **state)
{
    (void)state;
    static const char *const SEPARATORS[] = {",", ", ", ",  \t", " , ", ",,"};
    for (size_t i = 0; i < sizeof SEPARATORS / sizeof SEPARATORS[0]; i++) {
        struct fixture f;
        signed_get(&f);
        edit_header(&f, "authorization", ",SignedHeaders",
                    fgw_arena_printf(&f.arena, "%sSignedHeaders", SEPARATORS[i]));
        edit_header(&f, "authorization", ",Signature",
                    fgw_arena_printf(&f.arena, "%sSignature", SEPARATORS[i]));
        edit_header(&f, "authorization", "AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256 \t ");
        assert_int_equal(check(&f), FGW_OK);
        fixture_deinit(&f);
    }
    struct fixture f;
    signed_get(&f);
    struct fgw_bytes value = header_of(&f, "authorization")->value;
    size_t second = fgw_bytes_find(value, FGW_LIT("SignedHeaders="), 0);
    header_of(&f, "authorization")->value = text_of(fgw_arena_printf(
        &f.arena, "AWS4-HMAC-SHA256 %.*s, %.*s", FGW_FMT(fgw_bytes_sub(value, second, SIZE_MAX)),
        (int)(second - 1 - 17), (const char *)value.ptr + 17));
    assert_int_equal(check(&f), FGW_OK);
    fixture_deinit(&f);
}

static void broken_authorization_headers(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        enum fgw_err err;
    } CASES[] = {
        {"garbage", FGW_ERR_AUTHORIZATION_HEADER_MALFORMED},
        {"Bearer abc", FGW_ERR_INVALID_ARGUMENT},
        {"Basic dTpw", FGW_ERR_INVALID_ARGUMENT},
        {"AWS HAHAHA", FGW_ERR_INVALID_ARGUMENT},
        {"AWS AKIA:c2ln", FGW_ERR_SIGNATURE_VERSION_UNSUPPORTED},
        {"AWS4-HMAC-SHA1 Credential=a", FGW_ERR_SIGNATURE_VERSION_UNSUPPORTED},
        {"AWS4-ECDSA-P256-SHA256 Credential=a", FGW_ERR_NOT_IMPLEMENTED},
        {"AWS4-HMAC-SHA256", FGW_ERR_AUTHORIZATION_HEADER_MALFORMED},
        {"AWS4-HMAC-SHA256 ,,,", FGW_ERR_AUTHORIZATION_HEADER_MALFORMED},
        {"AWS4-HMAC-SHA256 Credential", FGW_ERR_AUTHORIZATION_HEADER_MALFORMED},
        {"AWS4-HMAC-SHA256 Credential=a/20130524/us-east-1/s3/aws4_request,SignedHeaders=host",
         FGW_ERR_AUTHORIZATION_HEADER_MALFORMED},
        {"AWS4-HMAC-SHA256 SignedHeaders=host,Signature=00",
         FGW_ERR_AUTHORIZATION_HEADER_MALFORMED},
        {"AWS4-HMAC-SHA256 Credential=a/20130524/us-east-1/s3/aws4_request,Signature=00",
         FGW_ERR_AUTHORIZATION_HEADER_MALFORMED},
        {"AWS4-HMAC-SHA256 Credential=a,Credential=a,SignedHeaders=host,Signature=00",
         FGW_ERR_AUTHORIZATION_HEADER_MALFORMED},
        {"AWS4-HMAC-SHA256 Credential=a/20130524/us-east-1/s3/aws4_request,SignedHeaders=host;;x,"
         "Signature=00",
         FGW_ERR_AUTHORIZATION_HEADER_MALFORMED},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fixture f;
        signed_get(&f);
        header_of(&f, "authorization")->value = text_of(CASES[i].value);
        assert_int_equal(parse(&f), CASES[i].err);
        assert_int_equal(f.error.code, CASES[i].err);
        fixture_deinit(&f);
    }
}

static void broken_credentials(void **state)
{
    (void)state;
    static const char *const CREDENTIALS[] = {
        "",
        "AKIA",
        "/20130524/us-east-1/s3/aws4_request",
        "20130524/us-east-1/s3/aws4_request",
        "AKIA/2013052/us-east-1/s3/aws4_request",
        "AKIA/2013052x/us-east-1/s3/aws4_request",
        "AKIA/20130524/us-east-1/s3/aws4",
        "AKIA/20130524/us-east-1/s3/",
        "AKIA/20130525/us-east-1/s3/aws4_request",
    };
    for (size_t i = 0; i < sizeof CREDENTIALS / sizeof CREDENTIALS[0]; i++) {
        struct fixture f;
        signed_get(&f);
        edit_header(&f, "authorization", DOC_KEY "/" DOC_SCOPE, CREDENTIALS[i]);
        assert_int_equal(parse(&f), FGW_ERR_AUTHORIZATION_HEADER_MALFORMED);
        fixture_deinit(&f);
        presigned_get(&f, 60);
        edit_query(&f, DOC_KEY "%2F20130524%2Fus-east-1%2Fs3%2Faws4_request", CREDENTIALS[i]);
        assert_int_equal(parse(&f), FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS);
        fixture_deinit(&f);
    }
}

static void oversized_scope_is_refused(void **state)
{
    (void)state;
    char region[300];
    struct fixture f;
    memset(region, 'r', sizeof region - 1);
    region[sizeof region - 1] = '\0';
    signed_get(&f);
    edit_header(&f, "authorization", "us-east-1", region);
    assert_int_equal(parse(&f), FGW_ERR_AUTHORIZATION_HEADER_MALFORMED);
    fixture_deinit(&f);
}

static void access_key_may_hold_slashes(void **state)
{
    (void)state;
    struct fixture f;
    signed_get(&f);
    edit_header(&f, "authorization", DOC_KEY, "team/a/b");
    assert_int_equal(parse(&f), FGW_OK);
    assert_true(fgw_bytes_eq_str(f.auth.access_key, "team/a/b"));
    fixture_deinit(&f);
}

static void wrong_region_names_the_right_one(void **state)
{
    (void)state;
    struct fixture f;
    signed_get(&f);
    f.policy.region = FGW_LIT("eu-west-9");
    assert_int_equal(check(&f), FGW_ERR_AUTHORIZATION_HEADER_MALFORMED);
    assert_string_equal(extra_of(&f, "Region"), "eu-west-9");
    assert_non_null(strstr(f.error.message, "'us-east-1' is wrong; expecting 'eu-west-9'"));
    fixture_deinit(&f);
    presigned_get(&f, 60);
    f.policy.region = FGW_LIT("eu-west-9");
    assert_int_equal(check(&f), FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS);
    assert_string_equal(extra_of(&f, "Region"), "eu-west-9");
    fixture_deinit(&f);
}

static void wrong_service(void **state)
{
    (void)state;
    struct fixture f;
    signed_get(&f);
    edit_header(&f, "authorization", "/s3/", "/iam/");
    assert_int_equal(check(&f), FGW_ERR_AUTHORIZATION_HEADER_MALFORMED);
    fixture_deinit(&f);
}

static void dates(void **state)
{
    (void)state;
    static const char *const BAD[] = {"", "now", "Fri, 24 May 2013 00:00:00 GMT", "20130524T000000",
                                      "20131324T000000Z"};
    struct fixture f;
    signed_get(&f);
    drop_header(&f, "x-amz-date");
    assert_int_equal(parse(&f), FGW_ERR_ACCESS_DENIED);
    fixture_deinit(&f);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        signed_get(&f);
        header_of(&f, "x-amz-date")->value = text_of(BAD[i]);
        assert_int_equal(parse(&f), FGW_ERR_ACCESS_DENIED);
        fixture_deinit(&f);
    }
    signed_get(&f);
    add_header(&f, "x-amz-date", "20130524T000000Z");
    assert_int_equal(parse(&f), FGW_ERR_ACCESS_DENIED);
    fixture_deinit(&f);
}

static void date_header_stands_in(void **state)
{
    (void)state;
    static const char *const DATES[] = {"Fri, 24 May 2013 00:00:00 GMT", "20130524T000000Z",
                                        "Fri, 24 May 2013 00:00:00 -0000",
                                        "Fri, 24 May 2013 00:00:00 +0000"};
    for (size_t i = 0; i < sizeof DATES / sizeof DATES[0]; i++) {
        struct fixture f;
        signed_get(&f);
        drop_header(&f, "x-amz-date");
        add_header(&f, "Date", DATES[i]);
        assert_int_equal(parse(&f), FGW_OK);
        assert_string_equal(f.auth.amz_date, "20130524T000000Z");
        fixture_deinit(&f);
    }
}

static void skew(void **state)
{
    (void)state;
    static const struct {
        int64_t offset_ms;
        enum fgw_err err;
    } CASES[] = {{900000, FGW_OK},
                 {-900000, FGW_OK},
                 {901000, FGW_ERR_REQUEST_TIME_TOO_SKEWED},
                 {-901000, FGW_ERR_REQUEST_TIME_TOO_SKEWED}};
    for (size_t i = 0; i < 4; i++) {
        struct fixture f;
        signed_get(&f);
        f.policy.now_ms += CASES[i].offset_ms;
        assert_int_equal(check(&f), CASES[i].err);
        if (CASES[i].err != FGW_OK) {
            assert_string_equal(extra_of(&f, "RequestTime"), "20130524T000000Z");
            assert_string_equal(extra_of(&f, "MaxAllowedSkewMilliseconds"), "900000");
            assert_string_equal(extra_of(&f, "ServerTime"), CASES[i].offset_ms > 0
                                                                ? "2013-05-24T00:15:01Z"
                                                                : "2013-05-23T23:44:59Z");
        }
        fixture_deinit(&f);
    }
}

static void presigned_lifetime(void **state)
{
    (void)state;
    static const struct {
        int64_t expires_s;
        int64_t offset_s;
        enum fgw_err err;
        enum fgw_err strict;
    } CASES[] = {
        {7200, 3600, FGW_OK, FGW_OK},
        {604800, 604799, FGW_OK, FGW_OK},
        {1, 2, FGW_ERR_REQUEST_EXPIRED, FGW_ERR_REQUEST_EXPIRED},
        {60, 60, FGW_ERR_REQUEST_EXPIRED, FGW_ERR_REQUEST_EXPIRED},
        {0, 0, FGW_ERR_REQUEST_EXPIRED, FGW_ERR_REQUEST_EXPIRED},
        {0, -60, FGW_ERR_REQUEST_EXPIRED, FGW_ERR_REQUEST_EXPIRED},
        {604801, 0, FGW_ERR_ACCESS_DENIED, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {-7, 0, FGW_ERR_ACCESS_DENIED, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {INT64_MAX, 0, FGW_ERR_ACCESS_DENIED, FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {60, -600, FGW_OK, FGW_OK},
        {60, -1200, FGW_ERR_ACCESS_DENIED, FGW_ERR_ACCESS_DENIED},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fixture f;
        presigned_get(&f, CASES[i].expires_s);
        f.policy.now_ms += CASES[i].offset_s * 1000;
        assert_int_equal(check(&f), CASES[i].err);
        f.policy.strict_aws = true;
        assert_int_equal(check(&f), CASES[i].strict);
        fixture_deinit(&f);
    }
}

static void expired_tells_when(void **state)
{
    (void)state;
    struct fixture f;
    presigned_get(&f, 60);
    f.policy.now_ms += 3600000;
    assert_int_equal(check(&f), FGW_ERR_REQUEST_EXPIRED);
    assert_string_equal(extra_of(&f, "Expires"), "2013-05-24T00:01:00Z");
    assert_string_equal(extra_of(&f, "ServerTime"), "2013-05-24T01:00:00Z");
    assert_string_equal(extra_of(&f, "X-Amz-Expires"), "60");
    fixture_deinit(&f);
}

static void broken_presigned_queries(void **state)
{
    (void)state;
    static const struct {
        const char *old;
        const char *new;
        enum fgw_err err;
    } CASES[] = {
        {"X-Amz-Expires=60", "X-Amz-Expires=abc", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"X-Amz-Expires=60", "X-Amz-Expires=", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"X-Amz-Expires=60", "X-Amz-Expires=-", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"X-Amz-Expires=60&", "", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"X-Amz-Expires=60", "X-Amz-Expires=60&X-Amz-Expires=70",
         FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"X-Amz-Date=20130524T000000Z", "X-Amz-Date=2013", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"X-Amz-Date=20130524T000000Z&", "", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"X-Amz-Date=20130524", "X-Amz-Date=20130525", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"=AWS4-HMAC-SHA256", "=AWS4-HMAC-SHA1", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"=AWS4-HMAC-SHA256", "=AWS4-ECDSA-P256-SHA256", FGW_ERR_NOT_IMPLEMENTED},
        {"SignedHeaders=host", "SignedHeaders=", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"SignedHeaders=host", "SignedHeaders=%3B", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
        {"&X-Amz-Signature", "&X-Amz-Nothing", FGW_ERR_AUTHORIZATION_QUERY_PARAMETERS},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fixture f;
        presigned_get(&f, 60);
        edit_query(&f, CASES[i].old, CASES[i].new);
        assert_int_equal(check(&f), CASES[i].err);
        fixture_deinit(&f);
    }
}

static void version_2_query_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, "GET", "/bk/k", "AWSAccessKeyId=a&Expires=1&Signature=b");
    assert_int_equal(parse(&f), FGW_ERR_SIGNATURE_VERSION_UNSUPPORTED);
    fixture_deinit(&f);
}

static void two_mechanisms_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    signed_get(&f);
    presign_request(&f, 60);
    assert_int_equal(parse(&f), FGW_ERR_INVALID_ARGUMENT);
    fixture_deinit(&f);
    signed_get(&f);
    add_header(&f, "Authorization", "AWS4-HMAC-SHA256 x");
    assert_int_equal(parse(&f), FGW_ERR_AUTHORIZATION_HEADER_MALFORMED);
    fixture_deinit(&f);
}

static void payload_header(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum fgw_err err;
        enum fgw_sig_payload payload;
    } CASES[] = {
        {"UNSIGNED-PAYLOAD", FGW_OK, FGW_SIG_PAYLOAD_UNSIGNED},
        {EMPTY_SHA, FGW_OK, FGW_SIG_PAYLOAD_HASH},
        {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", FGW_OK, FGW_SIG_PAYLOAD_STREAMING_SIGNED},
        {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", FGW_OK,
         FGW_SIG_PAYLOAD_STREAMING_SIGNED_TRAILER},
        {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", FGW_OK, FGW_SIG_PAYLOAD_STREAMING_UNSIGNED_TRAILER},
        {"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", FGW_ERR_NOT_IMPLEMENTED, 0},
        {"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER", FGW_ERR_NOT_IMPLEMENTED, 0},
        {"STREAMING-UNSIGNED-PAYLOAD", FGW_ERR_INVALID_ARGUMENT, 0},
        {"unsigned-payload", FGW_ERR_INVALID_ARGUMENT, 0},
        {"", FGW_ERR_INVALID_ARGUMENT, 0},
        {"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b8", FGW_ERR_INVALID_ARGUMENT,
         0},
        {"zzb0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
         FGW_ERR_INVALID_ARGUMENT, 0},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fixture f;
        fixture_init(&f, "PUT", "/bk/k", "");
        add_header(&f, "Host", "h");
        sign_request(&f, CASES[i].text);
        assert_int_equal(check(&f), CASES[i].err);
        assert_true(CASES[i].err != FGW_OK || f.auth.payload == CASES[i].payload);
        fixture_deinit(&f);
    }
    struct fixture f;
    signed_get(&f);
    drop_header(&f, "x-amz-content-sha256");
    assert_int_equal(parse(&f), FGW_ERR_INVALID_REQUEST);
    fixture_deinit(&f);
}

static void presigned_payload(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, "PUT", "/bk/k", "X-Amz-Content-Sha256=" EMPTY_SHA);
    add_header(&f, "Host", "h");
    presign_request(&f, 60);
    assert_int_equal(parse(&f), FGW_OK);
    assert_int_equal(f.auth.payload, FGW_SIG_PAYLOAD_HASH);
    fixture_deinit(&f);
    fixture_init(&f, "PUT", "/bk/k", "");
    add_header(&f, "Host", "h");
    add_header(&f, "x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    presign_request(&f, 60);
    assert_int_equal(check(&f), FGW_OK);
    fixture_deinit(&f);
    presigned_get(&f, 60);
    add_header(&f, "x-amz-content-sha256", EMPTY_SHA);
    assert_int_equal(parse(&f), FGW_OK);
    assert_int_equal(f.auth.payload, FGW_SIG_PAYLOAD_UNSIGNED);
    assert_int_equal(check(&f), FGW_ERR_ACCESS_DENIED);
    fixture_deinit(&f);
}

static void every_amz_header_must_be_signed(void **state)
{
    (void)state;
    struct fixture f;
    signed_get(&f);
    add_header(&f, "Content-Type", "text/plain");
    add_header(&f, "x-amz-cf-id", "from CloudFront");
    assert_int_equal(check(&f), FGW_OK);
    add_header(&f, "X-Amz-Acl", "public-read");
    assert_int_equal(check(&f), FGW_ERR_ACCESS_DENIED);
    assert_string_equal(extra_of(&f, "HeadersNotSigned"), "x-amz-acl");
    fixture_deinit(&f);
    presigned_get(&f, 60);
    add_header(&f, "Range", "bytes=0-1");
    assert_int_equal(check(&f), FGW_OK);
    add_header(&f, "x-amz-meta-a", "1");
    assert_int_equal(check(&f), FGW_ERR_ACCESS_DENIED);
    fixture_deinit(&f);
    signed_get(&f);
    edit_header(&f, "authorization", "SignedHeaders=host;", "SignedHeaders=");
    assert_int_equal(check(&f), FGW_ERR_ACCESS_DENIED);
    assert_string_equal(extra_of(&f, "HeadersNotSigned"), "host");
    fixture_deinit(&f);
}

/* One changed byte anywhere that is signed must fail. */
static void changed_requests_do_not_match(void **state)
{
    (void)state;
    struct fixture f;
    signed_get(&f);
    f.request.method = FGW_LIT("PUT");
    assert_int_equal(check(&f), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    assert_string_equal(extra_of(&f, "AWSAccessKeyId"), DOC_KEY);
    f.request.method = FGW_LIT("GET");
    f.request.raw_path = FGW_LIT("/bk/l");
    assert_int_equal(check(&f), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    f.request.raw_path = FGW_LIT("/bk//k");
    assert_int_equal(check(&f), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    f.request.raw_path = FGW_LIT("/bk/k");
    f.request.raw_query = FGW_LIT("acl");
    assert_int_equal(check(&f), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    f.request.raw_query = FGW_LIT("");
    header_of(&f, "host")->value = FGW_LIT("store.example");
    assert_int_equal(check(&f), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    header_of(&f, "host")->value = FGW_LIT("store.example:8078");
    assert_int_equal(check(&f), FGW_OK);
    assert_int_equal(fgw_sig_verify(&f.auth, &f.policy, FGW_LIT("wrong secret"), NULL, &f.error),
                     FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    fixture_deinit(&f);
}

static void malformed_signatures_do_not_match(void **state)
{
    (void)state;
    static const char *const SIGNATURES[] = {"0", "zz", EMPTY_SHA, EMPTY_SHA "00"};
    for (size_t i = 0; i < 4; i++) {
        struct fixture f;
        signed_get(&f);
        struct fgw_bytes value = header_of(&f, "authorization")->value;
        size_t at = fgw_bytes_find(value, FGW_LIT("Signature="), 0);
        header_of(&f, "authorization")->value = text_of(fgw_arena_printf(
            &f.arena, "%.*sSignature=%s", (int)at, (const char *)value.ptr, SIGNATURES[i]));
        assert_int_equal(check(&f), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
        assert_string_equal(extra_of(&f, "SignatureProvided"), SIGNATURES[i]);
        fixture_deinit(&f);
    }
}

static void session_token_is_seen(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, "GET", "/", "");
    add_header(&f, "Host", "h");
    add_header(&f, "X-Amz-Security-Token", "tok+en/=");
    sign_request(&f, EMPTY_SHA);
    assert_int_equal(check(&f), FGW_OK);
    assert_true(fgw_bytes_eq_str(f.auth.session_token, "tok+en/="));
    fixture_deinit(&f);
    fixture_init(&f, "GET", "/", "X-Amz-Security-Token=tok%2Ben%2F%3D");
    add_header(&f, "Host", "h");
    presign_request(&f, 60);
    assert_int_equal(check(&f), FGW_OK);
    assert_true(fgw_bytes_eq_str(f.auth.session_token, "tok+en/="));
    fixture_deinit(&f);
}

static void hostile_sizes(void **state)
{
    (void)state;
    static char text[70000];
    struct fixture f;
    memset(text, '&', sizeof text - 1);
    fixture_init(&f, "GET", "/", text);
    assert_int_equal(parse(&f), FGW_ERR_INVALID_REQUEST);
    fixture_deinit(&f);
    memset(text, 'a', sizeof text - 1);
    for (size_t i = 1; i < sizeof text - 1; i += 2) {
        text[i] = ';';
    }
    signed_get(&f);
    edit_header(&f, "authorization", "SignedHeaders=host",
                fgw_arena_printf(&f.arena, "SignedHeaders=host;%s", text));
    assert_int_equal(parse(&f), FGW_ERR_AUTHORIZATION_HEADER_MALFORMED);
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones_pass),
        cmocka_unit_test(no_credentials_are_anonymous),
        cmocka_unit_test(anonymous_payload_modes),
        cmocka_unit_test(blanks_and_order_of_fields),
        cmocka_unit_test(broken_authorization_headers),
        cmocka_unit_test(broken_credentials),
        cmocka_unit_test(oversized_scope_is_refused),
        cmocka_unit_test(access_key_may_hold_slashes),
        cmocka_unit_test(wrong_region_names_the_right_one),
        cmocka_unit_test(wrong_service),
        cmocka_unit_test(dates),
        cmocka_unit_test(date_header_stands_in),
        cmocka_unit_test(skew),
        cmocka_unit_test(presigned_lifetime),
        cmocka_unit_test(expired_tells_when),
        cmocka_unit_test(broken_presigned_queries),
        cmocka_unit_test(version_2_query_is_refused),
        cmocka_unit_test(two_mechanisms_are_refused),
        cmocka_unit_test(payload_header),
        cmocka_unit_test(presigned_payload),
        cmocka_unit_test(every_amz_header_must_be_signed),
        cmocka_unit_test(changed_requests_do_not_match),
        cmocka_unit_test(malformed_signatures_do_not_match),
        cmocka_unit_test(session_token_is_seen),
        cmocka_unit_test(hostile_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
