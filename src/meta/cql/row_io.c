/* row_io.c: rows of objects (heads) and object_versions: where they lie, how they are read, and the
 * conditional write that replaces one, with the chain of revs that resolves a lost answer
 * (design/metadata.md section 3).
 *
 * An encoded object (meta/row.h) stands in two columns, one behind the other: `listing` has what
 * lists show, `data` the rest with the chain.
 */
#include <xxhash.h>

#include "base/clock.h"
#include "meta/cql/cql_internal.h"

/* -- addresses --------------------------------------------------------------------------------- */

unsigned cql_shards(const struct fgw_id *bucket_id)
{
    unsigned shards = fgw_get_u16be(bucket_id->bytes);
    return shards == 0 ? 1 : shards;
}

int32_t cql_shard(const struct cql_place *place)
{
    return (int32_t)(XXH64(place->key.ptr, place->key.len, 0) % cql_shards(place->bucket_id));
}

uint64_t cql_partition(const struct cql_place *place)
{
    return XXH64(place->bucket_id->bytes, sizeof place->bucket_id->bytes,
                 (XXH64_hash_t)cql_shard(place));
}

/* -- reading ------------------------------------------------------------------------------------ */

static struct fgw_bytes joined(struct fgw_arena *arena, struct fgw_bytes a, struct fgw_bytes b)
{
    uint8_t *out = fgw_arena_alloc(arena, a.len + b.len + 1);
    if (a.len > 0) {
        memcpy(out, a.ptr, a.len);
    }
    if (b.len > 0) {
        memcpy(out + a.len, b.ptr, b.len);
    }
    return fgw_bytes(out, a.len + b.len);
}

static enum fgw_err get_state(const struct fgw_cql_result *result, enum cql_state *out_state)
{
    int32_t state = 0;
    enum fgw_err err = fgw_cql_get_int(result, "state", &state);
    if (err != FGW_OK) {
        return FGW_ERR_CORRUPT;
    }
    if (state < CQL_LIVE || state > CQL_MOVED) {
        return FGW_ERR_NEWER_VERSION;
    }
    *out_state = (enum cql_state)state;
    return FGW_OK;
}

enum fgw_err cql_row_decode(struct fgw_arena *arena, struct fgw_bytes key,
                            const struct fgw_cql_result *result, enum fgw_row_depth depth,
                            struct cql_row *out_row)
{
    struct fgw_bytes listing;
    struct fgw_bytes data = {NULL, 0};
    struct fgw_id rev;
    struct cql_row row = {0};
    enum fgw_err err = get_state(result, &row.state);
    if (err == FGW_OK) {
        err = cql_get_id(result, "rev", &rev);
    }
    if (err == FGW_OK) {
        err = fgw_cql_get_blob(result, "listing", &listing);
    }
    if (err == FGW_OK && depth == FGW_ROW_FULL) {
        err = fgw_cql_get_blob(result, "data", &data);
    }
    if (err != FGW_OK) {
        return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
    }
    err = fgw_row_decode_object(arena, key, joined(arena, listing, data), depth, &row.object,
                                &row.more);
    if (err == FGW_OK) {
        row.object.rev = rev;
        *out_row = row;
    }
    return err;
}

static enum fgw_err take_row(struct fgw_arena *arena, struct fgw_bytes key,
                             struct fgw_cql_result *result, struct cql_row *out_row)
{
    enum fgw_err err = FGW_OK;
    if (fgw_cql_result_next(result)) {
        err = cql_row_decode(arena, key, result, FGW_ROW_FULL, out_row);
    } else {
        *out_row = (struct cql_row){.state = CQL_ABSENT};
    }
    fgw_cql_result_free(result);
    return err;
}

struct fgw_cql_call *cql_head_start(struct cql *cql, const struct cql_place *place, bool serial)
{
    struct fgw_cql_value values[] = {cql_id_uuid(place->bucket_id), fgw_cql_int(cql_shard(place)),
                                     fgw_cql_blob(place->key)};
    struct fgw_cql_options options = {.serial = serial};
    return cql_start(cql, CQL_HEAD_GET, values, 3, &options);
}

