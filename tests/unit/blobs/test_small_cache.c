/* test_small_cache.c: what is kept, what goes first, and that references outlive it. */
#include "cmocka_all.h"

#include <pthread.h>

#include "base/rng.h"
#include "blobs/small_cache.h"

enum { MIB = 1024 * 1024, SIZE = 4096, MANY = 4000 };

/* The blob of a number: its bytes tell it, its digest is theirs. */
struct sample {
    uint8_t bytes[SIZE];
    struct fgw_cid root;
};

static struct fgw_bytes make_sample(unsigned number, struct sample *out)
{
    memset(out->bytes, (int)(number % 251), SIZE);
    memcpy(out->bytes, &number, sizeof number);
    out->root = fgw_cid_of(FGW_CODEC_RAW, fgw_bytes(out->bytes, SIZE));
    return fgw_bytes(out->bytes, SIZE);
}

static bool is_kept(struct fgw_small_cache *cache, unsigned number)
{
    struct sample sample;
    struct fgw_bytes wanted = make_sample(number, &sample);
    struct fgw_small_blob *blob = fgw_small_cache_look(cache, &sample.root);
    if (blob != NULL) {
        struct fgw_storage_run run;
        assert_int_equal(fgw_small_blob_run(blob, 0, SIZE_MAX, &run), FGW_OK);
        assert_true(fgw_bytes_eq(run.bytes, wanted));
    }
    fgw_small_blob_give(blob);
    return blob != NULL;
}

static void offer(struct fgw_small_cache *cache, unsigned number)
{
    struct sample sample;
    struct fgw_bytes bytes = make_sample(number, &sample);
    fgw_small_cache_offer(cache, &sample.root, bytes);
}

static void the_second_offer_is_taken(void **state)
{
    (void)state;
    struct fgw_small_cache *cache = fgw_small_cache_new(2 * MIB);
    offer(cache, 1);
    assert_false(is_kept(cache, 1));
    offer(cache, 2);
    offer(cache, 1);
    assert_true(is_kept(cache, 1));
    assert_false(is_kept(cache, 2));
    fgw_small_cache_free(cache);
}

static void what_was_used_last_stays(void **state)
{
    (void)state;
    struct fgw_small_cache *cache = fgw_small_cache_new(2 * MIB);
    struct fgw_small_cache_stats stats;
    for (unsigned i = 0; i < MANY; i++) {
        offer(cache, i);
        offer(cache, i);
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

static void what_is_not_kept(void **state)
{
    (void)state;
    uint8_t body[100] = {7};
    struct fgw_bytes bytes = fgw_bytes(body, sizeof body);
    struct fgw_cid root = fgw_cid_of(FGW_CODEC_RAW, bytes);
    struct fgw_cid tree = fgw_cid_make(FGW_CODEC_DAG_PB, fgw_cid_digest(&root));
    struct fgw_small_cache *none = fgw_small_cache_new(0);
    struct fgw_small_cache *cache = fgw_small_cache_new(64 * MIB);
    assert_false(fgw_small_cache_takes(NULL, &root, 100));
    assert_false(fgw_small_cache_takes(none, &root, 100));
    assert_false(fgw_small_cache_takes(cache, &tree, 100));
    assert_false(fgw_small_cache_takes(cache, &root, FGW_SMALL_CACHE_BLOB_MAX + 1));
    assert_true(fgw_small_cache_takes(cache, &root, FGW_SMALL_CACHE_BLOB_MAX));
    fgw_small_cache_free(none);
    fgw_small_cache_free(NULL);
    /* a reference outlives the cache */
    fgw_small_cache_offer(cache, &root, bytes);
    fgw_small_cache_offer(cache, &root, bytes);
    struct fgw_small_blob *blob = fgw_small_cache_look(cache, &root);
    struct fgw_storage_run run;
    assert_non_null(blob);
    fgw_small_cache_free(cache);
    assert_int_equal(fgw_small_blob_run(blob, 90, 5, &run), FGW_OK);
    assert_true(run.bytes.len == 5 && run.fd == -1);
    assert_int_equal(fgw_small_blob_run(blob, 90, 50, &run), FGW_OK);
    assert_int_equal(run.bytes.len, 10);
    assert_int_equal(fgw_small_blob_run(blob, 100, 1, &run), FGW_ERR_END);
    fgw_small_blob_give(blob);
    fgw_small_blob_give(NULL);
}

static void *use(void *arg)
{
    struct fgw_small_cache *cache = arg;
    for (unsigned i = 0; i < MANY; i++) {
        unsigned number = (unsigned)fgw_rng_below(1000);
        if (!is_kept(cache, number)) {
            offer(cache, number);
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
        cmocka_unit_test(what_is_not_kept),
        cmocka_unit_test(the_second_offer_is_taken),
        cmocka_unit_test(threads_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
