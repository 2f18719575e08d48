/* usage.h: how much a bucket holds, counted from its lists: every version that is there, and the parts
 * of open uploads. No counter is kept with the writes, so counting costs a walk over the bucket (about a
 * second per 10^6 keys on one process, 20 s on a database) and is the state of no single moment.
 *
 * Delete markers count nothing; of a part sent several times the newest attempt counts. */
#ifndef FGW_S3_USAGE_H
#define FGW_S3_USAGE_H

#include "meta/meta.h"

struct fgw_s3_usage {
    uint64_t bytes;        /* of objects, all versions */
    uint64_t objects;      /* versions */
    uint64_t upload_bytes; /* of parts of open uploads */
};

/* In a fiber; suspends it between pages. stopping (may be NULL) is asked before each page: true ends
 * the walk with FGW_ERR_CANCELLED. Errors: those of the lists. */
enum fgw_err fgw_s3_usage_count(struct fgw_meta *meta, const struct fgw_bucket *bucket,
                                bool (*stopping)(void *context), void *context,
                                struct fgw_s3_usage *out_usage,
                                struct fgw_error *error) FGW_MUST_CHECK;

#endif
