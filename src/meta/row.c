/* row.c: see row.h. Tags are even (an older reader carries unknown ones over) and never reused.
 * Within an object row the listing columns come first in ascending order, so that a list stops
 * reading at the first tag behind them. */
#include "meta/row_internal.h"

#include "base/encode.h"
#include "base/tlv.h"

enum object_tag {
    OBJECT_FLAGS = 2, /* bit 0 null version, bit 1 delete marker, bit 2 canonical CID */
    OBJECT_VERSION = 4,
    OBJECT_SIZE = 6,
    OBJECT_MTIME = 8,
    OBJECT_ETAG = 10,
    OBJECT_CLASS = 12,
    OBJECT_CREATOR_ID = 14,
    OBJECT_CREATOR_NAME = 16,
    OBJECT_CHECKSUM = 18,
    OBJECT_LAST_LISTING = 18,
    OBJECT_OWNER = 20,
    OBJECT_REV = 22,
    OBJECT_ACL = 24,
    OBJECT_HEADER = 26, /* repeated: uvarint name length | name | value */
    OBJECT_TAG = 28,    /* likewise */
    OBJECT_PART = 30,   /* repeated */
    OBJECT_EXTENT = 32, /* repeated */
    OBJECT_CID = 34,
    OBJECT_UPLOAD = 36,
    OBJECT_NULL_VERSION = 38,
    OBJECT_RECENT = 40, /* repeated */
    OBJECT_CLAIM = 42,
    OBJECT_LAST = 42
};

enum { FLAG_NULL = 1, FLAG_MARKER = 2, FLAG_CANONICAL_CID = 4 };

/* -- pieces ----------------------------------------------------------------------------------- */

void fgw_row_put_id(struct fgw_buf *out, uint64_t tag, const struct fgw_id *id)
{
    if (!fgw_id_is_zero(id)) {
        fgw_tlv_put(out, tag, fgw_bytes(id->bytes, sizeof id->bytes));
    }
}

enum fgw_err fgw_row_get_id(struct fgw_bytes value, struct fgw_id *out_id)
{
    if (value.len != sizeof out_id->bytes) {
        return FGW_ERR_CORRUPT;
    }
    memcpy(out_id->bytes, value.ptr, value.len);
    return FGW_OK;
}

void fgw_row_put_pair(struct fgw_buf *out, uint64_t tag, const struct fgw_meta_pair *pair)
{
    uint8_t head[3 * FGW_UVARINT_MAX];
    uint8_t name_len[FGW_UVARINT_MAX];
    size_t name_len_size = fgw_uvarint_encode(pair->name.len, name_len);
    size_t total = name_len_size + pair->name.len + pair->value.len;
    size_t head_size = fgw_uvarint_encode(tag, head);
    head_size += fgw_uvarint_encode(total, head + head_size);
    (void)fgw_buf_append(out, fgw_bytes(head, head_size));
    (void)fgw_buf_append(out, fgw_bytes(name_len, name_len_size));
    (void)fgw_buf_append(out, pair->name);
    (void)fgw_buf_append(out, pair->value);
}

enum fgw_err fgw_row_get_pair(struct fgw_bytes value, struct fgw_meta_pair *out_pair)
{
    uint64_t name_len;
    size_t used;
    if (fgw_uvarint_decode(value, &name_len, &used) != FGW_OK || name_len > value.len - used) {
        return FGW_ERR_CORRUPT;
    }
    out_pair->name = fgw_bytes_sub(value, used, (size_t)name_len);
    out_pair->value = fgw_bytes_sub(value, used + (size_t)name_len, SIZE_MAX);
    return FGW_OK;
}

/* algorithm | type | digest */
void fgw_row_put_checksum(struct fgw_buf *out, uint64_t tag,
                          const struct fgw_checksum_value *checksum)
{
    if (checksum->algorithm == FGW_CHECKSUM_NONE) {
        return;
    }
    uint8_t bytes[2 + FGW_META_CHECKSUM_MAX] = {(uint8_t)checksum->algorithm,
                                                (uint8_t)checksum->type};
    memcpy(bytes + 2, checksum->bytes, checksum->len);
    fgw_tlv_put(out, tag, fgw_bytes(bytes, 2U + checksum->len));
}

enum fgw_err fgw_row_get_checksum(struct fgw_bytes value, struct fgw_checksum_value *out_checksum)
{
    if (value.len < 2 || value.len > 2 + FGW_META_CHECKSUM_MAX) {
        return FGW_ERR_CORRUPT;
    }
    out_checksum->algorithm = (enum fgw_checksum)value.ptr[0];
    out_checksum->type = (enum fgw_checksum_type)value.ptr[1];
    out_checksum->len = (uint8_t)(value.len - 2);
    memcpy(out_checksum->bytes, value.ptr + 2, value.len - 2);
    return FGW_OK;
}

