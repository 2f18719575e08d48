/* cql_internal.h: the backend's struct, rows as they stand in the tables, and what its files share.
 *
 * States and who moves them (design/metadata.md sections 3 to 6):
 *   head     live -> deleting -> live (of another version) | gone;  live <-> gone
 *   version  (absent) -> live -> gone;  live -> promoting -> moved;  moved, promoting -> live
 *   bucket   open -> deleting -> open | (absent)
 *   upload   open -> completing -> completed | open;  open -> aborting -> aborted
 * Everybody who meets deleting, promoting, completing or aborting may carry it on.
 */
#ifndef FGW_META_CQL_INTERNAL_H
#define FGW_META_CQL_INTERNAL_H

#include <stdatomic.h>

#include "base/digest.h"
#include "event/fiber.h"
#include "meta/cql/cql.h"
#include "meta/row.h"

enum cql_statement_id {
#define CQL_STATEMENT(id, kind, idempotent, text) CQL_##id,
#include "meta/cql/statements.def"
#undef CQL_STATEMENT
    CQL_STATEMENTS
};

enum {
    CQL_GATES = 128,
    CQL_GATE_WAITING_MAX = 256, /* waiting for one gate: above, SLOW_DOWN */
    CQL_GATE_WAIT_MS = 5000,    /* the same when the wait would be longer than this */
    CQL_PARALLEL_MAX = 256,     /* statements of one call in flight */
    CQL_ATTEMPTS_MAX = 60,      /* races lost in a row before a write gives up */
    CQL_BUCKET_GRACE_MS = 250,
    CQL_BUCKET_TAKEOVER_MS = 10000,
    CQL_SNAPSHOT_MS = 1000,
    CQL_IDENTITY_MS = 5000,
    CQL_STALE_MAX_MS = 30000, /* with the database away */
    CQL_GONE_KEEP_MS = 600000,
    CQL_UPLOAD_KEEP_MS = 7 * 24 * 3600 * 1000
};

struct cql_gate {
    struct fgw_gate gate;
    unsigned waiting;
    uint64_t pass_us; /* how long one stays inside, lately */
};

struct cql_cache;

struct cql_worker {
    struct cql_gate gates[CQL_GATES]; /* by partition */
    struct cql_cache *cache;
};

struct cql {
    struct fgw_meta base;
    struct fgw_meta_cql_options options;
    char *keyspace;
    struct fgw_cql_statement statements[CQL_STATEMENTS];
    uint8_t (*secret_keys)[FGW_AEAD_KEY_SIZE]; /* first = current */
    struct cql_worker *workers;     /* options.workers, and one for threads that are no worker */
    _Atomic uint64_t generation;    /* bumped when this process changes a bucket or an identity */
    _Atomic uint64_t complained_ms; /* last log line of an error of the whole database */
    _Atomic unsigned scans; /* that run now */
    struct fgw_cql_rounds *rounds;
};

static inline struct cql *cql_of(struct fgw_meta *meta)
{
    return (struct cql *)(void *)meta;
}

/* -- exec.c: one statement ------------------------------------------------------------------- */

struct cql_worker *cql_worker(struct cql *cql);
/* Errors as the contract has them: what the client says of tables, credentials or peers is
 * UNAVAILABLE to a request. */
enum fgw_err cql_read(struct cql *cql, enum cql_statement_id id, const struct fgw_cql_value *values,
                      size_t count, const struct fgw_cql_options *options,
                      struct fgw_cql_result **out_result, struct fgw_error *error) FGW_MUST_CHECK;
/* Several side by side: start, then wait for each. */
struct fgw_cql_call *cql_start(struct cql *cql, enum cql_statement_id id,
                               const struct fgw_cql_value *values, size_t count,
                               const struct fgw_cql_options *options);
enum fgw_err cql_wait(struct cql *cql, struct fgw_cql_call *call,
                      struct fgw_cql_result **out_result, struct fgw_error *error) FGW_MUST_CHECK;
/* Unconditional, of an insert-only row. */
enum fgw_err cql_write(struct cql *cql, enum cql_statement_id id,
                       const struct fgw_cql_value *values, size_t count,
                       struct fgw_error *error) FGW_MUST_CHECK;

