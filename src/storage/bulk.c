/* bulk.c: see bulk.h. */
#include "storage/bulk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "event/fiber.h"

enum {
    APPENDS_MAX = 32,                 /* blocks of one write call */
    WRITEBACK_STEP = 4 * 1024 * 1024, /* start writing back early: a sync has less to do */
    CACHE_KEEP = 64 * 1024 * 1024,    /* the newest bytes stay in the page cache, as many clients */
    CACHE_DROP_STEP = 8 * 1024 * 1024, /* read back what they have just written; see drop_cached */
};

struct fgw_bulk_file {
    struct fgw_list node; /* in lock.files */
    uint64_t group;
    int fd;
    /* under the lock */
    unsigned refs;   /* appender, writers with unheld blocks, queued syncs */
    uint64_t end;    /* written */
    uint64_t synced; /* durable */
    bool poisoned;
    /* the appender's */
    uint64_t writeback; /* handed to the disk up to here */
    /* the syncer's */
    uint64_t dropped; /* out of the page cache up to here */
};

struct append {
    struct fgw_list node;
    const struct fgw_storage_block *block; /* NULL: leave group place.group */
    struct fgw_bulk_place place;
    enum fgw_err result;
    struct fgw_wait wait;
};

struct sync {
    struct fgw_list node;
    struct fgw_bulk_file *file;
    uint64_t end;
    enum fgw_err result;
    struct fgw_wait wait;
};

struct fgw_bulk {
    struct fgw_bulk_options options;
    pthread_t appender;
    pthread_t syncer;
    struct fgw_bulk_file *current; /* the appender's; NULL: none open */
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t append_work;
        pthread_cond_t sync_work;
        struct fgw_list appends;
        struct fgw_list syncs;
        struct fgw_list files;
        bool stopping;
    } lock;
};

/* -- files --------------------------------------------------------------------------------------- */

/* Locked. */
static void unref_locked(struct fgw_bulk_file *file)
{
    if (--file->refs == 0) {
        fgw_list_remove(&file->node);
        (void)close(file->fd);
        fgw_xfree(file);
    }
}

void fgw_bulk_unref(struct fgw_bulk *bulk, struct fgw_bulk_file *file)
{
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    unref_locked(file);
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
}

static struct fgw_bulk_file *add_file(struct fgw_bulk *bulk, uint64_t group, int fd, uint64_t end)
{
    struct fgw_bulk_file *file = fgw_xcalloc(1, sizeof *file);
    *file = (struct fgw_bulk_file){.group = group,
                                   .fd = fd,
                                   .refs = 1,
                                   .end = end,
                                   .synced = end,
                                   .writeback = end,
                                   .dropped = end};
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    fgw_list_push_back(&bulk->lock.files, &file->node);
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    return file;
}

static enum fgw_err create_file(struct fgw_bulk *bulk, struct fgw_bulk_file **out_file)
{
    struct fgw_record_head head = {.kind = FGW_RECORD_BULK_OPEN, .part = 1, .parts = 1};
    struct fgw_buf payload;
    int fd = -1;
    uint64_t end = 0;
    uint64_t id = atomic_fetch_add(bulk->options.last_group, 1) + 1;
    fgw_buf_init(&payload, 0);
    fgw_item_put_u64(&payload, FGW_ITEM_RUNNING_MS, 0);
    enum fgw_err err =
        fgw_group_create(bulk->options.dir->tmp, bulk->options.dir->groups, id,
                         &bulk->options.sealer, &head, fgw_buf_bytes(&payload), &fd, &end);
    fgw_buf_deinit(&payload);
    if (err == FGW_OK) {
        *out_file = add_file(bulk, id, fd, end);
    }
    return err;
}

