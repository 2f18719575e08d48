/* object.c: reading and writing objects in the embedded backend. A PUT is one operation: bucket
 * row, head row and conditions are looked at, and the new head, the moved old one and the holds
 * change, in one step of the committer. */
#include "base/clock.h"
#include "base/rng.h"
#include "meta/rocks/rocks_internal.h"

static enum fgw_err read_row(struct rocks *rocks, struct fgw_arena *arena, struct fgw_bytes row_key,
                             struct fgw_bytes key, struct rocks_head *out)
{
    struct fgw_bytes row;
    enum fgw_err err = rocks_get(rocks, arena, row_key, &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_object(arena, key, row, FGW_ROW_FULL, &out->object, &out->state);
        out->present = err == FGW_OK;
    }
    return err;
}

static enum fgw_err get_latest(struct rocks *rocks, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, struct fgw_bytes key,
                               struct rocks_head *out)
{
    enum fgw_err err = read_row(rocks, arena, rocks_key_head(arena, &bucket->id, key), key, out);
    return err == FGW_ERR_NOT_FOUND ? FGW_ERR_NO_SUCH_KEY : err;
}

/* Head first, then the versions; a version that was promoted in between is found at the second
 * look. */
static enum fgw_err get_version(struct rocks *rocks, struct fgw_arena *arena,
                                const struct fgw_bucket *bucket, struct fgw_bytes key,
                                struct fgw_version version, struct rocks_head *out)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        struct rocks_head head = {0};
        enum fgw_err err =
            read_row(rocks, arena, rocks_key_head(arena, &bucket->id, key), key, &head);
        if (err != FGW_OK) {
            return err == FGW_ERR_NOT_FOUND ? FGW_ERR_NO_SUCH_VERSION : err;
        }
        bool is_head = version.kind == FGW_VERSION_NULL
                           ? head.object.is_null
                           : fgw_id_eq(&head.object.version_id, &version.id);
        if (is_head) {
            *out = head;
            out->object.latest = true;
            return FGW_OK;
        }
        struct fgw_id id = version.kind == FGW_VERSION_NULL ? head.state.null_version : version.id;
        if (fgw_id_is_zero(&id)) {
            return FGW_ERR_NO_SUCH_VERSION;
        }
        err = read_row(rocks, arena, rocks_key_version(arena, &bucket->id, key, &id), key, out);
        if (err != FGW_ERR_NOT_FOUND) {
            /* the null version is addressed as "null" only */
            bool by_hidden_id =
                err == FGW_OK && version.kind == FGW_VERSION_ID && out->object.is_null;
            return by_hidden_id ? FGW_ERR_NO_SUCH_VERSION : err;
        }
    }
    return FGW_ERR_NO_SUCH_VERSION;
}

enum fgw_err rocks_object_get(struct fgw_meta *meta, struct fgw_arena *arena,
                              const struct fgw_bucket *bucket, struct fgw_bytes key,
                              struct fgw_version version, struct fgw_object *out_object,
                              struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct rocks_head found = {0};
    enum fgw_err err;
    if (version.kind == FGW_VERSION_LATEST) {
        err = get_latest(rocks, arena, bucket, key, &found);
        found.object.latest = true;
    } else {
        err = get_version(rocks, arena, bucket, key, version, &found);
    }
    if (err == FGW_OK) {
        *out_object = found.object;
    }
    return rocks_fail(error, err, "reading object", key);
}

/* -- writing ---------------------------------------------------------------------------------- */

enum fgw_err rocks_txn_head(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                            const struct fgw_id *bucket_id, struct fgw_bytes key,
                            struct rocks_head *out_head)
{
    struct fgw_bytes row;
    memset(out_head, 0, sizeof *out_head);
    enum fgw_err err = rocks_txn_get(txn, arena, rocks_key_head(arena, bucket_id, key), &row);
    if (err == FGW_ERR_NOT_FOUND) {
        return FGW_OK;
    }
    if (err == FGW_OK) {
        err = fgw_row_decode_object(arena, key, row, FGW_ROW_FULL, &out_head->object,
                                    &out_head->state);
        out_head->present = err == FGW_OK;
    }
    return err;
}

