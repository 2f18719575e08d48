/* piece_calls.h: what can be asked of a running process about pieces over the admin API:
 *   GET    /admin/pieces           {"pieces":[manifests]}
 *   GET    /admin/pieces/export    how far the last or running export is
 *   POST   /admin/pieces/export    {"group":N,"to":PATH,"padded_max":N,"bytes_per_s":N}: one now; "to" over
 *                                  admin.sock only
 *   DELETE /admin/pieces/export    ends it
 */
#ifndef FGW_BIN_PIECE_CALLS_H
#define FGW_BIN_PIECE_CALLS_H

#include "console/admin.h"
#include "piece/worker.h"

struct fgw_admin_extra fgw_piece_calls(struct fgw_piece_worker *worker);
/* The options that a body stands for; FGW_ERR_INVALID_ARGUMENT with a message. `to` points into the
 * body. */
enum fgw_err fgw_piece_options(const json_t *body, struct fgw_piece_export *out_options,
                               struct fgw_error *error) FGW_MUST_CHECK;

#endif
