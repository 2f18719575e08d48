/* upload.c: multipart uploads of the embedded backend. Parts are insert-only rows; Complete is one
 * operation that checks the upload row, swaps the head and marks the upload completed. Parts that
 * Complete did not use are released afterwards in slices; what a crash leaves of that the sweeper
 * finds, as their owner no longer names them. */
#include "base/clock.h"
#include "meta/lister.h"
#include "meta/rocks/rocks_internal.h"

enum { RELEASE_SLICE = 500, PART_KEY_SIZE = 1 + FGW_META_ID_SIZE + 2 + FGW_META_ID_SIZE };

static enum fgw_err txn_upload(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                               const struct fgw_id *id, struct fgw_upload *out_upload)
{
    struct fgw_bytes row;
    enum fgw_err err = rocks_txn_get(txn, arena, rocks_key_upload(arena, id), &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_upload(arena, id, row, out_upload);
    }
    return err == FGW_ERR_NOT_FOUND ? FGW_ERR_NO_SUCH_UPLOAD : err;
}

static void put_upload(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                       const struct fgw_upload *upload)
{
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_upload(&row, upload);
    fgw_storage_txn_put(txn, rocks_key_upload(arena, &upload->id), fgw_buf_bytes(&row));
    fgw_buf_deinit(&row);
}

struct upload_op {
    struct fgw_storage_op op;
    struct fgw_arena *arena;
    const struct fgw_bucket *bucket;
    struct fgw_upload upload;
    const struct fgw_part *part;
};

/* -- create, get, list ------------------------------------------------------------------------- */

static enum fgw_err evaluate_create(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct upload_op *self = op->context;
    struct fgw_bucket bucket;
    enum fgw_err err = rocks_txn_bucket(txn, self->arena, self->bucket, &bucket);
    if (err != FGW_OK) {
        return err;
    }
    put_upload(txn, self->arena, &self->upload);
    fgw_storage_txn_put(txn,
                        rocks_key_upload_index(self->arena, &bucket.id, self->upload.key,
                                               &self->upload.id),
                        fgw_bytes(NULL, 0));
    return FGW_OK;
}

enum fgw_err rocks_upload_create(struct fgw_meta *meta, struct fgw_arena *arena,
                                 const struct fgw_bucket *bucket, const struct fgw_upload *wanted,
                                 struct fgw_id *out_id, struct fgw_error *error)
{
    struct upload_op self = {.arena = arena, .bucket = bucket, .upload = *wanted};
    self.op = (struct fgw_storage_op){.name = "create-upload", .evaluate = evaluate_create,
                                      .context = &self};
    self.upload.created_ms = fgw_clock_wall_ms();
    fgw_id_version(self.upload.created_ms, NULL, &self.upload.id);
    fgw_id_random(&self.upload.rev);
    self.upload.bucket_id = bucket->id;
    self.upload.bucket_name = bucket->name;
    enum fgw_err err = fgw_storage_commit(rocks_of(meta)->storage, &self.op);
    if (err == FGW_OK) {
        *out_id = self.upload.id;
    }
    return rocks_fail(error, err, "creating upload of", wanted->key);
}

enum fgw_err rocks_upload_get(struct fgw_meta *meta, struct fgw_arena *arena,
                              const struct fgw_bucket *bucket, struct fgw_bytes key,
                              const struct fgw_id *id, struct fgw_upload *out_upload,
                              struct fgw_error *error)
{
    struct fgw_bytes row;
    struct fgw_upload upload;
    enum fgw_err err = rocks_get(rocks_of(meta), arena, rocks_key_upload(arena, id), &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_upload(arena, id, row, &upload);
    }
    bool foreign = err == FGW_OK && (!fgw_id_eq(&upload.bucket_id, &bucket->id) ||
                                     !fgw_bytes_eq(upload.key, key));
    if (err == FGW_ERR_NOT_FOUND || foreign) {
        return fgw_error_set(error, FGW_ERR_NO_SUCH_UPLOAD, NULL);
    }
    if (err == FGW_OK) {
        *out_upload = upload;
    }
    return rocks_fail(error, err, "reading upload of", key);
}

