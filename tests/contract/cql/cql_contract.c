/* cql_contract.c: the CQL client against a live server: one scenario a run, chosen by name.
 *
 *   cql_contract --hosts H [--port N] [--user U --password P] [--tls-ca FILE] [--timeout-ms N]
 *                [--seconds N] [--workers N] [--contact-points-only] SCENARIO
 *
 * Scenarios work in keyspace fgw_contract and leave it behind; each starts from a table of its own.
 * Exit 0: the scenario held; 1: it did not, the reason is on standard error. "connect" and "load"
 * print one JSON object, which tests/integration/test_cql_client.py judges.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "cql/client.h"
#include "event/fiber.h"

struct context {
    struct fgw_cql_settings settings;
    unsigned seconds;
    unsigned workers;
    const char *scenario;
    struct fgw_loop *loop;
    struct fgw_cql_config *config;
    struct fgw_cql_client *client;
    int failures;
};

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            context->failures++; \
            return; \
        } \
    } while (0)

#define EXPECT_OK(call) \
    do { \
        enum fgw_err err_ = (call); \
        if (err_ != FGW_OK) { \
            (void)fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, \
                          fgw_err_name(err_), fgw_error_message(&error)); \
            context->failures++; \
            return; \
        } \
    } while (0)

/* -- helpers ---------------------------------------------------------------------------------- */

static enum fgw_err run_text(struct context *context, const char *text,
                             enum fgw_cql_statement_kind kind, struct fgw_error *error)
{
    struct fgw_cql_result *result = NULL;
    struct fgw_cql_options options = {.deadline_ms = fgw_loop_now_ms(context->loop) + 60000};
    enum fgw_err err = fgw_cql_query(context->client, text, kind, &options, &result, error);
    if (err == FGW_OK) {
        fgw_cql_result_free(result);
    }
    return err;
}

static enum fgw_err run_plain(struct context *context, const struct fgw_cql_statement *statement,
                              const struct fgw_cql_value *values, size_t count,
                              struct fgw_error *error)
{
    struct fgw_cql_result *result = NULL;
    enum fgw_err err =
        fgw_cql_execute(context->client, statement, values, count, NULL, &result, error);
    if (err == FGW_OK) {
        fgw_cql_result_free(result);
    }
    return err;
}

static enum fgw_err make_keyspace(struct context *context, struct fgw_error *error)
{
    return run_text(context,
                    "CREATE KEYSPACE IF NOT EXISTS fgw_contract WITH replication = "
                    "{'class': 'SimpleStrategy', 'replication_factor': 1}",
                    FGW_CQL_DDL, error);
}

static enum fgw_err make_table(struct context *context, const char *drop, const char *create,
                               struct fgw_error *error)
{
    enum fgw_err err = make_keyspace(context, error);
    if (err == FGW_OK) {
        err = run_text(context, drop, FGW_CQL_DDL, error);
    }
    return err == FGW_OK ? run_text(context, create, FGW_CQL_DDL, error) : err;
}

/* -- scenarios -------------------------------------------------------------------------------- */

static const struct fgw_cql_statement TYPES_PUT = {
    .name = "types_put",
    .text = "INSERT INTO fgw_contract.types (id, t, b, i, n, f, w, u) VALUES (?,?,?,?,?,?,?,?)",
    .kind = FGW_CQL_WRITE,
    .idempotent = true};
static const struct fgw_cql_statement TYPES_GET = {
    .name = "types_get",
    .text = "SELECT id, t, b, i, n, f, w, u FROM fgw_contract.types WHERE id = ?",
    .kind = FGW_CQL_READ};

static void check_types_row(struct context *context, struct fgw_cql_result *result,
                            const uint8_t uuid[16])
{
    struct fgw_error error = {0};
    struct fgw_bytes text = {0};
    struct fgw_bytes blob = {0};
    int64_t wide = 0;
    int64_t when = 0;
    int32_t number = 0;
    bool flag = false;
    uint8_t got[16];
    EXPECT(fgw_cql_result_next(result));
    EXPECT_OK(fgw_cql_get_text(result, "t", &text));
    EXPECT(fgw_bytes_eq_str(text, "gr\xc3\xbc\xc3\x9f dich"));
    EXPECT_OK(fgw_cql_get_blob(result, "b", &blob));
    EXPECT(blob.len == 0);
    EXPECT_OK(fgw_cql_get_bigint(result, "i", &wide));
    EXPECT(wide == INT64_MIN);
    EXPECT_OK(fgw_cql_get_int(result, "n", &number));
    EXPECT(number == -1);
    EXPECT_OK(fgw_cql_get_boolean(result, "f", &flag));
    EXPECT(flag);
    EXPECT_OK(fgw_cql_get_timestamp(result, "w", &when));
    EXPECT(when == 1764523967123);
    EXPECT_OK(fgw_cql_get_uuid(result, "u", got));
    EXPECT(memcmp(got, uuid, sizeof got) == 0);
    EXPECT(!fgw_cql_result_next(result));
}

