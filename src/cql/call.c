/* call.c: a call from the statement to its outcome: choose a connection, prepare, send, wait,
 * classify, and try again only where that cannot do harm (spec/ycql.md sections 2.3, 4, 5.9;
 * client.h has the rules for callers). */
#include "base/clock.h"
#include "cql/call_internal.h"
#include "cql/wire.h"

enum {
    TRIES_MAX = 5,
    REPREPARES_MAX = 2,
    SCHEMA_TRIES_MAX = 3,
    BACKOFF_FIRST_MS = 50,
    BACKOFF_MAX_MS = 2000,
    PAGE_SIZE_DEFAULT = 1000,
    TRY_MIN_MS = 1000,
    RETRY_COST = 10, /* a call earns 1: a tenth of all calls may be retried */
    RETRY_TOKENS_MAX = 1000
};

struct fgw_cql_pin {
    struct cql_conn *conn;
};

struct fgw_cql_call {
    struct cql_run run;
    struct fgw_wait wait;
    struct fgw_cql_rounds *rounds;
    struct fgw_cql_result *result;
    enum fgw_err err;
    struct fgw_error error;
};

/* -- what follows from it --------------------------------------------------------------------- */

/* Takes a retry from the budget; waits before the next try. False when the run must end. */
static bool back_off(struct cql_run *run, struct cql_node *node)
{
    struct fgw_cql_client *client = run->client;
    uint64_t now_ms = fgw_loop_now_ms(client->loop);
    uint64_t delay_ms = (uint64_t)BACKOFF_FIRST_MS << run->tries;
    delay_ms = fgw_cql_jitter(delay_ms < BACKOFF_MAX_MS ? delay_ms : BACKOFF_MAX_MS);
    run->tries++;
    if (run->pin != NULL || run->tries >= TRIES_MAX || client->closing ||
        client->retry_tokens < RETRY_COST || now_ms + delay_ms >= run->deadline_ms) {
        return false;
    }
    client->retry_tokens -= RETRY_COST;
    client->counters.retries++;
    run->avoid = node;
    fgw_fiber_sleep_ms(delay_ms);
    return true;
}

static bool retry_refused(struct cql_run *run, struct cql_node *node, enum fgw_cql_class class)
{
    switch (class) {
    case FGW_CQL_CLASS_REPREPARE:
        /* it was not executed; a node that lags behind a DDL statement forgets again and again */
        run->avoid = NULL;
        return run->reprepares++ < REPREPARES_MAX || back_off(run, node);
    case FGW_CQL_CLASS_NOT_FOUND_SCHEMA:
        return run->statement->kind != FGW_CQL_DDL && run->schema_tries++ < SCHEMA_TRIES_MAX &&
               back_off(run, node);
    case FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED:
        return back_off(run, node);
    case FGW_CQL_CLASS_TRANSIENT_UNKNOWN:
        return run->repeatable && back_off(run, node);
    default:
        return false;
    }
}

/* True: try again. Else *err is the run's end. */
static bool decide(struct cql_run *run, struct cql_node *node, const struct cql_outcome *outcome,
                   enum fgw_err *err)
{
    *err = outcome->err;
    switch (outcome->kind) {
    case OUTCOME_RESULT:
        *err = FGW_OK;
        return false;
    case OUTCOME_REFUSED:
        return retry_refused(run, node, outcome->class);
    case OUTCOME_LOST:
        *err = run->statement->kind != FGW_CQL_READ ? FGW_ERR_UNKNOWN_OUTCOME
               : outcome->err == FGW_ERR_TIMEOUT    ? FGW_ERR_TIMEOUT
                                                    : FGW_ERR_UNAVAILABLE;
        return run->repeatable && back_off(run, node);
    case OUTCOME_NOT_SENT:
        *err = outcome->err == FGW_ERR_TIMEOUT ? FGW_ERR_TIMEOUT : FGW_ERR_UNAVAILABLE;
        return back_off(run, node);
    case OUTCOME_BROKEN:
        break;
    }
    return false;
}

/* A repeatable statement leaves time for another node when there is one. */
static uint64_t try_deadline(const struct cql_run *run)
{
    if (!run->repeatable || run->pin != NULL || fgw_cql_client_nodes_up(run->client) < 2) {
        return run->deadline_ms;
    }
    uint64_t share_ms = run->client->config->timeout_ms / 3;
    share_ms = share_ms < TRY_MIN_MS ? TRY_MIN_MS : share_ms;
    uint64_t until_ms = fgw_loop_now_ms(run->client->loop) + share_ms;
    return until_ms < run->deadline_ms ? until_ms : run->deadline_ms;
}

