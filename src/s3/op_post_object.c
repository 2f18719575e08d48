/* op_post_object.c: PostObject: an upload by an HTML form. The fields before the file say where it
 * goes, who sends it and what the policy allows; all of that is judged before the first byte of the
 * file is taken. Fields behind the file are ignored. spec/s3-wire.md 5.82 to 5.84. */
#include "base/clock.h"
#include "base/encode.h"
#include "event/fiber.h"
#include "s3/access.h"
#include "s3/answer.h"
#include "s3/auth.h"
#include "s3/checksum.h"
#include "s3/engine_internal.h"
#include "s3/etag.h"
#include "s3/form.h"
#include "s3/form_policy.h"
#include "s3/headers.h"
#include "s3/object_info.h"
#include "s3/op.h"
#include "s3/staging.h"
#include "s3/tags.h"
#include "s3/xml_write.h"
#include "sigv4/post_policy.h"

enum {
    FIELDS_MAX = 256,
    FIELD_BYTES_MAX = 20 * 1024, /* of all together (AWS) */
    DOCUMENT_MAX_BYTES = 16 * 1024
};

struct post {
    struct fgw_s3_request *request;
    struct fgw_http_request http; /* the form's fields as headers */
    struct fgw_http_header headers[FIELDS_MAX];
    struct fgw_meta_pair fields[FIELDS_MAX + 1]; /* and "bucket" */
    size_t count;
    size_t field_bytes;
    struct fgw_buf value; /* of the field at hand */
    struct fgw_bytes name;
    bool in_file;
    bool has_file;
    struct fgw_s3_form_limits limits;
    struct fgw_s3_checksum_wish wish;
    struct fgw_put put;
    struct fgw_blob_stage *stage;
    struct fgw_digest md5;
    struct fgw_s3_checksummer summer;
    uint64_t size;
};

/* -- fields ----------------------------------------------------------------------------------- */

static struct fgw_bytes field(const struct post *post, const char *name)
{
    for (size_t i = 0; i < post->count; i++) {
        if (fgw_bytes_ieq_str(post->fields[i].name, name)) {
            return post->fields[i].value;
        }
    }
    return (struct fgw_bytes){NULL, 0};
}

static enum fgw_err refuse(struct post *post, enum fgw_err err, const char *message)
{
    return fgw_error_set(&post->request->error, err, "%s", message);
}

static enum fgw_err end_field(struct post *post)
{
    struct fgw_bytes value = fgw_arena_copy(post->request->arena, fgw_buf_bytes(&post->value));
    if (post->count == FIELDS_MAX) {
        return refuse(post, FGW_ERR_MALFORMED_POST, "The form has too many fields.");
    }
    post->fields[post->count++] = (struct fgw_meta_pair){post->name, value};
    return FGW_OK;
}

/* What stands behind the last slash of either kind: browsers have sent whole paths. */
static struct fgw_bytes base_name(struct fgw_bytes path)
{
    size_t at = path.len;
    while (at > 0 && path.ptr[at - 1] != '/' && path.ptr[at - 1] != '\\') {
        at--;
    }
    return fgw_bytes_sub(path, at, SIZE_MAX);
}

static void expand_filename(struct post *post, struct fgw_bytes filename)
{
    static const char VARIABLE[] = "${filename}";
    struct fgw_arena *arena = post->request->arena;
    for (size_t i = 0; i < post->count; i++) {
        struct fgw_bytes *value = &post->fields[i].value;
        size_t at = fgw_bytes_find(*value, fgw_bytes_str(VARIABLE), 0);
        if (at == SIZE_MAX) {
            continue;
        }
        struct fgw_buf text;
        fgw_buf_init(&text, 0);
        (void)fgw_buf_append(&text, fgw_bytes_sub(*value, 0, at));
        (void)fgw_buf_append(&text, filename);
        (void)fgw_buf_append(&text, fgw_bytes_sub(*value, at + sizeof VARIABLE - 1, SIZE_MAX));
        *value = fgw_arena_copy(arena, fgw_buf_bytes(&text));
        fgw_buf_deinit(&text);
    }
}

