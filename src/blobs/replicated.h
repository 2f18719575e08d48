/* replicated.h: blobs on the stores of a cluster (design/cluster.md sections 2, 3, 5): each blob on
 * every member of a replica set that placement chooses.
 *
 * Writing: blocks go to all members side by side while the next leaf is filled; finish and
 * make_durable succeed when set.needed members have bytes and hold durable. A member that fails or
 * makes no progress for FGW_REMOTE_STALL_MS is left out and reported; with too few members left the
 * write moves to another set, also in the middle of its body (docs/design/cluster.md).
 * Reading: the best member, the next one from the same byte on after an error, a stall or a wrong
 * digest. Whole leaves are checked against the blob's root here, whoever sent them.
 * A member that is this process's own store is used without the network.
 */
#ifndef FGW_BLOBS_REPLICATED_H
#define FGW_BLOBS_REPLICATED_H

#include "blobs/blobs.h"
#include "blobs/placement.h"
#include "blobs/remote.h"

struct fgw_replicated_options {
    const struct fgw_placement *placement;
    struct fgw_remotes *remotes;
    unsigned workers;
    /* The own store of a storage node; NULL without one. */
    struct fgw_storage *storage;
    /* May the own store acknowledge? NULL: always. */
    enum fgw_err (*may_acknowledge)(void *context);
    void *local_context;
    uint64_t
        renew_after_ms; /* age of the holders' last answer at which it is asked for again before
                                a commit; 0: 1 h */
};

struct fgw_replicated_stats {
    uint64_t writes, writes_failed, sets_replaced, members_failed, copies_missing;
    uint64_t reads, read_failovers, reads_failed, digests_checked, digests_wrong, hints_dropped,
        restages, confirmed, confirms_left, renewed, copies_made, reads_hedged, blocks_mended;
};

/* Options are copied, what they point to outlives the result. */
struct fgw_blobs *fgw_blobs_replicated_new(const struct fgw_replicated_options *options);
void fgw_blobs_replicated_stats(struct fgw_blobs *blobs, struct fgw_replicated_stats *out_stats);
/* Every member of the extent's set has the blob, held by the owner, and knows that it is named;
 * copies that were missing are made. From a fiber of a worker. FGW_ERR_NOT_FOUND: the set is not known,
 * or nobody has the blob; else what a member said: it stays as it is, to be tried again. */
enum fgw_err fgw_blobs_replicated_mend(struct fgw_blobs *blobs,
                                       const struct fgw_storage_owner *owner,
                                       const struct fgw_extent *extent,
                                       struct fgw_error *error) FGW_MUST_CHECK;
/* In a fiber of each worker before free: waits for the hints under way there. */
void fgw_blobs_replicated_close_worker(struct fgw_blobs *blobs, unsigned index);
/* Takes NULL; all stages and readers must have ended. */
void fgw_blobs_replicated_free(struct fgw_blobs *blobs);

#endif
