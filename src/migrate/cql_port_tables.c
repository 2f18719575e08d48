/* cql_port_tables.c: the engine's control tables (control.c holds their DDL): each write is one
 * single-row conditional write, rows that such writes change are read linearizably. */
#include "migrate/cql_port_internal.h"

#include <inttypes.h>

enum { TEXT_MAX = 1 << 20 };

static void begin(struct fgw_buf *text)
{
    fgw_buf_init(text, TEXT_MAX);
}

static struct fgw_migrate_answer ask(struct fgw_migrate_port *port, enum fgw_migrate_lane lane,
                                     struct fgw_buf *text, struct fgw_cql_result **out_result)
{
    struct port_question question = {.lane = lane, .kind = FGW_CQL_READ, .serial = true};
    return fgw_port_ask(port, &question, text, out_result);
}

/* -- lock ----------------------------------------------------------------------------------------- */

static void read_lock(const struct fgw_cql_result *row, struct fgw_migrate_lock_row *out)
{
    int32_t phase = 0;
    memset(out, 0, sizeof *out);
    fgw_port_get_uuid(row, "owner", &out->owner);
    fgw_port_get_str(row, "owner_desc", out->owner_desc, sizeof out->owner_desc);
    fgw_port_get_i64(row, "epoch", &out->epoch);
    fgw_port_get_i64(row, "hb", &out->hb);
    fgw_port_get_i64(row, "lease_ms", &out->lease_ms);
    fgw_port_get_i64(row, "target", &out->target);
    fgw_port_get_i64(row, "i_version", &out->i_version);
    fgw_port_get_i32(row, "i_stmt", &out->i_stmt);
    fgw_port_get_str(row, "i_sha", out->i_sha, sizeof out->i_sha);
    fgw_port_get_i32(row, "i_phase", &phase);
    fgw_port_get_str(row, "build", out->build, sizeof out->build);
    fgw_port_get_i64(row, "at_ms", &out->at_ms);
    out->i_phase = (enum fgw_migrate_intent)phase;
}

static struct fgw_migrate_answer lock_read(void *context, enum fgw_migrate_lane lane,
                                           const char *keyspace,
                                           struct fgw_migrate_lock_row *out_row, bool *out_found)
{
    struct fgw_cql_result *result = NULL;
    struct fgw_buf text;
    begin(&text);
    (void)fgw_buf_appendf(
        &text,
        "SELECT owner, owner_desc, epoch, hb, lease_ms, target, i_version, i_stmt, "
        "i_sha, i_phase, build, at_ms FROM %s.fgw_schema_lock WHERE id = 'migrate'",
        keyspace);
    struct fgw_migrate_answer answer = ask(context, lane, &text, &result);
    if (answer.class == FGW_MIGRATE_OK) {
        *out_found = fgw_cql_result_next(result);
        if (*out_found) {
            read_lock(result, out_row);
        }
    }
    fgw_cql_result_free(result);
    return answer;
}

static struct fgw_migrate_answer lock_insert(void *context, const char *keyspace,
                                             const struct fgw_migrate_lock_row *row,
                                             bool *out_applied)
{
    struct fgw_buf text;
    begin(&text);
    (void)fgw_buf_appendf(
        &text,
        "INSERT INTO %s.fgw_schema_lock (id, owner, owner_desc, epoch, hb, "
        "lease_ms, target, i_version, i_stmt, i_sha, i_phase, build, at_ms) VALUES "
        "('migrate', ",
        keyspace);
    fgw_port_uuid(&text, &row->owner);
    (void)fgw_buf_append_str(&text, ", ");
    fgw_port_str(&text, row->owner_desc);
    (void)fgw_buf_appendf(
        &text, ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId32 ", ",
        row->epoch, row->hb, row->lease_ms, row->target, row->i_version, row->i_stmt);
    fgw_port_str(&text, row->i_sha);
    (void)fgw_buf_appendf(&text, ", %d, ", (int)row->i_phase);
    fgw_port_str(&text, row->build);
    (void)fgw_buf_appendf(&text, ", %" PRId64 ") IF NOT EXISTS", row->at_ms);
    return fgw_port_cas(context, FGW_MIGRATE_WORKER, &text, out_applied);
}

