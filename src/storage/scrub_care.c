/* scrub_care.c: see scrub_care.h. */
#include "storage/scrub_care.h"

#include "base/log.h"
#include "storage/storage_internal.h"

enum { CALL_MS = 3600 * 1000 };

static void lock(struct fgw_scrub_care *care)
{
    (void)pthread_mutex_lock(&care->lock.mutex);
}

static void unlock(struct fgw_scrub_care *care)
{
    (void)pthread_mutex_unlock(&care->lock.mutex);
}

static void on_damage(void *context, const struct fgw_storage_damage *damage)
{
    struct fgw_storage *storage = context;
    struct fgw_storage_scrub_status *status = &storage->scrub.lock.status;
    char cid[FGW_CID_TEXT_SIZE] = "";
    lock(&storage->scrub);
    if (status->finding_count < FGW_STORAGE_SCRUB_FINDINGS) {
        status->findings[status->finding_count++] = (struct fgw_storage_scrub_finding){
            damage->what, damage->cid, damage->group, damage->offset};
    }
    unlock(&storage->scrub);
    if (damage->cid.bytes[0] != 0) {
        fgw_cid_text(&damage->cid, cid);
    }
    fgw_log_error("storage", "scrub: damaged %s %s group=%llu offset=%llu", damage->what, cid,
                  (unsigned long long)damage->group, (unsigned long long)damage->offset);
}

static bool on_progress(void *context, const struct fgw_storage_scrub *scrub)
{
    struct fgw_storage *storage = context;
    struct fgw_storage_scrub_status *status = &storage->scrub.lock.status;
    lock(&storage->scrub);
    status->blocks = scrub->blocks;
    status->bytes = scrub->bytes;
    status->blobs = scrub->blobs;
    status->log_batches = scrub->log_batches;
    status->damaged = scrub->damaged;
    bool go_on = !storage->scrub.lock.stop;
    unlock(&storage->scrub);
    return go_on && !fgw_care_stopping(storage->care);
}

uint64_t fgw_scrub_care(struct fgw_storage *storage)
{
    struct fgw_scrub_care *care = &storage->scrub;
    struct fgw_storage_scrub scrub = {
        .on_damage = on_damage, .on_progress = on_progress, .context = storage};
    lock(care);
    bool wanted = care->lock.status.wanted;
    if (wanted) {
        care->lock.status =
            (struct fgw_storage_scrub_status){.runs = care->lock.status.runs, .running = true};
        scrub.bytes_per_s = care->lock.bytes_per_s;
    }
    unlock(care);
    if (!wanted) {
        return CALL_MS;
    }
    enum fgw_err err = fgw_storage_scrub(storage, &scrub);
    (void)on_progress(storage, &scrub);
    fgw_log_info("storage", "scrub: blocks=%llu bytes=%llu damaged=%llu%s%s",
                 (unsigned long long)scrub.blocks, (unsigned long long)scrub.bytes,
                 (unsigned long long)scrub.damaged,
                 err == FGW_OK ? "" : " broke off: ", err == FGW_OK ? "" : fgw_err_text(err));
    lock(care);
    care->lock.status.running = false;
    care->lock.status.failed = err;
    care->lock.status.runs++;
    unlock(care);
    return 0;
}

bool fgw_storage_scrub_start(struct fgw_storage *storage, uint64_t bytes_per_s)
{
    struct fgw_scrub_care *care = &storage->scrub;
    lock(care);
    bool free_to_go =
        fgw_care_running(storage->care) && !care->lock.status.running && !care->lock.status.wanted;
    if (free_to_go) {
        care->lock.status.wanted = true;
        care->lock.bytes_per_s = bytes_per_s;
        care->lock.stop = false;
    }
    unlock(care);
    fgw_care_kick(storage->care, FGW_CARE_SCRUB);
    return free_to_go;
}

void fgw_storage_scrub_stop(struct fgw_storage *storage)
{
    lock(&storage->scrub);
    storage->scrub.lock.stop = true;
    unlock(&storage->scrub);
}

void fgw_storage_scrub_status(struct fgw_storage *storage,
                              struct fgw_storage_scrub_status *out_status)
{
    lock(&storage->scrub);
    *out_status = storage->scrub.lock.status;
    unlock(&storage->scrub);
    out_status->held_bytes = atomic_load(&storage->figures.live_bytes);
}

void fgw_scrub_care_init(struct fgw_scrub_care *care)
{
    *care = (struct fgw_scrub_care){0};
    (void)pthread_mutex_init(&care->lock.mutex, NULL);
}

void fgw_scrub_care_deinit(struct fgw_scrub_care *care)
{
    (void)pthread_mutex_destroy(&care->lock.mutex);
}
