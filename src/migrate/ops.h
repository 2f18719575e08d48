/* ops.h: everything the migration engine asks of the world, as one table of operations.
 *
 * The engine does no I/O and knows no clock of its own: it calls these, and each call looks
 * blocking (the real port suspends a fiber, the simulator a coroutine). One engine run uses one
 * table; its calls come from the run itself and from the heartbeat task started by start_task,
 * never at the same instant for the same lane. Rows are plain values: strings longer than their
 * field are cut by the port. A port never retries a write or a conditional write by itself, sends
 * every read at QUORUM (the lock row: SERIAL where the database has it), and qualifies names.
 */
#ifndef FGW_MIGRATE_OPS_H
#define FGW_MIGRATE_OPS_H

#include "migrate/catalog.h"

/* What an answer means (spec/ycql.md 2.3, spec/migrations.md E2.4). */
enum fgw_migrate_answer_class {
    FGW_MIGRATE_OK,
    FGW_MIGRATE_ALREADY_EXISTS, /* -202 -204 -218 -307, 0x2400 */
    FGW_MIGRATE_NOT_FOUND,      /* -301 -203 -308 -215, unconfigured table */
    FGW_MIGRATE_UNKNOWN,        /* may have happened: time-out, connection lost, -300, -3, -303 */
    FGW_MIGRATE_NOT_APPLIED,    /* did not happen, may later: unavailable, overloaded */
    FGW_MIGRATE_UNREACHABLE,    /* no connection: nothing was sent */
    FGW_MIGRATE_AUTH,           /* bad credentials, no permission */
    FGW_MIGRATE_PERMANENT       /* syntax, other refusals: the same again fails again */
};

struct fgw_migrate_answer {
    enum fgw_migrate_answer_class class;
    int ql_error;    /* -202, or the protocol's error code; 0 = none */
    char text[160];  /* the server's words */
    char server[56]; /* "10.0.0.5:9042" */
};

struct fgw_migrate_uuid {
    uint8_t bytes[16];
};

enum fgw_migrate_intent {
    FGW_MIGRATE_INTENT_NONE,
    FGW_MIGRATE_INTENT_RUNNING,
    FGW_MIGRATE_INTENT_VERIFY
};

struct fgw_migrate_lock_row {
    struct fgw_migrate_uuid owner; /* nil = free */
    char owner_desc[64];           /* "kuri-1 pid 7" */
    int64_t epoch;
    int64_t hb;
    int64_t lease_ms;
    int64_t target;
    int64_t i_version;
    int32_t i_stmt; /* negative: a repair step */
    char i_sha[FGW_MIGRATE_SHA_MAX];
    enum fgw_migrate_intent i_phase;
    char build[40];
    int64_t at_ms; /* wall clock, informational */
};

/* Which columns of the lock row an update sets; it always compares owner, epoch and hb. */
enum {
    FGW_MIGRATE_SET_HOLDER = 1, /* owner, owner_desc, epoch, lease_ms, target, build, at_ms */
    FGW_MIGRATE_SET_HB = 2,
    FGW_MIGRATE_SET_INTENT = 4 /* i_version, i_stmt, i_sha, i_phase */
};

struct fgw_migrate_state_row {
    char set_name[16];
    struct fgw_migrate_uuid cluster_id; /* not used: carried over, zero in new rows */
    int32_t format;
    int64_t version;
    int64_t min_compat;
    int64_t epoch;
    int64_t updated_ms;
    char how[24]; /* fresh, adopted, rebuilt, migrated, forced */
};

enum fgw_migrate_step_state {
    FGW_MIGRATE_STEP_RUNNING,
    FGW_MIGRATE_STEP_DONE,
    FGW_MIGRATE_STEP_RECONCILED,
    FGW_MIGRATE_STEP_FAILED
};

struct fgw_migrate_journal_row {
    int64_t version;
    int32_t stmt; /* negative: a repair step */
    enum fgw_migrate_step_state state;
    char sha[FGW_MIGRATE_SHA_MAX];
    int64_t epoch;
    char owner[64];
    int64_t started_ms;
    int64_t finished_ms;
    int32_t ql_error;
    char error_text[160];
    int32_t attempts;
    char shape[FGW_MIGRATE_SHA_MAX]; /* hash of the table afterwards */
    char how[24];                    /* migrated, adopted, repaired */
};

struct fgw_migrate_history_row {
    int64_t at_ms;
    struct fgw_migrate_uuid id;
    char event[24]; /* up, adopt, repair, force, unlock, contract */
    int64_t version;
    char actor[64];
    char build[40];
    int64_t from_version;
    int64_t to_version;
    char reason[200];
};

