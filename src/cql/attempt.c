/* attempt.c: one try of a call on one connection: prepare what is not, send, wait, and say what came
 * of it (spec/ycql.md sections 2.3, 5.9). What follows from that is call.c's. */
#include "base/log.h"
#include "cql/call_internal.h"

enum { MESSAGE_MAX = 240 };

static struct cql_outcome from_failure(const struct cql_run *run, const struct cql_conn *conn,
                                       enum fgw_err err, bool never_sent, struct fgw_error *error)
{
    (void)fgw_error_set(error, err == FGW_ERR_TIMEOUT ? FGW_ERR_TIMEOUT : FGW_ERR_UNAVAILABLE,
                        "%s on %s: %s", run->statement->name, conn->node->name,
                        err == FGW_ERR_TIMEOUT    ? "no answer in time"
                        : conn->reason[0] != '\0' ? conn->reason
                                                  : "the connection is full");
    return (struct cql_outcome){.kind = never_sent ? OUTCOME_NOT_SENT : OUTCOME_LOST, .err = err};
}

static struct cql_outcome from_response(const struct cql_run *run, struct cql_conn *conn,
                                        struct fgw_cql_response *response, struct fgw_bytes id,
                                        struct fgw_error *error)
{
    struct fgw_cql_counters *counters = &run->client->counters;
    for (size_t i = 0; i < response->warning_count; i++) {
        counters->warnings++;
        fgw_log_debug("cql", "%s: warning of %s: %.*s", run->statement->name, conn->node->name,
                      FGW_FMT(response->warnings[i]));
    }
    if (response->opcode == FGW_CQL_OP_RESULT) {
        return (struct cql_outcome){.kind = OUTCOME_RESULT, .response = response};
    }
    struct cql_outcome outcome = {
        .kind = OUTCOME_REFUSED, .class = FGW_CQL_CLASS_PROTO, .response = response};
    conn->node->errors++;
    if (response->opcode == FGW_CQL_OP_ERROR) {
        outcome.class = fgw_cql_classify(&response->error, run->statement->kind, id);
        struct fgw_bytes text = fgw_bytes_sub(response->error.message, 0, MESSAGE_MAX);
        outcome.err = fgw_cql_class_err(outcome.class, run->statement->kind, response->error.code);
        (void)fgw_error_set(error, outcome.err, "%s on %s: error 0x%04x: %.*s",
                            run->statement->name, conn->node->name, (unsigned)response->error.code,
                            FGW_FMT(text));
    } else {
        outcome.err = fgw_error_set(error, FGW_ERR_INTERNAL, "%s on %s: unexpected answer 0x%02x",
                                    run->statement->name, conn->node->name, response->opcode);
    }
    counters->errors[outcome.class]++;
    if (outcome.class == FGW_CQL_CLASS_PROTO) {
        fgw_cql_conn_close(conn, FGW_ERR_IO, "the server and we disagree about the protocol");
    }
    return outcome;
}

/* Held against what PREPARE said, so that a wrong value is told by name and never sent. */
static enum fgw_err check_count(const struct fgw_cql_statement *statement,
                                const struct cql_prepared_entry *entry, size_t count,
                                struct fgw_error *error)
{
    return entry->bind_count == count
               ? FGW_OK
               : fgw_error_set(error, FGW_ERR_INTERNAL, "%s takes %zu values, %zu were given",
                               statement->name, entry->bind_count, count);
}

static enum fgw_err check_value(const struct fgw_cql_statement *statement,
                                const struct cql_prepared_entry *entry, size_t index,
                                enum fgw_cql_value_kind kind, struct fgw_error *error)
{
    struct fgw_cql_value value = {.kind = kind};
    return fgw_cql_value_fits(&value, entry->bind_types[index])
               ? FGW_OK
               : fgw_error_set(error, FGW_ERR_INTERNAL, "%s: value %zu is %s, the column is %s",
                               statement->name, index, fgw_cql_value_kind_name(kind),
                               fgw_cql_type_name(entry->bind_types[index]));
}

static enum fgw_err check_values(const struct cql_run *run, const struct cql_prepared_entry *entry,
                                 struct fgw_error *error)
{
    enum fgw_err err = check_count(run->statement, entry, run->value_count, error);
    for (size_t i = 0; err == FGW_OK && i < run->value_count; i++) {
        err = check_value(run->statement, entry, i, (enum fgw_cql_value_kind)run->kinds[i], error);
    }
    return err;
}

