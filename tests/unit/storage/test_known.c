/* test_known.c: blocks that the store has are not written again, and are there all the same when
 * the store loses them before the blob is finished. */
#include "fixture.h"

#include <stdio.h>
#include <unistd.h>

#include "storage/release.h"
#include "storage/storage_internal.h"

enum { MIB = 1024 * 1024, SIZE = 3 * MIB + 100 };

static void run_fresh(void (*fn)(struct fixture *fixture))
{
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.group_size_bytes = 2 * MIB;
    fixture_open(&fixture);
    fixture_run(&fixture, fn);
    fixture_deinit(&fixture);
}

static uint64_t spared(struct fgw_storage *storage)
{
    return atomic_load(&storage->figures.spared_bytes);
}

static void release_all(struct fgw_storage *storage)
{
    struct fgw_release_result result = {.more = true};
    fgw_fiber_sleep_ms(3);
    while (result.more) {
        assert_int_equal(fgw_release_pass(storage, &result), FGW_OK);
    }
}

static uint64_t blocks_of(struct fgw_storage *storage)
{
    struct fgw_storage_stats stats;
    fgw_figures_refresh(storage);
    fgw_storage_stats(storage, &stats);
    return stats.blocks;
}

static void expect_body(struct fgw_storage *storage, const struct fgw_cid *root,
                        const uint8_t *body, size_t size)
{
    struct fgw_buf read;
    fgw_buf_init(&read, 0);
    assert_int_equal(read_blob(storage, root, NULL, &read), FGW_OK);
    assert_int_equal(read.len, size);
    assert_memory_equal(read.ptr, body, size);
    fgw_buf_deinit(&read);
}

/* A writer with all blocks of the body put_large makes from `seed` added. */
static struct fgw_storage_writer *begin_same(struct fgw_storage *storage,
                                             const struct fgw_storage_owner *owner,
                                             const uint8_t *body, size_t size)
{
    struct fgw_storage_writer *writer;
    struct fgw_buf node;
    fgw_buf_init(&node, 0);
    assert_int_equal(fgw_storage_writer_new(storage, owner, 0, size, &writer), FGW_OK);
    for (size_t at = 0; at < size; at += MIB) {
        struct fgw_storage_block leaf = make_block(fgw_bytes_sub(fgw_bytes(body, size), at, MIB));
        (void)fgw_buf_append(&node, fgw_bytes(leaf.cid.bytes, FGW_CID_SIZE));
        assert_int_equal(fgw_storage_writer_add(writer, &leaf, true), FGW_OK);
    }
    struct fgw_storage_block top = make_block(fgw_buf_bytes(&node));
    top.cid = fgw_cid_of(FGW_CODEC_DAG_PB, top.bytes);
    assert_int_equal(fgw_storage_writer_add(writer, &top, false), FGW_OK);
    fgw_buf_deinit(&node);
    return writer;
}

struct case_data {
    struct fgw_storage_owner owners[2];
    struct fgw_cid root;
    uint8_t *body;
};

static struct fgw_storage_writer *begin_case(struct fgw_storage *storage, struct case_data *data)
{
    data->body = fgw_xmalloc(SIZE);
    fill_large(data->body, SIZE, 8);
    make_owner(&data->owners[0], "first", 1);
    make_owner(&data->owners[1], "second", 2);
    assert_int_equal(put_large(storage, &data->owners[0], SIZE, 8, &data->root), FGW_OK);
    assert_int_equal(spared(storage), 0);
    struct fgw_storage_writer *writer = begin_same(storage, &data->owners[1], data->body, SIZE);
    assert_int_equal(spared(storage), 3 * MIB); /* small ones are written anew */
    return writer;
}

static void end_case(struct fgw_storage *storage, struct case_data *data,
                     struct fgw_storage_writer *writer)
{
    assert_int_equal(fgw_storage_writer_finish(writer, &data->root, SIZE), FGW_OK);
    fgw_storage_writer_free(writer);
    release_all(storage);
    expect_body(storage, &data->root, data->body, SIZE);
    assert_int_equal(release_hold(storage, &data->owners[1], &data->root), FGW_OK);
    release_all(storage);
    release_all(storage);
    assert_int_equal(blocks_of(storage), 0);
    fgw_xfree(data->body);
}

static void write_twice(struct fixture *fixture)
{
    struct case_data data;
    struct fgw_storage_writer *writer = begin_case(fixture->storage, &data);
    assert_int_equal(fgw_storage_writer_finish(writer, &data.root, SIZE), FGW_OK);
    fgw_storage_writer_free(writer);
    release_all(fixture->storage);
    assert_int_equal(blocks_of(fixture->storage), 5);
    assert_int_equal(release_hold(fixture->storage, &data.owners[0], &data.root), FGW_OK);
    release_all(fixture->storage);
    expect_body(fixture->storage, &data.root, data.body, SIZE);
    fgw_xfree(data.body);
}

