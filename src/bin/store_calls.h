/* store_calls.h: what can be asked of the store of a running process over the admin API:
 *   GET  /admin/sweep             how far the sweeper is
 *   POST /admin/sweep             {"approve":bool}: a pass now; what was found so far may go
 *   GET  /admin/scrub             how far the scrub is, what it found
 *   POST /admin/scrub             {"bytes_per_s":N}: one now
 *   DELETE /admin/scrub           ends it
 *   and those of piece_calls.h
 */
#ifndef FGW_BIN_STORE_CALLS_H
#define FGW_BIN_STORE_CALLS_H

#include "console/admin.h"
#include "piece/worker.h"
#include "storage/storage.h"

enum { FGW_STORE_CALLS = 3 };
void fgw_store_calls_init(struct fgw_admin_extra out_extras[FGW_STORE_CALLS],
                          struct fgw_storage *storage, struct fgw_piece_worker *pieces);
/* The documents that GET answers; new references. */
json_t *fgw_store_sweep_json(struct fgw_storage *storage);
json_t *fgw_store_scrub_json(struct fgw_storage *storage);

#endif
