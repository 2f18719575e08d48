/* client_internal.h: the client's parts: connections (conn.c, handshake.c), nodes with their pools
 * (node.c), prepared statements (prepare.c), choice and lifetime (client.c), discovery of peers
 * (discovery.c), calls with their retries (call.c). All of it on one loop's thread. */
#ifndef FGW_CQL_CLIENT_INTERNAL_H
#define FGW_CQL_CLIENT_INTERNAL_H

#include "cql/client.h"
#include "cql/config_internal.h"
#include "cql/frame.h"
#include "cql/transport.h"
#include "event/fiber.h"

enum {
    FGW_CQL_STREAMS = 1408,        /* per connection: 1,024 in flight and room for quarantine */
    FGW_CQL_QUARANTINE_MAX = 352,  /* a quarter of them: then the connection is closed */
    FGW_CQL_OUT_MAX = 4 << 20,     /* bytes waiting to be sent on a connection */
    FGW_CQL_REQUEST_MAX = 2 << 20, /* parameters or text of one request */
    FGW_CQL_CONNECT_MS = 5000,
    FGW_CQL_REASON_SIZE = 256
};

struct cql_node;

/* -- connections ------------------------------------------------------------------------------ */

enum cql_conn_state { CQL_CONN_OPENING, CQL_CONN_READY, CQL_CONN_CLOSED };

/* One request in flight; lives in the waiting fiber's frame. */
struct cql_request {
    struct fgw_wait wait;
    int16_t stream;
    uint64_t start_offset; /* of its frame in all that was queued on the connection */
    bool done;
    bool never_sent; /* failed before a byte of it reached the socket */
    enum fgw_err err;
    struct fgw_cql_response *response;
};

struct cql_slot {
    struct cql_request *request; /* NULL with `taken`: quarantined */
    bool taken;
};

struct cql_conn {
    struct fgw_list node_link; /* in cql_node.conns while READY */
    struct fgw_cql_client *client;
    struct cql_node *node;
    struct fgw_conn *transport;
    enum cql_conn_state state;
    unsigned refs;
    char reason[FGW_CQL_REASON_SIZE]; /* why it was closed */
    enum fgw_err close_err;
    struct fgw_cql_assembler assembler;
    uint8_t *read_buf;
    struct fgw_bytes unread; /* received, not fed yet (handshake) */
    struct fgw_buf out;      /* frames to send */
    struct fgw_buf sending;  /* being sent */
    struct fgw_wait writer_wait;
    bool writer_idle;
    bool writer_gone;
    struct fgw_wait *closed_wait; /* of the fiber that waits for the writer's end */
    uint64_t queued_bytes;        /* ever appended to out */
    uint64_t handed_bytes;        /* ever given to the transport */
    uint64_t received_ms;         /* last time something came */
    uint64_t silent_since_ms;     /* answers are awaited since, or the last came */
    uint64_t probe_ms;            /* an OPTIONS is out since; 0: none */
    int16_t probe_stream;
    struct cql_slot slots[FGW_CQL_STREAMS];
    int16_t free_streams[FGW_CQL_STREAMS];
    unsigned free_count;
    unsigned in_flight;
    unsigned quarantined;
};

struct cql_conn *fgw_cql_conn_new(struct cql_node *node);
struct cql_conn *fgw_cql_conn_ref(struct cql_conn *conn);
void fgw_cql_conn_unref(struct cql_conn *conn);
/* Connects and shakes hands; READY or an error with a text. In the slot's fiber. */
enum fgw_err fgw_cql_conn_open(struct cql_conn *conn, struct fgw_error *error);
/* Reads and dispatches until the connection is closed, by either side; returns when its writer has
 * ended and nothing refers to the transport any more. */
void fgw_cql_conn_run(struct cql_conn *conn);
/* From anywhere on the loop. Fails all that is in flight. */
void fgw_cql_conn_close(struct cql_conn *conn, enum fgw_err err, const char *reason);
bool fgw_cql_conn_has_room(const struct cql_conn *conn);
/* Takes a stream; the caller then appends one frame for request->stream to conn->out and calls
 * fgw_cql_conn_send. The connection must be READY with room. */