static void set_holder(struct fgw_buf *text, const struct fgw_migrate_lock_row *row)
{
    (void)fgw_buf_append_str(text, "owner = ");
    fgw_port_uuid(text, &row->owner);
    (void)fgw_buf_append_str(text, ", owner_desc = ");
    fgw_port_str(text, row->owner_desc);
    (void)fgw_buf_appendf(text,
                          ", epoch = %" PRId64 ", lease_ms = %" PRId64 ", target = %" PRId64
                          ", at_ms = %" PRId64 ", build = ",
                          row->epoch, row->lease_ms, row->target, row->at_ms);
    fgw_port_str(text, row->build);
}

static void set_intent(struct fgw_buf *text, const struct fgw_migrate_lock_row *row)
{
    (void)fgw_buf_appendf(text,
                          "i_version = %" PRId64 ", i_stmt = %" PRId32 ", i_sha = ", row->i_version,
                          row->i_stmt);
    fgw_port_str(text, row->i_sha);
    (void)fgw_buf_appendf(text, ", i_phase = %d", (int)row->i_phase);
}

static struct fgw_migrate_answer lock_update(void *context, enum fgw_migrate_lane lane,
                                             const char *keyspace,
                                             const struct fgw_migrate_lock_row *row, unsigned set,
                                             const struct fgw_migrate_lock_row *seen,
                                             bool *out_applied)
{
    struct fgw_buf text;
    const char *separator = "";
    begin(&text);
    (void)fgw_buf_appendf(&text, "UPDATE %s.fgw_schema_lock SET ", keyspace);
    if (set & FGW_MIGRATE_SET_HOLDER) {
        set_holder(&text, row);
        separator = ", ";
    }
    if (set & FGW_MIGRATE_SET_HB) {
        (void)fgw_buf_appendf(&text, "%shb = %" PRId64, separator, row->hb);
        separator = ", ";
    }
    if (set & FGW_MIGRATE_SET_INTENT) {
        (void)fgw_buf_append_str(&text, separator);
        set_intent(&text, row);
    }
    (void)fgw_buf_append_str(&text, " WHERE id = 'migrate' IF owner = ");
    fgw_port_uuid(&text, &seen->owner);
    (void)fgw_buf_appendf(&text, " AND epoch = %" PRId64 " AND hb = %" PRId64, seen->epoch,
                          seen->hb);
    return fgw_port_cas(context, lane, &text, out_applied);
}

/* -- state ---------------------------------------------------------------------------------------- */

static struct fgw_migrate_answer state_read(void *context, const char *keyspace,
                                            struct fgw_migrate_state_row *out_row, bool *out_found)
{
    struct fgw_cql_result *result = NULL;
    struct fgw_buf text;
    begin(&text);
    (void)fgw_buf_appendf(&text,
                          "SELECT set_name, cluster_id, format, version, min_compat, epoch, "
                          "updated_ms, how FROM %s.fgw_schema_state WHERE id = 'state'",
                          keyspace);
    struct fgw_migrate_answer answer = ask(context, FGW_MIGRATE_WORKER, &text, &result);
    if (answer.class == FGW_MIGRATE_OK) {
        *out_found = fgw_cql_result_next(result);
        if (*out_found) {
            memset(out_row, 0, sizeof *out_row);
            fgw_port_get_str(result, "set_name", out_row->set_name, sizeof out_row->set_name);
            fgw_port_get_uuid(result, "cluster_id", &out_row->cluster_id);
            fgw_port_get_i32(result, "format", &out_row->format);
            fgw_port_get_i64(result, "version", &out_row->version);
            fgw_port_get_i64(result, "min_compat", &out_row->min_compat);
            fgw_port_get_i64(result, "epoch", &out_row->epoch);
            fgw_port_get_i64(result, "updated_ms", &out_row->updated_ms);
            fgw_port_get_str(result, "how", out_row->how, sizeof out_row->how);
        }
    }
    fgw_cql_result_free(result);
    return answer;
}