/* Bytes behind the logged end belong to nobody. */
static void resume_file(struct fgw_bulk *bulk)
{
    char name[FGW_GROUP_NAME_SIZE];
    uint64_t size = 0;
    fgw_group_name(bulk->options.resume_id, name);
    int fd = openat(bulk->options.dir->groups, name, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (fgw_fs_size(fd, &size) == FGW_OK && size >= bulk->options.resume_end &&
        fgw_fs_ftruncate(fd, bulk->options.resume_end) == FGW_OK && fgw_fs_fsync(fd) == FGW_OK) {
        bulk->current = add_file(bulk, bulk->options.resume_id, fd, bulk->options.resume_end);
    } else {
        (void)close(fd);
    }
}

/* The appender gives up its file: full, or poisoned. */
static void leave_current(struct fgw_bulk *bulk, bool poisoned)
{
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    bulk->current->poisoned = bulk->current->poisoned || poisoned;
    unref_locked(bulk->current);
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    bulk->current = NULL;
}

static bool current_is_usable(struct fgw_bulk *bulk)
{
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    bool usable = !bulk->current->poisoned && bulk->current->end < bulk->options.group_size;
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    return usable;
}

static enum fgw_err prepare_current(struct fgw_bulk *bulk)
{
    if (bulk->current != NULL && !current_is_usable(bulk)) {
        leave_current(bulk, false);
    }
    return bulk->current != NULL ? FGW_OK : create_file(bulk, &bulk->current);
}

/* -- appending ----------------------------------------------------------------------------------- */

static enum fgw_err write_blocks(struct fgw_bulk *bulk, struct append **appends, size_t count)
{
    struct iovec iov[2 * APPENDS_MAX];
    uint8_t heads[APPENDS_MAX][FGW_CAR_SECTION_HEAD_MAX];
    struct fgw_bulk_file *file = bulk->current;
    uint64_t offset = file->end;
    for (size_t i = 0; i < count; i++) {
        const struct fgw_storage_block *block = appends[i]->block;
        size_t head_size = fgw_car_section_head_encode(&block->cid, block->bytes.len, heads[i]);
        iov[2 * i] = (struct iovec){heads[i], head_size};
        iov[2 * i + 1] = (struct iovec){(void *)(uintptr_t)block->bytes.ptr, block->bytes.len};
        appends[i]->place = (struct fgw_bulk_place){.file = file,
                                                    .group = file->group,
                                                    .offset = offset,
                                                    .end = offset + head_size + block->bytes.len};
        offset = appends[i]->place.end;
    }
    enum fgw_err err = fgw_fs_pwritev(file->fd, iov, (int)(2 * count), file->end);
    if (err != FGW_OK) {
        fgw_log_error("storage", "writing bulk group %llu failed (%s): going on in a new group",
                      (unsigned long long)file->group, fgw_err_name(err));
        leave_current(bulk, true);
        return err;
    }
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    file->end = offset;
    file->refs += (unsigned)count;
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    return FGW_OK;
}

static void start_writeback(struct fgw_bulk *bulk)
{
    struct fgw_bulk_file *file = bulk->current;
    if (file == NULL || bulk->options.sync_off || file->end - file->writeback < WRITEBACK_STEP) {
        return;
    }
    /* a hint: the sync that counts comes later and reports what fails here */
    (void)!sync_file_range(file->fd, (off_t)file->writeback, (off_t)(file->end - file->writeback),
                           SYNC_FILE_RANGE_WRITE);
    file->writeback = file->end;
}

static size_t take_appends(struct fgw_bulk *bulk, struct append **out)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    while (fgw_list_empty(&bulk->lock.appends) && !bulk->lock.stopping) {
        (void)pthread_cond_wait(&bulk->lock.append_work, &bulk->lock.mutex);
    }
    bool block = true;
    while (count < APPENDS_MAX && block && !fgw_list_empty(&bulk->lock.appends)) {
        struct append *append = FGW_CONTAINER_OF(bulk->lock.appends.next, struct append, node);
        block = append->block != NULL;
        if (block || count == 0) { /* a wish to leave the group comes alone */
            fgw_list_remove(&append->node);
            out[count++] = append;
        }
    }
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    return count;
}

static enum fgw_err append_all(struct fgw_bulk *bulk, struct append **appends, size_t count)
{
    if (appends[0]->block == NULL) {
        if (bulk->current != NULL && bulk->current->group == appends[0]->place.group) {
            leave_current(bulk, false);
        }
        return FGW_OK;
    }
    enum fgw_err err = prepare_current(bulk);
    return err == FGW_OK ? write_blocks(bulk, appends, count) : err;
}

