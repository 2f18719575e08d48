/* lock.c: the lease (spec/migrations.md E2.3): one row per keyspace, never deleted, no TTL; owner,
 * epoch and heartbeat change only by conditional writes that name all three as last seen, so a
 * late duplicate of an old write never applies. Waiters time an unchanged row on their own boot
 * clock; no wall clock decides anything. Any answer but a clean "applied" is settled by re-reading.
 */
#include "migrate/migrate_internal.h"

enum {
    LEASE_MIN_MS = 1000,
    LEASE_MAX_MS = 600000,
    SAY_EVERY_MS = 10000,
    RETRY_MS = 250,
    LAG_MS = 10000
};

static bool same_holder(const struct fgw_migrate_lock_row *a, const struct fgw_migrate_lock_row *b)
{
    return fgw_migrate_uuid_eq(&a->owner, &b->owner) && a->epoch == b->epoch && a->hb == b->hb;
}

static bool is_mine(const struct fgw_migrate_engine *e, const struct fgw_migrate_lock_row *row)
{
    return fgw_migrate_uuid_eq(&row->owner, &e->me);
}

const char *fgw_migrate_holder_text(struct fgw_migrate_engine *e,
                                    const struct fgw_migrate_lock_row *row)
{
    if (fgw_migrate_uuid_nil(&row->owner)) {
        return fgw_arena_printf(e->arena, "nobody (epoch %" PRId64 ")", row->epoch);
    }
    const char *at = "";
    if (row->i_phase != FGW_MIGRATE_INTENT_NONE) {
        at = fgw_arena_printf(e->arena, ", at %s/%" PRId64 " %s %d", e->set->name, row->i_version,
                              row->i_stmt < 0 ? "repair step" : "statement",
                              row->i_stmt < 0 ? -row->i_stmt : row->i_stmt);
    }
    return fgw_arena_printf(e->arena, "%s (epoch %" PRId64 ")%s", row->owner_desc, row->epoch, at);
}

static enum fgw_migrate_exit be_lost(struct fgw_migrate_engine *e,
                                     const struct fgw_migrate_lock_row *winner)
{
    e->lease.lost = true;
    e->lease.unreachable = winner == NULL;
    if (winner != NULL) {
        e->lease.winner = *winner;
    }
    return FGW_MIGRATE_EXIT_LOST;
}

/* -- renewing ------------------------------------------------------------------------------ */

static void renewed(struct fgw_migrate_engine *e, const struct fgw_migrate_lock_row *row,
                    uint64_t sent_at_ms)
{
    const struct fgw_migrate_timing *timing = &e->options.timing;
    e->lease.row = *row;
    e->lease.renewed_at_ms = sent_at_ms;
    e->lease.valid_until_ms = sent_at_ms + timing->lease_ms - timing->margin_ms;
}

/* Settles an answer that was not a clean "applied". *out_again: send the same once more. */
static enum fgw_migrate_exit settle_renew(struct fgw_migrate_engine *e, enum fgw_migrate_lane lane,
                                          const struct fgw_migrate_lock_row *row,
                                          uint64_t sent_at_ms, bool *out_again)
{
    *out_again = false;
    for (;;) {
        struct fgw_migrate_lock_row seen;
        bool found = false;
        struct fgw_migrate_answer answer =
            e->ops->lock_read(e->context, lane, e->keyspace, &seen, &found);
        bool known = answer.class == FGW_MIGRATE_OK;
        if (known && (!found || !is_mine(e, &seen) || seen.epoch != row->epoch)) {
            static const struct fgw_migrate_lock_row gone;
            return be_lost(e, found ? &seen : &gone);
        }
        if (fgw_migrate_now(e) >= e->lease.valid_until_ms) {
            return be_lost(e, NULL);
        }
        if (known && seen.hb == row->hb) {
            renewed(e, row, sent_at_ms);
            return FGW_MIGRATE_EXIT_OK;
        }
        if (known) {
            *out_again = true;
            return FGW_MIGRATE_EXIT_OK;
        }
        fgw_migrate_sleep_about(e, RETRY_MS);
    }
}

