/* replicated.c: see replicated.h: holds of whole sets, hints, the store itself. */
#include "blobs/replicated_internal.h"

#include "base/clock.h"
#include "base/log.h"

enum { RENEW_AFTER_MS = 3600 * 1000 };

struct staged_state {
    bool durable;
    bool complete; /* every member of the set has it */
    uint64_t set_epoch;
    uint64_t answered_ms; /* boot clock: when the holders said that they have it */
    struct fgw_arena *arena;
    unsigned replicas;
};

struct fgw_blob_staged fgw_replicated_staged(struct fgw_replicated *replicated,
                                             struct fgw_arena *arena, unsigned replicas,
                                             const struct fgw_storage_owner *owner)
{
    struct staged_state *state = fgw_arena_zalloc(arena, sizeof *state);
    state->arena = arena;
    state->replicas = replicas;
    return (struct fgw_blob_staged){
        .blobs = &replicated->base, .owner = *owner, .private_state = state};
}

void fgw_replicated_durable(struct fgw_blob_staged *staged, const struct fgw_placement_set *set,
                            const bool *holders)
{
    struct staged_state *state = staged->private_state;
    unsigned missing = 0;
    for (unsigned i = 0; i < set->count; i++) {
        missing += !holders[i] && !set->members[i].joining;
    }
    (void)atomic_fetch_add(&fgw_replicated_of(staged->blobs)->counters.copies_missing, missing);
    staged->extent.set = set->id;
    staged->in_memory = false;
    state->durable = true;
    state->complete = missing == 0;
    state->set_epoch = set->epoch;
    state->answered_ms = fgw_clock_boot_ms();
}

/* -- holds of whole sets ------------------------------------------------------------------------- */

/* The same hold at every member of a set. */
struct set_hold {
    struct fgw_replicated *replicated;
    const struct fgw_placement_set *set;
    struct fgw_member_hold hold;
    const struct fgw_storage_block *block;
    enum fgw_err errs[FGW_PLACEMENT_MEMBERS_MAX];
    bool holders[FGW_PLACEMENT_MEMBERS_MAX];
};

static void hold_lane(void *context, unsigned index)
{
    struct set_hold *all = context;
    struct fgw_member member = {all->replicated, all->set, index};
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = fgw_member_hold(&member, &all->hold, all->block, &error);
    all->errs[index] = err;
    all->holders[index] = err == FGW_OK;
    if (err != FGW_OK && err != FGW_ERR_NOT_FOUND) {
        FGW_REPLICATED_COUNT(all->replicated, members_failed);
        fgw_log_warn("blobs", "a store did not take a hold: %s",
                     error.message[0] != '\0' ? error.message : fgw_err_text(err));
    }
    /* a copy that cannot be granted is no fault of the store */
    if (err != FGW_ERR_NOT_FOUND) {
        fgw_member_report(&member, err, NULL);
    }
}

static enum fgw_err hold_set(struct set_hold *all)
{
    unsigned durable = 0;
    bool full = true;
    fgw_member_run_all(all->set->count, hold_lane, all);
    for (unsigned i = 0; i < all->set->count; i++) {
        durable += all->errs[i] == FGW_OK && !all->set->members[i].joining;
        full = full && (all->errs[i] == FGW_OK || all->errs[i] == FGW_ERR_NOSPACE);
    }
    if (durable >= all->set->needed) {
        return FGW_OK;
    }
    return full ? FGW_ERR_NOSPACE : FGW_ERR_UNAVAILABLE;
}

static struct set_hold set_hold_of(const struct fgw_blob_staged *staged,
                                   const struct fgw_placement_set *set)
{
    return (struct set_hold){
        .replicated = fgw_replicated_of(staged->blobs),
        .set = set,
        .hold = {&staged->owner, staged->extent.number, &staged->extent.root, staged->extent.size},
        .block = staged->in_memory ? &staged->block : NULL};
}

/* Stores keep a hold that nobody named for two hours after they were told of it last. */
static bool is_old(const struct fgw_blob_staged *staged)
{
    const struct staged_state *state = staged->private_state;
    uint64_t limit_ms = fgw_replicated_of(staged->blobs)->options.renew_after_ms;
    return fgw_clock_boot_ms() - state->answered_ms > (limit_ms == 0 ? RENEW_AFTER_MS : limit_ms);
}

