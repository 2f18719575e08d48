/* conditions.c: If-Match and If-None-Match of writes. See meta.h; spec/s3-wire.md items 50, 51. */
#include "meta/meta.h"

bool fgw_conditions_any(const struct fgw_conditions *c)
{
    return c->if_none_match_any || c->if_match_any || c->if_none_match.len > 0 ||
           c->if_match.len > 0 || c->has_if_match_mtime || c->has_if_match_size;
}

static enum fgw_err refused(struct fgw_error *error, const char *condition)
{
    (void)fgw_error_set(error, FGW_ERR_PRECONDITION_FAILED, NULL);
    fgw_error_add(error, "Condition", "%s", condition);
    return FGW_ERR_PRECONDITION_FAILED;
}

enum fgw_err fgw_conditions_check(const struct fgw_conditions *c, const struct fgw_object *existing,
                                  struct fgw_error *error)
{
    if (c->if_none_match_any && existing != NULL) {
        return refused(error, "If-None-Match");
    }
    if (c->if_none_match.len > 0 && existing != NULL &&
        fgw_bytes_eq(c->if_none_match, existing->etag)) {
        return refused(error, "If-None-Match");
    }
    bool needs_existing =
        c->if_match_any || c->if_match.len > 0 || c->has_if_match_mtime || c->has_if_match_size;
    if (needs_existing && existing == NULL) {
        return fgw_error_set(error, FGW_ERR_NO_SUCH_KEY, NULL);
    }
    if (c->if_match.len > 0 && !fgw_bytes_eq(c->if_match, existing->etag)) {
        return refused(error, "If-Match");
    }
    /* the header carries whole seconds */
    if (c->has_if_match_mtime && existing->mtime_ms / 1000 != c->if_match_mtime_ms / 1000) {
        return refused(error, "x-amz-if-match-last-modified-time");
    }
    if (c->has_if_match_size && existing->size != c->if_match_size) {
        return refused(error, "x-amz-if-match-size");
    }
    return FGW_OK;
}
