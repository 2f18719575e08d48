/* list.h: what the listing operations share: arguments, and the elements of a page. */
#ifndef FGW_S3_LIST_H
#define FGW_S3_LIST_H

#include "s3/request.h"

/* prefix, delimiter, encoding-type and the page size, as asked for. */
struct fgw_s3_list_args {
    struct fgw_bytes prefix;
    struct fgw_bytes delimiter;
    unsigned max; /* 0..1000 */
    bool url;     /* encoding-type=url */
};

/* max_name: "max-keys", "max-uploads". FGW_ERR_INVALID_ARGUMENT. */
enum fgw_err fgw_s3_list_args(struct fgw_s3_request *request, const char *max_name,
                              struct fgw_s3_list_args *out_args) FGW_MUST_CHECK;
/* <Owner>, or an element of another name. */
void fgw_s3_list_owner(struct fgw_buf *out, const char *element, struct fgw_bytes id,
                       struct fgw_bytes display_name);
/* <Size>, <StorageClass>, <ETag>, checksum: what Contents and Version share behind the key. */
void fgw_s3_list_columns(struct fgw_buf *out, const struct fgw_object *object);
/* <ChecksumAlgorithm> and <ChecksumType>; nothing for NONE. */
void fgw_s3_list_checksum(struct fgw_buf *out, enum fgw_checksum algorithm,
                          enum fgw_checksum_type type);
void fgw_s3_list_common_prefix(struct fgw_buf *out, struct fgw_bytes prefix, bool url);
/* Key or common prefix of the last entry; empty for an empty list. */
struct fgw_bytes fgw_s3_list_last(const struct fgw_object_list *list);

#endif
