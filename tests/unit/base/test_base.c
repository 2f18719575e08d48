/* test_base.c: vectors and edge cases of src/base. */
#include "cmocka_all.h"

#include <stdio.h>
#include <time.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/crc.h"
#include "base/digest.h"
#include "base/encode.h"
#include "base/rng.h"
#include "base/timefmt.h"
#include "base/tlv.h"

static void crc_check_values(void **state)
{
    (void)state;
    struct fgw_bytes digits = FGW_LIT("123456789");
    assert_int_equal(fgw_crc32(0, digits), 0xcbf43926);
    assert_int_equal(fgw_crc32c(0, digits), 0xe3069283);
    assert_true(fgw_crc64nvme(0, digits) == 0xae8b14860a799888U);
}

static void crc_splits_and_combines(void **state)
{
    (void)state;
    static uint8_t data[5000];
    fgw_rng_fill(data, sizeof data);
    for (size_t len = 0; len < sizeof data; len += 37) {
        for (size_t cut = 0; cut <= len; cut += 173) {
            struct fgw_bytes whole = fgw_bytes(data, len);
            struct fgw_bytes a = fgw_bytes_sub(whole, 0, cut);
            struct fgw_bytes b = fgw_bytes_sub(whole, cut, SIZE_MAX);
            assert_true(fgw_crc64nvme(fgw_crc64nvme(0, a), b) == fgw_crc64nvme(0, whole));
            assert_true(fgw_crc64nvme_combine(fgw_crc64nvme(0, a), fgw_crc64nvme(0, b), b.len) ==
                        fgw_crc64nvme(0, whole));
            assert_int_equal(fgw_crc32_combine(fgw_crc32(0, a), fgw_crc32(0, b), b.len),
                             fgw_crc32(0, whole));
            assert_int_equal(fgw_crc32c_combine(fgw_crc32c(0, a), fgw_crc32c(0, b), b.len),
                             fgw_crc32c(0, whole));
        }
    }
}

static void crc64_bytewise_equals_bulk(void **state)
{
    (void)state;
    uint8_t data[1000];
    fgw_rng_fill(data, sizeof data);
    uint64_t crc = 0;
    for (size_t i = 0; i < sizeof data; i++) {
        crc = fgw_crc64nvme(crc, fgw_bytes(data + i, 1));
    }
    assert_true(crc == fgw_crc64nvme(0, fgw_bytes(data, sizeof data)));
}

static void encodings_round_trip(void **state)
{
    (void)state;
    uint8_t data[70];
    uint8_t back[128];
    char text[256];
    size_t len;
    fgw_rng_fill(data, sizeof data);
    for (size_t n = 0; n < sizeof data; n++) {
        fgw_base64_encode(fgw_bytes(data, n), text);
        assert_int_equal(fgw_base64_decode(fgw_bytes_str(text), back, &len), FGW_OK);
        assert_true(fgw_bytes_eq(fgw_bytes(data, n), fgw_bytes(back, len)));
        fgw_base64url_encode(fgw_bytes(data, n), text);
        assert_int_equal(fgw_base64url_decode(fgw_bytes_str(text), back, &len), FGW_OK);
        assert_true(fgw_bytes_eq(fgw_bytes(data, n), fgw_bytes(back, len)));
        fgw_base32_encode(fgw_bytes(data, n), text);
        assert_int_equal(fgw_base32_decode(fgw_bytes_str(text), back, &len), FGW_OK);
        assert_true(fgw_bytes_eq(fgw_bytes(data, n), fgw_bytes(back, len)));
    }
    assert_int_equal(fgw_base64_decode(FGW_LIT("YWJj!A=="), back, &len), FGW_ERR_PARSE);
    assert_int_equal(fgw_base64_decode(FGW_LIT("YQ"), back, &len), FGW_ERR_PARSE);
    assert_int_equal(fgw_base64_decode(FGW_LIT("YR=="), back, &len), FGW_ERR_PARSE);
    assert_int_equal(fgw_base64_decode(FGW_LIT("===="), back, &len), FGW_ERR_PARSE);
}

