/* migrate_internal.h: what the engine's files share. */
#ifndef FGW_MIGRATE_INTERNAL_H
#define FGW_MIGRATE_INTERNAL_H

#include <inttypes.h>
#include <string.h>

#include "migrate/engine.h"

/* The lease as this run knows it; guarded by ops->guard while the heartbeat runs. */
struct fgw_migrate_lease {
    bool held;
    bool lost;
    bool stopping;
    bool unreachable;       /* lost because nothing answered in time */
    bool in_doubt;          /* stopped while a DROP may still come: not released */
    bool taken_over;        /* from a holder that did not release */
    bool taken_destructive; /* whose last step was a repair's or a DROP */
    uint64_t acquired_at_ms;
    uint64_t valid_until_ms;
    uint64_t renewed_at_ms;
    struct fgw_migrate_lock_row row;    /* as last known to be in the database, ours */
    struct fgw_migrate_lock_row winner; /* who has it instead */
};

/* How far a step is. */
enum fgw_migrate_progress {
    FGW_MIGRATE_STEP_OPEN,     /* to be run */
    FGW_MIGRATE_STEP_RECORDED, /* DONE or RECONCILED in the journal, same hash */
    FGW_MIGRATE_STEP_ADOPT,    /* in the catalog and below the version, but not in the journal */
    FGW_MIGRATE_STEP_SKIPPED   /* outside this run: other phase, above --to */
};

struct fgw_migrate_loaded {
    bool control; /* all control tables exist */
    bool have_state;
    struct fgw_migrate_state_row state;
    struct fgw_migrate_mirror_row *mirror;
    size_t mirror_count;
    struct fgw_migrate_journal_row *journal;
    size_t journal_count;
    bool have_lock;
    struct fgw_migrate_lock_row lock;
    struct fgw_migrate_catalog catalog; /* every table of the keyspace */
};

struct fgw_migrate_engine {
    const struct fgw_migrate_ops *ops;
    void *context;
    struct fgw_arena *arena;
    struct fgw_arena *scratch;
    struct fgw_migrate_options options;
    const struct fgw_migrate_set *set;
    const char *keyspace;
    struct fgw_migrate_uuid me;
    struct fgw_migrate_lease lease;
    struct fgw_migrate_loaded now;
    enum fgw_migrate_progress *progress; /* one a step, files in order */
    size_t step_count;
    bool *contract_done; /* one a file */
    struct fgw_migrate_report report;
};

/* -- engine.c: small services -------------------------------------------------------------- */
uint64_t fgw_migrate_now(struct fgw_migrate_engine *e);
void fgw_migrate_sleep(struct fgw_migrate_engine *e, uint32_t ms);
/* ms +- 25 %. */
void fgw_migrate_sleep_about(struct fgw_migrate_engine *e, uint32_t ms);
void fgw_migrate_point(struct fgw_migrate_engine *e, enum fgw_migrate_point point);
void fgw_migrate_logf(struct fgw_migrate_engine *e, enum fgw_migrate_log_level level,
                      const char *format, ...) __attribute__((format(printf, 3, 4)));
struct fgw_migrate_finding *fgw_migrate_find(struct fgw_migrate_engine *e,
                                             enum fgw_migrate_code code,
                                             enum fgw_migrate_severity severity);
