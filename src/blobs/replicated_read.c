/* replicated_read.c: reading one extent from whichever member of its set delivers. The reader streams
 * windows that double while it is read in order; after an error, a stall or a wrong digest the next
 * member goes on at the same byte. What comes over the network has the CRC32C it was stored with, and is
 * of the leaf that the blob's root says, for each leaf that is read whole
 * (docs/decisions/0004-reads-through-an-edge.md). */
#include "base/log.h"
#include "blobs/replicated_internal.h"
#include "cid/dag.h"

enum {
    LEAF = FGW_STORAGE_BLOCK_MAX,
    FIRST_WINDOW = 1024 * 1024,
    MEMBER_TRIES = 2, /* of each member without a byte in between */
    RESOLVE_TRIES = 12,
    RESOLVE_MS = 250
};
static const uint64_t WINDOW_MAX = 64ULL * 1024 * 1024;

struct fgw_blob_reader {
    struct fgw_blob_handle handle; /* first */
    struct fgw_replicated *replicated;
    struct fgw_extent extent;
    struct fgw_placement_set set;
    unsigned failures[FGW_PLACEMENT_MEMBERS_MAX];
    enum fgw_err last_failure;
    /* the member at work */
    bool streaming;
    struct fgw_member member;
    struct fgw_member_reader stream;
    uint64_t window;     /* bytes of the last request */
    uint64_t window_end; /* first byte behind it */
    /* a damaged leaf that a member has */
    bool met_damage;
    unsigned damaged_member;
    uint64_t damaged_leaf;
    /* what came last */
    uint64_t chunk_offset;
    struct fgw_bytes chunk;
    /* SHA-256 of each leaf, proven by the root */
    bool has_leaves;
    struct fgw_buf leaves;
};

static const struct fgw_placement *placement_of(const struct fgw_blob_reader *reader)
{
    return reader->replicated->options.placement;
}

/* Another edge may have written into a set that was made a moment ago. */
static enum fgw_err resolve(struct fgw_blob_reader *reader)
{
    const struct fgw_placement *placement = placement_of(reader);
    for (unsigned attempt = 0;; attempt++) {
        enum fgw_err err = placement->resolve(placement->context, reader->extent.set, &reader->set);
        if (err == FGW_OK || attempt == RESOLVE_TRIES) {
            return err;
        }
        fgw_fiber_sleep_ms(RESOLVE_MS);
    }
}

static struct fgw_blob_reader *new_reader(struct fgw_replicated *replicated,
                                          const struct fgw_extent *extent)
{
    struct fgw_blob_reader *reader = fgw_xcalloc(1, sizeof *reader);
    reader->handle.ops = replicated->base.ops;
    reader->replicated = replicated;
    reader->extent = *extent;
    reader->last_failure = FGW_ERR_UNAVAILABLE;
    fgw_buf_init(&reader->leaves, 0);
    return reader;
}

struct fgw_blob_reader *fgw_replicated_read_over(struct fgw_replicated *replicated,
                                                 const struct fgw_extent *extent,
                                                 const struct fgw_placement_set *set)
{
    struct fgw_blob_reader *reader = new_reader(replicated, extent);
    reader->set = *set;
    return reader;
}

enum fgw_err fgw_replicated_read_open(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                                      struct fgw_blob_reader **out_reader, struct fgw_error *error)
{
    struct fgw_blob_reader *reader = new_reader(fgw_replicated_of(blobs), extent);
    if (resolve(reader) != FGW_OK) {
        fgw_xfree(reader);
        return fgw_error_set(error, FGW_ERR_UNAVAILABLE,
                             "Replica set %llu is not known here (yet). Please try again.",
                             (unsigned long long)extent->set);
    }
    (void)atomic_fetch_add(&reader->replicated->counters.reads, 1);
    *out_reader = reader;
    return FGW_OK;
}

void fgw_replicated_read_close(struct fgw_blob_reader *reader)
{
    fgw_member_reader_close(&reader->stream);
    fgw_buf_deinit(&reader->leaves);
    fgw_xfree(reader);
}

/* -- members ------------------------------------------------------------------------------------- */

