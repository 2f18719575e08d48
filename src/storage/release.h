/* release.h: frees what nothing holds any more: queue (`q`) and dropped lists (`p`) of
 * docs/formats/index.md. Work goes in slices, each a logged operation, so it may stop anywhere and
 * begin again. Called from one fiber at a time. */
#ifndef FGW_STORAGE_RELEASE_H
#define FGW_STORAGE_RELEASE_H

#include "storage/storage.h"

struct fgw_release {
    uint64_t from_ms;       /* nothing older waits in the queue */
    uint8_t (*orphans)[16]; /* lists whose writers died with an earlier process */
    size_t orphan_count;
};

struct fgw_release_result {
    uint64_t blocks;
    uint64_t blobs;
    uint64_t owners;
    uint64_t slices;
    bool more; /* call again at once */
};

/* As fgw_storage_release, all of them in one commit; count may be 0. */
enum fgw_err fgw_release_holds(struct fgw_storage *storage,
                               const struct fgw_storage_hold_seen *holds,
                               size_t count) FGW_MUST_CHECK;
/* While opening: finds lists that no writer of this process can belong to. */
enum fgw_err fgw_release_find_orphans(struct fgw_storage *storage) FGW_MUST_CHECK;
void fgw_release_deinit(struct fgw_release *release);
/* One slice of each kind of work that is due. */
enum fgw_err fgw_release_pass(struct fgw_storage *storage,
                              struct fgw_release_result *out_result) FGW_MUST_CHECK;

#endif
