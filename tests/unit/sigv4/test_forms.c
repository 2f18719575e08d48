/* test_forms.c: the forms of path, query and headers that clients sign, and the key cache. */
#include "sigv4_fixture.h"

#include "sigv4/key.h"

/* Signs `canonical` paths and queries and sends others: the pair must verify or not. */
static enum fgw_err sign_and_send(const char *signed_path, const char *signed_query,
                                  const char *sent_path, const char *sent_query)
{
    struct fixture f;
    fixture_init(&f, "GET", signed_path, signed_query);
    add_header(&f, "Host", "h");
    sign_request(&f, EMPTY_SHA);
    f.request.raw_path = text_of(sent_path);
    f.request.raw_query = text_of(sent_query);
    enum fgw_err err = check(&f);
    fixture_deinit(&f);
    return err;
}

static void canonical_is(const char *path, const char *query, const char *expected)
{
    struct fixture f;
    fixture_init(&f, "GET", path, query);
    add_header(&f, "Host", "h");
    sign_request(&f, EMPTY_SHA);
    assert_int_equal(check(&f), FGW_OK);
    struct fgw_bytes text = fgw_sig_canonical_request(&f.auth);
    size_t end = fgw_bytes_find(text, FGW_LIT("\nhost:"), 0);
    assert_true(fgw_bytes_eq_str(fgw_bytes_sub(text, 4, end - 4), expected));
    fixture_deinit(&f);
}

static void paths_and_queries_are_encoded_once(void **state)
{
    (void)state;
    canonical_is("", "", "/\n");
    canonical_is("/a b", "", "/a%20b\n");
    canonical_is("/a%20b", "", "/a%20b\n");
    canonical_is("/a%2520b", "", "/a%2520b\n");
    canonical_is("/a+b", "", "/a%2Bb\n");
    canonical_is("/!'()*~-._", "", "/%21%27%28%29%2A~-._\n");
    canonical_is("/%c3%bc/\xc3\xbc", "", "/%C3%BC/%C3%BC\n");
    canonical_is("/bk//a/./../b/", "", "/bk//a/./../b/\n");
    canonical_is("/a%2fb", "", "/a/b\n");
    canonical_is("/a=b:c@d,e;f", "", "/a%3Db%3Ac%40d%2Ce%3Bf\n");
    canonical_is("/a%zz%4", "", "/a%25zz%254\n");
    canonical_is("/", "b=2&a=1&a=0&c", "/\na=0&a=1&b=2&c=");
    canonical_is("/", "prefix=a/b c&x=1=2", "/\nprefix=a%2Fb%20c&x=1%3D2");
    canonical_is("/", "a-b=1&a=2&aB=3", "/\na=2&a-b=1&aB=3");
    canonical_is("/", "k=a+b", "/\nk=a%20b");
    canonical_is("/", "k=a%2bb", "/\nk=a%2Bb");
}

