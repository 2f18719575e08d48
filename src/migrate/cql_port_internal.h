/* cql_port_internal.h: what the files of the port share. */
#ifndef FGW_MIGRATE_CQL_PORT_INTERNAL_H
#define FGW_MIGRATE_CQL_PORT_INTERNAL_H

#include "event/fiber.h"
#include "migrate/cql_port.h"

struct fgw_migrate_port {
    struct fgw_migrate_port_options options;
    struct fgw_migrate_ops ops;
    struct fgw_cql_pin *pin;
    bool disagreed;         /* the nodes did not agree in time once: no long wait again */
    unsigned statements;    /* of DDL, answered or not */
    uint64_t statements_ms; /* and how long they took */
    struct fgw_gate guard;
    struct fgw_wait task_done;
    void (*task)(void *argument);
    void *task_argument;
};

/* -- cql_port.c: asking -- */
struct port_question {
    enum fgw_migrate_lane lane;
    enum fgw_cql_statement_kind kind;
    bool serial;
    bool anywhere;           /* not on the pin: any node */
    struct fgw_bytes paging; /* state of the page before */
    int32_t page_size;
};
/* Sends `text` (freed here). *out_result is set when the answer is OK. */
struct fgw_migrate_answer fgw_port_ask(struct fgw_migrate_port *port,
                                       const struct port_question *question, struct fgw_buf *text,
                                       struct fgw_cql_result **out_result);
/* All rows of a question, whatever the pages they come in (a server may end one anywhere): init, the
 * statement into `text`, then next() until it is false; `result` is at the row. `answer` tells whether
 * that was the end. */
struct port_rows {
    struct fgw_migrate_port *port;
    struct port_question question;
    struct fgw_buf text;
    struct fgw_buf paging;
    struct fgw_cql_result *result;
    struct fgw_migrate_answer answer;
};
void fgw_port_rows_init(struct port_rows *rows, struct fgw_migrate_port *port, bool anywhere);
bool fgw_port_next(struct port_rows *rows);
void fgw_port_rows_deinit(struct port_rows *rows);
/* A conditional write: whether it applied. */
struct fgw_migrate_answer fgw_port_cas(struct fgw_migrate_port *port, enum fgw_migrate_lane lane,
                                       struct fgw_buf *text, bool *out_applied);
/* An unconditional one. */
struct fgw_migrate_answer fgw_port_write(struct fgw_migrate_port *port, struct fgw_buf *text);
struct fgw_migrate_answer fgw_port_ok(void);

/* -- literals -- */
void fgw_port_text(struct fgw_buf *out, struct fgw_bytes text);
void fgw_port_str(struct fgw_buf *out, const char *text);
void fgw_port_uuid(struct fgw_buf *out, const struct fgw_migrate_uuid *uuid);
/* From the wire form of a cell of a column of this type; false for types that have none here. */
bool fgw_port_cell(struct fgw_buf *out, const char *type, struct fgw_bytes cell);

/* -- reading: absent columns leave the field as it is -- */
void fgw_port_get_str(const struct fgw_cql_result *row, const char *name, char *out, size_t size);
void fgw_port_get_i64(const struct fgw_cql_result *row, const char *name, int64_t *out);
void fgw_port_get_i32(const struct fgw_cql_result *row, const char *name, int32_t *out);
void fgw_port_get_uuid(const struct fgw_cql_result *row, const char *name,
                       struct fgw_migrate_uuid *out);
/* Makes room for one more element in an arena array that doubles. */
void *fgw_port_grow(struct fgw_arena *arena, void *array, size_t count, size_t element_size);

/* -- cql_port_tables.c, cql_port_catalog.c: fill their part of the table of operations -- */
void fgw_port_set_tables(struct fgw_migrate_ops *ops);
void fgw_port_set_catalog(struct fgw_migrate_ops *ops);

#endif
