/* admin.c: see admin.h. */
#include "console/admin.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/encode.h"
#include "base/rng.h"
#include "base/timefmt.h"
#include "console/admin_storage.h"
#include "event/fiber.h"
#include "s3/names.h"
#include "s3/usage.h"

enum {
    BODY_MAX = 64 * 1024,
    SECRET_MIN = 16,
    PAGE = 1000,
    SHARDS_MAX = 4096,
    REPLICAS_MAX = 16,
    QUOTA_TRIES = 16
};

struct call {
    struct fgw_admin *admin;
    struct fgw_arena arena;
    struct fgw_error error;
    const json_t *body;
    struct fgw_bytes query;
    json_t *answer;
};

static int refuse(struct call *call, int status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int refuse(struct call *call, int status, const char *code, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    call->answer = json_pack("{s:s,s:s}", "error", code, "message", text);
    return status;
}

/* An error of the metadata. */
static int failed(struct call *call, enum fgw_err err, const char *what, struct fgw_bytes name)
{
    switch (err) {
    case FGW_ERR_NOT_FOUND:
    case FGW_ERR_NO_SUCH_BUCKET:
    case FGW_ERR_INVALID_ACCESS_KEY_ID:
        return refuse(call, 404, "NotFound", "%s %.*s does not exist", what, FGW_FMT(name));
    case FGW_ERR_EXISTS:
        return refuse(call, 409, "Exists", "%s %.*s exists already", what, FGW_FMT(name));
    default:
        return refuse(call, fgw_err_http_status(err), fgw_err_s3_code(err), "%s %.*s: %s", what,
                      FGW_FMT(name), fgw_error_message(&call->error));
    }
}

static struct fgw_bytes member(const struct call *call, const char *name)
{
    return fgw_bytes_str(json_string_value(json_object_get(call->body, name)));
}

static json_t *text_of(struct fgw_bytes text)
{
    json_t *value = json_stringn((const char *)text.ptr, text.len);
    return value == NULL ? json_string("") : value;
}

static json_t *time_of(int64_t wall_ms)
{
    char iso[FGW_TIME_ISO8601_SIZE];
    fgw_time_iso8601(wall_ms, iso);
    return json_string(iso);
}

/* -- users ------------------------------------------------------------------------------------- */

static const char *const POLICIES[] = {"none", "readonly", "readwrite", "admin"};

static json_t *user_json(const struct fgw_user *user)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:s,s:o}", "name", text_of(user->name), "id",
                     text_of(user->canonical_id), "display_name", text_of(user->display_name),
                     "email", text_of(user->email), "policy", POLICIES[user->policy & 3], "created",
                     time_of(user->created_ms));
}

static int list_users(struct call *call)
{
    struct fgw_user *users;
    size_t count;
    struct fgw_meta *meta = call->admin->meta;
    enum fgw_err err = meta->ops->user_list(meta, &call->arena, &users, &count, &call->error);
    if (err != FGW_OK) {
        return failed(call, err, "listing users", fgw_bytes(NULL, 0));
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, user_json(&users[i]));
    }
    call->answer = json_pack("{s:o}", "users", list);
    return 200;
}

static bool valid_name(struct fgw_bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] <= ' ' || name.ptr[i] > '~' || name.ptr[i] == '/' || name.ptr[i] == ',') {
            return false;
        }
    }
    return name.len >= 1 && name.len <= 128;
}

static bool parse_policy(struct fgw_bytes text, enum fgw_policy_kind *out)
{
    if (text.len == 0) {
        *out = FGW_POLICY_NONE; /* all rights on buckets of its own, none on others */
        return true;
    }
    for (size_t i = 0; i < FGW_COUNT_OF(POLICIES); i++) {
        if (fgw_bytes_eq_str(text, POLICIES[i])) {
            *out = (enum fgw_policy_kind)i;
            return true;
        }
    }
    return false;
}

