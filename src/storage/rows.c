/* rows.c: see rows.h. */
#include "storage/rows.h"

#include "base/check.h"

/* -- keys -------------------------------------------------------------------------------------- */

static void add(struct fgw_row_key *key, const void *bytes, size_t len)
{
    FGW_CHECK(key->len + len <= sizeof key->bytes);
    memcpy(key->bytes + key->len, bytes, len);
    key->len += len;
}

static void add_u64(struct fgw_row_key *key, uint64_t value)
{
    uint8_t bytes[8];
    fgw_put_u64be(bytes, value);
    add(key, bytes, sizeof bytes);
}

static struct fgw_row_key table(char letter)
{
    return (struct fgw_row_key){.bytes = {(uint8_t)letter}, .len = 1};
}

struct fgw_row_key fgw_row_key_block(const uint8_t digest[FGW_SHA256_SIZE])
{
    struct fgw_row_key key = table('b');
    add(&key, digest, FGW_SHA256_SIZE);
    return key;
}

struct fgw_row_key fgw_row_key_blob(const uint8_t digest[FGW_SHA256_SIZE])
{
    struct fgw_row_key key = table('B');
    add(&key, digest, FGW_SHA256_SIZE);
    return key;
}

struct fgw_row_key fgw_row_key_ref(const uint8_t digest[FGW_SHA256_SIZE],
                                   const uint8_t owner_id[FGW_STORAGE_ID_SIZE], uint64_t extent)
{
    struct fgw_row_key key = table('r');
    add(&key, digest, FGW_SHA256_SIZE);
    add(&key, owner_id, FGW_STORAGE_ID_SIZE);
    add_u64(&key, extent);
    return key;
}

struct fgw_row_key fgw_row_key_hold(const uint8_t owner_id[FGW_STORAGE_ID_SIZE], uint64_t extent)
{
    struct fgw_row_key key = table('h');
    add(&key, owner_id, FGW_STORAGE_ID_SIZE);
    add_u64(&key, extent);
    return key;
}

struct fgw_row_key fgw_row_key_pending(const uint8_t owner_id[FGW_STORAGE_ID_SIZE], uint64_t extent)
{
    struct fgw_row_key key = table('w');
    add(&key, owner_id, FGW_STORAGE_ID_SIZE);
    add_u64(&key, extent);
    return key;
}

struct fgw_row_key fgw_row_key_slice(const uint8_t list_id[FGW_LIST_ID_SIZE], uint8_t kind,
                                     uint64_t first)
{
    struct fgw_row_key key = table('l');
    add(&key, list_id, FGW_LIST_ID_SIZE);
    add(&key, &kind, 1);
    add_u64(&key, first);
    return key;
}

struct fgw_row_key fgw_row_key_list(const uint8_t list_id[FGW_LIST_ID_SIZE])
{
    struct fgw_row_key key = table('p');
    add(&key, list_id, FGW_LIST_ID_SIZE);
    return key;
}

struct fgw_row_key fgw_row_key_queue(uint64_t released_at, char kind, const uint8_t *id)
{
    struct fgw_row_key key = table('q');
    add_u64(&key, released_at);
    add(&key, &kind, 1);
    add(&key, id, kind == 'o' ? FGW_STORAGE_ID_SIZE : FGW_SHA256_SIZE);
    return key;
}

struct fgw_row_key fgw_row_key_group(uint64_t group)
{
    struct fgw_row_key key = table('g');
    add_u64(&key, group);
    return key;
}

struct fgw_row_key fgw_row_key_applied(void)
{
    struct fgw_row_key key = table('m');
    add(&key, "applied", 7);
    return key;
}

struct fgw_row_key fgw_row_key_last_group(void)
{
    struct fgw_row_key key = table('m');
    add(&key, "group", 5);
    return key;
}

struct fgw_row_key fgw_row_key_count(void)
{
    struct fgw_row_key key = table('m');
    add(&key, "count", 5);
    return key;
}

/* -- values ------------------------------------------------------------------------------------ */

static void begin(struct fgw_buf *out)
{
    fgw_buf_clear(out);
    (void)fgw_buf_append_byte(out, FGW_ROW_VERSION);
}

