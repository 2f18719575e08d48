/* codec.h: request frames encoded, response bodies decoded. No I/O (spec/ycql.md section 5).
 *
 * Requests are encoded exactly: YCQL answers 0x000A to trailing bytes. A request is whole when its
 * last append is done; fgw_buf_status(out) tells whether it fitted the buffer's maximum.
 * Responses come from the network: every length and count is held against what was received,
 * nesting of types is bounded, trailing bytes are tolerated (the specification asks for that).
 * Ownership: a decoded response owns the frame's body and its arena; everything it hands out is a
 * view into them. One thread at a time.
 */
#ifndef FGW_CQL_CODEC_H
#define FGW_CQL_CODEC_H

#include "base/arena.h"
#include "cql/frame.h"
#include "cql/values.h"

/* -- requests ------------------------------------------------------------------------------ */

/* What QUERY and EXECUTE carry behind their text or id. Names are never bound, metadata never
 * skipped (yugabyte-db #1312), timestamps never sent. */
struct fgw_cql_params {
    enum fgw_cql_consistency consistency;
    bool with_serial; /* send serial_consistency: on every conditional statement */
    enum fgw_cql_consistency serial_consistency;
    int32_t page_size;             /* rows; 0: not sent */
    struct fgw_bytes paging_state; /* empty: from the start */
    const struct fgw_cql_value *values;
    size_t value_count; /* at most 65,535 */
};
/* Appends the parameters alone, so that a call encodes its values once and can be sent again. */
void fgw_cql_encode_params(struct fgw_buf *out, const struct fgw_cql_params *params);

/* Each appends one whole frame. */
void fgw_cql_encode_options(struct fgw_buf *out, int16_t stream);
void fgw_cql_encode_startup(struct fgw_buf *out, int16_t stream);
/* SASL PLAIN with an empty authorisation id (YCQL insists). */
void fgw_cql_encode_auth(struct fgw_buf *out, int16_t stream, struct fgw_bytes user,
                         struct fgw_bytes password);
void fgw_cql_encode_prepare(struct fgw_buf *out, int16_t stream, struct fgw_bytes text);
/* params: as made by fgw_cql_encode_params. */
void fgw_cql_encode_query(struct fgw_buf *out, int16_t stream, struct fgw_bytes text,
                          struct fgw_bytes params);
void fgw_cql_encode_execute(struct fgw_buf *out, int16_t stream, struct fgw_bytes id,
                            struct fgw_bytes params);

struct fgw_cql_batch_item {
    struct fgw_bytes id;   /* prepared; or empty and */
    struct fgw_bytes text; /* unprepared */
    const struct fgw_cql_value *values;
    size_t value_count;
};
/* Always unlogged (not atomic on YCQL): for unconditional writes of one partition. */
void fgw_cql_encode_batch(struct fgw_buf *out, int16_t stream,
                          const struct fgw_cql_batch_item *items, size_t item_count,
                          enum fgw_cql_consistency consistency);

/* -- responses ----------------------------------------------------------------------------- */

enum fgw_cql_write_type {
    FGW_CQL_WRITE_UNKNOWN,
    FGW_CQL_WRITE_SIMPLE,
    FGW_CQL_WRITE_BATCH,
    FGW_CQL_WRITE_UNLOGGED_BATCH,
    FGW_CQL_WRITE_COUNTER,
    FGW_CQL_WRITE_BATCH_LOG,
    FGW_CQL_WRITE_CAS,
    FGW_CQL_WRITE_VIEW,
    FGW_CQL_WRITE_CDC
};

/* Fields that a code does not carry are zero. */
struct fgw_cql_server_error {
    int32_t code; /* enum fgw_cql_error_code */
    struct fgw_bytes message;
    int32_t ql_code; /* YugabyteDB's "(ql error -NNN)" at the end of the message; 0 without one */
    uint16_t consistency;
    int32_t required; /* replicas wanted: required, blockfor */
    int32_t received; /* replicas that answered, or are alive */
    int32_t failures;
    bool data_present;
    enum fgw_cql_write_type write_type;
    struct fgw_bytes keyspace;
    struct fgw_bytes name; /* table or function */
    struct fgw_bytes statement_id;
};

struct fgw_cql_column {
    struct fgw_bytes keyspace;
    struct fgw_bytes table;
    struct fgw_bytes name;
    uint16_t type;       /* enum fgw_cql_type, or an id unknown here */
    uint16_t element[2]; /* list, set: [0]; map: key, value; else 0 */
};

struct fgw_cql_rows {
    struct fgw_cql_column *columns;
    size_t column_count;
    bool has_more;
    struct fgw_bytes paging_state;
    size_t row_count;
    struct fgw_bytes content; /* row_count * column_count [bytes], checked by the decoder */
};

struct fgw_cql_prepared {
    struct fgw_bytes id;
    struct fgw_cql_column *bind;
    size_t bind_count;
};

struct fgw_cql_change {
    struct fgw_bytes kind;     /* CREATED, UPDATED, DROPPED; NEW_NODE, UP, ... */
    struct fgw_bytes target;   /* KEYSPACE, TABLE, ...; empty for nodes */
    struct fgw_bytes keyspace; /* or the node's address */
    struct fgw_bytes name;
};

struct fgw_cql_option {
    struct fgw_bytes key;
    struct fgw_bytes value;
};

struct fgw_cql_response {
    uint8_t opcode;
    int16_t stream;
    enum fgw_cql_result_kind kind; /* RESULT only */
    struct fgw_bytes *warnings;
    size_t warning_count;
    union {
        struct fgw_cql_server_error error; /* ERROR */
        struct fgw_cql_rows rows;          /* RESULT, by kind */
        struct fgw_cql_prepared prepared;
        struct fgw_bytes keyspace;
        struct fgw_cql_change change; /* RESULT schema change, EVENT */
        struct fgw_bytes text;        /* AUTHENTICATE: class; AUTH_CHALLENGE, _SUCCESS: token */
        struct {
            struct fgw_cql_option *items; /* SUPPORTED: one per key and value */
            size_t count;
        } supported;
    };
    uint8_t *body;
    struct fgw_arena arena;
};

/* Decodes a whole frame and takes its body (the frame is left empty), whatever the outcome.
 * FGW_ERR_CORRUPT with a text: the body does not fit its lengths, or it uses what was never
 * negotiated (compression) or is never asked for (rows without metadata): close the connection. */
enum fgw_err fgw_cql_decode(struct fgw_cql_frame *frame, struct fgw_cql_response **out_response,
                            struct fgw_error *error) FGW_MUST_CHECK;
/* Takes NULL. */
void fgw_cql_response_free(struct fgw_cql_response *response);
/* Values of a key of SUPPORTED: true when `value` is among them. */
bool fgw_cql_response_supports(const struct fgw_cql_response *response, const char *key,
                               const char *value);

#endif
