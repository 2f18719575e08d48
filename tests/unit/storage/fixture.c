/* fixture.c: see fixture.h. An object row here is: owner number (4), CID (36), size (8), place. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/encode.h"
#include "kv/kv.h"

void fixture_init(struct fixture *fixture)
{
    *fixture = (struct fixture){0};
    (void)snprintf(fixture->path, sizeof fixture->path, "/tmp/fgw-storage-XXXXXX");
    assert_non_null(mkdtemp(fixture->path));
    fixture->options = (struct fgw_storage_options){.path = fixture->path, .min_free_bytes = 1};
}

void fixture_deinit(struct fixture *fixture)
{
    char command[128];
    fixture_close(fixture);
    (void)snprintf(command, sizeof command, "rm -rf %s", fixture->path);
    assert_int_equal(system(command), 0);
}

enum fgw_err fixture_try_open(struct fixture *fixture)
{
    fgw_error_init(&fixture->error);
    return fgw_storage_open(&fixture->options, &fixture->storage, &fixture->error);
}

void fixture_open(struct fixture *fixture)
{
    enum fgw_err err = fixture_try_open(fixture);
    if (err != FGW_OK) {
        print_message("open: %s: %s\n", fgw_err_name(err), fgw_error_message(&fixture->error));
    }
    assert_int_equal(err, FGW_OK);
}

void fixture_close(struct fixture *fixture)
{
    fgw_storage_close(fixture->storage);
    fixture->storage = NULL;
}

const char *fixture_file(const struct fixture *fixture, const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", fixture->path, name);
    return path;
}

void fixture_drop_index(struct fixture *fixture)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s/meta", fixture->path);
    assert_int_equal(system(command), 0);
}

void fixture_drop_checkpoints(struct fixture *fixture)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf %s/checkpoints/*", fixture->path);
    assert_int_equal(system(command), 0);
}

struct run {
    struct fixture *fixture;
    void (*fn)(struct fixture *fixture);
};

static void run_main(void *arg)
{
    struct run *run = arg;
    run->fn(run->fixture);
}

void fixture_run(struct fixture *fixture, void (*fn)(struct fixture *fixture))
{
    struct run run = {fixture, fn};
    fgw_fiber_run_alone(run_main, &run);
}

/* -- operations -------------------------------------------------------------------------------- */

void make_owner(struct fgw_storage_owner *owner, const char *key, unsigned owner_number)
{
    *owner = (struct fgw_storage_owner){.bucket_id = "bucket", .key = fgw_bytes_str(key)};
    fgw_put_u32le(owner->owner_id, owner_number);
}

struct fgw_storage_block make_block(struct fgw_bytes bytes)
{
    return (struct fgw_storage_block){fgw_cid_of(FGW_CODEC_RAW, bytes), fgw_crc32c(0, bytes),
                                      bytes};
}

enum { ROW_SIZE = 4 + FGW_CID_SIZE + 8 + 24 };

static void encode_row(uint8_t out[ROW_SIZE], unsigned owner_number, const struct fgw_cid *cid,
                       uint64_t size, const struct fgw_storage_place *place)
{
    fgw_put_u32le(out, owner_number);
    memcpy(out + 4, cid->bytes, FGW_CID_SIZE);
    fgw_put_u64le(out + 40, size);
    fgw_put_u64le(out + 48, place->group);
    fgw_put_u64le(out + 56, place->offset);
    fgw_put_u32le(out + 64, place->len);
    fgw_put_u32le(out + 68, place->crc32c);
}

static void release_old(struct fgw_storage_txn *txn, struct fgw_bytes row)
{
    struct fgw_cid cid;
    uint8_t owner_id[FGW_STORAGE_ID_SIZE] = {0};
    assert_int_equal(row.len, ROW_SIZE);
    memcpy(owner_id, row.ptr, 4);
    memcpy(cid.bytes, row.ptr + 4, FGW_CID_SIZE);
    fgw_storage_txn_release(txn, owner_id, 0, &cid);
}

