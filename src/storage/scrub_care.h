/* scrub_care.h: scrubs that a running process is asked for; a job of care. */
#ifndef FGW_STORAGE_SCRUB_CARE_H
#define FGW_STORAGE_SCRUB_CARE_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/storage.h"

struct fgw_scrub_care {
    struct {
        pthread_mutex_t mutex;
        struct fgw_storage_scrub_status status;
        uint64_t bytes_per_s;
        bool stop;
    } lock;
};

void fgw_scrub_care_init(struct fgw_scrub_care *care);
void fgw_scrub_care_deinit(struct fgw_scrub_care *care);
/* Does what was asked for. Returns when to call again. */
uint64_t fgw_scrub_care(struct fgw_storage *storage);

#endif