static struct fgw_bytes random_text(struct call *call, size_t bytes, const char *prefix)
{
    uint8_t raw[64];
    char text[128];
    fgw_rng_fill(raw, bytes);
    fgw_base32_encode(fgw_bytes(raw, bytes), text);
    for (char *p = text; *p != '\0'; p++) {
        *p = (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
    }
    return fgw_bytes_str(fgw_arena_printf(&call->arena, "%s%s", prefix, text));
}

/* The key as wanted or drawn; 0, or the status of a refusal. */
static int wanted_key(struct call *call, struct fgw_bytes user, struct fgw_access_key *out)
{
    uint8_t raw[30];
    struct fgw_bytes access = member(call, "access_key");
    struct fgw_bytes secret = member(call, "secret_key");
    if ((access.len == 0) != (secret.len == 0)) {
        return refuse(call, 400, "InvalidArgument", "access key and secret key go together");
    }
    if (access.len == 0) {
        char *text = fgw_arena_alloc(&call->arena, FGW_BASE64_SIZE(sizeof raw));
        fgw_rng_fill(raw, sizeof raw);
        fgw_base64url_encode(fgw_bytes(raw, sizeof raw), text);
        secret = fgw_bytes_str(text);
        access = random_text(call, 10, "FGW");
    }
    if (!valid_name(access) || access.len < 3 || secret.len < SECRET_MIN) {
        return refuse(call, 400, "InvalidArgument",
                      "an access key has 3 to 128 printable characters without blank , /, a secret "
                      "key at least %d",
                      SECRET_MIN);
    }
    if (fgw_bytes_eq_str(access, call->admin->root_access_key)) {
        return refuse(call, 409, "Exists", "access key %.*s is that of root", FGW_FMT(access));
    }
    *out = (struct fgw_access_key){.access_key = access,
                                   .secret_key = secret,
                                   .user_name = user,
                                   .created_ms = fgw_clock_wall_ms()};
    return 0;
}

static int add_user(struct call *call)
{
    uint8_t raw[32];
    struct fgw_meta *meta = call->admin->meta;
    struct fgw_access_key key;
    struct fgw_user user = {.name = member(call, "name"),
                            .canonical_id = member(call, "id"),
                            .email = member(call, "email"),
                            .display_name = member(call, "display_name"),
                            .created_ms = fgw_clock_wall_ms()};
    if (!valid_name(user.name) || fgw_bytes_eq_str(user.name, "root")) {
        return refuse(call, 400, "InvalidArgument",
                      "a user name has 1 to 128 printable characters without blank , / and is not "
                      "root");
    }
    if (!parse_policy(member(call, "policy"), &user.policy)) {
        return refuse(
            call, 400, "InvalidArgument",
            "policy must be none, readonly, readwrite or admin; documents are not built yet");
    }
    if (user.canonical_id.len == 0) {
        fgw_rng_fill(raw, sizeof raw);
        user.canonical_id = fgw_bytes_str(fgw_hex(&call->arena, fgw_bytes(raw, sizeof raw)));
    }
    if (user.display_name.len == 0) {
        user.display_name = user.name;
    }
    int refused = wanted_key(call, user.name, &key);
    if (refused != 0) {
        return refused;
    }
    enum fgw_err err = meta->ops->user_put(meta, &call->arena, &user, true, &call->error);
    if (err != FGW_OK) {
        return failed(call, err, "user", user.name);
    }
    err = meta->ops->key_put(meta, &call->arena, &key, true, &call->error);
    if (err != FGW_OK) {
        (void)meta->ops->user_remove(meta, &call->arena, user.name, NULL);
        return failed(call, err, "access key", key.access_key);
    }
    call->answer = user_json(&user);
    (void)json_object_set_new(call->answer, "access_key", text_of(key.access_key));
    (void)json_object_set_new(call->answer, "secret_key", text_of(key.secret_key));
    return 201;
}

static json_t *key_json(const struct fgw_access_key *key)
{
    return json_pack("{s:o,s:o,s:b,s:o}", "access_key", text_of(key->access_key), "user",
                     text_of(key->user_name), "disabled", key->disabled, "created",
                     time_of(key->created_ms));
}

static enum fgw_err keys_of(struct call *call, struct fgw_bytes user, json_t *list)
{
    struct fgw_access_key *keys;
    size_t count;
    struct fgw_meta *meta = call->admin->meta;
    enum fgw_err err = meta->ops->key_list(meta, &call->arena, user, &keys, &count, &call->error);
    for (size_t i = 0; err == FGW_OK && i < count; i++) {
        (void)json_array_append_new(list, key_json(&keys[i]));
    }
    return err;
}

static int show_user(struct call *call, struct fgw_bytes name)
{
    struct fgw_user user;
    struct fgw_meta *meta = call->admin->meta;
    enum fgw_err err = meta->ops->user_get(meta, &call->arena, name, &user, &call->error);
    json_t *keys = json_array();
    err = err == FGW_OK ? keys_of(call, name, keys) : err;
    if (err != FGW_OK) {
        json_decref(keys);
        return failed(call, err, "user", name);
    }
    call->answer = user_json(&user);
    (void)json_object_set_new(call->answer, "keys", keys);
    return 200;
}

/* A bucket whose owner is gone can only be reached by root and users with a policy. FGW_ERR_EXISTS with
 * its name when the user owns one. */
static enum fgw_err owns_no_bucket(struct call *call, struct fgw_bytes user_name,
                                   struct fgw_bytes *out_bucket)
{
    struct fgw_user user;
    struct fgw_bucket *buckets;
    size_t count;
    bool truncated;
    struct fgw_meta *meta = call->admin->meta;
    enum fgw_err err = meta->ops->user_get(meta, &call->arena, user_name, &user, &call->error);
    if (err == FGW_OK) {
        err = meta->ops->bucket_list(meta, &call->arena, user.canonical_id, fgw_bytes(NULL, 0), 1,
                                     &buckets, &count, &truncated, &call->error);
    }
    if (err == FGW_OK && count > 0) {
        *out_bucket = buckets[0].name;
        return FGW_ERR_EXISTS;
    }
    return err;
}

static int remove_user(struct call *call, struct fgw_bytes name)
{
    struct fgw_meta *meta = call->admin->meta;
    struct fgw_bytes bucket = {NULL, 0};
    bool force = fgw_bytes_eq_str(call->query, "force=true");
    enum fgw_err err = force ? FGW_OK : owns_no_bucket(call, name, &bucket);
    if (bucket.len > 0) {
        return refuse(call, 409, "UserOwnsBuckets",
                      "user %.*s owns buckets, among them %.*s: delete them first; or --force, "
                      "then they stay as they are, for root and users with a policy",
                      FGW_FMT(name), FGW_FMT(bucket));
    }
    if (err == FGW_OK) {
        err = meta->ops->user_remove(meta, &call->arena, name, &call->error);
    }
    if (err != FGW_OK) {
        return failed(call, err, "user", name);
    }
    call->answer = json_pack("{s:o}", "removed", text_of(name));
    return 200;
}

/* -- keys -------------------------------------------------------------------------------------- */

static int list_keys(struct call *call)
{
    struct fgw_user *users;
    size_t count;
    struct fgw_meta *meta = call->admin->meta;
    struct fgw_bytes only = {NULL, 0};
    if (fgw_bytes_starts_with(call->query, FGW_LIT("user=")) &&
        fgw_uri_decode(&call->arena, fgw_bytes_sub(call->query, 5, SIZE_MAX), true, &only) !=
            FGW_OK) {
        return refuse(call, 400, "InvalidArgument", "the query cannot be decoded");
    }
    json_t *list = json_array();
    enum fgw_err err = FGW_OK;
    if (only.len > 0) {
        err = keys_of(call, only, list);
    } else {
        err = meta->ops->user_list(meta, &call->arena, &users, &count, &call->error);
        for (size_t i = 0; err == FGW_OK && i < count; i++) {
            err = keys_of(call, users[i].name, list);
        }
    }
    if (err != FGW_OK) {
        json_decref(list);
        return failed(call, err, "listing keys of", only);
    }
    call->answer = json_pack("{s:o}", "keys", list);
    return 200;
}

static int add_key(struct call *call)
{
    struct fgw_access_key key;
    struct fgw_bytes user = member(call, "user");
    struct fgw_meta *meta = call->admin->meta;
    int refused = wanted_key(call, user, &key);
    if (refused != 0) {
        return refused;
    }
    enum fgw_err err = meta->ops->key_put(meta, &call->arena, &key, true, &call->error);
    if (err != FGW_OK) {
        return failed(call, err, err == FGW_ERR_NOT_FOUND ? "user" : "access key",
                      err == FGW_ERR_NOT_FOUND ? user : key.access_key);
    }
    call->answer = key_json(&key);
    (void)json_object_set_new(call->answer, "secret_key", text_of(key.secret_key));
    return 201;
}

static int remove_key(struct call *call, struct fgw_bytes access_key)
{
    struct fgw_meta *meta = call->admin->meta;
    enum fgw_err err = meta->ops->key_remove(meta, &call->arena, access_key, &call->error);
    if (err != FGW_OK) {
        return failed(call, err, "access key", access_key);
    }
    call->answer = json_pack("{s:o}", "removed", text_of(access_key));
    return 200;
}

/* key_get hides disabled keys, so the row is found through the lists. */
static int set_disabled(struct call *call, struct fgw_bytes access_key, bool disabled)
{
    struct fgw_user *users;
    size_t user_count;
    struct fgw_meta *meta = call->admin->meta;
    enum fgw_err err = meta->ops->user_list(meta, &call->arena, &users, &user_count, &call->error);
    for (size_t i = 0; err == FGW_OK && i < user_count; i++) {
        struct fgw_access_key *keys;
        size_t count;
        err = meta->ops->key_list(meta, &call->arena, users[i].name, &keys, &count, &call->error);
        for (size_t j = 0; err == FGW_OK && j < count; j++) {
            if (fgw_bytes_eq(keys[j].access_key, access_key)) {
                keys[j].disabled = disabled;
                err = meta->ops->key_put(meta, &call->arena, &keys[j], false, &call->error);
                call->answer = err == FGW_OK ? key_json(&keys[j]) : NULL;
                return err == FGW_OK ? 200 : failed(call, err, "access key", access_key);
            }
        }
    }
    return failed(call, err == FGW_OK ? FGW_ERR_NOT_FOUND : err, "access key", access_key);
}

/* -- buckets, status --------------------------------------------------------------------------- */

static json_t *limit_of(uint64_t value)
{
    return value == 0 ? json_null() : json_integer((json_int_t)value);
}

static json_t *bucket_json(const struct fgw_bucket *bucket)
{
    static const char *const VERSIONING[] = {"never", "enabled", "suspended"};
    char id[2 * FGW_META_ID_SIZE + 1] = "";
    fgw_hex_encode(fgw_bytes(bucket->id.bytes, FGW_META_ID_SIZE), id);
    return json_pack(
        "{s:o,s:s,s:o,s:o,s:o,s:s,s:i,s:i,s:o,s:o}", "name", text_of(bucket->name), "id", id,
        "owner_id", text_of(bucket->owner_id), "owner", text_of(bucket->owner_name), "created",
        time_of(bucket->created_ms), "versioning", VERSIONING[bucket->versioning % 3], "shards",
        (int)bucket->shards, "replicas", (int)bucket->replicas, "quota_bytes",
        limit_of(bucket->quota_bytes), "quota_objects", limit_of(bucket->quota_objects));
}

static int list_buckets(struct call *call)
{
    struct fgw_meta *meta = call->admin->meta;
    struct fgw_bytes after = {NULL, 0};
    bool truncated = true;
    json_t *list = json_array();
    while (truncated) {
        struct fgw_bucket *buckets;
        size_t count;
        enum fgw_err err = meta->ops->bucket_list(meta, &call->arena, fgw_bytes(NULL, 0), after,
                                                  PAGE, &buckets, &count, &truncated, &call->error);
        if (err != FGW_OK) {
            json_decref(list);
            return failed(call, err, "listing buckets", after);
        }
        for (size_t i = 0; i < count; i++) {
            (void)json_array_append_new(list, bucket_json(&buckets[i]));
            after = buckets[i].name;
        }
        truncated = truncated && count > 0;
    }
    call->answer = json_pack("{s:o}", "buckets", list);
    return 200;
}

static int show_bucket(struct call *call, struct fgw_bytes name)
{
    struct fgw_bucket bucket;
    struct fgw_meta *meta = call->admin->meta;
    enum fgw_err err = meta->ops->bucket_get(meta, &call->arena, name, true, &bucket, &call->error);
    if (err != FGW_OK) {
        return failed(call, err, "bucket", name);
    }
    call->answer = bucket_json(&bucket);
    return 200;
}

/* With what the bucket holds now, counted by a walk over it. */
static int show_quota(struct call *call, struct fgw_bytes name)
{
    struct fgw_bucket bucket;
    struct fgw_s3_usage usage;
    struct fgw_meta *meta = call->admin->meta;
    enum fgw_err err = meta->ops->bucket_get(meta, &call->arena, name, true, &bucket, &call->error);
    if (err == FGW_OK) {
        err = fgw_s3_usage_count(meta, &bucket, NULL, NULL, &usage, &call->error);
    }
    if (err != FGW_OK) {
        return failed(call, err, "bucket", name);
    }
    call->answer =
        json_pack("{s:o,s:o,s:o,s:I,s:I,s:I}", "name", text_of(bucket.name), "quota_bytes",
                  limit_of(bucket.quota_bytes), "quota_objects", limit_of(bucket.quota_objects),
                  "bytes", (json_int_t)usage.bytes, "objects", (json_int_t)usage.objects,
                  "upload_bytes", (json_int_t)usage.upload_bytes);
    return 200;
}

/* Absent: stays. False: no number from 0. */
static bool take_limit(const struct call *call, const char *name, uint64_t *limit)
{
    const json_t *value = json_object_get(call->body, name);
    if (value == NULL) {
        return true;
    }
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        return false;
    }
    *limit = (uint64_t)json_integer_value(value);
    return true;
}

