/* test_pure.c: names, ranges, ETags, checksums, tokens, copy sources, access: vectors, edge cases
 * and hostile input. */
#include "cmocka_all.h"

#include "base/rng.h"
#include "s3/access.h"
#include "s3/checksum.h"
#include "s3/copy_source.h"
#include "s3/etag.h"
#include "s3/names.h"
#include "s3/range.h"
#include "s3/token.h"

#define assert_bytes(view, text) assert_true(fgw_bytes_eq_str(view, text))

static void bucket_names(void **state)
{
    (void)state;
    static const char *const GOOD[] = {"abc",
                                       "a-b.c",
                                       "0-1",
                                       "a23456789012345678901234567890"
                                       "123456789012345678901234567890123",
                                       "1.2.3",
                                       "1.2.3.4.5",
                                       "a--b",
                                       "1.2.3.x",
                                       "1234.1.1.1"};
    static const char *const BAD[] = {
        "",
        "ab",
        "A-b",
        "a_b",
        "a..b",
        "a.-b",
        "a-.b",
        "-ab",
        "ab-",
        ".ab",
        "ab.",
        "192.168.1.1",
        "999.999.999.999",
        "a b",
        "a/b",
        "a234567890123456789012345678901234567890123456789012345678901"
        "234",
        "internal\n",
        "\xc3\xa4"
        "bc"};
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        assert_true(fgw_s3_bucket_name_valid(fgw_bytes_str(GOOD[i])));
    }
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_false(fgw_s3_bucket_name_valid(fgw_bytes_str(BAD[i])));
    }
}

static void reserved_bucket_names(void **state)
{
    (void)state;
    static const char *const FREE[] = {"xn-",     "axn--b",  "sthree", "amzn-s3-demo",
                                       "s3alias", "a-mrap",  "ol-s3",  "a-x-s3",
                                       "mrap.a",  "--x-s3a", ""};
    static const char *const KEPT[] = {
        "xn--a",   "sthree-configurator", "amzn-s3-demo-bucket", "a-s3alias", "a--ol-s3", "a.mrap",
        "a--x-s3", "a--table-s3"};
    for (size_t i = 0; i < FGW_COUNT_OF(FREE); i++) {
        assert_false(fgw_s3_bucket_name_reserved(fgw_bytes_str(FREE[i])));
    }
    for (size_t i = 0; i < FGW_COUNT_OF(KEPT); i++) {
        assert_true(fgw_s3_bucket_name_reserved(fgw_bytes_str(KEPT[i])));
    }
}

static void expect_range(const char *text, uint64_t size, enum fgw_s3_range_kind kind,
                         uint64_t offset, uint64_t len)
{
    struct fgw_s3_range range = {77, 77};
    assert_int_equal(fgw_s3_range_parse(fgw_bytes_str(text), size, &range), kind);
    if (kind == FGW_S3_RANGE_PART) {
        assert_true(range.offset == offset && range.len == len);
    } else {
        assert_true(range.offset == 77 && range.len == 77);
    }
}

static void ranges_of_ten_bytes(void **state)
{
    (void)state;
    expect_range("bytes=0-", 10, FGW_S3_RANGE_PART, 0, 10);
    expect_range("bytes=0-0", 10, FGW_S3_RANGE_PART, 0, 1);
    expect_range("bytes=9-9", 10, FGW_S3_RANGE_PART, 9, 1);
    expect_range("bytes=9-99", 10, FGW_S3_RANGE_PART, 9, 1);
    expect_range("Bytes=2-5", 10, FGW_S3_RANGE_PART, 2, 4);
    expect_range("bytes=-3", 10, FGW_S3_RANGE_PART, 7, 3);
    expect_range("bytes=-99", 10, FGW_S3_RANGE_PART, 0, 10);
    expect_range("bytes=3-99999999999999999999999", 10, FGW_S3_RANGE_PART, 3, 7);
    expect_range("bytes=-18446744073709551616", 10, FGW_S3_RANGE_PART, 0, 10);
    expect_range("bytes=10-", 10, FGW_S3_RANGE_UNSATISFIABLE, 0, 0);
    expect_range("bytes=10-20", 10, FGW_S3_RANGE_UNSATISFIABLE, 0, 0);
    expect_range("bytes=18446744073709551616-", 10, FGW_S3_RANGE_UNSATISFIABLE, 0, 0);
    expect_range("bytes=-0", 10, FGW_S3_RANGE_UNSATISFIABLE, 0, 0);
}

