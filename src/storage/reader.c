/* reader.c: reading a blob (storage.h): leaf by leaf, each checked before its bytes are handed out.
 * A hint is believed as far as the section it points to has the right digest and CRC; when it does
 * not (the block was moved), the index is asked. */
#include "base/log.h"
#include "storage/read_pages.h"
#include "storage/rows.h"
#include "storage/storage_internal.h"

enum { MEMORY_MAX = 64 * 1024 }; /* smaller leaves are read into memory: one system call */

struct fgw_storage_reader {
    struct fgw_storage *storage;
    struct fgw_cid root;
    uint64_t size;
    bool many; /* more than one block: blob is set, session open */
    struct fgw_session session;
    struct fgw_blob_row blob;
    struct fgw_buf slice; /* a row of digests */
    enum fgw_list_kind slice_kind;
    uint64_t slice_first;
    /* the leaf at hand */
    uint64_t leaf; /* UINT64_MAX: none */
    uint8_t digest[FGW_SHA256_SIZE];
    struct fgw_storage_place place;
    bool from_hint;
    struct fgw_group_file *file;
    bool checked; /* its pages in the file */
    uint8_t *memory;
    size_t memory_size;
    struct fgw_bytes bytes; /* checked, in memory; ptr NULL: not */
    fgw_storage_tap_fn *tap;
    void *tap_context;
};

struct get_job {
    struct fgw_kv *kv;
    enum fgw_kv_family family;
    struct fgw_bytes key;
    struct fgw_buf *out;
    enum fgw_err result;
};

static void run_get(void *arg)
{
    struct get_job *job = arg;
    job->result = fgw_kv_get(job->kv, job->family, job->key, false, job->out);
}

static enum fgw_err get_row(struct fgw_storage *storage, enum fgw_kv_family family,
                            struct fgw_bytes key, struct fgw_buf *out)
{
    enum fgw_err err = fgw_kv_get(storage->kv, family, key, true, out);
    if (err == FGW_ERR_AGAIN) {
        struct get_job job = {storage->kv, family, key, out, FGW_OK};
        fgw_pool_run(storage->pool, run_get, &job);
        err = job.result;
    }
    return err;
}

enum fgw_err fgw_storage_get(struct fgw_storage *storage, struct fgw_bytes key, struct fgw_buf *out)
{
    return get_row(storage, FGW_KV_NAMES, key, out);
}

enum fgw_err fgw_storage_index_get(struct fgw_storage *storage, const struct fgw_row_key *key,
                                   struct fgw_buf *out)
{
    return get_row(storage, FGW_KV_BLOCKS, fgw_row_key_bytes(key), out);
}

/* -- where a leaf is ----------------------------------------------------------------------------- */

static enum fgw_err place_of(struct fgw_storage *storage, const uint8_t *digest,
                             struct fgw_storage_place *out_place)
{
    struct fgw_block_row row;
    struct fgw_row_key key = fgw_row_key_block(digest);
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    enum fgw_err err = fgw_storage_index_get(storage, &key, &value);
    if (err == FGW_OK) {
        err = fgw_block_row_decode(fgw_buf_bytes(&value), &row);
    }
    if (err == FGW_OK && row.bad) {
        err = FGW_ERR_CORRUPT;
    }
    if (err == FGW_OK) {
        *out_place = (struct fgw_storage_place){row.group, row.offset, row.len, row.crc32c};
    }
    fgw_buf_deinit(&value);
    return err;
}

/* Makes reader->slice the one that block `index` of the list stands in. */
static enum fgw_err load_slice(struct fgw_storage_reader *reader, enum fgw_list_kind kind,
                               uint64_t index)
{
    uint64_t first = index - index % FGW_SLICE_BLOCKS;
    if (reader->slice.len > 0 && reader->slice_kind == kind && reader->slice_first == first) {
        return FGW_OK;
    }
    struct fgw_row_key key = fgw_row_key_slice(reader->blob.list_id, (uint8_t)kind, first);
    fgw_buf_clear(&reader->slice);
    enum fgw_err err = fgw_storage_index_get(reader->storage, &key, &reader->slice);
    if (err != FGW_OK) {
        fgw_buf_clear(&reader->slice);
        return err;
    }
    reader->slice_kind = kind;
    reader->slice_first = first;
    return FGW_OK;
}