static struct fgw_migrate_answer state_insert(void *context, const char *keyspace,
                                              const struct fgw_migrate_state_row *row,
                                              bool *out_applied)
{
    struct fgw_buf text;
    begin(&text);
    (void)fgw_buf_appendf(&text,
                          "INSERT INTO %s.fgw_schema_state (id, set_name, cluster_id, format, "
                          "version, min_compat, epoch, updated_ms, how) VALUES ('state', ",
                          keyspace);
    fgw_port_str(&text, row->set_name);
    (void)fgw_buf_append_str(&text, ", ");
    fgw_port_uuid(&text, &row->cluster_id);
    (void)fgw_buf_appendf(&text,
                          ", %" PRId32 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", ",
                          row->format, row->version, row->min_compat, row->epoch, row->updated_ms);
    fgw_port_str(&text, row->how);
    (void)fgw_buf_append_str(&text, ") IF NOT EXISTS");
    return fgw_port_cas(context, FGW_MIGRATE_WORKER, &text, out_applied);
}

static struct fgw_migrate_answer state_update(void *context, const char *keyspace,
                                              const struct fgw_migrate_state_row *row,
                                              const struct fgw_migrate_state_row *seen,
                                              bool *out_applied)
{
    struct fgw_buf text;
    begin(&text);
    (void)fgw_buf_appendf(&text, "UPDATE %s.fgw_schema_state SET set_name = ", keyspace);
    fgw_port_str(&text, row->set_name);
    (void)fgw_buf_append_str(&text, ", cluster_id = ");
    fgw_port_uuid(&text, &row->cluster_id);
    (void)fgw_buf_appendf(&text,
                          ", format = %" PRId32 ", version = %" PRId64 ", min_compat = %" PRId64
                          ", epoch = %" PRId64 ", updated_ms = %" PRId64 ", how = ",
                          row->format, row->version, row->min_compat, row->epoch, row->updated_ms);
    fgw_port_str(&text, row->how);
    (void)fgw_buf_appendf(&text,
                          " WHERE id = 'state' IF epoch = %" PRId64 " AND version = %" PRId64,
                          seen->epoch, seen->version);
    return fgw_port_cas(context, FGW_MIGRATE_WORKER, &text, out_applied);
}

/* -- journal -------------------------------------------------------------------------------------- */

static void read_journal(const struct fgw_cql_result *row, struct fgw_migrate_journal_row *out)
{
    int32_t state = 0;
    fgw_port_get_i64(row, "version", &out->version);
    fgw_port_get_i32(row, "stmt", &out->stmt);
    fgw_port_get_i32(row, "state", &state);
    fgw_port_get_str(row, "sha", out->sha, sizeof out->sha);
    fgw_port_get_i64(row, "epoch", &out->epoch);
    fgw_port_get_str(row, "owner", out->owner, sizeof out->owner);
    fgw_port_get_i64(row, "started_ms", &out->started_ms);
    fgw_port_get_i64(row, "finished_ms", &out->finished_ms);
    fgw_port_get_i32(row, "ql_error", &out->ql_error);
    fgw_port_get_str(row, "error_text", out->error_text, sizeof out->error_text);
    fgw_port_get_i32(row, "attempts", &out->attempts);
    fgw_port_get_str(row, "shape", out->shape, sizeof out->shape);
    fgw_port_get_str(row, "how", out->how, sizeof out->how);
    out->state = (enum fgw_migrate_step_state)state;
}

