/* model.c: see model.h. */
#include "migrate/model.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"

struct parser {
    struct fgw_arena *arena;
    struct fgw_migrate_tokens tokens;
    size_t at;
    struct fgw_error *error;
    struct fgw_migrate_statement *out;
};

/* -- small steps --------------------------------------------------------------------------- */

static enum fgw_err fail(struct parser *p, const char *what)
{
    if (p->at < p->tokens.count) {
        const struct fgw_migrate_token *token = &p->tokens.items[p->at];
        struct fgw_bytes shown = fgw_bytes_sub(token->text, 0, 60);
        return fgw_error_set(p->error, FGW_ERR_PARSE, "line %u: %s at \"%.*s\"", token->line, what,
                             FGW_FMT(shown));
    }
    return fgw_error_set(p->error, FGW_ERR_PARSE, "line %u: %s at the end of the statement",
                         p->tokens.items[0].line, what);
}

static bool at_word(const struct parser *p, const char *word)
{
    return p->at < p->tokens.count && p->tokens.items[p->at].kind == FGW_MIGRATE_WORD &&
           fgw_bytes_ieq_str(p->tokens.items[p->at].text, word);
}

static bool take_word(struct parser *p, const char *word)
{
    bool found = at_word(p, word);
    p->at += found ? 1 : 0;
    return found;
}

static bool at_punct(const struct parser *p, char punct)
{
    return p->at < p->tokens.count && p->tokens.items[p->at].kind == FGW_MIGRATE_PUNCT &&
           p->tokens.items[p->at].text.ptr[0] == (uint8_t)punct;
}

static bool take_punct(struct parser *p, char punct)
{
    bool found = at_punct(p, punct);
    p->at += found ? 1 : 0;
    return found;
}

static bool at_end(const struct parser *p)
{
    return p->at == p->tokens.count;
}

static bool take_number(struct parser *p, int64_t *out_value)
{
    uint64_t value;
    if (at_end(p) || p->tokens.items[p->at].kind != FGW_MIGRATE_NUMBER ||
        fgw_bytes_to_u64(p->tokens.items[p->at].text, &value) != FGW_OK || value > INT32_MAX) {
        return false;
    }
    p->at++;
    *out_value = (int64_t)value;
    return true;
}

static const char *fold(struct parser *p, struct fgw_bytes text)
{
    char *name = fgw_arena_strdup(p->arena, text);
    for (char *c = name; *c != '\0'; c++) {
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + ('a' - 'A') : *c);
    }
    return name;
}

/* A name: folded, or as it stands between quotes. */
static bool take_name(struct parser *p, const char **out_name)
{
    if (at_end(p)) {
        return false;
    }
    const struct fgw_migrate_token *token = &p->tokens.items[p->at];
    if (token->kind == FGW_MIGRATE_WORD) {
        *out_name = fold(p, token->text);
    } else if (token->kind == FGW_MIGRATE_QUOTED && token->text.len > 2) {
        p->out->quoted = true;
        *out_name = fgw_arena_strdup(p->arena, fgw_bytes_sub(token->text, 1, token->text.len - 2));
    } else {
        return false;
    }
    p->at++;
    return true;
}

static enum fgw_err take_table(struct parser *p)
{
    p->out->table_at = p->at;
    if (!take_name(p, &p->out->table)) {
        return fail(p, "a table name is wanted");
    }
    if (take_punct(p, '.')) {
        p->out->qualified = true;
        p->out->keyspace = p->out->table;
        p->out->table_at = p->at;
        if (!take_name(p, &p->out->table)) {
            return fail(p, "a table name is wanted");
        }
    }
    return FGW_OK;
}

/* A type with its parameters: text, set<bigint>, frozen<map<text, text>>. */
static enum fgw_err take_type(struct parser *p, const char **out_type)
{
    if (at_end(p) || p->tokens.items[p->at].kind != FGW_MIGRATE_WORD) {
        return fail(p, "a type is wanted");
    }
    const char *type = fold(p, p->tokens.items[p->at++].text);
    int depth = 0;
    while (!at_end(p) && (at_punct(p, '<') || depth > 0)) {
        const struct fgw_migrate_token *token = &p->tokens.items[p->at];
        if (at_punct(p, '<')) {
            depth++;
        } else if (at_punct(p, '>')) {
            depth--;
        } else if (token->kind != FGW_MIGRATE_WORD && !at_punct(p, ',')) {
            return fail(p, "a type is wanted");
        }
        type = fgw_arena_printf(p->arena, "%s%.*s", type, FGW_FMT(token->text));
        p->at++;
    }
    if (depth != 0) {
        return fail(p, "> is wanted");
    }
    *out_type = fgw_migrate_type(p->arena, fgw_bytes_str(type));
    return FGW_OK;
}

