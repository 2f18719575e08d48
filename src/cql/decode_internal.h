/* decode_internal.h: what decode.c and decode_result.c share. */
#ifndef FGW_CQL_DECODE_INTERNAL_H
#define FGW_CQL_DECODE_INTERNAL_H

#include "cql/codec.h"
#include "cql/wire.h"

/* RESULT of any kind; a short body is left to reader->bad, what is refused for another reason is
 * FGW_ERR_CORRUPT with a text. */
enum fgw_err fgw_cql_decode_result(struct fgw_cql_reader *reader, struct fgw_cql_response *response,
                                   struct fgw_error *error) FGW_MUST_CHECK;
void fgw_cql_decode_schema_change(struct fgw_cql_reader *reader, struct fgw_cql_change *change);

#endif
