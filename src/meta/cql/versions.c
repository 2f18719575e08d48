/* versions.c: rows of object_versions, and the deletion of a key's current version, which takes
 * several conditional writes that anybody may carry on (design/metadata.md section 4):
 *
 *   head live(v) -> deleting(v)      nobody replaces it without finishing this first
 *   row of v     any -> gone         because a writer that paused after reading the head must not
 *                                    bring v back by its copy
 *   newest row   live -> promoting   because it must not be deleted meanwhile
 *   head deleting -> live(that row's version), or gone when there is none
 *   row          promoting -> moved
 *
 * A claim names the rev of the head that is deleting. Somebody who was slow may claim a row for a
 * deletion that is over: a promoting row below a head that is live, read after the row, is a live
 * one, and the next deletion claims it anew.
 *
 * A row's copy of a head carries the head's rev: equal revs mean equal contents, so a copy that is
 * left from a writer that came to nothing is recognised as good or as outdated.
 */
#include "meta/cql/cql_internal.h"

/* Not the head's own copy, and not a null version that was replaced: the row of such a one may be
 * left, and only the head says which null version there is. */
static bool belongs_below(const struct cql_row *head, const struct cql_row *version)
{
    const struct fgw_id *id = &version->object.version_id;
    return cql_row_shown(head) && !fgw_id_eq(&head->object.version_id, id) &&
           (!version->object.is_null || fgw_id_eq(&head->more.null_version, id));
}

bool cql_version_shown(const struct cql_row *head, const struct cql_row *version)
{
    return version->state == CQL_LIVE && belongs_below(head, version);
}

enum fgw_err cql_version_settle(struct cql *cql, struct fgw_arena *arena,
                                const struct cql_place *place, struct cql_row *head,
                                struct cql_row *version, bool *out_again, struct fgw_error *error)
{
    if (version->state != CQL_PROMOTING && version->state != CQL_MOVED) {
        return FGW_OK;
    }
    enum fgw_err err = cql_head_read(cql, arena, place, true, head, error);
    if (err == FGW_OK && head->state == CQL_DELETING) {
        *out_again = true;
        return cql_finish_delete(cql, arena, place, head, error);
    }
    bool is_head = fgw_id_eq(&head->object.version_id, &version->object.version_id);
    if (err != FGW_OK || is_head || !belongs_below(head, version)) {
        *out_again = is_head;
        return err;
    }
    if (version->state == CQL_MOVED) {
        *out_again = true;
        return FGW_OK;
    }
    version->state = CQL_LIVE;
    memset(&version->more.claim, 0, sizeof version->more.claim);
    return FGW_OK;
}

/* -- keeping the old head ------------------------------------------------------------------------ */

/* Looks at a row that refused the copy. *out_settled: nothing more to write. */
static enum fgw_err look_at_copy(struct cql *cql, struct fgw_arena *arena,
                                 const struct cql_place *place, const struct cql_row *head,
                                 struct cql_row *out_row, bool *out_settled, bool *out_again,
                                 struct fgw_error *error)
{
    struct cql_row now = {0};
    enum fgw_err err =
        cql_version_read(cql, arena, place, &head->object.version_id, true, out_row, error);
    if (err != FGW_OK || out_row->state == CQL_ABSENT) {
        return err;
    }
    if (out_row->state == CQL_LIVE && fgw_id_eq(&out_row->object.rev, &head->object.rev)) {
        *out_settled = true;
        return FGW_OK;
    }
    /* only after the row was read: while the head is still the one we copy, the row can be nothing
     * but an outdated copy, or what a promotion left */
    err = cql_head_read(cql, arena, place, true, &now, error);
    if (err == FGW_OK) {
        *out_again = out_row->state == CQL_GONE || now.state != CQL_LIVE ||
                     !fgw_id_eq(&now.object.rev, &head->object.rev);
    }
    return err;
}

