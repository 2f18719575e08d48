/* identity.c: users, access keys, and the liveness predicate of the embedded backend. */
#include "meta/rocks/rocks_internal.h"

struct row_op {
    struct fgw_storage_op op;
    struct fgw_arena *arena;
    struct fgw_bytes row_key;
    struct fgw_bytes row;       /* to write */
    struct fgw_bytes other_key; /* second row, empty value; may be empty */
    struct fgw_bytes needs_key; /* must exist; may be empty */
    bool must_be_new;
    bool remove;
};

static enum fgw_err evaluate_row(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct row_op *self = op->context;
    struct fgw_bytes view;
    if (self->needs_key.len > 0) {
        enum fgw_err err = fgw_storage_txn_get(txn, self->needs_key, &view);
        if (err != FGW_OK) {
            return err;
        }
    }
    enum fgw_err err = fgw_storage_txn_get(txn, self->row_key, &view);
    if (err != FGW_OK && err != FGW_ERR_NOT_FOUND) {
        return err;
    }
    if (self->remove) {
        if (err == FGW_ERR_NOT_FOUND) {
            return err;
        }
        fgw_storage_txn_delete(txn, self->row_key);
        if (self->other_key.len > 0) {
            fgw_storage_txn_delete(txn, self->other_key);
        }
        return FGW_OK;
    }
    if (err == FGW_OK && self->must_be_new) {
        return FGW_ERR_EXISTS;
    }
    fgw_storage_txn_put(txn, self->row_key, self->row);
    if (self->other_key.len > 0) {
        fgw_storage_txn_put(txn, self->other_key, fgw_bytes(NULL, 0));
    }
    return FGW_OK;
}

static enum fgw_err commit_row(struct rocks *rocks, struct row_op *self, const char *name)
{
    self->op = (struct fgw_storage_op){.name = name, .evaluate = evaluate_row, .context = self,
                                       .frees_space = true};
    enum fgw_err err = fgw_storage_commit(rocks->storage, &self->op);
    rocks_changed(rocks);
    return err;
}

enum fgw_err rocks_key_get(struct fgw_meta *meta, struct fgw_arena *arena,
                           struct fgw_bytes access_key, struct fgw_access_key *out_key,
                           struct fgw_user *out_user, struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct fgw_bytes row;
    struct fgw_access_key key;
    struct fgw_user user;
    enum fgw_err err = rocks_get_snapshot(rocks, arena, rocks_key_text(arena, 'k', access_key), &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_access_key(arena, access_key, row, &key);
    }
    if (err == FGW_OK) {
        err = rocks_get_snapshot(rocks, arena, rocks_key_text(arena, 'n', key.user_name), &row);
    }
    if (err == FGW_OK) {
        err = fgw_row_decode_user(arena, key.user_name, row, &user);
    }
    if (err == FGW_ERR_NOT_FOUND || (err == FGW_OK && key.disabled)) {
        return fgw_error_set(error, FGW_ERR_INVALID_ACCESS_KEY_ID, NULL);
    }
    if (err == FGW_OK) {
        *out_key = key;
        *out_user = user;
    }
    return rocks_fail(error, err, "reading access key", access_key);
}

enum fgw_err rocks_user_put(struct fgw_meta *meta, struct fgw_arena *arena,
                            const struct fgw_user *user, bool must_be_new, struct fgw_error *error)
{
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_user(&row, user);
    struct row_op self = {.arena = arena, .row_key = rocks_key_text(arena, 'n', user->name),
                          .row = fgw_buf_bytes(&row), .must_be_new = must_be_new};
    enum fgw_err err = commit_row(rocks_of(meta), &self, "put-user");
    fgw_buf_deinit(&row);
    return rocks_fail(error, err, "writing user", user->name);
}

enum fgw_err rocks_user_get(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_bytes name,
                            struct fgw_user *out_user, struct fgw_error *error)
{
    struct fgw_bytes row;
    enum fgw_err err = rocks_get(rocks_of(meta), arena, rocks_key_text(arena, 'n', name), &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_user(arena, name, row, out_user);
    }
    return rocks_fail(error, err, "reading user", name);
}

enum fgw_err rocks_user_remove(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_bytes name,
                               struct fgw_error *error)
{
    struct fgw_access_key *keys;
    size_t count;
    enum fgw_err err = rocks_key_list(meta, arena, name, &keys, &count, error);
    for (size_t i = 0; err == FGW_OK && i < count; i++) {
        err = rocks_key_remove(meta, arena, keys[i].access_key, error);
    }
    if (err == FGW_OK) {
        struct row_op self = {.arena = arena, .row_key = rocks_key_text(arena, 'n', name),
                              .remove = true};
        err = commit_row(rocks_of(meta), &self, "remove-user");
    }
    return rocks_fail(error, err, "removing user", name);
}

