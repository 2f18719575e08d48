/* catalog.c: see catalog.h. */
#include "migrate/catalog.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"

const char *fgw_migrate_type(struct fgw_arena *arena, struct fgw_bytes type)
{
    char *out = fgw_arena_alloc(arena, type.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < type.len; i++) {
        uint8_t c = type.ptr[i];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            out[len++] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
        }
    }
    out[len] = '\0';
    return strcmp(out, "varchar") == 0 ? "text" : out;
}

void fgw_migrate_catalog_init(struct fgw_migrate_catalog *catalog, struct fgw_arena *arena)
{
    *catalog = (struct fgw_migrate_catalog){.arena = arena};
}

/* Where `name` stands or would stand. */
static size_t place_of(const struct fgw_migrate_catalog *catalog, const char *name)
{
    size_t at = 0;
    while (at < catalog->table_count && strcmp(catalog->tables[at]->name, name) < 0) {
        at++;
    }
    return at;
}

static bool stands_at(const struct fgw_migrate_catalog *catalog, size_t at, const char *name)
{
    return at < catalog->table_count && strcmp(catalog->tables[at]->name, name) == 0;
}

struct fgw_migrate_table *fgw_migrate_catalog_find(const struct fgw_migrate_catalog *catalog,
                                                   const char *name)
{
    size_t at = place_of(catalog, name);
    return stands_at(catalog, at, name) ? catalog->tables[at] : NULL;
}

void fgw_migrate_catalog_put(struct fgw_migrate_catalog *catalog, struct fgw_migrate_table *table)
{
    size_t at = place_of(catalog, table->name);
    if (stands_at(catalog, at, table->name)) {
        catalog->tables[at] = table;
        return;
    }
    if (catalog->table_count == catalog->table_cap) {
        size_t cap = catalog->table_cap == 0 ? 32 : 2 * catalog->table_cap;
        struct fgw_migrate_table **grown = fgw_arena_alloc(catalog->arena, cap * sizeof(*grown));
        if (catalog->table_count > 0) {
            memcpy(grown, catalog->tables, catalog->table_count * sizeof(*grown));
        }
        catalog->tables = grown;
        catalog->table_cap = cap;
    }
    memmove(catalog->tables + at + 1, catalog->tables + at,
            (catalog->table_count - at) * sizeof(catalog->tables[0]));
    catalog->tables[at] = table;
    catalog->table_count++;
}

void fgw_migrate_catalog_remove(struct fgw_migrate_catalog *catalog, const char *name)
{
    size_t at = place_of(catalog, name);
    if (stands_at(catalog, at, name)) {
        catalog->table_count--;
        memmove(catalog->tables + at, catalog->tables + at + 1,
                (catalog->table_count - at) * sizeof(catalog->tables[0]));
    }
}

struct fgw_migrate_table *fgw_migrate_table_new(struct fgw_arena *arena, const char *name)
{
    struct fgw_migrate_table *table = fgw_arena_zalloc(arena, sizeof *table);
    table->name = fgw_arena_strdup(arena, fgw_bytes_str(name));
    return table;
}

struct fgw_migrate_table *fgw_migrate_table_copy(struct fgw_arena *arena,
                                                 const struct fgw_migrate_table *table)
{
    struct fgw_migrate_table *copy = fgw_migrate_table_new(arena, table->name);
    copy->ttl_s = table->ttl_s;
    copy->transactional = table->transactional;
    for (size_t i = 0; i < table->column_count; i++) {
        struct fgw_migrate_column column = table->columns[i];
        column.name = fgw_arena_strdup(arena, fgw_bytes_str(column.name));
        column.type = fgw_arena_strdup(arena, fgw_bytes_str(column.type));
        fgw_migrate_table_add(arena, copy, column);
    }
    return copy;
}

const struct fgw_migrate_column *fgw_migrate_table_find(const struct fgw_migrate_table *table,
                                                        const char *column)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (strcmp(table->columns[i].name, column) == 0) {
            return &table->columns[i];
        }
    }
    return NULL;
}

static int rank(const struct fgw_migrate_column *column)
{
    switch (column->kind) {
    case FGW_MIGRATE_PARTITION:
        return 0;
    case FGW_MIGRATE_CLUSTERING:
        return 1;
    default:
        return 2;
    }
}

static bool is_key(const struct fgw_migrate_column *column)
{
    return rank(column) < 2;
}

static bool comes_before(const struct fgw_migrate_column *a, const struct fgw_migrate_column *b)
{
    if (rank(a) != rank(b)) {
        return rank(a) < rank(b);
    }
    if (is_key(a)) {
        return a->position < b->position;
    }
    return strcmp(a->name, b->name) < 0;
}

