/* exec.c: sending one statement: which client, errors as a request must see them, the bound on
 * conditional writes of a partition, and the same statement again after a lost answer. */
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "event/workers.h"
#include "meta/cql/cql_internal.h"

enum { LWT_TRIES = 3, COMPLAINT_MS = 30000 };

/* A lost statement is sent again no later than this after the first time. */
#define RESEND_NS (5 * UINT64_C(1000000000))

struct cql_worker *cql_worker(struct cql *cql)
{
    unsigned index = fgw_worker_index();
    return &cql->workers[index < cql->options.workers ? index : cql->options.workers];
}

uint64_t cql_now_ms(void)
{
    return fgw_clock_boot_ms();
}

void cql_back_off(unsigned attempt)
{
    uint64_t most = UINT64_C(4) << (attempt < 6 ? attempt : 6);
    uint64_t delay_ms = 1 + fgw_rng_below(most);
    fgw_fiber_sleep_ms(delay_ms);
    fgw_fiber_waited(delay_ms);
}

static struct fgw_cql_client *client_of(struct cql *cql)
{
    return cql->options.client(cql->options.client_context);
}

/* What every request would say again is said once in a while. */
static bool may_complain(struct cql *cql)
{
    uint64_t now_ms = cql_now_ms();
    uint64_t last_ms = atomic_load(&cql->complained_ms);
    return (last_ms == 0 || now_ms - last_ms > COMPLAINT_MS) &&
           atomic_compare_exchange_strong(&cql->complained_ms, &last_ms, now_ms);
}

static const char *words_of(enum fgw_err err, const struct fgw_error *error)
{
    return error->message[0] != '\0' ? error->message : fgw_err_text(err);
}

static void complain(struct cql *cql, enum cql_statement_id id, const char *words)
{
    if (may_complain(cql)) {
        fgw_log_error("meta", "keyspace %s, statement %s: %s", cql->keyspace,
                      cql->statements[id].name, words);
    }
}

/* A client that asks for an object must not be told of tables, credentials or peers. */
static enum fgw_err as_request_error(struct cql *cql, enum cql_statement_id id, enum fgw_err err,
                                     struct fgw_error *error)
{
    switch (err) {
    case FGW_OK:
    case FGW_ERR_UNKNOWN_OUTCOME:
    case FGW_ERR_SLOW_DOWN:
        return err;
    case FGW_ERR_UNAVAILABLE:
    case FGW_ERR_TIMEOUT:
    case FGW_ERR_CANCELLED:
        fgw_log_debug("meta", "statement %s: %s", cql->statements[id].name, words_of(err, error));
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, NULL);
    case FGW_ERR_NOT_FOUND:
    case FGW_ERR_ACCESS_DENIED:
    case FGW_ERR_CONFIG:
        complain(cql, id, words_of(err, error));
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE, NULL);
    case FGW_ERR_TOO_LARGE:
        complain(cql, id, words_of(err, error));
        return fgw_error_set(error, err, NULL);
    default:
        fgw_log_error("meta", "statement %s: %s", cql->statements[id].name, words_of(err, error));
        return fgw_error_set(error, FGW_ERR_INTERNAL, NULL);
    }
}

static struct fgw_cql_options counted(struct cql *cql, const struct fgw_cql_options *options)
{
    struct fgw_cql_options with = options == NULL ? (struct fgw_cql_options){0} : *options;
    with.rounds = cql->rounds;
    return with;
}

/* -- faults of tests ---------------------------------------------------------------------------- */

struct late {
    struct cql *cql;
    const struct fgw_cql_statement *statement;
    struct fgw_cql_value values[16];
    size_t count;
    struct fgw_arena arena;
};

static void send_late(void *arg)
{
    struct late *late = arg;
    struct fgw_cql_result *result = NULL;
    struct fgw_error error;
    fgw_error_init(&error);
    fgw_fiber_sleep_ms(FGW_META_CQL_LATE_MS);
    if (fgw_cql_execute(client_of(late->cql), late->statement, late->values, late->count, NULL,
                        &result, &error) == FGW_OK) {
        fgw_cql_result_free(result);
    }
    fgw_arena_deinit(&late->arena);
    fgw_xfree(late);
}

