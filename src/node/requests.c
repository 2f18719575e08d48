/* requests.c: what a session is asked for, one request at a time. Broken payloads end the session;
 * everything else is answered. */
#include "base/crc.h"
#include "node/node_internal.h"

enum { BATCH_MAX = 1000 };

static enum fgw_err accept_hold(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    (void)op;
    (void)txn;
    return FGW_OK;
}

/* An edge that knows an older set may leave out a member, or write to one that has left. */
static void look_at_set(struct fgw_node_session *session, const struct fgw_blockapi_head *head)
{
    const struct fgw_node *node = session->owner;
    session->stale_set = head->set != 0 && head->set_epoch != 0 && node->set_epoch != NULL &&
                         head->set_epoch < node->set_epoch(node->set_context, head->set);
}

enum fgw_err fgw_node_may_take(struct fgw_node_session *session)
{
    return session->stale_set ? FGW_ERR_CONFLICT : fgw_node_may_acknowledge(session->owner);
}

/* The hold and, for a PUT, the block: durable when it returns. */
static enum fgw_err commit_hold(struct fgw_node_session *session,
                                const struct fgw_storage_hold *hold)
{
    struct fgw_storage_op op = {
        .name = "hold", .evaluate = accept_hold, .holds = hold, .hold_count = 1};
    enum fgw_err err = fgw_node_may_take(session);
    if (err == FGW_OK) {
        fgw_node_working_begin(session);
        err = fgw_storage_commit(session->owner->storage, &op);
        fgw_node_working_end(session);
    }
    /* the epoch may have gone while the disk worked */
    return err == FGW_OK ? fgw_node_may_acknowledge(session->owner) : err;
}

static enum fgw_err put(struct fgw_node_session *session, struct fgw_bytes rest)
{
    struct fgw_blockapi_owner from;
    struct fgw_blockapi_block in;
    if (fgw_blockapi_take_owner(&rest, &from) != FGW_OK ||
        fgw_blockapi_take_block(&rest, &in) != FGW_OK) {
        return FGW_ERR_PARSE;
    }
    struct fgw_storage_owner owner = fgw_node_owner(&from);
    struct fgw_storage_block block = {in.cid, in.crc32c, in.bytes};
    struct fgw_storage_hold hold = {.owner = &owner,
                                    .extent = from.extent,
                                    .root = in.cid,
                                    .size_bytes = in.bytes.len,
                                    .block = &block,
                                    .pending = true,
                                    .listed = true};
    enum fgw_err err = in.bytes.len > FGW_STORAGE_INLINE_MAX ? FGW_ERR_BAD_REQUEST : FGW_OK;
    if (err == FGW_OK && fgw_crc32c(0, in.bytes) != in.crc32c) {
        err = FGW_ERR_CORRUPT;
    }
    if (err == FGW_OK) {
        err = commit_hold(session, &hold);
    }
    return fgw_node_answer(session, err, NULL, fgw_bytes(NULL, 0));
}

static enum fgw_err hold_copy(struct fgw_node_session *session, struct fgw_bytes rest)
{
    struct fgw_blockapi_owner from;
    struct fgw_storage_hold hold = {.pending = true, .listed = true};
    if (fgw_blockapi_take_owner(&rest, &from) != FGW_OK ||
        fgw_blockapi_take_cid(&rest, &hold.root) != FGW_OK ||
        fgw_blockapi_take_u64(&rest, &hold.size_bytes) != FGW_OK) {
        return FGW_ERR_PARSE;
    }
    struct fgw_storage_owner owner = fgw_node_owner(&from);
    hold.owner = &owner;
    hold.extent = from.extent;
    return fgw_node_answer(session, commit_hold(session, &hold), NULL, fgw_bytes(NULL, 0));
}

/* -- hints --------------------------------------------------------------------------------------- */

static void release_hold(struct fgw_node_session *session, const struct fgw_storage_hold_seen *hold)
{
    struct fgw_storage *storage = session->owner->storage;
    if ((hold->extent & FGW_EXTENT_TEMPORARY) == 0) {
        fgw_storage_release_hint(storage, &hold->owner, hold->extent, &hold->root);
    } else if (fgw_node_may_acknowledge(session->owner) == FGW_OK) {
        fgw_node_working_begin(session);
        (void)!fgw_storage_release(storage, hold->owner.owner_id, hold->extent, &hold->root);
        fgw_node_working_end(session);
    }
}

struct hints {
    struct fgw_storage_hold_seen *holds;
    uint32_t count;
};

static enum fgw_err take_hints(struct fgw_bytes rest, struct hints *hints)
{
    enum fgw_err err = FGW_OK;
    for (uint32_t i = 0; i < hints->count && err == FGW_OK; i++) {
        struct fgw_blockapi_owner from;
        struct fgw_storage_hold_seen *hold = &hints->holds[i];
        err = fgw_blockapi_take_owner(&rest, &from);
        if (err == FGW_OK) {
            err = fgw_blockapi_take_cid(&rest, &hold->root);
        }
        if (err == FGW_OK) {
            hold->owner = fgw_node_owner(&from);
            hold->extent = from.extent;
        }
    }
    return err;
}

