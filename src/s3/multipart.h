/* multipart.h: what the multipart operations share: finding the upload, part numbers, checksum
 * settings, storing a part, and the ETag and checksum of the whole, combined from its parts without
 * reading a byte of them. Source: spec/s3-wire.md 5.57 to 5.61, 5.65, 5.67; AWS "Checking object
 * integrity". */
#ifndef FGW_S3_MULTIPART_H
#define FGW_S3_MULTIPART_H

#include "s3/request.h"

enum { FGW_S3_PART_NUMBER_MAX = 10000 };
/* Of every part but the last, judged at Complete. */
static const uint64_t FGW_S3_PART_MIN_BYTES = 5ULL * 1024 * 1024;

/* The upload that uploadId and the key name. FGW_ERR_NO_SUCH_UPLOAD also for text that cannot be an
 * id. Completed uploads are returned too. */
enum fgw_err fgw_s3_find_upload(struct fgw_s3_request *request, struct fgw_upload *out_upload)
    FGW_MUST_CHECK;
/* The same for operations on parts: a completed upload takes none, NO_SUCH_UPLOAD. */
enum fgw_err fgw_s3_find_open_upload(struct fgw_s3_request *request, struct fgw_upload *out_upload)
    FGW_MUST_CHECK;
/* partNumber, 1 to 10,000: FGW_ERR_INVALID_ARGUMENT. */
enum fgw_err fgw_s3_part_number(struct fgw_s3_request *request, unsigned *out_number)
    FGW_MUST_CHECK;

/* x-amz-checksum-algorithm and -type of CreateMultipartUpload. CRC64NVME is always FULL_OBJECT, the
 * others COMPOSITE unless asked otherwise. FGW_ERR_INVALID_REQUEST for unknown names, a type alone,
 * and pairs that cannot be computed from parts. */
enum fgw_err fgw_s3_upload_checksum(struct fgw_s3_request *request, enum fgw_checksum *out_algorithm,
                                    enum fgw_checksum_type *out_type) FGW_MUST_CHECK;
/* A part whose checksum is of another algorithm than the upload's: FGW_ERR_INVALID_REQUEST. */
enum fgw_err fgw_s3_check_part_algorithm(struct fgw_s3_request *request,
                                         const struct fgw_upload *upload,
                                         enum fgw_checksum algorithm) FGW_MUST_CHECK;

/* Number of the extent that a part's bytes are staged as: unique for each attempt. */
uint64_t fgw_s3_part_extent_number(unsigned part_number);
/* Commits (or, on failure, discards) a staged part; number, size, md5 and checksum must be set. The
 * attempt becomes the newest of its number, whatever the clocks of other processes say. */
enum fgw_err fgw_s3_put_part(struct fgw_s3_request *request, const struct fgw_upload *upload,
                             struct fgw_part *part, struct fgw_blob_staged *staged) FGW_MUST_CHECK;

/* -- pure functions ------------------------------------------------------------------------- */

/* hex(MD5(the parts' MD5s one after the other)) "-" count, in the arena. */
struct fgw_bytes fgw_s3_multipart_etag(struct fgw_arena *arena, const struct fgw_object_part *parts,
                                       size_t count);
/* Parts of the object that an ETag "...-N" speaks of; 0 for a plain ETag. A copy keeps ETag and
 * checksum of its source, but not the table of parts. */
unsigned fgw_s3_etag_parts(struct fgw_bytes etag);
/* Value over the whole from the values of the parts, each of `algorithm` and of the part's size.
 * COMPOSITE: digest of the digests. FULL_OBJECT: CRCs combined. Algorithm NONE gives NONE.
 * FGW_ERR_INVALID_ARGUMENT when a part has no such value. */
enum fgw_err fgw_s3_combine_checksums(enum fgw_checksum algorithm, enum fgw_checksum_type type,
                                      const struct fgw_object_part *parts, size_t count,
                                      struct fgw_checksum_value *out_value) FGW_MUST_CHECK;

#endif
