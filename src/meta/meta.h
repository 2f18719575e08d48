/* meta.h: names: buckets, objects, versions, uploads, identities. The contract of the metadata
 * backends (rocks: embedded, through storage's committer; cql: YugabyteDB, Cassandra, Scylla).
 *
 * Speaks the domain, never SQL or KV. Every call runs in a fiber and suspends it; results are
 * allocated in the arena handed in. Every change is atomic and conditional on what it read
 * (design/metadata.md): an FGW_OK answer is durable and seen by every later read anywhere.
 * Errors common to all: UNAVAILABLE (database away: 503 with Retry-After), UNKNOWN_OUTCOME (the
 * change may or may not have happened and could not be resolved), SLOW_DOWN, NEWER_VERSION (a row
 * with a critical unknown tag), CORRUPT.
 */
#ifndef FGW_META_META_H
#define FGW_META_META_H

#include "base/arena.h"
#include "base/bytes.h"
#include "blobs/blobs.h"

enum {
    FGW_META_ID_SIZE = 16,
    FGW_META_KEY_MAX = 1024,
    FGW_META_CHECKSUM_MAX = 32,
    FGW_META_RECENT = 4
};

struct fgw_meta;

/* 16 bytes: bucket id, version id, owner id, upload id, rev. Version ids: 48-bit milliseconds,
 * 16-bit counter, 64 random bits, big-endian: byte order is time order. Text: 32 hex digits. */
struct fgw_id {
    uint8_t bytes[FGW_META_ID_SIZE];
};
bool fgw_id_is_zero(const struct fgw_id *id);
bool fgw_id_eq(const struct fgw_id *a, const struct fgw_id *b);
void fgw_id_random(struct fgw_id *out_id);
/* Next version id at or after now_ms, greater than *newest (NULL: none seen at this key). */
void fgw_id_version(int64_t now_ms, const struct fgw_id *newest, struct fgw_id *out_id);
int64_t fgw_id_version_ms(const struct fgw_id *id);
void fgw_id_hex(const struct fgw_id *id, char out[33]);
enum fgw_err fgw_id_parse(struct fgw_bytes hex, struct fgw_id *out_id) FGW_MUST_CHECK;

/* -- small value types ----------------------------------------------------------------------- */

enum fgw_versioning { FGW_VERSIONING_NEVER, FGW_VERSIONING_ENABLED, FGW_VERSIONING_SUSPENDED };

/* Canned ACLs. */
enum fgw_acl {
    FGW_ACL_PRIVATE,
    FGW_ACL_PUBLIC_READ,
    FGW_ACL_PUBLIC_READ_WRITE,
    FGW_ACL_AUTHENTICATED_READ,
    FGW_ACL_BUCKET_OWNER_READ,
    FGW_ACL_BUCKET_OWNER_FULL_CONTROL
};

enum fgw_checksum {
    FGW_CHECKSUM_NONE,
    FGW_CHECKSUM_CRC32,
    FGW_CHECKSUM_CRC32C,
    FGW_CHECKSUM_CRC64NVME,
    FGW_CHECKSUM_SHA1,
    FGW_CHECKSUM_SHA256
};
enum fgw_checksum_type { FGW_CHECKSUM_FULL_OBJECT, FGW_CHECKSUM_COMPOSITE };

struct fgw_checksum_value {
    enum fgw_checksum algorithm;
    enum fgw_checksum_type type;
    uint8_t len; /* 4, 8, 20 or 32 */
    uint8_t bytes[FGW_META_CHECKSUM_MAX];
};

/* A header to give back: "content-type", "x-amz-meta-color", lower case. */
struct fgw_meta_pair {
    struct fgw_bytes name;
    struct fgw_bytes value;
};

/* -- identities ------------------------------------------------------------------------------ */

enum fgw_policy_kind {
    FGW_POLICY_NONE,
    FGW_POLICY_READONLY,
    FGW_POLICY_READWRITE,
    FGW_POLICY_ADMIN
};

struct fgw_user {
    struct fgw_bytes name;         /* unique, the argument of `fgw user add` */
    struct fgw_bytes canonical_id; /* 64 hex digits unless given */
    struct fgw_bytes display_name;
    struct fgw_bytes email;
    enum fgw_policy_kind policy;
    int64_t created_ms;
};

