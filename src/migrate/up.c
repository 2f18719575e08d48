/* up.c: `up` from the first look to the release, and the read-only commands beside it. */
#include "migrate/migrate_internal.h"

/* -- running what is open (under the lock) -------------------------------------------------- */

static enum fgw_migrate_exit finish_file(struct fgw_migrate_engine *e,
                                         const struct fgw_migrate_file *file)
{
    struct fgw_migrate_state_row state = e->now.state;
    if (state.version >= file->version && state.min_compat >= file->min_compat) {
        return FGW_MIGRATE_EXIT_OK;
    }
    state.version = state.version > file->version ? state.version : file->version;
    state.min_compat = state.min_compat > file->min_compat ? state.min_compat : file->min_compat;
    fgw_migrate_copy_text(state.how, sizeof state.how, "migrated");
    fgw_migrate_point(e, FGW_MIGRATE_AT_S8);
    return fgw_migrate_put_state(e, &state);
}

static enum fgw_migrate_exit run_file(struct fgw_migrate_engine *e,
                                      const struct fgw_migrate_file *file, size_t first,
                                      const char *how)
{
    for (int k = 0; k < file->step_count; k++) {
        if (e->progress[first + (size_t)k] != FGW_MIGRATE_STEP_OPEN) {
            continue;
        }
        enum fgw_migrate_exit exit = fgw_migrate_run_step(e, &file->steps[k], how);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        e->progress[first + (size_t)k] = FGW_MIGRATE_STEP_RECORDED;
    }
    return finish_file(e, file);
}

/* Rows we did not write have appeared, or ours have changed, while we ran. */
static void look_for_foreign_writer(struct fgw_migrate_engine *e, bool marked)
{
    struct fgw_migrate_mirror_row *rows;
    size_t count = 0;
    struct fgw_migrate_answer answer =
        e->ops->mirror_read(e->context, e->keyspace, e->arena, &rows, &count);
    for (size_t i = 0; answer.class == FGW_MIGRATE_OK && i < count; i++) {
        bool known = false;
        for (size_t k = 0; k < e->now.mirror_count; k++) {
            known = known || e->now.mirror[k].version == rows[i].version;
        }
        if (!known || (marked && !rows[i].dirty)) {
            struct fgw_migrate_finding *finding =
                fgw_migrate_find(e, FGW_MIGRATE_FOREIGN_WRITER, FGW_MIGRATE_WARNING);
            finding->object = "schema_migrations";
            finding->diff = fgw_arena_printf(e->arena, "row %" PRId64 " %s", rows[i].version,
                                             rows[i].dirty ? "dirty" : "clean");
            finding->cause = "another program or a person wrote it while this one was migrating";
            finding->state = "the catalog decides; the row is collapsed";
            finding->next = "stop the other program; what is there: fgw migrate status --all";
            (void)fgw_migrate_put_history(e, "foreign", e->now.state.version, rows[i].version,
                                          e->now.state.version, finding->cause);
            return;
        }
    }
}

/* Rows that neither we nor a process before us left at rest. */
static void look_at_mirror(struct fgw_migrate_engine *e)
{
    for (size_t i = 0; i < e->now.mirror_count; i++) {
        int64_t version = e->now.mirror[i].version;
        if (version == fgw_migrate_advertised(e) || version == 0) {
            continue;
        }
        bool ours =
            version >= FGW_MIGRATE_OWN_VERSIONS && fgw_migrate_set_file(e->set, version) != NULL;
        if (!ours && !fgw_migrate_legacy_version(version)) {
            struct fgw_migrate_finding *finding =
                fgw_migrate_find(e, FGW_MIGRATE_FOREIGN_WRITER, FGW_MIGRATE_WARNING);
            finding->object = "schema_migrations";
            finding->diff = fgw_arena_printf(e->arena, "row %" PRId64 ", wanted %" PRId64, version,
                                             fgw_migrate_advertised(e));
            finding->cause = "no version of ours or of golang-migrate's: written by hand";
            finding->state = "the catalog decides; the row is collapsed";
        }
    }
}

