/* classify.h: what an answer of the database means for the statement that was sent.
 *
 * One function, by class and not by code, because YCQL wraps nearly everything (duplicates,
 * timeouts, lost leaders) in 0x2200 and only the number in its last parenthesis tells them apart
 * (spec/ycql.md section 2). Pure; checked with byte fixtures.
 */
#ifndef FGW_CQL_CLASSIFY_H
#define FGW_CQL_CLASSIFY_H

#include "cql/codec.h"

enum fgw_cql_class {
    FGW_CQL_CLASS_ALREADY_EXISTS,        /* the object of a DDL statement exists */
    FGW_CQL_CLASS_NOT_FOUND_SCHEMA,      /* table or keyspace not known to this node (yet) */
    FGW_CQL_CLASS_REPREPARE,             /* prepare again on this node, execute once more */
    FGW_CQL_CLASS_TRANSIENT_UNKNOWN,     /* a write may or may not have happened */
    FGW_CQL_CLASS_TRANSIENT_NOT_APPLIED, /* surely nothing was written: try another node */
    FGW_CQL_CLASS_TOMBSTONES,            /* a read met too many removed rows: ask for less */
    FGW_CQL_CLASS_AUTH,                  /* credentials or permission */
    FGW_CQL_CLASS_PROTO,                 /* close the connection */
    FGW_CQL_CLASS_BUG,                   /* the statement is wrong: no retry */
    FGW_CQL_CLASSES
};

enum fgw_cql_statement_kind {
    FGW_CQL_READ,
    FGW_CQL_WRITE, /* unconditional */
    FGW_CQL_LWT,   /* conditional: IF ... */
    FGW_CQL_DDL
};

/* prepared_id: of the statement that was executed; empty when it was not prepared. */
enum fgw_cql_class fgw_cql_classify(const struct fgw_cql_server_error *error,
                                    enum fgw_cql_statement_kind kind, struct fgw_bytes prepared_id);
/* "transient_unknown": metrics and logs. */
const char *fgw_cql_class_name(enum fgw_cql_class class);

/* What a caller is told once nothing more can be tried:
 *   ALREADY_EXISTS -> EXISTS; NOT_FOUND_SCHEMA -> NOT_FOUND; AUTH -> ACCESS_DENIED;
 *   TOMBSTONES -> TOO_LARGE;
 *   TRANSIENT_NOT_APPLIED, REPREPARE -> UNAVAILABLE (0x1001: SLOW_DOWN);
 *   TRANSIENT_UNKNOWN -> UNAVAILABLE for a read, else UNKNOWN_OUTCOME; PROTO, BUG -> INTERNAL. */
enum fgw_err fgw_cql_class_err(enum fgw_cql_class class, enum fgw_cql_statement_kind kind,
                               int32_t error_code);

#endif
