/* remote.h: the client of the block API (docs/formats/block-api.md): one store, seen from here.
 *
 * Connections are kept per worker and store and carry one request at a time. Every call ends: a
 * connection within a second, an answer within FGW_REMOTE_STALL_MS of the last sign of life of the
 * store and FGW_REMOTE_ANSWER_MS in all. All functions run in fibers of workers.
 * Errors besides the store's own (block-api.md, status): UNAVAILABLE (no connection, another store
 * answers there), TIMEOUT, ACCESS_DENIED (no cluster secret fits), CORRUPT (tag, digest).
 */
#ifndef FGW_BLOBS_REMOTE_H
#define FGW_BLOBS_REMOTE_H

#include "blobs/placement.h"
#include "blockapi/message.h"
#include "net/tls.h"

enum { FGW_REMOTE_CONNECT_MS = 1000, FGW_REMOTE_STALL_MS = 2000, FGW_REMOTE_ANSWER_MS = 60000 };

struct fgw_remotes;
struct fgw_remote_writer;
struct fgw_remote_reader;

/* secrets: FGW_CLUSTER_SECRET, first = current; referenced as long as the result lives. */
struct fgw_remotes *fgw_remotes_new(unsigned workers, const struct fgw_bytes *secrets,
                                    size_t secret_count);
/* For stores that speak TLS: authorities to trust. Before the first request; takes a reference. */
void fgw_remotes_set_tls(struct fgw_remotes *remotes, struct fgw_tls_context *tls);
/* On each worker (in a fiber) before free: closes what is kept there. */
void fgw_remotes_close_worker(struct fgw_remotes *remotes, unsigned index);
/* Takes NULL. */
void fgw_remotes_free(struct fgw_remotes *remotes);

/* Whom a request goes to. */
struct fgw_remote_target {
    const struct fgw_placement_member *member;
    uint64_t set;
    uint64_t set_epoch;
};

/* One inline block and its hold, durable when it returns. */
enum fgw_err fgw_remote_put(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                            const struct fgw_blockapi_owner *owner,
                            const struct fgw_storage_block *block,
                            struct fgw_error *error) FGW_MUST_CHECK;
/* A further hold on a blob that is there; NOT_FOUND. */
enum fgw_err fgw_remote_hold(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                             const struct fgw_blockapi_owner *owner, const struct fgw_cid *root,
                             uint64_t size, struct fgw_error *error) FGW_MUST_CHECK;
/* Hints, both. holds: `count` (at most 1,000) times owner and root, encoded. */
enum fgw_err fgw_remote_release(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                                uint32_t count, struct fgw_bytes holds,
                                struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_remote_confirm(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                                uint32_t count, struct fgw_bytes holds,
                                struct fgw_error *error) FGW_MUST_CHECK;
/* The store looks at its block. */
enum fgw_err fgw_remote_damaged(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                                const struct fgw_cid *cid, struct fgw_error *error) FGW_MUST_CHECK;
enum fgw_err fgw_remote_health(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                               struct fgw_blockapi_health *out_health,
                               struct fgw_error *error) FGW_MUST_CHECK;
/* Digests (32 bytes each) of at most FGW_BLOCKAPI_LEAVES_MAX leaves from `first` on, appended. */
enum fgw_err fgw_remote_leaves(struct fgw_remotes *remotes, const struct fgw_remote_target *target,
                               const struct fgw_cid *root, uint64_t size, uint64_t first,
                               struct fgw_buf *out, struct fgw_error *error) FGW_MUST_CHECK;

/* A body as blocks. The target is copied but for its member, which lives as long as the writer. */
enum fgw_err fgw_remote_writer_new(struct fgw_remotes *remotes,
                                   const struct fgw_remote_target *target,
                                   const struct fgw_blockapi_owner *owner, uint64_t size_hint,
                                   struct fgw_remote_writer **out_writer,
                                   struct fgw_error *error) FGW_MUST_CHECK;
/* After an error only free. */
enum fgw_err fgw_remote_writer_add(struct fgw_remote_writer *writer,
                                   const struct fgw_storage_block *block, bool leaf,
                                   struct fgw_error *error) FGW_MUST_CHECK;
/* extent: number of the hold, usually that of the owner it was opened for. */
enum fgw_err fgw_remote_writer_finish(struct fgw_remote_writer *writer, const struct fgw_cid *root,
                                      uint64_t size, uint64_t extent,
                                      struct fgw_error *error) FGW_MUST_CHECK;
/* Before finish: the store drops what it got. Takes NULL. */
void fgw_remote_writer_free(struct fgw_remote_writer *writer);

/* [offset, offset + len) of a blob, streamed. */
enum fgw_err fgw_remote_reader_new(struct fgw_remotes *remotes,
                                   const struct fgw_remote_target *target,
                                   const struct fgw_cid *root, uint64_t size, uint64_t offset,
                                   uint64_t len, struct fgw_remote_reader **out_reader,
                                   struct fgw_error *error) FGW_MUST_CHECK;
/* The next bytes in order, valid until the next call, never beyond the end of a leaf. Their CRC32C, that
 * of a whole leaf as it was stored, is checked here: FGW_ERR_CORRUPT. FGW_ERR_END behind the last. */
enum fgw_err fgw_remote_reader_next(struct fgw_remote_reader *reader, uint64_t *out_offset,
                                    struct fgw_bytes *out_bytes,
                                    struct fgw_error *error) FGW_MUST_CHECK;
/* SHA-256 of the leaf which the bytes that came last belong to, as the store says; of a store that speaks
 * version 1 what the bytes were hashed to, NULL when they are not a whole leaf. */
const uint8_t *fgw_remote_reader_digest(const struct fgw_remote_reader *reader);
/* Takes NULL. */
void fgw_remote_reader_free(struct fgw_remote_reader *reader);

#endif
