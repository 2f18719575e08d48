/* replicated_restage.c: a stage whose set has too few members left moves to another one, unseen by the
 * client: the members that are left finish what they have as a blob of its own (the prefix), under a
 * temporary extent number; a new set is chosen, the prefix is read back and written to its members,
 * and the hold on it is given up. Meanwhile no byte is taken from the client. */
#include "base/crc.h"
#include "base/log.h"
#include "base/rng.h"
#include "blobs/replicated_internal.h"

enum { LEAF = FGW_STORAGE_BLOCK_MAX };

/* What was sent so far and who has it. */
struct source {
    struct fgw_extent extent;     /* number: under which the hold is */
    struct fgw_placement_set set; /* the members that have it, no others */
};

static uint64_t leaf_count(const struct fgw_blob_stage *stage)
{
    return stage->leaves.len / FGW_SHA256_SIZE;
}

static struct fgw_cid leaf_cid(const struct fgw_blob_stage *stage, uint64_t index)
{
    return fgw_cid_make(FGW_CODEC_RAW, stage->leaves.ptr + index * FGW_SHA256_SIZE);
}

static size_t leaf_size(const struct fgw_blob_stage *stage, uint64_t index)
{
    uint64_t left = stage->sent_bytes - index * LEAF;
    return left < LEAF ? (size_t)left : LEAF;
}

/* -- the prefix becomes a blob ------------------------------------------------------------------- */

struct prefix {
    struct fgw_blob_stage *stage;
    uint64_t known; /* nodes that the members have already: the first ones */
    struct fgw_dag_root root;
    uint64_t extent_number;
};

static enum fgw_err add_prefix_node(void *context, const struct fgw_cid *cid, struct fgw_bytes node)
{
    struct prefix *prefix = context;
    struct fgw_storage_block block = {*cid, fgw_crc32c(0, node), node};
    if (prefix->known > 0) {
        prefix->known--;
        return FGW_OK;
    }
    fgw_stage_send(prefix->stage, &block, false);
    (void)!fgw_stage_join(prefix->stage); /* fewer than needed is what we are here for */
    return fgw_stage_lanes_left(prefix->stage) > 0 ? FGW_OK : FGW_ERR_UNAVAILABLE;
}

static enum fgw_err close_tree(struct prefix *prefix)
{
    struct fgw_blob_stage *stage = prefix->stage;
    struct fgw_dag_builder *dag =
        fgw_dag_builder_new(&fgw_dag_unixfs_v1_2025, add_prefix_node, prefix);
    enum fgw_err err = FGW_OK;
    for (uint64_t i = 0; i < leaf_count(stage) && err == FGW_OK; i++) {
        struct fgw_cid cid = leaf_cid(stage, i);
        err = fgw_dag_builder_add(dag, &cid, leaf_size(stage, i));
    }
    if (err == FGW_OK) {
        err = fgw_dag_builder_finish(dag, &prefix->root);
    }
    fgw_dag_builder_free(dag);
    return err;
}

static void finish_prefix_lane(void *context, unsigned index)
{
    struct prefix *prefix = context;
    struct fgw_blob_stage *stage = prefix->stage;
    struct fgw_stage_lane *lane = &stage->lanes[index];
    struct fgw_error error;
    fgw_error_init(&error);
    if (lane->err != FGW_OK) {
        return;
    }
    struct fgw_member_hold hold = {&stage->owner, prefix->extent_number, &prefix->root.cid,
                                   stage->sent_bytes};
    enum fgw_err err = fgw_member_writer_finish(&lane->member, &lane->writer, &hold, &error);
    if (err != FGW_OK) {
        fgw_stage_lane_failed(lane, err, &error);
    }
}

static enum fgw_err finish_prefix(struct fgw_blob_stage *stage, struct source *source)
{
    struct prefix prefix = {.stage = stage,
                            .known = stage->nodes_sent,
                            .extent_number = FGW_EXTENT_TEMPORARY | fgw_rng_u64() >> 2};
    enum fgw_err err = close_tree(&prefix);
    if (err == FGW_OK) {
        fgw_member_run_all(stage->set.count, finish_prefix_lane, &prefix);
        source->extent = (struct fgw_extent){
            .number = prefix.extent_number, .root = prefix.root.cid, .size = stage->sent_bytes};
    }
    return err;
}

/* The members that are left have all blocks; they may even have finished the whole blob. */
static enum fgw_err make_source(struct fgw_blob_stage *stage, struct source *source)
{
    enum fgw_err err = FGW_OK;
    if (fgw_stage_lanes_left(stage) == 0) {
        return FGW_ERR_UNAVAILABLE;
    }
    if (stage->finished) {
        source->extent = (struct fgw_extent){
            .number = stage->extent_number, .root = stage->root.cid, .size = stage->size};
    } else {
        err = finish_prefix(stage, source);
    }
    source->extent.set = stage->set.id;
    source->set.id = stage->set.id;
    source->set.epoch = stage->set.epoch;
    for (unsigned i = 0; i < stage->set.count && err == FGW_OK; i++) {
        if (stage->lanes[i].err == FGW_OK) {
            source->set.members[source->set.count++] = stage->set.members[i];
        }
    }
    return source->set.count > 0 ? FGW_OK : FGW_ERR_UNAVAILABLE;
}

