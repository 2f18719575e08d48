/* cql_metrics.h: what /metrics tells of the database connections of this process (fgw_cql_*). */
#ifndef FGW_BIN_CQL_METRICS_H
#define FGW_BIN_CQL_METRICS_H

#include "base/bytes.h"

/* A fgw_metrics_writer; the context is not used. */
void fgw_cql_metrics_write(void *context, struct fgw_buf *out);

#endif
