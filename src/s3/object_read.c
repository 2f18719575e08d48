/* object_read.c: see object_read.h. */
#include "s3/object_read.h"

#include "s3/engine_internal.h"

enum { RUN_BYTES = 1024 * 1024 };

static enum fgw_err damaged(struct fgw_s3_object_reader *reader)
{
    return fgw_error_set(&reader->request->error, FGW_ERR_CORRUPT,
                         "The extents of the object do not add up to its size.");
}

/* Moves to the extent that holds reader->offset. */
static enum fgw_err seek_extent(struct fgw_s3_object_reader *reader)
{
    const struct fgw_object *object = reader->object;
    while (reader->extent < object->extent_count &&
           reader->offset - reader->extent_offset >= object->extents[reader->extent].size) {
        reader->extent_offset += object->extents[reader->extent].size;
        reader->extent++;
        fgw_blob_read_close(reader->blob);
        reader->blob = NULL;
    }
    if (reader->extent >= object->extent_count) {
        return damaged(reader);
    }
    if (reader->blob != NULL) {
        return FGW_OK;
    }
    return fgw_blob_read_open(reader->request->s3->blobs, &object->extents[reader->extent],
                              &reader->blob, &reader->request->error);
}

enum fgw_err fgw_s3_object_reader_open(struct fgw_s3_request *request,
                                       const struct fgw_object *object,
                                       const struct fgw_s3_range *range, bool prefer_memory,
                                       struct fgw_s3_object_reader *reader)
{
    *reader = (struct fgw_s3_object_reader){.request = request,
                                            .object = object,
                                            .offset = range->offset,
                                            .left = range->len,
                                            .prefer_memory = prefer_memory};
    return range->len == 0 ? FGW_OK : seek_extent(reader);
}

enum fgw_err fgw_s3_object_reader_next(struct fgw_s3_object_reader *reader,
                                       struct fgw_storage_run *out_run)
{
    if (reader->left == 0) {
        return FGW_ERR_END;
    }
    enum fgw_err err = seek_extent(reader);
    if (err != FGW_OK) {
        return err;
    }
    uint64_t in_extent = reader->offset - reader->extent_offset;
    uint64_t want = reader->object->extents[reader->extent].size - in_extent;
    want = want < reader->left ? want : reader->left;
    want = want < RUN_BYTES ? want : RUN_BYTES;
    struct fgw_storage_run run;
    err = fgw_blob_read_next(reader->blob, in_extent, (size_t)want, reader->prefer_memory, &run);
    if (err == FGW_OK && (run.bytes.len == 0 || run.bytes.len > want)) {
        err = damaged(reader);
    }
    if (err != FGW_OK) {
        return err;
    }
    reader->offset += run.bytes.len;
    reader->left -= run.bytes.len;
    *out_run = run;
    return FGW_OK;
}

void fgw_s3_object_reader_close(struct fgw_s3_object_reader *reader)
{
    if (reader->blob != NULL) {
        fgw_blob_read_close(reader->blob);
        reader->blob = NULL;
    }
}