void rocks_txn_release(struct fgw_storage_txn *txn, const struct fgw_object *object)
{
    for (size_t i = 0; i < object->extent_count; i++) {
        fgw_storage_txn_release(txn, object->owner_id.bytes, object->extents[i].number,
                                &object->extents[i].root);
    }
}

static void put_object_row(struct fgw_storage_txn *txn, struct fgw_bytes row_key,
                           const struct fgw_object *object, const struct fgw_row_state *state)
{
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_object(&row, object, state);
    fgw_storage_txn_put(txn, row_key, fgw_buf_bytes(&row));
    fgw_buf_deinit(&row);
}

/* Removes the noncurrent null version, whose place the new null version takes. */
static enum fgw_err drop_null(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                              const struct fgw_bucket *bucket, struct fgw_bytes key,
                              const struct fgw_id *null_version)
{
    struct fgw_bytes row;
    struct fgw_object old;
    struct fgw_bytes row_key = rocks_key_version(arena, &bucket->id, key, null_version);
    enum fgw_err err = rocks_txn_get(txn, arena, row_key, &row);
    if (err == FGW_ERR_NOT_FOUND) {
        return FGW_OK;
    }
    if (err == FGW_OK) {
        err = fgw_row_decode_object(arena, key, row, FGW_ROW_FULL, &old, NULL);
    }
    if (err == FGW_OK) {
        rocks_txn_release(txn, &old);
        fgw_storage_txn_delete(txn, row_key);
    }
    return err;
}

enum fgw_err rocks_txn_write_head(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, const struct rocks_head *before,
                                  struct fgw_object *object)
{
    bool versioned = bucket->versioning == FGW_VERSIONING_ENABLED;
    struct fgw_row_state state = {0};
    fgw_id_version(fgw_clock_wall_ms(), before->present ? &before->object.version_id : NULL,
                   &object->version_id);
    object->mtime_ms = fgw_id_version_ms(&object->version_id);
    object->is_null = !versioned;
    fgw_id_random(&object->rev);
    if (before->present) {
        const struct fgw_object *old = &before->object;
        if (!versioned && old->is_null) {
            rocks_txn_release(txn, old);
        } else {
            put_object_row(txn, rocks_key_version(arena, &bucket->id, object->key, &old->version_id),
                           old, NULL);
            state.null_version = old->is_null ? old->version_id : before->state.null_version;
        }
        if (!versioned && !fgw_id_is_zero(&before->state.null_version)) {
            enum fgw_err err =
                drop_null(txn, arena, bucket, object->key, &before->state.null_version);
            if (err != FGW_OK) {
                return err;
            }
            memset(&state.null_version, 0, sizeof state.null_version);
        }
    }
    put_object_row(txn, rocks_key_head(arena, &bucket->id, object->key), object, &state);
    return FGW_OK;
}

struct put_op {
    struct fgw_storage_op op;
    struct fgw_arena *arena;
    struct fgw_put *put;
    struct fgw_extent *extents;
    struct fgw_object written;
    struct fgw_error *error;
};

static enum fgw_err evaluate_put(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct put_op *self = op->context;
    struct fgw_put *put = self->put;
    struct fgw_bucket bucket;
    struct rocks_head head;
    enum fgw_err err = rocks_txn_bucket(txn, self->arena, put->bucket, &bucket);
    if (err == FGW_OK) {
        err = rocks_txn_head(txn, self->arena, &bucket.id, put->object.key, &head);
    }
    if (err == FGW_OK && fgw_conditions_any(&put->conditions)) {
        bool exists = head.present && !head.object.delete_marker;
        err = fgw_conditions_check(&put->conditions, exists ? &head.object : NULL, self->error);
    }
    if (err != FGW_OK) {
        return err;
    }
    self->written = put->object;
    for (size_t i = 0; i < put->staged_count; i++) {
        self->extents[i] = put->staged[i].extent;
        if (put->staged[i].in_memory) {
            self->extents[i].first = fgw_storage_txn_place(txn, i);
        }
    }
    if (put->staged_count > 0) {
        self->written.extents = self->extents;
        self->written.extent_count = put->staged_count;
    }
    return rocks_txn_write_head(txn, self->arena, &bucket, &head, &self->written);
}

