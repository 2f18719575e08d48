/* timed.c: the operations that write, each with one deadline over all its statements (options.write_ms).
 * When it is over nothing is sent any more: what had not begun is UNAVAILABLE, what was on its way
 * UNKNOWN_OUTCOME, and whoever meets the rows next carries on what was left half done.
 */
#include "meta/cql/cql_internal.h"

/* To be handed to leave(): the deadline of whatever this operation is part of. */
static uint64_t enter(struct fgw_meta *meta)
{
    uint64_t before_ms = fgw_fiber_deadline();
    uint64_t write_ms = cql_of(meta)->options.write_ms;
    uint64_t limit_ms = cql_now_ms() + write_ms;
    if (write_ms != 0 && (before_ms == 0 || limit_ms < before_ms)) {
        fgw_fiber_set_deadline(limit_ms);
    }
    return before_ms;
}

static enum fgw_err leave(uint64_t before_ms, enum fgw_err err)
{
    fgw_fiber_set_deadline(before_ms);
    return err;
}

uint64_t cql_time_stop(void)
{
    uint64_t limit_ms = fgw_fiber_deadline();
    uint64_t now_ms = cql_now_ms();
    fgw_fiber_set_deadline(0);
    return limit_ms == 0 ? UINT64_MAX : limit_ms > now_ms ? limit_ms - now_ms : 0;
}

void cql_time_go(uint64_t left_ms)
{
    if (left_ms != UINT64_MAX) {
        fgw_fiber_set_deadline(cql_now_ms() + left_ms);
    }
}

enum fgw_err cql_timed_bucket_create(struct fgw_meta *meta, struct fgw_arena *arena,
                                     const struct fgw_bucket *wanted, struct fgw_bucket *out_bucket,
                                     struct fgw_error *error)
{
    uint64_t before_ms = enter(meta);
    return leave(before_ms, cql_bucket_create(meta, arena, wanted, out_bucket, error));
}

enum fgw_err cql_timed_bucket_update(struct fgw_meta *meta, struct fgw_arena *arena,
                                     const struct fgw_bucket *bucket, struct fgw_error *error)
{
    uint64_t before_ms = enter(meta);
    return leave(before_ms, cql_bucket_update(meta, arena, bucket, error));
}

enum fgw_err cql_timed_bucket_delete(struct fgw_meta *meta, struct fgw_arena *arena,
                                     const struct fgw_bucket *bucket, struct fgw_error *error)
{
    uint64_t before_ms = enter(meta);
    return leave(before_ms, cql_bucket_delete(meta, arena, bucket, error));
}

enum fgw_err cql_timed_object_put(struct fgw_meta *meta, struct fgw_arena *arena,
                                  struct fgw_put *put, struct fgw_written *out_written,
                                  struct fgw_error *error)
{
    uint64_t before_ms = enter(meta);
    return leave(before_ms, cql_object_put(meta, arena, put, out_written, error));
}

enum fgw_err cql_timed_object_delete(struct fgw_meta *meta, struct fgw_arena *arena,
                                     const struct fgw_bucket *bucket, struct fgw_bytes key,
                                     struct fgw_version version,
                                     const struct fgw_conditions *conditions,
                                     struct fgw_written *out_written, struct fgw_error *error)
{
    uint64_t before_ms = enter(meta);
    enum fgw_err err =
        cql_object_delete(meta, arena, bucket, key, version, conditions, out_written, error);
    return leave(before_ms, err);
}

enum fgw_err cql_timed_object_update(struct fgw_meta *meta, struct fgw_arena *arena,
                                     const struct fgw_bucket *bucket,
                                     const struct fgw_object *object, struct fgw_error *error)
{
    uint64_t before_ms = enter(meta);
    return leave(before_ms, cql_object_update(meta, arena, bucket, object, error));
}

enum fgw_err cql_timed_upload_create(struct fgw_meta *meta, struct fgw_arena *arena,
                                     const struct fgw_bucket *bucket,
                                     const struct fgw_upload *upload, struct fgw_id *out_id,
                                     struct fgw_error *error)
{
    uint64_t before_ms = enter(meta);
    return leave(before_ms, cql_upload_create(meta, arena, bucket, upload, out_id, error));
}

enum fgw_err cql_timed_upload_abort(struct fgw_meta *meta, struct fgw_arena *arena,
                                    const struct fgw_bucket *bucket,
                                    const struct fgw_upload *upload, struct fgw_error *error)
{
    uint64_t before_ms = enter(meta);
    return leave(before_ms, cql_upload_abort(meta, arena, bucket, upload, error));
}

enum fgw_err cql_timed_part_put(struct fgw_meta *meta, struct fgw_arena *arena,
                                const struct fgw_upload *upload, const struct fgw_part *part,
                                struct fgw_blob_staged *staged, struct fgw_error *error)
{
    uint64_t before_ms = enter(meta);
    return leave(before_ms, cql_part_put(meta, arena, upload, part, staged, error));
}

enum fgw_err cql_timed_upload_complete(struct fgw_meta *meta, struct fgw_arena *arena,
                                       const struct fgw_complete *complete,
                                       struct fgw_written *out_written, struct fgw_error *error)
{
    uint64_t before_ms = enter(meta);
    return leave(before_ms, cql_upload_complete(meta, arena, complete, out_written, error));
}