/* -- extents ---------------------------------------------------------------------------------- */

enum extent_tag {
    EXTENT_NUMBER = 2,
    EXTENT_SET = 4,
    EXTENT_ROOT = 6,
    EXTENT_SIZE = 8,
    EXTENT_GROUP = 10,
    EXTENT_OFFSET = 12,
    EXTENT_LEN = 14,
    EXTENT_CRC = 16
};

void fgw_row_encode_extent(struct fgw_buf *out, const struct fgw_extent *extent)
{
    fgw_tlv_put_u64(out, EXTENT_NUMBER, extent->number);
    if (extent->set != 0) {
        fgw_tlv_put_u64(out, EXTENT_SET, extent->set);
    }
    fgw_tlv_put(out, EXTENT_ROOT, fgw_bytes(extent->root.bytes, sizeof extent->root.bytes));
    fgw_tlv_put_u64(out, EXTENT_SIZE, extent->size);
    if (extent->first.group != 0) {
        fgw_tlv_put_u64(out, EXTENT_GROUP, extent->first.group);
        fgw_tlv_put_u64(out, EXTENT_OFFSET, extent->first.offset);
        fgw_tlv_put_u64(out, EXTENT_LEN, extent->first.len);
        fgw_tlv_put_u64(out, EXTENT_CRC, extent->first.crc32c);
    }
}

static enum fgw_err extent_item(const struct fgw_tlv_item *item, struct fgw_extent *extent)
{
    uint64_t number = 0;
    if (item->tag == EXTENT_ROOT) {
        if (item->value.len != sizeof extent->root.bytes) {
            return FGW_ERR_CORRUPT;
        }
        memcpy(extent->root.bytes, item->value.ptr, item->value.len);
        return FGW_OK;
    }
    enum fgw_err err = fgw_tlv_u64(item->value, &number);
    if (err != FGW_OK) {
        return fgw_tlv_critical(item->tag) ? FGW_ERR_NEWER_VERSION : err;
    }
    switch (item->tag) {
    case EXTENT_NUMBER:
        extent->number = number;
        return FGW_OK;
    case EXTENT_SET:
        extent->set = number;
        return FGW_OK;
    case EXTENT_SIZE:
        extent->size = number;
        return FGW_OK;
    case EXTENT_GROUP:
        extent->first.group = number;
        return FGW_OK;
    case EXTENT_OFFSET:
        extent->first.offset = number;
        return FGW_OK;
    case EXTENT_LEN:
        extent->first.len = (uint32_t)number;
        return FGW_OK;
    case EXTENT_CRC:
        extent->first.crc32c = (uint32_t)number;
        return FGW_OK;
    default:
        return fgw_tlv_critical(item->tag) ? FGW_ERR_NEWER_VERSION : FGW_OK;
    }
}

enum fgw_err fgw_row_decode_extent(struct fgw_bytes bytes, struct fgw_extent *out_extent)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(bytes);
    struct fgw_extent extent = {0};
    struct fgw_tlv_item item;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        err = extent_item(&item, &extent);
        if (err != FGW_OK) {
            return err;
        }
    }
    if (err == FGW_ERR_END) {
        *out_extent = extent;
        return FGW_OK;
    }
    return err;
}

/* -- parts inside an object row: number | size | md5 | checksum -------------------------------- */

enum part_tag {
    PART_NUMBER = 2,
    PART_SIZE = 4,
    PART_MD5 = 6,
    PART_CHECKSUM = 8,
    PART_ATTEMPT = 10,
    PART_MTIME = 12,
    PART_EXTENT = 14
};

static void encode_object_part(struct fgw_buf *out, const struct fgw_object_part *part)
{
    fgw_tlv_put_u64(out, PART_NUMBER, part->number);
    fgw_tlv_put_u64(out, PART_SIZE, part->size);
    fgw_tlv_put(out, PART_MD5, fgw_bytes(part->md5, sizeof part->md5));
    fgw_row_put_checksum(out, PART_CHECKSUM, &part->checksum);
}

void fgw_row_encode_part(struct fgw_buf *out, const struct fgw_part *part)
{
    struct fgw_object_part common = {
        .number = part->number, .size = part->size, .checksum = part->checksum};
    memcpy(common.md5, part->md5, sizeof common.md5);
    encode_object_part(out, &common);
    fgw_row_put_id(out, PART_ATTEMPT, &part->attempt);
    fgw_tlv_put_u64(out, PART_MTIME, (uint64_t)part->mtime_ms);
    struct fgw_buf extent;
    fgw_buf_init(&extent, 0);
    fgw_row_encode_extent(&extent, &part->extent);
    fgw_tlv_put(out, PART_EXTENT, fgw_buf_bytes(&extent));
    fgw_buf_deinit(&extent);
}

