/* adopt.c: first contact with a keyspace that has no state row (spec/migrations.md E2.7): fresh,
 * made by golang-migrate or an init service, or ours with the state lost. The catalog decides;
 * mirror and journal are evidence. */
#include "migrate/migrate_internal.h"

#include "base/check.h"

/* -- legacy -------------------------------------------------------------------------------- */

static bool legacy_satisfied(struct fgw_migrate_engine *e, const struct fgw_migrate_legacy *legacy,
                             struct fgw_migrate_diff *out_diff, const char **out_table)
{
    struct fgw_migrate_statement statement;
    FGW_CHECK(fgw_migrate_parse_text(e->arena, legacy->create, NULL, &statement) == FGW_OK);
    fgw_migrate_table_compare(e->arena, statement.create,
                              fgw_migrate_catalog_find(&e->now.catalog, statement.table), out_diff);
    *out_table = statement.table;
    return !out_diff->missing_table && !out_diff->key && !out_diff->type &&
           out_diff->missing_count == 0;
}

int64_t fgw_migrate_legacy_level(struct fgw_migrate_engine *e)
{
    size_t count;
    const struct fgw_migrate_legacy *tables = fgw_migrate_legacy_tables(&count);
    int64_t level = 0;
    int64_t whole = 0; /* the last version all of whose tables were seen */
    for (size_t i = 0; i < count; i++) {
        struct fgw_migrate_diff diff;
        const char *table;
        whole = tables[i].version != level ? level : whole;
        if (!legacy_satisfied(e, &tables[i], &diff, &table)) {
            return whole;
        }
        level = tables[i].version;
    }
    return level;
}

static bool in_set(const struct fgw_migrate_engine *e, const char *table)
{
    for (size_t i = 0; i < e->set->file_count; i++) {
        for (int k = 0; k < e->set->files[i].step_count; k++) {
            if (strcmp(e->set->files[i].steps[k].statement.table, table) == 0) {
                return true;
            }
        }
    }
    return false;
}

void fgw_migrate_legacy_findings(struct fgw_migrate_engine *e)
{
    size_t count;
    const struct fgw_migrate_legacy *tables = fgw_migrate_legacy_tables(&count);
    for (size_t i = 0; i < count; i++) {
        struct fgw_migrate_diff diff;
        const char *table;
        bool satisfied = legacy_satisfied(e, &tables[i], &diff, &table);
        if (satisfied || diff.missing_table || in_set(e, table)) {
            continue;
        }
        struct fgw_migrate_finding *finding =
            fgw_migrate_find(e, FGW_MIGRATE_NOT_PRESENT, FGW_MIGRATE_WARNING);
        finding->title = "legacy table differs from its migration";
        finding->object = table;
        finding->step = fgw_arena_printf(e->arena, "legacy %" PRId64, tables[i].version);
        finding->diff = diff.text;
        finding->cause = "an earlier text of the same migration made it, or another program";
        finding->state = "kept as it is; nothing of ours uses it but `fgw import`";
        finding->next = fgw_migrate_command(e, "repair");
    }
}

static bool any_legacy(struct fgw_migrate_engine *e)
{
    size_t count;
    const struct fgw_migrate_legacy *tables = fgw_migrate_legacy_tables(&count);
    for (size_t i = 0; i < count; i++) {
        struct fgw_migrate_diff diff;
        const char *table;
        (void)legacy_satisfied(e, &tables[i], &diff, &table);
        if (!diff.missing_table) {
            return true;
        }
    }
    return false;
}

/* -- judging ------------------------------------------------------------------------------- */

struct judgement {
    struct fgw_migrate_adoption *out;
    bool known;     /* some table of ours or of the legacy is there */
    bool journaled; /* the journal names steps of ours */
};

static int64_t first_own_version(const struct fgw_migrate_engine *e)
{
    for (size_t i = 0; i < e->set->file_count; i++) {
        if (e->set->files[i].version >= FGW_MIGRATE_OWN_VERSIONS) {
            return e->set->files[i].version;
        }
    }
    return FGW_MIGRATE_OWN_VERSIONS;
}

static int64_t highest_legacy_file(const struct fgw_migrate_engine *e)
{
    int64_t highest = 0;
    for (size_t i = 0; i < e->set->file_count; i++) {
        if (e->set->files[i].version < FGW_MIGRATE_OWN_VERSIONS) {
            highest = e->set->files[i].version;
        }
    }
    return highest;
}

/* Lowest "knows" that may still run. golang-migrate's binaries may when every table up to a
 * version they stop at is there, and no later one of theirs would collide with ours. */
static int64_t judge_min_compat(struct fgw_migrate_engine *e)
{
    int64_t min_compat = first_own_version(e);
    int64_t level = fgw_migrate_legacy_level(e);
    if (level > 0 && level >= highest_legacy_file(e)) {
        min_compat = level;
    }
    for (size_t i = 0; i < e->set->file_count; i++) {
        const struct fgw_migrate_file *file = &e->set->files[i];
        bool done = file->contract;
        for (int k = 1; done && k <= file->step_count; k++) {
            done = fgw_migrate_recorded(fgw_migrate_journal_of(e, file->version, k));
        }
        min_compat = done && file->min_compat > min_compat ? file->min_compat : min_compat;
    }
    return min_compat;
}

