/* bucket_update.c: see bucket_update.h. */
#include "s3/bucket_update.h"

#include "event/fiber.h"
#include "s3/engine_internal.h"

enum { MAX_TRIES = 16, PAUSE_MS = 2 };

enum fgw_err fgw_s3_bucket_update(struct fgw_s3_request *request, fgw_s3_bucket_change *change,
                                  void *context)
{
    struct fgw_meta *meta = request->s3->meta;
    for (unsigned attempt = 1;; attempt++) {
        enum fgw_err err = change(request, &request->bucket, context);
        if (err == FGW_OK) {
            err = meta->ops->bucket_update(meta, request->arena, &request->bucket, &request->error);
        }
        if (err != FGW_ERR_CONFLICT || attempt == MAX_TRIES) {
            return err;
        }
        fgw_fiber_sleep_ms(PAUSE_MS * attempt);
        err = meta->ops->bucket_get(meta, request->arena, request->bucket_name, true,
                                    &request->bucket, &request->error);
        if (err != FGW_OK) {
            return err;
        }
    }
}