static void uvarint_edges(void **state)
{
    (void)state;
    static const uint64_t VALUES[] = {0, 1, 127, 128, 300, UINT64_MAX >> 1};
    uint8_t out[FGW_UVARINT_MAX];
    for (size_t i = 0; i < sizeof VALUES / sizeof VALUES[0]; i++) {
        size_t len = fgw_uvarint_encode(VALUES[i], out);
        uint64_t value;
        size_t used;
        assert_int_equal(fgw_uvarint_decode(fgw_bytes(out, len), &value, &used), FGW_OK);
        assert_true(value == VALUES[i] && used == len);
        assert_int_equal(fgw_uvarint_decode(fgw_bytes(out, len - 1), &value, &used), FGW_ERR_END);
    }
    uint64_t value;
    size_t used;
    assert_int_equal(fgw_uvarint_decode(fgw_bytes("\x80\x00", 2), &value, &used), FGW_ERR_PARSE);
    assert_int_equal(fgw_uvarint_decode(fgw_bytes("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10),
                                        &value, &used),
                     FGW_ERR_PARSE);
}

static void uri_encoding(void **state)
{
    (void)state;
    struct fgw_arena arena;
    struct fgw_buf out;
    struct fgw_bytes text;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&out, 0);
    assert_int_equal(fgw_uri_encode(&out, FGW_LIT("a b+c/\xc3\xbc%~"), true), FGW_OK);
    assert_true(fgw_bytes_eq_str(fgw_buf_bytes(&out), "a%20b%2Bc/%C3%BC%25~"));
    assert_int_equal(fgw_uri_decode(&arena, fgw_buf_bytes(&out), false, &text), FGW_OK);
    assert_true(fgw_bytes_eq_str(text, "a b+c/\xc3\xbc%~"));
    assert_int_equal(fgw_uri_decode(&arena, FGW_LIT("a%2"), false, &text), FGW_ERR_PARSE);
    assert_int_equal(fgw_uri_decode(&arena, FGW_LIT("a%zz"), false, &text), FGW_ERR_PARSE);
    assert_int_equal(fgw_uri_decode(&arena, FGW_LIT("a+b"), true, &text), FGW_OK);
    assert_true(fgw_bytes_eq_str(text, "a b"));
    fgw_buf_deinit(&out);
    fgw_arena_deinit(&arena);
}

static void dates(void **state)
{
    (void)state;
    char http[FGW_TIME_HTTP_SIZE];
    char iso[FGW_TIME_ISO8601_SIZE];
    int64_t ms;
    fgw_time_http(784111777000, http);
    assert_string_equal(http, "Sun, 06 Nov 1994 08:49:37 GMT");
    fgw_time_iso8601(784111777123, iso);
    assert_string_equal(iso, "1994-11-06T08:49:37.123Z");
    static const char *const SAME[] = {"Sun, 06 Nov 1994 08:49:37 GMT",
                                       "Sunday, 06-Nov-94 08:49:37 GMT",
                                       "Sun Nov  6 08:49:37 1994"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(fgw_time_parse_http(fgw_bytes_str(SAME[i]), &ms), FGW_OK);
        assert_true(ms == 784111777000);
    }
    assert_int_equal(fgw_time_parse_http(FGW_LIT("garbage"), &ms), FGW_ERR_PARSE);
    assert_int_equal(fgw_time_parse_http(FGW_LIT("Sun, 31 Feb 1994 08:49:37 GMT"), &ms),
                     FGW_ERR_PARSE);
    assert_int_equal(fgw_time_parse_basic(FGW_LIT("19941106T084937Z"), &ms), FGW_OK);
    assert_true(ms == 784111777000);
    assert_int_equal(fgw_time_parse_iso8601(FGW_LIT("1994-11-06T09:49:37.123+01:00"), &ms), FGW_OK);
    assert_true(ms == 784111777123);
}