/* -- CREATE TABLE -------------------------------------------------------------------------- */

static enum fgw_err add_column(struct parser *p, struct fgw_migrate_column column)
{
    if (fgw_migrate_table_find(p->out->create, column.name) != NULL) {
        return fail(p, "this column was named before");
    }
    fgw_migrate_table_add(p->arena, p->out->create, column);
    return FGW_OK;
}

static enum fgw_err make_key(struct parser *p, const char *name, enum fgw_migrate_column_kind kind,
                             int position)
{
    struct fgw_migrate_table *table = p->out->create;
    const struct fgw_migrate_column *found = fgw_migrate_table_find(table, name);
    if (found == NULL || found->kind != FGW_MIGRATE_REGULAR) {
        return fail(p, found == NULL ? "a key column is not declared"
                                     : "a column is in the key twice or static");
    }
    struct fgw_migrate_column column = *found;
    column.kind = kind;
    column.position = position;
    fgw_migrate_table_drop(table, name);
    fgw_migrate_table_add(p->arena, table, column);
    return FGW_OK;
}

struct key_names {
    const char *names[16];
    int partition; /* how many of them */
    int count;
};

static enum fgw_err take_key_name(struct parser *p, struct key_names *key)
{
    if (key->count == (int)FGW_COUNT_OF(key->names)) {
        return fail(p, "too many key columns");
    }
    if (!take_name(p, &key->names[key->count])) {
        return fail(p, "a column name is wanted");
    }
    key->count++;
    return FGW_OK;
}

/* Behind PRIMARY KEY: ( (a, b), c ) or ( a, c ). */
static enum fgw_err take_primary_key(struct parser *p, struct key_names *key)
{
    if (key->count > 0) {
        return fail(p, "a second PRIMARY KEY");
    }
    if (!take_punct(p, '(')) {
        return fail(p, "( is wanted");
    }
    bool composite = take_punct(p, '(');
    do {
        enum fgw_err err = take_key_name(p, key);
        if (err != FGW_OK) {
            return err;
        }
    } while (composite && take_punct(p, ','));
    key->partition = key->count;
    if (composite && !take_punct(p, ')')) {
        return fail(p, ") is wanted");
    }
    while (take_punct(p, ',')) {
        enum fgw_err err = take_key_name(p, key);
        if (err != FGW_OK) {
            return err;
        }
    }
    return take_punct(p, ')') ? FGW_OK : fail(p, ") is wanted");
}

static enum fgw_err take_column(struct parser *p, struct key_names *key)
{
    struct fgw_migrate_column column = {.kind = FGW_MIGRATE_REGULAR};
    if (!take_name(p, &column.name)) {
        return fail(p, "a column name is wanted");
    }
    enum fgw_err err = take_type(p, &column.type);
    if (err != FGW_OK) {
        return err;
    }
    if (take_word(p, "static")) {
        column.kind = FGW_MIGRATE_STATIC;
    }
    if (take_word(p, "primary")) {
        if (!take_word(p, "key") || key->count > 0) {
            return fail(p, "one PRIMARY KEY is wanted");
        }
        key->names[key->count++] = column.name;
        key->partition = 1;
    }
    return add_column(p, column);
}

