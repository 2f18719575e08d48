/* plan.c: what is left to do, judged from journal, state and catalog (spec/migrations.md E2.4,
 * E2.8). Pure: works on what load.c has read. */
#include "migrate/migrate_internal.h"

bool fgw_migrate_recorded(const struct fgw_migrate_journal_row *row)
{
    return row != NULL &&
           (row->state == FGW_MIGRATE_STEP_DONE || row->state == FGW_MIGRATE_STEP_RECONCILED);
}

bool fgw_migrate_in_scope(const struct fgw_migrate_engine *e, const struct fgw_migrate_file *file)
{
    bool phase = !file->contract || e->options.contract;
    return phase && (e->options.to_version == 0 || file->version <= e->options.to_version);
}

void fgw_migrate_copy_sha(struct fgw_migrate_engine *e, const char *saved,
                          char out_sha[FGW_MIGRATE_SHA_MAX])
{
    fgw_migrate_sha(fgw_bytes_str(fgw_arena_printf(e->arena, "copy back %s", saved)), out_sha);
}

bool fgw_migrate_copied_back(struct fgw_migrate_engine *e, const char *saved)
{
    char sha[FGW_MIGRATE_SHA_MAX];
    fgw_migrate_copy_sha(e, saved, sha);
    for (size_t i = 0; i < e->now.journal_count; i++) {
        if (fgw_migrate_recorded(&e->now.journal[i]) && strcmp(e->now.journal[i].sha, sha) == 0) {
            return true;
        }
    }
    return false;
}

/* -- postconditions ------------------------------------------------------------------------ */

static bool same_object(const struct fgw_migrate_statement *a, const char *table,
                        const char *column)
{
    bool whole = a->class == FGW_MIGRATE_DROP_TABLE;
    return strcmp(a->table, table) == 0 && (whole || (column != NULL && a->column.name != NULL &&
                                                      strcmp(a->column.name, column) == 0));
}

/* A later DROP of the table, or of the column (column NULL: the table). */
static bool drops(const struct fgw_migrate_engine *e, const struct fgw_migrate_step *after,
                  const char *column)
{
    for (size_t i = 0; i < e->set->file_count; i++) {
        const struct fgw_migrate_file *file = &e->set->files[i];
        for (int k = 0; file->version >= after->file->version && k < file->step_count; k++) {
            const struct fgw_migrate_statement *statement = &file->steps[k].statement;
            if (fgw_migrate_destructive(statement->class) &&
                same_object(statement, after->statement.table, column)) {
                return true;
            }
        }
    }
    return false;
}

bool fgw_migrate_dropped_later(const struct fgw_migrate_engine *e,
                               const struct fgw_migrate_step *step)
{
    return !fgw_migrate_destructive(step->statement.class) &&
           drops(e, step, step->statement.column.name);
}

/* A later statement that sets this time to live. */
static bool sets_ttl(const struct fgw_migrate_engine *e, const struct fgw_migrate_step *after,
                     int64_t ttl_s)
{
    for (size_t i = 0; i < e->set->file_count; i++) {
        const struct fgw_migrate_file *file = &e->set->files[i];
        for (int k = 0; file->version >= after->file->version && k < file->step_count; k++) {
            const struct fgw_migrate_statement *statement = &file->steps[k].statement;
            if (statement->class == FGW_MIGRATE_SET_TTL && statement->ttl_s == ttl_s &&
                strcmp(statement->table, after->statement.table) == 0) {
                return true;
            }
        }
    }
    return false;
}

static enum fgw_migrate_inspection inspect_create(struct fgw_migrate_engine *e,
                                                  const struct fgw_migrate_step *step,
                                                  const struct fgw_migrate_table *have,
                                                  const char **out_diff)
{
    if (have == NULL) {
        return FGW_MIGRATE_ABSENT;
    }
    struct fgw_migrate_diff diff;
    fgw_migrate_table_compare(e->arena, step->statement.create, have, &diff);
    bool conflict = diff.key || diff.type || have->transactional;
    for (size_t i = 0; i < diff.missing_count; i++) {
        conflict = conflict || !drops(e, step, diff.missing[i]->name);
    }
    if (have->ttl_s != step->statement.create->ttl_s) {
        conflict = conflict || !sets_ttl(e, step, have->ttl_s);
    }
    if (conflict) {
        *out_diff = diff.text;
    }
    return conflict ? FGW_MIGRATE_CONFLICT : FGW_MIGRATE_SATISFIED;
}

