/* remote_stream.c: bodies as streams of blocks to a store, and blobs streamed from one. */
#include "base/crc.h"
#include "blobs/leaf.h"
#include "blobs/remotes_internal.h"

/* -- writing ------------------------------------------------------------------------------------- */

struct fgw_remote_writer {
    struct fgw_link *link;
    struct fgw_remote_target target;
    bool open;     /* BEGIN went out, FINISH and ABORT did not */
    bool in_order; /* the connection can be kept */
};

/* BEGIN and its answer: from here on the store takes blocks. */
static enum fgw_err begin(struct fgw_link *link, const struct fgw_remote_target *target,
                          const struct fgw_blockapi_owner *owner, uint64_t size_hint,
                          bool *out_store_said, struct fgw_error *error)
{
    struct fgw_blockapi_answer answer;
    fgw_link_request(link, target);
    fgw_blockapi_put_owner(&link->request, owner);
    fgw_blockapi_put_u64(&link->request, size_hint);
    *out_store_said = false;
    enum fgw_err err = fgw_link_send(link, FGW_BLOCKAPI_BEGIN, NULL, 0);
    return err == FGW_OK ? fgw_link_answer(link, &answer, out_store_said, error)
                         : fgw_link_failed(link, err, error);
}

enum fgw_err fgw_remote_writer_new(struct fgw_remotes *remotes,
                                   const struct fgw_remote_target *target,
                                   const struct fgw_blockapi_owner *owner, uint64_t size_hint,
                                   struct fgw_remote_writer **out_writer, struct fgw_error *error)
{
    struct fgw_link *link;
    bool store_said = false;
    enum fgw_err err = FGW_ERR_UNAVAILABLE;
    for (bool fresh = false;; fresh = true) {
        err = fgw_link_take(remotes, target->member, fresh, &link, error);
        if (err != FGW_OK) {
            return err;
        }
        bool again = link->reused;
        err = begin(link, target, owner, size_hint, &store_said, error);
        if (err == FGW_OK) {
            break;
        }
        fgw_link_give(link, store_said);
        if (store_said || !again || err == FGW_ERR_TIMEOUT) {
            return err;
        }
    }
    struct fgw_remote_writer *writer = fgw_xcalloc(1, sizeof *writer);
    *writer = (struct fgw_remote_writer){.link = link, .target = *target, .open = true};
    *out_writer = writer;
    return FGW_OK;
}

/* An answer before the end is a refusal: why, and nothing more needs to be sent. */
static enum fgw_err early_answer(struct fgw_remote_writer *writer, struct fgw_error *error)
{
    struct fgw_blockapi_answer answer;
    bool said;
    enum fgw_err err = fgw_link_answer(writer->link, &answer, &said, error);
    return err == FGW_OK ? fgw_link_failed(writer->link, FGW_ERR_PARSE, error) : err;
}

enum fgw_err fgw_remote_writer_add(struct fgw_remote_writer *writer,
                                   const struct fgw_storage_block *block, bool leaf,
                                   struct fgw_error *error)
{
    struct fgw_link *link = writer->link;
    if (fgw_channel_pending(&link->channel)) {
        return early_answer(writer, error);
    }
    fgw_buf_clear(&link->request);
    fgw_blockapi_put_u32(&link->request, leaf ? 1 : 0);
    fgw_blockapi_put_block_head(&link->request, &block->cid, block->crc32c);
    enum fgw_err err = fgw_link_send(link, FGW_BLOCKAPI_BLOCK, &block->bytes, 1);
    return err == FGW_OK ? FGW_OK : fgw_link_failed(link, err, error);
}

enum fgw_err fgw_remote_writer_finish(struct fgw_remote_writer *writer, const struct fgw_cid *root,
                                      uint64_t size, uint64_t extent, struct fgw_error *error)
{
    struct fgw_link *link = writer->link;
    struct fgw_blockapi_answer answer;
    fgw_link_request(link, &writer->target);
    fgw_blockapi_put_cid(&link->request, root);
    fgw_blockapi_put_u64(&link->request, size);
    fgw_blockapi_put_u64(&link->request, extent);
    writer->open = false;
    enum fgw_err err = fgw_link_send(link, FGW_BLOCKAPI_FINISH, NULL, 0);
    if (err != FGW_OK) {
        return fgw_link_failed(link, err, error);
    }
    return fgw_link_answer(link, &answer, &writer->in_order, error);
}

void fgw_remote_writer_free(struct fgw_remote_writer *writer)
{
    if (writer != NULL) {
        /* closing tells the store to drop it */
        fgw_link_give(writer->link, writer->in_order);
        fgw_xfree(writer);
    }
}

/* -- reading ------------------------------------------------------------------------------------- */

enum { LEAF = FGW_STORAGE_BLOCK_MAX, YIELD_STEP = 64 * 1024 };

struct fgw_remote_reader {
    struct fgw_link *link;
    uint64_t size;   /* of the blob */
    uint64_t offset; /* of the bytes to come */
    uint64_t left;
    bool in_order; /* the closing answer came */
    /* of the frame that comes in, or came last */
    bool hashed; /* a whole leaf of a store of version 1; else its CRC32C is computed */
    bool has_digest;
    uint32_t crc32c;
    struct fgw_digest sha256;
    uint8_t digest[FGW_SHA256_SIZE];
};

