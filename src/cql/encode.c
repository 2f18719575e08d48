/* encode.c: the request half of codec.h. */
#include "cql/codec.h"

#include "base/check.h"
#include "cql/wire.h"

/* Appends a header whose length end_frame fills in; returns where the frame starts. */
static size_t begin_frame(struct fgw_buf *out, int16_t stream, uint8_t opcode)
{
    size_t start = out->len;
    uint8_t header[FGW_CQL_HEADER_SIZE];
    fgw_cql_header_write(header, stream, opcode, 0);
    fgw_buf_append(out, fgw_bytes(header, sizeof header));
    return start;
}

static void end_frame(struct fgw_buf *out, size_t start)
{
    if (!out->overflow) {
        fgw_put_u32be(out->ptr + start + 5, (uint32_t)(out->len - start - FGW_CQL_HEADER_SIZE));
    }
}

static void put_values(struct fgw_buf *out, const struct fgw_cql_value *values, size_t count)
{
    FGW_CHECK(count <= UINT16_MAX);
    fgw_cql_put_u16(out, (uint16_t)count);
    for (size_t i = 0; i < count; i++) {
        fgw_cql_value_encode(out, &values[i]);
    }
}

void fgw_cql_encode_params(struct fgw_buf *out, const struct fgw_cql_params *params)
{
    uint8_t flags = 0;
    flags |= params->value_count > 0 ? FGW_CQL_QUERY_VALUES : 0;
    flags |= params->page_size > 0 ? FGW_CQL_QUERY_PAGE_SIZE : 0;
    flags |= params->paging_state.len > 0 ? FGW_CQL_QUERY_PAGING_STATE : 0;
    flags |= params->with_serial ? FGW_CQL_QUERY_SERIAL : 0;
    fgw_cql_put_u16(out, (uint16_t)params->consistency);
    fgw_buf_append_byte(out, flags);
    if (params->value_count > 0) {
        put_values(out, params->values, params->value_count);
    }
    if (params->page_size > 0) {
        fgw_cql_put_i32(out, params->page_size);
    }
    if (params->paging_state.len > 0) {
        fgw_cql_put_bytes(out, params->paging_state);
    }
    if (params->with_serial) {
        fgw_cql_put_u16(out, (uint16_t)params->serial_consistency);
    }
}

void fgw_cql_encode_options(struct fgw_buf *out, int16_t stream)
{
    end_frame(out, begin_frame(out, stream, FGW_CQL_OP_OPTIONS));
}

void fgw_cql_encode_startup(struct fgw_buf *out, int16_t stream)
{
    size_t start = begin_frame(out, stream, FGW_CQL_OP_STARTUP);
    fgw_cql_put_u16(out, 2);
    fgw_cql_put_string(out, FGW_LIT("CQL_VERSION"));
    fgw_cql_put_string(out, FGW_LIT("3.0.0"));
    fgw_cql_put_string(out, FGW_LIT("DRIVER_NAME"));
    fgw_cql_put_string(out, FGW_LIT("fgw"));
    end_frame(out, start);
}

void fgw_cql_encode_auth(struct fgw_buf *out, int16_t stream, struct fgw_bytes user,
                         struct fgw_bytes password)
{
    size_t start = begin_frame(out, stream, FGW_CQL_OP_AUTH_RESPONSE);
    fgw_cql_put_i32(out, (int32_t)(user.len + password.len + 2));
    fgw_buf_append_byte(out, 0);
    fgw_buf_append(out, user);
    fgw_buf_append_byte(out, 0);
    fgw_buf_append(out, password);
    end_frame(out, start);
}

void fgw_cql_encode_prepare(struct fgw_buf *out, int16_t stream, struct fgw_bytes text)
{
    size_t start = begin_frame(out, stream, FGW_CQL_OP_PREPARE);
    fgw_cql_put_bytes(out, text);
    end_frame(out, start);
}

void fgw_cql_encode_query(struct fgw_buf *out, int16_t stream, struct fgw_bytes text,
                          struct fgw_bytes params)
{
    size_t start = begin_frame(out, stream, FGW_CQL_OP_QUERY);
    fgw_cql_put_bytes(out, text);
    fgw_buf_append(out, params);
    end_frame(out, start);
}

void fgw_cql_encode_execute(struct fgw_buf *out, int16_t stream, struct fgw_bytes id,
                            struct fgw_bytes params)
{
    size_t start = begin_frame(out, stream, FGW_CQL_OP_EXECUTE);
    fgw_cql_put_string(out, id);
    fgw_buf_append(out, params);
    end_frame(out, start);
}

void fgw_cql_encode_batch(struct fgw_buf *out, int16_t stream,
                          const struct fgw_cql_batch_item *items, size_t item_count,
                          enum fgw_cql_consistency consistency)
{
    enum { UNLOGGED = 1, KIND_TEXT = 0, KIND_PREPARED = 1 };
    FGW_CHECK(item_count <= UINT16_MAX);
    size_t start = begin_frame(out, stream, FGW_CQL_OP_BATCH);
    fgw_buf_append_byte(out, UNLOGGED);
    fgw_cql_put_u16(out, (uint16_t)item_count);
    for (size_t i = 0; i < item_count; i++) {
        if (items[i].id.len > 0) {
            fgw_buf_append_byte(out, KIND_PREPARED);
            fgw_cql_put_string(out, items[i].id);
        } else {
            fgw_buf_append_byte(out, KIND_TEXT);
            fgw_cql_put_bytes(out, items[i].text);
        }
        put_values(out, items[i].values, items[i].value_count);
    }
    fgw_cql_put_u16(out, (uint16_t)consistency);
    fgw_buf_append_byte(out, 0);
    end_frame(out, start);
}
