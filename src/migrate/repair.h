/* repair.h: what `repair` decides to do; shared by repair_plan.c and repair.c only. */
#ifndef FGW_MIGRATE_REPAIR_H
#define FGW_MIGRATE_REPAIR_H

#include "migrate/migrate_internal.h"

enum fgw_migrate_action_kind {
    FGW_MIGRATE_ACT_CLEAR_INTENT, /* of a build whose text is not ours */
    FGW_MIGRATE_ACT_RECORD,       /* write our hash over an edited statement's */
    FGW_MIGRATE_ACT_DISOWN,       /* journal row of a statement no build of ours has */
    FGW_MIGRATE_ACT_DDL,          /* statement made here, journaled with a negative number */
    FGW_MIGRATE_ACT_MOVE,         /* rows out of a table of the wrong shape, one by one */
    FGW_MIGRATE_ACT_REOPEN,       /* run a recorded step again */
    FGW_MIGRATE_ACT_COPY_BACK     /* rows of the saved table that fit the new shape */
};

struct fgw_migrate_action {
    enum fgw_migrate_action_kind kind;
    const char *text; /* for people */
    int64_t version;
    int stmt;
    const struct fgw_migrate_step *step;  /* RECORD, REOPEN, DDL (synthetic) */
    const struct fgw_migrate_table *from; /* MOVE, COPY_BACK */
    const struct fgw_migrate_table *to;
    bool drops; /* needs --allow-drop-empty */
};

struct fgw_migrate_actions {
    struct fgw_migrate_action *items;
    size_t count;
    size_t cap;
    bool drops;
    bool needs_adopt;
    int next_stmt; /* negative numbers in use so far */
};

/* From what was loaded and planned; adds findings for what it found. */
enum fgw_migrate_exit fgw_migrate_plan_repair(struct fgw_migrate_engine *e,
                                              struct fgw_migrate_actions *out_actions);

#endif