struct upload_scan {
    struct fgw_arena *arena;
    struct fgw_lister lister;
    const struct fgw_upload_list_query *query;
    const struct fgw_bucket *bucket;
    struct fgw_buf seek;
    enum fgw_err err;
};

static enum rocks_scan_next seek_upload(struct upload_scan *scan, struct fgw_bytes *out_seek)
{
    struct fgw_id zero = {{0}};
    struct fgw_bytes key = rocks_key_upload_index(scan->arena, &scan->bucket->id,
                                                  fgw_lister_seek(&scan->lister), &zero);
    fgw_buf_clear(&scan->seek);
    (void)fgw_buf_append(&scan->seek, key);
    *out_seek = fgw_buf_bytes(&scan->seek);
    return ROCKS_SCAN_SEEK;
}

static enum rocks_scan_next take_upload(void *context, struct fgw_bytes row_key,
                                        struct fgw_bytes row, struct fgw_bytes *out_seek)
{
    struct upload_scan *scan = context;
    struct fgw_bytes rest = fgw_bytes_sub(row_key, 1 + FGW_META_ID_SIZE, SIZE_MAX);
    struct fgw_object entry = {0};
    bool take = false;
    (void)row;
    scan->err = rocks_key_unescape(scan->arena, &rest, &entry.key);
    if (scan->err != FGW_OK || rest.len != FGW_META_ID_SIZE) {
        scan->err = FGW_ERR_CORRUPT;
        return ROCKS_SCAN_STOP;
    }
    memcpy(entry.upload_id.bytes, rest.ptr, rest.len);
    enum fgw_lister_next next = fgw_lister_key(&scan->lister, entry.key, true, &take);
    if (take) {
        next = fgw_lister_add(&scan->lister, &entry);
    }
    if (next == FGW_LISTER_SEEK) {
        return seek_upload(scan, out_seek);
    }
    return next == FGW_LISTER_DONE ? ROCKS_SCAN_STOP : ROCKS_SCAN_NEXT;
}

static struct fgw_bytes upload_list_start(struct upload_scan *scan)
{
    const struct fgw_upload_list_query *query = scan->query;
    struct fgw_bytes start = fgw_lister_start(&scan->lister);
    /* a key marker in front of the prefix does not matter any more, nor the id behind it */
    if (!query->has_upload_id_marker || scan->lister.skip_prefix.len > 0 ||
        !fgw_bytes_eq(start, query->key_marker)) {
        struct fgw_id zero = {{0}};
        return rocks_key_upload_index(scan->arena, &scan->bucket->id, start, &zero);
    }
    struct fgw_buf behind;
    fgw_buf_init(&behind, 0);
    (void)fgw_buf_append(&behind,
                         rocks_key_upload_index(scan->arena, &scan->bucket->id, query->key_marker,
                                                &query->upload_id_marker));
    (void)fgw_buf_append_byte(&behind, 0);
    struct fgw_bytes key = fgw_arena_copy(scan->arena, fgw_buf_bytes(&behind));
    fgw_buf_deinit(&behind);
    return key;
}

/* Index entries become uploads; an entry whose row is gone is left out. */
static enum fgw_err fill_uploads(struct fgw_meta *meta, struct upload_scan *scan,
                                 const struct fgw_object_list *found, struct fgw_upload_list *out_list)
{
    struct fgw_upload_list_entry *entries =
        fgw_arena_zalloc(scan->arena, (found->count + 1) * sizeof *entries);
    size_t count = 0;
    for (size_t i = 0; i < found->count; i++) {
        const struct fgw_list_entry *from = &found->entries[i];
        struct fgw_upload_list_entry *to = &entries[count];
        to->is_prefix = from->is_prefix;
        to->prefix = from->prefix;
        enum fgw_err err = FGW_OK;
        if (!from->is_prefix) {
            err = rocks_upload_get(meta, scan->arena, scan->bucket, from->object.key,
                                   &from->object.upload_id, &to->upload, NULL);
        }
        if (err != FGW_OK && err != FGW_ERR_NO_SUCH_UPLOAD) {
            return err;
        }
        count += err == FGW_OK;
    }
    *out_list = (struct fgw_upload_list){entries, count, found->truncated};
    return FGW_OK;
}

