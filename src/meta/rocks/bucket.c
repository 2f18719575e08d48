/* bucket.c: buckets of the embedded backend. A bucket row and its entry under the owner change in
 * one operation; deletion checks for a head row within the same operation, so no PUT that was
 * answered can be lost (a PUT checks the bucket row in its own operation). */
#include "base/clock.h"
#include "meta/rocks/rocks_internal.h"

struct bucket_op {
    struct fgw_storage_op op;
    struct rocks *rocks;
    struct fgw_arena *arena;
    const struct fgw_bucket *wanted;
    struct fgw_bucket result;
    bool exists;
};

enum fgw_err rocks_txn_bucket(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                              const struct fgw_bucket *bucket, struct fgw_bucket *out_bucket)
{
    struct fgw_bytes row;
    enum fgw_err err =
        rocks_txn_get_common(txn, arena, rocks_key_text(arena, 'B', bucket->name), &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_bucket(arena, bucket->name, row, out_bucket);
    }
    if (err == FGW_ERR_NOT_FOUND || (err == FGW_OK && !fgw_id_eq(&out_bucket->id, &bucket->id))) {
        return FGW_ERR_NO_SUCH_BUCKET;
    }
    return err;
}

static void put_bucket(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                       const struct fgw_bucket *bucket)
{
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_bucket(&row, bucket);
    fgw_storage_txn_put(txn, rocks_key_text(arena, 'B', bucket->name), fgw_buf_bytes(&row));
    fgw_buf_deinit(&row);
}

static enum fgw_err evaluate_create(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct bucket_op *self = op->context;
    struct fgw_bytes row;
    struct fgw_bytes key = rocks_key_text(self->arena, 'B', self->wanted->name);
    enum fgw_err err = rocks_txn_get(txn, self->arena, key, &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_bucket(self->arena, self->wanted->name, row, &self->result);
        self->exists = err == FGW_OK;
        return err == FGW_OK ? FGW_ERR_EXISTS : err;
    }
    if (err != FGW_ERR_NOT_FOUND) {
        return err;
    }
    put_bucket(txn, self->arena, &self->result);
    fgw_storage_txn_put(
        txn, rocks_key_text2(self->arena, 'O', self->result.owner_id, self->result.name),
        fgw_bytes(NULL, 0));
    return FGW_OK;
}

enum fgw_err rocks_bucket_create(struct fgw_meta *meta, struct fgw_arena *arena,
                                 const struct fgw_bucket *wanted, struct fgw_bucket *out_bucket,
                                 struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct bucket_op self = {.rocks = rocks, .arena = arena, .wanted = wanted, .result = *wanted};
    self.op = (struct fgw_storage_op){.name = "create-bucket", .evaluate = evaluate_create,
                                      .context = &self};
    fgw_id_random(&self.result.id);
    fgw_id_random(&self.result.rev);
    self.result.created_ms = fgw_clock_wall_ms();
    self.result.shards = wanted->shards == 0 ? 1 : wanted->shards;
    enum fgw_err err = fgw_storage_commit(rocks->storage, &self.op);
    rocks_changed(rocks);
    if (err == FGW_OK || (err == FGW_ERR_EXISTS && self.exists)) {
        *out_bucket = self.result;
    }
    return rocks_fail(error, err, "creating bucket", wanted->name);
}

enum fgw_err rocks_bucket_get(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_bytes name,
                              bool fresh, struct fgw_bucket *out_bucket, struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct fgw_bytes row;
    struct fgw_bytes key = rocks_key_text(arena, 'B', name);
    (void)fresh; /* a snapshot of the present generation is as good as the row */
    enum fgw_err err = rocks_get_snapshot(rocks, arena, key, &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_bucket(arena, name, row, out_bucket);
    }
    if (err == FGW_ERR_NOT_FOUND) {
        return fgw_error_set(error, FGW_ERR_NO_SUCH_BUCKET, NULL);
    }
    return rocks_fail(error, err, "reading bucket", name);
}

static enum fgw_err evaluate_update(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct bucket_op *self = op->context;
    struct fgw_bucket now;
    enum fgw_err err = rocks_txn_bucket(txn, self->arena, self->wanted, &now);
    if (err != FGW_OK) {
        return err;
    }
    if (!fgw_id_eq(&now.rev, &self->wanted->rev)) {
        return FGW_ERR_CONFLICT;
    }
    put_bucket(txn, self->arena, &self->result);
    return FGW_OK;
}

enum fgw_err rocks_bucket_update(struct fgw_meta *meta, struct fgw_arena *arena,
                                 const struct fgw_bucket *bucket, struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct bucket_op self = {.rocks = rocks, .arena = arena, .wanted = bucket, .result = *bucket};
    self.op = (struct fgw_storage_op){.name = "update-bucket", .evaluate = evaluate_update,
                                      .context = &self};
    fgw_id_random(&self.result.rev);
    enum fgw_err err = fgw_storage_commit(rocks->storage, &self.op);
    rocks_changed(rocks);
    return rocks_fail(error, err, "changing bucket", bucket->name);
}

static enum fgw_err evaluate_delete(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct bucket_op *self = op->context;
    struct fgw_bucket now;
    enum fgw_err err = rocks_txn_bucket(txn, self->arena, self->wanted, &now);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_bytes lower = rocks_key_of_id(self->arena, 'o', &now.id);
    err = fgw_storage_txn_any(txn, lower, rocks_key_end(self->arena, lower));
    if (err != FGW_ERR_NOT_FOUND) {
        return err == FGW_OK ? FGW_ERR_BUCKET_NOT_EMPTY : err;
    }
    fgw_storage_txn_delete(txn, rocks_key_text(self->arena, 'B', now.name));
    fgw_storage_txn_delete(txn, rocks_key_text2(self->arena, 'O', now.owner_id, now.name));
    return FGW_OK;
}

