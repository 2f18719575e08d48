/* worker.h: exports of a running process, one at a time, on a thread of their own with the lowest
 * priority: hashing and writing take what S3 leaves. Any thread. */
#ifndef FGW_PIECE_WORKER_H
#define FGW_PIECE_WORKER_H

#include "piece/piece.h"

#define FGW_PIECE_RATE_DEFAULT (UINT64_C(64) << 20) /* bytes a second */

struct fgw_piece_worker;

/* data_dir lives as long as the worker. */
struct fgw_piece_worker *fgw_piece_worker_new(struct fgw_storage *storage, const char *data_dir);
/* Ends an export under way, which leaves nothing of the piece at hand. Before the storage is closed.
 * Takes NULL. */
void fgw_piece_worker_free(struct fgw_piece_worker *worker);

/* storage, data_dir, on_progress and context of the options are the worker's. False: one is running. */
bool fgw_piece_worker_start(struct fgw_piece_worker *worker,
                            const struct fgw_piece_export *options);
/* Ends the one that runs, soon. */
void fgw_piece_worker_cancel(struct fgw_piece_worker *worker);
/* {"running","group","pieces":[manifests],"bytes","bytes_total","failed":null or error's name,
 * "message"} of the last or running export; a new reference. */
json_t *fgw_piece_worker_status(struct fgw_piece_worker *worker);
const char *fgw_piece_worker_data_dir(const struct fgw_piece_worker *worker);

#endif
