/* checkpoint_read.c: finding checkpoint files and reading them back; see checkpoint.h. Every record
 * is opened, parts have no gap, rows come in order, their number and the file's length are right:
 * what ends with FGW_ERR_END is what was written. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/tlv.h"
#include "storage/checkpoint.h"

enum { ITEM_MAX = 32 * 1024 * 1024, HEADS_SIZE = FGW_CAR_SECTION_HEAD_MAX + FGW_RECORD_HEAD_SIZE };

struct fgw_checkpoint_reader {
    struct fgw_record_opener *opener;
    int fd;
    uint64_t size;
    uint64_t offset; /* of the next record */
    uint64_t previous;
    uint32_t part;
    bool ended; /* the closing record was read */
    struct fgw_buf items;
    size_t used; /* of items */
    struct fgw_buf last_key;
    enum fgw_kv_family family;
    uint8_t *record; /* FGW_RECORD_SIZE_MAX, twice: as read and opened */
    struct fgw_checkpoint_info info;
    uint64_t rows;
};

/* -- which there are ----------------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left > right ? -1 : left < right;
}

enum fgw_err fgw_checkpoint_list_read(struct fgw_checkpoint_list *list,
                                      const struct fgw_datadir *dir)
{
    int copy = openat(dir->checkpoints, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = copy < 0 ? NULL : fdopendir(copy);
    size_t capacity = 0;
    struct dirent *entry;
    *list = (struct fgw_checkpoint_list){0};
    if (names == NULL) {
        return FGW_ERR_IO;
    }
    while ((entry = readdir(names)) != NULL) {
        uint64_t id;
        if (!fgw_group_name_parse(entry->d_name, &id)) {
            continue;
        }
        if (list->count == capacity) {
            capacity = 2 * capacity + 8;
            list->ids = fgw_xrealloc(list->ids, capacity * sizeof *list->ids);
        }
        list->ids[list->count++] = id;
    }
    (void)closedir(names);
    if (list->count > 0) {
        qsort(list->ids, list->count, sizeof *list->ids, newest_first);
    }
    return FGW_OK;
}

void fgw_checkpoint_list_free(struct fgw_checkpoint_list *list)
{
    fgw_xfree(list->ids);
    *list = (struct fgw_checkpoint_list){0};
}

/* -- records ------------------------------------------------------------------------------------- */

/* The plain heads at reader->offset. */
static enum fgw_err read_heads(struct fgw_checkpoint_reader *reader,
                               struct fgw_car_section *section, struct fgw_record_head *head)
{
    uint8_t heads[HEADS_SIZE];
    uint64_t left = reader->size - reader->offset;
    size_t len = left < sizeof heads ? (size_t)left : sizeof heads;
    enum fgw_err err = fgw_fs_pread(reader->fd, heads, len, reader->offset);
    if (err != FGW_OK) {
        return err;
    }
    if (fgw_car_section_decode(fgw_bytes(heads, len), section) != FGW_OK ||
        section->block_size > FGW_RECORD_SIZE_MAX ||
        section->head_size + section->block_size > left) {
        return FGW_ERR_CORRUPT;
    }
    err = fgw_record_head_decode(fgw_bytes_sub(fgw_bytes(heads, len), section->head_size, SIZE_MAX),
                                 head);
    return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
}

static bool head_fits(const struct fgw_checkpoint_reader *reader,
                      const struct fgw_record_head *head)
{
    return (head->kind == FGW_RECORD_CHECKPOINT || head->kind == FGW_RECORD_CHECKPOINT_END) &&
           head->part == reader->part + 1 && head->parts == head->part &&
           head->previous == reader->previous &&
           (reader->part == 0 || head->batch == reader->info.position.last_batch);
}

static void pass_record(struct fgw_checkpoint_reader *reader, const struct fgw_record_head *head,
                        const struct fgw_car_section *section)
{
    reader->part = head->part;
    reader->previous = reader->offset;
    reader->offset += section->head_size + section->block_size;
    reader->info.position.last_batch = head->batch;
    reader->ended = head->kind == FGW_RECORD_CHECKPOINT_END;
}

