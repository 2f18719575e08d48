/* memory_meta.c: see memory_store.h. Buckets in a list; versions of all buckets in one array, by
 * bucket id, key, newest version first. */
#include "memory_store.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "meta/lister.h"
#include "meta/row.h"

struct memory_bucket {
    struct fgw_bytes name;
    struct fgw_buf row;
};

struct memory_version {
    struct fgw_id bucket;
    struct fgw_bytes key;
    struct fgw_id version;
    bool is_null;
    bool marker;
    struct fgw_buf row;
};

struct memory_meta {
    struct fgw_meta meta;
    struct memory_bucket *buckets;
    size_t bucket_count;
    struct memory_version *versions;
    size_t version_count;
};

static struct memory_meta *of(struct fgw_meta *meta)
{
    return (struct memory_meta *)meta;
}

static struct fgw_bytes heap_copy(struct fgw_bytes bytes)
{
    return fgw_bytes(fgw_xstrdup_bytes(bytes), bytes.len);
}

/* -- buckets ---------------------------------------------------------------------------------- */

static size_t find_bucket(const struct memory_meta *memory, struct fgw_bytes name, bool *out_found)
{
    size_t i = 0;
    while (i < memory->bucket_count && fgw_bytes_cmp(memory->buckets[i].name, name) < 0) {
        i++;
    }
    *out_found = i < memory->bucket_count && fgw_bytes_eq(memory->buckets[i].name, name);
    return i;
}

static enum fgw_err decode_bucket(struct fgw_arena *arena, const struct memory_bucket *bucket,
                                  struct fgw_bucket *out_bucket)
{
    return fgw_row_decode_bucket(arena, fgw_arena_copy(arena, bucket->name),
                                 fgw_arena_copy(arena, fgw_buf_bytes(&bucket->row)), out_bucket);
}

static enum fgw_err bucket_get(struct fgw_meta *meta, struct fgw_arena *arena,
                               struct fgw_bytes name, bool fresh, struct fgw_bucket *out_bucket,
                               struct fgw_error *error)
{
    bool found = false;
    size_t i = find_bucket(of(meta), name, &found);
    (void)fresh;
    return found ? decode_bucket(arena, &of(meta)->buckets[i], out_bucket)
                 : fgw_error_set(error, FGW_ERR_NO_SUCH_BUCKET, NULL);
}

static enum fgw_err bucket_create(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *wanted, struct fgw_bucket *out_bucket,
                                  struct fgw_error *error)
{
    struct memory_meta *memory = of(meta);
    bool found = false;
    size_t i = find_bucket(memory, wanted->name, &found);
    if (found) {
        FGW_CHECK(decode_bucket(arena, &memory->buckets[i], out_bucket) == FGW_OK);
        return fgw_error_set(error, FGW_ERR_EXISTS, NULL);
    }
    struct fgw_bucket bucket = *wanted;
    fgw_id_random(&bucket.id);
    fgw_id_random(&bucket.rev);
    bucket.created_ms = fgw_clock_wall_ms();
    memory->buckets =
        fgw_xrealloc(memory->buckets, (memory->bucket_count + 1) * sizeof *memory->buckets);
    memmove(&memory->buckets[i + 1], &memory->buckets[i],
            (memory->bucket_count - i) * sizeof *memory->buckets);
    memory->bucket_count++;
    memory->buckets[i].name = heap_copy(wanted->name);
    fgw_buf_init(&memory->buckets[i].row, 0);
    fgw_row_encode_bucket(&memory->buckets[i].row, &bucket);
    return decode_bucket(arena, &memory->buckets[i], out_bucket);
}

static enum fgw_err bucket_update(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, struct fgw_error *error)
{
    struct memory_meta *memory = of(meta);
    struct fgw_bucket stored;
    bool found = false;
    size_t i = find_bucket(memory, bucket->name, &found);
    if (!found) {
        return fgw_error_set(error, FGW_ERR_NO_SUCH_BUCKET, NULL);
    }
    FGW_CHECK(decode_bucket(arena, &memory->buckets[i], &stored) == FGW_OK);
    if (!fgw_id_eq(&stored.rev, &bucket->rev)) {
        return fgw_error_set(error, FGW_ERR_CONFLICT, NULL);
    }
    struct fgw_bucket fresh = *bucket;
    fgw_id_random(&fresh.rev);
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_bucket(&row, &fresh);
    fgw_buf_deinit(&memory->buckets[i].row);
    memory->buckets[i].row = row;
    return FGW_OK;
}

