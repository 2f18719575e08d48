/* checkpoint_write.c: one checkpoint file from a snapshot of the index; see checkpoint.h.
 *
 * Commit point: the rename in fgw_checkpoint_writer_finish. Crash argument: before it the file lies
 * in tmp/ and is thrown away by the next opening; the rename comes after the sync of all its bytes.
 * Memory: one record and the item at its edge.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fs.h"
#include "storage/checkpoint.h"
#include "storage/rows.h"

enum { TMP_NAME_SIZE = FGW_GROUP_NAME_SIZE + 16 };

struct fgw_checkpoint_writer {
    struct fgw_checkpoint_writer_options options;
    char name[FGW_GROUP_NAME_SIZE];
    char tmp_name[TMP_NAME_SIZE];
    int fd;
    bool in_tmp;
    struct fgw_kv_snapshot *snapshot;
    struct fgw_kv_iter *iter; /* NULL: between two families */
    int family;               /* FGW_KV_FAMILIES: all is read */
    struct fgw_applied applied;
    struct fgw_buf items;   /* not yet in a record */
    struct fgw_buf section; /* being written */
    uint64_t end;           /* of the file */
    uint64_t previous;      /* offset of the last record */
    uint32_t part;
    uint64_t rows;
};

/* Of the index as the snapshot has it. */
static enum fgw_err read_applied(struct fgw_checkpoint_writer *writer)
{
    struct fgw_row_key key = fgw_row_key_applied();
    struct fgw_kv_scan scan = {
        .family = FGW_KV_BLOCKS, .lower = fgw_row_key_bytes(&key), .snapshot = writer->snapshot};
    struct fgw_kv_iter *iter = fgw_kv_iter_scan(writer->options.kv, &scan);
    fgw_kv_iter_seek_first(iter);
    enum fgw_err err = fgw_kv_iter_status(iter, NULL);
    if (err == FGW_OK && (!fgw_kv_iter_valid(iter) ||
                          !fgw_bytes_eq(fgw_kv_iter_key(iter), fgw_row_key_bytes(&key)))) {
        err = FGW_ERR_NOT_FOUND;
    }
    if (err == FGW_OK) {
        err = fgw_applied_decode(fgw_kv_iter_value(iter), &writer->applied);
    }
    fgw_kv_iter_free(iter);
    return err;
}

static enum fgw_err create_file(struct fgw_checkpoint_writer *writer)
{
    uint8_t header[FGW_CAR_HEADER_SIZE];
    struct fgw_cid root = fgw_car_placeholder_root();
    writer->fd = openat(writer->options.dir->tmp, writer->tmp_name,
                        O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (writer->fd < 0) {
        return fgw_err_from_errno(errno);
    }
    writer->in_tmp = true;
    fgw_car_header_encode(&root, header);
    writer->end = sizeof header;
    return fgw_fs_pwrite(writer->fd, fgw_bytes(header, sizeof header), 0);
}

enum fgw_err fgw_checkpoint_writer_new(const struct fgw_checkpoint_writer_options *options,
                                       struct fgw_checkpoint_writer **out_writer)
{
    struct fgw_checkpoint_writer *writer = fgw_xcalloc(1, sizeof *writer);
    writer->options = *options;
    writer->fd = -1;
    fgw_group_name(options->id, writer->name);
    (void)snprintf(writer->tmp_name, sizeof writer->tmp_name, "checkpoint-%s", writer->name);
    fgw_buf_init(&writer->items, 0);
    fgw_buf_init(&writer->section, 0);
    writer->snapshot = fgw_kv_snapshot_new(options->kv);
    enum fgw_err err = read_applied(writer);
    if (err == FGW_OK) {
        err = create_file(writer);
    }
    if (err != FGW_OK) {
        fgw_checkpoint_writer_free(writer);
        return err;
    }
    *out_writer = writer;
    return FGW_OK;
}

static enum fgw_err put_record(struct fgw_checkpoint_writer *writer, enum fgw_record_kind kind,
                               struct fgw_bytes payload)
{
    writer->part++;
    struct fgw_record_head head = {.kind = (uint8_t)kind,
                                   .batch = writer->applied.batch,
                                   .part = writer->part,
                                   .parts = writer->part,
                                   .previous = writer->previous};
    struct fgw_record_place place = {fgw_checkpoint_group(writer->options.id), writer->end};
    fgw_buf_clear(&writer->section);
    fgw_group_put_record(&writer->section, &writer->options.sealer, &head, place, payload);
    enum fgw_err err = fgw_fs_pwrite(writer->fd, fgw_buf_bytes(&writer->section), writer->end);
    writer->previous = writer->end;
    writer->end += writer->section.len;
    return err;
}

/* Whole records first; `all`: the rest too. */
static enum fgw_err put_records(struct fgw_checkpoint_writer *writer, bool all)
{
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK &&
           (writer->items.len >= FGW_RECORD_PAYLOAD_MAX || (all && writer->items.len > 0))) {
        struct fgw_bytes payload =
            fgw_bytes_sub(fgw_buf_bytes(&writer->items), 0, FGW_RECORD_PAYLOAD_MAX);
        err = put_record(writer, FGW_RECORD_CHECKPOINT, payload);
        fgw_buf_consume(&writer->items, payload.len);
    }
    return err;
}

