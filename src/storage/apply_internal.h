/* apply_internal.h: what the files of apply share: rows as the batch at hand leaves them. */
#ifndef FGW_STORAGE_APPLY_INTERNAL_H
#define FGW_STORAGE_APPLY_INTERNAL_H

#include "storage/apply.h"

/* FGW_ERR_NOT_FOUND; the view lives until the batch ends. */
enum fgw_err fgw_apply_get(struct fgw_apply *apply, const struct fgw_row_key *key,
                           struct fgw_bytes *out_value) FGW_MUST_CHECK;
/* Stores apply->encoded. */
void fgw_apply_put(struct fgw_apply *apply, const struct fgw_row_key *key);
void fgw_apply_delete(struct fgw_apply *apply, const struct fgw_row_key *key);
void fgw_apply_count(struct fgw_apply *apply, uint64_t group, int blocks, uint32_t block_len);
/* A block was written into the group, whether the index points to it or not. */
void fgw_apply_count_written(struct fgw_apply *apply, uint64_t group, uint32_t block_len);

/* Whose reference on a block: an owner, or a list (list_id != NULL). */
struct fgw_apply_ref {
    const struct fgw_item_owner *owner;
    const uint8_t *list_id;
};
enum fgw_err fgw_apply_add_ref(struct fgw_apply *apply, const struct fgw_item_block *block,
                               const struct fgw_apply_ref *ref) FGW_MUST_CHECK;
/* Passed over when there is none. at_once: a block without references goes now. */
enum fgw_err fgw_apply_drop_ref(struct fgw_apply *apply, const uint8_t digest[FGW_SHA256_SIZE],
                                const struct fgw_apply_ref *ref, bool at_once) FGW_MUST_CHECK;
enum fgw_err fgw_apply_free_block(struct fgw_apply *apply, struct fgw_bytes digest) FGW_MUST_CHECK;
enum fgw_err fgw_apply_move(struct fgw_apply *apply, struct fgw_bytes value) FGW_MUST_CHECK;
enum fgw_err fgw_apply_mark_bad(struct fgw_apply *apply, struct fgw_bytes value) FGW_MUST_CHECK;

enum fgw_err fgw_apply_block_hold(struct fgw_apply *apply, struct fgw_bytes value) FGW_MUST_CHECK;
enum fgw_err fgw_apply_blob_hold(struct fgw_apply *apply, struct fgw_bytes value) FGW_MUST_CHECK;
enum fgw_err fgw_apply_confirm(struct fgw_apply *apply, struct fgw_bytes value) FGW_MUST_CHECK;
enum fgw_err fgw_apply_release(struct fgw_apply *apply, struct fgw_bytes value) FGW_MUST_CHECK;
enum fgw_err fgw_apply_slice(struct fgw_apply *apply, struct fgw_bytes value) FGW_MUST_CHECK;
enum fgw_err fgw_apply_finish(struct fgw_apply *apply, struct fgw_bytes value) FGW_MUST_CHECK;
enum fgw_err fgw_apply_abandon(struct fgw_apply *apply, struct fgw_bytes list_id) FGW_MUST_CHECK;
enum fgw_err fgw_apply_free_blob(struct fgw_apply *apply, struct fgw_bytes digest) FGW_MUST_CHECK;
enum fgw_err fgw_apply_drop_slice(struct fgw_apply *apply, struct fgw_bytes value) FGW_MUST_CHECK;

#endif
