/* test_piece.c: the parts a piece is made of: list nodes, the set of blocks, files under way. The
 * whole is tested by tests/integration/test_pieces.py. */
#include "cmocka_all.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/rng.h"
#include "piece/list_nodes.h"
#include "piece/out_file.h"
#include "piece/seen.h"

static struct fgw_cid raw_cid(uint32_t number)
{
    uint8_t bytes[4];
    fgw_put_u32le(bytes, number);
    return fgw_cid_of(FGW_CODEC_RAW, fgw_bytes(bytes, sizeof bytes));
}

/* -- list nodes ---------------------------------------------------------------------------------- */

static void check_head(size_t count, const uint8_t *head, size_t head_len)
{
    struct {
        struct fgw_cid cid;
        uint64_t other;
    } *entries = fgw_xcalloc(count, sizeof *entries);
    struct fgw_buf node;
    fgw_buf_init(&node, FGW_PIECE_LIST_NODE_MAX);
    for (size_t i = 0; i < count; i++) {
        entries[i].cid = raw_cid((uint32_t)i);
    }
    struct fgw_cid cid = fgw_piece_list_node(&entries[0].cid, sizeof *entries, count, &node);
    assert_int_equal(node.len, head_len + count * 41);
    assert_memory_equal(node.ptr, head, head_len);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *link = node.ptr + head_len + i * 41;
        assert_memory_equal(link, "\xd8\x2a\x58\x25\x00", 5);
        assert_memory_equal(link + 5, entries[i].cid.bytes, FGW_CID_SIZE);
    }
    uint8_t digest[FGW_SHA256_SIZE];
    fgw_sha256(fgw_buf_bytes(&node), digest);
    assert_memory_equal(cid.bytes, "\x01\x71\x12\x20", 4);
    assert_memory_equal(fgw_cid_digest(&cid), digest, sizeof digest);
    fgw_buf_deinit(&node);
    fgw_xfree(entries);
}

/* Shortest heads, as dag-cbor asks for. */
static void list_nodes(void **state)
{
    (void)state;
    check_head(1, (const uint8_t *)"\x81", 1);
    check_head(23, (const uint8_t *)"\x97", 1);
    check_head(24, (const uint8_t *)"\x98\x18", 2);
    check_head(255, (const uint8_t *)"\x98\xff", 2);
    check_head(256, (const uint8_t *)"\x99\x01\x00", 3);
    check_head(1024, (const uint8_t *)"\x99\x04\x00", 3);
}

/* -- seen ---------------------------------------------------------------------------------------- */

static void seen_blocks(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    struct fgw_piece_seen seen = {0};
    struct fgw_cid cid = raw_cid(0);
    assert_false(fgw_piece_seen_has(&seen, &cid));
    for (uint32_t i = 0; i < COUNT; i++) {
        cid = raw_cid(i);
        assert_true(fgw_piece_seen_add(&seen, &cid));
        assert_false(fgw_piece_seen_add(&seen, &cid));
    }
    for (uint32_t i = 0; i < 2 * COUNT; i++) {
        cid = raw_cid(i);
        assert_int_equal(fgw_piece_seen_has(&seen, &cid), i < COUNT);
    }
    assert_int_equal(seen.count, COUNT);
    /* digests that share the bits which choose the slot */
    uint8_t digest[FGW_SHA256_SIZE] = {1};
    for (uint8_t i = 1; i < 100; i++) {
        digest[0] = i;
        cid = fgw_cid_make(FGW_CODEC_RAW, digest);
        assert_true(fgw_piece_seen_add(&seen, &cid));
    }
    fgw_piece_seen_deinit(&seen);
    assert_false(fgw_piece_seen_has(&seen, &cid));
}

/* -- files under way ----------------------------------------------------------------------------- */

static int open_folder(char *path)
{
    assert_non_null(mkdtemp(path));
    int dir = open(path, O_RDONLY | O_DIRECTORY);
    assert_true(dir >= 0);
    return dir;
}

static bool exists(int dir, const char *name)
{
    struct stat status;
    return fstatat(dir, name, &status, 0) == 0;
}

static void files(void **state)
{
    (void)state;
    enum { SIZE = 3 * 1024 * 1024 + 5 };
    char path[] = "/tmp/fgw-piece-XXXXXX";
    int dir = open_folder(path);
    struct fgw_piece_out_file file;
    struct fgw_piece_out_file other;
    uint8_t *bytes = fgw_xmalloc(SIZE);
    fgw_rng_fill(bytes, SIZE);
    assert_int_equal(fgw_piece_out_begin(&file, dir, "under-way"), FGW_OK);
    assert_int_equal(fgw_piece_out_begin(&other, dir, "under-way"), FGW_ERR_IN_USE);
    fgw_piece_out_deinit(&other);
    for (size_t at = 0; at < SIZE; at += 10007) {
        size_t len = SIZE - at < 10007 ? SIZE - at : 10007;
        assert_int_equal(fgw_piece_out_append(&file, fgw_bytes(bytes + at, len)), FGW_OK);
    }
    assert_int_equal(fgw_piece_out_size(&file), SIZE);
    assert_false(exists(dir, "whole"));
    assert_int_equal(fgw_piece_out_commit(&file, dir, "whole"), FGW_OK);
    fgw_piece_out_deinit(&file);
    assert_false(exists(dir, "under-way"));
    struct fgw_buf read;
    fgw_buf_init(&read, 0);
    assert_int_equal(fgw_fs_read_file(dir, "whole", &read), FGW_OK);
    assert_int_equal(read.len, SIZE);
    assert_memory_equal(read.ptr, bytes, SIZE);
    fgw_buf_deinit(&read);
    /* what a killed export left is written over; what is not committed goes */
    assert_int_equal(symlinkat("whole", dir, "under-way"), 0);
    assert_int_equal(fgw_piece_out_begin(&file, dir, "under-way"), FGW_ERR_IO);
    fgw_piece_out_deinit(&file);
    assert_int_equal(unlinkat(dir, "under-way", 0), 0);
    assert_int_equal(fgw_piece_out_begin(&file, dir, "under-way"), FGW_OK);
    assert_int_equal(fgw_piece_out_append(&file, fgw_bytes(bytes, SIZE)), FGW_OK);
    fgw_fs_set_faults("pwrite:1+:ENOSPC");
    assert_int_equal(fgw_piece_out_append(&file, fgw_bytes(bytes, SIZE)), FGW_ERR_NOSPACE);
    fgw_fs_set_faults(NULL);
    fgw_piece_out_deinit(&file);
    assert_false(exists(dir, "under-way"));
    assert_int_equal(unlinkat(dir, "whole", 0), 0);
    (void)close(dir);
    assert_int_equal(rmdir(path), 0);
    fgw_xfree(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_nodes),
        cmocka_unit_test(seen_blocks),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