struct fgw_migrate_node_row {
    char node_id[64];
    char role[16];
    char build[40];
    int64_t needs;
    int64_t knows;
    int64_t seen_ms; /* wall clock of the writer */
};

struct fgw_migrate_mirror_row {
    int64_t version;
    bool dirty;
};

/* A row of any table, for moving rows between tables: one cell a column, as the wire carries it;
 * ptr NULL = null. */
struct fgw_migrate_cells {
    struct fgw_bytes *cells;
};

enum fgw_migrate_lane { FGW_MIGRATE_WORKER, FGW_MIGRATE_HEARTBEAT }; /* own connection each */

/* Both sides of every step of spec/migrations.md E2.4 and E2.3, for failpoints and progress. */
enum fgw_migrate_point {
    FGW_MIGRATE_AT_BOOTSTRAP, /* before each control table */
    FGW_MIGRATE_AT_LOCK_ROW,
    FGW_MIGRATE_AT_ACQUIRE,
    FGW_MIGRATE_AT_ACQUIRED,
    FGW_MIGRATE_AT_LOADED,
    FGW_MIGRATE_AT_STATE_NEW,
    FGW_MIGRATE_AT_ADOPT_ROW,
    FGW_MIGRATE_AT_S0,
    FGW_MIGRATE_AT_S1,
    FGW_MIGRATE_AT_S2,
    FGW_MIGRATE_AT_S3,
    FGW_MIGRATE_AT_S4,
    FGW_MIGRATE_AT_S5,
    FGW_MIGRATE_AT_S6,
    FGW_MIGRATE_AT_S7,
    FGW_MIGRATE_AT_S8,
    FGW_MIGRATE_AT_S9,
    FGW_MIGRATE_AT_S9_INSERTED,
    FGW_MIGRATE_AT_S10,
    FGW_MIGRATE_AT_S11,
    FGW_MIGRATE_AT_VERIFY,
    FGW_MIGRATE_AT_RELEASE,
    FGW_MIGRATE_AT_RELEASED,
    FGW_MIGRATE_AT_MOVE,
    FGW_MIGRATE_POINTS
};

enum fgw_migrate_log_level { FGW_MIGRATE_LOG_INFO, FGW_MIGRATE_LOG_WARN, FGW_MIGRATE_LOG_ERROR };

struct fgw_migrate_ops {
    /* -- time, chance, tasks -- */
    uint64_t (*now_boot_ms)(void *context);
    int64_t (*now_wall_ms)(void *context); /* for people's eyes and fgw_schema_nodes only */
    void (*sleep_ms)(void *context, uint32_t ms);
    void (*random)(void *context, void *out, size_t len);
    bool (*stop_requested)(void *context); /* SIGTERM, SIGINT */
    /* One task beside the run; join waits for its end. guard/unguard: a mutex between the two. */
    void (*start_task)(void *context, void (*task)(void *argument), void *argument);
    void (*join_task)(void *context);
    void (*guard)(void *context);
    void (*unguard)(void *context);
    /* The run passes `point`; NULL: nobody wants to know. */
    void (*point)(void *context, enum fgw_migrate_point point);
    /* One line, already beginning with the keyspace. */
    void (*log)(void *context, enum fgw_migrate_log_level level, const char *line);

    /* -- the database -- */
    struct fgw_migrate_answer (*keyspace_exists)(void *context, const char *keyspace,
                                                 bool *out_exists);
    struct fgw_migrate_answer (*keyspace_create)(void *context, const char *keyspace);
    /* Sends one qualified DDL or INSERT statement once, to one coordinator. */
    struct fgw_migrate_answer (*send)(void *context, const char *keyspace, const char *text);
    /* Names of the tables of the keyspace, folded, in the arena. */
    struct fgw_migrate_answer (*list_tables)(void *context, const char *keyspace,
                                             struct fgw_arena *arena, const char ***out_names,
                                             size_t *out_count);
    /* Shape from system_schema, filtered by keyspace and table; *out_table NULL when absent.
     * coordinator: 0 or 1; two different servers where there are two. */
    struct fgw_migrate_answer (*read_table)(void *context, const char *keyspace, const char *table,
                                            unsigned coordinator, struct fgw_arena *arena,
                                            struct fgw_migrate_table **out_table);
    /* Reads every column of `table` (LIMIT 1 in each part of the table that may answer
     * differently): proves that reads work, and tells whether there is a row. */
    struct fgw_migrate_answer (*probe)(void *context, const char *keyspace,
                                       const struct fgw_migrate_table *table, bool *out_rows);

