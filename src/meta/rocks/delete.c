/* delete.c: deleting objects and versions in the embedded backend (design/metadata.md section 4;
 * here one operation of the committer does what takes several conditional writes elsewhere). */
#include "meta/rocks/rocks_internal.h"

struct delete_op {
    struct fgw_storage_op op;
    struct fgw_arena *arena;
    const struct fgw_bucket *bucket;
    struct fgw_bytes key;
    struct fgw_version version;
    const struct fgw_conditions *conditions;
    struct fgw_error *error;
    struct fgw_written result;
};

static void put_head(struct fgw_storage_txn *txn, struct delete_op *self,
                     const struct fgw_object *object, const struct fgw_row_state *state)
{
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_object(&row, object, state);
    fgw_storage_txn_put(txn, rocks_key_head(self->arena, &self->bucket->id, self->key),
                        fgw_buf_bytes(&row));
    fgw_buf_deinit(&row);
}

static enum fgw_err write_marker(struct fgw_storage_txn *txn, struct delete_op *self,
                                 const struct fgw_bucket *bucket, const struct rocks_head *head)
{
    struct fgw_object marker = {.key = self->key, .delete_marker = true};
    enum fgw_err err = rocks_txn_write_head(txn, self->arena, bucket, head, &marker);
    self->result = (struct fgw_written){.version_id = marker.version_id,
                                        .is_null = marker.is_null,
                                        .mtime_ms = marker.mtime_ms,
                                        .delete_marker = true};
    return err;
}

/* The newest noncurrent version becomes the head; without one the key is gone. */
static enum fgw_err promote(struct fgw_storage_txn *txn, struct delete_op *self,
                            const struct fgw_row_state *state)
{
    struct fgw_bytes lower = rocks_key_versions_of(self->arena, &self->bucket->id, self->key);
    struct fgw_bytes row_key;
    struct fgw_bytes row;
    enum fgw_err err = fgw_storage_txn_first(txn, lower, rocks_key_end(self->arena, lower),
                                             &row_key, &row);
    if (err == FGW_ERR_NOT_FOUND) {
        fgw_storage_txn_delete(txn, rocks_key_head(self->arena, &self->bucket->id, self->key));
        return FGW_OK;
    }
    struct fgw_object next;
    if (err == FGW_OK) {
        row = fgw_arena_copy(self->arena, row);
        row_key = fgw_arena_copy(self->arena, row_key);
        err = fgw_row_decode_object(self->arena, self->key, row, FGW_ROW_FULL, &next, NULL);
    }
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_row_state next_state = {0};
    if (!next.is_null) {
        next_state.null_version = state->null_version;
    }
    fgw_storage_txn_delete(txn, row_key);
    put_head(txn, self, &next, &next_state);
    return FGW_OK;
}

static enum fgw_err conditions_hold(const struct delete_op *self, const struct fgw_object *existing)
{
    if (self->conditions == NULL || !fgw_conditions_any(self->conditions)) {
        return FGW_OK;
    }
    return fgw_conditions_check(self->conditions, existing, self->error);
}

static enum fgw_err delete_latest(struct fgw_storage_txn *txn, struct delete_op *self,
                                  const struct fgw_bucket *bucket, const struct rocks_head *head)
{
    bool exists = head->present && !head->object.delete_marker;
    enum fgw_err err = conditions_hold(self, exists ? &head->object : NULL);
    if (err == FGW_ERR_NO_SUCH_KEY) {
        return FGW_OK; /* a condition on nothing: nothing to delete (spec item 51) */
    }
    if (err != FGW_OK || bucket->versioning != FGW_VERSIONING_NEVER) {
        return err != FGW_OK ? err : write_marker(txn, self, bucket, head);
    }
    if (head->present) {
        rocks_txn_release(txn, &head->object);
        fgw_storage_txn_delete(txn, rocks_key_head(self->arena, &bucket->id, self->key));
    }
    return FGW_OK;
}