static void *appender_main(void *arg)
{
    struct fgw_bulk *bulk = arg;
    struct append *appends[APPENDS_MAX];
    size_t count;
    (void)pthread_setname_np(pthread_self(), "bulk-append");
    while ((count = take_appends(bulk, appends)) > 0) {
        enum fgw_err err = append_all(bulk, appends, count);
        for (size_t i = 0; i < count; i++) {
            appends[i]->result = err;
            fgw_wait_signal_remote(&appends[i]->wait);
        }
        start_writeback(bulk);
    }
    return NULL;
}

static void ask_appender(struct fgw_bulk *bulk, struct append *append)
{
    fgw_wait_init(&append->wait, 1);
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    fgw_list_push_back(&bulk->lock.appends, &append->node);
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    (void)pthread_cond_signal(&bulk->lock.append_work);
    fgw_wait_for(&append->wait);
}

void fgw_bulk_seal(struct fgw_bulk *bulk, uint64_t group)
{
    struct append append = {.place.group = group};
    ask_appender(bulk, &append);
}

enum fgw_err fgw_bulk_append(struct fgw_bulk *bulk, const struct fgw_storage_block *block,
                             struct fgw_bulk_place *out_place)
{
    struct append append = {.block = block};
    ask_appender(bulk, &append);
    if (append.result == FGW_OK) {
        *out_place = append.place;
    }
    return append.result;
}

/* -- syncing ------------------------------------------------------------------------------------- */

/* Takes all waits of one file; NULL when stopping. */
static struct fgw_bulk_file *take_syncs(struct fgw_bulk *bulk, struct fgw_list *out,
                                        uint64_t *out_end)
{
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    while (fgw_list_empty(&bulk->lock.syncs) && !bulk->lock.stopping) {
        (void)pthread_cond_wait(&bulk->lock.sync_work, &bulk->lock.mutex);
    }
    struct fgw_bulk_file *file = NULL;
    if (!fgw_list_empty(&bulk->lock.syncs)) {
        file = FGW_CONTAINER_OF(bulk->lock.syncs.next, struct sync, node)->file;
        file->refs++;
        *out_end = file->end;
    }
    for (struct fgw_list *node = bulk->lock.syncs.next; node != &bulk->lock.syncs;) {
        struct sync *sync = FGW_CONTAINER_OF(node, struct sync, node);
        node = node->next;
        if (sync->file == file) {
            fgw_list_remove(&sync->node);
            fgw_list_push_back(out, &sync->node);
        }
    }
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    return file;
}

static enum fgw_err sync_file(struct fgw_bulk *bulk, struct fgw_bulk_file *file, uint64_t end)
{
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    bool poisoned = file->poisoned;
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    if (poisoned) {
        return FGW_ERR_IO;
    }
    enum fgw_err err = bulk->options.sync_off ? FGW_OK : fgw_fs_fdatasync(file->fd);
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    if (err != FGW_OK) {
        file->poisoned = true;
    } else {
        file->synced = end > file->synced ? end : file->synced;
    }
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    if (err != FGW_OK) {
        fgw_log_error("storage", "syncing bulk group %llu failed (%s): it is not written any more",
                      (unsigned long long)file->group, fgw_err_name(err));
    }
    return err;
}

/* A stream of large bodies would push everything else out of the page cache, and its pages are the
 * dearest of a virtual machine, which gets memory it has not used before from its host one fault at
 * a time. Pages that somebody has mapped for reading stay. */
static void drop_cached(struct fgw_bulk_file *file, uint64_t synced)
{
    if (synced - file->dropped < CACHE_KEEP + CACHE_DROP_STEP) {
        return;
    }
    uint64_t end = synced - CACHE_KEEP;
    (void)posix_fadvise(file->fd, (off_t)file->dropped, (off_t)(end - file->dropped),
                        POSIX_FADV_DONTNEED);
    file->dropped = end;
}

