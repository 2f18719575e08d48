/* tags.c: see tags.h. */
#include "s3/tags.h"

#include "base/encode.h"
#include "s3/body.h"
#include "s3/engine_internal.h"
#include "s3/xml_read.h"
#include "s3/xml_write.h"

enum { MAX_KEY_CHARACTERS = 128, MAX_VALUE_CHARACTERS = 256, MAX_ELEMENTS = 1000 };

static size_t characters(struct fgw_bytes text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += (text.ptr[i] & 0xc0) != 0x80;
    }
    return count;
}

static enum fgw_err too_many(struct fgw_s3_request *request, size_t max)
{
    return fgw_error_set(&request->error,
                         request->s3->strict_aws ? FGW_ERR_BAD_REQUEST : FGW_ERR_INVALID_TAG,
                         "%s tags cannot be greater than %zu",
                         max == FGW_S3_BUCKET_TAGS_MAX ? "Bucket" : "Object", max);
}

/* tags[count] against the rules and the tags before it. */
static enum fgw_err check_tag(struct fgw_s3_request *request, const struct fgw_meta_pair *tags,
                              size_t count, size_t max)
{
    const struct fgw_meta_pair *tag = &tags[count];
    const char *wrong = NULL;
    if (count >= max) {
        return too_many(request, max);
    }
    if (tag->name.len == 0 || characters(tag->name) > MAX_KEY_CHARACTERS ||
        !fgw_utf8_valid(tag->name)) {
        wrong = "The TagKey you have provided is invalid";
    } else if (characters(tag->value) > MAX_VALUE_CHARACTERS || !fgw_utf8_valid(tag->value)) {
        wrong = "The TagValue you have provided is invalid";
    }
    for (size_t i = 0; i < count && wrong == NULL; i++) {
        if (fgw_bytes_eq(tags[i].name, tag->name)) {
            wrong = "Cannot provide multiple Tags with the same key";
        }
    }
    return wrong == NULL ? FGW_OK
                         : fgw_error_set(&request->error, FGW_ERR_INVALID_TAG, "%s", wrong);
}

enum fgw_err fgw_s3_tags_from_header(struct fgw_s3_request *request,
                                     const struct fgw_meta_pair **out_tags, size_t *out_count)
{
    struct fgw_bytes header = fgw_s3_header(request, "x-amz-tagging");
    if (header.len == 0) {
        *out_tags = NULL;
        *out_count = 0;
        return FGW_OK;
    }
    struct fgw_s3_query pairs;
    if (fgw_s3_query_parse(request->arena, header, &pairs) != FGW_OK) {
        return fgw_s3_bad_argument(request, "x-amz-tagging", header,
                                   "The header 'x-amz-tagging' shall be encoded as UTF-8 then "
                                   "URLEncoded URL query parameters without tag name duplicates.");
    }
    struct fgw_meta_pair *tags =
        fgw_arena_alloc(request->arena, (FGW_S3_OBJECT_TAGS_MAX + 1) * sizeof *tags);
    for (size_t i = 0; i < pairs.count; i++) {
        tags[i] = (struct fgw_meta_pair){pairs.params[i].name, pairs.params[i].value};
        enum fgw_err err = check_tag(request, tags, i, FGW_S3_OBJECT_TAGS_MAX);
        if (err != FGW_OK) {
            return err;
        }
    }
    *out_tags = tags;
    *out_count = pairs.count;
    return FGW_OK;
}

/* One Tag; false when it is none. */
static bool read_tag(const struct fgw_xml_node *node, struct fgw_meta_pair *tag)
{
    tag->name = fgw_xml_child_text(node, "Key");
    tag->value = fgw_xml_child_text(node, "Value");
    return fgw_xml_is(node, "Tag") && tag->name.ptr != NULL && tag->value.ptr != NULL;
}

enum fgw_err fgw_s3_tags_from_document(struct fgw_s3_request *request, struct fgw_bytes document,
                                       size_t max, const struct fgw_meta_pair **out_tags,
                                       size_t *out_count)
{
    struct fgw_xml_node *root = NULL;
    enum fgw_err err = fgw_xml_parse(request->arena, document, "Tagging", MAX_ELEMENTS, &root);
    const struct fgw_xml_node *set = err == FGW_OK ? fgw_xml_child(root, "TagSet") : NULL;
    if (set == NULL) {
        return fgw_error_set(&request->error, FGW_ERR_MALFORMED_XML, NULL);
    }
    struct fgw_meta_pair *tags = fgw_arena_alloc(request->arena, (max + 1) * sizeof *tags);
    size_t count = 0;
    for (const struct fgw_xml_node *node = set->first_child; node != NULL; node = node->next) {
        if (!read_tag(node, &tags[count])) {
            return fgw_error_set(&request->error, FGW_ERR_MALFORMED_XML, NULL);
        }
        err = check_tag(request, tags, count, max);
        if (err != FGW_OK) {
            return err;
        }
        count++;
    }
    *out_tags = tags;
    *out_count = count;
    return FGW_OK;
}

enum fgw_err fgw_s3_tags_from_body(struct fgw_s3_request *request, size_t max,
                                   const struct fgw_meta_pair **out_tags, size_t *out_count)
{
    struct fgw_buf body;
    fgw_buf_init(&body, FGW_S3_XML_MAX);
    enum fgw_err err = fgw_s3_body_collect(request, FGW_S3_XML_MAX, false, &body);
    if (err == FGW_OK) {
        err = fgw_s3_tags_from_document(request, fgw_buf_bytes(&body), max, out_tags, out_count);
    }
    fgw_buf_deinit(&body);
    return err;
}

void fgw_s3_tags_document(const struct fgw_meta_pair *tags, size_t count, struct fgw_buf *out)
{
    fgw_xml_begin(out);
    fgw_xml_root(out, "Tagging");
    fgw_xml_open(out, "TagSet");
    for (size_t i = 0; i < count; i++) {
        fgw_xml_open(out, "Tag");
        fgw_xml_text(out, "Key", tags[i].name);
        fgw_xml_text(out, "Value", tags[i].value);
        fgw_xml_close(out, "Tag");
    }
    fgw_xml_close(out, "TagSet");
    fgw_xml_close(out, "Tagging");
}
