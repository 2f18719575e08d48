/* object_cid.c: see object_cid.h. */
#include "s3/object_cid.h"

#include "base/log.h"
#include "cid/dag.h"

static uint64_t leaves_of(const struct fgw_extent *extent)
{
    return extent->size / FGW_STORAGE_BLOCK_MAX + (extent->size % FGW_STORAGE_BLOCK_MAX != 0);
}

static enum fgw_err add_leaves(struct fgw_dag_builder *dag, struct fgw_blob_reader *reader,
                               const struct fgw_extent *extent)
{
    enum fgw_err err = FGW_OK;
    uint64_t left = extent->size;
    for (uint64_t i = 0; left > 0 && err == FGW_OK; i++) {
        uint8_t digest[FGW_SHA256_SIZE];
        uint64_t size = left < FGW_STORAGE_BLOCK_MAX ? left : FGW_STORAGE_BLOCK_MAX;
        err = fgw_blob_read_leaf(reader, i, digest);
        if (err == FGW_OK) {
            struct fgw_cid cid = fgw_cid_make(FGW_CODEC_RAW, digest);
            err = fgw_dag_builder_add(dag, &cid, size);
        }
        left -= size;
    }
    return err;
}

static enum fgw_err add_extent(struct fgw_blobs *blobs, struct fgw_dag_builder *dag,
                               const struct fgw_extent *extent, struct fgw_error *error)
{
    if (fgw_cid_codec(&extent->root) == FGW_CODEC_RAW) {
        return fgw_dag_builder_add(dag, &extent->root, extent->size);
    }
    struct fgw_blob_reader *reader;
    enum fgw_err err = fgw_blob_read_open(blobs, extent, &reader, error);
    if (err == FGW_OK) {
        err = add_leaves(dag, reader, extent);
        fgw_blob_read_close(reader);
    }
    return err;
}

/* An object whose bytes are those of one extent has its tree; empty extents change nothing. */
static const struct fgw_extent *only_extent(const struct fgw_object *object)
{
    const struct fgw_extent *only = NULL;
    for (size_t i = 0; i < object->extent_count; i++) {
        if (object->extents[i].size > 0 && only != NULL) {
            return NULL;
        }
        if (object->extents[i].size > 0 || object->extent_count == 1) {
            only = &object->extents[i];
        }
    }
    return only;
}

static enum fgw_err build(struct fgw_blobs *blobs, const struct fgw_object *object,
                          struct fgw_dag_root *out_root, struct fgw_error *error)
{
    struct fgw_dag_builder *dag = fgw_dag_builder_new(&fgw_dag_unixfs_v1_2025, NULL, NULL);
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; i < object->extent_count && err == FGW_OK; i++) {
        err = add_extent(blobs, dag, &object->extents[i], error);
    }
    if (err == FGW_OK) {
        err = fgw_dag_builder_finish(dag, out_root);
    }
    fgw_dag_builder_free(dag);
    return err;
}

static uint64_t count_leaves(const struct fgw_object *object)
{
    uint64_t leaves = 0;
    for (size_t i = 0; i < object->extent_count; i++) {
        leaves += leaves_of(&object->extents[i]);
    }
    return leaves;
}

/* FGW_ERR_TOO_LARGE: above FGW_S3_CID_LEAVES_MAX. */
static enum fgw_err find_root(struct fgw_blobs *blobs, const struct fgw_object *object,
                              struct fgw_dag_root *out_root, struct fgw_error *error)
{
    const struct fgw_extent *only = only_extent(object);
    if (only != NULL) {
        *out_root = (struct fgw_dag_root){.cid = only->root, .canonical = true};
        return FGW_OK;
    }
    if (count_leaves(object) > FGW_S3_CID_LEAVES_MAX) {
        return fgw_error_set(error, FGW_ERR_TOO_LARGE, "it has too many leaves");
    }
    return build(blobs, object, out_root, error);
}

void fgw_s3_find_object_cid(struct fgw_blobs *blobs, struct fgw_object *object)
{
    struct fgw_dag_root root = {.canonical = false};
    struct fgw_error error;
    fgw_error_init(&error);
    enum fgw_err err = find_root(blobs, object, &root, &error);
    if (err != FGW_OK) {
        fgw_log_info("s3", "the object %.*s stays without a CID: %s",
                     FGW_FMT(fgw_bytes_sub(object->key, 0, 200)),
                     error.message[0] != '\0' ? error.message : fgw_err_text(err));
        return;
    }
    object->cid = root.cid;
    object->canonical_cid = root.canonical;
    object->has_cid = true;
}