enum fgw_err rocks_upload_list(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket,
                               const struct fgw_upload_list_query *query,
                               struct fgw_upload_list *out_list, struct fgw_error *error)
{
    struct fgw_list_query common = {.prefix = query->prefix, .delimiter = query->delimiter,
                                    .after = query->key_marker, .max = query->max,
                                    .has_after_version = query->has_upload_id_marker};
    struct upload_scan scan = {.arena = arena, .query = query, .bucket = bucket};
    struct fgw_object_list found;
    fgw_lister_init(&scan.lister, arena, &common);
    fgw_buf_init(&scan.seek, 0);
    struct fgw_bytes all = rocks_key_of_id(arena, 'U', &bucket->id);
    enum fgw_err err = rocks_scan(rocks_of(meta), upload_list_start(&scan),
                                  rocks_key_end(arena, all), take_upload, &scan);
    err = err == FGW_OK ? scan.err : err;
    if (err == FGW_OK) {
        fgw_lister_result(&scan.lister, &found);
        err = fill_uploads(meta, &scan, &found, out_list);
    }
    fgw_lister_deinit(&scan.lister);
    fgw_buf_deinit(&scan.seek);
    return rocks_fail(error, err, "listing uploads of bucket", bucket->name);
}

/* -- parts ------------------------------------------------------------------------------------- */

static enum fgw_err evaluate_part(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct upload_op *self = op->context;
    struct fgw_upload now;
    enum fgw_err err = txn_upload(txn, self->arena, &self->upload.id, &now);
    if (err != FGW_OK || now.completed) {
        return err != FGW_OK ? err : FGW_ERR_NO_SUCH_UPLOAD;
    }
    struct fgw_part part = *self->part;
    struct fgw_buf row;
    if (op->holds[0].block != NULL) {
        part.extent.first = fgw_storage_txn_place(txn, 0);
    }
    fgw_buf_init(&row, 0);
    fgw_row_encode_part(&row, &part);
    fgw_storage_txn_put(txn,
                        rocks_key_part(self->arena, &now.id, part.number, &part.attempt),
                        fgw_buf_bytes(&row));
    fgw_buf_deinit(&row);
    return FGW_OK;
}

enum fgw_err rocks_part_put(struct fgw_meta *meta, struct fgw_arena *arena,
                            const struct fgw_upload *upload, const struct fgw_part *part,
                            struct fgw_blob_staged *staged, struct fgw_error *error)
{
    struct upload_op self = {.arena = arena, .upload = *upload, .part = part};
    struct fgw_storage_hold hold;
    rocks_hold_of(staged, &hold);
    self.op = (struct fgw_storage_op){.name = "put-part", .evaluate = evaluate_part,
                                      .context = &self, .holds = &hold, .hold_count = 1};
    enum fgw_err err = fgw_storage_commit(rocks_of(meta)->storage, &self.op);
    if (err == FGW_OK) {
        fgw_blob_confirm(staged);
    } else {
        fgw_blob_discard(staged);
    }
    return rocks_fail(error, err, "writing part of", upload->key);
}

struct part_scan {
    struct fgw_part *parts;
    size_t count, cap, max;
    bool all_attempts;
    bool truncated;
    enum fgw_err err;
};

static enum rocks_scan_next take_part(void *context, struct fgw_bytes row_key, struct fgw_bytes row,
                                      struct fgw_bytes *out_seek)
{
    struct part_scan *scan = context;
    struct fgw_part part;
    (void)out_seek;
    scan->err = row_key.len == PART_KEY_SIZE ? fgw_row_decode_part(row, &part) : FGW_ERR_CORRUPT;
    if (scan->err != FGW_OK) {
        return ROCKS_SCAN_STOP;
    }
    /* newest attempt first: later rows of the same number are older */
    if (!scan->all_attempts && scan->count > 0 &&
        scan->parts[scan->count - 1].number == part.number) {
        return ROCKS_SCAN_NEXT;
    }
    if (scan->max != 0 && scan->count == scan->max) {
        scan->truncated = true;
        return ROCKS_SCAN_STOP;
    }
    if (scan->count == scan->cap) {
        scan->cap = scan->cap == 0 ? 64 : scan->cap * 2;
        scan->parts = fgw_xrealloc(scan->parts, scan->cap * sizeof *scan->parts);
    }
    scan->parts[scan->count++] = part;
    return ROCKS_SCAN_NEXT;
}