static void scenario_types(struct context *context)
{
    struct fgw_error error = {0};
    uint8_t uuid[16];
    fgw_rng_fill(uuid, sizeof uuid);
    EXPECT_OK(make_table(context, "DROP TABLE IF EXISTS fgw_contract.types",
                         "CREATE TABLE fgw_contract.types (id int PRIMARY KEY, t text, b blob, "
                         "i bigint, n int, f boolean, w timestamp, u uuid)",
                         &error));
    struct fgw_cql_value full[] = {fgw_cql_int(1),
                                   fgw_cql_str("gr\xc3\xbc\xc3\x9f dich"),
                                   fgw_cql_blob(FGW_LIT("")),
                                   fgw_cql_bigint(INT64_MIN),
                                   fgw_cql_int(-1),
                                   fgw_cql_boolean(true),
                                   fgw_cql_timestamp(1764523967123),
                                   fgw_cql_uuid(uuid)};
    EXPECT_OK(run_plain(context, &TYPES_PUT, full, FGW_COUNT_OF(full), &error));
    struct fgw_cql_value nulls[] = {fgw_cql_int(2), fgw_cql_null(), fgw_cql_null(), fgw_cql_null(),
                                    fgw_cql_null(), fgw_cql_null(), fgw_cql_null(), fgw_cql_null()};
    EXPECT_OK(run_plain(context, &TYPES_PUT, nulls, FGW_COUNT_OF(nulls), &error));

    struct fgw_cql_result *result = NULL;
    struct fgw_cql_value id = fgw_cql_int(1);
    EXPECT_OK(fgw_cql_execute(context->client, &TYPES_GET, &id, 1, NULL, &result, &error));
    check_types_row(context, result, uuid);
    fgw_cql_result_free(result);

    id = fgw_cql_int(2);
    EXPECT_OK(fgw_cql_execute(context->client, &TYPES_GET, &id, 1, NULL, &result, &error));
    EXPECT(fgw_cql_result_next(result));
    EXPECT(fgw_cql_get_null(result, "t") && fgw_cql_get_null(result, "u"));
    fgw_cql_result_free(result);

    /* a linearizable read */
    struct fgw_cql_options serial = {.serial = true};
    EXPECT_OK(fgw_cql_execute(context->client, &TYPES_GET, &id, 1, &serial, &result, &error));
    EXPECT(fgw_cql_result_row_count(result) == 1);
    fgw_cql_result_free(result);

    /* wrong values are told and never sent */
    struct fgw_cql_value wrong = fgw_cql_bigint(1);
    EXPECT(run_plain(context, &TYPES_GET, &wrong, 1, &error) == FGW_ERR_INTERNAL);
    EXPECT(strstr(error.message, "value 0 is bigint, the column is int") != NULL);
    EXPECT(run_plain(context, &TYPES_GET, full, 2, &error) == FGW_ERR_INTERNAL);
}

static const struct fgw_cql_statement LWT_INSERT = {
    .name = "lwt_insert",
    .text = "INSERT INTO fgw_contract.lwt (k, rev, v) VALUES (?, ?, ?) IF NOT EXISTS",
    .kind = FGW_CQL_LWT};
static const struct fgw_cql_statement LWT_SWAP = {
    .name = "lwt_swap",
    .text = "UPDATE fgw_contract.lwt SET rev = ?, v = ? WHERE k = ? IF rev = ?",
    .kind = FGW_CQL_LWT};

static void swap(struct context *context, int32_t from, int32_t to, bool want)
{
    struct fgw_error error = {0};
    struct fgw_cql_result *result = NULL;
    bool applied = !want;
    struct fgw_cql_value values[] = {fgw_cql_int(to), fgw_cql_str("x"), fgw_cql_str("k"),
                                     fgw_cql_int(from)};
    EXPECT_OK(fgw_cql_execute(context->client, &LWT_SWAP, values, 4, NULL, &result, &error));
    EXPECT_OK(fgw_cql_result_applied(result, &applied));
    EXPECT(applied == want);
    fgw_cql_result_free(result);
}

