/* backup_files.c: see backup_files.h.
 *
 * Commit point of a copy: its rename out of tmp/. Crash argument: a copy in its place is whole and
 * synced; one that is there when the work is taken up again counts only after it was compared.
 */
#include "storage/backup_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/encode.h"
#include "base/fs.h"

enum { STEP_BYTES = 4 * 1024 * 1024, BACKUP_FORMAT = 1, CRC_LINE = 7 + 8 + 1 };

/* -- the list ------------------------------------------------------------------------------------ */

void fgw_backup_list_deinit(struct fgw_backup_list *list)
{
    fgw_xfree(list->files);
    *list = (struct fgw_backup_list){0};
}

struct fgw_backup_file *fgw_backup_list_add(struct fgw_backup_list *list, const char *name,
                                            uint64_t size)
{
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 16;
        list->files = fgw_xrealloc(list->files, list->capacity * sizeof *list->files);
    }
    struct fgw_backup_file *file = &list->files[list->count++];
    *file = (struct fgw_backup_file){.size = size};
    (void)snprintf(file->name, sizeof file->name, "%s", name);
    return file;
}

const struct fgw_backup_file *fgw_backup_list_find(const struct fgw_backup_list *list,
                                                   const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->files[i].name, name) == 0) {
            return &list->files[i];
        }
    }
    return NULL;
}

static void put_hex(struct fgw_buf *out, const char *name, struct fgw_bytes bytes)
{
    char hex[2 * FGW_SHA256_SIZE];
    fgw_hex_encode(bytes, hex);
    (void)fgw_buf_appendf(out, "%s%.*s", name, (int)(2 * bytes.len), hex);
}

static void put_number(struct fgw_buf *out, const char *name, uint64_t value)
{
    (void)fgw_buf_appendf(out, "%s %llu\n", name, (unsigned long long)value);
}

void fgw_backup_list_encode(const struct fgw_backup_list *list, struct fgw_buf *out)
{
    (void)fgw_buf_append_str(out, "fgw-backup\n");
    put_number(out, "format", BACKUP_FORMAT);
    put_hex(out, "store ", fgw_bytes(list->store_id, sizeof list->store_id));
    put_hex(out, "\ncluster ", fgw_bytes(list->cluster_id, sizeof list->cluster_id));
    (void)fgw_buf_append_byte(out, '\n');
    put_number(out, "checkpoint", list->checkpoint);
    put_number(out, "batch", list->batch);
    put_number(out, "made-ms", list->made_ms);
    for (size_t i = 0; i < list->count; i++) {
        const struct fgw_backup_file *file = &list->files[i];
        (void)fgw_buf_appendf(out, "file %llu ", (unsigned long long)file->size);
        put_hex(out, "", fgw_bytes(file->sha256, sizeof file->sha256));
        (void)fgw_buf_appendf(out, " %s\n", file->name);
    }
    (void)fgw_buf_appendf(out, "crc32c %08x\n", fgw_crc32c(0, fgw_buf_bytes(out)));
}

static bool cut_crc(struct fgw_bytes *text)
{
    char want[CRC_LINE + 1];
    if (text->len < CRC_LINE) {
        return false;
    }
    struct fgw_bytes body = fgw_bytes_sub(*text, 0, text->len - CRC_LINE);
    (void)snprintf(want, sizeof want, "crc32c %08x\n", fgw_crc32c(0, body));
    if (memcmp(text->ptr + body.len, want, CRC_LINE) != 0) {
        return false;
    }
    *text = body;
    return true;
}

/* Takes "NAME value" off the front. */
static bool take(struct fgw_bytes *text, const char *name, struct fgw_bytes *out_value)
{
    struct fgw_bytes found;
    struct fgw_bytes line;
    if (text->len == 0 || !fgw_bytes_split(text, '\n', &line)) {
        return false;
    }
    *out_value = line;
    return fgw_bytes_split(out_value, ' ', &found) && fgw_bytes_eq_str(found, name);
}

