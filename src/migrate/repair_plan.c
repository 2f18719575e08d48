/* repair_plan.c: findings into steps (spec/migrations.md E2.7, E2.10). Reads only. A table of the
 * wrong key cannot be altered: empty, it is dropped and made again; with rows, they are moved to a
 * saved copy of the same shape first, and those that fit are copied back. */
#include "base/check.h"
#include "migrate/repair.h"

static struct fgw_migrate_action *add(struct fgw_migrate_engine *e,
                                      struct fgw_migrate_actions *actions,
                                      enum fgw_migrate_action_kind kind, const char *text)
{
    if (actions->count == actions->cap) {
        size_t cap = actions->cap == 0 ? 32 : 2 * actions->cap;
        struct fgw_migrate_action *grown = fgw_arena_alloc(e->arena, cap * sizeof *grown);
        if (actions->count > 0) {
            memcpy(grown, actions->items, actions->count * sizeof *grown);
        }
        actions->items = grown;
        actions->cap = cap;
    }
    struct fgw_migrate_action *action = &actions->items[actions->count++];
    *action = (struct fgw_migrate_action){.kind = kind, .text = text};
    return action;
}

static int lowest_stmt(const struct fgw_migrate_engine *e)
{
    int lowest = 0;
    for (size_t i = 0; i < e->now.journal_count; i++) {
        lowest = e->now.journal[i].stmt < lowest ? e->now.journal[i].stmt : lowest;
    }
    return lowest;
}

/* A statement made here, dressed as a step so that the statement protocol runs it. */
static void add_ddl(struct fgw_migrate_engine *e, struct fgw_migrate_actions *actions,
                    int64_t version, const char *cql)
{
    struct fgw_migrate_file *file = fgw_arena_zalloc(e->arena, sizeof *file);
    struct fgw_migrate_step *step = fgw_arena_zalloc(e->arena, sizeof *step);
    file->version = version;
    file->name = "repair";
    file->steps = step;
    file->step_count = 1;
    step->file = file;
    step->number = --actions->next_stmt;
    FGW_CHECK(fgw_migrate_parse_text(e->arena, cql, NULL, &step->statement) == FGW_OK);
    struct fgw_migrate_action *action = add(e, actions, FGW_MIGRATE_ACT_DDL, cql);
    action->step = step;
    action->drops = step->statement.class == FGW_MIGRATE_DROP_TABLE;
    actions->drops = actions->drops || action->drops;
}

static void reopen(struct fgw_migrate_engine *e, struct fgw_migrate_actions *actions,
                   const struct fgw_migrate_step *step)
{
    struct fgw_migrate_action *action =
        add(e, actions, FGW_MIGRATE_ACT_REOPEN,
            fgw_arena_printf(e->arena, "run again: %s", fgw_migrate_step_text(e, step)));
    action->step = step;
}

static bool counts(const struct fgw_migrate_engine *e, const struct fgw_migrate_step *step)
{
    enum fgw_migrate_progress progress = e->progress[fgw_migrate_step_index(e, step)];
    return progress == FGW_MIGRATE_STEP_RECORDED || progress == FGW_MIGRATE_STEP_ADOPT;
}

/* The table as the recorded steps should have left it; the CREATE counts as soon as a table of
 * that name is there. NULL: nothing to hold it against. */
static struct fgw_migrate_table *wanted(struct fgw_migrate_engine *e, const char *name,
                                        const struct fgw_migrate_step **out_maker)
{
    struct fgw_migrate_catalog model;
    fgw_migrate_catalog_init(&model, e->arena);
    bool there = fgw_migrate_catalog_find(&e->now.catalog, name) != NULL;
    for (size_t i = 0; i < e->set->file_count; i++) {
        for (int k = 0; k < e->set->files[i].step_count; k++) {
            const struct fgw_migrate_step *step = &e->set->files[i].steps[k];
            bool creates = step->statement.class == FGW_MIGRATE_CREATE_TABLE;
            if (strcmp(step->statement.table, name) != 0 ||
                !(counts(e, step) || (creates && there))) {
                continue;
            }
            *out_maker = creates ? step : *out_maker;
            if (fgw_migrate_apply(&model, &step->statement, NULL) != FGW_OK) {
                return NULL;
            }
        }
    }
    return fgw_migrate_catalog_find(&model, name);
}

