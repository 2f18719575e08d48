/* ops.h: the ops listener's handler: /livez, /readyz, /metrics; and the same two health paths below
 * /_fgw/ for the S3 listener. */
#ifndef FGW_CONSOLE_OPS_H
#define FGW_CONSOLE_OPS_H

#include "console/health.h"
#include "console/metrics.h"
#include "http/server.h"

struct fgw_ops {
    struct fgw_health *health;
    struct fgw_metrics *metrics;
    const char *version;
};

/* An fgw_http_handler; context is a struct fgw_ops. */
void fgw_ops_handle(void *ops, struct fgw_http_exchange *exchange);
/* /_fgw/livez and /_fgw/readyz; false for other paths. */
bool fgw_ops_internal(void *ops, struct fgw_http_exchange *exchange);

#endif