static enum fgw_migrate_exit renew_guarded(struct fgw_migrate_engine *e, enum fgw_migrate_lane lane,
                                           const struct fgw_migrate_lock_row *intent)
{
    unsigned set = FGW_MIGRATE_SET_HB;
    struct fgw_migrate_lock_row seen = e->lease.row;
    struct fgw_migrate_lock_row row = seen;
    row.hb++;
    if (intent != NULL) {
        set |= FGW_MIGRATE_SET_INTENT;
        row.i_version = intent->i_version;
        row.i_stmt = intent->i_stmt;
        row.i_phase = intent->i_phase;
        memcpy(row.i_sha, intent->i_sha, sizeof row.i_sha);
    }
    bool again = true;
    while (again) {
        if (e->lease.lost || fgw_migrate_now(e) >= e->lease.valid_until_ms) {
            return e->lease.lost ? FGW_MIGRATE_EXIT_LOST : be_lost(e, NULL);
        }
        uint64_t sent_at_ms = fgw_migrate_now(e);
        bool applied = false;
        struct fgw_migrate_answer answer =
            e->ops->lock_update(e->context, lane, e->keyspace, &row, set, &seen, &applied);
        if (answer.class == FGW_MIGRATE_OK && applied) {
            renewed(e, &row, sent_at_ms);
            return FGW_MIGRATE_EXIT_OK;
        }
        enum fgw_migrate_exit exit = settle_renew(e, lane, &row, sent_at_ms, &again);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
    return FGW_MIGRATE_EXIT_OK;
}

enum fgw_migrate_exit fgw_migrate_renew(struct fgw_migrate_engine *e, enum fgw_migrate_lane lane,
                                        const struct fgw_migrate_lock_row *intent)
{
    e->ops->guard(e->context);
    enum fgw_migrate_exit exit = renew_guarded(e, lane, intent);
    e->ops->unguard(e->context);
    return exit == FGW_MIGRATE_EXIT_LOST && lane == FGW_MIGRATE_WORKER ? fgw_migrate_lost(e) : exit;
}

/* The heartbeat task: short sleeps, so that release does not wait for it. */
static void heartbeat(void *argument)
{
    struct fgw_migrate_engine *e = argument;
    uint32_t slice_ms = e->options.timing.heartbeat_ms / 10 + 1;
    for (;;) {
        fgw_migrate_sleep(e, slice_ms);
        e->ops->guard(e->context);
        bool over = e->lease.stopping || e->lease.lost;
        bool due = fgw_migrate_now(e) >= e->lease.renewed_at_ms + e->options.timing.heartbeat_ms;
        if (!over && due) {
            over = renew_guarded(e, FGW_MIGRATE_HEARTBEAT, NULL) != FGW_MIGRATE_EXIT_OK;
        }
        e->ops->unguard(e->context);
        if (over) {
            return;
        }
    }
}

/* -- what holders ask ---------------------------------------------------------------------- */

enum fgw_migrate_exit fgw_migrate_lost(struct fgw_migrate_engine *e)
{
    for (size_t i = 0; i < e->report.finding_count; i++) {
        if (e->report.findings[i].code == FGW_MIGRATE_LEASE_LOST) {
            return FGW_MIGRATE_EXIT_LOST;
        }
    }
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_LEASE_LOST, FGW_MIGRATE_ERROR);
    finding->cause = e->lease.unreachable ? "no renewal was answered before the lease could end"
                                          : "another process has taken the lock over";
    if (!e->lease.unreachable) {
        finding->holder = fgw_migrate_holder_text(e, &e->lease.winner);
    }
    finding->state = "stopped; nothing was recorded after the loss";
    finding->next = fgw_migrate_command(e, "up");
    return FGW_MIGRATE_EXIT_LOST;
}