static struct fgw_migrate_finding *shape_finding(struct fgw_migrate_engine *e,
                                                 const struct fgw_migrate_step *maker,
                                                 const struct fgw_migrate_diff *diff,
                                                 const char *cause)
{
    bool absent = diff->missing_table || (diff->missing_count > 0 && !diff->key && !diff->type);
    struct fgw_migrate_finding *finding = fgw_migrate_find(
        e, absent ? FGW_MIGRATE_NOT_PRESENT : FGW_MIGRATE_SHAPE_CONFLICT, FGW_MIGRATE_ERROR);
    finding->object = maker->statement.table;
    finding->step = fgw_migrate_step_text(e, maker);
    finding->diff = diff->text;
    finding->cause = cause;
    return finding;
}

static void reopen_all(struct fgw_migrate_engine *e, struct fgw_migrate_actions *actions,
                       const char *name)
{
    for (size_t i = 0; i < e->set->file_count; i++) {
        for (int k = 0; k < e->set->files[i].step_count; k++) {
            const struct fgw_migrate_step *step = &e->set->files[i].steps[k];
            bool upsert = step->statement.class == FGW_MIGRATE_UPSERT;
            if (strcmp(step->statement.table, name) == 0 && counts(e, step) && !upsert) {
                reopen(e, actions, step);
            }
        }
    }
}

/* "name_saved_1", or the first number whose table has this very shape already: a repair that was
 * killed goes on with it. */
static struct fgw_migrate_table *saved_table(struct fgw_migrate_engine *e,
                                             const struct fgw_migrate_table *have, bool *out_exists)
{
    struct fgw_migrate_table *saved = fgw_migrate_table_copy(e->arena, have);
    for (int n = 1;; n++) {
        saved->name = fgw_arena_printf(e->arena, "%s_saved_%d", have->name, n);
        const struct fgw_migrate_table *found =
            fgw_migrate_catalog_find(&e->now.catalog, saved->name);
        struct fgw_migrate_diff diff;
        fgw_migrate_table_compare(e->arena, saved, found, &diff);
        if (diff.missing_table || diff.equal) {
            *out_exists = diff.equal;
            return saved;
        }
    }
}

static enum fgw_migrate_exit has_rows(struct fgw_migrate_engine *e,
                                      const struct fgw_migrate_table *table, bool *out_rows)
{
    struct fgw_migrate_answer answer = {.class = FGW_MIGRATE_UNKNOWN};
    for (int i = 0; i < 20; i++) {
        answer = e->ops->probe(e->context, e->keyspace, table, out_rows);
        if (!fgw_migrate_transient(&answer)) {
            break;
        }
        fgw_migrate_sleep_about(e, e->options.timing.poll_ms);
    }
    return answer.class == FGW_MIGRATE_OK ? FGW_MIGRATE_EXIT_OK
                                          : fgw_migrate_refused(e, "reading a table", &answer);
}

static enum fgw_migrate_exit plan_replace(struct fgw_migrate_engine *e,
                                          struct fgw_migrate_actions *actions,
                                          const struct fgw_migrate_step *maker,
                                          const struct fgw_migrate_table *have,
                                          const struct fgw_migrate_diff *diff)
{
    bool rows = true;
    enum fgw_migrate_exit exit = has_rows(e, have, &rows);
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    struct fgw_migrate_finding *finding = shape_finding(
        e, maker, diff,
        rows ? "table has rows: they are moved, none is dropped" : "table has no rows");
    finding->next = fgw_migrate_command(e, "repair --apply --allow-drop-empty");
    if (rows) {
        bool exists;
        struct fgw_migrate_table *saved = saved_table(e, have, &exists);
        if (!exists) {
            add_ddl(e, actions, maker->file->version,
                    fgw_migrate_table_cql(e->arena, e->keyspace, saved));
        }
        struct fgw_migrate_action *move =
            add(e, actions, FGW_MIGRATE_ACT_MOVE,
                fgw_arena_printf(e->arena,
                                 "move the rows of %s to %s, one by one, each read back"
                                 " before it is removed",
                                 have->name, saved->name));
        move->from = have;
        move->to = saved;
    }
    add_ddl(e, actions, maker->file->version,
            fgw_arena_printf(e->arena, "DROP TABLE %s.%s", e->keyspace, have->name));
    reopen_all(e, actions, have->name);
    return FGW_MIGRATE_EXIT_OK;
}

static const struct fgw_migrate_step *adder_of(const struct fgw_migrate_engine *e,
                                               const char *table, const char *column)
{
    for (size_t i = 0; i < e->set->file_count; i++) {
        for (int k = 0; k < e->set->files[i].step_count; k++) {
            const struct fgw_migrate_step *step = &e->set->files[i].steps[k];
            if (step->statement.class == FGW_MIGRATE_ADD_COLUMN &&
                strcmp(step->statement.table, table) == 0 &&
                strcmp(step->statement.column.name, column) == 0) {
                return step;
            }
        }
    }
    return NULL;
}