static int set_quota(struct call *call, struct fgw_bytes name)
{
    struct fgw_bucket bucket;
    struct fgw_meta *meta = call->admin->meta;
    enum fgw_err err = FGW_ERR_CONFLICT;
    /* somebody else may be changing the bucket's row */
    for (unsigned attempt = 0; attempt < QUOTA_TRIES && err == FGW_ERR_CONFLICT; attempt++) {
        err = meta->ops->bucket_get(meta, &call->arena, name, true, &bucket, &call->error);
        if (err == FGW_OK && (!take_limit(call, "bytes", &bucket.quota_bytes) ||
                              !take_limit(call, "objects", &bucket.quota_objects))) {
            return refuse(call, 400, "InvalidArgument",
                          "bytes and objects are whole numbers, 0 for no limit");
        }
        if (err == FGW_OK) {
            err = meta->ops->bucket_update(meta, &call->arena, &bucket, &call->error);
        }
    }
    return err == FGW_OK ? show_quota(call, name) : failed(call, err, "bucket", name);
}

/* Owner by user name; root without one. */
static enum fgw_err find_owner(struct call *call, struct fgw_bucket *bucket)
{
    struct fgw_user user;
    struct fgw_bytes owner = member(call, "owner");
    struct fgw_meta *meta = call->admin->meta;
    bucket->owner_id = call->admin->root_id;
    bucket->owner_name = FGW_LIT("root");
    if (owner.len == 0 || fgw_bytes_eq_str(owner, "root")) {
        return FGW_OK;
    }
    enum fgw_err err = meta->ops->user_get(meta, &call->arena, owner, &user, &call->error);
    if (err == FGW_OK) {
        bucket->owner_id = user.canonical_id;
        bucket->owner_name = user.display_name;
    }
    return err;
}