struct identity_scan {
    struct fgw_arena *arena;
    size_t prefix_len;
    struct fgw_bytes *names;
    struct fgw_bytes *rows;
    size_t count, cap;
};

static enum rocks_scan_next take_identity(void *context, struct fgw_bytes key, struct fgw_bytes row,
                                          struct fgw_bytes *out_seek)
{
    struct identity_scan *scan = context;
    (void)out_seek;
    if (scan->count == scan->cap) {
        scan->cap = scan->cap == 0 ? 32 : scan->cap * 2;
        scan->names = fgw_xrealloc(scan->names, scan->cap * sizeof *scan->names);
        scan->rows = fgw_xrealloc(scan->rows, scan->cap * sizeof *scan->rows);
    }
    scan->names[scan->count] =
        fgw_arena_copy(scan->arena, fgw_bytes_sub(key, scan->prefix_len, SIZE_MAX));
    scan->rows[scan->count++] = fgw_arena_copy(scan->arena, row);
    return ROCKS_SCAN_NEXT;
}

static enum fgw_err scan_identities(struct rocks *rocks, struct fgw_arena *arena,
                                    struct fgw_bytes prefix, struct identity_scan *scan)
{
    *scan = (struct identity_scan){.arena = arena, .prefix_len = prefix.len};
    return rocks_scan(rocks, prefix, rocks_key_end(arena, prefix), take_identity, scan);
}

enum fgw_err rocks_user_list(struct fgw_meta *meta, struct fgw_arena *arena,
                             struct fgw_user **out_users, size_t *out_count,
                             struct fgw_error *error)
{
    struct identity_scan scan;
    struct fgw_bytes prefix = rocks_key_text(arena, 'n', fgw_bytes(NULL, 0));
    enum fgw_err err = scan_identities(rocks_of(meta), arena, prefix, &scan);
    struct fgw_user *users = fgw_arena_alloc(arena, (scan.count + 1) * sizeof *users);
    for (size_t i = 0; err == FGW_OK && i < scan.count; i++) {
        err = fgw_row_decode_user(arena, scan.names[i], scan.rows[i], &users[i]);
    }
    if (err == FGW_OK) {
        *out_users = users;
        *out_count = scan.count;
    }
    fgw_xfree(scan.names);
    fgw_xfree(scan.rows);
    return rocks_fail(error, err, "listing users", fgw_bytes(NULL, 0));
}

enum fgw_err rocks_key_put(struct fgw_meta *meta, struct fgw_arena *arena,
                           const struct fgw_access_key *key, bool must_be_new,
                           struct fgw_error *error)
{
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_access_key(&row, key);
    struct row_op self = {.arena = arena, .row_key = rocks_key_text(arena, 'k', key->access_key),
                          .row = fgw_buf_bytes(&row), .must_be_new = must_be_new,
                          .other_key = rocks_key_text2(arena, 'K', key->user_name, key->access_key),
                          .needs_key = rocks_key_text(arena, 'n', key->user_name)};
    enum fgw_err err = commit_row(rocks_of(meta), &self, "put-key");
    fgw_buf_deinit(&row);
    return rocks_fail(error, err, "writing access key", key->access_key);
}

enum fgw_err rocks_key_remove(struct fgw_meta *meta, struct fgw_arena *arena,
                              struct fgw_bytes access_key, struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct fgw_bytes row;
    struct fgw_access_key key;
    struct fgw_bytes row_key = rocks_key_text(arena, 'k', access_key);
    enum fgw_err err = rocks_get(rocks, arena, row_key, &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_access_key(arena, access_key, row, &key);
    }
    if (err == FGW_OK) {
        struct row_op self = {.arena = arena, .row_key = row_key, .remove = true,
                              .other_key = rocks_key_text2(arena, 'K', key.user_name, access_key)};
        err = commit_row(rocks, &self, "remove-key");
    }
    return rocks_fail(error, err, "removing access key", access_key);
}