/* A note without a code. */
void fgw_migrate_note(struct fgw_migrate_engine *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *fgw_migrate_command(struct fgw_migrate_engine *e, const char *verb_and_flags);
/* Finding for an answer that is no success: 011, 012 or 030; returns the exit code. */
enum fgw_migrate_exit fgw_migrate_refused(struct fgw_migrate_engine *e, const char *what,
                                          const struct fgw_migrate_answer *answer);
/* Worth trying again without having changed anything (reads, and writes that are idempotent). */
bool fgw_migrate_transient(const struct fgw_migrate_answer *answer);
const char *fgw_migrate_step_text(struct fgw_migrate_engine *e,
                                  const struct fgw_migrate_step *step);
void fgw_migrate_uuid_text(const struct fgw_migrate_uuid *uuid, char out_text[37]);
bool fgw_migrate_uuid_nil(const struct fgw_migrate_uuid *uuid);
bool fgw_migrate_uuid_eq(const struct fgw_migrate_uuid *a, const struct fgw_migrate_uuid *b);
void fgw_migrate_copy_text(char *out, size_t size, const char *text);
size_t fgw_migrate_step_index(const struct fgw_migrate_engine *e,
                              const struct fgw_migrate_step *step);

/* -- lock.c -------------------------------------------------------------------------------- */
/* done (may be NULL): asked after waiting, before taking the lock; true ends with *out_done. */
enum fgw_migrate_exit fgw_migrate_lock(struct fgw_migrate_engine *e,
                                       bool (*done)(struct fgw_migrate_engine *), bool *out_done);
/* Renews and, with intent, sets it. LOST when the lease is gone. */
enum fgw_migrate_exit fgw_migrate_renew(struct fgw_migrate_engine *e, enum fgw_migrate_lane lane,
                                        const struct fgw_migrate_lock_row *intent);
/* LOST, PENDING (stop requested) or OK; asked before every write. */
enum fgw_migrate_exit fgw_migrate_held(struct fgw_migrate_engine *e);
enum fgw_migrate_exit fgw_migrate_lost(struct fgw_migrate_engine *e);
/* PENDING, with a note, once the process was asked to stop. */
enum fgw_migrate_exit fgw_migrate_stop(struct fgw_migrate_engine *e);
void fgw_migrate_release(struct fgw_migrate_engine *e);
/* After a takeover: until no statement of the old holder can be in flight any more. */
enum fgw_migrate_exit fgw_migrate_outwait(struct fgw_migrate_engine *e);
/* "kuri-1 pid 7 (epoch 7), at shared/20261201000200 statement 2". */
const char *fgw_migrate_holder_text(struct fgw_migrate_engine *e,
                                    const struct fgw_migrate_lock_row *row);

/* -- control.c ----------------------------------------------------------------------------- */
/* Makes and checks the control tables and the lock row; any number may do so at once. */
enum fgw_migrate_exit fgw_migrate_bootstrap(struct fgw_migrate_engine *e);
/* Only the lock's table and row. */
enum fgw_migrate_exit fgw_migrate_bootstrap_lock(struct fgw_migrate_engine *e);
/* Expected shape of control table `index` (NULL behind the last). */
const struct fgw_migrate_statement *fgw_migrate_control_table(struct fgw_migrate_engine *e,
                                                              size_t index);
bool fgw_migrate_is_control(const char *table);

/* -- load.c -------------------------------------------------------------------------------- */
/* Reads everything; retries what is transient up to the wait limit. */
enum fgw_migrate_exit fgw_migrate_load(struct fgw_migrate_engine *e);
/* One table, retried; coordinator alternates on retry. */
enum fgw_migrate_exit fgw_migrate_look(struct fgw_migrate_engine *e, const char *table,
                                       unsigned coordinator, struct fgw_migrate_table **out_table);
struct fgw_migrate_journal_row *fgw_migrate_journal_of(struct fgw_migrate_engine *e,
                                                       int64_t version, int stmt);
enum fgw_migrate_exit fgw_migrate_check_keyspace(struct fgw_migrate_engine *e);

/* -- evidence.c ---------------------------------------------------------------------------- */
enum fgw_migrate_exit fgw_migrate_put_journal(struct fgw_migrate_engine *e,
                                              const struct fgw_migrate_journal_row *row);
enum fgw_migrate_exit fgw_migrate_put_state(struct fgw_migrate_engine *e,
                                            const struct fgw_migrate_state_row *row);
enum fgw_migrate_exit fgw_migrate_put_history(struct fgw_migrate_engine *e, const char *event,
                                              int64_t version, int64_t from, int64_t to,
                                              const char *reason);
/* S0: every mirror row dirty; an empty mirror gets one. */
enum fgw_migrate_exit fgw_migrate_mirror_dirty(struct fgw_migrate_engine *e);
/* S9: the advertised version clean, then the others gone. */
enum fgw_migrate_exit fgw_migrate_mirror_clean(struct fgw_migrate_engine *e);
bool fgw_migrate_mirror_exact(const struct fgw_migrate_engine *e);
int64_t fgw_migrate_advertised(const struct fgw_migrate_engine *e);

/* -- plan.c -------------------------------------------------------------------------------- */
enum fgw_migrate_inspection { FGW_MIGRATE_ABSENT, FGW_MIGRATE_SATISFIED, FGW_MIGRATE_CONFLICT };
/* Postcondition of a step against a table (NULL: absent). *out_diff "" or the difference. */
enum fgw_migrate_inspection fgw_migrate_inspect(struct fgw_migrate_engine *e,
                                                const struct fgw_migrate_step *step,
                                                const struct fgw_migrate_table *have,
                                                const char **out_diff);
/* The step's object is absent because a contract file of the set drops it again. */
bool fgw_migrate_dropped_later(const struct fgw_migrate_engine *e,
                               const struct fgw_migrate_step *step);
/* Fills progress, contract_done and report.pending from what was loaded; findings 034, 035. */
enum fgw_migrate_exit fgw_migrate_make_plan(struct fgw_migrate_engine *e);
/* 050 when the schema is newer than this binary may use. */
enum fgw_migrate_exit fgw_migrate_compat_exit(struct fgw_migrate_engine *e);
/* Steps to run or record, a version or a mirror to write, an intent to clear. */
bool fgw_migrate_work_left(const struct fgw_migrate_engine *e);
bool fgw_migrate_in_scope(const struct fgw_migrate_engine *e, const struct fgw_migrate_file *file);
bool fgw_migrate_recorded(const struct fgw_migrate_journal_row *row);

/* Journal mark of rows a repair moved to `saved` and brought back. */
void fgw_migrate_copy_sha(struct fgw_migrate_engine *e, const char *saved,
                          char out_sha[FGW_MIGRATE_SHA_MAX]);
bool fgw_migrate_copied_back(struct fgw_migrate_engine *e, const char *saved);

/* -- adopt.c ------------------------------------------------------------------------------- */
struct fgw_migrate_adoption {
    const char *how; /* fresh, adopted, rebuilt */
    int64_t version;
    int64_t min_compat;
    bool exact;
    bool *satisfied; /* one a step: to be recorded */
};
/* Judges what was loaded when there is no state row; findings 040, 041, 050, 032. */
enum fgw_migrate_exit fgw_migrate_judge(struct fgw_migrate_engine *e,
                                        struct fgw_migrate_adoption *out_adoption);
/* Writes the judgement: state row, journal rows, history. Under the lock. */
enum fgw_migrate_exit fgw_migrate_adopt(struct fgw_migrate_engine *e,
                                        const struct fgw_migrate_adoption *adoption);
/* Writes journal rows for the steps the plan found satisfied but unrecorded. */
enum fgw_migrate_exit fgw_migrate_record_adopted(struct fgw_migrate_engine *e);
/* Highest legacy version whose tables, and all earlier ones, are there; 0 = none. */
int64_t fgw_migrate_legacy_level(struct fgw_migrate_engine *e);
/* 032 warnings for legacy tables that lack columns. */
void fgw_migrate_legacy_findings(struct fgw_migrate_engine *e);

/* -- statement.c --------------------------------------------------------------------------- */
/* S1..S7 for one step of a file. */
enum fgw_migrate_exit fgw_migrate_run_step(struct fgw_migrate_engine *e,
                                           const struct fgw_migrate_step *step, const char *how);
enum fgw_migrate_exit fgw_migrate_set_intent(struct fgw_migrate_engine *e, int64_t version,
                                             int stmt, const char *sha,
                                             enum fgw_migrate_intent phase);

/* -- verify.c ------------------------------------------------------------------------------ */
/* Compares the loaded catalog (differences looked at twice) with the model; findings 031, 032. */
enum fgw_migrate_exit fgw_migrate_compare_all(struct fgw_migrate_engine *e, bool report);

/* -- up.c ---------------------------------------------------------------------------------- */
/* Runs the open steps of the plan, S0 to S11; `how` goes into the journal. Under the lock. */
enum fgw_migrate_exit fgw_migrate_run_open(struct fgw_migrate_engine *e, const char *how);
/* Loads afresh and compares. */
enum fgw_migrate_exit fgw_migrate_verify_locked(struct fgw_migrate_engine *e);

/* Fills the report from what was loaded last. */
/* Whoever asked to be told learns what this run waits for. */
void fgw_migrate_tell_waiting(struct fgw_migrate_engine *e,
                              const struct fgw_migrate_finding *finding);
enum fgw_migrate_exit fgw_migrate_finish(struct fgw_migrate_engine *e, const char *command,
                                         enum fgw_migrate_exit exit);

#endif