enum fgw_err rocks_part_list(struct fgw_meta *meta, struct fgw_arena *arena,
                             const struct fgw_upload *upload, unsigned after, unsigned max,
                             bool all_attempts, struct fgw_part **out_parts, size_t *out_count,
                             bool *out_truncated, struct fgw_error *error)
{
    struct part_scan scan = {.max = max, .all_attempts = all_attempts};
    struct fgw_bytes all = rocks_key_of_id(arena, 'p', &upload->id);
    struct fgw_buf lower;
    uint8_t number_be[2];
    fgw_buf_init(&lower, 0);
    fgw_put_u16be(number_be, (uint16_t)(after + 1));
    (void)fgw_buf_append(&lower, all);
    (void)fgw_buf_append(&lower, fgw_bytes(number_be, sizeof number_be));
    enum fgw_err err = rocks_scan(rocks_of(meta), fgw_buf_bytes(&lower), rocks_key_end(arena, all),
                                  take_part, &scan);
    err = err == FGW_OK ? scan.err : err;
    if (err == FGW_OK) {
        struct fgw_part *parts = fgw_arena_alloc(arena, scan.count * sizeof *parts);
        if (scan.count > 0) {
            memcpy(parts, scan.parts, scan.count * sizeof *parts);
        }
        *out_parts = parts;
        *out_count = scan.count;
        *out_truncated = scan.truncated;
    }
    fgw_xfree(scan.parts);
    fgw_buf_deinit(&lower);
    return rocks_fail(error, err, "listing parts of", upload->key);
}

/* -- releasing parts in slices ------------------------------------------------------------------ */

struct release_op {
    struct fgw_storage_op op;
    struct fgw_arena *arena;
    const struct fgw_id *upload_id;
    const struct fgw_part *parts;
    size_t count;
    const struct fgw_object *keep; /* extents of it stay held */
};