enum fgw_err rocks_key_list(struct fgw_meta *meta, struct fgw_arena *arena,
                            struct fgw_bytes user_name, struct fgw_access_key **out_keys,
                            size_t *out_count, struct fgw_error *error)
{
    struct rocks *rocks = rocks_of(meta);
    struct identity_scan scan;
    struct fgw_bytes prefix = rocks_key_text2(arena, 'K', user_name, fgw_bytes(NULL, 0));
    enum fgw_err err = scan_identities(rocks, arena, prefix, &scan);
    struct fgw_access_key *keys = fgw_arena_alloc(arena, (scan.count + 1) * sizeof *keys);
    size_t count = 0;
    for (size_t i = 0; err == FGW_OK && i < scan.count; i++) {
        struct fgw_bytes row;
        err = rocks_get(rocks, arena, rocks_key_text(arena, 'k', scan.names[i]), &row);
        if (err == FGW_ERR_NOT_FOUND) {
            err = FGW_OK;
            continue;
        }
        if (err == FGW_OK) {
            err = fgw_row_decode_access_key(arena, scan.names[i], row, &keys[count++]);
        }
    }
    if (err == FGW_OK) {
        *out_keys = keys;
        *out_count = count;
    }
    fgw_xfree(scan.names);
    fgw_xfree(scan.rows);
    return rocks_fail(error, err, "listing keys of user", user_name);
}

/* -- liveness: uploads first, then head, versions, head again ----------------------------------- */

struct live_scan {
    struct fgw_arena *arena;
    const struct fgw_storage_owner *owner;
    const struct fgw_cid *root;
    struct fgw_blob_live found;
    enum fgw_err err;
};

static enum rocks_scan_next look_at_row(void *context, struct fgw_bytes key, struct fgw_bytes row,
                                        struct fgw_bytes *out_seek)
{
    struct live_scan *scan = context;
    struct fgw_object object;
    (void)key;
    (void)out_seek;
    scan->err = fgw_row_decode_object(scan->arena, scan->owner->key, row, FGW_ROW_FULL, &object,
                                      NULL);
    if (scan->err == FGW_OK &&
        memcmp(object.owner_id.bytes, scan->owner->owner_id, FGW_META_ID_SIZE) == 0) {
        fgw_blob_live_note(&scan->found, object.extents, object.extent_count, scan->root);
    }
    return scan->err != FGW_OK || scan->found.live ? ROCKS_SCAN_STOP : ROCKS_SCAN_NEXT;
}

/* An upload that is open names all its parts; its bucket must still be the one it was begun in. */
static enum fgw_err live_upload(struct rocks *rocks, struct live_scan *scan,
                                const struct fgw_id *bucket_id)
{
    struct fgw_id upload_id;
    struct fgw_upload upload;
    struct fgw_bucket bucket;
    struct fgw_bytes row;
    memcpy(upload_id.bytes, scan->owner->owner_id, sizeof upload_id.bytes);
    enum fgw_err err =
        rocks_get(rocks, scan->arena, rocks_key_upload(scan->arena, &upload_id), &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_upload(scan->arena, &upload_id, row, &upload);
    }
    if (err != FGW_OK || upload.completed) {
        return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    err = rocks_get(rocks, scan->arena, rocks_key_text(scan->arena, 'B', upload.bucket_name), &row);
    if (err == FGW_OK) {
        err = fgw_row_decode_bucket(scan->arena, upload.bucket_name, row, &bucket);
    }
    if (err == FGW_OK) {
        scan->found.live = scan->found.any_set = fgw_id_eq(&bucket.id, bucket_id);
    }
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

enum fgw_err rocks_blob_live(struct fgw_meta *meta, struct fgw_arena *arena,
                             const struct fgw_storage_owner *owner, const struct fgw_cid *root,
                             struct fgw_blob_live *out_live)
{
    struct rocks *rocks = rocks_of(meta);
    struct live_scan scan = {.arena = arena, .owner = owner, .root = root};
    struct fgw_id bucket_id;
    memcpy(bucket_id.bytes, owner->bucket_id, sizeof bucket_id.bytes);
    enum fgw_err err = live_upload(rocks, &scan, &bucket_id);
    struct fgw_bytes head = rocks_key_head(arena, &bucket_id, owner->key);
    struct fgw_buf behind;
    fgw_buf_init(&behind, 0);
    (void)fgw_buf_append(&behind, head);
    (void)fgw_buf_append_byte(&behind, 0);
    struct fgw_bytes versions = rocks_key_versions_of(arena, &bucket_id, owner->key);
    for (int look = 0; look < 3 && err == FGW_OK && !scan.found.live; look++) {
        err = look == 1 ? rocks_scan(rocks, versions, rocks_key_end(arena, versions), look_at_row,
                                     &scan)
                        : rocks_scan(rocks, head, fgw_buf_bytes(&behind), look_at_row, &scan);
        err = err == FGW_OK ? scan.err : err;
    }
    fgw_buf_deinit(&behind);
    if (err == FGW_OK) {
        *out_live = scan.found;
    }
    return err;
}
