/* set.c: see set.h. */
#include "migrate/set.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"

struct build {
    struct fgw_arena *arena;
    struct fgw_error *error;
    struct fgw_migrate_set *set;
    struct fgw_migrate_catalog catalog;
    const char **dropped; /* "table" or "table.column" */
    size_t dropped_count;
    size_t dropped_cap;
};

static enum fgw_err refuse(struct build *b, const struct fgw_migrate_file *file, const char *reason)
{
    return fgw_error_set(b->error, FGW_ERR_CONFLICT, "%s/%" PRId64 "_%s.cql: %s", b->set->name,
                         file->version, file->name, reason);
}

/* -- header comments ----------------------------------------------------------------------- */

static enum fgw_err take_header(struct build *b, struct fgw_migrate_file *file,
                                struct fgw_bytes key, struct fgw_bytes value)
{
    if (fgw_bytes_eq_str(key, "phase")) {
        file->contract = fgw_bytes_eq_str(value, "contract");
        bool known = file->contract || fgw_bytes_eq_str(value, "expand");
        return known ? FGW_OK : refuse(b, file, "phase is expand or contract");
    }
    if (fgw_bytes_eq_str(key, "min-compat")) {
        uint64_t version;
        if (fgw_bytes_to_u64(value, &version) != FGW_OK || version > INT64_MAX) {
            return refuse(b, file, "min-compat is a version");
        }
        file->min_compat = (int64_t)version;
    } else if (fgw_bytes_eq_str(key, "note")) {
        file->note = fgw_arena_strdup(b->arena, value);
    }
    return FGW_OK;
}

