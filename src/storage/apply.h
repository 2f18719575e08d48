/* apply.h: what the items of a batch do to the index (docs/formats/index.md, "Applying items").
 *
 * The same code for live batches and for replay: it reads the index as of the batch before, decides
 * nothing that is not in the items, looks at no clock, and writes one RocksDB batch together with
 * how far the log is applied. Batches must come in order. One thread at a time.
 */
#ifndef FGW_STORAGE_APPLY_H
#define FGW_STORAGE_APPLY_H

#include "kv/kv.h"
#include "storage/rowmap.h"
#include "storage/rows.h"

/* Change of a group's live counts by the batch at hand. */
struct fgw_apply_group {
    uint64_t group;
    int64_t blocks;
    int64_t bytes;
    uint64_t written;
};

struct fgw_apply {
    struct fgw_kv *kv;
    struct fgw_kv_batch *batch;
    struct fgw_arena arena;  /* everything of one batch */
    struct fgw_rowmap rows;  /* index rows as this batch leaves them */
    struct fgw_buf value;
    struct fgw_buf encoded;
    struct fgw_apply_group *groups;
    size_t group_count;
    size_t group_capacity;
    struct fgw_applied applied; /* as of the last batch written */
    uint64_t last_group;        /* highest group id used */
    uint64_t running_ms;        /* of the batch at hand */
    size_t written_bytes;       /* of the last batch written */
    bool lenient;               /* items that do not fit are counted, not refused: after damage */
    uint64_t misfits;
};

/* Reads how far the index is; an empty store is at batch 0. FGW_ERR_CORRUPT also when a batch before
 * the last one is missing: RocksDB's write-ahead log passes over pages that a power cut left zero, so
 * that what was written behind them counts although they are lost (docs/design/storage-notes.md). */
enum fgw_err fgw_apply_init(struct fgw_apply *apply, struct fgw_kv *kv) FGW_MUST_CHECK;
/* The store was opened again: reads anew how far it is. */
enum fgw_err fgw_apply_reload(struct fgw_apply *apply) FGW_MUST_CHECK;
void fgw_apply_deinit(struct fgw_apply *apply);

struct fgw_apply_input {
    struct fgw_bytes items;
    uint64_t batch;
    uint64_t group; /* log group */
    uint64_t end;   /* behind the batch */
    uint64_t last_record;
};
/* FGW_ERR_NEWER_VERSION: an unknown critical item or row; FGW_ERR_CORRUPT: items that do not fit
 * the index; else what RocksDB answered. Nothing is changed then. */
enum fgw_err fgw_apply_batch(struct fgw_apply *apply, const struct fgw_apply_input *input,
                             struct fgw_error *error) FGW_MUST_CHECK;

#endif
