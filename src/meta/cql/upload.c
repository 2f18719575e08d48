/* upload.c: rows of multipart uploads, their states but for completing (complete.c), and the abort
 * (design/metadata.md section 6):
 *   open -> completing -> completed | open;   open -> aborting -> aborted
 * The table is the Go gateway's with columns added: its seven keep their meaning for tools that read
 * them, ours hold the truth.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/tlv.h"
#include "meta/cql/cql_internal.h"

static const struct {
    const char *status;
    enum cql_upload_state state;
} STATES[] = {{"open", CQL_UPLOAD_OPEN},
              {"completing", CQL_UPLOAD_COMPLETING},
              {"completed", CQL_UPLOAD_COMPLETED},
              {"aborting", CQL_UPLOAD_ABORTING},
              {"aborted", CQL_UPLOAD_ABORTED}};

static const char *status_of(enum cql_upload_state state)
{
    for (size_t i = 0; i < FGW_COUNT_OF(STATES); i++) {
        if (STATES[i].state == state) {
            return STATES[i].status;
        }
    }
    return "";
}

/* -- completions --------------------------------------------------------------------------------- */

enum completion_tag { COMPLETION_SEEN = 2, COMPLETION_OBJECT = 4 };

static void encode_completion(struct fgw_buf *out, const struct cql_completion *completion)
{
    struct fgw_buf object;
    fgw_buf_init(&object, 0);
    fgw_row_encode_object(&object, &completion->object, &completion->more);
    fgw_tlv_put(out, COMPLETION_SEEN,
                fgw_bytes(completion->seen_rev.bytes, sizeof completion->seen_rev.bytes));
    fgw_tlv_put(out, COMPLETION_OBJECT, fgw_buf_bytes(&object));
    fgw_buf_deinit(&object);
}

static enum fgw_err decode_completion(struct fgw_arena *arena, struct fgw_bytes key,
                                      struct fgw_bytes bytes, struct cql_completion *out)
{
    struct fgw_tlv_reader reader = fgw_tlv_reader(bytes);
    struct fgw_tlv_item item;
    enum fgw_err err;
    memset(out, 0, sizeof *out);
    while ((err = fgw_tlv_next(&reader, &item)) == FGW_OK) {
        if (item.tag == COMPLETION_SEEN && item.value.len == sizeof out->seen_rev.bytes) {
            memcpy(out->seen_rev.bytes, item.value.ptr, item.value.len);
        } else if (item.tag == COMPLETION_OBJECT) {
            err = fgw_row_decode_object(arena, key, item.value, FGW_ROW_FULL, &out->object,
                                        &out->more);
        } else if (fgw_tlv_critical(item.tag)) {
            err = FGW_ERR_NEWER_VERSION;
        }
        if (err != FGW_OK) {
            return err;
        }
    }
    return err == FGW_ERR_END ? FGW_OK : err;
}

/* -- reading --------------------------------------------------------------------------------------- */

static enum fgw_err decode_row(struct fgw_arena *arena, const struct fgw_id *id,
                               const struct fgw_cql_result *result, struct cql_upload_row *out_row)
{
    struct fgw_bytes status = {NULL, 0};
    struct fgw_bytes data;
    struct fgw_bytes completion;
    struct fgw_id rev;
    struct cql_upload_row row = {0};
    enum fgw_err err = fgw_cql_get_text(result, "status", &status);
    if (err == FGW_OK) {
        err = cql_get_id(result, "rev", &rev);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_blob(result, "data", &data);
    }
    if (err != FGW_OK) {
        /* a row of the Go gateway has no rev: no upload of ours */
        *out_row = (struct cql_upload_row){0};
        return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
    }
    for (size_t i = 0; i < FGW_COUNT_OF(STATES); i++) {
        if (fgw_bytes_eq_str(status, STATES[i].status)) {
            row.state = STATES[i].state;
        }
    }
    if (row.state == 0) {
        return FGW_ERR_NEWER_VERSION;
    }
    err = fgw_row_decode_upload(arena, id, fgw_arena_copy(arena, data), &row.upload);
    row.upload.rev = rev;
    if (err == FGW_OK && fgw_cql_get_blob(result, "completion", &completion) == FGW_OK) {
        err = decode_completion(arena, row.upload.key, fgw_arena_copy(arena, completion),
                                &row.completion);
    }
    if (err == FGW_OK) {
        *out_row = row;
    }
    return err;
}

static struct fgw_cql_value id_text(const struct fgw_id *id, char hex[33])
{
    fgw_id_hex(id, hex);
    return fgw_cql_str(hex);
}

