/* head.c: making something the newest version of a key: PUT, delete markers and deletions without a
 * version, as one conditional write over the head that was seen (design/metadata.md section 3).
 * Complete uses the same steps with a rev that it has written down before. */
#include "base/clock.h"
#include "meta/cql/cql_internal.h"

/* -- before the write --------------------------------------------------------------------------- */

static enum fgw_err read_once(struct cql *cql, struct fgw_arena *arena,
                              const struct fgw_bucket *bucket, const struct cql_place *place,
                              struct cql_bucket_row *out_bucket, struct cql_row *out_head,
                              struct fgw_error *error)
{
    struct fgw_cql_call *bucket_call = cql_bucket_start(cql, bucket->name);
    struct fgw_cql_call *head_call = cql_head_start(cql, place, false);
    enum fgw_err err = cql_bucket_wait(cql, arena, bucket_call, bucket->name, out_bucket, error);
    enum fgw_err head_err = cql_head_wait(cql, arena, head_call, place->key, out_head, error);
    return err != FGW_OK ? err : head_err;
}

enum fgw_err cql_read_both(struct cql *cql, struct fgw_arena *arena,
                           const struct fgw_bucket *bucket, const struct cql_place *place,
                           struct fgw_bucket *out_bucket, struct cql_row *out_head,
                           struct fgw_error *error)
{
    for (unsigned attempt = 0; attempt < CQL_ATTEMPTS_MAX; attempt++) {
        struct cql_bucket_row row = {0};
        struct cql_row head = {0};
        enum fgw_err err = read_once(cql, arena, bucket, place, &row, &head, error);
        if (err != FGW_OK) {
            return err;
        }
        if (!row.present || !fgw_id_eq(&row.bucket.id, &bucket->id)) {
            return fgw_error_set(error, FGW_ERR_NO_SUCH_BUCKET, NULL);
        }
        if (row.state == CQL_BUCKET_DELETING) {
            err = cql_bucket_settle(cql, arena, bucket->name, &row, error);
        } else if (head.state == CQL_DELETING) {
            err = cql_finish_delete(cql, arena, place, &head, error);
        } else {
            *out_bucket = row.bucket;
            *out_head = head;
            return FGW_OK;
        }
        if (err != FGW_OK) {
            return err;
        }
    }
    return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
}

static bool head_exists(const struct cql_row *head)
{
    return cql_row_shown(head) && !head->object.delete_marker;
}

/* Bytes before names: what the store has not confirmed on disk must not be named. */
static enum fgw_err make_durable(struct cql_put *put)
{
    if (put->durable) {
        return FGW_OK;
    }
    struct fgw_extent *extents =
        fgw_arena_alloc(put->arena, (put->staged_count + 1) * sizeof *extents);
    enum fgw_err err = FGW_OK;
    for (size_t i = 0; err == FGW_OK && i < put->staged_count; i++) {
        err = fgw_blob_make_durable(&put->staged[i]);
        extents[i] = put->staged[i].extent;
    }
    if (err != FGW_OK) {
        return err;
    }
    if (put->staged_count > 0) {
        put->object.extents = extents;
        put->object.extent_count = put->staged_count;
    }
    put->durable = true;
    return FGW_OK;
}

bool cql_head_must_keep(const struct fgw_bucket *bucket, const struct cql_row *before)
{
    return before->state == CQL_LIVE &&
           (bucket->versioning == FGW_VERSIONING_ENABLED || !before->object.is_null);
}

void cql_head_next(const struct fgw_bucket *bucket, const struct cql_row *before,
                   const struct fgw_object *object, struct cql_row *out_next)
{
    struct cql_row next = {.state = CQL_LIVE, .object = *object};
    bool versioned = bucket->versioning == FGW_VERSIONING_ENABLED;
    bool known = before->state != CQL_ABSENT;
    fgw_id_version(fgw_clock_wall_ms(), known ? &before->object.version_id : NULL,
                   &next.object.version_id);
    next.object.mtime_ms = fgw_id_version_ms(&next.object.version_id);
    next.object.is_null = !versioned;
    memset(&next.object.rev, 0, sizeof next.object.rev);
    if (versioned && before->state == CQL_LIVE) {
        next.more.null_version =
            before->object.is_null ? before->object.version_id : before->more.null_version;
    }
    *out_next = next;
}

/* -- after the write ---------------------------------------------------------------------------- */

void cql_release(struct cql *cql, const struct cql_place *place, const struct fgw_object *object)
{
    struct fgw_storage_owner owner = {.key = place->key};
    if (object->extent_count == 0 || cql->options.blobs == NULL) {
        return;
    }
    memcpy(owner.bucket_id, place->bucket_id->bytes, sizeof owner.bucket_id);
    memcpy(owner.owner_id, object->owner_id.bytes, sizeof owner.owner_id);
    fgw_blob_release(cql->options.blobs, &owner, object->extents, object->extent_count);
}

void cql_head_replaced(struct cql *cql, struct fgw_arena *arena, const struct cql_place *place,
                       const struct cql_row *before, const struct cql_row *after)
{
    if (before->state != CQL_LIVE) {
        return;
    }
    const struct fgw_id *null_version = &before->more.null_version;
    if (before->object.is_null && after->object.is_null) {
        cql_release(cql, place, &before->object);
    } else if (after->object.is_null && !fgw_id_is_zero(null_version)) {
        /* the head no longer knows that row, so it is invisible already: what is left is room */
        enum fgw_err ignored = cql_version_drop(cql, arena, place, null_version, NULL);
        (void)ignored;
    }
}

