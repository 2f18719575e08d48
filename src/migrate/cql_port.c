/* cql_port.c: asking, literals, time and tasks of the port. See cql_port.h. */
#include "migrate/cql_port_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "base/rng.h"

enum {
    DDL_TIMEOUT_MS = 210000,
    PIN_TIMEOUT_MS = 10000,
    TEXT_MAX = 1 << 20,
    AGREEMENT_MS = 60000,
    AGREEMENT_AGAIN_MS = 2000,
    AGREEMENT_POLL_MS = 100,
    SLEEP_SLICE_MS = 200,
    STOPPING_SLICE_MS = 10,
    STOPPING_PATIENCE_MS = 5000
};

struct fgw_migrate_answer fgw_port_ok(void)
{
    return (struct fgw_migrate_answer){.class = FGW_MIGRATE_OK};
}

/* "(ql error -202)" at the end of YugabyteDB's texts. */
static int ql_error_of(const char *text)
{
    const char *at = strstr(text, "ql error ");
    return at == NULL ? 0 : (int)strtol(at + 9, NULL, 10);
}

static enum fgw_migrate_answer_class class_of(const struct fgw_migrate_port *port, enum fgw_err err,
                                              int ql_error)
{
    if (ql_error == -203) {
        return FGW_MIGRATE_NOT_FOUND; /* undefined column: of a DROP or an ALTER */
    }
    switch (err) {
    case FGW_OK:
        return FGW_MIGRATE_OK;
    case FGW_ERR_EXISTS:
        return FGW_MIGRATE_ALREADY_EXISTS;
    case FGW_ERR_NOT_FOUND:
        return FGW_MIGRATE_NOT_FOUND;
    case FGW_ERR_UNKNOWN_OUTCOME:
        return FGW_MIGRATE_UNKNOWN;
    case FGW_ERR_ACCESS_DENIED:
        return FGW_MIGRATE_AUTH;
    case FGW_ERR_UNAVAILABLE:
    case FGW_ERR_TIMEOUT:
    case FGW_ERR_SLOW_DOWN:
        return fgw_cql_client_nodes_up(port->options.client) == 0 ? FGW_MIGRATE_UNREACHABLE
                                                                  : FGW_MIGRATE_NOT_APPLIED;
    case FGW_ERR_CONFIG:
    case FGW_ERR_CANCELLED:
        return FGW_MIGRATE_UNREACHABLE;
    default:
        return FGW_MIGRATE_PERMANENT;
    }
}

static struct fgw_migrate_answer answer_of(const struct fgw_migrate_port *port, enum fgw_err err,
                                           const struct fgw_error *error)
{
    struct fgw_migrate_answer answer = {.ql_error = ql_error_of(error->message)};
    answer.class = class_of(port, err, answer.ql_error);
    if (err != FGW_OK) {
        (void)snprintf(answer.text, sizeof answer.text, "%.*s", (int)sizeof answer.text - 1,
                       error->message[0] != '\0' ? error->message : fgw_err_text(err));
    }
    if (port->pin != NULL) {
        (void)snprintf(answer.server, sizeof answer.server, "%.*s", (int)sizeof answer.server - 1,
                       fgw_cql_pin_node(port->pin));
    }
    return answer;
}

static enum fgw_err hold_pin(struct fgw_migrate_port *port, struct fgw_error *error)
{
    if (port->pin != NULL && fgw_cql_pin_alive(port->pin)) {
        return FGW_OK;
    }
    fgw_cql_pin_free(port->pin);
    port->pin = NULL;
    return fgw_cql_pin_new(port->options.client,
                           fgw_loop_now_ms(fgw_loop_current()) + PIN_TIMEOUT_MS, &port->pin, error);
}

static bool stop_requested(void *context)
{
    struct fgw_migrate_port *port = context;
    return port->options.stop_requested != NULL &&
           port->options.stop_requested(port->options.stop_context);
}

/* -- a statement that nobody answers does not keep a process from ending ------------------------ */

struct watch {
    struct fgw_migrate_port *port;
    struct fgw_wait over;  /* the statement was answered */
    struct fgw_wait ended; /* this fiber */
};

