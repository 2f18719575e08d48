/* crc.c: see crc.h. CRC32 and CRC32C by ISA-L. CRC64NVME: 16 bytes at a time by carry-less
 * multiplication where the CPU has it, else slicing by 8 over tables built once (both are checked
 * against the published vector and each other by the unit test). Combination is multiplication by
 * x^(8*len) in GF(2)[x]/P, as zlib's crc32_combine does it.
 */
#include "base/crc.h"

#include <isa-l/crc.h>
#include <pthread.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const uint64_t POLY_64 = 0x9A6C9329AC4BC9B5U;
static const uint32_t POLY_32 = 0xEDB88320U;
static const uint32_t POLY_32C = 0x82F63B78U;

/* ISA-L takes int lengths. */
enum { ISAL_CHUNK = 1 << 30 };

uint32_t fgw_crc32(uint32_t crc, struct fgw_bytes bytes)
{
    while (bytes.len > 0) {
        size_t len = bytes.len < ISAL_CHUNK ? bytes.len : ISAL_CHUNK;
        crc = crc32_gzip_refl(crc, bytes.ptr, len);
        bytes = fgw_bytes_sub(bytes, len, SIZE_MAX);
    }
    return crc;
}

uint32_t fgw_crc32c(uint32_t crc, struct fgw_bytes bytes)
{
    crc = ~crc;
    while (bytes.len > 0) {
        size_t len = bytes.len < ISAL_CHUNK ? bytes.len : ISAL_CHUNK;
        /* ISA-L's prototype lacks const; it only reads */
        crc = crc32_iscsi((unsigned char *)(uintptr_t)bytes.ptr, (int)len, crc);
        bytes = fgw_bytes_sub(bytes, len, SIZE_MAX);
    }
    return ~crc;
}

/* -- polynomial arithmetic, reflected: bit 63 (31) is x^0 ---------------------------------- */

static uint64_t multiply_64(uint64_t a, uint64_t b, uint64_t poly, uint64_t one)
{
    uint64_t product = 0;
    for (uint64_t bit = one; bit != 0; bit >>= 1) {
        if (a & bit) {
            product ^= b;
        }
        b = b & 1 ? (b >> 1) ^ poly : b >> 1;
    }
    return product;
}

/* x^(8*bytes) mod P */
static uint64_t shift_by_bytes(uint64_t bytes, uint64_t poly, uint64_t one)
{
    uint64_t result = one;
    uint64_t square = one >> 8; /* x^8 */
    for (; bytes != 0; bytes >>= 1) {
        if (bytes & 1) {
            result = multiply_64(result, square, poly, one);
        }
        square = multiply_64(square, square, poly, one);
    }
    return result;
}

static const uint64_t ONE_64 = UINT64_C(1) << 63;
static const uint64_t ONE_32 = UINT64_C(1) << 31;

uint32_t fgw_crc32_combine(uint32_t a, uint32_t b, uint64_t b_len)
{
    return (uint32_t)multiply_64(shift_by_bytes(b_len, POLY_32, ONE_32), a, POLY_32, ONE_32) ^ b;
}

uint32_t fgw_crc32c_combine(uint32_t a, uint32_t b, uint64_t b_len)
{
    return (uint32_t)multiply_64(shift_by_bytes(b_len, POLY_32C, ONE_32), a, POLY_32C, ONE_32) ^ b;
}

uint64_t fgw_crc64nvme_combine(uint64_t a, uint64_t b, uint64_t b_len)
{
    return multiply_64(shift_by_bytes(b_len, POLY_64, ONE_64), a, POLY_64, ONE_64) ^ b;
}

/* -- CRC64NVME ----------------------------------------------------------------------------- */

static uint64_t table_64[8][256];
#if defined(__x86_64__)
static uint64_t fold_low_64;  /* x^(128+63) mod P, for folding 16 bytes ahead */
static uint64_t fold_high_64; /* x^(128-1+64+...) see build_tables */
static bool has_clmul;
#endif
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

/* x^n mod P, reflected */
#if defined(__x86_64__)
static uint64_t power_of_x(unsigned n)
{
    uint64_t value = ONE_64;
    for (unsigned i = 0; i < n; i++) {
        value = value & 1 ? (value >> 1) ^ POLY_64 : value >> 1;
    }
    return value;
}
#endif

static void build_tables(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint64_t crc = i;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? (crc >> 1) ^ POLY_64 : crc >> 1;
        }
        table_64[0][i] = crc;
    }
    for (unsigned i = 0; i < 256; i++) {
        for (int slice = 1; slice < 8; slice++) {
            uint64_t before = table_64[slice - 1][i];
            table_64[slice][i] = table_64[0][before & 0xff] ^ (before >> 8);
        }
    }
#if defined(__x86_64__)
    /* A reflected carry-less product of two 64-bit values comes out one bit low, hence 127 and 191
     * in place of 128 and 192: the low lane (earlier bytes) moves by 192 bits, the high by 128. */
    fold_low_64 = power_of_x(191);
    fold_high_64 = power_of_x(127);
    has_clmul = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
}

static uint64_t crc64_tables(uint64_t state, struct fgw_bytes bytes)
{
    const uint8_t *p = bytes.ptr;
    size_t left = bytes.len;
    for (; left >= 8; left -= 8, p += 8) {
        uint64_t x = state ^ fgw_get_u64le(p);
        state = 0;
        for (int i = 0; i < 8; i++) {
            state ^= table_64[7 - i][x >> (8 * i) & 0xff];
        }
    }
    for (; left > 0; left--, p++) {
        state = table_64[0][(state ^ *p) & 0xff] ^ (state >> 8);
    }
    return state;
}

#if defined(__x86_64__)
__attribute__((target("pclmul,sse4.1"))) static uint64_t crc64_clmul(uint64_t state,
                                                                     struct fgw_bytes bytes)
{
    const __m128i fold = _mm_set_epi64x((long long)fold_high_64, (long long)fold_low_64);
    const uint8_t *p = bytes.ptr;
    size_t left = bytes.len;
    __m128i lanes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)p),
                                  _mm_set_epi64x(0, (long long)state));
    for (p += 16, left -= 16; left >= 16; left -= 16, p += 16) {
        __m128i low = _mm_clmulepi64_si128(lanes, fold, 0x00);
        __m128i high = _mm_clmulepi64_si128(lanes, fold, 0x11);
        lanes = _mm_xor_si128(_mm_xor_si128(low, high),
                              _mm_loadu_si128((const __m128i *)(const void *)p));
    }
    uint8_t tail[16];
    _mm_storeu_si128((__m128i *)(void *)tail, lanes);
    state = crc64_tables(0, fgw_bytes(tail, sizeof tail));
    return crc64_tables(state, fgw_bytes(p, left));
}
#endif

uint64_t fgw_crc64nvme(uint64_t crc, struct fgw_bytes bytes)
{
    (void)pthread_once(&tables_once, build_tables);
#if defined(__x86_64__)
    if (has_clmul && bytes.len >= 64) {
        return ~crc64_clmul(~crc, bytes);
    }
#endif
    return ~crc64_tables(~crc, bytes);
}