static void arrive_late(struct cql *cql, const struct fgw_cql_statement *statement,
                        const struct fgw_cql_value *values, size_t count)
{
    struct late *late = fgw_xcalloc(1, sizeof *late);
    FGW_CHECK(count <= FGW_COUNT_OF(late->values));
    fgw_arena_init(&late->arena, 0);
    late->cql = cql;
    late->statement = statement;
    late->count = count;
    for (size_t i = 0; i < count; i++) {
        late->values[i] = values[i];
        if (values[i].kind == FGW_CQL_VALUE_BLOB || values[i].kind == FGW_CQL_VALUE_TEXT) {
            late->values[i].bytes = fgw_arena_copy(&late->arena, values[i].bytes);
        }
    }
    fgw_fiber_spawn(fgw_loop_current(), send_late, late);
}

/* What the test wants instead of sending (after false) or of the answer (after true). */
static enum fgw_err fault(struct cql *cql, enum cql_statement_id id,
                          const struct fgw_cql_value *values, size_t count, bool after)
{
    if (cql->options.fault == NULL) {
        return FGW_OK;
    }
    const struct fgw_cql_statement *statement = &cql->statements[id];
    enum fgw_err err = cql->options.fault(cql->options.fault_context, statement, after);
    if (err == FGW_ERR_AGAIN) {
        arrive_late(cql, statement, values, count);
        return FGW_ERR_UNKNOWN_OUTCOME;
    }
    return err;
}

/* -- statements --------------------------------------------------------------------------------- */

static enum fgw_err execute(struct cql *cql, enum cql_statement_id id,
                            const struct fgw_cql_value *values, size_t count,
                            const struct fgw_cql_options *options,
                            struct fgw_cql_result **out_result, struct fgw_error *error)
{
    struct fgw_error ignored;
    if (error == NULL) {
        fgw_error_init(&ignored);
        error = &ignored;
    }
    enum fgw_err err = fault(cql, id, values, count, false);
    if (err != FGW_OK) {
        return fgw_error_set(error, err, NULL);
    }
    struct fgw_cql_options with = counted(cql, options);
    err = fgw_cql_execute(client_of(cql), &cql->statements[id], values, count, &with, out_result,
                          error);
    enum fgw_err lost = fault(cql, id, values, count, true);
    if (err == FGW_OK && lost != FGW_OK) {
        fgw_cql_result_free(*out_result);
        *out_result = NULL;
        return fgw_error_set(error, lost, NULL);
    }
    return as_request_error(cql, id, err, error);
}

enum fgw_err cql_read(struct cql *cql, enum cql_statement_id id, const struct fgw_cql_value *values,
                      size_t count, const struct fgw_cql_options *options,
                      struct fgw_cql_result **out_result, struct fgw_error *error)
{
    return execute(cql, id, values, count, options, out_result, error);
}

struct fgw_cql_call *cql_start(struct cql *cql, enum cql_statement_id id,
                               const struct fgw_cql_value *values, size_t count,
                               const struct fgw_cql_options *options)
{
    struct fgw_cql_options with = counted(cql, options);
    return fgw_cql_call_start(client_of(cql), &cql->statements[id], values, count, &with);
}

enum fgw_err cql_wait(struct cql *cql, struct fgw_cql_call *call,
                      struct fgw_cql_result **out_result, struct fgw_error *error)
{
    struct fgw_error ignored;
    if (error == NULL) {
        fgw_error_init(&ignored);
        error = &ignored;
    }
    enum fgw_err err = fgw_cql_call_wait(call, out_result, error);
    /* the parallel rounds are all reads */
    return as_request_error(cql, CQL_HEAD_GET, err, error);
}

enum fgw_err cql_write(struct cql *cql, enum cql_statement_id id,
                       const struct fgw_cql_value *values, size_t count, struct fgw_error *error)
{
    struct fgw_cql_result *result = NULL;
    enum fgw_err err = execute(cql, id, values, count, NULL, &result, error);
    if (err == FGW_OK) {
        fgw_cql_result_free(result);
    }
    return err;
}

/* -- conditional statements ---------------------------------------------------------------------- */

/* A refusal whose row carries the rev we would have written is our own write, seen again. */
static bool refused_by_ourselves(const struct fgw_cql_result *result, const struct fgw_id *rev)
{
    struct fgw_id now;
    return rev != NULL && cql_get_id(result, "rev", &now) == FGW_OK && fgw_id_eq(&now, rev);
}