enum fgw_err cql_version_keep(struct cql *cql, struct fgw_arena *arena,
                              const struct cql_place *place, const struct cql_row *head,
                              bool *out_again, struct fgw_error *error)
{
    struct cql_row seen = {.state = CQL_ABSENT};
    struct cql_row copy = *head;
    memset(&copy.more.null_version, 0, sizeof copy.more.null_version);
    memset(&copy.more.claim, 0, sizeof copy.more.claim);
    struct cql_swap swap = {
        .place = place, .version_id = &head->object.version_id, .seen = &seen, .next = &copy};
    for (unsigned attempt = 0; attempt < CQL_ATTEMPTS_MAX; attempt++) {
        enum cql_outcome outcome = CQL_UNSURE;
        bool settled = false;
        bool again = false;
        enum fgw_err err = cql_version_write(cql, &swap, &outcome, error);
        if (err != FGW_OK || outcome == CQL_APPLIED) {
            return err;
        }
        err = look_at_copy(cql, arena, place, head, &seen, &settled, &again, error);
        if (err != FGW_OK || settled) {
            return err;
        }
        if (again) {
            *out_again = true;
            return FGW_OK;
        }
        cql_back_off(attempt);
    }
    return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
}

/* -- gone rows ----------------------------------------------------------------------------------- */

enum fgw_err cql_version_drop(struct cql *cql, struct fgw_arena *arena,
                              const struct cql_place *place, const struct fgw_id *id,
                              struct fgw_error *error)
{
    for (unsigned attempt = 0; attempt < CQL_ATTEMPTS_MAX; attempt++) {
        struct cql_row row = {0};
        struct cql_row gone;
        bool applied = false;
        enum fgw_err err = cql_version_read(cql, arena, place, id, false, &row, error);
        if (err != FGW_OK || row.state == CQL_ABSENT || row.state == CQL_GONE) {
            return err;
        }
        cql_row_bury(&row, &gone);
        struct cql_swap swap = {.place = place, .version_id = id, .seen = &row, .next = &gone};
        err = cql_row_swap(cql, arena, &swap, &applied, error);
        if (err == FGW_OK && applied) {
            cql_release(cql, place, &row.object);
        }
        if (err != FGW_OK || applied) {
            return err;
        }
        cql_back_off(attempt);
    }
    return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
}

/* The row of the version that is being deleted becomes gone, made if there is none. */
static enum fgw_err bury_version(struct cql *cql, struct fgw_arena *arena,
                                 const struct cql_place *place, const struct cql_row *head,
                                 struct fgw_error *error)
{
    struct cql_row seen = {.state = CQL_ABSENT};
    for (unsigned attempt = 0; attempt < CQL_ATTEMPTS_MAX; attempt++) {
        struct cql_row gone;
        bool applied = false;
        cql_row_bury(head, &gone);
        struct cql_swap swap = {
            .place = place, .version_id = &head->object.version_id, .seen = &seen, .next = &gone};
        enum fgw_err err = cql_row_swap(cql, arena, &swap, &applied, error);
        if (err != FGW_OK || applied) {
            return err;
        }
        err = cql_version_read(cql, arena, place, &head->object.version_id, true, &seen, error);
        if (err != FGW_OK || seen.state == CQL_GONE) {
            return err;
        }
        cql_back_off(attempt);
    }
    return fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
}

/* -- promotion ----------------------------------------------------------------------------------- */

/* The newest row below the head, live or claimed by whatever deletion; CQL_ABSENT when there is none. */
static enum fgw_err find_successor(struct cql *cql, struct fgw_arena *arena,
                                   const struct cql_place *place, const struct cql_row *head,
                                   struct cql_row *out_row, struct fgw_error *error)
{
    struct cql_key_rows rows;
    enum fgw_err err = FGW_OK;
    cql_key_rows_init(&rows, cql, place, 20);
    rows.full = true;
    *out_row = (struct cql_row){.state = CQL_ABSENT};
    while (err == FGW_OK && out_row->state == CQL_ABSENT) {
        struct cql_row row = {0};
        err = cql_key_rows_next(&rows, error);
        if (err == FGW_OK) {
            err = cql_row_decode(arena, place->key, rows.result, FGW_ROW_FULL, &row);
        }
        if (err == FGW_OK && (row.state == CQL_LIVE || row.state == CQL_PROMOTING) &&
            belongs_below(head, &row)) {
            *out_row = row;
        }
    }
    cql_key_rows_deinit(&rows);
    return err == FGW_ERR_NOT_FOUND ? FGW_OK : err;
}

static enum fgw_err swap_version(struct cql *cql, struct fgw_arena *arena,
                                 const struct cql_place *place, const struct cql_row *seen,
                                 struct cql_row *next, bool *out_applied, struct fgw_error *error)
{
    struct cql_swap swap = {
        .place = place, .version_id = &seen->object.version_id, .seen = seen, .next = next};
    memset(&next->object.rev, 0, sizeof next->object.rev);
    return cql_row_swap(cql, arena, &swap, out_applied, error);
}

