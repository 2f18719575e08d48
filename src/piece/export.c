/* export.c: see piece.h. A piece is written in one pass: the roots are known before the first byte,
 * so header and list nodes stand first, and the commitment is computed over the bytes as they go to
 * the file. Commit point: the rename of the manifest into pieces/ (docs/formats/piece.md). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/fs.h"
#include "cid/car.h"
#include "cid/piece_cid.h"
#include "cid/unixfs.h"
#include "event/fiber.h"
#include "piece/list_nodes.h"
#include "piece/manifest.h"
#include "piece/plan.h"

enum {
    DEPTH_MAX = 8, /* of a blob's tree: 1,024 links a node make 2 of the largest blob */
    SPACE_STEP_BYTES = 64 * 1024 * 1024,
    NAME_SIZE = FGW_PIECE_CID_V1_TEXT_SIZE + 16
};

_Static_assert(FGW_PIECE_BLOBS_MAX <= FGW_PIECE_LINKS_MAX * FGW_PIECE_LINKS_MAX,
               "two levels of list nodes are enough");

struct export
{
    const struct fgw_piece_export *options;
    struct fgw_error *error;
    struct fgw_piece_progress progress;
    uint64_t start_ms;
    uint64_t space_checked; /* progress.bytes at that time */
    int pieces_dir;
    int pieces_tmp_dir; /* tmp/ of the data directory */
    int to_dir;         /* where the files go: --to, or pieces_dir */
    int tmp_dir;        /* where they are written until then: --to, or pieces_tmp_dir */
    /* of the piece at hand */
    struct fgw_piece_plan plan;
    struct fgw_cid *groups; /* list nodes over 1,024 blobs each, when there are several */
    size_t group_count;
    struct fgw_cid root;
    struct fgw_piece_seen seen;
    struct fgw_commp commp;
    struct fgw_piece_out_file car;
    struct fgw_piece_out_file objects;
    struct fgw_buf node;
    struct fgw_buf leaf;
    uint64_t blocks;
    uint64_t object_count;
};

static bool go_on(void *context)
{
    struct export *export = context;
    const struct fgw_piece_export *options = export->options;
    return options->on_progress == NULL ||
           options->on_progress(options->context, &export->progress);
}

static enum fgw_err fail(struct export *export, enum fgw_err err, const char *what)
{
    return export->error->code != FGW_OK
               ? err
               : fgw_error_set(export->error, err, "%s: %s", what, fgw_err_text(err));
}

/* -- bytes into the CAR -------------------------------------------------------------------------- */

/* The reserve belongs to deletes and compaction: a piece in the data directory leaves it alone. */
static enum fgw_err check_reserve(struct export *export)
{
    struct fgw_storage_stats stats;
    if (export->options->to != NULL ||
        export->progress.bytes - export->space_checked < SPACE_STEP_BYTES) {
        return FGW_OK;
    }
    export->space_checked = export->progress.bytes;
    fgw_storage_stats(export->options->storage, &stats);
    return stats.below_reserve
               ? fgw_error_set(export->error, FGW_ERR_NOSPACE,
                               "the data directory has no free space above FGW_MIN_FREE: give "
                               "another folder with --to, or free some")
               : FGW_OK;
}

static void keep_rate(const struct export *export)
{
    uint64_t bytes_per_s = export->options->bytes_per_s;
    if (bytes_per_s == 0) {
        return;
    }
    uint64_t due_ms = (uint64_t)((double)export->progress.bytes * 1000.0 / (double)bytes_per_s);
    uint64_t passed_ms = fgw_clock_boot_ms() - export->start_ms;
    if (due_ms > passed_ms) {
        fgw_fiber_sleep_ms(due_ms - passed_ms);
    }
}

static enum fgw_err put(struct export *export, struct fgw_bytes bytes)
{
    enum fgw_err err = fgw_commp_update(&export->commp, bytes);
    if (err == FGW_OK) {
        err = fgw_piece_out_append(&export->car, bytes);
    }
    export->progress.bytes += bytes.len;
    return err;
}