enum fgw_migrate_exit fgw_migrate_stop(struct fgw_migrate_engine *e)
{
    if (!e->ops->stop_requested(e->context)) {
        return FGW_MIGRATE_EXIT_OK;
    }
    fgw_migrate_note(e, "asked to stop: stopping between two steps; `%s` goes on from here",
                     fgw_migrate_command(e, "up"));
    return FGW_MIGRATE_EXIT_PENDING;
}

enum fgw_migrate_exit fgw_migrate_held(struct fgw_migrate_engine *e)
{
    e->ops->guard(e->context);
    if (!e->lease.lost && fgw_migrate_now(e) >= e->lease.valid_until_ms) {
        (void)be_lost(e, NULL);
    }
    bool lost = e->lease.lost;
    e->ops->unguard(e->context);
    return lost ? fgw_migrate_lost(e) : fgw_migrate_stop(e);
}

enum fgw_migrate_exit fgw_migrate_outwait(struct fgw_migrate_engine *e)
{
    const struct fgw_migrate_timing *timing = &e->options.timing;
    uint64_t until = e->lease.acquired_at_ms + timing->ddl_timeout_ms;
    bool said = false;
    while (e->lease.taken_over && fgw_migrate_now(e) < until) {
        enum fgw_migrate_exit exit = fgw_migrate_held(e);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        if (!said) {
            said = true;
            fgw_migrate_logf(e, FGW_MIGRATE_LOG_INFO,
                             "the lock was taken over: waiting %u s until no statement of the old"
                             " holder can be under way",
                             timing->ddl_timeout_ms / 1000);
        }
        fgw_migrate_sleep(e, timing->poll_ms);
    }
    return FGW_MIGRATE_EXIT_OK;
}

/* -- taking -------------------------------------------------------------------------------- */

struct waiting {
    uint64_t began_ms;
    uint64_t since_ms; /* the row is unchanged since, on our clock */
    uint64_t said_ms;
    bool known; /* `seen` is filled */
    bool waited;
    struct fgw_migrate_lock_row seen;
};

/* A table that is not there, or of another shape, holds no evidence. */
static bool no_evidence(const struct fgw_migrate_answer *answer)
{
    return answer->class == FGW_MIGRATE_NOT_FOUND || answer->class == FGW_MIGRATE_PERMANENT;
}

/* Highest epoch in the evidence: a lock row restored or made anew must not restart the count. */
static enum fgw_migrate_exit evidence_epoch(struct fgw_migrate_engine *e, int64_t *out_epoch)
{
    struct fgw_migrate_state_row state;
    bool found = false;
    struct fgw_migrate_answer answer = e->ops->state_read(e->context, e->keyspace, &state, &found);
    if (answer.class != FGW_MIGRATE_OK && !no_evidence(&answer)) {
        return FGW_MIGRATE_EXIT_UNREACHABLE;
    }
    int64_t epoch = answer.class == FGW_MIGRATE_OK && found ? state.epoch : 0;
    struct fgw_migrate_journal_row *rows;
    size_t count = 0;
    fgw_arena_reset(e->scratch);
    answer = e->ops->journal_read(e->context, e->keyspace, e->set->name, e->scratch, &rows, &count);
    if (answer.class != FGW_MIGRATE_OK && !no_evidence(&answer)) {
        return FGW_MIGRATE_EXIT_UNREACHABLE;
    }
    for (size_t i = 0; answer.class == FGW_MIGRATE_OK && i < count; i++) {
        epoch = rows[i].epoch > epoch ? rows[i].epoch : epoch;
    }
    *out_epoch = epoch;
    return FGW_MIGRATE_EXIT_OK;
}

static struct fgw_migrate_lock_row my_row(struct fgw_migrate_engine *e,
                                          const struct fgw_migrate_lock_row *seen, int64_t evidence)
{
    struct fgw_migrate_lock_row row = *seen;
    row.owner = e->me;
    fgw_migrate_copy_text(row.owner_desc, sizeof row.owner_desc, e->options.actor);
    fgw_migrate_copy_text(row.build, sizeof row.build, e->options.build);
    row.epoch = (evidence > seen->epoch ? evidence : seen->epoch) + 1;
    row.hb = 0;
    row.lease_ms = e->options.timing.lease_ms;
    row.target = e->set->needs;
    row.at_ms = e->ops->now_wall_ms(e->context);
    return row;
}

