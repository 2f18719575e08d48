/* wire.h: the protocol's primitives: a reader that never leaves its view, and appenders to a
 * buffer. A read past the end sets `bad`, returns zero or an empty view and stays bad, so that a
 * decoder reads a whole structure and asks once. Inside src/cql only. */
#ifndef FGW_CQL_WIRE_H
#define FGW_CQL_WIRE_H

#include "base/bytes.h"

struct fgw_cql_reader {
    struct fgw_bytes rest;
    bool bad;
};

static inline struct fgw_cql_reader fgw_cql_reader(struct fgw_bytes bytes)
{
    return (struct fgw_cql_reader){.rest = bytes};
}
struct fgw_bytes fgw_cql_read_raw(struct fgw_cql_reader *reader, size_t len);
uint8_t fgw_cql_read_u8(struct fgw_cql_reader *reader);
uint16_t fgw_cql_read_u16(struct fgw_cql_reader *reader);
int32_t fgw_cql_read_i32(struct fgw_cql_reader *reader);
/* [string] and [short bytes]: u16 length. */
struct fgw_bytes fgw_cql_read_string(struct fgw_cql_reader *reader);
/* [bytes]: i32 length, any negative one is null (*out_null, which may be NULL). */
struct fgw_bytes fgw_cql_read_bytes(struct fgw_cql_reader *reader, bool *out_null);
/* A count of things that take at least min_size bytes each: bad when they cannot be in the rest,
 * so that an allocation by this count is bounded by what was received. */
size_t fgw_cql_read_count(struct fgw_cql_reader *reader, size_t min_size);
/* [inet] without its port: 4 or 16 bytes. */
struct fgw_bytes fgw_cql_read_inet_address(struct fgw_cql_reader *reader);

void fgw_cql_put_u16(struct fgw_buf *out, uint16_t value);
void fgw_cql_put_i32(struct fgw_buf *out, int32_t value);
/* [string], [short bytes]; a text of more than 65,535 bytes sets out->overflow. */
void fgw_cql_put_string(struct fgw_buf *out, struct fgw_bytes text);
/* [long string], [bytes]. */
void fgw_cql_put_bytes(struct fgw_buf *out, struct fgw_bytes bytes);

#endif