static enum fgw_migrate_inspection inspect_add(struct fgw_migrate_engine *e,
                                               const struct fgw_migrate_step *step,
                                               const struct fgw_migrate_table *have,
                                               const char **out_diff)
{
    const struct fgw_migrate_column *want = &step->statement.column;
    const struct fgw_migrate_column *column = fgw_migrate_table_find(have, want->name);
    if (column == NULL) {
        return FGW_MIGRATE_ABSENT;
    }
    if (column->kind == FGW_MIGRATE_REGULAR && strcmp(column->type, want->type) == 0) {
        return FGW_MIGRATE_SATISFIED;
    }
    *out_diff =
        fgw_arena_printf(e->arena, "type: %s want %s  have %s%s", want->name, want->type,
                         column->type, column->kind == FGW_MIGRATE_REGULAR ? "" : " in the key");
    return FGW_MIGRATE_CONFLICT;
}

enum fgw_migrate_inspection fgw_migrate_inspect(struct fgw_migrate_engine *e,
                                                const struct fgw_migrate_step *step,
                                                const struct fgw_migrate_table *have,
                                                const char **out_diff)
{
    const struct fgw_migrate_statement *statement = &step->statement;
    *out_diff = "";
    switch (statement->class) {
    case FGW_MIGRATE_CREATE_TABLE:
        return inspect_create(e, step, have, out_diff);
    case FGW_MIGRATE_DROP_TABLE:
        return have == NULL ? FGW_MIGRATE_SATISFIED : FGW_MIGRATE_ABSENT;
    case FGW_MIGRATE_UPSERT:
        return FGW_MIGRATE_ABSENT; /* the journal alone knows; sending it again is harmless */
    default:
        break;
    }
    if (have == NULL) {
        *out_diff = "table is missing";
        return FGW_MIGRATE_CONFLICT;
    }
    switch (statement->class) {
    case FGW_MIGRATE_ADD_COLUMN:
        return inspect_add(e, step, have, out_diff);
    case FGW_MIGRATE_DROP_COLUMN:
        return fgw_migrate_table_find(have, statement->column.name) == NULL ? FGW_MIGRATE_SATISFIED
                                                                            : FGW_MIGRATE_ABSENT;
    default:
        return have->ttl_s == statement->ttl_s || sets_ttl(e, step, have->ttl_s)
                   ? FGW_MIGRATE_SATISFIED
                   : FGW_MIGRATE_ABSENT;
    }
}

/* -- findings ------------------------------------------------------------------------------ */

static enum fgw_migrate_exit edited(struct fgw_migrate_engine *e,
                                    const struct fgw_migrate_step *step, const char *cause)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_EDITED, FGW_MIGRATE_ERROR);
    finding->object = step->statement.table;
    finding->step = fgw_migrate_step_text(e, step);
    finding->cause = cause;
    finding->state = "nothing changed";
    finding->next = fgw_migrate_command(e, "repair");
    return FGW_MIGRATE_EXIT_DRIFT;
}

static enum fgw_migrate_exit out_of_order(struct fgw_migrate_engine *e,
                                          const struct fgw_migrate_step *step)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_OUT_OF_ORDER, FGW_MIGRATE_ERROR);
    finding->object = step->statement.table;
    finding->step = fgw_migrate_step_text(e, step);
    finding->cause = fgw_arena_printf(
        e->arena, "the keyspace is at version %" PRId64 " and this lower one was never run",
        e->now.state.version);
    finding->state = "nothing changed";
    finding->next = fgw_migrate_command(e, "up --allow-out-of-order");
    return FGW_MIGRATE_EXIT_DRIFT;
}

static enum fgw_migrate_exit missing_file(struct fgw_migrate_engine *e, int64_t version)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_OUT_OF_ORDER, FGW_MIGRATE_ERROR);
    finding->title = "an applied migration is not part of this build";
    finding->step = fgw_arena_printf(e->arena, "%s/%" PRId64, e->set->name, version);
    finding->cause = "the journal records it as applied; this binary was built without its file";
    finding->state = "nothing changed";
    finding->next = fgw_arena_printf(e->arena, "run a build that carries it, or: %s",
                                     fgw_migrate_command(e, "repair"));
    return FGW_MIGRATE_EXIT_DRIFT;
}

static enum fgw_migrate_exit not_present(struct fgw_migrate_engine *e,
                                         const struct fgw_migrate_step *step, const char *diff)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_NOT_PRESENT, FGW_MIGRATE_ERROR);
    finding->object = step->statement.table;
    finding->step = fgw_migrate_step_text(e, step);
    finding->diff = diff;
    finding->cause = "the version covers this step, the journal is empty, the object is not there";
    finding->state = "nothing changed";
    finding->next = fgw_migrate_command(e, "repair");
    return FGW_MIGRATE_EXIT_DRIFT;
}

