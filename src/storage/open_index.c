/* open_index.c: see open_index.h. */
#include "storage/open_index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "storage/checkpoint_load.h"

/* -- checkpoints --------------------------------------------------------------------------------- */

static void note_damaged(struct fgw_storage *storage, uint64_t id, const char *why)
{
    fgw_log_error("storage", "%s: it is not used", why);
    storage->checkpoint.damaged_id = id;
}

static enum fgw_err peek(struct fgw_storage *storage, uint64_t id,
                         struct fgw_checkpoint_info *out_info, struct fgw_error *error)
{
    char name[FGW_GROUP_NAME_SIZE];
    char why[256];
    enum fgw_err err = fgw_checkpoint_peek(&storage->dir, id, &storage->opener, out_info);
    fgw_group_name(id, name);
    if (err == FGW_ERR_NEWER_VERSION) {
        return fgw_error_set(error, err, "%s/checkpoints/%s was written by a newer version",
                             storage->dir.path, name);
    }
    if (err != FGW_OK) {
        (void)snprintf(why, sizeof why, "checkpoints/%s is damaged or incomplete", name);
        note_damaged(storage, id, why);
    }
    return err;
}

/* The newest complete one below `below`. */
static enum fgw_err find_checkpoint(struct fgw_storage *storage, uint64_t below,
                                    struct fgw_error *error)
{
    struct fgw_checkpoint_list list;
    enum fgw_err err = fgw_checkpoint_list_read(&list, &storage->dir);
    if (err != FGW_OK) {
        return fgw_error_set(error, err, "cannot list %s/checkpoints", storage->dir.path);
    }
    storage->checkpoint.newest = (struct fgw_checkpoint_info){0};
    for (size_t i = 0; i < list.count && storage->checkpoint.newest.id == 0; i++) {
        storage->checkpoint.last_id =
            list.ids[i] > storage->checkpoint.last_id ? list.ids[i] : storage->checkpoint.last_id;
        if (list.ids[i] >= below) {
            continue;
        }
        err = peek(storage, list.ids[i], &storage->checkpoint.newest, error);
        if (err == FGW_ERR_NEWER_VERSION) {
            break;
        }
        err = FGW_OK;
    }
    fgw_checkpoint_list_free(&list);
    return err;
}

bool fgw_open_index_drop_checkpoint(struct fgw_storage *storage)
{
    char name[FGW_GROUP_NAME_SIZE];
    char kept[FGW_GROUP_NAME_SIZE + 32];
    uint64_t id = storage->checkpoint.newest.id;
    if (id == 0) {
        return false;
    }
    fgw_group_name(id, name);
    (void)snprintf(kept, sizeof kept, "torn-checkpoint-%s", name);
    fgw_log_warn("storage", "checkpoints/%s knows batches that the log lost: kept as tmp/%s", name,
                 kept);
    return fgw_fs_rename(storage->dir.checkpoints, name, storage->dir.tmp, kept) == FGW_OK &&
           fgw_fs_fsync_dir(storage->dir.checkpoints) == FGW_OK &&
           fgw_fs_fsync_dir(storage->dir.tmp) == FGW_OK &&
           find_checkpoint(storage, id, NULL) == FGW_OK;
}

void fgw_open_index_name_damage(const struct fgw_storage *storage, struct fgw_error *error)
{
    char name[FGW_GROUP_NAME_SIZE];
    char message[sizeof error->message];
    if (error == NULL || storage->checkpoint.damaged_id == 0) {
        return;
    }
    fgw_group_name(storage->checkpoint.damaged_id, name);
    (void)snprintf(message, sizeof message, "%s", fgw_error_message(error));
    (void)fgw_error_set(error, error->code,
                        "%s (and checkpoints/%s, which would stand in, is damaged)", message, name);
}

/* -- the index ----------------------------------------------------------------------------------- */

