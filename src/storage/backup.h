/* backup.h: making a backup, a part of an open storage (docs/formats/backup.md). */
#ifndef FGW_STORAGE_BACKUP_H
#define FGW_STORAGE_BACKUP_H

#include <pthread.h>

#include "storage/storage.h"

struct fgw_backup_state {
    pthread_mutex_t mutex;
    struct fgw_storage_backup_status status;
    bool wanted; /* care is to make it */
};
void fgw_backup_init(struct fgw_backup_state *state);
void fgw_backup_deinit(struct fgw_backup_state *state);
/* One pass of care: makes the backup that was asked for, if any. */
void fgw_backup_care(struct fgw_storage *storage);

#endif
