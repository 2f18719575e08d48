/* complete.c: CompleteMultipartUpload, exactly once whoever carries it on (design/metadata.md
 * section 6). What is to be written, over which rev and with which new rev, is put into the upload's
 * row first (open -> completing); the swap of the head is then the same statement for everybody:
 *
 *   the head is at the rev seen            swap it
 *   our rev is the head's or in its chain  it happened: completing -> completed
 *   the chain went on without our rev, or nobody can tell: completing -> open, and who asked for the
 *   Complete looks at the conditions again. (Can nobody tell, the object may have stood there and
 *   have been replaced: to write it once more is what the client asks for, who has no answer yet.)
 */
#include "meta/cql/cql_internal.h"

enum stand { STAND_OUTSTANDING, STAND_APPLIED, STAND_LOST };

static struct cql_place place_of(const struct cql_upload_row *row)
{
    return (struct cql_place){&row->upload.bucket_id, row->upload.key};
}

static enum fgw_err look(struct cql *cql, struct fgw_arena *arena, const struct cql_upload_row *row,
                         const struct cql_row *head, enum stand *out_stand, struct fgw_error *error)
{
    const struct cql_completion *completion = &row->completion;
    bool insert = fgw_id_is_zero(&completion->seen_rev);
    struct cql_place place = place_of(row);
    struct cql_row version = {0};
    bool untouched =
        insert ? head->state == CQL_ABSENT : fgw_id_eq(&head->object.rev, &completion->seen_rev);
    if (untouched) {
        *out_stand = STAND_OUTSTANDING;
        return FGW_OK;
    }
    enum cql_outcome chain =
        cql_chain(head, insert ? NULL : &completion->seen_rev, &completion->object.rev);
    *out_stand = chain == CQL_APPLIED ? STAND_APPLIED : STAND_LOST;
    if (chain != CQL_UNSURE || completion->object.is_null) {
        return FGW_OK;
    }
    /* a version that was replaced since stands among the versions, deleted or not */
    enum fgw_err err =
        cql_version_read(cql, arena, &place, &completion->object.version_id, true, &version, error);
    if (err == FGW_OK && version.state != CQL_ABSENT) {
        *out_stand = STAND_APPLIED;
    }
    return err;
}

/* *out_stand APPLIED, or OUTSTANDING: look again. */
static enum fgw_err swap_head(struct cql *cql, struct fgw_arena *arena,
                              const struct fgw_bucket *bucket, const struct cql_upload_row *row,
                              const struct cql_row *head, enum stand *out_stand,
                              struct fgw_error *error)
{
    struct cql_place place = place_of(row);
    struct cql_row next = {
        .state = CQL_LIVE, .object = row->completion.object, .more = row->completion.more};
    struct fgw_bucket as_decided = *bucket;
    bool applied = false;
    /* the versioning that counted when completing was decided */
    as_decided.versioning = next.object.is_null ? FGW_VERSIONING_SUSPENDED : FGW_VERSIONING_ENABLED;
    if (cql_head_must_keep(&as_decided, head)) {
        bool again = false;
        enum fgw_err err = cql_version_keep(cql, arena, &place, head, &again, error);
        if (err != FGW_OK || again) {
            return err;
        }
    }
    struct cql_swap swap = {.place = &place, .seen = head, .next = &next};
    enum fgw_err err = cql_row_swap(cql, arena, &swap, &applied, error);
    if (err == FGW_OK && applied) {
        *out_stand = STAND_APPLIED;
        cql_head_replaced(cql, arena, &place, head, &next);
    }
    return err;
}

/* -- the upload's row -------------------------------------------------------------------------------- */

static enum fgw_err read_again(struct cql *cql, struct fgw_arena *arena, struct cql_upload_row *row,
                               struct fgw_error *error)
{
    struct fgw_id id = row->upload.id;
    return cql_upload_read(cql, arena, &id, true, row, error);
}

