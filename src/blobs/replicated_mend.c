/* replicated_mend.c: one extent, whole again: every member of its set is asked for a further hold, and a
 * member that does not have the blob gets it from one that has; see replicated.h. Repeating it costs one
 * request a member. */
#include "base/crc.h"
#include "blobs/replicated_internal.h"

enum { LEAF = FGW_STORAGE_BLOCK_MAX };

struct mend {
    struct fgw_replicated *replicated;
    struct fgw_member_hold hold;
    const struct fgw_extent *extent;
    struct fgw_error *error;
    struct fgw_placement_set set;
    struct fgw_placement_set sources; /* members that have it */
    bool lacks[FGW_PLACEMENT_MEMBERS_MAX];
    /* a copy under way */
    struct fgw_member_writer writer;
    uint8_t *leaf;
};

static struct fgw_member member_at(const struct mend *mend, unsigned index)
{
    return (struct fgw_member){mend->replicated, &mend->set, index};
}

/* Who has it, who does not. A member that does not answer ends the work: it may have it. */
static enum fgw_err ask_members(struct mend *mend)
{
    for (unsigned i = 0; i < mend->set.count; i++) {
        struct fgw_member member = member_at(mend, i);
        enum fgw_err err = fgw_member_hold(&member, &mend->hold, NULL, mend->error);
        mend->lacks[i] = err == FGW_ERR_NOT_FOUND;
        if (err == FGW_OK) {
            mend->sources.members[mend->sources.count++] = mend->set.members[i];
        } else if (err != FGW_ERR_NOT_FOUND) {
            fgw_member_report(&member, err, NULL);
            return err;
        }
    }
    return mend->sources.count > 0
               ? FGW_OK
               : fgw_error_set(mend->error, FGW_ERR_NOT_FOUND, "No member has the blob.");
}

/* -- copying ------------------------------------------------------------------------------------- */

/* A whole leaf, its digest checked against the root where it came over the network. */
static enum fgw_err read_leaf(struct mend *mend, struct fgw_blob_reader *reader, uint64_t offset,
                              struct fgw_bytes *out)
{
    uint64_t left = mend->extent->size - offset;
    size_t size = left < LEAF ? (size_t)left : LEAF;
    size_t got = 0;
    while (got < size) {
        struct fgw_storage_run run;
        enum fgw_err err = fgw_replicated_read_next(reader, offset + got, size - got, true, &run);
        if (err != FGW_OK) {
            return err;
        }
        memcpy(mend->leaf + got, run.bytes.ptr, run.bytes.len);
        got += run.bytes.len;
    }
    *out = fgw_bytes(mend->leaf, size);
    return FGW_OK;
}

static struct fgw_storage_block block_of(struct fgw_bytes bytes)
{
    uint8_t digest[FGW_SHA256_SIZE];
    fgw_sha256(bytes, digest);
    return (struct fgw_storage_block){fgw_cid_make(FGW_CODEC_RAW, digest), fgw_crc32c(0, bytes),
                                      bytes};
}

static enum fgw_err add_node(void *context, const struct fgw_cid *cid, struct fgw_bytes node)
{
    struct mend *mend = context;
    struct fgw_storage_block block = {*cid, fgw_crc32c(0, node), node};
    return fgw_member_writer_add(&mend->writer, &block, false, mend->error);
}

/* What came must be what the root names: nothing else is finished anywhere. */
static enum fgw_err copy_tree(struct mend *mend, struct fgw_blob_reader *reader)
{
    struct fgw_dag_root root;
    struct fgw_dag_builder *dag = fgw_dag_builder_new(&fgw_dag_unixfs_v1_2025, add_node, mend);
    enum fgw_err err = FGW_OK;
    for (uint64_t at = 0; at < mend->extent->size && err == FGW_OK; at += LEAF) {
        struct fgw_bytes bytes;
        err = read_leaf(mend, reader, at, &bytes);
        if (err == FGW_OK) {
            struct fgw_storage_block block = block_of(bytes);
            err = fgw_member_writer_add(&mend->writer, &block, true, mend->error);
            err = err == FGW_OK ? fgw_dag_builder_add(dag, &block.cid, bytes.len) : err;
        }
    }
    if (err == FGW_OK) {
        err = fgw_dag_builder_finish(dag, &root);
    }
    fgw_dag_builder_free(dag);
    return err == FGW_OK && !fgw_cid_eq(&root.cid, &mend->extent->root) ? FGW_ERR_CORRUPT : err;
}