static void watch_main(void *arg)
{
    struct watch *watch = arg;
    uint64_t patience_ms = 0;
    for (;;) {
        uint64_t now_ms = fgw_loop_now_ms(fgw_loop_current());
        if (fgw_wait_until(&watch->over, now_ms + SLEEP_SLICE_MS) == FGW_OK) {
            break;
        }
        patience_ms += stop_requested(watch->port) ? SLEEP_SLICE_MS : 0;
        if (patience_ms >= STOPPING_PATIENCE_MS) {
            fgw_cql_pin_break(watch->port->pin);
        }
    }
    fgw_wait_signal(&watch->ended);
}

/* DDL on the worker's connection. Asked to stop, it waits a little longer for the answer: without one
 * the outcome is unknown, which the journal and the next look at the catalog settle. */
static enum fgw_err send_watched(struct fgw_migrate_port *port, const char *text,
                                 const struct fgw_cql_options *options,
                                 struct fgw_cql_result **out_result, struct fgw_error *error)
{
    struct watch watch = {.port = port};
    fgw_wait_init(&watch.over, 1);
    fgw_wait_init(&watch.ended, 1);
    fgw_fiber_spawn(fgw_loop_current(), watch_main, &watch);
    enum fgw_err err =
        fgw_cql_query(port->options.client, text, FGW_CQL_DDL, options, out_result, error);
    fgw_wait_signal(&watch.over);
    fgw_wait_for(&watch.ended);
    return err;
}

struct fgw_migrate_answer fgw_port_ask(struct fgw_migrate_port *port,
                                       const struct port_question *question, struct fgw_buf *text,
                                       struct fgw_cql_result **out_result)
{
    struct fgw_error error;
    struct fgw_cql_result *result = NULL;
    fgw_error_init(&error);
    (void)fgw_buf_append_byte(text, 0);
    struct fgw_cql_options options = {.serial = question->serial,
                                      .paging_state = question->paging,
                                      .page_size = question->page_size};
    enum fgw_err err = fgw_buf_status(text);
    if (err == FGW_OK && question->lane == FGW_MIGRATE_WORKER && !question->anywhere) {
        err = hold_pin(port, &error);
        options.pin = port->pin;
    }
    if (question->kind == FGW_CQL_DDL) {
        uint32_t limit_ms = port->options.ddl_timeout_ms;
        options.deadline_ms =
            fgw_loop_now_ms(fgw_loop_current()) + (limit_ms == 0 ? DDL_TIMEOUT_MS : limit_ms);
    }
    if (err == FGW_OK && question->kind == FGW_CQL_DDL && options.pin != NULL) {
        err = send_watched(port, (const char *)text->ptr, &options, &result, &error);
    } else if (err == FGW_OK) {
        err = fgw_cql_query(port->options.client, (const char *)text->ptr, question->kind, &options,
                            &result, &error);
    }
    struct fgw_migrate_answer answer = answer_of(port, err, &error);
    fgw_buf_deinit(text);
    if (err == FGW_OK) {
        *out_result = result;
    }
    return answer;
}

static struct fgw_migrate_answer ask_page(struct port_rows *rows)
{
    struct port_question question = rows->question;
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    (void)fgw_buf_append(&text, fgw_buf_bytes(&rows->text));
    question.paging = fgw_buf_bytes(&rows->paging);
    return fgw_port_ask(rows->port, &question, &text, &rows->result);
}

bool fgw_port_next(struct port_rows *rows)
{
    for (;;) {
        if (rows->result != NULL && fgw_cql_result_next(rows->result)) {
            return true;
        }
        bool first = rows->result == NULL;
        if (!first && !fgw_cql_result_has_more(rows->result)) {
            return false;
        }
        if (!first) {
            fgw_buf_clear(&rows->paging);
            (void)fgw_buf_append(&rows->paging, fgw_cql_result_paging_state(rows->result));
            fgw_cql_result_free(rows->result);
            rows->result = NULL;
        }
        rows->answer = ask_page(rows);
        if (rows->answer.class != FGW_MIGRATE_OK) {
            return false;
        }
    }
}

void fgw_port_rows_init(struct port_rows *rows, struct fgw_migrate_port *port, bool anywhere)
{
    *rows =
        (struct port_rows){.port = port, .question = {.kind = FGW_CQL_READ, .anywhere = anywhere}};
    fgw_buf_init(&rows->text, TEXT_MAX);
    fgw_buf_init(&rows->paging, 0);
}