static void put(struct fgw_buf *out, const void *ptr, size_t len)
{
    (void)fgw_buf_append(out, fgw_bytes(ptr, len));
}

static enum fgw_err check_version(struct fgw_bytes *rest)
{
    uint8_t version;
    if (!fgw_take_u8(rest, &version)) {
        return FGW_ERR_CORRUPT;
    }
    return version == FGW_ROW_VERSION ? FGW_OK : FGW_ERR_NEWER_VERSION;
}

static enum fgw_err whole(bool ok, struct fgw_bytes rest)
{
    return ok && rest.len == 0 ? FGW_OK : FGW_ERR_CORRUPT;
}

enum { BLOCK_KIND_MASK = 3, BLOCK_BAD = 4, BLOCK_OWNER_LISTED = 8 };

void fgw_block_row_encode(struct fgw_buf *out, const struct fgw_block_row *row)
{
    uint8_t crc[4];
    uint8_t flags = (uint8_t)row->owner_kind;
    flags |= row->bad ? BLOCK_BAD : 0;
    flags |= row->owner_kind == FGW_BLOCK_OWNED && row->owner.listed ? BLOCK_OWNER_LISTED : 0;
    fgw_put_u32le(crc, row->crc32c);
    begin(out);
    (void)fgw_buf_append_byte(out, flags);
    (void)fgw_buf_append_byte(out, row->codec);
    put(out, crc, sizeof crc);
    fgw_put_uvarint(out, row->group);
    fgw_put_uvarint(out, row->offset);
    fgw_put_uvarint(out, row->len);
    fgw_put_uvarint(out, row->refs);
    fgw_put_uvarint(out, row->own_refs);
    fgw_put_uvarint(out, row->released_at);
    if (row->owner_kind == FGW_BLOCK_OWNED) {
        put(out, row->owner.address.bucket_id, FGW_STORAGE_ID_SIZE);
        put(out, row->owner.address.owner_id, FGW_STORAGE_ID_SIZE);
        fgw_put_uvarint(out, row->owner.extent);
        (void)fgw_buf_append(out, row->owner.address.key);
    } else if (row->owner_kind == FGW_BLOCK_LISTED) {
        put(out, row->list_id, FGW_LIST_ID_SIZE);
    }
}

static bool take_block_owner(struct fgw_bytes *rest, uint8_t flags, struct fgw_block_row *row)
{
    switch (row->owner_kind) {
    case FGW_BLOCK_UNOWNED:
        return rest->len == 0;
    case FGW_BLOCK_LISTED:
        return fgw_take_fixed(rest, row->list_id, FGW_LIST_ID_SIZE) && rest->len == 0;
    case FGW_BLOCK_OWNED:
        row->owner.listed = (flags & BLOCK_OWNER_LISTED) != 0;
        return fgw_take_fixed(rest, row->owner.address.bucket_id, FGW_STORAGE_ID_SIZE) &&
               fgw_take_fixed(rest, row->owner.address.owner_id, FGW_STORAGE_ID_SIZE) &&
               fgw_take_uvarint(rest, &row->owner.extent) &&
               fgw_take_view(rest, rest->len, &row->owner.address.key);
    default:
        return false;
    }
}

enum fgw_err fgw_block_row_decode(struct fgw_bytes value, struct fgw_block_row *out_row)
{
    struct fgw_block_row row = {0};
    uint8_t flags = 0;
    uint64_t len = 0;
    enum fgw_err err = check_version(&value);
    if (err != FGW_OK) {
        return err;
    }
    bool ok = fgw_take_u8(&value, &flags) && fgw_take_u8(&value, &row.codec) &&
              fgw_take_u32le(&value, &row.crc32c) && fgw_take_uvarint(&value, &row.group) &&
              fgw_take_uvarint(&value, &row.offset) && fgw_take_uvarint(&value, &len) &&
              len <= (uint64_t)FGW_STORAGE_BLOCK_MAX * 2 && fgw_take_uvarint(&value, &row.refs) &&
              fgw_take_uvarint(&value, &row.own_refs) && fgw_take_uvarint(&value, &row.released_at);
    row.len = (uint32_t)len;
    row.bad = (flags & BLOCK_BAD) != 0;
    row.owner_kind = (enum fgw_block_owner)(flags & BLOCK_KIND_MASK);
    if (!ok || !take_block_owner(&value, flags, &row)) {
        return FGW_ERR_CORRUPT;
    }
    *out_row = row;
    return FGW_OK;
}