/* An old binary that may still run has gone further: what it may start on is that version. */
static enum fgw_migrate_exit follow_legacy(struct fgw_migrate_engine *e)
{
    int64_t level = fgw_migrate_legacy_level(e);
    struct fgw_migrate_state_row state = e->now.state;
    bool legacy_may_run = state.min_compat < FGW_MIGRATE_OWN_VERSIONS;
    bool further = false;
    for (size_t i = 0; i < e->now.mirror_count; i++) {
        further = further || (e->now.mirror[i].version > state.min_compat &&
                              e->now.mirror[i].version <= level);
    }
    if (!legacy_may_run || !further) {
        return FGW_MIGRATE_EXIT_OK;
    }
    fgw_migrate_note(e, "golang-migrate went on to %" PRId64 " since", level);
    state.min_compat = level;
    return fgw_migrate_put_state(e, &state);
}

static bool steps_open(const struct fgw_migrate_engine *e)
{
    for (size_t i = 0; i < e->step_count; i++) {
        if (e->progress[i] == FGW_MIGRATE_STEP_OPEN) {
            return true;
        }
    }
    return false;
}

static enum fgw_migrate_exit run_files(struct fgw_migrate_engine *e, const char *how)
{
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    size_t first = 0;
    for (size_t i = 0; i < e->set->file_count && exit == FGW_MIGRATE_EXIT_OK; i++) {
        const struct fgw_migrate_file *file = &e->set->files[i];
        if (fgw_migrate_in_scope(e, file)) {
            exit = run_file(e, file, first, how);
        }
        first += (size_t)file->step_count;
    }
    return exit;
}

/* S9 to S11. */
static enum fgw_migrate_exit close_run(struct fgw_migrate_engine *e, bool marked, int64_t from)
{
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    fgw_migrate_point(e, FGW_MIGRATE_AT_S9);
    look_for_foreign_writer(e, marked);
    if (!fgw_migrate_mirror_exact(e)) {
        exit = fgw_migrate_mirror_clean(e);
    }
    bool moved = from != e->now.state.version || e->report.applied + e->report.reconciled > 0;
    if (exit == FGW_MIGRATE_EXIT_OK && moved) {
        fgw_migrate_point(e, FGW_MIGRATE_AT_S10);
        exit = fgw_migrate_put_history(e, e->options.contract ? "contract" : "up",
                                       e->now.state.version, from, e->now.state.version, "");
    }
    if (exit == FGW_MIGRATE_EXIT_OK && e->lease.row.i_phase != FGW_MIGRATE_INTENT_NONE) {
        fgw_migrate_point(e, FGW_MIGRATE_AT_S11);
        exit = fgw_migrate_set_intent(e, e->lease.row.i_version, e->lease.row.i_stmt,
                                      e->lease.row.i_sha, FGW_MIGRATE_INTENT_NONE);
    }
    return exit;
}

/* The epoch goes into the state row before anything else is written, so that a holder from before
 * a lost and remade lock row is shut out there too. */
static enum fgw_migrate_exit claim(struct fgw_migrate_engine *e)
{
    return e->now.state.epoch == e->lease.row.epoch ? FGW_MIGRATE_EXIT_OK
                                                    : fgw_migrate_put_state(e, &e->now.state);
}

