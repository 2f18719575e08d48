/* object_read.h: the bytes of a stored object, across its extents. */
#ifndef FGW_S3_OBJECT_READ_H
#define FGW_S3_OBJECT_READ_H

#include "s3/range.h"
#include "s3/request.h"

/* A position inside an object; zero-initialise, close at the end. */
struct fgw_s3_object_reader {
    struct fgw_s3_request *request;
    const struct fgw_object *object;
    uint64_t offset; /* next byte of the object */
    uint64_t left;   /* bytes still wanted */
    bool prefer_memory;
    size_t extent;          /* the one that holds offset */
    uint64_t extent_offset; /* of the object's byte where that extent begins */
    struct fgw_blob_reader *blob;
};

/* Stands at the front of `range`, which must lie inside the object. prefer_memory as in
 * fgw_blob_read_next. FGW_ERR_CORRUPT when extents and size disagree. */
enum fgw_err fgw_s3_object_reader_open(struct fgw_s3_request *request,
                                       const struct fgw_object *object,
                                       const struct fgw_s3_range *range, bool prefer_memory,
                                       struct fgw_s3_object_reader *reader) FGW_MUST_CHECK;
/* Next run of verified bytes, FGW_ERR_END behind the range. The run is valid until the next call. */
enum fgw_err fgw_s3_object_reader_next(struct fgw_s3_object_reader *reader,
                                       struct fgw_storage_run *out_run) FGW_MUST_CHECK;
void fgw_s3_object_reader_close(struct fgw_s3_object_reader *reader);

#endif
