/* log_scan.c: see log_scan.h. */
#include "storage/log_scan.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/fs.h"

void fgw_log_scan_init(struct fgw_log_scan *scan, int fd, uint64_t group, uint64_t size,
                       uint64_t offset, struct fgw_record_opener *opener)
{
    *scan = (struct fgw_log_scan){.fd = fd,
                                  .group = group,
                                  .size = size,
                                  .offset = offset,
                                  .opener = opener,
                                  .record = fgw_xmalloc((size_t)2 * FGW_RECORD_SIZE_MAX),
                                  .window = fgw_xmalloc(FGW_LOG_WINDOW_SIZE)};
    fgw_buf_init(&scan->items, (size_t)FGW_RECORD_PARTS_MAX * FGW_RECORD_SIZE_MAX);
}

void fgw_log_scan_deinit(struct fgw_log_scan *scan)
{
    fgw_buf_deinit(&scan->items);
    fgw_xfree(scan->record);
    fgw_xfree(scan->window);
}

/* Up to `want` bytes at offset, fewer only at the end of what is looked at. */
static enum fgw_err view(struct fgw_log_scan *scan, uint64_t offset, size_t want,
                         struct fgw_bytes *out_bytes)
{
    uint64_t left = offset < scan->size ? scan->size - offset : 0;
    want = want < left ? want : (size_t)left;
    if (offset < scan->window_offset ||
        offset + want > scan->window_offset + scan->window_len) {
        size_t len = left < FGW_LOG_WINDOW_SIZE ? (size_t)left : FGW_LOG_WINDOW_SIZE;
        scan->window_len = 0;
        enum fgw_err err = fgw_fs_pread(scan->fd, scan->window, len, offset);
        if (err != FGW_OK) {
            return err == FGW_ERR_END ? FGW_ERR_IO : err;
        }
        scan->window_offset = offset;
        scan->window_len = len;
    }
    *out_bytes = fgw_bytes(scan->window + (offset - scan->window_offset), want);
    return FGW_OK;
}

/* One section of the walk. */
struct step {
    uint64_t end; /* behind the section */
    bool is_record;
    struct fgw_record_head head;
    struct fgw_bytes payload;
};

static bool could_be_record(const struct fgw_car_section *section, struct fgw_bytes front)
{
    return section->cid.codec == FGW_CODEC_RAW &&
           section->block_size >= FGW_RECORD_HEAD_SIZE + FGW_AEAD_TAG_SIZE &&
           section->block_size <= FGW_RECORD_SIZE_MAX &&
           fgw_record_magic(fgw_bytes_sub(front, section->head_size, SIZE_MAX));
}

/* A block that begins like a record: ours, an object that holds a copy of one, or damage. */
static enum fgw_err read_record(struct fgw_log_scan *scan, uint64_t offset,
                                const struct fgw_car_section *section, struct step *step)
{
    uint8_t digest[FGW_SHA256_SIZE];
    memcpy(digest, section->cid.digest.ptr, sizeof digest); /* the view goes with the window */
    struct fgw_bytes record = fgw_bytes(scan->record, section->block_size);
    enum fgw_err err =
        fgw_fs_pread(scan->fd, scan->record, record.len, offset + section->head_size);
    if (err != FGW_OK) {
        return FGW_ERR_IO;
    }
    err = fgw_record_open(scan->opener, record, (struct fgw_record_place){scan->group, offset},
                          scan->record + FGW_RECORD_SIZE_MAX, &step->head, &step->payload);
    if (err == FGW_OK) {
        step->is_record = true;
        return FGW_OK;
    }
    uint8_t actual[FGW_SHA256_SIZE];
    fgw_sha256(record, actual);
    return memcmp(actual, digest, sizeof actual) == 0 ? FGW_OK : FGW_ERR_CORRUPT;
}

