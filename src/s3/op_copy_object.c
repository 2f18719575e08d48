/* op_copy_object.c: CopyObject. Moves no bytes where the store grants new holds on the blobs it has.
 * The copy keeps ETag and checksum of its source, but not its table of parts; it is one version of
 * its own with holds of its own. spec/s3-wire.md 5.53 to 5.55; public bug reports B61 to B63. */
#include "s3/answer.h"
#include "s3/checksum.h"
#include "s3/conditions.h"
#include "s3/copy.h"
#include "s3/engine_internal.h"
#include "s3/headers.h"
#include "s3/late.h"
#include "s3/multipart.h"
#include "s3/object_info.h"
#include "s3/op.h"
#include "s3/staging.h"
#include "s3/xml_write.h"

enum { DOCUMENT_MAX_BYTES = 16 * 1024 };
static const char REDIRECT[] = "x-amz-website-redirect-location";

struct copying {
    struct fgw_s3_source source;
    bool replace_headers;
    bool replace_tags;
    enum fgw_checksum want_checksum; /* another one than the source has */
    struct fgw_put put;
    struct fgw_written written;
};

/* -- what is asked for ------------------------------------------------------------------------ */

static enum fgw_err read_directive(struct fgw_s3_request *request, const char *header,
                                   bool *out_replace)
{
    struct fgw_bytes text = fgw_s3_header(request, header);
    *out_replace = fgw_bytes_eq_str(text, "REPLACE");
    if (text.ptr == NULL || *out_replace || fgw_bytes_eq_str(text, "COPY")) {
        return FGW_OK;
    }
    return fgw_s3_bad_argument(request, header, text, "Unknown directive.");
}

static enum fgw_err read_algorithm(struct fgw_s3_request *request, enum fgw_checksum *out_algorithm)
{
    struct fgw_bytes name = fgw_s3_header(request, "x-amz-checksum-algorithm");
    *out_algorithm = fgw_s3_checksum_by_name(name);
    if (name.ptr == NULL || *out_algorithm != FGW_CHECKSUM_NONE) {
        return FGW_OK;
    }
    return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                         "Checksum algorithm provided is unsupported. Please try again with any of "
                         "the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]");
}

/* Metadata as the source has it; where a website redirects to belongs to one object and is only
 * ever taken from the request (AWS). */
static void keep_headers(struct fgw_s3_request *request, const struct fgw_object *source,
                         struct fgw_object *object)
{
    struct fgw_meta_pair *pairs =
        fgw_arena_alloc(request->arena, (source->header_count + 1) * sizeof *pairs);
    size_t count = 0;
    for (size_t i = 0; i < source->header_count; i++) {
        if (!fgw_bytes_eq_str(source->headers[i].name, REDIRECT)) {
            pairs[count++] = source->headers[i];
        }
    }
    struct fgw_bytes redirect = fgw_s3_header(request, REDIRECT);
    if (redirect.len > 0) {
        pairs[count++] = (struct fgw_meta_pair){fgw_bytes_str(REDIRECT), redirect};
    }
    object->headers = pairs;
    object->header_count = count;
}

static enum fgw_err take_headers(struct fgw_s3_request *request, struct copying *copying)
{
    const struct fgw_object *source = &copying->source.object;
    struct fgw_object *object = &copying->put.object;
    enum fgw_err err = fgw_s3_collect_headers(request, object);
    if (err != FGW_OK) {
        return err;
    }
    if (!copying->replace_headers) {
        keep_headers(request, source, object);
    }
    if (!copying->replace_tags) {
        object->tags = source->tags;
        object->tag_count = source->tag_count;
    }
    return FGW_OK;
}

/* An object copied onto itself must change in something. */
static enum fgw_err check_self(struct fgw_s3_request *request, const struct copying *copying)
{
    const struct fgw_s3_source *source = &copying->source;
    bool changes = copying->replace_headers || fgw_s3_header(request, REDIRECT).ptr != NULL ||
                   fgw_s3_header(request, "x-amz-storage-class").ptr != NULL;
    bool names_version = fgw_bytes_find(fgw_s3_header(request, "x-amz-copy-source"),
                                        FGW_LIT("?versionId="), 0) != SIZE_MAX;
    if (changes || names_version || !fgw_id_eq(&source->bucket.id, &request->bucket.id) ||
        !fgw_bytes_eq(source->object.key, request->key)) {
        return FGW_OK;
    }
    return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                         "This copy request is illegal because it is trying to copy an object to "
                         "itself without changing the object's metadata, storage class, website "
                         "redirect location or encryption attributes.");
}

static enum fgw_err plan(struct fgw_s3_request *request, struct copying *copying)
{
    enum fgw_err err =
        read_directive(request, "x-amz-metadata-directive", &copying->replace_headers);
    if (err == FGW_OK) {
        err = read_directive(request, "x-amz-tagging-directive", &copying->replace_tags);
    }
    if (err == FGW_OK) {
        err = read_algorithm(request, &copying->want_checksum);
    }
    if (err == FGW_OK) {
        err = fgw_s3_write_conditions(request, &copying->put.conditions);
    }
    if (err == FGW_OK) {
        err = fgw_s3_find_source(request, &copying->source);
    }
    if (err == FGW_OK) {
        err = check_self(request, copying);
    }
    if (err == FGW_OK) {
        err = take_headers(request, copying);
    }
    return err == FGW_OK ? fgw_s3_quota_take(request, copying->source.object.size, 1) : err;
}

