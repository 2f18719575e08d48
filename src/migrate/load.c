/* load.c: reading what is there. Reads are repeated while the database does not answer, with the
 * attempt and the delay in the log, up to the wait limit; permanent errors are not. */
#include "migrate/migrate_internal.h"

enum { BACKOFF_MAX_MS = 15000, NOT_FOUND_TRIES = 5 };

struct retry {
    uint64_t began_ms;
    uint32_t delay_ms;
    unsigned attempt;
};

/* OK: try again (after a pause); otherwise the exit to leave with. */
static enum fgw_migrate_exit again(struct fgw_migrate_engine *e, struct retry *retry,
                                   const char *what, const struct fgw_migrate_answer *answer)
{
    bool lagging = answer->class == FGW_MIGRATE_NOT_FOUND && retry->attempt < NOT_FOUND_TRIES;
    bool late = fgw_migrate_now(e) - retry->began_ms >= e->options.timing.wait_limit_ms;
    if ((!fgw_migrate_transient(answer) && !lagging) || late ||
        e->ops->stop_requested(e->context)) {
        return fgw_migrate_refused(e, what, answer);
    }
    if (e->lease.held) {
        enum fgw_migrate_exit exit = fgw_migrate_held(e);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
    retry->attempt++;
    retry->delay_ms = retry->delay_ms == 0 ? 200 : retry->delay_ms * 2;
    retry->delay_ms = retry->delay_ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : retry->delay_ms;
    fgw_migrate_logf(e, FGW_MIGRATE_LOG_WARN, "%s: %s; attempt %u, next in about %u ms", what,
                     *answer->text ? answer->text : "no answer", retry->attempt, retry->delay_ms);
    fgw_migrate_sleep_about(e, retry->delay_ms);
    return FGW_MIGRATE_EXIT_OK;
}

static struct retry retry_begin(struct fgw_migrate_engine *e)
{
    return (struct retry){.began_ms = fgw_migrate_now(e)};
}

enum fgw_migrate_exit fgw_migrate_look(struct fgw_migrate_engine *e, const char *table,
                                       unsigned coordinator, struct fgw_migrate_table **out_table)
{
    struct retry retry = retry_begin(e);
    for (;;) {
        struct fgw_migrate_answer answer = e->ops->read_table(
            e->context, e->keyspace, table, (coordinator + retry.attempt) % 2, e->arena, out_table);
        if (answer.class == FGW_MIGRATE_OK) {
            return FGW_MIGRATE_EXIT_OK;
        }
        enum fgw_migrate_exit exit = again(e, &retry, "reading the catalog", &answer);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

static enum fgw_migrate_exit look_into(struct fgw_migrate_engine *e, const char *name,
                                       unsigned coordinator)
{
    if (fgw_migrate_catalog_find(&e->now.catalog, name) != NULL) {
        return FGW_MIGRATE_EXIT_OK;
    }
    struct fgw_migrate_table *table = NULL;
    enum fgw_migrate_exit exit = fgw_migrate_look(e, name, coordinator, &table);
    if (exit == FGW_MIGRATE_EXIT_OK && table != NULL) {
        fgw_migrate_catalog_put(&e->now.catalog, table);
    }
    return exit;
}

/* Listed tables, and those we know of: a list may be a minute old, a filtered read is not. */
static enum fgw_migrate_exit load_catalog(struct fgw_migrate_engine *e)
{
    fgw_migrate_catalog_init(&e->now.catalog, e->arena);
    struct retry retry = retry_begin(e);
    const char **names = NULL;
    size_t count = 0;
    enum fgw_migrate_exit exit = FGW_MIGRATE_EXIT_OK;
    for (;;) {
        struct fgw_migrate_answer answer =
            e->ops->list_tables(e->context, e->keyspace, e->arena, &names, &count);
        if (answer.class == FGW_MIGRATE_OK) {
            break;
        }
        exit = again(e, &retry, "listing the tables", &answer);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
    for (size_t i = 0; i < count && exit == FGW_MIGRATE_EXIT_OK; i++) {
        exit = look_into(e, names[i], 0);
    }
    for (size_t i = 0; i < e->set->file_count && exit == FGW_MIGRATE_EXIT_OK; i++) {
        const struct fgw_migrate_file *file = &e->set->files[i];
        for (int k = 0; k < file->step_count && exit == FGW_MIGRATE_EXIT_OK; k++) {
            if (file->steps[k].statement.class == FGW_MIGRATE_CREATE_TABLE) {
                exit = look_into(e, file->steps[k].statement.table, 0);
            }
        }
    }
    return exit;
}

/* Control tables are asked for by name too, so that a stale list cannot hide them. */
static enum fgw_migrate_exit load_control_shapes(struct fgw_migrate_engine *e)
{
    e->now.control = true;
    if (e->lease.held) {
        return FGW_MIGRATE_EXIT_OK; /* seen and used since; a catalog may be behind, the lease not */
    }
    const struct fgw_migrate_statement *want;
    for (size_t i = 0; (want = fgw_migrate_control_table(e, i)) != NULL; i++) {
        enum fgw_migrate_exit exit = look_into(e, want->table, 0);
        if (exit == FGW_MIGRATE_EXIT_OK) {
            exit = look_into(e, want->table, 1); /* only if the first server did not know it */
        }
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        struct fgw_migrate_diff diff;
        fgw_migrate_table_compare(e->arena, want->create,
                                  fgw_migrate_catalog_find(&e->now.catalog, want->table), &diff);
        e->now.control = e->now.control && !diff.missing_table && !diff.key && !diff.type &&
                         diff.missing_count == 0;
    }
    return FGW_MIGRATE_EXIT_OK;
}

static struct fgw_migrate_answer read_rows(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_loaded *now = &e->now;
    struct fgw_migrate_answer answer =
        e->ops->state_read(e->context, e->keyspace, &now->state, &now->have_state);
    if (answer.class == FGW_MIGRATE_OK) {
        answer = e->ops->mirror_read(e->context, e->keyspace, e->arena, &now->mirror,
                                     &now->mirror_count);
    }
    if (answer.class == FGW_MIGRATE_OK) {
        answer = e->ops->journal_read(e->context, e->keyspace, e->set->name, e->arena,
                                      &now->journal, &now->journal_count);
    }
    if (answer.class == FGW_MIGRATE_OK) {
        answer = e->ops->lock_read(e->context, FGW_MIGRATE_WORKER, e->keyspace, &now->lock,
                                   &now->have_lock);
    }
    return answer;
}

static bool mirror_usable(struct fgw_migrate_engine *e)
{
    const struct fgw_migrate_statement *want = fgw_migrate_control_table(e, 0);
    struct fgw_migrate_diff diff;
    fgw_migrate_table_compare(e->arena, want->create,
                              fgw_migrate_catalog_find(&e->now.catalog, want->table), &diff);
    return !diff.missing_table && !diff.key && !diff.type && diff.missing_count == 0;
}

static enum fgw_migrate_exit load_rows(struct fgw_migrate_engine *e)
{
    struct retry retry = retry_begin(e);
    for (;;) {
        struct fgw_migrate_answer answer = {.class = FGW_MIGRATE_OK};
        if (e->now.control) {
            answer = read_rows(e);
        } else if (mirror_usable(e)) {
            /* first contact: golang-migrate's table alone */
            answer = e->ops->mirror_read(e->context, e->keyspace, e->arena, &e->now.mirror,
                                         &e->now.mirror_count);
        }
        if (answer.class == FGW_MIGRATE_OK) {
            return FGW_MIGRATE_EXIT_OK;
        }
        enum fgw_migrate_exit exit = again(e, &retry, "reading the control tables", &answer);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}

static enum fgw_migrate_exit wrong_set(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_KEYSPACE_MISSING, FGW_MIGRATE_ERROR);
    finding->title = "the keyspace belongs to another set";
    finding->cause = fgw_arena_printf(e->arena, "it was migrated as set %s, this is set %s",
                                      e->now.state.set_name, e->set->name);
    finding->state = "nothing changed";
    finding->next = "correct FGW_CQL_KEYSPACE or FGW_CQL_NODE_KEYSPACE";
    return FGW_MIGRATE_EXIT_USAGE;
}

enum fgw_migrate_exit fgw_migrate_load(struct fgw_migrate_engine *e)
{
    e->now = (struct fgw_migrate_loaded){.control = false};
    enum fgw_migrate_exit exit = load_catalog(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = load_control_shapes(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = load_rows(e);
    }
    if (exit == FGW_MIGRATE_EXIT_OK && e->now.have_state &&
        strcmp(e->now.state.set_name, e->set->name) != 0) {
        exit = wrong_set(e);
    }
    return exit;
}

struct fgw_migrate_journal_row *fgw_migrate_journal_of(struct fgw_migrate_engine *e,
                                                       int64_t version, int stmt)
{
    for (size_t i = 0; i < e->now.journal_count; i++) {
        if (e->now.journal[i].version == version && e->now.journal[i].stmt == stmt) {
            return &e->now.journal[i];
        }
    }
    return NULL;
}

static enum fgw_migrate_exit keyspace_missing(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_KEYSPACE_MISSING, FGW_MIGRATE_ERROR);
    finding->cause = "no such keyspace in the database";
    finding->next = "fgw db-init";
    return FGW_MIGRATE_EXIT_USAGE;
}

enum fgw_migrate_exit fgw_migrate_check_keyspace(struct fgw_migrate_engine *e)
{
    struct retry retry = retry_begin(e);
    bool made = false;
    for (;;) {
        bool exists = false;
        struct fgw_migrate_answer answer =
            e->ops->keyspace_exists(e->context, e->keyspace, &exists);
        if (answer.class == FGW_MIGRATE_OK && exists) {
            return FGW_MIGRATE_EXIT_OK;
        }
        if (answer.class == FGW_MIGRATE_OK && !e->options.create_keyspace) {
            return keyspace_missing(e);
        }
        if (answer.class == FGW_MIGRATE_OK && !made) {
            answer = e->ops->keyspace_create(e->context, e->keyspace);
            made = answer.class == FGW_MIGRATE_OK || answer.class == FGW_MIGRATE_ALREADY_EXISTS;
            if (made) {
                continue; /* mostly visible at once */
            }
        }
        if (made) {
            answer = (struct fgw_migrate_answer){.class = FGW_MIGRATE_UNKNOWN,
                                                 .text = "keyspace not visible yet"};
        }
        enum fgw_migrate_exit exit = again(e, &retry, "the keyspace", &answer);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
    }
}
