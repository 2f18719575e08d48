/* group.c: see group.h. */
#include "storage/group.h"

#include <stdio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/crc.h"
#include "base/encode.h"
#include "base/fs.h"

void fgw_group_name(uint64_t id, char out[FGW_GROUP_NAME_SIZE])
{
    (void)snprintf(out, FGW_GROUP_NAME_SIZE, "%010llu.car", (unsigned long long)id);
}

bool fgw_group_name_parse(const char *name, uint64_t *out_id)
{
    struct fgw_bytes text = fgw_bytes_str(name);
    char canonical[FGW_GROUP_NAME_SIZE];
    uint64_t id;
    if (!fgw_bytes_ends_with(text, FGW_LIT(".car")) ||
        fgw_bytes_to_u64(fgw_bytes_sub(text, 0, text.len - 4), &id) != FGW_OK) {
        return false;
    }
    fgw_group_name(id, canonical);
    if (id == 0 || strcmp(canonical, name) != 0) {
        return false;
    }
    *out_id = id;
    return true;
}

size_t fgw_group_record_section_size(size_t payload_len)
{
    return fgw_car_section_size(fgw_record_size(payload_len));
}

void fgw_group_put_record(struct fgw_buf *out, struct fgw_record_sealer *sealer,
                          const struct fgw_record_head *head, struct fgw_record_place place,
                          struct fgw_bytes payload)
{
    uint8_t section_head[FGW_CAR_SECTION_HEAD_MAX];
    size_t record_size = fgw_record_size(payload.len);
    FGW_CHECK(fgw_buf_reserve(out, sizeof section_head + record_size) == FGW_OK);
    /* the record is written behind the head whose CID names it: seal first, at its final place */
    struct fgw_cid none = {{1, FGW_CODEC_RAW}};
    size_t head_size = fgw_car_section_head_encode(&none, record_size, section_head);
    uint8_t *record = out->ptr + out->len + head_size;
    fgw_record_seal(sealer, head, place, payload, record);
    struct fgw_cid cid = fgw_cid_of(FGW_CODEC_RAW, fgw_bytes(record, record_size));
    (void)fgw_car_section_head_encode(&cid, record_size, section_head);
    memcpy(out->ptr + out->len, section_head, head_size);
    out->len += head_size + record_size;
}

enum fgw_err fgw_group_create(int tmp_dir, int groups_dir, uint64_t id,
                              struct fgw_record_sealer *sealer, const struct fgw_record_head *head,
                              struct fgw_bytes payload, int *out_fd, uint64_t *out_end)
{
    char name[FGW_GROUP_NAME_SIZE];
    uint8_t car_header[FGW_CAR_HEADER_SIZE];
    struct fgw_cid root = fgw_car_placeholder_root();
    struct fgw_buf content;
    fgw_group_name(id, name);
    fgw_car_header_encode(&root, car_header);
    fgw_buf_init(&content, 0);
    (void)fgw_buf_append(&content, fgw_bytes(car_header, sizeof car_header));
    fgw_group_put_record(&content, sealer, head,
                         (struct fgw_record_place){id, FGW_GROUP_FIRST_OFFSET}, payload);
    enum fgw_err err =
        fgw_fs_create_durable(tmp_dir, groups_dir, name, fgw_buf_bytes(&content), 0600, out_fd);
    if (err == FGW_OK) {
        *out_end = content.len;
    }
    fgw_buf_deinit(&content);
    return err;
}

/* Length of the record in the first section, 0 when the file does not begin as a group. */
static size_t first_record_size(const uint8_t *front, size_t *out_head_size)
{
    uint8_t car_header[FGW_CAR_HEADER_SIZE];
    struct fgw_cid root = fgw_car_placeholder_root();
    struct fgw_car_section section;
    fgw_car_header_encode(&root, car_header);
    if (memcmp(front, car_header, sizeof car_header) != 0 ||
        fgw_car_section_decode(fgw_bytes(front + FGW_CAR_HEADER_SIZE, FGW_CAR_SECTION_HEAD_MAX),
                               &section) != FGW_OK ||
        section.block_size > FGW_RECORD_SIZE_MAX) {
        return 0;
    }
    *out_head_size = section.head_size;
    return section.block_size;
}

enum fgw_err fgw_group_read_opening(int fd, uint64_t id, struct fgw_record_opener *opener,
                                    struct fgw_buf *out, struct fgw_record_head *out_head,
                                    uint64_t *out_end)
{
    uint8_t front[FGW_CAR_HEADER_SIZE + FGW_CAR_SECTION_HEAD_MAX];
    struct fgw_record_head head;
    struct fgw_bytes payload;
    size_t head_size = 0;
    enum fgw_err err = fgw_fs_pread(fd, front, sizeof front, 0);
    size_t size = err == FGW_OK ? first_record_size(front, &head_size) : 0;
    if (size == 0) {
        return err == FGW_OK || err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
    }
    uint8_t *record = fgw_xmalloc(2 * size);
    err = fgw_fs_pread(fd, record, size, FGW_GROUP_FIRST_OFFSET + head_size);
    if (err == FGW_OK) {
        err = fgw_record_open(opener, fgw_bytes(record, size),
                              (struct fgw_record_place){id, FGW_GROUP_FIRST_OFFSET}, record + size,
                              &head, &payload);
    }
    if (err == FGW_OK && head.kind != FGW_RECORD_LOG_OPEN && head.kind != FGW_RECORD_BULK_OPEN) {
        err = FGW_ERR_CORRUPT;
    }
    if (err == FGW_OK) {
        fgw_buf_clear(out);
        err = fgw_buf_append(out, payload);
    }
    if (err == FGW_OK) {
        *out_head = head;
        *out_end = FGW_GROUP_FIRST_OFFSET + head_size + size;
    }
    fgw_xfree(record);
    return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
}

bool fgw_group_head_matches(struct fgw_bytes head, const struct fgw_group_block *block)
{
    uint64_t len;
    size_t varint_len;
    if (fgw_uvarint_decode(head, &len, &varint_len) != FGW_OK ||
        len != FGW_CID_SIZE + (uint64_t)block->len || head.len != varint_len + FGW_CID_SIZE) {
        return false;
    }
    const uint8_t *cid = head.ptr + varint_len;
    return cid[0] == 1 && cid[2] == FGW_MULTIHASH_SHA2_256 && cid[3] == FGW_SHA256_SIZE &&
           memcmp(cid + 4, block->digest, FGW_SHA256_SIZE) == 0;
}

enum fgw_err fgw_group_check_section(struct fgw_bytes section, const struct fgw_group_block *block,
                                     struct fgw_bytes *out_bytes)
{
    if (section.len < block->len) {
        return FGW_ERR_CORRUPT;
    }
    size_t head_size = section.len - block->len;
    struct fgw_bytes bytes = fgw_bytes_sub(section, head_size, block->len);
    if (!fgw_group_head_matches(fgw_bytes_sub(section, 0, head_size), block) ||
        fgw_crc32c(0, bytes) != block->crc32c) {
        return FGW_ERR_CORRUPT;
    }
    *out_bytes = bytes;
    return FGW_OK;
}

enum fgw_err fgw_group_read_block(int fd, const struct fgw_group_block *block, uint8_t *out,
                                  struct fgw_bytes *out_bytes)
{
    size_t size = fgw_group_section_size(block->len);
    enum fgw_err err = fgw_fs_pread(fd, out, size, block->offset);
    if (err == FGW_OK) {
        err = fgw_group_check_section(fgw_bytes(out, size), block, out_bytes);
    }
    return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
}
