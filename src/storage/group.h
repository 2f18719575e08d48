/* group.h: one group file: its name, how it comes into being, its sections (docs/formats/group.md).
 * No state of its own; any thread. */
#ifndef FGW_STORAGE_GROUP_H
#define FGW_STORAGE_GROUP_H

#include "cid/car.h"
#include "storage/record.h"

enum {
    FGW_GROUP_NAME_SIZE = 32,
    FGW_GROUP_FIRST_OFFSET = FGW_CAR_HEADER_SIZE, /* of the opening record's section */
    FGW_GROUP_RECORD_SECTION_OVERHEAD = FGW_CAR_SECTION_HEAD_MAX + FGW_RECORD_HEAD_SIZE +
                                        FGW_AEAD_TAG_SIZE
};

/* "0000000001.car" */
void fgw_group_name(uint64_t id, char out[FGW_GROUP_NAME_SIZE]);
/* False for any other name. */
bool fgw_group_name_parse(const char *name, uint64_t *out_id);

/* Appends a sealed record as a section to `out` as it will stand at place.offset. */
void fgw_group_put_record(struct fgw_buf *out, struct fgw_record_sealer *sealer,
                          const struct fgw_record_head *head, struct fgw_record_place place,
                          struct fgw_bytes payload);
/* Bytes that section takes. */
size_t fgw_group_record_section_size(size_t payload_len);

/* Makes groups/<id>.car with header and opening record (head->kind LOG_OPEN or BULK_OPEN), durable
 * when it returns. *out_fd is open for reading and writing, *out_end behind the record. */
enum fgw_err fgw_group_create(int tmp_dir, int groups_dir, uint64_t id,
                              struct fgw_record_sealer *sealer, const struct fgw_record_head *head,
                              struct fgw_bytes payload, int *out_fd, uint64_t *out_end) FGW_MUST_CHECK;
/* Reads the opening record of an open group file. out gets the payload. FGW_ERR_CORRUPT when the
 * file does not begin with a group's header and an authentic opening record. */
enum fgw_err fgw_group_read_opening(int fd, uint64_t id, struct fgw_record_opener *opener,
                                    struct fgw_buf *out, struct fgw_record_head *out_head,
                                    uint64_t *out_end) FGW_MUST_CHECK;

/* A block as the index or a hint knows it. */
struct fgw_group_block {
    const uint8_t *digest; /* FGW_SHA256_SIZE */
    uint64_t offset;       /* of the section */
    uint32_t len;
    uint32_t crc32c;
};
/* Bytes of its section. */
static inline size_t fgw_group_section_size(uint32_t block_len)
{
    return fgw_car_section_size(block_len);
}
/* Does the head of a section (fgw_group_section_size(len) - len bytes) announce a block of this
 * length and digest? */
bool fgw_group_head_matches(struct fgw_bytes head, const struct fgw_group_block *block);
/* Checks a whole section in memory: head and CRC32C. FGW_ERR_CORRUPT; else *out_bytes is the block
 * inside `section`. */
enum fgw_err fgw_group_check_section(struct fgw_bytes section, const struct fgw_group_block *block,
                                     struct fgw_bytes *out_bytes) FGW_MUST_CHECK;
/* Reads a section into `out` (fgw_group_section_size bytes) and checks it. FGW_ERR_CORRUPT when it
 * is another block, damaged, or behind the file's end. */
enum fgw_err fgw_group_read_block(int fd, const struct fgw_group_block *block, uint8_t *out,
                                  struct fgw_bytes *out_bytes) FGW_MUST_CHECK;

#endif
