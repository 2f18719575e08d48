/* sim.h: a simulated YCQL and simulated processes for the migration engine.
 *
 * One thread, virtual time, one seed: every run can be repeated. A process is a coroutine with
 * its heartbeat beside it, a clock of its own (offset, rate), and faults: killed at its k-th
 * operation (before it is sent, or after it was applied and before the answer), paused, cut off.
 * The database applies each request at an instant between sending and answer; answers can be lost,
 * requests lost or applied late, statements refused, the catalog stale through one coordinator.
 * Invariants of spec/migrations.md E3 are held at every write; sim_fail reports seed and reason.
 */
#ifndef FGW_TESTS_MIGRATE_SIM_H
#define FGW_TESTS_MIGRATE_SIM_H

#include "base/arena.h"
#include "migrate/engine.h"

enum {
    SIM_PROCS_MAX = 40,
    SIM_ROWS_MAX = 32,
    SIM_JOURNAL_MAX = 200,
    SIM_HISTORY_MAX = 400,
    SIM_TABLES_MAX = 60,
    SIM_LATE_MAX = 64,
    SIM_MIRROR_MAX = 8,
    SIM_NODES_MAX = 40
};

#define SIM_NEVER UINT64_MAX

struct sim_row {
    int count;
    struct {
        char column[32];
        char value[40];
        bool null;
    } cells[16];
};

struct sim_shape {
    struct fgw_migrate_table *table; /* NULL: dropped */
    uint64_t at_us;
    struct sim_shape *older;
};

struct sim_table {
    char name[48];
    struct sim_shape *shape; /* newest first */
    uint64_t readable_us;    /* reads fail before (SIM_NEVER: always) */
    struct sim_row rows[SIM_ROWS_MAX];
    int row_count;
    int drops; /* applied DROPs */
    uint64_t last_drop_us;
    int last_drop_proc;
};

struct sim_db {
    bool exists; /* the keyspace */
    struct sim_table tables[SIM_TABLES_MAX];
    int table_count;
    bool have_lock;
    struct fgw_migrate_lock_row lock;
    bool have_state;
    struct fgw_migrate_state_row state;
    struct fgw_migrate_journal_row journal[SIM_JOURNAL_MAX];
    int journal_count;
    struct fgw_migrate_history_row history[SIM_HISTORY_MAX];
    int history_count;
    struct fgw_migrate_mirror_row mirror[SIM_MIRROR_MAX];
    int mirror_count;
    bool mirror_seen; /* ever had a row: must never be empty again */
    struct fgw_migrate_node_row nodes[SIM_NODES_MAX];
    int node_count;
    int ddl_applied;
    int rows_lost;
};

enum sim_effect_kind {
    SIM_DDL,
    SIM_LOCK_INSERT,
    SIM_LOCK_UPDATE,
    SIM_STATE_INSERT,
    SIM_STATE_UPDATE,
    SIM_JOURNAL_INSERT,
    SIM_JOURNAL_UPDATE,
    SIM_HISTORY,
    SIM_NODE,
    SIM_MIRROR_INSERT,
    SIM_MIRROR_UPDATE,
    SIM_MIRROR_DELETE,
    SIM_ROW_WRITE,
    SIM_ROW_DELETE,
    SIM_KEYSPACE
};

struct sim_effect {
    enum sim_effect_kind kind;
    int proc;
    const char *text;
    unsigned set;
    struct fgw_migrate_lock_row lock, lock_seen;
    struct fgw_migrate_state_row state, state_seen;
    struct fgw_migrate_journal_row journal, journal_seen;
    struct fgw_migrate_history_row history;
    struct fgw_migrate_node_row node;
    struct fgw_migrate_mirror_row mirror;
    char table[48];
    struct sim_row row;
};

struct sim_coroutine;
struct sim;

enum sim_command {
    SIM_UP,
    SIM_STATUS,
    SIM_PLAN,
    SIM_VERIFY,
    SIM_REPAIR,
    SIM_FORCE,
    SIM_UNLOCK,
    SIM_WAIT,
    SIM_CHECK
};