static enum fgw_err take_conn(struct cql_run *run, struct cql_conn **out_conn,
                              struct fgw_error *error)
{
    if (run->pin == NULL) {
        return fgw_cql_client_pick(run->client, run->avoid, run->deadline_ms, out_conn, error);
    }
    if (!fgw_cql_pin_alive(run->pin)) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "the connection to %s is gone: %s",
                             fgw_cql_pin_node(run->pin), run->pin->conn->reason);
    }
    *out_conn = fgw_cql_conn_ref(run->pin->conn);
    return FGW_OK;
}

/* A page may be empty with more to come, on YCQL even where there is one row at most: no caller is
 * handed such a page. The parameters then ask for the next one. */
static bool turn_empty_page(struct cql_run *run, const struct fgw_cql_response *response)
{
    const struct fgw_cql_rows *rows = &response->rows;
    if (run->statement->kind != FGW_CQL_READ || response->kind != FGW_CQL_RESULT_ROWS ||
        rows->row_count > 0 || !rows->has_more || rows->paging_state.len == 0) {
        return false;
    }
    run->params.len = run->unpaged_len;
    run->params.ptr[2] |= FGW_CQL_QUERY_PAGING_STATE;
    fgw_cql_put_bytes(&run->params, rows->paging_state);
    return true;
}

static enum fgw_err run_tries(struct cql_run *run, struct fgw_cql_result **out_result,
                              struct fgw_error *error)
{
    for (;;) {
        struct cql_conn *conn = NULL;
        enum fgw_err err = fgw_buf_status(&run->params);
        if (err != FGW_OK || strlen(run->statement->text) > FGW_CQL_REQUEST_MAX) {
            return fgw_error_set(error, FGW_ERR_TOO_LARGE, "%s: the request exceeds %d bytes",
                                 run->statement->name, FGW_CQL_REQUEST_MAX);
        }
        if (fgw_loop_now_ms(run->client->loop) >= run->deadline_ms) {
            return fgw_error_set(error, FGW_ERR_TIMEOUT, "%s: out of time before it was sent",
                                 run->statement->name);
        }
        err = take_conn(run, &conn, error);
        if (err != FGW_OK) {
            return err;
        }
        FGW_CHECK(conn != NULL);
        uint64_t deadline_ms = try_deadline(run);
        struct cql_outcome outcome = fgw_cql_attempt(run, conn, deadline_ms, error);
        bool again = decide(run, conn->node, &outcome, &err);
        fgw_cql_conn_unref(conn);
        if (outcome.kind == OUTCOME_RESULT && turn_empty_page(run, outcome.response)) {
            fgw_cql_response_free(outcome.response);
            continue;
        }
        if (outcome.kind == OUTCOME_RESULT) {
            *out_result = fgw_cql_result_new(outcome.response);
            return FGW_OK;
        }
        fgw_cql_response_free(outcome.response);
        if (!again) {
            error->code =
                run->client->closing && err == FGW_ERR_UNAVAILABLE ? FGW_ERR_CANCELLED : err;
            return error->code;
        }
    }
}

/* -- a run ------------------------------------------------------------------------------------ */

/* No later than the calling fiber may wait. */
static uint64_t deadline_of(const struct fgw_cql_client *client,
                            const struct fgw_cql_options *options)
{
    uint64_t now_ms = fgw_loop_now_ms(client->loop);
    uint64_t deadline_ms =
        options->deadline_ms != 0 ? options->deadline_ms : now_ms + client->config->timeout_ms;
    uint64_t patience_ms = fgw_fiber_patience();
    return patience_ms < UINT64_MAX - now_ms && now_ms + patience_ms < deadline_ms
               ? now_ms + patience_ms
               : deadline_ms;
}

static void run_init(struct cql_run *run, struct fgw_cql_client *client,
                     const struct fgw_cql_statement *statement, bool prepared,
                     const struct fgw_cql_options *options)
{
    static const struct fgw_cql_options DEFAULTS = {0};
    options = options == NULL ? &DEFAULTS : options;
    *run = (struct cql_run){
        .client = client,
        .statement = statement,
        .prepared = prepared,
        .repeatable =
            statement->kind == FGW_CQL_READ || statement->idempotent || options->idempotent,
        .linearizable = options->serial,
        .consistency =
            options->consistency != 0 ? options->consistency : client->config->consistency,
        .pin = options->pin,
        .deadline_ms = deadline_of(client, options),
    };
    /* a conditional statement is never repeated on its own, whatever its flags say */
    run->repeatable = run->repeatable && statement->kind != FGW_CQL_LWT;
    client->fibers++;
    client->calls++;
    client->retry_tokens += client->retry_tokens < RETRY_TOKENS_MAX;
}