/* Opens the record that stands at reader->offset. */
static enum fgw_err open_record(struct fgw_checkpoint_reader *reader,
                                const struct fgw_car_section *section,
                                struct fgw_bytes *out_payload)
{
    struct fgw_record_head head;
    struct fgw_record_place place = {fgw_checkpoint_group(reader->info.id), reader->offset};
    enum fgw_err err = fgw_fs_pread(reader->fd, reader->record, section->block_size,
                                    reader->offset + section->head_size);
    return err == FGW_OK
               ? fgw_record_open(reader->opener, fgw_bytes(reader->record, section->block_size),
                                 place, reader->record + FGW_RECORD_SIZE_MAX, &head, out_payload)
               : err;
}

static enum fgw_err end_item(struct fgw_checkpoint_info *info, const struct fgw_tlv_item *item)
{
    switch (item->tag) {
    case FGW_ITEM_RUNNING_MS:
        return fgw_tlv_u64(item->value, &info->running_ms);
    case FGW_ITEM_ROW_COUNT:
        return fgw_tlv_u64(item->value, &info->rows);
    case FGW_ITEM_PREDECESSOR:
        return fgw_item_predecessor(item->value, &info->position);
    default:
        return fgw_tlv_critical(item->tag) ? FGW_ERR_NEWER_VERSION : FGW_OK;
    }
}

static enum fgw_err read_end(struct fgw_checkpoint_reader *reader, struct fgw_bytes payload)
{
    struct fgw_tlv_reader items = fgw_tlv_reader(payload);
    struct fgw_tlv_item item;
    uint64_t batch = reader->info.position.last_batch;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&items, &item)) == FGW_OK) {
        err = end_item(&reader->info, &item);
        if (err != FGW_OK) {
            return err;
        }
    }
    if (err != FGW_ERR_END || reader->offset != reader->size ||
        reader->info.position.last_batch != batch || reader->info.position.group == 0) {
        return FGW_ERR_CORRUPT;
    }
    reader->info.size_bytes = reader->size;
    return FGW_OK;
}

/* -- looking ------------------------------------------------------------------------------------- */

static enum fgw_err check_header(struct fgw_checkpoint_reader *reader)
{
    uint8_t want[FGW_CAR_HEADER_SIZE];
    uint8_t found[FGW_CAR_HEADER_SIZE];
    struct fgw_cid root = fgw_car_placeholder_root();
    enum fgw_err err = fgw_fs_size(reader->fd, &reader->size);
    fgw_car_header_encode(&root, want);
    if (err == FGW_OK) {
        err = fgw_fs_pread(reader->fd, found, sizeof found, 0);
    }
    reader->offset = sizeof found;
    if (err == FGW_ERR_END || (err == FGW_OK && memcmp(want, found, sizeof found) != 0)) {
        err = FGW_ERR_CORRUPT;
    }
    return err;
}

