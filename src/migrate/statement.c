/* statement.c: one statement, S1 to S7 (spec/migrations.md E2.4).
 *
 * Write-ahead intent, then journal, then look; the statement is sent only when its object is seen
 * absent and the lease is good, and its success is read from the catalog and from a probe read,
 * never from the answer alone. A conflict must be seen twice, through two coordinators.
 */
#include "migrate/migrate_internal.h"

enum { SENDS_MAX = 3, BACKOFF_MAX_MS = 15000 };

struct run {
    struct fgw_migrate_engine *e;
    const struct fgw_migrate_step *step;
    const struct fgw_migrate_statement *statement;
    struct fgw_migrate_journal_row row;
    bool had_row;  /* the journal knew the step before this run */
    unsigned turn; /* looks so far; picks the coordinator */
    int sends;     /* whose outcome may still show */
    bool busy;     /* DROP: whether the table is empty could not be told yet */
    bool pending;  /* sent, and its effect may still appear */
    bool answered_ok;
    uint64_t began_ms;
    uint64_t deadline_ms; /* of what is pending */
    uint32_t backoff_ms;
    const char *conflict;             /* last difference seen */
    unsigned absent_seen;             /* DROP: looks in a row that show it gone */
    struct fgw_migrate_answer answer; /* last refusal, for the report */
    struct fgw_migrate_table *have;
};

enum fgw_migrate_exit fgw_migrate_set_intent(struct fgw_migrate_engine *e, int64_t version,
                                             int stmt, const char *sha,
                                             enum fgw_migrate_intent phase)
{
    struct fgw_migrate_lock_row intent = {.i_version = version, .i_stmt = stmt, .i_phase = phase};
    fgw_migrate_copy_text(intent.i_sha, sizeof intent.i_sha, sha);
    enum fgw_migrate_exit exit = fgw_migrate_renew(e, FGW_MIGRATE_WORKER, &intent);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        e->now.lock = e->lease.row;
    }
    return exit;
}

/* -- ends ---------------------------------------------------------------------------------- */

static enum fgw_migrate_exit record(struct run *run, enum fgw_migrate_step_state state)
{
    struct fgw_migrate_engine *e = run->e;
    fgw_migrate_point(e, FGW_MIGRATE_AT_S7);
    run->row.state = state;
    run->row.finished_ms = e->ops->now_wall_ms(e->context);
    run->row.ql_error = run->answer.ql_error;
    fgw_migrate_copy_text(run->row.error_text, sizeof run->row.error_text, run->answer.text);
    if (run->have != NULL) {
        struct fgw_migrate_catalog one;
        fgw_migrate_catalog_init(&one, e->arena);
        fgw_migrate_catalog_put(&one, run->have);
        fgw_migrate_catalog_hash(&one, run->row.shape);
    }
    return fgw_migrate_put_journal(e, &run->row);
}

static struct fgw_migrate_finding *step_finding(struct run *run, enum fgw_migrate_code code)
{
    struct fgw_migrate_finding *finding = fgw_migrate_find(run->e, code, FGW_MIGRATE_ERROR);
    finding->server = fgw_arena_strdup(run->e->arena, fgw_bytes_str(run->answer.server));
    finding->object = run->statement->table;
    finding->step = fgw_migrate_step_text(run->e, run->step);
    finding->ql_error = run->answer.ql_error;
    finding->state = fgw_arena_printf(
        run->e->arena, "nothing changed; version %" PRId64 "; lock released (epoch %" PRId64 ")",
        run->e->now.state.version, run->e->lease.row.epoch);
    return finding;
}

/* Records the failure; `exit` stands unless even that fails. */
static enum fgw_migrate_exit record_failure(struct run *run, enum fgw_migrate_exit exit)
{
    run->e->report.failed++;
    enum fgw_migrate_exit recorded = record(run, FGW_MIGRATE_STEP_FAILED);
    if (recorded == FGW_MIGRATE_EXIT_OK) {
        recorded = fgw_migrate_set_intent(run->e, run->step->file->version, run->step->number,
                                          run->statement->sha, FGW_MIGRATE_INTENT_NONE);
    }
    return recorded == FGW_MIGRATE_EXIT_OK ? exit : fgw_migrate_worse(recorded, exit);
}