static enum fgw_err leaf_digest(struct fgw_storage_reader *reader, uint64_t leaf)
{
    if (!reader->many) {
        memcpy(reader->digest, fgw_cid_digest(&reader->root), sizeof reader->digest);
        return FGW_OK;
    }
    enum fgw_err err = load_slice(reader, FGW_LIST_LEAVES, leaf);
    if (err != FGW_OK) {
        return err;
    }
    size_t at = 1 + (size_t)(leaf - reader->slice_first) * FGW_SHA256_SIZE;
    if (reader->slice.len < at + FGW_SHA256_SIZE) {
        return FGW_ERR_CORRUPT;
    }
    memcpy(reader->digest, reader->slice.ptr + at, sizeof reader->digest);
    return FGW_OK;
}

static void drop_leaf(struct fgw_storage_reader *reader)
{
    fgw_group_files_release(&reader->storage->files, reader->file);
    reader->file = NULL;
    reader->leaf = UINT64_MAX;
    reader->checked = false;
    reader->bytes = fgw_bytes(NULL, 0);
}

static uint64_t leaf_size(const struct fgw_storage_reader *reader, uint64_t leaf)
{
    uint64_t start = leaf * FGW_STORAGE_BLOCK_MAX;
    uint64_t left = reader->size - start;
    return left < FGW_STORAGE_BLOCK_MAX ? left : FGW_STORAGE_BLOCK_MAX;
}

static enum fgw_err open_place(struct fgw_storage_reader *reader)
{
    enum fgw_err err =
        fgw_group_files_acquire(&reader->storage->files, reader->place.group, &reader->file);
    return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
}

/* A group that was given up between the look and the opening: the index knows a new place. */
static enum fgw_err open_from_index(struct fgw_storage_reader *reader, uint64_t leaf)
{
    enum { LOOKS = 3 };
    enum fgw_err err = FGW_ERR_CORRUPT;
    for (int look = 0; look < LOOKS && err == FGW_ERR_CORRUPT; look++) {
        err = place_of(reader->storage, reader->digest, &reader->place);
        if (err != FGW_OK) {
            return err;
        }
        if (reader->place.len != leaf_size(reader, leaf)) {
            return FGW_ERR_CORRUPT;
        }
        err = open_place(reader);
    }
    return err;
}

static enum fgw_err find_leaf(struct fgw_storage_reader *reader, uint64_t leaf)
{
    struct fgw_storage_place hint = reader->place;
    bool hinted = reader->from_hint && leaf == 0;
    drop_leaf(reader);
    enum fgw_err err = leaf_digest(reader, leaf);
    reader->from_hint = hinted;
    if (err == FGW_OK && hinted) {
        reader->place = hint;
        err = open_place(reader);
        hinted = err == FGW_OK;
    }
    if (!hinted && (err == FGW_OK || err == FGW_ERR_CORRUPT)) {
        reader->from_hint = false;
        err = open_from_index(reader, leaf);
    }
    if (err == FGW_OK) {
        reader->leaf = leaf;
    }
    return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
}

/* -- its bytes ----------------------------------------------------------------------------------- */

static enum fgw_err load_memory(struct fgw_storage_reader *reader,
                                const struct fgw_group_block *block)
{
    size_t size = fgw_group_section_size(block->len);
    if (reader->memory_size < size) {
        fgw_xfree(reader->memory);
        reader->memory = fgw_xmalloc(size);
        reader->memory_size = size;
    }
    enum fgw_err err = fgw_read_bytes(reader->storage->pool, reader->file->fd, block->offset,
                                      reader->memory, size);
    if (err == FGW_OK) {
        err = fgw_group_check_section(fgw_bytes(reader->memory, size), block, &reader->bytes);
    }
    return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
}

static void see_leaf(void *context, size_t at, struct fgw_bytes bytes)
{
    struct fgw_storage_reader *reader = context;
    reader->tap(reader->tap_context, &reader->place, at, bytes);
}