struct fgw_access_key {
    struct fgw_bytes access_key;
    struct fgw_bytes secret_key;
    struct fgw_bytes user_name;
    bool disabled;
    int64_t created_ms;
};

/* -- buckets --------------------------------------------------------------------------------- */

/* Documents of a bucket (policy, cors, ...), by name; a document is bytes of its S3 module. */
struct fgw_bucket {
    struct fgw_id id;
    struct fgw_bytes name;
    struct fgw_bytes owner_id; /* canonical id */
    struct fgw_bytes owner_name;
    struct fgw_bytes region;
    int64_t created_ms;
    enum fgw_versioning versioning;
    enum fgw_acl acl;
    bool object_lock;
    unsigned shards;
    unsigned replicas;      /* 0 = default */
    uint64_t quota_bytes;   /* 0 = none; judged by S3 (s3/quota.h) */
    uint64_t quota_objects; /* same */
    const struct fgw_meta_pair *documents;
    size_t document_count;
    struct fgw_id rev;
    struct fgw_bytes unknown; /* items of newer versions, carried over */
};

/* -- objects --------------------------------------------------------------------------------- */

struct fgw_object_part {
    unsigned number;
    uint64_t size;
    uint8_t md5[16];
    struct fgw_checksum_value checksum;
};

/* What a PUT, copy or Complete stores and a GET gives back. */
struct fgw_object {
    struct fgw_bytes key;
    struct fgw_id version_id; /* never zero; also the null version has one */
    bool is_null;             /* shown as "null" */
    bool delete_marker;
    bool latest;            /* filled by lists of versions and by version look-ups */
    struct fgw_id owner_id; /* of its holds: version id, or upload id */
    uint64_t size;
    int64_t mtime_ms;
    struct fgw_bytes etag;          /* without quotes: 32 hex, or 32 hex "-" n */
    struct fgw_bytes storage_class; /* empty = STANDARD */
    enum fgw_acl acl;
    struct fgw_bytes creator_id; /* canonical id of who wrote it; empty = anonymous */
    struct fgw_bytes creator_name;
    const struct fgw_meta_pair *headers; /* system and user metadata, as to be given back */
    size_t header_count;
    const struct fgw_meta_pair *tags;
    size_t tag_count;
    struct fgw_checksum_value checksum;
    const struct fgw_object_part *parts; /* multipart only */
    size_t part_count;
    const struct fgw_extent *extents; /* in order; none for an empty or marker row is legal */
    size_t extent_count;
    struct fgw_cid cid; /* root of the whole object */
    bool has_cid;
    bool canonical_cid;      /* equals `ipfs add` with profile unixfs-v1-2025 */
    struct fgw_id upload_id; /* zero unless made by Complete */
    struct fgw_id rev;
    struct fgw_bytes unknown;
};

/* Conditions of a write, evaluated against the row that the write replaces. */
struct fgw_conditions {
    bool if_none_match_any;         /* If-None-Match: * */
    struct fgw_bytes if_none_match; /* one ETag without quotes, or empty */
    bool if_match_any;              /* If-Match: * */
    struct fgw_bytes if_match;      /* one ETag without quotes, or empty */
    bool has_if_match_mtime;        /* x-amz-if-match-last-modified-time (DELETE) */
    int64_t if_match_mtime_ms;
    bool has_if_match_size; /* x-amz-if-match-size (DELETE) */
    uint64_t if_match_size;
};
/* existing: NULL when there is none or it is a delete marker. FGW_OK, PRECONDITION_FAILED (with the
 * element Condition), NO_SUCH_KEY (If-Match on nothing). */
enum fgw_err fgw_conditions_check(const struct fgw_conditions *conditions,
                                  const struct fgw_object *existing,
                                  struct fgw_error *error) FGW_MUST_CHECK;
bool fgw_conditions_any(const struct fgw_conditions *conditions);

/* Which version a call means. */
enum fgw_version_kind { FGW_VERSION_LATEST, FGW_VERSION_NULL, FGW_VERSION_ID };
struct fgw_version {
    enum fgw_version_kind kind;
    struct fgw_id id;
};

