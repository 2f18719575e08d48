/* crc.h: the CRCs of storage and of S3's flexible checksums, with combination of two neighbours.
 *
 * All take and return the finished value (init and xorout applied inside): start with 0, feed the
 * bytes in pieces. Check values of "123456789": CRC32 cbf43926, CRC32C e3069283, CRC64NVME
 * ae8b14860a799888 (spec/s3-wire.md item 66).
 */
#ifndef FGW_BASE_CRC_H
#define FGW_BASE_CRC_H

#include "base/bytes.h"

uint32_t fgw_crc32(uint32_t crc, struct fgw_bytes bytes);    /* IEEE, reflected 0xEDB88320 */
uint32_t fgw_crc32c(uint32_t crc, struct fgw_bytes bytes);   /* Castagnoli, reflected 0x82F63B78 */
uint64_t fgw_crc64nvme(uint64_t crc, struct fgw_bytes bytes); /* reflected 0x9A6C9329AC4BC9B5 */

/* CRC of A|B from the CRC of A, the CRC of B and the length of B in bytes. */
uint32_t fgw_crc32_combine(uint32_t a, uint32_t b, uint64_t b_len);
uint32_t fgw_crc32c_combine(uint32_t a, uint32_t b, uint64_t b_len);
uint64_t fgw_crc64nvme_combine(uint64_t a, uint64_t b, uint64_t b_len);

#endif