static enum fgw_err evaluate_put(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct put *put = op->context;
    struct fgw_bytes old;
    uint8_t row[ROW_SIZE];
    enum fgw_err err = fgw_storage_txn_get(txn, fgw_bytes_str(put->key), &old);
    if (err != FGW_OK && err != FGW_ERR_NOT_FOUND) {
        return err;
    }
    if (err == FGW_OK && put->if_none_match) {
        return FGW_ERR_PRECONDITION_FAILED;
    }
    if (err == FGW_OK) {
        release_old(txn, old);
    }
    put->place = fgw_storage_txn_place(txn, 0);
    encode_row(row, put->owner_number, &op->holds[0].root, op->holds[0].size_bytes, &put->place);
    fgw_storage_txn_put(txn, fgw_bytes_str(put->key), fgw_bytes(row, sizeof row));
    return FGW_OK;
}

enum fgw_err put_object(struct fgw_storage *storage, struct put *put)
{
    struct fgw_storage_owner owner;
    struct fgw_storage_block block = make_block(put->body);
    make_owner(&owner, put->key, put->owner_number);
    struct fgw_storage_hold hold = {
        .owner = &owner, .root = block.cid, .size_bytes = put->body.len, .block = &block};
    struct fgw_storage_op op = {
        .name = "put", .evaluate = evaluate_put, .context = put, .holds = &hold, .hold_count = 1};
    return fgw_storage_commit(storage, &op);
}

static enum fgw_err evaluate_delete(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    struct fgw_bytes old;
    struct fgw_bytes key = fgw_bytes_str(op->context);
    enum fgw_err err = fgw_storage_txn_get(txn, key, &old);
    if (err == FGW_OK) {
        release_old(txn, old);
        fgw_storage_txn_delete(txn, key);
    }
    return err;
}

enum fgw_err delete_object(struct fgw_storage *storage, const char *key)
{
    struct fgw_storage_op op = {.name = "delete",
                                .evaluate = evaluate_delete,
                                .context = (void *)(uintptr_t)key,
                                .frees_space = true};
    return fgw_storage_commit(storage, &op);
}

/* What a tap has seen of a leaf. */
struct tapped {
    struct fgw_buf bytes;
    struct fgw_storage_place leaf;
};

static void see(void *context, const struct fgw_storage_place *leaf, size_t at,
                struct fgw_bytes bytes)
{
    struct tapped *tapped = context;
    if (at == 0) {
        fgw_buf_clear(&tapped->bytes);
    }
    assert_int_equal(tapped->bytes.len, at);
    assert_int_equal(fgw_buf_append(&tapped->bytes, bytes), FGW_OK);
    tapped->leaf = *leaf;
}

/* A run in a file, from the start of its leaf: the tap has seen the same bytes. */
static void check_tapped(const struct tapped *tapped, const struct fgw_buf *out,
                         const struct fgw_storage_run *run)
{
    if (run->fd >= 0 && tapped->bytes.len > 0) {
        assert_int_equal(tapped->leaf.len, tapped->bytes.len);
        assert_int_equal(tapped->leaf.crc32c, fgw_crc32c(0, fgw_buf_bytes(&tapped->bytes)));
        assert_int_equal(tapped->bytes.len, run->bytes.len);
        assert_memory_equal(tapped->bytes.ptr, out->ptr + out->len - run->bytes.len,
                            run->bytes.len);
    }
}

static enum fgw_err append_run(struct fgw_buf *out, const struct fgw_storage_run *run)
{
    if (run->bytes.ptr != NULL) {
        return fgw_buf_append(out, run->bytes);
    }
    assert_int_equal(fgw_buf_reserve(out, run->bytes.len), FGW_OK);
    assert_int_equal(pread(run->fd, out->ptr + out->len, run->bytes.len, (off_t)run->file_offset),
                     (ssize_t)run->bytes.len);
    out->len += run->bytes.len;
    return FGW_OK;
}

