/* cql_port_catalog.c: the port's view of schemas and of rows of any table. system_schema is always
 * asked by keyspace and table, since YugabyteDB may answer unfiltered questions from a cache. */
#include "migrate/cql_port_internal.h"

#include <stdio.h>

enum { TEXT_MAX = 1 << 20 };

static struct fgw_migrate_answer ask(struct fgw_migrate_port *port, bool anywhere,
                                     struct fgw_buf *text, struct fgw_cql_result **out_result)
{
    struct port_question question = {.kind = FGW_CQL_READ, .anywhere = anywhere};
    return fgw_port_ask(port, &question, text, out_result);
}

static struct fgw_migrate_answer keyspace_exists(void *context, const char *keyspace,
                                                 bool *out_exists)
{
    struct fgw_cql_result *result = NULL;
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    (void)fgw_buf_append_str(
        &text, "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ");
    fgw_port_str(&text, keyspace);
    struct fgw_migrate_answer answer = ask(context, false, &text, &result);
    if (answer.class == FGW_MIGRATE_OK) {
        *out_exists = fgw_cql_result_next(result);
    }
    fgw_cql_result_free(result);
    return answer;
}

static struct fgw_migrate_answer keyspace_create(void *context, const char *keyspace)
{
    struct fgw_migrate_port *port = context;
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    (void)fgw_buf_appendf(&text, "CREATE KEYSPACE IF NOT EXISTS %s WITH replication = %s", keyspace,
                          port->options.replication);
    (void)fgw_buf_append_byte(&text, 0);
    struct fgw_migrate_answer answer = port->ops.send(port, keyspace, (const char *)text.ptr);
    fgw_buf_deinit(&text);
    return answer;
}

static struct fgw_migrate_answer list_tables(void *context, const char *keyspace,
                                             struct fgw_arena *arena, const char ***out_names,
                                             size_t *out_count)
{
    struct port_rows found;
    const char **names = NULL;
    size_t count = 0;
    fgw_port_rows_init(&found, context, false);
    (void)fgw_buf_append_str(&found.text,
                             "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ");
    fgw_port_str(&found.text, keyspace);
    while (fgw_port_next(&found)) {
        struct fgw_bytes name;
        if (fgw_cql_get_text(found.result, "table_name", &name) == FGW_OK) {
            names = fgw_port_grow(arena, names, count, sizeof *names);
            names[count++] = fgw_arena_strdup(arena, name);
        }
    }
    struct fgw_migrate_answer answer = found.answer;
    fgw_port_rows_deinit(&found);
    if (answer.class == FGW_MIGRATE_OK) {
        *out_names = names;
        *out_count = count;
    }
    return answer;
}

/* -- one table ----------------------------------------------------------------------------------- */

static void filter(struct fgw_buf *text, const char *keyspace, const char *table)
{
    (void)fgw_buf_append_str(text, " WHERE keyspace_name = ");
    fgw_port_str(text, keyspace);
    (void)fgw_buf_append_str(text, " AND table_name = ");
    fgw_port_str(text, table);
}

static enum fgw_migrate_column_kind kind_of(struct fgw_bytes kind)
{
    return fgw_bytes_eq_str(kind, "partition_key") ? FGW_MIGRATE_PARTITION
           : fgw_bytes_eq_str(kind, "clustering")  ? FGW_MIGRATE_CLUSTERING
           : fgw_bytes_eq_str(kind, "static")      ? FGW_MIGRATE_STATIC
                                                   : FGW_MIGRATE_REGULAR;
}

static void add_column(struct fgw_arena *arena, struct fgw_migrate_table *table,
                       const struct fgw_cql_result *row)
{
    struct fgw_bytes name;
    struct fgw_bytes type;
    struct fgw_bytes kind;
    struct fgw_bytes order;
    int32_t position = 0;
    if (fgw_cql_get_text(row, "column_name", &name) != FGW_OK ||
        fgw_cql_get_text(row, "type", &type) != FGW_OK ||
        fgw_cql_get_text(row, "kind", &kind) != FGW_OK) {
        return;
    }
    struct fgw_migrate_column column = {.name = fgw_arena_strdup(arena, name),
                                        .type = fgw_migrate_type(arena, type),
                                        .kind = kind_of(kind)};
    fgw_port_get_i32(row, "position", &position);
    if (column.kind == FGW_MIGRATE_PARTITION || column.kind == FGW_MIGRATE_CLUSTERING) {
        column.position = position;
    }
    column.descending = fgw_cql_get_text(row, "clustering_order", &order) == FGW_OK &&
                        fgw_bytes_ieq_str(order, "desc");
    fgw_migrate_table_add(arena, table, column);
}

