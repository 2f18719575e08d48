/* live.c: the liveness predicate of sweeper, release, repair and audit (design/storage.md section 5):
 * does any row still name this owner's blob? Read linearizably, in an order that a blob on its way
 * from one row to another cannot slip through: the upload, then head, versions, head, versions. A
 * null version counts when the head read before knows it: rows of replaced ones may be left.
 */
#include "meta/cql/cql_internal.h"

struct live {
    struct cql *cql;
    struct fgw_arena *arena;
    struct cql_place place;
    const uint8_t *owner_id;
    const struct fgw_cid *root;
    struct cql_row head;
    struct fgw_blob_live found;
};

static void look_at_object(struct live *live, const struct fgw_object *object)
{
    if (memcmp(object->owner_id.bytes, live->owner_id, FGW_META_ID_SIZE) == 0) {
        fgw_blob_live_note(&live->found, object->extents, object->extent_count, live->root);
    }
}

/* An upload that is open or completing names all its parts, while its bucket is the one it was
 * begun in. */
static enum fgw_err look_at_upload(struct live *live)
{
    struct fgw_id id;
    struct cql_upload_row row = {0};
    struct cql_bucket_row bucket = {0};
    memcpy(id.bytes, live->owner_id, sizeof id.bytes);
    enum fgw_err err = cql_upload_read(live->cql, live->arena, &id, true, &row, NULL);
    if (err != FGW_OK || (row.state != CQL_UPLOAD_OPEN && row.state != CQL_UPLOAD_COMPLETING)) {
        return err;
    }
    err = cql_bucket_read(live->cql, live->arena, row.upload.bucket_name, &bucket, NULL);
    live->found.live =
        err == FGW_OK && bucket.present && fgw_id_eq(&bucket.bucket.id, live->place.bucket_id);
    live->found.any_set = live->found.live;
    return err;
}

static enum fgw_err look_at_head(struct live *live)
{
    enum fgw_err err = cql_head_read(live->cql, live->arena, &live->place, true, &live->head, NULL);
    if (err == FGW_OK && cql_row_shown(&live->head)) {
        look_at_object(live, &live->head.object);
    }
    return err;
}

static bool row_counts(const struct live *live, const struct cql_row *row)
{
    return (row->state == CQL_LIVE || row->state == CQL_PROMOTING) &&
           (!row->object.is_null ||
            fgw_id_eq(&live->head.more.null_version, &row->object.version_id));
}

static enum fgw_err look_at_versions(struct live *live)
{
    struct cql_key_rows rows;
    enum fgw_err err = FGW_OK;
    cql_key_rows_init(&rows, live->cql, &live->place, 50);
    rows.full = true;
    while (err == FGW_OK && !live->found.live) {
        struct cql_row row;
        err = cql_key_rows_next(&rows, NULL);
        if (err == FGW_OK) {
            err = cql_row_decode(live->arena, live->place.key, rows.result, FGW_ROW_FULL, &row);
        }
        if (err == FGW_OK && row_counts(live, &row)) {
            look_at_object(live, &row.object);
        }
    }
    cql_key_rows_deinit(&rows);
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

enum fgw_err cql_blob_live(struct fgw_meta *meta, struct fgw_arena *arena,
                           const struct fgw_storage_owner *owner, const struct fgw_cid *root,
                           struct fgw_blob_live *out_live)
{
    struct fgw_id bucket_id;
    struct live live = {.cql = cql_of(meta),
                        .arena = arena,
                        .place = {&bucket_id, owner->key},
                        .owner_id = owner->owner_id,
                        .root = root};
    memcpy(bucket_id.bytes, owner->bucket_id, sizeof bucket_id.bytes);
    enum fgw_err err = look_at_upload(&live);
    for (int look = 0; look < 2 && err == FGW_OK && !live.found.live; look++) {
        err = look_at_head(&live);
        if (err == FGW_OK && !live.found.live) {
            err = look_at_versions(&live);
        }
    }
    if (err == FGW_OK) {
        *out_live = live.found;
    }
    return err;
}
