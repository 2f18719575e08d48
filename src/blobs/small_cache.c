/* small_cache.c: see small_cache.h. A shard is a hash table with chains and a list in order of use; digests
 * are even already, their first bytes choose shard and chain. */
#include "blobs/small_cache.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/list.h"

enum { SHARDS = 16, CHAINS = 2048, ENTRY_COST = 128 };

struct fgw_small_blob {
    struct fgw_list chain;
    struct fgw_list used; /* the one used last in front */
    _Atomic unsigned refs;
    uint8_t digest[FGW_SHA256_SIZE];
    size_t len;
    uint8_t bytes[];
};

struct shard {
    pthread_mutex_t mutex;
    struct fgw_list chains[CHAINS];
    struct fgw_list used;
    uint64_t bytes;
    uint64_t hits, misses;
};

struct fgw_small_cache {
    uint64_t shard_max_bytes;
    struct shard shards[SHARDS];
};

struct fgw_small_cache *fgw_small_cache_new(uint64_t max_bytes)
{
    struct fgw_small_cache *cache = fgw_xcalloc(1, sizeof *cache);
    cache->shard_max_bytes = max_bytes / SHARDS;
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        (void)pthread_mutex_init(&shard->mutex, NULL);
        fgw_list_init(&shard->used);
        for (size_t c = 0; c < CHAINS; c++) {
            fgw_list_init(&shard->chains[c]);
        }
    }
    return cache;
}

static struct shard *shard_of(struct fgw_small_cache *cache, const uint8_t *digest)
{
    return &cache->shards[digest[0] % SHARDS];
}

static struct fgw_list *chain_of(struct shard *shard, const uint8_t *digest)
{
    return &shard->chains[fgw_get_u32le(digest + 1) % CHAINS];
}

static uint64_t cost_of(size_t len)
{
    return (uint64_t)len + ENTRY_COST;
}

static struct fgw_small_blob *find(struct shard *shard, const uint8_t *digest)
{
    struct fgw_list *chain = chain_of(shard, digest);
    for (struct fgw_list *at = chain->next; at != chain; at = at->next) {
        struct fgw_small_blob *blob = FGW_CONTAINER_OF(at, struct fgw_small_blob, chain);
        if (memcmp(blob->digest, digest, FGW_SHA256_SIZE) == 0) {
            return blob;
        }
    }
    return NULL;
}

static void drop(struct shard *shard, struct fgw_small_blob *blob)
{
    shard->bytes -= cost_of(blob->len);
    fgw_list_remove(&blob->chain);
    fgw_list_remove(&blob->used);
    fgw_small_blob_give(blob);
}

void fgw_small_cache_free(struct fgw_small_cache *cache)
{
    for (size_t i = 0; cache != NULL && i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        while (!fgw_list_empty(&shard->used)) {
            drop(shard, FGW_CONTAINER_OF(shard->used.prev, struct fgw_small_blob, used));
        }
        (void)pthread_mutex_destroy(&shard->mutex);
    }
    fgw_xfree(cache);
}

void fgw_small_cache_stats(struct fgw_small_cache *cache, struct fgw_small_cache_stats *out_stats)
{
    *out_stats = (struct fgw_small_cache_stats){0};
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        (void)pthread_mutex_lock(&shard->mutex);
        out_stats->hits += shard->hits;
        out_stats->misses += shard->misses;
        out_stats->bytes += shard->bytes;
        (void)pthread_mutex_unlock(&shard->mutex);
    }
}

struct fgw_small_blob *fgw_small_cache_take(struct fgw_small_cache *cache,
                                            const uint8_t digest[FGW_SHA256_SIZE])
{
    struct shard *shard = shard_of(cache, digest);
    (void)pthread_mutex_lock(&shard->mutex);
    struct fgw_small_blob *blob = find(shard, digest);
    if (blob != NULL) {
        (void)atomic_fetch_add(&blob->refs, 1);
        fgw_list_remove(&blob->used);
        fgw_list_push_front(&shard->used, &blob->used);
        shard->hits++;
    } else {
        shard->misses++;
    }
    (void)pthread_mutex_unlock(&shard->mutex);
    return blob;
}

void fgw_small_cache_put(struct fgw_small_cache *cache, const uint8_t digest[FGW_SHA256_SIZE],
                         struct fgw_bytes bytes)
{
    uint64_t cost = cost_of(bytes.len);
    if (bytes.len > FGW_SMALL_CACHE_BLOB_MAX || cost > cache->shard_max_bytes) {
        return;
    }
    struct fgw_small_blob *blob = fgw_xmalloc(sizeof *blob + bytes.len);
    *blob = (struct fgw_small_blob){.refs = 1, .len = bytes.len};
    memcpy(blob->digest, digest, sizeof blob->digest);
    if (bytes.len > 0) {
        memcpy(blob->bytes, bytes.ptr, bytes.len);
    }
    struct shard *shard = shard_of(cache, digest);
    (void)pthread_mutex_lock(&shard->mutex);
    bool there = find(shard, digest) != NULL;
    while (!there && shard->bytes + cost > cache->shard_max_bytes) {
        drop(shard, FGW_CONTAINER_OF(shard->used.prev, struct fgw_small_blob, used));
    }
    if (!there) {
        shard->bytes += cost;
        fgw_list_push_front(chain_of(shard, digest), &blob->chain);
        fgw_list_push_front(&shard->used, &blob->used);
    }
    (void)pthread_mutex_unlock(&shard->mutex);
    if (there) {
        fgw_xfree(blob);
    }
}

struct fgw_bytes fgw_small_blob_bytes(const struct fgw_small_blob *blob)
{
    return fgw_bytes(blob->bytes, blob->len);
}

void fgw_small_blob_give(struct fgw_small_blob *blob)
{
    if (blob != NULL && atomic_fetch_sub(&blob->refs, 1) == 1) {
        fgw_xfree(blob);
    }
}
