/* admin.c: force and unlock: what a person decides, checked, fenced and written to the history. */
#include "migrate/migrate_internal.h"

/* -- force --------------------------------------------------------------------------------- */

static enum fgw_migrate_exit usage(struct fgw_migrate_engine *e, const char *what, const char *next)
{
    struct fgw_migrate_finding *finding = fgw_migrate_find(e, FGW_MIGRATE_NOTE, FGW_MIGRATE_ERROR);
    finding->title = what;
    finding->state = "nothing changed";
    finding->next = fgw_migrate_command(e, next);
    return FGW_MIGRATE_EXIT_USAGE;
}

/* The catalog must be what `version` makes it, or the person names the difference by its hash. */
static enum fgw_migrate_exit check_forced(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_state_row kept = e->now.state;
    bool had = e->now.have_state;
    e->now.have_state = true;
    e->now.state.version = e->options.version;
    enum fgw_migrate_exit exit = fgw_migrate_compare_all(e, true);
    e->now.state = kept;
    e->now.have_state = had;
    if (exit != FGW_MIGRATE_EXIT_DRIFT) {
        return exit;
    }
    const char *accepted = e->options.accept_drift;
    if (accepted != NULL && strcmp(accepted, e->report.catalog_hash) == 0) {
        fgw_migrate_note(e, "the difference was accepted by its hash");
        return FGW_MIGRATE_EXIT_OK;
    }
    for (size_t i = 0; i < e->report.finding_count; i++) {
        struct fgw_migrate_finding *finding = &e->report.findings[i];
        if (finding->severity == FGW_MIGRATE_ERROR) {
            finding->next = fgw_arena_printf(e->arena,
                                             "%s, or: fgw migrate force --version %" PRId64
                                             " --reason TEXT --accept-drift %s --keyspace %s",
                                             fgw_migrate_command(e, "repair"), e->options.version,
                                             e->report.catalog_hash, e->keyspace);
        }
    }
    return FGW_MIGRATE_EXIT_DRIFT;
}

static enum fgw_migrate_exit mark_step(struct fgw_migrate_engine *e,
                                       const struct fgw_migrate_step *step, bool done)
{
    const struct fgw_migrate_journal_row *known =
        fgw_migrate_journal_of(e, step->file->version, step->number);
    bool recorded = fgw_migrate_recorded(known);
    bool same = recorded && strcmp(known->sha, step->statement.sha) == 0;
    if (done ? same : !recorded) {
        return FGW_MIGRATE_EXIT_OK;
    }
    struct fgw_migrate_journal_row row = {
        .version = step->file->version,
        .stmt = step->number,
        .state = done ? FGW_MIGRATE_STEP_RECONCILED : FGW_MIGRATE_STEP_FAILED,
        .started_ms = e->ops->now_wall_ms(e->context),
        .finished_ms = e->ops->now_wall_ms(e->context),
        .attempts = known == NULL ? 0 : known->attempts,
    };
    fgw_migrate_copy_text(row.sha, sizeof row.sha, step->statement.sha);
    fgw_migrate_copy_text(row.how, sizeof row.how, "forced");
    return fgw_migrate_put_journal(e, &row);
}

static enum fgw_migrate_exit mark_steps(struct fgw_migrate_engine *e)
{
    for (size_t i = 0; i < e->set->file_count; i++) {
        const struct fgw_migrate_file *file = &e->set->files[i];
        bool done = file->version <= e->options.version;
        for (int k = 0; k < file->step_count && (!file->contract || !done); k++) {
            enum fgw_migrate_exit exit = mark_step(e, &file->steps[k], done);
            if (exit != FGW_MIGRATE_EXIT_OK) {
                return exit;
            }
        }
    }
    return FGW_MIGRATE_EXIT_OK;
}