static void scenario_lwt(struct context *context)
{
    struct fgw_error error = {0};
    EXPECT_OK(make_table(context, "DROP TABLE IF EXISTS fgw_contract.lwt",
                         "CREATE TABLE fgw_contract.lwt (k text PRIMARY KEY, rev int, v text)",
                         &error));
    struct fgw_cql_value values[] = {fgw_cql_str("k"), fgw_cql_int(1), fgw_cql_str("x")};
    for (int round = 0; round < 2; round++) {
        struct fgw_cql_result *result = NULL;
        bool applied = round != 0;
        EXPECT_OK(fgw_cql_execute(context->client, &LWT_INSERT, values, 3, NULL, &result, &error));
        EXPECT_OK(fgw_cql_result_applied(result, &applied));
        EXPECT(applied == (round == 0));
        fgw_cql_result_free(result);
    }
    swap(context, 7, 8, false);
    swap(context, 1, 2, true);
    swap(context, 1, 2, false);
}

static const struct fgw_cql_statement PAGE_PUT = {
    .name = "page_put",
    .text = "INSERT INTO fgw_contract.pages (p, c) VALUES (?, ?)",
    .kind = FGW_CQL_WRITE,
    .idempotent = true};
static const struct fgw_cql_statement PAGE_GET = {
    .name = "page_get",
    .text = "SELECT c FROM fgw_contract.pages WHERE p = ? AND c >= ?",
    .kind = FGW_CQL_READ};

enum { PAGING_ROWS = 2500, PAGING_PARALLEL = 100 };

static void put_rows(struct context *context, struct fgw_cql_rounds *rounds)
{
    struct fgw_error error = {0};
    struct fgw_cql_options options = {.rounds = rounds};
    for (int32_t at = 0; at < PAGING_ROWS; at += PAGING_PARALLEL) {
        struct fgw_cql_call *calls[PAGING_PARALLEL];
        for (int32_t i = 0; i < PAGING_PARALLEL; i++) {
            struct fgw_cql_value values[] = {fgw_cql_str("p"), fgw_cql_int(at + i)};
            calls[i] = fgw_cql_call_start(context->client, &PAGE_PUT, values, 2, &options);
        }
        enum fgw_err worst = FGW_OK;
        for (int32_t i = 0; i < PAGING_PARALLEL; i++) {
            struct fgw_cql_result *result = NULL;
            enum fgw_err err = fgw_cql_call_wait(calls[i], &result, &error);
            worst = err != FGW_OK ? err : worst;
            fgw_cql_result_free(result);
        }
        EXPECT_OK(worst);
    }
}

static void scenario_paging(struct context *context)
{
    struct fgw_error error = {0};
    struct fgw_cql_rounds rounds = {0};
    EXPECT_OK(make_table(context, "DROP TABLE IF EXISTS fgw_contract.pages",
                         "CREATE TABLE fgw_contract.pages (p text, c int, PRIMARY KEY (p, c))",
                         &error));
    put_rows(context, &rounds);
    EXPECT(rounds.rounds == PAGING_ROWS / PAGING_PARALLEL);
    EXPECT(rounds.statements == PAGING_ROWS);

    struct fgw_cql_value values[] = {fgw_cql_str("p"), fgw_cql_int(0)};
    struct fgw_cql_options options = {.page_size = 300};
    struct fgw_buf state;
    fgw_buf_init(&state, 0);
    int32_t next = 0;
    unsigned pages = 0;
    bool more = true;
    while (more) {
        struct fgw_cql_result *result = NULL;
        EXPECT_OK(
            fgw_cql_execute(context->client, &PAGE_GET, values, 2, &options, &result, &error));
        while (fgw_cql_result_next(result)) {
            int32_t got = -1;
            EXPECT_OK(fgw_cql_get_int(result, "c", &got));
            EXPECT(got == next);
            next++;
        }
        more = fgw_cql_result_has_more(result);
        fgw_buf_clear(&state);
        fgw_buf_append(&state, fgw_cql_result_paging_state(result));
        options.paging_state = fgw_buf_bytes(&state);
        fgw_cql_result_free(result);
        pages++;
    }
    EXPECT(next == PAGING_ROWS);
    EXPECT(pages >= PAGING_ROWS / 300);
    fgw_buf_deinit(&state);
}

static const struct fgw_cql_statement BATCH_PUT = {
    .name = "batch_put",
    .text = "INSERT INTO fgw_contract.batches (p, c, v) VALUES (?, ?, ?)",
    .kind = FGW_CQL_WRITE,
    .idempotent = true};
static const struct fgw_cql_statement BATCH_REMOVE = {
    .name = "batch_remove",
    .text = "DELETE FROM fgw_contract.batches WHERE p = ? AND c = ?",
    .kind = FGW_CQL_WRITE,
    .idempotent = true};
