/* catalog.h: the shape of a keyspace (tables, columns, keys, order, time to live), how two shapes
 * differ, and the hash of one. Filled by the model (what migrations make) and by the database port
 * (what is there). Names are folded, types normalised; everything lives in the arena handed in.
 */
#ifndef FGW_MIGRATE_CATALOG_H
#define FGW_MIGRATE_CATALOG_H

#include "base/arena.h"
#include "migrate/tokenizer.h"

enum fgw_migrate_column_kind {
    FGW_MIGRATE_PARTITION,
    FGW_MIGRATE_CLUSTERING,
    FGW_MIGRATE_REGULAR,
    FGW_MIGRATE_STATIC
};

struct fgw_migrate_column {
    const char *name;
    const char *type; /* normalised: fgw_migrate_type */
    enum fgw_migrate_column_kind kind;
    int position;    /* within partition or clustering key, from 0; 0 for others */
    bool descending; /* clustering order */
};

struct fgw_migrate_table {
    const char *name;
    struct fgw_migrate_column *columns; /* sorted: partition, clustering, rest by name */
    size_t column_count;
    size_t column_cap;
    int64_t ttl_s; /* default_time_to_live, 0 = none */
    bool transactional;
};

struct fgw_migrate_catalog {
    struct fgw_arena *arena;
    struct fgw_migrate_table **tables; /* sorted by name */
    size_t table_count;
    size_t table_cap;
};

/* Lower case, without blanks, varchar written as text. */
const char *fgw_migrate_type(struct fgw_arena *arena, struct fgw_bytes type);

void fgw_migrate_catalog_init(struct fgw_migrate_catalog *catalog, struct fgw_arena *arena);
/* NULL when absent. */
struct fgw_migrate_table *fgw_migrate_catalog_find(const struct fgw_migrate_catalog *catalog,
                                                   const char *name);
/* Takes the table over; an earlier one of the same name is replaced. */
void fgw_migrate_catalog_put(struct fgw_migrate_catalog *catalog, struct fgw_migrate_table *table);
void fgw_migrate_catalog_remove(struct fgw_migrate_catalog *catalog, const char *name);

struct fgw_migrate_table *fgw_migrate_table_new(struct fgw_arena *arena, const char *name);
struct fgw_migrate_table *fgw_migrate_table_copy(struct fgw_arena *arena,
                                                 const struct fgw_migrate_table *table);
const struct fgw_migrate_column *fgw_migrate_table_find(const struct fgw_migrate_table *table,
                                                        const char *column);
/* Keeps the order of struct fgw_migrate_table; the name must be new to the table. */
void fgw_migrate_table_add(struct fgw_arena *arena, struct fgw_migrate_table *table,
                           struct fgw_migrate_column column);
void fgw_migrate_table_drop(struct fgw_migrate_table *table, const char *column);

/* How `have` differs from `want`. Absent table: have = NULL. */
struct fgw_migrate_diff {
    bool equal;
    bool missing_table;
    bool key;     /* primary key columns, their types or their order: no ALTER can mend it */
    bool type;    /* a regular column of another type: no ALTER can mend it */
    bool options; /* time to live or transactions */
    const struct fgw_migrate_column **missing; /* regular columns to add */
    size_t missing_count;
    const struct fgw_migrate_column **extra; /* regular columns nobody asked for */
    size_t extra_count;
    const char *text; /* "key: want ((a), b)  have ((a)); missing: c text"; "" when equal */
};
void fgw_migrate_table_compare(struct fgw_arena *arena, const struct fgw_migrate_table *want,
                               const struct fgw_migrate_table *have,
                               struct fgw_migrate_diff *out_diff);

/* "((bucket, key), upload_id DESC)". */
const char *fgw_migrate_key_text(struct fgw_arena *arena, const struct fgw_migrate_table *table);
/* "CREATE TABLE keyspace.name (...)", as this program would have written it. */
const char *fgw_migrate_table_cql(struct fgw_arena *arena, const char *keyspace,
                                  const struct fgw_migrate_table *table);
/* Hash of the whole shape (algorithm prefix as for statements). */
void fgw_migrate_catalog_hash(const struct fgw_migrate_catalog *catalog,
                              char out_hash[FGW_MIGRATE_SHA_MAX]);

#endif
