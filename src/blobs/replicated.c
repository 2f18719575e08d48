/* replicated.c: see replicated.h: staging and holds. While a leaf is filled the one before it is on
 * its way to all members; a stage therefore has two leaves and one wait. */
#include "blobs/replicated_internal.h"

#include "base/crc.h"
#include "base/log.h"
#include "blobs/leaf.h"
#include "cid/dag.h"

enum { SET_ATTEMPTS = 3, HINTS_MAX = 256 };

struct lane {
    struct fgw_blob_stage *stage;
    struct fgw_member member;
    struct fgw_member_writer writer;
    enum fgw_err err; /* sticky: the member has left the write */
};

struct fgw_blob_stage {
    struct fgw_blob_handle handle; /* first */
    struct fgw_replicated *replicated;
    struct fgw_arena *arena;
    struct fgw_storage_owner owner;
    uint64_t extent_number;
    uint64_t size;
    unsigned replicas;
    struct fgw_error *error;
    struct fgw_leaf leaf;  /* being filled */
    struct fgw_leaf spare; /* being sent */
    enum fgw_err failed;
    /* once it is too large for memory */
    bool open;
    struct fgw_placement_set set;
    struct lane lanes[FGW_PLACEMENT_MEMBERS_MAX];
    struct fgw_dag_builder *dag;
    /* the block on its way */
    struct fgw_storage_block block;
    bool block_is_leaf;
    struct fgw_wait sending;
    unsigned senders;
    struct fgw_dag_root root; /* at the end */
};

struct staged_state {
    bool durable;
    struct fgw_arena *arena;
    unsigned replicas;
};

#define COUNT(replicated, name) (void)atomic_fetch_add(&(replicated)->counters.name, 1)

/* -- members of a stage -------------------------------------------------------------------------- */

static void lane_failed(struct lane *lane, enum fgw_err err, const struct fgw_error *error)
{
    lane->err = err;
    COUNT(lane->stage->replicated, members_failed);
    fgw_log_warn("blobs", "a store has left a write: %s",
                 error->message[0] != '\0' ? error->message : fgw_err_text(err));
    fgw_member_report(&lane->member, err, NULL);
}

static unsigned lanes_left(const struct fgw_blob_stage *stage)
{
    unsigned left = 0;
    for (unsigned i = 0; i < stage->set.count; i++) {
        left += stage->lanes[i].err == FGW_OK;
    }
    return left;
}

/* What the client is told when too few are left. */
static enum fgw_err too_few(struct fgw_blob_stage *stage)
{
    bool full = stage->set.count > 0;
    for (unsigned i = 0; i < stage->set.count; i++) {
        enum fgw_err err = stage->lanes[i].err;
        full = full && (err == FGW_OK || err == FGW_ERR_NOSPACE);
    }
    COUNT(stage->replicated, writes_failed);
    return full ? FGW_ERR_NOSPACE : FGW_ERR_UNAVAILABLE;
}

static void open_lane(void *context, unsigned index)
{
    struct fgw_blob_stage *stage = context;
    struct lane *lane = &stage->lanes[index];
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = fgw_member_writer_open(&lane->member, &stage->owner, stage->extent_number,
                                              &lane->writer, &error);
    if (err != FGW_OK) {
        lane_failed(lane, err, &error);
    }
}

static void close_lanes(struct fgw_blob_stage *stage)
{
    for (unsigned i = 0; i < stage->set.count; i++) {
        fgw_member_writer_close(&stage->lanes[i].writer);
    }
}

static enum fgw_err try_set(struct fgw_blob_stage *stage, const uint64_t *avoid, size_t avoided)
{
    const struct fgw_placement *placement = stage->replicated->options.placement;
    enum fgw_err err = placement->choose(placement->context, stage->replicas, avoid, avoided,
                                         &stage->set, stage->error);
    if (err != FGW_OK) {
        stage->set.count = 0;
        return err;
    }
    for (unsigned i = 0; i < stage->set.count; i++) {
        stage->lanes[i] =
            (struct lane){.stage = stage, .member = {stage->replicated, &stage->set, i}};
    }
    fgw_member_run_all(stage->set.count, open_lane, stage);
    return lanes_left(stage) >= stage->set.needed ? FGW_OK : too_few(stage);
}

/* Too large for memory: a set, and a writer at each of its members. */
static enum fgw_err open_stage(struct fgw_blob_stage *stage)
{
    uint64_t avoid[SET_ATTEMPTS];
    enum fgw_err err = FGW_OK;
    for (size_t attempt = 0; attempt < SET_ATTEMPTS; attempt++) {
        err = try_set(stage, avoid, attempt);
        if (err == FGW_OK || stage->set.count == 0) {
            break;
        }
        close_lanes(stage);
        avoid[attempt] = stage->set.id;
        COUNT(stage->replicated, sets_replaced);
    }
    stage->open = err == FGW_OK;
    return err;
}

