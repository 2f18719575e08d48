/* compact.h: groups whose bytes are mostly dead give their space back (docs/formats/group.md,
 * "Giving a group up"). One fiber at a time; what it is at follows from files and index, so it may
 * stop anywhere and begin again. */
#ifndef FGW_STORAGE_COMPACT_H
#define FGW_STORAGE_COMPACT_H

#include <stdatomic.h>

#include "storage/recover.h"
#include "storage/storage.h"

/* A group without a row, whose file is to go. */
struct fgw_gone_group {
    uint64_t id;
    uint64_t bytes;
    uint64_t batch; /* a verified checkpoint must cover it; 0: not known yet */
    bool counted;   /* its row said that no block is left; else there was no row */
    bool checked;   /* no section of it is one the index points at */
};

struct fgw_compact {
    struct fgw_gone_group *gone;
    size_t gone_count;
    size_t gone_capacity;
    uint64_t *stuck; /* groups with blocks that cannot be moved: not tried again */
    size_t stuck_count;
    _Atomic uint64_t kept;   /* group that somebody reads as a whole: not moved; 0: none */
    _Atomic uint64_t moving; /* group that blocks are being moved out of; 0: none */
    uint64_t idle_batch;     /* last one when care found nothing to do */
    uint64_t flushed_batch;  /* RocksDB was flushed when it had applied this one */
    struct {
        _Atomic uint64_t moved_blocks, moved_bytes, groups, bytes; /* since the process began */
        _Atomic uint64_t waiting_groups, waiting_bytes;
    } figures;
};

/* While opening: files that an earlier process had given up. */
void fgw_compact_find_leftovers(struct fgw_storage *storage, const struct fgw_found_groups *found);
void fgw_compact_deinit(struct fgw_compact *compact);

struct fgw_compact_result {
    uint64_t moved_blocks;
    uint64_t unlinked_groups;
    bool more; /* another pass would find work at once */
};
/* Moves the live blocks of at most one group, then unlinks what may be. FGW_ERR_NOSPACE: there is
 * no room to move anything. */
enum fgw_err fgw_compact_pass(struct fgw_storage *storage,
                              struct fgw_compact_result *out_result) FGW_MUST_CHECK;
/* A job of care. Returns when to call again. */
uint64_t fgw_compact_care(struct fgw_storage *storage);

/* -- what its files share ------------------------------------------------------------------------ */

/* Bytes of groups that wait for a checkpoint (or one group, if that is less): reason to write one. */
enum { FGW_COMPACT_WAITING_BYTES = 1024 * 1024 * 1024 };

uint64_t fgw_compact_last_batch(struct fgw_storage *storage);
void fgw_compact_add_gone(struct fgw_compact *compact, const struct fgw_gone_group *gone);
/* Files that may go. applied_group: log group the index stands in. */
void fgw_compact_unlink(struct fgw_storage *storage, uint64_t applied_group,
                        struct fgw_compact_result *result);
/* Bytes of groups given up that no checkpoint covers. */
uint64_t fgw_compact_uncovered(struct fgw_storage *storage);
void fgw_compact_ask_for_checkpoint(struct fgw_storage *storage);
/* All live blocks of the group, up to file_end (0: the file's end), to the current bulk group. */
enum fgw_err fgw_compact_move(struct fgw_storage *storage, uint64_t group, uint64_t file_end,
                              struct fgw_compact_result *result) FGW_MUST_CHECK;

/* -- reading a group (compact_read.c) -------------------------------------------------------- */

enum {
    FGW_COMPACT_BLOCKS = 64,            /* of one slice */
    FGW_COMPACT_BYTES = 8 * 1024 * 1024 /* at most, but for its first block */
};

struct fgw_compact_block {
    uint8_t digest[FGW_SHA256_SIZE];
    uint8_t codec;
    uint32_t len;
    uint32_t crc32c;
    uint64_t offset;        /* of the section */
    struct fgw_bytes bytes; /* in the slice's buffer */
};

/* Live blocks of a group, in the order of the file. */
struct fgw_compact_slice {
    uint64_t group;
    uint64_t file_end; /* nothing the index knows lies behind it; 0: the file's end */
    uint64_t offset;   /* where the walk goes on; 0 to begin */
    struct fgw_compact_block blocks[FGW_COMPACT_BLOCKS];
    size_t count;
    struct fgw_buf bytes;
    uint64_t rows;      /* of the index that point here, met so far, held or not */
    uint64_t unmovable; /* met so far: bad, or bytes that do not check */
    bool end;           /* the walk is through */
};
/* The next slice. Blocks. FGW_ERR_CORRUPT: the sections cannot be followed any further. */
enum fgw_err fgw_compact_read(struct fgw_storage *storage,
                              struct fgw_compact_slice *slice) FGW_MUST_CHECK;

/* The log goes on in a new group if it still is in this one. From a fiber. */
enum fgw_err fgw_compact_leave_log_group(struct fgw_storage *storage, uint64_t id) FGW_MUST_CHECK;

#endif
