/* cluster_internal.h: the snapshot and its parts, shared by the files of this folder. */
#ifndef FGW_CLUSTER_CLUSTER_INTERNAL_H
#define FGW_CLUSTER_CLUSTER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "cluster/cluster.h"
#include "event/fiber.h"

enum cluster_node_state {
    CLUSTER_ACTIVE = 1,
    CLUSTER_DRAINING = 2,
    CLUSTER_LOST = 3,
    CLUSTER_REMOVED = 4
};

enum cluster_set_state { CLUSTER_SET_OPEN = 1, CLUSTER_SET_CLOSED = 2 };

enum { CLUSTER_SETS_PER_STORE = 24 };

struct cluster_store {
    uint8_t id[FGW_STORAGE_ID_SIZE];
    uint64_t epoch;
    int32_t state;
    char node_id[40];
    char zone[72];
    char host[72];
    char address[FGW_PLACEMENT_ADDRESS_SIZE]; /* of its url: host:port */
    uint64_t beat;
    uint64_t free_bytes; /* of its last beat seen */
    uint64_t total_bytes;
    /* what traffic showed here; boot clock */
    uint64_t suspect_until_ms;
    unsigned failures; /* in a row */
};

struct cluster_set {
    uint64_t id;
    uint64_t epoch;
    int32_t state;
    unsigned count;
    uint32_t stores[FGW_PLACEMENT_MEMBERS_MAX]; /* indices; UINT32_MAX: unknown store */
};

struct cluster_map {
    uint64_t version;
    struct cluster_store *stores; /* sorted by id */
    size_t store_count;
    struct cluster_set *sets; /* sorted by id */
    size_t set_count;
};

enum cluster_statement {
    STATEMENT_NODES,
    STATEMENT_NODE,
    STATEMENT_NODE_INSERT,
    STATEMENT_NODE_TAKE,
    STATEMENT_NODE_LOST,
    STATEMENT_BEAT,
    STATEMENT_BEAT_OF,
    STATEMENT_BEATS,
    STATEMENT_MAP,
    STATEMENT_MAP_INSERT,
    STATEMENT_MAP_BUMP,
    STATEMENT_SETS,
    STATEMENT_SET_INSERT,
    STATEMENT_COUNT
};

struct fgw_cluster {
    struct fgw_cluster_options options;
    char *strings[5]; /* owned copies */
    struct fgw_placement placement;
    struct fgw_cql_statement statements[STATEMENT_COUNT];
    char *texts[STATEMENT_COUNT];
    uint8_t store_id[FGW_STORAGE_ID_SIZE];
    uint64_t epoch;
    uint64_t beat;
    uint64_t last_renewed_ms; /* boot clock; worker 0 only */
    struct {
        pthread_mutex_t mutex; /* held for copies and counters only */
        struct cluster_map map;
    } guarded;
    _Atomic uint64_t map_read_ms; /* boot clock: when the read behind the map was sent */
    _Atomic bool reload; /* somebody met a set that is not in the map */
    bool stopping;       /* worker 0 only */
    bool running;
    struct fgw_wait ended;
};

/* -- cluster.c ----------------------------------------------------------------------------------- */

/* Executes on this worker's client; values as the statement has markers. */
enum fgw_err cluster_execute(struct fgw_cluster *cluster, enum cluster_statement statement,
                             const struct fgw_cql_value *values, size_t count, bool serial,
                             struct fgw_cql_result **out_result,
                             struct fgw_error *error) FGW_MUST_CHECK;
/* A conditional statement: *out_applied. */
enum fgw_err cluster_change(struct fgw_cluster *cluster, enum cluster_statement statement,
                            const struct fgw_cql_value *values, size_t count, bool *out_applied,
                            struct fgw_error *error) FGW_MUST_CHECK;

/* -- registry.c ---------------------------------------------------------------------------------- */

enum fgw_err cluster_take_store(struct fgw_cluster *cluster,
                                struct fgw_error *error) FGW_MUST_CHECK;
void cluster_renew(struct fgw_cluster *cluster);
void cluster_beat(struct fgw_cluster *cluster);

/* -- map.c --------------------------------------------------------------------------------------- */

/* Loads all of it when the version is another than ours, or `force`. */
enum fgw_err cluster_map_refresh(struct fgw_cluster *cluster, bool force,
                                 struct fgw_error *error) FGW_MUST_CHECK;
/* Free space of the stores, from their beats. */
enum fgw_err cluster_map_beats(struct fgw_cluster *cluster, struct fgw_error *error) FGW_MUST_CHECK;
/* After a change of nodes or sets. */
enum fgw_err cluster_map_bump(struct fgw_cluster *cluster, struct fgw_error *error) FGW_MUST_CHECK;
/* Makes the sets that are missing for the stores there are. */
enum fgw_err cluster_make_sets(struct fgw_cluster *cluster, struct fgw_error *error) FGW_MUST_CHECK;
void cluster_map_deinit(struct cluster_map *map);
struct cluster_store *cluster_map_store(const struct cluster_map *map, const uint8_t *id);
const struct cluster_set *cluster_map_set(const struct cluster_map *map, uint64_t id);
/* "http://host:port/..." -> "host:port"; empty when it is none. */
void cluster_address_of_url(struct fgw_bytes url, char out[FGW_PLACEMENT_ADDRESS_SIZE]);

/* -- plan.c: pure -------------------------------------------------------------------------------- */

struct cluster_planned {
    uint64_t id;
    unsigned count;
    uint32_t stores[FGW_PLACEMENT_MEMBERS_MAX];
};
/* The sets for the active stores of a map, members in different zones, else hosts, else stores. The
 * same stores give the same sets with the same ids, whoever plans. *out_sets: heap, sorted by id. */
void cluster_plan_sets(const struct cluster_map *map, unsigned replicas,
                       struct cluster_planned **out_sets, size_t *out_count);
/* Copies that `replicas` wanted can have. */
unsigned cluster_possible(const struct cluster_map *map, unsigned replicas);

/* -- placement.c --------------------------------------------------------------------------------- */

enum fgw_err cluster_choose(void *context, unsigned replicas, const uint64_t *avoid,
                            size_t avoid_count, struct fgw_placement_set *out_set,
                            struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err cluster_resolve(void *context, uint64_t set_id,
                             struct fgw_placement_set *out_set) FGW_MUST_CHECK;
void cluster_stale(void *context, uint64_t set_id);
uint64_t cluster_seen_ms(void *context);
void cluster_report(void *context, const uint8_t *store_id, enum fgw_placement_event event,
                    const struct fgw_cid *root);

#endif