/* -- blocks on their way ------------------------------------------------------------------------- */

static void send_lane(void *arg)
{
    struct lane *lane = arg;
    struct fgw_blob_stage *stage = lane->stage;
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err =
        fgw_member_writer_add(&lane->writer, &stage->block, stage->block_is_leaf, &error);
    if (err != FGW_OK) {
        lane_failed(lane, err, &error);
    }
    fgw_wait_signal(&stage->sending);
}

static void start_send(struct fgw_blob_stage *stage, const struct fgw_storage_block *block,
                       bool leaf)
{
    stage->block = *block;
    stage->block_is_leaf = leaf;
    stage->senders = lanes_left(stage);
    fgw_wait_init(&stage->sending, stage->senders);
    for (unsigned i = 0; i < stage->set.count; i++) {
        if (stage->lanes[i].err == FGW_OK) {
            fgw_fiber_spawn(fgw_loop_current(), send_lane, &stage->lanes[i]);
        }
    }
}

static enum fgw_err join_send(struct fgw_blob_stage *stage)
{
    if (stage->senders > 0) {
        fgw_wait_for(&stage->sending);
        stage->senders = 0;
    }
    return lanes_left(stage) >= stage->set.needed ? FGW_OK : too_few(stage);
}

/* The node lives during the call only. */
static enum fgw_err add_node(void *context, const struct fgw_cid *cid, struct fgw_bytes node)
{
    struct fgw_blob_stage *stage = context;
    struct fgw_storage_block block = {*cid, fgw_crc32c(0, node), node};
    enum fgw_err err = join_send(stage);
    if (err == FGW_OK) {
        start_send(stage, &block, false);
        err = join_send(stage);
    }
    return err;
}

static enum fgw_err flush_leaf(struct fgw_blob_stage *stage)
{
    enum fgw_err err = FGW_OK;
    struct fgw_storage_block block = fgw_leaf_end(&stage->leaf);
    if (!stage->open) {
        err = open_stage(stage);
        stage->dag = fgw_dag_builder_new(&fgw_dag_unixfs_v1_2025, add_node, stage);
    } else {
        err = join_send(stage);
    }
    if (err == FGW_OK) {
        struct fgw_leaf filled = stage->leaf;
        stage->leaf = stage->spare;
        stage->spare = filled;
        start_send(stage, &block, true);
        err = fgw_dag_builder_add(stage->dag, &block.cid, block.bytes.len);
    }
    fgw_leaf_begin(&stage->leaf);
    return err;
}

/* -- a stage ------------------------------------------------------------------------------------- */

static enum fgw_err stage_begin(struct fgw_blobs *blobs,
                                const struct fgw_blob_stage_options *options,
                                struct fgw_blob_stage **out_stage, struct fgw_error *error)
{
    struct fgw_blob_stage *stage = fgw_xcalloc(1, sizeof *stage);
    stage->handle.ops = blobs->ops;
    stage->replicated = fgw_replicated_of(blobs);
    stage->arena = options->arena;
    stage->owner = *options->owner;
    stage->owner.key = fgw_arena_copy(options->arena, options->owner->key);
    stage->extent_number = options->extent_number;
    stage->replicas = options->replicas;
    stage->error = error;
    fgw_leaf_begin(&stage->leaf);
    *out_stage = stage;
    return FGW_OK;
}

static enum fgw_err stage_write(struct fgw_blob_stage *stage, struct fgw_bytes bytes)
{
    while (bytes.len > 0 && stage->failed == FGW_OK) {
        if (fgw_leaf_full(&stage->leaf)) {
            stage->failed = flush_leaf(stage);
            continue;
        }
        size_t before = bytes.len;
        fgw_leaf_fill(&stage->leaf, &bytes);
        stage->size += before - bytes.len;
    }
    return stage->failed;
}

static void end_stage(struct fgw_blob_stage *stage)
{
    if (stage->senders > 0) {
        fgw_wait_for(&stage->sending);
    }
    fgw_dag_builder_free(stage->dag);
    close_lanes(stage);
    fgw_leaf_deinit(&stage->leaf);
    fgw_leaf_deinit(&stage->spare);
    fgw_xfree(stage);
}

static void stage_abort(struct fgw_blob_stage *stage)
{
    end_stage(stage);
}