void fgw_migrate_table_add(struct fgw_arena *arena, struct fgw_migrate_table *table,
                           struct fgw_migrate_column column)
{
    if (table->column_count == table->column_cap) {
        size_t cap = table->column_cap == 0 ? 16 : 2 * table->column_cap;
        struct fgw_migrate_column *grown = fgw_arena_alloc(arena, cap * sizeof *grown);
        if (table->column_count > 0) {
            memcpy(grown, table->columns, table->column_count * sizeof *grown);
        }
        table->columns = grown;
        table->column_cap = cap;
    }
    size_t at = table->column_count;
    while (at > 0 && comes_before(&column, &table->columns[at - 1])) {
        table->columns[at] = table->columns[at - 1];
        at--;
    }
    table->columns[at] = column;
    table->column_count++;
}

void fgw_migrate_table_drop(struct fgw_migrate_table *table, const char *column)
{
    const struct fgw_migrate_column *found = fgw_migrate_table_find(table, column);
    if (found != NULL) {
        size_t at = (size_t)(found - table->columns);
        table->column_count--;
        memmove(table->columns + at, table->columns + at + 1,
                (table->column_count - at) * sizeof(table->columns[0]));
    }
}

const char *fgw_migrate_key_text(struct fgw_arena *arena, const struct fgw_migrate_table *table)
{
    const char *partition = "";
    const char *clustering = "";
    for (size_t i = 0; i < table->column_count && is_key(&table->columns[i]); i++) {
        const struct fgw_migrate_column *column = &table->columns[i];
        if (column->kind == FGW_MIGRATE_PARTITION) {
            partition =
                fgw_arena_printf(arena, "%s%s%s", partition, *partition ? ", " : "", column->name);
        } else {
            clustering = fgw_arena_printf(arena, "%s, %s%s", clustering, column->name,
                                          column->descending ? " DESC" : "");
        }
    }
    return fgw_arena_printf(arena, "((%s)%s)", partition, clustering);
}

static const char *order_clause(struct fgw_arena *arena, const struct fgw_migrate_table *table)
{
    const char *order = "";
    bool any = false;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct fgw_migrate_column *column = &table->columns[i];
        if (column->kind == FGW_MIGRATE_CLUSTERING) {
            any = any || column->descending;
            order = fgw_arena_printf(arena, "%s%s%s %s", order, *order ? ", " : "", column->name,
                                     column->descending ? "DESC" : "ASC");
        }
    }
    return any ? fgw_arena_printf(arena, "CLUSTERING ORDER BY (%s)", order) : "";
}

static const char *plain_key(struct fgw_arena *arena, const struct fgw_migrate_table *table)
{
    struct fgw_migrate_table ascending = *table;
    ascending.columns = fgw_arena_alloc(arena, table->column_count * sizeof(*table->columns));
    memcpy(ascending.columns, table->columns, table->column_count * sizeof(*table->columns));
    for (size_t i = 0; i < table->column_count; i++) {
        ascending.columns[i].descending = false;
    }
    return fgw_migrate_key_text(arena, &ascending);
}

const char *fgw_migrate_table_cql(struct fgw_arena *arena, const char *keyspace,
                                  const struct fgw_migrate_table *table)
{
    const char *columns = "";
    for (size_t i = 0; i < table->column_count; i++) {
        const struct fgw_migrate_column *column = &table->columns[i];
        columns = fgw_arena_printf(arena, "%s%s %s%s, ", columns, column->name, column->type,
                                   column->kind == FGW_MIGRATE_STATIC ? " STATIC" : "");
    }
    const char *order = order_clause(arena, table);
    const char *ttl = table->ttl_s == 0 ? ""
                                        : fgw_arena_printf(arena, "default_time_to_live = %" PRId64,
                                                           table->ttl_s);
    return fgw_arena_printf(arena, "CREATE TABLE %s.%s (%sPRIMARY KEY %s)%s%s%s%s", keyspace,
                            table->name, columns, plain_key(arena, table),
                            *order || *ttl ? " WITH " : "", order, *order && *ttl ? " AND " : "",
                            ttl);
}

static void append(struct fgw_arena *arena, struct fgw_migrate_diff *diff, const char *part)
{
    diff->text = *diff->text ? fgw_arena_printf(arena, "%s; %s", diff->text, part) : part;
    diff->equal = false;
}

static size_t key_length(const struct fgw_migrate_table *table)
{
    size_t len = 0;
    while (len < table->column_count && is_key(&table->columns[len])) {
        len++;
    }
    return len;
}

