/* engine.h: the migration engine: status, plan, up, verify, repair, force, unlock and wait for one
 * keyspace (spec/migrations.md E2). A pure core over struct fgw_migrate_ops.
 *
 * The catalog is the truth; our tables are evidence. One engine value is one run of one command:
 * init, call one command, read the report, forget it. All memory is in the two arenas handed in
 * (`scratch` is reset while waiting), so a run can be abandoned at any point without a leak. The
 * report's findings carry the fields that text and JSON are made of. Not thread-safe.
 */
#ifndef FGW_MIGRATE_ENGINE_H
#define FGW_MIGRATE_ENGINE_H

#include "migrate/ops.h"
#include "migrate/set.h"

/* Exit codes of every command (spec/interface.md section 6). */
enum fgw_migrate_exit {
    FGW_MIGRATE_EXIT_OK = 0,
    FGW_MIGRATE_EXIT_INTERNAL = 1,
    FGW_MIGRATE_EXIT_USAGE = 2,        /* configuration: keyspace missing, no permission */
    FGW_MIGRATE_EXIT_PENDING = 3,      /* pending, or the wait limit */
    FGW_MIGRATE_EXIT_DRIFT = 4,        /* drift, edited, out of order */
    FGW_MIGRATE_EXIT_INCOMPATIBLE = 5, /* schema too new or too old */
    FGW_MIGRATE_EXIT_UNREACHABLE = 6,
    FGW_MIGRATE_EXIT_FAILED = 7,
    FGW_MIGRATE_EXIT_LOCKED = 8,
    FGW_MIGRATE_EXIT_LOST = 9,
    FGW_MIGRATE_EXIT_DECISION = 10
};
/* The worse of two keyspaces' results: 1,2,7,10,4,5,9,8,6,3,0. */
enum fgw_migrate_exit fgw_migrate_worse(enum fgw_migrate_exit a, enum fgw_migrate_exit b);

/* FGW-MIG-0NN */
enum fgw_migrate_code {
    FGW_MIGRATE_NOTE = 0,
    FGW_MIGRATE_KEYSPACE_MISSING = 10,
    FGW_MIGRATE_NO_PERMISSION = 11,
    FGW_MIGRATE_DB_UNREACHABLE = 12,
    FGW_MIGRATE_LOCK_HELD = 20,
    FGW_MIGRATE_LEASE_LOST = 21,
    FGW_MIGRATE_STATEMENT_FAILED = 30,
    FGW_MIGRATE_SHAPE_CONFLICT = 31,
    FGW_MIGRATE_NOT_PRESENT = 32,
    FGW_MIGRATE_NOT_VISIBLE = 33,
    FGW_MIGRATE_EDITED = 34,
    FGW_MIGRATE_OUT_OF_ORDER = 35,
    FGW_MIGRATE_VERSION_LOST = 40,
    FGW_MIGRATE_FOREIGN_WRITER = 41,
    FGW_MIGRATE_NEWER = 50,
    FGW_MIGRATE_OLDER = 51,
    FGW_MIGRATE_BLOCKED_BY_NODES = 60
};

enum fgw_migrate_severity { FGW_MIGRATE_INFO, FGW_MIGRATE_WARNING, FGW_MIGRATE_ERROR };

/* Empty strings are left out of text and JSON. */
struct fgw_migrate_finding {
    enum fgw_migrate_code code;
    enum fgw_migrate_severity severity;
    const char *title; /* replaces the code's own when set */
    const char *server;
    const char *object; /* table, or table.column */
    const char *step;   /* "shared/1756300000 multipart_uploads, statement 1/1, line 1: ..." */
    const char *diff;
    const char *cause;
    int ql_error;
    const char *state; /* what was changed, what is so now */
    const char *holder;
    const char *next; /* the one command */
};

enum fgw_migrate_compat {
    FGW_MIGRATE_COMPAT_TOO_OLD, /* version < needs: this binary waits or migrates */
    FGW_MIGRATE_COMPAT_PENDING, /* needs <= version < knows */
    FGW_MIGRATE_COMPAT_OK,
    FGW_MIGRATE_COMPAT_NEWER_COMPATIBLE,
    FGW_MIGRATE_COMPAT_NEWER_INCOMPATIBLE
};
enum fgw_migrate_compat fgw_migrate_compat(int64_t version, int64_t min_compat, int64_t needs,
                                           int64_t knows);
const char *fgw_migrate_compat_name(enum fgw_migrate_compat compat);

