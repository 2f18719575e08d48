/* items.c: see items.h. */
#include "storage/items.h"

#include "base/encode.h"
#include "base/tlv.h"

enum { OWNER_LISTED = 1, OWNER_PENDING = 2 };

/* -- fields ------------------------------------------------------------------------------------ */

bool fgw_take_view(struct fgw_bytes *rest, size_t len, struct fgw_bytes *out)
{
    if (rest->len < len) {
        return false;
    }
    *out = fgw_bytes(rest->ptr, len);
    *rest = fgw_bytes_sub(*rest, len, SIZE_MAX);
    return true;
}

bool fgw_take_fixed(struct fgw_bytes *rest, void *out, size_t len)
{
    struct fgw_bytes view;
    if (!fgw_take_view(rest, len, &view)) {
        return false;
    }
    memcpy(out, view.ptr, len);
    return true;
}

bool fgw_take_u8(struct fgw_bytes *rest, uint8_t *out)
{
    return fgw_take_fixed(rest, out, 1);
}

bool fgw_take_u32le(struct fgw_bytes *rest, uint32_t *out)
{
    struct fgw_bytes view;
    if (!fgw_take_view(rest, 4, &view)) {
        return false;
    }
    *out = fgw_get_u32le(view.ptr);
    return true;
}

bool fgw_take_uvarint(struct fgw_bytes *rest, uint64_t *out)
{
    size_t len;
    if (fgw_uvarint_decode(*rest, out, &len) != FGW_OK) {
        return false;
    }
    *rest = fgw_bytes_sub(*rest, len, SIZE_MAX);
    return true;
}

void fgw_put_uvarint(struct fgw_buf *out, uint64_t value)
{
    uint8_t bytes[FGW_UVARINT_MAX];
    (void)fgw_buf_append(out, fgw_bytes(bytes, fgw_uvarint_encode(value, bytes)));
}

static void put(struct fgw_buf *out, const void *ptr, size_t len)
{
    (void)fgw_buf_append(out, fgw_bytes(ptr, len));
}

static size_t uvarint_size(uint64_t value)
{
    uint8_t bytes[FGW_UVARINT_MAX];
    return fgw_uvarint_encode(value, bytes);
}

/* An item whose value of `len` bytes the caller appends. */
static void put_head(struct fgw_buf *out, enum fgw_item_tag tag, size_t len)
{
    fgw_put_uvarint(out, tag);
    fgw_put_uvarint(out, len);
}

static size_t owner_size(const struct fgw_item_owner *owner)
{
    size_t key_len = owner->address.key.len;
    return 1 + 2 * (size_t)FGW_STORAGE_ID_SIZE + uvarint_size(owner->extent) +
           uvarint_size(key_len) + key_len;
}

void fgw_put_owner(struct fgw_buf *out, const struct fgw_item_owner *owner)
{
    (void)fgw_buf_append_byte(
        out, (uint8_t)((owner->listed ? OWNER_LISTED : 0) | (owner->pending ? OWNER_PENDING : 0)));
    put(out, owner->address.bucket_id, FGW_STORAGE_ID_SIZE);
    put(out, owner->address.owner_id, FGW_STORAGE_ID_SIZE);
    fgw_put_uvarint(out, owner->extent);
    fgw_put_uvarint(out, owner->address.key.len);
    (void)fgw_buf_append(out, owner->address.key);
}

bool fgw_take_owner(struct fgw_bytes *rest, struct fgw_item_owner *out)
{
    uint8_t flags;
    uint64_t key_len;
    bool ok = fgw_take_u8(rest, &flags) &&
              fgw_take_fixed(rest, out->address.bucket_id, FGW_STORAGE_ID_SIZE) &&
              fgw_take_fixed(rest, out->address.owner_id, FGW_STORAGE_ID_SIZE) &&
              fgw_take_uvarint(rest, &out->extent) && fgw_take_uvarint(rest, &key_len) &&
              key_len <= rest->len && fgw_take_view(rest, (size_t)key_len, &out->address.key);
    if (ok) {
        out->listed = (flags & OWNER_LISTED) != 0;
        out->pending = (flags & OWNER_PENDING) != 0;
    }
    return ok;
}

static size_t block_size(const struct fgw_item_block *block)
{
    size_t place = block->written ? uvarint_size(block->group) + uvarint_size(block->offset) : 0;
    return 2 + FGW_SHA256_SIZE + uvarint_size(block->len) + 4 + place;
}