/* The own store first, then those that work; each one MEMBER_TRIES times. UINT32_MAX: none. */
static unsigned best_member(const struct fgw_blob_reader *reader, unsigned but)
{
    unsigned best = UINT32_MAX;
    unsigned best_cost = UINT32_MAX;
    for (unsigned i = 0; i < reader->set.count; i++) {
        if (i == but) {
            continue;
        }
        const struct fgw_placement_member *member = &reader->set.members[i];
        unsigned at = (unsigned)((reader->extent.root.bytes[FGW_CID_SIZE - 1] + i) %
                                 reader->set.count); /* spreads reads over the members */
        unsigned cost = reader->failures[i] * 1000 + (member->suspect ? 100u : 0u) +
                        (member->joining ? 200u : 0u) + (member->local ? 0u : 50u) + at;
        if (reader->failures[i] < MEMBER_TRIES && cost < best_cost) {
            best = i;
            best_cost = cost;
        }
    }
    return best;
}

static bool pick_member(struct fgw_blob_reader *reader)
{
    unsigned best = best_member(reader, UINT32_MAX);
    if (best != UINT32_MAX) {
        reader->member = (struct fgw_member){reader->replicated, &reader->set, best};
    }
    return best != UINT32_MAX;
}

/* Whom to ask too when the first one takes long. */
static unsigned second_member(const struct fgw_blob_reader *reader)
{
    unsigned second = best_member(reader, reader->member.index);
    const struct fgw_placement_member *member =
        second == UINT32_MAX ? NULL : &reader->set.members[second];
    return member == NULL || member->local || member->suspect || member->joining ||
                   reader->failures[second] > 0
               ? UINT32_MAX
               : second;
}

static void member_failed(struct fgw_blob_reader *reader, enum fgw_err err,
                          const struct fgw_error *error)
{
    char text[FGW_CID_TEXT_SIZE];
    fgw_cid_text(&reader->extent.root, text);
    fgw_log_warn("blobs", "reading %s goes on elsewhere: %s", text,
                 error->message[0] != '\0' ? error->message : fgw_err_text(err));
    reader->failures[reader->member.index]++;
    reader->last_failure = err;
    reader->streaming = false;
    reader->chunk = fgw_bytes(NULL, 0);
    fgw_member_reader_close(&reader->stream);
    fgw_member_report(&reader->member, err, &reader->extent.root);
    (void)atomic_fetch_add(&reader->replicated->counters.read_failovers, 1);
}

/* A failed member may leave no other: then it is told that nothing could be read, never wrong. */
static enum fgw_err nobody_left(struct fgw_blob_reader *reader)
{
    (void)atomic_fetch_add(&reader->replicated->counters.reads_failed, 1);
    bool damaged =
        reader->last_failure == FGW_ERR_CORRUPT || reader->last_failure == FGW_ERR_NOT_FOUND;
    return damaged ? FGW_ERR_CORRUPT : FGW_ERR_UNAVAILABLE;
}

/* -- digests ------------------------------------------------------------------------------------- */

static uint64_t leaf_count(const struct fgw_blob_reader *reader)
{
    return reader->extent.size / LEAF + (reader->extent.size % LEAF != 0);
}

/* The tree over these leaves has the root that was asked for: so they are the right ones. */
static enum fgw_err prove_leaves(struct fgw_blob_reader *reader)
{
    struct fgw_dag_root root;
    uint64_t count = leaf_count(reader);
    struct fgw_dag_builder *dag = fgw_dag_builder_new(&fgw_dag_unixfs_v1_2025, NULL, NULL);
    enum fgw_err err = reader->leaves.len == count * FGW_SHA256_SIZE ? FGW_OK : FGW_ERR_CORRUPT;
    for (uint64_t i = 0; i < count && err == FGW_OK; i++) {
        uint64_t left = reader->extent.size - i * LEAF;
        struct fgw_cid cid = fgw_cid_make(FGW_CODEC_RAW, reader->leaves.ptr + i * FGW_SHA256_SIZE);
        err = fgw_dag_builder_add(dag, &cid, left < LEAF ? left : LEAF);
    }
    if (err == FGW_OK) {
        err = fgw_dag_builder_finish(dag, &root);
    }
    if (err == FGW_OK && !fgw_cid_eq(&root.cid, &reader->extent.root)) {
        err = FGW_ERR_CORRUPT;
    }
    fgw_dag_builder_free(dag);
    return err;
}

static enum fgw_err local_leaves(struct fgw_blob_reader *reader, struct fgw_error *error)
{
    struct fgw_member_reader stream = {NULL, NULL};
    uint8_t digest[FGW_SHA256_SIZE];
    enum fgw_err err =
        fgw_member_reader_open(&reader->member, &reader->extent, 0, 0, &stream, error);
    for (uint64_t i = 0; i < leaf_count(reader) && err == FGW_OK; i++) {
        err = fgw_storage_reader_leaf(stream.local, i, digest);
        (void)fgw_buf_append(&reader->leaves, fgw_bytes(digest, sizeof digest));
    }
    fgw_member_reader_close(&stream);
    return err;
}

