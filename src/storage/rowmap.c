/* rowmap.c: see rowmap.h. */
#include "storage/rowmap.h"

void fgw_rowmap_init(struct fgw_rowmap *map, struct fgw_arena *arena)
{
    *map = (struct fgw_rowmap){.arena = arena, .random = 0x9e3779b97f4a7c15u};
}

/* Fills, for each level, the pointer that leads to the first row >= key. */
static struct fgw_rowmap_row *find(const struct fgw_rowmap *map, struct fgw_bytes key,
                                   struct fgw_rowmap_row **links[FGW_ROWMAP_LEVELS])
{
    struct fgw_rowmap_row *const *level_links = map->first;
    for (int level = FGW_ROWMAP_LEVELS - 1; level >= 0; level--) {
        while (level_links[level] != NULL && fgw_bytes_cmp(level_links[level]->key, key) < 0) {
            level_links = level_links[level]->next;
        }
        if (links != NULL) {
            links[level] = (struct fgw_rowmap_row **)(uintptr_t)&level_links[level];
        }
    }
    return level_links[0];
}

static int draw_levels(struct fgw_rowmap *map)
{
    map->random ^= map->random << 13;
    map->random ^= map->random >> 7;
    map->random ^= map->random << 17;
    int levels = 1;
    for (uint64_t bits = map->random; (bits & 3) == 0 && levels < FGW_ROWMAP_LEVELS; bits >>= 2) {
        levels++;
    }
    return levels;
}

static struct fgw_rowmap_row *upsert(struct fgw_rowmap *map, struct fgw_bytes key)
{
    struct fgw_rowmap_row **links[FGW_ROWMAP_LEVELS];
    struct fgw_rowmap_row *row = find(map, key, links);
    if (row != NULL && fgw_bytes_eq(row->key, key)) {
        return row;
    }
    int levels = draw_levels(map);
    row = fgw_arena_alloc(map->arena, sizeof *row + (size_t)levels * sizeof row->next[0]);
    row->key = fgw_arena_copy(map->arena, key);
    for (int level = 0; level < levels; level++) {
        row->next[level] = *links[level];
        *links[level] = row;
    }
    map->count++;
    return row;
}

void fgw_rowmap_put(struct fgw_rowmap *map, struct fgw_bytes key, struct fgw_bytes value)
{
    struct fgw_rowmap_row *row = upsert(map, key);
    row->value = fgw_arena_copy(map->arena, value);
    row->deleted = false;
}

void fgw_rowmap_delete(struct fgw_rowmap *map, struct fgw_bytes key)
{
    struct fgw_rowmap_row *row = upsert(map, key);
    row->value = fgw_bytes(NULL, 0);
    row->deleted = true;
}

const struct fgw_rowmap_row *fgw_rowmap_seek(const struct fgw_rowmap *map, struct fgw_bytes key)
{
    return find(map, key, NULL);
}

const struct fgw_rowmap_row *fgw_rowmap_get(const struct fgw_rowmap *map, struct fgw_bytes key)
{
    const struct fgw_rowmap_row *row = find(map, key, NULL);
    return row != NULL && fgw_bytes_eq(row->key, key) ? row : NULL;
}
