/* schema_metrics.c: see schema_metrics.h. Process-wide, since a process has one database; the lock is
 * held for copying only. */
#include "bin/schema_metrics.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "console/metrics.h"

enum { KEYSPACES_MAX = 2, NAME_SIZE = 64 };

struct figures {
    char keyspace[NAME_SIZE];
    char set[16];
    int64_t version, target, epoch;
    int exit, compat;
    uint64_t lock_age_ms, statements, statements_ms, applied, reconciled, failed, drift;
};

static struct {
    pthread_mutex_t lock;
    struct figures items[KEYSPACES_MAX];
    size_t count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct figures *find(const char *keyspace)
{
    for (size_t i = 0; i < table.count; i++) {
        if (strcmp(table.items[i].keyspace, keyspace) == 0) {
            return &table.items[i];
        }
    }
    if (table.count == KEYSPACES_MAX) {
        return NULL;
    }
    struct figures *made = &table.items[table.count++];
    *made = (struct figures){0};
    (void)snprintf(made->keyspace, sizeof made->keyspace, "%s", keyspace);
    return made;
}

static uint64_t count_drift(const struct fgw_migrate_report *report)
{
    uint64_t count = 0;
    for (size_t i = 0; i < report->finding_count; i++) {
        count += report->findings[i].severity != FGW_MIGRATE_INFO;
    }
    return count;
}

void fgw_schema_metrics_note(const struct fgw_migrate_report *report, unsigned statements,
                             uint64_t statements_ms)
{
    (void)pthread_mutex_lock(&table.lock);
    struct figures *figures = find(report->keyspace);
    if (figures != NULL) {
        (void)snprintf(figures->set, sizeof figures->set, "%s", report->set);
        figures->version = report->have_state ? report->version : 0;
        figures->target = report->target;
        figures->epoch = report->lock.epoch;
        figures->lock_age_ms = report->lock_age_ms;
        figures->exit = (int)report->exit;
        figures->compat = report->have_state ? (int)report->compat : -1;
        figures->statements += statements;
        figures->statements_ms += statements_ms;
        figures->applied += (uint64_t)report->applied;
        figures->reconciled += (uint64_t)report->reconciled;
        figures->failed += (uint64_t)report->failed;
        figures->drift = count_drift(report);
    }
    (void)pthread_mutex_unlock(&table.lock);
}

struct copy {
    struct figures items[KEYSPACES_MAX];
    size_t count;
};

#define EACH(copy_, out_, name_, type_, help_, format_, value_) \
    do { \
        fgw_metrics_family((out_), (name_), (type_), (help_)); \
        for (size_t i_ = 0; i_ < (copy_)->count; i_++) { \
            const struct figures *at = &(copy_)->items[i_]; \
            (void)fgw_buf_appendf((out_), "%s{keyspace=\"%s\",set=\"%s\"} " format_ "\n", (name_), \
                                  at->keyspace, at->set, (value_)); \
        } \
    } while (0)

static void write_versions(const struct copy *copy, struct fgw_buf *out)
{
    EACH(copy, out, "fgw_schema_version", "gauge", "Version of the schema; 0: none.", "%" PRId64,
         at->version);
    EACH(copy, out, "fgw_schema_target", "gauge", "Highest version this program has.", "%" PRId64,
         at->target);
    EACH(copy, out, "fgw_schema_state", "gauge",
         "Exit code of the last look: 0 is as needed (fgw migrate status).", "%d", at->exit);
    EACH(copy, out, "fgw_schema_drift", "gauge",
         "Findings of the last look at the catalog: tables that differ or are missing, warnings.",
         "%" PRIu64, at->drift);
    EACH(copy, out, "fgw_schema_lock_epoch", "gauge", "Epoch of the migration lock.", "%" PRId64,
         at->epoch);
    EACH(copy, out, "fgw_schema_lock_age_seconds", "gauge",
         "How long its holder has not been heard of.", "%.3f", (double)at->lock_age_ms / 1000);
}

static void write_counters(const struct copy *copy, struct fgw_buf *out)
{
    EACH(copy, out, "fgw_schema_statements_total", "counter", "DDL statements sent.", "%" PRIu64,
         at->statements);
    EACH(copy, out, "fgw_schema_statement_seconds_total", "counter", "Time they took.", "%.3f",
         (double)at->statements_ms / 1000);
    EACH(copy, out, "fgw_schema_applied_total", "counter", "Statements of migrations done.",
         "%" PRIu64, at->applied);
    EACH(copy, out, "fgw_schema_reconciled_total", "counter", "Statements found done, by whomever.",
         "%" PRIu64, at->reconciled);
    EACH(copy, out, "fgw_schema_failed_total", "counter", "Statements that failed.", "%" PRIu64,
         at->failed);
}

void fgw_schema_metrics_write(void *context, struct fgw_buf *out)
{
    struct copy copy;
    (void)context;
    (void)pthread_mutex_lock(&table.lock);
    memcpy(copy.items, table.items, sizeof copy.items);
    copy.count = table.count;
    (void)pthread_mutex_unlock(&table.lock);
    if (copy.count > 0) {
        write_versions(&copy, out);
        write_counters(&copy, out);
    }
}
