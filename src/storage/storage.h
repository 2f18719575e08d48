/* storage.h: the storage engine of one data directory (design/storage.md).
 *
 * Holds two things: opaque rows (the names family: whatever the metadata backend puts there) and
 * content-addressed blocks in group files. Both change only through committed operations: the
 * committer evaluates an operation against the rows as they will be, appends blocks and the outcome
 * to the log group, syncs once for the batch, applies to the index and answers. An answered
 * operation is durable and visible to every reader.
 *
 * Storage knows no metadata backend: rows are bytes, liveness is a callback handed in.
 * Threads: all functions but open and close are called from fibers of worker threads; evaluate
 * callbacks run on the committer thread and must neither block nor wait.
 */
#ifndef FGW_STORAGE_STORAGE_H
#define FGW_STORAGE_STORAGE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "cid/cid.h"

struct fgw_storage;
struct fgw_kv;
struct fgw_pool;

enum {
    FGW_STORAGE_ID_SIZE = 16,
    FGW_STORAGE_BLOCK_MAX = 1024 * 1024, /* bytes of a block */
    FGW_STORAGE_INLINE_MAX = 256 * 1024, /* bodies up to this go through the log group */
    FGW_STORAGE_KEY_MAX = 1400           /* bytes of a row key */
};
/* Set in extent numbers that no row ever names: holds for the time of a work. */
#define FGW_EXTENT_TEMPORARY (UINT64_C(1) << 62)

/* -- opening --------------------------------------------------------------------------------- */

struct fgw_storage_options {
    const char *path;          /* FGW_DATA; created 0700 */
    uint64_t memory_bytes;     /* share of FGW_MEMORY for caches */
    uint64_t group_size_bytes; /* FGW_GROUP_SIZE */
    uint64_t min_free_bytes;   /* FGW_MIN_FREE; 0 = max(1 GiB, 1 %) */
    bool sync_off;             /* FGW_SYNC=off */
    uint64_t release_delay_ms; /* FGW_RELEASE_DELAY */
    uint64_t sweep_grace_ms;   /* FGW_SWEEP_GRACE */
    uint64_t pending_ask_ms;   /* age at which a pending hold is asked about; 0 = 5 min */
    uint64_t pending_drop_ms;  /* age at which one named elsewhere ends; 0 = 2 h */
    uint64_t sweep_min_age_ms; /* tests: no hold is swept sooner; 0 = 2 h (this one and
                                    pending_drop_ms: FGW_TEST_HOLD_AGE_MS in the environment) */
    unsigned dead_percent;     /* FGW_DEAD_PERCENT */
    uint64_t checkpoint_bytes; /* of records before the next checkpoint, at least; 0 = 256 MiB
                                    (FGW_TEST_CHECKPOINT_BYTES in the environment) */
    const uint8_t *cluster_id; /* 16 bytes a cluster's database names; NULL: own */
    /* How far opening is, when it takes long (readiness); NULL: said in the log. */
    void (*progress)(void *context, const char *text);
    void *progress_context;
    bool skip_damaged;  /* `fgw recover --skip-damaged` */
    bool rebuild_index; /* `fgw recover`: RocksDB is set aside and rebuilt */
};

/* Errors: IN_USE (exit 11), CORRUPT (exit 12: error->message names file, offset and command),
 * NEWER_VERSION (exit 5), IO (exit 14: not writable, not a directory, foreign files). */
enum fgw_err fgw_storage_open(const struct fgw_storage_options *options,
                              struct fgw_storage **out_storage,
                              struct fgw_error *error) FGW_MUST_CHECK;
/* Waits for what is being committed; a checkpoint is not needed. */
void fgw_storage_close(struct fgw_storage *storage);

/* Gives a directory that nobody has open a new store id, and the cluster id unless that is NULL. All
 * it holds stays. IN_USE, NOT_FOUND, and errors as fgw_storage_open. */