struct fgw_put {
    const struct fgw_bucket *bucket; /* as read at the start: its versioning decides, and is checked
                                        again when the write commits */
    struct fgw_object object;        /* key, owner_id, size, etag, headers...; version_id, mtime_ms,
                                        is_null, rev are drawn by the backend */
    struct fgw_blob_staged *staged; /* array in the order of the object's extents; each is committed
                                        on FGW_OK and discarded on any other code but UNKNOWN_OUTCOME
                                        (then the sweeper decides) */
    size_t staged_count;
    struct fgw_conditions conditions;
};

struct fgw_written {
    struct fgw_id version_id;
    bool is_null;
    int64_t mtime_ms;
    bool delete_marker;   /* of delete: a marker was made, or the version removed was one */
    bool removed_version; /* of delete: a version went for good */
};

/* -- lists ----------------------------------------------------------------------------------- */

struct fgw_list_query {
    struct fgw_bytes prefix;
    struct fgw_bytes delimiter; /* empty: none */
    struct fgw_bytes after;     /* exclusive; empty: from the start. One that equals or lies under a
                                    common prefix skips everything under it. */
    bool has_after_version;     /* versions: go on behind this version of key `after` */
    struct fgw_version after_version;
    unsigned max; /* entries and common prefixes together, 1..1000 */
};

/* One result: an object, or a common prefix. */
struct fgw_list_entry {
    bool is_prefix;
    struct fgw_bytes prefix;
    struct fgw_object
        object; /* listing columns only: key, version, size, etag, mtime, class, marker,
                                 creator, checksum algorithm */
};

struct fgw_object_list {
    struct fgw_list_entry *entries;
    size_t count;
    bool truncated; /* at least one more entry or prefix follows */
};

/* -- multipart ------------------------------------------------------------------------------- */

struct fgw_upload {
    struct fgw_id id; /* also the owner id of its holds */
    struct fgw_id bucket_id;
    struct fgw_bytes bucket_name;
    struct fgw_bytes key;
    int64_t created_ms;
    struct fgw_object object; /* headers, acl, class, creator, tags for the object to be */
    enum fgw_checksum checksum_algorithm;
    enum fgw_checksum_type checksum_type;
    struct fgw_id rev;
    bool completed; /* kept 7 days to answer repeats: answer below */
    struct fgw_written answer;
    struct fgw_bytes answer_etag;
    struct fgw_checksum_value answer_checksum;
};

struct fgw_part {
    unsigned number;       /* 1..10,000 */
    struct fgw_id attempt; /* the newest attempt of a number counts, unless Complete names another
                                   attempt's ETag */
    uint64_t size;
    uint8_t md5[16];
    int64_t mtime_ms;
    struct fgw_checksum_value checksum; /* as the client asked for, or as computed */
    struct fgw_extent extent;
};

struct fgw_complete {
    const struct fgw_bucket *bucket;
    struct fgw_id upload_id;
    struct fgw_id upload_rev;   /* as read; a change in between is noticed */
    struct fgw_object object;   /* size, etag, checksum, parts, extents, headers: the whole row;
                                      extents ascend by number */
    uint8_t part_list_hash[32]; /* SHA-256 over what the client listed: a repeat is recognised */
    struct fgw_conditions conditions;
};

struct fgw_upload_list_query {
    struct fgw_bytes prefix;
    struct fgw_bytes delimiter;
    struct fgw_bytes key_marker;
    bool has_upload_id_marker;
    struct fgw_id upload_id_marker;
    unsigned max;
};
struct fgw_upload_list_entry {
    bool is_prefix;
    struct fgw_bytes prefix;
    struct fgw_upload upload;
};
struct fgw_upload_list {
    struct fgw_upload_list_entry *entries;
    size_t count;
    bool truncated;
};

/* -- liveness -------------------------------------------------------------------------------- */

enum { FGW_META_LIVE_SETS = 16 };