static void other_spellings_verify(void **state)
{
    (void)state;
    assert_int_equal(sign_and_send("/a%20b", "", "/a b", ""), FGW_OK);
    assert_int_equal(sign_and_send("/a%2Fb", "", "/a/b", ""), FGW_OK);
    assert_int_equal(sign_and_send("/%c3%bc", "", "/\xc3\xbc", ""), FGW_OK);
    assert_int_equal(sign_and_send("/", "p=%20", "/", "p=+"), FGW_OK);
    /* read as a blank, so a signature over "%2B" must not pass for it */
    assert_int_equal(sign_and_send("/", "p=%2B", "/", "p=+"), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    assert_int_equal(sign_and_send("/a%20b", "p=%20", "/a b", "p=+"), FGW_OK);
    assert_int_equal(sign_and_send("/", "p=%20", "/", "p=%2B"), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    assert_int_equal(sign_and_send("/a%20b", "", "/a+b", ""), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    assert_int_equal(sign_and_send("/a%20b", "", "/a%2520b", ""), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
}

/* Signed exactly as sent, not canonicalised (what a client without an encoder does). */
static void raw_form_verifies(void **state)
{
    (void)state;
    static const char RAW[] =
        "GET\n/a!b'(c)\na=x:y&b=/\nhost:h\nx-amz-content-sha256:UNSIGNED-PAYLOAD\n"
        "x-amz-date:20130524T000000Z\n\nhost;x-amz-content-sha256;x-amz-date\nUNSIGNED-PAYLOAD";
    struct fixture f;
    uint8_t hash[FGW_SHA256_SIZE];
    uint8_t key[FGW_SIG_KEY_SIZE];
    const struct fgw_sig_key_scope scope = {FGW_LIT(DOC_KEY), FGW_LIT("20130524"),
                                            FGW_LIT("us-east-1"), FGW_LIT("s3")};
    fixture_init(&f, "GET", "/a!b'(c)", "b=/&a=x:y");
    fgw_sha256(fgw_bytes(RAW, sizeof RAW - 1), hash);
    fgw_sig_key_derive(FGW_LIT(DOC_SECRET), &scope, key);
    const char *string =
        fgw_arena_printf(&f.arena, "AWS4-HMAC-SHA256\n20130524T000000Z\n" DOC_SCOPE "\n%s",
                         fgw_hex(&f.arena, fgw_bytes(hash, sizeof hash)));
    fgw_hmac_sha256(fgw_bytes(key, sizeof key), fgw_bytes_str(string), hash);
    add_header(&f, "Host", "h");
    add_header(&f, "x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    add_header(&f, "x-amz-date", "20130524T000000Z");
    add_authorization(&f, "host;x-amz-content-sha256;x-amz-date",
                      fgw_hex(&f.arena, fgw_bytes(hash, sizeof hash)));
    assert_int_equal(check(&f), FGW_OK);
    f.request.raw_path = FGW_LIT("/a%21b'(c)");
    assert_int_equal(check(&f), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    fixture_deinit(&f);
}

static void header_values_are_canonical(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, "PUT", "/", "");
    add_header(&f, "Host", "h");
    add_header(&f, "x-amz-meta-a", "  one  \t two   three ");
    add_header(&f, "x-amz-meta-b", "1");
    add_header(&f, "X-AMZ-Meta-B", " 2 ");
    add_header(&f, "x-amz-meta-c", "");
    sign_request(&f, EMPTY_SHA);
    assert_int_equal(check(&f), FGW_OK);
    struct fgw_bytes text = fgw_sig_canonical_request(&f.auth);
    assert_true(fgw_bytes_find(text,
                               FGW_LIT("\nx-amz-meta-a:one two three\nx-amz-meta-b:1,2\n"
                                       "x-amz-meta-c:\n\n"),
                               0) != SIZE_MAX);
    f.headers[1].value = FGW_LIT("one two three");
    assert_int_equal(check(&f), FGW_OK);
    f.headers[3].value = FGW_LIT("3");
    assert_int_equal(check(&f), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    fixture_deinit(&f);
}

/* Longer than the sink's block, so that pieces cross its end. */
static void long_values_cross_blocks(void **state)
{
    (void)state;
    char value[5000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (size_t cut = 900; cut < 1100; cut += 7) {
        struct fixture f;
        fixture_init(&f, "PUT", "/", "");
        add_header(&f, "Host", "h");
        add_header(&f, "x-amz-meta-a", value + sizeof value - cut);
        add_header(&f, "x-amz-meta-b", value);
        sign_request(&f, EMPTY_SHA);
        assert_int_equal(check(&f), FGW_OK);
        uint8_t hash[FGW_SHA256_SIZE];
        fgw_sha256(fgw_sig_canonical_request(&f.auth), hash);
        f.headers[2].value = fgw_bytes(value, sizeof value - 2);
        assert_int_equal(check(&f), FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
        f.headers[2].value = text_of(value);
        /* the digest over pieces equals the digest over the whole text */
        assert_int_equal(check(&f), FGW_OK);
        fgw_error_init(&f.error);
        f.auth.signature = FGW_LIT("x");
        assert_int_equal(fgw_sig_verify(&f.auth, &f.policy, FGW_LIT(DOC_SECRET), NULL, &f.error),
                         FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
        assert_non_null(
            strstr(extra_of(&f, "StringToSign"), fgw_hex(&f.arena, fgw_bytes(hash, sizeof hash))));
        fixture_deinit(&f);
    }
}

static void keys_are_cached_and_rotate(void **state)
{
    (void)state;
    static const char *const DAYS[] = {"20130524", "20130525", "20130526"};
    static const char *const REGIONS[] = {"us-east-1", "eu-west-1", ""};
    static const char *const SECRETS[] = {"secret one, long enough", "secret two", ""};
    static const size_t SIZES[] = {1, 4, 64, 0};
    for (size_t size = 0; size < 4; size++) {
        struct fgw_sig_key_cache *cache = fgw_sig_key_cache_new(SIZES[size]);
        for (size_t i = 0; i < 270; i++) {
            const struct fgw_sig_key_scope scope = {FGW_LIT("AKIA"), text_of(DAYS[i % 3]),
                                                    text_of(REGIONS[i / 3 % 3]), FGW_LIT("s3")};
            uint8_t cached[FGW_SIG_KEY_SIZE];
            uint8_t derived[FGW_SIG_KEY_SIZE];
            fgw_sig_key_get(cache, text_of(SECRETS[i / 9 % 3]), &scope, cached);
            fgw_sig_key_derive(text_of(SECRETS[i / 9 % 3]), &scope, derived);
            assert_memory_equal(cached, derived, sizeof cached);
        }
        fgw_sig_key_cache_free(cache);
    }
    fgw_sig_key_cache_free(NULL);
}

static void long_secrets_bypass_the_cache(void **state)
{
    (void)state;
    char secret[400];
    char region[400];
    memset(secret, 's', sizeof secret);
    memset(region, 'r', sizeof region);
    struct fgw_sig_key_cache *cache = fgw_sig_key_cache_new(4);
    for (size_t len = 100; len <= sizeof secret; len += 50) {
        const struct fgw_sig_key_scope scope = {FGW_LIT("A"), FGW_LIT("20130524"),
                                                fgw_bytes(region, len), FGW_LIT("s3")};
        uint8_t cached[FGW_SIG_KEY_SIZE];
        uint8_t derived[FGW_SIG_KEY_SIZE];
        fgw_sig_key_get(cache, fgw_bytes(secret, len), &scope, cached);
        fgw_sig_key_derive(fgw_bytes(secret, len), &scope, derived);
        assert_memory_equal(cached, derived, sizeof cached);
    }
    fgw_sig_key_cache_free(cache);
}

static void verify_uses_the_cache(void **state)
{
    (void)state;
    struct fixture f;
    struct fgw_sig_key_cache *cache = fgw_sig_key_cache_new(0);
    signed_get(&f);
    f.policy.key_cache = cache;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(check(&f), FGW_OK);
        assert_int_equal(fgw_sig_verify(&f.auth, &f.policy, FGW_LIT("another"), NULL, &f.error),
                         FGW_ERR_SIGNATURE_DOES_NOT_MATCH);
    }
    fixture_deinit(&f);
    fgw_sig_key_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_and_queries_are_encoded_once),
        cmocka_unit_test(other_spellings_verify),
        cmocka_unit_test(raw_form_verifies),
        cmocka_unit_test(header_values_are_canonical),
        cmocka_unit_test(long_values_cross_blocks),
        cmocka_unit_test(keys_are_cached_and_rotate),
        cmocka_unit_test(long_secrets_bypass_the_cache),
        cmocka_unit_test(verify_uses_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