enum fgw_migrate_exit fgw_migrate_run_open(struct fgw_migrate_engine *e, const char *how)
{
    int64_t from = e->now.state.version;
    enum fgw_migrate_exit exit = claim(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_record_adopted(e);
    }
    bool marked = steps_open(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        look_at_mirror(e);
        exit = follow_legacy(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK && marked) {
        fgw_migrate_point(e, FGW_MIGRATE_AT_S0);
        exit = fgw_migrate_mirror_dirty(e);
        for (size_t i = 0; i < e->now.mirror_count; i++) {
            e->now.mirror[i].dirty = true;
        }
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = run_files(e, how);
    }
    return exit == FGW_MIGRATE_EXIT_OK ? close_run(e, marked, from) : exit;
}

/* -- contract ------------------------------------------------------------------------------ */

enum { NODE_FRESH_MS = 600000 };

static bool ignored(const struct fgw_migrate_engine *e, const char *node_id)
{
    struct fgw_bytes rest = fgw_bytes_str(e->options.ignore_nodes);
    struct fgw_bytes name;
    while (rest.ptr != NULL && fgw_bytes_split(&rest, ',', &name)) {
        if (fgw_bytes_eq_str(fgw_bytes_trim(name), node_id)) {
            return true;
        }
    }
    return false;
}

static int64_t raised_min_compat(const struct fgw_migrate_engine *e)
{
    int64_t raised = 0;
    for (size_t i = 0; i < e->set->file_count; i++) {
        const struct fgw_migrate_file *file = &e->set->files[i];
        if (file->contract && !e->contract_done[i] && fgw_migrate_in_scope(e, file)) {
            raised = file->min_compat > raised ? file->min_compat : raised;
        }
    }
    return raised;
}

/* 060 while a node seen lately could not run afterwards. */
static enum fgw_migrate_exit check_nodes(struct fgw_migrate_engine *e)
{
    int64_t raised = raised_min_compat(e);
    struct fgw_migrate_node_row *rows;
    size_t count = 0;
    if (!e->options.contract || raised == 0) {
        return FGW_MIGRATE_EXIT_OK;
    }
    struct fgw_migrate_answer answer =
        e->ops->nodes_read(e->context, e->keyspace, e->arena, &rows, &count);
    if (answer.class != FGW_MIGRATE_OK) {
        return fgw_migrate_refused(e, "reading fgw_schema_nodes", &answer);
    }
    const char *names = "";
    int64_t now = e->ops->now_wall_ms(e->context);
    for (size_t i = 0; i < count; i++) {
        /* a row from the future counts as fresh: its clock is wrong, its node is not gone */
        bool fresh = now - rows[i].seen_ms < NODE_FRESH_MS;
        if (fresh && rows[i].knows < raised && !ignored(e, rows[i].node_id)) {
            names = fgw_arena_printf(e->arena, "%s%s%s", names, *names ? "," : "", rows[i].node_id);
        }
    }
    if (!*names) {
        return FGW_MIGRATE_EXIT_OK;
    }
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_BLOCKED_BY_NODES, FGW_MIGRATE_ERROR);
    finding->cause = fgw_arena_printf(e->arena,
                                      "seen in the last 10 min with a binary that knows"
                                      " less than %" PRId64 ": %s",
                                      raised, names);
    finding->state = "nothing changed";
    finding->next = fgw_arena_printf(e->arena,
                                     "upgrade them, or: fgw migrate up --phase contract"
                                     " --ignore-nodes %s --keyspace %s",
                                     names, e->keyspace);
    return FGW_MIGRATE_EXIT_INCOMPATIBLE;
}

/* -- up ------------------------------------------------------------------------------------ */

/* Reads only. True: state, journal, mirror and catalog are as they should be. */
static bool nothing_to_do(struct fgw_migrate_engine *e)
{
    size_t findings = e->report.finding_count;
    bool done = fgw_migrate_load(e) == FGW_MIGRATE_EXIT_OK && e->now.control && e->now.have_state &&
                e->now.state.version <= e->set->knows &&
                fgw_migrate_make_plan(e) == FGW_MIGRATE_EXIT_OK && !fgw_migrate_work_left(e) &&
                fgw_migrate_compare_all(e, false) == FGW_MIGRATE_EXIT_OK;
    e->report.finding_count = findings;
    return done;
}

/* A step of a repair, or a DROP, was under way when its holder went silent. */
static bool left_in_danger(const struct fgw_migrate_engine *e)
{
    const struct fgw_migrate_lock_row *lock = &e->lease.row;
    if (!e->lease.taken_over || lock->i_phase == FGW_MIGRATE_INTENT_NONE) {
        return false;
    }
    const struct fgw_migrate_file *file = fgw_migrate_set_file(e->set, lock->i_version);
    return file == NULL || lock->i_stmt <= 0 || lock->i_stmt > file->step_count ||
           fgw_migrate_destructive(file->steps[lock->i_stmt - 1].statement.class);
}