static enum fgw_err put_section(struct export *export, const struct fgw_cid *cid,
                                struct fgw_bytes block)
{
    uint8_t head[FGW_CAR_SECTION_HEAD_MAX];
    size_t head_len = fgw_car_section_head_encode(cid, block.len, head);
    enum fgw_err err = put(export, fgw_bytes(head, head_len));
    if (err == FGW_OK) {
        err = put(export, block);
    }
    export->blocks++;
    keep_rate(export);
    if (err == FGW_OK && !go_on(export)) {
        err = FGW_ERR_CANCELLED;
    }
    return err == FGW_OK ? check_reserve(export) : err;
}

/* -- list nodes ---------------------------------------------------------------------------------- */

static struct fgw_cid make_group_node(struct export *export, size_t index)
{
    const struct fgw_piece_blob *first = export->plan.blobs + index * FGW_PIECE_LINKS_MAX;
    size_t left = export->plan.count - index * FGW_PIECE_LINKS_MAX;
    return fgw_piece_list_node(&first->cid, sizeof *first,
                               left < FGW_PIECE_LINKS_MAX ? left : FGW_PIECE_LINKS_MAX,
                               &export->node);
}

static void find_root(struct export *export)
{
    size_t count = export->plan.count;
    export->group_count = (count + FGW_PIECE_LINKS_MAX - 1) / FGW_PIECE_LINKS_MAX;
    export->groups = fgw_xcalloc(export->group_count, sizeof *export->groups);
    for (size_t i = 0; i < export->group_count; i++) {
        export->groups[i] = make_group_node(export, i);
    }
    if (count == 1) {
        export->root = export->plan.blobs[0].cid;
    } else if (export->group_count == 1) {
        export->root = export->groups[0];
    } else {
        export->root = fgw_piece_list_node(export->groups, sizeof *export->groups,
                                           export->group_count, &export->node);
    }
}

/* -- blobs --------------------------------------------------------------------------------------- */

static enum fgw_err read_checked(struct export *export, const struct fgw_cid *cid,
                                 struct fgw_buf *buffer, struct fgw_bytes *out_bytes)
{
    struct fgw_storage_block block;
    char text[FGW_CID_TEXT_SIZE];
    fgw_cid_text(cid, text);
    enum fgw_err err = fgw_storage_read_block(export->options->storage, cid, buffer, &block);
    if (err == FGW_ERR_NOT_FOUND) {
        return fgw_error_set(export->error, FGW_ERR_CONFLICT,
                             "block %s was deleted while the piece was written: export again",
                             text);
    }
    struct fgw_cid found =
        err == FGW_OK ? fgw_cid_of(fgw_cid_codec(cid), block.bytes) : (struct fgw_cid){0};
    if (err == FGW_OK && !fgw_cid_eq(&found, cid)) {
        (void)!fgw_storage_check_block(export->options->storage, cid); /* marks it bad */
        err = FGW_ERR_CORRUPT;
    }
    if (err != FGW_OK) {
        return fgw_error_set(export->error, err, "block %s: %s", text, fgw_err_text(err));
    }
    *out_bytes = block.bytes;
    return FGW_OK;
}

static enum fgw_err put_tree(struct export *export, const struct fgw_cid *cid, unsigned depth);

static enum fgw_err put_children(struct export *export, struct fgw_bytes node, unsigned depth)
{
    struct fgw_arena arena;
    struct fgw_unixfs_node parsed;
    fgw_arena_init(&arena, 0);
    enum fgw_err err =
        depth < DEPTH_MAX ? fgw_unixfs_decode(&arena, node, &parsed) : FGW_ERR_CORRUPT;
    for (size_t i = 0; err == FGW_OK && i < parsed.link_count; i++) {
        struct fgw_cid child;
        err = fgw_cid_from_view(&parsed.links[i].cid, &child);
        if (err == FGW_OK) {
            err = put_tree(export, &child, depth + 1);
        }
    }
    fgw_arena_deinit(&arena);
    return err;
}

