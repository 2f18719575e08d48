/* purge_job.c: rows that nobody needs any more, removed by a run over the whole tables once a day
 * (docs/formats/cql-tables.md):
 *
 *   heads that are gone          after 10 minutes: lists remove some, this the rest
 *   versions gone or moved       after 24 hours: until then they refuse a late copy
 *   uploads completed, aborted   after 7 days: until then they answer repeats
 *   uploads completing, aborting for an hour: carried on
 *   uploads open for a day whose bucket is gone: aborted
 *
 * Every removal is conditional on the rev that was seen, so that any number of runs may go on at
 * once; a lease in the row `purge` of the table map keeps them from doing the work twice. Its time
 * is the wall clock of whoever ran last, and being wrong costs a run too many or too late. Reads a
 * page, removes, pauses: the load is bounded whatever the size.
 */
#include "base/clock.h"
#include "meta/cql/cql_internal.h"

enum {
    PAGE_ROWS = 500,
    PARALLEL = 8,
    MARGIN_MS = 5 * 60 * 1000, /* between wall clocks */
    VERSION_KEEP_MS = 24 * 3600 * 1000,
    CARRY_ON_MS = 3600 * 1000,
    ORPHAN_MS = 24 * 3600 * 1000,
    PAUSE_SLICE_MS = 200
};

struct job {
    struct cql *cql;
    const struct fgw_meta_cql_purge *purge;
    struct fgw_meta_cql_purged *done;
    int64_t now_ms;
    struct fgw_error *error;
};

static bool stopped(const struct job *job)
{
    return job->purge->stop != NULL && job->purge->stop(job->purge->context);
}

static void pause_between(const struct job *job)
{
    for (unsigned left = job->purge->pause_ms; left > 0 && !stopped(job);) {
        unsigned slice = left < PAUSE_SLICE_MS ? left : PAUSE_SLICE_MS;
        fgw_fiber_sleep_ms(slice);
        left -= slice;
    }
}

/* -- pages of a table ------------------------------------------------------------------------------ */

/* Looks at the rows of one page; the arena is empty again afterwards. */
typedef enum fgw_err page_fn(struct job *job, struct fgw_arena *arena,
                             struct fgw_cql_result *result, void *context);

/* All pages of a table. TOO_LARGE: as far as the database goes, which refuses to pass over too many
 * removed rows: pages get narrower before them and wider again behind them, down to one row. */
static enum fgw_err walk_table(struct job *job, enum cql_statement_id all, page_fn *look,
                               void *context)
{
    struct fgw_arena arena;
    struct fgw_buf paging;
    int32_t page_rows = PAGE_ROWS;
    bool more = true;
    enum fgw_err err = FGW_OK;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&paging, 0);
    while (err == FGW_OK && more && !stopped(job)) {
        struct fgw_cql_result *result = NULL;
        struct fgw_cql_options options = {.page_size = page_rows,
                                          .paging_state = fgw_buf_bytes(&paging)};
        err = cql_read(job->cql, all, NULL, 0, &options, &result, job->error);
        if (err == FGW_ERR_TOO_LARGE && page_rows > 1) {
            page_rows /= 4;
            err = FGW_OK;
        } else if (err == FGW_OK) {
            more = fgw_cql_result_has_more(result);
            fgw_buf_clear(&paging);
            (void)fgw_buf_append(&paging, fgw_cql_result_paging_state(result));
            err = look(job, &arena, result, context);
            fgw_cql_result_free(result);
            fgw_arena_reset(&arena);
            page_rows = page_rows < PAGE_ROWS / 2 ? page_rows * 2 : PAGE_ROWS;
            pause_between(job);
        }
    }
    fgw_arena_deinit(&arena);
    fgw_buf_deinit(&paging);
    return err;
}

/* -- rows of objects and object_versions ----------------------------------------------------------- */

struct removal {
    struct cql *cql;
    enum cql_statement_id statement;
    struct fgw_id bucket_id;
    struct cql_entry entry; /* copies in the page's arena */
    struct fgw_wait *wait;
    bool removed;
};

static void remove_one(void *arg)
{
    struct removal *removal = arg;
    struct cql_place place = {&removal->bucket_id, removal->entry.key};
    struct fgw_cql_value values[5] = {cql_id_uuid(&removal->bucket_id),
                                      fgw_cql_int(cql_shard(&place)), fgw_cql_blob(place.key)};
    size_t count = 3;
    if (removal->statement == CQL_VERSION_PURGE) {
        values[count++] = cql_id_blob(&removal->entry.id);
    }
    values[count++] = cql_id_blob(&removal->entry.rev);
    struct cql_lwt lwt = {.id = removal->statement,
                          .values = values,
                          .count = count,
                          .partition = cql_partition(&place)};
    enum cql_outcome outcome = CQL_REFUSED;
    enum fgw_err err = cql_lwt(removal->cql, &lwt, &outcome, NULL);
    removal->removed = err == FGW_OK && outcome == CQL_APPLIED;
    fgw_wait_signal(removal->wait);
}