static struct fgw_migrate_answer journal_read(void *context, const char *keyspace, const char *set,
                                              struct fgw_arena *arena,
                                              struct fgw_migrate_journal_row **out_rows,
                                              size_t *out_count)
{
    struct fgw_migrate_journal_row *rows = NULL;
    struct port_rows found;
    size_t count = 0;
    fgw_port_rows_init(&found, context, false);
    (void)fgw_buf_appendf(&found.text,
                          "SELECT version, stmt, state, sha, epoch, owner, started_ms, "
                          "finished_ms, ql_error, error_text, attempts, shape, how FROM "
                          "%s.fgw_schema_journal WHERE set_name = ",
                          keyspace);
    fgw_port_str(&found.text, set);
    while (fgw_port_next(&found)) {
        rows = fgw_port_grow(arena, rows, count, sizeof *rows);
        read_journal(found.result, &rows[count++]);
    }
    struct fgw_migrate_answer answer = found.answer;
    fgw_port_rows_deinit(&found);
    if (answer.class == FGW_MIGRATE_OK) {
        *out_rows = rows;
        *out_count = count;
    }
    return answer;
}

static struct fgw_migrate_answer journal_insert(void *context, const char *keyspace,
                                                const char *set,
                                                const struct fgw_migrate_journal_row *row,
                                                bool *out_applied)
{
    struct fgw_buf text;
    begin(&text);
    (void)fgw_buf_appendf(&text,
                          "INSERT INTO %s.fgw_schema_journal (set_name, version, stmt, state, sha, "
                          "epoch, owner, started_ms, finished_ms, ql_error, error_text, attempts, "
                          "shape, how) VALUES (",
                          keyspace);
    fgw_port_str(&text, set);
    (void)fgw_buf_appendf(&text, ", %" PRId64 ", %" PRId32 ", %d, ", row->version, row->stmt,
                          (int)row->state);
    fgw_port_str(&text, row->sha);
    (void)fgw_buf_appendf(&text, ", %" PRId64 ", ", row->epoch);
    fgw_port_str(&text, row->owner);
    (void)fgw_buf_appendf(&text, ", %" PRId64 ", %" PRId64 ", %" PRId32 ", ", row->started_ms,
                          row->finished_ms, row->ql_error);
    fgw_port_str(&text, row->error_text);
    (void)fgw_buf_appendf(&text, ", %" PRId32 ", ", row->attempts);
    fgw_port_str(&text, row->shape);
    (void)fgw_buf_append_str(&text, ", ");
    fgw_port_str(&text, row->how);
    (void)fgw_buf_append_str(&text, ") IF NOT EXISTS");
    return fgw_port_cas(context, FGW_MIGRATE_WORKER, &text, out_applied);
}

static struct fgw_migrate_answer journal_update(void *context, const char *keyspace,
                                                const char *set,
                                                const struct fgw_migrate_journal_row *row,
                                                const struct fgw_migrate_journal_row *seen,
                                                bool *out_applied)
{
    struct fgw_buf text;
    begin(&text);
    (void)fgw_buf_appendf(&text, "UPDATE %s.fgw_schema_journal SET state = %d, sha = ", keyspace,
                          (int)row->state);
    fgw_port_str(&text, row->sha);
    (void)fgw_buf_appendf(&text, ", epoch = %" PRId64 ", owner = ", row->epoch);
    fgw_port_str(&text, row->owner);
    (void)fgw_buf_appendf(&text,
                          ", started_ms = %" PRId64 ", finished_ms = %" PRId64
                          ", ql_error = %" PRId32 ", attempts = %" PRId32 ", error_text = ",
                          row->started_ms, row->finished_ms, row->ql_error, row->attempts);
    fgw_port_str(&text, row->error_text);
    (void)fgw_buf_append_str(&text, ", shape = ");
    fgw_port_str(&text, row->shape);
    (void)fgw_buf_append_str(&text, ", how = ");
    fgw_port_str(&text, row->how);
    (void)fgw_buf_append_str(&text, " WHERE set_name = ");
    fgw_port_str(&text, set);
    (void)fgw_buf_appendf(&text,
                          " AND version = %" PRId64 " AND stmt = %" PRId32 " IF epoch = %" PRId64
                          " AND state = %d",
                          row->version, row->stmt, seen->epoch, (int)seen->state);
    return fgw_port_cas(context, FGW_MIGRATE_WORKER, &text, out_applied);
}