static enum fgw_err confirm(struct fgw_node_session *session, const struct hints *hints)
{
    enum fgw_err err = fgw_node_may_acknowledge(session->owner);
    if (err == FGW_OK) {
        fgw_node_working_begin(session);
        err = fgw_storage_confirm(session->owner->storage, hints->holds, hints->count);
        fgw_node_working_end(session);
    }
    return err;
}

/* CONFIRM and RELEASE. For a released hold the store asks the metadata before it acts. */
static enum fgw_err take_hints_of(struct fgw_node_session *session, bool release,
                                  struct fgw_bytes rest)
{
    struct hints hints = {0};
    enum fgw_err answer = FGW_OK;
    if (fgw_blockapi_take_u32(&rest, &hints.count) != FGW_OK || hints.count > BATCH_MAX) {
        return FGW_ERR_PARSE;
    }
    hints.holds = fgw_xcalloc(hints.count + 1, sizeof *hints.holds);
    enum fgw_err err = take_hints(rest, &hints);
    for (uint32_t i = 0; i < hints.count && err == FGW_OK && release; i++) {
        release_hold(session, &hints.holds[i]);
    }
    if (err == FGW_OK && !release) {
        answer = confirm(session, &hints);
    }
    fgw_xfree(hints.holds);
    return err == FGW_OK ? fgw_node_answer(session, answer, NULL, fgw_bytes(NULL, 0)) : err;
}

/* -- the store itself ------------------------------------------------------------------------------- */

/* A block that is fine, or is not here, needs nothing. */
static enum fgw_err damaged(struct fgw_node_session *session, struct fgw_bytes rest)
{
    struct fgw_cid cid;
    if (fgw_blockapi_take_cid(&rest, &cid) != FGW_OK) {
        return FGW_ERR_PARSE;
    }
    fgw_node_working_begin(session);
    enum fgw_err err = fgw_storage_check_block(session->owner->storage, &cid);
    fgw_node_working_end(session);
    err = err == FGW_ERR_CORRUPT || err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    return fgw_node_answer(session, err, NULL, fgw_bytes(NULL, 0));
}

static enum fgw_err health(struct fgw_node_session *session)
{
    struct fgw_storage_stats stats;
    struct fgw_buf extra;
    fgw_storage_stats(session->owner->storage, &stats);
    bool fenced = fgw_node_may_acknowledge(session->owner) != FGW_OK;
    struct fgw_blockapi_health health = {
        .free_bytes = stats.free_bytes,
        .total_bytes = stats.total_bytes,
        .flags = (stats.read_only ? FGW_BLOCKAPI_READ_ONLY : 0u) |
                 (stats.below_reserve ? FGW_BLOCKAPI_BELOW_RESERVE : 0u) |
                 (fenced ? FGW_BLOCKAPI_FENCED : 0u)};
    fgw_buf_init(&extra, 64);
    fgw_blockapi_put_health(&extra, &health);
    enum fgw_err err = fgw_node_answer(session, FGW_OK, NULL, fgw_buf_bytes(&extra));
    fgw_buf_deinit(&extra);
    return err;
}

/* -- which --------------------------------------------------------------------------------------- */

static enum fgw_err dispatch(struct fgw_node_session *session, uint8_t kind, struct fgw_bytes rest)
{
    switch (kind) {
    case FGW_BLOCKAPI_PUT:
        return put(session, rest);
    case FGW_BLOCKAPI_BEGIN:
        return fgw_node_write_begin(session, rest);
    case FGW_BLOCKAPI_FINISH:
        return fgw_node_write_finish(session, rest);
    case FGW_BLOCKAPI_ABORT:
        return fgw_node_write_abort(session);
    case FGW_BLOCKAPI_HOLD:
        return hold_copy(session, rest);
    case FGW_BLOCKAPI_CONFIRM:
    case FGW_BLOCKAPI_RELEASE:
        return take_hints_of(session, kind == FGW_BLOCKAPI_RELEASE, rest);
    case FGW_BLOCKAPI_READ:
        return fgw_node_read(session, rest);
    case FGW_BLOCKAPI_LEAVES:
        return fgw_node_leaves(session, rest);
    case FGW_BLOCKAPI_DAMAGED:
        return damaged(session, rest);
    case FGW_BLOCKAPI_HEALTH:
        return health(session);
    default:
        return FGW_ERR_PARSE;
    }
}

enum fgw_err fgw_node_execute(struct fgw_node_session *session, uint8_t kind,
                              struct fgw_bytes payload)
{
    struct fgw_blockapi_head head;
    struct fgw_node *node = session->owner;
    if (kind == FGW_BLOCKAPI_BLOCK) {
        return fgw_node_write_block(session, payload);
    }
    bool ends_write = kind == FGW_BLOCKAPI_FINISH || kind == FGW_BLOCKAPI_ABORT;
    if (fgw_blockapi_take_head(&payload, &head) != FGW_OK ||
        memcmp(head.store_id, fgw_storage_id(node->storage), sizeof head.store_id) != 0 ||
        (session->writing && !ends_write)) {
        return FGW_ERR_PARSE;
    }
    atomic_fetch_add(&node->requests, 1);
    if (head.epoch > node->epoch) {
        fgw_node_fence(node, head.epoch);
    }
    look_at_set(session, &head);
    return dispatch(session, kind, payload);
}
