/* verify.c: the keyspace against the model (spec/migrations.md E2.6). A difference is believed
 * when it is seen twice, through two coordinators. */
#include "migrate/migrate_internal.h"

enum { LOOKS = 3 };

/* Looks again at a table that seemed to differ; *out_diff is what the last two looks agree on. */
static enum fgw_migrate_exit look_again(struct fgw_migrate_engine *e,
                                        const struct fgw_migrate_table *want,
                                        struct fgw_migrate_diff *out_diff)
{
    for (unsigned i = 1; i <= LOOKS; i++) {
        struct fgw_migrate_table *have = NULL;
        fgw_migrate_sleep_about(e, e->options.timing.poll_ms / 4 + 1);
        enum fgw_migrate_exit exit = fgw_migrate_look(e, want->name, i, &have);
        if (exit != FGW_MIGRATE_EXIT_OK) {
            return exit;
        }
        struct fgw_migrate_diff diff;
        fgw_migrate_table_compare(e->arena, want, have, &diff);
        bool agreed = strcmp(diff.text, out_diff->text) == 0;
        *out_diff = diff;
        if (have != NULL) {
            fgw_migrate_catalog_put(&e->now.catalog, have);
        }
        if (diff.equal || agreed) {
            break;
        }
    }
    return FGW_MIGRATE_EXIT_OK;
}

static const struct fgw_migrate_step *maker_of(const struct fgw_migrate_engine *e,
                                               const char *table)
{
    for (size_t i = 0; i < e->set->file_count; i++) {
        for (int k = 0; k < e->set->files[i].step_count; k++) {
            const struct fgw_migrate_step *step = &e->set->files[i].steps[k];
            if (step->statement.class == FGW_MIGRATE_CREATE_TABLE &&
                strcmp(step->statement.table, table) == 0) {
                return step;
            }
        }
    }
    return NULL;
}

static bool only_extra(const struct fgw_migrate_diff *diff)
{
    return !diff->missing_table && !diff->key && !diff->type && !diff->options &&
           diff->missing_count == 0 && diff->extra_count > 0;
}

static enum fgw_migrate_exit report_table(struct fgw_migrate_engine *e,
                                          const struct fgw_migrate_table *want,
                                          const struct fgw_migrate_diff *diff, bool report)
{
    bool newer = e->now.have_state && e->now.state.version > e->set->knows;
    bool mild = newer || (only_extra(diff) && !e->options.strict);
    if (report) {
        bool absent = diff->missing_table || (diff->missing_count > 0 && !diff->key && !diff->type);
        struct fgw_migrate_finding *finding =
            fgw_migrate_find(e, absent ? FGW_MIGRATE_NOT_PRESENT : FGW_MIGRATE_SHAPE_CONFLICT,
                             mild ? FGW_MIGRATE_WARNING : FGW_MIGRATE_ERROR);
        const struct fgw_migrate_step *maker = maker_of(e, want->name);
        finding->object = want->name;
        finding->step = maker == NULL ? "" : fgw_migrate_step_text(e, maker);
        finding->diff = diff->text;
        finding->cause = only_extra(diff) ? "columns nobody of ours asked for"
                         : newer          ? "a newer schema than this binary's"
                                          : "changed outside the migrations";
        finding->next = mild ? "" : fgw_migrate_command(e, "repair");
    }
    return mild ? FGW_MIGRATE_EXIT_OK : FGW_MIGRATE_EXIT_DRIFT;
}

static bool legacy_table(struct fgw_migrate_engine *e, const char *name)
{
    size_t count;
    const struct fgw_migrate_legacy *tables = fgw_migrate_legacy_tables(&count);
    for (size_t i = 0; i < count; i++) {
        struct fgw_migrate_statement statement;
        if (fgw_migrate_parse_text(e->arena, tables[i].create, NULL, &statement) == FGW_OK &&
            strcmp(statement.table, name) == 0) {
            return true;
        }
    }
    return false;
}

