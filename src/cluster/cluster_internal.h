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
    CLUSTER_REMOVED = 4,
    CLUSTER_AWAY = 5,         /* declared down; its process takes it back when it renews */
    CLUSTER_DRAINING_AWAY = 6 /* the same of a draining one */
};

enum cluster_set_state { CLUSTER_SET_OPEN = 1, CLUSTER_SET_CLOSED = 2 };

enum {
    CLUSTER_SETS_PER_STORE = 24,
    CLUSTER_FRESH_MS = 3 * FGW_CLUSTER_BEAT_MS,      /* a counter that moved since then moves */
    CLUSTER_SILENT_MS = FGW_CLUSTER_BEAT_MS * 3 / 2, /* one that did not is looked after */
    CLUSTER_UNREACHABLE_MAX = 256,
    CLUSTER_WHY_SIZE = 160,
    CLUSTER_SETTLE_MS = 3000, /* between seeing that a store joins and sending to it (walk.c) */
    CLUSTER_DROP_MS = 2000 /* between reading that we are outside and giving up a hold (drop.c) */
};

/* What a store says of itself with each beat (docs/formats/cluster-tables.md). */
struct cluster_beat {
    uint64_t free_bytes;
    uint64_t total_bytes;
    uint64_t stored_bytes;
    uint64_t flags;  /* enum cluster_beat_flags */
    uint64_t looked; /* holds looked at by the walk under way or the last one */
    uint64_t copied; /* blobs copied to others since its start */
    uint64_t copied_bytes;
    uint64_t failed;            /* holds the last walk could not settle */
    uint64_t dropped;           /* holds of sets it left, given up since its start */
    uint64_t distrust_until_ms; /* wall clock; see struct cluster_seen */
};
enum cluster_beat_flags {
    CLUSTER_BEAT_BELOW_RESERVE = 1,
    CLUSTER_BEAT_READ_ONLY = 2,
    CLUSTER_BEAT_NO_ROOM = CLUSTER_BEAT_BELOW_RESERVE | CLUSTER_BEAT_READ_ONLY,
    CLUSTER_BEAT_NOTHING_LEFT = 4 /* it drains, is in no set, and the members of those it left have
                                     all that is named of what it holds */
};

struct cluster_store {
    uint8_t id[FGW_STORAGE_ID_SIZE];
    uint64_t epoch;
    int32_t state;
    char node_id[40];
    char zone[72];
    char host[72];
    char address[FGW_PLACEMENT_ADDRESS_SIZE]; /* of its url: host:port */
    bool tls;                                 /* its url is https */
    uint64_t beat;                            /* last seen */
    uint64_t beat_changed_ms;                 /* when it was seen to move, on the own boot clock */
    struct cluster_beat said;                 /* with its last beat seen */
    struct fgw_buf data;                      /* all of it */
    bool unreachable;                         /* its block API did not answer the last question */
    /* what traffic showed here; boot clock */
    uint64_t suspect_until_ms;
    unsigned failures; /* in a row */
};

struct cluster_set {
    uint64_t id;
    uint64_t epoch;
    int32_t state;
    unsigned count;   /* full members */
    unsigned joining; /* behind them in `stores`: written to, not complete yet */
    unsigned wanted;  /* members it should have; 0: as many as it has */
    uint32_t leaving; /* goes when those that join are complete; UINT32_MAX: nobody */
    uint32_t stores[FGW_PLACEMENT_MEMBERS_MAX]; /* indices; UINT32_MAX: unknown store */
};

/* A row of `sets`, for whoever changes it. */
struct cluster_set_row {
    uint64_t id;
    uint64_t epoch;
    int32_t state;
    unsigned count;
    unsigned joining;
    unsigned wanted;
    uint8_t members[FGW_PLACEMENT_MEMBERS_MAX][FGW_STORAGE_ID_SIZE];
    bool has_leaving;
    uint8_t leaving[FGW_STORAGE_ID_SIZE];
    struct fgw_buf carried; /* items of newer versions */
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
    STATEMENT_NODE_STATE,
    STATEMENT_BEAT,
    STATEMENT_BEAT_OF,
    STATEMENT_BEATS,
    STATEMENT_MAP,
    STATEMENT_MAP_INSERT,
    STATEMENT_MAP_BUMP,
    STATEMENT_SETS,
    STATEMENT_SET,
    STATEMENT_SET_INSERT,
    STATEMENT_SET_CHANGE,
    STATEMENT_RELEASE_INSERT,
    STATEMENT_RELEASES,
    STATEMENT_RELEASE_DELETE,
    STATEMENT_COUNT
};

