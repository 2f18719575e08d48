/* test_local.c: staging and reading through the local store: sizes around every limit, in pieces,
 * copies, aborts, restarts; CIDs against the published vectors (spec filecoin, section 3). */
#include "fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "blobs/local.h"

enum { MIB = 1024 * 1024 };

static uint8_t *make_body(size_t size, unsigned seed)
{
    uint8_t *body = fgw_xmalloc(size + 8);
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (size_t i = 0; i < size; i += 8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(body + i, &state, 8);
    }
    return body;
}

/* At most `piece` bytes, in the stage's own memory where it has some. */
static enum fgw_err write_piece(struct fgw_blob_stage *stage, struct fgw_bytes *body, size_t piece)
{
    uint8_t *room = NULL;
    size_t size = fgw_blob_stage_room(stage, &room);
    struct fgw_bytes bytes = fgw_bytes_sub(*body, 0, size > 0 && size < piece ? size : piece);
    if (size > 0 && bytes.len > 0) {
        memcpy(room, bytes.ptr, bytes.len);
        bytes.ptr = room;
    }
    *body = fgw_bytes_sub(*body, bytes.len, SIZE_MAX);
    size_t first = bytes.len / 3; /* from the front, in two pieces */
    enum fgw_err err = fgw_blob_stage_write(stage, fgw_bytes_sub(bytes, 0, first));
    return err == FGW_OK ? fgw_blob_stage_write(stage, fgw_bytes_sub(bytes, first, SIZE_MAX)) : err;
}

static enum fgw_err stage_body(struct fgw_blobs *blobs, struct fgw_arena *arena,
                               struct fgw_bytes body, size_t piece, unsigned owner_number,
                               struct fgw_blob_staged *out)
{
    struct fgw_storage_owner owner;
    struct fgw_blob_stage *stage;
    struct fgw_error error = {0};
    make_owner(&owner, "key", owner_number);
    struct fgw_blob_stage_options options = {
        .arena = arena, .owner = &owner, .size_hint = piece % 2 == 0 ? body.len : UINT64_MAX};
    enum fgw_err err = fgw_blob_stage_begin(blobs, &options, &stage, &error);
    if (err != FGW_OK) {
        return err;
    }
    while (body.len > 0 && err == FGW_OK) {
        if (owner_number % 2 == 0) {
            err = write_piece(stage, &body, piece);
            continue;
        }
        err = fgw_blob_stage_write(stage, fgw_bytes_sub(body, 0, piece));
        body = fgw_bytes_sub(body, piece, SIZE_MAX);
    }
    if (err != FGW_OK) {
        fgw_blob_stage_abort(stage);
        return err;
    }
    return fgw_blob_stage_finish(stage, out);
}

static void expect_body(struct fgw_blobs *blobs, const struct fgw_extent *extent,
                        struct fgw_bytes body, bool prefer_memory)
{
    struct fgw_blob_reader *reader;
    struct fgw_error error = {0};
    uint8_t *copy = fgw_xmalloc(MIB);
    assert_int_equal(fgw_blob_read_open(blobs, extent, &reader, &error), FGW_OK);
    for (uint64_t at = 0; at < body.len;) {
        struct fgw_storage_run run;
        assert_int_equal(fgw_blob_read_next(reader, at, 300000, prefer_memory, &run), FGW_OK);
        assert_true(run.bytes.len > 0 && run.bytes.len <= 300000);
        const uint8_t *bytes = run.bytes.ptr;
        if (bytes == NULL) {
            assert_false(prefer_memory);
            assert_int_equal(pread(run.fd, copy, run.bytes.len, (off_t)run.file_offset),
                             (ssize_t)run.bytes.len);
            bytes = copy;
        }
        assert_memory_equal(bytes, body.ptr + at, run.bytes.len);
        at += run.bytes.len;
    }
    struct fgw_storage_run run;
    assert_int_equal(fgw_blob_read_next(reader, body.len, 1, false, &run), FGW_ERR_END);
    if (body.len > 10) {
        assert_int_equal(fgw_blob_read_next(reader, body.len - 7, 100, prefer_memory, &run),
                         FGW_OK);
        assert_int_equal(run.bytes.len, body.len == MIB + 1 ? 6 : 7); /* to the end of the leaf */
        assert_int_equal(fgw_blob_read_next(reader, body.len / 3, 5, prefer_memory, &run), FGW_OK);
        assert_int_equal(run.bytes.len, 5);
    }
    fgw_blob_read_close(reader);
    fgw_xfree(copy);
}

static void expect_root(const struct fgw_extent *extent, const char *text)
{
    char actual[FGW_CID_TEXT_SIZE];
    fgw_cid_text(&extent->root, actual);
    assert_string_equal(actual, text);
}

static const size_t SIZES[] = {0,       1,   4096,    262143,  262144,  262145,
                               MIB - 1, MIB, MIB + 1, 2 * MIB, 5 * MIB, 5 * MIB + 7};
enum { SIZE_COUNT = sizeof SIZES / sizeof SIZES[0] };
static struct fgw_extent extents[SIZE_COUNT];