/* Depth first, each block once. */
static enum fgw_err put_tree(struct export *export, const struct fgw_cid *cid, unsigned depth)
{
    struct fgw_bytes bytes = {NULL, 0};
    if (!fgw_piece_seen_add(&export->seen, cid)) {
        return FGW_OK;
    }
    if (fgw_cid_codec(cid) == FGW_CODEC_RAW) {
        enum fgw_err read = read_checked(export, cid, &export->leaf, &bytes);
        return read == FGW_OK ? put_section(export, cid, bytes) : read;
    }
    struct fgw_buf node;
    fgw_buf_init(&node, 0);
    enum fgw_err err = read_checked(export, cid, &node, &bytes);
    if (err == FGW_OK) {
        err = put_section(export, cid, bytes);
    }
    if (err == FGW_OK) {
        err = put_children(export, bytes, depth);
    }
    fgw_buf_deinit(&node);
    return err;
}

/* The session keeps the blocks where they can be read although the object is deleted meanwhile. */
static enum fgw_err put_blob(struct export *export, const struct fgw_cid *root)
{
    struct fgw_storage_reader *session = NULL;
    if (fgw_cid_codec(root) != FGW_CODEC_RAW) {
        enum fgw_err err = fgw_storage_reader_open(export->options->storage, root, NULL, &session);
        if (err != FGW_OK) {
            return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CONFLICT : err;
        }
    }
    enum fgw_err err = put_tree(export, root, 0);
    if (session != NULL) {
        fgw_storage_reader_close(session);
    }
    return err;
}

static enum fgw_err put_blobs(struct export *export)
{
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; err == FGW_OK && i < export->plan.count; i++) {
        if (export->group_count > 1 && i % FGW_PIECE_LINKS_MAX == 0) {
            struct fgw_cid node = make_group_node(export, i / FGW_PIECE_LINKS_MAX);
            err = put_section(export, &node, fgw_buf_bytes(&export->node));
        }
        if (err == FGW_OK) {
            err = put_blob(export, &export->plan.blobs[i].cid);
        }
    }
    return err;
}

static enum fgw_err write_car(struct export *export)
{
    uint8_t header[FGW_CAR_HEADER_SIZE];
    find_root(export); /* leaves the root's node in export->node */
    fgw_car_header_encode(&export->root, header);
    enum fgw_err err = put(export, fgw_bytes(header, sizeof header));
    if (err == FGW_OK && export->plan.count > 1) {
        err = put_section(export, &export->root, fgw_buf_bytes(&export->node));
    }
    return err == FGW_OK ? put_blobs(export) : err;
}

/* -- objects ------------------------------------------------------------------------------------- */

static struct fgw_piece_holds all_holds(struct export *export)
{
    return (struct fgw_piece_holds){export->options->storage, go_on, export};
}

static enum fgw_err put_if_seen(void *context, const struct fgw_storage_hold_seen *hold,
                                struct fgw_error *error)
{
    struct export *export = context;
    (void)error;
    if (!fgw_piece_seen_has(&export->seen, &hold->root)) {
        return FGW_OK;
    }
    export->object_count++;
    return fgw_piece_put_object(&export->objects, hold);
}

static enum fgw_err write_objects(struct export *export)
{
    struct fgw_piece_holds holds = all_holds(export);
    return fgw_piece_each_hold(&holds, put_if_seen, export, export->error);
}

/* -- commit -------------------------------------------------------------------------------------- */

/* The folder's path, resolved: what the manifest names. */
static enum fgw_err folder_path(const struct export *export, char out[PATH_MAX])
{
    char path[PATH_MAX];
    const char *to = export->options->to;
    int len = to != NULL ? snprintf(path, sizeof path, "%s", to)
                         : snprintf(path, sizeof path, "%s/pieces", export->options->data_dir);
    return len > 0 && (size_t)len < sizeof path && realpath(path, out) != NULL
               ? FGW_OK
               : fgw_err_from_errno(errno);
}

static enum fgw_err put_manifest(struct export *export, const json_t *manifest, const char *name)
{
    static const char TMP[] = ".fgw-piece-manifest";
    char *text = json_dumps(manifest, JSON_INDENT(2));
    struct fgw_piece_out_file file;
    int dirs[2] = {export->to_dir, export->pieces_dir};
    int tmp_dirs[2] = {export->tmp_dir, export->pieces_tmp_dir};
    enum fgw_err err = FGW_OK;
    /* beside the CAR first: the one in pieces/ is the commit point */
    for (size_t i = export->options->to == NULL ? 1 : 0; err == FGW_OK && i < 2; i++) {
        err = fgw_piece_out_begin(&file, tmp_dirs[i], TMP);
        if (err == FGW_OK) {
            err = fgw_piece_out_append(&file, fgw_bytes_str(text));
        }
        if (err == FGW_OK) {
            err = fgw_piece_out_append(&file, FGW_LIT("\n"));
        }
        if (err == FGW_OK) {
            err = fgw_piece_out_commit(&file, dirs[i], name);
        }
        fgw_piece_out_deinit(&file);
    }
    fgw_xfree(text);
    return err;
}