static enum fgw_err to_completed(struct cql *cql, struct fgw_arena *arena,
                                 const struct cql_completion *completion,
                                 struct cql_upload_row *row, struct fgw_error *error)
{
    for (unsigned attempt = 0; row->state == CQL_UPLOAD_COMPLETING || row->state == CQL_UPLOAD_OPEN;
         attempt++) {
        if (attempt == CQL_ATTEMPTS_MAX) {
            return fgw_error_set(error, FGW_ERR_UNKNOWN_OUTCOME, NULL);
        }
        if (attempt > 0) {
            cql_back_off(attempt);
        }
        struct cql_upload_row next = *row;
        bool applied = false;
        next.state = CQL_UPLOAD_COMPLETED;
        next.upload.completed = true;
        next.upload.answer = (struct fgw_written){.version_id = completion->object.version_id,
                                                  .is_null = completion->object.is_null,
                                                  .mtime_ms = completion->object.mtime_ms};
        next.upload.answer_etag = completion->object.etag;
        next.upload.answer_checksum = completion->object.checksum;
        enum fgw_err err = cql_upload_swap(cql, arena, row, &next, &applied, error);
        if (err == FGW_OK && applied) {
            *row = next;
            /* parts that were not used, and the look-up: what stays the sweeper and lists skip */
            enum fgw_err ignored =
                cql_upload_tidy(cql, arena, &row->upload, &completion->object, NULL);
            (void)ignored;
            return FGW_OK;
        }
        err = err == FGW_OK ? read_again(cql, arena, row, error) : err;
        if (err != FGW_OK) {
            return fgw_error_set(error, FGW_ERR_UNKNOWN_OUTCOME, NULL);
        }
    }
    return FGW_OK;
}

/* completing -> open or aborting. */
static enum fgw_err leave(struct cql *cql, struct fgw_arena *arena, struct cql_upload_row *row,
                          enum cql_upload_state state, struct fgw_error *error)
{
    struct cql_upload_row next = *row;
    bool applied = false;
    next.state = state;
    enum fgw_err err = cql_upload_swap(cql, arena, row, &next, &applied, error);
    if (err == FGW_OK && applied && state == CQL_UPLOAD_ABORTING) {
        err = cql_finish_abort(cql, arena, &next, error);
    }
    return err == FGW_OK ? read_again(cql, arena, row, error) : err;
}

static enum fgw_err attempt_finish(struct cql *cql, struct fgw_arena *arena,
                                   struct cql_upload_row *row, struct fgw_error *error)
{
    struct fgw_bucket bucket = {.id = row->upload.bucket_id, .name = row->upload.bucket_name};
    struct cql_place place = place_of(row);
    struct fgw_bucket now;
    struct cql_row head = {0};
    enum stand stand = STAND_OUTSTANDING;
    uint64_t read_ms = cql_now_ms();
    enum fgw_err err = cql_read_both(cql, arena, &bucket, &place, &now, &head, error);
    if (err == FGW_ERR_NO_SUCH_BUCKET) {
        return leave(cql, arena, row, CQL_UPLOAD_ABORTING, error);
    }
    if (err == FGW_OK) {
        err = look(cql, arena, row, &head, &stand, error);
    }
    if (err == FGW_OK && stand == STAND_OUTSTANDING) {
        err = swap_head(cql, arena, &now, row, &head, &stand, error);
    }
    if (err == FGW_OK && stand == STAND_APPLIED) {
        err = cql_bucket_still_there(cql, arena, &bucket, read_ms, error);
        if (err == FGW_ERR_NO_SUCH_BUCKET) {
            return leave(cql, arena, row, CQL_UPLOAD_ABORTING, error);
        }
    }
    if (err != FGW_OK || stand == STAND_OUTSTANDING) {
        return err;
    }
    if (stand == STAND_LOST) {
        return leave(cql, arena, row, CQL_UPLOAD_OPEN, error);
    }
    struct cql_completion completion = row->completion;
    return to_completed(cql, arena, &completion, row, error);
}