enum fgw_err fgw_storage_adopt(const char *path, const uint8_t *cluster_id,
                               uint8_t out_old_id[FGW_STORAGE_ID_SIZE],
                               uint8_t out_new_id[FGW_STORAGE_ID_SIZE],
                               struct fgw_error *error) FGW_MUST_CHECK;

/* What opening had to do. */
struct fgw_storage_recovery {
    uint64_t checkpoint;   /* the index was made from checkpoints/<id>.car; 0: from none */
    uint64_t batches;      /* replayed from the log */
    uint64_t damages;      /* places passed over (skip_damaged); where they are stands in the log */
    uint64_t lost_batches; /* that lay in them */
    uint64_t damaged_groups; /* files that are missing or too short */
    uint64_t misfits;        /* later changes that refer to what was lost */
};
struct fgw_storage_recovery fgw_storage_recovered(const struct fgw_storage *storage);

const uint8_t *fgw_storage_id(const struct fgw_storage *storage);
const uint8_t *fgw_storage_cluster_id(const struct fgw_storage *storage);
/* The cluster id of a directory without opening it. FGW_ERR_NOT_FOUND: there is none yet. */
enum fgw_err fgw_storage_peek_cluster_id(const char *path,
                                         uint8_t out_cluster_id[FGW_STORAGE_ID_SIZE],
                                         struct fgw_error *error) FGW_MUST_CHECK;
/* A directory that holds nothing takes another cluster's id; durable on return. Before anything is
 * served from it. */
enum fgw_err fgw_storage_join(struct fgw_storage *storage,
                              const uint8_t cluster_id[FGW_STORAGE_ID_SIZE],
                              struct fgw_error *error) FGW_MUST_CHECK;
/* 32 bytes derived from the directory key for `label` (HKDF): e.g. to encrypt stored secrets. */
void fgw_storage_derive_key(const struct fgw_storage *storage, const char *label, uint8_t out[32]);

/* -- rows ------------------------------------------------------------------------------------ */

/* FGW_ERR_NOT_FOUND when absent. Served from memory without a hand-over when possible. */
enum fgw_err fgw_storage_get(struct fgw_storage *storage, struct fgw_bytes key,
                             struct fgw_buf *out) FGW_MUST_CHECK;
/* The row store for scans (kv.h, family names), and the pool to run a scan on: RocksDB may read the
 * disk, so iterators run inside fgw_pool_run(fgw_storage_pool(s), ...). */
struct fgw_kv *fgw_storage_kv(struct fgw_storage *storage);
struct fgw_pool *fgw_storage_pool(struct fgw_storage *storage);

/* -- blocks and holds ------------------------------------------------------------------------ */

/* Whose reference a hold is, with the address of the row that names it. */
struct fgw_storage_owner {
    uint8_t bucket_id[FGW_STORAGE_ID_SIZE];
    struct fgw_bytes key;
    uint8_t owner_id[FGW_STORAGE_ID_SIZE];
};

/* A block in memory, hashed by the edge. */
struct fgw_storage_block {
    struct fgw_cid cid;
    uint32_t crc32c;
    struct fgw_bytes bytes;
};

/* Where a block's bytes lie: a hint that the section's own CID proves. */
struct fgw_storage_place {
    uint64_t group;  /* 0 = no hint */
    uint64_t offset; /* of the section (its varint) in the file */
    uint32_t len;    /* of the block */
    uint32_t crc32c;
};

/* A blob being written that is larger than FGW_STORAGE_INLINE_MAX: its blocks go to a bulk group as
 * they come, holds are logged in slices meanwhile. */
struct fgw_storage_writer;
enum fgw_err fgw_storage_writer_new(struct fgw_storage *storage,
                                    const struct fgw_storage_owner *owner, uint64_t extent,
                                    uint64_t size_hint_bytes,
                                    struct fgw_storage_writer **out_writer) FGW_MUST_CHECK;
/* Appends one leaf or inner block (block->bytes may go after the call). NOSPACE below the reserve.
 * A block the store has already is not written again. */
