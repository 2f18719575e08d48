/* bucket.c: bucket rows: reading, snapshots, creating, changing. The deletion protocol is in
 * bucket_delete.c, lists in bucket_list.c (design/metadata.md section 5). */
#include "base/clock.h"
#include "meta/cql/cql_internal.h"

/* -- rows --------------------------------------------------------------------------------------- */

enum fgw_err cql_bucket_row_decode(struct fgw_arena *arena, struct fgw_bytes name,
                                   const struct fgw_cql_result *result,
                                   struct cql_bucket_row *out_row)
{
    struct cql_bucket_row row = {.present = true};
    struct fgw_bytes data;
    struct fgw_id rev;
    struct fgw_id id;
    int32_t state = 0;
    enum fgw_err err = fgw_cql_get_uuid(result, "bucket_id", id.bytes);
    if (err == FGW_OK) {
        err = cql_get_id(result, "rev", &rev);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_int(result, "state", &state);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_blob(result, "data", &data);
    }
    if (err != FGW_OK) {
        return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
    }
    if (state != CQL_BUCKET_OPEN && state != CQL_BUCKET_DELETING) {
        return FGW_ERR_NEWER_VERSION;
    }
    row.state = (enum cql_bucket_state)state;
    err = fgw_row_decode_bucket(arena, fgw_arena_copy(arena, name), fgw_arena_copy(arena, data),
                                &row.bucket);
    if (err == FGW_OK) {
        row.bucket.id = id;
        row.bucket.rev = rev;
        *out_row = row;
    }
    return err;
}

struct fgw_cql_call *cql_bucket_start(struct cql *cql, struct fgw_bytes name)
{
    struct fgw_cql_value values[] = {fgw_cql_text(name)};
    return cql_start(cql, CQL_BUCKET_GET, values, 1, NULL);
}

enum fgw_err cql_bucket_wait(struct cql *cql, struct fgw_arena *arena, struct fgw_cql_call *call,
                             struct fgw_bytes name, struct cql_bucket_row *out_row,
                             struct fgw_error *error)
{
    struct fgw_cql_result *result = NULL;
    enum fgw_err err = cql_wait(cql, call, &result, error);
    if (err != FGW_OK) {
        return err;
    }
    if (fgw_cql_result_next(result)) {
        err = cql_bucket_row_decode(arena, name, result, out_row);
    } else {
        *out_row = (struct cql_bucket_row){0};
    }
    fgw_cql_result_free(result);
    return err;
}

enum fgw_err cql_bucket_read(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes name,
                             struct cql_bucket_row *out_row, struct fgw_error *error)
{
    return cql_bucket_wait(cql, arena, cql_bucket_start(cql, name), name, out_row, error);
}

enum fgw_err cql_bucket_swap(struct cql *cql, const struct fgw_bucket *seen,
                             enum cql_bucket_state state, const struct fgw_bucket *next,
                             enum cql_outcome *out_outcome, struct fgw_error *error)
{
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_bucket(&row, next);
    struct fgw_cql_value values[] = {fgw_cql_int((int32_t)state), cql_id_blob(&next->rev),
                                     fgw_cql_blob(fgw_buf_bytes(&row)), fgw_cql_text(seen->name),
                                     cql_id_blob(&seen->rev)};
    struct cql_lwt lwt = {.id = CQL_BUCKET_SWAP,
                          .values = values,
                          .count = 5,
                          .rev = &next->rev,
                          .partition = fgw_get_u64be(seen->id.bytes)};
    enum fgw_err err = cql_lwt(cql, &lwt, out_outcome, error);
    fgw_buf_deinit(&row);
    return err;
}

/* -- reading ------------------------------------------------------------------------------------ */

static struct fgw_bytes cache_key(struct fgw_arena *arena, struct fgw_bytes name)
{
    return fgw_bytes_str(fgw_arena_printf(arena, "b/%.*s", FGW_FMT(name)));
}