/* -- history, nodes ------------------------------------------------------------------------------- */

static struct fgw_migrate_answer history_insert(void *context, const char *keyspace,
                                                const char *set,
                                                const struct fgw_migrate_history_row *row)
{
    struct fgw_buf text;
    bool applied;
    begin(&text);
    (void)fgw_buf_appendf(&text,
                          "INSERT INTO %s.fgw_schema_history (set_name, at_ms, id, event, version, "
                          "actor, build, from_version, to_version, reason) VALUES (",
                          keyspace);
    fgw_port_str(&text, set);
    (void)fgw_buf_appendf(&text, ", %" PRId64 ", ", row->at_ms);
    fgw_port_uuid(&text, &row->id);
    (void)fgw_buf_append_str(&text, ", ");
    fgw_port_str(&text, row->event);
    (void)fgw_buf_appendf(&text, ", %" PRId64 ", ", row->version);
    fgw_port_str(&text, row->actor);
    (void)fgw_buf_append_str(&text, ", ");
    fgw_port_str(&text, row->build);
    (void)fgw_buf_appendf(&text, ", %" PRId64 ", %" PRId64 ", ", row->from_version,
                          row->to_version);
    fgw_port_str(&text, row->reason);
    (void)fgw_buf_append_str(&text, ") IF NOT EXISTS");
    return fgw_port_cas(context, FGW_MIGRATE_WORKER, &text, &applied);
}

static struct fgw_migrate_answer nodes_read(void *context, const char *keyspace,
                                            struct fgw_arena *arena,
                                            struct fgw_migrate_node_row **out_rows,
                                            size_t *out_count)
{
    struct fgw_migrate_node_row *rows = NULL;
    struct port_rows found;
    size_t count = 0;
    fgw_port_rows_init(&found, context, false);
    (void)fgw_buf_appendf(
        &found.text, "SELECT node_id, role, build, needs, knows, seen_ms FROM %s.fgw_schema_nodes",
        keyspace);
    while (fgw_port_next(&found)) {
        rows = fgw_port_grow(arena, rows, count, sizeof *rows);
        struct fgw_migrate_node_row *row = &rows[count++];
        fgw_port_get_str(found.result, "node_id", row->node_id, sizeof row->node_id);
        fgw_port_get_str(found.result, "role", row->role, sizeof row->role);
        fgw_port_get_str(found.result, "build", row->build, sizeof row->build);
        fgw_port_get_i64(found.result, "needs", &row->needs);
        fgw_port_get_i64(found.result, "knows", &row->knows);
        fgw_port_get_i64(found.result, "seen_ms", &row->seen_ms);
    }
    struct fgw_migrate_answer answer = found.answer;
    fgw_port_rows_deinit(&found);
    if (answer.class == FGW_MIGRATE_OK) {
        *out_rows = rows;
        *out_count = count;
    }
    return answer;
}

static struct fgw_migrate_answer nodes_write(void *context, const char *keyspace,
                                             const struct fgw_migrate_node_row *row)
{
    struct fgw_buf text;
    begin(&text);
    (void)fgw_buf_appendf(&text,
                          "INSERT INTO %s.fgw_schema_nodes (node_id, role, build, needs, knows, "
                          "seen_ms) VALUES (",
                          keyspace);
    fgw_port_str(&text, row->node_id);
    (void)fgw_buf_append_str(&text, ", ");
    fgw_port_str(&text, row->role);
    (void)fgw_buf_append_str(&text, ", ");
    fgw_port_str(&text, row->build);
    (void)fgw_buf_appendf(&text, ", %" PRId64 ", %" PRId64 ", %" PRId64 ")", row->needs, row->knows,
                          row->seen_ms);
    return fgw_port_write(context, &text);
}

