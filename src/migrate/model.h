/* model.h: the statements a migration may contain, and what each does to a catalog.
 *
 * A statement is parsed once; the same parse says how to send it (with its keyspace, so that no
 * session default can lead it astray), what must be true afterwards, and what the catalog of
 * migrations 1..V looks like. Anything outside the classes below is refused by name. Pure.
 */
#ifndef FGW_MIGRATE_MODEL_H
#define FGW_MIGRATE_MODEL_H

#include "migrate/catalog.h"

enum fgw_migrate_class {
    FGW_MIGRATE_CREATE_TABLE,
    FGW_MIGRATE_ADD_COLUMN,
    FGW_MIGRATE_DROP_COLUMN,
    FGW_MIGRATE_DROP_TABLE,
    FGW_MIGRATE_SET_TTL,
    FGW_MIGRATE_UPSERT
};

struct fgw_migrate_statement {
    enum fgw_migrate_class class;
    struct fgw_migrate_tokens tokens;
    size_t table_at;      /* index of the table's name token */
    bool qualified;       /* written as keyspace.table (only what we send, never a file) */
    bool quoted;          /* some name was quoted */
    bool guarded;         /* IF [NOT] EXISTS */
    const char *keyspace; /* "" unless qualified */
    const char *table;    /* folded */
    const char *text;     /* normalised */
    char sha[FGW_MIGRATE_SHA_MAX];
    uint32_t line;
    struct fgw_migrate_table *create; /* CREATE_TABLE */
    struct fgw_migrate_column column; /* ADD_COLUMN; DROP_COLUMN: name only */
    int64_t ttl_s;                    /* SET_TTL */
    const char **columns;             /* UPSERT */
    size_t column_count;
};

/* CREATE_TABLE, ADD_COLUMN ... as people read it. */
const char *fgw_migrate_class_name(enum fgw_migrate_class class);
/* DROP of either kind: cannot be absorbed by a second one. */
bool fgw_migrate_destructive(enum fgw_migrate_class class);

/* FGW_ERR_PARSE with line and reason. */
enum fgw_err fgw_migrate_parse(struct fgw_arena *arena, struct fgw_migrate_tokens tokens,
                               struct fgw_error *error,
                               struct fgw_migrate_statement *out_statement) FGW_MUST_CHECK;
/* Text of exactly one statement. */
enum fgw_err fgw_migrate_parse_text(struct fgw_arena *arena, const char *text,
                                    struct fgw_error *error,
                                    struct fgw_migrate_statement *out_statement) FGW_MUST_CHECK;

/* What the statement makes of the catalog. FGW_ERR_CONFLICT (exists, missing, key column) with the
 * reason; the catalog is then unchanged. UPSERT only checks that table and columns exist and that
 * the whole key is given. */
enum fgw_err fgw_migrate_apply(struct fgw_migrate_catalog *catalog,
                               const struct fgw_migrate_statement *statement,
                               struct fgw_error *error) FGW_MUST_CHECK;

/* The statement to send: normalised, table name qualified. */
const char *fgw_migrate_send_text(struct fgw_arena *arena,
                                  const struct fgw_migrate_statement *statement,
                                  const char *keyspace);

/* A word neither database accepts as a bare name (spec/ycql.md section 1, "Identifiers"). */
bool fgw_migrate_reserved(const char *word);

#endif
