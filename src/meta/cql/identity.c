/* identity.c: users and access keys. Secrets are sealed with AES-256-GCM under a key derived from
 * FGW_CLUSTER_SECRET; the access key is the associated data, so that a secret cannot be moved to
 * another row.
 *
 * keys_by_user is a look-up: written before a key's row, removed after it, checked against it.
 */
#include <stdlib.h>

#include "base/rng.h"
#include "meta/cql/cql_internal.h"

enum { SEAL_VERSION = 1, SEAL_HEAD = 1 + FGW_AEAD_NONCE_SIZE + FGW_AEAD_TAG_SIZE };
enum { LOOK_UP_ATTEMPTS = 4 };

/* -- secrets ---------------------------------------------------------------------------------------- */

/* version | nonce | tag | sealed */
static struct fgw_bytes seal(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes access_key,
                             struct fgw_bytes secret)
{
    uint8_t *out = fgw_arena_alloc(arena, SEAL_HEAD + secret.len);
    uint8_t *nonce = out + 1;
    out[0] = SEAL_VERSION;
    fgw_rng_fill(nonce, FGW_AEAD_NONCE_SIZE);
    fgw_aead_seal(cql->secret_keys[0], nonce, access_key, secret, out + SEAL_HEAD,
                  nonce + FGW_AEAD_NONCE_SIZE);
    return fgw_bytes(out, SEAL_HEAD + secret.len);
}

/* Under the present secret of the cluster, else an earlier one. */
static enum fgw_err unseal(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes access_key,
                           struct fgw_bytes sealed, struct fgw_bytes *out_secret)
{
    if (sealed.len < SEAL_HEAD || sealed.ptr[0] != SEAL_VERSION) {
        return sealed.len > 0 && sealed.ptr[0] > SEAL_VERSION ? FGW_ERR_NEWER_VERSION
                                                              : FGW_ERR_CORRUPT;
    }
    struct fgw_bytes body = fgw_bytes_sub(sealed, SEAL_HEAD, SIZE_MAX);
    uint8_t *plain = fgw_arena_alloc(arena, body.len + 1);
    for (size_t i = 0; i < cql->options.secret_count; i++) {
        if (fgw_aead_open(cql->secret_keys[i], sealed.ptr + 1, access_key, body,
                          sealed.ptr + 1 + FGW_AEAD_NONCE_SIZE, plain) == FGW_OK) {
            *out_secret = fgw_bytes(plain, body.len);
            return FGW_OK;
        }
    }
    return FGW_ERR_CORRUPT;
}

/* -- rows of both tables ----------------------------------------------------------------------------- */

struct table {
    enum cql_statement_id get, insert, swap, delete;
};
static const struct table USERS = {CQL_USER_GET, CQL_USER_INSERT, CQL_USER_SWAP, CQL_USER_DELETE};
static const struct table KEYS = {CQL_KEY_GET, CQL_KEY_INSERT, CQL_KEY_SWAP, CQL_KEY_DELETE};

/* NOT_FOUND when there is none, also for an id that no row can have. */
static enum fgw_err read_row(struct cql *cql, struct fgw_arena *arena, const struct table *table,
                             struct fgw_bytes id, struct fgw_id *out_rev,
                             struct fgw_bytes *out_data, struct fgw_error *error)
{
    struct fgw_cql_value values[] = {fgw_cql_text(id)};
    struct fgw_cql_result *result = NULL;
    struct fgw_bytes data;
    if (id.len == 0 || !fgw_utf8_valid(id)) {
        return FGW_ERR_NOT_FOUND;
    }
    enum fgw_err err = cql_read(cql, table->get, values, 1, NULL, &result, error);
    if (err != FGW_OK) {
        return err;
    }
    err = FGW_ERR_NOT_FOUND;
    if (fgw_cql_result_next(result)) {
        err = cql_get_id(result, "rev", out_rev) == FGW_OK &&
                      fgw_cql_get_blob(result, "data", &data) == FGW_OK
                  ? FGW_OK
                  : FGW_ERR_CORRUPT;
    }
    if (err == FGW_OK) {
        *out_data = fgw_arena_copy(arena, data);
    }
    fgw_cql_result_free(result);
    return err;
}

