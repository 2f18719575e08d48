/* manifest.c: see manifest.h; and fgw_piece_list of piece.h. */
#include "piece/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/fs.h"
#include "base/timefmt.h"
#include "cid/piece_cid.h"
#include "piece/piece.h"

enum { FORMAT = 1, MANIFEST_MAX = 64 * 1024, ID_HEX = 2 * FGW_STORAGE_ID_SIZE + 1 };

static json_t *count(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static void put_id(json_t *object, const char *name, const uint8_t id[FGW_STORAGE_ID_SIZE])
{
    char text[ID_HEX] = "";
    fgw_hex_encode(fgw_bytes(id, FGW_STORAGE_ID_SIZE), text);
    (void)json_object_set_new(object, name, json_string(text));
}

json_t *fgw_piece_manifest(const struct fgw_piece_facts *facts)
{
    char v1[FGW_PIECE_CID_V1_TEXT_SIZE];
    char v2[FGW_PIECE_CID_V2_TEXT_SIZE];
    char root[FGW_CID_TEXT_SIZE];
    char made[FGW_TIME_ISO8601_SIZE];
    fgw_piece_cid_v1_text(facts->piece, v1);
    fgw_piece_cid_v2_text(facts->piece, v2);
    fgw_cid_text(&facts->root, root);
    fgw_time_iso8601(fgw_clock_wall_ms(), made);
    json_t *object = json_pack(
        "{s:i,s:s,s:s,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:s,s:s}", "format", FORMAT, "piece_cid", v1,
        "piece_cid_v2", v2, "root", root, "payload_bytes", count(facts->piece->payload_bytes),
        "padded_bytes", count((uint64_t)FGW_COMMP_NODE_SIZE << facts->piece->height), "blobs",
        count(facts->blobs), "blocks", count(facts->blocks), "objects", count(facts->objects),
        "group", count(facts->group), "made", made, "car", facts->car);
    if (object != NULL) {
        put_id(object, "store", facts->store_id);
    }
    return object;
}

static void put_key(json_t *line, struct fgw_bytes key)
{
    json_t *text = json_stringn((const char *)key.ptr, key.len);
    if (text != NULL) {
        (void)json_object_set_new(line, "key", text);
        return;
    }
    char *hex = fgw_xcalloc(key.len + 1, 2);
    fgw_hex_encode(key, hex);
    (void)json_object_set_new(line, "key_hex", json_string(hex));
    fgw_xfree(hex);
}

enum fgw_err fgw_piece_put_object(struct fgw_piece_out_file *file,
                                  const struct fgw_storage_hold_seen *hold)
{
    char cid[FGW_CID_TEXT_SIZE];
    fgw_cid_text(&hold->root, cid);
    json_t *line = json_pack("{s:s,s:o,s:o}", "cid", cid, "bytes", count(hold->size_bytes),
                             "extent", count(hold->extent));
    put_id(line, "bucket_id", hold->owner.bucket_id);
    put_key(line, hold->owner.key);
    char *text = json_dumps(line, JSON_COMPACT | JSON_SORT_KEYS);
    enum fgw_err err = fgw_piece_out_append(file, fgw_bytes_str(text));
    if (err == FGW_OK) {
        err = fgw_piece_out_append(file, FGW_LIT("\n"));
    }
    fgw_xfree(text);
    json_decref(line);
    return err;
}

/* -- list ---------------------------------------------------------------------------------------- */

/* Whether the CAR is where it was written. */
static bool car_present(const json_t *manifest)
{
    struct stat status;
    const char *car = json_string_value(json_object_get(manifest, "car"));
    return car != NULL && stat(car, &status) == 0 &&
           status.st_size == json_integer_value(json_object_get(manifest, "payload_bytes"));
}

static enum fgw_err read_manifest(int dir, const char *name, json_t *pieces,
                                  struct fgw_error *error)
{
    struct fgw_buf text;
    fgw_buf_init(&text, MANIFEST_MAX);
    enum fgw_err err = fgw_fs_read_file(dir, name, &text);
    json_t *manifest =
        err == FGW_OK ? json_loadb((const char *)text.ptr, text.len, 0, NULL) : NULL;
    fgw_buf_deinit(&text);
    if (err == FGW_ERR_NOT_FOUND) {
        return FGW_OK; /* removed since */
    }
    if (!json_is_object(manifest) ||
        json_integer_value(json_object_get(manifest, "format")) != FORMAT) {
        json_decref(manifest);
        return fgw_error_set(error, err == FGW_OK ? FGW_ERR_CORRUPT : err,
                             "pieces/%s is no manifest that this version reads", name);
    }
    (void)json_object_set_new(manifest, "present", json_boolean(car_present(manifest)));
    (void)json_array_append_new(pieces, manifest);
    return FGW_OK;
}

static int is_manifest(const struct dirent *entry)
{
    struct fgw_bytes name = fgw_bytes_str(entry->d_name);
    return fgw_bytes_ends_with(name, FGW_LIT(".json")) && entry->d_name[0] != '.';
}

static enum fgw_err list_folder(int dir, json_t *pieces, struct fgw_error *error)
{
    struct dirent **names = NULL;
    int found = scandirat(dir, ".", &names, is_manifest, alphasort);
    if (found < 0) {
        return fgw_err_from_errno(errno);
    }
    enum fgw_err err = FGW_OK;
    for (int i = 0; i < found; i++) {
        err = err == FGW_OK ? read_manifest(dir, names[i]->d_name, pieces, error) : err;
        fgw_xfree(names[i]);
    }
    fgw_xfree(names);
    return err;
}

enum fgw_err fgw_piece_list(const char *data_dir, json_t **out_pieces, struct fgw_error *error)
{
    struct fgw_buf path;
    fgw_buf_init(&path, 0);
    (void)fgw_buf_appendf(&path, "%s/pieces", data_dir);
    (void)fgw_buf_append_byte(&path, '\0');
    int dir = open((const char *)path.ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int reason = errno;
    fgw_buf_deinit(&path);
    if (dir < 0) {
        return fgw_error_set(error, fgw_err_from_errno(reason), "%s/pieces: %s", data_dir,
                             strerror(reason));
    }
    json_t *pieces = json_array();
    enum fgw_err err = list_folder(dir, pieces, error);
    (void)close(dir);
    if (err != FGW_OK) {
        json_decref(pieces);
        return err;
    }
    *out_pieces = pieces;
    return FGW_OK;
}
