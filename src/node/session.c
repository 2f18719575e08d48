/* session.c: one connection of a peer: its fiber receives a request, executes it, answers. The fiber
 * belongs to the node, not to the HTTP exchange it came from. */
#include "base/log.h"
#include "node/node_internal.h"

enum {
    AUTH_MS = 10 * 1000,
    IDLE_MS = 10 * 60 * 1000,
    WRITING_MS = 60 * 1000,
    STALL_MS = 30 * 1000,
    ANSWER_MAX = 256 * 1024
};

/* -- answers ------------------------------------------------------------------------------------- */

enum fgw_err fgw_node_answer(struct fgw_node_session *session, enum fgw_err err, const char *text,
                             struct fgw_bytes extra)
{
    struct fgw_blockapi_answer answer = {
        .err = err, .epoch = session->owner->epoch, .text = fgw_bytes_str(text), .extra = extra};
    memcpy(answer.store_id, fgw_storage_id(session->owner->storage), sizeof answer.store_id);
    fgw_buf_clear(&session->out);
    fgw_blockapi_put_answer(&session->out, &answer);
    struct fgw_bytes part = fgw_buf_bytes(&session->out);
    return fgw_channel_send(&session->channel, FGW_BLOCKAPI_ANSWER, &part, 1);
}

static void send_working(void *arg)
{
    struct fgw_node_session *session = arg;
    if (fgw_channel_send(&session->channel, FGW_BLOCKAPI_WORKING, NULL, 0) != FGW_OK) {
        fgw_conn_break(session->conn);
    }
    session->working_sends = false;
    if (session->working_done != NULL) {
        fgw_wait_signal(session->working_done);
    } else if (session->is_working) {
        fgw_timer_start(session->working, FGW_NODE_WORKING_MS);
    }
}

static void on_working(void *arg)
{
    struct fgw_node_session *session = arg;
    session->working_sends = true;
    fgw_fiber_spawn(fgw_loop_current(), send_working, session);
}

void fgw_node_working_begin(struct fgw_node_session *session)
{
    session->is_working = true;
    fgw_timer_start(session->working, FGW_NODE_WORKING_MS);
}

/* Only one fiber sends at a time: waits for the frame that is going out. */
void fgw_node_working_end(struct fgw_node_session *session)
{
    session->is_working = false;
    fgw_timer_stop(session->working);
    if (session->working_sends) {
        struct fgw_wait wait;
        fgw_wait_init(&wait, 1);
        session->working_done = &wait;
        fgw_wait_for(&wait);
        session->working_done = NULL;
    }
}

/* -- life ---------------------------------------------------------------------------------------- */

static void set_deadline(struct fgw_node_session *session, uint64_t in_ms)
{
    fgw_conn_set_read_deadline(session->conn, fgw_loop_now_ms(fgw_loop_current()) + in_ms);
}

static enum fgw_err authenticate(struct fgw_node_session *session)
{
    uint8_t kind;
    struct fgw_bytes payload;
    struct fgw_blockapi_head head;
    struct fgw_node *node = session->owner;
    memcpy(session->channel.store_id, fgw_storage_id(node->storage), FGW_BLOCKAPI_ID_SIZE);
    session->channel.epoch = node->epoch;
    set_deadline(session, AUTH_MS);
    enum fgw_err err =
        fgw_channel_accept(&session->channel, session->conn, &node->secret_list, &kind, &payload);
    if (err == FGW_ERR_ACCESS_DENIED) {
        atomic_fetch_add(&node->refused, 1);
        fgw_log_warn("node", "%s does not know the cluster secret; refused", session->peer);
    }
    if (err == FGW_OK && kind != FGW_BLOCKAPI_AUTH) {
        err = FGW_ERR_PARSE;
    }
    if (err == FGW_OK) {
        err = fgw_blockapi_take_head(&payload, &head);
    }
    if (err == FGW_OK && head.epoch > node->epoch &&
        memcmp(head.store_id, session->channel.store_id, sizeof head.store_id) == 0) {
        fgw_node_fence(node, head.epoch);
    }
    return err == FGW_OK ? fgw_node_answer(session, FGW_OK, NULL, fgw_bytes(NULL, 0)) : err;
}

static void serve(struct fgw_node_session *session)
{
    uint8_t kind;
    struct fgw_bytes payload;
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK) {
        set_deadline(session, session->writing ? WRITING_MS : IDLE_MS);
        err = fgw_channel_receive(&session->channel, &kind, &payload);
        if (err == FGW_OK) {
            atomic_fetch_add(&session->owner->bytes_in, payload.len);
            err = fgw_node_execute(session, kind, payload);
        }
    }
    if (err == FGW_ERR_CORRUPT || err == FGW_ERR_PARSE) {
        fgw_log_warn("node", "%s sent a frame that is none (%s); connection closed", session->peer,
                     fgw_err_name(err));
    }
}

static void end(struct fgw_node_session *session)
{
    struct fgw_node_worker *worker = session->worker;
    fgw_node_write_drop(session);
    fgw_timer_free(session->working);
    fgw_channel_deinit(&session->channel);
    fgw_conn_close(session->conn);
    fgw_buf_deinit(&session->out);
    fgw_list_remove(&session->node);
    atomic_fetch_sub(&session->owner->sessions_open, 1);
    fgw_xfree(session);
    worker->count--;
    if (worker->count == 0 && worker->all_gone != NULL) {
        fgw_wait_signal(worker->all_gone);
        worker->all_gone = NULL;
    }
}

static void run(void *arg)
{
    struct fgw_node_session *session = arg;
    if (authenticate(session) == FGW_OK) {
        serve(session);
    }
    end(session);
}

void fgw_node_session_start(struct fgw_node *node, struct fgw_conn *conn, const char *peer)
{
    struct fgw_node_session *session = fgw_xcalloc(1, sizeof *session);
    session->owner = node;
    session->worker = &node->per_worker[fgw_worker_index()];
    session->conn = conn;
    session->working = fgw_timer_new(fgw_loop_current(), on_working, session);
    fgw_channel_init(&session->channel);
    fgw_channel_set_tap(&session->channel, fgw_node_write_look, session);
    fgw_buf_init(&session->out, ANSWER_MAX);
    for (size_t i = 0; i + 1 < sizeof session->peer && peer[i] != '\0'; i++) {
        session->peer[i] = peer[i];
    }
    fgw_conn_set_write_stall(conn, STALL_MS, 1);
    fgw_list_push_back(&session->worker->sessions, &session->node);
    session->worker->count++;
    atomic_fetch_add(&node->sessions_open, 1);
    atomic_fetch_add(&node->sessions_total, 1);
    fgw_fiber_spawn(fgw_loop_current(), run, session);
}
