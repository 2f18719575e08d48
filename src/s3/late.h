/* late.h: operations that may take long (Complete, copies): clients and load balancers give up on a
 * connection that stays silent, so after five seconds a 200 begins and white space keeps it alive;
 * the result, or an Error document, follows in the body. Source: AWS CompleteMultipartUpload and
 * CopyObject ("200 OK response can contain an error"); public bug reports B90.
 *
 * The work runs in a fiber of its own with an arena of its own: the answer is begun in the request's
 * fiber meanwhile, and metadata backends may use the arena they were given on other threads.
 */
#ifndef FGW_S3_LATE_H
#define FGW_S3_LATE_H

#include "s3/request.h"

typedef enum fgw_err fgw_s3_late_work(struct fgw_s3_request *request, void *context);

struct fgw_s3_late {
    struct fgw_s3_request *request;
    struct fgw_arena *outer;     /* the request's own arena */
    struct fgw_arena arena;      /* request->arena from begin to end */
    unsigned extra_header_count; /* those of before, which live in the outer arena */
};

/* From here to end, what is allocated in request->arena lives until end. */
void fgw_s3_late_begin(struct fgw_s3_late *late, struct fgw_s3_request *request);
/* Runs the work to its end and returns what it returned, also when the client has gone. */
enum fgw_err fgw_s3_late_run(struct fgw_s3_late *late, fgw_s3_late_work *work,
                             void *context) FGW_MUST_CHECK;
/* Behind the answer. Forgets the extra headers added since begin, which may live in the arena. */
void fgw_s3_late_end(struct fgw_s3_late *late);

#endif
