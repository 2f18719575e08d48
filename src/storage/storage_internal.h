/* storage_internal.h: the parts of one open storage. */
#ifndef FGW_STORAGE_STORAGE_INTERNAL_H
#define FGW_STORAGE_STORAGE_INTERNAL_H

#include <stdatomic.h>

#include "event/fiber.h"
#include "kv/kv.h"
#include "storage/bulk.h"
#include "storage/committer.h"
#include "storage/datadir.h"
#include "storage/group_files.h"
#include "storage/log.h"
#include "storage/rows.h"
#include "storage/storage.h"

struct fgw_storage {
    struct fgw_storage_options options;
    struct fgw_datadir dir;
    struct fgw_kv *kv;
    struct fgw_pool *pool;
    struct fgw_group_files files;
    struct fgw_record_opener opener; /* while opening only */
    _Atomic uint64_t last_group;     /* highest group id in use */
    uint64_t opened_boot_ms;
    uint64_t running_base_ms; /* running time when it was opened */
    struct fgw_committer *committer;
    struct fgw_bulk *bulk;
    struct {
        _Atomic uint64_t free_bytes;
        _Atomic uint64_t total_bytes;
        _Atomic uint64_t checked_ms; /* boot clock */
        _Atomic bool below_reserve;
    } space;
};

/* Running time of the engine: what ages are taken from. */
uint64_t fgw_storage_running_ms(const struct fgw_storage *storage);
/* Looks at the file system's free space, at most once a second unless `now`. */
void fgw_storage_check_space(struct fgw_storage *storage, bool now);

/* A group's row. Reads the disk. FGW_ERR_NOT_FOUND. */
enum fgw_err fgw_storage_group_row(struct fgw_storage *storage, uint64_t group,
                                   struct fgw_group_row *out_row) FGW_MUST_CHECK;

#endif