static const struct fgw_cql_statement BATCH_GET = {
    .name = "batch_get",
    .text = "SELECT c, v FROM fgw_contract.batches WHERE p = ?",
    .kind = FGW_CQL_READ};

enum { BATCH_ROWS = 50 };

/* Writes rows 0 to BATCH_ROWS - 1 and removes row 0 of the batch before: two statements in one. */
static enum fgw_err put_batch(struct context *context, struct fgw_cql_rounds *rounds,
                              struct fgw_error *error)
{
    static struct fgw_cql_value values[BATCH_ROWS + 1][3];
    struct fgw_cql_write writes[BATCH_ROWS + 1];
    struct fgw_cql_options options = {.rounds = rounds};
    for (int32_t i = 0; i < BATCH_ROWS; i++) {
        values[i][0] = fgw_cql_str("p");
        values[i][1] = fgw_cql_int(i);
        values[i][2] = fgw_cql_str(i % 2 == 0 ? "even" : "odd");
        writes[i] = (struct fgw_cql_write){&BATCH_PUT, values[i], 3};
    }
    values[BATCH_ROWS][0] = fgw_cql_str("p");
    values[BATCH_ROWS][1] = fgw_cql_int(-1);
    writes[BATCH_ROWS] = (struct fgw_cql_write){&BATCH_REMOVE, values[BATCH_ROWS], 2};
    return fgw_cql_batch(context->client, writes, BATCH_ROWS + 1, &options, error);
}

static void check_batch_rows(struct context *context)
{
    struct fgw_error error = {0};
    struct fgw_cql_result *result = NULL;
    struct fgw_cql_value partition = fgw_cql_str("p");
    EXPECT_OK(fgw_cql_execute(context->client, &BATCH_GET, &partition, 1, NULL, &result, &error));
    EXPECT(fgw_cql_result_row_count(result) == BATCH_ROWS);
    for (int32_t i = 0; i < BATCH_ROWS; i++) {
        int32_t row = -1;
        struct fgw_bytes text = {0};
        EXPECT(fgw_cql_result_next(result));
        EXPECT_OK(fgw_cql_get_int(result, "c", &row));
        EXPECT_OK(fgw_cql_get_text(result, "v", &text));
        EXPECT(row == i && fgw_bytes_eq_str(text, i % 2 == 0 ? "even" : "odd"));
    }
    fgw_cql_result_free(result);
}

static void refuse_batches(struct context *context)
{
    struct fgw_error error = {0};
    struct fgw_cql_value values[] = {fgw_cql_str("p"), fgw_cql_int(1), fgw_cql_int(7)};
    struct fgw_cql_write wrong = {&BATCH_PUT, values, 3};
    EXPECT(fgw_cql_batch(context->client, &wrong, 1, NULL, &error) == FGW_ERR_INTERNAL);
    EXPECT(strstr(error.message, "value 2 is int, the column is text") != NULL);
    wrong.value_count = 2;
    EXPECT(fgw_cql_batch(context->client, &wrong, 1, NULL, &error) == FGW_ERR_INTERNAL);
    wrong = (struct fgw_cql_write){&LWT_INSERT, values, 3};
    EXPECT(fgw_cql_batch(context->client, &wrong, 1, NULL, &error) == FGW_ERR_INTERNAL);
    EXPECT(fgw_cql_batch(context->client, &wrong, 0, NULL, &error) == FGW_ERR_INTERNAL);
    uint8_t *much = fgw_xcalloc(1, 3 << 20);
    values[2] = fgw_cql_text(fgw_bytes(much, 3 << 20));
    wrong = (struct fgw_cql_write){&BATCH_PUT, values, 3};
    enum fgw_err err = fgw_cql_batch(context->client, &wrong, 1, NULL, &error);
    fgw_xfree(much);
    EXPECT(err == FGW_ERR_TOO_LARGE);
}

static void scenario_batch(struct context *context)
{
    struct fgw_error error = {0};
    struct fgw_cql_rounds rounds = {0};
    const char *create =
        "CREATE TABLE fgw_contract.batches (p text, c int, v text, PRIMARY KEY (p, c))";
    EXPECT_OK(make_table(context, "DROP TABLE IF EXISTS fgw_contract.batches", create, &error));
    EXPECT_OK(put_batch(context, &rounds, &error));
    EXPECT(rounds.rounds == 1 && rounds.statements == 1);
    check_batch_rows(context);
    EXPECT_OK(put_batch(context, NULL, &error)); /* the same once more changes nothing */
    check_batch_rows(context);
    /* the server has forgotten both statements */
    EXPECT_OK(make_table(context, "DROP TABLE fgw_contract.batches", create, &error));
    EXPECT_OK(put_batch(context, NULL, &error));
    check_batch_rows(context);
    EXPECT(fgw_cql_client_counters(context->client)->reprepares >= 2);
    refuse_batches(context);
}