/* Names of form fields that are headers under another name. */
static struct fgw_bytes header_name(struct fgw_bytes field_name)
{
    return fgw_bytes_ieq_str(field_name, "acl") ? FGW_LIT("x-amz-acl") : field_name;
}

static void become_headers(struct post *post)
{
    for (size_t i = 0; i < post->count; i++) {
        post->headers[i] =
            (struct fgw_http_header){header_name(post->fields[i].name), post->fields[i].value};
    }
    post->http = *post->request->http;
    post->http.headers = post->headers;
    post->http.header_count = post->count;
}

/* -- who, where, may ---------------------------------------------------------------------------- */

static enum fgw_err take_key(struct post *post)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_bytes key = field(post, "key");
    if (key.len == 0) {
        return refuse(post, FGW_ERR_INVALID_ARGUMENT,
                      "Bucket POST must contain a field named 'key'. If it is specified, please "
                      "check the order of the fields.");
    }
    if (key.len > FGW_META_KEY_MAX) {
        return refuse(post, FGW_ERR_KEY_TOO_LONG, "Your key is too long.");
    }
    if (!fgw_utf8_valid(key)) {
        return refuse(post, FGW_ERR_INVALID_ARGUMENT, "The key is not UTF-8.");
    }
    request->key = key;
    request->scope = FGW_S3_OBJECT;
    return FGW_OK;
}

static enum fgw_err check_signature_v4(struct post *post, struct fgw_bytes policy_text)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_sig_post_form form = {.policy = policy_text,
                                     .algorithm = field(post, "x-amz-algorithm"),
                                     .credential = field(post, "x-amz-credential"),
                                     .date = field(post, "x-amz-date"),
                                     .signature = field(post, "x-amz-signature")};
    struct fgw_sig_policy policy = fgw_s3_sig_policy(request);
    struct fgw_bytes access_key;
    struct fgw_bytes secret;
    enum fgw_err err = fgw_sig_post_parse(&form, &policy, &access_key, &request->error);
    if (err == FGW_OK) {
        err = fgw_s3_identify(request, access_key, &secret);
    }
    return err == FGW_OK ? fgw_sig_verify_post_policy(&form, &policy, secret, &request->error)
                         : err;
}

static enum fgw_err check_signature(struct post *post, struct fgw_bytes policy_text)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_bytes access_key = field(post, "AWSAccessKeyId");
    struct fgw_bytes signature = field(post, "signature");
    struct fgw_bytes secret;
    if (field(post, "x-amz-signature").len > 0) {
        return check_signature_v4(post, policy_text);
    }
    if (access_key.len == 0 || signature.len == 0) {
        return refuse(post, FGW_ERR_INVALID_ARGUMENT,
                      "Bucket POST must contain a field named 'AWSAccessKeyId' and a field named "
                      "'signature' when it has a policy.");
    }
    enum fgw_err err = fgw_s3_identify(request, access_key, &secret);
    return err == FGW_OK
               ? fgw_sig_verify_post_policy_v2(policy_text, signature, secret, &request->error)
               : err;
}

static enum fgw_err check_policy(struct post *post)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_bytes text = field(post, "policy");
    if (text.ptr == NULL) {
        bool signs =
            field(post, "signature").ptr != NULL || field(post, "x-amz-signature").ptr != NULL;
        return signs ? refuse(post, FGW_ERR_INVALID_ARGUMENT,
                              "Bucket POST must contain a field named 'policy' when it is signed.")
                     : FGW_OK; /* anonymous: what the bucket allows everybody */
    }
    enum fgw_err err = check_signature(post, text);
    if (err != FGW_OK) {
        request->identity = (struct fgw_s3_identity){0};
        return err;
    }
    /* whatever the form says of it */
    post->fields[post->count] = (struct fgw_meta_pair){FGW_LIT("bucket"), request->bucket_name};
    return fgw_s3_form_policy_check(request->arena, text, post->fields, post->count + 1,
                                    fgw_clock_wall_ms(), &post->limits, &request->error);
}

