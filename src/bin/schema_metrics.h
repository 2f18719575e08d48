/* schema_metrics.h: what /metrics tells of the keyspaces of this process (fgw_schema_*): what the
 * last run of the migration engine found, at the start and every ten minutes afterwards. */
#ifndef FGW_BIN_SCHEMA_METRICS_H
#define FGW_BIN_SCHEMA_METRICS_H

#include "migrate/engine.h"

/* After a run; statements and their time are those of this run. From any thread. */
void fgw_schema_metrics_note(const struct fgw_migrate_report *report, unsigned statements,
                             uint64_t statements_ms);
/* A fgw_metrics_writer; the context is not used. */
void fgw_schema_metrics_write(void *context, struct fgw_buf *out);

#endif