static void ranges_that_are_ignored(void **state)
{
    (void)state;
    static const char *const IGNORED[] = {"",          "bytes",         "bytes=",      "bytes=-",
                                          "bytes=5-2", "bytes=0-1,4-5", "bytes = 0-1", "lines=0-1",
                                          "bytes=a-b", "bytes=0x1-2",   "bytes=1--2",  "bytes=+1-2",
                                          "0-1",       "bytes=1"};
    for (size_t i = 0; i < sizeof IGNORED / sizeof IGNORED[0]; i++) {
        expect_range(IGNORED[i], 10, FGW_S3_RANGE_WHOLE, 0, 0);
    }
    struct fgw_s3_range range;
    assert_int_equal(fgw_s3_range_parse((struct fgw_bytes){NULL, 0}, 10, &range),
                     FGW_S3_RANGE_WHOLE);
    expect_range("bytes=0-", 0, FGW_S3_RANGE_UNSATISFIABLE, 0, 0);
    expect_range("bytes=-5", 0, FGW_S3_RANGE_WHOLE, 0, 0);
    expect_range("bytes=-0", 0, FGW_S3_RANGE_UNSATISFIABLE, 0, 0);
}

static void copy_ranges(void **state)
{
    (void)state;
    struct fgw_s3_range range;
    assert_int_equal(fgw_s3_copy_range_parse(FGW_LIT("bytes=0-4"), 10, &range), FGW_OK);
    assert_true(range.offset == 0 && range.len == 5);
    assert_int_equal(fgw_s3_copy_range_parse(FGW_LIT("bytes=0-9"), 10, &range), FGW_OK);
    assert_int_equal(fgw_s3_copy_range_parse(FGW_LIT("bytes=0-10"), 10, &range),
                     FGW_ERR_INVALID_RANGE);
    static const char *const BAD[] = {"bytes=5-", "bytes=-5", "0-4", "bytes=4-0", "bytes=0,4", ""};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(fgw_s3_copy_range_parse(fgw_bytes_str(BAD[i]), 10, &range),
                         FGW_ERR_INVALID_ARGUMENT);
    }
}

static void etag_lists(void **state)
{
    (void)state;
    struct fgw_bytes etag = FGW_LIT("5d41402abc4b2a76b9719d911017c592");
    assert_true(fgw_s3_etag_list_has(FGW_LIT("\"5d41402abc4b2a76b9719d911017c592\""), etag, true));
    assert_true(fgw_s3_etag_list_has(FGW_LIT("5d41402abc4b2a76b9719d911017c592"), etag, true));
    assert_true(
        fgw_s3_etag_list_has(FGW_LIT("\"x\", \"5d41402abc4b2a76b9719d911017c592\""), etag, true));
    assert_true(fgw_s3_etag_list_has(FGW_LIT("*"), etag, true));
    assert_true(
        fgw_s3_etag_list_has(FGW_LIT("W/\"5d41402abc4b2a76b9719d911017c592\""), etag, false));
    assert_false(
        fgw_s3_etag_list_has(FGW_LIT("W/\"5d41402abc4b2a76b9719d911017c592\""), etag, true));
    assert_false(fgw_s3_etag_list_has(FGW_LIT("\"x\",,\"y\""), etag, false));
    assert_false(fgw_s3_etag_list_has(FGW_LIT(""), etag, false));
    assert_bytes(fgw_s3_etag_bare(FGW_LIT(" \"a\" "), NULL), "a");
    assert_bytes(fgw_s3_etag_bare(FGW_LIT("\""), NULL), "\"");
}