static enum fgw_err remote_leaves(struct fgw_blob_reader *reader, struct fgw_error *error)
{
    struct fgw_remote_target target = {fgw_member_of(&reader->member), reader->set.id,
                                       reader->set.epoch};
    uint64_t count = leaf_count(reader);
    enum fgw_err err = FGW_OK;
    while (err == FGW_OK && reader->leaves.len < count * FGW_SHA256_SIZE) {
        size_t before = reader->leaves.len;
        err = fgw_remote_leaves(reader->replicated->options.remotes, &target, &reader->extent.root,
                                reader->extent.size, before / FGW_SHA256_SIZE, &reader->leaves,
                                error);
        if (err == FGW_OK && reader->leaves.len == before) {
            err = FGW_ERR_CORRUPT;
        }
    }
    return err;
}

static enum fgw_err load_leaves(struct fgw_blob_reader *reader, struct fgw_error *error)
{
    bool local =
        fgw_member_of(&reader->member)->local && reader->replicated->options.storage != NULL;
    fgw_buf_clear(&reader->leaves);
    enum fgw_err err = local ? local_leaves(reader, error) : remote_leaves(reader, error);
    if (err == FGW_OK) {
        err = prove_leaves(reader);
    }
    reader->has_leaves = err == FGW_OK;
    return err;
}

/* What the store says it sent is what was asked for. A part of a leaf of many is not worth asking for
 * the digests of all: there the store has looked. */
static enum fgw_err check_digest(struct fgw_blob_reader *reader, struct fgw_error *error)
{
    const uint8_t *wanted = fgw_cid_digest(&reader->extent.root);
    const uint8_t *digest = fgw_remote_reader_digest(reader->stream.remote);
    bool many = fgw_cid_codec(&reader->extent.root) != FGW_CODEC_RAW;
    bool whole = fgw_leaf_is_whole(reader->extent.size, reader->chunk_offset, reader->chunk.len);
    if (digest == NULL || (many && !reader->has_leaves && !whole)) {
        return FGW_OK;
    }
    if (many) {
        enum fgw_err err = reader->has_leaves ? FGW_OK : load_leaves(reader, error);
        if (err != FGW_OK) {
            return err;
        }
        wanted = reader->leaves.ptr + reader->chunk_offset / LEAF * FGW_SHA256_SIZE;
    }
    (void)atomic_fetch_add(&reader->replicated->counters.digests_checked, 1);
    if (memcmp(digest, wanted, FGW_SHA256_SIZE) == 0) {
        return FGW_OK;
    }
    (void)atomic_fetch_add(&reader->replicated->counters.digests_wrong, 1);
    return fgw_error_set(error, FGW_ERR_CORRUPT, "The store at %s sent bytes with another digest.",
                         fgw_member_of(&reader->member)->address);
}

/* -- bytes --------------------------------------------------------------------------------------- */

static void other_failed(void *context, unsigned index, enum fgw_err err,
                         const struct fgw_error *error)
{
    struct fgw_blob_reader *reader = context;
    struct fgw_member member = reader->member;
    reader->member.index = index;
    member_failed(reader, err, error);
    reader->member = member;
}

/* want is what the client is known to need: a short range asks for no more; reading on in order
 * opens the window. */
static enum fgw_err open_window(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                                struct fgw_error *error)
{
    bool in_order = reader->window > 0 && offset == reader->window_end;
    uint64_t window = in_order ? reader->window * 4 : FIRST_WINDOW;
    window = window > WINDOW_MAX ? WINDOW_MAX : window;
    window = want < FIRST_WINDOW ? want : window;
    uint64_t left = reader->extent.size - offset;
    window = window < left ? window : left;
    fgw_member_reader_close(&reader->stream);
    reader->window = window;
    reader->window_end = offset + window;
    reader->chunk = fgw_bytes(NULL, 0);
    struct fgw_first first = {.set = &reader->set,
                              .extent = &reader->extent,
                              .offset = offset,
                              .len = window,
                              .second = second_member(reader),
                              .failed = other_failed,
                              .context = reader,
                              .index = reader->member.index};
    enum fgw_err err = fgw_replicated_first(reader->replicated, &first, error);
    reader->member.index = first.index;
    reader->streaming = err == FGW_OK;
    if (err == FGW_OK) {
        reader->stream = first.stream;
        reader->chunk_offset = first.chunk_offset;
        reader->chunk = first.chunk;
        err = check_digest(reader, error);
    }
    return err;
}