/* Copying, as walk.c keeps it; worker 0 only. */
struct cluster_done {
    uint64_t set;
    uint64_t epoch;
};
struct cluster_walk {
    uint64_t looked, copied, copied_bytes, failed, dropped; /* see struct cluster_beat */
    bool running;
    struct cluster_done *done; /* sets that are copied, for which others wait */
    size_t done_count;
    uint64_t pace_ms; /* boot clock: when the bytes sent so far are paid for */
};

/* What the store remembers (seen.c); worker 0 only. */
struct cluster_seen {
    uint64_t epoch;
    uint64_t map_version;
    uint64_t beat;              /* of the epoch, written down now and then */
    uint64_t distrust_until_ms; /* wall clock */
    uint64_t epoch_before;      /* as they were at the last alarm */
    uint64_t map_before;
    uint64_t *sets;
    size_t set_count;
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
    uint64_t beat_taken;      /* the last one that the database took */
    uint64_t last_renewed_ms; /* boot clock; worker 0 only */
    uint64_t not_renewed_ms;  /* it cannot be renewed since then, 0: it can; worker 0 only */
    uint64_t last_beat_ms;    /* when a beat was written last; worker 0 only */
    uint64_t good_since_ms;   /* the database answers since then, 0: it does not; worker 0 only */
    uint64_t good_for_ms;     /* so long before repair starts */
    uint64_t beats_back;      /* by so many the own counter may lag in what is read */
    struct {
        pthread_mutex_t mutex; /* held for copies and counters only */
        struct cluster_map map;
    } guarded;
    _Atomic uint64_t told_ms;       /* boot clock: when somebody asked for the stores */
    _Atomic uint64_t beats_read_ms; /* boot clock: when their beats were read last */
    _Atomic bool look;              /* they are to be read now */
    _Atomic uint64_t looks_begun,
        looks_done;                /* of the heartbeats; done: the last one that was read */
    _Atomic uint64_t map_known;    /* the highest version ever seen */
    _Atomic uint64_t map_read_ms;  /* boot clock: when the read behind the map was sent */
    _Atomic uint32_t sizes_wanted; /* by buckets: bit n: sets of n members */
    _Atomic bool sizes_lacking;    /* some of them are not there yet */
    _Atomic bool reload;           /* somebody met a set that is not in the map */
    _Atomic uint64_t releases_kept;
    _Atomic uint64_t releases_followed;
    bool stopping; /* worker 0 only */
    struct cluster_walk walk;
    struct cluster_seen seen;
    _Atomic uint64_t distrust_until_ms; /* = seen.distrust_until_ms */
    bool running;
    struct fgw_wait ended; /* of the fibers on worker 0 */
    char brake
        [CLUSTER_WHY_SIZE]; /* why nobody is declared away, "": nothing holds it up; under guarded.mutex */
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
/* Moves a store from one state to another while its epoch is `epoch`; bumps the map when that
 * happened. */
enum fgw_err cluster_node_state(struct fgw_cluster *cluster, const struct cluster_store *store,
                                enum cluster_node_state to, bool *out_applied,
                                struct fgw_error *error) FGW_MUST_CHECK;

/* -- beats.c ------------------------------------------------------------------------------------- */

void cluster_beat(struct fgw_cluster *cluster);
/* The counter of the store with its epoch as the database shows it; 0: no row. */
enum fgw_err cluster_read_beat(struct fgw_cluster *cluster, const struct cluster_store *store,
                               int64_t *out_beat, struct fgw_error *error) FGW_MUST_CHECK;
/* Raises the alarm when the database shows less than `taken` of the own counter of this epoch; 0: none
 * was taken yet. */
enum fgw_err cluster_check_beat(struct fgw_cluster *cluster, uint64_t epoch, uint64_t taken,
                                struct fgw_error *error) FGW_MUST_CHECK;
/* What all stores said last, and whether their counters moved. */
enum fgw_err cluster_beats_read(struct fgw_cluster *cluster,
                                struct fgw_error *error) FGW_MUST_CHECK;
/* Does the store say that it does not reach `other`? */
bool cluster_beat_misses(const struct cluster_store *store, const uint8_t *other);
/* Does it say that it has copied all of the set, as of this epoch, to those that join? */
bool cluster_beat_done(const struct cluster_store *store, uint64_t set, uint64_t epoch);

/* -- map.c --------------------------------------------------------------------------------------- */

/* Loads all of it when the version is another than ours, or `force`. */
enum fgw_err cluster_map_refresh(struct fgw_cluster *cluster, bool force,
                                 struct fgw_error *error) FGW_MUST_CHECK;
/* After a change of nodes or sets. */
enum fgw_err cluster_map_bump(struct fgw_cluster *cluster, struct fgw_error *error) FGW_MUST_CHECK;
/* Makes the sets that are missing for the stores there are. */
enum fgw_err cluster_make_sets(struct fgw_cluster *cluster, struct fgw_error *error) FGW_MUST_CHECK;
/* A copy that stays as it is while others wait. */
void cluster_map_copy(struct fgw_cluster *cluster, struct cluster_map *out);
/* As the database shows it now, with what was seen of the stores. Any worker. */
enum fgw_err cluster_map_fresh(struct fgw_cluster *cluster, struct cluster_map *out,
                               struct fgw_error *error) FGW_MUST_CHECK;
void cluster_map_deinit(struct cluster_map *map);
struct cluster_store *cluster_map_store(const struct cluster_map *map, const uint8_t *id);
const struct cluster_set *cluster_map_set(const struct cluster_map *map, uint64_t id);
/* How to reach a store. */
void cluster_member_of(const struct cluster_store *store, struct fgw_placement_member *out);
/* "http://host:port/..." -> "host:port"; empty when it is none. */
void cluster_address_of_url(struct fgw_bytes url, char out[FGW_PLACEMENT_ADDRESS_SIZE]);

/* -- sets.c: rows of `sets` ---------------------------------------------------------------------- */

enum fgw_err cluster_set_decode(struct fgw_bytes data, struct cluster_set_row *out) FGW_MUST_CHECK;
void cluster_set_encode(const struct cluster_set_row *row, struct fgw_buf *out);
/* Linearizable. NOT_FOUND. The row is ended by deinit. */
enum fgw_err cluster_set_read(struct fgw_cluster *cluster, uint64_t id, struct cluster_set_row *out,
                              struct fgw_error *error) FGW_MUST_CHECK;
/* IF epoch = row->epoch, which goes up by one. An unknown outcome counts as not applied: whoever
 * reads the row again decides again. */
enum fgw_err cluster_set_write(struct fgw_cluster *cluster, const struct cluster_set_row *row,
                               bool *out_applied, struct fgw_error *error) FGW_MUST_CHECK;
void cluster_set_deinit(struct cluster_set_row *row);

/* -- health.c ------------------------------------------------------------------------------------ */

/* One look at who is away: asks stores that fell silent, declares those away that are. */
void cluster_watch(struct fgw_cluster *cluster);
/* Own heartbeats and the database are good, and have been. */
bool cluster_is_trusted(const struct fgw_cluster *cluster, char *why, size_t size);
/* Enough others say that they do not reach store `index`: two zones, or with one zone two
 * processes, on different hosts where there are. Pure. */
bool cluster_witnessed(const struct cluster_map *map, size_t index, uint64_t now_ms);
/* Do so many stores look down that rather the onlooker is cut off? down: by index. Says why. Pure. */
bool cluster_too_many_down(const struct cluster_map *map, const bool *down, char *why, size_t size);

/* -- repair.c ------------------------------------------------------------------------------------ */

enum cluster_step_kind {
    CLUSTER_STEP_NONE,
    CLUSTER_STEP_START,  /* `joining` joins, in place of `leaving` */
    CLUSTER_STEP_CANCEL, /* whoever joined is gone too */
    CLUSTER_STEP_FINISH
};
struct cluster_step {
    enum cluster_step_kind kind;
    uint32_t joining, leaving; /* indices; UINT32_MAX: none */
};
/* Takes the next step of each set whose repairer this process is. */
void cluster_repair(struct fgw_cluster *cluster);
/* Pure. */
struct cluster_step cluster_next_step(const struct cluster_map *map, const struct cluster_set *set);
/* The best store to join in place of `leaving` (UINT32_MAX: of nobody); UINT32_MAX: none. Pure. */
uint32_t cluster_candidate(const struct cluster_map *map, const struct cluster_set *set,
                           uint32_t leaving);
/* How badly a store fits to the members that stay: hosts before zones; UINT32_MAX: it is one. */
unsigned cluster_closeness(const struct cluster_map *map, const struct cluster_set *set,
                           uint32_t leaving, uint32_t candidate);
/* Active, answers, and has room. */
bool cluster_can_join(const struct cluster_store *store);
/* Of the room it could have, the share with our bytes. */
double cluster_fill(const struct cluster_store *store);
/* Nothing is needed from it any more. Pure. */
bool cluster_is_drained(const struct cluster_map *map, uint32_t store);
/* Sets the store is in, those it joins included. */
unsigned cluster_sets_of(const struct cluster_map *map, uint32_t store);
/* Steps on a row; start is false when somebody joins already. */
bool cluster_row_start(struct cluster_set_row *row, const uint8_t *joining, const uint8_t *leaving);
void cluster_row_cancel(struct cluster_set_row *row);
void cluster_row_finish(struct cluster_set_row *row);

/* -- operate.c: pure ------------------------------------------------------------------------------ */

/* What rebalance weighs of a store, as if what moves had moved. */
struct cluster_load {
    double bytes; /* that it has */
    double room;  /* bytes and free space together */
    unsigned sets;
    unsigned moved; /* of its sets, on their way to others */
};
/* loads: zeroed, one a store of the map; moves under way are taken for done. */
void cluster_measure(const struct cluster_map *map, struct cluster_load *loads);
/* A set's worth goes from one store to the other. */
void cluster_note_move(struct cluster_load *from, struct cluster_load *to);
/* The pair of stores that differ most, if a move does not turn the difference round. */
bool cluster_pick_pair(const struct cluster_map *map, const struct cluster_load *loads,
                       uint32_t *out_from, uint32_t *out_to);

/* -- copy.c, walk.c ------------------------------------------------------------------------------ */

/* The blob of an own hold is durable and held by the same owner on the target. */
enum fgw_err cluster_copy(struct fgw_cluster *cluster, const struct fgw_storage_hold_seen *hold,
                          const struct fgw_remote_target *target, uint64_t *out_bytes,
                          struct fgw_error *error) FGW_MUST_CHECK;
/* Ends an own hold that the metadata names on sets this store is not in, once their members have
 * the blob. CANCELLED: not so any more. */
enum fgw_err cluster_drop(struct fgw_cluster *cluster, const struct fgw_storage_hold_seen *hold,
                          const struct fgw_cluster_named *named,
                          struct fgw_error *error) FGW_MUST_CHECK;
/* The fiber that copies; arg: the cluster. Signals cluster->ended. */
void cluster_walk_run(void *arg);

/* -- releases.c ---------------------------------------------------------------------------------- */

/* placement.keep_release. */
void cluster_keep_release(void *context, const uint8_t *store_id,
                          const struct fgw_storage_owner *owner, uint64_t extent,
                          const struct fgw_cid *root);
/* The fiber that follows the rows of the own store; arg: the cluster. Signals cluster->ended. */
void cluster_releases_run(void *arg);

/* -- seen.c -------------------------------------------------------------------------------------- */

enum fgw_err cluster_seen_load(struct fgw_cluster *cluster, struct fgw_error *error) FGW_MUST_CHECK;
/* Raises the alarm when the database shows less than was seen. */
void cluster_seen_check(struct fgw_cluster *cluster, uint64_t epoch, uint64_t map_version);
/* The same with the own counter: shown by the database, and taken by it before. */
void cluster_seen_beat(struct fgw_cluster *cluster, uint64_t shown, uint64_t taken);
/* An alarm that another store tells of with its beats is ours too, until the same time. */
void cluster_seen_others(struct fgw_cluster *cluster);
/* The highest epoch this store ever had. */
uint64_t cluster_seen_epoch(const struct fgw_cluster *cluster);
/* Logs what is new in the map. */
void cluster_seen_note(struct fgw_cluster *cluster);
/* Sets the store was in and is no more; heap. */
size_t cluster_seen_left(struct fgw_cluster *cluster, uint64_t **out_sets);
/* This store drains, is in no set, and has handed over those it was in. */
bool cluster_seen_nothing_left(struct fgw_cluster *cluster);
/* They are given up. */
void cluster_seen_forget(struct fgw_cluster *cluster, const uint64_t *sets, size_t count);

/* -- plan.c: pure -------------------------------------------------------------------------------- */

struct cluster_planned {
    uint64_t id; /* of the first set of these stores */
    unsigned count;
    unsigned replicas; /* members that the sets should have, as soon as there are stores for it */
    unsigned wanted;   /* so many sets of them: what moves later moves set by set */
    uint32_t stores[FGW_PLACEMENT_MEMBERS_MAX];
};
/* The sets for the active stores of a map, members in different zones, else hosts, else stores. The
 * same stores give the same sets with the same ids, whoever plans. *out_sets: heap, sorted by id. */
void cluster_plan_sets(const struct cluster_map *map, unsigned replicas,
                       struct cluster_planned **out_sets, size_t *out_count);
/* The id of a further set of the same stores (number 0: the first). */
uint64_t cluster_set_id(uint64_t first, unsigned number);
/* Those of `replicas` members, and of each other size whose bit (1 << size) is set in `sizes`. */
void cluster_plan_all(const struct cluster_map *map, unsigned replicas, uint32_t sizes,
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
