/* sim_db.c: the simulated keyspace: shapes with their history, rows, control tables; see sim.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "migrate/migrate_internal.h"
#include "sim.h"

static struct fgw_migrate_answer say(enum fgw_migrate_answer_class class, int ql_error,
                                     const char *format, ...) __attribute__((format(printf, 3, 4)));

static struct fgw_migrate_answer say(enum fgw_migrate_answer_class class, int ql_error,
                                     const char *format, ...)
{
    struct fgw_migrate_answer answer = {
        .class = class, .ql_error = ql_error, .server = "10.0.0.5:9042"};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(answer.text, sizeof answer.text, format, args);
    va_end(args);
    return answer;
}

struct sim_table *sim_table(struct sim *sim, const char *name)
{
    for (int i = 0; i < sim->db.table_count; i++) {
        if (strcmp(sim->db.tables[i].name, name) == 0) {
            return &sim->db.tables[i];
        }
    }
    return NULL;
}

struct fgw_migrate_table *sim_shape(struct sim *sim, const char *name)
{
    struct sim_table *table = sim_table(sim, name);
    return table == NULL || table->shape == NULL ? NULL : table->shape->table;
}

static struct sim_table *make_table(struct sim *sim, const char *name)
{
    struct sim_table *table = sim_table(sim, name);
    if (table == NULL) {
        FGW_CHECK(sim->db.table_count < SIM_TABLES_MAX);
        table = &sim->db.tables[sim->db.table_count++];
        memset(table, 0, sizeof *table);
        (void)snprintf(table->name, sizeof table->name, "%s", name);
    }
    return table;
}

static void set_shape(struct sim *sim, const char *name, struct fgw_migrate_table *shape)
{
    struct sim_table *table = make_table(sim, name);
    struct sim_shape *newest = fgw_arena_zalloc(&sim->arena, sizeof *newest);
    newest->table = shape;
    newest->at_us = sim->now_us;
    newest->older = table->shape;
    table->shape = newest;
    table->readable_us = sim->unreadable ? SIM_NEVER : sim->now_us;
}

/* What a DROP takes with it. */
static void forget_rows(struct sim *sim, struct sim_table *table)
{
    struct sim_db *db = &sim->db;
    db->rows_lost += table->row_count;
    table->row_count = 0;
    if (strcmp(table->name, "schema_migrations") == 0) {
        db->mirror_count = 0;
        db->mirror_seen = false;
    } else if (strcmp(table->name, "fgw_schema_lock") == 0) {
        db->have_lock = false;
    } else if (strcmp(table->name, "fgw_schema_state") == 0) {
        db->have_state = false;
    } else if (strcmp(table->name, "fgw_schema_journal") == 0) {
        db->journal_count = 0;
    } else if (strcmp(table->name, "fgw_schema_history") == 0) {
        db->history_count = 0;
    } else if (strcmp(table->name, "fgw_schema_nodes") == 0) {
        db->node_count = 0;
    }
}

void sim_drop(struct sim *sim, const char *name)
{
    struct sim_table *table = sim_table(sim, name);
    FGW_CHECK(table != NULL);
    forget_rows(sim, table);
    sim->db.rows_lost = 0;
    set_shape(sim, name, NULL);
}

/* -- DDL ----------------------------------------------------------------------------------- */

static void put_row(struct sim *sim, const char *table_name, const struct sim_row *row);

static void insert_literal(struct sim *sim, const struct fgw_migrate_statement *statement)
{
    struct sim_row row = {.count = 0};
    size_t at = statement->tokens.count;
    while (at > 0 && !fgw_bytes_ieq_str(statement->tokens.items[at - 1].text, "values")) {
        at--;
    }
    for (size_t i = 0; i < statement->column_count; i++) {
        struct fgw_bytes value = statement->tokens.items[at + 1 + 2 * i].text;
        (void)snprintf(row.cells[i].column, sizeof row.cells[i].column, "%s",
                       statement->columns[i]);
        (void)snprintf(row.cells[i].value, sizeof row.cells[i].value, "%.*s", FGW_FMT(value));
        row.count++;
    }
    put_row(sim, statement->table, &row);
}

