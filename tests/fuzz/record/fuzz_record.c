/* fuzz_record.c: sealed records and the items in them. Bytes that nobody sealed open as nothing; what
 * was sealed opens as it was, and as nothing when one bit or its place differs; items of any shape
 * are decoded or refused. The first byte chooses. */
#include "base/check.h"
#include "base/tlv.h"
#include "storage/items.h"
#include "storage/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct fgw_keyring KEYRING = {.count = 1, .keys = {{.id = 1, .bytes = {7}}}};
static const uint8_t STORE[1][FGW_RECORD_ID_SIZE] = {{9}};
static const struct fgw_record_place PLACE = {3, 59};

static enum fgw_err open_record(struct fgw_bytes record, struct fgw_record_place place,
                                uint8_t *out, struct fgw_bytes *out_payload)
{
    struct fgw_record_opener opener;
    struct fgw_record_head head;
    fgw_record_opener_init(&opener, &KEYRING, STORE, 1);
    return fgw_record_open(&opener, record, place, out, &head, out_payload);
}

static void open_anything(struct fgw_bytes bytes)
{
    struct fgw_record_head head;
    struct fgw_bytes payload;
    uint8_t *out = fgw_xmalloc(bytes.len + 1);
    if (fgw_record_head_decode(bytes, &head) == FGW_OK) {
        FGW_CHECK(head.payload_length <= FGW_RECORD_PAYLOAD_MAX);
        FGW_CHECK(head.part >= 1 && head.part <= head.parts);
    }
    FGW_CHECK(open_record(bytes, PLACE, out, &payload) != FGW_OK);
    fgw_xfree(out);
}

static void seal_and_open(struct fgw_bytes bytes)
{
    struct fgw_record_sealer sealer;
    struct fgw_record_head head = {.kind = FGW_RECORD_BATCH, .batch = 5, .part = 1, .parts = 1};
    if (bytes.len < 4) {
        return;
    }
    uint32_t bit = fgw_get_u32le(bytes.ptr);
    struct fgw_bytes payload = fgw_bytes(bytes.ptr + 4, bytes.len - 4);
    struct fgw_bytes opened;
    size_t len = fgw_record_size(payload.len);
    uint8_t *record = fgw_xmalloc(len);
    uint8_t *out = fgw_xmalloc(len);
    fgw_record_sealer_init(&sealer, &KEYRING, STORE[0]);
    fgw_record_seal(&sealer, &head, PLACE, payload, record);
    FGW_CHECK(open_record(fgw_bytes(record, len), PLACE, out, &opened) == FGW_OK);
    FGW_CHECK(fgw_bytes_eq(opened, payload));
    struct fgw_record_place elsewhere = {PLACE.group, PLACE.offset + 1};
    FGW_CHECK(open_record(fgw_bytes(record, len), elsewhere, out, &opened) != FGW_OK);
    FGW_CHECK(open_record(fgw_bytes(record, len - 1), PLACE, out, &opened) != FGW_OK);
    record[bit / 8 % len] ^= (uint8_t)(1u << bit % 8);
    FGW_CHECK(open_record(fgw_bytes(record, len), PLACE, out, &opened) != FGW_OK);
    fgw_xfree(record);
    fgw_xfree(out);
}

static void decode_slice(struct fgw_bytes value)
{
    struct fgw_item_slice slice;
    struct fgw_item_block block;
    if (fgw_item_slice(value, &slice) == FGW_OK) {
        FGW_CHECK(slice.kind < FGW_LIST_KINDS);
        while (fgw_item_next_block(&slice.blocks, &block) == FGW_OK) {
        }
    }
}

static void decode_holds(struct fgw_bytes value)
{
    struct fgw_item_owner owner;
    struct fgw_item_block block;
    struct fgw_item_release release;
    struct fgw_item_finish finish;
    const uint8_t *digest;
    (void)!fgw_item_block_hold(value, &block, &owner);
    (void)!fgw_item_blob_hold(value, &digest, &owner);
    (void)!fgw_item_release(value, &release);
    (void)!fgw_item_finish(value, &finish);
    decode_slice(value);
}

static void decode_others(struct fgw_bytes value)
{
    struct fgw_bytes key;
    struct fgw_bytes row;
    struct fgw_item_move move;
    struct fgw_item_predecessor predecessor;
    const uint8_t *bytes;
    uint8_t kind;
    uint64_t first;
    uint64_t second;
    (void)!fgw_item_row(value, &key, &row);
    (void)!fgw_item_bulk_end(value, &first, &second);
    (void)!fgw_item_drop_slice(value, &bytes, &kind, &first);
    (void)!fgw_item_move(value, &move);
    (void)!fgw_item_mark_bad(value, &bytes, &first, &second);
    (void)!fgw_item_predecessor(value, &predecessor);
    (void)!fgw_tlv_u64(value, &first);
}

static void decode_items(struct fgw_bytes items)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(items);
    struct fgw_tlv_item item;
    while (fgw_tlv_next(&reader, &item) == FGW_OK) {
        decode_holds(item.value);
        decode_others(item.value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > FGW_RECORD_PAYLOAD_MAX) {
        return 0;
    }
    struct fgw_bytes rest = fgw_bytes(data + 1, size - 1);
    if (data[0] % 4 == 0) {
        open_anything(rest);
    } else if (data[0] % 4 == 1) {
        seal_and_open(rest);
    } else {
        decode_items(rest);
    }
    return 0;
}
