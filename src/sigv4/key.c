/* key.c: see key.h. */
#include "sigv4/key.h"

#include <xxhash.h>

#include "base/check.h"

enum {
    WAYS = 4,
    DEFAULT_ENTRIES = 1024,
    MAX_ENTRIES = 1 << 20,
    MAX_LABEL = FGW_SIG_SCOPE_MAX,
    MAX_SECRET = 128
};

struct entry {
    uint64_t hash;
    uint64_t used_at; /* 0: free */
    size_t label_len;
    size_t secret_len;
    char label[MAX_LABEL]; /* day/region/service */
    uint8_t secret[MAX_SECRET];
    uint8_t key[FGW_SIG_KEY_SIZE];
};

struct fgw_sig_key_cache {
    struct entry *entries;
    size_t entry_count; /* a power of two, at least WAYS */
    uint64_t tick;
    struct fgw_digest digest;
};

struct fgw_sig_key_cache *fgw_sig_key_cache_new(size_t entries)
{
    size_t wanted = entries == 0 ? DEFAULT_ENTRIES : entries;
    size_t count = WAYS;
    while (count < wanted && count < MAX_ENTRIES) {
        count *= 2;
    }
    struct fgw_sig_key_cache *cache = fgw_xcalloc(1, sizeof *cache);
    cache->entries = fgw_xcalloc(count, sizeof *cache->entries);
    cache->entry_count = count;
    return cache;
}

void fgw_sig_key_cache_free(struct fgw_sig_key_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    explicit_bzero(cache->entries, cache->entry_count * sizeof *cache->entries);
    fgw_xfree(cache->entries);
    fgw_digest_deinit(&cache->digest);
    fgw_xfree(cache);
}

struct fgw_digest *fgw_sig_key_cache_digest(struct fgw_sig_key_cache *cache)
{
    return &cache->digest;
}

void fgw_sig_key_derive(struct fgw_bytes secret, const struct fgw_sig_key_scope *scope,
                        uint8_t out_key[FGW_SIG_KEY_SIZE])
{
    struct fgw_buf first;
    uint8_t key[FGW_SIG_KEY_SIZE];
    fgw_buf_init(&first, 0);
    (void)fgw_buf_append_str(&first, "AWS4");
    (void)fgw_buf_append(&first, secret);
    fgw_hmac_sha256(fgw_buf_bytes(&first), scope->day, key);
    fgw_hmac_sha256(fgw_bytes(key, sizeof key), scope->region, key);
    fgw_hmac_sha256(fgw_bytes(key, sizeof key), scope->service, key);
    fgw_hmac_sha256(fgw_bytes(key, sizeof key), FGW_LIT("aws4_request"), out_key);
    explicit_bzero(first.ptr, first.len);
    explicit_bzero(key, sizeof key);
    fgw_buf_deinit(&first);
}

/* "day/region/service"; 0 when it does not fit. */
static size_t make_label(const struct fgw_sig_key_scope *scope, char label[MAX_LABEL])
{
    const struct fgw_bytes parts[] = {scope->day, scope->region, scope->service};
    size_t len = 0;
    for (size_t i = 0; i < FGW_COUNT_OF(parts); i++) {
        if (parts[i].len >= MAX_LABEL - len) {
            return 0;
        }
        if (parts[i].len > 0) {
            memcpy(label + len, parts[i].ptr, parts[i].len);
        }
        len += parts[i].len;
        label[len++] = '/';
    }
    return len;
}

static bool entry_answers(const struct entry *entry, uint64_t hash, struct fgw_bytes label,
                          struct fgw_bytes secret)
{
    return entry->used_at != 0 && entry->hash == hash &&
           fgw_bytes_eq(fgw_bytes(entry->label, entry->label_len), label) &&
           fgw_bytes_eq_secret(fgw_bytes(entry->secret, entry->secret_len), secret);
}

static void entry_fill(struct entry *entry, uint64_t hash, struct fgw_bytes label,
                       struct fgw_bytes secret)
{
    entry->hash = hash;
    entry->label_len = label.len;
    memcpy(entry->label, label.ptr, label.len);
    explicit_bzero(entry->secret, sizeof entry->secret);
    entry->secret_len = secret.len;
    if (secret.len > 0) {
        memcpy(entry->secret, secret.ptr, secret.len);
    }
}

void fgw_sig_key_get(struct fgw_sig_key_cache *cache, struct fgw_bytes secret,
                     const struct fgw_sig_key_scope *scope, uint8_t out_key[FGW_SIG_KEY_SIZE])
{
    char text[MAX_LABEL];
    size_t label_len = cache == NULL || secret.len > MAX_SECRET ? 0 : make_label(scope, text);
    if (label_len == 0) {
        fgw_sig_key_derive(secret, scope, out_key);
        return;
    }
    struct fgw_bytes label = fgw_bytes(text, label_len);
    uint64_t hash = XXH3_64bits_withSeed(label.ptr, label.len,
                                         XXH3_64bits(scope->access_key.ptr, scope->access_key.len));
    struct entry *set = cache->entries + (hash & (cache->entry_count / WAYS - 1)) * WAYS;
    struct entry *oldest = set;
    cache->tick++;
    for (struct entry *entry = set; entry < set + WAYS; entry++) {
        if (entry_answers(entry, hash, label, secret)) {
            entry->used_at = cache->tick;
            memcpy(out_key, entry->key, FGW_SIG_KEY_SIZE);
            return;
        }
        oldest = entry->used_at < oldest->used_at ? entry : oldest;
    }
    entry_fill(oldest, hash, label, secret);
    oldest->used_at = cache->tick;
    fgw_sig_key_derive(secret, scope, oldest->key);
    memcpy(out_key, oldest->key, FGW_SIG_KEY_SIZE);
}
