/* blobs.h: where bytes live: contract between the S3 engine and local, remote or replicated stores.
 *
 * A body becomes staged blobs: `stage` is fed the body and ends as one staged blob, which the
 * metadata backend commits together with the name. Up to FGW_STORAGE_INLINE_MAX bytes a staged blob
 * stays in memory with its digests; more is already durable in the store when finish returns.
 * Whoever executes the request hashes once: SHA-256 of each leaf here, MD5 and checksums in src/s3.
 * All functions run in a fiber of the worker that serves the request.
 */
#ifndef FGW_BLOBS_BLOBS_H
#define FGW_BLOBS_BLOBS_H

#include "storage/storage.h"

struct fgw_blobs;
struct fgw_blob_stage;
struct fgw_blob_reader;

/* A piece of an object: (replica set, blob root, size), numbered within its owner. */
struct fgw_extent {
    uint64_t number; /* names the hold together with the owner id */
    uint64_t set;    /* replica set; 0 = this process's own store */
    struct fgw_cid root;
    uint64_t size;
    struct fgw_storage_place first; /* hint: where its first block was when written (local only) */
};

/* Result of staging. Belongs to the stage's arena; ended by exactly one of commit (by the metadata
 * backend) or fgw_blob_discard. */
struct fgw_blob_staged {
    struct fgw_blobs *blobs;
    struct fgw_storage_owner owner;
    struct fgw_extent extent;
    bool in_memory;                 /* block is set; not durable yet */
    struct fgw_storage_block block; /* of a blob of one inline block */
    bool held_copy;                 /* made by fgw_blob_stage_copy */
    void *private_state;            /* of the store */
};

struct fgw_blob_stage_options {
    struct fgw_arena *arena;               /* outlives the staged blob */
    const struct fgw_storage_owner *owner; /* copied */
    uint64_t extent_number;
    uint64_t size_hint; /* bytes to come, UINT64_MAX when unknown */
    unsigned replicas;  /* 0 = the default */
    /* NULL, or an MD5 that has seen nothing yet, updated with every byte that is written: one pass
     * for both hashes. Only for stores whose ops say stage_takes_md5. */
    struct fgw_md5 *md5;
};

struct fgw_blobs_ops {
    bool stage_takes_md5;
    enum fgw_err (*stage_begin)(struct fgw_blobs *blobs,
                                const struct fgw_blob_stage_options *options,
                                struct fgw_blob_stage **out_stage, struct fgw_error *error);
    enum fgw_err (*stage_write)(struct fgw_blob_stage *stage, struct fgw_bytes bytes);
    size_t (*stage_room)(struct fgw_blob_stage *stage, uint8_t **out_room); /* NULL: never any */
    enum fgw_err (*stage_finish)(struct fgw_blob_stage *stage, struct fgw_blob_staged *out_staged);
    void (*stage_abort)(struct fgw_blob_stage *stage);
    enum fgw_err (*stage_copy)(struct fgw_blobs *blobs,
                               const struct fgw_blob_stage_options *options,
                               const struct fgw_extent *source, struct fgw_blob_staged *out_staged);
    enum fgw_err (*make_durable)(struct fgw_blob_staged *staged);
    void (*confirm)(struct fgw_blob_staged *staged);
    void (*discard)(struct fgw_blob_staged *staged);
    void (*release)(struct fgw_blobs *blobs, const struct fgw_storage_owner *owner,
                    const struct fgw_extent *extents, size_t count);
    enum fgw_err (*read_open)(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                              struct fgw_blob_reader **out_reader, struct fgw_error *error);
    enum fgw_err (*read_next)(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                              bool prefer_memory, struct fgw_storage_run *out_run);
    enum fgw_err (*read_leaf)(struct fgw_blob_reader *reader, uint64_t leaf,
                              uint8_t out_digest[32]);
    void (*read_close)(struct fgw_blob_reader *reader);
};