enum fgw_err fgw_storage_writer_add(struct fgw_storage_writer *writer,
                                    const struct fgw_storage_block *block,
                                    bool leaf) FGW_MUST_CHECK;
/* All blocks are there: syncs, and logs the rest of the hold with the root. Afterwards the blob is
 * durable, held by its owner. */
enum fgw_err fgw_storage_writer_finish(struct fgw_storage_writer *writer,
                                       const struct fgw_cid *root,
                                       uint64_t size_bytes) FGW_MUST_CHECK;
/* Before finish: the hold gets this number. */
void fgw_storage_writer_set_extent(struct fgw_storage_writer *writer, uint64_t extent);
/* Before the first block: the hold will be pending. */
void fgw_storage_writer_set_pending(struct fgw_storage_writer *writer);
/* Frees the writer; before finish: drops what it holds. */
void fgw_storage_writer_free(struct fgw_storage_writer *writer);

/* Where a blob's bytes are. The session keeps its blocks readable (storage.md section 5) until it is
 * closed. hint may be NULL. FGW_ERR_NOT_FOUND: no such blob here. */
struct fgw_storage_reader;
enum fgw_err fgw_storage_reader_open(struct fgw_storage *storage, const struct fgw_cid *root,
                                     const struct fgw_storage_place *hint,
                                     struct fgw_storage_reader **out_reader) FGW_MUST_CHECK;
uint64_t fgw_storage_reader_size(const struct fgw_storage_reader *reader);
/* A run of verified bytes at `offset` of the blob, at most `want` and at most to the end of the
 * leaf: CRC32C checked, section CID checked. Exactly one form:
 *  - memory: bytes.ptr != NULL, valid until the next call;
 *  - file range: fd >= 0, [file_offset, file_offset + bytes.len) checked moments ago, for sendfile;
 * prefer_memory forces the first (TLS). FGW_ERR_CORRUPT: never wrong bytes. */
struct fgw_storage_run {
    struct fgw_bytes bytes; /* len always set */
    int fd;
    uint64_t file_offset;
};
enum fgw_err fgw_storage_reader_next(struct fgw_storage_reader *reader, uint64_t offset,
                                     size_t want, bool prefer_memory,
                                     struct fgw_storage_run *out_run) FGW_MUST_CHECK;
/* Sees the bytes of each leaf that is checked in its file: from `at` in the leaf on, in order; 0: from
 * the start, perhaps again. Called by next, on its thread or one of the pool: fibers must not wait. */
typedef void fgw_storage_tap_fn(void *context, const struct fgw_storage_place *leaf, size_t at,
                                struct fgw_bytes bytes);
void fgw_storage_reader_set_tap(struct fgw_storage_reader *reader, fgw_storage_tap_fn *tap,
                                void *context);
/* SHA-256 of leaf number `leaf` (of 1 MiB each but the last), for whoever checks the bytes against
 * the root. FGW_ERR_NOT_FOUND behind the last leaf. */
enum fgw_err fgw_storage_reader_leaf(struct fgw_storage_reader *reader, uint64_t leaf,
                                     uint8_t out_digest[32]) FGW_MUST_CHECK;
/* Number of leaves, or of inner nodes: all blocks of the blob, in the order a writer takes them. */
uint64_t fgw_storage_reader_blocks(const struct fgw_storage_reader *reader, bool leaves);
/* Digests of blocks `first`, `first` + 1, ... (32 bytes each): at least one, at most `max`, at most
 * to the end of a slice. FGW_ERR_NOT_FOUND behind the last block. */
enum fgw_err fgw_storage_reader_digests(struct fgw_storage_reader *reader, bool leaves,
                                        uint64_t first, size_t max, uint8_t (*out_digests)[32],
                                        size_t *out_count) FGW_MUST_CHECK;
void fgw_storage_reader_close(struct fgw_storage_reader *reader);

