/* staging.h: a request body into the blob store: for PutObject and UploadPart. */
#ifndef FGW_S3_STAGING_H
#define FGW_S3_STAGING_H

#include "s3/body.h"

/* Of what the request writes at its key: owner_id is the version's, or the upload's id. */
struct fgw_storage_owner fgw_s3_owner(const struct fgw_s3_request *request,
                                      const struct fgw_id *owner_id);

/* Runs the planned body into one staged blob held by (bucket, key, owner_id) as extent
 * extent_number. On failure nothing stays staged; on FGW_OK the caller commits or discards it. */
enum fgw_err fgw_s3_stage_body(struct fgw_s3_request *request, struct fgw_s3_body *body,
                               const struct fgw_id *owner_id, uint64_t extent_number,
                               struct fgw_blob_staged *out_staged) FGW_MUST_CHECK;

#endif
