/* values.c: see values.h. */
#include "cql/values.h"

#include "base/check.h"
#include "cql/wire.h"

static void encode_i64(struct fgw_buf *out, int64_t value)
{
    uint8_t raw[8];
    fgw_put_u64be(raw, (uint64_t)value);
    fgw_cql_put_bytes(out, fgw_bytes(raw, sizeof raw));
}

void fgw_cql_value_encode(struct fgw_buf *out, const struct fgw_cql_value *value)
{
    switch (value->kind) {
    case FGW_CQL_VALUE_NULL:
        fgw_cql_put_i32(out, -1);
        return;
    case FGW_CQL_VALUE_TEXT:
    case FGW_CQL_VALUE_BLOB:
        fgw_cql_put_bytes(out, value->bytes);
        return;
    case FGW_CQL_VALUE_BIGINT:
    case FGW_CQL_VALUE_TIMESTAMP:
        encode_i64(out, value->integer);
        return;
    case FGW_CQL_VALUE_INT:
        fgw_cql_put_i32(out, 4);
        fgw_cql_put_i32(out, (int32_t)value->integer);
        return;
    case FGW_CQL_VALUE_BOOLEAN:
        fgw_cql_put_i32(out, 1);
        fgw_buf_append_byte(out, value->boolean ? 1 : 0);
        return;
    case FGW_CQL_VALUE_UUID:
        fgw_cql_put_bytes(out, fgw_bytes(value->uuid, FGW_CQL_UUID_SIZE));
        return;
    }
    FGW_CHECK(value->kind <= FGW_CQL_VALUE_UUID);
}

bool fgw_cql_value_fits(const struct fgw_cql_value *value, uint16_t column_type)
{
    switch (value->kind) {
    case FGW_CQL_VALUE_NULL:
        return true;
    case FGW_CQL_VALUE_TEXT:
        return column_type == FGW_CQL_TYPE_TEXT || column_type == FGW_CQL_TYPE_ASCII;
    case FGW_CQL_VALUE_BLOB:
        return column_type == FGW_CQL_TYPE_BLOB;
    case FGW_CQL_VALUE_BIGINT:
        return column_type == FGW_CQL_TYPE_BIGINT;
    case FGW_CQL_VALUE_INT:
        return column_type == FGW_CQL_TYPE_INT;
    case FGW_CQL_VALUE_BOOLEAN:
        return column_type == FGW_CQL_TYPE_BOOLEAN;
    case FGW_CQL_VALUE_TIMESTAMP:
        return column_type == FGW_CQL_TYPE_TIMESTAMP;
    case FGW_CQL_VALUE_UUID:
        return column_type == FGW_CQL_TYPE_UUID || column_type == FGW_CQL_TYPE_TIMEUUID;
    }
    return false;
}

const char *fgw_cql_type_name(uint16_t type)
{
    static const char *const NAMES[] = {
        [FGW_CQL_TYPE_CUSTOM] = "custom",
        [FGW_CQL_TYPE_ASCII] = "ascii",
        [FGW_CQL_TYPE_BIGINT] = "bigint",
        [FGW_CQL_TYPE_BLOB] = "blob",
        [FGW_CQL_TYPE_BOOLEAN] = "boolean",
        [FGW_CQL_TYPE_COUNTER] = "counter",
        [FGW_CQL_TYPE_DECIMAL] = "decimal",
        [FGW_CQL_TYPE_DOUBLE] = "double",
        [FGW_CQL_TYPE_FLOAT] = "float",
        [FGW_CQL_TYPE_INT] = "int",
        [FGW_CQL_TYPE_TIMESTAMP] = "timestamp",
        [FGW_CQL_TYPE_UUID] = "uuid",
        [FGW_CQL_TYPE_TEXT] = "text",
        [FGW_CQL_TYPE_VARINT] = "varint",
        [FGW_CQL_TYPE_TIMEUUID] = "timeuuid",
        [FGW_CQL_TYPE_INET] = "inet",
        [FGW_CQL_TYPE_DATE] = "date",
        [FGW_CQL_TYPE_TIME] = "time",
        [FGW_CQL_TYPE_SMALLINT] = "smallint",
        [FGW_CQL_TYPE_TINYINT] = "tinyint",
        [FGW_CQL_TYPE_LIST] = "list",
        [FGW_CQL_TYPE_MAP] = "map",
        [FGW_CQL_TYPE_SET] = "set",
        [FGW_CQL_TYPE_UDT] = "udt",
        [FGW_CQL_TYPE_TUPLE] = "tuple",
        [FGW_CQL_TYPE_JSONB] = "jsonb",
    };
    const char *name = type < FGW_COUNT_OF(NAMES) ? NAMES[type] : NULL;
    return name != NULL ? name : "other";
}

