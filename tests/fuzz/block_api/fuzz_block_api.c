/* fuzz_block_api.c: payloads of the block API as a store and as an edge take them apart; the first byte is
 * the kind. What was decoded is encoded again and must be the same bytes. */
#include "base/bytes.h"
#include "base/check.h"
#include "blockapi/channel.h"
#include "blockapi/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes an owner and puts it back. */
static enum fgw_err owner(struct fgw_bytes *rest)
{
    struct fgw_blockapi_owner from;
    struct fgw_bytes before = *rest;
    struct fgw_buf again;
    enum fgw_err err = fgw_blockapi_take_owner(rest, &from);
    if (err == FGW_OK) {
        fgw_buf_init(&again, 0);
        fgw_blockapi_put_owner(&again, &from);
        FGW_CHECK(
            fgw_bytes_eq(fgw_buf_bytes(&again), fgw_bytes_sub(before, 0, before.len - rest->len)));
        fgw_buf_deinit(&again);
    }
    return err;
}

static void numbers(struct fgw_bytes rest)
{
    struct fgw_cid cid;
    uint64_t number;
    enum fgw_err err = fgw_blockapi_take_cid(&rest, &cid);
    while (err == FGW_OK) {
        err = fgw_blockapi_take_u64(&rest, &number);
    }
}

static void block(struct fgw_bytes rest)
{
    struct fgw_blockapi_block from;
    if (fgw_blockapi_take_block(&rest, &from) == FGW_OK) {
        FGW_CHECK(rest.len == 0 && (from.bytes.len == 0 || from.bytes.ptr[0] + 1 > 0));
    }
}

static void list(struct fgw_bytes rest)
{
    uint32_t count;
    struct fgw_cid cid;
    enum fgw_err err = fgw_blockapi_take_u32(&rest, &count);
    while (err == FGW_OK && count-- > 0) {
        err = owner(&rest);
        if (err == FGW_OK) {
            err = fgw_blockapi_take_cid(&rest, &cid);
        }
    }
}

static void answer(struct fgw_bytes payload)
{
    struct fgw_blockapi_answer from;
    struct fgw_blockapi_health health;
    if (fgw_blockapi_take_answer(payload, &from) == FGW_OK) {
        FGW_CHECK(from.text.len + from.extra.len + FGW_BLOCKAPI_ANSWER_HEAD == payload.len);
        (void)!fgw_blockapi_take_health(from.extra, &health);
    }
}

static void chunk(struct fgw_bytes rest)
{
    struct fgw_blockapi_data data;
    for (uint8_t version = FGW_BLOCKAPI_VERSION_LOWEST; version <= FGW_BLOCKAPI_VERSION;
         version++) {
        size_t head = fgw_blockapi_data_head_size(version);
        if (fgw_blockapi_take_data(version, rest, &data) == FGW_OK) {
            FGW_CHECK(data.bytes.len > 0 && data.bytes.len + head == rest.len);
            FGW_CHECK((data.digest == NULL) == (version == 1));
        }
    }
}

static void request(uint8_t kind, struct fgw_bytes rest)
{
    struct fgw_blockapi_head head;
    if (fgw_blockapi_take_head(&rest, &head) != FGW_OK) {
        return;
    }
    switch (kind) {
    case FGW_BLOCKAPI_PUT:
        if (owner(&rest) == FGW_OK) {
            block(rest);
        }
        break;
    case FGW_BLOCKAPI_BEGIN:
    case FGW_BLOCKAPI_HOLD:
        if (owner(&rest) == FGW_OK) {
            numbers(rest);
        }
        break;
    case FGW_BLOCKAPI_CONFIRM:
    case FGW_BLOCKAPI_RELEASE:
        list(rest);
        break;
    default:
        numbers(rest);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct fgw_bytes payload = fgw_bytes(data + 1, size - 1);
    switch (data[0]) {
    case FGW_BLOCKAPI_ANSWER:
        answer(payload);
        break;
    case FGW_BLOCKAPI_DATA:
        chunk(payload);
        break;
    case FGW_BLOCKAPI_BLOCK:
        block(fgw_bytes_sub(payload, 4, SIZE_MAX));
        break;
    default:
        request(data[0], payload);
        break;
    }
    return 0;
}
