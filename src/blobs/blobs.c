/* blobs.c: calls that find their store through the handle; see blobs.h. */
#include "blobs/blobs.h"

#include "blobs/small_cache.h"

enum fgw_err fgw_blob_stage_write(struct fgw_blob_stage *stage, struct fgw_bytes bytes)
{
    return ((struct fgw_blob_handle *)stage)->ops->stage_write(stage, bytes);
}

size_t fgw_blob_stage_room(struct fgw_blob_stage *stage, uint8_t **out_room)
{
    const struct fgw_blobs_ops *ops = ((struct fgw_blob_handle *)stage)->ops;
    return ops->stage_room == NULL ? 0 : ops->stage_room(stage, out_room);
}

enum fgw_err fgw_blob_stage_finish(struct fgw_blob_stage *stage, struct fgw_blob_staged *out_staged)
{
    return ((struct fgw_blob_handle *)stage)->ops->stage_finish(stage, out_staged);
}

void fgw_blob_stage_abort(struct fgw_blob_stage *stage)
{
    if (stage != NULL) {
        ((struct fgw_blob_handle *)stage)->ops->stage_abort(stage);
    }
}

enum fgw_err fgw_blob_read_open(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                                struct fgw_blob_reader **out_reader, struct fgw_error *error)
{
    return fgw_small_cache_takes(blobs->cache, &extent->root, extent->size)
               ? fgw_small_read_open(blobs, extent, out_reader, error)
               : blobs->ops->read_open(blobs, extent, out_reader, error);
}

enum fgw_err fgw_blob_read_next(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                                bool prefer_memory, struct fgw_storage_run *out_run)
{
    return ((struct fgw_blob_handle *)reader)
        ->ops->read_next(reader, offset, want, prefer_memory, out_run);
}

enum fgw_err fgw_blob_read_leaf(struct fgw_blob_reader *reader, uint64_t leaf,
                                uint8_t out_digest[32])
{
    return ((struct fgw_blob_handle *)reader)->ops->read_leaf(reader, leaf, out_digest);
}

void fgw_blob_read_close(struct fgw_blob_reader *reader)
{
    if (reader != NULL) {
        ((struct fgw_blob_handle *)reader)->ops->read_close(reader);
    }
}
