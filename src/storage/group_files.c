/* group_files.c: see group_files.h. */
#include "storage/group_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "storage/group.h"

void fgw_group_files_init(struct fgw_group_files *files, int groups_dir, unsigned idle_max)
{
    files->groups_dir = groups_dir;
    files->idle_max = idle_max;
    (void)pthread_mutex_init(&files->lock.mutex, NULL);
    for (size_t i = 0; i < FGW_GROUP_FILE_BUCKETS; i++) {
        fgw_list_init(&files->lock.buckets[i]);
    }
    fgw_list_init(&files->lock.idle);
    files->lock.idle_count = 0;
}

/* Locked. */
static void close_file(struct fgw_group_file *file)
{
    FGW_CHECK(file->refs == 0);
    (void)close(file->fd);
    fgw_list_remove(&file->bucket);
    fgw_list_remove(&file->idle);
    fgw_xfree(file);
}

void fgw_group_files_deinit(struct fgw_group_files *files)
{
    for (size_t i = 0; i < FGW_GROUP_FILE_BUCKETS; i++) {
        while (!fgw_list_empty(&files->lock.buckets[i])) {
            close_file(
                FGW_CONTAINER_OF(files->lock.buckets[i].next, struct fgw_group_file, bucket));
        }
    }
    (void)pthread_mutex_destroy(&files->lock.mutex);
}

/* Locked. */
static struct fgw_group_file *find(struct fgw_group_files *files, uint64_t id)
{
    struct fgw_list *bucket = &files->lock.buckets[id % FGW_GROUP_FILE_BUCKETS];
    for (struct fgw_list *node = bucket->next; node != bucket; node = node->next) {
        struct fgw_group_file *file = FGW_CONTAINER_OF(node, struct fgw_group_file, bucket);
        if (file->id == id && !file->gone) {
            return file;
        }
    }
    return NULL;
}

/* Locked. */
static enum fgw_err open_file(struct fgw_group_files *files, uint64_t id,
                              struct fgw_group_file **out_file)
{
    char name[FGW_GROUP_NAME_SIZE];
    fgw_group_name(id, name);
    int fd = openat(files->groups_dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? FGW_ERR_NOT_FOUND : fgw_err_from_errno(errno);
    }
    struct fgw_group_file *file = fgw_xcalloc(1, sizeof *file);
    file->id = id;
    file->fd = fd;
    fgw_list_init(&file->idle);
    fgw_list_push_back(&files->lock.buckets[id % FGW_GROUP_FILE_BUCKETS], &file->bucket);
    *out_file = file;
    return FGW_OK;
}

enum fgw_err fgw_group_files_acquire(struct fgw_group_files *files, uint64_t id,
                                     struct fgw_group_file **out_file)
{
    enum fgw_err err = FGW_OK;
    (void)pthread_mutex_lock(&files->lock.mutex);
    struct fgw_group_file *file = find(files, id);
    if (file == NULL) {
        err = open_file(files, id, &file);
    } else if (file->refs == 0) {
        fgw_list_remove(&file->idle);
        files->lock.idle_count--;
    }
    if (err == FGW_OK) {
        file->refs++;
        *out_file = file;
    }
    (void)pthread_mutex_unlock(&files->lock.mutex);
    return err;
}

void fgw_group_files_release(struct fgw_group_files *files, struct fgw_group_file *file)
{
    if (file == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&files->lock.mutex);
    if (--file->refs == 0) {
        if (file->gone) {
            close_file(file);
        } else {
            fgw_list_push_back(&files->lock.idle, &file->idle);
            files->lock.idle_count++;
        }
    }
    while (files->lock.idle_count > files->idle_max) {
        files->lock.idle_count--;
        close_file(FGW_CONTAINER_OF(files->lock.idle.next, struct fgw_group_file, idle));
    }
    (void)pthread_mutex_unlock(&files->lock.mutex);
}

bool fgw_group_files_used(struct fgw_group_files *files, uint64_t id)
{
    (void)pthread_mutex_lock(&files->lock.mutex);
    struct fgw_group_file *file = find(files, id);
    bool used = file != NULL && file->refs > 0;
    (void)pthread_mutex_unlock(&files->lock.mutex);
    return used;
}

bool fgw_group_files_forget(struct fgw_group_files *files, uint64_t id)
{
    (void)pthread_mutex_lock(&files->lock.mutex);
    struct fgw_group_file *file = find(files, id);
    bool unused = file == NULL || file->refs == 0;
    if (file != NULL && unused) {
        files->lock.idle_count--;
        close_file(file);
    } else if (file != NULL) {
        file->gone = true;
    }
    (void)pthread_mutex_unlock(&files->lock.mutex);
    return unused;
}
