/* car_set.c: see car_set.h. */
#include "import/car_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "cid/protobuf.h"

enum { FOLDER_DEPTH = 2, VARINT_MAX = 10 };

struct place {
    uint8_t digest[FGW_SHA256_SIZE];
    uint64_t offset; /* of the block's bytes */
    uint32_t size;
    uint32_t file;
};

struct fgw_car_set {
    char **files; /* paths */
    size_t file_count;
    struct place *places; /* by digest */
    size_t place_count;
    size_t place_room;
};

struct scan {
    struct fgw_car_set *set;
    fgw_car_set_note *note;
    void *context;
};

static void add_place(struct fgw_car_set *set, const struct place *place)
{
    if (set->place_count == set->place_room) {
        set->place_room = set->place_room == 0 ? 1024 : 2 * set->place_room;
        set->places = fgw_xrealloc(set->places, set->place_room * sizeof *set->places);
    }
    set->places[set->place_count++] = *place;
}

/* Behind the header of the file; what is wrong with it, or NULL. */
static const char *skip_header(int fd, uint64_t file_size, uint64_t *out_offset)
{
    uint8_t head[VARINT_MAX];
    size_t have = file_size < sizeof head ? (size_t)file_size : sizeof head;
    struct fgw_bytes rest = fgw_bytes(head, have);
    struct fgw_car_header header;
    uint64_t size = 0;
    if (fgw_fs_pread(fd, head, have, 0) != FGW_OK) {
        return "cannot be read";
    }
    if (fgw_protobuf_take_varint(&rest, &size) != FGW_OK || size == 0 ||
        size > FGW_CAR_HEADER_MAX) {
        return "is no CAR";
    }
    uint64_t start = have - rest.len;
    if (start + size > file_size) {
        return "its header is cut off";
    }
    uint8_t *cbor = fgw_xmalloc((size_t)size);
    enum fgw_err err = fgw_fs_pread(fd, cbor, (size_t)size, start);
    err = err == FGW_OK ? fgw_car_header_decode(fgw_bytes(cbor, (size_t)size), &header) : err;
    fgw_xfree(cbor);
    if (err != FGW_OK) {
        return err == FGW_ERR_NOT_IMPLEMENTED ? "is a CAR of another version than 1" : "is no CAR";
    }
    *out_offset = start + size;
    return NULL;
}

/* Takes the section at *offset in; what is wrong with it, or NULL. *out_end: the file ends here. */
static const char *take_section(struct fgw_car_set *set, int fd, uint64_t file_size,
                                uint64_t *offset, bool *out_end)
{
    uint8_t head[FGW_CAR_SECTION_HEAD_MAX + FGW_CID_ENCODED_MAX];
    uint64_t left = file_size - *offset;
    size_t have = left < sizeof head ? (size_t)left : sizeof head;
    struct fgw_car_section section;
    *out_end = have == 0;
    if (*out_end) {
        return NULL;
    }
    if (fgw_fs_pread(fd, head, have, *offset) != FGW_OK) {
        return "cannot be read";
    }
    if (head[0] == 0) {
        *out_end = true; /* padding of a piece */
        return NULL;
    }
    enum fgw_err err = fgw_car_section_decode(fgw_bytes(head, have), &section);
    if (err == FGW_ERR_END || (err == FGW_OK && section.head_size + section.block_size > left)) {
        return "the last section is cut off";
    }
    if (err != FGW_OK) {
        return err == FGW_ERR_TOO_LARGE ? "a block is larger than 2 MiB" : "is no section of a CAR";
    }
    if (section.cid.hash == FGW_MULTIHASH_SHA2_256) {
        struct place place = {.offset = *offset + section.head_size,
                              .size = (uint32_t)section.block_size,
                              .file = (uint32_t)(set->file_count - 1)};
        memcpy(place.digest, section.cid.digest.ptr, sizeof place.digest);
        add_place(set, &place);
    }
    *offset += section.head_size + section.block_size;
    return NULL;
}