enum fgw_err read_blob(struct fgw_storage *storage, const struct fgw_cid *root,
                       const struct fgw_storage_place *hint, struct fgw_buf *out)
{
    struct fgw_storage_reader *reader;
    struct tapped tapped;
    enum fgw_err err = fgw_storage_reader_open(storage, root, hint, &reader);
    if (err != FGW_OK) {
        return err;
    }
    fgw_buf_init(&tapped.bytes, 0);
    fgw_storage_reader_set_tap(reader, see, &tapped);
    uint64_t size = fgw_storage_reader_size(reader);
    for (uint64_t at = 0; at < size && err == FGW_OK;) {
        struct fgw_storage_run run;
        err = fgw_storage_reader_next(reader, at, SIZE_MAX, (at & 1) != 0, &run);
        if (err == FGW_OK) {
            assert_true(run.bytes.len > 0);
            err = append_run(out, &run);
            check_tapped(&tapped, out, &run);
            at += run.bytes.len;
        }
        fgw_buf_clear(&tapped.bytes);
    }
    fgw_buf_deinit(&tapped.bytes);
    fgw_storage_reader_close(reader);
    return err;
}

enum fgw_err get_object(struct fgw_storage *storage, const char *key, struct fgw_buf *out)
{
    struct fgw_buf row;
    struct fgw_cid cid;
    fgw_buf_init(&row, 0);
    enum fgw_err err = fgw_storage_get(storage, fgw_bytes_str(key), &row);
    if (err == FGW_OK) {
        assert_int_equal(row.len, ROW_SIZE);
        memcpy(cid.bytes, row.ptr + 4, FGW_CID_SIZE);
        struct fgw_storage_place place = {fgw_get_u64le(row.ptr + 48), fgw_get_u64le(row.ptr + 56),
                                          fgw_get_u32le(row.ptr + 64), fgw_get_u32le(row.ptr + 68)};
        err = read_blob(storage, &cid, &place, out);
    }
    fgw_buf_deinit(&row);
    return err;
}

/* -- blobs of more than one block ---------------------------------------------------------------- */

void fill_large(uint8_t *out, size_t size, unsigned seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < size; i++) {
        if (i % 8 == 0) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        out[i] = (uint8_t)(state >> (8 * (i % 8)));
    }
}

static enum fgw_err write_leaves(struct fgw_storage_writer *writer, struct fgw_bytes body,
                                 struct fgw_cid *out_root)
{
    struct fgw_buf node;
    enum fgw_err err = FGW_OK;
    fgw_buf_init(&node, 0);
    for (size_t at = 0; at < body.len && err == FGW_OK; at += FGW_STORAGE_BLOCK_MAX) {
        struct fgw_storage_block leaf = make_block(fgw_bytes_sub(body, at, FGW_STORAGE_BLOCK_MAX));
        (void)fgw_buf_append(&node, fgw_bytes(leaf.cid.bytes, FGW_CID_SIZE));
        err = fgw_storage_writer_add(writer, &leaf, true);
    }
    struct fgw_storage_block top = make_block(fgw_buf_bytes(&node));
    top.cid = fgw_cid_of(FGW_CODEC_DAG_PB, top.bytes);
    if (err == FGW_OK) {
        err = fgw_storage_writer_add(writer, &top, false);
    }
    fgw_buf_deinit(&node);
    *out_root = top.cid;
    return err;
}

enum fgw_err put_large(struct fgw_storage *storage, const struct fgw_storage_owner *owner,
                       size_t size, unsigned seed, struct fgw_cid *out_root)
{
    struct fgw_storage_writer *writer;
    uint8_t *body = fgw_xmalloc(size);
    fill_large(body, size, seed);
    enum fgw_err err = fgw_storage_writer_new(storage, owner, 0, size, &writer);
    if (err == FGW_OK) {
        err = write_leaves(writer, fgw_bytes(body, size), out_root);
        if (err == FGW_OK) {
            err = fgw_storage_writer_finish(writer, out_root, size);
        }
        fgw_storage_writer_free(writer);
    }
    fgw_xfree(body);
    return err;
}

enum fgw_err commit_row(struct fgw_storage *storage, const char *key, unsigned owner_number,
                        const struct fgw_storage_hold *hold)
{
    struct put put = {.key = key, .owner_number = owner_number};
    struct fgw_storage_op op = {
        .name = "put", .evaluate = evaluate_put, .context = &put, .holds = hold, .hold_count = 1};
    return fgw_storage_commit(storage, &op);
}