static enum fgw_err check_leaf(struct fgw_storage_reader *reader, bool in_memory)
{
    struct fgw_group_block block = {reader->digest, reader->place.offset, reader->place.len,
                                    reader->place.crc32c};
    if (in_memory) {
        return reader->bytes.ptr != NULL ? FGW_OK : load_memory(reader, &block);
    }
    if (reader->checked) {
        return FGW_OK;
    }
    struct fgw_check_tap tap = {see_leaf, reader};
    enum fgw_err err = fgw_check_block(reader->storage->pool, reader->file->fd, &block,
                                       reader->tap != NULL ? &tap : NULL);
    reader->checked = err == FGW_OK;
    return err;
}

static void report_damage(const uint8_t *digest, const struct fgw_storage_place *place)
{
    char text[FGW_CID_TEXT_SIZE];
    struct fgw_cid cid = fgw_cid_make(FGW_CODEC_RAW, digest);
    fgw_cid_text(&cid, text);
    fgw_log_error("storage", "block %s is damaged: group %llu offset %llu", text,
                  (unsigned long long)place->group, (unsigned long long)place->offset);
}

/* Makes `leaf` the leaf at hand, checked. What does not check where it was said to be may have been
 * moved meanwhile: the index is asked (again) before it counts as damaged. */
static enum fgw_err use_leaf(struct fgw_storage_reader *reader, uint64_t leaf, bool prefer_memory)
{
    enum fgw_err err = reader->leaf == leaf ? FGW_OK : find_leaf(reader, leaf);
    for (int round = 0; err == FGW_OK; round++) {
        bool in_memory = prefer_memory || reader->place.len <= MEMORY_MAX;
        struct fgw_storage_place tried = reader->place;
        err = check_leaf(reader, in_memory);
        if (err != FGW_ERR_CORRUPT || round == 3) {
            break;
        }
        reader->from_hint = false;
        err = find_leaf(reader, leaf);
        if (err == FGW_OK && tried.group == reader->place.group &&
            tried.offset == reader->place.offset) {
            report_damage(reader->digest, &reader->place);
            /* else a body that is stored again would be taken for stored already */
            fgw_storage_mark_bad(reader->storage, reader->digest, tried.group, tried.offset);
            err = FGW_ERR_CORRUPT;
        }
    }
    if (err != FGW_OK) {
        drop_leaf(reader);
    }
    return err;
}

enum fgw_err fgw_storage_reader_next(struct fgw_storage_reader *reader, uint64_t offset,
                                     size_t want, bool prefer_memory,
                                     struct fgw_storage_run *out_run)
{
    if (offset >= reader->size) {
        return FGW_ERR_END;
    }
    uint64_t leaf = reader->many ? offset / FGW_STORAGE_BLOCK_MAX : 0;
    enum fgw_err err = use_leaf(reader, leaf, prefer_memory);
    if (err != FGW_OK) {
        return err;
    }
    uint64_t in_leaf = offset - leaf * FGW_STORAGE_BLOCK_MAX;
    size_t len = reader->place.len - (size_t)in_leaf;
    len = want < len ? want : len;
    if (reader->bytes.ptr != NULL) {
        *out_run = (struct fgw_storage_run){.bytes = fgw_bytes(reader->bytes.ptr + in_leaf, len),
                                            .fd = -1};
        return FGW_OK;
    }
    uint64_t head_size = fgw_group_section_size(reader->place.len) - reader->place.len;
    *out_run = (struct fgw_storage_run){.bytes = fgw_bytes(NULL, len),
                                        .fd = reader->file->fd,
                                        .file_offset = reader->place.offset + head_size + in_leaf};
    return FGW_OK;
}

void fgw_storage_reader_set_tap(struct fgw_storage_reader *reader, fgw_storage_tap_fn *tap,
                                void *context)
{
    reader->tap = tap;
    reader->tap_context = context;
}