struct fgw_migrate_report {
    const char *command;
    const char *keyspace;
    const char *set;
    enum fgw_migrate_exit exit;
    bool have_state;
    int64_t version;
    int64_t target;
    int64_t min_compat;
    enum fgw_migrate_compat compat;
    bool have_lock_row;
    struct fgw_migrate_lock_row lock;
    uint64_t lock_age_ms; /* since this run first saw it unchanged */
    const char **pending; /* "shared/20261201000100 buckets, statement 1/2: CREATE TABLE buckets" */
    size_t pending_count;
    size_t pending_cap;
    struct fgw_migrate_finding *findings;
    size_t finding_count;
    size_t finding_cap;
    struct fgw_migrate_mirror_row *mirror;
    size_t mirror_count;
    char catalog_hash[FGW_MIGRATE_SHA_MAX]; /* after verify */
    int applied;                            /* statements sent with success */
    int reconciled;                         /* found satisfied, or satisfied after a lost answer */
    int failed;
};

struct fgw_migrate_timing {
    uint32_t lease_ms, heartbeat_ms, margin_ms;
    uint32_t ddl_timeout_ms; /* the server's own limit for one DDL */
    uint32_t ddl_grace_ms;
    uint32_t poll_ms;
    uint32_t wait_limit_ms; /* for the lock, for the schema, for a database that does not answer */
};
/* Lease 30 s, heartbeat 5 s, margin 5 s, DDL 180 s + 30 s, wait 10 min. */
extern const struct fgw_migrate_timing fgw_migrate_default_timing;

struct fgw_migrate_options {
    const char *keyspace;
    const struct fgw_migrate_set *set;
    const char *actor; /* "kuri-1 pid 7" */
    const char *build; /* version of the binary */
    struct fgw_migrate_timing timing;
    bool create_keyspace; /* db-init: a missing keyspace is made */
    bool contract;        /* --phase contract */
    bool dry_run;
    bool allow_out_of_order;
    bool strict;              /* verify: extra columns are errors */
    bool apply;               /* repair */
    bool adopt;               /* repair: take the catalog's word for the version */
    bool allow_drop_empty;    /* repair: drop an empty table of the wrong shape */
    bool even_if_alive;       /* unlock */
    int64_t to_version;       /* 0: all */
    int64_t version;          /* force */
    int64_t epoch;            /* unlock */
    const char *reason;       /* force */
    const char *accept_drift; /* force: catalog hash as verify prints it */
    const char *ignore_nodes; /* contract: "a,b" */
    const char *node_id;      /* register */
    const char *role;         /* register */
    /* Told now and then while a command waits, for the lock or for the schema: what for is in the
     * finding, which lives as long as the call. May be NULL. */
    void (*waiting)(void *context, const struct fgw_migrate_report *report,
                    const struct fgw_migrate_finding *finding);
    void *waiting_context;
};

struct fgw_migrate_engine;

/* Both arenas stay the caller's. */
struct fgw_migrate_engine *fgw_migrate_engine_new(const struct fgw_migrate_ops *ops,
                                                  struct fgw_arena *arena,
                                                  struct fgw_arena *scratch,
                                                  const struct fgw_migrate_options *options);

/* Each returns the report's exit code; the report lives in the arena. */
enum fgw_migrate_exit fgw_migrate_status(struct fgw_migrate_engine *engine);
enum fgw_migrate_exit fgw_migrate_plan(struct fgw_migrate_engine *engine);
enum fgw_migrate_exit fgw_migrate_up(struct fgw_migrate_engine *engine);
enum fgw_migrate_exit fgw_migrate_verify(struct fgw_migrate_engine *engine);
enum fgw_migrate_exit fgw_migrate_repair(struct fgw_migrate_engine *engine);
enum fgw_migrate_exit fgw_migrate_force(struct fgw_migrate_engine *engine);
enum fgw_migrate_exit fgw_migrate_unlock(struct fgw_migrate_engine *engine);
/* Startup policy `wait`: polls until this binary can run on the schema. */
enum fgw_migrate_exit fgw_migrate_wait(struct fgw_migrate_engine *engine);
/* Startup policy `off`: one look. */
enum fgw_migrate_exit fgw_migrate_check(struct fgw_migrate_engine *engine);
/* Advisory row for rolling upgrades; call at start and every few minutes. */
enum fgw_migrate_exit fgw_migrate_register(struct fgw_migrate_engine *engine);

const struct fgw_migrate_report *fgw_migrate_report(const struct fgw_migrate_engine *engine);

/* -- report.c ------------------------------------------------------------------------------ */
/* The block of text of E2.11, several lines with a final newline. */
const char *fgw_migrate_finding_text(struct fgw_arena *arena,
                                     const struct fgw_migrate_report *report,
                                     const struct fgw_migrate_finding *finding);
const char *fgw_migrate_code_title(enum fgw_migrate_code code);

#endif