enum fgw_err cql_head_wait(struct cql *cql, struct fgw_arena *arena, struct fgw_cql_call *call,
                           struct fgw_bytes key, struct cql_row *out_row, struct fgw_error *error)
{
    struct fgw_cql_result *result = NULL;
    enum fgw_err err = cql_wait(cql, call, &result, error);
    return err == FGW_OK ? take_row(arena, key, result, out_row) : err;
}

enum fgw_err cql_head_read(struct cql *cql, struct fgw_arena *arena, const struct cql_place *place,
                           bool serial, struct cql_row *out_row, struct fgw_error *error)
{
    struct fgw_cql_value values[] = {cql_id_uuid(place->bucket_id), fgw_cql_int(cql_shard(place)),
                                     fgw_cql_blob(place->key)};
    struct fgw_cql_options options = {.serial = serial};
    struct fgw_cql_result *result = NULL;
    enum fgw_err err = cql_read(cql, CQL_HEAD_GET, values, 3, &options, &result, error);
    return err == FGW_OK ? take_row(arena, place->key, result, out_row) : err;
}

enum fgw_err cql_version_read(struct cql *cql, struct fgw_arena *arena,
                              const struct cql_place *place, const struct fgw_id *id, bool serial,
                              struct cql_row *out_row, struct fgw_error *error)
{
    struct fgw_cql_value values[] = {cql_id_uuid(place->bucket_id), fgw_cql_int(cql_shard(place)),
                                     fgw_cql_blob(place->key), cql_id_blob(id)};
    struct fgw_cql_options options = {.serial = serial};
    struct fgw_cql_result *result = NULL;
    enum fgw_err err = cql_read(cql, CQL_VERSION_GET, values, 4, &options, &result, error);
    return err == FGW_OK ? take_row(arena, place->key, result, out_row) : err;
}

/* -- writing ------------------------------------------------------------------------------------ */

enum cql_outcome cql_chain(const struct cql_row *now, const struct fgw_id *seen,
                           const struct fgw_id *rev)
{
    if (now->state == CQL_ABSENT) {
        return CQL_UNSURE;
    }
    if (fgw_id_eq(&now->object.rev, rev)) {
        return CQL_APPLIED;
    }
    enum cql_outcome outcome = CQL_UNSURE;
    for (unsigned i = 0; i < now->more.recent_count; i++) {
        if (fgw_id_eq(&now->more.recent[i], rev)) {
            return CQL_APPLIED;
        }
        if (seen != NULL && fgw_id_eq(&now->more.recent[i], seen)) {
            outcome = CQL_REFUSED;
        }
    }
    /* a chain that is not full begins with the row's first write, which was not ours */
    return seen == NULL && now->more.recent_count < FGW_META_RECENT ? CQL_REFUSED : outcome;
}

static void lengthen_chain(const struct cql_row *seen, struct cql_row *next)
{
    next->more.recent_count = 0;
    if (seen->state == CQL_ABSENT) {
        return;
    }
    next->more.recent[next->more.recent_count++] = seen->object.rev;
    for (unsigned i = 0; i < seen->more.recent_count; i++) {
        if (next->more.recent_count < FGW_META_RECENT) {
            next->more.recent[next->more.recent_count++] = seen->more.recent[i];
        }
    }
}