void fgw_port_rows_deinit(struct port_rows *rows)
{
    fgw_cql_result_free(rows->result);
    fgw_buf_deinit(&rows->text);
    fgw_buf_deinit(&rows->paging);
}

struct fgw_migrate_answer fgw_port_cas(struct fgw_migrate_port *port, enum fgw_migrate_lane lane,
                                       struct fgw_buf *text, bool *out_applied)
{
    struct port_question question = {.lane = lane, .kind = FGW_CQL_LWT};
    struct fgw_cql_result *result = NULL;
    struct fgw_migrate_answer answer = fgw_port_ask(port, &question, text, &result);
    if (answer.class == FGW_MIGRATE_OK && fgw_cql_result_applied(result, out_applied) != FGW_OK) {
        answer.class = FGW_MIGRATE_UNKNOWN; /* an answer that says nothing proves nothing */
    }
    fgw_cql_result_free(result);
    return answer;
}

struct fgw_migrate_answer fgw_port_write(struct fgw_migrate_port *port, struct fgw_buf *text)
{
    struct port_question question = {.kind = FGW_CQL_WRITE};
    struct fgw_cql_result *result = NULL;
    struct fgw_migrate_answer answer = fgw_port_ask(port, &question, text, &result);
    fgw_cql_result_free(result);
    return answer;
}

/* -- literals ---------------------------------------------------------------------------------- */

void fgw_port_text(struct fgw_buf *out, struct fgw_bytes text)
{
    (void)fgw_buf_append_byte(out, '\'');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\'') {
            (void)fgw_buf_append_byte(out, '\'');
        }
        (void)fgw_buf_append_byte(out, text.ptr[i]);
    }
    (void)fgw_buf_append_byte(out, '\'');
}

/* A text field that was cut may end within a character, which the server would refuse. */
void fgw_port_str(struct fgw_buf *out, const char *text)
{
    struct fgw_bytes whole = fgw_bytes_str(text);
    while (whole.len > 0 && !fgw_utf8_valid(whole)) {
        whole.len--;
    }
    fgw_port_text(out, whole);
}

void fgw_port_uuid(struct fgw_buf *out, const struct fgw_migrate_uuid *uuid)
{
    char hex[33];
    fgw_hex_encode(fgw_bytes(uuid->bytes, sizeof uuid->bytes), hex);
    (void)fgw_buf_appendf(out, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                          hex + 20);
}

static void append_hex(struct fgw_buf *out, struct fgw_bytes bytes)
{
    (void)fgw_buf_append_str(out, "0x");
    for (size_t i = 0; i < bytes.len; i++) {
        char digits[2];
        fgw_hex_encode(fgw_bytes_sub(bytes, i, 1), digits);
        (void)fgw_buf_append(out, fgw_bytes(digits, 2));
    }
}

bool fgw_port_cell(struct fgw_buf *out, const char *type, struct fgw_bytes cell)
{
    if (cell.ptr == NULL) {
        (void)fgw_buf_append_str(out, "null");
    } else if (strcmp(type, "text") == 0 && fgw_utf8_valid(cell)) {
        fgw_port_text(out, cell);
    } else if (strcmp(type, "blob") == 0) {
        append_hex(out, cell);
    } else if ((strcmp(type, "bigint") == 0 || strcmp(type, "timestamp") == 0) && cell.len == 8) {
        (void)fgw_buf_appendf(out, "%" PRId64, (int64_t)fgw_get_u64be(cell.ptr));
    } else if (strcmp(type, "int") == 0 && cell.len == 4) {
        (void)fgw_buf_appendf(out, "%" PRId32, (int32_t)fgw_get_u32be(cell.ptr));
    } else if (strcmp(type, "boolean") == 0 && cell.len == 1) {
        (void)fgw_buf_append_str(out, cell.ptr[0] != 0 ? "true" : "false");
    } else if (strcmp(type, "uuid") == 0 && cell.len == 16) {
        struct fgw_migrate_uuid uuid;
        memcpy(uuid.bytes, cell.ptr, sizeof uuid.bytes);
        fgw_port_uuid(out, &uuid);
    } else {
        return false;
    }
    return true;
}

