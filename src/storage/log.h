/* log.h: appending to the log group: the place where an operation becomes durable
 * (docs/formats/group.md, "The log group"). Belongs to the committer's thread; opening, to whoever
 * opens the storage. */
#ifndef FGW_STORAGE_LOG_H
#define FGW_STORAGE_LOG_H

#include <stdatomic.h>

#include "storage/datadir.h"
#include "storage/group.h"

struct fgw_log {
    struct fgw_datadir *dir;
    struct fgw_record_sealer sealer;
    _Atomic uint64_t *last_group; /* highest group id in use; shared with the bulk appender */
    uint64_t group_size;
    _Atomic uint64_t seal_wanted; /* group that is to be left although it is not full */
    bool sync_off;
    bool read_only;         /* a write failed and no successor could be opened */
    bool full;              /* the same for want of space: tried again */
    uint64_t full_since_ms; /* boot clock: of the last try */
    int fd;
    uint64_t group;
    uint64_t end;         /* behind the last durable batch */
    uint64_t last_record; /* offset of the last record in this group; 0 = none but the opening */
    uint64_t last_batch;
    uint64_t allocated;  /* zero-filled up to here */
    uint64_t running_ms; /* for opening records */
    struct fgw_buf records;
    struct {
        _Atomic uint64_t count;
        _Atomic uint64_t ns_total;
    } syncs;
};

/* Adopts an open log group. */
struct fgw_log_position {
    int fd;
    uint64_t group;
    uint64_t end;
    uint64_t last_record;
    uint64_t last_batch;
};
void fgw_log_init(struct fgw_log *log, struct fgw_datadir *dir,
                  const struct fgw_record_sealer *sealer, _Atomic uint64_t *last_group);
void fgw_log_adopt(struct fgw_log *log, const struct fgw_log_position *position);
/* Cuts what was preallocated, closes. */
void fgw_log_deinit(struct fgw_log *log);

/* Opens the next log group, whose first record ends the current one (or is the first of all when
 * there is none). The old one is cut unless it is poisoned. */
enum fgw_err fgw_log_rotate(struct fgw_log *log, bool poisoned) FGW_MUST_CHECK;
/* To be called before places are given out: rotates when the group is full, and tries again to when
 * space was missing. FGW_ERR_NOSPACE: not yet. */
enum fgw_err fgw_log_prepare(struct fgw_log *log) FGW_MUST_CHECK;

struct fgw_log_append {
    struct iovec *blocks; /* sections of the batch, as they will lie from log->end on; room for one
                             more entry behind block_count */
    int block_count;
    uint64_t block_bytes;
    struct fgw_bytes items;
};
/* Writes and syncs batch last_batch + 1. On failure nothing of it will ever be replayed, and the
 * log goes on in a new group or is read-only. FGW_ERR_NOSPACE, _IO; _UNKNOWN_OUTCOME: the group could
 * not be ended either, so a restart may find the batch. */
enum fgw_err fgw_log_append(struct fgw_log *log,
                            const struct fgw_log_append *append) FGW_MUST_CHECK;

#endif
