/* piece.h: pieces for Filecoin: CARs with the blobs of a sealed group, each with its piece CID.
 *
 * What a piece is, to the byte, and how it comes into being: docs/formats/piece.md. An export runs in
 * a fiber whose thread may block (a verb, or the thread of fgw_piece_worker): it reads blocks through
 * the storage, hashes and writes by itself. A crash at any moment leaves no piece that is not whole.
 */
#ifndef FGW_PIECE_PIECE_H
#define FGW_PIECE_PIECE_H

#include <jansson.h>

#include "storage/storage.h"

#define FGW_PIECE_PADDED_MIN (UINT64_C(1) << 20)
#define FGW_PIECE_PADDED_MAX (UINT64_C(1) << 36)     /* 64 GiB: the largest sector */
#define FGW_PIECE_PADDED_DEFAULT (UINT64_C(1) << 35) /* 32 GiB */

struct fgw_piece_progress {
    uint64_t pieces;      /* whole ones */
    uint64_t bytes;       /* of CARs, written so far */
    uint64_t bytes_total; /* of the CARs planned so far, about */
};

struct fgw_piece_export {
    struct fgw_storage *storage;
    const char *data_dir; /* its pieces/ takes the manifests */
    uint64_t group;       /* sealed when it is not yet */
    const char *to;       /* folder for the files, absolute, there already; NULL: pieces/ */
    uint64_t padded_max;  /* a power of two from FGW_PIECE_PADDED_MIN to FGW_PIECE_PADDED_MAX */
    uint64_t bytes_per_s; /* 0: as fast as it goes */
    /* Called now and then from the exporting fiber; false ends the export (FGW_ERR_CANCELLED). May be
     * NULL. */
    bool (*on_progress)(void *context, const struct fgw_piece_progress *progress);
    void *context;
};

/* Appends a manifest to `pieces` (a JSON array) for each piece that was made; none when nothing in the
 * group is held. FGW_ERR_NOT_FOUND: no such group; FGW_ERR_CONFLICT: an upload still writes to it, or
 * what was to be written was deleted meanwhile; FGW_ERR_IN_USE: another export writes to the folder;
 * FGW_ERR_INVALID_ARGUMENT: a blob is larger than padded_max allows; _CORRUPT, _NOSPACE, _IO. Pieces
 * made before a failure stay. */
enum fgw_err fgw_piece_export(const struct fgw_piece_export *options, json_t *pieces,
                              struct fgw_error *error) FGW_MUST_CHECK;

/* The manifests in pieces/ of a data directory, which need not be open: a new array, ordered by name,
 * each with "present" (its CAR is where it was written, with the right length) added. */
enum fgw_err fgw_piece_list(const char *data_dir, json_t **out_pieces,
                            struct fgw_error *error) FGW_MUST_CHECK;

#endif