static enum fgw_migrate_exit fail_conflict(struct run *run)
{
    struct fgw_migrate_engine *e = run->e;
    struct fgw_migrate_finding *finding = step_finding(run, FGW_MIGRATE_SHAPE_CONFLICT);
    const char *rows_text = "the table is missing";
    if (run->have != NULL) {
        bool rows = true;
        struct fgw_migrate_answer answer = e->ops->probe(e->context, e->keyspace, run->have, &rows);
        finding->server = fgw_arena_strdup(e->arena, fgw_bytes_str(answer.server));
        rows_text = answer.class != FGW_MIGRATE_OK ? "its rows could not be read"
                    : rows                         ? "table has rows"
                                                   : "table has no rows";
    }
    finding->diff = run->conflict;
    finding->cause =
        fgw_arena_printf(e->arena, "%s; %s",
                         run->had_row ? "an earlier attempt is in the journal"
                                      : "not created by a migration (no journal entry)",
                         rows_text);
    finding->next = fgw_migrate_command(e, "repair --apply --allow-drop-empty");
    return record_failure(run, FGW_MIGRATE_EXIT_DECISION);
}

static enum fgw_migrate_exit fail_invisible(struct run *run)
{
    struct fgw_migrate_engine *e = run->e;
    struct fgw_migrate_finding *finding = step_finding(run, FGW_MIGRATE_NOT_VISIBLE);
    finding->state = fgw_arena_printf(
        e->arena, "sent, not seen; version %" PRId64 "; lock released (epoch %" PRId64 ")",
        e->now.state.version, e->lease.row.epoch);
    finding->cause = fgw_arena_printf(
        e->arena, "%s; not usable %" PRIu64 " s after it was sent%s%s",
        run->have == NULL ? "not in the catalog" : "in the catalog, but reading it fails",
        (fgw_migrate_now(e) - run->began_ms) / 1000, *run->answer.text ? ": " : "",
        run->answer.text);
    finding->next = fgw_migrate_command(e, "up");
    return record_failure(run, FGW_MIGRATE_EXIT_FAILED);
}

static enum fgw_migrate_exit fail_statement(struct run *run)
{
    bool auth = run->answer.class == FGW_MIGRATE_AUTH;
    struct fgw_migrate_finding *finding =
        step_finding(run, auth ? FGW_MIGRATE_NO_PERMISSION : FGW_MIGRATE_STATEMENT_FAILED);
    finding->cause = fgw_arena_strdup(run->e->arena, fgw_bytes_str(run->answer.text));
    finding->next = auth ? fgw_arena_printf(run->e->arena,
                                            "grant the role of FGW_CQL_USER CREATE and ALTER on"
                                            " keyspace %s, then: %s",
                                            run->e->keyspace, fgw_migrate_command(run->e, "up"))
                         : fgw_migrate_command(run->e, "up");
    return record_failure(run, FGW_MIGRATE_EXIT_FAILED);
}

static enum fgw_migrate_exit succeed(struct run *run)
{
    struct fgw_migrate_engine *e = run->e;
    bool plain = run->answered_ok && run->sends == 1;
    enum fgw_migrate_exit exit =
        record(run, plain ? FGW_MIGRATE_STEP_DONE : FGW_MIGRATE_STEP_RECONCILED);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        *(plain ? &e->report.applied : &e->report.reconciled) += 1;
        fgw_migrate_logf(e, FGW_MIGRATE_LOG_INFO, "%s: %s", fgw_migrate_step_text(e, run->step),
                         plain ? "done" : "reconciled");
    }
    return exit;
}

/* -- sending ------------------------------------------------------------------------------- */

static void pend(struct run *run, const struct fgw_migrate_answer *answer)
{
    const struct fgw_migrate_timing *timing = &run->e->options.timing;
    run->pending = true;
    run->deadline_ms = fgw_migrate_now(run->e) + timing->ddl_timeout_ms + timing->ddl_grace_ms;
    run->answered_ok = answer->class == FGW_MIGRATE_OK;
}

static void back_off(struct run *run)
{
    run->backoff_ms = run->backoff_ms == 0 ? 200 : run->backoff_ms * 2;
    run->backoff_ms = run->backoff_ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : run->backoff_ms;
    fgw_migrate_logf(run->e, FGW_MIGRATE_LOG_WARN, "%s: %s; again in about %u ms",
                     fgw_migrate_step_text(run->e, run->step),
                     *run->answer.text ? run->answer.text : "no answer", run->backoff_ms);
    fgw_migrate_sleep_about(run->e, run->backoff_ms);
}

