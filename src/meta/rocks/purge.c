/* purge.c: rows of completed uploads answer repeats of Complete for 7 days (design/metadata.md section
 * 6) and go then. The table is read in slices; each removal looks at the row again. */
#include "base/clock.h"
#include "meta/rocks/rocks_internal.h"

enum { SLICE = 256 };

#define UPLOAD_KEEP_MS (INT64_C(7) * 24 * 3600 * 1000)

struct purge {
    struct fgw_arena *arena;
    int64_t older_than_ms;
    struct fgw_bytes keys[SLICE];
    size_t count;
    bool full;
};

static bool has_ended(struct fgw_arena *arena, struct fgw_bytes key, struct fgw_bytes row,
                      int64_t older_than_ms)
{
    struct fgw_id id;
    struct fgw_upload upload;
    if (key.len != 1 + sizeof id.bytes) {
        return false;
    }
    memcpy(id.bytes, key.ptr + 1, sizeof id.bytes);
    /* a row that cannot be read, or is of a newer version, stays */
    return fgw_row_decode_upload(arena, &id, row, &upload) == FGW_OK && upload.completed &&
           upload.answer.mtime_ms < older_than_ms;
}

static enum rocks_scan_next look(void *context, struct fgw_bytes key, struct fgw_bytes row,
                                 struct fgw_bytes *out_seek)
{
    struct purge *purge = context;
    (void)out_seek;
    if (!has_ended(purge->arena, key, row, purge->older_than_ms)) {
        return ROCKS_SCAN_NEXT;
    }
    purge->keys[purge->count++] = fgw_arena_copy(purge->arena, key);
    purge->full = purge->count == SLICE;
    return purge->full ? ROCKS_SCAN_STOP : ROCKS_SCAN_NEXT;
}

struct purge_op {
    struct fgw_storage_op op;
    struct purge *purge;
    uint64_t removed;
};

static enum fgw_err evaluate(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct purge_op *self = op->context;
    struct purge *purge = self->purge;
    self->removed = 0;
    for (size_t i = 0; i < purge->count; i++) {
        struct fgw_bytes row;
        enum fgw_err err = fgw_storage_txn_get(txn, purge->keys[i], &row);
        if (err == FGW_ERR_NOT_FOUND) {
            continue;
        }
        if (err != FGW_OK) {
            return err;
        }
        if (has_ended(purge->arena, purge->keys[i], row, purge->older_than_ms)) {
            fgw_storage_txn_delete(txn, purge->keys[i]);
            self->removed++;
        }
    }
    return FGW_OK;
}

enum fgw_err fgw_meta_rocks_purge(struct fgw_meta *meta, uint64_t *out_removed)
{
    struct fgw_arena arena;
    struct purge *purge = fgw_xcalloc(1, sizeof *purge);
    static const uint8_t TABLE[] = {'u'};
    static const uint8_t BEHIND[] = {'u' + 1};
    enum fgw_err err = FGW_OK;
    *out_removed = 0;
    fgw_arena_init(&arena, 0);
    do {
        *purge =
            (struct purge){.arena = &arena, .older_than_ms = fgw_clock_wall_ms() - UPLOAD_KEEP_MS};
        err = rocks_scan(rocks_of(meta), fgw_bytes(TABLE, 1), fgw_bytes(BEHIND, 1), look, purge);
        if (err == FGW_OK && purge->count > 0) {
            struct purge_op self = {.purge = purge};
            self.op = (struct fgw_storage_op){.name = "purge-uploads",
                                              .evaluate = evaluate,
                                              .context = &self,
                                              .frees_space = true};
            err = fgw_storage_commit(rocks_of(meta)->storage, &self.op);
            *out_removed += err == FGW_OK ? self.removed : 0;
        }
        fgw_arena_reset(&arena);
    } while (err == FGW_OK && purge->full);
    fgw_arena_deinit(&arena);
    fgw_xfree(purge);
    return err;
}