static enum fgw_err check_write(const struct fgw_cql_write *write,
                                const struct cql_prepared_entry *entry, struct fgw_error *error)
{
    enum fgw_err err = check_count(write->statement, entry, write->value_count, error);
    for (size_t i = 0; err == FGW_OK && i < write->value_count; i++) {
        err = check_value(write->statement, entry, i, write->values[i].kind, error);
    }
    return err;
}

/* The consistency stands first in the parameters; which one a linearizable read needs is known
 * once a server has told what it is. */
static void set_consistency(struct cql_run *run)
{
    enum fgw_cql_consistency level = run->consistency;
    if (run->linearizable && run->client->flavour != FGW_CQL_FLAVOUR_YUGABYTE) {
        level = FGW_CQL_SERIAL;
    }
    fgw_put_u16be(run->params.ptr, (uint16_t)level);
}

static struct cql_outcome send_and_wait(struct cql_run *run, struct cql_conn *conn,
                                        struct fgw_bytes id, uint64_t deadline_ms,
                                        struct fgw_error *error)
{
    if (!fgw_cql_conn_has_room(conn)) {
        return from_failure(run, conn, FGW_ERR_AGAIN, true, error);
    }
    struct cql_request request;
    struct fgw_cql_response *response = NULL;
    set_consistency(run);
    fgw_cql_conn_begin(conn, &request);
    if (run->prepared) {
        fgw_cql_encode_execute(&conn->out, request.stream, id, fgw_buf_bytes(&run->params));
    } else {
        fgw_cql_encode_query(&conn->out, request.stream, fgw_bytes_str(run->statement->text),
                             fgw_buf_bytes(&run->params));
    }
    fgw_cql_conn_send(conn);
    conn->node->requests++;
    run->client->counters.requests[run->statement->kind]++;
    enum fgw_err err = fgw_cql_conn_await(conn, &request, deadline_ms, &response);
    if (err != FGW_OK) {
        return from_failure(run, conn, err, request.never_sent, error);
    }
    return from_response(run, conn, response, id, error);
}

/* -- a prepared statement ------------------------------------------------------------------------ */

/* True with the entry, else with what the try came to. */
static bool prepare(const struct cql_run *run, struct cql_conn *conn,
                    const struct fgw_cql_statement *statement, uint64_t deadline_ms,
                    struct cql_prepared_entry **out_entry, struct cql_outcome *out_outcome,
                    struct fgw_error *error)
{
    struct fgw_cql_response *response = NULL;
    enum fgw_err err = fgw_cql_prepare(conn, statement, deadline_ms, out_entry, &response);
    if (err != FGW_OK) {
        *out_outcome = from_failure(run, conn, err, true, error);
        return false;
    }
    if (response == NULL) {
        return true;
    }
    *out_outcome = from_response(run, conn, response, fgw_bytes(NULL, 0), error);
    if (out_outcome->class == FGW_CQL_CLASS_TRANSIENT_UNKNOWN) {
        out_outcome->class = FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED; /* only the PREPARE failed */
        out_outcome->err = FGW_ERR_UNAVAILABLE;
    }
    return false;
}

static struct cql_outcome try_prepared(struct cql_run *run, struct cql_conn *conn,
                                       uint64_t deadline_ms, struct fgw_error *error)
{
    struct cql_prepared_entry *entry = NULL;
    struct cql_outcome outcome = {0};
    if (!prepare(run, conn, run->statement, deadline_ms, &entry, &outcome, error)) {
        return outcome;
    }
    enum fgw_err err = check_values(run, entry, error);
    if (err != FGW_OK) {
        return (struct cql_outcome){.kind = OUTCOME_BROKEN, .err = err};
    }
    uint8_t id_copy[64];
    if (entry->id.len > sizeof id_copy) {
        err = fgw_error_set(error, FGW_ERR_INTERNAL, "a statement id of %zu bytes", entry->id.len);
        return (struct cql_outcome){.kind = OUTCOME_BROKEN, .err = err};
    }
    struct fgw_bytes id = fgw_bytes(id_copy, entry->id.len);
    memcpy(id_copy, entry->id.ptr, entry->id.len);
    outcome = send_and_wait(run, conn, id, deadline_ms, error);
    if (outcome.kind == OUTCOME_REFUSED && outcome.class == FGW_CQL_CLASS_REPREPARE) {
        run->client->counters.reprepares++;
        fgw_cql_prepared_forget(entry, id);
    }
    return outcome;
}