void fgw_cql_conn_begin(struct cql_conn *conn, struct cql_request *request);
void fgw_cql_conn_send(struct cql_conn *conn);
/* Waits for the answer. FGW_ERR_TIMEOUT: the stream is quarantined, a late answer is dropped.
 * FGW_ERR_IO: the connection was closed (request->never_sent, conn->reason). */
enum fgw_err fgw_cql_conn_await(struct cql_conn *conn, struct cql_request *request,
                                uint64_t deadline_ms, struct fgw_cql_response **out_response);
/* Called each second: keep-alive of idle and silent connections. */
void fgw_cql_conn_tick(struct cql_conn *conn, uint64_t now_ms);

/* handshake.c: OPTIONS, STARTUP, authentication. Reads frames itself: nobody else does yet. */
enum fgw_err fgw_cql_handshake(struct cql_conn *conn, uint64_t deadline_ms,
                               struct fgw_error *error);
/* Next frame of the connection, decoded. */
enum fgw_err fgw_cql_conn_read_response(struct cql_conn *conn, uint64_t deadline_ms,
                                        struct fgw_cql_response **out_response,
                                        struct fgw_error *error);

/* -- nodes ------------------------------------------------------------------------------------ */

enum cql_node_state {
    CQL_NODE_NEW,  /* the first attempt is under way */
    CQL_NODE_UP,   /* connections are ready */
    CQL_NODE_LOST, /* the last connection broke just now; trying again */
    CQL_NODE_DOWN  /* the last attempt failed; trying again after a pause */
};

enum { CQL_PREPARED_BUCKETS = 64 };

struct cql_prepared_entry {
    struct cql_prepared_entry *next; /* in its bucket */
    const struct fgw_cql_statement *statement;
    bool preparing;
    struct fgw_list waiting; /* struct cql_waiter */
    struct fgw_bytes id;     /* heap; empty: not prepared on this node */
    uint16_t *bind_types;
    size_t bind_count;
};

struct cql_node {
    struct fgw_cql_client *client;
    struct fgw_cql_contact contact;
    char address[FGW_CQL_HOST_SIZE]; /* numeric, once known */
    char name[FGW_CQL_NODE_TEXT_SIZE];
    bool discovered;
    bool removed;    /* no longer announced: closing */
    unsigned misses; /* refreshes that did not announce it */
    enum cql_node_state state;
    struct fgw_list conns; /* READY ones */
    unsigned conn_count;
    unsigned slot_fibers;
    unsigned in_flight;
    uint64_t backoff_ms;
    enum fgw_err last_err;
    char last_error[FGW_CQL_REASON_SIZE];
    unsigned strikes;          /* requests without answer since the last answer */
    uint64_t breaker_until_ms; /* no requests until then; 0: closed */
    uint64_t breaker_ms;       /* length of the last opening */
    uint64_t requests;
    uint64_t errors;
    struct fgw_list slots_waiting; /* struct cql_waiter: slot fibers in a pause */
    struct cql_prepared_entry *prepared[CQL_PREPARED_BUCKETS];
};

struct cql_node *fgw_cql_node_new(struct fgw_cql_client *client,
                                  const struct fgw_cql_contact *contact, bool discovered);
void fgw_cql_node_free(struct cql_node *node);
/* Starts the fibers that keep the node's connections. */
void fgw_cql_node_start(struct cql_node *node);
/* Ends pauses and, when the client or the node goes, connections. */
void fgw_cql_node_stop(struct cql_node *node);
bool fgw_cql_node_usable(const struct cql_node *node, uint64_t now_ms);
/* The connection with the fewest in flight that has room, or NULL. */
struct cql_conn *fgw_cql_node_conn(const struct cql_node *node);
/* Health: an answer came; no answer came in time. */
void fgw_cql_node_answered(struct cql_node *node);
void fgw_cql_node_silent(struct cql_node *node);

