/* checkpoint.h: checkpoint files: writing one from a snapshot of the index, reading one back, finding
 * those of a directory (docs/formats/checkpoint.md). Nothing here knows fibers: every call may block
 * on the disk. A writer or a reader is used by one thread at a time.
 */
#ifndef FGW_STORAGE_CHECKPOINT_H
#define FGW_STORAGE_CHECKPOINT_H

#include "kv/kv.h"
#include "storage/datadir.h"
#include "storage/group.h"
#include "storage/items.h"

/* What the seal of a checkpoint's records names as their group. */
static inline uint64_t fgw_checkpoint_group(uint64_t id)
{
    return (UINT64_C(1) << 63) + id;
}

struct fgw_checkpoint_info {
    uint64_t id;                          /* 0: none */
    struct fgw_item_predecessor position; /* log group, end offset, batch covered */
    uint64_t running_ms;
    uint64_t rows;
    uint64_t size_bytes;
};

/* -- which there are ----------------------------------------------------------------------------- */

struct fgw_checkpoint_list {
    uint64_t *ids; /* newest first */
    size_t count;
};
enum fgw_err fgw_checkpoint_list_read(struct fgw_checkpoint_list *list,
                                      const struct fgw_datadir *dir) FGW_MUST_CHECK;
void fgw_checkpoint_list_free(struct fgw_checkpoint_list *list);
/* Looks at heads and at the closing record alone. FGW_ERR_CORRUPT: it is not complete;
 * FGW_ERR_NEWER_VERSION; FGW_ERR_NOT_FOUND. */
enum fgw_err fgw_checkpoint_peek(const struct fgw_datadir *dir, uint64_t id,
                                 struct fgw_record_opener *opener,
                                 struct fgw_checkpoint_info *out_info) FGW_MUST_CHECK;

/* -- writing ------------------------------------------------------------------------------------- */

struct fgw_checkpoint_writer_options {
    const struct fgw_datadir *dir;
    struct fgw_kv *kv;
    struct fgw_record_sealer sealer; /* its own salt */
    uint64_t id;
};
struct fgw_checkpoint_writer;
/* Takes the snapshot. FGW_ERR_NOT_FOUND: the index is empty, there is nothing to write. */
enum fgw_err fgw_checkpoint_writer_new(const struct fgw_checkpoint_writer_options *options,
                                       struct fgw_checkpoint_writer **out_writer) FGW_MUST_CHECK;
/* Writes about `bytes` more and waits until they are on the disk. *out_done: no row is left. */
enum fgw_err fgw_checkpoint_writer_step(struct fgw_checkpoint_writer *writer, size_t bytes,
                                        bool *out_done) FGW_MUST_CHECK;
/* After the last step: the closing record, then the file takes its place. */
enum fgw_err fgw_checkpoint_writer_finish(struct fgw_checkpoint_writer *writer,
                                          struct fgw_checkpoint_info *out_info) FGW_MUST_CHECK;
/* Gives the snapshot back; a file that was not finished is removed. Takes NULL. */
void fgw_checkpoint_writer_free(struct fgw_checkpoint_writer *writer);

/* -- reading ------------------------------------------------------------------------------------- */

struct fgw_checkpoint_row {
    enum fgw_kv_family family;
    struct fgw_bytes key; /* views live until the next call */
    struct fgw_bytes value;
};
struct fgw_checkpoint_reader;
/* from_disk: not out of the page cache, if the kernel can help it. */
enum fgw_err fgw_checkpoint_reader_open(const struct fgw_datadir *dir, uint64_t id,
                                        struct fgw_record_opener *opener, bool from_disk,
                                        struct fgw_checkpoint_reader **out_reader) FGW_MUST_CHECK;
/* FGW_ERR_END: that was all, and it was whole. FGW_ERR_CORRUPT, _NEWER_VERSION, _IO. */
enum fgw_err fgw_checkpoint_reader_next(struct fgw_checkpoint_reader *reader,
                                        struct fgw_checkpoint_row *out_row) FGW_MUST_CHECK;
/* Bytes of the file read so far; where damage was found. */
uint64_t fgw_checkpoint_reader_offset(const struct fgw_checkpoint_reader *reader);
/* After FGW_ERR_END. */
const struct fgw_checkpoint_info *
fgw_checkpoint_reader_info(const struct fgw_checkpoint_reader *reader);
/* Takes NULL. */
void fgw_checkpoint_reader_close(struct fgw_checkpoint_reader *reader);

#endif
