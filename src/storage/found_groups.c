/* found_groups.c: the files of groups/ as opening finds them; see recover.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/tlv.h"
#include "storage/index_page.h"
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

static bool is_whole(const struct fgw_found_groups *found, uint64_t id,
                     const struct fgw_group_row *row, const char **out_what)
{
    const struct fgw_found_group *group = fgw_found_group(found, id);
    if (group == NULL) {
        *out_what = "is missing";
        return row->live_blocks == 0;
    }
    *out_what = "is shorter than it was";
    return group->size >= row->end;
}

/* Whether the group is what its row says; what is missing is logged. */
static bool check_row(const struct fgw_found_groups *found, struct fgw_datadir *dir, uint64_t id,
                      struct fgw_bytes value)
{
    struct fgw_group_row row;
    char name[FGW_GROUP_NAME_SIZE];
    const char *what = NULL;
    if (fgw_group_row_decode(value, &row) != FGW_OK || is_whole(found, id, &row, &what)) {
        return true;
    }
    fgw_group_name(id, name);
    fgw_log_error("storage",
                  "%s/groups/%s %s: live_blocks=%llu may be damaged, `fgw scrub` "
                  "tells which",
                  dir->path, name, what, (unsigned long long)row.live_blocks);
    return false;
}

uint64_t fgw_found_groups_check(const struct fgw_found_groups *found, struct fgw_datadir *dir,
                                struct fgw_kv *kv)
{
    struct fgw_row_key lower = {.bytes = {'g'}, .len = 1};
    struct fgw_row_key upper = {.bytes = {'g' + 1}, .len = 1};
    struct fgw_index_range range = {fgw_row_key_bytes(&lower), fgw_row_key_bytes(&upper), SIZE_MAX};
    struct fgw_index_page page;
    uint64_t damaged = 0;
    fgw_index_page_init(&page);
    if (fgw_index_page_load(&page, kv, &range) != FGW_OK) {
        page.count = 0;
    }
    for (size_t i = 0; i < page.count; i++) {
        damaged +=
            !check_row(found, dir, fgw_get_u64be(page.rows[i].key.ptr + 1), page.rows[i].value);
    }
    fgw_index_page_deinit(&page);
    return damaged;
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