/* Headers, tags and checksum, as a PUT would have them. */
static enum fgw_err take_object(struct post *post)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_object *object = &post->put.object;
    struct fgw_bytes tagging = field(post, "tagging");
    const struct fgw_http_request *real = request->http;
    become_headers(post);
    request->http = &post->http;
    enum fgw_err err = fgw_s3_collect_headers(request, object);
    if (err == FGW_OK) {
        err = fgw_s3_checksum_wish(request, &post->wish);
    }
    request->http = real;
    if (err == FGW_OK && tagging.len > 0) {
        err = fgw_s3_tags_from_document(request, tagging, FGW_S3_OBJECT_TAGS_MAX, &object->tags,
                                        &object->tag_count);
    }
    return err;
}

static enum fgw_err begin_stage(struct post *post)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_object *object = &post->put.object;
    object->key = request->key;
    object->creator_id = request->identity.canonical_id;
    object->creator_name = request->identity.display_name;
    fgw_id_random(&object->owner_id);
    struct fgw_storage_owner owner = fgw_s3_owner(request, &object->owner_id);
    struct fgw_blob_stage_options options = {.arena = request->arena,
                                             .owner = &owner,
                                             .size_hint = UINT64_MAX,
                                             .replicas = request->bucket.replicas};
    enum fgw_err err = fgw_s3_quota_take(request, 0, 1);
    if (err != FGW_OK) {
        return err;
    }
    fgw_digest_begin(&post->md5, FGW_DIGEST_MD5);
    fgw_s3_checksummer_init(&post->summer, post->wish.algorithm);
    return fgw_blob_stage_begin(request->s3->blobs, &options, &post->stage, &request->error);
}

static enum fgw_err begin_file(struct post *post, struct fgw_bytes filename)
{
    struct fgw_s3_request *request = post->request;
    post->in_file = true;
    post->has_file = true;
    expand_filename(post, base_name(filename));
    enum fgw_err err = take_key(post);
    if (err == FGW_OK) {
        err = check_policy(post);
    }
    if (err == FGW_OK &&
        !fgw_s3_may(&request->identity, &request->bucket, FGW_S3_NEED_BUCKET_WRITE)) {
        err = fgw_s3_deny(request);
    }
    if (err == FGW_OK) {
        err = take_object(post);
    }
    return err == FGW_OK ? begin_stage(post) : err;
}

/* -- the form comes in -------------------------------------------------------------------------- */

static enum fgw_err on_begin(void *context, const struct fgw_form_part *part)
{
    struct post *post = context;
    post->name = part->name;
    fgw_buf_clear(&post->value);
    if (post->has_file || !fgw_bytes_ieq_str(part->name, "file")) {
        return FGW_OK;
    }
    return begin_file(post, part->filename);
}

static enum fgw_err take_file_bytes(struct post *post, struct fgw_bytes bytes)
{
    post->size += bytes.len;
    if (post->size > post->limits.max_bytes) {
        (void)fgw_error_set(&post->request->error, FGW_ERR_ENTITY_TOO_LARGE, NULL);
        fgw_error_add(&post->request->error, "MaxSizeAllowed", "%llu",
                      (unsigned long long)post->limits.max_bytes);
        return FGW_ERR_ENTITY_TOO_LARGE;
    }
    fgw_digest_update(&post->md5, bytes);
    fgw_s3_checksummer_update(&post->summer, bytes);
    enum fgw_err err = fgw_blob_stage_write(post->stage, bytes);
    if (err == FGW_OK) {
        fgw_fiber_yield();
    }
    return err;
}

static enum fgw_err on_data(void *context, struct fgw_bytes bytes)
{
    struct post *post = context;
    if (post->in_file) {
        return take_file_bytes(post, bytes);
    }
    if (post->has_file) {
        return FGW_OK;
    }
    post->field_bytes += bytes.len;
    if (post->field_bytes > FIELD_BYTES_MAX) {
        return refuse(post, FGW_ERR_MAX_POST_PRE_DATA,
                      "Your POST request fields preceding the "
                      "upload file were too large.");
    }
    return fgw_buf_append(&post->value, bytes);
}