/* -- reading ----------------------------------------------------------------------------------- */

void fgw_port_get_str(const struct fgw_cql_result *row, const char *name, char *out, size_t size)
{
    struct fgw_bytes text;
    if (fgw_cql_get_text(row, name, &text) == FGW_OK) {
        (void)snprintf(out, size, "%.*s", FGW_FMT(text));
    }
}

void fgw_port_get_i64(const struct fgw_cql_result *row, const char *name, int64_t *out)
{
    int64_t value;
    if (fgw_cql_get_bigint(row, name, &value) == FGW_OK) {
        *out = value;
    }
}

void fgw_port_get_i32(const struct fgw_cql_result *row, const char *name, int32_t *out)
{
    int32_t value;
    if (fgw_cql_get_int(row, name, &value) == FGW_OK) {
        *out = value;
    }
}

void fgw_port_get_uuid(const struct fgw_cql_result *row, const char *name,
                       struct fgw_migrate_uuid *out)
{
    struct fgw_migrate_uuid value;
    if (fgw_cql_get_uuid(row, name, value.bytes) == FGW_OK) {
        *out = value;
    }
}

void *fgw_port_grow(struct fgw_arena *arena, void *array, size_t count, size_t element_size)
{
    bool full = count == 0 || (count >= 16 && (count & (count - 1)) == 0);
    if (!full) {
        return array;
    }
    void *larger = fgw_arena_zalloc(arena, (count == 0 ? 16 : count * 2) * element_size);
    if (count > 0) {
        memcpy(larger, array, count * element_size);
    }
    return larger;
}

/* -- time, chance, tasks ------------------------------------------------------------------------ */

static uint64_t now_boot_ms(void *context)
{
    (void)context;
    return fgw_clock_boot_ms();
}

static int64_t now_wall_ms(void *context)
{
    (void)context;
    return fgw_clock_wall_ms();
}

/* In slices: who is asked to stop does so soon. Never without a pause: a loop that waits for another
 * fiber must let it run. */
static void sleep_ms(void *context, uint32_t ms)
{
    do {
        uint32_t slice = stop_requested(context) ? STOPPING_SLICE_MS : SLEEP_SLICE_MS;
        slice = ms < slice ? ms : slice;
        fgw_fiber_sleep_ms(slice);
        ms -= slice;
    } while (ms > 0 && !stop_requested(context));
}

static void random_bytes(void *context, void *out, size_t len)
{
    (void)context;
    fgw_rng_fill(out, len);
}

static void task_main(void *arg)
{
    struct fgw_migrate_port *port = arg;
    port->task(port->task_argument);
    fgw_wait_signal(&port->task_done);
}

static void start_task(void *context, void (*task)(void *argument), void *argument)
{
    struct fgw_migrate_port *port = context;
    port->task = task;
    port->task_argument = argument;
    fgw_wait_init(&port->task_done, 1);
    fgw_fiber_spawn(fgw_loop_current(), task_main, port);
}

static void join_task(void *context)
{
    fgw_wait_for(&((struct fgw_migrate_port *)context)->task_done);
}

static void guard(void *context)
{
    fgw_gate_enter(&((struct fgw_migrate_port *)context)->guard, 1);
}

static void unguard(void *context)
{
    fgw_gate_leave(&((struct fgw_migrate_port *)context)->guard, 1);
}

static void log_line(void *context, enum fgw_migrate_log_level level, const char *line)
{
    struct fgw_migrate_port *port = context;
    static const enum fgw_log_level LEVELS[] = {FGW_LOG_INFO, FGW_LOG_WARN, FGW_LOG_ERROR};
    if (!port->options.quiet) {
        fgw_log_at(LEVELS[level], "migrate", "%s", line);
    }
}

/* -- statements of migrations -------------------------------------------------------------------- */