static int add_bucket(struct call *call)
{
    struct fgw_meta *meta = call->admin->meta;
    struct fgw_bucket made;
    json_int_t shards = json_integer_value(json_object_get(call->body, "shards"));
    json_int_t replicas = json_integer_value(json_object_get(call->body, "replicas"));
    struct fgw_bucket wanted = {.name = member(call, "name"),
                                .region = fgw_bytes_str(call->admin->region)};
    if (!fgw_s3_bucket_name_valid(wanted.name)) {
        return refuse(call, 400, "InvalidBucketName",
                      "a bucket name has 3 to 63 of a-z 0-9 . - as S3 allows them: \"%.*s\"",
                      FGW_FMT(fgw_bytes_sub(wanted.name, 0, 200)));
    }
    if (fgw_s3_bucket_name_reserved(wanted.name)) {
        return refuse(call, 400, "InvalidBucketName",
                      "S3 keeps names that begin with xn--, sthree- or amzn-s3-demo- or end in "
                      "-s3alias, --ol-s3, .mrap, --x-s3 or --table-s3: \"%.*s\"",
                      FGW_FMT(wanted.name));
    }
    if (shards < 0 || shards > SHARDS_MAX || replicas < 0 || replicas > REPLICAS_MAX) {
        return refuse(call, 400, "InvalidArgument", "shards 1 to %d, replicas 1 to %d", SHARDS_MAX,
                      REPLICAS_MAX);
    }
    wanted.shards = (unsigned)shards;
    wanted.replicas = (unsigned)replicas;
    enum fgw_err err = find_owner(call, &wanted);
    if (err != FGW_OK) {
        return failed(call, err, "user", member(call, "owner"));
    }
    err = meta->ops->bucket_create(meta, &call->arena, &wanted, &made, &call->error);
    if (err != FGW_OK) {
        return failed(call, err, "bucket", wanted.name);
    }
    call->answer = bucket_json(&made);
    return 201;
}