static enum fgw_migrate_exit write_forced(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_adoption adoption;
    struct fgw_migrate_state_row state = e->now.state;
    int64_t from = e->now.have_state ? state.version : 0;
    if (!e->now.have_state) {
        (void)fgw_migrate_judge(e, &adoption);
        state = (struct fgw_migrate_state_row){.format = 1, .min_compat = adoption.min_compat};
        fgw_migrate_copy_text(state.set_name, sizeof state.set_name, e->set->name);
    }
    state.version = e->options.version;
    fgw_migrate_copy_text(state.how, sizeof state.how, "forced");
    enum fgw_migrate_exit exit = mark_steps(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_put_state(e, &state);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_mirror_clean(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_put_history(e, "force", state.version, from, state.version,
                                       e->options.reason);
    }
    if (exit == FGW_MIGRATE_EXIT_OK && e->lease.row.i_phase != FGW_MIGRATE_INTENT_NONE) {
        exit = fgw_migrate_set_intent(e, e->lease.row.i_version, e->lease.row.i_stmt,
                                      e->lease.row.i_sha, FGW_MIGRATE_INTENT_NONE);
    }
    return exit;
}

static enum fgw_migrate_exit force(struct fgw_migrate_engine *e)
{
    if (e->options.reason == NULL || !*e->options.reason) {
        return usage(e, "force needs --reason TEXT; it goes into the history",
                     "force --version V --reason TEXT");
    }
    if (e->options.version != 0 && fgw_migrate_set_file(e->set, e->options.version) == NULL) {
        return usage(e, "no migration of this set has that version", "status");
    }
    bool done;
    enum fgw_migrate_exit exit = fgw_migrate_check_keyspace(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_bootstrap(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_lock(e, NULL, &done);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    exit = fgw_migrate_outwait(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_load(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_compat_exit(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = check_forced(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = write_forced(e);
    }
    fgw_migrate_release(e);
    return exit;
}

enum fgw_migrate_exit fgw_migrate_force(struct fgw_migrate_engine *e)
{
    return fgw_migrate_finish(e, "force", force(e));
}

/* -- unlock -------------------------------------------------------------------------------- */

static enum fgw_migrate_exit held_by(struct fgw_migrate_engine *e,
                                     const struct fgw_migrate_lock_row *row, const char *cause,
                                     const char *next, enum fgw_migrate_exit exit)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_LOCK_HELD, FGW_MIGRATE_ERROR);
    finding->holder = fgw_migrate_holder_text(e, row);
    finding->cause = cause;
    finding->state = "nothing changed";
    finding->next = next;
    return exit;
}

static enum fgw_migrate_exit read_lock(struct fgw_migrate_engine *e,
                                       struct fgw_migrate_lock_row *out_row, bool *out_found)
{
    struct fgw_migrate_answer answer = {.class = FGW_MIGRATE_UNKNOWN};
    for (int i = 0; i < 5; i++) {
        answer = e->ops->lock_read(e->context, FGW_MIGRATE_WORKER, e->keyspace, out_row, out_found);
        if (!fgw_migrate_transient(&answer)) {
            break;
        }
        fgw_migrate_sleep_about(e, e->options.timing.poll_ms);
    }
    if (answer.class == FGW_MIGRATE_NOT_FOUND) {
        *out_found = false;
        return FGW_MIGRATE_EXIT_OK;
    }
    return answer.class == FGW_MIGRATE_OK ? FGW_MIGRATE_EXIT_OK
                                          : fgw_migrate_refused(e, "reading the lock", &answer);
}

/* Two heartbeats and a margin: OK when the row stood still. */
static enum fgw_migrate_exit watch(struct fgw_migrate_engine *e,
                                   const struct fgw_migrate_lock_row *row)
{
    const struct fgw_migrate_timing *timing = &e->options.timing;
    uint64_t until = fgw_migrate_now(e) + 2 * timing->heartbeat_ms + timing->margin_ms;
    while (fgw_migrate_now(e) < until) {
        struct fgw_migrate_lock_row now;
        bool found = false;
        fgw_migrate_sleep(e, timing->poll_ms);
        enum fgw_migrate_exit exit = fgw_migrate_stop(e);
        if (exit == FGW_MIGRATE_EXIT_OK) {
            exit = read_lock(e, &now, &found);
        }
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        if (found && (now.hb != row->hb || now.epoch != row->epoch)) {
            const char *next = fgw_arena_printf(
                e->arena,
                "nothing to do; it ends by itself. To fence it out all the same: fgw"
                " migrate unlock --epoch %" PRId64 " --even-if-alive --keyspace %s",
                now.epoch, e->keyspace);
            return held_by(e, &now, "its holder is alive: the heartbeat moves", next,
                           FGW_MIGRATE_EXIT_LOCKED);
        }
    }
    return FGW_MIGRATE_EXIT_OK;
}

static enum fgw_migrate_exit fence(struct fgw_migrate_engine *e,
                                   const struct fgw_migrate_lock_row *seen)
{
    struct fgw_migrate_lock_row row = *seen;
    memset(&row.owner, 0, sizeof row.owner);
    row.epoch++;
    row.hb = 0;
    bool applied = false;
    struct fgw_migrate_answer answer =
        e->ops->lock_update(e->context, FGW_MIGRATE_WORKER, e->keyspace, &row,
                            FGW_MIGRATE_SET_HOLDER | FGW_MIGRATE_SET_HB, seen, &applied);
    if (answer.class != FGW_MIGRATE_OK || !applied) {
        struct fgw_migrate_lock_row now;
        bool found = false;
        enum fgw_migrate_exit exit = read_lock(e, &now, &found);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        if (!found || now.epoch != row.epoch || !fgw_migrate_uuid_nil(&now.owner)) {
            return held_by(e, &now, "the row changed meanwhile", fgw_migrate_command(e, "status"),
                           FGW_MIGRATE_EXIT_LOCKED);
        }
    }
    fgw_migrate_note(e,
                     "unlocked: epoch %" PRId64 " of %s is fenced out, the lock is free at"
                     " epoch %" PRId64,
                     seen->epoch, seen->owner_desc, row.epoch);
    return fgw_migrate_put_history(e, "unlock", 0, seen->epoch, row.epoch,
                                   e->options.reason == NULL ? "" : e->options.reason);
}

static enum fgw_migrate_exit unlock(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_lock_row row;
    bool found = false;
    enum fgw_migrate_exit exit = fgw_migrate_check_keyspace(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = read_lock(e, &row, &found);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    e->now.have_lock = found;
    e->now.lock = found ? row : e->now.lock;
    if (!found || fgw_migrate_uuid_nil(&row.owner)) {
        fgw_migrate_note(e, "the lock is free");
        return FGW_MIGRATE_EXIT_OK;
    }
    if (e->options.epoch != row.epoch) {
        return held_by(e, &row, "--epoch must name the holder's epoch as shown here",
                       fgw_arena_printf(e->arena,
                                        "fgw migrate unlock --epoch %" PRId64 " --keyspace %s",
                                        row.epoch, e->keyspace),
                       FGW_MIGRATE_EXIT_USAGE);
    }
    if (!e->options.even_if_alive) {
        exit = watch(e, &row);
    } else {
        exit = read_lock(e, &row, &found); /* its heartbeat moves: fence what is there now */
        bool same = found && row.epoch == e->options.epoch;
        exit = same ? exit
                    : held_by(e, &row, "the row changed meanwhile",
                              fgw_migrate_command(e, "status"), FGW_MIGRATE_EXIT_LOCKED);
    }
    return exit == FGW_MIGRATE_EXIT_OK ? fence(e, &row) : exit;
}

enum fgw_migrate_exit fgw_migrate_unlock(struct fgw_migrate_engine *e)
{
    return fgw_migrate_finish(e, "unlock", unlock(e));
}