static enum fgw_err send_once(struct cql *cql, const struct cql_lwt *lwt, bool *out_applied,
                              struct fgw_error *error)
{
    struct fgw_cql_result *result = NULL;
    enum fgw_err err = execute(cql, lwt->id, lwt->values, lwt->count, NULL, &result, error);
    if (err != FGW_OK) {
        return err;
    }
    bool applied = false;
    err = fgw_cql_result_applied(result, &applied);
    if (err == FGW_OK) {
        *out_applied = applied || refused_by_ourselves(result, lwt->rev);
    }
    fgw_cql_result_free(result);
    return err;
}

/* yugabyte-db #29108, #2542: a statement repeated within the server meets its own first time. What
 * it then shows of the row may lack the rev (of a refused INSERT it shows the key only). */
static bool may_repeat(struct cql *cql)
{
    return fgw_cql_client_flavour(client_of(cql)) == FGW_CQL_FLAVOUR_YUGABYTE;
}

/* Who would wait too long is told at once, and has cost nothing. */
static enum fgw_err enter(struct cql_gate *gate, struct fgw_error *error)
{
    uint64_t wait_us = gate->waiting * gate->pass_us / gate->gate.limit;
    if (gate->waiting >= CQL_GATE_WAITING_MAX || wait_us > CQL_GATE_WAIT_MS * UINT64_C(1000)) {
        return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
    }
    uint64_t since_ms = cql_now_ms();
    gate->waiting++;
    fgw_gate_enter(&gate->gate, 1);
    gate->waiting--;
    fgw_fiber_waited(cql_now_ms() - since_ms);
    return FGW_OK;
}

static void leave(struct cql_gate *gate, uint64_t since_ns)
{
    uint64_t took_us = (fgw_clock_boot_ns() - since_ns) / 1000;
    gate->pass_us = (7 * gate->pass_us + took_us) / 8;
    fgw_gate_leave(&gate->gate, 1);
}

enum fgw_err cql_lwt(struct cql *cql, const struct cql_lwt *lwt, enum cql_outcome *out_outcome,
                     struct fgw_error *error)
{
    struct cql_gate *gate = &cql_worker(cql)->gates[lwt->partition % CQL_GATES];
    enum fgw_err err = enter(gate, error);
    if (err != FGW_OK) {
        return err;
    }
    uint64_t since_ns = fgw_clock_boot_ns();
    bool lost = false; /* an earlier sending may still apply */
    bool applied = false;
    for (unsigned try = 0; try < LWT_TRIES; try++) {
        err = send_once(cql, lwt, &applied, error);
        if (err != FGW_ERR_UNKNOWN_OUTCOME) {
            break;
        }
        lost = true;
        if (fgw_clock_boot_ns() - since_ns > RESEND_NS) {
            break; /* the client that asked waits too: reading tells as much */
        }
        cql_back_off(try + 2);
    }
    leave(gate, since_ns);
    if (err == FGW_OK) {
        enum cql_outcome refused = may_repeat(cql) ? CQL_DOUBTED : CQL_REFUSED;
        *out_outcome = applied ? CQL_APPLIED : lost ? CQL_UNSURE : refused;
        return FGW_OK;
    }
    if (lost) {
        *out_outcome = CQL_UNSURE;
        return FGW_OK;
    }
    return err;
}

/* -- small things -------------------------------------------------------------------------------- */

enum fgw_err cql_get_id(const struct fgw_cql_result *result, const char *column,
                        struct fgw_id *out_id)
{
    struct fgw_bytes bytes;
    enum fgw_err err = fgw_cql_get_blob(result, column, &bytes);
    if (err != FGW_OK) {
        return err;
    }
    if (bytes.len != sizeof out_id->bytes) {
        return FGW_ERR_CORRUPT;
    }
    memcpy(out_id->bytes, bytes.ptr, bytes.len);
    return FGW_OK;
}

enum fgw_err cql_fail(struct fgw_error *error, enum fgw_err err, const char *what,
                      struct fgw_bytes name)
{
    if (err == FGW_OK || error == NULL || error->code == err) {
        return err;
    }
    bool internal = err == FGW_ERR_CORRUPT || err == FGW_ERR_NEWER_VERSION ||
                    err == FGW_ERR_INTERNAL || err == FGW_ERR_TOO_LARGE;
    return internal
               ? fgw_error_set(error, err, "%s %.*s: %s", what, FGW_FMT(name), fgw_err_text(err))
               : fgw_error_set(error, err, NULL);
}
