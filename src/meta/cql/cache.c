/* cache.c: bucket and identity rows that a worker has read a moment ago. Ages run on the boot clock
 * from when the read was sent; a change by this process makes all older entries void. */
#include <xxhash.h>

#include "meta/cql/cql_internal.h"

enum { SLOTS = 512, VALUE_MAX = 32 * 1024 };

struct slot {
    uint64_t generation;
    uint64_t read_ms;
    bool used;
    struct fgw_buf key;
    struct fgw_buf value;
};

struct cql_cache {
    struct slot slots[SLOTS];
};

struct cql_cache *cql_cache_new(void)
{
    return fgw_xcalloc(1, sizeof(struct cql_cache));
}

void cql_cache_free(struct cql_cache *cache)
{
    for (size_t i = 0; cache != NULL && i < SLOTS; i++) {
        fgw_buf_deinit(&cache->slots[i].key);
        fgw_buf_deinit(&cache->slots[i].value);
    }
    fgw_xfree(cache);
}

void cql_changed(struct cql *cql)
{
    atomic_fetch_add(&cql->generation, 1);
}

static struct slot *slot_of(struct cql *cql, struct fgw_bytes key)
{
    return &cql_worker(cql)->cache->slots[XXH3_64bits(key.ptr, key.len) % SLOTS];
}

enum fgw_err cql_cache_get(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes key,
                           uint64_t max_age_ms, struct fgw_bytes *out_value)
{
    struct slot *slot = slot_of(cql, key);
    if (!slot->used || slot->generation != atomic_load(&cql->generation) ||
        cql_now_ms() - slot->read_ms > max_age_ms ||
        !fgw_bytes_eq(fgw_buf_bytes(&slot->key), key)) {
        return FGW_ERR_NOT_FOUND;
    }
    *out_value = fgw_arena_copy(arena, fgw_buf_bytes(&slot->value));
    return FGW_OK;
}

void cql_cache_put(struct cql *cql, struct fgw_bytes key, struct fgw_bytes value,
                   uint64_t generation, uint64_t read_ms)
{
    struct slot *slot = slot_of(cql, key);
    if (value.len > VALUE_MAX) {
        return;
    }
    fgw_buf_clear(&slot->key);
    fgw_buf_clear(&slot->value);
    (void)fgw_buf_append(&slot->key, key);
    (void)fgw_buf_append(&slot->value, value);
    slot->generation = generation;
    slot->read_ms = read_ms;
    slot->used = true;
}

void cql_cache_drop(struct cql *cql, struct fgw_bytes key)
{
    struct slot *slot = slot_of(cql, key);
    if (fgw_bytes_eq(fgw_buf_bytes(&slot->key), key)) {
        slot->used = false;
    }
}