/* I7 and the promise that nothing with rows in it is dropped. */
static void check_drop(struct sim *sim, struct sim_table *table, int proc)
{
    if (proc < 0) {
        return;
    }
    const struct sim_proc *sender = proc < sim->proc_count ? sim->procs[proc] : NULL;
    bool again = table->drops > 0 && table->last_drop_proc != proc;
    if (sender != NULL && again &&
        sender->looked_us[table - sim->db.tables] < table->last_drop_us) {
        sim_fail(sim, "I7: %s dropped twice without a fresh look", table->name);
    }
    if (table->row_count > 0) {
        sim_fail(sim, "rows of %s dropped", table->name);
    }
    table->drops++;
    table->last_drop_us = sim->now_us;
    table->last_drop_proc = proc;
}

static struct fgw_migrate_answer apply_alter(struct sim *sim,
                                             const struct fgw_migrate_statement *statement,
                                             const struct fgw_migrate_table *have)
{
    if (have == NULL) {
        return say(FGW_MIGRATE_NOT_FOUND, -301, "Object Not Found (ql error -301)");
    }
    bool found = statement->column.name != NULL &&
                 fgw_migrate_table_find(have, statement->column.name) != NULL;
    if (statement->class == FGW_MIGRATE_ADD_COLUMN && found) {
        return say(FGW_MIGRATE_ALREADY_EXISTS, -204, "Duplicate Column (ql error -204)");
    }
    if (statement->class == FGW_MIGRATE_DROP_COLUMN && !found) {
        return say(FGW_MIGRATE_NOT_FOUND, -203, "Undefined Column (ql error -203)");
    }
    struct fgw_migrate_table *next = fgw_migrate_table_copy(&sim->arena, have);
    if (statement->class == FGW_MIGRATE_ADD_COLUMN) {
        struct fgw_migrate_column column = statement->column;
        column.name = fgw_arena_strdup(&sim->arena, fgw_bytes_str(column.name));
        column.type = fgw_arena_strdup(&sim->arena, fgw_bytes_str(column.type));
        fgw_migrate_table_add(&sim->arena, next, column);
    } else if (statement->class == FGW_MIGRATE_DROP_COLUMN) {
        fgw_migrate_table_drop(next, statement->column.name);
    } else {
        next->ttl_s = statement->ttl_s;
    }
    set_shape(sim, statement->table, next);
    return say(FGW_MIGRATE_OK, 0, "%s", "");
}

static struct fgw_migrate_answer apply_drop(struct sim *sim,
                                            const struct fgw_migrate_statement *statement,
                                            const struct fgw_migrate_table *have, int proc)
{
    if (have == NULL) {
        return statement->guarded
                   ? say(FGW_MIGRATE_OK, 0, "%s", "")
                   : say(FGW_MIGRATE_NOT_FOUND, -301, "Object Not Found (ql error -301)");
    }
    struct sim_table *table = sim_table(sim, statement->table);
    check_drop(sim, table, proc);
    forget_rows(sim, table);
    set_shape(sim, statement->table, NULL);
    return say(FGW_MIGRATE_OK, 0, "%s", "");
}