static enum fgw_err part_item(const struct fgw_tlv_item *item, struct fgw_part *part)
{
    uint64_t number = 0;
    enum fgw_err err = FGW_OK;
    switch (item->tag) {
    case PART_NUMBER:
        err = fgw_tlv_u64(item->value, &number);
        part->number = (unsigned)number;
        return err;
    case PART_SIZE:
        return fgw_tlv_u64(item->value, &part->size);
    case PART_MD5:
        if (item->value.len != sizeof part->md5) {
            return FGW_ERR_CORRUPT;
        }
        memcpy(part->md5, item->value.ptr, sizeof part->md5);
        return FGW_OK;
    case PART_CHECKSUM:
        return fgw_row_get_checksum(item->value, &part->checksum);
    case PART_ATTEMPT:
        return fgw_row_get_id(item->value, &part->attempt);
    case PART_MTIME:
        err = fgw_tlv_u64(item->value, &number);
        part->mtime_ms = (int64_t)number;
        return err;
    case PART_EXTENT:
        return fgw_row_decode_extent(item->value, &part->extent);
    default:
        return fgw_tlv_critical(item->tag) ? FGW_ERR_NEWER_VERSION : FGW_OK;
    }
}

enum fgw_err fgw_row_decode_part(struct fgw_bytes row, struct fgw_part *out_part)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    struct fgw_part part = {0};
    struct fgw_tlv_item item;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        err = part_item(&item, &part);
        if (err != FGW_OK) {
            return err;
        }
    }
    if (err == FGW_ERR_END) {
        *out_part = part;
        return FGW_OK;
    }
    return err;
}

/* -- objects ---------------------------------------------------------------------------------- */

static void encode_object_lists(struct fgw_buf *out, const struct fgw_object *object)
{
    struct fgw_buf piece;
    fgw_buf_init(&piece, 0);
    for (size_t i = 0; i < object->header_count; i++) {
        fgw_row_put_pair(out, OBJECT_HEADER, &object->headers[i]);
    }
    for (size_t i = 0; i < object->tag_count; i++) {
        fgw_row_put_pair(out, OBJECT_TAG, &object->tags[i]);
    }
    for (size_t i = 0; i < object->part_count; i++) {
        fgw_buf_clear(&piece);
        encode_object_part(&piece, &object->parts[i]);
        fgw_tlv_put(out, OBJECT_PART, fgw_buf_bytes(&piece));
    }
    for (size_t i = 0; i < object->extent_count; i++) {
        fgw_buf_clear(&piece);
        fgw_row_encode_extent(&piece, &object->extents[i]);
        fgw_tlv_put(out, OBJECT_EXTENT, fgw_buf_bytes(&piece));
    }
    fgw_buf_deinit(&piece);
}

void fgw_row_encode_object(struct fgw_buf *out, const struct fgw_object *object,
                           const struct fgw_row_state *state)
{
    uint64_t flags = (object->is_null ? FLAG_NULL : 0U) |
                     (object->delete_marker ? FLAG_MARKER : 0U) |
                     (object->canonical_cid ? FLAG_CANONICAL_CID : 0U);
    fgw_tlv_put_u64(out, OBJECT_FLAGS, flags);
    fgw_row_put_id(out, OBJECT_VERSION, &object->version_id);
    fgw_tlv_put_u64(out, OBJECT_SIZE, object->size);
    fgw_tlv_put_u64(out, OBJECT_MTIME, (uint64_t)object->mtime_ms);
    fgw_tlv_put_nonempty(out, OBJECT_ETAG, object->etag);
    fgw_tlv_put_nonempty(out, OBJECT_CLASS, object->storage_class);
    fgw_tlv_put_nonempty(out, OBJECT_CREATOR_ID, object->creator_id);
    fgw_tlv_put_nonempty(out, OBJECT_CREATOR_NAME, object->creator_name);
    fgw_row_put_checksum(out, OBJECT_CHECKSUM, &object->checksum);
    fgw_row_put_id(out, OBJECT_OWNER, &object->owner_id);
    fgw_row_put_id(out, OBJECT_REV, &object->rev);
    if (object->acl != FGW_ACL_PRIVATE) {
        fgw_tlv_put_u64(out, OBJECT_ACL, object->acl);
    }
    encode_object_lists(out, object);
    if (object->has_cid) {
        fgw_tlv_put(out, OBJECT_CID, fgw_bytes(object->cid.bytes, sizeof object->cid.bytes));
    }
    fgw_row_put_id(out, OBJECT_UPLOAD, &object->upload_id);
    if (state != NULL) {
        fgw_row_put_id(out, OBJECT_NULL_VERSION, &state->null_version);
        for (unsigned i = 0; i < state->recent_count; i++) {
            fgw_row_put_id(out, OBJECT_RECENT, &state->recent[i]);
        }
        fgw_row_put_id(out, OBJECT_CLAIM, &state->claim);
    }
    (void)fgw_buf_append(out, object->unknown);
}