/* Nothing is ever dropped that holds rows; looked at just before the DROP. */
static enum fgw_migrate_exit check_empty(struct run *run, bool *out_failed)
{
    struct fgw_migrate_engine *e = run->e;
    bool rows = true;
    run->busy = false;
    struct fgw_migrate_answer answer = e->ops->probe(e->context, e->keyspace, run->have, &rows);
    if (answer.class == FGW_MIGRATE_OK && !rows) {
        return FGW_MIGRATE_EXIT_OK;
    }
    run->answer = answer;
    if (answer.class == FGW_MIGRATE_OK) {
        *out_failed = true;
        run->answer.class = FGW_MIGRATE_PERMANENT;
        fgw_migrate_copy_text(run->answer.text, sizeof run->answer.text,
                              "not sent: the table holds rows, and nothing that does is dropped");
    } else if (answer.class == FGW_MIGRATE_AUTH || answer.class == FGW_MIGRATE_PERMANENT) {
        *out_failed = true;
    } else {
        run->busy = true;
        back_off(run);
    }
    return FGW_MIGRATE_EXIT_OK;
}

/* Sends once and classifies. *out_failed: no retry can help. */
static enum fgw_migrate_exit send_once(struct run *run, bool *out_failed)
{
    struct fgw_migrate_engine *e = run->e;
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    if (run->sends > 0) {
        exit = fgw_migrate_renew(e, FGW_MIGRATE_WORKER, NULL);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_held(e);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    if (run->statement->class == FGW_MIGRATE_DROP_TABLE) {
        exit = check_empty(run, out_failed);
        if (exit != FGW_MIGRATE_EXIT_OK || *out_failed || run->busy) {
            return exit;
        }
    }
    fgw_migrate_point(e, FGW_MIGRATE_AT_S4);
    run->answer = e->ops->send(e->context, e->keyspace,
                               fgw_migrate_send_text(e->arena, run->statement, e->keyspace));
    fgw_migrate_point(e, FGW_MIGRATE_AT_S5);
    switch (run->answer.class) {
    case FGW_MIGRATE_AUTH:
    case FGW_MIGRATE_PERMANENT:
        *out_failed = true;
        break;
    case FGW_MIGRATE_NOT_APPLIED:
    case FGW_MIGRATE_UNREACHABLE:
        back_off(run);
        break;
    default: /* done, done by somebody, or unknown: the catalog tells */
        run->sends++;
        pend(run, &run->answer);
        break;
    }
    return FGW_MIGRATE_EXIT_OK;
}

/* Data steps have no shape to look at: the journal and the answer are all there is, and sending
 * twice is harmless by their class. */
static enum fgw_migrate_exit run_upsert(struct run *run)
{
    for (;;) {
        bool failed = false;
        enum fgw_migrate_exit exit = send_once(run, &failed);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        if (failed) {
            return fail_statement(run);
        }
        if (run->pending && run->answered_ok) {
            run->sends = 1;
            return succeed(run);
        }
        bool late = fgw_migrate_now(run->e) - run->began_ms >= run->e->options.timing.wait_limit_ms;
        if (late) {
            return fail_invisible(run);
        }
        if (run->pending) {
            run->pending = false;
            back_off(run);
        }
    }
}

/* -- looking ------------------------------------------------------------------------------- */

/* Satisfied in the catalog: reads must work too. */
static enum fgw_migrate_exit check_readable(struct run *run, bool *out_done)
{
    struct fgw_migrate_engine *e = run->e;
    bool rows;
    *out_done = true;
    if (run->have == NULL) {
        /* a DROP: one coordinator may still be behind; look through the other as well */
        *out_done = ++run->absent_seen >= 2;
        return FGW_MIGRATE_EXIT_OK;
    }
    struct fgw_migrate_answer answer = e->ops->probe(e->context, e->keyspace, run->have, &rows);
    if (answer.class == FGW_MIGRATE_OK) {
        return FGW_MIGRATE_EXIT_OK;
    }
    *out_done = false;
    run->answer = answer;
    bool give_up = answer.class == FGW_MIGRATE_AUTH || answer.class == FGW_MIGRATE_PERMANENT;
    return give_up ? fail_statement(run) : FGW_MIGRATE_EXIT_OK;
}

static enum fgw_migrate_exit when_absent(struct run *run)
{
    struct fgw_migrate_engine *e = run->e;
    uint64_t now = fgw_migrate_now(e);
    run->absent_seen = 0;
    if (run->pending && now < run->deadline_ms) {
        return FGW_MIGRATE_EXIT_OK;
    }
    if (run->pending && (run->answered_ok || run->sends >= SENDS_MAX)) {
        return fail_invisible(run);
    }
    if (now - run->began_ms >= e->options.timing.wait_limit_ms && run->sends == 0) {
        return fgw_migrate_refused(e, "sending the statement", &run->answer);
    }
    if (fgw_migrate_destructive(run->statement->class) && e->lease.taken_over &&
        now < e->lease.acquired_at_ms + e->options.timing.ddl_timeout_ms) {
        return fgw_migrate_outwait(e); /* and look afresh afterwards */
    }
    run->pending = false;
    bool failed = false;
    enum fgw_migrate_exit exit = send_once(run, &failed);
    return failed ? fail_statement(run) : exit;
}

static enum fgw_migrate_exit when_conflict(struct run *run, const char *diff)
{
    bool again = run->conflict != NULL && strcmp(run->conflict, diff) == 0;
    run->conflict = diff;
    return again ? fail_conflict(run) : FGW_MIGRATE_EXIT_OK;
}

static enum fgw_migrate_exit look_and_act(struct run *run, bool *out_done)
{
    struct fgw_migrate_engine *e = run->e;
    fgw_migrate_point(e, run->pending ? FGW_MIGRATE_AT_S6 : FGW_MIGRATE_AT_S3);
    run->have = NULL;
    enum fgw_migrate_exit exit =
        fgw_migrate_look(e, run->statement->table, run->turn++, &run->have);
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    const char *diff;
    switch (fgw_migrate_inspect(e, run->step, run->have, &diff)) {
    case FGW_MIGRATE_CONFLICT:
        return when_conflict(run, diff);
    case FGW_MIGRATE_ABSENT:
        run->conflict = NULL;
        return when_absent(run);
    default:
        run->conflict = NULL;
        exit = check_readable(run, out_done);
        bool late = fgw_migrate_now(e) >= run->deadline_ms;
        return exit == FGW_MIGRATE_EXIT_OK && !*out_done && late ? fail_invisible(run) : exit;
    }
}

static enum fgw_migrate_exit run_ddl(struct run *run)
{
    const struct fgw_migrate_timing *timing = &run->e->options.timing;
    run->deadline_ms = run->began_ms + timing->ddl_timeout_ms + timing->ddl_grace_ms;
    for (;;) {
        bool done = false;
        int sends = run->sends;
        enum fgw_migrate_exit exit = look_and_act(run, &done);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        if (done) {
            return succeed(run);
        }
        exit = fgw_migrate_held(run->e);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            run->e->lease.in_doubt =
                run->pending && !run->answered_ok && fgw_migrate_destructive(run->statement->class);
            return exit;
        }
        if (run->answered_ok && run->sends != sends) {
            continue; /* mostly visible at once */
        }
        bool quick = run->answered_ok || run->turn < 3;
        fgw_migrate_sleep_about(run->e, quick ? timing->poll_ms / 5 + 1 : timing->poll_ms);
    }
}