static struct fgw_migrate_answer apply_ddl(struct sim *sim, const char *text, int proc)
{
    struct fgw_migrate_statement statement;
    struct fgw_error error;
    fgw_error_init(&error);
    if (fgw_migrate_parse_text(&sim->arena, text, &error, &statement) != FGW_OK) {
        return say(FGW_MIGRATE_PERMANENT, -100, "Syntax Error: %.100s (ql error -100)",
                   fgw_error_message(&error));
    }
    if (proc >= 0 && strcmp(statement.keyspace, "ks") != 0) {
        sim_fail(sim, "statement for keyspace \"%s\": %s", statement.keyspace, text);
    }
    struct fgw_migrate_table *have = sim_shape(sim, statement.table);
    if (statement.class != FGW_MIGRATE_UPSERT && proc >= 0) {
        sim->db.ddl_applied++;
    }
    switch (statement.class) {
    case FGW_MIGRATE_CREATE_TABLE:
        if (have != NULL) {
            return statement.guarded
                       ? say(FGW_MIGRATE_OK, 0, "%s", "")
                       : say(FGW_MIGRATE_ALREADY_EXISTS, -202, "Duplicate Object (ql error -202)");
        }
        set_shape(sim, statement.table, fgw_migrate_table_copy(&sim->arena, statement.create));
        return say(FGW_MIGRATE_OK, 0, "%s", "");
    case FGW_MIGRATE_DROP_TABLE:
        return apply_drop(sim, &statement, have, proc);
    case FGW_MIGRATE_UPSERT:
        if (have == NULL) {
            return say(FGW_MIGRATE_NOT_FOUND, -301, "Object Not Found (ql error -301)");
        }
        insert_literal(sim, &statement);
        return say(FGW_MIGRATE_OK, 0, "%s", "");
    default:
        return apply_alter(sim, &statement, have);
    }
}

void sim_cql(struct sim *sim, const char *text)
{
    int before = sim->db.ddl_applied;
    struct fgw_migrate_answer answer = apply_ddl(sim, text, -1);
    if (answer.class != FGW_MIGRATE_OK) {
        sim_fail(sim, "fixture: %s: %s", text, answer.text);
    }
    sim->db.ddl_applied = before;
}

void sim_mirror(struct sim *sim, int64_t version, bool dirty)
{
    struct sim_db *db = &sim->db;
    FGW_CHECK(db->mirror_count < SIM_MIRROR_MAX);
    if (sim_shape(sim, "schema_migrations") == NULL) {
        sim_cql(sim, "CREATE TABLE schema_migrations (version bigint PRIMARY KEY, dirty boolean)");
    }
    for (int i = 0; i < db->mirror_count; i++) {
        if (db->mirror[i].version == version) {
            db->mirror[i].dirty = dirty;
            return;
        }
    }
    db->mirror[db->mirror_count++] = (struct fgw_migrate_mirror_row){version, dirty};
    db->mirror_seen = true;
}

/* -- rows ---------------------------------------------------------------------------------- */

static const char *cell_of(const struct sim_row *row, const char *column)
{
    for (int i = 0; i < row->count; i++) {
        if (strcmp(row->cells[i].column, column) == 0 && !row->cells[i].null) {
            return row->cells[i].value;
        }
    }
    return NULL;
}

static bool same_key(struct sim *sim, const char *table_name, const struct sim_row *a,
                     const struct sim_row *b)
{
    const struct fgw_migrate_table *shape = sim_shape(sim, table_name);
    for (size_t i = 0; shape != NULL && i < shape->column_count; i++) {
        const struct fgw_migrate_column *column = &shape->columns[i];
        if (column->kind != FGW_MIGRATE_PARTITION && column->kind != FGW_MIGRATE_CLUSTERING) {
            continue;
        }
        const char *x = cell_of(a, column->name);
        const char *y = cell_of(b, column->name);
        if (x == NULL || y == NULL || strcmp(x, y) != 0) {
            return false;
        }
    }
    return true;
}

static void put_row(struct sim *sim, const char *table_name, const struct sim_row *row)
{
    struct sim_table *table = sim_table(sim, table_name);
    for (int i = 0; i < table->row_count; i++) {
        if (same_key(sim, table_name, &table->rows[i], row)) {
            table->rows[i] = *row;
            return;
        }
    }
    FGW_CHECK(table->row_count < SIM_ROWS_MAX);
    table->rows[table->row_count++] = *row;
}