static enum fgw_err take_row(struct fgw_arena *arena, const struct fgw_id *id,
                             struct fgw_cql_result *result, struct cql_upload_row *out_row)
{
    enum fgw_err err = FGW_OK;
    if (fgw_cql_result_next(result)) {
        err = decode_row(arena, id, result, out_row);
    } else {
        *out_row = (struct cql_upload_row){0};
    }
    fgw_cql_result_free(result);
    return err;
}

struct fgw_cql_call *cql_upload_start(struct cql *cql, const struct fgw_id *id)
{
    char hex[33];
    struct fgw_cql_value values[] = {id_text(id, hex)};
    return cql_start(cql, CQL_UPLOAD_GET, values, 1, NULL);
}

enum fgw_err cql_upload_wait(struct cql *cql, struct fgw_arena *arena, struct fgw_cql_call *call,
                             const struct fgw_id *id, struct cql_upload_row *out_row,
                             struct fgw_error *error)
{
    struct fgw_cql_result *result = NULL;
    enum fgw_err err = cql_wait(cql, call, &result, error);
    return err == FGW_OK ? take_row(arena, id, result, out_row) : err;
}

enum fgw_err cql_upload_read(struct cql *cql, struct fgw_arena *arena, const struct fgw_id *id,
                             bool serial, struct cql_upload_row *out_row, struct fgw_error *error)
{
    char hex[33];
    struct fgw_cql_value values[] = {id_text(id, hex)};
    struct fgw_cql_options options = {.serial = serial};
    struct fgw_cql_result *result = NULL;
    enum fgw_err err = cql_read(cql, CQL_UPLOAD_GET, values, 1, &options, &result, error);
    return err == FGW_OK ? take_row(arena, id, result, out_row) : err;
}

enum fgw_err cql_upload_get(struct fgw_meta *meta, struct fgw_arena *arena,
                            const struct fgw_bucket *bucket, struct fgw_bytes key,
                            const struct fgw_id *id, struct fgw_upload *out_upload,
                            struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct cql_upload_row row = {0};
    enum fgw_err err = cql_upload_read(cql, arena, id, false, &row, error);
    if (err == FGW_OK && row.state == CQL_UPLOAD_COMPLETING) {
        err = cql_finish_complete(cql, arena, &row, error);
    }
    if (err != FGW_OK) {
        return cql_fail(error, err, "reading upload of", key);
    }
    bool known = row.state == CQL_UPLOAD_OPEN || row.state == CQL_UPLOAD_COMPLETED;
    if (!known || !fgw_id_eq(&row.upload.bucket_id, &bucket->id) ||
        !fgw_bytes_eq(row.upload.key, key)) {
        return fgw_error_set(error, FGW_ERR_NO_SUCH_UPLOAD, NULL);
    }
    *out_upload = row.upload;
    return FGW_OK;
}

/* -- writing ---------------------------------------------------------------------------------------- */

enum fgw_err cql_upload_swap(struct cql *cql, struct fgw_arena *arena,
                             const struct cql_upload_row *seen, struct cql_upload_row *next,
                             bool *out_applied, struct fgw_error *error)
{
    char hex[33];
    struct fgw_buf data;
    struct fgw_buf completion;
    enum cql_outcome outcome = CQL_UNSURE;
    bool completing = next->state == CQL_UPLOAD_COMPLETING;
    fgw_id_random(&next->upload.rev);
    fgw_buf_init(&data, 0);
    fgw_buf_init(&completion, 0);
    fgw_row_encode_upload(&data, &next->upload);
    if (completing) {
        encode_completion(&completion, &next->completion);
    }
    struct fgw_cql_value values[] = {fgw_cql_str(status_of(next->state)),
                                     cql_id_blob(&next->upload.rev),
                                     fgw_cql_blob(fgw_buf_bytes(&data)),
                                     completing ? fgw_cql_blob(fgw_buf_bytes(&completion))
                                                : fgw_cql_null(),
                                     fgw_cql_timestamp(fgw_clock_wall_ms() + CQL_UPLOAD_KEEP_MS),
                                     id_text(&next->upload.id, hex),
                                     cql_id_blob(&seen->upload.rev)};
    struct cql_lwt lwt = {.id = CQL_UPLOAD_SWAP,
                          .values = values,
                          .count = 7,
                          .rev = &next->upload.rev,
                          .partition = fgw_get_u64be(next->upload.id.bytes + 8)};
    enum fgw_err err = cql_lwt(cql, &lwt, &outcome, error);
    fgw_buf_deinit(&data);
    fgw_buf_deinit(&completion);
    if (err == FGW_OK && cql_must_look(outcome)) {
        struct cql_upload_row now = {0};
        err = cql_upload_read(cql, arena, &next->upload.id, true, &now, error);
        outcome = err == FGW_OK && fgw_id_eq(&now.upload.rev, &next->upload.rev) ? CQL_APPLIED
                                                                                 : CQL_REFUSED;
    }
    if (err == FGW_OK) {
        *out_applied = outcome == CQL_APPLIED;
    }
    return err;
}

