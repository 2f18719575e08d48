/* rowmap.h: an ordered map of rows changed and not yet in RocksDB: key -> value or "deleted".
 * A skip list whose nodes, keys and values live in the arena handed in; it is emptied as a whole
 * together with the arena. One thread at a time. */
#ifndef FGW_STORAGE_ROWMAP_H
#define FGW_STORAGE_ROWMAP_H

#include "base/arena.h"
#include "base/bytes.h"

enum { FGW_ROWMAP_LEVELS = 12 };

struct fgw_rowmap_row {
    struct fgw_bytes key;
    struct fgw_bytes value;
    bool deleted;
    struct fgw_rowmap_row *next[]; /* private but for next[0] */
};

struct fgw_rowmap {
    struct fgw_arena *arena;
    struct fgw_rowmap_row *first[FGW_ROWMAP_LEVELS];
    size_t count;
    uint64_t random;
};

void fgw_rowmap_init(struct fgw_rowmap *map, struct fgw_arena *arena);
/* Key and value are copied; the row that was there is replaced. */
void fgw_rowmap_put(struct fgw_rowmap *map, struct fgw_bytes key, struct fgw_bytes value);
void fgw_rowmap_delete(struct fgw_rowmap *map, struct fgw_bytes key);
/* NULL when the map says nothing about the key. */
const struct fgw_rowmap_row *fgw_rowmap_get(const struct fgw_rowmap *map, struct fgw_bytes key);
/* First row with a key at or after `key`, deleted ones included; go on with row->next[0]. */
const struct fgw_rowmap_row *fgw_rowmap_seek(const struct fgw_rowmap *map, struct fgw_bytes key);

#endif