/* One block by its CID: CRC32C and section CID checked. `out` is replaced; out_block->bytes lies in
 * it. For copying a blob to another store: a reader keeps its blocks where they are. The CRC is the
 * one the block was stored with. FGW_ERR_NOT_FOUND, FGW_ERR_CORRUPT. */
enum fgw_err fgw_storage_read_block(struct fgw_storage *storage, const struct fgw_cid *cid,
                                    struct fgw_buf *out,
                                    struct fgw_storage_block *out_block) FGW_MUST_CHECK;

/* Where a block lies now. FGW_ERR_NOT_FOUND; FGW_ERR_CORRUPT: it is marked bad. From a fiber. */
enum fgw_err fgw_storage_block_place(struct fgw_storage *storage, const struct fgw_cid *cid,
                                     struct fgw_storage_place *out_place) FGW_MUST_CHECK;

/* A hold as a walk over all of them meets it. */
struct fgw_storage_hold_seen {
    struct fgw_storage_owner owner; /* its key lies in the arena */
    uint64_t extent;
    struct fgw_cid root;
    uint64_t size_bytes;
};
/* The next holds of the store, each once, in no order that means anything: at least one, at most
 * `max`; *out_count 0: there are no more. *cursor: empty to begin, advanced by each call. A hold that
 * is there during the whole walk is met; one that is taken or released meanwhile may be. Blobs whose
 * writers have not finished are not held yet. From a fiber. FGW_ERR_INVALID_ARGUMENT: a cursor that
 * was not made here. */
enum fgw_err fgw_storage_holds_next(struct fgw_storage *storage, struct fgw_buf *cursor,
                                    struct fgw_arena *arena, size_t max,
                                    struct fgw_storage_hold_seen **out_seen,
                                    size_t *out_count) FGW_MUST_CHECK;

/* -- operations ------------------------------------------------------------------------------ */

/* Given to evaluate: reads rows as of everything evaluated before, collects the outcome. */
struct fgw_storage_txn;
/* FGW_ERR_NOT_FOUND, or FGW_ERR_AGAIN when the row is not in memory: return that as the verdict and
 * the operation comes back after a worker has read the row. The view lives until evaluate returns. */
enum fgw_err fgw_storage_txn_get(struct fgw_storage_txn *txn, struct fgw_bytes key,
                                 struct fgw_bytes *out_value) FGW_MUST_CHECK;
/* The same for a row that many operations look at and few change: read once a batch. */
enum fgw_err fgw_storage_txn_get_common(struct fgw_storage_txn *txn, struct fgw_bytes key,
                                        struct fgw_bytes *out_value) FGW_MUST_CHECK;
/* FGW_OK when at least one row lies in [lower, upper), FGW_ERR_NOT_FOUND when none. */
enum fgw_err fgw_storage_txn_any(struct fgw_storage_txn *txn, struct fgw_bytes lower,
                                 struct fgw_bytes upper) FGW_MUST_CHECK;
/* First row at or after lower and before upper (for the newest version of a key). */
enum fgw_err fgw_storage_txn_first(struct fgw_storage_txn *txn, struct fgw_bytes lower,
                                   struct fgw_bytes upper, struct fgw_bytes *out_key,
                                   struct fgw_bytes *out_value) FGW_MUST_CHECK;
void fgw_storage_txn_put(struct fgw_storage_txn *txn, struct fgw_bytes key, struct fgw_bytes value);
void fgw_storage_txn_delete(struct fgw_storage_txn *txn, struct fgw_bytes key);
/* Where the block of hold i will lie; no hint (group 0) for blobs of more than one block. */
struct fgw_storage_place fgw_storage_txn_place(struct fgw_storage_txn *txn, size_t block_index);
/* Ends the hold of (owner_id, extent) on the blob `root`, which the caller's row lists: a blob of one
 * block has no row by owner. Constant work; blocks go later, by a worker. Unknown holds are
 * ignored. */
void fgw_storage_txn_release(struct fgw_storage_txn *txn,
                             const uint8_t owner_id[FGW_STORAGE_ID_SIZE], uint64_t extent,
                             const struct fgw_cid *root);