static void answer_syncs(struct fgw_bulk *bulk, struct fgw_list *syncs, struct fgw_bulk_file *file,
                         enum fgw_err err)
{
    struct fgw_list *node;
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    uint64_t synced = file->synced;
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    while ((node = fgw_list_pop_front(syncs)) != NULL) {
        struct sync *sync = FGW_CONTAINER_OF(node, struct sync, node);
        sync->result = sync->end <= synced ? FGW_OK : err;
        fgw_wait_signal_remote(&sync->wait);
    }
    if (err == FGW_OK && !bulk->options.sync_off) {
        drop_cached(file, synced);
    }
    fgw_bulk_unref(bulk, file);
}

static void *syncer_main(void *arg)
{
    struct fgw_bulk *bulk = arg;
    (void)pthread_setname_np(pthread_self(), "bulk-sync");
    for (;;) {
        struct fgw_list syncs;
        uint64_t end = 0;
        fgw_list_init(&syncs);
        struct fgw_bulk_file *file = take_syncs(bulk, &syncs, &end);
        if (file == NULL) {
            return NULL;
        }
        answer_syncs(bulk, &syncs, file, sync_file(bulk, file, end));
    }
}

enum fgw_err fgw_bulk_sync(struct fgw_bulk *bulk, struct fgw_bulk_file *file, uint64_t end)
{
    struct sync sync = {.file = file, .end = end};
    fgw_wait_init(&sync.wait, 1);
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    bool done = file->synced >= end;
    if (!done) {
        fgw_list_push_back(&bulk->lock.syncs, &sync.node);
    }
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    if (done) {
        return FGW_OK;
    }
    (void)pthread_cond_signal(&bulk->lock.sync_work);
    fgw_wait_for(&sync.wait);
    return sync.result;
}

bool fgw_bulk_busy(struct fgw_bulk *bulk, uint64_t group)
{
    bool busy = false;
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    for (struct fgw_list *node = bulk->lock.files.next; node != &bulk->lock.files && !busy;
         node = node->next) {
        busy = FGW_CONTAINER_OF(node, struct fgw_bulk_file, node)->group == group;
    }
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    return busy;
}

/* -- life ---------------------------------------------------------------------------------------- */

struct fgw_bulk *fgw_bulk_start(const struct fgw_bulk_options *options)
{
    struct fgw_bulk *bulk = fgw_xcalloc(1, sizeof *bulk);
    bulk->options = *options;
    (void)pthread_mutex_init(&bulk->lock.mutex, NULL);
    (void)pthread_cond_init(&bulk->lock.append_work, NULL);
    (void)pthread_cond_init(&bulk->lock.sync_work, NULL);
    fgw_list_init(&bulk->lock.appends);
    fgw_list_init(&bulk->lock.syncs);
    fgw_list_init(&bulk->lock.files);
    if (options->resume_id != 0) {
        resume_file(bulk);
    }
    FGW_CHECK(pthread_create(&bulk->appender, NULL, appender_main, bulk) == 0);
    FGW_CHECK(pthread_create(&bulk->syncer, NULL, syncer_main, bulk) == 0);
    return bulk;
}

void fgw_bulk_stop(struct fgw_bulk *bulk)
{
    if (bulk == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&bulk->lock.mutex);
    bulk->lock.stopping = true;
    (void)pthread_cond_signal(&bulk->lock.append_work);
    (void)pthread_cond_signal(&bulk->lock.sync_work);
    (void)pthread_mutex_unlock(&bulk->lock.mutex);
    (void)pthread_join(bulk->appender, NULL);
    (void)pthread_join(bulk->syncer, NULL);
    if (bulk->current != NULL) {
        leave_current(bulk, false);
    }
    FGW_CHECK(fgw_list_empty(&bulk->lock.files));
    (void)pthread_mutex_destroy(&bulk->lock.mutex);
    (void)pthread_cond_destroy(&bulk->lock.append_work);
    (void)pthread_cond_destroy(&bulk->lock.sync_work);
    fgw_xfree(bulk);
}