static bool take_number(struct fgw_bytes *text, const char *name, uint64_t *out_value)
{
    struct fgw_bytes value;
    return take(text, name, &value) && fgw_bytes_to_u64(value, out_value) == FGW_OK;
}

static bool take_id(struct fgw_bytes *text, const char *name, uint8_t out[FGW_RECORD_ID_SIZE])
{
    struct fgw_bytes value;
    return take(text, name, &value) && value.len == (size_t)2 * FGW_RECORD_ID_SIZE &&
           fgw_hex_decode(value, out) == FGW_OK;
}

/* A name that leads out of the backup is none of ours. */
static bool name_is_ours(struct fgw_bytes name)
{
    static const char *const FILES[] = {"FORMAT", "keys", "credentials"};
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        if (fgw_bytes_eq_str(name, FILES[i])) {
            return true;
        }
    }
    bool in_sub = fgw_bytes_starts_with(name, FGW_LIT("groups/")) ||
                  fgw_bytes_starts_with(name, FGW_LIT("checkpoints/"));
    size_t slash = fgw_bytes_find_byte(name, '/');
    return in_sub && name.len < FGW_BACKUP_NAME_SIZE && name.len > slash + 1 &&
           name.ptr[slash + 1] != '.' &&
           fgw_bytes_find_byte(fgw_bytes_sub(name, slash + 1, SIZE_MAX), '/') == SIZE_MAX;
}

static bool take_file(struct fgw_bytes *text, struct fgw_backup_list *list)
{
    struct fgw_bytes name;
    struct fgw_bytes part;
    uint64_t size;
    uint8_t sha256[FGW_SHA256_SIZE];
    char copy[FGW_BACKUP_NAME_SIZE];
    bool ok = take(text, "file", &name) && fgw_bytes_split(&name, ' ', &part) &&
              fgw_bytes_to_u64(part, &size) == FGW_OK && fgw_bytes_split(&name, ' ', &part) &&
              part.len == 2 * sizeof sha256 && fgw_hex_decode(part, sha256) == FGW_OK &&
              name_is_ours(name);
    if (ok) {
        (void)snprintf(copy, sizeof copy, "%.*s", FGW_FMT(name));
        memcpy(fgw_backup_list_add(list, copy, size)->sha256, sha256, sizeof sha256);
    }
    return ok;
}

enum fgw_err fgw_backup_list_decode(struct fgw_backup_list *list, struct fgw_bytes text)
{
    uint64_t format = 0;
    struct fgw_bytes value;
    *list = (struct fgw_backup_list){0};
    bool ok = cut_crc(&text) && take(&text, "fgw-backup", &value) &&
              take_number(&text, "format", &format);
    if (ok && format > BACKUP_FORMAT) {
        return FGW_ERR_NEWER_VERSION;
    }
    ok = ok && take_id(&text, "store", list->store_id) &&
         take_id(&text, "cluster", list->cluster_id) &&
         take_number(&text, "checkpoint", &list->checkpoint) &&
         take_number(&text, "batch", &list->batch) && take_number(&text, "made-ms", &list->made_ms);
    while (ok && text.len > 0) {
        ok = take_file(&text, list);
    }
    if (!ok) {
        fgw_backup_list_deinit(list);
    }
    return ok ? FGW_OK : FGW_ERR_CORRUPT;
}

/* -- copying ------------------------------------------------------------------------------------- */

enum copy_state { COPYING, READING_BACK };

struct fgw_backup_copy {
    const struct fgw_backup_place *to;
    char name[FGW_BACKUP_NAME_SIZE];
    char tmp_name[FGW_BACKUP_NAME_SIZE];
    enum copy_state state;
    int from_fd;
    int to_fd;
    int to_dir; /* where the file will stand */
    bool there; /* it stands there already: compared, not written */
    bool in_tmp;
    uint64_t size;
    uint64_t at;
    struct fgw_digest digest;
    uint8_t sha256[FGW_SHA256_SIZE]; /* of the source */
    uint8_t *bytes;                  /* STEP_BYTES, twice */
};