static void put_block(struct fgw_buf *out, const struct fgw_item_block *block)
{
    uint8_t crc[4];
    fgw_put_u32le(crc, block->crc32c);
    (void)fgw_buf_append_byte(out, block->written ? 1 : 0);
    (void)fgw_buf_append_byte(out, block->codec);
    put(out, block->digest, FGW_SHA256_SIZE);
    fgw_put_uvarint(out, block->len);
    put(out, crc, sizeof crc);
    if (block->written) {
        fgw_put_uvarint(out, block->group);
        fgw_put_uvarint(out, block->offset);
    }
}

static bool take_block(struct fgw_bytes *rest, struct fgw_item_block *out)
{
    uint8_t flags;
    uint64_t len;
    *out = (struct fgw_item_block){0};
    bool ok = fgw_take_u8(rest, &flags) && fgw_take_u8(rest, &out->codec) &&
              fgw_take_fixed(rest, out->digest, FGW_SHA256_SIZE) && fgw_take_uvarint(rest, &len) &&
              len <= FGW_STORAGE_BLOCK_MAX * 2 && fgw_take_u32le(rest, &out->crc32c);
    if (ok && (flags & 1) != 0) {
        out->written = true;
        ok = fgw_take_uvarint(rest, &out->group) && fgw_take_uvarint(rest, &out->offset);
    }
    out->len = ok ? (uint32_t)len : 0;
    return ok;
}

/* -- encoding ---------------------------------------------------------------------------------- */

void fgw_item_put_u64(struct fgw_buf *out, enum fgw_item_tag tag, uint64_t value)
{
    fgw_tlv_put_u64(out, tag, value);
}

void fgw_item_put_row(struct fgw_buf *out, enum fgw_item_tag tag, struct fgw_bytes key,
                      struct fgw_bytes value)
{
    put_head(out, tag, uvarint_size(key.len) + key.len + value.len);
    fgw_put_uvarint(out, key.len);
    (void)fgw_buf_append(out, key);
    (void)fgw_buf_append(out, value);
}

void fgw_item_put_bytes(struct fgw_buf *out, enum fgw_item_tag tag, struct fgw_bytes value)
{
    fgw_tlv_put(out, tag, value);
}

void fgw_item_put_block_hold(struct fgw_buf *out, const struct fgw_item_block *block,
                             const struct fgw_item_owner *owner)
{
    put_head(out, FGW_ITEM_BLOCK_HOLD, block_size(block) + owner_size(owner));
    put_block(out, block);
    fgw_put_owner(out, owner);
}

void fgw_item_put_blob_hold(struct fgw_buf *out, const uint8_t digest[FGW_SHA256_SIZE],
                            const struct fgw_item_owner *owner)
{
    put_head(out, FGW_ITEM_BLOB_HOLD, FGW_SHA256_SIZE + owner_size(owner));
    put(out, digest, FGW_SHA256_SIZE);
    fgw_put_owner(out, owner);
}

void fgw_item_put_release(struct fgw_buf *out, enum fgw_item_tag tag,
                          const struct fgw_item_release *release)
{
    put_head(out, tag,
             FGW_STORAGE_ID_SIZE + uvarint_size(release->extent) + 1 + FGW_SHA256_SIZE);
    put(out, release->owner_id, FGW_STORAGE_ID_SIZE);
    fgw_put_uvarint(out, release->extent);
    (void)fgw_buf_append_byte(out, release->codec);
    put(out, release->digest, FGW_SHA256_SIZE);
}

void fgw_item_put_slice(struct fgw_buf *out, const struct fgw_item_slice *slice,
                        const struct fgw_item_block *blocks, size_t count)
{
    size_t size = FGW_LIST_ID_SIZE + 1 + uvarint_size(slice->first) + owner_size(&slice->owner);
    for (size_t i = 0; i < count; i++) {
        size += block_size(&blocks[i]);
    }
    put_head(out, FGW_ITEM_SLICE, size);
    put(out, slice->list_id, FGW_LIST_ID_SIZE);
    (void)fgw_buf_append_byte(out, slice->kind);
    fgw_put_uvarint(out, slice->first);
    fgw_put_owner(out, &slice->owner);
    for (size_t i = 0; i < count; i++) {
        put_block(out, &blocks[i]);
    }
}