enum evidence { EVIDENCE_NO, EVIDENCE_YES, EVIDENCE_NEUTRAL };

static enum evidence judge_one(struct fgw_migrate_engine *e, struct judgement *j,
                               const struct fgw_migrate_step *step)
{
    const struct fgw_migrate_journal_row *row =
        fgw_migrate_journal_of(e, step->file->version, step->number);
    const struct fgw_migrate_table *have =
        fgw_migrate_catalog_find(&e->now.catalog, step->statement.table);
    j->known = j->known || have != NULL;
    if (fgw_migrate_recorded(row)) {
        j->journaled = true;
        return EVIDENCE_YES;
    }
    const char *diff;
    enum fgw_migrate_inspection found = fgw_migrate_inspect(e, step, have, &diff);
    bool fades = step->file->contract || step->statement.class == FGW_MIGRATE_UPSERT ||
                 (found != FGW_MIGRATE_SATISFIED && fgw_migrate_dropped_later(e, step));
    if (fades) {
        return EVIDENCE_NEUTRAL; /* its absence proves nothing */
    }
    return found == FGW_MIGRATE_SATISFIED ? EVIDENCE_YES : EVIDENCE_NO;
}

/* Highest fully satisfied prefix, statement by statement. */
static void judge_prefix(struct fgw_migrate_engine *e, struct judgement *j)
{
    struct fgw_migrate_adoption *out = j->out;
    bool unbroken = true;
    out->exact = true;
    size_t index = 0;
    for (size_t i = 0; i < e->set->file_count; i++) {
        const struct fgw_migrate_file *file = &e->set->files[i];
        bool whole = true;
        bool any = false;
        for (int k = 0; k < file->step_count; k++, index++) {
            enum evidence evidence = judge_one(e, j, &file->steps[k]);
            out->satisfied[index] = evidence == EVIDENCE_YES && unbroken;
            whole = whole && evidence != EVIDENCE_NO;
            any = any || evidence == EVIDENCE_YES;
            unbroken = unbroken && evidence != EVIDENCE_NO;
            out->exact = out->exact && (unbroken || evidence != EVIDENCE_YES);
        }
        bool counts = whole && any && (!file->contract || unbroken);
        out->version = unbroken && counts ? file->version : out->version;
    }
}

static int64_t highest_mirror(const struct fgw_migrate_engine *e)
{
    int64_t highest = 0;
    for (size_t i = 0; i < e->now.mirror_count; i++) {
        highest = e->now.mirror[i].version > highest ? e->now.mirror[i].version : highest;
    }
    return highest;
}

static bool mirror_known(const struct fgw_migrate_engine *e)
{
    if (e->now.mirror_count != 1) {
        return false;
    }
    int64_t version = e->now.mirror[0].version;
    return version <= 0 || fgw_migrate_legacy_version(version) ||
           fgw_migrate_set_file(e->set, version) != NULL;
}

static enum fgw_migrate_exit mirror_newer(struct fgw_migrate_engine *e, int64_t version)
{
    struct fgw_migrate_finding *finding = fgw_migrate_find(e, FGW_MIGRATE_NEWER, FGW_MIGRATE_ERROR);
    finding->object = "schema_migrations";
    finding->cause = fgw_arena_printf(e->arena,
                                      "its version %" PRId64 " is above all this binary"
                                      " knows (%" PRId64 ") and there is no state row",
                                      version, e->set->knows);
    finding->state = "nothing changed";
    finding->next = fgw_arena_printf(e->arena,
                                     "install the newer fgw, or if the number was written"
                                     " by hand: %s",
                                     fgw_migrate_command(e, "repair --apply --adopt"));
    return FGW_MIGRATE_EXIT_INCOMPATIBLE;
}

static enum fgw_migrate_exit version_lost(struct fgw_migrate_engine *e, const struct judgement *j)
{
    struct fgw_migrate_finding *finding =
        fgw_migrate_find(e, FGW_MIGRATE_VERSION_LOST, FGW_MIGRATE_ERROR);
    finding->cause = e->now.mirror_count == 0
                         ? "tables exist, no version is recorded, and they fit no version exactly"
                         : "the recorded version cannot be trusted and the tables fit none exactly";
    finding->diff = fgw_arena_printf(e->arena,
                                     "complete up to %" PRId64 "; later objects exist"
                                     " beside missing ones",
                                     j->out->version);
    finding->state = "nothing changed";
    finding->next = fgw_migrate_command(e, "repair --apply --adopt");
    return FGW_MIGRATE_EXIT_DECISION;
}