static struct fgw_migrate_answer read_ttl(struct fgw_migrate_port *port, bool anywhere,
                                          const char *keyspace, struct fgw_migrate_table *table)
{
    struct fgw_cql_result *result = NULL;
    struct fgw_buf text;
    int32_t ttl = 0;
    fgw_buf_init(&text, TEXT_MAX);
    (void)fgw_buf_append_str(&text, "SELECT default_time_to_live FROM system_schema.tables");
    filter(&text, keyspace, table->name);
    struct fgw_migrate_answer answer = ask(port, anywhere, &text, &result);
    if (answer.class == FGW_MIGRATE_OK && fgw_cql_result_next(result)) {
        fgw_port_get_i32(result, "default_time_to_live", &ttl);
        table->ttl_s = ttl;
    }
    fgw_cql_result_free(result);
    return answer;
}

static struct fgw_migrate_answer read_table(void *context, const char *keyspace, const char *name,
                                            unsigned coordinator, struct fgw_arena *arena,
                                            struct fgw_migrate_table **out_table)
{
    struct fgw_migrate_port *port = context;
    struct fgw_migrate_table *table = NULL;
    struct port_rows found;
    bool anywhere = coordinator % 2 == 1;
    fgw_port_rows_init(&found, port, anywhere);
    (void)fgw_buf_append_str(&found.text,
                             "SELECT column_name, type, kind, position, clustering_order FROM "
                             "system_schema.columns");
    filter(&found.text, keyspace, name);
    while (fgw_port_next(&found)) {
        if (table == NULL) {
            table = fgw_migrate_table_new(arena, name);
        }
        add_column(arena, table, found.result);
    }
    struct fgw_migrate_answer answer = found.answer;
    fgw_port_rows_deinit(&found);
    if (answer.class == FGW_MIGRATE_OK && table != NULL) {
        answer = read_ttl(port, anywhere, keyspace, table);
    }
    if (answer.class == FGW_MIGRATE_OK) {
        *out_table = table;
    }
    return answer;
}

/* -- rows of any table ---------------------------------------------------------------------------- */

static void select_columns(struct fgw_buf *text, const char *keyspace,
                           const struct fgw_migrate_table *table)
{
    (void)fgw_buf_append_str(text, "SELECT ");
    for (size_t i = 0; i < table->column_count; i++) {
        (void)fgw_buf_appendf(text, "%s%s", i == 0 ? "" : ", ", table->columns[i].name);
    }
    (void)fgw_buf_appendf(text, " FROM %s.%s", keyspace, table->name);
}

static struct fgw_migrate_answer probe(void *context, const char *keyspace,
                                       const struct fgw_migrate_table *table, bool *out_rows)
{
    struct fgw_cql_result *result = NULL;
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    select_columns(&text, keyspace, table);
    (void)fgw_buf_append_str(&text, " LIMIT 1");
    struct fgw_migrate_answer answer = ask(context, false, &text, &result);
    if (answer.class == FGW_MIGRATE_OK) {
        *out_rows = fgw_cql_result_next(result);
    }
    fgw_cql_result_free(result);
    return answer;
}

static struct fgw_bytes *copy_cells(struct fgw_arena *arena, const struct fgw_cql_result *row,
                                    size_t count)
{
    struct fgw_bytes *cells = fgw_arena_zalloc(arena, count * sizeof *cells);
    for (size_t i = 0; i < count; i++) {
        if (!row->cells[i].null) {
            cells[i] = fgw_arena_copy(arena, row->cells[i].bytes);
        }
    }
    return cells;
}

static struct fgw_migrate_answer rows_read(void *context, const char *keyspace,
                                           const struct fgw_migrate_table *table, size_t limit,
                                           struct fgw_bytes *cursor, struct fgw_arena *arena,
                                           struct fgw_migrate_cells **out_rows, size_t *out_count)
{
    struct port_question question = {
        .kind = FGW_CQL_READ, .paging = *cursor, .page_size = (int32_t)limit};
    struct fgw_cql_result *result = NULL;
    struct fgw_migrate_cells *rows = NULL;
    struct fgw_buf text;
    size_t count = 0;
    fgw_buf_init(&text, TEXT_MAX);
    select_columns(&text, keyspace, table);
    struct fgw_migrate_answer answer = fgw_port_ask(context, &question, &text, &result);
    if (answer.class != FGW_MIGRATE_OK) {
        return answer;
    }
    while (fgw_cql_result_next(result)) {
        rows = fgw_port_grow(arena, rows, count, sizeof *rows);
        rows[count++].cells = copy_cells(arena, result, table->column_count);
    }
    *cursor = fgw_cql_result_has_more(result)
                  ? fgw_arena_copy(arena, fgw_cql_result_paging_state(result))
                  : fgw_bytes(NULL, 0);
    *out_rows = rows;
    *out_count = count;
    fgw_cql_result_free(result);
    return answer;
}

