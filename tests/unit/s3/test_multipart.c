/* test_multipart.c: ETags and checksums combined from parts (values from independent programs), the
 * list of parts of Complete, checksum settings: vectors, edge cases and hostile input. */
#include "cmocka_all.h"

#include "base/encode.h"
#include "fake_request.h"
#include "s3/checksum.h"
#include "s3/complete_list.h"
#include "s3/multipart.h"

#define ETAG_OF_BOTH "ec451716292c95aa4cb365b91394b9df-2"
#define CRC32_A "407589cf"
#define CRC32_B "0d4a1185"
#define CRC32_WHOLE "b6a2af8f"
#define CRC32_COMPOSITE "e1795c66"
#define CRC32C_A "d601351d"
#define CRC32C_B "c99465aa"
#define CRC32C_WHOLE "6f718056"
#define CRC64_A "96641767b0a579b7"
#define CRC64_B "8d29d5c3f6ea8ebe"
#define CRC64_WHOLE "5fbbcce1bdfc41c1"
#define SHA256_A "ae9114537979cac69289ff6f43f5b8284728ace47f9d5e62c0c045cf154df66b"
#define SHA256_B "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
#define SHA256_COMPOSITE "b05d415949ca06f9d2cc0d34cb7fb8cec82a7091559e11bec406b39dfc7df098"

/* Parts: "123456789" 1,000 times, and "hello world". */
static void fill_parts(struct fgw_object_part parts[2], enum fgw_checksum algorithm,
                       const char *first, const char *second)
{
    const char *const values[2] = {first, second};
    static const char *const MD5[2] = {"754510e0be1138864543a2d04a08621a",
                                       "5eb63bbbe01eeed093cb22bb8f5acdc3"};
    static const uint64_t SIZES[2] = {9000, 11};
    memset(parts, 0, 2 * sizeof *parts);
    for (size_t i = 0; i < 2; i++) {
        parts[i].number = (unsigned)i + 1;
        parts[i].size = SIZES[i];
        assert_int_equal(fgw_hex_decode(fgw_bytes_str(MD5[i]), parts[i].md5), FGW_OK);
        parts[i].checksum.algorithm = algorithm;
        parts[i].checksum.len = fgw_s3_checksum_size(algorithm);
        assert_int_equal(fgw_hex_decode(fgw_bytes_str(values[i]), parts[i].checksum.bytes), FGW_OK);
    }
}

static void expect_whole(enum fgw_checksum algorithm, enum fgw_checksum_type type,
                         const char *first, const char *second, const char *whole)
{
    struct fgw_object_part parts[2];
    struct fgw_checksum_value value;
    char hex[2 * FGW_META_CHECKSUM_MAX];
    fill_parts(parts, algorithm, first, second);
    assert_int_equal(fgw_s3_combine_checksums(algorithm, type, parts, 2, &value), FGW_OK);
    fgw_hex_encode(fgw_bytes(value.bytes, value.len), hex);
    assert_true(fgw_bytes_eq_str(fgw_bytes(hex, 2U * value.len), whole));
    assert_int_equal(value.algorithm, algorithm);
    assert_int_equal(value.type, type);
}

static void checksums_from_parts(void **state)
{
    (void)state;
    expect_whole(FGW_CHECKSUM_CRC32, FGW_CHECKSUM_FULL_OBJECT, CRC32_A, CRC32_B, CRC32_WHOLE);
    expect_whole(FGW_CHECKSUM_CRC32, FGW_CHECKSUM_COMPOSITE, CRC32_A, CRC32_B, CRC32_COMPOSITE);
    expect_whole(FGW_CHECKSUM_CRC32C, FGW_CHECKSUM_FULL_OBJECT, CRC32C_A, CRC32C_B, CRC32C_WHOLE);
    expect_whole(FGW_CHECKSUM_CRC64NVME, FGW_CHECKSUM_FULL_OBJECT, CRC64_A, CRC64_B, CRC64_WHOLE);
    expect_whole(FGW_CHECKSUM_SHA256, FGW_CHECKSUM_COMPOSITE, SHA256_A, SHA256_B, SHA256_COMPOSITE);
}