static int show_status(struct call *call)
{
    struct fgw_error error;
    fgw_error_init(&error);
    struct fgw_meta *meta = call->admin->meta;
    enum fgw_err err = meta->ops->ready(meta, &error);
    call->answer = json_pack("{s:b,s:s}", "metadata_ready", err == FGW_OK, "metadata",
                             err == FGW_OK ? "ok" : fgw_error_message(&error));
    if (call->admin->status != NULL) {
        call->admin->status(call->admin->status_context, call->answer);
    }
    return 200;
}

/* -- dispatch ----------------------------------------------------------------------------------- */

/* 0: none of the data directory's. */
static int on_storage(struct call *call, const char *method, struct fgw_bytes kind,
                      struct fgw_bytes name, struct fgw_bytes verb)
{
    struct fgw_admin_storage_call storage_call = {
        .method = method, .kind = kind, .name = name, .verb = verb, .body = call->body};
    return call->admin->storage == NULL
               ? 0
               : fgw_admin_storage_execute(call->admin->storage, &storage_call, &call->answer);
}

static int on_item(struct call *call, const char *method, struct fgw_bytes kind,
                   struct fgw_bytes name, struct fgw_bytes verb)
{
    bool get = strcmp(method, "GET") == 0;
    bool delete = strcmp(method, "DELETE") == 0;
    bool post = strcmp(method, "POST") == 0;
    if (fgw_bytes_eq_str(kind, "users") && verb.len == 0 && (get || delete)) {
        return get ? show_user(call, name) : remove_user(call, name);
    }
    if (fgw_bytes_eq_str(kind, "buckets") && verb.len == 0 && get) {
        return show_bucket(call, name);
    }
    if (fgw_bytes_eq_str(kind, "buckets") && fgw_bytes_eq_str(verb, "quota") && (get || post)) {
        return get ? show_quota(call, name) : set_quota(call, name);
    }
    if (fgw_bytes_eq_str(kind, "keys") && verb.len == 0 && delete) {
        return remove_key(call, name);
    }
    bool disable = fgw_bytes_eq_str(verb, "disable");
    if (fgw_bytes_eq_str(kind, "keys") && post && (disable || fgw_bytes_eq_str(verb, "enable"))) {
        return set_disabled(call, name, disable);
    }
    return refuse(call, 404, "NotFound", "no such call");
}