/* -- the plan ------------------------------------------------------------------------------ */

static bool file_has_rows(struct fgw_migrate_engine *e, const struct fgw_migrate_file *file)
{
    for (int k = 1; k <= file->step_count; k++) {
        if (fgw_migrate_recorded(fgw_migrate_journal_of(e, file->version, k))) {
            return true;
        }
    }
    return false;
}

/* The state row says this file ran. */
static bool covered(const struct fgw_migrate_engine *e, const struct fgw_migrate_file *file)
{
    const struct fgw_migrate_state_row *state = &e->now.state;
    if (!e->now.have_state || state->version < file->version) {
        return false;
    }
    return !file->contract || state->min_compat >= file->min_compat;
}

static const char *doubtful_diff(struct fgw_migrate_engine *e, const struct fgw_migrate_step *step,
                                 bool *out_satisfied)
{
    const char *diff;
    const struct fgw_migrate_table *have =
        fgw_migrate_catalog_find(&e->now.catalog, step->statement.table);
    enum fgw_migrate_inspection found = fgw_migrate_inspect(e, step, have, &diff);
    *out_satisfied = found == FGW_MIGRATE_SATISFIED ||
                     step->statement.class == FGW_MIGRATE_UPSERT ||
                     (found != FGW_MIGRATE_SATISFIED && fgw_migrate_dropped_later(e, step) &&
                      (have == NULL || found == FGW_MIGRATE_ABSENT));
    return *diff ? diff : "table or column is missing";
}

/* Below the version but not in the journal. */
static enum fgw_migrate_exit judge_doubtful(struct fgw_migrate_engine *e,
                                            const struct fgw_migrate_step *step,
                                            enum fgw_migrate_progress *out_progress)
{
    bool satisfied;
    const char *diff = doubtful_diff(e, step, &satisfied);
    if (satisfied) {
        *out_progress = FGW_MIGRATE_STEP_ADOPT;
        return FGW_MIGRATE_EXIT_OK;
    }
    *out_progress = FGW_MIGRATE_STEP_OPEN;
    if (file_has_rows(e, step->file)) {
        return edited(e, step, "the statement was added after the file had been applied");
    }
    if (e->now.journal_count == 0) {
        return not_present(e, step, diff);
    }
    return e->options.allow_out_of_order ? FGW_MIGRATE_EXIT_OK : out_of_order(e, step);
}

static enum fgw_migrate_exit judge_step(struct fgw_migrate_engine *e,
                                        const struct fgw_migrate_step *step,
                                        enum fgw_migrate_progress *out_progress)
{
    const struct fgw_migrate_journal_row *row =
        fgw_migrate_journal_of(e, step->file->version, step->number);
    if (fgw_migrate_recorded(row)) {
        *out_progress = FGW_MIGRATE_STEP_RECORDED;
        return strcmp(row->sha, step->statement.sha) == 0
                   ? FGW_MIGRATE_EXIT_OK
                   : edited(e, step, "its text differs from the one that was applied");
    }
    if (covered(e, step->file) && row == NULL) {
        return judge_doubtful(e, step, out_progress);
    }
    *out_progress =
        fgw_migrate_in_scope(e, step->file) ? FGW_MIGRATE_STEP_OPEN : FGW_MIGRATE_STEP_SKIPPED;
    return FGW_MIGRATE_EXIT_OK;
}

static void add_pending(struct fgw_migrate_engine *e, const struct fgw_migrate_step *step)
{
    struct fgw_migrate_report *report = &e->report;
    if (report->pending_count == report->pending_cap) {
        size_t cap = report->pending_cap == 0 ? 64 : 2 * report->pending_cap;
        const char **grown = fgw_arena_alloc(e->arena, cap * sizeof(*grown));
        if (report->pending_count > 0) {
            memcpy(grown, report->pending, report->pending_count * sizeof(*grown));
        }
        report->pending = grown;
        report->pending_cap = cap;
    }
    report->pending[report->pending_count++] = fgw_migrate_step_text(e, step);
}

/* Journal rows this build has no step for. */
static enum fgw_migrate_exit judge_rows(struct fgw_migrate_engine *e)
{
    int64_t named = 0;
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    for (size_t i = 0; i < e->now.journal_count; i++) {
        const struct fgw_migrate_journal_row *row = &e->now.journal[i];
        if (!fgw_migrate_recorded(row) || row->stmt < 0 || row->version == named) {
            continue;
        }
        const struct fgw_migrate_file *file = fgw_migrate_set_file(e->set, row->version);
        if (file == NULL && row->version <= e->set->knows) {
            named = row->version;
            exit = missing_file(e, row->version);
        } else if (file != NULL && row->stmt > file->step_count) {
            named = row->version;
            exit = edited(e, &file->steps[0], "a statement was removed after it had been applied");
        }
    }
    return exit;
}

