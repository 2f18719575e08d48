/* keys.c: row keys. See rocks_internal.h. */
#include "meta/lister.h"
#include "meta/rocks/rocks_internal.h"

static struct fgw_bytes finish(struct fgw_arena *arena, struct fgw_buf *buf)
{
    struct fgw_bytes copy = fgw_arena_copy(arena, fgw_buf_bytes(buf));
    fgw_buf_deinit(buf);
    return copy;
}

static void begin(struct fgw_buf *buf, char table)
{
    fgw_buf_init(buf, 0);
    (void)fgw_buf_append_byte(buf, (uint8_t)table);
}

static void add_id(struct fgw_buf *buf, const struct fgw_id *id)
{
    (void)fgw_buf_append(buf, fgw_bytes(id->bytes, sizeof id->bytes));
}

static void add_escaped(struct fgw_buf *buf, struct fgw_bytes key)
{
    for (size_t i = 0; i < key.len; i++) {
        (void)fgw_buf_append_byte(buf, key.ptr[i]);
        if (key.ptr[i] == 0) {
            (void)fgw_buf_append_byte(buf, 0xff);
        }
    }
    (void)fgw_buf_append(buf, fgw_bytes("\x00\x01", 2));
}

void rocks_id_invert(const struct fgw_id *id, struct fgw_id *out_id)
{
    for (size_t i = 0; i < sizeof id->bytes; i++) {
        out_id->bytes[i] = (uint8_t)~id->bytes[i];
    }
}

struct fgw_bytes rocks_key_text(struct fgw_arena *arena, char table, struct fgw_bytes text)
{
    uint8_t *key = fgw_arena_alloc(arena, text.len + 1);
    key[0] = (uint8_t)table;
    if (text.len > 0) {
        memcpy(key + 1, text.ptr, text.len);
    }
    return fgw_bytes(key, text.len + 1);
}

struct fgw_bytes rocks_key_text2(struct fgw_arena *arena, char table, struct fgw_bytes a,
                                 struct fgw_bytes b)
{
    struct fgw_buf buf;
    begin(&buf, table);
    (void)fgw_buf_append(&buf, a);
    (void)fgw_buf_append_byte(&buf, 0);
    (void)fgw_buf_append(&buf, b);
    return finish(arena, &buf);
}

struct fgw_bytes rocks_key_head(struct fgw_arena *arena, const struct fgw_id *bucket_id,
                                struct fgw_bytes key)
{
    uint8_t *out = fgw_arena_alloc(arena, 1 + sizeof bucket_id->bytes + key.len);
    out[0] = 'o';
    memcpy(out + 1, bucket_id->bytes, sizeof bucket_id->bytes);
    if (key.len > 0) {
        memcpy(out + 1 + sizeof bucket_id->bytes, key.ptr, key.len);
    }
    return fgw_bytes(out, 1 + sizeof bucket_id->bytes + key.len);
}

struct fgw_bytes rocks_key_versions_of(struct fgw_arena *arena, const struct fgw_id *bucket_id,
                                       struct fgw_bytes key)
{
    struct fgw_buf buf;
    begin(&buf, 'v');
    add_id(&buf, bucket_id);
    add_escaped(&buf, key);
    return finish(arena, &buf);
}

struct fgw_bytes rocks_key_version(struct fgw_arena *arena, const struct fgw_id *bucket_id,
                                   struct fgw_bytes key, const struct fgw_id *version_id)
{
    struct fgw_buf buf;
    struct fgw_id inverted;
    rocks_id_invert(version_id, &inverted);
    begin(&buf, 'v');
    add_id(&buf, bucket_id);
    add_escaped(&buf, key);
    add_id(&buf, &inverted);
    return finish(arena, &buf);
}

struct fgw_bytes rocks_key_of_id(struct fgw_arena *arena, char table, const struct fgw_id *id)
{
    return rocks_key_text(arena, table, fgw_bytes(id->bytes, sizeof id->bytes));
}

struct fgw_bytes rocks_key_upload(struct fgw_arena *arena, const struct fgw_id *upload_id)
{
    return rocks_key_of_id(arena, 'u', upload_id);
}

struct fgw_bytes rocks_key_upload_index(struct fgw_arena *arena, const struct fgw_id *bucket_id,
                                        struct fgw_bytes key, const struct fgw_id *upload_id)
{
    struct fgw_buf buf;
    begin(&buf, 'U');
    add_id(&buf, bucket_id);
    add_escaped(&buf, key);
    add_id(&buf, upload_id);
    return finish(arena, &buf);
}

struct fgw_bytes rocks_key_part(struct fgw_arena *arena, const struct fgw_id *upload_id,
                                unsigned number, const struct fgw_id *attempt)
{
    struct fgw_buf buf;
    struct fgw_id inverted;
    uint8_t number_be[2];
    rocks_id_invert(attempt, &inverted);
    fgw_put_u16be(number_be, (uint16_t)number);
    begin(&buf, 'p');
    add_id(&buf, upload_id);
    (void)fgw_buf_append(&buf, fgw_bytes(number_be, sizeof number_be));
    add_id(&buf, &inverted);
    return finish(arena, &buf);
}

struct fgw_bytes rocks_key_end(struct fgw_arena *arena, struct fgw_bytes prefix)
{
    struct fgw_buf buf;
    fgw_buf_init(&buf, 0);
    /* the table byte is ASCII, so there always is a successor */
    (void)fgw_prefix_successor(&buf, prefix);
    return finish(arena, &buf);
}

enum fgw_err rocks_key_unescape(struct fgw_arena *arena, struct fgw_bytes *rest,
                                struct fgw_bytes *out_key)
{
    uint8_t *key = fgw_arena_alloc(arena, rest->len);
    size_t len = 0;
    for (size_t i = 0; i + 1 < rest->len; i++) {
        if (rest->ptr[i] != 0) {
            key[len++] = rest->ptr[i];
        } else if (rest->ptr[i + 1] == 0xff) {
            key[len++] = 0;
            i++;
        } else if (rest->ptr[i + 1] == 1) {
            *rest = fgw_bytes_sub(*rest, i + 2, SIZE_MAX);
            *out_key = fgw_bytes(key, len);
            return FGW_OK;
        } else {
            return FGW_ERR_CORRUPT;
        }
    }
    return FGW_ERR_CORRUPT;
}