enum cql_outcome {
    CQL_APPLIED,
    CQL_REFUSED, /* surely not applied: the condition did not hold */
    CQL_DOUBTED, /* refused by YugabyteDB, which may have repeated the statement within itself and
                  * refuse what it applied itself a moment ago: look once more */
    CQL_UNSURE   /* an answer was lost: read linearizably and decide */
};
static inline bool cql_must_look(enum cql_outcome outcome)
{
    return outcome == CQL_UNSURE || outcome == CQL_DOUBTED;
}
struct cql_lwt {
    enum cql_statement_id id;
    const struct fgw_cql_value *values;
    size_t count;
    uint64_t partition;       /* any number that is equal for equal partitions */
    const struct fgw_id *rev; /* that the row has once applied; NULL: none (a deletion) */
};
/* Sends a conditional statement; after a lost answer the same one again. An error means that it was
 * never applied. */
enum fgw_err cql_lwt(struct cql *cql, const struct cql_lwt *lwt, enum cql_outcome *out_outcome,
                     struct fgw_error *error) FGW_MUST_CHECK;
/* A short, growing, random pause between attempts. */
void cql_back_off(unsigned attempt);
/* The time of loop deadlines, current also after long suspensions. */
uint64_t cql_now_ms(void);
static inline struct fgw_cql_value cql_id_blob(const struct fgw_id *id)
{
    return fgw_cql_blob(fgw_bytes(id->bytes, sizeof id->bytes));
}
static inline struct fgw_cql_value cql_id_uuid(const struct fgw_id *id)
{
    return fgw_cql_uuid(id->bytes);
}
enum fgw_err cql_get_id(const struct fgw_cql_result *result, const char *column,
                        struct fgw_id *out_id) FGW_MUST_CHECK;
/* A code without a text gets "WHAT NAME: ..." when it is an internal one; returns err. */
enum fgw_err cql_fail(struct fgw_error *error, enum fgw_err err, const char *what,
                      struct fgw_bytes name);

/* -- row_io.c: rows of objects and object_versions -------------------------------------------- */

enum cql_state {
    CQL_ABSENT = 0, /* never stored */
    CQL_LIVE = 1,
    CQL_GONE = 2,
    CQL_DELETING = 3,  /* heads only */
    CQL_PROMOTING = 4, /* versions only */
    CQL_MOVED = 5      /* versions only */
};

/* Address of a key's rows. */
struct cql_place {
    const struct fgw_id *bucket_id;
    struct fgw_bytes key;
};
/* Number of shards, which the id of a bucket carries in its first two bytes: who knows an owner
 * (bucket id, key) finds its row without the bucket's name. */
unsigned cql_shards(const struct fgw_id *bucket_id);
int32_t cql_shard(const struct cql_place *place);
uint64_t cql_partition(const struct cql_place *place);

struct cql_row {
    enum cql_state state;
    struct fgw_object object; /* object.rev is the row's */
    struct fgw_row_state more;
};
/* Visible as the key's newest version. */
static inline bool cql_row_shown(const struct cql_row *row)
{
    return row->state == CQL_LIVE || row->state == CQL_DELETING;
}

/* The row at the result's cursor, copied into the arena. depth LISTING: data is not looked at. */
enum fgw_err cql_row_decode(struct fgw_arena *arena, struct fgw_bytes key,
                            const struct fgw_cql_result *result, enum fgw_row_depth depth,
                            struct cql_row *out_row) FGW_MUST_CHECK;
/* state CQL_ABSENT when there is none. */
enum fgw_err cql_head_read(struct cql *cql, struct fgw_arena *arena, const struct cql_place *place,
                           bool serial, struct cql_row *out_row,
                           struct fgw_error *error) FGW_MUST_CHECK;
