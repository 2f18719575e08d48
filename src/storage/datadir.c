/* datadir.c: see datadir.h.
 *
 * Commit point of a creation: FORMAT, written last. Crash argument: everything made before it is
 * either kept (keys, empty directories) or thrown away (a first group without batches) by the next
 * attempt; nothing was acknowledged in it.
 */
#include "storage/datadir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/crc.h"
#include "base/encode.h"
#include "base/fs.h"
#include "base/rng.h"
#include "storage/group.h"

enum { TEXT_MAX = 64 * 1024, EMPTY_GROUP_MAX = 4096 };

static enum fgw_err fail_errno(const struct fgw_datadir *dir, const char *what,
                               struct fgw_error *error)
{
    return fgw_error_set(error, FGW_ERR_IO, "cannot %s in data directory %s: %s (uid %u)", what,
                         dir->path, strerror(errno), (unsigned)geteuid());
}

/* -- text files with a CRC line ----------------------------------------------------------------- */

static void seal_text(struct fgw_buf *text)
{
    (void)fgw_buf_appendf(text, "crc32c %08x\n", fgw_crc32c(0, fgw_buf_bytes(text)));
}

/* Cuts the CRC line off; false when it is missing or wrong. */
static bool unseal_text(struct fgw_bytes *text)
{
    enum { LINE = 7 + 8 + 1 };
    char want[LINE + 1];
    if (text->len < LINE) {
        return false;
    }
    struct fgw_bytes body = fgw_bytes_sub(*text, 0, text->len - LINE);
    (void)snprintf(want, sizeof want, "crc32c %08x\n", fgw_crc32c(0, body));
    if (memcmp(text->ptr + body.len, want, LINE) != 0) {
        return false;
    }
    *text = body;
    return true;
}

/* Takes "name value" off the front of *text. */
static bool take_line(struct fgw_bytes *text, struct fgw_bytes *out_name,
                      struct fgw_bytes *out_value)
{
    struct fgw_bytes line;
    if (text->len == 0 || !fgw_bytes_split(text, '\n', &line)) {
        return false;
    }
    *out_value = line;
    return fgw_bytes_split(out_value, ' ', out_name);
}

static bool take_id(struct fgw_bytes text, uint8_t out[FGW_RECORD_ID_SIZE])
{
    return text.len == (size_t)2 * FGW_RECORD_ID_SIZE && fgw_hex_decode(text, out) == FGW_OK;
}

static void put_id(struct fgw_buf *text, const char *name, const uint8_t id[FGW_RECORD_ID_SIZE])
{
    char hex[2 * FGW_RECORD_ID_SIZE];
    fgw_hex_encode(fgw_bytes(id, FGW_RECORD_ID_SIZE), hex);
    (void)fgw_buf_appendf(text, "%s %.*s\n", name, (int)sizeof hex, hex);
}

static enum fgw_err read_text(const struct fgw_datadir *dir, const char *name, struct fgw_buf *out,
                              struct fgw_error *error)
{
    enum fgw_err err = fgw_fs_read_file(dir->root, name, out);
    if (err == FGW_OK || err == FGW_ERR_NOT_FOUND) {
        return err;
    }
    if (err == FGW_ERR_TOO_LARGE) {
        return fgw_error_set(error, FGW_ERR_CORRUPT, "%s/%s is damaged", dir->path, name);
    }
    return fail_errno(dir, "read a file", error);
}

static enum fgw_err write_text(struct fgw_datadir *dir, const char *name, struct fgw_buf *text,
                               struct fgw_error *error)
{
    seal_text(text);
    enum fgw_err err =
        fgw_fs_create_durable(dir->tmp, dir->root, name, fgw_buf_bytes(text), 0600, NULL);
    return err == FGW_OK ? err : fail_errno(dir, "write a file", error);
}

/* -- FORMAT ------------------------------------------------------------------------------------- */

static void add_store_id(struct fgw_datadir *dir, const uint8_t id[FGW_RECORD_ID_SIZE])
{
    dir->store_ids =
        fgw_xrealloc(dir->store_ids, (dir->store_id_count + 1) * sizeof *dir->store_ids);
    memcpy(dir->store_ids[dir->store_id_count++], id, FGW_RECORD_ID_SIZE);
}