static uint64_t remove_all(struct removal *removals, size_t count)
{
    uint64_t removed = 0;
    for (size_t from = 0; from < count; from += PARALLEL) {
        struct fgw_wait wait;
        size_t some = count - from < PARALLEL ? count - from : PARALLEL;
        fgw_wait_init(&wait, (unsigned)some);
        for (size_t i = from; i < from + some; i++) {
            removals[i].wait = &wait;
            fgw_fiber_spawn(fgw_loop_current(), remove_one, &removals[i]);
        }
        fgw_wait_for(&wait);
        for (size_t i = from; i < from + some; i++) {
            removed += removals[i].removed;
        }
    }
    return removed;
}

static bool is_old(const struct job *job, const struct cql_entry *entry,
                   enum cql_statement_id statement, int64_t buried_ms)
{
    bool version = statement == CQL_VERSION_PURGE;
    int64_t keep_ms = version ? VERSION_KEEP_MS : CQL_GONE_KEEP_MS;
    bool gone = entry->state == CQL_GONE || (version && entry->state == CQL_MOVED);
    return gone && job->now_ms - buried_ms > keep_ms + MARGIN_MS;
}

/* Rows of a page that can go. A row that cannot be read is left alone: it is another one's problem,
 * or a newer version's. */
static size_t pick(const struct job *job, struct fgw_arena *arena, struct fgw_cql_result *result,
                   enum cql_statement_id statement, struct removal *out)
{
    size_t count = 0;
    while (fgw_cql_result_next(result)) {
        struct removal one = {.cql = job->cql, .statement = statement};
        struct cql_row row;
        job->done->rows++;
        if (fgw_cql_get_uuid(result, "bucket_id", one.bucket_id.bytes) == FGW_OK &&
            cql_entry_take(arena, result, &one.entry) == FGW_OK && one.entry.state != CQL_LIVE &&
            cql_entry_decode(arena, &one.entry, &row) == FGW_OK &&
            is_old(job, &one.entry, statement, row.object.mtime_ms)) {
            out[count++] = one;
        }
    }
    return count;
}

struct purging {
    enum cql_statement_id statement;
    uint64_t *removed;
};

static enum fgw_err purge_page(struct job *job, struct fgw_arena *arena,
                               struct fgw_cql_result *result, void *context)
{
    const struct purging *purging = context;
    size_t most = fgw_cql_result_row_count(result);
    struct removal *removals = fgw_arena_alloc(arena, (most + 1) * sizeof *removals);
    size_t count = pick(job, arena, result, purging->statement, removals);
    *purging->removed += remove_all(removals, count);
    return FGW_OK;
}

/* -- bucket by bucket, where the walk over a whole table is refused --------------------------------- */

