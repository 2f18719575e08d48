/* adopt.c: a data directory becomes a new store: a copy of one that is in use, or one that comes from
 * another cluster. Only FORMAT changes, in one step: the id so far joins the earlier ones, so that
 * all records stay readable. */
#include "storage/datadir.h"
#include "storage/storage.h"

enum fgw_err fgw_storage_adopt(const char *path, const uint8_t *cluster_id,
                               uint8_t out_old_id[FGW_STORAGE_ID_SIZE],
                               uint8_t out_new_id[FGW_STORAGE_ID_SIZE], struct fgw_error *error)
{
    struct fgw_datadir dir;
    enum fgw_err err = fgw_datadir_open(&dir, path, NULL, error);
    if (err != FGW_OK) {
        return err;
    }
    if (dir.fresh) {
        err = fgw_error_set(error, FGW_ERR_NOT_FOUND, "%s is no data directory.", path);
    } else {
        memcpy(out_old_id, dir.store_ids[0], FGW_STORAGE_ID_SIZE);
        fgw_datadir_renew(&dir, cluster_id);
        err = fgw_datadir_commit(&dir, error);
    }
    if (err == FGW_OK) {
        memcpy(out_new_id, dir.store_ids[0], FGW_STORAGE_ID_SIZE);
    }
    fgw_datadir_close(&dir);
    return err;
}