void sim_row(struct sim *sim, const char *table, int count, const char *const *columns,
             const char *const *values)
{
    struct sim_row row = {.count = count};
    for (int i = 0; i < count; i++) {
        (void)snprintf(row.cells[i].column, sizeof row.cells[i].column, "%s", columns[i]);
        (void)snprintf(row.cells[i].value, sizeof row.cells[i].value, "%s", values[i]);
    }
    put_row(sim, table, &row);
}

static struct fgw_migrate_answer apply_row(struct sim *sim, const struct sim_effect *effect)
{
    struct sim_table *table = sim_table(sim, effect->table);
    if (sim_shape(sim, effect->table) == NULL) {
        return say(FGW_MIGRATE_NOT_FOUND, -301, "Object Not Found (ql error -301)");
    }
    if (effect->kind == SIM_ROW_WRITE) {
        put_row(sim, effect->table, &effect->row);
    }
    for (int i = 0; effect->kind == SIM_ROW_DELETE && i < table->row_count; i++) {
        if (same_key(sim, effect->table, &table->rows[i], &effect->row)) {
            table->rows[i] = table->rows[--table->row_count];
            break;
        }
    }
    return say(FGW_MIGRATE_OK, 0, "%s", "");
}

/* -- control tables ------------------------------------------------------------------------ */

bool sim_control_usable(struct sim *sim, const char *name)
{
    const struct fgw_migrate_table *have = sim_shape(sim, name);
    static const char *const key_of[][2] = {
        {"schema_migrations", "version"},   {"fgw_schema_lock", "id"},
        {"fgw_schema_state", "id"},         {"fgw_schema_journal", "set_name"},
        {"fgw_schema_history", "set_name"}, {"fgw_schema_nodes", "node_id"}};
    for (size_t i = 0; have != NULL && i < FGW_COUNT_OF(key_of); i++) {
        if (strcmp(key_of[i][0], name) == 0) {
            const struct fgw_migrate_column *key = fgw_migrate_table_find(have, key_of[i][1]);
            return key != NULL && key->kind == FGW_MIGRATE_PARTITION;
        }
    }
    return false;
}

/* I2: one owner per epoch, and the epoch never falls. */
static void check_epoch(struct sim *sim, const struct fgw_migrate_lock_row *next)
{
    if (fgw_migrate_uuid_nil(&next->owner)) {
        return;
    }
    if (!sim->tampered && next->epoch < sim->db.lock.epoch) {
        sim_fail(sim, "I2: epoch fell from %" PRId64 " to %" PRId64, sim->db.lock.epoch,
                 next->epoch);
    }
    for (int i = 0; i < sim->epoch_count; i++) {
        if (sim->epochs[i].epoch == next->epoch &&
            !fgw_migrate_uuid_eq(&sim->epochs[i].owner, &next->owner) && !sim->tampered) {
            sim_fail(sim, "I2: two holders of epoch %" PRId64, next->epoch);
        }
    }
    if (sim->epoch_count < (int)FGW_COUNT_OF(sim->epochs)) {
        sim->epochs[sim->epoch_count].epoch = next->epoch;
        sim->epochs[sim->epoch_count++].owner = next->owner;
    }
}

static bool update_lock(struct sim *sim, const struct sim_effect *effect)
{
    struct fgw_migrate_lock_row *row = &sim->db.lock;
    const struct fgw_migrate_lock_row *seen = &effect->lock_seen;
    if (!sim->db.have_lock || !fgw_migrate_uuid_eq(&row->owner, &seen->owner) ||
        row->epoch != seen->epoch || row->hb != seen->hb) {
        return false;
    }
    struct fgw_migrate_lock_row next = *row;
    const struct fgw_migrate_lock_row *given = &effect->lock;
    if (effect->set & FGW_MIGRATE_SET_HOLDER) {
        next.owner = given->owner;
        next.epoch = given->epoch;
        next.lease_ms = given->lease_ms;
        next.target = given->target;
        next.at_ms = given->at_ms;
        memcpy(next.owner_desc, given->owner_desc, sizeof next.owner_desc);
        memcpy(next.build, given->build, sizeof next.build);
        check_epoch(sim, &next);
        sim->holder = fgw_migrate_uuid_nil(&next.owner) ? -1 : effect->proc;
    }
    if (effect->set & FGW_MIGRATE_SET_HB) {
        next.hb = given->hb;
    }
    if (effect->set & FGW_MIGRATE_SET_INTENT) {
        next.i_version = given->i_version;
        next.i_stmt = given->i_stmt;
        next.i_phase = given->i_phase;
        memcpy(next.i_sha, given->i_sha, sizeof next.i_sha);
    }
    *row = next;
    return true;
}

