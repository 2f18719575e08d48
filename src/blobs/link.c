/* link.c: connections to stores: taken from the worker's kept ones or made, authenticated, given
 * back. A store is known by its id: an address where another one answers is refused. */
#include "blobs/remotes_internal.h"

#include "base/log.h"
#include "net/connect.h"

enum { HEAD_MAX = 2048, IDLE_MS = 60 * 1000, KEPT_MAX = 16 };

void fgw_link_close(struct fgw_link *link)
{
    fgw_channel_deinit(&link->channel);
    fgw_conn_close(link->conn);
    fgw_buf_deinit(&link->request);
    fgw_xfree(link);
}

enum fgw_err fgw_link_failed(const struct fgw_link *link, enum fgw_err err, struct fgw_error *error)
{
    bool gone = err == FGW_ERR_END || err == FGW_ERR_CLIENT_GONE || err == FGW_ERR_PARSE;
    enum fgw_err told = gone ? FGW_ERR_UNAVAILABLE : err;
    return fgw_error_set(error, told, "The store at %s: %s", link->address,
                         gone ? "the connection broke off" : fgw_err_text(err));
}

static void set_deadline(struct fgw_link *link, uint64_t in_ms)
{
    fgw_conn_set_read_deadline(link->conn, fgw_loop_now_ms(fgw_loop_current()) + in_ms);
}

/* -- opening ------------------------------------------------------------------------------------- */

/* The server sends nothing behind its head before our hello: no byte can be read too many. */
static enum fgw_err read_upgrade(struct fgw_link *link)
{
    char head[HEAD_MAX];
    size_t len = 0;
    while (len < sizeof head) {
        size_t got;
        enum fgw_err err = fgw_conn_read(link->conn, head + len, sizeof head - len, &got);
        if (err != FGW_OK) {
            return err;
        }
        len += got;
        if (len >= 4 && memcmp(head + len - 4, "\r\n\r\n", 4) == 0) {
            bool switched = fgw_bytes_starts_with(fgw_bytes(head, len), FGW_LIT("HTTP/1.1 101 "));
            return switched ? FGW_OK : FGW_ERR_UNAVAILABLE;
        }
    }
    return FGW_ERR_PARSE;
}

static enum fgw_err upgrade(struct fgw_link *link)
{
    struct fgw_buf *head = &link->request;
    fgw_buf_clear(head);
    (void)fgw_buf_appendf(head,
                          "GET " FGW_BLOCKAPI_PATH " HTTP/1.1\r\nHost: %s\r\n"
                          "Connection: Upgrade\r\nUpgrade: " FGW_BLOCKAPI_PROTOCOL "\r\n\r\n",
                          link->address);
    enum fgw_err err = fgw_conn_write(link->conn, fgw_buf_bytes(head));
    return err == FGW_OK ? read_upgrade(link) : err;
}

/* The first answer proves the server. */
static enum fgw_err authenticate(struct fgw_link *link, const struct fgw_placement_member *member)
{
    struct fgw_remote_target target = {.member = member};
    struct fgw_blockapi_answer answer;
    uint8_t kind;
    struct fgw_bytes payload;
    fgw_link_request(link, &target);
    enum fgw_err err = fgw_link_send(link, FGW_BLOCKAPI_AUTH, NULL, 0);
    if (err == FGW_OK) {
        err = fgw_channel_receive(&link->channel, &kind, &payload);
    }
    if (err == FGW_ERR_END || err == FGW_ERR_CLIENT_GONE || err == FGW_ERR_CORRUPT) {
        return FGW_ERR_ACCESS_DENIED;
    }
    if (err == FGW_OK && kind != FGW_BLOCKAPI_ANSWER) {
        err = FGW_ERR_PARSE;
    }
    return err == FGW_OK ? fgw_blockapi_take_answer(payload, &answer) : err;
}

