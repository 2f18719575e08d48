/* control.c: the engine's own tables (spec/migrations.md E2.2) and their first creation.
 *
 * Creation needs no lock: CREATE IF NOT EXISTS by any number of starters is absorbed by the server,
 * and the shape is compared afterwards. A control table of another shape is a finding (031) that
 * `repair` mends; its rows are evidence, never the truth.
 */
#include "migrate/migrate_internal.h"

#include "base/check.h"

static const char *const control_cql[] = {
    /* golang-migrate's table, a mirror only: name, columns and types are its own */
    "CREATE TABLE schema_migrations (version bigint PRIMARY KEY, dirty boolean)",
    "CREATE TABLE fgw_schema_lock (id text PRIMARY KEY, owner uuid, owner_desc text, epoch bigint,"
    " hb bigint, lease_ms bigint, target bigint, i_version bigint, i_stmt int, i_sha text,"
    " i_phase int, build text, at_ms bigint)",
    "CREATE TABLE fgw_schema_state (id text PRIMARY KEY, set_name text, cluster_id uuid,"
    " format int, version bigint, min_compat bigint, epoch bigint, updated_ms bigint, how text)",
    "CREATE TABLE fgw_schema_journal (set_name text, version bigint, stmt int, state int,"
    " sha text, epoch bigint, owner text, started_ms bigint, finished_ms bigint, ql_error int,"
    " error_text text, attempts int, shape text, how text,"
    " PRIMARY KEY ((set_name), version, stmt))",
    "CREATE TABLE fgw_schema_history (set_name text, at_ms bigint, id uuid, event text,"
    " version bigint, actor text, build text, from_version bigint, to_version bigint, reason text,"
    " PRIMARY KEY ((set_name), at_ms, id))",
    "CREATE TABLE fgw_schema_nodes (node_id text PRIMARY KEY, role text, build text,"
    " needs bigint, knows bigint, seen_ms bigint)",
};

const struct fgw_migrate_statement *fgw_migrate_control_table(struct fgw_migrate_engine *e,
                                                              size_t index)
{
    if (index >= FGW_COUNT_OF(control_cql)) {
        return NULL;
    }
    struct fgw_migrate_statement *statement = fgw_arena_alloc(e->arena, sizeof *statement);
    FGW_CHECK(fgw_migrate_parse_text(e->arena, control_cql[index], NULL, statement) == FGW_OK);
    return statement;
}

bool fgw_migrate_is_control(const char *table)
{
    return strcmp(table, "schema_migrations") == 0 || strncmp(table, "fgw_schema_", 11) == 0;
}

static enum fgw_migrate_exit wrong_shape(struct fgw_migrate_engine *e, const char *table,
                                         const struct fgw_migrate_diff *diff)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_SHAPE_CONFLICT, FGW_MIGRATE_ERROR);
    finding->object = table;
    finding->diff = diff->text;
    finding->cause = "a control table was not made by this program";
    finding->state = "nothing changed";
    finding->next = fgw_migrate_command(e, "repair");
    return FGW_MIGRATE_EXIT_DECISION;
}

/* Reads and writes must work, not only the catalog (yugabyte-db #798, #6634). */
static enum fgw_migrate_exit check_usable(struct fgw_migrate_engine *e,
                                          const struct fgw_migrate_table *table, bool *out_usable)
{
    bool rows;
    struct fgw_migrate_answer answer = e->ops->probe(e->context, e->keyspace, table, &rows);
    *out_usable = answer.class == FGW_MIGRATE_OK;
    bool wait = fgw_migrate_transient(&answer) || answer.class == FGW_MIGRATE_NOT_FOUND;
    return *out_usable || wait ? FGW_MIGRATE_EXIT_OK
                               : fgw_migrate_refused(e, "reading a control table", &answer);
}

static const char *guarded_create(struct fgw_migrate_engine *e,
                                  const struct fgw_migrate_statement *statement)
{
    const char *plain = fgw_migrate_send_text(e->scratch, statement, e->keyspace);
    FGW_CHECK(strncmp(plain, "CREATE TABLE ", 13) == 0);
    return fgw_arena_printf(e->scratch, "CREATE TABLE IF NOT EXISTS %s", plain + 13);
}

enum { NOT_SENT = 0 };

/* Sends the CREATE unless one is on its way; *sent_at_ms is when. */
static enum fgw_migrate_exit send_create(struct fgw_migrate_engine *e,
                                         const struct fgw_migrate_statement *statement,
                                         uint64_t *sent_at_ms)
{
    uint64_t now = fgw_migrate_now(e);
    if (*sent_at_ms != NOT_SENT && now - *sent_at_ms < e->options.timing.ddl_timeout_ms) {
        return FGW_MIGRATE_EXIT_OK;
    }
    fgw_migrate_point(e, FGW_MIGRATE_AT_BOOTSTRAP);
    *sent_at_ms = now + 1;
    struct fgw_migrate_answer answer =
        e->ops->send(e->context, e->keyspace, guarded_create(e, statement));
    bool absorbed = answer.class == FGW_MIGRATE_OK || answer.class == FGW_MIGRATE_ALREADY_EXISTS;
    if (answer.class == FGW_MIGRATE_NOT_APPLIED || answer.class == FGW_MIGRATE_UNREACHABLE) {
        *sent_at_ms = NOT_SENT;
    }
    if (!absorbed && !fgw_migrate_transient(&answer)) {
        return fgw_migrate_refused(e, "creating a control table", &answer);
    }
    return FGW_MIGRATE_EXIT_OK;
}

