/* call_internal.h: a call between call.c (budget, retries, what callers see) and attempt.c (one try
 * on one connection). */
#ifndef FGW_CQL_CALL_INTERNAL_H
#define FGW_CQL_CALL_INTERNAL_H

#include "cql/client_internal.h"

/* A call under way; lives in its fiber's frame or in the fgw_cql_call. */
struct cql_run {
    struct fgw_cql_client *client;
    const struct fgw_cql_statement *statement; /* a temporary one for texts */
    bool prepared;
    bool repeatable;
    bool linearizable;
    enum fgw_cql_consistency consistency;
    const struct fgw_cql_write *writes; /* of a batch, else NULL */
    size_t write_count;
    struct fgw_cql_pin *pin;
    struct fgw_buf params;
    size_t unpaged_len; /* of params without the paging state, which stands last in a read's */
    uint8_t *kinds;     /* enum fgw_cql_value_kind of each value */
    size_t value_count;
    uint64_t deadline_ms;
    unsigned tries;
    unsigned reprepares;
    unsigned schema_tries;
    const struct cql_node *avoid;
};

/* What one try came to. */
enum cql_outcome_kind {
    OUTCOME_RESULT,   /* response is a RESULT */
    OUTCOME_REFUSED,  /* response is an ERROR; class says which */
    OUTCOME_LOST,     /* sent, and no answer came */
    OUTCOME_NOT_SENT, /* surely not executed */
    OUTCOME_BROKEN    /* our own mistake: err and the text are set */
};

struct cql_outcome {
    enum cql_outcome_kind kind;
    enum fgw_err err;
    enum fgw_cql_class class;
    struct fgw_cql_response *response;
};

/* Sends it once, and waits for what comes of that until the deadline; error has the text. */
struct cql_outcome fgw_cql_attempt(struct cql_run *run, struct cql_conn *conn, uint64_t deadline_ms,
                                   struct fgw_error *error);

#endif