static enum fgw_err open_channel(struct fgw_link *link, const struct fgw_placement_member *member,
                                 struct fgw_bytes secret, struct fgw_error *error)
{
    if (member->tls && link->remotes->tls == NULL) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "The store at %s wants TLS.",
                             member->address);
    }
    struct fgw_connect_options options = {.address = member->address,
                                          .tls = member->tls ? link->remotes->tls : NULL,
                                          .deadline_ms = fgw_loop_now_ms(fgw_loop_current()) +
                                                         FGW_REMOTE_CONNECT_MS};
    enum fgw_err err = fgw_connect(&options, &link->conn, error);
    if (err != FGW_OK) {
        return err;
    }
    fgw_conn_set_write_stall(link->conn, FGW_REMOTE_STALL_MS, 1);
    set_deadline(link, FGW_REMOTE_STALL_MS);
    fgw_channel_init(&link->channel);
    err = upgrade(link);
    if (err == FGW_OK) {
        err = fgw_channel_connect(&link->channel, link->conn, secret);
    }
    if (err == FGW_OK &&
        memcmp(link->channel.store_id, member->store_id, FGW_STORAGE_ID_SIZE) != 0) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "Another store answers at %s.",
                             member->address);
    }
    if (err == FGW_OK) {
        err = authenticate(link, member);
    }
    return err == FGW_OK ? FGW_OK : fgw_link_failed(link, err, error);
}

static struct fgw_link *new_link(struct fgw_remotes *remotes,
                                 const struct fgw_placement_member *member)
{
    struct fgw_link *link = fgw_xcalloc(1, sizeof *link);
    link->remotes = remotes;
    fgw_list_init(&link->node);
    memcpy(link->store_id, member->store_id, sizeof link->store_id);
    memcpy(link->address, member->address, sizeof link->address);
    link->tls = member->tls;
    fgw_buf_init(&link->request, 0);
    return link;
}

/* The secrets one after the other: while they are being changed the two sides may begin with
 * different ones. */
static enum fgw_err connect_link(struct fgw_remotes *remotes,
                                 const struct fgw_placement_member *member,
                                 struct fgw_link **out_link, struct fgw_error *error)
{
    enum fgw_err err = FGW_ERR_ACCESS_DENIED;
    if (member->address[0] == '\0') {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "The store's address is not known.");
    }
    for (size_t i = 0; i < remotes->secret_count && err == FGW_ERR_ACCESS_DENIED; i++) {
        struct fgw_link *link = new_link(remotes, member);
        err = open_channel(link, member, remotes->secrets[i], error);
        if (err == FGW_OK) {
            *out_link = link;
            return FGW_OK;
        }
        fgw_link_close(link);
    }
    if (err == FGW_ERR_ACCESS_DENIED) {
        err = fgw_error_set(error, err, "The store at %s has another FGW_CLUSTER_SECRET.",
                            member->address);
    }
    return err;
}

/* -- keeping ------------------------------------------------------------------------------------- */

static struct fgw_link *take_kept(struct fgw_remotes *remotes,
                                  const struct fgw_placement_member *member)
{
    struct fgw_list *idle = &remotes->per_worker[fgw_worker_index()].idle;
    struct fgw_list *at = idle->next;
    uint64_t now_ms = fgw_loop_now_ms(fgw_loop_current());
    while (at != idle) {
        struct fgw_link *link = FGW_CONTAINER_OF(at, struct fgw_link, node);
        at = at->next;
        if (now_ms - link->idle_since_ms > IDLE_MS) {
            fgw_list_remove(&link->node);
            fgw_link_close(link);
        } else if (memcmp(link->store_id, member->store_id, FGW_STORAGE_ID_SIZE) == 0) {
            fgw_list_remove(&link->node);
            /* nothing may come unasked: input here is the store's good-bye; an address that
             * changed is another process */
            if (strcmp(link->address, member->address) == 0 && link->tls == member->tls &&
                !fgw_channel_pending(&link->channel) && !fgw_conn_is_broken(link->conn)) {
                link->reused = true;
                return link;
            }
            fgw_link_close(link);
        }
    }
    return NULL;
}

