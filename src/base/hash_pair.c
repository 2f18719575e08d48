/* hash_pair.c: see hash_pair.h. The processor finds the independent steps by itself when they stand
 * close together: four of MD5, then the four rounds of SHA-256 that two instructions make. */
#include "base/hash_pair.h"

#include "base/check.h"

enum { BLOCK = 64 };

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define SHA_TARGET __attribute__((target("sha,sse4.1,ssse3")))

/* FIPS 180-4, 4.2.2 */
static const uint32_t SHA_K[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

struct sha_registers {
    __m128i abef, cdgh;
};

bool fgw_hash_pair_available(void)
{
    static _Atomic int known = 0; /* 1: no, 2: yes */
    if (known == 0) {
        unsigned a = 0;
        unsigned b = 0;
        unsigned c = 0;
        unsigned d = 0;
        bool sse =
            __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSSE3) != 0 && (c & bit_SSE4_1) != 0;
        bool sha = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
        known = sse && sha ? 2 : 1;
    }
    return known == 2;
}

SHA_TARGET static inline struct sha_registers sha_load(const uint32_t state[8])
{
    __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)state);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    return (struct sha_registers){_mm_alignr_epi8(cdab, efgh, 8),
                                  _mm_blend_epi16(efgh, cdab, 0xf0)};
}

