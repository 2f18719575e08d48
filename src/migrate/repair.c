/* repair.c: `repair`: shows what is wrong and what would be done; with --apply does it, under the
 * lock, each statement journaled, and ends with the steps of `up` and a verification. */
#include "migrate/repair.h"

#include "base/check.h"

enum { PAGE_ROWS = 50 };

/* -- rows ---------------------------------------------------------------------------------- */

/* Repeats an idempotent row operation. */
static enum fgw_migrate_exit settle(struct fgw_migrate_engine *e, const char *what,
                                    const struct fgw_migrate_answer *answer, int *attempt)
{
    bool again = (fgw_migrate_transient(answer) || answer->class == FGW_MIGRATE_NOT_FOUND) &&
                 ++*attempt < 100;
    if (!again) {
        return fgw_migrate_refused(e, what, answer);
    }
    enum fgw_migrate_exit exit = fgw_migrate_held(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        fgw_migrate_sleep_about(e, e->options.timing.poll_ms);
    }
    return exit;
}

static enum fgw_migrate_exit write_row(struct fgw_migrate_engine *e,
                                       const struct fgw_migrate_table *to,
                                       const struct fgw_bytes *cells)
{
    int attempt = 0;
    for (;;) {
        enum fgw_migrate_exit exit = fgw_migrate_held(e);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        bool there = false;
        struct fgw_migrate_answer answer = e->ops->row_write(e->context, e->keyspace, to, cells);
        if (answer.class == FGW_MIGRATE_OK) {
            answer = e->ops->row_check(e->context, e->keyspace, to, cells, &there);
        }
        if (answer.class == FGW_MIGRATE_OK && there) {
            return FGW_MIGRATE_EXIT_OK;
        }
        if (answer.class == FGW_MIGRATE_OK) {
            answer.class = FGW_MIGRATE_UNKNOWN;
        }
        exit = settle(e, "copying a row", &answer, &attempt);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

static enum fgw_migrate_exit remove_row(struct fgw_migrate_engine *e,
                                        const struct fgw_migrate_table *from,
                                        const struct fgw_bytes *cells)
{
    int attempt = 0;
    for (;;) {
        enum fgw_migrate_exit exit = fgw_migrate_held(e);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        struct fgw_migrate_answer answer = e->ops->row_delete(e->context, e->keyspace, from, cells);
        if (answer.class == FGW_MIGRATE_OK) {
            return FGW_MIGRATE_EXIT_OK;
        }
        exit = settle(e, "removing a moved row", &answer, &attempt);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

/* A walk over a table, page by page; memory of a page lasts until the next. */
struct walk {
    const struct fgw_migrate_table *table;
    struct fgw_bytes cursor;
    bool over;
    struct fgw_migrate_cells *rows;
    size_t count;
};

static enum fgw_migrate_exit next_page(struct fgw_migrate_engine *e, struct walk *walk)
{
    struct fgw_bytes from = fgw_arena_copy(e->arena, walk->cursor);
    int attempt = 0;
    for (;;) {
        fgw_arena_reset(e->scratch);
        walk->cursor = from;
        struct fgw_migrate_answer answer =
            e->ops->rows_read(e->context, e->keyspace, walk->table, PAGE_ROWS, &walk->cursor,
                              e->scratch, &walk->rows, &walk->count);
        if (answer.class == FGW_MIGRATE_OK) {
            walk->over = walk->cursor.len == 0;
            return FGW_MIGRATE_EXIT_OK;
        }
        enum fgw_migrate_exit exit = settle(e, "reading rows", &answer, &attempt);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

static enum fgw_migrate_exit move_page(struct fgw_migrate_engine *e,
                                       const struct fgw_migrate_action *action,
                                       const struct walk *walk)
{
    fgw_migrate_point(e, FGW_MIGRATE_AT_MOVE);
    for (size_t i = 0; i < walk->count; i++) {
        enum fgw_migrate_exit exit = write_row(e, action->to, walk->rows[i].cells);
        if (exit == FGW_MIGRATE_EXIT_OK) {
            exit = remove_row(e, action->from, walk->rows[i].cells);
        }
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
    return FGW_MIGRATE_EXIT_OK;
}

/* Passes over the source until one finds nothing: it shrinks as it goes, so a run that is killed
 * goes on where it was, and a row written meanwhile is moved too. */
static enum fgw_migrate_exit move_rows(struct fgw_migrate_engine *e,
                                       const struct fgw_migrate_action *action)
{
    size_t moved = 0;
    for (;;) {
        struct walk walk = {.table = action->from};
        size_t before = moved;
        while (!walk.over) {
            enum fgw_migrate_exit exit = next_page(e, &walk);
            if (exit == FGW_MIGRATE_EXIT_OK) {
                exit = move_page(e, action, &walk);
            }
            if (exit != FGW_MIGRATE_EXIT_OK) {
                return exit;
            }
            moved += walk.count;
        }
        if (moved == before) {
            fgw_migrate_logf(e, FGW_MIGRATE_LOG_INFO, "%zu rows of %s moved to %s", moved,
                             action->from->name, action->to->name);
            return FGW_MIGRATE_EXIT_OK;
        }
    }
}

static bool is_key(const struct fgw_migrate_column *column)
{
    return column->kind == FGW_MIGRATE_PARTITION || column->kind == FGW_MIGRATE_CLUSTERING;
}

/* Cells of `from` laid out for `to`; false when a key column has no value. key_only: no others. */
static bool lay_out(const struct fgw_migrate_table *from, const struct fgw_bytes *cells,
                    const struct fgw_migrate_table *to, bool key_only, struct fgw_bytes *out_cells)
{
    for (size_t i = 0; i < to->column_count; i++) {
        const struct fgw_migrate_column *want = &to->columns[i];
        const struct fgw_migrate_column *have = fgw_migrate_table_find(from, want->name);
        bool fits = have != NULL && strcmp(have->type, want->type) == 0;
        out_cells[i] = fgw_bytes(NULL, 0);
        if (fits && (is_key(want) || !key_only)) {
            out_cells[i] = cells[have - from->columns];
        }
        if (is_key(want) && out_cells[i].ptr == NULL) {
            return false;
        }
    }
    return true;
}

/* A row that is there already is newer than the copy: it stays. */
static enum fgw_migrate_exit copy_row(struct fgw_migrate_engine *e,
                                      const struct fgw_migrate_action *action,
                                      const struct fgw_bytes *cells, size_t *fitted)
{
    size_t size = (action->to->column_count + 1) * sizeof(struct fgw_bytes);
    struct fgw_bytes *laid = fgw_arena_alloc(e->scratch, size);
    if (!lay_out(action->from, cells, action->to, true, laid)) {
        return FGW_MIGRATE_EXIT_OK;
    }
    *fitted += 1;
    int attempt = 0;
    bool there = false;
    for (;;) {
        struct fgw_migrate_answer answer =
            e->ops->row_check(e->context, e->keyspace, action->to, laid, &there);
        if (answer.class == FGW_MIGRATE_OK) {
            break;
        }
        enum fgw_migrate_exit exit = settle(e, "reading rows", &answer, &attempt);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
    (void)lay_out(action->from, cells, action->to, false, laid);
    return there ? FGW_MIGRATE_EXIT_OK : write_row(e, action->to, laid);
}

static enum fgw_migrate_exit copy_back(struct fgw_migrate_engine *e,
                                       const struct fgw_migrate_action *action)
{
    struct walk walk = {.table = action->from};
    size_t count = 0;
    size_t fitted = 0;
    while (!walk.over) {
        enum fgw_migrate_exit exit = next_page(e, &walk);
        for (size_t i = 0; exit == FGW_MIGRATE_EXIT_OK && i < walk.count; i++) {
            exit = copy_row(e, action, walk.rows[i].cells, &fitted);
        }
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        count += walk.count;
    }
    fgw_migrate_note(e, "%zu of %zu rows kept in %s are in %s as well; the rest lack a key column",
                     fitted, count, action->from->name, action->to->name);
    struct fgw_migrate_journal_row row = {.version = action->version,
                                          .stmt = action->stmt,
                                          .state = FGW_MIGRATE_STEP_DONE,
                                          .started_ms = e->ops->now_wall_ms(e->context),
                                          .finished_ms = e->ops->now_wall_ms(e->context),
                                          .attempts = 1};
    fgw_migrate_copy_sha(e, action->from->name, row.sha);
    fgw_migrate_copy_text(row.how, sizeof row.how, "copied");
    return fgw_migrate_put_journal(e, &row);
}

/* -- evidence ------------------------------------------------------------------------------ */

static enum fgw_migrate_exit mark(struct fgw_migrate_engine *e, int64_t version, int stmt,
                                  enum fgw_migrate_step_state state, const char *sha)
{
    const struct fgw_migrate_journal_row *known = fgw_migrate_journal_of(e, version, stmt);
    struct fgw_migrate_journal_row row = *known;
    row.state = state;
    row.attempts++;
    row.finished_ms = e->ops->now_wall_ms(e->context);
    fgw_migrate_copy_text(row.sha, sizeof row.sha, sha);
    fgw_migrate_copy_text(row.how, sizeof row.how, "repaired");
    return fgw_migrate_put_journal(e, &row);
}

/* The new text stands if the catalog bears it out; otherwise the step is open again. */
static enum fgw_migrate_exit record_text(struct fgw_migrate_engine *e,
                                         const struct fgw_migrate_step *step)
{
    const char *diff;
    bool upsert = step->statement.class == FGW_MIGRATE_UPSERT;
    const struct fgw_migrate_table *have =
        fgw_migrate_catalog_find(&e->now.catalog, step->statement.table);
    bool holds = fgw_migrate_inspect(e, step, have, &diff) == FGW_MIGRATE_SATISFIED;
    return mark(e, step->file->version, step->number,
                holds && !upsert ? FGW_MIGRATE_STEP_RECONCILED : FGW_MIGRATE_STEP_FAILED,
                step->statement.sha);
}

static enum fgw_migrate_exit perform(struct fgw_migrate_engine *e,
                                     const struct fgw_migrate_action *action)
{
    switch (action->kind) {
    case FGW_MIGRATE_ACT_CLEAR_INTENT:
        return fgw_migrate_set_intent(e, e->lease.row.i_version, e->lease.row.i_stmt,
                                      e->lease.row.i_sha, FGW_MIGRATE_INTENT_NONE);
    case FGW_MIGRATE_ACT_RECORD:
        return record_text(e, action->step);
    case FGW_MIGRATE_ACT_DISOWN:
        return mark(e, action->version, action->stmt, FGW_MIGRATE_STEP_FAILED, "");
    case FGW_MIGRATE_ACT_DDL:
        return fgw_migrate_run_step(e, action->step, "repaired");
    case FGW_MIGRATE_ACT_MOVE:
        return move_rows(e, action);
    default:
        return FGW_MIGRATE_EXIT_OK;
    }
}

/* -- the control tables themselves ---------------------------------------------------------- */

static const char *control_cure(struct fgw_migrate_engine *e,
                                const struct fgw_migrate_statement *want,
                                const struct fgw_migrate_diff *diff)
{
    if (diff->key || diff->type) {
        return fgw_arena_printf(e->arena, "DROP TABLE %s.%s", e->keyspace, want->table);
    }
    return fgw_arena_printf(e->arena, "ALTER TABLE %s.%s ADD %s %s", e->keyspace, want->table,
                            diff->missing[0]->name, diff->missing[0]->type);
}

/* Looks; *out_cure is the next statement that brings the table nearer its shape, NULL: it is right
 * or absent. */
static enum fgw_migrate_exit look_at_control(struct fgw_migrate_engine *e,
                                             const struct fgw_migrate_statement *want,
                                             const char **out_cure)
{
    const char *seen = "";
    for (unsigned turn = 0;; turn++) {
        struct fgw_migrate_table *have = NULL;
        enum fgw_migrate_exit exit = fgw_migrate_look(e, want->table, turn, &have);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        struct fgw_migrate_diff diff;
        fgw_migrate_table_compare(e->arena, want->create, have, &diff);
        bool wrong = have != NULL && (diff.key || diff.type || diff.missing_count > 0);
        if (!wrong || strcmp(seen, diff.text) == 0) {
            *out_cure = wrong ? control_cure(e, want, &diff) : NULL;
            return FGW_MIGRATE_EXIT_OK;
        }
        seen = diff.text;
    }
}

/* Nobody knows whether *cure was applied: until it shows, or can no longer be under way. *cure is then
 * what is left to do. */
static enum fgw_migrate_exit outwait_cure(struct fgw_migrate_engine *e,
                                          const struct fgw_migrate_statement *want,
                                          const char **cure)
{
    uint64_t until = fgw_migrate_now(e) + e->options.timing.ddl_timeout_ms;
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    while (exit == FGW_MIGRATE_EXIT_OK && fgw_migrate_now(e) < until && *cure != NULL) {
        fgw_migrate_sleep_about(e, e->options.timing.poll_ms);
        exit = fgw_migrate_stop(e);
        if (exit == FGW_MIGRATE_EXIT_OK) {
            exit = look_at_control(e, want, cure);
        } else if (e->lease.held && strncmp(*cure, "DROP", 4) == 0) {
            e->lease.in_doubt = true;
        }
    }
    return exit;
}

static enum fgw_migrate_exit refuse_drop(struct fgw_migrate_engine *e,
                                         const struct fgw_migrate_statement *want)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_SHAPE_CONFLICT, FGW_MIGRATE_ERROR);
    finding->object = want->table;
    finding->cause = "a control table has another key or type; what it holds is evidence,"
                     " the catalog stays the truth";
    finding->next = fgw_migrate_command(e, "repair --apply --allow-drop-empty");
    return FGW_MIGRATE_EXIT_DECISION;
}

static enum fgw_migrate_exit cure_control(struct fgw_migrate_engine *e,
                                          const struct fgw_migrate_statement *want)
{
    for (int i = 0; i < 64; i++) {
        const char *cure = NULL;
        enum fgw_migrate_exit exit = look_at_control(e, want, &cure);
        if (exit != FGW_MIGRATE_EXIT_OK || cure == NULL) {
            return exit;
        }
        if (strncmp(cure, "DROP", 4) == 0 && !e->options.allow_drop_empty) {
            return refuse_drop(e, want);
        }
        struct fgw_migrate_answer answer = e->ops->send(e->context, e->keyspace, cure);
        if (answer.class == FGW_MIGRATE_AUTH || answer.class == FGW_MIGRATE_PERMANENT) {
            return fgw_migrate_refused(e, cure, &answer);
        }
        exit = answer.class == FGW_MIGRATE_OK ? FGW_MIGRATE_EXIT_OK : outwait_cure(e, want, &cure);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        fgw_migrate_note(e, "control table %s: %s", want->table, cure == NULL ? "cured" : cure);
    }
    return FGW_MIGRATE_EXIT_FAILED;
}

static enum fgw_migrate_exit cure_lock_table(struct fgw_migrate_engine *e)
{
    const struct fgw_migrate_statement *want;
    for (size_t i = 0; (want = fgw_migrate_control_table(e, i)) != NULL; i++) {
        if (strcmp(want->table, "fgw_schema_lock") == 0) {
            /* with this table broken nobody can hold the lock: the only cure without it */
            return cure_control(e, want);
        }
    }
    return FGW_MIGRATE_EXIT_OK;
}

static enum fgw_migrate_exit cure_other_tables(struct fgw_migrate_engine *e)
{
    const struct fgw_migrate_statement *want;
    for (size_t i = 0; (want = fgw_migrate_control_table(e, i)) != NULL; i++) {
        enum fgw_migrate_exit exit = cure_control(e, want);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
    return fgw_migrate_bootstrap(e);
}

/* -- the whole ----------------------------------------------------------------------------- */

static enum fgw_migrate_exit judge_state(struct fgw_migrate_engine *e, bool write)
{
    if (e->now.have_state) {
        return FGW_MIGRATE_EXIT_OK;
    }
    struct fgw_migrate_adoption adoption;
    enum fgw_migrate_exit exit = fgw_migrate_judge(e, &adoption);
    if (exit != FGW_MIGRATE_EXIT_OK || !write) {
        return exit;
    }
    return fgw_migrate_adopt(e, &adoption);
}

static const char *apply_flags(const struct fgw_migrate_actions *actions)
{
    if (actions->drops && actions->needs_adopt) {
        return "repair --apply --adopt --allow-drop-empty";
    }
    if (actions->drops) {
        return "repair --apply --allow-drop-empty";
    }
    return actions->needs_adopt ? "repair --apply --adopt" : "repair --apply";
}

static void list_actions(struct fgw_migrate_engine *e, const struct fgw_migrate_actions *actions)
{
    size_t total = actions->count + e->report.pending_count;
    const char **lines = fgw_arena_alloc(e->arena, (total + 1) * sizeof(*lines));
    size_t count = 0;
    for (size_t i = 0; i < actions->count; i++, count++) {
        lines[count] = fgw_arena_printf(e->arena, "repair %zu: %s", i + 1, actions->items[i].text);
    }
    if (e->report.pending_count > 0) {
        memcpy(lines + count, e->report.pending, e->report.pending_count * sizeof(*lines));
    }
    e->report.pending = lines;
    e->report.pending_count = e->report.pending_cap = total;
}

static bool anything_wrong(const struct fgw_migrate_engine *e,
                           const struct fgw_migrate_actions *actions)
{
    for (size_t i = 0; i < e->report.finding_count; i++) {
        if (e->report.findings[i].severity == FGW_MIGRATE_ERROR) {
            return true;
        }
    }
    return actions->count > 0;
}

static enum fgw_migrate_exit show(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_actions actions = {.count = 0};
    enum fgw_migrate_exit exit = fgw_migrate_load(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_compat_exit(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = judge_state(e, false);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    (void)fgw_migrate_make_plan(e);
    exit = fgw_migrate_plan_repair(e, &actions);
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    list_actions(e, &actions);
    if (!anything_wrong(e, &actions)) {
        return FGW_MIGRATE_EXIT_OK;
    }
    for (size_t i = 0; i < e->report.finding_count; i++) {
        struct fgw_migrate_finding *finding = &e->report.findings[i];
        if (finding->code != FGW_MIGRATE_NOTE) {
            finding->next = fgw_migrate_command(e, apply_flags(&actions));
        }
    }
    fgw_migrate_note(e, "to do all of it: %s", fgw_migrate_command(e, apply_flags(&actions)));
    return FGW_MIGRATE_EXIT_DECISION;
}

static enum fgw_migrate_exit check_flags(struct fgw_migrate_engine *e,
                                         const struct fgw_migrate_actions *actions)
{
    bool allowed = (!actions->drops || e->options.allow_drop_empty) &&
                   (!actions->needs_adopt || e->options.adopt);
    if (allowed) {
        return FGW_MIGRATE_EXIT_OK;
    }
    list_actions(e, actions);
    fgw_migrate_note(e, "nothing was changed: this needs %s",
                     fgw_migrate_command(e, apply_flags(actions)));
    return FGW_MIGRATE_EXIT_DECISION;
}

/* What was found is mended: it stays in the report, as history. */
static void settle_findings(struct fgw_migrate_engine *e, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct fgw_migrate_finding *finding = &e->report.findings[i];
        if (finding->severity == FGW_MIGRATE_ERROR) {
            finding->severity = FGW_MIGRATE_INFO;
            finding->state = "repaired";
            finding->next = "";
        }
    }
}

static enum fgw_migrate_exit perform_all(struct fgw_migrate_engine *e,
                                         const struct fgw_migrate_actions *actions)
{
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    for (size_t i = 0; i < actions->count && exit == FGW_MIGRATE_EXIT_OK; i++) {
        exit = perform(e, &actions->items[i]);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_load(e);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    size_t findings = e->report.finding_count;
    (void)fgw_migrate_make_plan(e);
    e->report.finding_count = findings;
    for (size_t i = 0; i < actions->count; i++) {
        if (actions->items[i].kind == FGW_MIGRATE_ACT_REOPEN) {
            e->progress[fgw_migrate_step_index(e, actions->items[i].step)] = FGW_MIGRATE_STEP_OPEN;
        }
    }
    exit = fgw_migrate_run_open(e, "repaired");
    for (size_t i = 0; i < actions->count && exit == FGW_MIGRATE_EXIT_OK; i++) {
        if (actions->items[i].kind == FGW_MIGRATE_ACT_COPY_BACK) {
            exit = copy_back(e, &actions->items[i]);
        }
    }
    if (exit == FGW_MIGRATE_EXIT_OK && actions->count > 0) {
        exit = fgw_migrate_put_history(e, "repair", e->now.state.version, e->now.state.version,
                                       e->now.state.version,
                                       fgw_arena_printf(e->arena, "%zu steps", actions->count));
    }
    return exit;
}

static enum fgw_migrate_exit apply_locked(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_actions actions = {.count = 0};
    enum fgw_migrate_exit exit = fgw_migrate_outwait(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = cure_other_tables(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_load(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_compat_exit(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = judge_state(e, true);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    (void)fgw_migrate_make_plan(e);
    exit = fgw_migrate_plan_repair(e, &actions);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = check_flags(e, &actions);
    }
    if (exit == FGW_MIGRATE_EXIT_OK && (anything_wrong(e, &actions) || fgw_migrate_work_left(e))) {
        exit = perform_all(e, &actions);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    size_t findings = e->report.finding_count;
    exit = fgw_migrate_verify_locked(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        settle_findings(e, findings);
    }
    return exit;
}

static enum fgw_migrate_exit repair(struct fgw_migrate_engine *e)
{
    bool done;
    enum fgw_migrate_exit exit = fgw_migrate_check_keyspace(e);
    if (exit == FGW_MIGRATE_EXIT_OK && !e->options.apply) {
        return show(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = cure_lock_table(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_bootstrap_lock(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_lock(e, NULL, &done);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    exit = apply_locked(e);
    fgw_migrate_release(e);
    return exit;
}

enum fgw_migrate_exit fgw_migrate_repair(struct fgw_migrate_engine *e)
{
    return fgw_migrate_finish(e, "repair", repair(e));
}