static void scan_file(struct scan *scan, char *path)
{
    struct fgw_car_set *set = scan->set;
    uint64_t size = 0;
    uint64_t offset = 0;
    bool end = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *wrong = fd < 0 || fgw_fs_size(fd, &size) != FGW_OK ? "cannot be opened" : NULL;
    set->files = fgw_xrealloc(set->files, (set->file_count + 1) * sizeof *set->files);
    set->files[set->file_count++] = path;
    wrong = wrong == NULL ? skip_header(fd, size, &offset) : wrong;
    while (wrong == NULL && !end) {
        wrong = take_section(set, fd, size, &offset, &end);
    }
    if (wrong != NULL) {
        scan->note(scan->context, path, offset, wrong);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

static char *join(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = fgw_xmalloc(size);
    (void)snprintf(path, size, "%s/%s", folder, name);
    return path;
}

/* In the order of names, so that two runs say the same. */
static enum fgw_err scan_folder(struct scan *scan, const char *folder, unsigned depth)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) {
        return errno == ENOENT ? FGW_ERR_NOT_FOUND : FGW_ERR_IO;
    }
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char *path = join(folder, name);
        if (fgw_bytes_ends_with(fgw_bytes_str(name), FGW_LIT(".car"))) {
            scan_file(scan, path);
            path = NULL; /* the set's */
        } else if (name[0] != '.' && depth > 0) {
            (void)scan_folder(scan, path, depth - 1); /* most names are no folders */
        }
        fgw_xfree(path);
        fgw_xfree(entries[i]);
    }
    fgw_xfree(entries);
    return FGW_OK;
}

static int compare(const void *a, const void *b)
{
    return memcmp(((const struct place *)a)->digest, ((const struct place *)b)->digest,
                  FGW_SHA256_SIZE);
}

enum fgw_err fgw_car_set_open(const char *folder, fgw_car_set_note *note, void *context,
                              struct fgw_car_set **out_set, struct fgw_error *error)
{
    struct fgw_car_set *set = fgw_xcalloc(1, sizeof *set);
    struct scan scan = {set, note, context};
    enum fgw_err err = scan_folder(&scan, folder, FOLDER_DEPTH);
    if (err != FGW_OK) {
        (void)fgw_error_set(error, err, "%s: %s", folder,
                            err == FGW_ERR_NOT_FOUND ? "there is no such folder" : strerror(errno));
    } else if (set->file_count == 0) {
        err = fgw_error_set(error, FGW_ERR_NOT_FOUND, "%s has no files named *.car", folder);
    }
    if (err != FGW_OK) {
        fgw_car_set_free(set);
        return err;
    }
    if (set->place_count > 0) {
        qsort(set->places, set->place_count, sizeof *set->places, compare);
    }
    *out_set = set;
    return FGW_OK;
}

void fgw_car_set_free(struct fgw_car_set *set)
{
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < set->file_count; i++) {
        fgw_xfree(set->files[i]);
    }
    fgw_xfree(set->files);
    fgw_xfree(set->places);
    fgw_xfree(set);
}

size_t fgw_car_set_file_count(const struct fgw_car_set *set)
{
    return set->file_count;
}

size_t fgw_car_set_block_count(const struct fgw_car_set *set)
{
    return set->place_count;
}

/* The first of the copies with this digest, or place_count. */
static size_t find_first(const struct fgw_car_set *set, const uint8_t digest[FGW_SHA256_SIZE])
{
    size_t low = 0;
    size_t high = set->place_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(set->places[middle].digest, digest, FGW_SHA256_SIZE) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static enum fgw_err read_place(const struct fgw_car_set *set, const struct place *place,
                               struct fgw_buf *out, struct fgw_error *error)
{
    uint8_t digest[FGW_SHA256_SIZE];
    const char *file = set->files[place->file];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fgw_error_set(error, FGW_ERR_IO, "%s: %s", file, strerror(errno));
    }
    enum fgw_err err = fgw_buf_reserve(out, place->size);
    err = err == FGW_OK ? fgw_fs_pread(fd, out->ptr + out->len, place->size, place->offset) : err;
    (void)close(fd);
    if (err != FGW_OK) {
        return fgw_error_set(error, FGW_ERR_IO, "%s offset %" PRIu64 ": cannot be read", file,
                             place->offset);
    }
    fgw_sha256(fgw_bytes(out->ptr + out->len, place->size), digest);
    if (memcmp(digest, place->digest, sizeof digest) != 0) {
        return fgw_error_set(error, FGW_ERR_CORRUPT,
                             "%s offset %" PRIu64 ": the block is not what its CID says", file,
                             place->offset);
    }
    out->len += place->size;
    return FGW_OK;
}

enum fgw_err fgw_car_set_read(const struct fgw_car_set *set, const uint8_t digest[FGW_SHA256_SIZE],
                              struct fgw_buf *out, struct fgw_error *error)
{
    enum fgw_err err = FGW_ERR_NOT_FOUND;
    for (size_t i = find_first(set, digest); i < set->place_count; i++) {
        if (memcmp(set->places[i].digest, digest, FGW_SHA256_SIZE) != 0) {
            break;
        }
        err = read_place(set, &set->places[i], out, error);
        if (err == FGW_OK) {
            return FGW_OK;
        }
    }
    return err == FGW_ERR_NOT_FOUND ? fgw_error_set(error, err, "no CAR has it") : err;
}