static enum fgw_migrate_exit up_locked(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    if (left_in_danger(e)) {
        exit = fgw_migrate_outwait(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_load(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_compat_exit(e);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    fgw_migrate_point(e, FGW_MIGRATE_AT_LOADED);
    if (!e->now.have_state) {
        struct fgw_migrate_adoption adoption;
        exit = fgw_migrate_judge(e, &adoption);
        if (exit == FGW_MIGRATE_EXIT_OK) {
            exit = fgw_migrate_adopt(e, &adoption);
        }
    } else {
        fgw_migrate_legacy_findings(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_make_plan(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = check_nodes(e);
    }
    bool newer = e->now.state.version > e->set->knows;
    if (exit == FGW_MIGRATE_EXIT_OK && !newer && fgw_migrate_work_left(e)) {
        exit = fgw_migrate_run_open(e, "migrated");
    }
    return exit;
}

enum fgw_migrate_exit fgw_migrate_verify_locked(struct fgw_migrate_engine *e)
{
    fgw_migrate_point(e, FGW_MIGRATE_AT_VERIFY);
    enum fgw_migrate_exit exit = fgw_migrate_load(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_make_plan(e);
    }
    return exit == FGW_MIGRATE_EXIT_OK ? fgw_migrate_compare_all(e, true) : exit;
}

/* The plan as it will be once the adoption is recorded. */
static enum fgw_migrate_exit plan_unrecorded(struct fgw_migrate_engine *e,
                                             const struct fgw_migrate_adoption *adoption)
{
    struct fgw_migrate_journal_row *rows =
        fgw_arena_zalloc(e->arena, (e->step_count + e->now.journal_count + 1) * sizeof *rows);
    size_t count = 0;
    size_t index = 0;
    for (size_t i = 0; i < e->set->file_count; i++) {
        for (int k = 0; k < e->set->files[i].step_count; k++, index++) {
            const struct fgw_migrate_step *step = &e->set->files[i].steps[k];
            if (adoption->satisfied[index]) {
                struct fgw_migrate_journal_row *row = &rows[count++];
                row->version = step->file->version;
                row->stmt = step->number;
                row->state = FGW_MIGRATE_STEP_RECONCILED;
                fgw_migrate_copy_text(row->sha, sizeof row->sha, step->statement.sha);
            }
        }
    }
    e->now.journal = rows;
    e->now.journal_count = count;
    return fgw_migrate_make_plan(e);
}

/* Open steps that `up` would stop at: their object is there with another shape. */
static enum fgw_migrate_exit look_for_conflicts(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    size_t index = 0;
    for (size_t i = 0; i < e->set->file_count; i++) {
        for (int k = 0; k < e->set->files[i].step_count; k++, index++) {
            const struct fgw_migrate_step *step = &e->set->files[i].steps[k];
            const struct fgw_migrate_table *have =
                fgw_migrate_catalog_find(&e->now.catalog, step->statement.table);
            const char *diff;
            if (e->progress[index] != FGW_MIGRATE_STEP_OPEN || have == NULL ||
                fgw_migrate_inspect(e, step, have, &diff) != FGW_MIGRATE_CONFLICT) {
                continue; /* a table that is absent is made by an earlier open step */
            }
            struct fgw_migrate_finding *finding =
                fgw_migrate_find(e, FGW_MIGRATE_SHAPE_CONFLICT, FGW_MIGRATE_ERROR);
            finding->object = step->statement.table;
            finding->step = fgw_migrate_step_text(e, step);
            finding->diff = diff;
            finding->next = fgw_migrate_command(e, "repair --apply --allow-drop-empty");
            exit = FGW_MIGRATE_EXIT_DECISION;
        }
    }
    return exit;
}

static enum fgw_migrate_exit dry_run(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    if (!e->now.have_state) {
        struct fgw_migrate_adoption adoption;
        exit = fgw_migrate_judge(e, &adoption);
        e->now.state.version = adoption.version;
        e->now.state.min_compat = adoption.min_compat;
        if (e->now.mirror_count > 0) {
            fgw_migrate_note(e, "first adoption of a golang-migrate keyspace: stop the Go nodes, or"
                                " have them at rest, before `up`; they do not show in"
                                " fgw_schema_nodes");
        }
        fgw_migrate_note(e, "would be %s at version %" PRId64, adoption.how, adoption.version);
        exit = fgw_migrate_worse(exit, plan_unrecorded(e, &adoption));
        return fgw_migrate_worse(exit, look_for_conflicts(e));
    }
    exit = fgw_migrate_compat_exit(e);
    exit = fgw_migrate_worse(exit, fgw_migrate_make_plan(e));
    exit = fgw_migrate_worse(exit, look_for_conflicts(e));
    return exit == FGW_MIGRATE_EXIT_OK ? check_nodes(e) : exit;
}

static enum fgw_migrate_exit look(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = fgw_migrate_check_keyspace(e);
    return exit == FGW_MIGRATE_EXIT_OK ? fgw_migrate_load(e) : exit;
}

static enum fgw_migrate_exit up(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = look(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_compat_exit(e);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    bool done = nothing_to_do(e);
    if (done && !e->options.contract) {
        return FGW_MIGRATE_EXIT_OK;
    }
    if (e->now.have_state && e->now.state.version > e->set->knows) {
        fgw_migrate_note(e, "the schema is newer (%" PRId64 ") and compatible; nothing to do",
                         e->now.state.version);
        return FGW_MIGRATE_EXIT_OK;
    }
    exit = fgw_migrate_bootstrap(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_lock(e, e->options.contract ? NULL : nothing_to_do, &done);
    }
    if (exit != FGW_MIGRATE_EXIT_OK || !e->lease.held) {
        return exit;
    }
    exit = up_locked(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_verify_locked(e);
    }
    fgw_migrate_release(e);
    return exit;
}

enum fgw_migrate_exit fgw_migrate_up(struct fgw_migrate_engine *e)
{
    if (e->options.dry_run) {
        return fgw_migrate_plan(e);
    }
    return fgw_migrate_finish(e, "up", up(e));
}

/* -- reading commands ---------------------------------------------------------------------- */

static enum fgw_migrate_exit say_pending(struct fgw_migrate_engine *e)
{
    size_t count = e->report.pending_count;
    struct fgw_migrate_finding *finding = fgw_migrate_find(e, FGW_MIGRATE_NOTE, FGW_MIGRATE_INFO);
    finding->title =
        count > 0 ? fgw_arena_printf(e->arena, "to be run: %zu statements", count)
                  : "no statement is open, but the records of versions are not as they should be";
    finding->next = fgw_migrate_command(e, "up");
    return FGW_MIGRATE_EXIT_PENDING;
}

enum fgw_migrate_exit fgw_migrate_plan(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = look(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = dry_run(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK && e->report.pending_count > 0) {
        exit = say_pending(e);
    }
    return fgw_migrate_finish(e, "plan", exit);
}

static enum fgw_migrate_exit status(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = look(e);
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    exit = dry_run(e);
    const struct fgw_migrate_lock_row *lock = &e->now.lock;
    if (e->now.have_lock && !fgw_migrate_uuid_nil(&lock->owner)) {
        fgw_migrate_note(e, "lock: %s", fgw_migrate_holder_text(e, lock));
    }
    bool pending = !e->now.have_state || e->report.pending_count > 0 || fgw_migrate_work_left(e);
    return exit == FGW_MIGRATE_EXIT_OK && pending ? say_pending(e) : exit;
}

enum fgw_migrate_exit fgw_migrate_status(struct fgw_migrate_engine *e)
{
    return fgw_migrate_finish(e, "status", status(e));
}
