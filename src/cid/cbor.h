/* cbor.h: reading dag-cbor as far as the header of a CAR needs it (ipld dag-cbor; RFC 8949 with
 * definite lengths, shortest integers, tag 42 for CIDs). Each function takes one item off the front
 * of *rest, which stays as it was on failure. FGW_ERR_CORRUPT when the item is another one, is not
 * in shortest form or runs past the end. */
#ifndef FGW_CID_CBOR_H
#define FGW_CID_CBOR_H

#include "cid/cid.h"

enum fgw_cbor_major {
    FGW_CBOR_UINT = 0,
    FGW_CBOR_BYTES = 2,
    FGW_CBOR_TEXT = 3,
    FGW_CBOR_ARRAY = 4,
    FGW_CBOR_MAP = 5,
    FGW_CBOR_TAG = 6
};

/* The head of an item of this major type: its integer, length, count or tag number. */
enum fgw_err fgw_cbor_take_head(struct fgw_bytes *rest, enum fgw_cbor_major major,
                                uint64_t *out_value) FGW_MUST_CHECK;
/* A whole byte or text string (UTF-8 is not checked). */
enum fgw_err fgw_cbor_take_string(struct fgw_bytes *rest, enum fgw_cbor_major major,
                                  struct fgw_bytes *out_string) FGW_MUST_CHECK;
/* Tag 42 over a byte string of 00 and a binary CID. */
enum fgw_err fgw_cbor_take_cid(struct fgw_bytes *rest, struct fgw_cid_view *out_cid) FGW_MUST_CHECK;

#endif