    /* -- control tables; each write is one single-row conditional write -- */
    struct fgw_migrate_answer (*lock_read)(void *context, enum fgw_migrate_lane lane,
                                           const char *keyspace,
                                           struct fgw_migrate_lock_row *out_row, bool *out_found);
    struct fgw_migrate_answer (*lock_insert)(void *context, const char *keyspace,
                                             const struct fgw_migrate_lock_row *row,
                                             bool *out_applied);
    struct fgw_migrate_answer (*lock_update)(void *context, enum fgw_migrate_lane lane,
                                             const char *keyspace,
                                             const struct fgw_migrate_lock_row *row, unsigned set,
                                             const struct fgw_migrate_lock_row *seen,
                                             bool *out_applied);
    struct fgw_migrate_answer (*state_read)(void *context, const char *keyspace,
                                            struct fgw_migrate_state_row *out_row, bool *out_found);
    struct fgw_migrate_answer (*state_insert)(void *context, const char *keyspace,
                                              const struct fgw_migrate_state_row *row,
                                              bool *out_applied);
    /* IF epoch = seen.epoch AND version = seen.version. */
    struct fgw_migrate_answer (*state_update)(void *context, const char *keyspace,
                                              const struct fgw_migrate_state_row *row,
                                              const struct fgw_migrate_state_row *seen,
                                              bool *out_applied);
    /* All rows of the set, by version and statement. */
    struct fgw_migrate_answer (*journal_read)(void *context, const char *keyspace, const char *set,
                                              struct fgw_arena *arena,
                                              struct fgw_migrate_journal_row **out_rows,
                                              size_t *out_count);
    struct fgw_migrate_answer (*journal_insert)(void *context, const char *keyspace,
                                                const char *set,
                                                const struct fgw_migrate_journal_row *row,
                                                bool *out_applied);
    /* IF epoch = seen.epoch AND state = seen.state. */
    struct fgw_migrate_answer (*journal_update)(void *context, const char *keyspace,
                                                const char *set,
                                                const struct fgw_migrate_journal_row *row,
                                                const struct fgw_migrate_journal_row *seen,
                                                bool *out_applied);
    struct fgw_migrate_answer (*history_insert)(void *context, const char *keyspace,
                                                const char *set,
                                                const struct fgw_migrate_history_row *row);
    struct fgw_migrate_answer (*nodes_read)(void *context, const char *keyspace,
                                            struct fgw_arena *arena,
                                            struct fgw_migrate_node_row **out_rows,
                                            size_t *out_count);
    struct fgw_migrate_answer (*nodes_write)(void *context, const char *keyspace,
                                             const struct fgw_migrate_node_row *row);
    struct fgw_migrate_answer (*mirror_read)(void *context, const char *keyspace,
                                             struct fgw_arena *arena,
                                             struct fgw_migrate_mirror_row **out_rows,
                                             size_t *out_count);
    struct fgw_migrate_answer (*mirror_insert)(void *context, const char *keyspace,
                                               struct fgw_migrate_mirror_row row,
                                               bool *out_applied);
    /* SET dirty = row.dirty IF dirty = the opposite. */
    struct fgw_migrate_answer (*mirror_update)(void *context, const char *keyspace,
                                               struct fgw_migrate_mirror_row row,
                                               bool *out_applied);
    struct fgw_migrate_answer (*mirror_delete)(void *context, const char *keyspace,
                                               int64_t version);

    /* -- rows of any table, for repair's copies -- */
    /* One page of up to `limit` rows, in any order. cursor: in, where to go on (len 0: from the
     * start); out, in the arena, where the next page begins (len 0: this was the last). A page may
     * be empty and not the last. */
    struct fgw_migrate_answer (*rows_read)(void *context, const char *keyspace,
                                           const struct fgw_migrate_table *table, size_t limit,
                                           struct fgw_bytes *cursor, struct fgw_arena *arena,
                                           struct fgw_migrate_cells **out_rows, size_t *out_count);
    /* Upsert of the columns of `table` for which cells holds a value. */
    struct fgw_migrate_answer (*row_write)(void *context, const char *keyspace,
                                           const struct fgw_migrate_table *table,
                                           const struct fgw_bytes *cells);
    /* True in *out_found when the row with this key holds exactly these cells. */
    struct fgw_migrate_answer (*row_check)(void *context, const char *keyspace,
                                           const struct fgw_migrate_table *table,
                                           const struct fgw_bytes *cells, bool *out_found);
    struct fgw_migrate_answer (*row_delete)(void *context, const char *keyspace,
                                            const struct fgw_migrate_table *table,
                                            const struct fgw_bytes *cells);
    void *context;
};

#endif