static enum fgw_err open_kv(struct fgw_storage *storage, struct fgw_error *error)
{
    char path[4096];
    struct fgw_kv_options options = {.cache_bytes = (size_t)storage->options.memory_bytes};
    int len = snprintf(path, sizeof path, "%s/meta", storage->dir.path);
    if (len < 0 || (size_t)len >= sizeof path) {
        return fgw_error_set(error, FGW_ERR_IO, "the path of the data directory is too long");
    }
    return fgw_kv_open(path, &options, &storage->kv, error);
}

static enum fgw_err try_index(struct fgw_storage *storage, struct fgw_apply *apply,
                              struct fgw_error *error)
{
    enum fgw_err err = open_kv(storage, error);
    if (err == FGW_OK) {
        err = fgw_apply_init(apply, storage->kv);
        if (err != FGW_OK) {
            fgw_apply_deinit(apply);
            err = fgw_error_set(error, err, "the index in %s/meta cannot be used: %s",
                                storage->dir.path, fgw_err_text(err));
        }
    }
    return err;
}

/* An index that cannot be used is kept aside: it can be made anew, and looked at. */
static enum fgw_err set_aside(struct fgw_storage *storage, const char *why, struct fgw_error *error)
{
    char name[64];
    (void)snprintf(name, sizeof name, "meta.bad-%lld", (long long)fgw_clock_wall_ms());
    fgw_kv_close(storage->kv);
    storage->kv = NULL;
    fgw_log_warn("storage", "the index is set aside as %s and rebuilt: %s", name, why);
    if (fgw_fs_rename(storage->dir.root, "meta", storage->dir.root, name) != FGW_OK &&
        errno != ENOENT) {
        return fgw_error_set(error, FGW_ERR_IO, "cannot rename %s/meta: %s", storage->dir.path,
                             strerror(errno));
    }
    return FGW_OK;
}

/* From the newest checkpoint that can be read; without one it begins empty. */
static enum fgw_err load(struct fgw_storage *storage, struct fgw_apply *apply,
                         struct fgw_error *error)
{
    struct fgw_error why;
    enum fgw_err err = FGW_ERR_CORRUPT;
    while (err == FGW_ERR_CORRUPT && storage->checkpoint.newest.id != 0) {
        uint64_t id = storage->checkpoint.newest.id;
        fgw_error_init(&why);
        err = fgw_checkpoint_load(&storage->dir, &storage->checkpoint.newest, &storage->opener,
                                  &storage->progress, &why);
        if (err == FGW_ERR_CORRUPT) {
            note_damaged(storage, id, fgw_error_message(&why));
            if (find_checkpoint(storage, id, error) == FGW_ERR_NEWER_VERSION) {
                return FGW_ERR_NEWER_VERSION;
            }
        } else if (err != FGW_OK) {
            return fgw_error_set(error, err, "%s", fgw_error_message(&why));
        }
        storage->checkpoint.loaded_id = err == FGW_OK ? id : 0;
    }
    return try_index(storage, apply, error);
}

enum fgw_err fgw_open_index_anew(struct fgw_storage *storage, struct fgw_apply *apply,
                                 const char *why, struct fgw_error *error)
{
    if (apply->kv != NULL) {
        fgw_apply_deinit(apply);
    }
    enum fgw_err err = set_aside(storage, why, error);
    return err == FGW_OK ? load(storage, apply, error) : err;
}

enum fgw_err fgw_open_index(struct fgw_storage *storage, struct fgw_apply *apply,
                            struct fgw_error *error)
{
    char why[sizeof error->message];
    enum fgw_err err = fgw_checkpoint_load_clean(&storage->dir, error);
    if (err == FGW_OK) {
        err = find_checkpoint(storage, UINT64_MAX, error);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (faccessat(storage->dir.root, "meta", F_OK, 0) != 0) {
        return load(storage, apply, error);
    }
    err = try_index(storage, apply, error);
    if (err == FGW_ERR_CORRUPT) {
        (void)snprintf(why, sizeof why, "%s", error == NULL ? "" : fgw_error_message(error));
        return fgw_open_index_anew(storage, apply, why, error);
    }
    if (err == FGW_OK && apply->applied.batch < storage->checkpoint.newest.position.last_batch) {
        return fgw_open_index_anew(storage, apply, "it is behind the newest checkpoint", error);
    }
    return err;
}
