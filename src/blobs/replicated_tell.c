/* replicated_tell.c: what the members of sets are told of holds, batched: a fiber of the worker wakes
 * every second.
 * Names that are committed (CONFIRM): only commits that lie before the read of the map that it resolves
 * sets by: a set whose epoch moved until the commit is seen so, and its holds are left to the question
 * of the stores, as are copies that are missing. So one read of the map every two seconds does for all
 * commits what design/cluster.md section 2 asks of each.
 * Rows that are gone (RELEASE): hints, nobody waits for them, and one that is lost is found by the
 * sweeper; what waits when the process ends is told before. */
#include "base/clock.h"
#include "base/log.h"
#include "blobs/replicated_internal.h"

enum { FLUSH_MS = 1000, QUEUE_MAX = 20000 };

/* A hold, waiting. */
struct entry {
    struct fgw_list node;
    struct fgw_storage_hold_seen hold; /* its key is behind the struct */
    uint64_t set;
    uint64_t set_epoch;    /* of commits only, as the next one */
    uint64_t committed_ms; /* boot clock */
    uint8_t key[];
};

/* A store that is told, and of what. */
struct target {
    struct fgw_placement_set set; /* of one member */
    struct fgw_storage_hold_seen holds[FGW_TELL_BATCH];
    uint32_t count;
};

struct batch {
    struct fgw_replicated *replicated;
    struct fgw_replicated_worker *worker;
    bool releases; /* else commits */
    struct entry *entries[FGW_TELL_BATCH];
    unsigned count;
    struct target *targets[FGW_TELL_BATCH];
    unsigned target_count;
};

void fgw_replicated_tell_init(struct fgw_replicated_worker *worker)
{
    fgw_list_init(&worker->confirms.list);
    fgw_list_init(&worker->releases.list);
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
    if (batch->target_count == FGW_TELL_BATCH) {
        return NULL;
    }
    struct target *target = fgw_xcalloc(1, sizeof *target);
    target->set.count = 1;
    target->set.members[0] = *member;
    batch->targets[batch->target_count++] = target;
    return target;
}

/* Whom it concerns now. */
static bool resolve(struct batch *batch, const struct entry *entry, struct fgw_placement_set *out)
{
    const struct fgw_placement *placement = batch->replicated->options.placement;
    bool known = placement->resolve(placement->context, entry->set, out) == FGW_OK;
    if (batch->releases && !known) {
        FGW_REPLICATED_COUNT(batch->replicated, hints_dropped);
    } else if (!batch->releases && (!known || out->epoch != entry->set_epoch)) {
        FGW_REPLICATED_COUNT(batch->replicated, confirms_left);
        known = false;
    }
    return known;
}