enum fgw_migrate_exit fgw_migrate_run_step(struct fgw_migrate_engine *e,
                                           const struct fgw_migrate_step *step, const char *how)
{
    struct run run = {
        .e = e, .step = step, .statement = &step->statement, .began_ms = fgw_migrate_now(e)};
    const struct fgw_migrate_journal_row *known =
        fgw_migrate_journal_of(e, step->file->version, step->number);
    run.had_row = known != NULL;
    run.row = (struct fgw_migrate_journal_row){
        .version = step->file->version,
        .stmt = step->number,
        .state = FGW_MIGRATE_STEP_RUNNING,
        .started_ms = e->ops->now_wall_ms(e->context),
        .attempts = known == NULL ? 1 : known->attempts + 1,
    };
    fgw_migrate_copy_text(run.row.sha, sizeof run.row.sha, step->statement.sha);
    fgw_migrate_copy_text(run.row.how, sizeof run.row.how, how);
    enum fgw_migrate_exit exit = fgw_migrate_held(e);
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    fgw_migrate_point(e, FGW_MIGRATE_AT_S1);
    exit = fgw_migrate_set_intent(e, step->file->version, step->number, step->statement.sha,
                                  FGW_MIGRATE_INTENT_RUNNING);
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    fgw_migrate_point(e, FGW_MIGRATE_AT_S2);
    exit = fgw_migrate_put_journal(e, &run.row);
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    return step->statement.class == FGW_MIGRATE_UPSERT ? run_upsert(&run) : run_ddl(&run);
}