static enum fgw_err step_at(struct fgw_log_scan *scan, uint64_t offset, struct step *step)
{
    struct fgw_bytes front;
    struct fgw_car_section section;
    enum fgw_err err = view(scan, offset, FGW_CAR_SECTION_HEAD_MAX + 8, &front);
    if (err != FGW_OK) {
        return err;
    }
    if (fgw_car_section_decode(front, &section) != FGW_OK ||
        section.cid.digest.len != FGW_SHA256_SIZE ||
        section.head_size + section.block_size > scan->size - offset) {
        return FGW_ERR_CORRUPT;
    }
    *step = (struct step){.end = offset + section.head_size + section.block_size};
    return could_be_record(&section, front) ? read_record(scan, offset, &section, step) : FGW_OK;
}

static bool all_zero(struct fgw_bytes bytes)
{
    return bytes.len == 0 ||
           (bytes.ptr[0] == 0 && memcmp(bytes.ptr, bytes.ptr + 1, bytes.len - 1) == 0);
}

/* FGW_ERR_END when nothing but zero bytes follows, FGW_OK when something does. */
static enum fgw_err check_end(struct fgw_log_scan *scan)
{
    for (uint64_t at = scan->offset; at < scan->size;) {
        struct fgw_bytes piece;
        enum fgw_err err = view(scan, at, FGW_LOG_WINDOW_SIZE, &piece);
        if (err != FGW_OK) {
            return err;
        }
        if (!all_zero(piece)) {
            return FGW_OK;
        }
        at += piece.len;
    }
    return FGW_ERR_END;
}

static bool part_fits(const struct fgw_log_scan *scan, const struct fgw_record_head *head,
                      const struct fgw_log_batch *batch, uint32_t expected_part, uint32_t parts)
{
    if (head->kind != FGW_RECORD_BATCH || head->part != expected_part ||
        head->parts > FGW_RECORD_PARTS_MAX) {
        return false;
    }
    if (expected_part == 1) {
        return scan->previous_record == 0 || head->previous == scan->previous_record;
    }
    return head->parts == parts && head->batch == batch->number &&
           head->previous == batch->last_record;
}

static enum fgw_err read_parts(struct fgw_log_scan *scan, struct step *step, uint64_t offset,
                               struct fgw_log_batch *batch)
{
    uint32_t parts = step->head.parts;
    batch->blocks_end = offset;
    batch->number = step->head.batch;
    batch->unsynced = (step->head.flags & FGW_RECORD_UNSYNCED) != 0;
    fgw_buf_clear(&scan->items);
    for (uint32_t part = 1;; part++) {
        if (!step->is_record || !part_fits(scan, &step->head, batch, part, parts) ||
            fgw_buf_append(&scan->items, step->payload) != FGW_OK) {
            return FGW_ERR_CORRUPT;
        }
        batch->last_record = offset;
        offset = step->end;
        if (part == parts) {
            break;
        }
        enum fgw_err err = step_at(scan, offset, step);
        if (err != FGW_OK) {
            return err;
        }
    }
    batch->end = offset;
    batch->items = fgw_buf_bytes(&scan->items);
    return FGW_OK;
}

enum fgw_err fgw_log_scan_next(struct fgw_log_scan *scan, struct fgw_log_batch *out_batch)
{
    struct fgw_log_batch batch = {.start = scan->offset};
    struct step step;
    uint64_t offset = scan->offset;
    struct fgw_bytes front;
    enum fgw_err err = view(scan, offset, 1, &front);
    if (err == FGW_OK && (front.len == 0 || front.ptr[0] == 0)) {
        err = check_end(scan);
        return err == FGW_OK ? FGW_ERR_CORRUPT : err;
    }
    while (err == FGW_OK) {
        err = step_at(scan, offset, &step);
        if (err == FGW_OK && step.is_record) {
            err = read_parts(scan, &step, offset, &batch);
            break;
        }
        offset = step.end;
    }
    if (err == FGW_OK) {
        scan->offset = batch.end;
        scan->previous_record = batch.last_record;
        *out_batch = batch;
    }
    return err;
}

enum fgw_err fgw_log_scan_record(struct fgw_log_scan *scan, struct fgw_log_batch *out_batch)
{
    struct step step;
    enum fgw_err err = step_at(scan, scan->offset, &step);
    if (err != FGW_OK) {
        return err;
    }
    if (!step.is_record || step.head.kind != FGW_RECORD_BATCH ||
        step.head.part != step.head.parts) {
        return FGW_ERR_CORRUPT;
    }
    *out_batch = (struct fgw_log_batch){.number = step.head.batch, .end = step.end};
    return FGW_OK;
}