/* *out_done false: the row changed, or an answer was lost and the row is not as wanted. */
static enum fgw_err try_write(struct cql *cql, struct fgw_arena *arena, const struct table *table,
                              struct fgw_bytes id, const struct fgw_id *seen,
                              const struct fgw_bytes *data, bool *out_done, struct fgw_error *error)
{
    struct fgw_id rev;
    struct fgw_id now;
    struct fgw_bytes ignored;
    enum cql_outcome outcome = CQL_UNSURE;
    fgw_id_random(&rev);
    struct fgw_cql_value insert[] = {fgw_cql_text(id), cql_id_blob(&rev),
                                     fgw_cql_blob(data == NULL ? id : *data)};
    struct fgw_cql_value swap[] = {insert[1], insert[2], insert[0], fgw_cql_null()};
    struct fgw_cql_value delete[] = {insert[0], fgw_cql_null()};
    struct cql_lwt lwt = {.id = table->insert,
                          .values = insert,
                          .count = 3,
                          .rev = &rev,
                          .partition = fgw_get_u64be(rev.bytes)};
    if (seen != NULL) {
        swap[3] = cql_id_blob(seen);
        delete[1] = cql_id_blob(seen);
        lwt.id = data == NULL ? table->delete : table->swap;
        lwt.values = data == NULL ? delete : swap;
        lwt.count = data == NULL ? 2 : 4;
    }
    enum fgw_err err = cql_lwt(cql, &lwt, &outcome, error);
    if (err == FGW_OK && cql_must_look(outcome)) {
        err = read_row(cql, arena, table, id, &now, &ignored, error);
        if (outcome == CQL_UNSURE && err != FGW_OK && err != FGW_ERR_NOT_FOUND) {
            return fgw_error_set(error, FGW_ERR_UNKNOWN_OUTCOME, NULL);
        }
        bool there = err == FGW_OK && fgw_id_eq(&now, &rev);
        outcome = (data == NULL ? err == FGW_ERR_NOT_FOUND : there) ? CQL_APPLIED : CQL_REFUSED;
        err = err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    *out_done = err == FGW_OK && outcome == CQL_APPLIED;
    return err;
}

/* Writes (data) or removes (NULL) a row. EXISTS with must_be_new, NOT_FOUND for a removal. */
static enum fgw_err write_row(struct cql *cql, struct fgw_arena *arena, const struct table *table,
                              struct fgw_bytes id, const struct fgw_bytes *data, bool must_be_new,
                              struct fgw_error *error)
{
    for (unsigned attempt = 0; attempt < CQL_ATTEMPTS_MAX; attempt++) {
        struct fgw_id seen;
        struct fgw_bytes ignored;
        bool done = false;
        enum fgw_err err = read_row(cql, arena, table, id, &seen, &ignored, error);
        bool present = err == FGW_OK;
        if (err != FGW_OK && err != FGW_ERR_NOT_FOUND) {
            return err;
        }
        if (present && must_be_new) {
            return FGW_ERR_EXISTS;
        }
        if (!present && (data == NULL || !fgw_utf8_valid(id) || id.len == 0)) {
            return FGW_ERR_NOT_FOUND;
        }
        err = try_write(cql, arena, table, id, present ? &seen : NULL, data, &done, error);
        if (err != FGW_OK || done) {
            cql_changed(cql);
            return err;
        }
        cql_back_off(attempt);
    }
    return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
}

/* -- access keys --------------------------------------------------------------------------------------- */

static enum fgw_err decode_key(struct cql *cql, struct fgw_arena *arena,
                               struct fgw_bytes access_key, struct fgw_bytes row,
                               struct fgw_access_key *out_key)
{
    struct fgw_access_key key;
    enum fgw_err err = fgw_row_decode_access_key(arena, access_key, row, &key);
    if (err == FGW_OK) {
        err = unseal(cql, arena, access_key, key.secret_key, &key.secret_key);
    }
    if (err == FGW_OK) {
        *out_key = key;
    }
    return err;
}

/* A row at most 5 s old, or with the database away at most 30 s. */
static enum fgw_err snapshot_row(struct cql *cql, struct fgw_arena *arena,
                                 const struct table *table, struct fgw_bytes id,
                                 struct fgw_bytes *out_data, struct fgw_error *error)
{
    const char *kind = table == &USERS ? "u" : "k";
    struct fgw_bytes key = fgw_bytes_str(fgw_arena_printf(arena, "%s/%.*s", kind, FGW_FMT(id)));
    struct fgw_id rev;
    if (cql_cache_get(cql, arena, key, CQL_IDENTITY_MS, out_data) == FGW_OK) {
        return FGW_OK;
    }
    uint64_t generation = atomic_load(&cql->generation);
    uint64_t read_ms = cql_now_ms();
    enum fgw_err err = read_row(cql, arena, table, id, &rev, out_data, error);
    if (err == FGW_OK) {
        cql_cache_put(cql, key, *out_data, generation, read_ms);
    } else if (err == FGW_ERR_NOT_FOUND) {
        cql_cache_drop(cql, key);
    } else if (err == FGW_ERR_UNAVAILABLE &&
               cql_cache_get(cql, arena, key, CQL_STALE_MAX_MS, out_data) == FGW_OK) {
        return FGW_OK;
    }
    return err;
}

enum fgw_err cql_key_get(struct fgw_meta *meta, struct fgw_arena *arena,
                         struct fgw_bytes access_key, struct fgw_access_key *out_key,
                         struct fgw_user *out_user, struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct fgw_bytes row;
    struct fgw_access_key key = {0};
    struct fgw_user user = {0};
    enum fgw_err err = snapshot_row(cql, arena, &KEYS, access_key, &row, error);
    if (err == FGW_OK) {
        err = decode_key(cql, arena, access_key, row, &key);
    }
    if (err == FGW_OK) {
        err = snapshot_row(cql, arena, &USERS, key.user_name, &row, error);
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
    return cql_fail(error, err, "reading access key", access_key);
}

/* Conditional, unlike other look-ups: the same row may come again after it was removed, and a plain
 * write counts only if its coordinator's clock is not behind that of the removal. One that is refused finds
 * what it wanted; so it may be sent again when nobody knows. */
static enum fgw_err write_look_up(struct cql *cql, enum cql_statement_id id,
                                  const struct fgw_cql_value values[2], struct fgw_error *error)
{
    struct cql_lwt lwt = {.id = id, .values = values, .count = 2, .partition = 0}; /* rare */
    for (unsigned attempt = 0; attempt < LOOK_UP_ATTEMPTS; attempt++) {
        enum cql_outcome outcome = CQL_UNSURE;
        enum fgw_err err = cql_lwt(cql, &lwt, &outcome, error);
        if (err != FGW_OK || outcome != CQL_UNSURE) {
            return err;
        }
        cql_back_off(attempt);
    }
    return fgw_error_set(error, FGW_ERR_UNKNOWN_OUTCOME, NULL);
}

enum fgw_err cql_key_put(struct fgw_meta *meta, struct fgw_arena *arena,
                         const struct fgw_access_key *key, bool must_be_new,
                         struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct fgw_cql_value look_up[] = {fgw_cql_text(key->user_name), fgw_cql_text(key->access_key)};
    struct fgw_access_key sealed = *key;
    struct fgw_id rev;
    struct fgw_bytes ignored;
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    enum fgw_err err = read_row(cql, arena, &USERS, key->user_name, &rev, &ignored, error);
    if (err == FGW_OK && !fgw_utf8_valid(key->access_key)) {
        err = FGW_ERR_INVALID_ARGUMENT;
    }
    if (err == FGW_OK) {
        err = write_look_up(cql, CQL_KEYS_OF_INSERT, look_up, error);
    }
    if (err == FGW_OK) {
        sealed.secret_key = seal(cql, arena, key->access_key, key->secret_key);
        fgw_row_encode_access_key(&row, &sealed);
        struct fgw_bytes data = fgw_buf_bytes(&row);
        err = write_row(cql, arena, &KEYS, key->access_key, &data, must_be_new, error);
    }
    fgw_buf_deinit(&row);
    return cql_fail(error, err, "writing access key", key->access_key);
}

enum fgw_err cql_key_remove(struct fgw_meta *meta, struct fgw_arena *arena,
                            struct fgw_bytes access_key, struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct fgw_access_key key;
    struct fgw_id rev;
    struct fgw_bytes row;
    enum fgw_err err = read_row(cql, arena, &KEYS, access_key, &rev, &row, error);
    if (err == FGW_OK) {
        err = fgw_row_decode_access_key(arena, access_key, row, &key);
    }
    if (err == FGW_OK) {
        err = write_row(cql, arena, &KEYS, access_key, NULL, false, error);
    }
    if (err == FGW_OK) {
        struct fgw_cql_value look_up[] = {fgw_cql_text(key.user_name), fgw_cql_text(access_key)};
        enum fgw_err ignored = write_look_up(cql, CQL_KEYS_OF_DELETE, look_up, NULL);
        (void)ignored; /* readers check the look-up against the row */
    }
    return cql_fail(error, err, "removing access key", access_key);
}

/* -- lists ---------------------------------------------------------------------------------------------- */

struct names {
    struct fgw_bytes *items;
    struct fgw_bytes *rows; /* of users; empty in look-ups */
    size_t count, cap;
};

static void add_name(struct names *names, struct fgw_bytes name, struct fgw_bytes row)
{
    if (names->count == names->cap) {
        names->cap = names->cap == 0 ? 32 : names->cap * 2;
        names->items = fgw_xrealloc(names->items, names->cap * sizeof *names->items);
        names->rows = fgw_xrealloc(names->rows, names->cap * sizeof *names->rows);
    }
    names->items[names->count] = name;
    names->rows[names->count++] = row;
}

static void free_names(struct names *names)
{
    fgw_xfree(names->items);
    fgw_xfree(names->rows);
}

static enum fgw_err read_names(struct cql *cql, struct fgw_arena *arena, enum cql_statement_id id,
                               const struct fgw_cql_value *values, size_t count, const char *column,
                               struct names *names, struct fgw_error *error)
{
    struct fgw_cql_options options = {.page_size = 1000};
    bool more = true;
    while (more) {
        struct fgw_cql_result *result = NULL;
        enum fgw_err err = cql_read(cql, id, values, count, &options, &result, error);
        if (err != FGW_OK) {
            return err;
        }
        more = fgw_cql_result_has_more(result);
        options.paging_state = fgw_arena_copy(arena, fgw_cql_result_paging_state(result));
        while (fgw_cql_result_next(result)) {
            struct fgw_bytes name;
            struct fgw_bytes row = {NULL, 0};
            bool has_row = fgw_cql_result_column(result, "data") >= 0;
            if (fgw_cql_get_text(result, column, &name) != FGW_OK ||
                (has_row && fgw_cql_get_blob(result, "data", &row) != FGW_OK)) {
                fgw_cql_result_free(result);
                return FGW_ERR_CORRUPT;
            }
            add_name(names, fgw_arena_copy(arena, name), fgw_arena_copy(arena, row));
        }
        fgw_cql_result_free(result);
    }
    return FGW_OK;
}

enum fgw_err cql_key_list(struct fgw_meta *meta, struct fgw_arena *arena,
                          struct fgw_bytes user_name, struct fgw_access_key **out_keys,
                          size_t *out_count, struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct fgw_cql_value values[] = {fgw_cql_text(user_name)};
    struct names names = {0};
    size_t count = 0;
    enum fgw_err err = FGW_OK;
    if (fgw_utf8_valid(user_name) && user_name.len > 0) {
        err = read_names(cql, arena, CQL_KEYS_OF_SCAN, values, 1, "access_key", &names, error);
    }
    struct fgw_access_key *keys = fgw_arena_alloc(arena, (names.count + 1) * sizeof *keys);
    for (size_t i = 0; err == FGW_OK && i < names.count; i++) {
        struct fgw_id rev;
        struct fgw_bytes row;
        err = read_row(cql, arena, &KEYS, names.items[i], &rev, &row, error);
        if (err == FGW_OK) {
            err = decode_key(cql, arena, names.items[i], row, &keys[count]);
            count += err == FGW_OK && fgw_bytes_eq(keys[count].user_name, user_name);
        }
        err = err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    if (err == FGW_OK) {
        *out_keys = keys;
        *out_count = count;
    }
    free_names(&names);
    return cql_fail(error, err, "listing keys of user", user_name);
}

static int compare_users(const void *a, const void *b)
{
    return fgw_bytes_cmp(((const struct fgw_user *)a)->name, ((const struct fgw_user *)b)->name);
}

enum fgw_err cql_user_list(struct fgw_meta *meta, struct fgw_arena *arena,
                           struct fgw_user **out_users, size_t *out_count, struct fgw_error *error)
{
    struct names names = {0};
    enum fgw_err err = read_names(cql_of(meta), arena, CQL_USER_SCAN, NULL, 0, "id", &names, error);
    struct fgw_user *users = fgw_arena_alloc(arena, (names.count + 1) * sizeof *users);
    for (size_t i = 0; err == FGW_OK && i < names.count; i++) {
        err = fgw_row_decode_user(arena, names.items[i], names.rows[i], &users[i]);
    }
    if (err == FGW_OK) {
        qsort(users, names.count, sizeof *users, compare_users);
        *out_users = users;
        *out_count = names.count;
    }
    free_names(&names);
    return cql_fail(error, err, "listing users", fgw_bytes(NULL, 0));
}

/* -- users ------------------------------------------------------------------------------------------------ */

enum fgw_err cql_user_put(struct fgw_meta *meta, struct fgw_arena *arena,
                          const struct fgw_user *user, bool must_be_new, struct fgw_error *error)
{
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_user(&row, user);
    struct fgw_bytes data = fgw_buf_bytes(&row);
    enum fgw_err err =
        fgw_utf8_valid(user->name) && user->name.len > 0
            ? write_row(cql_of(meta), arena, &USERS, user->name, &data, must_be_new, error)
            : FGW_ERR_INVALID_ARGUMENT;
    fgw_buf_deinit(&row);
    return cql_fail(error, err, "writing user", user->name);
}

enum fgw_err cql_user_get(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_bytes name,
                          struct fgw_user *out_user, struct fgw_error *error)
{
    struct fgw_id rev;
    struct fgw_bytes row;
    enum fgw_err err = read_row(cql_of(meta), arena, &USERS, name, &rev, &row, error);
    if (err == FGW_OK) {
        err = fgw_row_decode_user(arena, name, row, out_user);
    }
    return cql_fail(error, err, "reading user", name);
}

enum fgw_err cql_user_remove(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_bytes name,
                             struct fgw_error *error)
{
    struct fgw_access_key *keys = NULL;
    size_t count = 0;
    enum fgw_err err = cql_key_list(meta, arena, name, &keys, &count, error);
    for (size_t i = 0; err == FGW_OK && i < count; i++) {
        err = cql_key_remove(meta, arena, keys[i].access_key, error);
        err = err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    if (err == FGW_OK) {
        err = write_row(cql_of(meta), arena, &USERS, name, NULL, false, error);
    }
    return cql_fail(error, err, "removing user", name);
}
