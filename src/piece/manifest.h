/* manifest.h: the two text files of a piece (docs/formats/piece.md). */
#ifndef FGW_PIECE_MANIFEST_H
#define FGW_PIECE_MANIFEST_H

#include <jansson.h>

#include "cid/commp.h"
#include "piece/out_file.h"
#include "piece/seen.h"
#include "storage/storage.h"

struct fgw_piece_facts {
    const struct fgw_piece *piece;
    struct fgw_cid root;
    uint64_t group;
    const uint8_t *store_id;
    uint64_t blobs, blocks, objects;
    const char *car; /* absolute path */
};

/* A new object. */
json_t *fgw_piece_manifest(const struct fgw_piece_facts *facts);
/* A line about a hold. */
enum fgw_err fgw_piece_put_object(struct fgw_piece_out_file *file,
                                  const struct fgw_storage_hold_seen *hold) FGW_MUST_CHECK;

#endif
