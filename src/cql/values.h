/* values.h: typed values of statements, and typed reading of cells (spec/ycql.md sections 1, 5.4).
 *
 * FGW's allowed set of types is text, blob, bigint, int, boolean, timestamp and uuid; reading also
 * knows inet (system.peers) and ascii, timeuuid as text, uuid. Values are views: what they point
 * into must live until the call that takes them returns. "Unset" does not exist: YCQL refuses it
 * (yugabyte-db #5400, #9927); null is written deliberately and deletes the cell.
 */
#ifndef FGW_CQL_VALUES_H
#define FGW_CQL_VALUES_H

#include "base/bytes.h"
#include "cql/protocol.h"

enum { FGW_CQL_UUID_SIZE = 16 };

enum fgw_cql_value_kind {
    FGW_CQL_VALUE_NULL,
    FGW_CQL_VALUE_TEXT,
    FGW_CQL_VALUE_BLOB,
    FGW_CQL_VALUE_BIGINT,
    FGW_CQL_VALUE_INT,
    FGW_CQL_VALUE_BOOLEAN,
    FGW_CQL_VALUE_TIMESTAMP,
    FGW_CQL_VALUE_UUID
};

struct fgw_cql_value {
    enum fgw_cql_value_kind kind;
    union {
        struct fgw_bytes bytes; /* text, blob */
        int64_t integer;        /* bigint, int, timestamp (ms since 1970) */
        bool boolean;
        uint8_t uuid[FGW_CQL_UUID_SIZE];
    };
};

static inline struct fgw_cql_value fgw_cql_null(void)
{
    return (struct fgw_cql_value){.kind = FGW_CQL_VALUE_NULL};
}
/* Must be valid UTF-8: Cassandra refuses others; names and keys are blobs for that reason. */
static inline struct fgw_cql_value fgw_cql_text(struct fgw_bytes text)
{
    return (struct fgw_cql_value){.kind = FGW_CQL_VALUE_TEXT, .bytes = text};
}
static inline struct fgw_cql_value fgw_cql_str(const char *text)
{
    return fgw_cql_text(fgw_bytes_str(text));
}
static inline struct fgw_cql_value fgw_cql_blob(struct fgw_bytes bytes)
{
    return (struct fgw_cql_value){.kind = FGW_CQL_VALUE_BLOB, .bytes = bytes};
}
static inline struct fgw_cql_value fgw_cql_bigint(int64_t value)
{
    return (struct fgw_cql_value){.kind = FGW_CQL_VALUE_BIGINT, .integer = value};
}
static inline struct fgw_cql_value fgw_cql_int(int32_t value)
{
    return (struct fgw_cql_value){.kind = FGW_CQL_VALUE_INT, .integer = value};
}
static inline struct fgw_cql_value fgw_cql_boolean(bool value)
{
    return (struct fgw_cql_value){.kind = FGW_CQL_VALUE_BOOLEAN, .boolean = value};
}
static inline struct fgw_cql_value fgw_cql_timestamp(int64_t wall_ms)
{
    return (struct fgw_cql_value){.kind = FGW_CQL_VALUE_TIMESTAMP, .integer = wall_ms};
}
static inline struct fgw_cql_value fgw_cql_uuid(const uint8_t uuid[FGW_CQL_UUID_SIZE])
{
    struct fgw_cql_value value = {.kind = FGW_CQL_VALUE_UUID};
    memcpy(value.uuid, uuid, FGW_CQL_UUID_SIZE);
    return value;
}

/* Appends one [value]. */
void fgw_cql_value_encode(struct fgw_buf *out, const struct fgw_cql_value *value);
/* True when the value may be bound to a column of this type (null: to any). */
bool fgw_cql_value_fits(const struct fgw_cql_value *value, uint16_t column_type);
/* "text", "bigint", ...; "type 0x.." never: unknown ids read "other". */
const char *fgw_cql_type_name(uint16_t type);
const char *fgw_cql_value_kind_name(enum fgw_cql_value_kind kind);

/* One cell of a row: a view into the response. */
struct fgw_cql_cell {
    struct fgw_bytes bytes;
    bool null;
};

/* Typed readers of a cell of a column of this type. FGW_ERR_NOT_FOUND: the cell is null.
 * FGW_ERR_CORRUPT: the column has another type, or the cell a length that its type cannot have.
 * A zero-length cell of a fixed-width type reads as null: YCQL turns the one into the other. */
enum fgw_err fgw_cql_cell_text(struct fgw_cql_cell cell, uint16_t type,
                               struct fgw_bytes *out_text) FGW_MUST_CHECK;
enum fgw_err fgw_cql_cell_blob(struct fgw_cql_cell cell, uint16_t type,
                               struct fgw_bytes *out_bytes) FGW_MUST_CHECK;
/* bigint and timestamp. */
enum fgw_err fgw_cql_cell_i64(struct fgw_cql_cell cell, uint16_t type, int64_t *out) FGW_MUST_CHECK;
enum fgw_err fgw_cql_cell_i32(struct fgw_cql_cell cell, uint16_t type, int32_t *out) FGW_MUST_CHECK;
enum fgw_err fgw_cql_cell_boolean(struct fgw_cql_cell cell, uint16_t type,
                                  bool *out) FGW_MUST_CHECK;
enum fgw_err fgw_cql_cell_uuid(struct fgw_cql_cell cell, uint16_t type,
                               uint8_t out[FGW_CQL_UUID_SIZE]) FGW_MUST_CHECK;
/* 4 or 16 bytes. */
enum fgw_err fgw_cql_cell_inet(struct fgw_cql_cell cell, uint16_t type,
                               struct fgw_bytes *out_address) FGW_MUST_CHECK;

#endif