/* -- a batch ------------------------------------------------------------------------------------- */

/* Until all of them are prepared at one instant: while one is prepared another may be forgotten. */
static bool prepare_all(const struct cql_run *run, struct cql_conn *conn, uint64_t deadline_ms,
                        struct cql_prepared_entry **entries, struct cql_outcome *out_outcome,
                        struct fgw_error *error)
{
    for (size_t ready = 0; ready < run->write_count;) {
        for (size_t i = 0; i < run->write_count; i++) {
            if (!prepare(run, conn, run->writes[i].statement, deadline_ms, &entries[i], out_outcome,
                         error)) {
                return false;
            }
        }
        ready = 0;
        while (ready < run->write_count && entries[ready]->id.len > 0) {
            ready++;
        }
    }
    for (size_t i = 0; i < run->write_count; i++) {
        enum fgw_err err = check_write(&run->writes[i], entries[i], error);
        if (err != FGW_OK) {
            *out_outcome = (struct cql_outcome){.kind = OUTCOME_BROKEN, .err = err};
            return false;
        }
    }
    return true;
}

/* Of the statement that the server does not know (any more), as it was sent; else empty. */
static struct fgw_bytes forget_unprepared(const struct cql_run *run,
                                          const struct fgw_cql_batch_item *items,
                                          struct cql_prepared_entry **entries,
                                          const struct fgw_cql_response *response)
{
    if (response->opcode != FGW_CQL_OP_ERROR || response->error.code != FGW_CQL_ERROR_UNPREPARED) {
        return fgw_bytes(NULL, 0);
    }
    for (size_t i = 0; i < run->write_count; i++) {
        if (fgw_bytes_eq(items[i].id, response->error.statement_id)) {
            run->client->counters.reprepares++;
            fgw_cql_prepared_forget(entries[i], items[i].id);
            return items[i].id;
        }
    }
    return fgw_bytes(NULL, 0);
}

static struct cql_outcome send_batch(const struct cql_run *run, struct cql_conn *conn,
                                     uint64_t deadline_ms, struct cql_prepared_entry **entries,
                                     struct fgw_arena *arena, struct fgw_error *error)
{
    struct fgw_cql_batch_item *items = fgw_arena_alloc(arena, run->write_count * sizeof *items);
    struct fgw_cql_response *response = NULL;
    struct cql_request request;
    if (!fgw_cql_conn_has_room(conn)) {
        return from_failure(run, conn, FGW_ERR_AGAIN, true, error);
    }
    for (size_t i = 0; i < run->write_count; i++) {
        items[i] = (struct fgw_cql_batch_item){.id = fgw_arena_copy(arena, entries[i]->id),
                                               .values = run->writes[i].values,
                                               .value_count = run->writes[i].value_count};
    }
    fgw_cql_conn_begin(conn, &request);
    fgw_cql_encode_batch(&conn->out, request.stream, items, run->write_count, run->consistency);
    fgw_cql_conn_send(conn);
    conn->node->requests++;
    run->client->counters.requests[FGW_CQL_REQUEST_BATCH]++;
    enum fgw_err err = fgw_cql_conn_await(conn, &request, deadline_ms, &response);
    if (err != FGW_OK) {
        return from_failure(run, conn, err, request.never_sent, error);
    }
    return from_response(run, conn, response, forget_unprepared(run, items, entries, response),
                         error);
}

static struct cql_outcome try_batch(const struct cql_run *run, struct cql_conn *conn,
                                    uint64_t deadline_ms, struct fgw_error *error)
{
    struct cql_outcome outcome = {0};
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    struct cql_prepared_entry **entries =
        fgw_arena_alloc(&arena, run->write_count * sizeof(struct cql_prepared_entry *));
    if (prepare_all(run, conn, deadline_ms, entries, &outcome, error)) {
        outcome = send_batch(run, conn, deadline_ms, entries, &arena, error);
    }
    fgw_arena_deinit(&arena);
    return outcome;
}

struct cql_outcome fgw_cql_attempt(struct cql_run *run, struct cql_conn *conn, uint64_t deadline_ms,
                                   struct fgw_error *error)
{
    if (run->writes != NULL) {
        return try_batch(run, conn, deadline_ms, error);
    }
    return run->prepared ? try_prepared(run, conn, deadline_ms, error)
                         : send_and_wait(run, conn, fgw_bytes(NULL, 0), deadline_ms, error);
}
