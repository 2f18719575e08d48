/* replicated_internal.h: what member.c, replicated.c and replicated_read.c share. */
#ifndef FGW_BLOBS_REPLICATED_INTERNAL_H
#define FGW_BLOBS_REPLICATED_INTERNAL_H

#include <stdatomic.h>

#include "blobs/replicated.h"
#include "event/fiber.h"
#include "event/workers.h"

struct fgw_replicated_worker {
    unsigned hints; /* fibers under way */
    struct fgw_wait *no_hints;
};

struct fgw_replicated {
    struct fgw_blobs base;
    struct fgw_replicated_options options;
    struct fgw_replicated_worker *per_worker;
    struct {
        _Atomic uint64_t writes, writes_failed, sets_replaced, members_failed, copies_missing;
        _Atomic uint64_t reads, read_failovers, reads_failed, digests_checked, digests_wrong;
        _Atomic uint64_t hints_dropped;
    } counters;
};

static inline struct fgw_replicated *fgw_replicated_of(struct fgw_blobs *blobs)
{
    return FGW_CONTAINER_OF(blobs, struct fgw_replicated, base);
}

/* -- member.c: one member of a set, here or elsewhere -------------------------------------------- */

struct fgw_member {
    struct fgw_replicated *replicated;
    const struct fgw_placement_set *set;
    unsigned index;
};

struct fgw_member_writer {
    struct fgw_storage_writer *local;
    struct fgw_remote_writer *remote;
};

struct fgw_member_reader {
    struct fgw_storage_reader *local;
    struct fgw_remote_reader *remote;
};

/* One extent of an owner, and the blob that it names. */
struct fgw_member_hold {
    const struct fgw_storage_owner *owner;
    uint64_t extent;
    const struct fgw_cid *root;
    uint64_t size;
};

static inline const struct fgw_placement_member *fgw_member_of(const struct fgw_member *member)
{
    return &member->set->members[member->index];
}
/* block NULL: a further hold on a blob that is there. Durable when it returns. */
enum fgw_err fgw_member_hold(const struct fgw_member *member, const struct fgw_member_hold *hold,
                             const struct fgw_storage_block *block,
                             struct fgw_error *error) FGW_MUST_CHECK;
void fgw_member_release(const struct fgw_member *member, const struct fgw_member_hold *hold);
enum fgw_err fgw_member_writer_open(const struct fgw_member *member,
                                    const struct fgw_storage_owner *owner, uint64_t extent,
                                    struct fgw_member_writer *out_writer,
                                    struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_member_writer_add(struct fgw_member_writer *writer,
                                   const struct fgw_storage_block *block, bool leaf,
                                   struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_member_writer_finish(const struct fgw_member *member,
                                      struct fgw_member_writer *writer, const struct fgw_cid *root,
                                      uint64_t size, struct fgw_error *error) FGW_MUST_CHECK;
void fgw_member_writer_close(struct fgw_member_writer *writer);
enum fgw_err fgw_member_reader_open(const struct fgw_member *member,
                                    const struct fgw_extent *extent, uint64_t offset, uint64_t len,
                                    struct fgw_member_reader *out_reader,
                                    struct fgw_error *error) FGW_MUST_CHECK;
void fgw_member_reader_close(struct fgw_member_reader *reader);
/* Tells placement how the store did. */
void fgw_member_report(const struct fgw_member *member, enum fgw_err err,
                       const struct fgw_cid *root);

/* Runs fn(context, i) for i in [0, count) in fibers side by side and waits for all. */
void fgw_member_run_all(unsigned count, void (*fn)(void *context, unsigned index), void *context);

/* -- replicated_read.c --------------------------------------------------------------------------- */

enum fgw_err fgw_replicated_read_open(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                                      struct fgw_blob_reader **out_reader,
                                      struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_replicated_read_next(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                                      bool prefer_memory,
                                      struct fgw_storage_run *out_run) FGW_MUST_CHECK;
enum fgw_err fgw_replicated_read_leaf(struct fgw_blob_reader *reader, uint64_t leaf,
                                      uint8_t out_digest[FGW_SHA256_SIZE]) FGW_MUST_CHECK;
void fgw_replicated_read_close(struct fgw_blob_reader *reader);

#endif