/* Ends all holds of an owner that were taken with `listed`, or are of blobs with more than one
 * block. Constant work. */
void fgw_storage_txn_release_owner(struct fgw_storage_txn *txn,
                                   const uint8_t owner_id[FGW_STORAGE_ID_SIZE]);

/* A hold that the operation takes when it is accepted. */
struct fgw_storage_hold {
    const struct fgw_storage_owner *owner;
    uint64_t extent;
    struct fgw_cid root;
    uint64_t size_bytes;
    const struct fgw_storage_block *block; /* the one block of an inline blob (root == block->cid);
                                              NULL: the blob must be here already (copy), else the
                                              operation fails with FGW_ERR_NOT_FOUND */
    bool finished_writer; /* written and held by a writer: nothing is added, only relied upon */
    bool pending;         /* until fgw_storage_confirm: the name is not on this machine */
    bool listed; /* fgw_storage_txn_release_owner must find it (parts of uploads): one row more */
};

struct fgw_storage_op {
    const char *name; /* for logs and metrics: "put", "delete", ... */
    /* Decides and writes the outcome through txn; FGW_OK commits it, any other code is the
     * operation's answer and leaves no trace. May run more than once; the last run counts. */
    enum fgw_err (*evaluate)(struct fgw_storage_op *op, struct fgw_storage_txn *txn);
    void *context;
    const struct fgw_storage_hold *holds;
    size_t hold_count;
    bool frees_space; /* allowed below the reserve (deletes, aborts) */
};

/* Commits and waits for the answer: FGW_OK = durable and visible. Others: evaluate's own code;
 * NOSPACE; IO (the batch could not be written: nothing of it took effect); READ_ONLY; UNAVAILABLE
 * (the index takes no writes at present); UNKNOWN_OUTCOME (durable, or perhaps, and not visible). */
enum fgw_err fgw_storage_commit(struct fgw_storage *storage,
                                struct fgw_storage_op *op) FGW_MUST_CHECK;

/* -- care ------------------------------------------------------------------------------------ */

/* What the metadata says of a hold. Only an ABSENT one may be swept, only an ABSENT or ELSEWHERE one
 * ends by a release hint. */
enum fgw_storage_liveness {
    FGW_STORAGE_ABSENT,    /* no row names it */
    FGW_STORAGE_HERE,      /* a row names it on this store */
    FGW_STORAGE_ELSEWHERE, /* rows name it on other stores only */
    FGW_STORAGE_UNDECIDED  /* an upload is open that may come to name it here: ask again later */
};
/* Does (owner, root) still count? Linearizable; called from a fiber by sweeper and release. */
typedef enum fgw_err fgw_storage_live_fn(void *context, const struct fgw_storage_owner *owner,
                                         const struct fgw_cid *root,
                                         enum fgw_storage_liveness *out_liveness);
/* Starts background work (apply is always on): index sync, checkpoints, release, compaction, sweep. */
void fgw_storage_start_care(struct fgw_storage *storage, fgw_storage_live_fn *live, void *context);
/* Ends it: no call of `live` comes afterwards. Closing does it too. */
void fgw_storage_stop_care(struct fgw_storage *storage);
/* The row that named this hold is gone: it ends once `live` agrees. Only a hint, lost in a crash;
 * what it misses the sweeper finds. For metadata that cannot release in its own transaction. */
void fgw_storage_release_hint(struct fgw_storage *storage, const struct fgw_storage_owner *owner,
                              uint64_t extent, const struct fgw_cid *root);

/* Pending holds (design/cluster.md section 3): taken by an edge whose name for them is, or will be, in
 * a database. */
/* The names are committed: these are no longer pending. Others than pending ones are passed over. */
enum fgw_err fgw_storage_confirm(struct fgw_storage *storage,
                                 const struct fgw_storage_hold_seen *holds,
                                 size_t count) FGW_MUST_CHECK;