static enum fgw_err on_end(void *context)
{
    struct post *post = context;
    if (post->in_file) {
        post->in_file = false;
        return FGW_OK;
    }
    return post->has_file ? FGW_OK : end_field(post);
}

static enum fgw_err read_form(struct post *post, struct fgw_form *form)
{
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK) {
        struct fgw_bytes piece;
        err = fgw_http_body_read(post->request->exchange, &piece);
        if (err == FGW_OK) {
            post->request->body_bytes += piece.len;
            err = fgw_form_feed(form, piece);
        }
    }
    if (err == FGW_ERR_END) {
        err = fgw_form_finish(form);
    }
    if (err == FGW_OK && !post->has_file) {
        err = refuse(post, FGW_ERR_INVALID_ARGUMENT,
                     "POST requires exactly one file upload per request.");
    }
    return err;
}

static enum fgw_err receive(struct post *post)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_form form;
    struct fgw_bytes boundary;
    struct fgw_form_handler handler = {on_begin, on_data, on_end, post};
    if (fgw_form_boundary(request->arena, fgw_s3_header(request, "Content-Type"), &boundary) !=
        FGW_OK) {
        return refuse(post, FGW_ERR_PRECONDITION_FAILED,
                      "Bucket POST must be of the enclosure-type multipart/form-data");
    }
    fgw_form_init(&form, request->arena, boundary, &handler);
    enum fgw_err err = read_form(post, &form);
    fgw_form_deinit(&form);
    return err;
}

/* -- the object --------------------------------------------------------------------------------- */

static enum fgw_err check_bytes(struct post *post)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_object *object = &post->put.object;
    uint8_t md5[FGW_MD5_SIZE];
    fgw_digest_end(&post->md5, md5);
    fgw_s3_checksummer_end(&post->summer, &object->checksum);
    object->etag = fgw_s3_etag_of_md5(request->arena, md5);
    object->size = post->size;
    if (post->size < post->limits.min_bytes) {
        (void)fgw_error_set(&request->error, FGW_ERR_ENTITY_TOO_SMALL, NULL);
        fgw_error_add(&request->error, "MinSizeAllowed", "%llu",
                      (unsigned long long)post->limits.min_bytes);
        return FGW_ERR_ENTITY_TOO_SMALL;
    }
    if (post->wish.has_expected &&
        memcmp(post->wish.expected, object->checksum.bytes, object->checksum.len) != 0) {
        return fgw_error_set(&request->error, FGW_ERR_BAD_DIGEST, NULL);
    }
    return FGW_OK;
}

static enum fgw_err commit(struct post *post, struct fgw_written *out_written)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_meta *meta = request->s3->meta;
    struct fgw_object *object = &post->put.object;
    struct fgw_blob_staged *staged = fgw_arena_zalloc(request->arena, sizeof *staged);
    struct fgw_blob_stage *stage = post->stage;
    enum fgw_err err = check_bytes(post);
    if (err == FGW_OK) {
        err = fgw_s3_quota_take(request, object->size, 0);
    }
    if (err != FGW_OK) {
        return err;
    }
    post->stage = NULL;
    err = fgw_blob_stage_finish(stage, staged);
    if (err != FGW_OK) {
        return err;
    }
    object->extents = &staged->extent;
    object->extent_count = 1;
    object->cid = staged->extent.root;
    object->has_cid = true;
    object->canonical_cid = true;
    post->put.bucket = &request->bucket;
    post->put.staged = staged;
    post->put.staged_count = 1;
    return meta->ops->object_put(meta, request->arena, &post->put, out_written, &request->error);
}

/* -- the answer --------------------------------------------------------------------------------- */

/* The object's own address. */
static struct fgw_bytes location(struct post *post)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_bytes path = request->http->raw_path;
    struct fgw_buf text;
    fgw_buf_init(&text, 0);
    (void)fgw_buf_appendf(&text, "%s://%.*s%.*s%s", request->http->tls ? "https" : "http",
                          FGW_FMT(request->http->host), FGW_FMT(path),
                          fgw_bytes_ends_with(path, FGW_LIT("/")) ? "" : "/");
    (void)fgw_uri_encode(&text, request->key, true);
    struct fgw_bytes copy = fgw_arena_copy(request->arena, fgw_buf_bytes(&text));
    fgw_buf_deinit(&text);
    return copy;
}

