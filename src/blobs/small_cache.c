/* small_cache.c: see small_cache.h. A shard is a hash table with chains and a list in order of use; digests
 * are even already, their first bytes choose shard and chain. */
#include "blobs/small_cache.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/check.h"
#include "base/list.h"

enum { SHARDS = 16, CHAINS = 2048, OFFERED = 4096, ENTRY_COST = 128 };

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
    uint64_t offered[OFFERED]; /* of digests that were not kept; a later one takes the place */
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

static uint64_t cost_of(uint64_t len)
{
    return len + ENTRY_COST;
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

bool fgw_small_cache_takes(const struct fgw_small_cache *cache, const struct fgw_cid *root,
                           uint64_t size)
{
    return cache != NULL && size <= FGW_SMALL_CACHE_BLOB_MAX &&
           cost_of(size) <= cache->shard_max_bytes && fgw_cid_codec(root) == FGW_CODEC_RAW;
}

struct fgw_small_blob *fgw_small_cache_look(struct fgw_small_cache *cache,
                                            const struct fgw_cid *root)
{
    const uint8_t *digest = fgw_cid_digest(root);
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

/* The first time it is only remembered. */
static bool offered_before(struct shard *shard, const uint8_t *digest)
{
    uint64_t *place = &shard->offered[fgw_get_u32le(digest + 5) % OFFERED];
    uint64_t mark = fgw_get_u64le(digest + 9) | 1;
    bool before = *place == mark;
    *place = mark;
    return before;
}

static void keep(struct shard *shard, const uint8_t *digest, struct fgw_bytes bytes)
{
    struct fgw_small_blob *blob = fgw_xmalloc(sizeof *blob + bytes.len);
    *blob = (struct fgw_small_blob){.refs = 1, .len = bytes.len};
    memcpy(blob->digest, digest, sizeof blob->digest);
    memcpy(blob->bytes, bytes.ptr, bytes.len);
    shard->bytes += cost_of(bytes.len);
    fgw_list_push_front(chain_of(shard, digest), &blob->chain);
    fgw_list_push_front(&shard->used, &blob->used);
}

void fgw_small_cache_offer(struct fgw_small_cache *cache, const struct fgw_cid *root,
                           struct fgw_bytes bytes)
{
    const uint8_t *digest = fgw_cid_digest(root);
    struct shard *shard = shard_of(cache, digest);
    (void)pthread_mutex_lock(&shard->mutex);
    if (offered_before(shard, digest) && find(shard, digest) == NULL) {
        while (shard->bytes + cost_of(bytes.len) > cache->shard_max_bytes) {
            drop(shard, FGW_CONTAINER_OF(shard->used.prev, struct fgw_small_blob, used));
        }
        keep(shard, digest, bytes);
    }
    (void)pthread_mutex_unlock(&shard->mutex);
}

enum fgw_err fgw_small_blob_run(const struct fgw_small_blob *blob, uint64_t offset, size_t want,
                                struct fgw_storage_run *out_run)
{
    if (offset >= blob->len) {
        return FGW_ERR_END;
    }
    struct fgw_bytes all = fgw_bytes(blob->bytes, blob->len);
    *out_run =
        (struct fgw_storage_run){.bytes = fgw_bytes_sub(all, (size_t)offset, want), .fd = -1};
    return FGW_OK;
}

void fgw_small_blob_give(struct fgw_small_blob *blob)
{
    if (blob != NULL && atomic_fetch_sub(&blob->refs, 1) == 1) {
        fgw_xfree(blob);
    }
}