/* A hold that has been pending for long is named, here or elsewhere. FGW_OK: all stores of its set
 * have it; then it is confirmed, or may go. Else it is asked about again. From care's fiber. */
typedef enum fgw_err fgw_storage_named_fn(void *context, const struct fgw_storage_hold_seen *hold);
/* Before care starts. Without it what is named here is confirmed. */
void fgw_storage_set_named(struct fgw_storage *storage, fgw_storage_named_fn *named, void *context);
/* The hold ends now, whatever the metadata says: for holds that no row can name. From a fiber. */
enum fgw_err fgw_storage_release(struct fgw_storage *storage,
                                 const uint8_t owner_id[FGW_STORAGE_ID_SIZE], uint64_t extent,
                                 const struct fgw_cid *root) FGW_MUST_CHECK;

/* A file with everything the index knows, from which it can be made again. */
struct fgw_storage_checkpoint {
    uint64_t id;    /* checkpoints/<id>.car */
    uint64_t batch; /* last one it covers */
    uint64_t rows;
    uint64_t bytes;
};
/* Writes one now, reads it back and removes all but the one before it. Operations go on meanwhile.
 * From a fiber; waits for one that is being written. FGW_ERR_NOSPACE, _IO; _CORRUPT: it was not read
 * as it was written. out_checkpoint may be NULL. */
enum fgw_err fgw_storage_checkpoint(struct fgw_storage *storage,
                                    struct fgw_storage_checkpoint *out_checkpoint) FGW_MUST_CHECK;
/* Until as many calls of release: no file in groups/ or checkpoints/ is unlinked. From a fiber. */
void fgw_storage_hold_groups(struct fgw_storage *storage);
void fgw_storage_release_groups(struct fgw_storage *storage);

/* -- groups, for people who look at them ----------------------------------------------------- */

struct fgw_storage_group {
    uint64_t id;
    bool bulk;    /* else a log group */
    bool writing; /* not sealed */
    bool missing; /* the file is not there, or shorter than `end` */
    uint64_t end; /* of what is durable and known; a bulk group's grows with the log */
    uint64_t file_bytes;
    uint64_t live_blocks, live_bytes, dead_bytes;
};
/* All, by id; *out_groups is the caller's to free. From a fiber, as the others. */
enum fgw_err fgw_storage_groups(struct fgw_storage *storage, struct fgw_storage_group **out_groups,
                                size_t *out_count) FGW_MUST_CHECK;
/* FGW_ERR_NOT_FOUND. */
enum fgw_err fgw_storage_group_get(struct fgw_storage *storage, uint64_t id,
                                   struct fgw_storage_group *out_group) FGW_MUST_CHECK;
/* What comes next goes to a new group. FGW_OK also when it is sealed already. */
enum fgw_err fgw_storage_group_seal(struct fgw_storage *storage, uint64_t id) FGW_MUST_CHECK;
/* No block is moved out of this group until the next call; 0: none is kept any more. Waits until a move
 * under way has stopped. From a fiber, one at a time. */
void fgw_storage_keep_group(struct fgw_storage *storage, uint64_t group);
struct fgw_storage_group_check {
    uint64_t group;
    uint64_t offset;   /* where to go on; 0: the beginning */
    uint64_t sections; /* found whole so far */
    bool done;         /* up to the group's end */
    bool damaged;      /* at `offset` */
};
/* Reads about `bytes` more of the file: every section, dead blocks and records as well, against its
 * CID. FGW_OK also when damage was found. */
enum fgw_err fgw_storage_group_verify(struct fgw_storage *storage,
                                      struct fgw_storage_group_check *check,
                                      uint64_t bytes) FGW_MUST_CHECK;

/* -- backup (docs/formats/backup.md) --------------------------------------------------------- */

