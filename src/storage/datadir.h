/* datadir.h: the directory itself: FORMAT, LOCK, keys, subdirectories
 * (docs/formats/data-directory.md). Opening takes the lock; one owner, any thread. */
#ifndef FGW_STORAGE_DATADIR_H
#define FGW_STORAGE_DATADIR_H

#include "storage/record.h"

enum { FGW_FORMAT_VERSION = 1 };

struct fgw_datadir {
    char *path;
    int root;
    int tmp;
    int groups;
    int checkpoints;
    int lock;
    struct fgw_keyring keyring;
    uint8_t cluster_id[FGW_RECORD_ID_SIZE];
    uint8_t (*store_ids)[FGW_RECORD_ID_SIZE]; /* own first, then earlier ones */
    size_t store_id_count;
    bool fresh; /* no FORMAT yet: the caller makes the first group, then fgw_datadir_commit */
};

/* Opens or begins to create. cluster_id: 16 bytes that must match (FGW_ERR_CONFIG), or NULL.
 * Errors as fgw_storage_open. */
enum fgw_err fgw_datadir_open(struct fgw_datadir *dir, const char *path, const uint8_t *cluster_id,
                              struct fgw_error *error) FGW_MUST_CHECK;
/* The cluster id in the FORMAT of a directory that may be in use; nothing is locked or changed.
 * FGW_ERR_NOT_FOUND: no directory, or no FORMAT in it. */
enum fgw_err fgw_datadir_peek(const char *path, uint8_t out_cluster_id[FGW_RECORD_ID_SIZE],
                              struct fgw_error *error) FGW_MUST_CHECK;
/* Writes FORMAT: the commit point of a creation. */
enum fgw_err fgw_datadir_commit(struct fgw_datadir *dir, struct fgw_error *error) FGW_MUST_CHECK;
/* The text of FORMAT with a new store id, the one so far among the earlier ones. FGW_ERR_CORRUPT,
 * FGW_ERR_NEWER_VERSION. */
enum fgw_err fgw_datadir_new_identity(struct fgw_bytes format, struct fgw_buf *out,
                                      struct fgw_error *error) FGW_MUST_CHECK;
/* The open directory becomes a new store, of the cluster if that is not NULL; commit makes it so. */
void fgw_datadir_renew(struct fgw_datadir *dir, const uint8_t *cluster_id);
/* Gives up the lock; takes a half-opened one. */
void fgw_datadir_close(struct fgw_datadir *dir);

#endif