static enum fgw_err from_snapshot(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes name,
                                  uint64_t max_age_ms, struct fgw_bucket *out_bucket)
{
    struct fgw_bytes row;
    enum fgw_err err = cql_cache_get(cql, arena, cache_key(arena, name), max_age_ms, &row);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_bytes own_name = fgw_arena_copy(arena, name);
    return fgw_row_decode_bucket(arena, own_name, row, out_bucket);
}

static void to_snapshot(struct cql *cql, struct fgw_arena *arena, const struct fgw_bucket *bucket,
                        uint64_t generation, uint64_t read_ms)
{
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_bucket(&row, bucket);
    cql_cache_put(cql, cache_key(arena, bucket->name), fgw_buf_bytes(&row), generation, read_ms);
    fgw_buf_deinit(&row);
}

enum fgw_err cql_bucket_get(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_bytes name,
                            bool fresh, struct fgw_bucket *out_bucket, struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct cql_bucket_row row = {0};
    if (!fgw_utf8_valid(name) || name.len == 0) {
        return fgw_error_set(error, FGW_ERR_NO_SUCH_BUCKET, NULL);
    }
    if (!fresh && from_snapshot(cql, arena, name, CQL_SNAPSHOT_MS, out_bucket) == FGW_OK) {
        return FGW_OK;
    }
    uint64_t generation = atomic_load(&cql->generation);
    uint64_t read_ms = cql_now_ms();
    enum fgw_err err = cql_bucket_read(cql, arena, name, &row, error);
    if (err == FGW_OK && row.present && row.state == CQL_BUCKET_DELETING && fresh) {
        err = cql_bucket_settle(cql, arena, name, &row, error);
    }
    if (err == FGW_ERR_UNAVAILABLE && !fresh &&
        from_snapshot(cql, arena, name, CQL_STALE_MAX_MS, out_bucket) == FGW_OK) {
        return FGW_OK;
    }
    if (err == FGW_OK && !row.present) {
        cql_cache_drop(cql, cache_key(arena, name));
        return fgw_error_set(error, FGW_ERR_NO_SUCH_BUCKET, NULL);
    }
    if (err == FGW_OK) {
        to_snapshot(cql, arena, &row.bucket, generation, read_ms);
        *out_bucket = row.bucket;
    }
    return cql_fail(error, err, "reading bucket", name);
}

/* -- creating ------------------------------------------------------------------------------------ */

/* Random but for the number of shards in front (cql_shards) and the marks of a version 4 uuid. */
static void draw_bucket_id(unsigned shards, struct fgw_id *out_id)
{
    fgw_id_random(out_id);
    fgw_put_u16be(out_id->bytes, (uint16_t)shards);
    out_id->bytes[6] = (uint8_t)((out_id->bytes[6] & 0x0f) | 0x40);
    out_id->bytes[8] = (uint8_t)((out_id->bytes[8] & 0x3f) | 0x80);
}

static unsigned default_shards(const struct cql *cql)
{
    if (cql->options.shards != 0) {
        return cql->options.shards;
    }
    struct fgw_cql_client *client = cql->options.client(cql->options.client_context);
    return fgw_cql_client_flavour(client) == FGW_CQL_FLAVOUR_YUGABYTE ? 16 : 64;
}

static enum fgw_err insert_bucket(struct cql *cql, const struct fgw_bucket *bucket,
                                  enum cql_outcome *out_outcome, struct fgw_error *error)
{
    struct fgw_buf row;
    fgw_buf_init(&row, 0);
    fgw_row_encode_bucket(&row, bucket);
    struct fgw_cql_value values[] = {
        fgw_cql_text(bucket->name),   cql_id_uuid(&bucket->id),  fgw_cql_text(bucket->owner_id),
        fgw_cql_int(CQL_BUCKET_OPEN), cql_id_blob(&bucket->rev), fgw_cql_blob(fgw_buf_bytes(&row))};
    struct cql_lwt lwt = {.id = CQL_BUCKET_INSERT,
                          .values = values,
                          .count = 6,
                          .rev = &bucket->rev,
                          .partition = fgw_get_u64be(bucket->id.bytes + 8)};
    enum fgw_err err = cql_lwt(cql, &lwt, out_outcome, error);
    fgw_buf_deinit(&row);
    return err;
}