static enum fgw_err bucket_delete(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, struct fgw_error *error)
{
    struct memory_meta *memory = of(meta);
    bool found = false;
    size_t i = find_bucket(memory, bucket->name, &found);
    (void)arena;
    if (!found) {
        return fgw_error_set(error, FGW_ERR_NO_SUCH_BUCKET, NULL);
    }
    for (size_t k = 0; k < memory->version_count; k++) {
        if (fgw_id_eq(&memory->versions[k].bucket, &bucket->id)) {
            return fgw_error_set(error, FGW_ERR_BUCKET_NOT_EMPTY, NULL);
        }
    }
    fgw_xfree((void *)memory->buckets[i].name.ptr);
    fgw_buf_deinit(&memory->buckets[i].row);
    memory->bucket_count--;
    memmove(&memory->buckets[i], &memory->buckets[i + 1],
            (memory->bucket_count - i) * sizeof *memory->buckets);
    return FGW_OK;
}

static enum fgw_err bucket_list(struct fgw_meta *meta, struct fgw_arena *arena,
                                struct fgw_bytes owner_id, struct fgw_bytes after, unsigned max,
                                struct fgw_bucket **out_buckets, size_t *out_count,
                                bool *out_truncated, struct fgw_error *error)
{
    struct memory_meta *memory = of(meta);
    struct fgw_bucket *buckets = fgw_arena_alloc(arena, (max + 1) * sizeof *buckets);
    size_t count = 0;
    (void)error;
    for (size_t i = 0; i < memory->bucket_count && count <= max; i++) {
        if (fgw_bytes_cmp(memory->buckets[i].name, after) <= 0) {
            continue;
        }
        FGW_CHECK(decode_bucket(arena, &memory->buckets[i], &buckets[count]) == FGW_OK);
        if (owner_id.len == 0 || fgw_bytes_eq(buckets[count].owner_id, owner_id)) {
            count++;
        }
    }
    *out_truncated = count > max;
    *out_count = count > max ? max : count;
    *out_buckets = buckets;
    return FGW_OK;
}

/* -- objects ---------------------------------------------------------------------------------- */

/* Order of a stored version against (bucket, key). */
static int compare_key(const struct memory_version *version, const struct fgw_id *bucket,
                       struct fgw_bytes key)
{
    int order = memcmp(version->bucket.bytes, bucket->bytes, sizeof bucket->bytes);
    return order != 0 ? order : fgw_bytes_cmp(version->key, key);
}

