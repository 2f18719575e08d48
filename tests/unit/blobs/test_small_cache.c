/* test_small_cache.c: what is kept, what goes first, and that references outlive it. */
#include "cmocka_all.h"

#include <pthread.h>

#include "base/digest.h"
#include "base/rng.h"
#include "blobs/small_cache.h"

enum { MIB = 1024 * 1024, SIZE = 4096, MANY = 4000 };

/* The blob of a number: its bytes tell it, its digest is theirs. */
struct sample {
    uint8_t bytes[SIZE];
    uint8_t digest[FGW_SHA256_SIZE];
};

static struct fgw_bytes make_sample(unsigned number, struct sample *out)
{
    memset(out->bytes, (int)(number % 251), SIZE);
    memcpy(out->bytes, &number, sizeof number);
    fgw_sha256(fgw_bytes(out->bytes, SIZE), out->digest);
    return fgw_bytes(out->bytes, SIZE);
}

static bool is_kept(struct fgw_small_cache *cache, unsigned number)
{
    struct sample sample;
    struct fgw_bytes wanted = make_sample(number, &sample);
    struct fgw_small_blob *blob = fgw_small_cache_take(cache, sample.digest);
    if (blob != NULL) {
        assert_true(fgw_bytes_eq(fgw_small_blob_bytes(blob), wanted));
    }
    fgw_small_blob_give(blob);
    return blob != NULL;
}

static void put(struct fgw_small_cache *cache, unsigned number)
{
    struct sample sample;
    struct fgw_bytes bytes = make_sample(number, &sample);
    fgw_small_cache_put(cache, sample.digest, bytes);
}

static void what_was_used_last_stays(void **state)
{
    (void)state;
    struct fgw_small_cache *cache = fgw_small_cache_new(2 * MIB);
    struct fgw_small_cache_stats stats;
    for (unsigned i = 0; i < MANY; i++) {
        put(cache, i);
        put(cache, i);
        assert_true(is_kept(cache, 0)); /* used all the time */
    }
    fgw_small_cache_stats(cache, &stats);
    assert_true(stats.bytes <= 2 * MIB);
    assert_true(stats.bytes > MIB);
    assert_int_equal(stats.hits, MANY);
    assert_true(is_kept(cache, MANY - 1));
    assert_false(is_kept(cache, 1));
    fgw_small_cache_free(cache);
}

static void bounds(void **state)
{
    (void)state;
    static uint8_t body[FGW_SMALL_CACHE_BLOB_MAX + 1];
    struct fgw_small_cache *none = fgw_small_cache_new(0);
    struct fgw_small_cache *cache = fgw_small_cache_new(64 * MIB);
    uint8_t digest[FGW_SHA256_SIZE] = {1};
    fgw_small_cache_put(none, digest, fgw_bytes(body, 1));
    assert_null(fgw_small_cache_take(none, digest));
    fgw_small_cache_put(cache, digest, fgw_bytes(body, sizeof body));
    assert_null(fgw_small_cache_take(cache, digest));
    fgw_small_cache_put(cache, digest, fgw_bytes(NULL, 0));
    struct fgw_small_blob *blob = fgw_small_cache_take(cache, digest);
    assert_non_null(blob);
    assert_int_equal(fgw_small_blob_bytes(blob).len, 0);
    /* a reference outlives the cache */
    fgw_small_cache_free(cache);
    assert_int_equal(fgw_small_blob_bytes(blob).len, 0);
    fgw_small_blob_give(blob);
    fgw_small_blob_give(NULL);
    fgw_small_cache_free(none);
    fgw_small_cache_free(NULL);
}

static void *use(void *arg)
{
    struct fgw_small_cache *cache = arg;
    for (unsigned i = 0; i < MANY; i++) {
        unsigned number = (unsigned)fgw_rng_below(1000);
        if (!is_kept(cache, number)) {
            put(cache, number);
        }
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    (void)state;
    struct fgw_small_cache *cache = fgw_small_cache_new(2 * MIB);
    struct fgw_small_cache_stats stats;
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use, cache), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    fgw_small_cache_stats(cache, &stats);
    assert_int_equal(stats.hits + stats.misses, 4 * MANY);
    assert_true(stats.bytes <= 2 * MIB);
    fgw_small_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_used_last_stays),
        cmocka_unit_test(bounds),
        cmocka_unit_test(threads_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