enum fgw_err cql_bucket_still_there(struct cql *cql, struct fgw_arena *arena,
                                    const struct fgw_bucket *bucket, uint64_t read_ms,
                                    struct fgw_error *error)
{
    if (cql_now_ms() - read_ms < CQL_BUCKET_GRACE_MS) {
        return FGW_OK;
    }
    struct cql_bucket_row row = {0};
    enum fgw_err err = cql_bucket_read(cql, arena, bucket->name, &row, error);
    if (err == FGW_OK && row.present && row.state == CQL_BUCKET_DELETING) {
        err = cql_bucket_settle(cql, arena, bucket->name, &row, error);
    }
    if (err != FGW_OK) {
        /* the name is written, and whether its bucket is there nobody can say now */
        return fgw_error_set(error, FGW_ERR_UNKNOWN_OUTCOME, NULL);
    }
    bool there = row.present && fgw_id_eq(&row.bucket.id, &bucket->id);
    return there ? FGW_OK : fgw_error_set(error, FGW_ERR_NO_SUCH_BUCKET, NULL);
}

/* The bucket went while we wrote: nobody can see the row, and its bytes go back. */
static void undo(struct cql *cql, struct cql_put *put, const struct cql_row *written)
{
    struct cql_row gone;
    bool applied = false;
    cql_row_bury(written, &gone);
    struct cql_swap swap = {.place = &put->place, .seen = written, .next = &gone};
    enum fgw_err ignored = cql_row_swap(cql, put->arena, &swap, &applied, NULL);
    (void)ignored;
}

/* -- one attempt -------------------------------------------------------------------------------- */

static enum fgw_err check_conditions(struct cql_put *put, struct fgw_error *error)
{
    if (put->conditions == NULL || !fgw_conditions_any(put->conditions)) {
        return FGW_OK;
    }
    enum fgw_err err = fgw_conditions_check(
        put->conditions, head_exists(&put->head) ? &put->head.object : NULL, error);
    if (err == FGW_ERR_NO_SUCH_KEY && put->missing_is_ok) {
        put->done = true;
        return FGW_OK;
    }
    return err;
}

static void plan_row(struct cql_put *put, struct cql_row *out_next)
{
    if (put->removes && put->now.versioning == FGW_VERSIONING_NEVER) {
        cql_row_bury(&put->head, out_next);
        return;
    }
    cql_head_next(&put->now, &put->head, &put->object, out_next);
}

static enum fgw_err swap_head(struct cql *cql, struct cql_put *put, struct fgw_error *error)
{
    struct cql_row next;
    bool applied = false;
    plan_row(put, &next);
    struct cql_swap swap = {.place = &put->place, .seen = &put->head, .next = &next};
    enum fgw_err err = cql_row_swap(cql, put->arena, &swap, &applied, error);
    if (err != FGW_OK || !applied) {
        return err;
    }
    if (next.state == CQL_GONE) {
        /* that the bucket went too is no reason to take a deletion back */
        cql_release(cql, &put->place, &put->head.object);
        put->done = true;
        return FGW_OK;
    }
    err = cql_bucket_still_there(cql, put->arena, put->bucket, put->bucket_read_ms, error);
    if (err == FGW_ERR_NO_SUCH_BUCKET) {
        undo(cql, put, &next);
    }
    if (err != FGW_OK) {
        return err;
    }
    put->done = true;
    cql_head_replaced(cql, put->arena, &put->place, &put->head, &next);
    put->result = (struct fgw_written){.version_id = next.object.version_id,
                                       .is_null = next.object.is_null,
                                       .mtime_ms = next.object.mtime_ms,
                                       .delete_marker = next.object.delete_marker};
    return FGW_OK;
}

/* Sets put->done, or leaves it: somebody else was faster. */
static enum fgw_err attempt_put(struct cql *cql, struct cql_put *put, struct fgw_error *error)
{
    put->bucket_read_ms = cql_now_ms();
    enum fgw_err err =
        cql_read_both(cql, put->arena, put->bucket, &put->place, &put->now, &put->head, error);
    if (err == FGW_OK) {
        err = check_conditions(put, error);
    }
    if (err != FGW_OK || put->done) {
        return err;
    }
    if (put->removes && put->now.versioning == FGW_VERSIONING_NEVER &&
        put->head.state != CQL_LIVE) {
        put->done = true;
        return FGW_OK;
    }
    err = make_durable(put);
    if (err == FGW_OK && cql_head_must_keep(&put->now, &put->head)) {
        bool again = false;
        err = cql_version_keep(cql, put->arena, &put->place, &put->head, &again, error);
        if (err != FGW_OK || again) {
            return err;
        }
    }
    return err == FGW_OK ? swap_head(cql, put, error) : err;
}

enum fgw_err cql_head_put(struct cql *cql, struct cql_put *put, struct fgw_error *error)
{
    for (unsigned attempt = 0; attempt < CQL_ATTEMPTS_MAX; attempt++) {
        if (attempt > 0) {
            cql_back_off(attempt);
        }
        enum fgw_err err = attempt_put(cql, put, error);
        if (err != FGW_OK || put->done) {
            return err;
        }
    }
    return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
}
