/* store.h: the store of a process as every verb opens it: options from the settings, what is said
 * when it opens and when it does not, its part of metrics and status. */
#ifndef FGW_BIN_STORE_H
#define FGW_BIN_STORE_H

#include <jansson.h>

#include "blobs/blobs.h"
#include "blobs/small_cache.h"
#include "config/config.h"
#include "console/health.h"
#include "console/metrics.h"
#include "storage/storage.h"

/* The options that the settings stand for; callers change what differs. Points into config. */
struct fgw_storage_options fgw_store_options(const struct fgw_config *config);
/* Opens it, or prints what is wrong. An exit code; FGW_SYNC=off is said in the log. */
int fgw_store_open(const struct fgw_storage_options *options, struct fgw_storage **out_storage);
/* The same for verbs that must not make a data directory. */
int fgw_store_open_existing(const struct fgw_storage_options *options,
                            struct fgw_storage **out_storage);

/* An fgw_metrics_writer; context is the struct fgw_storage. */
void fgw_store_write_metrics(void *storage, struct fgw_buf *out);
/* An fgw_health_look; context is the struct fgw_storage. Not ready: a store that takes no writes any
 * more after a failed one. One without room is ready: reads, lists and deletes go on. */
void fgw_store_look(void *storage, struct fgw_health *health);

/* Has `blobs` keep small ones in an eighth of FGW_MEMORY, with metrics; of a proxy too. To be freed
 * after the blobs. */
struct fgw_small_cache *fgw_store_keep_small(const struct fgw_config *config,
                                             struct fgw_metrics *metrics, struct fgw_blobs *blobs);
/* Adds groups, bytes and state to a status document. */
void fgw_store_add_status(struct fgw_storage *storage, json_t *status);

#endif
