/* MD5 and SHA-256 in one pass: published vectors, and OpenSSL over lengths, pieces and places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/encode.h"
#include "base/hash_pair.h"
#include "base/rng.h"

enum { LONG = 3000, BLOCK = 64 };

static void check(struct fgw_bytes bytes, const size_t *cuts, size_t cut_count)
{
    struct fgw_md5 md5;
    struct fgw_sha256 sha256;
    uint8_t out[FGW_DIGEST_MAX];
    uint8_t wanted[FGW_DIGEST_MAX];
    struct fgw_bytes rest = bytes;
    fgw_md5_begin(&md5);
    fgw_sha256_begin(&sha256);
    for (size_t i = 0; i < cut_count; i++) {
        fgw_hash_pair_update(&md5, &sha256, fgw_bytes_sub(rest, 0, cuts[i]));
        rest = fgw_bytes_sub(rest, cuts[i], SIZE_MAX);
    }
    fgw_hash_pair_update(&md5, &sha256, rest);
    fgw_hash_pair_update(&md5, &sha256, fgw_bytes(NULL, 0)); /* nothing changes nothing */
    fgw_md5_end(&md5, out);
    fgw_digest_once(FGW_DIGEST_MD5, bytes, wanted);
    assert_memory_equal(out, wanted, FGW_MD5_SIZE);
    fgw_sha256_end(&sha256, out);
    fgw_digest_once(FGW_DIGEST_SHA256, bytes, wanted);
    assert_memory_equal(out, wanted, FGW_SHA256_SIZE);
}

static void vectors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *md5, *sha256; /* RFC 1321 A.5, FIPS 180-4 examples */
    } VECTORS[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e",
         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "8215ef0796a20bcaaae116d3876c664a",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a",
         "f371bc4a311f2b009eef952dd83ca80e2b60026c8e935592d0f9c308453c813e"},
    };
    if (!fgw_hash_pair_available()) {
        skip();
    }
    for (size_t i = 0; i < sizeof VECTORS / sizeof VECTORS[0]; i++) {
        struct fgw_md5 md5;
        struct fgw_sha256 sha256;
        uint8_t out[FGW_DIGEST_MAX];
        uint8_t wanted[FGW_DIGEST_MAX];
        fgw_md5_begin(&md5);
        fgw_sha256_begin(&sha256);
        fgw_hash_pair_update(&md5, &sha256, fgw_bytes_str(VECTORS[i].text));
        fgw_md5_end(&md5, out);
        assert_int_equal(fgw_hex_decode(fgw_bytes_str(VECTORS[i].md5), wanted), FGW_OK);
        assert_memory_equal(out, wanted, FGW_MD5_SIZE);
        fgw_sha256_end(&sha256, out);
        assert_int_equal(fgw_hex_decode(fgw_bytes_str(VECTORS[i].sha256), wanted), FGW_OK);
        assert_memory_equal(out, wanted, FGW_SHA256_SIZE);
    }
}

static void every_length_and_cut(void **state)
{
    (void)state;
    static uint8_t bytes[LONG];
    if (!fgw_hash_pair_available()) {
        skip();
    }
    fgw_rng_fill(bytes, sizeof bytes);
    for (size_t len = 0; len <= 3 * BLOCK; len++) {
        for (size_t cut = 0; cut <= len; cut += 7) {
            check(fgw_bytes(bytes + len % 5, len), &cut, 1);
        }
    }
    size_t cuts[LONG];
    for (size_t i = 0; i < LONG; i++) {
        cuts[i] = 1;
    }
    check(fgw_bytes(bytes, LONG), cuts, LONG);
    for (size_t i = 0; i < 40; i++) {
        cuts[i] = 1 + bytes[i] % 150;
    }
    check(fgw_bytes(bytes, LONG), cuts, 40);
}

/* SHA-256 begins anew with each leaf while MD5 goes on. */
static void sha256_begins_anew(void **state)
{
    (void)state;
    static uint8_t bytes[10 * BLOCK + 5];
    uint8_t out[FGW_DIGEST_MAX];
    uint8_t wanted[FGW_DIGEST_MAX];
    struct fgw_md5 md5;
    struct fgw_sha256 sha256;
    if (!fgw_hash_pair_available()) {
        skip();
    }
    fgw_rng_fill(bytes, sizeof bytes);
    struct fgw_bytes second = fgw_bytes_sub(fgw_bytes(bytes, sizeof bytes), 4 * BLOCK, SIZE_MAX);
    fgw_md5_begin(&md5);
    fgw_sha256_begin(&sha256);
    fgw_hash_pair_update(&md5, &sha256, fgw_bytes(bytes, 4 * BLOCK));
    fgw_sha256_begin(&sha256);
    fgw_hash_pair_update(&md5, &sha256, second);
    fgw_md5_end(&md5, out);
    fgw_digest_once(FGW_DIGEST_MD5, fgw_bytes(bytes, sizeof bytes), wanted);
    assert_memory_equal(out, wanted, FGW_MD5_SIZE);
    fgw_sha256_end(&sha256, out);
    fgw_digest_once(FGW_DIGEST_SHA256, second, wanted);
    assert_memory_equal(out, wanted, FGW_SHA256_SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors),
                                       cmocka_unit_test(every_length_and_cut),
                                       cmocka_unit_test(sha256_begins_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