/* -- and is written elsewhere -------------------------------------------------------------------- */

static enum fgw_err read_leaf(struct fgw_blob_stage *stage, struct fgw_blob_reader *reader,
                              uint64_t index)
{
    size_t size = leaf_size(stage, index);
    size_t got = 0;
    while (got < size) {
        struct fgw_storage_run run;
        uint64_t offset = index * LEAF + got;
        uint64_t left = stage->sent_bytes - offset;
        enum fgw_err err = fgw_replicated_read_next(
            reader, offset, left < SIZE_MAX ? (size_t)left : SIZE_MAX, true, &run);
        if (err != FGW_OK) {
            return err;
        }
        size_t take = run.bytes.len < size - got ? run.bytes.len : size - got;
        memcpy(stage->spare.bytes + got, run.bytes.ptr, take);
        got += take;
    }
    return FGW_OK;
}

static enum fgw_err copy_leaf(struct fgw_blob_stage *stage, struct fgw_blob_reader *reader,
                              uint64_t index)
{
    size_t size = leaf_size(stage, index);
    enum fgw_err err = fgw_stage_join(stage);
    if (err == FGW_OK) {
        err = read_leaf(stage, reader, index);
    }
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_bytes bytes = fgw_bytes(stage->spare.bytes, size);
    struct fgw_storage_block block = {leaf_cid(stage, index), fgw_crc32c(0, bytes), bytes};
    struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, bytes);
    if (!fgw_cid_eq(&cid, &block.cid)) {
        return FGW_ERR_CORRUPT;
    }
    fgw_stage_send(stage, &block, true);
    return fgw_dag_builder_add(stage->dag, &block.cid, size);
}

/* To the members of stage->set; the tree begins anew and ends as it was. */
static enum fgw_err copy_source(struct fgw_blob_stage *stage, const struct source *source)
{
    struct fgw_blob_reader *reader =
        fgw_replicated_read_over(stage->replicated, &source->extent, &source->set);
    enum fgw_err err = FGW_OK;
    if (stage->spare.capacity < LEAF) {
        stage->spare.bytes = fgw_xrealloc(stage->spare.bytes, LEAF);
        stage->spare.capacity = LEAF;
    }
    fgw_dag_builder_free(stage->dag);
    stage->dag = fgw_dag_builder_new(&fgw_dag_unixfs_v1_2025, fgw_stage_add_node, stage);
    stage->nodes_sent = 0;
    for (uint64_t i = 0; i < leaf_count(stage) && err == FGW_OK; i++) {
        err = copy_leaf(stage, reader, i);
    }
    enum fgw_err joined = fgw_stage_join(stage);
    fgw_replicated_read_close(reader);
    return err == FGW_OK ? joined : err;
}

static bool has_member(const struct fgw_placement_set *set, const uint8_t *store_id)
{
    for (unsigned i = 0; i < set->count; i++) {
        if (memcmp(set->members[i].store_id, store_id, FGW_STORAGE_ID_SIZE) == 0) {
            return true;
        }
    }
    return false;
}

/* What the source's members hold for it is of no further use, unless it is what the stage will hold
 * there. */
static void release_source(struct fgw_blob_stage *stage, struct source *source)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < source->set.count; i++) {
        if (source->extent.number == stage->extent_number &&
            has_member(&stage->set, source->set.members[i].store_id)) {
            continue;
        }
        source->set.members[kept++] = source->set.members[i];
    }
    source->set.count = kept;
    fgw_replicated_release_at(stage->replicated, &stage->owner, &source->extent, &source->set);
}

static enum fgw_err move(struct fgw_blob_stage *stage, const struct source *source)
{
    uint64_t avoid[FGW_REPLICATED_SETS_TRIED] = {source->set.id};
    enum fgw_err err = FGW_ERR_UNAVAILABLE;
    for (size_t tried = 1; tried < FGW_REPLICATED_SETS_TRIED && err != FGW_OK; tried++) {
        err = fgw_stage_try_set(stage, avoid, tried);
        if (err == FGW_OK) {
            err = copy_source(stage, source);
        } else if (stage->set.count == 0) {
            break;
        }
        if (err != FGW_OK) {
            (void)!fgw_stage_join(stage);
            fgw_stage_close_lanes(stage);
            avoid[tried] = stage->set.id;
        }
    }
    return err;
}

enum fgw_err fgw_replicated_restage(struct fgw_blob_stage *stage)
{
    enum fgw_err first = fgw_stage_join(stage);
    if (stage->restages == FGW_REPLICATED_RESTAGES_MAX) {
        return first;
    }
    struct source *source = fgw_xcalloc(1, sizeof *source);
    stage->restages++;
    enum fgw_err err = make_source(stage, source);
    fgw_stage_close_lanes(stage);
    if (err == FGW_OK) {
        stage->finished = false;
        err = move(stage, source);
        release_source(stage, source);
    }
    if (err == FGW_OK) {
        FGW_REPLICATED_COUNT(stage->replicated, restages);
        fgw_log_info("blobs", "a write of %llu bytes so far went on in another replica set",
                     (unsigned long long)stage->sent_bytes);
    }
    fgw_xfree(source);
    return err == FGW_OK ? FGW_OK : first;
}