enum fgw_err fgw_storage_reader_leaf(struct fgw_storage_reader *reader, uint64_t leaf,
                                     uint8_t out_digest[FGW_SHA256_SIZE])
{
    uint8_t at_hand[FGW_SHA256_SIZE];
    if (leaf > reader->size / FGW_STORAGE_BLOCK_MAX ||
        (leaf > 0 && leaf * FGW_STORAGE_BLOCK_MAX >= reader->size)) {
        return FGW_ERR_NOT_FOUND;
    }
    memcpy(at_hand, reader->digest, sizeof at_hand);
    enum fgw_err err = leaf_digest(reader, leaf);
    if (err == FGW_OK) {
        memcpy(out_digest, reader->digest, FGW_SHA256_SIZE);
    }
    memcpy(reader->digest, at_hand, sizeof at_hand);
    return err;
}

uint64_t fgw_storage_reader_blocks(const struct fgw_storage_reader *reader, bool leaves)
{
    if (!reader->many) {
        return leaves ? 1 : 0;
    }
    return leaves ? reader->blob.leaves : reader->blob.nodes;
}

enum fgw_err fgw_storage_reader_digests(struct fgw_storage_reader *reader, bool leaves,
                                        uint64_t first, size_t max,
                                        uint8_t (*out_digests)[FGW_SHA256_SIZE], size_t *out_count)
{
    if (first >= fgw_storage_reader_blocks(reader, leaves) || max == 0) {
        return FGW_ERR_NOT_FOUND;
    }
    if (!reader->many) {
        memcpy(out_digests[0], fgw_cid_digest(&reader->root), FGW_SHA256_SIZE);
        *out_count = 1;
        return FGW_OK;
    }
    enum fgw_err err = load_slice(reader, leaves ? FGW_LIST_LEAVES : FGW_LIST_NODES, first);
    if (err != FGW_OK) {
        return err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
    }
    size_t at = 1 + (size_t)(first - reader->slice_first) * FGW_SHA256_SIZE;
    size_t left = reader->slice.len < at ? 0 : (reader->slice.len - at) / FGW_SHA256_SIZE;
    if (left == 0) {
        return FGW_ERR_CORRUPT;
    }
    *out_count = left < max ? left : max;
    memcpy(out_digests, reader->slice.ptr + at, *out_count * FGW_SHA256_SIZE);
    return FGW_OK;
}

/* -- one block by its CID ------------------------------------------------------------------------ */

static enum fgw_err read_at(struct fgw_storage *storage, const struct fgw_storage_place *place,
                            const uint8_t *digest, struct fgw_buf *out, struct fgw_bytes *out_bytes)
{
    struct fgw_group_block block = {digest, place->offset, place->len, place->crc32c};
    size_t size = fgw_group_section_size(place->len);
    struct fgw_group_file *file;
    fgw_buf_clear(out);
    enum fgw_err err = fgw_buf_reserve(out, size);
    if (err == FGW_OK) {
        err = fgw_group_files_acquire(&storage->files, place->group, &file);
        err = err == FGW_ERR_NOT_FOUND ? FGW_ERR_CORRUPT : err;
    }
    if (err != FGW_OK) {
        return err;
    }
    err = fgw_read_bytes(storage->pool, file->fd, place->offset, out->ptr, size);
    fgw_group_files_release(&storage->files, file);
    if (err == FGW_OK) {
        out->len = size;
        err = fgw_group_check_section(fgw_buf_bytes(out), &block, out_bytes);
    }
    return err == FGW_ERR_END ? FGW_ERR_CORRUPT : err;
}

enum fgw_err fgw_storage_read_block(struct fgw_storage *storage, const struct fgw_cid *cid,
                                    struct fgw_buf *out, struct fgw_storage_block *out_block)
{
    const uint8_t *digest = fgw_cid_digest(cid);
    struct fgw_storage_place tried = {0};
    struct fgw_bytes bytes;
    for (;;) {
        struct fgw_storage_place place = {0};
        enum fgw_err err = place_of(storage, digest, &place);
        if (err == FGW_OK && place.group == tried.group && place.offset == tried.offset) {
            report_damage(digest, &place);
            fgw_storage_mark_bad(storage, digest, place.group, place.offset);
            return FGW_ERR_CORRUPT;
        }
        if (err == FGW_OK) {
            err = read_at(storage, &place, digest, out, &bytes);
        }
        if (err == FGW_OK) {
            *out_block = (struct fgw_storage_block){*cid, place.crc32c, bytes};
            return FGW_OK;
        }
        if (err != FGW_ERR_CORRUPT || place.group == 0) {
            return err;
        }
        tried = place; /* it may have been moved meanwhile */
    }
}