const char *fgw_cql_value_kind_name(enum fgw_cql_value_kind kind)
{
    static const char *const NAMES[] = {
        [FGW_CQL_VALUE_NULL] = "null",
        [FGW_CQL_VALUE_TEXT] = "text",
        [FGW_CQL_VALUE_BLOB] = "blob",
        [FGW_CQL_VALUE_BIGINT] = "bigint",
        [FGW_CQL_VALUE_INT] = "int",
        [FGW_CQL_VALUE_BOOLEAN] = "boolean",
        [FGW_CQL_VALUE_TIMESTAMP] = "timestamp",
        [FGW_CQL_VALUE_UUID] = "uuid",
    };
    return (size_t)kind < FGW_COUNT_OF(NAMES) ? NAMES[kind] : "other";
}

enum fgw_err fgw_cql_cell_text(struct fgw_cql_cell cell, uint16_t type, struct fgw_bytes *out_text)
{
    if (type != FGW_CQL_TYPE_TEXT && type != FGW_CQL_TYPE_ASCII) {
        return FGW_ERR_CORRUPT;
    }
    if (cell.null) {
        return FGW_ERR_NOT_FOUND;
    }
    *out_text = cell.bytes;
    return FGW_OK;
}

enum fgw_err fgw_cql_cell_blob(struct fgw_cql_cell cell, uint16_t type, struct fgw_bytes *out_bytes)
{
    if (type != FGW_CQL_TYPE_BLOB) {
        return FGW_ERR_CORRUPT;
    }
    if (cell.null) {
        return FGW_ERR_NOT_FOUND;
    }
    *out_bytes = cell.bytes;
    return FGW_OK;
}

static enum fgw_err check_fixed(struct fgw_cql_cell cell, bool type_fits, size_t size)
{
    if (!type_fits) {
        return FGW_ERR_CORRUPT;
    }
    if (cell.null || cell.bytes.len == 0) {
        return FGW_ERR_NOT_FOUND;
    }
    return cell.bytes.len == size ? FGW_OK : FGW_ERR_CORRUPT;
}

enum fgw_err fgw_cql_cell_i64(struct fgw_cql_cell cell, uint16_t type, int64_t *out)
{
    bool fits = type == FGW_CQL_TYPE_BIGINT || type == FGW_CQL_TYPE_TIMESTAMP;
    enum fgw_err err = check_fixed(cell, fits, 8);
    if (err == FGW_OK) {
        *out = (int64_t)fgw_get_u64be(cell.bytes.ptr);
    }
    return err;
}

enum fgw_err fgw_cql_cell_i32(struct fgw_cql_cell cell, uint16_t type, int32_t *out)
{
    enum fgw_err err = check_fixed(cell, type == FGW_CQL_TYPE_INT, 4);
    if (err == FGW_OK) {
        *out = (int32_t)fgw_get_u32be(cell.bytes.ptr);
    }
    return err;
}

enum fgw_err fgw_cql_cell_boolean(struct fgw_cql_cell cell, uint16_t type, bool *out)
{
    enum fgw_err err = check_fixed(cell, type == FGW_CQL_TYPE_BOOLEAN, 1);
    if (err == FGW_OK) {
        *out = cell.bytes.ptr[0] != 0;
    }
    return err;
}

enum fgw_err fgw_cql_cell_uuid(struct fgw_cql_cell cell, uint16_t type,
                               uint8_t out[FGW_CQL_UUID_SIZE])
{
    bool fits = type == FGW_CQL_TYPE_UUID || type == FGW_CQL_TYPE_TIMEUUID;
    enum fgw_err err = check_fixed(cell, fits, FGW_CQL_UUID_SIZE);
    if (err == FGW_OK) {
        memcpy(out, cell.bytes.ptr, FGW_CQL_UUID_SIZE);
    }
    return err;
}

enum fgw_err fgw_cql_cell_inet(struct fgw_cql_cell cell, uint16_t type,
                               struct fgw_bytes *out_address)
{
    size_t size = cell.bytes.len == 4 ? 4 : 16;
    enum fgw_err err = check_fixed(cell, type == FGW_CQL_TYPE_INET, size);
    if (err == FGW_OK) {
        *out_address = cell.bytes;
    }
    return err;
}