static const struct fgw_cql_statement ALTER_GET = {
    .name = "alter_get",
    .text = "SELECT k, v FROM fgw_contract.alters WHERE k = ?",
    .kind = FGW_CQL_READ};
static const struct fgw_cql_statement ALTER_PUT = {
    .name = "alter_put",
    .text = "INSERT INTO fgw_contract.alters (k, v) VALUES (?, ?)",
    .kind = FGW_CQL_WRITE,
    .idempotent = true};

static void scenario_alter(struct context *context)
{
    struct fgw_error error = {0};
    EXPECT_OK(make_table(context, "DROP TABLE IF EXISTS fgw_contract.alters",
                         "CREATE TABLE fgw_contract.alters (k int PRIMARY KEY, v text)", &error));
    struct fgw_cql_value values[] = {fgw_cql_int(1), fgw_cql_str("before")};
    EXPECT_OK(run_plain(context, &ALTER_PUT, values, 2, &error));
    EXPECT_OK(run_plain(context, &ALTER_GET, values, 1, &error));
    EXPECT_OK(run_text(context, "ALTER TABLE fgw_contract.alters ADD w int", FGW_CQL_DDL, &error));
    EXPECT(run_text(context, "ALTER TABLE fgw_contract.alters ADD w int", FGW_CQL_DDL, &error) ==
           FGW_ERR_EXISTS);
    for (int i = 0; i < 10; i++) {
        EXPECT_OK(run_plain(context, &ALTER_PUT, values, 2, &error));
        EXPECT_OK(run_plain(context, &ALTER_GET, values, 1, &error));
    }
    /* dropped and made again: every id the server knew is gone */
    EXPECT_OK(make_table(context, "DROP TABLE fgw_contract.alters",
                         "CREATE TABLE fgw_contract.alters (k int PRIMARY KEY, v text)", &error));
    EXPECT_OK(run_plain(context, &ALTER_PUT, values, 2, &error));
    EXPECT_OK(run_plain(context, &ALTER_GET, values, 1, &error));
    EXPECT(fgw_cql_client_counters(context->client)->reprepares > 0);
}

static const struct fgw_cql_statement MISSING_TABLE = {
    .name = "missing_table",
    .text = "SELECT k FROM fgw_contract.nowhere WHERE k = 1",
    .kind = FGW_CQL_READ};

static void scenario_errors(struct context *context)
{
    struct fgw_error error = {0};
    EXPECT_OK(make_table(context, "DROP TABLE IF EXISTS fgw_contract.errors",
                         "CREATE TABLE fgw_contract.errors (k int PRIMARY KEY)", &error));
    EXPECT(run_text(context, "CREATE TABLE fgw_contract.errors (k int PRIMARY KEY)", FGW_CQL_DDL,
                    &error) == FGW_ERR_EXISTS);
    EXPECT_OK(run_text(context,
                       "CREATE TABLE IF NOT EXISTS fgw_contract.errors (k int PRIMARY KEY)",
                       FGW_CQL_DDL, &error));
    EXPECT(run_text(context,
                    "CREATE KEYSPACE fgw_contract WITH replication = "
                    "{'class': 'SimpleStrategy', 'replication_factor': 1}",
                    FGW_CQL_DDL, &error) == FGW_ERR_EXISTS);
    EXPECT(run_text(context, "CREATE TABLE fgw_nokeyspace.x (k int PRIMARY KEY)", FGW_CQL_DDL,
                    &error) == FGW_ERR_NOT_FOUND);
    EXPECT(run_plain(context, &MISSING_TABLE, NULL, 0, &error) == FGW_ERR_NOT_FOUND);
    EXPECT(run_text(context, "SELECT k FROM fgw_contract.nowhere", FGW_CQL_READ, &error) ==
           FGW_ERR_NOT_FOUND);
    EXPECT(run_text(context, "SELECT nothing FROM fgw_contract.errors", FGW_CQL_READ, &error) ==
           FGW_ERR_INTERNAL);
    EXPECT(run_text(context, "SELEKT", FGW_CQL_READ, &error) == FGW_ERR_INTERNAL);
}

