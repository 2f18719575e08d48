/* plan.h: walking over holds, and which blobs of a group go into the next piece. In a fiber; one thread. */
#ifndef FGW_PIECE_PLAN_H
#define FGW_PIECE_PLAN_H

#include "piece/piece.h"

enum { FGW_PIECE_BLOBS_MAX = 512 * 1024 };

struct fgw_piece_blob {
    struct fgw_cid cid;
    uint64_t offset; /* of its root block in the group */
    uint64_t size_bytes;
};

struct fgw_piece_plan {
    struct fgw_piece_blob *blobs; /* by offset */
    size_t count;
    uint64_t bytes; /* of their blocks, about, and not less than in the CAR */
    uint64_t next;  /* offset at which the piece after this one begins */
};

/* A walk over holds that may be ended: false. */
typedef bool fgw_piece_go_on_fn(void *context);

struct fgw_piece_holds {
    struct fgw_storage *storage;
    fgw_piece_go_on_fn *go_on;
    void *context; /* of go_on */
};

typedef enum fgw_err fgw_piece_hold_fn(void *context, const struct fgw_storage_hold_seen *hold,
                                       struct fgw_error *error);
/* Every hold of the store, once. What fn returns ends it when it is not FGW_OK; FGW_ERR_CANCELLED when
 * go_on says so, which is asked after each page. */
enum fgw_err fgw_piece_each_hold(const struct fgw_piece_holds *holds, fgw_piece_hold_fn *fn,
                                 void *context, struct fgw_error *error) FGW_MUST_CHECK;

struct fgw_piece_selection {
    struct fgw_piece_holds holds;
    uint64_t group;
    uint64_t from; /* offset in the group */
    uint64_t padded_max;
};

/* Blobs whose root block lies in the group at `from` or behind, as many as fit; none: the group has no
 * more. FGW_ERR_INVALID_ARGUMENT: the first one does not fit; _CORRUPT: a root block is marked bad;
 * _CANCELLED. The plan is empty or freed after a failure. */
enum fgw_err fgw_piece_plan_next(const struct fgw_piece_selection *selection,
                                 struct fgw_piece_plan *out_plan,
                                 struct fgw_error *error) FGW_MUST_CHECK;
void fgw_piece_plan_deinit(struct fgw_piece_plan *plan);

#endif
