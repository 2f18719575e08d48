/* admin_client.h: how user, key, bucket and status reach the data: through the ops listener that
 * --admin (FGW_ADMIN) names, signed with the root keys of the settings, else through DATA/admin.sock of the
 * process that runs, or, when none does, by opening the directory themselves. */
#ifndef FGW_BIN_ADMIN_CLIENT_H
#define FGW_BIN_ADMIN_CLIENT_H

#include <jansson.h>

#include "bin/command.h"

struct fgw_admin_call {
    const char *method;
    const char *path;   /* encoded, with its query */
    const json_t *body; /* may be NULL */
};

/* Executes the call. Prints what stopped it and returns an exit code, or FGW_EXIT_OK with the
 * answer (new reference): a call that was refused is an exit code too (1, its message printed). */
int fgw_admin_call(const struct fgw_config *config, const struct fgw_admin_call *call,
                   json_t **out_answer);
/* The process that has the data directory open, or the one that --admin names, from a fiber: the HTTP
 * status, 0 when none has the directory open; *out_answer (new reference) may be NULL. */
int fgw_admin_ask_process(const struct fgw_config *config, const struct fgw_admin_call *call,
                          json_t **out_answer);
/* "host:port" of --admin's "http://host:port/"; NULL when it is something else. */
const char *fgw_admin_address(struct fgw_arena *arena, const char *url);
/* GET of a path of an ops listener, unsigned. 0 when nothing answers; *out_answer may be NULL. */
int fgw_admin_ask_ops(const char *address, const char *path, json_t **out_answer);
/* Percent-encodes a name for a path; in the arena. */
const char *fgw_admin_path(struct fgw_arena *arena, const char *prefix, const char *name,
                           const char *suffix);
/* One JSON document (--json), else a table: `columns` names members of the objects in `list`, or of
 * the answer itself when list is NULL. */
int fgw_admin_print(const json_t *answer, const char *list, const char *const *columns, bool json);

#endif
