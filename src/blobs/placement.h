/* placement.h: which stores hold what: handed to the replicated store by whoever knows the cluster
 * (design/cluster.md sections 1, 2). Answers are copies of a snapshot: no waiting, any worker.
 */
#ifndef FGW_BLOBS_PLACEMENT_H
#define FGW_BLOBS_PLACEMENT_H

#include "storage/storage.h"

/* 16 copies (FGW_REPLICAS), and a store that joins such a set */
enum { FGW_PLACEMENT_MEMBERS_MAX = 17, FGW_PLACEMENT_ADDRESS_SIZE = 272 };

struct fgw_placement_member {
    uint8_t store_id[FGW_STORAGE_ID_SIZE];
    uint64_t epoch;                           /* highest known of it */
    char address[FGW_PLACEMENT_ADDRESS_SIZE]; /* "host:port" of its block API; "" when unknown */
    bool tls;                                 /* its address speaks TLS */
    bool local;                               /* this process's own store */
    bool suspect;                             /* failed lately: last choice */
    bool joining; /* not complete yet: written to, no copy that counts, read last */
};

struct fgw_placement_set {
    uint64_t id; /* never 0 */
    uint64_t epoch;
    unsigned count;
    unsigned needed; /* durable copies that acknowledge a write */
    struct fgw_placement_member members[FGW_PLACEMENT_MEMBERS_MAX];
};

enum fgw_placement_event {
    FGW_PLACEMENT_GOOD,
    FGW_PLACEMENT_FAILED, /* no connection, no answer in time, an error of the store */
    FGW_PLACEMENT_FULL,   /* below its reserve */
    FGW_PLACEMENT_DAMAGED /* it has bytes that are not what was asked for */
};

/* Is the store of this process a member? */
static inline bool fgw_placement_set_is_here(const struct fgw_placement_set *set)
{
    bool here = false;
    for (unsigned i = 0; i < set->count && !here; i++) {
        here = set->members[i].local;
    }
    return here;
}

struct fgw_placement {
    void *context;
    /* A set for new bytes with `replicas` members (0: the default), as many as the cluster allows,
     * none of `avoid`, if there is another. FGW_ERR_UNAVAILABLE when there is none. */
    enum fgw_err (*choose)(void *context, unsigned replicas, const uint64_t *avoid,
                           size_t avoid_count, struct fgw_placement_set *out_set,
                           struct fgw_error *error);
    /* FGW_ERR_NOT_FOUND: unknown here (yet); it is then looked for, which takes a moment. */
    enum fgw_err (*resolve)(void *context, uint64_t set_id, struct fgw_placement_set *out_set);
    /* What traffic shows of a store. root: of the blob concerned, may be NULL. */
    void (*report)(void *context, const uint8_t store_id[FGW_STORAGE_ID_SIZE],
                   enum fgw_placement_event event, const struct fgw_cid *root);
    /* A store knows a newer epoch of a set than we do: it is read again soon. May be NULL. */
    void (*stale)(void *context, uint64_t set_id);
    /* What resolve answers was read from the database no earlier than then (boot clock, when the
     * read was sent); 0: never. NULL: always up to date. */
    uint64_t (*seen_ms)(void *context);
    /* The row that named a hold is gone and the store could not be told: it is told when it is back.
     * Waits; from a fiber. May be NULL. */
    void (*keep_release)(void *context, const uint8_t store_id[FGW_STORAGE_ID_SIZE],
                         const struct fgw_storage_owner *owner, uint64_t extent,
                         const struct fgw_cid *root);
};

#endif
