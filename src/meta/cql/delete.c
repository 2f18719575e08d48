/* delete.c: deleting objects, and versions by id (design/metadata.md section 4). */
#include "meta/cql/cql_internal.h"

struct removal {
    struct cql *cql;
    struct fgw_arena *arena;
    const struct fgw_bucket *bucket;
    struct cql_place place;
    struct fgw_version version;
    const struct fgw_conditions *conditions;
    struct fgw_written result;
    bool done;
};

static enum fgw_err delete_latest(struct removal *self, struct fgw_error *error)
{
    struct cql_put put = {.arena = self->arena,
                          .bucket = self->bucket,
                          .place = self->place,
                          .conditions = self->conditions,
                          .missing_is_ok = true,
                          .removes = true,
                          .durable = true,
                          .object = {.key = self->place.key, .delete_marker = true}};
    enum fgw_err err = cql_head_put(self->cql, &put, error);
    self->result = put.result;
    return err;
}

static enum fgw_err conditions_hold(const struct removal *self, const struct cql_row *row,
                                    struct fgw_error *error)
{
    if (self->conditions == NULL || !fgw_conditions_any(self->conditions)) {
        return FGW_OK;
    }
    enum fgw_err err = fgw_conditions_check(self->conditions,
                                            row->object.delete_marker ? NULL : &row->object, error);
    return err == FGW_ERR_NO_SUCH_KEY ? FGW_OK : err;
}

static void removed(struct removal *self, const struct cql_row *row)
{
    self->result.removed_version = true;
    self->result.delete_marker = row->object.delete_marker;
    self->done = true;
}

/* live -> deleting; from there on the deletion happens, whoever carries it on. */
static enum fgw_err delete_head(struct removal *self, const struct cql_row *head,
                                struct fgw_error *error)
{
    struct cql_row next = *head;
    bool applied = false;
    enum fgw_err err = conditions_hold(self, head, error);
    if (err != FGW_OK) {
        return err;
    }
    next.state = CQL_DELETING;
    memset(&next.object.rev, 0, sizeof next.object.rev);
    struct cql_swap swap = {.place = &self->place, .seen = head, .next = &next};
    err = cql_row_swap(self->cql, self->arena, &swap, &applied, error);
    if (err != FGW_OK || !applied) {
        return err;
    }
    removed(self, head);
    err = cql_finish_delete(self->cql, self->arena, &self->place, &next, error);
    /* whoever meets the row finishes it, which nobody can be told of now */
    bool left = err == FGW_ERR_UNAVAILABLE || err == FGW_ERR_SLOW_DOWN;
    return left ? fgw_error_set(error, FGW_ERR_UNKNOWN_OUTCOME, NULL) : err;
}

static enum fgw_err delete_noncurrent(struct removal *self, struct cql_row *head,
                                      const struct fgw_id *id, struct fgw_error *error)
{
    struct cql_row row = {0};
    struct cql_row gone;
    bool applied = false;
    enum fgw_err err =
        cql_version_read(self->cql, self->arena, &self->place, id, false, &row, error);
    bool again = false;
    if (err == FGW_OK) {
        err = cql_version_settle(self->cql, self->arena, &self->place, head, &row, &again, error);
    }
    if (err != FGW_OK || again) {
        return err; /* not done: the head is another one now */
    }
    /* the null version is addressed as "null" only */
    bool hidden = row.object.is_null && self->version.kind == FGW_VERSION_ID;
    if (hidden || !cql_version_shown(head, &row)) {
        self->done = true;
        return FGW_OK;
    }
    err = conditions_hold(self, &row, error);
    if (err != FGW_OK) {
        return err;
    }
    cql_row_bury(&row, &gone);
    struct cql_swap swap = {.place = &self->place, .version_id = id, .seen = &row, .next = &gone};
    err = cql_row_swap(self->cql, self->arena, &swap, &applied, error);
    if (err == FGW_OK && applied) {
        removed(self, &row);
        cql_release(self->cql, &self->place, &row.object);
    }
    return err;
}

static enum fgw_err attempt_version(struct removal *self, struct fgw_error *error)
{
    struct fgw_bucket now;
    struct cql_row head = {0};
    enum fgw_err err =
        cql_read_both(self->cql, self->arena, self->bucket, &self->place, &now, &head, error);
    if (err != FGW_OK || head.state != CQL_LIVE) {
        self->done = err == FGW_OK;
        return err;
    }
    bool null = self->version.kind == FGW_VERSION_NULL;
    bool is_head =
        null ? head.object.is_null
             : !head.object.is_null && fgw_id_eq(&head.object.version_id, &self->version.id);
    if (is_head) {
        return delete_head(self, &head, error);
    }
    struct fgw_id id = null ? head.more.null_version : self->version.id;
    if (fgw_id_is_zero(&id)) {
        self->done = true;
        return FGW_OK;
    }
    return delete_noncurrent(self, &head, &id, error);
}

static enum fgw_err delete_version(struct removal *self, struct fgw_error *error)
{
    self->result.version_id = self->version.id;
    self->result.is_null = self->version.kind == FGW_VERSION_NULL;
    for (unsigned attempt = 0; attempt < CQL_ATTEMPTS_MAX; attempt++) {
        if (attempt > 0) {
            cql_back_off(attempt);
        }
        enum fgw_err err = attempt_version(self, error);
        if (err != FGW_OK || self->done) {
            return err;
        }
    }
    return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
}

enum fgw_err cql_object_delete(struct fgw_meta *meta, struct fgw_arena *arena,
                               const struct fgw_bucket *bucket, struct fgw_bytes key,
                               struct fgw_version version, const struct fgw_conditions *conditions,
                               struct fgw_written *out_written, struct fgw_error *error)
{
    struct removal self = {.cql = cql_of(meta),
                           .arena = arena,
                           .bucket = bucket,
                           .place = {&bucket->id, key},
                           .version = version,
                           .conditions = conditions};
    enum fgw_err err = version.kind == FGW_VERSION_LATEST ? delete_latest(&self, error)
                                                          : delete_version(&self, error);
    if (err == FGW_OK) {
        *out_written = self.result;
    }
    return cql_fail(error, err, "deleting object", key);
}
