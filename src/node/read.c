/* read.c: blobs and the digests of their leaves, streamed to a peer. */
#include "base/crc.h"
#include "node/node_internal.h"

enum { RUN_BYTES = FGW_STORAGE_BLOCK_MAX };

static enum fgw_err open_blob(struct fgw_node_session *session, struct fgw_bytes *rest,
                              struct fgw_storage_reader **out_reader, enum fgw_err *out_answer)
{
    struct fgw_cid root;
    uint64_t size;
    if (fgw_blockapi_take_cid(rest, &root) != FGW_OK ||
        fgw_blockapi_take_u64(rest, &size) != FGW_OK) {
        return FGW_ERR_PARSE;
    }
    struct fgw_storage_reader *reader = NULL;
    enum fgw_err err = fgw_storage_reader_open(session->owner->storage, &root, NULL, &reader);
    if (err == FGW_OK && fgw_storage_reader_size(reader) != size) {
        fgw_storage_reader_close(reader);
        reader = NULL;
        err = FGW_ERR_CORRUPT;
    }
    *out_reader = reader;
    *out_answer = err;
    return FGW_OK;
}

/* The bytes of one leaf, on their way from its check into the tag of their frame. */
struct leaf_frame {
    struct fgw_channel *channel;
    uint64_t offset;
    uint8_t digest[FGW_SHA256_SIZE];
    size_t shown;
};

/* The size of the frame's head. */
static size_t put_head(const struct leaf_frame *frame, uint32_t crc32c, uint8_t *out_head)
{
    uint8_t version = frame->channel->version;
    struct fgw_blockapi_data data = {
        .offset = frame->offset, .crc32c = crc32c, .digest = frame->digest};
    fgw_blockapi_data_head(version, &data, out_head);
    return fgw_blockapi_data_head_size(version);
}

static void show(void *context, const struct fgw_storage_place *leaf, size_t at,
                 struct fgw_bytes bytes)
{
    struct leaf_frame *frame = context;
    if (at == 0) {
        uint8_t head[FGW_BLOCKAPI_DATA_HEAD_MAX];
        size_t head_size = put_head(frame, leaf->crc32c, head);
        fgw_channel_file_begin(frame->channel, FGW_BLOCKAPI_DATA, fgw_bytes(head, head_size),
                               leaf->len);
        frame->shown = 0;
    }
    fgw_channel_file_bytes(frame->channel, bytes);
    frame->shown += bytes.len;
}

static enum fgw_err send_memory(const struct leaf_frame *frame, struct fgw_bytes bytes)
{
    uint8_t head[FGW_BLOCKAPI_DATA_HEAD_MAX];
    size_t head_size = put_head(frame, fgw_crc32c(0, bytes), head);
    struct fgw_bytes parts[] = {fgw_bytes(head, head_size), bytes};
    return fgw_channel_send(frame->channel, FGW_BLOCKAPI_DATA, parts, 2);
}

/* A leaf that is wanted whole is sent from its file; the tag is made while it is checked. A failure of
 * the connection goes to *out_sent, one of the store is returned. */
static enum fgw_err send_run(struct fgw_node_session *session, struct fgw_storage_reader *reader,
                             uint64_t offset, uint64_t len, struct fgw_storage_run *out_run,
                             enum fgw_err *out_sent)
{
    struct leaf_frame frame = {.channel = &session->channel, .offset = offset};
    uint64_t left = fgw_storage_reader_size(reader) - offset;
    size_t want = len < RUN_BYTES ? (size_t)len : RUN_BYTES;
    bool whole = offset % RUN_BYTES == 0 && (len >= RUN_BYTES || len == left);
    bool from_file = whole && !fgw_conn_is_tls(session->conn);
    enum fgw_err err = fgw_storage_reader_leaf(reader, offset / RUN_BYTES, frame.digest);
    if (err != FGW_OK) {
        return err;
    }
    fgw_storage_reader_set_tap(reader, from_file ? show : NULL, &frame);
    err = fgw_storage_reader_next(reader, offset, want, !from_file, out_run);
    fgw_storage_reader_set_tap(reader, NULL, NULL);
    bool shown = err == FGW_OK && out_run->fd >= 0 && frame.shown == out_run->bytes.len;
    if (shown) {
        *out_sent = fgw_channel_send_file(&session->channel, out_run->fd, out_run->file_offset);
        return FGW_OK;
    }
    if (err == FGW_OK && out_run->fd >= 0) {
        err = fgw_storage_reader_next(reader, offset, want, true, out_run);
    }
    if (err == FGW_OK) {
        *out_sent = send_memory(&frame, out_run->bytes);
    }
    return err;
}

