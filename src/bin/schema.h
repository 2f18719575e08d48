/* schema.h: runs the migration engine for verbs and at start-up: which keyspaces, which command,
 * what is printed (spec/migrations.md E2.9 to E2.11). */
#ifndef FGW_BIN_SCHEMA_H
#define FGW_BIN_SCHEMA_H

#include <jansson.h>

#include "bin/command.h"
#include "console/health.h"
#include "cql/client.h"
#include "migrate/engine.h"

struct fgw_schema_keyspace {
    const char *name;
    const char *set; /* "shared" or "node" */
};

struct fgw_schema_keyspaces {
    struct fgw_schema_keyspace *items;
    size_t count;
};

/* Adds one unless it is there; in the arena. */
void fgw_schema_add(struct fgw_arena *arena, struct fgw_schema_keyspaces *keyspaces,
                    const char *name, const char *set);

struct fgw_schema_run {
    const struct fgw_config *config;
    struct fgw_cql_client *client;
    struct fgw_arena *arena;            /* reports live here */
    struct fgw_migrate_options options; /* keyspace, set, actor and build are filled in */
    bool quiet;
    bool unnoted; /* not for the metrics: no look at the schema */
};

typedef enum fgw_migrate_exit fgw_schema_command(struct fgw_migrate_engine *engine);
/* One command on one keyspace. From a fiber of the client's loop. */
const struct fgw_migrate_report *fgw_schema_run(struct fgw_schema_run *run,
                                                const struct fgw_schema_keyspace *keyspace,
                                                fgw_schema_command *command);

/* Policy of a role at start-up (FGW_MIGRATE): auto, wait or off on the shared keyspace and on the
 * node's own. Tells health why it is not ready. FGW_MIGRATE_EXIT_OK when the process may go on;
 * findings are logged. From a fiber of the client's loop. */
enum fgw_migrate_exit fgw_schema_at_start(const struct fgw_config *config,
                                          struct fgw_cql_client *client, struct fgw_health *health);

/* Looks whether the keyspaces are still as they should be: for the metrics, and a log line when they
 * are not. Writes nothing. From a fiber of the client's loop. */
void fgw_schema_look(const struct fgw_config *config, struct fgw_cql_client *client);

/* For rolling upgrades: this process is there, and what its program can run on; at start and then at
 * least every five minutes. Does nothing where it may not write. From a fiber of the client's loop. */
void fgw_schema_register(const struct fgw_config *config, struct fgw_cql_client *client);

/* From now on the first SIGTERM or SIGINT makes a run stop between two steps and give its lock back,
 * the second ends the process. Process-wide. */
void fgw_schema_stop_on_signals(void);
/* Signals do again what they did before; one that came until now shows in stop_requested. */
void fgw_schema_signals_back(void);
/* Whether one came. The context is not used. */
bool fgw_schema_stop_requested(void *context);

/* -- output -- */
/* role: of the configuration that chose the keyspace. */
json_t *fgw_schema_report_json(const struct fgw_migrate_report *report, const char *role);
void fgw_schema_report_text(const struct fgw_migrate_report *report, struct fgw_buf *out);

#endif
