/* replicated_confirm.c: telling the members of a set that the name for their hold is committed. Batched: a
 * fiber of the worker wakes every second. It tells only of commits that lie before the read of the
 * map that it resolves sets by: a set whose epoch moved until the commit is seen so, and its holds are
 * left to the question of the stores, as are copies that are missing. So one read of the map every two
 * seconds does for all commits what design/cluster.md section 2 asks of each. */
#include "base/clock.h"
#include "base/log.h"
#include "blobs/replicated_internal.h"

enum { FLUSH_MS = 1000, QUEUE_MAX = 20000 };

struct entry {
    struct fgw_list node;
    struct fgw_storage_hold_seen hold; /* its key is behind the struct */
    uint64_t set;
    uint64_t set_epoch;
    uint64_t committed_ms; /* boot clock */
    uint8_t key[];
};

/* A store that is told, and of what. */
struct target {
    struct fgw_placement_set set; /* of one member */
    struct fgw_storage_hold_seen holds[FGW_CONFIRM_BATCH];
    uint32_t count;
};

struct batch {
    struct fgw_replicated *replicated;
    struct fgw_replicated_worker *worker;
    struct entry *entries[FGW_CONFIRM_BATCH];
    unsigned count;
    struct target *targets[FGW_CONFIRM_BATCH];
    unsigned target_count;
};

void fgw_replicated_confirm_init(struct fgw_replicated_worker *worker)
{
    fgw_list_init(&worker->confirms);
}

/* -- a batch ------------------------------------------------------------------------------------- */

static struct target *target_of(struct batch *batch, const struct fgw_placement_member *member)
{
    for (unsigned i = 0; i < batch->target_count; i++) {
        struct target *target = batch->targets[i];
        if (memcmp(target->set.members[0].store_id, member->store_id, FGW_STORAGE_ID_SIZE) == 0) {
            return target;
        }
    }
    if (batch->target_count == FGW_CONFIRM_BATCH) {
        return NULL;
    }
    struct target *target = fgw_xcalloc(1, sizeof *target);
    target->set.count = 1;
    target->set.members[0] = *member;
    batch->targets[batch->target_count++] = target;
    return target;
}

static void add_entry(struct batch *batch, const struct entry *entry,
                      struct fgw_placement_set *scratch)
{
    const struct fgw_placement *placement = batch->replicated->options.placement;
    if (placement->resolve(placement->context, entry->set, scratch) != FGW_OK ||
        scratch->epoch != entry->set_epoch) {
        FGW_REPLICATED_COUNT(batch->replicated, confirms_left);
        return;
    }
    for (unsigned i = 0; i < scratch->count; i++) {
        struct target *target = target_of(batch, &scratch->members[i]);
        if (target != NULL) {
            target->holds[target->count++] = entry->hold;
        }
    }
}

static void tell(struct batch *batch, struct target *target)
{
    struct fgw_member member = {batch->replicated, &target->set, 0};
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = fgw_member_confirm(&member, target->holds, target->count, &error);
    (void)atomic_fetch_add(err == FGW_OK ? &batch->replicated->counters.confirmed
                                         : &batch->replicated->counters.confirms_left,
                           target->count);
    if (err != FGW_OK) {
        fgw_log_debug("blobs", "a store was not told of commits: %s", fgw_error_message(&error));
    }
}

/* The oldest whose sets are known as of after their commit. */
static void take_due(struct batch *batch)
{
    const struct fgw_placement *placement = batch->replicated->options.placement;
    uint64_t seen_ms =
        placement->seen_ms == NULL ? UINT64_MAX : placement->seen_ms(placement->context);
    struct fgw_list *list = &batch->worker->confirms;
    while (batch->count < FGW_CONFIRM_BATCH && !fgw_list_empty(list)) {
        struct entry *entry = FGW_CONTAINER_OF(list->next, struct entry, node);
        if (entry->committed_ms > seen_ms) {
            break;
        }
        fgw_list_remove(&entry->node);
        batch->worker->confirm_count--;
        batch->entries[batch->count++] = entry;
    }
}

/* True when there may be more. */
static bool flush(struct fgw_replicated *replicated, struct fgw_replicated_worker *worker)
{
    struct batch *batch = fgw_xcalloc(1, sizeof *batch);
    struct fgw_placement_set *scratch = fgw_xmalloc(sizeof *scratch);
    batch->replicated = replicated;
    batch->worker = worker;
    take_due(batch);
    for (unsigned i = 0; i < batch->count; i++) {
        add_entry(batch, batch->entries[i], scratch);
    }
    for (unsigned i = 0; i < batch->target_count; i++) {
        tell(batch, batch->targets[i]);
        fgw_xfree(batch->targets[i]);
    }
    for (unsigned i = 0; i < batch->count; i++) {
        fgw_xfree(batch->entries[i]);
    }
    bool more = batch->count == FGW_CONFIRM_BATCH;
    fgw_xfree(scratch);
    fgw_xfree(batch);
    return more;
}

/* -- the fiber ----------------------------------------------------------------------------------- */

struct confirmer {
    struct fgw_replicated *replicated;
    struct fgw_replicated_worker *worker;
};

static void run(void *arg)
{
    struct confirmer *confirmer = arg;
    struct fgw_replicated_worker *worker = confirmer->worker;
    while (!worker->closing && !fgw_list_empty(&worker->confirms)) {
        struct fgw_wait wake;
        fgw_wait_init(&wake, 1);
        worker->confirm_wake = &wake;
        (void)!fgw_wait_until(&wake, fgw_loop_now_ms(fgw_loop_current()) + FLUSH_MS);
        worker->confirm_wake = NULL;
        while (!worker->closing && flush(confirmer->replicated, worker)) {
        }
    }
    worker->confirming = false;
    fgw_xfree(confirmer);
    fgw_replicated_hint_done(worker);
}

void fgw_replicated_confirm_later(struct fgw_replicated *replicated,
                                  const struct fgw_storage_owner *owner,
                                  const struct fgw_extent *extent, uint64_t set_epoch)
{
    struct fgw_replicated_worker *worker = &replicated->per_worker[fgw_worker_index()];
    if (worker->closing || worker->confirm_count >= QUEUE_MAX) {
        FGW_REPLICATED_COUNT(replicated, confirms_left);
        return;
    }
    struct entry *entry = fgw_xmalloc(sizeof *entry + owner->key.len);
    *entry = (struct entry){.hold = {*owner, extent->number, extent->root, extent->size},
                            .set = extent->set,
                            .set_epoch = set_epoch,
                            .committed_ms = fgw_clock_boot_ms()};
    if (owner->key.len > 0) {
        memcpy(entry->key, owner->key.ptr, owner->key.len);
    }
    entry->hold.owner.key = fgw_bytes(entry->key, owner->key.len);
    fgw_list_push_back(&worker->confirms, &entry->node);
    worker->confirm_count++;
    if (!worker->confirming) {
        struct confirmer *confirmer = fgw_xmalloc(sizeof *confirmer);
        *confirmer = (struct confirmer){replicated, worker};
        worker->confirming = true;
        worker->hints++;
        fgw_fiber_spawn(fgw_loop_current(), run, confirmer);
    }
}

void fgw_replicated_confirm_close(struct fgw_replicated_worker *worker)
{
    struct fgw_list *node;
    worker->closing = true;
    if (worker->confirm_wake != NULL) {
        fgw_wait_signal(worker->confirm_wake);
    }
    while ((node = fgw_list_pop_front(&worker->confirms)) != NULL) {
        fgw_xfree(FGW_CONTAINER_OF(node, struct entry, node));
    }
}