static enum fgw_err check_versions(const struct fgw_datadir *dir, uint64_t format,
                                   uint64_t readable_since, struct fgw_error *error)
{
    if (readable_since <= FGW_FORMAT_VERSION) {
        return FGW_OK;
    }
    return fgw_error_set(error, FGW_ERR_NEWER_VERSION,
                         "data directory %s has format %llu, readable since format %llu; this "
                         "version knows format %d: use a newer version",
                         dir->path, (unsigned long long)format, (unsigned long long)readable_since,
                         FGW_FORMAT_VERSION);
}

static bool format_item(struct fgw_datadir *dir, struct fgw_bytes name, struct fgw_bytes value,
                        uint64_t versions[2], unsigned *seen)
{
    uint8_t id[FGW_RECORD_ID_SIZE];
    if (fgw_bytes_eq_str(name, "format")) {
        *seen |= 1;
        return fgw_bytes_to_u64(value, &versions[0]) == FGW_OK;
    }
    if (fgw_bytes_eq_str(name, "readable-since")) {
        *seen |= 2;
        return fgw_bytes_to_u64(value, &versions[1]) == FGW_OK;
    }
    if (fgw_bytes_eq_str(name, "cluster")) {
        *seen |= 4;
        return take_id(value, dir->cluster_id);
    }
    if (fgw_bytes_eq_str(name, "store") || fgw_bytes_eq_str(name, "earlier")) {
        *seen |= 8;
        if (!take_id(value, id)) {
            return false;
        }
        add_store_id(dir, id);
    }
    return true;
}

static enum fgw_err parse_format(struct fgw_datadir *dir, struct fgw_bytes text,
                                 struct fgw_error *error)
{
    uint64_t versions[2] = {0};
    unsigned seen = 0;
    struct fgw_bytes name;
    struct fgw_bytes value;
    bool ok = unseal_text(&text) && take_line(&text, &name, &value) &&
              fgw_bytes_eq_str(name, "fgw-data-directory");
    while (ok && take_line(&text, &name, &value)) {
        ok = format_item(dir, name, value, versions, &seen);
    }
    if (!ok || seen != 15) {
        return fgw_error_set(error, FGW_ERR_CORRUPT,
                             "%s/FORMAT is damaged: restore it from a backup", dir->path);
    }
    return check_versions(dir, versions[0], versions[1], error);
}

static void put_format(struct fgw_buf *text, const struct fgw_datadir *dir)
{
    (void)fgw_buf_appendf(text, "fgw-data-directory\nformat %d\nreadable-since %d\n",
                          FGW_FORMAT_VERSION, FGW_FORMAT_VERSION);
    put_id(text, "store", dir->store_ids[0]);
    put_id(text, "cluster", dir->cluster_id);
    for (size_t i = 1; i < dir->store_id_count; i++) {
        put_id(text, "earlier", dir->store_ids[i]);
    }
}

void fgw_datadir_renew(struct fgw_datadir *dir, const uint8_t *cluster_id)
{
    uint8_t id[FGW_RECORD_ID_SIZE];
    fgw_rng_fill(id, sizeof id);
    add_store_id(dir, id);
    memmove(dir->store_ids + 1, dir->store_ids, (dir->store_id_count - 1) * sizeof id);
    memcpy(dir->store_ids[0], id, sizeof id);
    if (cluster_id != NULL) {
        memcpy(dir->cluster_id, cluster_id, sizeof dir->cluster_id);
    }
}

enum fgw_err fgw_datadir_new_identity(struct fgw_bytes format, struct fgw_buf *out,
                                      struct fgw_error *error)
{
    char path[] = "the backup";
    struct fgw_datadir dir = {.path = path};
    enum fgw_err err = parse_format(&dir, format, error);
    if (err == FGW_OK) {
        fgw_datadir_renew(&dir, NULL);
        put_format(out, &dir);
        seal_text(out);
    }
    fgw_xfree(dir.store_ids);
    return err;
}

enum fgw_err fgw_datadir_peek(const char *path, uint8_t out_cluster_id[FGW_RECORD_ID_SIZE],
                              struct fgw_error *error)
{
    struct fgw_datadir dir = {.path = fgw_xstrdup(path), .root = -1};
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    enum fgw_err err = FGW_ERR_NOT_FOUND;
    dir.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir.root < 0 && errno != ENOENT) {
        err = fail_errno(&dir, "open", error);
    } else if (dir.root >= 0) {
        err = read_text(&dir, "FORMAT", &text, error);
    }
    if (err == FGW_OK) {
        err = parse_format(&dir, fgw_buf_bytes(&text), error);
    }
    if (err == FGW_OK) {
        memcpy(out_cluster_id, dir.cluster_id, sizeof dir.cluster_id);
    }
    fgw_buf_deinit(&text);
    if (dir.root >= 0) {
        (void)close(dir.root);
    }
    fgw_xfree(dir.store_ids);
    fgw_xfree(dir.path);
    return err;
}

