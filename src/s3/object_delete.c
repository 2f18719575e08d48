/* object_delete.c: see object_delete.h. */
#include "s3/object_delete.h"

#include "s3/engine_internal.h"

static bool is_marker(struct fgw_s3_request *request, const struct fgw_s3_deletion *deletion)
{
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_object object;
    struct fgw_error ignored;
    fgw_error_init(&ignored);
    return meta->ops->object_get(meta, request->arena, &request->bucket, deletion->key,
                                 deletion->version, &object, &ignored) == FGW_OK &&
           object.delete_marker;
}

enum fgw_err fgw_s3_object_delete(struct fgw_s3_request *request, struct fgw_s3_deletion *deletion,
                                  struct fgw_error *error)
{
    struct fgw_meta *meta = request->s3->meta;
    const struct fgw_conditions *conditions = &deletion->conditions;
    enum fgw_err err =
        meta->ops->object_delete(meta, request->arena, &request->bucket, deletion->key,
                                 deletion->version, conditions, &deletion->written, error);
    bool absent = err == FGW_ERR_NO_SUCH_KEY || err == FGW_ERR_NO_SUCH_VERSION;
    bool nothing = absent || (err == FGW_OK && !deletion->written.delete_marker &&
                              !deletion->written.removed_version);
    if (!nothing) {
        return err;
    }
    bool of_content = conditions->if_match.len > 0 || conditions->has_if_match_size ||
                      conditions->has_if_match_mtime;
    if (of_content && is_marker(request, deletion)) {
        (void)fgw_error_set(error, FGW_ERR_PRECONDITION_FAILED, NULL);
        fgw_error_add(error, "Condition", "If-Match");
        return FGW_ERR_PRECONDITION_FAILED;
    }
    deletion->missing = absent;
    return FGW_OK;
}