static enum fgw_err commit(struct export *export, json_t *pieces)
{
    struct fgw_piece piece;
    char cid[FGW_PIECE_CID_V1_TEXT_SIZE];
    char name[NAME_SIZE];
    char *folder = fgw_xmalloc(PATH_MAX);
    fgw_commp_finish(&export->commp, &piece);
    fgw_piece_cid_v1_text(&piece, cid);
    (void)snprintf(name, sizeof name, "%s.car", cid);
    enum fgw_err err = folder_path(export, folder);
    struct fgw_buf path;
    fgw_buf_init(&path, 0);
    (void)fgw_buf_appendf(&path, "%s/%s", folder, name);
    (void)fgw_buf_append_byte(&path, '\0');
    struct fgw_piece_facts facts = {.piece = &piece,
                                    .root = export->root,
                                    .group = export->options->group,
                                    .store_id = fgw_storage_id(export->options->storage),
                                    .blobs = export->plan.count,
                                    .blocks = export->blocks,
                                    .objects = export->object_count,
                                    .car = (const char *)path.ptr};
    json_t *manifest = err == FGW_OK ? fgw_piece_manifest(&facts) : NULL;
    if (err == FGW_OK) {
        err = fgw_piece_out_commit(&export->car, export->to_dir, name);
    }
    (void)snprintf(name, sizeof name, "%s.objects.jsonl", cid);
    if (err == FGW_OK) {
        err = fgw_piece_out_commit(&export->objects, export->to_dir, name);
    }
    (void)snprintf(name, sizeof name, "%s.json", cid);
    if (err == FGW_OK) {
        err = put_manifest(export, manifest, name);
    }
    if (err == FGW_OK) {
        (void)json_array_append(pieces, manifest);
    }
    json_decref(manifest);
    fgw_buf_deinit(&path);
    fgw_xfree(folder);
    return err;
}

/* -- one piece after the other ------------------------------------------------------------------- */

static enum fgw_err check_room(struct export *export)
{
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    enum fgw_err err = fgw_fs_space(export->to_dir, &free_bytes, &total_bytes);
    if (err == FGW_OK && free_bytes < export->plan.bytes) {
        return fgw_error_set(export->error, FGW_ERR_NOSPACE,
                             "the piece takes about %llu bytes, the folder has %llu free",
                             (unsigned long long)export->plan.bytes,
                             (unsigned long long)free_bytes);
    }
    return err;
}

static enum fgw_err make_piece(struct export *export, json_t *pieces)
{
    export->blocks = 0;
    export->object_count = 0;
    export->progress.bytes_total = export->progress.bytes + export->plan.bytes;
    fgw_commp_init(&export->commp);
    export->objects.fd = -1;
    enum fgw_err err = check_room(export);
    if (err == FGW_OK) {
        export->space_checked = export->progress.bytes - SPACE_STEP_BYTES;
        err = fgw_piece_out_begin(&export->car, export->tmp_dir, ".fgw-piece-car");
        if (err == FGW_OK) {
            err = fgw_piece_out_begin(&export->objects, export->tmp_dir, ".fgw-piece-objects");
        }
        if (err == FGW_OK) {
            err = write_car(export);
        }
        if (err == FGW_OK) {
            err = write_objects(export);
        }
        if (err == FGW_OK) {
            err = commit(export, pieces);
        }
        fgw_piece_out_deinit(&export->car);
        fgw_piece_out_deinit(&export->objects);
    }
    fgw_commp_deinit(&export->commp);
    fgw_piece_seen_deinit(&export->seen);
    fgw_xfree(export->groups);
    export->groups = NULL;
    export->progress.pieces += err == FGW_OK ? 1 : 0;
    return err == FGW_OK || err == FGW_ERR_CANCELLED ? err : fail(export, err, "writing a piece");
}