static void add_column_ddl(struct fgw_migrate_engine *e, struct fgw_migrate_actions *actions,
                           int64_t version, const char *table,
                           const struct fgw_migrate_column *column)
{
    add_ddl(e, actions, version,
            fgw_arena_printf(e->arena, "ALTER TABLE %s.%s ADD %s %s", e->keyspace, table,
                             column->name, column->type));
}

static void plan_alter(struct fgw_migrate_engine *e, struct fgw_migrate_actions *actions,
                       const struct fgw_migrate_step *maker, const struct fgw_migrate_table *want,
                       const struct fgw_migrate_table *have, const struct fgw_migrate_diff *diff)
{
    struct fgw_migrate_finding *finding =
        shape_finding(e, maker, diff, "changed outside the migrations, or made by an earlier text");
    finding->next = fgw_migrate_command(e, "repair --apply");
    for (size_t i = 0; i < diff->missing_count; i++) {
        const struct fgw_migrate_step *adder = adder_of(e, want->name, diff->missing[i]->name);
        if (adder != NULL) {
            reopen(e, actions, adder);
        } else {
            add_column_ddl(e, actions, maker->file->version, want->name, diff->missing[i]);
        }
    }
    if (want->ttl_s != have->ttl_s) {
        add_ddl(e, actions, maker->file->version,
                fgw_arena_printf(e->arena, "ALTER TABLE %s.%s WITH default_time_to_live = %" PRId64,
                                 e->keyspace, want->name, want->ttl_s));
    }
}

static void add_copy_back(struct fgw_migrate_engine *e, struct fgw_migrate_actions *actions,
                          const struct fgw_migrate_step *maker,
                          const struct fgw_migrate_table *from, const struct fgw_migrate_table *to)
{
    struct fgw_migrate_action *copy =
        add(e, actions, FGW_MIGRATE_ACT_COPY_BACK,
            fgw_arena_printf(e->arena, "copy the rows of %s that fit and are not there back to %s",
                             from->name, to->name));
    copy->version = maker->file->version;
    copy->stmt = --actions->next_stmt;
    copy->from = from;
    copy->to = to;
}

/* Of copies that an earlier repair saved and did not bring back, and of the one planned here. */
static void plan_copy_back(struct fgw_migrate_engine *e, struct fgw_migrate_actions *actions,
                           const struct fgw_migrate_step *maker, const struct fgw_migrate_table *to)
{
    const char *prefix = fgw_arena_printf(e->arena, "%s_saved_", to->name);
    const struct fgw_migrate_table *planned = NULL;
    for (size_t i = 0; i < actions->count; i++) {
        const struct fgw_migrate_action *action = &actions->items[i];
        if (action->kind == FGW_MIGRATE_ACT_MOVE && strcmp(action->from->name, to->name) == 0) {
            planned = action->to;
        }
    }
    if (planned != NULL) {
        add_copy_back(e, actions, maker, planned, to);
    }
    for (size_t i = 0; i < e->now.catalog.table_count; i++) {
        const struct fgw_migrate_table *table = e->now.catalog.tables[i];
        bool again = planned != NULL && strcmp(planned->name, table->name) == 0;
        if (strncmp(table->name, prefix, strlen(prefix)) == 0 && !again &&
            !fgw_migrate_copied_back(e, table->name)) {
            add_copy_back(e, actions, maker, table, to);
        }
    }
}

static enum fgw_migrate_exit plan_table(struct fgw_migrate_engine *e,
                                        struct fgw_migrate_actions *actions,
                                        const struct fgw_migrate_step *create)
{
    const char *name = create->statement.table;
    const struct fgw_migrate_step *maker = NULL;
    struct fgw_migrate_table *want = wanted(e, name, &maker);
    if (want == NULL || maker == NULL) {
        plan_copy_back(e, actions, create, create->statement.create);
        return FGW_MIGRATE_EXIT_OK;
    }
    struct fgw_migrate_table *have = fgw_migrate_catalog_find(&e->now.catalog, name);
    struct fgw_migrate_diff diff;
    fgw_migrate_table_compare(e->arena, want, have, &diff);
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    bool whole = !diff.key && !diff.type && !diff.options && diff.missing_count == 0;
    if (diff.missing_table) {
        shape_finding(e, maker, &diff, "dropped outside the migrations")->next =
            fgw_migrate_command(e, "repair --apply");
        reopen_all(e, actions, name);
    } else if (diff.key || diff.type || (have->transactional && !want->transactional)) {
        exit = plan_replace(e, actions, maker, have, &diff);
    } else if (!whole) {
        plan_alter(e, actions, maker, want, have, &diff);
    }
    plan_copy_back(e, actions, maker, want);
    return exit;
}

