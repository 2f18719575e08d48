/* bucket_update.h: changing one field of a bucket's row while others may be changing it too. */
#ifndef FGW_S3_BUCKET_UPDATE_H
#define FGW_S3_BUCKET_UPDATE_H

#include "s3/request.h"

/* Changes what it wants to in the row it is shown; an error leaves the row as it is. */
typedef enum fgw_err fgw_s3_bucket_change(struct fgw_s3_request *request,
                                          struct fgw_bucket *bucket, void *context);

/* Applies the change to request->bucket and stores it, again from the newest row when somebody
 * else was faster, a few times. FGW_ERR_CONFLICT when that did not help. */
enum fgw_err fgw_s3_bucket_update(struct fgw_s3_request *request, fgw_s3_bucket_change *change,
                                  void *context) FGW_MUST_CHECK;

#endif