static enum fgw_err take_columns(struct parser *p)
{
    struct key_names key = {.count = 0};
    if (!take_punct(p, '(')) {
        return fail(p, "( is wanted");
    }
    do {
        enum fgw_err err;
        if (at_word(p, "primary") && p->at + 1 < p->tokens.count &&
            fgw_bytes_ieq_str(p->tokens.items[p->at + 1].text, "key")) {
            p->at += 2;
            err = take_primary_key(p, &key);
        } else {
            err = take_column(p, &key);
        }
        if (err != FGW_OK) {
            return err;
        }
    } while (take_punct(p, ','));
    if (!take_punct(p, ')')) {
        return fail(p, ", or ) is wanted");
    }
    if (key.count == 0) {
        return fail(p, "PRIMARY KEY is missing");
    }
    for (int i = 0; i < key.count; i++) {
        bool partition = i < key.partition;
        enum fgw_err err =
            make_key(p, key.names[i], partition ? FGW_MIGRATE_PARTITION : FGW_MIGRATE_CLUSTERING,
                     partition ? i : i - key.partition);
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

static enum fgw_err take_order(struct parser *p)
{
    if (!take_word(p, "order") || !take_word(p, "by") || !take_punct(p, '(')) {
        return fail(p, "CLUSTERING ORDER BY ( is wanted");
    }
    do {
        const char *name;
        if (!take_name(p, &name)) {
            return fail(p, "a column name is wanted");
        }
        struct fgw_migrate_table *table = p->out->create;
        const struct fgw_migrate_column *column = fgw_migrate_table_find(table, name);
        if (column == NULL || column->kind != FGW_MIGRATE_CLUSTERING) {
            return fail(p, "not a clustering column");
        }
        bool descending = take_word(p, "desc");
        if (!descending) {
            (void)take_word(p, "asc");
        }
        table->columns[column - table->columns].descending = descending;
    } while (take_punct(p, ','));
    return take_punct(p, ')') ? FGW_OK : fail(p, ") is wanted");
}

static enum fgw_err take_ttl(struct parser *p, int64_t *out_ttl_s)
{
    if (!take_word(p, "default_time_to_live")) {
        return fail(p, "only CLUSTERING ORDER BY and default_time_to_live are the same on all"
                       " databases; refused");
    }
    if (!take_punct(p, '=') || !take_number(p, out_ttl_s)) {
        return fail(p, "= and seconds are wanted");
    }
    return FGW_OK;
}

static enum fgw_err take_options(struct parser *p)
{
    do {
        enum fgw_err err =
            take_word(p, "clustering") ? take_order(p) : take_ttl(p, &p->out->create->ttl_s);
        if (err != FGW_OK) {
            return err;
        }
    } while (take_word(p, "and"));
    return FGW_OK;
}

static enum fgw_err parse_create(struct parser *p)
{
    p->out->class = FGW_MIGRATE_CREATE_TABLE;
    if (!take_word(p, "table")) {
        return fail(p, "only CREATE TABLE is a known statement class");
    }
    if (take_word(p, "if")) {
        p->out->guarded = true;
        if (!take_word(p, "not") || !take_word(p, "exists")) {
            return fail(p, "IF NOT EXISTS is wanted");
        }
    }
    enum fgw_err err = take_table(p);
    if (err != FGW_OK) {
        return err;
    }
    p->out->create = fgw_migrate_table_new(p->arena, p->out->table);
    err = take_columns(p);
    if (err == FGW_OK && take_word(p, "with")) {
        err = take_options(p);
    }
    return err;
}

/* -- ALTER, DROP, INSERT ------------------------------------------------------------------- */

static enum fgw_err parse_alter(struct parser *p)
{
    if (!take_word(p, "table")) {
        return fail(p, "only ALTER TABLE is a known statement class");
    }
    enum fgw_err err = take_table(p);
    if (err != FGW_OK) {
        return err;
    }
    if (take_word(p, "with")) {
        p->out->class = FGW_MIGRATE_SET_TTL;
        return take_ttl(p, &p->out->ttl_s);
    }
    if (take_word(p, "drop")) {
        p->out->class = FGW_MIGRATE_DROP_COLUMN;
        return take_name(p, &p->out->column.name) ? FGW_OK : fail(p, "a column name is wanted");
    }
    if (!take_word(p, "add")) {
        return fail(p, "ALTER TABLE knows ADD, DROP and WITH default_time_to_live");
    }
    p->out->class = FGW_MIGRATE_ADD_COLUMN;
    p->out->column = (struct fgw_migrate_column){.kind = FGW_MIGRATE_REGULAR};
    if (!take_name(p, &p->out->column.name)) {
        return fail(p, "a column name is wanted");
    }
    err = take_type(p, &p->out->column.type);
    if (err == FGW_OK && at_punct(p, ',')) {
        return fail(p, "exactly one column a statement");
    }
    return err;
}

static enum fgw_err parse_drop(struct parser *p)
{
    p->out->class = FGW_MIGRATE_DROP_TABLE;
    if (!take_word(p, "table")) {
        return fail(p, "only DROP TABLE is a known statement class");
    }
    if (take_word(p, "if")) {
        p->out->guarded = true;
        if (!take_word(p, "exists")) {
            return fail(p, "IF EXISTS is wanted");
        }
    }
    return take_table(p);
}

static enum fgw_err parse_insert(struct parser *p)
{
    p->out->class = FGW_MIGRATE_UPSERT;
    if (!take_word(p, "into")) {
        return fail(p, "INTO is wanted");
    }
    enum fgw_err err = take_table(p);
    if (err != FGW_OK) {
        return err;
    }
    if (!take_punct(p, '(')) {
        return fail(p, "( is wanted");
    }
    p->out->columns = fgw_arena_alloc(p->arena, p->tokens.count * sizeof(*p->out->columns));
    do {
        if (!take_name(p, &p->out->columns[p->out->column_count++])) {
            return fail(p, "a column name is wanted");
        }
    } while (take_punct(p, ','));
    if (!take_punct(p, ')') || !take_word(p, "values") || !take_punct(p, '(')) {
        return fail(p, ") VALUES ( is wanted");
    }
    size_t values = 0;
    do {
        enum fgw_migrate_token_kind kind =
            at_end(p) ? FGW_MIGRATE_PUNCT : p->tokens.items[p->at].kind;
        bool literal = kind == FGW_MIGRATE_STRING || kind == FGW_MIGRATE_NUMBER ||
                       at_word(p, "true") || at_word(p, "false");
        if (!literal) {
            return fail(p, "only literal values can be written twice with the same result; this is"
                           " refused");
        }
        p->at++;
        values++;
    } while (take_punct(p, ','));
    if (!take_punct(p, ')') || values != p->out->column_count) {
        return fail(p, "one value a column is wanted");
    }
    if (take_word(p, "if")) {
        p->out->guarded = true;
        if (!take_word(p, "not") || !take_word(p, "exists")) {
            return fail(p, "IF NOT EXISTS is wanted");
        }
    }
    return FGW_OK;
}

enum fgw_err fgw_migrate_parse(struct fgw_arena *arena, struct fgw_migrate_tokens tokens,
                               struct fgw_error *error, struct fgw_migrate_statement *out_statement)
{
    FGW_CHECK(tokens.count > 0);
    struct fgw_migrate_statement statement = {.tokens = tokens, .keyspace = "", .table = ""};
    struct parser p = {arena, tokens, 0, error, &statement};
    enum fgw_err err;
    if (take_word(&p, "create")) {
        err = parse_create(&p);
    } else if (take_word(&p, "alter")) {
        err = parse_alter(&p);
    } else if (take_word(&p, "drop")) {
        err = parse_drop(&p);
    } else if (take_word(&p, "insert")) {
        err = parse_insert(&p);
    } else {
        err = fail(&p, "not a known statement class (CREATE TABLE, ALTER TABLE, DROP TABLE,"
                       " INSERT)");
    }
    if (err == FGW_OK && !at_end(&p)) {
        err = fail(&p, "this is not understood");
    }
    if (err != FGW_OK) {
        return err;
    }
    statement.line = tokens.items[0].line;
    statement.text = fgw_migrate_normalise(arena, tokens);
    fgw_migrate_sha(fgw_bytes_str(statement.text), statement.sha);
    *out_statement = statement;
    return FGW_OK;
}

enum fgw_err fgw_migrate_parse_text(struct fgw_arena *arena, const char *text,
                                    struct fgw_error *error,
                                    struct fgw_migrate_statement *out_statement)
{
    struct fgw_migrate_texts texts;
    enum fgw_err err = fgw_migrate_split(arena, fgw_bytes_str(text), error, &texts);
    if (err != FGW_OK) {
        return err;
    }
    if (texts.count != 1) {
        return fgw_error_set(error, FGW_ERR_PARSE, "exactly one statement is wanted");
    }
    return fgw_migrate_parse(arena, texts.items[0], error, out_statement);
}

/* -- effects ------------------------------------------------------------------------------- */

static enum fgw_err conflict(struct fgw_error *error, const struct fgw_migrate_statement *statement,
                             const char *what)
{
    return fgw_error_set(error, FGW_ERR_CONFLICT, "line %u: table %s %s", statement->line,
                         statement->table, what);
}

static enum fgw_err apply_upsert(const struct fgw_migrate_table *table,
                                 const struct fgw_migrate_statement *statement,
                                 struct fgw_error *error)
{
    for (size_t i = 0; i < statement->column_count; i++) {
        if (fgw_migrate_table_find(table, statement->columns[i]) == NULL) {
            return conflict(error, statement, "has no such column");
        }
    }
    for (size_t i = 0; i < table->column_count; i++) {
        const struct fgw_migrate_column *column = &table->columns[i];
        bool key = column->kind == FGW_MIGRATE_PARTITION || column->kind == FGW_MIGRATE_CLUSTERING;
        bool given = false;
        for (size_t k = 0; k < statement->column_count; k++) {
            given = given || strcmp(statement->columns[k], column->name) == 0;
        }
        if (key && !given) {
            return conflict(error, statement, "is written without its whole key");
        }
    }
    return FGW_OK;
}

enum fgw_err fgw_migrate_apply(struct fgw_migrate_catalog *catalog,
                               const struct fgw_migrate_statement *statement,
                               struct fgw_error *error)
{
    struct fgw_migrate_table *table = fgw_migrate_catalog_find(catalog, statement->table);
    if (statement->class == FGW_MIGRATE_CREATE_TABLE) {
        if (table != NULL) {
            return conflict(error, statement, "exists already");
        }
        fgw_migrate_catalog_put(catalog, fgw_migrate_table_copy(catalog->arena, statement->create));
        return FGW_OK;
    }
    if (table == NULL) {
        return conflict(error, statement, "does not exist");
    }
    const struct fgw_migrate_column *column =
        statement->column.name == NULL ? NULL
                                       : fgw_migrate_table_find(table, statement->column.name);
    switch (statement->class) {
    case FGW_MIGRATE_ADD_COLUMN:
        if (column != NULL) {
            return conflict(error, statement, "has this column already");
        }
        fgw_migrate_table_add(catalog->arena, table, statement->column);
        return FGW_OK;
    case FGW_MIGRATE_DROP_COLUMN:
        if (column == NULL || column->kind == FGW_MIGRATE_PARTITION ||
            column->kind == FGW_MIGRATE_CLUSTERING) {
            return conflict(error, statement, "has no such column outside its key");
        }
        fgw_migrate_table_drop(table, statement->column.name);
        return FGW_OK;
    case FGW_MIGRATE_DROP_TABLE:
        fgw_migrate_catalog_remove(catalog, statement->table);
        return FGW_OK;
    case FGW_MIGRATE_SET_TTL:
        table->ttl_s = statement->ttl_s;
        return FGW_OK;
    default:
        return apply_upsert(table, statement, error);
    }
}

const char *fgw_migrate_class_name(enum fgw_migrate_class class)
{
    switch (class) {
    case FGW_MIGRATE_CREATE_TABLE:
        return "CREATE TABLE";
    case FGW_MIGRATE_ADD_COLUMN:
        return "ADD COLUMN";
    case FGW_MIGRATE_DROP_COLUMN:
        return "DROP COLUMN";
    case FGW_MIGRATE_DROP_TABLE:
        return "DROP TABLE";
    case FGW_MIGRATE_SET_TTL:
        return "SET default_time_to_live";
    case FGW_MIGRATE_UPSERT:
        return "INSERT";
    }
    return "?";
}

bool fgw_migrate_destructive(enum fgw_migrate_class class)
{
    return class == FGW_MIGRATE_DROP_TABLE || class == FGW_MIGRATE_DROP_COLUMN;
}

const char *fgw_migrate_send_text(struct fgw_arena *arena,
                                  const struct fgw_migrate_statement *statement,
                                  const char *keyspace)
{
    if (statement->qualified) {
        return statement->text;
    }
    struct fgw_migrate_tokens before = {statement->tokens.items, statement->table_at};
    struct fgw_migrate_tokens after = {statement->tokens.items + statement->table_at,
                                       statement->tokens.count - statement->table_at};
    return fgw_arena_printf(arena, "%s %s.%s", fgw_migrate_normalise(arena, before), keyspace,
                            fgw_migrate_normalise(arena, after));
}

bool fgw_migrate_reserved(const char *word)
{
    static const char *const words[] = {
        "add",     "all",          "allow",      "alter",     "and",         "any",
        "apply",   "array",        "as",         "asc",       "authorize",   "batch",
        "begin",   "both",         "by",         "case",      "cast",        "check",
        "collate", "column",       "constraint", "create",    "default",     "delete",
        "desc",    "describe",     "distinct",   "do",        "drop",        "else",
        "end",     "entries",      "except",     "execute",   "false",       "fetch",
        "for",     "foreign",      "from",       "full",      "grant",       "having",
        "if",      "in",           "index",      "infinity",  "insert",      "intersect",
        "into",    "is",           "keyspace",   "keyspaces", "leading",     "length",
        "limit",   "materialized", "modify",     "nan",       "norecursive", "not",
        "null",    "of",           "on",         "only",      "or",          "order",
        "primary", "references",   "rename",     "returning", "returns",     "revoke",
        "schema",  "select",       "set",        "some",      "table",       "then",
        "to",      "token",        "trailing",   "true",      "truncate",    "union",
        "unique",  "unlogged",     "update",     "use",       "using",       "view",
        "when",    "where",        "window",     "with",
    };
    for (size_t i = 0; i < FGW_COUNT_OF(words); i++) {
        if (strcmp(words[i], word) == 0) {
            return true;
        }
    }
    return false;
}
