/* log_scan.h: walking a log group forward, batch by batch, and judging what follows the last whole
 * batch (docs/formats/group.md, table "the walk ends"). Used when a directory is opened and when an
 * index is rebuilt. Reads only; one thread. */
#ifndef FGW_STORAGE_LOG_SCAN_H
#define FGW_STORAGE_LOG_SCAN_H

#include "storage/group.h"

enum { FGW_LOG_WINDOW_SIZE = 64 * 1024 };

struct fgw_log_batch {
    uint64_t number;
    bool unsynced;
    uint64_t start;        /* of its first section */
    uint64_t blocks_end;   /* of its first record */
    uint64_t end;          /* behind its last record */
    uint64_t last_record;  /* offset of its last record's section */
    struct fgw_bytes items; /* joined payloads, valid until the next call */
};

struct fgw_log_scan {
    int fd;
    uint64_t group;
    uint64_t size;   /* bytes to look at: file size, or the end a successor names */
    uint64_t offset; /* behind the last whole batch */
    uint64_t previous_record; /* 0 = not known */
    struct fgw_record_opener *opener;
    struct fgw_buf items;
    uint8_t *record; /* FGW_RECORD_SIZE_MAX, twice: as read and opened */
    uint8_t *window;
    uint64_t window_offset;
    size_t window_len;
};

/* fd and opener are borrowed. offset: where a batch may begin. */
void fgw_log_scan_init(struct fgw_log_scan *scan, int fd, uint64_t group, uint64_t size,
                       uint64_t offset, struct fgw_record_opener *opener);
void fgw_log_scan_deinit(struct fgw_log_scan *scan);
/* The next whole batch (its records authentic and complete; its blocks' bytes are not looked at).
 * FGW_ERR_END: clean end. FGW_ERR_CORRUPT: something else than a whole batch stands at
 * scan->offset. FGW_ERR_IO. */
enum fgw_err fgw_log_scan_next(struct fgw_log_scan *scan, struct fgw_log_batch *out_batch) FGW_MUST_CHECK;

/* The record at scan->offset alone: is it the last part of a batch? number and end of *out_batch are
 * set. FGW_ERR_CORRUPT when not. */
enum fgw_err fgw_log_scan_record(struct fgw_log_scan *scan, struct fgw_log_batch *out_batch) FGW_MUST_CHECK;

/* What lies behind scan->offset after FGW_ERR_CORRUPT. */
struct fgw_log_tail {
    bool later_batch; /* an authentic record of a batch above `last` + 1 */
    bool all_unsynced; /* every such record was written without sync */
    uint64_t batch;   /* of the first such record */
    uint64_t offset;  /* of its section */
};
/* last: number of the last whole batch. */
enum fgw_err fgw_log_scan_tail(struct fgw_log_scan *scan, uint64_t last,
                               struct fgw_log_tail *out_tail) FGW_MUST_CHECK;

/* Behind damage: moves to the first record after scan->offset that is authentic and begins a batch
 * above `last`. Blocks before it are passed over. FGW_ERR_END: there is none. */
enum fgw_err fgw_log_scan_resync(struct fgw_log_scan *scan, uint64_t last) FGW_MUST_CHECK;

#endif
