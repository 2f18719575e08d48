/* checkpoint_load.h: an index out of a checkpoint; used while opening only, blocks. */
#ifndef FGW_STORAGE_CHECKPOINT_LOAD_H
#define FGW_STORAGE_CHECKPOINT_LOAD_H

#include "storage/checkpoint.h"
#include "storage/open_progress.h"

/* Makes DATA/meta, which must not exist, from a checkpoint. FGW_ERR_CORRUPT, _NEWER_VERSION,
 * _NOSPACE, _IO: nothing is left of it. `error` names the file, and where it is damaged. */
enum fgw_err fgw_checkpoint_load(const struct fgw_datadir *dir,
                                 const struct fgw_checkpoint_info *info,
                                 struct fgw_record_opener *opener,
                                 struct fgw_open_progress *progress,
                                 struct fgw_error *error) FGW_MUST_CHECK;
/* Removes what an interrupted load left. */
enum fgw_err fgw_checkpoint_load_clean(const struct fgw_datadir *dir,
                                       struct fgw_error *error) FGW_MUST_CHECK;

#endif