enum fgw_err put_large_object(struct fgw_storage *storage, const char *key, unsigned owner_number,
                              size_t size, unsigned seed)
{
    struct fgw_storage_owner owner;
    make_owner(&owner, key, owner_number);
    struct fgw_storage_hold hold = {.owner = &owner, .size_bytes = size, .finished_writer = true};
    enum fgw_err err = put_large(storage, &owner, size, seed, &hold.root);
    return err == FGW_OK ? commit_row(storage, key, owner_number, &hold) : err;
}

struct release {
    const struct fgw_storage_owner *owner;
    const struct fgw_cid *root;
};

static enum fgw_err evaluate_release(struct fgw_storage_op *op, struct fgw_storage_txn *txn)
{
    const struct release *release = op->context;
    if (release->root == NULL) {
        fgw_storage_txn_release_owner(txn, release->owner->owner_id);
    } else {
        fgw_storage_txn_release(txn, release->owner->owner_id, 0, release->root);
    }
    return FGW_OK;
}

enum fgw_err release_hold(struct fgw_storage *storage, const struct fgw_storage_owner *owner,
                          const struct fgw_cid *root)
{
    struct release release = {owner, root};
    struct fgw_storage_op op = {
        .name = "release", .evaluate = evaluate_release, .context = &release, .frees_space = true};
    return fgw_storage_commit(storage, &op);
}

bool has_row(struct fgw_storage *storage, char table)
{
    struct fgw_bytes lower = fgw_bytes((const uint8_t *)&table, 1);
    struct fgw_kv_iter *iter =
        fgw_kv_iter_new(fgw_storage_kv(storage), FGW_KV_BLOCKS, lower, fgw_bytes(NULL, 0), NULL);
    fgw_kv_iter_seek_first(iter);
    bool found = fgw_kv_iter_valid(iter) && fgw_kv_iter_key(iter).ptr[0] == (uint8_t)table;
    fgw_kv_iter_free(iter);
    return found;
}

static void dump_hex(struct fgw_buf *out, struct fgw_bytes bytes)
{
    assert_int_equal(fgw_buf_reserve(out, 2 * bytes.len + 1), FGW_OK);
    fgw_hex_encode(bytes, (char *)out->ptr + out->len);
    out->len += 2 * bytes.len;
}

void dump_rows(struct fgw_storage *storage, struct fgw_buf *out)
{
    for (int family = 0; family < FGW_KV_FAMILIES; family++) {
        struct fgw_kv_iter *iter =
            fgw_kv_iter_new(fgw_storage_kv(storage), (enum fgw_kv_family)family, fgw_bytes(NULL, 0),
                            fgw_bytes(NULL, 0), NULL);
        for (fgw_kv_iter_seek_first(iter); fgw_kv_iter_valid(iter); fgw_kv_iter_next(iter)) {
            (void)fgw_buf_appendf(out, "%d ", family);
            dump_hex(out, fgw_kv_iter_key(iter));
            (void)fgw_buf_append_byte(out, ' ');
            dump_hex(out, fgw_kv_iter_value(iter));
            (void)fgw_buf_append_byte(out, '\n');
        }
        assert_int_equal(fgw_kv_iter_status(iter, NULL), FGW_OK);
        fgw_kv_iter_free(iter);
    }
}

size_t count_holds(struct fgw_storage *storage)
{
    struct fgw_arena arena;
    struct fgw_buf cursor;
    struct fgw_storage_hold_seen *seen;
    size_t count;
    size_t sum = 0;
    fgw_arena_init(&arena, 0);
    fgw_buf_init(&cursor, 0);
    do {
        assert_int_equal(fgw_storage_holds_next(storage, &cursor, &arena, 100, &seen, &count),
                         FGW_OK);
        sum += count;
    } while (count > 0);
    fgw_buf_deinit(&cursor);
    fgw_arena_deinit(&arena);
    return sum;
}