SHA_TARGET static inline __attribute__((always_inline)) void sha_store(struct sha_registers r,
                                                                       uint32_t state[8])
{
    __m128i feba = _mm_shuffle_epi32(r.abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(r.cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

/* Rounds 4 * group to 4 * group + 3; the words of group + 4 replace those of group. */
SHA_TARGET static inline __attribute__((always_inline)) void
sha_rounds(struct sha_registers *r, __m128i w[4], unsigned group)
{
    __m128i *now = &w[group % 4];
    __m128i k =
        _mm_add_epi32(*now, _mm_load_si128((const __m128i *)(const void *)(SHA_K + 4 * group)));
    r->cdgh = _mm_sha256rnds2_epu32(r->cdgh, r->abef, k);
    r->abef = _mm_sha256rnds2_epu32(r->abef, r->cdgh, _mm_shuffle_epi32(k, 0x0e));
    if (group < 12) {
        __m128i last = w[(group + 3) % 4];
        __m128i next = _mm_sha256msg1_epu32(*now, w[(group + 1) % 4]);
        next = _mm_add_epi32(next, _mm_alignr_epi8(last, w[(group + 2) % 4], 4));
        *now = _mm_sha256msg2_epu32(next, last);
    }
}

/* One step of MD5 (RFC 1321, 3.4); `f` is added in parts so that what does not depend on the step
 * before is ready early. */
#define MD5_STEP(f1, f2, a, b, word, k, shift) \
    a += (word) + (k) + (f1); \
    a += (f2); \
    a = (a << (shift) | a >> (32 - (shift))) + (b)
#define F_STEP(a, b, c, d, i, k, s) MD5_STEP(0, (d ^ (b & (c ^ d))), a, b, pair->x[i], k, s)
#define G_STEP(a, b, c, d, i, k, s) MD5_STEP((c & ~d), (b & d), a, b, pair->x[i], k, s)
#define H_STEP(a, b, c, d, i, k, s) MD5_STEP(0, (b ^ (c ^ d)), a, b, pair->x[i], k, s)
#define I_STEP(a, b, c, d, i, k, s) MD5_STEP(0, (c ^ (b | ~d)), a, b, pair->x[i], k, s)
/* In a function with a, b, c, d and pair: four steps, then four rounds of SHA-256 beside them. */
#define FOUR(STEP, group, i0, k0, s0, i1, k1, s1, i2, k2, s2, i3, k3, s3) \
    STEP(a, b, c, d, i0, k0, s0); \
    STEP(d, a, b, c, i1, k1, s1); \
    STEP(c, d, a, b, i2, k2, s2); \
    STEP(b, c, d, a, i3, k3, s3); \
    sha_rounds(&pair->sha, pair->w, group)
#define F_FOUR(group, i, k0, k1, k2, k3) \
    FOUR(F_STEP, group, i, k0, 7, i + 1, k1, 12, i + 2, k2, 17, i + 3, k3, 22)
#define G_FOUR(group, i, k0, k1, k2, k3) \
    FOUR(G_STEP, group, i, k0, 5, (i + 5) % 16, k1, 9, (i + 10) % 16, k2, 14, (i + 15) % 16, k3, 20)
#define H_FOUR(group, i, k0, k1, k2, k3) \
    FOUR(H_STEP, group, i, k0, 4, (i + 3) % 16, k1, 11, (i + 6) % 16, k2, 16, (i + 9) % 16, k3, 23)
#define I_FOUR(group, i, k0, k1, k2, k3) \
    FOUR(I_STEP, group, i, k0, 6, (i + 7) % 16, k1, 10, (i + 14) % 16, k2, 15, (i + 5) % 16, k3, 21)

/* One block of each on its way: MD5's registers and words, SHA-256's registers and words. */
struct pair {
    uint32_t a, b, c, d;
    uint32_t x[16];
    struct sha_registers sha;
    __m128i w[4];
};

SHA_TARGET static inline __attribute__((always_inline)) void first_round(struct pair *pair)
{
    uint32_t a = pair->a;
    uint32_t b = pair->b;
    uint32_t c = pair->c;
    uint32_t d = pair->d;
    F_FOUR(0, 0, 0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee);
    F_FOUR(1, 4, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501);
    F_FOUR(2, 8, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be);
    F_FOUR(3, 12, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821);
    pair->a = a;
    pair->b = b;
    pair->c = c;
    pair->d = d;
}

SHA_TARGET static inline __attribute__((always_inline)) void second_round(struct pair *pair)
{
    uint32_t a = pair->a;
    uint32_t b = pair->b;
    uint32_t c = pair->c;
    uint32_t d = pair->d;
    G_FOUR(4, 1, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa);
    G_FOUR(5, 5, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8);
    G_FOUR(6, 9, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed);
    G_FOUR(7, 13, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a);
    pair->a = a;
    pair->b = b;
    pair->c = c;
    pair->d = d;
}

SHA_TARGET static inline __attribute__((always_inline)) void third_round(struct pair *pair)
{
    uint32_t a = pair->a;
    uint32_t b = pair->b;
    uint32_t c = pair->c;
    uint32_t d = pair->d;
    H_FOUR(8, 5, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c);
    H_FOUR(9, 1, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70);
    H_FOUR(10, 13, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05);
    H_FOUR(11, 9, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665);
    pair->a = a;
    pair->b = b;
    pair->c = c;
    pair->d = d;
}

SHA_TARGET static inline __attribute__((always_inline)) void fourth_round(struct pair *pair)
{
    uint32_t a = pair->a;
    uint32_t b = pair->b;
    uint32_t c = pair->c;
    uint32_t d = pair->d;
    I_FOUR(12, 0, 0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039);
    I_FOUR(13, 12, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1);
    I_FOUR(14, 8, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1);
    I_FOUR(15, 4, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391);
    pair->a = a;
    pair->b = b;
    pair->c = c;
    pair->d = d;
}

SHA_TARGET static void both_blocks(uint32_t md5[4], uint32_t sha256[8], const uint8_t *at,
                                   size_t blocks)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    struct sha_registers sha = sha_load(sha256);
    for (; blocks > 0; blocks--, at += BLOCK) {
        struct pair pair = {.a = md5[0], .b = md5[1], .c = md5[2], .d = md5[3], .sha = sha};
        memcpy(pair.x, at, sizeof pair.x);
        for (int i = 0; i < 4; i++) {
            __m128i words = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
            pair.w[i] = _mm_shuffle_epi8(words, swap);
        }
        first_round(&pair);
        second_round(&pair);
        third_round(&pair);
        fourth_round(&pair);
        md5[0] += pair.a;
        md5[1] += pair.b;
        md5[2] += pair.c;
        md5[3] += pair.d;
        sha.abef = _mm_add_epi32(sha.abef, pair.sha.abef);
        sha.cdgh = _mm_add_epi32(sha.cdgh, pair.sha.cdgh);
    }
    sha_store(sha, sha256);
}

#else

bool fgw_hash_pair_available(void)
{
    return false;
}

static void both_blocks(uint32_t md5[4], uint32_t sha256[8], const uint8_t *at, size_t blocks)
{
    (void)md5;
    (void)sha256;
    (void)at;
    FGW_CHECK(blocks == 0);
}

#endif

void fgw_md5_begin(struct fgw_md5 *md5)
{
    *md5 = (struct fgw_md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

void fgw_sha256_begin(struct fgw_sha256 *sha256)
{
    *sha256 = (struct fgw_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void fgw_hash_pair_update(struct fgw_md5 *md5, struct fgw_sha256 *sha256, struct fgw_bytes bytes)
{
    size_t held = (size_t)(md5->len % BLOCK);
    FGW_CHECK(held == sha256->len % BLOCK);
    if (bytes.len == 0) {
        return;
    }
    md5->len += bytes.len;
    sha256->len += bytes.len;
    if (held > 0) {
        struct fgw_bytes fill = fgw_bytes_sub(bytes, 0, BLOCK - held);
        memcpy(md5->rest + held, fill.ptr, fill.len);
        memcpy(sha256->rest + held, md5->rest + held, fill.len);
        bytes = fgw_bytes_sub(bytes, fill.len, SIZE_MAX);
        if (held + fill.len < BLOCK) {
            return;
        }
        both_blocks(md5->state, sha256->state, sha256->rest, 1);
    }
    size_t blocks = bytes.len / BLOCK;
    if (blocks > 0) {
        both_blocks(md5->state, sha256->state, bytes.ptr, blocks);
    }
    struct fgw_bytes rest = fgw_bytes_sub(bytes, blocks * BLOCK, SIZE_MAX);
    if (rest.len > 0) {
        memcpy(md5->rest, rest.ptr, rest.len);
        memcpy(sha256->rest, rest.ptr, rest.len);
    }
}

/* What stands behind the last byte: 80, zeros, the length in bits; one block or two. */
static size_t padding(uint64_t len, const uint8_t *rest, bool big_endian, uint8_t out[2 * BLOCK])
{
    size_t held = (size_t)(len % BLOCK);
    size_t size = held + 9 <= BLOCK ? BLOCK : 2 * BLOCK;
    memset(out, 0, 2 * BLOCK);
    memcpy(out, rest, held);
    out[held] = 0x80;
    (big_endian ? fgw_put_u64be : fgw_put_u64le)(out + size - 8, len * 8);
    return size / BLOCK;
}

void fgw_md5_end(const struct fgw_md5 *md5, uint8_t out[FGW_MD5_SIZE])
{
    uint8_t last[2 * BLOCK];
    uint32_t state[4];
    struct fgw_sha256 beside;
    memcpy(state, md5->state, sizeof state);
    fgw_sha256_begin(&beside);
    both_blocks(state, beside.state, last, padding(md5->len, md5->rest, false, last));
    for (size_t i = 0; i < 4; i++) {
        fgw_put_u32le(out + 4 * i, state[i]);
    }
}

void fgw_sha256_end(const struct fgw_sha256 *sha256, uint8_t out[FGW_SHA256_SIZE])
{
    uint8_t last[2 * BLOCK];
    uint32_t state[8];
    struct fgw_md5 beside;
    memcpy(state, sha256->state, sizeof state);
    fgw_md5_begin(&beside);
    both_blocks(beside.state, state, last, padding(sha256->len, sha256->rest, true, last));
    for (size_t i = 0; i < 8; i++) {
        fgw_put_u32be(out + 4 * i, state[i]);
    }
}