static enum fgw_err insert_upload(struct cql *cql, struct fgw_arena *arena,
                                  const struct fgw_upload *upload, struct fgw_error *error)
{
    char hex[33];
    struct fgw_buf data;
    enum cql_outcome outcome = CQL_UNSURE;
    fgw_buf_init(&data, 0);
    fgw_row_encode_upload(&data, upload);
    struct fgw_bytes key_text = fgw_utf8_valid(upload->key) ? upload->key : FGW_LIT("");
    struct fgw_cql_value values[] = {id_text(&upload->id, hex),
                                     fgw_cql_text(upload->bucket_name),
                                     fgw_cql_text(key_text),
                                     fgw_cql_str(""),
                                     fgw_cql_timestamp(upload->created_ms),
                                     fgw_cql_null(),
                                     cql_id_uuid(&upload->bucket_id),
                                     fgw_cql_str(status_of(CQL_UPLOAD_OPEN)),
                                     cql_id_blob(&upload->rev),
                                     fgw_cql_blob(fgw_buf_bytes(&data))};
    struct cql_lwt lwt = {.id = CQL_UPLOAD_INSERT,
                          .values = values,
                          .count = 10,
                          .rev = &upload->rev,
                          .partition = fgw_get_u64be(upload->id.bytes + 8)};
    enum fgw_err err = cql_lwt(cql, &lwt, &outcome, error);
    fgw_buf_deinit(&data);
    if (err == FGW_OK && outcome != CQL_APPLIED) {
        struct cql_upload_row now = {0};
        err = cql_upload_read(cql, arena, &upload->id, true, &now, error);
        bool there = err == FGW_OK && fgw_id_eq(&now.upload.rev, &upload->rev);
        err = there ? FGW_OK : FGW_ERR_UNKNOWN_OUTCOME;
    }
    return err;
}

static enum fgw_err look_up(struct cql *cql, enum cql_statement_id id,
                            const struct fgw_upload *upload, struct fgw_error *error)
{
    char hex[33];
    struct cql_place place = {&upload->bucket_id, upload->key};
    struct fgw_cql_value values[] = {cql_id_uuid(&upload->bucket_id),
                                     fgw_cql_int(cql_shard(&place)), fgw_cql_blob(upload->key),
                                     id_text(&upload->id, hex)};
    return cql_write(cql, id, values, 4, error);
}

enum fgw_err cql_upload_create(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, const struct fgw_upload *wanted,
                               struct fgw_id *out_id, struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct fgw_upload upload = *wanted;
    struct cql_bucket_row row = {0};
    upload.created_ms = fgw_clock_wall_ms();
    upload.bucket_id = bucket->id;
    upload.bucket_name = bucket->name;
    fgw_id_version(upload.created_ms, NULL, &upload.id);
    fgw_id_random(&upload.rev);
    struct fgw_cql_call *call = cql_bucket_start(cql, bucket->name);
    /* the look-up first: lists must find what exists */
    enum fgw_err look_up_err = look_up(cql, CQL_UPLOAD_INDEX_INSERT, &upload, error);
    enum fgw_err err = cql_bucket_wait(cql, arena, call, bucket->name, &row, error);
    if (err == FGW_OK) {
        err = cql_bucket_settle(cql, arena, bucket->name, &row, error);
    }
    if (err == FGW_OK && (!row.present || !fgw_id_eq(&row.bucket.id, &bucket->id))) {
        err = FGW_ERR_NO_SUCH_BUCKET;
    }
    err = err == FGW_OK ? look_up_err : err;
    if (err == FGW_OK) {
        err = insert_upload(cql, arena, &upload, error);
    }
    if (err == FGW_OK) {
        *out_id = upload.id;
    } else if (err != FGW_ERR_UNKNOWN_OUTCOME && look_up_err == FGW_OK) {
        enum fgw_err ignored = look_up(cql, CQL_UPLOAD_INDEX_DELETE, &upload, NULL);
        (void)ignored;
    }
    return cql_fail(error, err, "creating upload of", wanted->key);
}