static enum fgw_err remove_noncurrent(struct fgw_storage_txn *txn, struct delete_op *self,
                                      const struct rocks_head *head, const struct fgw_id *id)
{
    struct fgw_bytes row;
    struct fgw_object old;
    struct fgw_bytes row_key = rocks_key_version(self->arena, &self->bucket->id, self->key, id);
    enum fgw_err err = rocks_txn_get(txn, self->arena, row_key, &row);
    if (err == FGW_ERR_NOT_FOUND) {
        return FGW_OK;
    }
    if (err == FGW_OK) {
        err = fgw_row_decode_object(self->arena, self->key, row, FGW_ROW_FULL, &old, NULL);
    }
    if (err == FGW_OK && old.is_null && self->version.kind == FGW_VERSION_ID) {
        return FGW_OK; /* the null version is addressed as "null" only */
    }
    if (err == FGW_OK) {
        err = conditions_hold(self, old.delete_marker ? NULL : &old);
        err = err == FGW_ERR_NO_SUCH_KEY ? FGW_OK : err;
    }
    if (err != FGW_OK) {
        return err;
    }
    rocks_txn_release(txn, &old);
    fgw_storage_txn_delete(txn, row_key);
    if (old.is_null) {
        struct fgw_row_state state = head->state;
        memset(&state.null_version, 0, sizeof state.null_version);
        put_head(txn, self, &head->object, &state);
    }
    self->result.removed_version = true;
    self->result.delete_marker = old.delete_marker;
    return FGW_OK;
}

static enum fgw_err delete_version(struct fgw_storage_txn *txn, struct delete_op *self,
                                   const struct rocks_head *head)
{
    self->result.version_id = self->version.id;
    self->result.is_null = self->version.kind == FGW_VERSION_NULL;
    if (!head->present) {
        return FGW_OK;
    }
    const struct fgw_object *object = &head->object;
    bool is_head = self->version.kind == FGW_VERSION_NULL
                       ? object->is_null
                       : !object->is_null && fgw_id_eq(&object->version_id, &self->version.id);
    if (!is_head) {
        const struct fgw_id *id = self->version.kind == FGW_VERSION_NULL
                                      ? &head->state.null_version
                                      : &self->version.id;
        return fgw_id_is_zero(id) ? FGW_OK : remove_noncurrent(txn, self, head, id);
    }
    enum fgw_err err = conditions_hold(self, object->delete_marker ? NULL : object);
    if (err != FGW_OK && err != FGW_ERR_NO_SUCH_KEY) {
        return err;
    }
    rocks_txn_release(txn, object);
    self->result.removed_version = true;
    self->result.delete_marker = object->delete_marker;
    return promote(txn, self, &head->state);
}

static enum fgw_err evaluate_delete(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct delete_op *self = op->context;
    struct fgw_bucket bucket;
    struct rocks_head head;
    memset(&self->result, 0, sizeof self->result);
    enum fgw_err err = rocks_txn_bucket(txn, self->arena, self->bucket, &bucket);
    if (err == FGW_OK) {
        err = rocks_txn_head(txn, self->arena, &bucket.id, self->key, &head);
    }
    if (err != FGW_OK) {
        return err;
    }
    return self->version.kind == FGW_VERSION_LATEST ? delete_latest(txn, self, &bucket, &head)
                                                    : delete_version(txn, self, &head);
}

enum fgw_err rocks_object_delete(struct fgw_meta *meta, struct fgw_arena *arena,
                                 const struct fgw_bucket *bucket, struct fgw_bytes key,
                                 struct fgw_version version,
                                 const struct fgw_conditions *conditions,
                                 struct fgw_written *out_written, struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct delete_op self = {.arena = arena, .bucket = bucket, .key = key, .version = version,
                             .conditions = conditions, .error = error};
    self.op = (struct fgw_storage_op){.name = "delete", .evaluate = evaluate_delete,
                                      .context = &self, .frees_space = true};
    enum fgw_err err = fgw_storage_commit(rocks->storage, &self.op);
    if (err == FGW_OK) {
        *out_written = self.result;
    }
    return rocks_fail(error, err, "deleting object", key);
}
