/* releases.c: rows of `releases` (docs/formats/cluster-tables.md): what a store could not be told,
 * because it was away when the row that named a blob went. Edges write them, insert-only; the store
 * reads its own, asks the metadata, ends the hold, and only then removes the row.
 *
 * Hints, never orders: a row too many frees nothing that is named, a row too few is made up for by
 * the sweeper, so nobody waits for either. Writing: any worker; following: a fiber of worker 0. */
#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "cluster/cluster_internal.h"

enum {
    HOUR_MS = 3600 * 1000,
    KEPT_HOURS = 7 * 24, /* as long as the database keeps them: STATEMENT_RELEASE_INSERT */
    SKEW_HOURS = 1,      /* between the clocks of who writes and who reads */
    PASS_MS = 60 * 1000,
    TICK_MS = 250,
    PAGE = 200,
    OWNER_SIZE = FGW_STORAGE_ID_SIZE + 8
};

static int64_t hour_now(void)
{
    return fgw_clock_wall_ms() / HOUR_MS;
}

/* -- edges --------------------------------------------------------------------------------------- */

static bool may_come_back(struct fgw_cluster *cluster, const uint8_t *store_id)
{
    (void)pthread_mutex_lock(&cluster->guarded.mutex);
    const struct cluster_store *store = cluster_map_store(&cluster->guarded.map, store_id);
    bool may = store != NULL && store->state != CLUSTER_LOST && store->state != CLUSTER_REMOVED;
    (void)pthread_mutex_unlock(&cluster->guarded.mutex);
    return may;
}

void cluster_keep_release(void *context, const uint8_t *store_id,
                          const struct fgw_storage_owner *owner, uint64_t extent,
                          const struct fgw_cid *root)
{
    struct fgw_cluster *cluster = context;
    struct fgw_cql_result *result;
    struct fgw_error error;
    uint8_t id[OWNER_SIZE];
    if (!may_come_back(cluster, store_id)) {
        return;
    }
    memcpy(id, owner->owner_id, FGW_STORAGE_ID_SIZE);
    fgw_put_u64be(id + FGW_STORAGE_ID_SIZE, extent);
    struct fgw_cql_value values[] = {fgw_cql_uuid(store_id),
                                     fgw_cql_bigint(hour_now()),
                                     fgw_cql_blob(fgw_bytes(id, sizeof id)),
                                     fgw_cql_uuid(owner->bucket_id),
                                     fgw_cql_blob(owner->key),
                                     fgw_cql_blob(fgw_cid_bytes(root))};
    fgw_error_init(&error);
    enum fgw_err err = cluster_execute(cluster, STATEMENT_RELEASE_INSERT, values,
                                       FGW_COUNT_OF(values), false, &result, &error);
    if (err == FGW_OK) {
        fgw_cql_result_free(result);
        atomic_fetch_add(&cluster->releases_kept, 1);
    }
}

/* -- the store ----------------------------------------------------------------------------------- */

struct row {
    uint8_t id[OWNER_SIZE];
    struct fgw_storage_owner owner;
    uint64_t extent;
    struct fgw_cid root;
    bool readable; /* else it is removed: the sweeper finds what it meant */
};

static struct row take_row(const struct fgw_cql_result *result, struct fgw_bytes id)
{
    struct row row = {.readable = false};
    struct fgw_bytes root;
    if (id.len != sizeof row.id) {
        return row;
    }
    memcpy(row.id, id.ptr, sizeof row.id);
    memcpy(row.owner.owner_id, id.ptr, sizeof row.owner.owner_id);
    row.extent = fgw_get_u64be(id.ptr + FGW_STORAGE_ID_SIZE);
    row.readable = fgw_cql_get_uuid(result, "bucket_id", row.owner.bucket_id) == FGW_OK &&
                   fgw_cql_get_blob(result, "key", &row.owner.key) == FGW_OK &&
                   fgw_cql_get_blob(result, "root", &root) == FGW_OK &&
                   fgw_cid_from_bytes(root, &row.root) == FGW_OK;
    return row;
}

