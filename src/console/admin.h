/* admin.h: what the command line asks of a running process (over DATA/admin.sock) or does itself
 * when none runs: users, keys, buckets, status. One function executes a call whoever carries it.
 *
 * Calls are JSON over HTTP:
 *   GET    /admin/users                      {"users":[...]}
 *   POST   /admin/users                      {"name","id","email","display_name","access_key",
 *                                             "secret_key","policy"}: the user with a first key
 *   GET /admin/users/NAME
 *   DELETE /admin/users/NAME[?force=true]    refused while it owns buckets, unless forced
 *   GET    /admin/keys[?user=NAME]           secrets are never shown again
 *   POST   /admin/keys                       {"user","access_key","secret_key"}
 *   DELETE /admin/keys/KEY
 *   POST   /admin/keys/KEY/disable, /enable
 *   GET    /admin/buckets, /admin/buckets/NAME
 *   GET    /admin/buckets/NAME/quota         the limits, and what the bucket holds now
 *   POST   /admin/buckets/NAME/quota         {"bytes","objects"}: 0 for no limit, absent: as it is
 *   POST   /admin/buckets                    {"name","owner","shards","replicas"}
 *   GET    /admin/nodes                      {"nodes":[...],"sets":...,"warnings":[...]}
 *   POST   /admin/nodes                      {"do":"rebalance"}
 *   POST   /admin/nodes/NAME/drain           {"cancel":true} takes it back
 *   POST   /admin/nodes/NAME/remove          {"force":true}
 *   POST   /admin/nodes/self/reconcile       {"cursor","all"}: holds that no row names, or all
 *   GET    /admin/status
 *   and those of admin_storage.h and of extras
 * Errors: {"error":CODE,"message":TEXT} with a 4xx or 5xx status.
 */
#ifndef FGW_CONSOLE_ADMIN_H
#define FGW_CONSOLE_ADMIN_H

#include <jansson.h>

#include "http/server.h"
#include "meta/meta.h"

/* Adds members to the status document. */
typedef void fgw_admin_status_fn(void *context, json_t *status);

/* Executes a call below /admin/nodes; name and verb may be empty. Returns the HTTP status, the answer
 * in *out_answer. */
typedef int fgw_admin_nodes_fn(void *context, const char *method, struct fgw_bytes name,
                               struct fgw_bytes verb, const json_t *body, json_t **out_answer);

/* Calls below /admin/KIND that another part of the process executes. Runs in a fiber; returns the
 * HTTP status, *out_answer is a new reference. */
struct fgw_admin_request {
    const char *method;
    struct fgw_bytes name; /* behind KIND/, decoded; may be empty */
    struct fgw_bytes query;
    const json_t *body; /* may be NULL */
    bool local;         /* from this machine's user: over admin.sock, or without a process */
};
struct fgw_admin_extra {
    const char *kind;
    int (*execute)(void *context, const struct fgw_admin_request *request, json_t **out_answer);
    void *context;
};

struct fgw_admin {
    struct fgw_meta *meta;
    struct fgw_storage *storage; /* calls of admin_storage.h; NULL: the process has none */
    struct fgw_bytes root_id;    /* owner of buckets made without one */
    const char *root_access_key; /* cannot be given to a user */
    const char *root_secret_key; /* only where requests are signed (api.h); else NULL */
    const char *region;
    uint64_t database_wait_ms;   /* as of struct fgw_s3_options, for calls that change something */
    fgw_admin_status_fn *status; /* may be NULL */
    void *status_context;
    fgw_admin_nodes_fn *nodes; /* NULL: no cluster */
    void *nodes_context;
    const struct fgw_admin_extra *extras; /* live as long as the admin */
    size_t extra_count;
};

/* body may be NULL. Runs in a fiber. Returns the HTTP status; *out_answer is a new reference. */
int fgw_admin_execute(struct fgw_admin *admin, const char *method, struct fgw_bytes path,
                      struct fgw_bytes query, const json_t *body, json_t **out_answer);
/* An fgw_http_handler for the admin socket; context is a struct fgw_admin. */
void fgw_admin_handle(void *admin, struct fgw_http_exchange *exchange);
/* May this request be executed? With the whole body. Else an error, whose message is answered. */
typedef enum fgw_err fgw_admin_guard(struct fgw_admin *admin, struct fgw_http_exchange *exchange,
                                     struct fgw_bytes body, struct fgw_error *error);
/* Reads the body, asks guard (NULL: everybody may), executes the call at `path`, answers. */
void fgw_admin_serve(struct fgw_admin *admin, struct fgw_http_exchange *exchange,
                     struct fgw_bytes path, fgw_admin_guard *guard);

#endif