static enum fgw_err make_pieces(struct export *export, json_t *pieces)
{
    struct fgw_piece_selection selection = {.holds = all_holds(export),
                                            .group = export->options->group,
                                            .padded_max = export->options->padded_max};
    bool more = true;
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK && more) {
        err = fgw_piece_plan_next(&selection, &export->plan, export->error);
        if (err != FGW_OK) {
            return err == FGW_ERR_CANCELLED ? err : fail(export, err, "choosing blobs");
        }
        more = export->plan.count > 0;
        if (more) {
            selection.from = export->plan.next;
            err = make_piece(export, pieces);
        }
        fgw_piece_plan_deinit(&export->plan);
    }
    return err;
}

/* What comes from now on goes to another group; uploads that have begun end in this one. */
static enum fgw_err seal_group(const struct fgw_piece_export *options, struct fgw_error *error)
{
    struct fgw_storage_group group;
    unsigned long long id = options->group;
    enum fgw_err err = fgw_storage_group_seal(options->storage, options->group);
    if (err == FGW_OK) {
        err = fgw_storage_group_get(options->storage, options->group, &group);
    }
    if (err == FGW_ERR_NOT_FOUND) {
        return fgw_error_set(error, err, "there is no group %llu", id);
    }
    if (err == FGW_OK && group.writing) {
        return fgw_error_set(error, FGW_ERR_CONFLICT,
                             "uploads that have begun are still writing to group %llu: try again",
                             id);
    }
    return err == FGW_OK
               ? err
               : fgw_error_set(error, err, "sealing group %llu: %s", id, fgw_err_text(err));
}

static int open_folder(const struct export *export, const char *path, const char *below)
{
    char *full = fgw_xmalloc(PATH_MAX);
    int len = snprintf(full, PATH_MAX, "%s%s", path, below);
    int fd = len > 0 && len < PATH_MAX ? open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) {
        (void)fgw_error_set(export->error, fgw_err_from_errno(errno), "%s: %s", full,
                            strerror(errno));
    }
    fgw_xfree(full);
    return fd;
}

static enum fgw_err open_folders(struct export *export)
{
    const struct fgw_piece_export *options = export->options;
    export->pieces_dir = open_folder(export, options->data_dir, "/pieces");
    export->pieces_tmp_dir = open_folder(export, options->data_dir, "/tmp");
    export->to_dir = options->to != NULL ? open_folder(export, options->to, "") : -1;
    if (options->to == NULL) {
        export->to_dir = export->pieces_dir;
    }
    export->tmp_dir = options->to != NULL ? export->to_dir : export->pieces_tmp_dir;
    bool opened = export->pieces_dir >= 0 && export->pieces_tmp_dir >= 0 && export->to_dir >= 0;
    return opened ? FGW_OK : export->error->code;
}

static void close_folders(const struct export *export)
{
    const int dirs[] = {export->pieces_dir, export->pieces_tmp_dir,
                        export->options->to != NULL ? export->to_dir : -1};
    for (size_t i = 0; i < FGW_COUNT_OF(dirs); i++) {
        if (dirs[i] >= 0) {
            (void)close(dirs[i]);
        }
    }
}

enum fgw_err fgw_piece_export(const struct fgw_piece_export *options, json_t *pieces,
                              struct fgw_error *error)
{
    struct export *export = fgw_xcalloc(1, sizeof *export);
    export->options = options;
    export->error = error;
    export->start_ms = fgw_clock_boot_ms();
    fgw_buf_init(&export->node, FGW_PIECE_LIST_NODE_MAX);
    fgw_buf_init(&export->leaf, 0);
    /* a blob that is moved while roots are chosen would be in no piece of either group */
    fgw_storage_keep_group(options->storage, options->group);
    enum fgw_err err = seal_group(options, error);
    if (err == FGW_OK) {
        err = open_folders(export);
        err = err == FGW_OK ? make_pieces(export, pieces) : err;
        close_folders(export);
    }
    fgw_storage_keep_group(options->storage, 0);
    fgw_buf_deinit(&export->leaf);
    fgw_buf_deinit(&export->node);
    fgw_xfree(export);
    return err;
}