static void checksums_that_cannot_be(void **state)
{
    (void)state;
    struct fgw_object_part parts[2];
    struct fgw_checksum_value value = {.len = 77};
    fill_parts(parts, FGW_CHECKSUM_CRC32, CRC32_A, CRC32_B);
    assert_int_equal(
        fgw_s3_combine_checksums(FGW_CHECKSUM_CRC32C, FGW_CHECKSUM_FULL_OBJECT, parts, 2, &value),
        FGW_ERR_INVALID_ARGUMENT);
    parts[1].checksum.algorithm = FGW_CHECKSUM_NONE;
    assert_int_equal(
        fgw_s3_combine_checksums(FGW_CHECKSUM_CRC32, FGW_CHECKSUM_COMPOSITE, parts, 2, &value),
        FGW_ERR_INVALID_ARGUMENT);
    fill_parts(parts, FGW_CHECKSUM_SHA256, SHA256_A, SHA256_B);
    assert_int_equal(
        fgw_s3_combine_checksums(FGW_CHECKSUM_SHA256, FGW_CHECKSUM_FULL_OBJECT, parts, 2, &value),
        FGW_ERR_INVALID_ARGUMENT);
    assert_int_equal(value.len, 77);
    assert_int_equal(
        fgw_s3_combine_checksums(FGW_CHECKSUM_NONE, FGW_CHECKSUM_FULL_OBJECT, parts, 2, &value),
        FGW_OK);
    assert_int_equal(value.algorithm, FGW_CHECKSUM_NONE);
}

static void etags(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_object_part parts[2];
    fgw_arena_init(&arena, 0);
    fill_parts(parts, FGW_CHECKSUM_CRC32, CRC32_A, CRC32_B);
    assert_true(fgw_bytes_eq_str(fgw_s3_multipart_etag(&arena, parts, 2), ETAG_OF_BOTH));
    assert_int_equal(fgw_hex_decode(FGW_LIT("d41d8cd98f00b204e9800998ecf8427e"), parts[0].md5),
                     FGW_OK);
    assert_true(fgw_bytes_eq_str(fgw_s3_multipart_etag(&arena, parts, 1),
                                 "59adb24ef3cdbe0297f05b395827453f-1"));
    fgw_arena_deinit(&arena);
    assert_int_equal(fgw_s3_etag_parts(FGW_LIT(ETAG_OF_BOTH)), 2);
    assert_int_equal(fgw_s3_etag_parts(FGW_LIT("x-10000")), 10000);
    static const char *const PLAIN[] = {
        "",        "d41d8cd98f00b204e9800998ecf8427e", "-", "x-", "x-y", "x--1",
        "x-10001", "x-99999999999999999999999"};
    for (size_t i = 0; i < sizeof PLAIN / sizeof PLAIN[0]; i++) {
        assert_int_equal(fgw_s3_etag_parts(fgw_bytes_str(PLAIN[i])), 0);
    }
}

static void extent_numbers(void **state)
{
    (void)state;
    uint64_t one = fgw_s3_part_extent_number(1);
    assert_true(one >> 48 == 1);
    assert_true(fgw_s3_part_extent_number(10000) >> 48 == 10000);
    assert_true(one != fgw_s3_part_extent_number(1));
}

/* -- lists of parts --------------------------------------------------------------------------- */

#define PART(number, etag) "<Part><PartNumber>" number "</PartNumber><ETag>" etag "</ETag></Part>"
#define LIST(parts) "<CompleteMultipartUpload>" parts "</CompleteMultipartUpload>"

static enum fgw_err parse(struct fgw_arena *arena, const char *document,
                          struct fgw_s3_listed_part **out_parts, size_t *out_count)
{
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err =
        fgw_s3_complete_list_parse(arena, fgw_bytes_str(document), out_parts, out_count, &error);
    assert_int_equal(error.code, err);
    return err;
}