void fgw_ref_row_encode(struct fgw_buf *out, const struct fgw_ref_row *row)
{
    begin(out);
    fgw_put_uvarint(out, row->count);
    (void)fgw_buf_append_byte(out, row->listed ? 1 : 0);
    if (!row->of_list) {
        put(out, row->bucket_id, FGW_STORAGE_ID_SIZE);
        (void)fgw_buf_append(out, row->key);
    }
}

enum fgw_err fgw_ref_row_decode(struct fgw_bytes value, struct fgw_ref_row *out_row)
{
    struct fgw_ref_row row = {0};
    uint8_t flags = 0;
    enum fgw_err err = check_version(&value);
    if (err != FGW_OK) {
        return err;
    }
    bool ok = fgw_take_uvarint(&value, &row.count) && fgw_take_u8(&value, &flags);
    row.listed = (flags & 1) != 0;
    row.of_list = ok && value.len == 0;
    if (ok && !row.of_list) {
        ok = fgw_take_fixed(&value, row.bucket_id, FGW_STORAGE_ID_SIZE);
        row.key = value;
    }
    if (!ok) {
        return FGW_ERR_CORRUPT;
    }
    *out_row = row;
    return FGW_OK;
}

void fgw_hold_row_encode(struct fgw_buf *out, const struct fgw_hold_row *row)
{
    begin(out);
    (void)fgw_buf_append_byte(out, row->codec);
    put(out, row->digest, FGW_SHA256_SIZE);
    put(out, row->bucket_id, FGW_STORAGE_ID_SIZE);
    (void)fgw_buf_append(out, row->key);
}

enum fgw_err fgw_hold_row_decode(struct fgw_bytes value, struct fgw_hold_row *out_row)
{
    enum fgw_err err = check_version(&value);
    if (err != FGW_OK) {
        return err;
    }
    bool ok = fgw_take_u8(&value, &out_row->codec) &&
              fgw_take_fixed(&value, out_row->digest, FGW_SHA256_SIZE) &&
              fgw_take_fixed(&value, out_row->bucket_id, FGW_STORAGE_ID_SIZE);
    out_row->key = value;
    return ok ? FGW_OK : FGW_ERR_CORRUPT;
}

void fgw_pending_row_encode(struct fgw_buf *out, const struct fgw_pending_row *row)
{
    begin(out);
    (void)fgw_buf_append_byte(out, row->codec);
    put(out, row->digest, FGW_SHA256_SIZE);
    put(out, row->bucket_id, FGW_STORAGE_ID_SIZE);
    fgw_put_uvarint(out, row->since_ms);
    (void)fgw_buf_append(out, row->key);
}

enum fgw_err fgw_pending_row_decode(struct fgw_bytes value, struct fgw_pending_row *out_row)
{
    enum fgw_err err = check_version(&value);
    if (err != FGW_OK) {
        return err;
    }
    bool ok = fgw_take_u8(&value, &out_row->codec) &&
              fgw_take_fixed(&value, out_row->digest, FGW_SHA256_SIZE) &&
              fgw_take_fixed(&value, out_row->bucket_id, FGW_STORAGE_ID_SIZE) &&
              fgw_take_uvarint(&value, &out_row->since_ms);
    out_row->key = value;
    return ok ? FGW_OK : FGW_ERR_CORRUPT;
}

void fgw_blob_row_encode(struct fgw_buf *out, const struct fgw_blob_row *row)
{
    begin(out);
    fgw_put_uvarint(out, row->size);
    fgw_put_uvarint(out, row->leaves);
    fgw_put_uvarint(out, row->nodes);
    fgw_put_uvarint(out, row->holds);
    fgw_put_uvarint(out, row->released_at);
    put(out, row->list_id, FGW_LIST_ID_SIZE);
}

