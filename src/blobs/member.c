/* member.c: one member of a replica set: the own store, or another by the block API; and work on
 * several members side by side. */
#include "base/clock.h"
#include "base/log.h"
#include "blobs/replicated_internal.h"

static bool is_local(const struct fgw_member *member)
{
    return fgw_member_of(member)->local && member->replicated->options.storage != NULL;
}

static struct fgw_remote_target target_of(const struct fgw_member *member)
{
    return (struct fgw_remote_target){fgw_member_of(member), member->set->id, member->set->epoch};
}

static struct fgw_blockapi_owner wire_owner(const struct fgw_storage_owner *owner, uint64_t extent)
{
    struct fgw_blockapi_owner wire = {.extent = extent, .key = owner->key};
    memcpy(wire.bucket_id, owner->bucket_id, sizeof wire.bucket_id);
    memcpy(wire.owner_id, owner->owner_id, sizeof wire.owner_id);
    return wire;
}

static enum fgw_err may_acknowledge(const struct fgw_member *member)
{
    const struct fgw_replicated_options *options = &member->replicated->options;
    return options->may_acknowledge == NULL ? FGW_OK
                                            : options->may_acknowledge(options->local_context);
}

/* -- holds --------------------------------------------------------------------------------------- */

static enum fgw_err accept(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    (void)op;
    (void)txn;
    return FGW_OK;
}

static enum fgw_err hold_locally(const struct fgw_member *member,
                                 const struct fgw_member_hold *hold,
                                 const struct fgw_storage_block *block)
{
    struct fgw_storage_hold taken = {.owner = hold->owner,
                                     .extent = hold->extent,
                                     .root = *hold->root,
                                     .size_bytes = hold->size,
                                     .block = block,
                                     .pending = true,
                                     .listed = true};
    struct fgw_storage_op op = {
        .name = "hold", .evaluate = accept, .holds = &taken, .hold_count = 1};
    enum fgw_err err = may_acknowledge(member);
    if (err == FGW_OK) {
        err = fgw_storage_commit(member->replicated->options.storage, &op);
    }
    return err == FGW_OK ? may_acknowledge(member) : err;
}

enum fgw_err fgw_member_hold(const struct fgw_member *member, const struct fgw_member_hold *hold,
                             const struct fgw_storage_block *block, struct fgw_error *error)
{
    if (is_local(member)) {
        return hold_locally(member, hold, block);
    }
    struct fgw_remotes *remotes = member->replicated->options.remotes;
    struct fgw_remote_target target = target_of(member);
    struct fgw_blockapi_owner owner = wire_owner(hold->owner, hold->extent);
    return block != NULL ? fgw_remote_put(remotes, &target, &owner, block, error)
                         : fgw_remote_hold(remotes, &target, &owner, hold->root, hold->size, error);
}

/* -- hints --------------------------------------------------------------------------------------- */

/* Owners and roots, as CONFIRM and RELEASE have them. */
static void put_list(struct fgw_buf *list, const struct fgw_storage_hold_seen *holds,
                     uint32_t count)
{
    fgw_buf_init(list, 0);
    for (uint32_t i = 0; i < count; i++) {
        struct fgw_blockapi_owner owner = wire_owner(&holds[i].owner, holds[i].extent);
        fgw_blockapi_put_owner(list, &owner);
        fgw_blockapi_put_cid(list, &holds[i].root);
    }
}

static void release_here(struct fgw_storage *storage, const struct fgw_storage_hold_seen *hold)
{
    if ((hold->extent & FGW_EXTENT_TEMPORARY) != 0) {
        (void)!fgw_storage_release(storage, hold->owner.owner_id, hold->extent, &hold->root);
    } else {
        fgw_storage_release_hint(storage, &hold->owner, hold->extent, &hold->root);
    }
}

struct kept {
    const struct fgw_member *member;
    const struct fgw_storage_hold_seen *holds;
};

static void keep_one(void *context, unsigned index)
{
    const struct kept *kept = context;
    const struct fgw_placement *placement = kept->member->replicated->options.placement;
    const struct fgw_storage_hold_seen *hold = &kept->holds[index];
    if ((hold->extent & FGW_EXTENT_TEMPORARY) == 0) {
        placement->keep_release(placement->context, fgw_member_of(kept->member)->store_id,
                                &hold->owner, hold->extent, &hold->root);
    }
}