/* First member of every store; src/blobs/{local,remote,replicated}.h make them. */
struct fgw_blobs {
    const struct fgw_blobs_ops *ops;
    struct fgw_small_cache *cache; /* set before the first request; NULL: none */
};

/* Errors of staging: NOSPACE (507), UNAVAILABLE (too few stores), IO. */
static inline enum fgw_err fgw_blob_stage_begin(struct fgw_blobs *blobs,
                                                const struct fgw_blob_stage_options *options,
                                                struct fgw_blob_stage **out_stage,
                                                struct fgw_error *error)
{
    return blobs->ops->stage_begin(blobs, options, out_stage, error);
}
/* Any number of bytes; suspends for back-pressure. The stage struct's first member is its store. */
enum fgw_err fgw_blob_stage_write(struct fgw_blob_stage *stage,
                                  struct fgw_bytes bytes) FGW_MUST_CHECK;
/* Memory in which the store would hold the next bytes, 0: none. What is put there and then handed to
 * fgw_blob_stage_write (from the front, in pieces of any length) is not copied. Valid until the next
 * call on the stage that does not hand in bytes of it. */
size_t fgw_blob_stage_room(struct fgw_blob_stage *stage, uint8_t **out_room);
/* Ends and frees the stage, also on failure. An empty body gives the empty raw block. */
enum fgw_err fgw_blob_stage_finish(struct fgw_blob_stage *stage,
                                   struct fgw_blob_staged *out_staged) FGW_MUST_CHECK;
/* Takes NULL. */
void fgw_blob_stage_abort(struct fgw_blob_stage *stage);
/* A new hold on a blob that is there already (CopyObject): no bytes move. FGW_ERR_NOT_FOUND when it
 * cannot be granted: the caller then reads and stages the bytes. */
static inline enum fgw_err fgw_blob_stage_copy(struct fgw_blobs *blobs,
                                               const struct fgw_blob_stage_options *options,
                                               const struct fgw_extent *source,
                                               struct fgw_blob_staged *out_staged)
{
    return blobs->ops->stage_copy(blobs, options, source, out_staged);
}

/* For metadata backends that do not share the store's log (cql): */
/* Bytes and hold are durable on the required stores afterwards; changes nothing if they are. */
static inline enum fgw_err fgw_blob_make_durable(struct fgw_blob_staged *staged)
{
    return staged->blobs->ops->make_durable(staged);
}
/* The name that uses it is committed (a hint that spares the stores a question). */
static inline void fgw_blob_confirm(struct fgw_blob_staged *staged)
{
    staged->blobs->ops->confirm(staged);
}
/* It will not be used: gives up bytes and hold. */
static inline void fgw_blob_discard(struct fgw_blob_staged *staged)
{
    staged->blobs->ops->discard(staged);
}
/* The row that named these is gone: a hint, the store asks the metadata before it acts. Only for
 * backends that do not release in their own transaction. */
static inline void fgw_blob_release(struct fgw_blobs *blobs, const struct fgw_storage_owner *owner,
                                    const struct fgw_extent *extents, size_t count)
{
    blobs->ops->release(blobs, owner, extents, count);
}

/* Reading one extent: runs as of fgw_storage_reader_next. */
enum fgw_err fgw_blob_read_open(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                                struct fgw_blob_reader **out_reader,
                                struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_blob_read_next(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                                bool prefer_memory, struct fgw_storage_run *out_run) FGW_MUST_CHECK;
/* SHA-256 of leaf number `leaf` (of 1 MiB each but the last), as the blob's root proves it.
 * FGW_ERR_NOT_FOUND behind the last leaf; UNAVAILABLE. */
enum fgw_err fgw_blob_read_leaf(struct fgw_blob_reader *reader, uint64_t leaf,
                                uint8_t out_digest[32]) FGW_MUST_CHECK;
void fgw_blob_read_close(struct fgw_blob_reader *reader);

/* Stages and readers of every store begin with this. */
struct fgw_blob_handle {
    const struct fgw_blobs_ops *ops;
};

#endif