static void known_blocks_are_not_written_again(void **state)
{
    (void)state;
    run_fresh(write_twice);
}

static void lose_them_meanwhile(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct case_data data;
    struct fgw_storage_writer *writer = begin_case(storage, &data);
    assert_int_equal(release_hold(storage, &data.owners[0], &data.root), FGW_OK);
    release_all(storage);
    release_all(storage);
    assert_int_equal(blocks_of(storage), 0);
    end_case(storage, &data, writer);
}

static void blocks_that_were_freed_meanwhile_are_written_after_all(void **state)
{
    (void)state;
    run_fresh(lose_them_meanwhile);
}

static void lose_their_group(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct fgw_compact_result result = {.more = true};
    struct case_data data;
    struct fgw_storage_writer *writer = begin_case(storage, &data);
    assert_int_equal(release_hold(storage, &data.owners[0], &data.root), FGW_OK);
    release_all(storage);
    release_all(storage);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fgw_compact_pass(storage, &result), FGW_OK);
        assert_int_equal(fgw_storage_checkpoint(storage, NULL), FGW_OK);
    }
    end_case(storage, &data, writer);
}

static void blocks_of_a_group_given_up_meanwhile_are_written_after_all(void **state)
{
    (void)state;
    run_fresh(lose_their_group);
}

static void mark_them_bad(struct fixture *fixture)
{
    struct fgw_storage *storage = fixture->storage;
    struct case_data data;
    struct fgw_storage_writer *writer = begin_case(storage, &data);
    struct fgw_storage_block leaf = make_block(fgw_bytes(data.body, MIB));
    struct fgw_row_key key = fgw_row_key_block(fgw_cid_digest(&leaf.cid));
    struct fgw_block_row row;
    struct fgw_buf value;
    fgw_buf_init(&value, 0);
    assert_int_equal(fgw_storage_index_get(storage, &key, &value), FGW_OK);
    assert_int_equal(fgw_block_row_decode(fgw_buf_bytes(&value), &row), FGW_OK);
    fgw_storage_mark_bad(storage, fgw_cid_digest(&leaf.cid), row.group, row.offset);
    assert_int_equal(release_hold(storage, &data.owners[0], &data.root), FGW_OK);
    end_case(storage, &data, writer);
    fgw_buf_deinit(&value);
}

static void blocks_marked_bad_meanwhile_are_written_after_all(void **state)
{
    (void)state;
    run_fresh(mark_them_bad);
}

static void write_zeros(struct fixture *fixture)
{
    enum { LEAVES = 1030 }; /* more than a slice */
    struct fgw_storage *storage = fixture->storage;
    struct fgw_storage_owner owner;
    struct fgw_storage_writer *writer;
    uint8_t *zeros = fgw_xcalloc(1, MIB);
    make_owner(&owner, "zeros", 1);
    struct fgw_storage_block leaf = make_block(fgw_bytes(zeros, MIB));
    struct fgw_storage_block top = make_block(FGW_LIT("node"));
    top.cid = fgw_cid_of(FGW_CODEC_DAG_PB, top.bytes);
    assert_int_equal(fgw_storage_writer_new(storage, &owner, 0, 0, &writer), FGW_OK);
    for (int i = 0; i < LEAVES; i++) {
        assert_int_equal(fgw_storage_writer_add(writer, &leaf, true), FGW_OK);
    }
    assert_int_equal(fgw_storage_writer_add(writer, &top, false), FGW_OK);
    assert_int_equal(fgw_storage_writer_finish(writer, &top.cid, (uint64_t)LEAVES * MIB), FGW_OK);
    fgw_storage_writer_free(writer);
    assert_int_equal(spared(storage), (uint64_t)(LEAVES - 1) * MIB);
    assert_int_equal(blocks_of(storage), 2);
    struct fgw_storage_reader *reader;
    struct fgw_storage_run run;
    assert_int_equal(fgw_storage_reader_open(storage, &top.cid, NULL, &reader), FGW_OK);
    assert_int_equal(fgw_storage_reader_next(reader, (uint64_t)(LEAVES - 1) * MIB, MIB, true, &run),
                     FGW_OK);
    assert_memory_equal(run.bytes.ptr, zeros, MIB);
    fgw_storage_reader_close(reader);
    assert_int_equal(release_hold(storage, &owner, &top.cid), FGW_OK);
    release_all(storage);
    release_all(storage);
    assert_int_equal(blocks_of(storage), 0);
    fgw_xfree(zeros);
}

static void a_body_that_repeats_itself_is_written_once(void **state)
{
    (void)state;
    run_fresh(write_zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_blocks_are_not_written_again),
        cmocka_unit_test(blocks_that_were_freed_meanwhile_are_written_after_all),
        cmocka_unit_test(blocks_of_a_group_given_up_meanwhile_are_written_after_all),
        cmocka_unit_test(blocks_marked_bad_meanwhile_are_written_after_all),
        cmocka_unit_test(a_body_that_repeats_itself_is_written_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