struct sim_proc {
    struct sim *sim;
    int index;
    char name[32];
    struct fgw_arena arena, scratch;
    struct fgw_migrate_ops ops;
    struct fgw_migrate_options options;
    enum sim_command command;
    struct fgw_migrate_engine *engine;
    const struct fgw_migrate_report *report;
    struct sim_coroutine *main_task, *side_task;
    void (*side)(void *);
    void *side_argument;
    bool side_over;
    bool guarded;
    bool dead; /* killed */
    bool over;
    enum fgw_migrate_exit exit;
    uint64_t started_us;
    uint64_t ended_us;
    /* faults */
    int kill_at;    /* at the n-th kill site, -1: never */
    int kill_point; /* at this fgw_migrate_point, -1: never */
    int pause_at;   /* at the n-th kill site */
    uint64_t pause_us;
    uint64_t paused_until_us;
    uint64_t cut_from_us, cut_to_us;   /* nothing reaches the database */
    uint64_t deaf_from_us, deaf_to_us; /* requests arrive, answers are lost */
    bool heartbeat_dead, heartbeat_cut;
    int stop_at; /* SIGTERM at the n-th site */
    bool stop;
    int64_t wall_offset_ms;
    double clock_rate;
    uint64_t clock_jump_us; /* VM suspend: added to boot time from jump_at on */
    int jump_at;
    bool jumped;
    int sites; /* kill sites passed */
    int points[FGW_MIGRATE_POINTS];
    int ddl_sent;
    int ddl_strayed;                    /* sent after a pause that cost the lease: at most one */
    int writes;                         /* effects submitted */
    uint64_t looked_us[SIM_TABLES_MAX]; /* last read_table, by table index */
};

struct sim {
    uint64_t seed;
    uint64_t random;
    uint64_t now_us;
    struct fgw_arena arena;
    struct sim_db db;
    struct sim_proc *procs[SIM_PROCS_MAX];
    int proc_count;
    struct {
        uint64_t at_us;
        struct sim_effect *effect;
    } late[SIM_LATE_MAX];
    int late_count;
    void *stacks;
    /* faults, in parts per thousand of the requests */
    int lose_answer, lose_request, late_effect, refuse, answer_300;
    int ddl_lose_answer, ddl_late, ddl_300;
    uint32_t ddl_late_ms; /* 0: random up to 170 s */
    uint32_t ddl_ms;      /* a DDL takes up to this long */
    uint32_t stale_ms[2]; /* catalog as seen through each coordinator */
    uint64_t stale_until_us;
    bool never_visible; /* DDL answers OK and does nothing */
    bool unreadable;    /* new tables and columns cannot be read */
    bool deny_ddl, deny_control, read_only;
    bool tampered; /* a person changed the epoch: I2 is off */
    uint64_t limit_us;
    struct {
        int64_t epoch;
        struct fgw_migrate_uuid owner;
    } epochs[400];
    int epoch_count;
    int holder; /* process whose id the lock row carries; -1: none, or one that is gone */
    bool failed;
    char failure[400];
    int log_lines;
    bool verbose;
};

void sim_init(struct sim *sim, uint64_t seed);
void sim_deinit(struct sim *sim);
/* Forgets the processes that ended, keeps the database and the time. */
void sim_forget(struct sim *sim);
uint64_t sim_random(struct sim *sim);
uint64_t sim_below(struct sim *sim, uint64_t bound);
void sim_fail(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct sim_proc *sim_add(struct sim *sim, const char *name, const struct fgw_migrate_set *set,
                         enum sim_command command, uint64_t start_ms);
/* Runs until all processes have ended or died, then applies what is late. */
void sim_run(struct sim *sim);
/* The same, but no further than this instant. */
void sim_run_until(struct sim *sim, uint64_t at_us);
/* One process alone, run to its end. */
enum fgw_migrate_exit sim_once(struct sim *sim, const struct fgw_migrate_set *set,
                               enum sim_command command);
const struct fgw_migrate_finding *sim_finding(const struct sim_proc *proc,
                                              enum fgw_migrate_code code);

/* -- the database by hand -- */
void sim_cql(struct sim *sim, const char *text);
struct sim_table *sim_table(struct sim *sim, const char *name);         /* NULL when never made */
struct fgw_migrate_table *sim_shape(struct sim *sim, const char *name); /* NULL when absent */
void sim_drop(struct sim *sim, const char *name);
void sim_mirror(struct sim *sim, int64_t version, bool dirty);
void sim_row(struct sim *sim, const char *table, int count, const char *const *columns,
             const char *const *values);

/* -- sim_db.c -- */
struct fgw_migrate_answer sim_apply(struct sim *sim, const struct sim_effect *effect,
                                    bool *out_applied);
bool sim_control_usable(struct sim *sim, const char *table);
/* -- sim_ops.c -- */
void sim_ops_init(struct sim_proc *proc);
/* -- sim.c, for sim_ops.c -- */
void sim_sleep_us(struct sim_proc *proc, uint64_t us);
/* A place where the process can be killed, paused or told to stop. */
void sim_site(struct sim_proc *proc);
/* Ends here when the other half of the process was killed. */
void sim_if_dead(struct sim_proc *proc);
void sim_start_side(struct sim_proc *proc);

#endif