/* Who names a blob for an owner (storage.md section 5). */
struct fgw_blob_live {
    bool live;
    bool any_set;   /* an open upload: its parts may lie, or come to lie, on any set */
    unsigned count; /* sets that the rows name it on, each once */
    uint64_t sets[FGW_META_LIVE_SETS]; /* 0: this process's own store */
};
/* Adds the sets on which these extents name the blob; live when there is one. */
void fgw_blob_live_note(struct fgw_blob_live *live, const struct fgw_extent *extents, size_t count,
                        const struct fgw_cid *root);

/* -- the contract ---------------------------------------------------------------------------- */

/* All results in `arena`. out_ parameters are untouched unless FGW_OK. */
struct fgw_meta_ops {
    /* Buckets. create: fills id, rev, created_ms; FGW_ERR_EXISTS with the existing bucket in
     * *out_bucket (decide by owner and settings). */
    enum fgw_err (*bucket_create)(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *wanted, struct fgw_bucket *out_bucket,
                                  struct fgw_error *error);
    /* fresh: as of now (writes); else a snapshot at most 1 s old (reads). NO_SUCH_BUCKET. */
    enum fgw_err (*bucket_get)(struct fgw_meta *meta, struct fgw_arena *arena,
                               struct fgw_bytes name, bool fresh, struct fgw_bucket *out_bucket,
                               struct fgw_error *error);
    /* Replaces the row IF rev is still bucket->rev; CONFLICT when not. */
    enum fgw_err (*bucket_update)(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, struct fgw_error *error);
    /* BUCKET_NOT_EMPTY, NO_SUCH_BUCKET. Open uploads do not block it and are aborted. */
    enum fgw_err (*bucket_delete)(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, struct fgw_error *error);
    /* Buckets of an owner (empty owner_id: all), by name, behind `after`; at most max. */
    enum fgw_err (*bucket_list)(struct fgw_meta *meta, struct fgw_arena *arena,
                                struct fgw_bytes owner_id, struct fgw_bytes after, unsigned max,
                                struct fgw_bucket **out_buckets, size_t *out_count,
                                bool *out_truncated, struct fgw_error *error);

    /* Objects. get: NO_SUCH_KEY / NO_SUCH_VERSION; a delete marker is returned as an object with
     * delete_marker set (the caller answers 404 or 405). */
    enum fgw_err (*object_get)(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, struct fgw_bytes key,
                               struct fgw_version version, struct fgw_object *out_object,
                               struct fgw_error *error);
    /* PRECONDITION_FAILED, NO_SUCH_KEY (conditions), NO_SUCH_BUCKET (deleted meanwhile). */
    enum fgw_err (*object_put)(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_put *put,
                               struct fgw_written *out_written, struct fgw_error *error);
    /* LATEST: removes (never versioned), makes a marker (enabled) or replaces the null version by a
     * null marker (suspended). ID / NULL: removes that version. What is not there is FGW_OK. */
    enum fgw_err (*object_delete)(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, struct fgw_bytes key,
                                  struct fgw_version version,
                                  const struct fgw_conditions *conditions,
                                  struct fgw_written *out_written, struct fgw_error *error);
    /* Replaces headers, tags, acl of the version that object->rev names, mtime and bytes kept;
     * CONFLICT when the row changed. */
    enum fgw_err (*object_update)(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, const struct fgw_object *object,
                                  struct fgw_error *error);
    enum fgw_err (*object_list)(struct fgw_meta *meta, struct fgw_arena *arena,
                                const struct fgw_bucket *bucket, const struct fgw_list_query *query,
                                struct fgw_object_list *out_list, struct fgw_error *error);
    enum fgw_err (*version_list)(struct fgw_meta *meta, struct fgw_arena *arena,
                                 const struct fgw_bucket *bucket,
                                 const struct fgw_list_query *query,
                                 struct fgw_object_list *out_list, struct fgw_error *error);

