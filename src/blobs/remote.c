/* remote.c: requests of one frame and one answer; see remote.h. A request on a kept connection that
 * broke before its answer is sent again on a fresh one: all of them may come twice. */
#include "blobs/remotes_internal.h"

struct fgw_remotes *fgw_remotes_new(unsigned workers, const struct fgw_bytes *secrets,
                                    size_t secret_count)
{
    struct fgw_remotes *remotes = fgw_xcalloc(1, sizeof *remotes);
    remotes->secrets = secrets;
    remotes->secret_count = secret_count;
    remotes->workers = workers;
    remotes->per_worker = fgw_xcalloc(workers, sizeof *remotes->per_worker);
    for (unsigned i = 0; i < workers; i++) {
        fgw_list_init(&remotes->per_worker[i].idle);
    }
    return remotes;
}

void fgw_remotes_set_tls(struct fgw_remotes *remotes, struct fgw_tls_context *tls)
{
    fgw_tls_unref(remotes->tls);
    remotes->tls = fgw_tls_ref(tls);
}

void fgw_remotes_close_worker(struct fgw_remotes *remotes, unsigned index)
{
    struct fgw_list *node;
    remotes->closing = true;
    while ((node = fgw_list_pop_front(&remotes->per_worker[index].idle)) != NULL) {
        fgw_link_close(FGW_CONTAINER_OF(node, struct fgw_link, node));
    }
}

void fgw_remotes_free(struct fgw_remotes *remotes)
{
    if (remotes != NULL) {
        fgw_tls_unref(remotes->tls);
        fgw_xfree(remotes->per_worker);
        fgw_xfree(remotes);
    }
}

/* -- one request, one answer --------------------------------------------------------------------- */

struct call {
    uint8_t kind;
    const struct fgw_blockapi_owner *owner; /* NULL: none */
    const struct fgw_cid *root;             /* NULL: none */
    const uint64_t *numbers;
    size_t number_count;
    const struct fgw_storage_block *block; /* NULL: none */
    uint32_t counted;                      /* length of a list; 0: none */
    struct fgw_bytes list;
    struct fgw_buf *extra; /* of the answer, appended; NULL: not wanted */
};

static void encode(struct fgw_link *link, const struct call *call)
{
    if (call->counted > 0) {
        fgw_blockapi_put_u32(&link->request, call->counted);
        (void)fgw_buf_append(&link->request, call->list);
    }
    if (call->owner != NULL) {
        fgw_blockapi_put_owner(&link->request, call->owner);
    }
    if (call->root != NULL) {
        fgw_blockapi_put_cid(&link->request, call->root);
    }
    for (size_t i = 0; i < call->number_count; i++) {
        fgw_blockapi_put_u64(&link->request, call->numbers[i]);
    }
    if (call->block != NULL) {
        fgw_blockapi_put_block_head(&link->request, &call->block->cid, call->block->crc32c);
    }
}

static enum fgw_err attempt(struct fgw_link *link, const struct fgw_remote_target *target,
                            const struct call *call, bool *out_store_said, struct fgw_error *error)
{
    struct fgw_blockapi_answer answer;
    fgw_link_request(link, target);
    encode(link, call);
    size_t more = call->block != NULL;
    enum fgw_err err = fgw_link_send(link, call->kind, more ? &call->block->bytes : NULL, more);
    *out_store_said = false;
    if (err != FGW_OK) {
        return fgw_link_failed(link, err, error);
    }
    err = fgw_link_answer(link, &answer, out_store_said, error);
    if (err == FGW_OK && call->extra != NULL) {
        err = fgw_buf_append(call->extra, answer.extra);
    }
    return err;
}

static enum fgw_err run_call(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                             const struct call *call, struct fgw_error *error)
{
    for (bool fresh = false;; fresh = true) {
        struct fgw_link *link;
        bool store_said;
        enum fgw_err err = fgw_link_take(remotes, target->member, fresh, &link, error);
        if (err != FGW_OK) {
            return err;
        }
        bool reused = link->reused;
        err = attempt(link, target, call, &store_said, error);
        fgw_link_give(link, store_said);
        if (store_said || !reused || err == FGW_ERR_TIMEOUT) {
            return err;
        }
    }
}

enum fgw_err fgw_remote_put(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                            const struct fgw_blockapi_owner *owner,
                            const struct fgw_storage_block *block, struct fgw_error *error)
{
    struct call call = {.kind = FGW_BLOCKAPI_PUT, .owner = owner, .block = block};
    return run_call(remotes, target, &call, error);
}

enum fgw_err fgw_remote_hold(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                             const struct fgw_blockapi_owner *owner, const struct fgw_cid *root,
                             uint64_t size, struct fgw_error *error)
{
    struct call call = {.kind = FGW_BLOCKAPI_HOLD,
                        .owner = owner,
                        .root = root,
                        .numbers = &size,
                        .number_count = 1};
    return run_call(remotes, target, &call, error);
}

enum fgw_err fgw_remote_release(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                                uint32_t count, struct fgw_bytes holds, struct fgw_error *error)
{
    struct call call = {.kind = FGW_BLOCKAPI_RELEASE, .counted = count, .list = holds};
    return run_call(remotes, target, &call, error);
}

enum fgw_err fgw_remote_confirm(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                                uint32_t count, struct fgw_bytes holds, struct fgw_error *error)
{
    struct call call = {.kind = FGW_BLOCKAPI_CONFIRM, .counted = count, .list = holds};
    return run_call(remotes, target, &call, error);
}

enum fgw_err fgw_remote_leaves(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                               const struct fgw_cid *root, uint64_t size, uint64_t first,
                               struct fgw_buf *out, struct fgw_error *error)
{
    uint64_t numbers[] = {size, first};
    struct call call = {.kind = FGW_BLOCKAPI_LEAVES,
                        .root = root,
                        .numbers = numbers,
                        .number_count = 2,
                        .extra = out};
    return run_call(remotes, target, &call, error);
}

enum fgw_err fgw_remote_damaged(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                                const struct fgw_cid *cid, struct fgw_error *error)
{
    struct call call = {.kind = FGW_BLOCKAPI_DAMAGED, .root = cid};
    return run_call(remotes, target, &call, error);
}

enum fgw_err fgw_remote_health(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                               struct fgw_blockapi_health *out_health, struct fgw_error *error)
{
    struct fgw_buf extra;
    struct call call = {.kind = FGW_BLOCKAPI_HEALTH, .extra = &extra};
    fgw_buf_init(&extra, 256);
    enum fgw_err err = run_call(remotes, target, &call, error);
    if (err == FGW_OK) {
        err = fgw_blockapi_take_health(fgw_buf_bytes(&extra), out_health);
    }
    fgw_buf_deinit(&extra);
    return err;
}
