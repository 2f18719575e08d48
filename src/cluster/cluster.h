/* cluster.h: who the stores are and which sets they form, as one process sees it (design/cluster.md
 * sections 1 and 2, metadata.md section 8; tables: migrations/shared, nodes to sets).
 *
 * A storage node takes its store by a conditional write that raises the store's epoch, renews by
 * reading its row every 5 s, beats a counter, and sees to it that there are replica sets. Every
 * process polls the map version and keeps a snapshot of nodes and sets, from which placement
 * answers without waiting. A database that is away changes nothing: the snapshot stays.
 * Threads: new, start, stop, free from a thread that is no worker; placement from any worker.
 */
#ifndef FGW_CLUSTER_CLUSTER_H
#define FGW_CLUSTER_CLUSTER_H

#include "blobs/placement.h"
#include "blobs/remote.h"
#include "cql/client.h"
#include "event/workers.h"

struct fgw_cluster;

enum { FGW_CLUSTER_ID_SIZE = 16, FGW_CLUSTER_BEAT_MS = 5000, FGW_CLUSTER_POLL_MS = 2000 };

/* The identity of the database (metadata.md section 8). */
struct fgw_identify {
    bool make;          /* where there is none: one may be made */
    const uint8_t *own; /* cluster id of this process's data directory; NULL: none, or a new one */
    bool own_is_empty;  /* that directory holds nothing */
};
/* Reads it, or makes it, once, whoever comes first: a directory's own id goes into a database that
 * has buckets (it lost the row, or was never marked) or with a directory that is empty; a random one
 * into a database without buckets. One fiber. FGW_ERR_NOT_FOUND: tables or id are not there, and why
 * none is made; whether the id is the directory's the caller compares. */
enum fgw_err fgw_cluster_identify(struct fgw_cql_client *client, const char *keyspace,
                                  const struct fgw_identify *how,
                                  uint8_t out_id[FGW_CLUSTER_ID_SIZE],
                                  struct fgw_error *error) FGW_MUST_CHECK;

/* On which sets the rows of an owner name a blob. */
struct fgw_cluster_named {
    bool live;
    bool any_set; /* an open upload: on any */
    unsigned count;
    uint64_t sets[16];
};

struct fgw_cluster_options {
    struct fgw_workers *workers;
    /* The CQL client of the calling worker. Clients go before the cluster, whose statements they
     * know by address. */
    struct fgw_cql_client *(*client)(void *context);
    void *client_context;
    const char *keyspace;
    unsigned replicas;     /* FGW_REPLICAS */
    unsigned min_replicas; /* FGW_MIN_REPLICAS; 0: min(2, R) with at least three stores, else 1 */
    /* A storage node; storage NULL: a proxy. */
    struct fgw_storage *storage;
    const char *node_id;
    const char *zone;
    const char *host;
    const char *url;
    /* To ask other stores with; NULL for a proxy. */
    struct fgw_remotes *remotes;
    uint64_t down_after_ms;      /* FGW_NODE_DOWN_AFTER */
    uint64_t repair_bytes_per_s; /* that a store sends to others at most; 0: no limit */
    /* Asks the metadata, linearizably; from a fiber of worker 0. */
    enum fgw_err (*named)(void *context, const struct fgw_storage_owner *owner,
                          const struct fgw_cid *root, struct fgw_cluster_named *out_named,
                          struct fgw_error *error);
    /* The own row showed the own epoch in a read sent then (boot clock); another process has it. */
    void (*renewed)(void *context, uint64_t sent_boot_ms);
    void (*fenced)(void *context, uint64_t higher_epoch);
    /* For /readyz: text NULL: fine. */
    void (*health)(void *context, const char *what, const char *text);
    void *context;
};

struct fgw_cluster_stats {
    uint64_t map_version, stores, stores_suspect, sets, epoch;
    uint64_t releases_kept;     /* written down for a store that could not be told */
    uint64_t releases_followed; /* holds that this store ended by such rows */
    unsigned replicas_possible; /* copies that a new object gets now */
    bool renewed;
};

/* Strings are copied. No I/O. */
struct fgw_cluster *fgw_cluster_new(const struct fgw_cluster_options *options);
/* Valid as long as the cluster. */
const struct fgw_placement *fgw_cluster_placement(struct fgw_cluster *cluster);
/* Takes the store (a storage node) and loads the first map; in one go, may wait 12 s for another
 * store of the same node id. FGW_ERR_IN_USE: that one is alive (message names it); CONFIG: this
 * one was removed from the cluster; UNAVAILABLE and
 * other errors of the database: call again. */
enum fgw_err fgw_cluster_join(struct fgw_cluster *cluster, struct fgw_error *error) FGW_MUST_CHECK;
/* After join: the epoch taken; 0 for a proxy. */
uint64_t fgw_cluster_epoch(const struct fgw_cluster *cluster);
/* The database showed less than this store had seen before, within 7 days: nothing may be freed
 * because of what it says. Any thread. */
bool fgw_cluster_distrusts(struct fgw_cluster *cluster);
/* Starts renewing and polling on worker 0. */
void fgw_cluster_start(struct fgw_cluster *cluster);
void fgw_cluster_stats(struct fgw_cluster *cluster, struct fgw_cluster_stats *out_stats);
/* The stores, for `fgw status`: a JSON array, appended. */
void fgw_cluster_json(struct fgw_cluster *cluster, struct fgw_buf *out);
/* -- operations (fgw node): from a fiber of any worker, or of the one loop of a program that does
 * nothing else and never calls start (options.workers NULL). Changes are conditional writes; an
 * error's message is for people. ------------------------------------------------------------- */

/* Reads the whole map and the beats; then again after wait_ms, if that is not 0: stores whose
 * counters did not move meanwhile count as silent. For programs that did not watch. */
enum fgw_err fgw_cluster_look(struct fgw_cluster *cluster, uint64_t wait_ms,
                              struct fgw_error *error) FGW_MUST_CHECK;
/* name: a node id, or at least 8 hex digits of a store id. NOT_FOUND, CONFLICT: not as it is now,
 * the message says why. */
enum fgw_err fgw_cluster_drain(struct fgw_cluster *cluster, const char *name, bool cancel,
                               struct fgw_error *error) FGW_MUST_CHECK;
/* Refuses while the store is a member of a set, unless `force`; *out_lost: sets of which no copy is
 * left then. */
enum fgw_err fgw_cluster_remove(struct fgw_cluster *cluster, const char *name, bool force,
                                unsigned *out_lost, struct fgw_error *error) FGW_MUST_CHECK;
/* Moves memberships of sets from the fullest stores to the emptiest, at most a quarter of a store's
 * sets at a time. *out_moves: how many were begun. */
enum fgw_err fgw_cluster_rebalance(struct fgw_cluster *cluster, unsigned *out_moves,
                                   struct fgw_error *error) FGW_MUST_CHECK;
/* Sets by how they are, and warnings: members of a JSON object, appended without its braces. */
void fgw_cluster_sets_json(struct fgw_cluster *cluster, struct fgw_buf *out);
/* What this store has seen before against what the database shows: a JSON object, appended. */
void fgw_cluster_seen_json(struct fgw_cluster *cluster, struct fgw_buf *out);

/* Ends what start began. Takes NULL. */
void fgw_cluster_stop(struct fgw_cluster *cluster);
/* After stop and after the CQL clients. Takes NULL. */
void fgw_cluster_free(struct fgw_cluster *cluster);

#endif
