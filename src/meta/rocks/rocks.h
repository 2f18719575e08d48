/* rocks.h: the embedded metadata backend: rows in the storage engine's row store, changed only by
 * its committer, so that a name and its bytes share one fdatasync. */
#ifndef FGW_META_ROCKS_ROCKS_H
#define FGW_META_ROCKS_ROCKS_H

#include "meta/meta.h"

/* storage outlives the backend. Free with meta->ops->free. */
struct fgw_meta *fgw_meta_rocks_new(struct fgw_storage *storage);

/* Removes rows of uploads that were completed more than 7 days ago (until then they answer repeats);
 * in a fiber. *out_removed counts them, also when it fails half way. */
enum fgw_err fgw_meta_rocks_purge(struct fgw_meta *meta, uint64_t *out_removed) FGW_MUST_CHECK;

#endif
