/* compact_read.c: the live blocks of a group, slice by slice; see compact.h. Section heads are
 * followed through the file; a block is live when the index points at this very section. */
#include "base/fs.h"
#include "storage/compact.h"
#include "storage/storage_internal.h"

enum { WINDOW_SIZE = 64 * 1024 };

struct walk {
    struct fgw_storage *storage;
    struct fgw_compact_slice *slice;
    int fd;
    uint64_t size; /* of the file */
    uint8_t *window;
    uint64_t window_offset;
    size_t window_len;
    struct fgw_buf value;
};

/* Up to `want` bytes at offset, fewer at the file's end. */
static enum fgw_err view(struct walk *walk, uint64_t offset, size_t want, struct fgw_bytes *out)
{
    uint64_t left = walk->size - offset;
    want = want < left ? want : (size_t)left;
    if (offset < walk->window_offset || offset + want > walk->window_offset + walk->window_len) {
        size_t len = left < WINDOW_SIZE ? (size_t)left : (size_t)WINDOW_SIZE;
        walk->window_len = 0;
        enum fgw_err err = fgw_fs_pread(walk->fd, walk->window, len, offset);
        if (err != FGW_OK) {
            return err == FGW_ERR_END ? FGW_ERR_IO : err;
        }
        walk->window_offset = offset;
        walk->window_len = len;
    }
    *out = fgw_bytes(walk->window + (offset - walk->window_offset), want);
    return FGW_OK;
}

/* Zero bytes follow the last section of a log group that was not cut. */
static bool is_end(const struct walk *walk, uint64_t offset, struct fgw_bytes front)
{
    return offset >= walk->size || front.len == 0 || front.ptr[0] == 0;
}

/* FGW_ERR_END behind the last section. */
static enum fgw_err section_at(struct walk *walk, uint64_t offset, struct fgw_car_section *out)
{
    struct fgw_bytes front = {NULL, 0};
    if (offset >= walk->size) {
        return FGW_ERR_END;
    }
    enum fgw_err err = view(walk, offset, FGW_CAR_SECTION_HEAD_MAX, &front);
    if (err != FGW_OK || is_end(walk, offset, front)) {
        return err == FGW_OK ? FGW_ERR_END : err;
    }
    if (fgw_car_section_decode(front, out) != FGW_OK || out->cid.digest.len != FGW_SHA256_SIZE ||
        out->head_size + out->block_size > walk->size - offset) {
        return FGW_ERR_CORRUPT;
    }
    return FGW_OK;
}

/* *out_live: the index points here, and somebody holds it. */
static enum fgw_err look_up(struct walk *walk, const uint8_t *digest, uint64_t offset,
                            struct fgw_block_row *row, bool *out_live)
{
    struct fgw_row_key key = fgw_row_key_block(digest);
    *out_live = false;
    enum fgw_err err =
        fgw_kv_get(walk->storage->kv, FGW_KV_BLOCKS, fgw_row_key_bytes(&key), false, &walk->value);
    if (err == FGW_OK) {
        err = fgw_block_row_decode(fgw_buf_bytes(&walk->value), row);
    }
    if (err == FGW_OK) {
        bool here = row->group == walk->slice->group && row->offset == offset;
        walk->slice->rows += here ? 1 : 0;
        *out_live = here && row->refs > 0;
    }
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

/* Copies the block into the slice, checked. */
static enum fgw_err take(struct walk *walk, const uint8_t *digest, const struct fgw_block_row *row)
{
    struct fgw_compact_slice *slice = walk->slice;
    struct fgw_group_block block = {digest, row->offset, row->len, row->crc32c};
    size_t at = slice->bytes.len;
    enum fgw_err err = fgw_buf_reserve(&slice->bytes, fgw_group_section_size(row->len));
    struct fgw_bytes bytes;
    if (err == FGW_OK) {
        err = row->bad ? FGW_ERR_CORRUPT
                       : fgw_group_read_block(walk->fd, &block, slice->bytes.ptr + at, &bytes);
    }
    if (err == FGW_ERR_CORRUPT) {
        slice->unmovable++;
        return FGW_OK;
    }
    if (err == FGW_OK) {
        struct fgw_compact_block *taken = &slice->blocks[slice->count++];
        *taken = (struct fgw_compact_block){
            .codec = row->codec, .len = row->len, .crc32c = row->crc32c, .offset = row->offset};
        memcpy(taken->digest, digest, sizeof taken->digest);
        slice->bytes.len += fgw_group_section_size(row->len);
    }
    return err;
}

static enum fgw_err walk_on(struct walk *walk)
{
    struct fgw_compact_slice *slice = walk->slice;
    while (slice->count < FGW_COMPACT_BLOCKS && slice->bytes.len < FGW_COMPACT_BYTES) {
        struct fgw_car_section section;
        struct fgw_block_row row;
        uint8_t digest[FGW_SHA256_SIZE];
        bool live = false;
        enum fgw_err err = section_at(walk, slice->offset, &section);
        if (err == FGW_ERR_END) {
            slice->end = true;
            return FGW_OK;
        }
        if (err == FGW_OK) {
            memcpy(digest, section.cid.digest.ptr, sizeof digest); /* the view goes on */
            err = look_up(walk, digest, slice->offset, &row, &live);
        }
        if (err == FGW_OK && live) {
            err = take(walk, digest, &row);
        }
        if (err != FGW_OK) {
            return err;
        }
        slice->offset += section.head_size + section.block_size;
    }
    return FGW_OK;
}

/* The buffer has come to rest: now the views into it hold. */
static void set_views(struct fgw_compact_slice *slice)
{
    size_t at = 0;
    for (size_t i = 0; i < slice->count; i++) {
        size_t size = fgw_group_section_size(slice->blocks[i].len);
        slice->blocks[i].bytes =
            fgw_bytes(slice->bytes.ptr + at + size - slice->blocks[i].len, slice->blocks[i].len);
        at += size;
    }
}

enum fgw_err fgw_compact_read(struct fgw_storage *storage, struct fgw_compact_slice *slice)
{
    struct fgw_group_file *file;
    struct walk walk = {.storage = storage, .slice = slice};
    slice->count = 0;
    fgw_buf_clear(&slice->bytes);
    slice->offset = slice->offset == 0 ? (uint64_t)FGW_GROUP_FIRST_OFFSET : slice->offset;
    enum fgw_err err = fgw_group_files_acquire(&storage->files, slice->group, &file);
    if (err != FGW_OK) {
        return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
    }
    walk.fd = file->fd;
    walk.window = fgw_xmalloc(WINDOW_SIZE);
    fgw_buf_init(&walk.value, 0);
    err = fgw_fs_size(file->fd, &walk.size);
    if (err == FGW_OK) {
        /* behind the end of a poisoned group stand bytes that are void */
        walk.size =
            slice->file_end != 0 && slice->file_end < walk.size ? slice->file_end : walk.size;
        err = walk_on(&walk);
    }
    set_views(slice);
    fgw_buf_deinit(&walk.value);
    fgw_xfree(walk.window);
    fgw_group_files_release(&storage->files, file);
    return err;
}
