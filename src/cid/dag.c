/* dag.c: see dag.h. levels[0] gathers leaves, levels[n] nodes of height n; a full level becomes one
 * entry of the next. */
#include "cid/dag.h"

#include "base/check.h"
#include "cid/unixfs.h"

enum { LEVELS_MAX = 64 }; /* width 2 over 2^62 leaves stays below */

const struct fgw_dag_profile fgw_dag_unixfs_v1_2025 = {1024 * 1024, 1024};

struct entry {
    struct fgw_cid cid;
    uint64_t file_bytes;
    uint64_t tree_bytes;
};

struct fgw_dag_builder {
    struct fgw_dag_profile profile;
    fgw_dag_emit_fn *emit;
    void *context;
    struct fgw_unixfs_encoder levels[LEVELS_MAX];
    size_t level_count;
    struct entry
        last[LEVELS_MAX]; /* newest entry of each level: the root, when it is the only one */
    uint64_t leaf_count;
    bool short_leaf; /* one that was not a whole chunk has come */
    bool custom;     /* it was not the last one, or was longer than a chunk */
};

struct fgw_dag_builder *fgw_dag_builder_new(const struct fgw_dag_profile *profile,
                                            fgw_dag_emit_fn *emit, void *context)
{
    FGW_CHECK(profile->width >= 2 && profile->width <= FGW_UNIXFS_LINKS_MAX);
    struct fgw_dag_builder *builder = fgw_xcalloc(1, sizeof *builder);
    builder->profile = *profile;
    builder->emit = emit;
    builder->context = context;
    return builder;
}

void fgw_dag_builder_free(struct fgw_dag_builder *builder)
{
    if (builder == NULL) {
        return;
    }
    for (size_t i = 0; i < builder->level_count; i++) {
        fgw_unixfs_encoder_deinit(&builder->levels[i]);
    }
    fgw_xfree(builder);
}

static enum fgw_err push(struct fgw_dag_builder *builder, size_t level, const struct entry *entry)
{
    FGW_CHECK(level < LEVELS_MAX);
    if (level == builder->level_count) {
        fgw_unixfs_encoder_init(&builder->levels[level]);
        builder->level_count++;
    }
    builder->last[level] = *entry;
    return fgw_unixfs_encoder_add(&builder->levels[level], &entry->cid, entry->file_bytes,
                                  entry->tree_bytes);
}

/* Turns what a level holds into one entry of the next. */
static enum fgw_err close_level(struct fgw_dag_builder *builder, size_t level)
{
    struct fgw_unixfs_encoder *encoder = &builder->levels[level];
    struct fgw_bytes node = fgw_unixfs_encoder_finish(encoder);
    struct entry parent = {fgw_cid_of(FGW_CODEC_DAG_PB, node), encoder->file_bytes,
                           encoder->tree_bytes + node.len};
    enum fgw_err err =
        builder->emit == NULL ? FGW_OK : builder->emit(builder->context, &parent.cid, node);
    fgw_unixfs_encoder_clear(encoder);
    return err == FGW_OK ? push(builder, level + 1, &parent) : err;
}

static enum fgw_err close_full_levels(struct fgw_dag_builder *builder)
{
    enum fgw_err err = FGW_OK;
    for (size_t level = 0; err == FGW_OK && level < builder->level_count &&
                           builder->levels[level].link_count == builder->profile.width;
         level++) {
        err = close_level(builder, level);
    }
    return err;
}

enum fgw_err fgw_dag_builder_add(struct fgw_dag_builder *builder, const struct fgw_cid *cid,
                                 uint64_t size_bytes)
{
    if (size_bytes == 0) {
        return FGW_OK;
    }
    builder->custom =
        builder->custom || builder->short_leaf || size_bytes > builder->profile.chunk_bytes;
    builder->short_leaf = size_bytes != builder->profile.chunk_bytes;
    builder->leaf_count++;
    struct entry leaf = {*cid, size_bytes, size_bytes};
    enum fgw_err err = push(builder, 0, &leaf);
    return err == FGW_OK ? close_full_levels(builder) : err;
}

enum fgw_err fgw_dag_builder_finish(struct fgw_dag_builder *builder, struct fgw_dag_root *out_root)
{
    struct entry root = {fgw_cid_of(FGW_CODEC_RAW, fgw_bytes(NULL, 0)), 0, 0};
    /* level_count grows in the loop while a level below the top is not a single entry */
    for (size_t level = 0; level < builder->level_count; level++) {
        size_t count = builder->levels[level].link_count;
        bool top = level + 1 == builder->level_count;
        if (top && count == 1) {
            root = builder->last[level];
        } else if (count > 0) {
            enum fgw_err err = close_level(builder, level);
            if (err != FGW_OK) {
                return err;
            }
        }
    }
    *out_root = (struct fgw_dag_root){.cid = root.cid,
                                      .file_bytes = root.file_bytes,
                                      .tree_bytes = root.tree_bytes,
                                      .leaf_count = builder->leaf_count,
                                      .canonical = !builder->custom};
    return FGW_OK;
}
