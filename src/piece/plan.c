/* plan.c: see plan.h. Every hold is looked at once a piece; of those in the group the ones with the
 * lowest offsets are kept, so that memory is bounded however many there are. */
#include "piece/plan.h"

#include <stdlib.h>

#include "cid/commp.h"

enum {
    PAGE = 1000,
    ROOM = FGW_PIECE_BLOBS_MAX / 4, /* kept above the maximum between two sorts */
    LEAF_BYTES = 1024 * 1024,
    SECTION_BYTES = 64,  /* head of a section and link of a list node */
    LEAF_COST = 128,     /* section head of a leaf, and its link in a node */
    NODES_COST = 8 * 128 /* section heads and ends of inner nodes */
};

struct walk {
    const struct fgw_piece_selection *selection;
    struct fgw_piece_plan plan;
    size_t capacity;
    bool cut; /* blobs with higher offsets were left out */
};

static uint64_t car_bytes(const struct fgw_piece_blob *blob)
{
    if (fgw_cid_codec(&blob->cid) == FGW_CODEC_RAW) {
        return blob->size_bytes + 2 * SECTION_BYTES;
    }
    return blob->size_bytes + (blob->size_bytes / LEAF_BYTES + 1) * LEAF_COST + NODES_COST;
}

static int by_offset(const void *a, const void *b)
{
    uint64_t left = ((const struct fgw_piece_blob *)a)->offset;
    uint64_t right = ((const struct fgw_piece_blob *)b)->offset;
    return left < right ? -1 : left > right;
}

/* In order, each once, at most the maximum. */
static void tidy(struct walk *walk)
{
    struct fgw_piece_blob *blobs = walk->plan.blobs;
    size_t kept = 0;
    if (walk->plan.count == 0) {
        return;
    }
    qsort(blobs, walk->plan.count, sizeof *blobs, by_offset);
    for (size_t i = 0; i < walk->plan.count && kept < FGW_PIECE_BLOBS_MAX; i++) {
        if (kept == 0 || blobs[kept - 1].offset != blobs[i].offset) {
            blobs[kept++] = blobs[i];
        }
    }
    walk->cut = walk->cut || (kept == FGW_PIECE_BLOBS_MAX &&
                              blobs[kept - 1].offset != blobs[walk->plan.count - 1].offset);
    walk->plan.count = kept;
}

static void keep(struct walk *walk, const struct fgw_piece_blob *blob)
{
    if (walk->cut && blob->offset > walk->plan.blobs[FGW_PIECE_BLOBS_MAX - 1].offset) {
        return;
    }
    if (walk->plan.count == FGW_PIECE_BLOBS_MAX + ROOM) {
        tidy(walk);
    }
    if (walk->plan.count == walk->capacity) {
        walk->capacity = walk->capacity == 0 ? PAGE : 2 * walk->capacity;
        walk->plan.blobs =
            fgw_xrealloc(walk->plan.blobs, walk->capacity * sizeof *walk->plan.blobs);
    }
    walk->plan.blobs[walk->plan.count++] = *blob;
}

static enum fgw_err look_at(void *context, const struct fgw_storage_hold_seen *seen,
                            struct fgw_error *error)
{
    struct walk *walk = context;
    struct fgw_storage_place place;
    const struct fgw_piece_selection *selection = walk->selection;
    enum fgw_err err = fgw_storage_block_place(selection->holds.storage, &seen->root, &place);
    if (err == FGW_ERR_NOT_FOUND) {
        return FGW_OK; /* released since */
    }
    if (err == FGW_ERR_CORRUPT) {
        char text[FGW_CID_TEXT_SIZE];
        fgw_cid_text(&seen->root, text);
        return fgw_error_set(error, err,
                             "block %s is damaged (fgw scrub): store the object \"%.*s\" again or "
                             "delete it, then export",
                             text, FGW_FMT(fgw_bytes_sub(seen->owner.key, 0, 200)));
    }
    if (err == FGW_OK && place.group == selection->group && place.offset >= selection->from) {
        struct fgw_piece_blob blob = {seen->root, place.offset, seen->size_bytes};
        keep(walk, &blob);
    }
    return err;
}

enum fgw_err fgw_piece_each_hold(const struct fgw_piece_holds *holds, fgw_piece_hold_fn *fn,
                                 void *context, struct fgw_error *error)
{
    struct fgw_arena arena;
    struct fgw_buf cursor;
    struct fgw_storage_hold_seen *seen;
    size_t count = 1;
    enum fgw_err err = FGW_OK;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&cursor, 0);
    while (err == FGW_OK && count > 0) {
        fgw_arena_reset(&arena);
        err = fgw_storage_holds_next(holds->storage, &cursor, &arena, PAGE, &seen, &count);
        for (size_t i = 0; err == FGW_OK && i < count; i++) {
            err = fn(context, &seen[i], error);
        }
        if (err == FGW_OK && !holds->go_on(holds->context)) {
            err = FGW_ERR_CANCELLED;
        }
    }
    fgw_buf_deinit(&cursor);
    fgw_arena_deinit(&arena);
    return err;
}

/* The first blobs that fit the piece. */
static enum fgw_err cut_to_size(struct walk *walk, struct fgw_error *error)
{
    struct fgw_piece_plan *plan = &walk->plan;
    uint64_t room = walk->selection->padded_max / 128 * FGW_COMMP_QUAD_SIZE - 2 * SECTION_BYTES;
    size_t taken = 0;
    while (taken < plan->count && plan->bytes + car_bytes(&plan->blobs[taken]) <= room) {
        plan->bytes += car_bytes(&plan->blobs[taken]);
        taken++;
    }
    if (taken == 0 && plan->count > 0) {
        char text[FGW_CID_TEXT_SIZE];
        fgw_cid_text(&plan->blobs[0].cid, text);
        return fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT,
                             "blob %s has %llu bytes and fits no piece of %llu: give a larger size",
                             text, (unsigned long long)plan->blobs[0].size_bytes,
                             (unsigned long long)walk->selection->padded_max);
    }
    plan->count = taken;
    plan->next = taken == 0 ? walk->selection->from : plan->blobs[taken - 1].offset + 1;
    return FGW_OK;
}

enum fgw_err fgw_piece_plan_next(const struct fgw_piece_selection *selection,
                                 struct fgw_piece_plan *out_plan, struct fgw_error *error)
{
    struct walk walk = {.selection = selection};
    enum fgw_err err = fgw_piece_each_hold(&selection->holds, look_at, &walk, error);
    if (err == FGW_OK) {
        tidy(&walk);
        err = cut_to_size(&walk, error);
    }
    if (err != FGW_OK) {
        fgw_piece_plan_deinit(&walk.plan);
        return err;
    }
    *out_plan = walk.plan;
    return FGW_OK;
}

void fgw_piece_plan_deinit(struct fgw_piece_plan *plan)
{
    fgw_xfree(plan->blobs);
    *plan = (struct fgw_piece_plan){0};
}