/* I3: evidence is never replaced by an older epoch's. */
static void check_fence(struct sim *sim, int64_t have, int64_t next, const char *what)
{
    if (next < have && !sim->tampered) {
        sim_fail(sim, "I3: %s of epoch %" PRId64 " replaced by epoch %" PRId64, what, have, next);
    }
}

static bool write_state(struct sim *sim, const struct sim_effect *effect)
{
    struct sim_db *db = &sim->db;
    if (effect->kind == SIM_STATE_INSERT) {
        bool free = !db->have_state;
        db->state = free ? effect->state : db->state;
        db->have_state = true;
        return free;
    }
    if (!db->have_state || db->state.epoch != effect->state_seen.epoch ||
        db->state.version != effect->state_seen.version) {
        return false;
    }
    check_fence(sim, db->state.epoch, effect->state.epoch, "state");
    if (effect->state.version < db->state.version && !sim->tampered) {
        sim_fail(sim, "version fell from %" PRId64 " to %" PRId64, db->state.version,
                 effect->state.version);
    }
    db->state = effect->state;
    return true;
}

static bool write_journal(struct sim *sim, const struct sim_effect *effect)
{
    struct sim_db *db = &sim->db;
    struct fgw_migrate_journal_row *row = NULL;
    for (int i = 0; i < db->journal_count; i++) {
        bool same = db->journal[i].version == effect->journal.version &&
                    db->journal[i].stmt == effect->journal.stmt;
        row = same ? &db->journal[i] : row;
    }
    if (effect->kind == SIM_JOURNAL_INSERT) {
        if (row != NULL) {
            return false;
        }
        FGW_CHECK(db->journal_count < SIM_JOURNAL_MAX);
        db->journal[db->journal_count++] = effect->journal;
        return true;
    }
    if (row == NULL || row->epoch != effect->journal_seen.epoch ||
        row->state != effect->journal_seen.state) {
        return false;
    }
    check_fence(sim, row->epoch, effect->journal.epoch, "journal");
    *row = effect->journal;
    return true;
}

static bool write_mirror(struct sim *sim, const struct sim_effect *effect)
{
    struct sim_db *db = &sim->db;
    int at = -1;
    for (int i = 0; i < db->mirror_count; i++) {
        at = db->mirror[i].version == effect->mirror.version ? i : at;
    }
    bool applied = false;
    if (effect->kind == SIM_MIRROR_INSERT && at < 0) {
        FGW_CHECK(db->mirror_count < SIM_MIRROR_MAX);
        db->mirror[db->mirror_count++] = effect->mirror;
        db->mirror_seen = applied = true;
    } else if (effect->kind == SIM_MIRROR_UPDATE && at >= 0 &&
               db->mirror[at].dirty != effect->mirror.dirty) {
        db->mirror[at].dirty = effect->mirror.dirty;
        applied = true;
    } else if (effect->kind == SIM_MIRROR_DELETE && at >= 0) {
        db->mirror[at] = db->mirror[--db->mirror_count];
        applied = true;
    }
    if (db->mirror_seen && db->mirror_count == 0) {
        sim_fail(sim, "I4: the mirror is empty");
    }
    return applied;
}