static enum fgw_err own_look_up(struct cql *cql, enum cql_statement_id id,
                                const struct fgw_bucket *bucket, struct fgw_error *error)
{
    struct fgw_cql_value values[] = {fgw_cql_text(bucket->owner_id), fgw_cql_text(bucket->name),
                                     cql_id_uuid(&bucket->id)};
    return cql_write(cql, id, values, 3, error);
}

/* *out_done: the row is there: ours, or (EXISTS) another one in *out_bucket. */
static enum fgw_err attempt_create(struct cql *cql, struct fgw_arena *arena,
                                   const struct fgw_bucket *wanted, bool *out_done,
                                   struct fgw_bucket *out_bucket, struct fgw_error *error)
{
    enum cql_outcome outcome = CQL_UNSURE;
    struct cql_bucket_row row = {0};
    enum fgw_err err = insert_bucket(cql, wanted, &outcome, error);
    if (err == FGW_OK && outcome == CQL_APPLIED) {
        *out_bucket = *wanted;
        *out_done = true;
    }
    if (err != FGW_OK || *out_done) {
        return err;
    }
    err = cql_bucket_read(cql, arena, wanted->name, &row, error);
    if (err == FGW_OK && row.present && row.state == CQL_BUCKET_DELETING) {
        err = cql_bucket_settle(cql, arena, wanted->name, &row, error);
    }
    if (err != FGW_OK) {
        return outcome == CQL_UNSURE ? fgw_error_set(error, FGW_ERR_UNKNOWN_OUTCOME, NULL) : err;
    }
    if (!row.present) {
        return FGW_OK;
    }
    *out_done = true;
    *out_bucket = row.bucket;
    return fgw_id_eq(&row.bucket.id, &wanted->id) ? FGW_OK : FGW_ERR_EXISTS;
}

enum fgw_err cql_bucket_create(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *wanted, struct fgw_bucket *out_bucket,
                               struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct fgw_bucket bucket = *wanted;
    bool done = false;
    bucket.shards = wanted->shards == 0 ? default_shards(cql) : wanted->shards;
    bucket.created_ms = fgw_clock_wall_ms();
    draw_bucket_id(bucket.shards, &bucket.id);
    fgw_id_random(&bucket.rev);
    /* the look-up first: a bucket that its owner's list does not know could never be found again */
    enum fgw_err err = own_look_up(cql, CQL_OWNER_INSERT, &bucket, error);
    for (unsigned attempt = 0; err == FGW_OK && !done; attempt++) {
        if (attempt == CQL_ATTEMPTS_MAX) {
            err = fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
            break;
        }
        err = attempt_create(cql, arena, &bucket, &done, out_bucket, error);
    }
    cql_changed(cql);
    if (err != FGW_OK && err != FGW_ERR_UNKNOWN_OUTCOME) {
        enum fgw_err ignored = own_look_up(cql, CQL_OWNER_DELETE, &bucket, NULL);
        (void)ignored;
    }
    return cql_fail(error, err, "creating bucket", wanted->name);
}

/* -- changing ------------------------------------------------------------------------------------- */

enum fgw_err cql_bucket_update(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct fgw_bucket next = *bucket;
    struct cql_bucket_row row = {0};
    enum cql_outcome outcome = CQL_UNSURE;
    fgw_id_random(&next.rev);
    enum fgw_err err = cql_bucket_swap(cql, bucket, CQL_BUCKET_OPEN, &next, &outcome, error);
    cql_changed(cql);
    if (err == FGW_OK && outcome != CQL_APPLIED) {
        err = cql_bucket_read(cql, arena, bucket->name, &row, error);
        if (err == FGW_OK && (!row.present || !fgw_id_eq(&row.bucket.id, &bucket->id))) {
            err = FGW_ERR_NO_SUCH_BUCKET;
        } else if (err == FGW_OK && !fgw_id_eq(&row.bucket.rev, &next.rev)) {
            err = outcome == CQL_UNSURE ? FGW_ERR_UNKNOWN_OUTCOME : FGW_ERR_CONFLICT;
        }
    }
    return cql_fail(error, err, "changing bucket", bucket->name);
}
