/* rocks_internal.h: keys, the backend's struct and what its files share.
 *
 * Keys (one-byte table, then):
 *   'B' bucket name                                  bucket row
 *   'O' owner id, 00, bucket name                    empty
 *   'o' bucket id, key                               head: the newest version, marker or not
 *   'v' bucket id, escaped key, inverted version id  noncurrent version
 *   'u' upload id                                    upload row
 *   'U' bucket id, escaped key, upload id            empty
 *   'p' upload id, part number (2, big-endian), inverted attempt   part row
 *   'n' user name   'k' access key                   identity rows
 *   'K' user name, 00, access key                    empty
 * Escaped: 00 becomes 00 FF, the end is 00 01, so that byte order of the escaped form is byte order
 * of keys and no key is a prefix of another's rows. Inverted ids sort the newest first.
 */
#ifndef FGW_META_ROCKS_INTERNAL_H
#define FGW_META_ROCKS_INTERNAL_H

#include <stdatomic.h>

#include "meta/rocks/rocks.h"
#include "meta/row.h"

enum { KEY_BUFFER_MAX = FGW_STORAGE_KEY_MAX + 1200, ROW_MAX = 4 * 1024 * 1024 };

struct row_cache;

struct rocks {
    struct fgw_meta base;
    struct fgw_storage *storage;
    /* bumped when a bucket or identity row changes: snapshots of older generations are not used */
    _Atomic uint64_t generation;
    struct row_cache *caches; /* one a worker */
    unsigned cache_count;
};

static inline struct rocks *rocks_of(struct fgw_meta *meta)
{
    return (struct rocks *)(void *)meta;
}

/* -- keys.c: each returns a view of an arena copy -- */
struct fgw_bytes rocks_key_text(struct fgw_arena *arena, char table, struct fgw_bytes text);
struct fgw_bytes rocks_key_text2(struct fgw_arena *arena, char table, struct fgw_bytes a,
                                 struct fgw_bytes b);
struct fgw_bytes rocks_key_head(struct fgw_arena *arena, const struct fgw_id *bucket_id,
                                struct fgw_bytes key);
struct fgw_bytes rocks_key_version(struct fgw_arena *arena, const struct fgw_id *bucket_id,
                                   struct fgw_bytes key, const struct fgw_id *version_id);
/* All noncurrent versions of a key lie in [_versions_of, successor of it). */
struct fgw_bytes rocks_key_versions_of(struct fgw_arena *arena, const struct fgw_id *bucket_id,
                                       struct fgw_bytes key);
struct fgw_bytes rocks_key_upload(struct fgw_arena *arena, const struct fgw_id *upload_id);
struct fgw_bytes rocks_key_upload_index(struct fgw_arena *arena, const struct fgw_id *bucket_id,
                                        struct fgw_bytes key, const struct fgw_id *upload_id);
struct fgw_bytes rocks_key_part(struct fgw_arena *arena, const struct fgw_id *upload_id,
                                unsigned number, const struct fgw_id *attempt);
/* table byte and id only. */
struct fgw_bytes rocks_key_of_id(struct fgw_arena *arena, char table, const struct fgw_id *id);
/* End of the range of all keys that begin with prefix. */
struct fgw_bytes rocks_key_end(struct fgw_arena *arena, struct fgw_bytes prefix);
/* Key bytes of an escaped key at *rest, which moves behind its end mark. */
enum fgw_err rocks_key_unescape(struct fgw_arena *arena, struct fgw_bytes *rest,
                                struct fgw_bytes *out_key) FGW_MUST_CHECK;
void rocks_id_invert(const struct fgw_id *id, struct fgw_id *out_id);

/* -- rocks.c -- */
/* Row in the arena. */
enum fgw_err rocks_get(struct rocks *rocks, struct fgw_arena *arena, struct fgw_bytes key,
                       struct fgw_bytes *out_row) FGW_MUST_CHECK;
/* Same, from this worker's snapshot of the present generation when it has it: for bucket and
 * identity rows only. */
enum fgw_err rocks_get_snapshot(struct rocks *rocks, struct fgw_arena *arena, struct fgw_bytes key,
                                struct fgw_bytes *out_row) FGW_MUST_CHECK;
/* Row of evaluate, copied to the arena so that it outlives the view. */
enum fgw_err rocks_txn_get(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                           struct fgw_bytes key, struct fgw_bytes *out_row) FGW_MUST_CHECK;
/* The same for rows of buckets, which every write in them looks at. */
enum fgw_err rocks_txn_get_common(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                                  struct fgw_bytes key, struct fgw_bytes *out_row) FGW_MUST_CHECK;
void rocks_changed(struct rocks *rocks);
/* A code without a text gets "reading METADATA WHAT failed: ..."; returns err. */
enum fgw_err rocks_fail(struct fgw_error *error, enum fgw_err err, const char *what,
                        struct fgw_bytes name);

/* -- bucket.c -- */
enum fgw_err rocks_bucket_create(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                                 struct fgw_bucket *, struct fgw_error *);
enum fgw_err rocks_bucket_get(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes, bool,
                              struct fgw_bucket *, struct fgw_error *);
enum fgw_err rocks_bucket_update(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                                 struct fgw_error *);
enum fgw_err rocks_bucket_delete(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                                 struct fgw_error *);
enum fgw_err rocks_bucket_list(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                               struct fgw_bytes, unsigned, struct fgw_bucket **, size_t *, bool *,
                               struct fgw_error *);