static struct fgw_migrate_answer no_literal(const struct fgw_migrate_table *table, size_t column,
                                            struct fgw_buf *text)
{
    struct fgw_migrate_answer answer = {.class = FGW_MIGRATE_PERMANENT};
    (void)snprintf(answer.text, sizeof answer.text, "%s.%s: a value of type %s cannot be copied",
                   table->name, table->columns[column].name, table->columns[column].type);
    fgw_buf_deinit(text);
    return answer;
}

static struct fgw_migrate_answer row_write(void *context, const char *keyspace,
                                           const struct fgw_migrate_table *table,
                                           const struct fgw_bytes *cells)
{
    struct fgw_buf text;
    const char *separator = "";
    fgw_buf_init(&text, TEXT_MAX);
    (void)fgw_buf_appendf(&text, "INSERT INTO %s.%s (", keyspace, table->name);
    for (size_t i = 0; i < table->column_count; i++) {
        if (cells[i].ptr != NULL) {
            (void)fgw_buf_appendf(&text, "%s%s", separator, table->columns[i].name);
            separator = ", ";
        }
    }
    (void)fgw_buf_append_str(&text, ") VALUES (");
    separator = "";
    for (size_t i = 0; i < table->column_count; i++) {
        if (cells[i].ptr != NULL) {
            (void)fgw_buf_append_str(&text, separator);
            separator = ", ";
            if (!fgw_port_cell(&text, table->columns[i].type, cells[i])) {
                return no_literal(table, i, &text);
            }
        }
    }
    (void)fgw_buf_append_str(&text, ")");
    return fgw_port_write(context, &text);
}

/* " WHERE key = ..." of all key columns; the column that has no literal, or -1. */
static int append_key(struct fgw_buf *text, const struct fgw_migrate_table *table,
                      const struct fgw_bytes *cells)
{
    const char *separator = " WHERE ";
    for (size_t i = 0; i < table->column_count; i++) {
        const struct fgw_migrate_column *column = &table->columns[i];
        if (column->kind != FGW_MIGRATE_PARTITION && column->kind != FGW_MIGRATE_CLUSTERING) {
            continue;
        }
        (void)fgw_buf_appendf(text, "%s%s = ", separator, column->name);
        separator = " AND ";
        if (!fgw_port_cell(text, column->type, cells[i])) {
            return (int)i;
        }
    }
    return -1;
}

static struct fgw_migrate_answer row_check(void *context, const char *keyspace,
                                           const struct fgw_migrate_table *table,
                                           const struct fgw_bytes *cells, bool *out_found)
{
    struct fgw_cql_result *result = NULL;
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    select_columns(&text, keyspace, table);
    int bad = append_key(&text, table, cells);
    if (bad >= 0) {
        return no_literal(table, (size_t)bad, &text);
    }
    struct fgw_migrate_answer answer = ask(context, false, &text, &result);
    if (answer.class == FGW_MIGRATE_OK) {
        bool same = fgw_cql_result_next(result);
        for (size_t i = 0; same && i < table->column_count; i++) {
            const struct fgw_cql_cell *cell = &result->cells[i];
            same = cell->null ? cells[i].ptr == NULL
                              : cells[i].ptr != NULL && fgw_bytes_eq(cell->bytes, cells[i]);
        }
        *out_found = same;
    }
    fgw_cql_result_free(result);
    return answer;
}

static struct fgw_migrate_answer row_delete(void *context, const char *keyspace,
                                            const struct fgw_migrate_table *table,
                                            const struct fgw_bytes *cells)
{
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    (void)fgw_buf_appendf(&text, "DELETE FROM %s.%s", keyspace, table->name);
    int bad = append_key(&text, table, cells);
    return bad >= 0 ? no_literal(table, (size_t)bad, &text) : fgw_port_write(context, &text);
}

void fgw_port_set_catalog(struct fgw_migrate_ops *ops)
{
    ops->keyspace_exists = keyspace_exists;
    ops->keyspace_create = keyspace_create;
    ops->list_tables = list_tables;
    ops->read_table = read_table;
    ops->probe = probe;
    ops->rows_read = rows_read;
    ops->row_write = row_write;
    ops->row_check = row_check;
    ops->row_delete = row_delete;
}
