/* protobuf.h: taking protobuf fields off a byte view, for dag-pb and UnixFS. Groups (wire types 3,
 * 4) and the reserved ones are refused, varints must be minimal and below 2^63. */
#ifndef FGW_CID_PROTOBUF_H
#define FGW_CID_PROTOBUF_H

#include "base/bytes.h"

enum fgw_protobuf_wire {
    FGW_PROTOBUF_VARINT = 0,
    FGW_PROTOBUF_FIXED64 = 1,
    FGW_PROTOBUF_BYTES = 2,
    FGW_PROTOBUF_FIXED32 = 5
};

struct fgw_protobuf_field {
    uint64_t number;
    enum fgw_protobuf_wire wire;
    uint64_t value;         /* FGW_PROTOBUF_VARINT */
    struct fgw_bytes bytes; /* all other wire types */
};

/* FGW_ERR_END when *rest is empty, FGW_ERR_CORRUPT when no whole field stands there. */
enum fgw_err fgw_protobuf_take(struct fgw_bytes *rest,
                               struct fgw_protobuf_field *out_field) FGW_MUST_CHECK;
/* A bare varint, as in packed lists; same errors. */
enum fgw_err fgw_protobuf_take_varint(struct fgw_bytes *rest, uint64_t *out_value) FGW_MUST_CHECK;

void fgw_protobuf_put_varint(struct fgw_buf *out, uint64_t value);

#endif