static void add_entry(struct batch *batch, const struct entry *entry,
                      struct fgw_placement_set *scratch)
{
    if (!resolve(batch, entry, scratch)) {
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
    if (batch->releases) {
        fgw_member_release(&member, target->holds, target->count);
        return;
    }
    fgw_error_init(&error);
    enum fgw_err err = fgw_member_confirm(&member, target->holds, target->count, &error);
    (void)atomic_fetch_add(err == FGW_OK ? &batch->replicated->counters.confirmed
                                         : &batch->replicated->counters.confirms_left,
                           target->count);
    if (err != FGW_OK) {
        fgw_log_debug("blobs", "a store was not told of commits: %s", fgw_error_message(&error));
    }
}

static struct fgw_told_queue *queue_of(const struct batch *batch)
{
    return batch->releases ? &batch->worker->releases : &batch->worker->confirms;
}

/* The oldest; of commits those whose sets are known as of after them. */
static void take_due(struct batch *batch)
{
    const struct fgw_placement *placement = batch->replicated->options.placement;
    uint64_t seen_ms = batch->releases || placement->seen_ms == NULL
                           ? UINT64_MAX
                           : placement->seen_ms(placement->context);
    struct fgw_told_queue *queue = queue_of(batch);
    while (batch->count < FGW_TELL_BATCH && !fgw_list_empty(&queue->list)) {
        struct entry *entry = FGW_CONTAINER_OF(queue->list.next, struct entry, node);
        if (entry->committed_ms > seen_ms) {
            break;
        }
        fgw_list_remove(&entry->node);
        queue->count--;
        batch->entries[batch->count++] = entry;
    }
}

/* True when there may be more. */
static bool flush(struct fgw_replicated *replicated, struct fgw_replicated_worker *worker,
                  bool releases)
{
    struct batch *batch = fgw_xcalloc(1, sizeof *batch);
    struct fgw_placement_set *scratch = fgw_xmalloc(sizeof *scratch);
    batch->replicated = replicated;
    batch->worker = worker;
    batch->releases = releases;
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
    bool more = batch->count == FGW_TELL_BATCH;
    fgw_xfree(scratch);
    fgw_xfree(batch);
    return more;
}

/* -- the fiber ----------------------------------------------------------------------------------- */

struct teller {
    struct fgw_replicated *replicated;
    struct fgw_replicated_worker *worker;
};

static void wait_for_more(struct fgw_replicated_worker *worker)
{
    struct fgw_wait wake;
    fgw_wait_init(&wake, 1);
    worker->tell_wake = &wake;
    (void)!fgw_wait_until(&wake, fgw_loop_now_ms(fgw_loop_current()) + FLUSH_MS);
    worker->tell_wake = NULL;
}

/* Commits are dropped when the worker closes: what is not told is asked for by the stores. */
static void run(void *arg)
{
    struct teller *teller = arg;
    struct fgw_replicated_worker *worker = teller->worker;
    while (!fgw_list_empty(&worker->confirms.list) || !fgw_list_empty(&worker->releases.list)) {
        if (!worker->closing) {
            wait_for_more(worker);
        }
        while (flush(teller->replicated, worker, true)) {
        }
        while (!worker->closing && flush(teller->replicated, worker, false)) {
        }
    }
    worker->telling = false;
    fgw_xfree(teller);
    fgw_replicated_hint_done(worker);
}

static void start_telling(struct fgw_replicated *replicated, struct fgw_replicated_worker *worker)
{
    if (!worker->telling) {
        struct teller *teller = fgw_xmalloc(sizeof *teller);
        *teller = (struct teller){replicated, worker};
        worker->telling = true;
        worker->hints++;
        fgw_fiber_spawn(fgw_loop_current(), run, teller);
    }
}

static bool has_room(const struct fgw_replicated_worker *worker, const struct fgw_told_queue *queue)
{
    return !worker->closing && queue->count < QUEUE_MAX;
}

static struct entry *enter(struct fgw_told_queue *queue, const struct fgw_storage_owner *owner,
                           const struct fgw_extent *extent)
{
    struct entry *entry = fgw_xmalloc(sizeof *entry + owner->key.len);
    *entry = (struct entry){.hold = {*owner, extent->number, extent->root, extent->size},
                            .set = extent->set};
    if (owner->key.len > 0) {
        memcpy(entry->key, owner->key.ptr, owner->key.len);
    }
    entry->hold.owner.key = fgw_bytes(entry->key, owner->key.len);
    fgw_list_push_back(&queue->list, &entry->node);
    queue->count++;
    return entry;
}

void fgw_replicated_confirm_later(struct fgw_replicated *replicated,
                                  const struct fgw_storage_owner *owner,
                                  const struct fgw_extent *extent, uint64_t set_epoch)
{
    struct fgw_replicated_worker *worker = &replicated->per_worker[fgw_worker_index()];
    if (!has_room(worker, &worker->confirms)) {
        FGW_REPLICATED_COUNT(replicated, confirms_left);
        return;
    }
    struct entry *entry = enter(&worker->confirms, owner, extent);
    entry->set_epoch = set_epoch;
    entry->committed_ms = fgw_clock_boot_ms();
    start_telling(replicated, worker);
}

void fgw_replicated_release_later(struct fgw_replicated *replicated,
                                  const struct fgw_storage_owner *owner,
                                  const struct fgw_extent *extent)
{
    struct fgw_replicated_worker *worker = &replicated->per_worker[fgw_worker_index()];
    if (!has_room(worker, &worker->releases)) {
        FGW_REPLICATED_COUNT(replicated, hints_dropped);
        return;
    }
    (void)enter(&worker->releases, owner, extent);
    start_telling(replicated, worker);
}

void fgw_replicated_tell_close(struct fgw_replicated_worker *worker)
{
    struct fgw_list *node;
    worker->closing = true;
    while ((node = fgw_list_pop_front(&worker->confirms.list)) != NULL) {
        fgw_xfree(FGW_CONTAINER_OF(node, struct entry, node));
    }
    if (worker->tell_wake != NULL) {
        fgw_wait_signal(worker->tell_wake);
    }
}