/* -- copying ---------------------------------------------------------------------------------- */

static enum fgw_err stage_all(struct fgw_s3_request *request, struct copying *copying,
                              bool by_bytes)
{
    const struct fgw_object *source = &copying->source.object;
    struct fgw_put *put = &copying->put;
    struct fgw_storage_owner owner = fgw_s3_owner(request, &put->object.owner_id);
    put->staged =
        fgw_arena_zalloc(request->arena, (source->extent_count + 1) * sizeof *put->staged);
    put->staged_count = 0;
    for (size_t i = 0; i < source->extent_count; i++) {
        enum fgw_err err =
            fgw_s3_copy_extent(request, &source->extents[i], &owner, i, by_bytes, &put->staged[i]);
        if (err != FGW_OK) {
            for (size_t k = 0; k < put->staged_count; k++) {
                fgw_blob_discard(&put->staged[k]);
            }
            return err;
        }
        put->staged_count++;
    }
    return FGW_OK;
}

static void fill_object(struct fgw_s3_request *request, struct copying *copying)
{
    const struct fgw_object *source = &copying->source.object;
    struct fgw_object *object = &copying->put.object;
    object->key = request->key;
    object->size = source->size;
    object->etag = source->etag;
    object->checksum = source->checksum;
    object->creator_id = request->identity.canonical_id;
    object->creator_name = request->identity.display_name;
    object->cid = source->cid;
    object->has_cid = source->has_cid;
    object->canonical_cid = source->canonical_cid;
    fgw_id_random(&object->owner_id);
}

/* A checksum of the whole that the source does not have takes a look at its bytes. */
static enum fgw_err make_checksum(struct fgw_s3_request *request, struct copying *copying)
{
    const struct fgw_object *source = &copying->source.object;
    if (copying->want_checksum == FGW_CHECKSUM_NONE ||
        (copying->want_checksum == source->checksum.algorithm &&
         source->checksum.type == FGW_CHECKSUM_FULL_OBJECT)) {
        return FGW_OK;
    }
    struct fgw_s3_byte_copy copy = {
        .object = source, .range = {0, source->size}, .want_checksum = copying->want_checksum};
    enum fgw_err err = fgw_s3_copy_bytes(request, &copy);
    if (err == FGW_OK) {
        copying->put.object.checksum = copy.checksum;
    }
    return err;
}

static enum fgw_err put_copy(struct fgw_s3_request *request, struct copying *copying, bool by_bytes)
{
    struct fgw_meta *meta = request->s3->meta;
    enum fgw_err err = stage_all(request, copying, by_bytes);
    if (err == FGW_OK) {
        err = meta->ops->object_put(meta, request->arena, &copying->put, &copying->written,
                                    &request->error);
    }
    return err;
}

/* In a fiber of its own, see late.h. */
static enum fgw_err copy(struct fgw_s3_request *request, void *context)
{
    struct copying *copying = context;
    fill_object(request, copying);
    enum fgw_err err = make_checksum(request, copying);
    if (err == FGW_OK) {
        err = put_copy(request, copying, false);
    }
    if (err == FGW_ERR_NOT_FOUND) {
        /* a blob went away between the look and the hold: a reader may still have it */
        fgw_error_init(&request->error);
        fgw_id_random(&copying->put.object.owner_id);
        err = put_copy(request, copying, true);
    }
    return err;
}

static enum fgw_err answer(struct fgw_s3_request *request, const struct copying *copying)
{
    const struct fgw_object *object = &copying->put.object;
    struct fgw_buf out;
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "CopyObjectResult");
    fgw_xml_time(&out, "LastModified", copying->written.mtime_ms);
    fgw_xml_etag(&out, "ETag", object->etag);
    fgw_s3_checksum_elements(&out, &object->checksum, fgw_s3_etag_parts(object->etag));
    fgw_xml_close(&out, "CopyObjectResult");
    fgw_s3_extra_written(request, &copying->written);
    fgw_s3_extra_cid(request, object);
    enum fgw_err err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}

enum fgw_err fgw_s3_op_copy_object(struct fgw_s3_request *request)
{
    struct copying *copying = fgw_arena_zalloc(request->arena, sizeof *copying);
    copying->put.bucket = &request->bucket;
    enum fgw_err err = plan(request, copying);
    if (err != FGW_OK) {
        return err;
    }
    struct fgw_s3_late late;
    fgw_s3_late_begin(&late, request);
    err = fgw_s3_late_run(&late, copy, copying);
    if (err == FGW_OK) {
        err = answer(request, copying);
    }
    fgw_s3_late_end(&late);
    return err;
}