    /* Multipart. NO_SUCH_UPLOAD: unknown, aborted, of another key (the caller compares bucket and
     * key too). get returns completed uploads (for idempotent repeats). */
    enum fgw_err (*upload_create)(struct fgw_meta *meta, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, const struct fgw_upload *wanted,
                                  struct fgw_id *out_id, struct fgw_error *error);
    enum fgw_err (*upload_get)(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, struct fgw_bytes key,
                               const struct fgw_id *id, struct fgw_upload *out_upload,
                               struct fgw_error *error);
    enum fgw_err (*upload_abort)(struct fgw_meta *meta, struct fgw_arena *arena,
                                 const struct fgw_bucket *bucket, const struct fgw_upload *upload,
                                 struct fgw_error *error);
    enum fgw_err (*upload_list)(struct fgw_meta *meta, struct fgw_arena *arena,
                                const struct fgw_bucket *bucket,
                                const struct fgw_upload_list_query *query,
                                struct fgw_upload_list *out_list, struct fgw_error *error);
    /* staged is committed or discarded as with object_put. */
    enum fgw_err (*part_put)(struct fgw_meta *meta, struct fgw_arena *arena,
                             const struct fgw_upload *upload, const struct fgw_part *part,
                             struct fgw_blob_staged *staged, struct fgw_error *error);
    /* Newest attempt of each number > after, ascending, at most max (0: all 10,000); all_attempts:
     * every attempt, newest first within a number (Complete picks by ETag). */
    enum fgw_err (*part_list)(struct fgw_meta *meta, struct fgw_arena *arena,
                              const struct fgw_upload *upload, unsigned after, unsigned max,
                              bool all_attempts, struct fgw_part **out_parts, size_t *out_count,
                              bool *out_truncated, struct fgw_error *error);
    /* Once only, whoever calls: a repeat with the same ETag gives the same answer, one with another
     * NO_SUCH_UPLOAD; parts not used are released. A refused condition leaves the upload open. */
    enum fgw_err (*upload_complete)(struct fgw_meta *meta, struct fgw_arena *arena,
                                    const struct fgw_complete *complete,
                                    struct fgw_written *out_written, struct fgw_error *error);

    /* Identities. key_get: INVALID_ACCESS_KEY_ID; answers at most 5 s old, both structs filled. */
    enum fgw_err (*key_get)(struct fgw_meta *meta, struct fgw_arena *arena,
                            struct fgw_bytes access_key, struct fgw_access_key *out_key,
                            struct fgw_user *out_user, struct fgw_error *error);
    enum fgw_err (*user_put)(struct fgw_meta *meta, struct fgw_arena *arena,
                             const struct fgw_user *user, bool must_be_new,
                             struct fgw_error *error);
    enum fgw_err (*user_get)(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_bytes name,
                             struct fgw_user *out_user, struct fgw_error *error);
    /* Removes its keys too; its buckets stay. */
    enum fgw_err (*user_remove)(struct fgw_meta *meta, struct fgw_arena *arena,
                                struct fgw_bytes name, struct fgw_error *error);
    enum fgw_err (*user_list)(struct fgw_meta *meta, struct fgw_arena *arena,
                              struct fgw_user **out_users, size_t *out_count,
                              struct fgw_error *error);
    enum fgw_err (*key_put)(struct fgw_meta *meta, struct fgw_arena *arena,
                            const struct fgw_access_key *key, bool must_be_new,
                            struct fgw_error *error);
    enum fgw_err (*key_remove)(struct fgw_meta *meta, struct fgw_arena *arena,
                               struct fgw_bytes access_key, struct fgw_error *error);
    enum fgw_err (*key_list)(struct fgw_meta *meta, struct fgw_arena *arena,
                             struct fgw_bytes user_name, struct fgw_access_key **out_keys,
                             size_t *out_count, struct fgw_error *error);

    /* Does a row of this owner still name this blob, and on which sets? Linearizable (storage.md
     * section 5). */
    enum fgw_err (*blob_live)(struct fgw_meta *meta, struct fgw_arena *arena,
                              const struct fgw_storage_owner *owner, const struct fgw_cid *root,
                              struct fgw_blob_live *out_live);
    /* FGW_OK when requests can be served; else why not, in error. */
    enum fgw_err (*ready)(struct fgw_meta *meta, struct fgw_error *error);
    void (*free)(struct fgw_meta *meta);
};

/* First member of every backend. */
struct fgw_meta {
    const struct fgw_meta_ops *ops;
};

#endif
