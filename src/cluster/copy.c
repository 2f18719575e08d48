/* copy.c: one blob from the own store to another: a further hold where it lies already, else its
 * blocks. Every block is hashed on its way: a copy is never worse than what its name says. Nothing
 * but the hold stays behind when it is repeated. Fibers of worker 0. */
#include "base/crc.h"
#include "cluster/cluster_internal.h"

enum { DIGESTS = 64 };

struct copy {
    struct fgw_cluster *cluster;
    const struct fgw_storage_hold_seen *hold;
    const struct fgw_remote_target *target;
    struct fgw_blockapi_owner owner;
    struct fgw_storage_reader *reader;
    struct fgw_remote_writer *writer;
    struct fgw_buf block;
    uint64_t bytes;
};

static enum fgw_err read_block(struct copy *copy, const struct fgw_cid *cid,
                               struct fgw_storage_block *out, struct fgw_error *error)
{
    uint8_t digest[FGW_SHA256_SIZE];
    enum fgw_err err =
        fgw_storage_read_block(copy->cluster->options.storage, cid, &copy->block, out);
    if (err != FGW_OK) {
        return fgw_error_set(error, err, "The own copy cannot be read: %s", fgw_err_text(err));
    }
    fgw_sha256(out->bytes, digest);
    if (memcmp(digest, fgw_cid_digest(cid), sizeof digest) != 0) {
        return fgw_error_set(error, FGW_ERR_CORRUPT, "The own copy is damaged.");
    }
    copy->bytes += out->bytes.len;
    return FGW_OK;
}

static enum fgw_err send_blocks(struct copy *copy, bool leaves, struct fgw_error *error)
{
    uint64_t count = fgw_storage_reader_blocks(copy->reader, leaves);
    uint64_t at = 0;
    while (at < count) {
        uint8_t digests[DIGESTS][FGW_SHA256_SIZE];
        size_t got;
        enum fgw_err err =
            fgw_storage_reader_digests(copy->reader, leaves, at, DIGESTS, digests, &got);
        for (size_t i = 0; i < got && err == FGW_OK; i++) {
            struct fgw_storage_block block;
            struct fgw_cid cid =
                fgw_cid_make(leaves ? FGW_CODEC_RAW : FGW_CODEC_DAG_PB, digests[i]);
            err = read_block(copy, &cid, &block, error);
            if (err == FGW_OK) {
                err = fgw_remote_writer_add(copy->writer, &block, leaves, error);
            }
        }
        if (err != FGW_OK) {
            return err;
        }
        at += got;
    }
    return FGW_OK;
}

static enum fgw_err send_large(struct copy *copy, struct fgw_error *error)
{
    struct fgw_remotes *remotes = copy->cluster->options.remotes;
    const struct fgw_storage_hold_seen *hold = copy->hold;
    enum fgw_err err =
        fgw_storage_reader_open(copy->cluster->options.storage, &hold->root, NULL, &copy->reader);
    if (err != FGW_OK) {
        return fgw_error_set(error, err, "The own copy cannot be opened: %s", fgw_err_text(err));
    }
    err = fgw_remote_writer_new(remotes, copy->target, &copy->owner, hold->size_bytes,
                                &copy->writer, error);
    if (err == FGW_OK) {
        err = send_blocks(copy, true, error);
    }
    if (err == FGW_OK) {
        err = send_blocks(copy, false, error);
    }
    if (err == FGW_OK) {
        err = fgw_remote_writer_finish(copy->writer, &hold->root, hold->size_bytes, hold->extent,
                                       error);
    }
    fgw_remote_writer_free(copy->writer);
    fgw_storage_reader_close(copy->reader);
    return err;
}

static enum fgw_err send_small(struct copy *copy, struct fgw_error *error)
{
    struct fgw_storage_block block;
    enum fgw_err err = read_block(copy, &copy->hold->root, &block, error);
    return err == FGW_OK ? fgw_remote_put(copy->cluster->options.remotes, copy->target,
                                          &copy->owner, &block, error)
                         : err;
}

/* The name is known to exist: a hint that spares the store the question. */
static void confirm(struct copy *copy)
{
    struct fgw_error error;
    struct fgw_buf hold;
    fgw_error_init(&error);
    fgw_buf_init(&hold, 4096);
    fgw_blockapi_put_owner(&hold, &copy->owner);
    fgw_blockapi_put_cid(&hold, &copy->hold->root);
    (void)!fgw_remote_confirm(copy->cluster->options.remotes, copy->target, 1, fgw_buf_bytes(&hold),
                              &error);
    fgw_buf_deinit(&hold);
}

enum fgw_err cluster_copy(struct fgw_cluster *cluster, const struct fgw_storage_hold_seen *hold,
                          const struct fgw_remote_target *target, uint64_t *out_bytes,
                          struct fgw_error *error)
{
    struct copy copy = {.cluster = cluster, .hold = hold, .target = target};
    copy.owner = (struct fgw_blockapi_owner){.extent = hold->extent, .key = hold->owner.key};
    memcpy(copy.owner.bucket_id, hold->owner.bucket_id, sizeof copy.owner.bucket_id);
    memcpy(copy.owner.owner_id, hold->owner.owner_id, sizeof copy.owner.owner_id);
    enum fgw_err err = fgw_remote_hold(cluster->options.remotes, target, &copy.owner, &hold->root,
                                       hold->size_bytes, error);
    if (err == FGW_ERR_NOT_FOUND) {
        bool small = hold->size_bytes <= FGW_STORAGE_INLINE_MAX &&
                     fgw_cid_codec(&hold->root) == FGW_CODEC_RAW;
        fgw_buf_init(&copy.block, 2 * FGW_STORAGE_BLOCK_MAX);
        err = small ? send_small(&copy, error) : send_large(&copy, error);
        fgw_buf_deinit(&copy.block);
    }
    if (err == FGW_OK) {
        confirm(&copy);
        *out_bytes = copy.bytes;
    }
    return err;
}
