/* client.h: the asynchronous CQL client of one worker loop (spec/ycql.md sections 0, 4, 5).
 *
 * One client a loop; clients share nothing but the read-only configuration. All functions belong
 * to the loop's thread; those that take a deadline or a statement suspend the calling fiber. Every
 * call ends by its deadline, or when its fiber's patience does, whatever the servers do (event/fiber.h).
 *
 * What a call can answer besides FGW_OK (the error's message says which node and why):
 *   UNAVAILABLE      no node could do it, nothing was written by this call (all nodes down: at
 *                    once, no waiting); for a read also: transient answers until the end
 *   TIMEOUT          a read, or something that was never sent, ran into its deadline
 *   UNKNOWN_OUTCOME  a write was sent and may have been applied: read and decide
 *   SLOW_DOWN        too many calls wait for a connection, or the server said Overloaded
 *   NOT_FOUND        table or keyspace unknown, also after retries
 *   EXISTS           DDL: it exists already
 *   ACCESS_DENIED    credentials or permissions
 *   CONFIG           the peer is no usable CQL server (wrong port, version, TLS)
 *   TOO_LARGE        the request would exceed 2 MiB, or a read met more removed rows than the
 *                    server lets pass (Cassandra): ask for a smaller range
 *   INTERNAL         a statement that the server refuses as wrong, or values that do not fit it:
 *                    an error of FGW itself
 *   CANCELLED        the client is being closed
 *
 * Retries, all within the deadline and a budget (a tenth of all calls): reads and idempotent
 * writes on another node with back-off; others only when the answer proves that nothing was
 * written. A conditional statement whose outcome is unknown is never sent again here.
 */
#ifndef FGW_CQL_CLIENT_H
#define FGW_CQL_CLIENT_H

#include "cql/classify.h"
#include "cql/config.h"
#include "cql/result.h"
#include "event/loop.h"

struct fgw_cql_client;
struct fgw_cql_pin;
struct fgw_cql_call;

/* Which server answers: decides how linearizable reads are asked for. */
enum fgw_cql_flavour {
    FGW_CQL_FLAVOUR_UNKNOWN, /* no connection yet */
    FGW_CQL_FLAVOUR_YUGABYTE,
    FGW_CQL_FLAVOUR_CASSANDRA,
    FGW_CQL_FLAVOUR_SCYLLA
};

/* A statement of the program. Prepared once per node at first use; must stay unchanged as long as
 * the client lives, which knows it by its address. Names are fully qualified (no USE). */
struct fgw_cql_statement {
    const char *name; /* "head_get": logs, metrics */
    const char *text; /* no trailing ';' */
    enum fgw_cql_statement_kind kind;
    bool idempotent; /* a write that may be sent twice (reads always may) */
};

/* Logical rounds to the database: executions that overlap count once, retries and PREPARE not. */
struct fgw_cql_rounds {
    unsigned rounds;
    unsigned statements;
    bool in_round; /* private */
};

/* Zero means the default everywhere; NULL stands for all zero. */
struct fgw_cql_options {
    enum fgw_cql_consistency consistency; /* 0: the configuration's */
    bool serial;       /* linearizable read: SERIAL on Cassandra and ScyllaDB, as usual on YCQL */
    bool idempotent;   /* besides the statement's own flag */
    int32_t page_size; /* rows; 0: 1,000 */
    struct fgw_bytes paging_state; /* of the page before */
    uint64_t deadline_ms;          /* on fgw_loop_now_ms's clock; 0: the configuration's timeout */
    struct fgw_cql_pin *pin;       /* run on this connection and no other, without retries */
    struct fgw_cql_rounds *rounds; /* counted here */
};

/* Starts connecting; never fails: calls tell. Call on the loop's thread. */
struct fgw_cql_client *fgw_cql_client_new(struct fgw_loop *loop,
                                          const struct fgw_cql_config *config);
/* From a fiber: fails what is in flight with CANCELLED, waits until all is gone. Takes NULL. */
void fgw_cql_client_free(struct fgw_cql_client *client);
/* Waits until a connection is ready. FGW_ERR_TIMEOUT when none could be made by the deadline: the
 * message tells each contact point's last error. CONFIG and ACCESS_DENIED return at once when every
 * contact point says so. */