/* -- behind the last whole batch ------------------------------------------------------------ */

/* A magic stands at `at`: an authentic record there? */
static enum fgw_err try_record(struct fgw_log_scan *scan, uint64_t at, struct fgw_record_head *head,
                               uint64_t *out_section)
{
    struct fgw_bytes front;
    struct fgw_bytes payload;
    enum fgw_err err = view(scan, at, FGW_RECORD_HEAD_SIZE, &front);
    if (err != FGW_OK) {
        return err;
    }
    if (fgw_record_head_decode(front, head) != FGW_OK) {
        return FGW_ERR_CORRUPT;
    }
    size_t size = fgw_record_size(head->payload_length);
    size_t head_size = fgw_car_section_size(size) - size;
    if (size > scan->size - at || at < head_size) {
        return FGW_ERR_CORRUPT;
    }
    if (fgw_fs_pread(scan->fd, scan->record, size, at) != FGW_OK) {
        return FGW_ERR_IO;
    }
    *out_section = at - head_size;
    return fgw_record_open(scan->opener, fgw_bytes(scan->record, size),
                           (struct fgw_record_place){scan->group, at - head_size},
                           scan->record + FGW_RECORD_SIZE_MAX, head, &payload);
}

/* The next authentic record at or behind *at; *at is then behind its magic. FGW_ERR_END. */
static enum fgw_err next_record(struct fgw_log_scan *scan, uint64_t *at,
                                struct fgw_record_head *head, uint64_t *out_section)
{
    static const struct fgw_bytes MAGIC = {(const uint8_t *)"FGWRECRD", 8};
    while (scan->size > *at && scan->size - *at >= FGW_RECORD_HEAD_SIZE) {
        struct fgw_bytes piece;
        enum fgw_err err = view(scan, *at, FGW_LOG_WINDOW_SIZE, &piece);
        if (err != FGW_OK) {
            return err;
        }
        size_t found = fgw_bytes_find(piece, MAGIC, 0);
        if (found == SIZE_MAX) {
            *at += piece.len - (MAGIC.len - 1);
            continue;
        }
        err = try_record(scan, *at + found, head, out_section);
        *at += found + 1;
        if (err == FGW_OK || err == FGW_ERR_IO) {
            return err;
        }
    }
    return FGW_ERR_END;
}

static void note_record(struct fgw_log_tail *tail, const struct fgw_record_head *head,
                        uint64_t section, uint64_t last)
{
    if (head->kind != FGW_RECORD_BATCH || head->batch <= last + 1) {
        return;
    }
    if (!tail->later_batch) {
        tail->later_batch = true;
        tail->all_unsynced = true;
        tail->batch = head->batch;
        tail->offset = section;
    }
    tail->all_unsynced = tail->all_unsynced && (head->flags & FGW_RECORD_UNSYNCED) != 0;
}

enum fgw_err fgw_log_scan_tail(struct fgw_log_scan *scan, uint64_t last,
                               struct fgw_log_tail *out_tail)
{
    struct fgw_log_tail tail = {0};
    struct fgw_record_head head;
    uint64_t at = scan->offset;
    uint64_t section;
    enum fgw_err err;
    while ((err = next_record(scan, &at, &head, &section)) == FGW_OK) {
        note_record(&tail, &head, section, last);
    }
    if (err != FGW_ERR_END) {
        return err;
    }
    *out_tail = tail;
    return FGW_OK;
}

enum fgw_err fgw_log_scan_resync(struct fgw_log_scan *scan, uint64_t last)
{
    struct fgw_record_head head;
    uint64_t at = scan->offset + 1;
    uint64_t section;
    enum fgw_err err;
    while ((err = next_record(scan, &at, &head, &section)) == FGW_OK) {
        if (head.kind == FGW_RECORD_BATCH && head.part == 1 && head.batch > last) {
            scan->offset = section;
            scan->previous_record = 0;
            return FGW_OK;
        }
    }
    return err;
}