static void good_lists(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_s3_listed_part *parts = NULL;
    size_t count = 0;
    fgw_arena_init(&arena, 0);
    assert_int_equal(
        parse(&arena,
              "\xef\xbb\xbf<?xml version='1.0'?><!-- x --><a:CompleteMultipartUpload "
              "xmlns:a='urn:x'>\n<a:Part><a:ETag>&quot;abc&#34;</a:ETag>"
              "<a:PartNumber>\t7 </a:PartNumber><a:ChecksumCRC32>AAAAAQ=="
              "</a:ChecksumCRC32></a:Part>" PART("10000", "\"def\"") "</a:CompleteMultipartUpload>",
              &parts, &count),
        FGW_OK);
    assert_int_equal(count, 2);
    assert_int_equal(parts[0].number, 7);
    assert_true(fgw_bytes_eq_str(parts[0].etag, "abc"));
    assert_int_equal(parts[0].checksum.algorithm, FGW_CHECKSUM_CRC32);
    assert_int_equal(parts[0].checksum.bytes[3], 1);
    assert_int_equal(parts[1].number, 10000);
    assert_true(fgw_bytes_eq_str(parts[1].etag, "def"));
    assert_int_equal(parts[1].checksum.algorithm, FGW_CHECKSUM_NONE);
    fgw_arena_deinit(&arena);
}

static void bad_lists(void **state)
{
    (void)state;
    static const struct {
        const char *document;
        enum fgw_err err;
    } BAD[] = {
        {"", FGW_ERR_MALFORMED_XML},
        {"x", FGW_ERR_MALFORMED_XML},
        {LIST(""), FGW_ERR_MALFORMED_XML},
        {"<CompleteMultipartUpload/>", FGW_ERR_MALFORMED_XML},
        {"<Complete>" PART("1", "a") "</Complete>", FGW_ERR_MALFORMED_XML},
        {LIST(PART("1", "a")) "x", FGW_ERR_MALFORMED_XML},
        {LIST("<Other/>"), FGW_ERR_MALFORMED_XML},
        {LIST("<Part><PartNumber>1</PartNumber></Part>"), FGW_ERR_MALFORMED_XML},
        {LIST("<Part><ETag>a</ETag></Part>"), FGW_ERR_MALFORMED_XML},
        {LIST(PART("", "a")), FGW_ERR_MALFORMED_XML},
        {LIST(PART("x", "a")), FGW_ERR_MALFORMED_XML},
        {LIST(PART("1.5", "a")), FGW_ERR_MALFORMED_XML},
        {LIST(PART("-", "a")), FGW_ERR_MALFORMED_XML},
        {LIST(PART("99999999999999999999999", "a")), FGW_ERR_MALFORMED_XML},
        {LIST("<Part><PartNumber>1</PartNumber><ETag>a</ETag><ChecksumSHA1>!</ChecksumSHA1>"
              "</Part>"),
         FGW_ERR_MALFORMED_XML},
        {LIST(PART("0", "a")), FGW_ERR_INVALID_ARGUMENT},
        {LIST(PART("-1", "a")), FGW_ERR_INVALID_ARGUMENT},
        {LIST(PART("10001", "a")), FGW_ERR_INVALID_ARGUMENT},
        {LIST(PART("2", "a") PART("1", "b")), FGW_ERR_INVALID_PART_ORDER},
        {LIST(PART("1", "a") PART("1", "a")), FGW_ERR_INVALID_PART_ORDER},
    };
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        struct fgw_s3_listed_part *parts = NULL;
        size_t count = 77;
        assert_int_equal(parse(&arena, BAD[i].document, &parts, &count), BAD[i].err);
        assert_true(parts == NULL && count == 77);
    }
    fgw_arena_deinit(&arena);
}

static void lists_of_many_parts(void **state)
{
    (void)state;
    for (unsigned parts_wanted = 10000; parts_wanted <= 10001; parts_wanted++) {
        struct fgw_arena arena;
        struct fgw_buf document;
        struct fgw_s3_listed_part *parts = NULL;
        size_t count = 0;
        struct fgw_error error;
        fgw_error_init(&error);
        fgw_arena_init(&arena, 0);
        fgw_buf_init(&document, 0);
        (void)fgw_buf_append_str(&document, "<CompleteMultipartUpload>");
        for (unsigned i = 1; i <= parts_wanted; i++) {
            (void)fgw_buf_appendf(&document, PART("%u", "0123456789abcdef0123456789abcdef"), i);
        }
        (void)fgw_buf_append_str(&document, "</CompleteMultipartUpload>");
        enum fgw_err err =
            fgw_s3_complete_list_parse(&arena, fgw_buf_bytes(&document), &parts, &count, &error);
        assert_int_equal(err, parts_wanted <= 10000 ? FGW_OK : FGW_ERR_MALFORMED_XML);
        fgw_buf_deinit(&document);
        fgw_arena_deinit(&arena);
    }
}