static void run_encode(struct cql_run *run, const struct fgw_cql_value *values, size_t value_count,
                       const struct fgw_cql_options *options)
{
    fgw_buf_init(&run->params, FGW_CQL_REQUEST_MAX);
    bool read = run->statement->kind == FGW_CQL_READ;
    int32_t page_size =
        options != NULL && options->page_size > 0 ? options->page_size : PAGE_SIZE_DEFAULT;
    struct fgw_cql_params params = {
        .consistency = run->consistency,
        .with_serial = run->statement->kind == FGW_CQL_LWT,
        .serial_consistency = FGW_CQL_SERIAL,
        .page_size = read ? page_size : 0,
        .paging_state = options != NULL ? options->paging_state : fgw_bytes(NULL, 0),
        .values = values,
        .value_count = value_count,
    };
    fgw_cql_encode_params(&run->params, &params);
    run->unpaged_len =
        run->params.len - (params.paging_state.len > 0 ? 4 + params.paging_state.len : 0);
    run->value_count = value_count;
    run->kinds = fgw_xmalloc(value_count + 1);
    for (size_t i = 0; i < value_count; i++) {
        run->kinds[i] = (uint8_t)values[i].kind;
    }
}

static void count_latency(struct fgw_cql_counters *counters, uint64_t elapsed_us)
{
    unsigned bucket = 0;
    while (bucket < FGW_CQL_LATENCY_BUCKETS - 1 && elapsed_us >= UINT64_C(128) << bucket) {
        bucket++;
    }
    counters->latency[bucket]++;
    counters->latency_us_sum += elapsed_us;
}

/* Runs it to its end and frees what it holds. */
static enum fgw_err run_finish(struct cql_run *run, struct fgw_cql_result **out_result,
                               struct fgw_error *error)
{
    struct fgw_cql_client *client = run->client;
    struct fgw_error unwanted;
    if (error == NULL) {
        error = &unwanted;
    }
    fgw_error_init(error);
    uint64_t start_ns = fgw_clock_boot_ns();
    enum fgw_err err = run_tries(run, out_result, error);
    uint64_t took_us = (fgw_clock_boot_ns() - start_ns) / 1000;
    fgw_fiber_waited(took_us / 1000);
    count_latency(&client->counters, took_us);
    client->counters.calls++;
    client->counters.failed += err != FGW_OK;
    fgw_buf_deinit(&run->params);
    fgw_xfree(run->kinds);
    client->calls--;
    fgw_cql_client_fiber_ended(client);
    return err;
}

static void count_round(struct fgw_cql_rounds *rounds, bool stays_open)
{
    if (rounds != NULL) {
        rounds->statements++;
        rounds->rounds += !rounds->in_round;
        rounds->in_round = stays_open;
    }
}

enum fgw_err fgw_cql_execute(struct fgw_cql_client *client,
                             const struct fgw_cql_statement *statement,
                             const struct fgw_cql_value *values, size_t value_count,
                             const struct fgw_cql_options *options,
                             struct fgw_cql_result **out_result, struct fgw_error *error)
{
    struct cql_run run;
    count_round(options != NULL ? options->rounds : NULL, false);
    run_init(&run, client, statement, true, options);
    run_encode(&run, values, value_count, options);
    return run_finish(&run, out_result, error);
}

enum fgw_err fgw_cql_query(struct fgw_cql_client *client, const char *text,
                           enum fgw_cql_statement_kind kind, const struct fgw_cql_options *options,
                           struct fgw_cql_result **out_result, struct fgw_error *error)
{
    struct fgw_cql_statement statement = {.name = "query", .text = text, .kind = kind};
    struct cql_run run;
    count_round(options != NULL ? options->rounds : NULL, false);
    run_init(&run, client, &statement, false, options);
    run_encode(&run, NULL, 0, options);
    return run_finish(&run, out_result, error);
}

/* -- batches ---------------------------------------------------------------------------------- */

/* All unconditional, at most so many bytes; *out_idempotent: all may be sent twice. */
static enum fgw_err check_batch(const struct fgw_cql_write *writes, size_t write_count,
                                bool *out_idempotent, struct fgw_error *error)
{
    struct fgw_buf size;
    *out_idempotent = true;
    if (write_count == 0 || write_count > FGW_CQL_BATCH_MAX) {
        return fgw_error_set(error, FGW_ERR_INTERNAL, "a batch of %zu writes", write_count);
    }
    fgw_buf_init(&size, FGW_CQL_REQUEST_MAX);
    for (size_t i = 0; i < write_count; i++) {
        if (writes[i].statement->kind != FGW_CQL_WRITE) {
            fgw_buf_deinit(&size);
            return fgw_error_set(error, FGW_ERR_INTERNAL, "%s cannot be part of a batch",
                                 writes[i].statement->name);
        }
        *out_idempotent = *out_idempotent && writes[i].statement->idempotent;
        for (size_t j = 0; j < writes[i].value_count; j++) {
            fgw_cql_value_encode(&size, &writes[i].values[j]);
        }
    }
    enum fgw_err err = fgw_buf_status(&size);
    fgw_buf_deinit(&size);
    return err == FGW_OK ? err
                         : fgw_error_set(error, FGW_ERR_TOO_LARGE, "the batch exceeds %d bytes",
                                         FGW_CQL_REQUEST_MAX);
}