static bool versions_agree(struct fgw_migrate_port *port, const char *table, bool *seen,
                           struct fgw_migrate_uuid *version)
{
    struct port_question question = {.kind = FGW_CQL_READ};
    struct fgw_cql_result *result = NULL;
    struct fgw_buf text;
    bool agree = true;
    fgw_buf_init(&text, TEXT_MAX);
    (void)fgw_buf_appendf(&text, "SELECT schema_version FROM system.%s", table);
    if (fgw_port_ask(port, &question, &text, &result).class != FGW_MIGRATE_OK) {
        return false;
    }
    while (fgw_cql_result_next(result)) {
        struct fgw_migrate_uuid one;
        if (fgw_cql_get_uuid(result, "schema_version", one.bytes) != FGW_OK) {
            continue; /* a peer that is down */
        }
        agree = agree && (!*seen || memcmp(&one, version, sizeof one) == 0);
        *version = one;
        *seen = true;
    }
    fgw_cql_result_free(result);
    return agree;
}

/* Cassandra spreads a schema by gossip: the next statement waits until all nodes have it. A node that
 * is down keeps its old version in system.peers and would cost the whole wait at every statement:
 * one long wait a run is enough, the postcondition is looked at in any case. On YugabyteDB the
 * version is a constant and this proves nothing, which costs one look. */
static void await_agreement(struct fgw_migrate_port *port)
{
    uint64_t limit = fgw_clock_boot_ms() + (port->disagreed ? AGREEMENT_AGAIN_MS : AGREEMENT_MS);
    while (fgw_clock_boot_ms() < limit && !stop_requested(port)) {
        bool seen = false;
        struct fgw_migrate_uuid version = {{0}};
        if (versions_agree(port, "local", &seen, &version) &&
            versions_agree(port, "peers", &seen, &version)) {
            return;
        }
        fgw_fiber_sleep_ms(AGREEMENT_POLL_MS);
    }
    if (stop_requested(port)) {
        return;
    }
    if (!port->disagreed && !port->options.quiet) {
        fgw_log_warn("migrate", "the nodes of the database do not show one schema version; is one "
                                "of them down? going on by what the catalog shows");
    }
    port->disagreed = true;
}

static struct fgw_migrate_answer send_statement(void *context, const char *keyspace,
                                                const char *statement)
{
    struct fgw_migrate_port *port = context;
    bool data = strncmp(statement, "INSERT", 6) == 0 || strncmp(statement, "UPDATE", 6) == 0;
    struct port_question question = {.kind = data ? FGW_CQL_WRITE : FGW_CQL_DDL};
    struct fgw_cql_result *result = NULL;
    struct fgw_buf text;
    (void)keyspace; /* names in the statement are qualified */
    fgw_buf_init(&text, TEXT_MAX);
    (void)fgw_buf_append_str(&text, statement);
    uint64_t since_ms = fgw_clock_boot_ms();
    struct fgw_migrate_answer answer = fgw_port_ask(port, &question, &text, &result);
    fgw_cql_result_free(result);
    port->statements++;
    port->statements_ms += fgw_clock_boot_ms() - since_ms;
    if (answer.class == FGW_MIGRATE_OK && !data) {
        await_agreement(port);
    }
    return answer;
}

/* -- the port ------------------------------------------------------------------------------------ */

struct fgw_migrate_port *fgw_migrate_port_new(const struct fgw_migrate_port_options *options)
{
    struct fgw_migrate_port *port = fgw_xcalloc(1, sizeof *port);
    port->options = *options;
    fgw_gate_init(&port->guard, 1);
    port->ops = (struct fgw_migrate_ops){
        .now_boot_ms = now_boot_ms,
        .now_wall_ms = now_wall_ms,
        .sleep_ms = sleep_ms,
        .random = random_bytes,
        .stop_requested = stop_requested,
        .start_task = start_task,
        .join_task = join_task,
        .guard = guard,
        .unguard = unguard,
        .log = log_line,
        .send = send_statement,
        .context = port,
    };
    fgw_port_set_catalog(&port->ops);
    fgw_port_set_tables(&port->ops);
    return port;
}

void fgw_migrate_port_free(struct fgw_migrate_port *port)
{
    if (port != NULL) {
        fgw_cql_pin_free(port->pin);
        fgw_xfree(port);
    }
}

unsigned fgw_migrate_port_statements(const struct fgw_migrate_port *port, uint64_t *out_ms)
{
    *out_ms = port->statements_ms;
    return port->statements;
}

const struct fgw_migrate_ops *fgw_migrate_port_ops(const struct fgw_migrate_port *port)
{
    return &port->ops;
}
