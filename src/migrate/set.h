/* set.h: a set of migrations: files embedded at build, parsed, held against the lint rules.
 *
 * The same function runs in the build's generator (a lint failure is a build error) and at start,
 * where it also holds the text against the hashes made at build. A set belongs to a kind of
 * keyspace ("shared", "node"), versions are written as shared/1756300000. Header comments of a
 * file, before its first statement: "-- phase: expand|contract", "-- min-compat: VERSION" (contract
 * only: the lowest newest-known version a binary must carry to run afterwards), "-- note: ...".
 * Immutable once built; any thread.
 */
#ifndef FGW_MIGRATE_SET_H
#define FGW_MIGRATE_SET_H

#include "migrate/model.h"

struct fgw_migrate_source {
    int64_t version;
    const char *name;
    const char *text;
    size_t text_len;
    const char *sha;                   /* of the file as it stands; NULL: not checked */
    const char *const *statement_shas; /* NULL: not checked */
    size_t statement_count;
};

struct fgw_migrate_file;

struct fgw_migrate_step {
    const struct fgw_migrate_file *file;
    int number; /* from 1 within the file */
    struct fgw_migrate_statement statement;
};

struct fgw_migrate_file {
    int64_t version;
    const char *name;
    char sha[FGW_MIGRATE_SHA_MAX];
    bool contract;
    int64_t min_compat; /* 0: unchanged */
    const char *note;
    const struct fgw_migrate_step *steps;
    int step_count;
};

struct fgw_migrate_set {
    const char *name;
    struct fgw_migrate_file *files;
    size_t file_count;
    int64_t knows; /* highest version */
    int64_t needs; /* highest version of an expand file: what this binary cannot run without */
};

/* First version of our own numbering (14 digits, UTC); everything below is golang-migrate's. */
#define FGW_MIGRATE_OWN_VERSIONS INT64_C(10000000000000)

/* The sets embedded in this binary ("shared", "node"); NULL for another name. */
const struct fgw_migrate_source *fgw_migrate_embedded(const char *name, size_t *out_count);

/* FGW_ERR_PARSE or FGW_ERR_CONFLICT with "VERSION_NAME.cql: line N: reason". */
enum fgw_err fgw_migrate_set_build(struct fgw_arena *arena, const char *name,
                                   const struct fgw_migrate_source *sources, size_t count,
                                   struct fgw_error *error,
                                   struct fgw_migrate_set *out_set) FGW_MUST_CHECK;

/* NULL when unknown. */
const struct fgw_migrate_file *fgw_migrate_set_file(const struct fgw_migrate_set *set,
                                                    int64_t version);

/* Model run of every expand file up to `version` and of the contract files marked in
 * contract_done (one bool a file; NULL: every contract file up to `version`). */
void fgw_migrate_expected(struct fgw_arena *arena, const struct fgw_migrate_set *set,
                          int64_t version, const bool *contract_done,
                          struct fgw_migrate_catalog *out_catalog);

/* -- what golang-migrate and the init service left behind (spec/migrations.md A4) ----------- */

struct fgw_migrate_legacy {
    int64_t version;
    const char *create; /* CQL, without the keyspace */
};
/* In the order of versions; several rows may share one. */
const struct fgw_migrate_legacy *fgw_migrate_legacy_tables(size_t *out_count);
bool fgw_migrate_legacy_version(int64_t version);

#endif
