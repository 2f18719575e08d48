/* wait.c: the startup policies `wait` and `off` (spec/migrations.md E2.9), and the registry of
 * nodes for rolling upgrades. These never run DDL. */
#include "migrate/migrate_internal.h"

enum { POLL_MAX_MS = 10000, REGISTER_TRIES = 3 };

/* Forgets an earlier look: its memory may be gone. */
static void forget(struct fgw_migrate_engine *e)
{
    e->report.findings = NULL;
    e->report.finding_count = e->report.finding_cap = 0;
    e->report.pending = NULL;
    e->report.pending_count = e->report.pending_cap = 0;
}

static enum fgw_migrate_exit too_old(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_finding *finding = fgw_migrate_find(e, FGW_MIGRATE_OLDER, FGW_MIGRATE_ERROR);
    finding->cause = fgw_arena_printf(e->arena, "have %" PRId64 ", need %" PRId64,
                                      e->now.have_state ? e->now.state.version : 0, e->set->needs);
    if (e->now.have_lock && !fgw_migrate_uuid_nil(&e->now.lock.owner)) {
        finding->holder = fgw_migrate_holder_text(e, &e->now.lock);
    }
    finding->next =
        fgw_arena_printf(e->arena, "fgw db-init (or: %s)", fgw_migrate_command(e, "up"));
    return FGW_MIGRATE_EXIT_PENDING;
}

static enum fgw_migrate_exit look(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = fgw_migrate_check_keyspace(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_load(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_compat_exit(e);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    if (!e->now.have_state || e->now.state.version < e->set->needs) {
        return too_old(e);
    }
    (void)fgw_migrate_make_plan(e);
    return fgw_migrate_compare_all(e, true);
}

static bool final(enum fgw_migrate_exit exit)
{
    return exit == FGW_MIGRATE_EXIT_OK || exit == FGW_MIGRATE_EXIT_INCOMPATIBLE;
}

/* One look whose memory is given back. */
static enum fgw_migrate_exit glance(struct fgw_migrate_engine *e, uint64_t left_ms)
{
    struct fgw_arena *arena = e->arena;
    uint32_t limit_ms = e->options.timing.wait_limit_ms;
    fgw_arena_reset(e->scratch);
    e->arena = e->scratch;
    e->options.timing.wait_limit_ms = (uint32_t)left_ms;
    forget(e);
    enum fgw_migrate_exit exit = look(e);
    if (!final(exit) && e->report.finding_count > 0) {
        const struct fgw_migrate_finding *finding = &e->report.findings[0];
        fgw_migrate_logf(e, FGW_MIGRATE_LOG_INFO, "FGW-MIG-%03d waiting: %s%s%s; next: %s",
                         finding->code, *finding->cause ? finding->cause : finding->diff,
                         *finding->holder ? "; migrating now: " : "", finding->holder,
                         finding->next);
        fgw_migrate_tell_waiting(e, finding);
    }
    forget(e);
    e->arena = arena;
    e->options.timing.wait_limit_ms = limit_ms;
    return exit;
}

static enum fgw_migrate_exit wait_for_schema(struct fgw_migrate_engine *e)
{
    uint64_t until = fgw_migrate_now(e) + e->options.timing.wait_limit_ms;
    uint32_t poll_ms = e->options.timing.poll_ms;
    for (;;) {
        uint64_t now = fgw_migrate_now(e);
        enum fgw_migrate_exit exit = glance(e, now < until ? until - now : 1);
        bool over =
            final(exit) || fgw_migrate_now(e) >= until || e->ops->stop_requested(e->context);
        if (over) {
            /* once more for the report, in memory that stays */
            e->options.timing.wait_limit_ms = 1;
            exit = look(e);
            return exit == FGW_MIGRATE_EXIT_USAGE ? FGW_MIGRATE_EXIT_PENDING : exit;
        }
        fgw_migrate_sleep_about(e, poll_ms);
        poll_ms = 2 * poll_ms > POLL_MAX_MS ? POLL_MAX_MS : 2 * poll_ms;
    }
}

enum fgw_migrate_exit fgw_migrate_wait(struct fgw_migrate_engine *e)
{
    return fgw_migrate_finish(e, "wait", wait_for_schema(e));
}

enum fgw_migrate_exit fgw_migrate_check(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = look(e);
    /* nobody will wait: too old is as final as too new */
    return fgw_migrate_finish(
        e, "check", exit == FGW_MIGRATE_EXIT_PENDING ? FGW_MIGRATE_EXIT_INCOMPATIBLE : exit);
}

enum fgw_migrate_exit fgw_migrate_register(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_node_row row = {
        .needs = e->set->needs, .knows = e->set->knows, .seen_ms = e->ops->now_wall_ms(e->context)};
    fgw_migrate_copy_text(row.node_id, sizeof row.node_id, e->options.node_id);
    fgw_migrate_copy_text(row.role, sizeof row.role, e->options.role);
    fgw_migrate_copy_text(row.build, sizeof row.build, e->options.build);
    struct fgw_migrate_answer answer = {.class = FGW_MIGRATE_UNKNOWN};
    for (int i = 0; i < REGISTER_TRIES; i++) {
        answer = e->ops->nodes_write(e->context, e->keyspace, &row);
        if (answer.class == FGW_MIGRATE_OK || !fgw_migrate_transient(&answer)) {
            break;
        }
        fgw_migrate_sleep_about(e, e->options.timing.poll_ms);
    }
    return fgw_migrate_finish(e, "register",
                              answer.class == FGW_MIGRATE_OK
                                  ? FGW_MIGRATE_EXIT_OK
                                  : fgw_migrate_refused(e, "fgw_schema_nodes", &answer));
}