static void dates_agree_with_the_c_library(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        char want[40];
        char http[FGW_TIME_HTTP_SIZE];
        char iso[FGW_TIME_ISO8601_SIZE];
        char basic[FGW_TIME_BASIC_SIZE];
        struct tm tm;
        /* 0000-01-01 to 9999-12-31 */
        int64_t s = i == 0   ? -62167219200
                    : i == 1 ? 253402300799
                             : (int64_t)fgw_rng_below(315569520000) - 62167219200;
        time_t t = (time_t)s;
        assert_non_null(gmtime_r(&t, &tm));
        fgw_time_http(s * 1000, http);
        (void)strftime(want, sizeof want, "%a, %d %b ", &tm);
        (void)snprintf(want + 12, sizeof want - 12, "%04d %02d:%02d:%02d GMT", tm.tm_year + 1900,
                       tm.tm_hour, tm.tm_min, tm.tm_sec);
        assert_string_equal(http, want);
        fgw_time_iso8601(s * 1000 + 7, iso);
        (void)snprintf(want, sizeof want, "%04d-%02d-%02dT%02d:%02d:%02d.007Z", tm.tm_year + 1900,
                       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
        assert_string_equal(iso, want);
        fgw_time_basic(s * 1000 + 999, basic);
        (void)snprintf(want, sizeof want, "%04d%02d%02dT%02d%02d%02dZ", tm.tm_year + 1900,
                       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
        assert_string_equal(basic, want);
    }
}

static void utf8(void **state)
{
    (void)state;
    assert_true(fgw_utf8_valid(FGW_LIT("a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80")));
    assert_false(fgw_utf8_valid(FGW_LIT("\xc0\x80")));
    assert_false(fgw_utf8_valid(FGW_LIT("\xed\xa0\x80")));
    assert_false(fgw_utf8_valid(FGW_LIT("\xf4\x90\x80\x80")));
    assert_false(fgw_utf8_valid(FGW_LIT("\xe2\x82")));
}

static void aead_opens_only_what_it_sealed(void **state)
{
    (void)state;
    uint8_t key[FGW_AEAD_KEY_SIZE];
    uint8_t nonce[FGW_AEAD_NONCE_SIZE] = {1};
    uint8_t tag[FGW_AEAD_TAG_SIZE];
    uint8_t sealed[5];
    uint8_t plain[5];
    fgw_rng_fill(key, sizeof key);
    fgw_aead_seal(key, nonce, FGW_LIT("head"), FGW_LIT("hello"), sealed, tag);
    assert_int_equal(fgw_aead_open(key, nonce, FGW_LIT("head"), fgw_bytes(sealed, 5), tag, plain),
                     FGW_OK);
    assert_memory_equal(plain, "hello", 5);
    assert_int_equal(fgw_aead_open(key, nonce, FGW_LIT("heaD"), fgw_bytes(sealed, 5), tag, plain),
                     FGW_ERR_CORRUPT);
    sealed[0] ^= 1;
    assert_int_equal(fgw_aead_open(key, nonce, FGW_LIT("head"), fgw_bytes(sealed, 5), tag, plain),
                     FGW_ERR_CORRUPT);
}

static void hmac_and_hkdf_vectors(void **state)
{
    (void)state;
    uint8_t out[42];
    char hex[85] = {0};
    /* RFC 4231 case 2 */
    fgw_hmac_sha256(FGW_LIT("Jefe"), FGW_LIT("what do ya want for nothing?"), out);
    fgw_hex_encode(fgw_bytes(out, 32), hex);
    hex[64] = '\0';
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    /* RFC 5869 case 1 */
    uint8_t key[22];
    memset(key, 0x0b, sizeof key);
    fgw_hkdf_sha256(fgw_bytes(key, 22),
                    FGW_LIT("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"),
                    FGW_LIT("\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9"), out, 42);
    fgw_hex_encode(fgw_bytes(out, 42), hex);
    assert_string_equal(hex,
                        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5"
                        "b887185865");
}

static void tlv_round_trip_and_damage(void **state)
{
    (void)state;
    struct fgw_buf out;
    struct fgw_tlv_item item;
    uint64_t value;
    fgw_buf_init(&out, 0);
    fgw_tlv_put_u64(&out, 2, 0);
    fgw_tlv_put_u64(&out, 301, UINT64_MAX);
    fgw_tlv_put(&out, 4, FGW_LIT("abc"));
    struct fgw_tlv_reader reader = fgw_tlv_reader(fgw_buf_bytes(&out));
    assert_int_equal(fgw_tlv_next(&reader, &item), FGW_OK);
    assert_int_equal(fgw_tlv_u64(item.value, &value), FGW_OK);
    assert_true(value == 0);
    assert_int_equal(fgw_tlv_next(&reader, &item), FGW_OK);
    assert_int_equal(fgw_tlv_u64(item.value, &value), FGW_OK);
    assert_true(value == UINT64_MAX && fgw_tlv_critical(item.tag));
    assert_int_equal(fgw_tlv_next(&reader, &item), FGW_OK);
    assert_true(fgw_bytes_eq_str(item.value, "abc"));
    assert_int_equal(fgw_tlv_next(&reader, &item), FGW_ERR_END);
    reader = fgw_tlv_reader(fgw_bytes(out.ptr, out.len - 1));
    assert_int_equal(fgw_tlv_next(&reader, &item), FGW_OK);
    assert_int_equal(fgw_tlv_next(&reader, &item), FGW_OK);
    assert_int_equal(fgw_tlv_next(&reader, &item), FGW_ERR_CORRUPT);
    fgw_buf_deinit(&out);
}

static void buffer_maximum(void **state)
{
    (void)state;
    struct fgw_buf buf;
    fgw_buf_init(&buf, 10);
    assert_int_equal(fgw_buf_append_str(&buf, "12345"), FGW_OK);
    assert_int_equal(fgw_buf_append_str(&buf, "678901"), FGW_ERR_TOO_LARGE);
    assert_int_equal(fgw_buf_status(&buf), FGW_ERR_TOO_LARGE);
    assert_int_equal(buf.len, 5);
    fgw_buf_deinit(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_check_values),
        cmocka_unit_test(crc_splits_and_combines),
        cmocka_unit_test(crc64_bytewise_equals_bulk),
        cmocka_unit_test(encodings_round_trip),
        cmocka_unit_test(uvarint_edges),
        cmocka_unit_test(uri_encoding),
        cmocka_unit_test(dates),
        cmocka_unit_test(dates_agree_with_the_c_library),
        cmocka_unit_test(utf8),
        cmocka_unit_test(aead_opens_only_what_it_sealed),
        cmocka_unit_test(hmac_and_hkdf_vectors),
        cmocka_unit_test(tlv_round_trip_and_damage),
        cmocka_unit_test(buffer_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