/* Growing arrays of a decode; counts are known only at the end, so a first pass counts them. */
struct object_counts {
    size_t headers, tags, parts, extents, unknown_bytes;
};

static enum fgw_err count_object(struct fgw_bytes row, struct object_counts *counts)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    struct fgw_tlv_item item;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        counts->headers += item.tag == OBJECT_HEADER;
        counts->tags += item.tag == OBJECT_TAG;
        counts->parts += item.tag == OBJECT_PART;
        counts->extents += item.tag == OBJECT_EXTENT;
        if (item.tag > OBJECT_LAST || item.tag < OBJECT_FLAGS) {
            counts->unknown_bytes += item.raw.len;
        }
    }
    return err == FGW_ERR_END ? FGW_OK : err;
}

struct object_decoder {
    struct fgw_arena *arena;
    struct fgw_object object;
    struct fgw_row_state state;
    struct fgw_meta_pair *headers;
    struct fgw_meta_pair *tags;
    struct fgw_object_part *parts;
    struct fgw_extent *extents;
    uint8_t *unknown;
};

static bool is_listing(uint64_t tag)
{
    return tag >= OBJECT_FLAGS && tag <= OBJECT_LAST_LISTING && !fgw_tlv_critical(tag);
}

static enum fgw_err listing_item(struct fgw_object *object, const struct fgw_tlv_item *item)
{
    uint64_t number = 0;
    enum fgw_err err = FGW_OK;
    switch (item->tag) {
    case OBJECT_FLAGS:
        err = fgw_tlv_u64(item->value, &number);
        object->is_null = (number & FLAG_NULL) != 0;
        object->delete_marker = (number & FLAG_MARKER) != 0;
        object->canonical_cid = (number & FLAG_CANONICAL_CID) != 0;
        return err;
    case OBJECT_VERSION:
        return fgw_row_get_id(item->value, &object->version_id);
    case OBJECT_SIZE:
        return fgw_tlv_u64(item->value, &object->size);
    case OBJECT_MTIME:
        err = fgw_tlv_u64(item->value, &number);
        object->mtime_ms = (int64_t)number;
        return err;
    case OBJECT_ETAG:
        object->etag = item->value;
        return FGW_OK;
    case OBJECT_CLASS:
        object->storage_class = item->value;
        return FGW_OK;
    case OBJECT_CREATOR_ID:
        object->creator_id = item->value;
        return FGW_OK;
    case OBJECT_CREATOR_NAME:
        object->creator_name = item->value;
        return FGW_OK;
    default:
        return fgw_row_get_checksum(item->value, &object->checksum);
    }
}

static enum fgw_err full_part(struct object_decoder *d, const struct fgw_tlv_item *item)
{
    struct fgw_part part;
    enum fgw_err err = fgw_row_decode_part(item->value, &part);
    if (err == FGW_OK) {
        struct fgw_object_part *to = &d->parts[d->object.part_count++];
        to->number = part.number;
        to->size = part.size;
        memcpy(to->md5, part.md5, sizeof to->md5);
        to->checksum = part.checksum;
    }
    return err;
}