static enum fgw_err take_headers(struct build *b, struct fgw_migrate_file *file,
                                 struct fgw_bytes text)
{
    struct fgw_bytes line;
    while (fgw_bytes_split(&text, '\n', &line)) {
        line = fgw_bytes_trim(line);
        while (line.len > 0 && line.ptr[line.len - 1] == '\r') {
            line.len--;
        }
        if (!fgw_bytes_starts_with(line, FGW_LIT("--"))) {
            if (line.len > 0) {
                return FGW_OK;
            }
            continue;
        }
        size_t colon = fgw_bytes_find_byte(line, ':');
        if (colon == SIZE_MAX) {
            continue;
        }
        struct fgw_bytes key = fgw_bytes_trim(fgw_bytes_sub(line, 2, colon - 2));
        struct fgw_bytes value = fgw_bytes_trim(fgw_bytes_sub(line, colon + 1, line.len));
        enum fgw_err err = take_header(b, file, key, value);
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

/* -- lint ---------------------------------------------------------------------------------- */

static bool was_dropped(const struct build *b, const char *name)
{
    for (size_t i = 0; i < b->dropped_count; i++) {
        if (strcmp(b->dropped[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static const char *object_of(struct build *b, const struct fgw_migrate_statement *statement)
{
    return statement->column.name == NULL
               ? statement->table
               : fgw_arena_printf(b->arena, "%s.%s", statement->table, statement->column.name);
}

static void note_dropped(struct build *b, const char *name)
{
    if (b->dropped_count == b->dropped_cap) {
        size_t cap = b->dropped_cap == 0 ? 16 : 2 * b->dropped_cap;
        const char **grown = fgw_arena_alloc(b->arena, cap * sizeof(*grown));
        if (b->dropped_count > 0) {
            memcpy(grown, b->dropped, b->dropped_count * sizeof(*grown));
        }
        b->dropped = grown;
        b->dropped_cap = cap;
    }
    b->dropped[b->dropped_count++] = name;
}

static bool known_type(const char *type)
{
    static const char *const types[] = {"text",    "blob",      "bigint", "int",
                                        "boolean", "timestamp", "uuid"};
    for (size_t i = 0; i < FGW_COUNT_OF(types); i++) {
        if (strcmp(types[i], type) == 0) {
            return true;
        }
    }
    return false;
}

/* NULL, or what is wrong with the column. */
static const char *lint_column(struct build *b, const struct fgw_migrate_column *column)
{
    if (fgw_migrate_reserved(column->name)) {
        return fgw_arena_printf(b->arena, "column %s: reserved word", column->name);
    }
    if (!known_type(column->type)) {
        return fgw_arena_printf(b->arena,
                                "column %s: type %s is not among text, blob, bigint, int,"
                                " boolean, timestamp, uuid",
                                column->name, column->type);
    }
    if (column->kind == FGW_MIGRATE_STATIC) {
        return fgw_arena_printf(b->arena, "column %s: static columns are not used", column->name);
    }
    return NULL;
}

static const char *lint_columns(struct build *b, const struct fgw_migrate_statement *statement)
{
    if (statement->class == FGW_MIGRATE_ADD_COLUMN) {
        return lint_column(b, &statement->column);
    }
    if (statement->class != FGW_MIGRATE_CREATE_TABLE) {
        return NULL;
    }
    for (size_t i = 0; i < statement->create->column_count; i++) {
        const char *problem = lint_column(b, &statement->create->columns[i]);
        if (problem != NULL) {
            return problem;
        }
    }
    return fgw_migrate_reserved(statement->table) ? "table name is a reserved word" : NULL;
}

static const char *lint(struct build *b, const struct fgw_migrate_file *file,
                        const struct fgw_migrate_statement *statement)
{
    bool adds =
        statement->class == FGW_MIGRATE_CREATE_TABLE || statement->class == FGW_MIGRATE_ADD_COLUMN;
    if (statement->qualified) {
        return "no keyspace in a file: the engine adds it";
    }
    if (statement->quoted) {
        return "quoted names are not used";
    }
    if (statement->guarded && statement->class != FGW_MIGRATE_UPSERT) {
        return "IF [NOT] EXISTS hides a wrong shape; the engine reconciles";
    }
    if (fgw_migrate_destructive(statement->class) && !file->contract) {
        return "DROP only in a contract file";
    }
    if (strncmp(statement->table, "fgw_schema_", 11) == 0 ||
        strcmp(statement->table, "schema_migrations") == 0) {
        return "the engine's own tables are not for migrations";
    }
    if (adds && was_dropped(b, object_of(b, statement))) {
        return "a name dropped once is never used again";
    }
    return lint_columns(b, statement);
}

/* -- building ------------------------------------------------------------------------------ */

static enum fgw_err build_step(struct build *b, struct fgw_migrate_file *file,
                               struct fgw_migrate_step *step)
{
    const struct fgw_migrate_statement *statement = &step->statement;
    const char *problem = lint(b, file, statement);
    if (problem != NULL) {
        return refuse(b, file, fgw_arena_printf(b->arena, "line %u: %s", statement->line, problem));
    }
    struct fgw_error detail;
    fgw_error_init(&detail);
    if (fgw_migrate_apply(&b->catalog, statement, &detail) != FGW_OK) {
        return refuse(b, file, fgw_error_message(&detail));
    }
    if (fgw_migrate_destructive(statement->class)) {
        note_dropped(b, object_of(b, statement));
    }
    return FGW_OK;
}

static enum fgw_err build_steps(struct build *b, struct fgw_migrate_file *file,
                                const struct fgw_migrate_source *source)
{
    struct fgw_error detail;
    fgw_error_init(&detail);
    struct fgw_migrate_texts texts;
    enum fgw_err err =
        fgw_migrate_split(b->arena, fgw_bytes(source->text, source->text_len), &detail, &texts);
    if (err != FGW_OK) {
        return refuse(b, file, fgw_error_message(&detail));
    }
    if (texts.count == 0) {
        return refuse(b, file, "holds no statement");
    }
    if (source->statement_shas != NULL && source->statement_count != texts.count) {
        return refuse(b, file, "was embedded with another number of statements");
    }
    struct fgw_migrate_step *steps = fgw_arena_zalloc(b->arena, texts.count * sizeof *steps);
    file->steps = steps;
    file->step_count = (int)texts.count;
    for (size_t i = 0; i < texts.count; i++) {
        steps[i].file = file;
        steps[i].number = (int)i + 1;
        if (fgw_migrate_parse(b->arena, texts.items[i], &detail, &steps[i].statement) != FGW_OK) {
            return refuse(b, file, fgw_error_message(&detail));
        }
        if (source->statement_shas != NULL &&
            strcmp(source->statement_shas[i], steps[i].statement.sha) != 0) {
            return refuse(b, file, "was embedded with another hash of a statement");
        }
        err = build_step(b, file, &steps[i]);
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

static enum fgw_err build_file(struct build *b, const struct fgw_migrate_source *source)
{
    struct fgw_migrate_file *file = &b->set->files[b->set->file_count];
    file->version = source->version;
    file->name = source->name;
    file->note = "";
    fgw_migrate_sha(fgw_bytes(source->text, source->text_len), file->sha);
    if (source->sha != NULL && strcmp(source->sha, file->sha) != 0) {
        return refuse(b, file, "was embedded with another hash");
    }
    if (file->version <= b->set->knows) {
        return refuse(b, file,
                      file->version == b->set->knows ? "duplicate version" : "out of order");
    }
    if (file->version < FGW_MIGRATE_OWN_VERSIONS && !fgw_migrate_legacy_version(file->version)) {
        return refuse(b, file, "a version has 14 digits (UTC)");
    }
    enum fgw_err err = take_headers(b, file, fgw_bytes(source->text, source->text_len));
    if (err == FGW_OK) {
        err = build_steps(b, file, source);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (file->contract != (file->min_compat != 0)) {
        return refuse(b, file, "min-compat belongs in a contract file and nowhere else");
    }
    if (file->min_compat > file->version) {
        return refuse(b, file, "min-compat is above its own version");
    }
    b->set->file_count++;
    b->set->knows = file->version;
    b->set->needs = file->contract ? b->set->needs : file->version;
    return FGW_OK;
}

enum fgw_err fgw_migrate_set_build(struct fgw_arena *arena, const char *name,
                                   const struct fgw_migrate_source *sources, size_t count,
                                   struct fgw_error *error, struct fgw_migrate_set *out_set)
{
    struct fgw_migrate_set set = {.name = name};
    set.files = fgw_arena_zalloc(arena, (count + 1) * sizeof *set.files);
    struct build b = {.arena = arena, .error = error, .set = &set};
    fgw_migrate_catalog_init(&b.catalog, arena);
    for (size_t i = 0; i < count; i++) {
        enum fgw_err err = build_file(&b, &sources[i]);
        if (err != FGW_OK) {
            return err;
        }
    }
    *out_set = set;
    return FGW_OK;
}

const struct fgw_migrate_file *fgw_migrate_set_file(const struct fgw_migrate_set *set,
                                                    int64_t version)
{
    for (size_t i = 0; i < set->file_count; i++) {
        if (set->files[i].version == version) {
            return &set->files[i];
        }
    }
    return NULL;
}

static void apply_file(struct fgw_migrate_catalog *catalog, const struct fgw_migrate_file *file)
{
    for (int i = 0; i < file->step_count; i++) {
        /* the build applied the same statements in the same order */
        FGW_CHECK(fgw_migrate_apply(catalog, &file->steps[i].statement, NULL) == FGW_OK);
    }
}

void fgw_migrate_expected(struct fgw_arena *arena, const struct fgw_migrate_set *set,
                          int64_t version, const bool *contract_done,
                          struct fgw_migrate_catalog *out_catalog)
{
    fgw_migrate_catalog_init(out_catalog, arena);
    for (size_t i = 0; i < set->file_count; i++) {
        const struct fgw_migrate_file *file = &set->files[i];
        bool contract = file->contract && contract_done != NULL;
        if (contract ? contract_done[i] : file->version <= version) {
            apply_file(out_catalog, file);
        }
    }
}