void rocks_hold_of(const struct fgw_blob_staged *staged, struct fgw_storage_hold *out_hold)
{
    *out_hold = (struct fgw_storage_hold){.owner = &staged->owner,
                                          .extent = staged->extent.number,
                                          .root = staged->extent.root,
                                          .size_bytes = staged->extent.size,
                                          .block = staged->in_memory ? &staged->block : NULL,
                                          .finished_writer =
                                              !staged->in_memory && !staged->held_copy};
}

enum fgw_err rocks_object_put(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_put *put,
                              struct fgw_written *out_written, struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct put_op self = {.arena = arena, .put = put, .error = error};
    struct fgw_storage_hold *holds = fgw_arena_alloc(arena, put->staged_count * sizeof *holds);
    self.extents = fgw_arena_alloc(arena, put->staged_count * sizeof *self.extents);
    for (size_t i = 0; i < put->staged_count; i++) {
        rocks_hold_of(&put->staged[i], &holds[i]);
    }
    self.op = (struct fgw_storage_op){.name = "put", .evaluate = evaluate_put, .context = &self,
                                      .holds = holds, .hold_count = put->staged_count};
    enum fgw_err err = fgw_storage_commit(rocks->storage, &self.op);
    for (size_t i = 0; i < put->staged_count; i++) {
        if (err == FGW_OK) {
            fgw_blob_confirm(&put->staged[i]);
        } else {
            fgw_blob_discard(&put->staged[i]);
        }
    }
    if (err == FGW_OK) {
        *out_written = (struct fgw_written){.version_id = self.written.version_id,
                                            .is_null = self.written.is_null,
                                            .mtime_ms = self.written.mtime_ms};
    }
    return rocks_fail(error, err, "writing object", put->object.key);
}

/* -- changing what is beside the bytes --------------------------------------------------------- */

struct update_op {
    struct fgw_storage_op op;
    struct fgw_arena *arena;
    const struct fgw_bucket *bucket;
    const struct fgw_object *wanted;
};

static enum fgw_err evaluate_update(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct update_op *self = op->context;
    const struct fgw_object *wanted = self->wanted;
    struct fgw_bucket bucket;
    struct rocks_head row;
    enum fgw_err err = rocks_txn_bucket(txn, self->arena, self->bucket, &bucket);
    if (err == FGW_OK) {
        err = rocks_txn_head(txn, self->arena, &bucket.id, wanted->key, &row);
    }
    struct fgw_bytes row_key = rocks_key_head(self->arena, &bucket.id, wanted->key);
    if (err == FGW_OK && row.present && !fgw_id_eq(&row.object.version_id, &wanted->version_id)) {
        struct fgw_bytes bytes;
        row_key = rocks_key_version(self->arena, &bucket.id, wanted->key, &wanted->version_id);
        err = rocks_txn_get(txn, self->arena, row_key, &bytes);
        if (err == FGW_OK) {
            err = fgw_row_decode_object(self->arena, wanted->key, bytes, FGW_ROW_FULL, &row.object,
                                        &row.state);
        }
    }
    if (err == FGW_ERR_NOT_FOUND || (err == FGW_OK && !row.present)) {
        return FGW_ERR_CONFLICT;
    }
    if (err != FGW_OK) {
        return err;
    }
    if (!fgw_id_eq(&row.object.rev, &wanted->rev)) {
        return FGW_ERR_CONFLICT;
    }
    struct fgw_object changed = row.object;
    changed.headers = wanted->headers;
    changed.header_count = wanted->header_count;
    changed.tags = wanted->tags;
    changed.tag_count = wanted->tag_count;
    changed.acl = wanted->acl;
    fgw_id_random(&changed.rev);
    put_object_row(txn, row_key, &changed, &row.state);
    return FGW_OK;
}

enum fgw_err rocks_object_update(struct fgw_meta *meta, struct fgw_arena *arena,
                                 const struct fgw_bucket *bucket, const struct fgw_object *object,
                                 struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct update_op self = {.arena = arena, .bucket = bucket, .wanted = object};
    self.op = (struct fgw_storage_op){.name = "update", .evaluate = evaluate_update,
                                      .context = &self, .frees_space = true};
    return rocks_fail(error, fgw_storage_commit(rocks->storage, &self.op), "changing object",
                      object->key);
}
