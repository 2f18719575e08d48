/* storage_internal.h: the parts of one open storage. */
#ifndef FGW_STORAGE_STORAGE_INTERNAL_H
#define FGW_STORAGE_STORAGE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "event/fiber.h"
#include "kv/kv.h"
#include "storage/backup.h"
#include "storage/bulk.h"
#include "storage/care.h"
#include "storage/checkpoint.h"
#include "storage/committer.h"
#include "storage/compact.h"
#include "storage/datadir.h"
#include "storage/group_files.h"
#include "storage/log.h"
#include "storage/open_progress.h"
#include "storage/pending.h"
#include "storage/release.h"
#include "storage/rows.h"
#include "storage/scrub_care.h"
#include "storage/sessions.h"
#include "storage/storage.h"
#include "storage/sweep.h"

struct fgw_storage {
    struct fgw_storage_options options;
    struct fgw_datadir dir;
    struct fgw_kv *kv;
    struct fgw_pool *pool;
    struct fgw_group_files files;
    struct fgw_record_opener opener; /* while opening only */
    struct fgw_open_progress progress;
    _Atomic uint64_t last_group; /* highest group id in use */
    uint64_t opened_boot_ms;
    uint64_t running_base_ms; /* running time when it was opened */
    struct fgw_committer *committer;
    struct fgw_bulk *bulk;
    struct {
        _Atomic uint64_t free_bytes;
        _Atomic uint64_t total_bytes;
        _Atomic uint64_t checked_ms; /* boot clock */
        _Atomic uint64_t used_bytes; /* written since */
        _Atomic bool below_reserve;
    } space;
    struct fgw_storage_recovery recovered; /* by opening */
    struct fgw_sessions sessions;
    struct fgw_release release;
    struct fgw_pending pending;
    struct fgw_sweep sweep;
    struct fgw_scrub_care scrub;
    struct fgw_compact compact;
    uint64_t log_group_at_open;
    struct fgw_care *care;
    _Atomic uint64_t unsynced_index_bytes;
    struct {
        struct fgw_checkpoint_info newest; /* whoever has `busy` */
        uint64_t last_id;                  /* highest in use */
        uint64_t damaged_id;               /* found damaged; 0: none */
        uint64_t loaded_id;                /* the index was made from it while opening */
        uint64_t log_bytes;                /* of the log behind the newest one when it was opened */
        uint64_t record_bytes;             /* the committer's count when the newest one was begun */
        bool found_verified;               /* those that opening found were read back */
        _Atomic uint64_t verified_batch;   /* covered by one that was read back */
        _Atomic uint64_t covered_batch;    /* covered by two that were read back */
        _Atomic bool busy;
        _Atomic bool wanted; /* although it is not due yet */
    } checkpoint;
    struct fgw_backup_state backup;
    struct {
        pthread_mutex_t mutex;
        unsigned holders;   /* nothing may be unlinked */
        unsigned unlinking; /* at this moment */
    } groups_held;
    struct {
        _Atomic uint64_t groups, log_bytes, bulk_bytes, live_bytes, dead_bytes, blocks;
        _Atomic uint64_t spared_bytes; /* not written, as the store had them */
    } figures;
};

/* Each user gets one of its own: two with one salt would use nonces twice. */
struct fgw_record_sealer fgw_storage_sealer(const struct fgw_storage *storage);
/* Running time of the engine: what ages are taken from. */
uint64_t fgw_storage_running_ms(const struct fgw_storage *storage);
/* Looks at the file system's free space; unless `now`, at most once a second, oftener when little
 * is left. */
void fgw_storage_check_space(struct fgw_storage *storage, bool now);
/* Free bytes below which writes that add bytes are refused. */
uint64_t fgw_storage_reserve(const struct fgw_storage *storage);
/* What work within the reserve leaves of it to others: `most` or a quarter. */
uint64_t fgw_storage_reserve_part(const struct fgw_storage *storage, uint64_t most);
/* At open: groups are not larger than the reserve (or 64 MiB). */
void fgw_storage_limit_groups(struct fgw_storage *storage);

/* Commits items as they are: outcomes of the engine's own work. They free space, or stand for bytes
 * that are on disk already: allowed below the reserve. From a fiber. */
enum fgw_err fgw_storage_commit_items(struct fgw_storage *storage, const char *name,
                                      struct fgw_buf *items) FGW_MUST_CHECK;
/* A row of the index, replacing the contents of *out. From a fiber. FGW_ERR_NOT_FOUND. */
enum fgw_err fgw_storage_index_get(struct fgw_storage *storage, const struct fgw_row_key *key,
                                   struct fgw_buf *out) FGW_MUST_CHECK;
/* The index's block at this place is damaged: logged, unless that cannot be done now. From a fiber. */
void fgw_storage_mark_bad(struct fgw_storage *storage, const uint8_t digest[FGW_SHA256_SIZE],
                          uint64_t group, uint64_t offset);
/* Sums up the group rows for stats: blocks outside of a fiber. */
void fgw_figures_refresh(struct fgw_storage *storage);

/* Around each unlink of a file in groups/ or checkpoints/, from any thread. False: somebody counts on
 * what lies there, not now. */
bool fgw_storage_begin_unlink(struct fgw_storage *storage) FGW_MUST_CHECK;
void fgw_storage_end_unlink(struct fgw_storage *storage);
/* fgw_storage_checkpoint; by_care: ends with FGW_ERR_CANCELLED when care is to end. */
enum fgw_err fgw_checkpoint_write(struct fgw_storage *storage, bool by_care,
                                  struct fgw_storage_checkpoint *out_checkpoint) FGW_MUST_CHECK;
/* One pass of care: verifies the checkpoints found at open, writes one when it is due. */
enum fgw_err fgw_checkpoint_care(struct fgw_storage *storage) FGW_MUST_CHECK;

/* Size of a group's file; 0: there is none. */
uint64_t fgw_storage_group_bytes(const struct fgw_storage *storage, uint64_t group);
/* A group's row. Reads the disk. FGW_ERR_NOT_FOUND. */
enum fgw_err fgw_storage_group_row(struct fgw_storage *storage, uint64_t group,
                                   struct fgw_group_row *out_row) FGW_MUST_CHECK;

#endif