static void scenario_pin(struct context *context)
{
    struct fgw_error error = {0};
    struct fgw_cql_pin *pin = NULL;
    uint64_t deadline_ms = fgw_loop_now_ms(context->loop) + 10000;
    EXPECT_OK(fgw_cql_pin_new(context->client, deadline_ms, &pin, &error));
    struct fgw_cql_options options = {.pin = pin};
    for (int i = 0; i < 20; i++) {
        struct fgw_cql_result *result = NULL;
        EXPECT_OK(fgw_cql_query(context->client, "SELECT schema_version FROM system.local",
                                FGW_CQL_READ, &options, &result, &error));
        EXPECT(fgw_cql_result_row_count(result) == 1);
        fgw_cql_result_free(result);
    }
    EXPECT(fgw_cql_pin_alive(pin));
    (void)printf("%s\n", fgw_cql_pin_node(pin));
    fgw_cql_pin_free(pin);
}

/* A call whose fiber may wait no longer is not sent; one that runs takes its time off. */
static void scenario_patience(struct context *context)
{
    struct fgw_error error = {0};
    EXPECT_OK(make_table(context, "DROP TABLE IF EXISTS fgw_contract.patience",
                         "CREATE TABLE fgw_contract.patience (k int PRIMARY KEY)", &error));
    uint64_t all_ms = 600000;
    fgw_fiber_set_patience(all_ms);
    uint64_t start_ms = fgw_clock_boot_ms();
    for (int i = 0; i < 20; i++) {
        EXPECT_OK(run_text(context, "INSERT INTO fgw_contract.patience (k) VALUES (1)",
                           FGW_CQL_WRITE, &error));
    }
    EXPECT(all_ms - fgw_fiber_patience() <= fgw_clock_boot_ms() - start_ms);
    fgw_fiber_set_patience(0);
    EXPECT(run_text(context, "INSERT INTO fgw_contract.patience (k) VALUES (2)", FGW_CQL_WRITE,
                    &error) == FGW_ERR_TIMEOUT);
    EXPECT(run_text(context, "SELECT k FROM fgw_contract.patience WHERE k = 2", FGW_CQL_READ,
                    &error) == FGW_ERR_TIMEOUT);
    fgw_fiber_set_patience(UINT64_MAX);
    struct fgw_cql_result *result = NULL;
    EXPECT_OK(fgw_cql_query(context->client, "SELECT k FROM fgw_contract.patience WHERE k = 2",
                            FGW_CQL_READ, NULL, &result, &error));
    EXPECT(fgw_cql_result_row_count(result) == 0);
    fgw_cql_result_free(result);
}

static void scenario_connect(struct context *context)
{
    struct fgw_error error = {0};
    uint64_t start_ms = fgw_clock_boot_ms();
    enum fgw_err err = fgw_cql_client_wait_ready(
        context->client, fgw_loop_now_ms(context->loop) + context->settings.timeout_ms, &error);
    (void)printf("{\"err\": \"%s\", \"ms\": %llu, \"flavour\": %d, \"message\": \"%s\"}\n",
                 fgw_err_name(err), (unsigned long long)(fgw_clock_boot_ms() - start_ms),
                 (int)fgw_cql_client_flavour(context->client),
                 err == FGW_OK ? "" : fgw_error_message(&error));
}

/* -- load: what a client under load sees while the server is killed, stopped or slow --------- */

static const struct fgw_cql_statement LOAD_PUT = {
    .name = "load_put",
    .text = "INSERT INTO fgw_contract.load (k, v) VALUES (?, ?) IF NOT EXISTS",
    .kind = FGW_CQL_LWT};
static const struct fgw_cql_statement LOAD_PLAIN = {
    .name = "load_plain",
    .text = "INSERT INTO fgw_contract.load (k, v) VALUES (?, ?)",
    .kind = FGW_CQL_WRITE,
    .idempotent = true};
static const struct fgw_cql_statement LOAD_GET = {
    .name = "load_get",
    .text = "SELECT k, v FROM fgw_contract.load WHERE k = ?",
    .kind = FGW_CQL_READ};

struct load {
    struct context *context;
    struct fgw_wait done;
    uint64_t until_ms;
    uint64_t results[FGW_ERR_COUNT];
    uint64_t longest_ms;
    uint64_t last_ok_ms; /* since the start */
    uint64_t longest_gap_ms;
    uint64_t start_ms;
    int64_t next_key;
    struct fgw_buf acknowledged; /* i64 keys whose insert was acknowledged as applied */
};

static void note(struct load *load, enum fgw_err err, uint64_t begin_ms)
{
    uint64_t now_ms = fgw_clock_boot_ms();
    load->results[err]++;
    if (now_ms - begin_ms > load->longest_ms) {
        load->longest_ms = now_ms - begin_ms;
    }
    if (err == FGW_OK) {
        if (now_ms - load->start_ms - load->last_ok_ms > load->longest_gap_ms) {
            load->longest_gap_ms = now_ms - load->start_ms - load->last_ok_ms;
        }
        load->last_ok_ms = now_ms - load->start_ms;
    }
}

