/* evidence.c: writes of state, journal, history and mirror. Every write of evidence is one
 * conditional write that names what it replaces, carries our epoch and is refused by a row of a
 * higher one, so a process that lost its lease cannot overwrite what its successor recorded. An
 * answer that does not say "applied" is settled by reading the row. */
#include "migrate/migrate_internal.h"

enum { RETRY_MS = 250, TRIES_MAX = 400 };

/* Between two tries: OK to go on. */
static enum fgw_migrate_exit pause_between(struct fgw_migrate_engine *e, int attempt,
                                           const char *what,
                                           const struct fgw_migrate_answer *answer)
{
    bool wait = fgw_migrate_transient(answer) || answer->class == FGW_MIGRATE_NOT_FOUND ||
                answer->class == FGW_MIGRATE_OK;
    if (!wait || attempt >= TRIES_MAX) {
        return fgw_migrate_refused(e, what, answer);
    }
    if (e->lease.held && fgw_migrate_held(e) == FGW_MIGRATE_EXIT_LOST) {
        return FGW_MIGRATE_EXIT_LOST;
    }
    fgw_migrate_sleep_about(e, RETRY_MS);
    return FGW_MIGRATE_EXIT_OK;
}

/* A row of a higher epoch: somebody else has taken over. */
static enum fgw_migrate_exit outdated(struct fgw_migrate_engine *e)
{
    e->ops->guard(e->context);
    e->lease.lost = true;
    e->ops->unguard(e->context);
    return fgw_migrate_lost(e);
}

/* -- journal ------------------------------------------------------------------------------- */

static enum fgw_migrate_exit remember_journal(struct fgw_migrate_engine *e,
                                              const struct fgw_migrate_journal_row *row)
{
    struct fgw_migrate_journal_row *known = fgw_migrate_journal_of(e, row->version, row->stmt);
    if (known == NULL) {
        struct fgw_migrate_journal_row *grown =
            fgw_arena_alloc(e->arena, (e->now.journal_count + 1) * sizeof *grown);
        if (e->now.journal_count > 0) {
            memcpy(grown, e->now.journal, e->now.journal_count * sizeof *grown);
        }
        e->now.journal = grown;
        known = &grown[e->now.journal_count++];
    }
    *known = *row;
    return FGW_MIGRATE_EXIT_OK;
}

static bool same_journal(const struct fgw_migrate_journal_row *a,
                         const struct fgw_migrate_journal_row *b)
{
    return a->epoch == b->epoch && a->state == b->state && a->attempts == b->attempts &&
           strcmp(a->sha, b->sha) == 0;
}

/* The row as it is now; *out_seen absent: found = false. */
static struct fgw_migrate_answer reread_journal(struct fgw_migrate_engine *e,
                                                const struct fgw_migrate_journal_row *row,
                                                struct fgw_migrate_journal_row *out_seen,
                                                bool *out_found)
{
    struct fgw_migrate_journal_row *rows;
    size_t count = 0;
    fgw_arena_reset(e->scratch);
    struct fgw_migrate_answer answer =
        e->ops->journal_read(e->context, e->keyspace, e->set->name, e->scratch, &rows, &count);
    *out_found = false;
    for (size_t i = 0; answer.class == FGW_MIGRATE_OK && i < count; i++) {
        if (rows[i].version == row->version && rows[i].stmt == row->stmt) {
            *out_seen = rows[i];
            *out_found = true;
        }
    }
    return answer;
}