static void take(struct fgw_migrate_engine *e, const struct fgw_migrate_lock_row *row,
                 uint64_t sent_at_ms, bool taken_over)
{
    e->lease = (struct fgw_migrate_lease){.held = true, .taken_over = taken_over};
    e->lease.taken_destructive = taken_over && row->i_phase != FGW_MIGRATE_INTENT_NONE;
    renewed(e, row, sent_at_ms);
    e->lease.acquired_at_ms = fgw_migrate_now(e);
    fgw_migrate_logf(e, FGW_MIGRATE_LOG_INFO, "lock %s, epoch %" PRId64,
                     taken_over ? "taken over from a holder that went silent" : "taken",
                     row->epoch);
    e->ops->start_task(e->context, heartbeat, e);
    fgw_migrate_point(e, FGW_MIGRATE_AT_ACQUIRED);
}

/* One conditional write; *out_taken false sends the caller back to reading. */
static enum fgw_migrate_exit try_take(struct fgw_migrate_engine *e,
                                      const struct fgw_migrate_lock_row *seen, bool *out_taken)
{
    *out_taken = false;
    int64_t evidence;
    if (evidence_epoch(e, &evidence) != FGW_MIGRATE_EXIT_OK) {
        return FGW_MIGRATE_EXIT_OK;
    }
    fgw_migrate_point(e, FGW_MIGRATE_AT_ACQUIRE);
    struct fgw_migrate_lock_row row = my_row(e, seen, evidence);
    uint64_t sent_at_ms = fgw_migrate_now(e);
    bool applied = false;
    struct fgw_migrate_answer answer =
        e->ops->lock_update(e->context, FGW_MIGRATE_WORKER, e->keyspace, &row,
                            FGW_MIGRATE_SET_HOLDER | FGW_MIGRATE_SET_HB, seen, &applied);
    if (answer.class == FGW_MIGRATE_OK && applied) {
        take(e, &row, sent_at_ms, !fgw_migrate_uuid_nil(&seen->owner));
        *out_taken = true;
    }
    bool refused = answer.class == FGW_MIGRATE_AUTH || answer.class == FGW_MIGRATE_PERMANENT;
    return refused ? fgw_migrate_refused(e, "taking the lock", &answer) : FGW_MIGRATE_EXIT_OK;
}

/* The row carries our id though no clean answer said so: an earlier write applied late. Only a
 * renewal that applies proves that it is ours now. */
static bool take_late(struct fgw_migrate_engine *e, const struct fgw_migrate_lock_row *row)
{
    e->lease = (struct fgw_migrate_lease){.row = *row};
    e->lease.valid_until_ms = fgw_migrate_now(e) + e->options.timing.lease_ms;
    if (renew_guarded(e, FGW_MIGRATE_WORKER, NULL) != FGW_MIGRATE_EXIT_OK) {
        e->lease = (struct fgw_migrate_lease){.held = false};
        return false;
    }
    struct fgw_migrate_lock_row ours = e->lease.row;
    take(e, &ours, e->lease.renewed_at_ms, ours.i_phase != FGW_MIGRATE_INTENT_NONE);
    return true;
}

static bool holder_expired(struct fgw_migrate_engine *e, const struct waiting *w)
{
    int64_t lease_ms = w->seen.lease_ms;
    lease_ms = lease_ms < LEASE_MIN_MS ? LEASE_MIN_MS : lease_ms;
    lease_ms = lease_ms > LEASE_MAX_MS ? LEASE_MAX_MS : lease_ms;
    return fgw_migrate_now(e) - w->since_ms >= (uint64_t)lease_ms + e->options.timing.margin_ms;
}