static void say_mirror(struct fgw_migrate_engine *e)
{
    if (e->now.mirror_count > 1) {
        fgw_migrate_note(e,
                         "schema_migrations holds %zu rows: none is taken on trust, the catalog"
                         " decides",
                         e->now.mirror_count);
    } else if (e->now.mirror_count == 1 && e->now.mirror[0].dirty) {
        fgw_migrate_note(e,
                         "schema_migrations is dirty at %" PRId64 ": going by the catalog; the"
                         " flag is cleared when all is in place",
                         e->now.mirror[0].version);
    }
}

enum fgw_migrate_exit fgw_migrate_judge(struct fgw_migrate_engine *e,
                                        struct fgw_migrate_adoption *out_adoption)
{
    *out_adoption =
        (struct fgw_migrate_adoption){.satisfied = fgw_arena_zalloc(e->arena, e->step_count + 1)};
    struct judgement j = {.out = out_adoption};
    judge_prefix(e, &j);
    out_adoption->min_compat = judge_min_compat(e);
    say_mirror(e);
    fgw_migrate_legacy_findings(e);
    if (j.journaled) {
        out_adoption->how = "rebuilt";
        return FGW_MIGRATE_EXIT_OK;
    }
    bool legacy = any_legacy(e);
    out_adoption->how = j.known || legacy ? "adopted" : "fresh";
    int64_t mirror = highest_mirror(e);
    if (mirror > e->set->knows && !fgw_migrate_legacy_version(mirror) && !e->options.adopt) {
        return mirror_newer(e, mirror);
    }
    if (j.known && !mirror_known(e) && !out_adoption->exact && !e->options.adopt) {
        return version_lost(e, &j);
    }
    return FGW_MIGRATE_EXIT_OK;
}

/* -- writing the judgement ----------------------------------------------------------------- */

static enum fgw_migrate_exit record_step(struct fgw_migrate_engine *e,
                                         const struct fgw_migrate_step *step)
{
    struct fgw_migrate_journal_row row = {
        .version = step->file->version,
        .stmt = step->number,
        .state = FGW_MIGRATE_STEP_RECONCILED,
        .started_ms = e->ops->now_wall_ms(e->context),
        .finished_ms = e->ops->now_wall_ms(e->context),
    };
    fgw_migrate_copy_text(row.sha, sizeof row.sha, step->statement.sha);
    fgw_migrate_copy_text(row.how, sizeof row.how, "adopted");
    fgw_migrate_point(e, FGW_MIGRATE_AT_ADOPT_ROW);
    return fgw_migrate_put_journal(e, &row);
}

static enum fgw_migrate_exit record_steps(struct fgw_migrate_engine *e, const bool *satisfied)
{
    size_t index = 0;
    for (size_t i = 0; i < e->set->file_count; i++) {
        for (int k = 0; k < e->set->files[i].step_count; k++, index++) {
            const struct fgw_migrate_step *step = &e->set->files[i].steps[k];
            bool known =
                fgw_migrate_recorded(fgw_migrate_journal_of(e, step->file->version, step->number));
            if (!satisfied[index] || known) {
                continue;
            }
            enum fgw_migrate_exit exit = record_step(e, step);
            if (exit != FGW_MIGRATE_EXIT_OK) {
                return exit;
            }
        }
    }
    return FGW_MIGRATE_EXIT_OK;
}

enum fgw_migrate_exit fgw_migrate_record_adopted(struct fgw_migrate_engine *e)
{
    bool *satisfied = fgw_arena_zalloc(e->arena, e->step_count + 1);
    for (size_t i = 0; i < e->step_count; i++) {
        satisfied[i] = e->progress[i] == FGW_MIGRATE_STEP_ADOPT;
    }
    enum fgw_migrate_exit exit = record_steps(e, satisfied);
    for (size_t i = 0; exit == FGW_MIGRATE_EXIT_OK && i < e->step_count; i++) {
        e->progress[i] = satisfied[i] ? FGW_MIGRATE_STEP_RECORDED : e->progress[i];
    }
    return exit;
}

enum fgw_migrate_exit fgw_migrate_adopt(struct fgw_migrate_engine *e,
                                        const struct fgw_migrate_adoption *adoption)
{
    struct fgw_migrate_state_row state = {
        .format = 1, .version = adoption->version, .min_compat = adoption->min_compat};
    fgw_migrate_copy_text(state.set_name, sizeof state.set_name, e->set->name);
    fgw_migrate_copy_text(state.how, sizeof state.how, adoption->how);
    fgw_migrate_point(e, FGW_MIGRATE_AT_STATE_NEW);
    enum fgw_migrate_exit exit = fgw_migrate_put_state(e, &state);
    if (exit == FGW_MIGRATE_EXIT_OK) {
        exit = record_steps(e, adoption->satisfied);
    }
    if (exit == FGW_MIGRATE_EXIT_OK && strcmp(adoption->how, "fresh") != 0) {
        fgw_migrate_note(e, "%s at version %" PRId64 " by what the catalog shows", adoption->how,
                         adoption->version);
        exit = fgw_migrate_put_history(e, "adopt", adoption->version, 0, adoption->version,
                                       adoption->how);
    }
    return exit;
}