/* A step under way whose text is not ours: two builds race for one version. */
static enum fgw_migrate_exit judge_intent(struct fgw_migrate_engine *e)
{
    const struct fgw_migrate_lock_row *lock = &e->now.lock;
    if (!e->now.have_lock || lock->i_phase == FGW_MIGRATE_INTENT_NONE || lock->i_stmt <= 0) {
        return FGW_MIGRATE_EXIT_OK;
    }
    const struct fgw_migrate_file *file = fgw_migrate_set_file(e->set, lock->i_version);
    if (file == NULL || lock->i_stmt > file->step_count ||
        fgw_migrate_recorded(fgw_migrate_journal_of(e, lock->i_version, lock->i_stmt))) {
        return FGW_MIGRATE_EXIT_OK;
    }
    const struct fgw_migrate_step *step = &file->steps[lock->i_stmt - 1];
    if (strcmp(lock->i_sha, step->statement.sha) == 0) {
        return FGW_MIGRATE_EXIT_OK;
    }
    return edited(e, step,
                  "another build began this statement with a different text and did not"
                  " finish it");
}

static void find_contracts_done(struct fgw_migrate_engine *e)
{
    for (size_t i = 0; i < e->set->file_count; i++) {
        const struct fgw_migrate_file *file = &e->set->files[i];
        bool done = file->contract;
        for (int k = 1; done && k <= file->step_count; k++) {
            done = fgw_migrate_recorded(fgw_migrate_journal_of(e, file->version, k));
        }
        e->contract_done[i] = done || (file->contract && covered(e, file));
    }
}

enum fgw_migrate_exit fgw_migrate_make_plan(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = judge_intent(e);
    exit = fgw_migrate_worse(exit, judge_rows(e));
    find_contracts_done(e);
    e->report.pending_count = 0;
    size_t index = 0;
    for (size_t i = 0; i < e->set->file_count; i++) {
        for (int k = 0; k < e->set->files[i].step_count; k++, index++) {
            const struct fgw_migrate_step *step = &e->set->files[i].steps[k];
            exit = fgw_migrate_worse(exit, judge_step(e, step, &e->progress[index]));
            if (e->progress[index] == FGW_MIGRATE_STEP_OPEN) {
                add_pending(e, step);
            }
        }
    }
    return exit;
}

enum fgw_migrate_exit fgw_migrate_compat_exit(struct fgw_migrate_engine *e)
{
    const struct fgw_migrate_state_row *state = &e->now.state;
    if (!e->now.have_state ||
        fgw_migrate_compat(state->version, state->min_compat, e->set->needs, e->set->knows) !=
            FGW_MIGRATE_COMPAT_NEWER_INCOMPATIBLE) {
        return FGW_MIGRATE_EXIT_OK;
    }
    struct fgw_migrate_finding *finding = fgw_migrate_find(e, FGW_MIGRATE_NEWER, FGW_MIGRATE_ERROR);
    finding->cause =
        fgw_arena_printf(e->arena,
                         "schema version %" PRId64 " asks for a binary that knows %" PRId64
                         "; this one (%s) knows %" PRId64,
                         state->version, state->min_compat, e->options.build, e->set->knows);
    finding->state = "nothing changed";
    finding->next = "install the newer fgw; what is there: fgw migrate status --all";
    return FGW_MIGRATE_EXIT_INCOMPATIBLE;
}

bool fgw_migrate_work_left(const struct fgw_migrate_engine *e)
{
    for (size_t i = 0; i < e->step_count; i++) {
        if (e->progress[i] == FGW_MIGRATE_STEP_OPEN || e->progress[i] == FGW_MIGRATE_STEP_ADOPT) {
            return true;
        }
    }
    for (size_t i = 0; i < e->set->file_count; i++) {
        const struct fgw_migrate_file *file = &e->set->files[i];
        bool scope = fgw_migrate_in_scope(e, file);
        bool behind =
            e->now.state.version < file->version || e->now.state.min_compat < file->min_compat;
        if (scope && behind) {
            return true;
        }
    }
    return !fgw_migrate_mirror_exact(e) || e->now.lock.i_phase != FGW_MIGRATE_INTENT_NONE;
}
