/* hash.c: how fast this machine computes the two hashes of an unsigned body, the MD5 of the whole and
 * the SHA-256 of its leaves: what bounds a large PUT when the disk does not.
 *
 *   fgw-hash [THREADS]      (2)
 *
 * Prints {"mb_s": ...}: the sum over the threads, each over a body of its own.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/hash_pair.h"
#include "base/rng.h"

enum { LEAF = 1 << 20, LEAVES = 16, BODIES = 8, THREADS_MAX = 64 };

static void hash_body(struct fgw_bytes body)
{
    uint8_t out[FGW_DIGEST_MAX];
    struct fgw_md5 md5;
    fgw_md5_begin(&md5);
    for (size_t leaf = 0; leaf < LEAVES; leaf++) {
        struct fgw_sha256 sha256;
        fgw_sha256_begin(&sha256);
        fgw_hash_pair_update(&md5, &sha256, fgw_bytes_sub(body, leaf * LEAF, LEAF));
        fgw_sha256_end(&sha256, out);
    }
    fgw_md5_end(&md5, out);
}

static void hash_apart(struct fgw_bytes body)
{
    uint8_t out[FGW_DIGEST_MAX];
    fgw_digest_once(FGW_DIGEST_MD5, body, out);
    for (size_t leaf = 0; leaf < LEAVES; leaf++) {
        fgw_sha256(fgw_bytes_sub(body, leaf * LEAF, LEAF), out);
    }
}

static void *run(void *arg)
{
    uint8_t *bytes = fgw_xmalloc((size_t)LEAVES * LEAF);
    struct fgw_bytes body = fgw_bytes(bytes, (size_t)LEAVES * LEAF);
    fgw_rng_fill(bytes, body.len);
    for (int i = 0; i < BODIES; i++) {
        (fgw_hash_pair_available() ? hash_body : hash_apart)(body);
    }
    fgw_xfree(bytes);
    return arg;
}

int main(int argc, char **argv)
{
    uint64_t threads = 2;
    pthread_t ids[THREADS_MAX];
    if (argc > 1 && (fgw_bytes_to_u64(fgw_bytes_str(argv[1]), &threads) != FGW_OK || threads < 1 ||
                     threads > THREADS_MAX)) {
        (void)fprintf(stderr, "usage: fgw-hash [THREADS]\n");
        return 2;
    }
    uint64_t begun_ns = fgw_clock_boot_ns();
    for (size_t i = 0; i < threads; i++) {
        FGW_CHECK(pthread_create(&ids[i], NULL, run, NULL) == 0);
    }
    for (size_t i = 0; i < threads; i++) {
        (void)pthread_join(ids[i], NULL);
    }
    double seconds = (double)(fgw_clock_boot_ns() - begun_ns) / 1e9;
    double bytes = (double)threads * BODIES * LEAVES * LEAF;
    (void)printf("{\"mb_s\": %.0f}\n", bytes / 1e6 / seconds);
    return 0;
}