/* -- prepared statements ---------------------------------------------------------------------- */

/* Prepares on the connection's node unless done. One PREPARE in flight per node and statement.
 * *out_entry stays the node's. Outcomes as fgw_cql_conn_await, or an ERROR response in
 * *out_response (then the result is FGW_OK and *out_entry NULL). */
enum fgw_err fgw_cql_prepare(struct cql_conn *conn, const struct fgw_cql_statement *statement,
                             uint64_t deadline_ms, struct cql_prepared_entry **out_entry,
                             struct fgw_cql_response **out_response);
/* Forgets the id when it is still this one. */
void fgw_cql_prepared_forget(struct cql_prepared_entry *entry, struct fgw_bytes id);
void fgw_cql_prepared_free_all(struct cql_node *node);

/* -- the client ------------------------------------------------------------------------------- */

struct cql_waiter {
    struct fgw_list link;
    struct fgw_wait wait;
};

struct fgw_cql_client {
    struct fgw_loop *loop;
    const struct fgw_cql_config *config;
    struct cql_node **nodes;
    size_t node_count;
    size_t next_node; /* round robin */
    bool closing;
    unsigned fibers; /* of ours, still running */
    struct fgw_wait *end_wait;
    struct fgw_list waiting; /* struct cql_waiter: calls without a connection */
    unsigned waiting_count;
    unsigned calls;          /* running */
    struct fgw_list tickers; /* struct cql_waiter: the pausing ticker */
    enum fgw_cql_flavour flavour;
    int64_t retry_tokens; /* in tenths */
    struct fgw_cql_counters counters;
    struct cql_stats_slot *stats;
};

/* stats.c */
struct cql_stats_slot *fgw_cql_stats_join(void);
void fgw_cql_stats_note(struct cql_stats_slot *slot, const struct fgw_cql_client *client);
void fgw_cql_stats_leave(struct cql_stats_slot *slot, const struct fgw_cql_client *client);

/* Spawns a fiber that the client waits for when it is freed; it must end with
 * fgw_cql_client_fiber_ended. */
void fgw_cql_client_spawn(struct fgw_cql_client *client, fgw_fiber_fn *fn, void *arg);
void fgw_cql_client_fiber_ended(struct fgw_cql_client *client);
/* Pauses the fiber until the time or a wake of the list, whichever comes first. */
void fgw_cql_pause(struct fgw_list *list, uint64_t delay_ms);
enum fgw_err fgw_cql_pause_until(struct fgw_list *list, uint64_t deadline_ms);
void fgw_cql_wake_one(struct fgw_list *list);
void fgw_cql_wake_all(struct fgw_list *list);
/* A connection became ready or has room again. */
void fgw_cql_client_wake(struct fgw_cql_client *client);
void fgw_cql_client_wake_all(struct fgw_cql_client *client);
/* The least loaded connection of a usable node other than `avoid` (unless there is no other),
 * waiting for one by turns. *out_conn is referenced. UNAVAILABLE at once when all nodes are down,
 * SLOW_DOWN when too many wait. */
enum fgw_err fgw_cql_client_pick(struct fgw_cql_client *client, const struct cql_node *avoid,
                                 uint64_t deadline_ms, struct cql_conn **out_conn,
                                 struct fgw_error *error);
/* Finds a node by numeric address and port. */
struct cql_node *fgw_cql_client_find_node(struct fgw_cql_client *client, const char *address,
                                          uint16_t port);
struct cql_node *fgw_cql_client_add_node(struct fgw_cql_client *client,
                                         const struct fgw_cql_contact *contact, bool discovered);
uint16_t fgw_cql_pin_port(const struct fgw_cql_pin *pin);
/* discovery.c: the fiber that refreshes the peers. */
void fgw_cql_discovery_main(void *client);

/* A random time between half of it and all of it. */
uint64_t fgw_cql_jitter(uint64_t delay_ms);

#endif
