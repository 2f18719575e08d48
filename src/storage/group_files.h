/* group_files.h: open group files, shared by all readers: a bounded table with reference counts. A
 * file that is held stays readable after it was unlinked. Any thread. */
#ifndef FGW_STORAGE_GROUP_FILES_H
#define FGW_STORAGE_GROUP_FILES_H

#include <pthread.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"

struct fgw_group_file {
    uint64_t id;
    int fd; /* read only */
    unsigned refs;
    bool gone; /* unlinked: closed with the last reference */
    struct fgw_list bucket;
    struct fgw_list idle; /* in the table's idle list while refs == 0 */
};

enum { FGW_GROUP_FILE_BUCKETS = 256 };

struct fgw_group_files {
    int groups_dir;
    unsigned idle_max; /* files kept open without a reader */
    struct {
        pthread_mutex_t mutex;
        struct fgw_list buckets[FGW_GROUP_FILE_BUCKETS];
        struct fgw_list idle; /* least recently used first */
        unsigned idle_count;
    } lock;
};

void fgw_group_files_init(struct fgw_group_files *files, int groups_dir, unsigned idle_max);
/* All references must have been given back. */
void fgw_group_files_deinit(struct fgw_group_files *files);
/* FGW_ERR_NOT_FOUND when there is no such group. */
enum fgw_err fgw_group_files_acquire(struct fgw_group_files *files, uint64_t id,
                                     struct fgw_group_file **out_file) FGW_MUST_CHECK;
/* Takes NULL. */
void fgw_group_files_release(struct fgw_group_files *files, struct fgw_group_file *file);
/* Does a reader have it? */
bool fgw_group_files_used(struct fgw_group_files *files, uint64_t id);
/* The group is being unlinked: no new references. True when no reader has it. */
bool fgw_group_files_forget(struct fgw_group_files *files, uint64_t id);

#endif
