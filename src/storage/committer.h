/* committer.h: the one thread that decides what happens, and the one that makes it visible.
 *
 * Workers push requests; the committer takes what is there, evaluates each against RocksDB and the
 * overlay of batches in flight, appends the batch to the log, syncs, and hands it to the applier,
 * which writes it to RocksDB and answers. At most BATCHES_IN_FLIGHT batches are synced and not yet
 * applied. (design/storage.md section 3, docs/design/storage-notes.md 1, 2)
 */
#ifndef FGW_STORAGE_COMMITTER_H
#define FGW_STORAGE_COMMITTER_H

#include "event/fiber.h"
#include "storage/log.h"
#include "storage/storage.h"

struct fgw_committer;
struct fgw_apply;

/* A row (or a range) that was not in memory, for the worker to read. */
struct fgw_missed {
    struct fgw_missed *next;
    int family; /* enum fgw_kv_family */
    bool range;
    struct fgw_bytes lower; /* the key, when no range */
    struct fgw_bytes upper;
};

/* One operation on its way; lives in the waiting fiber's frame. */
struct fgw_request {
    struct fgw_request *next;
    struct fgw_task task;
    struct fgw_wait wait;
    struct fgw_loop *loop;
    struct fgw_storage_op *op;
    struct fgw_missed *missed;
    unsigned rounds; /* how often it was evaluated */
    enum fgw_err result;
};

struct fgw_committer_options {
    struct fgw_storage *storage;
    struct fgw_record_sealer sealer;
    struct fgw_log_position position;
    struct fgw_apply *apply; /* taken over */
};
struct fgw_committer *fgw_committer_start(const struct fgw_committer_options *options);
/* Answers what is queued, joins both threads. */
void fgw_committer_stop(struct fgw_committer *committer);
/* From any thread: request->loop's task comes back with the result. */
void fgw_committer_push(struct fgw_committer *committer, struct fgw_request *request);

/* The next batch goes to a new log group if the one being written is still this one. Any thread. */
void fgw_committer_seal(struct fgw_committer *committer, uint64_t group);

struct fgw_committer_stats {
    uint64_t batches, operations, syncs, sync_ns_total, applied_batch, last_batch;
    uint64_t log_group, log_end;
    uint64_t record_bytes; /* of items, since the start */
    bool read_only;
};
void fgw_committer_stats(struct fgw_committer *committer, struct fgw_committer_stats *out_stats);

#endif
