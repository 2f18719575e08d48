/* write.c: a body larger than an inline one, as blocks into a storage writer. A failure is told at
 * once and what still comes up to FINISH or ABORT is dropped. Back-pressure: the next frame is not
 * read before the block is taken. */
#include "base/crc.h"
#include "node/node_internal.h"

struct fgw_storage_owner fgw_node_owner(const struct fgw_blockapi_owner *from)
{
    struct fgw_storage_owner owner = {.key = from->key};
    memcpy(owner.bucket_id, from->bucket_id, sizeof owner.bucket_id);
    memcpy(owner.owner_id, from->owner_id, sizeof owner.owner_id);
    return owner;
}

enum { BLOCK_HEAD = 4 + FGW_CID_SIZE + 4 };

void fgw_node_write_look(void *context, uint8_t kind, size_t at, struct fgw_bytes bytes,
                         size_t length)
{
    struct fgw_node_session *session = context;
    (void)length;
    if (kind != FGW_BLOCKAPI_BLOCK) {
        return;
    }
    if (at == 0) {
        session->block_crc32c = 0;
    }
    if (at < BLOCK_HEAD) {
        bytes = fgw_bytes_sub(bytes, BLOCK_HEAD - at, SIZE_MAX);
    }
    session->block_crc32c = fgw_crc32c(session->block_crc32c, bytes);
}

void fgw_node_write_drop(struct fgw_node_session *session)
{
    fgw_storage_writer_free(session->writer);
    session->writer = NULL;
    session->writing = false;
    session->write_answered = false;
}

static enum fgw_err fail(struct fgw_node_session *session, enum fgw_err err)
{
    fgw_storage_writer_free(session->writer);
    session->writer = NULL;
    session->write_answered = true;
    return fgw_node_answer(session, err, NULL, fgw_bytes(NULL, 0));
}

enum fgw_err fgw_node_write_begin(struct fgw_node_session *session, struct fgw_bytes rest)
{
    struct fgw_blockapi_owner from;
    uint64_t size_hint;
    enum fgw_err err = fgw_blockapi_take_owner(&rest, &from);
    if (err == FGW_OK) {
        err = fgw_blockapi_take_u64(&rest, &size_hint);
    }
    if (err != FGW_OK || session->writing) {
        return FGW_ERR_PARSE;
    }
    struct fgw_storage_owner owner = fgw_node_owner(&from);
    err = fgw_node_may_take(session);
    if (err == FGW_OK) {
        err = fgw_storage_writer_new(session->owner->storage, &owner, from.extent, size_hint,
                                     &session->writer);
    }
    session->writing = err == FGW_OK;
    if (session->writing) {
        fgw_storage_writer_set_pending(session->writer);
    }
    return fgw_node_answer(session, err, NULL, fgw_bytes(NULL, 0));
}

enum fgw_err fgw_node_write_block(struct fgw_node_session *session, struct fgw_bytes payload)
{
    struct fgw_blockapi_block from;
    uint32_t flags;
    if (!session->writing || fgw_blockapi_take_u32(&payload, &flags) != FGW_OK || flags > 1 ||
        fgw_blockapi_take_block(&payload, &from) != FGW_OK) {
        return FGW_ERR_PARSE;
    }
    if (session->write_answered) {
        return FGW_OK;
    }
    struct fgw_storage_block block = {from.cid, from.crc32c, from.bytes};
    enum fgw_err err = from.bytes.len > FGW_STORAGE_BLOCK_MAX ? FGW_ERR_BAD_REQUEST : FGW_OK;
    if (err == FGW_OK && session->block_crc32c != from.crc32c) {
        err = FGW_ERR_CORRUPT;
    }
    if (err == FGW_OK) {
        err = fgw_storage_writer_add(session->writer, &block, flags == 1);
    }
    return err == FGW_OK ? FGW_OK : fail(session, err);
}

enum fgw_err fgw_node_write_finish(struct fgw_node_session *session, struct fgw_bytes rest)
{
    struct fgw_cid root;
    uint64_t size;
    uint64_t extent;
    if (!session->writing || fgw_blockapi_take_cid(&rest, &root) != FGW_OK ||
        fgw_blockapi_take_u64(&rest, &size) != FGW_OK ||
        fgw_blockapi_take_u64(&rest, &extent) != FGW_OK) {
        return FGW_ERR_PARSE;
    }
    if (session->write_answered) {
        fgw_node_write_drop(session);
        return FGW_OK;
    }
    fgw_node_working_begin(session);
    fgw_storage_writer_set_extent(session->writer, extent);
    enum fgw_err err = fgw_storage_writer_finish(session->writer, &root, size);
    if (err == FGW_OK) {
        err = fgw_node_may_acknowledge(session->owner);
    }
    fgw_node_write_drop(session);
    fgw_node_working_end(session);
    return fgw_node_answer(session, err, NULL, fgw_bytes(NULL, 0));
}

enum fgw_err fgw_node_write_abort(struct fgw_node_session *session)
{
    bool answered = session->write_answered;
    if (!session->writing) {
        return FGW_ERR_PARSE;
    }
    fgw_node_write_drop(session);
    return answered ? FGW_OK : fgw_node_answer(session, FGW_OK, NULL, fgw_bytes(NULL, 0));
}
