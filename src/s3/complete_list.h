/* complete_list.h: the list of parts in the body of CompleteMultipartUpload. A pure function of the
 * document. Source: AWS CompletedMultipartUpload; public bug reports B50, B51. */
#ifndef FGW_S3_COMPLETE_LIST_H
#define FGW_S3_COMPLETE_LIST_H

#include "meta/meta.h"

/* A part as the client names it. */
struct fgw_s3_listed_part {
    unsigned number;
    struct fgw_bytes etag;              /* without quotes */
    struct fgw_checksum_value checksum; /* algorithm NONE when none is given */
};

/* Ascending, at least one. Errors, with a message in *error:
 *  MALFORMED_XML       not such a document, no part, more than 10,000 parts, a part without
 *                      PartNumber or ETag, a number or checksum that is none
 *  INVALID_ARGUMENT    a part number outside of 1 to 10,000
 *  INVALID_PART_ORDER  not ascending, or a number twice */
enum fgw_err fgw_s3_complete_list_parse(struct fgw_arena *arena, struct fgw_bytes document,
                                        struct fgw_s3_listed_part **out_parts, size_t *out_count,
                                        struct fgw_error *error) FGW_MUST_CHECK;

#endif