/* The bucket as of this evaluation; NO_SUCH_BUCKET when it is gone or another of the same name. */
enum fgw_err rocks_txn_bucket(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                              const struct fgw_bucket *bucket, struct fgw_bucket *out_bucket)
    FGW_MUST_CHECK;

/* -- object.c -- */
enum fgw_err rocks_object_get(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                              struct fgw_bytes, struct fgw_version, struct fgw_object *,
                              struct fgw_error *);
enum fgw_err rocks_object_put(struct fgw_meta *, struct fgw_arena *, struct fgw_put *,
                              struct fgw_written *, struct fgw_error *);
enum fgw_err rocks_object_update(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                                 const struct fgw_object *, struct fgw_error *);

/* Head row of a key during evaluate. */
struct rocks_head {
    bool present;
    struct fgw_object object;
    struct fgw_row_state state;
};
enum fgw_err rocks_txn_head(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                            const struct fgw_id *bucket_id, struct fgw_bytes key,
                            struct rocks_head *out_head) FGW_MUST_CHECK;
/* Makes `object` the newest version of its key as `bucket`'s versioning asks: draws version id,
 * mtime, rev, moves or releases what was there. */
enum fgw_err rocks_txn_write_head(struct fgw_storage_txn *txn, struct fgw_arena *arena,
                                  const struct fgw_bucket *bucket, const struct rocks_head *before,
                                  struct fgw_object *object) FGW_MUST_CHECK;
void rocks_txn_release(struct fgw_storage_txn *txn, const struct fgw_object *object);

/* -- delete.c -- */
enum fgw_err rocks_object_delete(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                                 struct fgw_bytes, struct fgw_version,
                                 const struct fgw_conditions *, struct fgw_written *,
                                 struct fgw_error *);

/* -- list.c -- */
enum fgw_err rocks_object_list(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                               const struct fgw_list_query *, struct fgw_object_list *, struct fgw_error *);
enum fgw_err rocks_version_list(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                                const struct fgw_list_query *, struct fgw_object_list *,
                                struct fgw_error *);

/* -- upload.c -- */
enum fgw_err rocks_upload_create(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                                 const struct fgw_upload *, struct fgw_id *, struct fgw_error *);
enum fgw_err rocks_upload_get(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                              struct fgw_bytes, const struct fgw_id *, struct fgw_upload *,
                              struct fgw_error *);
enum fgw_err rocks_upload_abort(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                                const struct fgw_upload *, struct fgw_error *);
enum fgw_err rocks_upload_list(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                               const struct fgw_upload_list_query *, struct fgw_upload_list *,
                               struct fgw_error *);
enum fgw_err rocks_part_put(struct fgw_meta *, struct fgw_arena *, const struct fgw_upload *,
                            const struct fgw_part *, struct fgw_blob_staged *, struct fgw_error *);
enum fgw_err rocks_part_list(struct fgw_meta *, struct fgw_arena *, const struct fgw_upload *,
                             unsigned, unsigned, bool, struct fgw_part **, size_t *, bool *,
                             struct fgw_error *);
enum fgw_err rocks_upload_complete(struct fgw_meta *, struct fgw_arena *,
                                   const struct fgw_complete *, struct fgw_written *,
                                   struct fgw_error *);
/* The hold that commits a staged blob together with an operation. */
void rocks_hold_of(const struct fgw_blob_staged *staged, struct fgw_storage_hold *out_hold);

/* -- identity.c -- */
enum fgw_err rocks_key_get(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                           struct fgw_access_key *, struct fgw_user *, struct fgw_error *);
enum fgw_err rocks_user_put(struct fgw_meta *, struct fgw_arena *, const struct fgw_user *, bool,
                            struct fgw_error *);
enum fgw_err rocks_user_get(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                            struct fgw_user *, struct fgw_error *);
enum fgw_err rocks_user_remove(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                               struct fgw_error *);
enum fgw_err rocks_user_list(struct fgw_meta *, struct fgw_arena *, struct fgw_user **, size_t *,
                             struct fgw_error *);
enum fgw_err rocks_key_put(struct fgw_meta *, struct fgw_arena *, const struct fgw_access_key *,
                           bool, struct fgw_error *);
enum fgw_err rocks_key_remove(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                              struct fgw_error *);
enum fgw_err rocks_key_list(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                            struct fgw_access_key **, size_t *, struct fgw_error *);
enum fgw_err rocks_blob_live(struct fgw_meta *, struct fgw_arena *, const struct fgw_storage_owner *,
                             const struct fgw_cid *, struct fgw_blob_live *);

/* -- scan.c: rows of a range, read on the storage pool -- */

/* Called for each row on a pool thread; views die with the call. Continue, stop, or go on at
 * *out_seek (>= the key seen). */
enum rocks_scan_next { ROCKS_SCAN_NEXT, ROCKS_SCAN_STOP, ROCKS_SCAN_SEEK };
typedef enum rocks_scan_next rocks_scan_fn(void *context, struct fgw_bytes key,
                                           struct fgw_bytes row, struct fgw_bytes *out_seek);
enum fgw_err rocks_scan(struct rocks *rocks, struct fgw_bytes lower, struct fgw_bytes upper,
                        rocks_scan_fn *fn, void *context) FGW_MUST_CHECK;

#endif
