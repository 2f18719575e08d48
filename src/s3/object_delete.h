/* object_delete.h: one delete of DeleteObject and DeleteObjects, with S3's view of what is missing. */
#ifndef FGW_S3_OBJECT_DELETE_H
#define FGW_S3_OBJECT_DELETE_H

#include "s3/request.h"

struct fgw_s3_deletion {
    struct fgw_bytes key;
    struct fgw_version version;
    struct fgw_conditions conditions;
    bool missing;               /* out: a condition met nothing; nothing was changed */
    struct fgw_written written; /* out, unless missing */
};

/* What is not there is deleted (FGW_OK, missing set when a condition was given); a condition on the
 * ETag, size or time of a delete marker fails: PRECONDITION_FAILED (spec/s3-wire.md 5.51). Other
 * errors: those of object_delete. */
enum fgw_err fgw_s3_object_delete(struct fgw_s3_request *request, struct fgw_s3_deletion *deletion,
                                  struct fgw_error *error) FGW_MUST_CHECK;

#endif