static void say_waiting(struct fgw_migrate_engine *e, struct waiting *w)
{
    uint64_t now = fgw_migrate_now(e);
    if (w->said_ms != 0 && now - w->said_ms < SAY_EVERY_MS) {
        return;
    }
    w->said_ms = now;
    fgw_arena_reset(e->scratch);
    const char *command =
        fgw_arena_printf(e->scratch, "fgw migrate status --keyspace %s", e->keyspace);
    fgw_migrate_logf(e, FGW_MIGRATE_LOG_INFO,
                     "FGW-MIG-020 %s (epoch %" PRId64 ") is migrating, at %" PRId64
                     " statement %d, last heartbeat seen %" PRIu64 " s ago; waiting for %" PRIu64
                     " s; takeover is automatic %" PRId64 " s after the last heartbeat (%s)",
                     w->seen.owner_desc, w->seen.epoch, w->seen.i_version, w->seen.i_stmt,
                     (now - w->since_ms) / 1000, (now - w->began_ms) / 1000,
                     (w->seen.lease_ms + e->options.timing.margin_ms) / 1000, command);
    struct fgw_migrate_finding finding = {.code = FGW_MIGRATE_LOCK_HELD,
                                          .title = "another process is migrating; waiting",
                                          .cause = "",
                                          .diff = "",
                                          .holder = w->seen.owner_desc,
                                          .next = command};
    e->now.have_lock = true;
    e->now.lock = w->seen;
    e->report.lock_age_ms = now - w->since_ms;
    fgw_migrate_tell_waiting(e, &finding);
}

static enum fgw_migrate_exit give_up(struct fgw_migrate_engine *e, const struct waiting *w)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_LOCK_HELD, FGW_MIGRATE_ERROR);
    uint64_t age_ms = fgw_migrate_now(e) - w->since_ms;
    finding->holder = fgw_arena_printf(e->arena, "%s, last heartbeat seen %" PRIu64 " s ago",
                                       fgw_migrate_holder_text(e, &w->seen), age_ms / 1000);
    finding->cause = "still held at the wait limit";
    finding->next = fgw_migrate_command(e, "status");
    e->report.lock_age_ms = age_ms;
    return FGW_MIGRATE_EXIT_LOCKED;
}

static void observe(struct fgw_migrate_engine *e, struct waiting *w,
                    const struct fgw_migrate_lock_row *row)
{
    if (!w->known || !same_holder(&w->seen, row)) {
        w->since_ms = fgw_migrate_now(e);
    }
    w->known = true;
    w->seen = *row;
}

/* The row has vanished under the waiters: put it back, with an epoch above all evidence. */
static void restore_row(struct fgw_migrate_engine *e)
{
    int64_t evidence;
    bool applied = false;
    if (evidence_epoch(e, &evidence) == FGW_MIGRATE_EXIT_OK) {
        struct fgw_migrate_lock_row row = {.epoch = evidence + 1,
                                           .lease_ms = e->options.timing.lease_ms};
        (void)e->ops->lock_insert(e->context, e->keyspace, &row, &applied);
    }
}

