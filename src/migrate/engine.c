/* engine.c: construction and the small services of the engine; see engine.h. */
#include "migrate/migrate_internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"

const struct fgw_migrate_timing fgw_migrate_default_timing = {
    .lease_ms = 30000,
    .heartbeat_ms = 5000,
    .margin_ms = 5000,
    .ddl_timeout_ms = 180000,
    .ddl_grace_ms = 30000,
    .poll_ms = 1000,
    .wait_limit_ms = 600000,
};

struct fgw_migrate_engine *fgw_migrate_engine_new(const struct fgw_migrate_ops *ops,
                                                  struct fgw_arena *arena,
                                                  struct fgw_arena *scratch,
                                                  const struct fgw_migrate_options *options)
{
    struct fgw_migrate_engine *e = fgw_arena_zalloc(arena, sizeof *e);
    e->ops = ops;
    e->context = ops->context;
    e->arena = arena;
    e->scratch = scratch;
    e->options = *options;
    e->set = options->set;
    e->keyspace = options->keyspace;
    ops->random(e->context, e->me.bytes, sizeof e->me.bytes);
    e->me.bytes[0] |= 1; /* never nil */
    for (size_t i = 0; i < e->set->file_count; i++) {
        e->step_count += (size_t)e->set->files[i].step_count;
    }
    e->progress = fgw_arena_zalloc(arena, (e->step_count + 1) * sizeof *e->progress);
    e->contract_done = fgw_arena_zalloc(arena, e->set->file_count + 1);
    e->report.keyspace = e->keyspace;
    e->report.set = e->set->name;
    e->report.target = e->set->needs;
    return e;
}

const struct fgw_migrate_report *fgw_migrate_report(const struct fgw_migrate_engine *engine)
{
    return &engine->report;
}

uint64_t fgw_migrate_now(struct fgw_migrate_engine *e)
{
    return e->ops->now_boot_ms(e->context);
}

void fgw_migrate_sleep(struct fgw_migrate_engine *e, uint32_t ms)
{
    e->ops->sleep_ms(e->context, ms);
}

void fgw_migrate_sleep_about(struct fgw_migrate_engine *e, uint32_t ms)
{
    uint32_t chance;
    e->ops->random(e->context, &chance, sizeof chance);
    fgw_migrate_sleep(e, ms - ms / 4 + chance % (ms / 2 + 1));
}

void fgw_migrate_point(struct fgw_migrate_engine *e, enum fgw_migrate_point point)
{
    if (e->ops->point != NULL) {
        e->ops->point(e->context, point);
    }
}

void fgw_migrate_logf(struct fgw_migrate_engine *e, enum fgw_migrate_log_level level,
                      const char *format, ...)
{
    char line[512];
    int at = snprintf(line, sizeof line, "%s: ", e->keyspace);
    FGW_CHECK(at > 0);
    if ((size_t)at < sizeof line) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(line + at, sizeof line - (size_t)at, format, args);
        va_end(args);
    }
    e->ops->log(e->context, level, line);
}

struct fgw_migrate_finding *fgw_migrate_find(struct fgw_migrate_engine *e,
                                             enum fgw_migrate_code code,
                                             enum fgw_migrate_severity severity)
{
    struct fgw_migrate_report *report = &e->report;
    if (report->finding_count == report->finding_cap) {
        size_t cap = report->finding_cap == 0 ? 16 : 2 * report->finding_cap;
        struct fgw_migrate_finding *grown = fgw_arena_alloc(e->arena, cap * sizeof *grown);
        if (report->finding_count > 0) {
            memcpy(grown, report->findings, report->finding_count * sizeof *grown);
        }
        report->findings = grown;
        report->finding_cap = cap;
    }
    struct fgw_migrate_finding *finding = &report->findings[report->finding_count++];
    *finding = (struct fgw_migrate_finding){.code = code,
                                            .severity = severity,
                                            .title = "",
                                            .server = "",
                                            .object = "",
                                            .step = "",
                                            .diff = "",
                                            .cause = "",
                                            .state = "",
                                            .holder = "",
                                            .next = ""};
    return finding;
}

void fgw_migrate_note(struct fgw_migrate_engine *e, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct fgw_migrate_finding *finding = fgw_migrate_find(e, FGW_MIGRATE_NOTE, FGW_MIGRATE_INFO);
    finding->title = fgw_arena_strdup(e->arena, fgw_bytes_str(text));
    fgw_migrate_logf(e, FGW_MIGRATE_LOG_INFO, "%s", text);
}

const char *fgw_migrate_command(struct fgw_migrate_engine *e, const char *verb_and_flags)
{
    return fgw_arena_printf(e->arena, "fgw migrate %s --keyspace %s", verb_and_flags, e->keyspace);
}

bool fgw_migrate_transient(const struct fgw_migrate_answer *answer)
{
    return answer->class == FGW_MIGRATE_UNKNOWN || answer->class == FGW_MIGRATE_NOT_APPLIED ||
           answer->class == FGW_MIGRATE_UNREACHABLE;
}

