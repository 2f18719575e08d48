/* known.c: see known.h. */
#include "storage/known.h"

#include "storage/read_pages.h"
#include "storage/storage_internal.h"
#include "storage/txn.h"

static bool fits(const struct fgw_block_row *row, uint32_t len, uint32_t crc32c)
{
    return !row->bad && row->len == len && row->crc32c == crc32c;
}

bool fgw_known_find(struct fgw_storage *storage, const struct fgw_storage_block *block,
                    struct fgw_known *out_known)
{
    struct fgw_row_key key = fgw_row_key_block(fgw_cid_digest(&block->cid));
    struct fgw_block_row row;
    struct fgw_buf value;
    if (block->bytes.len < FGW_KNOWN_SIZE_MIN) {
        return false;
    }
    fgw_buf_init(&value, 0);
    bool found =
        fgw_kv_get(storage->kv, FGW_KV_BLOCKS, fgw_row_key_bytes(&key), true, &value) == FGW_OK &&
        fgw_block_row_decode(fgw_buf_bytes(&value), &row) == FGW_OK &&
        fits(&row, (uint32_t)block->bytes.len, block->crc32c);
    fgw_buf_deinit(&value);
    if (!found || fgw_group_files_acquire(&storage->files, row.group, &out_known->file) != FGW_OK) {
        return false;
    }
    out_known->offset = row.offset;
    return true;
}

void fgw_known_release(struct fgw_storage *storage, struct fgw_known *known)
{
    fgw_group_files_release(&storage->files, known->file);
    known->file = NULL;
}

enum fgw_err fgw_known_grant(struct fgw_storage_txn *txn, const struct fgw_item_block *block)
{
    struct fgw_row_key key = fgw_row_key_block(block->digest);
    struct fgw_block_row row;
    struct fgw_bytes value;
    enum fgw_err err = fgw_txn_index_get(txn, &key, &value);
    if (err == FGW_OK) {
        err = fgw_block_row_decode(value, &row);
    }
    if (err == FGW_OK && !fits(&row, block->len, block->crc32c)) {
        err = FGW_ERR_NOT_FOUND;
    }
    return err;
}

enum fgw_err fgw_known_is_there(struct fgw_storage *storage, const struct fgw_item_block *block,
                                bool *out_there)
{
    struct fgw_row_key key = fgw_row_key_block(block->digest);
    struct fgw_block_row row;
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    enum fgw_err err = fgw_storage_index_get(storage, &key, &value);
    if (err == FGW_OK) {
        err = fgw_block_row_decode(fgw_buf_bytes(&value), &row);
    }
    fgw_buf_deinit(&value);
    *out_there = err == FGW_OK && fits(&row, block->len, block->crc32c);
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

enum fgw_err fgw_known_read(struct fgw_storage *storage, const struct fgw_known *known,
                            const struct fgw_item_block *block, struct fgw_buf *section,
                            struct fgw_bytes *out_bytes)
{
    struct fgw_group_block wanted = {block->digest, known->offset, block->len, block->crc32c};
    size_t size = fgw_group_section_size(block->len);
    fgw_buf_clear(section);
    enum fgw_err err = fgw_buf_reserve(section, size);
    if (err == FGW_OK) {
        err = fgw_read_bytes(storage->pool, known->file->fd, known->offset, section->ptr, size);
    }
    if (err == FGW_OK) {
        section->len = size;
        err = fgw_group_check_section(fgw_buf_bytes(section), &wanted, out_bytes);
    }
    return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
}
