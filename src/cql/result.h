/* result.h: the answer of a statement: a cursor over the rows of one page, with typed getters by
 * column name.
 *
 * Names are resolved by fgw_cql_result_column or by each getter; the columns are those of this very
 * response, because the columns of a conditional statement's answer differ from execution to
 * execution and from server to server (spec/ycql.md section 1.1).
 * Getters: FGW_ERR_NOT_FOUND when the cell is null or the answer has no such column (YCQL leaves
 * columns out where Cassandra sends null); FGW_ERR_CORRUPT when the type or length is another.
 * Ownership: views that getters give live as long as the result. One thread.
 */
#ifndef FGW_CQL_RESULT_H
#define FGW_CQL_RESULT_H

#include "cql/codec.h"

struct fgw_cql_result {
    struct fgw_cql_response *response;
    struct fgw_cql_cell *cells; /* of the current row */
    struct fgw_bytes rest;      /* rows behind it */
    size_t rows_left;
    bool on_row;
};

/* Takes the response, which must be of opcode RESULT. */
struct fgw_cql_result *fgw_cql_result_new(struct fgw_cql_response *response);
/* Takes NULL. */
void fgw_cql_result_free(struct fgw_cql_result *result);

/* Rows of this page; 0 for results of other kinds. Never the end of a listing: pages may be short
 * with more to come (empty ones the client turns over by itself). */
size_t fgw_cql_result_row_count(const struct fgw_cql_result *result);
bool fgw_cql_result_has_more(const struct fgw_cql_result *result);
/* For the next page of the same statement; empty without one. */
struct fgw_bytes fgw_cql_result_paging_state(const struct fgw_cql_result *result);
/* Moves to the next row (the first at the first call); false behind the last. */
bool fgw_cql_result_next(struct fgw_cql_result *result);
/* Back before the first row. */
void fgw_cql_result_rewind(struct fgw_cql_result *result);

/* Index of a column, or -1. */
int fgw_cql_result_column(const struct fgw_cql_result *result, const char *name);
/* True when the current row has no such column, or null in it. */
bool fgw_cql_get_null(const struct fgw_cql_result *result, const char *name);
enum fgw_err fgw_cql_get_text(const struct fgw_cql_result *result, const char *name,
                              struct fgw_bytes *out_text) FGW_MUST_CHECK;
enum fgw_err fgw_cql_get_blob(const struct fgw_cql_result *result, const char *name,
                              struct fgw_bytes *out_bytes) FGW_MUST_CHECK;
enum fgw_err fgw_cql_get_bigint(const struct fgw_cql_result *result, const char *name,
                                int64_t *out) FGW_MUST_CHECK;
/* Milliseconds since 1970. */
enum fgw_err fgw_cql_get_timestamp(const struct fgw_cql_result *result, const char *name,
                                   int64_t *out_ms) FGW_MUST_CHECK;
enum fgw_err fgw_cql_get_int(const struct fgw_cql_result *result, const char *name,
                             int32_t *out) FGW_MUST_CHECK;
enum fgw_err fgw_cql_get_boolean(const struct fgw_cql_result *result, const char *name,
                                 bool *out) FGW_MUST_CHECK;
enum fgw_err fgw_cql_get_uuid(const struct fgw_cql_result *result, const char *name,
                              uint8_t out[FGW_CQL_UUID_SIZE]) FGW_MUST_CHECK;
/* 4 or 16 bytes. */
enum fgw_err fgw_cql_get_inet(const struct fgw_cql_result *result, const char *name,
                              struct fgw_bytes *out_address) FGW_MUST_CHECK;

/* Of a conditional statement: whether it applied. Moves to the first row, so that getters then
 * read the columns of the refusing row, where the server sends them. FGW_ERR_CORRUPT when the
 * answer has no "[applied]". */
enum fgw_err fgw_cql_result_applied(struct fgw_cql_result *result,
                                    bool *out_applied) FGW_MUST_CHECK;

#endif