enum fgw_err fgw_checkpoint_reader_open(const struct fgw_datadir *dir, uint64_t id,
                                        struct fgw_record_opener *opener, bool from_disk,
                                        struct fgw_checkpoint_reader **out_reader)
{
    char name[FGW_GROUP_NAME_SIZE];
    fgw_group_name(id, name);
    int fd = openat(dir->checkpoints, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? FGW_ERR_NOT_FOUND : fgw_err_from_errno(errno);
    }
    struct fgw_checkpoint_reader *reader = fgw_xcalloc(1, sizeof *reader);
    reader->fd = fd;
    reader->opener = opener;
    reader->info.id = id;
    reader->record = fgw_xmalloc((size_t)2 * FGW_RECORD_SIZE_MAX);
    fgw_buf_init(&reader->items, ITEM_MAX + FGW_RECORD_SIZE_MAX);
    fgw_buf_init(&reader->last_key, 0);
    if (from_disk) {
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    enum fgw_err err = check_header(reader);
    if (err != FGW_OK) {
        fgw_checkpoint_reader_close(reader);
        return err;
    }
    *out_reader = reader;
    return FGW_OK;
}

/* From record to record by the heads alone, and into the closing one. */
static enum fgw_err walk_heads(struct fgw_checkpoint_reader *reader)
{
    while (reader->offset < reader->size) {
        struct fgw_car_section section;
        struct fgw_record_head head;
        struct fgw_bytes payload;
        enum fgw_err err = read_heads(reader, &section, &head);
        if (err == FGW_OK && !head_fits(reader, &head)) {
            err = FGW_ERR_CORRUPT;
        }
        bool last = err == FGW_OK && head.kind == FGW_RECORD_CHECKPOINT_END;
        if (last) {
            err = open_record(reader, &section, &payload);
        }
        if (err != FGW_OK) {
            return err;
        }
        pass_record(reader, &head, &section);
        if (last) {
            return read_end(reader, payload);
        }
    }
    return FGW_ERR_CORRUPT;
}

enum fgw_err fgw_checkpoint_peek(const struct fgw_datadir *dir, uint64_t id,
                                 struct fgw_record_opener *opener,
                                 struct fgw_checkpoint_info *out_info)
{
    struct fgw_checkpoint_reader *reader = NULL;
    enum fgw_err err = fgw_checkpoint_reader_open(dir, id, opener, false, &reader);
    if (err != FGW_OK || reader == NULL) {
        return err;
    }
    err = walk_heads(reader);
    if (err == FGW_OK) {
        *out_info = reader->info;
    }
    fgw_checkpoint_reader_close(reader);
    return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
}

/* -- reading all of it --------------------------------------------------------------------------- */

static enum fgw_err next_record(struct fgw_checkpoint_reader *reader)
{
    struct fgw_car_section section;
    struct fgw_record_head head;
    struct fgw_bytes payload;
    enum fgw_err err =
        reader->offset < reader->size ? read_heads(reader, &section, &head) : FGW_ERR_CORRUPT;
    if (err == FGW_OK) {
        err = head_fits(reader, &head) ? open_record(reader, &section, &payload) : FGW_ERR_CORRUPT;
    }
    if (err != FGW_OK) {
        return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
    }
    pass_record(reader, &head, &section);
    if (reader->ended) {
        return read_end(reader, payload);
    }
    fgw_buf_consume(&reader->items, reader->used);
    reader->used = 0;
    return fgw_buf_append(&reader->items, payload) == FGW_OK ? FGW_OK : FGW_ERR_CORRUPT;
}

/* Names before blocks, keys upwards. */
static bool in_order(struct fgw_checkpoint_reader *reader, const struct fgw_checkpoint_row *row)
{
    bool first = reader->rows == 0 || row->family != reader->family;
    bool fits = first ? reader->rows == 0 || row->family > reader->family
                      : fgw_bytes_cmp(fgw_buf_bytes(&reader->last_key), row->key) < 0;
    reader->family = row->family;
    fgw_buf_clear(&reader->last_key);
    (void)fgw_buf_append(&reader->last_key, row->key);
    reader->rows++;
    return fits;
}

static enum fgw_err take_row(struct fgw_checkpoint_reader *reader, const struct fgw_tlv_item *item,
                             struct fgw_checkpoint_row *out_row)
{
    if (item->tag != FGW_ITEM_ROW_PUT && item->tag != FGW_ITEM_INDEX_PUT) {
        return FGW_ERR_NEWER_VERSION;
    }
    out_row->family = item->tag == FGW_ITEM_ROW_PUT ? FGW_KV_NAMES : FGW_KV_BLOCKS;
    enum fgw_err err = fgw_item_row(item->value, &out_row->key, &out_row->value);
    return err == FGW_OK && !in_order(reader, out_row) ? FGW_ERR_CORRUPT : err;
}

enum fgw_err fgw_checkpoint_reader_next(struct fgw_checkpoint_reader *reader,
                                        struct fgw_checkpoint_row *out_row)
{
    for (;;) {
        struct fgw_bytes rest =
            fgw_bytes_sub(fgw_buf_bytes(&reader->items), reader->used, SIZE_MAX);
        struct fgw_tlv_reader items = fgw_tlv_reader(rest);
        struct fgw_tlv_item item;
        if (fgw_tlv_next(&items, &item) == FGW_OK) {
            reader->used += item.raw.len;
            return take_row(reader, &item, out_row);
        }
        if (reader->ended) {
            return rest.len == 0 && reader->rows == reader->info.rows ? FGW_ERR_END
                                                                      : FGW_ERR_CORRUPT;
        }
        enum fgw_err err = next_record(reader);
        if (err != FGW_OK) {
            return err;
        }
    }
}

uint64_t fgw_checkpoint_reader_offset(const struct fgw_checkpoint_reader *reader)
{
    return reader->offset;
}

const struct fgw_checkpoint_info *
fgw_checkpoint_reader_info(const struct fgw_checkpoint_reader *reader)
{
    return &reader->info;
}

void fgw_checkpoint_reader_close(struct fgw_checkpoint_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    (void)close(reader->fd);
    fgw_buf_deinit(&reader->items);
    fgw_buf_deinit(&reader->last_key);
    fgw_xfree(reader->record);
    fgw_xfree(reader);
}