static void plan_legacy(struct fgw_migrate_engine *e, struct fgw_migrate_actions *actions)
{
    size_t count;
    const struct fgw_migrate_legacy *tables = fgw_migrate_legacy_tables(&count);
    for (size_t i = 0; i < count; i++) {
        struct fgw_migrate_statement statement;
        FGW_CHECK(fgw_migrate_parse_text(e->arena, tables[i].create, NULL, &statement) == FGW_OK);
        bool ours = false;
        for (size_t k = 0; k < e->set->file_count; k++) {
            ours = ours || e->set->files[k].version == tables[i].version;
        }
        const struct fgw_migrate_table *have =
            fgw_migrate_catalog_find(&e->now.catalog, statement.table);
        struct fgw_migrate_diff diff;
        fgw_migrate_table_compare(e->arena, statement.create, have, &diff);
        bool addable = !ours && have != NULL && !diff.key && !diff.type;
        for (size_t k = 0; addable && k < diff.missing_count; k++) {
            add_column_ddl(e, actions, tables[i].version, statement.table, diff.missing[k]);
        }
    }
}

/* -- evidence ------------------------------------------------------------------------------ */

static void plan_journal(struct fgw_migrate_engine *e, struct fgw_migrate_actions *actions)
{
    for (size_t i = 0; i < e->now.journal_count; i++) {
        const struct fgw_migrate_journal_row *row = &e->now.journal[i];
        const struct fgw_migrate_file *file = fgw_migrate_set_file(e->set, row->version);
        if (!fgw_migrate_recorded(row) || row->stmt < 0) {
            continue;
        }
        bool unknown = file == NULL ? row->version <= e->set->knows : row->stmt > file->step_count;
        if (unknown) {
            struct fgw_migrate_action *action =
                add(e, actions, FGW_MIGRATE_ACT_DISOWN,
                    fgw_arena_printf(e->arena,
                                     "mark %s/%" PRId64 " statement %d as not of this"
                                     " build",
                                     e->set->name, row->version, row->stmt));
            action->version = row->version;
            action->stmt = row->stmt;
            actions->needs_adopt = actions->needs_adopt || file == NULL;
        } else if (file != NULL &&
                   strcmp(row->sha, file->steps[row->stmt - 1].statement.sha) != 0) {
            const struct fgw_migrate_step *step = &file->steps[row->stmt - 1];
            struct fgw_migrate_action *action =
                add(e, actions, FGW_MIGRATE_ACT_RECORD,
                    fgw_arena_printf(e->arena,
                                     "record the present text of %s; its shape is held"
                                     " against the catalog",
                                     fgw_migrate_step_text(e, step)));
            action->step = step;
        }
    }
}

static void plan_intent(struct fgw_migrate_engine *e, struct fgw_migrate_actions *actions)
{
    const struct fgw_migrate_lock_row *lock = &e->now.lock;
    bool alive = !e->lease.held && !fgw_migrate_uuid_nil(&lock->owner);
    if (e->now.have_lock && lock->i_phase != FGW_MIGRATE_INTENT_NONE && !alive) {
        (void)add(e, actions, FGW_MIGRATE_ACT_CLEAR_INTENT,
                  fgw_arena_printf(e->arena,
                                   "clear the unfinished intent at %s/%" PRId64
                                   " statement %d; the catalog tells what became of it",
                                   e->set->name, lock->i_version, lock->i_stmt));
    }
}

enum fgw_migrate_exit fgw_migrate_plan_repair(struct fgw_migrate_engine *e,
                                              struct fgw_migrate_actions *out_actions)
{
    out_actions->next_stmt = lowest_stmt(e);
    plan_intent(e, out_actions);
    plan_journal(e, out_actions);
    for (size_t i = 0; i < e->set->file_count; i++) {
        for (int k = 0; k < e->set->files[i].step_count; k++) {
            const struct fgw_migrate_step *step = &e->set->files[i].steps[k];
            if (step->statement.class != FGW_MIGRATE_CREATE_TABLE) {
                continue;
            }
            enum fgw_migrate_exit exit = plan_table(e, out_actions, step);
            if (exit != FGW_MIGRATE_EXIT_OK) {
                return exit;
            }
        }
    }
    plan_legacy(e, out_actions);
    return FGW_MIGRATE_EXIT_OK;
}