enum fgw_err fgw_cql_batch(struct fgw_cql_client *client, const struct fgw_cql_write *writes,
                           size_t write_count, const struct fgw_cql_options *options,
                           struct fgw_error *error)
{
    struct fgw_cql_statement statement = {.name = "batch", .text = "", .kind = FGW_CQL_WRITE};
    struct fgw_cql_result *result = NULL;
    struct fgw_error unwanted;
    struct cql_run run;
    error = error == NULL ? &unwanted : error;
    fgw_error_init(error);
    enum fgw_err err = check_batch(writes, write_count, &statement.idempotent, error);
    if (err != FGW_OK) {
        return err;
    }
    count_round(options != NULL ? options->rounds : NULL, false);
    run_init(&run, client, &statement, true, options);
    fgw_buf_init(&run.params, 0);
    run.kinds = NULL;
    run.writes = writes;
    run.write_count = write_count;
    err = run_finish(&run, &result, error);
    if (err == FGW_OK) {
        fgw_cql_result_free(result);
    }
    return err;
}

/* -- calls that run side by side --------------------------------------------------------------- */

static void call_main(void *arg)
{
    struct fgw_cql_call *call = arg;
    call->err = run_finish(&call->run, &call->result, &call->error);
    fgw_wait_signal(&call->wait);
}

struct fgw_cql_call *fgw_cql_call_start(struct fgw_cql_client *client,
                                        const struct fgw_cql_statement *statement,
                                        const struct fgw_cql_value *values, size_t value_count,
                                        const struct fgw_cql_options *options)
{
    struct fgw_cql_call *call = fgw_xcalloc(1, sizeof *call);
    call->rounds = options != NULL ? options->rounds : NULL;
    count_round(call->rounds, true);
    run_init(&call->run, client, statement, true, options);
    run_encode(&call->run, values, value_count, options);
    fgw_wait_init(&call->wait, 1);
    fgw_fiber_spawn(client->loop, call_main, call);
    return call;
}

enum fgw_err fgw_cql_call_wait(struct fgw_cql_call *call, struct fgw_cql_result **out_result,
                               struct fgw_error *error)
{
    if (call->rounds != NULL) {
        call->rounds->in_round = false;
    }
    uint64_t start_ms = fgw_clock_boot_ms();
    fgw_wait_for(&call->wait);
    fgw_fiber_waited(fgw_clock_boot_ms() - start_ms);
    enum fgw_err err = call->err;
    if (err == FGW_OK) {
        *out_result = call->result;
    } else if (error != NULL) {
        *error = call->error;
    }
    fgw_xfree(call);
    return err;
}

/* -- pins ------------------------------------------------------------------------------------- */

static struct cql_conn *first_by_address(struct fgw_cql_client *client)
{
    struct cql_conn *best = NULL;
    for (size_t i = 0; i < client->node_count; i++) {
        struct cql_conn *conn = fgw_cql_node_conn(client->nodes[i]);
        if (conn != NULL &&
            (best == NULL || strcmp(conn->node->address, best->node->address) < 0)) {
            best = conn;
        }
    }
    return best;
}

enum fgw_err fgw_cql_pin_new(struct fgw_cql_client *client, uint64_t deadline_ms,
                             struct fgw_cql_pin **out_pin, struct fgw_error *error)
{
    enum fgw_err err = fgw_cql_client_wait_ready(client, deadline_ms, error);
    if (err != FGW_OK) {
        return err;
    }
    struct cql_conn *conn = first_by_address(client);
    if (conn == NULL) {
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "the connection was lost again");
    }
    struct fgw_cql_pin *pin = fgw_xcalloc(1, sizeof *pin);
    pin->conn = fgw_cql_conn_ref(conn);
    *out_pin = pin;
    return FGW_OK;
}

bool fgw_cql_pin_alive(const struct fgw_cql_pin *pin)
{
    return pin->conn->state == CQL_CONN_READY;
}

const char *fgw_cql_pin_node(const struct fgw_cql_pin *pin)
{
    return pin->conn->node->name;
}

uint16_t fgw_cql_pin_port(const struct fgw_cql_pin *pin)
{
    return pin->conn->node->contact.port;
}

void fgw_cql_pin_break(struct fgw_cql_pin *pin)
{
    fgw_cql_conn_close(pin->conn, FGW_ERR_CANCELLED, "given up");
}

void fgw_cql_pin_free(struct fgw_cql_pin *pin)
{
    if (pin != NULL) {
        fgw_cql_conn_unref(pin->conn);
        fgw_xfree(pin);
    }
}
