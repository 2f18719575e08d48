/* op_delete_objects.c: DeleteObjects: up to 1,000 deletes in one request, several at a time so that
 * they share commits. Errors of single keys stay inside the 200. spec/s3-wire.md 5.52. */
#include "base/timefmt.h"
#include "event/fiber.h"
#include "s3/answer.h"
#include "s3/body.h"
#include "s3/engine_internal.h"
#include "s3/etag.h"
#include "s3/object_delete.h"
#include "s3/op.h"
#include "s3/xml_read.h"
#include "s3/xml_write.h"

enum {
    MAX_KEYS = 1000,
    MAX_ELEMENTS = 10 * MAX_KEYS,
    MAX_AT_A_TIME = 32,
    ANSWER_MAX_BYTES = 16 * 1024 * 1024
};

struct deletion {
    struct fgw_s3_deletion object;
    struct fgw_bytes version_text; /* as sent; ptr NULL: none */
    enum fgw_err err;
    const char *message; /* of err */
};

struct batch {
    struct fgw_s3_request *request;
    struct deletion *deletions;
    size_t count;
    size_t next; /* not yet taken by a fiber */
    bool quiet;
    struct fgw_wait wait;
};

/* -- reading the request --------------------------------------------------------------------- */

static void fail(struct deletion *deletion, enum fgw_err err)
{
    deletion->err = err;
    deletion->message = fgw_err_text(err);
}

static void read_version(const struct fgw_xml_node *node, struct deletion *deletion)
{
    struct fgw_bytes text = fgw_xml_child_text(node, "VersionId");
    if (text.len == 0) {
        return;
    }
    deletion->version_text = text;
    deletion->object.version.kind =
        fgw_bytes_eq_str(text, "null") ? FGW_VERSION_NULL : FGW_VERSION_ID;
    if (deletion->object.version.kind == FGW_VERSION_ID &&
        fgw_id_parse(text, &deletion->object.version.id) != FGW_OK) {
        fail(deletion, FGW_ERR_NO_SUCH_VERSION);
    }
}

static enum fgw_err read_conditions(const struct fgw_xml_node *node,
                                    struct fgw_conditions *conditions)
{
    struct fgw_bytes etag = fgw_xml_child_text(node, "ETag");
    struct fgw_bytes time = fgw_xml_child_text(node, "LastModifiedTime");
    struct fgw_bytes size = fgw_xml_child_text(node, "Size");
    if (etag.len > 0) {
        struct fgw_bytes bare = fgw_s3_etag_bare(etag, NULL);
        conditions->if_match_any = fgw_bytes_eq_str(bare, "*");
        conditions->if_match = conditions->if_match_any ? FGW_LIT("") : bare;
    }
    if (time.len > 0) {
        if (fgw_time_parse_http(time, &conditions->if_match_mtime_ms) != FGW_OK &&
            fgw_time_parse_iso8601(time, &conditions->if_match_mtime_ms) != FGW_OK) {
            return FGW_ERR_MALFORMED_XML;
        }
        conditions->has_if_match_mtime = true;
    }
    if (size.len > 0) {
        if (fgw_bytes_to_u64(size, &conditions->if_match_size) != FGW_OK) {
            return FGW_ERR_MALFORMED_XML;
        }
        conditions->has_if_match_size = true;
    }
    return FGW_OK;
}

static enum fgw_err read_object(const struct fgw_xml_node *node, struct deletion *deletion)
{
    deletion->object.key = fgw_xml_child_text(node, "Key");
    if (deletion->object.key.len == 0) {
        return FGW_ERR_MALFORMED_XML;
    }
    if (deletion->object.key.len > FGW_META_KEY_MAX) {
        fail(deletion, FGW_ERR_KEY_TOO_LONG);
    }
    read_version(node, deletion);
    return read_conditions(node, &deletion->object.conditions);
}

static enum fgw_err read_batch(struct batch *batch, const struct fgw_xml_node *root)
{
    for (const struct fgw_xml_node *node = root->first_child; node != NULL; node = node->next) {
        if (fgw_xml_is(node, "Quiet")) {
            batch->quiet = fgw_bytes_ieq_str(fgw_bytes_trim(node->text), "true");
            continue;
        }
        if (!fgw_xml_is(node, "Object") || batch->count == MAX_KEYS ||
            read_object(node, &batch->deletions[batch->count]) != FGW_OK) {
            return FGW_ERR_MALFORMED_XML;
        }
        batch->count++;
    }
    return batch->count == 0 ? FGW_ERR_MALFORMED_XML : FGW_OK;
}

