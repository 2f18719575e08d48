/* quota.h: refuses writes that would make a bucket larger than its quota (struct fgw_bucket).
 *
 * Each process knows of a bucket with a quota what its last count found (usage.h) and what it took
 * itself since that count began; a write is admitted when both and its own bytes fit. Counting runs in
 * fibers of its own, only while there are writes, at most a twentieth of the time:
 * - a count older than 10 s (20 times as long as it took) is renewed, and nobody waits for it;
 * - the first write of a process to the bucket waits for the first count, up to 5 s, and is admitted when
 *   that has no result by then;
 * - before a write is refused the bucket is counted again, when something was written or deleted here
 *   since the last count began, or that is a second ago; the write waits up to 5 s for it.
 * So the bucket may exceed its quota by what other processes write between two counts of this one, and what
 * is written while a count runs may be taken for twice as much until the next. An overwrite is judged
 * as if the old object stayed. A bucket without quota costs one comparison a write.
 *
 * Threads: one table for all workers behind a mutex that is held for some hundred instructions. */
#ifndef FGW_S3_QUOTA_H
#define FGW_S3_QUOTA_H

#include "meta/meta.h"

struct fgw_s3_request;
struct fgw_s3_quotas;

/* What a request took; part of the request. */
struct fgw_s3_quota_taken {
    uint64_t bytes;
    uint64_t objects;
};

/* meta outlives it. */
struct fgw_s3_quotas *fgw_s3_quotas_new(struct fgw_meta *meta);
/* Waits for counts under way (at most a page of a list): while the workers still run, from a thread that
 * is none of them. Takes NULL. */
void fgw_s3_quotas_free(struct fgw_s3_quotas *quotas);

/* Takes room in request->bucket, in the request's fiber, which may wait. Again for more. QUOTA_EXCEEDED. */
enum fgw_err fgw_s3_quota_take(struct fgw_s3_request *request, uint64_t bytes,
                               uint64_t objects) FGW_MUST_CHECK;
/* Once at the request's end, with its outcome: what failed gives back what it took. */
void fgw_s3_quota_settle(struct fgw_s3_request *request, enum fgw_err outcome);

#endif
