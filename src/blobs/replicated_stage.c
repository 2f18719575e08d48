/* replicated_stage.c: staging a body on the members of a set; see replicated.h. While a leaf is filled
 * the one before it is on its way to all members; a stage therefore has two leaves and one wait. When
 * too few members are left the stage moves to another set (replicated_restage.c) and goes on. */
#include "base/crc.h"
#include "base/log.h"
#include "blobs/replicated_internal.h"

enum { DRAWS = 24 };

/* -- members of a stage -------------------------------------------------------------------------- */

void fgw_stage_lane_failed(struct fgw_stage_lane *lane, enum fgw_err err,
                           const struct fgw_error *error)
{
    struct fgw_blob_stage *stage = lane->stage;
    lane->err = err;
    if (err != FGW_ERR_CONFLICT && stage->lost_count < FGW_PLACEMENT_MEMBERS_MAX) {
        memcpy(stage->lost[stage->lost_count++], fgw_member_of(&lane->member)->store_id,
               FGW_STORAGE_ID_SIZE);
    }
    FGW_REPLICATED_COUNT(lane->stage->replicated, members_failed);
    fgw_log_warn("blobs", "a store has left a write (set of %u, %u needed): %s", stage->set.count,
                 stage->set.needed, error->message[0] != '\0' ? error->message : fgw_err_text(err));
    fgw_member_report(&lane->member, err, NULL);
}

unsigned fgw_stage_lanes_left(const struct fgw_blob_stage *stage)
{
    unsigned left = 0;
    for (unsigned i = 0; i < stage->set.count; i++) {
        left += stage->lanes[i].err == FGW_OK;
    }
    return left;
}

/* Copies at joining members do not count yet. */
static enum fgw_err enough(const struct fgw_blob_stage *stage)
{
    bool full = stage->set.count > 0;
    unsigned counted = 0;
    for (unsigned i = 0; i < stage->set.count; i++) {
        counted += stage->lanes[i].err == FGW_OK && !stage->set.members[i].joining;
    }
    if (stage->set.count > 0 && counted >= stage->set.needed) {
        return FGW_OK;
    }
    for (unsigned i = 0; i < stage->set.count; i++) {
        enum fgw_err err = stage->lanes[i].err;
        full = full && (err == FGW_OK || err == FGW_ERR_NOSPACE);
    }
    return full ? FGW_ERR_NOSPACE : FGW_ERR_UNAVAILABLE;
}

static void open_lane(void *context, unsigned index)
{
    struct fgw_blob_stage *stage = context;
    struct fgw_stage_lane *lane = &stage->lanes[index];
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = fgw_member_writer_open(&lane->member, &stage->owner, stage->extent_number,
                                              &lane->writer, &error);
    if (err != FGW_OK) {
        fgw_stage_lane_failed(lane, err, &error);
    }
}

void fgw_stage_close_lanes(struct fgw_blob_stage *stage)
{
    for (unsigned i = 0; i < stage->set.count; i++) {
        fgw_member_writer_close(&stage->lanes[i].writer);
    }
}

