/* purge.c: gone rows are kept for a while, so that lost answers can be resolved and paused writers
 * are refused; then whoever lists over them removes some. Not awaited by anything: a row that stays
 * costs the next list a little.
 */
#include "base/clock.h"
#include "meta/cql/cql_internal.h"

/* Wall clocks of different machines judge the age: well behind what late statements need. */
enum { MARGIN_MS = 5 * 60 * 1000 };

void cql_purge_note(struct cql_purge *purge, struct fgw_arena *arena, const struct cql_entry *entry)
{
    struct cql_row row;
    if (purge->count == CQL_PURGE_MAX || entry->state != CQL_GONE ||
        cql_entry_decode(arena, entry, &row) != FGW_OK ||
        fgw_clock_wall_ms() - row.object.mtime_ms < CQL_GONE_KEEP_MS + MARGIN_MS) {
        return;
    }
    purge->keys[purge->count] = row.object.key;
    purge->revs[purge->count++] = entry->rev;
}

struct errand {
    struct cql *cql;
    struct cql_place place;
    const struct fgw_id *rev;
    struct fgw_wait *done;
};

static void purge_one(void *arg)
{
    struct errand *errand = arg;
    struct fgw_cql_value values[] = {cql_id_uuid(errand->place.bucket_id),
                                     fgw_cql_int(cql_shard(&errand->place)),
                                     fgw_cql_blob(errand->place.key), cql_id_blob(errand->rev)};
    struct cql_lwt lwt = {.id = CQL_HEAD_PURGE,
                          .values = values,
                          .count = 4,
                          .partition = cql_partition(&errand->place)};
    enum cql_outcome outcome;
    enum fgw_err ignored = cql_lwt(errand->cql, &lwt, &outcome, NULL);
    (void)ignored;
    fgw_wait_signal(errand->done);
}

void cql_purge_run(struct cql *cql, const struct fgw_id *bucket_id, const struct cql_purge *purge)
{
    struct errand errands[CQL_PURGE_MAX];
    struct fgw_wait done;
    if (purge->count == 0) {
        return;
    }
    fgw_wait_init(&done, purge->count);
    for (unsigned i = 0; i < purge->count; i++) {
        errands[i] = (struct errand){cql, {bucket_id, purge->keys[i]}, &purge->revs[i], &done};
        fgw_fiber_spawn(fgw_loop_current(), purge_one, &errands[i]);
    }
    fgw_wait_for(&done);
}