static int on_collection(struct call *call, const char *method, struct fgw_bytes kind)
{
    bool post = strcmp(method, "POST") == 0;
    if (!post && strcmp(method, "GET") != 0) {
        return refuse(call, 405, "MethodNotAllowed", "GET or POST");
    }
    if (fgw_bytes_eq_str(kind, "users")) {
        return post ? add_user(call) : list_users(call);
    }
    if (fgw_bytes_eq_str(kind, "keys")) {
        return post ? add_key(call) : list_keys(call);
    }
    if (fgw_bytes_eq_str(kind, "buckets")) {
        return post ? add_bucket(call) : list_buckets(call);
    }
    if (fgw_bytes_eq_str(kind, "status") && !post) {
        return show_status(call);
    }
    return refuse(call, 404, "NotFound", "no such call");
}

static int on_nodes(struct call *call, const char *method, struct fgw_bytes name,
                    struct fgw_bytes verb)
{
    const struct fgw_admin *admin = call->admin;
    return admin->nodes == NULL
               ? refuse(call, 404, "NotFound", "this process is in no cluster")
               : admin->nodes(admin->nodes_context, method, name, verb, call->body, &call->answer);
}

static const struct fgw_admin_extra *find_extra(const struct fgw_admin *admin,
                                                struct fgw_bytes kind)
{
    for (size_t i = 0; i < admin->extra_count; i++) {
        if (fgw_bytes_eq_str(kind, admin->extras[i].kind)) {
            return &admin->extras[i];
        }
    }
    return NULL;
}

static int dispatch(struct call *call, const char *method, struct fgw_bytes kind,
                    struct fgw_bytes name, struct fgw_bytes rest)
{
    const struct fgw_admin_extra *extra = find_extra(call->admin, kind);
    if (extra != NULL) {
        struct fgw_admin_request request = {method, name, call->query, call->body,
                                            call->admin->storage != NULL};
        return extra->execute(extra->context, &request, &call->answer);
    }
    int status = on_storage(call, method, kind, name, rest);
    if (status != 0) {
        return status;
    }
    return name.len > 0 ? on_item(call, method, kind, name, rest)
                        : on_collection(call, method, kind);
}