static void stage_sizes(struct fixture *fixture)
{
    static const size_t PIECES[] = {65536, 16383, 1048576, 999983, 65536};
    struct fgw_blobs *blobs = fgw_blobs_local_new(fixture->storage);
    struct fgw_arena arena;
    fgw_arena_init(&arena, 0);
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        uint8_t *body = make_body(SIZES[i], (unsigned)i);
        struct fgw_blob_staged staged;
        assert_int_equal(stage_body(blobs, &arena, fgw_bytes(body, SIZES[i]), PIECES[i % 5],
                                    (unsigned)i + 1, &staged),
                         FGW_OK);
        assert_int_equal(staged.in_memory, SIZES[i] <= 262144);
        assert_int_equal(fgw_blob_make_durable(&staged), FGW_OK);
        assert_int_equal(fgw_blob_make_durable(&staged), FGW_OK);
        extents[i] = staged.extent;
        expect_body(blobs, &extents[i], fgw_bytes(body, SIZES[i]), false);
        fgw_xfree(body);
    }
    fgw_arena_deinit(&arena);
    fgw_blobs_local_free(blobs);
}

static void check_sizes(struct fixture *fixture)
{
    struct fgw_blobs *blobs = fgw_blobs_local_new(fixture->storage);
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        uint8_t *body = make_body(SIZES[i], (unsigned)i);
        expect_body(blobs, &extents[i], fgw_bytes(body, SIZES[i]), true);
        expect_body(blobs, &extents[i], fgw_bytes(body, SIZES[i]), false);
        fgw_xfree(body);
    }
    fgw_blobs_local_free(blobs);
}

static void all_sizes_survive(void **state)
{
    (void)state;
    struct fixture fixture;
    struct fgw_buf live;
    struct fgw_buf rebuilt;
    fixture_init(&fixture);
    fgw_buf_init(&live, 0);
    fgw_buf_init(&rebuilt, 0);
    fixture_open(&fixture);
    fixture_run(&fixture, stage_sizes);
    fixture_run(&fixture, check_sizes);
    dump_rows(fixture.storage, &live);
    fixture_close(&fixture);
    fixture_drop_index(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, check_sizes);
    dump_rows(fixture.storage, &rebuilt);
    assert_true(fgw_bytes_eq(fgw_buf_bytes(&live), fgw_buf_bytes(&rebuilt)));
    fgw_buf_deinit(&live);
    fgw_buf_deinit(&rebuilt);
    fixture_deinit(&fixture);
}

static void stage_vectors(struct fixture *fixture)
{
    struct fgw_blobs *blobs = fgw_blobs_local_new(fixture->storage);
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    uint8_t *zeros = fgw_xcalloc(1, MIB + 1);
    fgw_arena_init(&arena, 0);
    assert_int_equal(stage_body(blobs, &arena, fgw_bytes(zeros, 0), 2, 1, &staged), FGW_OK);
    expect_root(&staged.extent, "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku");
    assert_int_equal(stage_body(blobs, &arena, FGW_LIT("hello world"), 3, 2, &staged), FGW_OK);
    expect_root(&staged.extent, "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e");
    assert_int_equal(stage_body(blobs, &arena, fgw_bytes(zeros, MIB), 65536, 3, &staged), FGW_OK);
    expect_root(&staged.extent, "bafkreibq4fevl27rgurgnxbp7adh42aqiyd6ouflxhj3gzmcxcxzbh6lla");
    assert_int_equal(stage_body(blobs, &arena, fgw_bytes(zeros, MIB + 1), 65535, 4, &staged),
                     FGW_OK);
    expect_root(&staged.extent, "bafybeihd4yzq7n5umhjngdum4r6k2to7egxfkf2jz6thvwzf6djus22cmq");
    fgw_xfree(zeros);
    fgw_arena_deinit(&arena);
    fgw_blobs_local_free(blobs);
}

static void roots_are_those_of_the_profile(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, stage_vectors);
    fixture_deinit(&fixture);
}

/* -- holds ---------------------------------------------------------------------------------------- */

