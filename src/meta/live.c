/* live.c: which sets name a blob; see meta.h, "liveness". */
#include "meta/meta.h"

static void note_set(struct fgw_blob_live *live, uint64_t set)
{
    for (unsigned i = 0; i < live->count; i++) {
        if (live->sets[i] == set) {
            return;
        }
    }
    if (live->count == FGW_META_LIVE_SETS) {
        live->any_set = true; /* more than can be told */
        return;
    }
    live->sets[live->count++] = set;
}

void fgw_blob_live_note(struct fgw_blob_live *live, const struct fgw_extent *extents, size_t count,
                        const struct fgw_cid *root)
{
    for (size_t i = 0; i < count; i++) {
        if (fgw_cid_eq(&extents[i].root, root)) {
            live->live = true;
            note_set(live, extents[i].set);
        }
    }
}