static void write_history(struct sim *sim, const struct sim_effect *effect)
{
    struct sim_db *db = &sim->db;
    for (int i = 0; i < db->history_count; i++) {
        if (fgw_migrate_uuid_eq(&db->history[i].id, &effect->history.id)) {
            return;
        }
    }
    FGW_CHECK(db->history_count < SIM_HISTORY_MAX);
    db->history[db->history_count++] = effect->history;
}

static void write_node(struct sim *sim, const struct sim_effect *effect)
{
    struct sim_db *db = &sim->db;
    int at = 0;
    while (at < db->node_count && strcmp(db->nodes[at].node_id, effect->node.node_id) != 0) {
        at++;
    }
    FGW_CHECK(at < SIM_NODES_MAX);
    db->nodes[at] = effect->node;
    db->node_count = at == db->node_count ? at + 1 : db->node_count;
}

static const char *control_of(enum sim_effect_kind kind)
{
    switch (kind) {
    case SIM_LOCK_INSERT:
    case SIM_LOCK_UPDATE:
        return "fgw_schema_lock";
    case SIM_STATE_INSERT:
    case SIM_STATE_UPDATE:
        return "fgw_schema_state";
    case SIM_JOURNAL_INSERT:
    case SIM_JOURNAL_UPDATE:
        return "fgw_schema_journal";
    case SIM_HISTORY:
        return "fgw_schema_history";
    case SIM_NODE:
        return "fgw_schema_nodes";
    case SIM_MIRROR_INSERT:
    case SIM_MIRROR_UPDATE:
    case SIM_MIRROR_DELETE:
        return "schema_migrations";
    default:
        return NULL;
    }
}

static bool write_control(struct sim *sim, const struct sim_effect *effect)
{
    switch (effect->kind) {
    case SIM_LOCK_INSERT: {
        bool free = !sim->db.have_lock;
        sim->db.lock = free ? effect->lock : sim->db.lock;
        sim->db.have_lock = true;
        return free;
    }
    case SIM_LOCK_UPDATE:
        return update_lock(sim, effect);
    case SIM_STATE_INSERT:
    case SIM_STATE_UPDATE:
        return write_state(sim, effect);
    case SIM_JOURNAL_INSERT:
    case SIM_JOURNAL_UPDATE:
        return write_journal(sim, effect);
    case SIM_HISTORY:
        write_history(sim, effect);
        return true;
    case SIM_NODE:
        write_node(sim, effect);
        return true;
    default:
        return write_mirror(sim, effect);
    }
}

struct fgw_migrate_answer sim_apply(struct sim *sim, const struct sim_effect *effect,
                                    bool *out_applied)
{
    *out_applied = false;
    const char *control = control_of(effect->kind);
    if (!sim->db.exists && effect->kind != SIM_KEYSPACE) {
        return say(FGW_MIGRATE_NOT_FOUND, -308, "Keyspace Not Found (ql error -308)");
    }
    if (sim->read_only || (control != NULL && sim->deny_control) ||
        ((effect->kind == SIM_DDL || effect->kind == SIM_KEYSPACE) && sim->deny_ddl)) {
        return say(FGW_MIGRATE_AUTH, -4, "Unauthorized (ql error -4)");
    }
    if (control != NULL && !sim_control_usable(sim, control)) {
        return sim_shape(sim, control) == NULL
                   ? say(FGW_MIGRATE_NOT_FOUND, -301, "Object Not Found (ql error -301)")
                   : say(FGW_MIGRATE_PERMANENT, -203, "Undefined Column (ql error -203)");
    }
    if (effect->kind == SIM_KEYSPACE) {
        sim->db.exists = true;
    } else if (effect->kind == SIM_DDL) {
        return sim->never_visible ? say(FGW_MIGRATE_OK, 0, "%s", "")
                                  : apply_ddl(sim, effect->text, effect->proc);
    } else if (effect->kind == SIM_ROW_WRITE || effect->kind == SIM_ROW_DELETE) {
        return apply_row(sim, effect);
    } else {
        *out_applied = write_control(sim, effect);
    }
    return say(FGW_MIGRATE_OK, 0, "%s", "");
}
