/* bucket_delete.c: the deletion of a bucket (design/metadata.md section 5):
 *
 *   open -> deleting(rev d)   by whoever deletes
 *   250 ms                    a PUT that read the bucket as open either has its answer by then, or
 *                             reads the bucket again before it acknowledges
 *   a live row in any shard   deleting(d) -> open, BUCKET_NOT_EMPTY
 *   none                      the row is removed IF rev = d: a deleter that was paused must not act
 *                             on what it saw before somebody took over
 *
 * A row that stays deleting with one rev for 10 s is taken over: a new rev and the whole check. Only
 * the observer's own clock counts.
 */
#include "meta/cql/cql_internal.h"

enum { SETTLE_POLL_MS = 50, SETTLE_MAX_MS = 25000 };

/* -- empty? --------------------------------------------------------------------------------------- */

/* A head that is being deleted is brought to its end before it counts. */
static enum fgw_err settled_state(struct cql *cql, const struct fgw_id *bucket_id,
                                  const struct cql_entry *entry, enum cql_state *out_state,
                                  struct fgw_error *error)
{
    struct fgw_arena arena;
    struct cql_place place = {bucket_id, entry->key};
    struct cql_row head = {.state = entry->state};
    enum fgw_err err = FGW_OK;
    fgw_arena_init(&arena, 0);
    while (err == FGW_OK && head.state == CQL_DELETING) {
        err = cql_head_read(cql, &arena, &place, true, &head, error);
        if (err == FGW_OK && head.state == CQL_DELETING) {
            err = cql_finish_delete(cql, &arena, &place, &head, error);
        }
    }
    fgw_arena_deinit(&arena);
    *out_state = head.state;
    return err;
}

static enum fgw_err is_empty(struct cql *cql, const struct fgw_id *bucket_id, bool *out_empty,
                             struct fgw_error *error)
{
    struct cql_scan scan = {
        .cql = cql, .bucket_id = *bucket_id, .all = CQL_HEAD_SCAN, .bounded = CQL_HEAD_SCAN_TO};
    struct cql_entry entry;
    enum cql_state state = CQL_GONE;
    enum fgw_err err = FGW_OK;
    cql_scan_init(&scan, fgw_bytes(NULL, 0), fgw_bytes(NULL, 0), 1000);
    while (err == FGW_OK && state != CQL_LIVE) {
        err = cql_scan_next(&scan, &entry, error);
        if (err == FGW_OK) {
            err = settled_state(cql, bucket_id, &entry, &state, error);
        }
    }
    cql_scan_deinit(&scan);
    if (err == FGW_OK || err == FGW_ERR_NOT_FOUND) {
        *out_empty = err == FGW_ERR_NOT_FOUND;
        return FGW_OK;
    }
    return err;
}

/* -- the end ---------------------------------------------------------------------------------------- */

static enum fgw_err reopen(struct cql *cql, const struct fgw_bucket *bucket,
                           struct fgw_error *error)
{
    struct fgw_bucket next = *bucket;
    enum cql_outcome outcome = CQL_UNSURE;
    fgw_id_random(&next.rev);
    enum fgw_err err = cql_bucket_swap(cql, bucket, CQL_BUCKET_OPEN, &next, &outcome, error);
    if (err != FGW_OK) {
        return err;
    }
    /* unsure: if it is not applied the row stays deleting and is taken over */
    return outcome == CQL_APPLIED || outcome == CQL_UNSURE ? FGW_OK : FGW_ERR_CONFLICT;
}

static enum fgw_err remove_row(struct cql *cql, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, struct fgw_error *error)
{
    struct fgw_cql_value values[] = {fgw_cql_text(bucket->name), cql_id_blob(&bucket->rev)};
    struct cql_lwt lwt = {.id = CQL_BUCKET_DELETE,
                          .values = values,
                          .count = 2,
                          .partition = fgw_get_u64be(bucket->id.bytes)};
    enum cql_outcome outcome = CQL_UNSURE;
    struct cql_bucket_row row = {0};
    enum fgw_err err = cql_lwt(cql, &lwt, &outcome, error);
    if (err != FGW_OK || outcome == CQL_APPLIED) {
        return err;
    }
    err = cql_bucket_read(cql, arena, bucket->name, &row, error);
    if (err != FGW_OK) {
        return FGW_ERR_UNKNOWN_OUTCOME;
    }
    if (!row.present || !fgw_id_eq(&row.bucket.id, &bucket->id)) {
        return FGW_OK;
    }
    return fgw_id_eq(&row.bucket.rev, &bucket->rev) ? FGW_ERR_UNKNOWN_OUTCOME : FGW_ERR_CONFLICT;
}

static void abort_uploads(struct cql *cql, const struct fgw_bucket *bucket)
{
    struct fgw_arena arena;
    struct fgw_upload_list list = {.truncated = true};
    enum fgw_err err = FGW_OK;
    fgw_arena_init(&arena, 0);
    while (err == FGW_OK && list.truncated) {
        struct fgw_upload_list_query query = {.max = 1000};
        err = cql_upload_list(&cql->base, &arena, bucket, &query, &list, NULL);
        for (size_t i = 0; err == FGW_OK && i < list.count; i++) {
            err = cql_upload_abort(&cql->base, &arena, bucket, &list.entries[i].upload, NULL);
            err = err == FGW_ERR_NO_SUCH_UPLOAD ? FGW_OK : err;
        }
        fgw_arena_reset(&arena);
    }
    fgw_arena_deinit(&arena);
}