static enum fgw_migrate_exit ensure_table(struct fgw_migrate_engine *e,
                                          const struct fgw_migrate_statement *statement)
{
    uint64_t began = fgw_migrate_now(e);
    uint64_t sent_at_ms = NOT_SENT;
    const char *diff_seen = NULL;
    for (unsigned turn = 0;; turn++) {
        struct fgw_migrate_table *table = NULL;
        enum fgw_migrate_exit exit = fgw_migrate_stop(e);
        if (exit == FGW_MIGRATE_EXIT_OK) {
            exit = fgw_migrate_look(e, statement->table, turn, &table);
        }
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        struct fgw_migrate_diff diff;
        fgw_migrate_table_compare(e->arena, statement->create, table, &diff);
        bool usable = false;
        uint64_t sent_before_ms = sent_at_ms;
        if (diff.missing_table) {
            exit = send_create(e, statement, &sent_at_ms);
        } else if (!diff.key && !diff.type && diff.missing_count == 0) {
            exit = check_usable(e, statement->create, &usable);
        } else if (diff_seen != NULL && strcmp(diff_seen, diff.text) == 0) {
            return wrong_shape(e, statement->table, &diff);
        }
        diff_seen = diff.missing_table ? NULL : diff.text;
        if (exit != FGW_MIGRATE_EXIT_OK || usable) {
            return exit;
        }
        if (sent_at_ms != NOT_SENT && sent_at_ms != sent_before_ms) {
            continue; /* mostly visible at once */
        }
        if (fgw_migrate_now(e) - began > e->options.timing.wait_limit_ms) {
            struct fgw_migrate_finding *finding =
                fgw_migrate_find(e, FGW_MIGRATE_NOT_VISIBLE, FGW_MIGRATE_ERROR);
            finding->object = statement->table;
            finding->next = fgw_migrate_command(e, "up");
            return FGW_MIGRATE_EXIT_FAILED;
        }
        fgw_migrate_sleep_about(e, sent_at_ms == NOT_SENT ? e->options.timing.poll_ms
                                                          : e->options.timing.poll_ms / 4 + 1);
    }
}

static enum fgw_migrate_exit ensure_lock_row(struct fgw_migrate_engine *e)
{
    uint64_t began = fgw_migrate_now(e);
    for (;;) {
        struct fgw_migrate_lock_row row = {.lease_ms = e->options.timing.lease_ms};
        bool found = false;
        bool applied = false;
        struct fgw_migrate_answer answer =
            e->ops->lock_read(e->context, FGW_MIGRATE_WORKER, e->keyspace, &row, &found);
        if (answer.class == FGW_MIGRATE_OK && found) {
            return FGW_MIGRATE_EXIT_OK;
        }
        if (answer.class == FGW_MIGRATE_OK) {
            /* the epoch is raised above the evidence when the lock is taken */
            fgw_migrate_point(e, FGW_MIGRATE_AT_LOCK_ROW);
            row = (struct fgw_migrate_lock_row){.lease_ms = e->options.timing.lease_ms};
            answer = e->ops->lock_insert(e->context, e->keyspace, &row, &applied);
        }
        if (answer.class != FGW_MIGRATE_OK && !fgw_migrate_transient(&answer) &&
            answer.class != FGW_MIGRATE_NOT_FOUND) {
            return fgw_migrate_refused(e, "making the lock row", &answer);
        }
        if (fgw_migrate_now(e) - began > e->options.timing.wait_limit_ms) {
            return fgw_migrate_refused(e, "making the lock row", &answer);
        }
        enum fgw_migrate_exit exit = fgw_migrate_stop(e);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        if (answer.class != FGW_MIGRATE_OK) {
            fgw_migrate_sleep_about(e, e->options.timing.poll_ms);
        }
    }
}

enum fgw_migrate_exit fgw_migrate_bootstrap_lock(struct fgw_migrate_engine *e)
{
    const struct fgw_migrate_statement *table;
    for (size_t i = 0; (table = fgw_migrate_control_table(e, i)) != NULL; i++) {
        if (strcmp(table->table, "fgw_schema_lock") == 0) {
            enum fgw_migrate_exit exit = ensure_table(e, table);
            return exit == FGW_MIGRATE_EXIT_OK ? ensure_lock_row(e) : exit;
        }
    }
    return FGW_MIGRATE_EXIT_INTERNAL;
}

enum fgw_migrate_exit fgw_migrate_bootstrap(struct fgw_migrate_engine *e)
{
    for (size_t i = 0; i < FGW_COUNT_OF(control_cql); i++) {
        enum fgw_migrate_exit exit = ensure_table(e, fgw_migrate_control_table(e, i));
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
    return ensure_lock_row(e);
}
