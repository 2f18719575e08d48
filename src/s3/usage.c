/* usage.c: see usage.h. */
#include "s3/usage.h"

#include "event/fiber.h"

enum { PAGE = 1000 };

struct walk {
    struct fgw_meta *meta;
    const struct fgw_bucket *bucket;
    bool (*stopping)(void *context);
    void *context;
    struct fgw_arena arena; /* of one page */
    struct fgw_arena inner; /* of one upload's parts */
    struct fgw_buf after;   /* the last key of the page before */
    struct fgw_s3_usage usage;
    struct fgw_error *error;
};

/* Before each page: requests of this loop go first. */
static bool is_stopping(const struct walk *walk)
{
    fgw_fiber_yield();
    return walk->stopping != NULL && walk->stopping(walk->context);
}

static void remember(struct walk *walk, struct fgw_bytes key)
{
    fgw_buf_clear(&walk->after);
    (void)fgw_buf_append(&walk->after, key);
}

static void add_page(struct walk *walk, const struct fgw_object_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct fgw_object *object = &list->entries[i].object;
        walk->usage.bytes += object->size;
        walk->usage.objects += !object->delete_marker;
    }
}

/* A bucket that never had versions is read by the cheaper list. */
static enum fgw_err count_objects(struct walk *walk)
{
    const struct fgw_meta_ops *ops = walk->meta->ops;
    struct fgw_list_query query = {.max = PAGE};
    struct fgw_object_list list = {.truncated = true};
    bool versions = walk->bucket->versioning != FGW_VERSIONING_NEVER;
    while (list.truncated) {
        if (is_stopping(walk)) {
            return FGW_ERR_CANCELLED;
        }
        fgw_arena_reset(&walk->arena);
        query.after = fgw_buf_bytes(&walk->after);
        enum fgw_err err = versions ? ops->version_list(walk->meta, &walk->arena, walk->bucket,
                                                        &query, &list, walk->error)
                                    : ops->object_list(walk->meta, &walk->arena, walk->bucket,
                                                       &query, &list, walk->error);
        if (err != FGW_OK || list.count == 0) {
            return err;
        }
        add_page(walk, &list);
        const struct fgw_object *last = &list.entries[list.count - 1].object;
        remember(walk, last->key);
        query.has_after_version = versions;
        query.after_version = (struct fgw_version){FGW_VERSION_ID, last->version_id};
    }
    return FGW_OK;
}

static enum fgw_err count_parts(struct walk *walk, const struct fgw_upload *upload)
{
    struct fgw_part *parts;
    size_t count;
    bool truncated;
    fgw_arena_reset(&walk->inner);
    enum fgw_err err = walk->meta->ops->part_list(walk->meta, &walk->inner, upload, 0, 0, false,
                                                  &parts, &count, &truncated, walk->error);
    for (size_t i = 0; err == FGW_OK && i < count; i++) {
        walk->usage.upload_bytes += parts[i].size;
    }
    /* ended since the page was read */
    return err == FGW_ERR_NO_SUCH_UPLOAD ? FGW_OK : err;
}

static enum fgw_err count_uploads(struct walk *walk)
{
    struct fgw_upload_list_query query = {.max = PAGE};
    struct fgw_upload_list list = {.truncated = true};
    fgw_buf_clear(&walk->after);
    while (list.truncated) {
        fgw_arena_reset(&walk->arena);
        query.key_marker = fgw_buf_bytes(&walk->after);
        enum fgw_err err = walk->meta->ops->upload_list(walk->meta, &walk->arena, walk->bucket,
                                                        &query, &list, walk->error);
        for (size_t i = 0; err == FGW_OK && i < list.count; i++) {
            err =
                is_stopping(walk) ? FGW_ERR_CANCELLED : count_parts(walk, &list.entries[i].upload);
        }
        if (err != FGW_OK || list.count == 0) {
            return err;
        }
        const struct fgw_upload *last = &list.entries[list.count - 1].upload;
        remember(walk, last->key);
        query.has_upload_id_marker = true;
        query.upload_id_marker = last->id;
    }
    return FGW_OK;
}

enum fgw_err fgw_s3_usage_count(struct fgw_meta *meta, const struct fgw_bucket *bucket,
                                bool (*stopping)(void *context), void *context,
                                struct fgw_s3_usage *out_usage, struct fgw_error *error)
{
    struct walk walk = {
        .meta = meta, .bucket = bucket, .stopping = stopping, .context = context, .error = error};
    fgw_arena_init(&walk.arena, 0);
    fgw_arena_init(&walk.inner, 0);
    fgw_buf_init(&walk.after, FGW_META_KEY_MAX);
    enum fgw_err err = count_objects(&walk);
    if (err == FGW_OK) {
        err = count_uploads(&walk);
    }
    fgw_buf_deinit(&walk.after);
    fgw_arena_deinit(&walk.inner);
    fgw_arena_deinit(&walk.arena);
    if (err == FGW_OK) {
        *out_usage = walk.usage;
    }
    return err;
}