enum fgw_err fgw_blob_row_decode(struct fgw_bytes value, struct fgw_blob_row *out_row)
{
    enum fgw_err err = check_version(&value);
    if (err != FGW_OK) {
        return err;
    }
    bool ok =
        fgw_take_uvarint(&value, &out_row->size) && fgw_take_uvarint(&value, &out_row->leaves) &&
        fgw_take_uvarint(&value, &out_row->nodes) && fgw_take_uvarint(&value, &out_row->holds) &&
        fgw_take_uvarint(&value, &out_row->released_at) &&
        fgw_take_fixed(&value, out_row->list_id, FGW_LIST_ID_SIZE);
    return whole(ok, value);
}

void fgw_list_row_encode(struct fgw_buf *out, const struct fgw_list_row *row)
{
    begin(out);
    (void)fgw_buf_append_byte(out, row->state);
    fgw_put_uvarint(out, row->count[FGW_LIST_LEAVES]);
    fgw_put_uvarint(out, row->count[FGW_LIST_NODES]);
    if (row->state == FGW_LIST_PENDING) {
        fgw_put_owner(out, &row->owner);
    }
}

enum fgw_err fgw_list_row_decode(struct fgw_bytes value, struct fgw_list_row *out_row)
{
    enum fgw_err err = check_version(&value);
    if (err != FGW_OK) {
        return err;
    }
    *out_row = (struct fgw_list_row){0};
    bool ok = fgw_take_u8(&value, &out_row->state) &&
              fgw_take_uvarint(&value, &out_row->count[FGW_LIST_LEAVES]) &&
              fgw_take_uvarint(&value, &out_row->count[FGW_LIST_NODES]) &&
              (out_row->state != FGW_LIST_PENDING || fgw_take_owner(&value, &out_row->owner));
    return whole(ok, value);
}

void fgw_group_row_encode(struct fgw_buf *out, const struct fgw_group_row *row)
{
    begin(out);
    (void)fgw_buf_append_byte(out, row->kind);
    fgw_put_uvarint(out, row->end);
    fgw_put_uvarint(out, row->live_blocks);
    fgw_put_uvarint(out, row->live_bytes);
    fgw_put_uvarint(out, row->written_bytes);
}

enum fgw_err fgw_group_row_decode(struct fgw_bytes value, struct fgw_group_row *out_row)
{
    enum fgw_err err = check_version(&value);
    if (err != FGW_OK) {
        return err;
    }
    bool ok = fgw_take_u8(&value, &out_row->kind) && fgw_take_uvarint(&value, &out_row->end) &&
              fgw_take_uvarint(&value, &out_row->live_blocks) &&
              fgw_take_uvarint(&value, &out_row->live_bytes) &&
              fgw_take_uvarint(&value, &out_row->written_bytes);
    return whole(ok, value);
}

void fgw_applied_encode(struct fgw_buf *out, const struct fgw_applied *applied)
{
    begin(out);
    fgw_put_uvarint(out, applied->batch);
    fgw_put_uvarint(out, applied->group);
    fgw_put_uvarint(out, applied->end);
    fgw_put_uvarint(out, applied->last_record);
    fgw_put_uvarint(out, applied->running_ms);
}

enum fgw_err fgw_applied_decode(struct fgw_bytes value, struct fgw_applied *out_applied)
{
    enum fgw_err err = check_version(&value);
    if (err != FGW_OK) {
        return err;
    }
    bool ok = fgw_take_uvarint(&value, &out_applied->batch) &&
              fgw_take_uvarint(&value, &out_applied->group) &&
              fgw_take_uvarint(&value, &out_applied->end) &&
              fgw_take_uvarint(&value, &out_applied->last_record) &&
              fgw_take_uvarint(&value, &out_applied->running_ms);
    return whole(ok, value);
}

void fgw_last_group_encode(struct fgw_buf *out, uint64_t group)
{
    begin(out);
    fgw_put_uvarint(out, group);
}

enum fgw_err fgw_last_group_decode(struct fgw_bytes value, uint64_t *out_group)
{
    enum fgw_err err = check_version(&value);
    return err != FGW_OK ? err : whole(fgw_take_uvarint(&value, out_group), value);
}
