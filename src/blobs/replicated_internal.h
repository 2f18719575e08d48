/* replicated_internal.h: what member.c and the files replicated*.c share. */
#ifndef FGW_BLOBS_REPLICATED_INTERNAL_H
#define FGW_BLOBS_REPLICATED_INTERNAL_H

#include <stdatomic.h>

#include "base/list.h"
#include "blobs/leaf.h"
#include "blobs/replicated.h"
#include "cid/dag.h"
#include "event/fiber.h"
#include "event/workers.h"

enum { FGW_REPLICATED_SETS_TRIED = 4, FGW_REPLICATED_RESTAGES_MAX = 16 };

enum { FGW_TELL_BATCH = 300 };

struct fgw_told_queue {
    struct fgw_list list; /* oldest first */
    unsigned count;
};

struct fgw_replicated_worker {
    unsigned hints; /* fibers under way */
    struct fgw_wait *no_hints;
    /* replicated_tell.c */
    struct fgw_told_queue confirms;
    struct fgw_told_queue releases;
    bool telling; /* its fiber runs */
    bool closing;
    struct fgw_wait *tell_wake;
    /* replicated_hedge.c */
    unsigned attempts; /* fibers under way */
    double p95_us;     /* of the time to the first bytes, estimated; 0: none yet */
    double hedge_tokens;
    unsigned fixes; /* replicated_fix.c */
};

/* A fiber that worker->hints counts has done its work. */
void fgw_replicated_hint_done(struct fgw_replicated_worker *worker);
/* Whoever waits for the last fiber of a worker is told. */
void fgw_replicated_fiber_done(struct fgw_replicated_worker *worker);

struct fgw_replicated {
    struct fgw_blobs base;
    struct fgw_replicated_options options;
    struct fgw_replicated_worker *per_worker;
    struct {
        _Atomic uint64_t writes, writes_failed, sets_replaced, members_failed, copies_missing;
        _Atomic uint64_t reads, read_failovers, reads_failed, digests_checked, digests_wrong;
        _Atomic uint64_t hints_dropped, restages, confirmed, confirms_left, renewed, copies_made,
            reads_hedged, blocks_mended;
    } counters;
};

#define FGW_REPLICATED_COUNT(replicated, name) \
    (void)atomic_fetch_add(&(replicated)->counters.name, 1)

static inline struct fgw_replicated *fgw_replicated_of(struct fgw_blobs *blobs)
{
    return FGW_CONTAINER_OF(blobs, struct fgw_replicated, base);
}

/* -- member.c: one member of a set, here or elsewhere -------------------------------------------- */

struct fgw_member {
    struct fgw_replicated *replicated;
    const struct fgw_placement_set *set;
    unsigned index;
};

struct fgw_member_writer {
    struct fgw_storage_writer *local;
    struct fgw_remote_writer *remote;
};

struct fgw_member_reader {
    struct fgw_storage_reader *local;
    struct fgw_remote_reader *remote;
};

/* One extent of an owner, and the blob that it names. */
struct fgw_member_hold {
    const struct fgw_storage_owner *owner;
    uint64_t extent;
    const struct fgw_cid *root;
    uint64_t size;
};

static inline const struct fgw_placement_member *fgw_member_of(const struct fgw_member *member)
{
    return &member->set->members[member->index];
}
/* block NULL: a further hold on a blob that is there. Durable when it returns. */
enum fgw_err fgw_member_hold(const struct fgw_member *member, const struct fgw_member_hold *hold,
                             const struct fgw_storage_block *block,
                             struct fgw_error *error) FGW_MUST_CHECK;
/* A hint, as many holds. One that the store cannot be told is kept for it (placement.h). */
void fgw_member_release(const struct fgw_member *member, const struct fgw_storage_hold_seen *holds,
                        uint32_t count);
