/* ops.h: the ops listener's handler: /livez, /readyz, /metrics, /api/... and the console at /; and
 * the two health paths below /_fgw/ for the S3 listener.
 *
 * GET /api/status and GET /api/metrics (the samples of /metrics as one JSON object) tell what
 * /metrics tells and need no signature. Everything else below /api/ is the admin API (admin.h) with
 * /api/ in place of /admin/, for requests signed with SigV4, service "fgw", by root or by a user
 * with policy admin. */
#ifndef FGW_CONSOLE_OPS_H
#define FGW_CONSOLE_OPS_H

#include <stdatomic.h>

#include "console/admin.h"
#include "console/health.h"
#include "console/metrics.h"
#include "http/server.h"

struct fgw_ops {
    struct fgw_health *health;
    struct fgw_metrics *metrics;
    const char *version;
    _Atomic(struct fgw_admin *) admin; /* NULL until the engine runs */
};

/* An fgw_http_handler; context is a struct fgw_ops. */
void fgw_ops_handle(void *ops, struct fgw_http_exchange *exchange);
/* /_fgw/livez and /_fgw/readyz; false for other paths. */
bool fgw_ops_internal(void *ops, struct fgw_http_exchange *exchange);
/* Requests below /api/. */
void fgw_ops_api(struct fgw_ops *ops, struct fgw_http_exchange *exchange);
/* The console: one page without anything it would load from elsewhere. */
struct fgw_bytes fgw_ops_page(void);

#endif
