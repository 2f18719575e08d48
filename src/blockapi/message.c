/* message.c: see message.h. */
#include "blockapi/message.h"

#include "base/check.h"

enum { TEXT_MAX = 1024, OWNER_HEAD = 42, DATA_HEAD_1 = 16 };

/* The row of a status is its number on the wire: rows are only ever added. */
static const enum fgw_err STATUSES[] = {
    FGW_OK,
    FGW_ERR_NOT_FOUND,
    FGW_ERR_NOSPACE,
    FGW_ERR_IO,
    FGW_ERR_CORRUPT,
    FGW_ERR_UNAVAILABLE,
    FGW_ERR_READ_ONLY,
    FGW_ERR_CANCELLED,
    FGW_ERR_BAD_REQUEST,
    FGW_ERR_CONFLICT,
    FGW_ERR_INTERNAL,
};

static uint16_t status_of(enum fgw_err err)
{
    for (size_t i = 0; i < FGW_COUNT_OF(STATUSES); i++) {
        if (STATUSES[i] == err) {
            return (uint16_t)i;
        }
    }
    return FGW_COUNT_OF(STATUSES) - 1;
}

/* -- encoding ------------------------------------------------------------------------------------ */

void fgw_blockapi_put_u32(struct fgw_buf *out, uint32_t value)
{
    uint8_t bytes[4];
    fgw_put_u32le(bytes, value);
    (void)fgw_buf_append(out, fgw_bytes(bytes, sizeof bytes));
}

void fgw_blockapi_put_u64(struct fgw_buf *out, uint64_t value)
{
    uint8_t bytes[8];
    fgw_put_u64le(bytes, value);
    (void)fgw_buf_append(out, fgw_bytes(bytes, sizeof bytes));
}

static void put_u16(struct fgw_buf *out, uint16_t value)
{
    uint8_t bytes[2];
    fgw_put_u16le(bytes, value);
    (void)fgw_buf_append(out, fgw_bytes(bytes, sizeof bytes));
}

void fgw_blockapi_put_head(struct fgw_buf *out, const struct fgw_blockapi_head *head)
{
    (void)fgw_buf_append(out, fgw_bytes(head->store_id, sizeof head->store_id));
    fgw_blockapi_put_u64(out, head->epoch);
    fgw_blockapi_put_u64(out, head->set);
    fgw_blockapi_put_u64(out, head->set_epoch);
}

void fgw_blockapi_put_owner(struct fgw_buf *out, const struct fgw_blockapi_owner *owner)
{
    FGW_CHECK(owner->key.len <= FGW_BLOCKAPI_OWNER_KEY_MAX);
    (void)fgw_buf_append(out, fgw_bytes(owner->bucket_id, sizeof owner->bucket_id));
    (void)fgw_buf_append(out, fgw_bytes(owner->owner_id, sizeof owner->owner_id));
    fgw_blockapi_put_u64(out, owner->extent);
    put_u16(out, (uint16_t)owner->key.len);
    (void)fgw_buf_append(out, owner->key);
}

void fgw_blockapi_put_cid(struct fgw_buf *out, const struct fgw_cid *cid)
{
    (void)fgw_buf_append(out, fgw_cid_bytes(cid));
}

void fgw_blockapi_put_block_head(struct fgw_buf *out, const struct fgw_cid *cid, uint32_t crc32c)
{
    fgw_blockapi_put_cid(out, cid);
    fgw_blockapi_put_u32(out, crc32c);
}

void fgw_blockapi_put_answer(struct fgw_buf *out, const struct fgw_blockapi_answer *answer)
{
    struct fgw_bytes text = fgw_bytes_sub(answer->text, 0, TEXT_MAX);
    put_u16(out, status_of(answer->err));
    put_u16(out, (uint16_t)text.len);
    fgw_blockapi_put_u32(out, (uint32_t)answer->extra.len);
    (void)fgw_buf_append(out, fgw_bytes(answer->store_id, sizeof answer->store_id));
    fgw_blockapi_put_u64(out, answer->epoch);
    (void)fgw_buf_append(out, text);
    (void)fgw_buf_append(out, answer->extra);
}

void fgw_blockapi_put_health(struct fgw_buf *out, const struct fgw_blockapi_health *health)
{
    fgw_blockapi_put_u64(out, health->free_bytes);
    fgw_blockapi_put_u64(out, health->total_bytes);
    fgw_blockapi_put_u32(out, health->flags);
    fgw_blockapi_put_u32(out, 0);
}

size_t fgw_blockapi_data_head_size(uint8_t version)
{
    return version == 1 ? DATA_HEAD_1 : FGW_BLOCKAPI_DATA_HEAD_MAX;
}

void fgw_blockapi_data_head(uint8_t version, const struct fgw_blockapi_data *data,
                            uint8_t out[FGW_BLOCKAPI_DATA_HEAD_MAX])
{
    fgw_put_u64le(out, data->offset);
    fgw_put_u32le(out + 8, data->crc32c);
    fgw_put_u32le(out + 12, 0);
    if (version > 1) {
        memcpy(out + DATA_HEAD_1, data->digest, FGW_SHA256_SIZE);
    }
}

/* -- decoding ------------------------------------------------------------------------------------ */