static void copy_and_discard(struct fixture *fixture)
{
    struct fgw_blobs *blobs = fgw_blobs_local_new(fixture->storage);
    struct fgw_arena arena;
    struct fgw_blob_staged staged[2];
    struct fgw_blob_staged copies[2];
    uint8_t *body = make_body(3 * MIB, 77);
    fgw_arena_init(&arena, 0);
    for (unsigned i = 0; i < 2; i++) {
        struct fgw_storage_owner owner;
        make_owner(&owner, "copy", 100 + i);
        struct fgw_blob_stage_options options = {.arena = &arena, .owner = &owner};
        size_t size = i == 0 ? 1000 : 3 * MIB;
        assert_int_equal(stage_body(blobs, &arena, fgw_bytes(body, size), 65536, i + 1, &staged[i]),
                         FGW_OK);
        struct fgw_extent extent = staged[i].extent;
        if (i == 0) {
            assert_int_equal(fgw_blob_stage_copy(blobs, &options, &extent, &copies[i]),
                             FGW_ERR_NOT_FOUND);
        }
        assert_int_equal(fgw_blob_make_durable(&staged[i]), FGW_OK);
        assert_int_equal(fgw_blob_stage_copy(blobs, &options, &extent, &copies[i]), FGW_OK);
        assert_int_equal(fgw_blob_make_durable(&copies[i]), FGW_OK);
        fgw_blob_discard(&staged[i]);
        expect_body(blobs, &copies[i].extent, fgw_bytes(body, size), false);
    }
    assert_false(has_row(fixture->storage, 'q'));
    fgw_blob_discard(&copies[0]);
    fgw_blob_discard(&copies[1]);
    assert_true(has_row(fixture->storage, 'q'));
    assert_false(has_row(fixture->storage, 'h'));
    fgw_xfree(body);
    fgw_arena_deinit(&arena);
    fgw_blobs_local_free(blobs);
}

static void copies_hold_and_discards_release(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, copy_and_discard);
    fixture_deinit(&fixture);
}

static void abort_stages(struct fixture *fixture)
{
    struct fgw_blobs *blobs = fgw_blobs_local_new(fixture->storage);
    struct fgw_arena arena;
    struct fgw_storage_owner owner;
    uint8_t *body = make_body(3 * MIB, 78);
    static const size_t AFTER[] = {0, 100, 262145, 3 * MIB};
    fgw_arena_init(&arena, 0);
    make_owner(&owner, "aborted", 9);
    for (size_t i = 0; i < 4; i++) {
        struct fgw_blob_stage *stage;
        struct fgw_blob_stage_options options = {
            .arena = &arena, .owner = &owner, .size_hint = UINT64_MAX};
        assert_int_equal(fgw_blob_stage_begin(blobs, &options, &stage, NULL), FGW_OK);
        assert_int_equal(fgw_blob_stage_write(stage, fgw_bytes(body, AFTER[i])), FGW_OK);
        fgw_blob_stage_abort(stage);
    }
    assert_false(has_row(fixture->storage, 'b'));
    fgw_xfree(body);
    fgw_arena_deinit(&arena);
    fgw_blobs_local_free(blobs);
}

static void aborted_stages_leave_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture_open(&fixture);
    fixture_run(&fixture, abort_stages);
    fixture_close(&fixture);
    fixture_open(&fixture);
    fixture_deinit(&fixture);
}

/* -- several at once, small groups ---------------------------------------------------------------- */

enum { UPLOADS = 12 };

struct uploads {
    struct fixture *fixture;
    struct fgw_blobs *blobs;
    struct fgw_wait wait;
    unsigned next;
    struct fgw_extent extents[UPLOADS];
};

static void upload(void *arg)
{
    struct uploads *uploads = arg;
    unsigned i = uploads->next++;
    size_t size = 2 * MIB + i * 100001;
    uint8_t *body = make_body(size, 200 + i);
    struct fgw_arena arena;
    struct fgw_blob_staged staged;
    fgw_arena_init(&arena, 0);
    assert_int_equal(
        stage_body(uploads->blobs, &arena, fgw_bytes(body, size), 65536 - i, 200 + i, &staged),
        FGW_OK);
    uploads->extents[i] = staged.extent;
    fgw_arena_deinit(&arena);
    fgw_xfree(body);
    fgw_wait_signal(&uploads->wait);
}

static void upload_all(struct fixture *fixture)
{
    struct uploads uploads = {.fixture = fixture};
    uploads.blobs = fgw_blobs_local_new(fixture->storage);
    fgw_wait_init(&uploads.wait, UPLOADS);
    for (unsigned i = 0; i < UPLOADS; i++) {
        fgw_fiber_spawn(fgw_loop_current(), upload, &uploads);
    }
    fgw_wait_for(&uploads.wait);
    for (unsigned i = 0; i < UPLOADS; i++) {
        size_t size = 2 * MIB + i * 100001;
        uint8_t *body = make_body(size, 200 + i);
        expect_body(uploads.blobs, &uploads.extents[i], fgw_bytes(body, size), i % 2 == 0);
        fgw_xfree(body);
    }
    fgw_blobs_local_free(uploads.blobs);
}

static void uploads_share_bulk_groups(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture);
    fixture.options.group_size_bytes = 8 * MIB;
    fixture_open(&fixture);
    fixture_run(&fixture, upload_all);
    fixture_close(&fixture);
    unsigned files = 0;
    DIR *list = opendir(fixture_file(&fixture, "groups"));
    while (readdir(list) != NULL) {
        files++;
    }
    (void)closedir(list);
    assert_true(files >= 2 + 1 + 3); /* with "." and "..": the log and several bulk groups */
    fixture_deinit(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_sizes_survive),
        cmocka_unit_test(roots_are_those_of_the_profile),
        cmocka_unit_test(copies_hold_and_discards_release),
        cmocka_unit_test(aborted_stages_leave_nothing),
        cmocka_unit_test(uploads_share_bulk_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
