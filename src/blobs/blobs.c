/* blobs.c: calls on stages and readers, which begin with their store's table. See blobs.h. */
#include "blobs/blobs.h"

static const struct fgw_blobs_ops *ops_of(const void *handle)
{
    return ((const struct fgw_blob_handle *)handle)->ops;
}

enum fgw_err fgw_blob_stage_write(struct fgw_blob_stage *stage, struct fgw_bytes bytes)
{
    return ops_of(stage)->stage_write(stage, bytes);
}

enum fgw_err fgw_blob_stage_finish(struct fgw_blob_stage *stage, struct fgw_blob_staged *out_staged)
{
    return ops_of(stage)->stage_finish(stage, out_staged);
}

void fgw_blob_stage_abort(struct fgw_blob_stage *stage)
{
    if (stage != NULL) {
        ops_of(stage)->stage_abort(stage);
    }
}

enum fgw_err fgw_blob_read_next(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                                bool prefer_memory, struct fgw_storage_run *out_run)
{
    return ops_of(reader)->read_next(reader, offset, want, prefer_memory, out_run);
}

void fgw_blob_read_close(struct fgw_blob_reader *reader)
{
    if (reader != NULL) {
        ops_of(reader)->read_close(reader);
    }
}
