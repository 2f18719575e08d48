/* object.c: reading, writing and changing objects (design/metadata.md sections 3 and 4). */
#include "meta/cql/cql_internal.h"

/* -- reading ------------------------------------------------------------------------------------ */

/* The head, settled: a deletion that was met is carried on first. */
static enum fgw_err read_head(struct cql *cql, struct fgw_arena *arena,
                              const struct cql_place *place, struct cql_row *out_head,
                              struct fgw_error *error)
{
    for (unsigned attempt = 0; attempt < CQL_ATTEMPTS_MAX; attempt++) {
        enum fgw_err err = cql_head_read(cql, arena, place, false, out_head, error);
        if (err == FGW_OK && out_head->state == CQL_DELETING) {
            err = cql_finish_delete(cql, arena, place, out_head, error);
        } else if (err == FGW_OK) {
            return FGW_OK;
        }
        if (err != FGW_OK) {
            return err;
        }
    }
    return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
}

static bool head_is(const struct cql_row *head, struct fgw_version version)
{
    return version.kind == FGW_VERSION_NULL
               ? head->object.is_null
               : !head->object.is_null && fgw_id_eq(&head->object.version_id, &version.id);
}

/* Head first, then the versions; a row that was promoted in between sends us back to the head. */
static enum fgw_err get_version(struct cql *cql, struct fgw_arena *arena,
                                const struct cql_place *place, struct fgw_version version,
                                struct cql_row *out_row, bool *out_is_head,
                                struct cql_row *out_head, struct fgw_error *error)
{
    for (unsigned attempt = 0; attempt < CQL_ATTEMPTS_MAX; attempt++) {
        enum fgw_err err = read_head(cql, arena, place, out_head, error);
        if (err != FGW_OK || out_head->state != CQL_LIVE) {
            return err != FGW_OK ? err : FGW_ERR_NO_SUCH_VERSION;
        }
        *out_is_head = head_is(out_head, version);
        if (*out_is_head) {
            *out_row = *out_head;
            return FGW_OK;
        }
        struct fgw_id id =
            version.kind == FGW_VERSION_NULL ? out_head->more.null_version : version.id;
        if (fgw_id_is_zero(&id)) {
            return FGW_ERR_NO_SUCH_VERSION;
        }
        bool again = false;
        err = cql_version_read(cql, arena, place, &id, false, out_row, error);
        if (err == FGW_OK) {
            err = cql_version_settle(cql, arena, place, out_head, out_row, &again, error);
        }
        if (err != FGW_OK) {
            return err;
        }
        if (!again) {
            /* the null version is addressed as "null" only */
            bool hidden = out_row->object.is_null && version.kind == FGW_VERSION_ID;
            return !hidden && cql_version_shown(out_head, out_row) ? FGW_OK
                                                                   : FGW_ERR_NO_SUCH_VERSION;
        }
        cql_back_off(attempt);
    }
    return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
}

enum fgw_err cql_object_get(struct fgw_meta *meta, struct fgw_arena *arena,
                            const struct fgw_bucket *bucket, struct fgw_bytes key,
                            struct fgw_version version, struct fgw_object *out_object,
                            struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct cql_place place = {&bucket->id, key};
    struct cql_row row = {0};
    struct cql_row head = {0};
    bool is_head = true;
    enum fgw_err err;
    if (version.kind == FGW_VERSION_LATEST) {
        err = read_head(cql, arena, &place, &row, error);
        err = err == FGW_OK && row.state != CQL_LIVE ? FGW_ERR_NO_SUCH_KEY : err;
    } else {
        err = get_version(cql, arena, &place, version, &row, &is_head, &head, error);
    }
    if (err == FGW_OK) {
        *out_object = row.object;
        out_object->latest = is_head;
    }
    return cql_fail(error, err, "reading object", key);
}

/* -- writing ------------------------------------------------------------------------------------ */

enum fgw_err cql_object_put(struct fgw_meta *meta, struct fgw_arena *arena, struct fgw_put *put,
                            struct fgw_written *out_written, struct fgw_error *error)
{
    struct cql_put write = {.arena = arena,
                            .bucket = put->bucket,
                            .place = {&put->bucket->id, put->object.key},
                            .conditions = &put->conditions,
                            .staged = put->staged,
                            .staged_count = put->staged_count,
                            .object = put->object};
    enum fgw_err err = cql_head_put(cql_of(meta), &write, error);
    for (size_t i = 0; i < put->staged_count; i++) {
        if (err == FGW_OK) {
            fgw_blob_confirm(&put->staged[i]);
        } else if (err != FGW_ERR_UNKNOWN_OUTCOME) {
            fgw_blob_discard(&put->staged[i]);
        }
    }
    if (err == FGW_OK) {
        *out_written = write.result;
    }
    return cql_fail(error, err, "writing object", put->object.key);
}

/* -- changing what is beside the bytes ----------------------------------------------------------- */

enum fgw_err cql_object_update(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, const struct fgw_object *object,
                               struct fgw_error *error)
{
    struct cql *cql = cql_of(meta);
    struct cql_place place = {&bucket->id, object->key};
    struct fgw_version version = {object->is_null ? FGW_VERSION_NULL : FGW_VERSION_ID,
                                  object->version_id};
    struct cql_row row = {0};
    struct cql_row head = {0};
    bool is_head = false;
    bool applied = false;
    enum fgw_err err = get_version(cql, arena, &place, version, &row, &is_head, &head, error);
    if (err == FGW_ERR_NO_SUCH_VERSION ||
        (err == FGW_OK && !fgw_id_eq(&row.object.rev, &object->rev))) {
        return fgw_error_set(error, FGW_ERR_CONFLICT, NULL);
    }
    if (err == FGW_OK) {
        struct cql_row next = row;
        next.object.headers = object->headers;
        next.object.header_count = object->header_count;
        next.object.tags = object->tags;
        next.object.tag_count = object->tag_count;
        next.object.acl = object->acl;
        memset(&next.object.rev, 0, sizeof next.object.rev);
        struct cql_swap swap = {.place = &place,
                                .version_id = is_head ? NULL : &row.object.version_id,
                                .seen = &row,
                                .next = &next};
        err = cql_row_swap(cql, arena, &swap, &applied, error);
        err = err == FGW_OK && !applied ? FGW_ERR_CONFLICT : err;
    }
    return cql_fail(error, err, "changing object", object->key);
}