/* The store is told when it is back. */
static void keep_all(const struct fgw_member *member, const struct fgw_storage_hold_seen *holds,
                     uint32_t count)
{
    if (member->replicated->options.placement->keep_release == NULL) {
        return;
    }
    for (uint32_t at = 0; at < count; at += FGW_PLACEMENT_MEMBERS_MAX) {
        struct kept kept = {member, holds + at};
        uint32_t left = count - at;
        fgw_member_run_all(left < FGW_PLACEMENT_MEMBERS_MAX ? left : FGW_PLACEMENT_MEMBERS_MAX,
                           keep_one, &kept);
    }
}

void fgw_member_release(const struct fgw_member *member, const struct fgw_storage_hold_seen *holds,
                        uint32_t count)
{
    const struct fgw_replicated_options *options = &member->replicated->options;
    for (uint32_t i = 0; i < count && is_local(member); i++) {
        release_here(options->storage, &holds[i]);
    }
    if (is_local(member)) {
        return;
    }
    struct fgw_remote_target target = target_of(member);
    const struct fgw_placement_member *store = fgw_member_of(member);
    enum fgw_err err = FGW_ERR_UNAVAILABLE;
    if (!store->suspect || store->joining) {
        struct fgw_error error;
        struct fgw_buf list;
        fgw_error_init(&error);
        put_list(&list, holds, count);
        err = fgw_remote_release(options->remotes, &target, count, fgw_buf_bytes(&list), &error);
        fgw_buf_deinit(&list);
    }
    if (err != FGW_OK) {
        keep_all(member, holds, count);
    }
}

enum fgw_err fgw_member_confirm(const struct fgw_member *member,
                                const struct fgw_storage_hold_seen *holds, uint32_t count,
                                struct fgw_error *error)
{
    const struct fgw_replicated_options *options = &member->replicated->options;
    if (is_local(member)) {
        enum fgw_err err = may_acknowledge(member);
        return err == FGW_OK ? fgw_storage_confirm(options->storage, holds, count) : err;
    }
    struct fgw_remote_target target = target_of(member);
    struct fgw_buf list;
    put_list(&list, holds, count);
    enum fgw_err err =
        fgw_remote_confirm(options->remotes, &target, count, fgw_buf_bytes(&list), error);
    fgw_buf_deinit(&list);
    return err;
}

/* -- writing ------------------------------------------------------------------------------------- */

enum fgw_err fgw_member_writer_open(const struct fgw_member *member,
                                    const struct fgw_storage_owner *owner, uint64_t extent,
                                    struct fgw_member_writer *out_writer, struct fgw_error *error)
{
    if (is_local(member)) {
        enum fgw_err err = may_acknowledge(member);
        if (err == FGW_OK) {
            err = fgw_storage_writer_new(member->replicated->options.storage, owner, extent,
                                         UINT64_MAX, &out_writer->local);
        }
        if (err == FGW_OK) {
            fgw_storage_writer_set_pending(out_writer->local);
        }
        return err;
    }
    struct fgw_remote_target target = target_of(member);
    struct fgw_blockapi_owner wire = wire_owner(owner, extent);
    return fgw_remote_writer_new(member->replicated->options.remotes, &target, &wire, UINT64_MAX,
                                 &out_writer->remote, error);
}

enum fgw_err fgw_member_writer_add(struct fgw_member_writer *writer,
                                   const struct fgw_storage_block *block, bool leaf,
                                   struct fgw_error *error)
{
    return writer->local != NULL ? fgw_storage_writer_add(writer->local, block, leaf)
                                 : fgw_remote_writer_add(writer->remote, block, leaf, error);
}

enum fgw_err fgw_member_writer_finish(const struct fgw_member *member,
                                      struct fgw_member_writer *writer,
                                      const struct fgw_member_hold *hold, struct fgw_error *error)
{
    if (writer->local == NULL) {
        return fgw_remote_writer_finish(writer->remote, hold->root, hold->size, hold->extent,
                                        error);
    }
    fgw_storage_writer_set_extent(writer->local, hold->extent);
    enum fgw_err err = fgw_storage_writer_finish(writer->local, hold->root, hold->size);
    return err == FGW_OK ? may_acknowledge(member) : err;
}

