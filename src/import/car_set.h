/* car_set.h: the blocks of many CARv1 files, found by digest.
 *
 * Opening reads the head of every section of every file "*.car" below a folder (two levels deep);
 * the blocks themselves are read when asked for. Memory: 56 bytes a section. A file that is damaged
 * or cut off is reported and used up to there. Calls block: run them on a pool thread. Constant
 * after open; any thread may read.
 */
#ifndef FGW_IMPORT_CAR_SET_H
#define FGW_IMPORT_CAR_SET_H

#include "cid/car.h"

struct fgw_car_set;

/* What is wrong with a file, from `offset` on. */
typedef void fgw_car_set_note(void *context, const char *file, uint64_t offset, const char *what);

/* NOT_FOUND, IO: the folder cannot be read, or has no CAR. */
enum fgw_err fgw_car_set_open(const char *folder, fgw_car_set_note *note, void *context,
                              struct fgw_car_set **out_set, struct fgw_error *error) FGW_MUST_CHECK;
/* Takes NULL. */
void fgw_car_set_free(struct fgw_car_set *set);
size_t fgw_car_set_file_count(const struct fgw_car_set *set);
size_t fgw_car_set_block_count(const struct fgw_car_set *set);

/* Appends the block with this sha2-256 digest to `out`, checked. Copies are tried in turn.
 * FGW_ERR_NOT_FOUND: no file has it; CORRUPT or IO: every copy is bad; *error names the last one's
 * file and offset. */
enum fgw_err fgw_car_set_read(const struct fgw_car_set *set, const uint8_t digest[FGW_SHA256_SIZE],
                              struct fgw_buf *out, struct fgw_error *error) FGW_MUST_CHECK;

#endif