int fgw_admin_execute(struct fgw_admin *admin, const char *method, struct fgw_bytes path,
                      struct fgw_bytes query, const json_t *body, json_t **out_answer)
{
    struct call call = {.admin = admin, .body = body, .query = query};
    struct fgw_bytes kind = {NULL, 0};
    struct fgw_bytes name = {NULL, 0};
    int status = 404;
    fgw_arena_init(&call.arena, 0);
    fgw_error_init(&call.error);
    if (admin->database_wait_ms > 0 && strcmp(method, "GET") != 0) {
        fgw_fiber_set_patience(admin->database_wait_ms);
    }
    if (!fgw_bytes_starts_with(path, FGW_LIT("/admin/"))) {
        status = refuse(&call, 404, "NotFound", "calls begin with /admin/");
    } else {
        struct fgw_bytes rest = fgw_bytes_sub(path, 7, SIZE_MAX);
        (void)fgw_bytes_split(&rest, '/', &kind);
        bool item = fgw_bytes_split(&rest, '/', &name) && name.len > 0;
        if (item && fgw_uri_decode(&call.arena, name, false, &name) != FGW_OK) {
            status = refuse(&call, 400, "InvalidArgument", "the path cannot be decoded");
        } else if (fgw_bytes_eq_str(kind, "nodes")) {
            status = on_nodes(&call, method, name, rest);
        } else {
            status = dispatch(&call, method, kind, item ? name : fgw_bytes(NULL, 0), rest);
        }
    }
    if (admin->database_wait_ms > 0) {
        fgw_fiber_set_patience(UINT64_MAX);
    }
    fgw_arena_deinit(&call.arena);
    *out_answer = call.answer == NULL ? json_object() : call.answer;
    return status;
}

static enum fgw_err read_body(struct fgw_http_exchange *exchange, struct fgw_buf *out)
{
    struct fgw_bytes piece;
    enum fgw_err err;
    while ((err = fgw_http_body_read(exchange, &piece)) == FGW_OK) {
        err = fgw_buf_append(out, piece);
        if (err != FGW_OK) {
            return err;
        }
    }
    return err == FGW_ERR_END ? FGW_OK : err;
}

static int serve(struct fgw_admin *admin, struct fgw_http_exchange *exchange, struct fgw_bytes path,
                 fgw_admin_guard *guard, json_t **out_answer)
{
    const struct fgw_http_request *request = fgw_http_request(exchange);
    struct fgw_buf text;
    struct fgw_error error;
    json_t *body = NULL;
    int status = 400;
    fgw_error_init(&error);
    fgw_buf_init(&text, BODY_MAX);
    enum fgw_err err = read_body(exchange, &text);
    bool readable = err == FGW_OK;
    if (readable && guard != NULL) {
        err = guard(admin, exchange, fgw_buf_bytes(&text), &error);
    }
    if (err == FGW_OK && text.len > 0) {
        body = json_loadb((const char *)text.ptr, text.len, 0, NULL);
        readable = body != NULL;
    }
    if (!readable) {
        *out_answer = json_pack("{s:s,s:s}", "error", "InvalidArgument", "message",
                                "the body is no JSON document of at most 64 KiB");
    } else if (err != FGW_OK) {
        status = fgw_err_http_status(err);
        *out_answer = json_pack("{s:s,s:s}", "error", fgw_err_s3_code(err), "message",
                                fgw_error_message(&error));
    } else {
        const char *method = fgw_arena_strdup(fgw_http_arena(exchange), request->method_text);
        status = fgw_admin_execute(admin, method, path, request->raw_query, body, out_answer);
    }
    json_decref(body);
    fgw_buf_deinit(&text);
    return status;
}

void fgw_admin_serve(struct fgw_admin *admin, struct fgw_http_exchange *exchange,
                     struct fgw_bytes path, fgw_admin_guard *guard)
{
    json_t *answer = NULL;
    int status = serve(admin, exchange, path, guard, &answer);
    char *text = json_dumps(answer, JSON_COMPACT);
    (void)fgw_http_respond(exchange, status, "application/json", fgw_bytes_str(text));
    fgw_xfree(text);
    json_decref(answer);
}

void fgw_admin_handle(void *admin, struct fgw_http_exchange *exchange)
{
    fgw_admin_serve(admin, exchange, fgw_http_request(exchange)->raw_path, NULL);
}