static enum fgw_err full_item(struct object_decoder *d, const struct fgw_tlv_item *item)
{
    struct fgw_object *object = &d->object;
    uint64_t number = 0;
    enum fgw_err err = FGW_OK;
    switch (item->tag) {
    case OBJECT_OWNER:
        return fgw_row_get_id(item->value, &object->owner_id);
    case OBJECT_REV:
        return fgw_row_get_id(item->value, &object->rev);
    case OBJECT_ACL:
        err = fgw_tlv_u64(item->value, &number);
        object->acl = (enum fgw_acl)number;
        return err;
    case OBJECT_HEADER:
        return fgw_row_get_pair(item->value, &d->headers[object->header_count++]);
    case OBJECT_TAG:
        return fgw_row_get_pair(item->value, &d->tags[object->tag_count++]);
    case OBJECT_PART:
        return full_part(d, item);
    case OBJECT_EXTENT:
        return fgw_row_decode_extent(item->value, &d->extents[object->extent_count++]);
    case OBJECT_CID:
        if (item->value.len != sizeof object->cid.bytes) {
            return FGW_ERR_CORRUPT;
        }
        memcpy(object->cid.bytes, item->value.ptr, item->value.len);
        object->has_cid = true;
        return FGW_OK;
    case OBJECT_UPLOAD:
        return fgw_row_get_id(item->value, &object->upload_id);
    case OBJECT_NULL_VERSION:
        return fgw_row_get_id(item->value, &d->state.null_version);
    case OBJECT_CLAIM:
        return fgw_row_get_id(item->value, &d->state.claim);
    case OBJECT_RECENT:
        return d->state.recent_count < FGW_META_RECENT
                   ? fgw_row_get_id(item->value, &d->state.recent[d->state.recent_count++])
                   : FGW_ERR_CORRUPT;
    default:
        if (fgw_tlv_critical(item->tag)) {
            return FGW_ERR_NEWER_VERSION;
        }
        memcpy(d->unknown + object->unknown.len, item->raw.ptr, item->raw.len);
        object->unknown.len += item->raw.len;
        return FGW_OK;
    }
}

static enum fgw_err prepare_full(struct object_decoder *d, struct fgw_bytes row)
{
    struct object_counts counts = {0};
    enum fgw_err err = count_object(row, &counts);
    if (err != FGW_OK) {
        return err;
    }
    d->headers = fgw_arena_alloc(d->arena, counts.headers * sizeof *d->headers);
    d->tags = fgw_arena_alloc(d->arena, counts.tags * sizeof *d->tags);
    d->parts = fgw_arena_alloc(d->arena, counts.parts * sizeof *d->parts);
    d->extents = fgw_arena_alloc(d->arena, counts.extents * sizeof *d->extents);
    d->unknown = fgw_arena_alloc(d->arena, counts.unknown_bytes);
    d->object.headers = d->headers;
    d->object.tags = d->tags;
    d->object.parts = d->parts;
    d->object.extents = d->extents;
    d->object.unknown = fgw_bytes(d->unknown, 0);
    return FGW_OK;
}

enum fgw_err fgw_row_decode_object(struct fgw_arena *arena, struct fgw_bytes key,
                                   struct fgw_bytes row, enum fgw_row_depth depth,
                                   struct fgw_object *out_object, struct fgw_row_state *out_state)
{
    struct object_decoder d = {.arena = arena, .object.key = key};
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    struct fgw_tlv_item item;
    enum fgw_err err = depth == FGW_ROW_FULL ? prepare_full(&d, row) : FGW_OK;
    while (err == FGW_OK && (err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        if (is_listing(item.tag)) {
            err = listing_item(&d.object, &item);
        } else if (depth == FGW_ROW_FULL) {
            err = full_item(&d, &item);
        } else {
            err = FGW_ERR_END;
        }
    }
    if (err != FGW_ERR_END) {
        return err;
    }
    *out_object = d.object;
    if (out_state != NULL) {
        *out_state = d.state;
    }
    return FGW_OK;
}

enum fgw_err fgw_row_decode_listing(struct fgw_arena *arena, struct fgw_bytes row,
                                    struct fgw_object *object)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    struct fgw_tlv_item item;
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK && (err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        err = is_listing(item.tag) ? listing_item(object, &item) : FGW_ERR_END;
    }
    if (err != FGW_ERR_END) {
        return err;
    }
    struct fgw_bytes *views[] = {&object->etag, &object->storage_class, &object->creator_id,
                                 &object->creator_name};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        if (views[i]->len > 0) {
            *views[i] = fgw_arena_copy(arena, *views[i]);
        }
    }
    return FGW_OK;
}

enum fgw_err fgw_row_is_marker(struct fgw_bytes row, bool *out_marker)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    struct fgw_tlv_item item;
    uint64_t flags = 0;
    enum fgw_err err = fgw_tlv_next(&reader, &item);
    if (err != FGW_OK) {
        return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
    }
    if (item.tag == OBJECT_FLAGS) {
        err = fgw_tlv_u64(item.value, &flags);
    }
    *out_marker = (flags & FLAG_MARKER) != 0;
    return err;
}

size_t fgw_row_listing_size(struct fgw_bytes row)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(row);
    struct fgw_tlv_item item;
    size_t size = 0;
    while (fgw_tlv_next(&reader, &item) == FGW_OK && item.tag >= OBJECT_FLAGS &&
           item.tag <= OBJECT_LAST_LISTING) {
        size += item.raw.len;
    }
    return size;
}