static enum fgw_err next_chunk(struct fgw_blob_reader *reader, struct fgw_error *error)
{
    enum fgw_err err =
        fgw_remote_reader_next(reader->stream.remote, &reader->chunk_offset, &reader->chunk, error);
    if (err == FGW_OK) {
        err = check_digest(reader, error);
    }
    return err;
}

static bool chunk_has(const struct fgw_blob_reader *reader, uint64_t offset)
{
    return reader->chunk.len > 0 && offset >= reader->chunk_offset &&
           offset - reader->chunk_offset < reader->chunk.len;
}

static enum fgw_err read_remote(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                                struct fgw_storage_run *out_run, struct fgw_error *error)
{
    uint64_t stream_at = reader->chunk_offset + reader->chunk.len;
    bool goes_on = reader->streaming && reader->chunk.len > 0 && offset == stream_at &&
                   offset < reader->window_end;
    enum fgw_err err = FGW_OK;
    if (!chunk_has(reader, offset)) {
        err = goes_on ? next_chunk(reader, error) : open_window(reader, offset, want, error);
    }
    if (err == FGW_OK) {
        struct fgw_bytes rest =
            fgw_bytes_sub(reader->chunk, (size_t)(offset - reader->chunk_offset), want);
        *out_run = (struct fgw_storage_run){.bytes = rest, .fd = -1};
    }
    return err;
}

static enum fgw_err read_member(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                                bool prefer_memory, struct fgw_storage_run *out_run,
                                struct fgw_error *error)
{
    enum fgw_err err = FGW_OK;
    bool local = fgw_member_of(&reader->member)->local;
    if (!local || reader->replicated->options.storage == NULL) {
        return read_remote(reader, offset, want, out_run, error);
    }
    if (reader->stream.local == NULL) {
        err = fgw_member_reader_open(&reader->member, &reader->extent, offset, want,
                                     &reader->stream, error);
    }
    reader->streaming = err == FGW_OK;
    return err == FGW_OK
               ? fgw_storage_reader_next(reader->stream.local, offset, want, prefer_memory, out_run)
               : err;
}

/* Another member has delivered what one has damaged. */
static void mend_damage(struct fgw_blob_reader *reader)
{
    if (reader->met_damage && reader->member.index != reader->damaged_member) {
        reader->met_damage = false;
        fgw_replicated_fix_later(reader->replicated, &reader->extent, &reader->set,
                                 reader->damaged_member, reader->damaged_leaf);
    }
}

enum fgw_err fgw_replicated_read_next(struct fgw_blob_reader *reader, uint64_t offset, size_t want,
                                      bool prefer_memory, struct fgw_storage_run *out_run)
{
    if (offset >= reader->extent.size) {
        return FGW_ERR_END;
    }
    for (;;) {
        struct fgw_error error;
        fgw_error_init(&error);
        if (!reader->streaming && !pick_member(reader)) {
            return nobody_left(reader);
        }
        enum fgw_err err = read_member(reader, offset, want, prefer_memory, out_run, &error);
        if (err == FGW_OK) {
            reader->failures[reader->member.index] = 0;
            mend_damage(reader);
            return FGW_OK;
        }
        if (err == FGW_ERR_CORRUPT) {
            reader->met_damage = true;
            reader->damaged_member = reader->member.index;
            reader->damaged_leaf = offset / LEAF;
        }
        member_failed(reader, err, &error);
    }
}

enum fgw_err fgw_replicated_read_leaf(struct fgw_blob_reader *reader, uint64_t leaf,
                                      uint8_t out_digest[FGW_SHA256_SIZE])
{
    if (leaf > 0 && leaf >= leaf_count(reader)) {
        return FGW_ERR_NOT_FOUND;
    }
    if (fgw_cid_codec(&reader->extent.root) == FGW_CODEC_RAW) {
        memcpy(out_digest, fgw_cid_digest(&reader->extent.root), FGW_SHA256_SIZE);
        return FGW_OK;
    }
    while (!reader->has_leaves) {
        struct fgw_error error;
        fgw_error_init(&error);
        if (!reader->streaming && !pick_member(reader)) {
            return nobody_left(reader);
        }
        enum fgw_err err = load_leaves(reader, &error);
        if (err != FGW_OK) {
            member_failed(reader, err, &error);
        }
    }
    memcpy(out_digest, reader->leaves.ptr + leaf * FGW_SHA256_SIZE, FGW_SHA256_SIZE);
    return FGW_OK;
}
