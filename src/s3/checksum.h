/* checksum.h: S3's flexible checksums: names, values on the wire, computing one over a body.
 * Source: AWS "Checking object integrity", spec/s3-wire.md 5.64 to 5.67. */
#ifndef FGW_S3_CHECKSUM_H
#define FGW_S3_CHECKSUM_H

#include "base/digest.h"
#include "s3/request.h"

enum { FGW_S3_CHECKSUM_TEXT_SIZE = 56 }; /* base64 of 32 bytes, "-10000", NUL */

/* "CRC32"; "" for NONE. */
const char *fgw_s3_checksum_name(enum fgw_checksum algorithm);
/* "x-amz-checksum-crc32"; also the trailer's name. */
const char *fgw_s3_checksum_header(enum fgw_checksum algorithm);
/* "ChecksumCRC32". */
const char *fgw_s3_checksum_element(enum fgw_checksum algorithm);
const char *fgw_s3_checksum_type_name(enum fgw_checksum_type type);
/* NONE when unknown; any case. */
enum fgw_checksum fgw_s3_checksum_by_name(struct fgw_bytes name);
enum fgw_checksum fgw_s3_checksum_by_header(struct fgw_bytes name);
/* Bytes of a value. */
uint8_t fgw_s3_checksum_size(enum fgw_checksum algorithm);
/* Base64 of exactly the algorithm's size; FGW_ERR_PARSE otherwise. */
enum fgw_err fgw_s3_checksum_parse(enum fgw_checksum algorithm, struct fgw_bytes text,
                                   uint8_t out[FGW_META_CHECKSUM_MAX]) FGW_MUST_CHECK;
/* Base64, and "-parts" for COMPOSITE values when parts > 0. */
void fgw_s3_checksum_text(const struct fgw_checksum_value *value, unsigned parts,
                          char out[FGW_S3_CHECKSUM_TEXT_SIZE]);

/* What the request says about a checksum of its body. */
struct fgw_s3_checksum_wish {
    enum fgw_checksum algorithm; /* NONE: nothing said */
    bool in_trailer;             /* the value comes behind the body */
    bool has_expected;
    uint8_t expected[FGW_META_CHECKSUM_MAX];
};

/* Reads x-amz-checksum-*, x-amz-trailer and x-amz-sdk-checksum-algorithm. FGW_ERR_INVALID_REQUEST
 * for unknown algorithms, two values, and names that contradict each other; fgw_s3_bad_checksum for
 * bad values. */
enum fgw_err fgw_s3_checksum_wish(struct fgw_s3_request *request,
                                  struct fgw_s3_checksum_wish *out_wish) FGW_MUST_CHECK;

/* A value that is no value of the algorithm: FGW_ERR_BAD_DIGEST, as the public suite wants it;
 * INVALID_REQUEST when strict_aws. */
enum fgw_err fgw_s3_bad_checksum(struct fgw_s3_request *request, enum fgw_checksum algorithm);

/* Running computation. Zero-initialise; end or deinit frees what it holds. */
struct fgw_s3_checksummer {
    enum fgw_checksum algorithm;
    uint32_t crc;
    uint64_t crc64;
    struct fgw_digest digest;
    bool digesting;
};
void fgw_s3_checksummer_init(struct fgw_s3_checksummer *summer, enum fgw_checksum algorithm);
void fgw_s3_checksummer_update(struct fgw_s3_checksummer *summer, struct fgw_bytes bytes);
/* FULL_OBJECT value; NONE gives a value of algorithm NONE. */
void fgw_s3_checksummer_end(struct fgw_s3_checksummer *summer, struct fgw_checksum_value *out_value);
void fgw_s3_checksummer_deinit(struct fgw_s3_checksummer *summer);

#endif