/* One look at the lock row. *out_taken ends the wait; otherwise the caller sleeps. */
static enum fgw_migrate_exit look_once(struct fgw_migrate_engine *e, struct waiting *w,
                                       bool (*done)(struct fgw_migrate_engine *), bool *out_taken,
                                       bool *out_done)
{
    struct fgw_migrate_lock_row row;
    bool found = false;
    struct fgw_migrate_answer answer =
        e->ops->lock_read(e->context, FGW_MIGRATE_WORKER, e->keyspace, &row, &found);
    uint64_t since_ms = fgw_migrate_now(e) - w->began_ms;
    bool late = since_ms >= e->options.timing.wait_limit_ms;
    if (answer.class != FGW_MIGRATE_OK) {
        /* the table was seen a moment ago: a node that does not know it yet lags behind */
        bool lagging = answer.class == FGW_MIGRATE_NOT_FOUND && since_ms < LAG_MS;
        bool again = (fgw_migrate_transient(&answer) || lagging) && !late;
        return again ? FGW_MIGRATE_EXIT_OK : fgw_migrate_refused(e, "reading the lock", &answer);
    }
    if (!found) {
        restore_row(e);
        return FGW_MIGRATE_EXIT_OK;
    }
    observe(e, w, &row);
    if (is_mine(e, &row)) {
        *out_taken = take_late(e, &row);
        return FGW_MIGRATE_EXIT_OK;
    }
    if (fgw_migrate_uuid_nil(&row.owner) || holder_expired(e, w)) {
        if (w->waited && done != NULL && done(e)) {
            *out_done = true;
            return FGW_MIGRATE_EXIT_OK;
        }
        enum fgw_migrate_exit exit = try_take(e, &row, out_taken);
        return exit == FGW_MIGRATE_EXIT_OK && !*out_taken && late ? give_up(e, w) : exit;
    }
    w->waited = true;
    say_waiting(e, w);
    return late ? give_up(e, w) : FGW_MIGRATE_EXIT_OK;
}

enum fgw_migrate_exit fgw_migrate_lock(struct fgw_migrate_engine *e,
                                       bool (*done)(struct fgw_migrate_engine *), bool *out_done)
{
    struct waiting w = {.began_ms = fgw_migrate_now(e)};
    bool taken = false;
    *out_done = false;
    for (;;) {
        enum fgw_migrate_exit exit = look_once(e, &w, done, &taken, out_done);
        if (exit != FGW_MIGRATE_EXIT_OK || taken || *out_done) {
            return exit;
        }
        if (e->ops->stop_requested(e->context)) {
            fgw_migrate_note(e, "asked to stop while waiting for the lock");
            return FGW_MIGRATE_EXIT_PENDING;
        }
        w.waited = true;
        fgw_migrate_sleep_about(e, e->options.timing.poll_ms);
    }
}

/* -- releasing ----------------------------------------------------------------------------- */

enum { RELEASE_TRIES = 3 };

static void release_row(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_lock_row seen = e->lease.row;
    struct fgw_migrate_lock_row row = seen;
    memset(&row.owner, 0, sizeof row.owner);
    for (int i = 0; i < RELEASE_TRIES; i++) {
        bool applied = false;
        struct fgw_migrate_answer answer =
            e->ops->lock_update(e->context, FGW_MIGRATE_WORKER, e->keyspace, &row,
                                FGW_MIGRATE_SET_HOLDER, &seen, &applied);
        if (answer.class == FGW_MIGRATE_OK && applied) {
            return;
        }
        struct fgw_migrate_lock_row now;
        bool found = false;
        answer = e->ops->lock_read(e->context, FGW_MIGRATE_WORKER, e->keyspace, &now, &found);
        if (answer.class == FGW_MIGRATE_OK && (!found || !is_mine(e, &now))) {
            return;
        }
        fgw_migrate_sleep_about(e, RETRY_MS);
    }
    fgw_migrate_logf(e, FGW_MIGRATE_LOG_WARN,
                     "the lock could not be released; it expires by itself after %u s",
                     (e->options.timing.lease_ms + e->options.timing.margin_ms) / 1000);
}

void fgw_migrate_release(struct fgw_migrate_engine *e)
{
    if (!e->lease.held) {
        return;
    }
    fgw_migrate_point(e, FGW_MIGRATE_AT_RELEASE);
    e->ops->guard(e->context);
    e->lease.stopping = true;
    e->ops->unguard(e->context);
    e->ops->join_task(e->context);
    e->lease.held = false;
    if (e->lease.in_doubt) {
        fgw_migrate_note(e, "a DROP without an answer may still come: the lock is left to end by "
                            "itself, so that whoever takes it over waits for that");
    } else if (!e->lease.lost) {
        release_row(e);
    }
    fgw_migrate_point(e, FGW_MIGRATE_AT_RELEASED);
}
