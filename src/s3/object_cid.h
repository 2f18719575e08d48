/* object_cid.h: the root CID of an object of several extents (design/storage.md section 1).
 *
 * The object's DAG is the balanced tree over the leaves of its extents as they are: no byte is read,
 * only the leaves' digests. It is that of `ipfs add` when every extent but the last is a multiple of
 * 1 MiB, else "custom".
 */
#ifndef FGW_S3_OBJECT_CID_H
#define FGW_S3_OBJECT_CID_H

#include "meta/meta.h"

enum { FGW_S3_CID_LEAVES_MAX = 128 * 1024 }; /* 128 GiB in leaves of 1 MiB */

/* Sets cid, has_cid and canonical_cid of an object whose extents are set. It stays without a CID
 * above FGW_S3_CID_LEAVES_MAX leaves, or when a store does not tell its digests. From a fiber; may
 * wait for the stores. */
void fgw_s3_find_object_cid(struct fgw_blobs *blobs, struct fgw_object *object);

#endif