/* At most FGW_TELL_BATCH of them. */
enum fgw_err fgw_member_confirm(const struct fgw_member *member,
                                const struct fgw_storage_hold_seen *holds, uint32_t count,
                                struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_member_writer_open(const struct fgw_member *member,
                                    const struct fgw_storage_owner *owner, uint64_t extent,
                                    struct fgw_member_writer *out_writer,
                                    struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_member_writer_add(struct fgw_member_writer *writer,
                                   const struct fgw_storage_block *block, bool leaf,
                                   struct fgw_error *error) FGW_MUST_CHECK;
/* The hold's extent may be another one than the writer was opened for. */
enum fgw_err fgw_member_writer_finish(const struct fgw_member *member,
                                      struct fgw_member_writer *writer,
                                      const struct fgw_member_hold *hold,
                                      struct fgw_error *error) FGW_MUST_CHECK;
void fgw_member_writer_close(struct fgw_member_writer *writer);
/* The store looks at the block and marks it bad if its bytes are wrong. FGW_OK also when they are not. */
enum fgw_err fgw_member_damaged(const struct fgw_member *member, const struct fgw_cid *cid,
                                struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_member_reader_open(const struct fgw_member *member,
                                    const struct fgw_extent *extent, uint64_t offset, uint64_t len,
                                    struct fgw_member_reader *out_reader,
                                    struct fgw_error *error) FGW_MUST_CHECK;
void fgw_member_reader_close(struct fgw_member_reader *reader);
/* Tells placement how the store did. */
void fgw_member_report(const struct fgw_member *member, enum fgw_err err,
                       const struct fgw_cid *root);

/* Runs fn(context, i) for i in [0, count) in fibers side by side and waits for all. */
void fgw_member_run_all(unsigned count, void (*fn)(void *context, unsigned index), void *context);

/* -- replicated_stage.c: a body on its way to a set ----------------------------------------------- */

struct fgw_stage_lane {
    struct fgw_blob_stage *stage;
    struct fgw_member member;
    struct fgw_member_writer writer;
    enum fgw_err err; /* sticky: the member has left the write */
};

struct fgw_blob_stage {
    struct fgw_blob_handle handle; /* first */
    struct fgw_replicated *replicated;
    struct fgw_arena *arena;
    struct fgw_storage_owner owner;
    uint64_t extent_number;
    uint64_t size;
    unsigned replicas;
    struct fgw_md5 *md5; /* of the options */
    struct fgw_error *error;
    struct fgw_leaf leaf;  /* being filled */
    struct fgw_leaf spare; /* being sent */
    enum fgw_err failed;
    /* once it is too large for memory */
    bool open;
    bool finished; /* the members were asked to finish the whole blob */
    struct fgw_placement_set set;
    struct fgw_stage_lane lanes[FGW_PLACEMENT_MEMBERS_MAX];
    struct fgw_dag_builder *dag;
    struct fgw_buf leaves; /* digests of the leaves sent */
    uint64_t sent_bytes;   /* of them */
    uint64_t nodes_sent;
    unsigned restages;
    uint8_t lost[FGW_PLACEMENT_MEMBERS_MAX][FGW_STORAGE_ID_SIZE]; /* stores that have left it */
    unsigned lost_count;
    /* the block on its way */
    struct fgw_storage_block block;
    bool block_is_leaf;
    struct fgw_wait sending;
    unsigned senders;
    struct fgw_dag_root root; /* at the end */
};

enum fgw_err fgw_replicated_stage_begin(struct fgw_blobs *blobs,
                                        const struct fgw_blob_stage_options *options,
                                        struct fgw_blob_stage **out_stage,
                                        struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_replicated_stage_write(struct fgw_blob_stage *stage,
                                        struct fgw_bytes bytes) FGW_MUST_CHECK;
size_t fgw_replicated_stage_room(struct fgw_blob_stage *stage, uint8_t **out_room);
enum fgw_err fgw_replicated_stage_finish(struct fgw_blob_stage *stage,
                                         struct fgw_blob_staged *out_staged) FGW_MUST_CHECK;
void fgw_replicated_stage_abort(struct fgw_blob_stage *stage);

/* A set and a writer at each of its members; FGW_OK when enough of them took it. After a failure
 * close the lanes; stage->set.count is 0 when there was no set. */
enum fgw_err fgw_stage_try_set(struct fgw_blob_stage *stage, const uint64_t *avoid,
                               size_t avoided) FGW_MUST_CHECK;
void fgw_stage_close_lanes(struct fgw_blob_stage *stage);
unsigned fgw_stage_lanes_left(const struct fgw_blob_stage *stage);
void fgw_stage_lane_failed(struct fgw_stage_lane *lane, enum fgw_err err,
                           const struct fgw_error *error);
/* To all members that are left; join waits for it and says whether enough are left. */
void fgw_stage_send(struct fgw_blob_stage *stage, const struct fgw_storage_block *block, bool leaf);
enum fgw_err fgw_stage_join(struct fgw_blob_stage *stage) FGW_MUST_CHECK;
/* A fgw_dag_emit_fn with the stage as context. */
enum fgw_err fgw_stage_add_node(void *stage, const struct fgw_cid *cid, struct fgw_bytes node);

/* -- replicated_restage.c ------------------------------------------------------------------------ */

/* Too few members are left: afterwards all that was sent is with the members of another set, and the
 * stage goes on there. FGW_ERR_UNAVAILABLE, NOSPACE: nobody has it any more, or no set takes it. */
enum fgw_err fgw_replicated_restage(struct fgw_blob_stage *stage) FGW_MUST_CHECK;

/* -- replicated.c -------------------------------------------------------------------------------- */

struct fgw_blob_staged fgw_replicated_staged(struct fgw_replicated *replicated,
                                             struct fgw_arena *arena, unsigned replicas,
                                             const struct fgw_storage_owner *owner);
/* Bytes and hold are durable with these members of the set: enough of them. */
void fgw_replicated_durable(struct fgw_blob_staged *staged, const struct fgw_placement_set *set,
                            const bool *holders);
/* A hint to the members of the set: this hold has no owner. In the background. */
void fgw_replicated_release_at(struct fgw_replicated *replicated,
                               const struct fgw_storage_owner *owner,
                               const struct fgw_extent *extent,
                               const struct fgw_placement_set *set);

/* -- replicated_tell.c --------------------------------------------------------------------------- */

/* The name is committed, and all members of the set (of that epoch) hold it: they are told, once the
 * set is known not to have changed before the commit. */
void fgw_replicated_confirm_later(struct fgw_replicated *replicated,
                                  const struct fgw_storage_owner *owner,
                                  const struct fgw_extent *extent, uint64_t set_epoch);
/* The row that named the extent is gone: its members are told. */
void fgw_replicated_release_later(struct fgw_replicated *replicated,
                                  const struct fgw_storage_owner *owner,
                                  const struct fgw_extent *extent);
void fgw_replicated_tell_init(struct fgw_replicated_worker *worker);
/* On the worker: nothing is taken any more. Releases that wait go out at once (worker->hints counts the
 * fiber), commits that are not told are asked for by the stores. */
void fgw_replicated_tell_close(struct fgw_replicated_worker *worker);

/* -- replicated_hedge.c -------------------------------------------------------------------------- */

/* The first bytes of [offset, offset + len) of an extent. */
struct fgw_first {
    const struct fgw_placement_set *set;
    const struct fgw_extent *extent;
    uint64_t offset, len;
    unsigned second; /* member to ask too when the other one takes long; UINT32_MAX: nobody */
    /* told of a member that failed while another one was still at work */
    void (*failed)(void *context, unsigned index, enum fgw_err err, const struct fgw_error *error);
    void *context;
    unsigned index; /* in: the member to ask; out: the one that answered, or failed last */
    /* out */
    struct fgw_member_reader stream;
    uint64_t chunk_offset;
    struct fgw_bytes chunk;
};
enum fgw_err fgw_replicated_first(struct fgw_replicated *replicated, struct fgw_first *first,
                                  struct fgw_error *error) FGW_MUST_CHECK;

/* -- replicated_fix.c ---------------------------------------------------------------------------- */

/* Member `bad` of the set has this leaf damaged: it is repaired from the others, in the background. */
void fgw_replicated_fix_later(struct fgw_replicated *replicated, const struct fgw_extent *extent,
                              const struct fgw_placement_set *set, unsigned bad, uint64_t leaf);

/* -- replicated_read.c --------------------------------------------------------------------------- */

enum fgw_err fgw_replicated_read_open(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                                      struct fgw_blob_reader **out_reader,
                                      struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_replicated_read_next(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                                      bool prefer_memory,
                                      struct fgw_storage_run *out_run) FGW_MUST_CHECK;
enum fgw_err fgw_replicated_read_leaf(struct fgw_blob_reader *reader, uint64_t leaf,
                                      uint8_t out_digest[FGW_SHA256_SIZE]) FGW_MUST_CHECK;
void fgw_replicated_read_close(struct fgw_blob_reader *reader);
/* From these members only. */
struct fgw_blob_reader *fgw_replicated_read_over(struct fgw_replicated *replicated,
                                                 const struct fgw_extent *extent,
                                                 const struct fgw_placement_set *set);

#endif