static void finish_lane(void *context, unsigned index)
{
    struct fgw_blob_stage *stage = context;
    struct lane *lane = &stage->lanes[index];
    struct fgw_error error;
    fgw_error_init(&error);
    if (lane->err != FGW_OK) {
        return;
    }
    enum fgw_err err = fgw_member_writer_finish(&lane->member, &lane->writer, &stage->root.cid,
                                                stage->size, &error);
    if (err != FGW_OK) {
        lane_failed(lane, err, &error);
    } else {
        fgw_member_report(&lane->member, FGW_OK, NULL);
    }
}

static enum fgw_err finish_written(struct fgw_blob_stage *stage, struct fgw_blob_staged *staged)
{
    enum fgw_err err = stage->leaf.len > 0 ? flush_leaf(stage) : FGW_OK;
    if (err == FGW_OK) {
        err = fgw_dag_builder_finish(stage->dag, &stage->root);
    }
    if (err == FGW_OK) {
        err = join_send(stage);
    }
    if (err != FGW_OK) {
        return err;
    }
    fgw_member_run_all(stage->set.count, finish_lane, stage);
    unsigned durable = lanes_left(stage);
    if (durable < stage->set.needed) {
        return too_few(stage);
    }
    (void)atomic_fetch_add(&stage->replicated->counters.copies_missing, stage->set.count - durable);
    ((struct staged_state *)staged->private_state)->durable = true;
    staged->extent = (struct fgw_extent){.number = stage->extent_number,
                                         .set = stage->set.id,
                                         .root = stage->root.cid,
                                         .size = stage->size};
    return FGW_OK;
}

static void finish_in_memory(struct fgw_blob_stage *stage, struct fgw_blob_staged *staged)
{
    staged->in_memory = true;
    staged->block = fgw_leaf_end(&stage->leaf);
    staged->block.bytes = fgw_arena_copy(stage->arena, staged->block.bytes);
    staged->extent = (struct fgw_extent){
        .number = stage->extent_number, .root = staged->block.cid, .size = stage->size};
}

static struct fgw_blob_staged make_staged(struct fgw_replicated *replicated,
                                          struct fgw_arena *arena, unsigned replicas,
                                          const struct fgw_storage_owner *owner)
{
    struct staged_state *state = fgw_arena_zalloc(arena, sizeof *state);
    state->arena = arena;
    state->replicas = replicas;
    return (struct fgw_blob_staged){
        .blobs = &replicated->base, .owner = *owner, .private_state = state};
}

static enum fgw_err stage_finish(struct fgw_blob_stage *stage, struct fgw_blob_staged *out_staged)
{
    struct fgw_blob_staged staged =
        make_staged(stage->replicated, stage->arena, stage->replicas, &stage->owner);
    enum fgw_err err = stage->failed;
    if (err == FGW_OK && !stage->open && stage->size <= FGW_STORAGE_INLINE_MAX) {
        finish_in_memory(stage, &staged);
    } else if (err == FGW_OK) {
        err = finish_written(stage, &staged);
        COUNT(stage->replicated, writes);
    }
    end_stage(stage);
    if (err == FGW_OK) {
        *out_staged = staged;
    }
    return err;
}

/* -- holds of whole sets ------------------------------------------------------------------------- */

/* The same hold at every member of a set. */
struct set_hold {
    struct fgw_replicated *replicated;
    const struct fgw_placement_set *set;
    struct fgw_member_hold hold;
    const struct fgw_storage_block *block;
    enum fgw_err errs[FGW_PLACEMENT_MEMBERS_MAX];
};