/* The same hold once more, at the same set. */
static enum fgw_err renew(struct fgw_blob_staged *staged)
{
    struct fgw_replicated *replicated = fgw_replicated_of(staged->blobs);
    const struct fgw_placement *placement = replicated->options.placement;
    struct fgw_placement_set *set = fgw_xmalloc(sizeof *set);
    enum fgw_err err = placement->resolve(placement->context, staged->extent.set, set);
    if (err == FGW_OK) {
        struct set_hold all = set_hold_of(staged, set);
        err = hold_set(&all);
        if (err == FGW_OK) {
            fgw_replicated_durable(staged, set, all.holders);
            FGW_REPLICATED_COUNT(replicated, renewed);
        }
    }
    fgw_xfree(set);
    return err == FGW_OK || err == FGW_ERR_NOSPACE ? err : FGW_ERR_UNAVAILABLE;
}

static enum fgw_err make_durable(struct fgw_blob_staged *staged)
{
    struct staged_state *state = staged->private_state;
    struct fgw_replicated *replicated = fgw_replicated_of(staged->blobs);
    const struct fgw_placement *placement = replicated->options.placement;
    struct fgw_error error;
    uint64_t avoid[FGW_REPLICATED_SETS_TRIED];
    enum fgw_err err = FGW_OK;
    fgw_error_init(&error);
    if (state->durable) {
        return is_old(staged) ? renew(staged) : FGW_OK;
    }
    struct fgw_placement_set *set = fgw_arena_alloc(state->arena, sizeof *set);
    for (size_t attempt = 0; attempt < FGW_REPLICATED_SETS_TRIED; attempt++) {
        err = placement->choose(placement->context, state->replicas, avoid, attempt, set, &error);
        if (err != FGW_OK) {
            break;
        }
        struct set_hold all = set_hold_of(staged, set);
        err = hold_set(&all);
        if (err == FGW_OK) {
            fgw_replicated_durable(staged, set, all.holders);
            break;
        }
        avoid[attempt] = set->id;
        FGW_REPLICATED_COUNT(replicated, sets_replaced);
    }
    FGW_REPLICATED_COUNT(replicated, writes);
    if (err != FGW_OK) {
        FGW_REPLICATED_COUNT(replicated, writes_failed);
    }
    return err;
}

/* Taken at once, at as many members as a write needs: whether they have the blob is known by asking
 * only. */
static enum fgw_err stage_copy(struct fgw_blobs *blobs,
                               const struct fgw_blob_stage_options *options,
                               const struct fgw_extent *source, struct fgw_blob_staged *out_staged)
{
    struct fgw_replicated *replicated = fgw_replicated_of(blobs);
    const struct fgw_placement *placement = replicated->options.placement;
    struct fgw_placement_set *set = fgw_arena_alloc(options->arena, sizeof *set);
    struct fgw_storage_owner owner = *options->owner;
    owner.key = fgw_arena_copy(options->arena, owner.key);
    struct fgw_blob_staged staged =
        fgw_replicated_staged(replicated, options->arena, options->replicas, &owner);
    staged.extent = *source;
    staged.extent.number = options->extent_number;
    if (placement->resolve(placement->context, source->set, set) != FGW_OK) {
        return FGW_ERR_NOT_FOUND;
    }
    struct set_hold all = set_hold_of(&staged, set);
    if (hold_set(&all) != FGW_OK) {
        return FGW_ERR_NOT_FOUND;
    }
    fgw_replicated_durable(&staged, set, all.holders);
    *out_staged = staged;
    return FGW_OK;
}

/* -- hints --------------------------------------------------------------------------------------- */

struct hint {
    struct fgw_replicated *replicated;
    struct fgw_replicated_worker *worker;
    struct fgw_storage_owner owner;
    char *key;
    struct fgw_extent extent;
    struct fgw_placement_set set;
};

void fgw_replicated_hint_done(struct fgw_replicated_worker *worker)
{
    worker->hints--;
    fgw_replicated_fiber_done(worker);
}

void fgw_replicated_fiber_done(struct fgw_replicated_worker *worker)
{
    if (worker->hints + worker->attempts == 0 && worker->no_hints != NULL) {
        fgw_wait_signal(worker->no_hints);
        worker->no_hints = NULL;
    }
}

static void send_hint(void *arg)
{
    struct hint *hint = arg;
    struct fgw_replicated_worker *worker = hint->worker;
    struct fgw_storage_hold_seen hold = {hint->owner, hint->extent.number, hint->extent.root,
                                         hint->extent.size};
    for (unsigned i = 0; i < hint->set.count; i++) {
        struct fgw_member member = {hint->replicated, &hint->set, i};
        fgw_member_release(&member, &hold, 1);
    }
    fgw_xfree(hint->key);
    fgw_xfree(hint);
    fgw_replicated_hint_done(worker);
}

