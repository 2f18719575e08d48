/* names.h: rules for names given by clients. Pure functions. */
#ifndef FGW_S3_NAMES_H
#define FGW_S3_NAMES_H

#include "base/bytes.h"

/* 3 to 63 of a-z 0-9 . -, first and last a letter or digit, no "..", ".-", "-.", no IPv4 address
 * (spec/s3-wire.md 5.22). */
bool fgw_s3_bucket_name_valid(struct fgw_bytes name);

/* Beginnings and ends that AWS keeps for itself ("General purpose bucket naming rules"): no new bucket
 * is given such a name, one that is there already stays as it is. */
bool fgw_s3_bucket_name_reserved(struct fgw_bytes name);

#endif