/* First stored version at or behind (bucket, key). */
static size_t lower_bound(const struct memory_meta *memory, const struct fgw_id *bucket,
                          struct fgw_bytes key)
{
    size_t low = 0;
    size_t high = memory->version_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_key(&memory->versions[middle], bucket, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static size_t find_version(const struct memory_meta *memory, const struct fgw_bucket *bucket,
                           struct fgw_bytes key, const struct fgw_version *version, bool *out_found)
{
    size_t i = lower_bound(memory, &bucket->id, key);
    for (; i < memory->version_count && compare_key(&memory->versions[i], &bucket->id, key) == 0;
         i++) {
        const struct memory_version *at = &memory->versions[i];
        if (version->kind == FGW_VERSION_LATEST ||
            (version->kind == FGW_VERSION_NULL && at->is_null) ||
            (version->kind == FGW_VERSION_ID && fgw_id_eq(&at->version, &version->id))) {
            *out_found = true;
            return i;
        }
    }
    *out_found = false;
    return i;
}

static bool is_latest(const struct memory_meta *memory, size_t i)
{
    const struct memory_version *at = &memory->versions[i];
    return i == 0 || compare_key(&memory->versions[i - 1], &at->bucket, at->key) != 0;
}

static enum fgw_err decode(const struct memory_meta *memory, size_t i, struct fgw_arena *arena,
                           struct fgw_object *out_object)
{
    const struct memory_version *at = &memory->versions[i];
    enum fgw_err err = fgw_row_decode_object(arena, fgw_arena_copy(arena, at->key),
                                             fgw_arena_copy(arena, fgw_buf_bytes(&at->row)),
                                             FGW_ROW_FULL, out_object, NULL);
    if (err == FGW_OK) {
        out_object->latest = is_latest(memory, i);
    }
    return err;
}

static enum fgw_err object_get(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, struct fgw_bytes key,
                               struct fgw_version version, struct fgw_object *out_object,
                               struct fgw_error *error)
{
    bool found = false;
    size_t i = find_version(of(meta), bucket, key, &version, &found);
    if (!found) {
        return fgw_error_set(error,
                             version.kind == FGW_VERSION_LATEST ? FGW_ERR_NO_SUCH_KEY
                                                                : FGW_ERR_NO_SUCH_VERSION,
                             NULL);
    }
    return decode(of(meta), i, arena, out_object);
}

static void remove_at(struct memory_meta *memory, size_t i)
{
    fgw_xfree((void *)memory->versions[i].key.ptr);
    fgw_buf_deinit(&memory->versions[i].row);
    memory->version_count--;
    memmove(&memory->versions[i], &memory->versions[i + 1],
            (memory->version_count - i) * sizeof *memory->versions);
}

static void insert(struct memory_meta *memory, const struct fgw_bucket *bucket,
                   const struct fgw_object *object)
{
    size_t i = lower_bound(memory, &bucket->id, object->key);
    memory->versions =
        fgw_xrealloc(memory->versions, (memory->version_count + 1) * sizeof *memory->versions);
    memmove(&memory->versions[i + 1], &memory->versions[i],
            (memory->version_count - i) * sizeof *memory->versions);
    memory->version_count++;
    struct memory_version *at = &memory->versions[i];
    *at = (struct memory_version){.bucket = bucket->id,
                                  .key = heap_copy(object->key),
                                  .version = object->version_id,
                                  .is_null = object->is_null,
                                  .marker = object->delete_marker};
    fgw_buf_init(&at->row, 0);
    fgw_row_encode_object(&at->row, object, NULL);
}

/* Makes `object` the newest version as the bucket's versioning wants it. */
static void write_newest(struct memory_meta *memory, const struct fgw_bucket *bucket,
                         struct fgw_object *object, struct fgw_written *out_written)
{
    bool found = false;
    struct fgw_version latest = {.kind = FGW_VERSION_LATEST};
    struct fgw_version null_version = {.kind = FGW_VERSION_NULL};
    size_t i = find_version(memory, bucket, object->key, &latest, &found);
    struct fgw_id newest = found ? memory->versions[i].version : (struct fgw_id){{0}};
    object->is_null = bucket->versioning != FGW_VERSIONING_ENABLED;
    fgw_id_version(fgw_clock_wall_ms(), found ? &newest : NULL, &object->version_id);
    object->mtime_ms = fgw_id_version_ms(&object->version_id);
    fgw_id_random(&object->rev);
    i = find_version(memory, bucket, object->key, &null_version, &found);
    if (object->is_null && found) {
        remove_at(memory, i);
    }
    insert(memory, bucket, object);
    *out_written = (struct fgw_written){.version_id = object->version_id,
                                        .is_null = object->is_null,
                                        .mtime_ms = object->mtime_ms,
                                        .delete_marker = object->delete_marker};
}

static enum fgw_err check(struct memory_meta *memory, struct fgw_arena *arena,
                          const struct fgw_bucket *bucket, struct fgw_bytes key,
                          const struct fgw_version *version,
                          const struct fgw_conditions *conditions, struct fgw_error *error)
{
    bool found = false;
    struct fgw_object existing;
    size_t i = find_version(memory, bucket, key, version, &found);
    if (found) {
        FGW_CHECK(decode(memory, i, arena, &existing) == FGW_OK);
        found = !existing.delete_marker;
    }
    return fgw_conditions_check(conditions, found ? &existing : NULL, error);
}

static enum fgw_err object_put(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_put *put,
                               struct fgw_written *out_written, struct fgw_error *error)
{
    struct fgw_version latest = {.kind = FGW_VERSION_LATEST};
    struct fgw_bucket bucket;
    enum fgw_err err = bucket_get(meta, arena, put->bucket->name, true, &bucket, error);
    if (err == FGW_OK) {
        err = check(of(meta), arena, &bucket, put->object.key, &latest, &put->conditions, error);
    }
    if (err == FGW_OK) {
        write_newest(of(meta), &bucket, &put->object, out_written);
    }
    return err;
}

static enum fgw_err object_delete(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, struct fgw_bytes key,
                                  struct fgw_version version,
                                  const struct fgw_conditions *conditions,
                                  struct fgw_written *out_written, struct fgw_error *error)
{
    struct memory_meta *memory = of(meta);
    enum fgw_err err = fgw_conditions_any(conditions)
                           ? check(memory, arena, bucket, key, &version, conditions, error)
                           : FGW_OK;
    if (err != FGW_OK) {
        return err;
    }
    if (version.kind == FGW_VERSION_LATEST && bucket->versioning != FGW_VERSIONING_NEVER) {
        struct fgw_object marker = {.key = key, .delete_marker = true};
        write_newest(memory, bucket, &marker, out_written);
        return FGW_OK;
    }
    bool found = false;
    size_t i = find_version(memory, bucket, key, &version, &found);
    *out_written = (struct fgw_written){0};
    if (found) {
        out_written->version_id = memory->versions[i].version;
        out_written->is_null = memory->versions[i].is_null;
        out_written->delete_marker = memory->versions[i].marker;
        out_written->removed_version = true;
        remove_at(memory, i);
    }
    return FGW_OK;
}

static enum fgw_err object_update(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, const struct fgw_object *object,
                                  struct fgw_error *error)
{
    struct memory_meta *memory = of(meta);
    struct fgw_version version = {FGW_VERSION_ID, object->version_id};
    struct fgw_object stored;
    bool found = false;
    size_t i = find_version(memory, bucket, object->key, &version, &found);
    if (found) {
        FGW_CHECK(decode(memory, i, arena, &stored) == FGW_OK);
    }
    if (!found || !fgw_id_eq(&stored.rev, &object->rev)) {
        return fgw_error_set(error, FGW_ERR_CONFLICT, NULL);
    }
    struct fgw_object fresh = *object;
    struct fgw_buf row;
    fgw_id_random(&fresh.rev);
    fgw_buf_init(&row, 0);
    fgw_row_encode_object(&row, &fresh, NULL);
    fgw_buf_deinit(&memory->versions[i].row);
    memory->versions[i].row = row;
    return FGW_OK;
}

/* -- lists ------------------------------------------------------------------------------------ */

/* Where a list of versions goes on behind after_version of key `after`. */
static size_t behind_version(const struct memory_meta *memory, const struct fgw_bucket *bucket,
                             const struct fgw_list_query *query)
{
    bool found = false;
    size_t i = find_version(memory, bucket, query->after, &query->after_version, &found);
    return found ? i + 1 : i;
}

static enum fgw_err list(struct fgw_meta *meta, struct fgw_arena *arena,
                         const struct fgw_bucket *bucket, const struct fgw_list_query *query,
                         bool versions, struct fgw_object_list *out_list)
{
    struct memory_meta *memory = of(meta);
    struct fgw_lister lister;
    enum fgw_lister_next next = FGW_LISTER_NEXT;
    fgw_lister_init(&lister, arena, query);
    size_t i = lower_bound(memory, &bucket->id, fgw_lister_start(&lister));
    if (versions && query->has_after_version) {
        i = behind_version(memory, bucket, query);
    }
    while (next != FGW_LISTER_DONE && i < memory->version_count &&
           fgw_id_eq(&memory->versions[i].bucket, &bucket->id)) {
        const struct memory_version *at = &memory->versions[i];
        bool take = false;
        bool visible = versions || (is_latest(memory, i) && !at->marker);
        next = fgw_lister_key(&lister, at->key, visible, &take);
        if (take) {
            struct fgw_object object;
            FGW_CHECK(decode(memory, i, arena, &object) == FGW_OK);
            next = fgw_lister_add(&lister, &object);
        }
        i = next == FGW_LISTER_SEEK ? lower_bound(memory, &bucket->id, fgw_lister_seek(&lister))
                                    : i + 1;
    }
    fgw_lister_result(&lister, out_list);
    fgw_lister_deinit(&lister);
    return FGW_OK;
}

static enum fgw_err object_list(struct fgw_meta *meta, struct fgw_arena *arena,
                                const struct fgw_bucket *bucket, const struct fgw_list_query *query,
                                struct fgw_object_list *out_list, struct fgw_error *error)
{
    (void)error;
    return list(meta, arena, bucket, query, false, out_list);
}

static enum fgw_err version_list(struct fgw_meta *meta, struct fgw_arena *arena,
                                 const struct fgw_bucket *bucket,
                                 const struct fgw_list_query *query,
                                 struct fgw_object_list *out_list, struct fgw_error *error)
{
    (void)error;
    return list(meta, arena, bucket, query, true, out_list);
}

/* -- identities ------------------------------------------------------------------------------- */

/* A few users; canonical id and display name are the access key, the secret has "-secret" behind. */
static enum fgw_err key_get(struct fgw_meta *meta, struct fgw_arena *arena,
                            struct fgw_bytes access_key, struct fgw_access_key *out_key,
                            struct fgw_user *out_user, struct fgw_error *error)
{
    static const struct {
        const char *name;
        enum fgw_policy_kind policy;
    } USERS[] = {{"mainaccesskey", FGW_POLICY_NONE},
                 {"altaccesskey", FGW_POLICY_NONE},
                 {"tenantaccesskey", FGW_POLICY_NONE},
                 {"readeraccesskey", FGW_POLICY_READONLY},
                 {"writeraccesskey", FGW_POLICY_READWRITE}};
    (void)meta;
    for (size_t i = 0; i < FGW_COUNT_OF(USERS); i++) {
        struct fgw_bytes name = fgw_bytes_str(USERS[i].name);
        if (fgw_bytes_eq(access_key, name)) {
            const char *secret = fgw_arena_printf(arena, "%s-secret", USERS[i].name);
            *out_key = (struct fgw_access_key){
                .access_key = name, .secret_key = fgw_bytes_str(secret), .user_name = name};
            *out_user = (struct fgw_user){.name = name,
                                          .canonical_id = name,
                                          .display_name = name,
                                          .policy = USERS[i].policy};
            return FGW_OK;
        }
    }
    return fgw_error_set(error, FGW_ERR_INVALID_ACCESS_KEY_ID, NULL);
}

static void free_meta(struct fgw_meta *meta)
{
    struct memory_meta *memory = of(meta);
    while (memory->version_count > 0) {
        remove_at(memory, memory->version_count - 1);
    }
    for (size_t i = 0; i < memory->bucket_count; i++) {
        fgw_xfree((void *)memory->buckets[i].name.ptr);
        fgw_buf_deinit(&memory->buckets[i].row);
    }
    fgw_xfree(memory->versions);
    fgw_xfree(memory->buckets);
    fgw_xfree(memory);
}

static const struct fgw_meta_ops OPS = {
    .bucket_create = bucket_create,
    .bucket_get = bucket_get,
    .bucket_update = bucket_update,
    .bucket_delete = bucket_delete,
    .bucket_list = bucket_list,
    .object_get = object_get,
    .object_put = object_put,
    .object_delete = object_delete,
    .object_update = object_update,
    .object_list = object_list,
    .version_list = version_list,
    .key_get = key_get,
    .free = free_meta,
};

struct fgw_meta *memory_meta_new(void)
{
    struct memory_meta *memory = fgw_xcalloc(1, sizeof *memory);
    memory->meta.ops = &OPS;
    return &memory->meta;
}
