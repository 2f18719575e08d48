/* open_index.h: the index while a directory is opened: as it lies there, or made anew from the newest
 * checkpoint that is whole (docs/formats/checkpoint.md, "Loading"). One thread; blocks. */
#ifndef FGW_STORAGE_OPEN_INDEX_H
#define FGW_STORAGE_OPEN_INDEX_H

#include "storage/apply.h"
#include "storage/storage_internal.h"

/* Finds the newest complete checkpoint (storage->checkpoint), opens storage->kv, initialises apply.
 * An index that cannot be used, or is behind the checkpoint, is set aside. After a failure apply is
 * not initialised (apply->kv NULL). */
enum fgw_err fgw_open_index(struct fgw_storage *storage, struct fgw_apply *apply,
                            struct fgw_error *error) FGW_MUST_CHECK;
/* Sets the index aside and makes it anew. */
enum fgw_err fgw_open_index_anew(struct fgw_storage *storage, struct fgw_apply *apply,
                                 const char *why, struct fgw_error *error) FGW_MUST_CHECK;
/* The log does not reach the checkpoint: it is kept in tmp/ and the one before it counts. False: there
 * is none. */
bool fgw_open_index_drop_checkpoint(struct fgw_storage *storage);
/* After a failed replay: adds to the message which checkpoint could not be used. */
void fgw_open_index_name_damage(const struct fgw_storage *storage, struct fgw_error *error);

#endif