static void next_family(struct fgw_checkpoint_writer *writer)
{
    struct fgw_kv_scan scan = {.family = (enum fgw_kv_family)writer->family,
                               .snapshot = writer->snapshot,
                               .background = true};
    writer->iter = fgw_kv_iter_scan(writer->options.kv, &scan);
    fgw_kv_iter_seek_first(writer->iter);
}

/* Until about `until` bytes of the file are written or no row is left. */
static enum fgw_err put_rows(struct fgw_checkpoint_writer *writer, uint64_t until)
{
    enum fgw_item_tag tag = writer->family == FGW_KV_NAMES ? FGW_ITEM_ROW_PUT : FGW_ITEM_INDEX_PUT;
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK && writer->end < until && fgw_kv_iter_valid(writer->iter)) {
        fgw_item_put_row(&writer->items, tag, fgw_kv_iter_key(writer->iter),
                         fgw_kv_iter_value(writer->iter));
        writer->rows++;
        fgw_kv_iter_next(writer->iter);
        err = put_records(writer, false);
    }
    return err == FGW_OK ? fgw_kv_iter_status(writer->iter, NULL) : err;
}

enum fgw_err fgw_checkpoint_writer_step(struct fgw_checkpoint_writer *writer, size_t bytes,
                                        bool *out_done)
{
    uint64_t until = writer->end + bytes;
    /* a store that failed is opened again only once nobody reads it */
    enum fgw_err err = fgw_kv_writable(writer->options.kv, NULL);
    while (err == FGW_OK && writer->end < until && writer->family < FGW_KV_FAMILIES) {
        if (writer->iter == NULL) {
            next_family(writer);
        }
        err = put_rows(writer, until);
        if (err == FGW_OK && !fgw_kv_iter_valid(writer->iter)) {
            fgw_kv_iter_free(writer->iter);
            writer->iter = NULL;
            writer->family++;
        }
    }
    bool done = err == FGW_OK && writer->family == FGW_KV_FAMILIES;
    if (done) {
        err = put_records(writer, true);
    }
    if (err == FGW_OK) {
        err = fgw_fs_fdatasync(writer->fd); /* little by little: the log's syncs do not wait long */
    }
    *out_done = done;
    return err;
}

static enum fgw_err put_end(struct fgw_checkpoint_writer *writer,
                            const struct fgw_checkpoint_info *info)
{
    struct fgw_buf payload;
    fgw_buf_init(&payload, 0);
    fgw_item_put_u64(&payload, FGW_ITEM_RUNNING_MS, info->running_ms);
    fgw_item_put_predecessor(&payload, &info->position);
    fgw_item_put_u64(&payload, FGW_ITEM_ROW_COUNT, info->rows);
    enum fgw_err err = put_record(writer, FGW_RECORD_CHECKPOINT_END, fgw_buf_bytes(&payload));
    fgw_buf_deinit(&payload);
    return err;
}

enum fgw_err fgw_checkpoint_writer_finish(struct fgw_checkpoint_writer *writer,
                                          struct fgw_checkpoint_info *out_info)
{
    const struct fgw_datadir *dir = writer->options.dir;
    const struct fgw_applied *applied = &writer->applied;
    struct fgw_checkpoint_info info = {.id = writer->options.id,
                                       .position = {applied->group, applied->end, applied->batch},
                                       .running_ms = applied->running_ms,
                                       .rows = writer->rows};
    enum fgw_err err = put_end(writer, &info);
    if (err == FGW_OK) {
        err = fgw_kv_sync_wal(writer->options.kv, NULL);
    }
    if (err == FGW_OK) {
        err = fgw_fs_commit_durable(writer->fd, dir->tmp, writer->tmp_name, dir->checkpoints,
                                    writer->name);
        writer->in_tmp = false;
    }
    if (err == FGW_OK) {
        info.size_bytes = writer->end;
        *out_info = info;
    }
    return err;
}

void fgw_checkpoint_writer_free(struct fgw_checkpoint_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    fgw_kv_iter_free(writer->iter);
    fgw_kv_snapshot_free(writer->snapshot);
    if (writer->in_tmp) {
        (void)!fgw_fs_unlink(writer->options.dir->tmp, writer->tmp_name);
    }
    if (writer->fd >= 0) {
        (void)close(writer->fd);
    }
    fgw_buf_deinit(&writer->items);
    fgw_buf_deinit(&writer->section);
    fgw_xfree(writer);
}