static const uint8_t *take(struct fgw_bytes *rest, size_t size)
{
    const uint8_t *at = rest->ptr;
    if (rest->len < size) {
        return NULL;
    }
    *rest = fgw_bytes_sub(*rest, size, SIZE_MAX);
    return at;
}

enum fgw_err fgw_blockapi_take_u32(struct fgw_bytes *rest, uint32_t *out)
{
    const uint8_t *at = take(rest, 4);
    if (at == NULL) {
        return FGW_ERR_PARSE;
    }
    *out = fgw_get_u32le(at);
    return FGW_OK;
}

enum fgw_err fgw_blockapi_take_u64(struct fgw_bytes *rest, uint64_t *out)
{
    const uint8_t *at = take(rest, 8);
    if (at == NULL) {
        return FGW_ERR_PARSE;
    }
    *out = fgw_get_u64le(at);
    return FGW_OK;
}

enum fgw_err fgw_blockapi_take_head(struct fgw_bytes *rest, struct fgw_blockapi_head *out)
{
    const uint8_t *at = take(rest, FGW_BLOCKAPI_HEAD_SIZE);
    if (at == NULL) {
        return FGW_ERR_PARSE;
    }
    memcpy(out->store_id, at, sizeof out->store_id);
    out->epoch = fgw_get_u64le(at + 16);
    out->set = fgw_get_u64le(at + 24);
    out->set_epoch = fgw_get_u64le(at + 32);
    return FGW_OK;
}

enum fgw_err fgw_blockapi_take_owner(struct fgw_bytes *rest, struct fgw_blockapi_owner *out)
{
    const uint8_t *at = take(rest, OWNER_HEAD);
    if (at == NULL) {
        return FGW_ERR_PARSE;
    }
    size_t key_len = fgw_get_u16le(at + 40);
    if (key_len > FGW_BLOCKAPI_OWNER_KEY_MAX || key_len > rest->len) {
        return FGW_ERR_PARSE;
    }
    memcpy(out->bucket_id, at, sizeof out->bucket_id);
    memcpy(out->owner_id, at + 16, sizeof out->owner_id);
    out->extent = fgw_get_u64le(at + 32);
    out->key = fgw_bytes_sub(*rest, 0, key_len);
    *rest = fgw_bytes_sub(*rest, key_len, SIZE_MAX);
    return FGW_OK;
}

enum fgw_err fgw_blockapi_take_cid(struct fgw_bytes *rest, struct fgw_cid *out)
{
    const uint8_t *at = take(rest, FGW_CID_SIZE);
    return at == NULL ? FGW_ERR_PARSE : fgw_cid_from_bytes(fgw_bytes(at, FGW_CID_SIZE), out);
}

enum fgw_err fgw_blockapi_take_block(struct fgw_bytes *rest, struct fgw_blockapi_block *out)
{
    struct fgw_blockapi_block block;
    enum fgw_err err = fgw_blockapi_take_cid(rest, &block.cid);
    if (err == FGW_OK) {
        err = fgw_blockapi_take_u32(rest, &block.crc32c);
    }
    if (err == FGW_OK) {
        block.bytes = *rest;
        *rest = fgw_bytes(NULL, 0);
        *out = block;
    }
    return err;
}

enum fgw_err fgw_blockapi_take_data(uint8_t version, struct fgw_bytes rest,
                                    struct fgw_blockapi_data *out)
{
    const uint8_t *at = take(&rest, fgw_blockapi_data_head_size(version));
    if (at == NULL || rest.len == 0) {
        return FGW_ERR_PARSE;
    }
    *out = (struct fgw_blockapi_data){.offset = fgw_get_u64le(at),
                                      .crc32c = fgw_get_u32le(at + 8),
                                      .digest = version == 1 ? NULL : at + DATA_HEAD_1,
                                      .bytes = rest};
    return FGW_OK;
}

enum fgw_err fgw_blockapi_take_answer(struct fgw_bytes payload, struct fgw_blockapi_answer *out)
{
    const uint8_t *at = take(&payload, FGW_BLOCKAPI_ANSWER_HEAD);
    if (at == NULL) {
        return FGW_ERR_PARSE;
    }
    uint16_t status = fgw_get_u16le(at);
    size_t text_len = fgw_get_u16le(at + 2);
    size_t extra_len = fgw_get_u32le(at + 4);
    if (text_len > payload.len || extra_len != payload.len - text_len) {
        return FGW_ERR_PARSE;
    }
    out->err = status < FGW_COUNT_OF(STATUSES) ? STATUSES[status] : FGW_ERR_INTERNAL;
    memcpy(out->store_id, at + 8, sizeof out->store_id);
    out->epoch = fgw_get_u64le(at + 24);
    out->text = fgw_bytes_sub(payload, 0, text_len);
    out->extra = fgw_bytes_sub(payload, text_len, extra_len);
    return FGW_OK;
}

enum fgw_err fgw_blockapi_take_health(struct fgw_bytes extra, struct fgw_blockapi_health *out)
{
    struct fgw_blockapi_health health;
    enum fgw_err err = fgw_blockapi_take_u64(&extra, &health.free_bytes);
    if (err == FGW_OK) {
        err = fgw_blockapi_take_u64(&extra, &health.total_bytes);
    }
    if (err == FGW_OK) {
        err = fgw_blockapi_take_u32(&extra, &health.flags);
    }
    if (err == FGW_OK) {
        *out = health;
    }
    return err;
}