enum fgw_err fgw_cql_client_wait_ready(struct fgw_cql_client *client, uint64_t deadline_ms,
                                       struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_cql_flavour fgw_cql_client_flavour(const struct fgw_cql_client *client);
/* 0 while no node is reachable. */
unsigned fgw_cql_client_nodes_up(const struct fgw_cql_client *client);

/* Executes a prepared statement. values: one per bind marker, in order; copied before the first
 * suspension. *out_result is freed by the caller (fgw_cql_result_free). */
enum fgw_err fgw_cql_execute(struct fgw_cql_client *client,
                             const struct fgw_cql_statement *statement,
                             const struct fgw_cql_value *values, size_t value_count,
                             const struct fgw_cql_options *options,
                             struct fgw_cql_result **out_result,
                             struct fgw_error *error) FGW_MUST_CHECK;
/* Runs a text without preparing it: DDL and one-off questions. */
enum fgw_err fgw_cql_query(struct fgw_cql_client *client, const char *text,
                           enum fgw_cql_statement_kind kind, const struct fgw_cql_options *options,
                           struct fgw_cql_result **out_result,
                           struct fgw_error *error) FGW_MUST_CHECK;

/* Several unconditional writes of rows of ONE partition in one unlogged BATCH: one round, one message.
 * No transaction: when it fails, and on YugabyteDB also for readers meanwhile, any of the writes may
 * have been applied and others not. Repeated when all statements are idempotent (or options say so).
 * The writes stay the caller's and must not change until it returns. INTERNAL: a statement that is
 * no FGW_CQL_WRITE, or more than FGW_CQL_BATCH_MAX of them. */
enum { FGW_CQL_BATCH_MAX = 1000 };
struct fgw_cql_write {
    const struct fgw_cql_statement *statement;
    const struct fgw_cql_value *values; /* one per bind marker */
    size_t value_count;
};
enum fgw_err fgw_cql_batch(struct fgw_cql_client *client, const struct fgw_cql_write *writes,
                           size_t write_count, const struct fgw_cql_options *options,
                           struct fgw_error *error) FGW_MUST_CHECK;

/* Same as fgw_cql_execute, split: start any number, then wait for each; they run side by side.
 * Every started call must be waited for, which frees it. options->rounds counts them as one round
 * until the first wait. */
struct fgw_cql_call *fgw_cql_call_start(struct fgw_cql_client *client,
                                        const struct fgw_cql_statement *statement,
                                        const struct fgw_cql_value *values, size_t value_count,
                                        const struct fgw_cql_options *options);
enum fgw_err fgw_cql_call_wait(struct fgw_cql_call *call, struct fgw_cql_result **out_result,
                               struct fgw_error *error) FGW_MUST_CHECK;

/* Holds one connection to one node: the first reachable one in the order of addresses, so that all
 * processes that migrate meet at the same coordinator. */
enum fgw_err fgw_cql_pin_new(struct fgw_cql_client *client, uint64_t deadline_ms,
                             struct fgw_cql_pin **out_pin, struct fgw_error *error) FGW_MUST_CHECK;
/* False once the connection is gone: calls on the pin then answer UNAVAILABLE. */
bool fgw_cql_pin_alive(const struct fgw_cql_pin *pin);
/* "10.0.0.1:9042". */
const char *fgw_cql_pin_node(const struct fgw_cql_pin *pin);
/* Ends the connection: what is on its way on it stays without an answer. */
void fgw_cql_pin_break(struct fgw_cql_pin *pin);
/* Takes NULL. */
void fgw_cql_pin_free(struct fgw_cql_pin *pin);

/* -- counters ---------------------------------------------------------------------------------- */

enum { FGW_CQL_LATENCY_BUCKETS = 16, FGW_CQL_NODE_TEXT_SIZE = 272 };

/* Kinds of requests: enum fgw_cql_statement_kind, and */
enum { FGW_CQL_REQUEST_BATCH = FGW_CQL_DDL + 1, FGW_CQL_REQUEST_PREPARE, FGW_CQL_REQUEST_KINDS };

/* Nothing but uint64_t. */
struct fgw_cql_counters {
    uint64_t requests[FGW_CQL_REQUEST_KINDS]; /* sent, those sent again included */
    uint64_t calls;                           /* finished */
    uint64_t failed;                          /* of them, with an error */
    uint64_t retries;                         /* requests sent again */
    uint64_t reprepares;                      /* Unprepared answers */
    uint64_t shed;                            /* refused with SLOW_DOWN by us */
    uint64_t timeouts;                        /* requests without an answer in time */
    uint64_t late;                            /* answers that came after that */
    uint64_t warnings;
    uint64_t connects;
    uint64_t disconnects;
    uint64_t errors[FGW_CQL_CLASSES]; /* ERROR answers */
    uint64_t latency_us_sum;
    uint64_t latency[FGW_CQL_LATENCY_BUCKETS]; /* [i]: calls below 2^i * 128 us; last: the rest */
};
/* On the loop's thread; valid until the next suspension. */
const struct fgw_cql_counters *fgw_cql_client_counters(const struct fgw_cql_client *client);

struct fgw_cql_node_stats {
    char name[FGW_CQL_NODE_TEXT_SIZE]; /* address:port */
    bool discovered;                   /* not a contact point */
    bool up;
    bool breaker_open;
    unsigned connections;
    unsigned in_flight;
    uint64_t requests;
    uint64_t errors;
    char last_error[256];
};
size_t fgw_cql_client_node_count(const struct fgw_cql_client *client);
/* index < node count. */
void fgw_cql_client_node_stats(const struct fgw_cql_client *client, size_t index,
                               struct fgw_cql_node_stats *out_stats);

#endif
