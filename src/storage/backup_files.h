/* backup_files.h: the list of files in a backup (docs/formats/backup.md), and copying one so that the
 * copy is known to be right. For backup and restore. Blocks; one thread at a time. */
#ifndef FGW_STORAGE_BACKUP_FILES_H
#define FGW_STORAGE_BACKUP_FILES_H

#include "base/digest.h"
#include "storage/datadir.h"

enum { FGW_BACKUP_NAME_SIZE = 64 };

struct fgw_backup_file {
    char name[FGW_BACKUP_NAME_SIZE]; /* "groups/0000000001.car" */
    uint64_t size;                   /* UINT64_MAX: all of it, before it was copied */
    uint8_t sha256[FGW_SHA256_SIZE];
};

struct fgw_backup_list {
    uint8_t store_id[FGW_RECORD_ID_SIZE];
    uint8_t cluster_id[FGW_RECORD_ID_SIZE];
    uint64_t checkpoint;
    uint64_t batch;
    uint64_t made_ms;
    struct fgw_backup_file *files;
    size_t count;
    size_t capacity;
};
void fgw_backup_list_deinit(struct fgw_backup_list *list);
struct fgw_backup_file *fgw_backup_list_add(struct fgw_backup_list *list, const char *name,
                                            uint64_t size);
/* NULL when absent. */
const struct fgw_backup_file *fgw_backup_list_find(const struct fgw_backup_list *list,
                                                   const char *name);
void fgw_backup_list_encode(const struct fgw_backup_list *list, struct fgw_buf *out);
/* FGW_ERR_CORRUPT, FGW_ERR_NEWER_VERSION. */
enum fgw_err fgw_backup_list_decode(struct fgw_backup_list *list,
                                    struct fgw_bytes text) FGW_MUST_CHECK;

/* A directory files are copied from or to: the descriptors are the caller's. */
struct fgw_backup_place {
    int root;
    int tmp; /* of the target */
};

/* One file on its way. */
struct fgw_backup_copy;
/* Copies the first file->size bytes (all when UINT64_MAX) of from/file->name. A file of that length
 * that is there already is compared first. FGW_ERR_NOT_FOUND: no such file; FGW_ERR_END: it is
 * shorter. */
enum fgw_err fgw_backup_copy_begin(const struct fgw_backup_place *from,
                                   const struct fgw_backup_place *to,
                                   const struct fgw_backup_file *file,
                                   struct fgw_backup_copy **out_copy) FGW_MUST_CHECK;
/* A few megabytes more; FGW_ERR_END: the copy is durable, was read back, *file says its size and
 * SHA-256. FGW_ERR_CORRUPT: it was not read as it was written. */
enum fgw_err fgw_backup_copy_step(struct fgw_backup_copy *copy, struct fgw_backup_file *file,
                                  uint64_t *out_bytes) FGW_MUST_CHECK;
/* Takes NULL. */
void fgw_backup_copy_free(struct fgw_backup_copy *copy);

/* Makes what is not there and opens it. */
enum fgw_err fgw_backup_open_sub(int root, const char *name, int *out_fd) FGW_MUST_CHECK;
typedef enum fgw_err fgw_backup_entry_fn(void *context, int dir_fd, const char *name);
/* Calls fn for each entry until it fails. */
enum fgw_err fgw_backup_each_entry(int dir_fd, fgw_backup_entry_fn *fn,
                                   void *context) FGW_MUST_CHECK;

#endif