enum fgw_err fgw_datadir_commit(struct fgw_datadir *dir, struct fgw_error *error)
{
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    put_format(&text, dir);
    enum fgw_err err = write_text(dir, "FORMAT", &text, error);
    fgw_buf_deinit(&text);
    dir->fresh = dir->fresh && err != FGW_OK;
    return err;
}

/* -- keys --------------------------------------------------------------------------------------- */

static bool key_item(struct fgw_keyring *keyring, struct fgw_bytes value)
{
    struct fgw_bytes id_text;
    uint64_t id = 0;
    unsigned at = keyring->count;
    if (at == FGW_KEYRING_MAX || !fgw_bytes_split(&value, ' ', &id_text) ||
        fgw_bytes_to_u64(id_text, &id) != FGW_OK || id == 0 || id > UINT32_MAX ||
        value.len != (size_t)2 * FGW_AEAD_KEY_SIZE ||
        fgw_hex_decode(value, keyring->keys[at].bytes) != FGW_OK) {
        return false;
    }
    keyring->keys[at].id = (uint32_t)id;
    keyring->count++;
    return true;
}

static enum fgw_err parse_keys(struct fgw_datadir *dir, struct fgw_bytes text,
                               struct fgw_error *error)
{
    struct fgw_bytes name;
    struct fgw_bytes value;
    bool ok =
        unseal_text(&text) && take_line(&text, &name, &value) && fgw_bytes_eq_str(name, "fgw-keys");
    while (ok && take_line(&text, &name, &value)) {
        ok = !fgw_bytes_eq_str(name, "key") || key_item(&dir->keyring, value);
    }
    if (!ok || dir->keyring.count == 0) {
        return fgw_error_set(error, FGW_ERR_CORRUPT, "%s/keys is damaged: restore it from a backup",
                             dir->path);
    }
    return FGW_OK;
}

static enum fgw_err make_keys(struct fgw_datadir *dir, struct fgw_error *error)
{
    char hex[2 * FGW_AEAD_KEY_SIZE];
    struct fgw_buf text;
    dir->keyring.count = 1;
    dir->keyring.keys[0].id = 1;
    fgw_rng_fill(dir->keyring.keys[0].bytes, FGW_AEAD_KEY_SIZE);
    fgw_hex_encode(fgw_bytes(dir->keyring.keys[0].bytes, FGW_AEAD_KEY_SIZE), hex);
    fgw_buf_init(&text, TEXT_MAX);
    (void)fgw_buf_appendf(&text, "fgw-keys\nkey 1 %.*s\n", (int)sizeof hex, hex);
    enum fgw_err err = write_text(dir, "keys", &text, error);
    fgw_buf_deinit(&text);
    return err;
}

static enum fgw_err load_keys(struct fgw_datadir *dir, struct fgw_error *error)
{
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    enum fgw_err err = read_text(dir, "keys", &text, error);
    if (err == FGW_OK) {
        err = parse_keys(dir, fgw_buf_bytes(&text), error);
    } else if (err == FGW_ERR_NOT_FOUND && dir->fresh) {
        err = make_keys(dir, error);
    } else if (err == FGW_ERR_NOT_FOUND) {
        err = fgw_error_set(error, FGW_ERR_CORRUPT,
                            "%s/keys is missing: restore it from a backup, without it nothing can "
                            "be read",
                            dir->path);
    }
    fgw_buf_deinit(&text);
    return err;
}

/* -- the directories ---------------------------------------------------------------------------- */

