/* node_internal.h: what the files of the block API's server share. */
#ifndef FGW_NODE_NODE_INTERNAL_H
#define FGW_NODE_NODE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "blockapi/channel.h"
#include "blockapi/message.h"
#include "event/fiber.h"
#include "node/node.h"

enum { FGW_NODE_WORKING_MS = 500 };

/* Sessions of one worker; touched on its loop only. */
struct fgw_node_worker {
    struct fgw_list sessions;
    unsigned count;
    struct fgw_wait *all_gone; /* of the fiber that stops */
};

struct fgw_node {
    struct fgw_storage *storage;
    struct fgw_workers *workers;
    struct fgw_bytes *secrets;
    struct fgw_channel_secrets secret_list;
    _Atomic uint64_t epoch;
    uint64_t (*set_epoch)(void *context, uint64_t set);
    void *set_context;
    _Atomic uint64_t renewed_ms; /* boot clock: when the last good read was sent */
    _Atomic uint64_t higher_epoch;
    _Atomic bool stopping;
    _Atomic uint64_t sessions_open, sessions_total, refused, requests, bytes_in, bytes_out;
    struct fgw_node_worker *per_worker;
};

struct fgw_node_session {
    struct fgw_list node; /* in its worker */
    struct fgw_node *owner;
    struct fgw_node_worker *worker;
    struct fgw_conn *conn;
    struct fgw_channel channel;
    struct fgw_buf out; /* of the answer being made */
    char peer[64];
    bool stale_set; /* the request names an older epoch of its set than is known here */
    /* a body being written: BEGIN .. FINISH */
    bool writing;
    uint32_t block_crc32c; /* of the bytes of the BLOCK that came last */
    bool write_answered;   /* its error went out early: what comes up to the end is dropped */
    struct fgw_storage_writer *writer;
    /* tells the client every FGW_NODE_WORKING_MS that something durable is still under way */
    struct fgw_timer *working;
    struct fgw_wait *working_done;
    bool working_sends;
    bool is_working;
};

/* session.c */
void fgw_node_session_start(struct fgw_node *node, struct fgw_conn *conn, const char *peer);
/* Text may be NULL. */
enum fgw_err fgw_node_answer(struct fgw_node_session *session, enum fgw_err err, const char *text,
                             struct fgw_bytes extra) FGW_MUST_CHECK;
/* Around work that may take long and during which the session's fiber sends nothing. */
void fgw_node_working_begin(struct fgw_node_session *session);
void fgw_node_working_end(struct fgw_node_session *session);

/* May bytes be taken for this request? CANCELLED: fenced; CONFLICT: the set has changed. */
enum fgw_err fgw_node_may_take(struct fgw_node_session *session) FGW_MUST_CHECK;

/* requests.c, read.c, write.c: execute one request and answer it; an error ends the session. */
enum fgw_err fgw_node_execute(struct fgw_node_session *session, uint8_t kind,
                              struct fgw_bytes payload) FGW_MUST_CHECK;
enum fgw_err fgw_node_read(struct fgw_node_session *session, struct fgw_bytes rest) FGW_MUST_CHECK;
enum fgw_err fgw_node_leaves(struct fgw_node_session *session,
                             struct fgw_bytes rest) FGW_MUST_CHECK;
enum fgw_err fgw_node_write_begin(struct fgw_node_session *session,
                                  struct fgw_bytes rest) FGW_MUST_CHECK;
/* A fgw_channel_tap_fn with the session as context: CRC32C of a BLOCK's bytes as they come. */
void fgw_node_write_look(void *session, uint8_t kind, size_t at, struct fgw_bytes bytes,
                         size_t length);
enum fgw_err fgw_node_write_block(struct fgw_node_session *session,
                                  struct fgw_bytes payload) FGW_MUST_CHECK;
enum fgw_err fgw_node_write_finish(struct fgw_node_session *session,
                                   struct fgw_bytes rest) FGW_MUST_CHECK;
enum fgw_err fgw_node_write_abort(struct fgw_node_session *session) FGW_MUST_CHECK;
void fgw_node_write_drop(struct fgw_node_session *session);
struct fgw_storage_owner fgw_node_owner(const struct fgw_blockapi_owner *owner);

#endif