struct fgw_cql_call *cql_head_start(struct cql *cql, const struct cql_place *place, bool serial);
enum fgw_err cql_head_wait(struct cql *cql, struct fgw_arena *arena, struct fgw_cql_call *call,
                           struct fgw_bytes key, struct cql_row *out_row,
                           struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err cql_version_read(struct cql *cql, struct fgw_arena *arena,
                              const struct cql_place *place, const struct fgw_id *id, bool serial,
                              struct cql_row *out_row, struct fgw_error *error) FGW_MUST_CHECK;

/* Replaces `seen` (CQL_ABSENT: there must be none) by `next`, whose rev is drawn unless it is set
 * already, and whose chain of revs is made here. version_id NULL: the head. CQL_UNSURE never comes
 * out: what cannot be resolved is FGW_ERR_UNKNOWN_OUTCOME. */
struct cql_swap {
    const struct cql_place *place;
    const struct fgw_id *version_id;
    const struct cql_row *seen;
    struct cql_row *next;
};
enum fgw_err cql_row_swap(struct cql *cql, struct fgw_arena *arena, const struct cql_swap *swap,
                          bool *out_applied, struct fgw_error *error) FGW_MUST_CHECK;
/* What a chain tells of a write that named `seen` (NULL: no row) and would have left `rev`:
 * APPLIED, REFUSED (never will), UNSURE. */
enum cql_outcome cql_chain(const struct cql_row *now, const struct fgw_id *seen,
                           const struct fgw_id *rev);
/* The raw conditional write of a version row, without resolving. */
enum fgw_err cql_version_write(struct cql *cql, const struct cql_swap *swap,
                               enum cql_outcome *out_outcome,
                               struct fgw_error *error) FGW_MUST_CHECK;
/* What stays of a deleted row: version id, rev, chain, and when it went. */
void cql_row_bury(const struct cql_row *row, struct cql_row *out_gone);

/* -- versions.c: noncurrent versions, and the deletion of the current one --------------------- */

/* Before `head` is replaced: its content becomes a live row of object_versions. *out_again: the
 * head was read too long ago, start over. */
enum fgw_err cql_version_keep(struct cql *cql, struct fgw_arena *arena,
                              const struct cql_place *place, const struct cql_row *head,
                              bool *out_again, struct fgw_error *error) FGW_MUST_CHECK;
/* Carries on with a head in state deleting, by whomever, until it is another one's. */
enum fgw_err cql_finish_delete(struct cql *cql, struct fgw_arena *arena,
                               const struct cql_place *place, const struct cql_row *head,
                               struct fgw_error *error) FGW_MUST_CHECK;
/* A noncurrent row becomes gone whatever it was; what it named is released. */
enum fgw_err cql_version_drop(struct cql *cql, struct fgw_arena *arena,
                              const struct cql_place *place, const struct fgw_id *id,
                              struct fgw_error *error) FGW_MUST_CHECK;
/* A row of object_versions that counts beside this head: live, not the head's own copy, and not a
 * null version that the head does not know. */
bool cql_version_shown(const struct cql_row *head, const struct cql_row *version);
/* For a row that is promoting or moved: reads the head again, which was read before it. *out_again:
 * start over with the head. Else a promoting row turned out to be a live one and says so. */
enum fgw_err cql_version_settle(struct cql *cql, struct fgw_arena *arena,
                                const struct cql_place *place, struct cql_row *head,
                                struct cql_row *version, bool *out_again,
                                struct fgw_error *error) FGW_MUST_CHECK;

/* -- head.c: writing the newest version of a key ----------------------------------------------- */

struct cql_put {
    struct fgw_arena *arena;
    const struct fgw_bucket *bucket; /* as the caller read it; its id is what counts */
    struct cql_place place;
    const struct fgw_conditions *conditions; /* NULL: none */
    struct fgw_blob_staged *staged;
    size_t staged_count;
    bool missing_is_ok;       /* a condition on nothing is success without a write (deletions) */
    bool removes;             /* a deletion: what it does depends on the versioning */
    struct fgw_object object; /* to write; version id, time, rev are drawn */
    struct fgw_written result;
    uint64_t bucket_read_ms; /* private from here on */
    struct fgw_bucket now;
    struct cql_row head;
    bool durable;
    bool done;
};
enum fgw_err cql_head_put(struct cql *cql, struct cql_put *put,
                          struct fgw_error *error) FGW_MUST_CHECK;
/* Bucket and head in one parallel round, both settled: an open bucket with this id, a head that is
 * not being deleted. */
enum fgw_err cql_read_both(struct cql *cql, struct fgw_arena *arena,
                           const struct fgw_bucket *bucket, const struct cql_place *place,
                           struct fgw_bucket *out_bucket, struct cql_row *out_head,
                           struct fgw_error *error) FGW_MUST_CHECK;
/* After a swap: the bucket read was sent at this time. NO_SUCH_BUCKET when it was deleted. */
enum fgw_err cql_bucket_still_there(struct cql *cql, struct fgw_arena *arena,
                                    const struct fgw_bucket *bucket, uint64_t read_ms,
                                    struct fgw_error *error) FGW_MUST_CHECK;
/* `object` becomes the row to store over `before`: version id, time, null version. */
void cql_head_next(const struct fgw_bucket *bucket, const struct cql_row *before,
                   const struct fgw_object *object, struct cql_row *out_next);
/* What a replaced head leaves behind: its bytes, or the null version's row. */
void cql_head_replaced(struct cql *cql, struct fgw_arena *arena, const struct cql_place *place,
                       const struct cql_row *before, const struct cql_row *after);
/* True when replacing `before` needs a copy of it in object_versions first. */
bool cql_head_must_keep(const struct fgw_bucket *bucket, const struct cql_row *before);
/* Tells the store that a row that named them is gone: a hint. */
void cql_release(struct cql *cql, const struct cql_place *place, const struct fgw_object *object);

/* -- bucket.c --------------------------------------------------------------------------------- */

enum cql_bucket_state { CQL_BUCKET_OPEN = 1, CQL_BUCKET_DELETING = 2 };
struct cql_bucket_row {
    bool present;
    enum cql_bucket_state state;
    struct fgw_bucket bucket;
};
enum fgw_err cql_bucket_read(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes name,
                             struct cql_bucket_row *out_row,
                             struct fgw_error *error) FGW_MUST_CHECK;
struct fgw_cql_call *cql_bucket_start(struct cql *cql, struct fgw_bytes name);
enum fgw_err cql_bucket_wait(struct cql *cql, struct fgw_arena *arena, struct fgw_cql_call *call,
                             struct fgw_bytes name, struct cql_bucket_row *out_row,
                             struct fgw_error *error) FGW_MUST_CHECK;
/* Waits until the bucket is not being deleted, taking the deletion over after 10 s. */
enum fgw_err cql_bucket_settle(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes name,
                               struct cql_bucket_row *row, struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err cql_bucket_row_decode(struct fgw_arena *arena, struct fgw_bytes name,
                                   const struct fgw_cql_result *result,
                                   struct cql_bucket_row *out_row) FGW_MUST_CHECK;
enum fgw_err cql_bucket_swap(struct cql *cql, const struct fgw_bucket *seen,
                             enum cql_bucket_state state, const struct fgw_bucket *next,
                             enum cql_outcome *out_outcome, struct fgw_error *error) FGW_MUST_CHECK;
/* From state deleting with this row's rev, which was written `waited_ms` ago: empty -> gone,
 * else back to open. FGW_OK, BUCKET_NOT_EMPTY, CONFLICT (somebody else took over). */
enum fgw_err cql_bucket_finish_delete(struct cql *cql, struct fgw_arena *arena,
                                      const struct fgw_bucket *bucket,
                                      struct fgw_error *error) FGW_MUST_CHECK;

/* -- cache.c: rows that nearly every request needs ---------------------------------------------- */

struct cql_cache *cql_cache_new(void);
void cql_cache_free(struct cql_cache *cache);
void cql_changed(struct cql *cql);
/* FGW_OK with the bytes when they are at most max_age_ms old; NOT_FOUND. */
enum fgw_err cql_cache_get(struct cql *cql, struct fgw_arena *arena, struct fgw_bytes key,
                           uint64_t max_age_ms, struct fgw_bytes *out_value) FGW_MUST_CHECK;
void cql_cache_put(struct cql *cql, struct fgw_bytes key, struct fgw_bytes value,
                   uint64_t generation, uint64_t read_ms);
void cql_cache_drop(struct cql *cql, struct fgw_bytes key);

/* -- id_range.c, key_rows.c: rows of one key ------------------------------------------------------ */

/* Ids of a key: of versions the newest first, of uploads ascending. */
struct cql_id_range {
    struct fgw_id behind; /* from here, exclusive */
    struct fgw_id to;     /* to here, inclusive, when `bounded` */
    unsigned bits;        /* of the width */
    bool bounded;
    bool ascending;
};
void cql_id_range_init(struct cql_id_range *range, bool ascending);
/* The row of this id was delivered. */
void cql_id_range_pass(struct cql_id_range *range, const struct fgw_id *id);
/* It was refused: less. False when there is nothing less. */
bool cql_id_range_narrow(struct cql_id_range *range);
/* It was read to its end: what lies behind it. False when that is nothing. */
bool cql_id_range_next(struct cql_id_range *range);

/* Rows of object_versions of a key, newest first. `full`: all columns, read linearizably; else those of
 * listings. `ids.behind` may be set after init. */
struct cql_key_rows {
    struct cql *cql;
    const struct cql_place *place;
    bool full;
    int32_t page_rows;
    struct cql_id_range ids;
    struct fgw_id last; /* delivered of this range, when `delivered` */
    bool delivered;
    struct fgw_buf paging;
    struct fgw_cql_result *result; /* at the row */
    bool ended;
};
void cql_key_rows_init(struct cql_key_rows *rows, struct cql *cql, const struct cql_place *place,
                       int32_t page_rows);
void cql_key_rows_deinit(struct cql_key_rows *rows);
/* rows->result is at the next row; NOT_FOUND at the end. */
enum fgw_err cql_key_rows_next(struct cql_key_rows *rows, struct fgw_error *error) FGW_MUST_CHECK;

/* -- scan.c: rows of all shards in the order of keys -------------------------------------------- */

/* A row without its data; views live until the next call of the scan. */
struct cql_entry {
    struct fgw_bytes key;
    struct fgw_id id; /* version id, upload id; zero in scans of heads */
    enum cql_state state;
    struct fgw_id rev;
    struct fgw_bytes listing;
};
/* The page that was read of one shard. */
struct cql_stream {
    struct fgw_arena arena; /* of the page */
    struct cql_entry *rows;
    size_t count, at;
    struct fgw_buf from;   /* where a new query starts */
    struct fgw_buf paging; /* empty: a new query */
    struct fgw_buf limit;  /* narrowed: only up to here; empty: to the end of the scan */
    unsigned depth, step;  /* of the narrowing: scan_range.c */
    bool in_key;           /* `from` is a key whose rows `ids` come first */
    struct cql_id_range ids;
    bool ended;
};
enum { CQL_SCAN_ROWS_LEAST = 8, CQL_SCAN_ROWS_ENOUGH = 327680 };
struct cql_scan {
    struct cql *cql;
    struct fgw_id bucket_id;
    enum cql_statement_id all, bounded; /* statements without and with an upper bound */
    enum cql_statement_id within;       /* rows of one key behind an id; 0: a key has one row */
    enum cql_statement_id within_to;    /* and up to one */
    struct fgw_buf to;                  /* exclusive; empty: none */
    unsigned shards;
    int32_t page_rows; /* of one shard */
    int32_t rows_most; /* they grow up to this */
    size_t wanted;     /* entries, over all shards */
    unsigned seeks;    /* past prefixes, since rows were read */
    size_t prefixes;   /* likewise, since the beginning */
    size_t rows_read;
    size_t bytes_read; /* those rows in memory */
    size_t round_rows; /* the last round */
    uint64_t round_ms;
    struct cql_stream *streams; /* one a shard */
    unsigned *heap;             /* shards with rows, smallest key first */
    unsigned heap_size;
    bool heap_valid;
};
/* cql, bucket_id, all, bounded and within are set. wanted: entries the caller will take, over all shards. */
void cql_scan_init(struct cql_scan *scan, struct fgw_bytes start, struct fgw_bytes prefix,
                   size_t wanted);
void cql_scan_deinit(struct cql_scan *scan);
/* The entry with the smallest key, which the next call passes over; NOT_FOUND at the end. Reads more
 * when a shard runs dry: one parallel round for all that have. */
enum fgw_err cql_scan_next(struct cql_scan *scan, struct cql_entry *out_entry,
                           struct fgw_error *error) FGW_MUST_CHECK;
/* Passes over everything below `key`. */
void cql_scan_seek(struct cql_scan *scan, struct fgw_bytes key);
/* scan_range.c: asks for the next page of a shard; takes it; asks for less when it was refused with
 * TOO_LARGE (UNAVAILABLE: less cannot be asked for); goes on at a key. */
struct fgw_cql_call *cql_stream_ask(struct cql_scan *scan, unsigned shard);
enum fgw_err cql_stream_take(struct cql_scan *scan, unsigned shard,
                             struct fgw_cql_result *result) FGW_MUST_CHECK;
enum fgw_err cql_stream_narrow(struct cql_scan *scan, unsigned shard,
                               struct fgw_error *error) FGW_MUST_CHECK;
void cql_stream_goto(struct cql_stream *stream, struct fgw_bytes key);
/* listing columns, copied. */
enum fgw_err cql_entry_decode(struct fgw_arena *arena, const struct cql_entry *entry,
                              struct cql_row *out_row) FGW_MUST_CHECK;
/* The object of a listing entry; a head whose deletion was left half done counts as what it becomes. */
enum fgw_err cql_settled_row(struct cql *cql, struct fgw_arena *arena,
                             const struct fgw_id *bucket_id, const struct cql_entry *entry,
                             struct cql_row *out_row, struct fgw_error *error) FGW_MUST_CHECK;
/* The row at the result's cursor, copied into the arena. */
enum fgw_err cql_entry_take(struct fgw_arena *arena, const struct fgw_cql_result *result,
                            struct cql_entry *out_entry) FGW_MUST_CHECK;
/* All rows of a result. */
enum fgw_err cql_entries_take(struct fgw_arena *arena, struct fgw_cql_result *result,
                              struct cql_entry **out_rows, size_t *out_count) FGW_MUST_CHECK;

/* -- purge.c: gone heads that are old enough, removed by lists that pass over them ----------------- */

enum { CQL_PURGE_MAX = 16 };
struct cql_purge {
    struct fgw_bytes keys[CQL_PURGE_MAX];
    struct fgw_id revs[CQL_PURGE_MAX];
    unsigned count;
};
void cql_purge_note(struct cql_purge *purge, struct fgw_arena *arena,
                    const struct cql_entry *entry);
/* Waits for them. */
void cql_purge_run(struct cql *cql, const struct fgw_id *bucket_id, const struct cql_purge *purge);

/* -- upload.c, complete.c, part.c ---------------------------------------------------------------- */

enum cql_upload_state {
    CQL_UPLOAD_OPEN = 1,
    CQL_UPLOAD_COMPLETING,
    CQL_UPLOAD_COMPLETED,
    CQL_UPLOAD_ABORTING,
    CQL_UPLOAD_ABORTED
};
/* What completing decided; whoever carries it on needs nothing else. */
struct cql_completion {
    struct fgw_id seen_rev;   /* of the head; zero: there was no row */
    struct fgw_object object; /* to store, with version id, time and rev */
    struct fgw_row_state more;
};
struct cql_upload_row {
    enum cql_upload_state state;      /* 0: there is none */
    struct fgw_upload upload;         /* upload.rev is the row's */
    struct cql_completion completion; /* completing */
};
enum fgw_err cql_upload_read(struct cql *cql, struct fgw_arena *arena, const struct fgw_id *id,
                             bool serial, struct cql_upload_row *out_row,
                             struct fgw_error *error) FGW_MUST_CHECK;
struct fgw_cql_call *cql_upload_start(struct cql *cql, const struct fgw_id *id);
enum fgw_err cql_upload_wait(struct cql *cql, struct fgw_arena *arena, struct fgw_cql_call *call,
                             const struct fgw_id *id, struct cql_upload_row *out_row,
                             struct fgw_error *error) FGW_MUST_CHECK;
/* seen -> next, with a new rev. *out_applied false: read the row again; also when an answer was
 * lost, as the same step may be tried again over the same rev. */
enum fgw_err cql_upload_swap(struct cql *cql, struct fgw_arena *arena,
                             const struct cql_upload_row *seen, struct cql_upload_row *next,
                             bool *out_applied, struct fgw_error *error) FGW_MUST_CHECK;
/* Carries on with a row in state completing until it is another one. `row` is read again. */
enum fgw_err cql_finish_complete(struct cql *cql, struct fgw_arena *arena,
                                 struct cql_upload_row *row,
                                 struct fgw_error *error) FGW_MUST_CHECK;
/* Carries on with a row in state aborting. */
enum fgw_err cql_finish_abort(struct cql *cql, struct fgw_arena *arena,
                              const struct cql_upload_row *row,
                              struct fgw_error *error) FGW_MUST_CHECK;
/* Drops look-up and part rows; the bytes of parts that `keep` (may be NULL) does not list are
 * released. */
enum fgw_err cql_upload_tidy(struct cql *cql, struct fgw_arena *arena,
                             const struct fgw_upload *upload, const struct fgw_object *keep,
                             struct fgw_error *error) FGW_MUST_CHECK;

/* -- the contract ------------------------------------------------------------------------------- */

enum fgw_err cql_bucket_create(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                               struct fgw_bucket *, struct fgw_error *);
enum fgw_err cql_bucket_get(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes, bool,
                            struct fgw_bucket *, struct fgw_error *);
enum fgw_err cql_bucket_update(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                               struct fgw_error *);
enum fgw_err cql_bucket_delete(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                               struct fgw_error *);
enum fgw_err cql_bucket_list(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                             struct fgw_bytes, unsigned, struct fgw_bucket **, size_t *, bool *,
                             struct fgw_error *);
enum fgw_err cql_object_get(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                            struct fgw_bytes, struct fgw_version, struct fgw_object *,
                            struct fgw_error *);
enum fgw_err cql_object_put(struct fgw_meta *, struct fgw_arena *, struct fgw_put *,
                            struct fgw_written *, struct fgw_error *);
enum fgw_err cql_object_delete(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                               struct fgw_bytes, struct fgw_version, const struct fgw_conditions *,
                               struct fgw_written *, struct fgw_error *);
enum fgw_err cql_object_update(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                               const struct fgw_object *, struct fgw_error *);
enum fgw_err cql_object_list(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                             const struct fgw_list_query *, struct fgw_object_list *,
                             struct fgw_error *);
enum fgw_err cql_version_list(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                              const struct fgw_list_query *, struct fgw_object_list *,
                              struct fgw_error *);
enum fgw_err cql_upload_create(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                               const struct fgw_upload *, struct fgw_id *, struct fgw_error *);
enum fgw_err cql_upload_get(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                            struct fgw_bytes, const struct fgw_id *, struct fgw_upload *,
                            struct fgw_error *);
enum fgw_err cql_upload_abort(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                              const struct fgw_upload *, struct fgw_error *);
enum fgw_err cql_upload_list(struct fgw_meta *, struct fgw_arena *, const struct fgw_bucket *,
                             const struct fgw_upload_list_query *, struct fgw_upload_list *,
                             struct fgw_error *);
enum fgw_err cql_part_put(struct fgw_meta *, struct fgw_arena *, const struct fgw_upload *,
                          const struct fgw_part *, struct fgw_blob_staged *, struct fgw_error *);
enum fgw_err cql_part_list(struct fgw_meta *, struct fgw_arena *, const struct fgw_upload *,
                           unsigned, unsigned, bool, struct fgw_part **, size_t *, bool *,
                           struct fgw_error *);
enum fgw_err cql_upload_complete(struct fgw_meta *, struct fgw_arena *, const struct fgw_complete *,
                                 struct fgw_written *, struct fgw_error *);
enum fgw_err cql_key_get(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                         struct fgw_access_key *, struct fgw_user *, struct fgw_error *);
enum fgw_err cql_user_put(struct fgw_meta *, struct fgw_arena *, const struct fgw_user *, bool,
                          struct fgw_error *);
enum fgw_err cql_user_get(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                          struct fgw_user *, struct fgw_error *);
enum fgw_err cql_user_remove(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                             struct fgw_error *);
enum fgw_err cql_user_list(struct fgw_meta *, struct fgw_arena *, struct fgw_user **, size_t *,
                           struct fgw_error *);
enum fgw_err cql_key_put(struct fgw_meta *, struct fgw_arena *, const struct fgw_access_key *, bool,
                         struct fgw_error *);
enum fgw_err cql_key_remove(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                            struct fgw_error *);
enum fgw_err cql_key_list(struct fgw_meta *, struct fgw_arena *, struct fgw_bytes,
                          struct fgw_access_key **, size_t *, struct fgw_error *);
enum fgw_err cql_blob_live(struct fgw_meta *, struct fgw_arena *, const struct fgw_storage_owner *,
                           const struct fgw_cid *, struct fgw_blob_live *);

#endif
