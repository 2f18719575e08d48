/* txn.h: evaluation of one operation on the committer thread: reads through the overlay, collects
 * the outcome as items. */
#ifndef FGW_STORAGE_TXN_H
#define FGW_STORAGE_TXN_H

#include "storage/committer.h"
#include "storage/items.h"
#include "storage/rowmap.h"
#include "storage/rows.h"
#include "kv/kv.h"

enum { FGW_BATCHES_IN_FLIGHT = 4, FGW_TXN_ROUNDS_MAX = 8 };

/* What one batch changes and RocksDB may not have yet. */
struct fgw_overlay {
    struct fgw_arena arena;
    struct fgw_rowmap names; /* rows as they will be */
    struct fgw_rowmap index; /* index keys it touches, without values */
    bool drops_blocks;       /* of a slice: which ones is not known here */
};

struct fgw_storage_txn {
    struct fgw_storage *storage;
    struct fgw_request *request;
    /* newest first; [0] is the batch being built */
    const struct fgw_overlay *overlays[FGW_BATCHES_IN_FLIGHT + 1];
    size_t overlay_count;
    struct {
        struct fgw_arena arena;
        struct fgw_rowmap rows; /* as RocksDB has them, read for this batch: overlays are newer */
    } common;
    struct fgw_arena arena; /* values handed out during one evaluation */
    struct fgw_buf value;
    struct fgw_buf items;      /* the operation's outcome */
    uint64_t log_group;        /* where blocks of the operation will lie */
    uint64_t log_offset;
    uint64_t block_bytes;      /* sections of the operation */
    struct fgw_storage_place *places; /* of its holds */
    size_t place_capacity;
    bool deferred;    /* met an index row in flight */
    bool on_unsynced; /* read a row of the batch being built: a refusal waits for its sync */
};

void fgw_txn_init(struct fgw_storage_txn *txn, struct fgw_storage *storage);
void fgw_txn_deinit(struct fgw_storage_txn *txn);
/* Before the first operation of a batch. */
void fgw_txn_begin_batch(struct fgw_storage_txn *txn);
/* Runs holds and evaluate of txn->request. FGW_OK: txn->items is the outcome. FGW_ERR_AGAIN: rows
 * are missing (request->missed). FGW_ERR_UNAVAILABLE with *out_defer: depends on an index row that
 * a batch in flight changes: to be tried when that is applied. Others: the operation's answer. */
enum fgw_err fgw_txn_run(struct fgw_storage_txn *txn, bool *out_defer) FGW_MUST_CHECK;
/* Enters what txn->items changes. */
enum fgw_err fgw_overlay_note(struct fgw_overlay *overlay, struct fgw_bytes items) FGW_MUST_CHECK;

/* For operations of the engine itself: raw items; index rows as of everything before (same codes as
 * fgw_storage_txn_get; a row in flight makes fgw_txn_run defer the operation). */
struct fgw_buf *fgw_txn_items(struct fgw_storage_txn *txn);
enum fgw_err fgw_txn_index_get(struct fgw_storage_txn *txn, const struct fgw_row_key *key,
                               struct fgw_bytes *out_value) FGW_MUST_CHECK;

/* Reads what the request missed (on the pool) and forgets the list. */
void fgw_missed_read(struct fgw_kv *kv, struct fgw_request *request);
void fgw_missed_free(struct fgw_request *request);

#endif