static enum fgw_err write_row(struct cql *cql, const struct cql_swap *swap,
                              enum cql_outcome *out_outcome, struct fgw_error *error)
{
    struct fgw_buf row;
    struct fgw_cql_value values[9];
    size_t count = 0;
    bool head = swap->version_id == NULL;
    bool insert = swap->seen->state == CQL_ABSENT;
    fgw_buf_init(&row, 0);
    fgw_row_encode_object(&row, &swap->next->object, &swap->next->more);
    struct fgw_bytes bytes = fgw_buf_bytes(&row);
    size_t listing = fgw_row_listing_size(bytes);
    values[count++] = fgw_cql_int((int32_t)swap->next->state);
    values[count++] = cql_id_blob(&swap->next->object.rev);
    values[count++] = fgw_cql_blob(fgw_bytes_sub(bytes, 0, listing));
    values[count++] = fgw_cql_blob(fgw_bytes_sub(bytes, listing, SIZE_MAX));
    values[count++] = cql_id_uuid(swap->place->bucket_id);
    values[count++] = fgw_cql_int(cql_shard(swap->place));
    values[count++] = fgw_cql_blob(swap->place->key);
    if (!head) {
        values[count++] = cql_id_blob(swap->version_id);
    }
    if (!insert) {
        values[count++] = cql_id_blob(&swap->seen->object.rev);
    }
    struct cql_lwt lwt = {.values = values,
                          .count = count,
                          .rev = &swap->next->object.rev,
                          .partition = cql_partition(swap->place)};
    lwt.id = head ? (insert ? CQL_HEAD_INSERT : CQL_HEAD_SWAP)
                  : (insert ? CQL_VERSION_INSERT : CQL_VERSION_SWAP);
    enum fgw_err err = cql_lwt(cql, &lwt, out_outcome, error);
    fgw_buf_deinit(&row);
    return err;
}

enum fgw_err cql_version_write(struct cql *cql, const struct cql_swap *swap,
                               enum cql_outcome *out_outcome, struct fgw_error *error)
{
    return write_row(cql, swap, out_outcome, error);
}

enum { RESOLVE_MS = 5000 }; /* no further look after this */

/* Reads until the chain tells; a write that is still under way gets a little time. */
static enum fgw_err resolve(struct cql *cql, struct fgw_arena *arena, const struct cql_swap *swap,
                            enum cql_outcome *out_outcome, struct fgw_error *error)
{
    bool insert = swap->seen->state == CQL_ABSENT;
    bool doubted = *out_outcome == CQL_DOUBTED;
    const struct fgw_id *seen = insert ? NULL : &swap->seen->object.rev;
    uint64_t since_ms = cql_now_ms();
    for (unsigned look = 0; look < 3; look++) {
        struct cql_row now = {0};
        enum fgw_err err =
            swap->version_id == NULL
                ? cql_head_read(cql, arena, swap->place, true, &now, error)
                : cql_version_read(cql, arena, swap->place, swap->version_id, true, &now, error);
        if (err == FGW_OK) {
            *out_outcome = cql_chain(&now, seen, &swap->next->object.rev);
        }
        if (err == FGW_OK && *out_outcome != CQL_UNSURE) {
            return FGW_OK;
        }
        if (err == FGW_OK && doubted) {
            /* no answer was lost; that the row went on by five writes since is not to be thought of */
            *out_outcome = CQL_REFUSED;
            return FGW_OK;
        }
        if (cql_now_ms() - since_ms > RESOLVE_MS) {
            break;
        }
        cql_back_off(look + 3);
    }
    return fgw_error_set(error, FGW_ERR_UNKNOWN_OUTCOME, NULL);
}

enum fgw_err cql_row_swap(struct cql *cql, struct fgw_arena *arena, const struct cql_swap *swap,
                          bool *out_applied, struct fgw_error *error)
{
    enum cql_outcome outcome = CQL_UNSURE;
    if (fgw_id_is_zero(&swap->next->object.rev)) {
        fgw_id_random(&swap->next->object.rev);
    }
    lengthen_chain(swap->seen, swap->next);
    enum fgw_err err = write_row(cql, swap, &outcome, error);
    if (err == FGW_OK && cql_must_look(outcome)) {
        err = resolve(cql, arena, swap, &outcome, error);
    }
    if (err == FGW_OK) {
        *out_applied = outcome == CQL_APPLIED;
    }
    return err;
}

void cql_row_bury(const struct cql_row *row, struct cql_row *out_gone)
{
    *out_gone = (struct cql_row){.state = CQL_GONE,
                                 .object = {.key = row->object.key,
                                            .version_id = row->object.version_id,
                                            .is_null = row->object.is_null,
                                            .mtime_ms = fgw_clock_wall_ms()},
                                 .more.null_version = row->more.null_version};
}