void fgw_item_put_finish(struct fgw_buf *out, const struct fgw_item_finish *finish)
{
    put_head(out, FGW_ITEM_FINISH,
             FGW_LIST_ID_SIZE + FGW_SHA256_SIZE + uvarint_size(finish->size) +
                 uvarint_size(finish->leaves) + uvarint_size(finish->nodes) +
                 owner_size(&finish->owner));
    put(out, finish->list_id, FGW_LIST_ID_SIZE);
    put(out, finish->digest, FGW_SHA256_SIZE);
    fgw_put_uvarint(out, finish->size);
    fgw_put_uvarint(out, finish->leaves);
    fgw_put_uvarint(out, finish->nodes);
    fgw_put_owner(out, &finish->owner);
}

void fgw_item_put_bulk_end(struct fgw_buf *out, uint64_t group, uint64_t end)
{
    put_head(out, FGW_ITEM_BULK_END, uvarint_size(group) + uvarint_size(end));
    fgw_put_uvarint(out, group);
    fgw_put_uvarint(out, end);
}

void fgw_item_put_group_gone(struct fgw_buf *out, uint64_t group)
{
    put_head(out, FGW_ITEM_GROUP_GONE, uvarint_size(group));
    fgw_put_uvarint(out, group);
}

void fgw_item_put_drop_slice(struct fgw_buf *out, const uint8_t list_id[FGW_LIST_ID_SIZE],
                             uint8_t kind, uint64_t first)
{
    put_head(out, FGW_ITEM_DROP_SLICE, FGW_LIST_ID_SIZE + 1 + uvarint_size(first));
    put(out, list_id, FGW_LIST_ID_SIZE);
    (void)fgw_buf_append_byte(out, kind);
    fgw_put_uvarint(out, first);
}

void fgw_item_put_move(struct fgw_buf *out, const struct fgw_item_move *move)
{
    put_head(out, FGW_ITEM_MOVE,
             FGW_SHA256_SIZE + uvarint_size(move->from_group) + uvarint_size(move->from_offset) +
                 uvarint_size(move->to_group) + uvarint_size(move->to_offset));
    put(out, move->digest, FGW_SHA256_SIZE);
    fgw_put_uvarint(out, move->from_group);
    fgw_put_uvarint(out, move->from_offset);
    fgw_put_uvarint(out, move->to_group);
    fgw_put_uvarint(out, move->to_offset);
}

void fgw_item_put_mark_bad(struct fgw_buf *out, const uint8_t digest[FGW_SHA256_SIZE],
                           uint64_t group, uint64_t offset)
{
    put_head(out, FGW_ITEM_MARK_BAD, FGW_SHA256_SIZE + uvarint_size(group) + uvarint_size(offset));
    put(out, digest, FGW_SHA256_SIZE);
    fgw_put_uvarint(out, group);
    fgw_put_uvarint(out, offset);
}

void fgw_item_put_predecessor(struct fgw_buf *out, const struct fgw_item_predecessor *predecessor)
{
    uint8_t bytes[24];
    fgw_put_u64le(bytes, predecessor->group);
    fgw_put_u64le(bytes + 8, predecessor->end);
    fgw_put_u64le(bytes + 16, predecessor->last_batch);
    fgw_tlv_put(out, FGW_ITEM_PREDECESSOR, fgw_bytes(bytes, sizeof bytes));
}

/* -- decoding ---------------------------------------------------------------------------------- */

static enum fgw_err whole(bool ok, struct fgw_bytes rest)
{
    return ok && rest.len == 0 ? FGW_OK : FGW_ERR_CORRUPT;
}

enum fgw_err fgw_item_row(struct fgw_bytes value, struct fgw_bytes *out_key,
                          struct fgw_bytes *out_value)
{
    uint64_t len;
    if (!fgw_take_uvarint(&value, &len) || len > value.len) {
        return FGW_ERR_CORRUPT;
    }
    *out_key = fgw_bytes_sub(value, 0, (size_t)len);
    *out_value = fgw_bytes_sub(value, (size_t)len, SIZE_MAX);
    return FGW_OK;
}

enum fgw_err fgw_item_block_hold(struct fgw_bytes value, struct fgw_item_block *out_block,
                                 struct fgw_item_owner *out_owner)
{
    bool ok = take_block(&value, out_block) && fgw_take_owner(&value, out_owner);
    return whole(ok, value);
}

enum fgw_err fgw_item_blob_hold(struct fgw_bytes value, const uint8_t **out_digest,
                                struct fgw_item_owner *out_owner)
{
    struct fgw_bytes digest;
    bool ok = fgw_take_view(&value, FGW_SHA256_SIZE, &digest) && fgw_take_owner(&value, out_owner);
    if (ok) {
        *out_digest = digest.ptr;
    }
    return whole(ok, value);
}