static void report_unmanaged(struct fgw_migrate_engine *e,
                             const struct fgw_migrate_catalog *expected)
{
    for (size_t i = 0; i < e->now.catalog.table_count; i++) {
        const char *name = e->now.catalog.tables[i]->name;
        if (fgw_migrate_is_control(name) || fgw_migrate_catalog_find(expected, name) != NULL ||
            maker_of(e, name) != NULL) {
            continue;
        }
        bool legacy = legacy_table(e, name);
        struct fgw_migrate_finding *finding =
            fgw_migrate_find(e, FGW_MIGRATE_NOTE, legacy ? FGW_MIGRATE_INFO : FGW_MIGRATE_WARNING);
        finding->title = legacy ? "legacy table, unused" : "table not managed by this set";
        finding->object = name;
        if (strstr(name, "_saved_") != NULL && !fgw_migrate_copied_back(e, name)) {
            finding->title = "rows moved here by a repair that did not finish";
            finding->next = fgw_migrate_command(e, "repair");
        }
        finding->state = legacy ? "kept; `fgw import` reads old objects from it" : "kept";
    }
}

/* Everything but our control tables. */
static void hash_catalog(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_catalog rest;
    fgw_migrate_catalog_init(&rest, e->arena);
    for (size_t i = 0; i < e->now.catalog.table_count; i++) {
        if (!fgw_migrate_is_control(e->now.catalog.tables[i]->name)) {
            fgw_migrate_catalog_put(&rest, e->now.catalog.tables[i]);
        }
    }
    fgw_migrate_catalog_hash(&rest, e->report.catalog_hash);
}

enum fgw_migrate_exit fgw_migrate_compare_all(struct fgw_migrate_engine *e, bool report)
{
    struct fgw_migrate_catalog expected;
    fgw_migrate_expected(e->arena, e->set, e->now.have_state ? e->now.state.version : 0,
                         e->contract_done, &expected);
    enum fgw_migrate_exit worst = FGW_MIGRATE_EXIT_OK;
    for (size_t i = 0; i < expected.table_count; i++) {
        const struct fgw_migrate_table *want = expected.tables[i];
        struct fgw_migrate_diff diff;
        fgw_migrate_table_compare(e->arena, want,
                                  fgw_migrate_catalog_find(&e->now.catalog, want->name), &diff);
        if (diff.equal) {
            continue;
        }
        if (!only_extra(&diff)) {
            enum fgw_migrate_exit exit = look_again(e, want, &diff);
            if (exit != FGW_MIGRATE_EXIT_OK) {
                return exit;
            }
        }
        if (!diff.equal) {
            worst = fgw_migrate_worse(worst, report_table(e, want, &diff, report));
        }
    }
    hash_catalog(e);
    if (report) {
        report_unmanaged(e, &expected);
    }
    return worst;
}

static enum fgw_migrate_exit no_state(struct fgw_migrate_engine *e)
{
    struct fgw_migrate_adoption adoption;
    enum fgw_migrate_exit exit = fgw_migrate_judge(e, &adoption);
    fgw_migrate_note(e, "no state row yet: this would be judged as %s at version %" PRId64,
                     adoption.how, adoption.version);
    return exit == FGW_MIGRATE_EXIT_OK ? FGW_MIGRATE_EXIT_PENDING : exit;
}

static enum fgw_migrate_exit verify(struct fgw_migrate_engine *e)
{
    enum fgw_migrate_exit exit = fgw_migrate_check_keyspace(e);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = fgw_migrate_load(e);
    }
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    if (!e->now.have_state) {
        exit = no_state(e);
        hash_catalog(e);
        return exit;
    }
    exit = fgw_migrate_compat_exit(e);
    if (exit != FGW_MIGRATE_EXIT_OK) {
        return exit;
    }
    exit = fgw_migrate_make_plan(e);
    exit = fgw_migrate_worse(exit, fgw_migrate_compare_all(e, true));
    fgw_migrate_legacy_findings(e);
    if (exit == FGW_MIGRATE_EXIT_OK && e->report.pending_count > 0) {
        exit = FGW_MIGRATE_EXIT_PENDING;
    }
    return exit;
}

enum fgw_migrate_exit fgw_migrate_verify(struct fgw_migrate_engine *e)
{
    return fgw_migrate_finish(e, "verify", verify(e));
}