static void checksum_vectors(void **state)
{
    (void)state;
    static const struct {
        enum fgw_checksum algorithm;
        const char *of_hello;
        const char *of_empty;
    } ROWS[] = {
        {FGW_CHECKSUM_CRC32, "NhCmhg==", "AAAAAA=="},
        {FGW_CHECKSUM_CRC32C, "mnG7TA==", "AAAAAA=="},
        {FGW_CHECKSUM_CRC64NVME, "M3eFcAZSQlc=", "AAAAAAAAAAA="},
        {FGW_CHECKSUM_SHA1, "qvTGHdzF6KLavt4PO0gs2a6pQ00=", "2jmj7l5rSw0yVb/vlWAYkK/YBwk="},
        {FGW_CHECKSUM_SHA256, "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
         "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        struct fgw_s3_checksummer summer;
        struct fgw_checksum_value value;
        char text[FGW_S3_CHECKSUM_TEXT_SIZE];
        fgw_s3_checksummer_init(&summer, ROWS[i].algorithm);
        fgw_s3_checksummer_update(&summer, FGW_LIT("he"));
        fgw_s3_checksummer_update(&summer, FGW_LIT("llo"));
        fgw_s3_checksummer_end(&summer, &value);
        fgw_s3_checksum_text(&value, 0, text);
        assert_string_equal(text, ROWS[i].of_hello);
        uint8_t parsed[FGW_META_CHECKSUM_MAX];
        assert_int_equal(fgw_s3_checksum_parse(ROWS[i].algorithm, fgw_bytes_str(text), parsed),
                         FGW_OK);
        assert_memory_equal(parsed, value.bytes, value.len);
        fgw_s3_checksummer_init(&summer, ROWS[i].algorithm);
        fgw_s3_checksummer_end(&summer, &value);
        fgw_s3_checksum_text(&value, 0, text);
        assert_string_equal(text, ROWS[i].of_empty);
        assert_int_equal(
            fgw_s3_checksum_by_name(fgw_bytes_str(fgw_s3_checksum_name(ROWS[i].algorithm))),
            ROWS[i].algorithm);
    }
}

static void checksum_texts(void **state)
{
    (void)state;
    uint8_t out[FGW_META_CHECKSUM_MAX];
    struct fgw_checksum_value value = {
        FGW_CHECKSUM_CRC32, FGW_CHECKSUM_COMPOSITE, 4, {0x32, 0x23, 0x45, 0xce}};
    char text[FGW_S3_CHECKSUM_TEXT_SIZE];
    fgw_s3_checksum_text(&value, 2, text);
    assert_string_equal(text, "MiNFzg==-2");
    static const char *const BAD[] = {
        "", "NhCmhg", "NhCmhg==x", "AAAAAAAAAAA=", "####", "NhCmhg=\n", "NhCmhg==NhCmhg=="};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(fgw_s3_checksum_parse(FGW_CHECKSUM_CRC32, fgw_bytes_str(BAD[i]), out),
                         FGW_ERR_PARSE);
    }
    assert_int_equal(fgw_s3_checksum_by_name(FGW_LIT("SHA512")), FGW_CHECKSUM_NONE);
    assert_int_equal(fgw_s3_checksum_by_header(FGW_LIT("X-Amz-Checksum-Sha1")), FGW_CHECKSUM_SHA1);
}