/* -- checksum settings ------------------------------------------------------------------------ */

static void checksum_settings(void **state)
{
    (void)state;
    static const struct {
        const char *algorithm;
        const char *type;
        enum fgw_err err;
        enum fgw_checksum_type expected;
    } CASES[] = {
        {NULL, NULL, FGW_OK, FGW_CHECKSUM_FULL_OBJECT},
        {"CRC32", NULL, FGW_OK, FGW_CHECKSUM_COMPOSITE},
        {"crc32c", "full_object", FGW_OK, FGW_CHECKSUM_FULL_OBJECT},
        {"SHA256", "COMPOSITE", FGW_OK, FGW_CHECKSUM_COMPOSITE},
        {"CRC64NVME", NULL, FGW_OK, FGW_CHECKSUM_FULL_OBJECT},
        {"CRC64NVME", "COMPOSITE", FGW_ERR_INVALID_REQUEST, FGW_CHECKSUM_FULL_OBJECT},
        {"SHA1", "FULL_OBJECT", FGW_ERR_INVALID_REQUEST, FGW_CHECKSUM_FULL_OBJECT},
        {"CRC32", "HALF_OBJECT", FGW_ERR_INVALID_REQUEST, FGW_CHECKSUM_FULL_OBJECT},
        {"XXHASH64", NULL, FGW_ERR_INVALID_REQUEST, FGW_CHECKSUM_FULL_OBJECT},
        {"", NULL, FGW_ERR_INVALID_REQUEST, FGW_CHECKSUM_FULL_OBJECT},
        {NULL, "COMPOSITE", FGW_ERR_INVALID_REQUEST, FGW_CHECKSUM_FULL_OBJECT},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fake_request fake;
        enum fgw_checksum algorithm = FGW_CHECKSUM_NONE;
        enum fgw_checksum_type type = FGW_CHECKSUM_FULL_OBJECT;
        fake_init(&fake, FGW_HTTP_POST, "/b/k?uploads");
        if (CASES[i].algorithm != NULL) {
            fake_header(&fake, "x-amz-checksum-algorithm", CASES[i].algorithm);
        }
        if (CASES[i].type != NULL) {
            fake_header(&fake, "x-amz-checksum-type", CASES[i].type);
        }
        assert_int_equal(fgw_s3_upload_checksum(&fake.request, &algorithm, &type), CASES[i].err);
        assert_int_equal(type, CASES[i].expected);
        fake_deinit(&fake);
    }
}

static void part_numbers(void **state)
{
    (void)state;
    static const char *const BAD[] = {"/b/k?partNumber=0",  "/b/k?partNumber=10001",
                                      "/b/k?partNumber=-1", "/b/k?partNumber=x",
                                      "/b/k?partNumber",    "/b/k?uploadId=1"};
    struct fake_request fake;
    unsigned number = 0;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        fake_init(&fake, FGW_HTTP_PUT, BAD[i]);
        assert_int_equal(fgw_s3_request_parse(&fake.request), FGW_OK);
        assert_int_equal(fgw_s3_part_number(&fake.request, &number), FGW_ERR_INVALID_ARGUMENT);
        fake_deinit(&fake);
    }
    fake_init(&fake, FGW_HTTP_PUT, "/b/k?partNumber=10000");
    assert_int_equal(fgw_s3_request_parse(&fake.request), FGW_OK);
    assert_int_equal(fgw_s3_part_number(&fake.request, &number), FGW_OK);
    assert_int_equal(number, 10000);
    fake_deinit(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_from_parts),
        cmocka_unit_test(checksums_that_cannot_be),
        cmocka_unit_test(etags),
        cmocka_unit_test(extent_numbers),
        cmocka_unit_test(good_lists),
        cmocka_unit_test(bad_lists),
        cmocka_unit_test(lists_of_many_parts),
        cmocka_unit_test(checksum_settings),
        cmocka_unit_test(part_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