static enum fgw_err take_lock(struct fgw_datadir *dir, struct fgw_error *error)
{
    dir->lock = openat(dir->root, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (dir->lock < 0) {
        return fail_errno(dir, "write", error);
    }
    if (flock(dir->lock, LOCK_EX | LOCK_NB) != 0) {
        char holder[32] = "";
        ssize_t got = pread(dir->lock, holder, sizeof holder - 1, 0);
        holder[got > 0 ? strcspn(holder, "\n") : 0] = '\0';
        return fgw_error_set(error, FGW_ERR_IN_USE, "data directory %s is in use by process %s",
                             dir->path, holder[0] == '\0' ? "(unknown)" : holder);
    }
    char own[32];
    int len = snprintf(own, sizeof own, "%ld\n", (long)getpid());
    /* for people only: losing it costs nothing */
    (void)!ftruncate(dir->lock, 0);
    (void)!pwrite(dir->lock, own, (size_t)len, 0);
    return FGW_OK;
}

static enum fgw_err open_sub(struct fgw_datadir *dir, const char *name, int *out_fd,
                             struct fgw_error *error)
{
    if (mkdirat(dir->root, name, 0700) != 0 && errno != EEXIST) {
        return fail_errno(dir, "make a directory", error);
    }
    *out_fd = openat(dir->root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out_fd < 0 ? fail_errno(dir, "open a directory", error) : FGW_OK;
}

typedef enum fgw_err entry_fn(struct fgw_datadir *dir, const char *name, struct fgw_error *error);

static enum fgw_err each_entry(struct fgw_datadir *dir, int fd, entry_fn *fn,
                               struct fgw_error *error)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (list == NULL) {
        return fail_errno(dir, "list files", error);
    }
    enum fgw_err err = FGW_OK;
    struct dirent *entry;
    while (err == FGW_OK && (entry = readdir(list)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            err = fn(dir, entry->d_name, error);
        }
    }
    (void)closedir(list);
    return err;
}

/* What may lie in a directory without FORMAT. */
static enum fgw_err check_own_entry(struct fgw_datadir *dir, const char *name,
                                    struct fgw_error *error)
{
    static const char *const OWN[] = {"LOCK",        "keys",       "tmp",
                                      "groups",      "pieces",     "checkpoints",
                                      "credentials", "admin.sock", "lost+found"};
    for (size_t i = 0; i < FGW_COUNT_OF(OWN); i++) {
        if (strcmp(OWN[i], name) == 0) {
            return FGW_OK;
        }
    }
    if (strcmp(name, "RESTORING") == 0) {
        return fgw_error_set(error, FGW_ERR_IO,
                             "a restore into %s was interrupted: call `fgw restore` again",
                             dir->path);
    }
    if (strcmp(name, "meta") == 0) {
        return fgw_error_set(error, FGW_ERR_CORRUPT,
                             "%s/FORMAT is missing: restore it from a backup", dir->path);
    }
    return fgw_error_set(error, FGW_ERR_IO,
                         "%s is not an empty directory and no data directory: it holds %s",
                         dir->path, name);
}

static enum fgw_err drop_empty_group(struct fgw_datadir *dir, const char *name,
                                     struct fgw_error *error)
{
    struct stat status;
    if (fstatat(dir->groups, name, &status, 0) != 0 || status.st_size >= EMPTY_GROUP_MAX) {
        return fgw_error_set(error, FGW_ERR_CORRUPT,
                             "%s/FORMAT is missing, but there is %s/groups/%s: restore FORMAT from "
                             "a backup",
                             dir->path, dir->path, name);
    }
    return fgw_fs_unlink(dir->groups, name) == FGW_OK ? FGW_OK
                                                      : fail_errno(dir, "remove a file", error);
}

static enum fgw_err empty_tmp(struct fgw_datadir *dir, const char *name, struct fgw_error *error)
{
    if (strncmp(name, "torn-", 5) == 0 || fgw_fs_unlink(dir->tmp, name) == FGW_OK) {
        return FGW_OK;
    }
    return fail_errno(dir, "empty tmp", error);
}

/* The new directory's own entry must survive too. */
static enum fgw_err sync_parent(struct fgw_datadir *dir, struct fgw_error *error)
{
    int parent = openat(dir->root, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum fgw_err err = parent < 0 ? FGW_ERR_IO : fgw_fs_fsync_dir(parent);
    if (parent >= 0) {
        (void)close(parent);
    }
    return err == FGW_OK ? err : fail_errno(dir, "sync the parent of the", error);
}

static enum fgw_err open_root(struct fgw_datadir *dir, struct fgw_error *error)
{
    bool made = mkdir(dir->path, 0700) == 0;
    if (!made && errno != EEXIST) {
        return fgw_error_set(error, FGW_ERR_IO, "cannot create data directory %s: %s (uid %u)",
                             dir->path, strerror(errno), (unsigned)geteuid());
    }
    dir->root = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->root < 0) {
        return fgw_error_set(error, FGW_ERR_IO, "cannot open data directory %s: %s (uid %u)",
                             dir->path, strerror(errno), (unsigned)geteuid());
    }
    return made ? sync_parent(dir, error) : FGW_OK;
}

static enum fgw_err open_subs(struct fgw_datadir *dir, struct fgw_error *error)
{
    int pieces = -1;
    enum fgw_err err = open_sub(dir, "tmp", &dir->tmp, error);
    if (err == FGW_OK) {
        err = open_sub(dir, "groups", &dir->groups, error);
    }
    if (err == FGW_OK) {
        err = open_sub(dir, "checkpoints", &dir->checkpoints, error);
    }
    if (err == FGW_OK) {
        err = open_sub(dir, "pieces", &pieces, error);
    }
    if (pieces >= 0) {
        (void)close(pieces);
    }
    return err;
}

static enum fgw_err begin_fresh(struct fgw_datadir *dir, const uint8_t *cluster_id,
                                struct fgw_error *error)
{
    uint8_t id[FGW_RECORD_ID_SIZE];
    enum fgw_err err = each_entry(dir, dir->root, check_own_entry, error);
    if (err == FGW_OK) {
        err = open_subs(dir, error);
    }
    if (err == FGW_OK) {
        err = each_entry(dir, dir->groups, drop_empty_group, error);
    }
    if (err == FGW_OK &&
        (fgw_fs_fsync_dir(dir->root) != FGW_OK || fgw_fs_fsync_dir(dir->groups) != FGW_OK)) {
        err = fail_errno(dir, "sync", error);
    }
    fgw_rng_fill(id, sizeof id);
    add_store_id(dir, id);
    if (cluster_id != NULL) {
        memcpy(dir->cluster_id, cluster_id, sizeof dir->cluster_id);
    } else {
        fgw_rng_fill(dir->cluster_id, sizeof dir->cluster_id);
    }
    return err;
}

static enum fgw_err load_format(struct fgw_datadir *dir, const uint8_t *cluster_id,
                                struct fgw_error *error)
{
    struct fgw_buf text;
    fgw_buf_init(&text, TEXT_MAX);
    enum fgw_err err = read_text(dir, "FORMAT", &text, error);
    dir->fresh = err == FGW_ERR_NOT_FOUND;
    if (err == FGW_OK) {
        err = parse_format(dir, fgw_buf_bytes(&text), error);
    }
    fgw_buf_deinit(&text);
    if (dir->fresh) {
        return begin_fresh(dir, cluster_id, error);
    }
    if (err == FGW_OK && cluster_id != NULL &&
        memcmp(cluster_id, dir->cluster_id, sizeof dir->cluster_id) != 0) {
        return fgw_error_set(error, FGW_ERR_CONFIG,
                             "data directory %s belongs to another cluster than the database",
                             dir->path);
    }
    return err == FGW_OK ? open_subs(dir, error) : err;
}

enum fgw_err fgw_datadir_open(struct fgw_datadir *dir, const char *path, const uint8_t *cluster_id,
                              struct fgw_error *error)
{
    *dir = (struct fgw_datadir){.path = fgw_xstrdup(path),
                                .root = -1,
                                .tmp = -1,
                                .groups = -1,
                                .checkpoints = -1,
                                .lock = -1};
    enum fgw_err err = open_root(dir, error);
    if (err == FGW_OK && faccessat(dir->root, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
        err = fail_errno(dir, "read and write", error);
    }
    if (err == FGW_OK && faccessat(dir->root, "FORMAT", F_OK, 0) != 0) {
        err = each_entry(dir, dir->root, check_own_entry, error); /* before LOCK is left in it */
    }
    if (err == FGW_OK) {
        err = take_lock(dir, error);
    }
    if (err == FGW_OK) {
        err = load_format(dir, cluster_id, error);
    }
    if (err == FGW_OK) {
        err = each_entry(dir, dir->tmp, empty_tmp, error);
    }
    if (err == FGW_OK) {
        err = load_keys(dir, error);
    }
    if (err != FGW_OK) {
        fgw_datadir_close(dir);
    }
    return err;
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

void fgw_datadir_close(struct fgw_datadir *dir)
{
    close_fd(&dir->tmp);
    close_fd(&dir->groups);
    close_fd(&dir->checkpoints);
    close_fd(&dir->root);
    close_fd(&dir->lock);
    fgw_xfree(dir->store_ids);
    fgw_xfree(dir->path);
    explicit_bzero(&dir->keyring, sizeof dir->keyring);
    dir->store_ids = NULL;
    dir->path = NULL;
}
