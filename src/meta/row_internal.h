/* row_internal.h: pieces that several row codecs share. */
#ifndef FGW_META_ROW_INTERNAL_H
#define FGW_META_ROW_INTERNAL_H

#include "base/tlv.h"
#include "meta/row.h"

/* Nothing is written for a zero id. */
void fgw_row_put_id(struct fgw_buf *out, uint64_t tag, const struct fgw_id *id);
enum fgw_err fgw_row_get_id(struct fgw_bytes value, struct fgw_id *out_id) FGW_MUST_CHECK;
/* uvarint name length | name | value */
void fgw_row_put_pair(struct fgw_buf *out, uint64_t tag, const struct fgw_meta_pair *pair);
enum fgw_err fgw_row_get_pair(struct fgw_bytes value, struct fgw_meta_pair *out_pair) FGW_MUST_CHECK;
/* algorithm | type | digest; nothing for FGW_CHECKSUM_NONE */
void fgw_row_put_checksum(struct fgw_buf *out, uint64_t tag,
                          const struct fgw_checksum_value *checksum);
enum fgw_err fgw_row_get_checksum(struct fgw_bytes value, struct fgw_checksum_value *out_checksum)
    FGW_MUST_CHECK;

#endif