static bool has_lost(const struct fgw_blob_stage *stage)
{
    for (unsigned i = 0; i < stage->set.count; i++) {
        for (unsigned k = 0; k < stage->lost_count; k++) {
            if (memcmp(stage->set.members[i].store_id, stage->lost[k], FGW_STORAGE_ID_SIZE) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* Placement knows which stores failed lately, not which of them failed this write: it is asked until it
 * names a set without those. */
static enum fgw_err draw_set(struct fgw_blob_stage *stage, const uint64_t *avoid, size_t avoided)
{
    const struct fgw_placement *placement = stage->replicated->options.placement;
    uint64_t shunned[FGW_REPLICATED_SETS_TRIED + DRAWS];
    enum fgw_err err = FGW_ERR_UNAVAILABLE;
    for (size_t i = 0; i < avoided; i++) {
        shunned[i] = avoid[i];
    }
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        err = placement->choose(placement->context, stage->replicas, shunned, avoided + draw,
                                &stage->set, stage->error);
        if (err != FGW_OK || !has_lost(stage)) {
            break;
        }
        shunned[avoided + draw] = stage->set.id;
    }
    return err;
}

enum fgw_err fgw_stage_try_set(struct fgw_blob_stage *stage, const uint64_t *avoid, size_t avoided)
{
    enum fgw_err err = draw_set(stage, avoid, avoided);
    if (err != FGW_OK) {
        stage->set.count = 0;
        return err;
    }
    for (unsigned i = 0; i < stage->set.count; i++) {
        stage->lanes[i] =
            (struct fgw_stage_lane){.stage = stage, .member = {stage->replicated, &stage->set, i}};
    }
    fgw_member_run_all(stage->set.count, open_lane, stage);
    return enough(stage);
}

/* Too large for memory: a set, and a writer at each of its members. */
static enum fgw_err open_stage(struct fgw_blob_stage *stage)
{
    uint64_t avoid[FGW_REPLICATED_SETS_TRIED];
    enum fgw_err err = FGW_OK;
    for (size_t attempt = 0; attempt < FGW_REPLICATED_SETS_TRIED; attempt++) {
        err = fgw_stage_try_set(stage, avoid, attempt);
        if (err == FGW_OK || stage->set.count == 0) {
            break;
        }
        fgw_stage_close_lanes(stage);
        avoid[attempt] = stage->set.id;
        FGW_REPLICATED_COUNT(stage->replicated, sets_replaced);
    }
    stage->open = err == FGW_OK;
    stage->dag = fgw_dag_builder_new(&fgw_dag_unixfs_v1_2025, fgw_stage_add_node, stage);
    return err;
}

/* -- blocks on their way ------------------------------------------------------------------------- */

static void send_lane(void *arg)
{
    struct fgw_stage_lane *lane = arg;
    struct fgw_blob_stage *stage = lane->stage;
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err =
        fgw_member_writer_add(&lane->writer, &stage->block, stage->block_is_leaf, &error);
    if (err != FGW_OK) {
        fgw_stage_lane_failed(lane, err, &error);
    }
    fgw_wait_signal(&stage->sending);
}

void fgw_stage_send(struct fgw_blob_stage *stage, const struct fgw_storage_block *block, bool leaf)
{
    stage->block = *block;
    stage->block_is_leaf = leaf;
    stage->senders = fgw_stage_lanes_left(stage);
    fgw_wait_init(&stage->sending, stage->senders);
    for (unsigned i = 0; i < stage->set.count; i++) {
        if (stage->lanes[i].err == FGW_OK) {
            fgw_fiber_spawn(fgw_loop_current(), send_lane, &stage->lanes[i]);
        }
    }
}

enum fgw_err fgw_stage_join(struct fgw_blob_stage *stage)
{
    if (stage->senders > 0) {
        fgw_wait_for(&stage->sending);
        stage->senders = 0;
    }
    return enough(stage);
}

/* The node lives during the call only. */
enum fgw_err fgw_stage_add_node(void *context, const struct fgw_cid *cid, struct fgw_bytes node)
{
    struct fgw_blob_stage *stage = context;
    struct fgw_storage_block block = {*cid, fgw_crc32c(0, node), node};
    enum fgw_err err = fgw_stage_join(stage);
    if (err == FGW_OK) {
        stage->nodes_sent++;
        fgw_stage_send(stage, &block, false);
        err = fgw_stage_join(stage);
    }
    return err;
}

/* Moves to another set when `err` says that too few members are left. */
static enum fgw_err go_on(struct fgw_blob_stage *stage, enum fgw_err err)
{
    bool members = stage->open && enough(stage) != FGW_OK;
    return err != FGW_OK && members ? fgw_replicated_restage(stage) : err;
}

static enum fgw_err send_leaf(struct fgw_blob_stage *stage, const struct fgw_storage_block *block)
{
    struct fgw_leaf filled = stage->leaf;
    stage->leaf = stage->spare;
    stage->spare = filled;
    (void)fgw_buf_append(&stage->leaves, fgw_bytes(fgw_cid_digest(&block->cid), FGW_SHA256_SIZE));
    stage->sent_bytes += block->bytes.len;
    fgw_stage_send(stage, block, true);
    return fgw_dag_builder_add(stage->dag, &block->cid, block->bytes.len);
}

static enum fgw_err flush_leaf(struct fgw_blob_stage *stage)
{
    struct fgw_storage_block block = fgw_leaf_end(&stage->leaf);
    enum fgw_err err = stage->open ? go_on(stage, fgw_stage_join(stage)) : open_stage(stage);
    if (err == FGW_OK) {
        err = go_on(stage, send_leaf(stage, &block));
    }
    fgw_leaf_begin(&stage->leaf, stage->md5);
    return err;
}

/* -- a stage ------------------------------------------------------------------------------------- */

enum fgw_err fgw_replicated_stage_begin(struct fgw_blobs *blobs,
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
    stage->md5 = options->md5;
    stage->error = error;
    fgw_buf_init(&stage->leaves, 0);
    fgw_leaf_begin(&stage->leaf, stage->md5);
    *out_stage = stage;
    return FGW_OK;
}

enum fgw_err fgw_replicated_stage_write(struct fgw_blob_stage *stage, struct fgw_bytes bytes)
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

size_t fgw_replicated_stage_room(struct fgw_blob_stage *stage, uint8_t **out_room)
{
    return stage->failed == FGW_OK ? fgw_leaf_room(&stage->leaf, out_room) : 0;
}

static void end_stage(struct fgw_blob_stage *stage)
{
    if (stage->senders > 0) {
        fgw_wait_for(&stage->sending);
    }
    fgw_dag_builder_free(stage->dag);
    fgw_stage_close_lanes(stage);
    fgw_leaf_deinit(&stage->leaf);
    fgw_leaf_deinit(&stage->spare);
    fgw_buf_deinit(&stage->leaves);
    fgw_xfree(stage);
}

void fgw_replicated_stage_abort(struct fgw_blob_stage *stage)
{
    end_stage(stage);
}

static void finish_lane(void *context, unsigned index)
{
    struct fgw_blob_stage *stage = context;
    struct fgw_stage_lane *lane = &stage->lanes[index];
    struct fgw_error error;
    fgw_error_init(&error);
    if (lane->err != FGW_OK) {
        return;
    }
    struct fgw_member_hold hold = {&stage->owner, stage->extent_number, &stage->root.cid,
                                   stage->size};
    enum fgw_err err = fgw_member_writer_finish(&lane->member, &lane->writer, &hold, &error);
    if (err != FGW_OK) {
        fgw_stage_lane_failed(lane, err, &error);
    } else {
        fgw_member_report(&lane->member, FGW_OK, NULL);
    }
}

/* The rest of the tree, then the root, durable on the members. */
static enum fgw_err finish_members(struct fgw_blob_stage *stage)
{
    enum fgw_err err = fgw_dag_builder_finish(stage->dag, &stage->root);
    if (err == FGW_OK) {
        err = fgw_stage_join(stage);
    }
    if (err == FGW_OK) {
        stage->finished = true;
        fgw_member_run_all(stage->set.count, finish_lane, stage);
        err = enough(stage);
    }
    return err;
}

static enum fgw_err finish_written(struct fgw_blob_stage *stage, struct fgw_blob_staged *staged)
{
    enum fgw_err err = stage->leaf.len > 0 ? flush_leaf(stage) : FGW_OK;
    bool again = err == FGW_OK;
    while (again) {
        err = finish_members(stage);
        again = err != FGW_OK && (err = go_on(stage, err)) == FGW_OK;
    }
    if (err != FGW_OK) {
        return err;
    }
    staged->extent = (struct fgw_extent){.number = stage->extent_number,
                                         .set = stage->set.id,
                                         .root = stage->root.cid,
                                         .size = stage->size};
    bool holders[FGW_PLACEMENT_MEMBERS_MAX];
    for (unsigned i = 0; i < stage->set.count; i++) {
        holders[i] = stage->lanes[i].err == FGW_OK;
    }
    fgw_replicated_durable(staged, &stage->set, holders);
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

enum fgw_err fgw_replicated_stage_finish(struct fgw_blob_stage *stage,
                                         struct fgw_blob_staged *out_staged)
{
    struct fgw_blob_staged staged =
        fgw_replicated_staged(stage->replicated, stage->arena, stage->replicas, &stage->owner);
    enum fgw_err err = stage->failed;
    if (err == FGW_OK && !stage->open && stage->size <= FGW_STORAGE_INLINE_MAX) {
        finish_in_memory(stage, &staged);
    } else {
        err = err == FGW_OK ? finish_written(stage, &staged) : err;
        FGW_REPLICATED_COUNT(stage->replicated, writes);
        if (err != FGW_OK) {
            FGW_REPLICATED_COUNT(stage->replicated, writes_failed);
        }
    }
    end_stage(stage);
    if (err == FGW_OK) {
        *out_staged = staged;
    }
    return err;
}