/* A fgw_channel_tap_fn: checks the bytes of DATA while they are in the cache. */
static void look(void *context, uint8_t kind, size_t at, struct fgw_bytes bytes, size_t length)
{
    struct fgw_remote_reader *reader = context;
    uint8_t version = reader->link->channel.version;
    size_t head = fgw_blockapi_data_head_size(version);
    if (kind != FGW_BLOCKAPI_DATA || length <= head) {
        return;
    }
    if (at == 0) {
        reader->crc32c = 0;
        reader->hashed =
            version == 1 && fgw_leaf_is_whole(reader->size, reader->offset, length - head);
        if (reader->hashed) {
            fgw_digest_begin(&reader->sha256, FGW_DIGEST_SHA256);
        }
    }
    if (at < head) {
        bytes = fgw_bytes_sub(bytes, head - at, SIZE_MAX);
    }
    if (reader->hashed) {
        fgw_digest_update(&reader->sha256, bytes);
    } else {
        reader->crc32c = fgw_crc32c(reader->crc32c, bytes);
    }
    if (bytes.len >= YIELD_STEP) {
        fgw_fiber_yield();
    }
}

enum fgw_err fgw_remote_reader_new(struct fgw_remotes *remotes,
                                   const struct fgw_remote_target *target,
                                   const struct fgw_cid *root, uint64_t size, uint64_t offset,
                                   uint64_t len, struct fgw_remote_reader **out_reader,
                                   struct fgw_error *error)
{
    struct fgw_link *link;
    enum fgw_err err = fgw_link_take(remotes, target->member, false, &link, error);
    if (err != FGW_OK) {
        return err;
    }
    fgw_link_request(link, target);
    fgw_blockapi_put_cid(&link->request, root);
    fgw_blockapi_put_u64(&link->request, size);
    fgw_blockapi_put_u64(&link->request, offset);
    fgw_blockapi_put_u64(&link->request, len);
    err = fgw_link_send(link, FGW_BLOCKAPI_READ, NULL, 0);
    if (err != FGW_OK) {
        err = fgw_link_failed(link, err, error);
        fgw_link_give(link, false);
        return err;
    }
    struct fgw_remote_reader *reader = fgw_xcalloc(1, sizeof *reader);
    *reader = (struct fgw_remote_reader){.link = link, .size = size, .offset = offset, .left = len};
    fgw_channel_set_tap(&link->channel, look, reader);
    *out_reader = reader;
    return FGW_OK;
}

static enum fgw_err take_end(struct fgw_remote_reader *reader, struct fgw_bytes payload,
                             struct fgw_error *error)
{
    struct fgw_blockapi_answer answer;
    enum fgw_err err = fgw_blockapi_take_answer(payload, &answer);
    reader->in_order = err == FGW_OK;
    if (err == FGW_OK && answer.err != FGW_OK) {
        return fgw_error_set(error, answer.err, "The store at %s: %s", reader->link->address,
                             fgw_err_text(answer.err));
    }
    /* fine, but before all bytes came */
    return fgw_link_failed(reader->link, FGW_ERR_PARSE, error);
}

/* Bytes that came, against what came with them. */
static enum fgw_err check(struct fgw_remote_reader *reader, const struct fgw_blockapi_data *data)
{
    reader->has_digest = reader->hashed || data->digest != NULL;
    if (reader->hashed) {
        fgw_digest_end(&reader->sha256, reader->digest);
        return FGW_OK;
    }
    if (data->digest != NULL) {
        memcpy(reader->digest, data->digest, sizeof reader->digest);
    }
    return reader->crc32c == data->crc32c ? FGW_OK : FGW_ERR_CORRUPT;
}

enum fgw_err fgw_remote_reader_next(struct fgw_remote_reader *reader, uint64_t *out_offset,
                                    struct fgw_bytes *out_bytes, struct fgw_error *error)
{
    uint8_t kind;
    struct fgw_bytes payload;
    struct fgw_blockapi_data data;
    if (reader->left == 0) {
        return FGW_ERR_END;
    }
    enum fgw_err err = fgw_link_receive(reader->link, &kind, &payload);
    if (err != FGW_OK) {
        return fgw_link_failed(reader->link, err, error);
    }
    if (kind == FGW_BLOCKAPI_ANSWER) {
        return take_end(reader, payload, error);
    }
    if (kind != FGW_BLOCKAPI_DATA ||
        fgw_blockapi_take_data(reader->link->channel.version, payload, &data) != FGW_OK ||
        data.offset != reader->offset || data.bytes.len > reader->left) {
        return fgw_link_failed(reader->link, FGW_ERR_PARSE, error);
    }
    err = check(reader, &data);
    if (err != FGW_OK) {
        return fgw_link_failed(reader->link, err, error);
    }
    reader->offset += data.bytes.len;
    reader->left -= data.bytes.len;
    *out_offset = data.offset;
    *out_bytes = data.bytes;
    return FGW_OK;
}

const uint8_t *fgw_remote_reader_digest(const struct fgw_remote_reader *reader)
{
    return reader->has_digest ? reader->digest : NULL;
}

/* All bytes were taken: the closing answer is on its way and spares a new connection. */
static void take_last_answer(struct fgw_remote_reader *reader)
{
    uint8_t kind;
    struct fgw_bytes payload;
    struct fgw_blockapi_answer answer;
    if (reader->left == 0 && !reader->in_order &&
        fgw_link_receive(reader->link, &kind, &payload) == FGW_OK && kind == FGW_BLOCKAPI_ANSWER &&
        fgw_blockapi_take_answer(payload, &answer) == FGW_OK) {
        reader->in_order = true;
    }
}

void fgw_remote_reader_free(struct fgw_remote_reader *reader)
{
    if (reader != NULL) {
        take_last_answer(reader);
        fgw_channel_set_tap(&reader->link->channel, NULL, NULL);
        fgw_digest_deinit(&reader->sha256);
        fgw_link_give(reader->link, reader->in_order);
        fgw_xfree(reader);
    }
}
