/* drop.c: a store that has left a set gives up what it holds of it, one hold at a time, once every
 * member that is there says that it has the blob; what one lacks it gets first (design/cluster.md
 * section 2).
 *
 * The store might join the set again just now, and whoever copies then would count our hold. So the
 * hold ends only within CLUSTER_DROP_MS of sending the read that shows us outside, while those who
 * copy wait CLUSTER_SETTLE_MS after they learn that we join: they come later and find it gone.
 * The time is looked at where the release is ordered, in the commit. Fibers of worker 0. */
#include "base/clock.h"
#include "cluster/cluster_internal.h"

_Static_assert(CLUSTER_DROP_MS + 500 < CLUSTER_SETTLE_MS, "the one ends before the other begins");

static bool row_has(const struct cluster_set_row *row, const uint8_t *id)
{
    for (unsigned i = 0; i < row->count + row->joining; i++) {
        if (memcmp(row->members[i], id, FGW_STORAGE_ID_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

/* A member as the map knows it; false when it is not there. */
static bool find_member(struct fgw_cluster *cluster, const uint8_t *id,
                        struct fgw_placement_member *out)
{
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    const struct cluster_store *store = cluster_map_store(&cluster->guarded.map, id);
    bool there =
        store != NULL && (store->state == CLUSTER_ACTIVE || store->state == CLUSTER_DRAINING);
    if (there) {
        cluster_member_of(store, out);
    }
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    return there;
}

/* Every full member that is there has the blob afterwards; at least one. */
static enum fgw_err members_have(struct fgw_cluster *cluster,
                                 const struct fgw_storage_hold_seen *hold,
                                 const struct cluster_set_row *row, struct fgw_error *error)
{
    unsigned have = 0;
    enum fgw_err err = FGW_OK;
    struct fgw_placement_member *member = fgw_xmalloc(sizeof *member);
    for (unsigned i = 0; i < row->count && err == FGW_OK; i++) {
        uint64_t bytes = 0;
        struct fgw_remote_target target = {
            .member = member, .set = row->id, .set_epoch = row->epoch};
        if (find_member(cluster, row->members[i], member)) {
            err = cluster_copy(cluster, hold, &target, &bytes, error);
            have += err == FGW_OK;
        }
    }
    fgw_xfree(member);
    if (err == FGW_OK && have == 0) {
        err = fgw_error_set(error, FGW_ERR_UNAVAILABLE, "No member of the set is there.");
    }
    return err;
}

/* CANCELLED: we are in it. */
static enum fgw_err read_outside(struct fgw_cluster *cluster, uint64_t set,
                                 struct cluster_set_row *out, struct fgw_error *error)
{
    enum fgw_err err = cluster_set_read(cluster, set, out, error);
    if (err == FGW_OK && row_has(out, cluster->store_id)) {
        cluster_set_deinit(out);
        err = FGW_ERR_CANCELLED;
    }
    return err;
}

/* For each set that is named: we are outside, and its members have the blob of `hold`; or, hold NULL, it is
 * as it was then. epochs: those read, or those that were. */
static enum fgw_err check_sets(struct fgw_cluster *cluster,
                               const struct fgw_storage_hold_seen *hold,
                               const struct fgw_cluster_named *named, uint64_t *epochs,
                               struct fgw_error *error)
{
    enum fgw_err err = FGW_OK;
    for (unsigned i = 0; i < named->count && err == FGW_OK; i++) {
        struct cluster_set_row row;
        err = read_outside(cluster, named->sets[i], &row, error);
        if (err != FGW_OK) {
            break;
        }
        if (hold != NULL) {
            epochs[i] = row.epoch;
            err = members_have(cluster, hold, &row, error);
        } else {
            err = row.epoch == epochs[i] ? FGW_OK : FGW_ERR_CANCELLED;
        }
        cluster_set_deinit(&row);
    }
    return err;
}

enum fgw_err fgw_cluster_hand_over(struct fgw_cluster *cluster,
                                   const struct fgw_storage_hold_seen *hold,
                                   const struct fgw_cluster_named *named, struct fgw_error *error)
{
    uint64_t epochs[FGW_COUNT_OF(named->sets)] = {0};
    return check_sets(cluster, hold, named, epochs, error);
}

struct ending {
    const struct fgw_storage_hold_seen *hold;
    uint64_t sent_ms;
};

static enum fgw_err end_hold(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    const struct ending *ending = op->context;
    if (fgw_clock_boot_ms() - ending->sent_ms > CLUSTER_DROP_MS) {
        return FGW_ERR_CANCELLED;
    }
    fgw_storage_txn_release(txn, ending->hold->owner.owner_id, ending->hold->extent,
                            &ending->hold->root);
    return FGW_OK;
}

enum fgw_err cluster_drop(struct fgw_cluster *cluster, const struct fgw_storage_hold_seen *hold,
                          const struct fgw_cluster_named *named, struct fgw_error *error)
{
    uint64_t epochs[FGW_COUNT_OF(named->sets)] = {0};
    enum fgw_err err = check_sets(cluster, hold, named, epochs, error);
    struct ending ending = {hold, fgw_clock_boot_ms()};
    if (err == FGW_OK) {
        err = check_sets(cluster, NULL, named, epochs, error);
    }
    if (err == FGW_OK) {
        struct fgw_storage_op op = {
            .name = "drop", .evaluate = end_hold, .context = &ending, .frees_space = true};
        err = fgw_storage_commit(cluster->options.storage, &op);
    }
    return err;
}