static enum fgw_err read_request(struct batch *batch)
{
    struct fgw_s3_request *request = batch->request;
    struct fgw_xml_node *root = NULL;
    struct fgw_buf body;
    fgw_buf_init(&body, FGW_S3_XML_LARGE_MAX);
    enum fgw_err err = fgw_s3_body_collect(request, FGW_S3_XML_LARGE_MAX, true, &body);
    if (err == FGW_OK) {
        batch->deletions = fgw_arena_zalloc(request->arena, MAX_KEYS * sizeof *batch->deletions);
        if (fgw_xml_parse(request->arena, fgw_buf_bytes(&body), "Delete", MAX_ELEMENTS, &root) !=
                FGW_OK ||
            read_batch(batch, root) != FGW_OK) {
            err = fgw_error_set(&request->error, FGW_ERR_MALFORMED_XML, NULL);
        }
    }
    fgw_buf_deinit(&body);
    return err;
}

/* -- deleting --------------------------------------------------------------------------------- */

/* own: the request with the calling fiber's arena. */
static void delete_one(struct batch *batch, struct fgw_s3_request *own, struct deletion *deletion)
{
    struct fgw_error error;
    fgw_error_init(&error);
    fgw_fiber_set_patience(own->s3->database_wait_ms);
    enum fgw_err err = fgw_s3_object_delete(own, &deletion->object, &error);
    if (err == FGW_OK) {
        return;
    }
    deletion->err = err;
    deletion->message =
        error.code == err
            ? fgw_arena_strdup(batch->request->arena, fgw_bytes_str(fgw_error_message(&error)))
            : fgw_err_text(err);
}

static void delete_some(void *arg)
{
    struct batch *batch = arg;
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    /* metadata backends use the arena on threads of their own while the other fibers go on */
    struct fgw_s3_request *own = fgw_arena_alloc(&arena, sizeof *own);
    *own = *batch->request;
    own->arena = &arena;
    while (batch->next < batch->count) {
        struct deletion *deletion = &batch->deletions[batch->next++];
        if (deletion->err == FGW_OK) {
            delete_one(batch, own, deletion);
        }
    }
    fgw_arena_deinit(&arena);
    fgw_wait_signal(&batch->wait);
}

static void delete_all(struct batch *batch)
{
    unsigned fibers = batch->count < MAX_AT_A_TIME ? (unsigned)batch->count : MAX_AT_A_TIME;
    fgw_wait_init(&batch->wait, fibers);
    for (unsigned i = 0; i < fibers; i++) {
        fgw_fiber_spawn(fgw_loop_current(), delete_some, batch);
    }
    fgw_wait_for(&batch->wait);
}

/* -- the answer ------------------------------------------------------------------------------- */

static void write_version(struct fgw_buf *out, const char *name, const struct fgw_written *written)
{
    char text[33] = "null";
    if (!written->is_null) {
        fgw_id_hex(&written->version_id, text);
    }
    fgw_xml_text(out, name, fgw_bytes_str(text));
}

static void write_deleted(const struct batch *batch, const struct deletion *deletion,
                          struct fgw_buf *out)
{
    fgw_xml_open(out, "Deleted");
    fgw_xml_text(out, "Key", deletion->object.key);
    if (deletion->version_text.len > 0) {
        fgw_xml_text(out, "VersionId", deletion->version_text);
    }
    bool versioned = batch->request->bucket.versioning != FGW_VERSIONING_NEVER;
    if (versioned && deletion->object.written.delete_marker) {
        fgw_xml_bool(out, "DeleteMarker", true);
        write_version(out, "DeleteMarkerVersionId", &deletion->object.written);
    }
    fgw_xml_close(out, "Deleted");
}

static void write_error(const struct deletion *deletion, struct fgw_buf *out)
{
    fgw_xml_open(out, "Error");
    fgw_xml_text(out, "Key", deletion->object.key);
    if (deletion->version_text.len > 0) {
        fgw_xml_text(out, "VersionId", deletion->version_text);
    }
    fgw_xml_text(out, "Code", fgw_bytes_str(fgw_err_s3_code(deletion->err)));
    fgw_xml_text(out, "Message", fgw_bytes_str(deletion->message));
    fgw_xml_close(out, "Error");
}

static enum fgw_err answer(const struct batch *batch)
{
    struct fgw_buf out;
    fgw_buf_init(&out, ANSWER_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "DeleteResult");
    for (size_t i = 0; i < batch->count; i++) {
        const struct deletion *deletion = &batch->deletions[i];
        if (deletion->err != FGW_OK) {
            write_error(deletion, &out);
        } else if (!batch->quiet) {
            write_deleted(batch, deletion, &out);
        }
    }
    fgw_xml_close(&out, "DeleteResult");
    enum fgw_err err = fgw_s3_answer_xml(batch->request, &out);
    fgw_buf_deinit(&out);
    return err;
}

enum fgw_err fgw_s3_op_delete_objects(struct fgw_s3_request *request)
{
    struct batch *batch = fgw_arena_zalloc(request->arena, sizeof *batch);
    batch->request = request;
    enum fgw_err err = read_request(batch);
    if (err != FGW_OK) {
        return err;
    }
    delete_all(batch);
    return answer(batch);
}