enum fgw_err cql_finish_complete(struct cql *cql, struct fgw_arena *arena,
                                 struct cql_upload_row *row, struct fgw_error *error)
{
    for (unsigned attempt = 0; row->state == CQL_UPLOAD_COMPLETING; attempt++) {
        if (attempt == CQL_ATTEMPTS_MAX) {
            return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
        }
        if (attempt > 0) {
            cql_back_off(attempt);
        }
        enum fgw_err err = attempt_finish(cql, arena, row, error);
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

/* A row must stay below what one statement may carry (2 MiB, 10,000 parts): where blocks were when
 * they were written is only a hint, of which the first matters most. */
static void drop_hints(struct fgw_arena *arena, struct fgw_object *object)
{
    enum { KEEP = 100 };
    if (object->extent_count <= KEEP) {
        return;
    }
    struct fgw_extent *extents = fgw_arena_alloc(arena, object->extent_count * sizeof *extents);
    for (size_t i = 0; i < object->extent_count; i++) {
        extents[i] = object->extents[i];
        if (i > 0) {
            memset(&extents[i].first, 0, sizeof extents[i].first);
        }
    }
    object->extents = extents;
}

/* -- the call ------------------------------------------------------------------------------------------ */

/* open -> completing. The row in *row is the new one when *out_applied. */
static enum fgw_err decide(struct cql *cql, struct fgw_arena *arena,
                           const struct fgw_complete *complete, struct cql_upload_row *row,
                           bool *out_applied, struct fgw_error *error)
{
    struct cql_place place = {&complete->bucket->id, complete->object.key};
    struct fgw_bucket now;
    struct cql_row head = {0};
    struct cql_row next;
    enum fgw_err err = cql_read_both(cql, arena, complete->bucket, &place, &now, &head, error);
    if (err == FGW_OK && fgw_conditions_any(&complete->conditions)) {
        bool exists = cql_row_shown(&head) && !head.object.delete_marker;
        err = fgw_conditions_check(&complete->conditions, exists ? &head.object : NULL, error);
    }
    if (err != FGW_OK) {
        return err;
    }
    cql_head_next(&now, &head, &complete->object, &next);
    struct cql_upload_row completing = *row;
    completing.state = CQL_UPLOAD_COMPLETING;
    completing.completion = (struct cql_completion){.object = next.object, .more = next.more};
    completing.completion.object.upload_id = complete->upload_id;
    drop_hints(arena, &completing.completion.object);
    fgw_id_random(&completing.completion.object.rev);
    if (head.state != CQL_ABSENT) {
        completing.completion.seen_rev = head.object.rev;
    }
    err = cql_upload_swap(cql, arena, row, &completing, out_applied, error);
    if (err == FGW_OK && *out_applied) {
        *row = completing;
    }
    return err;
}

static enum fgw_err attempt_complete(struct cql *cql, struct fgw_arena *arena,
                                     const struct fgw_complete *complete,
                                     struct cql_upload_row *row, struct fgw_error *error)
{
    bool applied = false;
    enum fgw_err err = cql_upload_read(cql, arena, &complete->upload_id, false, row, error);
    if (err != FGW_OK) {
        return err;
    }
    if (row->state == CQL_UPLOAD_OPEN) {
        err = decide(cql, arena, complete, row, &applied, error);
    }
    if (err == FGW_OK && row->state == CQL_UPLOAD_COMPLETING) {
        err = cql_finish_complete(cql, arena, row, error);
        /* whoever meets the row finishes it, which nobody can be told of now */
        bool left = err == FGW_ERR_UNAVAILABLE || err == FGW_ERR_SLOW_DOWN;
        err = left ? fgw_error_set(error, FGW_ERR_UNKNOWN_OUTCOME, NULL) : err;
    }
    return err;
}

enum fgw_err cql_upload_complete(struct fgw_meta *meta, struct fgw_arena *arena,
                                 const struct fgw_complete *complete,
                                 struct fgw_written *out_written, struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    enum fgw_err err = FGW_ERR_SLOW_DOWN;
    for (unsigned attempt = 0; attempt < CQL_ATTEMPTS_MAX; attempt++) {
        struct cql_upload_row row = {0};
        err = attempt_complete(cql, arena, complete, &row, error);
        if (err != FGW_OK) {
            break;
        }
        /* the ETag stands for the list of parts: another list is not answered with this object */
        if (row.state == CQL_UPLOAD_COMPLETED &&
            fgw_bytes_eq(row.upload.answer_etag, complete->object.etag)) {
            *out_written = row.upload.answer;
            return FGW_OK;
        }
        if (row.state != CQL_UPLOAD_OPEN && row.state != CQL_UPLOAD_COMPLETING) {
            err = FGW_ERR_NO_SUCH_UPLOAD;
            break;
        }
        err = FGW_ERR_SLOW_DOWN;
        cql_back_off(attempt);
    }
    return cql_fail(error, err, "completing upload of", complete->object.key);
}