static const char *base_name(const char *name)
{
    const char *slash = strchr(name, '/');
    return slash == NULL ? name : slash + 1;
}

static enum fgw_err open_target_dir(struct fgw_backup_copy *copy)
{
    char folder[FGW_BACKUP_NAME_SIZE];
    const char *slash = strchr(copy->name, '/');
    (void)snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - copy->name),
                   slash == NULL ? "." : copy->name);
    copy->to_dir = openat(copy->to->root, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return copy->to_dir < 0 ? fgw_err_from_errno(errno) : FGW_OK;
}

static enum fgw_err create_target(struct fgw_backup_copy *copy)
{
    copy->there = false;
    copy->at = 0;
    fgw_digest_begin(&copy->digest, FGW_DIGEST_SHA256);
    if (copy->to_fd >= 0) {
        (void)close(copy->to_fd);
    }
    copy->to_fd =
        openat(copy->to->tmp, copy->tmp_name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    copy->in_tmp = copy->to_fd >= 0;
    return copy->to_fd < 0 ? fgw_err_from_errno(errno) : FGW_OK;
}

static enum fgw_err open_target(struct fgw_backup_copy *copy)
{
    uint64_t size = 0;
    copy->to_fd = openat(copy->to_dir, base_name(copy->name), O_RDONLY | O_CLOEXEC);
    copy->there =
        copy->to_fd >= 0 && fgw_fs_size(copy->to_fd, &size) == FGW_OK && size == copy->size;
    return copy->there ? FGW_OK : create_target(copy);
}

enum fgw_err fgw_backup_copy_begin(const struct fgw_backup_place *from,
                                   const struct fgw_backup_place *to,
                                   const struct fgw_backup_file *file,
                                   struct fgw_backup_copy **out_copy)
{
    uint64_t size = 0;
    int fd = openat(from->root, file->name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? FGW_ERR_NOT_FOUND : fgw_err_from_errno(errno);
    }
    enum fgw_err err = fgw_fs_size(fd, &size);
    if (err == FGW_OK && file->size != UINT64_MAX && file->size > size) {
        err = FGW_ERR_END;
    }
    if (err != FGW_OK) {
        (void)close(fd);
        return err;
    }
    struct fgw_backup_copy *copy = fgw_xcalloc(1, sizeof *copy);
    copy->to = to;
    copy->from_fd = fd;
    copy->to_fd = -1;
    copy->size = file->size == UINT64_MAX ? size : file->size;
    (void)snprintf(copy->name, sizeof copy->name, "%s", file->name);
    (void)snprintf(copy->tmp_name, sizeof copy->tmp_name, "%s", base_name(file->name));
    copy->bytes = fgw_xmalloc((size_t)2 * STEP_BYTES);
    fgw_digest_begin(&copy->digest, FGW_DIGEST_SHA256);
    err = open_target_dir(copy);
    if (err == FGW_OK) {
        err = open_target(copy);
    }
    if (err != FGW_OK) {
        fgw_backup_copy_free(copy);
        return err;
    }
    *out_copy = copy;
    return FGW_OK;
}

static enum fgw_err copy_piece(struct fgw_backup_copy *copy, size_t len)
{
    struct fgw_bytes piece = fgw_bytes(copy->bytes, len);
    enum fgw_err err = fgw_fs_pread(copy->from_fd, copy->bytes, len, copy->at);
    if (err != FGW_OK) {
        return err;
    }
    fgw_digest_update(&copy->digest, piece);
    if (!copy->there) {
        err = fgw_fs_pwrite(copy->to_fd, piece, copy->at);
        copy->at += len;
        return err == FGW_OK ? fgw_fs_fdatasync(copy->to_fd) : err;
    }
    if (fgw_fs_pread(copy->to_fd, copy->bytes + STEP_BYTES, len, copy->at) != FGW_OK ||
        memcmp(copy->bytes, copy->bytes + STEP_BYTES, len) != 0) {
        return create_target(copy); /* something else: written anew from the beginning */
    }
    copy->at += len;
    return FGW_OK;
}

static enum fgw_err take_place(struct fgw_backup_copy *copy)
{
    enum fgw_err err = FGW_OK;
    if (!copy->there) {
        err = fgw_fs_commit_durable(copy->to_fd, copy->to->tmp, copy->tmp_name, copy->to_dir,
                                    base_name(copy->name));
        copy->in_tmp = false;
    }
    fgw_digest_end(&copy->digest, copy->sha256);
    fgw_digest_begin(&copy->digest, FGW_DIGEST_SHA256);
    (void)posix_fadvise(copy->to_fd, 0, 0, POSIX_FADV_DONTNEED); /* what the disk has, not memory */
    copy->state = READING_BACK;
    copy->at = 0;
    return err;
}

static enum fgw_err end_reading(struct fgw_backup_copy *copy, struct fgw_backup_file *file)
{
    uint8_t found[FGW_SHA256_SIZE];
    fgw_digest_end(&copy->digest, found);
    if (memcmp(found, copy->sha256, sizeof found) != 0) {
        return FGW_ERR_CORRUPT;
    }
    memcpy(file->sha256, found, sizeof found);
    file->size = copy->size;
    return FGW_ERR_END;
}

enum fgw_err fgw_backup_copy_step(struct fgw_backup_copy *copy, struct fgw_backup_file *file,
                                  uint64_t *out_bytes)
{
    uint64_t left = copy->size - copy->at;
    size_t len = left < STEP_BYTES ? (size_t)left : STEP_BYTES;
    *out_bytes = 0;
    if (copy->state == COPYING) {
        *out_bytes = len;
        return len > 0 ? copy_piece(copy, len) : take_place(copy);
    }
    if (len == 0) {
        return end_reading(copy, file);
    }
    enum fgw_err err = fgw_fs_pread(copy->to_fd, copy->bytes, len, copy->at);
    if (err == FGW_OK) {
        fgw_digest_update(&copy->digest, fgw_bytes(copy->bytes, len));
        copy->at += len;
    }
    return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
}

void fgw_backup_copy_free(struct fgw_backup_copy *copy)
{
    if (copy == NULL) {
        return;
    }
    if (copy->in_tmp) {
        (void)!fgw_fs_unlink(copy->to->tmp, copy->tmp_name);
    }
    (void)close(copy->from_fd);
    if (copy->to_fd >= 0) {
        (void)close(copy->to_fd);
    }
    if (copy->to_dir > 0) {
        (void)close(copy->to_dir);
    }
    fgw_digest_deinit(&copy->digest);
    fgw_xfree(copy->bytes);
    fgw_xfree(copy);
}

/* -- directories --------------------------------------------------------------------------------- */

enum fgw_err fgw_backup_open_sub(int root, const char *name, int *out_fd)
{
    if (mkdirat(root, name, 0700) != 0 && errno != EEXIST) {
        return fgw_err_from_errno(errno);
    }
    int fd = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return fgw_err_from_errno(errno);
    }
    *out_fd = fd;
    return fgw_fs_fsync_dir(root);
}

enum fgw_err fgw_backup_each_entry(int dir_fd, fgw_backup_entry_fn *fn, void *context)
{
    int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = copy < 0 ? NULL : fdopendir(copy);
    enum fgw_err err = names == NULL ? FGW_ERR_IO : FGW_OK;
    struct dirent *entry;
    while (err == FGW_OK && (entry = readdir(names)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            err = fn(context, dir_fd, entry->d_name);
        }
    }
    if (names != NULL) {
        (void)closedir(names);
    }
    return err;
}