enum fgw_storage_backup_phase {
    FGW_STORAGE_BACKUP_NONE, /* since the process began */
    FGW_STORAGE_BACKUP_RUNNING,
    FGW_STORAGE_BACKUP_DONE,
    FGW_STORAGE_BACKUP_FAILED
};
struct fgw_storage_backup_status {
    enum fgw_storage_backup_phase state;
    char to[1024];
    uint64_t batch; /* the last one in it; 0: not known yet */
    uint64_t files, files_total, bytes, bytes_total;
    uint64_t damaged;    /* groups that are missing or too short in the data directory itself */
    enum fgw_err result; /* of the last one, when it failed */
    char message[480];
};
/* Makes a backup of everything answered before the call in the directory `to` (absolute, made when
 * its parent exists). From a fiber; operations go on meanwhile. FGW_ERR_EXISTS: the directory holds
 * something else; FGW_ERR_IN_USE: one is being made; _NOSPACE, _IO, _CORRUPT (the copy could not be
 * read back). What was copied before a failure is not copied again by the next call. */
enum fgw_err fgw_storage_backup(struct fgw_storage *storage, const char *to,
                                struct fgw_error *error) FGW_MUST_CHECK;
/* The same by care. FGW_ERR_IN_USE; FGW_ERR_UNAVAILABLE: care does not run. */
enum fgw_err fgw_storage_backup_start(struct fgw_storage *storage, const char *to) FGW_MUST_CHECK;
void fgw_storage_backup_status(struct fgw_storage *storage,
                               struct fgw_storage_backup_status *out_status);

struct fgw_storage_restore {
    const char *from; /* a directory made by a backup */
    const char *to;   /* the data directory: empty, or not there */
    bool replace;     /* it takes the place of the lost one: the store id stays */
    void (*progress)(void *context, uint64_t files, uint64_t files_total); /* may be NULL */
    void *context;
};
/* Blocks. FGW_ERR_CORRUPT: the backup is damaged, the file is named; FGW_ERR_EXISTS: the directory is
 * not empty; _NEWER_VERSION, _NOSPACE, _IO. After a failure the same call goes on. */
enum fgw_err fgw_storage_restore(const struct fgw_storage_restore *options,
                                 struct fgw_error *error) FGW_MUST_CHECK;

/* The sweeper of holds that no row names (sweep.h). */
struct fgw_storage_sweep_status {
    uint64_t passes;      /* ended since the process began, whole or not */
    uint64_t held;        /* holds that the last or running pass asked the metadata about */
    uint64_t ownerless;   /* of these, named by no row */
    uint64_t candidates;  /* waiting for a second look */
    uint64_t freed;       /* released by the last or running pass */
    uint64_t freed_total; /* since the process began */
    uint64_t limit;       /* ownerless holds a pass believes */
    uint64_t grace_ms;    /* running time between the two looks */
    enum fgw_err failed;  /* why the last pass broke off */
    bool running;
    bool wanted; /* by fgw_storage_sweep_start */
    bool alarm;  /* more than limit: nothing is freed before somebody approves */
};
void fgw_storage_sweep_status(struct fgw_storage *storage,
                              struct fgw_storage_sweep_status *out_status);
/* One pass now, by the calling fiber. FGW_ERR_IN_USE: one is running. */
enum fgw_err fgw_storage_sweep(struct fgw_storage *storage, fgw_storage_live_fn *live,
                               void *context) FGW_MUST_CHECK;
/* One pass soon, by care; nothing happens when it does not run. */
void fgw_storage_sweep_start(struct fgw_storage *storage);
/* What was found ownerless so far may be freed when it is due, however many it are. From a fiber. */
void fgw_storage_sweep_approve(struct fgw_storage *storage);
/* The owner's upload is alive: the sweeper begins anew with its holds. From any thread. */
void fgw_storage_hold_renewed(struct fgw_storage *storage,
                              const uint8_t owner_id[FGW_STORAGE_ID_SIZE]);
/* Until then (running time) the sweeper releases nothing: the metadata is not to be trusted. Not
 * remembered by the directory. */
void fgw_storage_free_nothing_until(struct fgw_storage *storage, uint64_t running_ms);