static void tidy_up(struct cql *cql, const struct fgw_bucket *bucket)
{
    struct fgw_cql_value values[] = {fgw_cql_text(bucket->owner_id), fgw_cql_text(bucket->name),
                                     cql_id_uuid(&bucket->id)};
    enum fgw_err ignored = cql_write(cql, CQL_OWNER_DELETE, values, 3, NULL);
    (void)ignored; /* readers check the look-up against the truth */
    abort_uploads(cql, bucket);
}

enum fgw_err cql_bucket_finish_delete(struct cql *cql, struct fgw_arena *arena,
                                      const struct fgw_bucket *bucket, struct fgw_error *error)
{
    bool empty = false;
    enum fgw_err err = is_empty(cql, &bucket->id, &empty, error);
    if (err != FGW_OK || !empty) {
        enum fgw_err reopened = reopen(cql, bucket, err == FGW_OK ? error : NULL);
        err = err == FGW_OK ? reopened : err;
        return err == FGW_OK ? FGW_ERR_BUCKET_NOT_EMPTY : err;
    }
    err = remove_row(cql, arena, bucket, error);
    if (err == FGW_OK) {
        tidy_up(cql, bucket);
    }
    return err;
}

/* -- open -> deleting -------------------------------------------------------------------------------- */

/* `seen` gets a new rev in state deleting. *out_mine false: somebody else changed the row. */
static enum fgw_err claim(struct cql *cql, struct fgw_arena *arena, const struct fgw_bucket *seen,
                          struct fgw_bucket *out_claimed, bool *out_mine, struct fgw_error *error)
{
    struct fgw_bucket next = *seen;
    struct cql_bucket_row row = {0};
    enum cql_outcome outcome = CQL_UNSURE;
    fgw_id_random(&next.rev);
    enum fgw_err err = cql_bucket_swap(cql, seen, CQL_BUCKET_DELETING, &next, &outcome, error);
    if (err == FGW_OK && cql_must_look(outcome)) {
        err = cql_bucket_read(cql, arena, seen->name, &row, error);
        outcome = err == FGW_OK && row.present && fgw_id_eq(&row.bucket.rev, &next.rev)
                      ? CQL_APPLIED
                      : CQL_REFUSED;
    }
    if (err == FGW_OK) {
        *out_mine = outcome == CQL_APPLIED;
        *out_claimed = next;
    }
    return err;
}

static enum fgw_err take_over(struct cql *cql, struct fgw_arena *arena,
                              const struct fgw_bucket *seen, struct fgw_error *error)
{
    struct fgw_bucket claimed;
    bool mine = false;
    enum fgw_err err = claim(cql, arena, seen, &claimed, &mine, error);
    if (err == FGW_OK && mine) {
        err = cql_bucket_finish_delete(cql, arena, &claimed, error);
    }
    return err == FGW_ERR_BUCKET_NOT_EMPTY || err == FGW_ERR_CONFLICT ? FGW_OK : err;
}

enum fgw_err cql_bucket_settle(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes name,
                               struct cql_bucket_row *row, struct fgw_error *error)
{
    uint64_t start_ms = cql_now_ms();
    uint64_t since_ms = start_ms;
    struct fgw_id rev = row->bucket.rev;
    while (row->present && row->state == CQL_BUCKET_DELETING) {
        uint64_t now_ms = cql_now_ms();
        enum fgw_err err = FGW_OK;
        if (now_ms - start_ms > SETTLE_MAX_MS) {
            return fgw_error_set(error, FGW_ERR_UNAVAILABLE, "bucket %.*s is being deleted",
                                 FGW_FMT(name));
        }
        if (!fgw_id_eq(&row->bucket.rev, &rev)) {
            rev = row->bucket.rev;
            since_ms = now_ms;
        }
        if (now_ms - since_ms > CQL_BUCKET_TAKEOVER_MS) {
            err = take_over(cql, arena, &row->bucket, error);
        } else {
            fgw_fiber_sleep_ms(SETTLE_POLL_MS);
        }
        if (err == FGW_OK) {
            err = cql_bucket_read(cql, arena, name, row, error);
        }
        if (err != FGW_OK) {
            return err;
        }
    }
    return FGW_OK;
}

static enum fgw_err attempt_delete(struct cql *cql, struct fgw_arena *arena,
                                   const struct fgw_bucket *bucket, bool *out_done,
                                   struct fgw_error *error)
{
    struct cql_bucket_row row = {0};
    struct fgw_bucket claimed;
    bool mine = false;
    enum fgw_err err = cql_bucket_read(cql, arena, bucket->name, &row, error);
    if (err == FGW_OK) {
        err = cql_bucket_settle(cql, arena, bucket->name, &row, error);
    }
    if (err != FGW_OK) {
        return err;
    }
    if (!row.present || !fgw_id_eq(&row.bucket.id, &bucket->id)) {
        return fgw_error_set(error, FGW_ERR_NO_SUCH_BUCKET, NULL);
    }
    err = claim(cql, arena, &row.bucket, &claimed, &mine, error);
    if (err != FGW_OK || !mine) {
        return err;
    }
    fgw_fiber_sleep_ms(CQL_BUCKET_GRACE_MS);
    err = cql_bucket_finish_delete(cql, arena, &claimed, error);
    *out_done = err != FGW_ERR_CONFLICT;
    return *out_done ? err : FGW_OK;
}

enum fgw_err cql_bucket_delete(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    bool done = false;
    enum fgw_err err = FGW_OK;
    for (unsigned attempt = 0; err == FGW_OK && !done; attempt++) {
        if (attempt == CQL_ATTEMPTS_MAX) {
            err = fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
            break;
        }
        err = attempt_delete(cql, arena, bucket, &done, error);
    }
    cql_changed(cql);
    return cql_fail(error, err, "deleting bucket", bucket->name);
}