/* -- mirror: golang-migrate's table ---------------------------------------------------------------- */

static struct fgw_migrate_answer mirror_read(void *context, const char *keyspace,
                                             struct fgw_arena *arena,
                                             struct fgw_migrate_mirror_row **out_rows,
                                             size_t *out_count)
{
    struct fgw_migrate_mirror_row *rows = NULL;
    struct port_rows found;
    size_t count = 0;
    fgw_port_rows_init(&found, context, false);
    (void)fgw_buf_appendf(&found.text, "SELECT version, dirty FROM %s.schema_migrations", keyspace);
    while (fgw_port_next(&found)) {
        rows = fgw_port_grow(arena, rows, count, sizeof *rows);
        struct fgw_migrate_mirror_row *row = &rows[count++];
        fgw_port_get_i64(found.result, "version", &row->version);
        if (fgw_cql_get_boolean(found.result, "dirty", &row->dirty) != FGW_OK) {
            row->dirty = false; /* null: an upsert by hand that named no flag */
        }
    }
    struct fgw_migrate_answer answer = found.answer;
    fgw_port_rows_deinit(&found);
    if (answer.class == FGW_MIGRATE_OK) {
        *out_rows = rows;
        *out_count = count;
    }
    return answer;
}

static const char *boolean(bool value)
{
    return value ? "true" : "false";
}

static struct fgw_migrate_answer mirror_insert(void *context, const char *keyspace,
                                               struct fgw_migrate_mirror_row row, bool *out_applied)
{
    struct fgw_buf text;
    begin(&text);
    (void)fgw_buf_appendf(&text,
                          "INSERT INTO %s.schema_migrations (version, dirty) VALUES (%" PRId64
                          ", %s) IF NOT EXISTS",
                          keyspace, row.version, boolean(row.dirty));
    return fgw_port_cas(context, FGW_MIGRATE_WORKER, &text, out_applied);
}

static struct fgw_migrate_answer mirror_update(void *context, const char *keyspace,
                                               struct fgw_migrate_mirror_row row, bool *out_applied)
{
    struct fgw_buf text;
    begin(&text);
    (void)fgw_buf_appendf(&text,
                          "UPDATE %s.schema_migrations SET dirty = %s WHERE version = %" PRId64
                          " IF dirty = %s",
                          keyspace, boolean(row.dirty), row.version, boolean(!row.dirty));
    return fgw_port_cas(context, FGW_MIGRATE_WORKER, &text, out_applied);
}

static struct fgw_migrate_answer mirror_delete(void *context, const char *keyspace, int64_t version)
{
    struct fgw_buf text;
    bool applied;
    begin(&text);
    (void)fgw_buf_appendf(&text,
                          "DELETE FROM %s.schema_migrations WHERE version = %" PRId64 " IF EXISTS",
                          keyspace, version);
    return fgw_port_cas(context, FGW_MIGRATE_WORKER, &text, &applied);
}

void fgw_port_set_tables(struct fgw_migrate_ops *ops)
{
    ops->lock_read = lock_read;
    ops->lock_insert = lock_insert;
    ops->lock_update = lock_update;
    ops->state_read = state_read;
    ops->state_insert = state_insert;
    ops->state_update = state_update;
    ops->journal_read = journal_read;
    ops->journal_insert = journal_insert;
    ops->journal_update = journal_update;
    ops->history_insert = history_insert;
    ops->nodes_read = nodes_read;
    ops->nodes_write = nodes_write;
    ops->mirror_read = mirror_read;
    ops->mirror_insert = mirror_insert;
    ops->mirror_update = mirror_update;
    ops->mirror_delete = mirror_delete;
}
