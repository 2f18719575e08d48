/* row.h: rows of the domain as tag-length-value bytes, the same in both backends
 * (docs/formats/metadata-rows.md). Decoded structs point into the row handed in (and into the arena
 * for arrays): keep the row as long as the result. */
#ifndef FGW_META_ROW_H
#define FGW_META_ROW_H

#include "meta/meta.h"

/* State of a row beyond what S3 shows; used by the backends. */
struct fgw_row_state {
    struct fgw_id null_version; /* head rows: id of the noncurrent null version, zero if none */
    struct fgw_id recent[FGW_META_RECENT]; /* revs before the present one, newest first */
    unsigned recent_count;
    struct fgw_id
        claim; /* version rows being promoted: rev of the head whose deletion claims them */
};

enum fgw_row_depth {
    FGW_ROW_LISTING, /* what lists show; stops reading early */
    FGW_ROW_FULL
};

/* state may be NULL. The key is not in the row. */
void fgw_row_encode_object(struct fgw_buf *out, const struct fgw_object *object,
                           const struct fgw_row_state *state);
/* key: taken over into the result as it is. Errors: CORRUPT, NEWER_VERSION. */
enum fgw_err fgw_row_decode_object(struct fgw_arena *arena, struct fgw_bytes key,
                                   struct fgw_bytes row, enum fgw_row_depth depth,
                                   struct fgw_object *out_object,
                                   struct fgw_row_state *out_state) FGW_MUST_CHECK;

/* Listing columns alone, into an object that the caller zeroed (and whose key it sets), with copies in
 * the arena: the row need not live on. */
enum fgw_err fgw_row_decode_listing(struct fgw_arena *arena, struct fgw_bytes row,
                                    struct fgw_object *object) FGW_MUST_CHECK;
/* Looks at the first item only, which holds the flags. CORRUPT: an empty or damaged row. */
enum fgw_err fgw_row_is_marker(struct fgw_bytes row, bool *out_marker) FGW_MUST_CHECK;

/* Bytes at the front of an encoded object that FGW_ROW_LISTING needs: a backend may store them apart
 * from the rest; one behind the other they are the row again. */
size_t fgw_row_listing_size(struct fgw_bytes row);

void fgw_row_encode_bucket(struct fgw_buf *out, const struct fgw_bucket *bucket);
enum fgw_err fgw_row_decode_bucket(struct fgw_arena *arena, struct fgw_bytes name,
                                   struct fgw_bytes row,
                                   struct fgw_bucket *out_bucket) FGW_MUST_CHECK;

void fgw_row_encode_upload(struct fgw_buf *out, const struct fgw_upload *upload);
enum fgw_err fgw_row_decode_upload(struct fgw_arena *arena, const struct fgw_id *id,
                                   struct fgw_bytes row,
                                   struct fgw_upload *out_upload) FGW_MUST_CHECK;

void fgw_row_encode_part(struct fgw_buf *out, const struct fgw_part *part);
enum fgw_err fgw_row_decode_part(struct fgw_bytes row, struct fgw_part *out_part) FGW_MUST_CHECK;

void fgw_row_encode_user(struct fgw_buf *out, const struct fgw_user *user);
enum fgw_err fgw_row_decode_user(struct fgw_arena *arena, struct fgw_bytes name,
                                 struct fgw_bytes row, struct fgw_user *out_user) FGW_MUST_CHECK;
/* The secret goes in as it is handed over (already encrypted by the backend). */
void fgw_row_encode_access_key(struct fgw_buf *out, const struct fgw_access_key *key);
enum fgw_err fgw_row_decode_access_key(struct fgw_arena *arena, struct fgw_bytes access_key,
                                       struct fgw_bytes row,
                                       struct fgw_access_key *out_key) FGW_MUST_CHECK;

/* One extent: number, set, root, size and where its first block was. */
void fgw_row_encode_extent(struct fgw_buf *out, const struct fgw_extent *extent);
enum fgw_err fgw_row_decode_extent(struct fgw_bytes bytes,
                                   struct fgw_extent *out_extent) FGW_MUST_CHECK;

#endif