enum fgw_migrate_exit fgw_migrate_refused(struct fgw_migrate_engine *e, const char *what,
                                          const struct fgw_migrate_answer *answer)
{
    enum fgw_migrate_code code = FGW_MIGRATE_STATEMENT_FAILED;
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_FAILED;
    const char *next = fgw_migrate_command(e, "status");
    if (answer->class == FGW_MIGRATE_AUTH) {
        code = FGW_MIGRATE_NO_PERMISSION;
        exit = FGW_MIGRATE_EXIT_USAGE;
        next = fgw_arena_printf(e->arena,
                                "grant the role of FGW_CQL_USER CREATE, ALTER, SELECT and"
                                " MODIFY on keyspace %s, then: %s",
                                e->keyspace, fgw_migrate_command(e, "up"));
    } else if (fgw_migrate_transient(answer)) {
        code = FGW_MIGRATE_DB_UNREACHABLE;
        exit = FGW_MIGRATE_EXIT_UNREACHABLE;
        next = fgw_arena_printf(e->arena, "fgw doctor; then: %s", fgw_migrate_command(e, "up"));
    }
    struct fgw_migrate_finding *finding = fgw_migrate_find(e, code, FGW_MIGRATE_ERROR);
    finding->server = fgw_arena_strdup(e->arena, fgw_bytes_str(answer->server));
    finding->cause =
        fgw_arena_printf(e->arena, "%s: %s", what, *answer->text ? answer->text : "no answer");
    finding->ql_error = answer->ql_error;
    finding->next = next;
    return exit;
}

const char *fgw_migrate_step_text(struct fgw_migrate_engine *e, const struct fgw_migrate_step *step)
{
    const struct fgw_migrate_statement *statement = &step->statement;
    const char *column = statement->column.name == NULL
                             ? ""
                             : fgw_arena_printf(e->arena, ".%s", statement->column.name);
    return fgw_arena_printf(e->arena, "%s/%" PRId64 " %s, statement %d/%d, line %u: %s %s%s",
                            e->set->name, step->file->version, step->file->name, step->number,
                            step->file->step_count, statement->line,
                            fgw_migrate_class_name(statement->class), statement->table, column);
}

size_t fgw_migrate_step_index(const struct fgw_migrate_engine *e,
                              const struct fgw_migrate_step *step)
{
    size_t index = 0;
    for (const struct fgw_migrate_file *file = e->set->files; file != step->file; file++) {
        index += (size_t)file->step_count;
    }
    return index + (size_t)step->number - 1;
}

void fgw_migrate_uuid_text(const struct fgw_migrate_uuid *uuid, char out_text[37])
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            out_text[at++] = '-';
        }
        out_text[at++] = digits[uuid->bytes[i] >> 4];
        out_text[at++] = digits[uuid->bytes[i] & 15];
    }
    out_text[at] = '\0';
}

bool fgw_migrate_uuid_nil(const struct fgw_migrate_uuid *uuid)
{
    static const struct fgw_migrate_uuid nil;
    return fgw_migrate_uuid_eq(uuid, &nil);
}

bool fgw_migrate_uuid_eq(const struct fgw_migrate_uuid *a, const struct fgw_migrate_uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

void fgw_migrate_copy_text(char *out, size_t size, const char *text)
{
    size_t len = strnlen(text, size - 1);
    memcpy(out, text, len);
    out[len] = '\0';
}

enum fgw_migrate_exit fgw_migrate_worse(enum fgw_migrate_exit a, enum fgw_migrate_exit b)
{
    static const int order[] = {1, 2, 7, 10, 4, 5, 9, 8, 6, 3, 0};
    for (size_t i = 0; i < FGW_COUNT_OF(order); i++) {
        if ((int)a == order[i] || (int)b == order[i]) {
            return (enum fgw_migrate_exit)order[i];
        }
    }
    return FGW_MIGRATE_EXIT_INTERNAL;
}

enum fgw_migrate_compat fgw_migrate_compat(int64_t version, int64_t min_compat, int64_t needs,
                                           int64_t knows)
{
    if (version < needs) {
        return FGW_MIGRATE_COMPAT_TOO_OLD;
    }
    if (version < knows) {
        return FGW_MIGRATE_COMPAT_PENDING;
    }
    if (version == knows) {
        return FGW_MIGRATE_COMPAT_OK;
    }
    return min_compat <= knows ? FGW_MIGRATE_COMPAT_NEWER_COMPATIBLE
                               : FGW_MIGRATE_COMPAT_NEWER_INCOMPATIBLE;
}

const char *fgw_migrate_compat_name(enum fgw_migrate_compat compat)
{
    static const char *const names[] = {"TOO_OLD", "PENDING", "OK", "NEWER_COMPATIBLE",
                                        "NEWER_INCOMPATIBLE"};
    return names[compat];
}

static void fill_report(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_report *report = &e->report;
    report->have_state = e->now.have_state;
    if (e->now.have_state) {
        report->version = e->now.state.version;
        report->min_compat = e->now.state.min_compat;
    }
    report->compat =
        fgw_migrate_compat(report->version, report->min_compat, e->set->needs, e->set->knows);
    report->have_lock_row = e->now.have_lock;
    report->lock = e->now.lock;
    report->mirror = e->now.mirror;
    report->mirror_count = e->now.mirror_count;
}

void fgw_migrate_tell_waiting(struct fgw_migrate_engine *e,
                              const struct fgw_migrate_finding *finding)
{
    if (e->options.waiting != NULL) {
        fill_report(e);
        e->options.waiting(e->options.waiting_context, &e->report, finding);
    }
}

enum fgw_migrate_exit fgw_migrate_finish(struct fgw_migrate_engine *e, const char *command,
                                         enum fgw_migrate_exit exit)
{
    fill_report(e);
    e->report.command = command;
    e->report.exit = exit;
    return exit;
}