static void tokens(void **state)
{
    (void)state;
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    uint8_t key[FGW_SHA256_SIZE];
    fgw_rng_fill(key, sizeof key);
    struct fgw_bytes last = FGW_LIT("a/\xc3\xbc/key");
    struct fgw_bytes token = fgw_s3_token_make(&arena, key, last);
    struct fgw_bytes found;
    assert_int_equal(fgw_s3_token_open(&arena, key, token, &found), FGW_OK);
    assert_true(fgw_bytes_eq(found, last));
    for (size_t i = 0; i < token.len; i++) {
        uint8_t *changed = (uint8_t *)fgw_arena_strdup(&arena, token);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        assert_int_equal(fgw_s3_token_open(&arena, key, fgw_bytes(changed, token.len), &found),
                         FGW_ERR_INVALID_ARGUMENT);
        assert_int_equal(fgw_s3_token_open(&arena, key, fgw_bytes_sub(token, 0, i), &found),
                         FGW_ERR_INVALID_ARGUMENT);
    }
    assert_int_equal(fgw_s3_token_open(&arena, key, FGW_LIT("garbage"), &found),
                     FGW_ERR_INVALID_ARGUMENT);
    fgw_arena_deinit(&arena);
}

static void copy_sources(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *bucket;
        const char *key;
        enum fgw_version_kind kind;
    } GOOD[] = {
        {"bk/key", "bk", "key", FGW_VERSION_LATEST},
        {"/bk/key", "bk", "key", FGW_VERSION_LATEST},
        {"bk%2Fkey", "bk", "key", FGW_VERSION_LATEST},
        {"bk/a%20b", "bk", "a b", FGW_VERSION_LATEST},
        {"bk/a+b", "bk", "a+b", FGW_VERSION_LATEST},
        {"bk/a%2520b", "bk", "a%20b", FGW_VERSION_LATEST},
        {"bk/a%3Fb", "bk", "a?b", FGW_VERSION_LATEST},
        {"bk//x", "bk", "/x", FGW_VERSION_LATEST},
        {"bk/key?versionId=null", "bk", "key", FGW_VERSION_NULL},
        {"bk/key?versionId=0123456789abcdef0123456789ABCDEF", "bk", "key", FGW_VERSION_ID},
    };
    static const char *const BAD[] = {"",
                                      "/",
                                      "bk",
                                      "bk/",
                                      "/bk/",
                                      "//key",
                                      "bk/%zz",
                                      "bk/%ff",
                                      "bk/k?versionId=",
                                      "bk/k?versionId=12",
                                      "bk/k?x=1",
                                      "?"};
    struct fgw_arena arena;
    struct fgw_s3_copy_source source;
    fgw_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        assert_int_equal(fgw_s3_copy_source_parse(&arena, fgw_bytes_str(GOOD[i].text), &source),
                         FGW_OK);
        assert_bytes(source.bucket, GOOD[i].bucket);
        assert_bytes(source.key, GOOD[i].key);
        assert_int_equal(source.version.kind, GOOD[i].kind);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_int_equal(fgw_s3_copy_source_parse(&arena, fgw_bytes_str(BAD[i]), &source),
                         FGW_ERR_INVALID_ARGUMENT);
    }
    fgw_arena_deinit(&arena);
}

static struct fgw_s3_identity user(const char *id, enum fgw_policy_kind policy)
{
    return (struct fgw_s3_identity){.canonical_id = fgw_bytes_str(id), .policy = policy};
}

