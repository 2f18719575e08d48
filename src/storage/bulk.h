/* bulk.h: bulk groups: where blocks of large bodies go (docs/formats/group.md, "Bulk groups").
 *
 * One appender thread writes whole blocks in file order, one sync thread groups the waits for
 * durability; between them the group's file says how far it is written and how far it is synced. A
 * failed write or sync poisons the file: it is never written or synced again, what was synced
 * before stays good. Fibers call append and sync.
 */
#ifndef FGW_STORAGE_BULK_H
#define FGW_STORAGE_BULK_H

#include "storage/recover.h"
#include "storage/storage.h"

struct fgw_bulk;
struct fgw_bulk_file;

struct fgw_bulk_options {
    struct fgw_datadir *dir;
    struct fgw_record_sealer sealer;
    _Atomic uint64_t *last_group;
    uint64_t group_size;
    bool sync_off;
    /* a group to go on with; id 0: none */
    uint64_t resume_id;
    uint64_t resume_end; /* cut to this length */
};
struct fgw_bulk *fgw_bulk_start(const struct fgw_bulk_options *options);
/* All references must have been given back. Takes NULL. */
void fgw_bulk_stop(struct fgw_bulk *bulk);

/* Where a block was appended. The reference keeps the group from being sealed or compacted until
 * what was appended is held: give it back with fgw_bulk_unref. */
struct fgw_bulk_place {
    struct fgw_bulk_file *file;
    uint64_t group;
    uint64_t offset;
    uint64_t end; /* behind the section: what sync must reach */
};
/* Waits until the block is written (not synced). FGW_ERR_NOSPACE, _IO. */
enum fgw_err fgw_bulk_append(struct fgw_bulk *bulk, const struct fgw_storage_block *block,
                             struct fgw_bulk_place *out_place) FGW_MUST_CHECK;
/* Waits until everything of the file below `end` is durable. FGW_ERR_IO when that failed. */
enum fgw_err fgw_bulk_sync(struct fgw_bulk *bulk, struct fgw_bulk_file *file,
                           uint64_t end) FGW_MUST_CHECK;
void fgw_bulk_unref(struct fgw_bulk *bulk, struct fgw_bulk_file *file);
/* The next block goes to a new group if the one being appended to is still this one. Waits until the
 * appender has left it. */
void fgw_bulk_seal(struct fgw_bulk *bulk, uint64_t group);
/* Is the group being appended to, or does a writer have unheld blocks in it? */
bool fgw_bulk_busy(struct fgw_bulk *bulk, uint64_t group);

#endif