/* -- the end ---------------------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The extents of `parts` whose number is not among those of keep. */
static size_t unused_extents(struct fgw_arena *arena, const struct fgw_part *parts, size_t count,
                             const struct fgw_object *keep, struct fgw_extent *out)
{
    size_t kept = keep == NULL ? 0 : keep->extent_count;
    uint64_t *numbers = fgw_arena_alloc(arena, (kept + 1) * sizeof *numbers);
    size_t found = 0;
    for (size_t i = 0; i < kept; i++) {
        numbers[i] = keep->extents[i].number;
    }
    qsort(numbers, kept, sizeof *numbers, compare_numbers);
    for (size_t i = 0; i < count; i++) {
        if (bsearch(&parts[i].extent.number, numbers, kept, sizeof *numbers, compare_numbers) ==
            NULL) {
            out[found++] = parts[i].extent;
        }
    }
    return found;
}

static enum fgw_err drop_parts(struct cql *cql, struct fgw_arena *arena,
                               const struct fgw_upload *upload, const struct fgw_object *keep,
                               struct fgw_error *error)
{
    char hex[33];
    struct fgw_part *parts;
    size_t count;
    bool truncated;
    enum fgw_err err =
        cql_part_list(&cql->base, arena, upload, 0, 0, true, &parts, &count, &truncated, error);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_object unused = {.owner_id = upload->id};
    struct fgw_extent *extents = fgw_arena_alloc(arena, (count + 1) * sizeof *extents);
    struct cql_place place = {&upload->bucket_id, upload->key};
    unused.extent_count = unused_extents(arena, parts, count, keep, extents);
    unused.extents = extents;
    struct fgw_cql_value values[] = {id_text(&upload->id, hex)};
    err = cql_write(cql, CQL_PARTS_DELETE, values, 1, error);
    if (err == FGW_OK) {
        cql_release(cql, &place, &unused);
    }
    return err;
}

enum fgw_err cql_upload_tidy(struct cql *cql, struct fgw_arena *arena,
                             const struct fgw_upload *upload, const struct fgw_object *keep,
                             struct fgw_error *error)
{
    enum fgw_err err = drop_parts(cql, arena, upload, keep, error);
    return err == FGW_OK ? look_up(cql, CQL_UPLOAD_INDEX_DELETE, upload, error) : err;
}

enum fgw_err cql_finish_abort(struct cql *cql, struct fgw_arena *arena,
                              const struct cql_upload_row *row, struct fgw_error *error)
{
    struct cql_upload_row next = *row;
    bool applied = false;
    enum fgw_err err = cql_upload_tidy(cql, arena, &row->upload, NULL, error);
    if (err != FGW_OK) {
        return err;
    }
    next.state = CQL_UPLOAD_ABORTED;
    return cql_upload_swap(cql, arena, row, &next, &applied, error);
}

static enum fgw_err attempt_abort(struct cql *cql, struct fgw_arena *arena, const struct fgw_id *id,
                                  bool *out_done, struct fgw_error *error)
{
    struct cql_upload_row row = {0};
    enum fgw_err err = cql_upload_read(cql, arena, id, false, &row, error);
    if (err == FGW_OK && row.state == CQL_UPLOAD_COMPLETING) {
        err = cql_finish_complete(cql, arena, &row, error);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (row.state == CQL_UPLOAD_ABORTING) {
        enum fgw_err ignored = cql_finish_abort(cql, arena, &row, NULL);
        (void)ignored;
    }
    if (row.state != CQL_UPLOAD_OPEN) {
        return FGW_ERR_NO_SUCH_UPLOAD;
    }
    struct cql_upload_row next = row;
    next.state = CQL_UPLOAD_ABORTING;
    err = cql_upload_swap(cql, arena, &row, &next, out_done, error);
    if (err == FGW_OK && *out_done) {
        /* aborted it is; what is left of it anybody can carry on */
        enum fgw_err ignored = cql_finish_abort(cql, arena, &next, NULL);
        (void)ignored;
    }
    return err;
}

enum fgw_err cql_upload_abort(struct fgw_meta *meta, struct fgw_arena *arena,
                              const struct fgw_bucket *bucket, const struct fgw_upload *upload,
                              struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    bool done = false;
    enum fgw_err err = FGW_OK;
    (void)bucket;
    for (unsigned attempt = 0; err == FGW_OK && !done; attempt++) {
        if (attempt == CQL_ATTEMPTS_MAX) {
            err = FGW_ERR_SLOW_DOWN;
            break;
        }
        err = attempt_abort(cql, arena, &upload->id, &done, error);
    }
    return cql_fail(error, err, "aborting upload of", upload->key);
}
