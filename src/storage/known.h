/* known.h: blocks that the store has already, found before their bytes are written again
 * (design/storage.md section 5). A look is a guess: only the committer grants the hold, and until it
 * has, the file the bytes lie in is kept open, so that they can be had again if it refuses. */
#ifndef FGW_STORAGE_KNOWN_H
#define FGW_STORAGE_KNOWN_H

#include "storage/group_files.h"
#include "storage/items.h"

enum { FGW_KNOWN_SIZE_MIN = 16 * 1024 }; /* below, writing costs less than looking */

struct fgw_known {
    struct fgw_group_file *file; /* NULL: nothing is kept open */
    uint64_t offset;
};

/* Present, not bad, of equal length and CRC32C, as far as memory tells: never waits. */
bool fgw_known_find(struct fgw_storage *storage, const struct fgw_storage_block *block,
                    struct fgw_known *out_known);
void fgw_known_release(struct fgw_storage *storage, struct fgw_known *known);
/* On the committer's thread: FGW_OK grants; FGW_ERR_NOT_FOUND refuses; AGAIN and UNAVAILABLE as
 * fgw_txn_index_get. */
enum fgw_err fgw_known_grant(struct fgw_storage_txn *txn,
                             const struct fgw_item_block *block) FGW_MUST_CHECK;
/* After a refusal: is it still refused? From a fiber. */
enum fgw_err fgw_known_is_there(struct fgw_storage *storage, const struct fgw_item_block *block,
                                bool *out_there) FGW_MUST_CHECK;
/* The bytes out of the file that was kept open, checked. *out_bytes lies in `section`. */
enum fgw_err fgw_known_read(struct fgw_storage *storage, const struct fgw_known *known,
                            const struct fgw_item_block *block, struct fgw_buf *section,
                            struct fgw_bytes *out_bytes) FGW_MUST_CHECK;

#endif