void fgw_replicated_release_at(struct fgw_replicated *replicated,
                               const struct fgw_storage_owner *owner,
                               const struct fgw_extent *extent, const struct fgw_placement_set *set)
{
    if (set->count == 0) {
        return;
    }
    struct hint *hint = fgw_xcalloc(1, sizeof *hint);
    hint->replicated = replicated;
    hint->worker = &replicated->per_worker[fgw_worker_index()];
    hint->set = *set;
    hint->owner = *owner;
    hint->key = fgw_xstrdup_bytes(owner->key);
    hint->owner.key = fgw_bytes(hint->key, owner->key.len);
    hint->extent = *extent;
    hint->worker->hints++;
    fgw_fiber_spawn(fgw_loop_current(), send_hint, hint);
}

static void discard(struct fgw_blob_staged *staged)
{
    struct staged_state *state = staged->private_state;
    if (state->durable) {
        state->durable = false;
        fgw_replicated_release_later(fgw_replicated_of(staged->blobs), &staged->owner,
                                     &staged->extent);
    }
}

/* A copy that is missing is made by the stores that have one: they ask about what is not confirmed. */
static void confirm(struct fgw_blob_staged *staged)
{
    const struct staged_state *state = staged->private_state;
    if (state->durable && state->complete) {
        fgw_replicated_confirm_later(fgw_replicated_of(staged->blobs), &staged->owner,
                                     &staged->extent, state->set_epoch);
    }
}

static void release(struct fgw_blobs *blobs, const struct fgw_storage_owner *owner,
                    const struct fgw_extent *extents, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fgw_replicated_release_later(fgw_replicated_of(blobs), owner, &extents[i]);
    }
}

/* -- life ---------------------------------------------------------------------------------------- */

static const struct fgw_blobs_ops OPS = {
    .stage_takes_md5 = true,
    .stage_begin = fgw_replicated_stage_begin,
    .stage_write = fgw_replicated_stage_write,
    .stage_room = fgw_replicated_stage_room,
    .stage_finish = fgw_replicated_stage_finish,
    .stage_abort = fgw_replicated_stage_abort,
    .stage_copy = stage_copy,
    .make_durable = make_durable,
    .confirm = confirm,
    .discard = discard,
    .release = release,
    .read_open = fgw_replicated_read_open,
    .read_next = fgw_replicated_read_next,
    .read_leaf = fgw_replicated_read_leaf,
    .read_close = fgw_replicated_read_close,
};

struct fgw_blobs *fgw_blobs_replicated_new(const struct fgw_replicated_options *options)
{
    struct fgw_replicated *replicated = fgw_xcalloc(1, sizeof *replicated);
    replicated->base.ops = &OPS;
    replicated->options = *options;
    replicated->per_worker = fgw_xcalloc(options->workers, sizeof *replicated->per_worker);
    for (unsigned i = 0; i < options->workers; i++) {
        fgw_replicated_tell_init(&replicated->per_worker[i]);
    }
    return &replicated->base;
}

void fgw_blobs_replicated_stats(struct fgw_blobs *blobs, struct fgw_replicated_stats *out_stats)
{
    struct fgw_replicated *replicated = fgw_replicated_of(blobs);
#define READ(name) .name = atomic_load(&replicated->counters.name)
    *out_stats = (struct fgw_replicated_stats){
        READ(writes),          READ(writes_failed), READ(sets_replaced),  READ(members_failed),
        READ(copies_missing),  READ(reads),         READ(read_failovers), READ(reads_failed),
        READ(digests_checked), READ(digests_wrong), READ(hints_dropped),  READ(restages),
        READ(confirmed),       READ(confirms_left), READ(renewed),        READ(copies_made),
        READ(reads_hedged),    READ(blocks_mended),
    };
#undef READ
}

void fgw_blobs_replicated_close_worker(struct fgw_blobs *blobs, unsigned index)
{
    struct fgw_replicated_worker *worker = &fgw_replicated_of(blobs)->per_worker[index];
    fgw_replicated_tell_close(worker);
    if (worker->hints + worker->attempts > 0) {
        struct fgw_wait wait;
        fgw_wait_init(&wait, 1);
        worker->no_hints = &wait;
        fgw_wait_for(&wait);
    }
}

void fgw_blobs_replicated_free(struct fgw_blobs *blobs)
{
    if (blobs != NULL) {
        struct fgw_replicated *replicated = fgw_replicated_of(blobs);
        fgw_xfree(replicated->per_worker);
        fgw_xfree(replicated);
    }
}
