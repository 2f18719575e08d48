/* decode_result.c: RESULT bodies (spec/ycql.md section 5.4): rows with their metadata, prepared
 * statements, schema changes. Row contents are walked once here, so that reading rows later cannot
 * run out of bounds. */
#include "cql/decode_internal.h"

/* list<frozen<map<text, ...>>>: real schemas stay below 4. */
enum { TYPE_DEPTH_MAX = 16, COLUMNS_MAX = UINT16_MAX, COLUMN_SIZE_MIN = 4, CELL_SIZE_MIN = 4 };

static uint16_t read_type(struct fgw_cql_reader *reader, uint16_t element[2], int depth);

static void skip_udt(struct fgw_cql_reader *reader, int depth)
{
    uint16_t ignored[2];
    (void)fgw_cql_read_string(reader);
    (void)fgw_cql_read_string(reader);
    uint16_t fields = fgw_cql_read_u16(reader);
    for (uint16_t i = 0; i < fields && !reader->bad; i++) {
        (void)fgw_cql_read_string(reader);
        (void)read_type(reader, ignored, depth);
    }
}

static void skip_tuple(struct fgw_cql_reader *reader, int depth)
{
    uint16_t ignored[2];
    uint16_t fields = fgw_cql_read_u16(reader);
    for (uint16_t i = 0; i < fields && !reader->bad; i++) {
        (void)read_type(reader, ignored, depth);
    }
}

/* Walks one type option; element gets the ids one level below. */
static uint16_t read_type(struct fgw_cql_reader *reader, uint16_t element[2], int depth)
{
    uint16_t deeper[2];
    element[0] = 0;
    element[1] = 0;
    if (depth > TYPE_DEPTH_MAX) {
        reader->bad = true;
        return 0;
    }
    uint16_t type = fgw_cql_read_u16(reader);
    switch (type) {
    case FGW_CQL_TYPE_CUSTOM:
        (void)fgw_cql_read_string(reader);
        break;
    case FGW_CQL_TYPE_LIST:
    case FGW_CQL_TYPE_SET:
        element[0] = read_type(reader, deeper, depth + 1);
        break;
    case FGW_CQL_TYPE_MAP:
        element[0] = read_type(reader, deeper, depth + 1);
        element[1] = read_type(reader, deeper, depth + 1);
        break;
    case FGW_CQL_TYPE_UDT:
        skip_udt(reader, depth + 1);
        break;
    case FGW_CQL_TYPE_TUPLE:
        skip_tuple(reader, depth + 1);
        break;
    default:
        break;
    }
    return type;
}

static struct fgw_cql_column *read_columns(struct fgw_cql_reader *reader, int32_t flags,
                                           size_t count, struct fgw_arena *arena)
{
    struct fgw_bytes keyspace = {0};
    struct fgw_bytes table = {0};
    if (flags & FGW_CQL_META_GLOBAL) {
        keyspace = fgw_cql_read_string(reader);
        table = fgw_cql_read_string(reader);
    }
    if (reader->bad || count > reader->rest.len / COLUMN_SIZE_MIN) {
        reader->bad = true;
        return NULL;
    }
    struct fgw_cql_column *columns = fgw_arena_zalloc(arena, (count + 1) * sizeof *columns);
    for (size_t i = 0; i < count && !reader->bad; i++) {
        columns[i].keyspace = keyspace;
        columns[i].table = table;
        if (!(flags & FGW_CQL_META_GLOBAL)) {
            columns[i].keyspace = fgw_cql_read_string(reader);
            columns[i].table = fgw_cql_read_string(reader);
        }
        columns[i].name = fgw_cql_read_string(reader);
        columns[i].type = read_type(reader, columns[i].element, 0);
    }
    return columns;
}

static size_t read_column_count(struct fgw_cql_reader *reader)
{
    int32_t count = fgw_cql_read_i32(reader);
    if (count < 0 || count > COLUMNS_MAX) {
        reader->bad = true;
        return 0;
    }
    return (size_t)count;
}

static enum fgw_err decode_rows(struct fgw_cql_reader *reader, struct fgw_cql_response *response,
                                struct fgw_error *error)
{
    struct fgw_cql_rows *rows = &response->rows;
    int32_t flags = fgw_cql_read_i32(reader);
    rows->column_count = read_column_count(reader);
    if (flags & FGW_CQL_META_HAS_MORE) {
        rows->has_more = true;
        rows->paging_state = fgw_cql_read_bytes(reader, NULL);
    }
    if ((flags & FGW_CQL_META_NONE) || (rows->column_count == 0 && !reader->bad)) {
        return fgw_error_set(error, FGW_ERR_CORRUPT, "rows without a description of their columns");
    }
    rows->columns = read_columns(reader, flags, rows->column_count, &response->arena);
    if (reader->bad) {
        return FGW_OK;
    }
    rows->row_count = fgw_cql_read_count(reader, rows->column_count * CELL_SIZE_MIN);
    struct fgw_bytes from = reader->rest;
    for (size_t i = 0; i < rows->row_count * rows->column_count && !reader->bad; i++) {
        (void)fgw_cql_read_bytes(reader, NULL);
    }
    rows->content = fgw_bytes_sub(from, 0, from.len - reader->rest.len);
    return FGW_OK;
}

/* Result metadata follows; it is not kept: each execution brings its own, and on a conditional
 * statement it differs from execution to execution. */
static void decode_prepared(struct fgw_cql_reader *reader, struct fgw_cql_response *response)
{
    struct fgw_cql_prepared *prepared = &response->prepared;
    prepared->id = fgw_cql_read_string(reader);
    int32_t flags = fgw_cql_read_i32(reader);
    prepared->bind_count = read_column_count(reader);
    size_t partition_keys = fgw_cql_read_count(reader, 2);
    (void)fgw_cql_read_raw(reader, partition_keys * 2); /* indices: no routing by token */
    prepared->bind = read_columns(reader, flags, prepared->bind_count, &response->arena);
    if (prepared->id.len == 0) {
        reader->bad = true;
    }
}

void fgw_cql_decode_schema_change(struct fgw_cql_reader *reader, struct fgw_cql_change *change)
{
    change->kind = fgw_cql_read_string(reader);
    change->target = fgw_cql_read_string(reader);
    change->keyspace = fgw_cql_read_string(reader);
    if (!fgw_bytes_eq_str(change->target, "KEYSPACE")) {
        change->name = fgw_cql_read_string(reader);
    }
}

enum fgw_err fgw_cql_decode_result(struct fgw_cql_reader *reader, struct fgw_cql_response *response,
                                   struct fgw_error *error)
{
    int32_t kind = fgw_cql_read_i32(reader);
    if (reader->bad) {
        return FGW_OK;
    }
    switch (kind) {
    case FGW_CQL_RESULT_VOID:
        break;
    case FGW_CQL_RESULT_ROWS:
        response->kind = FGW_CQL_RESULT_ROWS;
        return decode_rows(reader, response, error);
    case FGW_CQL_RESULT_SET_KEYSPACE:
        response->keyspace = fgw_cql_read_string(reader);
        break;
    case FGW_CQL_RESULT_PREPARED:
        decode_prepared(reader, response);
        break;
    case FGW_CQL_RESULT_SCHEMA_CHANGE:
        fgw_cql_decode_schema_change(reader, &response->change);
        break;
    default:
        return fgw_error_set(error, FGW_ERR_CORRUPT, "a result of unknown kind %d", kind);
    }
    response->kind = (enum fgw_cql_result_kind)kind;
    return FGW_OK;
}