static void load_once(struct load *load)
{
    struct fgw_error error = {0};
    struct fgw_cql_client *client = load->context->client;
    int64_t key = load->next_key++;
    uint64_t begin_ms = fgw_clock_boot_ms();
    struct fgw_cql_result *result = NULL;
    struct fgw_cql_value values[] = {fgw_cql_bigint(key), fgw_cql_str("value")};
    const struct fgw_cql_statement *put = key % 4 == 0 ? &LOAD_PUT : &LOAD_PLAIN;
    enum fgw_err err = fgw_cql_execute(client, put, values, 2, NULL, &result, &error);
    bool applied = err == FGW_OK;
    if (err == FGW_OK && put == &LOAD_PUT) {
        err = fgw_cql_result_applied(result, &applied);
    }
    fgw_cql_result_free(result);
    note(load, err, begin_ms);
    if (applied) {
        fgw_buf_append(&load->acknowledged, fgw_bytes(&key, sizeof key));
    }
    if (err != FGW_OK) {
        fgw_fiber_sleep_ms(20);
        return;
    }
    begin_ms = fgw_clock_boot_ms();
    err = fgw_cql_execute(client, &LOAD_GET, values, 1, NULL, &result, &error);
    note(load, err, begin_ms);
    if (err == FGW_OK) {
        if (applied && fgw_cql_result_row_count(result) != 1) {
            (void)fprintf(stderr, "key %lld was acknowledged and is not there\n", (long long)key);
            load->context->failures++;
        }
        fgw_cql_result_free(result);
    } else {
        fgw_fiber_sleep_ms(20);
    }
}

static void load_worker(void *arg)
{
    struct load *load = arg;
    while (fgw_clock_boot_ms() < load->until_ms) {
        load_once(load);
    }
    fgw_wait_signal(&load->done);
}

/* Reads back every acknowledged key, a batch side by side. */
static uint64_t count_missing(struct context *context, struct load *load)
{
    enum { BATCH = 128 };
    struct fgw_cql_call *calls[BATCH];
    uint64_t missing = 0;
    for (size_t at = 0; at < load->acknowledged.len; at += BATCH * sizeof(int64_t)) {
        struct fgw_bytes keys =
            fgw_bytes_sub(fgw_buf_bytes(&load->acknowledged), at, BATCH * sizeof(int64_t));
        size_t count = keys.len / sizeof(int64_t);
        for (size_t i = 0; i < count; i++) {
            int64_t key;
            memcpy(&key, keys.ptr + i * sizeof key, sizeof key);
            struct fgw_cql_value value = fgw_cql_bigint(key);
            calls[i] = fgw_cql_call_start(context->client, &LOAD_GET, &value, 1, NULL);
        }
        for (size_t i = 0; i < count; i++) {
            struct fgw_error error = {0};
            struct fgw_cql_result *result = NULL;
            enum fgw_err err = fgw_cql_call_wait(calls[i], &result, &error);
            missing += err != FGW_OK || fgw_cql_result_row_count(result) != 1;
            fgw_cql_result_free(result);
        }
    }
    return missing;
}

static void print_load(struct context *context, struct load *load)
{
    const struct fgw_cql_counters *counters = fgw_cql_client_counters(context->client);
    uint64_t acknowledged = load->acknowledged.len / 8;
    uint64_t missing = count_missing(context, load);
    (void)printf("{\"acknowledged\": %llu, \"missing\": %llu, \"longest_ms\": %llu, "
                 "\"longest_gap_ms\": %llu, \"last_ok_ms\": %llu, \"retries\": %llu, "
                 "\"timeouts\": %llu, \"late\": %llu, \"results\": {",
                 (unsigned long long)acknowledged, (unsigned long long)missing,
                 (unsigned long long)load->longest_ms, (unsigned long long)load->longest_gap_ms,
                 (unsigned long long)load->last_ok_ms, (unsigned long long)counters->retries,
                 (unsigned long long)counters->timeouts, (unsigned long long)counters->late);
    const char *comma = "";
    for (int err = 0; err < FGW_ERR_COUNT; err++) {
        if (load->results[err] > 0) {
            (void)printf("%s\"%s\": %llu", comma, fgw_err_name((enum fgw_err)err),
                         (unsigned long long)load->results[err]);
            comma = ", ";
        }
    }
    (void)printf("}, \"nodes\": {");
    for (size_t i = 0; i < fgw_cql_client_node_count(context->client); i++) {
        struct fgw_cql_node_stats stats;
        fgw_cql_client_node_stats(context->client, i, &stats);
        (void)printf("%s\"%s\": {\"requests\": %llu, \"up\": %s, \"breaker\": %s}",
                     i == 0 ? "" : ", ", stats.name, (unsigned long long)stats.requests,
                     stats.up ? "true" : "false", stats.breaker_open ? "true" : "false");
    }
    (void)printf("}}\n");
}

