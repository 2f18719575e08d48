/* result.c: see result.h. */
#include "cql/result.h"

#include "base/check.h"
#include "cql/wire.h"

static const struct fgw_cql_rows *rows_of(const struct fgw_cql_result *result)
{
    const struct fgw_cql_response *response = result->response;
    return response->kind == FGW_CQL_RESULT_ROWS ? &response->rows : NULL;
}

struct fgw_cql_result *fgw_cql_result_new(struct fgw_cql_response *response)
{
    FGW_CHECK(response->opcode == FGW_CQL_OP_RESULT);
    struct fgw_cql_result *result = fgw_xcalloc(1, sizeof *result);
    result->response = response;
    const struct fgw_cql_rows *rows = rows_of(result);
    if (rows != NULL) {
        result->cells =
            fgw_arena_zalloc(&response->arena, rows->column_count * sizeof *result->cells);
    }
    fgw_cql_result_rewind(result);
    return result;
}

void fgw_cql_result_free(struct fgw_cql_result *result)
{
    if (result != NULL) {
        fgw_cql_response_free(result->response);
        fgw_xfree(result);
    }
}

size_t fgw_cql_result_row_count(const struct fgw_cql_result *result)
{
    const struct fgw_cql_rows *rows = rows_of(result);
    return rows == NULL ? 0 : rows->row_count;
}

bool fgw_cql_result_has_more(const struct fgw_cql_result *result)
{
    const struct fgw_cql_rows *rows = rows_of(result);
    return rows != NULL && rows->has_more;
}

struct fgw_bytes fgw_cql_result_paging_state(const struct fgw_cql_result *result)
{
    const struct fgw_cql_rows *rows = rows_of(result);
    return rows == NULL ? fgw_bytes(NULL, 0) : rows->paging_state;
}

bool fgw_cql_result_next(struct fgw_cql_result *result)
{
    const struct fgw_cql_rows *rows = rows_of(result);
    result->on_row = result->rows_left > 0;
    if (!result->on_row) {
        return false;
    }
    result->rows_left--;
    struct fgw_cql_reader reader = fgw_cql_reader(result->rest);
    for (size_t i = 0; i < rows->column_count; i++) {
        result->cells[i].bytes = fgw_cql_read_bytes(&reader, &result->cells[i].null);
    }
    FGW_CHECK(!reader.bad); /* the decoder walked them */
    result->rest = reader.rest;
    return true;
}

void fgw_cql_result_rewind(struct fgw_cql_result *result)
{
    const struct fgw_cql_rows *rows = rows_of(result);
    result->on_row = false;
    if (rows != NULL) {
        result->rest = rows->content;
        result->rows_left = rows->row_count;
    }
}

int fgw_cql_result_column(const struct fgw_cql_result *result, const char *name)
{
    const struct fgw_cql_rows *rows = rows_of(result);
    for (size_t i = 0; rows != NULL && i < rows->column_count; i++) {
        if (fgw_bytes_eq_str(rows->columns[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

/* A column that is not there reads as null of the wanted type. */
static struct fgw_cql_cell find_cell(const struct fgw_cql_result *result, const char *name,
                                     uint16_t wanted, uint16_t *out_type)
{
    FGW_CHECK(result->on_row);
    int column = fgw_cql_result_column(result, name);
    *out_type = column < 0 ? wanted : rows_of(result)->columns[column].type;
    return column < 0 ? (struct fgw_cql_cell){.null = true} : result->cells[column];
}

bool fgw_cql_get_null(const struct fgw_cql_result *result, const char *name)
{
    uint16_t type;
    return find_cell(result, name, 0, &type).null;
}

enum fgw_err fgw_cql_get_text(const struct fgw_cql_result *result, const char *name,
                              struct fgw_bytes *out_text)
{
    uint16_t type;
    struct fgw_cql_cell cell = find_cell(result, name, FGW_CQL_TYPE_TEXT, &type);
    return fgw_cql_cell_text(cell, type, out_text);
}

enum fgw_err fgw_cql_get_blob(const struct fgw_cql_result *result, const char *name,
                              struct fgw_bytes *out_bytes)
{
    uint16_t type;
    struct fgw_cql_cell cell = find_cell(result, name, FGW_CQL_TYPE_BLOB, &type);
    return fgw_cql_cell_blob(cell, type, out_bytes);
}

enum fgw_err fgw_cql_get_bigint(const struct fgw_cql_result *result, const char *name, int64_t *out)
{
    uint16_t type;
    struct fgw_cql_cell cell = find_cell(result, name, FGW_CQL_TYPE_BIGINT, &type);
    return type == FGW_CQL_TYPE_BIGINT ? fgw_cql_cell_i64(cell, type, out) : FGW_ERR_CORRUPT;
}

enum fgw_err fgw_cql_get_timestamp(const struct fgw_cql_result *result, const char *name,
                                   int64_t *out_ms)
{
    uint16_t type;
    struct fgw_cql_cell cell = find_cell(result, name, FGW_CQL_TYPE_TIMESTAMP, &type);
    return type == FGW_CQL_TYPE_TIMESTAMP ? fgw_cql_cell_i64(cell, type, out_ms) : FGW_ERR_CORRUPT;
}

enum fgw_err fgw_cql_get_int(const struct fgw_cql_result *result, const char *name, int32_t *out)
{
    uint16_t type;
    struct fgw_cql_cell cell = find_cell(result, name, FGW_CQL_TYPE_INT, &type);
    return fgw_cql_cell_i32(cell, type, out);
}

enum fgw_err fgw_cql_get_boolean(const struct fgw_cql_result *result, const char *name, bool *out)
{
    uint16_t type;
    struct fgw_cql_cell cell = find_cell(result, name, FGW_CQL_TYPE_BOOLEAN, &type);
    return fgw_cql_cell_boolean(cell, type, out);
}

enum fgw_err fgw_cql_get_uuid(const struct fgw_cql_result *result, const char *name,
                              uint8_t out[FGW_CQL_UUID_SIZE])
{
    uint16_t type;
    struct fgw_cql_cell cell = find_cell(result, name, FGW_CQL_TYPE_UUID, &type);
    return fgw_cql_cell_uuid(cell, type, out);
}

enum fgw_err fgw_cql_get_inet(const struct fgw_cql_result *result, const char *name,
                              struct fgw_bytes *out_address)
{
    uint16_t type;
    struct fgw_cql_cell cell = find_cell(result, name, FGW_CQL_TYPE_INET, &type);
    return fgw_cql_cell_inet(cell, type, out_address);
}

enum fgw_err fgw_cql_result_applied(struct fgw_cql_result *result, bool *out_applied)
{
    fgw_cql_result_rewind(result);
    if (!fgw_cql_result_next(result)) {
        return FGW_ERR_CORRUPT;
    }
    enum fgw_err err = fgw_cql_get_boolean(result, "[applied]", out_applied);
    return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
}
