/* out_file.h: a file of a piece while it is written: under a name of its own until it is whole and
 * synced. Blocks; one thread. */
#ifndef FGW_PIECE_OUT_FILE_H
#define FGW_PIECE_OUT_FILE_H

#include "base/bytes.h"

struct fgw_piece_out_file {
    int dir; /* folder it is written in; the caller's */
    const char *tmp_name;
    int fd; /* -1: none */
    uint64_t written;
    uint64_t synced;
    struct fgw_buf buffer;
};

/* The file is locked: FGW_ERR_IN_USE while another process writes one in this folder. What an export
 * that was killed left there is written over. */
enum fgw_err fgw_piece_out_begin(struct fgw_piece_out_file *file, int dir,
                                 const char *tmp_name) FGW_MUST_CHECK;
/* Synced every 64 MiB, so that the end is no burst. */
enum fgw_err fgw_piece_out_append(struct fgw_piece_out_file *file,
                                  struct fgw_bytes bytes) FGW_MUST_CHECK;
/* Whole, durable, under `name` in `dir`, replacing what stood there. */
enum fgw_err fgw_piece_out_commit(struct fgw_piece_out_file *file, int dir,
                                  const char *name) FGW_MUST_CHECK;
/* Removes what was not committed. Also after a failed begin, or without one if fd is -1. */
void fgw_piece_out_deinit(struct fgw_piece_out_file *file);
/* Bytes appended. */
static inline uint64_t fgw_piece_out_size(const struct fgw_piece_out_file *file)
{
    return file->written + file->buffer.len;
}

#endif