enum fgw_err fgw_item_release(struct fgw_bytes value, struct fgw_item_release *out_release)
{
    bool ok = fgw_take_fixed(&value, out_release->owner_id, FGW_STORAGE_ID_SIZE) &&
              fgw_take_uvarint(&value, &out_release->extent) &&
              fgw_take_u8(&value, &out_release->codec) &&
              fgw_take_fixed(&value, out_release->digest, FGW_SHA256_SIZE);
    return whole(ok, value);
}

enum fgw_err fgw_item_slice(struct fgw_bytes value, struct fgw_item_slice *out_slice)
{
    bool ok = fgw_take_fixed(&value, out_slice->list_id, FGW_LIST_ID_SIZE) &&
              fgw_take_u8(&value, &out_slice->kind) && out_slice->kind < FGW_LIST_KINDS &&
              fgw_take_uvarint(&value, &out_slice->first) &&
              fgw_take_owner(&value, &out_slice->owner);
    out_slice->blocks = value;
    return ok ? FGW_OK : FGW_ERR_CORRUPT;
}

enum fgw_err fgw_item_next_block(struct fgw_bytes *blocks, struct fgw_item_block *out_block)
{
    if (blocks->len == 0) {
        return FGW_ERR_END;
    }
    return take_block(blocks, out_block) ? FGW_OK : FGW_ERR_CORRUPT;
}

enum fgw_err fgw_item_finish(struct fgw_bytes value, struct fgw_item_finish *out_finish)
{
    bool ok = fgw_take_fixed(&value, out_finish->list_id, FGW_LIST_ID_SIZE) &&
              fgw_take_fixed(&value, out_finish->digest, FGW_SHA256_SIZE) &&
              fgw_take_uvarint(&value, &out_finish->size) &&
              fgw_take_uvarint(&value, &out_finish->leaves) &&
              fgw_take_uvarint(&value, &out_finish->nodes) &&
              fgw_take_owner(&value, &out_finish->owner);
    return whole(ok, value);
}

enum fgw_err fgw_item_bulk_end(struct fgw_bytes value, uint64_t *out_group, uint64_t *out_end)
{
    bool ok = fgw_take_uvarint(&value, out_group) && fgw_take_uvarint(&value, out_end);
    return whole(ok, value);
}

enum fgw_err fgw_item_drop_slice(struct fgw_bytes value, const uint8_t **out_list_id,
                                 uint8_t *out_kind, uint64_t *out_first)
{
    struct fgw_bytes list_id;
    bool ok = fgw_take_view(&value, FGW_LIST_ID_SIZE, &list_id) && fgw_take_u8(&value, out_kind) &&
              *out_kind < FGW_LIST_KINDS && fgw_take_uvarint(&value, out_first);
    if (ok) {
        *out_list_id = list_id.ptr;
    }
    return whole(ok, value);
}

enum fgw_err fgw_item_move(struct fgw_bytes value, struct fgw_item_move *out_move)
{
    bool ok = fgw_take_fixed(&value, out_move->digest, FGW_SHA256_SIZE) &&
              fgw_take_uvarint(&value, &out_move->from_group) &&
              fgw_take_uvarint(&value, &out_move->from_offset) &&
              fgw_take_uvarint(&value, &out_move->to_group) &&
              fgw_take_uvarint(&value, &out_move->to_offset);
    return whole(ok, value);
}

enum fgw_err fgw_item_mark_bad(struct fgw_bytes value, const uint8_t **out_digest,
                               uint64_t *out_group, uint64_t *out_offset)
{
    struct fgw_bytes digest;
    bool ok = fgw_take_view(&value, FGW_SHA256_SIZE, &digest) &&
              fgw_take_uvarint(&value, out_group) && fgw_take_uvarint(&value, out_offset);
    if (ok) {
        *out_digest = digest.ptr;
    }
    return whole(ok, value);
}

enum fgw_err fgw_item_predecessor(struct fgw_bytes value,
                                  struct fgw_item_predecessor *out_predecessor)
{
    if (value.len != 24) {
        return FGW_ERR_CORRUPT;
    }
    out_predecessor->group = fgw_get_u64le(value.ptr);
    out_predecessor->end = fgw_get_u64le(value.ptr + 8);
    out_predecessor->last_batch = fgw_get_u64le(value.ptr + 16);
    return FGW_OK;
}