/* Where success_action_redirect leads; ptr NULL when there is none that could be followed. */
static struct fgw_bytes redirection(struct post *post)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_bytes target = field(post, "success_action_redirect");
    if (target.ptr == NULL) {
        target = field(post, "redirect"); /* its former name */
    }
    if (!fgw_bytes_starts_with(target, FGW_LIT("http://")) &&
        !fgw_bytes_starts_with(target, FGW_LIT("https://"))) {
        return (struct fgw_bytes){NULL, 0};
    }
    struct fgw_buf text;
    fgw_buf_init(&text, 0);
    (void)fgw_buf_append(&text, target);
    (void)fgw_buf_append_str(&text, fgw_bytes_find_byte(target, '?') == SIZE_MAX ? "?bucket="
                                                                                 : "&bucket=");
    (void)fgw_uri_encode(&text, request->bucket.name, false);
    (void)fgw_buf_append_str(&text, "&key=");
    (void)fgw_uri_encode(&text, request->key, false);
    (void)fgw_buf_appendf(&text, "&etag=%%22%.*s%%22", FGW_FMT(post->put.object.etag));
    struct fgw_bytes copy = fgw_arena_copy(request->arena, fgw_buf_bytes(&text));
    fgw_buf_deinit(&text);
    return copy;
}

static enum fgw_err answer_created(struct post *post)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_buf out;
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_open(&out, "PostResponse");
    fgw_xml_text(&out, "Location", location(post));
    fgw_xml_text(&out, "Bucket", request->bucket.name);
    fgw_xml_text(&out, "Key", request->key);
    fgw_xml_etag(&out, "ETag", post->put.object.etag);
    fgw_xml_close(&out, "PostResponse");
    fgw_s3_start(request, 201, (int64_t)out.len);
    fgw_http_response_header(request->exchange, "Content-Type", FGW_LIT("application/xml"));
    enum fgw_err err = fgw_http_response_write(request->exchange, fgw_buf_bytes(&out));
    fgw_buf_deinit(&out);
    return err == FGW_OK ? fgw_s3_end(request) : err;
}

static enum fgw_err answer(struct post *post, const struct fgw_written *written)
{
    struct fgw_s3_request *request = post->request;
    struct fgw_bytes wanted = field(post, "success_action_status");
    struct fgw_bytes redirect = redirection(post);
    fgw_s3_extra_header(request, "ETag", fgw_s3_etag_quoted(request->arena, post->put.object.etag));
    fgw_s3_extra_header(request, "Location", redirect.ptr != NULL ? redirect : location(post));
    fgw_s3_extra_written(request, written);
    fgw_s3_extra_cid(request, &post->put.object);
    if (redirect.ptr != NULL) {
        return fgw_s3_answer_empty(request, 303);
    }
    if (fgw_bytes_eq_str(wanted, "201")) {
        return answer_created(post);
    }
    return fgw_s3_answer_empty(request, fgw_bytes_eq_str(wanted, "200") ? 200 : 204);
}

enum fgw_err fgw_s3_op_post_object(struct fgw_s3_request *request)
{
    struct post *post = fgw_arena_zalloc(request->arena, sizeof *post);
    struct fgw_written written;
    post->request = request;
    post->limits.max_bytes = request->s3->max_put_bytes;
    fgw_buf_init(&post->value, FIELD_BYTES_MAX);
    enum fgw_err err = receive(post);
    if (err == FGW_OK) {
        err = commit(post, &written);
    }
    if (post->stage != NULL) {
        fgw_blob_stage_abort(post->stage);
    }
    fgw_digest_deinit(&post->md5);
    fgw_s3_checksummer_deinit(&post->summer);
    fgw_buf_deinit(&post->value);
    return err == FGW_OK ? answer(post, &written) : err;
}
