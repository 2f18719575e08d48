/* op_get_object_attributes.c: GetObjectAttributes. Parts are shown of objects made by Complete, not of
 * copies, which have no parts. spec/s3-wire.md 5.68. */
#include "base/timefmt.h"
#include "s3/answer.h"
#include "s3/engine_internal.h"
#include "s3/multipart.h"
#include "s3/object_info.h"
#include "s3/op.h"
#include "s3/xml_write.h"

enum { DOCUMENT_MAX_BYTES = 2 * 1024 * 1024 };

enum attribute { ETAG = 1, CHECKSUM = 2, OBJECT_PARTS = 4, STORAGE_CLASS = 8, OBJECT_SIZE = 16 };

struct question {
    unsigned attributes;
    unsigned max_parts;
    unsigned after; /* part number */
};

static unsigned attribute_by_name(struct fgw_bytes name)
{
    static const struct {
        const char *name;
        enum attribute attribute;
    } NAMES[] = {{"ETag", ETAG},
                 {"Checksum", CHECKSUM},
                 {"ObjectParts", OBJECT_PARTS},
                 {"StorageClass", STORAGE_CLASS},
                 {"ObjectSize", OBJECT_SIZE}};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (fgw_bytes_eq_str(name, NAMES[i].name)) {
            return NAMES[i].attribute;
        }
    }
    return 0;
}

/* The header may be repeated, and each may be a list. */
static enum fgw_err read_attributes(struct fgw_s3_request *request, unsigned *out_attributes)
{
    static const char HEADER[] = "x-amz-object-attributes";
    unsigned attributes = 0;
    for (size_t i = 0; i < request->http->header_count; i++) {
        if (!fgw_bytes_ieq_str(request->http->headers[i].name, HEADER)) {
            continue;
        }
        struct fgw_bytes rest = request->http->headers[i].value;
        struct fgw_bytes name;
        while (fgw_bytes_split(&rest, ',', &name)) {
            unsigned attribute = attribute_by_name(fgw_bytes_trim(name));
            if (attribute == 0) {
                return fgw_s3_bad_argument(request, HEADER, name,
                                           "Invalid attribute name specified.");
            }
            attributes |= attribute;
        }
    }
    if (attributes == 0) {
        return fgw_error_set(&request->error, FGW_ERR_INVALID_REQUEST,
                             "The x-amz-object-attributes header specifying the attributes to be "
                             "retrieved is either missing or empty");
    }
    *out_attributes = attributes;
    return FGW_OK;
}

static enum fgw_err read_number(struct fgw_s3_request *request, const char *header, unsigned max,
                                unsigned fallback, unsigned *out_value)
{
    struct fgw_bytes text = fgw_s3_header(request, header);
    uint64_t value = fallback;
    if (text.ptr != NULL && fgw_bytes_to_u64(text, &value) != FGW_OK) {
        return fgw_s3_bad_argument(request, header, text,
                                   "Provided argument is not an integer or within its range.");
    }
    *out_value = value > max ? max : (unsigned)value;
    return FGW_OK;
}

static enum fgw_err read_question(struct fgw_s3_request *request, struct question *question)
{
    enum fgw_err err = read_attributes(request, &question->attributes);
    if (err == FGW_OK) {
        err = read_number(request, "x-amz-max-parts", FGW_S3_LIST_MAX, FGW_S3_LIST_MAX,
                          &question->max_parts);
    }
    if (err == FGW_OK) {
        err = read_number(request, "x-amz-part-number-marker", FGW_S3_PART_NUMBER_MAX, 0,
                          &question->after);
    }
    return err;
}

static void write_part(struct fgw_buf *out, const struct fgw_object_part *part)
{
    fgw_xml_open(out, "Part");
    fgw_xml_number(out, "PartNumber", part->number);
    fgw_xml_number(out, "Size", part->size);
    fgw_s3_part_checksum_element(out, &part->checksum);
    fgw_xml_close(out, "Part");
}

static void write_parts(struct fgw_buf *out, const struct fgw_object *object,
                        const struct question *question)
{
    size_t first = 0;
    while (first < object->part_count && object->parts[first].number <= question->after) {
        first++;
    }
    size_t left = object->part_count - first;
    size_t count = left < question->max_parts ? left : question->max_parts;
    fgw_xml_open(out, "ObjectParts");
    fgw_xml_number(out, "PartsCount", object->part_count);
    fgw_xml_number(out, "PartNumberMarker", question->after);
    fgw_xml_number(out, "NextPartNumberMarker",
                   count > 0 ? object->parts[first + count - 1].number : question->after);
    fgw_xml_number(out, "MaxParts", question->max_parts);
    fgw_xml_bool(out, "IsTruncated", count < left);
    for (size_t i = first; i < first + count; i++) {
        write_part(out, &object->parts[i]);
    }
    fgw_xml_close(out, "ObjectParts");
}

static void write_attributes(struct fgw_buf *out, const struct fgw_object *object,
                             const struct question *question)
{
    unsigned attributes = question->attributes;
    if ((attributes & ETAG) != 0) {
        fgw_xml_text(out, "ETag", object->etag); /* without quotes here */
    }
    if ((attributes & CHECKSUM) != 0 && object->checksum.algorithm != FGW_CHECKSUM_NONE) {
        fgw_xml_open(out, "Checksum");
        fgw_s3_checksum_elements(out, &object->checksum, fgw_s3_etag_parts(object->etag));
        fgw_xml_close(out, "Checksum");
    }
    if ((attributes & OBJECT_PARTS) != 0 && object->part_count > 0) {
        write_parts(out, object, question);
    }
    if ((attributes & STORAGE_CLASS) != 0) {
        fgw_xml_text(out, "StorageClass",
                     object->storage_class.len > 0 ? object->storage_class : FGW_LIT("STANDARD"));
    }
    if ((attributes & OBJECT_SIZE) != 0) {
        fgw_xml_number(out, "ObjectSize", object->size);
    }
}

static enum fgw_err answer(struct fgw_s3_request *request, const struct fgw_object *object,
                           const struct question *question)
{
    struct fgw_buf out;
    char *date = fgw_arena_alloc(request->arena, FGW_TIME_HTTP_SIZE);
    fgw_time_http(object->mtime_ms, date);
    fgw_buf_init(&out, DOCUMENT_MAX_BYTES);
    fgw_xml_begin(&out);
    fgw_xml_root(&out, "GetObjectAttributesResponse");
    write_attributes(&out, object, question);
    fgw_xml_close(&out, "GetObjectAttributesResponse");
    fgw_s3_extra_header(request, "Last-Modified", fgw_bytes_str(date));
    fgw_s3_extra_header(request, "x-amz-version-id",
                        fgw_s3_version_text(request, &object->version_id, object->is_null));
    enum fgw_err err = fgw_s3_answer_xml(request, &out);
    fgw_buf_deinit(&out);
    return err;
}

enum fgw_err fgw_s3_op_get_object_attributes(struct fgw_s3_request *request)
{
    struct question question = {0};
    struct fgw_object object;
    enum fgw_err err = read_question(request, &question);
    if (err == FGW_OK) {
        err = fgw_s3_find_object(request, FGW_S3_OBJECT_READ, &object);
    }
    return err == FGW_OK ? answer(request, &object, &question) : err;
}