enum fgw_err fgw_storage_block_place(struct fgw_storage *storage, const struct fgw_cid *cid,
                                     struct fgw_storage_place *out_place)
{
    return place_of(storage, fgw_cid_digest(cid), out_place);
}

/* -- sessions ------------------------------------------------------------------------------------ */

static enum fgw_err open_many(struct fgw_storage_reader *reader)
{
    struct fgw_row_key key = fgw_row_key_blob(fgw_cid_digest(&reader->root));
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    /* before the look-up: what it finds stays */
    fgw_session_open(&reader->storage->sessions, &reader->session, fgw_cid_digest(&reader->root));
    enum fgw_err err = fgw_storage_index_get(reader->storage, &key, &value);
    if (err == FGW_OK) {
        err = fgw_blob_row_decode(fgw_buf_bytes(&value), &reader->blob);
    }
    fgw_buf_deinit(&value);
    reader->many = true;
    reader->size = err == FGW_OK ? reader->blob.size : 0;
    return err;
}

static enum fgw_err open_one(struct fgw_storage_reader *reader,
                             const struct fgw_storage_place *hint)
{
    if (hint != NULL && hint->group != 0) {
        reader->place = *hint;
        reader->from_hint = true;
        reader->size = hint->len;
        return FGW_OK;
    }
    struct fgw_storage_place place;
    enum fgw_err err = place_of(reader->storage, fgw_cid_digest(&reader->root), &place);
    if (err == FGW_OK) {
        /* as good as a hint: it spares a second look-up */
        reader->place = place;
        reader->from_hint = true;
        reader->size = place.len;
    }
    return err;
}

enum fgw_err fgw_storage_reader_open(struct fgw_storage *storage, const struct fgw_cid *root,
                                     const struct fgw_storage_place *hint,
                                     struct fgw_storage_reader **out_reader)
{
    struct fgw_storage_reader *reader = fgw_xcalloc(1, sizeof *reader);
    reader->storage = storage;
    reader->root = *root;
    reader->leaf = UINT64_MAX;
    fgw_buf_init(&reader->slice, 0);
    enum fgw_err err =
        fgw_cid_codec(root) == FGW_CODEC_RAW ? open_one(reader, hint) : open_many(reader);
    if (err != FGW_OK) {
        fgw_storage_reader_close(reader);
        return err;
    }
    *out_reader = reader;
    return FGW_OK;
}

uint64_t fgw_storage_reader_size(const struct fgw_storage_reader *reader)
{
    return reader->size;
}

void fgw_storage_reader_close(struct fgw_storage_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    drop_leaf(reader);
    if (reader->many) {
        fgw_session_close(&reader->storage->sessions, &reader->session);
    }
    fgw_buf_deinit(&reader->slice);
    fgw_xfree(reader->memory);
    fgw_xfree(reader);
}

/* The row is read behind the bytes: a block that moved meanwhile is not marked at its new place. */
enum fgw_err fgw_storage_check_block(struct fgw_storage *storage, const struct fgw_cid *cid)
{
    uint8_t digest[FGW_SHA256_SIZE];
    struct fgw_storage_block block;
    struct fgw_storage_place before = {0};
    struct fgw_storage_place after = {0};
    struct fgw_buf bytes;
    fgw_buf_init(&bytes, 0);
    enum fgw_err err = place_of(storage, fgw_cid_digest(cid), &before);
    if (err == FGW_OK) {
        err = fgw_storage_read_block(storage, cid, &bytes, &block);
    }
    if (err == FGW_OK) {
        fgw_sha256(block.bytes, digest);
        bool wrong = memcmp(digest, fgw_cid_digest(cid), sizeof digest) != 0;
        if (wrong && place_of(storage, fgw_cid_digest(cid), &after) == FGW_OK &&
            after.group == before.group && after.offset == before.offset) {
            fgw_storage_mark_bad(storage, fgw_cid_digest(cid), after.group, after.offset);
        }
        err = wrong ? FGW_ERR_CORRUPT : FGW_OK;
    }
    fgw_buf_deinit(&bytes);
    return err;
}