static enum fgw_err abort_uploads(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, struct fgw_error *error)
{
    struct fgw_upload_list list = {.truncated = true};
    while (list.truncated) {
        struct fgw_upload_list_query query = {.max = 1000};
        enum fgw_err err = rocks_upload_list(meta, arena, bucket, &query, &list, error);
        for (size_t i = 0; err == FGW_OK && i < list.count; i++) {
            err = rocks_upload_abort(meta, arena, bucket, &list.entries[i].upload, error);
            err = err == FGW_ERR_NO_SUCH_UPLOAD ? FGW_OK : err;
        }
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

enum fgw_err rocks_bucket_delete(struct fgw_meta *meta, struct fgw_arena *arena,
                                 const struct fgw_bucket *bucket, struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct bucket_op self = {.rocks = rocks, .arena = arena, .wanted = bucket};
    self.op = (struct fgw_storage_op){.name = "delete-bucket", .evaluate = evaluate_delete,
                                      .context = &self, .frees_space = true};
    enum fgw_err err = fgw_storage_commit(rocks->storage, &self.op);
    rocks_changed(rocks);
    if (err == FGW_OK) {
        /* uploads that are left belong to a bucket id that no name leads to: finish them here, and
         * what a crash leaves the sweeper finds ownerless */
        (void)abort_uploads(meta, arena, bucket, NULL);
    }
    return rocks_fail(error, err, "deleting bucket", bucket->name);
}

struct bucket_scan {
    struct fgw_arena *arena;
    size_t prefix_len;
    bool decode; /* rows of table 'B'; else names of table 'O' */
    unsigned max;
    struct fgw_bytes *names;
    struct fgw_bucket *buckets;
    size_t count;
    bool truncated;
    enum fgw_err err;
};

static enum rocks_scan_next take_bucket(void *context, struct fgw_bytes key, struct fgw_bytes row,
                                        struct fgw_bytes *out_seek)
{
    struct bucket_scan *scan = context;
    (void)out_seek;
    if (scan->count == scan->max) {
        scan->truncated = true;
        return ROCKS_SCAN_STOP;
    }
    struct fgw_bytes name =
        fgw_arena_copy(scan->arena, fgw_bytes_sub(key, scan->prefix_len, SIZE_MAX));
    if (scan->decode) {
        scan->err = fgw_row_decode_bucket(scan->arena, name, fgw_arena_copy(scan->arena, row),
                                          &scan->buckets[scan->count]);
    }
    scan->names[scan->count++] = name;
    return scan->err == FGW_OK ? ROCKS_SCAN_NEXT : ROCKS_SCAN_STOP;
}

/* Names found under an owner are checked against the bucket rows. */
static enum fgw_err resolve(struct rocks *rocks, struct bucket_scan *scan, struct fgw_bytes owner_id)
{
    size_t kept = 0;
    for (size_t i = 0; i < scan->count; i++) {
        struct fgw_bytes row;
        struct fgw_bucket *bucket = &scan->buckets[kept];
        enum fgw_err err =
            rocks_get(rocks, scan->arena, rocks_key_text(scan->arena, 'B', scan->names[i]), &row);
        if (err == FGW_ERR_NOT_FOUND) {
            continue;
        }
        if (err == FGW_OK) {
            err = fgw_row_decode_bucket(scan->arena, scan->names[i], row, bucket);
        }
        if (err != FGW_OK) {
            return err;
        }
        kept += fgw_bytes_eq(bucket->owner_id, owner_id);
    }
    scan->count = kept;
    return FGW_OK;
}

enum fgw_err rocks_bucket_list(struct fgw_meta *meta, struct fgw_arena *arena,
                               struct fgw_bytes owner_id, struct fgw_bytes after, unsigned max,
                               struct fgw_bucket **out_buckets, size_t *out_count,
                               bool *out_truncated, struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    bool all = owner_id.len == 0;
    struct fgw_bytes prefix = all ? rocks_key_text(arena, 'B', fgw_bytes(NULL, 0))
                                  : rocks_key_text2(arena, 'O', owner_id, fgw_bytes(NULL, 0));
    struct bucket_scan scan = {.arena = arena, .prefix_len = prefix.len, .decode = all, .max = max};
    scan.names = fgw_arena_alloc(arena, max * sizeof *scan.names);
    scan.buckets = fgw_arena_zalloc(arena, max * sizeof *scan.buckets);
    struct fgw_buf lower;
    fgw_buf_init(&lower, 0);
    (void)fgw_buf_append(&lower, prefix);
    if (after.len > 0) {
        (void)fgw_buf_append(&lower, after);
        (void)fgw_buf_append_byte(&lower, 0);
    }
    enum fgw_err err = rocks_scan(rocks, fgw_buf_bytes(&lower), rocks_key_end(arena, prefix),
                                  take_bucket, &scan);
    fgw_buf_deinit(&lower);
    err = err == FGW_OK ? scan.err : err;
    if (err == FGW_OK && !all) {
        err = resolve(rocks, &scan, owner_id);
    }
    if (err == FGW_OK) {
        *out_buckets = scan.buckets;
        *out_count = scan.count;
        *out_truncated = scan.truncated;
    }
    return rocks_fail(error, err, "listing buckets of", owner_id);
}