enum fgw_migrate_exit fgw_migrate_put_journal(struct fgw_migrate_engine *e,
                                              const struct fgw_migrate_journal_row *wanted)
{
    struct fgw_migrate_journal_row row = *wanted;
    row.epoch = e->lease.row.epoch;
    fgw_migrate_copy_text(row.owner, sizeof row.owner, e->options.actor);
    struct fgw_migrate_journal_row *known = fgw_migrate_journal_of(e, row.version, row.stmt);
    struct fgw_migrate_journal_row seen = known == NULL ? row : *known;
    bool found = known != NULL;
    for (int attempt = 0;; attempt++) {
        enum fgw_migrate_exit exit = fgw_migrate_held(e);
        if (exit == FGW_MIGRATE_EXIT_LOST) {
            return exit;
        }
        if (found && seen.epoch > row.epoch) {
            return outdated(e);
        }
        bool applied = false;
        struct fgw_migrate_answer answer =
            found ? e->ops->journal_update(e->context, e->keyspace, e->set->name, &row, &seen,
                                           &applied)
                  : e->ops->journal_insert(e->context, e->keyspace, e->set->name, &row, &applied);
        if (answer.class == FGW_MIGRATE_OK && applied) {
            return remember_journal(e, &row);
        }
        struct fgw_migrate_answer read = reread_journal(e, &row, &seen, &found);
        if (read.class == FGW_MIGRATE_OK && found && same_journal(&seen, &row)) {
            return remember_journal(e, &row);
        }
        exit = pause_between(e, attempt, "writing the journal",
                             read.class == FGW_MIGRATE_OK ? &answer : &read);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

/* -- state --------------------------------------------------------------------------------- */

static bool same_state(const struct fgw_migrate_state_row *a, const struct fgw_migrate_state_row *b)
{
    return a->epoch == b->epoch && a->version == b->version && a->min_compat == b->min_compat;
}

enum fgw_migrate_exit fgw_migrate_put_state(struct fgw_migrate_engine *e,
                                            const struct fgw_migrate_state_row *wanted)
{
    struct fgw_migrate_state_row row = *wanted;
    row.epoch = e->lease.row.epoch;
    row.updated_ms = e->ops->now_wall_ms(e->context);
    struct fgw_migrate_state_row seen = e->now.state;
    bool found = e->now.have_state;
    for (int attempt = 0;; attempt++) {
        enum fgw_migrate_exit exit = fgw_migrate_held(e);
        if (exit == FGW_MIGRATE_EXIT_LOST) {
            return exit;
        }
        if (found && seen.epoch > row.epoch) {
            return outdated(e);
        }
        if (found) {
            row.cluster_id = seen.cluster_id; /* made once, never replaced */
        }
        bool moved = found && (!e->now.have_state || seen.version != e->now.state.version);
        if (moved && seen.version > row.version) {
            /* a last write of our predecessor came in after we had read: it is not undone */
            row.version = seen.version;
            row.min_compat = seen.min_compat > row.min_compat ? seen.min_compat : row.min_compat;
        }
        bool applied = false;
        struct fgw_migrate_answer answer =
            found ? e->ops->state_update(e->context, e->keyspace, &row, &seen, &applied)
                  : e->ops->state_insert(e->context, e->keyspace, &row, &applied);
        struct fgw_migrate_answer read = {.class = FGW_MIGRATE_OK};
        if (answer.class != FGW_MIGRATE_OK || !applied) {
            read = e->ops->state_read(e->context, e->keyspace, &seen, &found);
            applied = read.class == FGW_MIGRATE_OK && found && same_state(&seen, &row);
        }
        if (applied) {
            e->now.state = row;
            e->now.have_state = true;
            return FGW_MIGRATE_EXIT_OK;
        }
        exit = pause_between(e, attempt, "writing the state",
                             read.class == FGW_MIGRATE_OK ? &answer : &read);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

/* -- history ------------------------------------------------------------------------------- */

enum fgw_migrate_exit fgw_migrate_put_history(struct fgw_migrate_engine *e, const char *event,
                                              int64_t version, int64_t from, int64_t to,
                                              const char *reason)
{
    struct fgw_migrate_history_row row = {.at_ms = e->ops->now_wall_ms(e->context),
                                          .version = version,
                                          .from_version = from,
                                          .to_version = to};
    e->ops->random(e->context, row.id.bytes, sizeof row.id.bytes);
    fgw_migrate_copy_text(row.event, sizeof row.event, event);
    fgw_migrate_copy_text(row.actor, sizeof row.actor, e->options.actor);
    fgw_migrate_copy_text(row.build, sizeof row.build, e->options.build);
    fgw_migrate_copy_text(row.reason, sizeof row.reason, reason);
    for (int attempt = 0;; attempt++) {
        /* the same key each time: a second application changes nothing */
        struct fgw_migrate_answer answer =
            e->ops->history_insert(e->context, e->keyspace, e->set->name, &row);
        if (answer.class == FGW_MIGRATE_OK) {
            return FGW_MIGRATE_EXIT_OK;
        }
        enum fgw_migrate_exit exit = pause_between(e, attempt, "writing the history", &answer);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

/* -- mirror -------------------------------------------------------------------------------- */

int64_t fgw_migrate_advertised(const struct fgw_migrate_engine *e)
{
    int64_t min_compat = e->now.state.min_compat;
    /* below our own numbers: golang-migrate's binaries may still start on this schema */
    bool legacy_may_run = min_compat > 0 && min_compat < FGW_MIGRATE_OWN_VERSIONS;
    return legacy_may_run ? min_compat : e->now.state.version;
}

bool fgw_migrate_mirror_exact(const struct fgw_migrate_engine *e)
{
    return e->now.mirror_count == 1 && !e->now.mirror[0].dirty &&
           e->now.mirror[0].version == fgw_migrate_advertised(e);
}

static enum fgw_migrate_exit read_mirror(struct fgw_migrate_engine *e)
{
    for (int attempt = 0;; attempt++) {
        struct fgw_migrate_answer answer = e->ops->mirror_read(
            e->context, e->keyspace, e->arena, &e->now.mirror, &e->now.mirror_count);
        if (answer.class == FGW_MIGRATE_OK) {
            return FGW_MIGRATE_EXIT_OK;
        }
        enum fgw_migrate_exit exit =
            pause_between(e, attempt, "reading schema_migrations", &answer);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

/* Puts the row there with this flag, whatever was there. */
static enum fgw_migrate_exit put_mirror(struct fgw_migrate_engine *e, int64_t version, bool dirty)
{
    for (int attempt = 0;; attempt++) {
        enum fgw_migrate_exit exit = read_mirror(e);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        const struct fgw_migrate_mirror_row *found = NULL;
        for (size_t i = 0; i < e->now.mirror_count; i++) {
            found = e->now.mirror[i].version == version ? &e->now.mirror[i] : found;
        }
        if (found != NULL && found->dirty == dirty) {
            return FGW_MIGRATE_EXIT_OK;
        }
        exit = fgw_migrate_held(e);
        if (exit == FGW_MIGRATE_EXIT_LOST) {
            return exit;
        }
        struct fgw_migrate_mirror_row row = {version, dirty};
        bool applied = false;
        struct fgw_migrate_answer answer =
            found == NULL ? e->ops->mirror_insert(e->context, e->keyspace, row, &applied)
                          : e->ops->mirror_update(e->context, e->keyspace, row, &applied);
        if (answer.class != FGW_MIGRATE_OK || !applied) {
            exit = pause_between(e, attempt, "writing schema_migrations", &answer);
        }
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

enum fgw_migrate_exit fgw_migrate_mirror_dirty(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = read_mirror(e);
    if (exit == FGW_MIGRATE_EXIT_OK && e->now.mirror_count == 0) {
        return put_mirror(e, fgw_migrate_advertised(e), true);
    }
    const struct fgw_migrate_mirror_row *rows = e->now.mirror;
    size_t count = e->now.mirror_count;
    for (size_t i = 0; i < count && exit == FGW_MIGRATE_EXIT_OK; i++) {
        exit = put_mirror(e, rows[i].version, true);
    }
    return exit;
}

static enum fgw_migrate_exit drop_mirror(struct fgw_migrate_engine *e, int64_t version)
{
    for (int attempt = 0;; attempt++) {
        enum fgw_migrate_exit exit = fgw_migrate_held(e);
        if (exit == FGW_MIGRATE_EXIT_LOST) {
            return exit;
        }
        struct fgw_migrate_answer answer = e->ops->mirror_delete(e->context, e->keyspace, version);
        if (answer.class == FGW_MIGRATE_OK) {
            return FGW_MIGRATE_EXIT_OK;
        }
        exit = pause_between(e, attempt, "collapsing schema_migrations", &answer);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

enum fgw_migrate_exit fgw_migrate_mirror_clean(struct fgw_migrate_engine *e)
{
    int64_t advertised = fgw_migrate_advertised(e);
    enum fgw_migrate_exit exit = put_mirror(e, advertised, false);
    fgw_migrate_point(e, FGW_MIGRATE_AT_S9_INSERTED);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = read_mirror(e);
    }
    const struct fgw_migrate_mirror_row *rows = e->now.mirror;
    size_t count = e->now.mirror_count;
    for (size_t i = 0; i < count && exit == FGW_MIGRATE_EXIT_OK; i++) {
        if (rows[i].version != advertised) {
            exit = drop_mirror(e, rows[i].version);
        }
    }
    return exit == FGW_MIGRATE_EXIT_OK ? read_mirror(e) : exit;
}