enum fgw_err fgw_link_take(struct fgw_remotes *remotes, const struct fgw_placement_member *member,
                           bool fresh, struct fgw_link **out_link, struct fgw_error *error)
{
    struct fgw_link *link = fresh ? NULL : take_kept(remotes, member);
    if (link == NULL) {
        return connect_link(remotes, member, out_link, error);
    }
    *out_link = link;
    return FGW_OK;
}

static unsigned kept_of(const struct fgw_list *idle, const struct fgw_link *like)
{
    unsigned count = 0;
    for (struct fgw_list *at = idle->next; at != idle; at = at->next) {
        const struct fgw_link *link = FGW_CONTAINER_OF(at, struct fgw_link, node);
        count += memcmp(link->store_id, like->store_id, FGW_STORAGE_ID_SIZE) == 0;
    }
    return count;
}

void fgw_link_give(struct fgw_link *link, bool usable)
{
    struct fgw_list *idle = &link->remotes->per_worker[fgw_worker_index()].idle;
    if (!usable || link->remotes->closing || kept_of(idle, link) >= KEPT_MAX) {
        fgw_link_close(link);
        return;
    }
    if (link->request.cap > 64 * 1024) {
        fgw_buf_deinit(&link->request);
    }
    link->idle_since_ms = fgw_loop_now_ms(fgw_loop_current());
    fgw_list_push_front(idle, &link->node);
}

/* -- talking ------------------------------------------------------------------------------------- */

void fgw_link_request(struct fgw_link *link, const struct fgw_remote_target *target)
{
    struct fgw_blockapi_head head = {
        .epoch = target->member->epoch, .set = target->set, .set_epoch = target->set_epoch};
    memcpy(head.store_id, target->member->store_id, sizeof head.store_id);
    fgw_buf_clear(&link->request);
    fgw_blockapi_put_head(&link->request, &head);
}

enum fgw_err fgw_link_send(struct fgw_link *link, uint8_t kind, const struct fgw_bytes *more,
                           size_t more_count)
{
    struct fgw_bytes parts[FGW_BLOCKAPI_PARTS_MAX] = {fgw_buf_bytes(&link->request)};
    for (size_t i = 0; i < more_count; i++) {
        parts[i + 1] = more[i];
    }
    return fgw_channel_send(&link->channel, kind, parts, more_count + 1);
}

enum fgw_err fgw_link_receive(struct fgw_link *link, uint8_t *out_kind,
                              struct fgw_bytes *out_payload)
{
    uint64_t began_ms = fgw_loop_now_ms(fgw_loop_current());
    for (;;) {
        set_deadline(link, FGW_REMOTE_STALL_MS);
        enum fgw_err err = fgw_channel_receive(&link->channel, out_kind, out_payload);
        if (err != FGW_OK || *out_kind != FGW_BLOCKAPI_WORKING) {
            return err;
        }
        if (fgw_loop_now_ms(fgw_loop_current()) - began_ms > FGW_REMOTE_ANSWER_MS) {
            return FGW_ERR_TIMEOUT;
        }
    }
}

enum fgw_err fgw_link_answer(struct fgw_link *link, struct fgw_blockapi_answer *out_answer,
                             bool *out_store_said, struct fgw_error *error)
{
    uint8_t kind;
    struct fgw_bytes payload;
    enum fgw_err err = fgw_link_receive(link, &kind, &payload);
    if (err == FGW_OK && kind != FGW_BLOCKAPI_ANSWER) {
        err = FGW_ERR_PARSE;
    }
    if (err == FGW_OK) {
        err = fgw_blockapi_take_answer(payload, out_answer);
    }
    *out_store_said = err == FGW_OK;
    if (err != FGW_OK) {
        return fgw_link_failed(link, err, error);
    }
    err = out_answer->err;
    if (err != FGW_OK) {
        (void)fgw_error_set(error, err, "The store at %s: %s", link->address, fgw_err_text(err));
    }
    return err;
}