/* Ends the hold if no row names it; one that rows name elsewhere is for the walk (drop.c). */
static enum fgw_err follow(struct fgw_cluster *cluster, const struct row *row,
                           struct fgw_error *error)
{
    struct fgw_cluster_named named = {0};
    enum fgw_err err =
        cluster->options.named(cluster->options.context, &row->owner, &row->root, &named, error);
    if (err == FGW_OK && !named.live) {
        err = fgw_storage_release(cluster->options.storage, row->owner.owner_id, row->extent,
                                  &row->root);
        cluster->releases_followed += err == FGW_OK;
    }
    return err;
}

static enum fgw_err remove_row(struct fgw_cluster *cluster, int64_t hour, struct fgw_bytes id,
                               struct fgw_error *error)
{
    struct fgw_cql_result *result;
    struct fgw_cql_value values[] = {fgw_cql_uuid(cluster->store_id), fgw_cql_bigint(hour),
                                     fgw_cql_blob(id)};
    enum fgw_err err =
        cluster_execute(cluster, STATEMENT_RELEASE_DELETE, values, 3, false, &result, error);
    if (err == FGW_OK) {
        fgw_cql_result_free(result);
    }
    return err;
}

/* The rows behind *after, which moves on. */
static enum fgw_err follow_page(struct fgw_cluster *cluster, int64_t hour, struct fgw_buf *after,
                                bool *out_more, struct fgw_error *error)
{
    struct fgw_cql_result *result;
    struct fgw_cql_value values[] = {fgw_cql_uuid(cluster->store_id), fgw_cql_bigint(hour),
                                     fgw_cql_blob(fgw_buf_bytes(after)), fgw_cql_int(PAGE)};
    size_t count = 0;
    enum fgw_err err =
        cluster_execute(cluster, STATEMENT_RELEASES, values, 4, false, &result, error);
    if (err != FGW_OK) {
        return err;
    }
    while (err == FGW_OK && !cluster->stopping && fgw_cql_result_next(result)) {
        struct fgw_bytes id;
        err = fgw_cql_get_blob(result, "owner_id", &id);
        if (err != FGW_OK) {
            break;
        }
        struct row row = take_row(result, id);
        count++;
        fgw_buf_clear(after);
        (void)fgw_buf_append(after, id);
        err = row.readable ? follow(cluster, &row, error) : FGW_OK;
        err = err == FGW_OK ? remove_row(cluster, hour, fgw_buf_bytes(after), error) : err;
    }
    *out_more = count == PAGE;
    fgw_cql_result_free(result);
    return err;
}

static enum fgw_err follow_hour(struct fgw_cluster *cluster, int64_t hour, struct fgw_error *error)
{
    struct fgw_buf after;
    bool more = true;
    enum fgw_err err = FGW_OK;
    fgw_buf_init(&after, OWNER_SIZE * 4);
    while (err == FGW_OK && more && !cluster->stopping) {
        err = follow_page(cluster, hour, &after, &more, error);
    }
    fgw_buf_deinit(&after);
    return err;
}

/* From the oldest hour that may have rows on; *from moves on behind those that are over. */
static enum fgw_err follow_all(struct fgw_cluster *cluster, int64_t *from, struct fgw_error *error)
{
    int64_t now = hour_now();
    enum fgw_err err = FGW_OK;
    for (int64_t hour = *from; hour <= now + SKEW_HOURS && err == FGW_OK; hour++) {
        err = follow_hour(cluster, hour, error);
    }
    if (err == FGW_OK && !cluster->stopping) {
        *from = now - SKEW_HOURS - 1;
    }
    return err;
}

static void run_pass(struct fgw_cluster *cluster, int64_t *from)
{
    struct fgw_error error;
    fgw_error_init(&error);
    if (follow_all(cluster, from, &error) != FGW_OK) {
        fgw_log_debug("cluster", "the rows of releases are left for later: %s",
                      fgw_error_message(&error));
    }
}

void cluster_releases_run(void *arg)
{
    struct fgw_cluster *cluster = arg;
    int64_t from = hour_now() - KEPT_HOURS;
    uint64_t next_ms = 0;
    while (!cluster->stopping) {
        uint64_t now_ms = fgw_clock_boot_ms();
        if (now_ms >= next_ms && !fgw_cluster_distrusts(cluster)) {
            next_ms = now_ms + PASS_MS;
            run_pass(cluster, &from);
        }
        fgw_fiber_sleep_ms(TICK_MS);
    }
    fgw_wait_signal(&cluster->ended);
}