static void access_to_buckets(void **state)
{
    (void)state;
    struct fgw_bucket bucket = {.owner_id = FGW_LIT("owner"), .acl = FGW_ACL_PRIVATE};
    struct fgw_s3_identity owner = user("owner", FGW_POLICY_NONE);
    struct fgw_s3_identity other = user("other", FGW_POLICY_NONE);
    struct fgw_s3_identity reader = user("other", FGW_POLICY_READONLY);
    struct fgw_s3_identity writer = user("other", FGW_POLICY_READWRITE);
    struct fgw_s3_identity admin = user("other", FGW_POLICY_ADMIN);
    struct fgw_s3_identity nobody = {0};
    assert_true(fgw_s3_may(&owner, &bucket, FGW_S3_NEED_BUCKET_OWNER));
    assert_true(fgw_s3_may(&admin, &bucket, FGW_S3_NEED_BUCKET_OWNER));
    assert_false(fgw_s3_may(&writer, &bucket, FGW_S3_NEED_BUCKET_OWNER));
    assert_true(fgw_s3_may(&writer, &bucket, FGW_S3_NEED_BUCKET_WRITE));
    assert_true(fgw_s3_may(&reader, &bucket, FGW_S3_NEED_BUCKET_READ));
    assert_false(fgw_s3_may(&reader, &bucket, FGW_S3_NEED_BUCKET_WRITE));
    assert_false(fgw_s3_may(&other, &bucket, FGW_S3_NEED_BUCKET_READ));
    assert_false(fgw_s3_may(&nobody, &bucket, FGW_S3_NEED_BUCKET_READ));
    bucket.acl = FGW_ACL_AUTHENTICATED_READ;
    assert_true(fgw_s3_may(&other, &bucket, FGW_S3_NEED_BUCKET_READ));
    assert_false(fgw_s3_may(&nobody, &bucket, FGW_S3_NEED_BUCKET_READ));
    bucket.acl = FGW_ACL_PUBLIC_READ;
    assert_true(fgw_s3_may(&nobody, &bucket, FGW_S3_NEED_BUCKET_READ));
    assert_false(fgw_s3_may(&nobody, &bucket, FGW_S3_NEED_BUCKET_WRITE));
    bucket.acl = FGW_ACL_PUBLIC_READ_WRITE;
    assert_true(fgw_s3_may(&nobody, &bucket, FGW_S3_NEED_BUCKET_WRITE));
    assert_false(fgw_s3_may(&nobody, &bucket, FGW_S3_NEED_BUCKET_OWNER));
    bucket.owner_id = FGW_LIT("");
    assert_false(fgw_s3_may(&nobody, &bucket, FGW_S3_NEED_BUCKET_OWNER));
    assert_false(fgw_s3_may_create_bucket(&nobody));
    assert_false(fgw_s3_may_create_bucket(&reader));
    assert_true(fgw_s3_may_create_bucket(&other));
}

static void access_to_objects(void **state)
{
    (void)state;
    struct fgw_bucket bucket = {.owner_id = FGW_LIT("owner"), .acl = FGW_ACL_PUBLIC_READ};
    struct fgw_object object = {.acl = FGW_ACL_PRIVATE, .creator_id = FGW_LIT("creator")};
    struct fgw_s3_identity nobody = {0};
    struct fgw_s3_identity creator = user("creator", FGW_POLICY_NONE);
    struct fgw_s3_identity other = user("other", FGW_POLICY_NONE);
    assert_false(fgw_s3_may_read_object(&nobody, &bucket, &object));
    assert_false(fgw_s3_may_read_object(&other, &bucket, &object));
    assert_true(fgw_s3_may_read_object(&creator, &bucket, &object));
    assert_true(fgw_s3_may_own_object(&creator, &bucket, &object));
    object.acl = FGW_ACL_AUTHENTICATED_READ;
    assert_false(fgw_s3_may_read_object(&nobody, &bucket, &object));
    assert_true(fgw_s3_may_read_object(&other, &bucket, &object));
    object.acl = FGW_ACL_PUBLIC_READ;
    assert_true(fgw_s3_may_read_object(&nobody, &bucket, &object));
    assert_false(fgw_s3_may_own_object(&nobody, &bucket, &object));
    object.creator_id = FGW_LIT(""); /* written by an anonymous caller: not every caller's own */
    object.acl = FGW_ACL_PRIVATE;
    assert_false(fgw_s3_may_read_object(&nobody, &bucket, &object));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bucket_names),
        cmocka_unit_test(reserved_bucket_names),
        cmocka_unit_test(ranges_of_ten_bytes),
        cmocka_unit_test(ranges_that_are_ignored),
        cmocka_unit_test(copy_ranges),
        cmocka_unit_test(etag_lists),
        cmocka_unit_test(checksum_vectors),
        cmocka_unit_test(checksum_texts),
        cmocka_unit_test(tokens),
        cmocka_unit_test(copy_sources),
        cmocka_unit_test(access_to_buckets),
        cmocka_unit_test(access_to_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
