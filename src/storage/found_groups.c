/* found_groups.c: the files of groups/ as opening finds them; see recover.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/tlv.h"
#include "storage/recover.h"

static enum fgw_err parse_opening(struct fgw_bytes payload, struct fgw_found_group *group)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(payload);
    struct fgw_tlv_item item;
    enum fgw_err err;
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        if (item.tag == FGW_ITEM_PREDECESSOR) {
            err = fgw_item_predecessor(item.value, &group->predecessor);
        } else if (fgw_tlv_critical(item.tag) && item.tag != FGW_ITEM_RUNNING_MS) {
            err = FGW_ERR_NEWER_VERSION;
        }
        if (err != FGW_OK) {
            return err;
        }
    }
    return err == FGW_ERR_END ? FGW_OK : err;
}

static enum fgw_err read_group(struct fgw_datadir *dir, struct fgw_record_opener *opener,
                               struct fgw_found_group *group, struct fgw_error *error)
{
    char name[FGW_GROUP_NAME_SIZE];
    struct fgw_record_head head;
    struct fgw_buf payload;
    fgw_group_name(group->id, name);
    int fd = openat(dir->groups, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fgw_error_set(error, FGW_ERR_IO, "cannot open %s/groups/%s: %s", dir->path, name,
                             strerror(errno));
    }
    fgw_buf_init(&payload, FGW_RECORD_SIZE_MAX);
    enum fgw_err err = fgw_fs_size(fd, &group->size);
    if (err == FGW_OK) {
        err = fgw_group_read_opening(fd, group->id, opener, &payload, &head, &group->first_end);
    }
    if (err == FGW_OK) {
        group->is_log = head.kind == FGW_RECORD_LOG_OPEN;
        err = parse_opening(fgw_buf_bytes(&payload), group);
    }
    group->readable = err == FGW_OK;
    fgw_buf_deinit(&payload);
    (void)close(fd);
    if (err == FGW_ERR_NEWER_VERSION) {
        return fgw_error_set(error, err, "%s/groups/%s was written by a newer version", dir->path,
                             name);
    }
    if (err != FGW_OK) {
        fgw_log_error("storage", "the beginning of %s/groups/%s is damaged", dir->path, name);
    }
    return err == FGW_ERR_CORRUPT ? FGW_OK : err;
}

static int by_id(const void *a, const void *b)
{
    uint64_t left = ((const struct fgw_found_group *)a)->id;
    uint64_t right = ((const struct fgw_found_group *)b)->id;
    return left < right ? -1 : left > right;
}

static enum fgw_err list_names(struct fgw_found_groups *found, struct fgw_datadir *dir,
                               struct fgw_error *error)
{
    int copy = openat(dir->groups, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    size_t capacity = 0;
    struct dirent *entry;
    if (list == NULL) {
        return fgw_error_set(error, FGW_ERR_IO, "cannot list %s/groups: %s", dir->path,
                             strerror(errno));
    }
    while ((entry = readdir(list)) != NULL) {
        uint64_t id;
        if (!fgw_group_name_parse(entry->d_name, &id)) {
            continue;
        }
        if (found->count == capacity) {
            capacity = 2 * capacity + 16;
            found->groups = fgw_xrealloc(found->groups, capacity * sizeof *found->groups);
        }
        found->groups[found->count++] = (struct fgw_found_group){.id = id};
        found->last_id = id > found->last_id ? id : found->last_id;
    }
    (void)closedir(list);
    return FGW_OK;
}

enum fgw_err fgw_found_groups_read(struct fgw_found_groups *found, struct fgw_datadir *dir,
                                   struct fgw_record_opener *opener, struct fgw_error *error)
{
    *found = (struct fgw_found_groups){0};
    enum fgw_err err = list_names(found, dir, error);
    if (err == FGW_OK && found->count > 0) {
        qsort(found->groups, found->count, sizeof *found->groups, by_id);
    }
    for (size_t i = 0; i < found->count && err == FGW_OK; i++) {
        err = read_group(dir, opener, &found->groups[i], error);
    }
    return err;
}

void fgw_found_groups_free(struct fgw_found_groups *found)
{
    fgw_xfree(found->groups);
    *found = (struct fgw_found_groups){0};
}

struct fgw_found_group *fgw_found_group(const struct fgw_found_groups *found, uint64_t id)
{
    struct fgw_found_group wanted = {.id = id};
    return found->count == 0 ? NULL
                             : bsearch(&wanted, found->groups, found->count, sizeof wanted, by_id);
}