static enum fgw_err copy_large(struct mend *mend, const struct fgw_member *member,
                               struct fgw_blob_reader *reader)
{
    enum fgw_err err = fgw_member_writer_open(member, mend->hold.owner, mend->hold.extent,
                                              &mend->writer, mend->error);
    if (err == FGW_OK) {
        err = copy_tree(mend, reader);
    }
    if (err == FGW_OK) {
        err = fgw_member_writer_finish(member, &mend->writer, &mend->hold, mend->error);
    }
    fgw_member_writer_close(&mend->writer);
    return err;
}

static enum fgw_err copy_small(struct mend *mend, const struct fgw_member *member,
                               struct fgw_blob_reader *reader)
{
    struct fgw_bytes bytes = fgw_bytes(mend->leaf, 0);
    enum fgw_err err = mend->extent->size > 0 ? read_leaf(mend, reader, 0, &bytes) : FGW_OK;
    struct fgw_storage_block block = block_of(bytes);
    if (err == FGW_OK && !fgw_cid_eq(&block.cid, &mend->extent->root)) {
        err = FGW_ERR_CORRUPT;
    }
    return err == FGW_OK ? fgw_member_hold(member, &mend->hold, &block, mend->error) : err;
}

static enum fgw_err copy_to(struct mend *mend, unsigned index)
{
    struct fgw_member member = member_at(mend, index);
    struct fgw_blob_reader *reader =
        fgw_replicated_read_over(mend->replicated, mend->extent, &mend->sources);
    enum fgw_err err = mend->extent->size <= FGW_STORAGE_INLINE_MAX
                           ? copy_small(mend, &member, reader)
                           : copy_large(mend, &member, reader);
    fgw_replicated_read_close(reader);
    if (err == FGW_OK) {
        FGW_REPLICATED_COUNT(mend->replicated, copies_made);
    }
    return err;
}

/* -- all of it ----------------------------------------------------------------------------------- */

static enum fgw_err confirm_all(struct mend *mend)
{
    struct fgw_storage_hold_seen seen = {*mend->hold.owner, mend->hold.extent, *mend->hold.root,
                                         mend->hold.size};
    enum fgw_err err = FGW_OK;
    for (unsigned i = 0; i < mend->set.count && err == FGW_OK; i++) {
        struct fgw_member member = member_at(mend, i);
        err = fgw_member_confirm(&member, &seen, 1, mend->error);
    }
    return err;
}

static enum fgw_err mend_set(struct mend *mend)
{
    enum fgw_err err = ask_members(mend);
    for (unsigned i = 0; i < mend->set.count && err == FGW_OK; i++) {
        if (mend->lacks[i]) {
            mend->leaf = mend->leaf == NULL ? fgw_xmalloc(LEAF) : mend->leaf;
            err = copy_to(mend, i);
        }
    }
    fgw_xfree(mend->leaf);
    return err == FGW_OK ? confirm_all(mend) : err;
}

enum fgw_err fgw_blobs_replicated_mend(struct fgw_blobs *blobs,
                                       const struct fgw_storage_owner *owner,
                                       const struct fgw_extent *extent, struct fgw_error *error)
{
    struct fgw_replicated *replicated = fgw_replicated_of(blobs);
    const struct fgw_placement *placement = replicated->options.placement;
    struct mend *mend = fgw_xcalloc(1, sizeof *mend);
    mend->replicated = replicated;
    mend->hold = (struct fgw_member_hold){owner, extent->number, &extent->root, extent->size};
    mend->extent = extent;
    mend->error = error;
    enum fgw_err err = placement->resolve(placement->context, extent->set, &mend->set);
    if (err == FGW_OK) {
        mend->sources.id = mend->set.id;
        mend->sources.epoch = mend->set.epoch;
        err = mend_set(mend);
    }
    fgw_xfree(mend);
    return err;
}