static void scenario_load(struct context *context)
{
    struct fgw_error error = {0};
    EXPECT_OK(make_table(context, "DROP TABLE IF EXISTS fgw_contract.load",
                         "CREATE TABLE fgw_contract.load (k bigint PRIMARY KEY, v text)", &error));
    (void)printf("started\n");
    (void)fflush(stdout);
    uint64_t now_ms = fgw_clock_boot_ms();
    struct load *load = fgw_xcalloc(1, sizeof *load);
    load->context = context;
    load->start_ms = now_ms;
    load->until_ms = now_ms + 1000ULL * context->seconds;
    fgw_buf_init(&load->acknowledged, 0);
    fgw_wait_init(&load->done, context->workers);
    for (unsigned i = 0; i < context->workers; i++) {
        fgw_fiber_spawn(context->loop, load_worker, load);
    }
    fgw_wait_for(&load->done);
    print_load(context, load);
    fgw_buf_deinit(&load->acknowledged);
    fgw_xfree(load);
}

/* -- main ------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(struct context *context);
} SCENARIOS[] = {
    {"types", scenario_types},       {"lwt", scenario_lwt},         {"paging", scenario_paging},
    {"batch", scenario_batch},       {"alter", scenario_alter},     {"errors", scenario_errors},
    {"pin", scenario_pin},           {"connect", scenario_connect}, {"load", scenario_load},
    {"patience", scenario_patience},
};

static void run_scenario(void *arg)
{
    struct context *context = arg;
    context->loop = fgw_loop_current();
    context->client = fgw_cql_client_new(context->loop, context->config);
    bool found = false;
    for (size_t i = 0; i < FGW_COUNT_OF(SCENARIOS); i++) {
        if (strcmp(SCENARIOS[i].name, context->scenario) == 0) {
            found = true;
            SCENARIOS[i].run(context);
        }
    }
    if (!found) {
        (void)fprintf(stderr, "no scenario \"%s\"\n", context->scenario);
        context->failures++;
    }
    fgw_cql_client_free(context->client);
}

static unsigned number(const char *text)
{
    uint64_t value = 0;
    if (fgw_bytes_to_u64(fgw_bytes_str(text), &value) != FGW_OK || value > UINT32_MAX) {
        (void)fprintf(stderr, "\"%s\" is no number\n", text);
        exit(2);
    }
    return (unsigned)value;
}

static void parse(struct context *context, int argc, char **argv)
{
    static const struct option OPTIONS[] = {
        {"hosts", required_argument, NULL, 'h'},
        {"port", required_argument, NULL, 'p'},
        {"user", required_argument, NULL, 'u'},
        {"password", required_argument, NULL, 'w'},
        {"tls-ca", required_argument, NULL, 't'},
        {"timeout-ms", required_argument, NULL, 'm'},
        {"seconds", required_argument, NULL, 's'},
        {"workers", required_argument, NULL, 'n'},
        {"contact-points-only", no_argument, NULL, 'c'},
        {"verbose", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        switch (option) {
        case 'h':
            context->settings.hosts = optarg;
            break;
        case 'p':
            context->settings.port = (uint16_t)number(optarg);
            break;
        case 'u':
            context->settings.user = optarg;
            break;
        case 'w':
            context->settings.password = optarg;
            break;
        case 't':
            context->settings.tls_ca = optarg;
            break;
        case 'm':
            context->settings.timeout_ms = number(optarg);
            break;
        case 's':
            context->seconds = number(optarg);
            break;
        case 'n':
            context->workers = number(optarg);
            break;
        case 'c':
            context->settings.contact_points_only = true;
            break;
        case 'v':
            fgw_log_configure(FGW_LOG_DEBUG, false);
            break;
        default:
            exit(2);
        }
    }
    context->scenario = optind < argc ? argv[optind] : "";
}

int main(int argc, char **argv)
{
    struct context context = {
        .settings = {.hosts = "127.0.0.1", .timeout_ms = 10000}, .seconds = 5, .workers = 32};
    parse(&context, argc, argv);
    struct fgw_error error = {0};
    if (fgw_cql_config_new(&context.settings, &context.config, &error) != FGW_OK) {
        (void)fprintf(stderr, "%s\n", fgw_error_message(&error));
        return 1;
    }
    fgw_fiber_run_alone(run_scenario, &context);
    fgw_cql_config_free(context.config);
    return context.failures == 0 ? 0 : 1;
}