/* An object's extents are in the order of its parts, and part numbers lead in extent numbers. */
static bool is_kept(const struct fgw_object *keep, const struct fgw_part *part)
{
    size_t low = 0;
    size_t high = keep == NULL ? 0 : keep->extent_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (keep->extents[middle].number < part->extent.number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return keep != NULL && low < keep->extent_count &&
           keep->extents[low].number == part->extent.number;
}

static enum fgw_err evaluate_release(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct release_op *self = op->context;
    for (size_t i = 0; i < self->count; i++) {
        const struct fgw_part *part = &self->parts[i];
        fgw_storage_txn_delete(
            txn, rocks_key_part(self->arena, self->upload_id, part->number, &part->attempt));
        if (!is_kept(self->keep, part)) {
            fgw_storage_txn_release(txn, self->upload_id->bytes, part->extent.number,
                                    &part->extent.root);
        }
    }
    return FGW_OK;
}

/* Drops the part rows of an upload that no longer takes parts, and the holds not in keep. */
static enum fgw_err release_parts(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_upload *upload, const struct fgw_object *keep)
{
    struct fgw_part *parts;
    size_t count;
    bool truncated;
    enum fgw_err err =
        rocks_part_list(meta, arena, upload, 0, 0, true, &parts, &count, &truncated, NULL);
    for (size_t i = 0; err == FGW_OK && i < count; i += RELEASE_SLICE) {
        size_t left = count - i;
        struct release_op self = {.arena = arena, .upload_id = &upload->id, .parts = parts + i,
                                  .count = left < RELEASE_SLICE ? left : RELEASE_SLICE,
                                  .keep = keep};
        self.op = (struct fgw_storage_op){.name = "release-parts", .evaluate = evaluate_release,
                                          .context = &self, .frees_space = true};
        err = fgw_storage_commit(rocks_of(meta)->storage, &self.op);
    }
    return err;
}

/* -- abort, complete ---------------------------------------------------------------------------- */

static enum fgw_err evaluate_abort(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct upload_op *self = op->context;
    struct fgw_upload now;
    enum fgw_err err = txn_upload(txn, self->arena, &self->upload.id, &now);
    if (err != FGW_OK || now.completed) {
        return err != FGW_OK ? err : FGW_ERR_NO_SUCH_UPLOAD;
    }
    fgw_storage_txn_delete(txn, rocks_key_upload(self->arena, &now.id));
    fgw_storage_txn_delete(
        txn, rocks_key_upload_index(self->arena, &now.bucket_id, now.key, &now.id));
    return FGW_OK;
}

enum fgw_err rocks_upload_abort(struct fgw_meta *meta, struct fgw_arena *arena,
                                const struct fgw_bucket *bucket, const struct fgw_upload *upload,
                                struct fgw_error *error)
{
    struct upload_op self = {.arena = arena, .bucket = bucket, .upload = *upload};
    self.op = (struct fgw_storage_op){.name = "abort-upload", .evaluate = evaluate_abort,
                                      .context = &self, .frees_space = true};
    enum fgw_err err = fgw_storage_commit(rocks_of(meta)->storage, &self.op);
    if (err == FGW_OK) {
        (void)release_parts(meta, arena, upload, NULL);
    }
    return rocks_fail(error, err, "aborting upload of", upload->key);
}

struct complete_op {
    struct fgw_storage_op op;
    struct fgw_arena *arena;
    const struct fgw_complete *complete;
    struct fgw_upload upload;
    struct fgw_object written;
    struct fgw_written answer;
    bool repeated;
    struct fgw_error *error;
};

static enum fgw_err evaluate_complete(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct complete_op *self = op->context;
    const struct fgw_complete *complete = self->complete;
    struct fgw_bucket bucket;
    struct rocks_head head;
    self->repeated = false;
    enum fgw_err err = txn_upload(txn, self->arena, &complete->upload_id, &self->upload);
    if (err == FGW_OK && self->upload.completed) {
        self->repeated = true;
        self->answer = self->upload.answer;
        /* the ETag stands for the list of parts: another list is not answered with this object */
        return fgw_bytes_eq(self->upload.answer_etag, complete->object.etag)
                   ? FGW_OK
                   : FGW_ERR_NO_SUCH_UPLOAD;
    }
    if (err == FGW_OK) {
        err = rocks_txn_bucket(txn, self->arena, complete->bucket, &bucket);
    }
    if (err == FGW_OK) {
        err = rocks_txn_head(txn, self->arena, &bucket.id, complete->object.key, &head);
    }
    if (err == FGW_OK && fgw_conditions_any(&complete->conditions)) {
        bool exists = head.present && !head.object.delete_marker;
        err = fgw_conditions_check(&complete->conditions, exists ? &head.object : NULL,
                                   self->error);
    }
    if (err != FGW_OK) {
        return err;
    }
    self->written = complete->object;
    self->written.upload_id = complete->upload_id;
    err = rocks_txn_write_head(txn, self->arena, &bucket, &head, &self->written);
    if (err != FGW_OK) {
        return err;
    }
    self->answer = (struct fgw_written){.version_id = self->written.version_id,
                                        .is_null = self->written.is_null,
                                        .mtime_ms = self->written.mtime_ms};
    self->upload.completed = true;
    self->upload.answer = self->answer;
    self->upload.answer_etag = complete->object.etag;
    self->upload.answer_checksum = complete->object.checksum;
    put_upload(txn, self->arena, &self->upload);
    fgw_storage_txn_delete(txn, rocks_key_upload_index(self->arena, &bucket.id, self->upload.key,
                                                       &self->upload.id));
    return FGW_OK;
}

enum fgw_err rocks_upload_complete(struct fgw_meta *meta, struct fgw_arena *arena,
                                   const struct fgw_complete *complete,
                                   struct fgw_written *out_written, struct fgw_error *error)
{
    struct complete_op self = {.arena = arena, .complete = complete, .error = error};
    self.op = (struct fgw_storage_op){.name = "complete", .evaluate = evaluate_complete,
                                      .context = &self};
    enum fgw_err err = fgw_storage_commit(rocks_of(meta)->storage, &self.op);
    if (err == FGW_OK) {
        *out_written = self.answer;
        if (!self.repeated) {
            (void)release_parts(meta, arena, &self.upload, &self.written);
        }
    }
    return rocks_fail(error, err, "completing upload of", complete->object.key);
}
