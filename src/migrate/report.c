/* report.c: findings as text (spec/migrations.md E2.11). JSON is made from the same fields. */
#include "migrate/migrate_internal.h"

const char *fgw_migrate_code_title(enum fgw_migrate_code code)
{
    switch (code) {
    case FGW_MIGRATE_NOTE:
        return "";
    case FGW_MIGRATE_KEYSPACE_MISSING:
        return "keyspace is missing";
    case FGW_MIGRATE_NO_PERMISSION:
        return "no permission";
    case FGW_MIGRATE_DB_UNREACHABLE:
        return "database does not answer";
    case FGW_MIGRATE_LOCK_HELD:
        return "another process is migrating";
    case FGW_MIGRATE_LEASE_LOST:
        return "the migration lock was lost";
    case FGW_MIGRATE_STATEMENT_FAILED:
        return "statement failed";
    case FGW_MIGRATE_SHAPE_CONFLICT:
        return "table exists with a different shape";
    case FGW_MIGRATE_NOT_PRESENT:
        return "recorded but not present";
    case FGW_MIGRATE_NOT_VISIBLE:
        return "not visible in time";
    case FGW_MIGRATE_EDITED:
        return "an applied migration was edited";
    case FGW_MIGRATE_OUT_OF_ORDER:
        return "migration out of order";
    case FGW_MIGRATE_VERSION_LOST:
        return "the schema version is lost";
    case FGW_MIGRATE_FOREIGN_WRITER:
        return "another program writes schema_migrations";
    case FGW_MIGRATE_NEWER:
        return "schema is newer than this binary";
    case FGW_MIGRATE_OLDER:
        return "schema is older than this binary needs";
    case FGW_MIGRATE_BLOCKED_BY_NODES:
        return "nodes are running that could not run afterwards";
    }
    return "";
}

static void line(struct fgw_arena *arena, const char **text, const char *name, const char *value)
{
    if (*value) {
        *text = fgw_arena_printf(arena, "%s  %-9s %s\n", *text, name, value);
    }
}

const char *fgw_migrate_finding_text(struct fgw_arena *arena,
                                     const struct fgw_migrate_report *report,
                                     const struct fgw_migrate_finding *finding)
{
    const char *title = *finding->title ? finding->title : fgw_migrate_code_title(finding->code);
    const char *text = finding->code == FGW_MIGRATE_NOTE
                           ? fgw_arena_printf(arena, "%s\n", title)
                           : fgw_arena_printf(arena, "FGW-MIG-%03d %s\n", finding->code, title);
    line(arena, &text, "keyspace",
         fgw_arena_printf(arena, "%s (set %s)%s%s", report->keyspace, report->set,
                          *finding->server ? "   server " : "", finding->server));
    line(arena, &text, "object", *finding->step ? "" : finding->object);
    line(arena, &text, "step", finding->step);
    line(arena, &text, "diff", finding->diff);
    line(arena, &text, "cause", finding->cause);
    line(arena, &text, "ql error",
         finding->ql_error == 0 ? "" : fgw_arena_printf(arena, "%d", finding->ql_error));
    line(arena, &text, "holder", finding->holder);
    line(arena, &text, "state", finding->state);
    line(arena, &text, "next", finding->next);
    return text;
}