/* Takes at most PAGE_ROWS rows that can go; *out_more: there are others behind them. */
static enum fgw_err pick_of_scan(struct job *job, struct cql_scan *scan, struct fgw_arena *arena,
                                 const struct purging *purging, struct removal *out,
                                 size_t *out_count, bool *out_more)
{
    enum fgw_err err = FGW_OK;
    size_t count = 0;
    for (unsigned rows = 0; err == FGW_OK && rows < PAGE_ROWS; rows++) {
        struct removal one = {.cql = job->cql, .statement = purging->statement};
        struct cql_row row;
        err = cql_scan_next(scan, &one.entry, job->error);
        if (err == FGW_OK && one.entry.state != CQL_LIVE &&
            cql_entry_decode(arena, &one.entry, &row) == FGW_OK &&
            is_old(job, &one.entry, purging->statement, row.object.mtime_ms)) {
            one.bucket_id = scan->bucket_id;
            one.entry.key = row.object.key;
            out[count++] = one;
        }
    }
    *out_more = err == FGW_OK;
    *out_count = count;
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

static enum fgw_err purge_bucket(struct job *job, const struct fgw_id *bucket_id,
                                 const struct purging *purging)
{
    bool versions = purging->statement == CQL_VERSION_PURGE;
    struct cql_scan scan = {.cql = job->cql,
                            .bucket_id = *bucket_id,
                            .all = versions ? CQL_VERSION_SCAN_TO : CQL_HEAD_SCAN,
                            .bounded = versions ? CQL_VERSION_SCAN_TO : CQL_HEAD_SCAN_TO,
                            .within = versions ? CQL_VERSIONS_BELOW : 0,
                            .within_to = versions ? CQL_VERSIONS_BELOW_TO : 0};
    struct removal *removals = fgw_xcalloc(PAGE_ROWS, sizeof *removals);
    struct fgw_arena arena;
    enum fgw_err err = FGW_OK;
    bool more = true;
    fgw_arena_init(&arena, 0);
    cql_scan_init(&scan, fgw_bytes(NULL, 0), fgw_bytes(NULL, 0), PAGE_ROWS);
    (void)fgw_buf_append_byte(&scan.to, 0xff); /* above all keys, which are UTF-8 */
    while (err == FGW_OK && more && !stopped(job)) {
        size_t count = 0;
        err = pick_of_scan(job, &scan, &arena, purging, removals, &count, &more);
        *purging->removed += remove_all(removals, count);
        fgw_arena_reset(&arena);
        pause_between(job);
    }
    cql_scan_deinit(&scan);
    fgw_arena_deinit(&arena);
    fgw_xfree(removals);
    return err;
}

static enum fgw_err purge_buckets(struct job *job, struct fgw_arena *arena,
                                  struct fgw_cql_result *result, void *context)
{
    enum fgw_err err = FGW_OK;
    (void)arena;
    while (err == FGW_OK && !stopped(job) && fgw_cql_result_next(result)) {
        struct fgw_id bucket_id;
        if (fgw_cql_get_uuid(result, "bucket_id", bucket_id.bytes) == FGW_OK) {
            err = purge_bucket(job, &bucket_id, context);
        }
    }
    return err;
}

/* What buckets that are gone have left behind is not reached then, and waits for another day. */
static enum fgw_err purge_table(struct job *job, enum cql_statement_id all, struct purging *purging)
{
    enum fgw_err err = walk_table(job, all, purge_page, purging);
    return err == FGW_ERR_TOO_LARGE ? walk_table(job, CQL_BUCKET_SCAN, purge_buckets, purging)
                                    : err;
}

/* -- uploads --------------------------------------------------------------------------------------- */

static enum fgw_err remove_upload(struct job *job, const struct fgw_id *id,
                                  const struct fgw_id *rev)
{
    char hex[33];
    fgw_id_hex(id, hex);
    struct fgw_cql_value values[] = {fgw_cql_str(hex), cql_id_blob(rev)};
    struct cql_lwt lwt = {.id = CQL_UPLOAD_PURGE,
                          .values = values,
                          .count = 2,
                          .partition = fgw_get_u64be(id->bytes + 8)};
    enum cql_outcome outcome = CQL_REFUSED;
    /* rows of parts first: without the upload's row nobody would find them */
    enum fgw_err err = cql_write(job->cql, CQL_PARTS_DELETE, values, 1, job->error);
    if (err == FGW_OK) {
        err = cql_lwt(job->cql, &lwt, &outcome, job->error);
    }
    job->done->uploads += err == FGW_OK && outcome == CQL_APPLIED;
    return err;
}

static enum fgw_err carry_on(struct job *job, struct fgw_arena *arena, const struct fgw_id *id)
{
    struct cql_upload_row row = {0};
    enum fgw_err err = cql_upload_read(job->cql, arena, id, true, &row, job->error);
    if (err == FGW_OK && row.state == CQL_UPLOAD_COMPLETING) {
        err = cql_finish_complete(job->cql, arena, &row, job->error);
        job->done->finished += err == FGW_OK;
    } else if (err == FGW_OK && row.state == CQL_UPLOAD_ABORTING) {
        err = cql_finish_abort(job->cql, arena, &row, job->error);
        job->done->finished += err == FGW_OK;
    }
    return err;
}

static enum fgw_err abort_orphan(struct job *job, struct fgw_arena *arena, const struct fgw_id *id)
{
    struct cql_upload_row row = {0};
    struct cql_bucket_row bucket = {0};
    enum fgw_err err = cql_upload_read(job->cql, arena, id, true, &row, job->error);
    if (err != FGW_OK || row.state != CQL_UPLOAD_OPEN) {
        return err;
    }
    err = cql_bucket_read(job->cql, arena, row.upload.bucket_name, &bucket, job->error);
    if (err != FGW_OK || (bucket.present && fgw_id_eq(&bucket.bucket.id, &row.upload.bucket_id))) {
        return err;
    }
    struct fgw_bucket gone = {.id = row.upload.bucket_id, .name = row.upload.bucket_name};
    err = cql_upload_abort(&job->cql->base, arena, &gone, &row.upload, job->error);
    job->done->finished += err == FGW_OK;
    return err == FGW_ERR_NO_SUCH_UPLOAD ? FGW_OK : err;
}

/* The row at the cursor: what its state and the time of its last change ask for. */
static enum fgw_err look_at_upload(struct job *job, struct fgw_arena *arena,
                                   const struct fgw_cql_result *result)
{
    struct fgw_bytes text;
    struct fgw_bytes status;
    struct fgw_id id;
    struct fgw_id rev;
    int64_t expires_ms = 0;
    int64_t created_ms = 0;
    job->done->rows++;
    if (fgw_cql_get_text(result, "upload_id", &text) != FGW_OK ||
        fgw_id_parse(text, &id) != FGW_OK || cql_get_id(result, "rev", &rev) != FGW_OK ||
        fgw_cql_get_text(result, "status", &status) != FGW_OK ||
        fgw_cql_get_timestamp(result, "created_at", &created_ms) != FGW_OK) {
        return FGW_OK; /* a row of the Go gateway */
    }
    bool changed = fgw_cql_get_timestamp(result, "expires_at", &expires_ms) == FGW_OK;
    int64_t since_change_ms = job->now_ms - (expires_ms - CQL_UPLOAD_KEEP_MS);
    bool ended = fgw_bytes_eq_str(status, "completed") || fgw_bytes_eq_str(status, "aborted");
    if (ended) {
        bool old = changed && since_change_ms > CQL_UPLOAD_KEEP_MS + MARGIN_MS;
        return old ? remove_upload(job, &id, &rev) : FGW_OK;
    }
    if (fgw_bytes_eq_str(status, "open")) {
        bool old = job->now_ms - created_ms > ORPHAN_MS;
        return old ? abort_orphan(job, arena, &id) : FGW_OK;
    }
    return changed && since_change_ms > CARRY_ON_MS ? carry_on(job, arena, &id) : FGW_OK;
}

static enum fgw_err look_at_uploads(struct job *job, struct fgw_arena *arena,
                                    struct fgw_cql_result *result, void *context)
{
    enum fgw_err err = FGW_OK;
    (void)context;
    while (err == FGW_OK && !stopped(job) && fgw_cql_result_next(result)) {
        err = look_at_upload(job, arena, result);
    }
    return err;
}

/* -- the run --------------------------------------------------------------------------------------- */

enum fgw_err fgw_meta_cql_purge(struct fgw_meta *meta, const struct fgw_meta_cql_purge *purge,
                                struct fgw_meta_cql_purged *out_done, struct fgw_error *error)
{
    struct job job = {.cql = cql_of(meta),
                      .purge = purge,
                      .done = out_done,
                      .now_ms = fgw_clock_wall_ms(),
                      .error = error};
    *out_done = (struct fgw_meta_cql_purged){0};
    struct purging versions = {CQL_VERSION_PURGE, &out_done->versions};
    struct purging heads = {CQL_HEAD_PURGE, &out_done->heads};
    enum fgw_err err = walk_table(&job, CQL_UPLOAD_ALL, look_at_uploads, NULL);
    if (err == FGW_OK || err == FGW_ERR_TOO_LARGE) { /* uploads behind removed ones: another day */
        err = purge_table(&job, CQL_VERSION_ALL, &versions);
    }
    if (err == FGW_OK) {
        err = purge_table(&job, CQL_HEAD_ALL, &heads);
    }
    return err == FGW_OK && stopped(&job) ? FGW_ERR_CANCELLED : err;
}

enum fgw_err fgw_meta_cql_purge_claim(struct fgw_meta *meta, int64_t interval_ms, bool *out_mine,
                                      struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct fgw_cql_result *result = NULL;
    int64_t now_ms = fgw_clock_wall_ms();
    int64_t last_ms = 0;
    struct fgw_cql_value name = fgw_cql_str("purge");
    enum fgw_err err = cql_read(cql, CQL_LEASE_GET, &name, 1, NULL, &result, error);
    if (err != FGW_OK) {
        return err;
    }
    bool there =
        fgw_cql_result_next(result) && fgw_cql_get_bigint(result, "version", &last_ms) == FGW_OK;
    fgw_cql_result_free(result);
    *out_mine = false;
    /* a time to come is that of a clock that was wrong: one interval is the longest wait */
    if (there && last_ms <= now_ms + interval_ms && now_ms - last_ms < interval_ms) {
        return FGW_OK;
    }
    struct fgw_cql_value insert[] = {name, fgw_cql_bigint(now_ms)};
    struct fgw_cql_value update[] = {insert[1], name, fgw_cql_bigint(last_ms)};
    struct cql_lwt lwt = {.id = there ? CQL_LEASE_SWAP : CQL_LEASE_INSERT,
                          .values = there ? update : insert,
                          .count = there ? 3 : 2};
    enum cql_outcome outcome = CQL_REFUSED;
    err = cql_lwt(cql, &lwt, &outcome, error);
    /* unsure: if it was ours nobody runs this time, which does no harm */
    *out_mine = err == FGW_OK && outcome == CQL_APPLIED;
    return err;
}