static enum fgw_err send_runs(struct fgw_node_session *session, struct fgw_storage_reader *reader,
                              uint64_t offset, uint64_t len, enum fgw_err *out_sent)
{
    while (len > 0 && *out_sent == FGW_OK) {
        struct fgw_storage_run run;
        enum fgw_err err = send_run(session, reader, offset, len, &run, out_sent);
        if (err != FGW_OK) {
            return err;
        }
        atomic_fetch_add(&session->owner->bytes_out, run.bytes.len);
        offset += run.bytes.len;
        len -= run.bytes.len;
    }
    return FGW_OK;
}

enum fgw_err fgw_node_read(struct fgw_node_session *session, struct fgw_bytes rest)
{
    struct fgw_storage_reader *reader;
    uint64_t offset;
    uint64_t len;
    enum fgw_err answer;
    enum fgw_err sent = FGW_OK;
    enum fgw_err err = open_blob(session, &rest, &reader, &answer);
    if (err != FGW_OK) {
        return err;
    }
    if (fgw_blockapi_take_u64(&rest, &offset) != FGW_OK ||
        fgw_blockapi_take_u64(&rest, &len) != FGW_OK) {
        sent = FGW_ERR_PARSE;
    } else if (answer == FGW_OK) {
        uint64_t size = fgw_storage_reader_size(reader);
        answer = offset > size || len > size - offset
                     ? FGW_ERR_BAD_REQUEST
                     : send_runs(session, reader, offset, len, &sent);
    }
    if (reader != NULL) {
        fgw_storage_reader_close(reader);
    }
    return sent == FGW_OK ? fgw_node_answer(session, answer, NULL, fgw_bytes(NULL, 0)) : sent;
}

static enum fgw_err leaf_digests(struct fgw_storage_reader *reader, uint64_t first,
                                 struct fgw_buf *out)
{
    uint64_t size = fgw_storage_reader_size(reader);
    uint64_t count = size / FGW_STORAGE_BLOCK_MAX + (size % FGW_STORAGE_BLOCK_MAX != 0);
    enum fgw_err err = FGW_OK;
    for (uint64_t i = first; i < count && i - first < FGW_BLOCKAPI_LEAVES_MAX; i++) {
        uint8_t digest[FGW_SHA256_SIZE];
        err = fgw_storage_reader_leaf(reader, i, digest);
        if (err != FGW_OK) {
            break;
        }
        (void)fgw_buf_append(out, fgw_bytes(digest, sizeof digest));
    }
    return err;
}

enum fgw_err fgw_node_leaves(struct fgw_node_session *session, struct fgw_bytes rest)
{
    struct fgw_storage_reader *reader;
    struct fgw_buf digests;
    uint64_t first = 0;
    enum fgw_err answer;
    enum fgw_err err = open_blob(session, &rest, &reader, &answer);
    if (err != FGW_OK) {
        return err;
    }
    fgw_buf_init(&digests, (size_t)FGW_BLOCKAPI_LEAVES_MAX * FGW_SHA256_SIZE);
    err = fgw_blockapi_take_u64(&rest, &first);
    if (err == FGW_OK && answer == FGW_OK) {
        answer = leaf_digests(reader, first, &digests);
    }
    if (reader != NULL) {
        fgw_storage_reader_close(reader);
    }
    if (err == FGW_OK) {
        err = fgw_node_answer(session, answer, NULL,
                              answer == FGW_OK ? fgw_buf_bytes(&digests) : fgw_bytes(NULL, 0));
    }
    fgw_buf_deinit(&digests);
    return err;
}