static void hold_lane(void *context, unsigned index)
{
    struct set_hold *all = context;
    struct fgw_member member = {all->replicated, all->set, index};
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = fgw_member_hold(&member, &all->hold, all->block, &error);
    all->errs[index] = err;
    if (err != FGW_OK && err != FGW_ERR_NOT_FOUND) {
        COUNT(all->replicated, members_failed);
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
        durable += all->errs[i] == FGW_OK;
        full = full && (all->errs[i] == FGW_OK || all->errs[i] == FGW_ERR_NOSPACE);
    }
    if (durable >= all->set->needed) {
        (void)atomic_fetch_add(&all->replicated->counters.copies_missing,
                               all->set->count - durable);
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

static enum fgw_err make_durable(struct fgw_blob_staged *staged)
{
    struct staged_state *state = staged->private_state;
    struct fgw_replicated *replicated = fgw_replicated_of(staged->blobs);
    const struct fgw_placement *placement = replicated->options.placement;
    struct fgw_error error;
    uint64_t avoid[SET_ATTEMPTS];
    enum fgw_err err = FGW_OK;
    fgw_error_init(&error);
    if (state->durable) {
        return FGW_OK;
    }
    struct fgw_placement_set *set = fgw_arena_alloc(state->arena, sizeof *set);
    for (size_t attempt = 0; attempt < SET_ATTEMPTS; attempt++) {
        err = placement->choose(placement->context, state->replicas, avoid, attempt, set, &error);
        if (err != FGW_OK) {
            break;
        }
        struct set_hold all = set_hold_of(staged, set);
        err = hold_set(&all);
        if (err == FGW_OK) {
            staged->extent.set = set->id;
            staged->in_memory = false;
            state->durable = true;
            break;
        }
        avoid[attempt] = set->id;
        COUNT(replicated, sets_replaced);
    }
    COUNT(replicated, writes);
    if (err != FGW_OK) {
        COUNT(replicated, writes_failed);
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
        make_staged(replicated, options->arena, options->replicas, &owner);
    staged.extent = *source;
    staged.extent.number = options->extent_number;
    if (placement->resolve(placement->context, source->set, set) != FGW_OK) {
        return FGW_ERR_NOT_FOUND;
    }
    struct set_hold all = set_hold_of(&staged, set);
    if (hold_set(&all) != FGW_OK) {
        return FGW_ERR_NOT_FOUND;
    }
    ((struct staged_state *)staged.private_state)->durable = true;
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

static void send_hint(void *arg)
{
    struct hint *hint = arg;
    struct fgw_replicated_worker *worker = hint->worker;
    struct fgw_member_hold hold = {&hint->owner, hint->extent.number, &hint->extent.root,
                                   hint->extent.size};
    for (unsigned i = 0; i < hint->set.count; i++) {
        struct fgw_member member = {hint->replicated, &hint->set, i};
        fgw_member_release(&member, &hold);
    }
    fgw_xfree(hint->key);
    fgw_xfree(hint);
    worker->hints--;
    if (worker->hints == 0 && worker->no_hints != NULL) {
        fgw_wait_signal(worker->no_hints);
        worker->no_hints = NULL;
    }
}

/* Nobody waits for a hint, and one that is lost is found by the sweeper. */
static void release_extent(struct fgw_replicated *replicated, const struct fgw_storage_owner *owner,
                           const struct fgw_extent *extent)
{
    const struct fgw_placement *placement = replicated->options.placement;
    struct fgw_replicated_worker *worker = &replicated->per_worker[fgw_worker_index()];
    struct hint *hint = fgw_xcalloc(1, sizeof *hint);
    if (worker->hints >= HINTS_MAX ||
        placement->resolve(placement->context, extent->set, &hint->set) != FGW_OK) {
        COUNT(replicated, hints_dropped);
        fgw_xfree(hint);
        return;
    }
    hint->replicated = replicated;
    hint->worker = worker;
    hint->owner = *owner;
    hint->key = fgw_xstrdup_bytes(owner->key);
    hint->owner.key = fgw_bytes(hint->key, owner->key.len);
    hint->extent = *extent;
    worker->hints++;
    fgw_fiber_spawn(fgw_loop_current(), send_hint, hint);
}

static void discard(struct fgw_blob_staged *staged)
{
    struct staged_state *state = staged->private_state;
    if (state->durable) {
        state->durable = false;
        release_extent(fgw_replicated_of(staged->blobs), &staged->owner, &staged->extent);
    }
}

static void confirm(struct fgw_blob_staged *staged)
{
    (void)staged; /* stores ask the metadata about each hold before they drop it */
}

static void release(struct fgw_blobs *blobs, const struct fgw_storage_owner *owner,
                    const struct fgw_extent *extents, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        release_extent(fgw_replicated_of(blobs), owner, &extents[i]);
    }
}

/* -- life ---------------------------------------------------------------------------------------- */

static const struct fgw_blobs_ops OPS = {
    .stage_begin = stage_begin,
    .stage_write = stage_write,
    .stage_finish = stage_finish,
    .stage_abort = stage_abort,
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
    return &replicated->base;
}

void fgw_blobs_replicated_stats(struct fgw_blobs *blobs, struct fgw_replicated_stats *out_stats)
{
    struct fgw_replicated *replicated = fgw_replicated_of(blobs);
#define READ(name) .name = atomic_load(&replicated->counters.name)
    *out_stats = (struct fgw_replicated_stats){
        READ(writes),          READ(writes_failed), READ(sets_replaced),  READ(members_failed),
        READ(copies_missing),  READ(reads),         READ(read_failovers), READ(reads_failed),
        READ(digests_checked), READ(digests_wrong), READ(hints_dropped),
    };
#undef READ
}

void fgw_blobs_replicated_close_worker(struct fgw_blobs *blobs, unsigned index)
{
    struct fgw_replicated_worker *worker = &fgw_replicated_of(blobs)->per_worker[index];
    if (worker->hints > 0) {
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