/* Claims `row` for the deletion of `head`; *out_claimed false: it changed, look again. */
static enum fgw_err claim(struct cql *cql, struct fgw_arena *arena, const struct cql_place *place,
                          const struct cql_row *head, struct cql_row *row, bool *out_claimed,
                          struct fgw_error *error)
{
    if (row->state == CQL_PROMOTING && fgw_id_eq(&row->more.claim, &head->object.rev)) {
        *out_claimed = true;
        return FGW_OK;
    }
    struct cql_row claimed = *row;
    claimed.state = CQL_PROMOTING;
    claimed.more.claim = head->object.rev;
    enum fgw_err err = swap_version(cql, arena, place, row, &claimed, out_claimed, error);
    if (err == FGW_OK && *out_claimed) {
        *row = claimed;
    }
    return err;
}

/* A claim that came too late is taken back: readers see through it, at the price of a round. */
static void give_back(struct cql *cql, struct fgw_arena *arena, const struct cql_place *place,
                      const struct cql_row *claimed)
{
    struct cql_row live = *claimed;
    bool applied = false;
    live.state = CQL_LIVE;
    memset(&live.more.claim, 0, sizeof live.more.claim);
    enum fgw_err ignored = swap_version(cql, arena, place, claimed, &live, &applied, NULL);
    (void)ignored;
}

static enum fgw_err replace_deleting(struct cql *cql, struct fgw_arena *arena,
                                     const struct cql_place *place, const struct cql_row *head,
                                     struct cql_row *successor, struct fgw_error *error)
{
    struct cql_row next;
    bool applied = false;
    bool none = successor->state == CQL_ABSENT;
    if (none) {
        cql_row_bury(head, &next);
    } else {
        next = *successor;
        next.state = CQL_LIVE;
        memset(&next.object.rev, 0, sizeof next.object.rev);
        memset(&next.more, 0, sizeof next.more);
        if (!next.object.is_null) {
            next.more.null_version = head->more.null_version;
        }
    }
    struct cql_swap swap = {.place = place, .seen = head, .next = &next};
    enum fgw_err err = cql_row_swap(cql, arena, &swap, &applied, error);
    if (err != FGW_OK || !applied) {
        return err;
    }
    cql_release(cql, place, &head->object);
    if (!none) {
        struct cql_row moved;
        cql_row_bury(successor, &moved);
        moved.state = CQL_MOVED;
        /* when this does not come about, the row stays promoting below a head of its own version,
         * where it does not count */
        enum fgw_err ignored = swap_version(cql, arena, place, successor, &moved, &applied, NULL);
        (void)ignored;
    }
    return FGW_OK;
}

enum fgw_err cql_finish_delete(struct cql *cql, struct fgw_arena *arena,
                               const struct cql_place *place, const struct cql_row *head,
                               struct fgw_error *error)
{
    enum fgw_err err = bury_version(cql, arena, place, head, error);
    for (unsigned attempt = 0; err == FGW_OK && attempt < CQL_ATTEMPTS_MAX; attempt++) {
        struct cql_row now = {0};
        struct cql_row successor;
        bool claimed = false;
        err = find_successor(cql, arena, place, head, &successor, error);
        if (err == FGW_OK && successor.state != CQL_ABSENT) {
            err = claim(cql, arena, place, head, &successor, &claimed, error);
        }
        if (err == FGW_OK && (claimed || successor.state == CQL_ABSENT)) {
            err = replace_deleting(cql, arena, place, head, &successor, error);
        }
        if (err == FGW_OK) {
            err = cql_head_read(cql, arena, place, true, &now, error);
        }
        if (err == FGW_OK &&
            (now.state != CQL_DELETING || !fgw_id_eq(&now.object.rev, &head->object.rev))) {
            if (claimed && !fgw_id_eq(&now.object.version_id, &successor.object.version_id)) {
                give_back(cql, arena, place, &successor);
            }
            return FGW_OK;
        }
        cql_back_off(attempt);
    }
    return err != FGW_OK ? err : fgw_error_set(error, FGW_ERR_SLOW_DOWN, NULL);
}
