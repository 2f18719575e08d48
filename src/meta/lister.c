/* lister.c: see lister.h; spec/s3-wire.md items 27 to 35. */
#include "meta/lister.h"

#include "base/check.h"

bool fgw_prefix_successor(struct fgw_buf *out, struct fgw_bytes prefix)
{
    while (prefix.len > 0 && prefix.ptr[prefix.len - 1] == 0xff) {
        prefix.len--;
    }
    if (prefix.len == 0) {
        return false;
    }
    fgw_buf_clear(out);
    (void)fgw_buf_append(out, prefix);
    out->ptr[out->len - 1]++;
    return true;
}

void fgw_lister_init(struct fgw_lister *lister, struct fgw_arena *arena,
                     const struct fgw_list_query *query)
{
    FGW_CHECK(query->max >= 1);
    *lister = (struct fgw_lister){.arena = arena, .query = query};
    lister->entries = fgw_arena_alloc(arena, (query->max + 1U) * sizeof *lister->entries);
    fgw_buf_init(&lister->seek, 0);
}

void fgw_lister_deinit(struct fgw_lister *lister)
{
    fgw_buf_deinit(&lister->seek);
}

/* The common prefix that key falls under, or an empty view. */
static struct fgw_bytes common_prefix(const struct fgw_list_query *query, struct fgw_bytes key)
{
    if (query->delimiter.len == 0 || !fgw_bytes_starts_with(key, query->prefix)) {
        return fgw_bytes(NULL, 0);
    }
    size_t at = fgw_bytes_find(key, query->delimiter, query->prefix.len);
    return at == SIZE_MAX ? fgw_bytes(NULL, 0) : fgw_bytes(key.ptr, at + query->delimiter.len);
}

struct fgw_bytes fgw_lister_start(struct fgw_lister *lister)
{
    const struct fgw_list_query *query = lister->query;
    fgw_buf_clear(&lister->seek);
    if (query->after.len == 0 || fgw_bytes_cmp(query->after, query->prefix) < 0) {
        (void)fgw_buf_append(&lister->seek, query->prefix);
        return fgw_buf_bytes(&lister->seek);
    }
    struct fgw_bytes skip = common_prefix(query, query->after);
    if (skip.len > 0) {
        lister->skip_prefix = skip; /* the query outlives the lister */
        if (fgw_prefix_successor(&lister->seek, skip)) {
            return fgw_buf_bytes(&lister->seek);
        }
    }
    (void)fgw_buf_append(&lister->seek, query->after);
    if (!query->has_after_version && skip.len == 0) {
        (void)fgw_buf_append_byte(&lister->seek, 0); /* the first key behind `after` */
    }
    return fgw_buf_bytes(&lister->seek);
}

static enum fgw_lister_next skip_to(struct fgw_lister *lister, struct fgw_bytes prefix)
{
    lister->skip_prefix = prefix;
    return fgw_prefix_successor(&lister->seek, prefix) ? FGW_LISTER_SEEK : FGW_LISTER_DONE;
}

/* Room for one entry, or full. */
static struct fgw_list_entry *next_entry(struct fgw_lister *lister)
{
    if (lister->count == lister->query->max) {
        lister->full = true;
        return NULL;
    }
    struct fgw_list_entry *entry = &lister->entries[lister->count++];
    memset(entry, 0, sizeof *entry);
    return entry;
}

enum fgw_lister_next fgw_lister_key(struct fgw_lister *lister, struct fgw_bytes key, bool visible,
                                    bool *out_take)
{
    const struct fgw_list_query *query = lister->query;
    *out_take = false;
    if (!fgw_bytes_starts_with(key, query->prefix)) {
        return FGW_LISTER_DONE;
    }
    if (lister->skip_prefix.len > 0 && fgw_bytes_starts_with(key, lister->skip_prefix)) {
        return skip_to(lister, lister->skip_prefix);
    }
    if (!visible) {
        return FGW_LISTER_NEXT;
    }
    struct fgw_bytes prefix = common_prefix(query, key);
    if (prefix.len == 0) {
        *out_take = true;
        return FGW_LISTER_NEXT;
    }
    struct fgw_list_entry *entry = next_entry(lister);
    if (entry == NULL) {
        return FGW_LISTER_DONE;
    }
    entry->is_prefix = true;
    entry->prefix = fgw_arena_copy(lister->arena, prefix);
    return skip_to(lister, entry->prefix);
}

struct fgw_bytes fgw_lister_seek(const struct fgw_lister *lister)
{
    return fgw_buf_bytes(&lister->seek);
}

struct fgw_object *fgw_lister_slot(struct fgw_lister *lister)
{
    struct fgw_list_entry *entry = next_entry(lister);
    return entry == NULL ? NULL : &entry->object;
}

enum fgw_lister_next fgw_lister_add(struct fgw_lister *lister, const struct fgw_object *object)
{
    struct fgw_object *slot = fgw_lister_slot(lister);
    if (slot == NULL) {
        return FGW_LISTER_DONE;
    }
    *slot = *object;
    return FGW_LISTER_NEXT;
}

void fgw_lister_result(const struct fgw_lister *lister, struct fgw_object_list *out_list)
{
    *out_list = (struct fgw_object_list){lister->entries, lister->count, lister->full};
}