/* Reads a block and checks its SHA-256. FGW_ERR_CORRUPT: it is marked bad now, new bytes replace it.
 * FGW_ERR_NOT_FOUND. From a fiber. */
enum fgw_err fgw_storage_check_block(struct fgw_storage *storage,
                                     const struct fgw_cid *cid) FGW_MUST_CHECK;

/* Something that scrub found damaged. */
struct fgw_storage_damage {
    const char *what;   /* "bytes", "log record", "list", "checkpoint" */
    struct fgw_cid cid; /* of the block or the blob; not for log records */
    uint64_t group;     /* where; 0: nowhere */
    uint64_t offset;
    const struct fgw_storage_owner *owner; /* whose block it is, if one owner holds it directly */
};
typedef void fgw_storage_damage_fn(void *context, const struct fgw_storage_damage *damage);

struct fgw_storage_scrub {
    fgw_storage_damage_fn *on_damage; /* called from the scrubbing fiber */
    void *context;
    uint64_t bytes_per_s; /* 0: as fast as it goes */
    /* Called now and then from the scrubbing fiber; false ends the scrub (FGW_ERR_CANCELLED). May be
     * NULL. */
    bool (*on_progress)(void *context, const struct fgw_storage_scrub *scrub);
    /* results, also while it runs */
    uint64_t blocks, bytes, blobs, log_batches, checkpoints, damaged;
};
/* Reads everything that is held and checks its SHA-256, lists against blobs, all records of the log,
 * checkpoints.
 * Damaged blocks are marked bad: reads of them fail at once, new bytes replace them. From a fiber.
 * FGW_OK also when damage was found. */
enum fgw_err fgw_storage_scrub(struct fgw_storage *storage,
                               struct fgw_storage_scrub *scrub) FGW_MUST_CHECK;

/* A scrub by care, on a running process. */
enum { FGW_STORAGE_SCRUB_FINDINGS = 100 };
struct fgw_storage_scrub_finding {
    const char *what; /* as in struct fgw_storage_damage */
    struct fgw_cid cid;
    uint64_t group, offset;
};
struct fgw_storage_scrub_status {
    uint64_t runs;                                       /* ended since the process began */
    uint64_t blocks, bytes, blobs, log_batches, damaged; /* of the last or running one */
    uint64_t held_bytes;                                 /* of all blocks: what there is to read */
    struct fgw_storage_scrub_finding findings[FGW_STORAGE_SCRUB_FINDINGS]; /* the first ones */
    size_t finding_count;
    enum fgw_err failed; /* why the last one broke off */
    bool running, wanted;
};
/* Starts one unless one runs; false then, and when care does not run. bytes_per_s 0: no limit. */
bool fgw_storage_scrub_start(struct fgw_storage *storage, uint64_t bytes_per_s);
/* Ends the one that runs, soon. */
void fgw_storage_scrub_stop(struct fgw_storage *storage);
/* The status is large: not on a fiber's stack. */
void fgw_storage_scrub_status(struct fgw_storage *storage,
                              struct fgw_storage_scrub_status *out_status);

struct fgw_storage_stats {
    uint64_t groups, log_bytes, bulk_bytes, live_bytes, dead_bytes, free_bytes, total_bytes;
    uint64_t blocks, batches, operations, syncs, sync_ns_total, applied_batch, last_batch;
    uint64_t cache_bytes, pending_holds;
    uint64_t checkpoint_batch; /* covered by a checkpoint that was read back; 0: none */
    /* compaction, since the process began; waiting: given up, until two checkpoints cover it */
    uint64_t moved_blocks, moved_bytes, groups_unlinked, bytes_unlinked;
    uint64_t groups_waiting, bytes_waiting;
    uint64_t spared_bytes; /* of blocks that were not written, as the store had them */
    bool read_only, below_reserve, recovering;
};
void fgw_storage_stats(struct fgw_storage *storage, struct fgw_storage_stats *out_stats);

#endif