void fgw_member_writer_close(struct fgw_member_writer *writer)
{
    fgw_storage_writer_free(writer->local);
    fgw_remote_writer_free(writer->remote);
    *writer = (struct fgw_member_writer){NULL, NULL};
}

/* -- reading ------------------------------------------------------------------------------------- */

enum fgw_err fgw_member_reader_open(const struct fgw_member *member,
                                    const struct fgw_extent *extent, uint64_t offset, uint64_t len,
                                    struct fgw_member_reader *out_reader, struct fgw_error *error)
{
    if (!is_local(member)) {
        struct fgw_remote_target target = target_of(member);
        return fgw_remote_reader_new(member->replicated->options.remotes, &target, &extent->root,
                                     extent->size, offset, len, &out_reader->remote, error);
    }
    struct fgw_storage_reader *reader;
    enum fgw_err err =
        fgw_storage_reader_open(member->replicated->options.storage, &extent->root, NULL, &reader);
    if (err == FGW_OK && fgw_storage_reader_size(reader) != extent->size) {
        fgw_storage_reader_close(reader);
        err = FGW_ERR_CORRUPT;
    }
    if (err == FGW_OK) {
        out_reader->local = reader;
    }
    return err;
}

void fgw_member_reader_close(struct fgw_member_reader *reader)
{
    fgw_storage_reader_close(reader->local);
    fgw_remote_reader_free(reader->remote);
    *reader = (struct fgw_member_reader){NULL, NULL};
}

enum fgw_err fgw_member_damaged(const struct fgw_member *member, const struct fgw_cid *cid,
                                struct fgw_error *error)
{
    const struct fgw_replicated_options *options = &member->replicated->options;
    if (!is_local(member)) {
        struct fgw_remote_target target = target_of(member);
        return fgw_remote_damaged(options->remotes, &target, cid, error);
    }
    enum fgw_err err = fgw_storage_check_block(options->storage, cid);
    return err == FGW_ERR_CORRUPT || err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

/* -- what it shows ------------------------------------------------------------------------------- */

void fgw_member_report(const struct fgw_member *member, enum fgw_err err,
                       const struct fgw_cid *root)
{
    const struct fgw_placement *placement = member->replicated->options.placement;
    if (err == FGW_ERR_CONFLICT) { /* the store is right */
        if (placement->stale != NULL) {
            placement->stale(placement->context, member->set->id);
        }
        return;
    }
    if (fgw_member_of(member)->joining && err == FGW_ERR_NOT_FOUND) {
        return;
    }
    enum fgw_placement_event event = err == FGW_OK            ? FGW_PLACEMENT_GOOD
                                     : err == FGW_ERR_NOSPACE ? FGW_PLACEMENT_FULL
                                     : err == FGW_ERR_CORRUPT || err == FGW_ERR_NOT_FOUND
                                         ? FGW_PLACEMENT_DAMAGED
                                         : FGW_PLACEMENT_FAILED;
    placement->report(placement->context, fgw_member_of(member)->store_id, event, root);
}

/* -- side by side -------------------------------------------------------------------------------- */

struct lane {
    void (*fn)(void *context, unsigned index);
    void *context;
    unsigned index;
    struct fgw_wait *wait;
};

static void run_lane(void *arg)
{
    struct lane *lane = arg;
    lane->fn(lane->context, lane->index);
    fgw_wait_signal(lane->wait);
}

void fgw_member_run_all(unsigned count, void (*fn)(void *context, unsigned index), void *context)
{
    struct lane lanes[FGW_PLACEMENT_MEMBERS_MAX];
    struct fgw_wait wait;
    if (count == 0) {
        return;
    }
    FGW_CHECK(count <= FGW_PLACEMENT_MEMBERS_MAX);
    fgw_wait_init(&wait, count - 1);
    for (unsigned i = 1; i < count; i++) {
        lanes[i] = (struct lane){fn, context, i, &wait};
        fgw_fiber_spawn(fgw_loop_current(), run_lane, &lanes[i]);
    }
    fn(context, 0);
    fgw_wait_for(&wait);
}