static bool same_key(const struct fgw_migrate_table *want, const struct fgw_migrate_table *have)
{
    size_t len = key_length(want);
    if (key_length(have) != len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        const struct fgw_migrate_column *a = &want->columns[i];
        const struct fgw_migrate_column *b = &have->columns[i];
        if (strcmp(a->name, b->name) != 0 || a->kind != b->kind || a->descending != b->descending) {
            return false;
        }
    }
    return true;
}

static void compare_types(struct fgw_arena *arena, const struct fgw_migrate_table *want,
                          const struct fgw_migrate_table *have, struct fgw_migrate_diff *diff)
{
    for (size_t i = 0; i < want->column_count; i++) {
        const struct fgw_migrate_column *a = &want->columns[i];
        const struct fgw_migrate_column *b = fgw_migrate_table_find(have, a->name);
        if (b == NULL) {
            continue;
        }
        bool static_differs = !is_key(a) && !is_key(b) && a->kind != b->kind;
        if (strcmp(a->type, b->type) != 0 || static_differs) {
            append(arena, diff,
                   fgw_arena_printf(arena, "type: %s want %s%s  have %s%s", a->name, a->type,
                                    a->kind == FGW_MIGRATE_STATIC ? " static" : "", b->type,
                                    b->kind == FGW_MIGRATE_STATIC ? " static" : ""));
            diff->key = diff->key || is_key(a);
            diff->type = true;
        }
    }
}

/* Columns of `a` that `b` lacks: all for the text, regular ones for the list. */
static const char *only_in(struct fgw_arena *arena, const struct fgw_migrate_table *a,
                           const struct fgw_migrate_table *b,
                           const struct fgw_migrate_column ***out_list, size_t *out_count)
{
    const char *text = "";
    *out_list = fgw_arena_alloc(arena, (a->column_count + 1) * sizeof(**out_list));
    *out_count = 0;
    for (size_t i = 0; i < a->column_count; i++) {
        const struct fgw_migrate_column *column = &a->columns[i];
        if (fgw_migrate_table_find(b, column->name) == NULL) {
            text = fgw_arena_printf(arena, "%s%s%s %s", text, *text ? ", " : "", column->name,
                                    column->type);
            if (!is_key(column)) {
                (*out_list)[(*out_count)++] = column;
            }
        }
    }
    return text;
}

static void compare_options(struct fgw_arena *arena, const struct fgw_migrate_table *want,
                            const struct fgw_migrate_table *have, struct fgw_migrate_diff *diff)
{
    if (want->ttl_s != have->ttl_s) {
        append(arena, diff,
               fgw_arena_printf(arena, "default_time_to_live: want %" PRId64 "  have %" PRId64,
                                want->ttl_s, have->ttl_s));
        diff->options = true;
    }
    if (want->transactional != have->transactional) {
        append(arena, diff,
               fgw_arena_printf(arena, "transactions: want %s  have %s",
                                want->transactional ? "on" : "off",
                                have->transactional ? "on" : "off"));
        diff->options = true;
    }
}

void fgw_migrate_table_compare(struct fgw_arena *arena, const struct fgw_migrate_table *want,
                               const struct fgw_migrate_table *have,
                               struct fgw_migrate_diff *out_diff)
{
    struct fgw_migrate_diff *diff = out_diff;
    *diff = (struct fgw_migrate_diff){.equal = true, .text = ""};
    if (have == NULL) {
        diff->missing_table = true;
        append(arena, diff, "table is missing");
        return;
    }
    if (!same_key(want, have)) {
        append(arena, diff,
               fgw_arena_printf(arena, "key: want %s  have %s", fgw_migrate_key_text(arena, want),
                                fgw_migrate_key_text(arena, have)));
        diff->key = true;
    }
    compare_types(arena, want, have, diff);
    const char *missing = only_in(arena, want, have, &diff->missing, &diff->missing_count);
    if (*missing) {
        append(arena, diff, fgw_arena_printf(arena, "missing: %s", missing));
    }
    const char *extra = only_in(arena, have, want, &diff->extra, &diff->extra_count);
    if (*extra) {
        append(arena, diff, fgw_arena_printf(arena, "extra: %s", extra));
    }
    compare_options(arena, want, have, diff);
}

void fgw_migrate_catalog_hash(const struct fgw_migrate_catalog *catalog,
                              char out_hash[FGW_MIGRATE_SHA_MAX])
{
    const char *all = "";
    for (size_t i = 0; i < catalog->table_count; i++) {
        all = fgw_arena_printf(catalog->arena, "%s%s;%s\n", all,
                               fgw_migrate_table_cql(catalog->arena, "", catalog->tables[i]),
                               catalog->tables[i]->transactional ? "transactional" : "");
    }
    fgw_migrate_sha(fgw_bytes_str(all), out_hash);
}
